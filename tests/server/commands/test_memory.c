/* Without memory a command is done, or has changed nothing: each allocation fails in turn.
 *
 *     by hand      lines that are about memory, each on boards made for it: the whole keyspace is then as if the line
 *                  had not run, or had run with memory
 *     at random    all commands on keys, as their syntax allows, on boards of every kind: the keyspace after
 *                  "-OOM" is that of before, and the command then works */
#include "server/commands/table.h"
#include "tests/server/failing_memory.h"
#include "tests/support/grammar.h"
#include "tests/support/wire.h"

/* ---- by hand ---- */

enum { PAIRS = 300 };

#define TAGGED "LB.CREATE k FIELD score 33 TIME 31 S TAG country 8"
#define MANY                                                                                       \
    { 3000, 50, "ZADD k @ member:#" }
#define WINDOW                                                                                     \
    "LB.CREATE k FIELD a 33 SIGNED TIME 31 S TAG land 4 PERIOD HOUR ARCHIVE 3 WINDOW 3 SUM"
#define WEEKS   "LB.CREATE w FIELD score 20 TAG t 4 PERIOD WEEK WINDOW 2 SUM"
#define LONG_50 "mmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmm"
#define LONG    LONG_50 LONG_50 LONG_50 LONG_50

#define WORLD(called, ...)                                                                         \
    {                                                                                              \
        .name = (called), .steps = { __VA_ARGS__ }                                                 \
    }
static const struct world
    empty = {.name = "nothing"},
    one = WORLD("a board of one", {1, 1, "ZADD k 1 ann"}),
    two = WORLD("two boards", {1, 1, "ZADD a 2 m 1 n"}, {1, 1, "ZADD b 5 o"}),
    pair = WORLD("a board of two", {1, 1, "ZADD k 1 ann 2 bob"}),
    many = WORLD("a large board", MANY),
    many_tagged = WORLD("a large board with tags", {1, 1, TAGGED}, MANY),
    both_tagged = WORLD("two boards with tags", {1, 1, TAGGED},
                        {1, 1, "LB.CREATE b FIELD score 20 TAG country 8 TAG class 4"}),
    cap = WORLD("CAP 2", {1, 1, "LB.CREATE k FIELD score 33 CAP 2"}),
    cap_many = WORLD("CAP 3000", {1, 1, "LB.CREATE k CAP 3000"}, MANY),
    made = WORLD("a board that was made", {1, 1, "LB.CREATE k FIELD a 20"}, {1, 1, "ZADD k 1 a"},
                 {1, 1, "EXPIRE k 1000"}),
    hash = WORLD("a hash", {1, 1, "HSET k a 1 c 2"}),
    large_hash = WORLD("a large hash", {1, 1, "ZADD k 1 ann"}, {300, 300, "HSET h:bob f# v"}),
    once = WORLD("an id", {1, 1, "LB.ADD k ONCE before 1 ann"}),
    window = WORLD("a WINDOW", {1, 1, WINDOW}), weeks = WORLD("a WINDOW of weeks", {1, 1, WEEKS}),
    weeks_full = WORLD("a WINDOW of weeks with members", {1, 1, WEEKS},
                       {1, 1, "LB.ADD w TAG t x 1 ann 2 bob 3 cid"}),
    choice =
        WORLD("a choice of layouts", {1, 1, "CONFIG SET default-layout \"default decimals int64\""},
              {1, 1, "ZADD half 0.5 x"}),
    /* k and l share half of their members; few has ten of k's; d is to be replaced. */
    several =
        WORLD("boards to combine", {300, 11, "ZADD k @ member:#"}, {150, 7, "ZADD l @ member:#"},
              {150, 7, "ZADD l @ other:#"}, {1, 1, "ZADD k 3 " LONG "1 4 " LONG "2"},
              {1, 1, "ZADD l 5 " LONG "2 6 " LONG "3"}, {10, 10, "ZADD few 1 member:1@"},
              {1, 1, "ZADD d 1 old 2 older"}, {1, 1, "ZADD laps:d 1 old 2 older"},
              {1, 1, "EXPIRE d 1000"}),
    limited =
        WORLD("a large board with LIMITS",
              {1, 1, "LB.CREATE k FIELD score 32 LIMITS ALL EVERY 1 S GAIN 9999 PER DAY"}, MANY),
    rated = WORLD("a board with RATING, and its matches",
                  {1, 1, "LB.CREATE k RATING ELO KEEP-MATCHES 1000"},
                  {300, 300, "LB.MATCH k ONCE m# TEAM 1 a# TEAM 1 b#"},
                  {1, 1, "LB.MATCH k ONCE last TEAM 1 a0 TEAM 1 b0"}, {1, 1, "LB.BAN a0"}),
    archived = WORLD("an archive to settle", {1, 1, "LB.CREATE k SETTLE YES"},
                     {1, 1, "ZADD k 1 ann"}, {1, 1, "LB.ROLL k old EX 100"}),
    to_move = WORLD("members to move", {300, 50, "ZADD k @ member-with-a-name-of-some-length:#"},
                    {1, 1, "ZADD d 1 old"});

