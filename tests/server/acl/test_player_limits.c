/* LIMITS PLAYERS: results that come with a player's token. */
#include "tests/support/harness.h"
#include "tests/support/jwt_maker.h"

#define NOW (HARNESS_START_US / 1000000)
#define PLAYERS                                                                                    \
    "player-key back hs256 " JWT_MAKER_SECRET "\n"                                                 \
    "user player:back on ~* -@all +lb.add +lb.submit +lb.league +zadd +zincrby +zrem +lb.get\n"
enum { SECOND_US = 1000000 };

static struct session *player(struct harness *h, const char *name) {
    char token[JWT_SIZE_MAX + 100];
    struct session *session = harness_connect(h);
    token[jwt_maker_player(JWT_HS256, name, NOW + 100000, token)] = '\0';
    assert_string_equal(harness_run_format(h, session, "AUTH %s", token), "+OK\r\n");
    return session;
}

static void later(struct harness *h, int64_t seconds) {
    h->wall_us += seconds * SECOND_US;
}

struct value {
    char at[8192];
    size_t size;
};

/* All of a board, its records with it. */
static void value_of(struct harness *h, struct session *all, const char *board,
                     struct value *value) {
    harness_run_format(h, all, "DUMP %s", board);
    value->size = h->reply.size;
    assert_true(value->size <= sizeof value->at);
    memcpy(value->at, h->reply.at, value->size);
}

/* What is refused changes nothing. */
static void refused(struct harness *h, struct session *s, const char *board, const char *line,
                    const char *error) {
    struct session *all = harness_connect(h);
    struct value before;
    struct value after;
    value_of(h, all, board, &before);
    harness_expect(h, s, line, formatted("-%s\r\n", error));
    value_of(h, all, board, &after);
    assert_int_equal(before.size, after.size);
    assert_memory_equal(before.at, after.at, after.size);
    harness_disconnect(h, all);
}

HARNESS_TEST(limits_are_those_of_players_and_others_write_what_they_want, PLAYERS) {
    harness_expect(h, s,
                   "LB.CREATE b FIELD score 32 SIGNED LIMITS PLAYERS MAX 1000 MIN -5 STEP 100",
                   "+OK\r\n");
    struct session *ann = player(h, "ann");
    harness_expect(h, ann, "LB.ADD b 500 ann", ":1\r\n");
    refused(h, ann, "b", "LB.ADD b 1001 ann", "LIMIT MAX 1000: 1001 is above");
    refused(h, ann, "b", "LB.ADD b -6 ann", "LIMIT MIN -5: -6 is below");
    refused(h, ann, "b", "ZADD b 601 ann", "LIMIT STEP 100: 601 is better by 101");
    refused(h, ann, "b", "ZINCRBY b 101 ann", "LIMIT STEP 100: 601 is better by 101");
    refused(h, ann, "b", "LB.ADD b INCR 101 ann", "LIMIT STEP 100: 601 is better by 101");
    refused(h, ann, "b", "ZADD b INCR 101 ann", "LIMIT STEP 100: 601 is better by 101");
    refused(h, ann, "b", "LB.SUBMIT 1 b 601 ann",
            "LIMIT STEP 100: 601 is better by 101 (board 'b')");
    harness_expect(h, ann, "ZADD b 600 ann", ":0\r\n");
    harness_expect(h, ann, "ZINCRBY b -605 ann", "$2\r\n-5\r\n");
    harness_expect(h, s, "ZADD b 5000 ann -100 bob", ":1\r\n");
}

HARNESS_TEST(times_between_results_are_those_of_each_player_on_each_board, PLAYERS) {
    harness_expect(h, s,
                   "LB.CREATE b FIELD score 32 LIMITS PLAYERS EVERY 10 S RESULTS 3 PER MINUTE",
                   "+OK\r\n");
    harness_expect(h, s, "LB.CREATE c FIELD score 32 LIMITS PLAYERS EVERY 1 H", "+OK\r\n");
    struct session *ann = player(h, "ann");
    struct session *again = player(h, "ann");
    struct session *bob = player(h, "bob");
    harness_expect(h, ann, "LB.ADD b 5 ann", ":1\r\n");
    refused(h, again, "b", "LB.ADD b 6 ann", "TOOSOON EVERY 10 S: wait 10 s");
    harness_expect(h, bob, "ZADD b 5 bob", ":1\r\n");
    harness_expect(h, ann, "ZADD c 5 ann", ":1\r\n");
    later(h, 4);
    refused(h, again, "b", "ZADD b 6 ann", "TOOSOON EVERY 10 S: wait 6 s");
    refused(h, ann, "b", "LB.SUBMIT 2 b d 6 ann",
            "NOPERM players make no boards: 'd' is not there "
            "(LB.CREATE makes it) (board 'd')");
    refused(h, ann, "b", "LB.SUBMIT 2 b c 6 ann", "TOOSOON EVERY 10 S: wait 6 s (board 'b')");
    later(h, 6);
    refused(h, ann, "b", "LB.SUBMIT 2 b c 6 ann", "TOOSOON EVERY 1 H: wait 3590 s (board 'c')");
    harness_expect(h, ann, "ZADD b 6 ann", ":0\r\n");
    later(h, 10);
    harness_expect(h, ann, "LB.ADD b 4 ann", ":1\r\n");
    later(h, 10);
    refused(h, again, "b", "ZINCRBY b 1 ann", "TOOSOON RESULTS 3 PER MINUTE: wait 30 s");
    later(h, 30);
    harness_expect(h, again, "ZINCRBY b 1 ann", "$1\r\n5\r\n");
}

