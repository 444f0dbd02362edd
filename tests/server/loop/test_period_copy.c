/* PERIOD ... COPY: at the end of a period the loop copies a long board in steps, and answers meanwhile. */
#include "tests/support/test.h"

#include <string.h>

#include "codec/memory.h"
#include "server/loop/connection.h"
#include "tests/support/loop_server.h"
#include "tests/support/wire.h"

enum { MEMBERS = 20000, BATCH = 500 };
#define DAY_US INT64_C(86400000000)

static void add_members(struct loop_server *f, int client) {
    loop_ask(f, client, "LB.CREATE a FIELD score 32 PERIOD DAY COPY\r\n", "+OK\r\n");
    for (int i = 0; i < MEMBERS; i += BATCH) {
        TEXT(request);
        text_format(&request, "ZADD a");
        for (int j = i; j < i + BATCH; j++) {
            text_format(&request, " %d member:%d", j * 7919 % 1000, j);
        }
        text_format(&request, "\r\n");
        loop_send_all(f, client, request.at, request.size);
        loop_expect(f, client, ":500\r\n");
    }
}

static const struct registry_key *find(const struct loop_server *f, const char *name) {
    return registry_peek(f->server->registry, 0, bytes_from_text(name), f->server->clock.now_ms);
}

static void wait_for(struct loop_server *f, const char *name) {
    struct loop_wait wait = {0};
    while (find(f, name) == NULL) {
        assert_true(loop_turn_and_wait(f, &wait));
    }
}

/* A server with a long board "a", and a client. */
#define COPY_TEST(name)                                                                            \
    static void name##_in(struct loop_server *f, int client);                                      \
    TEST(name) {                                                                                   \
        struct loop_server copying;                                                                \
        loop_begin_kept(&copying, "appendonly yes\n");                                             \
        int client = loop_connect(&copying);                                                       \
        add_members(&copying, client);                                                             \
        name##_in(&copying, client);                                                               \
        loop_end(&copying);                                                                        \
    }                                                                                              \
    static void name##_in(struct loop_server *f, int client)

COPY_TEST(others_are_answered_while_an_archive_is_copied) {
    int changes = 0;
    f->harness->wall_us += DAY_US;
    while (find(f, "a@2026-01-01") == NULL) {
        loop_ask(f, client, formatted("ZADD a %d new:%d\r\n", changes % 1000, changes), ":1\r\n");
        changes++;
        assert_true(changes < MEMBERS);
    }
    assert_true(changes > 3);
    uint32_t count = board_count(&find(f, "a@2026-01-01")->board);
    assert_in_range(count, MEMBERS, MEMBERS + (uint32_t)changes);
    loop_ask(f, client, "ZCARD a\r\n", formatted(":%d\r\n", MEMBERS + changes));
}

COPY_TEST(it_is_kept_and_there_after_a_restart) {
    f->harness->wall_us += DAY_US;
    wait_for(f, "a@2026-01-01");
    loop_stop(f);
    loop_start_kept(f, "appendonly yes\n");
    client = loop_connect(f);
    loop_ask(f, client, "ZCARD a@2026-01-01\r\n", formatted(":%d\r\n", MEMBERS));
    loop_ask(f, client, "ZCARD a\r\n", formatted(":%d\r\n", MEMBERS));
}

COPY_TEST(while_the_system_brings_memory_it_waits_a_millisecond) {
    memory_pretend_behind(true);
    f->harness->wall_us += DAY_US;
    for (int i = 0; i < 1000; i++) {
        loop_turn(f);
    }
    assert_null(find(f, "a@2026-01-01"));
    assert_false(f->tick.is_idle_active);
    assert_true(f->tick.wake_at_ms == f->server->clock.now_ms + 1);
    loop_ask(f, client, "ZCARD a\r\n", formatted(":%d\r\n", MEMBERS));
    memory_pretend_behind(false);
    wait_for(f, "a@2026-01-01");
    loop_turn_some(f);
    assert_true(f->tick.wake_at_ms > f->server->clock.now_ms + 1000);
}

COPY_TEST(above_maxmemory_it_waits) {
    loop_ask(f, client, "CONFIG SET maxmemory 1mb\r\n", "+OK\r\n");
    f->harness->wall_us += DAY_US;
    for (int i = 0; i < 1000; i++) {
        loop_turn(f);
    }
    assert_null(find(f, "a@2026-01-01"));
    loop_ask(f, client, "ZCARD a\r\n", formatted(":%d\r\n", MEMBERS));
    loop_ask(f, client, "CONFIG SET maxmemory 0\r\n", "+OK\r\n");
    wait_for(f, "a@2026-01-01");
}
