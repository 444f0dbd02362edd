/* Lengths and strings. A string's head says how many bytes it takes, so that it is expanded only once it has
 * arrived. See rdb_reader_parts.h. */
#include <stdarg.h>
#include <stdio.h>

#include "server/rdb/rdb_lzf.h"
#include "server/rdb/rdb_reader_parts.h"

enum { LZF_RATIO_MAX = 264, ENCODED_LZF = 3 /* below: integers of 1, 2, 4 bytes */ };

void rdb_reader_refuse(struct rdb_reader *reader, const char *format, ...) {
    char what[RDB_ERROR_MAX - 40];
    va_list arguments;
    if (!rdb_reader_is_fine(reader)) {
        return;
    }
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    snprintf(reader->error, sizeof reader->error, "%s at offset %llu", what,
             (unsigned long long)reader->offset);
    reader->found = RDB_FOUND_BAD;
}

void rdb_reader_lack_memory(struct rdb_reader *reader) {
    reader->is_out_of_memory = true;
    reader->found = RDB_FOUND_BAD;
}

const unsigned char *rdb_reader_get(struct rdb_reader *reader, uint64_t size) {
    if (rdb_reader_is_fine(reader) && rdb_reader_available(reader) - reader->ahead < size) {
        reader->found = RDB_FOUND_TOO_FEW;
    }
    if (!rdb_reader_is_fine(reader)) {
        return NULL;
    }
    reader->ahead += (size_t)size;
    return (const unsigned char *)reader->input.at + reader->at + reader->ahead - size;
}

static uint64_t rdb_reader_text_get_big(struct rdb_reader *reader, size_t size) {
    const unsigned char *at = rdb_reader_get(reader, size);
    uint64_t value = 0;
    for (size_t i = 0; at != NULL && i < size; i++) {
        value = value << 8 | at[i];
    }
    return value;
}

/* A length, or how a string is encoded. */
static uint64_t rdb_reader_text_get_length(struct rdb_reader *reader, bool *is_encoded) {
    uint64_t first = rdb_reader_text_get_big(reader, 1);
    uint64_t low = first & 0x3f;
    *is_encoded = first >> 6 == 3;
    if (first >> 6 == 1) {
        return low << 8 | rdb_reader_text_get_big(reader, 1);
    }
    if (first >> 6 == 2 && low > 1) {
        rdb_reader_refuse(reader, "impossible length");
    }
    return first >> 6 == 2 ? rdb_reader_text_get_big(reader, low == 0 ? 4 : 8) : low;
}

uint64_t rdb_reader_get_length(struct rdb_reader *reader) {
    bool is_encoded;
    uint64_t length = rdb_reader_text_get_length(reader, &is_encoded);
    if (is_encoded) {
        rdb_reader_refuse(reader, "impossible length");
    }
    return length;
}

struct text rdb_reader_get_head(struct rdb_reader *reader) {
    bool is_encoded;
    uint64_t length = rdb_reader_text_get_length(reader, &is_encoded);
    struct text text = {.stored = length, .size = length};
    if (is_encoded && length == ENCODED_LZF) {
        text.stored = rdb_reader_get_length(reader);
        text.size = rdb_reader_get_length(reader);
        text.is_compressed = true;
        if (text.stored > RDB_TEXT_MAX || text.size / LZF_RATIO_MAX > text.stored) {
            rdb_reader_refuse(reader, "impossible compressed string");
        }
    } else if (is_encoded && length > ENCODED_LZF) {
        rdb_reader_refuse(reader, "unknown encoding of a string");
    } else if (is_encoded) {
        text.integer_size = 1U << length;
        text.stored = text.size = text.integer_size;
    }
    return text;
}

struct text rdb_reader_get_text(struct rdb_reader *reader) {
    struct text text = rdb_reader_get_head(reader);
    if (text.size > RDB_TEXT_MAX) {
        rdb_reader_refuse(reader, "a string of more than %d bytes", (int)RDB_TEXT_MAX);
    }
    text.at = rdb_reader_get(reader, text.stored);
    return text;
}

struct bytes rdb_reader_take_text(struct rdb_reader *reader, const struct text *text,
                                  struct buffer *room, char *number) {
    struct bytes stored = {.at = (const char *)text->at, .size = (size_t)text->stored};
    if (!rdb_reader_is_fine(reader)) {
        return (struct bytes){.at = NULL};
    }
    if (text->integer_size > 0) {
        uint32_t value = 0;
        for (unsigned i = 0; i < text->integer_size; i++) {
            value |= (uint32_t)text->at[i] << (8 * i);
        }
        unsigned unused = 32 - 8 * text->integer_size;
        return (struct bytes){
            .at = number, .size = bytes_print_i64(number, (int32_t)(value << unused) >> unused)};
    }
    if (!text->is_compressed) {
        return stored;
    }
    if (!rdb_lzf_expand(stored, (size_t)text->size, room)) {
        if (room->is_broken) {
            rdb_reader_lack_memory(reader);
        } else {
            rdb_reader_refuse(reader, "damaged compressed string");
        }
    }
    return buffer_bytes(room);
}

struct bytes rdb_reader_take_string(struct rdb_reader *reader) {
    struct text text = rdb_reader_get_text(reader);
    return rdb_reader_take_text(reader, &text, &reader->text_room, reader->text_number);
}
