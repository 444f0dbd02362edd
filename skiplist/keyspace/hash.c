/* Invariant: a short or packed hash has exactly its size in bytes of entries, no field twice. A large one has the place
 * of each entry at one of the indexes 0 .. count - 1 of the list, and the map holds (hash of the field, index) of each and
 * nothing else. Slots of one kind have no gaps. While fields are put, what is allocated for them waits behind the slots
 * in use: so everything that can fail is done before the first one is put. */
#include "skiplist/keyspace/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "codec/memory.h"
#include "skiplist/map.h"

enum {
    SPARE_MAX = 24,       /* unused bytes that a packed hash may keep */
    FREE_BYTES = 1 << 15, /* freeing so many bytes takes about as long as freeing a field */
    SEGMENT_WORK = MAP_SEGMENT_BUCKETS / 8 + 1,
};

/* An entry that is too long for a slot. */
struct hash_entry {
    uint32_t field_size, value_size;
    char at[];
};

/* Slots of one kind, in pages of SLOTS_EACH.
 *
 *     kind 0         a slot is a pointer to an entry
 *     kind 2 .. 31   2 * kind bytes: head | field | value | up to SLOT_STEP - 1 bytes, or more in the shortest
 *                    head: the field's size, and SLOT_PAD for each byte behind the value
 *
 * A place is a slot's kind in the highest five bits and its index; kind 0 has those of kind 1, too. */
enum {
#ifdef SKIPLIST_TINY
    SLOTS_EACH = 2,
    SLOTS_END = 20, /* what comes when a kind has so many becomes an entry */
#else
    SLOTS_EACH = 32,
    SLOTS_END = 1 << 27,
#endif
    SLOT_KINDS = 32,
    SLOT_FAR = 0,
    SLOT_KIND_MIN = 2,
    SLOT_STEP = 2,
    SLOT_SIZE_MAX = SLOT_STEP * (SLOT_KINDS - 1),
    SLOT_INDEX_BITS = 27,
    SLOT_PAD = 64,
};
struct hash_slots {
    char **pages;
    uint32_t page_count, page_capacity;
    uint32_t count; /* in use */
};

struct hash_large {
    struct map map;
    struct map_pages list; /* places, uint32_t */
    uint64_t seed;
    size_t entries_size;     /* heap bytes of entries and pages of slots */
    uint32_t pages_capacity; /* of all kinds */
    uint32_t full_kinds;     /* a bit for each kind that has had SLOTS_END slots */
    uint32_t count;
    struct hash_slots slots[SLOT_KINDS];
};

static struct hash_pair hash_pair_at(const char *at, uint32_t field_size, uint32_t value_size) {
    return (struct hash_pair){.field = {.at = at, .size = field_size},
                              .value = {.at = at + field_size, .size = value_size}};
}

/* ---- packed ---- */

/* The size as 7 bits a byte, the lowest first, 0x80 set in all but the last. */
static char *hash_put_size(char *at, size_t size) {
    for (; size >= 0x80; size >>= 7) {
        *at++ = (char)(size | 0x80);
    }
    *at++ = (char)size;
    return at;
}

static const char *hash_read_size(const char *at, uint32_t *size) {
    uint32_t result = 0;
    for (unsigned shift = 0;; shift += 7) {
        uint8_t byte = (uint8_t)*at++;
        result |= (uint32_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *size = result;
            return at;
        }
    }
}

static size_t hash_size_of_size(size_t size) {
    size_t bytes = 1;
    for (; size >= 0x80; size >>= 7) {
        bytes++;
    }
    return bytes;
}

static size_t hash_packed_entry_size(struct bytes field, struct bytes value) {
    return hash_size_of_size(field.size) + hash_size_of_size(value.size) + field.size + value.size;
}

/* Read the entry at `at`; returns its end. */
static inline const char *hash_read_entry(const char *at, struct hash_pair *pair) {
    uint32_t field_size = (uint8_t)at[0];
    uint32_t value_size = (uint8_t)at[1];
    if ((field_size | value_size) < 0x80) {
        at += 2;
    } else {
        at = hash_read_size(hash_read_size(at, &field_size), &value_size);
    }
    *pair = hash_pair_at(at, field_size, value_size);
    return at + field_size + value_size;
}

/* ---- short and packed: entries one after another ---- */

static const char *hash_entries(const struct hash *hash) {
    return hash->short_size == HASH_FAR ? hash->far.packed : (const char *)hash + HASH_HEAD_SIZE;
}

static uint32_t hash_entries_size(const struct hash *hash) {
    return hash->short_size == HASH_FAR ? hash->far.packed_size : hash->short_size;
}

/* The entry of a field, or NULL; *pair is what it holds. */
static inline const char *hash_packed_find(const struct hash *hash, struct bytes field,
                                           struct hash_pair *pair) {
    const char *at = hash_entries(hash);
    for (uint32_t left = hash_count(hash); left > 0; left--) {
        const char *next = hash_read_entry(at, pair);
        if (bytes_equal(pair->field, field)) {
            return at;
        }
        at = next;
    }
    return NULL;
}

/* Give back memory that is not in use, if that is possible. */
static void hash_packed_trim(struct hash *hash) {
    struct hash_far *far = &hash->far;
    if (hash_entries_size(hash) == 0) {
        if (hash->short_size == HASH_FAR) {
            memory_free(far->packed);
        }
        memset(hash, 0, hash_size(hash));
    } else if (hash->short_size == HASH_FAR &&
               memory_size(far->packed) > far->packed_size + (size_t)SPARE_MAX) {
        char *smaller = memory_resize(far->packed, far->packed_size);
        far->packed = smaller != NULL ? smaller : far->packed;
    }
}

