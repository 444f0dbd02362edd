/* CLIENT TRACKING by bytes in and bytes out, and against a plain table of who has read what; with every allocation
 * failing in turn. Which commands change a key: test_watch.c, whose table is of tracking clients, too.
 * Beside Redis: tests/clients/tracking. */
#include "codec/memory.h"
#include "server/sessions/tracking.h"
#include "tests/support/harness.h"
#include "tests/support/random.h"

#define OK "+OK\r\n"

/* What the tick does, then what the client was sent. */
static const char *told(struct harness *h, struct session *session) {
    ASSERT_VALID(tracking_validate, &h->server);
    while (tracking_step(&h->server)) {}
    ASSERT_VALID(tracking_validate, &h->server);
    return harness_output(session);
}
#define expect_told(h, session, expected) assert_string_equal(told((h), (session)), (expected))

#define INVALIDATE(key, size) ">2\r\n$10\r\ninvalidate\r\n*1\r\n$" #size "\r\n" key "\r\n"
#define INVALIDATE_NULL       ">2\r\n$10\r\ninvalidate\r\n_\r\n"
#define MESSAGE(key, size)                                                                         \
    "*3\r\n$7\r\nmessage\r\n$20\r\n__redis__:invalidate\r\n*1\r\n$" #size "\r\n" key "\r\n"

/* A client in RESP3 that tracks with these options. */
static struct session *tracker(struct harness *h, const char *options) {
    struct session *session = harness_connect(h);
    session->protocol = 3;
    assert_string_equal(harness_run_format(h, session, "CLIENT TRACKING ON %s", options), OK);
    return session;
}

/* ---- by default ---- */

SERVER_TEST(a_client_is_told_once_of_each_key_that_it_has_read) {
    struct session *t = tracker(h, "");
    harness_run(h, s, "ZADD k 1 a");
    expect_told(h, t, "");
    harness_run(h, t, "ZSCORE k a");
    harness_run(h, t, "ZRANGE k 0 -1");
    harness_run(h, t, "ZCARD none");
    assert_int_equal(tracking_item_count(&h->server.tracking), 2);
    expect_told(h, t, "");
    harness_run(h, s, "ZADD k 2 a");
    expect_told(h, t, INVALIDATE("k", 1));
    harness_run(h, s, "ZADD k 3 a");
    expect_told(h, t, "");
    harness_run(h, s, "ZADD none 3 a");
    expect_told(h, t, INVALIDATE("none", 4));
    assert_int_equal(tracking_item_count(&h->server.tracking), 0);
}

SERVER_TEST(commands_of_boards_are_read_by_their_keys_too) {
    struct session *t = tracker(h, "");
    harness_run(h, s, "ZADD k 1 a");
    harness_run(h, s, "ZADD l 1 a");
    static const char *const reads[] = {"LB.GET k 1 a", "LB.RANGE k 0 99",    "LB.COUNT k",
                                        "HGETALL k",    "ZUNION 2 k l",       "EXISTS l k",
                                        "LB.INFO k",    "ZINTERCARD 2 l k",   "TYPE k",
                                        "TTL k",        "ZREVRANGE k 0 9999", "DUMP k"};
    for (size_t i = 0; i < COUNT_OF(reads); i++) {
        harness_run(h, t, reads[i]);
        harness_run(h, s, "ZINCRBY k 1 a");
        assert_string_equal(told(h, t), INVALIDATE("k", 1));
    }
    harness_run(h, s, "ZINCRBY l 1 a");
    expect_told(h, t, INVALIDATE("l", 1));
}

SERVER_TEST(what_writes_does_not_read) {
    struct session *t = tracker(h, "");
    harness_run(h, t, "ZADD k 1 a");
    harness_run(h, t, "ZINCRBY k 1 a");
    harness_run(h, t, "ZUNIONSTORE j 1 k");
    harness_run(h, t, "BZPOPMIN k 0");
    harness_run(h, s, "ZADD k 5 a");
    expect_told(h, t, "");
    assert_int_equal(tracking_key_count(&h->server.tracking), 0);
}

SERVER_TEST(databases_are_one_to_trackers_as_in_redis) {
    struct session *t = tracker(h, "");
    harness_run(h, t, "ZCARD k");
    harness_run(h, s, "SELECT 3");
    harness_run(h, s, "ZADD k 1 a");
    expect_told(h, t, INVALIDATE("k", 1));
}

SERVER_TEST(own_changes_are_told_unless_noloop_says_not) {
    struct session *t = tracker(h, ""), *n = tracker(h, "NOLOOP");
    harness_run(h, t, "ZCARD k");
    harness_run(h, n, "ZCARD k");
    harness_run(h, t, "ZADD k 1 a");
    expect_told(h, t, INVALIDATE("k", 1));
    expect_told(h, n, INVALIDATE("k", 1));
    harness_run(h, t, "ZCARD k");
    harness_run(h, n, "ZCARD k");
    harness_run(h, n, "ZADD k 2 a");
    expect_told(h, t, INVALIDATE("k", 1));
    expect_told(h, n, "");
}

/* It asks for its own changes alone: an expiry that its command finds is none. */
SERVER_TEST(noloop_hides_no_expiry_and_no_end_of_a_period) {
    struct session *n = tracker(h, "NOLOOP");
    harness_run(h, s, "ZADD k 1 a");
    harness_run(h, s, "PEXPIRE k 50");
    harness_run(h, s, "LB.CREATE daily PERIOD DAY");
    harness_run(h, s, "ZADD daily 1 a");
    harness_run(h, n, "ZCARD k");
    harness_run(h, n, "ZCARD daily");
    h->wall_us += INT64_C(90000000000);
    harness_run(h, n, "ZADD k 1 b");
    harness_run(h, n, "ZADD daily 1 b");
    expect_told(h, n, INVALIDATE("k", 1) INVALIDATE("daily", 5));
}

