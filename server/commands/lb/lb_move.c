/* LB.MOVE: merges a member's results into those of another one, on all boards.
 *
 *     board   from   to            BEST         SUM
 *     daily   700    500    to:    700          1200     from is off the board
 *     weekly  300    -             300          300
 *
 * Each board changes as a whole. Where the sum does not fit, both stay as they were. The other member keeps
 * its tags, and gets values of those of which it has none. */
#include "server/commands/ban.h"
#include "server/commands/lb/board_task.h"
#include "server/commands/lb/lb.h"
#include "server/commands/lb/lb_rating.h"
#include "server/commands/window.h"
#include "skiplist/keyspace/league.h"

/* The key that the other member is to get. false: there is none. */
static bool lb_move_merge(const struct board_task *task, const struct board *board,
                          uint64_t from_key, int64_t now_us, uint64_t *key) {
    if (!board_find(board, task->to, key)) {
        *key = from_key;
        return true;
    }
    const struct layout *layout = board_layout(board);
    /* Tiers and rooms are no results. */
    if (!task->is_sum || (board_options_of(layout)->guards & BOARD_LEAGUE) != 0) {
        /* A larger key ranks better: better fields or, where they are equal, the better time. */
        *key = from_key > *key ? from_key : *key;
        return true;
    }
    /* The sum of all fields, if it fits, and the later of the two times, when it was reached. */
    uint64_t sum_key = *key;
    for (unsigned i = 0; i < layout->field_count; i++) {
        uint64_t sum;
        if (layout_field_join(&layout->fields[i], layout_ordinal(layout, *key, i),
                              layout_ordinal(layout, from_key, i), now_us, &sum) != LAYOUT_OK) {
            return false;
        }
        sum_key = layout_with_ordinal(layout, sum_key, i, sum);
    }
    *key = layout_without_time(layout, sum_key) | layout_later_time(layout, from_key, *key);
    return true;
}

/* Values that outlive their member. */
struct moved_tags {
    struct tag_values values;
    char bytes[TAGS_MAX * TAG_VALUE_MAX];
};

/* The values that the other member is to get. */
static void lb_move_keep_tags(const struct board *board, const struct board_member *from,
                              const struct board_member *to, struct moved_tags *kept) {
    struct tag_values own = {.mask = 0};
    char *out = kept->bytes;
    tags_of(board, from, &kept->values);
    if (to->is_there) {
        tags_of(board, to, &own);
    }
    kept->values.mask &= ~own.mask;
    for (unsigned tag = 0; tag < TAGS_MAX; tag++) {
        struct bytes *value = &kept->values.at[tag];
        if ((kept->values.mask >> tag & 1) != 0) {
            memcpy(out, value->at, value->size);
            value->at = out;
            out += value->size;
        }
    }
}

static size_t lb_move_room(const struct board_task *task, const struct board *board) {
    return board_growth_size(board, 1) + tags_growth_size(board, 1) + task->to.size;
}

/* May the other member get these results, and do they fit? *key is what it gets, if there is something ranked. */
static bool lb_move_may(struct server *server, const struct board_task *task,
                        const struct registry_key *on, const struct board_member *from,
                        uint64_t *key) {
    return !ban_holds(server->registry, on->database, registry_name(on), task->to,
                      server->clock.now_ms) &&
           (!from->is_there ||
            lb_move_merge(task, &on->board, from->key, server->clock.now_us, key));
}

/* What of one member has left the board, and of the other changed there. */
static void lb_move_tell(struct server *server, const struct registry_key *key, bool has_left,
                         bool has_changed) {
    if (has_left) {
        notify(server, SETTING_EVENT_ZSET, "zrem", key->database, registry_name(key));
    }
    if (has_changed) {
        notify(server, SETTING_EVENT_ZSET, "zadd", key->database, registry_name(key));
    }
    if (has_left || has_changed) {
        registry_tell_members(server->registry, key);
    }
}

/* Memory is reserved. */
static void lb_move_change(struct server *server, struct board_task *task, struct registry_key *key,
                           const struct board_member *from, uint64_t packed_key) {
    struct registry *registry = server->registry;
    struct board *board = &key->board;
    struct board_member to;
    struct moved_tags kept = {.values = {.mask = 0}};
    board_look_up(board, task->to, NULL, &to);
    lb_move_keep_tags(board, from, &to, &kept);
    registry_board_take(registry, key, from);
    board_look_up(board, task->to, NULL, &to);
    if (!to.is_there || to.key != packed_key) {
        enum board_status status = registry_board_put(registry, key, &to, packed_key);
        CHECK(status == BOARD_OK);
    }
    if (kept.values.mask != 0) {
        /* There is room: at most these values have just lost it. */
        unsigned full;
        board_look_up(board, task->to, NULL, &to);
        enum tags_status tagged = registry_board_tag(registry, key, &to, &kept.values, &full);
        CHECK(tagged == TAGS_OK || tagged == TAGS_SAME);
    }
    lb_move_tell(server, key, true, true);
    task->done_count++;
}

