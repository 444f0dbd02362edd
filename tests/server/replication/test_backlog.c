/* The backlog against a naive twin: random groups, cursors that read at their own pace, trimming; every
 * cursor gets every group once, in order, byte for byte. */
#include "tests/support/test.h"

#include "server/replication/feed.h"
#include "server/replication/replication.h"
#include "skiplist/keyspace/registry.h"
#include "tests/support/random.h"

enum { STEPS = 20000, CURSORS = 4, PAYLOAD_MAX = 900000, KEEP = 600000, GROUPS_MAX = STEPS + 1 };

static struct backlog backlog;
static struct random numbers;
static uint32_t sizes[GROUPS_MAX]; /* of the payload of each group */
static char payload[PAYLOAD_MAX];

static void fill_payload(uint64_t group, uint32_t size) {
    memset(payload, (int)(group % 251), size);
}

static void add(uint64_t group) {
    uint32_t size = random_below(&numbers, 500) == 0
                        ? 1 + (uint32_t)random_below(&numbers, PAYLOAD_MAX)
                        : 1 + (uint32_t)random_below(&numbers, 300);
    const struct journal_group_head head = {.size = size, .sequence = group};
    sizes[group] = size;
    fill_payload(group, size);
    assert_true(backlog_add(&backlog, &head, payload));
}

/* Whole groups from next on; returns the group behind them. */
static uint64_t check_bytes(const char *at, size_t size, uint64_t next) {
    while (size > 0) {
        struct wire_message message;
        const char *reason;
        assert_int_equal(wire_read(at, size, &message, &reason), WIRE_MESSAGE);
        assert_int_equal(message.head.sequence, next);
        assert_int_equal(message.head.size, sizes[next]);
        fill_payload(next, sizes[next]);
        assert_memory_equal(wire_payload(&message), payload, sizes[next]);
        at += message.whole_size;
        size -= message.whole_size;
        next++;
    }
    return next;
}

static uint64_t read_some(struct backlog_cursor *cursor, uint64_t next) {
    const char *at;
    uint64_t last_group = 0;
    size_t size =
        backlog_read(&backlog, cursor, 1 + random_below(&numbers, 100000), &at, &last_group);
    if (size == 0) {
        assert_int_equal(next, backlog.next_group);
        assert_int_equal(backlog_unread(&backlog, cursor), 0);
        return next;
    }
    assert_int_equal(check_bytes(at, size, next), last_group + 1);
    return last_group + 1;
}

static void check_valid(void) {
    ASSERT_VALID(backlog_validate, &backlog);
}

TEST(every_cursor_gets_every_group_once) {
    struct backlog_cursor cursors[CURSORS] = {{.chunk = NULL}};
    uint64_t next[CURSORS] = {0};
    uint64_t group = 1;
    numbers = random_begin("backlog");
    backlog_init(&backlog, KEEP);
    for (int i = 0; i < STEPS; i++) {
        uint64_t kind = random_below(&numbers, 10);
        uint64_t which = random_below(&numbers, CURSORS);
        struct backlog_cursor *cursor = &cursors[which];
        if (kind < 5) {
            add(group++);
        } else if (kind < 8 && cursor->chunk != NULL) {
            next[which] = read_some(cursor, next[which]);
        } else if (kind == 8) {
            uint64_t first = backlog_first_group(&backlog);
            uint64_t wanted = first + random_below(&numbers, group - first + 2);
            bool is_there = first != 0 && wanted <= group;
            if (first != 0) {
                assert_true(backlog_seek(&backlog, cursor, wanted) == is_there || wanted == group);
                next[which] = cursor->chunk != NULL && is_there ? wanted : next[which];
            }
        } else if (kind == 9 && random_below(&numbers, 4) == 0) {
            backlog_leave(cursor);
        }
        backlog_trim(&backlog);
        if (i % 500 == 0) {
            check_valid();
        }
    }
    for (int i = 0; i < CURSORS; i++) {
        backlog_leave(&cursors[i]);
    }
    backlog_trim(&backlog);
    check_valid();
    assert_true(backlog_size(&backlog) >= KEEP);
    assert_true(backlog_size(&backlog) < KEEP + PAYLOAD_MAX + 300 * 1024);
    backlog_clear(&backlog);
    assert_int_equal(backlog.memory_size, 0);
}

TEST(a_group_that_does_not_follow_is_refused) {
    const struct journal_group_head head = {.size = 1, .sequence = 7};
    const struct journal_group_head far = {.size = 1, .sequence = 9};
    struct backlog_cursor cursor = {.chunk = NULL};
    backlog_init(&backlog, 100);
    assert_false(backlog_seek(&backlog, &cursor, 7));
    assert_true(backlog_add(&backlog, &head, "x"));
    assert_false(backlog_add(&backlog, &far, "x"));
    assert_false(backlog_add(&backlog, &head, "x"));
    assert_false(backlog_seek(&backlog, &cursor, 6));
    assert_true(backlog_seek(&backlog, &cursor, 8)); /* which is not there yet */
    assert_false(backlog_seek(&backlog, &cursor, 9));
    backlog_leave(&cursor);
    backlog_clear(&backlog);
}

TEST(no_memory_loses_the_group_and_nothing_else) {
    const struct journal_group_head head = {.size = 1, .sequence = 7};
    backlog_init(&backlog, 100);
    memory_fail_at(1);
    assert_false(backlog_add(&backlog, &head, "x"));
    memory_fail_at(0);
    check_valid();
    assert_true(backlog_add(&backlog, &head, "x"));
    check_valid();
    backlog_clear(&backlog);
}

/* ---- the history in the keys ---- */

static const struct board_options *no_options(void *context, struct bytes key, uint32_t choice) {
    (void)context;
    (void)key;
    (void)choice;
    return NULL;
}

TEST(the_history_is_kept_in_the_keys) {
    struct registry *registry = registry_create(1, no_options, NULL);
    struct history history;
    const struct history written = {.id = "0123456789abcdef0123456789abcdef01234567",
                                    .second_id = REPLICATION_NO_ID,
                                    .second_until = 4711};
    assert_non_null(registry);
    assert_false(replication_read_history(registry, &history));
    for (uint64_t nth = 1; nth < 20; nth++) { /* no memory: as if nothing had been asked */
        memory_fail_at(nth);
        bool is_written = replication_write_history(registry, &written);
        memory_fail_at(0);
        assert_int_equal(replication_read_history(registry, &history), is_written);
        if (is_written) {
            break;
        }
        assert_int_equal(registry_count(registry, REGISTRY_HISTORY), 0);
    }
    assert_true(replication_read_history(registry, &history));
    assert_string_equal(history.id, written.id);
    assert_string_equal(history.second_id, REPLICATION_NO_ID);
    assert_int_equal(history.second_until, 4711);
    assert_int_equal(registry_flush(registry, REGISTRY_DATABASES), 0);
    assert_true(replication_read_history(registry, &history)); /* no client can flush it */
    registry_destroy(registry);
}

TEST(an_id_is_forty_lower_case_hex_digits) {
    assert_true(term_is_id(BYTES("0123456789abcdef0123456789abcdef01234567")));
    assert_false(term_is_id(BYTES("0123456789abcdef0123456789abcdef0123456")));
    assert_false(term_is_id(BYTES("0123456789abcdef0123456789abcdef0123456G")));
    assert_false(term_is_id(BYTES("?")));
}
