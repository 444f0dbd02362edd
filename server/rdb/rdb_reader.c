/* Keys, their values, and what is beside them. See rdb_reader.h. Every step either finds all of its bytes, or leaves
 * everything as it was and asks for more. */
#include "server/rdb/rdb_reader_parts.h"

#include <math.h>
#include <stdlib.h>

#include "codec/little.h"
#include "codec/memory.h"
#include "server/rdb/rdb_crc.h"
#include "server/rdb/rdb_state.h"

enum {
    HEAD_SIZE = 9,
    CHECKSUM_SIZE = 8,
    CHECKSUM_SINCE = 5, /* version */
    SCORE_TEXT_MAX = 255,
};

enum opcode {
    OPCODE_KEY_METADATA =
        243, /* of modules of Redis 8.6; in Valkey 9: slots that are being imported */
    OPCODE_SLOT_INFO = 244,
    OPCODE_FUNCTION = 245,
    OPCODE_MODULE_AUX = 247,
    OPCODE_IDLE = 248,
    OPCODE_FREQUENCY = 249,
    OPCODE_AUX = 250,
    OPCODE_RESIZE = 251,
    OPCODE_EXPIRY_MS = 252,
    OPCODE_EXPIRY_S = 253,
    OPCODE_DATABASE = 254,
    OPCODE_END = 255,
};

/* How entries are stored. */
enum entries {
    ENTRIES_NONE,
    ENTRIES_TEXT_SCORE,   /* string, score as text */
    ENTRIES_DOUBLE,       /* string, double */
    ENTRIES_PAIRS,        /* string, string */
    ENTRIES_TTL_PAIRS,    /* length, string, string */
    ENTRIES_PAIRS_EXPIRY, /* string, string, 8 bytes */
    ENTRIES_PACKED,       /* a string */
    ENTRIES_PACKED_TTL,   /* the same, every third element an expiry */
};

enum { TYPE_MODULE = 7, TYPE_VALKEY_HASH = 22 };

static const struct type {
    const char *name;
    enum rdb_kind kind;
    enum entries entries;
    enum rdb_packed_form form;
    unsigned head;      /* bytes before the entries */
    const char *passed; /* its form; NULL: it is read, or refused */
} types[RDB_TYPES] = {
    [0] = {"strings", RDB_OTHER, .passed = "s"},
    [1] = {"lists", RDB_OTHER, .passed = "*(s)"},
    [2] = {"sets", RDB_OTHER, .passed = "*(s)"},
    [3] = {"sorted sets", RDB_ZSET, ENTRIES_TEXT_SCORE, .passed = NULL},
    [4] = {"hashes", RDB_HASH, ENTRIES_PAIRS, .passed = NULL},
    [5] = {"sorted sets", RDB_ZSET, ENTRIES_DOUBLE, .passed = NULL},
    [TYPE_MODULE] = {"values of modules", RDB_OTHER, .passed = "lm"},
    [9] = {"hashes", RDB_HASH, ENTRIES_PACKED, RDB_ZIPMAP, .passed = NULL},
    [10] = {"lists", RDB_OTHER, .passed = "s"},
    [11] = {"sets", RDB_OTHER, .passed = "s"},
    [12] = {"sorted sets", RDB_ZSET, ENTRIES_PACKED, RDB_ZIPLIST, .passed = NULL},
    [13] = {"hashes", RDB_HASH, ENTRIES_PACKED, RDB_ZIPLIST, .passed = NULL},
    [14] = {"lists", RDB_OTHER, .passed = "*(s)"},
    [15] = {"streams", RDB_OTHER, .passed = "*(ss)lll*(sll*(68l)*(s8*(6)))"},
    [16] = {"hashes", RDB_HASH, ENTRIES_PACKED, RDB_LISTPACK, .passed = NULL},
    [17] = {"sorted sets", RDB_ZSET, ENTRIES_PACKED, RDB_LISTPACK, .passed = NULL},
    [18] = {"lists", RDB_OTHER, .passed = "*(ls)"},
    [19] = {"streams", RDB_OTHER, .passed = "*(ss)llllllll*(slll*(68l)*(s8*(6)))"},
    [20] = {"sets", RDB_OTHER, .passed = "s"},
    [21] = {"streams", RDB_OTHER, .passed = "*(ss)llllllll*(slll*(68l)*(s88*(6)))"},
    [22] = {"hashes", RDB_HASH, ENTRIES_TTL_PAIRS, .passed = NULL},
    [23] = {"hashes", RDB_HASH, ENTRIES_PACKED_TTL, RDB_LISTPACK, .passed = NULL},
    [24] = {"hashes", RDB_HASH, ENTRIES_TTL_PAIRS, .head = 8},
    [25] = {"hashes", RDB_HASH, ENTRIES_PACKED_TTL, RDB_LISTPACK, .head = 8},
    [26] = {"streams", RDB_OTHER, .passed = "*(ss)llllllll*(slll*(68l)*(s88*(6)))ll*(s*(sll))ll"},
    [27] = {"streams", RDB_OTHER,
            .passed = "*(ss)llllllll*(slll*(68l)*(s88*(6))*(6))ll*(s*(sll))ll"},
};
/* Valkey 9 has this one in place of 22, and none above. */
static const struct type valkey_hash = {"hashes", RDB_HASH, ENTRIES_PAIRS_EXPIRY, .passed = NULL};

