/* Boards with RATING: LB.MATCH LB.PREDICT LB.RATE LB.RATING. The arithmetic itself: tests/codec/test_rating.c. */
#include "codec/rating.h"
#include "tests/server/zset_fixture.h"
#include "tests/support/random.h"

enum { NOW_S = 1767225600 };

static const char no_rating[] = "-ERR board has no RATING: LB.CREATE key ... RATING "
                                "ELO|GLICKO2|OPENSKILL makes one that has";
static const char only_matches[] = "-ERR board has RATING: LB.MATCH and LB.RATE write to it, and "
                                   "ZREM takes players off";

static void create(struct harness *h, const char *key, const char *rating) {
    zset_expect(h, formatted("LB.CREATE %s RATING %s", key, rating), "+OK");
}

ZSET_TEST(a_match_changes_all_its_players_and_replies_a_record_of_each) {
    create(h, "elo", "ELO");
    zset_expect(h, "LB.MATCH elo TEAM 1 ann TEAM 1 bob",
                "[[ann 1500 1520 nil :1 nil :0] [bob 1500 1480 nil :1 nil :1]]");
    zset_expect(h, "LB.RANGE elo 0 -1",
                "[[ann :0 :1767225600000 1520] [bob :1 :1767225600000 1480]]");
    create(h, "glicko", "GLICKO2 TAU 0.75 PERIOD-MS 0");
    zset_expect(h, "LB.MATCH glicko TEAM 1 ann TEAM 1 bob",
                "[[ann 1500 1662.212001 290.230508 :1 nil :0] "
                "[bob 1500 1337.787999 290.230508 :1 nil :1]]");
    zset_expect(h, "LB.RATING glicko bob zoe",
                "[[bob :1 1337.787999 290.230508 0.05999927 :1 :0 :0 :1 :1767225600000] nil*]");
    create(h, "skill", "OPENSKILL TAU 0");
    zset_expect(h, "LB.MATCH skill TEAM 1 ann TEAM 1 bob TEAM 1 cid",
                "[[ann 25 27.868876553 8.20483703 :1 nil :0] "
                "[bob 25 25.717219138 8.057829747 :1 nil :1] "
                "[cid 25 21.413904309 8.057829747 :1 nil :2]]");
}

ZSET_TEST(ranks_scores_and_weights_say_how_a_match_ended) {
    create(h, "a", "ELO");
    create(h, "b", "ELO");
    create(h, "c", "ELO");
    zset_expect(h, "LB.MATCH a RANKS 2 1 TEAM 1 ann TEAM 1 bob",
                "[[ann 1500 1480 nil :1 nil :1] [bob 1500 1520 nil :1 nil :0]]");
    zset_expect(h, "LB.MATCH b TEAM 1 ann TEAM 1 bob SCORES 3 7.5",
                "[[ann 1500 1480 nil :1 nil :1] [bob 1500 1520 nil :1 nil :0]]");
    zset_expect(h, "LB.MATCH c SCORES -1 -1 TEAM 1 ann TEAM 1 bob",
                "[[ann 1500 1500 nil :1 nil :0] [bob 1500 1500 nil :1 nil :1]]");
    zset_expect(h, "LB.RATING c ann", "[[ann :0 1500 nil nil :1 :0 :1 :0 :1767225600000]]");
    create(h, "w", "OPENSKILL");
    zset_expect_part(h, "LB.MATCH w TEAM 2 a b TEAM 2 c d WEIGHTS 1 0.5 1 1", "[[a 25 ");
    zset_expect(h, "LB.MATCH a TEAM 1 ann TEAM 1 bob WEIGHTS 1 1",
                "-ERR WEIGHTS are for RATING OPENSKILL");
}

