/* See rdb.h. */
#include "server/rdb/rdb.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "codec/buffer.h"
#include "codec/bytes.h"
#include "server/rdb/rdb_board.h"
#include "server/rdb/rdb_bytes.h"
#include "skiplist/keyspace/registry.h"

void rdb_load_init(struct rdb_load *load, struct registry *registry, uint64_t seed,
                   int64_t now_us) {
    *load = (struct rdb_load){.registry = registry, .now_us = now_us, .latest_us = now_us};
    rdb_reader_init(&load->reader);
    rdb_value_init(&load->value, seed);
}

static void rdb_load_drop_board(struct rdb_load *load) {
    load->is_filling = false;
    load->is_merging = false;
    if (load->has_board) {
        registry_discard_board(load->registry, &load->board);
        load->has_board = false;
    }
}

void rdb_load_deinit(struct rdb_load *load) {
    rdb_load_drop_board(load);
    rdb_reader_deinit(&load->reader);
    rdb_value_deinit(&load->value);
    memory_free(load->decoder);
}

/* ---- errors ---- */

__attribute__((format(printf, 2, 3))) static bool rdb_load_fail(struct rdb_load *load,
                                                                const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(load->error, sizeof load->error, format, arguments);
    va_end(arguments);
    return false;
}

static bool rdb_load_fail_memory(struct rdb_load *load) {
    return rdb_load_fail(load, "out of memory");
}

__attribute__((format(printf, 2, 3))) static bool rdb_load_fail_key(struct rdb_load *load,
                                                                    const char *format, ...) {
    char what[RDB_LOAD_ERROR_MAX - 120];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    return rdb_load_fail(load, "key '%s' of database %llu: %s", bytes_show(load->name).text,
                         (unsigned long long)load->database, what);
}

/* why: of RDB_VALUE_REFUSED. */
static bool rdb_load_check(struct rdb_load *load, enum rdb_value_status status, const char *why) {
    struct bytes member = load->value.culprit;
    switch (status) {
    case RDB_VALUE_OK:
        return true;
    case RDB_VALUE_OUT_OF_MEMORY:
        return rdb_load_fail_memory(load);
    case RDB_VALUE_REFUSED:
        return rdb_load_fail_key(load, "%s", why);
    case RDB_VALUE_TAGS_FULL:
        return rdb_load_fail_key(load, "member '%s': one of its tags has too many different values",
                                 bytes_show(member).text);
    case RDB_VALUE_DAMAGED:
        break;
    }
    if (member.at == NULL) {
        return rdb_load_fail_key(
            load, "a field is there twice, or there are too many, or one is too long");
    }
    if (member.size == 0 || member.size > BOARD_MEMBER_MAX) {
        return rdb_load_fail_key(load, "member '%s': it has 0 or more than %d bytes",
                                 bytes_show(member).text, (int)BOARD_MEMBER_MAX);
    }
    return rdb_load_fail_key(load, "member '%s': it is there twice", bytes_show(member).text);
}

/* ---- keys ---- */

static bool rdb_load_begin_key(struct rdb_load *load) {
    char why[RDB_VALUE_ERROR_MAX];
    if (load->database >= REGISTRY_DATABASES) {
        return rdb_load_fail_key(load, "there are %d databases here, from 0 on",
                                 (int)REGISTRY_DATABASES);
    }
    if (load->name.size == 0 || load->name.size > REGISTRY_KEY_MAX) {
        return rdb_load_fail_key(load, "a key has 1 to %d bytes here", (int)REGISTRY_KEY_MAX);
    }
    if (load->kind == RDB_HASH) {
        rdb_value_begin_hash(&load->value);
        return true;
    }
    const struct rdb_board *board = load->reader.board;
    rdb_load_drop_board(load);
    load->has_board =
        load->kind == RDB_BOARD
            ? registry_create_board_like(load->registry, &board->options, &load->board)
            : registry_create_board(load->registry, load->name, load->now_us / 1000, &load->board);
    if (!load->has_board) {
        return rdb_load_fail_memory(load);
    }
    if (load->kind == RDB_ZSET) {
        return rdb_load_check(
            load,
            rdb_value_begin_board(&load->value, board_layout(&load->board), load->now_us, why),
            why);
    }
    load->latest_us = board->time_us > load->latest_us ? board->time_us : load->latest_us;
    rdb_value_begin_keys(&load->value, board_layout(&load->board));
    return true;
}

