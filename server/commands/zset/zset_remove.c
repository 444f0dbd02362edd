/* ZREM, ZREMRANGEBYRANK and ZREMRANGEBYSCORE. A board is removed with its last member. */
#include "server/commands/window.h"
#include "server/commands/writing.h"
#include "skiplist/lookup.h"

__attribute__((always_inline)) static inline bool zset_remove_take(const struct call *call,
                                                                   struct registry_key *key,
                                                                   struct bytes name,
                                                                   const struct lookup *ahead) {
    struct board_member member;
    if (!zset_look_up_ahead(&key->board, name, ahead, &member)) {
        return false;
    }
    registry_board_take(call->registry, key, &member);
    return true;
}

static uint32_t zset_remove_take_group(const struct call *call, struct registry_key *key,
                                       const struct bytes *names, unsigned count) {
    struct lookup ahead[LOOKUP_GROUP];
    uint32_t taken_count = 0;
    lookup_members_to_take(&key->board, names, 1, count, ahead);
    for (unsigned i = 0; i < count; i++) {
        taken_count += zset_remove_take(call, key, names[i], &ahead[i]);
    }
    return taken_count;
}

/* Not inlined: the common case, a single member, needs no stack space for a group. */
__attribute__((noinline)) static uint32_t zset_remove_take_all(const struct call *call,
                                                               struct registry_key *key) {
    const struct bytes *names = &call->request->args[2];
    uint32_t count = call->request->count - 2;
    uint32_t taken_count = 0;
    if (count < LOOKUP_OWN_MIN) {
        for (uint32_t i = 0; i < count; i++) {
            taken_count += zset_remove_take(call, key, names[i], call->ahead);
        }
        return taken_count;
    }
    for (uint32_t i = 0; i < count; i += LOOKUP_GROUP) {
        taken_count += zset_remove_take_group(call, key, &names[i], lookup_group_size(count, i));
    }
    return taken_count;
}

/* Members times boards that one command looks at. */
enum { WINDOW_REMOVALS_MAX = 25000 };

/* WINDOW: off the board and off its shares. */
static void zset_remove_from_window(const struct call *call, struct registry_key *key) {
    int64_t removed_count = 0;
    struct window_shares shares;
    if (!window_check_host(call)) {
        return;
    }
    window_find_shares(call->registry, key, call->now_ms, &shares);
    uint32_t members_max = WINDOW_REMOVALS_MAX / (1 + shares.count);
    if (call->request->count - 2 > members_max) {
        (void)call_refuse_format(call,
                                 "ERR too many members: at most %u at a time are removed from a "
                                 "board with a WINDOW and the boards of its %u periods",
                                 (unsigned)members_max, (unsigned)shares.count);
        return;
    }
    for (uint32_t i = 2; i < call->request->count; i++) {
        removed_count += window_take(call->registry, key, &shares, call_arg(call, i)) > 0;
    }
    window_end_take(call->server, &shares);
    if (shares.is_board_changed) {
        zset_end_removal(call, key, "zrem");
    }
    reply_integer(call->reply, removed_count);
}

/* WINDOW: a member is looked up in each period. */
static uint64_t zset_remove_count(const struct cost_view *view) {
    const struct registry_key *key = cost_key(view, 1);
    bool has_window = key != NULL && key->kind == REGISTRY_BOARD;
    return cost_count_members(view) *
           (1 + (has_window ? (uint64_t)registry_options(key)->window.count : 0));
}

static void zrem_run(struct call *call) {
    struct registry_key *key;
    int64_t removed_count = 0;
    if (!call_find_kind(call, call_arg(call, 1), REGISTRY_BOARD, &key)) {
        return;
    }
    const struct board_options *options = key != NULL ? registry_options(key) : NULL;
    if (options != NULL && writing_refuses(call, options, BOARD_WRITE_MEMBERS)) {
        return;
    }
    if (options != NULL && options->window.count > 0) {
        zset_remove_from_window(call, key);
        return;
    }
    if (key != NULL) {
        removed_count = call->request->count == 3
                            ? zset_remove_take(call, key, call_arg(call, 2), call->ahead)
                            : zset_remove_take_all(call, key);
        if (removed_count > 0) {
            registry_tell_members(call->registry, key);
            zset_end_removal(call, key, "zrem");
        }
    }
    reply_integer(call->reply, removed_count);
}

const struct command command_zrem = {
    .name = "ZREM",
    .syntax = "key member...",
    .reply = "i",
    .summary = "Remove members from a board",
    .complexity = "O(m * log n) for m of the board's n members",
    .flags = COMMAND_WRITE | COMMAND_FAST,
    .key_access = "RW delete",
    .member_arg = 2,
    .member_step = 1,
    .cost = COST(COMMAND_BY_ARGUMENTS, zset_remove_count, 350, 0, "member named",
                 "several commands of a thousand each; "
                 "`ZREMRANGEBYRANK` removes whole ranges at once"),
    .run = zrem_run,
};

static void zset_remove_remove_span(const struct call *call, struct registry_key *key,
                                    struct zset_span span, const char *event) {
    if (key != NULL && writing_refuses(call, registry_options(key), BOARD_WRITE_WHOLE)) {
        return;
    }
    if (key != NULL) {
        zset_remove_span(call, key, span, event);
    }
    reply_integer(call->reply, span.count);
}

static void zremrangebyrank_run(struct call *call) {
    struct registry_key *key = call_find_key(call, call_arg(call, 1));
    const struct board *board = call_board(key);
    bool is_best_first = board != NULL && zset_is_best_first(board, false);
    struct zset_span span;
    if (zset_span_of_places(call, board, 0, is_best_first, 2, &span) &&
        call_check_kind(call, key, REGISTRY_BOARD)) {
        zset_remove_remove_span(call, key, span, "zremrangebyrank");
    }
}

static void zremrangebyscore_run(struct call *call) {
    struct registry_key *key = call_find_key(call, call_arg(call, 1));
    struct zset_span span;
    if (zset_span_of_scores(call, call_board(key), call_arg(call, 2), call_arg(call, 3), &span) &&
        call_check_kind(call, key, REGISTRY_BOARD)) {
        zset_remove_remove_span(call, key, span, "zremrangebyscore");
    }
}

#define SPAN_ENTRY(word, arguments, what, handler)                                                 \
    {                                                                                              \
        .name = (word), .syntax = (arguments), .reply = "i",                                       \
        .summary = "Remove the members " what,                                                     \
        .complexity = "O(log n); the members' memory is freed in steps afterwards",                \
        .flags = COMMAND_WRITE, .key_access = "RW delete", .run = (handler)                        \
    }

const struct command command_zremrangebyrank = SPAN_ENTRY(
    "ZREMRANGEBYRANK", "key start:integer stop:integer",
    "in a range of places from a board, counted from the lowest score", zremrangebyrank_run);
const struct command command_zremrangebyscore =
    SPAN_ENTRY("ZREMRANGEBYSCORE", "key min:double max:double",
               "with a score between two limits from a board", zremrangebyscore_run);