/* Who tracks no more is told of nothing, and who comes next has changed nothing. */
SERVER_TEST(nobody_is_the_writer_behind_a_command) {
    struct session *t = tracker(h, "NOLOOP");
    harness_run(h, t, "ZCARD k");
    assert_null(h->server.tracking.writer);
    harness_expect(h, t, "CLIENT TRACKING OFF", OK);
    assert_null(h->server.tracking.writer);
    harness_run(h, s, "ZADD k 1 a");
    assert_null(h->server.tracking.writer);
}

SERVER_TEST(what_falls_due_is_told) {
    struct session *t = tracker(h, "");
    harness_run(h, s, "ZADD k 1 a");
    harness_run(h, s, "PEXPIRE k 50");
    harness_run(h, t, "ZCARD k");
    h->wall_us += 60000;
    server_update_time(&h->server);
    registry_expiry_remove_due(h->server.registry, h->server.clock.now_ms, 10);
    expect_told(h, t, INVALIDATE("k", 1));
    harness_run(h, s, "LB.CREATE daily PERIOD DAY");
    harness_run(h, s, "ZADD daily 1 a");
    harness_run(h, t, "LB.RANGE daily 0 9");
    h->wall_us += INT64_C(90000000000);
    server_update_time(&h->server);
    registry_roll_due(h->server.registry, h->server.clock.now_ms, 10);
    expect_told(h, t, INVALIDATE("daily", 5));
}

/* A pass over a board whose members leave; a period that ends takes the room's members and keeps the league. */
SERVER_TEST(members_that_leave_by_the_boards_rules_are_told) {
    static const char *const boards[][2] = {
        {"LB.CREATE k STALE 1 HOUR", "ZADD k 1 a"},
        {"LB.CREATE k PERIOD HOUR WINDOW 2 SUM", "LB.ADD k 1 a"},
        {"LB.LEAGUE CREATE k PERIOD HOUR ROOM 5 TIERS 3 UP 1 DOWN 1", "LB.LEAGUE ADD k 1 a"}};
    for (size_t i = 0; i < COUNT_OF(boards); i++) {
        bool is_league = i == 2;
        const char *key = is_league ? "{k}:1:1" : "k";
        harness_run(h, s, "FLUSHALL");
        struct session *t = tracker(h, "");
        harness_expect(h, s, boards[i][0], OK);
        harness_run(h, s, boards[i][1]);
        assert_string_equal(harness_run_format(h, t, "ZCARD %s", key), ":1\r\n");
        h->wall_us += INT64_C(3) * 3600 * 1000000;
        server_update_time(&h->server);
        registry_roll_due(h->server.registry, h->server.clock.now_ms, 10);
        harness_drop_stale(h);
        expect_told(h, t, is_league ? INVALIDATE("{k}:1:1", 7) : INVALIDATE("k", 1));
        harness_disconnect(h, t);
    }
}

/* Its replies are of its rooms, which nobody has named. */
SERVER_TEST(a_result_in_a_room_outdates_what_was_read_of_the_league) {
    struct session *t = tracker(h, ""), *w = harness_connect(h);
    harness_run(h, s, "LB.LEAGUE CREATE k PERIOD HOUR ROOM 5 TIERS 3 UP 1 DOWN 1");
    harness_run(h, s, "LB.LEAGUE ADD k 1 a");
    static const char *const changes[] = {"LB.LEAGUE ADD k INCR 1 a", "ZREM {k}:1:1 a"};
    for (size_t i = 0; i < COUNT_OF(changes); i++) {
        harness_run(h, t, "LB.LEAGUE GET k a");
        harness_expect(h, w, "WATCH k", OK);
        harness_run(h, s, changes[i]);
        expect_told(h, t, INVALIDATE("k", 1));
        harness_expect(h, w, "MULTI", OK);
        harness_expect(h, w, "EXEC", "*-1\r\n");
    }
    harness_run(h, s, "LB.LEAGUE ADD k INCR 1 a");
    harness_run(h, t, "LB.LEAGUE GET k a");
    h->wall_us += INT64_C(3600) * 1000000;
    server_update_time(&h->server);
    registry_roll_due(h->server.registry, h->server.clock.now_ms, 10);
    expect_told(h, t, INVALIDATE("k", 1));
    harness_run(h, t, "ZCARD j:1:1");
    harness_run(h, s, "ZADD j:1:1 1 a"); /* a name like a room's */
    expect_told(h, t, INVALIDATE("j:1:1", 5));
}

