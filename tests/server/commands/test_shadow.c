/* Shadow bans: the member goes on and sees its entry among the others, who see nothing of it; beside servers that know no
 * bans. */
#include "server/commands/ban.h"
#include "server/commands/lb/lb.h"
#include "server/sessions/job.h"
#include "tests/server/player_fixture.h"
#include "tests/server/zset_fixture.h"
#include "tests/support/errors.h"
#include "tests/support/jwt_maker.h"
#include "tests/support/loop_server.h"
#include "tests/support/random.h"
#include "tests/support/registry_workload.h"

#define NOW      (HARNESS_START_US / 1000000)
#define SETTINGS "player-key back hs256 " JWT_MAKER_SECRET "\nuser player:back on ~* +@all\n"

static struct session *log_in(struct harness *h, const char *player) {
    char token[JWT_SIZE_MAX + 100];
    struct session *session = harness_connect(h);
    token[jwt_maker_player(JWT_HS256, player, NOW + 100000000, token)] = '\0';
    assert_string_equal(harness_run_format(h, session, "AUTH %s", token), "+OK\r\n");
    return session;
}

static int shadow_start(void **state) {
    struct harness *h = zset_start_job(state, SETTINGS, &ban_shadow_job);
    shadow_end(h->shadow); /* the module has no players */
    return 0;
}

#define SHADOW_TEST(name)                                                                          \
    static void name##_in(struct harness *h, struct session *s);                                   \
    TEST_WITH(name, shadow_start, zset_end_jobs) {                                                 \
        struct harness *h = *state;                                                                \
        name##_in(h, h->server.sessions.first);                                                    \
    }                                                                                              \
    static void name##_in(__attribute__((unused)) struct harness *h,                               \
                          __attribute__((unused)) struct session *s)

/* Until nothing is due. */
static void settle(struct harness *h) {
    server_update_time(&h->server);
    (void)registry_expiry_remove_due(h->server.registry, h->server.clock.now_ms, 1000000);
    while (job_list_step(&h->server, 0, true)) {}
}

struct row {
    const char *line, *reply;
};
static void expect(struct harness *h, struct session *session, const char *line,
                   const char *reply) {
    harness_expect(h, session, line, reply);
}

static const char *create = "LB.CREATE k FIELD score 32 TIME 31 S TAG clan 8";

static void fill(struct harness *h, struct session *s) {
    expect(h, s, create, "+OK\r\n");
    expect(h, s, "LB.ADD k 100 ann 200 bob 50 cid", ":3\r\n");
    expect(h, s, "LB.TAG k ann clan wolves", ":1\r\n");
}

SHADOW_TEST(what_moves_members_is_refused) {
    expect(h, s, "ZADD wait 9 ann 8 bob", ":2\r\n");
    expect(h, s, "ZADD there 1 cid", ":1\r\n");
    expect(h, s, "LB.BAN ann SHADOW MATCH *e", ":0\r\n");
    for (int i = 0; i < 2; i++) {
        harness_expect_part(h, s, i == 0 ? "ZMOVE wait there MAX COUNT 2" : "ZMOVE wait e MAX",
                            "-BANNED");
        expect(h, s, "ZRANGE wait 0 -1", "*2\r\n$3\r\nbob\r\n$3\r\nann\r\n");
        expect(h, s, "ZCARD there", ":1\r\n"); /* and the next command is as any other */
        expect(h, s, "EXISTS e", ":0\r\n");
    }
}

SHADOW_TEST(what_a_player_says_beside_its_name_shows_nobody) {
    struct session *cid = log_in(h, "cid");
    fill(h, s);
    expect(h, s, "LB.BAN ann SHADOW", ":1\r\n");
    harness_expect_part(h, cid, "LB.ADD k WITHRANK 51 cid", "cid\r\n:1\r\n");
    harness_expect_part(h, cid, "LB.ADD k WITHRANK TAG clan ann 52 cid", "cid\r\n:1\r\n");
    harness_expect_part(h, cid, "LB.ADD k WITHRANK ONCE ann 53 cid", "cid\r\n:1\r\n");
}

SHADOW_TEST(words_that_name_no_member_show_nobody) {
    fill(h, s);
    expect(h, s, "LB.BAN ann SHADOW", ":1\r\n");
    harness_expect_part(h, s, "LB.ADD k WITHRANK 51 cid", "cid\r\n:1\r\n");
    harness_expect_part(h, s, "LB.ADD k WITHRANK TAG clan ann 52 cid", "cid\r\n:1\r\n");
    harness_expect_part(h, s, "LB.ADD k WITHRANK ONCE ann 53 cid", "cid\r\n:1\r\n");
    harness_expect_part(h, s, "LB.SUBMIT 1 k TAG clan ann 54 cid", "cid\r\n:1\r\n");
    expect(h, s, "LB.TAG k cid clan ann", ":0\r\n");
    expect(h, s, "ZCARD k", ":2\r\n");
}

/* By the board's layout, behind options, and on a board that is to come. */
SHADOW_TEST(members_are_found_wherever_they_are_named) {
    static const char *const lines[] = {
        "LB.ADD two 1 2 bob 3 4 ann",    "LB.ADD two 3 4 ann 1 2 bob",
        "LB.ADD two PACKED 9 bob 8 ann", "LB.ADD two NX TAG clan x 7 8 ann 5 6 bob",
        "ZADD two 5 bob 4 ann",          "ZADD two NX CH 5 ann 4 bob",
        "LB.SUBMIT 1 two 1 2 ann",       "ZINCRBY two 5 ann",
        "LB.ADD new 5 bob 6 ann",        "ZADD new 5 bob 6 ann"};
    struct session *ann = log_in(h, "ann");
    expect(h, s, "LB.BAN ann SHADOW", ":0\r\n");
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        test_row("%s", lines[i]);
        expect(h, s, "LB.CREATE two FIELD a 16 FIELD b 16 TAG clan 8", "+OK\r\n");
        const char *board = strstr(lines[i], "two") != NULL ? "two" : "new";
        assert_true(harness_run(h, s, lines[i])[0] != '-');
        expect(h, s, formatted("ZSCORE %s ann", board), "$-1\r\n");
        harness_expect_part(h, ann, formatted("ZREVRANK %s ann", board), ":");
        expect(h, s, "DEL two", ":1\r\n");
    }
}

