/* LB.LEAGUE, sentence by sentence. Many periods with random members: test_lb_league_twin.c. */
#include "tests/server/failing_memory.h"
#include "tests/support/errors.h"

#include "skiplist/keyspace/league.h"

#define CREATE                                                                                     \
    "LB.LEAGUE CREATE weekly FIELD points 22 PERIOD DAY ROOM 3 TIERS 4 UP 1 DOWN 1 ARCHIVE "

static void pass_days(struct harness *h, int days) {
    harness_pass_seconds(h, days * INT64_C(86400));
}

/* As the server's loop does. */
static void run_due(struct harness *h) {
    int64_t now_ms = harness_now_us(h) / 1000;
    while (registry_roll_due(h->server.registry, now_ms, 16) == 16) {}
    while (registry_expiry_remove_due(h->server.registry, now_ms, 16) == 16) {}
}

/* One day with a full room: ann 30, bob 20, cid 10. */
static void play_in(struct harness *h, const char *create) {
    zset_expect(h, create, "+OK");
    zset_expect(h, "LB.LEAGUE ADD weekly 30 ann", "[:1 :1 [ann :0 nil :30] nil]");
    zset_expect(h, "LB.LEAGUE ADD weekly 20 bob", "[:1 :1 [bob :1 nil :20] nil]");
    zset_expect(h, "LB.LEAGUE ADD weekly 10 cid", "[:1 :1 [cid :2 nil :10] nil]");
}

static void play(struct harness *h) {
    play_in(h, CREATE "ALL");
}

/* Archives that go: the module does not take them. */
static void play_with_two_archives(struct harness *h) {
    shadow_end(h->shadow);
    play_in(h, CREATE "2");
}

/* ---- rooms ---- */

ZSET_TEST(a_full_room_is_followed_by_the_next) {
    play(h);
    zset_expect(h, "LB.LEAGUE ADD weekly 40 dan", "[:1 :2 [dan :0 nil :40] nil]");
    zset_expect(h, "LB.LEAGUE ADD weekly INCR 25 cid", "[:1 :1 [cid :0 nil :35] :1]");
    zset_expect(h, "LB.LEAGUE ADD weekly BEST 5 cid", "[:1 :1 [cid :0 nil :35] :1]");
    zset_expect(h, "LB.LEAGUE ADD weekly SET 5 cid", "[:1 :1 [cid :2 nil :5] :1]");
    zset_expect(h, "ZREVRANGE {weekly}:1:1 0 -1 WITHSCORES", "[ann 30 bob 20 cid 5]");
    zset_expect(h, "ZREVRANGE {weekly}:1:2 0 -1 WITHSCORES", "[dan 40]");
    zset_expect(h, "LB.LEAGUE GET weekly bob", "[:1 :1 [bob :1 nil :20] nil stay]");
    zset_expect(h, "LB.LEAGUE GET weekly eva", "nil*");
    zset_expect(h, "LB.RANGE weekly 0 0", "[[dan :0 nil :1 :52608 :2]]");
    zset_expect(h, "ZREVRANGEBYSCORE weekly 1 1", "[dan ann bob cid]");
    zset_expect(h, "KEYS *", "[weekly {weekly}:rooms {weekly}:1:1 {weekly}:1:2]");
}

ZSET_TEST(the_best_go_up_and_the_last_go_down_when_they_come) {
    play(h);
    pass_days(h, 1);
    zset_expect(h, "LB.LEAGUE GET weekly ann", "[:1 nil nil* :2 stay]");
    zset_expect(h, "LB.LEAGUE GET weekly bob", "[:1 nil nil* nil stay]");
    zset_expect(h, "LB.LEAGUE ADD weekly 7 ann", "[:2 :1 [ann :0 nil :7] :1]");
    zset_expect(h, "LB.LEAGUE ADD weekly 6 bob", "[:1 :1 [bob :0 nil :6] :1]");
    zset_expect(h, "LB.LEAGUE ADD weekly 5 dan", "[:1 :1 [dan :1 nil :5] nil]");
    zset_expect(h, "ZREVRANGE {weekly}:1:1@2026-01-01 0 -1", "[ann bob cid]");
    pass_days(h, 1);
    zset_expect(h, "LB.LEAGUE ADD weekly 1 dan", "[:1 :1 [dan :0 nil :1] :1]");
    zset_expect(h, "LB.LEAGUE GET weekly ann", "[:2 nil nil* :3 stay]"); /* alone in its room */
    pass_days(h, 1);
    zset_expect(h, "LB.LEAGUE ADD weekly 1 ann", "[:3 :1 [ann :0 nil :1] :2]");
}

ZSET_TEST(a_period_without_a_result_takes_members_down_where_idle_says_so) {
    zset_expect(h, CREATE "ALL IDLE DOWN", "+OK");
    zset_expect(h, "LB.LEAGUE SET weekly 4 ann", ":1");
    zset_expect(h, "LB.LEAGUE SET weekly 4 bob", ":1");
    zset_expect(h, "LB.LEAGUE ADD weekly 4 bob", "[:4 :1 [bob :0 nil :4] :4]");
    pass_days(h, 1);
    zset_expect(h, "LB.LEAGUE GET weekly ann", "[:4 nil nil* nil down]");
    pass_days(h, 2);
    zset_expect(h, "LB.LEAGUE GET weekly ann", "[:4 nil nil* :2 down]");
    zset_expect(h, "LB.LEAGUE GET weekly bob", "[:4 nil nil* :2 down]");
    pass_days(h, 100);
    zset_expect(h, "LB.LEAGUE ADD weekly 4 ann", "[:1 :1 [ann :0 nil :4] :4]");
}

ZSET_TEST(who_has_not_come_is_settled_before_the_archive_goes) {
    play_with_two_archives(h);
    pass_days(h, 2);
    run_due(h);
    zset_expect(h, "LB.LEAGUE GET weekly ann", "[:1 nil nil* :2 stay]");
    pass_days(h, 1);
    run_due(h);
    zset_expect(h, "EXISTS {weekly}:1:1@2026-01-01", ":0");
    zset_expect(h, "LB.LEAGUE GET weekly ann", "[:2 nil nil* nil stay]");
    zset_expect(h, "LB.LEAGUE GET weekly bob", "[:1 nil nil* nil stay]");
    zset_expect(h, "ZREVRANGEBYSCORE weekly 2 2", "[ann]");
    zset_expect(h, "LB.LEAGUE ADD weekly 1 ann", "[:2 :1 [ann :0 nil :1] :2]");
}

ZSET_TEST(a_server_that_was_off_for_long_settles_all_the_same) {
    play_with_two_archives(h);
    pass_days(h, 40);
    zset_expect(h, "LB.LEAGUE GET weekly ann", "[:2 nil nil* nil stay]");
    zset_expect(h, "DBSIZE", ":2");
}

ZSET_TEST(large_rooms_are_settled_in_steps) {
    shadow_end(h->shadow);
    zset_expect(h,
                "LB.LEAGUE CREATE weekly FIELD points 22 PERIOD DAY ROOM 1000 TIERS 3 UP 500 DOWN "
                "0 ARCHIVE 1",
                "+OK");
    for (int i = 0; i < 1000; i++) {
        zset_run(h, "LB.LEAGUE ADD weekly %d m%d", i, i);
    }
    pass_days(h, 1);
    run_due(h);
    pass_days(h, 1);
    int64_t now_ms = harness_now_us(h) / 1000;
    (void)registry_roll_due(h->server.registry, now_ms, 16);
    assert_int_equal(registry_expiry_remove_due(h->server.registry, now_ms, 16), 16);
    zset_expect(h, "ZCOUNT weekly 2 2", ":64");
    /* Whoever asks in the middle finds the rest done. */
    zset_expect(h, "LB.LEAGUE GET weekly m777", "[:2 nil nil* nil stay]");
    zset_expect(h, "LB.LEAGUE GET weekly m222", "[:1 nil nil* nil stay]");
    run_due(h);
    zset_expect(h, "ZCOUNT weekly 2 2", ":500");
    zset_expect(h, "DBSIZE", ":2");
    zset_expect_part(h, "INFO stats", "league_settled_members:1000\r\n");
    zset_expect(h, "COPY weekly other", ":1");
    zset_expect_part(h, "INFO stats", "leagues:2\r\n");
    zset_expect(h, "DEL weekly", ":1");
    while (registry_free_step(h->server.registry, UINT32_MAX)) {}
    zset_expect_part(h, "INFO stats", "leagues:1\r\n");
}