/* Replace the bytes from begin to end by so many others, for which there is room, and return where
 * they go; count: fields that come or leave. */
static char *hash_packed_splice(struct hash *hash, const char *begin, const char *end, size_t size,
                                int count) {
    bool is_far = hash->short_size == HASH_FAR;
    char *entries = is_far ? hash->far.packed : (char *)hash + HASH_HEAD_SIZE;
    char *at = entries + (begin - entries);
    size_t behind = hash_entries_size(hash) - (size_t)(end - entries);
    size_t entries_size = (size_t)(at - entries) + size + behind;
    if (behind > 0 && size != (size_t)(end - begin)) {
        memmove(at + size, end, behind);
    }
    if (is_far) {
        hash->far.packed_size = (uint32_t)entries_size;
        hash->far.count += (uint32_t)count;
    } else {
        hash->short_size = (uint8_t)entries_size;
        hash->short_count = (hash->short_count + (uint32_t)count) & 0x7f;
    }
    return at;
}

static void hash_copy_text(char *to, struct bytes text) {
    if (text.size > 0) {
        memcpy(to, text.at, text.size);
    }
}

/* Upper bounds of what a packed hash will have when these are put; exact without repetitions. */
static void hash_measure(const struct hash *hash, const struct bytes *args, uint32_t count,
                         uint64_t *fields, uint64_t *size) {
    *fields = hash_count(hash);
    *size = hash_entries_size(hash);
    for (uint32_t i = 0; i < count && *size <= HASH_PACKED_SIZE_MAX; i++) {
        const struct bytes *pair = &args[(size_t)i * 2];
        struct hash_pair old;
        size_t needed = hash_packed_entry_size(pair[0], pair[1]);
        if (hash_packed_find(hash, pair[0], &old) != NULL) {
            size_t had = hash_packed_entry_size(old.field, old.value);
            *size += needed > had ? needed - had : 0;
        } else {
            *size += needed;
            ++*fields;
        }
    }
}

/* size: of all entries then. A short hash of this room stays short if they fit. */
static enum hash_status hash_put_packed(struct hash *hash, size_t room, const struct bytes *args,
                                        uint32_t count, size_t size, uint32_t *added_count) {
    if (hash->short_size != HASH_FAR) {
        if (size > HASH_SHORT_SIZE_MAX || HASH_HEAD_SIZE + size > room) {
            char *packed = memory_allocate(size);
            if (packed == NULL) {
                return HASH_OUT_OF_MEMORY;
            }
            struct hash_far far = {
                .packed = packed, .count = hash->short_count, .packed_size = hash->short_size};
            memcpy(packed, (char *)hash + HASH_HEAD_SIZE, hash->short_size);
            hash->far = far;
            hash->short_size = HASH_FAR;
        }
    } else if (memory_size(hash->far.packed) < size) {
        char *larger = memory_resize(hash->far.packed, size);
        if (larger == NULL) {
            return HASH_OUT_OF_MEMORY;
        }
        hash->far.packed = larger;
    }
    for (uint32_t i = 0; i < count; i++) {
        struct bytes field = args[(size_t)i * 2];
        struct bytes value = args[(size_t)i * 2 + 1];
        struct hash_pair old;
        const char *begin = hash_packed_find(hash, field, &old);
        const char *end = begin != NULL ? old.value.at + old.value.size : NULL;
        bool is_new = begin == NULL;
        if (is_new) {
            begin = end = hash_entries(hash) + hash_entries_size(hash);
            ++*added_count;
        }
        char *at =
            hash_packed_splice(hash, begin, end, hash_packed_entry_size(field, value), is_new);
        at = hash_put_size(hash_put_size(at, field.size), value.size);
        hash_copy_text(at, field);
        hash_copy_text(at + field.size, value);
    }
    hash_packed_trim(hash);
    return HASH_OK;
}

/* ---- large: slots ---- */

static inline uint32_t hash_slot_size(uint32_t kind) {
    return kind < SLOT_KIND_MIN ? (uint32_t)sizeof(struct hash_entry *) : kind * SLOT_STEP;
}

static inline uint32_t hash_place(uint32_t kind, uint32_t index) {
    return kind << SLOT_INDEX_BITS | index;
}

static inline uint32_t hash_place_kind(uint32_t place) {
    uint32_t kind = place >> SLOT_INDEX_BITS;
    return kind < SLOT_KIND_MIN ? SLOT_FAR : kind;
}

static inline char *hash_slot_at(const struct hash_large *large, uint32_t kind, uint32_t index) {
    return large->slots[kind].pages[index / SLOTS_EACH] +
           (size_t)(index % SLOTS_EACH) * hash_slot_size(kind);
}

static inline char *hash_slot(const struct hash_large *large, uint32_t place) {
    uint32_t kind = hash_place_kind(place);
    return hash_slot_at(large, kind, place ^ hash_place(kind, 0));
}

static struct hash_entry *hash_slot_entry(const char *slot) {
    void *entry;
    memcpy(&entry, slot, sizeof entry);
    return entry;
}

static void hash_slot_point(char *slot, struct hash_entry *entry) {
    const void *at = entry;
    memcpy(slot, &at, sizeof at);
}

static inline struct hash_pair hash_pair_of(const struct hash_large *large, uint32_t place) {
    const char *slot = hash_slot(large, place);
    uint32_t kind = hash_place_kind(place);
    if (kind == SLOT_FAR) {
        const struct hash_entry *entry = hash_slot_entry(slot);
        return hash_pair_at(entry->at, entry->field_size, entry->value_size);
    }
    uint32_t field_size = (uint8_t)slot[0] % SLOT_PAD;
    uint32_t pad = (uint8_t)slot[0] / SLOT_PAD;
    return hash_pair_at(slot + 1, field_size, kind * SLOT_STEP - 1 - field_size - pad);
}

