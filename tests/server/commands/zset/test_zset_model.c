/* Random commands to the server and to a naive twin, on a board of every layout: ties, clocks that
 * stand still or step back, scores where less is better, several fields. The twin keeps an array
 * and sorts it by the words of the specification: lead field, other fields, time, arrival. */
#include "tests/server/zset_fixture.h"
#include "tests/support/random.h"

enum { MEMBERS = 24, TEXT_MAX = 4096 };

struct twin_member {
    bool is_there;
    int64_t score; /* in units of the scale */
    int64_t flag, level;
    int64_t time; /* in units of the layout */
    uint64_t arrival;
};

struct twin {
    struct harness *harness;
    struct random *random;
    const char *key;
    const struct layout *layout;
    int64_t lowest, highest; /* scores that are tried; those outside the field's range are errors */
    struct twin_member members[MEMBERS];
    uint64_t arrivals;
    char expected[TEXT_MAX];
    size_t size;
};

/* ---- the twin's order ---- */

static const struct twin *sorting; /* qsort has no context */

/* Negative: a is better. */
static int compare(const void *left, const void *right) {
    const struct twin_member *a = &sorting->members[*(const int *)left];
    const struct twin_member *b = &sorting->members[*(const int *)right];
    if (a->score != b->score) {
        return (a->score > b->score) == sorting->layout->fields[0].is_ascending ? 1 : -1;
    }
    if (a->flag != b->flag) {
        return a->flag > b->flag ? -1 : 1;
    }
    if (a->level != b->level) {
        return a->level > b->level ? -1 : 1;
    }
    bool is_earlier = a->time != b->time ? a->time < b->time : a->arrival < b->arrival;
    return is_earlier == sorting->layout->time.is_latest ? 1 : -1;
}

/* The members in Redis's order, lowest score first; how many there are. */
static int list(const struct twin *twin, bool is_reverse, int *ids) {
    int count = 0;
    for (int id = 0; id < MEMBERS; id++) {
        if (twin->members[id].is_there) {
            ids[count++] = id;
        }
    }
    sorting = twin;
    qsort(ids, (size_t)count, sizeof(ids[0]), compare);
    bool is_best_first = is_reverse != twin->layout->fields[0].is_ascending;
    for (int i = 0; !is_best_first && i < count / 2; i++) {
        int swapped = ids[i];
        ids[i] = ids[count - 1 - i];
        ids[count - 1 - i] = swapped;
    }
    return count;
}

/* ---- the twin's answers ---- */

__attribute__((format(printf, 2, 3))) static void put(struct twin *twin, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(twin->expected + twin->size, TEXT_MAX - twin->size, format, arguments);
    va_end(arguments);
    assert_in_range(size, 0, TEXT_MAX - 1 - twin->size);
    twin->size += (size_t)size;
}

static bool is_resp3(const struct twin *twin) {
    return twin->harness->server.session_first->protocol == 3;
}

static void put_score(struct twin *twin, int64_t score) {
    char text[64];
    if (twin->layout->fields[0].scale == 2) {
        snprintf(text, sizeof(text), "%s%lld.%02lld", score < 0 ? "-" : "", llabs(score) / 100,
                 llabs(score) % 100);
        for (size_t end = strlen(text); text[end - 1] == '0' || text[end - 1] == '.'; end--) {
            bool is_point = text[end - 1] == '.';
            text[end - 1] = '\0';
            if (is_point) {
                break;
            }
        }
    } else {
        snprintf(text, sizeof(text), "%lld", (long long)score);
    }
    put(twin, "%s%s", is_resp3(twin) ? "," : "", text);
}

static void put_slice(struct twin *twin, const int *ids, int count, bool with_scores,
                      bool is_paired) {
    put(twin, "[");
    for (int i = 0; i < count; i++) {
        put(twin, "%s%sm%d", i > 0 ? " " : "", is_paired ? "[" : "", ids[i]);
        if (with_scores) {
            put(twin, " ");
            put_score(twin, twin->members[ids[i]].score);
        }
        put(twin, is_paired ? "]" : "");
    }
    put(twin, "]");
}

