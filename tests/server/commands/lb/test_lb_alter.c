/* LB.ALTER, what refuses writes, and LIMIT, sentence by sentence. */
#include "tests/server/zset_fixture.h"
#include "tests/support/errors.h"
#include "tests/support/shadow.h"

static const char frozen[] = ERROR_FROZEN;

/* ---- refusing writes ---- */

/* Whatever changes members of the board k; of j are members a and b. */
static const char *const writes[] = {
    "ZADD k 9 a",
    "ZADD k XX 9 none",
    "ZADD k 1 a 2 b 3 c",
    "ZINCRBY k 1 a",
    "ZADD k INCR 1 a",
    "ZREM k a",
    "ZREM k none",
    "ZREM k a b",
    "ZREMRANGEBYRANK k 0 0",
    "ZREMRANGEBYSCORE k 9 8",
    "ZPOPMIN k",
    "ZPOPMAX k 2",
    "ZMPOP 1 k MIN",
    "ZMPOP 2 k j MAX COUNT 2",
    "ZUNIONSTORE k 1 j",
    "ZUNIONSTORE k 2 k j",
    "ZINTERSTORE k 2 j none",
    "ZDIFFSTORE k 1 j",
    "ZRANGESTORE k j 0 -1",
    "ZRANGESTORE k none 0 -1",
    "LB.ADD k 1 a",
    "LB.ADD k 1 a 2 b",
    "LB.ADD k PACKED 7 a",
    "LB.ADD k TOUCH * a",
    "LB.ROLL k k2",
};

static const char *const reads[][2] = {
    {"ZRANGE k 0 -1 WITHSCORES", "[a 1 b 2]"},
    {"ZSCORE k a", "1"},
    {"ZCARD k", ":2"},
    {"LB.GET k 1 none", "[nil*]"},
    {"ZUNIONSTORE z 1 k", ":2"},
    {"EXISTS k", ":1"},
};

static void expect_refused(struct harness *h, const char *error) {
    for (size_t i = 0; i < sizeof writes / sizeof writes[0]; i++) {
        zset_expect(h, writes[i], error);
    }
    zset_expect_each(h, reads);
    assert_false(registry_find(h->server.registry, 0, BYTES("k2"), h->wall_us / 1000) != NULL);
}

static void make_boards(struct harness *h) {
    zset_expect(h, "ZADD k 1 a 2 b", ":2");
    zset_expect(h, "ZADD j 3 a 4 b", ":2");
}

ZSET_TEST(a_frozen_board_refuses_every_write_and_reads_as_ever) {
    make_boards(h);
    zset_expect(h, "LB.ALTER k FREEZE", "+OK");
    expect_refused(h, frozen);
    zset_expect_part(h, "LB.INFO k",
                     " frozen :1 opens nil closes nil stale nil settle :0 settled nil ended nil "
                     "dense :0 rating nil limits nil tickets :0 hold nil held nil window nil "
                     "archives [] tags []]");
    zset_expect(h, "LB.ALTER k THAW", "+OK");
    zset_expect(h, "ZREM k a", ":1");
    zset_expect(h, "ZADD k 1 a", ":1");
}

ZSET_TEST(a_board_takes_writes_from_when_it_opens_until_it_closes) {
    make_boards(h);
    h->wall_us = zset_us("2026-11-16T12:00:00Z");
    zset_expect(h, "LB.ALTER k OPENS 2026-11-17T00:00:00+01:00 CLOSES 1795000000000", "+OK");
    zset_expect_part(
        h, "LB.INFO k",
        " frozen :0 opens :1794870000000 closes :1795000000000 stale nil settle :0 "
        "settled nil ended nil dense :0 rating nil limits nil tickets :0 hold nil held nil "
        "window nil archives [] tags []]");
    expect_refused(h, "-CLOSED board opens at 2026-11-16T23:00:00Z");
    h->wall_us = zset_us("2026-11-16T23:00:00Z") - 1;
    zset_expect(h, "ZREM k a", "-CLOSED board opens at 2026-11-16T23:00:00Z");
    h->wall_us += 1;
    zset_expect(h, "ZADD k 5 a", ":0");
    zset_expect(h, "ZADD k 1 a", ":0");
    h->wall_us = INT64_C(1795000000000000) - 1;
    zset_expect(h, "ZINCRBY k 0 a", "1");
    h->wall_us += 1;
    expect_refused(h, "-CLOSED board has been closed since 2026-11-18T11:06:40Z");
    zset_expect(h, "LB.ALTER k CLOSES NONE", "+OK");
    zset_expect(h, "ZINCRBY k 0 a", "1");
    zset_expect(h, "LB.ALTER k OPENS NONE", "+OK");
    zset_expect_part(h, "LB.INFO k",
                     " frozen :0 opens nil closes nil stale nil settle :0 settled nil ended nil "
                     "dense :0 rating nil limits nil tickets :0 hold nil held nil window nil "
                     "archives [] tags []]");
}