ZSET_TEST(what_is_wrong_in_a_match_changes_nothing) {
    static const char *const rows[][2] = {
        {"LB.MATCH k TEAM 1 ann TEAM 1 ann", "-ERR player 'ann' is in the match twice"},
        {"LB.MATCH none TEAM 1 ann TEAM 1 bob", "-ERR no such key"},
        {"LB.MATCH plain TEAM 1 ann TEAM 1 bob", no_rating},
        {"LB.PREDICT plain TEAM 1 ann TEAM 1 bob", no_rating},
        {"LB.RATING plain ann", no_rating},
        {"LB.RATE plain ann 1500", no_rating},
        {"LB.GET plain 1 ann RATING", no_rating},
        {"LB.RATE k ann 1500 50", "-ERR RATING ELO has no deviation"},
        {"LB.MATCH \"\" TEAM 1 ann TEAM 1 bob", "-ERR key is 0 bytes long: 1..65536 are allowed"},
        {"LB.RATE \"\" ann 1500", "-ERR key is 0 bytes long: 1..65536 are allowed"},
    };
    static const char *const refused[] = {
        "LB.MATCH k TEAM 1 ann RANKS 1 2 SCORES",
        "LB.MATCH k TEAM 2 ann TEAM 1 bob",
        "LB.MATCH k TEAM 0 ann TEAM 1 bob",
        "LB.MATCH k RANKS 1 TEAM 1 ann TEAM 1 bob",
        "LB.MATCH k TEAM 1 ann TEAM 1 bob WEIGHTS 1",
        "LB.MATCH k TEAM 1 ann TEAM 1 bob bob",
        "LB.MATCH k TEAM x ann TEAM 1 bob",
        "LB.MATCH k AT x TEAM 1 ann TEAM 1 bob",
        "LB.MATCH k RANKS 1.5 2 TEAM 1 ann TEAM 1 bob",
        "LB.MATCH k ONCE TEAM 1 ann TEAM 1 bob",
        "LB.RATE k ann x",
        "LB.PREDICT k TEAM 1 ann TEAM 1 bob AT 5",
    };
    create(h, "k", "ELO");
    zset_expect(h, "ZADD plain 1 ann", ":1");
    zset_expect(h, "LB.MATCH k TEAM 1 kim TEAM 1 zoe",
                "[[kim 1500 1520 nil :1 nil :0] [zoe 1500 1480 nil :1 nil :1]]");
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        zset_expect(h, rows[i][0], rows[i][1]);
    }
    for (size_t i = 0; i < COUNT_OF(refused); i++) {
        zset_expect_part(h, refused[i], "-ERR ");
    }
    zset_expect(h, "LB.RATING k ann bob kim",
                "[nil* nil* [kim :0 1520 nil nil :1 :1 :0 :0 :1767225600000]]");
    zset_expect(h, "ZCARD k", ":2");
}

ZSET_TEST(only_matches_write) {
    static const char *const rows[] = {
        "ZADD k 5 x",
        "ZINCRBY k 5 ann",
        "LB.ADD k 5 x",
        "ZPOPMAX k",
        "ZREMRANGEBYRANK k 0 -1",
        "ZUNIONSTORE k 1 plain",
        "ZRANGESTORE k plain 0 -1",
    };
    create(h, "k", "ELO");
    zset_expect(h, "ZADD plain 1 ann", ":1");
    zset_expect_part(h, "LB.MATCH k TEAM 1 ann TEAM 1 bob", "[[ann 1500 1520 ");
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        zset_expect(h, rows[i], only_matches);
    }
    zset_expect(h, "LB.SUBMIT 1 k 5 x", formatted("%s (board 'k')", only_matches));
    zset_expect(h, "ZREM k bob zoe", ":1");
    zset_expect(h, "LB.RATING k ann bob",
                "[[ann :0 1520 nil nil :1 :1 :0 :0 :1767225600000] nil*]");
    zset_expect(h, "ZREM k ann", ":1");
    zset_expect(h, "EXISTS k", ":1");
    zset_expect(h, "LB.ALTER k FREEZE", "+OK");
    zset_expect_part(h, "LB.MATCH k TEAM 1 ann TEAM 1 bob", "-FROZEN ");
}