static uint32_t hash_kind_for(const struct hash_large *large, struct bytes field,
                              struct bytes value) {
    size_t size = 1 + field.size + value.size;
    if (size > SLOT_SIZE_MAX) {
        return SLOT_FAR;
    }
    uint32_t kind = ((uint32_t)size + SLOT_STEP - 1) / SLOT_STEP;
    kind = kind < SLOT_KIND_MIN ? (uint32_t)SLOT_KIND_MIN : kind;
    return (large->full_kinds >> kind & 1) != 0 ? (uint32_t)SLOT_FAR : kind;
}

/* Write the head and the value, which may be what is there. The field stands behind the head. */
static void hash_slot_set(char *slot, uint32_t kind, uint32_t field_size, struct bytes value) {
    size_t pad = kind * SLOT_STEP - 1 - field_size - value.size;
    if (value.size > 0) {
        memmove(slot + 1 + field_size, value.at, value.size);
    }
    slot[0] = (char)(field_size | pad * SLOT_PAD);
}

/* Pages for so many. */
static bool hash_slots_reserve(struct hash_large *large, uint32_t kind, uint32_t count) {
    struct hash_slots *slots = &large->slots[kind];
    while (count > slots->page_count * (uint64_t)SLOTS_EACH) {
        if (slots->page_count == slots->page_capacity) {
            uint32_t more = slots->page_capacity < 4 ? 4 : slots->page_capacity;
            char **pages =
                memory_resize(slots->pages, ((size_t)slots->page_capacity + more) * sizeof *pages);
            if (pages == NULL) {
                return false;
            }
            slots->pages = pages;
            slots->page_capacity += more;
            large->pages_capacity += more;
        }
        char *page = memory_allocate(SLOTS_EACH * hash_slot_size(kind));
        if (page == NULL) {
            return false;
        }
        large->entries_size += memory_size(page);
        slots->pages[slots->page_count++] = page;
    }
    return true;
}

static void hash_slots_free_page(struct hash_large *large, struct hash_slots *slots) {
    char *page = slots->pages[--slots->page_count];
    large->entries_size -= memory_size(page);
    memory_free(page);
}

/* Free pages that are not in use, but for a spare one. */
static void hash_slots_trim(struct hash_large *large, uint32_t kind) {
    struct hash_slots *slots = &large->slots[kind];
    uint32_t kept = slots->count == 0 ? 0 : (slots->count + SLOTS_EACH - 1) / SLOTS_EACH + 1;
    while (slots->page_count > kept) {
        hash_slots_free_page(large, slots);
    }
    if (kept == 0) {
        large->pages_capacity -= slots->page_capacity;
        memory_free(slots->pages);
        *slots = (struct hash_slots){.pages = NULL};
    }
}

/* ---- large ---- */

static uint32_t *hash_list_at(const struct hash_large *large, uint32_t index) {
    return map_pages_at(&large->list, index * (uint64_t)sizeof(uint32_t));
}

static inline struct hash_pair hash_pair_of_index(const struct hash_large *large, uint32_t index) {
    return hash_pair_of(large, *hash_list_at(large, index));
}

static uint64_t hash_field_hash(const struct hash_large *large, struct bytes field) {
    return XXH3_64bits_withSeed(field.at, field.size, large->seed);
}

static uint64_t hash_of_index(const struct hash_large *large, uint32_t index) {
    return hash_field_hash(large, hash_pair_of_index(large, index).field);
}

/* Callback of the map. */
static uint32_t hash_large_hashes(const void *owner, uint32_t id, uint64_t *hashes) {
    const struct hash_large *large = owner;
    if (id >= large->count) {
        return 0;
    }
    hashes[0] = hash_of_index(large, id);
    return 1;
}

/* Its index in the list, and the pair that is there. */
static inline bool hash_large_find(const struct hash_large *large, uint64_t hash,
                                   struct bytes field, uint32_t *index, struct hash_pair *pair) {
    struct map_find find;
    map_find(&large->map, hash, &find);
    while (map_find_next(&find, index)) {
        if (*index < large->count) {
            *pair = hash_pair_of_index(large, *index);
            if (bytes_equal(pair->field, field)) {
                return true;
            }
        }
    }
    return false;
}

static struct hash_large *hash_create_large(uint64_t seed) {
    struct hash_large *large = memory_allocate_zeroed(sizeof *large);
    if (large != NULL) {
        large->seed = seed;
        map_init(&large->map, hash_large_hashes, large);
    }
    return large;
}

static struct hash_entry *hash_create_entry(struct hash_large *large, struct bytes field,
                                            struct bytes value) {
    struct hash_entry *entry = memory_allocate(sizeof *entry + field.size + value.size);
    if (entry != NULL) {
        entry->field_size = (uint32_t)field.size;
        entry->value_size = (uint32_t)value.size;
        hash_copy_text(entry->at, field);
        hash_copy_text(entry->at + field.size, value);
        large->entries_size += memory_size(entry);
    }
    return entry;
}

static void hash_free_entry(struct hash_large *large, struct hash_entry *entry) {
    large->entries_size -= memory_size(entry);
    memory_free(entry);
}

