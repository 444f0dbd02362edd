/* See registry_window.h. */
#include "skiplist/keyspace/registry_window.h"

#include "skiplist/keyspace/archive_name.h"
#include "skiplist/keyspace/registry_private.h"

static const struct rules *registry_window_rules(const struct registry_key *key) {
    return key != NULL && key->kind == REGISTRY_BOARD ? registry_rules(key) : NULL;
}

static bool registry_window_follows(const struct registry *registry) {
    return registry->is_passive || registry->is_applying || registry->outside.is_elsewhere != NULL;
}

bool registry_window_is_share(const struct registry_key *key, const struct rules *rules,
                              int64_t start_ms) {
    const struct rules *own = registry_window_rules(key);
    return own != NULL && own->window.is_share && registry_state(key)->from_ms == start_ms &&
           layout_keys_equal(&own->layout, &rules->layout);
}

/* NULL: there is none. */
static struct registry_key *registry_window_running(struct registry *registry,
                                                    const struct registry_key *key) {
    char name[REGISTRY_NAME_MAX];
    const struct rules *rules = registry_rules(key);
    struct registry_key *share = registry_find_name(
        registry_database(registry, key->database),
        archive_print_name(registry_name(key), &rules->period, rules->period_start_ms, name));
    return registry_window_is_share(share, rules, rules->period_start_ms) ? share : NULL;
}

void registry_window_note_taken(struct registry *registry, const struct registry_key *key) {
    const struct rules *rules = registry_window_rules(key);
    struct bytes base;
    if (rules == NULL || !rules->window.is_share || board_count(&key->board) == 0 ||
        registry_window_follows(registry) || !archive_find_board(registry_name(key), &base)) {
        return;
    }
    struct registry_key *board =
        registry_find_name(registry_database(registry, key->database), base);
    const struct rules *of_board = registry_window_rules(board);
    if (of_board == NULL || of_board->window.count == 0 ||
        registry_state(key)->from_ms < registry_state(board)->from_ms) {
        return;
    }
    struct board_state anew = *registry_state(board);
    anew.is_anew = true;
    anew.left = registry_state(key)->from_ms == anew.from_ms ? 0 : anew.left;
    registry_set_state(registry, board, &anew);
}

void registry_window_note_removed(struct registry *registry, const struct registry_key *key) {
    const struct rules *rules = registry_window_rules(key);
    struct registry_key *share =
        rules != NULL && rules->window.count > 0 && !registry_window_follows(registry)
            ? registry_window_running(registry, key)
            : NULL;
    if (share == NULL) {
        return;
    }
    if (registry->outside.share_gone != NULL) {
        registry->outside.share_gone(registry->outside.listener_context, share->database,
                                     registry_name(share));
    }
    registry_remove(registry, share);
}

void registry_set_share_listener(struct registry *registry, registry_share_gone *share_gone) {
    registry->outside.share_gone = share_gone;
}

bool registry_window_end_share(struct registry *registry, const struct registry_key *key) {
    struct registry_key *share = registry_window_running(registry, key);
    const struct rules *rules = registry_rules(key);
    int64_t end_ms = rules_archive_end_ms(rules);
    struct rules ended;
    if (share == NULL || registry_rules(share)->is_archive) {
        return true;
    }
    /* ARCHIVE may have changed since it began. */
    int64_t expire_at_ms = rules->settles || end_ms == INT64_MAX ? REGISTRY_NO_EXPIRY : end_ms;
    if (registry_expiry(registry, share) != expire_at_ms &&
        registry_set_expiry(registry, share, expire_at_ms, false) != REGISTRY_OK) {
        return false;
    }
    rules_copy(registry_rules(share), &ended);
    ended.is_archive = true;
    struct board_state state = *registry_state(share);
    state.ended_ms = rules->period_end_ms;
    state.settled_expire_ms = rules->settles && end_ms != INT64_MAX ? end_ms : 0;
    return registry_alter(registry, share, &ended, &state) != NULL;
}
