/* See loop_server.h. */
#include "tests/support/loop_server.h"

#include <errno.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/commands/lb/board_task.h"
#include "server/loop/connection.h"
#include "server/replication/replication.h"
#include "server/system/log.h"
#include "tests/support/durable_server.h"
#include "tests/support/process.h"
#include "tests/support/test.h"

enum {
    NOTHING_TURNS = 30,
    BUSY_TURNS = 100,
    WAIT_TURNS_MIN = 10000,
    WAIT_MS = 60000,
    REST_US = 50
};

static void stop_listening(void *context) {
    (void)context;
}

static void release_answers(void *context) {
    tick_output_release_answers(context);
}

static void start_loop(struct loop_server *looped, const char *settings) {
    log_set_level(LOG_WARNING);
    signal(SIGPIPE, SIG_IGN);
    looped->harness = harness_create(settings);
    looped->server = &looped->harness->server;
    looped->server->jobs.resume = board_task_resume;
    looped->tick = (struct tick){.stop_listening = stop_listening};
    assert_int_equal(uv_loop_init(&looped->loop), 0);
    assert_true(tick_init(&looped->tick, &looped->loop, looped->server));
    uv_timer_stop(&looped->tick.second);
}

void loop_begin(struct loop_server *looped, const char *settings) {
    *looped = (struct loop_server){.harness = NULL};
    start_loop(looped, settings);
}

void loop_begin_kept(struct loop_server *looped, const char *settings) {
    *looped = (struct loop_server){.harness = NULL};
    directory_make(looped->directory);
    loop_start_kept(looped, settings);
}

void loop_start_kept(struct loop_server *looped, const char *settings) {
    char text[1024];
    char error[PERSISTENCE_ERROR_MAX];
    snprintf(text, sizeof text, "dir %s\nappenddirname kept\n%s", looped->directory, settings);
    start_loop(looped, text);
    looped->persistence = persistence_open(&looped->server->settings, error);
    assert_non_null(looped->persistence);
    const struct persistence_host host = durable_host_of(looped->server, looped->persistence);
    assert_true(persistence_start(looped->persistence, &host, &looped->loop, release_answers,
                                  &looped->tick, error));
    while (looped->server->durability.is_loading) {
        assert_null(persistence_fatal_error(looped->persistence));
        (void)persistence_step(looped->persistence);
        loop_turn(looped);
    }
}

static void wake(void *tick) {
    tick_wake(tick);
}

void loop_replicate(struct loop_server *looped) {
    struct tick *tick = &looped->tick;
    tick->replicator = replicator_create(looped->server, &looped->loop, wake, tick);
    assert_non_null(tick->replicator);
}

