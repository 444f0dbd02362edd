/* See rdb_value.h. */
#include "server/rdb/rdb_value.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "codec/memory.h"
#include "codec/sort.h"
#include "skiplist/keyspace/registry.h"
#include "skiplist/tags.h"

enum {
    CHUNK_SIZE = 256 * 1024,
    ENTRIES_FIRST = 64,
    FIELDS_MAX = 2048, /* texts put into a hash at a time */
    PORTION = 512,     /* members appended to a board at a time */
    GROUP = 16,        /* members whose slots are fetched together */
    EXACT_DIGITS = 15, /* a decimal of so many digits is the only one of its double */
};

struct rdb_chunk {
    struct rdb_chunk *next;
    size_t size;
    char at[];
};

/* ---- memory ---- */

void rdb_value_init(struct rdb_value *value, uint64_t seed) {
    *value = (struct rdb_value){.seed = seed};
}

static void rdb_value_free_chunks(struct rdb_chunk *chunk) {
    while (chunk != NULL) {
        struct rdb_chunk *next = chunk->next;
        memory_free(chunk);
        chunk = next;
    }
}

static void rdb_value_free_slots(struct rdb_value *value) {
    memory_free(value->fill.slots);
    value->fill.slots = NULL;
}

static void rdb_value_free_hash(struct hash *hash) {
    uint32_t work;
    do {
        work = UINT32_MAX;
    } while (!hash_free_step(hash, &work));
}

void rdb_value_deinit(struct rdb_value *value) {
    rdb_value_free_chunks(value->chunks);
    rdb_value_free_slots(value);
    rdb_value_free_hash(&value->hash);
    rdb_value_free_hash(&value->notes);
    memory_free(value->entries);
    memory_free(value->tags);
    memory_free(value->fields);
}

/* One chunk stays, unless it is a large one. */
static void rdb_value_clear_chunks(struct rdb_value *value) {
    struct rdb_chunk *chunk = value->chunks;
    value->chunk_used = 0;
    if (chunk != NULL && chunk->size > CHUNK_SIZE) {
        rdb_value_free_chunks(chunk);
        value->chunks = NULL;
    } else if (chunk != NULL) {
        rdb_value_free_chunks(chunk->next);
        chunk->next = NULL;
    }
}

static void rdb_value_clear(struct rdb_value *value) {
    rdb_value_clear_chunks(value);
    rdb_value_free_slots(value);
    memory_free(value->tags);
    value->tags = NULL;
    value->count = 0;
    value->field_count = 0;
    rdb_value_free_hash(&value->hash);
    rdb_value_free_hash(&value->notes);
    value->seed = value->seed * UINT64_C(6364136223846793005) + 1442695040888963407;
}

/* A copy of the bytes; at is NULL: no memory. */
static struct bytes rdb_value_keep(struct rdb_value *value, struct bytes bytes) {
    struct rdb_chunk *chunk = value->chunks;
    if (chunk == NULL || chunk->size - value->chunk_used < bytes.size) {
        size_t size = bytes.size > CHUNK_SIZE ? bytes.size : CHUNK_SIZE;
        chunk = memory_allocate(sizeof *chunk + size);
        if (chunk == NULL) {
            return (struct bytes){.at = NULL};
        }
        *chunk = (struct rdb_chunk){.next = value->chunks, .size = size};
        value->chunks = chunk;
        value->chunk_used = 0;
    }
    char *at = chunk->at + value->chunk_used;
    if (bytes.size > 0) {
        memcpy(at, bytes.at, bytes.size);
    }
    value->chunk_used += bytes.size;
    return (struct bytes){.at = at, .size = bytes.size};
}

