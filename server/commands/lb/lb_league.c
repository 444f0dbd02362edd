/* LB.LEAGUE: leagues (skiplist/keyspace/league.h). */
#include <stdio.h>

#include "server/acl/acl_check.h"
#include "server/commands/keyspace.h"
#include "server/commands/lb/lb.h"
#include "server/commands/lb/lb_add.h"
#include "server/commands/lb/lb_record.h"
#include "server/commands/writing.h"
#include "server/dispatch/call.h"
#include "skiplist/keyspace/league.h"

/* The arguments. */
enum {
    LB_LEAGUE_KEY = 2,
    ARG_MEMBER = LB_LEAGUE_KEY + 1,
    ARG_TIER = LB_LEAGUE_KEY + 1,
    FIRST_OPTION = LB_LEAGUE_KEY + 1,
};

struct lb_league {
    const struct call *call;
    struct registry_key *key;
    const struct board_options *options;
    /* Of the template. NULL: there is none with a PERIOD, or none yet for the running period, on a replica. */
    const struct board_options *rooms;
    const char *refusal; /* why rooms cannot have the template's options; NULL: they can */
    uint32_t period;     /* the running one; if there are rooms */
    struct league_names names;
};

/* A member, as it is now. */
struct lb_league_place {
    struct board_member member; /* looked up on the league's board */
    struct league_entry entry;  /* if it is there */
    uint32_t tier;              /* now; if it is there */
    uint32_t tier_before;       /* on the league's board, as the command found it */
    bool is_in_room;            /* the entry's, in the running period */
    struct registry_key *room;  /* that one; NULL: it does not exist */
};

/* ---- the league ---- */

/* The rights that the command needs for its key, to all keys with the prefix of its rooms. */
static bool lb_league_check_access(const struct call *call, struct league_names *names) {
    bool reads = (call->command->flags & COMMAND_READ) != 0;
    return acl_check_pattern(call, league_pattern(names), true, reads ? ACL_READ : ACL_ALL);
}

/* Another key of the league; NULL: it does not exist. false: no memory; the error was replied. */
static bool lb_league_find_key(const struct call *call, struct bytes name,
                               struct registry_key **key) {
    if (!keyspace_open(call, name)) {
        return false;
    }
    *key = registry_find(call->registry, call->session->database, name, call->now_ms);
    return true;
}

/* Why can rooms not have these options, which have a PERIOD? NULL: they can. */
static const char *lb_league_refusal(const struct call *call, const struct board_options *rooms) {
    if (rooms->archives_max == 0) {
        return "ARCHIVE 0 is not possible: who goes up and down follows from the archives of rooms";
    }
    if (call->server->is_embedded && rooms->archives_max != BOARD_ARCHIVES_ALL) {
        return "in Redis and Valkey a league needs ARCHIVE ALL: the host removes what expires "
               "before its members are settled";
    }
    return board_options_refuse_rooms(rooms);
}

/* Find the league of the command's key, on which the user needs the rights of the command, and on all
 * its rooms: {key}:*. false: the error was replied. */
static bool lb_league_begin(const struct call *call, struct lb_league *league) {
    struct bytes name = call_arg(call, LB_LEAGUE_KEY);
    league->call = call;
    league->rooms = NULL;
    league->refusal = NULL;
    league->period = 0;
    if (!call_need_board(call, name, &league->key)) {
        return false;
    }
    league->options = registry_options(league->key);
    if (league->options->league.room == 0) {
        return call_refuse(call, "ERR board is not a league: LB.LEAGUE CREATE makes one");
    }
    if (!league_is_name(name)) {
        return call_refuse(call, "ERR the league was renamed to what no league's key may be");
    }
    league_names_init(&league->names, name);
    struct registry_key *key;
    if (!lb_league_check_access(call, &league->names) ||
        !lb_league_find_key(call, league_template(&league->names), &key)) {
        return false;
    }
    if (key != NULL && key->kind == REGISTRY_BOARD &&
        registry_options(key)->period.unit != PERIOD_NONE) {
        league->refusal = lb_league_refusal(call, registry_options(key));
        league->rooms = league->refusal == NULL ? registry_options(key) : NULL;
        league->period = league->rooms != NULL ? league_period(league->rooms->period_start_ms) : 0;
    }
    return true;
}