/* Until they come again, members have the tiers that follow from it. */
SERVER_TEST(an_archive_of_a_room_that_is_changed_by_hand_outdates_what_was_read_of_the_league) {
    struct session *t = tracker(h, ""), *w = harness_connect(h);
    harness_run(h, s, "LB.LEAGUE CREATE k PERIOD HOUR ROOM 5 TIERS 3 UP 1 DOWN 1");
    harness_run(h, s, "LB.LEAGUE ADD k 2 a");
    harness_run(h, s, "LB.LEAGUE ADD k 1 b");
    h->wall_us += INT64_C(3600) * 1000000;
    server_update_time(&h->server);
    registry_roll_due(h->server.registry, h->server.clock.now_ms, 10);
    harness_run(h, s, "LB.ALTER {k}:1:1@2026-01-01T00 THAW");
    static const char *const changes[] = {"ZREM {k}:1:1@2026-01-01T00 a",
                                          "DEL {k}:1:1@2026-01-01T00"};
    for (size_t i = 0; i < COUNT_OF(changes); i++) {
        harness_expect(h, t, "LB.LEAGUE GET k b",
                       i == 0 ? "*5\r\n:1\r\n_\r\n_\r\n_\r\n$4\r\nstay\r\n"
                              : "*5\r\n:1\r\n_\r\n_\r\n:2\r\n$4\r\nstay\r\n");
        harness_expect(h, w, "WATCH k", OK);
        harness_run(h, s, changes[i]);
        expect_told(h, t, INVALIDATE("k", 1));
        harness_expect(h, w, "MULTI", OK);
        harness_expect(h, w, "EXEC", "*-1\r\n");
    }
    harness_expect(h, t, "LB.LEAGUE GET k b", "*5\r\n:1\r\n_\r\n_\r\n_\r\n$4\r\nstay\r\n");
}

/* Nobody has played, so no room ends with the period, and who is idle goes down. */
SERVER_TEST(a_period_without_rooms_outdates_what_was_read_of_the_league) {
    struct session *t = tracker(h, ""), *w = harness_connect(h);
    harness_run(h, s, "LB.LEAGUE CREATE k PERIOD HOUR ROOM 5 TIERS 3 UP 1 DOWN 1 IDLE DOWN");
    harness_run(h, s, "LB.LEAGUE ADD k 1 a");
    harness_run(h, s, "LB.LEAGUE SET k 3 a");
    static const char *const changes[] = {"", "", "LB.ALTER {k}:rooms PERIOD DAY", "DEL {k}:rooms"};
    for (size_t i = 0; i < COUNT_OF(changes); i++) {
        harness_run(h, t, i < 2 ? "LB.LEAGUE GET k a" : "LB.LEAGUE INFO k");
        harness_expect(h, w, "WATCH k", OK);
        if (i < 2) {
            h->wall_us += INT64_C(3600) * 1000000;
            server_update_time(&h->server);
            registry_roll_due(h->server.registry, h->server.clock.now_ms, 10);
        } else {
            harness_run(h, s, changes[i]);
        }
        expect_told(h, t, INVALIDATE("k", 1));
        harness_expect(h, w, "MULTI", OK);
        harness_expect(h, w, "EXEC", "*-1\r\n");
    }
}

SERVER_TEST(a_member_that_a_waiting_client_takes_is_told) {
    struct session *t = tracker(h, ""), *w = harness_connect(h);
    harness_run(h, t, "ZCARD k");
    harness_run(h, w, "BZPOPMIN k 0");
    harness_run(h, s, "ZADD k 1 a");
    expect_told(h, t, INVALIDATE("k", 1));
    assert_string_equal(harness_output(w), "*3\r\n$1\r\nk\r\n$1\r\na\r\n$1\r\n1\r\n");
    struct session *n = tracker(h, "NOLOOP");
    harness_run(h, t, "ZCARD j");
    harness_run(h, n, "ZCARD j");
    harness_run(h, n, "BZMOVE k j MIN 0"); /* what it moves, once it is there, is its own change */
    harness_run(h, s, "ZADD k 1 a");
    expect_told(h, t, INVALIDATE("j", 1));
    assert_null(strstr(harness_output(n), "invalidate"));
    harness_expect(h, s, "ZCARD j", ":1\r\n");
}

SERVER_TEST(passes_over_all_boards_are_told) {
    struct session *t = tracker(h, "");
    static const char *const passes[] = {"LB.FORGET a", "LB.BAN a"};
    for (size_t i = 0; i < COUNT_OF(passes); i++) {
        harness_run(h, s, "ZADD k 1 a 2 b");
        harness_run(h, t, "ZRANGE k 0 -1");
        harness_run(h, s, passes[i]);
        expect_told(h, t, INVALIDATE("k", 1));
    }
}

SERVER_TEST(a_flushed_database_outdates_everything_once) {
    struct session *t = tracker(h, ""), *b = tracker(h, "BCAST"), *off = harness_connect(h);
    harness_run(h, s, "ZADD k 1 a");
    harness_run(h, s, "SELECT 5");
    harness_run(h, s, "ZADD k 1 a");
    told(h, b);
    harness_run(h, t, "ZCARD k");
    harness_run(h, s, "FLUSHALL");
    expect_told(h, t, INVALIDATE_NULL);
    expect_told(h, b, INVALIDATE_NULL);
    expect_told(h, off, "");
    harness_run(h, s, "ZADD k 1 a");
    expect_told(h, t, "");
    expect_told(h, b, INVALIDATE("k", 1));
}

/* ---- OPTIN, OPTOUT, CACHING ---- */

SERVER_TEST(with_optin_only_what_follows_caching_is_read) {
    struct session *t = tracker(h, "OPTIN");
    harness_run(h, t, "ZCARD k");
    harness_expect(h, t, "CLIENT CACHING YES", OK);
    harness_run(h, t, "CLIENT GETNAME");
    harness_run(h, t, "ZCARD l");
    harness_run(h, t, "ZCARD m");
    assert_int_equal(tracking_key_count(&h->server.tracking), 1);
    harness_expect(h, t, "CLIENT CACHING YES", OK);
    harness_run(h, t, "MULTI");
    harness_run(h, t, "ZCARD n");
    harness_run(h, t, "ZCARD o");
    harness_run(h, t, "EXEC");
    harness_run(h, t, "ZCARD p");
    assert_int_equal(tracking_key_count(&h->server.tracking), 3);
    harness_run(h, s, "ZADD l 1 a");
    harness_run(h, s, "ZADD o 1 a");
    harness_run(h, s, "ZADD p 1 a");
    expect_told(h, t, INVALIDATE("l", 1) INVALIDATE("o", 1));
}