static bool rdb_load_put_score(struct rdb_load *load) {
    struct bytes member = load->reader.text;
    double score = load->reader.score;
    char why[RDB_VALUE_ERROR_MAX];
    enum rdb_value_status status = rdb_value_put_score(&load->value, member, score, why);
    if (status == RDB_VALUE_REFUSED) {
        status = rdb_value_choose(&load->value, load->registry, load->name, score, load->now_us,
                                  &load->board, why);
        status =
            status == RDB_VALUE_OK ? rdb_value_put_score(&load->value, member, score, why) : status;
    }
    if (status == RDB_VALUE_REFUSED) {
        return rdb_load_fail_key(load, "member '%s': %s", bytes_show(member).text, why);
    }
    load->member_count++;
    return rdb_load_check(load, status, NULL);
}

static bool rdb_load_take_entries(struct rdb_load *load) {
    uint32_t count;
    const struct board_entry *entries = rdb_board_entries(load->reader.board, &count);
    const struct bytes *values = rdb_board_values(load->reader.board);
    bool is_fine = true;
    for (uint32_t i = 0; i < count && is_fine; i++) {
        const struct bytes *tags = values != NULL ? &values[i] : NULL;
        is_fine = rdb_load_check(load, rdb_value_put_key(&load->value, &entries[i], tags), NULL);
    }
    load->member_count += count;
    return is_fine;
}

/* ---- in place ---- */

/* Its name is free, or becomes it. options: of a board; NULL: it is a hash. */
static bool rdb_load_take_name(struct rdb_load *load, const struct board_options *options) {
    if (load->replace != NULL) {
        load->replace(load->context, load);
    }
    return registry_may_put(load->registry, (uint32_t)load->database, load->name, options) ||
           rdb_load_fail_key(load, registry_peek(load->registry, (uint32_t)load->database,
                                                 load->name, INT64_MIN) != NULL
                                       ? "it is there twice"
                                       : "with the date of an archive it is too long");
}

/* The board is filled. */
static bool rdb_load_put_board(struct rdb_load *load) {
    if (!rdb_load_take_name(load, board_options_of(board_layout(&load->board)))) {
        return false;
    }
    uint32_t cut_count = load->value.count - board_count(&load->board);
    const struct board_state *state = load->kind == RDB_BOARD ? &load->reader.board->state : NULL;
    if (registry_put_loaded(load->registry, (uint32_t)load->database, load->name, &load->board,
                            state, &load->value.notes, load->expire_at_ms) != REGISTRY_OK) {
        return rdb_load_fail_memory(load);
    }
    load->has_board = false;
    load->board_count++;
    load->module_board_count += load->kind == RDB_BOARD;
    load->member_count -= cut_count;
    load->cut_count += cut_count;
    return true;
}

static bool rdb_load_fill_some(struct rdb_load *load) {
    bool is_done;
    if (!rdb_load_check(load, rdb_value_fill_some(&load->value, &is_done), NULL)) {
        return false;
    }
    load->is_filling = !is_done;
    load->is_merging = is_done && load->merge != NULL;
    return !is_done || load->is_merging || rdb_load_put_board(load);
}

static bool rdb_load_merge_some(struct rdb_load *load) {
    switch (load->merge(load->context, load)) {
    case RDB_MERGE_REPLACES:
        load->is_merging = false;
        return rdb_load_put_board(load);
    case RDB_MERGE_GOES_ON:
        return true;
    case RDB_MERGE_DONE:
        rdb_load_drop_board(load);
        return true;
    case RDB_MERGE_FAILED:
        break;
    }
    return rdb_load_fail(load, "it cannot be made equal to what is read");
}

