/* LB.ABOVE, LB.CUTS and LB.AROUND ... PACKED, sentence by sentence. Random ones, on boards of every layout:
 * test_lb_model.c. */
#include "tests/server/failing_memory.h"

static const char syntax[] = "-ERR syntax error";
static const char out_of_range[] = "-ERR ... is not a count from 2 to 10000";

/* Keys 90 70 70 40 20: a b c d e. Without a time a packed key is the score. */
static void set_up(struct harness *h) {
    zset_expect(h, "LB.CREATE k FIELD score 8 TAG country 8", "+OK");
    zset_expect(h, "LB.ADD k TAG country DE 90 a 70 b 40 d", ":3");
    zset_expect(h, "LB.ADD k TAG country FR 70 c 20 e", ":2");
}

ZSET_TEST(above_counts_the_better_ones_and_with_an_equals_sign_the_equal_ones_too) {
    static const char *const rows[][2] = {
        {"LB.ABOVE k 70", "[:1]"},
        {"LB.ABOVE k =70", "[:3]"},
        {"LB.ABOVE k 255 90 =90 89 0 =0 20 =20", "[:0 :0 :1 :1 :5 :5 :4 :5]"},
        {"LB.ABOVE k 20 =70 WHERE country DE", "[:3 :2]"},
        {"LB.ABOVE k =70 WHERENOT country DE", "[:1]"},
        {"LB.ABOVE k 20 WHERE country US", "[:0]"},
        {"LB.ABOVE none 5 =6", "[:0 :0]"},
        /* No board has no layout: its keys may be those of any. */
        {"LB.ABOVE none 18446744073709551615 =-9223372036854775808", "[:0 :0]"},
        {"LB.ABOVE none 5 =x", "-ERR packed key x is not an integer"},
        {"LB.AROUND none PACKED 18446744073709551615 3", "[]"},
        {"LB.ABOVE none 5 WHERE x y", "[:0]"},
    };
    set_up(h);
    zset_expect_each(h, rows);
}

/* The better one has the larger packed key, so nobody needs to know which layout it is. */
ZSET_TEST(packed_keys_are_those_of_withkey_whatever_the_layout) {
    zset_expect(h, "LB.CREATE asc FIELD ms 8 ASC FIELD bonus 8 SIGNED", "+OK");
    zset_expect(h, "LB.ADD asc 10 -1 a 10 -2 b 30 5 c", ":3");
    zset_expect(h, "LB.RANGE asc 0 -1 WITHKEY",
                "[[a :0 nil :10 :-1 62847] [b :1 nil :10 :-2 62846] [c :2 nil :30 :5 57733]]");
    zset_expect(h, "LB.ABOVE asc 62847 62846 57733 =57733", "[:0 :1 :2 :3]");
    zset_expect(h, "LB.CUTS asc 2", "[[:0 62847] [:2 57733]]");
    zset_expect(h, "LB.CREATE signed FIELD score 8 SIGNED TIME 8 S START 0", "+OK");
    zset_expect(h, "LB.ADD signed AT 5000 -3 a -3 b", ":2");
    zset_expect(h, "LB.ADD signed AT 6000 -3 c", ":1");
    zset_expect(h, "LB.ADD signed AT 7000 4 d", ":1");
    zset_expect(h, "LB.CUTS signed 4", "[[:0 1272] [:1 -518] [:2 -518] [:3 -519]]");
    zset_expect(h, "LB.ABOVE signed 1272 -518 =-518 -519", "[:0 :1 :3 :3]");
    /* COMP: members with the same fields are equal, whatever their times. */
    zset_expect(h, "LB.ABOVE signed -519 =-518 -519 COMP", "[:1 :4 :1]");
    zset_expect(h, "LB.ABOVE signed 40000",
                "-ERR packed key 40000 is not an integer of this layout's 16 "
                "bits: -32768..32767 are allowed");
}