static bool rdb_value_reserve_entry(struct rdb_value *value) {
    if (value->count < value->capacity) {
        return true;
    }
    uint64_t capacity = value->capacity == 0 ? ENTRIES_FIRST : (uint64_t)value->capacity * 2;
    capacity = capacity < BOARD_MEMBERS_MAX ? capacity : BOARD_MEMBERS_MAX;
    if (capacity == value->count) {
        return false;
    }
    struct board_entry *entries = memory_resize(value->entries, (size_t)capacity * sizeof *entries);
    if (entries == NULL) {
        return false;
    }
    value->entries = entries;
    if (value->tags != NULL) {
        struct bytes *tags = memory_resize(value->tags, (size_t)capacity * sizeof *tags);
        if (tags == NULL) {
            return false;
        }
        memset(tags + value->capacity, 0, (size_t)(capacity - value->capacity) * sizeof *tags);
        value->tags = tags;
    }
    value->capacity = (uint32_t)capacity;
    return true;
}

/* ---- scores ---- */

static const double powers[DECIMAL_SCALE_MAX + 1] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,
                                                     1e7,  1e8,  1e9,  1e10, 1e11, 1e12, 1e13,
                                                     1e14, 1e15, 1e16, 1e17, 1e18};
_Static_assert((int)DECIMAL_SCALE_MAX <= 22, "10^22 is the largest power of ten that is a double");
#define EXACT_MAGNITUDE (UINT64_C(1) << 53)

/* A magnitude that is an integer of 64 bits? */
static bool rdb_value_is_whole(double magnitude) {
    return magnitude < 0x1p64 && (double)(uint64_t)magnitude == magnitude;
}

/* Integers are exact, whatever their size; else the fewest digits. */
size_t rdb_value_print_score(double score, char *out) {
    int size = 0;
    if (rdb_value_is_whole(fabs(score))) {
        bool is_negative = score < 0;
        out[0] = '-';
        return is_negative + bytes_print_u64(out + is_negative, (uint64_t)fabs(score));
    }
    for (int digits = EXACT_DIGITS; digits <= EXACT_DIGITS + 2; digits++) {
        size = snprintf(out, RDB_SCORE_TEXT_MAX, "%.*g", digits, score);
        if (strtod(out, NULL) == score) {
            break;
        }
    }
    return (size_t)size;
}

/* The decimal of a short score, without its text: n / 10^s with at most 15 digits is the only such
 * decimal of its double, and division rounds as reading the text does. */
static bool rdb_value_find_decimal(double score, unsigned scale, struct decimal *decimal) {
    double magnitude = fabs(score);
    if (rdb_value_is_whole(magnitude)) {
        uint64_t whole = (uint64_t)magnitude;
        if (__builtin_mul_overflow(whole, (uint64_t)powers[scale], &decimal->magnitude)) {
            return false;
        }
        decimal->is_negative = score < 0;
        return true;
    }
    for (unsigned used = 1; used <= scale; used++) {
        double units = magnitude * powers[used] + 0.5;
        if (!(units < powers[EXACT_DIGITS])) {
            return false;
        }
        units = (double)(uint64_t)units;
        if (units / powers[used] == magnitude) {
            decimal->is_negative = score < 0;
            return !__builtin_mul_overflow((uint64_t)units, (uint64_t)powers[scale - used],
                                           &decimal->magnitude);
        }
    }
    return false;
}

/* A quotient of two exact doubles is rounded once, as strtod rounds the text. */
double rdb_value_score(const struct board_options *options, uint64_t key) {
    const struct layout *layout = &options->layout;
    const struct layout_field *field = &layout->fields[0];
    if (options->is_packed) {
        char packed[BYTES_INTEGER_TEXT_MAX + 1];
        packed[layout_key_print(layout, key, packed)] = '\0';
        return strtod(packed, NULL);
    }
    struct decimal decimal =
        layout_field_decimal_at(field, layout_ordinal(layout, key, 0), field->decay.epoch_us);
    double score;
    if (decimal.magnitude <= EXACT_MAGNITUDE || field->scale == 0) {
        score = (double)decimal.magnitude / powers[field->scale];
    } else {
        char text[DECIMAL_TEXT_MAX + 1];
        text[decimal_print(text, (struct decimal){.magnitude = decimal.magnitude}, field->scale)] =
            '\0';
        score = strtod(text, NULL);
    }
    return decimal.is_negative ? -score : score;
}

