/* LB.TAG, LB.TAGS, TAG of LB.ADD and LB.SUBMIT, and what else writes tags, sentence by sentence. */
#include "tests/server/zset_fixture.h"
#include "tests/support/errors.h"

/* A board with a tag of each kind of width: 255, 3 and 1 different values. */
static void create(struct harness *h, const char *key) {
    zset_expect(
        h, formatted("LB.CREATE %s FIELD score 33 TAG country 8 TAG class 2 TAG claimed 1", key),
        "+OK");
}

static void set_up(struct harness *h) {
    create(h, "k");
    zset_expect(h, "ZADD k 30 ann 20 bob 10 cid", ":3");
}

/* ---- LB.TAG and LB.TAGS ---- */

ZSET_TEST(a_member_has_the_values_that_it_was_given) {
    static const char *const rows[][2] = {
        {"LB.TAG k ann country DE class mage", ":1"},
        {"LB.TAG k bob country DE", ":1"},
        {"LB.TAGS k ann bob cid none", "[[country DE class mage] [country DE] [] nil*]"},
        /* In any case, and with other tags left alone. */
        {"lb.tag k ann COUNTRY FR", ":1"},
        {"LB.TAGS k ann", "[[country FR class mage]]"},
        {"LB.TAG k ann country FR class mage", ":0"},
        {"LB.TAG k ann country FR class rogue", ":1"},
        {"LB.TAG k ann class \"\"", ":1"},
        {"LB.TAG k ann class \"\"", ":0"},
        {"LB.TAGS k ann bob", "[[country FR] [country DE]]"},
    };
    set_up(h);
    zset_expect_each(h, rows);
    zset_use_resp3(h);
    zset_expect(h, "LB.TAGS k ann cid none", "[{country FR} {} _]");
}

ZSET_TEST(of_the_same_tag_twice_the_last_one_counts) {
    set_up(h);
    zset_expect(h, "LB.TAG k ann country DE country FR", ":1");
    zset_expect(h, "LB.ADD k TAG country US TAG class mage TAG country CH 40 ann", ":1");
    zset_expect(h, "LB.TAGS k ann", "[[country CH class mage]]");
}

ZSET_TEST(if_writes_only_where_all_of_it_holds) {
    static const char *const rows[][2] = {
        {"LB.TAG k ann claimed 1 IF claimed \"\"", ":1"},
        {"LB.TAG k ann claimed 1 IF claimed \"\"", ":0"},
        {"LB.TAG k ann country DE if CLAIMED 1 country \"\"", ":1"},
        {"LB.TAG k ann country FR IF claimed 1 country US", ":0"},
        {"LB.TAG k ann country FR IF country DE country US", ":0"},
        {"LB.TAG k ann country FR IF country DE", ":1"},
        {"LB.TAG k ann country FR IF country FR", ":0"},
        {"LB.TAGS k ann", "[[country FR claimed 1]]"},
        {"LB.TAG k none claimed 1 IF claimed \"\"", ":0"},
        {"LB.TAG none ann claimed 1 IF claimed \"\"", ":0"},
        {"EXISTS none", ":0"},
        {"LB.TAG k ann country IF IF country FR", ":1"},
        {"LB.TAGS k ann", "[[country IF claimed 1]]"},
    };
    set_up(h);
    zset_expect_each(h, rows);
}

