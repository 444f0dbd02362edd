/* One member on all boards, by tasks (board_task.h): LB.WHERE finds it, LB.FORGET takes it off, and LB.MOVE merges its
 * results into those of another one. */
#include "server/acl/acl_check.h"
#include "server/commands/ban.h"
#include "server/commands/keyspace.h"
#include "server/commands/lb/board_task.h"
#include "server/commands/lb/lb.h"
#include "server/commands/lb/lb_data.h"
#include "server/commands/lb/lb_rating.h"
#include "server/commands/lb/lb_record.h"
#include "server/commands/window.h"
#include "skiplist/keyspace/league.h"

/* ---- LB.WHERE: the boards that a member is on, with its record on each ---- */

/* Room for the header of the array, whose length is known only at the end. */
enum { HEADER_ROOM = 32 };

static bool lb_member_where_begin(const struct call *call, struct board_task *task) {
    if (buffer_reserve(&task->records, HEADER_ROOM) == NULL) {
        return call_out_of_memory(call);
    }
    buffer_commit(&task->records, HEADER_ROOM);
    return true;
}

static void lb_member_where_act(struct server *server, struct board_task *task,
                                struct registry_key *key) {
    struct reply reply;
    struct lb_writer writer;
    struct board_member member;
    reply_init(&reply, &task->records, task->protocol);
    reply.numbers = task->numbers;
    if (reply_is_lost(&reply)) {
        return;
    }
    struct call call = {.reply = &reply,
                        .registry = server->registry,
                        .server = server,
                        .now_us = server->clock.now_us};
    board_look_up(&key->board, task->member, NULL, &member);
    lb_record_begin(&call, &key->board, (struct lb_shape){.with_strings = task->with_strings},
                    &writer);
    reply_array(&reply, 2);
    reply_bulk(&reply, registry_name(key));
    lb_record_write(&writer, member.name, member.key, board_rank_of(&key->board, &member));
    task->done_count++;
    if (task->job.session != NULL) {
        task->job.session->job_size = task->records.capacity;
        session_memory_count(&server->sessions.memory, task->job.session);
    }
}

/* The records may be many megabytes: they are handed over rather than copied. */
static void lb_member_where_answer(struct board_task *task, struct reply *reply) {
    struct buffer *records = &task->records;
    char header[HEADER_ROOM];
    if (records->is_broken) {
        reply_error(reply, "ERR the reply would be longer than client-output-buffer-limit allows: "
                           "use MATCH to ask for fewer boards");
        return;
    }
    if (reply->is_silent) {
        return;
    }
    int size = snprintf(header, sizeof header, "*%llu\r\n", (unsigned long long)task->done_count);
    memcpy(records->at + HEADER_ROOM - size, header, (size_t)size);
    buffer_drop_front(records, (size_t)(HEADER_ROOM - size));
    if (reply->out->size > 0 || reply->out->is_broken) {
        buffer_append(reply->out, records->at, records->size);
        return;
    }
    struct buffer empty = *reply->out;
    *reply->out = *records;
    reply->out->size_max = empty.size_max;
    *records = empty;
}

static const struct binding lb_member_where_bindings[] = {
    BOARD_TASK_MATCH_OPTION,
    {BIND("STRINGS", struct board_task, with_strings)},
    {0},
};

const struct command command_lb_where = {
    .name = "LB.WHERE",
    .syntax = "member [MATCH pattern] [STRINGS]",
    .bindings = lb_member_where_bindings,
    .reply = "[@BoardRecord]",
    .summary = "The boards that a member is on, each with the member's record",
    .complexity = "O(n log m) for n boards of m members, in steps between other commands",
    .flags = COMMAND_READ | COMMAND_NO_MULTI,
    .run = board_task_run,
    .variant = &(const struct board_task_kind){.begin = lb_member_where_begin,
                                               .act = lb_member_where_act,
                                               .answer = lb_member_where_answer},
};

/* ---- LB.FORGET: off all boards, and without its hashes ---- */

static void lb_member_forget_finish(struct server *server, struct board_task *task) {
    uint32_t size;
    for (size_t at = 0; at < task->data.size; at += sizeof size + size) {
        memcpy(&size, task->data.at + at, sizeof size);
        if (size <= REGISTRY_KEY_MAX) {
            const struct bytes name = {.at = task->data.at + at + sizeof size, .size = size};
            for (uint32_t i = task->first_database; i < task->end_database; i++) {
                keyspace_remove_hash(server, i, name);
            }
        }
    }
}

/* DATA, as often as it is given. */
static bool lb_member_forget_read_data(const struct call *call, uint32_t index, void *target) {
    struct board_task *task = target;
    struct bytes pattern = call_arg(call, index);
    if (lb_data_names_period(pattern)) {
        return call_refuse(call,
                           "ERR DATA of LB.FORGET takes no %@: name the hashes of each period");
    }
    if (!lb_data_check_star(call, pattern) || !acl_check_pattern(call, pattern, true, ACL_WRITE)) {
        return false;
    }
    uint32_t size = (uint32_t)(pattern.size - 1 + task->member.size);
    char *out = buffer_reserve(&task->data, sizeof size + size);
    if (out == NULL) {
        return call_out_of_memory(call);
    }
    memcpy(out, &size, sizeof size);
    struct bytes none = {.at = "", .size = 0};
    lb_data_print_key(pattern, task->member, none, none, out + sizeof size);
    task->data.size += sizeof size + size;
    return true;
}