/* ---- members ---- */

void rdb_value_begin_keys(struct rdb_value *value, const struct layout *layout) {
    rdb_value_clear(value);
    value->layout = layout;
    value->is_in_order = true;
    value->is_in_reverse = true;
}

enum rdb_value_status rdb_value_begin_board(struct rdb_value *value, const struct layout *layout,
                                            int64_t now_us, char *error) {
    rdb_value_begin_keys(value, layout);
    value->base = layout_zero_key(layout);
    if (!rdb_value_says_time(board_options_of(layout)) &&
        layout_stamp(layout, value->base, now_us, &value->base) != LAYOUT_OK) {
        layout_explain_time(layout, now_us, error);
        return RDB_VALUE_REFUSED;
    }
    return RDB_VALUE_OK;
}

/* Below 0: a is better. */
static int rdb_value_compare(const struct board_entry *a, const struct board_entry *b,
                             bool is_ascending) {
    if (a->key != b->key) {
        return a->key > b->key ? -1 : 1;
    }
    int order = bytes_compare(a->member, b->member);
    return is_ascending ? order : -order;
}

/* A larger packed key is better, whatever its fields. */
static bool rdb_value_is_ascending(const struct rdb_value *value) {
    return value->layout->fields[0].is_ascending && !board_options_of(value->layout)->is_packed;
}

static enum rdb_value_status rdb_value_put(struct rdb_value *value, struct bytes member,
                                           uint64_t key) {
    if (member.size == 0 || member.size > BOARD_MEMBER_MAX) {
        value->culprit = member;
        return RDB_VALUE_DAMAGED;
    }
    if (!rdb_value_reserve_entry(value)) {
        return RDB_VALUE_OUT_OF_MEMORY;
    }
    struct bytes kept = rdb_value_keep(value, member);
    if (kept.at == NULL) {
        return RDB_VALUE_OUT_OF_MEMORY;
    }
    struct board_entry *entry = &value->entries[value->count++];
    *entry = (struct board_entry){.key = key, .member = kept};
    return RDB_VALUE_OK;
}

/* The ordinal of the exact decimal of the shortest text that is this double. OK or REFUSED. */
static enum rdb_value_status rdb_value_find_ordinal(const struct layout_field *field, double score,
                                                    uint64_t *ordinal, char *error) {
    struct decimal decimal;
    if (rdb_value_find_decimal(score, field->scale, &decimal) &&
        layout_field_ordinal(field, decimal, ordinal) == LAYOUT_OK) {
        return RDB_VALUE_OK;
    }
    /* The exact path: for scores with many digits, and for the words of an error. */
    char text[RDB_SCORE_TEXT_MAX];
    struct bytes bytes = {.at = text, .size = rdb_value_print_score(score, text)};
    enum decimal_status status = layout_field_parse(field, bytes, &decimal);
    if (status == DECIMAL_OK && layout_field_ordinal(field, decimal, ordinal) == LAYOUT_OK) {
        return RDB_VALUE_OK;
    }
    layout_explain_value(field, bytes, status, error);
    /* Which layout takes it, if any. */
    enum { TIMED_BITS = 40, BITS_MAX = 64 };
    unsigned scale;
    if (decimal_parse_exact(bytes, &decimal, &scale) == DECIMAL_OK &&
        decimal.magnitude >> 63 == 0) {
        int bits = 1;
        while (bits < BITS_MAX && decimal.magnitude >> (bits - 1) != 0) {
            bits++;
        }
        size_t size = strlen(error);
        snprintf(error + size, RDB_VALUE_ERROR_MAX - size,
                 "; a board with FIELD score %d SIGNED SCALE %u%s takes it",
                 bits <= TIMED_BITS ? TIMED_BITS : BITS_MAX, scale,
                 bits <= TIMED_BITS ? " TIME 24 M" : "");
    }
    return RDB_VALUE_REFUSED;
}

