/* LB.ADD ONCE and LB.SUBMIT ONCE, sentence by sentence. */
#include "server/clients/once_ids.h"
#include "server/commands/once.h"
#include "tests/server/failing_memory.h"
#include "tests/support/random.h"

static uint64_t id_count(struct harness *h) {
    return registry_member_count(h->server.registry, REGISTRY_ONCE);
}

ZSET_TEST(a_result_that_comes_again_changes_nothing) {
    static const char *const rows[][2] = {
        {"LB.ADD bare:k ONCE a INCR 5 ann", ":1"},
        {"LB.ADD bare:k ONCE a INCR 5 ann", ":0"},
        {"LB.ADD bare:k ONCE b INCR 5 ann 2 bob", ":2"},
        {"LB.ADD bare:k ONCE b INCR 5 ann 2 bob", ":0"},
        {"LB.GET bare:k 2 ann bob", "[[ann :0 nil :10] [bob :1 nil :2]]"},
        /* What is sent with a known id is not looked at. */
        {"LB.ADD bare:k ONCE a SET 7 kim", ":0"},
        {"LB.ADD bare:k SET 99 ann", ":1"},
        {"LB.ADD bare:k ONCE a INCR 5 ann", ":0"},
    };
    zset_expect_each(h, rows);
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
         "-ERR syntax error, this board takes 3 values before each member: score flag level"},
        {"ZREM three:k ann", ":1"},
        {"LB.ADD three:k ONCE a WITHRANK 1 0 2 ann", "[[nil* nil]]"},
    };
    zset_expect_each(h, rows);
}

ZSET_TEST(it_is_answered_where_nothing_can_be_written_any_more) {
    static const char *const rows[][2] = {
        {"LB.ADD bare:k ONCE a 5 ann", ":1"},
        {"LB.ADD bare:l ONCE a 5 ann", ":1"},
        {"LB.ALTER bare:k FREEZE", "+OK"},
        {"LB.ADD bare:k ONCE a 5 ann", ":0"},
        {"LB.ADD bare:k ONCE a WITHRANK 5 ann", "[[[ann :0 nil :5] :0]]"},
        {"LB.ADD bare:k ONCE b 5 ann",
         "-FROZEN board takes no writes: LB.ALTER with THAW ends that"},
        {"LB.ALTER bare:k THAW", "+OK"},
        {"LB.ADD bare:k ONCE b INCR 5 ann", ":1"}, /* refused: it has left no id */
        {"LB.ALTER bare:l LIMIT 1", "+OK"},
        {"LB.ADD bare:l ONCE b 5 bob", "-FULL board is full: at most 1 members"},
        {"LB.ADD bare:l ONCE a 5 ann", ":0"},
        {"LB.ALTER bare:l LIMIT 2", "+OK"},
        {"LB.ADD bare:l ONCE b 5 bob", ":1"},
    };
    zset_expect_each(h, rows);
}

ZSET_TEST(what_changed_nothing_counts_all_the_same) {
    static const char *const rows[][2] = {
        {"LB.ADD bare:k 5 ann", ":1"},
        {"LB.ADD bare:k ONCE a BEST 4 ann", ":0"},
        {"LB.ADD bare:k ONCE b NX 4 ann", ":0"},
        {"LB.ADD bare:k ONCE c XX 4 bob", ":0"},
        {"LB.ADD none ONCE d XX 4 bob", ":0"},
        {"TYPE none", "+none"},
        {"ZREM bare:k ann", ":1"},
        {"LB.ADD bare:k ONCE a BEST 4 ann", ":0"},
        {"LB.ADD bare:k ONCE b NX 4 ann", ":0"},
        {"LB.ADD none 1 bob", ":1"},
        {"LB.ADD none ONCE d XX 4 bob", ":0"},
        {"ZSCORE none bob", "1"},
        {"TYPE bare:k", "+none"},
    };
    zset_expect_each(h, rows);
}