/* Also where it does not change anything, or asks a member that is not there. */
ZSET_TEST(what_is_wrong_is_refused_and_changes_nothing) {
    static const char syntax[] = "-ERR syntax error";
    static const char unknown[] = "-ERR no tag 'x': this board has country, class, claimed";
    static const char *const rows[][2] = {
        {"LB.TAG k ann x 1", unknown},
        {"LB.TAG k none x 1", unknown},
        {"LB.TAG k ann country DE x 1", unknown},
        {"LB.TAG k ann country FR IF x 1", unknown},
        {"LB.TAG k ann country FR IF country US x 1", unknown},
        {"LB.TAG k ann \"\\x01'\" 1", "-ERR no tag '?'': this board has country, class, claimed"},
        {"LB.TAG k ann country", "-ERR wrong number of arguments for 'lb.tag' command"},
        {"LB.TAG k ann", "-ERR wrong number of arguments for 'lb.tag' command"},
        {"LB.TAG k ann country DE class", syntax},
        {"LB.TAG k ann country DE IF", syntax},
        {"LB.TAG k ann country DE IF country", syntax},
        {"LB.TAG k ann country DE IF country DE class", syntax},
        {"LB.TAGS k", "-ERR wrong number of arguments for 'lb.tags' command"},
        {"LB.TAG hash ann country DE",
         "-WRONGTYPE Operation against a key holding the wrong kind of value"},
        {"LB.TAGS hash ann", "-WRONGTYPE Operation against a key holding the wrong kind of value"},
        {"LB.TAG bare ann country DE", "-ERR no tag 'country': this board has no tags"},
        {"LB.ADD k TAG x 1 40 ann", unknown},
        {"LB.ADD k TAG country 40 ann", "-ERR ...: this board takes 1 value before each "
                                        "member: score"},
        {"LB.ADD k 40 ann TAG country",
         "-ERR 'TAG' is an option: options come before the values (LB.ADD key [option ...] <field "
         "... member ... | PACKED packed-key member ...>)"},
        {"LB.ADD bare TAG country DE 40 ann", "-ERR no tag 'country': this board has no tags"},
        {"LB.ADD new TAG country DE 40 ann", "-ERR no tag 'country': this board has no tags"},
        {"LB.ADD k TAG country DE PACKED 1 ann", "-ERR PACKED must be the only option"},
    };
    set_up(h);
    zset_expect(h, "HSET hash a 1", ":1");
    zset_expect(h, "LB.CREATE bare FIELD a 8", "+OK");
    zset_expect(h, "ZADD bare 1 ann", ":1");
    zset_expect(h, "LB.TAG k ann country DE", ":1");
    zset_expect_each_unchanged(h, "k", rows);
    zset_expect(h, "LB.TAGS k ann", "[[country DE]]");
    zset_expect(h, "EXISTS new", ":0");
}

ZSET_TEST(values_of_up_to_64_bytes_of_any_kind_are_kept) {
    char value[66];
    memset(value, 'v', 65);
    value[65] = '\0';
    set_up(h);
    zset_expect(h, formatted("LB.TAG k ann country %s", value),
                formatted("-ERR value '%.61s...' of tag 'country' is 65 bytes long: at most 64 "
                          "are allowed",
                          value));
    zset_expect(h, formatted("LB.ADD k TAG country %s 70 ann", value),
                formatted("-ERR value '%.61s...' of tag 'country' is 65 bytes long: at most 64 "
                          "are allowed",
                          value));
    zset_expect(h, "LB.TAG k ann country \"\\xff IF\"", ":1");
    zset_expect(h, "LB.TAGS k ann", "[[country \xff IF]]");
    zset_expect(h, formatted("LB.TAG k ann country %.64s", value), ":1");
    zset_expect(h, "LB.TAGS k ann", formatted("[[country %.64s]]", value));
    /* What cannot be a value is no member's. */
    zset_expect(h, formatted("LB.TAG k ann country DE IF country %s", value), ":0");
    zset_expect(h, formatted("LB.RANGE k 0 -1 WHERE country %s", value), "[]");
}