SERVER_TEST(with_optout_all_but_what_follows_caching_is_read) {
    struct session *t = tracker(h, "OPTOUT");
    harness_run(h, t, "ZCARD k");
    harness_expect(h, t, "CLIENT CACHING NO", OK);
    harness_run(h, t, "ZCARD l");
    harness_run(h, t, "ZCARD m");
    assert_int_equal(tracking_key_count(&h->server.tracking), 2);
    harness_expect(h, t, "CLIENT CACHING NO", OK);
    harness_run(h, t, "NONSENSE"); /* ends it: what is read later must be told */
    harness_run(h, t, "ZCARD n");
    assert_int_equal(tracking_key_count(&h->server.tracking), 3);
}

/* ---- BCAST ---- */

SERVER_TEST(with_bcast_all_changes_of_a_tick_are_told_together_and_nothing_is_remembered) {
    struct session *b = tracker(h, "BCAST PREFIX k: PREFIX l:"), *all = tracker(h, "BCAST");
    harness_run(h, b, "ZCARD k:1");
    harness_run(h, s, "ZADD k:1 1 a");
    harness_run(h, s, "ZADD k:2 1 a");
    harness_run(h, s, "ZADD k:1 2 a");
    harness_run(h, s, "ZADD l:1 1 a");
    harness_run(h, s, "ZADD x 1 a");
    expect_told(h, b,
                ">2\r\n$10\r\ninvalidate\r\n*2\r\n$3\r\nk:1\r\n$3\r\nk:2\r\n" INVALIDATE("l:1", 3));
    expect_told(h, all,
                ">2\r\n$10\r\ninvalidate\r\n*4\r\n$3\r\nk:1\r\n$3\r\nk:2\r\n$3\r\nl:1\r\n"
                "$1\r\nx\r\n");
    assert_int_equal(tracking_key_count(&h->server.tracking), 0);
    assert_int_equal(tracking_prefix_count(&h->server.tracking), 3);
    harness_expect(h, b, "CLIENT TRACKING ON BCAST PREFIX m", OK);
    harness_run(h, s, "ZADD m 1 a");
    expect_told(h, b, INVALIDATE("m", 1));
    harness_expect(h, b, "CLIENT TRACKING OFF", OK);
    harness_run(h, s, "ZADD m 2 a");
    expect_told(h, b, "");
}

SERVER_TEST(with_bcast_noloop_leaves_out_what_the_client_alone_has_changed) {
    struct session *b = tracker(h, "BCAST NOLOOP"), *other = tracker(h, "BCAST NOLOOP");
    harness_run(h, b, "ZADD mine 1 a");
    harness_run(h, b, "ZADD ours 1 a");
    harness_run(h, other, "ZADD ours 2 a");
    expect_told(h, b, INVALIDATE("ours", 4));
    expect_told(h, other, ">2\r\n$10\r\ninvalidate\r\n*2\r\n$4\r\nmine\r\n$4\r\nours\r\n");
    harness_run(h, b, "ZADD mine 3 a");
    expect_told(h, b, "");
}

SERVER_TEST(what_was_read_before_bcast_is_not_told) {
    struct session *t = tracker(h, "");
    harness_run(h, t, "ZCARD k");
    harness_run(h, t, "CLIENT TRACKING OFF");
    harness_expect(h, t, "CLIENT TRACKING ON BCAST PREFIX x", OK);
    harness_run(h, s, "ZADD k 1 a");
    expect_told(h, t, "");
}

SERVER_TEST(thousands_of_changed_keys_in_a_tick_are_told_in_pieces) {
    enum { KEYS = 10000 };
    struct session *b = tracker(h, "BCAST PREFIX k");
    for (int i = 0; i < KEYS; i++) {
        harness_run_format(h, s, "ZADD k%d 1 a", i);
        assert_true(h->server.tracking.notes.count <= 4096);
    }
    const char *at = told(h, b);
    int total = 0, count;
    for (; sscanf(at, ">2\r\n$10\r\ninvalidate\r\n*%d\r\n", &count) == 1; total += count) {
        at = strstr(at + 1, ">2\r\n");
        at = at != NULL ? at : "";
    }
    assert_int_equal(total, KEYS);
}

/* ---- REDIRECT and RESP2 ---- */

SERVER_TEST(another_client_may_be_told_in_either_protocol) {
    struct session *two = harness_connect(h), *three = harness_connect(h);
    struct session *a = harness_connect(h), *b = harness_connect(h);
    three->protocol = 3;
    harness_run_format(h, a, "CLIENT TRACKING ON REDIRECT %llu", (unsigned long long)two->id);
    harness_run_format(h, b, "CLIENT TRACKING ON REDIRECT %llu", (unsigned long long)three->id);
    harness_run(h, a, "ZCARD k");
    harness_run(h, b, "ZCARD k");
    harness_run(h, s, "ZADD k 1 a");
    expect_told(h, two, ""); /* it is no subscriber yet */
    expect_told(h, three, INVALIDATE("k", 1));
    harness_run(h, two, "SUBSCRIBE __redis__:invalidate");
    harness_run(h, a, "ZCARD k");
    harness_run(h, s, "ZADD k 2 a");
    expect_told(h, two, MESSAGE("k", 1));
    expect_told(h, a, "");
    expect_told(h, b, "");
    harness_run(h, s, "FLUSHALL");
    expect_told(h, two, "*3\r\n$7\r\nmessage\r\n$20\r\n__redis__:invalidate\r\n$-1\r\n");
    expect_told(h, three, INVALIDATE_NULL);
    harness_run_format(h, a, "CLIENT TRACKING ON REDIRECT %llu", (unsigned long long)three->id);
    harness_run(h, a, "CLIENT TRACKING OFF");
    ASSERT_VALID(tracking_validate, &h->server);
}

