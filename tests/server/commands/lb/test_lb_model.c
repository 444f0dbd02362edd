/* Random native commands to the server and to a naive twin (lb_twin.h), on boards of every layout:
 * ties, several members of one command, the same member twice, clocks that stand still or step
 * back, times given, values and times that do not fit. */
#include "tests/server/lb_twin.h"

/* ---- LB.ADD ---- */

enum operation { SET, INCREMENT, BEST };
enum stamping { OF_CHANGE, GIVEN, TOUCHED, KEPT };

/* A command in progress: the twin's state if the command succeeds. */
struct adding {
    bool is_new_only, is_existing_only, with_rank;
    enum operation operation;
    enum stamping stamping;
    int64_t at_ms;
    int count;
    int ids[8];
    int written_count;
    const char *error; /* prefix of the expected reply; NULL: no error */
    struct lb_member members[LB_MEMBERS];
    uint64_t arrivals;
};

/* One value of the line, applied to a field. */
static int add_value(struct lb_twin *twin, struct adding *adding, unsigned index, bool is_skipped,
                     int64_t *value, char *out, size_t size) {
    const struct layout_field *field = &twin->layout->fields[index];
    int64_t picked = lb_pick_value(twin, index);
    bool is_set = lb_flip(twin, 4);
    bool is_added = adding->operation == INCREMENT && !is_set;
    if (lb_flip(twin, 5)) {
        return snprintf(out, size, " *");
    }
    if (is_added) {
        picked = (int64_t)random_below(&twin->random, 4) - 1;
    } else if (lb_flip(twin, 80) && lb_highest(field) < INT64_MAX) {
        picked = (int64_t)lb_highest(field) + 1;
    }
    lb_wide sum = is_added ? (lb_wide)*value + picked : picked;
    bool is_checked = !is_added || !is_skipped;
    if (is_checked && (sum < lb_lowest(field) || sum > lb_highest(field))) {
        adding->error = adding->error != NULL ? adding->error : "-ERR value ";
    } else if (is_checked) {
        *value = (int64_t)sum;
    }
    return snprintf(out, size, " %s%lldE-%u", is_set ? "=" : "", (long long)picked,
                    (unsigned)field->scale);
}

/* The member's time, and whether that is a change. */
static void stamp(struct lb_twin *twin, struct adding *adding, struct lb_member *member,
                  const struct lb_member *before) {
    bool is_changed = !before->is_there || lb_compare_fields(twin, member, before) != 0;
    bool is_stamped = adding->stamping == GIVEN || adding->stamping == TOUCHED ||
                      (is_changed && (adding->stamping == OF_CHANGE || !before->is_there));
    int64_t time_us = adding->stamping == GIVEN ? adding->at_ms * 1000 : lb_now_us(twin);
    if (is_stamped && !lb_unit_of(twin, time_us, &member->unit)) {
        adding->error = adding->error != NULL ? adding->error : "-ERR time ";
    }
    is_changed |= adding->stamping == TOUCHED || member->unit != before->unit;
    if (is_changed) {
        member->arrival = ++adding->arrivals;
        adding->written_count++;
    }
}

static int add_member(struct lb_twin *twin, struct adding *adding, char *out, size_t size) {
    int id = lb_pick_member(twin);
    struct lb_member before = adding->members[id];
    struct lb_member member = {.is_there = true, .unit = before.unit, .arrival = before.arrival};
    bool is_skipped = before.is_there ? adding->is_new_only : adding->is_existing_only;
    int used = 0;
    for (unsigned i = 0; i < twin->layout->field_count; i++) {
        member.values[i] = before.is_there ? before.values[i] : 0;
        used += add_value(twin, adding, i, is_skipped, &member.values[i], out + used,
                          size - (size_t)used);
    }
    used += snprintf(out + used, size - (size_t)used, " m%d", id);
    adding->ids[adding->count++] = id;
    bool is_beaten = adding->operation == BEST && before.is_there &&
                     lb_compare_fields(twin, &member, &before) >= 0;
    if (is_skipped || (is_beaten && adding->stamping != TOUCHED)) {
        return used;
    }
    if (is_beaten) {
        memcpy(member.values, before.values, sizeof(member.values));
    }
    stamp(twin, adding, &member, &before);
    adding->members[id] = member;
    return used;
}