/* For a command that writes: does the league take writes now, and has it rooms? false: the error was
 * replied. */
static bool lb_league_check_writing(struct lb_league *league) {
    const struct call *call = league->call;
    if (writing_refuses(call, league->options, BOARD_WRITE_LEAGUE)) {
        return false;
    }
    if (league->rooms != NULL) {
        return true;
    }
    struct bytes_shown name = bytes_show(league_template(&league->names));
    return league->refusal != NULL
               ? call_refuse_format(call, "ERR board '%s': %s", name.text, league->refusal)
               : call_refuse_format(call,
                                    "ERR the league has no board '%s' with a PERIOD for its rooms",
                                    name.text);
}

/* ---- members ---- */

static void lb_league_find_entry(const struct lb_league *league, struct bytes member,
                                 struct lb_league_place *place) {
    const struct board *board = &league->key->board;
    board_look_up(board, member, lookup_on(league->call->ahead, board), &place->member);
    place->entry = league_entry_of(place->member.key);
    place->tier = place->entry.tier;
}

static bool lb_league_open_archive(const void *context, struct bytes name) {
    return keyspace_open(context, name);
}

/* Without rooms, tiers are those of the entries. false: no memory; the error was replied. */
static bool lb_league_look_up(struct lb_league *league, struct bytes member,
                              struct lb_league_place *place) {
    const struct call *call = league->call;
    place->is_in_room = false;
    place->room = NULL;
    lb_league_find_entry(league, member, place);
    place->tier_before = place->entry.tier;
    if (!place->member.is_there || league->rooms == NULL) {
        return true;
    }
    if (place->entry.period == league->period) {
        struct registry_key *room = NULL;
        place->is_in_room = place->entry.room > 0;
        if (place->is_in_room &&
            !lb_league_find_key(
                call, league_room(&league->names, place->entry.tier, place->entry.room), &room)) {
            return false;
        }
        place->room = call_board(room) != NULL ? room : NULL;
        return true;
    }
    /* Twice at most: the first time, the archive may be about to go, and settle the entry. */
    uint64_t key;
    do {
        uint32_t tier;
        uint64_t settled_count = registry_totals(call->registry)->league_settled;
        key = place->member.key;
        if (!league_find_tier(call->registry, league->key, &league->names, member, place->entry,
                              &league->rooms->period, league->period, call->now_ms,
                              lb_league_open_archive, call, &tier)) {
            return false;
        }
        if (registry_totals(call->registry)->league_settled != settled_count) {
            lb_league_find_entry(league, member, place);
        }
        place->tier = tier;
    } while (place->member.key != key);
    return true;
}

/* The entry of the room opened last in a tier, at the first of those who are in it; room 0: none was. */
static struct league_entry lb_league_open_room(const struct lb_league *league, uint32_t tier,
                                               struct board_cursor *cursor) {
    struct league_entry last = {.tier = tier, .period = league->period, .room = UINT32_MAX};
    struct league_entry none = {.tier = tier, .period = league->period};
    struct board_stored first;
    board_cursor_seek_key(&league->key->board, league_key(last), cursor);
    if (!board_cursor_read(cursor, &first)) {
        return none;
    }
    struct league_entry open = league_entry_of(first.key);
    return open.tier == tier && open.period == league->period ? open : none;
}

/* "league 2 17 1 zoe": tier and room, 0 for none, the tier before, and who. */
static void lb_league_tell(const struct lb_league *league, struct league_entry entry,
                           uint32_t tier_before, struct bytes member) {
    enum { NUMBERS_MAX = 64 };
    const struct call *call = league->call;
    char text[NUMBERS_MAX + BOARD_MEMBER_MAX];
    registry_tell_members(call->registry, league->key);
    call_notify(call, SETTING_EVENT_ZSET, "league", registry_name(league->key));
    if (!call->server->settings.notify_board_events) {
        return;
    }
    int size = snprintf(text, sizeof text, "league %u %u %u ", (unsigned)entry.tier,
                        (unsigned)entry.room, (unsigned)tier_before);
    memcpy(text + size, member.at, member.size);
    notify_board(call->server, call->session->database, registry_name(league->key),
                 (struct bytes){.at = text, .size = (size_t)size + member.size});
}

