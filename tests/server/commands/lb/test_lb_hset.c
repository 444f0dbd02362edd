/* LB.ADD HSET and LB.SUBMIT HSET, sentence by sentence. */
#include "tests/server/zset_fixture.h"
#include "tests/support/errors.h"

ZSET_TEST(fields_are_set_if_the_result_changes_the_members) {
    zset_expect(h, "LB.ADD bare:k BEST HSET run:laps:* 2 replay r/77 car 9ff 81 ann", ":1");
    zset_expect(h, "HGETALL run:laps:ann", "[replay r/77 car 9ff]");
    zset_expect(h, "LB.ADD bare:k BEST HSET run:laps:* 2 replay r/78 car 8 80 ann", ":0");
    zset_expect(h, "HGETALL run:laps:ann", "[replay r/77 car 9ff]");
    zset_expect(h, "LB.ADD bare:k BEST HSET run:laps:* 1 replay r/79 82 ann", ":1");
    zset_expect(h, "HGETALL run:laps:ann", "[replay r/79 car 9ff]");
    zset_expect(h, "LB.ADD bare:k NX HSET run:laps:* 1 replay r/80 83 ann", ":0");
    zset_expect(h, "LB.ADD bare:k XX HSET run:laps:* 1 replay r/80 83 bob", ":0");
    zset_expect(h, "EXISTS run:laps:bob", ":0");
    zset_expect(h, "LB.ADD bare:k INCR HSET run:laps:* 1 replay r/81 1 ann", ":1");
    zset_expect(h, "HGET run:laps:ann replay", "r/81");
    /* Its time alone is no field. */
    zset_expect(h, "LB.ADD k HSET r:* 1 f 1 5 ann", ":1");
    zset_expect(h, "LB.ADD k TOUCH HSET r:* 1 f 2 5 ann", ":1");
    zset_expect(h, "HGET r:ann f", "1");
    zset_expect(h, "LB.ADD k AT 1767225500000 HSET r:* 1 f 3 6 ann", ":1");
    zset_expect(h, "HGET r:ann f", "3");
}

/* What the stack has of commands before is of no result. */
__attribute__((noinline)) static void fill_stack(void) {
    volatile char room[1 << 16];
    for (size_t i = 0; i < sizeof room; i++) {
        room[i] = 0x5a;
    }
}

ZSET_TEST(a_new_hash_stays_whatever_ran_before) {
    static const char *const made[][3] = {
        {"LB.ADD bare:k HSET a:* 1 f v 5 ann", ":1", "TTL a:ann"},
        {"LB.ADD bare:k HSET b:* 1 f v 6 ann 7 bob", ":2", "TTL b:bob"},
        {"LB.SUBMIT 1 bare:l HSET c:* 1 f v 5 ann", "[[[ann :0 nil :5] nil :1]]", "TTL c:ann"},
        {"LB.APPROVE held ann", ":1", "TTL d:ann"},
    };
    zset_expect(h, "LB.CREATE held FIELD a 20 HOLD ALL OVER 100", "+OK");
    zset_expect(h, "LB.ADD held HSET d:* 1 f v 500 ann", ":0");
    for (size_t i = 0; i < sizeof made / sizeof made[0]; i++) {
        fill_stack();
        zset_expect(h, made[i][0], made[i][1]);
        zset_expect(h, made[i][2], ":-1");
    }
}

ZSET_TEST(each_member_and_each_board_decides_for_itself) {
    zset_expect(h, "LB.ADD bare:k 5 ann", ":1");
    zset_expect(h, "LB.ADD bare:k BEST HSET h:* 1 f v 4 ann 4 bob 3 cid", ":2");
    zset_expect(h, "EXISTS h:ann h:bob h:cid", ":2");
    zset_expect(h, "LB.SUBMIT 2 bare:k bare:l BEST HSET of:%:* 1 f w 5 ann",
                "[[[ann :0 nil :5] :0 :0] [[ann :0 nil :5] nil :1]]");
    zset_expect(h, "EXISTS of:bare:k:ann", ":0");
    zset_expect(h, "HGETALL of:bare:l:ann", "[f w]");
    /* Without % there is one hash: any board will do. */
    zset_expect(h, "LB.SUBMIT 3 bare:k bare:l bare:m BEST HSET all:* 1 f x 5 ann",
                "[[[ann :0 nil :5] :0 :0] [[ann :0 nil :5] :0 :0] [[ann :0 nil :5] nil :1]]");
    zset_expect(h, "HGETALL all:ann", "[f x]");
    zset_expect(h, "LB.SUBMIT 2 bare:k bare:l BEST HSET all:* 1 f y 5 ann",
                "[[[ann :0 nil :5] :0 :0] [[ann :0 nil :5] :0 :0]]");
    zset_expect(h, "HGETALL all:ann", "[f x]");
    zset_expect(h, "LB.SUBMIT 2 bare:k bare:l BEST HSET all:* 1 f y 6 ann",
                "[[[ann :0 nil :6] :0 :1] [[ann :0 nil :6] :0 :1]]");
    zset_expect(h, "HGETALL all:ann", "[f y]");
    zset_expect(h, "LB.ADD bare:k HSET %/* 1 f v 9 dan", ":1");
    zset_expect(h, "HGETALL bare:k/dan", "[f v]");
    zset_expect(h, "LB.ADD bare:k HSET h:* 1 f first 1 eve 2 eve", ":2");
    zset_expect(h, "HGETALL h:eve", "[f first]");
}