/* A board is filled then, in steps. */
static bool rdb_load_end_key(struct rdb_load *load, int64_t expire_at_ms) {
    load->expire_at_ms = expire_at_ms;
    bool is_hash = load->kind == RDB_HASH;
    if (is_hash && !rdb_load_check(load, rdb_value_end_hash(&load->value), NULL)) {
        return false;
    }
    bool is_lasting = load->kind == RDB_BOARD && load->reader.board->options.is_created;
    bool is_empty =
        is_hash ? hash_count(&load->value.hash) == 0
                : load->value.count == 0 && hash_count(&load->value.notes) == 0 && !is_lasting;
    bool is_expired = !load->keeps_expired && expire_at_ms != RDB_NO_EXPIRY &&
                      expire_at_ms <= load->now_us / 1000;
    if (!is_empty && !is_expired && !is_hash) {
        const struct board_options *options = board_options_of(board_layout(&load->board));
        bool is_exact = load->kind == RDB_BOARD;
        if (!is_exact && options->limit > 0 && load->value.count > options->limit) {
            return rdb_load_fail_key(load, "%u members, and the board's LIMIT is %u",
                                     (unsigned)load->value.count, (unsigned)options->limit);
        }
        rdb_value_begin_fill(&load->value, &load->board, is_exact ? 0 : options->cap);
        load->is_filling = true;
        return true;
    }
    if (!is_empty && !is_expired) {
        load->hash_count++;
        return rdb_load_take_name(load, NULL) &&
               (registry_put_hash(load->registry, (uint32_t)load->database, load->name,
                                  &load->value.hash, load->expire_at_ms, false,
                                  INT64_MIN) == REGISTRY_OK ||
                rdb_load_fail_memory(load));
    }
    load->empty_count += is_empty;
    load->expired_count += !is_empty;
    if (!is_hash) {
        load->member_count -= load->value.count;
        rdb_load_drop_board(load);
    }
    if (load->replace != NULL) {
        load->replace(load->context, load);
    }
    return true;
}

/* ---- beside the keys ---- */

static bool rdb_load_take_state(struct rdb_load *load) {
    char why[RDB_STATE_ERROR_MAX];
    struct bytes chunk;
    int64_t time_us;
    if (load->decoder == NULL) {
        load->decoder = memory_allocate(sizeof *load->decoder);
        if (load->decoder == NULL) {
            return rdb_load_fail_memory(load);
        }
    }
    if (!rdb_board_state_check(load->decoder, load->reader.text, RDB_STATE_WHOLE,
                               REGISTRY_DATABASES, &time_us, &chunk, why)) {
        return rdb_load_fail(load, "the bans before offset %llu: %s",
                             (unsigned long long)load->reader.offset, why);
    }
    load->latest_us = time_us > load->latest_us ? time_us : load->latest_us;
    switch (rdb_board_state_apply(load->registry, load->decoder, chunk)) {
    case EFFECT_OK:
        return true;
    case EFFECT_OUT_OF_MEMORY:
        return rdb_load_fail_memory(load);
    case EFFECT_IMPOSSIBLE:
        break;
    }
    return rdb_load_fail(load, "the bans before offset %llu do not fit those before them",
                         (unsigned long long)load->reader.offset);
}

/* ---- events ---- */

static bool rdb_load_take_key(struct rdb_load *load) {
    const struct rdb_reader *reader = &load->reader;
    load->kind = reader->kind;
    if (!reader->is_single) {
        load->database = reader->database;
        load->name = buffer_bytes(&reader->name);
    }
    if (load->kind != RDB_OTHER) {
        return rdb_load_begin_key(load);
    }
    struct rdb_skipped *skipped = &load->skipped[reader->type];
    if (skipped->count < RDB_LOAD_NAMES) {
        skipped->names[skipped->count] = bytes_show(load->name);
    }
    skipped->count++;
    if (load->replace != NULL) {
        load->replace(load->context, load);
    }
    return true;
}