/* A line that ends in a blank goes on with 300 scores and members. */
static const struct {
    const struct world *world;
    const char *line, *begin; /* of the reply */
} rows[] = {
    {&empty, "ZADD k 1 a", ":1"},
    {&empty, "ZINCRBY k 1 a", "$1\r\n1"},
    {&empty, "ZADD k 1 a 2 b 3 c", ":3"},
    {&empty, "ZADD k CH ", ":300"},
    {&many, "ZADD k CH ", ":300"},
    {&empty, "LB.ADD k 1 a", ":1"},
    {&empty, "LB.ADD k INCR 1 a 2 b 3 a", ":3"},
    {&empty, "LB.ADD k SET ", ":300"},
    {&many, "LB.ADD k SET ", ":300"},
    {&cap, "ZADD k 5 aaaaaaaaaaaaaaaaaaaaaaaaaaaa", ":1"},
    {&cap, "ZADD k 5 a 6 b 7 c 3 d 9 e 1 f 2 g", ":2"},
    {&cap_many, "ZADD k 500 a 600 b 0 c", ":2"},
    {&cap_many, "LB.ADD k 500 a 600 b 0 c 51 d", ":3"},
    {&cap_many, "LB.ROLL k old EX 100 START 0", ":3000"},
    {&one, "LB.ROLL k old", ":1"},
    {&archived, "LB.SETTLE old", ":1"},
    {&empty, "LB.CREATE k FIELD a 3 CAP 3", "+OK"},
    {&made, "LB.ALTER k PERIOD DAY CAP 3", "+OK"},
    {&one, "LB.SUBMIT 3 k new1 new2 5 bob", "*3"},
    {&one, "LB.WHERE ann MATCH k", "*1"},
    {&one, "LB.GET k 1 ann SORT", "*1"},
    {&pair, "LB.FORGET ann MATCH k* DATA p:*", ":1"},
    {&pair, "LB.BAN ann EX 100 MATCH k*", ":1"},
    {&many_tagged, "LB.RANGE k 0 4 WHERENOT country DE", "*"},
    {&many_tagged, "LB.GET k 2 member:1 member:7 WITHIN country PCT", "*"},
    {&many_tagged, "LB.QUANTILE k 1 0 WHERENOT country DE", "*"},
    {&many_tagged, "LB.HIST k 5 9 WHERENOT country DE", "*"},
    {&many_tagged, "LB.AROUND k MEMBER member:1 5 WITHIN country", "*"},
    {&many_tagged, "LB.ABOVE k 5 9 WHERENOT country DE", "*"},
    {&many_tagged, "LB.CUTS k 5 WHERENOT country DE", "*"},
    {&many_tagged, "LB.COUNT k BY country WHERENOT country DE", "*"},
    {&many_tagged, "LB.TAG k member:1 country DE", ":1"},
    {&many_tagged, "LB.ADD k TAG country DE 5 a 6 member:7 7 b", ":3"},
    {&both_tagged, "LB.SUBMIT 2 k b TAG country DE 5 ann", "*2"},
    {&empty, "HSET k a " LONG " b " LONG, ":2"},
    {&hash, "HSET k a " LONG " b " LONG, ":1"},
    {&one, "LB.ADD k ONCE a HSET h:%:* 2 f v g w 5 bob", ":1"},
    {&one, "LB.ADD k HSET h:* 2 f v g w 5 bob 6 cid", ":2"},
    {&large_hash, "LB.ADD k HSET h:* 2 f v g w 5 bob", ":1"},
    {&one, "LB.SUBMIT 2 k new ONCE a HSET h:%:* 2 f v g w 5 bob", "*2"},
    {&once, "LB.ADD k ONCE a 5 bob", ":1"},
    {&once, "LB.ADD k ONCE a 5 bob 6 cid", ":2"},
    {&once, "LB.SUBMIT 2 k new ONCE a 5 bob", "*2"},
    {&window, "ZADD k 5 aaaaaaaaaaaaaaaaaaaaaaaaaaaa", ":1"},
    {&window, "ZADD k 5 a 6 b 7 c", ":3"},
    {&window, "LB.ADD k INCR 5 a 6 b", ":2"},
    {&window, "LB.SUBMIT 1 k INCR 5 a", "*1"},
    {&window, "LB.ADD k TAG land DE 5 a 6 b", ":2"},
    {&weeks, "LB.ADD w ONCE a INCR 5 bob", ":1"},
    {&weeks, "LB.ADD w ONCE a TAG t y INCR HSET h:%:* 1 f v 5 bob", ":1"},
    {&weeks, "LB.ADD w ONCE a INCR HSET h:%:* 1 f v 5 bob 6 dan", ":2"},
    {&weeks, "LB.SUBMIT 2 w new ONCE a INCR HSET h:%:* 1 f v 5 bob", "*2"},
    {&weeks_full, "LB.ADD w ONCE a INCR 5 bob", ":1"},
    {&weeks_full, "LB.ADD w ONCE a TAG t y INCR HSET h:%:* 1 f v 5 bob", ":1"},
    {&weeks_full, "LB.ADD w ONCE a INCR HSET h:%:* 1 f v 5 bob 6 dan", ":2"},
    {&weeks_full, "LB.SUBMIT 2 w new ONCE a INCR HSET h:%:* 1 f v 5 bob", "*2"},
    {&choice, "ZADD k 50.5 a 1 b", ":2"},
    {&choice, "ZUNIONSTORE k 1 half", ":1"},
    {&choice, "LB.SUBMIT 2 k l 1767225600123 a", "*2"},
    {&two, "COPY a b REPLACE", ":1"},
    {&two, "COPY a c", ":1"},
    {&two, "COPY a a DB 9", ":1"},
    {&two, "RENAME a c", "+OK"},
    {&two, "RENAME a b", "+OK"},
    {&two, "RENAMENX a c", ":1"},
    {&limited, "ZADD k 1 new 7 newer", ":2"},
    {&limited, "ZADD k NX ", ":"},
    {&limited, "LB.ADD k NX ", ":"},
    {&rated, "LB.MATCH k ONCE x TEAM 2 a1 new TEAM 2 b1 other", "*"},
    {&rated, "LB.UNMATCH k m1", "*"},
    {&rated, "LB.REFUND k a0 SINCE 0", "*"},
    {&two, "EXPIRE a 100", ":1"},
    {&to_move, "ZMOVE k d MIN", "*"},
    {&to_move, "ZMOVE k new MAX COUNT 200", "*"},
    {&to_move, "ZMOVE k laps:d BYSCORE 2 30", "*"},
    {&to_move, "ZMOVEMEMBER k d MEMBERS 2 member-with-a-name-of-some-length:1 old", ""},
    {&several, "ZUNIONSTORE d 2 k l", ":"},
    {&several, "ZUNIONSTORE laps:d 3 k l few AGGREGATE MAX", ":"},
    {&several, "ZUNIONSTORE k 2 k l", ":"},
    {&several, "ZINTERSTORE d 2 k l", ":"},
    {&several, "ZINTERSTORE bare:d 3 k few k", ":10"},
    {&several, "ZDIFFSTORE d 2 k l", ":"},
    {&several, "ZDIFFSTORE k 2 k few", ":"},
    {&several, "ZRANGESTORE d k 0 -1", ":302"},
    {&several, "ZRANGESTORE k k 1 -2", ":300"},
    {&several, "ZRANGESTORE laps:d k 0 -1", ":302"},
    {&several, "ZUNION 2 k l WITHSCORES", "*"},
    {&several, "ZINTER 3 k l few", "*"},
    {&several, "ZDIFF 2 k few", "*"},
    {&several, "ZINTERCARD 2 k l", ":"},
    {&several, "ZUNION 20 k l k l k l k l k l k l k l k l k l k l", "*"},
};

