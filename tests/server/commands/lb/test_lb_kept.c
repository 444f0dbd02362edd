/* Matches that a board keeps: LB.UNMATCH LB.REFUND. */
#include "codec/bytes.h"
#include "tests/server/zset_fixture.h"
#include "tests/support/random.h"

static void create(struct harness *h, const char *key, const char *rating) {
    zset_expect(h, formatted("LB.CREATE %s RATING %s", key, rating), "+OK");
}

static const char *rated(struct harness *h, const char *key, const char *names) {
    return zset_run(h, "LB.RATING %s %s", key, names);
}

static void expect_rated(struct harness *h, const char *names, const char *expected) {
    zset_expect(h, formatted("LB.RATING k %s", names), expected);
}

/* What is wrong with a match that is the last of its players leaves no trace. */
ZSET_TEST(the_last_match_of_its_players_is_undone_to_the_last_digit) {
    static const char *const systems[] = {"ELO", "GLICKO2", "OPENSKILL", "OPENSKILL MODEL 1",
                                          "ELO MINGAMES 2 TOP 1530"};
    for (size_t i = 0; i < COUNT_OF(systems); i++) {
        char before[1024];
        create(h, "k", formatted("%s KEEP-MATCHES 10", systems[i]));
        zset_expect_part(h, "LB.MATCH k ONCE a TEAM 2 ann bob TEAM 1 cid", "[[ann ");
        harness_pass_seconds(h, 3600);
        snprintf(before, sizeof before, "%s", rated(h, "k", "ann bob cid"));
        zset_expect_part(h, "LB.MATCH k ONCE b TEAM 1 cid TEAM 2 ann bob", "[[cid ");
        assert_string_not_equal(rated(h, "k", "ann bob cid"), before);
        zset_expect_part(h, "LB.UNMATCH k b", "[[cid ");
        /* The deviation that is shown has grown meanwhile, and does so in both. */
        assert_string_equal(rated(h, "k", "ann bob cid"), before);
        zset_expect(h, "DEL k", ":1");
    }
}

ZSET_TEST(a_match_is_undone_once) {
    create(h, "k", "ELO KEEP-MATCHES 10");
    zset_expect(h, "LB.MATCH k ONCE a TEAM 1 ann TEAM 1 bob",
                "[[ann 1500 1520 nil :1 nil :0] [bob 1500 1480 nil :1 nil :1]]");
    zset_expect(h, "LB.MATCH k ONCE b TEAM 1 ann TEAM 1 bob",
                "[[ann 1520 1537.6 nil :2 :0 :0] [bob 1480 1462.4 nil :2 :1 :1]]");
    /* Not the last one: what it added is subtracted, and what came later stays as it was computed. */
    zset_expect(h, "LB.UNMATCH k a",
                "[[ann 1537.6 1517.6 nil :1 :0 :0] [bob 1462.4 1482.4 nil :1 :1 :1]]");
    for (int i = 0; i < 2; i++) {
        zset_expect(h, "LB.UNMATCH k a",
                    "[[ann 1517.6 1517.6 nil :1 :0 :0] [bob 1482.4 1482.4 nil :1 :1 :1]]");
    }
    /* Its id has been used. */
    zset_expect(h, "LB.MATCH k ONCE a TEAM 1 ann TEAM 1 bob",
                "[[ann 1517.6 1517.6 nil :1 :0 :0] [bob 1482.4 1482.4 nil :1 :1 :1]]");
    zset_expect(h, "LB.UNMATCH k b",
                "[[ann 1517.6 1500 nil :0 :0 :0] [bob 1482.4 1500 nil :0 :1 :1]]");
    expect_rated(h, "ann", "[[ann :0 1500 nil nil :0 :0 :0 :0 :1767225600000]]");
    zset_expect(h, "LB.RANGE k 0 -1",
                "[[ann :0 :1767225600000 1500] [bob :1 :1767225600000 1500]]");
}