const char *rdb_type_name(unsigned type) {
    return type < RDB_TYPES && types[type].name != NULL ? types[type].name : "unknown";
}

bool rdb_type_is_set(unsigned type) {
    return strcmp(rdb_type_name(type), "sets") == 0;
}

/* NULL: it can be neither read nor passed over. */
static const struct type *rdb_reader_find_type(const struct rdb_reader *reader, unsigned number) {
    if (reader->is_valkey && number >= TYPE_VALKEY_HASH) {
        return number == TYPE_VALKEY_HASH ? &valkey_hash : NULL;
    }
    return number < RDB_TYPES && types[number].name != NULL ? &types[number] : NULL;
}

static const struct type *rdb_reader_type_of(const struct rdb_reader *reader) {
    return rdb_reader_find_type(reader, reader->type);
}

static void rdb_reader_add_to_crc(struct rdb_reader *reader) {
    if (reader->at > reader->crc_at) {
        reader->crc =
            rdb_crc(reader->crc, reader->input.at + reader->crc_at, reader->at - reader->crc_at);
        reader->crc_at = reader->at;
    }
}

/* ---- scores ---- */

static enum found rdb_reader_set_score(struct rdb_reader *reader, double score) {
    reader->score = score;
    return isnan(score) ? rdb_reader_refuse(reader, "a score that is not a number") : FOUND;
}

static enum found rdb_reader_parse_score(struct rdb_reader *reader, struct bytes text) {
    char copy[SCORE_TEXT_MAX + 1];
    int64_t integer;
    if (bytes_parse_i64(text, &integer)) {
        return rdb_reader_set_score(reader, (double)integer);
    }
    if (text.size == 0 || text.size > SCORE_TEXT_MAX) {
        return rdb_reader_refuse(reader, "a score that is not a number");
    }
    memcpy(copy, text.at, text.size);
    copy[text.size] = '\0';
    char *end;
    double score = strtod(copy, &end);
    bool is_number = end == copy + text.size &&
                     ((copy[0] >= '0' && copy[0] <= '9') || strchr("+-.iI", copy[0]) != NULL);
    return is_number ? rdb_reader_set_score(reader, score)
                     : rdb_reader_refuse(reader, "a score that is not a number");
}

/* ---- entries ---- */

static enum found rdb_reader_find_two_texts(struct rdb_reader *reader, size_t from,
                                            struct text *first, struct text *second, size_t *size) {
    enum found found = rdb_reader_find_whole_text(reader, from, first);
    if (found != FOUND) {
        return found;
    }
    size_t between = from + first->head + (size_t)first->stored;
    found = rdb_reader_find_whole_text(reader, between, second);
    *size = between + second->head + (size_t)second->stored;
    return found;
}

/* expiry: 0 is none, 1 the base. One that is out of range is as far away as can be. */
static void rdb_reader_note_field_expiry(struct rdb_reader *reader, uint64_t expiry) {
    uint64_t at = reader->expiry_base + expiry - 1;
    bool is_far = reader->expiry_base > INT64_MAX || expiry > INT64_MAX || at > INT64_MAX;
    reader->field_expire_at_ms = expiry == 0 ? RDB_NO_EXPIRY : is_far ? INT64_MAX : (int64_t)at;
    reader->field_expiry_count += expiry != 0;
}