TEST(a_line_is_applied_completely_or_not_at_all_whatever_allocation_fails) {
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        static char line[PAIRS * 24];
        size_t size = (size_t)snprintf(line, sizeof line, "%s", rows[i].line);
        for (int k = 0; line[size - 1] != ' ' ? false : k < PAIRS; k++) {
            size += (size_t)snprintf(line + size, sizeof line - size, "%d %s:%d ", k * 7 % 101 + 50,
                                     k % 2 == 0 ? "new" : "member", k * 9);
        }
        test_row("%s: %s", rows[i].world->name, rows[i].line);
        fail_each_allocation_in(rows[i].world, line, rows[i].begin);
    }
}

/* ---- at random ---- */

static const char *const kinds[] = {
    "LB.CREATE b0 FIELD a 20 TIME 40 MS TAG clan 4 TAG country 8 KEEP BEST CAP 20",
    "LB.CREATE b1 FIELD score 20 FIELD likes 10 SCALE 1 TIME 31 S STALE 9 DAY SETTLE YES",
    "LB.CREATE w FIELD a 30 TIME 31 S TAG clan 4 PERIOD HOUR ARCHIVE 3 WINDOW 3 SUM",
    "LB.CREATE p FIELD a 20 TIME 40 MS PERIOD HOUR ARCHIVE 3 COPY",
    "LB.CREATE d FIELD a 52 SCALE 1 DECAY 1000000 D TIME 12 D START 2026-01-01T00:00:00Z",
    "LB.LEAGUE CREATE lg FIELD a 20 TIME 40 MS PERIOD WEEK ROOM 3 TIERS 3 UP 1 DOWN 1 ARCHIVE ALL",
    "ZADD plain 1 m0 2 m1 3 m2 3 n1 5 user:1",
    "ZADD b0 1 m0 2 m1",
    "LB.ADD b1 3 1 m1 4 2 m2",
    "LB.ADD w TAG clan a 3 m1 4 m2",
    "ZADD p 4 m0 5 m1",
    "LB.ADD d INCR 4 m0 5 m1",
    "LB.LEAGUE ADD lg 7 m1",
    "LB.LEAGUE ADD lg 9 m2",
    "HSET h:m1 a 1 b 2",
    "LB.ADD plain ONCE r1 9 m2",
    "LB.BAN banned EX 1000",
};
static const char *const keys[] = {"b0",       "b1",    "w",     "p",    "d",   "lg",
                                   "{lg}:1:1", "plain", "plain", "h:m1", "new", NULL};
