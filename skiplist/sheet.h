/* Sheets: the tags of a list's entries, beside the list.
 *
 *     level 2   [ counts  counts ]              each index block knows how many entries below it have which values
 *                   |
 *     level 1   [ 40   24   33 ] -- sheet       the codes of the 97 entries below this block, in rank order
 *                |    |    |
 *     level 0   leaf leaf leaf                  leaves know nothing of tags
 *
 * A code holds the values of one entry: the bits of each tag (struct tag_slot) are its value's code in the
 * tag's dictionary, or 0. A lowest index block without a sheet has only entries without values. A list of one
 * leaf has its sheet in struct tags. Sheets are the truth; counts (below) follow from them and
 * may be missing.
 *
 * skiplist.c and detach.c call this, and what counts, where entries or index blocks come, go or move, and only
 * for lists with tags. */
#ifndef SKIPLIST_SHEET_H
#define SKIPLIST_SHEET_H

#include "codec/bytes.h"
#include "codec/check.h"
#include "codec/tag.h"
#include "skiplist/index.h"
#include "skiplist/map.h"

/* ---- dictionaries, tags.c ----
 *
 * The different values of one tag of a board: value <-> code, each with the number of members that have it.
 *
 *     code   1: "DE" 812    2: "FR" 97    3: free    4: "US" 1204        0: none
 *
 * A value that nobody has is freed at once, and its code is given to the next new one. */

/* Codes are below this, whatever the tag's bits. */
#define TAG_CODE_END MAP_ID_END

struct tag_value {
    uint32_t use_count; /* members */
    uint8_t size;
    char bytes[];
};

struct tag_dictionary {
    struct map map; /* (hash of a value, its code) */
    uintptr_t
        *at; /* by code: struct tag_value *; free: the next free code << 1 | 1; at[0] is not used */
    uint32_t end; /* codes from here on have never been used */
    uint32_t capacity;
    uint32_t free_first; /* 0: none */
    uint32_t count;      /* values */
    uint64_t hash_seed;
    size_t memory_size; /* of values and at */
};

/* The code of a value; 0: it is not there. */
uint32_t tags_dictionary_find(const struct tag_dictionary *dictionary, struct bytes value);
struct bytes tags_dictionary_value(const struct tag_dictionary *dictionary, uint32_t code);
/* One member more has it. */
void tags_dictionary_use(struct tag_dictionary *dictionary, uint32_t code);
/* One member fewer has it. Freed if nobody does. Never fails. */
void tags_dictionary_release(struct tag_dictionary *dictionary, uint32_t code);
/* Count the members anew: begin, use for each value of each member, end. What nobody has is freed in the end. */
void tags_dictionary_begin_recount(struct tag_dictionary *dictionary);
void tags_dictionary_end_recount(struct tag_dictionary *dictionary);

static inline struct tag_value *tags_dictionary_at(const struct tag_dictionary *dictionary,
                                                   uint32_t code) {
    return (struct tag_value *)dictionary->at[code];
}

/* Check the map, the free codes and the sizes. reason: the first violated invariant. */
MUST_CHECK bool tags_dictionary_validate(const struct tag_dictionary *dictionary,
                                         const char **reason);

/* ---- counts, tag_counts.c ----
 *
 * How many entries below an index block have which values: of each index block above level 1.
 *
 *     country, class, platform: 8, 4 and 3 bits
 *     country                    256 rows          a row: a number for each child of the index block
 *     class, platform            128 rows          (and class, and platform)
 *     country, class, platform   32,768 numbers for all children together
 *     clan, guild                where that is too many: a list of those that are not 0, sorted, and the latest
 *                                apart, until they are merged with them
 *     guild                      a second list, without the largest tag, if the next one has many values, too
 *
 * A plan says which combinations of tags have rows, dense numbers and lists. A rank inside a group is the sum of a row
 * up to a child; where no row has all tags of the group, children are asked for their own numbers, and on level 1 the
 * codes of the sheets are read. Values in a combination are side by side, the tag with the most bits first; so each
 * list is in the order of its first tag, and those of one value are found at once. */

