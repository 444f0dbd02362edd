/* Random writes to boards with CAP and KEEP BEST, by every command that writes members, against a
 * naive twin that writes first and then removes members ranked below the cap. */
#include "tests/support/test.h"

#include "tests/server/lb_twin.h"

static const char *const layout_names[] = {"default", "laps",   "money", "bare",
                                           "three",   "latest", "mixed"};
static const struct {
    const char *text;
    int cap; /* LB_MEMBERS: none */
    bool keeps_best;
} options[] = {
    {"CAP 1", 1, false},          {"CAP 2 KEEP BEST", 2, true}, {"cap 7", 7, false},
    {"CAP 7 KEEP BEST", 7, true}, {"CAP 40", 40, false},        {"KEEP BEST", LB_MEMBERS, true},
};
enum {
    LAYOUTS = sizeof(layout_names) / sizeof(layout_names[0]),
    OPTIONS = sizeof(options) / sizeof(options[0]),
};

enum operation { SET, INCREMENT, BEST, PACKED };
enum stamping { OF_CHANGE, GIVEN, TOUCHED, KEPT };

struct model {
    struct lb_twin twin;
    int cap;
    bool keeps_best;
    /* The command under way. */
    bool was_there[LB_MEMBERS];
    int count; /* members named */
    int ids[8];
    bool are_written[8];
    bool are_added[8]; /* written, and not there just before */
};

static void begin_command(struct model *model) {
    for (int id = 0; id < LB_MEMBERS; id++) {
        model->was_there[id] = model->twin.members[id].is_there;
    }
    model->count = 0;
}

/* What the member is named with; its number in the command. */
static int name_member(struct model *model, int id) {
    model->ids[model->count] = id;
    model->are_written[model->count] = false;
    model->are_added[model->count] = false;
    return model->count++;
}

static void write_member(struct model *model, int index, const struct lb_member *member) {
    struct lb_member *to = &model->twin.members[model->ids[index]];
    model->are_written[index] = true;
    model->are_added[index] = !to->is_there;
    *to = *member;
    to->is_there = true;
    to->arrival = ++model->twin.arrivals;
}

static void throw_out_the_last(struct model *model) {
    int ids[LB_MEMBERS];
    for (int count = lb_list(&model->twin, ids); count > model->cap; count--) {
        model->twin.members[ids[count - 1]].is_there = false;
    }
}

static int64_t unit_now(const struct model *model) {
    int64_t unit;
    assert_true(lb_unit_of(&model->twin, lb_now_us(&model->twin), &unit));
    return unit;
}

static bool is_refused(const struct model *model, const struct lb_member *before,
                       const struct lb_member *after) {
    return model->keeps_best && before->is_there &&
           lb_compare_fields(&model->twin, after, before) >= 0;
}

static int print_value(const struct model *model, char *out, unsigned index, int64_t value) {
    return sprintf(out, "%lldE-%u", (long long)value,
                   (unsigned)model->twin.layout->fields[index].scale);
}

/* ---- ZADD, ZINCRBY ---- */

struct zadd_options {
    bool nx, xx, gt, lt, ch;
};

static int add_options(struct lb_twin *twin, struct zadd_options *zadd, char *out) {
    zadd->ch = lb_flip(twin, 3);
    switch (random_below(&twin->random, 8)) {
    case 0:
        zadd->nx = true;
        break;
    case 1:
        zadd->xx = true;
        break;
    case 2:
        zadd->gt = true;
        break;
    case 3:
        zadd->lt = true;
        break;
    default:
        break;
    }
    return sprintf(out, "%s%s%s%s%s", zadd->nx ? " NX" : "", zadd->xx ? " XX" : "",
                   zadd->gt ? " GT" : "", zadd->lt ? " LT" : "", zadd->ch ? " CH" : "");
}

