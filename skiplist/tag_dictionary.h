/* The different values of one tag of a board: value <-> code, each with the number of members that have it.
 *
 *     code   1: "DE" 812    2: "FR" 97    3: free    4: "US" 1204        0: none
 *
 * A value that nobody has is freed at once, and its code is given to the next new one. */
#ifndef SKIPLIST_TAG_DICTIONARY_H
#define SKIPLIST_TAG_DICTIONARY_H

#include "codec/bytes.h"
#include "skiplist/map.h"

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

/* It must not be moved in memory. */
void tag_dictionary_init(struct tag_dictionary *dictionary, uint64_t hash_seed);
/* Deinitialise it in steps of about work_max values; true when done. */
MUST_CHECK bool tag_dictionary_deinit_step(struct tag_dictionary *dictionary, uint32_t work_max);
/* Make `to`, just initialised with the same seed, a copy. false: no memory; it can then be deinitialised. */
MUST_CHECK bool tag_dictionary_copy(const struct tag_dictionary *dictionary,
                                    struct tag_dictionary *to);
size_t tag_dictionary_memory_size(const struct tag_dictionary *dictionary);

/* The code of a value; 0: it is not there. */
uint32_t tag_dictionary_find(const struct tag_dictionary *dictionary, struct bytes value);
/* The same for a value that is added if it is not there, used by nobody yet. 0: no memory. */
MUST_CHECK uint32_t tag_dictionary_take(struct tag_dictionary *dictionary, struct bytes value);
struct bytes tag_dictionary_value(const struct tag_dictionary *dictionary, uint32_t code);
/* One member more has it. */
void tag_dictionary_use(struct tag_dictionary *dictionary, uint32_t code);
/* One member fewer has it. Freed if nobody does. Never fails. */
void tag_dictionary_release(struct tag_dictionary *dictionary, uint32_t code);
/* Free it if nobody has it: after tag_dictionary_take. */
void tag_dictionary_drop(struct tag_dictionary *dictionary, uint32_t code);
/* Count the members anew: begin, use for each value of each member, end. What nobody has is freed in the end. */
void tag_dictionary_begin_recount(struct tag_dictionary *dictionary);
void tag_dictionary_end_recount(struct tag_dictionary *dictionary);
/* The largest code in use. */
uint32_t tag_dictionary_highest(const struct tag_dictionary *dictionary);
/* Which codes to use instead, so that all are at most max, which is not less than there are values: codes[code], for
 * those below end. Those of values that are low enough stay. */
void tag_dictionary_plan_codes(const struct tag_dictionary *dictionary, uint32_t max,
                               uint32_t *codes);
/* Use them. */
void tag_dictionary_move(struct tag_dictionary *dictionary, const uint32_t *codes);
/* Forget the free codes above that one: codes are then as small as they can be. */
void tag_dictionary_trim(struct tag_dictionary *dictionary);

static inline struct tag_value *tag_dictionary_at(const struct tag_dictionary *dictionary,
                                                  uint32_t code) {
    return (struct tag_value *)dictionary->at[code];
}

/* Check the map, the free codes and the sizes. reason: the first violated invariant. */
MUST_CHECK bool tag_dictionary_validate(const struct tag_dictionary *dictionary,
                                        const char **reason);

#endif