/* Times around now, some of them outside the window. */
static int64_t pick_at_ms(struct lb_twin *twin) {
    static const int64_t outside_ms[] = {-62135596800000, 253402300799999};
    int64_t unit_us = twin->layout->time.unit_us;
    if (lb_flip(twin, 40)) {
        return outside_ms[lb_flip(twin, 2)];
    }
    return (lb_now_us(twin) - (int64_t)random_below(&twin->random, 4) * unit_us) / 1000 + 1;
}

static int add_options(struct lb_twin *twin, struct adding *adding, char *out, size_t size) {
    static const char *const operations[] = {"", " INCR", " BEST"};
    adding->is_new_only = lb_flip(twin, 8);
    adding->is_existing_only = !adding->is_new_only && lb_flip(twin, 8);
    adding->operation = (enum operation)random_below(&twin->random, 3);
    adding->stamping = (enum stamping)random_below(&twin->random, 4);
    adding->with_rank = lb_flip(twin, 3);
    int used = snprintf(out, size, "LB.ADD %s%s%s%s", twin->key, adding->is_new_only ? " NX" : "",
                        adding->is_existing_only ? " XX" : "", operations[adding->operation]);
    if (adding->stamping == GIVEN) {
        adding->at_ms = pick_at_ms(twin);
        adding->error = twin->layout->time.bits == 0 ? "-ERR AT " : NULL;
        int64_t unit;
        if (adding->error == NULL && !lb_unit_of(twin, adding->at_ms * 1000, &unit)) {
            adding->error = "-ERR time ";
        }
        used += snprintf(out + used, size - (size_t)used, " AT %lld", (long long)adding->at_ms);
    } else if (adding->stamping != OF_CHANGE) {
        used += snprintf(out + used, size - (size_t)used, "%s",
                         adding->stamping == TOUCHED ? " TOUCH" : " KEEPTIME");
    }
    return used +
           snprintf(out + used, size - (size_t)used, "%s", adding->with_rank ? " WITHRANK" : "");
}

/* Previous ranks are read from the twin before it changes. */
static void put_ranks(struct lb_twin *twin, const struct adding *adding) {
    int ranks[8];
    for (int i = 0; i < adding->count; i++) {
        int id = adding->ids[i];
        ranks[i] = twin->members[id].is_there ? lb_rank(twin, id, false) : -1;
    }
    memcpy(twin->members, adding->members, sizeof(twin->members));
    lb_put(twin, "[");
    for (int i = 0; i < adding->count; i++) {
        lb_put(twin, "%s[", i > 0 ? " " : "");
        lb_put_found(twin, adding->ids[i], (struct lb_records){0});
        if (ranks[i] >= 0) {
            lb_put(twin, " :%d]", ranks[i]);
        } else {
            lb_put(twin, lb_is_resp3(twin) ? " _]" : " nil]");
        }
    }
    lb_put(twin, "]");
}

/* Run a line that is refused, and see that the board has not changed. */
static void check_refused(struct lb_twin *twin, const char *line, const char *error) {
    char *before = zset_dump(twin->harness, twin->key);
    const char *answered = zset_run(twin->harness, "%s", line);
    if (strncmp(answered, error, strlen(error)) != 0) {
        print_error("%s\n  expected %s...\n  answered %s\n", line, error, answered);
        fail();
    }
    char *after = zset_dump(twin->harness, twin->key);
    assert_true(before == NULL ? after == NULL : after != NULL && strcmp(before, after) == 0);
    free(before);
    free(after);
}

