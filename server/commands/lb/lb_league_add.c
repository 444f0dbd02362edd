/* LB.LEAGUE ADD: a result in the room of a member.
 *
 *     LB.LEAGUE ADD weekly INCR 120 zoe
 *       the member's entry -> its tier now -> its room, the open one or a new one
 *       -> a result there, as by LB.ADD, and the entry of the running period */
#include "server/commands/keyspace.h"
#include "server/commands/lb/lb_league.h"
#include "server/commands/lb/lb_record.h"
#include "server/commands/lb/lb_results.h"
#include "skiplist/lookup.h"

enum { FIRST_OPTION = LB_LEAGUE_KEY + 1 };

struct adding {
    struct lb_league league;
    struct lb_league_place place;
    struct lb_add add;
    struct bytes member;
    struct league_entry entry;
    struct writing writing; /* to the room */
    struct lb_result result;
    struct once once;
};

/* ---- options ---- */

static bool lb_league_add_read_options(const struct call *call, struct adding *adding) {
    struct lb_add *add = &adding->add;
    *add = (struct lb_add){.operation = LB_ADD_UNSAID, .first = FIRST_OPTION, .member_count = 1};
    if (!lb_add_read_options(call, add)) {
        return false;
    }
    if (add->is_new_only || add->is_existing_only || add->is_old_board || add->with_rank) {
        return call_refuse_reason(call, "LB.LEAGUE ADD takes no NX, XX, NOCREATE and WITHRANK");
    }
    return lb_hset_check(call, &add->hset, 1);
}

/* ---- the room ---- */

/* The number of a new room behind this one: the next whose name is free. Rooms of another PERIOD, or of a
 * league that is no more, may be there still; the steps grow, so that it takes 32 at the most. */
static bool lb_league_add_find_free(struct lb_league *league, struct league_entry *entry) {
    const struct call *call = league->call;
    struct registry_key *key;
    uint64_t number = entry->room + UINT64_C(1);
    for (uint64_t step = 1; number <= UINT32_MAX; number += step, step *= 2) {
        entry->room = (uint32_t)number;
        if (!lb_league_find_key(call, league_room(&league->names, entry->tier, entry->room),
                                &key)) {
            return false;
        }
        if (key == NULL) {
            return true;
        }
    }
    return call_refuse_format(call, "ERR tier %u has no more rooms", (unsigned)entry->tier);
}

/* Are as many in the room as may be? Those who are have this entry, from the cursor on. */
static bool lb_league_add_is_full(const struct lb_league *league, struct league_entry entry,
                                  struct board_cursor *cursor) {
    struct board_stored last;
    board_cursor_skip(cursor, league->options->league.room - 1U);
    return board_cursor_read(cursor, &last) && last.key == league_key(entry);
}

/* false: the error was replied. */
static bool lb_league_add_choose_room(struct adding *adding) {
    struct lb_league *league = &adding->league;
    const struct lb_league_place *place = &adding->place;
    uint32_t tier = place->member.is_there ? place->tier : 1;
    struct board_cursor cursor;
    if (place->is_in_room) {
        adding->entry = place->entry;
        return true;
    }
    adding->entry = lb_league_open_room(league, tier, &cursor);
    bool is_open = adding->entry.room > 0 && !lb_league_add_is_full(league, adding->entry, &cursor);
    return is_open || lb_league_add_find_free(league, &adding->entry);
}

/* false: the error was replied. */
static bool lb_league_add_begin_room(struct adding *adding) {
    struct lb_league *league = &adding->league;
    struct bytes name = league_room(&league->names, adding->entry.tier, adding->entry.room);
    return keyspace_open(league->call, name) &&
           writing_begin_in(league->call, name, league->rooms, &adding->writing);
}

/* ---- the result ---- */

/* In the room, and in the league if its entry there becomes another one. false: the error was replied. */
static bool lb_league_add_put(struct adding *adding, struct lb_results *results) {
    struct board_member *member = &adding->place.member;
    const struct board *board = &adding->league.key->board;
    bool has_moved = !member->is_there || member->key != league_key(adding->entry);
    if (has_moved) {
        results->more = board_growth_size(board, 1) + adding->member.size;
    }
    if (!lb_results_prepare(results)) {
        return false;
    }
    lb_results_put(results);
    if (has_moved) {
        if (adding->result.place.key != NULL) {
            /* What had its name may have expired, and have moved the league's members. */
            board_look_up(board, adding->member, NULL, member);
        }
        lb_league_put(&adding->league, &adding->place, adding->entry);
    }
    return true;
}

/* The end of an answer. */
static void lb_league_add_end_answer(const struct call *call, const struct adding *adding,
                                     bool came_before) {
    if (adding->add.with_repeat) {
        reply_integer(call->reply, came_before);
    }
}