static void check(struct twin *twin, const char *line) {
    const char *answered = zset_run(twin->harness, "%s", line);
    if (strcmp(answered, twin->expected) != 0) {
        print_error("%s\n  expected %s\n  answered %s\n", line, twin->expected, answered);
        fail();
    }
}

/* ---- what the twin does ---- */

static int64_t twin_time(const struct twin *twin) {
    const struct layout_time *time = &twin->layout->time;
    int64_t now_us = harness_now_us(twin->harness);
    return time->bits == 0 ? 0 : (now_us - time->start_us) / time->unit_us;
}

static void arrive(struct twin *twin, struct twin_member *member) {
    if (!member->is_there) {
        *member = (struct twin_member){.is_there = true};
    }
    member->time = twin_time(twin);
    member->arrival = ++twin->arrivals;
}

static int64_t pick_score(struct twin *twin) {
    uint64_t range = (uint64_t)(twin->highest - twin->lowest) + 1;
    return twin->lowest + (int64_t)random_below(twin->random, range);
}

static bool flip(struct twin *twin, uint64_t one_in) {
    return random_below(twin->random, one_in) == 0;
}

static int print_score(const struct twin *twin, char *out, size_t size, int64_t score) {
    return twin->layout->fields[0].scale == 2 ? snprintf(out, size, "%lldE-2", (long long)score)
                                              : snprintf(out, size, "%lld", (long long)score);
}

struct zadd_options {
    bool nx, xx, gt, lt, ch;
};

/* 1: added, 2: changed, 0: neither. */
static int put_pair(struct twin *twin, const struct zadd_options *options, int id, int64_t score) {
    struct twin_member *member = &twin->members[id];
    if (member->is_there ? options->nx : options->xx) {
        return 0;
    }
    if (!member->is_there) {
        arrive(twin, member);
        member->score = score;
        return 1;
    }
    if (score == member->score || (options->gt && score < member->score) ||
        (options->lt && score > member->score)) {
        return 0;
    }
    arrive(twin, member);
    member->score = score;
    return 2;
}

static void step_zadd(struct twin *twin) {
    struct zadd_options options = {.ch = flip(twin, 2)};
    bool *exclusive[] = {&options.nx, &options.gt, &options.lt};
    *exclusive[random_below(twin->random, 3)] = flip(twin, 3);
    options.xx = !options.nx && flip(twin, 6);
    char line[1024];
    int size = snprintf(line, sizeof(line), "ZADD %s%s%s%s%s%s", twin->key, options.nx ? " NX" : "",
                        options.xx ? " XX" : "", options.gt ? " GT" : "", options.lt ? " LT" : "",
                        options.ch ? " CH" : "");
    int counts[3] = {0};
    for (int pairs = 1 + (int)random_below(twin->random, 4); pairs > 0; pairs--) {
        int id = (int)random_below(twin->random, MEMBERS);
        int64_t score = pick_score(twin);
        line[size++] = ' ';
        size += print_score(twin, line + size, sizeof(line) - (size_t)size, score);
        size += snprintf(line + size, sizeof(line) - (size_t)size, " m%d", id);
        counts[put_pair(twin, &options, id, score)]++;
    }
    put(twin, ":%d", counts[1] + (options.ch ? counts[2] : 0));
    check(twin, line);
}

static void step_zincrby(struct twin *twin) {
    int id = (int)random_below(twin->random, MEMBERS);
    struct twin_member *member = &twin->members[id];
    int64_t delta = (int64_t)random_below(twin->random, 5) - 2;
    int64_t score = (member->is_there ? member->score : 0) + delta;
    char number[32];
    char line[128];
    print_score(twin, number, sizeof(number), delta);
    snprintf(line, sizeof(line), "ZINCRBY %s %s m%d", twin->key, number, id);
    if (score < 0 && !twin->layout->fields[0].is_signed) {
        assert_memory_equal(zset_run(twin->harness, "%s", line), "-ERR value ", 11);
        return;
    }
    if (!member->is_there || score != member->score) {
        arrive(twin, member);
        member->score = score;
    }
    put_score(twin, score);
    check(twin, line);
}

