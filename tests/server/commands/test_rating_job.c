/* What periods do to ratings: RESET, EVERY-HOURS, and the job that writes it. */
#include "server/commands/lb/lb_rating.h"
#include "server/sessions/job.h"
#include "tests/server/zset_fixture.h"
#include "tests/support/random.h"

enum { DAY_S = 86400 };

static int rating_start(void **state) {
    struct harness *h = zset_start_job(state, zset_settings, &rating_job);
    shadow_end(h->shadow); /* the module has no job, and takes neither option */
    job_board_begin(&h->server, &job_board_stale);
    return 0;
}

#define RATING_TEST(name) TEST_GIVEN(name, rating_start, zset_end_jobs, struct harness *h)

static void roll(struct harness *h) {
    server_update_time(&h->server);
    (void)registry_roll_due(h->server.registry, h->server.clock.now_ms, 1000);
    zset_copy_archives(h);
}

static void settle(struct harness *h) {
    roll(h);
    while (job_list_step(&h->server, 0, true)) {}
}

static void create(struct harness *h, const char *key, const char *rating) {
    zset_expect(h, formatted("LB.CREATE %s RATING %s", key, rating), "+OK");
}

/* ---- RESET ---- */

RATING_TEST(at_the_end_of_a_period_ratings_go_towards_the_start) {
    create(h, "k", "ELO RESET 0.5 PERIOD DAY COPY");
    zset_expect_part(h, "LB.MATCH k TEAM 1 ann TEAM 1 bob", "[[ann 1500 1520 ");
    harness_pass_seconds(h, DAY_S);
    roll(h);
    /* Read as it is now, and ranked by what was written. */
    zset_expect(h, "LB.RATING k ann bob cid",
                "[[ann :0 1510 nil nil :1 :1 :0 :0 :1767225600000] "
                "[bob :1 1490 nil nil :1 :0 :0 :1 :1767225600000] nil*]");
    zset_expect(h, "LB.RANGE k 0 -1",
                "[[ann :0 :1767225600000 1520] [bob :1 :1767225600000 1480]]");
    for (int i = 0; i < 2; i++) {
        settle(h);
        zset_expect(h, "LB.RANGE k 0 -1",
                    "[[ann :0 :1767225600000 1510] [bob :1 :1767225600000 1490]]");
    }
    zset_expect(h, "LB.RATING k@2026-01-01 ann bob",
                "[[ann :0 1520 nil nil :1 :1 :0 :0 :1767225600000] "
                "[bob :1 1480 nil nil :1 :0 :0 :1 :1767225600000]]");
    /* Who comes later is reset at the next end for the first time. */
    zset_expect_part(h, "LB.MATCH k TEAM 1 cid TEAM 1 ann", "[[cid 1500 1520.");
    harness_pass_seconds(h, DAY_S);
    settle(h);
    zset_expect_part(h, "LB.RATING k bob", "[[bob :1 1495 ");
}

RATING_TEST(a_reset_makes_deviations_larger_and_may_take_players_off_the_board) {
    create(h, "k", "GLICKO2 PERIOD-MS 0 RESET 0.25 MAXDEV 200 MINGAMES 0 PERIOD DAY COPY");
    zset_expect(h, "LB.RATE k ann 1900 100", "[ann :0 1900 100 0.06 :0 :0 :0 :0 nil]");
    zset_expect(h, "LB.RATE k bob 1300 180", "[bob :1 1300 180 0.06 :0 :0 :0 :0 nil]");
    harness_pass_seconds(h, DAY_S);
    settle(h);
    /* sqrt(100^2 + (350^2 - 100^2) / 4), and likewise of 180 */
    zset_expect(h, "LB.RATING k ann bob",
                "[[ann :0 1800 195.256242 0.06 :0 :0 :0 :0 nil] "
                "[bob nil 1350 234.360833 0.06 :0 :0 :0 :0 nil]]");
    zset_expect(h, "ZCARD k", ":1");
    zset_expect(h, "ZCARD k@2026-01-01", ":2");
}

