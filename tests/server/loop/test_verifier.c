/* Signatures that a thread looks at: the client's requests wait in order, all others go on, and whatever happens
 * meanwhile, nobody is let in by what holds no more. */
#include "tests/support/test.h"

#include "server/loop/connection.h"
#include "tests/support/jwt_maker.h"
#include "tests/support/loop_server.h"

#define NOW (HARNESS_START_US / 1000000)
#define SETTINGS                                                                                   \
    "player-key web ed25519 " JWT_MAKER_PUBLIC "\n"                                                \
    "user player:web on ~* +@all\nuser eve on >right ~* +@all\n"
#define WHOAMI "ACL WHOAMI\r\n"
#define PLAYER "$10\r\nplayer:web\r\n"
#define OTHER  "$7\r\ndefault\r\n"
#define WRONG  "-WRONGPASS the player's token was refused: its signature is wrong\r\n"

static char token[JWT_SIZE_MAX + 100];

static const char *auth(const char *player, bool is_right) {
    size_t size = jwt_maker_player(JWT_ED25519, player, NOW + 1000, token);
    token[size] = '\0';
    if (!is_right) {
        token[size - 9] = token[size - 9] == 'x' ? 'y' : 'x';
    }
    return formatted("AUTH %s\r\n", token);
}

LOOP_SERVER_TEST(what_is_behind_a_token_waits_for_it, SETTINGS) {
    int ann = loop_connect(f), other = loop_connect(f);
    loop_ask(f, other, "LB.CREATE b FIELD score 32\r\n", "+OK\r\n");
    loop_send(
        ann, formatted("%s%s%s" WHOAMI, auth("ann", true), "ZADD b 5 ann\r\n", "ZADD b 5 bob\r\n"));
    loop_expect(
        f, ann,
        "+OK\r\n:1\r\n-NOPERM a player's token writes of its own member alone: 'bob' is not "
        "'ann'\r\n" PLAYER);
    loop_ask(f, other, "ZCARD b\r\n", ":1\r\n");
    /* One after another, each with its own outcome; one that is wrong leaves who was there. */
    loop_send(ann, formatted("%s" WHOAMI, auth("bob", false)));
    loop_send(ann, formatted("%s"
                             "ZADD b 6 bob\r\n",
                             auth("bob", true)));
    loop_send(ann, formatted("%s"
                             "ZADD b 6 bob\r\n",
                             auth("ann", true)));
    loop_expect(f, ann,
                WRONG PLAYER
                "+OK\r\n:1\r\n+OK\r\n-NOPERM a player's token writes of its own member "
                "alone: 'bob' is not 'ann'\r\n");
}

LOOP_SERVER_TEST(tokens_and_passwords_behind_each_other_are_told_apart, SETTINGS) {
    int ann = loop_connect(f);
    loop_send(ann, formatted("%sAUTH eve wrong\r\n" WHOAMI, auth("ann", true)));
    loop_send(ann, formatted("AUTH eve right\r\n" WHOAMI "%s" WHOAMI, auth("ann", true)));
    loop_expect(f, ann,
                "+OK\r\n-WRONGPASS invalid username-password pair or user is disabled.\r\n" PLAYER
                "+OK\r\n$3\r\neve\r\n+OK\r\n" PLAYER);
    loop_send(ann, formatted("HELLO 2 AUTH player %s SETNAME x\r\n", token));
    loop_expect_prefix(f, ann, "*");
}

LOOP_SERVER_TEST(many_at_once_are_all_answered, SETTINGS) {
    int clients[60];
    for (int i = 0; i < 60; i++) {
        clients[i] = loop_connect(f);
        loop_send(clients[i], formatted("%s" WHOAMI, auth("ann", i % 3 > 0)));
    }
    for (int i = 0; i < 60; i++) {
        loop_expect(f, clients[i], i % 3 > 0 ? "+OK\r\n" PLAYER : WRONG OTHER);
    }
    assert_int_equal(f->server->acl.guard.failure_count, 20);
}

/* Some while the thread works, some while they wait for it, some when it is done. */
LOOP_SERVER_TEST(who_leaves_meanwhile_leaves_nothing_behind, SETTINGS) {
    for (int round = 0; round < 20; round++) {
        int clients[40];
        struct loop_wait wait = {0};
        for (int i = 0; i < 40; i++) {
            clients[i] = loop_connect(f);
            loop_send(clients[i], auth("ann", true));
        }
        for (int i = 0; i < round % 4; i++) {
            loop_turn(f);
        }
        for (int i = 0; i < 40; i++) {
            loop_close(f, clients[(i * 7) % 40]);
        }
        while (f->server->sessions.count > 0) {
            assert_true(loop_turn_and_wait(f, &wait));
        }
    }
}