static void lb_league_add_answer(const struct adding *adding) {
    const struct call *call = adding->league.call;
    const struct board *room = adding->writing.board;
    struct board_member member;
    struct lb_writer writer;
    board_look_up(room, adding->member, lookup_on(call->ahead, room), &member);
    reply_array(call->reply, 4U + adding->add.with_repeat);
    reply_integer(call->reply, adding->entry.tier);
    reply_integer(call->reply, adding->entry.room);
    if (member.is_there) {
        lb_begin_records(call, room, (struct lb_shape){.with_strings = adding->add.with_strings},
                         &writer);
        lb_write_record(&writer, member.name, member.key, board_rank_of(room, &member));
    } else {
        reply_null_array(call->reply);
    }
    if (adding->place.member.is_there) {
        reply_integer(call->reply, adding->place.tier_before);
    } else {
        reply_null(call->reply);
    }
    lb_league_add_end_answer(call, adding, false);
}

static void lb_league_add_to_room(struct adding *adding) {
    struct lb_results results = {
        .call = adding->league.call, .add = &adding->add, .list = &adding->result, .count = 1};
    adding->result = (struct lb_result){.writing = &adding->writing};
    const struct layout *layout = board_layout(adding->writing.board);
    bool is_put = lb_add_check_only(adding->league.call, layout, &adding->add) &&
                  lb_add_check_at(adding->league.call, layout, &adding->add) &&
                  lb_league_add_put(adding, &results);
    lb_results_end(&results);
    if (is_put) {
        lb_league_add_answer(adding);
    }
    writing_end(&adding->writing, adding->add.operation == LB_ADD_INCREMENT ? "zincr" : "zadd");
}

/* ONCE: the result came before, and the member may be where others have put it since, or the league be gone. */
static void lb_league_add_answer_repeated(const struct call *call, struct adding *adding) {
    const struct board *board = call_board(call_find_key(call, call_arg(call, LB_LEAGUE_KEY)));
    bool is_there = board != NULL && board_options_of(board_layout(board))->league.room > 0;
    if (is_there && (!lb_league_begin(call, &adding->league) ||
                     !lb_league_look_up(&adding->league, adding->member, &adding->place))) {
        return;
    }
    reply_array(call->reply, 4U + adding->add.with_repeat);
    if (is_there && adding->place.member.is_there) {
        lb_league_reply_place(&adding->league, &adding->place, adding->add.with_strings);
        reply_integer(call->reply, adding->place.entry.tier);
    } else {
        reply_null(call->reply);
        reply_null(call->reply);
        reply_null_array(call->reply);
        reply_null(call->reply);
    }
    lb_league_add_end_answer(call, adding, true);
}

/* false: the command is answered. */
static bool lb_league_add_is_new(const struct call *call, struct adding *adding) {
    struct lb_add *add = &adding->add;
    if (add->once_id.at == NULL) {
        return true;
    }
    enum once_status status =
        once_begin(call, call_arg(call, LB_LEAGUE_KEY), add->once_id, &adding->once);
    add->once = status == ONCE_NEW ? &adding->once : NULL;
    if (status == ONCE_REPEATED) {
        lb_league_add_answer_repeated(call, adding);
    }
    return status == ONCE_NEW;
}

static void lb_league_add_run(struct call *call) {
    struct adding adding;
    if (!lb_league_add_read_options(call, &adding)) {
        return;
    }
    adding.member = call_arg(call, call->request->count - 1);
    if (!zset_check_member(call, adding.member) || !lb_league_add_is_new(call, &adding) ||
        !lb_league_begin(call, &adding.league) || !lb_league_check_writing(&adding.league)) {
        return;
    }
    if (lb_league_look_up(&adding.league, adding.member, &adding.place) &&
        lb_league_check_newcomer(&adding.league, adding.member, &adding.place) &&
        lb_league_add_choose_room(&adding) && lb_league_add_begin_room(&adding)) {
        lb_league_add_to_room(&adding);
    }
}

const struct command lb_league_add = {
    .name = "ADD",
    .syntax = "key operator=[SET | INCR | BEST] time=[AT unix-time-milliseconds:unix-time | TOUCH "
              "| KEEPTIME] [TAG tag value]... [ONCE id] [WITHREPEAT] " LB_HSET_SYNTAX
              " [STRINGS] field... member",
    .hidden_syntax = "condition=[NX | XX] [NOCREATE] [WITHRANK]", /* refused for what they are */
    .bindings = lb_add_bindings,
    .reply = "@LeaguePlaced",
    .summary = "Write a member's result in its room; the first one of a period puts it into the "
               "open room of its tier; tier, room, record and the tier before",
    .complexity = "O(log n) in the members of the board",
    .flags = COMMAND_WRITE | COMMAND_DENYOOM | COMMAND_FAST,
    .key_access = "RW access update",
    .member_arg = -1,
    .run = lb_league_add_run,
};