RATING_TEST(reset_needs_a_board_that_goes_on) {
    zset_expect(h, "LB.CREATE k RATING ELO RESET 0.5",
                "-ERR RATING ... RESET needs a PERIOD with COPY: the board goes on then");
    zset_expect_part(h, "LB.CREATE k RATING ELO RESET 1.5 PERIOD DAY COPY",
                     "-ERR RATING ELO RESET");
    create(h, "k", "ELO RESET 0.5 PERIOD DAY COPY");
    zset_expect(h, "LB.ALTER k PERIOD WEEK COPY",
                "-ERR RATING ... RESET keeps the PERIOD of its board");
    zset_expect(h, "LB.ALTER k RATING ELO RESET 0.25",
                "-ERR RATING RESET cannot be changed: all players are ranked by it");
    zset_expect(h, "LB.ALTER k RATING ELO K 10", "+OK");
    h->server.is_embedded = true;
    zset_expect_part(h, "LB.CREATE x RATING GLICKO2 EVERY-HOURS 24", "-ERR RESET and EVERY-HOURS ");
    h->server.is_embedded = false;
}

RATING_TEST(who_is_off_the_board_is_reset_too_and_stays_off) {
    static const char off[] = "[[ann nil 1510 nil nil :1 :1 :0 :0 :1767225600000] "
                              "[bob nil 1490 nil nil :1 :0 :0 :1 :1767225600000]]";
    create(h, "k", "ELO RESET 0.5 STALE 1 HOUR SETTLE YES PERIOD DAY COPY ARCHIVE 3");
    zset_expect_part(h, "LB.MATCH k TEAM 1 ann TEAM 1 bob", "[[ann 1500 1520 ");
    zset_expect(h, "LB.BAN bob", ":1");
    harness_pass_seconds(h, 7200);
    server_update_time(&h->server);
    while (job_list_step(&h->server, 0, true)) {}
    zset_expect(h, "ZCARD k", ":0");
    harness_pass_seconds(h, DAY_S);
    settle(h);
    zset_expect(h, "ZCARD k", ":0");
    zset_expect(h, "LB.RATING k ann bob", off);
    /* Of the archive, which is to be settled, nothing changes any more. */
    zset_expect_part(h, "LB.LIST UNSETTLED", "[[name k@2026-01-01 ");
    zset_expect_part(h, "LB.RATING k@2026-01-01 ann", "[[ann nil 1520 ");
    zset_expect(h, "LB.SETTLE k@2026-01-01", ":1");
    zset_expect_part(h, "LB.MATCH k@2026-01-01 TEAM 1 ann TEAM 1 cid", "-FROZEN ");
    zset_expect_part(h, "LB.MATCH k TEAM 1 ann TEAM 1 cid", "[[ann 1510 ");
    zset_expect(h, "ZCARD k", ":2");
    /* LB.ROLL: all begin anew. */
    zset_expect(h, "LB.ROLL k then", ":2");
    zset_expect(h, "LB.RATING k ann bob", "[nil* nil*]");
    zset_expect_part(h, "LB.RATING then bob", "[[bob nil 1490 ");
}

RATING_TEST(no_match_from_before_a_reset_is_taken_back) {
    create(h, "k", "ELO RESET 0.5 KEEP-MATCHES 9 PERIOD DAY COPY");
    zset_expect_part(h, "LB.MATCH k ONCE a TEAM 1 eve TEAM 1 ann", "[[eve 1500 1520 ");
    harness_pass_seconds(h, DAY_S);
    settle(h);
    zset_expect_part(h, "LB.MATCH k ONCE b TEAM 1 eve TEAM 1 bob", "[[eve 1510 15");
    zset_expect_part(h, "LB.UNMATCH k a", "-ERR the board's period of this match is over");
    zset_expect(h, "LB.BAN eve", ":2");
    zset_expect_part(h, "LB.REFUND k eve SINCE 0", "[[bob ");
    zset_expect_part(h, "LB.RATING k ann", "[[ann :1 1490 ");
    zset_expect(h, "LB.REFUND k eve SINCE 0", "[]");
}

/* ---- EVERY-HOURS ---- */

