/* Commands of many members look them up in groups: their results are those of single look-ups, on
 * boards large enough to be fetched ahead (skiplist/lookup.h). Two keys of one server, the one
 * written by one long command, the other one member at a time, or by LB.ADD where the board's
 * options make that differ: CAP holds after the whole command. */
#include "skiplist/lookup.h"
#include "tests/server/zset_fixture.h"
#include "tests/support/random.h"

enum {
    MEMBERS = LOOKUP_BOARD_MIN + 2000,
    NAMES = MEMBERS + 1000, /* some are not on the board */
    SCORES = 300,           /* ties */
    PAIRS_MAX = 100,
    ROUNDS = 60,
};

static const char settings[] = "layout plain FIELD score 33 SIGNED TIME 31 S\n"
                               "layout three FIELD score 20 FIELD flag 1 FIELD level 11 SIGNED\n"
                               "layout latest FIELD score 20 TIME 40 MS LATEST\n"
                               "layout laps FIELD ms 32 ASC TIME 31 S\n"
                               "board cap:* plain CAP 5000\n"
                               "board best:* plain KEEP BEST\n"
                               "board both:* laps CAP 5000 KEEP BEST\n"
                               "board three:* three\n"
                               "board latest:* latest\n"
                               "board laps:* laps\n";

struct pairs {
    unsigned count;
    unsigned names[PAIRS_MAX];
    unsigned scores[PAIRS_MAX];
};

static int start(void **state) {
    struct harness *h = harness_create(settings);
    harness_connect(h);
    *state = h;
    return 0;
}

static int64_t run_integer(struct harness *h, const char *line) {
    return harness_run_integer(h, h->server.sessions.first, line);
}

/* Both boards alike, in members, scores, times and arrival. */
static void fill(struct harness *h, const char *prefix, struct random *random) {
    for (int i = 0; i < MEMBERS; i++) {
        zset_run(h, "ZADD %sone %d user:%d", prefix, (int)random_below(random, SCORES),
                 (int)random_below(random, NAMES));
    }
    zset_run(h, "COPY %sone %sother", prefix, prefix);
}

static void draw(struct random *random, struct pairs *pairs) {
    pairs->count = 1 + (unsigned)random_below(random, PAIRS_MAX);
    for (unsigned i = 0; i < pairs->count; i++) {
        /* Some come more than once. */
        bool is_repeated = i > 0 && random_below(random, 8) == 0;
        pairs->names[i] = is_repeated ? pairs->names[random_below(random, i)]
                                      : (unsigned)random_below(random, NAMES);
        pairs->scores[i] = (unsigned)random_below(random, SCORES);
    }
}

static int64_t write_all(struct harness *h, const char *command, const char *key,
                         const char *options, const struct pairs *pairs) {
    static char line[65536];
    size_t size = (size_t)snprintf(line, sizeof line, "%s %s %s", command, key, options);
    for (unsigned i = 0; i < pairs->count; i++) {
        size += (size_t)snprintf(line + size, sizeof line - size, " %u user:%u", pairs->scores[i],
                                 pairs->names[i]);
    }
    return run_integer(h, line);
}

static int64_t write_each(struct harness *h, const char *key, const char *options,
                          const struct pairs *pairs) {
    int64_t sum = 0;
    for (unsigned i = 0; i < pairs->count; i++) {
        char line[256];
        snprintf(line, sizeof line, "ZADD %s %s %u user:%u", key, options, pairs->scores[i],
                 pairs->names[i]);
        sum += run_integer(h, line);
    }
    return sum;
}

/* Scores, times and the order of equals. */
static void assert_same_boards(struct harness *h, const char *prefix) {
    OWNED char *first = strdup(
        harness_run_format(h, h->server.sessions.first, "LB.RANGE %sone 0 -1 WITHKEY", prefix));
    const char *second =
        harness_run_format(h, h->server.sessions.first, "LB.RANGE %sother 0 -1 WITHKEY", prefix);
    assert_non_null(first);
    assert_true(strcmp(first, second) == 0);
}

