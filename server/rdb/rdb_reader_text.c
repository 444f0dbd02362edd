/* Lengths and strings. A string's head says how many bytes it takes, so that it is expanded only once it has
 * arrived. See rdb_reader_parts.h. */
#include <stdarg.h>
#include <stdio.h>

#include "server/rdb/rdb_lzf.h"
#include "server/rdb/rdb_reader_parts.h"

enum { LZF_RATIO_MAX = 264 };

enum found rdb_reader_refuse(struct rdb_reader *reader, const char *format, ...) {
    char what[RDB_ERROR_MAX - 40];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    snprintf(reader->error, sizeof reader->error, "%s at offset %llu", what,
             (unsigned long long)reader->offset);
    reader->state = RDB_AT_ERROR;
    return FOUND_BAD;
}

enum found rdb_reader_lack_memory(struct rdb_reader *reader) {
    reader->is_out_of_memory = true;
    reader->state = RDB_AT_ERROR;
    return FOUND_BAD;
}

static uint64_t rdb_reader_text_get_big(const unsigned char *at, size_t size) {
    uint64_t value = 0;
    for (size_t i = 0; i < size; i++) {
        value = value << 8 | at[i];
    }
    return value;
}

/* A length, or how a string is encoded, from `from` bytes ahead on; *size: bytes it takes. */
static enum found rdb_reader_text_find_length(struct rdb_reader *reader, size_t from,
                                              uint64_t *length, bool *is_encoded, size_t *size) {
    *length = 0;
    if (rdb_reader_available(reader) < from + 1) {
        return FOUND_TOO_FEW;
    }
    const unsigned char *at = rdb_reader_here(reader) + from;
    unsigned first = at[0];
    *is_encoded = first >> 6 == 3;
    *size = first >> 6 == 1 ? 2 : first == 0x80 ? 5 : first == 0x81 ? 9 : 1;
    if (first >> 6 == 2 && *size == 1) {
        return rdb_reader_refuse(reader, "impossible length");
    }
    if (rdb_reader_available(reader) < from + *size) {
        return FOUND_TOO_FEW;
    }
    *length = *size == 1   ? first & 0x3f
              : *size == 2 ? (uint64_t)(first & 0x3f) << 8 | at[1]
                           : rdb_reader_text_get_big(at + 1, *size - 1);
    return FOUND;
}

enum found rdb_reader_find_plain_length(struct rdb_reader *reader, size_t from, uint64_t *length,
                                        size_t *size) {
    bool is_encoded;
    enum found found = rdb_reader_text_find_length(reader, from, length, &is_encoded, size);
    return found == FOUND && is_encoded ? rdb_reader_refuse(reader, "impossible length") : found;
}

static enum found rdb_reader_text_find_compressed(struct rdb_reader *reader, size_t from,
                                                  struct text *text) {
    size_t stored_head;
    size_t size_head;
    enum found found = rdb_reader_find_plain_length(reader, from + 1, &text->stored, &stored_head);
    if (found == FOUND) {
        found =
            rdb_reader_find_plain_length(reader, from + 1 + stored_head, &text->size, &size_head);
    }
    if (found != FOUND) {
        return found;
    }
    text->head = 1 + stored_head + size_head;
    text->is_compressed = true;
    return text->stored > RDB_TEXT_MAX || text->size / LZF_RATIO_MAX > text->stored
               ? rdb_reader_refuse(reader, "impossible compressed string")
               : FOUND;
}

enum found rdb_reader_find_text(struct rdb_reader *reader, size_t from, struct text *text) {
    uint64_t length;
    bool is_encoded;
    *text = (struct text){.is_compressed = false};
    enum found found = rdb_reader_text_find_length(reader, from, &length, &is_encoded, &text->head);
    if (found != FOUND || !is_encoded) {
        text->stored = length;
        text->size = length;
        return found;
    }
    if (length == 3) {
        return rdb_reader_text_find_compressed(reader, from, text);
    }
    if (length > 3) {
        return rdb_reader_refuse(reader, "unknown encoding of a string");
    }
    text->integer_size = 1U << length;
    text->stored = text->integer_size;
    text->size = text->stored;
    return FOUND;
}

enum found rdb_reader_find_whole_text(struct rdb_reader *reader, size_t from, struct text *text) {
    enum found found = rdb_reader_find_text(reader, from, text);
    if (found != FOUND) {
        return found;
    }
    if (text->size > RDB_TEXT_MAX) {
        return rdb_reader_refuse(reader, "a string of more than %d bytes", (int)RDB_TEXT_MAX);
    }
    return rdb_reader_available(reader) - from - text->head < text->stored ? FOUND_TOO_FEW : FOUND;
}

enum found rdb_reader_take_text(struct rdb_reader *reader, size_t from, const struct text *text,
                                struct buffer *room, char *number, struct bytes *bytes) {
    const unsigned char *at = rdb_reader_here(reader) + from + text->head;
    struct bytes stored = {.at = (const char *)at, .size = (size_t)text->stored};
    if (text->integer_size > 0) {
        uint32_t value = 0;
        for (unsigned i = 0; i < text->integer_size; i++) {
            value |= (uint32_t)at[i] << (8 * i);
        }
        unsigned unused = 32 - 8 * text->integer_size;
        *bytes = (struct bytes){
            .at = number, .size = bytes_print_i64(number, (int32_t)(value << unused) >> unused)};
        return FOUND;
    }
    if (!text->is_compressed) {
        *bytes = stored;
        return FOUND;
    }
    if (!rdb_lzf_expand(stored, (size_t)text->size, room)) {
        return room->is_broken ? rdb_reader_lack_memory(reader)
                               : rdb_reader_refuse(reader, "damaged compressed string");
    }
    *bytes = (struct bytes){.at = room->at, .size = room->size};
    return FOUND;
}

enum found rdb_reader_take_string(struct rdb_reader *reader, size_t from, struct bytes *bytes,
                                  size_t *end) {
    struct text text;
    enum found found = rdb_reader_find_whole_text(reader, from, &text);
    if (found != FOUND) {
        return found;
    }
    *end = from + text.head + (size_t)text.stored;
    return rdb_reader_take_text(reader, from, &text, &reader->text_room, reader->text_number,
                                bytes);
}