/* The board itself. Its shares have been changed, and memory is reserved. */
static void lb_move_follow(struct server *server, const struct board_task *task,
                           struct registry_key *key, const struct window_shares *shares) {
    struct registry *registry = server->registry;
    const struct board *board = &key->board;
    const struct layout *layout = board_layout(board);
    struct board_member from;
    struct board_member to;
    struct moved_tags kept = {.values = {.mask = 0}};
    unsigned full;
    board_look_up(board, task->member, NULL, &from);
    board_look_up(board, task->to, NULL, &to);
    struct window_value values[2] = {
        {.name = task->to, .most = UINT64_MAX, .times = to.is_there ? to.key : 0},
        {.name = task->member, .most = UINT64_MAX, .times = from.key}};
    if (from.is_there) {
        lb_move_keep_tags(board, &from, &to, &kept);
        values[0].times = to.is_there ? layout_later_time(layout, from.key, to.key) : from.key;
    }
    window_compute(shares, values, 2);
    for (unsigned i = 0; i < 2; i++) {
        bool is_put = window_put(registry, key, &values[i]);
        CHECK(is_put);
    }
    struct board_member then;
    board_look_up(board, task->to, NULL, &then);
    bool is_tagged = then.is_there && kept.values.mask != 0 &&
                     registry_board_tag(registry, key, &then, &kept.values, &full) == TAGS_OK;
    lb_move_tell(server, key, from.is_there && !values[1].is_there,
                 is_tagged || then.is_there != to.is_there ||
                     (then.is_there && then.key != to.key));
}

/* A share of which a part has left: both members count, or have left, as their ranks say, so the number of
 * those that have left follows, too. */
static void lb_move_on_share(struct server *server, struct board_task *task,
                             struct registry_key *board, const struct window_shares *shares,
                             uint32_t index) {
    struct registry_key *share = shares->at[index];
    struct board_member from;
    uint64_t packed_key;
    board_look_up(&share->board, task->member, NULL, &from);
    if (!from.is_there) {
        return;
    }
    if (!lb_move_may(server, task, share, &from, &packed_key)) {
        task->left_count++;
        return;
    }
    uint32_t before =
        window_count_gone(shares, index, task->member) + window_count_gone(shares, index, task->to);
    lb_move_change(server, task, share, &from, packed_key);
    window_note_moved(server->registry, board, shares, index, before, task->to);
}

/* WINDOW: on the shares; the board follows. All of it, or nothing where there is no memory. */
static void lb_move_in_window(struct server *server, struct board_task *task,
                              struct registry_key *board) {
    struct registry *registry = server->registry;
    int64_t now_ms = server->clock.now_ms;
    struct window_shares shares;
    size_t room = 2 * lb_move_room(task, &board->board);
    window_find_shares(registry, board, now_ms, &shares);
    for (uint32_t i = 0; i < shares.count; i++) {
        room += lb_move_room(task, &shares.at[i]->board);
    }
    if (ban_holds(registry, board->database, registry_name(board), task->to, now_ms) ||
        !memory_reserve_begin(room)) {
        task->left_count++;
        return;
    }
    for (uint32_t i = 0; i < shares.count; i++) {
        lb_move_on_share(server, task, board, &shares, i);
    }
    shares.left = registry_state(board)->left;
    lb_move_follow(server, task, board, &shares);
    registry_note_remove(registry, board, task->member); /* of LIMITS */
    memory_reserve_end();
}

