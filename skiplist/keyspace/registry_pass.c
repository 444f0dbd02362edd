/* Passes over all keys while they change. */
#include "skiplist/keyspace/registry_private.h"
#include "skiplist/prefetch.h"

enum { FETCH_AHEAD = 16 /* keys */ };

void registry_pass_begin(struct registry *registry, struct registry_pass *pass,
                         uint32_t first_database, uint32_t end_database) {
    registry_pass_end(registry, pass);
    *pass = (struct registry_pass){.next = registry->passes,
                                   .is_going = true,
                                   .first_database = first_database,
                                   .database = first_database,
                                   .end_database = end_database};
    registry->passes = pass;
    for (uint32_t i = first_database; i < end_database; i++) {
        pass->left[i] = registry_read(registry, i)->count;
    }
}

void registry_pass_end(struct registry *registry, struct registry_pass *pass) {
    struct registry_pass **link = &registry->passes;
    if (!pass->is_going) {
        return;
    }
    while (*link != pass) {
        link = &(*link)->next;
    }
    *link = pass->next;
    pass->is_going = false;
    memset(pass->left, 0, sizeof pass->left);
}

bool registry_pass_is_over(const struct registry_pass *pass) {
    for (uint32_t i = pass->database; i < pass->end_database; i++) {
        if (pass->left[i] > 0) {
            return false;
        }
    }
    return true;
}

struct registry_key *registry_pass_next(const struct registry *registry, struct registry_pass *pass,
                                        int64_t now_ms) {
    while (pass->database < pass->end_database && pass->left[pass->database] == 0) {
        pass->database++;
    }
    if (pass->database >= pass->end_database) {
        return NULL;
    }
    const struct database *database = registry_read(registry, pass->database);
    uint32_t index = --pass->left[pass->database];
    if (index >= FETCH_AHEAD) {
        prefetch_lines(registry_key_at(database, index - FETCH_AHEAD), 64);
    }
    struct registry_key *key = registry_key_at(database, index);
    return registry_has_expired(database, key, now_ms) ? NULL : key;
}

/* ---- what the list does ---- */

uint32_t registry_pass_move_hole(struct registry *registry, uint32_t number, uint32_t hole,
                                 uint32_t limit) {
    bool is_up = hole < limit;
    for (;;) {
        /* The pass whose keys ahead end next, between the hole and the limit. */
        struct registry_pass *found = NULL;
        uint32_t above = is_up ? hole : limit, up_to = is_up ? limit : hole;
        for (struct registry_pass *pass = registry->passes; pass != NULL; pass = pass->next) {
            uint32_t left = pass->left[number];
            if (left > above && left <= up_to &&
                (found == NULL || (left < found->left[number]) == is_up)) {
                found = pass;
            }
        }
        if (found == NULL) {
            return hole;
        }
        uint32_t moved = is_up ? --found->left[number] : found->left[number]++;
        registry_move_key(registry_database(registry, number), moved, hole);
        hole = moved;
    }
}

void registry_pass_note_flush(struct registry *registry, uint32_t number) {
    for (struct registry_pass *pass = registry->passes; pass != NULL; pass = pass->next) {
        pass->left[number] = 0;
    }
    if (registry->walk.open != NULL && registry->walk.open->database == number) {
        registry->walk.open = NULL;
    }
}

void registry_pass_restart_all(struct registry *registry) {
    for (struct registry_pass *pass = registry->passes; pass != NULL; pass = pass->next) {
        pass->database = pass->first_database;
        for (uint32_t i = pass->first_database; i < pass->end_database; i++) {
            pass->left[i] = registry_read(registry, i)->count;
        }
    }
}
