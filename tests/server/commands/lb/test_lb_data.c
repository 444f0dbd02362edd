/* DATA pattern [FIELDS n field ...] of LB.GET, LB.RANGE, LB.AROUND and LB.QUANTILE. */
#include "tests/server/zset_fixture.h"
#include "tests/support/shadow.h"

static const char no_star[] = "-ERR DATA needs a key with a * where the member goes";

static void set_up(struct harness *h) {
    zset_run(h, "ZADD bare:k 30 zoe 20 ann 10 kim");
    zset_run(h, "HSET profile:zoe name Zoe tier gold");
    zset_run(h, "HSET profile:kim name Kim");
}

ZSET_TEST(each_record_has_the_hash_of_its_member) {
    set_up(h);
    zset_expect(h, "LB.RANGE bare:k 0 -1 DATA profile:*",
                "[[zoe :0 nil :30 [name Zoe tier gold]] [ann :1 nil :20 nil*] "
                "[kim :2 nil :10 [name Kim]]]");
    zset_use_resp3(h);
    zset_expect(h, "LB.RANGE bare:k 0 -1 DATA profile:*",
                "[[zoe :0 _ :30 {name Zoe tier gold}] [ann :1 _ :20 _] [kim :2 _ :10 {name Kim}]]");
}

ZSET_TEST(fields_are_the_values_asked_for) {
    set_up(h);
    zset_expect(h, "LB.RANGE bare:k 0 -1 REV DATA profile:* FIELDS 2 tier name",
                "[[kim :2 nil :10 [nil Kim]] [ann :1 nil :20 nil*] [zoe :0 nil :30 [gold Zoe]]]");
    zset_use_resp3(h);
    zset_expect(h, "LB.RANGE bare:k 0 0 FIELDS 1 name DATA profile:* WITHKEY",
                "[[zoe :0 _ :30 30 [Zoe]]]");
}

ZSET_TEST(every_command_that_replies_records_has_it) {
    set_up(h);
    zset_expect(h, "LB.GET bare:k 4 kim none ann zoe DATA profile:* FIELDS 1 name",
                "[[kim :2 nil :10 [Kim]] nil* [ann :1 nil :20 nil*] [zoe :0 nil :30 [Zoe]]]");
    zset_expect(h, "LB.GET bare:k 4 kim none ann zoe SORT COMP DATA profile:* FIELDS 1 name",
                "[[zoe :0 nil :30 [Zoe]] [ann :1 nil :20 nil*] [kim :2 nil :10 [Kim]] nil*]");
    zset_expect(h, "LB.AROUND bare:k MEMBER ann 2 DATA profile:*",
                "[[zoe :0 nil :30 [name Zoe tier gold]] [ann :1 nil :20 nil*]]");
    zset_expect(h, "LB.QUANTILE bare:k 1 0.5 0 DATA profile:* FIELDS 1 tier",
                "[[zoe :0 nil :30 [gold]] [ann :1 nil :20 nil*] [kim :2 nil :10 [nil]]]");
    zset_expect(h, "LB.QUANTILE none 1 data profile:*", "[nil*]");
    zset_expect(h, "LB.GET none 1 zoe DATA profile:*", "[nil*]");
    zset_expect(h, "LB.RANGE none 0 -1 DATA profile:*", "[]");
}

ZSET_TEST(the_star_is_the_member) {
    set_up(h);
    zset_run(h, "HSET zoe a 1");
    zset_run(h, "HSET p:zoe:b b 2");
    zset_expect(h, "LB.GET bare:k 1 zoe DATA *", "[[zoe :0 nil :30 [a 1]]]");
    zset_expect(h, "LB.GET bare:k 1 zoe DATA p:*:b", "[[zoe :0 nil :30 [b 2]]]");
}

