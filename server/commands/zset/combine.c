/* Boards are walked in runs of adjacent members. What the members of a run need from other boards,
 * or from the tally, is prefetched for the whole run first, because nearly all time would be spent
 * waiting for memory otherwise. */
#include "server/commands/zset/combine.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "codec/memory.h"
#include "skiplist/block.h"
#include "skiplist/lookup.h"

/* ---- the tally ---- */

/* Slots: an entry's home slot is its hash32 * slot_count >> 32; collisions probe the following
 * slots. At least half the slots are free. A slot stores the hash's upper half, so growing reads no
 * entries, and members are compared only if the halves are equal. Entries are never removed. */

enum {
    CAPACITY_MIN = 16,
    AHEAD = 8, /* prefetch distance of members; entries are prefetched at twice this distance */
};
#define NO_CANDIDATE UINT32_MAX

void combine_tally_init(struct tally *tally, uint64_t hash_seed) {
    *tally = (struct tally){.hash_seed = hash_seed};
}

void combine_tally_deinit(struct tally *tally) {
    memory_free(tally->entries);
    memory_free(tally->slots);
    memory_free(tally->order);
    memory_free(tally->spare);
    memory_free(tally->runs);
    combine_tally_init(tally, tally->hash_seed);
}

/* The last ones go. What cannot be made smaller goes at once, later. */
static bool combine_tally_shrink(void **at, uint64_t *count, size_t size) {
    enum { PIECE_SIZE = 4 << 20 };
    uint64_t piece = PIECE_SIZE / size;
    if (*at == NULL || *count <= piece) {
        return false;
    }
    void *smaller = memory_resize(*at, (*count - piece) * size);
    *count -= smaller != NULL ? piece : *count;
    *at = smaller != NULL ? smaller : *at;
    return smaller != NULL;
}

bool combine_tally_free_step(struct tally *tally) {
    void *entries = tally->entries, *slots = tally->slots;
    bool has_more = combine_tally_shrink(&entries, &tally->capacity, sizeof *tally->entries) ||
                    combine_tally_shrink(&slots, &tally->slot_count, sizeof *tally->slots);
    tally->entries = entries;
    tally->slots = slots;
    return has_more;
}

static uint64_t combine_tally_home_of(uint64_t hash, uint64_t slot_count) {
    return ((hash >> 32) * slot_count) >> 32;
}

/* Room for look-up of so many entries in all, so that it need not grow while they come. */
static bool combine_tally_reserve_slots(struct tally *tally, uint64_t count) {
    uint64_t slot_count = count * 2;
    if (slot_count <= tally->slot_count) {
        return true;
    }
    uint64_t *slots = memory_allocate_zeroed(slot_count * sizeof(*slots));
    if (slots == NULL) {
        return false;
    }
    for (uint64_t i = 0; i < tally->slot_count; i++) {
        if (tally->slots[i] != 0) {
            uint64_t at = combine_tally_home_of(tally->slots[i], slot_count);
            while (slots[at] != 0) {
                at = at + 1 == slot_count ? 0 : at + 1;
            }
            slots[at] = tally->slots[i];
        }
    }
    memory_free(tally->slots);
    tally->slots = slots;
    tally->slot_count = slot_count;
    return true;
}

/* Room for count more entries; with_slots: also for look-up by member. false: out of memory. */
static bool combine_tally_reserve(struct tally *tally, uint32_t count, bool with_slots) {
    uint64_t needed = (uint64_t)tally->count + count;
    if (needed >= UINT32_MAX) {
        return false; /* an index + 1 would not fit a slot, nor the result a board */
    }
    if (needed > tally->capacity) {
        uint64_t doubled = tally->capacity * 2 > CAPACITY_MIN ? tally->capacity * 2 : CAPACITY_MIN;
        uint64_t capacity = needed > doubled ? needed : doubled;
        struct tally_entry *entries =
            memory_resize(tally->entries, capacity * sizeof(*tally->entries));
        if (entries == NULL) {
            return false;
        }
        tally->entries = entries;
        tally->capacity = capacity;
    }
    return !with_slots || tally->slot_count >= needed * 2 ||
           combine_tally_reserve_slots(tally, tally->capacity);
}

