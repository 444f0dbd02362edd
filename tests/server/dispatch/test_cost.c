/* busy-command-limit, and the cost estimates for it. */
#include "server/dispatch/command.h"
#include "server/dispatch/cost.h"
#include "tests/server/player_fixture.h"
#include "tests/server/zset_fixture.h"

enum {
    MEMBERS = 60000,
    PAIRS = 500, /* of a ZADD that fills */
    LINE_MAX_SIZE = 65536,
};

static const char long_page[] = "docs/reference/long-commands.md";

/* user:<first> .. user:<first + count - 1>, with their numbers as scores. */
static void fill(struct harness *h, const char *key, int first, int count) {
    static char line[LINE_MAX_SIZE];
    for (int begin = 0; begin < count; begin += PAIRS) {
        size_t size = (size_t)snprintf(line, sizeof line, "ZADD %s", key);
        for (int i = begin; i < count && i < begin + PAIRS; i++) {
            size += (size_t)snprintf(line + size, sizeof line - size, " %d user:%d", first + i,
                                     first + i);
        }
        harness_run(h, h->server.sessions.first, line);
    }
}

static void set_limit(struct harness *h, int limit_ms) {
    harness_expect(h, h->server.sessions.first,
                   formatted("CONFIG SET busy-command-limit %d", limit_ms), "+OK\r\n");
}

static const char *run(struct harness *h, const char *line) {
    return harness_run(h, h->server.sessions.first, line);
}

static bool is_refused(struct harness *h, const char *line) {
    return strncmp(run(h, line), "-TOOLONG ", strlen("-TOOLONG ")) == 0;
}

static void queue(struct harness *h, const char *line) {
    zset_expect(h, line, "+QUEUED");
}

static void expect_aborted(struct harness *h) {
    static const char prefix[] = "-EXECABORT Transaction discarded because of: TOOLONG EXEC would "
                                 "hold the server for about ";
    const char *reply = run(h, "EXEC");
    if (strncmp(reply, prefix, strlen(prefix)) != 0) {
        fail_msg("%s", reply);
    }
    zset_expect(h, "EXEC", "-ERR EXEC without MULTI");
}

/* ---- the table ---- */

/* Work that no client decides the size of, or that is done in steps. */
static bool is_small(const char *complexity) {
    static const char *const small[] = {
        "O(1)",
        "O(log n) in the members of the board",
        "O(log n) in the keys that expire",
        "O(log n); the members' memory is freed in steps afterwards",
        ("O(COUNT) for each call, half a millisecond at the most; O(n) for the whole walk over n "
         "keys"),
        ("O(COUNT) for each call, of which it takes 50 at the most; O(n) for the whole walk over n "
         "keys"),
        "O(COUNT) for a step, half a millisecond at the most; O(n) for the whole board",
        "O(COUNT) for a step, half a millisecond at the most; O(n) for the whole hash",
        "O(n) in the members of all boards, in steps between other commands",
        "As the subcommand says",
        "Depends on the subcommand",
        "Depends on subcommand.",
        /* maxclients, the settings, the commands, slowlog-max-len */
        "O(n) in the connections",
        "O(n) in the clients",
        "O(n) in the replicas",
        "O(n) in the commands",
        "O(n) in the commands of the server",
        "O(n) in the settings and the patterns",
        "O(n) in the settings given",
        "O(n) in the size of the file",
        "O(n) in the entries",
        "O(n) in the entries returned",
        "O(n) in the commands asked for",
        "O(n) in the arguments",
        /* users and their options, which operators make */
        "O(n) in the connections, for each user",
        "O(n) in the rules given and those of the user",
        "O(n) in the rules of the user",
        "O(n) in the users and their rules",
        "O(n) in the users",
        "O(n) in the users and the connections",
        "O(n) in the keys of the command",
        /* in steps between other commands */
        "O(n log m) for n boards of m members, in steps between other commands",
        "O(1), and O(n) in what is sent, in steps between other commands",
        "O(1), and O(n) in what is sent, by another process and in steps between other commands",
        "O(COUNT) for each call, half a millisecond at the most",
        "O(m log n) for m boards of n members",
        "O(t log n) for t tiers, at most 255, and n members",
        "O(p log n) for p players, at most 1,024, and n members of the board",
        "O(p log n) for p players, at most 5,000, and n members of the board",
        /* prefixes of a client, at most 256 */
        "O(p) in the prefixes",
        "O(p) in the prefixes; then O(1) for each key that is read, and for each client that is "
        "told",
        /* SHUTDOWN: no clients are served any more */
        "O(n) in the members of all boards when a snapshot is written, otherwise O(1)",
    };
    for (size_t i = 0; i < sizeof small / sizeof small[0]; i++) {
        if (strcmp(complexity, small[i]) == 0) {
            return true;
        }
    }
    return false;
}