ZSET_TEST(keys_are_the_operators_also_of_a_frozen_board) {
    make_boards(h);
    zset_expect(h, "LB.ALTER k FREEZE", "+OK");
    zset_expect(h, "COPY k copy", ":1");
    zset_expect(h, "ZREM copy a", frozen);
    zset_expect(h, "RENAME k name", "+OK");
    zset_expect(h, "ZREM name a", frozen);
    zset_expect(h, "EXPIRE name 100", ":1");
    zset_expect(h, "PERSIST name", ":1");
    zset_expect(h, "RENAME j name", "+OK");
    zset_expect(h, "ZREM name a", ":1");
    zset_expect(h, "DEL copy", ":1");
}

ZSET_TEST(a_transaction_that_meets_a_frozen_board_goes_on_behind_it) {
    make_boards(h);
    zset_expect(h, "LB.ALTER k FREEZE", "+OK");
    zset_expect(h, "MULTI", "+OK");
    zset_expect(h, "ZADD k 5 a", "+QUEUED");
    zset_expect(h, "ZADD j 5 a", "+QUEUED");
    zset_expect_part(h, "EXEC", ":0");
    zset_expect(h, "ZSCORE k a", "1");
    zset_expect(h, "ZSCORE j a", "5");
}

HARNESS_TEST(a_board_that_the_settings_keep_closed_is_not_made_by_a_write,
             "board late:* default OPENS 2100-01-01T00:00:00Z\n") {
    zset_expect(h, "ZADD late:a 1 ann", "-CLOSED board opens at 2100-01-01T00:00:00Z");
    zset_expect(h, "LB.ADD late:a 1 ann", "-CLOSED board opens at 2100-01-01T00:00:00Z");
    zset_expect(h, "ZADD j 1 ann", ":1");
    zset_expect(h, "ZUNIONSTORE late:a 1 j", "-CLOSED board opens at 2100-01-01T00:00:00Z");
    zset_expect(h, "DBSIZE", ":1");
    zset_expect(h, "LB.CREATE late:a", "+OK");
    zset_expect(h, "ZADD late:a 1 ann", "-CLOSED board opens at 2100-01-01T00:00:00Z");
}

/* ---- LIMIT ---- */

ZSET_TEST(a_board_with_a_limit_refuses_newcomers_when_it_is_full) {
    static const char full[] = "-FULL board is full: at most 3 members";
    zset_expect(h, "LB.CREATE room LIMIT 3", "+OK");
    zset_expect(h, "ZADD room 1 a 2 b", ":2");
    zset_expect(h, "ZADD room 9 c 9 d", full);
    zset_expect(h, "LB.ADD room 9 c 9 d", full);
    zset_expect(h, "ZCARD room", ":2");
    zset_expect(h, "LB.ADD room 3 c 4 c 5 c", ":3");
    zset_expect(h, "ZADD room 9 d", full);
    zset_expect(h, "ZINCRBY room 9 d", full);
    zset_expect(h, "LB.ADD room 9 d", full);
    zset_expect(h, "ZADD room XX 9 d 8 e", ":0");
    zset_expect(h, "ZADD room 7 a 8 b", ":0");
    zset_expect(h, "ZRANGE room 0 -1 WITHSCORES", "[c 5 a 7 b 8]");
    zset_expect_part(h, "LB.INFO room", "cap nil keep last created :1 period nil limit :3 ");
    zset_expect(h, "ZADD j 1 a 2 b 3 c 4 d", ":4");
    zset_expect(h, "ZUNIONSTORE room 1 j", full);
    zset_expect(h, "ZRANGESTORE room j 0 -1", full);
    zset_expect(h, "ZRANGESTORE room j 0 2", ":3");
    zset_expect(h, "ZREM room a", ":1");
    zset_expect(h, "ZADD room 9 d", ":1");
    /* A smaller one removes nobody. */
    zset_expect(h, "LB.ALTER room LIMIT 1", "+OK");
    zset_expect(h, "ZCARD room", ":3");
    zset_expect(h, "ZADD room 9 e", "-FULL board is full: at most 1 members");
    zset_expect(h, "LB.ALTER room LIMIT NONE", "+OK");
    zset_expect(h, "ZADD room 9 e", ":1");
}