ZSET_TEST(a_tag_takes_as_many_values_as_its_bits_allow) {
    static const char full[] = "-ERR no room for value 'monk' of tag 'class': its 2 bits allow 3 "
                               "different values at a time";
    set_up(h);
    zset_expect(h, "ZADD k 5 dan", ":1");
    zset_expect(h, "LB.TAG k ann class mage", ":1");
    zset_expect(h, "LB.TAG k bob class rogue", ":1");
    zset_expect(h, "LB.TAG k cid class bard", ":1");
    zset_expect(h, "LB.TAG k dan country DE class monk", full);
    zset_expect_unchanged(h, "k", "LB.ADD k TAG country DE TAG class monk 50 dan", full);
    zset_expect_unchanged(h, "k", "LB.ADD k TAG class monk 50 eve 60 dan", full);
    zset_expect(h, "LB.TAGS k dan", "[[]]");
    zset_expect(h, "LB.ADD k TAG class bard 50 dan", ":1");
    /* What nobody has any more makes room; what its only member is about to give up does not yet. */
    zset_expect(h, "LB.TAG k ann class monk", full);
    zset_expect(h, "LB.TAG k ann class \"\"", ":1");
    zset_expect(h, "LB.TAG k ann class monk", ":1");
    zset_expect(h, "LB.TAGS k ann bob cid dan",
                "[[class monk] [class rogue] [class bard] [class bard]]");
    zset_expect(h, "ZREM k bob", ":1");
    zset_expect(h, "LB.TAG k dan class mage", ":1");
}

ZSET_TEST(values_of_removed_members_take_no_room) {
    zset_expect(h, "LB.CREATE r FIELD a 20 TAG claimed 1", "+OK");
    for (int i = 0; i < 8000; i++) {
        zset_expect(h, formatted("LB.ADD r TAG claimed yes %d m%d", i + 1, i), ":1");
    }
    zset_expect(h, "ZADD r 0 last", ":1");
    zset_expect(h, "ZREMRANGEBYRANK r 1 8000", ":8000");
    zset_expect(h, "LB.ADD r TAG claimed no 5 ann", ":1");
    zset_expect(h, "LB.TAGS r ann last", "[[claimed no] []]");
}

ZSET_TEST(tags_are_written_where_no_results_are) {
    create(h, "k");
    zset_expect(h, "LB.ADD k TAG country DE 30 ann", ":1");
    zset_expect(h, "LB.ALTER k FREEZE", "+OK");
    zset_expect(h, "LB.TAG k ann claimed 1", ":1");
    zset_expect(h, "LB.ADD k TAG claimed 2 40 ann", ERROR_FROZEN);
    zset_expect(h, "LB.ALTER k THAW CLOSES 2026-01-01T00:00:01Z", "+OK");
    harness_pass_seconds(h, 2);
    zset_expect(h, "LB.TAG k ann country FR", ":1");
    zset_expect(h, "LB.TAGS k ann", "[[country FR claimed 1]]");
}

ZSET_TEST(archives_keep_tags_and_take_them) {
    zset_expect(h, "LB.CREATE d FIELD a 33 TIME 29 MS TAG claimed 1 PERIOD DAY", "+OK");
    zset_expect(h, "LB.ADD d TAG claimed no 5 ann 4 bob", ":2");
    h->wall_us += INT64_C(86400000000);
    zset_expect(h, "LB.TAG d ann claimed yes", ":0");
    zset_expect(
        h, "LB.TAG d@2026-01-01 ann claimed yes IF claimed no",
        "-ERR no room for value 'yes' of tag 'claimed': its 1 bits allow 1 different values "
        "at a time");
    zset_expect(h, "LB.TAG d@2026-01-01 bob claimed \"\"", ":1");
    zset_expect(h, "LB.TAG d@2026-01-01 ann claimed \"\"", ":1");
    zset_expect(h, "LB.TAG d@2026-01-01 ann claimed yes IF claimed \"\"", ":1");
    zset_expect(h, "LB.TAG d@2026-01-01 ann claimed yes IF claimed no", ":0");
    zset_expect(h, "LB.TAGS d@2026-01-01 ann bob", "[[claimed yes] []]");
}