static enum found rdb_reader_take_pair(struct rdb_reader *reader, enum entries entries) {
    struct text field;
    struct text value;
    size_t size;
    size_t from = 0;
    size_t behind = entries == ENTRIES_PAIRS_EXPIRY ? 8 : 0;
    uint64_t expiry = 0; /* 0: none */
    enum found found = FOUND;
    if (entries == ENTRIES_TTL_PAIRS) {
        found = rdb_reader_find_plain_length(reader, 0, &expiry, &from);
    }
    if (found == FOUND) {
        found = rdb_reader_find_two_texts(reader, from, &field, &value, &size);
    }
    if (found == FOUND && rdb_reader_available(reader) - size < behind) {
        found = FOUND_TOO_FEW;
    }
    if (found != FOUND) {
        return found;
    }
    if (behind > 0) {
        expiry = little_get_u64((const char *)rdb_reader_here(reader) + size) + 1; /* -1: none */
        reader->expiry_base = 0;
    }
    rdb_reader_note_field_expiry(reader, expiry);
    found = rdb_reader_take_text(reader, from, &field, &reader->text_room, reader->text_number,
                                 &reader->text);
    if (found == FOUND) {
        found = rdb_reader_take_text(reader, from + field.head + (size_t)field.stored, &value,
                                     &reader->value_room, reader->value_number, &reader->value);
    }
    if (found == FOUND) {
        rdb_reader_consume(reader, size + behind);
    }
    return found;
}

static enum found rdb_reader_take_double(struct rdb_reader *reader) {
    struct text member;
    enum found found = rdb_reader_find_whole_text(reader, 0, &member);
    if (found != FOUND) {
        return found;
    }
    size_t size = member.head + (size_t)member.stored;
    if (rdb_reader_available(reader) - size < sizeof(double)) {
        return FOUND_TOO_FEW;
    }
    uint64_t word = little_get_u64((const char *)rdb_reader_here(reader) + size);
    double score;
    memcpy(&score, &word, sizeof score);
    found = rdb_reader_take_text(reader, 0, &member, &reader->text_room, reader->text_number,
                                 &reader->text);
    if (found == FOUND && (found = rdb_reader_set_score(reader, score)) == FOUND) {
        rdb_reader_consume(reader, size + sizeof score);
    }
    return found;
}

static enum found rdb_reader_take_text_score(struct rdb_reader *reader) {
    enum { NAN_SIZE = 253, INFINITY_SIZE, MINUS_INFINITY_SIZE };
    struct text member;
    enum found found = rdb_reader_find_whole_text(reader, 0, &member);
    if (found != FOUND) {
        return found;
    }
    size_t size = member.head + (size_t)member.stored;
    if (rdb_reader_available(reader) - size < 1) {
        return FOUND_TOO_FEW;
    }
    unsigned told = rdb_reader_here(reader)[size++];
    size_t score_size = told < NAN_SIZE ? told : 0;
    if (rdb_reader_available(reader) - size < score_size) {
        return FOUND_TOO_FEW;
    }
    struct bytes text = {.at = (const char *)rdb_reader_here(reader) + size, .size = score_size};
    found = told == INFINITY_SIZE         ? rdb_reader_set_score(reader, INFINITY)
            : told == MINUS_INFINITY_SIZE ? rdb_reader_set_score(reader, -INFINITY)
                                          : rdb_reader_parse_score(reader, text);
    if (found == FOUND) {
        found = rdb_reader_take_text(reader, 0, &member, &reader->text_room, reader->text_number,
                                     &reader->text);
    }
    if (found == FOUND) {
        rdb_reader_consume(reader, size + score_size);
    }
    return found;
}

static enum found rdb_reader_take_entry(struct rdb_reader *reader) {
    enum entries entries = rdb_reader_type_of(reader)->entries;
    return entries == ENTRIES_DOUBLE       ? rdb_reader_take_double(reader)
           : entries == ENTRIES_TEXT_SCORE ? rdb_reader_take_text_score(reader)
                                           : rdb_reader_take_pair(reader, entries);
}

/* ---- packed values ---- */

static enum found rdb_reader_begin_packed(struct rdb_reader *reader, size_t from) {
    struct bytes bytes = {.at = NULL};
    enum found found = rdb_reader_take_string(reader, from, &bytes, &reader->packed_size);
    if (found != FOUND) {
        return found;
    }
    if (!rdb_packed_begin(&reader->packed, rdb_reader_type_of(reader)->form, bytes)) {
        return rdb_reader_refuse(reader, "damaged packed value");
    }
    reader->state = RDB_AT_PACKED;
    return FOUND;
}