ZSET_TEST(a_key_without_a_hash_is_nil) {
    set_up(h);
    zset_run(h, "ZADD profile:ann 1 m");
    zset_run(h, "PEXPIRE profile:kim 1000");
    harness_pass_seconds(h, 2);
    shadow_expire(h->shadow, 0, BYTES("profile:kim")); /* here it is only passed over */
    zset_expect(h, "LB.RANGE bare:k 0 -1 DATA profile:* FIELDS 1 name",
                "[[zoe :0 nil :30 [Zoe]] [ann :1 nil :20 nil*] [kim :2 nil :10 nil*]]");
    zset_run(h, "SELECT 1");
    zset_run(h, "ZADD bare:k 30 zoe");
    zset_expect(h, "LB.RANGE bare:k 0 -1 DATA profile:*", "[[zoe :0 nil :30 nil*]]");
}

ZSET_TEST(many_members_are_looked_up) {
    enum { MEMBERS = 1000 };
    for (int i = 0; i < MEMBERS; i++) {
        zset_run(h, "ZADD bare:k %d member:%d", i, i);
        if (i % 7 != 0) {
            zset_run(h, "HSET profile:member:%d:x name name:%d", i, i);
        }
    }
    const char *at = zset_run(h, "LB.RANGE bare:k 0 -1 DATA profile:*:x FIELDS 1 name") + 1;
    for (int i = MEMBERS - 1; i >= 0; i--) {
        char record[128];
        int size =
            snprintf(record, sizeof(record), "[member:%d :%d nil :%d ", i, MEMBERS - 1 - i, i);
        size += i % 7 != 0 ? snprintf(record + size, sizeof(record) - (size_t)size, "[name:%d]]", i)
                           : snprintf(record + size, sizeof(record) - (size_t)size, "nil*]");
        assert_memory_equal(at, record, (size_t)size);
        at += size + 1;
    }
}

/* Longer than what is held on the stack for a group, and longer than any key. */
ZSET_TEST(names_may_be_long) {
    zset_run(h, "ZADD bare:k 1 %03000d", 7);
    zset_run(h, "HSET profile:%03000d name Zoe", 7);
    zset_expect_part(h, "LB.RANGE bare:k 0 -1 DATA profile:*", "[name Zoe]");
    OWNED char *pattern = malloc(65537);
    assert_non_null(pattern);
    memset(pattern, 'x', 65537);
    pattern[0] = '*';
    struct bytes args[] = {BYTES("LB.RANGE"), BYTES("bare:k"), BYTES("0"),
                           BYTES("-1"),       BYTES("DATA"),   {pattern, 65536}};
    const char *reply = harness_run_args(h, s, args, 6);
    assert_string_equal(reply + h->reply.size - 5, "*-1\r\n");
    args[5].size++;
    assert_memory_equal(harness_run_args(h, s, args, 6), no_star, sizeof(no_star) - 1);
}

ZSET_TEST(what_makes_no_sense_is_refused) {
    set_up(h);
    static const char number[] = "-ERR value is not an integer or out of range";
    static const char syntax[] = "-ERR syntax error";
    zset_expect(h, "LB.RANGE bare:k 0 -1 DATA profile:", no_star);
    zset_expect(h, "LB.RANGE none 0 -1 DATA \"\"", no_star);
    zset_expect(h, "LB.RANGE bare:k 0 -1 DATA", syntax);
    static const char *const reads[] = {"LB.RANGE bare:k 0 -1", "LB.GET bare:k 1 zoe",
                                        "LB.AROUND bare:k MEMBER zoe 1", "LB.QUANTILE bare:k 1"};
    for (size_t i = 0; i < sizeof reads / sizeof reads[0]; i++) {
        zset_expect(h, formatted("%s DATA p:*:*", reads[i]),
                    "-ERR DATA takes one *, which stands for the member: it names one key "
                    "of each member, not all keys that match");
        zset_expect(h, formatted("%s DATA a:* DATA b:*", reads[i]),
                    "-ERR ... comes again: DATA is expected once");
    }
    zset_expect(h, "LB.RANGE bare:k 0 -1 DATA p:* FIELDS", syntax);
    zset_expect(h, "LB.RANGE bare:k 0 -1 DATA p:* FIELDS 1", syntax);
    zset_expect(h, "LB.RANGE bare:k 0 -1 FIELDS 1 name", syntax);
    zset_expect(h, "LB.GET bare:k 1 zoe FIELDS 1 name", syntax);
    zset_expect(h, "LB.AROUND bare:k MEMBER zoe 1 FIELDS 1 name", syntax);
    zset_expect(h, "LB.RANGE bare:k 0 -1 DATA p:* FIELDS x name", number);
    zset_expect(h, "LB.RANGE bare:k 0 -1 DATA p:* FIELDS 0 name",
                "-ERR n must be at least 1, not '0'");
    zset_expect(h, "LB.RANGE bare:k 0 -1 DATA p:* FIELDS 3 name tier",
                "-ERR field expected after 'tier'");
    zset_expect(h, "LB.RANGE bare:k 0 -1 DATA p:* FIELDS 1 name tier", syntax);
    zset_expect(h, "LB.QUANTILE bare:k DATA p:*", syntax);
    zset_expect(h, "LB.QUANTILE bare:k 1 FIELDS 1 name", syntax);
}