/* ---- options of a living board ---- */

ZSET_TEST(a_smaller_cap_cuts_the_worst) {
    zset_expect(h, "ZADD k 1 a 2 b 3 c 4 d", ":4");
    zset_expect(h, "LB.ALTER k CAP 2", "+OK");
    zset_expect(h, "ZREVRANGE k 0 -1", "[d c]");
    zset_expect(h, "ZADD k 1 a", ":0");
    zset_expect(h, "LB.ALTER k CAP 3 KEEP BEST", "+OK");
    zset_expect(h, "ZADD k 1 a 1 d", ":1");
    zset_expect(h, "ZREVRANGE k 0 -1 WITHSCORES", "[d 4 c 3 a 1]");
    zset_expect(h, "LB.ALTER k LIMIT 3", "+OK");
    zset_expect_part(h, "LB.INFO k", "cap nil keep best created :0 period nil limit :3 ");
    zset_expect(h, "LB.ALTER k CAP 2", "+OK");
    zset_expect_part(h, "LB.INFO k", "cap :2 keep best created :0 period nil limit nil ");
    zset_expect(h, "LB.ALTER k CAP NONE KEEP LAST", "+OK");
    zset_expect_part(h, "LB.INFO k", "cap nil keep last created :0 period nil limit nil ");
    zset_expect(h, "ZREM k d c", ":2");
    zset_expect(h, "EXISTS k", ":0");
}

ZSET_TEST(a_million_members_are_cut_in_steps) {
    enum { MEMBERS = 200000 };
    struct registry *registry = h->server.registry;
    zset_expect(h, "LB.CREATE k", "+OK");
    shadow_end(h->shadow); /* members come past the commands */
    struct registry_key *key = registry_find(registry, 0, BYTES("k"), h->wall_us / 1000);
    for (int i = 0; i < MEMBERS; i++) {
        char name[16];
        struct board_member member;
        size_t size = (size_t)snprintf(name, sizeof name, "m%d", i);
        board_look_up(&key->board, (struct bytes){name, size}, NULL, &member);
        assert_int_equal(registry_board_put(registry, key, &member, (uint64_t)i), BOARD_OK);
    }
    zset_expect(h, "LB.ALTER k CAP 10", "+OK");
    zset_expect(h, "ZCARD k", ":10");
    zset_expect(h, "ZREVRANK k m199999", ":0");
    zset_expect(h, "ZSCORE k m5", "nil");
    /* Most is freed later, a little at a time. */
    uint32_t steps = 0;
    while (registry_free_step(registry, 1000)) {
        steps++;
    }
    assert_true(steps > MEMBERS / 1000 / 4);
}