void loop_stop(struct loop_server *looped) {
    ASSERT_VALID(auth_guard_validate, &looped->server->acl.guard);
    tick_shutdown(&looped->tick, true);
    assert_int_equal(uv_run(&looped->loop, UV_RUN_DEFAULT), 0);
    replicator_stop(looped->tick.replicator);
    connection_stop_verifier(&looped->tick.verifier);
    if (looped->persistence != NULL) {
        persistence_stop(looped->persistence);
        assert_int_equal(uv_run(&looped->loop, UV_RUN_DEFAULT), 0);
    }
    assert_int_equal(uv_run(&looped->loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(uv_loop_close(&looped->loop), 0);
    replicator_destroy(looped->tick.replicator);
    if (looped->persistence != NULL) {
        persistence_destroy(looped->persistence);
    }
    looped->persistence = NULL;
    looped->server->persistence = NULL;
    tick_deinit(&looped->tick);
    harness_destroy(looped->harness);
    looped->harness = NULL;
}

void loop_end(struct loop_server *looped) {
    if (looped->harness != NULL) {
        loop_stop(looped);
    }
    for (int i = 0; i < looped->client_count; i++) {
        loop_close(looped, looped->clients[i]);
    }
    if (looped->directory[0] != '\0') {
        directory_remove(looped->directory);
    }
}

/* ---- clients ---- */

int loop_connect(struct loop_server *looped) {
    int ends[2];
    int slot = 0;
    while (slot < looped->client_count && looped->clients[slot] >= 0) {
        slot++;
    }
    assert_true(slot < LOOP_CLIENTS_MAX);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    const struct accepted accepted = {.fd = ends[0], .is_unix_socket = true};
    assert_true(connection_open(&looped->tick, &accepted));
    looped->clients[slot] = ends[1];
    looped->client_count += slot == looped->client_count;
    return ends[1];
}

void loop_close(struct loop_server *looped, int client) {
    for (int i = 0; client >= 0 && i < looped->client_count; i++) {
        if (looped->clients[i] == client) {
            looped->clients[i] = -1;
            close(client);
            return;
        }
    }
}

void loop_send_bytes(int client, const void *bytes, size_t size) {
    assert_int_equal(write(client, bytes, size), (ssize_t)size);
}

void loop_send(int client, const char *text) {
    loop_send_bytes(client, text, strlen(text));
}

/* ---- turning ---- */

void loop_turn(struct loop_server *looped) {
    uv_run(&looped->loop, UV_RUN_NOWAIT);
}

void loop_turn_some(struct loop_server *looped) {
    for (int i = 0; i < NOTHING_TURNS; i++) {
        loop_turn(looped);
        usleep(REST_US);
    }
}

/* Rests, because another thread may need this processor. */
bool loop_turn_and_wait(struct loop_server *looped, struct loop_wait *wait) {
    loop_turn(looped);
    if (wait->turns++ == 0) {
        wait->began_ms = process_now_ms();
    }
    if (wait->turns > BUSY_TURNS) {
        usleep(REST_US);
    }
    return wait->turns < WAIT_TURNS_MIN || process_now_ms() < wait->began_ms + WAIT_MS;
}

void loop_wait_clients(struct loop_server *looped, uint32_t count) {
    struct loop_wait wait = {0};
    while (looped->server->sessions.count != count) {
        assert_true(loop_turn_and_wait(looped, &wait));
    }
}

void loop_second(struct loop_server *looped) {
    looped->harness->wall_us += 1000000;
    looped->tick.second.timer_cb(&looped->tick.second);
}

void loop_send_all(struct loop_server *looped, int client, const void *bytes, size_t size) {
    const char *at = bytes;
    struct loop_wait wait = {0};
    while (size > 0) {
        ssize_t part = write(client, at, size);
        assert_true(part > 0 || errno == EAGAIN || errno == EINTR);
        at += part > 0 ? part : 0;
        size -= part > 0 ? (size_t)part : 0;
        assert_true(loop_turn_and_wait(looped, &wait));
    }
}

/* ---- what arrives ---- */

void loop_expect(struct loop_server *looped, int client, const char *expected) {
    static char got[LOOP_REPLY_MAX];
    size_t size = 0;
    struct loop_wait wait = {0};
    while (size < strlen(expected) && loop_turn_and_wait(looped, &wait)) {
        ssize_t part = read(client, got + size, sizeof got - 1 - size);
        size += part > 0 ? (size_t)part : 0;
    }
    got[size] = '\0';
    assert_string_equal(got, expected);
}

void loop_ask(struct loop_server *looped, int client, const char *request, const char *expected) {
    loop_send(client, request);
    loop_expect(looped, client, expected);
}

void loop_ask_anew(struct loop_server *looped, const char *request, const char *expected) {
    int client = loop_connect(looped);
    loop_ask(looped, client, request, expected);
    loop_close(looped, client);
}

void loop_expect_prefix(struct loop_server *looped, int client, const char *prefix) {
    static char got[LOOP_REPLY_MAX];
    ssize_t size = -1;
    struct loop_wait wait = {0};
    while (size <= 0 && loop_turn_and_wait(looped, &wait)) {
        size = read(client, got, sizeof got);
    }
    assert_true(size >= (ssize_t)strlen(prefix));
    assert_memory_equal(got, prefix, strlen(prefix));
}

void loop_expect_nothing(struct loop_server *looped, int client) {
    char byte;
    loop_turn_some(looped);
    ssize_t size = read(client, &byte, 1);
    assert_true(size < 0 && errno == EAGAIN);
}

void loop_expect_end(struct loop_server *looped, int client) {
    char byte;
    ssize_t size = -1;
    struct loop_wait wait = {0};
    while (size < 0 && loop_turn_and_wait(looped, &wait)) {
        size = read(client, &byte, 1);
    }
    assert_int_equal(size, 0);
}