ZSET_TEST(set_and_remove_are_for_operators) {
    play(h);
    zset_expect(h, "LB.LEAGUE SET weekly 1 ann", ":0");
    zset_expect(h, "LB.LEAGUE SET weekly 3 ann", ":1");
    zset_expect(h, "LB.LEAGUE GET weekly ann", "[:3 nil nil* nil stay]");
    zset_expect(h, "ZREVRANGE {weekly}:1:1 0 -1", "[bob cid]");
    zset_expect(h, "LB.LEAGUE SET weekly 3 ann", ":0");
    zset_expect(h, "LB.LEAGUE ADD weekly 9 dan",
                "[:1 :1 [dan :2 nil :9] nil]"); /* the place that is free */
    zset_expect(h, "LB.LEAGUE ADD weekly 9 ann", "[:3 :1 [ann :0 nil :9] :3]");
    zset_expect(h, "LB.LEAGUE SET weekly 2 new", ":1");
    zset_expect(h, "LB.LEAGUE GET weekly new", "[:2 nil nil* nil stay]");
    zset_expect(h, "LB.LEAGUE REMOVE weekly ann", ":1");
    zset_expect(h, "LB.LEAGUE REMOVE weekly ann", ":0");
    zset_expect(h, "EXISTS {weekly}:3:1", ":0");
    zset_expect(h, "LB.LEAGUE SET weekly 5 ann", "-ERR the league's tiers are 1..4");
    zset_expect(h, "LB.LEAGUE SET weekly x ann", "-ERR the league's tiers are 1..4");
    pass_days(h, 1);
    zset_expect(h, "LB.LEAGUE SET weekly 1 dan", ":0"); /* where it stays */
    zset_expect(h, "LB.LEAGUE GET weekly dan", "[:1 nil nil* nil stay]");
}

/* It is 1 exactly if the tier or what is to come becomes another one; 0 changes nothing. */
ZSET_TEST(set_says_whether_it_has_changed_something) {
    play(h);
    pass_days(h, 1);
    zset_expect(h, "LB.LEAGUE GET weekly ann", "[:1 nil nil* :2 stay]");
    zset_expect(h, "LB.LEAGUE SET weekly 1 ann", ":1"); /* nothing is to come any more */
    zset_expect(h, "LB.LEAGUE GET weekly ann", "[:1 nil nil* nil stay]");
    zset_expect(h, "LB.LEAGUE SET weekly 1 ann", ":0");
    zset_expect(h, "ZSCORE weekly bob", "1");
    zset_expect(h, "LB.RANGE weekly 1 1 STRINGS", "[[bob :1 nil 1 52608 1]]");
    zset_expect(h, "LB.LEAGUE SET weekly 1 bob", ":0");
    zset_expect(h, "LB.RANGE weekly 1 1 STRINGS", "[[bob :1 nil 1 52608 1]]");
    zset_expect(h, "LB.LEAGUE SET weekly 2 bob", ":1");
    zset_expect(h, "LB.LEAGUE GET weekly bob", "[:2 nil nil* nil stay]");
}

ZSET_TEST(info_shows_the_tiers_and_the_running_period) {
    play(h);
    zset_expect(h, "LB.LEAGUE ADD weekly 9 dan", "[:1 :2 [dan :0 nil :9] nil]");
    zset_expect(h, "LB.LEAGUE SET weekly 4 eva", ":1");
    zset_expect(h, "LB.LEAGUE INFO weekly",
                "[members :5 room :3 tiers :4 up :1 down :1 idle stay start :1767225600000 end "
                ":1767312000000 list [[tier :4 members :1 open-room :0 open-room-members :0] [tier "
                ":3 members :0 open-room :0 open-room-members :0] [tier :2 members :0 open-room :0 "
                "open-room-members :0] [tier :1 members :4 open-room :2 open-room-members :1]]]");
}

ZSET_TEST(the_board_of_a_league_tells_its_numbers) {
    static const char part[] = " league [room :3 tiers :4 up :1 down :1 idle stay] archives [] ";
    play(h);
    zset_expect_part(h, "LB.INFO weekly", part);
    zset_expect_part(h, "LB.LIST MATCH weekly", part);
    assert_null(strstr(zset_run(h, "LB.INFO {weekly}:1:1"), "league"));
}

/* ---- what is refused ---- */

ZSET_TEST(a_league_is_written_by_its_own_command_alone) {
    static const char refused[] = "-ERR board is of a league: only LB.LEAGUE writes to it";
    static const char *const rows[][2] = {
        {"ZADD weekly 1 ann", refused},
        {"ZINCRBY weekly 1 ann", refused},
        {"ZREM weekly ann", refused},
        {"ZPOPMAX weekly", refused},
        {"ZREMRANGEBYRANK weekly 0 -1", refused},
        {"LB.ADD weekly 1 2 3 ann", refused},
        {"LB.ROLL weekly old", refused},
        {"LB.SUBMIT 1 weekly 1 2 3 ann", NULL},
        {"ZUNIONSTORE weekly 1 weekly", refused},
        {"ZRANGESTORE weekly weekly 0 -1", refused},
        {"LB.ALTER weekly CAP 3", "-ERR a league takes no CAP and no PERIOD: its rooms have them"},
        {"LB.ALTER weekly PERIOD DAY",
         "-ERR a league takes no CAP and no PERIOD: its rooms have them"},
    };
    play(h);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        OWNED char *before = zset_dump(h, "weekly");
        const char *answered = zset_run(h, "%s", rows[i][0]);
        const char *expected = rows[i][1] != NULL ? rows[i][1] : refused;
        assert_memory_equal(answered, expected, strlen(expected));
        OWNED char *after = zset_dump(h, "weekly");
        assert_string_equal(after, before);
    }
}

