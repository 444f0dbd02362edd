/* Random commands: few keys and few different scores, so that ties, repeated members and collisions
 * of every kind happen all the time; now and then something that must be refused. */
#include "tests/support/twin_requests.h"

#include "server/commands/table.h"
#include "server/dispatch/execute.h"
#include "tests/support/test.h"

/* 2025-12-15T00:00:00Z: the harness's clock begins within every layout that has it. */
#define START_US INT64_C(1765756800000000)
#define START    " START 2025-12-15T00:00:00Z"

#define ONE_FIELD(...)  {{__VA_ARGS__}}, 1
#define TWO_FIELDS(...) {{__VA_ARGS__}, {__VA_ARGS__}}, 2

const struct twin_layout twin_requests_layouts[] = {
    {"asc:", "FIELD lap 32 ASC TIME 24 S" START, ONE_FIELD(32, 0, false, true), 24, false, 1000000,
     START_US, 0, false},
    {"lat:", "FIELD day 33 SIGNED TIME 31 MS" START " LATEST", ONE_FIELD(33, 0, true, false), 31,
     true, 1000, START_US, 0, false},
    {"lap:", "FIELD lap 23 ASC SCALE 3 TIME 41 US" START " LATEST", ONE_FIELD(23, 3, false, true),
     41, true, 1, START_US, 0, false},
    {"two:", "FIELD agree 22 FIELD comment 22 TIME 20 M" START, TWO_FIELDS(22, 0, false, false), 20,
     false, 60000000, START_US, 0, false},
    {"usd:", "FIELD money 40 SIGNED SCALE 2 TIME 24 S" START, ONE_FIELD(40, 2, true, false), 24,
     false, 1000000, START_US, 0, false},
    {"big:", "FIELD score 64 SIGNED", ONE_FIELD(64, 0, true, false), 0, false, 1, 0, 0, false},
    /* Full within the run: later writes must be refused. */
    {"end:", "FIELD points 30 TIME 15 S START 2026-01-01T00:00:00Z", ONE_FIELD(30, 0, false, false),
     15, false, 1000000, TWIN_REQUESTS_START_US, 0, false},
    {"few:", "FIELD flag 4 TIME 8 H START 2026-01-01T00:00:00Z", ONE_FIELD(4, 0, false, false), 8,
     false, INT64_C(3600000000), TWIN_REQUESTS_START_US, 0, false},
    {"", NULL, ONE_FIELD(33, 0, true, false), 31, false, 1000000, INT64_C(1577836800000000), 0,
     false},
};
/* Longer than what stands inside a block. */
#define LONG_50  "mmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmm"
#define LONG_200 LONG_50 LONG_50 LONG_50 LONG_50

/* Key 0 of each layout grows large; the others stay small, and are those that are renamed, copied over, combined and
 * removed, as a rule. */
static const char *const keys_large[] = {"asc:0", "lat:0", "lap:0", "two:0", "usd:0",
                                         "big:0", "end:0", "few:0", "0",     NULL};
static const char *const keys_small[] = {
    "asc:1", "lat:1", "lap:1", "two:1", "usd:1", "big:1", "end:1", "few:1", "1",     "asc:2",
    "lat:2", "lap:2", "two:2", "usd:2", "big:2", "end:2", "few:2", "2",     "asc:3", "lat:3",
    "lap:3", "two:3", "usd:3", "big:3", "end:3", "few:3", "3",     NULL};
/* Of one layout: then combinations mostly fit, and tie. */
static const char *const *const keys_alike[] = {GRAMMAR_WORDS("asc:1", "asc:2", "asc:3"),
                                                GRAMMAR_WORDS("lat:1", "lat:2", "lat:3"),
                                                GRAMMAR_WORDS("lap:1", "lap:2", "lap:3"),
                                                GRAMMAR_WORDS("two:1", "two:2", "two:3"),
                                                GRAMMAR_WORDS("usd:1", "usd:2", "usd:3"),
                                                GRAMMAR_WORDS("big:1", "big:2", "big:3"),
                                                GRAMMAR_WORDS("end:1", "end:2", "end:3"),
                                                GRAMMAR_WORDS("few:1", "few:2", "few:3"),
                                                GRAMMAR_WORDS("1", "2", "3")};
static const char *const members_of_large[] = {
    "m$2500", "m$2500", "m$2500", "m$2500", LONG_50 LONG_50 "$130", LONG_200 "$2500", NULL};
static const char *const members_of_small[] = {
    "m$25", "m$25", "m$25", "m$25", "m$25", "m$25", LONG_50 LONG_50 "$3", LONG_200 LONG_200 "$3",
    NULL};