/* FOUND_TOO_FEW: that was all. */
static enum found rdb_reader_take_packed(struct rdb_reader *reader) {
    bool has_expiries = rdb_reader_type_of(reader)->entries == ENTRIES_PACKED_TTL;
    char room[BYTES_INTEGER_TEXT_MAX];
    struct bytes expiry;
    switch (rdb_packed_next(&reader->packed, reader->text_number, &reader->text)) {
    case RDB_PACKED_VALUE:
        break;
    case RDB_PACKED_END:
        return FOUND_TOO_FEW;
    case RDB_PACKED_BAD:
        return rdb_reader_refuse(reader, "damaged packed value");
    }
    if (rdb_packed_next(&reader->packed, reader->value_number, &reader->value) !=
            RDB_PACKED_VALUE ||
        (has_expiries && rdb_packed_next(&reader->packed, room, &expiry) != RDB_PACKED_VALUE)) {
        return rdb_reader_refuse(reader, "damaged packed value");
    }
    uint64_t expire_at_ms = 0;
    if (has_expiries && !bytes_parse_u64(expiry, &expire_at_ms)) {
        return rdb_reader_refuse(reader, "a field's expiry that is no time");
    }
    reader->expiry_base = 1;
    rdb_reader_note_field_expiry(reader, expire_at_ms);
    return reader->kind == RDB_ZSET ? rdb_reader_parse_score(reader, reader->value) : FOUND;
}

/* ---- boards of the module ---- */

enum module_opcode { MODULE_END = 0, MODULE_UNSIGNED = 2, MODULE_TEXT = 5 };
enum { TYPE_VERSION_MASK = 1023 }; /* of a type's number */

static enum found rdb_reader_refuse_damaged(struct rdb_reader *reader) {
    return rdb_reader_refuse(
        reader, reader->state >= RDB_AT_AUX && reader->state <= RDB_AT_STATE_END ? "damaged bans"
                                                                                 : "damaged board");
}

/* A number of a module's value, *from bytes ahead, and *from then behind it. */
static enum found rdb_reader_find_module_number(struct rdb_reader *reader, size_t *from,
                                                uint64_t *number) {
    uint64_t opcode = 0;
    size_t size = 0;
    enum found found = rdb_reader_find_plain_length(reader, *from, &opcode, &size);
    if (found == FOUND && opcode != MODULE_UNSIGNED) {
        return rdb_reader_refuse_damaged(reader);
    }
    *from += size;
    if (found == FOUND) {
        found = rdb_reader_find_plain_length(reader, *from, number, &size);
        *from += size;
    }
    return found;
}

/* from: behind the type's number. */
static enum found rdb_reader_begin_board(struct rdb_reader *reader, size_t from, uint64_t id) {
    enum { NUMBERS = 3 };
    uint64_t numbers[NUMBERS] = {0};
    for (unsigned i = 0; i < NUMBERS; i++) {
        enum found found = rdb_reader_find_module_number(reader, &from, &numbers[i]);
        if (found != FOUND) {
            return found;
        }
    }
    if (reader->board == NULL) {
        reader->board = memory_allocate(sizeof *reader->board);
        if (reader->board == NULL) {
            return rdb_reader_lack_memory(reader);
        }
    }
    if (!rdb_board_begin(reader->board, id & TYPE_VERSION_MASK, numbers[0], numbers[1],
                         numbers[2])) {
        return rdb_reader_refuse(reader, "%s", reader->board->error);
    }
    rdb_reader_consume(reader, from);
    reader->kind = RDB_BOARD;
    reader->state = RDB_AT_CHUNK;
    return FOUND;
}

/* FOUND in RDB_AT_CHUNK: a chunk is next; *is_over: nothing is. */
static enum found rdb_reader_begin_chunk(struct rdb_reader *reader, bool *is_over) {
    uint64_t opcode = 0;
    size_t from = 0;
    struct bytes chunk = {.at = NULL};
    *is_over = rdb_board_is_whole(reader->board);
    enum found found = rdb_reader_find_plain_length(reader, 0, &opcode, &from);
    if (found == FOUND && opcode != (*is_over ? MODULE_END : MODULE_TEXT)) {
        return rdb_reader_refuse(reader, "damaged board");
    }
    if (found == FOUND && *is_over) {
        rdb_reader_consume(reader, from);
        return FOUND;
    }
    if (found == FOUND) {
        found = rdb_reader_take_string(reader, from, &chunk, &reader->packed_size);
    }
    if (found == FOUND) {
        rdb_board_take(reader->board, chunk);
        reader->state = RDB_AT_RECORD;
    }
    return found;
}

