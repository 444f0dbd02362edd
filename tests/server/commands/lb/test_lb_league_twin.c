/* LB.LEAGUE over many periods against a naive twin, which keeps every result of every period and
 * computes tiers by sorting rooms. What the server reports as effects goes to a second registry, which
 * has no clock and no options. */
#include "tests/server/zset_fixture.h"

#include "skiplist/keyspace/effect.h"
#include "skiplist/keyspace/league.h"
#include "tests/support/random.h"

enum { MEMBERS = 60, PERIODS = 120, KINDS = 8 };
#define DAY_US INT64_C(86400000000)

/* A member, and its result in its last period with one. */
struct twin_member {
    bool is_there;
    int tier, period, room; /* room 0: none */
    int64_t points;
    uint64_t arrival; /* of the result */
};

/* What a room had when its period ended. */
struct twin_room {
    int tier, period, room;
    int count;
    struct {
        int member;
        int64_t points;
        uint64_t arrival;
    } entries[MEMBERS];
};

struct twin {
    struct harness *h;
    struct random random;
    int room, tiers, up, down, archive; /* archive 0: all, which the module can do, too */
    bool idle_goes_down;
    int period;
    uint64_t arrivals;
    struct twin_member members[MEMBERS];
    struct twin_room *rooms; /* of past periods */
    size_t room_count;
    struct registry *copy;
    struct effect_listener listener;
};

/* ---- the naive computation ---- */

static int clamp(const struct twin *twin, int tier) {
    return tier < 1 ? 1 : tier > twin->tiers ? twin->tiers : tier;
}

/* How many of the room were better. -1: the member is not in the room. */
static int rank_in(const struct twin_room *room, int member) {
    int rank = 0;
    int at = -1;
    for (int i = 0; i < room->count; i++) {
        at = room->entries[i].member == member ? i : at;
    }
    for (int i = 0; at >= 0 && i < room->count; i++) {
        rank += room->entries[i].points > room->entries[at].points ||
                (room->entries[i].points == room->entries[at].points &&
                 room->entries[i].arrival < room->entries[at].arrival);
    }
    return at >= 0 ? rank : -1;
}

static const struct twin_room *find_room(const struct twin *twin,
                                         const struct twin_member *member) {
    for (size_t i = 0; i < twin->room_count; i++) {
        const struct twin_room *room = &twin->rooms[i];
        if (room->tier == member->tier && room->period == member->period &&
            room->room == member->room) {
            return room;
        }
    }
    return NULL;
}

static int tier_now(const struct twin *twin, int index) {
    const struct twin_member *member = &twin->members[index];
    int tier = member->tier;
    if (member->period == twin->period) {
        return tier;
    }
    const struct twin_room *room = member->room > 0 ? find_room(twin, member) : NULL;
    int rank = room != NULL ? rank_in(room, index) : -1;
    if (rank >= 0) {
        bool goes_up = rank < twin->up;
        bool goes_down = !goes_up && rank >= room->count - twin->down;
        tier = clamp(twin, tier + (goes_up ? 1 : goes_down ? -1 : 0));
    }
    for (int period = member->period + 1; twin->idle_goes_down && period < twin->period; period++) {
        tier = clamp(twin, tier - 1);
    }
    return tier;
}

/* The room for a newcomer of a tier: the last one, if it has a place. */
static int open_room(const struct twin *twin, int tier) {
    int last = 0;
    int count = 0;
    for (int i = 0; i < MEMBERS; i++) {
        const struct twin_member *member = &twin->members[i];
        if (member->is_there && member->tier == tier && member->period == twin->period) {
            count = member->room == last ? count + 1 : member->room > last ? 1 : count;
            last = member->room > last ? member->room : last;
        }
    }
    return last == 0 || count >= twin->room ? last + 1 : last;
}