static void finish_adding(struct lb_twin *twin, struct adding *adding, const char *line) {
    if (adding->error != NULL) {
        check_refused(twin, line, adding->error);
        return;
    }
    twin->arrivals = adding->arrivals;
    if (adding->with_rank) {
        put_ranks(twin, adding);
    } else {
        memcpy(twin->members, adding->members, sizeof(twin->members));
        lb_put(twin, ":%d", adding->written_count);
    }
    lb_check(twin, line);
}

static void step_add(struct lb_twin *twin) {
    char line[1024];
    struct adding adding = {.arrivals = twin->arrivals};
    memcpy(adding.members, twin->members, sizeof(twin->members));
    int used = add_options(twin, &adding, line, sizeof(line));
    for (uint64_t left = lb_flip(twin, 2) ? 1 : 1 + random_below(&twin->random, 8); left > 0;
         left--) {
        used += add_member(twin, &adding, line + used, sizeof(line) - (size_t)used);
    }
    finish_adding(twin, &adding, line);
}

static void step_add_packed(struct lb_twin *twin) {
    char line[1024];
    struct adding adding = {.arrivals = twin->arrivals};
    memcpy(adding.members, twin->members, sizeof(twin->members));
    int used = snprintf(line, sizeof(line), "LB.ADD %s PACKED", twin->key);
    for (uint64_t left = 1 + random_below(&twin->random, 4); left > 0; left--) {
        int id = lb_pick_member(twin);
        struct lb_member *before = &adding.members[id];
        struct lb_member member = {.is_there = true, .arrival = before->arrival};
        for (unsigned i = 0; i < twin->layout->field_count; i++) {
            member.values[i] = lb_pick_value(twin, i);
        }
        int64_t unit_us = twin->layout->time.unit_us;
        int64_t earlier_us = (int64_t)random_below(&twin->random, 4) * unit_us;
        assert_true(lb_unit_of(twin, lb_now_us(twin) - earlier_us, &member.unit));
        char text[48];
        lb_print_wide(lb_packed(twin, &member), text);
        used += snprintf(line + used, sizeof(line) - (size_t)used, " %s m%d", text, id);
        if (!before->is_there || before->unit != member.unit ||
            lb_compare_fields(twin, &member, before) != 0) {
            member.arrival = ++adding.arrivals;
            adding.written_count++;
        }
        *before = member;
    }
    finish_adding(twin, &adding, line);
}

/* ---- other commands ---- */

static void step_zrem(struct lb_twin *twin) {
    int id = lb_pick_member(twin);
    char line[64];
    snprintf(line, sizeof(line), "ZREM %s m%d", twin->key, id);
    lb_put(twin, ":%d", twin->members[id].is_there);
    twin->members[id].is_there = false;
    lb_check(twin, line);
}

/* A write by score does not change the other fields. */
static void step_zincrby(struct lb_twin *twin) {
    int id = lb_pick_member(twin);
    struct lb_member *member = &twin->members[id];
    int64_t score = (member->is_there ? member->values[0] : 0) + 1;
    char line[64];
    char text[80];
    snprintf(line, sizeof(line), "ZINCRBY %s 1E-%u m%d", twin->key,
             (unsigned)twin->layout->fields[0].scale, id);
    if (!member->is_there) {
        *member = (struct lb_member){.is_there = true};
    }
    member->values[0] = score;
    member->arrival = ++twin->arrivals;
    assert_true(lb_unit_of(twin, lb_now_us(twin), &member->unit));
    lb_print_decimal(score, twin->layout->fields[0].scale, text);
    lb_put(twin, "%s%s", lb_is_resp3(twin) ? "," : "", text);
    lb_check(twin, line);
}

