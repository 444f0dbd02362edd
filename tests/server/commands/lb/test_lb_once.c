/* LB.ADD ONCE and LB.SUBMIT ONCE, sentence by sentence. */
#include "server/commands/once.h"
#include "server/replication/replication.h"
#include "server/sessions/once_ids.h"
#include "tests/server/zset_fixture.h"
#include "tests/support/errors.h"
#include "tests/support/random.h"

static uint64_t id_count(struct harness *h) {
    return registry_member_count(h->server.registry, REGISTRY_ONCE);
}

static void put_id(struct harness *h, struct registry_key *ids, uint16_t owner, unsigned id) {
    struct board_member member;
    board_look_up(&ids->board, (struct bytes){.at = (const char *)&id, .size = sizeof id}, NULL,
                  &member);
    assert_int_equal(registry_board_put(h->server.registry, ids, &member,
                                        once_ids_key_of(owner, once_ids_now(&h->server))),
                     BOARD_OK);
}

ZSET_TEST(a_result_that_comes_again_changes_nothing) {
    zset_expect(h, "LB.ADD bare:k ONCE a INCR 5 ann", ":1");
    zset_expect(h, "LB.ADD bare:k ONCE a INCR 5 ann", ":0");
    zset_expect(h, "LB.ADD bare:k ONCE b INCR 5 ann 2 bob", ":2");
    zset_expect(h, "LB.ADD bare:k ONCE b INCR 5 ann 2 bob", ":0");
    zset_expect(h, "LB.GET bare:k 2 ann bob", "[[ann :0 nil :10] [bob :1 nil :2]]");
    /* What is sent with a known id is not looked at. */
    zset_expect(h, "LB.ADD bare:k ONCE a SET 7 kim", ":0");
    zset_expect(h, "LB.ADD bare:k SET 99 ann", ":1");
    zset_expect(h, "LB.ADD bare:k ONCE a INCR 5 ann", ":0");
}

ZSET_TEST(it_is_answered_with_the_present_state) {
    static const char *const rows[][2] = {
        {"LB.ADD bare:k ONCE a WITHRANK 5 ann 6 bob",
         "[[[ann :1 nil :5] nil] [[bob :0 nil :6] nil]]"},
        {"LB.ADD bare:k 9 cid", ":1"},
        {"LB.ADD bare:k ONCE a WITHRANK 5 ann 6 bob",
         "[[[ann :2 nil :5] :2] [[bob :1 nil :6] :1]]"},
        {"ZREM bare:k ann", ":1"},
        {"LB.ADD bare:k ONCE a WITHRANK 5 ann 6 bob", "[[nil* nil] [[bob :1 nil :6] :1]]"},
        {"LB.ADD bare:k WITHRANK STRINGS ONCE a 5 ann 6 bob", "[[nil* nil] [[bob :1 nil 6] :1]]"},
        {"ZREM bare:k bob cid", ":2"}, /* its last members: the board goes */
        {"LB.ADD bare:k ONCE a WITHRANK 5 ann 6 bob", "[[nil* nil] [nil* nil]]"},
        {"LB.ADD bare:k ONCE a 5 ann 6 bob", ":0"},
        {"TYPE bare:k", "+none"},
        {"LB.ADD three:k ONCE a WITHRANK 1 0 2 ann", "[[[ann :0 :1767225600000 :1 :0 :2] nil]]"},
        {"LB.ADD three:k ONCE a WITHRANK 1 0 2 ann", "[[[ann :0 :1767225600000 :1 :0 :2] :0]]"},
        {"LB.ADD three:k ONCE a WITHRANK 1 0 ann",
         "-ERR ...: this board takes 3 values before each member: score flag level"},
        {"ZREM three:k ann", ":1"},
        {"LB.ADD three:k ONCE a WITHRANK 1 0 2 ann", "[[nil* nil]]"},
    };
    zset_expect_each(h, rows);
}