ZSET_TEST(what_is_not_kept_cannot_be_undone) {
    static const char none[] = "-ERR no match 'a' is kept: KEEP-MATCHES and KEEP-HOURS say how "
                               "many are, and for how long";
    create(h, "k", "ELO");
    zset_expect_part(h, "LB.MATCH k ONCE a TEAM 1 ann TEAM 1 bob", "[[ann ");
    zset_expect(h, "LB.UNMATCH k a", none);
    zset_expect(h, "LB.UNMATCH k \"\"", "-ERR a match has an id of 1 to 64 bytes");
    zset_expect(h, "LB.UNMATCH none a", "-ERR no such key");
    zset_expect(h, "LB.ALTER k RATING ELO KEEP-MATCHES 3 KEEP-HOURS 5", "+OK");
    zset_expect_part(h, "LB.INFO k", "rating ELO KEEP-MATCHES 3 KEEP-HOURS 5");
    zset_expect(h, "LB.ALTER k RATING ELO KEEP-MATCHES 0",
                "-ERR RATING KEEP-MATCHES cannot become 0: 1 keeps one match");
    zset_expect(h, "LB.UNMATCH k a", none);
    for (int i = 0; i < 4; i++) {
        zset_expect_part(h, formatted("LB.MATCH k ONCE m%d TEAM 1 ann TEAM 1 bob", i), "[[ann ");
    }
    zset_expect_part(h, "LB.UNMATCH k m0", "-ERR no match 'm0' is kept");
    zset_expect_part(h, "LB.UNMATCH k m1", "[[ann ");
    harness_pass_seconds(h, 5 * 3600 + 1);
    zset_expect_part(h, "LB.UNMATCH k m3", "-ERR no match 'm3' is kept");
    zset_expect(h, "LB.ALTER k FREEZE", "+OK");
    zset_expect_part(h, "LB.UNMATCH k m3", "-FROZEN ");
    zset_expect_part(h, "LB.REFUND k ann SINCE 0", "-FROZEN ");
    zset_expect(h, "ZADD plain 1 ann", ":1");
    zset_expect_part(h, "LB.UNMATCH plain a", "-ERR board has no RATING");
    zset_expect_part(h, "LB.REFUND plain a SINCE 0", "-ERR board has no RATING");
    zset_expect(h, "LB.REFUND k ann FROM 0", "-ERR syntax error");
}

/* KEEP-HOURS count by the server's clock, whatever a match says. */
ZSET_TEST(a_match_that_is_ahead_drives_no_other_out) {
    create(h, "k", "ELO KEEP-MATCHES 100 KEEP-HOURS 5");
    zset_expect_part(h, "LB.MATCH k ONCE a TEAM 1 ann TEAM 1 bob", "[[ann ");
    zset_expect_part(h, "LB.MATCH k ONCE b AT 1777777777777 TEAM 1 ann TEAM 1 bob", "[[ann ");
    zset_expect_part(h, "LB.UNMATCH k a", "[[ann ");
    harness_pass_seconds(h, 5 * 3600 + 1);
    zset_expect_part(h, "LB.UNMATCH k b", "-ERR no match 'b' is kept");
}

/* Players are tokens in kept matches, so that one name is all that is to be erased. */
ZSET_TEST(who_is_gone_is_in_no_match_and_who_is_moved_in_all) {
    create(h, "k", "ELO KEEP-MATCHES 10");
    zset_expect_part(h, "LB.MATCH k ONCE a TEAM 1 ann TEAM 1 bob TEAM 1 cid", "[[ann 1500 1520 ");
    zset_expect(h, "LB.MOVE ann eve", "[:1 :0]");
    zset_expect(h, "LB.FORGET bob", ":1");
    zset_expect(h, "ZREM k cid", ":1");
    zset_expect_part(h, "LB.MATCH k ONCE b TEAM 1 cid TEAM 1 dan", "[[cid 1500 1520 ");
    zset_expect(h, "LB.UNMATCH k a", "[[eve 1520 1500 nil :0 :0 :1]]");
    expect_rated(h, "cid bob ann", "[[cid :0 1520 nil nil :1 :1 :0 :0 :1767225600000] nil* nil*]");
    zset_expect(h, "LB.FORGET eve", ":1");
    zset_expect(h, "LB.UNMATCH k a", "[]");
    const char *dump = zset_run(h, "DUMP k");
    assert_null(strstr(dump, "eve"));
    assert_null(strstr(dump, "bob"));
}

