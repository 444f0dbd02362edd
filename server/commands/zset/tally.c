/* Slots: an entry's home slot is its hash32 * slot_count >> 32; collisions probe the following
 * slots. At least half the slots are free. A slot stores the hash's upper half, so growing reads no
 * entries, and members are compared only if the halves are equal. Entries are never removed. */
#include "server/commands/zset/tally.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "codec/memory.h"
#include "skiplist/prefetch.h"

enum {
    CAPACITY_MIN = 16,
    AHEAD = 8, /* prefetch distance of members; entries are prefetched at twice this distance */
};
#define NO_CANDIDATE UINT32_MAX

void tally_init(struct tally *tally, uint64_t hash_seed) {
    *tally = (struct tally){.hash_seed = hash_seed};
}

void tally_deinit(struct tally *tally) {
    memory_free(tally->entries);
    memory_free(tally->slots);
    memory_free(tally->order);
    memory_free(tally->spare);
    memory_free(tally->runs);
    tally_init(tally, tally->hash_seed);
}

/* The last ones go. What cannot be made smaller goes at once, later. */
static bool tally_shrink(void **at, uint64_t *count, size_t size) {
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

bool tally_free_step(struct tally *tally) {
    void *entries = tally->entries, *slots = tally->slots;
    bool has_more = tally_shrink(&entries, &tally->capacity, sizeof *tally->entries) ||
                    tally_shrink(&slots, &tally->slot_count, sizeof *tally->slots);
    tally->entries = entries;
    tally->slots = slots;
    return has_more;
}

/* ---- slots ---- */

static uint64_t tally_slot_of(uint32_t hash, uint32_t index) {
    return (uint64_t)hash << 32 | (index + 1);
}

static uint64_t tally_home_of(uint64_t hash, uint64_t slot_count) {
    return ((hash >> 32) * slot_count) >> 32;
}

bool tally_reserve_slots(struct tally *tally, uint64_t count) {
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
            uint64_t at = tally_home_of(tally->slots[i], slot_count);
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

bool tally_reserve(struct tally *tally, uint32_t count, bool with_slots) {
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
           tally_reserve_slots(tally, tally->capacity);
}

/* ---- entries ---- */

struct tally_entry *tally_add(struct tally *tally, struct name member) {
    CHECK(tally->count < tally->capacity);
    struct tally_entry *entry = &tally->entries[tally->count];
    entry->member = member.at;
    entry->member_size = member.size & 0xffffff;
    entry->member_code = member.code;
    entry->arrival = tally->count++;
    return entry;
}

void tally_find_slot(const struct tally *tally, struct name member, struct tally_find *find) {
    find->member = member;
    find->hash = XXH3_64bits_withSeed(member.at, member.size, tally->hash_seed);
    prefetch_line(&tally->slots[tally_home_of(find->hash, tally->slot_count)]);
}

/* Index of the next slot with this hash, or of a free one. */
static uint64_t tally_find_next_slot(const struct tally *tally, uint64_t hash, uint64_t at) {
    while (tally->slots[at] != 0 && tally->slots[at] >> 32 != hash >> 32) {
        at = at + 1 == tally->slot_count ? 0 : at + 1;
    }
    return at;
}

void tally_find_entry(const struct tally *tally, struct tally_find *find) {
    uint64_t at =
        tally_find_next_slot(tally, find->hash, tally_home_of(find->hash, tally->slot_count));
    find->candidate = (uint32_t)tally->slots[at] - 1;
    if (find->candidate != NO_CANDIDATE) {
        prefetch_line(&tally->entries[find->candidate]);
    }
}

void tally_find_member(const struct tally *tally, const struct tally_find *find) {
    if (find->candidate != NO_CANDIDATE) {
        prefetch_line(tally->entries[find->candidate].member);
    }
}

struct tally_entry *tally_get(struct tally *tally, const struct tally_find *find, bool *is_new) {
    uint64_t at = tally_home_of(find->hash, tally->slot_count);
    for (;;) {
        at = tally_find_next_slot(tally, find->hash, at);
        if (tally->slots[at] == 0) {
            break;
        }
        struct tally_entry *entry = &tally->entries[(uint32_t)tally->slots[at] - 1];
        if (name_equal(tally_member(entry), find->member)) {
            *is_new = false;
            return entry;
        }
        at = at + 1 == tally->slot_count ? 0 : at + 1;
    }
    tally->slots[at] = tally_slot_of((uint32_t)(find->hash >> 32), tally->count);
    *is_new = true;
    return tally_add(tally, find->member);
}

/* ---- order ---- */

/* Sort keys, least significant first. */
enum sort_key { BY_ARRIVAL, BY_TIME, BY_VALUE_LOW, BY_VALUE_HIGH, SORT_KEYS };

#define SIGN_BIT (UINT64_C(1) << 63)

static uint64_t tally_word_of(const struct tally_entry *entry, enum sort_key key) {
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

static void tally_sort_by(const struct tally *tally, struct sort_record *order, uint32_t count,
                          enum sort_key key, bool is_reversed) {
    uint64_t flip = is_reversed ? UINT64_MAX : 0;
    for (uint32_t i = 0; i < count; i++) {
        order[i].word = tally_word_of(&tally->entries[order[i].index], key) ^ flip;
    }
    sort_records(order, tally->spare, count);
}

bool tally_sort_begin(struct tally *tally, bool is_ascending, bool is_latest, uint32_t run_size) {
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

bool tally_sort_step(struct tally *tally) {
    uint32_t begin = tally->sorted_count, left = tally->count - begin;
    uint32_t count = left < tally->run_size ? left : tally->run_size;
    for (uint32_t i = begin; i < begin + count; i++) {
        tally->order[i].index = i;
    }
    for (unsigned key = 0; key < SORT_KEYS && count > 0; key++) {
        tally_sort_by(tally, &tally->order[begin], count, (enum sort_key)key,
                      key < BY_VALUE_LOW ? tally->is_latest : !tally->is_ascending);
    }
    tally->sorted_count += count;
    return tally->sorted_count == tally->count;
}

bool tally_sort(struct tally *tally, bool is_ascending, bool is_latest) {
    return tally_sort_begin(tally, is_ascending, is_latest, UINT32_MAX) && tally_sort_step(tally);
}

/* ---- walks ---- */

/* The entry that is so many behind the next one of a run. */
static const struct tally_entry *tally_entry_of(const struct tally_walk *walk,
                                                const struct tally_run *run, uint32_t behind) {
    uint32_t at = walk->is_best_first ? run->next + behind : run->next - behind;
    return &walk->tally->entries[walk->tally->order[at].index];
}

static bool tally_ranks_above(const struct tally *tally, const struct tally_entry *a,
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
static void tally_sift(const struct tally_walk *walk, uint32_t at) {
    struct tally_run *runs = walk->tally->runs;
    for (uint32_t first; (first = 2 * at + 1) < walk->tally->run_count; at = first) {
        if (first + 1 < walk->tally->run_count &&
            tally_ranks_above(walk->tally, tally_entry_of(walk, &runs[first + 1], 0),
                              tally_entry_of(walk, &runs[first], 0)) == walk->is_best_first) {
            first++;
        }
        if (tally_ranks_above(walk->tally, tally_entry_of(walk, &runs[first], 0),
                              tally_entry_of(walk, &runs[at], 0)) != walk->is_best_first) {
            return;
        }
        struct tally_run run = runs[at];
        runs[at] = runs[first];
        runs[first] = run;
    }
}

struct tally_walk tally_walk(struct tally *tally, bool is_best_first) {
    struct tally_walk walk = {.tally = tally, .is_best_first = is_best_first};
    uint32_t run_size = tally->run_size > 0 ? tally->run_size : 1;
    tally->run_count = (tally->count + run_size - 1) / run_size;
    for (uint32_t i = 0; i < tally->run_count; i++) {
        uint32_t begin = i * run_size, left = tally->count - begin;
        uint32_t count = left < run_size ? left : run_size;
        tally->runs[i] = (struct tally_run){is_best_first ? begin : begin + count - 1, count};
    }
    for (uint32_t i = tally->run_count / 2; i-- > 0;) {
        tally_sift(&walk, i);
    }
    return walk;
}

const struct tally_entry *tally_walk_next(struct tally_walk *walk) {
    struct tally *tally = walk->tally;
    struct tally_run *run = &tally->runs[0];
    if (tally->run_count == 0) {
        return NULL;
    }
    if (run->left > AHEAD * 2) {
        prefetch_line(tally_entry_of(walk, run, AHEAD * 2));
    }
    if (run->left > AHEAD) {
        prefetch_line(tally_entry_of(walk, run, AHEAD)->member);
    }
    const struct tally_entry *entry = tally_entry_of(walk, run, 0);
    run->next += walk->is_best_first ? 1 : UINT32_MAX;
    run->left--;
    if (run->left == 0) {
        *run = tally->runs[--tally->run_count];
    }
    tally_sift(walk, 0);
    return entry;
}