SERVER_TEST(a_client_whose_redirection_is_gone_is_told_so) {
    struct session *t = tracker(h, ""), *gone = harness_connect(h);
    char expected[80];
    snprintf(expected, sizeof expected, ">2\r\n$21\r\ntracking-redir-broken\r\n:%llu\r\n",
             (unsigned long long)gone->id);
    harness_run_format(h, t, "CLIENT TRACKING ON REDIRECT %llu", (unsigned long long)gone->id);
    harness_run(h, t, "ZCARD k");
    harness_disconnect(h, gone);
    expect_told(h, t, "");
    harness_run(h, s, "ZADD k 1 a");
    expect_told(h, t, expected);
    harness_expect_part(h, t, "CLIENT TRACKINGINFO", "$15\r\nbroken_redirect\r\n");
    harness_expect_part(h, t, "CLIENT INFO", " flags=tR ");
    harness_expect(h, t, "CLIENT TRACKING ON", OK);
    harness_run(h, t, "ZCARD k");
    harness_run(h, s, "ZADD k 2 a");
    expect_told(h, t, INVALIDATE("k", 1));
}

SERVER_TEST(resp2_alone_may_track_and_is_told_nothing) {
    harness_expect(h, s, "CLIENT TRACKING ON", OK);
    harness_run(h, s, "ZCARD k");
    harness_run(h, s, "SUBSCRIBE c");
    struct session *other = harness_connect(h);
    harness_run(h, other, "ZADD k 1 a");
    expect_told(h, s, "");
}

SERVER_TEST(who_is_told_of_all_changes_has_the_output_limit_of_subscribers) {
    struct session *b = tracker(h, "BCAST"), *target = harness_connect(h);
    const struct setting_output_limit *limits = h->server.settings.output_limits;
    assert_ptr_equal(server_output_limit(&h->server, s), &limits[SETTING_OUTPUT_NORMAL]);
    assert_ptr_equal(server_output_limit(&h->server, b), &limits[SETTING_OUTPUT_PUBSUB]);
    harness_run_format(h, s, "CLIENT TRACKING ON REDIRECT %llu", (unsigned long long)target->id);
    assert_ptr_equal(server_output_limit(&h->server, target), &limits[SETTING_OUTPUT_PUBSUB]);
    harness_disconnect(h, s);
    assert_ptr_equal(server_output_limit(&h->server, target), &limits[SETTING_OUTPUT_NORMAL]);
}

/* ---- transactions, rights, the end ---- */

SERVER_TEST(a_transaction_reads_and_changes_keys_like_its_commands) {
    struct session *t = tracker(h, ""), *other = tracker(h, "");
    harness_run(h, other, "ZCARD k");
    harness_run(h, t, "MULTI");
    harness_run(h, t, "ZCARD k");
    harness_run(h, t, "ZADD k 1 a");
    harness_run(h, t, "ZCARD k");
    harness_expect(h, t, "EXEC", "*3\r\n:0\r\n:1\r\n:1\r\n");
    expect_told(h, t, INVALIDATE("k", 1));
    expect_told(h, other, INVALIDATE("k", 1));
    harness_run(h, s, "ZADD k 2 a");
    expect_told(h, t, INVALIDATE("k", 1));
}

SERVER_TEST(bcast_tells_only_of_keys_that_the_user_may_read) {
    harness_run(h, s, "ACL SETUSER ann on nopass +@all ~mine:*");
    struct session *b = harness_connect(h), *m = harness_connect(h), *all = tracker(h, "BCAST");
    harness_run(h, b, "HELLO 3 AUTH ann x");
    harness_run(h, m, "HELLO 3 AUTH ann x");
    harness_expect(h, b, "CLIENT TRACKING ON BCAST", OK);
    harness_expect(h, m, "CLIENT TRACKING ON BCAST PREFIX mine:", OK);
    harness_run(h, s, "ZADD mine:1 1 a");
    harness_run(h, s, "ZADD hidden 1 a");
    expect_told(h, b, INVALIDATE("mine:1", 6));
    expect_told(h, m, INVALIDATE("mine:1", 6));
    expect_told(h, all, ">2\r\n$10\r\ninvalidate\r\n*2\r\n$6\r\nhidden\r\n$6\r\nmine:1\r\n");
    harness_run(h, s, "ZADD hidden 2 a");
    expect_told(h, b, "");
    harness_run(h, s, "ACL SETUSER eve on nopass +@all -client|tracking ~*");
    harness_run(h, m, "AUTH eve x");
    harness_expect_prefix(h, m, "CLIENT TRACKING ON", "-NOPERM");
}

SERVER_TEST(reset_ends_tracking) {
    struct session *t = tracker(h, ""), *b = tracker(h, "BCAST");
    harness_run(h, t, "ZCARD k");
    harness_run(h, t, "RESET");
    harness_run(h, b, "RESET");
    assert_int_equal(h->server.tracking.client_count, 0);
    harness_run(h, s, "ZADD k 1 a");
    expect_told(h, t, "");
    expect_told(h, b, "");
    harness_expect(h, t, "CLIENT GETREDIR", ":-1\r\n");
}

