/* LB.SUBMIT, sentence by sentence. */
#include "tests/server/zset_fixture.h"
#include "tests/support/errors.h"

#define SUBMIT " (LB.SUBMIT numkeys key ... [option ...] field ... member)"

ZSET_TEST(one_result_is_written_on_all_boards) {
    zset_expect(h, "ZADD week 7 ann 3 bob", ":2");
    zset_expect(h, "LB.SUBMIT 3 day week all 5 bob",
                "[[[bob :0 :1767225600000 :5] nil :1] [[bob :1 :1767225600000 :5] :1 :1] [[bob :0 "
                ":1767225600000 :5] nil :1]]");
    zset_expect(h, "ZSCORE week bob", "5");
    zset_expect(h, "ZSCORE all bob", "5");
    zset_expect(h, "LB.SUBMIT 2 day week INCR 4 bob",
                "[[[bob :0 :1767225600000 :9] :0 :1] [[bob :0 :1767225600000 :9] :1 :1]]");
    zset_expect(h, "LB.SUBMIT 2 day week BEST 8 bob",
                "[[[bob :0 :1767225600000 :9] :0 :0] [[bob :0 :1767225600000 :9] :0 :0]]");
    zset_expect(h, "LB.SUBMIT 1 day SET 8 bob", "[[[bob :0 :1767225600000 :8] :0 :1]]");
}

ZSET_TEST(each_board_applies_its_own_layout_and_options) {
    zset_expect(h, "LB.CREATE best FIELD a 10 FIELD b 10 ASC KEEP BEST", "+OK");
    zset_expect(h, "LB.CREATE few FIELD a 20 FIELD b 20 CAP 1", "+OK");
    zset_expect(h, "LB.SUBMIT 2 best few 5 5 ann",
                "[[[ann :0 nil :5 :5] nil :1] [[ann :0 nil :5 :5] nil :1]]");
    zset_expect(h, "LB.SUBMIT 2 best few 5 6 ann",
                "[[[ann :0 nil :5 :5] :0 :0] [[ann :0 nil :5 :6] :0 :1]]");
    /* Not kept: no record. */
    zset_expect(h, "LB.SUBMIT 2 few best 4 1 bob", "[[nil* nil :0] [[bob :1 nil :4 :1] nil :1]]");
    zset_expect(h, "LB.SUBMIT 2 few best * =2 ann",
                "[[[ann :0 nil :5 :2] :0 :1] [[ann :0 nil :5 :2] :0 :1]]");
}

ZSET_TEST(an_error_leaves_all_boards_as_they_were) {
    zset_expect(h, "LB.CREATE small FIELD a 3", "+OK");
    zset_expect(h, "LB.CREATE pair FIELD a 9 FIELD b 9", "+OK");
    zset_expect(h, "ZADD old 1 ann", ":1");
    zset_expect_unchanged(h, "old", "LB.SUBMIT 3 old new small 8 ann",
                          "-ERR value 8 is out of range: field 'a' takes 0..7 (board 'small')");
    zset_expect_unchanged(h, "old", "LB.SUBMIT 3 old new pair 5 ann",
                          "-ERR 'ann' is not a b: this board takes 2 values before each member: "
                          "a b" SUBMIT " (board 'pair')");
    zset_expect_unchanged(h, "old", "LB.SUBMIT 2 old new 5 ann INCR",
                          "-ERR 'INCR' is an option: options come before the values" SUBMIT
                          " (board 'old')");
    zset_expect_unchanged(h, "old", "LB.SUBMIT 2 old new 5 ann ONCE id",
                          "-ERR 'ONCE' is an option: options come before the values" SUBMIT
                          " (board 'old')");
    zset_expect_unchanged(h, "old", "LB.SUBMIT 2 old new INCRR 5 ann",
                          "-ERR 'INCRR' is not a score: this board takes 1 value before each "
                          "member: score, or did you mean INCR?" SUBMIT " (board 'old')");
    zset_expect_unchanged(h, "old", "LB.SUBMIT 2 old new 5 ann 6",
                          "-ERR '6' is one word too many: one member is written at a time" SUBMIT
                          " (board 'old')");
    zset_expect_unchanged(h, "old", "LB.SUBMIT 2 old new 5 ann 6 bob",
                          "-ERR '6' is one word too many: one member is written at a time" SUBMIT
                          " (board 'old')");
    zset_expect_unchanged(h, "old", "LB.SUBMIT 2 old new 5 6 ann",
                          "-ERR 'ann' is not a score: this board takes 1 value before each member: "
                          "score" SUBMIT " (board 'old')");
    zset_expect_unchanged(h, "old", "LB.SUBMIT 3 old new old 5 ann",
                          "-ERR board 'old' is given twice");
    zset_expect_unchanged(h, "old", "LB.SUBMIT 2 old new x ann",
                          ERROR_NUMBER("score") " (board 'old')");
    zset_expect_unchanged(h, "old", "LB.SUBMIT 2 old new 5 \"\"",
                          "-ERR member is 0 bytes long: 1..65536 are allowed");
    zset_expect(h, "EXISTS new", ":0");
    zset_expect(h, "ZCARD small", ":0");
}

