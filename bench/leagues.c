/* What a league costs: bytes a member, LB.LEAGUE ADD against LB.ADD, and the longest step when all
 * rooms begin anew, and when their archives go and the members who have not come are settled.
 *
 *     build/bench/leagues [members] [room] [rows]      a million, in rooms of thirty; all rows
 *
 * In one process and without sockets, as bench/regress.c. For instructions, run it with some ten
 * thousand members under valgrind --tool=callgrind --toggle-collect=driver_run: a row's are those with
 * so many rows, without those of one row less. */
#include "bench/driver.h"

enum {
    BATCH = 32,
    TICK_US = 100,
    DUE_KEYS_MAX = 16, /* server/loop/tick.c */
    BUDGET_NS = 200000,
};
#define DAY_US INT64_C(86400000000)

static uint32_t members;
static unsigned rows_left;

/* Each member once, in order, or random ones. Returns nanoseconds of one. */
static double row(struct driver *driver, const char *name, const char *words, bool is_random) {
    double elapsed_ns = 0;
    if (rows_left-- == 0) {
        exit(0);
    }
    for (uint32_t done = 0; done < members; done += BATCH) {
        buffer_clear(&driver->input);
        for (uint32_t i = 0; i < BATCH; i++) {
            uint64_t member = is_random ? random_below(&driver->random, members) : done + i;
            request_append(&driver->input, words, random_below(&driver->random, 100000), member);
        }
        driver->now_us += TICK_US;
        server_update_time(&driver->server);
        double begin = micro_now_ns();
        driver_run(driver, BATCH);
        elapsed_ns += micro_now_ns() - begin;
    }
    printf("%-44s %8.0f ns\n", name, elapsed_ns / members);
    return elapsed_ns / members;
}

typedef uint32_t run_due(struct registry *registry, int64_t now_ms, uint32_t keys_max);

/* As a tick does it: at most 16 keys between two looks at the clock. */
static void steps(struct driver *driver, const char *name, run_due *run) {
    double longest_ns = 0;
    double all_ns = 0;
    uint32_t count = DUE_KEYS_MAX;
    uint64_t ticks = 0;
    while (count == DUE_KEYS_MAX) {
        double begin = micro_cpu_ns();
        double elapsed_ns;
        do {
            count = run(driver->server.registry, driver->server.clock.now_ms, DUE_KEYS_MAX);
            elapsed_ns = micro_cpu_ns() - begin;
        } while (count == DUE_KEYS_MAX && elapsed_ns < BUDGET_NS);
        longest_ns = elapsed_ns > longest_ns ? elapsed_ns : longest_ns;
        all_ns += elapsed_ns;
        ticks++;
        while (registry_free_step(driver->server.registry, 256)) {}
    }
    printf("%-44s %8.0f us longest, %.1f ms in %llu steps\n", name, longest_ns / 1000, all_ns / 1e6,
           (unsigned long long)ticks);
}

static void pass_day(struct driver *driver) {
    driver->now_us += DAY_US;
    server_update_time(&driver->server);
}

static double bytes_since(size_t before) {
    return (double)(memory_used() - before) / members;
}

int main(int argc, char **argv) {
    static struct driver driver;
    members = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 1000000;
    unsigned room = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 30;
    rows_left = argc > 3 ? (unsigned)strtoul(argv[3], NULL, 10) : UINT32_MAX;
    char create[128];
    snprintf(create, sizeof create,
             "LB.LEAGUE CREATE weekly FIELD points 22 TIME 31 S PERIOD DAY ROOM %u TIERS 10 UP 5 "
             "DOWN 5 ARCHIVE 1",
             room);
    members = (members + BATCH - 1) / BATCH * BATCH;
    memory_init(); /* as the server does */
    driver_start(&driver);
    size_t before = memory_used();
    row(&driver, "LB.ADD, new member", "LB.ADD board $score $member", false);
    printf("%-44s %8.1f bytes a member\n", "one board", bytes_since(before));
    row(&driver, "LB.ADD, random update", "LB.ADD board INCR 5 $member", true);
    row(&driver, "LB.ADD WITHRANK, random update", "LB.ADD board WITHRANK INCR 5 $member", true);
    driver_one(&driver, "FLUSHALL");
    while (registry_free_step(driver.server.registry, UINT32_MAX)) {}
    before = memory_used();
    driver_one(&driver, create);
    row(&driver, "LB.LEAGUE ADD, new member", "LB.LEAGUE ADD weekly $score $member", false);
    printf("%-44s %8.1f bytes a member\n", "league", bytes_since(before));
    row(&driver, "LB.LEAGUE ADD, random update", "LB.LEAGUE ADD weekly INCR 5 $member", true);
    row(&driver, "LB.LEAGUE GET", "LB.LEAGUE GET weekly $member", true);
    pass_day(&driver);
    steps(&driver, "all rooms begin anew", registry_roll_due);
    row(&driver, "LB.LEAGUE ADD, first of the next period", "LB.LEAGUE ADD weekly INCR 5 $member",
        false);
    printf("%-44s %8.1f bytes a member\n", "league and one archive", bytes_since(before));
    pass_day(&driver);
    steps(&driver, "all rooms begin anew again", registry_roll_due);
    steps(&driver, "archives go, all members have come", registry_expiry_remove_due);
    pass_day(&driver);
    steps(&driver, "no room begins anew", registry_roll_due);
    steps(&driver, "archives go, no member has come", registry_expiry_remove_due);
    printf("%-44s %8.1f bytes a member\n", "without rooms", bytes_since(before));
    return 0;
}
