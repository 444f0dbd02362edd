/* The messages of the stream: what is written is read again, in any pieces, and what is not valid is
 * refused. */
#include "tests/support/test.h"

#include "server/replication/wire.h"

static struct buffer stream;

FIXTURE(set_up) {
    buffer_init(&stream, 0);
    return 0;
}

FIXTURE(tear_down) {
    buffer_deinit(&stream);
    return 0;
}

#define IN_FIXTURE(name) TEST_WITH(name, set_up, tear_down)

static void put_group(uint64_t sequence, bool is_linked, const char *payload) {
    const struct journal_group_head head = {.size = (uint32_t)strlen(payload),
                                            .sequence = sequence,
                                            .time_us = is_linked ? 0 : 1795000000000000,
                                            .unsynced = 7,
                                            .is_linked = is_linked};
    char *at = buffer_reserve(&stream, wire_group_size(&head));
    assert_non_null(at);
    wire_put_group(at, &head, payload);
    buffer_commit(&stream, wire_group_size(&head));
}

/* The next message, which must be whole; drops it. */
static struct wire_message take(enum wire_kind kind) {
    struct wire_message message;
    const char *reason = "";
    enum wire_status status = wire_read(stream.at, stream.size, &message, &reason);
    if (status != WIRE_MESSAGE) {
        fail_msg("no message: %s", reason);
    }
    assert_int_equal(message.kind, kind);
    return message;
}

IN_FIXTURE(messages_are_read_as_they_were_written) {
    put_group(71, true, "linked");
    put_group(72, false, "effects");
    wire_put_ping(&stream, 1795000000000001, 72);
    wire_put_piece(&stream, "piece", 5);
    wire_put_end(&stream, 72, 1795000000000002);
    wire_put_given_up(&stream, "because");

    struct wire_message message = take(WIRE_GROUP);
    assert_int_equal(message.head.sequence, 71);
    assert_true(message.head.is_linked);
    assert_int_equal(message.head.time_us, 0);
    assert_memory_equal(wire_payload(&message), "linked", message.head.size);
    buffer_drop_front(&stream, message.whole_size);
    message = take(WIRE_GROUP);
    assert_false(message.head.is_linked);
    assert_int_equal(message.head.unsynced, 0); /* what is on the master's disk is its own affair */
    assert_int_equal(message.head.time_us, 1795000000000000);
    buffer_drop_front(&stream, message.whole_size);
    message = take(WIRE_PING);
    assert_int_equal(message.group, 72);
    assert_int_equal(message.time_us, 1795000000000001);
    buffer_drop_front(&stream, message.whole_size);
    message = take(WIRE_PIECE);
    assert_int_equal(message.size, 5);
    assert_memory_equal(message.at, "piece", 5);
    buffer_drop_front(&stream, message.whole_size);
    message = take(WIRE_END);
    assert_int_equal(message.group, 72);
    assert_int_equal(message.time_us, 1795000000000002);
    buffer_drop_front(&stream, message.whole_size);
    message = take(WIRE_GIVEN_UP);
    assert_memory_equal(message.at, "because", message.size);
    buffer_drop_front(&stream, message.whole_size);
    assert_int_equal(stream.size, 0);
}

IN_FIXTURE(a_part_of_a_message_says_how_much_is_missing) {
    put_group(5, false, "effects");
    for (size_t size = 0; size < stream.size; size++) {
        struct wire_message message;
        const char *reason;
        assert_int_equal(wire_read(stream.at, size, &message, &reason), WIRE_PART);
        assert_int_equal(message.whole_size, size < WIRE_HEAD ? 0 : stream.size);
    }
}

IN_FIXTURE(no_byte_of_a_group_can_change_unseen) {
    put_group(5, false, "effects");
    for (size_t at = 0; at < stream.size; at++) {
        for (int bit = 0; bit < 8; bit++) {
            struct wire_message message;
            const char *reason = NULL;
            stream.at[at] ^= (char)(1 << bit);
            enum wire_status status = wire_read(stream.at, stream.size, &message, &reason);
            bool is_seen = status == WIRE_BAD || (status == WIRE_PART && at < WIRE_HEAD) ||
                           (status == WIRE_MESSAGE && message.kind != WIRE_GROUP);
            assert_true(is_seen);
            stream.at[at] ^= (char)(1 << bit);
        }
    }
}

TEST(what_is_no_message_is_refused) {
    static const struct {
        const char *at;
        size_t size;
    } bad[] = {
        {"\0\0\0\0\0\0\0\0", 8},                /* no kind */
        {"\0\0\0\0\6\0\0\0", 8},                /* an unknown one */
        {"\x10\0\0\0\2\1\0\0", 8},              /* bytes that must be zero */
        {"\x0f\0\0\0\2\0\0\0", 8},              /* a ping of another size */
        {"\0\0\0\0\3\0\0\0", 8},                /* an empty piece */
        {"\1\0\4\0\3\0\0\0", 8},                /* one that is too long */
        {"\x20\0\0\0\1\0\0\0", 8},              /* a group without effects */
        {"\xff\xff\xff\xff\1\0\0\0", 8},        /* one longer than any */
        {"\1\2\0\0\5\0\0\0", 8},                /* too long a text */
        {"\x10\0\0\0\2\0\0\0\0\0\0\0\0\0\0\x80" /* a time before all */
         "\0\0\0\0\0\0\0\0",
         24},
        {"\x10\0\0\0\2\0\0\0\0\0\0\0\0\0\0\x7f" /* one that overflows */
         "\0\0\0\0\0\0\0\0",
         24},
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct wire_message message;
        const char *reason = NULL;
        assert_int_equal(wire_read(bad[i].at, bad[i].size, &message, &reason), WIRE_BAD);
        assert_non_null(reason);
    }
}
