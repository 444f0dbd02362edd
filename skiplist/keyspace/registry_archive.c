/* Archives that are copies. See registry_archive.h. */
#include "skiplist/keyspace/registry_archive.h"

#include "skiplist/keyspace/registry_roll.h"

enum {
    RETRY_MS = 1000,     /* after there was no memory */
    GIVEN_UP_MS = 60000, /* after much was copied in vain */
#ifdef SKIPLIST_TINY
    AT_ONCE_MAX = 8,
#else
    AT_ONCE_MAX = 128, /* members of a board that is copied in one step */
#endif
    GIVE_PARTS =
        8, /* of these parts of a board all but one must have been copied, if the rest is to follow */
};

void registry_archive_end(struct registry *registry) {
    registry_mirror_end(&registry->archiving.mirror);
}

/* The board whose archive has been due for the longest time. NULL: none is. */
static struct registry_key *registry_archive_find_due(const struct registry *registry,
                                                      int64_t now_ms) {
    struct expiry_entry first = registry_first(registry, HEAP_COPIES);
    return first.place != NULL && first.time_ms <= now_ms ? registry_roll_key_of_place(first.place)
                                                          : NULL;
}

/* The board has its next turn then; meanwhile others have theirs. */
static void registry_archive_put_off(struct registry *registry, struct registry_key *key,
                                     int64_t until_ms) {
    struct expiry *heaps = registry_database(registry, key->database)->heaps;
    expiry_change(&heaps[HEAP_COPIES], &registry_tail(key)->roll_place, until_ms);
}

/* For lack of memory. The original may be gone. */
static void registry_archive_give_up(struct registry *registry, int64_t now_ms, int64_t wait_ms) {
    const struct registry_key *copy = registry->archiving.mirror.copy;
    const struct registry_key *key =
        registry_peek(registry, copy->database, registry_name(copy), now_ms);
    if (key != NULL && registry_is_copy_due(key, now_ms)) {
        struct database *database = registry_database(registry, key->database);
        registry_archive_put_off(registry, registry_key_at(database, key->index), now_ms + wait_ms);
    }
    registry_archive_end(registry);
}

bool registry_limit_archives(struct registry *registry, uint64_t room, int64_t now_ms) {
    struct registry_archiving *archiving = &registry->archiving;
    bool is_waiting = archiving->is_waiting;
    archiving->room = room;
    archiving->is_waiting = false;
    if (room == 0 && archiving->mirror.copy != NULL) {
        registry_archive_give_up(registry, now_ms, GIVEN_UP_MS);
        return true;
    }
    return is_waiting || (room == 0 && registry_archive_find_due(registry, now_ms) != NULL);
}

/* true: it is made, begun, or put off. */
static bool registry_archive_begin(struct registry *registry, struct registry_key *key,
                                   int64_t now_ms) {
    struct registry_archiving *archiving = &registry->archiving;
    uint32_t count = board_count(&key->board);
    bool is_short = count <= AT_ONCE_MAX || registry_rules(key)->archives_max == 0;
    if (is_short && registry->is_still) {
        return false;
    }
    bool has_room = is_short || board_memory_size(&key->board) < archiving->room;
    if (!has_room || !(is_short ? registry_roll_copy(registry, key, NULL, now_ms)
                                : registry_mirror_begin(&archiving->mirror, registry, key))) {
        archiving->is_waiting |= !has_room;
        registry_archive_put_off(registry, key, now_ms + RETRY_MS);
    }
    return true;
}

static bool registry_archive_go_on(struct registry *registry, int64_t now_ms,
                                   uint32_t entries_max) {
    struct registry_archiving *archiving = &registry->archiving;
    struct registry_mirror *mirror = &archiving->mirror;
    switch (registry_mirror_step(mirror, entries_max)) {
    case REGISTRY_MIRROR_MORE:
        return true;
    case REGISTRY_MIRROR_LOST:
        registry_archive_end(registry);
        return true;
    case REGISTRY_MIRROR_OUT_OF_MEMORY:
        break;
    case REGISTRY_MIRROR_WHOLE:
        if (registry->is_still) {
            return false; /* its effect comes */
        }
        struct database *database = registry_database(registry, mirror->key->database);
        if (registry_roll_copy(registry, registry_key_at(database, mirror->key->index), mirror,
                               now_ms)) {
            registry_archive_end(registry);
            return true;
        }
    }
    registry_archive_give_up(registry, now_ms, RETRY_MS);
    return true;
}

bool registry_archive_step(struct registry *registry, int64_t now_ms, uint32_t entries_max) {
    struct registry_archiving *archiving = &registry->archiving;
    if (archiving->mirror.copy != NULL) {
        return registry_archive_go_on(registry, now_ms, entries_max);
    }
    struct registry_key *key = registry_archive_find_due(registry, now_ms);
    return key != NULL && archiving->room > 0 && registry_archive_begin(registry, key, now_ms);
}

int64_t registry_archive_next_due(const struct registry *registry) {
    const struct registry_archiving *archiving = &registry->archiving;
    struct expiry_entry first = registry_first(registry, HEAP_COPIES);
    bool is_waiting = archiving->room == 0 || archiving->mirror.copy != NULL;
    return first.place == NULL || is_waiting ? REGISTRY_NO_EXPIRY : first.time_ms;
}

bool registry_archive_save(struct registry *registry, struct registry_key **key) {
    int64_t expire_at_ms = registry_expiry(registry, *key);
    if (expire_at_ms == REGISTRY_NO_EXPIRY || !registry_is_copy_due(*key, expire_at_ms) ||
        registry_rules(*key)->archives_max == 0 || board_count(&(*key)->board) == 0) {
        return true;
    }
    bool stays = registry_rules(*key)->is_created;
    if (!registry_roll_move(registry, *key, expire_at_ms)) {
        return false;
    }
    *key = stays ? *key : NULL;
    return true;
}

bool registry_archive_give(struct registry *registry, const struct registry_key *key,
                           struct registry_key *to) {
    struct registry_mirror *mirror = &registry->archiving.mirror;
    enum registry_mirror_status status = REGISTRY_MIRROR_MORE;
    if (mirror->copy == NULL || mirror->key != key || key->kind != REGISTRY_BOARD ||
        mirror->status != REGISTRY_MIRROR_MORE) {
        return false;
    }
    uint32_t count = board_count(&key->board);
    if (count - mirror->copied_count > count / GIVE_PARTS) {
        return false;
    }
    while (status == REGISTRY_MIRROR_MORE) {
        status = registry_mirror_step(mirror, AT_ONCE_MAX);
    }
    if (status == REGISTRY_MIRROR_WHOLE) {
        registry_mirror_give(mirror, to);
    }
    registry_archive_end(registry);
    return status == REGISTRY_MIRROR_WHOLE;
}