/* WITHREPEAT: a client can tell it from a result that counts and changes nothing. */
ZSET_TEST(a_reply_says_that_it_came_before_where_that_is_asked_for) {
    zset_expect(h, "LB.ADD bare:k ONCE a WITHREPEAT BEST 5 ann", ":1");
    zset_expect(h, "LB.ADD bare:k ONCE a WITHREPEAT BEST 5 ann", ":-1");
    zset_expect(h, "LB.ADD bare:k ONCE b WITHREPEAT BEST 4 ann", ":0"); /* new, and no best */
    zset_expect(h, "LB.ADD bare:k ONCE b WITHREPEAT BEST 4 ann", ":-1");
    zset_expect(h, "LB.ADD bare:k ONCE b BEST 4 ann", ":0");
    zset_expect(h, "LB.ADD bare:k WITHREPEAT WITHRANK ONCE c 6 ann 7 bob",
                "[[[ann :1 nil :6] :0 :0] [[bob :0 nil :7] nil :0]]");
    zset_expect(h, "LB.ADD bare:k WITHREPEAT WITHRANK ONCE c 6 ann 7 bob",
                "[[[ann :1 nil :6] :1 :1] [[bob :0 nil :7] :0 :1]]");
    zset_expect(h, "LB.SUBMIT 2 bare:k bare:l ONCE d WITHREPEAT BEST 5 ann",
                "[[[ann :1 nil :6] :1 :0 :0] [[ann :0 nil :5] nil :1 :0]]");
    zset_expect(h, "LB.SUBMIT 2 bare:k bare:l ONCE d WITHREPEAT BEST 5 ann",
                "[[[ann :1 nil :6] :1 :0 :1] [[ann :0 nil :5] :0 :0 :1]]");
    zset_expect(h, "LB.ADD bare:k WITHREPEAT 5 ann", "-ERR WITHREPEAT needs ONCE");
    zset_expect(h, "LB.SUBMIT 1 bare:k WITHREPEAT 5 ann", "-ERR WITHREPEAT needs ONCE");
    zset_expect(h, "ZSCORE bare:k ann", "6");
}

ZSET_TEST(it_is_answered_where_nothing_can_be_written_any_more) {
    zset_expect(h, "LB.ADD bare:k ONCE a 5 ann", ":1");
    zset_expect(h, "LB.ADD bare:l ONCE a 5 ann", ":1");
    zset_expect(h, "LB.ALTER bare:k FREEZE", "+OK");
    zset_expect(h, "LB.ADD bare:k ONCE a 5 ann", ":0");
    zset_expect(h, "LB.ADD bare:k ONCE a WITHRANK 5 ann", "[[[ann :0 nil :5] :0]]");
    zset_expect(h, "LB.ADD bare:k ONCE b 5 ann", ERROR_FROZEN);
    zset_expect(h, "LB.ALTER bare:k THAW", "+OK");
    zset_expect(h, "LB.ADD bare:k ONCE b INCR 5 ann", ":1"); /* refused: it has left no id */
    zset_expect(h, "LB.ALTER bare:l LIMIT 1", "+OK");
    zset_expect(h, "LB.ADD bare:l ONCE b 5 bob", "-FULL board is full: at most 1 members");
    zset_expect(h, "LB.ADD bare:l ONCE a 5 ann", ":0");
    zset_expect(h, "LB.ALTER bare:l LIMIT 2", "+OK");
    zset_expect(h, "LB.ADD bare:l ONCE b 5 bob", ":1");
}

ZSET_TEST(what_changed_nothing_counts_all_the_same) {
    zset_expect(h, "LB.ADD bare:k 5 ann", ":1");
    zset_expect(h, "LB.ADD bare:k ONCE a BEST 4 ann", ":0");
    zset_expect(h, "LB.ADD bare:k ONCE b NX 4 ann", ":0");
    zset_expect(h, "LB.ADD bare:k ONCE c XX 4 bob", ":0");
    zset_expect(h, "LB.ADD none ONCE d XX 4 bob", ":0");
    zset_expect(h, "TYPE none", "+none");
    zset_expect(h, "ZREM bare:k ann", ":1");
    zset_expect(h, "LB.ADD bare:k ONCE a BEST 4 ann", ":0");
    zset_expect(h, "LB.ADD bare:k ONCE b NX 4 ann", ":0");
    zset_expect(h, "LB.ADD none 1 bob", ":1");
    zset_expect(h, "LB.ADD none ONCE d XX 4 bob", ":0");
    zset_expect(h, "ZSCORE none bob", "1");
    zset_expect(h, "TYPE bare:k", "+none");
}

