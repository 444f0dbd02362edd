/* Values of members: setting, reading, and other tags for the whole board. Groups: skiplist/tag_group.c. */
#include "skiplist/tags.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "codec/memory.h"
#include "skiplist/large_board.h"
#include "skiplist/sheet.h"

/* ---- dictionaries: the values of one tag, skiplist/sheet.h ---- */

enum { CAPACITY_FIRST = 8 };

static uint64_t tags_dictionary_hash(const struct tag_dictionary *dictionary, struct bytes value) {
    return XXH3_64bits_withSeed(value.at, value.size, dictionary->hash_seed);
}

static bool tags_dictionary_is_free(const struct tag_dictionary *dictionary, uint32_t code) {
    CHECK(dictionary->at != NULL); /* there are codes */
    return (dictionary->at[code] & 1) != 0;
}

static uint32_t tags_dictionary_hashes(const void *owner, uint32_t id, uint64_t *hashes) {
    const struct tag_dictionary *dictionary = owner;
    if (id == 0 || id >= dictionary->end || tags_dictionary_is_free(dictionary, id)) {
        return 0;
    }
    hashes[0] = tags_dictionary_hash(dictionary, tags_dictionary_value(dictionary, id));
    return 1;
}

/* It must not be moved in memory. */
static void tags_dictionary_init(struct tag_dictionary *dictionary, uint64_t hash_seed) {
    *dictionary = (struct tag_dictionary){.hash_seed = hash_seed, .end = 1};
    map_init(&dictionary->map, tags_dictionary_hashes, dictionary);
}

/* In steps of about work_max values; true when done. */
static bool tags_dictionary_deinit_step(struct tag_dictionary *dictionary, uint32_t work_max) {
    for (uint32_t work = 0; dictionary->end > 1; work++) {
        if (work >= work_max) {
            return false;
        }
        uint32_t code = --dictionary->end;
        if (!tags_dictionary_is_free(dictionary, code)) {
            memory_free(tags_dictionary_at(dictionary, code));
        }
    }
    if (!map_deinit_step(&dictionary->map)) {
        return false;
    }
    memory_free(dictionary->at);
    tags_dictionary_init(dictionary, dictionary->hash_seed);
    return true;
}

static size_t tags_dictionary_memory_size(const struct tag_dictionary *dictionary) {
    return dictionary->memory_size + map_memory_size(&dictionary->map);
}

struct bytes tags_dictionary_value(const struct tag_dictionary *dictionary, uint32_t code) {
    if (code == 0) {
        return (struct bytes){.size = 0};
    }
    const struct tag_value *value = tags_dictionary_at(dictionary, code);
    return (struct bytes){value->bytes, value->size};
}

uint32_t tags_dictionary_find(const struct tag_dictionary *dictionary, struct bytes value) {
    struct map_find find;
    uint32_t code;
    if (dictionary->count == 0) {
        return 0;
    }
    map_find(&dictionary->map, tags_dictionary_hash(dictionary, value), &find);
    while (map_find_next(&find, &code)) {
        if (bytes_equal(tags_dictionary_value(dictionary, code), value)) {
            return code;
        }
    }
    return 0;
}

/* Make room for one more code. false: no memory. */
static bool tags_dictionary_grow(struct tag_dictionary *dictionary) {
    if (dictionary->free_first != 0 || dictionary->end < dictionary->capacity) {
        return true;
    }
    uint32_t capacity = dictionary->capacity > 0 ? 2 * dictionary->capacity : CAPACITY_FIRST;
    size_t before = dictionary->at != NULL ? memory_size(dictionary->at) : 0;
    uintptr_t *at = memory_resize(dictionary->at, capacity * sizeof *at);
    if (at == NULL) {
        return false;
    }
    dictionary->memory_size += memory_size(at) - before;
    dictionary->at = at;
    dictionary->capacity = capacity;
    return true;
}

static struct tag_value *tags_dictionary_create_value(struct tag_dictionary *dictionary,
                                                      struct bytes from) {
    struct tag_value *value = memory_allocate(sizeof *value + from.size);
    if (value != NULL) {
        *value = (struct tag_value){.size = (uint8_t)from.size};
        memcpy(value->bytes, from.at, from.size);
        dictionary->memory_size += memory_size(value);
    }
    return value;
}