enum {
    TAG_COMBINATIONS_MAX = 2 * TAGS_MAX,
    TAG_LISTS_MAX =
        2, /* of the TAGS_BITS_MAX bits, no third tag has too many for rows, and dense numbers */
#ifdef SKIPLIST_TINY
    TAG_ROW_BITS = 3,
    TAG_DENSE_BITS = 5,
    TAG_LATEST_MAX = 3,
    TAG_SORTED_MAX = 24,
    TAG_FILL_CHILDREN = 1,
#else
    TAG_ROW_BITS = 8,    /* a combination of more bits has no rows, */
    TAG_DENSE_BITS = 15, /* nor dense numbers */
    TAG_LATEST_MAX = 128,
    TAG_SORTED_MAX = 128 << 10, /* a list of more is not kept */
    TAG_FILL_CHILDREN = 4,      /* counted in one step */
#endif
};
#define TAG_COUNTS_BEGUN (UINT32_C(1) << 31)

struct tags;
struct tag_slot;

struct tag_combination {
    unsigned tag_mask;
    uint8_t count;
    uint8_t bits;
    uint8_t tags[TAGS_MAX];   /* the most significant first */
    uint8_t shifts[TAGS_MAX]; /* of each tag in the order of the layout: where its value is */
    uint32_t first_row;
};

struct tag_counts_plan {
    uint32_t number; /* another one for each plan */
    uint32_t row_count, combination_count;
    struct tag_combination combinations[TAG_COMBINATIONS_MAX]; /* that have rows */
    struct tag_combination dense;                              /* what has dense numbers */
    /* Of the first list all tags, of the second all but the largest; 0: dense numbers have all. */
    uint32_t list_count;
    struct tag_combination lists[TAG_LISTS_MAX];
};

/* One combination of values that entries have. */
struct tag_count {
    uint32_t values;
    uint32_t count;
};

/* In the order of values, each either sorted or in the latest; some may be counted 0 times. */
struct tag_list {
    uint32_t sorted_count, latest_count, zero_count;
    bool is_crowded; /* has nothing, as it was too much */
    struct tag_count *sorted;
    struct tag_count *latest; /* NULL: not yet needed */
    size_t memory_size;       /* of both */
};

struct tag_counts {
    uint32_t
        number; /* of its plan; with TAG_COUNTS_BEGUN: they are not known yet (tag_counts_fill) */
    struct tag_list lists[TAG_LISTS_MAX];
    uint64_t unknown; /* bit i: the numbers of child i in the rows are not known */
    bool is_narrow;   /* rows have 16 bits: children are of level 1 */
    uint8_t begun;    /* so many of the first children are counted, while not all are */
    /* The dense numbers; then the rows. */
    uint32_t dense[];
};

_Static_assert(INDEX_FANOUT <= 64, "a set of children is a uint64_t");

/* Choose for tags with these bits. The number becomes another one. */
void tag_counts_plan(struct tag_counts_plan *plan, const struct tag_slot *const *slots,
                     uint32_t count);

/* Where a code is counted. A member that moves is counted in several blocks, so this is computed once. */
struct tag_places {
    uint32_t number; /* of the plan; 0: nothing is here */
    uint32_t code;
    uint32_t dense, lists[TAG_LISTS_MAX];
    uint32_t rows[TAG_COMBINATIONS_MAX];
};

/* NULL: no memory. */
MUST_CHECK struct tag_counts *tag_counts_copy(const struct tag_counts_plan *plan,
                                              const struct tag_counts *counts);
size_t tag_counts_memory_size(const struct tag_counts *counts);