static const struct binding lb_member_forget_bindings[] = {
    BOARD_TASK_MATCH_OPTION,
    {"DATA", .read = lb_member_forget_read_data},
    {BIND("ALL", struct board_task, is_all)},
    {0},
};

const struct command command_lb_forget = {
    .name = "LB.FORGET",
    .syntax = "member [MATCH pattern] data=[DATA data:pattern]... [ALL]",
    .bindings = lb_member_forget_bindings,
    .reply = "i",
    .summary = "Take a member off all boards, and remove its hashes; count the boards",
    .complexity = "O(n log m) for n boards of m members, in steps between other commands",
    .flags = COMMAND_WRITE | COMMAND_NO_MULTI,
    .audit = AUDIT_PLAYERS,
    .run = board_task_run,
    .variant = &(const struct board_task_kind){.writes = true,
                                               .takes_shadows = true,
                                               .takes_notes = true,
                                               .act = board_task_take,
                                               .finish = lb_member_forget_finish,
                                               .answer = board_task_answer_count},
};

/* ---- LB.MOVE ----
 *
 *     board   from   to            BEST         SUM
 *     daily   700    500    to:    700          1200     from is off the board
 *     weekly  300    -             300          300
 *
 * Each board changes as a whole. Where the sum does not fit, both stay as they were. The other member keeps
 * its tags, and gets values of those of which it has none. */