/* Put the member into the league, or change its entry; there is memory. Clients are told. */
static void lb_league_put(const struct lb_league *league, const struct lb_league_place *place,
                          struct league_entry entry) {
    const struct call *call = league->call;
    bool is_there = place->member.is_there;
    struct bytes name = place->member.name;
    enum board_status status =
        registry_board_put(call->registry, league->key, &place->member, league_key(entry));
    CHECK(status == BOARD_OK);
    lb_league_tell(league, entry, is_there ? place->tier_before : 0, name);
}

static void lb_league_reply_number(const struct call *call, bool is_there, int64_t number) {
    if (is_there) {
        reply_integer(call->reply, number);
    } else {
        reply_null(call->reply);
    }
}

/* ---- GET ---- */

/* Reply the tier, the room and the record of a member, on the board and in the running period: the first
 * three elements of GET and ADD. */
static void lb_league_reply_place(const struct lb_league *league,
                                  const struct lb_league_place *place, bool with_strings) {
    const struct call *call = league->call;
    const struct board *room = call_board(place->room);
    struct board_member member;
    struct lb_writer writer;
    reply_integer(call->reply, place->entry.tier);
    lb_league_reply_number(call, place->is_in_room, place->entry.room);
    if (place->is_in_room && zset_look_up(call, room, place->member.name, &member)) {
        lb_record_begin(call, room, (struct lb_shape){.with_strings = with_strings}, &writer);
        lb_record_write(&writer, member.name, member.key, board_rank_of(room, &member));
    } else {
        reply_null_array(call->reply);
    }
}

static void lb_league_get_run(struct call *call) {
    struct lb_league league;
    struct lb_league_place place = {.tier = 0};
    struct bytes member = call_arg(call, ARG_MEMBER);
    if (!lb_league_begin(call, &league)) {
        return;
    }
    if (zset_is_member(member) && !lb_league_look_up(&league, member, &place)) {
        return;
    }
    if (!place.member.is_there) {
        reply_null_array(call->reply);
        return;
    }
    reply_array(call->reply, 5);
    lb_league_reply_place(&league, &place, false);
    lb_league_reply_number(call, place.tier != place.entry.tier, place.tier);
    if (league.rooms == NULL) {
        reply_null(call->reply);
        return;
    }
    /* What the end of the running period would do, if it were now. */
    const struct board_league *options = &league.options->league;
    const struct board *room = call_board(place.room);
    bool has_played = place.entry.period == league.period;
    uint32_t tier = has_played ? place.tier : league_tier_idle(options, place.tier, 1);
    struct board_member there;
    if (room != NULL && zset_look_up(call, room, member, &there)) {
        tier =
            league_tier_after(options, place.tier, board_rank_of(room, &there), board_count(room));
    }
    reply_bulk_text(call->reply, tier > place.tier ? "up" : tier < place.tier ? "down" : "stay");
}

static const struct command lb_league_get = {
    .name = "GET",
    .syntax = "key member",
    .reply = "@LeaguePlace?",
    .summary = "A member's tier, room and record, its next tier if that is another, and "
               "whether it would go up, stay or go down if the period ended now",
    .complexity = "O(log n) in the members of the board",
    .flags = COMMAND_READ | COMMAND_FAST,
    .member_arg = ARG_MEMBER,
    .run = lb_league_get_run,
};

/* ---- INFO ---- */

static void lb_league_reply_tier(const struct lb_league *league, uint32_t tier) {
    const struct call *call = league->call;
    const struct board *board = &league->key->board;
    uint32_t open_count = 0;
    struct board_cursor cursor;
    struct league_entry open = {.tier = tier};
    if (league->rooms != NULL) {
        open = lb_league_open_room(league, tier, &cursor);
    }
    if (open.room > 0) {
        open_count =
            board_count_from(board, league_key(open)) - board_count_above(board, league_key(open));
    }
    struct league_entry last = {LEAGUE_TIERS_MAX, LEAGUE_PERIOD_MAX, UINT32_MAX};
    last.tier = tier;
    uint32_t above = board_count_above(board, league_key(last));
    uint32_t from = board_count_from(board, league_key((struct league_entry){.tier = tier}));
    reply_map(call->reply, 4);
    reply_named_integer(call->reply, "tier", tier);
    reply_named_integer(call->reply, "members", from - above);
    reply_named_integer(call->reply, "open-room", open.room);
    reply_named_integer(call->reply, "open-room-members", open_count);
}

