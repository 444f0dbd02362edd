/* SHA-256, in hexadecimal as passwords are kept; and random bytes from the system. */
#ifndef SERVER_DIGEST_H
#define SERVER_DIGEST_H

#include "codec/bytes.h"

enum {
    DIGEST_SIZE = 32,
    DIGEST_TEXT_SIZE = 2 * DIGEST_SIZE, /* 0-9 a-f, not terminated */
};

/* The SHA-256 of a text. */
void digest_make(struct bytes text, unsigned char out[DIGEST_SIZE]);
void digest_print(struct bytes text, char out[DIGEST_TEXT_SIZE]);
/* Are these the same? Takes the same time wherever they differ. */
MUST_CHECK bool digest_equal(const char a[DIGEST_TEXT_SIZE], const char b[DIGEST_TEXT_SIZE]);
/* Is the text one that digest_print may write? */
MUST_CHECK bool digest_is_text(struct bytes text);
/* Random characters 0-9 a-f, fit for secrets. */
void digest_random(char *out, size_t size);

#endif
