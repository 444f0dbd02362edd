/* What the sorted-set tests share: a server whose boards have a layout of every kind, replies as
 * one readable line, and the whole content of a board to compare.
 *
 * A reply's line: bulk bytes as they are, ":7" integer, ",1.5" RESP3 double, "(7" big number, "#t",
 * "+OK", "-ERR ...", "[a b]" array, "{a b}" map, "nil" nil bulk, "nil*" nil array, "_" RESP3 null.
 */
#ifndef TESTS_SERVER_ZSET_FIXTURE_H
#define TESTS_SERVER_ZSET_FIXTURE_H

#include <inttypes.h>

#include "codec/memory.h"
#include "codec/timestamp.h"
#include "server/sessions/job.h"
#include "server/sessions/session.h"
#include "skiplist/tags.h"
#include "tests/support/harness.h"
#include "tests/support/shadow.h"
#include "tests/support/stored_text.h"

static const char zset_settings[] =
    "default-layout default\n" /* a choice of layouts: tests/server/commands/test_choice.c */
    "layout laps FIELD ms 32 ASC TIME 31 S\n"
    "layout money FIELD amount 40 SIGNED SCALE 2 TIME 24 M\n"
    "layout fine FIELD score 64 SIGNED\n"
    "layout wide FIELD score 64\n"
    "layout bare FIELD score 32 SIGNED\n"
    "layout three FIELD score 20 FIELD flag 1 FIELD level 11 SIGNED TIME 31 S\n"
    "layout latest FIELD score 20 TIME 40 MS LATEST\n"
    "layout daily FIELD score 20 TIME 20 D\n"
    "layout over FIELD score 20 TIME 10 S\n"
    "layout future FIELD score 20 TIME 31 S START 2030-01-01T00:00:00Z\n"
    "layout old FIELD score 20 TIME 42 MS START 1900-01-01T00:00:00Z\n"
    "layout micro FIELD score 10 TIME 51 US START 2019-12-31T23:59:59.000250Z LATEST\n"
    "layout far FIELD score 1 TIME 63 D\n"
    "layout early FIELD score 20 TIME 40 MS START 1970-01-01T00:00:00Z\n"
    "layout paid FIELD score 33 FIELD paid 1 TIME 29 S END 2029-01-01T00:00:00+08:00\n"
    "layout mixed FIELD points 12 SIGNED SCALE 1 FIELD laps 10 ASC FIELD flag 1 FIELD depth 9 ASC "
    "SIGNED TIME 30 S LATEST\n"
    "board laps:* laps\n"
    "board money:* money\n"
    "board fine:* fine\n"
    "board wide:* wide\n"
    "board bare:* bare\n"
    "board three:* three\n"
    "board latest:* latest\n"
    "board daily:* daily\n"
    "board over:* over\n"
    "board future:* future\n"
    "board old:* old\n"
    "board micro:* micro\n"
    "board far:* far\n"
    "board early:* early\n"
    "board paid:* paid\n"
    "board mixed:* mixed\n";

static const char *const zset_layout_prefixes[] = {
    "", "laps:", "money:", "fine:", "wide:", "bare:", "three:", "latest:", "daily:"};
enum { ZSET_LAYOUTS = sizeof(zset_layout_prefixes) / sizeof(zset_layout_prefixes[0]) };

static inline int zset_start(void **state) {
    struct harness *harness = harness_create(zset_settings);
    harness_connect(harness);
    *state = harness;
    return 0;
}

#define ZSET_TEST(name) HARNESS_TEST(name, zset_settings)

/* With a job of its boards, which the test gives its turns: job_list_step. */
static inline struct harness *zset_start_job(void **state, const char *settings,
                                             const struct board_work *work) {
    struct harness *harness = harness_create(settings);
    harness_connect(harness);
    job_board_begin(&harness->server, work);
    *state = harness;
    return harness;
}

static inline int zset_end_jobs(void **state) {
    struct harness *harness = *state;
    job_list_end(&harness->server);
    return harness_tear_down(state);
}

/* ---- replies as lines ---- */

struct zset_line {
    const char *reply; /* what is left to read */
    char *text;
    size_t size, capacity;
};

static inline void zset_line_add(struct zset_line *line, const char *text, size_t size) {
    if (line->size + size + 1 > line->capacity) {
        line->capacity = (line->size + size + 1) * 2;
        line->text = realloc(line->text, line->capacity);
        assert_non_null(line->text);
    }
    memcpy(line->text + line->size, text, size);
    line->size += size;
    line->text[line->size] = '\0';
}

