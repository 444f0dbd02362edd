/* Random commands to our server and to Debian's redis-server, and the replies compared, byte for
 * byte in RESP2 and RESP3.
 *
 *     differential [COMMANDS]
 *
 * COMMANDS (or LEADERBOARD_DIFFERENTIAL_COMMANDS) is 200,000 by itself. The last line but one is
 * "N commands, M differences, seed S"; LEADERBOARD_TEST_SEED=S repeats a run.
 *
 * Redis orders equal scores by name and we by time, so no board ever holds two equal scores: a
 * member's scores are its number plus multiples of SCORE_STEP, and increments are multiples of it
 * too; or, in one family of keys, scores are drawn from 2^51. Boards are combined so that this
 * stays so: sums in that family or over all sources, weights that are alike elsewhere. All that writes
 * no scores is drawn as the syntax of the commands allows (tests/support/grammar.h): options, limits,
 * arguments that are no numbers; arguments are missing, or there are some to spare.
 *
 * Hashes are in families of their own. A few sorted-set commands go there, too, and a few hash
 * commands to boards, so that the wrong kind of key is met everywhere.
 *
 * Where Redis promises no order (SCAN, KEYS, HGETALL ...), sets or sizes are compared; where
 * the answer is a time that is left, a minute of difference is none: whoever sends the commands to
 * one server after the other may be held up between. */
#include "tests/support/test.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/commands/table.h"
#include "server/dispatch/execute.h"
#include "tests/support/grammar.h"
#include "tests/support/process.h"
#include "tests/support/random.h"
#include "tests/support/wire.h"

enum {
    COMMANDS_DEFAULT = 200000,
    COMMANDS_SHORT = 30000, /* LEADERBOARD_TEST_SHORT: make test */
    BATCH = 200,            /* commands in flight */
    DUMPED = 6,             /* of them, at the end: what keys hold */
    WORDS_MAX = 64,
    WORD_MAX = 64, /* bytes of a word, with its terminator */
    KEYS = 4,      /* of a family, in each database */
    MEMBERS_MAX = 1000,
    SCORE_STEP = 1024, /* more than MEMBERS_MAX */
    SHOWN_MAX = 10,    /* differences that are printed */
    VALUES_MAX = 4 * MEMBERS_MAX,
};

/* How replies to a command are compared. */
enum how {
    HOW_EXACT, /* byte for byte */
    HOW_SET,   /* arrays or maps with the same values in any order */
    HOW_SCAN,  /* the same, inside [cursor, array]; the cursors are equal */
    HOW_SIZE,  /* arrays of the same size; other values of the same kind */
    HOW_CLOSE, /* integers that are close, times that run */
    HOW_NOT,   /* HELLO names another server */
};

/* Keys with one layout. */
struct family {
    const char *prefix;
    int member_count;
    bool has_drawn_scores; /* not by member */
    bool has_hashes;
};

static const char config[] = "layout exact FIELD score 64 SIGNED\n"
                             "layout laps FIELD ms 40 SIGNED ASC TIME 24 M\n"
                             "layout three FIELD score 32 SIGNED FIELD flag 1 TIME 31 S\n"
                             "board x:* exact\n"
                             "board a:* laps\n"
                             "board t:* three\n";
static const struct family families[] = {
    {"x:", 24, true, false},
    {"k:", 24, false, false},
    {"a:", 24, false, false},
    {"t:", 24, false, false},
    {"big:", MEMBERS_MAX, false, false},
    {"h:", 24, false, true},
    {"hbig:", MEMBERS_MAX, false, true},
};
enum { FAMILIES = sizeof(families) / sizeof(families[0]) };

struct generator {
    struct random random;
    char words[WORDS_MAX][WORD_MAX];
    int word_count;
    enum how how;
    int slack; /* HOW_SET, HOW_SCAN: values that belong together; HOW_CLOSE: what is close */
    int protocol;
    const struct family *family;           /* of the key picked last */
    int64_t scores[FAMILIES][MEMBERS_MAX]; /* the last one given to each */
};

struct side {
    const char *name;
    struct process process;
    int fd;
    struct text replies;
    size_t at; /* replies compared so far */
};

struct batch {
    struct text request;
    struct {
        size_t begin, end; /* in request */
        enum how how;
        int slack;
    } commands[BATCH];
    int count;
};

/* ---- drawing words ---- */

static uint64_t below(struct generator *g, uint64_t limit) {
    return random_below(&g->random, limit);
}

static bool one_in(struct generator *g, uint64_t n) {
    return below(g, n) == 0;
}

__attribute__((format(printf, 2, 3))) static void word(struct generator *g, const char *format,
                                                       ...) {
    assert_true(g->word_count < WORDS_MAX);
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(g->words[g->word_count++], WORD_MAX, format, arguments);
    va_end(arguments);
    assert_in_range(size, 0, WORD_MAX - 1);
}

static void command(struct generator *g, const char *name) {
    g->word_count = 0;
    g->how = HOW_EXACT;
    g->slack = 1;
    word(g, "%s", name);
    /* Names are any case. */
    for (char *at = g->words[0]; *at != '\0' && one_in(g, 20); at++) {
        *at = (char)(*at | 0x20);
    }
}

#define PICK(g, list) ((list)[below((g), sizeof(list) / sizeof((list)[0]))])

static void option(struct generator *g, uint64_t n, const char *text) {
    if (one_in(g, n)) {
        word(g, "%s", text);
    }
}

static void same_family_key(struct generator *g) {
    word(g, "%s%d", g->family->prefix, (int)below(g, KEYS));
}

/* For writing: of a family whose boards have the layout that its scores need. */
static void written_key(struct generator *g) {
    do {
        g->family = &PICK(g, families);
    } while (g->family->has_hashes && !one_in(g, 8));
    same_family_key(g);
}

static void key(struct generator *g) {
    written_key(g);
    if (one_in(g, 40)) {
        g->word_count--;
        word(g, "none");
    }
}

static void hash_key(struct generator *g) {
    g->family = &families[one_in(g, 4) ? FAMILIES - 1 : FAMILIES - 2];
    same_family_key(g);
}

static int member(struct generator *g) {
    int id = (int)below(g, (uint64_t)g->family->member_count);
    word(g, "m%d", id);
    return id;
}

static const char *const odd_integers[] = {"-9223372036854775808",
                                           "-1",
                                           "0",
                                           "4611686018427387903",
                                           "9223372036854775807",
                                           "9223372036854775808",
                                           "-9223372036854775809",
                                           "4294967296",
                                           "-4294967296",
                                           "2147483648",
                                           "x",
                                           "",
                                           "1.5",
                                           "+1",
                                           " 1",
                                           "01",
                                           "-0",
                                           "1e3"};