static void lb_league_info_run(struct call *call) {
    struct lb_league league;
    if (!lb_league_begin(call, &league)) {
        return;
    }
    const struct board_league *options = &league.options->league;
    reply_map(call->reply, 9);
    reply_named_integer(call->reply, "members", board_count(&league.key->board));
    reply_named_integer(call->reply, "room", options->room);
    reply_named_integer(call->reply, "tiers", options->tiers);
    reply_named_integer(call->reply, "up", options->up);
    reply_named_integer(call->reply, "down", options->down);
    reply_named_text(call->reply, "idle", options->idle_goes_down ? "down" : "stay");
    bool has_rooms = league.rooms != NULL;
    reply_bulk_text(call->reply, "start");
    lb_league_reply_number(call, has_rooms, has_rooms ? league.rooms->period_start_ms : 0);
    reply_bulk_text(call->reply, "end");
    lb_league_reply_number(call, has_rooms, has_rooms ? league.rooms->period_end_ms : 0);
    reply_bulk_text(call->reply, "list");
    reply_array(call->reply, options->tiers);
    for (uint32_t tier = options->tiers; tier > 0; tier--) {
        lb_league_reply_tier(&league, tier);
    }
}

static const struct command lb_league_info = {
    .name = "INFO",
    .syntax = "key",
    .reply = "@League",
    .summary = "A league's numbers, its running period, and its tiers, the highest first, with "
               "their members and the room that is open",
    .complexity = "O(t log n) for t tiers, at most 255, and n members",
    .flags = COMMAND_READ,
    .run = lb_league_info_run,
};

/* ---- SET and REMOVE ---- */

/* false: its room takes no writes; the error was replied. */
static bool lb_league_may_leave(const struct lb_league *league,
                                const struct lb_league_place *place) {
    return place->room == NULL ||
           !writing_refuses(league->call, registry_options(place->room), BOARD_WRITE_MEMBERS);
}

static void lb_league_leave(const struct lb_league *league, struct registry_key *room,
                            struct bytes name) {
    const struct call *call = league->call;
    struct board_member member;
    if (room == NULL) {
        return;
    }
    board_look_up(&room->board, name, NULL, &member);
    if (member.is_there) {
        registry_board_take(call->registry, room, &member);
        registry_tell_members(call->registry, room);
        zset_end_removal(call, room, "zrem");
    }
}

/* May it be a member, and is there room for it on the league's board? false: the error was replied. */
static bool lb_league_check_newcomer(const struct lb_league *league, struct bytes member,
                                     const struct lb_league_place *place) {
    struct writing writing = {.call = league->call,
                              .key = league->key,
                              .board = &league->key->board,
                              .options = league->options,
                              .has_bans = ban_exists(league->call->registry)};
    if (!writing_check_member(&writing, member)) {
        return false;
    }
    if (!place->member.is_there && writing_room(&writing) == 0) {
        writing_refuse_full(league->call, league->options);
        return false;
    }
    return true;
}

static void lb_league_set_run(struct call *call) {
    struct lb_league league;
    struct lb_league_place place;
    int64_t tier;
    struct bytes name = call_arg(call, ARG_TIER + 1);
    if (!lb_league_begin(call, &league) || !lb_league_check_writing(&league)) {
        return;
    }
    int tiers = league.options->league.tiers;
    if (!bytes_parse_i64(call_arg(call, ARG_TIER), &tier) || tier < 1 || tier > tiers) {
        (void)call_refuse_format(call, "ERR the league's tiers are 1..%d", tiers);
        return;
    }
    if (!zset_check_member(call, name) || !lb_league_look_up(&league, name, &place) ||
        !lb_league_check_newcomer(&league, name, &place) || !lb_league_may_leave(&league, &place)) {
        return;
    }
    if (place.member.is_there && place.entry.tier == tier && place.tier == tier) {
        reply_integer(call->reply, 0);
        return;
    }
    if (!memory_reserve_begin(board_growth_size(&league.key->board, 1) + name.size)) {
        (void)call_out_of_memory(call);
        return;
    }
    lb_league_put(&league, &place,
                  (struct league_entry){.tier = (uint32_t)tier, .period = league.period});
    memory_reserve_end();
    lb_league_leave(&league, place.room, name);
    reply_integer(call->reply, 1);
}

