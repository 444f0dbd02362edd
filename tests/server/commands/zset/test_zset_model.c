/* Random commands to the server and to a naive twin, on a board of every layout: ties, clocks that
 * stand still or step back, scores where less is better, several fields. The twin keeps an array
 * and sorts it by the words of the specification: lead field, other fields, time, arrival. */
#include "tests/server/lb_twin.h"

enum { MEMBERS = 24 }; /* of the twin's, so that there are ties */

/* The members in Redis's order, lowest score first; how many there are. */
static int list(const struct lb_twin *twin, bool is_reverse, int *ids) {
    int count = lb_list(twin, ids);
    bool is_best_first = is_reverse != twin->layout->fields[0].is_ascending;
    for (int i = 0; !is_best_first && i < count / 2; i++) {
        int swapped = ids[i];
        ids[i] = ids[count - 1 - i];
        ids[count - 1 - i] = swapped;
    }
    return count;
}

/* ---- the twin's answers ---- */

static void put_score(struct lb_twin *twin, int64_t score) {
    char text[80];
    lb_print_decimal(score, twin->layout->fields[0].scale, text);
    lb_put(twin, "%s%s", lb_is_resp3(twin) ? "," : "", text);
}

static void put_slice(struct lb_twin *twin, const int *ids, int count, bool with_scores,
                      bool is_paired) {
    lb_put(twin, "[");
    for (int i = 0; i < count; i++) {
        lb_put(twin, "%s%sm%d", i > 0 ? " " : "", is_paired ? "[" : "", ids[i]);
        if (with_scores) {
            lb_put(twin, " ");
            put_score(twin, twin->members[ids[i]].values[0]);
        }
        lb_put(twin, is_paired ? "]" : "");
    }
    lb_put(twin, "]");
}

/* ---- what the twin does ---- */

static void arrive(struct lb_twin *twin, struct lb_member *member) {
    if (!member->is_there) {
        *member = (struct lb_member){.is_there = true};
    }
    assert_true(lb_unit_of(twin, lb_now_us(twin), &member->unit));
    member->arrival = ++twin->arrivals;
}

static int64_t pick_score(struct lb_twin *twin) {
    int64_t lowest = twin->layout->fields[0].is_signed ? -4 : 0;
    return lowest + (int64_t)random_below(&twin->random, (uint64_t)(7 - lowest));
}

static int print_score(const struct lb_twin *twin, char *out, size_t size, int64_t score) {
    return snprintf(out, size, "%lldE-%u", (long long)score, twin->layout->fields[0].scale);
}

struct zadd_options {
    bool nx, xx, gt, lt, ch;
};

/* 1: added, 2: changed, 0: neither. */
static int put_pair(struct lb_twin *twin, const struct zadd_options *options, int id,
                    int64_t score) {
    struct lb_member *member = &twin->members[id];
    if (member->is_there ? options->nx : options->xx) {
        return 0;
    }
    if (!member->is_there) {
        arrive(twin, member);
        member->values[0] = score;
        return 1;
    }
    if (score == member->values[0] || (options->gt && score < member->values[0]) ||
        (options->lt && score > member->values[0])) {
        return 0;
    }
    arrive(twin, member);
    member->values[0] = score;
    return 2;
}

static void step_zadd(struct lb_twin *twin) {
    struct zadd_options options = {.ch = lb_flip(twin, 2)};
    bool *exclusive[] = {&options.nx, &options.gt, &options.lt};
    *exclusive[random_below(&twin->random, 3)] = lb_flip(twin, 3);
    options.xx = !options.nx && lb_flip(twin, 6);
    char line[1024];
    int size = snprintf(line, sizeof(line), "ZADD %s%s%s%s%s%s", twin->key, options.nx ? " NX" : "",
                        options.xx ? " XX" : "", options.gt ? " GT" : "", options.lt ? " LT" : "",
                        options.ch ? " CH" : "");
    int counts[3] = {0};
    for (int pairs = 1 + (int)random_below(&twin->random, 4); pairs > 0; pairs--) {
        int id = (int)random_below(&twin->random, MEMBERS);
        int64_t score = pick_score(twin);
        line[size++] = ' ';
        size += print_score(twin, line + size, sizeof(line) - (size_t)size, score);
        size += snprintf(line + size, sizeof(line) - (size_t)size, " m%d", id);
        counts[put_pair(twin, &options, id, score)]++;
    }
    lb_put(twin, ":%d", counts[1] + (options.ch ? counts[2] : 0));
    lb_check(twin, line);
}

static void step_zincrby(struct lb_twin *twin) {
    int id = (int)random_below(&twin->random, MEMBERS);
    struct lb_member *member = &twin->members[id];
    int64_t delta = (int64_t)random_below(&twin->random, 5) - 2;
    int64_t score = (member->is_there ? member->values[0] : 0) + delta;
    char number[32];
    char line[128];
    print_score(twin, number, sizeof(number), delta);
    snprintf(line, sizeof(line), "ZINCRBY %s %s m%d", twin->key, number, id);
    if (score < 0 && !twin->layout->fields[0].is_signed) {
        assert_memory_equal(zset_run(twin->harness, "%s", line), "-ERR value ", 11);
        return;
    }
    if (!member->is_there || score != member->values[0]) {
        arrive(twin, member);
        member->values[0] = score;
    }
    put_score(twin, score);
    lb_check(twin, line);
}

