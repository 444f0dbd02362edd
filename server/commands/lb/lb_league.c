/* LB.LEAGUE GET INFO REMOVE SET, and what all subcommands share. See lb_league.h. */
#include "server/commands/lb/lb_league.h"

#include <stdio.h>

#include "server/acl/acl_check.h"
#include "server/commands/keyspace.h"
#include "server/commands/lb/lb_record.h"
#include "server/commands/writing.h"
#include "skiplist/lookup.h"

enum { ARG_MEMBER = LB_LEAGUE_KEY + 1, ARG_TIER = LB_LEAGUE_KEY + 1 };

/* ---- the league ---- */

/* The rights that the command needs for its key, to all keys with the prefix of its rooms. */
bool lb_league_check_access(const struct call *call, struct league_names *names) {
    bool reads = (call->command->flags & COMMAND_READ) != 0;
    return acl_check_pattern(call, league_pattern(names), true, reads ? ACL_READ : ACL_ALL);
}

bool lb_league_find_key(const struct call *call, struct bytes name, struct registry_key **key) {
    if (!keyspace_open(call, name)) {
        return false;
    }
    *key = registry_find(call->registry, call->session->database, name, call->now_ms);
    return true;
}

const char *lb_league_refusal(const struct call *call, const struct board_options *rooms) {
    if (rooms->archives_max == 0) {
        return "ARCHIVE 0 is not possible: who goes up and down follows from the archives of rooms";
    }
    if (call->server->is_embedded && rooms->archives_max != BOARD_ARCHIVES_ALL) {
        return "in Redis and Valkey a league needs ARCHIVE ALL: the host removes what expires "
               "before its members are settled";
    }
    if (rooms->copies) {
        return "COPY is not possible: rooms begin anew";
    }
    if (rooms->window.count > 0) {
        return "WINDOW is not possible: rooms begin anew";
    }
    if (rooms->stale_ms > 0) {
        return "STALE is not possible: whoever leaves a room moves the others' places. IDLE DOWN "
               "is "
               "for those who do not come";
    }
    return rooms->cap > 0 || rooms->limit > 0 ? "CAP and LIMIT are not possible: ROOM limits rooms"
                                              : NULL;
}

static bool lb_league_find_rooms(struct lb_league *league) {
    struct registry_key *key;
    if (!lb_league_find_key(league->call, league_template(&league->names), &key)) {
        return false;
    }
    if (key == NULL || key->kind != REGISTRY_BOARD ||
        registry_options(key)->period.unit == PERIOD_NONE) {
        return true;
    }
    league->refusal = lb_league_refusal(league->call, registry_options(key));
    if (league->refusal == NULL) {
        league->rooms = registry_options(key);
        league->period = league_period(league->rooms->period_start_ms);
    }
    return true;
}

bool lb_league_begin(const struct call *call, struct lb_league *league) {
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
    return lb_league_check_access(call, &league->names) && lb_league_find_rooms(league);
}

