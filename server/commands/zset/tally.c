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
    tally_init(tally, tally->hash_seed);
}

/* ---- slots ---- */

static uint64_t tally_slot_of(uint32_t hash, uint32_t index) {
    return (uint64_t)hash << 32 | (index + 1);
}

static uint64_t tally_home_of(uint64_t hash, uint64_t slot_count) {
    return ((hash >> 32) * slot_count) >> 32;
}

static void tally_put_slot(uint64_t *slots, uint64_t slot_count, uint64_t slot) {
    uint64_t at = tally_home_of(slot, slot_count);
    while (slots[at] != 0) {
        at = at + 1 == slot_count ? 0 : at + 1;
    }
    slots[at] = slot;
}

static bool tally_grow_slots(struct tally *tally) {
    uint64_t slot_count = tally->capacity * 2;
    uint64_t *slots = memory_allocate_zeroed(slot_count * sizeof(*slots));
    if (slots == NULL) {
        return false;
    }
    for (uint64_t i = 0; i < tally->slot_count; i++) {
        if (tally->slots[i] != 0) {
            tally_put_slot(slots, slot_count, tally->slots[i]);
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
    return !with_slots || tally->slot_count >= needed * 2 || tally_grow_slots(tally);
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

static void tally_sort_by(const struct tally *tally, struct sort_record *order,
                          struct sort_record *spare, enum sort_key key, bool is_reversed) {
    uint64_t flip = is_reversed ? UINT64_MAX : 0;
    for (uint32_t i = 0; i < tally->count; i++) {
        order[i].word = tally_word_of(&tally->entries[order[i].index], key) ^ flip;
    }
    sort_records(order, spare, tally->count);
}

bool tally_sort(struct tally *tally, bool is_ascending, bool is_latest) {
    if (tally->count == 0) {
        return true;
    }
    struct sort_record *order = memory_allocate(tally->count * sizeof(*order));
    struct sort_record *spare = memory_allocate(tally->count * sizeof(*order));
    if (order == NULL || spare == NULL) {
        memory_free(order);
        memory_free(spare);
        return false;
    }
    for (uint32_t i = 0; i < tally->count; i++) {
        order[i].index = i;
    }
    for (unsigned key = 0; key < SORT_KEYS; key++) {
        tally_sort_by(tally, order, spare, (enum sort_key)key,
                      key < BY_VALUE_LOW ? is_latest : !is_ascending);
    }
    memory_free(spare);
    memory_free(tally->order);
    tally->order = order;
    return true;
}

/* The entry at a place of the walk. */
static const struct tally_entry *tally_entry_at(const struct tally_walk *walk, uint32_t place) {
    const struct tally *tally = walk->tally;
    uint32_t rank = walk->is_best_first ? place : tally->count - 1 - place;
    return &tally->entries[tally->order[rank].index];
}

const struct tally_entry *tally_walk_next(struct tally_walk *walk) {
    uint32_t left = walk->tally->count - walk->next;
    if (left == 0) {
        return NULL;
    }
    if (left > AHEAD * 2) {
        prefetch_line(tally_entry_at(walk, walk->next + AHEAD * 2));
    }
    if (left > AHEAD) {
        prefetch_line(tally_entry_at(walk, walk->next + AHEAD)->member);
    }
    return tally_entry_at(walk, walk->next++);
}