ZSET_TEST(what_a_league_cannot_be_is_refused) {
    static const char *const rows[][2] = {
        {"LB.LEAGUE CREATE w ROOM 3 TIERS 4 UP 1 DOWN 1",
         "-ERR PERIOD expected after ...: a league needs one"},
        {"LB.LEAGUE CREATE w PERIOD DAY TIERS 4 UP 1 DOWN 1",
         "-ERR a league needs ROOM, TIERS, UP and DOWN"},
        {"LB.LEAGUE CREATE w PERIOD DAY ROOM 1001 TIERS 4 UP 1 DOWN 1",
         "-ERR ROOM needs a number: 1..1000"},
        {"LB.LEAGUE CREATE w PERIOD DAY ROOM 3 TIERS 0 UP 1 DOWN 1",
         "-ERR TIERS needs a number: 1..255"},
        {"LB.LEAGUE CREATE w PERIOD DAY ROOM 3 TIERS 256 UP 1 DOWN 1",
         "-ERR TIERS needs a number: 1..255"},
        {"LB.LEAGUE CREATE w PERIOD DAY ROOM 3 TIERS 4 UP 4 DOWN 1",
         "-ERR UP and DOWN are at most ROOM"},
        {"LB.LEAGUE CREATE w PERIOD DAY ROOM 3 TIERS 4 UP -1 DOWN 1",
         "-ERR UP needs a number: 0..1000"},
        {"LB.LEAGUE CREATE w PERIOD DAY ROOM 3 TIERS 4 UP 1 DOWN",
         "-ERR DOWN needs a number: 0..1000"},
        {"LB.LEAGUE CREATE w PERIOD DAY ROOM 3 ROOM 3 TIERS 4 UP 1 DOWN 1",
         "-ERR ROOM may be given only once"},
        {"LB.LEAGUE CREATE w PERIOD DAY ROOM 3 TIERS 4 UP 1 DOWN 1 IDLE UP",
         "-ERR IDLE is unknown: use STAY or DOWN"},
        {"LB.LEAGUE CREATE w PERIOD DAY ROOM 3 TIERS 4 UP 1 DOWN 1 IDLE STAY IDLE STAY",
         "-ERR IDLE may be given only once"},
        {"LB.LEAGUE CREATE w PERIOD DAY ROOM 3 TIERS 4 UP 1 DOWN 1 ARCHIVE 0",
         "-ERR ARCHIVE 0 is not possible: who goes up and down follows from the archives of rooms"},
        {"LB.LEAGUE CREATE w PERIOD DAY ROOM 3 TIERS 4 UP 1 DOWN 1 CAP 3",
         "-ERR CAP and LIMIT are not possible: ROOM limits rooms"},
        {"LB.LEAGUE CREATE w PERIOD DAY ROOM 3 TIERS 4 UP 1 DOWN 1 KEEP WORST",
         "-ERR KEEP 'WORST' is unknown: use LAST or BEST"},
        {"LB.LEAGUE CREATE a}b PERIOD DAY ROOM 3 TIERS 4 UP 1 DOWN 1",
         "-ERR a league's key has at most 65519 bytes, and braces only around a tag that it shares "
         "with its rooms: {eu}:weekly"},
        {"LB.LEAGUE CREATE weekly PERIOD DAY ROOM 3 TIERS 4 UP 1 DOWN 1",
         "-BUSYKEY Target key name already exists."},
        {"LB.LEAGUE CREATE {weekly} PERIOD DAY ROOM 3 TIERS 4 UP 1 DOWN 1",
         "-BUSYKEY Target key name already exists: the one of the rooms, which ends in ':rooms'"},
        {"LB.LEAGUE ADD weekly 1 2 ann",
         "-ERR ...: this board takes 1 value before each member: points"},
        {"LB.LEAGUE ADD weekly 1 ann 2 bob", "-ERR ...: one member is written at a time"},
        {"LB.LEAGUE ADD weekly x eva", ERROR_NUMBER("points")},
        {"LB.LEAGUE ADD weekly NX 1 ann",
         "-ERR LB.LEAGUE ADD takes no NX, XX, NOCREATE and WITHRANK"},
        {"LB.LEAGUE ADD weekly 1 \"\"", NULL},
        {"LB.LEAGUE ADD weekly TAG a b 1 eva", NULL},
        {"LB.LEAGUE ADD weekly AT 5 1 eva", "-ERR AT is not allowed: this layout has no TIME"},
        {"LB.LEAGUE ADD nobody 1 ann", "-ERR no such key"},
        {"LB.LEAGUE GET {weekly}:rooms ann",
         "-ERR board is not a league: LB.LEAGUE CREATE makes one"},
        {"LB.LEAGUE GET nobody ann", "-ERR no such key"},
        {"LB.LEAGUE INFO hash",
         "-WRONGTYPE Operation against a key holding the wrong kind of value"},
    };
    play(h);
    zset_expect(h, "HSET hash a b", ":1");
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        test_row("%s", rows[i][0]);
        const char *answered = zset_run(h, "%s", rows[i][0]);
        assert_int_equal(answered[0], '-');
        if (rows[i][1] != NULL) {
            assert_true(harness_is_reply(rows[i][0], rows[i][1], answered));
        }
        zset_expect(h, "DBSIZE", ":4");
        zset_expect(h, "ZCARD weekly", ":3");
    }
}

ZSET_TEST(a_league_that_is_frozen_takes_no_results) {
    play(h);
    zset_expect(h, "LB.ALTER weekly FREEZE", "+OK");
    zset_expect(h, "LB.LEAGUE ADD weekly 1 ann", ERROR_FROZEN);
    zset_expect(h, "LB.LEAGUE REMOVE weekly ann", ERROR_FROZEN);
    zset_expect(h, "LB.LEAGUE GET weekly ann", "[:1 :1 [ann :0 nil :30] nil up]");
    zset_expect(h, "LB.ALTER weekly THAW LIMIT 3", "+OK");
    zset_expect(h, "LB.LEAGUE ADD weekly 1 new", "-FULL board is full: at most 3 members");
    zset_expect(h, "LB.LEAGUE SET weekly 2 new", "-FULL board is full: at most 3 members");
    zset_expect(h, "LB.LEAGUE ADD weekly 1 ann", "[:1 :1 [ann :2 nil :1] :1]");
}

/* ---- what others do to its keys ---- */

ZSET_TEST(without_a_template_nothing_is_written_and_tiers_stay) {
    static const char none[] = "-ERR the league has no board '{weekly}:rooms' with a PERIOD for "
                               "its rooms";
    play(h);
    zset_expect(h, "DEL {weekly}:rooms", ":1");
    zset_expect(h, "LB.LEAGUE ADD weekly 1 ann", none);
    zset_expect(h, "LB.LEAGUE SET weekly 1 ann", none);
    zset_expect(h, "LB.LEAGUE GET weekly ann", "[:1 nil nil* nil nil]");
    zset_expect_part(h, "LB.LEAGUE INFO weekly", "start nil end nil");
    zset_expect(h, "ZADD {weekly}:rooms 1 ann", ":1");
    zset_expect(h, "LB.LEAGUE ADD weekly 1 ann", none);
    zset_expect(h, "DEL {weekly}:rooms", ":1");
    zset_expect(h, "HSET {weekly}:rooms a b", ":1");
    zset_expect(h, "LB.LEAGUE ADD weekly 1 ann", none);
    zset_expect(h, "LB.LEAGUE REMOVE weekly ann", ":1");
    zset_expect(h, "DEL {weekly}:rooms", ":1");
    /* Another one does as well. */
    zset_expect(h, "LB.CREATE {weekly}:rooms FIELD laps 10 PERIOD DAY", "+OK");
    zset_expect(h, "LB.LEAGUE ADD weekly 1 bob", "[:1 :1 [bob :2 nil :1] :1]");
}

/* What CREATE refuses does not come by LB.ALTER. */
ZSET_TEST(a_template_with_rules_that_rooms_cannot_have_is_refused) {
    const char *const rows[][3] = {
        {"LB.ALTER {weekly}:rooms CAP 2", "CAP NONE",
         "CAP and LIMIT are not possible: ROOM limits rooms"},
        {"LB.ALTER {weekly}:rooms LIMIT 2", "LIMIT NONE",
         "CAP and LIMIT are not possible: ROOM limits rooms"},
        {"LB.ALTER {weekly}:rooms ARCHIVE 0", "ARCHIVE ALL",
         "ARCHIVE 0 is not possible: who goes up and down follows from the archives of rooms"},
        {"LB.ALTER {weekly}:rooms PERIOD DAY COPY", "PERIOD DAY",
         "COPY is not possible: rooms begin anew"},
    };
    play(h);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        zset_expect(h, rows[i][0], "+OK");
        zset_expect(h, "LB.LEAGUE ADD weekly 1 ann",
                    formatted("-ERR board '{weekly}:rooms': %s", rows[i][2]));
        zset_expect(h, formatted("LB.ALTER {weekly}:rooms %s", rows[i][1]), "+OK");
        zset_expect(h, "LB.LEAGUE ADD weekly 1 ann", "[:1 :1 [ann :2 nil :1] :1]");
    }
}