/* Free the slot at a place of the list, which is not read again. The last one of its kind comes there. */
static void hash_slot_free(struct hash_large *large, uint32_t place) {
    uint32_t kind = hash_place_kind(place);
    uint32_t last = hash_place(kind, --large->slots[kind].count);
    char *slot = hash_slot(large, place);
    if (kind == SLOT_FAR) {
        hash_free_entry(large, hash_slot_entry(slot));
    }
    if (place != last) {
        struct map_find find;
        uint32_t index;
        map_find(&large->map, hash_field_hash(large, hash_pair_of(large, last).field), &find);
        do {
            CHECK(map_find_next(&find, &index));
        } while (index >= large->count || *hash_list_at(large, index) != last);
        memcpy(slot, hash_slot(large, last), hash_slot_size(kind));
        *hash_list_at(large, index) = place;
    }
}

static void hash_destroy_large(struct hash_large *large) {
    for (uint32_t i = 0; i < large->slots[SLOT_FAR].count; i++) {
        memory_free(hash_slot_entry(hash_slot_at(large, SLOT_FAR, i)));
    }
    for (uint32_t kind = 0; kind < SLOT_KINDS; kind++) {
        while (large->slots[kind].page_count > 0) {
            hash_slots_free_page(large, &large->slots[kind]);
        }
        memory_free(large->slots[kind].pages);
    }
    map_pages_deinit(&large->list);
    map_deinit(&large->map);
    memory_free(large);
}

/* A step of what is left to do after a removal. */
static void hash_large_trim(struct hash_large *large) {
    (void)map_step(&large->map, large->count);
    map_pages_trim(&large->list, large->count * (uint64_t)sizeof(uint32_t));
}

/* Make room for the fields, and the entries that some of them need behind the slots in use. */
static bool hash_large_reserve(struct hash_large *large, const struct bytes *args, uint32_t count) {
    uint32_t end = large->count + count;
    uint32_t wanted[SLOT_KINDS] = {0};
    uint32_t made = 0;
    bool has_room = map_pages_reserve(&large->list, end * (uint64_t)sizeof(uint32_t));
    /* A reservation a field, as if they came one by one: each advances a rehash by a step, so that no command pays for a
     * whole one. */
    for (uint32_t i = 1; i <= count && has_room; i++) {
        has_room = map_reserve(&large->map, i, large->count + i);
    }
    for (; made < count && has_room; made++, args += 2) {
        uint32_t kind = hash_kind_for(large, args[0], args[1]);
        if (kind != SLOT_FAR && large->slots[kind].count + (uint64_t)count > SLOTS_END) {
            large->full_kinds |= UINT32_C(1) << kind;
            kind = SLOT_FAR;
        }
        uint32_t index = large->slots[kind].count + wanted[kind];
        has_room = hash_slots_reserve(large, kind, index + 1);
        if (has_room && kind == SLOT_FAR) {
            struct hash_entry *entry = hash_create_entry(large, args[0], args[1]);
            has_room = entry != NULL;
            hash_slot_point(hash_slot_at(large, kind, index), entry);
        }
        wanted[kind] += has_room;
    }
    if (has_room) {
        return true;
    }
    for (uint32_t i = 0; i < wanted[SLOT_FAR]; i++) {
        uint32_t index = large->slots[SLOT_FAR].count + i;
        hash_free_entry(large, hash_slot_entry(hash_slot_at(large, SLOT_FAR, index)));
    }
    for (uint32_t kind = 0; kind < SLOT_KINDS; kind++) {
        hash_slots_trim(large, kind);
    }
    hash_large_trim(large);
    return false;
}

/* A value of a size that needs nothing to be allocated. */
static bool hash_large_overwrite(const struct hash_large *large, struct bytes field,
                                 struct bytes value) {
    struct hash_pair pair;
    uint32_t index;
    if (!hash_large_find(large, hash_field_hash(large, field), field, &index, &pair)) {
        return false;
    }
    if (pair.value.size == value.size) {
        if (value.size > 0) {
            memmove((char *)(uintptr_t)pair.value.at, value.at, value.size);
        }
        return true;
    }
    uint32_t place = *hash_list_at(large, index);
    uint32_t kind = hash_place_kind(place);
    if (kind == SLOT_FAR || hash_kind_for(large, field, value) != kind) {
        return false;
    }
    hash_slot_set(hash_slot(large, place), kind, (uint32_t)field.size, value);
    return true;
}

static enum hash_status hash_large_put(struct hash_large *large, const struct bytes *args,
                                       uint32_t count, uint32_t *added_count) {
    if (count >= HASH_FIELDS_END - large->count) {
        return HASH_FULL;
    }
    if (count == 1 && hash_large_overwrite(large, args[0], args[1])) {
        return HASH_OK;
    }
    if (!hash_large_reserve(large, args, count)) {
        return HASH_OUT_OF_MEMORY;
    }
    uint32_t next_far = large->slots[SLOT_FAR].count;
    uint32_t left_kinds = 0;
    for (uint32_t i = 0; i < count; i++, args += 2) {
        uint64_t hash = hash_field_hash(large, args[0]);
        uint32_t kind = hash_kind_for(large, args[0], args[1]);
        struct hash_slots *slots = &large->slots[kind];
        struct hash_pair pair;
        uint32_t index;
        if (hash_large_find(large, hash, args[0], &index, &pair)) {
            uint32_t place = *hash_list_at(large, index);
            left_kinds |= UINT32_C(1) << hash_place_kind(place);
            hash_slot_free(large, place);
        } else {
            index = large->count++;
            map_put(&large->map, hash, index);
            ++*added_count;
        }
        char *slot = hash_slot_at(large, kind, slots->count);
        if (kind == SLOT_FAR) {
            hash_slot_point(slot, hash_slot_entry(hash_slot_at(large, kind, next_far++)));
        } else {
            hash_copy_text(slot + 1, args[0]);
            hash_slot_set(slot, kind, (uint32_t)args[0].size, args[1]);
        }
        *hash_list_at(large, index) = hash_place(kind, slots->count++);
    }
    for (; left_kinds != 0; left_kinds &= left_kinds - 1) {
        hash_slots_trim(large, (uint32_t)__builtin_ctz(left_kinds));
    }
    return HASH_OK;
}

