/* LB.WHERE, sentence by sentence; and what all commands that run in steps have in common. */
#include "server/sessions/job.h"
#include "tests/server/zset_fixture.h"
#include "tests/support/loop_server.h"
#include "tests/support/shadow.h"
#include "tests/support/wire.h"

#include <sys/socket.h>

ZSET_TEST(the_boards_of_a_member_come_with_its_records) {
    zset_expect(h, "ZADD bare:1 5 ann 7 bob", ":2");
    zset_expect(h, "ZADD bare:2 5 ann", ":1");
    zset_expect(h, "ZADD three:x 9 bob", ":1");
    zset_expect(h, "LB.WHERE ann MATCH *1", "[[bare:1 [ann :1 nil :5]]]");
    zset_expect(h, "LB.WHERE bob MATCH t*", "[[three:x [bob :0 :1767225600000 :9 :0 :0]]]");
    zset_expect(h, "LB.WHERE nobody", "[]");
    zset_expect(h, "LB.WHERE ann MATCH nothing*", "[]");
    zset_expect(h, "SELECT 1", "+OK");
    zset_expect(h, "LB.WHERE ann", "[]");
    const char *both = "[[bare:1 [ann :1 nil :5]] [bare:2 [ann :0 nil :5]]]";
    const char *other = "[[bare:2 [ann :0 nil :5]] [bare:1 [ann :1 nil :5]]]";
    zset_expect(h, "SELECT 0", "+OK");
    const char *reply = zset_run(h, "LB.WHERE ann");
    assert_true(strcmp(reply, both) == 0 || strcmp(reply, other) == 0);
}

ZSET_TEST(a_thousand_boards_are_found_once_each) {
    for (int i = 0; i < 1000; i++) {
        zset_run(h, "ZADD bare:%d %d ann", i, i);
        zset_run(h, "ZADD bare:%d 2000 bob", i);
    }
    const char *reply = harness_run(h, h->server.sessions.first, "LB.WHERE ann");
    assert_memory_equal(reply, "*1000\r\n*2\r\n", 11);
    for (int i = 0; i < 1000; i++) {
        const char *record = formatted(":1\r\n$-1\r\n:%d\r\n", i);
        const char *at = strstr(reply, record);
        assert_non_null(at);
        assert_null(strstr(at + 1, record));
    }
}

ZSET_TEST(expired_boards_and_archives_are_as_of_now) {
    zset_expect(h, "ZADD bare:1 5 ann", ":1");
    zset_expect(h, "PEXPIRE bare:1 1", ":1");
    zset_expect(h, "LB.CREATE d FIELD a 9 PERIOD DAY", "+OK");
    zset_expect(h, "ZADD d 5 ann", ":1");
    h->wall_us += INT64_C(86400000000);
    shadow_expire(h->shadow, 0, BYTES("bare:1")); /* here it is only passed over */
    zset_expect(h, "LB.WHERE ann", "[[d@2026-01-01 [ann :0 nil :5]]]");
}

ZSET_TEST(it_is_refused_where_it_could_not_wait) {
    zset_expect(h, "MULTI", "+OK");
    zset_expect(h, "LB.WHERE ann", "-ERR Command not allowed inside a transaction");
    zset_expect(h, "DISCARD", "+OK");
    zset_expect(h, "LB.WHERE \"\"", "-ERR member is 0 bytes long: 1..65536 are allowed");
    zset_expect(h, "LB.WHERE ann MATCH", "-ERR syntax error");
    zset_expect(h, "LB.WHERE ann FAST", "-ERR syntax error");
}

ZSET_TEST(a_reply_over_the_output_limit_is_an_error) {
    for (int i = 0; i < 1000; i++) {
        zset_run(h, "ZADD bare:%d %d ann", i, i);
    }
    zset_expect(h, "CONFIG SET client-output-buffer-limit \"normal 20000 0 0\"", "+OK");
    zset_expect_part(h, "LB.WHERE ann", "use MATCH to ask for fewer boards");
    assert_null(strstr(zset_run(h, "LB.WHERE ann MATCH bare:1*"), "ERR"));
}

/* ---- waiting ---- */

enum { BOARDS = 3000 };