ZSET_TEST(a_period_comes_and_goes) {
    h->wall_us = zset_us("2026-11-16T12:00:00Z");
    zset_expect(h, "LB.CREATE k FIELD a 20", "+OK");
    zset_expect(h, "ZADD k 1 ann", ":1");
    zset_expect(h, "EXPIRE k 10000000", ":1");
    zset_expect(h, "LB.ALTER k PERIOD DAY TZ +08:00 ARCHIVE 3", "+OK");
    shadow_end(h->shadow); /* archives expire by the clock of the host, which goes on */
    zset_expect(h, "TTL k", ":10000000");
    h->wall_us = zset_us("2026-11-17T00:00:00+08:00");
    zset_expect(h, "ZCARD k", ":0");
    zset_expect(h, "ZRANGE k@2026-11-16 0 -1", "[ann]");
    zset_expect(h, "ZADD k 2 bob", ":1");
    zset_expect(h, "LB.ALTER k EVERY 2 FROM 2026-11-16", "+OK");
    h->wall_us = zset_us("2026-11-18T00:00:00+08:00");
    zset_expect(h, "ZCARD k", ":0");
    zset_expect(h, "ZRANGE k@2026-11-16 0 -1", "[ann]");
    zset_expect(h, "ZRANGE k@2026-11-16.2 0 -1", "[bob]");
    zset_expect(h, "ZADD k 3 cid", ":1");
    zset_expect(h, "LB.ALTER k PERIOD NONE", "+OK");
    zset_expect_part(h, "LB.INFO k", " period nil ");
    h->wall_us = zset_us("2026-12-18T00:00:00+08:00");
    zset_expect(h, "ZRANGE k 0 -1", "[cid]");
    /* As often as one likes, also empty. */
    zset_expect(h, "ZREM k cid", ":1");
    for (int i = 0; i < 10; i++) {
        zset_expect(h, "LB.ALTER k PERIOD HOUR AT 3", "+OK");
        zset_expect(h, "LB.ALTER k PERIOD NONE", "+OK");
    }
}

ZSET_TEST(the_times_of_members_stay_until_the_period_ends) {
    h->wall_us = zset_us("2026-11-16T12:00:00Z");
    zset_expect(h, "LB.CREATE k FIELD a 20 TIME 31 S", "+OK");
    zset_expect(h, "LB.ADD k 1 ann", ":1");
    zset_expect(h, "LB.ALTER k PERIOD DAY", "+OK");
    zset_expect(h, "LB.GET k 1 ann", "[[ann :0 :1794830400000 :1]]");
    h->wall_us += INT64_C(86400000000);
    zset_expect(h, "LB.ADD k 1 bob", ":1");
    zset_expect(h, "LB.GET k 1 bob", "[[bob :0 :1794916800000 :1]]");
    zset_expect_part(h, "LB.INFO k", "START 2026-11-17T00:00:00Z");
    zset_expect_part(h, "LB.INFO k@2026-11-16", "FIELD a 20 TIME 31 S bits");
    zset_expect(h, "LB.GET k@2026-11-16 1 ann", "[[ann :0 :1794830400000 :1]]");
    /* Times that would not last. */
    zset_expect(h, "LB.CREATE s FIELD a 20 TIME 17 S START 2026-11-17T00:00:00Z", "+OK");
    zset_expect(h, "LB.ADD s 1 ann", ":1");
    zset_expect(h, "LB.ALTER s PERIOD DAY", "+OK");
    zset_expect(h, "LB.ALTER s PERIOD NONE", "+OK");
    zset_expect(h, "LB.CREATE t FIELD a 20 TIME 17 S START 2026-11-16T06:00:00Z", "+OK");
    zset_expect(h, "LB.ADD t 1 ann", ":1");
    zset_expect_begin(h, "LB.ALTER t PERIOD DAY",
                      "-ERR PERIOD is not possible: the board's TIME ends");
    zset_expect(h, "ZREM t ann", ":1");
    zset_expect(h, "LB.ALTER t PERIOD DAY", "+OK");
    zset_expect_part(h, "LB.INFO t", "START 2026-11-17T00:00:00Z");
}