static inline void zset_line_value(struct zset_line *line) {
    char kind = *line->reply;
    const char *text = line->reply + 1;
    size_t size = strcspn(text, "\r");
    line->reply = text + size + 2;
    if (kind == '$' || kind == '*' || kind == '%') {
        long count = strtol(text, NULL, 10) * (kind == '%' ? 2 : 1);
        if (count < 0) {
            zset_line_add(line, kind == '$' ? "nil" : "nil*", kind == '$' ? 3 : 4);
        } else if (kind == '$') {
            zset_line_add(line, line->reply, (size_t)count);
            line->reply += count + 2;
        } else {
            zset_line_add(line, kind == '%' ? "{" : "[", 1);
            for (long i = 0; i < count; i++) {
                zset_line_add(line, " ", i > 0 ? 1 : 0);
                zset_line_value(line);
            }
            zset_line_add(line, kind == '%' ? "}" : "]", 1);
        }
    } else {
        assert_non_null(strchr(":+-,_(#", kind));
        zset_line_add(line, text - 1, size + 1);
    }
}

/* Run a line; the reply as a line, valid until the next one. */
__attribute__((format(printf, 2, 3))) static inline const char *zset_run(struct harness *harness,
                                                                         const char *format, ...) {
    static struct zset_line line;
    char command[8192];
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(command, sizeof(command), format, arguments);
    va_end(arguments);
    assert_in_range(size, 1, sizeof(command) - 1);
    line.reply = harness_run(harness, harness->server.sessions.first, command);
    const char *end = line.reply + harness->reply.size;
    line.size = 0;
    zset_line_value(&line);
    assert_ptr_equal(line.reply, end);
    return line.text;
}

#define zset_expect(harness, command, expected)                                                    \
    zset_expect_at((harness), (command), (expected), __FILE__, __LINE__)

static inline void zset_expect_at(struct harness *harness, const char *command,
                                  const char *expected, const char *file, int line_number) {
    const char *answered = zset_run(harness, "%s", command);
    if (!harness_is_reply(command, expected, answered)) {
        print_error("%s:%d: %s\n  expected %s\n  answered %s\n", file, line_number, command,
                    expected, answered);
        _fail(file, line_number);
    }
}

/* The reply begins with this. */
static inline void zset_expect_begin(struct harness *harness, const char *command,
                                     const char *begin) {
    const char *answered = zset_run(harness, "%s", command);
    if (strncmp(answered, begin, strlen(begin)) != 0) {
        fail_msg("%s: %s does not begin with %s", command, answered, begin);
    }
}

/* This is in the reply. */
static inline void zset_expect_part(struct harness *harness, const char *command,
                                    const char *part) {
    const char *answered = zset_run(harness, "%s", command);
    if (strstr(answered, part) == NULL) {
        fail_msg("%s: %s is not in %s", command, part, answered);
    }
}

/* Each row's command and its reply. */
#define zset_expect_each(harness, rows)                                                            \
    zset_expect_rows((harness), (rows), COUNT_OF(rows), __FILE__, __LINE__)

static inline void zset_expect_rows(struct harness *harness, const char *const (*rows)[2],
                                    size_t count, const char *file, int line_number) {
    for (size_t i = 0; i < count; i++) {
        zset_expect_at(harness, rows[i][0], rows[i][1], file, line_number);
    }
}

/* Unix microseconds of an ISO 8601 time. */
static inline int64_t zset_us(const char *text) {
    int64_t time_us = 0;
    assert_true(timestamp_parse(bytes_from_text(text), &time_us));
    return time_us;
}

static inline void zset_use_resp3(struct harness *harness) {
    harness->server.sessions.first->protocol = 3;
}

/* ---- what a board holds ---- */

static inline struct board *zset_board(struct harness *harness, const char *key) {
    struct registry_key *found =
        registry_find(harness->server.registry, 0, bytes_from_text(key), harness->wall_us / 1000);
    return found != NULL && found->kind == REGISTRY_BOARD ? &found->board : NULL;
}

/* " DE - mage" */
static inline void zset_dump_tags(const struct board *board, uint32_t rank,
                                  struct zset_line *dump) {
    struct tag_values values;
    tags_at(board, rank, &values);
    for (unsigned tag = 0; values.mask != 0 && tag < board_layout(board)->tags.count; tag++) {
        bool is_there = (values.mask >> tag & 1) != 0;
        zset_line_add(dump, " ", 1);
        zset_line_add(dump, is_there ? values.at[tag].at : "-", is_there ? values.at[tag].size : 1);
    }
}