ZSET_TEST(whatever_takes_more_than_log_n_has_a_cost) {
    uint32_t cost_count = 0;
    for (uint32_t i = 0; i < command_count(); i++) {
        const struct command *command = command_by_index(i);
        if (command->cost == NULL && !is_small(command->complexity)) {
            fail_msg("%s takes \"%s\" and has no cost", command_full_name(i), command->complexity);
        }
        if (command->cost != NULL) {
            assert_non_null(command->cost->count);
            assert_true(strlen(command->cost->unit) > 0);
            assert_true(command->cost->unit_ns > 0 || command->cost->grown_key > 0);
            assert_true(command->cost->unit_ns == 0 || strlen(command->cost->instead) > 0);
            assert_int_equal(command->cost->unit_ns == 0, is_small(command->complexity));
            cost_count++;
        }
    }
    assert_true(cost_count > 30);
}

ZSET_TEST(every_command_with_a_cost_is_on_the_page) {
    static char page[LINE_MAX_SIZE];
    FILE *file = fopen(long_page, "r");
    if (file == NULL) {
        fail_msg("%s cannot be read: the test is run from the repository's root", long_page);
    }
    page[fread(page, 1, sizeof page - 1, file)] = '\0';
    fclose(file);
    for (uint32_t i = 0; i < command_count(); i++) {
        const struct command *command = command_by_index(i);
        char row[64];
        int size = snprintf(row, sizeof row, "\n| [%s](", command_full_name(i));
        for (int at = 0; at < size; at++) {
            row[at] = (char)(row[at] >= 'a' && row[at] <= 'z' ? row[at] - 'a' + 'A' : row[at]);
            if (at > 1 && row[at] == '|') {
                row[at] = ' ';
            }
        }
        bool is_long = command->cost != NULL && command->cost->unit_ns > 0;
        assert_int_equal(strstr(page, row) != NULL, is_long);
    }
}

/* ---- one command ---- */

ZSET_TEST(a_command_over_the_limit_is_refused_with_both_figures) {
    fill(h, "a", 0, 20000);
    fill(h, "a", 20000, 20000);
    set_limit(h, 5);
    zset_expect(h, "ZRANGESTORE c a 0 -1", ":40000"); /* in steps */
    zset_run(h, "DEL c");
    zset_run(h, "LB.CREATE c FIELD n 40");
    zset_expect(h, "ZRANGESTORE c a 0 -1",
                "-TOOLONG ZRANGESTORE would hold the server for about 6 ms, and "
                "busy-command-limit is 5 ms");
    zset_expect(h, "ZCARD c", ":0");
    set_limit(h, 6);
    zset_expect(h, "ZRANGESTORE c a 0 -1", ":40000");
}

ZSET_TEST(no_limit_refuses_nothing) {
    fill(h, "a", 0, MEMBERS);
    zset_run(h, "LB.CREATE c FIELD n 40");
    zset_expect(h, "CONFIG GET busy-command-limit", "[busy-command-limit 500]");
    zset_expect(h, "ZRANGESTORE c a 0 -1", ":60000");
    set_limit(h, 1);
    assert_true(is_refused(h, "ZRANGESTORE c a 0 -1"));
    set_limit(h, 0);
    zset_expect(h, "ZRANGESTORE c a 0 -1", ":60000");
}