ZSET_TEST(archives_are_frozen_unless_the_board_says_otherwise) {
    h->wall_us = zset_us("2026-11-16T12:00:00Z");
    zset_expect(h, "LB.CREATE k FIELD a 20 PERIOD DAY", "+OK");
    zset_expect(h, "LB.CREATE w FIELD a 20 PERIOD DAY ARCHIVED WRITABLE", "+OK");
    zset_expect(h, "ZADD k 1 ann", ":1");
    zset_expect(h, "ZADD w 1 ann", ":1");
    h->wall_us += INT64_C(86400000000);
    zset_expect(h, "ZADD k@2026-11-16 2 ann", frozen);
    zset_expect(h, "ZADD w@2026-11-16 2 ann", ":0");
    zset_expect(h, "ZADD k 1 ann", ":1");
    zset_expect(h, "LB.ALTER k ARCHIVED WRITABLE", "+OK");
    h->wall_us += INT64_C(86400000000);
    zset_expect(h, "ZADD k@2026-11-17 2 ann", ":0");
    zset_expect_part(h, "LB.INFO k", "from nil archived writable copy :0] ");
    /* By hand: of a board with a PERIOD. */
    zset_expect(h, "ZADD j 1 ann", ":1");
    zset_expect(h, "LB.ROLL j old", ":1");
    zset_expect(h, "ZREM old ann", ":1");
}

ZSET_TEST(what_is_wrong_is_named_and_changes_nothing) {
    static const char *const samples[][2] = {
        {"LB.ALTER none CAP 3", "-ERR no such key"},
        {"LB.ALTER k CAP 0", "-ERR CAP '0' is not a valid number of members: 1..4294967295"},
        {"LB.ALTER k LIMIT", "-ERR LIMIT needs a number of members: 1..4294967295"},
        {"LB.ALTER k CAP 3 LIMIT 3",
         "-ERR CAP and LIMIT exclude each other: a full board either drops its last member or "
         "refuses newcomers"},
        {"LB.ALTER k FREEZE THAW", "-ERR FREEZE and THAW exclude each other"},
        {"LB.ALTER k FREEZE FREEZE", "-ERR FREEZE may be given only once"},
        {"LB.ALTER k OPENS soon",
         "-ERR OPENS 'soon' is not a time: ISO 8601 with an offset, or unix milliseconds"},
        {"LB.ALTER k CLOSES -5",
         "-ERR CLOSES '-5' is not a time: ISO 8601 with an offset, or unix milliseconds"},
        {"LB.ALTER k OPENS 2000 CLOSES 2000", "-ERR OPENS must be before CLOSES"},
        {"LB.ALTER k ARCHIVED WRITABLE", "-ERR ARCHIVED requires PERIOD HOUR|DAY|WEEK|MONTH|YEAR"},
        {"LB.ALTER k PERIOD NONE ARCHIVE 3",
         "-ERR ARCHIVE requires PERIOD HOUR|DAY|WEEK|MONTH|YEAR"},
        {"LB.ALTER k TZ Europe/Berlin", "-ERR TZ requires PERIOD HOUR|DAY|WEEK|MONTH|YEAR"},
        {"LB.ALTER k FIELD a 3", "-ERR 'FIELD' is misplaced: give one layout, before the options"},
    };
    zset_expect(h, "ZADD k 1 a 2 b 3 c 4 d", ":4");
    const char *info = strdup(zset_run(h, "LB.INFO k"));
    for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++) {
        zset_expect(h, samples[i][0], samples[i][1]);
        zset_expect(h, "LB.INFO k", info);
    }
    free((void *)(uintptr_t)info);
}

/* ---- without memory ---- */

/* ---- storing onto a board made by LB.CREATE ---- */