/* As tags_dictionary_find, but a value that is not there is added, used by nobody yet. 0: no memory. */
static uint32_t tags_dictionary_take(struct tag_dictionary *dictionary, struct bytes value) {
    uint32_t code = tags_dictionary_find(dictionary, value);
    if (code != 0) {
        return code;
    }
    if (dictionary->count + 1 >= TAG_CODE_END || !tags_dictionary_grow(dictionary) ||
        !map_reserve(&dictionary->map, 1, dictionary->end + 1)) {
        return 0;
    }
    struct tag_value *made = tags_dictionary_create_value(dictionary, value);
    if (made == NULL) {
        return 0;
    }
    code = dictionary->free_first;
    if (code != 0) {
        dictionary->free_first = (uint32_t)(dictionary->at[code] >> 1);
    } else {
        code = dictionary->end++;
    }
    dictionary->at[code] = (uintptr_t)made;
    dictionary->count++;
    map_put(&dictionary->map, tags_dictionary_hash(dictionary, value), code);
    return code;
}

void tags_dictionary_use(struct tag_dictionary *dictionary, uint32_t code) {
    tags_dictionary_at(dictionary, code)->use_count++;
}

/* Free it if nobody has it: after tags_dictionary_take. */
static void tags_dictionary_drop(struct tag_dictionary *dictionary, uint32_t code) {
    struct tag_value *value = tags_dictionary_at(dictionary, code);
    if (value->use_count > 0) {
        return;
    }
    map_remove(&dictionary->map,
               tags_dictionary_hash(dictionary, (struct bytes){value->bytes, value->size}), code);
    dictionary->memory_size -= memory_size(value);
    memory_free(value);
    dictionary->at[code] = (uintptr_t)dictionary->free_first << 1 | 1;
    dictionary->free_first = code;
    dictionary->count--;
    (void)map_step(&dictionary->map, dictionary->end);
    if (dictionary->count == 0) {
        dictionary->memory_size -= memory_size(dictionary->at);
        memory_free(dictionary->at);
        dictionary->at = NULL;
        dictionary->capacity = dictionary->free_first = 0;
        dictionary->end = 1;
    }
}

void tags_dictionary_release(struct tag_dictionary *dictionary, uint32_t code) {
    CHECK(tags_dictionary_at(dictionary, code)->use_count > 0);
    tags_dictionary_at(dictionary, code)->use_count--;
    tags_dictionary_drop(dictionary, code);
}

void tags_dictionary_begin_recount(struct tag_dictionary *dictionary) {
    for (uint32_t code = 1; code < dictionary->end; code++) {
        if (!tags_dictionary_is_free(dictionary, code)) {
            tags_dictionary_at(dictionary, code)->use_count = 0;
        }
    }
}

void tags_dictionary_end_recount(struct tag_dictionary *dictionary) {
    for (uint32_t code = 1; code < dictionary->end; code++) {
        if (!tags_dictionary_is_free(dictionary, code)) {
            tags_dictionary_drop(dictionary, code);
        }
    }
}

static uint32_t tags_dictionary_highest(const struct tag_dictionary *dictionary) {
    uint32_t code = dictionary->end - 1;
    while (code > 0 && tags_dictionary_is_free(dictionary, code)) {
        code--;
    }
    return code;
}

/* Which codes to use instead, so that all are at most max, which is not less than there are values: codes[code], for
 * those below end. Those of values that are low enough stay. */
static void tags_dictionary_plan_codes(const struct tag_dictionary *dictionary, uint32_t max,
                                       uint32_t *codes) {
    uint32_t next = 1;
    CHECK(dictionary->count <= max);
    for (uint32_t code = 0; code < dictionary->end; code++) {
        codes[code] = code;
        if (code > max && !tags_dictionary_is_free(dictionary, code)) {
            while (!tags_dictionary_is_free(dictionary, next)) {
                next++;
            }
            codes[code] = next++;
        }
    }
}