static const struct command lb_league_set = {
    .name = "SET",
    .syntax = "key tier:integer member",
    .reply = "b",
    .summary = "Put a member into a tier: it leaves its room, and its next result begins "
               "anew; 1 if it was in another tier",
    .complexity = "O(log n) in the members of the board",
    .flags = COMMAND_WRITE | COMMAND_DENYOOM | COMMAND_FAST,
    .key_access = "RW access update",
    .member_arg = ARG_TIER + 1,
    .run = lb_league_set_run,
};

static void lb_league_remove_run(struct call *call) {
    struct lb_league league;
    struct lb_league_place place = {.tier = 0};
    struct bytes name = call_arg(call, ARG_MEMBER);
    if (!lb_league_begin(call, &league) ||
        writing_refuses(call, league.options, BOARD_WRITE_LEAGUE)) {
        return;
    }
    if (zset_is_member(name) && !lb_league_look_up(&league, name, &place)) {
        return;
    }
    if (!place.member.is_there) {
        reply_integer(call->reply, 0);
        return;
    }
    if (!lb_league_may_leave(&league, &place)) {
        return;
    }
    registry_board_take(call->registry, league.key, &place.member);
    lb_league_tell(&league, (struct league_entry){.tier = 0}, place.tier_before, name);
    lb_league_leave(&league, place.room, name);
    reply_integer(call->reply, 1);
}

static const struct command lb_league_remove = {
    .name = "REMOVE",
    .syntax = "key member",
    .reply = "b",
    .summary = "Take a member out of the league and its room; 1 if it was there",
    .complexity = "O(log n) in the members of the board",
    .flags = COMMAND_WRITE | COMMAND_FAST,
    .key_access = "RW access delete",
    .member_arg = ARG_MEMBER,
    .run = lb_league_remove_run,
};

/* LB.LEAGUE CREATE: the league's board, and the template of its rooms.
 *
 *     LB.LEAGUE CREATE weekly FIELD points 22 TIME 31 S PERIOD WEEK ROOM 30 TIERS 10 UP 5 DOWN 5
 *       the league's words, the options of boards -> weekly, {weekly}:rooms */

static bool lb_league_create_read(const struct call *call, struct board_league *league,
                                  struct board_options *rooms) {
    enum { NOT_GIVEN = UINT16_MAX }; /* more than LEAGUE_ROOM_MAX */
    char reason[SETTING_ERROR_MAX];
    uint32_t next = LB_LEAGUE_KEY + 1;
    if (!lb_create_read_begin(call, call_arg(call, LB_LEAGUE_KEY), &next, rooms)) {
        return false;
    }
    rooms->league = (struct board_league){.up = NOT_GIVEN, .down = NOT_GIVEN};
    bool is_read = setting_options_parse(SETTING_TAKES_LEAGUE, &call->request->args[next],
                                         call->request->count - next, rooms, NULL, reason);
    *league = rooms->league;
    rooms->league = (struct board_league){.room = 0};
    rooms->guards = board_options_guards(rooms);
    if (is_read && (league->room == 0 || league->tiers == 0 || league->up == NOT_GIVEN ||
                    league->down == NOT_GIVEN)) {
        return call_refuse_reason(call, "a league needs ROOM, TIERS, UP and DOWN");
    }
    if (!is_read) {
        return call_refuse_reason(call, "%s", reason);
    }
    const char *refusal = board_options_refuse_rooms(rooms);
    if (refusal == NULL && !setting_options_check(rooms, reason)) {
        refusal = reason;
    }
    if (refusal == NULL && rooms->period.unit == PERIOD_NONE) {
        return call_refuse_reason(call, "PERIOD expected after '%s': a league needs one",
                                  bytes_show(call_arg(call, call->request->count - 1)).text);
    }
    refusal = refusal == NULL ? lb_league_refusal(call, rooms) : refusal;
    if (refusal != NULL) {
        return call_refuse_format(call, "ERR %s", refusal);
    }
    return (league->up <= league->room && league->down <= league->room) ||
           call_refuse(call, "ERR UP and DOWN are at most ROOM");
}