static void integer(struct generator *g, int low, int high) {
    if (one_in(g, 25)) {
        word(g, "%s", PICK(g, odd_integers));
    } else {
        word(g, "%d", low + (int)below(g, (uint64_t)(high - low) + 1));
    }
}

static void place(struct generator *g) {
    int count = one_in(g, 4) ? g->family->member_count : 12;
    integer(g, -count - 3, count + 3);
}

/* ---- scores ---- */

static int64_t *last_score(struct generator *g, int id) {
    return &g->scores[g->family - families][id];
}

static void score_text(struct generator *g, int64_t score) {
    long long value = (long long)score;
    if (!one_in(g, 8)) {
        word(g, "%lld", value);
        return;
    }
    switch (below(g, 4)) {
    case 0:
        word(g, "%lld.0", value);
        break;
    case 1:
        word(g, "%llde0", value);
        break;
    case 2:
        word(g, "%s%lld.000E-0", value >= 0 ? "+" : "", value);
        break;
    default:
        word(g, "%lld.", value);
        break;
    }
}

static const char *const odd_scores[] = {"x",  "",    "nan", "-nan", "1x",
                                         "(5", "--1", "1 ",  "+",    "e5"};

/* Not where the key may be of the wrong kind: Redis refuses the score first. */
static bool is_score_odd(struct generator *g, uint64_t n) {
    return !g->family->has_hashes && one_in(g, n);
}

/* A score that only this member of its family can have. */
static int64_t new_score(struct generator *g, int id) {
    int64_t *last = last_score(g, id);
    if (one_in(g, 5)) {
        return *last;
    }
    if (g->family->has_drawn_scores) {
        *last = (int64_t)below(g, UINT64_C(1) << 51) - (INT64_C(1) << 50);
    } else {
        int64_t steps = one_in(g, 2) ? 4 : 1 << 19;
        *last = id + SCORE_STEP * ((int64_t)below(g, (uint64_t)(2 * steps + 1)) - steps);
    }
    return *last;
}

static void limit(struct generator *g) {
    static const char *const others[] = {
        "-inf", "+inf",   "inf",       "(-inf", "(+inf", "0",     "(0",     "x",    "nan",
        "((1",  "1x",     "-INFINITY", "1e9",   "-1e9",  "1e400", "-1e400", "-0.0", "-2147483648.5",
        "+Inf", "(",      " 5",        "( 7",   "\t-3",  "5 ",    " ",      "(  ",  "0x10",
        "-0x8", "(0X1p3", "0x.8",      "0x",    "0x1p",  "0b1",   "5."};
    if (one_in(g, 3)) {
        word(g, "%s", PICK(g, others));
        return;
    }
    int id = (int)below(g, (uint64_t)g->family->member_count);
    long long near = (long long)(*last_score(g, id) + (int64_t)below(g, 3) - 1);
    word(g, "%s%lld%s", one_in(g, 3) ? "(" : "", near, one_in(g, 6) ? ".5" : "");
}

/* "5" and "(5" alike; what is no number is 0. */
static double limit_value(const char *text) {
    return strtod(*text == '(' ? text + 1 : text, NULL);
}

/* Two limits, mostly such that something can lie between them. */
static void limits(struct generator *g, bool is_highest_first) {
    limit(g);
    limit(g);
    char *first = g->words[g->word_count - 2];
    char *second = g->words[g->word_count - 1];
    bool is_ordered = limit_value(first) <= limit_value(second);
    if (is_ordered == is_highest_first && !one_in(g, 5)) {
        char swapped[WORD_MAX];
        memcpy(swapped, first, WORD_MAX);
        memcpy(first, second, WORD_MAX);
        memcpy(second, swapped, WORD_MAX);
    }
}

/* ---- sorted-set commands ---- */

static void zadd_pairs(struct generator *g, int count) {
    for (; count > 0; count--) {
        int id = (int)below(g, (uint64_t)g->family->member_count);
        if (is_score_odd(g, 100)) {
            word(g, "%s", PICK(g, odd_scores));
        } else {
            score_text(g, new_score(g, id));
        }
        word(g, "m%d", id);
    }
}

static void zadd(struct generator *g) {
    command(g, "ZADD");
    written_key(g);
    if (one_in(g, 3)) {
        static const char *const words[] = {"NX", "XX", "GT", "LT", "CH", "xx", "Ch", "gt"};
        for (int left = 1 + (int)below(g, 3); left > 0; left--) {
            word(g, "%s", PICK(g, words));
        }
    }
    zadd_pairs(g, g->family->member_count > 100 ? 10 + (int)below(g, 15) : 1 + (int)below(g, 5));
}

static void increment_text(struct generator *g, bool may_be_zero) {
    int64_t steps = g->family->has_drawn_scores ? INT64_C(1) << 44 : INT64_C(1) << 12;
    int64_t delta = (int64_t)below(g, (uint64_t)(2 * steps)) - steps;
    if (may_be_zero && one_in(g, 10)) {
        word(g, "0");
    } else if (is_score_odd(g, 60)) {
        word(g, "%s", PICK(g, odd_scores));
    } else {
        score_text(g, g->family->has_drawn_scores ? delta : delta * SCORE_STEP);
    }
}

/* XX, so that no member begins at 0, where others might begin. */
static void zadd_incr(struct generator *g) {
    command(g, "ZADD");
    written_key(g);
    static const char *const words[] = {"XX", "INCR", "CH", "GT", "LT"};
    word(g, "XX");
    option(g, 3, PICK(g, words));
    word(g, "INCR");
    option(g, 4, PICK(g, words));
    increment_text(g, true);
    (void)member(g);
    if (one_in(g, 30)) {
        increment_text(g, true);
        (void)member(g);
    }
}

static void zincrby(struct generator *g) {
    command(g, "ZINCRBY");
    g->family = &families[0];
    same_family_key(g);
    increment_text(g, false);
    (void)member(g);
}

/* ---- combining boards ---- */

/* What others write to is combined so that a member keeps its remainder; sums and weighted values
 * go to keys of their own. */
static void result_key(struct generator *g) {
    word(g, "%sr%d", g->family->prefix, (int)below(g, 2));
}

