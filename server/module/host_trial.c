/* Effects of a client, on copies. See host_trial.h.
 *
 * While copies are on stage, slot->key and value->key are the copy, and the board itself is in the
 * trial alone, outside of the registry. */
#include "server/module/host_trial.h"

#include "server/module/host_value.h"
#include "skiplist/board.h"
#include "skiplist/keyspace/registry_guest.h"

void host_trial_init(struct host_trial *trial) {
    trial->is_doubtful = false;
    trial->has_put = false;
    trial->take_count = 0;
    trial->boards = NULL;
}

/* ---- what cannot fail ---- */

static const struct board *host_trial_find_board(const struct effect *effect) {
    const struct registry_key *key = registry_guest_find(module.server.registry, effect->name);
    return key != NULL && key->kind == REGISTRY_BOARD ? &key->board : NULL;
}

static bool host_trial_was_taken(const struct host_trial *trial, struct bytes member) {
    for (uint32_t i = 0; i < trial->take_count; i++) {
        if (bytes_equal(trial->takes[i], member)) {
            return true;
        }
    }
    return false;
}

static bool host_trial_judge_take(struct host_trial *trial, const struct effect *effect,
                                  const struct board *board) {
    struct board_member member;
    if (trial->has_put || trial->take_count == HOST_TRIAL_TAKES_MAX ||
        host_trial_was_taken(trial, effect->member)) {
        return false;
    }
    trial->takes[trial->take_count++] = effect->member;
    board_look_up(board, effect->member, NULL, &member);
    return member.is_there;
}

static bool host_trial_is_safe(struct host_trial *trial, const struct effect *effect) {
    bool is_of_member = effect->kind == EFFECT_PUT || effect->kind == EFFECT_TAKE;
    const struct board *board = is_of_member ? host_trial_find_board(effect) : NULL;
    if (board == NULL || effect->member.size == 0 || effect->member.size > BOARD_MEMBER_MAX) {
        return false;
    }
    if (effect->kind == EFFECT_TAKE) {
        return host_trial_judge_take(trial, effect, board);
    }
    trial->has_put = true;
    return layout_has_room(board_layout(board), effect->member_key) &&
           board_count(board) < BOARD_MEMBERS_MAX / 2;
}

void host_trial_judge(struct host_trial *trial, const struct effect *effect) {
    if (!trial->is_doubtful) {
        trial->is_doubtful = !host_trial_is_safe(trial, effect);
    }
}

/* ---- copies ---- */

static void host_trial_discard(struct registry_key *key) {
    registry_guest_release(module.server.registry, registry_guest_free(key));
}

/* The key of this slot from now on, in the registry. */
static void host_trial_set_key(struct host_slot *slot, struct registry_key *key) {
    CHECK(slot->value != NULL);
    slot->key = key;
    slot->value->key = key;
}

static bool host_trial_put_copy(struct host_slot *slot) {
    struct registry *registry = module.server.registry;
    struct registry_key *copy = registry_guest_copy(registry, slot->key, registry_name(slot->key));
    if (copy == NULL) {
        return false;
    }
    registry_dismiss(registry, slot->key);
    host_trial_set_key(slot, copy);
    CHECK(registry_admit(registry, copy)); /* into the place that is free now */
    return true;
}

bool host_trial_begin(struct host_trial *trial, struct host_stage *stage) {
    size_t size = (stage->count + (size_t)1) * sizeof(struct registry_key *);
    trial->boards = memory_allocate_zeroed(size);
    if (trial->boards == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < stage->count; i++) {
        trial->boards[i] = stage->slots[i].value != NULL ? stage->slots[i].key : NULL;
    }
    for (uint32_t i = 0; i < stage->count; i++) {
        if (trial->boards[i] != NULL && !host_trial_put_copy(&stage->slots[i])) {
            host_trial_undo(trial, stage);
            return false;
        }
    }
    registry_guest_hold_rolls(module.server.registry);
    return true;
}

void host_trial_keep(struct host_trial *trial, const struct host_stage *stage) {
    for (uint32_t i = 0; trial->boards != NULL && i < stage->count; i++) {
        if (trial->boards[i] != NULL) {
            host_trial_discard(trial->boards[i]);
        }
    }
    memory_free(trial->boards);
    trial->boards = NULL;
}

/* All that is on stage, but the boards themselves, if they still are. */
static void host_trial_clear_stage(const struct host_trial *trial, const struct host_stage *stage) {
    struct registry *registry = module.server.registry;
    struct registry_key *key;
    for (uint32_t i = 0; i < stage->count; i++) {
        if (trial->boards[i] != NULL && stage->slots[i].key == trial->boards[i]) {
            registry_dismiss(registry, trial->boards[i]);
        }
    }
    while ((key = registry_guest_first(registry)) != NULL) {
        registry_dismiss(registry, key);
        if (key->kind == REGISTRY_BOARD) {
            host_trial_discard(key);
        } else {
            memory_free(key); /* it stands for a key of another type */
        }
    }
}

void host_trial_undo(struct host_trial *trial, struct host_stage *stage) {
    struct registry *registry = module.server.registry;
    if (trial->boards == NULL) {
        return;
    }
    registry_guest_settle(registry);
    host_trial_clear_stage(trial, stage);
    for (uint32_t i = 0; i < stage->count; i++) {
        struct host_slot *slot = &stage->slots[i];
        slot->is_changed = false;
        slot->is_replaced = false;
        slot->key = NULL;
        if (trial->boards[i] != NULL) {
            host_trial_set_key(slot, trial->boards[i]);
            CHECK(registry_admit(registry, slot->key)); /* there was room for it before */
        }
    }
    registry_guest_hold_rolls(registry);
    memory_free(trial->boards);
    trial->boards = NULL;
}