static enum found rdb_reader_take_record(struct rdb_reader *reader, enum rdb_event *event) {
    switch (rdb_board_next(reader->board)) {
    case RDB_BOARD_OPENED:
        *event = RDB_KEY;
        return FOUND;
    case RDB_BOARD_ENTRIES:
        *event = RDB_ENTRIES;
        return FOUND;
    case RDB_BOARD_CHUNK_END:
        rdb_reader_consume(reader, reader->packed_size);
        reader->state = RDB_AT_CHUNK;
        return FOUND;
    case RDB_BOARD_BAD:
        break;
    }
    return rdb_reader_refuse(reader, "%s", reader->board->error);
}

/* ---- beside the keys ---- */

/* Ours, or something to be passed over. */
static enum found rdb_reader_begin_aux(struct rdb_reader *reader) {
    uint64_t id = 0;
    uint64_t when = 0; /* before the keys, or behind them */
    size_t from = 0;
    enum found found = rdb_reader_find_plain_length(reader, 0, &id, &from);
    if (found != FOUND) {
        return found;
    }
    if (!rdb_board_is_type(id)) {
        rdb_reader_consume(reader, from);
        rdb_reader_begin_passing(reader, "llm", false);
        return FOUND;
    }
    if ((id & TYPE_VERSION_MASK) != RDB_STATE_VERSION) {
        return rdb_reader_refuse(reader, "bans that a later version has written");
    }
    found = rdb_reader_find_module_number(reader, &from, &when);
    if (found == FOUND) {
        rdb_reader_consume(reader, from);
        reader->state = RDB_AT_STATE;
    }
    return found;
}

static enum found rdb_reader_take_state(struct rdb_reader *reader, enum rdb_event *event) {
    uint64_t opcode = 0;
    size_t from = 0;
    enum found found = rdb_reader_find_plain_length(reader, 0, &opcode, &from);
    if (found == FOUND && opcode != MODULE_TEXT) {
        return rdb_reader_refuse_damaged(reader);
    }
    if (found == FOUND) {
        found = rdb_reader_take_string(reader, from, &reader->text, &from);
    }
    if (found != FOUND) {
        return found;
    }
    rdb_reader_consume(reader, from);
    if (reader->text.size > 0) {
        *event = RDB_STATE;
    } else {
        reader->state = RDB_AT_STATE_END;
    }
    return FOUND;
}

static enum found rdb_reader_end_state(struct rdb_reader *reader) {
    uint64_t opcode = 0;
    size_t size = 0;
    enum found found = rdb_reader_find_plain_length(reader, 0, &opcode, &size);
    if (found == FOUND && opcode != MODULE_END) {
        return rdb_reader_refuse_damaged(reader);
    }
    if (found == FOUND) {
        rdb_reader_consume(reader, size);
        reader->state = RDB_AT_OPCODE;
    }
    return found;
}

/* ---- the file ---- */

static enum found rdb_reader_read_head(struct rdb_reader *reader) {
    const char *at = (const char *)rdb_reader_here(reader);
    if (rdb_reader_available(reader) < HEAD_SIZE) {
        size_t size = rdb_reader_available(reader) < 5 ? rdb_reader_available(reader) : 5;
        return size > 0 && memcmp(at, "REDIS", size) != 0 && memcmp(at, "VALKE", size) != 0
                   ? rdb_reader_refuse(
                         reader, "this is no RDB file: it begins with neither REDIS nor VALKEY")
                   : FOUND_TOO_FEW;
    }
    reader->is_valkey = memcmp(at, "VALKEY", 6) == 0;
    if (!reader->is_valkey && memcmp(at, "REDIS", 5) != 0) {
        return rdb_reader_refuse(reader,
                                 "this is no RDB file: it begins with neither REDIS nor VALKEY");
    }
    for (size_t i = reader->is_valkey ? 6 : 5; i < HEAD_SIZE; i++) {
        if (at[i] < '0' || at[i] > '9') {
            return rdb_reader_refuse(reader, "this is no RDB file: its version is no number");
        }
        reader->version = reader->version * 10 + (unsigned)(at[i] - '0');
    }
    if (!rdb_knows_version(reader->version) ||
        reader->is_valkey != (reader->version >= RDB_VERSION_VALKEY_MIN)) {
        return rdb_reader_refuse(reader,
                                 "unknown version %u of RDB (known: %d, and %d and %d of Valkey)",
                                 reader->version, (int)RDB_VERSION_MAX, (int)RDB_VERSION_VALKEY_MIN,
                                 (int)RDB_VERSION_VALKEY_MAX);
    }
    rdb_reader_consume(reader, HEAD_SIZE);
    reader->state = RDB_AT_OPCODE;
    return FOUND;
}