/* Short requests, each of which would hold the server for seconds. */
ZSET_TEST(by_default_nothing_holds_the_server_for_longer_than_half_a_second) {
    static const char *const begins[] = {"ZINTERCARD 500", "ZUNION 500", "ZINTERSTORE d 500"};
    char line[2048];
    fill(h, "a", 0, MEMBERS);
    for (size_t i = 0; i < sizeof begins / sizeof begins[0]; i++) {
        size_t size = (size_t)snprintf(line, sizeof line, "%s", begins[i]);
        for (int key = 0; key < 500; key++) {
            size += (size_t)snprintf(line + size, sizeof line - size, " a");
        }
        assert_true(is_refused(h, line));
    }
    assert_true(is_refused(h, "ZRANDMEMBER a -10000000"));
    zset_expect(h, "MULTI", "+OK");
    for (int i = 0; i < 1000; i++) {
        queue(h, "ZRANGE a 0 -1");
    }
    expect_aborted(h);
    zset_expect(h, "ZCARD a", ":60000");
}

ZSET_TEST(the_limit_is_a_number_of_milliseconds) {
    assert_true(strncmp(run(h, "CONFIG SET busy-command-limit -1"), "-ERR", 4) == 0);
    assert_true(strncmp(run(h, "CONFIG SET busy-command-limit 2147483648"), "-ERR", 4) == 0);
    assert_true(strncmp(run(h, "CONFIG SET busy-command-limit soon"), "-ERR", 4) == 0);
    set_limit(h, 2147483647);
    zset_expect(h, "CONFIG GET busy-command-limit", "[busy-command-limit 2147483647]");
}

/* On boards "a" and "half", of MEMBERS and half as many, with a limit of 1 ms. */
static const struct {
    const char *line;
    bool is_refused;
} judged[] = {
    {"ZRANGE a 0 -1", true},
    {"ZRANGE a 0 99 WITHSCORES", false},
    {"ZRANGE a -100 -1", false},
    {"ZREVRANGE a 0 -1", true},
    {"ZREVRANGE a 59900 -1", false},
    {"ZRANGE a -inf +inf BYSCORE", true},
    {"ZRANGEBYSCORE a -inf +inf", true},
    {"ZRANGEBYSCORE a -inf +inf LIMIT 0 10", false},
    {"ZRANGEBYSCORE a 10 20", false},
    {"ZREVRANGEBYSCORE a +inf -inf", true},
    {"ZREVRANGEBYSCORE a 20 10", false},
    {"ZRANGESTORE d a 0 -1", false}, /* in steps */
    {"ZRANGESTORE exact a 0 -1", true},
    {"ZRANGESTORE d a 0 9", false},
    {"LB.RANGE a 0 -1", true},
    {"LB.RANGE a 0 9", false},
    {"LB.RANGE a 0 100000 BYSCORE", true},
    {"LB.RANGE a 0 100000 BYSCORE LIMIT 0 10", false},
    {"LB.AROUND a MEMBER user:7 50000", true},
    {"LB.AROUND a MEMBER user:7 10", false},
    {"ZRANDMEMBER a", false},
    {"ZRANDMEMBER a 10", false},
    {"ZRANDMEMBER a 10000", true},
    {"ZRANDMEMBER a -10000", true},
    {"ZRANDMEMBER a -9223372036854775807", false}, /* is an error */
    {"ZPOPMIN a 50000", true},
    {"ZPOPMAX a 99999999", true},
    {"ZPOPMIN a 1", false},
    {"ZMPOP 2 nobody a MIN COUNT 50000", true},
    {"ZMPOP 2 nobody a MIN", false},
    {"COPY a d", false}, /* it runs in steps */
    {"RENAME nobody d", false},
    {"ZUNION 2 a half", false}, /* the same */
    {"ZUNIONSTORE d 1 a", false},
    {"ZUNIONSTORE d 1 nobody", false},
    {"ZINTER 2 a half", false},
    {"ZINTERSTORE d 2 a nobody", false}, /* no member is on both */
    {"ZINTERCARD 2 a half", false},
    {"ZDIFF 2 a half", false},
    {"ZDIFFSTORE d 2 nobody a", false},
    {"ZSCORE a user:7", false},
    {"ZCOUNT a -inf +inf", false},
    {"ZADD a 7 user:7", false},
    {"ZINCRBY a 7 user:7", false},
    {"ZREMRANGEBYSCORE a -inf -1", false},
    {"SAVE", false}, /* what an operator orders must work */
    {"PING", false},
};