/* A name that is free for a board with these options. NULL: the error was replied. */
static struct registry_key *lb_league_create_board(const struct call *call, struct bytes name,
                                                   const struct board_options *options) {
    bool is_new;
    struct registry_key *key = registry_find_or_create_like(
        call->registry, call->session->database, name, options, NULL, call->now_ms, &is_new);
    if (key == NULL) {
        (void)call_out_of_memory(call);
    }
    return key;
}

static void lb_league_create_boards(const struct call *call, const struct board_league *league,
                                    const struct board_options *rooms, struct league_names *names) {
    struct bytes name = call_arg(call, LB_LEAGUE_KEY);
    struct bytes template = league_template(names);
    struct board_options options = {
        .is_created = true,
        .guards = BOARD_LEAGUE,
        .league = *league,
    };
    league_init_layout(&options.layout);
    struct registry_key *key = call_find_key(call, name);
    struct registry_key *other;
    if (key != NULL) {
        reply_error(call->reply, "BUSYKEY Target key name already exists.");
        return;
    }
    if (!lb_league_find_key(call, template, &other)) {
        return;
    }
    if (other != NULL) {
        reply_error(call->reply, "BUSYKEY Target key name already exists: the one of the rooms, "
                                 "which ends in ':rooms'");
        return;
    }
    key = lb_league_create_board(call, name, &options);
    if (key == NULL) {
        return;
    }
    if (lb_league_create_board(call, template, rooms) == NULL) {
        registry_remove(call->registry, key);
        return;
    }
    reply_ok(call->reply);
}

static void lb_league_create_run(struct call *call) {
    struct board_options rooms;
    struct board_league league;
    struct bytes name = call_arg(call, LB_LEAGUE_KEY);
    if (!call_check_key(call, name)) {
        return;
    }
    if (!league_is_name(name)) {
        reply_error_format(call->reply,
                           "ERR a league's key has at most %d bytes, and braces only around a tag "
                           "that it shares with its rooms: {eu}:weekly",
                           (int)REGISTRY_KEY_MAX - LEAGUE_SUFFIX_MAX);
        return;
    }
    struct league_names names;
    league_names_init(&names, name);
    if (lb_league_check_access(call, &names) && lb_league_create_read(call, &league, &rooms)) {
        lb_league_create_boards(call, &league, &rooms, &names);
    }
}

static const struct command lb_league_create = {
    .name = "CREATE",
    .syntax = "key " LB_LAYOUT_SYNTAX("") BOARD_OPTIONS_SYNTAX_ROOMS,
    .reply = "<OK>",
    .summary = "Make a league, and the empty board whose layout and options its rooms have",
    .flags = COMMAND_WRITE | COMMAND_DENYOOM | COMMAND_FAST,
    .run = lb_league_create_run,
};

/* LB.LEAGUE ADD: a result in the room of a member.
 *
 *     LB.LEAGUE ADD weekly INCR 120 zoe
 *       the member's entry -> its tier now -> its room, the open one or a new one
 *       -> a result there, as by LB.ADD, and the entry of the running period */

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

/* ---- the room ---- */

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
    struct league_entry *entry = &adding->entry;
    if (entry->room > 0) {
        /* Those who are there have this entry, from the cursor on: are they fewer than may be? */
        struct board_stored last;
        board_cursor_skip(&cursor, league->options->league.room - 1U);
        if (!board_cursor_read(&cursor, &last) || last.key != league_key(*entry)) {
            return true;
        }
    }
    /* A new one behind it: the next whose name is free. Rooms of another PERIOD, or of a league that is no more, may be
     * there still; the steps grow, so that it takes 32 at the most. */
    struct registry_key *key = NULL;
    uint64_t number = entry->room + UINT64_C(1);
    for (uint64_t step = 1; number <= UINT32_MAX; number += step, step *= 2) {
        entry->room = (uint32_t)number;
        if (!lb_league_find_key(league->call, league_room(&league->names, entry->tier, entry->room),
                                &key)) {
            return false;
        }
        if (key == NULL) {
            return true;
        }
    }
    return call_refuse_format(league->call, "ERR tier %u has no more rooms", (unsigned)entry->tier);
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
    if (!lb_add_results_prepare(results)) {
        return false;
    }
    lb_add_results_put(results);
    if (has_moved) {
        if (adding->result.place.key != NULL) {
            /* What had its name may have expired, and have moved the league's members. */
            board_look_up(board, adding->member, NULL, member);
        }
        lb_league_put(&adding->league, &adding->place, adding->entry);
    }
    return true;
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
        lb_record_begin(call, room, (struct lb_shape){.with_strings = adding->add.with_strings},
                        &writer);
        lb_record_write(&writer, member.name, member.key, board_rank_of(room, &member));
    } else {
        reply_null_array(call->reply);
    }
    lb_league_reply_number(call, adding->place.member.is_there, adding->place.tier_before);
    if (adding->add.with_repeat) {
        reply_integer(call->reply, 0);
    }
}