enum rdb_load_status rdb_load_step(struct rdb_load *load) {
    struct rdb_reader *reader = &load->reader;
    bool is_fine = false;
    if (load->is_filling || load->is_merging) {
        is_fine = load->is_filling ? rdb_load_fill_some(load) : rdb_load_merge_some(load);
        return is_fine ? RDB_LOAD_STEP : RDB_LOAD_FAILED;
    }
    switch (rdb_reader_next(reader)) {
    case RDB_BAD:
        is_fine = reader->is_single ? rdb_load_fail_key(load, "%s", reader->error)
                                    : rdb_load_fail(load, "%s", reader->error);
        break;
    case RDB_OUT_OF_MEMORY:
        is_fine = rdb_load_fail_memory(load);
        break;
    case RDB_MORE:
        return RDB_LOAD_MORE;
    case RDB_END:
        /* Bans that are over go; no other key is due. */
        if (!reader->is_single && !load->keeps_expired) {
            (void)registry_expiry_remove_due(load->registry, load->now_us / 1000, UINT32_MAX);
        }
        load->ban_count = registry_count(load->registry, REGISTRY_BANS);
        return RDB_LOAD_DONE;
    case RDB_STATE:
        is_fine = rdb_load_take_state(load);
        break;
    case RDB_KEY:
        is_fine = rdb_load_take_key(load);
        break;
    case RDB_ENTRY:
        if (load->kind != RDB_HASH) {
            is_fine = rdb_load_put_score(load);
        } else if (!load->keeps_expired && reader->field_expire_at_ms != RDB_NO_EXPIRY &&
                   reader->field_expire_at_ms <= load->now_us / 1000) {
            load->expired_field_count++;
            is_fine = true;
        } else {
            load->field_count++;
            is_fine = rdb_load_check(
                load, rdb_value_put_field(&load->value, reader->text, reader->value), NULL);
        }
        break;
    case RDB_ENTRIES:
        is_fine = rdb_load_take_entries(load);
        break;
    case RDB_NOTE:
        is_fine = rdb_load_check(
            load, rdb_value_put_note(&load->value, reader->text, reader->value), NULL);
        break;
    case RDB_KEY_END:
        is_fine = load->kind == RDB_OTHER || rdb_load_end_key(load, reader->expire_at_ms);
        break;
    }
    return is_fine ? RDB_LOAD_STEP : RDB_LOAD_FAILED;
}

enum rdb_load_status rdb_load_feed(struct rdb_load *load, struct bytes piece) {
    enum rdb_load_status status = RDB_LOAD_STEP;
    rdb_reader_feed(&load->reader, piece);
    while (status == RDB_LOAD_STEP) {
        status = rdb_load_step(load);
    }
    return status;
}

void rdb_load_begin_value(struct rdb_load *load, unsigned version, uint32_t database,
                          struct bytes name) {
    rdb_reader_deinit(&load->reader);
    rdb_reader_init_value(&load->reader, version);
    load->database = database;
    load->name = name;
}

void rdb_load_end_value(struct rdb_load *load) {
    rdb_reader_deinit(&load->reader);
    rdb_reader_init(&load->reader);
}

bool rdb_load_cut_missing(const struct rdb_load *load, struct registry_key *key, uint32_t *rank,
                          uint32_t count) {
    uint32_t at = *rank > board_count(&key->board) ? 0 : *rank; /* it is another board now */
    char room[NAME_TEXT_ROOM];
    struct board_cursor cursor;
    struct board_stored entry;
    for (bool has_more = true; has_more;) {
        uint32_t gone_count = 0;
        board_cursor_seek(&key->board, at, &cursor);
        while ((has_more = count > 0 && board_cursor_read(&cursor, &entry))) {
            uint64_t packed;
            bool is_gone = !board_find(&load->board, name_text(entry.member, room), &packed);
            if (!is_gone && gone_count > 0) {
                break;
            }
            gone_count += is_gone;
            at += !is_gone;
            count--;
            board_cursor_next(&cursor);
        }
        if (gone_count > 0) {
            registry_board_cut(load->registry, key, at, gone_count);
        }
    }
    *rank = at;
    return at < board_count(&key->board);
}

/* ---- writing: numbers as rdb_reader.c reads them ---- */

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
