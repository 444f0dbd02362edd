/* The pass over the boards of the registry. See player.h.
 *
 * In Redis and Valkey the boards are the host's, and server/module/host_player.c takes this file's
 * place. */
#include "server/commands/lb/player.h"

enum { PASS_COUNT = 32 /* keys passed in a step */ };

/* ---- boards that have the member ---- */

static void player_pass_find_board(struct player_walk *walk, const struct registry_key *key) {
    uint64_t packed_key;
    struct bytes name = registry_name(key);
    uint32_t size = (uint32_t)name.size;
    if (key->kind != REGISTRY_BOARD || (walk->glob != NULL && !glob_takes(walk->glob, name)) ||
        !board_find(&key->board, walk->member, &packed_key)) {
        return;
    }
    char *at = buffer_reserve(&walk->found, 1 + sizeof size + name.size);
    if (at == NULL) {
        walk->has_missed = true;
        return;
    }
    *at = (char)key->database;
    memcpy(at + 1, &size, sizeof size);
    memcpy(at + 1 + sizeof size, name.at, name.size);
    buffer_commit(&walk->found, 1 + sizeof size + name.size);
}

static void player_pass_visit(void *context, const struct registry_key *key) {
    player_pass_find_board(context, key);
}

static bool player_pass_has_passed(const struct player_walk *walk, const struct registry_key *key) {
    return key->database >= walk->first_database && key->database < walk->end_database &&
           (key->database < walk->database ||
            (key->database == walk->database && registry_has_passed(key, walk->keys_left)));
}

static void player_pass_receive(void *context, const struct effect *effect) {
    struct player_walk *walk = context;
    if ((effect->kind == EFFECT_RENAME || effect->kind == EFFECT_COPY ||
         effect->kind == EFFECT_FILL) &&
        player_pass_has_passed(walk, effect->key)) {
        player_pass_find_board(walk, effect->key);
    }
}

static void player_pass_take_found(struct player_walk *walk, uint32_t *database,
                                   struct bytes *name) {
    const char *at = walk->found.at + walk->found_at;
    uint32_t size;
    *database = (uint8_t)*at;
    memcpy(&size, at + 1, sizeof size);
    *name = (struct bytes){.at = at + 1 + sizeof size, .size = size};
    walk->found_at += 1 + sizeof size + size;
}

static void player_pass_act_on_found(struct server *server, struct player_walk *walk) {
    uint32_t database;
    struct bytes name;
    uint64_t packed_key;
    player_pass_take_found(walk, &database, &name);
    /* Nothing is due now (step), so nothing is appended to the names by this look-up. */
    struct registry_key *key =
        registry_find(server->registry, database, name, server->clock.now_ms);
    if (key != NULL && key->kind == REGISTRY_BOARD &&
        board_find(&key->board, walk->member, &packed_key)) {
        walk->action->act(server, walk, key);
    }
}

/* ---- the pass ---- */

static void player_pass_rewind_walk(struct player_walk *walk) {
    walk->database = walk->first_database;
    walk->keys_left = UINT32_MAX;
    walk->has_missed = false;
}

static void player_pass_pass(struct server *server, struct player_walk *walk) {
    buffer_clear(&walk->found);
    walk->found_at = 0;
    walk->keys_left = registry_pass(server->registry, walk->database, walk->keys_left, PASS_COUNT,
                                    server->clock.now_ms, player_pass_visit, walk);
    if (walk->keys_left == 0) {
        walk->database++;
        walk->keys_left = UINT32_MAX;
    }
}

bool player_pass_step(struct server *server, struct player_walk *walk) {
    /* What is due changes the names of boards, and the listener must have seen it. */
    if (!registry_roll_some(server->registry, server->clock.now_ms)) {
        return true;
    }
    if (walk->found_at < walk->found.size) {
        player_pass_act_on_found(server, walk);
        return true;
    }
    if (walk->has_missed) {
        player_pass_rewind_walk(walk);
    }
    if (walk->database < walk->end_database) {
        player_pass_pass(server, walk);
        return true;
    }
    return false;
}

bool player_pass_begin(struct server *server, struct player_walk *walk) {
    walk->registry = server->registry;
    walk->listener = (struct effect_listener){.receive = player_pass_receive, .context = walk};
    effect_listener_add(server->registry, &walk->listener);
    return true;
}

void player_pass_end(struct player_walk *walk) {
    if (walk->registry != NULL) {
        effect_listener_remove(walk->registry, &walk->listener);
        walk->registry = NULL;
    }
}
