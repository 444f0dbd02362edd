#include "server/dispatch/category.h"

#include "server/dispatch/command.h"
#include "tests/support/harness.h"
HARNESS_TEST(a_command_that_redis_has_points_to_the_page, "") {
    harness_expect(h, s, "set a b",
                   "-ERR unknown command 'set', with args beginning with: 'a' 'b' (no strings "
                   "here: see docs/reference/differences-from-redis.md)\r\n");
    harness_expect(h, s, "CLUSTER",
                   "-ERR unknown command 'CLUSTER', with args beginning with: (no clusters here: "
                   "see docs/reference/differences-from-redis.md)\r\n");
    harness_expect(h, s, "se a", "-ERR unknown command 'se', with args beginning with: 'a' \r\n");
}

TEST(names_are_whole_words_in_any_case) {
    assert_string_equal(category_absent_title(BYTES("Append")), "strings");
    assert_string_equal(category_absent_title(BYTES("substr")), "strings");
    assert_string_equal(category_absent_title(BYTES("EVAL")), "scripts");
    assert_string_equal(category_absent_title(BYTES("eval_ro")), "scripts");
    assert_string_equal(category_absent_title(BYTES("DEBUG")), "debugging");
    assert_string_equal(category_absent_title(BYTES("httl")), "fields that expire");
    assert_string_equal(category_absent_title(BYTES("WAITAOF")), "waiting for files");
    assert_null(category_absent_title(BYTES("")));
    assert_null(category_absent_title(BYTES(" ")));
    assert_null(category_absent_title(BYTES("DECR DECRBY")));
    assert_null(category_absent_title(BYTES("LSE")));
    assert_null(category_absent_title(BYTES("ZADD")));
}

SERVER_TEST(no_command_of_this_server_is_among_them) {
    for (uint32_t i = 0; i < command_count(); i++) {
        assert_null(category_absent_title(bytes_from_text(command_full_name(i))));
    }
}