/* Forget the free codes above the largest one in use: codes are then as small as they can be. */
static void tags_dictionary_trim(struct tag_dictionary *dictionary) {
    dictionary->end = tags_dictionary_highest(dictionary) + 1;
    dictionary->free_first = 0;
    for (uint32_t code = dictionary->end; code-- > 1;) {
        if (tags_dictionary_is_free(dictionary, code)) {
            dictionary->at[code] = (uintptr_t)dictionary->free_first << 1 | 1;
            dictionary->free_first = code;
        }
    }
}

static void tags_dictionary_move(struct tag_dictionary *dictionary, const uint32_t *codes) {
    for (uint32_t code = 1; code < dictionary->end; code++) {
        if (codes[code] != code) {
            struct bytes value = tags_dictionary_value(dictionary, code);
            map_replace(&dictionary->map, tags_dictionary_hash(dictionary, value), code,
                        codes[code]);
            dictionary->at[codes[code]] = dictionary->at[code];
            dictionary->at[code] = 1;
        }
    }
    tags_dictionary_trim(dictionary);
}

/* false: no memory; `to`, just initialised with the same seed, can then be deinitialised. */
static bool tags_dictionary_copy(const struct tag_dictionary *dictionary,
                                 struct tag_dictionary *to) {
    if (dictionary->end == 1) {
        return true;
    }
    to->at = memory_allocate(dictionary->capacity * sizeof *to->at);
    if (to->at == NULL) {
        return false;
    }
    to->capacity = dictionary->capacity;
    to->memory_size = memory_size(to->at);
    for (; to->end < dictionary->end; to->end++) {
        to->at[to->end] = dictionary->at[to->end];
        if (!tags_dictionary_is_free(dictionary, to->end)) {
            const struct tag_value *from = tags_dictionary_at(dictionary, to->end);
            struct tag_value *value =
                tags_dictionary_create_value(to, (struct bytes){from->bytes, from->size});
            if (value == NULL) {
                return false;
            }
            value->use_count = from->use_count;
            to->at[to->end] = (uintptr_t)value;
        }
    }
    to->free_first = dictionary->free_first;
    to->count = dictionary->count;
    return map_copy(&dictionary->map, &to->map);
}

bool tags_dictionary_validate(const struct tag_dictionary *dictionary, const char **reason) {
    uint32_t free_count = 0, count = 0;
    size_t size = dictionary->at != NULL ? memory_size(dictionary->at) : 0;
    const char *wrong = NULL;
    for (uint32_t code = dictionary->free_first; code != 0;) {
        if (code >= dictionary->end || !tags_dictionary_is_free(dictionary, code) ||
            ++free_count >= dictionary->end) {
            wrong = "tags: a free code is wrong";
            break;
        }
        code = (uint32_t)(dictionary->at[code] >> 1);
    }
    for (uint32_t code = 1; code < dictionary->end && wrong == NULL; code++) {
        if (tags_dictionary_is_free(dictionary, code)) {
            continue;
        }
        count++;
        size += memory_size(tags_dictionary_at(dictionary, code));
        if (tags_dictionary_at(dictionary, code)->use_count == 0) {
            wrong = "tags: a value that nobody has is there";
        } else if (tags_dictionary_find(dictionary, tags_dictionary_value(dictionary, code)) !=
                   code) {
            wrong = "tags: a value has two codes, or is not found";
        }
    }
    if (wrong == NULL &&
        (count != dictionary->count || count + free_count + 1 != dictionary->end)) {
        wrong = "tags: values are not counted right";
    }
    if (wrong == NULL && size != dictionary->memory_size) {
        wrong = "tags: memory of values is not counted right";
    }
    return check_passed(wrong, reason) && map_validate(&dictionary->map, reason);
}

/* ---- how many ---- */

bool tags_has_values(const struct board *board) {
    if (!board->is_large || board->large->list.tags == NULL) {
        return false;
    }
    const struct tags *tags = board->large->list.tags;
    for (uint32_t i = 0; i < tags->count; i++) {
        if (tags->slots[i]->values.count > 0) {
            return true;
        }
    }
    return false;
}

uint32_t tags_count_values(const struct board *board, unsigned tag) {
    return board->is_large && board->large->list.tags != NULL
               ? board->large->list.tags->slots[tag]->values.count
               : 0;
}

/* ---- which bits are whose ---- */