static enum found rdb_reader_read_database(struct rdb_reader *reader) {
    size_t size;
    enum found found = rdb_reader_find_plain_length(reader, 1, &reader->database, &size);
    if (found == FOUND) {
        rdb_reader_consume(reader, 1 + size);
    }
    return found;
}

static enum found rdb_reader_read_expiry(struct rdb_reader *reader, bool is_seconds) {
    size_t size = is_seconds ? 4 : 8;
    if (rdb_reader_available(reader) < 1 + size) {
        return FOUND_TOO_FEW;
    }
    const char *at = (const char *)rdb_reader_here(reader) + 1;
    if (is_seconds) {
        reader->expire_at_ms = (int64_t)(int32_t)little_get_u32(at) * 1000;
    } else {
        reader->expire_at_ms = (int64_t)little_get_u64(at);
    }
    rdb_reader_consume(reader, 1 + size);
    return FOUND;
}

static enum found rdb_reader_begin_opcode(struct rdb_reader *reader, const char *form) {
    rdb_reader_consume(reader, 1);
    rdb_reader_begin_passing(reader, form, false);
    return FOUND;
}

static enum found rdb_reader_begin_key(struct rdb_reader *reader, unsigned type) {
    reader->type = type;
    if (rdb_reader_type_of(reader) == NULL) {
        return rdb_reader_refuse(reader, "unknown type %u", type);
    }
    reader->kind = rdb_reader_type_of(reader)->kind;
    rdb_reader_consume(reader, 1);
    reader->state = RDB_AT_NAME;
    return FOUND;
}

static enum found rdb_reader_read_opcode(struct rdb_reader *reader) {
    if (rdb_reader_available(reader) == 0) {
        return FOUND_TOO_FEW;
    }
    unsigned opcode = rdb_reader_here(reader)[0];
    if (reader->is_single) {
        return rdb_reader_begin_key(reader, opcode);
    }
    switch (opcode) {
    case OPCODE_KEY_METADATA:
        return reader->is_valkey
                   ? rdb_reader_refuse(reader,
                                       "slots of a cluster are being imported: wait for their end")
                   : rdb_reader_begin_opcode(reader, "*(4m)");
    case OPCODE_SLOT_INFO:
        return rdb_reader_begin_opcode(reader, "lll");
    case OPCODE_FUNCTION:
        reader->function_count++;
        return rdb_reader_begin_opcode(reader, "s");
    case OPCODE_MODULE_AUX:
        rdb_reader_consume(reader, 1);
        reader->state = RDB_AT_AUX;
        return FOUND;
    case OPCODE_IDLE:
        return rdb_reader_begin_opcode(reader, "l");
    case OPCODE_FREQUENCY:
        return rdb_reader_begin_opcode(reader, "1");
    case OPCODE_AUX:
        return rdb_reader_begin_opcode(reader, "ss");
    case OPCODE_RESIZE:
        return rdb_reader_begin_opcode(reader, "ll");
    case OPCODE_EXPIRY_MS:
    case OPCODE_EXPIRY_S:
        return rdb_reader_read_expiry(reader, opcode == OPCODE_EXPIRY_S);
    case OPCODE_DATABASE:
        return rdb_reader_read_database(reader);
    case OPCODE_END:
        rdb_reader_consume(reader, 1);
        reader->state = RDB_AT_CHECKSUM;
        return FOUND;
    default:
        return opcode < RDB_TYPES ? rdb_reader_begin_key(reader, opcode)
                                  : rdb_reader_refuse(reader, "unknown opcode %u", opcode);
    }
}