/* It has come by LB.APPLY. As long as it follows, its archives are those of the server that it comes from. */
/* The last one in a room would go up without having beaten anybody. */
ZSET_TEST(rooms_have_no_stale) {
    static const char refusal[] = "STALE is not possible: whoever leaves a room moves the others' "
                                  "places. IDLE DOWN is for those who do not come";
    zset_expect(h,
                "LB.LEAGUE CREATE weekly FIELD points 22 TIME 42 MS PERIOD DAY STALE 1 HOUR ROOM 3 "
                "TIERS 4 UP 1 DOWN 1",
                formatted("-ERR %s", refusal));
    zset_expect(h,
                "LB.LEAGUE CREATE weekly FIELD points 22 TIME 42 MS PERIOD DAY ROOM 3 TIERS 4 UP 1 "
                "DOWN 1",
                "+OK");
    zset_expect(h, "LB.ALTER {weekly}:rooms STALE 1 HOUR", "+OK");
    zset_expect(h, "LB.LEAGUE ADD weekly 1 ann",
                formatted("-ERR board '{weekly}:rooms': %s", refusal));
    zset_expect(h, "LB.ALTER {weekly}:rooms STALE NONE", "+OK");
    zset_expect_begin(h, "LB.LEAGUE ADD weekly 1 ann", "[:1 :1 [ann :0");
}

ZSET_TEST(in_another_host_a_league_needs_all_archives_before_it_takes_results) {
    play_with_two_archives(h);
    h->server.is_embedded = true;
    zset_expect(h, "LB.LEAGUE ADD weekly 1 ann",
                "-ERR board '{weekly}:rooms': in Redis and Valkey a league needs ARCHIVE ALL: the "
                "host removes what expires before its members are settled");
    zset_expect(h, "LB.ALTER {weekly}:rooms ARCHIVE ALL", "+OK");
    zset_expect(h, "LB.LEAGUE ADD weekly 1 ann", "[:1 :1 [ann :2 nil :1] :1]");
    h->server.is_embedded = false;
}

ZSET_TEST(rooms_of_a_league_that_is_renamed_or_copied_do_not_follow) {
    play(h);
    zset_expect(h, "RENAME weekly daily", "+OK");
    zset_expect_begin(h, "LB.LEAGUE ADD daily 1 ann", "-ERR the league has no board");
    zset_expect(h, "COPY daily other", ":1");
    zset_expect(h, "RENAME {weekly}:rooms {daily}:rooms", "+OK");
    zset_expect(h, "LB.LEAGUE GET daily ann", "[:1 :1 nil* nil stay]");
    zset_expect(h, "LB.LEAGUE ADD daily 1 ann", "[:1 :1 [ann :0 nil :1] :1]");
    pass_days(h, 1);
    zset_expect(h, "LB.LEAGUE ADD daily 1 ann", "[:2 :1 [ann :0 nil :1] :1]");
    zset_expect(h, "LB.LEAGUE ADD daily 1 bob", "[:1 :1 [bob :0 nil :1] :1]");
    zset_expect_begin(h, "LB.LEAGUE ADD other 1 ann", "-ERR the league has no board");
    zset_expect(h, "RENAME other a}b", "+OK");
    zset_expect(h, "LB.LEAGUE GET a}b ann",
                "-ERR the league was renamed to what no league's key may be");
}

ZSET_TEST(a_league_that_is_made_anew_does_not_use_the_rooms_that_are_left) {
    play(h);
    zset_expect(h, "DEL weekly {weekly}:rooms", ":2");
    zset_expect(h, CREATE "ALL", "+OK");
    zset_expect(h, "LB.LEAGUE ADD weekly 1 zoe", "[:1 :2 [zoe :0 nil :1] nil]");
    zset_expect(h, "LB.LEAGUE ADD weekly 1 ann", "[:1 :2 [ann :1 nil :1] nil]");
}

ZSET_TEST(new_rooms_pass_by_many_that_are_left) {
    for (int i = 1; i <= 300; i++) {
        zset_run(h, "ZADD {weekly}:1:%d 1 x", i);
    }
    zset_expect(h, CREATE "ALL", "+OK");
    zset_expect(h, "LB.LEAGUE ADD weekly 1 ann", "[:1 :512 [ann :0 nil :1] nil]");
    zset_expect(h, "LB.LEAGUE ADD weekly 1 bob", "[:1 :512 [bob :1 nil :1] nil]");
}

ZSET_TEST(a_member_removed_from_its_room_stays_in_its_tier) {
    play(h);
    zset_expect(h, "ZREM {weekly}:1:1 ann", ":1");
    zset_expect(h, "LB.LEAGUE GET weekly ann", "[:1 :1 nil* nil stay]");
    zset_expect(h, "LB.LEAGUE ADD weekly 1 dan", "[:1 :2 [dan :0 nil :1] nil]"); /* still full */
    pass_days(h, 1);
    zset_expect(h, "LB.LEAGUE ADD weekly 1 ann", "[:1 :1 [ann :0 nil :1] :1]");
    zset_expect(h, "LB.LEAGUE ADD weekly 1 bob", "[:2 :1 [bob :0 nil :1] :1]");
    zset_expect(h, "DEL {weekly}:2:1", ":1");
    zset_expect(h, "LB.LEAGUE ADD weekly 2 bob", "[:2 :1 [bob :0 nil :2] :2]");
}

ZSET_TEST(without_the_archive_members_stay_in_their_tier) {
    play(h);
    pass_days(h, 1);
    shadow_end(h->shadow); /* there a period ends by a timer, or when its board is asked for */
    zset_expect(h, "DEL {weekly}:1:1@2026-01-01", ":1");
    zset_expect(h, "LB.LEAGUE GET weekly ann", "[:1 nil nil* nil stay]");
    zset_expect(h, "HSET {weekly}:1:1@2026-01-01 a b", ":1");
    zset_expect(h, "LB.LEAGUE ADD weekly 1 ann", "[:1 :1 [ann :0 nil :1] :1]");
}

ZSET_TEST(a_room_rolled_by_hand_goes_on_with_those_who_have_results_after_it) {
    play(h);
    zset_expect(h, "LB.ROLL {weekly}:1:1 old", ":3");
    zset_expect(h, "LB.LEAGUE GET weekly ann", "[:1 :1 nil* nil stay]");
    zset_expect(h, "LB.LEAGUE ADD weekly 1 cid", "[:1 :1 [cid :0 nil :1] :1]");
    pass_days(h, 1);
    zset_expect(h, "LB.LEAGUE GET weekly ann", "[:1 nil nil* nil stay]");
    zset_expect(h, "LB.LEAGUE GET weekly cid", "[:1 nil nil* :2 stay]");
}

ZSET_TEST(an_archive_whose_name_was_taken_is_found_by_its_number) {
    play_with_two_archives(h);
    zset_expect(h, "ZADD {weekly}:1:1@2026-01-01 1 other", ":1");
    pass_days(h, 1);
    zset_expect(h, "ZREVRANGE {weekly}:1:1@2026-01-01.2 0 -1", "[ann bob cid]");
    zset_expect(h, "LB.LEAGUE GET weekly ann", "[:1 nil nil* :2 stay]");
    pass_days(h, 2);
    run_due(h);
    zset_expect(h, "LB.LEAGUE GET weekly ann", "[:2 nil nil* nil stay]");
}