/* The slot's bits are those at positions[0 .. bits - 1]. */
static void tags_settle_bits(struct tag_slot *slot) {
    bool is_in_order = true;
    slot->mask = 0;
    for (unsigned i = 0; i < slot->bits; i++) {
        slot->mask |= UINT32_C(1) << slot->positions[i];
        is_in_order = is_in_order && slot->positions[i] == slot->positions[0] + i;
    }
    slot->shift = is_in_order ? slot->positions[0] : SLOT_IS_SCATTERED;
}

/* Give the slot bits that nobody uses, until it has `bits`: side by side where that is possible. */
static void tags_add_bits(struct tag_slot *slot, unsigned bits, uint32_t *used) {
    unsigned more = bits - slot->bits;
    unsigned shift = slot->bits > 0 ? slot->positions[slot->bits - 1] + 1U : 0;
    unsigned last = slot->bits > 0 ? shift : TAGS_BITS_MAX;
    uint64_t run = (UINT64_C(1) << more) - 1;
    while (shift <= last && (shift + more > TAGS_BITS_MAX || (*used & run << shift) != 0)) {
        shift++;
    }
    bool is_together = shift <= last;
    for (unsigned at = is_together ? shift : 0; slot->bits < bits; at++) {
        if ((*used >> at & 1) == 0) {
            slot->positions[slot->bits++] = (uint8_t)at;
            *used |= UINT32_C(1) << at;
        }
    }
    tags_settle_bits(slot);
}

static struct tag_slot *tags_create_slot(const struct tags *tags) {
    struct tag_slot *slot = memory_allocate_zeroed(sizeof *slot);
    if (slot != NULL) {
        tags_dictionary_init(&slot->values, tags->hash_seed);
    }
    return slot;
}

/* ---- the whole ---- */

static struct tags *tags_create(uint64_t hash_seed) {
    struct tags *tags = memory_allocate_zeroed(sizeof *tags);
    if (tags != NULL) {
        tags->hash_seed = hash_seed;
    }
    return tags;
}

/* Values of removed tags, as many as there is work left. false: there are more. */
static bool tags_free_removed(struct tags *tags, uint32_t *work_left) {
    while (tags->removed != NULL) {
        struct tag_slot *slot = tags->removed;
        uint32_t before = slot->values.end;
        if (*work_left == 0 || !tags_dictionary_deinit_step(&slot->values, *work_left)) {
            uint32_t work = before - slot->values.end;
            *work_left -= work < *work_left ? work : *work_left;
            return false;
        }
        *work_left -= before < *work_left ? before : *work_left;
        tags->removed = slot->next;
        memory_free(slot);
    }
    return true;
}

/* The last tag has been removed: free all sheets, and in the end the struct tags itself. */
static void tags_free_sheets(struct skiplist *list, uint32_t *work_left) {
    struct tags *tags = list->tags;
    for (; tags->gap_id < list->node_end; tags->gap_id++) {
        const struct skiplist_node *node = skiplist_node(list, tags->gap_id);
        if (*work_left == 0) {
            return;
        }
        *work_left -= 1;
        if (node->block != NULL && node->level > 0) {
            sheet_forget(list, node->block);
        }
    }
    if (tags->leaf_sheet != NULL) {
        sheet_free_leaf(list);
    }
    tags->gap_id = 0; /* blocks may have got other ids on the way: once more then */
    if (tags->memory_size == 0) {
        memory_free(tags);
        skiplist_set_tags(list, NULL);
    }
}

/* Count what is not known, level by level: of a higher one it is the sum of what is below. */
static void tags_fill_gaps(struct skiplist *list, uint32_t *work_left) {
    struct tags *tags = list->tags;
    while (tags->gap_id < list->node_end) {
        const struct skiplist_node *node = skiplist_node(list, tags->gap_id);
        bool is_alive = node->block != NULL && node->level == tags->gap_level &&
                        skiplist_is_alive(list, tags->gap_id);
        if (*work_left == 0) {
            return;
        }
        *work_left -= 1;
        tags->gap_id += !is_alive || tag_counts_fill(list, tags->gap_id, work_left);
    }
    tags->has_gaps =
        list->root != SKIPLIST_NONE && tags->gap_level < skiplist_node(list, list->root)->level;
    tags->gap_level++;
    tags->gap_id = 0;
}

