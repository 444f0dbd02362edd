/* See the header. */
#include "skiplist/sheet.h"

#include "codec/memory.h"
#include "skiplist/skiplist.h"

enum {
    ROOM_MIN = 8,
};

/* ---- values ---- */

uint32_t sheet_slot_gather(const struct tag_slot *slot, uint32_t code) {
    uint32_t value = 0;
    for (uint32_t i = 0; i < slot->bits; i++) {
        value |= (code >> slot->positions[i] & 1) << i;
    }
    return value;
}

uint32_t sheet_slot_deposit(const struct tag_slot *slot, uint32_t value) {
    if (slot->shift != SLOT_IS_SCATTERED) {
        return value << slot->shift & slot->mask;
    }
    uint32_t code = 0;
    for (uint32_t i = 0; i < slot->bits; i++) {
        code |= (value >> i & 1) << slot->positions[i];
    }
    return code;
}

/* An entry gets the values of a code, or loses them. */
static inline void sheet_note_values(const struct tags *tags, uint32_t code, bool is_lost) {
    for (uint32_t i = 0; code != 0 && i < tags->count; i++) {
        uint32_t value = sheet_slot_extract(tags->slots[i], code);
        if (value != 0) {
            (is_lost ? tags_dictionary_release : tags_dictionary_use)(&tags->slots[i]->values,
                                                                      value);
        }
    }
}

/* ---- one sheet ---- */

static void sheet_put(struct sheet *sheet, uint32_t index, uint32_t code) {
    void *codes = sheet + 1;
    if (sheet->width == 1) {
        ((uint8_t *)codes)[index] = (uint8_t)code;
    } else if (sheet->width == 2) {
        ((uint16_t *)codes)[index] = (uint16_t)code;
    } else {
        ((uint32_t *)codes)[index] = code;
    }
}

static char *sheet_at(struct sheet *sheet, uint32_t index) {
    return (char *)(sheet + 1) + (size_t)index * sheet->width;
}

static uint8_t sheet_width_for(uint32_t code) {
    return code <= UINT8_MAX ? 1 : code <= UINT16_MAX ? 2 : 4;
}

/* `count` entries without values. NULL: no memory. */
static struct sheet *sheet_create(struct tags *tags, uint32_t count, uint32_t capacity,
                                  uint8_t width) {
    struct sheet *sheet = memory_allocate_zeroed(sizeof *sheet + (size_t)capacity * width);
    if (sheet != NULL) {
        size_t room = (memory_size(sheet) - sizeof *sheet) / width;
        sheet->generation = tags->generation;
        sheet->count = (uint16_t)count;
        sheet->capacity = (uint16_t)(room < UINT16_MAX ? room : UINT16_MAX);
        sheet->width = width;
        tags->memory_size += memory_size(sheet);
    }
    return sheet;
}

static void sheet_destroy(struct tags *tags, struct sheet *sheet) {
    if (sheet != NULL) {
        tags->memory_size -= memory_size(sheet);
        memory_free(sheet);
    }
}

static void sheet_copy_codes(struct sheet *to, uint32_t at, const struct sheet *from,
                             uint32_t from_at, uint32_t count) {
    if (to->width == from->width) {
        memcpy(sheet_at(to, at), (const char *)(from + 1) + (size_t)from_at * from->width,
               (size_t)count * from->width);
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        sheet_put(to, at + i, sheet_get(from, from_at + i));
    }
}

/* Give it other room. false: no memory. */
static bool sheet_resize(struct tags *tags, struct sheet **place, uint32_t capacity,
                         uint8_t width) {
    struct sheet *old = *place;
    struct sheet *sheet = sheet_create(tags, old->count, capacity, width);
    if (sheet == NULL) {
        return false;
    }
    sheet->generation = old->generation;
    sheet_copy_codes(sheet, 0, old, 0, old->count);
    sheet_destroy(tags, old);
    *place = sheet;
    return true;
}

/* Room for at least this many codes of this width. false: no memory. */
static bool sheet_enlarge(struct tags *tags, struct sheet **place, uint32_t capacity,
                          uint8_t width) {
    const struct sheet *old = *place;
    uint8_t wider = old->width > width ? old->width : width;
    return (capacity <= old->capacity && wider == old->width) ||
           sheet_resize(tags, place, capacity + capacity / 16 + ROOM_MIN, wider);
}