ZSET_TEST(an_error_leaves_no_id) {
    zset_expect(h, "LB.ADD bare:k ONCE a x ann", ERROR_NUMBER("score"));
    zset_expect(h, "LB.ADD bare:k ONCE a 5 ann 6",
                "-ERR ...: this board takes 1 value before each "
                "member: score");
    zset_expect(h, "LB.ADD bare:k ONCE a AT 5 5 ann",
                "-ERR AT is not allowed: this layout has no TIME");
    zset_expect(h, "LB.SUBMIT 2 bare:k three:k ONCE a 5 ann",
                "-ERR ...: this board takes 3 values before each member: score flag level ...");
    zset_expect(h, "HSET h f v", ":1");
    zset_expect(h, "LB.ADD h ONCE a 5 ann",
                "-WRONGTYPE Operation against a key holding the wrong kind of value");
    zset_expect(h, "EXISTS bare:k three:k", ":0");
    assert_int_equal(registry_count(h->server.registry, REGISTRY_ONCE), 0);
    zset_expect(h, "LB.ADD bare:k ONCE a 5 ann", ":1");
}

ZSET_TEST(an_id_has_1_to_64_bytes_and_comes_before_the_values) {
    zset_expect(h, "LB.ADD bare:k ONCE \"\" 5 ann", "-ERR ONCE takes an id of 1 to 64 bytes");
    zset_expect(h,
                "LB.ADD bare:k ONCE "
                "12345678901234567890123456789012345678901234567890123456789012345 5 ann",
                "-ERR ONCE takes an id of 1 to 64 bytes");
    zset_expect(h,
                "LB.ADD bare:k ONCE "
                "1234567890123456789012345678901234567890123456789012345678901234 5 ann",
                ":1");
    zset_expect(h, "LB.ADD bare:k ONCE \"\\x00\\r\\n\" 6 ann", ":1");
    zset_expect(h, "LB.ADD bare:k ONCE \"\\x00\\r\\n\" 7 ann", ":0");
    zset_expect(h, "LB.ADD bare:k ONCE a ONCE b 5 ann", "-ERR syntax error");
    zset_expect(h, "LB.ADD bare:k 5 ann ONCE x",
                "-ERR 'ONCE' is an option: options come before the values");
    zset_expect(h, "LB.ADD bare:k PACKED ONCE a",
                "-ERR packed key ONCE is not an integer of this layout's 32 "
                "bits: -2147483648..2147483647 are allowed");
    zset_expect(h, "LB.SUBMIT 1 bare:k ONCE a", "-ERR syntax error");
}

ZSET_TEST(an_id_belongs_to_the_key_it_was_sent_to) {
    zset_expect(h, "LB.ADD bare:k ONCE a 5 ann", ":1");
    zset_expect(h, "LB.ADD bare:l ONCE a 5 ann", ":1");
    zset_expect(h, "LB.ADD bare:ka ONCE b 5 ann", ":1");
    zset_expect(h, "LB.ADD bare:k ONCE ab 6 ann", ":1");
    zset_expect(h, "LB.SUBMIT 2 bare:l bare:k ONCE a 7 ann",
                "[[[ann :0 nil :5] :0 :0] [[ann :0 nil :6] :0 :0]]");
    zset_expect(h, "LB.SUBMIT 2 bare:m bare:k ONCE a 7 ann",
                "[[[ann :0 nil :7] nil :1] [[ann :0 nil :7] :0 :1]]");
    zset_expect(h, "LB.ADD bare:m ONCE a 9 ann", ":0");
    zset_expect(h, "SELECT 1", "+OK");
    zset_expect(h, "LB.ADD bare:k ONCE a 5 ann", ":1");
    zset_expect(h, "LB.ADD bare:k ONCE a 5 ann", ":0");
}

ZSET_TEST(lb_submit_answers_each_board) {
    zset_expect(h, "LB.SUBMIT 2 bare:a bare:b ONCE a INCR 5 ann",
                "[[[ann :0 nil :5] nil :1] [[ann :0 nil :5] nil :1]]");
    zset_expect(h, "LB.SUBMIT 2 bare:a bare:b ONCE a INCR 5 ann",
                "[[[ann :0 nil :5] :0 :0] [[ann :0 nil :5] :0 :0]]");
    zset_expect(h, "ZREM bare:a ann", ":1");
    zset_expect(h, "LB.SUBMIT 2 bare:a bare:b ONCE a INCR 5 ann",
                "[[nil* nil :0] [[ann :0 nil :5] :0 :0]]");
}