bool lb_league_check_writing(struct lb_league *league) {
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

/* The room of an entry of the running period. */
static bool lb_league_find_room(struct lb_league *league, struct lb_league_place *place) {
    struct registry_key *key;
    struct bytes name = league_room(&league->names, place->entry.tier, place->entry.room);
    if (!lb_league_find_key(league->call, name, &key)) {
        return false;
    }
    place->room = key != NULL && key->kind == REGISTRY_BOARD ? key : NULL;
    return true;
}

bool lb_league_look_up(struct lb_league *league, struct bytes member,
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
        place->is_in_room = place->entry.room > 0;
        return !place->is_in_room || lb_league_find_room(league, place);
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

struct league_entry lb_league_open_room(const struct lb_league *league, uint32_t tier,
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
void lb_league_tell(const struct lb_league *league, struct league_entry entry, uint32_t tier_before,
                    struct bytes member) {
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

void lb_league_put(const struct lb_league *league, const struct lb_league_place *place,
                   struct league_entry entry) {
    const struct call *call = league->call;
    bool is_there = place->member.is_there;
    struct bytes name = place->member.name;
    enum board_status status =
        registry_board_put(call->registry, league->key, &place->member, league_key(entry));
    CHECK(status == BOARD_OK);
    lb_league_tell(league, entry, is_there ? place->tier_before : 0, name);
}

/* ---- GET ---- */

static void lb_league_reply_record(const struct lb_league *league,
                                   const struct lb_league_place *place, bool with_strings) {
    const struct call *call = league->call;
    const struct registry_key *room = place->room;
    struct board_member member;
    struct lb_writer writer;
    if (!zset_look_up(call, call_board(room), place->member.name, &member)) {
        reply_null_array(call->reply);
        return;
    }
    lb_begin_records(call, &room->board, (struct lb_shape){.with_strings = with_strings}, &writer);
    lb_write_record(&writer, member.name, member.key, board_rank_of(&room->board, &member));
}

void lb_league_reply_place(const struct lb_league *league, const struct lb_league_place *place,
                           bool with_strings) {
    const struct call *call = league->call;
    reply_integer(call->reply, place->entry.tier);
    if (place->is_in_room) {
        reply_integer(call->reply, place->entry.room);
        lb_league_reply_record(league, place, with_strings);
    } else {
        reply_null(call->reply);
        reply_null_array(call->reply);
    }
}

/* What the end of the running period would do, if it were now. */
static const char *lb_league_outlook(const struct lb_league *league,
                                     const struct lb_league_place *place) {
    const struct board_league *options = &league->options->league;
    const struct board *room = call_board(place->room);
    bool has_played = place->entry.period == league->period;
    uint32_t tier = has_played ? place->tier : league_tier_idle(options, place->tier, 1);
    struct board_member member;
    if (room != NULL && zset_look_up(league->call, room, place->member.name, &member)) {
        tier = league_tier_after(options, place->tier, board_rank_of(room, &member),
                                 board_count(room));
    }
    return tier > place->tier ? "up" : tier < place->tier ? "down" : "stay";
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
    if (place.tier != place.entry.tier) {
        reply_integer(call->reply, place.tier);
    } else {
        reply_null(call->reply);
    }
    if (league.rooms != NULL) {
        reply_bulk_text(call->reply, lb_league_outlook(&league, &place));
    } else {
        reply_null(call->reply);
    }
}

static const struct command lb_league_get = {
    .name = "GET",
    .syntax = "key member",
    .reply = "@LeaguePlace?",
    .summary = "A member's tier, its room in the running period, its record there, the tier that "
               "is to come, if it is another, and whether it would go up, stay or go down if the "
               "period ended now",
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

static void lb_league_reply_period(const struct lb_league *league) {
    const struct call *call = league->call;
    reply_bulk_text(call->reply, "start");
    if (league->rooms != NULL) {
        reply_integer(call->reply, league->rooms->period_start_ms);
    } else {
        reply_null(call->reply);
    }
    reply_bulk_text(call->reply, "end");
    if (league->rooms != NULL) {
        reply_integer(call->reply, league->rooms->period_end_ms);
    } else {
        reply_null(call->reply);
    }
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
    lb_league_reply_period(&league);
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

static bool lb_league_read_tier(const struct lb_league *league, uint32_t *tier) {
    int64_t value;
    if (!bytes_parse_i64(call_arg(league->call, ARG_TIER), &value) || value < 1 ||
        value > league->options->league.tiers) {
        return call_refuse_format(league->call, "ERR the league's tiers are 1..%d",
                                  (int)league->options->league.tiers);
    }
    *tier = (uint32_t)value;
    return true;
}

bool lb_league_check_newcomer(const struct lb_league *league, struct bytes member,
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
    uint32_t tier;
    struct bytes name = call_arg(call, ARG_TIER + 1);
    if (!lb_league_begin(call, &league) || !lb_league_check_writing(&league) ||
        !lb_league_read_tier(&league, &tier) || !zset_check_member(call, name)) {
        return;
    }
    if (!lb_league_look_up(&league, name, &place) ||
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
    lb_league_put(&league, &place, (struct league_entry){.tier = tier, .period = league.period});
    memory_reserve_end();
    lb_league_leave(&league, place.room, name);
    reply_integer(call->reply, 1);
}

static const struct command lb_league_set = {
    .name = "SET",
    .syntax = "key tier:integer member",
    .reply = "b",
    .summary = "Put a member into a tier: it leaves its room, and its next result begins anew; "
               "whether it was in another",
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
    .summary = "Take a member out of the league and its room; whether it was there",
    .complexity = "O(log n) in the members of the board",
    .flags = COMMAND_WRITE | COMMAND_FAST,
    .key_access = "RW access delete",
    .member_arg = ARG_MEMBER,
    .run = lb_league_remove_run,
};

const struct command command_lb_league = {
    .name = "LB.LEAGUE",
    .summary = "Members in tiers and rooms, from which they go up and down with each period",
    .complexity = "Depends on subcommand.",
    .subcommands = COMMAND_LIST(&lb_league_add, &lb_league_create, &lb_league_get, &lb_league_info,
                                &lb_league_remove, &lb_league_set, &call_help_command),
};
