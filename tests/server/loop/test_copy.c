/* COPY of a long value: in steps between the commands of other clients, and as if at one moment. */
#include "server/sessions/job.h"
#include "tests/support/test.h"

#include <string.h>
#include <unistd.h>

#include "codec/memory.h"
#include "server/loop/connection.h"
#include "tests/support/loop_server.h"
#include "tests/support/wire.h"

enum { MEMBERS = 20000, BATCH = 500 };

static void add_members(struct loop_server *f, int client, const char *key, int count) {
    for (int i = 0; i < count; i += BATCH) {
        TEXT(request);
        text_format(&request, "ZADD %s", key);
        for (int j = i; j < i + BATCH; j++) {
            text_format(&request, " %d member:%d", j * 7919 % 1000, j);
        }
        text_format(&request, "\r\n");
        loop_send_all(f, client, request.at, request.size);
        loop_expect(f, client, ":500\r\n");
    }
}

static const struct registry_key *key_of(const struct loop_server *f, const char *name) {
    return registry_peek(f->server->registry, 0, bytes_from_text(name), f->server->clock.now_ms);
}

static void wait_for_job(struct loop_server *f) {
    struct loop_wait wait = {0};
    while (f->server->jobs.count == 0) {
        assert_true(loop_turn_and_wait(f, &wait));
    }
}

static void assert_copied(const struct loop_server *f, const char *from, const char *to) {
    const struct board *a = &key_of(f, from)->board;
    const struct board *b = &key_of(f, to)->board;
    assert_int_equal(board_count(a), board_count(b));
    for (uint32_t rank = 0; rank < board_count(a); rank++) {
        struct board_stored of_a = board_at(a, rank);
        struct board_stored of_b = board_at(b, rank);
        assert_true(of_a.key == of_b.key && name_equal(of_a.member, of_b.member));
    }
}

static int ann, bob; /* the clients of a test */

/* A server with a long board "a", and two clients. */
#define COPY_TEST(name)                                                                            \
    static void name##_in(struct loop_server *f);                                                  \
    TEST(name) {                                                                                   \
        struct loop_server copying;                                                                \
        loop_begin_kept(&copying, "appendonly yes\n");                                             \
        ann = loop_connect(&copying);                                                              \
        bob = loop_connect(&copying);                                                              \
        add_members(&copying, ann, "a", MEMBERS);                                                  \
        name##_in(&copying);                                                                       \
        loop_end(&copying);                                                                        \
    }                                                                                              \
    static void name##_in(struct loop_server *f)

COPY_TEST(others_are_answered_while_a_board_is_copied_and_their_changes_are_in_the_copy) {
    loop_send(ann, "COPY a b\r\nZCARD b\r\n");
    wait_for_job(f);
    int changes = 0;
    while (f->server->jobs.count > 0) {
        loop_ask(f, bob,
                 formatted("ZADD a %d member:%d\r\nZREM a member:%d\r\n", changes % 1000,
                           2 * changes, 2 * changes + 1),
                 ":0\r\n:1\r\n"); /* each may come by itself */
        changes++;
        assert_true(changes < MEMBERS / 2);
    }
    assert_true(changes > 3);
    loop_expect_prefix(f, ann, ":1\r\n");
    /* The last changes may have come behind the copy: those that it shows are a's, in order. */
    loop_send(bob, "COPY a c REPLACE\r\n");
    loop_turn_some(f);
    loop_expect(f, bob, ":1\r\n");
    assert_copied(f, "a", "c");
}

COPY_TEST(it_waits_while_the_system_brings_memory) {
    memory_pretend_behind(true);
    loop_send(ann, "COPY a b\r\n");
    for (int i = 0; i < 1000; i++) {
        loop_turn(f);
    }
    assert_int_equal(f->server->jobs.count, 1);
    assert_false(f->tick.is_idle_active);
    assert_true(f->tick.wake_at_ms == f->server->clock.now_ms + 1);
    memory_pretend_behind(false);
    loop_expect(f, ann, ":1\r\n");
    assert_copied(f, "a", "b");
}

COPY_TEST(a_copy_is_the_same_after_a_restart) {
    loop_ask(f, ann, "COPY a b\r\n", ":1\r\n");
    assert_copied(f, "a", "b");
    loop_stop(f);
    loop_start_kept(f, "appendonly yes\n");
    assert_copied(f, "a", "b");
}