ZSET_TEST(what_is_touched_decides_not_what_is_there) {
    fill(h, "a", 0, MEMBERS);
    fill(h, "half", 0, MEMBERS / 2);
    zset_run(h, "LB.CREATE exact FIELD n 40");
    set_limit(h, 1);
    for (size_t i = 0; i < sizeof judged / sizeof judged[0]; i++) {
        if (is_refused(h, judged[i].line) != judged[i].is_refused) {
            fail_msg("%s should%s be refused", judged[i].line, judged[i].is_refused ? "" : " not");
        }
    }
    zset_expect(h, "ZCARD half", ":30000");
}

/* Players who are not ranked have records, which COPY and DUMP take along. */
ZSET_TEST(records_of_players_count) {
    static char line[LINE_MAX_SIZE];
    int players = 0;
    zset_expect(h, "LB.CREATE r RATING ELO MINGAMES 100", "+OK");
    while (players < 20000) {
        size_t size = (size_t)snprintf(line, sizeof line, "LB.MATCH r");
        for (int i = 0; i < 100; i++) {
            size +=
                (size_t)snprintf(line + size, sizeof line - size, " TEAM 1 player:%d", players++);
        }
        zset_expect_part(h, line, "[[player:");
    }
    zset_expect(h, "ZCARD r", ":0");
    set_limit(h, 1);
    assert_true(is_refused(h, "DUMP r"));
    assert_false(is_refused(h, "RENAME r s"));
    zset_expect(h, "MULTI", "+OK");
    queue(h, "COPY s c");
    expect_aborted(h);
    zset_expect(h, "EXISTS c", ":0");
    struct session *other = harness_connect(h);
    player_begin(h, other, "COPY s c");
    assert_false(player_step(h, other));
    while (!player_step(h, other)) {}
    assert_string_equal(player_end(h, other), ":1\r\n");
    zset_expect(h, "EXISTS s c", ":2");
}

/* Each member has a group of its own, which the numbers of small tags tell at once, and of the second of two large ones
 * only the codes of all members. */
ZSET_TEST(an_estimate_knows_what_a_group_reads) {
    static char line[LINE_MAX_SIZE];
    zset_expect(h, "LB.CREATE c FIELD score 33 TAG clan 16 TAG guild 16", "+OK");
    zset_expect(h, "LB.CREATE s FIELD score 33 TAG class 4", "+OK");
    fill(h, "c", 0, MEMBERS);
    fill(h, "s", 0, MEMBERS);
    zset_expect(h, "LB.TAG c user:1 guild owls", ":1");
    zset_expect(h, "LB.TAG s user:1 class mage", ":1");
    set_limit(h, 4);
    size_t size = 0;
    for (int i = 0; i < 200; i++) {
        size += (size_t)snprintf(line + size, sizeof line - size, " user:%d", i);
    }
    assert_false(is_refused(h, formatted("LB.GET s 200%s WITHIN class", line)));
    assert_true(is_refused(h, formatted("LB.GET c 200%s WITHIN guild", line)));
    assert_false(is_refused(h, formatted("LB.GET c 200%s", line)));
    assert_false(is_refused(h, formatted("LB.GET c 200%s WHERE guild owls", line)));
    assert_false(is_refused(h, "LB.GET c 1 user:1 WITHIN guild"));
}

