/* DUMP and RESTORE: a key as bytes.
 *
 *     hash    as Redis writes it: redis-server takes it, and ours takes that of redis-server
 *     board   effects (server/durability/effect_bytes.h), one chunk: OPEN, PIECE ..., CLOSE. So a copy is
 *             equal to the last bit: options, keys, order, times
 *     both    2 bytes version, CRC-64 of all before it (8 bytes). A board's version is beyond all of
 *             Redis, whose RESTORE refuses it as such
 *
 * RESTORE takes the sorted sets of Redis, too (server/rdb/rdb_value.h), and what DUMP of a Redis with the
 * module replies for a board (server/rdb/rdb_board.h), which is one of ours. Such a board, and one of
 * ours, replaces what has its name, as the commands that store do: a board made by LB.CREATE keeps its
 * layout and options. Otherwise a sorted set gets those that the settings have for its name, a board of
 * ours those that it had. The value is built apart, so an error changes nothing. */
#include "server/acl/acl_check.h"
#include "server/commands/guarding.h"
#include "server/commands/lb/lb.h"
#include "server/commands/writing.h"
#include "server/dispatch/syntax.h"
#include "server/durability/effect_bytes.h"
#include "server/durability/file_format.h"
#include "server/rdb/rdb.h"
#include "server/rdb/rdb_bytes.h"
#include "server/rdb/rdb_reader.h"
#include "server/rdb/rdb_value.h"

enum {
    BOARD_VERSION = 'B' << 8,        /* the lower byte: FILE_FORMAT */
    BOARD_VERSION_BEFORE = 'L' << 8, /* of builds before 1.0 */
    HASH_VERSION = 9,                /* Redis 5 takes it, and all later ones */
    TYPE_HASH = 4,
    SHOWN_MAX = 64,
};

/* ---- DUMP ---- */

/* false: no memory. */
static bool restore_dump_board(struct buffer *out, const struct registry_key *key) {
    struct effect_encoder *encoder = memory_allocate(sizeof *encoder);
    if (encoder == NULL) {
        return false;
    }
    effect_bytes_encode_begin(encoder, out);
    effect_bytes_encode_open(encoder, key, REGISTRY_NO_EXPIRY);
    uint32_t rank = 0;
    while (effect_bytes_encode_next_piece(encoder, &key->board, &rank)) {
        continue;
    }
    for (uint32_t i = 0; effect_bytes_encode_next_note(encoder, key, &i);) {
        continue;
    }
    effect_bytes_encode_close(encoder);
    memory_free(encoder);
    rdb_write_footer(out, BOARD_VERSION | FILE_FORMAT);
    return true;
}

static void dump_run(struct call *call) {
    const struct registry_key *key = call_find_key(call, call_arg(call, 1));
    if (key == NULL) {
        reply_null(call->reply);
        return;
    }
    if (call->server->is_embedded && key->kind != REGISTRY_BOARD) {
        (void)call_refuse_kind(call);
        return;
    }
    if (key->kind == REGISTRY_BOARD && registry_options(key)->has_hold &&
        guarding_held_count(key) > 0 && !lb_held_may_list(call, registry_name(key))) {
        (void)call_refuse(call, "NOPERM DUMP of a board that holds results needs the right to "
                                "LB.HELD, and no player's token");
        return;
    }
    struct buffer out;
    buffer_init(&out, 0);
    bool is_done = true;
    if (key->kind == REGISTRY_HASH) {
        struct hash_cursor cursor = hash_begin(registry_hash(key));
        struct hash_pair pair;
        buffer_append(&out, &(const char){TYPE_HASH}, 1);
        rdb_write_length(&out, hash_count(registry_hash(key)));
        while (hash_next(&cursor, &pair)) {
            rdb_write_text(&out, pair.field);
            rdb_write_text(&out, pair.value);
        }
        rdb_write_footer(&out, HASH_VERSION);
    } else {
        is_done = restore_dump_board(&out, key);
    }
    if (!is_done || out.is_broken) {
        (void)call_out_of_memory(call);
    } else {
        reply_bulk(call->reply, buffer_bytes(&out));
    }
    buffer_deinit(&out);
}