ZSET_TEST(a_change_of_tags_is_one_of_the_key) {
    struct session *other = harness_connect(h);
    set_up(h);
    zset_expect(h, "WATCH k", "+OK");
    zset_expect(h, "MULTI", "+OK");
    zset_expect(h, "LB.TAGS k ann", "+QUEUED");
    harness_expect(h, other, "LB.TAG k ann country DE", ":1\r\n");
    zset_expect(h, "EXEC", "nil*");
    zset_expect(h, "WATCH k", "+OK");
    zset_expect(h, "MULTI", "+OK");
    zset_expect(h, "LB.TAGS k ann", "+QUEUED");
    harness_expect(h, other, "LB.TAG k ann country DE", ":0\r\n");
    zset_expect(h, "EXEC", "[[[country DE]]]");
    /* By LB.ADD, too, where the result does not count. */
    zset_expect(h, "WATCH k", "+OK");
    zset_expect(h, "MULTI", "+OK");
    zset_expect(h, "LB.TAGS k ann", "+QUEUED");
    harness_expect(h, other, "LB.ADD k BEST TAG country FR 1 ann", ":0\r\n");
    zset_expect(h, "EXEC", "nil*");
    harness_expect(h, other, "CONFIG SET notify-keyspace-events KEA", "+OK\r\n");
    zset_run(h, "SUBSCRIBE __keyspace@0__:k");
    harness_expect(h, other, "LB.TAG k ann country US", ":1\r\n");
    harness_expect(h, other, "LB.TAG k ann country US", ":0\r\n");
    assert_string_equal(harness_output(h->server.sessions.first),
                        "*3\r\n$7\r\nmessage\r\n$16\r\n__keyspace@0__:k\r\n$6\r\nlb.tag\r\n");
}

/* ---- LB.ADD ---- */

ZSET_TEST(every_member_of_the_command_gets_the_tags) {
    set_up(h);
    zset_expect(h, "LB.ADD k TAG country DE WITHRANK TAG class mage 40 ann 50 new",
                "[[[ann :1 nil :40] :0] [[new :0 nil :50] nil]]");
    zset_expect(h, "LB.TAGS k ann new bob", "[[country DE class mage] [country DE class mage] []]");
    zset_expect(h, "LB.ADD k TAG class \"\" 41 ann", ":1");
    zset_expect(h, "LB.ADD k 42 ann", ":1");
    zset_expect(h, "ZINCRBY k 1 ann", "43");
    zset_expect(h, "LB.TAGS k ann", "[[country DE]]");
}

ZSET_TEST(a_result_that_is_not_better_still_sets_the_tags) {
    zset_expect(h, "LB.CREATE best FIELD a 10 TAG country 8 KEEP BEST", "+OK");
    zset_expect(h, "LB.ADD best TAG country DE 5 ann", ":1");
    zset_expect(h, "LB.ADD best TAG country FR 4 ann", ":0");
    zset_expect(h, "LB.GET best 1 ann TAGS", "[[ann :0 nil :5 [country FR]]]");
    zset_expect(h, "LB.ADD best BEST TAG country US 3 ann", ":0");
    zset_expect(h, "LB.GET best 1 ann TAGS", "[[ann :0 nil :5 [country US]]]");
    zset_expect(h, "LB.ADD best TAG country CH 5 ann", ":0");
    zset_expect(h, "LB.TAGS best ann", "[[country CH]]");
}

ZSET_TEST(members_that_a_condition_or_a_cap_leaves_out_get_no_tags) {
    set_up(h);
    zset_expect(h, "LB.ADD k NX TAG country DE 90 ann 91 new 92 new", ":1");
    zset_expect(h, "LB.TAGS k ann new", "[[] [country DE]]");
    zset_expect(h, "LB.ADD k XX TAG country FR 90 ann 91 none", ":1");
    zset_expect(h, "LB.TAGS k ann none", "[[country FR] nil*]");
    zset_expect(h, "LB.CREATE few FIELD a 10 TAG country 1 CAP 2", "+OK");
    zset_expect(h, "ZADD few 5 ann 4 bob", ":2");
    zset_expect(h, "LB.ADD few TAG country DE 3 cid", ":0");
    zset_expect(h, "LB.TAGS few ann bob cid", "[[] [] nil*]");
    zset_expect(h, "LB.ADD few TAG country DE 3 cid 6 dan 2 ann", ":2");
    zset_expect(h, "LB.RANGE few 0 -1 TAGS", "[[dan :0 nil :6 [country DE]] [bob :1 nil :4 []]]");
    zset_expect(h, "LB.ADD few TAG country FR 7 bob",
                "-ERR no room for value 'FR' of tag 'country': its 1 bits allow 1 different values "
                "at a time");
}