SHADOW_TEST(the_member_sees_itself_among_the_others_who_do_not) {
    struct session *ann = log_in(h, "ann");
    struct session *bob = log_in(h, "bob");
    struct session *const others[] = {s, bob};
    static const struct row own[] = {
        {"ZREVRANK k ann", ":1\r\n"},
        {"ZSCORE k ann", "$3\r\n100\r\n"},
        {"ZCARD k", ":3\r\n"},
        {"ZREVRANGE k 0 -1", "*3\r\n$3\r\nbob\r\n$3\r\nann\r\n$3\r\ncid\r\n"},
        {"LB.COUNT k", ":3\r\n"},
        {"LB.COUNT k WHERE clan wolves", ":1\r\n"},
        {"LB.TAGS k ann", "*1\r\n*2\r\n$4\r\nclan\r\n$6\r\nwolves\r\n"},
        {"ZREVRANK k cid", ":2\r\n"},
    };
    static const struct row seen[] = {
        {"ZREVRANK k ann", "$-1\r\n"},
        {"ZSCORE k ann", "$-1\r\n"},
        {"ZCARD k", ":2\r\n"},
        {"ZREVRANGE k 0 -1", "*2\r\n$3\r\nbob\r\n$3\r\ncid\r\n"},
        {"LB.COUNT k", ":2\r\n"},
        {"LB.COUNT k WHERE clan wolves", ":0\r\n"},
        {"LB.TAGS k ann", "*1\r\n*-1\r\n"},
        {"ZREVRANK k cid", ":1\r\n"},
    };
    fill(h, s);
    for (size_t i = 0; i < COUNT_OF(own); i++) {
        expect(h, s, own[i].line, own[i].reply); /* before the ban it is so for all */
    }
    expect(h, s, "LB.BAN ann SHADOW", ":1\r\n");
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < COUNT_OF(own); i++) {
            expect(h, ann, own[i].line, own[i].reply);
            expect(h, others[i % 2], seen[i].line, seen[i].reply);
        }
        expect(h, s, "LB.BAN ann SHADOW", ":1\r\n"); /* once more changes nothing */
    }
    harness_expect_part(h, ann, "LB.AROUND k MEMBER ann 1", "ann");
    harness_expect_part(h, ann, "LB.RANGE k 0 -1", "ann");
    harness_expect_part(h, ann, "LB.GET k ann", "ann");
    expect(h, s, "LB.BANS", "*2\r\n$1\r\n0\r\n*1\r\n*4\r\n$3\r\nann\r\n$1\r\n*\r\n$-1\r\n:1\r\n");
    expect(h, s, "LB.UNBAN ann", ":1\r\n");
    settle(h);
    for (size_t i = 0; i < COUNT_OF(own); i++) {
        expect(h, others[i % 2], own[i].line, own[i].reply);
    }
}

SHADOW_TEST(results_go_on_and_count_for_the_entry_whoever_sends_them) {
    struct session *ann = log_in(h, "ann");
    fill(h, s);
    expect(h, s, "LB.BAN ann SHADOW", ":1\r\n");
    expect(h, ann, "LB.ADD k INCR 50 ann", ":1\r\n");
    expect(h, ann, "ZINCRBY k 100 ann", "$3\r\n250\r\n");
    expect(h, ann, "ZREVRANK k ann", ":0\r\n");
    expect(h, s, "ZINCRBY k 1 ann", "$3\r\n251\r\n");
    expect(h, s, "ZADD k 7 eve 252 ann 8 bob", ":1\r\n");
    expect(h, s, "ZSCORE k ann", "$-1\r\n");
    expect(h, ann, "ZSCORE k ann", "$3\r\n252\r\n");
    expect(h, ann, "LB.TAG k ann clan ravens", ":1\r\n");
    expect(h, ann, "LB.TAG k ann clan ravens", ":0\r\n");
    expect(h, s, "LB.TAGS k ann", "*1\r\n*-1\r\n");
    expect(h, ann, "MULTI", "+OK\r\n");
    expect(h, ann, "ZINCRBY k 1 ann", "+QUEUED\r\n");
    expect(h, ann, "ZREVRANK k ann", "+QUEUED\r\n");
    expect(h, ann, "EXEC", "*2\r\n$3\r\n253\r\n:0\r\n");
    expect(h, s, "ZREVRANGE k 0 -1", "*3\r\n$3\r\ncid\r\n$3\r\nbob\r\n$3\r\neve\r\n");
    /* It takes itself off, and comes again. */
    expect(h, ann, "ZREM k ann", ":1\r\n");
    expect(h, ann, "ZREM k ann", ":0\r\n");
    expect(h, ann, "ZSCORE k ann", "$-1\r\n");
    expect(h, ann, "LB.ADD k 9 ann", ":1\r\n");
    expect(h, ann, "LB.ADD k NX 10 ann", ":0\r\n");
    expect(h, ann, "ZREVRANK k ann", ":1\r\n");
    expect(h, s, "ZREVRANK k ann", "$-1\r\n");
    expect(h, s, "LB.UNBAN ann", ":1\r\n");
    settle(h);
    expect(h, s, "ZREVRANK k ann", ":1\r\n");
}

SHADOW_TEST(a_first_result_on_a_board_is_a_shadow_too) {
    struct session *ann = log_in(h, "ann");
    expect(h, s, create, "+OK\r\n");
    expect(h, s, "LB.BAN ann SHADOW", ":0\r\n");
    expect(h, ann, "LB.ADD k WITHRANK 5 ann",
           "*1\r\n*2\r\n*4\r\n$3\r\nann\r\n:0\r\n:1767225600000\r\n:5\r\n$-1\r\n");
    expect(h, ann, "ZCARD k", ":1\r\n");
    expect(h, s, "ZCARD k", ":0\r\n");
    /* Boards that results make, too; there may be nobody else. */
    expect(h, s, "ZADD new 5 ann", ":1\r\n");
    expect(h, s, "ZCARD new", ":0\r\n");
    expect(h, ann, "ZCARD new", ":1\r\n");
    expect(h, s, "ZADD other 5 ann 6 ann 7 bob", ":2\r\n");
    expect(h, s, "ZRANGE other 0 -1", "*1\r\n$3\r\nbob\r\n");
    expect(h, ann, "ZSCORE other ann", "$1\r\n6\r\n");
    expect(h, s, "LB.SUBMIT 2 fresh k 8 ann",
           "*2\r\n"
           "*3\r\n*4\r\n$3\r\nann\r\n:0\r\n:1767225600000\r\n:8\r\n$-1\r\n:1\r\n"
           "*3\r\n*4\r\n$3\r\nann\r\n:0\r\n:1767225600000\r\n:8\r\n:0\r\n:1\r\n");
    expect(h, s, "ZCARD fresh", ":0\r\n");
    expect(h, s, "ZREM new ann", ":1\r\n");
    expect(h, s, "EXISTS new", ":0\r\n");
    expect(h, s, "ZADD new XX 5 ann", ":0\r\n");
    expect(h, s, "EXISTS new", ":0\r\n");
    expect(h, s, "LB.UNBAN ann", ":1\r\n");
    settle(h);
    expect(h, s, "ZRANGE other 0 -1", "*2\r\n$3\r\nann\r\n$3\r\nbob\r\n");
    expect(h, s, "ZSCORE fresh ann", "$1\r\n8\r\n");
}