enum decimal_status rdb_value_judge_score(const struct layout_field *field, double score) {
    char text[RDB_SCORE_TEXT_MAX];
    struct bytes bytes = {.at = text, .size = rdb_value_print_score(score, text)};
    struct decimal decimal;
    uint64_t ordinal;
    enum decimal_status status = layout_field_parse(field, bytes, &decimal);
    return status == DECIMAL_OK && layout_field_ordinal(field, decimal, &ordinal) != LAYOUT_OK
               ? DECIMAL_OUT_OF_RANGE
               : status;
}

/* ---- doubles that are taken apart ---- */

void rdb_value_add_rounded(struct rdb_rounded *rounded, const struct rdb_rounded *more) {
    rounded->taken_count += more->taken_count;
    rounded->count += more->count;
    rounded->field_count += more->field_count;
    rounded->time_us = more->time_us > rounded->time_us ? more->time_us : rounded->time_us;
}

void rdb_value_print_rounded(const struct rdb_rounded *rounded, char *out) {
    snprintf(out, RDB_ROUNDED_TEXT_MAX,
             "packed=%" PRIu64 " rounded=%" PRIu64 " rounded_fields=%" PRIu64 " within_ms=%" PRIu64,
             rounded->taken_count, rounded->count, rounded->field_count,
             (rounded->time_us + 999) / 1000);
}

/* From 2^53 on doubles are 2, 4, 8 ... apart: so many low bits of the key are gone. */
static enum rdb_value_status rdb_value_find_packed(const struct layout *layout, double score,
                                                   uint64_t *key, struct rdb_rounded *rounded,
                                                   char *error) {
    char text[RDB_SCORE_TEXT_MAX];
    struct bytes bytes = {.at = text, .size = rdb_value_print_score(score, text)};
    if (!layout_key_parse(layout, bytes, key)) {
        layout_explain_key(layout, bytes, error);
        return RDB_VALUE_REFUSED;
    }
    int exponent;
    (void)frexp(score, &exponent);
    rounded->taken_count = 1;
    if (exponent > DBL_MANT_DIG) {
        unsigned lost = (unsigned)(exponent - DBL_MANT_DIG);
        unsigned of_time = lost < layout->time.bits ? lost : layout->time.bits;
        rounded->count = 1;
        rounded->field_count = lost > layout->time.bits;
        rounded->time_us = of_time > 0 ? (uint64_t)layout->time.unit_us << of_time : 0;
    }
    return RDB_VALUE_OK;
}

/* Fractions have ten decimals, and less where the score leaves a double fewer digits. A time is right to the second as
 * long as both together are less than half a second. */
static enum rdb_value_status rdb_value_find_parts(const struct board_options *options,
                                                  uint64_t base, double number, uint64_t *key,
                                                  struct rdb_rounded *rounded, char *error) {
    static const double decimals = 1e-10;
    static const int64_t second_us = 1000000;
    const struct layout *layout = &options->layout;
    /* Rounded down without the library of mathematics. */
    bool has_parts = fabs(number) < (double)EXACT_MAGNITUDE;
    double score = has_parts ? (double)(int64_t)number : number;
    score -= score > number ? 1 : 0;
    uint64_t ordinal;
    if (rdb_value_find_ordinal(&layout->fields[0], score, &ordinal, error) != RDB_VALUE_OK) {
        return RDB_VALUE_REFUSED;
    }
    *key = layout_with_ordinal(layout, base, 0, ordinal);
    rounded->taken_count = 1;
    if (options->fraction_ms == BOARD_FRACTION_IS_NOTHING) {
        return RDB_VALUE_OK;
    }
    double far_s = (double)options->fraction_ms / 1000;
    int64_t time_us = (int64_t)((1 - (number - score)) * far_s + 0.5) * second_us;
    if (layout_stamp(layout, *key, time_us, key) != LAYOUT_OK) {
        layout_explain_time(layout, time_us, error);
        return RDB_VALUE_REFUSED;
    }
    double magnitude = fabs(number);
    double next; /* the double behind it */
    uint64_t bits;
    memcpy(&bits, &magnitude, sizeof bits);
    bits++;
    memcpy(&next, &bits, sizeof next);
    double within_s = (next - magnitude + decimals) * far_s;
    if (within_s > 0.5) {
        rounded->count = 1;
        rounded->time_us = (uint64_t)(within_s * (double)second_us);
    }
    return RDB_VALUE_OK;
}