/* ---- from packed to large ---- */

/* A large hash with the fields of a packed one. NULL: no memory. */
static struct hash_large *hash_enlarge(const struct hash *hash, uint64_t seed) {
    struct bytes args[2 * HASH_PACKED_FIELDS_MAX];
    struct hash_large *large = hash_create_large(seed);
    struct hash_cursor cursor = hash_begin(hash);
    struct hash_pair pair;
    uint32_t count = 0;
    uint32_t added_count = 0;
    while (hash_next(&cursor, &pair)) {
        args[count++] = pair.field;
        args[count++] = pair.value;
    }
    if (large != NULL && hash_large_put(large, args, count / 2, &added_count) != HASH_OK) {
        hash_destroy_large(large);
        return NULL;
    }
    return large;
}

static enum hash_status hash_put_large(struct hash *hash, uint64_t seed, const struct bytes *args,
                                       uint32_t count, uint32_t *added_count) {
    bool was_large = hash_is_large(hash);
    struct hash_large *large = was_large ? hash->far.large : hash_enlarge(hash, seed);
    if (large == NULL) {
        return HASH_OUT_OF_MEMORY;
    }
    enum hash_status status = hash_large_put(large, args, count, added_count);
    if (!was_large && status != HASH_OK) {
        hash_destroy_large(large);
        return status;
    }
    if (!was_large) {
        if (hash->short_size == HASH_FAR) {
            memory_free(hash->far.packed);
        }
        hash->short_size = HASH_FAR;
        hash->far = (struct hash_far){.large = large, .is_large = true};
    }
    hash->far.count = large->count;
    return status;
}

static size_t hash_longest(const struct bytes *args, uint32_t count) {
    size_t size = 0;
    for (uint64_t i = 0; i < (uint64_t)count * 2; i++) {
        size = args[i].size > size ? args[i].size : size;
    }
    return size;
}

/* ---- the interface ---- */

bool hash_find(const struct hash *hash, struct bytes field, struct bytes *value) {
    struct hash_pair pair;
    uint32_t index;
    if (!hash_is_large(hash)) {
        if (hash_packed_find(hash, field, &pair) == NULL) {
            return false;
        }
    } else if (!hash_large_find(hash->far.large, hash_field_hash(hash->far.large, field), field,
                                &index, &pair)) {
        return false;
    }
    *value = pair.value;
    return true;
}

bool hash_next(struct hash_cursor *cursor, struct hash_pair *pair) {
    const struct hash *hash = cursor->hash;
    if (cursor->index == hash_count(hash)) {
        return false;
    }
    if (hash_is_large(hash)) {
        *pair = hash_pair_of_index(hash->far.large, cursor->index);
    } else {
        const char *entries = hash_entries(hash);
        cursor->offset = (uint32_t)(hash_read_entry(entries + cursor->offset, pair) - entries);
    }
    cursor->index++;
    return true;
}

void hash_at(const struct hash *hash, uint32_t index, struct hash_pair *pair) {
    struct hash_cursor cursor = hash_begin(hash);
    CHECK(index < hash_count(hash));
    if (hash_is_large(hash)) {
        cursor.index = index;
    }
    do {
        CHECK(hash_next(&cursor, pair));
    } while (cursor.index <= index);
}

bool hash_has_room(const struct hash *hash, const struct bytes *args, uint32_t count) {
    return count < HASH_FIELDS_END - hash_count(hash) && hash_longest(args, count) <= HASH_TEXT_MAX;
}

size_t hash_growth_size(const struct hash *hash, const struct bytes *args, uint32_t count) {
    size_t text_size = 0;
    for (uint64_t i = 0; i < (uint64_t)count * 2; i++) {
        text_size += args[i].size;
    }
    return hash_growth_size_for(hash, count, text_size);
}

size_t hash_growth_size_for(const struct hash *hash, uint32_t count, size_t text_size) {
    /* Of an entry: its head or the sizes of two texts, what an allocation adds, its slot, its place in the list, and its
     * part of a page in a table that grows. */
    enum {
        ENTRY_SIZE = sizeof(struct hash_entry) + 24 + sizeof(struct hash_entry *) +
                     sizeof(uint32_t) + 2 * sizeof(void *),
        PAGE_SIZE_MAX = SLOTS_EACH * SLOT_SIZE_MAX + 24 + 4 * sizeof(void *) + 24,
    };
    size_t size = (size_t)count * ENTRY_SIZE + (size_t)MAP_PAGES_SIZE + 64 + text_size +
                  (size_t)(count < SLOT_KINDS ? count : SLOT_KINDS) * PAGE_SIZE_MAX;
    struct map empty;
    if (hash_is_large(hash)) {
        const struct hash_large *large = hash->far.large;
        return size + 2 * ((size_t)large->list.capacity + large->pages_capacity) * sizeof(void *) +
               map_growth_size(&large->map, count, large->count + count);
    }
    /* What is there moves with what comes, or becomes a large hash. */
    map_init(&empty, NULL, NULL);
    uint32_t field_count = hash_count(hash) + count;
    return size + hash_entries_size(hash) + (size_t)hash_count(hash) * ENTRY_SIZE +
           (size_t)SLOT_KINDS * PAGE_SIZE_MAX + sizeof(struct hash_large) +
           map_growth_size(&empty, field_count, field_count);
}