ZSET_TEST(an_error_names_the_board_that_refuses) {
    zset_expect(h, "LB.CREATE full FIELD a 9 LIMIT 1", "+OK");
    zset_expect(h, "LB.CREATE late FIELD a 9 TIME 9 S START 2026-01-01T00:00:00Z", "+OK");
    zset_expect(h, "ZADD full 1 bob", ":1");
    zset_expect(h, "HSET hash a 1", ":1");
    zset_expect(h, "LB.BAN eve MATCH b*", ":0");
    zset_expect(h, "LB.SUBMIT 2 a full 5 ann",
                "-FULL board is full: at most 1 members (board 'full')");
    zset_expect(h, "LB.SUBMIT 2 a b 5 eve", ERROR_BANNED " (board 'b')");
    zset_expect(
        h, "LB.SUBMIT 2 a hash 5 ann",
        "-WRONGTYPE Operation against a key holding the wrong kind of value (board 'hash')");
    zset_expect(h, "LB.SUBMIT 1 late AT 0 5 ann",
                "-ERR time 1970-01-01T00:00:00Z is out of range: this layout's TIME takes "
                "2026-01-01T00:00:00Z..2026-01-01T00:08:31.999999Z (board 'late')");
    zset_expect(h, "LB.SUBMIT 2 a \"x\\r\\ny\" x ann", ERROR_NUMBER("score") " (board 'a')");
    zset_expect(h, "EXISTS a b", ":0");
}

ZSET_TEST(options_are_those_of_lb_add) {
    zset_expect(h, "ZADD day 3 ann", ":1");
    zset_expect(h, "LB.SUBMIT 2 day week XX INCR 4 ann",
                "[[[ann :0 :1767225600000 :7] :0 :1] [nil* nil :0]]");
    zset_expect(h, "EXISTS week", ":0");
    zset_expect(h, "LB.SUBMIT 2 day week NX 9 ann",
                "[[[ann :0 :1767225600000 :7] :0 :0] [[ann :0 :1767225600000 :9] nil :1]]");
    zset_expect(h, "LB.SUBMIT 2 day week STRINGS AT 1767225500000 BEST 8 ann",
                "[[[ann :0 :1767225500000 8] :0 :1] [[ann :0 :1767225600000 9] :0 :0]]");
    zset_expect(h, "LB.SUBMIT 1 day TOUCH 8 ann", "[[[ann :0 :1767225600000 :8] :0 :1]]");
    zset_expect(h, "LB.SUBMIT 1 day SET BEST 8 ann",
                "-ERR ... comes after ...: one of them is expected");
    zset_expect(h, "LB.SUBMIT 1 day PACKED 8 ann",
                "-ERR LB.SUBMIT takes no PACKED: each board packs keys in its way");
}

ZSET_TEST(the_boards_are_counted_and_bounded) {
    zset_expect(h, "LB.SUBMIT 0 a 5 ann", "-ERR numkeys must be 1..64");
    zset_expect(h, "LB.SUBMIT 65 a 5 ann", "-ERR numkeys must be 1..64");
    zset_expect(h, "LB.SUBMIT x a 5 ann", "-ERR value is not an integer or out of range");
    zset_expect(h, "LB.SUBMIT 2 a 5 ann", "-ERR syntax error");
    zset_expect(h, "LB.SUBMIT 1 a INCR ann", "-ERR syntax error");
    zset_expect(h, "EXISTS a", ":0");
    char line[1024] = "LB.SUBMIT 64";
    for (int i = 0; i < 64; i++) {
        snprintf(line + strlen(line), sizeof line - strlen(line), " board:%d", i);
    }
    strcat(line, " 5 ann");
    zset_run(h, "%s", line);
    zset_expect(h, "DBSIZE", ":64");
    zset_expect(h, "COMMAND GETKEYS LB.SUBMIT 2 a b 5 ann", "[a b]");
}

/* The end of a period may make another of the keys. */
ZSET_TEST(a_board_may_be_the_archive_of_the_next) {
    zset_expect(h, "LB.CREATE d FIELD a 33 TIME 29 MS PERIOD DAY", "+OK");
    zset_expect(h, "ZADD d 5 ann", ":1");
    h->wall_us += INT64_C(86400000000);
    zset_expect(h, "LB.SUBMIT 2 d@2026-01-01 d 7 cid",
                ERROR_FROZEN " (board "
                             "'d@2026-01-01')");
    zset_expect(h, "LB.ALTER d@2026-01-01 THAW", "+OK");
    zset_expect(h, "LB.SUBMIT 2 d@2026-01-01 d 7 cid",
                "[[[cid :0 :1767312000000 :7] nil :1] [[cid :0 :1767312000000 :7] nil :1]]");
    zset_expect(h, "ZRANGE d@2026-01-01 0 -1", "[ann cid]");
}
