/* A server in one process, without sockets, whose clock is the benchmark's. */
#ifndef BENCH_DRIVER_H
#define BENCH_DRIVER_H

#include "bench/request.h"
#include "codec/memory.h"
#include "server/commands/table.h"
#include "server/dispatch/execute.h"
#include "server/loop/connection.h"

/* Zeroed at first. */
struct driver {
    struct server server;
    struct connection connection;
    struct resp_arena arguments;
    struct buffer input, output;
    struct random random;
    int64_t now_us; /* server_update_time follows */
};

static inline int64_t driver_wall_us(void *context) {
    const struct driver *driver = context;
    return driver->now_us;
}

static inline void driver_start(struct driver *driver) {
    static const char settings[] = "slowlog-log-slower-than -1\n";
    struct server *server = &driver->server;
    char error[SETTING_ERROR_MAX];
    driver->random.state = 1;
    driver->now_us = INT64_C(1767225600000000); /* 2026-01-01 */
    server->clock.wall_us = driver_wall_us;
    server->clock.monotonic_us = driver_wall_us;
    server->clock.context = driver;
    server->hash_seed = 1;
    clock_calibrate();
    execute_init(command_table);
    CHECK(settings_init(&server->settings));
    CHECK(setting_file_apply_text(&server->settings, bytes_from_text(settings), "bench", error));
    CHECK(settings_finish(&server->settings, error));
    CHECK(server_life_init(server, command_count()));
    session_init(&driver->connection.session, server->sessions.next_id++, server->clock.now_ms);
    CHECK(server_add_session(server, &driver->connection.session));
    buffer_init(&driver->input, 0);
    buffer_init(&driver->output, 0);
}

/* count requests that were written to input. */
__attribute__((noinline, unused)) static void driver_run(struct driver *driver, uint32_t count) {
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

static inline void driver_one(struct driver *driver, const char *words) {
    buffer_clear(&driver->input);
    request_append(&driver->input, words, 0, 0);
    driver_run(driver, 1);
}

#endif