/* Glickman's example, "Example of the Glicko-2 system": a period of three games. */
RATING_TEST(a_rating_period_is_glickmans) {
    create(h, "k", "GLICKO2 EVERY-HOURS 24");
    zset_expect_part(h, "LB.RATE k ann 1500 200", "[ann ");
    zset_expect_part(h, "LB.RATE k a 1400 30", "[a ");
    zset_expect_part(h, "LB.RATE k b 1550 100", "[b ");
    zset_expect_part(h, "LB.RATE k c 1700 300", "[c ");
    zset_expect(h, "LB.MATCH k ONCE 1 TEAM 1 ann TEAM 1 a",
                "[[ann 1500 1500 200 :1 :2 :2] [a 1400 1400 30 :1 :3 :3]]");
    harness_pass_seconds(h, 3600);
    settle(h);
    zset_expect_part(h, "LB.MATCH k ONCE 2 TEAM 1 b TEAM 1 ann", "[[b 1550 1550 100 ");
    zset_expect_part(h, "LB.MATCH k ONCE 3 TEAM 1 c TEAM 1 ann", "[[c 1700 1700 300 ");
    harness_pass_seconds(h, 22 * 3600);
    settle(h);
    zset_expect_part(h, "LB.RATING k ann", "[[ann :2 1500 200 0.06 :3 :1 :0 :2 ");
    harness_pass_seconds(h, 3600);
    zset_expect_part(h, "LB.RATING k ann",
                     "[[ann :2 1464.050671 151.516524 0.059995984 :3 :1 :0 :2 ");
    zset_expect_part(h, "LB.GET k 1 ann", "[[ann :2 :1767229200000 1500]]");
    for (int i = 0; i < 2; i++) {
        settle(h);
        zset_expect_part(h, "LB.GET k 1 ann", " 1464.05]]");
        zset_expect_part(h, "LB.RATING k ann",
                         "[[ann :2 1464.050671 151.516524 0.059995984 :3 :1 :0 :2 ");
    }
    /* Periods without a match: sqrt(151.516524^2 + n * (173.7178 * 0.059995984)^2) */
    harness_pass_seconds(h, DAY_S);
    settle(h);
    zset_expect_part(h, "LB.RATING k ann", "[[ann :2 1464.050671 151.874563 0.059995984 ");
    harness_pass_seconds(h, 9 * DAY_S);
    zset_expect_part(h, "LB.RATING k ann", "[[ann :2 1464.050671 155.059715 0.059995984 ");
}

RATING_TEST(a_match_of_the_running_period_is_undone_and_an_earlier_one_is_not) {
    char before[512];
    create(h, "k", "GLICKO2 EVERY-HOURS 24 KEEP-MATCHES 9");
    zset_expect_part(h, "LB.MATCH k ONCE a TEAM 1 ann TEAM 1 bob", "[[ann 1500 1500 350 ");
    zset_expect_part(h, "LB.MATCH k ONCE b TEAM 1 bob TEAM 1 ann", "[[bob 1500 1500 350 ");
    zset_expect_part(h, "LB.MATCH k ONCE c TEAM 1 ann TEAM 1 bob", "[[ann 1500 1500 350 ");
    zset_expect(h, "LB.UNMATCH k b", "[[bob 1500 1500 350 :2 :1 :0] [ann 1500 1500 350 :2 :0 :1]]");
    zset_expect(h, "LB.BAN ann", ":1");
    zset_expect_part(h, "LB.REFUND k ann SINCE 0",
                     "-ERR LB.REFUND is not possible with EVERY-HOURS");
    zset_expect(h, "LB.UNBAN ann", ":1");
    create(h, "twin", "GLICKO2 EVERY-HOURS 24");
    zset_run(h, "LB.MATCH twin TEAM 1 ann TEAM 1 bob");
    zset_run(h, "LB.MATCH twin TEAM 1 ann TEAM 1 bob");
    harness_pass_seconds(h, DAY_S);
    snprintf(before, sizeof before, "%s", zset_run(h, "LB.RATING twin bob"));
    settle(h);
    zset_expect(h, "LB.UNMATCH k a",
                "-ERR the rating period of this match is over: what follows from its matches is "
                "computed");
    zset_run(h, "ZREM twin ann"); /* who is banned left the other board */
    zset_run(h, "ZREM k ann");
    zset_expect(h, "LB.RATING twin bob", zset_run(h, "LB.RATING k bob"));
}