uint32_t tags_step(struct skiplist *list, uint32_t work_max) {
    uint32_t work_left = work_max;
    if (!tags_free_removed(list->tags, &work_left)) {
        return work_max - work_left;
    }
    if (list->tags->count == 0) {
        tags_free_sheets(list, &work_left);
    } else if (list->tags->has_gaps) {
        tags_fill_gaps(list, &work_left);
    }
    return work_max - work_left;
}

bool tags_free_step(struct skiplist *list, uint32_t work_max) {
    struct tags *tags = list->tags;
    for (; tags->count > 0; tags->count--) {
        struct tag_slot *slot = tags->slots[tags->count - 1];
        if (!tags_dictionary_deinit_step(&slot->values, work_max)) {
            return false;
        }
        memory_free(slot);
    }
    if (!tags_free_removed(tags, &work_max)) {
        return false;
    }
    if (tags->leaf_sheet != NULL) {
        sheet_free_leaf(list);
    }
    memory_free(tags);
    skiplist_set_tags(list, NULL);
    return true;
}

static void tags_destroy(struct tags *tags) {
    struct skiplist own = {.tags = tags};
    while (!tags_free_step(&own, UINT32_MAX)) {
        continue;
    }
}

struct tags *tags_copy(const struct tags *tags) {
    struct tags *copy = tags_create(tags->hash_seed);
    if (copy == NULL) {
        return NULL;
    }
    copy->generation = tags->generation;
    memcpy(copy->cleared, tags->cleared, sizeof copy->cleared);
    copy->plan = tags->plan;
    for (; copy->count < tags->count; copy->count++) {
        const struct tag_slot *from = tags->slots[copy->count];
        struct tag_slot *slot = tags_create_slot(copy);
        if (slot == NULL) {
            tags_destroy(copy);
            return NULL;
        }
        memcpy(slot->positions, from->positions, sizeof slot->positions);
        slot->bits = from->bits;
        tags_settle_bits(slot);
        copy->slots[copy->count] = slot;
        if (!tags_dictionary_copy(&from->values, &slot->values)) {
            copy->count++;
            tags_destroy(copy);
            return NULL;
        }
    }
    return copy;
}

size_t tags_memory_size(const struct skiplist *list) {
    const struct tags *tags = list->tags;
    size_t size = memory_size(tags) + tags->memory_size;
    for (uint32_t i = 0; i < tags->count; i++) {
        size += memory_size(tags->slots[i]) + tags_dictionary_memory_size(&tags->slots[i]->values);
    }
    for (const struct tag_slot *slot = tags->removed; slot != NULL; slot = slot->next) {
        size += memory_size(slot) + tags_dictionary_memory_size(&slot->values);
    }
    return size;
}

/* Choose what is counted, after a change of slots. */
static void tags_plan_counts(struct tags *tags) {
    const struct tag_slot *const *slots = (const struct tag_slot *const *)tags->slots;
    tag_counts_plan(&tags->plan, slots, tags->count);
}

/* The board's tags as the layout has them, nobody has a value yet. NULL: no memory. */
static struct tags *tags_begin(const struct board *board) {
    const struct tag_set *set = &board_layout(board)->tags;
    struct tags *tags = tags_create(board->hash_seed);
    uint32_t used = 0;
    while (tags != NULL && tags->count < set->count) {
        struct tag_slot *slot = tags_create_slot(tags);
        if (slot == NULL) {
            tags_destroy(tags);
            return NULL;
        }
        tags_add_bits(slot, set->tags[tags->count].bits, &used);
        tags->slots[tags->count++] = slot;
    }
    if (tags != NULL) {
        tags_plan_counts(tags);
    }
    return tags;
}

/* ---- values of a member ---- */

static uint64_t tags_values_max(unsigned bits) {
    uint64_t max = (UINT64_C(1) << bits) - 1;
    return max < TAG_CODE_END - 2 ? max : TAG_CODE_END - 2;
}