ZSET_TEST(who_is_not_on_the_board_gets_nothing) {
    zset_expect(h, "LB.CREATE few FIELD a 20 CAP 2", "+OK");
    zset_expect(h, "LB.ADD few HSET h:* 1 f v 1 ann 2 bob 3 cid", ":2");
    zset_expect(h, "EXISTS h:ann h:bob h:cid", ":2");
    zset_expect(h, "EXISTS h:ann", ":0");
    zset_expect(h, "LB.SUBMIT 1 few HSET h:* 1 f v 1 dan", "[[nil* nil :0]]");
    zset_expect(h, "EXISTS h:dan", ":0");
    zset_expect(h, "LB.CREATE best FIELD a 20 KEEP BEST", "+OK");
    zset_expect(h, "LB.ADD best HSET b:* 1 f 1 5 ann", ":1");
    zset_expect(h, "LB.ADD best HSET b:* 1 f 2 4 ann", ":0");
    zset_expect(h, "HGET b:ann f", "1");
    zset_expect(h, "LB.ADD few HSET h:* 1 f v 1 zed", ":0");
    zset_expect(h, "EXISTS h:zed", ":0");
    zset_expect(h, "LB.ADD few WITHRANK HSET h:* 1 f v 1 zed", "[[nil* nil]]");
    zset_expect(h, "EXISTS h:zed", ":0");
}

ZSET_TEST(an_error_changes_neither_boards_nor_hashes) {
    static const char star[] =
        "-ERR HSET needs a key with one * where the member goes, and at most "
        "one % where the board's name goes";
    static const char wrong[] =
        "-WRONGTYPE Operation against a key holding the wrong kind of value";
    static const char wrong_of_l[] = "-WRONGTYPE Operation against a key holding the wrong kind of "
                                     "value (board 'bare:l')";
    const char *const rows[][2] = {
        {"LB.ADD bare:k HSET h 1 f v 5 ann", star},
        {"LB.ADD bare:k HSET h:*:* 1 f v 5 ann", star},
        {"LB.ADD bare:k HSET %h:*% 1 f v 5 ann", star},
        {"LB.ADD bare:k HSET h:* 0 f v 5 ann", "-ERR HSET takes 1 to 1024 fields"},
        {"LB.ADD bare:k HSET h:* 1025 f v 5 ann", "-ERR HSET takes 1 to 1024 fields"},
        {"LB.ADD bare:k HSET h:* x f v 5 ann", "-ERR value is not an integer or out of range"},
        {"LB.ADD bare:k HSET h:* 3 f v 5 ann", "-ERR syntax error"},
        {"LB.ADD bare:k HSET h:* 1 f v HSET h:* 1 f v 5 ann", "-ERR syntax error"},
        {"LB.ADD bare:k HSET h:* 1 f v x ann", ERROR_NUMBER("score")},
        {"ZADD bare:old 1 m", ":1"},
        {"LB.ADD bare:k HSET bare:* 1 f v 5 ann 5 old", wrong},
        {"LB.ADD bare:k HSET * 1 f v 5 bare:k", wrong},
        {"LB.SUBMIT 2 bare:k bare:l HSET bare:* 1 f v 5 old", wrong},
        {"ZADD s:bare:l:ann 1 m", ":1"},
        {"LB.SUBMIT 2 bare:k bare:l HSET s:%:* 1 f v 5 ann", wrong_of_l},
        {"EXISTS bare:k bare:l bare:ann s:bare:k:ann", ":0"},
        {"DBSIZE", ":2"},
    };
    zset_expect_each(h, rows);
}