static void end_period(struct twin *twin, int periods) {
    for (int i = 0; i < MEMBERS; i++) {
        const struct twin_member *member = &twin->members[i];
        if (!member->is_there || member->period != twin->period || member->room == 0) {
            continue;
        }
        struct twin_room *room = NULL;
        for (size_t j = 0; j < twin->room_count; j++) {
            struct twin_room *each = &twin->rooms[j];
            room = each->tier == member->tier && each->period == member->period &&
                           each->room == member->room
                       ? each
                       : room;
        }
        if (room == NULL) {
            if ((twin->room_count & (twin->room_count - 1)) == 0) { /* full: twice as many */
                size_t room_for = twin->room_count == 0 ? 1 : 2 * twin->room_count;
                twin->rooms = realloc(twin->rooms, room_for * sizeof *twin->rooms);
                assert_non_null(twin->rooms);
            }
            room = &twin->rooms[twin->room_count++];
            *room = (struct twin_room){
                .tier = member->tier, .period = member->period, .room = member->room};
        }
        room->entries[room->count].member = i;
        room->entries[room->count].points = member->points;
        room->entries[room->count++].arrival = member->arrival;
    }
    twin->period += periods;
}

/* ---- one operation on both ---- */

/* The tier on the league's board: the one of before, or the one now, if the archive was to go. */
static int shown_tier(const struct twin *twin, int index) {
    uint64_t key;
    const struct board *board = zset_board(twin->h, "weekly");
    assert_true(board_find(board, bytes_from_text(formatted("m%d", index)), &key));
    return (int)league_entry_of(key).tier;
}

static void add(struct twin *twin, int index) {
    struct twin_member *member = &twin->members[index];
    int64_t points = (int64_t)random_below(&twin->random, 6);
    int operation = (int)random_below(&twin->random, 3);
    static const char *const words[] = {"SET", "INCR", "BEST"};
    bool was_there = member->is_there;
    int before = was_there ? shown_tier(twin, index) : 0;
    bool has_result = was_there && member->period == twin->period && member->room > 0;
    if (!was_there) {
        *member = (struct twin_member){.tier = 1, .period = twin->period};
    }
    if (!has_result) {
        int tier = was_there ? tier_now(twin, index) : 1;
        member->period = -1; /* not to be counted */
        member->room = open_room(twin, tier);
        member->tier = tier;
        member->period = twin->period;
        member->is_there = true;
    }
    int64_t after = !has_result      ? points
                    : operation == 1 ? member->points + points
                    : operation == 0 ? points
                                     : (points > member->points ? points : member->points);
    if (!has_result || after != member->points) {
        member->arrival = ++twin->arrivals;
    }
    member->points = after;
    char expected[64];
    int size =
        snprintf(expected, sizeof expected, "[:%d :%d [m%d ", member->tier, member->room, index);
    const char *answered =
        zset_run(twin->h, "LB.LEAGUE ADD weekly %s %d m%d", words[operation], (int)points, index);
    if (strncmp(answered, expected, (size_t)size) != 0) {
        fail_msg("m%d in period %d: %s, not %s", index, twin->period, answered, expected);
    }
    snprintf(expected, sizeof expected, was_there ? " nil :%d] :%d]" : " nil :%d] nil]",
             (int)member->points, before);
    if (strstr(answered, expected) == NULL) {
        fail_msg("m%d in period %d: %s has not%s", index, twin->period, answered, expected);
    }
}

/* What the end of the running period would make of it: the same, with all rooms as they are. */
static const char *outlook(struct twin *twin, int index) {
    int now = tier_now(twin, index);
    int period = twin->period;
    size_t room_count = twin->room_count;
    end_period(twin, 1);
    int then = tier_now(twin, index);
    twin->period = period;
    twin->room_count = room_count;
    return then > now ? "up" : then < now ? "down" : "stay";
}