bool tags_fit(const struct board *board, const struct tag_values *values, unsigned *full) {
    const struct tags *tags = board_tags(board);
    const struct tag_set *set = &board_layout(board)->tags;
    for (unsigned i = 0; i < set->count; i++) {
        if ((values->mask >> i & 1) == 0 || values->at[i].size == 0 || tags == NULL) {
            continue;
        }
        const struct tag_dictionary *dictionary = &tags->slots[i]->values;
        if (dictionary->count >= tags_values_max(set->tags[i].bits) &&
            tags_dictionary_find(dictionary, values->at[i]) == 0) {
            *full = i;
            return false;
        }
    }
    return true;
}

/* Values that nobody has, of those in the mask, go. */
static void tags_drop_unused(struct tags *tags, const uint32_t *codes, unsigned mask) {
    for (unsigned i = 0; i < tags->count; i++) {
        if ((mask >> i & 1) != 0 && codes[i] != 0) {
            tags_dictionary_drop(&tags->slots[i]->values, codes[i]);
        }
    }
}

/* The codes of the values, which are added where they are missing. */
static enum tags_status tags_take_values(struct tags *tags, const struct tag_values *values,
                                         uint32_t *codes, unsigned *full) {
    for (unsigned i = 0; i < tags->count; i++) {
        codes[i] = 0;
        if ((values->mask >> i & 1) == 0 || values->at[i].size == 0) {
            continue;
        }
        struct tag_dictionary *dictionary = &tags->slots[i]->values;
        bool is_full = dictionary->count >= tags_values_max(tags->slots[i]->bits) &&
                       tags_dictionary_find(dictionary, values->at[i]) == 0;
        codes[i] = is_full ? 0 : tags_dictionary_take(dictionary, values->at[i]);
        if (codes[i] == 0) {
            tags_drop_unused(tags, codes, (1U << i) - 1);
            *full = i;
            return is_full ? TAGS_FULL : TAGS_OUT_OF_MEMORY;
        }
    }
    return TAGS_OK;
}

/* Make the board, on which nobody has a value, one that has values. false: no memory, nothing changed. */
static bool tags_make(struct board *board) {
    bool was_large = board->is_large;
    if (!was_large && !board_make_itself_large(board)) {
        return false;
    }
    skiplist_set_tags(&board->large->list, tags_begin(board));
    if (board->large->list.tags == NULL && !was_large) {
        (void)board_make_small(board);
    }
    return board->is_large && board->large->list.tags != NULL;
}

static enum tags_status tags_put_at(struct board *board, struct skiplist_place place,
                                    const struct tag_values *values, unsigned *full) {
    if (board_tags(board) == NULL) {
        bool has_any = false;
        for (unsigned i = 0; i < TAGS_MAX; i++) {
            has_any = has_any || ((values->mask >> i & 1) != 0 && values->at[i].size > 0);
        }
        if (!has_any) {
            return TAGS_SAME;
        }
        if (!tags_make(board)) {
            return TAGS_OUT_OF_MEMORY;
        }
    }
    struct skiplist *list = &board->large->list;
    struct tags *tags = list->tags;
    uint32_t codes[TAGS_MAX], before = sheet_code(list, place), code = before;
    enum tags_status status = tags_take_values(tags, values, codes, full);
    if (status != TAGS_OK) {
        return status;
    }
    for (unsigned i = 0; i < tags->count; i++) {
        if ((values->mask >> i & 1) != 0) {
            code = (code & ~tags->slots[i]->mask) | sheet_slot_deposit(tags->slots[i], codes[i]);
        }
    }
    if (code == before) {
        status = TAGS_SAME;
    } else if (!sheet_set(list, place, code)) {
        tags_drop_unused(tags, codes, values->mask);
        status = TAGS_OUT_OF_MEMORY;
    }
    return status;
}

enum tags_status tags_set(struct board *board, const struct board_member *member,
                          const struct tag_values *values, unsigned *full) {
    return tags_put_at(board, board_place_of(member), values, full);
}

enum tags_status tags_set_at(struct board *board, uint32_t rank, const struct tag_values *values,
                             unsigned *full) {
    return tags_put_at(board, board_place_at(board, rank), values, full);
}