const struct command command_dump = {
    .name = "DUMP",
    .syntax = "key",
    .reply = "s?",
    .summary =
        "A key's value as bytes for RESTORE: a hash as Redis has it, a board with its layout, "
        "options and times, which this server restores, and the module with LB.RESTORE",
    .complexity = "O(n) in the members of the board or the fields of the hash",
    .flags = COMMAND_READ,
    .cost = COST(COMMAND_BY_MEMORY, cost_count_whole, 60, 0, "member, player's record or field",
                 "a backup, which holds up nobody"),
    .run = dump_run,
};

/* ---- RESTORE ---- */

struct restore {
    bool is_replacing, is_absolute;
    int64_t idle_s, frequency;
};

/* As in Redis: the first of the two makes the other one a syntax error. */
static bool restore_check_idle(const struct call *call, uint32_t index, void *target) {
    const struct restore *restore = target;
    (void)index;
    if (restore->frequency != -1) {
        return call_syntax_error(call);
    }
    return restore->idle_s >= 0 || call_refuse(call, "ERR Invalid IDLETIME value, must be >= 0");
}

static bool restore_check_frequency(const struct call *call, uint32_t index, void *target) {
    const struct restore *restore = target;
    (void)index;
    if (restore->idle_s != -1) {
        return call_syntax_error(call);
    }
    return (restore->frequency >= 0 && restore->frequency <= 255) ||
           call_refuse(call, "ERR Invalid FREQ value, must be >= 0 and <= 255");
}

static const struct binding restore_bindings[] = {
    {BIND("REPLACE", struct restore, is_replacing)},
    {BIND("ABSTTL", struct restore, is_absolute)},
    {BIND("IDLETIME", struct restore, idle_s), .read = restore_check_idle},
    {BIND("FREQ", struct restore, frequency), .read = restore_check_frequency},
    {0},
};

/* A key that is being restored. */
struct restoring {
    const struct call *call;
    struct bytes name;
    int64_t expire_at_ms;
    bool is_lasting;
    bool has_bans;
    const struct board_options *kept; /* of a board made by LB.CREATE; NULL: none */
    struct rdb_value value;
    struct board board;
    struct board_state state; /* of one of ours */
    bool has_board;           /* ours */
};

static bool restore_refuse_payload(const struct restoring *restoring) {
    return call_refuse(restoring->call, "ERR Bad data format");
}

static bool restore_check_value(const struct restoring *restoring, enum rdb_value_status status,
                                const char *why) {
    switch (status) {
    case RDB_VALUE_OK:
        return true;
    case RDB_VALUE_OUT_OF_MEMORY:
        return call_out_of_memory(restoring->call);
    case RDB_VALUE_REFUSED:
        return call_refuse_format(restoring->call, "ERR %s", why);
    case RDB_VALUE_TAGS_FULL:
    case RDB_VALUE_DAMAGED:
        break;
    }
    return restore_refuse_payload(restoring);
}

static bool restore_is_banned(const struct restoring *restoring, struct bytes member) {
    const struct call *call = restoring->call;
    return restoring->has_bans && ban_holds(call->registry, call->session->database,
                                            restoring->name, member, call->now_ms);
}

/* ---- in place ---- */

static void restore_put_in_place(struct restoring *restoring, bool is_hash) {
    const struct call *call = restoring->call;
    uint32_t database = call->session->database;
    bool is_new = notify_is_on(call->server, SETTING_EVENT_NEW) &&
                  call_find_key(call, restoring->name) == NULL;
    enum registry_status status =
        is_hash
            ? registry_put_hash(call->registry, database, restoring->name, &restoring->value.hash,
                                restoring->expire_at_ms, restoring->is_lasting, call->now_ms)
            : registry_put_board_until(call->registry, database, restoring->name, &restoring->board,
                                       &restoring->state, &restoring->value.notes,
                                       restoring->expire_at_ms, restoring->is_lasting,
                                       call->now_ms);
    if (status != REGISTRY_OK) {
        (void)call_out_of_memory(call);
        return;
    }
    restoring->has_board = false;
    if (is_new) {
        call_notify(restoring->call, SETTING_EVENT_NEW, "new", restoring->name);
    }
    call_notify(restoring->call, SETTING_EVENT_GENERIC, "restore", restoring->name);
    reply_ok(restoring->call->reply);
}