static bool is_skipped(const struct zadd_options *zadd, const struct lb_member *before,
                       int64_t score) {
    return before->is_there ? zadd->nx || (zadd->gt && score <= before->values[0]) ||
                                  (zadd->lt && score >= before->values[0])
                            : zadd->xx;
}

static void set_score(struct model *model, const struct zadd_options *zadd, int index,
                      int64_t score) {
    const struct lb_member *before = &model->twin.members[model->ids[index]];
    struct lb_member after = *before;
    if (!before->is_there) {
        memset(after.values, 0, sizeof(after.values));
    }
    after.values[0] = score;
    after.unit = unit_now(model);
    bool is_same = before->is_there && before->values[0] == score;
    if (!is_skipped(zadd, before, score) && !is_same && !is_refused(model, before, &after)) {
        write_member(model, index, &after);
    }
}

static void step_zadd(struct model *model) {
    struct lb_twin *twin = &model->twin;
    struct zadd_options zadd = {.nx = false};
    char line[1024];
    int size = sprintf(line, "ZADD %s", twin->key);
    size += add_options(twin, &zadd, line + size);
    for (uint64_t left = lb_flip(twin, 2) ? 1 : 1 + random_below(&twin->random, 8); left > 0;
         left--) {
        int64_t score = lb_pick_value(twin, 0);
        int index = name_member(model, lb_pick_member(twin));
        line[size++] = ' ';
        size += print_value(model, line + size, 0, score);
        size += sprintf(line + size, " m%d", model->ids[index]);
        set_score(model, &zadd, index, score);
    }
    throw_out_the_last(model);
    int count = 0;
    for (int i = 0; i < model->count; i++) {
        bool is_there = twin->members[model->ids[i]].is_there;
        count += model->are_added[i] ? is_there : zadd.ch && model->are_written[i];
    }
    lb_put(twin, ":%d", count);
    lb_check(twin, line);
}

/* An increment ignores KEEP BEST. A new member below the cap is not kept: ZADD replies nil, ZINCRBY
 * the sum. */
static void step_increment(struct model *model) {
    struct lb_twin *twin = &model->twin;
    bool is_zincrby = lb_flip(twin, 2);
    int index = name_member(model, lb_pick_member(twin));
    int id = model->ids[index];
    struct lb_member after = twin->members[id];
    int64_t delta = (int64_t)random_below(&twin->random, 4) - (after.is_there ? 1 : 0);
    if (!after.is_there) {
        memset(after.values, 0, sizeof(after.values));
    }
    if (after.values[0] + delta < lb_lowest(&twin->layout->fields[0])) {
        delta = 0;
    }
    char line[128];
    char text[80];
    int size = sprintf(line, is_zincrby ? "ZINCRBY %s " : "ZADD %s INCR ", twin->key);
    size += print_value(model, line + size, 0, delta);
    sprintf(line + size, " m%d", id);
    after.values[0] += delta;
    after.unit = unit_now(model);
    if (!twin->members[id].is_there || delta != 0) {
        write_member(model, index, &after);
    }
    throw_out_the_last(model);
    if (is_zincrby || twin->members[id].is_there) {
        lb_print_decimal(after.values[0], twin->layout->fields[0].scale, text);
        lb_put(twin, "%s%s", lb_is_resp3(twin) ? "," : "", text);
    } else {
        lb_put(twin, lb_is_resp3(twin) ? "_" : "nil");
    }
    lb_check(twin, line);
}

/* ---- LB.ADD ---- */

struct adding {
    enum operation operation;
    enum stamping stamping;
    int64_t at_ms;
    bool with_rank;
    int previous_ranks[8];
};

