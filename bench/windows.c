/* What leaving costs on a board with a WINDOW: CPU a million members, and its steps.
 *
 *     build/bench/windows [members] [periods] [row]    a million; 24; all rows
 *
 * All members are in the period that leaves, and in all others as well if there are 24; of more periods the others have
 * fewer members each, 24 millions all together. Of BEST the worst is that every member's best result leaves, and the
 * next best may be in any period. */
#include "bench/driver.h"
#include "server/commands/window.h"
#include "server/sessions/job.h"

#define HOUR_US INT64_C(3600000000)
enum {
    FULL_PERIODS = 24,
    VALUE_MAX = 1000000,
    LONG_US = 200,
    STEPS_MAX_US = 100000, /* longer ones count as this long */
};

/* The result of a member that has this one in the first period. */
enum shape { SAME, FALLING, FIRST_IS_BEST, RANDOM, FIRST_IS_ALL };

static uint32_t shape_value(struct driver *driver, enum shape shape, uint32_t first, int period) {
    switch (shape) {
    case FALLING:
        return first - (uint32_t)period;
    case FIRST_IS_BEST:
        return period == 0 ? first : (uint32_t)random_below(&driver->random, first);
    case RANDOM:
        return (uint32_t)random_below(&driver->random, VALUE_MAX);
    case FIRST_IS_ALL:
    case SAME:
        break;
    }
    return first;
}

static void put(struct driver *driver, struct registry_key *key, struct bytes name, uint64_t value,
                bool is_best) {
    struct board_member member;
    const struct layout *layout = board_layout(&key->board);
    board_look_up(&key->board, name, NULL, &member);
    uint64_t before = member.is_there ? layout_ordinal(layout, member.key, 0) : 0;
    if (is_best && member.is_there && before >= value) {
        return;
    }
    value = is_best ? value : value + before;
    uint64_t packed = layout_with_ordinal(layout, 0, 0, value);
    CHECK(registry_board_put(driver->server.registry, key, &member, packed) == BOARD_OK);
}

static const struct row {
    const char *name;
    bool is_best;
    enum shape shape;
} rows[] = {
    {"SUM", false, RANDOM},
    {"SUM, and all that members have leaves", false, FIRST_IS_ALL},
    {"BEST, random results", true, RANDOM},
    {"BEST, the same in all periods", true, SAME},
    {"BEST, falling from period to period", true, FALLING},
    {"BEST, the first period's is each one's best", true, FIRST_IS_BEST},
};

/* Only every so manieth member is in this period. */
static uint32_t fill_stride(const struct row *row, int periods, int period) {
    if (period == 0) {
        return 1;
    }
    return row->shape == FIRST_IS_ALL ? UINT32_MAX : 1 + (uint32_t)(periods - 1) / FULL_PERIODS;
}

static void fill_period(struct driver *driver, uint32_t members, const struct row *row, int periods,
                        int period) {
    bool ignored;
    uint32_t stride = fill_stride(row, periods, period);
    struct registry *registry = driver->server.registry;
    int64_t now_ms = driver->server.clock.now_ms;
    driver_one(driver, "LB.ADD w 1 first");
    struct registry_key *whole = registry_find(registry, 0, bytes_from_text("w"), now_ms);
    struct registry_key *share = window_find_share(
        registry, whole, registry_options(whole)->period_start_ms, now_ms, &ignored);
    for (uint32_t i = (uint32_t)period % stride; i < members; i += stride) {
        char name[MICRO_MEMBER_SIZE + 1];
        uint32_t member = (uint32_t)((i * UINT64_C(2654435761)) % members);
        uint32_t first = 100 + (uint32_t)((member * UINT64_C(2246822519)) % VALUE_MAX);
        micro_write_member(name, member);
        uint32_t value = shape_value(driver, row->shape, first, period);
        put(driver, share, bytes_from_text(name), value, row->is_best);
        put(driver, whole, bytes_from_text(name), value, row->is_best);
    }
}

static void pass_hour(struct driver *driver) {
    driver->now_us += HOUR_US;
    server_update_time(&driver->server);
    (void)registry_roll_due(driver->server.registry, driver->server.clock.now_ms, 1000);
}

/* Microseconds that this part of the steps stays below. */
static unsigned percentile(const uint32_t *steps, uint64_t step_count, double part) {
    uint64_t seen = 0;
    unsigned us = 0;
    while (us < STEPS_MAX_US && (double)(seen += steps[us]) <= (double)step_count * part) {
        us++;
    }
    return us;
}

static void measure(struct driver *driver, uint32_t members, int periods, const struct row *row) {
    static uint32_t steps[STEPS_MAX_US + 1];
    char create[128];
    double longest_us = 0;
    uint64_t step_count = 0;
    uint64_t long_count = 0;
    memset(steps, 0, sizeof steps);
    driver_one(driver, "FLUSHALL");
    while (registry_free_step(driver->server.registry, UINT32_MAX)) {}
    (void)snprintf(create, sizeof create,
                   "LB.CREATE w FIELD points 33 TIME 31 S PERIOD HOUR WINDOW %d %s", periods,
                   row->is_best ? "BEST" : "SUM");
    driver_one(driver, create);
    for (int period = 0; period < periods; period++) {
        fill_period(driver, members, row, periods, period);
        pass_hour(driver);
    }
    double begin_ns = micro_cpu_ns();
    bool has_more = true;
    while (has_more) {
        double step_us = micro_cpu_ns();
        has_more = job_list_step(&driver->server, 0, true);
        step_us = (micro_cpu_ns() - step_us) / 1000;
        longest_us = step_us > longest_us ? step_us : longest_us;
        long_count += step_us > LONG_US;
        steps[step_us < STEPS_MAX_US ? (uint32_t)step_us : STEPS_MAX_US]++;
        step_count++;
    }
    double all_ns = micro_cpu_ns() - begin_ns;
    printf("%-45s %6.2f s a million; steps: %" PRIu64
           ", half below %u us, 99 of 100 below %u us, longest %.0f us, %" PRIu64
           " of more than 200 us\n",
           row->name, all_ns / 1000 / members, step_count, percentile(steps, step_count, 0.5),
           percentile(steps, step_count, 0.99), longest_us, long_count);
    fflush(stdout);
}

int main(int argc, char **argv) {
    static struct driver driver;
    uint32_t members = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 1000000;
    memory_init(); /* as the server does */
    int periods = argc > 2 ? (int)strtol(argv[2], NULL, 10) : FULL_PERIODS;
    driver_start(&driver);
    job_board_begin(&driver.server, &window_job);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (argc < 4 || i == strtoul(argv[3], NULL, 10)) {
            measure(&driver, members, periods, &rows[i]);
        }
    }
    return 0;
}
