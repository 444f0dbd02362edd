/* Clients whose passwords are looked at later: they alone wait, by the server's clock, and nothing
 * is learned, skipped or left behind by not waiting. */
#include "tests/support/test.h"

#include "server/loop/connection.h"
#include "tests/support/loop_server.h"

#define WRONG "-WRONGPASS invalid username-password pair or user is disabled.\r\n"

static void fail_times(struct loop_server *f, int client, int count) {
    for (int i = 0; i < count; i++) {
        loop_ask(f, client, "AUTH wrong\r\n", WRONG);
    }
}

/* Let time pass on the server's clock. */
static void pass(struct loop_server *f, int64_t ms) {
    f->harness->wall_us += ms * 1000;
}

/* The first ones are answered at once. */
LOOP_SERVER_TEST(further_wrong_passwords_wait_and_others_do_not, "requirepass right\n") {
    int ann = loop_connect(f);
    loop_ask(f, ann, "AUTH right\r\n", "+OK\r\n");
    int guesser = loop_connect(f);
    fail_times(f, guesser, 5);
    loop_send(guesser, "AUTH wrong\r\nPING\r\n");
    loop_expect_nothing(f, guesser);
    loop_ask(f, ann, "PING\r\n", "+PONG\r\n");
    pass(f, 99);
    loop_expect_nothing(f, guesser);
    pass(f, 51);
    loop_expect(f, guesser, WRONG "-NOAUTH Authentication required.\r\n");
    /* Twice as long. */
    loop_send(guesser, "HELLO 3 AUTH default wrong\r\n");
    loop_expect_nothing(f, guesser);
    pass(f, 199);
    loop_expect_nothing(f, guesser);
    pass(f, 51);
    loop_expect(f, guesser, WRONG);
}

LOOP_SERVER_TEST(a_right_password_waits_as_long_and_ends_it, "requirepass right\n") {
    int client = loop_connect(f);
    fail_times(f, client, 5);
    loop_send(client, "AUTH right\r\nPING\r\n");
    loop_expect_nothing(f, client);
    pass(f, 150);
    loop_expect(f, client, "+OK\r\n+PONG\r\n");
    int other = loop_connect(f);
    fail_times(f, other, 5);
}

/* Give the right password of one's own before each guess. */
static bool guess_with_own_login(struct loop_server *f, int client, const char *guess) {
    loop_ask(f, client, "AUTH eve mine\r\n", "+OK\r\n");
    uint64_t before = f->server->acl.guard.failure_count;
    loop_send(client, guess);
    loop_turn_some(f);
    bool is_answered = f->server->acl.guard.failure_count > before;
    pass(f, 5050);
    loop_expect(f, client, WRONG);
    return is_answered;
}

LOOP_SERVER_TEST(ones_own_login_gives_no_further_guesses_at_anothers_password,
                 "user ann on >right\nuser eve on >mine\n") {
    static const char *const guesses[] = {
        "AUTH ann wrong\r\n",
        "HELLO 3 AUTH ann wrong\r\n",
        "HELLO 3 AUTH ann wrong SETNAME x\r\n",
        "HELLO 3 SETNAME AUTH AUTH ann wrong\r\n",
        "HELLO 3 AUTH eve mine AUTH ann wrong\r\n",
        "HELLO 3 AUTH eve mine SETNAME x AUTH ann wrong\r\n",
        "AUTH nobody wrong\r\n",
    };
    int client = loop_connect(f);
    int answered = 0;
    for (int i = 0; i < 40; i++) {
        answered += guess_with_own_login(f, client, guesses[i % 7]);
    }
    assert_int_equal(answered, 5);
}