static void source_keys(struct generator *g, int count) {
    if (one_in(g, 30)) {
        /* Not more: AGGREGATE MIN would be keys, and sums be stored. */
        integer(g, -1, count);
    } else {
        word(g, "%d", count);
    }
    for (; count > 0; count--) {
        if (one_in(g, 40)) {
            word(g, "none");
        } else {
            same_family_key(g);
        }
    }
}

/* Drawn scores are large: a double would not hold the sum of products with more. */
static void weights(struct generator *g, int count) {
    static const char *const small[] = {"1", "2", "1e0", "+2.0"};
    static const char *const any[] = {"1", "2", "3", "1e0", "0.5", "+2.0", ".25"};
    const char *weight = PICK(g, any);
    word(g, "WEIGHTS");
    for (; count > 0; count--) {
        if (one_in(g, 60)) {
            word(g, "%s", PICK(g, odd_scores));
        } else if (g->family->has_drawn_scores) {
            word(g, "%s", PICK(g, small));
        } else {
            word(g, "%s", weight);
        }
    }
}

/* Behind the keys of a union or an intersection. */
static void values(struct generator *g, int count, bool may_add, bool has_weights) {
    static const char *const names[] = {"MIN", "MAX", "min", "Max"};
    if (has_weights) {
        weights(g, count);
    }
    if (!may_add || one_in(g, 2)) {
        word(g, "AGGREGATE");
        word(g, "%s", one_in(g, 60) ? "AVG" : PICK(g, names));
    } else if (one_in(g, 3)) {
        word(g, "AGGREGATE");
        word(g, "sum");
    }
}

static void zcombine(struct generator *g) {
    static const char *const names[] = {"ZUNION", "ZINTER", "ZDIFF"};
    const char *name = PICK(g, names);
    int count = 1 + (int)below(g, 3);
    command(g, name);
    g->family = &PICK(g, families);
    source_keys(g, count);
    bool is_large = g->family->member_count * 9 >= SCORE_STEP;
    bool may_add = g->family->has_drawn_scores || (name == names[1] && !is_large);
    if (name != names[2]) {
        values(g, count, may_add, !is_large && one_in(g, 2));
    } else if (one_in(g, 30)) {
        weights(g, count);
    }
    option(g, 2, "WITHSCORES");
}

static void zcombine_store(struct generator *g) {
    static const char *const names[] = {"ZUNIONSTORE", "ZINTERSTORE", "ZDIFFSTORE"};
    const char *name = PICK(g, names);
    int count = 1 + (int)below(g, 3);
    command(g, name);
    g->family = &PICK(g, families);
    bool is_apart = g->family->has_drawn_scores && one_in(g, 2);
    if (is_apart) {
        result_key(g);
    } else {
        same_family_key(g);
    }
    source_keys(g, count);
    if (name != names[2]) {
        values(g, count, is_apart, is_apart && one_in(g, 2));
    }
    option(g, 60, "WITHSCORES");
}

static void read_result(struct generator *g) {
    command(g, "ZRANGE");
    g->family = &families[0];
    result_key(g);
    place(g);
    place(g);
    option(g, 2, "WITHSCORES");
}

/* ---- all other commands, as their syntax allows ---- */

/* Mostly these. */
#define FOUR(...)    __VA_ARGS__, __VA_ARGS__, __VA_ARGS__, __VA_ARGS__
#define SIXTEEN(...) FOUR(FOUR(__VA_ARGS__))
/* Not soon, and far from each other, so that no option hangs on a millisecond. */
#define DURATIONS(zeros) "1$1000$1000" zeros, "4$1000$1000" zeros, "90$1000$1000" zeros
#define MOMENTS(zeros)   "4$10$1000$1000$10" zeros, "5$10$1000$1000$10" zeros
#define ODD_TIMES                                                                                  \
    "0", "-1", "x", "", "1.5", "9223372036854775807", "-9223372036854775808", "9223372036854775808"
/* Also all that two ways of reading numbers may disagree about. */
#define NUMBERS                                                                                    \
    SIXTEEN("$1000", "-$1000", "$1000", "-$1000", "$1000.$100000", "-$1000.$100000"),              \
        "9223372036854775807", "-9223372036854775808", "9223372036854775808", "1e3", "0x1p4",      \
        "-0", "0.1", "1e-20", "1e300", "-1e4932", "1e4933", "1e-4950", "inf", "-inf", "nan", "+1", \
        " 1", "1 ", "01", ".5", "5.", "3.0e3", "9007199254740993.21", "", "x"
#define FIELDS(fields)                                                                             \
    GRAMMAR_WORDS(SIXTEEN(FOUR(fields)), "", "0", "12345", "-1", "a field with a longer name")
#define MEMBERS(members) GRAMMAR_WORDS(SIXTEEN(FOUR(members)), "", "nobody")
#define PATTERNS_OF_ALL                                                                            \
    "*", "m1*", "m?", "m[1-3]*", "m[^1]*", "*7", "m\\1*", "x*", "k:?", "*:[02]", "[x", "b*:*",     \
        "?:*[1]", "m*1*2", "m[5]", "", "m4\\"
/* Negative ones of the last kind would make Redis fill its memory. */
#define DRAWS                                                                                      \
    GRAMMAR_WORDS(SIXTEEN("$60", "-$20", "$60", "1000000"), "-9223372036854775808",                \
                  "9223372036854775807", "4611686018427387903", "4611686018427387904",             \
                  "9223372036854775808", "x", "", "1.5")