static int print_adding(struct lb_twin *twin, struct adding *adding, char *out) {
    static const char *const operations[] = {" SET", " INCR", " BEST", " PACKED"};
    adding->operation = (enum operation)random_below(&twin->random, 4);
    int size = sprintf(out, "LB.ADD %s%s", twin->key, operations[adding->operation]);
    if (adding->operation == PACKED) {
        return size;
    }
    adding->stamping = (enum stamping)random_below(&twin->random, 4);
    if (adding->stamping == GIVEN && twin->layout->time.bits == 0) {
        adding->stamping = OF_CHANGE;
    }
    adding->at_ms = lb_now_us(twin) / 1000 - (int64_t)random_below(&twin->random, 3) * 1000;
    adding->with_rank = lb_flip(twin, 3);
    if (adding->stamping == GIVEN) {
        size += sprintf(out + size, " AT %lld", (long long)adding->at_ms);
    }
    return size + sprintf(out + size, "%s%s%s", adding->stamping == TOUCHED ? " TOUCH" : "",
                          adding->stamping == KEPT ? " KEEPTIME" : "",
                          adding->with_rank ? " WITHRANK" : "");
}

/* The values of one member, and what it would be with them. */
static int print_values(struct model *model, const struct adding *adding, struct lb_member *after,
                        char *out) {
    struct lb_twin *twin = &model->twin;
    int size = 0;
    for (unsigned i = 0; i < twin->layout->field_count; i++) {
        const struct layout_field *field = &twin->layout->fields[i];
        int64_t value = lb_pick_value(twin, i);
        out[size++] = ' ';
        if (adding->operation == INCREMENT) {
            value = (int64_t)random_below(&twin->random, 3) - 1;
            lb_wide sum = (lb_wide)after->values[i] + value;
            value = sum < lb_lowest(field) || sum > lb_highest(field) ? 0 : value;
            after->values[i] += value;
        } else {
            after->values[i] = value;
        }
        size += print_value(model, out + size, i, value);
    }
    return size;
}

static int print_packed(struct model *model, struct lb_member *after, char *out) {
    struct lb_twin *twin = &model->twin;
    for (unsigned i = 0; i < twin->layout->field_count; i++) {
        after->values[i] = lb_pick_value(twin, i);
    }
    after->unit =
        twin->layout->time.bits > 0 ? unit_now(model) - (int64_t)random_below(&twin->random, 3) : 0;
    out[0] = ' ';
    lb_print_wide(lb_packed(twin, after), out + 1);
    return (int)strlen(out);
}

static void apply_adding(struct model *model, const struct adding *adding, int index,
                         struct lb_member *after) {
    struct lb_twin *twin = &model->twin;
    const struct lb_member *before = &twin->members[model->ids[index]];
    bool is_changed = !before->is_there || lb_compare_fields(twin, after, before) != 0;
    bool is_beaten = before->is_there && lb_compare_fields(twin, after, before) >= 0;
    if (adding->operation != INCREMENT && is_refused(model, before, after)) {
        return;
    }
    if (adding->operation == BEST && is_beaten) {
        if (adding->stamping != TOUCHED) {
            return;
        }
        memcpy(after->values, before->values, sizeof(after->values));
        is_changed = false;
    }
    if (adding->operation != PACKED) {
        bool is_stamped = adding->stamping == GIVEN || adding->stamping == TOUCHED ||
                          (is_changed && (adding->stamping == OF_CHANGE || !before->is_there));
        int64_t time_us = adding->stamping == GIVEN ? adding->at_ms * 1000 : lb_now_us(twin);
        after->unit = before->unit;
        if (is_stamped) {
            assert_true(lb_unit_of(twin, time_us, &after->unit));
        }
    }
    if (is_changed || after->unit != before->unit || adding->stamping == TOUCHED) {
        write_member(model, index, after);
    }
}

