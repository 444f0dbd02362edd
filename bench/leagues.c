/* What a league costs: bytes a member, LB.LEAGUE ADD against LB.ADD, and the longest step when all
 * rooms begin anew, and when their archives go and the members who have not come are settled.
 *
 *     build/bench/leagues [members] [rows]      a million, in rooms of thirty; all rows
 *
 * In one process and without sockets, as bench/regress.c. For instructions, run it with some ten
 * thousand members under valgrind --tool=callgrind --toggle-collect=leagues_run: a row's are those with
 * so many rows, without those of one row less. */
#include "bench/request.h"
#include "codec/memory.h"
#include "server/commands/table.h"
#include "server/dispatch/execute.h"
#include "server/loop/connection.h"

enum {
    BATCH = 32,
    TICK_US = 100,
    DUE_KEYS_MAX = 16, /* server/loop/tick.c */
    BUDGET_NS = 200000,
};
#define DAY_US INT64_C(86400000000)

struct driver {
    struct server server;
    struct connection connection;
    struct resp_arena arguments;
    struct buffer input, output;
    struct random random;
    int64_t now_us;
    uint32_t members;
    unsigned rows_left;
};

/* Neither static nor inlined, so that it is there to be counted. */
__attribute__((noinline)) void leagues_run(struct driver *driver, uint32_t count);

static int64_t wall_us(void *context) {
    const struct driver *driver = context;
    return driver->now_us;
}

static void start(struct driver *driver) {
    static const char settings[] = "slowlog-log-slower-than -1\n";
    struct server *server = &driver->server;
    char error[SETTING_ERROR_MAX];
    driver->random.state = 1;
    driver->now_us = INT64_C(1767225600000000); /* 2026-01-01 */
    server->clock.wall_us = wall_us;
    server->clock.monotonic_us = wall_us;
    server->clock.context = driver;
    server->hash_seed = 1;
    clock_calibrate();
    execute_init(command_table);
    CHECK(settings_init(&server->settings));
    CHECK(settings_load_text(&server->settings, bytes_from_text(settings), "leagues", error));
    CHECK(settings_finish(&server->settings, error));
    CHECK(server_init(server, command_count()));
    session_init(&driver->connection.session, server->sessions.next_id++, server->clock.now_ms);
    server_add_session(server, &driver->connection.session);
    buffer_init(&driver->input, 0);
    buffer_init(&driver->output, 0);
}

/* count requests that were written. */
__attribute__((noinline)) void leagues_run(struct driver *driver, uint32_t count) {
    const struct resp_limits limits = {.args_max = 1024 * 1024,
                                       .bulk_size_max = 1024 * 1024,
                                       .inline_size_max = 64 * 1024,
                                       .is_authenticated = true};
    struct reply reply;
    size_t at = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct request request;
        const char *error;
        size_t used = 0;
        enum resp_status status = resp_parse(&driver->connection.transport.parser,
                                             driver->input.at + at, driver->input.size - at,
                                             &limits, &driver->arguments, &request, &used, &error);
        CHECK(status == RESP_REQUEST);
        at += used;
        reply_init(&reply, &driver->output, 2);
        execute_request(&driver->server, &driver->connection.session,
                        command_find_request(&request), &request, &reply);
        if (reply.error_count > 0) {
            fprintf(stderr, "%.*s", (int)driver->output.size, driver->output.at);
            exit(1);
        }
        buffer_clear(&driver->output);
        resp_arena_reset(&driver->arguments);
    }
}