static void restore_put(struct restoring *restoring, bool is_hash) {
    bool is_expired = restoring->expire_at_ms != REGISTRY_NO_EXPIRY &&
                      restoring->expire_at_ms <= restoring->call->now_ms;
    /* All members may be banned. */
    bool is_empty = !is_hash && board_count(&restoring->board) == 0 &&
                    hash_count(&restoring->value.notes) == 0 &&
                    !board_options_of(board_layout(&restoring->board))->is_created;
    if (is_expired || is_empty) {
        /* It would have expired already: nothing is put, and a key that is replaced is gone. */
        const struct call *call = restoring->call;
        struct registry_key *key = call_find_key(call, restoring->name);
        if (key != NULL) {
            registry_remove(call->registry, key);
            call_notify(call, SETTING_EVENT_GENERIC, "del", restoring->name);
        }
        reply_ok(call->reply);
    } else {
        restore_put_in_place(restoring, is_hash);
    }
}

/* ---- boards ---- */

/* options NULL: those that the settings have for the name. false: the error was replied. */
static bool restore_create_board(struct restoring *restoring, const struct board_options *options) {
    restoring->has_board =
        writing_create_board(restoring->call, options, 0, restoring->name, &restoring->board);
    return restoring->has_board;
}

/* is_ours: an exact copy, which may be frozen or full, unless the board that it replaces stays bound by
 * its own options. */
static void restore_end_board(struct restoring *restoring, bool is_ours) {
    uint32_t cap = board_options_of(board_layout(&restoring->board))->cap;
    bool is_bound = !is_ours || restoring->kept != NULL;
    if (is_bound &&
        writing_refuses_whole(restoring->call, &restoring->board, restoring->value.count)) {
        return;
    }
    if (restore_check_value(restoring,
                            rdb_value_end_board(&restoring->value, &restoring->board, cap), NULL)) {
        restore_put(restoring, false);
    }
}

/* One of ours: its layout and options come with it. */
static bool restore_open_board(struct restoring *restoring, const struct board_options *options,
                               const struct board_state *state) {
    const struct board_options *like = restoring->kept;
    struct board_options plain;
    if (restoring->has_board) {
        return restore_refuse_payload(restoring);
    }
    if (like != NULL && !layout_equal(&like->layout, &options->layout)) {
        return call_refuse(restoring->call, "ERR payload is of a board with another layout than "
                                            "LB.CREATE gave this one: DEL it first");
    }
    if (like != NULL && options->has_rating) {
        return call_refuse(restoring->call, "ERR payload is of a board with RATING: DEL the board "
                                            "that is there first");
    }
    board_options_without_window(options, &plain);
    if (like == NULL && plain.period.unit != PERIOD_NONE &&
        !writing_may_use_archives(restoring->call, restoring->name, ACL_WRITE)) {
        return false;
    }
    if (!restore_create_board(restoring, like != NULL ? like : &plain)) {
        return false;
    }
    restoring->state =
        board_options_keep_state(board_options_of(board_layout(&restoring->board)), state);
    rdb_value_begin_keys(&restoring->value, board_layout(&restoring->board));
    return true;
}

/* values: NULL, or those of the entries' tags. */
static bool restore_take_entries(struct restoring *restoring, const struct board_entry *entries,
                                 const struct bytes *values, uint32_t count) {
    if (!restoring->has_board) {
        return restore_refuse_payload(restoring);
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct board_entry *entry = &entries[i];
        if (restore_is_banned(restoring, entry->member)) {
            continue;
        }
        enum rdb_value_status status =
            rdb_value_put_key(&restoring->value, entry, values != NULL ? &values[i] : NULL);
        if (!restore_check_value(restoring, status, NULL)) {
            return false;
        }
    }
    return true;
}

