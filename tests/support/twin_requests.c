/* Random commands: few keys and few different scores, so that ties, repeated members and collisions
 * of every kind happen all the time; now and then something that must be refused. */
#include "tests/support/twin_requests.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    MEMBERS_LARGE = 2500,
    MEMBERS_SMALL = 25,
};

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
enum { LAYOUTS = sizeof twin_requests_layouts / sizeof twin_requests_layouts[0] };

static uint64_t below(struct twin_requests *requests, uint64_t limit) {
    return random_below(requests->random, limit);
}

/* ---- making arguments ---- */

__attribute__((format(printf, 2, 3))) static void add(struct twin_requests *requests,
                                                      const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    char *at = requests->text + requests->text_size;
    size_t room = sizeof requests->text - requests->text_size;
    int size = vsnprintf(at, room, format, arguments);
    va_end(arguments);
    CHECK(size >= 0 && (size_t)size < room && requests->arg_count < TWIN_REQUESTS_ARGS_MAX);
    requests->args[requests->arg_count++] = (struct bytes){.at = at, .size = (size_t)size};
    requests->text_size += (size_t)size + 1;
}

static const char *one_of(struct twin_requests *requests, const char *const *words,
                          uint64_t count) {
    return words[below(requests, count)];
}
#define ONE_OF(requests, ...)                                                                      \
    one_of((requests), (const char *const[]){__VA_ARGS__},                                         \
           sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))

/* Key 0 of each layout grows large; the others stay small. */
static const struct twin_layout *add_key(struct twin_requests *requests) {
    const struct twin_layout *layout = &twin_requests_layouts[below(requests, LAYOUTS)];
    uint64_t number = below(requests, 2) == 0 ? 0 : below(requests, 4);
    add(requests, "%s%llu", layout->prefix, (unsigned long long)number);
    return layout;
}

/* The small ones are those that are renamed, copied over and removed, as a rule. */
static void add_mortal_key(struct twin_requests *requests) {
    uint64_t number = below(requests, 200) == 0 ? 0 : 1 + below(requests, 3);
    add(requests, "%s%llu", twin_requests_layouts[below(requests, LAYOUTS)].prefix,
        (unsigned long long)number);
}

static void add_member(struct twin_requests *requests) {
    bool is_large =
        requests->arg_count > 1 && requests->args[1].at[requests->args[1].size - 1] == '0';
    unsigned number = (unsigned)below(requests, is_large ? MEMBERS_LARGE : MEMBERS_SMALL);
    if (number % 19 == 0) { /* up to 400 bytes: too long to stand inside a block */
        add(requests, "m%u%0*d", number, 100 + (int)number % 300, 0);
    } else {
        add(requests, "m%u", number);
    }
}

static void add_integer(struct twin_requests *requests) {
    switch (below(requests, 20)) {
    case 0:
        add(requests, "%s",
            ONE_OF(requests, "9223372036854775807", "-9223372036854775808", "4611686018427387903",
                   "9223372036854775808", "x", "", "1.5", "+1", "-0", "01"));
        break;
    case 1:
    case 2:
        add(requests, "%d", (int)below(requests, 3000) - 1500);
        break;
    default:
        add(requests, "%d", (int)below(requests, 24) - 12);
    }
}

/* A number of the field's whole range, in the field's own decimals. */
static void add_wide_number(struct twin_requests *requests, const struct twin_layout *layout) {
    uint64_t bits = random_next(requests->random);
    uint64_t magnitude = layout->fields[0].bits == 64
                             ? bits >> 1
                             : bits & ((UINT64_C(1) << layout->fields[0].bits) - 1);
    uint64_t unit = 1;
    for (int i = 0; i < layout->fields[0].scale; i++) {
        unit *= 10;
    }
    const char *sign = layout->fields[0].is_signed && below(requests, 2) == 0 ? "-" : "";
    if (layout->fields[0].scale == 0) {
        add(requests, "%s%llu", sign, (unsigned long long)magnitude);
    } else {
        add(requests, "%s%llu.%0*llu", sign, (unsigned long long)(magnitude / unit),
            layout->fields[0].scale, (unsigned long long)(magnitude % unit));
    }
}

