/* CLIENT PAUSE on the loop: while writes wait, nothing changes by itself either. */
#include "tests/support/test.h"

#include <string.h>
#include <unistd.h>

#include "server/loop/connection.h"
#include "tests/support/loop_server.h"

static uint64_t effects_of(const struct loop_server *f) {
    return f->server->durability.effect_count;
}

static void wait_for_effects(struct loop_server *f, uint64_t above) {
    struct loop_wait wait = {0};
    while (effects_of(f) <= above) {
        assert_true(loop_turn_and_wait(f, &wait));
    }
}

static const char *reply_of(struct loop_server *f, int client, const char *request) {
    static char got[1 << 16];
    struct loop_wait wait = {0};
    ssize_t size = 0;
    loop_send(client, request);
    while ((size = read(client, got, sizeof got - 1)) <= 0) {
        assert_true(loop_turn_and_wait(f, &wait));
    }
    got[size] = '\0';
    return got;
}

TEST(nothing_expires_while_writes_are_paused) {
    ENDED_BY(loop_end) struct loop_server f;
    loop_begin_kept(&f, "appendonly yes\n");
    int ann = loop_connect(&f);
    loop_ask(&f, ann,
             "ZADD a 1 x\r\nPEXPIRE a 500\r\nZADD b 1 x\r\nPEXPIRE b 500\r\nZADD c 1 x\r\n",
             ":1\r\n:1\r\n:1\r\n:1\r\n:1\r\n");
    loop_ask(&f, ann, "CLIENT PAUSE 100000 WRITE\r\n", "+OK\r\n");
    uint64_t effects = effects_of(&f);
    for (int second = 0; second < 3; second++) {
        loop_second(&f);
        loop_turn_some(&f);
    }
    /* To readers the keys are gone, by whatever command. */
    loop_send(ann, "ZCARD a\r\nEXISTS a b c\r\nTYPE b\r\nKEYS *\r\nSCAN 0\r\nRANDOMKEY\r\n");
    loop_expect(
        &f, ann,
        ":0\r\n:1\r\n+none\r\n*1\r\n$1\r\nc\r\n*2\r\n$1\r\n0\r\n*1\r\n$1\r\nc\r\n$1\r\nc\r\n");
    assert_true(effects_of(&f) == effects);
    assert_true(registry_totals(f.server->registry)->expired == 0);
    loop_ask(&f, ann, "CLIENT UNPAUSE\r\nZADD a 2 y\r\nZRANGE a 0 -1\r\n",
             "+OK\r\n:1\r\n*1\r\n$1\r\ny\r\n");
    wait_for_effects(&f, effects);
    loop_turn_some(&f);
    assert_true(registry_totals(f.server->registry)->expired == 2);
}

TEST(no_period_ends_while_writes_are_paused) {
    ENDED_BY(loop_end) struct loop_server f;
    loop_begin_kept(&f, "appendonly yes\n");
    int ann = loop_connect(&f);
    loop_ask(&f, ann, "LB.CREATE d PERIOD DAY ARCHIVE 3\r\nZADD d 1 x\r\nCLIENT PAUSE 1000 ALL\r\n",
             "+OK\r\n:1\r\n+OK\r\n");
    uint64_t effects = effects_of(&f);
    loop_ask(&f, ann, "CLIENT PAUSE 100000000 WRITE\r\n", "+OK\r\n");
    f.harness->wall_us += INT64_C(86400) * 1000000 - 1000000;
    loop_second(&f);
    loop_turn_some(&f);
    assert_true(effects_of(&f) == effects);
    loop_ask(&f, ann, "CLIENT UNPAUSE\r\nZRANGE d@2026-01-01 0 -1\r\nZCARD d\r\n",
             "+OK\r\n*1\r\n$1\r\nx\r\n:0\r\n");
    assert_true(effects_of(&f) > effects);
}

TEST(what_was_due_in_a_pause_happens_at_its_end_without_a_request) {
    ENDED_BY(loop_end) struct loop_server f;
    loop_begin_kept(&f, "appendonly yes\n");
    int ann = loop_connect(&f);
    loop_ask(&f, ann, "ZADD a 1 x\r\nPEXPIRE a 500\r\nCLIENT PAUSE 2500 WRITE\r\n",
             ":1\r\n:1\r\n+OK\r\n");
    uint64_t effects = effects_of(&f);
    loop_second(&f);
    loop_second(&f);
    loop_turn_some(&f);
    assert_true(effects_of(&f) == effects);
    loop_second(&f);
    wait_for_effects(&f, effects);
    assert_true(registry_totals(f.server->registry)->expired == 1);
}

LOOP_SERVER_TEST(who_waits_for_a_board_that_opens_is_served_behind_the_pause, NULL) {
    int ann = loop_connect(f);
    int bob = loop_connect(f);
    loop_send(ann, "ZADD b 1 x\r\nLB.ALTER b OPENS 1767225602000\r\n"); /* in two seconds */
    loop_expect(f, ann, ":1\r\n+OK\r\n");
    loop_send(bob, "BZPOPMIN a 0\r\n");
    loop_turn_some(f);
    loop_ask(f, ann, "RENAME b a\r\nCLIENT PAUSE 100000 WRITE\r\n", "+OK\r\n+OK\r\n");
    for (int second = 0; second < 4; second++) {
        loop_second(f);
        loop_turn_some(f);
    }
    loop_expect_nothing(f, bob);
    loop_ask(f, ann, "CLIENT UNPAUSE\r\n", "+OK\r\n");
    loop_expect(f, bob, "*3\r\n$1\r\na\r\n$1\r\nx\r\n$1\r\n1\r\n");
}

LOOP_SERVER_TEST(a_client_that_a_pause_holds_counts_as_blocked, NULL) {
    int ann = loop_connect(f);
    int bob = loop_connect(f);
    int eve = loop_connect(f);
    loop_ask(f, ann, "CLIENT PAUSE 100000 WRITE\r\n", "+OK\r\n");
    loop_send(bob, "ZADD b 1 m\r\nZADD b 1 n\r\n");
    loop_send(eve, "ZADD b 1 o\r\n");
    loop_turn_some(f);
    assert_non_null(strstr(reply_of(f, ann, "INFO clients\r\n"), "\r\nblocked_clients:2\r\n"));
    const char *list = reply_of(f, ann, "CLIENT LIST ID 2\r\n");
    assert_non_null(strstr(list, " flags=bU "));
    assert_non_null(strstr(reply_of(f, ann, "CLIENT LIST ID 1\r\n"), " flags=U "));
    loop_close(f, eve);
    loop_ask(f, ann, "CLIENT KILL ID 3\r\n", ":1\r\n");
    loop_turn_some(f);
    assert_int_equal(f->server->sessions.postponed_count, 1);
    loop_ask(f, ann, "CLIENT UNPAUSE\r\n", "+OK\r\n");
    loop_expect(f, bob, ":1\r\n:1\r\n");
    assert_non_null(strstr(reply_of(f, ann, "INFO clients\r\n"), "\r\nblocked_clients:0\r\n"));
    assert_non_null(strstr(reply_of(f, ann, "CLIENT LIST ID 2\r\n"), " flags=U "));
}