LOOP_SERVER_TEST(a_key_that_changes_meanwhile_counts, SETTINGS) {
    static const struct {
        const char *change, *answer;
    } rows[] = {
        {"CONFIG SET player-key \"web ed25519 "
         "MCowBQYDK2VwAyEAt9naWB4QzN3JcNp8s1v/iUsab1M7FUMGBTrwgTU43Dk=\"\r\n",
         WRONG},
        {"CONFIG SET player-key \"web ed25519 " JWT_MAKER_PUBLIC " AUD x\"\r\n",
         "-WRONGPASS the player's token was refused: its audience is not the key's\r\n"},
        {"CONFIG SET player-key \"other ed25519 " JWT_MAKER_PUBLIC "\"\r\n",
         "-WRONGPASS the player's token was refused: no player-key has its kid\r\n"},
        {"CONFIG SET player-key \"\"\r\n", "-ERR AUTH <password> called without any password "
                                           "configured for the default user. Are you sure your "
                                           "configuration is correct?\r\n"},
        {"ACL SETUSER player:web off\r\n", "-WRONGPASS the player's token was refused: there is no "
                                           "user player:KID of its kid, or it is off\r\n"},
    };
    int other = loop_connect(f);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        test_row("%s", rows[i].change);
        int ann = loop_connect(f);
        loop_turn_some(f);
        loop_send(ann, formatted("%s" WHOAMI, auth("ann", true)));
        loop_send(other, rows[i].change);
        struct loop_wait wait = {0};
        /* In one turn: the token is given to the thread, and the setting changes. */
        loop_expect(f, ann, formatted("%s" OTHER, rows[i].answer));
        while (f->server->sessions.count < 2) {
            assert_true(loop_turn_and_wait(f, &wait));
        }
        loop_expect(f, other, "+OK\r\n");
        loop_ask(f, other, "CONFIG SET player-key \"web ed25519 " JWT_MAKER_PUBLIC "\"\r\n",
                 "+OK\r\n");
    }
}

LOOP_SERVER_TEST(a_server_that_stops_meanwhile_answers_or_closes, SETTINGS) {
    for (int i = 0; i < 50; i++) {
        loop_send(loop_connect(f), auth("ann", true));
    }
    for (int i = 0; i < 2; i++) {
        loop_turn(f);
    }
    loop_stop(f);
}

/* ---- tickets ---- */

static const char *ticket(int64_t start_s) {
    static char made[JWT_SIZE_MAX + 100];
    size_t size =
        jwt_maker_make(JWT_ED25519, "{\"alg\":\"EdDSA\",\"typ\":\"ticket+jwt\",\"kid\":\"web\"}",
                       formatted("{\"sub\":\"ann\",\"boards\":\"b\",\"iat\":%lld,\"exp\":%lld}",
                                 (long long)start_s, (long long)start_s + 600),
                       made);
    made[size] = '\0';
    return made;
}

LOOP_SERVER_TEST(a_ticket_behind_many_words_is_as_right, SETTINGS) {
    char line[JWT_SIZE_MAX + 4096];
    int ann = loop_connect(f);
    loop_ask(f, ann, "LB.CREATE b FIELD score 32 TICKETS YES\r\n", "+OK\r\n");
    size_t size = (size_t)sprintf(line, "LB.ADD b HSET h:* 150");
    for (int i = 0; i < 150; i++) {
        size += (size_t)sprintf(line + size, " f%d v", i);
    }
    sprintf(line + size, " TICKET %s 5 ann\r\n", ticket(NOW));
    loop_ask(f, ann, line, ":1\r\n");
    loop_ask(f, ann, formatted("LB.ADD b TICKET %s 6 ann\r\n", ticket(NOW + 1)), ":1\r\n");
}

LOOP_SERVER_TEST(who_may_not_run_it_has_no_signature_looked_at,
                 SETTINGS "user default on >secret ~* +@all\nuser tim on nopass ~c +@all\n") {
    int eve = loop_connect(f);
    loop_ask(f, eve, formatted("LB.ADD b TICKET %s 5 ann\r\n", ticket(NOW)),
             "-NOAUTH Authentication required.\r\n");
    loop_ask(f, eve, "AUTH tim x\r\n", "+OK\r\n");
    loop_send(eve, formatted("LB.ADD b TICKET %s 5 ann\r\n", ticket(NOW)));
    loop_expect_prefix(f, eve, "-NOPERM");
    assert_false(f->tick.verifier.worker.is_started);
}

LOOP_SERVER_TEST(a_ticket_that_comes_while_the_server_stops_is_as_right, SETTINGS) {
    int ann = loop_connect(f);
    loop_ask(f, ann, "LB.CREATE b FIELD score 32 TICKETS YES\r\n", "+OK\r\n");
    f->tick.is_draining = true;
    loop_ask(f, ann, formatted("LB.ADD b TICKET %s 5 ann\r\n", ticket(NOW)), ":1\r\n");
    f->tick.is_draining = false;
}

