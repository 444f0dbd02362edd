/* Keys that belong to another host. See registry_embedded.h. */
#include "skiplist/keyspace/registry_embedded.h"

#include "codec/memory.h"
#include "skiplist/keyspace/effect.h"
#include "skiplist/keyspace/registry_private.h"

struct registry_key *registry_embedded_create(struct registry *registry, uint32_t database,
                                              struct bytes name, uint32_t kind,
                                              const struct board_options *options,
                                              const struct board_state *state) {
    struct registry_key *key =
        registry_reserve_key(registry, database, (struct registry_new_name){.first = name}, kind,
                             false, registry_tail_for(options));
    if (key != NULL && key->has_state) {
        *registry_state_room(key) = *state;
    }
    return key;
}

void registry_embedded_give_notes(struct registry_key *key, struct hash *notes) {
    if (key->has_notes) {
        hash_move(notes, registry_own_notes(key), sizeof *notes);
    }
}

struct registry_key *registry_embedded_rename(struct registry *registry, struct registry_key *key,
                                              struct bytes name) {
    struct registry_key *named = registry_embedded_create(
        registry, key->database, name, key->kind, registry_options(key), registry_state(key));
    if (named != NULL) {
        board_move_to(&key->board, &named->board);
        registry_note_move_all(key, named);
        memory_free(key);
    }
    return named;
}

struct registry_key *registry_embedded_copy(struct registry *registry,
                                            const struct registry_key *key, struct bytes name) {
    struct registry_key *copy = registry_embedded_create(
        registry, key->database, name, key->kind, registry_options(key), registry_state(key));
    if (copy != NULL && !key_kind_board.copy(registry, key, copy)) {
        memory_free(copy);
        return NULL;
    }
    return copy;
}

bool registry_embedded_part(struct registry *registry, struct registry_key *copy) {
    const struct board_options *held;
    if (!registry_hold_copied(registry, copy, &held)) {
        return false;
    }
    if (held != NULL) {
        registry_set_options(registry, copy, held);
        registry_give_state(copy, NULL);
    }
    return true;
}

const struct board_options *registry_embedded_free(struct registry_key *key) {
    const struct board_options *options = NULL;
    if (key->kind == REGISTRY_BOARD) {
        options = registry_options(key);
        board_deinit(&key->board);
        uint32_t work = UINT32_MAX;
        if (key->has_notes) {
            bool is_done = hash_free_step(registry_own_notes(key), &work);
            CHECK(is_done);
        }
    }
    registry_free_key(key);
    return options;
}

void registry_embedded_release(struct registry *registry, const struct board_options *options) {
    board_options_release(&registry->options, options);
}

void registry_embedded_free_later(struct registry *registry, struct registry_key *key) {
    registry_free_later(registry, key);
}

bool registry_embedded_admit(struct registry *registry, struct registry_key *key) {
    bool is_periodic = key->is_periodic;
    if (!registry_database_reserve(registry_database(registry, key->database), is_periodic)) {
        return false;
    }
    registry_put(registry, key, REGISTRY_WALK_DONE);
    registry_remember(&registry->databases[key->database], key);
    return true;
}

void registry_embedded_dismiss(struct registry *registry, struct registry_key *key) {
    registry_take(registry, key);
    key->expiry_place = EXPIRY_NOWHERE;
    key->is_lasting = false;
    if (registry->databases[0].count == 0) {
        registry->roll_at_ms = INT64_MAX;
    }
}

void registry_embedded_lend(struct registry *registry, struct registry_key *key) {
    struct database *database = &registry->databases[0];
    CHECK(database->count == 0);
    registry->used_databases |= 1;
    key->expiry_place = EXPIRY_NOWHERE;
    key->is_lasting = false;
    registry_remember(database, key);
}

void registry_embedded_take_back(struct registry *registry) {
    registry_forget_recent(&registry->databases[0]);
}

struct registry_key *registry_embedded_first_of(const struct registry *registry, uint32_t number) {
    const struct database *database = registry_read(registry, number);
    return database->count > 0 ? registry_key_at(database, database->count - 1) : NULL;
}

struct registry_key *registry_embedded_first(const struct registry *registry) {
    return registry_embedded_first_of(registry, 0);
}

struct registry_key *registry_embedded_find_in(const struct registry *registry, uint32_t number,
                                               struct bytes name) {
    const struct database *database = registry_read(registry, number);
    struct registry_key *recent = registry_recall(database, name);
    return recent != NULL ? recent : registry_find_name(database, name);
}

struct registry_key *registry_embedded_find(const struct registry *registry, struct bytes name) {
    return registry_embedded_find_in(registry, 0, name);
}

bool registry_embedded_keep_remains(struct registry *registry) {
    return board_chain_clear(&registry->remains);
}

void registry_embedded_hold_rolls(struct registry *registry) {
    registry->roll_at_ms = INT64_MAX;
}