SERVER_TEST(a_client_that_leaves_leaves_nothing) {
    struct session *t = tracker(h, ""), *b = tracker(h, "BCAST PREFIX k");
    for (int i = 0; i < 500; i++) {
        harness_run_format(h, t, "ZCARD k%d", i);
    }
    harness_run(h, s, "ZADD k 1 a");
    harness_disconnect(h, t);
    harness_disconnect(h, b);
    harness_run(h, s, "ZADD k1 1 a");
    ASSERT_VALID(tracking_validate, &h->server);
    while (tracking_free_step(&h->server.tracking, 16)) {}
    assert_int_equal(tracking_key_count(&h->server.tracking), 0);
    assert_int_equal(tracking_prefix_count(&h->server.tracking), 0);
}

/* ---- limits ---- */

SERVER_TEST(above_tracking_table_max_keys_the_readers_of_a_key_are_told) {
    enum { KEYS = 200, KEPT = 20 };
    struct session *t = tracker(h, "");
    harness_expect(h, s, "CONFIG SET tracking-table-max-keys 20", OK);
    int told_count = 0;
    for (int i = 0; i < KEYS; i++) {
        harness_run_format(h, t, "ZCARD k%d", i);
        told_count += strncmp(told(h, t), ">2\r\n", 4) == 0;
        assert_true(tracking_key_count(&h->server.tracking) <= KEPT);
    }
    assert_int_equal(told_count, KEYS - KEPT);
    size_t held_size = t->tracking.keys.memory_size;
    harness_expect(h, s, "CONFIG SET tracking-table-max-keys 5", OK);
    told(h, t);
    assert_int_equal(tracking_key_count(&h->server.tracking), 5);
    assert_true(t->tracking.keys.memory_size < held_size / 2);
    harness_expect(h, s, "CONFIG SET tracking-table-max-keys 0", OK);
    for (int i = 0; i < KEYS; i++) {
        harness_run_format(h, t, "ZCARD k%d", i);
    }
    assert_int_equal(tracking_key_count(&h->server.tracking), KEYS);
}

HARNESS_TEST(pairs_of_key_and_client_have_a_limit_too, "tracking-table-max-keys 2\n") {
    enum { READERS = 40 };
    for (int i = 0; i < READERS; i++) {
        struct session *t = tracker(h, "");
        harness_run(h, t, "ZCARD k");
        harness_run(h, t, "ZCARD l");
        assert_true(tracking_item_count(&h->server.tracking) <= 2 * TRACKING_READERS_MAX + 10);
    }
    ASSERT_VALID(tracking_validate, &h->server);
}

SERVER_TEST(what_a_client_has_read_is_its_memory) {
    struct session *t = tracker(h, "");
    size_t before = session_memory_size(t);
    for (int i = 0; i < 100; i++) {
        harness_run_format(h, t, "ZCARD k%d", i);
    }
    assert_true(session_memory_size(t) > before + (size_t)100 * 64);
    harness_run(h, s, "ZADD k 1 a");
    harness_run(h, s, "FLUSHALL");
    told(h, t);
    assert_true(session_memory_size(t) < before + 4096);
}

SERVER_TEST(prefixes_have_a_limit) {
    struct bytes args[4 + 2 * (TRACKING_PREFIXES_MAX + 1)] = {BYTES("CLIENT"), BYTES("TRACKING"),
                                                              BYTES("ON"), BYTES("BCAST")};
    static char names[TRACKING_PREFIXES_MAX + 1][12];
    for (int i = 0; i <= TRACKING_PREFIXES_MAX; i++) {
        snprintf(names[i], sizeof names[i], "%03d", i);
        args[4 + 2 * i] = BYTES("PREFIX");
        args[5 + 2 * i] = bytes_from_text(names[i]);
    }
    assert_string_equal(harness_run_args(h, s, args, COUNT_OF(args)),
                        "-ERR at most 256 prefixes\r\n");
    assert_string_equal(harness_run_args(h, s, args, COUNT_OF(args) - 2), OK);
    harness_expect(h, s, "CLIENT TRACKING ON BCAST PREFIX x", "-ERR at most 256 prefixes\r\n");
}

/* A read whose key could not be remembered is told as changed; a change is always told, or the client closed. */
SERVER_TEST(without_memory_nobody_keeps_what_is_outdated) {
    for (uint64_t nth = 1; nth < 12; nth++) {
        struct session *t = tracker(h, ""), *b = tracker(h, "BCAST PREFIX k");
        harness_run_failing(h, t, "ZCARD k", nth);
        bool is_remembered = tracking_item_count(&h->server.tracking) == 1;
        assert_int_equal(strncmp(told(h, t), ">2\r\n", 4) == 0 || t->is_killed, !is_remembered);
        if (!is_remembered) {
            harness_run(h, t, "ZCARD k");
        }
        bool is_done = harness_run_failing(h, s, "ZINCRBY k 1 a", nth)[0] != '-';
        bool t_knows = t->output.is_broken || strncmp(told(h, t), ">2\r\n", 4) == 0;
        bool b_knows = b->output.is_broken || strncmp(told(h, b), ">2\r\n", 4) == 0;
        assert_true(t_knows || !is_done);
        assert_true(b_knows || !is_done);
        t->output.is_broken = false;
        b->output.is_broken = false;
        harness_disconnect(h, t);
        harness_disconnect(h, b);
        while (tracking_free_step(&h->server.tracking, 100)) {}
        ASSERT_VALID(tracking_validate, &h->server);
    }
}