ZSET_TEST(an_error_writes_neither_results_nor_tags) {
    set_up(h);
    zset_expect(h, "LB.TAG k ann country DE", ":1");
    zset_expect_unchanged(h, "k", "LB.ADD k TAG country FR 40 ann x bob", ERROR_NUMBER("score"));
    zset_expect(h, "LB.TAGS k ann bob", "[[country DE] []]");
}

ZSET_TEST(many_members_are_tagged_in_one_command) {
    char line[8192] = "LB.ADD k TAG country DE";
    create(h, "k");
    for (int i = 0; i < 500; i++) {
        snprintf(line + strlen(line), sizeof line - strlen(line), " %d m%d", i, i);
    }
    zset_expect(h, line, ":500");
    zset_expect(h, "LB.COUNT k BY country BY class", "[[DE nil :500]]");
}

/* ---- LB.SUBMIT ---- */

ZSET_TEST(a_result_has_its_tags_on_every_board) {
    zset_expect(h, "LB.CREATE a FIELD s 33 TAG country 8", "+OK");
    zset_expect(h, "LB.CREATE b FIELD s 33 TAG class 4 TAG country 4 KEEP BEST", "+OK");
    zset_expect(h, "LB.SUBMIT 2 a b TAG country DE 5 ann",
                "[[[ann :0 nil :5] nil :1] [[ann :0 nil :5] nil :1]]");
    zset_expect(h, "LB.SUBMIT 2 a b TAG country FR INCR 0 ann",
                "[[[ann :0 nil :5] :0 :0] [[ann :0 nil :5] :0 :0]]");
    zset_expect(h, "LB.TAGS a ann", "[[country FR]]");
    zset_expect(h, "LB.SUBMIT 2 a b TAG country US 4 ann",
                "[[[ann :0 nil :4] :0 :1] [[ann :0 nil :5] :0 :0]]");
    zset_expect(h, "LB.TAGS b ann", "[[country US]]");
    zset_expect(h, "LB.SUBMIT 2 a b NX TAG country CH 9 ann",
                "[[[ann :0 nil :4] :0 :0] [[ann :0 nil :5] :0 :0]]");
    zset_expect(h, "LB.TAGS b ann", "[[country US]]");
    zset_expect(h, "LB.SUBMIT 2 a b XX TAG country CH 9 bob", "[[nil* nil :0] [nil* nil :0]]");
}

ZSET_TEST(each_board_must_have_the_tags) {
    zset_expect(h, "LB.CREATE a FIELD s 33 TAG country 8", "+OK");
    zset_expect(h, "LB.CREATE b FIELD s 33 TAG class 4 TAG country 1", "+OK");
    zset_expect(h, "ZADD a 1 ann", ":1");
    zset_expect_unchanged(h, "a", "LB.SUBMIT 3 a b new TAG country DE 5 ann",
                          "-ERR no tag 'country': this board has no tags (board 'new')");
    zset_expect_unchanged(h, "a", "LB.SUBMIT 2 a b TAG country DE TAG class mage 5 ann",
                          "-ERR no tag 'class': this board has country (board 'a')");
    zset_expect(h, "LB.ADD b TAG country FR 5 bob", ":1");
    zset_expect_unchanged(h, "a", "LB.SUBMIT 2 a b TAG country DE 5 ann",
                          "-ERR no room for value 'DE' of tag 'country': its 1 bits allow 1 "
                          "different values at a time (board 'b')");
    zset_expect(h, "LB.SUBMIT 1 a TAG country ann", "-ERR syntax error");
    zset_expect(h, "LB.TAGS a ann", "[[]]");
    zset_expect(h, "EXISTS new", ":0");
}