/* The key that the other member is to get. false: there is none. */
static bool lb_member_move_merge(const struct board_task *task, const struct board *board,
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
static void lb_member_move_keep_tags(const struct board *board, const struct board_member *from,
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

static size_t lb_member_move_room(const struct board_task *task, const struct board *board) {
    return board_growth_size(board, 1) + tags_growth_size(board, 1) + task->to.size;
}

/* May the other member get these results, and do they fit? *key is what it gets, if there is something ranked. */
static bool lb_member_move_may(struct server *server, const struct board_task *task,
                               const struct registry_key *on, const struct board_member *from,
                               uint64_t *key) {
    return !ban_holds(server->registry, on->database, registry_name(on), task->to,
                      server->clock.now_ms) &&
           (!from->is_there ||
            lb_member_move_merge(task, &on->board, from->key, server->clock.now_us, key));
}

/* What of one member has left the board, and of the other changed there. */
static void lb_member_move_tell(struct server *server, const struct registry_key *key,
                                bool has_left, bool has_changed) {
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
static void lb_member_move_change(struct server *server, struct board_task *task,
                                  struct registry_key *key, const struct board_member *from,
                                  uint64_t packed_key) {
    struct registry *registry = server->registry;
    struct board *board = &key->board;
    struct board_member to;
    struct moved_tags kept = {.values = {.mask = 0}};
    board_look_up(board, task->to, NULL, &to);
    lb_member_move_keep_tags(board, from, &to, &kept);
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
    lb_member_move_tell(server, key, true, true);
    task->done_count++;
}

/* The board itself. Its shares have been changed, and memory is reserved. */
static void lb_member_move_follow(struct server *server, const struct board_task *task,
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
        lb_member_move_keep_tags(board, &from, &to, &kept);
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
    lb_member_move_tell(server, key, from.is_there && !values[1].is_there,
                        is_tagged || then.is_there != to.is_there ||
                            (then.is_there && then.key != to.key));
}

/* A share of which a part has left: both members count, or have left, as their ranks say, so the number of
 * those that have left follows, too. */
static void lb_member_move_on_share(struct server *server, struct board_task *task,
                                    struct registry_key *board, const struct window_shares *shares,
                                    uint32_t index) {
    struct registry_key *share = shares->at[index];
    struct board_member from;
    uint64_t packed_key;
    board_look_up(&share->board, task->member, NULL, &from);
    if (!from.is_there) {
        return;
    }
    if (!lb_member_move_may(server, task, share, &from, &packed_key)) {
        task->left_count++;
        return;
    }
    uint32_t before =
        window_count_gone(shares, index, task->member) + window_count_gone(shares, index, task->to);
    lb_member_move_change(server, task, share, &from, packed_key);
    window_note_moved(server->registry, board, shares, index, before, task->to);
}

/* WINDOW: on the shares; the board follows. All of it, or nothing where there is no memory. */
static void lb_member_move_in_window(struct server *server, struct board_task *task,
                                     struct registry_key *board) {
    struct registry *registry = server->registry;
    int64_t now_ms = server->clock.now_ms;
    struct window_shares shares;
    size_t room = 2 * lb_member_move_room(task, &board->board);
    window_find_shares(registry, board, now_ms, &shares);
    for (uint32_t i = 0; i < shares.count; i++) {
        room += lb_member_move_room(task, &shares.at[i]->board);
    }
    if (ban_holds(registry, board->database, registry_name(board), task->to, now_ms) ||
        !memory_reserve_begin(room)) {
        task->left_count++;
        return;
    }
    for (uint32_t i = 0; i < shares.count; i++) {
        lb_member_move_on_share(server, task, board, &shares, i);
    }
    shares.left = registry_state(board)->left;
    lb_member_move_follow(server, task, board, &shares);
    registry_note_remove(registry, board, task->member); /* of LIMITS */
    memory_reserve_end();
}

/* RATING: ratings are not merged. A player with a record there keeps it, and the board is left as it was. */
static void lb_member_move_rated(struct server *server, struct board_task *task,
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
        !memory_reserve_begin(lb_member_move_room(task, &key->board) +
                              hash_growth_size(registry_note_hash(key), args, has_note ? 2 : 0))) {
        lb_member_move_tell(server, key, false, is_settled);
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
        lb_member_move_change(server, task, key, &from, from.key);
    } else {
        lb_member_move_tell(server, key, true, true);
        task->done_count++;
    }
    memory_reserve_end();
}

/* Of LIMITS. */
static void lb_member_move_drop_note(struct registry *registry, struct registry_key *key,
                                     struct bytes member) {
    if (!registry_options(key)->has_hold || !registry_note_is_own(member)) {
        registry_note_remove(registry, key, member);
    }
}

static void lb_member_move_act(struct server *server, struct board_task *task,
                               struct registry_key *key) {
    struct registry_key *board = window_find_board(server->registry, key, server->clock.now_ms);
    if (board != NULL) {
        lb_member_move_in_window(server, task, board);
    } else if (!board_task_settle(server, task, key)) {
        return;
    } else if (league_parts(server->registry, key, task->member, task->to)) {
        task->left_count++;
    } else if (registry_options(key)->has_rating) {
        lb_member_move_rated(server, task, key);
    } else {
        struct board_member from;
        uint64_t packed_key;
        board_look_up(&key->board, task->member, NULL, &from);
        bool has_held = guarding_has_held(key, task->member);
        size_t held_room = guarding_held_rename_size(key, task->member, task->to);
        /* LIMITS have counted one who has left. */
        if (!from.is_there && !has_held) {
            lb_member_move_drop_note(server->registry, key, task->member);
            return;
        }
        if (!lb_member_move_may(server, task, key, &from, &packed_key) ||
            !memory_reserve_begin(held_room +
                                  (from.is_there ? lb_member_move_room(task, &key->board) : 0))) {
            task->left_count++;
            return;
        }
        guarding_held_rename(server->registry, key, task->member, task->to);
        if (!from.is_there) {
            registry_tell_members(server->registry, key);
            lb_member_move_drop_note(server->registry, key, task->member);
            task->done_count++;
            memory_reserve_end();
            return;
        }
        lb_member_move_change(server, task, key, &from, packed_key);
        memory_reserve_end();
        /* LIMITS count on for the other name with what it has. */
        lb_member_move_drop_note(server->registry, key, task->member);
    }
}

static bool lb_member_move_begin(const struct call *call, struct board_task *task) {
    return !bytes_equal(task->member, task->to) ||
           call_refuse(call, "ERR a member cannot be moved to itself");
}

static void lb_member_move_answer(struct board_task *task, struct reply *reply) {
    reply_array(reply, 2);
    reply_integer(reply, (int64_t)task->done_count);
    reply_integer(reply, (int64_t)task->left_count);
}

static bool lb_member_move_check_mode(const struct call *call, uint32_t index, void *target) {
    const struct board_task *task = target;
    (void)index;
    return !task->is_best || !task->is_sum || call_syntax_error(call);
}

static const struct binding lb_member_move_bindings[] = {
    BOARD_TASK_MATCH_OPTION,
    {BIND("BEST", struct board_task, is_best), .read = lb_member_move_check_mode},
    {BIND("SUM", struct board_task, is_sum), .read = lb_member_move_check_mode},
    {0},
};

const struct command command_lb_move = {
    .name = "LB.MOVE",
    .syntax = "from to [MATCH pattern] mode=[BEST | SUM]",
    .bindings = lb_member_move_bindings,
    .reply = "[boards:i left:i]",
    .summary = "Merge a member's results into another's on all boards; count the boards, and those "
               "left as they were",
    .complexity = "O(n log m) for n boards of m members, in steps between other commands",
    .flags = COMMAND_WRITE | COMMAND_DENYOOM | COMMAND_NO_MULTI,
    .audit = AUDIT_PLAYERS,
    .run = board_task_run,
    .variant = &(const struct board_task_kind){.writes = true,
                                               .takes_notes = true,
                                               .begin = lb_member_move_begin,
                                               .act = lb_member_move_act,
                                               .answer = lb_member_move_answer},
};
