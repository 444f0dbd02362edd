/* Words of a line, split as Redis splits inline commands and redis.conf.
 *
 *     board  "weekly:\"eu\":*"  'o\'clock'      ->  [board] [weekly:"eu":*] [o'clock]
 *
 * "Double quotes" take \n \r \t \a \b \xHH and \c, 'single quotes' only \'. Quotes may begin inside
 * a word (a"b c"d is one word), and a closing quote must be followed by a blank or the end of the
 * line. */
#ifndef CODEC_WORDS_H
#define CODEC_WORDS_H

#include "codec/bytes.h"

enum words_status { WORDS_TAKEN, WORDS_END, WORDS_UNBALANCED };

static inline bool words_is_blank(char byte) {
    return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

/* Take the next word from the front of *line. A word without quotes stays in place; another one is
 * decoded to *out, which moves behind it. All words of a line together need at most its size. */
MUST_CHECK enum words_status words_take(struct bytes *line, char **out, struct bytes *word);

#endif