static void step_zrem(struct lb_twin *twin) {
    int removed = 0;
    char line[128];
    int size = snprintf(line, sizeof(line), "ZREM %s", twin->key);
    for (int left = 1 + (int)random_below(&twin->random, 2); left > 0; left--) {
        int id = (int)random_below(&twin->random, MEMBERS);
        size += snprintf(line + size, sizeof(line) - (size_t)size, " m%d", id);
        removed += twin->members[id].is_there;
        twin->members[id].is_there = false;
    }
    lb_put(twin, ":%d", removed);
    lb_check(twin, line);
}

static void step_rank(struct lb_twin *twin) {
    bool is_reverse = lb_flip(twin, 2);
    bool with_score = lb_flip(twin, 2);
    int wanted = (int)random_below(&twin->random, MEMBERS);
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
        lb_put(twin, lb_is_resp3(twin) ? "_" : with_score ? "nil*" : "nil");
    } else {
        lb_put(twin, with_score ? "[:%d " : ":%d", rank);
        if (with_score) {
            put_score(twin, twin->members[wanted].values[0]);
            lb_put(twin, "]");
        }
    }
    lb_check(twin, line);
}

/* Two limits, random and with random kinds of ends; those of ids that lie inside stay. */
struct limits {
    char min[64], max[64];
    int64_t low, high; /* inclusive */
};

static void pick_limits(struct lb_twin *twin, struct limits *limits) {
    int64_t low = pick_score(twin) - 1;
    int64_t high = pick_score(twin) + 1;
    char number[32];
    bool is_out = lb_flip(twin, 3);
    print_score(twin, number, sizeof(number), low);
    snprintf(limits->min, sizeof(limits->min), "%s%s", is_out ? "(" : "", number);
    limits->low = low + is_out;
    is_out = lb_flip(twin, 3);
    print_score(twin, number, sizeof(number), high);
    snprintf(limits->max, sizeof(limits->max), "%s%s", is_out ? "(" : "", number);
    limits->high = high - is_out;
    if (lb_flip(twin, 5)) {
        strcpy(limits->min, "-inf");
        limits->low = INT64_MIN;
    }
    if (lb_flip(twin, 5)) {
        strcpy(limits->max, "+inf");
        limits->high = INT64_MAX;
    }
}

