/* See rdb_reader.h. From bytes to keys: lengths and strings, what is passed over, keys and their values.
 *
 * A step reads `ahead` of what is consumed. If all of its bytes are there, they are consumed at its end; else nothing
 * has changed, and it is done again with more. Once bytes are missing or wrong, what is read is 0, NULL or empty.
 * A function at_... is a step of the state of that name. */
#include "server/rdb/rdb_reader.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "codec/bytes.h"
#include "codec/memory.h"
#include "server/rdb/rdb_board.h"

static inline size_t rdb_reader_available(const struct rdb_reader *reader) {
    return reader->input.size - reader->at;
}
static inline bool rdb_reader_is_fine(const struct rdb_reader *reader) {
    return reader->found == RDB_FOUND;
}

/* A string: where its bytes are, and what they become. */
struct text {
    const unsigned char *at;
    uint64_t stored; /* bytes */
    uint64_t size;   /* of the string */
    unsigned integer_size;
    bool is_compressed;
};

/* ---- lengths and strings ----
 *
 * A string's head says how many bytes it takes, so that it is expanded only once it has arrived. */

enum { LZF_RATIO_MAX = 264, ENCODED_LZF = 3 /* below: integers of 1, 2, 4 bytes */ };

/* error: format, and where. Not where bytes are missing: they may be another reason, or none. */
__attribute__((format(printf, 2, 3))) static void rdb_reader_refuse(struct rdb_reader *reader,
                                                                    const char *format, ...) {
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

static void rdb_reader_lack_memory(struct rdb_reader *reader) {
    reader->is_out_of_memory = true;
    reader->found = RDB_FOUND_BAD;
}

/* So many bytes. */
static const unsigned char *rdb_reader_get(struct rdb_reader *reader, uint64_t size) {
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

static uint64_t rdb_reader_get_length(struct rdb_reader *reader) {
    bool is_encoded;
    uint64_t length = rdb_reader_text_get_length(reader, &is_encoded);
    if (is_encoded) {
        rdb_reader_refuse(reader, "impossible length");
    }
    return length;
}

/* A string's head: all but `at`. */
static struct text rdb_reader_get_head(struct rdb_reader *reader) {
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

/* With its bytes, at most RDB_TEXT_MAX. */
static struct text rdb_reader_get_text(struct rdb_reader *reader) {
    struct text text = rdb_reader_get_head(reader);
    if (text.size > RDB_TEXT_MAX) {
        rdb_reader_refuse(reader, "a string of more than %d bytes", (int)RDB_TEXT_MAX);
    }
    text.at = rdb_reader_get(reader, text.stored);
    return text;
}

/* Its bytes, from the input, or expanded in room, or a number in number. */
static struct bytes rdb_reader_take_text(struct rdb_reader *reader, const struct text *text,
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
    if (!rdb_bytes_expand(stored, (size_t)text->size, room)) {
        if (room->is_broken) {
            rdb_reader_lack_memory(reader);
        } else {
            rdb_reader_refuse(reader, "damaged compressed string");
        }
    }
    return buffer_bytes(room);
}

/* Head and bytes, in text_room. */
static struct bytes rdb_reader_take_string(struct rdb_reader *reader) {
    struct text text = rdb_reader_get_text(reader);
    return rdb_reader_take_text(reader, &text, &reader->text_room, reader->text_number);
}

/* ---- what is passed over has a form ----
 *
 *     s  a string     l  a length     1 4 8 6  so many bytes (6: sixteen)     m  a module's value
 *     *(...)          a length n, then the part in parentheses n times */

static void rdb_reader_begin_passing(struct rdb_reader *reader, const char *form, bool is_key) {
    reader->depth = 1;
    reader->forms[0] = (struct rdb_form){.begin = form, .at = form, .left = 1};
    reader->is_passing_key = is_key;
    reader->state = RDB_AT_PASSED;
}

/* An opcode of a module's value. true: it ends it. */
static bool rdb_reader_pass_opcode(struct rdb_reader *reader) {
    enum { END, SIGNED, UNSIGNED, FLOAT, DOUBLE, STRING };
    uint64_t opcode = rdb_reader_get_length(reader);
    switch (opcode) {
    case END:
        break;
    case SIGNED:
    case UNSIGNED:
        (void)rdb_reader_get_length(reader);
        break;
    case FLOAT:
        reader->skip = 4;
        break;
    case DOUBLE:
        reader->skip = 8;
        break;
    case STRING:
        reader->skip = rdb_reader_get_head(reader).stored;
        break;
    default:
        rdb_reader_refuse(reader, "a module's value that cannot be passed over");
    }
    return opcode == END;
}

static void rdb_reader_pass_one(struct rdb_reader *reader, struct rdb_form *form) {
    bool is_last = true;
    switch (*form->at) {
    case '*': {
        /* A length n, then the part n times. */
        const char *part = form->at + 2; /* behind "*(" */
        uint64_t count = rdb_reader_get_length(reader);
        if (!rdb_reader_is_fine(reader)) {
            return;
        }
        form->at = part;
        for (int open = 1; open > 0; form->at++) {
            open += (*form->at == '(') - (*form->at == ')');
        }
        CHECK(reader->depth < RDB_DEPTH_MAX);
        reader->forms[reader->depth++] =
            (struct rdb_form){.begin = part, .at = part, .left = count};
        return;
    }
    case 's':
        reader->skip = rdb_reader_get_head(reader).stored;
        break;
    case 'l':
        (void)rdb_reader_get_length(reader);
        break;
    case 'm':
        is_last = rdb_reader_pass_opcode(reader);
        break;
    default:
        reader->skip = *form->at == '6' ? 16 : (uint64_t)(*form->at - '0');
    }
    form->at += rdb_reader_is_fine(reader) && is_last;
}

/* ---- keys, their values, and what is beside them ---- */

enum {
    HEAD_SIZE = 9,
    CHECKSUM_SIZE = 8,
    CHECKSUM_SINCE = 5, /* version */
};

enum opcode {
    OPCODE_HASH_TEMPLATE = 242,
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
    ENTRIES_TEXT_SCORE,    /* string, score as text */
    ENTRIES_DOUBLE,        /* string, double */
    ENTRIES_PAIRS,         /* string, string */
    ENTRIES_TTL_PAIRS,     /* length, string, string */
    ENTRIES_PAIRS_EXPIRY,  /* string, string, 8 bytes */
    ENTRIES_VALUES,        /* strings; their fields are a template's */
    ENTRIES_PACKED,        /* a string */
    ENTRIES_PACKED_TTL,    /* the same, every third element an expiry */
    ENTRIES_PACKED_VALUES, /* the number of a template, and values */
};

enum {
    TYPE_MODULE = 7,
    TYPE_VALKEY_HASH = 22,
    TYPE_BITMAP = 33,
    BITMAP_SINCE = 16, /* version */
    TYPES_END = 128,   /* what is beyond is an opcode */
};

static const struct type {
    const char *name;
    enum rdb_kind kind;
    enum entries entries;
    enum rdb_packed_form form;
    unsigned head;      /* bytes before the entries */
    bool has_names;     /* ENTRIES_VALUES and its kin: its template is with it, not in the file */
    const char *passed; /* its form; NULL: it is read, or refused */
} types[RDB_TYPES] = {
    [0] = {"strings", RDB_OTHER, .passed = "s"},
    [1] = {"lists", RDB_OTHER, .passed = "*(s)"},
    [2] = {"sets", RDB_OTHER, .passed = "*(s)"},
    [3] = {"sorted sets", RDB_ZSET, ENTRIES_TEXT_SCORE, .passed = NULL},
    [4] = {"hashes", RDB_HASH, ENTRIES_PAIRS, .passed = NULL},
    [5] = {"sorted sets", RDB_ZSET, ENTRIES_DOUBLE, .passed = NULL},
    [TYPE_MODULE] = {"values of modules", RDB_OTHER, .passed = "m"},
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
    [29] = {"hashes", RDB_HASH, ENTRIES_PACKED_VALUES, RDB_LISTPACK, .has_names = true},
    [30] = {"hashes", RDB_HASH, ENTRIES_PACKED_VALUES, RDB_LISTPACK, .passed = NULL},
    [31] = {"hashes", RDB_HASH, ENTRIES_VALUES, .has_names = true},
    [32] = {"hashes", RDB_HASH, ENTRIES_VALUES, .passed = NULL},
    [TYPE_BITMAP] = {"bitmaps", RDB_OTHER, .passed = "ls"},
};
/* Valkey 9 has this one in place of 22, and none above. */
static const struct type valkey_hash = {"hashes", RDB_HASH, ENTRIES_PAIRS_EXPIRY, .passed = NULL};

const char *rdb_reader_type_name(unsigned type) {
    return type < RDB_TYPES && types[type].name != NULL ? types[type].name : "unknown";
}

/* NULL: it can be neither read nor passed over. */
static const struct type *rdb_reader_type_of(const struct rdb_reader *reader) {
    unsigned number = reader->type;
    if (reader->is_valkey && number >= TYPE_VALKEY_HASH) {
        return number == TYPE_VALKEY_HASH ? &valkey_hash : NULL;
    }
    if (number == TYPE_BITMAP && reader->version < BITMAP_SINCE) {
        return NULL; /* another one of Redis Enterprise */
    }
    return number < RDB_TYPES && types[number].name != NULL ? &types[number] : NULL;
}

static void rdb_reader_consume(struct rdb_reader *reader, size_t size) {
    reader->at += size;
    reader->offset += size;
}

static void rdb_reader_add_to_crc(struct rdb_reader *reader) {
    if (reader->at > reader->crc_at) {
        reader->crc = rdb_bytes_crc(reader->crc, reader->input.at + reader->crc_at,
                                    reader->at - reader->crc_at);
        reader->crc_at = reader->at;
    }
}

/* ---- scores ---- */

static void rdb_reader_set_score(struct rdb_reader *reader, double score) {
    reader->score = score;
    if (isnan(score)) {
        rdb_reader_refuse(reader, "a score that is not a number");
    }
}

static void rdb_reader_parse_score(struct rdb_reader *reader, struct bytes text) {
    int64_t integer;
    if (bytes_parse_i64(text, &integer)) {
        rdb_reader_set_score(reader, (double)integer);
        return;
    }
    double score;
    rdb_reader_set_score(reader, rdb_bytes_parse_score(text, &score) ? score : NAN);
}

/* ---- entries ---- */

/* expiry: 0 is none, 1 the base. One that is out of range is as far away as can be. */
static void rdb_reader_note_field_expiry(struct rdb_reader *reader, uint64_t expiry) {
    uint64_t at = reader->expiry_base + expiry - 1;
    bool is_far = reader->expiry_base > INT64_MAX || expiry > INT64_MAX || at > INT64_MAX;
    reader->field_expire_at_ms = expiry == 0 ? RDB_NO_EXPIRY : is_far ? INT64_MAX : (int64_t)at;
    reader->field_expiry_count += expiry != 0;
}

static void rdb_reader_take_pair(struct rdb_reader *reader, enum entries entries) {
    uint64_t expiry = entries == ENTRIES_TTL_PAIRS ? rdb_reader_get_length(reader) : 0;
    struct text field = rdb_reader_get_text(reader);
    struct text value = rdb_reader_get_text(reader);
    const unsigned char *behind =
        entries == ENTRIES_PAIRS_EXPIRY ? rdb_reader_get(reader, sizeof expiry) : NULL;
    if (!rdb_reader_is_fine(reader)) {
        return;
    }
    if (behind != NULL) {
        expiry = bytes_get_u64((const char *)behind) + 1; /* -1: none */
        reader->expiry_base = 0;
    }
    rdb_reader_note_field_expiry(reader, expiry);
    reader->text = rdb_reader_take_text(reader, &field, &reader->text_room, reader->text_number);
    reader->value = rdb_reader_take_text(reader, &value, &reader->value_room, reader->value_number);
}

static void rdb_reader_take_member(struct rdb_reader *reader, const struct text *member) {
    reader->text = rdb_reader_take_text(reader, member, &reader->text_room, reader->text_number);
}

/* ---- templates ----
 *
 * A file of Redis 8.10 says the names of fields that many hashes have once, in front of the keys:
 *
 *     242  id  count  name ...        then, of types 30 and 32, hashes with the id and their values
 *
 * What DUMP replies has them with it (types 29, 31): 0 and a listpack of names, or 1, a count and names. */

static int rdb_reader_compare_template(const void *a, const void *b) {
    uint64_t one = ((const struct rdb_template *)a)->id;
    uint64_t other = ((const struct rdb_template *)b)->id;
    return (one > other) - (one < other);
}

static void rdb_reader_begin_template(struct rdb_reader *reader, uint64_t id, uint64_t count) {
    struct rdb_templates *templates = &reader->templates;
    if (count == 0) {
        rdb_reader_refuse(reader, "a hash without fields");
    }
    templates->own =
        (struct rdb_template){.id = id, .begin = templates->names.size, .count = count};
    reader->entries_left = count;
    reader->state = RDB_AT_FIELD;
}

static void rdb_reader_add_name(struct rdb_reader *reader, struct bytes name) {
    struct buffer *names = &reader->templates.names;
    char size[sizeof(uint32_t)];
    bytes_put_u32(size, (uint32_t)name.size); /* at most RDB_TEXT_MAX */
    buffer_append(names, size, sizeof size);
    buffer_append(names, name.at, name.size);
    if (names->is_broken) {
        rdb_reader_lack_memory(reader);
    }
}

static struct bytes rdb_reader_take_name(struct rdb_reader *reader) {
    struct rdb_templates *templates = &reader->templates;
    const char *at = templates->names.at + templates->name_at;
    struct bytes name = {.at = at + sizeof(uint32_t), .size = bytes_get_u32(at)};
    templates->name_at += sizeof(uint32_t) + name.size;
    return name;
}

/* The key's fields are those of the file's template. */
static void rdb_reader_use_template(struct rdb_reader *reader, uint64_t id) {
    struct rdb_templates *templates = &reader->templates;
    const struct rdb_template sought = {.id = id};
    if (!templates->is_sorted && templates->count > 0) {
        qsort(templates->at, templates->count, sizeof *templates->at, rdb_reader_compare_template);
    }
    for (size_t i = 1; !templates->is_sorted && i < templates->count; i++) {
        if (templates->at[i - 1].id == templates->at[i].id) {
            rdb_reader_refuse(reader, "two templates of hashes have the number %llu",
                              (unsigned long long)templates->at[i].id);
        }
    }
    templates->is_sorted = true;
    const struct rdb_template *found =
        templates->count > 0 ? bsearch(&sought, templates->at, templates->count,
                                       sizeof *templates->at, rdb_reader_compare_template)
                             : NULL;
    if (found == NULL) {
        rdb_reader_refuse(reader, "a hash of template %llu, which is not there",
                          (unsigned long long)id);
        return;
    }
    templates->own = *found;
}

/* Names that are packed, in a DUMP payload. */
static void rdb_reader_unpack_names(struct rdb_reader *reader, struct bytes packed) {
    char room[BYTES_INTEGER_TEXT_MAX];
    struct bytes name;
    uint64_t count = 0;
    enum rdb_packed_status status = RDB_PACKED_BAD;
    size_t begin = reader->templates.names.size;
    if (rdb_bytes_begin_packed(&reader->packed, RDB_LISTPACK, packed)) {
        while ((status = rdb_bytes_next_packed(&reader->packed, room, &name)) == RDB_PACKED_VALUE &&
               rdb_reader_is_fine(reader)) {
            rdb_reader_add_name(reader, name);
            count++;
        }
    }
    if (status == RDB_PACKED_BAD) {
        rdb_reader_refuse(reader, "damaged packed value");
    }
    rdb_reader_begin_template(reader, 0, count);
    reader->templates.own.begin = begin;
    reader->entries_left = 0;
}

/* The head of a template, in the file or with a key. */
static enum rdb_event rdb_reader_at_template(struct rdb_reader *reader) {
    enum { NAMES_PACKED, NAMES_PLAIN };
    bool is_keys = reader->is_in_key;
    uint64_t id = rdb_reader_get_length(reader); /* or how a key has them */
    if (is_keys && id == NAMES_PACKED) {
        struct bytes packed = rdb_reader_take_string(reader);
        if (rdb_reader_is_fine(reader)) {
            rdb_reader_unpack_names(reader, packed);
        }
        return RDB_MORE;
    }
    if (is_keys && id != NAMES_PLAIN) {
        rdb_reader_refuse(reader, "unknown form %llu of a hash's names", (unsigned long long)id);
    }
    uint64_t count = rdb_reader_get_length(reader);
    if (rdb_reader_is_fine(reader)) {
        rdb_reader_begin_template(reader, id, count);
    }
    return RDB_MORE;
}

static enum rdb_event rdb_reader_at_field(struct rdb_reader *reader) {
    struct rdb_templates *templates = &reader->templates;
    if (reader->entries_left > 0) {
        struct bytes name = rdb_reader_take_string(reader);
        if (rdb_reader_is_fine(reader)) {
            rdb_reader_add_name(reader, name);
            reader->entries_left--;
        }
        return RDB_MORE;
    }
    if (reader->is_in_key) {
        reader->state = RDB_AT_VALUE;
        return RDB_MORE;
    }
    /* All of its names are read: a template of the file. */
    if (templates->count == templates->capacity) {
        size_t capacity = templates->capacity > 0 ? templates->capacity * 2 : 16;
        struct rdb_template *at = memory_resize(templates->at, capacity * sizeof *templates->at);
        if (at == NULL) {
            rdb_reader_lack_memory(reader);
            return RDB_MORE;
        }
        templates->at = at;
        templates->capacity = capacity;
    }
    templates->at[templates->count++] = templates->own;
    reader->state = RDB_AT_OPCODE;
    return RDB_MORE;
}

static enum rdb_event rdb_reader_end_key(struct rdb_reader *reader) {
    if (rdb_reader_type_of(reader)->has_names) {
        buffer_cut(&reader->templates.names, reader->templates.own.begin);
    }
    reader->is_in_key = false;
    reader->is_key_over = true;
    reader->state = reader->is_single ? RDB_AT_END : RDB_AT_OPCODE;
    return RDB_KEY_END;
}

static enum rdb_event rdb_reader_at_entry(struct rdb_reader *reader) {
    enum { NAN_SIZE = 253, INFINITY_SIZE, MINUS_INFINITY_SIZE }; /* of a score as text */
    enum entries entries = rdb_reader_type_of(reader)->entries;
    if (reader->entries_left == 0) {
        return rdb_reader_end_key(reader);
    }
    if (entries == ENTRIES_DOUBLE) {
        struct text member = rdb_reader_get_text(reader);
        const unsigned char *at = rdb_reader_get(reader, sizeof(double));
        if (at != NULL) {
            uint64_t word = bytes_get_u64((const char *)at);
            double score;
            memcpy(&score, &word, sizeof score);
            rdb_reader_take_member(reader, &member);
            rdb_reader_set_score(reader, score);
        }
    } else if (entries == ENTRIES_TEXT_SCORE) {
        struct text member = rdb_reader_get_text(reader);
        const unsigned char *head = rdb_reader_get(reader, 1);
        size_t size = head != NULL && *head < NAN_SIZE ? *head : 0;
        struct bytes text = {.at = (const char *)rdb_reader_get(reader, size), .size = size};
        if (head != NULL && rdb_reader_is_fine(reader)) {
            if (*head > NAN_SIZE) {
                rdb_reader_set_score(reader, *head == INFINITY_SIZE ? INFINITY : -INFINITY);
            } else {
                rdb_reader_parse_score(reader, text);
            }
            rdb_reader_take_member(reader, &member);
        }
    } else if (entries == ENTRIES_VALUES) {
        /* A value whose field is the template's next. */
        struct text value = rdb_reader_get_text(reader);
        if (rdb_reader_is_fine(reader)) {
            rdb_reader_note_field_expiry(reader, 0);
            reader->text = rdb_reader_take_name(reader);
            reader->value =
                rdb_reader_take_text(reader, &value, &reader->value_room, reader->value_number);
        }
    } else {
        rdb_reader_take_pair(reader, entries);
    }
    reader->entries_left -= rdb_reader_is_fine(reader);
    return RDB_ENTRY;
}

/* ---- packed values ---- */

static enum rdb_event rdb_reader_at_packed(struct rdb_reader *reader) {
    if (rdb_reader_type_of(reader)->entries == ENTRIES_PACKED_VALUES) {
        /* A value of the packed ones, with the template's next field. */
        enum rdb_packed_status status =
            rdb_bytes_next_packed(&reader->packed, reader->value_number, &reader->value);
        if (status == RDB_PACKED_END && reader->entries_left == 0) {
            return rdb_reader_end_key(reader);
        }
        if (status != RDB_PACKED_VALUE || reader->entries_left == 0) {
            rdb_reader_refuse(reader,
                              "a hash with more or fewer values than its template has fields");
            return RDB_MORE;
        }
        reader->entries_left--;
        reader->text = rdb_reader_take_name(reader);
        rdb_reader_note_field_expiry(reader, 0);
        return RDB_ENTRY;
    }
    bool has_expiries = rdb_reader_type_of(reader)->entries == ENTRIES_PACKED_TTL;
    struct rdb_packed *packed = &reader->packed;
    char room[BYTES_INTEGER_TEXT_MAX];
    struct bytes expiry;
    uint64_t expire_at_ms = 0;
    enum rdb_packed_status status =
        rdb_bytes_next_packed(packed, reader->text_number, &reader->text);
    if (status == RDB_PACKED_END) {
        return rdb_reader_end_key(reader);
    }
    if (status == RDB_PACKED_BAD ||
        rdb_bytes_next_packed(packed, reader->value_number, &reader->value) != RDB_PACKED_VALUE ||
        (has_expiries && rdb_bytes_next_packed(packed, room, &expiry) != RDB_PACKED_VALUE)) {
        rdb_reader_refuse(reader, "damaged packed value");
    } else if (has_expiries && !bytes_parse_u64(expiry, &expire_at_ms)) {
        rdb_reader_refuse(reader, "a field's expiry that is no time");
    } else if (reader->kind == RDB_ZSET) {
        rdb_reader_parse_score(reader, reader->value);
    } else {
        reader->expiry_base = 1;
        rdb_reader_note_field_expiry(reader, expire_at_ms);
    }
    return RDB_ENTRY;
}

/* The head of a hash whose fields are a template's. */
static enum rdb_event rdb_reader_at_template_value(struct rdb_reader *reader,
                                                   const struct type *type) {
    bool is_packed = type->entries == ENTRIES_PACKED_VALUES;
    struct bytes packed = is_packed ? rdb_reader_take_string(reader) : (struct bytes){.at = NULL};
    uint64_t id = is_packed || type->has_names ? 0 : rdb_reader_get_length(reader);
    if (!rdb_reader_is_fine(reader)) {
        return RDB_MORE;
    }
    if (is_packed && !rdb_bytes_begin_packed(&reader->packed, RDB_LISTPACK, packed)) {
        rdb_reader_refuse(reader, "damaged packed value");
    } else if (is_packed) {
        /* The number of the template comes first, and says nothing where that is with the key. */
        char room[BYTES_INTEGER_TEXT_MAX];
        struct bytes number;
        if (rdb_bytes_next_packed(&reader->packed, room, &number) != RDB_PACKED_VALUE ||
            !bytes_parse_u64(number, &id)) {
            rdb_reader_refuse(reader, "a hash without the number of its template");
        }
    }
    if (rdb_reader_is_fine(reader) && !type->has_names) {
        rdb_reader_use_template(reader, id);
    }
    reader->templates.name_at = reader->templates.own.begin;
    reader->entries_left = reader->templates.own.count;
    reader->state = is_packed ? RDB_AT_PACKED : RDB_AT_ENTRY;
    return RDB_MORE;
}

/* The head of a value of ours. */
static enum rdb_event rdb_reader_at_value(struct rdb_reader *reader) {
    const struct type *type = rdb_reader_type_of(reader);
    if (type->entries == ENTRIES_VALUES || type->entries == ENTRIES_PACKED_VALUES) {
        return rdb_reader_at_template_value(reader, type);
    }
    bool is_packed = type->entries >= ENTRIES_PACKED;
    const unsigned char *base = type->head > 0 ? rdb_reader_get(reader, type->head) : NULL;
    struct bytes packed = is_packed ? rdb_reader_take_string(reader) : (struct bytes){.at = NULL};
    uint64_t count = is_packed ? 0 : rdb_reader_get_length(reader);
    if (!rdb_reader_is_fine(reader)) {
        return RDB_MORE;
    }
    reader->expiry_base = base != NULL ? bytes_get_u64((const char *)base) : 1;
    reader->entries_left = count;
    reader->state = is_packed ? RDB_AT_PACKED : RDB_AT_ENTRY;
    if (is_packed && !rdb_bytes_begin_packed(&reader->packed, type->form, packed)) {
        rdb_reader_refuse(reader, "damaged packed value");
    }
    return RDB_MORE;
}

/* ---- boards of the module ---- */

enum module_opcode { MODULE_END = 0, MODULE_UNSIGNED = 2, MODULE_TEXT = 5 };
enum { TYPE_VERSION_MASK = 1023 }; /* of a type's number */

/* The opcode of the next part of a module's value, which must be this one. */
static void rdb_reader_expect_part(struct rdb_reader *reader, enum module_opcode expected) {
    if (rdb_reader_get_length(reader) != expected) {
        bool is_board = reader->state == RDB_AT_MODULE || reader->state == RDB_AT_CHUNK;
        rdb_reader_refuse(reader, is_board ? "damaged board" : "damaged bans");
    }
}

static uint64_t rdb_reader_get_module_number(struct rdb_reader *reader) {
    rdb_reader_expect_part(reader, MODULE_UNSIGNED);
    return rdb_reader_get_length(reader);
}

static void rdb_reader_pass_module(struct rdb_reader *reader) {
    rdb_reader_begin_passing(reader, types[TYPE_MODULE].passed, true);
}

/* A board, or something to be passed over: ids of results that have no board are. */
static enum rdb_event rdb_reader_at_module(struct rdb_reader *reader) {
    uint64_t id = rdb_reader_get_length(reader);
    if (rdb_board_is_type(id)) {
        uint64_t format = rdb_reader_get_module_number(reader);
        uint64_t time_us = rdb_reader_get_module_number(reader);
        uint64_t count = rdb_reader_get_module_number(reader);
        if (!rdb_reader_is_fine(reader)) {
            return RDB_MORE;
        }
        if (reader->board == NULL) {
            reader->board = memory_allocate(sizeof *reader->board);
        }
        if (reader->board == NULL) {
            rdb_reader_lack_memory(reader);
            return RDB_MORE;
        }
        if (!rdb_board_begin(reader->board, id & TYPE_VERSION_MASK, format, time_us, count)) {
            rdb_reader_refuse(reader, "%s", reader->board->error);
        }
        reader->kind = RDB_BOARD;
        reader->state = RDB_AT_CHUNK;
        if (!rdb_reader_is_fine(reader) || !reader->board->is_ids) {
            return RDB_MORE;
        }
        reader->kind = RDB_OTHER;
    }
    if (rdb_reader_is_fine(reader)) {
        rdb_reader_pass_module(reader);
    }
    return RDB_KEY;
}

static enum rdb_event rdb_reader_at_chunk(struct rdb_reader *reader) {
    bool is_over = rdb_board_is_whole(reader->board);
    if (is_over && reader->board->has_ids) {
        rdb_reader_pass_module(reader);
        return RDB_MORE;
    }
    rdb_reader_expect_part(reader, is_over ? MODULE_END : MODULE_TEXT);
    struct bytes chunk = {.at = NULL};
    if (!is_over) {
        chunk = rdb_reader_take_string(reader);
    }
    if (!rdb_reader_is_fine(reader)) {
        return RDB_MORE;
    }
    if (is_over) {
        return rdb_reader_end_key(reader);
    }
    rdb_board_take(reader->board, chunk);
    reader->state = RDB_AT_RECORD;
    return RDB_MORE;
}

static enum rdb_event rdb_reader_at_record(struct rdb_reader *reader) {
    switch (rdb_board_next(reader->board)) {
    case RDB_BOARD_OPENED:
        return RDB_KEY;
    case RDB_BOARD_ENTRIES:
        return RDB_ENTRIES;
    case RDB_BOARD_NOTE:
        reader->text = reader->board->decoder.effect.member;
        reader->value = reader->board->decoder.effect.value;
        return RDB_NOTE;
    case RDB_BOARD_CHUNK_END:
        reader->state = RDB_AT_CHUNK;
        break;
    case RDB_BOARD_BAD:
        rdb_reader_refuse(reader, "%s", reader->board->error);
        break;
    }
    return RDB_MORE;
}

/* ---- beside the keys ---- */

/* Ours, or something to be passed over. */
static enum rdb_event rdb_reader_at_aux(struct rdb_reader *reader) {
    uint64_t id = rdb_reader_get_length(reader);
    bool is_ours = rdb_board_is_type(id);
    if (is_ours && (id & TYPE_VERSION_MASK) != RDB_STATE_VERSION) {
        rdb_reader_refuse(reader, "bans that a later version has written");
    }
    if (is_ours) {
        (void)rdb_reader_get_module_number(reader); /* before the keys, or behind them */
    }
    if (rdb_reader_is_fine(reader) && is_ours) {
        reader->state = RDB_AT_STATE;
    } else if (rdb_reader_is_fine(reader)) {
        rdb_reader_begin_passing(reader, "llm", false);
    }
    return RDB_MORE;
}

static enum rdb_event rdb_reader_at_state(struct rdb_reader *reader) {
    rdb_reader_expect_part(reader, MODULE_TEXT);
    struct bytes text = rdb_reader_take_string(reader);
    if (!rdb_reader_is_fine(reader)) {
        return RDB_MORE;
    }
    reader->text = text;
    reader->state = text.size > 0 ? RDB_AT_STATE : RDB_AT_STATE_END;
    return text.size > 0 ? RDB_STATE : RDB_MORE;
}

static enum rdb_event rdb_reader_at_state_end(struct rdb_reader *reader) {
    rdb_reader_expect_part(reader, MODULE_END);
    if (rdb_reader_is_fine(reader)) {
        reader->state = RDB_AT_OPCODE;
    }
    return RDB_MORE;
}

/* ---- the file ---- */

static enum rdb_event rdb_reader_at_head(struct rdb_reader *reader) {
    enum { REDIS_SIZE = 5, VALKEY_SIZE = 6 };
    const char *at = reader->input.at;
    size_t size = rdb_reader_available(reader);
    bool is_redis = size == 0 || memcmp(at, "REDIS", size < REDIS_SIZE ? size : REDIS_SIZE) == 0;
    bool is_valkey = size > 0 && memcmp(at, "VALKEY", size < VALKEY_SIZE ? size : VALKEY_SIZE) == 0;
    if (!is_redis && !is_valkey) {
        rdb_reader_refuse(reader, "this is no RDB file: it begins with neither REDIS nor VALKEY");
    }
    if (rdb_reader_get(reader, HEAD_SIZE) != NULL) {
        uint64_t version = 0;
        for (size_t i = is_valkey ? VALKEY_SIZE : REDIS_SIZE; i < HEAD_SIZE; i++) {
            if (at[i] < '0' || at[i] > '9') {
                rdb_reader_refuse(reader, "this is no RDB file: its version is no number");
            }
            version = version * 10 + (unsigned)(at[i] - '0');
        }
        if (!rdb_knows_version(version) || is_valkey != (version >= RDB_VERSION_VALKEY_MIN)) {
            rdb_reader_refuse(
                reader,
                "unknown version %u of RDB (known: %d of Redis, %d of Valkey): newer ones "
                "need a newer server here",
                (unsigned)version, (int)RDB_VERSION_MAX, (int)RDB_VERSION_VALKEY_MAX);
        }
        reader->is_valkey = is_valkey;
        reader->version = (unsigned)version;
        reader->state = RDB_AT_OPCODE;
    }
    return RDB_MORE;
}

static void rdb_reader_begin_key(struct rdb_reader *reader, unsigned type) {
    reader->type = type;
    if (rdb_reader_type_of(reader) == NULL) {
        rdb_reader_refuse(
            reader,
            "unknown type %u of RDB %u: delete such keys at the source, or use a newer "
            "server here",
            type, reader->version);
    } else {
        reader->kind = rdb_reader_type_of(reader)->kind;
        reader->is_in_key = true;
        reader->state = RDB_AT_NAME;
    }
}

static void rdb_reader_begin(struct rdb_reader *reader, unsigned opcode) {
    const char *at;
    uint64_t database;
    switch (opcode) {
    case OPCODE_KEY_METADATA:
        if (reader->is_valkey) {
            rdb_reader_refuse(reader, "slots of a cluster are being imported: wait for their end");
        }
        rdb_reader_begin_passing(reader, "*(4m)", false);
        break;
    case OPCODE_HASH_TEMPLATE:
        if (reader->is_valkey || reader->templates.is_sorted) {
            rdb_reader_refuse(reader, "a template of hashes that is not in front of all keys");
        }
        reader->state = RDB_AT_TEMPLATE;
        break;
    case OPCODE_SLOT_INFO:
        rdb_reader_begin_passing(reader, "lll", false);
        break;
    case OPCODE_FUNCTION:
        reader->function_count++;
        rdb_reader_begin_passing(reader, "s", false);
        break;
    case OPCODE_MODULE_AUX:
        reader->state = RDB_AT_AUX;
        break;
    case OPCODE_IDLE:
        rdb_reader_begin_passing(reader, "l", false);
        break;
    case OPCODE_FREQUENCY:
        rdb_reader_begin_passing(reader, "1", false);
        break;
    case OPCODE_AUX:
        rdb_reader_begin_passing(reader, "ss", false);
        break;
    case OPCODE_RESIZE:
        rdb_reader_begin_passing(reader, "ll", false);
        break;
    case OPCODE_EXPIRY_MS:
        at = (const char *)rdb_reader_get(reader, 8);
        reader->expire_at_ms = at != NULL ? (int64_t)bytes_get_u64(at) : reader->expire_at_ms;
        break;
    case OPCODE_EXPIRY_S:
        at = (const char *)rdb_reader_get(reader, 4);
        reader->expire_at_ms =
            at != NULL ? (int64_t)(int32_t)bytes_get_u32(at) * 1000 : reader->expire_at_ms;
        break;
    case OPCODE_DATABASE:
        database = rdb_reader_get_length(reader);
        reader->database = rdb_reader_is_fine(reader) ? database : reader->database;
        break;
    case OPCODE_END:
        reader->state = RDB_AT_CHECKSUM;
        break;
    default:
        if (opcode >= TYPES_END) {
            rdb_reader_refuse(reader, "unknown opcode %u of RDB %u: it needs a newer server here",
                              opcode, reader->version);
        }
        rdb_reader_begin_key(reader, opcode);
    }
}

static enum rdb_event rdb_reader_at_opcode(struct rdb_reader *reader) {
    const unsigned char *opcode = rdb_reader_get(reader, 1);
    if (opcode != NULL && reader->is_single) {
        rdb_reader_begin_key(reader, *opcode);
    } else if (opcode != NULL) {
        rdb_reader_begin(reader, *opcode);
    }
    return RDB_MORE;
}

static enum rdb_event rdb_reader_at_name(struct rdb_reader *reader) {
    struct bytes name = {.at = NULL};
    if (!reader->is_single) {
        name = rdb_reader_take_string(reader);
    }
    if (!rdb_reader_is_fine(reader)) {
        return RDB_MORE;
    }
    buffer_clear(&reader->name);
    buffer_append(&reader->name, name.at, name.size);
    if (reader->name.is_broken) {
        rdb_reader_lack_memory(reader);
    }
    if (reader->type == TYPE_MODULE) {
        reader->state = RDB_AT_MODULE;
        return RDB_MORE;
    }
    const struct type *type = rdb_reader_type_of(reader);
    if (reader->kind == RDB_OTHER) {
        rdb_reader_begin_passing(reader, type->passed, true);
    } else {
        reader->state = type->has_names ? RDB_AT_TEMPLATE : RDB_AT_VALUE;
    }
    return RDB_KEY;
}

static enum rdb_event rdb_reader_at_passed(struct rdb_reader *reader) {
    while (reader->depth > 0) {
        struct rdb_form *form = &reader->forms[reader->depth - 1];
        if (form->left == 0) {
            reader->depth--;
        } else if (*form->at == '\0' || *form->at == ')') {
            form->left--;
            form->at = form->begin;
        } else {
            rdb_reader_pass_one(reader, form);
            return RDB_MORE;
        }
    }
    if (reader->is_passing_key) {
        return rdb_reader_end_key(reader);
    }
    reader->state = RDB_AT_OPCODE;
    return RDB_MORE;
}

static enum rdb_event rdb_reader_at_checksum(struct rdb_reader *reader) {
    rdb_reader_add_to_crc(reader);
    if (reader->version >= CHECKSUM_SINCE) {
        const char *at = (const char *)rdb_reader_get(reader, CHECKSUM_SIZE);
        uint64_t stored = at != NULL ? bytes_get_u64(at) : 0;
        if (stored != 0 && stored != reader->crc) { /* 0: rdbchecksum no */
            rdb_reader_refuse(reader, "the checksum is wrong: the file is damaged");
        }
    }
    if (rdb_reader_is_fine(reader)) {
        reader->crc_at = reader->input.size;
        reader->state = RDB_AT_END;
    }
    return RDB_MORE;
}

static enum rdb_event rdb_reader_at_end(struct rdb_reader *reader) {
    (void)reader;
    return RDB_END;
}

/* ---- events ---- */

/* By state: a step, and its event. RDB_MORE: none yet. */
static enum rdb_event (*const steps[])(struct rdb_reader *reader) = {
    [RDB_AT_HEAD] = rdb_reader_at_head,         [RDB_AT_OPCODE] = rdb_reader_at_opcode,
    [RDB_AT_NAME] = rdb_reader_at_name,         [RDB_AT_VALUE] = rdb_reader_at_value,
    [RDB_AT_ENTRY] = rdb_reader_at_entry,       [RDB_AT_PACKED] = rdb_reader_at_packed,
    [RDB_AT_TEMPLATE] = rdb_reader_at_template, [RDB_AT_FIELD] = rdb_reader_at_field,
    [RDB_AT_MODULE] = rdb_reader_at_module,     [RDB_AT_CHUNK] = rdb_reader_at_chunk,
    [RDB_AT_RECORD] = rdb_reader_at_record,     [RDB_AT_AUX] = rdb_reader_at_aux,
    [RDB_AT_STATE] = rdb_reader_at_state,       [RDB_AT_STATE_END] = rdb_reader_at_state_end,
    [RDB_AT_PASSED] = rdb_reader_at_passed,     [RDB_AT_CHECKSUM] = rdb_reader_at_checksum,
    [RDB_AT_END] = rdb_reader_at_end,
};

enum rdb_event rdb_reader_next(struct rdb_reader *reader) {
    enum rdb_event event = RDB_MORE;
    if (reader->is_key_over) {
        reader->is_key_over = false;
        reader->expire_at_ms = RDB_NO_EXPIRY;
    }
    while (reader->found != RDB_FOUND_BAD && event == RDB_MORE) {
        size_t available = rdb_reader_available(reader);
        size_t skipped = reader->skip < available ? (size_t)reader->skip : available;
        rdb_reader_consume(reader, skipped);
        reader->skip -= skipped;
        if (reader->skip > 0) {
            return RDB_MORE;
        }
        reader->ahead = 0;
        reader->found = RDB_FOUND;
        event = steps[reader->state](reader);
        if (reader->found == RDB_FOUND_TOO_FEW) {
            reader->skip = 0;
            return RDB_MORE;
        }
        rdb_reader_consume(reader, reader->ahead);
    }
    return rdb_reader_is_fine(reader) ? event
           : reader->is_out_of_memory ? RDB_OUT_OF_MEMORY
                                      : RDB_BAD;
}

void rdb_reader_feed(struct rdb_reader *reader, struct bytes piece) {
    if (reader->found == RDB_FOUND_BAD || piece.size == 0) {
        return;
    }
    CHECK(reader->state != RDB_AT_PACKED && reader->state != RDB_AT_RECORD);
    rdb_reader_add_to_crc(reader);
    buffer_drop_front(&reader->input, reader->at);
    reader->crc_at -= reader->at;
    reader->at = 0;
    buffer_append(&reader->input, piece.at, piece.size);
    if (reader->input.is_broken) {
        rdb_reader_lack_memory(reader);
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
    buffer_init(&reader->templates.names, 0);
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
    buffer_deinit(&reader->templates.names);
    memory_free(reader->templates.at);
    memory_free(reader->board);
}