/* A record of a player. One who is banned keeps it, as where LB.BAN takes a player off the board. false: the error was
 * replied. */
static bool restore_take_note(struct restoring *restoring, struct bytes member, struct bytes note) {
    if (!restoring->has_board ||
        !board_options_have_notes(board_options_of(board_layout(&restoring->board))) ||
        note.size == 0 || member.size == 0 || member.size > BOARD_MEMBER_MAX) {
        return restore_refuse_payload(restoring);
    }
    /* AUTO approves it for nobody, so its HSET may name any hash. */
    if (guarding_held_names_hash(member, note) &&
        !acl_check_pattern(restoring->call, BYTES("*"), true, ACL_WRITE)) {
        return false;
    }
    return restore_check_value(restoring, rdb_value_put_note(&restoring->value, member, note),
                               NULL);
}

/* ---- values of Redis ---- */

static bool restore_begin_value(struct restoring *restoring, const struct rdb_reader *reader) {
    char why[RDB_VALUE_ERROR_MAX];
    switch (reader->kind) {
    case RDB_ZSET:
        return restore_create_board(restoring, restoring->kept) &&
               restore_check_value(restoring,
                                   rdb_value_begin_board(&restoring->value,
                                                         board_layout(&restoring->board),
                                                         restoring->call->now_us, why),
                                   why);
    case RDB_HASH:
        if (restoring->call->server->is_embedded) {
            return call_refuse(restoring->call, "ERR payload is of a hash, not of a board: "
                                                "RESTORE, without LB., makes it a key again");
        }
        rdb_value_begin_hash(&restoring->value);
        return true;
    case RDB_BOARD:
        return restore_open_board(restoring, &reader->board->options, &reader->board->state);
    case RDB_OTHER:
        break;
    }
    return call_refuse_format(restoring->call,
                              "ERR no %s here: see docs/reference/differences-from-redis.md",
                              rdb_reader_type_name(reader->type));
}

static bool restore_take_entry(struct restoring *restoring, const struct rdb_reader *reader) {
    char why[RDB_VALUE_ERROR_MAX];
    if (reader->kind == RDB_HASH) {
        if (reader->field_expire_at_ms != RDB_NO_EXPIRY) {
            return call_refuse_format(
                restoring->call,
                "ERR field '%s' has an expiry, and only whole keys expire here: HPERSIST it first",
                bytes_show(reader->text).text);
        }
        return restore_check_value(
            restoring, rdb_value_put_field(&restoring->value, reader->text, reader->value), NULL);
    }
    if (restore_is_banned(restoring, reader->text)) {
        return true;
    }
    enum rdb_value_status status =
        rdb_value_put_score(&restoring->value, reader->text, reader->score, why);
    if (status == RDB_VALUE_REFUSED && restoring->kept == NULL) {
        const struct call *call = restoring->call;
        status = rdb_value_choose(&restoring->value, call->registry, restoring->name, reader->score,
                                  call->now_us, &restoring->board, why);
        status = status == RDB_VALUE_OK
                     ? rdb_value_put_score(&restoring->value, reader->text, reader->score, why)
                     : status;
    }
    return status == RDB_VALUE_REFUSED ? call_refuse_format(restoring->call, "ERR member '%s': %s",
                                                            bytes_show(reader->text).text, why)
                                       : restore_check_value(restoring, status, NULL);
}