static void step_zrem(struct twin *twin) {
    int removed = 0;
    char line[128];
    int size = snprintf(line, sizeof(line), "ZREM %s", twin->key);
    for (int left = 1 + (int)random_below(twin->random, 2); left > 0; left--) {
        int id = (int)random_below(twin->random, MEMBERS);
        size += snprintf(line + size, sizeof(line) - (size_t)size, " m%d", id);
        removed += twin->members[id].is_there;
        twin->members[id].is_there = false;
    }
    put(twin, ":%d", removed);
    check(twin, line);
}

static void step_rank(struct twin *twin) {
    bool is_reverse = flip(twin, 2);
    bool with_score = flip(twin, 2);
    int wanted = (int)random_below(twin->random, MEMBERS);
    int ids[MEMBERS];
    int count = list(twin, is_reverse, ids);
    int rank = 0;
    while (rank < count && ids[rank] != wanted) {
        rank++;
    }
    char line[128];
    snprintf(line, sizeof(line), "Z%sRANK %s m%d%s", is_reverse ? "REV" : "", twin->key, wanted,
             with_score ? " WITHSCORE" : "");
    if (rank == count) {
        put(twin, is_resp3(twin) ? "_" : with_score ? "nil*" : "nil");
    } else {
        put(twin, with_score ? "[:%d " : ":%d", rank);
        if (with_score) {
            put_score(twin, twin->members[wanted].score);
            put(twin, "]");
        }
    }
    check(twin, line);
}

/* Two limits, random and with random kinds of ends; those of ids that lie inside stay. */
struct limits {
    char min[64], max[64];
    int64_t low, high; /* inclusive */
};

static void pick_limits(struct twin *twin, struct limits *limits) {
    int64_t low = pick_score(twin) - 1;
    int64_t high = pick_score(twin) + 1;
    char number[32];
    bool is_out = flip(twin, 3);
    print_score(twin, number, sizeof(number), low);
    snprintf(limits->min, sizeof(limits->min), "%s%s", is_out ? "(" : "", number);
    limits->low = low + is_out;
    is_out = flip(twin, 3);
    print_score(twin, number, sizeof(number), high);
    snprintf(limits->max, sizeof(limits->max), "%s%s", is_out ? "(" : "", number);
    limits->high = high - is_out;
    if (flip(twin, 5)) {
        strcpy(limits->min, "-inf");
        limits->low = INT64_MIN;
    }
    if (flip(twin, 5)) {
        strcpy(limits->max, "+inf");
        limits->high = INT64_MAX;
    }
}

static int keep_inside(const struct twin *twin, const struct limits *limits, int *ids, int count) {
    int kept = 0;
    for (int i = 0; i < count; i++) {
        int64_t score = twin->members[ids[i]].score;
        if (score >= limits->low && score <= limits->high) {
            ids[kept++] = ids[i];
        }
    }
    return kept;
}

/* A slice by indexes as Redis cuts it. */
static int cut(int *start, int stop, int count) {
    *start = *start < 0 ? *start + count : *start;
    stop = stop < 0 ? stop + count : stop;
    *start = *start < 0 ? 0 : *start;
    stop = stop >= count ? count - 1 : stop;
    return *start > stop ? 0 : stop - *start + 1;
}

static int pick_index(struct twin *twin) {
    return (int)random_below(twin->random, 2 * MEMBERS + 6) - MEMBERS - 3;
}

static void step_range(struct twin *twin) {
    bool is_reverse = flip(twin, 2);
    bool with_scores = flip(twin, 2);
    bool is_old_name = flip(twin, 2);
    int ids[MEMBERS];
    int count = list(twin, is_reverse, ids);
    int start = pick_index(twin);
    int stop = pick_index(twin);
    char line[256];
    snprintf(line, sizeof(line), "Z%sRANGE %s %d %d%s%s", is_reverse && is_old_name ? "REV" : "",
             twin->key, start, stop, is_reverse && !is_old_name ? " REV" : "",
             with_scores ? " WITHSCORES" : "");
    count = cut(&start, stop, count);
    put_slice(twin, ids + (count > 0 ? start : 0), count, with_scores,
              with_scores && is_resp3(twin));
    check(twin, line);
}