/* Up, stay or down: what the end of the period would do, if it were now. */
ZSET_TEST(what_would_happen_now_is_told_beforehand) {
    zset_expect(h,
                "LB.LEAGUE CREATE weekly FIELD points 22 PERIOD DAY ROOM 5 TIERS 3 UP 2 DOWN 2 "
                "IDLE DOWN",
                "+OK");
    zset_expect(h, "LB.LEAGUE ADD weekly 9 ann", "[:1 :1 [ann :0 nil :9] nil]");
    zset_expect(h, "LB.LEAGUE GET weekly ann",
                "[:1 :1 [ann :0 nil :9] nil up]"); /* alone in its room */
    zset_expect(h, "LB.LEAGUE SET weekly 2 ann", ":1");
    zset_expect(h, "LB.LEAGUE GET weekly ann", "[:2 nil nil* nil stay]"); /* as if it had played */
    zset_expect(h, "LB.LEAGUE SET weekly 2 bob", ":1");
    zset_expect(h, "LB.LEAGUE SET weekly 2 cid", ":1");
    zset_expect(h, "LB.LEAGUE SET weekly 2 dan", ":1");
    zset_expect(h, "LB.LEAGUE SET weekly 2 eva", ":1");
    zset_expect(h, "LB.LEAGUE SET weekly 3 zoe", ":1");
    zset_expect(h, "LB.LEAGUE ADD weekly 9 ann", "[:2 :1 [ann :0 nil :9] :2]");
    zset_expect(h, "LB.LEAGUE ADD weekly 8 bob", "[:2 :1 [bob :1 nil :8] :2]");
    zset_expect(h, "LB.LEAGUE ADD weekly 7 cid", "[:2 :1 [cid :2 nil :7] :2]");
    zset_expect(h, "LB.LEAGUE ADD weekly 6 dan", "[:2 :1 [dan :3 nil :6] :2]");
    zset_expect(h, "LB.LEAGUE ADD weekly 5 eva", "[:2 :1 [eva :4 nil :5] :2]");
    zset_expect(h, "LB.LEAGUE ADD weekly 5 zoe", "[:3 :1 [zoe :0 nil :5] :3]");
    zset_expect(h, "LB.LEAGUE ADD weekly 5 tim", "[:1 :1 [tim :0 nil :5] nil]");
    zset_expect(h, "LB.LEAGUE ADD weekly 4 tom", "[:1 :1 [tom :1 nil :4] nil]");
    zset_expect(h, "LB.LEAGUE ADD weekly 3 ted", "[:1 :1 [ted :2 nil :3] nil]");
    zset_expect(h, "LB.LEAGUE GET weekly ann", "[:2 :1 [ann :0 nil :9] nil up]");
    zset_expect(h, "LB.LEAGUE GET weekly bob", "[:2 :1 [bob :1 nil :8] nil up]");
    zset_expect(h, "LB.LEAGUE GET weekly cid", "[:2 :1 [cid :2 nil :7] nil stay]");
    zset_expect(h, "LB.LEAGUE GET weekly dan", "[:2 :1 [dan :3 nil :6] nil down]");
    zset_expect(h, "LB.LEAGUE GET weekly eva", "[:2 :1 [eva :4 nil :5] nil down]");
    zset_expect(h, "LB.LEAGUE GET weekly zoe",
                "[:3 :1 [zoe :0 nil :5] nil stay]"); /* nothing is above */
    zset_expect(h, "LB.LEAGUE GET weekly ted", "[:1 :1 [ted :2 nil :3] nil stay]"); /* nor below */
    zset_expect(h, "ZREM {weekly}:2:1 eva", ":1");
    zset_expect(h, "LB.LEAGUE GET weekly eva", "[:2 :1 nil* nil stay]");
    pass_days(h, 1);
    zset_expect(h, "LB.LEAGUE GET weekly ann",
                "[:2 nil nil* :3 down]"); /* IDLE DOWN, if it does not come */
    zset_expect(h, "LB.LEAGUE GET weekly dan", "[:2 nil nil* :1 stay]");
    zset_expect(h, "LB.LEAGUE ADD weekly 1 ann", "[:3 :1 [ann :0 nil :1] :2]");
    zset_expect(h, "LB.LEAGUE GET weekly ann", "[:3 :1 [ann :0 nil :1] nil stay]");
    zset_expect(h, "DEL {weekly}:rooms", ":1");
    zset_expect(h, "LB.LEAGUE GET weekly ann", "[:3 nil nil* nil nil]"); /* nothing ends */
}

ZSET_TEST(a_place_that_is_freed_in_a_full_room_stays_free) {
    play(h);
    zset_expect(h, "LB.LEAGUE ADD weekly 1 dan", "[:1 :2 [dan :0 nil :1] nil]");
    zset_expect(h, "LB.LEAGUE REMOVE weekly ann", ":1");
    zset_expect(h, "LB.LEAGUE ADD weekly 2 eva", "[:1 :2 [eva :0 nil :2] nil]");
    zset_expect(h, "LB.LEAGUE REMOVE weekly dan", ":1"); /* of the room opened last */
    zset_expect(h, "LB.LEAGUE ADD weekly 3 kim", "[:1 :2 [kim :0 nil :3] nil]");
    zset_expect(h, "LB.LEAGUE ADD weekly 4 leo", "[:1 :2 [leo :0 nil :4] nil]");
    zset_expect(h, "LB.LEAGUE ADD weekly 5 max", "[:1 :3 [max :0 nil :5] nil]");
    zset_expect(h, "ZCARD {weekly}:1:1", ":2");
}

/* Each has played against others: neither result is taken out of its room. */
ZSET_TEST(results_in_two_rooms_are_not_put_together) {
    play(h);
    zset_expect(h, "LB.LEAGUE ADD weekly 40 dan", "[:1 :2 [dan :0 nil :40] nil]");
    zset_expect(h, "ZADD other 1 bob 2 dan", ":2");
    zset_expect(h, "LB.MOVE bob dan SUM", "[:1 :2]");
    zset_expect(h, "ZRANGE other 0 -1 WITHSCORES", "[dan 3]");
    zset_expect(h, "LB.LEAGUE GET weekly bob", "[:1 :1 [bob :1 nil :20] nil stay]");
    zset_expect(h, "LB.LEAGUE GET weekly dan", "[:1 :2 [dan :0 nil :40] nil up]");
    zset_expect(h, "LB.MOVE bob dan BEST", "[:0 :2]");
    zset_expect(h, "ZREVRANGE {weekly}:1:1 0 -1", "[ann bob cid]");
    zset_expect(h, "LB.MOVE bob ann SUM", "[:2 :0]"); /* in one room */
    zset_expect(h, "ZREVRANGE {weekly}:1:1 0 -1 WITHSCORES", "[ann 50 cid 10]");
    zset_expect(h, "LB.MOVE cid zoe SUM", "[:2 :0]"); /* who is in none */
    shadow_end(h->shadow); /* there a period ends by a timer, or when its board is asked for */
    pass_days(h, 1);
    /* The rooms are archives, which keep both; the member has the better tier and its room. */
    zset_expect(h, "LB.MOVE dan ann SUM", "[:3 :0]");
    zset_expect(h, "LB.LEAGUE GET weekly ann", "[:2 nil nil* nil stay]");
}