/* By rank, missing ones last; a member that is named twice in the order of naming. */
static void sort_found(const struct lb_twin *twin, int *ids, int count) {
    for (int i = 1; i < count; i++) {
        for (int at = i; at > 0; at--) {
            const struct lb_member *left = &twin->members[ids[at - 1]];
            const struct lb_member *right = &twin->members[ids[at]];
            bool is_swapped =
                right->is_there &&
                (!left->is_there || (ids[at] != ids[at - 1] && lb_compare(twin, right, left) < 0));
            if (!is_swapped) {
                break;
            }
            int swapped = ids[at];
            ids[at] = ids[at - 1];
            ids[at - 1] = swapped;
        }
    }
}

static void step_get(struct lb_twin *twin) {
    int count = 1 + (int)random_below(&twin->random, 40);
    int ids[40];
    struct lb_records records = {lb_flip(twin, 2), lb_flip(twin, 2), lb_flip(twin, 2)};
    bool is_sorted = lb_flip(twin, 2);
    char line[512];
    int size = snprintf(line, sizeof(line), "LB.GET %s %d", twin->key, count);
    for (int i = 0; i < count; i++) {
        ids[i] = lb_pick_member(twin);
        size += snprintf(line + size, sizeof(line) - (size_t)size, " m%d", ids[i]);
    }
    snprintf(line + size, sizeof(line) - (size_t)size, "%s%s%s%s",
             records.with_key ? " WITHKEY" : "", is_sorted ? " SORT" : "",
             records.is_competition ? " COMP" : "", records.with_percent ? " PCT" : "");
    if (is_sorted) {
        sort_found(twin, ids, count);
    }
    lb_put(twin, "[");
    for (int i = 0; i < count; i++) {
        lb_put(twin, i > 0 ? " " : "");
        lb_put_found(twin, ids[i], records);
    }
    lb_put(twin, "]");
    lb_check(twin, line);
}

/* The records of ids, as COMP and WITHKEY say. */
static void put_records(struct lb_twin *twin, const int *ids, int count,
                        struct lb_records records) {
    lb_put(twin, "[");
    for (int i = 0; i < count; i++) {
        lb_put(twin, i > 0 ? " " : "");
        lb_put_record(twin, ids[i], records);
    }
    lb_put(twin, "]");
}

static void reverse(int *ids, int count) {
    for (int i = 0; i < count / 2; i++) {
        int swapped = ids[i];
        ids[i] = ids[count - 1 - i];
        ids[count - 1 - i] = swapped;
    }
}

static void step_range(struct lb_twin *twin) {
    int start = (int)random_below(&twin->random, 2 * LB_MEMBERS + 6) - LB_MEMBERS - 3;
    int stop = (int)random_below(&twin->random, 2 * LB_MEMBERS + 6) - LB_MEMBERS - 3;
    struct lb_records records = {lb_flip(twin, 2), false, lb_flip(twin, 2)};
    bool is_reverse = lb_flip(twin, 2);
    int ids[LB_MEMBERS];
    int count = lb_list(twin, ids);
    char line[128];
    snprintf(line, sizeof(line), "LB.RANGE %s %d %d%s%s%s", twin->key, start, stop,
             is_reverse ? " REV" : "", records.is_competition ? " COMP" : "",
             records.with_key ? " WITHKEY" : "");
    if (is_reverse) {
        reverse(ids, count);
    }
    start = start < 0 ? start + count : start;
    stop = stop < 0 ? stop + count : stop;
    start = start < 0 ? 0 : start;
    stop = stop >= count ? count - 1 : stop;
    put_records(twin, start <= stop ? ids + start : ids, start <= stop ? stop - start + 1 : 0,
                records);
    lb_check(twin, line);
}

/* Two limits, in either order, and what is inside. */
struct limits {
    char texts[2][32];
    int64_t low, high; /* inclusive */
};