static void step_range_by_score(struct twin *twin) {
    bool is_reverse = flip(twin, 2);
    bool with_scores = flip(twin, 2);
    bool has_limit = flip(twin, 2);
    struct limits limits;
    pick_limits(twin, &limits);
    int offset = has_limit ? (int)random_below(twin->random, 8) - 1 : 0;
    int limit = has_limit ? (int)random_below(twin->random, 8) - 2 : -1;
    int ids[MEMBERS];
    int count = keep_inside(twin, &limits, ids, list(twin, is_reverse, ids));
    char line[512];
    char tail[64] = "";
    if (has_limit) {
        snprintf(tail, sizeof(tail), " LIMIT %d %d", offset, limit);
    }
    bool is_old_name = flip(twin, 2);
    snprintf(line, sizeof(line), "Z%sRANGE%s %s %s %s%s%s%s%s",
             is_old_name && is_reverse ? "REV" : "", is_old_name ? "BYSCORE" : "", twin->key,
             is_reverse ? limits.max : limits.min, is_reverse ? limits.min : limits.max,
             is_old_name ? "" : " BYSCORE", is_reverse && !is_old_name ? " REV" : "",
             with_scores ? " WITHSCORES" : "", tail);
    count = offset < 0 || offset >= count ? 0 : count - offset;
    count = limit >= 0 && limit < count ? limit : count;
    put_slice(twin, ids + (count > 0 ? offset : 0), count, with_scores,
              with_scores && is_resp3(twin));
    check(twin, line);
}

static void step_zcount(struct twin *twin) {
    struct limits limits;
    pick_limits(twin, &limits);
    int ids[MEMBERS];
    put(twin, ":%d", keep_inside(twin, &limits, ids, list(twin, false, ids)));
    char line[256];
    snprintf(line, sizeof(line), "ZCOUNT %s %s %s", twin->key, limits.min, limits.max);
    check(twin, line);
}

static void forget(struct twin *twin, const int *ids, int count) {
    for (int i = 0; i < count; i++) {
        twin->members[ids[i]].is_there = false;
    }
}

static void step_remove_range(struct twin *twin) {
    int ids[MEMBERS];
    int count = list(twin, false, ids);
    char line[256];
    int start = 0;
    if (flip(twin, 2)) {
        struct limits limits;
        pick_limits(twin, &limits);
        count = keep_inside(twin, &limits, ids, count);
        snprintf(line, sizeof(line), "ZREMRANGEBYSCORE %s %s %s", twin->key, limits.min,
                 limits.max);
    } else {
        start = pick_index(twin);
        int stop = pick_index(twin);
        snprintf(line, sizeof(line), "ZREMRANGEBYRANK %s %d %d", twin->key, start, stop);
        count = cut(&start, stop, count);
    }
    forget(twin, ids + (count > 0 ? start : 0), count);
    put(twin, ":%d", count);
    check(twin, line);
}

static void step_pop(struct twin *twin) {
    bool is_reverse = flip(twin, 2);
    int wanted = (int)random_below(twin->random, 5);
    int ids[MEMBERS];
    int count = list(twin, is_reverse, ids);
    count = wanted < count ? wanted : count;
    char line[256];
    if (flip(twin, 2)) {
        snprintf(line, sizeof(line), "ZPOP%s %s %d", is_reverse ? "MAX" : "MIN", twin->key, wanted);
        put_slice(twin, ids, count, true, is_resp3(twin));
    } else {
        wanted = wanted == 0 ? 1 : wanted;
        count = list(twin, is_reverse, ids);
        count = wanted < count ? wanted : count;
        snprintf(line, sizeof(line), "ZMPOP 2 none %s %s COUNT %d", twin->key,
                 is_reverse ? "MAX" : "MIN", wanted);
        if (count == 0) {
            put(twin, is_resp3(twin) ? "_" : "nil*");
        } else {
            put(twin, "[%s ", twin->key);
            put_slice(twin, ids, count, true, true);
            put(twin, "]");
        }
    }
    forget(twin, ids, count);
    check(twin, line);
}