/* Tiers follow from places at the end of the period, whatever becomes of the archive. */
TEST(who_is_erased_after_the_period_moves_nobodys_place) {
    static const char *const rows[][3] = {
        {"LB.FORGET ann", "LB.LEAGUE GET weekly bob", "[:1 nil nil* nil stay]"},
        {"LB.BAN ann", "LB.LEAGUE GET weekly bob", "[:1 nil nil* nil stay]"},
        {"LB.MOVE bob cid SUM", "LB.LEAGUE GET weekly ann", "[:2 nil nil* nil stay]"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct harness *h = harness_create(zset_settings);
        harness_connect(h);
        play(h);
        zset_expect(h, "LB.LEAGUE ADD weekly 25 bob", "[:1 :1 [bob :1 nil :25] :1]");
        pass_days(h, 1);
        zset_run(h, "%s", rows[i][0]);
        zset_expect(h, "ZCARD {weekly}:1:1@2026-01-01", ":2");
        zset_expect(h, rows[i][1], rows[i][2]);
        harness_destroy(h);
    }
}

ZSET_TEST(a_move_adds_results_and_no_tiers) {
    play(h);
    zset_expect(h, "LB.LEAGUE SET weekly 3 ann", ":1");
    zset_expect(h, "LB.MOVE bob ann SUM", "[:2 :0]");
    zset_expect(h, "LB.LEAGUE GET weekly ann", "[:3 nil nil* nil stay]");
    zset_expect(h, "LB.MOVE cid zoe SUM", "[:2 :0]");
    zset_expect(h, "LB.LEAGUE GET weekly zoe", "[:1 :1 [zoe :1 nil :10] nil stay]");
}

ZSET_TEST(touch_keeps_a_member_in_a_room_with_keep_best_and_stale) {
    zset_expect(h,
                "LB.LEAGUE CREATE weekly FIELD points 22 TIME 42 MS KEEP BEST PERIOD "
                "DAY ROOM 3 TIERS 4 UP 1 DOWN 1",
                "+OK");
    zset_run(h, "LB.LEAGUE ADD weekly 9 ann");
    zset_expect(h, "LB.ALTER {weekly}:1:1 STALE 1 HOUR", "+OK"); /* only by hand */
    int64_t begin_ms = zset_time_ms(h, "{weekly}:1:1", "ann");
    harness_pass_seconds(h, 60);
    zset_run(h, "LB.LEAGUE ADD weekly TOUCH 5 ann");
    zset_expect(h, "ZSCORE {weekly}:1:1 ann", "9");
    assert_int_equal(zset_time_ms(h, "{weekly}:1:1", "ann") - begin_ms, 60000);
}

ZSET_TEST(members_are_erased_renamed_and_banned_everywhere) {
    play(h);
    zset_expect(h, "LB.MOVE ann zoe", "[:2 :0]");
    zset_expect(h, "LB.LEAGUE GET weekly zoe", "[:1 :1 [zoe :0 nil :30] nil up]");
    zset_expect(h, "LB.FORGET bob", ":2");
    zset_expect(h, "LB.LEAGUE GET weekly bob", "nil*");
    zset_expect(h, "LB.BAN cid MATCH weekly", ":1");
    zset_expect(h, "LB.LEAGUE ADD weekly 1 cid", ERROR_BANNED);
    zset_expect(h, "LB.LEAGUE SET weekly 1 cid", ERROR_BANNED);
    zset_expect(h, "LB.BAN dan MATCH {weekly}:*", ":0");
    zset_expect(h, "LB.LEAGUE ADD weekly 1 dan", ERROR_BANNED);
    zset_expect(h, "ZCARD weekly", ":1");
}

ZSET_TEST(an_altered_template_is_that_of_later_rooms) {
    play(h);
    zset_expect(h, "LB.ALTER {weekly}:rooms KEEP BEST TAG country 8", "+OK");
    zset_expect(h, "LB.LEAGUE ADD weekly TAG country DE 9 dan", "[:1 :2 [dan :0 nil :9] nil]");
    zset_expect(h, "LB.LEAGUE ADD weekly 8 dan", "[:1 :2 [dan :0 nil :9] :1]");
    zset_expect(h, "LB.RANGE {weekly}:1:2 0 -1 TAGS", "[[dan :0 nil :9 [country DE]]]");
    zset_expect_begin(h, "LB.LEAGUE ADD weekly TAG country DE 9 ann", "-ERR ");
    zset_expect(h, "LB.LEAGUE ADD weekly 9 ann", "[:1 :1 [ann :2 nil :9] :1]");
}

ZSET_TEST(rooms_of_the_period_before_go_on_beside_those_of_another) {
    zset_expect(h, "LB.LEAGUE CREATE weekly FIELD points 22 PERIOD WEEK ROOM 3 TIERS 4 UP 1 DOWN 1",
                "+OK");
    zset_expect(h, "LB.LEAGUE ADD weekly 1 ann", "[:1 :1 [ann :0 nil :1] nil]");
    pass_days(h, 1);
    zset_expect(h, "LB.ALTER {weekly}:rooms PERIOD DAY", "+OK");
    zset_expect(h, "LB.LEAGUE ADD weekly 1 bob", "[:1 :2 [bob :0 nil :1] nil]");
    zset_expect(h, "LB.LEAGUE ADD weekly 2 ann", "[:1 :2 [ann :0 nil :2] :1]");
    zset_expect(h, "ZCARD {weekly}:1:1", ":1");
    pass_days(h, 1);
    zset_expect(h, "LB.LEAGUE ADD weekly 1 ann", "[:2 :1 [ann :0 nil :1] :1]");
    zset_expect(h, "LB.LEAGUE ADD weekly 1 bob", "[:1 :2 [bob :0 nil :1] :1]");
}

ZSET_TEST(a_clock_that_is_set_back_ends_the_periods_that_are_ahead) {
    play(h);
    pass_days(h, 3);
    zset_expect(h, "LB.LEAGUE ADD weekly 1 ann", "[:2 :1 [ann :0 nil :1] :1]");
    zset_expect(h, "LB.LEAGUE ADD weekly 1 bob", "[:1 :1 [bob :0 nil :1] :1]");
    shadow_end(h->shadow); /* its clock is not set back */
    harness_set_clock(h, HARNESS_START_US + INT64_C(86400000000));
    (void)registry_roll_ahead(h->server.registry, harness_now_us(h) / 1000);
    zset_expect(h, "LB.LEAGUE GET weekly ann", "[:2 nil nil* :3 stay]");
    zset_expect(h, "LB.LEAGUE ADD weekly 1 ann", "[:3 :1 [ann :0 nil :1] :2]");
    pass_days(h, 2);
    /* For bob this is the period that he was in. The second archive of this date has a number. */
    zset_expect(h, "LB.LEAGUE ADD weekly 1 bob", "[:1 :1 [bob :0 nil :1] :1]");
    zset_expect(h, "LB.LEAGUE ADD weekly 1 ann", "[:4 :1 [ann :0 nil :1] :3]");
    pass_days(h, 1);
    zset_expect(h, "LB.LEAGUE ADD weekly 1 bob", "[:2 :1 [bob :0 nil :1] :1]");
    zset_expect(h, "EXISTS {weekly}:1:1@2026-01-04.2", ":1");
}

/* ---- names, users, transactions ---- */

ZSET_TEST(rooms_of_a_league_with_a_tag_have_no_other_braces) {
    shadow_end(h->shadow);
    zset_expect(h, "LB.LEAGUE CREATE {eu}:w PERIOD DAY ROOM 3 TIERS 4 UP 1 DOWN 1 ARCHIVE 1",
                "+OK");
    zset_expect_begin(h, "LB.LEAGUE ADD {eu}:w 1 ann", "[:1 :1 [ann :0 ");
    zset_expect(h, "KEYS *", "[{eu}:w {eu}:w:rooms {eu}:w:1:1]");
    pass_days(h, 2);
    run_due(h);
    zset_expect(h, "LB.LEAGUE GET {eu}:w ann", "[:2 nil nil* nil stay]");
}

/* What a league named so and its rooms have behind the @ is part of their names. */
static void play_like_an_archive(struct harness *h, const char *name, const char *rooms) {
    assert_string_equal(zset_run(h,
                                 "LB.LEAGUE CREATE %s FIELD points 22 PERIOD DAY ROOM 3 TIERS 4 "
                                 "UP 1 DOWN 1 ARCHIVE 2 SETTLE YES",
                                 name),
                        "+OK");
    static const char *const members[] = {"ann", "bob", "cid", "dan"};
    for (int i = 0; i < 4; i++) {
        zset_run(h, "LB.LEAGUE ADD %s %d %s", name, 40 - i * 10, members[i]);
    }
    assert_string_equal(zset_run(h, "LB.MOVE bob dan SUM"), "[:0 :2]"); /* in two rooms */
    pass_days(h, 1);
    run_due(h);
    assert_string_equal(zset_run(h, "ZREVRANGE %s:1:1@2026-01-01 0 -1", rooms), "[ann bob cid]");
}

static void expect_like_an_archive(struct harness *h, const char *name, const char *rooms) {
    assert_string_equal(zset_run(h, "LB.LEAGUE GET %s ann", name), "[:1 nil nil* :2 stay]");
    assert_string_equal(zset_run(h, "LB.LEAGUE ADD %s 5 ann", name), "[:2 :1 [ann :0 nil :5] :1]");
    assert_string_equal(zset_run(h, "LB.LEAGUE ADD %s 5 bob", name), "[:1 :1 [bob :0 nil :5] :1]");
    assert_string_equal(zset_run(h, "LB.RANGE %s:1:1 0 0 SINCE LAST", rooms),
                        "[[bob :0 nil :5 :1]]");
    char listed[64];
    (void)snprintf(listed, sizeof listed, "archives [%s:1:1@2026-01-01]", rooms);
    assert_non_null(strstr(zset_run(h, "LB.LIST MATCH %s:1:1", rooms), listed));
    assert_string_equal(zset_run(h, "LB.SETTLE %s:1:1@2026-01-01", rooms), ":1");
    pass_days(h, 1);
    zset_run(h, "LB.FORGET cid");
    pass_days(h, 5);
    run_due(h);
    assert_string_equal(zset_run(h, "EXISTS %s:1:1@2026-01-01", rooms), ":0");
    assert_string_equal(zset_run(h, "LB.LEAGUE GET %s ann", name), "[:2 nil nil* :3 stay]");
}

TEST(a_league_may_be_named_as_an_archive_is) {
    static const char *const rows[][2] = {
        {"a@2026-01-01", "{a@2026-01-01}"},
        {"{x}a@2026-01-01", "{x}a@2026-01-01"},
        {"a@2", "{a@2}"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct harness *h = harness_create(zset_settings);
        harness_connect(h);
        shadow_end(h->shadow);
        play_like_an_archive(h, rows[i][0], rows[i][1]);
        expect_like_an_archive(h, rows[i][0], rows[i][1]);
        harness_destroy(h);
    }
}

ZSET_TEST(a_league_is_no_archive_of_the_board_whose_archive_has_its_name) {
    static const char *const rows[][2] = {
        {"LB.CREATE a FIELD points 22 PERIOD DAY", "+OK"},
        {"ZADD a 1 zoe 2 ann", ":2"},
        {"LB.LEAGUE CREATE a@2026-01-01 FIELD points 22 PERIOD DAY ROOM 3 TIERS 4 UP 1 DOWN 1",
         "+OK"},
        {"LB.LEAGUE ADD a@2026-01-01 5 zoe", "[:1 :1 [zoe :0 nil :5] nil]"},
    };
    zset_expect_each(h, rows);
    pass_days(h, 1);
    run_due(h);
    zset_expect_part(h, "LB.LIST MATCH a", "archives [a@2026-01-01.2]");
    zset_expect_part(h, "LB.INFO a", "archives [a@2026-01-01.2]");
    zset_run(h, "ZADD a 7 zoe");
    zset_expect(h, "LB.RANGE a 0 0 SINCE LAST", "[[zoe :0 nil :7 :1]]");
}

ZSET_TEST(a_user_needs_the_rights_on_the_league_and_on_its_rooms) {
    static const char refused[] =
        "-NOPERM this user has no permissions to access one of the keys used as arguments";
    static const char *const rows[][2] = {
        {"ACL SETUSER half on nopass +@all ~weekly", "+OK"},
        {"ACL SETUSER reader on nopass +@all %R~weekly %R~{weekly}:*", "+OK"},
        {"ACL SETUSER writer on nopass +@all ~weekly ~{weekly}:*", "+OK"},
        {"COMMAND GETKEYS LB.LEAGUE ADD weekly 1 ann", "[weekly]"},
        {"AUTH half x", "+OK"},
        {"LB.LEAGUE ADD weekly 1 ann", refused},
        {"LB.LEAGUE GET weekly ann", refused},
        {"LB.LEAGUE INFO weekly", refused},
        {"LB.LEAGUE REMOVE weekly ann", refused},
        {"LB.LEAGUE CREATE weekly2 PERIOD DAY ROOM 3 TIERS 4 UP 1 DOWN 1", refused},
        {"AUTH reader x", "+OK"},
        {"LB.LEAGUE GET weekly ann", "[:1 :1 [ann :0 nil :30] nil up]"},
        {"LB.LEAGUE ADD weekly 1 ann", refused},
        {"LB.LEAGUE SET weekly 1 ann", refused},
        {"AUTH writer x", "+OK"},
        {"LB.LEAGUE ADD weekly 31 ann", "[:1 :1 [ann :0 nil :31] :1]"},
        {"LB.LEAGUE REMOVE weekly ann", ":1"},
    };
    shadow_end(h->shadow); /* users are the host's */
    play(h);
    zset_expect_each(h, rows);
}

ZSET_TEST(a_transaction_writes_results_of_several_members) {
    static const char *const rows[][2] = {
        {"MULTI", "+OK"},
        {"LB.LEAGUE ADD weekly 5 dan", "+QUEUED"},
        {"LB.LEAGUE ADD weekly 6 eva", "+QUEUED"},
        {"LB.LEAGUE SET weekly 2 dan", "+QUEUED"},
        {"LB.LEAGUE GET weekly dan", "+QUEUED"},
        {"EXEC",
         "[[:1 :2 [dan :0 nil :5] nil] [:1 :2 [eva :0 nil :6] nil] :1 [:2 nil nil* nil stay]]"},
    };
    play(h);
    zset_expect_each(h, rows);
}

ZSET_TEST(an_entry_that_changes_is_told) {
    static const char *const rows[][2] = {
        {"LB.LEAGUE ADD weekly 5 \"dan o\"", "league 1 2 0 dan o"},
        {"LB.LEAGUE ADD weekly 6 \"dan o\"", NULL},
        {"LB.LEAGUE SET weekly 3 ann", "league 3 0 1 ann"},
        {"LB.LEAGUE SET weekly 3 ann", NULL},
        {"LB.LEAGUE ADD weekly 6 ann", "league 3 1 3 ann"},
        {"LB.LEAGUE REMOVE weekly ann", "league 0 0 3 ann"},
    };
    play(h);
    zset_expect(h, "CONFIG SET notify-board-events yes", "+OK");
    struct session *hears = harness_connect(h);
    harness_expect_prefix(h, hears, "SUBSCRIBE __board@0__:weekly", "*3\r\n");
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        zset_run(h, "%s", rows[i][0]);
        const char *heard = harness_output(hears);
        if (rows[i][1] == NULL) {
            assert_string_equal(heard, "");
        } else if (strstr(heard, rows[i][1]) == NULL) {
            fail_msg("%s: %s", rows[i][0], heard);
        }
    }
}

ZSET_TEST(an_entry_that_changes_ends_a_watch) {
    play(h);
    zset_expect(h, "WATCH weekly", "+OK");
    zset_expect(h, "MULTI", "+OK");
    zset_expect(h, "PING", "+QUEUED");
    struct session *other = harness_connect(h);
    harness_expect_prefix(h, other, "LB.LEAGUE ADD weekly 5 dan", "*4\r\n");
    zset_expect(h, "EXEC", "nil*");
}

ZSET_TEST(a_replica_has_what_the_master_has_said) {
    play_with_two_archives(h);
    registry_set_passive(h->server.registry, true);
    zset_expect(h, "LB.LEAGUE GET weekly ann", "[:1 :1 [ann :0 nil :30] nil up]");
    pass_days(h, 1);
    zset_expect(h, "LB.LEAGUE GET weekly ann", "[:1 nil nil* nil nil]");
    zset_expect_part(h, "LB.LEAGUE INFO weekly", "start nil end nil");
    registry_set_passive(h->server.registry, false);
    zset_expect(h, "LB.LEAGUE GET weekly ann", "[:1 nil nil* :2 stay]");
    /* The template has rolled over, and that the archive goes was not said yet. */
    pass_days(h, 2);
    (void)registry_roll_due(h->server.registry, harness_now_us(h) / 1000, 16);
    registry_set_passive(h->server.registry, true);
    zset_expect(h, "EXISTS {weekly}:1:1@2026-01-01", ":0");
    zset_expect(h, "LB.LEAGUE GET weekly ann", "[:1 nil nil* :2 stay]");
    registry_set_passive(h->server.registry, false);
    zset_expect(h, "LB.LEAGUE GET weekly ann", "[:2 nil nil* nil stay]");
}

HARNESS_TEST(above_maxmemory_members_only_leave, "maxmemory 1mb\n") {
    zset_expect(h, CREATE "ALL", "+OK");
    zset_expect_begin(h, "LB.LEAGUE ADD weekly 1 ann", "[:1 ");
    zset_expect(h, "CONFIG SET maxmemory 1", "+OK");
    zset_expect_begin(h, "LB.LEAGUE ADD weekly 1 bob", "-OOM ");
    zset_expect_begin(h, "LB.LEAGUE SET weekly 2 ann", "-OOM ");
    zset_expect_begin(h, "LB.LEAGUE GET weekly ann", "[:1 :1 ");
    zset_expect(h, "LB.LEAGUE REMOVE weekly ann", ":1");
}

ZSET_TEST(a_result_that_is_sent_again_counts_once) {
    static const char *const rows[][2] = {
        {"LB.LEAGUE ADD weekly ONCE r1 INCR 5 dan", "[:1 :2 [dan :0 nil :5] nil]"},
        {"LB.LEAGUE ADD weekly ONCE r1 INCR 5 dan", "[:1 :2 [dan :0 nil :5] :1]"},
        {"LB.LEAGUE ADD weekly ONCE r1 WITHREPEAT INCR 5 dan", "[:1 :2 [dan :0 nil :5] :1 :1]"},
        {"LB.LEAGUE ADD weekly ONCE r0 WITHREPEAT INCR 0 dan", "[:1 :2 [dan :0 nil :5] :1 :0]"},
        {"LB.LEAGUE ADD weekly ONCE r2 x dan", ERROR_NUMBER("points")},
        {"LB.LEAGUE ADD weekly ONCE r2 INCR 5 dan", "[:1 :2 [dan :0 nil :10] :1]"},
        {"LB.ALTER weekly FREEZE", "+OK"},
        {"LB.LEAGUE ADD weekly ONCE r2 INCR 5 dan", "[:1 :2 [dan :0 nil :10] :1]"},
        {"LB.LEAGUE ADD weekly ONCE r3 INCR 5 dan", ERROR_FROZEN},
        {"LB.ALTER weekly THAW", "+OK"},
        {"LB.LEAGUE SET weekly 3 dan", ":1"},
        {"LB.LEAGUE ADD weekly ONCE r2 INCR 5 dan", "[:3 nil nil* :3]"},
        {"LB.LEAGUE REMOVE weekly dan", ":1"},
        {"LB.LEAGUE ADD weekly ONCE r2 INCR 5 dan", "[nil nil nil* nil]"},
        {"LB.LEAGUE ADD weekly ONCE r2 WITHREPEAT INCR 5 dan", "[nil nil nil* nil :1]"},
        {"ZCARD weekly", ":3"},
        /* The league is gone, or is none any more. */
        {"DEL weekly", ":1"},
        {"LB.LEAGUE ADD weekly ONCE r2 INCR 5 dan", "[nil nil nil* nil]"},
        {"LB.LEAGUE ADD weekly ONCE r3 INCR 5 dan", "-ERR no such key"},
        {"ZADD weekly 1 dan", ":1"},
        {"LB.LEAGUE ADD weekly ONCE r2 INCR 5 dan", "[nil nil nil* nil]"},
        {"LB.LEAGUE ADD weekly ONCE r3 INCR 5 dan",
         "-ERR board is not a league: LB.LEAGUE CREATE makes one"},
    };
    shadow_end(h->shadow); /* in the module the ids go with the league */
    play(h);
    zset_expect_each(h, rows);
}

ZSET_TEST(what_belongs_to_a_result_is_set_with_it) {
    static const char *const rows[][2] = {
        {"LB.LEAGUE ADD weekly BEST HSET run:* 1 replay r7 40 ann", "[:1 :1 [ann :0 nil :40] :1]"},
        {"LB.LEAGUE ADD weekly BEST HSET run:* 1 replay r8 39 ann", "[:1 :1 [ann :0 nil :40] :1]"},
        {"HGETALL run:ann", "[replay r7]"},
        {"LB.LEAGUE ADD weekly HSET %:* 1 replay r9 5 new", "[:1 :2 [new :0 nil :5] nil]"},
        {"HGETALL {weekly}:1:2:new", "[replay r9]"},
    };
    play(h);
    zset_expect_each(h, rows);
    zset_expect(h, "ZADD run:bob 1 x", ":1");
    zset_expect(h, "LB.LEAGUE ADD weekly HSET run:* 1 a b 50 bob",
                "-WRONGTYPE Operation against a key holding the wrong kind of value");
    zset_expect(h, "ZADD run:eva 1 x", ":1");
    zset_expect(h, "LB.LEAGUE ADD weekly HSET run:* 1 a b 50 eva",
                "-WRONGTYPE Operation against a key holding the wrong kind of value");
    zset_expect(h, "LB.LEAGUE GET weekly bob", "[:1 :1 [bob :1 nil :20] nil stay]");
    zset_expect(h, "LB.LEAGUE GET weekly eva", "nil*");
    zset_expect(h, "EXISTS {weekly}:1:3", ":0");
}

/* ---- memory ---- */

static void add_players(struct harness *h, int from, int to) {
    for (int i = from; i < to; i++) {
        zset_run(h, "LB.LEAGUE ADD weekly %d m%d", i, i);
    }
}

static void fill_league(struct harness *h) {
    zset_run(h, "%s", CREATE "2");
    add_players(h, 0, 200);
}

static void fill_and_pass(struct harness *h) {
    fill_league(h);
    pass_days(h, 1);
    run_due(h);
}

ZSET_TEST(a_command_without_memory_changes_nothing) {
    static const struct world empty = {.fill = NULL}, full = {.fill = fill_league},
                              past = {.fill = fill_and_pass};
    fail_each_allocation_in(&empty, CREATE "2", "+OK");
    fail_each_allocation_in(&full, "LB.LEAGUE ADD weekly 1 new", "*");
    fail_each_allocation_in(&past, "LB.LEAGUE ADD weekly 1 m2", "*");
    fail_each_allocation_in(&past, "LB.LEAGUE SET weekly 2 new", ":1");
    fail_each_allocation_in(&past, "LB.LEAGUE ADD weekly ONCE r1 HSET run:* 1 a b 1 m2", "*");
}

/* The archives of all rooms go, or not yet. */
static void settle_failing(struct harness *h, uint64_t nth) {
    int64_t now_ms = harness_now_us(h) / 1000;
    while (registry_roll_due(h->server.registry, now_ms, 16) == 16) {}
    memory_fail_at(nth);
    while (registry_expiry_remove_due(h->server.registry, now_ms, 16) == 16) {}
    memory_fail_at(0);
    ASSERT_VALID(registry_validate, h->server.registry);
}

ZSET_TEST(without_memory_an_archive_stays_until_its_members_are_settled) {
    char *expected = NULL;
    uint32_t kept_count = 0;
    for (uint64_t nth = 0; nth <= 20; nth++) {
        void *state;
        zset_start(&state);
        struct harness *with = state;
        shadow_end(with->shadow);
        fill_league(with);
        add_players(with, 200,
                    300); /* the league's own board has an index, which may have to grow */
        pass_days(with, 3);
        settle_failing(with, nth);
        kept_count += registry_count(with->server.registry, 0) > 2;
        /* m2 was the best of its room, whether or not the archive is there. */
        const char *answered = zset_run(with, "LB.LEAGUE GET weekly m2");
        assert_true(strcmp(answered, "[:1 nil nil* :2 stay]") == 0 ||
                    strcmp(answered, "[:2 nil nil* nil stay]") == 0);
        settle_failing(with, 0);
        assert_int_equal(registry_count(with->server.registry, 0), 2);
        char *dump = zset_dump(with, "weekly");
        zset_expect(with, "ZCOUNT weekly 2 2", ":100");
        if (expected == NULL) {
            expected = dump;
        } else {
            assert_int_equal(strlen(dump), strlen(expected));
            free(dump);
        }
        harness_destroy(with);
    }
    free(expected);
    assert_in_range(kept_count, 1, 20);
}