SERVER_TEST(tracking_that_finds_no_memory_does_not_begin) {
    bool is_done = false;
    for (uint64_t nth = 1; !is_done; nth++) {
        assert_true(nth < 40);
        is_done = harness_run_failing(h, s, "CLIENT TRACKING ON BCAST PREFIX a PREFIX b PREFIX c",
                                      nth)[0] == '+';
        ASSERT_VALID(tracking_validate, &h->server);
        assert_int_equal(tracking_prefix_count(&h->server.tracking), is_done ? 3 : 0);
        assert_int_equal(s->tracking.is_on, is_done);
    }
}

/* ---- the commands ---- */

SERVER_TEST(options_that_do_not_fit_are_refused_with_redis_texts) {
    static const char *const rows[][2] = {
        {"CLIENT TRACKING", "-ERR wrong number of arguments for 'client|tracking' command\r\n"},
        {"CLIENT TRACKING MAYBE", "-ERR syntax error\r\n"},
        {"CLIENT TRACKING ON PREFIX", "-ERR syntax error\r\n"},
        {"CLIENT TRACKING ON NONSENSE", "-ERR syntax error\r\n"},
        {"CLIENT TRACKING ON PREFIX a", "-ERR PREFIX option requires BCAST mode to be enabled\r\n"},
        {"CLIENT TRACKING ON BCAST OPTIN",
         "-ERR OPTIN and OPTOUT are not compatible with BCAST\r\n"},
        {"CLIENT TRACKING ON REDIRECT 999999",
         "-ERR The client ID you want redirect to does not exist\r\n"},
        {"CLIENT TRACKING ON REDIRECT x", "-ERR value is not an integer or out of range\r\n"},
        {"CLIENT TRACKING ON REDIRECT 1 REDIRECT 1",
         "-ERR A client can only redirect to a single other client\r\n"},
        {"CLIENT TRACKING ON BCAST PREFIX ab PREFIX a",
         "-ERR Prefix 'ab' overlaps with another provided prefix 'a'. Prefixes for a single client "
         "must not overlap.\r\n"},
        {"CLIENT CACHING YES",
         "-ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or "
         "OPTOUT mode enabled\r\n"},
        {"CLIENT CACHING MAYBE", "-ERR syntax error\r\n"},
        {"CLIENT GETREDIR", ":-1\r\n"},
        {"CLIENT TRACKINGINFO", "*6\r\n$5\r\nflags\r\n*1\r\n$3\r\noff\r\n$8\r\nredirect\r\n:-1\r\n$"
                                "8\r\nprefixes\r\n*0\r\n"},
        {"CLIENT TRACKING OFF", OK},
        {"CLIENT TRACKING ON OPTIN", OK},
        {"CLIENT CACHING NO",
         "-ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.\r\n"},
        {"CLIENT TRACKING ON OPTOUT",
         "-ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and "
         "then re-enabling it with a different mode.\r\n"},
        {"CLIENT TRACKING ON BCAST",
         "-ERR You can't switch BCAST mode on/off before disabling tracking for this client, and "
         "then re-enabling it with a different mode.\r\n"},
        {"CLIENT CACHING YES", OK},
        {"CLIENT GETREDIR", ":0\r\n"},
        {"CLIENT TRACKING OFF", OK},
        {"CLIENT TRACKING ON BCAST PREFIX a", OK},
        {"CLIENT TRACKING ON BCAST PREFIX ab",
         "-ERR Prefix 'ab' overlaps with an existing prefix 'a'. Prefixes for a single client must "
         "not overlap.\r\n"},
        {"CLIENT CACHING YES",
         "-ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.\r\n"},
    };
    harness_expect_each(h, s, rows);
    assert_int_equal(s->tracking.prefixes.counts[SUBSCRIPTION_PREFIX], 1);
}

SERVER_TEST(how_clients_track_is_shown) {
    struct session *t = tracker(h, "OPTIN NOLOOP");
    harness_run(h, t, "CLIENT CACHING YES");
    harness_expect(h, t, "CLIENT TRACKINGINFO",
                   "%3\r\n$5\r\nflags\r\n~4\r\n$2\r\non\r\n$5\r\noptin\r\n$11\r\ncaching-yes\r\n"
                   "$6\r\nnoloop\r\n$8\r\nredirect\r\n:0\r\n$8\r\nprefixes\r\n*0\r\n");
    harness_expect_part(h, t, "CLIENT INFO", " flags=t ");
    harness_expect_part(h, t, "CLIENT INFO", " redir=0 ");
    struct session *b = tracker(h, "BCAST PREFIX x PREFIX y");
    harness_expect(h, b, "CLIENT TRACKINGINFO",
                   "%3\r\n$5\r\nflags\r\n~2\r\n$2\r\non\r\n$5\r\nbcast\r\n$8\r\nredirect\r\n:0\r\n"
                   "$8\r\nprefixes\r\n*2\r\n$1\r\nx\r\n$1\r\ny\r\n");
    harness_expect_part(h, b, "CLIENT INFO", " flags=tB ");
    harness_expect_part(h, s, "CLIENT INFO", " redir=-1 ");
    harness_run(h, t, "CLIENT CACHING YES");
    harness_run(h, t, "EXISTS a b");
    harness_expect_part(h, s, "INFO clients", "\r\ntracking_clients:2\r\n");
    harness_expect_part(h, s, "INFO stats",
                        "\r\ntracking_total_keys:2\r\ntracking_total_items:2\r\n"
                        "tracking_total_prefixes:2\r\n");
}