ZSET_TEST(an_error_leaves_no_id) {
    static const char *const rows[][2] = {
        {"LB.ADD bare:k ONCE a x ann", "-ERR value is not a valid float: field 'score'"},
        {"LB.ADD bare:k ONCE a 5 ann 6", "-ERR syntax error, this board takes 1 value before each "
                                         "member: score"},
        {"LB.ADD bare:k ONCE a AT 5 5 ann", "-ERR AT is not allowed: this layout has no TIME"},
        {"LB.SUBMIT 2 bare:k three:k ONCE a 5 ann",
         "-ERR board 'three:k' takes 3 values before the member"},
        {"HSET h f v", ":1"},
        {"LB.ADD h ONCE a 5 ann",
         "-WRONGTYPE Operation against a key holding the wrong kind of value"},
        {"EXISTS bare:k three:k", ":0"},
    };
    zset_expect_each(h, rows);
    assert_int_equal(registry_count(h->server.registry, REGISTRY_ONCE), 0);
    zset_expect(h, "LB.ADD bare:k ONCE a 5 ann", ":1");
}

ZSET_TEST(an_id_has_1_to_64_bytes_and_comes_before_the_values) {
    static const char *const rows[][2] = {
        {"LB.ADD bare:k ONCE \"\" 5 ann", "-ERR ONCE takes an id of 1 to 64 bytes"},
        {"LB.ADD bare:k ONCE "
         "12345678901234567890123456789012345678901234567890123456789012345 5 ann",
         "-ERR ONCE takes an id of 1 to 64 bytes"},
        {"LB.ADD bare:k ONCE "
         "1234567890123456789012345678901234567890123456789012345678901234 5 ann",
         ":1"},
        {"LB.ADD bare:k ONCE \"\\x00\\r\\n\" 6 ann", ":1"},
        {"LB.ADD bare:k ONCE \"\\x00\\r\\n\" 7 ann", ":0"},
        {"LB.ADD bare:k ONCE a ONCE b 5 ann", "-ERR syntax error"},
        {"LB.ADD bare:k 5 ann ONCE x", "-ERR value is not a valid float: field 'score'"},
        {"LB.ADD bare:k PACKED ONCE a",
         "-ERR packed key ONCE is not an integer of this layout's 32 "
         "bits: -2147483648..2147483647 are allowed"},
        {"LB.SUBMIT 1 bare:k ONCE a", "-ERR syntax error"},
    };
    zset_expect_each(h, rows);
}

ZSET_TEST(an_id_belongs_to_the_key_it_was_sent_to) {
    static const char *const rows[][2] = {
        {"LB.ADD bare:k ONCE a 5 ann", ":1"},
        {"LB.ADD bare:l ONCE a 5 ann", ":1"},
        {"LB.ADD bare:ka ONCE b 5 ann", ":1"},
        {"LB.ADD bare:k ONCE ab 6 ann", ":1"},
        {"LB.SUBMIT 2 bare:l bare:k ONCE a 7 ann",
         "[[[ann :0 nil :5] :0 :0] [[ann :0 nil :6] :0 :0]]"},
        {"LB.SUBMIT 2 bare:m bare:k ONCE a 7 ann",
         "[[[ann :0 nil :7] nil :1] [[ann :0 nil :7] :0 :1]]"},
        {"LB.ADD bare:m ONCE a 9 ann", ":0"},
        {"SELECT 1", "+OK"},
        {"LB.ADD bare:k ONCE a 5 ann", ":1"},
        {"LB.ADD bare:k ONCE a 5 ann", ":0"},
    };
    zset_expect_each(h, rows);
}