enum hash_status hash_put_within(struct hash *hash, size_t room, uint64_t seed,
                                 const struct bytes *args, uint32_t count, uint32_t *added_count,
                                 size_t *wanted) {
    enum hash_status status;
    uint64_t fields = HASH_PACKED_FIELDS_MAX + 1;
    uint64_t size = 0;
    size_t text_size = hash_longest(args, count);
    *added_count = 0;
    if (text_size > HASH_TEXT_MAX) {
        return HASH_FULL;
    }
    if (!hash_is_large(hash) && count <= HASH_PACKED_FIELDS_MAX) {
        hash_measure(hash, args, count, &fields, &size);
    }
    bool is_packed = fields <= HASH_PACKED_FIELDS_MAX && size <= HASH_PACKED_SIZE_MAX;
    if (wanted != NULL && hash->short_size != HASH_FAR) {
        bool is_short = is_packed && size <= HASH_SHORT_SIZE_MAX;
        *wanted = is_short ? HASH_HEAD_SIZE + (size_t)size : (size_t)HASH_SIZE_MIN;
        if (*wanted > room) {
            return HASH_NO_ROOM;
        }
    }
    if (is_packed) {
        status = hash_put_packed(hash, room, args, count, (size_t)size, added_count);
    } else {
        status = hash_put_large(hash, seed, args, count, added_count);
    }
    if (status == HASH_OK && !hash->is_hashtable) {
        hash->is_hashtable =
            hash_count(hash) > HASH_LISTPACK_FIELDS_MAX || text_size > HASH_LISTPACK_TEXT_MAX;
    }
    return status;
}

enum hash_status hash_put(struct hash *hash, uint64_t seed, const struct bytes *args,
                          uint32_t count, uint32_t *added_count) {
    return hash_put_within(hash, sizeof *hash, seed, args, count, added_count, NULL);
}

bool hash_remove(struct hash *hash, struct bytes field) {
    struct hash_pair pair;
    if (hash_is_large(hash)) {
        struct hash_large *large = hash->far.large;
        uint64_t bits = hash_field_hash(large, field);
        uint32_t index;
        if (!hash_large_find(large, bits, field, &index, &pair)) {
            return false;
        }
        uint32_t place = *hash_list_at(large, index);
        uint32_t last = large->count - 1;
        map_remove(&large->map, bits, index);
        hash_slot_free(large, place);
        if (index != last) {
            map_replace(&large->map, hash_of_index(large, last), last, index);
            *hash_list_at(large, index) = *hash_list_at(large, last);
        }
        large->count = last;
        hash_slots_trim(large, hash_place_kind(place));
        hash_large_trim(large);
        hash->far.count--;
        return true;
    }
    const char *at = hash_packed_find(hash, field, &pair);
    if (at == NULL) {
        return false;
    }
    (void)hash_packed_splice(hash, at, pair.value.at + pair.value.size, 0, -1);
    hash_packed_trim(hash);
    return true;
}

void hash_prefetch(const struct hash *hash) {
    if (hash_is_large(hash)) {
        memory_prefetch_lines(hash->far.large, sizeof(struct hash_large));
    } else {
        uint32_t size = hash_entries_size(hash);
        memory_prefetch_lines(hash_entries(hash), size < 256 ? size : 256);
    }
}

void hash_prefetch_begin(struct hash_prefetch *prefetch, const struct hash *hash,
                         const struct bytes *fields, uint32_t count) {
    CHECK(count <= HASH_PREFETCH_MAX);
    prefetch->hash = hash;
    prefetch->count = hash_is_large(hash) ? count : 0;
    if (prefetch->count == 0) {
        hash_prefetch(hash);
    }
    for (uint32_t i = 0; i < prefetch->count; i++) {
        prefetch->hashes[i] = hash_field_hash(hash->far.large, fields[i]);
        map_prefetch(&hash->far.large->map, prefetch->hashes[i]);
    }
}

void hash_prefetch_places(struct hash_prefetch *prefetch) {
    const struct hash_large *large = prefetch->hash->far.large;
    for (uint32_t i = 0; i < prefetch->count; i++) {
        struct map_find find;
        uint32_t *index = &prefetch->indexes[i];
        map_find(&large->map, prefetch->hashes[i], &find);
        if (map_find_next(&find, index) && *index < large->count) {
            memory_prefetch(hash_list_at(large, *index));
        } else {
            *index = UINT32_MAX;
        }
    }
}

static void hash_prefetch_pair(const struct hash_large *large, uint32_t index) {
    uint32_t place = *hash_list_at(large, index);
    const char *slot = hash_slot(large, place);
    if (hash_place_kind(place) == SLOT_FAR) {
        memory_prefetch_lines(hash_slot_entry(slot), 128);
    } else {
        memory_prefetch_lines(slot, SLOT_SIZE_MAX);
    }
}

void hash_prefetch_entries(const struct hash_prefetch *prefetch) {
    const struct hash_large *large = prefetch->hash->far.large;
    for (uint32_t i = 0; i < prefetch->count; i++) {
        if (prefetch->indexes[i] != UINT32_MAX) {
            hash_prefetch_pair(large, prefetch->indexes[i]);
        }
    }
}

void hash_prefetch_fields(const struct hash *hash, const struct bytes *fields, uint32_t count) {
    struct hash_prefetch prefetch;
    hash_prefetch_begin(&prefetch, hash, fields, count);
    hash_prefetch_places(&prefetch);
    hash_prefetch_entries(&prefetch);
}