/* Mostly few different numbers, so that there are ties. */
static const char *const few_scores[] = {"$8", "$8", "$8", "$5.0", NULL};
/* Not of every field. */
static const char *const mixed_scores[] = {"$8", "$8", "-$3", "$5.$10", "$8e$4", "3.25", NULL};
/* In all the ways to write them, of each field's whole range, and wrong. */
#define WILD_SCORES                                                                                \
    GRAMMAR_WORDS("$4294967296", "$8589934592", "-$8589934592", "$8388.$1000", "$4194304",         \
                  "-$10995116277.$100", "-$9223372036854775807", "$1073741824", "$16", "+5", "-0", \
                  "007", "5.", "1E2", "500e-2", "0e9", "4.000000000000000000", "9007199254740993", \
                  "9223372036854775807", "9223372036854775808", "-9223372036854775808",            \
                  "-9223372036854775809", "4294967295", "4294967296", "-4294967296",               \
                  "-4294967297", "15", "16", "8388.607", "8388.608", "1e30", "0.123456789", "inf", \
                  "-inf", "1e-3", "-1", "x", "", "nan", "1x", "0x10", "1e", "--1", "1 ", ".",      \
                  "1e1.5")
static const char *const *const scores[] = {few_scores, few_scores,   few_scores, few_scores,
                                            few_scores, mixed_scores, WILD_SCORES};
#define BOUNDS                                                                                     \
    GRAMMAR_WORDS("$12", "$12", "$12", "$12", "$12", "$12", "$12", "$12", "$12", "$8", "-$4",      \
                  "($12", "($12", "($12", "-inf", "+inf", "inf", "-INF", "(Inf", "$8.$10000",      \
                  "-$4.$10000", "($8.$10000", "1e30", "-1e30", "9223372036854775807",              \
                  "(-9223372036854775809", "18446744073709551616", "4294967296", "1e2", "(0.5",    \
                  "0", "(0", "x", "", "nan", "((1", "(")
#define INTEGERS                                                                                   \
    GRAMMAR_WORDS("$12", "$12", "$12", "$12", "-$13", "-$13", "-$13", "$1500", "-$1500", "$12",    \
                  "$12", "$12", "-$13", "-$13", "$12", "$12", "$12", "$12", "-$13", "-$13",        \
                  "9223372036854775807", "-9223372036854775808", "4611686018427387903",            \
                  "9223372036854775808", "x", "", "1.5", "+1", "-0", "01")
/* Few different times, so that GT and LT meet equal ones. */
#define SECONDS GRAMMAR_WORDS("-60", "0", "60", "60", "120", "180", "300", "600", "1140", "x")

static const struct grammar_values values[] = {
    /* By the command: these are in the beginning. */
    {"member", members_of_small},
    {"score", few_scores},
    {"increment", few_scores},
    {"min", BOUNDS},
    {"max", BOUNDS},
    {"ZREMRANGEBYSCORE min", GRAMMAR_WORDS("($5", "($5", "($5", "0", "-inf", "x")},
    {"ZREMRANGEBYSCORE max", GRAMMAR_WORDS("$6", "$6", "($5", "(2", "+inf")},
    /* Of ZRANGE and ZRANGESTORE either. */
    {"ZRANGE* start", GRAMMAR_WORDS("$12", "$12", "$12", "$12", "$12", "-$13", "-$13", "0", "($12",
                                    "-inf", "+inf", "-$1500", "x")},
    {"ZRANGE* stop", GRAMMAR_WORDS("$12", "$12", "$12", "$12", "$12", "-$13", "-$13", "-1", "($12",
                                   "-inf", "+inf", "$1500", "x")},
    {"ZRANGESTORE min", GRAMMAR_WORDS("$12", "$12", "$12", "$12", "$12", "-$13", "-$13", "0",
                                      "($12", "-inf", "+inf", "-$1500", "x")},
    {"ZRANGESTORE max", GRAMMAR_WORDS("$12", "$12", "$12", "$12", "$12", "-$13", "-$13", "-1",
                                      "($12", "-inf", "+inf", "$1500", "x")},
    {"start", INTEGERS},
    {"stop", INTEGERS},
    {"ZREMRANGEBYRANK start", GRAMMAR_WORDS("$80", "-$20")},
    {"ZREMRANGEBYRANK stop", GRAMMAR_WORDS("$10", "$80", "-$100")},
    {"offset", INTEGERS},
    {"count", GRAMMAR_WORDS("$12", "$12", "$3", "-1")},
    {"LIMIT count", INTEGERS},
    {"limit", GRAMMAR_WORDS("$12", "$12", "-1")},
    {"weight", GRAMMAR_WORDS("1", "1", "1", "2", "2", "0", "-1", "3.0", "1e2", "0.5", "10e-1",
                             "1000.25", "-0.001", "x", "nan", "inf", "-inf", "1e-30", "(1")},
    {"destination-db", GRAMMAR_WORDS("$3", "$3", "$3", "$3", "$3", "$3", "$3", "-1", "20", "x")},
    {"seconds", SECONDS},
    {"milliseconds", GRAMMAR_WORDS("-60000", "0", "60000", "60000", "120000", "600000", "x")},
    {"unix-time-seconds", GRAMMAR_WORDS("1767225660",
                                        "17672$10$10$10"
                                        "00",
                                        "41$10$10$10"
                                        "00000",
                                        "x")},
    {"unix-time-milliseconds", GRAMMAR_WORDS("1767225660000",
                                             "17672$10$10$10"
                                             "00000",
                                             "41$10$10$10"
                                             "00000000",
                                             "x")},
    {NULL, NULL},
};
static const char *const usual[] = {"WITHSCORES", "WITHSCORE", "REV", "BYSCORE", "LIMIT", "COUNT",
                                    "AGGREGATE",  "WEIGHTS",   "DB",  "REPLACE", NULL};