static enum found rdb_reader_read_name(struct rdb_reader *reader) {
    struct bytes name = {.at = NULL};
    size_t size;
    buffer_clear(&reader->name);
    if (!reader->is_single) {
        enum found found = rdb_reader_take_string(reader, 0, &name, &size);
        if (found != FOUND) {
            return found;
        }
        buffer_append(&reader->name, name.at, name.size);
        if (reader->name.is_broken) {
            return rdb_reader_lack_memory(reader);
        }
        rdb_reader_consume(reader, size);
    }
    if (reader->type == TYPE_MODULE) {
        reader->state = RDB_AT_MODULE;
    } else if (reader->kind == RDB_OTHER) {
        rdb_reader_begin_passing(reader, rdb_reader_type_of(reader)->passed, true);
    } else {
        reader->state = RDB_AT_VALUE;
    }
    return FOUND;
}

/* A board, or something to be passed over. */
static enum found rdb_reader_read_module(struct rdb_reader *reader, enum rdb_event *event) {
    uint64_t id = 0;
    size_t size = 0;
    enum found found = rdb_reader_find_plain_length(reader, 0, &id, &size);
    if (found != FOUND) {
        return found;
    }
    if (rdb_board_is_type(id)) {
        return rdb_reader_begin_board(reader, size, id);
    }
    rdb_reader_begin_passing(reader, rdb_reader_type_of(reader)->passed, true);
    *event = RDB_KEY;
    return FOUND;
}

static enum found rdb_reader_read_value_head(struct rdb_reader *reader) {
    const struct type *type = rdb_reader_type_of(reader);
    size_t size;
    if (rdb_reader_available(reader) < type->head) {
        return FOUND_TOO_FEW;
    }
    reader->expiry_base =
        type->head > 0 ? little_get_u64((const char *)rdb_reader_here(reader)) : 1;
    if (type->entries >= ENTRIES_PACKED) {
        return rdb_reader_begin_packed(reader, type->head);
    }
    enum found found =
        rdb_reader_find_plain_length(reader, type->head, &reader->entries_left, &size);
    if (found == FOUND) {
        rdb_reader_consume(reader, type->head + size);
        reader->state = RDB_AT_ENTRY;
    }
    return found;
}

static enum found rdb_reader_read_checksum(struct rdb_reader *reader) {
    rdb_reader_add_to_crc(reader);
    if (reader->version >= CHECKSUM_SINCE) {
        if (rdb_reader_available(reader) < CHECKSUM_SIZE) {
            return FOUND_TOO_FEW;
        }
        uint64_t told = little_get_u64((const char *)rdb_reader_here(reader));
        if (told != 0 && told != reader->crc) { /* 0: rdbchecksum no */
            return rdb_reader_refuse(reader, "the checksum is wrong: the file is damaged");
        }
        rdb_reader_consume(reader, CHECKSUM_SIZE);
    }
    reader->crc_at = reader->input.size;
    reader->state = RDB_AT_END;
    return FOUND;
}

/* ---- events ---- */

static enum rdb_event rdb_reader_fail(const struct rdb_reader *reader) {
    return reader->is_out_of_memory ? RDB_OUT_OF_MEMORY : RDB_BAD;
}

static enum rdb_event rdb_reader_end_key(struct rdb_reader *reader) {
    reader->is_key_over = true;
    reader->state = reader->is_single ? RDB_AT_END : RDB_AT_OPCODE;
    return RDB_KEY_END;
}

/* Consume what is passed over unread. */
static bool rdb_reader_has_skipped(struct rdb_reader *reader) {
    size_t size = reader->skip < rdb_reader_available(reader) ? (size_t)reader->skip
                                                              : rdb_reader_available(reader);
    rdb_reader_consume(reader, size);
    reader->skip -= size;
    return reader->skip == 0;
}

