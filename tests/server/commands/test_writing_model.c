/* Random writes to boards with CAP and KEEP BEST, by every command that writes members, against a
 * naive twin that writes first and then removes members ranked below the cap. */
#include "tests/support/twin_model.h"

#include "tests/server/zset_fixture.h"

static const char *const layout_names[] = {"default", "laps",   "money", "bare",
                                           "three",   "latest", "mixed"};
static const struct {
    const char *text;
    uint32_t cap; /* TWIN_MEMBERS: none */
    bool keeps_best;
} options[] = {
    {"CAP 1", 1, false},          {"CAP 2 KEEP BEST", 2, true}, {"cap 7", 7, false},
    {"CAP 7 KEEP BEST", 7, true}, {"CAP 40", 40, false},        {"KEEP BEST", TWIN_MEMBERS, true},
};
enum {
    LAYOUTS = sizeof(layout_names) / sizeof(layout_names[0]),
    OPTIONS = sizeof(options) / sizeof(options[0]),
};

enum operation { SET, INCREMENT, BEST, PACKED };
enum stamping { OF_CHANGE, GIVEN, TOUCHED, KEPT };

struct model {
    struct twin_model twin;
    uint32_t cap;
    bool keeps_best;
    /* The command under way. */
    struct twin_key before; /* the board */
    int count;              /* members named */
    int ids[8];
    bool are_written[8];
    bool are_added[8]; /* written, and not there just before */
};

static void begin_command(struct model *model) {
    twin_model_begin(&model->twin);
    twin_copy_members(&model->before, model->twin.board);
    model->count = 0;
}

/* What the member is named with; its number in the command. */
static int name_member(struct model *model, int id) {
    model->ids[model->count] = id;
    model->are_written[model->count] = false;
    model->are_added[model->count] = false;
    return model->count++;
}

static bool is_there(const struct model *model, int index) {
    return twin_rank(model->twin.board, model->ids[index]) >= 0;
}

/* What the board has of a member, or one that is not there, with nothing but a name. */
static struct twin_member read_member(const struct model *model, int index) {
    int id = model->ids[index];
    const struct twin_member *member = twin_member(model->twin.board, id);
    return member != NULL ? *member : (struct twin_member){.name = twin_name(id)};
}

static void write_member(struct model *model, int index, struct twin_member member) {
    model->are_written[index] = true;
    model->are_added[index] = !is_there(model, index);
    twin_put_member(&model->twin.server, model->twin.board, member);
}

static void throw_out_the_last(struct model *model) {
    while (model->twin.board->count > model->cap) {
        twin_remove_rank(model->twin.board, model->twin.board->count - 1);
    }
}

static int64_t unit_now(const struct model *model) {
    return twin_time_units(&model->twin.layout, model->twin.server.now_us);
}

static bool is_better(const struct model *model, int index, const struct twin_member *after) {
    const struct twin_member *before = twin_member(model->twin.board, model->ids[index]);
    return before == NULL || twin_compare_fields(&model->twin.layout, after, before) < 0;
}

static int print_value(const struct model *model, char *out, int index, int64_t value) {
    return sprintf(out, "%lldE-%d", (long long)value, model->twin.layout.fields[index].scale);
}

/* ---- ZADD, ZINCRBY ---- */

struct zadd_options {
    bool nx, xx, gt, lt, ch;
};