static const char *const options[] = {"",      "NX",    "XX",       "GT",       "LT",   "CH",
                                      "NX CH", "XX CH", "XX GT CH", "XX LT CH", "GT CH"};
enum { OPTIONS = sizeof options / sizeof options[0] };

#define LOOKUP_TEST(name) TEST_GIVEN(name, start, harness_tear_down, struct harness *h)

LOOKUP_TEST(long_zadds_have_the_results_of_short_ones) {
    static const char *const prefixes[] = {"", "three:", "latest:", "laps:"};
    struct random random = random_begin(__func__);
    for (size_t p = 0; p < sizeof prefixes / sizeof prefixes[0]; p++) {
        char one[32];
        char other[32];
        snprintf(one, sizeof one, "%sone", prefixes[p]);
        snprintf(other, sizeof other, "%sother", prefixes[p]);
        fill(h, prefixes[p], &random);
        for (int round = 0; round < ROUNDS; round++) {
            struct pairs pairs;
            const char *chosen = options[random_below(&random, OPTIONS)];
            draw(&random, &pairs);
            assert_int_equal(write_all(h, "ZADD", one, chosen, &pairs),
                             write_each(h, other, chosen, &pairs));
            h->wall_us += 700000;
        }
        assert_same_boards(h, prefixes[p]);
    }
}

LOOKUP_TEST(long_zadds_obey_cap_and_keep_best_as_lb_add_does) {
    static const char *const prefixes[] = {"cap:", "best:", "both:"};
    static const char *const shared[][2] = {{"CH", ""}, {"CH NX", "NX"}, {"CH XX", "XX"}};
    struct random random = random_begin(__func__);
    for (size_t p = 0; p < sizeof prefixes / sizeof prefixes[0]; p++) {
        char one[32];
        char other[32];
        snprintf(one, sizeof one, "%sone", prefixes[p]);
        snprintf(other, sizeof other, "%sother", prefixes[p]);
        fill(h, prefixes[p], &random);
        for (int round = 0; round < ROUNDS; round++) {
            struct pairs pairs;
            const char *const *chosen = shared[random_below(&random, 3)];
            draw(&random, &pairs);
            (void)write_all(h, "ZADD", one, chosen[0], &pairs);
            (void)write_all(h, "LB.ADD", other, chosen[1], &pairs);
            h->wall_us += 700000;
        }
        assert_same_boards(h, prefixes[p]);
    }
}

LOOKUP_TEST(a_long_zmscore_has_the_results_of_zscores) {
    struct random random = random_begin(__func__);
    fill(h, "", &random);
    for (int round = 0; round < ROUNDS; round++) {
        struct pairs pairs;
        static char line[65536];
        static char expected[65536];
        draw(&random, &pairs);
        size_t size = (size_t)snprintf(line, sizeof line, "ZMSCORE one");
        size_t expected_size = (size_t)snprintf(expected, sizeof expected, "*%u\r\n", pairs.count);
        for (unsigned i = 0; i < pairs.count; i++) {
            size += (size_t)snprintf(line + size, sizeof line - size, " user:%u", pairs.names[i]);
            expected_size +=
                (size_t)snprintf(expected + expected_size, sizeof expected - expected_size, "%s",
                                 harness_run_format(h, h->server.sessions.first,
                                                    "ZSCORE other user:%u", pairs.names[i]));
        }
        assert_string_equal(harness_run(h, h->server.sessions.first, line), expected);
    }
}

LOOKUP_TEST(a_long_zrem_has_the_results_of_short_ones) {
    struct random random = random_begin(__func__);
    fill(h, "", &random);
    for (int round = 0; round < ROUNDS; round++) {
        struct pairs pairs;
        static char line[65536];
        int64_t removed = 0;
        draw(&random, &pairs);
        size_t size = (size_t)snprintf(line, sizeof line, "ZREM one \"\"");
        for (unsigned i = 0; i < pairs.count; i++) {
            size += (size_t)snprintf(line + size, sizeof line - size, " user:%u", pairs.names[i]);
            removed += run_integer(h, formatted("ZREM other user:%u", pairs.names[i]));
        }
        assert_int_equal(run_integer(h, line), removed);
    }
    assert_same_boards(h, "");
}