/* By the names of the syntax; of members and fields see draw(). */
static struct grammar_values values_of[] = {
    {"member", NULL},
    {"field", NULL},
    {"start", GRAMMAR_WORDS(FOUR("$12", "-$13"), "$1000", "-$1000")},
    {"stop", GRAMMAR_WORDS(FOUR("$12", "-$13"), "$1000", "-$1000")},
    {"ZRANGESTORE min", GRAMMAR_WORDS(FOUR("$12", "-$13"), "$1000", "-$1000")},
    {"ZRANGESTORE max", GRAMMAR_WORDS(FOUR("$12", "-$13"), "$1000", "-$1000")},
    {"ZREMRANGEBYRANK start", GRAMMAR_WORDS("$20", "-$20")},
    {"ZREMRANGEBYRANK stop", GRAMMAR_WORDS("$4", "$20", "-$20")},
    {"offset", GRAMMAR_WORDS(FOUR("$9"), "-1")},
    {"LIMIT count", GRAMMAR_WORDS(FOUR("$20"), "-1", "-2")},
    {"ZRANDMEMBER count", DRAWS},
    {"HRANDFIELD count", DRAWS},
    {"ZMPOP count", GRAMMAR_WORDS(FOUR("$6"), "0")},
    /* In one step, so that Redis's cursor is 0 as well. */
    {"COUNT count", GRAMMAR_WORDS("1000000")},
    {"cursor", GRAMMAR_WORDS(SIXTEEN(FOUR("0")), "x", "1x", "18446744073709551616", "0x1")},
    {"count", GRAMMAR_WORDS(FOUR("$6"), "-1")},
    {"limit", GRAMMAR_WORDS(FOUR("$12"), "-1")},
    /* Behind MATCH no **: in Redis it is the one pattern of stars that an empty field does not match. */
    {"MATCH pattern", GRAMMAR_WORDS(PATTERNS_OF_ALL)},
    {"pattern", GRAMMAR_WORDS("**", PATTERNS_OF_ALL)},
    {"type", GRAMMAR_WORDS("zset", "hash", "ZSET", "Hash", "string", "x")},
    {"increment", GRAMMAR_WORDS(NUMBERS)},
    {"value", GRAMMAR_WORDS(SIXTEEN("", "zoe", "gold", "\x01\xff\r\n",
                                    "https://example.com/avatars/0123456789abcdef.png"),
                            NUMBERS)},
    {"destination-db", GRAMMAR_WORDS("0", "1", "1", "0", "16", "-1", "x", "99999999999")},
    {"index", GRAMMAR_WORDS(FOUR("0", "1"), "16", "-1", "x", "9223372036854775808")},
    {"message", GRAMMAR_WORDS("hello", PATTERNS_OF_ALL)},
    {"seconds", GRAMMAR_WORDS(SIXTEEN(DURATIONS("")), ODD_TIMES)},
    {"milliseconds", GRAMMAR_WORDS(SIXTEEN(DURATIONS("000")), ODD_TIMES)},
    {"unix-time-seconds", GRAMMAR_WORDS(SIXTEEN(MOMENTS("")), "1", ODD_TIMES)},
    {"unix-time-milliseconds", GRAMMAR_WORDS(SIXTEEN(MOMENTS("000")), "1", ODD_TIMES)},
    {NULL, NULL},
};
static const char *const usual[] = {"BYSCORE",    "LIMIT", "WITHSCORES", "REV",     "COUNT",
                                    "WITHVALUES", "MATCH", "TYPE",       "REPLACE", NULL};
/* WITHSCORE of ZRANK came with Redis 7.2. */
static const char *const never[] = {"BYLEX", "WITHSCORE", NULL};

static const struct grammar_weight weights_of[] = {
    {35, "ZREM"},
    {50, "ZSCORE"},
    {45, "ZRANK"},
    {45, "ZREVRANK"},
    {30, "ZMSCORE"},
    {30, "ZCARD"},
    {60, "ZCOUNT"},
    {100, "ZRANGE"},
    {40, "ZREVRANGE"},
    {50, "ZRANGEBYSCORE"},
    {50, "ZREVRANGEBYSCORE"},
    {14, "ZREMRANGEBYRANK"},
    {20, "ZREMRANGEBYSCORE"},
    {15, "ZPOPMIN"},
    {15, "ZPOPMAX"},
    {15, "ZMPOP"},
    {20, "ZINTERCARD"},
    {20, "ZRANGESTORE"},
    {30, "ZRANDMEMBER"},
    {20, "ZSCAN"},
    {170, "HSET"},
    {90, "HMSET"},
    {40, "HSETNX"},
    {60, "HINCRBY"},
    {60, "HINCRBYFLOAT"},
    {60, "HDEL"},
    {35, "HGET"},
    {35, "HMGET"},
    {35, "HEXISTS"},
    {35, "HSTRLEN"},
    {15, "HGETALL"},
    {15, "HKEYS"},
    {15, "HVALS"},
    {15, "HLEN"},
    {30, "HRANDFIELD"},
    {30, "HSCAN"},
    {20, "OBJECT ENCODING"},
    {9, "EXISTS"},
    {9, "TOUCH"},
    {4, "DEL"},
    {1, "UNLINK"},
    {7, "TYPE"},
    {7, "PERSIST"},
    {7, "TTL"},
    {7, "PTTL"},
    {7, "EXPIRETIME"},
    {7, "PEXPIRETIME"},
    {8, "EXPIRE"},
    {8, "PEXPIRE"},
    {8, "EXPIREAT"},
    {8, "PEXPIREAT"},
    {5, "RENAME"},
    {5, "RENAMENX"},
    {10, "COPY"},
    {7, "KEYS"},
    {4, "RANDOMKEY"},
    {10, "SCAN"},
    {5, "ECHO"},
    {5, "PING"},
    {5, "SELECT"},
    {24, "DBSIZE"},
    {0, NULL},
};
static const struct grammar_weight flushes[] = {{1, "FLUSHALL"}, {3, "FLUSHDB"}, {0, NULL}};
enum { COMMANDS_PER_FLUSH = 4000 };

/* Those whose answers are not compared to the byte. */
static const struct {
    const char *name;
    enum how how;
    int slack;
} hows[] = {
    {"KEYS", HOW_SET, 1},         {"HGETALL", HOW_SET, 2},
    {"HKEYS", HOW_SET, 1},        {"HVALS", HOW_SET, 1},
    {"SCAN", HOW_SCAN, 1},        {"ZSCAN", HOW_SCAN, 2},
    {"HSCAN", HOW_SCAN, 2},       {"RANDOMKEY", HOW_SIZE, 1},
    {"ZRANDMEMBER", HOW_SIZE, 1}, {"HRANDFIELD", HOW_SIZE, 1},
    {"TTL", HOW_CLOSE, 60},       {"EXPIRETIME", HOW_CLOSE, 60},
    {"PTTL", HOW_CLOSE, 60000},   {"PEXPIRETIME", HOW_CLOSE, 60000},
};

/* Hashes for the commands of hashes; the others mostly meet boards. */
static void choose_family(struct generator *g, const struct command *command) {
    bool is_of_hashes =
        strcmp(command->group, "hash") == 0 || command_is_subcommand(command_index(command));
    bool may_be_none = (command->flags & COMMAND_WRITE) == 0 || strcmp(command->name, "HDEL") == 0;
    if (is_of_hashes && !(may_be_none && one_in(g, 30))) {
        g->family = &families[one_in(g, 4) ? FAMILIES - 1 : FAMILIES - 2];
    } else if (strcmp(command->name, "DEL") == 0 && one_in(g, 3)) {
        g->family = &families[FAMILIES - 2]; /* a key of the wrong kind would stay for long */
    } else {
        do {
            g->family = &PICK(g, families);
        } while (g->family->has_hashes && !one_in(g, 8));
    }
}