SHADOW_TEST(a_ban_ends_by_itself_and_a_clock_that_is_set_back_does_not_prolong_it) {
    struct session *ann = log_in(h, "ann");
    fill(h, s);
    expect(h, s, "LB.BAN ann SHADOW EX 100", ":1\r\n");
    h->step_us -= 50000000;
    h->wall_us += 60000000;
    settle(h);
    expect(h, s, "ZSCORE k ann", "$-1\r\n");
    expect(h, ann, "ZINCRBY k 1 ann", "$3\r\n101\r\n");
    h->wall_us += 95000000;
    settle(h);
    expect(h, s, "ZSCORE k ann", "$3\r\n101\r\n");
    expect(h, s, "LB.TAGS k ann", "*1\r\n*2\r\n$4\r\nclan\r\n$6\r\nwolves\r\n");
    /* Behind the end the first write puts it back, if the job has not. */
    expect(h, s, "LB.BAN ann SHADOW EX 100", ":1\r\n");
    h->wall_us += 200000000;
    expect(h, ann, "ZINCRBY k 1 ann", "$3\r\n102\r\n");
    expect(h, s, "ZSCORE k ann", "$3\r\n102\r\n");
}

SHADOW_TEST(each_pattern_has_its_own_end_and_a_full_ban_is_one) {
    fill(h, s);
    expect(h, s, "ZADD l 3 ann 4 bob", ":2\r\n");
    expect(h, s, "LB.BAN ann SHADOW EX 100 MATCH k*", ":1\r\n");
    expect(h, s, "LB.BAN ann SHADOW EX 1000 MATCH l*", ":1\r\n");
    h->wall_us += 200000000;
    settle(h);
    expect(h, s, "ZSCORE k ann", "$3\r\n100\r\n");
    expect(h, s, "ZSCORE l ann", "$-1\r\n");
    h->wall_us += 1000000000;
    settle(h);
    expect(h, s, "ZSCORE l ann", "$1\r\n3\r\n");
    expect(h, s, "LB.BAN ann SHADOW", ":2\r\n");
    expect(h, s, "LB.BAN ann MATCH k*", ":1\r\n");
    expect(h, s, "ZADD k 5 ann", ERROR_BANNED "\r\n");
    expect(h, s, "ZADD l 5 ann", ":0\r\n");
    expect(h, s, "LB.UNBAN ann", ":1\r\n");
    settle(h);
    expect(h, s, "ZSCORE k ann", "$-1\r\n");
    expect(h, s, "ZSCORE l ann", "$1\r\n5\r\n");
}

SHADOW_TEST(what_cannot_have_shadows_bans_in_full) {
    static const char *const boards[] = {
        "LB.CREATE w PERIOD DAY ARCHIVE 3 WINDOW 2 SUM",
        "LB.CREATE r RATING ELO",
    };
    for (size_t i = 0; i < COUNT_OF(boards); i++) {
        expect(h, s, boards[i], "+OK\r\n");
    }
    expect(h, s, "ZADD w 5 ann", ":1\r\n");
    harness_expect_part(h, s, "LB.MATCH r TEAM 1 ann TEAM 1 bob", "ann");
    expect(h, s, "LB.BAN ann SHADOW", ":3\r\n"); /* w, its share, and r */
    expect(h, s, "ZADD w 5 ann", ERROR_BANNED "\r\n");
    expect(h, s, "ZCARD w", ":0\r\n");
    expect(h, s, "ZCARD r", ":1\r\n");
}

SHADOW_TEST(what_is_refused_leaves_a_board_as_it_was) {
    expect(h, s, "LB.CREATE k FIELD score 32 TIME 31 S", "+OK\r\n");
    expect(h, s, "LB.CREATE l FIELD score 32 TIME 31 S", "+OK\r\n");
    expect(h, s, "LB.BAN ann SHADOW", ":0\r\n");
    uint64_t before = workload_digest(h->server.registry);
    harness_expect_prefix(h, s, "LB.ADD k 5 ann 0.5 ann", "-ERR value 0.5");
    harness_expect_prefix(h, s, "LB.SUBMIT 2 k l 0.5 ann", "-ERR value 0.5");
    expect(h, s, "LB.ADD k XX 5 ann", ":0\r\n");
    expect(h, s, "ZREM k ann", ":0\r\n");
    assert_int_equal(workload_digest(h->server.registry), before);
    expect(h, s, "LB.ADD k 5 ann 6 ann", ":2\r\n");
    assert_int_not_equal(workload_digest(h->server.registry), before);
}

static void count_note(void *context, const struct effect *effect) {
    *(int *)context += effect->kind == EFFECT_NOTE;
}

SHADOW_TEST(what_changes_nothing_does_not_write_the_entry_anew) {
    int notes = 0;
    struct effect_listener listener = {.receive = count_note, .context = &notes};
    fill(h, s);
    expect(h, s, "LB.BAN ann SHADOW", ":1\r\n");
    effect_listener_add(h->server.registry, &listener);
    expect(h, s, "ZADD k NX 500 ann", ":0\r\n");
    expect(h, s, "LB.ADD k 100 ann", ":0\r\n");
    expect(h, s, "LB.TAG k ann clan wolves", ":0\r\n");
    assert_int_equal(notes, 0);
    expect(h, s, "LB.TAG k ann clan foxes", ":1\r\n");
    expect(h, s, "ZADD k 500 ann", ":0\r\n");
    assert_int_equal(notes, 2);
    effect_listener_remove(h->server.registry, &listener);
}