/* As many fields of all members together as would fit into a request of a thousand. */
ZSET_TEST(the_fields_are_bounded) {
    char line[8192] = "LB.ADD bare:k HSET h:* 400";
    for (int i = 0; i < 400; i++) {
        snprintf(line + strlen(line), sizeof line - strlen(line), " f%d v", i);
    }
    size_t size = strlen(line);
    snprintf(line + size, sizeof line - size, " 1 a 2 b");
    zset_expect(h, line, ":2");
    zset_expect(h, "HLEN h:b", ":400");
    snprintf(line + size, sizeof line - size, " 1 c 2 d 3 e");
    zset_expect(h, line, "-ERR HSET takes 1024 fields and 67108864 bytes of all members together");
    zset_expect(h, "ZCARD bare:k", ":2");
}

HARNESS_TEST(users_need_the_right_to_write_the_hash,
             "user sam on nopass ~bare:* ~run:* %R~see:* +@all\n") {
    shadow_end(h->shadow);
    zset_expect(h, "AUTH sam x", "+OK");
    zset_expect(h, "LB.ADD bare:k HSET run:* 1 f v 5 ann", ":1");
    zset_expect_begin(h, "LB.ADD bare:k HSET see:* 1 f v 6 ann", "-NOPERM");
    zset_expect_begin(h, "LB.SUBMIT 1 bare:k HSET other:%:* 1 f v 6 ann", "-NOPERM");
    zset_expect(h, "ZSCORE bare:k ann", "5");
    /* Whatever becomes of the result. */
    zset_expect_begin(h, "LB.ADD bare:k BEST HSET see:* 1 f v 4 ann", "-NOPERM");
    zset_expect_begin(h, "LB.ADD bare:k NX HSET see:* 1 f v 6 ann 7 bob", "-NOPERM");
    zset_expect_begin(h, "LB.SUBMIT 2 bare:k bare:l NX HSET see:* 1 f v 6 ann", "-NOPERM");
    zset_expect(h, "EXISTS bare:l", ":0");
}

ZSET_TEST(those_who_watch_the_hash_are_told) {
    zset_run(h, "WATCH h:ann");
    struct session *other = harness_connect(h);
    harness_expect(h, other, "LB.ADD bare:k HSET h:* 1 f v 5 ann", ":1\r\n");
    zset_run(h, "MULTI");
    zset_run(h, "PING");
    zset_expect(h, "EXEC", "nil*");
}

ZSET_TEST(a_result_that_comes_again_sets_nothing) {
    zset_expect(h, "LB.ADD bare:k ONCE a HSET h:* 1 f 1 5 ann", ":1");
    zset_expect(h, "LB.ADD bare:k ONCE a HSET h:* 1 f 2 6 ann", ":0");
    zset_expect(h, "HGET h:ann f", "1");
    zset_expect(h, "LB.SUBMIT 1 bare:k HSET h:* 1 f 3 ONCE b 7 ann", "[[[ann :0 nil :7] :0 :1]]");
    zset_expect(h, "LB.SUBMIT 1 bare:k HSET h:* 1 f 4 ONCE b 8 ann", "[[[ann :0 nil :7] :0 :0]]");
    zset_expect(h, "HGET h:ann f", "3");
}

ZSET_TEST(a_boards_name_that_a_pattern_reads_otherwise_does_not_go_into_the_name_of_a_hash) {
#define STARRED                                                                                    \
    "-ERR HSET takes no % for a board with a * or %@ in its name: DATA could not name the hash"
    zset_expect(h, "LB.ADD x*y HSET h:%:* 1 f 1 5 ann", STARRED);
    zset_expect(h, "LB.SUBMIT 2 a x*y HSET h:%:* 1 f 1 5 ann", STARRED " (board 'x*y')");
    zset_expect(h, "EXISTS x*y a h:x*y:ann h:a:ann", ":0");
    zset_expect(h, "LB.ADD x%@y HSET h:%:* 1 f 1 5 ann", STARRED);
    zset_expect(h, "LB.ADD x%@y HSET h:%@:* 1 f 1 5 ann", ":1");
    zset_expect(h, "LB.RANGE x%@y 0 0 DATA h:%@:*", "[[ann :0 :1767225600000 :5 [f 1]]]");
    zset_expect(h, "LB.ADD x*y HSET h:* 1 f 1 5 ann", ":1");
    zset_expect(h, "LB.RANGE x*y 0 0 DATA h:*", "[[ann :0 :1767225600000 :5 [f 1]]]");
}