size_t hash_memory_size(const struct hash *hash) {
    if (!hash_is_large(hash)) {
        return hash->short_size == HASH_FAR ? memory_size(hash->far.packed) : 0;
    }
    const struct hash_large *large = hash->far.large;
    size_t size = memory_size(large) + map_memory_size(&large->map) + large->entries_size;
    for (uint32_t kind = 0; kind < SLOT_KINDS; kind++) {
        size += large->slots[kind].pages != NULL ? memory_size(large->slots[kind].pages) : 0;
    }
    for (uint32_t i = 0; i < large->list.count; i++) {
        size += memory_size(large->list.at[i]);
    }
    return size + (large->list.at != NULL ? memory_size(large->list.at) : 0);
}

/* ---- copying and freeing ---- */

static bool hash_copy_entries(const struct hash_large *large, struct hash_large *copy) {
    if (!map_pages_reserve(&copy->list, large->count * (uint64_t)sizeof(uint32_t)) ||
        !map_copy(&large->map, &copy->map)) {
        return false;
    }
    for (uint32_t i = 0; i < copy->list.count; i++) {
        memcpy(copy->list.at[i], large->list.at[i], MAP_PAGES_SIZE);
    }
    for (uint32_t kind = 0; kind < SLOT_KINDS; kind++) {
        const struct hash_slots *slots = &large->slots[kind];
        struct hash_slots *copied = &copy->slots[kind];
        if (!hash_slots_reserve(copy, kind, slots->count)) {
            return false;
        }
        for (uint32_t i = 0; i < copied->page_count && kind != SLOT_FAR; i++) {
            memcpy(copied->pages[i], slots->pages[i], SLOTS_EACH * hash_slot_size(kind));
        }
        copied->count = kind != SLOT_FAR ? slots->count : 0;
        for (; copied->count < slots->count; copied->count++) {
            struct hash_pair pair = hash_pair_of(large, hash_place(kind, copied->count));
            struct hash_entry *entry = hash_create_entry(copy, pair.field, pair.value);
            if (entry == NULL) {
                return false;
            }
            hash_slot_point(hash_slot_at(copy, kind, copied->count), entry);
        }
    }
    copy->full_kinds = large->full_kinds;
    copy->count = large->count;
    return true;
}

/* Could it be short? */
static bool hash_may_be_short(const struct hash *hash) {
    return !hash_is_large(hash) && hash_entries_size(hash) <= HASH_SHORT_SIZE_MAX;
}

size_t hash_moved_size(const struct hash *hash) {
    return hash_may_be_short(hash) ? (size_t)HASH_HEAD_SIZE + hash_entries_size(hash)
                                   : (size_t)HASH_SIZE_MIN;
}

void hash_move(struct hash *hash, struct hash *to, size_t room) {
    if (hash->short_size == HASH_FAR && hash_may_be_short(hash) && hash_moved_size(hash) <= room) {
        struct hash_far far = hash->far;
        to->short_size = (uint8_t)far.packed_size;
        to->short_count = far.count & 0x7f;
        to->is_hashtable = hash->is_hashtable;
        memcpy((char *)to + HASH_HEAD_SIZE, far.packed, far.packed_size);
        memory_free(far.packed);
    } else {
        CHECK(hash_size(hash) <= room);
        memcpy(to, hash, hash_size(hash));
    }
    memset(hash, 0, hash_size(hash));
}

bool hash_copy(const struct hash *hash, struct hash *copy) {
    if (hash->short_size != HASH_FAR) {
        memcpy(copy, hash, hash_size(hash));
        return true;
    }
    struct hash_far far = hash->far;
    if (far.is_large) {
        far.large = hash_create_large(hash->far.large->seed);
        if (far.large == NULL) {
            return false;
        }
        if (!hash_copy_entries(hash->far.large, far.large)) {
            hash_destroy_large(far.large);
            return false;
        }
    } else {
        far.packed = memory_allocate(far.packed_size);
        if (far.packed == NULL) {
            return false;
        }
        memcpy(far.packed, hash->far.packed, far.packed_size);
    }
    copy->short_size = HASH_FAR;
    copy->short_count = 0;
    copy->is_hashtable = hash->is_hashtable;
    copy->far = far;
    return true;
}

static uint32_t hash_less(uint32_t a, size_t b) {
    return a > b ? a - (uint32_t)b : 0;
}

bool hash_free_step(struct hash *hash, uint32_t *work) {
    uint32_t used = 1;
    if (hash_is_large(hash)) {
        struct hash_large *large = hash->far.large;
        uint32_t left = *work;
        struct hash_slots *far = &large->slots[SLOT_FAR];
        while (far->count > 0 && left > 0) {
            struct hash_entry *entry = hash_slot_entry(hash_slot_at(large, SLOT_FAR, --far->count));
            left = hash_less(left, 1 + memory_size(entry) / FREE_BYTES);
            memory_free(entry);
        }
        for (uint32_t kind = 0; kind < SLOT_KINDS; kind++) {
            for (; large->slots[kind].page_count > 0 && left > 0; left--) {
                hash_slots_free_page(large, &large->slots[kind]);
            }
        }
        for (; large->list.count > 0 && left > 0; left--) {
            memory_free(large->list.at[--large->list.count]);
        }
        while (left > 0 && !map_deinit_step(&large->map)) {
            left = hash_less(left, SEGMENT_WORK);
        }
        if (left == 0) {
            return false;
        }
        used = *work - left + 1;
        hash_destroy_large(large);
    } else if (hash->short_size == HASH_FAR) {
        memory_free(hash->far.packed);
    }
    *work = used;
    memset(hash, 0, hash_size(hash));
    return true;
}

/* ---- scanning ---- */

struct field_scan {
    const struct hash_large *large;
    hash_visit *visit;
    void *context;
};