/* An entry for a member that has none, whose result is to be filled in; arrival is the number of entries before it. Room
 * is reserved. */
static struct tally_entry *combine_tally_add(struct tally *tally, struct name member) {
    CHECK(tally->count < tally->capacity);
    struct tally_entry *entry = &tally->entries[tally->count];
    entry->member = member.at;
    entry->member_size = member.size & 0xffffff;
    entry->member_code = member.code;
    entry->arrival = tally->count++;
    return entry;
}

/* A look-up, in steps, to be run for several members each, so that their cache misses overlap. */
struct tally_find {
    struct name member;
    uint64_t hash;
    uint32_t candidate; /* most likely its entry, or none */
};

static void combine_tally_find_slot(const struct tally *tally, struct name member,
                                    struct tally_find *find) {
    find->member = member;
    find->hash = XXH3_64bits_withSeed(member.at, member.size, tally->hash_seed);
    memory_prefetch(&tally->slots[combine_tally_home_of(find->hash, tally->slot_count)]);
}

/* Index of the next slot with this hash, or of a free one. */
static uint64_t combine_tally_find_next_slot(const struct tally *tally, uint64_t hash,
                                             uint64_t at) {
    while (tally->slots[at] != 0 && tally->slots[at] >> 32 != hash >> 32) {
        at = at + 1 == tally->slot_count ? 0 : at + 1;
    }
    return at;
}

static void combine_tally_find_entry(const struct tally *tally, struct tally_find *find) {
    uint64_t at = combine_tally_find_next_slot(
        tally, find->hash, combine_tally_home_of(find->hash, tally->slot_count));
    find->candidate = (uint32_t)tally->slots[at] - 1;
    if (find->candidate != NO_CANDIDATE) {
        memory_prefetch(&tally->entries[find->candidate]);
    }
}

static void combine_tally_find_member(const struct tally *tally, const struct tally_find *find) {
    if (find->candidate != NO_CANDIDATE) {
        memory_prefetch(tally->entries[find->candidate].member);
    }
}

/* Find or add (*is_new) the member's entry. Room is reserved. */
static struct tally_entry *combine_tally_get(struct tally *tally, const struct tally_find *find,
                                             bool *is_new) {
    uint64_t at = combine_tally_home_of(find->hash, tally->slot_count);
    for (;;) {
        at = combine_tally_find_next_slot(tally, find->hash, at);
        if (tally->slots[at] == 0) {
            break;
        }
        struct tally_entry *entry = &tally->entries[(uint32_t)tally->slots[at] - 1];
        if (name_equal(combine_tally_member(entry), find->member)) {
            *is_new = false;
            return entry;
        }
        at = at + 1 == tally->slot_count ? 0 : at + 1;
    }
    tally->slots[at] = (find->hash >> 32) << 32 | (tally->count + 1);
    *is_new = true;
    return combine_tally_add(tally, find->member);
}

/* ---- the order of a tally ---- */

/* Sort keys, least significant first. */
enum sort_key { BY_ARRIVAL, BY_TIME, BY_VALUE_LOW, BY_VALUE_HIGH, SORT_KEYS };

#define SIGN_BIT (UINT64_C(1) << 63)

static uint64_t combine_tally_word_of(const struct tally_entry *entry, enum sort_key key) {
    switch (key) {
    case BY_ARRIVAL:
        return entry->arrival;
    case BY_TIME:
        return (uint64_t)entry->result.reached_us ^ SIGN_BIT;
    case BY_VALUE_LOW:
        return (uint64_t)entry->result.value;
    case BY_VALUE_HIGH:
    case SORT_KEYS:
        break;
    }
    return (uint64_t)(entry->result.value >> 64) ^ SIGN_BIT;
}

bool combine_tally_sort_begin(struct tally *tally, bool is_ascending, bool is_latest,
                              uint32_t run_size) {
    memory_free(tally->order);
    memory_free(tally->spare);
    memory_free(tally->runs);
    tally->run_size = run_size < tally->count ? run_size : tally->count;
    tally->run_count =
        tally->count > 0 ? (tally->count + tally->run_size - 1) / tally->run_size : 0;
    tally->sorted_count = 0;
    tally->is_ascending = is_ascending;
    tally->is_latest = is_latest;
    tally->order = memory_allocate((tally->count + (size_t)1) * sizeof *tally->order);
    tally->spare = memory_allocate((tally->run_size + (size_t)1) * sizeof *tally->spare);
    tally->runs = memory_allocate((tally->run_count + (size_t)1) * sizeof *tally->runs);
    return tally->order != NULL && tally->spare != NULL && tally->runs != NULL;
}