/* false: the error was replied. */
static bool restore_read_value(struct restoring *restoring, struct rdb_reader *reader) {
    uint64_t entry_count = 0;
    for (;;) {
        switch (rdb_reader_next(reader)) {
        case RDB_OUT_OF_MEMORY:
            return call_out_of_memory(restoring->call);
        case RDB_BAD:
            return reader->board != NULL && reader->board->error != NULL
                       ? call_refuse_format(restoring->call, "ERR Bad data format: %s",
                                            reader->board->error)
                       : restore_refuse_payload(restoring);
        case RDB_MORE:
            return restore_refuse_payload(restoring);
        case RDB_KEY:
            if (!restore_begin_value(restoring, reader)) {
                return false;
            }
            break;
        case RDB_ENTRY:
            entry_count++;
            if (!restore_take_entry(restoring, reader)) {
                return false;
            }
            break;
        case RDB_ENTRIES: {
            uint32_t count;
            const struct board_entry *entries = rdb_board_entries(reader->board, &count);
            if (!restore_take_entries(restoring, entries, rdb_board_values(reader->board), count)) {
                return false;
            }
            break;
        }
        case RDB_NOTE:
            if (!restore_take_note(restoring, reader->text, reader->value)) {
                return false;
            }
            break;
        case RDB_STATE: /* not of a value */
        case RDB_KEY_END:
            break;
        case RDB_END:
            return ((entry_count > 0 || reader->kind == RDB_BOARD) &&
                    rdb_reader_left(reader) == 0) ||
                   restore_refuse_payload(restoring);
        }
    }
}

static void restore_value(struct restoring *restoring, struct bytes body, uint32_t version) {
    struct rdb_reader *reader = memory_allocate(sizeof *reader);
    if (reader == NULL) {
        (void)call_out_of_memory(restoring->call);
        return;
    }
    rdb_reader_init_value(reader, version);
    rdb_reader_feed(reader, body);
    if (restore_read_value(restoring, reader)) {
        if (reader->kind == RDB_ZSET || reader->kind == RDB_BOARD) {
            restore_end_board(restoring, reader->kind == RDB_BOARD);
        } else if (restore_check_value(restoring, rdb_value_end_hash(&restoring->value), NULL)) {
            restore_put(restoring, true);
        }
    }
    rdb_reader_deinit(reader);
    memory_free(reader);
}

/* ---- boards of ours ---- */

static bool restore_read_board(struct restoring *restoring, struct effect_decoder *decoder) {
    bool is_closed = false;
    for (;;) {
        enum effect_record record = effect_bytes_decode(decoder);
        if (decoder->missing_zone != NULL) {
            return call_refuse(restoring->call, "ERR payload is of a board with a PERIOD in a time "
                                                "zone that this machine does not know");
        }
        if (is_closed && record != EFFECT_RECORD_END) {
            return restore_refuse_payload(restoring);
        }
        switch (record) {
        case EFFECT_RECORD_OPEN:
            if (!restore_open_board(restoring, decoder->effect.options, &decoder->state)) {
                return false;
            }
            break;
        case EFFECT_RECORD_ENTRIES:
            if (!restore_take_entries(restoring, decoder->entries,
                                      decoder->has_values ? decoder->entry_values : NULL,
                                      decoder->entry_count)) {
                return false;
            }
            break;
        case EFFECT_RECORD_CLOSE:
            is_closed = restoring->has_board;
            break;
        case EFFECT_RECORD_END:
            return is_closed || restore_refuse_payload(restoring);
        case EFFECT_RECORD_EFFECT:
            if (decoder->effect.kind != EFFECT_NOTE) {
                return restore_refuse_payload(restoring);
            }
            if (!restore_take_note(restoring, decoder->effect.member, decoder->effect.value)) {
                return false;
            }
            break;
        case EFFECT_RECORD_BAD:
            return restore_refuse_payload(restoring);
        }
    }
}

/* ---- the command ---- */

static bool restore_is_ours(uint32_t version) {
    return (version & 0xff00) == BOARD_VERSION && file_format_is_read(version & 0xff);
}