ZSET_TEST(where_the_board_was_is_now_a_hash) {
    static const char *const rows[][2] = {
        {"LB.SUBMIT 2 bare:a bare:b ONCE a INCR 5 ann",
         "[[[ann :0 nil :5] nil :1] [[ann :0 nil :5] nil :1]]"},
        {"DEL bare:a", ":1"},
        {"HSET bare:a f v", ":1"},
        {"LB.SUBMIT 2 bare:a bare:b ONCE a INCR 5 ann",
         "-WRONGTYPE Operation against a key holding the wrong kind of value"},
        {"EXISTS bare:a", ":1"},
    };
    shadow_end(h->shadow); /* in the module ids go with their board */
    zset_expect_each(h, rows);
}

ZSET_TEST(a_transaction_sees_its_own_ids) {
    zset_run(h, "MULTI");
    zset_run(h, "LB.ADD bare:k ONCE a INCR 5 ann");
    zset_run(h, "LB.ADD bare:k ONCE a INCR 5 ann");
    zset_expect(h, "EXEC", "[:1 :0]");
    zset_expect(h, "ZSCORE bare:k ann", "5");
}

ZSET_TEST(an_id_is_forgotten_after_the_window) {
    shadow_end(h->shadow);
    zset_expect(h, "LB.ADD bare:k ONCE a INCR 5 ann", ":1");
    harness_pass_seconds(h, 599);
    zset_expect(h, "LB.ADD bare:k ONCE a INCR 5 ann", ":0");
    zset_expect(h, "LB.ADD bare:k ONCE b INCR 5 ann", ":1");
    harness_pass_seconds(h, 1);
    zset_expect(h, "LB.ADD bare:k ONCE a INCR 5 ann", ":1"); /* and is known again from now on */
    zset_expect(h, "LB.ADD bare:k ONCE a INCR 5 ann", ":0");
    assert_int_equal(id_count(h), 2);
    zset_expect(h, "ZSCORE bare:k ann", "15");
    harness_pass_seconds(h, 599);
    zset_run(h, "PING");
    once_ids_forget_due(&h->server);
    assert_int_equal(id_count(h), 1);
    once_ids_forget_due(&h->server); /* not before a second is over */
    harness_pass_seconds(h, 1);
    zset_run(h, "PING");
    once_ids_forget_due(&h->server);
    assert_int_equal(registry_count(h->server.registry, REGISTRY_ONCE), 0);
}

TEST(no_two_pairs_of_key_and_id_have_one_name) {
    static const struct bytes pairs[][2] = {
        {BYTES_INIT("a\0b"), BYTES_INIT("c")}, {BYTES_INIT("a"), BYTES_INIT("b\0c")},
        {BYTES_INIT("a"), BYTES_INIT("bc")},   {BYTES_INIT("ab"), BYTES_INIT("c")},
        {BYTES_INIT("ab\1"), BYTES_INIT("c")}, {BYTES_INIT("a"), BYTES_INIT("b\1c")},
    };
    char rooms[COUNT_OF(pairs)][ONCE_IDS_MEMBER_SIZE];
    for (size_t i = 0; i < COUNT_OF(pairs); i++) {
        struct bytes name = once_ids_member(pairs[i][0], pairs[i][1], rooms[i]);
        for (size_t j = 0; j < i; j++) {
            assert_memory_not_equal(name.at, rooms[j], ONCE_IDS_MEMBER_SIZE);
        }
    }
}

/* Neither forward nor back, and not where another server's clock was another one. */
ZSET_TEST(a_clock_that_is_set_makes_no_id_older) {
    shadow_end(h->shadow);
    zset_expect(h, "LB.ADD bare:k ONCE a 5 ann", ":1");
    h->step_us = INT64_C(86400000000);
    for (int i = 0; i < 3; i++) {
        harness_pass_seconds(h, 61);
        zset_run(h, "PING");
    }
    assert_true(h->server.clock.now_ms > 1767225600000 + 86000000);
    zset_expect(h, "LB.ADD bare:k ONCE a 6 ann", ":0");
    zset_expect(h, "LB.ADD bare:k ONCE b 6 ann", ":1");
    h->step_us = -INT64_C(864000000000);
    harness_pass_seconds(h, 400);
    zset_expect(h, "LB.ADD bare:k ONCE b 7 ann", ":0");
    zset_expect(h, "LB.ADD bare:k ONCE a 7 ann", ":0");
    harness_pass_seconds(h, 17);
    zset_expect(h, "LB.ADD bare:k ONCE a 7 ann", ":1");
    zset_expect(h, "LB.ADD bare:k ONCE b 7 ann", ":0");
    /* Another master goes on from the newest id. */
    replication_begin_epoch(&h->server);
    harness_set_clock(h, HARNESS_START_US + INT64_C(8640000000000));
    zset_expect(h, "LB.ADD bare:k ONCE b 7 ann", ":0");
    harness_pass_seconds(h, 600);
    zset_expect(h, "LB.ADD bare:k ONCE b 8 ann", ":1");
}