bool combine_tally_sort_step(struct tally *tally) {
    uint32_t begin = tally->sorted_count, left = tally->count - begin;
    uint32_t count = left < tally->run_size ? left : tally->run_size;
    for (uint32_t i = begin; i < begin + count; i++) {
        tally->order[i].index = i;
    }
    for (unsigned key = 0; key < SORT_KEYS && count > 0; key++) {
        bool is_reversed = key < BY_VALUE_LOW ? tally->is_latest : !tally->is_ascending;
        for (uint32_t i = begin; i < begin + count; i++) {
            struct sort_record *record = &tally->order[i];
            record->word =
                combine_tally_word_of(&tally->entries[record->index], (enum sort_key)key) ^
                (is_reversed ? UINT64_MAX : 0);
        }
        sort_records(&tally->order[begin], tally->spare, count);
    }
    tally->sorted_count += count;
    return tally->sorted_count == tally->count;
}

bool combine_tally_sort(struct tally *tally, bool is_ascending, bool is_latest) {
    return combine_tally_sort_begin(tally, is_ascending, is_latest, UINT32_MAX) &&
           combine_tally_sort_step(tally);
}

/* ---- a walk over a tally ---- */

/* The entry that is so many behind the next one of a run. */
static const struct tally_entry *combine_tally_entry_of(const struct tally_walk *walk,
                                                        const struct tally_run *run,
                                                        uint32_t behind) {
    uint32_t at = walk->is_best_first ? run->next + behind : run->next - behind;
    return &walk->tally->entries[walk->tally->order[at].index];
}

static bool combine_tally_ranks_above(const struct tally *tally, const struct tally_entry *a,
                                      const struct tally_entry *b) {
    if (a->result.value != b->result.value) {
        return (a->result.value < b->result.value) == tally->is_ascending;
    }
    if (a->result.reached_us != b->result.reached_us) {
        return (a->result.reached_us < b->result.reached_us) != tally->is_latest;
    }
    return (a->arrival < b->arrival) != tally->is_latest;
}

/* Let a run sink to its place in the heap. */
static void combine_tally_sift(const struct tally_walk *walk, uint32_t at) {
    struct tally_run *runs = walk->tally->runs;
    for (uint32_t first; (first = 2 * at + 1) < walk->tally->run_count; at = first) {
        if (first + 1 < walk->tally->run_count &&
            combine_tally_ranks_above(
                walk->tally, combine_tally_entry_of(walk, &runs[first + 1], 0),
                combine_tally_entry_of(walk, &runs[first], 0)) == walk->is_best_first) {
            first++;
        }
        if (combine_tally_ranks_above(walk->tally, combine_tally_entry_of(walk, &runs[first], 0),
                                      combine_tally_entry_of(walk, &runs[at], 0)) !=
            walk->is_best_first) {
            return;
        }
        struct tally_run run = runs[at];
        runs[at] = runs[first];
        runs[first] = run;
    }
}

struct tally_walk combine_tally_walk(struct tally *tally, bool is_best_first) {
    struct tally_walk walk = {.tally = tally, .is_best_first = is_best_first};
    uint32_t run_size = tally->run_size > 0 ? tally->run_size : 1;
    tally->run_count = (tally->count + run_size - 1) / run_size;
    for (uint32_t i = 0; i < tally->run_count; i++) {
        uint32_t begin = i * run_size, left = tally->count - begin;
        uint32_t count = left < run_size ? left : run_size;
        tally->runs[i] = (struct tally_run){is_best_first ? begin : begin + count - 1, count};
    }
    for (uint32_t i = tally->run_count / 2; i-- > 0;) {
        combine_tally_sift(&walk, i);
    }
    return walk;
}

