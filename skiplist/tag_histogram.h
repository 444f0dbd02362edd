/* A group's members counted by their values: a row for each combination that somebody has.
 *
 *     by country, class     DE mage 120    FR mage 87    -- mage 3        most first
 *
 * Whole blocks are counted by what is known of them (skiplist/sheet.h), the rest by the codes of sheets. Which codes values
 * have follows from who came first, so strangers choose them: where one is counted depends on the board's seed. */
#ifndef SKIPLIST_TAG_HISTOGRAM_H
#define SKIPLIST_TAG_HISTOGRAM_H

#include "codec/check.h"
#include "skiplist/tags.h"

/* ---- rows: most first; those of the same count by the values of the first tag counted by, then of the next ---- */

struct tag_histogram_row {
    uint32_t values; /* places of its values in the order of all of their tag, side by side */
    uint32_t count;
};
struct tag_histogram_value {
    struct bytes text; /* of the board, until its next change; empty: members without a value */
};
struct tag_histogram {
    uint32_t count;
    struct tag_histogram_row *rows;
    uint32_t by_count;
    struct tag_histogram_by {
        struct tag_histogram_value *values; /* that are in some row, ascending */
        uint32_t mask;
        uint8_t tag, shift;
    } by[TAGS_MAX];
};
/* Those of the group (filter NULL: all) from rank `from` to `to` - 1, by these tags, which differ. tag_histogram_deinit
 * follows in any case. false: no memory. */
MUST_CHECK bool tag_histogram_make(const struct board *board, const struct tag_filter *filter,
                                   uint32_t from, uint32_t to, const unsigned *by,
                                   uint32_t by_count, struct tag_histogram *made);
void tag_histogram_deinit(struct tag_histogram *made);
/* The value in a row of the tag at this place among those counted by. */
static inline struct bytes tag_histogram_value(const struct tag_histogram *made, uint32_t row,
                                               uint32_t by) {
    uint32_t place = made->rows[row].values >> made->by[by].shift & made->by[by].mask;
    return made->by[by].values[place].text;
}

/* ---- numbers, each with a count: an open hash table, or once it is large enough, a place for each number ---- */

struct tag_histogram_entry {
    uint32_t number;
    uint32_t count;
};
struct tag_histogram_table {
    struct tag_histogram_entry *entries; /* on the heap; those that are counted 0 times are free */
    uint32_t capacity, count;            /* capacity: a power of two */
    uint32_t first;                      /* what the capacity begins with */
    uint8_t bits;                        /* of a number */
    uint8_t shift;                       /* 64 less the capacity's bits */
    bool is_direct;
    uint64_t seed; /* odd */
};

/* For numbers of so many bits, of which at most `count` are going to be added. It has room for first_max / 2 at once. */
struct tag_histogram_table tag_histogram_begin(unsigned bits, uint32_t count, uint32_t first_max,
                                               uint64_t seed);
MUST_CHECK bool tag_histogram_grow(struct tag_histogram_table *table);

/* Where a number is looked for first. One product would leave numbers at equal distances together for some seeds. */
static inline uint32_t tag_histogram_home(const struct tag_histogram_table *table,
                                          uint32_t number) {
    uint64_t mixed = number * table->seed;
    return (uint32_t)(((mixed ^ mixed >> 32) * UINT64_C(0x9e3779b97f4a7c15)) >> table->shift);
}

static inline struct tag_histogram_entry *tag_histogram_at(const struct tag_histogram_table *table,
                                                           uint32_t number) {
    if (table->is_direct) {
        return &table->entries[number];
    }
    uint32_t at = tag_histogram_home(table, number);
    while (table->entries[at].count != 0 && table->entries[at].number != number) {
        at = (at + 1) & (table->capacity - 1);
    }
    return &table->entries[at];
}

/* false: no memory. */
MUST_CHECK static inline bool tag_histogram_add(struct tag_histogram_table *table, uint32_t number,
                                                uint32_t count) {
    if (!table->is_direct && table->count >= table->capacity / 2 && count > 0 &&
        !tag_histogram_grow(table)) {
        return false;
    }
    if (count > 0) {
        struct tag_histogram_entry *entry = tag_histogram_at(table, number);
        table->count += entry->count == 0;
        entry->number = number;
        entry->count += count;
    }
    return true;
}

#endif