/* RATING: ratings are not merged. A player with a record there keeps it, and the board is left as it was. */
static void lb_move_rated(struct server *server, struct board_task *task,
                          struct registry_key *key) {
    enum { NAME_BYTES = 8 /* of a name in kept matches */ };
    struct registry *registry = server->registry;
    struct board_member from;
    struct bytes other;
    uint64_t to_key;
    bool has_note = registry_note_find(key, task->member, &other);
    bool is_settled = false;
    /* The record as of now, and the name in kept matches. */
    const struct bytes args[] = {task->to,
                                 {.at = NULL, .size = LB_RATING_NOTE_MAX},
                                 {.at = NULL, .size = NAME_BYTES},
                                 task->to};
    if (board_find(&key->board, task->to, &to_key) || registry_note_find(key, task->to, &other) ||
        registry_note_is_own(task->member) || registry_note_is_own(task->to) ||
        ban_holds(registry, key->database, registry_name(key), task->to, server->clock.now_ms) ||
        (has_note &&
         !lb_match_settle(registry, key, task->member, server->clock.now_ms, &is_settled)) ||
        !memory_reserve_begin(lb_move_room(task, &key->board) +
                              hash_growth_size(registry_note_hash(key), args, has_note ? 2 : 0))) {
        lb_move_tell(server, key, false, is_settled);
        task->left_count++;
        return;
    }
    board_look_up(&key->board, task->member, NULL, &from);
    if (has_note) {
        bool is_renamed =
            lb_kept_rename(registry, key, task->member, task->to, server->clock.now_ms);
        CHECK(is_renamed);
    }
    if (from.is_there) {
        lb_move_change(server, task, key, &from, from.key);
    } else {
        lb_move_tell(server, key, true, true);
        task->done_count++;
    }
    memory_reserve_end();
}

/* Of LIMITS. */
static void lb_move_drop_note(struct registry *registry, struct registry_key *key,
                              struct bytes member) {
    if (!registry_options(key)->has_hold || !registry_note_is_own(member)) {
        registry_note_remove(registry, key, member);
    }
}

static void lb_move_act(struct server *server, struct board_task *task, struct registry_key *key) {
    struct registry_key *board = window_find_board(server->registry, key, server->clock.now_ms);
    if (board != NULL) {
        lb_move_in_window(server, task, board);
    } else if (!board_task_settle(server, task, key)) {
        return;
    } else if (league_parts(server->registry, key, task->member, task->to)) {
        task->left_count++;
    } else if (registry_options(key)->has_rating) {
        lb_move_rated(server, task, key);
    } else {
        struct board_member from;
        uint64_t packed_key;
        board_look_up(&key->board, task->member, NULL, &from);
        bool has_held = holding_has(key, task->member);
        size_t held_room = holding_rename_size(key, task->member, task->to);
        /* LIMITS have counted one who has left. */
        if (!from.is_there && !has_held) {
            lb_move_drop_note(server->registry, key, task->member);
            return;
        }
        if (!lb_move_may(server, task, key, &from, &packed_key) ||
            !memory_reserve_begin(held_room +
                                  (from.is_there ? lb_move_room(task, &key->board) : 0))) {
            task->left_count++;
            return;
        }
        holding_rename(server->registry, key, task->member, task->to);
        if (!from.is_there) {
            registry_tell_members(server->registry, key);
            lb_move_drop_note(server->registry, key, task->member);
            task->done_count++;
            memory_reserve_end();
            return;
        }
        lb_move_change(server, task, key, &from, packed_key);
        memory_reserve_end();
        /* LIMITS count on for the other name with what it has. */
        lb_move_drop_note(server->registry, key, task->member);
    }
}

static bool lb_move_begin(const struct call *call, struct board_task *task) {
    return !bytes_equal(task->member, task->to) ||
           call_refuse(call, "ERR a member cannot be moved to itself");
}

static void lb_move_answer(struct board_task *task, struct reply *reply) {
    reply_array(reply, 2);
    reply_integer(reply, (int64_t)task->done_count);
    reply_integer(reply, (int64_t)task->left_count);
}

static bool lb_move_check_mode(const struct call *call, uint32_t index, void *target) {
    const struct board_task *task = target;
    (void)index;
    return !task->is_best || !task->is_sum || call_syntax_error(call);
}

static const struct binding lb_move_bindings[] = {
    BOARD_TASK_MATCH_OPTION,
    {BIND("BEST", struct board_task, is_best), .read = lb_move_check_mode},
    {BIND("SUM", struct board_task, is_sum), .read = lb_move_check_mode},
    {0},
};

const struct command command_lb_move = {
    .name = "LB.MOVE",
    .syntax = "from to [MATCH pattern] mode=[BEST | SUM]",
    .bindings = lb_move_bindings,
    .reply = "[boards:i left:i]",
    .summary = "Merge a member's results into another's on all boards; count the boards, and those "
               "left as they were",
    .complexity = "O(n log m) for n boards of m members, in steps between other commands",
    .flags = COMMAND_WRITE | COMMAND_DENYOOM | COMMAND_NO_MULTI,
    .audit = AUDIT_PLAYERS,
    .run = board_task_run,
    .variant = &(const struct board_task_kind){.writes = true,
                                               .takes_notes = true,
                                               .begin = lb_move_begin,
                                               .act = lb_move_act,
                                               .answer = lb_move_answer},
};