const struct tally_entry *combine_tally_walk_next(struct tally_walk *walk) {
    struct tally *tally = walk->tally;
    struct tally_run *run = &tally->runs[0];
    if (tally->run_count == 0) {
        return NULL;
    }
    if (run->left > AHEAD * 2) {
        memory_prefetch(combine_tally_entry_of(walk, run, AHEAD * 2));
    }
    if (run->left > AHEAD) {
        memory_prefetch(combine_tally_entry_of(walk, run, AHEAD)->member);
    }
    const struct tally_entry *entry = combine_tally_entry_of(walk, run, 0);
    run->next += walk->is_best_first ? 1 : UINT32_MAX;
    run->left--;
    if (run->left == 0) {
        *run = tally->runs[--tally->run_count];
    }
    combine_tally_sift(walk, 0);
    return entry;
}

/* ---- runs of members ---- */

/* A run of members of a board, and their results. */
struct combine_batch {
    uint32_t count;
    struct name members[BLOCK_RUN_MAX];
    uint64_t keys[BLOCK_RUN_MAX];
    uint32_t arrivals[BLOCK_RUN_MAX];
    struct tally_result results[BLOCK_RUN_MAX];
    bool are_too_wide[BLOCK_RUN_MAX]; /* no result: the value does not fit */
};

/* Convert a rank to its index in order of arrival, or back. */
static uint32_t combine_arrival_of(const struct board *board, uint32_t rank) {
    return board_layout(board)->time.is_latest ? board_count(board) - 1 - rank : rank;
}

static uint32_t combine_count_of(const struct combine_source *source) {
    return source->board != NULL ? board_count(source->board) : 0;
}

/* Walk count ranks, starting at rank. */
static void combine_walk_begin_at(struct combine_walk *walk, const struct board *board,
                                  uint32_t rank, uint32_t count) {
    walk->count = walk->left = count;
    walk->is_best_first = !board_layout(board)->time.is_latest;
    board_cursor_seek(board, walk->is_best_first || count == 0 ? rank : rank + count - 1,
                      &walk->cursor);
}

static bool combine_walk_next(struct combine_walk *walk, struct combine_batch *batch) {
    struct block_run run;
    batch->count = 0;
    if (walk->left == 0 ||
        !board_cursor_run(&walk->cursor, walk->is_best_first, walk->left, &run)) {
        return false;
    }
    while (block_run_read(&run, &batch->keys[batch->count], &batch->members[batch->count])) {
        batch->are_too_wide[batch->count] = false;
        batch->arrivals[batch->count++] = walk->count - walk->left--;
    }
    return true;
}

/* Move an entry of a batch to a lower index. */
static void combine_move_entry(struct combine_batch *batch, uint32_t from, uint32_t to) {
    batch->members[to] = batch->members[from];
    batch->keys[to] = batch->keys[from];
    batch->arrivals[to] = batch->arrivals[from];
    batch->results[to] = batch->results[from];
    batch->are_too_wide[to] = batch->are_too_wide[from];
}

/* Look up all members of a batch on a board. */
static void combine_look_up(const struct board *board, const struct combine_batch *batch,
                            struct board_member *found) {
    struct lookup lookups[BLOCK_RUN_MAX];
    struct bytes texts[BLOCK_RUN_MAX];
    char rooms[BLOCK_RUN_MAX][NAME_TEXT_ROOM];
    for (uint32_t i = 0; i < batch->count; i++) {
        texts[i] = name_text(batch->members[i], rooms[i]);
    }
    lookup_members(board, texts, 1, batch->count, lookups);
    for (uint32_t i = 0; i < batch->count; i++) {
        board_look_up(board, texts[i], &lookups[i], &found[i]);
    }
}

/* ---- values ---- */

/* The scale of a source's products. */
static unsigned combine_product_scale(const struct combine *combine,
                                      const struct combine_source *source) {
    bool is_counted = combine->aggregate == COMBINE_COUNT;
    unsigned scale = is_counted ? 0 : board_layout(source->board)->fields[0].scale;
    return scale + source->weight_scale;
}

/* Set the common scale of all values: the largest scale of the products. */
static void combine_settle_scale(struct combine *combine) {
    combine->scale = 0;
    for (uint32_t i = 0; i < combine->source_count; i++) {
        const struct combine_source *source = &combine->sources[i];
        if (source->board != NULL && combine_product_scale(combine, source) > combine->scale) {
            combine->scale = combine_product_scale(combine, source);
        }
    }
    for (uint32_t i = 0; i < combine->source_count; i++) {
        struct combine_source *source = &combine->sources[i];
        if (source->board != NULL) {
            source->more_digits =
                (uint8_t)(combine->scale - combine_product_scale(combine, source));
        }
    }
}