static void make_boards(struct loop_server *f, int client) {
    struct text requests = {.at = NULL}, replies = {.at = NULL};
    for (int i = 0; i < BOARDS; i++) {
        text_format(&requests, "ZADD b:%d 5 ann 7 bob\r\n", i);
        text_format(&replies, ":2\r\n");
    }
    loop_send_all(f, client, requests.at, requests.size);
    loop_expect(f, client, replies.at);
    text_free(&requests);
    text_free(&replies);
}

/* Turn until a search has begun; on a fast machine it may be over. */
static void wait_for_search(struct loop_server *f) {
    struct loop_wait wait = {0};
    uint32_t index = command_find_full_name(bytes_from_text("lb.where"));
    uint64_t *calls = &f->server->stats.commands[index].calls.count;
    *calls = 0;
    while (*calls == 0) {
        assert_true(loop_turn_and_wait(f, &wait));
    }
}

static void wait_for_no_job(struct loop_server *f) {
    struct loop_wait wait = {0};
    while (f->server->jobs.count > 0) {
        assert_true(loop_turn_and_wait(f, &wait));
    }
}

LOOP_SERVER_TEST(later_requests_wait_and_other_clients_do_not, NULL) {
    int ann = loop_connect(f), bob = loop_connect(f);
    make_boards(f, ann);
    loop_send(ann, "LB.WHERE ann MATCH b:1\r\nECHO later\r\n");
    wait_for_search(f);
    loop_ask(f, bob, "PING\r\n", "+PONG\r\n");
    loop_expect_prefix(f, ann, "*1\r\n*2\r\n$3\r\nb:1\r\n");
    loop_send(ann, "ECHO last\r\n");
    loop_expect_prefix(f, ann, "$4\r\nlast");
    assert_int_equal(f->server->jobs.count, 0);
}

LOOP_SERVER_TEST(a_client_that_leaves_ends_its_search, NULL) {
    int ann = loop_connect(f), bob = loop_connect(f), eve = loop_connect(f);
    make_boards(f, eve);
    loop_send(ann, "LB.WHERE ann\r\n");
    wait_for_search(f);
    loop_close(f, ann);
    wait_for_no_job(f);
    loop_send(bob, "CLIENT SETNAME bob\r\nLB.WHERE ann\r\n");
    wait_for_search(f);
    loop_ask(f, eve, "CLIENT KILL TYPE normal SKIPME yes\r\n", ":1\r\n");
    wait_for_no_job(f);
}

LOOP_SERVER_TEST(a_client_that_sends_no_more_is_answered, NULL) {
    int ann = loop_connect(f);
    make_boards(f, ann);
    loop_send(ann, "LB.WHERE nobody\r\nPING\r\n");
    shutdown(ann, SHUT_WR);
    loop_expect(f, ann, "*0\r\n+PONG\r\n");
    loop_expect_end(f, ann);
}

LOOP_SERVER_TEST(no_more_searches_run_than_are_allowed, NULL) {
    int eve = loop_connect(f);
    make_boards(f, eve);
    /* By sessions without sockets: nothing turns the loop meanwhile. */
    struct session sessions[JOBS_MAX + 1];
    struct reply reply;
    struct bytes args[] = {bytes_from_text("LB.WHERE"), bytes_from_text("ann")};
    const struct request request = {.args = args, .count = 2};
    BUFFER(out, 0);
    for (int i = 0; i <= JOBS_MAX; i++) {
        session_init(&sessions[i], 1000 + (uint64_t)i, 0);
        sessions[i].is_unlimited = true;
        reply_init(&reply, &out, 2);
        execute_request(f->server, &sessions[i], command_find_request(&request), &request, &reply);
        assert_true(i == JOBS_MAX || sessions[i].job != NULL);
    }
    assert_int_equal(reply.error_count, 1);
    assert_memory_equal(out.at, "-TRYAGAIN ", 10);
    for (int i = 0; i < JOBS_MAX; i++) {
        job_leave(f->server, &sessions[i]);
        assert_null(sessions[i].job);
        session_deinit(&sessions[i]);
    }
    session_deinit(&sessions[JOBS_MAX]);
    assert_int_equal(f->server->jobs.count, 0);
}

LOOP_SERVER_TEST(shutdown_ends_a_search, NULL) {
    int ann = loop_connect(f);
    make_boards(f, ann);
    loop_send(ann, "LB.WHERE ann\r\n");
    wait_for_search(f);
    loop_stop(f);
}