ZSET_TEST(who_is_off_the_board_stays_off) {
    create(h, "k", "ELO KEEP-MATCHES 10 MINGAMES 2");
    zset_expect_part(h, "LB.MATCH k ONCE a TEAM 1 ann TEAM 1 bob", "[[ann ");
    zset_expect_part(h, "LB.MATCH k ONCE b TEAM 1 ann TEAM 1 bob", "[[ann ");
    zset_expect(h, "ZCARD k", ":2");
    zset_expect(h, "LB.BAN bob", ":1");
    zset_expect(h, "LB.UNMATCH k a",
                "[[ann 1537.6 1517.6 nil :1 :0 nil] [bob 1462.4 1482.4 nil :1 nil nil]]");
    zset_expect(h, "ZCARD k", ":0");
}

/* The names of the board's own notes. */
ZSET_TEST(no_player_has_a_name_that_begins_with_a_zero_byte) {
    static const char *const rows[] = {"LB.MATCH k TEAM 1 \"\\x00p\" TEAM 1 bob",
                                       "LB.RATE k \"\\x00\" 1500",
                                       "LB.PREDICT k TEAM 1 \"\\x00m\" TEAM 1 bob"};
    create(h, "k", "ELO KEEP-MATCHES 10");
    zset_expect_part(h, "LB.MATCH k ONCE a TEAM 1 ann TEAM 1 bob", "[[ann ");
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        zset_expect(h, rows[i], "-ERR the name of a player may not begin with a zero byte");
    }
    expect_rated(h, "\"\\x00\" \"\\x00ia\"", "[nil* nil*]");
    zset_expect(h, "ZREM k \"\\x00\" \"\\x00ia\"", ":0");
    zset_expect(h, "LB.FORGET \"\\x00\"", ":0");
    zset_expect(h, "LB.MOVE ann \"\\x00\"", "[:0 :1]");
    zset_expect_part(h, "LB.UNMATCH k a", "[[ann ");
}

/* A restored board may say anything of who is behind a number. */
ZSET_TEST(a_forged_name_is_nobody) {
    static const char token_1[] = {'\0', 'p', 1, 0, 0, 0, 0, 0};
    static const char forged[][8] = {"", {'\0', 'm', 1}, "cid", "bob"};
    static const size_t sizes[] = {1, 8, 3, 3};
    create(h, "k", "ELO KEEP-MATCHES 10");
    zset_expect_part(h, "LB.MATCH k ONCE a TEAM 1 ann TEAM 1 bob", "[[ann 1500 1520 ");
    shadow_end(h->shadow); /* its notes stay as they are */
    for (size_t i = 0; i < COUNT_OF(forged); i++) {
        struct registry_key *key =
            registry_find(h->server.registry, 0, bytes_from_text("k"), h->wall_us / 1000);
        assert_true(registry_note_put(h->server.registry, key, (struct bytes){token_1, 8},
                                      (struct bytes){forged[i], sizes[i]}));
        zset_expect(h, "LB.UNMATCH k a",
                    i == 0 ? "[[bob 1480 1500 nil :0 :1 :1]]" : "[[bob 1500 1500 nil :0 :1 :1]]");
    }
    zset_expect_part(h, "LB.MATCH k ONCE b TEAM 1 ann TEAM 1 bob", "[[ann 1520 ");
}

/* ---- LB.REFUND ---- */