ZSET_TEST(options_say_their_names_and_limits) {
    static const char *const rows[][2] = {
        {"LB.CREATE x RATING", "-ERR RATING needs ELO, GLICKO2 or OPENSKILL (LB.CREATE key ...)"},
        {"LB.CREATE x RATING TRUESKILL", "-ERR RATING 'TRUESKILL' is unknown: use ELO, GLICKO2 or "
                                         "OPENSKILL (LB.CREATE key ...)"},
        {"LB.CREATE x RATING ELO K", "-ERR RATING ELO K needs a value (LB.CREATE key ...)"},
        {"LB.CREATE x RATING ELO K 20 K 30",
         "-ERR RATING ELO K may be given only once (LB.CREATE key ...)"},
        {"LB.CREATE x RATING ELO CAP 5",
         "-ERR RATING excludes CAP, LIMIT, KEEP BEST, PACKED, SCORE+FRACTION and leagues: all "
         "players are rated, and ratings rise and fall"},
        {"LB.CREATE x RATING ELO PERIOD DAY WINDOW 3 SUM",
         "-ERR WINDOW and RATING exclude each other (LB.CREATE key ...)"},
        {"LB.CREATE x FIELD a 10 RATING ELO",
         "-ERR RATING needs a field with room for all ratings from FLOOR to CEILING: FIELD rating "
         "32 SIGNED has it"},
        {"LB.CREATE x FIELD a 30 FIELD b 4 RATING ELO",
         "-ERR RATING needs a layout of one field, without ASC, DOUBLE and DECAY: the rating "
         "ranks"},
        {"LB.ALTER k RATING GLICKO2", "-ERR RATING, and its system, are given when a board is "
                                      "created: LB.CREATE"},
        {"LB.ALTER plain RATING ELO", "-ERR RATING, and its system, are given when a board is "
                                      "created: LB.CREATE"},
        {"LB.LEAGUE CREATE l RATING ELO PERIOD WEEK ROOM 9 TIERS 3 UP 1 DOWN 1",
         "-ERR a league takes no RATING: its rooms take results"},
        {"LB.ALTER k RATING ELO Z 2", "-ERR RATING Z cannot be changed: all players are ranked by "
                                      "it"},
    };
    create(h, "k", "ELO K 16 MINGAMES 3");
    zset_expect_part(h, "LB.INFO k", "rating ELO K-NEW 16 K 16 K-TOP 16 MINGAMES 3");
    zset_expect(h, "ZADD plain 1 ann", ":1");
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        zset_expect(h, rows[i][0], rows[i][1]);
    }
    zset_expect_part(h, "LB.CREATE x RATING GLICKO2 TAU 99999", "-ERR RATING GLICKO2 TAU '99999'");
    zset_expect(h, "LB.ALTER k RATING ELO K-NEW 40", "+OK");
    zset_expect_part(h, "LB.INFO k", "rating ELO K-NEW 40 K 16 K-TOP 16 MINGAMES 3");
    zset_expect_part(h, "LB.INFO k", "FIELD rating 30 SIGNED SCALE 2 TIME 31 S");
    zset_expect_part(h, "LB.INFO plain", "rating nil");
}

ZSET_TEST(who_has_too_few_games_is_rated_and_not_ranked) {
    create(h, "k", "ELO MINGAMES 2");
    zset_expect(h, "LB.MATCH k TEAM 1 ann TEAM 1 bob",
                "[[ann 1500 1520 nil :1 nil nil] [bob 1500 1480 nil :1 nil nil]]");
    zset_expect(h, "ZCARD k", ":0");
    zset_expect(h, "EXISTS k", ":1");
    zset_expect(h, "LB.MATCH k TEAM 1 ann TEAM 1 cid",
                "[[ann 1520 1538.8 nil :2 nil :0] [cid 1500 1481.2 nil :1 nil nil]]");
    zset_expect(h, "LB.RANGE k 0 -1 RATING",
                "[[ann :0 :1767225600000 1538.8 "
                "[1538.8 nil nil :2 :2 :0 :0 :1767225600000]]]");
    zset_expect(h, "LB.GET k 2 bob ann RATING",
                "[nil* [ann :0 :1767225600000 1538.8 "
                "[1538.8 nil nil :2 :2 :0 :0 :1767225600000]]]");
    zset_expect(h, "LB.AROUND k MEMBER ann 3 RATING",
                "[[ann :0 :1767225600000 1538.8 [1538.8 nil nil :2 :2 :0 :0 :1767225600000]]]");
}

