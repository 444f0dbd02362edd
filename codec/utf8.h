/* UTF-8, by table 3-7 of the Unicode Standard. */
#ifndef CODEC_UTF8_H
#define CODEC_UTF8_H

#include "codec/bytes.h"

enum { UTF8_SIZE_MAX = 4 };

/* Bytes of the character that a text, which is not empty, begins with; 0: it is none. */
size_t utf8_size(struct bytes text);
MUST_CHECK bool utf8_is_valid(struct bytes text);
/* Write the character of this code, below 0x110000 (room for UTF8_SIZE_MAX); returns its size. */
size_t utf8_print(char *out, uint32_t code);

#endif