/* Mostly few different numbers, so that there are ties; in all the ways to write them. */
static void add_score(struct twin_requests *requests, const struct twin_layout *layout) {
    int small = (int)below(requests, 8) - (layout->fields[0].is_signed ? 3 : 0);
    uint64_t kind = below(requests, 100);
    if (kind < 55) {
        add(requests, "%d", small);
    } else if (kind < 70) {
        add(requests, "%d.%d", small, layout->fields[0].scale > 0 ? (int)below(requests, 10) : 0);
    } else if (kind < 76) {
        add(requests, "%de%d", small, (int)below(requests, 4));
    } else if (kind < 89) {
        add_wide_number(requests, layout);
    } else if (kind < 97) {
        add(requests, "%s",
            ONE_OF(requests, "+5", "-0", "007", "5.", "1E2", "500e-2", "0e9",
                   "4.000000000000000000", "9007199254740993", "3.25"));
    } else if (kind < 99) {
        add(requests, "%s",
            ONE_OF(requests, "9223372036854775807", "9223372036854775808", "-9223372036854775808",
                   "-9223372036854775809", "4294967295", "4294967296", "-4294967296", "-4294967297",
                   "15", "16", "8388.607", "8388.608", "1e30", "0.123456789", "inf", "-inf", "1e-3",
                   "-1"));
    } else {
        add(requests, "%s",
            ONE_OF(requests, "x", "", "nan", "1x", "0x10", "1e", "--1", "1 ", ".", "1e1.5"));
    }
}

static void add_bound(struct twin_requests *requests, const struct twin_layout *layout) {
    const char *open = below(requests, 4) == 0 ? "(" : "";
    int small = (int)below(requests, 12) - (layout->fields[0].is_signed ? 4 : 1);
    switch (below(requests, 12)) {
    case 0:
    case 1:
        add(requests, "%s%s", open, ONE_OF(requests, "-inf", "+inf", "inf", "-INF", "Inf"));
        break;
    case 2:
        add(requests, "%s%d.%d", open, small, (int)below(requests, 10000));
        break;
    case 3:
        add(requests, "%s%s", open,
            ONE_OF(requests, "1e30", "-1e30", "9223372036854775807", "-9223372036854775809",
                   "18446744073709551616", "4294967296", "1e2", "0.5"));
        break;
    case 4:
        add(requests, "%s%s", open,
            below(requests, 4) == 0 ? ONE_OF(requests, "x", "", "nan", "((1", "(") : "0");
        break;
    default:
        add(requests, "%s%d", open, small);
    }
}

/* ---- making commands ---- */

static void make_zadd(struct twin_requests *requests) {
    add(requests, "ZADD");
    const struct twin_layout *layout = add_key(requests);
    bool is_increment = below(requests, 8) == 0;
    for (uint64_t options = below(requests, 3); options > 0 && below(requests, 2) == 0; options--) {
        add(requests, "%s", ONE_OF(requests, "NX", "XX", "GT", "LT", "CH", "CH", "gt", "lt"));
    }
    if (is_increment) {
        add(requests, "INCR");
    }
    uint64_t pairs = is_increment ? 1 : 1 + (below(requests, 3) == 0 ? below(requests, 28) : 0);
    for (; pairs > 0; pairs--) {
        add_score(requests, layout);
        add_member(requests);
    }
    if (below(requests, 200) == 0) {
        add_member(requests);
    }
}

static void make_zincrby(struct twin_requests *requests) {
    add(requests, "ZINCRBY");
    const struct twin_layout *layout = add_key(requests);
    add_score(requests, layout);
    add_member(requests);
}

static void make_members(struct twin_requests *requests) {
    bool is_one = below(requests, 2) == 0;
    add(requests, "%s", is_one ? "ZSCORE" : ONE_OF(requests, "ZREM", "ZMSCORE"));
    add_key(requests);
    for (uint64_t count = is_one ? 1 : 1 + below(requests, 5); count > 0; count--) {
        add_member(requests);
    }
}