static void pick_limits(struct lb_twin *twin, struct limits *limits) {
    unsigned scale = twin->layout->fields[0].scale;
    int64_t values[2] = {lb_pick_value(twin, 0) - 1, lb_pick_value(twin, 0) + 1};
    int low = values[0] <= values[1] ? 0 : 1;
    limits->low = values[low];
    limits->high = values[1 - low];
    for (int i = 0; i < 2; i++) {
        bool is_out = lb_flip(twin, 3);
        bool is_open = lb_flip(twin, 6);
        snprintf(limits->texts[i], sizeof(limits->texts[i]), "%s%lldE-%u", is_out ? "(" : "",
                 (long long)values[i], scale);
        if (is_open) {
            strcpy(limits->texts[i], i == low ? "-inf" : "+inf");
        }
        int64_t *limit = i == low ? &limits->low : &limits->high;
        int64_t inward = i == low ? 1 : -1;
        *limit = is_open ? (i == low ? INT64_MIN : INT64_MAX) : *limit + (is_out ? inward : 0);
    }
}

static void step_range_by_score(struct lb_twin *twin) {
    struct limits limits;
    struct lb_records records = {lb_flip(twin, 2), false, lb_flip(twin, 2)};
    bool is_reverse = lb_flip(twin, 2);
    int offset = (int)random_below(&twin->random, 8) - 1;
    int limit = (int)random_below(&twin->random, 8) - 2;
    int ids[LB_MEMBERS];
    char line[256];
    pick_limits(twin, &limits);
    snprintf(line, sizeof(line), "LB.RANGE %s %s %s BYSCORE LIMIT %d %d%s%s%s", twin->key,
             limits.texts[0], limits.texts[1], offset, limit, is_reverse ? " REV" : "",
             records.is_competition ? " COMP" : "", records.with_key ? " WITHKEY" : "");
    int count = 0;
    int all = lb_list(twin, ids);
    for (int i = 0; i < all; i++) {
        int64_t score = twin->members[ids[i]].values[0];
        if (score >= limits.low && score <= limits.high) {
            ids[count++] = ids[i];
        }
    }
    if (is_reverse) {
        reverse(ids, count);
    }
    count = offset < 0 || offset >= count ? 0 : count - offset;
    count = limit >= 0 && limit < count ? limit : count;
    put_records(twin, ids + (count > 0 ? offset : 0), count, records);
    lb_check(twin, line);
}

/* The rank of a new member with only that score. */
static int newcomer_rank(struct lb_twin *twin, int64_t score) {
    struct lb_member newcomer = {.is_there = true, .values = {score}, .unit = INT64_MAX};
    newcomer.arrival = UINT64_MAX;
    int rank = 0;
    for (int id = 0; id < LB_MEMBERS; id++) {
        rank += twin->members[id].is_there && lb_compare(twin, &twin->members[id], &newcomer) < 0;
    }
    return rank;
}

static void step_around(struct lb_twin *twin) {
    int size = 1 + (int)random_below(&twin->random, LB_MEMBERS + 4);
    bool is_competition = lb_flip(twin, 2);
    bool is_score = lb_flip(twin, 2);
    int id = lb_pick_member(twin);
    int ids[LB_MEMBERS];
    int count = lb_list(twin, ids);
    int rank;
    char line[128];
    if (is_score) {
        int64_t score = lb_pick_value(twin, 0);
        rank = newcomer_rank(twin, score);
        snprintf(line, sizeof(line), "LB.AROUND %s SCORE %lldE-%u %d%s", twin->key,
                 (long long)score, (unsigned)twin->layout->fields[0].scale, size,
                 is_competition ? " COMP" : "");
    } else {
        rank = lb_rank(twin, id, false);
        snprintf(line, sizeof(line), "LB.AROUND %s MEMBER m%d %d%s", twin->key, id, size,
                 is_competition ? " COMP" : "");
        count = twin->members[id].is_there ? count : 0;
    }
    size = size < count ? size : count;
    int first = rank - size / 2;
    first = first > count - size ? count - size : first;
    first = first < 0 ? 0 : first;
    put_records(twin, ids + first, size, (struct lb_records){is_competition, false, false});
    lb_check(twin, line);
}

