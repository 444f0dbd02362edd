/* See durable_server.h. */
#include "tests/support/durable_server.h"

#include <poll.h>
#include <unistd.h>

#include "tests/support/process.h"
#include "tests/support/registry_workload.h"
#include "tests/support/test.h"

enum { SETTLE_MS = 120000, STUCK_TURNS = 20, WAIT_MS = 1 };

/* As main does it. */
static void end_if_fatal(const struct durable_server *durable) {
    if (durable->persistence != NULL && persistence_fatal_error(durable->persistence) != NULL) {
        fflush(stdout);
        _exit(EXIT_FAILURE);
    }
}

static void on_alive(uv_timer_t *timer) {
    (void)timer;
}

static void on_changed(void *context) {
    struct durable_server *durable = context;
    end_if_fatal(durable);
    durable->changed_count++;
}

static void count_change(void *context, uint32_t database, struct bytes name) {
    (void)database;
    (void)name;
    struct server *server = context;
    server->durability.change_count++;
}

static void begin(struct durable_server *durable, const char *directory, const char *settings) {
    char text[1024];
    int size = snprintf(text, sizeof text, "dir %s\nappenddirname kept\n%s", directory, settings);
    CHECK(size > 0 && (size_t)size < sizeof text);
    *durable = (struct durable_server){.harness = harness_create(text)};
    durable->server = &durable->harness->server;
    registry_destroy(durable->server->registry);
    durable->server->registry = workload_create_registry(0x5eed);
    registry_set_listener(durable->server->registry, count_change, durable->server);
    CHECK(uv_loop_init(&durable->loop) == 0);
    CHECK(uv_timer_init(&durable->loop, &durable->alive) == 0);
    CHECK(uv_timer_start(&durable->alive, on_alive, 1000000000, 0) == 0);
}

void durable_stop(struct durable_server *durable) {
    persistence_stop(durable->persistence);
    end_if_fatal(durable);
    uv_close((uv_handle_t *)&durable->alive, NULL);
    CHECK(uv_run(&durable->loop, UV_RUN_DEFAULT) == 0);
    CHECK(uv_loop_close(&durable->loop) == 0);
    persistence_destroy(durable->persistence);
    durable->server->persistence = NULL;
    harness_destroy(durable->harness);
}

/* What of a server persistence keeps and goes by. */
struct persistence_host durable_host_of(struct server *server, struct persistence *persistence) {
    server->persistence = persistence;
    return (struct persistence_host){
        .settings = &server->settings,
        .registry = server->registry,
        .clock = &server->clock,
        .state = &server->durability,
    };
}

bool durable_open(struct durable_server *durable, const char *directory, const char *settings,
                  char *error) {
    begin(durable, directory, settings);
    durable->persistence = persistence_open(&durable->server->settings, error);
    const struct persistence_host host = durable_host_of(durable->server, durable->persistence);
    bool is_started =
        durable->persistence != NULL &&
        persistence_start(durable->persistence, &host, &durable->loop, on_changed, durable, error);
    if (!is_started) {
        durable_stop(durable);
    }
    return is_started;
}

void durable_load_step(struct durable_server *durable) {
    (void)persistence_step(durable->persistence);
    durable_turn(durable);
}

void durable_start(struct durable_server *durable, const char *directory, const char *settings) {
    char error[PERSISTENCE_ERROR_MAX];
    if (!durable_open(durable, directory, settings, error)) {
        fprintf(stderr, "%s\n", error);
        CHECK(false);
    }
    while (durable->server->durability.is_loading) {
        durable_load_step(durable);
    }
    durable_turn(durable);
}

void durable_set_time(struct durable_server *durable, int64_t now_ms) {
    struct harness *harness = durable->harness;
    int64_t now_us = harness_now_us(harness);
    if (now_us < now_ms * 1000) {
        harness->wall_us += now_ms * 1000 - now_us;
        now_us = now_ms * 1000;
    }
    harness->step_us = now_us - harness->wall_us; /* the wall clock is right */
    server_update_time(durable->server);
}

void durable_end_tick(struct durable_server *durable) {
    persistence_end_tick(durable->persistence);
    (void)persistence_step(durable->persistence);
}

void durable_turn(struct durable_server *durable) {
    uv_run(&durable->loop, UV_RUN_NOWAIT);
}

void durable_second(struct durable_server *durable) {
    durable->harness->wall_us += 1000000;
    server_update_time(durable->server);
    persistence_second(durable->persistence);
}

struct persistence_info durable_describe(const struct durable_server *durable) {
    struct persistence_info info;
    persistence_describe(durable->persistence, &info);
    return info;
}

void durable_wait(const struct durable_server *durable) {
    struct pollfd news = {.fd = uv_backend_fd(&durable->loop), .events = POLLIN};
    (void)poll(&news, 1, WAIT_MS);
}

bool durable_settle(struct durable_server *durable) {
    int stuck_turns = 0;
    int64_t give_up_at = process_now_ms() + SETTLE_MS;
    while (process_now_ms() < give_up_at && stuck_turns < STUCK_TURNS) {
        bool has_more = persistence_end_tick(durable->persistence);
        has_more |= persistence_step(durable->persistence);
        durable_turn(durable);
        struct persistence_info info = durable_describe(durable);
        bool is_written = !info.is_journal_on || info.written_group == info.group;
        if (!info.is_saving && is_written) {
            return true;
        }
        stuck_turns = info.is_journal_ok ? 0 : stuck_turns + 1;
        if (!has_more) {
            durable_wait(durable);
        }
    }
    return false;
}