/* Each member once, in order, or random ones. Returns nanoseconds of one. */
static double row(struct driver *driver, const char *name, const char *words, bool is_random) {
    double elapsed_ns = 0;
    if (driver->rows_left-- == 0) {
        exit(0);
    }
    for (uint32_t done = 0; done < driver->members; done += BATCH) {
        buffer_clear(&driver->input);
        for (uint32_t i = 0; i < BATCH; i++) {
            uint64_t member = is_random ? random_below(&driver->random, driver->members) : done + i;
            request_append(&driver->input, words, random_below(&driver->random, 100000), member);
        }
        driver->now_us += TICK_US;
        server_update_time(&driver->server);
        double begin = micro_now_ns();
        leagues_run(driver, BATCH);
        elapsed_ns += micro_now_ns() - begin;
    }
    printf("%-44s %8.0f ns\n", name, elapsed_ns / driver->members);
    return elapsed_ns / driver->members;
}

static void one(struct driver *driver, const char *words) {
    buffer_clear(&driver->input);
    request_append(&driver->input, words, 0, 0);
    leagues_run(driver, 1);
}

typedef uint32_t run_due(struct registry *registry, int64_t now_ms, uint32_t keys_max);

/* Of this thread: others that run on a loaded machine take nothing from a step. */
static double cpu_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* As a tick does it: at most 16 keys between two looks at the clock. */
static void steps(struct driver *driver, const char *name, run_due *run) {
    double longest_ns = 0;
    double all_ns = 0;
    uint32_t count = DUE_KEYS_MAX;
    uint64_t ticks = 0;
    while (count == DUE_KEYS_MAX) {
        double begin = cpu_ns();
        double elapsed_ns;
        do {
            count = run(driver->server.registry, driver->server.clock.now_ms, DUE_KEYS_MAX);
            elapsed_ns = cpu_ns() - begin;
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

static double bytes_since(size_t before, uint32_t members) {
    return (double)(memory_used() - before) / members;
}

int main(int argc, char **argv) {
    static struct driver driver;
    driver.members = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 1000000;
    driver.rows_left = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : UINT32_MAX;
    driver.members = (driver.members + BATCH - 1) / BATCH * BATCH;
    memory_init(); /* as the server does */
    start(&driver);
    size_t before = memory_used();
    row(&driver, "LB.ADD, new member", "LB.ADD board $score $member", false);
    printf("%-44s %8.1f bytes a member\n", "one board", bytes_since(before, driver.members));
    row(&driver, "LB.ADD, random update", "LB.ADD board INCR 5 $member", true);
    row(&driver, "LB.ADD WITHRANK, random update", "LB.ADD board WITHRANK INCR 5 $member", true);
    one(&driver, "FLUSHALL");
    while (registry_free_step(driver.server.registry, UINT32_MAX)) {}
    before = memory_used();
    one(&driver,
        "LB.LEAGUE CREATE weekly FIELD points 22 TIME 31 S PERIOD DAY ROOM 30 TIERS 10 UP 5 "
        "DOWN 5 ARCHIVE 1");
    row(&driver, "LB.LEAGUE ADD, new member", "LB.LEAGUE ADD weekly $score $member", false);
    printf("%-44s %8.1f bytes a member\n", "league", bytes_since(before, driver.members));
    row(&driver, "LB.LEAGUE ADD, random update", "LB.LEAGUE ADD weekly INCR 5 $member", true);
    row(&driver, "LB.LEAGUE GET", "LB.LEAGUE GET weekly $member", true);
    pass_day(&driver);
    steps(&driver, "all rooms begin anew", registry_roll_due);
    row(&driver, "LB.LEAGUE ADD, first of the next period", "LB.LEAGUE ADD weekly INCR 5 $member",
        false);
    printf("%-44s %8.1f bytes a member\n", "league and one archive",
           bytes_since(before, driver.members));
    pass_day(&driver);
    steps(&driver, "all rooms begin anew again", registry_roll_due);
    steps(&driver, "archives go, all members have come", registry_expire_due);
    pass_day(&driver);
    steps(&driver, "no room begins anew", registry_roll_due);
    steps(&driver, "archives go, no member has come", registry_expire_due);
    printf("%-44s %8.1f bytes a member\n", "without rooms", bytes_since(before, driver.members));
    return 0;
}