/* The weighted score of a member of this source; COUNT: the weight. false: the value does not fit. */
static bool combine_weigh(const struct combine *combine, const struct combine_source *source,
                          uint64_t key, struct tally_result *result) {
    const struct layout *layout = board_layout(source->board);
    struct decimal score = {.magnitude = 1};
    if (combine->aggregate != COMBINE_COUNT) {
        score = layout_field_decimal_at(&layout->fields[0], layout_ordinal(layout, key, 0),
                                        combine->now_us);
    }
    result->is_weightless = source->weight.magnitude == 0;
    if (!layout_time_us(layout, key, &result->reached_us)) {
        result->reached_us = combine->now_us;
    }
    return decimal_wide_multiply(decimal_to_wide(score), source->weight, &result->value) &&
           decimal_wide_scale_up(result->value, source->more_digits, &result->value);
}

/* Aggregate another part into a member's result. false: the value does not fit. */
static bool combine_join(const struct combine *combine, struct tally_result *to,
                         const struct tally_result *part) {
    if (combine->aggregate == COMBINE_SUM || combine->aggregate == COMBINE_COUNT) {
        if (to->is_weightless && !part->is_weightless) {
            to->reached_us = part->reached_us;
            to->is_weightless = false;
        } else if (to->is_weightless == part->is_weightless && part->reached_us > to->reached_us) {
            to->reached_us = part->reached_us;
        }
        return decimal_wide_add(to->value, part->value, &to->value);
    }
    /* Of equal ones the earliest. */
    bool is_chosen = part->value == to->value
                         ? part->reached_us < to->reached_us
                         : (part->value < to->value) == (combine->aggregate == COMBINE_MIN);
    if (is_chosen) {
        *to = *part;
    }
    return true;
}

/* Weigh a batch of this source. */
static void combine_weigh_batch(const struct combine *combine, const struct combine_source *source,
                                struct combine_batch *batch) {
    for (uint32_t i = 0; i < batch->count; i++) {
        batch->are_too_wide[i] =
            !combine_weigh(combine, source, batch->keys[i], &batch->results[i]);
    }
}

static enum combine_status combine_blame(struct combine *combine, struct name member) {
    combine->culprit = member;
    return COMBINE_OUT_OF_RANGE;
}

/* Add a batch of members that have no entries yet. */
static enum combine_status combine_add_batch(struct combine *combine,
                                             const struct combine_batch *batch) {
    struct tally *tally = &combine->tally;
    if (!combine_tally_reserve(tally, batch->count, false)) {
        return COMBINE_OUT_OF_MEMORY;
    }
    for (uint32_t i = 0; i < batch->count; i++) {
        if (batch->are_too_wide[i]) {
            return combine_blame(combine, batch->members[i]);
        }
        struct tally_entry *entry = combine_tally_add(tally, batch->members[i]);
        entry->result = batch->results[i];
        entry->arrival = batch->arrivals[i];
    }
    return COMBINE_OK;
}

/* ---- unions ---- */

/* Add a batch of members that may already have entries. */
static enum combine_status combine_join_batch(struct combine *combine,
                                              const struct combine_batch *batch) {
    struct tally *tally = &combine->tally;
    struct tally_find finds[BLOCK_RUN_MAX];
    if (!combine_tally_reserve(tally, batch->count, true)) {
        return COMBINE_OUT_OF_MEMORY;
    }
    for (uint32_t i = 0; i < batch->count; i++) {
        combine_tally_find_slot(tally, batch->members[i], &finds[i]);
    }
    for (uint32_t i = 0; i < batch->count; i++) {
        combine_tally_find_entry(tally, &finds[i]);
    }
    for (uint32_t i = 0; i < batch->count; i++) {
        combine_tally_find_member(tally, &finds[i]);
    }
    for (uint32_t i = 0; i < batch->count; i++) {
        bool is_new;
        struct tally_entry *entry = combine_tally_get(tally, &finds[i], &is_new);
        if (is_new) {
            entry->result = batch->results[i];
        }
        if (batch->are_too_wide[i] ||
            (!is_new && !combine_join(combine, &entry->result, &batch->results[i]))) {
            return combine_blame(combine, batch->members[i]);
        }
    }
    return COMBINE_OK;
}

