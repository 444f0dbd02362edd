/* Invariant: no entry is earlier than its parent, at (index - 1) / 2, and *entry.place is the
 * entry's index. Times are stored in the entries themselves, so comparing them touches no key. */
#include "skiplist/keyspace/expiry.h"

#include "codec/memory.h"

static struct expiry_entry *expiry_entry_at(const struct expiry *expiry, uint32_t index) {
    return map_pages_at(&expiry->entries, index * (uint64_t)sizeof(struct expiry_entry));
}

static void expiry_entry_set(struct expiry *expiry, uint32_t index, struct expiry_entry entry) {
    *expiry_entry_at(expiry, index) = entry;
    *entry.place = index;
}

/* Move entry up from index to its place. */
static void expiry_sift_up(struct expiry *expiry, uint32_t index, struct expiry_entry entry) {
    while (index > 0) {
        struct expiry_entry parent = *expiry_entry_at(expiry, (index - 1) / 2);
        if (parent.time_ms <= entry.time_ms) {
            break;
        }
        expiry_entry_set(expiry, index, parent);
        index = (index - 1) / 2;
    }
    expiry_entry_set(expiry, index, entry);
}

/* Put entry at index, replacing another one, and restore the heap order. */
static void expiry_sift(struct expiry *expiry, uint32_t index, struct expiry_entry entry) {
    if (index > 0 && entry.time_ms < expiry_entry_at(expiry, (index - 1) / 2)->time_ms) {
        expiry_sift_up(expiry, index, entry);
        return;
    }
    while (index < expiry->count / 2) {
        uint32_t child = 2 * index + 1;
        if (child + 1 < expiry->count &&
            expiry_entry_at(expiry, child + 1)->time_ms < expiry_entry_at(expiry, child)->time_ms) {
            child++;
        }
        struct expiry_entry earlier = *expiry_entry_at(expiry, child);
        if (entry.time_ms <= earlier.time_ms) {
            break;
        }
        expiry_entry_set(expiry, index, earlier);
        index = child;
    }
    expiry_entry_set(expiry, index, entry);
}

/* A time out of range of the offset is clamped. */
static int64_t expiry_kept_ms(const struct expiry *expiry, int64_t time_ms) {
    int64_t kept;
    bool is_over = __builtin_sub_overflow(time_ms, expiry->offset_ms, &kept);
    return !is_over ? kept : time_ms < 0 ? INT64_MIN : INT64_MAX;
}

static int64_t expiry_told_ms(const struct expiry *expiry, int64_t kept) {
    int64_t time_ms;
    bool is_over = __builtin_add_overflow(kept, expiry->offset_ms, &time_ms);
    return !is_over ? time_ms : kept < 0 ? INT64_MIN + 1 : INT64_MAX;
}

bool expiry_has(const struct expiry *expiry, const uint32_t *place) {
    return *place < expiry->count && expiry_entry_at(expiry, *place)->place == place;
}

bool expiry_reserve(struct expiry *expiry) {
    return map_pages_reserve(&expiry->entries,
                             (expiry->count + (uint64_t)1) * sizeof(struct expiry_entry));
}

void expiry_put(struct expiry *expiry, int64_t time_ms, uint32_t *place) {
    CHECK(*place == EXPIRY_NOWHERE);
    time_ms = expiry_kept_ms(expiry, time_ms);
    expiry->sum_ms += time_ms;
    expiry_sift_up(expiry, expiry->count++,
                   (struct expiry_entry){.time_ms = time_ms, .place = place});
}

void expiry_change(struct expiry *expiry, uint32_t *place, int64_t time_ms) {
    CHECK(*place < expiry->count);
    time_ms = expiry_kept_ms(expiry, time_ms);
    expiry->sum_ms += (expiry_sum)time_ms - expiry_entry_at(expiry, *place)->time_ms;
    expiry_sift(expiry, *place, (struct expiry_entry){.time_ms = time_ms, .place = place});
}

void expiry_remove(struct expiry *expiry, uint32_t *place) {
    uint32_t index = *place;
    CHECK(expiry_has(expiry, place));
    expiry->sum_ms -= expiry_entry_at(expiry, index)->time_ms;
    struct expiry_entry last = *expiry_entry_at(expiry, --expiry->count);
    if (index < expiry->count) {
        expiry_sift(expiry, index, last);
    }
    *place = EXPIRY_NOWHERE;
}

void expiry_trim(struct expiry *expiry) {
    map_pages_trim(&expiry->entries, expiry->count * (uint64_t)sizeof(struct expiry_entry));
}

int64_t expiry_time_ms(const struct expiry *expiry, uint32_t place) {
    CHECK(place < expiry->count);
    return expiry_told_ms(expiry, expiry_entry_at(expiry, place)->time_ms);
}

expiry_sum expiry_sum_ms(const struct expiry *expiry) {
    return expiry->sum_ms + (expiry_sum)expiry->offset_ms * expiry->count;
}

void expiry_prefetch(const struct expiry *expiry, uint32_t place) {
    CHECK(place < expiry->count);
    memory_prefetch(expiry_entry_at(expiry, place));
}

struct expiry_entry expiry_first(const struct expiry *expiry) {
    if (expiry->count == 0) {
        return (struct expiry_entry){.place = NULL};
    }
    struct expiry_entry first = *expiry_entry_at(expiry, 0);
    first.time_ms = expiry_told_ms(expiry, first.time_ms);
    return first;
}

bool expiry_validate(const struct expiry *expiry, const char **reason) {
    expiry_sum sum_ms = 0;
    for (uint32_t i = 0; i < expiry->count; i++) {
        const struct expiry_entry *entry = expiry_entry_at(expiry, i);
        if (*entry->place != i) {
            return check_passed("expiry: an entry does not lie where its owner thinks", reason);
        }
        if (i > 0 && entry->time_ms < expiry_entry_at(expiry, (i - 1) / 2)->time_ms) {
            return check_passed("expiry: an entry is earlier than its parent", reason);
        }
        sum_ms += entry->time_ms;
    }
    return check_passed(sum_ms == expiry->sum_ms ? NULL : "expiry: the sum is wrong", reason);
}