HARNESS_TEST(a_full_room_refuses_and_never_forgets, "once-max 3\nonce-window 10\n") {
    static const char refused[] = "-TRYAGAIN there are 3 ids (once-max) younger than once-window: "
                                  "send this again in 5 seconds";
    shadow_end(h->shadow);
    zset_expect(h, "LB.ADD k ONCE a INCR 1 ann", ":1");
    harness_pass_seconds(h, 5);
    zset_expect(h, "LB.ADD k ONCE b INCR 1 ann", ":1");
    zset_run(h, "SELECT 5");
    zset_expect(h, "LB.ADD k ONCE c INCR 1 ann", ":1");
    zset_expect(h, "LB.ADD k ONCE d INCR 1 ann", refused);
    zset_expect(h, "LB.SUBMIT 2 new k ONCE d INCR 1 ann", refused);
    zset_expect(h, "ZSCORE k ann", "1");
    zset_expect(h, "EXISTS new", ":0");
    zset_expect(h, "LB.ADD k ONCE c INCR 1 ann", ":0");
    zset_expect_part(h, "INFO stats", "once_ids:3\r\n");
    zset_expect_part(h, "INFO stats", "once_refused:2\r\n");
    zset_expect_part(h, "INFO stats", "once_repeated:1\r\n");
    zset_expect_part(h, "INFO errorstats", "errorstat_TRYAGAIN:count=2");
    harness_pass_seconds(h, 5);
    zset_expect(h, "LB.ADD k ONCE d INCR 1 ann", ":1"); /* the oldest one, of database 0, went */
    zset_expect(h, "LB.ADD k ONCE e INCR 1 ann", refused);
    harness_pass_seconds(h, 5);
    zset_expect(h, "LB.ADD k ONCE e INCR 1 ann", ":1");
    zset_expect(h, "CONFIG SET once-max 10 once-window 1", "+OK");
    harness_pass_seconds(h, 1);
    zset_expect(h, "LB.ADD k ONCE e INCR 1 ann", ":1");
}

/* ---- shares ---- */

static unsigned add_until_refused(struct harness *h, const char *prefix, const char **answered) {
    unsigned added = 0;
    do {
        *answered = zset_run(h, "LB.ADD k ONCE %s%u INCR 1 ann", prefix, added);
    } while (strcmp(*answered, ":1") == 0 && ++added < 1000);
    return added;
}

HARNESS_TEST(no_user_takes_the_room_of_all_others, "once-max 100\nonce-window 10\n") {
    const char *answered;
    shadow_end(h->shadow);
    zset_expect(h, "ACL SETUSER evil on nopass ~* +lb.add", "+OK");
    zset_expect(h, "ACL SETUSER other on nopass ~* +lb.add +select +info", "+OK");
    zset_expect(h, "LB.ADD k ONCE early INCR 1 ann", ":1");
    harness_pass_seconds(h, 3);
    zset_expect(h, "AUTH evil x", "+OK");
    assert_int_equal(add_until_refused(h, "e", &answered), 80); /* 4 times what the others left */
    assert_string_equal(answered, "-TRYAGAIN user 'evil' has 80 of the 100 ids (once-max) younger "
                                  "than once-window, and the others need room: send this again in "
                                  "10 seconds");
    zset_expect(h, "LB.ADD k ONCE e0 INCR 1 ann", ":0");
    harness_pass_seconds(h, 4);
    zset_expect(h, "LB.ADD k ONCE e INCR 1 ann",
                "-TRYAGAIN user 'evil' has 80 of the 100 ids (once-max) younger than once-window, "
                "and the others need room: send this again in 6 seconds");
    zset_expect(h, "AUTH other x", "+OK");
    zset_expect(h, "LB.ADD k ONCE e0 INCR 1 ann", ":0"); /* an id is one, whoever sends it again */
    assert_int_equal(add_until_refused(h, "o", &answered), 16);
    zset_run(h, "SELECT 7"); /* a share is of all databases */
    assert_int_equal(add_until_refused(h, "p", &answered), 0);
    zset_expect_part(h, "INFO stats", "once_ids:97\r\n");
    harness_pass_seconds(h, 6); /* as it was told: the oldest of evil's have gone */
    zset_expect(h, "AUTH evil x", "+OK");
    zset_expect(h, "LB.ADD k ONCE late INCR 1 ann", ":1");
    zset_expect(h, "AUTH other x", "+OK");
    zset_expect(h, "LB.ADD k ONCE o0 INCR 1 ann", ":1"); /* of database 7: it is new there */
}