ZSET_TEST(who_lost_to_a_cheater_gets_it_back_once) {
    create(h, "k", "ELO KEEP-MATCHES 20 K 40");
    zset_expect_part(h, "LB.MATCH k ONCE a TEAM 1 eve TEAM 1 ann", "[[eve 1500 1520 ");
    harness_pass_seconds(h, 1000);
    zset_expect_part(h, "LB.MATCH k TEAM 1 eve TEAM 1 bob", "[[eve 1520 ");
    zset_expect_part(h, "LB.MATCH k ONCE c TEAM 1 eve TEAM 1 bob", "[[eve ");
    zset_expect_part(h, "LB.MATCH k TEAM 1 cid TEAM 1 eve", "[[cid 1500 15");
    zset_expect_part(h, "LB.MATCH k TEAM 1 ann TEAM 1 bob", "[[ann ");
    zset_expect_part(h, "LB.REFUND k eve SINCE 0", "-ERR what a player lost is given back of ");
    zset_expect(h, "LB.BAN eve", ":1");
    /* Bob has lost 35.6 from 1500 on, and 19.2 more since. Ann's match was before. Cid keeps what he won. */
    zset_expect_part(h, "LB.RATING k bob", "[[bob :2 1445.2 ");
    zset_expect(h, "LB.REFUND k eve SINCE 1767226600000", "[[bob 1445.2 1480.8 nil :3 :2 :2]]");
    zset_expect(h, "LB.REFUND k eve SINCE 1767226600000", "[]");
    zset_expect(h, "LB.UNMATCH k c", "-ERR LB.REFUND has given back what was lost in this match");
    zset_expect_part(h, "LB.REFUND k eve SINCE 0", "[[ann ");
    zset_expect(h, "LB.REFUND k eve SINCE 0", "[]");
    zset_expect(h, "LB.REFUND k nobody SINCE 0",
                "-ERR what a player lost is given back of matches with one who is banned: LB.BAN "
                "comes first");
    zset_expect(h, "LB.BAN nobody", ":0");
    zset_expect(h, "LB.REFUND k nobody SINCE 0", "[]");
}

/* What one lost is given back once, whoever of a match's cheaters is refunded, and in which order. */
ZSET_TEST(each_loss_is_given_back_once) {
    create(h, "k", "ELO KEEP-MATCHES 20 K 40");
    zset_expect_part(h, "LB.MATCH k ONCE a TEAM 1 ann TEAM 1 bob TEAM 1 eve", "[[ann 1500 1520 ");
    zset_expect(h, "LB.BAN eve", ":1");
    /* Nobody lost to eve. */
    zset_expect(h, "LB.REFUND k eve SINCE 0", "[]");
    zset_expect(h, "LB.BAN ann", ":1");
    zset_expect_part(h, "LB.REFUND k ann SINCE 0", "[[eve 1480 1500 ");
    zset_expect(h, "LB.REFUND k ann SINCE 0", "[]");
    zset_expect_part(h, "LB.UNMATCH k a", "-ERR LB.REFUND has given back");
    zset_expect_part(h, "LB.MATCH k ONCE b TEAM 1 max TEAM 1 bob TEAM 1 mia TEAM 1 cid",
                     "[[max 1500 1520 ");
    zset_expect(h, "LB.BAN mia", ":1");
    zset_expect(h, "LB.BAN max", ":1");
    zset_expect(h, "LB.REFUND k mia SINCE 0", "[[cid 1480 1500 nil :1 :1 :1]]");
    zset_expect_part(h, "LB.REFUND k max SINCE 0", "[[mia 1493.333333 1500 ");
    expect_rated(h, "cid", "[[cid :1 1500 nil nil :1 :0 :0 :1 :1767225600000]]");
    zset_expect(h, "LB.REFUND k max SINCE 0", "[]");
}

/* By players, also of those matches in which nobody lost to the cheater: 4,000 of them are four of the largest. */
ZSET_TEST(a_refund_looks_at_so_many_players) {
    static char text[64 * 1024];
    size_t size = (size_t)snprintf(text, sizeof text, "LB.MATCH k TEAM 1023");
    create(h, "k", "ELO KEEP-MATCHES 1000");
    zset_expect_part(h, "LB.MATCH k TEAM 1 eve TEAM 1 ann", "[[eve 1500 1520 ");
    for (int i = 0; i < 1023; i++) {
        size += (size_t)snprintf(text + size, sizeof text - size, " p%d", i);
    }
    snprintf(text + size, sizeof text - size, " TEAM 1 eve");
    for (int i = 0; i < 4; i++) {
        zset_expect_part(h, text, "[[p0 ");
    }
    zset_expect_part(h, "LB.MATCH k TEAM 1 eve TEAM 1 bob", "[[eve ");
    zset_expect(h, "LB.BAN eve", ":1");
    zset_expect_part(h, "LB.REFUND k eve SINCE 0", "[[bob ");
    zset_expect_part(h, "LB.RATING k ann", "[[ann :1024 1480 ");
}