size_t tags_growth_size(const struct board *board, uint32_t count) {
    enum { ENTRIES = INDEX_FANOUT * BLOCK_ENTRIES_MAX, VALUE = 2 * TAG_VALUE_MAX, MAP = 64 << 10 };
    /* At worst each of them is in another sheet. */
    uint32_t sheets = board_count(board) / (ENTRIES / 8) + 2;
    size_t each = sizeof(struct sheet) + sizeof(uint32_t) * ENTRIES;
    return sizeof(struct tags) + sizeof(struct large_board) +
           TAGS_MAX * (sizeof(struct tag_slot) + VALUE + MAP) +
           (count < sheets ? count : sheets) * each;
}

/* The values that a code holds. */
static void tags_read(const struct tags *tags, uint32_t code, struct tag_values *values) {
    values->mask = 0;
    for (unsigned i = 0; i < tags->count; i++) {
        uint32_t value = sheet_slot_extract(tags->slots[i], code);
        values->at[i] = value != 0 ? tags_dictionary_value(&tags->slots[i]->values, value)
                                   : (struct bytes){.size = 0};
        values->mask |= (unsigned)(value != 0) << i;
    }
}

void tags_of(const struct board *board, const struct board_member *member,
             struct tag_values *values) {
    struct skiplist_place place = board_place_of(member);
    const struct tags *tags = board_tags(board);
    *values = (struct tag_values){.mask = 0};
    if (tags != NULL) {
        tags_read(tags, sheet_code(&board->large->list, place), values);
    }
}

/* places: as skiplist_begin_place has them; nothing if nobody has tags. */
static void tags_read_many(const struct board *board, const struct skiplist_place *places,
                           uint32_t count, struct tag_values *values) {
    const struct tags *tags = board_tags(board);
    uint32_t codes[SKIPLIST_AT_MAX];
    if (tags != NULL) {
        sheet_codes_at(&board->large->list, places, count, codes);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (tags != NULL) {
            tags_read(tags, codes[i], &values[i]);
        } else {
            values[i] = (struct tag_values){.mask = 0};
        }
    }
}

void tags_at_many(const struct board *board, const uint32_t *ranks, uint32_t count,
                  struct tag_values *values) {
    struct skiplist_place places[SKIPLIST_AT_MAX];
    CHECK(count <= SKIPLIST_AT_MAX);
    for (uint32_t i = 0; i < count && board_tags(board) != NULL; i++) {
        CHECK(ranks[i] < board_count(board));
        skiplist_begin_place(&board->large->list, ranks[i], &places[i]);
    }
    tags_read_many(board, places, count, values);
}

void tags_below_many(const struct board *board, const struct board_below *below, uint32_t count,
                     struct tag_values *values) {
    struct skiplist_place places[SKIPLIST_AT_MAX];
    CHECK(count <= SKIPLIST_AT_MAX);
    for (uint32_t i = 0; i < count; i++) {
        places[i] = (struct skiplist_place){.leaf = below[i].block, .index = below[i].index};
    }
    tags_read_many(board, places, count, values);
}

void tags_at(const struct board *board, uint32_t rank, struct tag_values *values) {
    tags_at_many(board, &rank, 1, values);
}

/* ---- other tags ---- */

/* Which old tag each new one was; TAGS_MAX: none. */
static void tags_match(const struct tag_set *before, const struct tag_set *after, unsigned *old) {
    for (unsigned i = 0; i < after->count; i++) {
        const char *name = after->tags[i].name;
        int found = tag_set_find(before, (struct bytes){name, strlen(name)});
        old[i] = found >= 0 ? (unsigned)found : TAGS_MAX;
    }
}

static bool tags_keeps_codes(const struct tag_slot *slot, unsigned bits) {
    return bits >= slot->bits || tags_dictionary_highest(&slot->values) <= tags_values_max(bits);
}

bool tags_keep_codes(const struct board *board, const struct layout *layout) {
    const struct tags *tags = board_tags(board);
    const struct tag_set *after = &layout->tags;
    unsigned old[TAGS_MAX];
    bool are_kept = true;
    tags_match(&board_layout(board)->tags, after, old);
    for (unsigned i = 0; tags != NULL && i < after->count && are_kept; i++) {
        are_kept = old[i] == TAGS_MAX || tags_keeps_codes(tags->slots[old[i]], after->tags[i].bits);
    }
    return are_kept;
}

