/* Answers that are given again: whatever happens, one that is not outdated is what the engine would answer now. What HTTP
 * makes of it: tests/web/test_kept.py. */
#include "tests/support/test.h"

#include "server/sessions/server.h"
#include "server/web/web_query.h"
#include "tests/support/harness.h"
#include "tests/support/random.h"
#include "tests/support/web_target.h"

static struct web web;

/* An answer that is kept. */
struct answer {
    struct web_query *query;
    struct reads reads;
    int64_t until_ms;
};

static void ask(struct harness *h, const char *target, const struct web_identity *identity,
                struct reads *reads, struct answer *answer) {
    struct web_engine engine = {.server = &h->server};
    struct web_query *query = web_query_create(&web);
    assert_non_null(query);
    query->identity = *identity;
    assert_true(web_target_parse(query, HTTP_GET, target));
    query->reads = reads;
    assert_true(query->route->is_kept && query->route->ask(query));
    assert_true(web_engine_answer(&engine, &query->ask));
    answer->query = query;
    answer->until_ms = query->fresh_until_ms;
}

static void keep(struct harness *h, const char *target, const struct web_identity *identity,
                 struct answer *answer) {
    server_reads_init(&answer->reads);
    ask(h, target, identity, &answer->reads, answer);
}

static void forget(struct harness *h, struct answer *answer) {
    server_reads_end(&h->server, &answer->reads);
    web_query_destroy(answer->query);
    answer->query = NULL;
}

static bool is_given_again(const struct harness *h, const struct answer *answer) {
    return answer->query->verdict == WEB_ALLOWED && answer->query->fresh_ms > 0 &&
           !server_reads_are_outdated(&answer->reads) &&
           clock_read_ms(&h->server.clock) < answer->until_ms;
}

/* Is it what is answered now? */
static bool is_right(struct harness *h, const char *target, const struct web_identity *identity,
                     const struct answer *answer) {
    struct answer now;
    ask(h, target, identity, NULL, &now);
    const struct web_query *a = answer->query;
    const struct web_query *b = now.query;
    bool is_same = a->verdict == b->verdict &&
                   bytes_equal(buffer_bytes(&a->replies), buffer_bytes(&b->replies));
    web_query_destroy(now.query);
    return is_same;
}

static const struct web_identity anybody = {.kind = WEB_ANYBODY, .is_local = true};

static struct web_identity user_ann(void) {
    struct web_identity ann = {.kind = WEB_USER, .is_local = true, .user = "ann"};
    digest_print(BYTES("secret"), ann.digest);
    return ann;
}

/* ---- one by one ---- */

#define PAGE "/api/v1/boards/a/page"

static void expect_outdated_by(struct harness *h, struct session *s, const char *target,
                               const char *line) {
    struct answer answer;
    keep(h, target, &anybody, &answer);
    if (!is_given_again(h, &answer)) {
        fail_msg("%s is not given again", target);
    }
    harness_run(h, s, line);
    if (is_given_again(h, &answer)) {
        fail_msg("%s is given again behind %s", target, line);
    }
    forget(h, &answer);
}

SERVER_TEST(an_answer_is_given_again_until_its_board_changes) {
    struct answer answer;
    harness_run(h, s, "ZADD a 1 x 2 y");
    keep(h, PAGE, &anybody, &answer);
    assert_true(is_given_again(h, &answer));
    harness_run(h, s, "ZADD other 1 x");
    harness_run(h, s, "ZADD a 1 x");
    harness_run(h, s, "GET a");
    assert_true(is_given_again(h, &answer));
    assert_int_equal(watch_key_count(&h->server.watches), 0);
    forget(h, &answer);
    expect_outdated_by(h, s, PAGE, "ZADD a 3 x");
    expect_outdated_by(h, s, PAGE, "LB.ALTER a CAP 5");
    expect_outdated_by(h, s, PAGE, "RENAME a b");
    harness_run(h, s, "COPY b a");
    expect_outdated_by(h, s, PAGE, "FLUSHDB");
}

SERVER_TEST(hashes_that_are_shown_outdate_it_even_those_that_are_not_there) {
    static const char target[] = PAGE "?hash=user:*&data=name";
    harness_run(h, s, "ZADD a 1 x 2 y");
    expect_outdated_by(h, s, target, "HSET user:x name Xavier");
    expect_outdated_by(h, s, target, "HSET user:x name X");
    expect_outdated_by(h, s, target, "DEL user:x");
    struct answer answer;
    keep(h, target, &anybody, &answer);
    harness_run(h, s, "HSET user:z name Zoe");
    assert_true(is_given_again(h, &answer));
    forget(h, &answer);
    keep(h, PAGE "?hash=%25@:*&data=name", &anybody, &answer);
    assert_false(is_given_again(h, &answer)); /* of which period it is follows from more */
    forget(h, &answer);
}