enum rdb_value_status rdb_value_find_key(const struct board_options *options, uint64_t base,
                                         double score, uint64_t *key, struct rdb_rounded *rounded,
                                         char *error) {
    struct rdb_rounded one = {.count = 0};
    uint64_t ordinal;
    enum rdb_value_status status;
    if (options->is_packed) {
        status = rdb_value_find_packed(&options->layout, score, key, &one, error);
    } else if (options->fraction_ms != 0) {
        status = rdb_value_find_parts(options, base, score, key, &one, error);
    } else {
        status = rdb_value_find_ordinal(&options->layout.fields[0], score, &ordinal, error);
        if (status == RDB_VALUE_OK) {
            *key = layout_with_ordinal(&options->layout, base, 0, ordinal);
        }
    }
    if (status == RDB_VALUE_OK && rounded != NULL && one.taken_count > 0) {
        rdb_value_add_rounded(rounded, &one);
    }
    return status;
}

enum rdb_value_status rdb_value_put_score(struct rdb_value *value, struct bytes member,
                                          double score, char *error) {
    const struct board_options *options = board_options_of(value->layout);
    uint64_t key;
    enum rdb_value_status status =
        rdb_value_find_key(options, value->base, score, &key, &value->rounded, error);
    if (status == RDB_VALUE_OK) {
        status = rdb_value_put(value, member, key);
    }
    if (status == RDB_VALUE_OK && value->count > 1) {
        const struct board_entry *last = &value->entries[value->count - 1];
        /* Within a second its fraction still says who was first. */
        int order = options->fraction_ms != 0 && score != value->score
                        ? (score < value->score ? -1 : 1)
                        : rdb_value_compare(last - 1, last, rdb_value_is_ascending(value));
        value->is_in_order &= order < 0;
        value->is_in_reverse &= order > 0;
    }
    value->score = score;
    return status;
}

/* ---- another layout ---- */

struct value_and_score {
    const struct rdb_value *value;
    double score;
};

/* The same decimal in another layout. */
static enum decimal_status rdb_value_convert(const struct layout *from, uint64_t key,
                                             const struct layout *to, uint64_t *ordinal) {
    char text[DECIMAL_TEXT_MAX];
    struct decimal decimal = layout_field_decimal(&from->fields[0], layout_ordinal(from, key, 0));
    size_t size = decimal_print(text, decimal, from->fields[0].scale);
    enum decimal_status status =
        layout_field_parse(&to->fields[0], (struct bytes){.at = text, .size = size}, &decimal);
    return status == DECIMAL_OK &&
                   layout_field_ordinal(&to->fields[0], decimal, ordinal) != LAYOUT_OK
               ? DECIMAL_OUT_OF_RANGE
               : status;
}

static enum decimal_status rdb_value_judge(const void *scores, const struct layout *layout) {
    const struct value_and_score *all = scores;
    const struct rdb_value *value = all->value;
    enum decimal_status status = rdb_value_judge_score(&layout->fields[0], all->score);
    uint64_t ordinal;
    for (uint32_t i = 0; i < value->count && status == DECIMAL_OK; i++) {
        status = rdb_value_convert(value->layout, value->entries[i].key, layout, &ordinal);
    }
    return status;
}