HARNESS_TEST(those_who_have_most_are_named, "once-max 1000\nonce-window 10\n") {
    struct once_ids_share top[ONCE_IDS_TOP];
    shadow_end(h->shadow);
    assert_int_equal(once_ids_top(&h->server, top), 0);
    for (unsigned user = 0; user < 30; user++) {
        zset_expect(h, "AUTH default x", "+OK");
        zset_run(h, "ACL SETUSER u%u on nopass ~* +lb.add +select", user);
        zset_run(h, "AUTH u%u x", user);
        for (unsigned id = 0; id <= user; id++) {
            zset_run(h, "SELECT %u", id % 2);
            zset_run(h, "LB.ADD k ONCE %u-%u 1 ann", user, id);
        }
    }
    assert_int_equal(once_ids_top(&h->server, top), ONCE_IDS_TOP);
    for (unsigned i = 0; i < ONCE_IDS_TOP; i++) {
        char name[8];
        snprintf(name, sizeof name, "u%u", 29 - i);
        assert_int_equal(top[i].count, 30 - i);
        assert_int_equal(top[i].owner, once_ids_owner_named(bytes_from_text(name)));
    }
}

/* Some users at a time. */
HARNESS_TEST(old_ids_of_many_users_go, "once-max 100000\nonce-window 10\n") {
    enum { USERS = 1000 };
    shadow_end(h->shadow);
    for (unsigned user = 0; user < USERS; user++) {
        struct acl_user named = {.name = {.at = (const char *)&user, .size = sizeof user}};
        struct session *session = h->server.sessions.first;
        struct acl_user *before = session->user;
        struct registry_key *ids = once_ids_find_or_create(&h->server, 0, BYTES(""));
        session->user = &named;
        put_id(h, ids, once_ids_owner(session), user);
        session->user = before;
        if (user == USERS / 2) {
            harness_pass_seconds(h, 5);
            zset_run(h, "PING");
        }
    }
    assert_int_equal(id_count(h), USERS);
    harness_pass_seconds(h, 6);
    zset_run(h, "PING");
    for (unsigned tick = 0; tick < USERS / 256 + 2; tick++) {
        once_ids_forget_due(&h->server);
    }
    assert_in_range(id_count(h), USERS / 3, USERS / 2 + 1);
    harness_pass_seconds(h, 6);
    zset_run(h, "PING");
    for (unsigned tick = 0; tick < USERS / 256 + 2; tick++) {
        once_ids_forget_due(&h->server);
    }
    assert_int_equal(id_count(h), 0);
    assert_int_equal(registry_count(h->server.registry, REGISTRY_ONCE), 0);
}

/* ---- ids that belong to a user and a route, as those over HTTP ---- */

static void check_once(struct harness *h, const char *route, const char *fingerprint,
                       const char *line, const char *expected, bool is_repeated) {
    struct session_once once = {.route = bytes_from_text(route),
                                .fingerprint = bytes_from_text(fingerprint)};
    struct session *session = h->server.sessions.first;
    session->once = &once;
    zset_expect(h, line, expected);
    session->once = NULL;
    assert_int_equal(once.is_repeated, is_repeated);
}