/* One step. *event: set if it makes one. */
static enum found rdb_reader_step(struct rdb_reader *reader, enum rdb_event *event) {
    enum found found;
    bool is_over;
    switch (reader->state) {
    case RDB_AT_HEAD:
        return rdb_reader_read_head(reader);
    case RDB_AT_OPCODE:
        return rdb_reader_read_opcode(reader);
    case RDB_AT_NAME:
        found = rdb_reader_read_name(reader);
        if (found == FOUND && reader->state != RDB_AT_MODULE) {
            *event = RDB_KEY;
        }
        return found;
    case RDB_AT_MODULE:
        return rdb_reader_read_module(reader, event);
    case RDB_AT_CHUNK:
        found = rdb_reader_begin_chunk(reader, &is_over);
        if (found == FOUND && is_over) {
            *event = rdb_reader_end_key(reader);
        }
        return found;
    case RDB_AT_RECORD:
        return rdb_reader_take_record(reader, event);
    case RDB_AT_AUX:
        return rdb_reader_begin_aux(reader);
    case RDB_AT_STATE:
        return rdb_reader_take_state(reader, event);
    case RDB_AT_STATE_END:
        return rdb_reader_end_state(reader);
    case RDB_AT_VALUE:
        return rdb_reader_read_value_head(reader);
    case RDB_AT_ENTRY:
        if (reader->entries_left == 0) {
            *event = rdb_reader_end_key(reader);
            return FOUND;
        }
        found = rdb_reader_take_entry(reader);
        if (found == FOUND) {
            reader->entries_left--;
            *event = RDB_ENTRY;
        }
        return found;
    case RDB_AT_PACKED:
        found = rdb_reader_take_packed(reader);
        if (found == FOUND) {
            *event = RDB_ENTRY;
        } else if (found == FOUND_TOO_FEW) {
            rdb_reader_consume(reader, reader->packed_size);
            *event = rdb_reader_end_key(reader);
            found = FOUND;
        }
        return found;
    case RDB_AT_PASSED:
        found = rdb_reader_pass(reader);
        if (found == FOUND && reader->depth == 0 && reader->is_passing_key) {
            *event = rdb_reader_end_key(reader);
        } else if (found == FOUND && reader->depth == 0) {
            reader->state = RDB_AT_OPCODE;
        }
        return found;
    case RDB_AT_CHECKSUM:
        return rdb_reader_read_checksum(reader);
    case RDB_AT_END:
        *event = RDB_END;
        return FOUND;
    case RDB_AT_ERROR:
        break;
    }
    return FOUND_BAD;
}

enum rdb_event rdb_reader_next(struct rdb_reader *reader) {
    enum rdb_event event = RDB_MORE;
    if (reader->is_key_over) {
        reader->is_key_over = false;
        reader->expire_at_ms = RDB_NO_EXPIRY;
    }
    while (event == RDB_MORE) {
        if (reader->state != RDB_AT_ERROR && !rdb_reader_has_skipped(reader)) {
            return RDB_MORE;
        }
        switch (rdb_reader_step(reader, &event)) {
        case FOUND:
            break;
        case FOUND_TOO_FEW:
            return RDB_MORE;
        case FOUND_BAD:
            return rdb_reader_fail(reader);
        }
    }
    return event;
}

void rdb_reader_feed(struct rdb_reader *reader, struct bytes piece) {
    if (reader->state == RDB_AT_ERROR || piece.size == 0) {
        return;
    }
    CHECK(reader->state != RDB_AT_PACKED && reader->state != RDB_AT_RECORD);
    rdb_reader_add_to_crc(reader);
    buffer_drop_front(&reader->input, reader->at);
    reader->crc_at -= reader->at;
    reader->at = 0;
    buffer_append(&reader->input, piece.at, piece.size);
    if (reader->input.is_broken) {
        (void)rdb_reader_lack_memory(reader);
    }
}

struct bytes rdb_reader_rest(const struct rdb_reader *reader) {
    return (struct bytes){.at = reader->input.at + reader->at,
                          .size = reader->input.size - reader->at};
}

size_t rdb_reader_left(const struct rdb_reader *reader) {
    return rdb_reader_available(reader);
}

void rdb_reader_init(struct rdb_reader *reader) {
    *reader = (struct rdb_reader){.state = RDB_AT_HEAD, .expire_at_ms = RDB_NO_EXPIRY};
    buffer_init(&reader->name, 0);
    buffer_init(&reader->input, 0);
    buffer_init(&reader->text_room, 0);
    buffer_init(&reader->value_room, 0);
}

void rdb_reader_init_value(struct rdb_reader *reader, unsigned version) {
    rdb_reader_init(reader);
    reader->version = version;
    reader->is_valkey = version >= RDB_VERSION_VALKEY_MIN;
    reader->is_single = true;
    reader->state = RDB_AT_OPCODE;
}

void rdb_reader_deinit(struct rdb_reader *reader) {
    buffer_deinit(&reader->name);
    buffer_deinit(&reader->input);
    buffer_deinit(&reader->text_room);
    buffer_deinit(&reader->value_room);
    memory_free(reader->board);
}
