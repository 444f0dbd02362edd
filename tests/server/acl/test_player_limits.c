/* LIMITS PLAYERS: results that come with a player's token. */
#include "tests/support/harness.h"
#include "tests/support/jwt_maker.h"

#define NOW (HARNESS_START_US / 1000000)
#define PLAYERS                                                                                    \
    "player-key back hs256 " JWT_MAKER_SECRET "\n"                                                 \
    "user player:back on ~* -@all +lb.add +lb.submit +lb.league +zadd +zincrby +zrem +lb.get\n"

static struct session *player(struct harness *h, const char *name) {
    char token[JWT_SIZE_MAX + 100];
    struct session *session = harness_connect(h);
    token[jwt_maker_player(JWT_HS256, name, NOW + 100000, token)] = '\0';
    assert_string_equal(harness_run_format(h, session, "AUTH %s", token), "+OK\r\n");
    return session;
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
    harness_pass_seconds(h, 4);
    refused(h, again, "b", "ZADD b 6 ann", "TOOSOON EVERY 10 S: wait 6 s");
    refused(h, ann, "b", "LB.SUBMIT 2 b d 6 ann",
            "NOPERM players make no boards: 'd' is not there "
            "(LB.CREATE makes it) (board 'd')");
    refused(h, ann, "b", "LB.SUBMIT 2 b c 6 ann", "TOOSOON EVERY 10 S: wait 6 s (board 'b')");
    harness_pass_seconds(h, 6);
    refused(h, ann, "b", "LB.SUBMIT 2 b c 6 ann", "TOOSOON EVERY 1 H: wait 3590 s (board 'c')");
    harness_expect(h, ann, "ZADD b 6 ann", ":0\r\n");
    harness_pass_seconds(h, 10);
    harness_expect(h, ann, "LB.ADD b 4 ann", ":1\r\n");
    harness_pass_seconds(h, 10);
    refused(h, again, "b", "ZINCRBY b 1 ann", "TOOSOON RESULTS 3 PER MINUTE: wait 30 s");
    harness_pass_seconds(h, 30);
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
    harness_pass_seconds(h, 3600);
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
    harness_pass_seconds(h, 86400 - 60);
    harness_expect(h, s, "LB.ADD b INCR -1 ann", ":1\r\n");
    harness_pass_seconds(h, 60);
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

/* ---- HOLD ---- */

#define WATCHING                                                                                   \
    "player-key back hs256 " JWT_MAKER_SECRET "\n"                                                 \
    "user player:back on ~* &* -@all +lb.add +zadd +zincrby +lb.get +lb.held +lb.range "           \
    "+lb.around "                                                                                  \
    "+lb.info +lb.list +dump +lb.count +zscan +zrange +lb.approve +lb.reject +object|encoding "    \
    "+psubscribe\nnotify-board-events yes\nnotify-keyspace-events KEA\n"

/* No reply to bob has her name, or the value. */
static void sees_nothing(struct harness *h, struct session *bob, const char *line) {
    const char *reply = harness_run(h, bob, line);
    if (strstr(reply, "ann") != NULL || strstr(reply, "99999") != NULL) {
        fail_msg("%s: %s", line, reply);
    }
}

HARNESS_TEST(what_is_held_is_seen_by_its_player_and_by_nobody_else, WATCHING) {
    static const char *const lines[] = {
        "LB.HELD b",
        "LB.RANGE b 0 -1",
        "LB.AROUND b MEMBER bob 5",
        "LB.GET b 1 bob",
        "LB.GET b 2 ann bob WITHHELD",
        "LB.INFO b",
        "LB.LIST",
        "DUMP b",
        "LB.COUNT b",
        "ZSCAN b 0",
        "ZRANGE b 0 -1 WITHSCORES",
        "LB.HELD b MEMBER bob",
    };
    struct session *ann = player(h, "ann");
    struct session *bob = player(h, "bob");
    struct session *ear = player(h, "ear");
    harness_expect(h, s, "LB.CREATE b FIELD score 32 HOLD PLAYERS OVER 100", "+OK\r\n");
    harness_expect(h, s, "LB.ADD b 500 server", ":1\r\n");
    harness_expect(h, bob, "LB.ADD b 7 bob", ":1\r\n");
    harness_run(h, ear, "PSUBSCRIBE *");
    size_t heard = ear->output.size;
    harness_expect(h, ann, "LB.ADD b WITHHELD 99999 ann", "*2\r\n:0\r\n:1\r\n");
    if (ear->output.size > heard) {
        const char *text = formatted("%.*s", (int)ear->output.size, ear->output.at);
        assert_null(strstr(text, "ann"));
        assert_null(strstr(text, "99999"));
    }
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        sees_nothing(h, bob, lines[i]);
    }
    harness_expect(h, bob, "LB.HELD b", "*2\r\n$1\r\n0\r\n*0\r\n");
    harness_expect(h, bob, "LB.HELD b MEMBER ann",
                   "-NOPERM a player's token shows what is held of its own member alone\r\n");
    harness_expect(h, bob, "DUMP b",
                   "-NOPERM DUMP of a board that holds results needs the right to LB.HELD, and no "
                   "player's token\r\n");
    harness_expect_prefix(h, ann, "LB.APPROVE b ann", "-NOPERM ");
    harness_expect_prefix(h, ann, "LB.REJECT b ann", "-NOPERM ");
    assert_non_null(strstr(harness_run(h, ann, "LB.HELD b"), "99999"));
    assert_non_null(strstr(harness_run(h, s, "LB.HELD b"), "player:back"));
    harness_expect(h, s, "LB.APPROVE b ann 1", ":1\r\n");
    harness_expect(h, s, "LB.APPROVE b ann 1", ":0\r\n");
    harness_expect(h, s, "ZSCORE b ann", "$5\r\n99999\r\n");
    harness_expect(h, ann, "LB.ADD b 200000 ann", ":0\r\n");
    harness_expect(h, s, "ACL SETUSER eve on nopass ~* +lb.info", "+OK\r\n");
    struct session *eve = harness_connect(h);
    harness_expect(h, eve, "AUTH eve x", "+OK\r\n");
    assert_non_null(strstr(harness_run(h, eve, "LB.INFO b"), "held\r\n$-1"));
    assert_non_null(strstr(harness_run(h, s, "LB.INFO b"), "held\r\n:1"));
}