/* d - max(0, d + c - t) / 2, at most to 20 above the highest, at most 150. */
ZSET_TEST(a_refund_is_bounded) {
    create(h, "k", "ELO KEEP-MATCHES 30 K 300 GAP-MAX 0");
    zset_expect_part(h, "LB.MATCH k TEAM 1 eve TEAM 1 ann", "[[eve 1500 1650 ");
    zset_expect_part(h, "LB.MATCH k TEAM 1 eve TEAM 1 bob", "[[eve 1650 1740 ");
    zset_expect(h, "LB.RATE k ann 1495", "[ann :1 1495 nil nil :1 :0 :0 :1 :1767225600000]");
    zset_expect(h, "LB.RATE k bob 500", "[bob :2 500 nil nil :1 :0 :0 :1 :1767225600000]");
    zset_expect(h, "LB.BAN eve", ":1");
    /* Ann: 150 - (150 + 1495 - 1500) / 2 = 77.5, but 1520 is the most. Bob: all of the 90. */
    zset_expect(h, "LB.REFUND k eve SINCE 0",
                "[[ann 1495 1520 nil :1 :0 :0] [bob 500 590 nil :1 :1 :1]]");
    create(h, "p", "ELO KEEP-MATCHES 30 MINGAMES 2");
    zset_expect_part(h, "LB.MATCH p TEAM 1 zoe TEAM 1 ann", "[[zoe ");
    zset_expect_part(h, "LB.MATCH p TEAM 1 zoe TEAM 1 ann", "[[zoe ");
    zset_expect_part(h, "LB.MATCH p TEAM 1 zoe TEAM 1 bob", "[[zoe ");
    zset_expect(h, "LB.BAN zoe", ":1");
    /* In the first two, zoe was not ranked yet. */
    zset_expect_part(h, "LB.REFUND p zoe SINCE 0", "[[bob ");
}

/* ---- against a naive model ---- */

enum { PLAYERS = 9, ROUNDS = 250, KEPT = 12 };

/* Ratings are the start and what the matches added that were not undone. */
ZSET_TEST(ratings_are_the_sum_of_what_was_not_undone) {
    struct random random = random_begin(__func__);
    static double sum[PLAYERS];
    static struct played {
        int players[3];
        double added[3];
        bool is_undone;
    } played[ROUNDS];
    for (int i = 0; i < PLAYERS; i++) {
        sum[i] = 0;
    }
    create(h, "k", formatted("ELO K 16 GAP-MAX 0 KEEP-MATCHES %d FLOOR -9000 START 0", KEPT));
    for (int round = 0; round < ROUNDS; round++) {
        struct played *match = &played[round];
        int first = (int)random_below(&random, PLAYERS);
        match->is_undone = false;
        for (int i = 0; i < 3; i++) {
            match->players[i] = (first + i * (1 + (int)random_below(&random, 2))) % PLAYERS;
        }
        match->players[2] = (match->players[1] + 1) % PLAYERS;
        if (match->players[2] == match->players[0]) {
            match->players[2] = (match->players[2] + 1) % PLAYERS;
        }
        if (match->players[1] == match->players[0]) {
            match->players[1] = (match->players[2] + 1) % PLAYERS;
        }
        double before[3], after[3];
        const char *reply =
            zset_run(h, "LB.MATCH k ONCE m%d RANKS %d %d TEAM 1 p%d TEAM 2 p%d p%d", round,
                     (int)random_below(&random, 2), (int)random_below(&random, 2),
                     match->players[0], match->players[1], match->players[2]);
        if (sscanf(
                reply,
                "[[%*s %lf %lf nil %*s %*s %*[^]]] [%*s %lf %lf nil %*s %*s %*[^]]] [%*s %lf %lf",
                &before[0], &after[0], &before[1], &after[1], &before[2], &after[2]) != 6) {
            fail_msg("%s", reply);
        }
        for (int i = 0; i < 3; i++) {
            match->added[i] = after[i] - before[i];
            sum[match->players[i]] += match->added[i];
        }
        int back = (int)random_below(&random, 2 * KEPT);
        if (back <= round) {
            struct played *undone = &played[round - back];
            reply = zset_run(h, "LB.UNMATCH k m%d", round - back);
            assert_int_equal(strncmp(reply, "[[", 2) == 0, back < KEPT);
            for (int i = 0; i < 3 && back < KEPT && !undone->is_undone; i++) {
                sum[undone->players[i]] -= undone->added[i];
            }
            undone->is_undone |= back < KEPT;
        }
        for (int i = 0; i < PLAYERS; i++) {
            double rating = 0;
            (void)sscanf(zset_run(h, "LB.RATING k p%d", i), "[[%*s %*s %lf", &rating);
            assert_true(rating - sum[i] < 1e-4 && sum[i] - rating < 1e-4);
        }
    }
    ASSERT_VALID(registry_validate, h->server.registry);
}

