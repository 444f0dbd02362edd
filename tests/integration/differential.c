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
 * stays so: sums in that family or over all sources, weights that are alike elsewhere. Everything
 * else is random: options, limits, arguments that are no numbers, arguments missing and to spare.
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

/* For reading: also such as are no hashes. */
static void any_hash_key(struct generator *g) {
    if (one_in(g, 30)) {
        key(g);
    } else {
        hash_key(g);
    }
}

static int member(struct generator *g) {
    int id = (int)below(g, (uint64_t)g->family->member_count);
    word(g, "m%d", id);
    return id;
}

/* For reading: also such as are on no board. */
static void any_member(struct generator *g) {
    if (one_in(g, 30)) {
        word(g, "%s", one_in(g, 2) ? "" : "nobody");
    } else {
        (void)member(g);
    }
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

static void zrem(struct generator *g) {
    command(g, "ZREM");
    key(g);
    for (int left = 1 + (int)below(g, 3); left > 0; left--) {
        any_member(g);
    }
}

static void read_member(struct generator *g) {
    static const char *const names[] = {"ZSCORE", "ZRANK", "ZREVRANK"};
    command(g, PICK(g, names));
    key(g);
    any_member(g);
}

static void zmscore(struct generator *g) {
    command(g, "ZMSCORE");
    key(g);
    for (int left = 1 + (int)below(g, 5); left > 0; left--) {
        any_member(g);
    }
}

static void zcard(struct generator *g) {
    command(g, "ZCARD");
    key(g);
}

static void zcount(struct generator *g) {
    command(g, "ZCOUNT");
    key(g);
    limits(g, false);
}

static void limit_option(struct generator *g, uint64_t n) {
    if (one_in(g, n)) {
        word(g, "LIMIT");
        integer(g, -1, 8);
        integer(g, -2, 20);
    }
}

static void zrange(struct generator *g) {
    static const char *const names[] = {"ZRANGE", "ZREVRANGE"};
    const char *name = PICK(g, names);
    command(g, name);
    key(g);
    bool is_by_score = name == names[0] && one_in(g, 2);
    bool is_reverse = one_in(g, name == names[0] ? 2 : 40);
    if (is_by_score) {
        limits(g, is_reverse);
        word(g, "BYSCORE");
    } else {
        place(g);
        place(g);
    }
    option(g, is_reverse ? 1 : 1000, "REV");
    option(g, 2, "WITHSCORES");
    limit_option(g, is_by_score ? 2 : 30);
}

static void zrangebyscore(struct generator *g) {
    bool is_reverse = one_in(g, 2);
    command(g, is_reverse ? "ZREVRANGEBYSCORE" : "ZRANGEBYSCORE");
    key(g);
    limits(g, is_reverse);
    limit_option(g, 3);
    option(g, 2, "WITHSCORES");
    limit_option(g, 5);
}

static void zremrange(struct generator *g) {
    if (one_in(g, 2)) {
        command(g, "ZREMRANGEBYRANK");
        key(g);
        int first = (int)below(g, 40) - 20;
        word(g, "%d", first);
        integer(g, first - 1, first + 4);
        return;
    }
    command(g, "ZREMRANGEBYSCORE");
    key(g);
    if (one_in(g, 20)) {
        limits(g, false);
    } else {
        int id = (int)below(g, (uint64_t)g->family->member_count);
        word(g, "%lld", (long long)*last_score(g, id));
        word(g, "%s%lld", one_in(g, 5) ? "(" : "", (long long)*last_score(g, id) + 5);
    }
}

static void zpop(struct generator *g) {
    static const char *const names[] = {"ZPOPMIN", "ZPOPMAX"};
    command(g, PICK(g, names));
    key(g);
    if (one_in(g, 2)) {
        integer(g, -1, 6);
    }
}

static void zmpop(struct generator *g) {
    command(g, "ZMPOP");
    int count = 1 + (int)below(g, 3);
    if (one_in(g, 20)) {
        integer(g, -1, 4);
    } else {
        word(g, "%d", count);
    }
    for (; count > 0; count--) {
        key(g);
    }
    word(g, "%s", one_in(g, 2) ? "MIN" : "max");
    if (one_in(g, 2)) {
        word(g, "COUNT");
        integer(g, 0, 6);
    }
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

static void zintercard(struct generator *g) {
    command(g, "ZINTERCARD");
    g->family = &PICK(g, families);
    source_keys(g, 1 + (int)below(g, 3));
    if (one_in(g, 2)) {
        word(g, "LIMIT");
        integer(g, -1, 12);
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

static void zrangestore(struct generator *g) {
    command(g, "ZRANGESTORE");
    g->family = &PICK(g, families);
    same_family_key(g);
    same_family_key(g);
    bool is_by_score = one_in(g, 2);
    bool is_reverse = one_in(g, 2);
    if (is_by_score) {
        limits(g, is_reverse);
        word(g, "BYSCORE");
    } else {
        place(g);
        place(g);
    }
    option(g, is_reverse ? 1 : 1000, "REV");
    option(g, 60, "WITHSCORES");
    limit_option(g, is_by_score ? 2 : 30);
}

static void random_entry(struct generator *g, const char *name, const char *option) {
    command(g, name);
    if (*name == 'Z') {
        key(g);
    } else {
        any_hash_key(g);
    }
    g->how = HOW_SIZE;
    if (one_in(g, 4)) {
        return;
    }
    if (one_in(g, 20)) {
        /* Negative ones of this kind would make Redis fill its memory. */
        static const char *const odd[] = {"-9223372036854775808",
                                          "9223372036854775807",
                                          "4611686018427387903",
                                          "4611686018427387904",
                                          "9223372036854775808",
                                          "x",
                                          "",
                                          "1.5"};
        word(g, "%s", PICK(g, odd));
    } else if (one_in(g, 4)) {
        word(g, "1000000");
        g->how = HOW_SET;
    } else {
        word(g, "%d", (int)below(g, 60) - 20);
    }
    if (one_in(g, 2)) {
        word(g, "%s", option);
        g->slack = g->protocol == 2 ? 2 : 1;
    }
}

static void zrandmember(struct generator *g) {
    random_entry(g, "ZRANDMEMBER", "WITHSCORES");
}

static void hrandfield(struct generator *g) {
    random_entry(g, "HRANDFIELD", "WITHVALUES");
}

static void pattern(struct generator *g) {
    static const char *const patterns[] = {"*",      "m1*",   "m?",   "m[1-3]*", "m[^1]*", "*7",
                                           "m\\1*",  "x*",    "k:?",  "*:[02]",  "[x",     "b*:*",
                                           "?:*[1]", "m*1*2", "m[5]", "",        "**",     "m4\\"};
    word(g, "%s", PICK(g, patterns));
}

/* In one step, so that Redis's cursor is 0 as well. */
static void scan_value(struct generator *g, const char *name) {
    command(g, name);
    if (*name == 'Z') {
        key(g);
    } else {
        any_hash_key(g);
    }
    g->how = HOW_SCAN;
    g->slack = 2;
    static const char *const bad[] = {"x", "1x", "18446744073709551616", "0x1"};
    word(g, "%s", one_in(g, 30) ? PICK(g, bad) : "0");
    if (one_in(g, 2)) {
        word(g, "MATCH");
        do {
            g->word_count -= g->word_count > 4;
            pattern(g);
            /* In Redis ** is the one pattern of stars that an empty field does not match. */
        } while (*name == 'H' && strcmp(g->words[4], "**") == 0);
    }
    word(g, "COUNT");
    static const char *const counts[] = {"0", "-1", "x", "-9223372036854775808"};
    word(g, "%s", one_in(g, 30) ? PICK(g, counts) : "1000000");
}

static void zscan(struct generator *g) {
    scan_value(g, "ZSCAN");
}

static void hscan(struct generator *g) {
    scan_value(g, "HSCAN");
}

/* ---- hash commands ---- */

static void field(struct generator *g) {
    if (one_in(g, 30)) {
        static const char *const odd[] = {"", "0", "12345", "-1", "a field with a longer name"};
        word(g, "%s", PICK(g, odd));
    } else {
        word(g, "f%d", (int)below(g, (uint64_t)g->family->member_count));
    }
}

/* Also all that two ways of reading numbers may disagree about. */
static void number(struct generator *g) {
    static const char *const odd[] = {"9223372036854775807",
                                      "-9223372036854775808",
                                      "9223372036854775808",
                                      "1e3",
                                      "0x1p4",
                                      "-0",
                                      "0.1",
                                      "1e-20",
                                      "1e300",
                                      "-1e4932",
                                      "1e4933",
                                      "1e-4950",
                                      "inf",
                                      "-inf",
                                      "nan",
                                      "+1",
                                      " 1",
                                      "1 ",
                                      "01",
                                      ".5",
                                      "5.",
                                      "3.0e3",
                                      "9007199254740993.21",
                                      "",
                                      "x"};
    switch (below(g, 5)) {
    case 0:
        word(g, "%s", PICK(g, odd));
        break;
    case 1:
        word(g, "%d.%d", (int)below(g, 2000) - 1000, (int)below(g, 100000));
        break;
    default:
        word(g, "%d", (int)below(g, 2000) - 1000);
        break;
    }
}

static void value(struct generator *g) {
    static const char *const texts[] = {
        "", "zoe", "https://example.com/avatars/0123456789abcdef.png", "gold", "\x01\xff\r\n"};
    if (one_in(g, 2)) {
        word(g, "%s", PICK(g, texts));
    } else {
        number(g);
    }
}

static void hset(struct generator *g) {
    static const char *const names[] = {"HSET", "HSET", "HMSET"};
    command(g, PICK(g, names));
    hash_key(g);
    bool is_big = g->family->member_count > 100;
    for (int left = is_big ? 10 + (int)below(g, 15) : 1 + (int)below(g, 4); left > 0; left--) {
        field(g);
        value(g);
    }
}

static void hsetnx(struct generator *g) {
    command(g, "HSETNX");
    hash_key(g);
    field(g);
    value(g);
}

static void hincrby(struct generator *g) {
    bool is_float = one_in(g, 2);
    command(g, is_float ? "HINCRBYFLOAT" : "HINCRBY");
    hash_key(g);
    field(g);
    number(g);
}

static void hdel(struct generator *g) {
    command(g, "HDEL");
    any_hash_key(g);
    int most = one_in(g, 10) ? 24 : 3;
    for (int left = 1 + (int)below(g, (uint64_t)most); left > 0; left--) {
        field(g);
    }
}

static void read_field(struct generator *g) {
    static const char *const names[] = {"HGET", "HMGET", "HEXISTS", "HSTRLEN"};
    int index = (int)below(g, 4);
    command(g, names[index]);
    any_hash_key(g);
    for (int left = index == 1 ? 1 + (int)below(g, 5) : 1; left > 0; left--) {
        field(g);
    }
}

static void read_hash(struct generator *g) {
    static const char *const names[] = {"HGETALL", "HKEYS", "HVALS", "HLEN"};
    int index = (int)below(g, 4);
    command(g, names[index]);
    any_hash_key(g);
    g->how = index < 3 ? HOW_SET : HOW_EXACT;
    g->slack = index == 0 ? 2 : 1;
}

static void hencoding(struct generator *g) {
    command(g, "OBJECT");
    word(g, "ENCODING");
    any_hash_key(g);
}

/* Otherwise a key of the wrong kind would stay for long. */
static void hash_removal(struct generator *g) {
    command(g, "DEL");
    hash_key(g);
}

/* ---- commands on keys ---- */

static void keys_counted(struct generator *g) {
    static const char *const names[] = {"EXISTS", "TOUCH", "EXISTS", "TOUCH"};
    static const char *const removals[] = {"DEL", "UNLINK"};
    command(g, one_in(g, 10) ? PICK(g, removals) : PICK(g, names));
    for (int left = 1 + (int)below(g, 2); left > 0; left--) {
        key(g);
    }
}

static void key_alone(struct generator *g) {
    static const struct {
        const char *name;
        int slack;
    } forms[] = {
        {"TYPE", 0},     {"PERSIST", 0},     {"TTL", 60},
        {"PTTL", 60000}, {"EXPIRETIME", 60}, {"PEXPIRETIME", 60000},
    };
    int index = (int)below(g, sizeof(forms) / sizeof(forms[0]));
    command(g, forms[index].name);
    key(g);
    if (forms[index].slack > 0) {
        g->how = HOW_CLOSE;
        g->slack = forms[index].slack;
    }
}

static void rename_key(struct generator *g) {
    static const char *const names[] = {"RENAME", "RENAMENX"};
    command(g, PICK(g, names));
    key(g);
    same_family_key(g);
}

static void copy(struct generator *g) {
    command(g, "COPY");
    key(g);
    same_family_key(g);
    if (one_in(g, 3)) {
        word(g, "DB");
        static const char *const databases[] = {"0", "1", "1", "0", "16", "-1", "x", "99999999999"};
        word(g, "%s", PICK(g, databases));
    }
    option(g, 2, "REPLACE");
}

/* Times far away and far from each other, so that no option hangs on a millisecond. */
static void expire(struct generator *g) {
    static const struct {
        const char *name;
        int64_t base, unit;
    } forms[] = {
        {"EXPIRE", 0, 1},
        {"PEXPIRE", 0, 1000},
        {"EXPIREAT", INT64_C(4000000000), 1},
        {"PEXPIREAT", INT64_C(4000000000000), 1000},
    };
    int index = (int)below(g, 4);
    command(g, forms[index].name);
    key(g);
    int64_t seconds = 1000000 + (int64_t)below(g, 1000000000);
    if (one_in(g, 12)) {
        static const char *const odd[] = {"0",
                                          "-1",
                                          "x",
                                          "",
                                          "1.5",
                                          "9223372036854775807",
                                          "-9223372036854775808",
                                          "9223372036854775808",
                                          "1"};
        /* 1 would be soon in the relative forms. */
        size_t count = sizeof(odd) / sizeof(odd[0]) - (index < 2 ? 1 : 0);
        word(g, "%s", odd[below(g, count)]);
    } else {
        word(g, "%lld", (long long)(forms[index].base + seconds * forms[index].unit));
    }
    static const char *const options[] = {"NX", "XX", "GT", "LT", "nx", "gt"};
    option(g, 3, PICK(g, options));
    option(g, 10, PICK(g, options));
}

static void list_keys(struct generator *g) {
    if (one_in(g, 3)) {
        command(g, "KEYS");
        pattern(g);
        g->how = HOW_SET;
        return;
    }
    if (one_in(g, 4)) {
        command(g, "RANDOMKEY");
        g->how = HOW_SIZE;
        return;
    }
    command(g, "SCAN");
    g->how = HOW_SCAN;
    word(g, "%s", one_in(g, 30) ? "x" : "0");
    if (one_in(g, 2)) {
        word(g, "MATCH");
        pattern(g);
    }
    if (one_in(g, 3)) {
        word(g, "TYPE");
        static const char *const types[] = {"zset", "hash", "ZSET", "Hash", "string", "x"};
        word(g, "%s", PICK(g, types));
    }
    word(g, "COUNT");
    word(g, "%s", one_in(g, 20) ? "0" : "1000000");
}

static void database(struct generator *g) {
    switch (below(g, 8)) {
    case 0:
        command(g, "ECHO");
        pattern(g);
        break;
    case 1:
        command(g, "PING");
        option(g, 2, "hello");
        break;
    case 2: {
        static const char *const numbers[] = {"0",  "1",  "0", "1",
                                              "16", "-1", "x", "9223372036854775808"};
        command(g, "SELECT");
        word(g, "%s", PICK(g, numbers));
        break;
    }
    case 3:
        if (one_in(g, 20)) {
            command(g, one_in(g, 4) ? "FLUSHALL" : "FLUSHDB");
            static const char *const modes[] = {"ASYNC", "SYNC", "sync", "NOW"};
            option(g, 2, PICK(g, modes));
            break;
        }
        /* fallthrough */
    default:
        command(g, "DBSIZE");
        break;
    }
}

/* ---- a stream of commands ---- */

static const struct {
    void (*make)(struct generator *g);
    int weight;
} kinds[] = {
    {zadd, 30},      {zadd_incr, 6},      {zincrby, 8},    {zrem, 5},        {read_member, 14},
    {zmscore, 3},    {zcard, 3},          {zcount, 6},     {zrange, 14},     {zrangebyscore, 10},
    {zremrange, 4},  {zpop, 3},           {zmpop, 2},      {zrandmember, 3}, {zscan, 2},
    {zcombine, 6},   {zcombine_store, 3}, {zintercard, 2}, {zrangestore, 2}, {read_result, 1},
    {rename_key, 1}, {keys_counted, 2},   {key_alone, 4},  {copy, 1},        {expire, 3},
    {list_keys, 2},  {database, 4},       {hset, 26},      {hsetnx, 4},      {hincrby, 12},
    {hdel, 6},       {read_field, 14},    {read_hash, 6},  {hrandfield, 3},  {hscan, 3},
    {hencoding, 2},  {hash_removal, 1},
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
    struct text flush = {.at = NULL};
    text_command(&flush, "FLUSHALL");
    struct side *const sides[] = {&run->ours, &run->theirs};
    for (int i = 0; i < 2; i++) {
        send_all(sides[i]->fd, &flush);
        (void)next_reply(sides[i]);
    }
    text_free(&flush);
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
        struct text request = {.at = NULL};
        char name[PATTERN_SIZE_MAX];
        size_t size;
        random_word(g, one_in(g, 2) ? "aab" : "aAbBc-]^\\*[", name, &size);
        text_command_words(&request, (const char *const[]){"ZADD", name, "1", "m"},
                           (const size_t[]){4, size, 1, 1}, 4);
        ask_both(&request);
        (void)next_reply(&run.ours);
        (void)next_reply(&run.theirs);
        text_free(&request);
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
        struct text request = {.at = NULL};
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
        text_free(&request);
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
