/* Random commands to the server and to a naive twin, on a board of every layout: ties, clocks that
 * stand still or step back, scores where less is better, several fields. */
#include "tests/support/twin_model.h"

#include "tests/server/zset_fixture.h"

enum { MEMBERS = 24 }; /* of the twin's, so that there are ties */

static int pick_member(struct twin_model *twin) {
    return (int)random_below(&twin->random, MEMBERS);
}

static int64_t pick_score(struct twin_model *twin) {
    int64_t lowest = twin->layout.fields[0].is_signed ? -4 : 0;
    return lowest + (int64_t)random_below(&twin->random, (uint64_t)(7 - lowest));
}

static int print_score(const struct twin_model *twin, char *out, size_t size, int64_t score) {
    return snprintf(out, size, "%lldE-%d", (long long)score, twin->layout.fields[0].scale);
}

static void step_zadd(struct twin_model *twin) {
    static const char *const exclusive[] = {" NX", " GT", " LT"};
    const char *condition = exclusive[random_below(&twin->random, 3)];
    bool has_condition = twin_flip(twin, 3);
    bool is_xx = !(has_condition && condition == exclusive[0]) && twin_flip(twin, 6);
    char line[1024];
    int size =
        snprintf(line, sizeof(line), "ZADD %s%s%s%s", twin->name, has_condition ? condition : "",
                 is_xx ? " XX" : "", twin_flip(twin, 2) ? " CH" : "");
    for (int pairs = 1 + (int)random_below(&twin->random, 4); pairs > 0; pairs--) {
        line[size++] = ' ';
        size += print_score(twin, line + size, sizeof(line) - (size_t)size, pick_score(twin));
        size += snprintf(line + size, sizeof(line) - (size_t)size, " m%d", pick_member(twin));
    }
    twin_model_run(twin, line);
}

static void step_zincrby(struct twin_model *twin) {
    char number[32];
    char line[128];
    print_score(twin, number, sizeof(number), (int64_t)random_below(&twin->random, 5) - 2);
    snprintf(line, sizeof(line), "ZINCRBY %s %s m%d", twin->name, number, pick_member(twin));
    twin_model_run(twin, line);
}

static void step_zrem(struct twin_model *twin) {
    char line[128];
    int size = snprintf(line, sizeof(line), "ZREM %s", twin->name);
    for (int left = 1 + (int)random_below(&twin->random, 2); left > 0; left--) {
        size += snprintf(line + size, sizeof(line) - (size_t)size, " m%d", pick_member(twin));
    }
    twin_model_run(twin, line);
}

static void step_rank(struct twin_model *twin) {
    bool is_reverse = twin_flip(twin, 2);
    bool with_score = twin_flip(twin, 2);
    char line[128];
    snprintf(line, sizeof(line), "Z%sRANK %s m%d%s", is_reverse ? "REV" : "", twin->name,
             pick_member(twin), with_score ? " WITHSCORE" : "");
    twin_model_run(twin, line);
}

/* Two limits, random and with random kinds of ends. */
struct limits {
    char min[64], max[64];
};

static void pick_limits(struct twin_model *twin, struct limits *limits) {
    char number[32];
    print_score(twin, number, sizeof(number), pick_score(twin) - 1);
    snprintf(limits->min, sizeof(limits->min), "%s%s", twin_flip(twin, 3) ? "(" : "", number);
    print_score(twin, number, sizeof(number), pick_score(twin) + 1);
    snprintf(limits->max, sizeof(limits->max), "%s%s", twin_flip(twin, 3) ? "(" : "", number);
    if (twin_flip(twin, 5)) {
        strcpy(limits->min, "-inf");
    }
    if (twin_flip(twin, 5)) {
        strcpy(limits->max, "+inf");
    }
}

static int pick_index(struct twin_model *twin) {
    return (int)random_below(&twin->random, 2 * MEMBERS + 6) - MEMBERS - 3;
}

static void step_range(struct twin_model *twin) {
    bool is_reverse = twin_flip(twin, 2);
    bool is_old_name = twin_flip(twin, 2);
    int start = pick_index(twin);
    int stop = pick_index(twin);
    char line[256];
    snprintf(line, sizeof(line), "Z%sRANGE %s %d %d%s%s", is_reverse && is_old_name ? "REV" : "",
             twin->name, start, stop, is_reverse && !is_old_name ? " REV" : "",
             twin_flip(twin, 2) ? " WITHSCORES" : "");
    twin_model_run(twin, line);
}