/* A result of LB.ADD has a word for each field, and a packed one a single key. */
ZSET_TEST(an_estimate_counts_results_and_not_their_words) {
    static char line[LINE_MAX_SIZE];
    zset_expect(h, "LB.CREATE five FIELD a 4 FIELD b 4 FIELD c 4 FIELD d 4 FIELD e 4", "+OK");
    set_limit(h, 1);
    size_t size = 0;
    for (int i = 0; i < 320; i++) {
        size += (size_t)snprintf(line + size, sizeof line - size, " 1 2 3 4 5 user:%d", i);
    }
    zset_expect(h, formatted("LB.ADD five%s", line), ":320");
    assert_true(is_refused(h, formatted("LB.ADD five PACKED%s", line)));
    assert_true(is_refused(h, formatted("ZADD five%s", line)));
    zset_expect(h, formatted("LB.ADD five%s 1 2 3 4 5 PACKED", line), ":1");
    zset_expect(h, formatted("LB.ADD five XX SET KEEPTIME%s", line), ":0");
}

/* Only DENSE YES of a board that is not dense counts its members; in MULTI it may be so by then. */
ZSET_TEST(an_estimate_knows_when_different_scores_are_counted) {
    static const struct {
        const char *line;
        bool is_refused;
    } rows[] = {{"LB.ALTER plain DENSE NO", false},
                {"LB.ALTER plain TAG dense 4", false},
                {"LB.ALTER counted DENSE NO", false},
                {"LB.ALTER counted DENSE YES", true},
                {"LB.ALTER plain DENSE YES", true}};
    zset_expect(h, "LB.CREATE counted FIELD n 40 DENSE", "+OK");
    fill(h, "plain", 0, MEMBERS);
    fill(h, "counted", 0, MEMBERS);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        test_row("%s", rows[i].line);
        set_limit(h, 0);
        zset_expect(h, "MULTI", "+OK");
        for (int repeat = 0; repeat < 20; repeat++) {
            queue(h, rows[i].line);
        }
        h->server.settings.busy_command_limit_ms = 2; /* CONFIG SET would be queued */
        if (rows[i].is_refused) {
            expect_aborted(h);
        } else {
            assert_memory_equal(run(h, "EXEC"), "*20", 3);
        }
    }
}

/* Fewer bits read the codes of all members only where a value has too large a number. */
ZSET_TEST(an_estimate_knows_when_values_get_other_numbers) {
    zset_expect(h, "LB.CREATE tagged FIELD n 40 TAG clan 8", "+OK");
    fill(h, "tagged", 0, MEMBERS);
    for (int i = 1; i < 30; i++) {
        zset_expect(h, formatted("LB.TAG tagged user:%d clan c%d", i, i), ":1");
    }
    set_limit(h, 1);
    assert_false(is_refused(h, "LB.ALTER tagged TAG clan 5"));
    assert_false(is_refused(h, "LB.ALTER tagged TAG clan 8"));
    for (int i = 1; i < 27; i++) {
        zset_expect(h, formatted("LB.TAG tagged user:%d clan c29", i), ":1");
    }
    assert_true(is_refused(h, "LB.ALTER tagged TAG clan 3"));
    zset_expect(h, "CONFIG SET busy-command-limit 0", "+OK");
    zset_expect(h, "LB.ALTER tagged TAG clan 3", "+OK");
}

/* Inside a group they may read a whole board. */
ZSET_TEST(no_command_that_takes_groups_is_flagged_fast) {
    (void)h;
    for (uint32_t i = 0; i < command_count(); i++) {
        const struct command *command = command_by_index(i);
        assert_true((command->flags & COMMAND_FAST) == 0 || command->syntax == NULL ||
                    strstr(command->syntax, "WHERENOT") == NULL);
    }
}