static bool restore_check_payload(const struct call *call, struct rdb_payload *payload) {
    if (!rdb_bytes_open_payload(call_arg(call, 3), payload) || !payload->is_checked) {
        return call_refuse(call, "ERR DUMP payload version or checksum are wrong");
    }
    if (rdb_knows_version(payload->version) || restore_is_ours(payload->version)) {
        return true;
    }
    uint32_t kind = payload->version & 0xff00;
    if (kind == BOARD_VERSION || kind == BOARD_VERSION_BEFORE) {
        return call_refuse_format(
            call, "ERR Bad data format: a board in format %u%s, and this version reads format %d",
            payload->version & 0xff, kind == BOARD_VERSION ? "" : " of a version before 1.0",
            (int)FILE_FORMAT);
    }
    return call_refuse_format(call,
                              "ERR DUMP payload version or checksum are wrong: its RDB version is "
                              "%u, and %d of Redis and %d of Valkey are the newest known here",
                              payload->version, (int)RDB_VERSION_MAX, (int)RDB_VERSION_VALKEY_MAX);
}

static bool restore_read_expiry(const struct call *call, const struct restore *restore,
                                struct restoring *restoring) {
    int64_t ttl_ms;
    if (!call_parse_integer(call, call_arg(call, 2), &ttl_ms)) {
        return false;
    }
    if (ttl_ms < 0) {
        return call_refuse(call, "ERR Invalid TTL value, must be >= 0");
    }
    restoring->expire_at_ms = ttl_ms;
    restoring->is_lasting = !restore->is_absolute;
    if (ttl_ms == 0) {
        restoring->expire_at_ms = REGISTRY_NO_EXPIRY;
        restoring->is_lasting = false;
    } else if (!restore->is_absolute &&
               __builtin_add_overflow(ttl_ms, call->now_ms, &restoring->expire_at_ms)) {
        return call_refuse(call, "ERR invalid expire time in 'restore' command");
    }
    return true;
}

static void restore_run(struct call *call) {
    struct restore restore = {.idle_s = -1, .frequency = -1};
    struct restoring restoring = {.call = call, .name = call_arg(call, 1)};
    struct rdb_payload payload;
    if (!syntax_read(call, &restore) || !call_check_key(call, restoring.name)) {
        return;
    }
    if (!restore.is_replacing && call_find_key(call, restoring.name) != NULL) {
        reply_error(call->reply, "BUSYKEY Target key name already exists.");
        return;
    }
    if (!restore_read_expiry(call, &restore, &restoring) ||
        !restore_check_payload(call, &payload) ||
        !writing_may_replace(call, restoring.name, &restoring.kept)) {
        return;
    }
    restoring.has_bans = ban_exists(call->registry);
    rdb_value_init(&restoring.value, call->server->hash_seed);
    if (restore_is_ours(payload.version)) {
        struct effect_decoder *decoder = memory_allocate(sizeof *decoder);
        if (decoder == NULL) {
            (void)call_out_of_memory(call);
        } else {
            effect_bytes_decode_begin(decoder, payload.value);
            if (restore_read_board(&restoring, decoder)) {
                restore_end_board(&restoring, true);
            }
        }
        memory_free(decoder);
    } else {
        restore_value(&restoring, payload.value, payload.version);
    }
    if (restoring.has_board) {
        registry_discard_board(call->registry, &restoring.board);
    }
    rdb_value_deinit(&restoring.value);
}

/* From the payload's size: it is not read twice. */
static uint64_t restore_count_restored(const struct cost_view *view) {
    enum { BYTES_PER_MEMBER = 16 };
    const struct call *call = view->call;
    return call->request->count > 3 ? call_arg(call, 3).size / BYTES_PER_MEMBER : 0;
}

const struct command command_restore = {
    .name = "RESTORE",
    .syntax = "key ttl:integer serialized-value [REPLACE] [ABSTTL] [IDLETIME seconds:integer] "
              "[FREQ frequency:integer]",
    .bindings = restore_bindings,
    .reply = "<OK>",
    .summary = "Makes a key of what DUMP replied here, or Redis's DUMP of a sorted set, a hash or "
               "a board of the module",
    .complexity = "O(n) in the members of the board or the fields of the hash, O(n log n) if they "
                  "are not in order",
    .flags = COMMAND_WRITE | COMMAND_DENYOOM,
    .key_access = "OW update",
    .cost = COST(COMMAND_BY_PRODUCT, restore_count_restored, 200, 1, "16 bytes of the value",
                 "an import of a dump file, before a start"),
    .run = restore_run,
};