ZSET_TEST(who_is_stale_comes_back_by_playing) {
    shadow_end(h->shadow); /* there members leave by a timer */
    create(h, "k", "ELO STALE 1 HOUR");
    zset_expect_part(h, "LB.MATCH k TEAM 1 ann TEAM 1 bob", "[[ann 1500 1520 ");
    harness_pass_seconds(h, 4000);
    harness_drop_stale(h);
    zset_expect(h, "ZCARD k", ":0");
    zset_expect(h, "LB.RATING k ann", "[[ann nil 1520 nil nil :1 :1 :0 :0 :1767225600000]]");
    zset_expect(h, "LB.MATCH k TEAM 1 ann TEAM 1 cid",
                "[[ann 1520 1538.8 nil :2 nil :0] [cid 1500 1481.2 nil :1 nil :1]]");
}

ZSET_TEST(a_match_counts_once) {
    create(h, "k", "ELO");
    zset_expect(h, "LB.MATCH k ONCE m1 TEAM 1 ann TEAM 1 bob",
                "[[ann 1500 1520 nil :1 nil :0] [bob 1500 1480 nil :1 nil :1]]");
    for (int i = 0; i < 2; i++) {
        zset_expect(h, "LB.MATCH k ONCE m1 TEAM 1 ann TEAM 1 bob",
                    "[[ann 1520 1520 nil :1 :0 :0] [bob 1480 1480 nil :1 :1 :1]]");
    }
    /* One that is refused has not used its id. */
    zset_expect(h, "LB.BAN bob", ":1");
    zset_expect(h, "LB.MATCH k ONCE m2 TEAM 1 ann TEAM 1 bob",
                "-BANNED member is banned from this board: LB.UNBAN ends that");
    zset_expect(h, "LB.RATING k bob", "[[bob nil 1480 nil nil :1 :0 :0 :1 :1767225600000]]");
    zset_expect(h, "LB.UNBAN bob", ":1");
    zset_expect_part(h, "LB.MATCH k ONCE m2 TEAM 1 ann TEAM 1 bob", "[[ann 1520 ");
    zset_expect_part(h, "LB.RATING k bob", "[[bob :1 ");
}

/* As with every other command: what has become of the board meanwhile does not make it another match. */
ZSET_TEST(a_repeat_is_answered_where_a_match_would_be_refused) {
    static const char again[] = "LB.MATCH k ONCE m1 TEAM 1 ann TEAM 1 bob";
    static const char now[] = "[[ann 1520 1520 nil :1 :0 :0] [bob 1480 1480 nil :1 :1 :1]]";
    create(h, "k", "ELO");
    zset_expect_part(h, again, "[[ann 1500 ");
    zset_expect(h, "LB.MATCH k ONCE m1 TEAM 1 ann TEAM 1 bob WEIGHTS 1 1", now);
    zset_expect(h, "LB.ALTER k FREEZE", "+OK");
    zset_expect(h, again, now);
    shadow_end(h->shadow); /* in the module ids go with their board */
    zset_expect(h, "RENAME k other", "+OK");
    zset_expect(h, again, "[]");
    zset_expect(h, "RENAME other k", "+OK");
    zset_expect(h, "LB.BAN bob", ":1");
    zset_expect(h, again, "[[ann 1520 1520 nil :1 :0 :0] [bob 1480 1480 nil :1 nil nil]]");
    zset_expect(h, "DEL k", ":1");
    zset_expect(h, again, "[]");
    zset_expect(h, "ZADD k 1 ann", ":1");
    zset_expect(h, again, "[]");
    zset_expect(h, "DEL k", ":1");
    zset_expect(h, "HSET k f 1", ":1");
    zset_expect_part(h, again, "-WRONGTYPE ");
}

/* Who is not ranked yet could not be ranked by any later match. */
ZSET_TEST(a_time_that_the_layout_has_not_is_refused_also_of_those_who_are_not_ranked) {
    static const char *const boards[] = {"ELO MINGAMES 2", "ELO"};
    for (size_t i = 0; i < COUNT_OF(boards); i++) {
        create(h, "k", boards[i]);
        zset_expect_part(h, "LB.MATCH k AT 281474976710655 TEAM 1 ann TEAM 1 bob", "-ERR ");
        zset_expect_part(h, "LB.MATCH k AT 1 TEAM 1 ann TEAM 1 bob", "-ERR ");
        zset_expect(h, "LB.RATING k ann bob", "[nil* nil*]");
        zset_expect_part(h, "LB.MATCH k TEAM 1 ann TEAM 1 bob", "[[ann 1500 1520 ");
        zset_expect(h, "DEL k", ":1");
    }
}