ZSET_TEST(lb_submit_answers_each_board) {
    static const char *const rows[][2] = {
        {"LB.SUBMIT 2 bare:a bare:b ONCE a INCR 5 ann",
         "[[[ann :0 nil :5] nil :1] [[ann :0 nil :5] nil :1]]"},
        {"LB.SUBMIT 2 bare:a bare:b ONCE a INCR 5 ann",
         "[[[ann :0 nil :5] :0 :0] [[ann :0 nil :5] :0 :0]]"},
        {"ZREM bare:a ann", ":1"},
        {"LB.SUBMIT 2 bare:a bare:b ONCE a INCR 5 ann", "[[nil* nil :0] [[ann :0 nil :5] :0 :0]]"},
    };
    zset_expect_each(h, rows);
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
    zset_pass_seconds(h, 599);
    zset_expect(h, "LB.ADD bare:k ONCE a INCR 5 ann", ":0");
    zset_expect(h, "LB.ADD bare:k ONCE b INCR 5 ann", ":1");
    zset_pass_seconds(h, 1);
    zset_expect(h, "LB.ADD bare:k ONCE a INCR 5 ann", ":1"); /* and is known again from now on */
    zset_expect(h, "LB.ADD bare:k ONCE a INCR 5 ann", ":0");
    assert_int_equal(id_count(h), 2);
    zset_expect(h, "ZSCORE bare:k ann", "15");
    zset_pass_seconds(h, 599);
    zset_run(h, "PING");
    once_ids_forget_due(&h->server);
    assert_int_equal(id_count(h), 1);
    once_ids_forget_due(&h->server); /* not before a second is over */
    zset_pass_seconds(h, 1);
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
        zset_pass_seconds(h, 61);
        zset_run(h, "PING");
    }
    assert_true(h->server.clock.now_ms > 1767225600000 + 86000000);
    zset_expect(h, "LB.ADD bare:k ONCE a 6 ann", ":0");
    zset_expect(h, "LB.ADD bare:k ONCE b 6 ann", ":1");
    h->step_us = -INT64_C(864000000000);
    zset_pass_seconds(h, 400);
    zset_expect(h, "LB.ADD bare:k ONCE b 7 ann", ":0");
    zset_expect(h, "LB.ADD bare:k ONCE a 7 ann", ":0");
    zset_pass_seconds(h, 17);
    zset_expect(h, "LB.ADD bare:k ONCE a 7 ann", ":1");
    zset_expect(h, "LB.ADD bare:k ONCE b 7 ann", ":0");
    /* Another master goes on from the newest id. */
    replication_begin_epoch(&h->server);
    harness_set_clock(h, HARNESS_START_US + INT64_C(8640000000000));
    zset_expect(h, "LB.ADD bare:k ONCE b 7 ann", ":0");
    zset_pass_seconds(h, 600);
    zset_expect(h, "LB.ADD bare:k ONCE b 8 ann", ":1");
}

HARNESS_TEST(a_full_room_refuses_and_never_forgets, "once-max 3\nonce-window 10\n") {
    static const char refused[] = "-TRYAGAIN there are 3 ids (once-max) younger than once-window: "
                                  "send this again later";
    shadow_end(h->shadow);
    zset_expect(h, "LB.ADD k ONCE a INCR 1 ann", ":1");
    zset_pass_seconds(h, 5);
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
    zset_pass_seconds(h, 5);
    zset_expect(h, "LB.ADD k ONCE d INCR 1 ann", ":1"); /* the oldest one, of database 0, went */
    zset_expect(h, "LB.ADD k ONCE e INCR 1 ann", refused);
    zset_pass_seconds(h, 5);
    zset_expect(h, "LB.ADD k ONCE e INCR 1 ann", ":1");
    zset_expect(h, "CONFIG SET once-max 10 once-window 1", "+OK");
    zset_pass_seconds(h, 1);
    zset_expect(h, "LB.ADD k ONCE e INCR 1 ann", ":1");
}

ZSET_TEST(keys_that_are_renamed_removed_or_flushed_leave_their_ids) {
    shadow_end(h->shadow); /* in the module they take them along: docs/contests.md */
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

/* The members of the board of ids. */
static uint64_t count_ids_after(const char *line, uint64_t nth, bool *is_refused,
                                bool *is_written) {
    static const char *const keys[] = {"k"};
    const struct world world = {"LB.ADD k ONCE before 1 ann", NULL, keys, 1};
    struct harness *h = make_world(&world);
    const char *answered = harness_run_failing(h, h->server.sessions.first, line, nth);
    *is_refused = strcmp(answered, "-OOM out of memory\r\n") == 0;
    const char *reason;
    assert_true(registry_validate(h->server.registry, &reason));
    *is_written = strcmp(zset_run(h, "ZSCORE k bob"), "nil") != 0;
    uint64_t count = id_count(h);
    harness_destroy(h);
    return count;
}

TEST(without_memory_there_is_neither_a_result_nor_an_id) {
    static const char *const lines[] = {"LB.ADD k ONCE a 5 bob", "LB.ADD k ONCE a 5 bob 6 cid",
                                        "LB.SUBMIT 2 k new ONCE a 5 bob"};
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        unsigned refused_count = 0;
        for (uint64_t nth = 1; nth < 40; nth++) {
            bool is_refused;
            bool is_written;
            uint64_t count = count_ids_after(lines[i], nth, &is_refused, &is_written);
            assert_int_equal(is_written, !is_refused);
            assert_int_equal(count, is_refused ? 1 : 2);
            refused_count += is_refused;
        }
        assert_in_range(refused_count, 1, 39);
    }
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
            zset_pass_seconds(h, 1);
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