static void step_range_by_score(struct twin_model *twin) {
    bool is_reverse = twin_flip(twin, 2);
    bool is_old_name = twin_flip(twin, 2);
    struct limits limits;
    pick_limits(twin, &limits);
    char line[512];
    char tail[64] = "";
    if (twin_flip(twin, 2)) {
        int offset = (int)random_below(&twin->random, 8) - 1;
        int limit = (int)random_below(&twin->random, 8) - 2;
        snprintf(tail, sizeof(tail), " LIMIT %d %d", offset, limit);
    }
    snprintf(line, sizeof(line), "Z%sRANGE%s %s %s %s%s%s%s%s",
             is_old_name && is_reverse ? "REV" : "", is_old_name ? "BYSCORE" : "", twin->name,
             is_reverse ? limits.max : limits.min, is_reverse ? limits.min : limits.max,
             is_old_name ? "" : " BYSCORE", is_reverse && !is_old_name ? " REV" : "",
             twin_flip(twin, 2) ? " WITHSCORES" : "", tail);
    twin_model_run(twin, line);
}

static void step_zcount(struct twin_model *twin) {
    struct limits limits;
    pick_limits(twin, &limits);
    char line[256];
    snprintf(line, sizeof(line), "ZCOUNT %s %s %s", twin->name, limits.min, limits.max);
    twin_model_run(twin, line);
}

static void step_remove_range(struct twin_model *twin) {
    char line[256];
    if (twin_flip(twin, 2)) {
        struct limits limits;
        pick_limits(twin, &limits);
        snprintf(line, sizeof(line), "ZREMRANGEBYSCORE %s %s %s", twin->name, limits.min,
                 limits.max);
    } else {
        int start = pick_index(twin);
        int stop = pick_index(twin);
        snprintf(line, sizeof(line), "ZREMRANGEBYRANK %s %d %d", twin->name, start, stop);
    }
    twin_model_run(twin, line);
}

static void step_pop(struct twin_model *twin) {
    const char *end = twin_flip(twin, 2) ? "MAX" : "MIN";
    int wanted = (int)random_below(&twin->random, 5);
    char line[256];
    if (twin_flip(twin, 2)) {
        snprintf(line, sizeof(line), "ZPOP%s %s %d", end, twin->name, wanted);
    } else {
        snprintf(line, sizeof(line), "ZMPOP 2 none %s %s COUNT %d", twin->name, end,
                 wanted == 0 ? 1 : wanted);
    }
    twin_model_run(twin, line);
}

static void step_read(struct twin_model *twin) {
    char line[128];
    if (twin_flip(twin, 3)) {
        snprintf(line, sizeof(line), "ZCARD %s", twin->name);
    } else {
        snprintf(line, sizeof(line), "ZSCORE %s m%d", twin->name, pick_member(twin));
    }
    twin_model_run(twin, line);
}

/* Other fields are changed directly; the member then arrives again, with its time unchanged. */
static void step_other_field(struct twin_model *twin) {
    int id = pick_member(twin);
    const struct twin_member *member = twin_member(twin->board, id);
    if (twin->layout.field_count != 3 || member == NULL) {
        return;
    }
    char name[8];
    snprintf(name, sizeof(name), "m%d", id);
    bool is_flag = twin_flip(twin, 2);
    uint64_t ordinal =
        is_flag ? random_below(&twin->random, 2) : 1022 + random_below(&twin->random, 4);
    struct twin_member changed = *member;
    changed.values[is_flag ? 1 : 2] = (int64_t)ordinal - (is_flag ? 0 : 1024);
    zset_set_field(twin->harness, twin->name, name, is_flag ? 1 : 2, ordinal);
    twin_put_member(&twin->server, twin->board, changed);
}

static void step_clock(struct twin_model *twin) {
    static const int64_t steps_us[] = {1, 1000, 400000, 1000000, 61000000, -5000000, -1};
    twin->harness->wall_us += steps_us[random_below(&twin->random, 7)];
}

static void run_step(struct twin_model *twin) {
    static void (*const steps[])(struct twin_model *) = {
        step_zadd,    step_zadd,           step_zadd,           step_zadd,   step_zincrby,
        step_zincrby, step_zrem,           step_rank,           step_rank,   step_range,
        step_range,   step_range_by_score, step_range_by_score, step_zcount, step_remove_range,
        step_pop,     step_read,           step_other_field,    step_clock,  step_clock,
    };
    twin_model_begin(twin);
    steps[random_below(&twin->random, sizeof(steps) / sizeof(steps[0]))](twin);
}

static void run_layout(struct twin_model *twin, const char *prefix, int steps) {
    char name[32];
    snprintf(name, sizeof(name), "%sk", prefix);
    twin_model_start(twin, name);
    for (int step = 0; step < steps; step++) {
        run_step(twin);
        if (step % 16 == 0) {
            twin_model_compare(twin);
        }
    }
    twin_model_stop(twin);
}

ZSET_TEST(the_server_answers_as_the_naive_twin) {
    struct twin_model twin = {.harness = h, .random = random_begin("zset model")};
    int steps = getenv("LEADERBOARD_TEST_SHORT") != NULL ? 4000 : 20000;
    for (int i = 0; i < ZSET_LAYOUTS; i++) {
        run_layout(&twin, zset_layout_prefixes[i], steps);
    }
}