/* ---- against a plain table ---- */

enum { CLIENTS = 12, NAMES = 30 };

struct twin_client {
    struct session *session;
    bool is_on, is_broadcast, is_no_loop;
    bool has_read[NAMES];
    bool is_told[NAMES]; /* and was not looked at since */
    bool is_told_all;
    int prefix; /* names whose number in tens is this; -1: all */
};

struct twin {
    struct harness *h;
    struct twin_client clients[CLIENTS];
    struct random random;
};

static void twin_switch(struct twin *twin, struct twin_client *client, uint64_t kind) {
    static const char *const lines[] = {"CLIENT TRACKING ON", "CLIENT TRACKING ON NOLOOP",
                                        "CLIENT TRACKING ON BCAST",
                                        "CLIENT TRACKING ON BCAST "
                                        "NOLOOP"};
    harness_expect(twin->h, client->session, "CLIENT TRACKING OFF", OK);
    client->is_on = kind < 4;
    client->is_broadcast = kind == 2 || kind == 3;
    client->is_no_loop = kind == 1 || kind == 3;
    client->prefix = (int)random_below(&twin->random, 4) - 1;
    if (kind < 4 && client->is_broadcast && client->prefix >= 0) {
        char line[64];
        snprintf(line, sizeof line, "%s PREFIX k%d", lines[kind], client->prefix);
        harness_expect(twin->h, client->session, line, OK);
    } else if (kind < 4) {
        harness_expect(twin->h, client->session, lines[kind], OK);
    }
}

static void twin_change(struct twin *twin, const struct twin_client *writer, int name) {
    for (int i = 0; i < CLIENTS; i++) {
        struct twin_client *client = &twin->clients[i];
        bool is_meant = client->is_broadcast ? client->prefix < 0 || client->prefix == name / 10
                                             : client->has_read[name];
        client->has_read[name] = false;
        if (client->is_on && is_meant && !(client->is_no_loop && client == writer)) {
            client->is_told[name] = true;
        }
    }
}

static void twin_look(struct twin *twin, struct twin_client *client) {
    const char *output = told(twin->h, client->session);
    bool has_null = strstr(output, "invalidate\r\n_\r\n") != NULL;
    assert_int_equal(has_null, client->is_told_all);
    for (int name = 0; name < NAMES; name++) {
        char text[32];
        snprintf(text, sizeof text, "$3\r\nk%02d\r\n", name);
        if ((strstr(output, text) != NULL) != client->is_told[name] && !client->is_told_all) {
            fail_msg("client %llu, name %d: %s", (unsigned long long)client->session->id, name,
                     output);
        }
        client->is_told[name] = false;
    }
    client->is_told_all = false;
}

static void twin_flush(struct twin *twin) {
    bool has_keys = harness_run_integer(twin->h, twin->clients[0].session, "DBSIZE") > 0;
    for (int i = 0; i < CLIENTS; i++) {
        twin_look(twin, &twin->clients[i]);
    }
    harness_run(twin->h, twin->clients[0].session, "FLUSHDB");
    for (int i = 0; i < CLIENTS && has_keys; i++) {
        twin->clients[i].is_told_all |= twin->clients[i].is_on;
        memset(twin->clients[i].has_read, 0, sizeof twin->clients[i].has_read);
    }
    for (int i = 0; i < CLIENTS; i++) {
        twin_look(twin, &twin->clients[i]);
    }
}

static void twin_reconnect(struct twin *twin, struct twin_client *client) {
    if (client->session != NULL) {
        harness_disconnect(twin->h, client->session);
    }
    *client = (struct twin_client){.session = harness_connect(twin->h)};
    client->session->protocol = 3;
}

TEST(random_reads_and_changes_are_told_as_a_plain_table_has_them) {
    struct twin twin = {.h = harness_create(NULL), .random = random_begin(__func__)};
    for (int i = 0; i < CLIENTS; i++) {
        twin_reconnect(&twin, &twin.clients[i]);
    }
    for (int step = 0; step < 20000; step++) {
        struct twin_client *client = &twin.clients[random_below(&twin.random, CLIENTS)];
        int name = (int)random_below(&twin.random, NAMES);
        uint64_t kind = random_below(&twin.random, 100);
        if (kind < 45) {
            harness_run_format(twin.h, client->session, "ZCARD k%02d", name);
            client->has_read[name] |= client->is_on && !client->is_broadcast;
        } else if (kind < 75) {
            harness_run_format(twin.h, client->session, "ZINCRBY k%02d 1 a", name);
            twin_change(&twin, client, name);
            if (client->is_broadcast || random_below(&twin.random, 2) == 0) {
                for (int i = 0; i < CLIENTS; i++) { /* the tick ends */
                    twin_look(&twin, &twin.clients[i]);
                }
            }
        } else if (kind < 90) {
            twin_look(&twin, client);
        } else if (kind < 96) {
            for (int i = 0; i < CLIENTS; i++) { /* its notes are told before */
                twin_look(&twin, &twin.clients[i]);
            }
            twin_switch(&twin, client, random_below(&twin.random, 6));
        } else if (kind < 98) {
            twin_reconnect(&twin, client);
        } else if (kind == 98) {
            (void)tracking_free_step(&twin.h->server.tracking, 10);
        } else {
            twin_flush(&twin);
        }
    }
    harness_destroy(twin.h);
}
