/* LB.LIST, sentence by sentence. */
#include "codec/timestamp.h"
#include "tests/server/zset_fixture.h"
#include "tests/support/shadow.h"

ZSET_TEST(no_boards_are_an_empty_list) {
    zset_expect(h, "LB.LIST", "[0 []]");
}

ZSET_TEST(a_board_is_listed_with_its_options_and_archives) {
    h->wall_us = INT64_C(1794830400000000); /* 2026-11-16T12:00:00Z */
    zset_expect(h, "LB.CREATE k FIELD a 20 LIMIT 5 PERIOD DAY ARCHIVE 3", "+OK");
    for (int day = 0; day < 5; day++) {
        if (day != 3) {
            zset_expect(h, "ZADD k 1 ann", ":1");
        }
        h->wall_us += INT64_C(86400000000);
    }
    zset_expect(h, "ZADD k 1 ann", ":1");
    shadow_end(h->shadow); /* archives expire there by the machine's clock */
    zset_expect(h, "LB.LIST MATCH k",
                "[0 [[name k layout FIELD a 20 count :1 cap nil keep last created :1 period [unit "
                "DAY tz +00:00 start :1795219200000 end :1795305600000 archive :3 every :1 on nil "
                "at :0 from nil archived frozen copy :0] limit :5 frozen :0 opens nil closes nil "
                "stale nil settle :0 settled nil ended nil dense :0 rating nil limits nil tickets "
                ":0 hold nil "
                "held nil window "
                "nil archives "
                "[k@2026-11-20 k@2026-11-18] tags []]]]");
    zset_expect(h, "LB.LIST MATCH k@*-20",
                "[0 [[name k@2026-11-20 layout FIELD a 20 count :1 cap nil keep last created :0 "
                "period nil limit :5 frozen :1 opens nil closes nil stale nil settle :0 settled :0 "
                "ended :1795219200000 dense :0 rating nil limits nil tickets :0 hold nil held nil "
                "window nil "
                "archives [] tags []]]]");
    zset_use_resp3(h);
    zset_expect_part(h, "LB.LIST match k count 100 cursor 0", "{name k layout FIELD a 20 ");
}

ZSET_TEST(a_board_is_listed_with_its_tags) {
    zset_expect(h, "LB.CREATE k FIELD a 8 TAG country 8", "+OK");
    zset_expect(h, "LB.ADD k TAG country DE 3 ann", ":1");
    zset_expect_part(h, "LB.LIST", "[0 [[name k layout FIELD a 8 TAG country 8 count :1 ");
    zset_expect_part(h, "LB.LIST",
                     " archives [] tags [[name country bits :8 values :1 values-max :255]]]]]");
}

/* Every board once, whatever COUNT says. */
ZSET_TEST(a_walk_over_many_boards_finds_each) {
    enum { BOARDS = 300 };
    static const int counts[] = {1, 7, 50, 1000000};
    for (int i = 0; i < BOARDS; i++) {
        zset_expect(h, formatted("ZADD b%d 1 ann", i), ":1");
    }
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        bool is_found[BOARDS] = {false};
        unsigned long long cursor = 0;
        int steps = 0;
        int most = 0;
        do {
            const char *at = zset_run(h, "LB.LIST CURSOR %llu COUNT %d", cursor, counts[i]);
            int found = 0;
            cursor = strtoull(at + 1, NULL, 10);
            for (at = strstr(at, "name b"); at != NULL; at = strstr(at + 1, "name b")) {
                is_found[strtol(at + 6, NULL, 10)] = true;
                found++;
            }
            most = found > most ? found : most;
            steps++;
        } while (cursor != 0);
        for (int board = 0; board < BOARDS; board++) {
            assert_true(is_found[board]);
        }
        assert_true(steps > 1);
        assert_true(most < BOARDS);
    }
}

ZSET_TEST(what_is_wrong_is_an_error) {
    zset_expect(h, "LB.LIST COUNT 0", "-ERR syntax error");
    zset_expect(h, "LB.LIST COUNT x", "-ERR value is not an integer or out of range");
    zset_expect(h, "LB.LIST CURSOR x", "-ERR invalid cursor");
    zset_expect(h, "LB.LIST MATCH", "-ERR syntax error");
    zset_expect(h, "LB.LIST k", "-ERR syntax error");
}