static void lb_league_add_to_room(struct adding *adding) {
    struct lb_results results;
    lb_result_init(&adding->result, &adding->writing, 0);
    lb_results_init(&results, adding->league.call, &adding->add, &adding->result, 1);
    results.whole = call_arg(adding->league.call, LB_LEAGUE_KEY);
    const struct layout *layout = board_layout(adding->writing.board);
    bool is_put = lb_add_check_only(adding->league.call, layout, &adding->add) &&
                  lb_add_check_at(adding->league.call, layout, &adding->add) &&
                  lb_league_add_put(adding, &results);
    lb_add_results_end(&results);
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
    if (adding->add.with_repeat) {
        reply_integer(call->reply, 1);
    }
}

static void lb_league_add_run(struct call *call) {
    struct adding adding;
    struct lb_add *add = &adding.add;
    *add = lb_add_plain;
    add->first = FIRST_OPTION;
    add->member_count = 1;
    if (!lb_add_read_options(call, add)) {
        return;
    }
    if (add->is_new_only || add->is_existing_only || add->is_old_board || add->with_rank) {
        (void)call_refuse_reason(call, "LB.LEAGUE ADD takes no NX, XX, NOCREATE and WITHRANK");
        return;
    }
    adding.member = call_arg(call, call->request->count - 1);
    if (!lb_data_hset_check(call, &add->hset, 1) || !zset_check_member(call, adding.member)) {
        return;
    }
    if (add->once_id.at != NULL) {
        enum once_status status =
            once_begin(call, call_arg(call, LB_LEAGUE_KEY), add->once_id, &adding.once);
        if (status == ONCE_REPEATED) {
            lb_league_add_answer_repeated(call, &adding);
        }
        if (status != ONCE_NEW) {
            return;
        }
        add->once = &adding.once;
    }
    if (!lb_league_begin(call, &adding.league) || !lb_league_check_writing(&adding.league) ||
        !lb_league_look_up(&adding.league, adding.member, &adding.place) ||
        !lb_league_check_newcomer(&adding.league, adding.member, &adding.place) ||
        !lb_league_add_choose_room(&adding)) {
        return;
    }
    struct bytes room = league_room(&adding.league.names, adding.entry.tier, adding.entry.room);
    if (keyspace_open(call, room) &&
        writing_begin_in(call, room, adding.league.rooms, &adding.writing)) {
        lb_league_add_to_room(&adding);
    }
}

static const struct command lb_league_add = {
    .name = "ADD",
    .syntax = "key " LB_ADD_SYNTAX " [STRINGS] field... member",
    .hidden_syntax = "condition=[NX | XX] [NOCREATE] [WITHRANK]", /* refused for what they are */
    .bindings = lb_add_bindings,
    .reply = "@LeaguePlaced",
    .summary = "Write a member's result in its room; the first one of a period puts it into "
               "the open room of its tier; reply tier, room, record and the tier before",
    .complexity = "O(log n) in the members of the board",
    .flags = COMMAND_WRITE | COMMAND_DENYOOM | COMMAND_FAST | COMMAND_OWN_MEMBER,
    .key_access = "RW access update",
    .member_arg = -1,
    .run = lb_league_add_run,
};

const struct command command_lb_league = {
    .name = "LB.LEAGUE",
    .summary = "Members in tiers and rooms, from which they go up and down with each period",
    .complexity = "Depends on subcommand.",
    .subcommands = COMMAND_LIST(&lb_league_add, &lb_league_create, &lb_league_get, &lb_league_info,
                                &lb_league_remove, &lb_league_set, &call_help_command),
};