/* A board that ends within a rating period has its matches as well. */
RATING_TEST(an_archive_ends_its_last_rating_period) {
    create(h, "k", "GLICKO2 EVERY-HOURS 24 PERIOD DAY ARCHIVE 3");
    create(h, "rolled", "GLICKO2 EVERY-HOURS 24");
    zset_expect_part(h, "LB.MATCH k TEAM 1 p1 TEAM 1 p2", "[[p1 1500 ");
    zset_expect_part(h, "LB.MATCH rolled TEAM 1 p1 TEAM 1 p2", "[[p1 1500 ");
    zset_expect(h, "LB.ROLL rolled then", ":2");
    settle(h);
    zset_expect_part(h, "LB.GET then 1 p1", " 1500]]");
    harness_pass_seconds(h, DAY_S);
    settle(h);
    for (int i = 0; i < 2; i++) {
        zset_expect_part(h, "LB.RATING k@2026-01-01 p1", "[[p1 :0 1662.310894 ");
        zset_expect_part(h, "LB.GET k@2026-01-01 1 p1", " 1662.31]]");
        zset_expect_part(h, "LB.RATING then p2", "[[p2 :1 1337.689106 ");
        zset_expect_part(h, "LB.GET then 1 p2", " 1337.69]]");
        harness_pass_seconds(h, DAY_S);
        settle(h);
    }
}

/* ---- the job ---- */

enum { PLAYERS = 40 };

/* Every player, and nothing else, has the place of the rating that is read. */
static void check_places(struct harness *h) {
    for (int i = 0; i < PLAYERS; i++) {
        double rating, score;
        char rank[32];
        const char *reply = zset_run(h, "LB.RATING k p%d", i);
        if (sscanf(reply, "[[%*s %31s %lf", rank, &rating) != 2) {
            assert_string_equal(reply, "[nil*]");
        } else if (strcmp(rank, "nil") != 0) {
            assert_int_equal(sscanf(zset_run(h, "LB.GET k 1 p%d", i), "[[%*s %*s %*s %lf", &score),
                             1);
            assert_true(score - rating < 0.0051 && rating - score < 0.0051);
        }
    }
}

/* A restart at any step, and matches in between, change nothing of what is read. */
RATING_TEST(what_is_read_does_not_depend_on_the_job) {
    static const char *const options[] = {"GLICKO2 EVERY-HOURS 12 MAXDEV 330 KEEP-MATCHES 5",
                                          "OPENSKILL Z 0 RESET 0.3 KEEP-MATCHES 5 PERIOD DAY COPY",
                                          "GLICKO2 EVERY-HOURS 24 RESET 0.5 PERIOD DAY COPY"};
    struct random random = random_begin(__func__);
    for (size_t i = 0; i < COUNT_OF(options); i++) {
        create(h, "k", options[i]);
        create(h, "twin", options[i]);
        for (int round = 0; round < 300; round++) {
            char line[128];
            int a = (int)random_below(&random, PLAYERS);
            int b = (a + 1 + (int)random_below(&random, PLAYERS - 1)) % PLAYERS;
            switch (random_below(&random, 12)) {
            case 0:
                harness_pass_seconds(h, 3600 * (int64_t)random_below(&random, 40));
                roll(h);
                break;
            case 1:
                job_list_end(&h->server);
                job_board_begin(&h->server, &rating_job);
                break;
            case 2:
                settle(h);
                check_places(h);
                break;
            case 3:
                zset_run(h, "ZREM k p%d", a);
                zset_run(h, "ZREM twin p%d", a);
                break;
            case 4:
            case 5:
                (void)job_list_step(&h->server, 0, true);
                break;
            default:
                snprintf(line, sizeof line, "TEAM 1 p%d TEAM 1 p%d", a, b);
                zset_run(h, "LB.MATCH k %s", line);
                zset_run(h, "LB.MATCH twin %s", line);
            }
            /* The job is not where it is in the other board. */
            char rest[2][256];
            snprintf(rest[0], sizeof rest[0], "%s",
                     zset_run(h, "LB.PREDICT k TEAM 1 p%d TEAM 1 p%d", a, b));
            snprintf(rest[1], sizeof rest[1], "%s",
                     zset_run(h, "LB.PREDICT twin TEAM 1 p%d TEAM 1 p%d", a, b));
            assert_string_equal(rest[0], rest[1]);
        }
        settle(h);
        check_places(h);
        for (int player = 0; player < PLAYERS; player++) {
            /* But for the place among equals, which come anew in the order of the job's walk. */
            char rest[2][256];
            snprintf(rest[0], sizeof rest[0], "%s", zset_run(h, "LB.RATING k p%d", player));
            snprintf(rest[1], sizeof rest[1], "%s", zset_run(h, "LB.RATING twin p%d", player));
            const char *of[2] = {strstr(rest[0], " "), strstr(rest[1], " ")};
            for (int j = 0; j < 2 && of[0] != NULL; j++) {
                of[j] = strstr(of[j] + 1, " ");
            }
            if (of[0] != NULL) {
                assert_string_equal(of[0], of[1]);
            } else {
                assert_string_equal(rest[0], rest[1]);
            }
        }
        ASSERT_VALID(registry_validate, h->server.registry);
        zset_expect(h, "FLUSHALL", "+OK");
    }
}

