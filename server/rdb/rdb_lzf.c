/* See rdb_lzf.h. */
#include "server/rdb/rdb_lzf.h"

enum { LITERALS_END = 32, LENGTH_LONG = 7, LENGTH_LEAST = 2 };

/* Copies may overlap what they write: "aaaa" is one byte and a copy from one byte before. */
static bool rdb_lzf_copy_back(struct buffer *out, size_t distance, size_t count) {
    if (distance > out->size) {
        return false;
    }
    char *to = buffer_reserve(out, count);
    if (to == NULL) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        to[i] = to[(ptrdiff_t)i - (ptrdiff_t)distance];
    }
    buffer_commit(out, count);
    return true;
}

bool rdb_lzf_expand(struct bytes from, size_t size, struct buffer *out) {
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
        if (count > size - out->size || !rdb_lzf_copy_back(out, distance, count)) {
            return false;
        }
    }
    return out->size == size;
}