static void check(struct twin *twin, int index) {
    const struct twin_member *member = &twin->members[index];
    const char *answered = zset_run(twin->h, "LB.LEAGUE GET weekly m%d", index);
    if (!member->is_there) {
        assert_string_equal(answered, "nil*");
        return;
    }
    int tier = 0;
    int to_come = 0;
    assert_int_equal(sscanf(answered, "[:%d", &tier), 1);
    const char *last = strrchr(answered, ' ') + 1;
    char next[16];
    snprintf(next, sizeof next, "%s]", outlook(twin, index));
    assert_string_equal(last, next);
    for (last -= 2; last[-1] != ' '; last--) {}
    bool is_to_come = sscanf(last, ":%d", &to_come) == 1;
    if ((is_to_come ? to_come : tier) != tier_now(twin, index) || (is_to_come && to_come == tier)) {
        fail_msg("m%d in period %d is in tier %d: %s", index, twin->period, tier_now(twin, index),
                 answered);
    }
    bool has_room = member->period == twin->period && member->room > 0;
    char expected[64];
    snprintf(expected, sizeof expected, has_room ? "[:%d :%d [m%d " : "[:%d nil nil*", tier,
             member->room, index);
    assert_memory_equal(answered, expected, strlen(expected));
}

static void set(struct twin *twin, int index) {
    struct twin_member *member = &twin->members[index];
    int tier = 1 + (int)random_below(&twin->random, (uint64_t)twin->tiers);
    check(twin, index); /* which may settle it */
    bool is_same =
        member->is_there && tier_now(twin, index) == tier && shown_tier(twin, index) == tier;
    int changed = (int)harness_run_integer(twin->h, twin->h->server.sessions.first,
                                           formatted("LB.LEAGUE SET weekly %d m%d", tier, index));
    if (is_same) {
        assert_int_equal(changed, 0);
        return;
    }
    assert_int_equal(changed, 1);
    *member = (struct twin_member){.is_there = true, .tier = tier, .period = twin->period};
}

static void leave(struct twin *twin, int index) {
    assert_int_equal(harness_run_integer(twin->h, twin->h->server.sessions.first,
                                         formatted("LB.LEAGUE REMOVE weekly m%d", index)),
                     twin->members[index].is_there);
    twin->members[index].is_there = false;
}

/* As a tick does, or not at all. */
static void run_due(struct twin *twin) {
    struct registry *registry = twin->h->server.registry;
    int64_t now_ms = harness_now_us(twin->h) / 1000;
    if (random_below(&twin->random, 3) == 0) {
        return;
    }
    uint32_t keys_max = 1 + (uint32_t)random_below(&twin->random, 16);
    for (uint64_t steps = random_below(&twin->random, 40); steps > 0; steps--) {
        (void)registry_roll_due(registry, now_ms, keys_max);
        (void)registry_expiry_remove_due(registry, now_ms, keys_max);
    }
}

static void step(struct twin *twin) {
    int index = (int)random_below(&twin->random, MEMBERS);
    uint64_t what = random_below(&twin->random, 100);
    if (what < 70) {
        add(twin, index);
    } else if (what < 90) {
        check(twin, index);
    } else if (what < 93) {
        set(twin, index);
    } else if (what < 95) {
        leave(twin, index);
    } else {
        run_due(twin);
    }
}

/* ---- the whole ---- */

static void apply(void *context, const struct effect *effect) {
    struct twin *twin = context;
    struct effect same = *effect;
    uint32_t applied;
    same.key = NULL;
    assert_int_equal(effect_apply(twin->copy, &same, 1, &applied), EFFECT_OK);
}

static void compare_key(void *context, const struct registry_key *key) {
    struct twin *twin = context;
    struct board_cursor here;
    struct board_cursor there;
    struct board_stored entry;
    struct board_stored same;
    const struct registry_key *copy =
        registry_peek(twin->copy, key->database, registry_name(key), INT64_MIN);
    if (copy == NULL) {
        fail_msg("%.*s is not in the copy", (int)key->name_size, key->name_at);
    }
    assert_int_equal(board_count(&copy->board), board_count(&key->board));
    assert_true(board_options_equal(registry_options(copy), registry_options(key)));
    board_cursor_seek(&key->board, 0, &here);
    board_cursor_seek(&copy->board, 0, &there);
    while (board_cursor_read(&here, &entry)) {
        assert_true(board_cursor_read(&there, &same));
        assert_int_equal(entry.key, same.key);
        assert_true(name_equal(entry.member, same.member));
        board_cursor_next(&here);
        board_cursor_next(&there);
    }
}

