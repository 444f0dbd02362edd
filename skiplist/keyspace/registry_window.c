/* See registry_window.h. */
#include "skiplist/keyspace/registry_window.h"

#include "skiplist/keyspace/archive_name.h"
#include "skiplist/keyspace/registry_private.h"

static const struct board_options *registry_window_options(const struct registry_key *key) {
    return key != NULL && key->kind == REGISTRY_BOARD ? registry_options(key) : NULL;
}

static bool registry_window_follows(const struct registry *registry) {
    return registry->is_passive || registry->is_applying || registry->outside.is_elsewhere != NULL;
}

bool registry_window_is_share(const struct registry_key *key, const struct board_options *options,
                              int64_t start_ms) {
    const struct board_options *own = registry_window_options(key);
    return own != NULL && own->window.is_share && registry_state(key)->from_ms == start_ms &&
           layout_keys_equal(&own->layout, &options->layout);
}

/* NULL: there is none. */
static struct registry_key *registry_window_running(struct registry *registry,
                                                    const struct registry_key *key) {
    char name[REGISTRY_NAME_MAX];
    const struct board_options *options = registry_options(key);
    struct registry_key *share = registry_find_name(
        registry_database(registry, key->database),
        archive_name_print(registry_name(key), &options->period, options->period_start_ms, name));
    return registry_window_is_share(share, options, options->period_start_ms) ? share : NULL;
}

void registry_window_note_taken(struct registry *registry, const struct registry_key *key) {
    const struct board_options *options = registry_window_options(key);
    struct bytes base;
    if (options == NULL || !options->window.is_share || board_count(&key->board) == 0 ||
        registry_window_follows(registry) || !archive_name_find_board(registry_name(key), &base)) {
        return;
    }
    struct registry_key *board =
        registry_find_name(registry_database(registry, key->database), base);
    const struct board_options *of_board = registry_window_options(board);
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
    const struct board_options *options = registry_window_options(key);
    struct registry_key *share =
        options != NULL && options->window.count > 0 && !registry_window_follows(registry)
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

void registry_window_set_listener(struct registry *registry, registry_share_gone *share_gone) {
    registry->outside.share_gone = share_gone;
}

bool registry_window_end_share(struct registry *registry, const struct registry_key *key) {
    struct registry_key *share = registry_window_running(registry, key);
    const struct board_options *options = registry_options(key);
    int64_t end_ms = board_options_archive_end_ms(options);
    struct board_options ended;
    if (share == NULL || registry_options(share)->is_archive) {
        return true;
    }
    /* ARCHIVE may have changed since it began. */
    int64_t expire_at_ms = options->settles || end_ms == INT64_MAX ? REGISTRY_NO_EXPIRY : end_ms;
    if (registry_expiry(registry, share) != expire_at_ms &&
        registry_expiry_set(registry, share, expire_at_ms, false) != REGISTRY_OK) {
        return false;
    }
    board_options_copy(registry_options(share), &ended);
    ended.is_archive = true;
    struct board_state state = *registry_state(share);
    state.ended_ms = options->period_end_ms;
    state.settled_expire_ms = options->settles && end_ms != INT64_MAX ? end_ms : 0;
    return registry_board_alter(registry, share, &ended, &state) != NULL;
}