static void step_read(struct twin *twin) {
    int id = (int)random_below(twin->random, MEMBERS);
    char line[128];
    int ids[MEMBERS];
    if (flip(twin, 3)) {
        snprintf(line, sizeof(line), "ZCARD %s", twin->key);
        put(twin, ":%d", list(twin, false, ids));
    } else {
        snprintf(line, sizeof(line), "ZSCORE %s m%d", twin->key, id);
        if (twin->members[id].is_there) {
            put_score(twin, twin->members[id].score);
        } else {
            put(twin, is_resp3(twin) ? "_" : "nil");
        }
    }
    check(twin, line);
}

/* Other fields are changed directly; the member then arrives again, with its time unchanged. */
static void step_other_field(struct twin *twin) {
    int id = (int)random_below(twin->random, MEMBERS);
    struct twin_member *member = &twin->members[id];
    if (twin->layout->field_count != 3 || !member->is_there) {
        return;
    }
    char name[8];
    snprintf(name, sizeof(name), "m%d", id);
    bool is_flag = flip(twin, 2);
    uint64_t ordinal =
        is_flag ? random_below(twin->random, 2) : 1022 + random_below(twin->random, 4);
    *(is_flag ? &member->flag : &member->level) = (int64_t)ordinal - (is_flag ? 0 : 1024);
    zset_set_field(twin->harness, twin->key, name, is_flag ? 1 : 2, ordinal);
    member->arrival = ++twin->arrivals;
}

static void step_clock(struct twin *twin) {
    static const int64_t steps_us[] = {1, 1000, 400000, 1000000, 61000000, -5000000, -1};
    twin->harness->wall_us += steps_us[random_below(twin->random, 7)];
}

static void run_step(struct twin *twin) {
    static void (*const steps[])(struct twin *) = {
        step_zadd,    step_zadd,           step_zadd,           step_zadd,   step_zincrby,
        step_zincrby, step_zrem,           step_rank,           step_rank,   step_range,
        step_range,   step_range_by_score, step_range_by_score, step_zcount, step_remove_range,
        step_pop,     step_read,           step_other_field,    step_clock,  step_clock,
    };
    twin->size = 0;
    twin->expected[0] = '\0';
    twin->harness->server.session_first->protocol = flip(twin, 2) ? 3 : 2;
    steps[random_below(twin->random, sizeof(steps) / sizeof(steps[0]))](twin);
}

/* Compare the whole board; an empty one must be removed. */
static void compare_whole(struct twin *twin) {
    int ids[MEMBERS];
    int count = list(twin, true, ids);
    twin->size = 0;
    put_slice(twin, ids, count, false, false);
    char line[64];
    snprintf(line, sizeof(line), "ZREVRANGE %s 0 -1", twin->key);
    check(twin, line);
    free(zset_dump(twin->harness, twin->key));
    assert_true((zset_board(twin->harness, twin->key) != NULL) == (count > 0));
}

static void run_layout(struct harness *h, struct random *random, const char *prefix, int steps) {
    char key[32];
    snprintf(key, sizeof(key), "%sk", prefix);
    struct twin twin = {.harness = h, .random = random, .key = key};
    twin.layout = &settings_rules_for(&h->server.settings, bytes_from_text(key))->layout;
    twin.lowest = twin.layout->fields[0].is_signed ? -4 : 0;
    twin.highest = 6;
    for (int step = 0; step < steps; step++) {
        run_step(&twin);
        if (step % 16 == 0) {
            compare_whole(&twin);
        }
    }
}

ZSET_TEST(the_server_answers_as_the_naive_twin) {
    struct harness *h = *state;
    struct random random = random_begin("zset model");
    int steps = getenv("LEADERBOARD_TEST_SHORT") != NULL ? 4000 : 20000;
    for (int i = 0; i < ZSET_LAYOUTS; i++) {
        run_layout(h, &random, zset_layout_prefixes[i], steps);
    }
}

TEST_MAIN(NULL, NULL)