static int add_options(struct twin_model *twin, struct zadd_options *zadd, char *out) {
    zadd->ch = twin_flip(twin, 3);
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

static bool is_skipped(const struct zadd_options *zadd, const struct twin_member *before,
                       int64_t score) {
    return before != NULL ? zadd->nx || (zadd->gt && score <= before->values[0]) ||
                                (zadd->lt && score >= before->values[0])
                          : zadd->xx;
}

static void set_score(struct model *model, const struct zadd_options *zadd, int index,
                      int64_t score) {
    const struct twin_member *before = twin_member(model->twin.board, model->ids[index]);
    struct twin_member after = read_member(model, index);
    after.values[0] = score;
    after.unit = unit_now(model);
    bool is_same = before != NULL && before->values[0] == score;
    bool is_refused = model->keeps_best && !is_better(model, index, &after);
    if (!is_skipped(zadd, before, score) && !is_same && !is_refused) {
        write_member(model, index, after);
    }
}

static void step_zadd(struct model *model) {
    struct twin_model *twin = &model->twin;
    struct zadd_options zadd = {.nx = false};
    char line[1024];
    int size = sprintf(line, "ZADD %s", twin->name);
    size += add_options(twin, &zadd, line + size);
    for (uint64_t left = twin_flip(twin, 2) ? 1 : 1 + random_below(&twin->random, 8); left > 0;
         left--) {
        int64_t score = twin_pick_value(twin, 0);
        int index = name_member(model, twin_pick_member(twin));
        line[size++] = ' ';
        size += print_value(model, line + size, 0, score);
        size += sprintf(line + size, " m%d", model->ids[index]);
        set_score(model, &zadd, index, score);
    }
    throw_out_the_last(model);
    int count = 0;
    for (int i = 0; i < model->count; i++) {
        count += model->are_added[i] ? is_there(model, i) : zadd.ch && model->are_written[i];
    }
    twin_put_integer(&twin->server, count);
    twin_model_check(twin, line);
}

/* An increment ignores KEEP BEST. A new member below the cap is not kept: ZADD replies nil, ZINCRBY
 * the sum. */
static void step_increment(struct model *model) {
    struct twin_model *twin = &model->twin;
    bool is_zincrby = twin_flip(twin, 2);
    int index = name_member(model, twin_pick_member(twin));
    struct twin_member after = read_member(model, index);
    bool is_new = !is_there(model, index);
    int64_t delta = (int64_t)random_below(&twin->random, 4) - (is_new ? 0 : 1);
    if (!twin_is_in_field(&twin->layout.fields[0], after.values[0] + delta)) {
        delta = 0;
    }
    char line[128];
    int size = sprintf(line, is_zincrby ? "ZINCRBY %s " : "ZADD %s INCR ", twin->name);
    size += print_value(model, line + size, 0, delta);
    sprintf(line + size, " m%d", model->ids[index]);
    after.values[0] += delta;
    after.unit = unit_now(model);
    if (is_new || delta != 0) {
        write_member(model, index, after);
    }
    throw_out_the_last(model);
    if (is_zincrby || is_there(model, index)) {
        twin_put_score(&twin->server, twin->board, after.values[0]);
    } else {
        twin_put_null(&twin->server);
    }
    twin_model_check(twin, line);
}

/* ---- LB.ADD ---- */

struct adding {
    enum operation operation;
    enum stamping stamping;
    int64_t at_ms;
    bool with_rank;
};

static int print_adding(struct twin_model *twin, struct adding *adding, char *out) {
    static const char *const operations[] = {" SET", " INCR", " BEST", " PACKED"};
    adding->operation = (enum operation)random_below(&twin->random, 4);
    int size = sprintf(out, "LB.ADD %s%s", twin->name, operations[adding->operation]);
    if (adding->operation == PACKED) {
        return size;
    }
    adding->stamping = (enum stamping)random_below(&twin->random, 4);
    if (adding->stamping == GIVEN && twin->layout.time_bits == 0) {
        adding->stamping = OF_CHANGE;
    }
    adding->at_ms = twin->server.now_us / 1000 - (int64_t)random_below(&twin->random, 3) * 1000;
    adding->with_rank = twin_flip(twin, 3);
    if (adding->stamping == GIVEN) {
        size += sprintf(out + size, " AT %lld", (long long)adding->at_ms);
    }
    return size + sprintf(out + size, "%s%s%s", adding->stamping == TOUCHED ? " TOUCH" : "",
                          adding->stamping == KEPT ? " KEEPTIME" : "",
                          adding->with_rank ? " WITHRANK" : "");
}

/* The values of one member, and what it would be with them. */
static int print_values(struct model *model, const struct adding *adding, struct twin_member *after,
                        char *out) {
    struct twin_model *twin = &model->twin;
    int size = 0;
    for (int i = 0; i < twin->layout.field_count; i++) {
        int64_t value = twin_pick_value(twin, i);
        out[size++] = ' ';
        if (adding->operation == INCREMENT) {
            value = (int64_t)random_below(&twin->random, 3) - 1;
            twin_wide sum = after->values[i] + value;
            value = twin_is_in_field(&twin->layout.fields[i], sum) ? value : 0;
            after->values[i] += value;
        } else {
            after->values[i] = value;
        }
        size += print_value(model, out + size, i, value);
    }
    return size;
}

static int print_packed(struct model *model, struct twin_member *after, char *out) {
    struct twin_model *twin = &model->twin;
    for (int i = 0; i < twin->layout.field_count; i++) {
        after->values[i] = twin_pick_value(twin, i);
    }
    after->unit =
        twin->layout.time_bits > 0 ? unit_now(model) - (int64_t)random_below(&twin->random, 3) : 0;
    char text[64];
    return sprintf(out, " %s", twin_print_packed(twin, after, text));
}

static void apply_adding(struct model *model, const struct adding *adding, int index,
                         struct twin_member after) {
    struct twin_model *twin = &model->twin;
    const struct twin_member *before = twin_member(twin->board, model->ids[index]);
    bool is_changed = before == NULL || twin_compare_fields(&twin->layout, &after, before) != 0;
    bool is_beaten = !is_better(model, index, &after);
    if (adding->operation != INCREMENT && model->keeps_best && is_beaten) {
        return;
    }
    if (adding->operation == BEST && is_beaten) {
        if (adding->stamping != TOUCHED) {
            return;
        }
        after = *before;
        is_changed = false;
    }
    if (adding->operation != PACKED) {
        bool is_stamped = adding->stamping == GIVEN || adding->stamping == TOUCHED ||
                          (is_changed && (adding->stamping == OF_CHANGE || before == NULL));
        int64_t time_us = adding->stamping == GIVEN ? adding->at_ms * 1000 : twin->server.now_us;
        if (is_stamped) {
            after.unit = twin_time_units(&twin->layout, time_us);
        }
    }
    if (is_changed || after.unit != before->unit || adding->stamping == TOUCHED) {
        write_member(model, index, after);
    }
}

static void put_answer(struct model *model, const struct adding *adding) {
    struct twin_server *server = &model->twin.server;
    int count = 0;
    if (adding->with_rank) {
        twin_put_array(server, (uint64_t)model->count);
    }
    for (int i = 0; i < model->count; i++) {
        int64_t previous_rank = twin_rank(&model->before, model->ids[i]);
        count += model->are_written[i] && (previous_rank >= 0 || is_there(model, i));
        if (adding->with_rank) {
            twin_put_array(server, 2);
            twin_put_found(&model->twin, model->ids[i], (struct twin_records){0});
            twin_put_rank(server, previous_rank);
        }
    }
    if (!adding->with_rank) {
        twin_put_integer(server, count);
    }
}

static void step_lb_add(struct model *model) {
    struct twin_model *twin = &model->twin;
    struct adding adding = {.operation = SET};
    char line[2048];
    int size = print_adding(twin, &adding, line);
    for (uint64_t left = twin_flip(twin, 2) ? 1 : 1 + random_below(&twin->random, 8); left > 0;
         left--) {
        int index = name_member(model, twin_pick_member(twin));
        struct twin_member after = read_member(model, index);
        size += adding.operation == PACKED ? print_packed(model, &after, line + size)
                                           : print_values(model, &adding, &after, line + size);
        size += sprintf(line + size, " m%d", model->ids[index]);
        apply_adding(model, &adding, index, after);
    }
    throw_out_the_last(model);
    put_answer(model, &adding);
    twin_model_check(twin, line);
}

/* ---- everything ---- */

static void step_zrem(struct model *model) {
    char line[64];
    sprintf(line, "ZREM %s m%d", model->twin.name, twin_pick_member(&model->twin));
    twin_model_run(&model->twin, line);
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
        begin_command(model);
        kinds[random_below(&model->twin.random, sizeof(kinds) / sizeof(kinds[0]))](model);
        if (step % 8 == 0) {
            twin_model_compare(&model->twin);
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
        char name[32];
        sprintf(name, "options%d-k", i);
        struct model model = {
            .twin = {.harness = h, .random = {random_next(&random)}},
            .cap = options[i % OPTIONS].cap,
            .keeps_best = options[i % OPTIONS].keeps_best,
        };
        twin_model_start(&model.twin, name);
        run_board(&model, getenv("LEADERBOARD_TEST_SHORT") != NULL ? 300 : 1500);
        twin_clear_members(&model.before);
        twin_model_stop(&model.twin);
    }
    harness_destroy(h);
}