static void make_zrank(struct twin_requests *requests) {
    add(requests, "%s", ONE_OF(requests, "ZRANK", "ZREVRANK", "zrevrank"));
    add_key(requests);
    add_member(requests);
    if (below(requests, 3) == 0) {
        add(requests, "%s", below(requests, 20) == 0 ? "WITHSCORES" : "WITHSCORE");
    }
}

static void add_limit(struct twin_requests *requests) {
    add(requests, "LIMIT");
    add_integer(requests);
    add_integer(requests);
}

static void make_zrange(struct twin_requests *requests) {
    add(requests, "ZRANGE");
    const struct twin_layout *layout = add_key(requests);
    bool by_score = below(requests, 2) == 0;
    for (int i = 0; i < 2; i++) {
        by_score ? add_bound(requests, layout) : add_integer(requests);
    }
    if (below(requests, 2) == 0) {
        add(requests, "REV");
    }
    if (by_score) {
        add(requests, "BYSCORE");
    }
    if (below(requests, by_score ? 2 : 50) == 0) {
        add_limit(requests);
    }
    if (below(requests, 2) == 0) {
        add(requests, "WITHSCORES");
    }
    if (below(requests, 100) == 0) {
        add(requests, "%s", ONE_OF(requests, "LIMIT", "WITHSCORE", "x"));
    }
}

static void make_old_range(struct twin_requests *requests) {
    bool by_score = below(requests, 3) > 0;
    add(requests, "%s",
        by_score ? ONE_OF(requests, "ZRANGEBYSCORE", "ZREVRANGEBYSCORE") : "ZREVRANGE");
    const struct twin_layout *layout = add_key(requests);
    for (int i = 0; i < 2; i++) {
        by_score ? add_bound(requests, layout) : add_integer(requests);
    }
    if (by_score && below(requests, 2) == 0) {
        add_limit(requests);
    }
    if (below(requests, 2) == 0) {
        add(requests, "WITHSCORES");
    }
}

static void make_count(struct twin_requests *requests) {
    bool is_card = below(requests, 3) == 0;
    add(requests, "%s", is_card ? "ZCARD" : "ZCOUNT");
    const struct twin_layout *layout = add_key(requests);
    if (!is_card) {
        add_bound(requests, layout);
        add_bound(requests, layout);
    }
}

static void make_remove_range(struct twin_requests *requests) {
    bool by_score = below(requests, 2) == 0;
    add(requests, "%s", by_score ? "ZREMRANGEBYSCORE" : "ZREMRANGEBYRANK");
    const struct twin_layout *layout = add_key(requests);
    if (by_score && below(requests, 8) > 0) {
        /* Narrow, so that boards live. */
        add(requests, "(%d", (int)below(requests, 5));
        add_bound(requests, layout);
    } else if (by_score) {
        add_bound(requests, layout);
        add_bound(requests, layout);
    } else {
        int start = (int)below(requests, 100) - 20;
        add(requests, "%d", start);
        add(requests, "%d", start + (int)below(requests, 6));
    }
}

static void make_pop(struct twin_requests *requests) {
    if (below(requests, 3) == 0) {
        uint64_t keys = 1 + below(requests, 3);
        add(requests, "ZMPOP");
        add(requests, "%d", below(requests, 30) == 0 ? (int)below(requests, 9) - 2 : (int)keys);
        for (; keys > 0; keys--) {
            add_key(requests);
        }
        add(requests, "%s", ONE_OF(requests, "MIN", "MAX", "max"));
        if (below(requests, 2) == 0) {
            add(requests, "COUNT");
            add(requests, "%d", (int)below(requests, 12) - 1);
        }
        return;
    }
    add(requests, "%s", ONE_OF(requests, "ZPOPMIN", "ZPOPMAX"));
    add_key(requests);
    if (below(requests, 2) == 0) {
        add(requests, "%d", (int)below(requests, 12) - 1);
    }
}

