/* The whole server against its naive twin: random commands with ties, expiry and a clock that jumps
 * both ways go to both, as bytes; every reply is compared, and every thousand commands
 * everything that either holds.
 *
 *     twin [COMMANDS]      LEADERBOARD_TEST_SEED=n repeats a run
 *
 * Prints "N commands, M differences". */
#include "tests/support/harness.h"
#include "tests/support/twin_requests.h"

enum {
    COMMANDS_DEFAULT = 300000,
    COMMANDS_SHORT = 100000, /* LEADERBOARD_TEST_SHORT: make test */
    DUMP_EVERY = 1000,
    DIFFERENCES_SHOWN = 10,
};

/* What a run holds. */
struct run {
    struct harness *harness;
    struct session *sessions[2];
    struct twin_server twin;
    struct random random;
    int64_t clock_us; /* the twin's: the latest wall time */
    struct twin_requests requests;
    uint64_t commands, differences, errors;
    uint32_t members_max; /* on one board, as the comparisons saw it */
};

static uint64_t below(struct run *run, uint64_t limit) {
    return random_below(&run->random, limit);
}

/* Mostly within the same second, sometimes minutes on, sometimes back: by more than a minute, or
 * the clock would run slower for a while, and durations not. */
static void step_clock(struct run *run) {
    int64_t *wall_us = &run->harness->wall_us;
    uint64_t kind = below(run, 1000);
    if (kind < 300) {
        *wall_us += (int64_t)below(run, 2000);
    } else if (kind < 400) {
        *wall_us += (int64_t)below(run, 3000000);
    } else if (kind < 408) {
        *wall_us += (int64_t)below(run, 90) * 1000000;
    } else if (kind < 410) {
        *wall_us -= (int64_t)(61 + below(run, 7200)) * 1000000;
    }
    run->clock_us = harness_now_us(run->harness);
}

static void show(struct run *run, const char *expected, const char *answered) {
    if (++run->differences > DIFFERENCES_SHOWN) {
        return;
    }
    print_error("command %llu:", (unsigned long long)run->commands);
    for (uint32_t i = 0; i < run->requests.arg_count; i++) {
        print_error(" %.*s", (int)run->requests.args[i].size, run->requests.args[i].at);
    }
    print_error("\n--- expected\n%s\n--- answered\n%s\n", expected, answered);
}

/* Expired keys count until they are removed, and the twin removes them at once. */
static void expire_everything(struct run *run) {
    struct server *server = &run->harness->server;
    server_update_time(server);
    registry_expiry_remove_due(server->registry, server->clock.now_ms, UINT32_MAX);
}

static void run_command(struct run *run) {
    struct session *session = run->sessions[below(run, 2)];
    if (below(run, 100) == 0) {
        harness_run_format(run->harness, session, "SELECT %d",
                           below(run, 2) == 0 ? 0 : (int)below(run, TWIN_REQUESTS_DATABASES));
    }
    step_clock(run);
    twin_requests_make(&run->requests);
    if (bytes_is(run->requests.args[0], "DBSIZE")) {
        expire_everything(run);
    }
    twin_server_run(&run->twin, run->requests.args, run->requests.arg_count, run->clock_us,
                    session->database, session->protocol);
    const char *answered =
        harness_run_args(run->harness, session, run->requests.args, run->requests.arg_count);
    run->commands++;
    run->errors += answered[0] == '-';
    if (!twin_server_expects(&run->twin, answered)) {
        show(run, run->twin.reply, answered);
    }
}

/* What the event loop does between commands must not show. */
static void do_background_work(struct run *run) {
    struct server *server = &run->harness->server;
    if (below(run, 10) == 0) {
        server_update_time(server);
        registry_expiry_remove_due(server->registry, server->clock.now_ms, (uint32_t)below(run, 3));
        registry_free_step(server->registry, (uint32_t)below(run, 50));
    }
}

static void compare_everything(struct run *run) {
    struct server *server = &run->harness->server;
    char difference[256];
    server_update_time(server);
    twin_server_expire(&run->twin, server->clock.now_ms);
    if (!twin_server_equals(&run->twin, server->registry, server->clock.now_ms, difference,
                            sizeof difference)) {
        show(run, "(the same on both sides)", difference);
    }
    for (uint32_t i = 0; i < run->twin.key_count; i++) {
        uint32_t count = run->twin.keys[i]->count;
        run->members_max = count > run->members_max ? count : run->members_max;
    }
}

static void begin(struct run *run) {
    char settings[4096];
    size_t size = (size_t)snprintf(settings, sizeof settings, "default-layout default\n");
    for (size_t i = 0; twin_requests_layouts[i].text != NULL; i++) {
        size += (size_t)snprintf(settings + size, sizeof settings - size,
                                 "layout layout%zu %s\nboard %s* layout%zu\n", i,
                                 twin_requests_layouts[i].text, twin_requests_layouts[i].prefix, i);
    }
    run->harness = harness_create(settings);
    run->sessions[0] = harness_connect(run->harness);
    run->sessions[1] = harness_connect(run->harness);
    run->sessions[1]->protocol = 3;
    run->clock_us = run->harness->wall_us;
    twin_server_init(&run->twin, twin_requests_layouts);
}

static uint64_t commands_max = COMMANDS_DEFAULT;

TEST(a_server_and_its_naive_twin_answer_alike) {
    OWNED struct run *run = calloc(1, sizeof *run);
    assert_non_null(run);
    run->random = random_begin("twin");
    begin(run);
    twin_requests_begin(&run->requests, &run->random);
    while (run->commands < commands_max && run->differences < DIFFERENCES_SHOWN) {
        run_command(run);
        do_background_work(run);
        if (run->commands % DUMP_EVERY == 0 || run->commands == commands_max) {
            compare_everything(run);
        }
    }
    printf("%llu commands, %llu differences\n", (unsigned long long)run->commands,
           (unsigned long long)run->differences);
    printf("%llu errors answered, %u members on the largest board, clock %.1f hours on\n",
           (unsigned long long)run->errors, run->members_max,
           (double)(run->clock_us - HARNESS_START_US) / 3.6e9);
    assert_int_equal(run->differences, 0);
    twin_server_deinit(&run->twin);
    harness_destroy(run->harness);
}

int main(int argc, char **argv) {
    if (is_short_run()) {
        commands_max = COMMANDS_SHORT;
    }
    if (argc > 1) {
        commands_max = strtoull(argv[1], NULL, 10);
    }
    return test_run(NULL, NULL);
}