SERVER_TEST(users_and_settings_outdate_it) {
    harness_run(h, s, "ZADD a 1 x");
    expect_outdated_by(h, s, PAGE, "ACL SETUSER bob on");
    expect_outdated_by(h, s, PAGE, "CONFIG SET slowlog-max-len 7");
    struct web_identity ann = user_ann();
    struct answer answer;
    harness_run(h, s, "ACL SETUSER ann on >secret ~a +@all");
    keep(h, PAGE, &ann, &answer);
    assert_true(is_given_again(h, &answer));
    harness_run(h, s, "ACL SETUSER ann resetkeys ~b");
    assert_false(is_given_again(h, &answer));
    forget(h, &answer);
}

SERVER_TEST(what_changes_by_time_alone_has_a_limit) {
    struct answer answer;
    int64_t now_us = INT64_C(1700000000000000);
    harness_set_clock(h, now_us);
    harness_run(h, s, "ZADD a 1 x");
    harness_run(h, s, "PEXPIRE a 500");
    keep(h, PAGE, &anybody, &answer);
    assert_int_equal(answer.query->fresh_ms, 500);
    harness_set_clock(h, now_us + 499000); /* whenever somebody is told of it */
    assert_true(is_given_again(h, &answer));
    harness_set_clock(h, now_us + 500000);
    assert_false(is_given_again(h, &answer));
    harness_set_clock(h, now_us);
    forget(h, &answer);
    harness_run(h, s, "PERSIST a");
    keep(h, PAGE, &anybody, &answer);
    assert_int_equal(answer.query->fresh_ms, WEB_KEPT_MS);
    forget(h, &answer);
    harness_run(h, s, "LB.CREATE hot FIELD s 55 SCALE 2 DECAY 6 H");
    harness_run(h, s, "LB.ADD hot 5 x");
    keep(h, "/api/v1/boards/hot/page", &anybody, &answer);
    assert_int_equal(answer.query->fresh_ms, 0);
    forget(h, &answer);
    harness_run(h, s, "LB.CREATE hourly FIELD s 33 PERIOD HOUR");
    harness_set_clock(h, INT64_C(1699999200000000) + INT64_C(3599700000)); /* 0.3 s before */
    harness_run(h, s, "LB.ADD hourly 5 x");
    keep(h, "/api/v1/boards/hourly/page", &anybody, &answer);
    assert_int_equal(answer.query->fresh_ms, 300);
    forget(h, &answer);
}

SERVER_TEST(rights_and_identities_are_told_apart) {
    struct web_identity ann = user_ann();
    struct web_identity other = ann;
    assert_true(web_answer_is_same_identity(&ann, &other));
    other.digest[3] ^= 1;
    assert_false(web_answer_is_same_identity(&ann, &other));
    assert_false(web_answer_is_same_identity(&ann, &anybody));
    bool *const flags[] = {&other.is_local, &other.is_token, &other.is_by_header,
                           &other.is_exposed};
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        other = ann;
        *flags[i] = !*flags[i];
        assert_false(web_answer_is_same_identity(&ann, &other));
    }
    (void)h;
    (void)s;
}

/* ---- at random ---- */

static const char *const targets[] = {
    PAGE,
    PAGE "?from=1&count=3",
    PAGE "?hash=user:*&data=name",
    PAGE "?where=country:c1&tags=1",
    "/api/v1/boards/b/page?hash=h%25@:*&data=name",
    "/api/v1/boards/b/page",
    "/api/v1/boards/b/page?db=1",
    "/api/v1/boards/a/members/m1?tags=1",
    "/api/v1/boards/a/members/m2?hash=user:*&data=name,rank",
    "/api/v1/boards/b/members/m3?where=country:c2",
    "/api/v1/boards/a/histogram",
    "/api/v1/boards/b/histogram?hash=user:*&data=name",
};
enum { TARGETS = sizeof targets / sizeof targets[0], IDENTITIES = 2 };