SHADOW_TEST(cap_keep_best_and_limits_are_as_for_all) {
    struct session *ann = log_in(h, "ann");
    expect(h, s, "LB.CREATE c FIELD score 32 TIME 31 S CAP 2 KEEP BEST", "+OK\r\n");
    expect(h, s, "ZADD c 10 ann 20 bob", ":2\r\n");
    expect(h, s, "LB.BAN ann SHADOW", ":1\r\n");
    expect(h, s, "ZADD c 5 cid", ":1\r\n");
    expect(h, ann, "ZADD c 30 ann", ":0\r\n");
    expect(h, ann, "ZADD c 25 ann", ":0\r\n");
    expect(h, ann, "ZREVRANGE c 0 -1", "*3\r\n$3\r\nann\r\n$3\r\nbob\r\n$3\r\ncid\r\n");
    expect(h, s, "ZREVRANGE c 0 -1", "*2\r\n$3\r\nbob\r\n$3\r\ncid\r\n");
    expect(h, s, "ZADD c 40 dan 31 ann", ":1\r\n");
    expect(h, s, "ZREVRANGE c 0 -1", "*2\r\n$3\r\ndan\r\n$3\r\nbob\r\n");
    expect(h, s, "LB.UNBAN ann", ":1\r\n");
    settle(h);
    expect(h, s, "ZREVRANGE c 0 -1", "*2\r\n$3\r\ndan\r\n$3\r\nann\r\n");
    expect(h, s, "LB.CREATE l FIELD score 32 TIME 31 S LIMITS PLAYERS EVERY 10 S", "+OK\r\n");
    expect(h, s, "LB.BAN ann SHADOW", ":1\r\n");
    expect(h, ann, "ZADD l 5 ann", ":1\r\n");
    expect(h, ann, "ZADD l 6 ann", "-TOOSOON EVERY 10 S: wait 10 s\r\n");
    h->wall_us += 10000000;
    expect(h, ann, "ZADD l 6 ann", ":0\r\n");
    expect(h, s, "ZCARD l", ":0\r\n");
}

SHADOW_TEST(a_hidden_entry_takes_no_place_of_a_full_board_and_comes_back_to_it) {
    struct session *ann = log_in(h, "ann");
    struct session *eve = log_in(h, "eve");
    expect(h, s, "LB.CREATE k FIELD score 32 LIMIT 2", "+OK\r\n");
    expect(h, s, "ZADD k 10 ann 20 bob", ":2\r\n");
    expect(h, s, "LB.BAN ann SHADOW", ":1\r\n");
    expect(h, s, "LB.BAN eve SHADOW", ":0\r\n");
    expect(h, s, "ZADD k 5 cid", ":1\r\n");
    harness_expect_prefix(h, s, "ZADD k 5 dan", "-FULL");
    harness_expect_prefix(h, eve, "ZADD k 5 eve", "-FULL"); /* as for all, and nothing is kept */
    expect(h, eve, "ZCARD k", ":2\r\n");
    expect(h, ann, "ZADD k 30 ann", ":0\r\n");
    expect(h, ann, "ZCARD k", ":3\r\n");
    expect(h, s, "LB.UNBAN ann", ":1\r\n");
    settle(h);
    expect(h, s, "ZREVRANGE k 0 -1", "*3\r\n$3\r\nann\r\n$3\r\nbob\r\n$3\r\ncid\r\n");
    expect(h, s, "ZADD k 31 ann", ":0\r\n");
    harness_expect_prefix(h, s, "ZADD k 5 dan", "-FULL");
}

SHADOW_TEST(what_carries_the_board_carries_it) {
    struct session *ann = log_in(h, "ann");
    char *blob;
    fill(h, s);
    expect(h, s, "LB.BAN ann SHADOW", ":1\r\n");
    expect(h, s, "COPY k l", ":1\r\n");
    expect(h, s, "RENAME k m", "+OK\r\n");
    expect(h, ann, "ZREVRANK l ann", ":1\r\n");
    expect(h, ann, "ZREVRANK m ann", ":1\r\n");
    expect(h, s, "LB.ROLL m n", ":2\r\n");
    expect(h, ann, "ZREVRANK n ann", ":1\r\n");
    expect(h, ann, "ZREVRANK m ann", "$-1\r\n");
    const char *reply = harness_run(h, s, "DUMP n");
    size_t size = strtoul(reply + 1, NULL, 10);
    blob = malloc(size);
    assert_non_null(blob);
    memcpy(blob, strchr(reply, '\n') + 1, size);
    const struct bytes args[] = {BYTES("RESTORE"), BYTES("o"), BYTES("0"), {blob, size}};
    assert_string_equal(harness_run_args(h, s, args, 4), "+OK\r\n");
    free(blob);
    expect(h, s, "ZCARD o", ":2\r\n");
    expect(h, ann, "ZREVRANK o ann", ":1\r\n");
    /* LB.FORGET forgets it everywhere. */
    expect(h, s, "LB.FORGET ann", ":3\r\n");
    expect(h, ann, "ZREVRANK o ann", "$-1\r\n");
    expect(h, s, "LB.UNBAN ann", ":1\r\n");
    settle(h);
    expect(h, s, "ZCARD o", ":2\r\n");
}

SHADOW_TEST(nobody_takes_it_off_who_may_not_see_it) {
    struct session *ann = log_in(h, "ann");
    struct session *bob = log_in(h, "bob");
    fill(h, s);
    expect(h, s, "LB.BAN ann SHADOW", ":1\r\n");
    harness_expect_prefix(h, bob, "ZREM k ann", "-NOPERM");
    harness_expect_prefix(h, ann, "LB.UNBAN ann", "-NOPERM");
    expect(h, s, "ZPOPMAX k 5", "*4\r\n$3\r\nbob\r\n$3\r\n200\r\n$3\r\ncid\r\n$2\r\n50\r\n");
    expect(h, ann, "ZRANGE k 0 -1", "*1\r\n$3\r\nann\r\n");
    expect(h, s, "ZUNIONSTORE u 1 k", ":0\r\n");
    expect(h, s, "ZREMRANGEBYRANK k 0 -1", ":0\r\n");
    expect(h, ann, "ZRANGE k 0 -1", "*1\r\n$3\r\nann\r\n");
}