HARNESS_TEST(a_layout_is_chosen_where_the_default_could_not_rate,
             "default-layout decimals\nlayout pair FIELD a 20 FIELD b 12\nboard p* pair\n") {
    static const char *const keys[] = {"any", "pairs"};
    for (size_t i = 0; i < COUNT_OF(keys); i++) {
        create(h, keys[i], "GLICKO2");
        zset_expect_part(h, formatted("LB.INFO %s", keys[i]),
                         "FIELD rating 30 SIGNED SCALE 2 TIME 31 S");
        zset_expect_part(h, formatted("LB.MATCH %s TEAM 1 ann TEAM 1 bob", keys[i]), "[[ann ");
    }
    zset_expect_part(h, "LB.CREATE x FIELD a 20 FIELD b 12 RATING ELO", "-ERR RATING needs ");
}

ZSET_TEST(a_player_is_seeded_forgotten_and_moved) {
    create(h, "k", "GLICKO2 PERIOD-MS 0");
    zset_expect(h, "LB.RATE k ann 1800.5 60", "[ann :0 1800.5 60 0.06 :0 :0 :0 :0 nil]");
    zset_expect(h, "LB.RATE k ann 1700", "[ann :0 1700 60 0.06 :0 :0 :0 :0 nil]");
    zset_expect(h, "LB.PREDICT k TEAM 1 bob TEAM 1 cid", "[[0.5 0.5] 1]");
    zset_expect(h, "LB.MOVE ann eve", "[:1 :0]");
    zset_expect(h, "LB.RATING k ann eve", "[nil* [eve :0 1700 60 0.06 :0 :0 :0 :0 nil]]");
    zset_expect_part(h, "LB.RATE k bob 1500", "[bob ");
    zset_expect(h, "LB.MOVE eve bob", "[:0 :1]");
    zset_expect(h, "LB.ALTER k RATING GLICKO2 MINGAMES 5", "+OK");
    zset_expect_part(h, "LB.RATE k bob 1500", "[bob nil ");
    zset_expect(h, "LB.FORGET bob", ":1");
    zset_expect(h, "LB.RATING k bob", "[nil*]");
    zset_expect(h, "LB.FORGET eve", ":1");
    zset_expect(h, "ZCARD k", ":0");
}

ZSET_TEST(records_go_where_their_board_goes) {
    static const char of_both[] = "[[ann :0 1520 nil nil :1 :1 :0 :0 :1767225600000] "
                                  "[bob :1 1480 nil nil :1 :0 :0 :1 :1767225600000]]";
    create(h, "k", "ELO PERIOD MONTH COPY");
    zset_expect_part(h, "LB.MATCH k TEAM 1 ann TEAM 1 bob", "[[ann 1500 1520 ");
    zset_expect(h, "COPY k copy", ":1");
    zset_expect(h, "LB.RATING copy ann bob", of_both);
    zset_expect(h, "RENAME copy moved", "+OK");
    zset_expect(h, "LB.RATING moved ann bob", of_both);
    zset_expect_part(h, "LB.MATCH moved TEAM 1 bob TEAM 1 ann", "[[bob 1480 ");
    zset_expect(h, "LB.RATING k ann bob", of_both);
    zset_expect(h, "LB.ROLL moved then", ":2");
    zset_expect(h, "LB.RATING moved ann bob", "[nil* nil*]");
    zset_expect_part(h, "LB.RATING then ann", "[[ann :");
    zset_expect(h, "DEL moved", ":1");
    zset_expect(h, "RENAME k moved", "+OK");
    zset_expect(h, "LB.RATING moved ann bob", of_both);
}

/* ---- against a naive model ---- */

enum { PLAYERS = 24 };

