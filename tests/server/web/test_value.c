/* Replies in RESP3, as they are read. */
#include "tests/support/test.h"

#include "protocol/reply.h"
#include "server/web/value.h"

static struct buffer out;
static struct reply reply;

static void begin(void) {
    buffer_init(&out, 0);
    reply_init(&reply, &out, 3);
}

static struct value_reader reader(void) {
    return (struct value_reader){.at = out.at, .end = out.at + out.size};
}

static void write_map(void) {
    reply_map(&reply, 6);
    reply_named_text(&reply, "name", "daily");
    reply_named_integer(&reply, "count", 7);
    reply_bulk_text(&reply, "frozen");
    reply_boolean(&reply, true);
    reply_bulk_text(&reply, "period");
    reply_map(&reply, 1);
    reply_named_text(&reply, "name", "inner");
    reply_bulk_text(&reply, "list");
    reply_array(&reply, 2);
    reply_null(&reply);
    reply_set(&reply, 1);
    reply_verbatim(&reply, BYTES("a\r\nb"));
    reply_bulk_text(&reply, "cap");
    reply_null(&reply);
}

TEST(a_text_alone_is_that_of_the_value) {
    begin();
    reply_integer(&reply, -5);
    reply_integer(&reply, 1234567890123);
    reply_bulk(&reply, BYTES("a\0\r\nb"));
    reply_bulk(&reply, BYTES(""));
    reply_null(&reply);
    reply_verbatim(&reply, BYTES("text"));
    reply_array(&reply, 0);
    struct value_reader values = reader();
    struct value_reader texts = reader();
    while (values.at < values.end) {
        struct bytes text = value_next(&values).text;
        assert_true(bytes_equal(value_next_text(&texts), text));
        assert_ptr_equal(texts.at, values.at);
    }
    texts = reader();
    assert_true(bytes_equal(value_next_text(&texts), BYTES("-5")));
    buffer_deinit(&out);
}

TEST(each_kind_is_read) {
    begin();
    reply_integer(&reply, -5);
    reply_bulk(&reply, BYTES("a\0\r\nb"));
    reply_verbatim(&reply, BYTES("text"));
    reply_decimal_text(&reply, BYTES("12.5"));
    reply_null(&reply);
    reply_error(&reply, "ERR no");
    reply_simple(&reply, "OK");
    reply_boolean(&reply, false);
    struct value_reader at = reader();
    assert_int_equal(value_next(&at).number, -5);
    assert_true(bytes_equal(value_next(&at).text, BYTES("a\0\r\nb")));
    assert_true(bytes_equal(value_next(&at).text, BYTES("text")));
    assert_true(bytes_equal(value_next(&at).text, BYTES("12.5")));
    assert_int_equal(value_next(&at).kind, VALUE_NULL);
    struct value error = value_next(&at);
    assert_int_equal(error.kind, VALUE_ERROR);
    assert_true(bytes_equal(error.text, BYTES("ERR no")));
    assert_true(bytes_equal(value_next(&at).text, BYTES("OK")));
    assert_int_equal(value_next(&at).kind, VALUE_BOOLEAN);
    assert_ptr_equal(at.at, at.end);
    buffer_deinit(&out);
}

TEST(integers_of_64_bits_are_read) {
    const int64_t numbers[] = {0, 9, 10, -1, 4294967296, INT64_MAX, INT64_MIN, INT64_MIN + 1};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        begin();
        reply_integer(&reply, numbers[i]);
        struct value_reader at = reader();
        struct value value = value_next(&at);
        assert_int_equal(value.kind, VALUE_INTEGER);
        assert_true(value.number == numbers[i]);
        assert_ptr_equal(at.at, at.end);
        buffer_deinit(&out);
    }
}

TEST(names_of_a_long_map_and_of_what_is_none_are_found_or_not) {
    struct value_entries entries;
    struct value_reader found;
    for (unsigned count = VALUE_ENTRIES_MAX - 1; count < VALUE_ENTRIES_MAX + 2; count++) {
        begin();
        reply_map(&reply, count);
        for (unsigned i = 0; i < count; i++) {
            char name[8];
            snprintf(name, sizeof name, "%u", i);
            reply_bulk(&reply, bytes_from_text(name));
            reply_integer(&reply, i);
        }
        value_entries_read(&entries, reader());
        assert_true(value_entries_find(&entries, BYTES("90"), &found));
        assert_int_equal(value_next(&found).number, 90);
        assert_false(value_entries_find(&entries, BYTES("200"), &found));
        buffer_deinit(&out);
    }
    begin();
    reply_array(&reply, 0);
    value_entries_read(&entries, reader());
    assert_false(value_entries_find(&entries, BYTES("90"), &found));
    buffer_deinit(&out);
}

TEST(a_map_is_searched_at_its_own_level) {
    begin();
    write_map();
    reply_integer(&reply, 1);
    struct value_reader at = reader();
    struct value_reader found;
    assert_true(bytes_equal(value_find_text(at, "name"), BYTES("daily")));
    assert_int_equal(value_find_integer(at, "count", 0), 7);
    assert_int_equal(value_find_integer(at, "frozen", 0), 1);
    assert_int_equal(value_find_integer(at, "cap", -1), -1);
    assert_int_equal(value_find_integer(at, "absent", -1), -1);
    assert_null(value_find_text(at, "cap").at);
    assert_true(value_find(at, BYTES("period"), &found));
    assert_true(bytes_equal(value_find_text(found, "name"), BYTES("inner")));
    assert_false(value_find(at, BYTES("inner"), &found));
    struct value_entries entries;
    struct value_reader same;
    value_entries_read(&entries, at);
    for (const char *const *name = (const char *const[]){"name", "cap", "period", NULL};
         *name != NULL; name++) {
        assert_true(value_find(at, bytes_from_text(*name), &found));
        assert_true(value_entries_find(&entries, bytes_from_text(*name), &same));
        assert_ptr_equal(same.at, found.at);
        assert_ptr_equal(same.end, found.end);
    }
    assert_false(value_entries_find(&entries, BYTES("inner"), &same));
    value_skip(&at);
    assert_int_equal(value_next(&at).number, 1);
    assert_ptr_equal(at.at, at.end);
    buffer_deinit(&out);
}