/* Let the tag have so few bits, in which its values have room: their codes must fit as well. false: no memory. */
static bool tags_fit_codes(struct skiplist *list, struct tag_slot *slot, unsigned bits) {
    if (tags_keeps_codes(slot, bits)) {
        return true;
    }
    uint64_t max = tags_values_max(bits);
    uint32_t *codes = memory_allocate(slot->values.end * sizeof *codes);
    if (codes == NULL) {
        return false;
    }
    tags_dictionary_plan_codes(&slot->values, (uint32_t)max, codes);
    bool is_done = sheet_replace_values(list, slot, codes);
    if (is_done) {
        tags_dictionary_move(&slot->values, codes);
        tags_plan_counts(list->tags);
        tags_note_gaps(list->tags);
    }
    memory_free(codes);
    return is_done;
}

static void tags_clear(struct tags *tags, uint32_t bits) {
    if (bits == 0) {
        return;
    }
    tags->generation++;
    for (unsigned i = 0; i < TAGS_BITS_MAX; i++) {
        if ((bits >> i & 1) != 0) {
            tags->cleared[i] = tags->generation;
        }
    }
}

/* Slots for tags that are new. false: no memory. */
static bool tags_add_slots(const struct tags *tags, const struct tag_set *after,
                           const unsigned *old, struct tag_slot **slots) {
    for (unsigned i = 0; i < after->count; i++) {
        slots[i] = old[i] < TAGS_MAX ? tags->slots[old[i]] : tags_create_slot(tags);
        if (slots[i] == NULL) {
            while (i-- > 0) {
                if (old[i] == TAGS_MAX) {
                    memory_free(slots[i]);
                }
            }
            return false;
        }
    }
    return true;
}

enum tags_status tags_alter(struct board *board, const struct layout *layout, unsigned *full) {
    struct tags *tags = board->is_large ? board->large->list.tags : NULL;
    const struct tag_set *before = &board_layout(board)->tags, *after = &layout->tags;
    unsigned old[TAGS_MAX];
    struct tag_slot *slots[TAGS_MAX];
    if (tags == NULL) {
        board->layout = layout;
        return TAGS_OK;
    }
    tags_match(before, after, old);
    for (unsigned i = 0; i < after->count; i++) {
        if (old[i] < TAGS_MAX &&
            tags->slots[old[i]]->values.count > tags_values_max(after->tags[i].bits)) {
            *full = i;
            return TAGS_FULL;
        }
    }
    for (unsigned i = 0; i < after->count; i++) {
        if (old[i] < TAGS_MAX &&
            !tags_fit_codes(&board->large->list, tags->slots[old[i]], after->tags[i].bits)) {
            return TAGS_OUT_OF_MEMORY;
        }
    }
    if (!tags_add_slots(tags, after, old, slots)) {
        return TAGS_OUT_OF_MEMORY;
    }
    uint32_t bits_before = 0, used = 0;
    bool is_kept[TAGS_MAX] = {false};
    for (unsigned i = 0; i < tags->count; i++) {
        bits_before |= tags->slots[i]->mask;
    }
    for (unsigned i = 0; i < after->count; i++) {
        if (old[i] < TAGS_MAX) {
            is_kept[old[i]] = true;
            if (slots[i]->bits > after->tags[i].bits) {
                slots[i]->bits = after->tags[i].bits;
                tags_settle_bits(slots[i]);
                tags_dictionary_trim(&slots[i]->values);
            }
            used |= slots[i]->mask;
        }
    }
    /* What was a removed tag's, or was cut off, is 0 in all codes before it is given away. */
    tags_clear(tags, bits_before & ~used);
    for (unsigned i = 0; i < after->count; i++) {
        tags_add_bits(slots[i], after->tags[i].bits, &used);
    }
    for (unsigned i = 0; i < tags->count; i++) {
        if (!is_kept[i]) {
            tags->slots[i]->next = tags->removed;
            tags->removed = tags->slots[i];
        }
    }
    tags->count = after->count;
    memcpy(tags->slots, slots, after->count * sizeof(struct tag_slot *));
    tags_plan_counts(tags);
    tags_note_gaps(tags);
    board->layout = layout;
    return TAGS_OK;
}