/* Each of a command's runs ends where nothing fails any more. */
enum { DRAWS = 400, DRAWS_SHORT = 40, ALLOCATIONS_MAX = 10000 };

static struct harness *make_kinds(void) {
    void *state;
    zset_start(&state);
    struct harness *h = state;
    shadow_end(h->shadow);
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        zset_expect_no_error(h, kinds[i]);
    }
    return h;
}

/* true: an allocation failed, and so did the command. */
static bool fail_one(struct harness *h, const struct grammar *grammar, uint64_t nth) {
    struct bytes args[GRAMMAR_WORDS_MAX];
    size_t size = 0;
    for (uint32_t i = 0; i < grammar->count; i++) {
        args[i] = (struct bytes){.at = grammar->words[i], .size = grammar->sizes[i]};
        size += grammar->sizes[i];
    }
    struct request request = {.args = args, .count = grammar->count, .size = size};
    uint64_t before = workload_digest(h->server.registry);
    const char *reply = harness_fail_request(h, h->server.sessions.first, &request, nth);
    bool is_refused = strcmp(reply, "-OOM out of memory\r\n") == 0, is_error = reply[0] == '-';
    const char *reason = "";
    if (!registry_validate(h->server.registry, &reason)) {
        fail_msg("allocation %u: %s", (unsigned)nth, reason);
    }
    if (is_error && workload_digest(h->server.registry) != before) {
        fail_msg("allocation %u: something has changed, and it answered %s", (unsigned)nth, reply);
    }
    return is_refused;
}

TEST(every_command_without_memory_changes_nothing_and_then_works) {
    static struct grammar grammar;
    struct random random = random_begin(__func__);
    uint64_t refused_count = 0;
    grammar = (struct grammar){.random = &random, .keys = keys};
    struct harness *h = make_kinds();
    for (uint32_t i = 0; i < command_count(); i++) {
        const struct command *command = command_by_index(i);
        if (!grammar_is_on_keys(command) || strncmp(command->name, "BZ", 2) == 0) {
            continue;
        }
        for (int draw = 0; draw < (is_short_run() ? DRAWS_SHORT : DRAWS); draw++) {
            struct text line = {.at = NULL};
            grammar.is_tame = draw % 2 == 0;
            grammar_draw(&grammar, command);
            for (uint32_t k = 0; k < grammar.count; k++) {
                text_format(&line, " %.*s", (int)(grammar.sizes[k] % 100), grammar.words[k]);
            }
            test_row("%s", line.at);
            text_free(&line);
            for (uint64_t nth = 1; fail_one(h, &grammar, nth); nth++) {
                assert_true(nth < ALLOCATIONS_MAX);
                refused_count++;
            }
        }
        harness_destroy(h);
        h = make_kinds();
    }
    harness_destroy(h);
    printf("%" PRIu64 " times refused\n", refused_count);
    assert_true(refused_count > 1000);
}