/* ---- HOLD ---- */

static const int64_t HOUR_US = INT64_C(3600000000);

SHADOW_TEST(what_auto_would_approve_waits_until_the_ban_is_over) {
    struct session *ann = log_in(h, "ann");
    job_board_begin(&h->server, &hold_job);
    expect(h, s, "LB.CREATE k FIELD score 32 TIME 31 S KEEP BEST HOLD ALL OVER 100 AUTO 1 H",
           "+OK\r\n");
    expect(h, s, "LB.ADD k WITHHELD 50 ann 60 bob", "*2\r\n:2\r\n:0\r\n");
    expect(h, s, "LB.ADD k WITHHELD 150 ann 110 bob", "*2\r\n:0\r\n:2\r\n");
    expect(h, s, "LB.BAN ann SHADOW EX 7200", ":1\r\n");
    expect(h, ann, "LB.ADD k WITHHELD 200 ann", "*2\r\n:0\r\n:1\r\n");
    expect(h, ann, "LB.ADD k WITHHELD 70 ann", "*2\r\n:1\r\n:0\r\n");
    h->wall_us += HOUR_US + HOUR_US / 2;
    settle(h);
    expect(h, s, "ZREVRANGE k 0 -1", "*1\r\n$3\r\nbob\r\n");
    expect(h, s, "ZSCORE k bob", "$3\r\n110\r\n");
    expect(h, ann, "ZSCORE k ann", "$2\r\n70\r\n");
    harness_expect_part(h, s, "LB.HELD k MEMBER ann", "*2\r\n*7\r\n:1\r\n");
    /* Who names the member may approve: it is of the entry that it alone sees. */
    expect(h, s, "LB.APPROVE k ann 1", ":1\r\n");
    expect(h, ann, "ZSCORE k ann", "$3\r\n150\r\n");
    expect(h, s, "ZSCORE k ann", "$-1\r\n");
    h->wall_us += HOUR_US;
    settle(h);
    expect(h, s, "ZSCORE k ann", "$3\r\n200\r\n");
    expect(h, s, "LB.HELD k", "*2\r\n$1\r\n0\r\n*0\r\n");
}

/* Whichever job is first at a board: the entry is there before what was held is added to it. */
SHADOW_TEST(what_was_held_is_of_the_entry_that_comes_back) {
    enum { MANY = 300 };
    job_board_begin(&h->server, &hold_job);
    expect(h, s, "LB.CREATE k FIELD score 32 TIME 31 S KEEP BEST HOLD ALL OVER 1000 AUTO 1 H",
           "+OK\r\n");
    for (int i = 0; i < MANY; i++) {
        bool is_sum = i % 2 == 0;
        expect(h, s, formatted("LB.ADD k 900 m%d", i), ":1\r\n");
        expect(h, s, formatted("LB.ADD k %s 1005 m%d", is_sum ? "INCR" : "", i), ":0\r\n");
        expect(h, s, formatted("LB.BAN m%d SHADOW EX 7200", i), ":1\r\n");
    }
    expect(h, s, "ZCARD k", ":0\r\n");
    h->wall_us += 2 * HOUR_US + 61000000;
    settle(h);
    expect(h, s, "ZCARD k", formatted(":%d\r\n", MANY));
    for (int i = 0; i < MANY; i++) {
        expect(h, s, formatted("ZSCORE k m%d", i),
               i % 2 == 0 ? "$4\r\n1905\r\n" : "$4\r\n1005\r\n");
    }
}

SHADOW_TEST(what_is_approved_of_a_hidden_entry_pushes_nobody_off) {
    struct session *ann = log_in(h, "ann");
    expect(h, s, "LB.CREATE k FIELD score 32 TIME 31 S CAP 2 HOLD ALL OVER 100", "+OK\r\n");
    expect(h, s, "ZADD k 10 ann 20 bob", ":2\r\n");
    expect(h, s, "LB.BAN ann SHADOW", ":1\r\n");
    expect(h, s, "ZADD k 5 cid", ":1\r\n");
    expect(h, ann, "LB.ADD k WITHHELD 150 ann", "*2\r\n:0\r\n:1\r\n");
    expect(h, s, "LB.APPROVE k ann 1", ":1\r\n");
    expect(h, s, "ZREVRANGE k 0 -1", "*2\r\n$3\r\nbob\r\n$3\r\ncid\r\n");
    expect(h, ann, "ZREVRANGE k 0 -1", "*3\r\n$3\r\nann\r\n$3\r\nbob\r\n$3\r\ncid\r\n");
}

/* That others have pushed it out counts with its next result, not with one that is refused. */
SHADOW_TEST(what_changes_nothing_of_an_entry_leaves_it_below_cap) {
    struct session *ann = log_in(h, "ann");
    expect(h, s, "LB.CREATE k FIELD score 32 TIME 31 S CAP 2", "+OK\r\n");
    expect(h, s, "ZADD k 10 ann", ":1\r\n");
    expect(h, s, "LB.BAN ann SHADOW", ":1\r\n");
    expect(h, s, "ZADD k 20 bob 30 cid", ":2\r\n");
    expect(h, ann, "ZSCORE k ann", "$-1\r\n");
    uint64_t before = workload_digest(h->server.registry);
    harness_expect_prefix(h, s, "LB.ADD k 0.5 ann", "-ERR value 0.5");
    expect(h, ann, "LB.ADD k BEST 9 ann", ":0\r\n");
    assert_int_equal(workload_digest(h->server.registry), before);
    expect(h, s, "ZREM k cid", ":1\r\n");
    expect(h, ann, "ZSCORE k ann", "$2\r\n10\r\n");
    expect(h, s, "ZADD k 30 cid", ":1\r\n");
    expect(h, ann, "LB.ADD k 11 ann", ":1\r\n");
    expect(h, s, "ZREM k cid", ":1\r\n");
    expect(h, ann, "ZSCORE k ann", "$-1\r\n");
}

/* ---- memory ---- */

