/* SHA-256 (FIPS 180-4), for names that nobody can make equal on purpose. Passwords have libcrypto's
 * (server/system/digest.h); this one is where there is no libcrypto. */
#ifndef CODEC_SHA256_H
#define CODEC_SHA256_H

#include <stddef.h>
#include <stdint.h>

#include "codec/bytes.h"

enum { SHA256_SIZE = 32 };

/* Of these parts, one behind the other. */
void sha256(const struct bytes *parts, size_t count, uint8_t digest[SHA256_SIZE]);

#endif