static const char *const often[] = {
    "ZADD a $40 m$6",
    "ZADD b $40 m$6",
    "LB.ADD a $4000000 m$6",
    "LB.ADD b GT $40 m$6",
    "ZINCRBY a $2 m$6",
    "ZREM a m$6",
    "ZREM b m$6",
    "ZREMRANGEBYRANK b 0 0",
    "LB.CREATE a FIELD s 33 TAG country 4",
    "LB.CREATE b FIELD s 33 TAG country 4 PERIOD HOUR",
    "LB.ALTER a CAP NONE",
    "LB.ALTER b THAW",
    "LB.ALTER b PERIOD HOUR",
    "LB.TAG a m$6 country c$3",
    "LB.TAG b m$6 country c$3",
    "HSET user:m$6 name n$4",
    "HSET user:m$6 rank r$4",
    "HDEL user:m$6 name",
    "DEL user:m$6",
    "PEXPIRE user:m$6 $1000",
    "HSET hb:m$6 name n$3",
    "PERSIST a",
    "LB.UNBAN m$6",
    "ZADD other 1 m$6",
};
static const char *const seldom[] = {
    "DEL a",
    "UNLINK b",
    "RENAME a b",
    "RENAME b a",
    "COPY a b REPLACE",
    "COPY a b DB 1 REPLACE",
    "MOVE b 1",
    "SWAPDB 0 1",
    "FLUSHDB",
    "FLUSHALL",
    "LB.CREATE a FIELD s 33 TIME 30 S TAG country 4 STALE 1 HOUR",
    "LB.CREATE b FIELD s 33 TIME 30 S PERIOD HOUR COPY",
    "LB.CREATE a FIELD s 55 SCALE 2 DECAY 1 H",
    "LB.CREATE b FIELD s 33 TIME 30 S PERIOD HOUR WINDOW 2 SUM",
    "LB.ALTER a CAP $5",
    "LB.ALTER b FREEZE",
    "LB.ALTER a TAG country 5",
    "LB.ALTER b PERIOD NONE",
    "LB.ALTER a CLOSES 170000$9000",
    "LB.ROLL a old",
    "LB.ROLL b old",
    "LB.FORGET m$6",
    "LB.MOVE m$6 m$6",
    "HSET a x y",
    "ZUNIONSTORE a 2 a b",
    "ZRANGESTORE b a 0 2",
    "PEXPIRE a $3000",
    "EXPIRE b $5",
    "LB.BAN m$6 EX 10",
    "ACL SETUSER ann on >secret ~a ~user:* +@all",
    "ACL SETUSER ann resetkeys ~b",
    "ACL SETUSER ann -lb.range",
    "ACL DELUSER ann",
    "CONFIG SET protected-mode yes",
    "ACL SETUSER ann on >secret ~* +@all",
};

/* Mostly some milliseconds; now and then to shortly before a period's end, or far. Never back: the server's time does not
 * go there either. */
static int64_t later(struct random *random, int64_t now_us) {
    const int64_t hour_us = INT64_C(3600000000);
    int64_t end_us = now_us + hour_us - now_us % hour_us - (int64_t)random_below(random, 300000);
    switch (random_below(random, 12)) {
    case 0:
        return end_us > now_us ? end_us : now_us;
    case 1:
        return now_us + (int64_t)random_below(random, 2000000000);
    default:
        return now_us + (int64_t)random_below(random, 200000);
    }
}

SERVER_TEST(at_random_nothing_is_given_again_that_the_engine_would_not_answer_now) {
    struct random random = random_begin("at_random_nothing_is_given_again");
    unsigned steps = getenv("LEADERBOARD_TEST_SHORT") != NULL ? 3000 : 60000;
    const struct web_identity identities[IDENTITIES] = {anybody, user_ann()};
    static struct answer answers[TARGETS][IDENTITIES];
    int64_t now_us = INT64_C(1700000000000000);
    unsigned again = 0;
    for (unsigned i = 0; i < steps; i++) {
        char line[128];
        bool is_seldom = random_below(&random, 20) == 0;
        random_line(&random,
                    is_seldom ? seldom[random_below(&random, sizeof seldom / sizeof seldom[0])]
                              : often[random_below(&random, sizeof often / sizeof often[0])],
                    line, sizeof line);
        if (random_below(&random, 4) == 0) {
            now_us = later(&random, now_us);
            harness_set_clock(h, now_us);
            server_update_time(&h->server);
        } else {
            harness_run(h, s, line);
        }
        for (unsigned looks = 0; looks < 3; looks++) {
            size_t t = random_below(&random, TARGETS);
            size_t who = random_below(&random, IDENTITIES);
            struct answer *answer = &answers[t][who];
            if (answer->query != NULL && is_given_again(h, answer)) {
                again++;
                if (!is_right(h, targets[t], &identities[who], answer)) {
                    fail_msg("step %u: %s is given again, and is another one now; last: %s", i,
                             targets[t], line);
                }
                continue;
            }
            if (answer->query != NULL) {
                forget(h, answer);
            }
            keep(h, targets[t], &identities[who], answer);
        }
        ASSERT_VALID(watch_validate, &h->server.reads);
    }
    assert_true(again > 0);
    printf("%u times\n", again);
    for (size_t t = 0; t < TARGETS; t++) {
        for (size_t who = 0; who < IDENTITIES; who++) {
            if (answers[t][who].query != NULL) {
                forget(h, &answers[t][who]);
            }
        }
    }
}