static bool is_word(const struct generator *g, int index, const char *text) {
    return index < g->word_count && strcasecmp(g->words[index], text) == 0;
}

static int find_word(const struct generator *g, const char *text) {
    for (int i = 1; i < g->word_count; i++) {
        if (is_word(g, i, text)) {
            return i;
        }
    }
    return 0;
}

/* Limits are near scores that are there: those behind the key of a command that names them so, or has BYSCORE. */
static void fit_limits(struct generator *g, const struct command *command) {
    static const char *const by_score[] = {"ZCOUNT", "ZRANGEBYSCORE", "ZREVRANGEBYSCORE",
                                           "ZREMRANGEBYSCORE", NULL};
    int first = strcmp(command->name, "ZRANGESTORE") == 0 ? 3 : 2;
    bool is_removal = strcmp(command->name, "ZREMRANGEBYSCORE") == 0 && !one_in(g, 20);
    if (!grammar_is_among(by_score, command->name) && find_word(g, "BYSCORE") == 0) {
        return;
    }
    int count = g->word_count;
    g->word_count = first;
    if (is_removal) {
        int id = (int)below(g, (uint64_t)g->family->member_count);
        word(g, "%lld", (long long)*last_score(g, id));
        word(g, "%s%lld", one_in(g, 5) ? "(" : "", (long long)*last_score(g, id) + 5);
    } else {
        limits(g, find_word(g, "REV") > 0 || strcmp(command->name, "ZREVRANGEBYSCORE") == 0);
    }
    g->word_count = count;
}

/* Scans end in one step; what is drawn is compared as a set if it is all there is; counts of keys may be too small. */
static void fit_counts(struct generator *g, const struct grammar *grammar) {
    if (g->how == HOW_SCAN && find_word(g, "COUNT") == 0) {
        word(g, "COUNT");
        word(g, one_in(g, 20) ? "0" : "1000000");
    }
    if (g->how == HOW_SIZE && is_word(g, 2, "1000000")) {
        g->how = HOW_SET;
        g->slack = g->word_count > 3 && g->protocol == 2 ? 2 : 1;
    }
    static const char *const integers[] = {"start", "stop", "offset", "count", "limit", NULL};
    for (uint32_t i = 2; g->how == HOW_EXACT && i < grammar->count; i++) {
        if (grammar_is_among(integers, grammar->names[i]) && one_in(g, 25) &&
            strcasecmp(grammar->names[i], grammar->words[i]) != 0) { /* no LIMIT itself */
            snprintf(g->words[i], WORD_MAX, "%s", PICK(g, odd_integers));
        }
    }
    if (grammar->count > 1 && strcmp(grammar->names[1], "numkeys") == 0 && one_in(g, 20)) {
        snprintf(g->words[1], WORD_MAX, "%d", (int)below(g, 3) - 1);
    }
}

static void draw(struct generator *g) {
    static struct grammar grammar;
    static char names[KEYS + 2][WORD_MAX];
    static const char *keys[KEYS + 1];
    const struct command *drawn =
        grammar_choose(&g->random, one_in(g, COMMANDS_PER_FLUSH) ? flushes : weights_of);
    choose_family(g, drawn);
    for (int i = 0; i < KEYS; i++) {
        snprintf(names[i], WORD_MAX, "%s%d", g->family->prefix, i);
        keys[i] = names[i];
    }
    bool is_large = g->family->member_count > 100;
    values_of[0].values = is_large ? MEMBERS("m$1000") : MEMBERS("m$24");
    values_of[1].values = is_large ? FIELDS("f$1000") : FIELDS("f$24");
    grammar = (struct grammar){.random = &g->random,
                               .keys = keys,
                               .focus = {usual},
                               .values = values_of,
                               .never = never,
                               .is_tame = true};
    grammar_draw(&grammar, drawn);
    command(g, grammar.words[0]);
    for (uint32_t i = 1; i < grammar.count; i++) {
        word(g, "%s", grammar.words[i]);
        for (char *at = g->words[i]; *at >= 'A' && *at <= 'Z' && one_in(g, 20); at++) {
            *at = (char)(*at | 0x20);
        }
    }
    for (size_t i = 0; i < COUNT_OF(hows); i++) {
        if (strcmp(hows[i].name, drawn->name) == 0) {
            g->how = hows[i].how;
            g->slack = hows[i].slack;
        }
    }
    fit_limits(g, drawn);
    fit_counts(g, &grammar);
    if (drawn->first_key == 1 && strcmp(drawn->name, "ZRANGESTORE") != 0 && one_in(g, 40) &&
        !(g->family->has_hashes && (drawn->flags & COMMAND_WRITE) != 0)) {
        snprintf(g->words[1], WORD_MAX, "none");
    }
    for (int left = is_large && drawn->name[0] == 'H' &&
                            grammar_is_among(GRAMMAR_WORDS("HSET", "HMSET"), drawn->name)
                        ? 15
                        : 0;
         left > 0; left--) {
        word(g, "f%d", (int)below(g, MEMBERS_MAX));
        word(g, "%d", (int)below(g, 1000));
    }
}

/* ---- a stream of commands ---- */

static const struct {
    void (*make)(struct generator *g);
    int weight;
} kinds[] = {
    {zadd, 30},          {zadd_incr, 6},   {zincrby, 8}, {zcombine, 6},
    {zcombine_store, 3}, {read_result, 1}, {draw, 170},
};

/* Sometimes a word is missing, or there is one too many; not both, which would be a member FOO. */
static void spoil(struct generator *g) {
    /* ZRANK takes one more word since Redis 7.2. */
    bool is_rank =
        strcasecmp(g->words[0], "ZRANK") == 0 || strcasecmp(g->words[0], "ZREVRANK") == 0;
    if (one_in(g, 60) && g->word_count > 1) {
        g->word_count--;
        g->how = g->how == HOW_SET ? HOW_SIZE : g->how;
    } else if (one_in(g, 60) && !is_rank) {
        word(g, "FOO");
    }
}

static void generate(struct generator *g) {
    int weights = 0;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        weights += kinds[i].weight;
    }
    int drawn = (int)below(g, (uint64_t)weights);
    size_t kind = 0;
    while (drawn >= kinds[kind].weight) {
        drawn -= kinds[kind++].weight;
    }
    kinds[kind].make(g);
    spoil(g);
}