ZSET_TEST(the_cost_counts_the_hashes) {
    for (int i = 0; i < 5000; i++) {
        zset_run(h, "ZADD bare:k %d member:%d", i, i);
    }
    zset_run(h, "CONFIG SET busy-command-limit 1");
    assert_memory_equal(zset_run(h, "LB.RANGE bare:k 0 -1"), "[", 1);
    assert_memory_equal(zset_run(h, "LB.RANGE bare:k 0 -1 DATA p:*"), "-TOOLONG", 8);
    assert_memory_equal(zset_run(h, "LB.AROUND bare:k MEMBER member:7 4000 DATA p:*"), "-TOOLONG",
                        8);
}

/* Of names of hashes that have expired, and of boards whose period is over, and of the board that is read itself. With
 * the address sanitizer. */
ZSET_TEST(what_look_ups_of_a_command_end_is_freed_behind_it) {
    static char line[8192];
    size_t size = (size_t)snprintf(line, sizeof line, "LB.GET d:all 120");
    zset_run(h, "LB.CREATE d:all FIELD n 33 TIME 31 S");
    for (int i = 0; i < 120; i++) {
        zset_run(h, "ZADD d:all %d m%d", i, i);
        size += (size_t)snprintf(line + size, sizeof line - size, " m%d", i);
        if (i % 3 == 0) {
            zset_run(h, "HSET d:m%d f %d", i, i);
            zset_run(h, "EXPIRE d:m%d %d", i, i % 2 == 0 ? 10 : 1000000);
        } else if (i % 3 == 1) {
            zset_run(h, "LB.CREATE d:m%d FIELD n 33 TIME 31 S PERIOD HOUR ARCHIVE 1", i);
            zset_run(h, "ZADD d:m%d 1 x 2 y", i);
        }
    }
    zset_run(h, "ZADD d:all 500 all");
    for (int hour = 0; hour < 4; hour++) {
        h->wall_us += INT64_C(3600000000);
        for (int i = hour == 0 ? 0 : 6; i < (hour == 0 ? 120 : 18); i += 6) {
            char name[8];
            size_t name_size = (size_t)snprintf(name, sizeof name, "d:m%d", i);
            shadow_expire(h->shadow, 0, (struct bytes){name, name_size}); /* DATA passes over it */
        }
        const char *reply = zset_run(h, "%s DATA d:* FIELDS 1 f", line);
        assert_non_null(strstr(reply, "m3 "));
        assert_non_null(strstr(reply, "[3]"));
        assert_null(strstr(reply, "[6]"));
        reply = zset_run(h, "LB.RANGE d:all 0 -1 DATA d:* FIELDS 1 f");
        assert_non_null(strstr(reply, "[3]"));
        zset_run(h, "LB.ADD d:all INCR HSET d:* 1 f v 1 m6 1 m12 1 m18");
        zset_run(h, "EXPIRE d:m6 10");
        zset_run(h, "EXPIRE d:m12 10");
    }
}