enum rdb_value_status rdb_value_choose(struct rdb_value *value, struct registry *registry,
                                       struct bytes name, double score, int64_t now_us,
                                       struct board *board, char *error) {
    const struct value_and_score scores = {.value = value, .score = score};
    if (rdb_value_takes_apart(board_options_of(value->layout))) {
        return RDB_VALUE_REFUSED;
    }
    const struct board_options *options =
        registry_options_taking(registry, name, rdb_value_judge, &scores);
    struct board other;
    uint64_t base;
    uint64_t ordinal;
    if (rdb_value_judge(&scores, &options->layout) != DECIMAL_OK) {
        /* Of a score that fits alone, what was put before it does not. */
        enum rdb_value_status status =
            rdb_value_find_ordinal(&options->layout.fields[0], score, &ordinal, error);
        return status == RDB_VALUE_OK
                   ? rdb_value_find_ordinal(&value->layout->fields[0], score, &ordinal, error)
                   : status;
    }
    if (layout_stamp(&options->layout, layout_zero_key(&options->layout), now_us, &base) !=
        LAYOUT_OK) {
        layout_explain_time(&options->layout, now_us, error);
        return RDB_VALUE_REFUSED;
    }
    if (!registry_create_board_like(registry, options, &other)) {
        return RDB_VALUE_OUT_OF_MEMORY;
    }
    for (uint32_t i = 0; i < value->count; i++) {
        uint64_t *key = &value->entries[i].key;
        CHECK(rdb_value_convert(value->layout, *key, &options->layout, &ordinal) == DECIMAL_OK);
        *key = layout_with_ordinal(&options->layout, base, 0, ordinal);
    }
    if (options->layout.fields[0].is_ascending != value->layout->fields[0].is_ascending) {
        value->is_in_order = value->count < 2;
        value->is_in_reverse = value->count < 2;
    }
    registry_discard_board(registry, board);
    board_move_to(&other, board);
    value->layout = board_layout(board);
    value->base = base;
    return RDB_VALUE_OK;
}

enum rdb_value_status rdb_value_put_key(struct rdb_value *value, const struct board_entry *entry,
                                        const struct bytes *tags) {
    struct tag_values values = {.mask = 0};
    if (!layout_has_room(value->layout, entry->key) ||
        (value->count > 0 && value->entries[value->count - 1].key < entry->key)) {
        return RDB_VALUE_DAMAGED;
    }
    enum rdb_value_status status = rdb_value_put(value, entry->member, entry->key);
    if (status != RDB_VALUE_OK || tags == NULL) {
        return status;
    }
    value->culprit = value->entries[value->count - 1].member;
    if (!tag_values_unpack(*tags, value->layout->tags.count, &values)) {
        return RDB_VALUE_DAMAGED;
    }
    if (values.mask == 0) {
        return RDB_VALUE_OK;
    }
    if (value->tags == NULL) {
        value->tags = memory_allocate_zeroed((size_t)value->capacity * sizeof *value->tags);
    }
    struct bytes kept = rdb_value_keep(value, *tags);
    if (value->tags == NULL || kept.at == NULL) {
        return RDB_VALUE_OUT_OF_MEMORY;
    }
    value->tags[value->count - 1] = kept;
    return RDB_VALUE_OK;
}

/* ---- order ---- */

static int rdb_value_compare_descending(const void *a, const void *b) {
    return rdb_value_compare(a, b, false);
}

static int rdb_value_compare_ascending(const void *a, const void *b) {
    return rdb_value_compare(a, b, true);
}

/* ---- into a board ---- */