static void batch_add(struct batch *batch, const struct generator *g) {
    assert_true(batch->count < BATCH);
    const char *words[WORDS_MAX];
    size_t sizes[WORDS_MAX];
    for (int i = 0; i < g->word_count; i++) {
        words[i] = g->words[i];
        sizes[i] = strlen(words[i]);
    }
    size_t begin = batch->request.size;
    text_command_words(&batch->request, words, sizes, (size_t)g->word_count);
    batch->commands[batch->count].begin = begin;
    batch->commands[batch->count].end = batch->request.size;
    batch->commands[batch->count].how = g->how;
    batch->commands[batch->count].slack = g->slack;
    batch->count++;
}

/* Now and then a look at whole boards and hashes. */
static void add_dump(struct batch *batch, struct generator *g) {
    for (int i = 0; i < DUMPED / 2; i++) {
        command(g, "ZRANGE");
        key(g);
        word(g, "0");
        word(g, "-1");
        word(g, "WITHSCORES");
        batch_add(batch, g);
        command(g, "HGETALL");
        hash_key(g);
        g->how = HOW_SET;
        g->slack = 2;
        batch_add(batch, g);
    }
}

static void fill_batch(struct batch *batch, struct generator *g) {
    batch->request.size = 0;
    batch->count = 0;
    g->protocol = one_in(g, 2) ? 2 : 3;
    command(g, "HELLO");
    word(g, "%d", g->protocol);
    g->how = HOW_NOT;
    batch_add(batch, g);
    while (batch->count < BATCH - DUMPED) {
        generate(g);
        batch_add(batch, g);
    }
    add_dump(batch, g);
}

/* ---- replies ---- */

static void send_all(int fd, const struct text *text) {
    for (size_t sent = 0; sent < text->size;) {
        ssize_t size = send(fd, text->at + sent, text->size - sent, MSG_NOSIGNAL);
        assert_true(size > 0 || errno == EINTR);
        sent += size > 0 ? (size_t)size : 0;
    }
}

static void receive_more(struct side *side) {
    char piece[65536];
    ssize_t size;
    do {
        size = recv(side->fd, piece, sizeof(piece), 0);
    } while (size < 0 && errno == EINTR); /* as after SIGCONT */
    if (size <= 0) {
        print_error("%s closed the connection or did not answer\n", side->name);
        fail();
    }
    text_add(&side->replies, piece, (size_t)size);
}

/* The end of the line that begins at at; receives what is missing. */
static size_t line_end(struct side *side, size_t at) {
    for (;;) {
        const char *found = at < side->replies.size
                                ? memmem(side->replies.at + at, side->replies.size - at, "\r\n", 2)
                                : NULL;
        if (found != NULL) {
            return (size_t)(found - side->replies.at) + 2;
        }
        receive_more(side);
    }
}

/* The end of the value that begins at at. */
static size_t value_end(struct side *side, size_t at) {
    size_t end = line_end(side, at);
    char kind = side->replies.at[at];
    long count = strtol(side->replies.at + at + 1, NULL, 10);
    if (kind == '$' && count >= 0) {
        end += (size_t)count + 2;
        while (side->replies.size < end) {
            receive_more(side);
        }
    } else if (strchr("*~>%", kind) != NULL) {
        for (count *= kind == '%' ? 2 : 1; count > 0; count--) {
            end = value_end(side, end);
        }
    }
    return end;
}

struct reply_text {
    const char *at;
    size_t size;
};

static struct reply_text next_reply(struct side *side) {
    size_t begin = side->at;
    side->at = value_end(side, begin);
    return (struct reply_text){.at = side->replies.at + begin, .size = side->at - begin};
}

static bool is_same(struct reply_text a, struct reply_text b) {
    return a.size == b.size && memcmp(a.at, b.at, a.size) == 0;
}

/* ---- comparing without order ---- */

/* The end of a value inside a whole reply. */
static const char *inner_end(const char *at) {
    const char *end = strstr(at, "\r\n") + 2;
    long count = strtol(at + 1, NULL, 10);
    if (*at == '$' && count >= 0) {
        end += count + 2;
    } else if (strchr("*~>%", *at) != NULL) {
        for (; count > 0; count--) {
            end = inner_end(end);
        }
    }
    return end;
}

static int compare_texts(const void *left, const void *right) {
    const struct reply_text *a = left;
    const struct reply_text *b = right;
    size_t size = a->size < b->size ? a->size : b->size;
    int order = memcmp(a->at, b->at, size);
    return order != 0 ? order : (a->size > b->size) - (a->size < b->size);
}

/* The values of an array or a map, sorted; step values are taken together (member, score). Returns
 * how many there are; -1: this is no array. */
static int collect(struct reply_text reply, int step, struct reply_text *values) {
    if (strchr("*~%", *reply.at) == NULL) {
        return -1;
    }
    long left = strtol(reply.at + 1, NULL, 10) * (*reply.at == '%' ? 2 : 1);
    const char *at = strstr(reply.at, "\r\n") + 2;
    int count = 0;
    for (; left > 0; left -= step) {
        const char *end = at;
        for (int i = 0; i < step; i++) {
            end = inner_end(end);
        }
        assert_true(count < VALUES_MAX);
        values[count++] = (struct reply_text){.at = at, .size = (size_t)(end - at)};
        at = end;
    }
    qsort(values, (size_t)count, sizeof(values[0]), compare_texts);
    return count;
}

static bool is_same_set(struct reply_text a, struct reply_text b, int step) {
    static struct reply_text a_values[VALUES_MAX];
    static struct reply_text b_values[VALUES_MAX];
    int a_count = collect(a, step, a_values);
    int b_count = collect(b, step, b_values);
    if (a_count != b_count || *a.at != *b.at) {
        return false;
    }
    if (a_count < 0) {
        return is_same(a, b);
    }
    for (int i = 0; i < a_count; i++) {
        if (!is_same(a_values[i], b_values[i])) {
            return false;
        }
    }
    return true;
}

/* [cursor, array]: the cursors' texts are equal, and the arrays as sets. */
static bool is_same_scan(struct reply_text a, struct reply_text b, int step) {
    if (*a.at != '*' || *b.at != '*') {
        return is_same(a, b);
    }
    const char *a_inner = inner_end(a.at + 4);
    const char *b_inner = inner_end(b.at + 4);
    struct reply_text a_head = {.at = a.at, .size = (size_t)(a_inner - a.at)};
    struct reply_text b_head = {.at = b.at, .size = (size_t)(b_inner - b.at)};
    return is_same(a_head, b_head) &&
           is_same_set((struct reply_text){.at = a_inner, .size = a.size - a_head.size},
                       (struct reply_text){.at = b_inner, .size = b.size - b_head.size}, step);
}