/* What has become of the record is what the other name gets a place by. */
RATING_TEST(who_is_moved_before_the_job_has_the_place_of_now) {
    create(h, "k", "GLICKO2 EVERY-HOURS 24 KEEP-MATCHES 5");
    create(h, "off", "GLICKO2 PERIOD-MS 0 RESET 1 MAXDEV 200 PERIOD DAY COPY");
    zset_expect_part(h, "LB.MATCH k TEAM 1 old TEAM 1 p2", "[[old 1500 ");
    zset_expect_part(h, "LB.RATE off old 1900 100", "[old :0 ");
    settle(h);
    harness_pass_seconds(h, DAY_S);
    roll(h);
    zset_expect(h, "LB.MOVE old p1 MATCH k", "[:1 :0]");
    zset_expect_part(h, "LB.RATING k p1", "[[p1 :0 1662.");
    zset_expect_part(h, "LB.GET k 1 p1", " 1662.31]]");
    zset_expect(h, "LB.MOVE old p1 MATCH off", "[:1 :0]");
    zset_expect_part(h, "LB.RATING off p1", "[[p1 nil 1500 350 ");
    settle(h);
    check_places(h);
}

/* A board that goes behind the pass by its name is not passed over. */
RATING_TEST(a_renamed_board_is_settled_too) {
    create(h, "k", "GLICKO2 EVERY-HOURS 24");
    create(h, "z", "GLICKO2 EVERY-HOURS 24");
    zset_expect_part(h, "LB.MATCH k TEAM 1 p1 TEAM 1 p2", "[[p1 1500 ");
    zset_expect_part(h, "LB.MATCH z TEAM 1 p1 TEAM 1 p2", "[[p1 1500 ");
    settle(h);
    harness_pass_seconds(h, DAY_S);
    roll(h);
    (void)job_list_step(&h->server, 0, true); /* z is found first */
    zset_expect(h, "RENAME k other", "+OK");
    zset_expect(h, "RENAME other k", "+OK");
    settle(h);
    check_places(h);
}

RATING_TEST(without_memory_the_job_tries_again) {
    create(h, "k", "ELO RESET 0.5 PERIOD DAY COPY");
    for (int i = 0; i < PLAYERS; i++) {
        zset_run(h, "LB.MATCH k TEAM 1 p%d TEAM 1 p%d", i, (i + 7) % PLAYERS);
    }
    harness_pass_seconds(h, DAY_S);
    roll(h);
    for (uint64_t nth = 1; nth < 30; nth++) {
        memory_fail_at(nth);
        (void)job_list_step(&h->server, 0, true);
        memory_fail_at(0);
        harness_pass_seconds(h, 1);
        server_update_time(&h->server);
    }
    settle(h);
    check_places(h);
}