void rdb_value_begin_fill(struct rdb_value *value, struct board *board, uint32_t kept_max) {
    bool is_cut = kept_max > 0 && value->count > kept_max;
    rdb_value_free_slots(value);
    /* Redis writes sorted sets in order, or in reverse: sorting is for what others wrote. */
    if (!value->is_in_order && value->is_in_reverse) {
        for (uint32_t i = 0; i < value->count / 2; i++) {
            struct board_entry entry = value->entries[i];
            value->entries[i] = value->entries[value->count - 1 - i];
            value->entries[value->count - 1 - i] = entry;
        }
    } else if (!value->is_in_order) {
        qsort(value->entries, value->count, sizeof *value->entries,
              rdb_value_is_ascending(value) ? rdb_value_compare_ascending
                                            : rdb_value_compare_descending);
    }
    value->fill = (struct rdb_fill){.board = board, .kept = is_cut ? kept_max : value->count};
}

/* false: the member is there already. */
static bool rdb_value_put_slot(const struct rdb_value *value, uint64_t hash, uint32_t index) {
    const struct rdb_fill *fill = &value->fill;
    uint64_t tag = hash & ~(uint64_t)UINT32_MAX;
    for (uint64_t at = hash & fill->slot_mask;; at = (at + 1) & fill->slot_mask) {
        uint64_t slot = fill->slots[at];
        if (slot == 0) {
            fill->slots[at] = tag | (index + 1);
            return true;
        }
        if ((slot & ~(uint64_t)UINT32_MAX) == tag &&
            bytes_equal(value->entries[(uint32_t)slot - 1].member, value->entries[index].member)) {
            return false;
        }
    }
}

/* Is none of these members among them or those before? */
static bool rdb_value_are_new(struct rdb_value *value, uint32_t begin, uint32_t end) {
    uint64_t hashes[GROUP];
    for (; begin < end; begin += GROUP) {
        uint32_t count = end - begin < GROUP ? end - begin : GROUP;
        for (uint32_t i = 0; i < count; i++) {
            struct bytes member = value->entries[begin + i].member;
            hashes[i] = XXH3_64bits_withSeed(member.at, member.size, value->seed);
            __builtin_prefetch(&value->fill.slots[hashes[i] & value->fill.slot_mask], 1);
        }
        for (uint32_t i = 0; i < count; i++) {
            if (!rdb_value_put_slot(value, hashes[i], begin + i)) {
                value->culprit = value->entries[begin + i].member;
                return false;
            }
        }
    }
    return true;
}

/* Of entries that the board has. */
static enum rdb_value_status rdb_value_tag(struct rdb_value *value, uint32_t begin, uint32_t end) {
    struct board *board = value->fill.board;
    struct tag_values values;
    unsigned full;
    for (uint32_t i = begin; i < end; i++) {
        if (value->tags[i].size == 0) {
            continue;
        }
        bool is_packed = tag_values_unpack(value->tags[i], TAGS_MAX, &values);
        CHECK(is_packed);
        switch (tags_set_at(board, i, &values, &full)) {
        case TAGS_OK:
        case TAGS_SAME:
            break;
        case TAGS_FULL:
            value->culprit = value->entries[i].member;
            return RDB_VALUE_TAGS_FULL;
        case TAGS_OUT_OF_MEMORY:
            return RDB_VALUE_OUT_OF_MEMORY;
        }
    }
    return RDB_VALUE_OK;
}

static enum rdb_value_status rdb_value_fill_portion(struct rdb_value *value) {
    struct rdb_fill *fill = &value->fill;
    uint32_t end = value->count - fill->at < PORTION ? value->count : fill->at + PORTION;
    uint32_t kept_end = end < fill->kept ? end : fill->kept;
    enum board_status status = BOARD_OK;
    if (fill->at == 0) {
        /* Slots for all members, so that one that is there twice is found. */
        uint64_t slot_count = 4;
        while (slot_count < (uint64_t)value->count * 2) {
            slot_count *= 2;
        }
        fill->slot_mask = slot_count - 1;
        fill->slots = memory_allocate_zeroed(slot_count * sizeof *fill->slots);
        if (fill->slots == NULL) {
            return RDB_VALUE_OUT_OF_MEMORY;
        }
    }
    if (!rdb_value_are_new(value, fill->at, end)) {
        return RDB_VALUE_DAMAGED;
    }
    if (fill->at < kept_end) {
        status = board_append(fill->board, value->entries + fill->at, kept_end - fill->at);
    }
    uint32_t begin = fill->at;
    fill->at = end;
    if (status != BOARD_OK) {
        return RDB_VALUE_OUT_OF_MEMORY;
    }
    return value->tags != NULL ? rdb_value_tag(value, begin, kept_end) : RDB_VALUE_OK;
}