SHADOW_TEST(without_memory_nothing_is_seen_and_nothing_lost) {
    static const char *const lines[] = {"ZINCRBY k 1 ann", "ZREVRANK k ann", "LB.ADD j 5 ann",
                                        "ZADD i 5 ann", "LB.TAG k ann clan ravens"};
    struct session *ann = log_in(h, "ann");
    fill(h, s);
    expect(h, s, "LB.CREATE j FIELD score 32 TIME 31 S TAG clan 8", "+OK\r\n");
    expect(h, s, "LB.BAN ann SHADOW", ":1\r\n");
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        struct session *by = i == 3 ? s : ann;
        bool has_failed = true;
        for (uint64_t nth = 1; has_failed; nth++) {
            const char *reply = harness_run_failing(h, by, lines[i], nth);
            has_failed = strncmp(reply, "-OOM", 4) == 0;
            test_row("%s: %d %s", lines[i], (int)nth, reply);
            assert_true(has_failed || reply[0] != '-');
            if (has_failed) {
                expect(h, ann, "ZSCORE k ann", i == 0 ? "$3\r\n100\r\n" : "$3\r\n101\r\n");
                expect(h, ann, "ZSCORE j ann", i <= 2 ? "$-1\r\n" : "$1\r\n5\r\n");
            }
            expect(h, s, "ZCARD k", ":2\r\n");
            expect(h, s, "ZSCORE j ann", "$-1\r\n");
            expect(h, s, "ZSCORE i ann", "$-1\r\n");
            if (!has_failed && i == 0) {
                expect(h, ann, "ZSCORE k ann", "$3\r\n101\r\n");
            }
        }
    }
    expect(h, ann, "LB.TAGS k ann", "*1\r\n*2\r\n$4\r\nclan\r\n$6\r\nravens\r\n");
}

/* ---- many ---- */

SHADOW_TEST(many_come_back_in_steps) {
    enum { MANY = 5000 };
    expect(h, s, create, "+OK\r\n");
    for (int i = 0; i < MANY; i++) {
        expect(h, s, formatted("LB.ADD k %d m%d", i, i), ":1\r\n");
    }
    OWNED char *before = zset_dump(h, "k");
    for (int i = 0; i < MANY; i += 2) {
        expect(h, s, formatted("LB.BAN m%d SHADOW EX %d", i, 100 + i % 10), ":1\r\n");
    }
    expect(h, s, "ZCARD k", formatted(":%d\r\n", MANY / 2));
    settle(h);
    expect(h, s, "ZCARD k", formatted(":%d\r\n", MANY / 2));
    h->wall_us += 200000000;
    int64_t groups = 0;
    server_update_time(&h->server);
    while (job_list_step(&h->server, 0, true)) {
        groups++;
    }
    assert_true(groups > MANY / 2 / 8);
    OWNED char *after = zset_dump(h, "k");
    assert_string_equal(before, after);
}

/* A pass over 4,000 keys is followed by 20 ms of rest. */
SHADOW_TEST(bans_that_end_one_after_another_share_passes) {
    enum { MANY = 50, KEYS = 4000 };
    const struct board_job *job = (const struct board_job *)h->server.jobs.first;
    for (int i = 0; i < KEYS; i++) {
        expect(h, s, formatted("ZADD other:%d 1 ann", i), ":1\r\n");
    }
    for (int i = 0; i < MANY; i++) {
        expect(h, s, formatted("ZADD k %d m%d", i, i), ":1\r\n");
        expect(h, s, formatted("LB.BAN m%d SHADOW", i), ":1\r\n");
    }
    settle(h);
    uint64_t turn = job->turn;
    for (int i = 0; i < MANY; i++) {
        expect(h, s, formatted("LB.UNBAN m%d", i), ":1\r\n");
        h->wall_us += 1000;
        settle(h);
    }
    assert_in_range(job->turn - turn, 2, 4);
    h->wall_us += 20000;
    settle(h);
    expect(h, s, "ZCARD k", formatted(":%d\r\n", MANY));
    assert_in_range(job->turn - turn, 3, 5);
}

/* What is refused opens the board for an entry, and closes it again. */
SHADOW_TEST(refused_results_share_passes) {
    enum { MANY = 50, KEYS = 4000 };
    const struct board_job *job = (const struct board_job *)h->server.jobs.first;
    for (int i = 0; i < KEYS; i++) {
        expect(h, s, formatted("ZADD other:%d 1 bob", i), ":1\r\n");
    }
    fill(h, s);
    expect(h, s, "LB.CREATE l FIELD score 32 TIME 31 S LIMITS PLAYERS EVERY 10 S", "+OK\r\n");
    struct session *bob = log_in(h, "bob");
    struct session *ann = log_in(h, "ann");
    expect(h, bob, "ZADD l 5 bob", ":1\r\n");
    expect(h, s, "LB.BAN ann SHADOW", ":1\r\n");
    settle(h);
    uint64_t turn = job->turn;
    for (int i = 0; i < MANY; i++) {
        expect(h, ann, "LB.ADD l XX 5 ann", ":0\r\n");
        h->wall_us += 1000;
        settle(h);
    }
    assert_in_range(job->turn - turn, 0, 4);
}

/* The job begins behind the ban, as after a restart, and another ban is there. */
SHADOW_TEST(entries_made_under_bans_from_before_the_job_come_back) {
    fill(h, s);
    expect(h, s, "LB.BAN ann SHADOW EX 1000", ":1\r\n");
    expect(h, s, "LB.BAN new SHADOW EX 100 MATCH k", ":0\r\n");
    expect(h, s, "LB.BAN new SHADOW EX 2000 MATCH other", ":0\r\n");
    job_list_end(&h->server);
    job_board_begin(&h->server, &ban_shadow_job);
    settle(h);
    expect(h, s, "ZADD k 5 new", ":1\r\n");
    settle(h);
    expect(h, s, "ZSCORE k new", "$-1\r\n");
    h->wall_us += 101000000;
    settle(h);
    expect(h, s, "ZSCORE k new", "$1\r\n5\r\n");
    expect(h, s, "ZCARD k", ":3\r\n");
}