/* ---- walks ---- */

/* The sources by size, smallest first; equal ones keep their order. NULL: out of memory. */
static struct sort_record *combine_order_by_size(const struct combine *combine) {
    uint32_t count = combine->source_count;
    struct sort_record *order = memory_allocate((size_t)count * 2 * sizeof(*order));
    if (order == NULL) {
        return NULL;
    }
    for (uint32_t i = 0; i < count; i++) {
        order[i] = (struct sort_record){.word = combine_count_of(&combine->sources[i]), .index = i};
    }
    sort_records(order, order + count, count);
    return order;
}

/* Keep the batch's members that are also on this source's board. */
static void combine_keep_common(const struct combine *combine, uint32_t index, bool is_counted,
                                struct combine_batch *batch) {
    const struct combine_source *source = &combine->sources[index];
    struct board_member found[BLOCK_RUN_MAX];
    struct tally_result part;
    uint32_t kept = 0;
    combine_look_up(source->board, batch, found);
    for (uint32_t i = 0; i < batch->count; i++) {
        if (!found[i].is_there) {
            continue;
        }
        combine_move_entry(batch, i, kept);
        if (!is_counted) {
            /* Only an error if the member is on all other boards, too. */
            batch->are_too_wide[kept] = batch->are_too_wide[kept] ||
                                        !combine_weigh(combine, source, found[i].key, &part) ||
                                        !combine_join(combine, &batch->results[kept], &part);
            if (index == 0) {
                batch->arrivals[kept] =
                    combine_arrival_of(source->board, board_rank_of(source->board, &found[i]));
            }
        }
        kept++;
    }
    batch->count = kept;
}

/* ---- differences ---- */

/* Keep the batch's members that are not on this board. */
static void combine_keep_different(const struct board *board, struct combine_batch *batch) {
    struct board_member found[BLOCK_RUN_MAX];
    uint32_t kept = 0;
    combine_look_up(board, batch, found);
    for (uint32_t i = 0; i < batch->count; i++) {
        if (!found[i].is_there) {
            combine_move_entry(batch, i, kept++);
        }
    }
    batch->count = kept;
}

/* ---- one walk after another ---- */

/* Which boards are walked, in this order: a union all; an intersection the smallest; a difference the first one, and
 * before it, if their members are marked, all others. false: there is no more. */
static bool combine_next_walk(struct combine *combine) {
    struct combine_work *work = &combine->work;
    uint32_t count =
        combine->kind == COMBINE_INTERSECTION ? work->source + 1 : combine->source_count;
    bool ends_with_first = work->marks != NULL;
    while (++work->at < count + ends_with_first) {
        work->source = combine->kind == COMBINE_INTERSECTION  ? work->source
                       : ends_with_first && work->at == count ? 0
                                                              : work->at;
        if (combine->sources[work->source].board != NULL) {
            const struct board *board = combine->sources[work->source].board;
            combine_walk_begin_at(&work->walk, board, 0, board_count(board));
            return true;
        }
    }
    return false;
}

static enum combine_status combine_begin_union(struct combine *combine) {
    enum { BOARDS_APART = 4, ENTRIES_APART = 2 }; /* more are likely to have members in common */
    uint32_t board_count = 0, largest_count = 0;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < combine->source_count; i++) {
        uint32_t count = combine_count_of(&combine->sources[i]);
        board_count += combine->sources[i].board != NULL;
        largest_count = count > largest_count ? count : largest_count;
        sum += count;
    }
    bool is_only = board_count == 1;
    uint64_t most = (uint64_t)largest_count * BOARDS_APART;
    uint64_t entries = (uint64_t)largest_count * ENTRIES_APART;
    entries = sum < entries ? sum : entries;
    combine->work.is_only = is_only;
    combine->work.at = UINT32_MAX;
    /* Growing would take some milliseconds at once. */
    return combine_tally_reserve(&combine->tally,
                                 entries < UINT32_MAX ? (uint32_t)entries : largest_count, false) &&
                   (is_only ||
                    combine_tally_reserve_slots(&combine->tally, sum < most ? sum : most))
               ? COMBINE_OK
               : COMBINE_OUT_OF_MEMORY;
}