/* Give back room that is not needed, if there is memory for that. */
static void sheet_trim(struct tags *tags, struct sheet **place) {
    const struct sheet *old = *place;
    if (old->capacity > old->count + old->count / 8 + 4 * ROOM_MIN) {
        (void)!sheet_resize(tags, place, old->count + ROOM_MIN, old->width);
    }
}

/* Clear what has been cleared since. */
static void sheet_refresh(const struct tags *tags, struct sheet *sheet) {
    uint32_t cleared = 0;
    if (sheet == NULL || sheet->generation == tags->generation) {
        return;
    }
    for (uint32_t i = 0; i < TAGS_BITS_MAX; i++) {
        cleared |= (uint32_t)(tags->cleared[i] > sheet->generation) << i;
    }
    for (uint32_t i = 0; i < sheet->count; i++) {
        sheet_put(sheet, i, sheet_get(sheet, i) & ~cleared);
    }
    sheet->generation = tags->generation;
}

/* ---- where sheets are ---- */

/* The sheet of a leaf's entries, and the place of the first of them in it. */
static struct sheet **sheet_find(const struct skiplist *list, uint32_t leaf, uint32_t *first) {
    *first = 0;
    if (leaf == SKIPLIST_NONE) {
        return &list->tags->leaf_sheet;
    }
    const struct skiplist_node *node = skiplist_node(list, leaf);
    if (node->parent == SKIPLIST_NONE) {
        sheet_refresh(list->tags, list->tags->leaf_sheet);
        return &list->tags->leaf_sheet;
    }
    struct index_block *index = index_at(list, node->parent);
    *first = index_narrow_sum(index, node->position);
    sheet_refresh(list->tags, index->sheet);
    return &index->sheet;
}

const struct sheet *sheet_of(const struct skiplist *list, struct index_block *index) {
    sheet_refresh(list->tags, index->sheet);
    return index->sheet;
}

const struct sheet *sheet_of_leaf(const struct skiplist *list) {
    sheet_refresh(list->tags, list->tags->leaf_sheet);
    return list->tags->leaf_sheet;
}

uint32_t sheet_code(const struct skiplist *list, struct skiplist_place place) {
    uint32_t first;
    struct sheet *const *sheet = sheet_find(list, place.leaf, &first);
    return *sheet != NULL ? sheet_get(*sheet, first + place.index) : 0;
}

