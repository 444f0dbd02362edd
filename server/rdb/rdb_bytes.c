/* See rdb_bytes.h. */
#include "server/rdb/rdb_bytes.h"

#include <stdatomic.h>

#include "codec/little.h"

/* ---- the checksum ----
 *
 * Eight bytes at a time: table[n][b] is the checksum of the byte b with n zeros behind it. */

enum { SLICES = 8, BYTE_VALUES = 256 };
#define REFLECTED_POLYNOMIAL UINT64_C(0x95ac9329ac4bc9b5)

static uint64_t table[SLICES][BYTE_VALUES];
static atomic_bool is_made;

/* Two threads that make it at the same time write the same words. */
static void rdb_bytes_make_table(void) {
    uint64_t made[SLICES][BYTE_VALUES];
    for (unsigned byte = 0; byte < BYTE_VALUES; byte++) {
        uint64_t crc = byte;
        for (int bit = 0; bit < 8; bit++) {
            crc = (crc >> 1) ^ ((crc & 1) != 0 ? REFLECTED_POLYNOMIAL : 0);
        }
        made[0][byte] = crc;
    }
    for (unsigned slice = 1; slice < SLICES; slice++) {
        for (unsigned byte = 0; byte < BYTE_VALUES; byte++) {
            uint64_t crc = made[slice - 1][byte];
            made[slice][byte] = made[0][crc & 0xff] ^ (crc >> 8);
        }
    }
    memcpy(table, made, sizeof table);
    atomic_store(&is_made, true);
}

uint64_t rdb_bytes_crc(uint64_t crc, const char *at, size_t size) {
    if (!atomic_load(&is_made)) {
        rdb_bytes_make_table();
    }
    for (; size >= SLICES; at += SLICES, size -= SLICES) {
        crc ^= little_get_u64(at);
        crc = table[7][crc & 0xff] ^ table[6][(crc >> 8) & 0xff] ^ table[5][(crc >> 16) & 0xff] ^
              table[4][(crc >> 24) & 0xff] ^ table[3][(crc >> 32) & 0xff] ^
              table[2][(crc >> 40) & 0xff] ^ table[1][(crc >> 48) & 0xff] ^ table[0][crc >> 56];
    }
    for (; size > 0; at++, size--) {
        crc = table[0][(crc ^ (unsigned char)*at) & 0xff] ^ (crc >> 8);
    }
    return crc;
}

bool rdb_bytes_open_payload(struct bytes bytes, struct rdb_payload *payload) {
    if (bytes.size < RDB_FOOTER_SIZE) {
        return false;
    }
    size_t size = bytes.size - RDB_FOOTER_SIZE;
    const unsigned char *footer = (const unsigned char *)bytes.at + size;
    uint64_t stored = little_get_u64(bytes.at + size + 2);
    *payload = (struct rdb_payload){.value = {.at = bytes.at, .size = size},
                                    .version = (unsigned)(footer[0] | footer[1] << 8),
                                    .is_checked = stored == rdb_bytes_crc(0, bytes.at, size + 2),
                                    .is_open = stored == 0};
    return true;
}

/* ---- compressed strings ---- */

enum { LITERALS_END = 32, LENGTH_LONG = 7, LENGTH_LEAST = 2 };

bool rdb_bytes_expand(struct bytes from, size_t size, struct buffer *out) {
    const unsigned char *at = (const unsigned char *)from.at;
    const unsigned char *end = at + from.size;
    buffer_clear(out);
    while (at < end) {
        unsigned control = *at++;
        if (control < LITERALS_END) {
            size_t count = control + 1;
            if (count > (size_t)(end - at) || count > size - out->size) {
                return false;
            }
            buffer_append(out, at, count);
            if (out->is_broken) {
                return false;
            }
            at += count;
            continue;
        }
        size_t count = control >> 5;
        if (count == LENGTH_LONG && at < end) {
            count += *at++;
        }
        if (at == end) {
            return false;
        }
        size_t distance = ((size_t)(control & 31) << 8 | *at++) + 1;
        count += LENGTH_LEAST;
        bool is_inside = count <= size - out->size && distance <= out->size;
        char *to = is_inside ? buffer_reserve(out, count) : NULL;
        if (to == NULL) {
            return false;
        }
        /* Copies may overlap what they write: "aaaa" is one byte and a copy from one byte before. */
        for (size_t i = 0; i < count; i++) {
            to[i] = to[(ptrdiff_t)i - (ptrdiff_t)distance];
        }
        buffer_commit(out, count);
    }
    return out->size == size;
}