static int keep_inside(const struct lb_twin *twin, const struct limits *limits, int *ids,
                       int count) {
    int kept = 0;
    for (int i = 0; i < count; i++) {
        int64_t score = twin->members[ids[i]].values[0];
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

static int pick_index(struct lb_twin *twin) {
    return (int)random_below(&twin->random, 2 * MEMBERS + 6) - MEMBERS - 3;
}

static void step_range(struct lb_twin *twin) {
    bool is_reverse = lb_flip(twin, 2);
    bool with_scores = lb_flip(twin, 2);
    bool is_old_name = lb_flip(twin, 2);
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
              with_scores && lb_is_resp3(twin));
    lb_check(twin, line);
}

static void step_range_by_score(struct lb_twin *twin) {
    bool is_reverse = lb_flip(twin, 2);
    bool with_scores = lb_flip(twin, 2);
    bool has_limit = lb_flip(twin, 2);
    struct limits limits;
    pick_limits(twin, &limits);
    int offset = has_limit ? (int)random_below(&twin->random, 8) - 1 : 0;
    int limit = has_limit ? (int)random_below(&twin->random, 8) - 2 : -1;
    int ids[MEMBERS];
    int count = keep_inside(twin, &limits, ids, list(twin, is_reverse, ids));
    char line[512];
    char tail[64] = "";
    if (has_limit) {
        snprintf(tail, sizeof(tail), " LIMIT %d %d", offset, limit);
    }
    bool is_old_name = lb_flip(twin, 2);
    snprintf(line, sizeof(line), "Z%sRANGE%s %s %s %s%s%s%s%s",
             is_old_name && is_reverse ? "REV" : "", is_old_name ? "BYSCORE" : "", twin->key,
             is_reverse ? limits.max : limits.min, is_reverse ? limits.min : limits.max,
             is_old_name ? "" : " BYSCORE", is_reverse && !is_old_name ? " REV" : "",
             with_scores ? " WITHSCORES" : "", tail);
    count = offset < 0 || offset >= count ? 0 : count - offset;
    count = limit >= 0 && limit < count ? limit : count;
    put_slice(twin, ids + (count > 0 ? offset : 0), count, with_scores,
              with_scores && lb_is_resp3(twin));
    lb_check(twin, line);
}

static void step_zcount(struct lb_twin *twin) {
    struct limits limits;
    pick_limits(twin, &limits);
    int ids[MEMBERS];
    lb_put(twin, ":%d", keep_inside(twin, &limits, ids, list(twin, false, ids)));
    char line[256];
    snprintf(line, sizeof(line), "ZCOUNT %s %s %s", twin->key, limits.min, limits.max);
    lb_check(twin, line);
}

static void forget(struct lb_twin *twin, const int *ids, int count) {
    for (int i = 0; i < count; i++) {
        twin->members[ids[i]].is_there = false;
    }
}

static void step_remove_range(struct lb_twin *twin) {
    int ids[MEMBERS];
    int count = list(twin, false, ids);
    char line[256];
    int start = 0;
    if (lb_flip(twin, 2)) {
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
    lb_put(twin, ":%d", count);
    lb_check(twin, line);
}

static void step_pop(struct lb_twin *twin) {
    bool is_reverse = lb_flip(twin, 2);
    int wanted = (int)random_below(&twin->random, 5);
    int ids[MEMBERS];
    int count = list(twin, is_reverse, ids);
    count = wanted < count ? wanted : count;
    char line[256];
    if (lb_flip(twin, 2)) {
        snprintf(line, sizeof(line), "ZPOP%s %s %d", is_reverse ? "MAX" : "MIN", twin->key, wanted);
        put_slice(twin, ids, count, true, lb_is_resp3(twin));
    } else {
        wanted = wanted == 0 ? 1 : wanted;
        count = list(twin, is_reverse, ids);
        count = wanted < count ? wanted : count;
        snprintf(line, sizeof(line), "ZMPOP 2 none %s %s COUNT %d", twin->key,
                 is_reverse ? "MAX" : "MIN", wanted);
        if (count == 0) {
            lb_put(twin, lb_is_resp3(twin) ? "_" : "nil*");
        } else {
            lb_put(twin, "[%s ", twin->key);
            put_slice(twin, ids, count, true, true);
            lb_put(twin, "]");
        }
    }
    forget(twin, ids, count);
    lb_check(twin, line);
}

static void step_read(struct lb_twin *twin) {
    int id = (int)random_below(&twin->random, MEMBERS);
    char line[128];
    int ids[MEMBERS];
    if (lb_flip(twin, 3)) {
        snprintf(line, sizeof(line), "ZCARD %s", twin->key);
        lb_put(twin, ":%d", list(twin, false, ids));
    } else {
        snprintf(line, sizeof(line), "ZSCORE %s m%d", twin->key, id);
        if (twin->members[id].is_there) {
            put_score(twin, twin->members[id].values[0]);
        } else {
            lb_put(twin, lb_is_resp3(twin) ? "_" : "nil");
        }
    }
    lb_check(twin, line);
}

/* Other fields are changed directly; the member then arrives again, with its time unchanged. */
static void step_other_field(struct lb_twin *twin) {
    int id = (int)random_below(&twin->random, MEMBERS);
    struct lb_member *member = &twin->members[id];
    if (twin->layout->field_count != 3 || !member->is_there) {
        return;
    }
    char name[8];
    snprintf(name, sizeof(name), "m%d", id);
    bool is_flag = lb_flip(twin, 2);
    uint64_t ordinal =
        is_flag ? random_below(&twin->random, 2) : 1022 + random_below(&twin->random, 4);
    *(is_flag ? &member->values[1] : &member->values[2]) = (int64_t)ordinal - (is_flag ? 0 : 1024);
    zset_set_field(twin->harness, twin->key, name, is_flag ? 1 : 2, ordinal);
    member->arrival = ++twin->arrivals;
}

static void step_clock(struct lb_twin *twin) {
    static const int64_t steps_us[] = {1, 1000, 400000, 1000000, 61000000, -5000000, -1};
    twin->harness->wall_us += steps_us[random_below(&twin->random, 7)];
}

static void run_step(struct lb_twin *twin) {
    static void (*const steps[])(struct lb_twin *) = {
        step_zadd,    step_zadd,           step_zadd,           step_zadd,   step_zincrby,
        step_zincrby, step_zrem,           step_rank,           step_rank,   step_range,
        step_range,   step_range_by_score, step_range_by_score, step_zcount, step_remove_range,
        step_pop,     step_read,           step_other_field,    step_clock,  step_clock,
    };
    lb_begin_step(twin);
    steps[random_below(&twin->random, sizeof(steps) / sizeof(steps[0]))](twin);
}

static void run_layout(struct lb_twin *twin, const char *prefix, int steps) {
    char key[32];
    snprintf(key, sizeof(key), "%sk", prefix);
    memset(twin->members, 0, sizeof(twin->members));
    twin->key = key;
    twin->layout =
        &settings_rules_for(&twin->harness->server.settings, bytes_from_text(key))->layout;
    for (int step = 0; step < steps; step++) {
        run_step(twin);
        if (step % 16 == 0) {
            lb_compare_whole(twin);
        }
    }
}

ZSET_TEST(the_server_answers_as_the_naive_twin) {
    static struct lb_twin twin;
    twin = (struct lb_twin){.harness = *state, .random = random_begin("zset model")};
    int steps = getenv("LEADERBOARD_TEST_SHORT") != NULL ? 4000 : 20000;
    for (int i = 0; i < ZSET_LAYOUTS; i++) {
        run_layout(&twin, zset_layout_prefixes[i], steps);
    }
}

TEST_MAIN(NULL, NULL)