static enum combine_status combine_begin_difference(struct combine *combine) {
    struct combine_work *work = &combine->work;
    const struct board *first = combine->sources[0].board;
    uint32_t count = combine_count_of(&combine->sources[0]);
    uint64_t looking_work = 0;
    uint64_t marking_work = 0;
    bool is_nobody = first == NULL; /* or it is one of the others */
    for (uint32_t i = 1; i < combine->source_count && first != NULL; i++) {
        is_nobody = is_nobody || combine->sources[i].board == first;
        looking_work += combine_count_of(&combine->sources[i]) > 0 ? count : 0;
        marking_work += combine_count_of(&combine->sources[i]);
    }
    /* Is it less work to look up the other boards' members on the first one? Looking up the first board's members stops
     * at the first board that has the member, and needs no ranks. */
    bool is_marked = looking_work / 2 > marking_work;
    work->at = is_marked ? 0 : UINT32_MAX;
    if (is_nobody) {
        work->is_over = true;
        return COMBINE_OK;
    }
    if (!combine_tally_reserve(&combine->tally, count, false)) {
        return COMBINE_OUT_OF_MEMORY;
    }
    if (!is_marked) {
        work->order = combine_order_by_size(combine);
        return work->order != NULL ? COMBINE_OK : COMBINE_OUT_OF_MEMORY;
    }
    work->marks = memory_allocate_zeroed((count / 64 + (size_t)1) * sizeof *work->marks);
    return work->marks != NULL ? COMBINE_OK : COMBINE_OUT_OF_MEMORY;
}

enum combine_status combine_begin(struct combine *combine, bool is_counted, uint64_t limit) {
    struct combine_work *work = &combine->work;
    *work = (struct combine_work){.is_counted = is_counted,
                                  .count_max = limit > 0 ? limit : UINT64_MAX};
    combine_settle_scale(combine);
    enum combine_status status = COMBINE_OUT_OF_MEMORY;
    switch (combine->kind) {
    case COMBINE_UNION:
        status = combine_begin_union(combine);
        break;
    case COMBINE_DIFFERENCE:
        status = combine_begin_difference(combine);
        break;
    case COMBINE_INTERSECTION:
        work->order = combine_order_by_size(combine);
        if (work->order == NULL) {
            break;
        }
        uint32_t smallest = (uint32_t)work->order[0].word;
        work->source = work->order[0].index;
        work->at = work->source - 1;
        work->is_over = smallest == 0;
        if (is_counted || combine_tally_reserve(&combine->tally, smallest, false)) {
            status = COMBINE_OK;
        }
        break;
    }
    work->is_over = work->is_over || status != COMBINE_OK || !combine_next_walk(combine);
    return status;
}

/* What a batch of the board that is walked adds. */
static enum combine_status combine_take_batch(struct combine *combine,
                                              struct combine_batch *batch) {
    struct combine_work *work = &combine->work;
    const struct combine_source *source = &combine->sources[work->source];
    switch (combine->kind) {
    case COMBINE_UNION:
        combine_weigh_batch(combine, source, batch);
        return work->is_only ? combine_add_batch(combine, batch)
                             : combine_join_batch(combine, batch);
    case COMBINE_INTERSECTION:
        if (!work->is_counted) {
            combine_weigh_batch(combine, source, batch);
        }
        for (uint32_t i = 1; i < combine->source_count && batch->count > 0; i++) {
            combine_keep_common(combine, work->order[i].index, work->is_counted, batch);
        }
        if (!work->is_counted) {
            return combine_add_batch(combine, batch);
        }
        work->count += batch->count;
        work->is_over = work->count >= work->count_max;
        work->count = work->is_over ? work->count_max : work->count;
        return COMBINE_OK;
    case COMBINE_DIFFERENCE:
        break;
    }
    if (work->source != 0) {
        /* Mark the first board's members, by arrival, that are here, too. */
        const struct board *first = combine->sources[0].board;
        struct board_member found[BLOCK_RUN_MAX];
        combine_look_up(first, batch, found);
        for (uint32_t i = 0; i < batch->count; i++) {
            if (found[i].is_there) {
                uint32_t arrival = combine_arrival_of(first, board_rank_of(first, &found[i]));
                work->marks[arrival / 64] |= UINT64_C(1) << arrival % 64;
            }
        }
        return COMBINE_OK;
    }
    if (work->marks != NULL) {
        uint32_t kept = 0;
        for (uint32_t i = 0; i < batch->count; i++) {
            uint32_t arrival = batch->arrivals[i];
            if ((work->marks[arrival / 64] >> arrival % 64 & 1) == 0) {
                combine_move_entry(batch, i, kept++);
            }
        }
        batch->count = kept;
    } else {
        /* Without those that are on any of the other boards; larger boards are asked first. */
        const struct sort_record *order = combine->work.order;
        for (uint32_t i = combine->source_count; i > 0 && order[i - 1].word > 0; i--) {
            if (order[i - 1].index != 0) {
                combine_keep_different(combine->sources[order[i - 1].index].board, batch);
            }
        }
    }
    combine_weigh_batch(combine, source, batch);
    return combine_add_batch(combine, batch);
}