ZSET_TEST(an_id_of_a_route_is_one_for_its_user_and_what_it_writes) {
    static const char other[] = "-ERR this id was sent with another result before: a new result "
                                "needs a new id";
    shadow_end(h->shadow);
    zset_expect(h, "ACL SETUSER sam on nopass ~* +@all", "+OK");
    check_once(h, "r", "f", "LB.ADD bare:k ONCE a INCR 1 ann", ":1", false);
    check_once(h, "r", "f", "LB.ADD bare:k ONCE a INCR 1 ann", ":0", true);
    check_once(h, "r", "g", "LB.ADD bare:k ONCE a INCR 1 ann", other, false);
    check_once(h, "r", "g", "LB.SUBMIT 1 bare:l ONCE a 1 ann", other, false); /* whatever its key */
    check_once(h, "s", "g", "LB.ADD bare:k ONCE a INCR 1 ann", ":1", false);
    check_once(h, "r", "g", "LB.ADD bare:k ONCE b 1.5 ann",
               "-ERR value 1.5 has too many decimals: field 'score' keeps 0 (round it, or more by "
               "SCALE in the "
               "layout)",
               false);
    check_once(h, "r", "h", "LB.ADD bare:k ONCE b INCR 1 ann", ":1", false);
    zset_expect(h, "LB.ADD bare:k ONCE a INCR 1 ann", ":1"); /* RESP's is another one */
    zset_expect(h, "AUTH sam x", "+OK");
    check_once(h, "r", "g", "LB.ADD bare:k ONCE a INCR 1 ann", ":1", false);
    zset_expect(h, "LB.ADD bare:k ONCE a INCR 1 ann", ":0");
    zset_expect(h, "ZSCORE bare:k ann", "5");
    harness_pass_seconds(h, 600);
    check_once(h, "r", "g", "LB.ADD bare:k ONCE a INCR 1 ann", ":1", false);
}

ZSET_TEST(keys_that_are_renamed_removed_or_flushed_leave_their_ids) {
    shadow_end(h->shadow); /* in the module they take them along: docs/reference/once.md */
    zset_expect(h, "LB.ADD bare:k ONCE a 5 ann", ":1");
    zset_expect(h, "RENAME bare:k bare:l", "+OK");
    zset_expect(h, "LB.ADD bare:k ONCE a 5 ann", ":0");
    zset_expect(h, "LB.ADD bare:l ONCE a 6 ann", ":1");
    zset_expect(h, "DEL bare:l", ":1");
    zset_expect(h, "LB.ADD bare:l ONCE a 6 ann", ":0");
    zset_expect(h, "EXISTS bare:l", ":0");
    zset_expect(h, "LB.ADD bare:l ONCE b 6 ann", ":1");
    zset_run(h, "FLUSHALL");
    zset_expect(h, "LB.ADD bare:l ONCE a 6 ann", ":0");
    zset_expect(h, "DBSIZE", ":0");
}

/* ---- a naive twin ---- */

struct twin_id {
    char key[8], id[8];
    int64_t at_s;
};

TEST(every_id_counts_once_as_in_a_naive_model) {
    enum { IDS_MAX = 4096, STEPS = 6000 };
    static struct twin_id ids[IDS_MAX];
    struct random random = random_begin("every_id_counts_once_as_in_a_naive_model");
    struct harness *h = harness_create("once-window 50\n");
    uint32_t count = 0;
    int64_t now_s = 0;
    int64_t sums[4] = {0};
    harness_connect(h);
    shadow_end(h->shadow);
    for (int step = 0; step < STEPS; step++) {
        struct twin_id made = {.at_s = now_s};
        uint64_t board = random_below(&random, 4);
        snprintf(made.key, sizeof made.key, "k%d", (int)board);
        snprintf(made.id, sizeof made.id, "%d", (int)random_below(&random, 60));
        bool is_known = false;
        for (uint32_t i = 0; i < count; i++) {
            is_known = is_known || (strcmp(ids[i].key, made.key) == 0 &&
                                    strcmp(ids[i].id, made.id) == 0 && now_s - ids[i].at_s < 50);
        }
        const char *answered = zset_run(h, "LB.ADD %s ONCE %s INCR 1 ann", made.key, made.id);
        assert_string_equal(answered, is_known ? ":0" : ":1");
        if (!is_known) {
            sums[board]++;
            ids[count++ % IDS_MAX] = made;
            count = count < IDS_MAX ? count : IDS_MAX;
        }
        if (random_below(&random, 4) == 0) {
            harness_pass_seconds(h, 1);
            now_s++;
            if (random_below(&random, 3) == 0) {
                zset_run(h, "PING");
                once_ids_forget_due(&h->server);
            }
        }
    }
    for (int i = 0; i < 4; i++) {
        assert_int_equal(strtoll(zset_run(h, "ZSCORE k%d ann", i), NULL, 10), sums[i]);
    }
    harness_destroy(h);
}