/* No leaf is needed: a sheet has the codes of all entries below its index block in their order. */
void sheet_codes_at(const struct skiplist *list, const struct skiplist_place *places,
                    uint32_t count, uint32_t *codes) {
    struct sheet *const *sheets[SKIPLIST_AT_MAX];
    CHECK(count <= SKIPLIST_AT_MAX);
    for (uint32_t i = 0; i < count; i++) {
        const struct skiplist_node *node = skiplist_node(list, places[i].leaf);
        sheets[i] =
            node->level > 0 ? &index_at(list, places[i].leaf)->sheet : &list->tags->leaf_sheet;
        if (*sheets[i] != NULL) {
            memory_prefetch(*sheets[i]);
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        if (*sheets[i] != NULL) {
            sheet_prefetch_code(*sheets[i], places[i].index);
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        sheet_refresh(list->tags, *sheets[i]);
        codes[i] = *sheets[i] != NULL ? sheet_get(*sheets[i], places[i].index) : 0;
    }
}

/* ---- changes of entries ---- */

static bool sheet_reserve_code(struct skiplist *list, uint32_t leaf, uint32_t count,
                               uint32_t code) {
    struct tags *tags = list->tags;
    uint32_t first;
    struct sheet **sheet = sheet_find(list, leaf, &first);
    if (*sheet != NULL) {
        return sheet_enlarge(tags, sheet, (*sheet)->count + count, sheet_width_for(code));
    }
    if (code == 0) {
        return true;
    }
    /* Entries below the index block above the leaf, or in the only leaf. */
    uint32_t parent = leaf != SKIPLIST_NONE ? skiplist_node(list, leaf)->parent : SKIPLIST_NONE;
    uint32_t here = leaf == SKIPLIST_NONE     ? 0
                    : parent == SKIPLIST_NONE ? index_leaf(list, leaf)->count
                                              : sheet_count_below(index_at(list, parent));
    *sheet = sheet_create(tags, here, here + count, sheet_width_for(code));
    return *sheet != NULL;
}

bool sheet_reserve(struct skiplist *list, uint32_t leaf, uint32_t count) {
    return sheet_reserve_code(list, leaf, count, list->tags->code);
}

bool sheet_set(struct skiplist *list, struct skiplist_place place, uint32_t code) {
    uint32_t first;
    if (!sheet_reserve_code(list, place.leaf, 0, code)) {
        return false;
    }
    struct sheet **sheet = sheet_find(list, place.leaf, &first);
    if (*sheet != NULL) {
        uint32_t before = sheet_get(*sheet, first + place.index);
        sheet_note_values(list->tags, code, false);
        tag_counts_begin(list, place.leaf);
        tag_counts_add_above(list, place.leaf, before, 0U - 1);
        tag_counts_add_above(list, place.leaf, code, 1);
        sheet_put(*sheet, first + place.index, code);
        sheet_note_values(list->tags, before, true);
    }
    return true;
}

void sheet_insert(struct skiplist *list, struct skiplist_place place, uint32_t count) {
    uint32_t first, code = list->tags->code;
    struct sheet *sheet = *sheet_find(list, place.leaf, &first);
    if (code != 0) {
        tag_counts_begin(list, place.leaf);
    }
    tag_counts_add_above(list, place.leaf, code, count);
    if (sheet == NULL) {
        CHECK(code == 0);
        return;
    }
    uint32_t at = first + place.index;
    CHECK(sheet->count + count <= sheet->capacity);
    CHECK(at <= sheet->count);
    memmove(sheet_at(sheet, at + count), sheet_at(sheet, at),
            (size_t)(sheet->count - at) * sheet->width);
    sheet->count = (uint16_t)(sheet->count + count);
    for (uint32_t i = 0; i < count; i++) {
        sheet_put(sheet, at + i, code);
        if (!list->tags->is_moving) {
            sheet_note_values(list->tags, code, false);
        }
    }
}

/* Remove codes of a sheet, and release their values. */
static void sheet_take_out(struct skiplist *list, struct sheet *sheet, uint32_t at,
                           uint32_t count) {
    for (uint32_t i = 0; i < count && !list->tags->is_moving; i++) {
        sheet_note_values(list->tags, sheet_get(sheet, at + i), true);
    }
    memmove(sheet_at(sheet, at), sheet_at(sheet, at + count),
            (size_t)(sheet->count - at - count) * sheet->width);
    sheet->count = (uint16_t)(sheet->count - count);
}

void sheet_remove(struct skiplist *list, struct skiplist_place place, uint32_t count) {
    uint32_t first;
    struct sheet *sheet = *sheet_find(list, place.leaf, &first);
    if (sheet == NULL) {
        tag_counts_add_above(list, place.leaf, 0, 0U - count);
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        tag_counts_add_above(list, place.leaf, sheet_get(sheet, first + place.index + i), 0U - 1);
    }
    sheet_take_out(list, sheet, first + place.index, count);
}

void sheet_shift(struct skiplist *list, uint32_t leaf, uint32_t from, uint32_t to) {
    uint32_t first;
    struct sheet *sheet = *sheet_find(list, leaf, &first);
    if (sheet == NULL) {
        return;
    }
    uint32_t code = sheet_get(sheet, first + from);
    if (to > from) {
        to--; /* it leaves its own place */
        memmove(sheet_at(sheet, first + from), sheet_at(sheet, first + from + 1),
                (size_t)(to - from) * sheet->width);
    } else {
        memmove(sheet_at(sheet, first + to + 1), sheet_at(sheet, first + to),
                (size_t)(from - to) * sheet->width);
    }
    sheet_put(sheet, first + to, code);
}

/* ---- changes of index blocks ---- */

bool sheet_reserve_split(struct skiplist *list, struct index_block *full, struct index_block *spare,
                         uint32_t count) {
    const struct sheet *sheet = full->sheet;
    uint32_t code = list->tags->code;
    uint8_t width = sheet_width_for(code);
    if (!full->is_lowest || (sheet == NULL && code == 0)) {
        return true;
    }
    if (sheet != NULL && sheet->width > width) {
        width = sheet->width;
    }
    /* All but one child may go there: sheet_split gives back what is too much. */
    spare->sheet = sheet_create(list->tags, 0, sheet_count_below(full) + count, width);
    return spare->sheet != NULL;
}

void sheet_split(struct skiplist *list, struct index_block *left, struct index_block *right,
                 uint32_t left_count) {
    struct tags *tags = list->tags;
    if (left->sheet == NULL) {
        return;
    }
    struct sheet *from = left->sheet;
    sheet_refresh(tags, from);
    uint32_t count = from->count - left_count;
    CHECK(count <= right->sheet->capacity);
    sheet_copy_codes(right->sheet, 0, from, left_count, count);
    right->sheet->count = (uint16_t)count;
    from->count = (uint16_t)left_count;
    sheet_trim(tags, &left->sheet);
    if (count > 0) { /* else what was appended is about to come, and has its room */
        sheet_trim(tags, &right->sheet);
    }
}

bool sheet_merge(struct skiplist *list, uint32_t left_id, uint32_t right_id) {
    struct tags *tags = list->tags;
    struct index_block *left = index_at(list, left_id), *right = index_at(list, right_id);
    if (!left->is_lowest) {
        tag_counts_forget_in_parent(list, left_id);
        tag_counts_merge(tags, left, right);
        return true;
    }
    if (left->sheet == NULL && right->sheet == NULL) {
        tag_counts_forget_in_parent(list, left_id);
        return true;
    }
    sheet_refresh(tags, left->sheet);
    sheet_refresh(tags, right->sheet);
    uint32_t left_count = sheet_count_below(left), right_count = sheet_count_below(right);
    uint8_t width = right->sheet != NULL ? right->sheet->width : 1;
    if (left->sheet == NULL) {
        left->sheet = sheet_create(tags, left_count, left_count + right_count, width);
    }
    if (left->sheet == NULL ||
        !sheet_enlarge(tags, &left->sheet, left_count + right_count, width)) {
        return false;
    }
    struct sheet *sheet = left->sheet;
    if (right->sheet != NULL) {
        sheet_copy_codes(sheet, left_count, right->sheet, 0, right_count);
    } else {
        memset(sheet_at(sheet, left_count), 0, (size_t)right_count * sheet->width);
    }
    sheet->count = (uint16_t)(left_count + right_count);
    tag_counts_forget_in_parent(list, left_id);
    sheet_destroy(tags, right->sheet);
    right->sheet = NULL;
    return true;
}

void sheet_rise(struct skiplist *list, struct index_block *root) {
    if (root->is_lowest) {
        root->sheet = list->tags->leaf_sheet;
        list->tags->leaf_sheet = NULL;
    }
}

void sheet_sink(struct skiplist *list, struct index_block *root) {
    if (root->is_lowest) {
        list->tags->leaf_sheet = root->sheet;
        root->sheet = NULL;
    } else {
        sheet_free(list, root);
    }
}

void sheet_detach(struct skiplist *list, uint32_t id, uint32_t from, uint32_t to) {
    struct index_block *index = index_at(list, id);
    tag_counts_drop(list, id);
    if (!index->is_lowest || index->sheet == NULL) {
        return;
    }
    sheet_refresh(list->tags, index->sheet);
    uint32_t first = index_narrow_sum(index, from);
    sheet_take_out(list, index->sheet, first, index_narrow_sum(index, to) - first);
}

void sheet_free_leaf(struct skiplist *list) {
    struct sheet *sheet = list->tags->leaf_sheet;
    if (sheet != NULL) {
        sheet_refresh(list->tags, sheet);
        sheet_take_out(list, sheet, 0, sheet->count);
        sheet_destroy(list->tags, sheet);
        list->tags->leaf_sheet = NULL;
    }
}

void sheet_free(struct skiplist *list, struct index_block *index) {
    if (index->is_lowest && index->sheet != NULL) {
        sheet_refresh(list->tags, index->sheet);
        sheet_take_out(list, index->sheet, 0, index->sheet->count);
    }
    sheet_forget(list, index);
}

void sheet_forget(struct skiplist *list, struct index_block *index) {
    if (index->is_lowest) {
        sheet_destroy(list->tags, index->sheet);
        index->sheet = NULL;
    } else {
        tag_counts_forget(list->tags, index);
    }
}

static bool sheet_copy_one(struct tags *tags, struct sheet **to, const struct sheet *from) {
    if (from == NULL) {
        return true;
    }
    *to = sheet_create(tags, from->count, from->count + ROOM_MIN, from->width);
    if (*to == NULL) {
        return false;
    }
    sheet_copy_codes(*to, 0, from, 0, from->count);
    (*to)->generation = from->generation;
    return true;
}

bool sheet_copy(struct skiplist *to, struct index_block *index, const struct index_block *from) {
    if (!index->is_lowest) {
        const struct tag_counts_plan *plan = &to->tags->plan;
        bool is_known = from->counts != NULL && from->counts->number == plan->number;
        index->counts = is_known ? tag_counts_copy(plan, from->counts) : NULL;
        to->tags->memory_size += index->counts != NULL ? tag_counts_memory_size(index->counts) : 0;
        return true;
    }
    index->sheet = NULL;
    return from->sheet == NULL || sheet_copy_one(to->tags, &index->sheet, from->sheet);
}

bool sheet_copy_leaf(struct skiplist *to, const struct skiplist *from) {
    return sheet_copy_one(to->tags, &to->tags->leaf_sheet, from->tags->leaf_sheet);
}

/* ---- recounting ---- */

static void sheet_use_all(const struct tags *tags, const struct sheet *sheet) {
    for (uint32_t i = 0; sheet != NULL && i < sheet->count; i++) {
        sheet_note_values(tags, sheet_get(sheet, i), false);
    }
}

void sheet_recount(struct skiplist *list) {
    const struct tags *tags = list->tags;
    for (uint32_t i = 0; i < tags->count; i++) {
        tags_dictionary_begin_recount(&tags->slots[i]->values);
    }
    sheet_use_all(tags, sheet_of_leaf(list));
    for (uint32_t id = 0; id < list->node_end; id++) {
        const struct skiplist_node *node = skiplist_node(list, id);
        if (node->block != NULL && node->level == 1) {
            sheet_use_all(tags, sheet_of(list, node->block));
        }
    }
    for (uint32_t i = 0; i < tags->count; i++) {
        tags_dictionary_end_recount(&tags->slots[i]->values);
    }
}

/* ---- other codes for values ---- */

struct sheet_replacement {
    struct tags *tags;
    const struct tag_slot *slot;
    const uint32_t *codes;
    bool is_reserving; /* make sheets wide enough, before any is changed */
};

static bool sheet_replace_in(const struct sheet_replacement *replacement, struct sheet **place) {
    const struct tag_slot *slot = replacement->slot;
    sheet_refresh(replacement->tags, *place);
    uint8_t width = 1;
    for (uint32_t i = 0; *place != NULL && i < (*place)->count; i++) {
        uint32_t before = sheet_get(*place, i), value = sheet_slot_extract(slot, before);
        if (replacement->codes[value] == value) {
            continue;
        }
        uint32_t code =
            (before & ~slot->mask) | sheet_slot_deposit(slot, replacement->codes[value]);
        if (!replacement->is_reserving) {
            sheet_put(*place, i, code);
        } else if (sheet_width_for(code) > width) {
            width = sheet_width_for(code);
        }
    }
    return *place == NULL || !replacement->is_reserving ||
           sheet_enlarge(replacement->tags, place, (*place)->count, width);
}

bool sheet_replace_values(struct skiplist *list, const struct tag_slot *slot,
                          const uint32_t *codes) {
    struct sheet_replacement replacement = {
        .tags = list->tags, .slot = slot, .codes = codes, .is_reserving = true};
    for (int round = 0; round < 2; round++) {
        if (!sheet_replace_in(&replacement, &list->tags->leaf_sheet)) {
            return false;
        }
        for (uint32_t id = 0; id < list->node_end; id++) {
            const struct skiplist_node *node = skiplist_node(list, id);
            if (node->block != NULL && node->level == 1 &&
                !sheet_replace_in(&replacement, &((struct index_block *)node->block)->sheet)) {
                return false;
            }
        }
        replacement.is_reserving = false;
    }
    return true;
}

/* ---- checking ---- */

struct sheet_check {
    const struct skiplist *list;
    uint32_t *uses[TAGS_MAX]; /* by code of a value */
    const char *wrong;
};

static void sheet_check_one(struct sheet_check *check, const struct sheet *sheet, uint32_t count) {
    const struct tags *tags = check->list->tags;
    uint32_t known = 0;
    if (sheet == NULL) {
        return;
    }
    if (sheet->count != count || sheet->count > sheet->capacity) {
        check->wrong = "tags: a sheet has not as many codes as there are entries";
        return;
    }
    for (uint32_t i = 0; i < tags->count; i++) {
        known |= tags->slots[i]->mask;
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t code = sheet_get(sheet, i);
        if ((code & ~known) != 0) {
            check->wrong = "tags: a code has bits of no tag";
        }
        for (uint32_t t = 0; t < tags->count; t++) {
            uint32_t value = sheet_slot_extract(tags->slots[t], code);
            if (value >= tags->slots[t]->values.end) {
                check->wrong = "tags: a code has a value that is not there";
            } else if (value != 0) {
                check->uses[t][value]++;
            }
        }
    }
}

static void sheet_check_block(struct sheet_check *check, uint32_t id) {
    const struct skiplist_node *node = skiplist_node(check->list, id);
    if (node->block == NULL || node->level == 0 || check->wrong != NULL) {
        return;
    }
    struct index_block *index = node->block;
    if (!index->is_lowest && index->counts != NULL) {
        check->wrong = tag_counts_check(check->list, id);
    }
    if (index->is_lowest) {
        const struct sheet *sheet = sheet_of(check->list, index);
        bool is_alive = skiplist_is_alive(check->list, id);
        sheet_check_one(check, sheet,
                        is_alive || sheet == NULL ? sheet_count_below(index) : sheet->count);
    }
}

/* Behind the other checks: looking at counts may make some of those below. */
static size_t sheet_sum_memory(const struct skiplist *list) {
    const struct sheet *of_leaf = sheet_of_leaf(list);
    size_t size = of_leaf != NULL ? memory_size(of_leaf) : 0;
    for (uint32_t id = 0; id < list->node_end; id++) {
        const struct skiplist_node *node = skiplist_node(list, id);
        struct index_block *index = node->level > 0 ? node->block : NULL;
        if (index != NULL && index->is_lowest) {
            const struct sheet *sheet = sheet_of(list, index);
            size += sheet != NULL ? memory_size(sheet) : 0;
        } else if (index != NULL && index->counts != NULL) {
            size += tag_counts_memory_size(index->counts);
        }
    }
    return size;
}

bool sheet_validate(const struct skiplist *list, const char **reason) {
    struct sheet_check check = {.list = list};
    const struct tags *tags = list->tags;
    if (tags == NULL) {
        return true;
    }
    bool has_leaf = list->root != SKIPLIST_NONE && skiplist_node(list, list->root)->level == 0;
    for (uint32_t t = 0; t < tags->count; t++) {
        if (!tags_dictionary_validate(&tags->slots[t]->values, reason)) {
            return false;
        }
        check.uses[t] = memory_allocate_zeroed(tags->slots[t]->values.end * sizeof *check.uses[t]);
        CHECK(check.uses[t] != NULL);
    }
    sheet_check_one(&check, sheet_of_leaf(list),
                    has_leaf ? index_leaf(list, list->root)->count : 0);
    for (uint32_t id = 0; id < list->node_end; id++) {
        sheet_check_block(&check, id);
    }
    for (uint32_t t = 0; t < tags->count; t++) {
        const struct tag_dictionary *values = &tags->slots[t]->values;
        for (uint32_t code = 1; code < values->end && check.wrong == NULL; code++) {
            bool is_free = (values->at[code] & 1) != 0;
            uint32_t uses = is_free ? 0 : tags_dictionary_at(values, code)->use_count;
            if (uses != check.uses[t][code]) {
                check.wrong = "tags: the members that have a value are not counted right";
            }
        }
    }
    if (check.wrong == NULL && sheet_sum_memory(list) != tags->memory_size) {
        check.wrong = "tags: memory is not counted right";
    }
    for (uint32_t t = 0; t < tags->count; t++) {
        memory_free(check.uses[t]);
    }
    return check_passed(check.wrong, reason);
}