/* ---- what else writes and removes members ---- */

ZSET_TEST(a_removed_member_has_lost_its_tags) {
    set_up(h);
    zset_expect(h, "LB.TAG k ann country DE", ":1");
    zset_expect(h, "LB.TAG k bob country DE", ":1");
    zset_expect(h, "LB.TAG k cid country FR", ":1");
    zset_expect(h, "ZREM k ann", ":1");
    zset_expect(h, "ZADD k 30 ann", ":1");
    zset_expect(h, "LB.FORGET bob", ":1");
    zset_expect(h, "ZADD k 20 bob", ":1");
    zset_expect(h, "LB.BAN cid EX 1", ":1");
    harness_pass_seconds(h, 2);
    zset_expect(h, "ZADD k 10 cid", ":1");
    zset_expect(h, "LB.TAGS k ann bob cid", "[[] [] []]");
    zset_expect(h, "LB.COUNT k BY country", "[[nil :3]]");
}

ZSET_TEST(lb_move_gives_the_tags_that_the_other_member_has_not) {
    set_up(h);
    create(h, "one");
    zset_expect(h, "LB.ADD one TAG class bard 7 ann", ":1");
    zset_expect(h, "LB.TAG k ann country DE class mage", ":1");
    zset_expect(h, "LB.TAG k bob country FR", ":1");
    zset_expect(h, "LB.MOVE ann bob", "[:2 :0]");
    zset_expect(h, "LB.GET k 2 ann bob TAGS", "[nil* [bob :0 nil :30 [country FR class mage]]]");
    zset_expect(h, "LB.RANGE one 0 -1 TAGS", "[[bob :0 nil :7 [class bard]]]");
    /* Where both have the same, and where only the other has any. */
    zset_expect(h, "LB.TAG k cid country FR", ":1");
    zset_expect(h, "LB.MOVE cid bob SUM", "[:1 :0]");
    zset_expect(h, "ZADD k 1 dan", ":1");
    zset_expect(h, "LB.MOVE dan bob", "[:1 :0]");
    zset_expect(h, "LB.RANGE k 0 -1 TAGS", "[[bob :0 nil :40 [country FR class mage]]]");
}

/* The only value of a tag that has room for one. */
ZSET_TEST(lb_move_carries_a_value_for_which_there_is_no_other_room) {
    set_up(h);
    zset_expect(h, "LB.TAG k ann claimed 1", ":1");
    zset_expect(h, "LB.MOVE ann zoe", "[:1 :0]");
    zset_expect(h, "LB.TAGS k zoe", "[[claimed 1]]");
}

/* ---- what the table says ---- */

ZSET_TEST(the_commands_tell_their_keys_and_categories) {
    static const char *const rows[][2] = {
        {"COMMAND GETKEYS LB.TAG k ann country DE", "[k]"},
        {"COMMAND GETKEYS LB.TAGS k ann", "[k]"},
        {"COMMAND GETKEYS LB.COUNT k", "[k]"},
        {"ACL SETUSER reader on nopass +@read %R~*", "+OK"},
        {"AUTH reader x", "+OK"},
        {"LB.TAGS k ann", "[[country DE]]"},
        {"LB.COUNT k", ":3"},
        {"LB.TAG k ann country DE",
         "-NOPERM this user has no permissions to run the 'lb.tag' command"},
    };
    set_up(h);
    shadow_end(h->shadow); /* users are the host's */
    zset_expect(h, "LB.TAG k ann country DE", ":1");
    zset_expect_each(h, rows);
}
