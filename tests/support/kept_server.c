/* See kept_server.h. */
#include "tests/support/kept_server.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include <unistd.h>

#include "tests/support/registry_storm.h"

enum { SETTLE_TURNS = 20000, STUCK_TURNS = 20, WAIT_MS = 1 };

/* As main does it. */
static void kept_end_if_fatal(const struct kept_server *kept) {
    if (kept->persistence != NULL && persistence_fatal_error(kept->persistence) != NULL) {
        fflush(stdout);
        _exit(EXIT_FAILURE);
    }
}

static void on_alive(uv_timer_t *timer) {
    (void)timer;
}

static void on_changed(void *context) {
    struct kept_server *kept = context;
    kept_end_if_fatal(kept);
    kept->changed_count++;
}

static void count_change(void *context, uint32_t database, struct bytes name) {
    (void)database;
    (void)name;
    struct server *server = context;
    server->durability.change_count++;
}

static void begin(struct kept_server *kept, const char *directory, const char *settings) {
    char text[1024];
    int size = snprintf(text, sizeof text, "dir %s\nappenddirname kept\n%s", directory, settings);
    CHECK(size > 0 && (size_t)size < sizeof text);
    *kept = (struct kept_server){.harness = harness_create(text)};
    kept->server = &kept->harness->server;
    registry_destroy(kept->server->registry);
    kept->server->registry = storm_create_registry(0x5eed);
    registry_set_listener(kept->server->registry, count_change, kept->server);
    CHECK(uv_loop_init(&kept->loop) == 0);
    CHECK(uv_timer_init(&kept->loop, &kept->alive) == 0);
    CHECK(uv_timer_start(&kept->alive, on_alive, 1000000000, 0) == 0);
}

void kept_stop(struct kept_server *kept) {
    persistence_stop(kept->persistence);
    kept_end_if_fatal(kept);
    uv_close((uv_handle_t *)&kept->alive, NULL);
    CHECK(uv_run(&kept->loop, UV_RUN_DEFAULT) == 0);
    CHECK(uv_loop_close(&kept->loop) == 0);
    persistence_destroy(kept->persistence);
    kept->server->persistence = NULL;
    harness_destroy(kept->harness);
}

/* What of a server persistence keeps and goes by. */
struct persistence_host kept_host_of(struct server *server, struct persistence *persistence) {
    server->persistence = persistence;
    return (struct persistence_host){
        .settings = &server->settings,
        .registry = server->registry,
        .clock = &server->clock,
        .state = &server->durability,
    };
}

bool kept_open(struct kept_server *kept, const char *directory, const char *settings, char *error) {
    begin(kept, directory, settings);
    kept->persistence = persistence_open(&kept->server->settings, error);
    const struct persistence_host host = kept_host_of(kept->server, kept->persistence);
    bool is_started =
        kept->persistence != NULL &&
        persistence_start(kept->persistence, &host, &kept->loop, on_changed, kept, error);
    if (!is_started) {
        kept_stop(kept);
    }
    return is_started;
}

void kept_load_step(struct kept_server *kept) {
    (void)persistence_step(kept->persistence);
    kept_turn(kept);
}

void kept_start(struct kept_server *kept, const char *directory, const char *settings) {
    char error[PERSISTENCE_ERROR_MAX];
    if (!kept_open(kept, directory, settings, error)) {
        fprintf(stderr, "%s\n", error);
        CHECK(false);
    }
    while (kept->server->durability.is_loading) {
        kept_load_step(kept);
    }
    kept_turn(kept);
}

void kept_set_time(struct kept_server *kept, int64_t now_ms) {
    struct harness *harness = kept->harness;
    int64_t now_us = harness_now_us(harness);
    if (now_us < now_ms * 1000) {
        harness->wall_us += now_ms * 1000 - now_us;
        now_us = now_ms * 1000;
    }
    harness->step_us = now_us - harness->wall_us; /* the wall clock is right */
    server_update_time(kept->server);
}

void kept_end_tick(struct kept_server *kept) {
    persistence_end_tick(kept->persistence);
    (void)persistence_step(kept->persistence);
}

void kept_turn(struct kept_server *kept) {
    uv_run(&kept->loop, UV_RUN_NOWAIT);
}

void kept_second(struct kept_server *kept) {
    kept->harness->wall_us += 1000000;
    server_update_time(kept->server);
    persistence_second(kept->persistence);
}

struct persistence_info kept_describe(const struct kept_server *kept) {
    struct persistence_info info;
    persistence_describe(kept->persistence, &info);
    return info;
}

void kept_wait(const struct kept_server *kept) {
    struct pollfd news = {.fd = uv_backend_fd(&kept->loop), .events = POLLIN};
    (void)poll(&news, 1, WAIT_MS);
}

bool kept_settle(struct kept_server *kept) {
    int stuck_turns = 0;
    for (int turns = 0; turns < SETTLE_TURNS && stuck_turns < STUCK_TURNS; turns++) {
        bool has_more = persistence_end_tick(kept->persistence);
        has_more |= persistence_step(kept->persistence);
        kept_turn(kept);
        struct persistence_info info = kept_describe(kept);
        bool is_written = !info.is_journal_on || info.written_group == info.group;
        if (!info.is_saving && is_written) {
            return true;
        }
        stuck_turns = info.is_journal_ok ? 0 : stuck_turns + 1;
        if (!has_more) {
            kept_wait(kept);
        }
    }
    return false;
}