/* The rows of a combination's values, and what they have of one child. */
static inline void *tag_counts_row(const struct tag_counts_plan *plan, struct tag_counts *counts,
                                   uint32_t row) {
    uint32_t *rows = counts->dense + (UINT32_C(1) << plan->dense.bits);
    return counts->is_narrow ? (void *)((uint16_t *)(void *)rows + (size_t)row * INDEX_FANOUT)
                             : (void *)(rows + (size_t)row * INDEX_FANOUT);
}
static inline uint32_t tag_counts_at(const struct tag_counts_plan *plan, struct tag_counts *counts,
                                     uint32_t row, uint32_t child) {
    const void *at = tag_counts_row(plan, counts, row);
    return counts->is_narrow ? ((const uint16_t *)at)[child] : ((const uint32_t *)at)[child];
}
/* The first of sorted numbers whose values are not below these. */
uint32_t tag_counts_find(const struct tag_count *sorted, uint32_t count, uint32_t values);

/* ---- of the index blocks of a list: kept true while entries and blocks come, go and move ----
 *
 * Counts may always be missing: without memory they are dropped, and whoever reads counts anew what is missing, within
 * limits, or goes by the children and their sheets. Of an index block the numbers of single children may be unknown. */

/* Entries that one call of a reader may count anew, for those that come after it: about a millisecond. */
enum { TAG_COUNTS_READER_WORK = 128 << 10 };

/* What is counted of an index block above level 1. Where it is not known it is counted, which takes from *work_left,
 * in entries. NULL: more than is left, or no memory. */
struct tag_counts *tag_counts_of(const struct skiplist *list, uint32_t id, uint32_t *work_left);
/* The same in steps, between which entries and blocks may come, go and move: some children's entries, or the rows of one
 * child. Takes from *work_left what it was, or all. true: there is nothing to do any more, or no memory for it. */
MUST_CHECK bool tag_counts_fill(const struct skiplist *list, uint32_t id, uint32_t *work_left);
/* Count what its numbers of this child are; tag_counts_know_child: unless they are known. The same. */
MUST_CHECK bool tag_counts_count_child(const struct skiplist *list, uint32_t id,
                                       struct tag_counts *counts, uint32_t child,
                                       uint32_t *work_left);
MUST_CHECK static inline bool tag_counts_know_child(const struct skiplist *list, uint32_t id,
                                                    struct tag_counts *counts, uint32_t child,
                                                    uint32_t *work_left) {
    return (counts->unknown >> child & 1) == 0 ||
           tag_counts_count_child(list, id, counts, child, work_left);
}

/* Begin to count what is above a leaf, while there is little to count. */
void tag_counts_begin(const struct skiplist *list, uint32_t leaf);
/* Add entries (as uint32_t: 0U - n is n fewer) to all counts above a leaf, before its sheet and the spans change. */
void tag_counts_add_above(const struct skiplist *list, uint32_t leaf, uint32_t code, uint32_t more);

/* Start the cache misses of tag_counts_add_above, which is going to be called. */
void tag_counts_prefetch(const struct skiplist *list, uint32_t leaf, uint32_t code);

/* An index block above level 1 is being split: `at` children stay. The one for whose sake it is done, which is in
 * neither yet, goes right, or left. */
void tag_counts_split(struct skiplist *list, uint32_t left, struct index_block *right, uint32_t at,
                      bool goes_right);
/* The right one's children come behind those of the left one. */
void tag_counts_merge(struct tags *tags, struct index_block *left, struct index_block *right);
/* A child has come to an index block; it has taken entries from its left neighbour. */
void tag_counts_put_child(struct skiplist *list, uint32_t id, uint32_t position);
/* Children have gone, with what was below them. */
void tag_counts_remove_children(struct skiplist *list, uint32_t id, uint32_t position,
                                uint32_t count);
/* What the parent knows of this block, if anything, is not so any more. */
void tag_counts_forget_in_parent(struct skiplist *list, uint32_t id);
/* Forget the counts of an index block above level 1; of a block and of all above it. */
void tag_counts_forget(struct tags *tags, struct index_block *index);
void tag_counts_drop(struct skiplist *list, uint32_t id);

/* Count anew, and compare. NULL: all is right, or what is wrong. */
const char *tag_counts_check(const struct skiplist *list, uint32_t id);

/* ---- sheets ---- */