static const char *const never[] = {"BYLEX", NULL};

/* Flushes come apart, once in some ten thousand commands. */
static const struct grammar_weight weights[] = {
    {3600, "ZADD"},
    {900, "ZINCRBY"},
    {450, "ZSCORE"},
    {225, "ZMSCORE"},
    {225, "ZREM"},
    {400, "ZRANK"},
    {400, "ZREVRANK"},
    {600, "ZRANGE"},
    {170, "ZREVRANGE"},
    {170, "ZRANGEBYSCORE"},
    {160, "ZREVRANGEBYSCORE"},
    {170, "ZCARD"},
    {330, "ZCOUNT"},
    {75, "ZREMRANGEBYSCORE"},
    {75, "ZREMRANGEBYRANK"},
    {115, "ZPOPMIN"},
    {115, "ZPOPMAX"},
    {120, "ZMPOP"},
    {180, "ZUNIONSTORE"},
    {60, "ZINTERSTORE"},
    {60, "ZDIFFSTORE"},
    {60, "ZUNION"},
    {60, "ZINTER"},
    {60, "ZDIFF"},
    {60, "ZINTERCARD"},
    {150, "ZRANGESTORE"},
    {12, "DEL"},
    {12, "UNLINK"},
    {24, "EXISTS"},
    {12, "TOUCH"},
    {65, "TYPE"},
    {65, "TTL"},
    {65, "PTTL"},
    {65, "EXPIRETIME"},
    {65, "PEXPIRETIME"},
    {65, "PERSIST"},
    {100, "COPY"},
    {50, "RENAME"},
    {50, "RENAMENX"},
    {80, "EXPIRE"},
    {80, "PEXPIRE"},
    {45, "EXPIREAT"},
    {45, "PEXPIREAT"},
    {100, "DBSIZE"},
    {0, NULL},
};
static const struct grammar_weight flushes[] = {{2, "FLUSHDB"}, {1, "FLUSHALL"}, {0, NULL}};
/* Commands that take more than one key, or end one. */
static const char *const of_small_keys[] = {
    "ZUNION*", "ZINTER*", "ZDIFF*",  "ZRANGESTORE", "DEL",       "UNLINK", "RENAME*",
    "COPY",    "EXPIRE",  "PEXPIRE", "EXPIREAT",    "PEXPIREAT", NULL};

void twin_requests_begin(struct twin_requests *requests, struct random *random) {
    execute_init(command_table);
    requests->random = random;
    requests->grammar =
        (struct grammar){.random = random, .focus = {usual}, .never = never, .is_tame = true};
}

void twin_requests_make(struct twin_requests *requests) {
    struct random *random = requests->random;
    struct grammar *grammar = &requests->grammar;
    bool is_flush = random_below(random, 60000) == 0;
    const struct command *command = grammar_choose(random, is_flush ? flushes : weights);
    bool is_of_small = grammar_is_among(of_small_keys, command->name);
    bool is_large = random_below(random, is_of_small ? 200 : 2) == 0;
    bool is_alike = !is_large && random_below(random, 2) == 0;
    static struct grammar_values of_command[COUNT_OF(values)];
    memcpy(of_command, values, sizeof values);
    of_command[0].values = is_large ? members_of_large : members_of_small;
    of_command[1].values = of_command[2].values = scores[random_below(random, COUNT_OF(scores))];
    grammar->values = of_command;
    grammar->keys = is_large   ? keys_large
                    : is_alike ? keys_alike[random_below(random, COUNT_OF(keys_alike))]
                               : keys_small;
    grammar_draw(grammar, command);
    requests->arg_count = grammar->count;
    for (uint32_t i = 0; i < grammar->count; i++) {
        requests->args[i] = (struct bytes){.at = grammar->words[i], .size = grammar->sizes[i]};
    }
}