/* The pass has come by the board already, and not yet to the ban, whose key stays for another pattern. */
SHADOW_TEST(a_ban_that_ends_during_a_pass_brings_its_entry_back) {
    const struct board_job *job = (const struct board_job *)h->server.jobs.first;
    for (int i = 0; i < 100; i++) {
        expect(h, s, formatted("ZADD other:%d 1 bob", i), ":1\r\n");
    }
    fill(h, s);
    expect(h, s, "LB.BAN ann SHADOW EX 100 MATCH k", ":1\r\n");
    expect(h, s, "LB.BAN ann SHADOW EX 2000 MATCH e", ":0\r\n");
    expect(h, s, "LB.BAN eve EX 99", ":0\r\n");
    expect(h, s, "LB.BAN eve EX 2000 MATCH e", ":0\r\n");
    settle(h);
    h->wall_us += 99500000;
    server_update_time(&h->server);
    do {
        assert_true(job_list_step(&h->server, 0, true));
    } while (!job->pass.is_going || job->has_board || job->passed_count < 32);
    for (int i = 0; i < 2; i++) {
        h->wall_us += 1000000;
        settle(h);
    }
    expect(h, s, "ZCARD k", ":3\r\n");
}

/* ---- what comes while a ban's job is on its way ---- */

enum { WAY = 300 /* boards */ };

static void begin_on_the_way(struct harness *h, struct session *s, const char *line) {
    expect(h, s, "ZADD z 1 eve", ":1\r\n");
    expect(h, s, "LB.BAN eve SHADOW", ":1\r\n");
    settle(h);
    for (int i = 0; i < WAY; i++) {
        expect(h, s, formatted("ZADD b:%d 5 ann", i), ":1\r\n");
    }
    player_begin(h, h->server.sessions.first->next, line);
}

static void end_the_way(struct harness *h) {
    struct session *client = h->server.sessions.first->next;
    settle(h);
    if (client->job != NULL) {
        (void)player_end(h, client);
    }
    settle(h);
}

static void expect_everywhere(struct harness *h, struct session *s, struct session *by,
                              const char *score, const char *own) {
    for (int i = 0; i < WAY; i++) {
        expect(h, s, formatted("ZSCORE b:%d ann", i), score);
        expect(h, by, formatted("ZSCORE b:%d ann", i), own);
    }
}

SHADOW_TEST(a_ban_that_is_lifted_on_its_way_hides_nothing) {
    (void)harness_connect(h);
    struct session *ann = log_in(h, "ann");
    begin_on_the_way(h, s, "LB.BAN ann SHADOW");
    expect(h, s, "LB.UNBAN ann", ":1\r\n");
    end_the_way(h);
    expect_everywhere(h, s, ann, "$1\r\n5\r\n", "$1\r\n5\r\n");
}

SHADOW_TEST(results_behind_a_ban_that_is_lifted_on_its_way_stay) {
    (void)harness_connect(h);
    struct session *ann = log_in(h, "ann");
    begin_on_the_way(h, s, "LB.BAN ann");
    expect(h, s, "LB.UNBAN ann", ":1\r\n");
    for (int i = 0; i < WAY; i++) {
        (void)harness_run_format(h, ann, "ZADD b:%d 7 ann", i);
    }
    end_the_way(h);
    expect_everywhere(h, s, ann, "$1\r\n7\r\n", "$1\r\n7\r\n");
}

/* The last one is what counts. */
SHADOW_TEST(a_ban_that_is_replaced_on_its_way_is_the_other_one) {
    (void)harness_connect(h);
    struct session *ann = log_in(h, "ann");
    begin_on_the_way(h, s, "LB.BAN ann SHADOW");
    (void)harness_run_format(h, s, "LB.BAN ann");
    end_the_way(h);
    expect(h, s, "LB.UNBAN ann", ":1\r\n");
    end_the_way(h);
    expect_everywhere(h, s, ann, "$-1\r\n", "$-1\r\n");
}

SHADOW_TEST(a_full_ban_that_becomes_a_hidden_one_on_its_way_takes_no_more) {
    (void)harness_connect(h);
    struct session *ann = log_in(h, "ann");
    begin_on_the_way(h, s, "LB.BAN ann");
    (void)harness_run_format(h, s, "LB.BAN ann SHADOW");
    end_the_way(h);
    expect_everywhere(h, s, ann, "$-1\r\n", "$1\r\n5\r\n");
}

/* ---- twins ---- */

enum { MEMBERS = 6, TWIN_STEPS = 3000, TWIN_STEPS_SHORT = 300 };

static struct harness *twin_start(void) {
    struct harness *h = harness_create(SETTINGS);
    shadow_end(h->shadow);
    job_board_begin(&h->server, &ban_shadow_job);
    return h;
}

static void twin_line(struct random *random, int member, char line[128]) {
    int board = (int)random_below(random, 3);
    int value = (int)random_below(random, 20);
    switch (random_below(random, 7)) {
    case 0:
        snprintf(line, 128, "ZADD b%d %d m%d", board, value, member);
        break;
    case 1:
        snprintf(line, 128, "ZINCRBY b%d %d m%d", board, value, member);
        break;
    case 2:
        snprintf(line, 128, "LB.ADD b%d BEST %d m%d", board, value, member);
        break;
    case 3:
        snprintf(line, 128, "ZREM b%d m%d", board, member);
        break;
    case 4:
        snprintf(line, 128, "LB.TAG b%d m%d clan c%d", board, member, value % 3);
        break;
    case 5:
        snprintf(line, 128, "LB.ADD b%d WITHRANK TAG clan c%d %d m%d", board, value % 3, value,
                 member);
        break;
    default:
        snprintf(line, 128, "LB.SUBMIT 2 b0 b1 %d m%d", value, member);
    }
}

static void twin_question(struct random *random, char line[128]) {
    int board = (int)random_below(random, 3);
    int member = (int)random_below(random, MEMBERS);
    switch (random_below(random, 6)) {
    case 0:
        snprintf(line, 128, "LB.RANGE b%d 0 -1 TAGS", board);
        break;
    case 1:
        snprintf(line, 128, "ZREVRANK b%d m%d", board, member);
        break;
    case 2:
        snprintf(line, 128, "LB.AROUND b%d MEMBER m%d 1", board, member);
        break;
    case 3:
        snprintf(line, 128, "LB.COUNT b%d WHERE clan c1", board);
        break;
    case 4:
        snprintf(line, 128, "LB.GET b%d COMP m%d", board, member);
        break;
    default:
        snprintf(line, 128, "ZCOUNT b%d 5 15", board);
    }
}