LOOP_SERVER_TEST(a_program_with_a_wrong_password_does_not_hold_back_those_with_right_ones,
                 "user ann on >right\nuser bob on >right\nuser eve on >mine\n") {
    static const char *const logins[] = {"AUTH ann right\r\n", "HELLO 2 AUTH bob right\r\n"};
    int eve = loop_connect(f);
    for (int i = 0; i < 5; i++) {
        loop_ask(f, eve, "AUTH eve old\r\n", WRONG);
    }
    for (int i = 0; i < 20; i++) {
        int client = loop_connect(f);
        loop_send(client, logins[i % 2]);
        if (i < 2) { /* the first of each waits */
            loop_expect_nothing(f, client);
            pass(f, 150);
        }
        loop_expect_prefix(f, client, i % 2 == 0 ? "+OK\r\n" : "*14\r\n");
        loop_close(f, client);
    }
    int client = loop_connect(f);
    loop_ask(f, client, "AUTH ann wrong\r\n", WRONG);
    loop_send(client, "AUTH ann right\r\n");
    loop_expect_nothing(f, client);
}

LOOP_SERVER_TEST(what_gives_no_password_does_not_wait, "requirepass right\n") {
    int client = loop_connect(f);
    fail_times(f, client, 5);
    loop_send(client, "HELLO 3\r\n");
    loop_expect_prefix(f, client, "-NOAUTH HELLO must be called");
    loop_ask(f, client, "PING\r\n", "-NOAUTH Authentication required.\r\n");
}

/* Guesses side by side: of many, few are looked at while one delay lasts. */
LOOP_SERVER_TEST(many_connections_do_not_guess_much_faster,
                 "requirepass right\nauth-delay 1000\n") {
    enum { CLIENTS = 40 };
    int clients[CLIENTS];
    int first = loop_connect(f);
    fail_times(f, first, 5);
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = loop_connect(f);
        loop_send(clients[i], "AUTH wrong\r\n");
    }
    loop_turn_some(f);
    uint64_t before = f->server->acl.guard.failure_count;
    pass(f, 1050);
    loop_turn_some(f);
    assert_int_equal(f->server->acl.guard.failure_count - before, AUTH_GUARD_ABREAST);
    pass(f, 4000);
    for (int i = 0; i < CLIENTS; i++) {
        loop_expect(f, clients[i], WRONG);
    }
}

LOOP_SERVER_TEST(who_leaves_while_waiting_leaves_nothing_behind, "requirepass right\n") {
    int first = loop_connect(f);
    fail_times(f, first, 5);
    int clients[3];
    for (int i = 0; i < 3; i++) {
        clients[i] = loop_connect(f);
        loop_send(clients[i], "AUTH right\r\n");
    }
    loop_turn_some(f);
    assert_non_null(f->tick.auth_first);
    static const int order[] = {1, 0, 2};
    for (int i = 0; i < 3; i++) {
        struct loop_wait wait = {0};
        uint32_t left = f->server->sessions.count - 1;
        loop_close(f, clients[order[i]]);
        pass(f, i == 2 ? 150 : 1);
        while (f->server->sessions.count > left) {
            pass(f, 150);
            assert_true(loop_turn_and_wait(f, &wait));
        }
    }
    assert_null(f->tick.auth_first);
}

LOOP_SERVER_TEST(in_a_transaction_nothing_waits_so_nothing_is_looked_at, NULL) {
    int client = loop_connect(f);
    for (int i = 0; i < 5; i++) {
        loop_ask(f, client, "AUTH nobody x\r\n", WRONG);
    }
    loop_ask(f, client, "MULTI\r\nAUTH nobody x\r\n", "+OK\r\n");
    pass(f, 150);
    loop_expect(f, client, "+QUEUED\r\n");
    uint64_t before = f->server->acl.guard.failure_count;
    loop_send(client, "EXEC\r\n");
    loop_expect(f, client,
                "*1\r\n-ERR too many wrong passwords: authenticate outside of MULTI\r\n");
    assert_int_equal(f->server->acl.guard.failure_count, before);
}

LOOP_SERVER_TEST(at_shutdown_nobody_waits,
                 "requirepass right\nauth-delay 60000\nauth-delay-max 60000\n") {
    int client = loop_connect(f);
    fail_times(f, client, 5);
    loop_send(client, "AUTH right\r\n");
    loop_expect_nothing(f, client);
    tick_shutdown(&f->tick, false);
    loop_expect(f, client, "+OK\r\n");
}

LOOP_SERVER_TEST(without_a_delay_nobody_waits, "requirepass right\nauth-delay 0\n") {
    int client = loop_connect(f);
    fail_times(f, client, 50);
}