static void step_quantile(struct lb_twin *twin) {
    int ids[LB_MEMBERS];
    int count = lb_list(twin, ids);
    char line[128];
    int size = snprintf(line, sizeof(line), "LB.QUANTILE %s", twin->key);
    lb_put(twin, "[");
    for (int i = 0; i < 3; i++) {
        int thousandths = (int)random_below(&twin->random, 1001);
        size += snprintf(line + size, sizeof(line) - (size_t)size, " %dE-3", thousandths);
        int from_worst = (thousandths * count + 999) / 1000;
        from_worst = from_worst == 0 ? 1 : from_worst;
        lb_put(twin, i > 0 ? " " : "");
        if (count > 0) {
            lb_put_record(twin, ids[count - from_worst], (struct lb_records){0});
        } else {
            lb_put(twin, lb_is_resp3(twin) ? "_" : "nil*");
        }
    }
    lb_put(twin, "]");
    lb_check(twin, line);
}

/* Members with a score of low or more and below high. */
static int count_scores(const struct lb_twin *twin, int64_t low, int64_t high) {
    int count = 0;
    for (int id = 0; id < LB_MEMBERS; id++) {
        const struct lb_member *member = &twin->members[id];
        count += member->is_there && member->values[0] >= low && member->values[0] < high;
    }
    return count;
}

static void step_hist(struct lb_twin *twin) {
    int64_t edge = lb_pick_value(twin, 0) - 1;
    int64_t low = INT64_MIN;
    char line[128];
    int size = snprintf(line, sizeof(line), "LB.HIST %s", twin->key);
    lb_put(twin, "[");
    for (uint64_t left = 1 + random_below(&twin->random, 4); left > 0; left--) {
        size += snprintf(line + size, sizeof(line) - (size_t)size, " %lldE-%u", (long long)edge,
                         (unsigned)twin->layout->fields[0].scale);
        lb_put(twin, ":%d ", count_scores(twin, low, edge));
        low = edge;
        edge += 1 + (int64_t)random_below(&twin->random, 2);
    }
    lb_put(twin, ":%d]", count_scores(twin, low, INT64_MAX));
    lb_check(twin, line);
}

static void step_clock(struct lb_twin *twin) {
    static const int64_t steps_us[] = {1, 1000, 400000, 1000000, 61000000, -5000000, -1};
    twin->harness->wall_us += steps_us[random_below(&twin->random, 7)];
}

static void run_step(struct lb_twin *twin) {
    static void (*const steps[])(struct lb_twin *) = {
        step_add,
        step_add,
        step_add,
        step_add,
        step_add,
        step_add,
        step_add,
        step_add,
        step_add_packed,
        step_get,
        step_get,
        step_range,
        step_range,
        step_range_by_score,
        step_range_by_score,
        step_around,
        step_around,
        step_quantile,
        step_hist,
        step_zrem,
        step_zincrby,
        step_clock,
        step_clock,
    };
    lb_begin_step(twin);
    steps[random_below(&twin->random, sizeof(steps) / sizeof(steps[0]))](twin);
}

static void run_layout(struct lb_twin *twin, int steps) {
    for (int step = 0; step < steps; step++) {
        run_step(twin);
        if (step % 32 == 0) {
            lb_compare_whole(twin);
        }
    }
}

ZSET_TEST(the_server_answers_as_the_naive_twin) {
    struct harness *h = *state;
    struct random random = random_begin("lb model");
    int steps = getenv("LEADERBOARD_TEST_SHORT") != NULL ? 1000 : 5000;
    for (int i = 0; i < LB_LAYOUTS; i++) {
        char key[32];
        snprintf(key, sizeof(key), "%sk", lb_prefixes[i]);
        static struct lb_twin twin;
        twin = (struct lb_twin){.harness = h, .random = {random_next(&random)}, .key = key};
        twin.layout = &settings_rules_for(&h->server.settings, bytes_from_text(key))->layout;
        assert_in_range(twin.layout->field_count, 1, LB_FIELDS);
        run_layout(&twin, steps);
    }
}

TEST_MAIN(NULL, NULL)