ZSET_TEST(no_command_of_ours_that_counts_members_is_flagged_fast) {
    (void)h;
    for (uint32_t i = 0; i < command_count(); i++) {
        const struct command *command = command_by_index(i);
        const struct command_cost *cost = command->cost;
        assert_true(cost == NULL || cost->bound != COMMAND_BY_MEMORY || cost->unit_ns == 0 ||
                    strncmp(command->name, "LB.", 3) != 0 || (command->flags & COMMAND_FAST) == 0);
    }
}

ZSET_TEST(arguments_count_without_a_board_too) {
    static char line[LINE_MAX_SIZE];
    static const char *const commands[] = {"ZMSCORE nobody", "DEL",         "EXISTS",
                                           "WATCH",          "ZREM nobody", "TOUCH"};
    set_limit(h, 1);
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        size_t size = (size_t)snprintf(line, sizeof line, "%s", commands[i]);
        for (int word = 0; word < 10000; word++) {
            size += (size_t)snprintf(line + size, sizeof line - size, " a");
        }
        assert_true(is_refused(h, line));
    }
}

ZSET_TEST(malformed_arguments_have_their_own_errors) {
    fill(h, "a", 0, MEMBERS);
    set_limit(h, 1);
    zset_expect(h, "ZRANGE a 0 x", "-ERR value is not an integer or out of range");
    zset_expect(h, "ZRANGE a 0 -1 BYSCORES", "-ERR syntax error");
    zset_expect(h, "ZUNION x a", "-ERR value is not an integer or out of range");
    zset_expect(h, "ZUNION 9 a", "-ERR syntax error");
    zset_expect(h, "ZMPOP 0 a MIN", "-ERR numkeys should be greater than 0");
    zset_expect(h, "ZPOPMIN a -1", "-ERR value is out of range, must be positive");
    zset_expect(h, "ZRANDMEMBER a x", "-ERR value is not an integer or out of range");
    zset_expect(h, "LB.AROUND a MEMBER b 0", "-ERR '0' is not a count of 1 or more");
}

ZSET_TEST(a_refusal_is_counted_and_an_estimate_is_not) {
    fill(h, "a", 0, MEMBERS);
    uint64_t hits = h->server.stats.keyspace_hits;
    set_limit(h, 1);
    assert_true(is_refused(h, "ZRANGE a 0 -1"));
    assert_int_equal(h->server.stats.keyspace_hits, hits);
    assert_non_null(strstr(run(h, "INFO errorstats"), "errorstat_TOOLONG:count=1"));
    assert_non_null(strstr(run(h, "INFO commandstats"), "rejected_calls=1"));
}

/* ---- EXEC ---- */

ZSET_TEST(exec_adds_up_what_is_queued_and_changes_nothing) {
    fill(h, "a", 0, 20000);
    set_limit(h, 1);
    zset_expect(h, "ZRANGESTORE b a 0 99", ":100");
    zset_expect(h, "MULTI", "+OK");
    queue(h, "ZADD c 1 x");
    for (int i = 0; i < 8; i++) {
        queue(h, "ZRANGE a 0 -1"); /* 0.4 ms each */
    }
    expect_aborted(h);
    zset_expect(h, "EXISTS c", ":0");
    zset_expect(h, "MULTI", "+OK");
    queue(h, "ZADD c 1 x");
    queue(h, "ZRANGE a 0 0");
    zset_expect(h, "EXEC", "[:1 [user:0]]");
}

ZSET_TEST(exec_counts_short_commands_too) {
    set_limit(h, 1);
    zset_expect(h, "MULTI", "+OK");
    for (int i = 0; i < 5000; i++) {
        queue(h, "ZSCORE a b");
    }
    expect_aborted(h);
}