LOOP_SERVER_TEST(guesses_wait_whatever_tokens_come_between, SETTINGS) {
    int guesser = loop_connect(f);
    for (int i = 0; i < 5; i++) {
        loop_ask(f, guesser, "AUTH eve wrong\r\n",
                 "-WRONGPASS invalid username-password pair or user is disabled.\r\n");
        loop_ask(f, guesser, auth("ann", true), "+OK\r\n");
    }
    /* The token was right before, and so does not wait; the password does. */
    loop_ask(f, guesser, auth("ann", true), "+OK\r\n");
    loop_send(guesser, "AUTH eve right\r\n");
    loop_expect_nothing(f, guesser);
    f->harness->wall_us += 5000000;
    loop_expect(f, guesser, "+OK\r\n");
    /* Nor does a token in front of it, or words that look like one, help the password. */
    static const char *const forms[] = {"HELLO 2 AUTH player %s AUTH eve wrong\r\n",
                                        "HELLO 2 AUTH eve wrong AUTH player %s\r\n"};
    for (size_t i = 0; i < COUNT_OF(forms); i++) {
        char line[2 * JWT_SIZE_MAX];
        (void)auth("ann", true);
        snprintf(line, sizeof line, "%.*s%s%s", (int)strcspn(forms[i], "%"), forms[i], token,
                 forms[i] + strcspn(forms[i], "%") + 2);
        for (int k = 0; k < 9; k++) {
            loop_send(guesser, "AUTH eve wrong\r\n");
            loop_turn_some(f);
            f->harness->wall_us += 5000000;
            loop_turn_some(f);
        }
        loop_expect_prefix(f, guesser, "-WRONGPASS");
        test_row("%s", line);
        loop_send(guesser, line);
        loop_expect_nothing(f, guesser);
        f->harness->wall_us += 10000000;
        loop_expect_prefix(f, guesser, "-WRONGPASS");
    }
}

LOOP_SERVER_TEST(a_pause_holds_what_is_behind_a_token_and_not_the_token, SETTINGS) {
    int admin = loop_connect(f), ann = loop_connect(f);
    loop_ask(f, admin, "LB.CREATE b FIELD score 32\r\nCLIENT PAUSE 100000 ALL\r\n",
             "+OK\r\n+OK\r\n");
    loop_send(ann, formatted("%sZADD b 5 ann\r\n", auth("ann", true)));
    loop_expect(f, ann, "+OK\r\n");
    loop_expect_nothing(f, ann);
    loop_ask(f, admin, "CLIENT UNPAUSE\r\n", "+OK\r\n");
    loop_expect(f, ann, ":1\r\n");
}

LOOP_SERVER_TEST(tokens_are_looked_at_while_boards_are_loaded, SETTINGS) {
    int ann = loop_connect(f);
    f->server->durability.is_loading = true;
    loop_send(ann, formatted("%sZCARD b\r\n", auth("ann", true)));
    loop_expect(f, ann, "+OK\r\n-LOADING Redis is loading the dataset in memory\r\n");
    f->server->durability.is_loading = false;
    loop_ask(f, ann, "ZCARD b\r\n", ":0\r\n");
}

LOOP_SERVER_TEST(a_token_in_multi_is_queued_and_refused, SETTINGS) {
    int ann = loop_connect(f);
    loop_send(ann, formatted("MULTI\r\n%s" WHOAMI "EXEC\r\n", auth("ann", true)));
    loop_expect(
        f, ann,
        "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n-ERR a player's token is looked at outside of MULTI "
        "alone\r\n" OTHER);
    loop_send(ann, formatted("%s" WHOAMI, auth("ann", true)));
    loop_expect(f, ann, "+OK\r\n" PLAYER);
}

/* A token that ends while its client waits for messages: it gets no more of them. */
LOOP_SERVER_TEST(who_is_over_gets_no_messages, SETTINGS) {
    int admin = loop_connect(f), ann = loop_connect(f);
    loop_ask(f, admin, "ACL SETUSER player:web allchannels\r\n", "+OK\r\n");
    loop_send(ann, formatted("%sSUBSCRIBE news\r\n", auth("ann", true)));
    loop_expect(f, ann, "+OK\r\n*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n");
    loop_ask(f, admin, "PUBLISH news a\r\n", ":1\r\n");
    loop_expect(f, ann, "*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$1\r\na\r\n");
    f->harness->wall_us += 2000 * INT64_C(1000000);
    loop_second(f);
    loop_expect_end(f, ann);
    loop_ask(f, admin, "PUBLISH news b\r\n", ":0\r\n");
}