static bool is_same_size(struct reply_text a, struct reply_text b) {
    if (*a.at != *b.at || *a.at == '-') {
        return is_same(a, b);
    }
    long a_count = strtol(a.at + 1, NULL, 10);
    long b_count = strtol(b.at + 1, NULL, 10);
    return *a.at == '*' ? a_count == b_count : (a_count < 0) == (b_count < 0);
}

/* Times that are left run on between the two servers; -1 and -2 do not. */
static bool is_close(struct reply_text a, struct reply_text b, int slack) {
    if (*a.at != ':' || *b.at != ':') {
        return is_same(a, b);
    }
    long long a_value = strtoll(a.at + 1, NULL, 10);
    long long b_value = strtoll(b.at + 1, NULL, 10);
    return a_value < 0 || b_value < 0 ? a_value == b_value : llabs(a_value - b_value) <= slack;
}

static bool is_alike(enum how how, int slack, struct reply_text ours, struct reply_text theirs) {
    switch (how) {
    case HOW_EXACT:
        return is_same(ours, theirs);
    case HOW_SET:
        return is_same_set(ours, theirs, slack);
    case HOW_SCAN:
        return is_same_scan(ours, theirs, slack);
    case HOW_SIZE:
        return is_same_size(ours, theirs);
    case HOW_CLOSE:
        return is_close(ours, theirs, slack);
    case HOW_NOT:
        break;
    }
    return true;
}

/* ---- the run ---- */

static void show(const char *name, const char *at, size_t size) {
    enum { PRINTED_MAX = 600 };
    printf("  %-7s", name);
    for (size_t i = 0; i < size && i < PRINTED_MAX; i++) {
        unsigned char byte = (unsigned char)at[i];
        if (byte == '\r') {
            continue;
        }
        if (byte == '\n') {
            putchar(' ');
        } else if (byte < ' ' || byte > '~') {
            printf("\\x%02x", byte);
        } else {
            putchar(byte);
        }
    }
    printf("%s\n", size > PRINTED_MAX ? "..." : "");
}

struct run {
    struct side ours, theirs;
    struct generator generator;
    struct batch batch;
    uint64_t command_count;
    uint64_t difference_count;
};

/* After a difference the two hold different things: begin anew. */
static void run_begin_anew(struct run *run) {
    TEXT(flush);
    text_command(&flush, "FLUSHALL");
    struct side *const sides[] = {&run->ours, &run->theirs};
    for (int i = 0; i < 2; i++) {
        send_all(sides[i]->fd, &flush);
        (void)next_reply(sides[i]);
    }
}

static void run_compare(struct run *run) {
    uint64_t before = run->difference_count;
    for (int i = 0; i < run->batch.count; i++) {
        struct reply_text ours = next_reply(&run->ours);
        struct reply_text theirs = next_reply(&run->theirs);
        if (is_alike(run->batch.commands[i].how, run->batch.commands[i].slack, ours, theirs)) {
            continue;
        }
        if (run->difference_count++ < SHOWN_MAX) {
            size_t begin = run->batch.commands[i].begin;
            printf("difference after %llu commands\n",
                   (unsigned long long)run->command_count + (unsigned long long)i);
            show("sent", run->batch.request.at + begin, run->batch.commands[i].end - begin);
            show("ours", ours.at, ours.size);
            show("redis", theirs.at, theirs.size);
        }
    }
    if (run->difference_count != before) {
        run_begin_anew(run);
    }
}

static void run_batch(struct run *run) {
    fill_batch(&run->batch, &run->generator);
    struct side *const sides[] = {&run->ours, &run->theirs};
    for (int i = 0; i < 2; i++) {
        sides[i]->replies.size = 0;
        sides[i]->at = 0;
        send_all(sides[i]->fd, &run->batch.request);
    }
    run_compare(run);
    run->command_count += (uint64_t)run->batch.count;
}

static void side_start(struct side *side, const char *name, const struct process_options *options) {
    side->name = name;
    if (!process_start(&side->process, options)) {
        print_error("%s does not start\n", name);
        exit(EXIT_FAILURE);
    }
    side->fd = process_connect_unix(&side->process);
    assert_true(side->fd >= 0);
}

static int side_stop(struct side *side) {
    close(side->fd);
    text_free(&side->replies);
    return process_stop(&side->process);
}

static uint64_t commands_wanted(int argc, char **argv) {
    const char *given = argc > 1 ? argv[1] : getenv("LEADERBOARD_DIFFERENTIAL_COMMANDS");
    if (given != NULL) {
        return strtoull(given, NULL, 10);
    }
    return is_short_run() ? COMMANDS_SHORT : COMMANDS_DEFAULT;
}

static uint64_t wanted;
static struct run run;

TEST(both_servers_answer_alike) {
    execute_init(command_table);
    run.generator.random = random_begin("differential");
    uint64_t seed = run.generator.random.state;
    /* Redis keeps small sets in lists, and scans those in one step whatever COUNT says. */
    static const char *const redis_arguments[] = {"--zset-max-listpack-entries", "0", NULL};
    for (int family = 0; family < FAMILIES; family++) {
        for (int id = 0; id < MEMBERS_MAX; id++) {
            /* Sums of small numbers would be equal now and then. */
            run.generator.scores[family][id] =
                families[family].has_drawn_scores
                    ? (int64_t)below(&run.generator, UINT64_C(1) << 50)
                    : id;
        }
    }
    side_start(&run.ours, "ours", &(struct process_options){.config = config});
    side_start(&run.theirs, "redis",
               &(struct process_options){.program = process_redis_program(),
                                         .arguments = redis_arguments});
    while (run.command_count < wanted) {
        run_batch(&run);
    }
    printf("%llu commands, %llu differences, seed %llu\n", (unsigned long long)run.command_count,
           (unsigned long long)run.difference_count, (unsigned long long)seed);
    text_free(&run.batch.request);
    assert_int_equal(side_stop(&run.ours), 0);
    assert_int_equal(side_stop(&run.theirs), 0);
    assert_int_equal(run.difference_count, 0);
}

/* ---- patterns ---- */

enum { PATTERN_KEYS = 300, PATTERNS = 20000, PATTERNS_SHORT = 2000, PATTERN_SIZE_MAX = 12 };

