/* See rdb_write.h; numbers as rdb_reader.c reads them. */
#include "server/rdb/rdb_write.h"

#include <string.h>

#include "codec/buffer.h"
#include "codec/bytes.h"
#include "server/rdb/rdb_board.h"
#include "server/rdb/rdb_bytes.h"

enum {
    PACK_SIZE = 256 * 1024, /* bytes put at a time */
    OP_MODULE_AUX = 247,
    OP_AUX = 250,
    OP_EXPIRE_MS = 252,
    OP_DATABASE = 254,
    OP_END = 255,
    TYPE_HASH = 4,
    TYPE_MODULE = 7,
    /* Of the parts of a module's value. */
    PART_END = 0,
    PART_NUMBER = 2,
    PART_TEXT = 5,
    AUX_BEFORE_KEYS = 1, /* when the host wrote it */
};
#define MAGIC "REDIS0010"

struct writing {
    const struct registry *registry;
    int64_t time_us;
    rdb_write_put *put;
    void *context;
    struct buffer pack;
    uint64_t crc;
    bool is_failed;
};

/* ---- parts ---- */

static void rdb_write_flush(struct writing *writing, size_t size_max) {
    struct buffer *pack = &writing->pack;
    writing->is_failed |= pack->is_broken;
    if (!writing->is_failed && pack->size > size_max) {
        writing->crc = rdb_bytes_crc(writing->crc, pack->at, pack->size);
        writing->is_failed = !writing->put(writing->context, pack->at, pack->size);
    }
    if (pack->size > size_max) {
        buffer_clear(pack);
    }
}

static void rdb_write_byte(struct buffer *out, unsigned byte) {
    char at = (char)byte;
    buffer_append(out, &at, 1);
}

void rdb_write_length(struct buffer *out, uint64_t length) {
    enum { SIX = 1 << 6, FOURTEEN = 1 << 14, LENGTH_32 = 0x80, LENGTH_64 = 0x81 };
    if (length < SIX) {
        rdb_write_byte(out, (unsigned)length);
        return;
    }
    if (length < FOURTEEN) {
        rdb_write_byte(out, (unsigned)(SIX | length >> 8));
        rdb_write_byte(out, (unsigned)(length & UINT8_MAX));
        return;
    }
    bool is_long = length > UINT32_MAX;
    rdb_write_byte(out, is_long ? LENGTH_64 : LENGTH_32);
    for (int shift = is_long ? 56 : 24; shift >= 0; shift -= 8) {
        rdb_write_byte(out, (unsigned)(length >> shift & UINT8_MAX));
    }
}

void rdb_write_text(struct buffer *out, struct bytes text) {
    rdb_write_length(out, text.size);
    buffer_append(out, text.at, text.size);
}

void rdb_write_footer(struct buffer *out, unsigned version) {
    char footer[RDB_FOOTER_SIZE] = {(char)(version & UINT8_MAX), (char)(version >> 8)};
    buffer_append(out, footer, 2);
    if (!out->is_broken) {
        bytes_put_u64(footer + 2, rdb_bytes_crc(0, out->at, out->size));
        buffer_append(out, footer + 2, RDB_FOOTER_SIZE - 2);
    }
}

static void rdb_write_put_text(struct writing *writing, struct bytes text) {
    rdb_write_text(&writing->pack, text);
    rdb_write_flush(writing, PACK_SIZE);
}

/* ---- of a module ---- */

static void rdb_write_put_part_number(void *context, uint64_t number) {
    struct writing *writing = context;
    rdb_write_length(&writing->pack, PART_NUMBER);
    rdb_write_length(&writing->pack, number);
}

static void rdb_write_put_part_text(void *context, struct bytes text) {
    struct writing *writing = context;
    rdb_write_length(&writing->pack, PART_TEXT);
    rdb_write_put_text(writing, text);
}

/* ---- keys ---- */

static void rdb_write_put_key(void *context, const struct registry_key *key) {
    struct writing *writing = context;
    int64_t expire_at_ms = registry_expiry(writing->registry, key);
    char time[sizeof(uint64_t)];
    bool is_hash = key->kind == REGISTRY_HASH;
    if (writing->is_failed) {
        return;
    }
    if (expire_at_ms != REGISTRY_NO_EXPIRY) {
        rdb_write_byte(&writing->pack, OP_EXPIRE_MS);
        bytes_put_u64(time, (uint64_t)expire_at_ms);
        buffer_append(&writing->pack, time, sizeof time);
    }
    rdb_write_byte(&writing->pack, is_hash ? TYPE_HASH : TYPE_MODULE);
    rdb_write_put_text(writing, registry_name(key));
    if (is_hash) {
        struct hash_cursor cursor = hash_begin(registry_hash(key));
        struct hash_pair pair;
        rdb_write_length(&writing->pack, hash_count(registry_hash(key)));
        while (hash_next(&cursor, &pair)) {
            rdb_write_put_text(writing, pair.field);
            rdb_write_put_text(writing, pair.value);
        }
    } else {
        const struct rdb_board_sink sink = {rdb_write_put_part_number, rdb_write_put_part_text,
                                            writing};
        rdb_write_length(&writing->pack, rdb_board_type_id());
        writing->is_failed |= !rdb_board_write(key, 0, writing->time_us, &sink);
        rdb_write_length(&writing->pack, PART_END);
    }
}

static void rdb_write_put_aux(struct writing *writing, const char *name, const char *value) {
    rdb_write_byte(&writing->pack, OP_AUX);
    rdb_write_put_text(writing, bytes_from_text(name));
    rdb_write_put_text(writing, bytes_from_text(value));
}

bool rdb_write(struct registry *registry, int64_t time_us, rdb_write_put *put, void *context) {
    struct writing writing = {
        .registry = registry, .time_us = time_us, .put = put, .context = context};
    char crc[sizeof(uint64_t)];
    buffer_init(&writing.pack, 0);
    buffer_append(&writing.pack, MAGIC, sizeof MAGIC - 1);
    rdb_write_put_aux(&writing, "redis-ver", "7.0.0");
    rdb_write_put_aux(&writing, "redis-bits", "64");
    if (!rdb_board_state_is_empty(registry)) {
        rdb_write_byte(&writing.pack, OP_MODULE_AUX);
        rdb_write_length(&writing.pack, rdb_board_type_id());
        rdb_write_put_part_number(&writing, AUX_BEFORE_KEYS);
        writing.is_failed |=
            !rdb_board_state_write(registry, time_us, rdb_write_put_part_text, &writing);
        rdb_write_put_part_text(&writing, BYTES(""));
        rdb_write_length(&writing.pack, PART_END);
    }
    for (uint32_t database = 0; database < REGISTRY_DATABASES; database++) {
        if (registry_count(registry, database) > 0) {
            rdb_write_byte(&writing.pack, OP_DATABASE);
            rdb_write_length(&writing.pack, database);
            /* Also what is over: it ends when that is said. */
            registry_walk_each(registry, database, INT64_MIN, rdb_write_put_key, &writing);
        }
    }
    rdb_write_byte(&writing.pack, OP_END);
    rdb_write_flush(&writing, 0);
    bytes_put_u64(crc, writing.crc);
    buffer_append(&writing.pack, crc, sizeof crc);
    rdb_write_flush(&writing, 0);
    buffer_deinit(&writing.pack);
    return !writing.is_failed;
}
