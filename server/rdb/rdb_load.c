/* See rdb_load.h. */
#include "server/rdb/rdb_load.h"

#include <stdarg.h>
#include <stdio.h>

#include "server/rdb/rdb_state.h"
#include "skiplist/keyspace/registry_hash.h"

void rdb_load_init(struct rdb_load *load, struct registry *registry, uint64_t seed,
                   int64_t now_us) {
    *load = (struct rdb_load){.registry = registry, .now_us = now_us, .latest_us = now_us};
    rdb_reader_init(&load->reader);
    rdb_value_init(&load->value, seed);
}

static void rdb_load_drop_board(struct rdb_load *load) {
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

static struct bytes rdb_load_name_of(const struct rdb_load *load) {
    return (struct bytes){.at = load->reader.name.at, .size = load->reader.name.size};
}

__attribute__((format(printf, 2, 3))) static bool rdb_load_fail_key(struct rdb_load *load,
                                                                    const char *format, ...) {
    char what[RDB_LOAD_ERROR_MAX - 120];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    return rdb_load_fail(load, "key '%s' of database %llu: %s",
                         bytes_show(rdb_load_name_of(load)).text,
                         (unsigned long long)load->reader.database, what);
}

/* why: of RDB_VALUE_REFUSED. */
static bool rdb_load_check(struct rdb_load *load, enum rdb_value_status status, const char *why) {
    switch (status) {
    case RDB_VALUE_OK:
        return true;
    case RDB_VALUE_OUT_OF_MEMORY:
        return rdb_load_fail(load, "out of memory");
    case RDB_VALUE_REFUSED:
        return rdb_load_fail_key(load, "%s", why);
    case RDB_VALUE_DAMAGED:
        break;
    }
    return rdb_load_fail_key(load,
                             "a member or field is there twice, or has 0 or more than %d bytes",
                             (int)BOARD_MEMBER_MAX);
}

/* ---- keys ---- */

static void rdb_load_note_skipped(struct rdb_load *load) {
    struct rdb_skipped *skipped = &load->skipped[load->reader.type];
    if (skipped->count < RDB_LOAD_NAMES) {
        skipped->names[skipped->count] = bytes_show(rdb_load_name_of(load));
    }
    skipped->count++;
}

static bool rdb_load_begin_module_board(struct rdb_load *load) {
    const struct rdb_board *board = load->reader.board;
    if (!registry_create_board_like(load->registry, &board->rules, &load->board)) {
        return rdb_load_fail(load, "out of memory");
    }
    load->has_board = true;
    load->latest_us = board->time_us > load->latest_us ? board->time_us : load->latest_us;
    rdb_value_begin_keys(&load->value, board_layout(&load->board));
    return true;
}

static bool rdb_load_begin_board(struct rdb_load *load) {
    char why[RDB_VALUE_ERROR_MAX];
    if (!registry_create_board(load->registry, rdb_load_name_of(load), load->now_us / 1000,
                               &load->board)) {
        return rdb_load_fail(load, "out of memory");
    }
    load->has_board = true;
    return rdb_load_check(
        load, rdb_value_begin_board(&load->value, board_layout(&load->board), load->now_us, why),
        why);
}

static bool rdb_load_begin_key(struct rdb_load *load) {
    const struct rdb_reader *reader = &load->reader;
    if (reader->kind == RDB_OTHER) {
        rdb_load_note_skipped(load);
        return true;
    }
    if (reader->database >= REGISTRY_DATABASES) {
        return rdb_load_fail_key(load, "there are %d databases here, from 0 on",
                                 (int)REGISTRY_DATABASES);
    }
    if (reader->name.size == 0 || reader->name.size > REGISTRY_KEY_MAX) {
        return rdb_load_fail_key(load, "a key has 1 to %d bytes here", (int)REGISTRY_KEY_MAX);
    }
    if (reader->kind == RDB_HASH) {
        rdb_value_begin_hash(&load->value);
        return true;
    }
    return reader->kind == RDB_BOARD ? rdb_load_begin_module_board(load)
                                     : rdb_load_begin_board(load);
}

static bool rdb_load_take_entries(struct rdb_load *load) {
    uint32_t count;
    const struct board_entry *entries = rdb_board_entries(load->reader.board, &count);
    bool is_fine = true;
    for (uint32_t i = 0; i < count && is_fine; i++) {
        is_fine = rdb_load_check(
            load, rdb_value_put_key(&load->value, entries[i].member, entries[i].key), NULL);
    }
    return is_fine;
}

static bool rdb_load_take_entry(struct rdb_load *load) {
    const struct rdb_reader *reader = &load->reader;
    char why[RDB_VALUE_ERROR_MAX];
    if (reader->kind == RDB_HASH) {
        if (reader->field_expire_at_ms != RDB_NO_EXPIRY &&
            reader->field_expire_at_ms <= load->now_us / 1000) {
            load->expired_field_count++;
            return true;
        }
        load->field_count++;
        return rdb_load_check(load, rdb_value_put_field(&load->value, reader->text, reader->value),
                              NULL);
    }
    enum rdb_value_status status =
        rdb_value_put_score(&load->value, reader->text, reader->score, why);
    if (status == RDB_VALUE_REFUSED) {
        return rdb_load_fail_key(load, "member '%s': %s", bytes_show(reader->text).text, why);
    }
    return rdb_load_check(load, status, NULL);
}

static bool rdb_load_check_put(struct rdb_load *load, enum registry_status status) {
    return status == REGISTRY_OK || rdb_load_fail(load, "out of memory");
}

static bool rdb_load_put_board(struct rdb_load *load, int64_t expire_at_ms) {
    const struct rules *rules = rules_of(board_layout(&load->board));
    uint32_t count = load->value.count;
    bool is_exact = load->reader.kind == RDB_BOARD;
    if (!is_exact && rules->limit > 0 && count > rules->limit) {
        return rdb_load_fail_key(load, "%u members, and the board's LIMIT is %u", (unsigned)count,
                                 (unsigned)rules->limit);
    }
    if (!rdb_load_check(load,
                        rdb_value_end_board(&load->value, &load->board, is_exact ? 0 : rules->cap),
                        NULL)) {
        return false;
    }
    if (!registry_may_put(load->registry, (uint32_t)load->reader.database, rdb_load_name_of(load),
                          rules)) {
        return rdb_load_fail_key(load, "it is there twice");
    }
    uint32_t kept = board_count(&load->board);
    if (!rdb_load_check_put(
            load, registry_put_loaded(load->registry, (uint32_t)load->reader.database,
                                      rdb_load_name_of(load), &load->board, expire_at_ms))) {
        return false;
    }
    load->has_board = false;
    load->board_count++;
    load->module_board_count += is_exact;
    load->member_count += kept;
    load->cut_count += count - kept;
    return true;
}

static bool rdb_load_put_hash(struct rdb_load *load, int64_t expire_at_ms) {
    if (!registry_may_put(load->registry, (uint32_t)load->reader.database, rdb_load_name_of(load),
                          NULL)) {
        return rdb_load_fail_key(load, "it is there twice");
    }
    load->hash_count++;
    return rdb_load_check_put(load,
                              registry_put_hash(load->registry, (uint32_t)load->reader.database,
                                                rdb_load_name_of(load), &load->value.hash,
                                                expire_at_ms, false, load->now_us / 1000));
}

static bool rdb_load_end_key(struct rdb_load *load) {
    int64_t expire_at_ms = load->reader.expire_at_ms;
    if (load->reader.kind == RDB_OTHER) {
        return true;
    }
    bool is_hash = load->reader.kind == RDB_HASH;
    if (is_hash && !rdb_load_check(load, rdb_value_end_hash(&load->value), NULL)) {
        return false;
    }
    bool is_lasting = load->reader.kind == RDB_BOARD && load->reader.board->rules.is_created;
    bool is_empty =
        is_hash ? hash_count(&load->value.hash) == 0 : load->value.count == 0 && !is_lasting;
    bool is_expired = expire_at_ms != RDB_NO_EXPIRY && expire_at_ms <= load->now_us / 1000;
    load->empty_count += is_empty;
    load->expired_count += is_expired && !is_empty;
    if (is_empty || is_expired) {
        rdb_load_drop_board(load);
        return true;
    }
    return is_hash ? rdb_load_put_hash(load, expire_at_ms) : rdb_load_put_board(load, expire_at_ms);
}

/* ---- beside the keys ---- */

static bool rdb_load_take_state(struct rdb_load *load) {
    char why[RDB_STATE_ERROR_MAX];
    struct bytes chunk;
    int64_t time_us;
    if (load->decoder == NULL) {
        load->decoder = memory_allocate(sizeof *load->decoder);
        if (load->decoder == NULL) {
            return rdb_load_fail(load, "out of memory");
        }
    }
    if (!rdb_state_check(load->decoder, load->reader.text, RDB_STATE_WHOLE, REGISTRY_DATABASES,
                         &time_us, &chunk, why)) {
        return rdb_load_fail(load, "the bans before offset %llu: %s",
                             (unsigned long long)load->reader.offset, why);
    }
    load->latest_us = time_us > load->latest_us ? time_us : load->latest_us;
    return rdb_state_apply(load->registry, load->decoder, chunk) == EFFECT_OK ||
           rdb_load_fail(load, "out of memory");
}

/* Bans that are over go; no other key is due. */
static enum rdb_load_status rdb_load_end_file(struct rdb_load *load) {
    (void)registry_expire_due(load->registry, load->now_us / 1000, UINT32_MAX);
    load->ban_count = registry_count(load->registry, RDB_STATE_BANS);
    return RDB_LOAD_DONE;
}

enum rdb_load_status rdb_load_feed(struct rdb_load *load, struct bytes piece) {
    bool is_fine = true;
    rdb_reader_feed(&load->reader, piece);
    while (is_fine) {
        switch (rdb_reader_next(&load->reader)) {
        case RDB_BAD:
            is_fine = rdb_load_fail(load, "%s", load->reader.error);
            break;
        case RDB_OUT_OF_MEMORY:
            is_fine = rdb_load_fail(load, "out of memory");
            break;
        case RDB_MORE:
            return RDB_LOAD_MORE;
        case RDB_END:
            return rdb_load_end_file(load);
        case RDB_STATE:
            is_fine = rdb_load_take_state(load);
            break;
        case RDB_KEY:
            is_fine = rdb_load_begin_key(load);
            break;
        case RDB_ENTRY:
            is_fine = rdb_load_take_entry(load);
            break;
        case RDB_ENTRIES:
            is_fine = rdb_load_take_entries(load);
            break;
        case RDB_KEY_END:
            is_fine = rdb_load_end_key(load);
            break;
        }
    }
    return RDB_LOAD_FAILED;
}