struct sheet {
    uint32_t generation; /* of struct tags when bits were last cleared here */
    uint16_t count;      /* entries */
    uint16_t capacity;
    uint8_t width; /* bytes of a code: 1, 2 or 4 */
    uint8_t unused[7];
};

/* The bits of a tag in codes, and its values. */
struct tag_slot {
    uint32_t mask;
    uint8_t bits;
    uint8_t
        shift; /* of the lowest; SLOT_IS_SCATTERED: its bits are not side by side, or not in order */
    uint8_t positions[TAGS_BITS_MAX]; /* of its bits, the least significant first */
    struct tag_dictionary values;
    struct tag_slot *next; /* of those that are removed */
};
enum { SLOT_IS_SCATTERED = 255 };

/* What a list with tags has beside it. */
struct tags {
    struct sheet *leaf_sheet;        /* of a list that is one leaf */
    uint32_t code;                   /* of what is being inserted; 0 between two insertions */
    uint32_t generation;             /* one more each time when bits are cleared */
    uint32_t cleared[TAGS_BITS_MAX]; /* the generation in which a bit was cleared last */
    uint32_t count;
    struct tag_slot *slots[TAGS_MAX]; /* in the order of the layout's tags */
    struct tag_counts_plan plan;      /* what is counted */
    struct tag_places places;         /* of the code that was counted last */
    bool is_moving;           /* what is inserted is removed elsewhere: its values stay in use */
    struct tag_slot *removed; /* their values are freed in steps */
    /* Counts of some block may be missing: of this level from the one of this id on, or of a higher one, or before
     * it, where they have been looked for in vain. */
    bool has_gaps;
    uint32_t gap_level, gap_id;
    uint64_t hash_seed;
    size_t memory_size; /* of sheets and counts */
};

/* What a board does with a list's tags: skiplist/tags.c. */
/* Free the tags of a list whose blocks are gone, about work_max values at a time; true when done. */
MUST_CHECK bool tags_free_step(struct skiplist *list, uint32_t work_max);
/* NULL: no memory. */
MUST_CHECK struct tags *tags_copy(const struct tags *tags);
size_t tags_memory_size(const struct skiplist *list);
/* Is there work for tags_step? It frees values of removed tags, and counts what is not known, so that no reader has
 * to: work for about work_max entries. Returns what was done. */
static inline bool tags_have_work(const struct tags *tags) {
    return tags->removed != NULL || tags->has_gaps || tags->count == 0;
}
uint32_t tags_step(struct skiplist *list, uint32_t work_max);
/* Counts are missing: tags_step is to look for them. */
static inline void tags_note_gaps(struct tags *tags) {
    tags->has_gaps = true;
    tags->gap_level = 2;
    tags->gap_id = 0;
}

/* The part of a code that is one tag's: the code of its value. */
uint32_t sheet_slot_gather(const struct tag_slot *slot, uint32_t code); /* of any slot */
static inline uint32_t sheet_slot_extract(const struct tag_slot *slot, uint32_t code) {
    return slot->shift != SLOT_IS_SCATTERED ? (code & slot->mask) >> slot->shift
                                            : sheet_slot_gather(slot, code);
}
uint32_t sheet_slot_deposit(const struct tag_slot *slot, uint32_t value);

/* Entries below a lowest index block. */
static inline uint32_t sheet_count_below(struct index_block *index) {
    return index_narrow_sum(index, index->count);
}

static inline const void *sheet_codes(const struct sheet *sheet) {
    return sheet + 1;
}

static inline uint32_t sheet_get(const struct sheet *sheet, uint32_t index) {
    const void *codes = sheet_codes(sheet);
    return sheet->width == 1   ? ((const uint8_t *)codes)[index]
           : sheet->width == 2 ? ((const uint16_t *)codes)[index]
                               : ((const uint32_t *)codes)[index];
}

static inline void sheet_prefetch_code(const struct sheet *sheet, uint32_t index) {
    memory_prefetch((const char *)sheet_codes(sheet) + (size_t)sheet->width * index);
}