/* The largest match is kept, and goes with its bytes. */
ZSET_TEST(the_largest_match_is_kept) {
    struct text_of_match {
        char at[64 * 1024];
    } *text = malloc(sizeof *text);
    char before[1024];
    create(h, "k", "OPENSKILL KEEP-MATCHES 2");
    for (int match = 0; match < 3; match++) {
        size_t size = (size_t)snprintf(text->at, sizeof text->at, "LB.MATCH k ONCE m%d", match);
        for (int i = 0; i < 2; i++) {
            size += (size_t)snprintf(text->at + size, sizeof text->at - size, " TEAM 512");
            for (int j = 0; j < 512; j++) {
                size +=
                    (size_t)snprintf(text->at + size, sizeof text->at - size, " p%d", i * 512 + j);
            }
        }
        snprintf(before, sizeof before, "%s", rated(h, "k", "p0 p512 p1023"));
        zset_expect_part(h, text->at, "[[p0 25");
    }
    zset_expect_part(h, "LB.UNMATCH k m0", "-ERR no match 'm0' is kept");
    zset_expect_part(h, "LB.UNMATCH k m2", "[[p0 25");
    expect_rated(h, "p0 p512 p1023", before);
    free(text);
}

static uint64_t kept_bytes(struct harness *h) {
    struct bytes head;
    const struct registry_key *key =
        registry_find(h->server.registry, 0, bytes_from_text("k"), h->wall_us / 1000);
    assert_true(registry_note_find(key, (struct bytes){"", 1}, &head));
    return bytes_get_u64(head.at + head.size - 8);
}

/* As many bytes go as come, whether in small matches or in large ones. */
ZSET_TEST(kept_matches_take_so_many_bytes) {
    enum { MOST = 144 * 1024 };
    static char text[64 * 1024];
    size_t size = (size_t)snprintf(text, sizeof text, "LB.MATCH k TEAM 1 eve TEAM 1023");
    create(h, "k", "ELO KEEP-MATCHES 140");
    for (int i = 0; i < 1023; i++) {
        size += (size_t)snprintf(text + size, sizeof text - size, " p%d", i);
    }
    zset_expect_part(h, text, "[[eve ");
    for (int i = 0; i < 100; i++) {
        zset_expect_part(h, "LB.MATCH k TEAM 1 ann TEAM 1 bob", "[[ann ");
    }
    for (int i = 0; i < 3; i++) {
        zset_expect_part(h, text, "[[eve ");
        assert_true(kept_bytes(h) > 0 && kept_bytes(h) <= MOST);
    }
}

ZSET_TEST(kept_matches_go_where_their_board_goes) {
    create(h, "k", "ELO KEEP-MATCHES 5");
    zset_expect_part(h, "LB.MATCH k ONCE a TEAM 1 ann TEAM 1 bob", "[[ann 1500 1520 ");
    zset_expect(h, "COPY k copy", ":1");
    zset_expect(h, "RENAME copy moved", "+OK");
    zset_expect_part(h, "LB.UNMATCH moved a", "[[ann 1520 1500 ");
    zset_expect_part(h, "LB.UNMATCH k a", "[[ann 1520 1500 ");
    zset_expect(h, "LB.ROLL k then", ":2");
    zset_expect_part(h, "LB.UNMATCH k a", "-ERR no match 'a' is kept");
    zset_expect_part(h, "LB.UNMATCH then a", "[[ann 1500 1500 ");
}