static void put_answer(struct model *model, const struct adding *adding) {
    struct lb_twin *twin = &model->twin;
    int count = 0;
    lb_put(twin, adding->with_rank ? "[" : "");
    for (int i = 0; i < model->count; i++) {
        int id = model->ids[i];
        count += model->are_written[i] && (model->was_there[id] || twin->members[id].is_there);
        if (adding->with_rank) {
            lb_put(twin, i > 0 ? " [" : "[");
            lb_put_found(twin, id, (struct lb_records){false, false, false});
            if (model->was_there[id]) {
                lb_put(twin, " :%d]", adding->previous_ranks[i]);
            } else {
                lb_put(twin, lb_is_resp3(twin) ? " _]" : " nil]");
            }
        }
    }
    if (adding->with_rank) {
        lb_put(twin, "]");
    } else {
        lb_put(twin, ":%d", count);
    }
}

static void step_lb_add(struct model *model) {
    struct lb_twin *twin = &model->twin;
    struct adding adding = {.operation = SET};
    struct lb_twin before = *twin;
    char line[2048];
    int size = print_adding(twin, &adding, line);
    for (uint64_t left = lb_flip(twin, 2) ? 1 : 1 + random_below(&twin->random, 8); left > 0;
         left--) {
        int index = name_member(model, lb_pick_member(twin));
        int id = model->ids[index];
        struct lb_member after = twin->members[id];
        if (!after.is_there) {
            after = (struct lb_member){.is_there = false};
        }
        adding.previous_ranks[index] = model->was_there[id] ? lb_rank(&before, id, false) : 0;
        size += adding.operation == PACKED ? print_packed(model, &after, line + size)
                                           : print_values(model, &adding, &after, line + size);
        size += sprintf(line + size, " m%d", id);
        apply_adding(model, &adding, index, &after);
    }
    throw_out_the_last(model);
    put_answer(model, &adding);
    lb_check(twin, line);
}

/* ---- everything ---- */

static void step_zrem(struct model *model) {
    int id = lb_pick_member(&model->twin);
    char line[64];
    sprintf(line, "ZREM %s m%d", model->twin.key, id);
    lb_put(&model->twin, ":%d", model->twin.members[id].is_there);
    model->twin.members[id].is_there = false;
    lb_check(&model->twin, line);
}

static void step_clock(struct model *model) {
    static const int64_t steps_us[] = {1, 1000, 400000, 1000000, 61000000, -5000000};
    model->twin.harness->wall_us += steps_us[random_below(&model->twin.random, 6)];
}

static void run_board(struct model *model, int steps) {
    static void (*const kinds[])(struct model *) = {
        step_zadd,   step_zadd,   step_zadd, step_increment, step_lb_add,
        step_lb_add, step_lb_add, step_zrem, step_clock,
    };
    for (int step = 0; step < steps; step++) {
        lb_begin_step(&model->twin);
        begin_command(model);
        kinds[random_below(&model->twin.random, sizeof(kinds) / sizeof(kinds[0]))](model);
        if (step % 8 == 0) {
            lb_compare_whole(&model->twin);
        }
    }
}

TEST(boards_with_options_are_as_their_naive_twins) {
    struct random random = random_begin(__func__);
    char settings[8192];
    int size = sprintf(settings, "%s", zset_settings);
    for (int i = 0; i < LAYOUTS * OPTIONS; i++) {
        size += sprintf(settings + size, "board options%d-* %s %s\n", i, layout_names[i / OPTIONS],
                        options[i % OPTIONS].text);
    }
    struct harness *h = harness_create(settings);
    harness_connect(h);
    for (int i = 0; i < LAYOUTS * OPTIONS; i++) {
        static struct model model;
        char key[32];
        sprintf(key, "options%d-k", i);
        model = (struct model){
            .twin = {.harness = h, .random = {random_next(&random)}, .key = key},
            .cap = options[i % OPTIONS].cap,
            .keeps_best = options[i % OPTIONS].keeps_best,
        };
        model.twin.layout = &settings_rules_for(&h->server.settings, bytes_from_text(key))->layout;
        run_board(&model, getenv("LEADERBOARD_TEST_SHORT") != NULL ? 300 : 1500);
    }
    harness_destroy(h);
}

TEST_MAIN(NULL, NULL)