/* The codes of a leaf, whose first one has this index, are going to be read or changed. */
static inline void sheet_prefetch(const struct sheet *sheet, uint32_t first) {
    memory_prefetch(sheet);
    memory_prefetch_lines((const char *)sheet_codes(sheet) + 2 * (size_t)first, 128);
}

/* The sheet of a lowest index block, with all cleared bits cleared; NULL: it has none. */
const struct sheet *sheet_of(const struct skiplist *list, struct index_block *index);
/* The same of a list that is one leaf. */
const struct sheet *sheet_of_leaf(const struct skiplist *list);
/* The code of an entry. */
uint32_t sheet_code(const struct skiplist *list, struct skiplist_place place);
/* Those of many entries, at most SKIPLIST_AT_MAX, at the places of skiplist_begin_place. */
void sheet_codes_at(const struct skiplist *list, const struct skiplist_place *places,
                    uint32_t count, uint32_t *codes);
/* Set the code of an entry. false: no memory, nothing changed. Uses and releases values. */
MUST_CHECK bool sheet_set(struct skiplist *list, struct skiplist_place place, uint32_t code);

/* Make room for count more entries with tags->code at a leaf (SKIPLIST_NONE: the list is empty). false: no
 * memory. */
MUST_CHECK bool sheet_reserve(struct skiplist *list, uint32_t leaf, uint32_t count);
/* For skiplist_plan: give the spare that a lowest index block is going to be split into a sheet, if it needs one.
 * false: no memory. */
MUST_CHECK bool sheet_reserve_split(struct skiplist *list, struct index_block *full,
                                    struct index_block *spare, uint32_t count);
/* count entries with tags->code have come to a leaf, here; there is room. */
void sheet_insert(struct skiplist *list, struct skiplist_place place, uint32_t count);
/* count entries of a leaf are about to be removed. */
void sheet_remove(struct skiplist *list, struct skiplist_place place, uint32_t count);
/* An entry has moved within its leaf, as block_shift has it. */
void sheet_shift(struct skiplist *list, uint32_t leaf, uint32_t from, uint32_t to);

/* A lowest index block is being split: left_count of the entries stay. */
void sheet_split(struct skiplist *list, struct index_block *left, struct index_block *right,
                 uint32_t left_count);
/* The right one is about to become a part of the left one. false: no memory, nothing changed. */
MUST_CHECK bool sheet_merge(struct skiplist *list, uint32_t left, uint32_t right);
/* The only leaf gets an index block above it, and the other way round. */
void sheet_rise(struct skiplist *list, struct index_block *root);
void sheet_sink(struct skiplist *list, struct index_block *root);
/* The children from .. to - 1 of an index block are about to be detached. */
void sheet_detach(struct skiplist *list, uint32_t id, uint32_t from, uint32_t to);
/* Free what an index block has; values of a sheet's entries are released. */
void sheet_free(struct skiplist *list, struct index_block *index);
/* The same for the sheet of a list of one leaf. */
void sheet_free_leaf(struct skiplist *list);
/* The same without releasing values: all are about to go. */
void sheet_forget(struct skiplist *list, struct index_block *index);
/* Copies for an index block of a copied list. false: no memory. */
MUST_CHECK bool sheet_copy(struct skiplist *to, struct index_block *index,
                           const struct index_block *from);
MUST_CHECK bool sheet_copy_leaf(struct skiplist *to, const struct skiplist *from);

/* Count anew which values are used: after a copy that left entries out. */
void sheet_recount(struct skiplist *list);

/* Give a tag's values these codes, by the codes that they have; those are not the slot's dictionary's yet. false: no
 * memory, nothing changed. What is counted is then wrong. */
MUST_CHECK bool sheet_replace_values(struct skiplist *list, const struct tag_slot *slot,
                                     const uint32_t *codes);

/* Check sheets, counts and values against each other. reason: the first violated invariant. */
MUST_CHECK bool sheet_validate(const struct skiplist *list, const char **reason);

#endif