/* Every member with its packed key and tags, best first; NULL: no such board. To be freed. */
static inline char *zset_dump(struct harness *harness, const char *key) {
    const struct board *board = zset_board(harness, key);
    if (board == NULL) {
        return NULL;
    }
    const char *reason = "";
    if (!board_validate(board, &reason)) {
        print_error("%s: %s\n", key, reason);
        fail();
    }
    struct zset_line dump = {0};
    zset_line_add(&dump, "", 0);
    uint32_t rank = 0;
    struct board_cursor cursor;
    struct board_stored entry;
    for (board_cursor_seek(board, 0, &cursor); board_cursor_read(&cursor, &entry);
         board_cursor_next(&cursor)) {
        char number[32];
        int size = snprintf(number, sizeof(number), "%016" PRIx64 " ", entry.key);
        zset_line_add(&dump, number, (size_t)size);
        struct bytes member = stored_text(entry.member);
        zset_line_add(&dump, member.at, member.size);
        zset_dump_tags(board, rank++, &dump);
        zset_line_add(&dump, "\n", 1);
    }
    return dump.text;
}

/* Run a line that must not change the board of key, and must reply with expected. */
#define zset_expect_unchanged(harness, key, command, expected)                                     \
    zset_expect_unchanged_at((harness), (key), (command), (expected), __FILE__, __LINE__)

static inline void zset_expect_unchanged_at(struct harness *harness, const char *key,
                                            const char *command, const char *expected,
                                            const char *file, int line_number) {
    char *before = zset_dump(harness, key);
    zset_expect_at(harness, command, expected, file, line_number);
    char *after = zset_dump(harness, key);
    bool is_same = before == NULL || after == NULL ? before == after : strcmp(before, after) == 0;
    if (!is_same) {
        print_error("%s:%d: %s changed\n%s--- to\n%s", file, line_number, key,
                    before != NULL ? before : "nothing\n", after != NULL ? after : "nothing\n");
        _fail(file, line_number);
    }
    free(before);
    free(after);
}

/* Each row's command and its reply; none changes the board of key. */
#define zset_expect_each_unchanged(harness, key, rows)                                             \
    do {                                                                                           \
        for (size_t row = 0; row < COUNT_OF(rows); row++) {                                        \
            zset_expect_unchanged((harness), (key), (rows)[row][0], (rows)[row][1]);               \
        }                                                                                          \
    } while (false)

/* The member's reach time in unix milliseconds. */
static inline int64_t zset_time_ms(struct harness *harness, const char *key, const char *member) {
    const struct board *board = zset_board(harness, key);
    assert_non_null(board);
    uint64_t packed;
    int64_t time_ms;
    assert_true(board_find(board, bytes_from_text(member), &packed));
    assert_true(layout_time_ms(board_layout(board), packed, &time_ms));
    return time_ms;
}

static inline uint64_t zset_packed(struct harness *harness, const char *key, const char *member) {
    uint64_t packed;
    assert_true(board_find(zset_board(harness, key), bytes_from_text(member), &packed));
    return packed;
}

/* Change a member's field directly, not through a command. */
static inline void zset_set_field(struct harness *harness, const char *key, const char *member,
                                  unsigned index, uint64_t ordinal) {
    struct board *board = zset_board(harness, key);
    shadow_end(harness->shadow);
    uint64_t packed =
        layout_with_ordinal(board_layout(board), zset_packed(harness, key, member), index, ordinal);
    assert_int_equal(board_put(board, bytes_from_text(member), packed), BOARD_OK);
}

/* As the server's loop does at the end of a tick: archives that are copies are made. */
static inline void zset_copy_archives(struct harness *harness) {
    while (
        registry_roll_archive_step(harness->server.registry, harness_now_us(harness) / 1000, 64)) {}
}

/* A board of six with two tags, of which some have none. */
static inline void zset_make_tagged(struct harness *h) {
    zset_expect(h, "LB.CREATE k FIELD score 33 TAG country 8 TAG class 4", "+OK");
    zset_expect(h, "LB.ADD k TAG country DE TAG class mage 90 a 80 b", ":2");
    zset_expect(h, "LB.ADD k TAG country FR TAG class mage 70 c", ":1");
    zset_expect(h, "LB.ADD k TAG country DE TAG class rogue 60 d", ":1");
    zset_expect(h, "LB.ADD k TAG class rogue 50 e", ":1");
    zset_expect(h, "LB.ADD k TAG country CH 40 f", ":1");
}

#endif