static void random_word(struct generator *g, const char *alphabet, char *out, size_t *size) {
    *size = 1 + (size_t)below(g, PATTERN_SIZE_MAX);
    for (size_t i = 0; i < *size; i++) {
        out[i] = alphabet[below(g, strlen(alphabet))];
    }
}

static void ask_both(const struct text *request) {
    struct side *const sides[] = {&run.ours, &run.theirs};
    for (int i = 0; i < 2; i++) {
        sides[i]->replies.size = 0;
        sides[i]->at = 0;
        send_all(sides[i]->fd, request);
    }
}

static void make_pattern_keys(struct generator *g) {
    for (int i = 0; i < PATTERN_KEYS; i++) {
        TEXT(request);
        char name[PATTERN_SIZE_MAX];
        size_t size;
        random_word(g, one_in(g, 2) ? "aab" : "aAbBc-]^\\*[", name, &size);
        text_command_words(&request, (const char *const[]){"ZADD", name, "1", "m"},
                           (const size_t[]){4, size, 1, 1}, 4);
        ask_both(&request);
        (void)next_reply(&run.ours);
        (void)next_reply(&run.theirs);
    }
}

/* Classes, ranges, escapes, what is not closed, and many stars over few letters. */
TEST(both_servers_read_patterns_alike) {
    static const char *const alphabets[] = {"aab***?", "aabbc**??[[]]^-\\", "a*a*b", "[^a-c]\\*A"};
    struct generator *g = &run.generator;
    g->random = random_begin(__func__);
    side_start(&run.ours, "ours", NULL);
    side_start(&run.theirs, "redis", &(struct process_options){.program = process_redis_program()});
    make_pattern_keys(g);
    int patterns = is_short_run() ? PATTERNS_SHORT : PATTERNS;
    uint64_t found = 0;
    for (int i = 0; i < patterns; i++) {
        TEXT(request);
        char words[PATTERN_SIZE_MAX];
        size_t size;
        random_word(g, alphabets[i % 4], words, &size);
        text_command_words(&request, (const char *const[]){"KEYS", words},
                           (const size_t[]){4, size}, 2);
        ask_both(&request);
        struct reply_text ours = next_reply(&run.ours);
        struct reply_text theirs = next_reply(&run.theirs);
        found += ours.at[1] != '0';
        if (!is_same_set(ours, theirs, 1)) {
            fail_msg("KEYS '%.*s': ours '%.*s' theirs '%.*s'", (int)size, words, (int)ours.size,
                     ours.at, (int)theirs.size, theirs.at);
        }
    }
    assert_true(found > (uint64_t)patterns / 10);
    assert_int_equal(side_stop(&run.ours), 0);
    assert_int_equal(side_stop(&run.theirs), 0);
}

/* Both servers, to be asked for the same things. */
struct compared {
    struct process ours, theirs;
    struct wire our_wire, their_wire;
};

/* Returns the names of Redis's commands, to be freed. */
static char *begin_comparing(struct compared *compared) {
    const struct process_options redis = {.program = process_redis_program()};
    assert_true(process_start(&compared->ours, NULL));
    assert_true(process_start(&compared->theirs, &redis));
    compared->our_wire = wire_open(process_connect_unix(&compared->ours));
    compared->their_wire = wire_open(process_connect_unix(&compared->theirs));
    return strdup(wire_ask(&compared->their_wire, "COMMAND LIST"));
}

static void end_comparing(struct compared *compared) {
    wire_close(&compared->our_wire);
    wire_close(&compared->their_wire);
    assert_int_equal(process_stop(&compared->ours), 0);
    assert_int_equal(process_stop(&compared->theirs), 0);
}

/* A client that sends what is not here is told so, and where to read on. */
TEST(every_command_of_redis_is_here_or_said_to_be_missing) {
    struct compared compared;
    char *names = begin_comparing(&compared);
    int here = 0, missing = 0;
    char *save = NULL;
    for (char *name = strtok_r(names, "[] ", &save); name; name = strtok_r(NULL, "[] ", &save)) {
        const char *ask = formatted("COMMAND INFO %s", name);
        if (strchr(name, '|') != NULL || strcmp(wire_ask(&compared.our_wire, ask), "[nil]") != 0) {
            here++;
            continue;
        }
        const char *reply = wire_ask(&compared.our_wire, name);
        if (strstr(reply, "see docs/reference/differences-from-redis.md") == NULL) {
            fail_msg("%s answers %s", name, reply);
        }
        missing++;
    }
    assert_true(here > 100);
    assert_true(missing > 100);
    free(names);
    end_comparing(&compared);
}

/* Is the flag among those that COMMAND INFO replies, "[[name arity [flag flag] ..."? */
static bool has_flag(const char *reply, const char *flag) {
    char flags[512];
    const char *begin = strchr(reply + 2, '[');
    assert_non_null(begin);
    snprintf(flags, sizeof flags, "%.*s", (int)strcspn(begin + 1, "]"), begin + 1);
    char *save = NULL;
    char *word = strtok_r(flags, " +", &save);
    while (word != NULL && strcmp(word, flag) != 0) {
        word = strtok_r(NULL, " +", &save);
    }
    return word != NULL;
}

/* A server that loads answers what Redis answers while it loads, and refuses the rest, PING too. */
TEST(the_commands_that_run_while_boards_are_loaded_are_those_of_redis) {
    struct compared compared;
    char *names = begin_comparing(&compared);
    int with = 0, without = 0;
    char *save = NULL;
    for (char *name = strtok_r(names, "[] ", &save); name; name = strtok_r(NULL, "[] ", &save)) {
        const char *ask = formatted("COMMAND INFO %s", name);
        const char *reply = wire_ask(&compared.our_wire, ask);
        if (strcmp(reply, "[nil]") == 0) {
            continue;
        }
        bool is_ours = has_flag(reply, "loading");
        if (is_ours != has_flag(wire_ask(&compared.their_wire, ask), "loading")) {
            fail_msg("%s: %s while loading here, unlike there", name, is_ours ? "runs" : "refused");
        }
        with += is_ours;
        without += !is_ours;
    }
    assert_true(with > 50);
    assert_true(without > 80);
    assert_false(has_flag(wire_ask(&compared.our_wire, "COMMAND INFO ping"), "loading"));
    free(names);
    end_comparing(&compared);
}

int main(int argc, char **argv) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    wanted = commands_wanted(argc, argv);
    return test_run(NULL, NULL);
}
