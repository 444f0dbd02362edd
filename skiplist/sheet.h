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
 * leaf has its sheet in struct tags. Sheets are the truth; counts (skiplist/tag_counts.h) follow from them and
 * may be missing.
 *
 * skiplist.c and detach.c call this, and skiplist/tag_counts.h, where entries or index blocks come, go or move, and only
 * for lists with tags. */
#ifndef SKIPLIST_SHEET_H
#define SKIPLIST_SHEET_H

#include "codec/tag.h"
#include "skiplist/nodes.h"
#include "skiplist/tag_counts.h"
#include "skiplist/tag_dictionary.h"

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
/* The values of the tags in the mask that a code holds. */
void tags_read(const struct tags *tags, uint32_t code, unsigned mask, struct tag_values *values);

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
    prefetch_line((const char *)sheet_codes(sheet) + (size_t)sheet->width * index);
}

/* The codes of a leaf, whose first one has this index, are going to be read or changed. */
static inline void sheet_prefetch(const struct sheet *sheet, uint32_t first) {
    prefetch_line(sheet);
    prefetch_lines((const char *)sheet_codes(sheet) + 2 * (size_t)first, 128);
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
