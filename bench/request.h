/* Requests as clients send them, for benchmarks that drive the server's code without sockets. */
#ifndef BENCH_REQUEST_H
#define BENCH_REQUEST_H

#include "bench/names.h"
#include "protocol/reply.h"

/* Append words, separated by single spaces, as an array of bulks. Of the words, $score and $member
 * stand for the numbers given; each further $member is the one behind the last. $mail is
 * an address of 22 to 26 characters for each member. $few is one of eight
 * values, $id hardly ever the same again. */
static inline void request_append(struct buffer *input, const char *words, uint64_t score,
                                  uint64_t member) {
    struct reply request; /* requests are written as replies are */
    uint64_t count = 1;
    for (const char *at = words; *at != '\0'; at++) {
        count += *at == ' ';
    }
    reply_init(&request, input, 2);
    reply_array(&request, count);
    for (const char *at = words; count > 0; count--) {
        struct bytes word = {.at = at, .size = strcspn(at, " ")};
        at += word.size + 1;
        if (bytes_is(word, "$score")) {
            reply_bulk_format(&request, "%" PRIu64, score);
        } else if (bytes_is(word, "$member")) {
            char text[MICRO_MEMBER_SIZE + 1];
            micro_write_member(text, member++);
            reply_bulk_text(&request, text);
        } else if (bytes_is(word, "$mail")) {
            char text[NAME_MAIL_SIZE];
            micro_write_name(NAME_MAIL, 0, member, text);
            size_t skipped = member % NAME_MAIL_SPARE;
            reply_bulk(&request, (struct bytes){text + skipped, NAME_MAIL_SIZE - skipped});
        } else if (bytes_is(word, "$few")) {
            reply_bulk_format(&request, "c%u", (unsigned)(score % 8));
        } else if (bytes_is(word, "$id")) {
            reply_bulk_format(&request, "%" PRIu64 "-%" PRIu64, score, member);
        } else {
            reply_bulk(&request, word);
        }
    }
}

#endif