HARNESS_TEST(a_player_asks_for_the_own_record_with_what_is_held, WATCHING) {
    static const char *const options[] = {"", "SORT ", "WHERE country DE ", "PCT TAGS "};
    struct session *ann = player(h, "ann");
    struct session *bob = player(h, "bob");
    harness_expect(h, s, "LB.CREATE b FIELD score 32 KEEP BEST TAG country 8 HOLD PLAYERS OVER 100",
                   "+OK\r\n");
    harness_expect(h, ann, "LB.GET none 1 ann WITHHELD", "*2\r\n*1\r\n*-1\r\n*0\r\n");
    harness_expect(h, ann, "LB.GET b 1 ann WITHHELD", "*2\r\n*1\r\n*-1\r\n*0\r\n");
    harness_expect(h, ann, "LB.ADD b TAG country DE 101 ann", ":0\r\n");
    harness_expect(h, ann, "LB.ADD b TAG country DE 102 ann", ":0\r\n");
    /* Not ranked yet; the newest first. */
    harness_expect(h, ann, "LB.GET b 1 ann WITHHELD",
                   "*2\r\n*1\r\n*-1\r\n*2\r\n"
                   "*3\r\n:2\r\n*1\r\n:102\r\n:1767225600000\r\n"
                   "*3\r\n:1\r\n*1\r\n:101\r\n:1767225600000\r\n");
    harness_expect(h, ann, "LB.ADD b TAG country DE 50 ann", ":1\r\n");
    harness_expect(h, bob, "LB.ADD b TAG country DE 60 bob", ":1\r\n");
    for (size_t i = 0; i < COUNT_OF(options); i++) {
        const char *line = formatted("LB.GET b 2 bob ann %sWITHHELD", options[i]);
        const char *reply = harness_run(h, ann, line);
        assert_memory_equal(reply, "*2\r\n*2\r\n*", 9);
        assert_non_null(strstr(reply, ":102\r\n"));
        /* Nobody else: not another player, nor who is none, nor the player who asks for others alone. */
        assert_null(strstr(harness_run(h, bob, line), "102"));
        assert_null(strstr(harness_run(h, s, line), "102"));
    }
    assert_null(strstr(harness_run(h, ann, "LB.GET b 1 bob WITHHELD"), "102"));
    assert_null(strstr(harness_run(h, ann, "LB.GET b 1 ann"), "102"));
    harness_expect_prefix(h, ann, "LB.GET b 1 ann WITHHELD WHERE clan x", "-");
    harness_expect(h, s, "LB.REJECT b ann", ":2\r\n");
    assert_null(strstr(harness_run(h, ann, "LB.GET b 1 ann WITHHELD"), "102"));
}