/* Many members at once on a small board, with few different scores. */
static void make_refill(struct twin_requests *requests) {
    const struct twin_layout *layout = &twin_requests_layouts[below(requests, LAYOUTS)];
    add(requests, "ZADD");
    add(requests, "%s%llu", layout->prefix, 1 + (unsigned long long)below(requests, 3));
    for (uint64_t pairs = 5 + below(requests, 20); pairs > 0; pairs--) {
        add(requests, "%d", (int)below(requests, 6));
        add_member(requests);
    }
}

/* A key of this layout, nearly always a small one: the twin compares every member with every other.
 */
static void add_source_key(struct twin_requests *requests, const struct twin_layout *layout) {
    uint64_t number = below(requests, 150) == 0 ? 0 : 1 + below(requests, 3);
    add(requests, "%s%llu", layout->prefix, (unsigned long long)number);
}

static void add_weights(struct twin_requests *requests, uint64_t count) {
    add(requests, "WEIGHTS");
    for (; count > 0; count--) {
        if (below(requests, 60) == 0) {
            add(requests, "%s", ONE_OF(requests, "x", "", "nan", "inf", "-inf", "1e-30", "(1"));
        } else {
            add(requests, "%s",
                ONE_OF(requests, "1", "1", "2", "0", "-1", "3.0", "1e2", "0.5", "10e-1", "1000.25",
                       "-0.001"));
        }
    }
}

/* Half of the time all of them have one layout: then results mostly fit, and tie. */
static void make_combination(struct twin_requests *requests) {
    const char *name = ONE_OF(requests, "ZUNIONSTORE", "ZUNIONSTORE", "ZINTERSTORE", "ZDIFFSTORE",
                              "ZUNION", "zinter", "ZDIFF", "ZINTERCARD", "zunionstore");
    bool has_values = strstr(name, "DIFF") == NULL && strstr(name, "CARD") == NULL;
    bool is_stored = strlen(name) >= strlen("ZDIFFSTORE") && strstr(name, "CARD") == NULL;
    bool is_of_one = below(requests, 2) == 0;
    const struct twin_layout *layout = &twin_requests_layouts[below(requests, LAYOUTS)];
    uint64_t count = 1 + below(requests, 3);
    add(requests, "%s", name);
    if (is_stored) {
        add_source_key(requests,
                       is_of_one ? layout : &twin_requests_layouts[below(requests, LAYOUTS)]);
    }
    add(requests, "%d", below(requests, 60) == 0 ? (int)below(requests, 9) - 2 : (int)count);
    for (uint64_t i = 0; i < count; i++) {
        add_source_key(requests,
                       is_of_one ? layout : &twin_requests_layouts[below(requests, LAYOUTS)]);
    }
    if (has_values && below(requests, 3) == 0) {
        add_weights(requests, count);
    }
    if (has_values && below(requests, 2) == 0) {
        add(requests, "AGGREGATE");
        add(requests, "%s", ONE_OF(requests, "SUM", "MIN", "MAX", "min", "max", "COUNT"));
    }
    bool is_counted = strcmp(name, "ZINTERCARD") == 0;
    if (!is_stored && below(requests, is_counted ? 50 : 2) == 0) {
        add(requests, "WITHSCORES");
    }
    if (is_counted && below(requests, 2) == 0) {
        add(requests, "LIMIT");
        add(requests, "%d", (int)below(requests, 12) - 1);
    }
    if (below(requests, 100) == 0) {
        add(requests, "%s", ONE_OF(requests, "LIMIT", "WEIGHTS", "AGGREGATE", "x"));
    }
}

static void make_rangestore(struct twin_requests *requests) {
    const struct twin_layout *layout = &twin_requests_layouts[below(requests, LAYOUTS)];
    bool is_same = below(requests, 2) == 0;
    bool by_score = below(requests, 2) == 0;
    add(requests, "ZRANGESTORE");
    add_source_key(requests, is_same ? layout : &twin_requests_layouts[below(requests, LAYOUTS)]);
    add_source_key(requests, layout);
    for (int i = 0; i < 2; i++) {
        by_score ? add_bound(requests, layout) : add_integer(requests);
    }
    if (below(requests, 2) == 0) {
        add(requests, "REV");
    }
    if (by_score) {
        add(requests, "BYSCORE");
    }
    if (below(requests, by_score ? 2 : 30) == 0) {
        add_limit(requests);
    }
    if (below(requests, 50) == 0) {
        add(requests, "%s", ONE_OF(requests, "WITHSCORES", "LIMIT", "x"));
    }
}