ZSET_TEST(exec_goes_by_the_sizes_when_it_runs) {
    struct session *other = harness_connect(h);
    set_limit(h, 1);
    fill(h, "small", 0, 10);
    fill(h, "large", 0, MEMBERS);
    zset_expect(h, "MULTI", "+OK");
    queue(h, "ZRANGE small 0 -1");
    harness_expect(h, other, "CONFIG SET busy-command-limit 0", "+OK\r\n");
    harness_expect(h, other, "COPY large small REPLACE", ":1\r\n");
    harness_expect(h, other, "CONFIG SET busy-command-limit 1", "+OK\r\n");
    expect_aborted(h);
    zset_expect(h, "MULTI", "+OK");
    queue(h, "ZRANGE large 0 -1");
    harness_expect(h, other, "DEL large", ":1\r\n");
    zset_expect(h, "EXEC", "[[]]");
}

/* By the sizes before EXEC, the second command would touch nothing. */
ZSET_TEST(exec_counts_what_its_own_commands_put) {
    static const char *const moves[][3] = {
        {"COPY a b", "ZRANGE b 0 -1", NULL},
        {"RENAME a b", "ZRANGE b 0 -1", NULL},
        {"RENAME a b", "RENAME b c", "ZRANGE c 0 -1"},
        {"LB.ROLL a b", "LB.RANGE b 0 -1", NULL},
        {"ZUNIONSTORE b 2 a a", "ZRANGEBYSCORE b -inf +inf", NULL},
        {"ZRANGESTORE b a 0 -1", "ZRANDMEMBER b -1000", "ZPOPMIN b 100000"},
    };
    fill(h, "a", 0, 20000);
    for (size_t i = 0; i < sizeof moves / sizeof moves[0]; i++) {
        set_limit(h, 0);
        zset_expect(h, "MULTI", "+OK");
        queue(h, moves[i][0]);
        for (int repeat = 0; repeat < 50; repeat++) {
            queue(h, moves[i][1]);
        }
        if (moves[i][2] != NULL) {
            for (int repeat = 0; repeat < 50; repeat++) {
                queue(h, moves[i][2]);
            }
        }
        h->server.settings.busy_command_limit_ms = 12; /* CONFIG SET would be queued */
        expect_aborted(h);
        zset_expect(h, "ZCARD a", ":20000");
        zset_expect(h, "EXISTS b c", ":0");
    }
}

ZSET_TEST(exec_follows_select) {
    fill(h, "a", 0, MEMBERS);
    set_limit(h, 1);
    zset_expect(h, "SELECT 1", "+OK");
    zset_expect(h, "MULTI", "+OK");
    queue(h, "ZRANGE a 0 -1");
    zset_expect(h, "EXEC", "[[]]");
    zset_expect(h, "MULTI", "+OK");
    queue(h, "SELECT 0");
    queue(h, "ZRANGE a 0 -1");
    expect_aborted(h);
    zset_expect(h, "EXISTS a", ":0"); /* still in database 1 */
}

ZSET_TEST(commands_are_queued_whatever_they_cost) {
    fill(h, "a", 0, MEMBERS);
    set_limit(h, 1);
    zset_expect(h, "MULTI", "+OK");
    queue(h, "ZRANGE a 0 -1");
    zset_expect(h, "DISCARD", "+OK");
    zset_expect(h, "ZCARD a", ":60000");
}

ZSET_TEST(an_estimate_without_memory_goes_by_the_sizes_of_now) {
    fill(h, "a", 0, MEMBERS);
    zset_expect(h, "MULTI", "+OK");
    queue(h, "ZRANGE a 0 -1");
    const struct bytes exec = bytes_from_text("EXEC");
    const struct request request = {.count = 1, .args = &exec};
    memory_fail_at(1);
    uint64_t time_ns = cost_estimate_ns(&h->server, h->server.sessions.first,
                                        command_find(BYTES("EXEC")), &request);
    memory_fail_at(0);
    assert_int_equal(time_ns, cost_estimate_ns(&h->server, h->server.sessions.first,
                                               command_find(BYTES("EXEC")), &request));
    assert_true(time_ns > 1000000);
}