enum combine_status combine_step(struct combine *combine, bool *is_over) {
    struct combine_work *work = &combine->work;
    struct combine_batch batch;
    enum combine_status status = COMBINE_OK;
    if (!work->is_over && combine_walk_next(&work->walk, &batch)) {
        status = combine_take_batch(combine, &batch);
    } else if (!work->is_over) {
        bool is_last = combine->kind == COMBINE_DIFFERENCE && work->source == 0;
        work->is_over = is_last || !combine_next_walk(combine);
    }
    *is_over = work->is_over || status != COMBINE_OK;
    return status;
}

void combine_end(struct combine *combine) {
    memory_free(combine->work.order);
    memory_free(combine->work.marks);
    combine->work.order = NULL;
    combine->work.marks = NULL;
}

/* ---- entry points ---- */

static enum combine_status combine_run_whole(struct combine *combine, bool is_counted,
                                             uint64_t limit) {
    enum combine_status status = combine_begin(combine, is_counted, limit);
    bool is_over = status != COMBINE_OK;
    while (!is_over) {
        status = combine_step(combine, &is_over);
    }
    combine_end(combine);
    return status;
}

enum combine_status combine_run(struct combine *combine) {
    return combine_run_whole(combine, false, 0);
}

enum combine_status combine_take(struct combine *combine, uint32_t rank, uint32_t count) {
    enum combine_status status = COMBINE_OK;
    struct combine_walk walk;
    struct combine_batch batch;
    combine_settle_scale(combine);
    combine_walk_begin_at(&walk, combine->sources[0].board, rank, count);
    while (status == COMBINE_OK && combine_walk_next(&walk, &batch)) {
        combine_weigh_batch(combine, &combine->sources[0], &batch);
        status = combine_add_batch(combine, &batch);
    }
    return status;
}

enum combine_status combine_count(struct combine *combine, uint64_t limit, uint64_t *count) {
    enum combine_status status = combine_run_whole(combine, true, limit);
    *count = combine->work.count;
    return status;
}

/* ---- one member ---- */

enum combine_status combine_member(struct combine *combine, struct bytes member,
                                   struct tally_result *result, bool *is_there) {
    uint32_t found_count = 0;
    bool fits = true;
    *is_there = false;
    for (uint32_t i = 0; i < combine->source_count; i++) {
        const struct combine_source *source = &combine->sources[i];
        struct board_member found = {.is_there = false};
        struct tally_result part;
        if (source->board != NULL) {
            board_look_up(source->board, member, NULL, &found);
        }
        if (combine->kind == COMBINE_DIFFERENCE && (found.is_there == (i > 0))) {
            return COMBINE_OK;
        }
        if (found.is_there) {
            fits = fits && combine_weigh(combine, source, found.key, &part) &&
                   (found_count == 0 || combine_join(combine, result, &part));
            *result = found_count == 0 ? part : *result;
            found_count++;
        }
    }
    *is_there = combine->kind == COMBINE_INTERSECTION ? found_count == combine->source_count
                                                      : found_count > 0;
    return fits || !*is_there ? COMBINE_OK : COMBINE_OUT_OF_RANGE;
}