static void twin_agree(struct harness *a, struct session *by_a, struct harness *b,
                       struct session *by_b, const char *line) {
    OWNED char *reply = strdup(harness_run(a, by_a, line));
    test_row("%s", line);
    assert_string_equal(reply, harness_run(b, by_b, line));
}

TEST(it_sees_what_it_would_without_a_ban_and_others_what_they_would_without_it) {
    struct random random = random_begin(__func__);
    int steps = getenv("LEADERBOARD_TEST_SHORT") != NULL ? TWIN_STEPS_SHORT : TWIN_STEPS;
    struct harness
        *h[3]; /* with the ban; one that knows none; one on which the member does not play */
    struct session *all[3];
    struct session *own[2];
    char line[128];
    for (int i = 0; i < 3; i++) {
        h[i] = twin_start();
        h[i]->live_count_before = i > 0 ? 0 : h[i]->live_count_before;
        all[i] = harness_connect(h[i]);
        harness_run(h[i], all[i], "LB.CREATE b0 FIELD score 32 TIME 31 S TAG clan 8");
        harness_run(h[i], all[i], "LB.CREATE b1 FIELD score 32 TIME 31 S KEEP BEST TAG clan 8");
        harness_run(h[i], all[i], "LB.CREATE b2 FIELD score 20 ASC TIME 40 MS LATEST TAG clan 8");
        if (i < 2) {
            own[i] = log_in(h[i], "m0");
        }
    }
    expect(h[0], all[0], "LB.BAN m0 SHADOW", ":0\r\n");
    for (int step = 0; step < steps; step++) {
        int member = (int)random_below(&random, MEMBERS);
        bool is_own = random_below(&random, 2) == 0;
        for (int i = 0; i < 3; i++) {
            h[i]->wall_us +=
                1000000; /* equal times rank by arrival, which a shadow does not keep */
        }
        twin_line(&random, member, line);
        if (member == 0) {
            twin_agree(h[0], is_own ? own[0] : all[0], h[1], is_own ? own[1] : all[1], line);
        } else {
            harness_run(h[1], all[1], line);
            /* Ranks are those that others see. */
            twin_agree(h[0], all[0], h[2], all[2], line);
        }
        twin_question(&random, line);
        twin_agree(h[0], own[0], h[1], own[1], line);
        twin_agree(h[0], all[0], h[2], all[2], line);
    }
    harness_run(h[0], all[0], "LB.UNBAN m0");
    settle(h[0]);
    for (int board = 0; board < 3; board++) {
        OWNED char *is = zset_dump(h[0], formatted("b%d", board));
        OWNED char *should_be = zset_dump(h[1], formatted("b%d", board));
        assert_string_equal(is, should_be);
    }
    for (int i = 0; i < 3; i++) {
        job_list_end(&h[i]->server);
    }
    for (int i = 3; i-- > 0;) {
        harness_destroy(h[i]);
    }
}

/* ---- restarts ---- */

static void shadows_are_there_after_a_restart(const char *settings, const char *save) {
    ENDED_BY(loop_end) struct loop_server f;
    char token[JWT_SIZE_MAX + 100];
    char line[JWT_SIZE_MAX + 200];
    token[jwt_maker_player(JWT_HS256, "ann", NOW + 100000000, token)] = '\0';
    snprintf(line, sizeof line, "AUTH %s\r\nZREVRANK k ann\r\n", token);
    loop_begin_kept(&f, settings);
    f.server->shadows.run = ban_shadow_run_call;
    loop_ask_anew(&f, "ZADD k 1 ann 2 bob\r\nZADD l 5 bob\r\n", ":2\r\n:1\r\n");
    loop_ask_anew(&f, "LB.BAN ann SHADOW EX 100\r\nZADD l 6 ann\r\n", ":1\r\n:1\r\n");
    if (save != NULL) {
        loop_ask_anew(&f, save, "+OK\r\n");
    }
    loop_stop(&f);
    loop_start_kept(&f, settings);
    f.server->shadows.run = ban_shadow_run_call;
    job_board_begin(f.server, &ban_shadow_job);
    loop_ask_anew(&f, "ZCARD k\r\nZCARD l\r\n", ":1\r\n:1\r\n");
    loop_ask_anew(&f, line, "+OK\r\n:1\r\n");
    f.harness->wall_us += 100000000;
    loop_ask_anew(&f, "PING\r\n", "+PONG\r\n");
    while (job_list_step(f.server, 0, true)) {}
    loop_ask_anew(&f, "ZREVRANK k ann\r\nZSCORE l ann\r\n", ":1\r\n$1\r\n6\r\n");
}

/* It is nowhere that STALE looks at; back among all it is as old as it is. */
TEST(a_hidden_entry_does_not_leave_as_stale) {
    ENDED_BY(loop_end) struct loop_server f;
    loop_begin_kept(&f, SETTINGS "appendonly yes\nsave \"\"\n");
    job_board_begin(f.server, &ban_shadow_job);
    job_board_begin(f.server, &job_board_stale);
    loop_ask_anew(&f,
                  "LB.CREATE k FIELD score 32 TIME 31 S STALE 10 MINUTE\r\nZADD k 1 ann 2 bob\r\n",
                  "+OK\r\n:2\r\n");
    loop_ask_anew(&f, "LB.BAN ann SHADOW\r\n", ":1\r\n");
    f.harness->wall_us += 3600 * INT64_C(1000000);
    loop_turn_some(&f);
    loop_ask_anew(&f, "ZADD k 3 cid\r\nZRANGE k 0 -1\r\n", ":1\r\n*1\r\n$3\r\ncid\r\n");
    loop_ask_anew(&f, "LB.UNBAN ann\r\n", ":1\r\n");
    while (job_list_step(f.server, 0, true)) {}
    loop_ask_anew(&f, "ZSCORE k ann\r\n", "$1\r\n1\r\n");
    f.harness->wall_us += 120 * INT64_C(1000000);
    loop_turn_some(&f);
    loop_ask_anew(&f, "ZRANGE k 0 -1\r\n", "*1\r\n$3\r\ncid\r\n");
}

TEST(shadows_are_in_the_journal) {
    shadows_are_there_after_a_restart(SETTINGS "appendonly yes\nsave \"\"\n", NULL);
}

TEST(shadows_are_in_snapshots) {
    shadows_are_there_after_a_restart(SETTINGS "appendonly no\nsave \"\"\n", "SAVE\r\n");
}