static void make_keys(struct twin_requests *requests) {
    add(requests, "%s", ONE_OF(requests, "DEL", "UNLINK", "EXISTS", "TOUCH", "EXISTS"));
    for (uint64_t count = 1 + below(requests, 3); count > 0; count--) {
        add_mortal_key(requests);
    }
}

static void make_key_reading(struct twin_requests *requests) {
    add(requests, "%s",
        ONE_OF(requests, "TYPE", "TTL", "PTTL", "EXPIRETIME", "PEXPIRETIME", "PERSIST"));
    add_key(requests);
}

static void make_rename(struct twin_requests *requests) {
    bool is_copy = below(requests, 2) == 0;
    add(requests, "%s", is_copy ? "COPY" : ONE_OF(requests, "RENAME", "RENAMENX"));
    is_copy ? (void)add_key(requests) : add_mortal_key(requests);
    add_mortal_key(requests);
    if (is_copy && below(requests, 2) == 0) {
        add(requests, "DB");
        add(requests, "%d",
            below(requests, 20) == 0 ? (int)below(requests, 40) - 20
                                     : (int)below(requests, TWIN_REQUESTS_DATABASES));
    }
    if (is_copy && below(requests, 2) == 0) {
        add(requests, "%s", below(requests, 30) == 0 ? "x" : "REPLACE");
    }
}

static void make_expire(struct twin_requests *requests) {
    bool is_absolute = below(requests, 3) == 0;
    bool is_in_ms = below(requests, 2) == 0;
    add(requests, "%sEXPIRE%s", is_in_ms ? "P" : "", is_absolute ? "AT" : "");
    add_mortal_key(requests);
    /* Few different times, so that GT and LT meet equal ones. */
    int64_t now_s = requests->now_us / 60000000 * 60;
    int64_t seconds = (is_absolute ? now_s : 0) + (int64_t)below(requests, 20) * 60 - 60;
    if (below(requests, 12) == 0) {
        add_integer(requests);
    } else {
        add(requests, "%lld", (long long)(seconds * (is_in_ms ? 1000 : 1)));
    }
    for (uint64_t options = below(requests, 3); options > 0; options--) {
        add(requests, "%s", ONE_OF(requests, "NX", "XX", "GT", "LT", "gt"));
    }
}

static void make_dbsize(struct twin_requests *requests) {
    add(requests, "DBSIZE");
}

static void make_flush(struct twin_requests *requests) {
    add(requests, "%s", ONE_OF(requests, "FLUSHDB", "FLUSHDB", "FLUSHALL"));
}

/* Flushes come apart, once in some ten thousand commands. */
static const struct {
    unsigned weight;
    void (*make)(struct twin_requests *requests);
} makers[] = {
    {3600, make_zadd},  {900, make_zincrby},     {900, make_members},     {800, make_zrank},
    {600, make_zrange}, {500, make_old_range},   {500, make_count},       {150, make_remove_range},
    {350, make_pop},    {450, make_refill},      {500, make_combination}, {150, make_rangestore},
    {60, make_keys},    {400, make_key_reading}, {200, make_rename},      {250, make_expire},
    {100, make_dbsize},
};

void twin_requests_make(struct twin_requests *requests, int64_t now_us) {
    requests->now_us = now_us;
    unsigned total = 0;
    for (size_t i = 0; i < sizeof makers / sizeof makers[0]; i++) {
        total += makers[i].weight;
    }
    unsigned drawn = (unsigned)below(requests, total);
    size_t i = 0;
    for (; drawn >= makers[i].weight; i++) {
        drawn -= makers[i].weight;
    }
    requests->arg_count = 0;
    requests->text_size = 0;
    if (below(requests, 60000) == 0) {
        make_flush(requests);
    } else {
        makers[i].make(requests);
    }
}
