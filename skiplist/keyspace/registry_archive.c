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

bool registry_hold_archives(struct registry *registry, bool is_held, int64_t now_ms) {
    struct registry_archiving *archiving = &registry->archiving;
    archiving->is_held = is_held;
    if (is_held && archiving->mirror.copy != NULL) {
        registry_archive_end(registry);
        archiving->retry_ms = now_ms + GIVEN_UP_MS;
    }
    return is_held && registry_archive_find_due(registry, now_ms) != NULL;
}

/* true: it is made, or begun. */
static bool registry_archive_begin(struct registry *registry, struct registry_key *key,
                                   int64_t now_ms) {
    struct registry_archiving *archiving = &registry->archiving;
    uint32_t count = board_count(&key->board);
    bool is_short = count <= AT_ONCE_MAX || registry_rules(key)->archives_max == 0;
    if (is_short && registry->is_still) {
        return false;
    }
    if (is_short ? registry_roll_copy(registry, key, NULL, now_ms)
                 : registry_mirror_begin(&archiving->mirror, registry, key)) {
        return true;
    }
    archiving->retry_ms = now_ms + RETRY_MS;
    return false;
}

static bool registry_archive_go_on(struct registry *registry, int64_t now_ms,
                                   uint32_t entries_max) {
    struct registry_archiving *archiving = &registry->archiving;
    struct registry_mirror *mirror = &archiving->mirror;
    bool is_made = false;
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
        is_made = registry_roll_copy(registry, registry_key_at(database, mirror->key->index),
                                     mirror, now_ms);
    }
    registry_archive_end(registry);
    archiving->retry_ms = is_made ? 0 : now_ms + RETRY_MS;
    return true;
}

bool registry_archive_step(struct registry *registry, int64_t now_ms, uint32_t entries_max) {
    struct registry_archiving *archiving = &registry->archiving;
    if (archiving->mirror.copy != NULL) {
        return registry_archive_go_on(registry, now_ms, entries_max);
    }
    struct registry_key *key = registry_archive_find_due(registry, now_ms);
    return key != NULL && !archiving->is_held && now_ms >= archiving->retry_ms &&
           registry_archive_begin(registry, key, now_ms);
}

int64_t registry_archive_next_due(const struct registry *registry) {
    const struct registry_archiving *archiving = &registry->archiving;
    struct expiry_entry first = registry_first(registry, HEAP_COPIES);
    if (first.place == NULL || archiving->is_held || archiving->mirror.copy != NULL) {
        return REGISTRY_NO_EXPIRY;
    }
    return first.time_ms > archiving->retry_ms ? first.time_ms : archiving->retry_ms;
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