ZSET_TEST(cuts_are_the_first_the_last_and_others_at_equal_distances) {
    static const char *const rows[][2] = {
        {"LB.CUTS k 2", "[[:0 90] [:4 20]]"},
        {"LB.CUTS k 3", "[[:0 90] [:2 70] [:4 20]]"},
        {"LB.CUTS k 4", "[[:0 90] [:1 70] [:2 70] [:4 20]]"},
        {"LB.CUTS k 10000", "[[:0 90] [:1 70] [:2 70] [:3 40] [:4 20]]"},
        {"LB.CUTS k 2 1 3", "[[:1 70] [:3 40]]"},
        {"LB.CUTS k 5 3 100", "[[:3 40] [:4 20]]"},
        {"LB.CUTS k 2 -1 -1", "[[:4 20]]"},
        {"LB.CUTS k 2 3 1", "[]"},
        {"LB.CUTS k 2 5 9", "[]"},
        {"LB.CUTS k 2 WHERE country DE", "[[:0 90] [:2 40]]"},
        {"LB.CUTS k 9 1 2 WHERENOT country FR", "[[:1 70] [:2 40]]"},
        {"LB.CUTS k 2 WHERE country US", "[]"},
        {"LB.CUTS none 2", "[]"},
    };
    set_up(h);
    zset_expect_each(h, rows);
}

ZSET_TEST(around_a_packed_key_is_around_its_first_equal_or_behind_the_last) {
    static const char *const rows[][2] = {
        {"LB.AROUND k PACKED 70 2 WITHKEY", "[[a :0 nil :90 90] [b :1 nil :70 70]]"},
        {"LB.AROUND k PACKED =70 2", "[[c :2 nil :70] [d :3 nil :40]]"},
        {"LB.AROUND k PACKED 255 2", "[[a :0 nil :90] [b :1 nil :70]]"},
        {"LB.AROUND k PACKED =0 1", "[[e :4 nil :20]]"},
        {"LB.AROUND k PACKED =70 2 WHERE country DE", "[[b :1 nil :70] [d :2 nil :40]]"},
        {"LB.AROUND k MEMBER e 1 WITHKEY", "[[e :4 nil :20 20]]"},
        {"LB.AROUND none PACKED 70 2", "[]"},
        {"LB.AROUND k PACKED 70 2 WITHIN country",
         "-ERR WITHIN needs MEMBER: a packed key has no tags"},
        {"LB.AROUND k PACKED x 2",
         "-ERR packed key x is not an integer of this layout's 8 bits: 0..255 are allowed"},
    };
    set_up(h);
    zset_expect_each(h, rows);
}

ZSET_TEST(what_makes_no_sense_is_refused) {
    static const char unknown[] = "-ERR no tag 'x': this board has country";
    static const char wrong_type[] =
        "-WRONGTYPE Operation against a key holding the wrong kind of value";
    static const char no_integer[] = "-ERR value is not an integer or out of range";
    static const char no_key[] =
        "-ERR packed key 256 is not an integer of this layout's 8 bits: 0..255 are allowed";
    static const char *const rows[][2] = {
        {"LB.ABOVE k", "-ERR wrong number of arguments for 'lb.above' command"},
        {"LB.ABOVE k COMP", syntax},
        {"LB.ABOVE k 256", no_key},
        {"LB.ABOVE k 7 =256", no_key},
        {"LB.ABOVE k 7 WHERE country", syntax},
        {"LB.ABOVE k 7 COMP 8", syntax},
        {"LB.ABOVE k 7 WHERE x y", unknown},
        {"LB.ABOVE hash 7", wrong_type},
        {"LB.CUTS k", "-ERR wrong number of arguments for 'lb.cuts' command"},
        {"LB.CUTS k 1", out_of_range},
        {"LB.CUTS k 10001", out_of_range},
        {"LB.CUTS k x", no_integer},
        {"LB.CUTS k 2 0", syntax},
        {"LB.CUTS k 2 x 1", no_integer},
        {"LB.CUTS k 2 0 1 2", syntax},
        {"LB.CUTS k 2 WHERE x y", unknown},
        {"LB.CUTS hash 2", wrong_type},
    };
    set_up(h);
    zset_expect(h, "HSET hash a 1", ":1");
    zset_expect_each(h, rows);
}

/* So that no request holds the server for long. */
ZSET_TEST(there_are_ten_thousand_packed_keys_at_most) {
    enum { MOST = 10000 };
    static struct bytes args[MOST + 3];
    args[0] = BYTES("LB.ABOVE");
    args[1] = BYTES("k");
    for (int i = 0; i <= MOST; i++) {
        args[2 + i] = BYTES("5");
    }
    assert_memory_equal(harness_run_args(h, s, args, 2 + MOST), "*10000\r\n", 8);
    assert_string_equal(harness_run_args(h, s, args, 3 + MOST),
                        "-ERR LB.ABOVE takes at most 10000 packed keys\r\n");
}