COPY_TEST(a_source_that_goes_while_it_is_copied_is_missing) {
    loop_send(ann, "COPY a b\r\n");
    wait_for_job(f);
    loop_ask(f, bob, "RENAME a z\r\n", "+OK\r\n");
    loop_expect(f, ann, ":0\r\n");
    assert_null(key_of(f, "b"));
    loop_send(ann, "COPY z b\r\n");
    wait_for_job(f);
    loop_ask(f, bob, "FLUSHALL\r\n", "+OK\r\n");
    loop_expect(f, ann, ":0\r\n");
}

COPY_TEST(a_source_that_is_always_replaced_is_copied_all_the_same) {
    add_members(f, ann, "z", MEMBERS);
    loop_send(ann, "COPY a b\r\n");
    wait_for_job(f);
    for (int i = 0; i < 12 && f->server->jobs.count > 0; i++) {
        loop_send(bob,
                  i % 2 == 0 ? "RENAME a x\r\nRENAME z a\r\n" : "RENAME a z\r\nRENAME x a\r\n");
        loop_expect(f, bob, "+OK\r\n+OK\r\n");
        loop_turn(f);
    }
    loop_expect(f, ann, ":1\r\n");
    assert_int_equal(board_count(&key_of(f, "b")->board), MEMBERS);
}

COPY_TEST(a_destination_that_comes_meanwhile_is_kept_without_replace) {
    loop_send(ann, "COPY a b\r\n");
    wait_for_job(f);
    loop_ask(f, bob, "ZADD b 1 x\r\n", ":1\r\n");
    loop_expect(f, ann, ":0\r\n");
    assert_int_equal(board_count(&key_of(f, "b")->board), 1);
    loop_ask(f, ann, "COPY a b REPLACE\r\n", ":1\r\n");
    assert_copied(f, "a", "b");
}

COPY_TEST(in_a_transaction_a_copy_is_made_at_once) {
    loop_ask(f, ann, "MULTI\r\nCOPY a b\r\nZADD a 5 new\r\nZCARD b\r\nEXEC\r\n",
             "+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*3\r\n:1\r\n:1\r\n:20000\r\n");
}

COPY_TEST(while_writes_are_paused_no_copy_is_finished) {
    loop_send(ann, "COPY a b\r\n");
    wait_for_job(f);
    loop_ask(f, bob, "CLIENT PAUSE 100000 WRITE\r\n", "+OK\r\n");
    loop_expect_nothing(f, ann);
    assert_null(key_of(f, "b"));
    loop_ask(f, bob, "CLIENT UNPAUSE\r\n", "+OK\r\n");
    loop_expect(f, ann, ":1\r\n");
}

COPY_TEST(a_copy_whose_client_is_gone_is_finished) {
    loop_send(ann, "COPY a b\r\n");
    wait_for_job(f);
    loop_ask(f, bob, "CLIENT KILL ID 1\r\n", ":1\r\n");
    struct loop_wait wait = {0};
    while (f->server->jobs.count > 0) {
        assert_true(loop_turn_and_wait(f, &wait));
    }
    assert_copied(f, "a", "b");
}

COPY_TEST(copies_that_begin_below_maxmemory_end_where_it_is_passed) {
    enum { COPIES = 12 };
    const struct registry_key *key = key_of(f, "a");
    f->server->settings.maxmemory =
        memory_used() + 2 * registry_memory_size(f->server->registry, key);
    for (int i = 0; i < COPIES; i++) {
        int client = loop_connect(f);
        loop_send(client, formatted("COPY a b%d\r\n", i));
    }
    wait_for_job(f);
    while (f->server->jobs.count > 0) {
        assert_true(memory_used() < f->server->settings.maxmemory + 1024 * 1024);
        loop_turn(f);
    }
}

COPY_TEST(a_copy_that_finds_no_room_for_a_job_is_bounded_as_other_long_commands_are) {
    add_members(f, ann, "long", 3 * MEMBERS);
    f->server->settings.busy_command_limit_ms = 1;
    for (int i = 0; f->server->jobs.count < JOBS_MAX; i++) {
        uint32_t count = f->server->jobs.count;
        int client = loop_connect(f);
        loop_send(client, formatted("COPY a b%d\r\n", i));
        while (f->server->jobs.count <= count) {
            loop_turn(f);
            count = f->server->jobs.count < count ? f->server->jobs.count : count;
        }
        loop_close(f, client); /* the copy goes on */
    }
    loop_send(bob, "COPY long c\r\n");
    loop_expect_prefix(f, bob, "-TOOLONG COPY");
    while (f->server->jobs.count > 0) {
        loop_turn(f);
    }
}