static void hash_fetch_place(const void *owner, uint32_t id) {
    const struct hash_large *large = owner;
    if (id < large->count) {
        memory_prefetch(hash_list_at(large, id));
    }
}

static void hash_find_fields(const void *owner, const struct scan_candidate *candidates,
                             uint32_t count, struct scan *scan) {
    const struct hash_large *large = owner;
    for (uint32_t i = 0; i < count; i++) {
        if (candidates[i].id < large->count) {
            hash_prefetch_pair(large, candidates[i].id);
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        if (candidates[i].id >= large->count) {
            continue;
        }
        struct bytes field = hash_pair_of_index(large, candidates[i].id).field;
        struct scan_item item = {
            .prefix = (uint32_t)(hash_field_hash(large, field) >> 32),
            .name_size = (uint32_t)field.size,
            .at = hash_list_at(large, candidates[i].id),
        };
        if (item.prefix >= candidates[i].from && item.prefix <= candidates[i].last) {
            map_scan_add(scan, &item);
        }
    }
}

static void hash_visit_item(void *context, const struct scan_item *item) {
    const struct field_scan *own = context;
    const uint32_t *place = item->at;
    struct hash_pair pair = hash_pair_of(own->large, *place);
    own->visit(own->context, &pair);
}

uint64_t hash_scan(const struct hash *hash, uint64_t cursor, const struct scan_limits *limits,
                   hash_visit *visit, void *context) {
    if (hash_is_large(hash)) {
        struct field_scan own = {.large = hash->far.large, .visit = visit, .context = context};
        struct scan scan;
        map_scan_init(&scan, limits, hash_visit_item, &own);
        scan.owner = hash->far.large;
        scan.fetch = hash_fetch_place;
        scan.find = hash_find_fields;
        return cursor < SCAN_END ? map_scan_names(&scan, &hash->far.large->map, cursor) : 0;
    }
    struct hash_cursor place = hash_begin(hash);
    struct hash_pair pair;
    while (hash_next(&place, &pair)) {
        visit(context, &pair);
    }
    return 0;
}

/* ---- validation ---- */

static const char *hash_check_packed(const struct hash *hash) {
    const char *entries = hash_entries(hash);
    uint64_t size = 0;
    for (uint32_t i = 0; i < hash_count(hash); i++) {
        struct hash_pair pair;
        struct hash_pair found;
        const char *at = entries + size;
        size = (uint64_t)(hash_read_entry(at, &pair) - entries);
        if (size > hash_entries_size(hash)) {
            return "hash: entries are longer than the packed hash";
        }
        if (hash_packed_find(hash, pair.field, &found) != at) {
            return "hash: a field is there twice";
        }
    }
    bool is_short = hash->short_size != HASH_FAR;
    bool is_right = size == hash_entries_size(hash) && (is_short || size > 0) &&
                    hash_count(hash) <= HASH_PACKED_FIELDS_MAX && size <= HASH_PACKED_SIZE_MAX &&
                    (!is_short || size <= HASH_SHORT_SIZE_MAX);
    return is_right ? NULL : "hash: the packed size is wrong";
}

/* The slots, of which each has its place in the list: there are as many, and none is there twice. */
static const char *hash_check_slots(const struct hash_large *large) {
    size_t entries_size = 0;
    uint64_t count = 0;
    uint32_t capacity = 0;
    for (uint32_t kind = 0; kind < SLOT_KINDS; kind++) {
        const struct hash_slots *slots = &large->slots[kind];
        if (slots->count > slots->page_count * (uint64_t)SLOTS_EACH ||
            slots->page_count > slots->page_capacity) {
            return "hash: more slots than there is room for";
        }
        for (uint32_t i = 0; i < slots->page_count; i++) {
            entries_size += memory_size(slots->pages[i]);
        }
        for (uint32_t i = 0; i < slots->count && kind == SLOT_FAR; i++) {
            entries_size += memory_size(hash_slot_entry(hash_slot_at(large, kind, i)));
        }
        count += slots->count;
        capacity += slots->page_capacity;
    }
    return entries_size != large->entries_size || capacity != large->pages_capacity
               ? "hash: the bytes of the entries are not counted right"
           : count != large->count ? "hash: more or fewer slots in use than fields"
                                   : NULL;
}

static const char *hash_check_large(const struct hash *hash) {
    const struct hash_large *large = hash->far.large;
    const char *reason = hash_check_slots(large);
    if (reason != NULL) {
        return reason;
    }
    if (large->count != hash->far.count || map_count(&large->map) != large->count) {
        return "hash: the map or the list holds more or less than the fields";
    }
    for (uint32_t i = 0; i < large->count; i++) {
        uint32_t index;
        uint32_t place = *hash_list_at(large, i);
        uint32_t kind = hash_place_kind(place);
        if ((place ^ hash_place(kind, 0)) >= large->slots[kind].count) {
            return "hash: a field is in a slot that is not in use";
        }
        struct hash_pair found, pair = hash_pair_of(large, place);
        if (kind != SLOT_FAR && 1 + pair.field.size + pair.value.size > kind * SLOT_STEP) {
            return "hash: a field is longer than its slot";
        }
        if (!hash_large_find(large, hash_field_hash(large, pair.field), pair.field, &index,
                             &found) ||
            index != i) {
            return "hash: a field is not found where it stands";
        }
    }
    return map_validate(&large->map, &reason) ? NULL : reason;
}

const char *hash_check(const struct hash *hash) {
    if (hash_count(hash) > HASH_LISTPACK_FIELDS_MAX && !hash->is_hashtable) {
        return "hash: it has too many fields for a listpack";
    }
    return hash_is_large(hash) ? hash_check_large(hash) : hash_check_packed(hash);
}