ZSET_TEST(results_are_stored_in_the_layout_that_lb_create_gave) {
    zset_expect(h, "LB.CREATE k FIELD points 20 SCALE 2 FIELD laps 8 ASC CAP 2 KEEP BEST", "+OK");
    zset_expect(h, "ZADD j 5 a 7 b 6 c", ":3");
    zset_expect(h, "ZUNIONSTORE k 1 j", ":2");
    zset_expect(h, "LB.RANGE k 0 -1", "[[b :0 nil 7 :0] [c :1 nil 6 :0]]");
    zset_expect_part(h, "LB.INFO k", "cap :2 keep best created :1");
    zset_expect(h, "ZRANGESTORE k j 0 0", ":1");
    zset_expect(h, "LB.RANGE k 0 -1", "[[a :0 nil 5 :0]]");
    /* Onto itself, fields and all. */
    zset_expect(h, "LB.ADD k 9.25 3 z", ":1");
    zset_expect(h, "ZRANGESTORE k k 0 -1", ":2");
    zset_expect(h, "LB.GET k 1 z", "[[z :0 nil 9.25 :3]]");
    /* What does not fit changes nothing. */
    zset_expect(h, "ZADD j 1e9 big", ":1");
    zset_expect_begin(h, "ZUNIONSTORE k 1 j", "-ERR member 'big': ");
    zset_expect_begin(h, "ZRANGESTORE k j 0 -1", "-ERR member 'big': ");
    zset_expect(h, "LB.GET k 1 z", "[[z :0 nil 9.25 :3]]");
    /* Nothing leaves it empty. */
    zset_expect(h, "ZINTERSTORE k 2 j none", ":0");
    zset_expect(h, "EXISTS k", ":1");
    zset_expect(h, "ZCARD k", ":0");
    zset_expect_part(h, "LB.INFO k", "FIELD points 20 SCALE 2 FIELD laps 8 ASC");
    zset_expect(h, "ZRANGESTORE k none 0 -1", ":0");
    zset_expect(h, "EXISTS k", ":1");
    /* One made by a write is as the settings say, as ever. */
    zset_expect(h, "ZADD laps:x 3 a", ":1");
    zset_expect(h, "ZUNIONSTORE laps:x 1 none", ":0");
    zset_expect(h, "EXISTS laps:x", ":0");
}

ZSET_TEST(results_are_stored_in_the_period_of_a_board) {
    h->wall_us = zset_us("2026-11-16T12:00:00Z");
    zset_expect(h, "LB.CREATE k FIELD a 20 TIME 30 MS PERIOD DAY", "+OK");
    zset_expect(h, "ZADD j 5 a", ":1");
    zset_expect(h, "ZUNIONSTORE k 1 j", ":1");
    h->wall_us += INT64_C(86400000000);
    zset_expect(h, "ZCARD k", ":0");
    zset_expect(h, "ZCARD k@2026-11-16", ":1");
    zset_expect_begin(h, "ZUNIONSTORE k 1 j", "-ERR member 'a': time ");
    zset_expect(h, "ZUNIONSTORE k@2026-11-16 1 j", frozen);
}

/* ---- tags ---- */

#define LAYOUT_OF_K "[layout FIELD score 33 TIME 31 S"

ZSET_TEST(a_living_board_gets_tags_and_loses_them) {
    zset_expect(h, "LB.CREATE k FIELD score 33 TIME 31 S TAG country 2", "+OK");
    zset_expect(h, "LB.ADD k TAG country DE 3 ann 2 bob", ":2");
    zset_expect(h, "LB.ALTER k TAG clan 10 CAP 5", "+OK");
    zset_expect_part(h, "LB.INFO k", LAYOUT_OF_K " TAG country 2 TAG clan 10 bits ");
    zset_expect(h, "LB.TAG k bob clan wolves", ":1");
    zset_expect(h, "LB.TAGS k ann bob", "[[country DE] [country DE clan wolves]]");
    zset_expect(h, "LB.ALTER k tag COUNTRY none", "+OK");
    zset_expect_part(h, "LB.INFO k", LAYOUT_OF_K " TAG clan 10 bits ");
    zset_expect(h, "LB.TAGS k ann bob", "[[] [clan wolves]]");
    zset_expect(h, "LB.ALTER k TAG country 3 TAG clan 9", "+OK");
    zset_expect_part(h, "LB.INFO k", LAYOUT_OF_K " TAG clan 9 TAG country 3 bits ");
    zset_expect(h, "LB.TAGS k ann bob", "[[] [clan wolves]]");
    zset_expect(h, "LB.ALTER k FREEZE", "+OK");
    zset_expect(h, "LB.ALTER k TAG class 3", "+OK");
    zset_expect(h, "LB.TAG k ann class mage", ":1");
    zset_expect(h, "LB.ALTER k TAG clan NONE TAG country NONE TAG class NONE", "+OK");
    zset_expect_part(h, "LB.INFO k", LAYOUT_OF_K " bits ");
    zset_expect_part(h, "LB.INFO k", " tags []]");
    zset_expect(h, "ZREVRANGE k 0 -1", "[ann bob]");
}