HARNESS_TEST(a_gain_counts_from_where_the_player_was_and_from_0_at_first, PLAYERS) {
    harness_expect(h, s, "LB.CREATE b FIELD score 32 SCALE 1 LIMITS PLAYERS GAIN 50.5 PER HOUR",
                   "+OK\r\n");
    harness_expect(h, s, "LB.CREATE laps FIELD ms 32 ASC LIMITS PLAYERS GAIN 50 PER HOUR",
                   "+OK\r\n");
    struct session *ann = player(h, "ann");
    refused(h, ann, "b", "LB.ADD b 51 ann", "LIMIT GAIN 50.5 PER HOUR: 51 is better by 51");
    harness_expect(h, ann, "LB.ADD b 50 ann", ":1\r\n");
    harness_expect(h, ann, "LB.ADD b INCR 0.5 ann", ":1\r\n");
    harness_expect(h, ann, "LB.ADD b 1 ann", ":1\r\n");
    refused(h, ann, "b", "LB.ADD b INCR 0.1 ann", "TOOSOON GAIN 50.5 PER HOUR: wait 3600 s");
    later(h, 3600);
    harness_expect(h, ann, "LB.ADD b INCR 0.1 ann", ":1\r\n");
    harness_expect(h, ann, "LB.ADD laps 90000 ann", ":1\r\n");
    harness_expect(h, ann, "LB.ADD laps 89950 ann", ":1\r\n");
    refused(h, ann, "laps", "LB.ADD laps 89949 ann", "TOOSOON GAIN 50 PER HOUR: wait 3600 s");
    harness_expect(h, ann, "LB.ADD laps 90000 ann", ":1\r\n");
}

HARNESS_TEST(rooms_of_a_league_have_its_limits, PLAYERS) {
    harness_expect(h, s,
                   "LB.LEAGUE CREATE l FIELD score 32 TIME 20 S PERIOD DAY ROOM 2 TIERS 2 UP 1 "
                   "DOWN 1 LIMITS PLAYERS MAX 100 RESULTS 2 PER HOUR",
                   "+OK\r\n");
    struct session *ann = player(h, "ann");
    harness_expect_prefix(h, ann, "LB.LEAGUE ADD l 50 ann", "*");
    harness_expect(h, ann, "LB.LEAGUE ADD l 101 ann", "-LIMIT MAX 100: 101 is above\r\n");
    harness_expect_prefix(h, ann, "LB.LEAGUE ADD l 60 ann", "*");
    harness_expect(h, ann, "LB.LEAGUE ADD l 60 ann",
                   "-TOOSOON RESULTS 2 PER HOUR: wait 3600 s\r\n");
}

/* Not in the module, which has no WINDOW. */
HARNESS_TEST(a_window_counts_results_of_all_its_periods, PLAYERS) {
    harness_expect(h, s,
                   "LB.CREATE b FIELD score 32 TIME 30 S PERIOD DAY WINDOW 3 SUM LIMITS ALL MAX 10 "
                   "RESULTS 2 PER DAY",
                   "+OK\r\n");
    harness_expect(h, s, "ZINCRBY b 10 ann", "$2\r\n10\r\n");
    harness_expect(h, s, "ZINCRBY b 1 ann", "-LIMIT MAX 10: 11 is above\r\n");
    later(h, 86400 - 60);
    harness_expect(h, s, "LB.ADD b INCR -1 ann", ":1\r\n");
    later(h, 60);
    harness_expect(h, s, "ZINCRBY b 10 ann", "$2\r\n19\r\n");
    harness_expect(h, s, "ZINCRBY b -1 ann", "$2\r\n18\r\n");
    harness_expect(h, s, "ZINCRBY b -1 ann", "-TOOSOON RESULTS 2 PER DAY: wait 86400 s\r\n");
}

HARNESS_TEST(players_take_nothing_off_a_board_with_limits, PLAYERS) {
    harness_expect(h, s, "LB.CREATE b FIELD score 32 LIMITS PLAYERS STEP 10", "+OK\r\n");
    struct session *ann = player(h, "ann");
    harness_expect(h, ann, "ZADD b 5 ann", ":1\r\n");
    refused(h, ann, "b", "ZREM b ann",
            "NOPERM a player's token takes no result off a board with LIMITS");
    harness_expect(h, s, "ZREM b ann", ":1\r\n");
}

HARNESS_TEST(what_was_counted_goes_with_a_member_who_is_forgotten_or_moved_on_a_window, PLAYERS) {
    harness_expect(
        h, s,
        "LB.CREATE b FIELD score 32 TIME 30 S PERIOD DAY WINDOW 3 SUM LIMITS ALL RESULTS 1 PER DAY",
        "+OK\r\n");
    harness_expect(h, s, "ZADD b 5 ann", ":1\r\n");
    harness_expect(h, s, "LB.MOVE ann eve", "*2\r\n:1\r\n:0\r\n");
    harness_expect(h, s, "ZADD b 6 ann", ":1\r\n");
    harness_expect(h, s, "ZREM b ann", ":1\r\n");
    harness_expect(h, s, "LB.FORGET ann", ":1\r\n");
    harness_expect(h, s, "ZADD b 7 ann", ":1\r\n");
    harness_expect(h, s, "LB.FORGET ann", ":2\r\n");
    harness_expect(h, s, "ZADD b 8 ann", ":1\r\n");
    harness_expect(h, s, "ZADD b 9 ann", "-TOOSOON RESULTS 1 PER DAY: wait 86400 s\r\n");
}