static void compare_copy(struct twin *twin) {
    const char *reason = "";
    if (!registry_validate(twin->h->server.registry, &reason) ||
        !registry_validate(twin->copy, &reason)) {
        fail_msg("%s", reason);
    }
    registry_walk_each(twin->h->server.registry, 0, INT64_MIN, compare_key, twin);
    assert_int_equal(registry_count(twin->copy, 0), registry_count(twin->h->server.registry, 0));
}

static void begin(struct twin *twin, int kind) {
    static const struct {
        int room, tiers, up, down, archive;
        bool idle_goes_down;
    } kinds[KINDS] = {
        {5, 4, 2, 2, 1, false}, {7, 5, 3, 3, 2, true},  {1, 3, 1, 0, 1, true},
        {30, 3, 2, 5, 3, true}, {4, 6, 4, 4, 1, false}, {3, 2, 0, 1, 1, true},
        {5, 4, 2, 1, 0, true},  {6, 7, 2, 2, 0, false},
    };
    twin->room = kinds[kind].room;
    twin->tiers = kinds[kind].tiers;
    twin->up = kinds[kind].up;
    twin->down = kinds[kind].down;
    twin->archive = kinds[kind].archive;
    twin->idle_goes_down = kinds[kind].idle_goes_down;
    if (twin->archive > 0) {
        shadow_end(twin->h->shadow);
    }
    twin->copy = registry_create_beside(twin->h->server.registry);
    assert_non_null(twin->copy);
    registry_set_passive(twin->copy, true);
    twin->listener = (struct effect_listener){.receive = apply, .context = twin};
    effect_listener_add(twin->h->server.registry, &twin->listener);
    assert_string_equal(zset_run(twin->h,
                                 "LB.LEAGUE CREATE weekly FIELD points 22 PERIOD DAY ROOM %d TIERS "
                                 "%d UP %d DOWN %d IDLE %s ARCHIVE %s",
                                 twin->room, twin->tiers, twin->up, twin->down,
                                 twin->idle_goes_down ? "DOWN" : "STAY",
                                 twin->archive > 0 ? formatted("%d", twin->archive) : "ALL"),
                        "+OK");
}

static void run_kind(struct random *random, int kind) {
    struct harness *h = harness_create(NULL);
    OWNED struct twin *twin = calloc(1, sizeof *twin);
    assert_non_null(twin);
    harness_connect(h);
    twin->h = h;
    twin->random = *random;
    begin(twin, kind);
    for (int i = 0; i < PERIODS; i++) {
        uint64_t steps = random_below(&twin->random, 200);
        for (uint64_t j = 0; j < steps; j++) {
            step(twin);
        }
        int periods =
            random_below(&twin->random, 5) == 0 ? 1 + (int)random_below(&twin->random, 4) : 1;
        end_period(twin, periods);
        h->wall_us += periods * DAY_US;
    }
    for (int i = 0; i < MEMBERS; i++) {
        check(twin, i);
    }
    compare_copy(twin);
    *random = twin->random;
    effect_listener_remove(h->server.registry, &twin->listener);
    registry_destroy(twin->copy);
    free(twin->rooms);
    harness_destroy(h);
}

TEST(members_go_up_and_down_as_in_a_naive_league) {
    struct random random = random_begin(__func__);
    int rounds = is_short_run() ? 1 : 20;
    for (int round = 0; round < rounds; round++) {
        for (int kind = 0; kind < KINDS; kind++) {
            run_kind(&random, kind);
        }
    }
}