enum rdb_value_status rdb_value_fill_some(struct rdb_value *value, bool *is_done) {
    struct rdb_fill *fill = &value->fill;
    *is_done = value->count == 0;
    if (fill->at < value->count) {
        return rdb_value_fill_portion(value);
    }
    rdb_value_free_slots(value);
    return *is_done ||
                   board_append_end_step(fill->board, &fill->indexing, PORTION, is_done) == BOARD_OK
               ? RDB_VALUE_OK
               : RDB_VALUE_OUT_OF_MEMORY;
}

enum rdb_value_status rdb_value_end_board(struct rdb_value *value, struct board *board,
                                          uint32_t kept_max) {
    enum rdb_value_status status = RDB_VALUE_OK;
    bool is_done = false;
    rdb_value_begin_fill(value, board, kept_max);
    while (status == RDB_VALUE_OK && !is_done) {
        status = rdb_value_fill_some(value, &is_done);
    }
    return status;
}

/* ---- hashes ---- */

enum rdb_value_status rdb_value_put_note(struct rdb_value *value, struct bytes member,
                                         struct bytes note) {
    struct registry_note_room room;
    const struct bytes args[] = {
        registry_note_field(board_options_of(value->layout), member, &room), note};
    uint32_t added_count;
    return hash_put(&value->notes, value->seed, args, 1, &added_count) == HASH_OK
               ? RDB_VALUE_OK
               : RDB_VALUE_OUT_OF_MEMORY;
}

void rdb_value_begin_hash(struct rdb_value *value) {
    rdb_value_clear(value);
}

enum rdb_value_status rdb_value_end_hash(struct rdb_value *value) {
    uint32_t pairs = value->field_count / 2;
    uint32_t added_count = 0;
    if (pairs == 0) {
        return RDB_VALUE_OK;
    }
    enum hash_status status =
        hash_put(&value->hash, value->seed, value->fields, pairs, &added_count);
    rdb_value_clear_chunks(value);
    value->field_count = 0;
    value->culprit = (struct bytes){.at = NULL};
    if (status == HASH_OUT_OF_MEMORY) {
        return RDB_VALUE_OUT_OF_MEMORY;
    }
    return status == HASH_OK && added_count == pairs ? RDB_VALUE_OK : RDB_VALUE_DAMAGED;
}

enum rdb_value_status rdb_value_put_field(struct rdb_value *value, struct bytes field,
                                          struct bytes content) {
    if (value->field_count == FIELDS_MAX) {
        enum rdb_value_status status = rdb_value_end_hash(value);
        if (status != RDB_VALUE_OK) {
            return status;
        }
    }
    if (value->field_capacity == 0) {
        value->fields = memory_allocate(FIELDS_MAX * sizeof *value->fields);
        if (value->fields == NULL) {
            return RDB_VALUE_OUT_OF_MEMORY;
        }
        value->field_capacity = FIELDS_MAX;
    }
    struct bytes kept[2] = {rdb_value_keep(value, field), {.at = NULL}};
    if (kept[0].at != NULL) {
        kept[1] = rdb_value_keep(value, content);
    }
    if (kept[1].at == NULL) {
        return RDB_VALUE_OUT_OF_MEMORY;
    }
    value->fields[value->field_count++] = kept[0];
    value->fields[value->field_count++] = kept[1];
    return RDB_VALUE_OK;
}