ZSET_TEST(tags_that_cannot_be_are_refused_and_nothing_changes) {
    static const char *const rows[][2] = {
        {"LB.ALTER k TAG clan", "-ERR TAG needs a name and a width: TAG name bits"},
        {"LB.ALTER k TAG clan 1024",
         "-ERR tag 'clan': '1024' bits is out of range: 1..32 are allowed"},
        {"LB.ALTER k TAG clan 30",
         "-ERR tag 'clan': 30 bits are too many: 29 of the 32 of all tags are left"},
        {"LB.ALTER k TAG clan NONE", "-ERR no tag 'clan': the board has country, class"},
        {"LB.ALTER k TAG country 3 TAG Country 4", "-ERR TAG Country may be given only once"},
        {"LB.ALTER k CAP 1 TAG country 1",
         "-ERR TAG country: 1 bits are too few: they allow 1 values, and the members have 2"},
        {"LB.TAG k ann class y", "-ERR no room for value 'y' of tag 'class': its 1 bits allow 1 "
                                 "different values at a time"},
        {"ZCARD k", ":2"},
        {"LB.TAGS k ann bob", "[[country DE class x] [country FR]]"},
        {"LB.ALTER none TAG clan 3", "-ERR no such key"},
    };
    zset_expect(h, "LB.CREATE k FIELD score 33 TAG country 2 TAG class 1", "+OK");
    zset_expect(h, "LB.ADD k TAG country DE TAG class x 3 ann", ":1");
    zset_expect(h, "LB.ADD k TAG country FR 2 bob", ":1");
    zset_expect_each(h, rows);
    zset_expect_part(h, "LB.INFO k", "[layout FIELD score 33 TAG country 2 TAG class 1 bits ");
}

/* Whatever values the board had before. */
ZSET_TEST(a_tag_gets_fewer_bits_when_its_values_have_room_in_them) {
    zset_expect(h, "LB.CREATE k FIELD score 33 TAG country 4 TAG class 2", "+OK");
    for (int i = 0; i < 15; i++) {
        zset_expect(h, formatted("LB.ADD k TAG country c%d TAG class x %d m%d", i, i, i), ":1");
    }
    zset_expect(h, "ZREMRANGEBYRANK k 0 11", ":12");
    zset_expect(
        h, "LB.ALTER k TAG country 1",
        "-ERR TAG country: 1 bits are too few: they allow 1 values, and the members have 3");
    zset_expect(h, "LB.ALTER k TAG country 2", "+OK");
    zset_expect(h, "LB.TAGS k m12 m13 m14",
                "[[country c12 class x] [country c13 class x] [country c14 class x]]");
    zset_expect_part(h, "LB.TAG k m12 country new", ": its 2 bits allow 3 different values");
    zset_expect(h, "ZSCORE k m13", "13");
}

ZSET_TEST(tags_move_with_the_board) {
    h->wall_us = zset_us("2026-11-16T12:00:00Z");
    zset_expect(h, "LB.CREATE k FIELD score 33 TIME 30 S TAG country 8 PERIOD DAY", "+OK");
    zset_expect(h, "LB.ADD k TAG country DE 3 ann", ":1");
    zset_expect(h, "COPY k copy", ":1");
    zset_expect(h, "RENAME copy name", "+OK");
    zset_expect(h, "LB.TAGS name ann", "[[country DE]]");
    h->wall_us += INT64_C(86400000000);
    zset_expect(h, "LB.TAGS k ann", "[nil*]");
    zset_expect(h, "LB.TAGS k@2026-11-16 ann", "[[country DE]]");
    zset_expect(h, "LB.TAG k@2026-11-16 ann country FR", ":1");
    zset_expect(h, "LB.ADD k TAG country US 3 bob", ":1");
    zset_expect(h, "LB.ROLL k by-hand", ":1");
    zset_expect(h, "LB.TAGS by-hand bob", "[[country US]]");
    zset_expect(h, "LB.TAG k bob country CH", ":0");
    zset_expect_part(h, "LB.INFO k", " TAG country 8 bits ");
    zset_expect(h, "ZUNIONSTORE stored 1 by-hand", ":1");
    zset_expect_part(h, "LB.INFO stored", " tags []]");
}