/* Who is on the board: those with the games and the deviation, the best first. */
static void check_board(struct harness *h, const char *key, uint32_t games_min, double dev_max) {
    double before = 1e18;
    uint32_t ranked = 0;
    for (uint32_t i = 0; i < PLAYERS; i++) {
        char reply[512];
        double rating, deviation = 0;
        char rank[32];
        int games;
        snprintf(reply, sizeof reply, "%s", zset_run(h, "LB.RATING %s p%u", key, i));
        if (strcmp(reply, "[nil*]") == 0) {
            zset_expect(h, formatted("ZSCORE %s p%u", key, i), "nil");
            continue;
        }
        assert_int_equal(
            sscanf(reply, "[[%*s %31s %lf %lf %*s :%d", rank, &rating, &deviation, &games), 4);
        bool is_ranked = (uint32_t)games >= games_min && (dev_max <= 0 || deviation <= dev_max);
        assert_int_equal(is_ranked, strcmp(rank, "nil") != 0);
        ranked += is_ranked;
    }
    zset_expect(h, formatted("ZCARD %s", key), formatted(":%u", ranked));
    for (uint32_t i = 0; i < ranked; i++) {
        double rating;
        assert_int_equal(sscanf(zset_run(h, "LB.RANGE %s %u %u RATING", key, i, i),
                                "[[%*s :%*d :%*d %lf", &rating),
                         1);
        assert_true(rating <= before);
        before = rating;
    }
}

ZSET_TEST(ranked_are_those_with_games_and_certainty) {
    struct random random = random_begin(__func__);
    create(h, "k", "GLICKO2 PERIOD-MS 0 MINGAMES 3 MAXDEV 200");
    for (int round = 0; round < 150; round++) {
        uint32_t a = (uint32_t)random_below(&random, PLAYERS);
        uint32_t b = (a + 1 + (uint32_t)random_below(&random, PLAYERS - 1)) % PLAYERS;
        if (random_below(&random, 12) == 0) {
            zset_run(h, "LB.RATE k p%u %u %u", a, 1000 + (unsigned)random_below(&random, 1000),
                     50 + (unsigned)random_below(&random, 300));
        } else if (random_below(&random, 15) == 0) {
            zset_run(h, "ZREM k p%u", a);
        } else {
            zset_run(h, "LB.MATCH k RANKS %u %u TEAM 1 p%u TEAM 1 p%u",
                     (unsigned)random_below(&random, 2), (unsigned)random_below(&random, 2), a, b);
        }
        check_board(h, "k", 3, 200);
    }
}

/* ---- memory ---- */

ZSET_TEST(many_teams_and_players_are_bounded) {
    struct text_of_match {
        char at[64 * 1024];
    } *text = malloc(sizeof *text);
    size_t size = 0;
    create(h, "k", "OPENSKILL");
    for (int players = 120; players <= 160; players += 40) {
        size = (size_t)snprintf(text->at, sizeof text->at, "LB.MATCH k");
        for (int i = 0; i < players; i++) {
            size +=
                (size_t)snprintf(text->at + size, sizeof text->at - size, " TEAM 2 x%d y%d", i, i);
        }
        zset_expect_part(h, text->at,
                         players > RATING_TEAMS_MAX ? "-ERR a match has at most" : "[[x0 25 ");
    }
    /* The same player twice among many. */
    size = (size_t)snprintf(text->at, sizeof text->at, "LB.MATCH k");
    for (int i = 0; i < 40; i++) {
        size += (size_t)snprintf(text->at + size, sizeof text->at - size, " TEAM 1 q%d", i % 39);
    }
    zset_expect(h, text->at, "-ERR player 'q0' is in the match twice");
    free(text);
}

ZSET_TEST(ratings_of_many_are_those_of_each_one) {
    enum { NAMED = 40 }; /* every third has none */
    char names[NAMED * 8] = "";
    char records[NAMED * 96] = "[";
    zset_run(h, "LB.CREATE k RATING ELO");
    for (int i = 0; i < NAMED; i++) {
        if (i % 3 > 0) {
            zset_run(h, "LB.MATCH k TEAM 1 p%d TEAM 1 other", i);
        }
    }
    for (int i = 0; i < NAMED; i++) {
        const char *one = zset_run(h, "LB.RATING k p%d", i);
        snprintf(names + strlen(names), sizeof names - strlen(names), " p%d", i);
        snprintf(records + strlen(records), sizeof records - strlen(records), "%s%.*s",
                 i > 0 ? " " : "", (int)strlen(one) - 2, one + 1);
    }
    strcat(records, "]");
    assert_string_equal(records, zset_run(h, "LB.RATING k%s", names));
}
