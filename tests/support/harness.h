/* A whole server without sockets: bytes in, bytes out. Requests go through the parser, the
 * dispatcher and the handlers as they would from a client.
 *
 *     struct harness *h = harness_create("maxmemory 0\n");
 *     struct session *s = harness_connect(h);
 *     harness_expect(h, s, "ZADD board 10 ann", ":1\r\n");
 *     assert_string_equal(harness_run(h, s, "ZSCORE board ann"), "$2\r\n10\r\n");
 *     harness_destroy(h);
 *
 * Lines are cut as inline commands: blanks, "double" and 'single' quotes, \n \r \xHH inside
 * double ones. A failure stops the test (CHECK or cmocka's assertions). */
#ifndef TESTS_SUPPORT_HARNESS_H
#define TESTS_SUPPORT_HARNESS_H

#include "protocol/resp.h"
#include "server/dispatch/execute.h"
#include "server/sessions/server.h"
#include "tests/support/test.h"

/* 2026-01-01T00:00:00Z, what the clock of a new harness shows. */
#define HARNESS_START_US INT64_C(1767225600000000)

/* And its monotonic clock: a machine that runs for a day. */
#define HARNESS_MONOTONIC_START_US INT64_C(86400000000)

struct harness {
    struct server server;
    /* Let time pass: harness->wall_us += 1000000. Set back, it is a wall clock that was set back.
     */
    int64_t wall_us;
    int64_t step_us;               /* the wall clock shows so much more; no time has passed */
    int64_t seen_us, monotonic_us; /* of the monotonic clock */
    struct resp_arena arena;
    struct buffer reply;
    struct shadow *shadow; /* the module beside it (tests/support/shadow.h); NULL: none */
    /* Allocations: harness_destroy finds leaks by it. 0: not by this one, of two at a time, which is
     * destroyed first. */
    uint64_t live_count_before;
};

/* settings: the text of a leaderboard.conf, or NULL. A bad setting stops the test. */
struct harness *harness_create(const char *settings);
/* Disconnects the sessions that are left, and stops the test when memory was leaked. */
void harness_destroy(struct harness *harness);

/* What the server's clock will show when it is read next. */
int64_t harness_now_us(const struct harness *harness);
/* The machine is another one, whose clock shows this, and nothing of before counts. */
void harness_set_clock(struct harness *harness, int64_t wall_us);

/* A new client, in RESP2 (send HELLO 3 or set session->protocol for RESP3). */
struct session *harness_connect(struct harness *harness);
/* Members that are stale leave, by a job that ends all others. */
void harness_drop_stale(struct harness *harness);
void harness_disconnect(struct harness *harness, struct session *session);

/* Send one line, return the reply (terminated; harness->reply.size bytes, if it holds NULs),
 * valid until the next run. Every run reads the clock anew. */
const char *harness_run(struct harness *harness, struct session *session, const char *line);
/* The same with the line made like printf's. */
__attribute__((format(printf, 3, 4))) const char *
harness_run_format(struct harness *harness, struct session *session, const char *format, ...);
/* The same with arguments as they are: nothing is cut or unquoted, any byte may occur. */
const char *harness_run_args(struct harness *harness, struct session *session,
                             const struct bytes *args, uint32_t count);
/* Feed wire bytes: any number of whole requests; returns all the replies. Stops at a request that
 * closes the client. */
const char *harness_send(struct harness *harness, struct session *session, struct bytes input);

/* A line of plain words parted by blanks, whose nth allocation fails (0: none): the test itself
 * allocates nothing meanwhile. Returns the reply as harness_run does. */
const char *harness_run_failing(struct harness *harness, struct session *session, const char *line,
                                uint64_t nth);
/* The same for a request that was parsed. */
const char *harness_fail_request(struct harness *harness, struct session *session,
                                 const struct request *request, uint64_t nth);
/* Does its reply break an output of that size? */
bool harness_breaks(struct harness *harness, struct session *session, const char *line,
                    size_t size_max);

/* What the session was sent beside its replies, terminated, valid until the next call; it is taken
 * away. */
const char *harness_output(struct session *session);

/* Run one request, as the server's loop does. */
void harness_execute(struct server *server, struct session *session, const struct request *request,
                     struct reply *reply);

/* Is it this reply, byte for byte? Of an error of an LB. command the syntax may be left out, "..." stands for any
 * words, and Redis's text for one that explains more: tests/server/dispatch/test_explain.c has these texts. */
bool harness_is_reply(const char *line, const char *expected, const char *reply);
/* Run a line and compare the reply (harness_is_reply); both are printed when they differ. */
#define harness_expect(harness, session, line, expected)                                           \
    harness_expect_at((harness), (session), (line), (expected), __FILE__, __LINE__)
void harness_expect_at(struct harness *harness, struct session *session, const char *line,
                       const char *expected, const char *file, int line_number);
/* Run a line; the reply must begin with this. */
#define harness_expect_prefix(harness, session, line, prefix)                                      \
    harness_expect_prefix_at((harness), (session), (line), (prefix), __FILE__, __LINE__)
void harness_expect_prefix_at(struct harness *harness, struct session *session, const char *line,
                              const char *prefix, const char *file, int line_number);
/* Run a line; this must be in the reply. */
#define harness_expect_part(harness, session, line, part)                                          \
    harness_expect_part_at((harness), (session), (line), (part), __FILE__, __LINE__)
void harness_expect_part_at(struct harness *harness, struct session *session, const char *line,
                            const char *part, const char *file, int line_number);
/* Each row's line and its reply: static const char *const rows[][2]. */
#define harness_expect_each(harness, session, rows)                                                \
    harness_expect_rows((harness), (session), (rows), COUNT_OF(rows), __FILE__, __LINE__)
void harness_expect_rows(struct harness *harness, struct session *session,
                         const char *const (*rows)[2], size_t count, const char *file,
                         int line_number);
/* An integer reply's value. */
int64_t harness_run_integer(struct harness *harness, struct session *session, const char *line);

/* ---- tests ---- */

/* A test with a server `h`, which set_up has put into *state, and a client of it, `s`. */
#define HARNESS_TEST_WITH(name, set_up)                                                            \
    static void name##_in(struct harness *h, struct session *s);                                   \
    TEST_WITH(name, set_up, harness_tear_down) {                                                   \
        name##_in(*state, harness_connect(*state));                                                \
    }                                                                                              \
    static void name##_in(__attribute__((unused)) struct harness *h,                               \
                          __attribute__((unused)) struct session *s)
int harness_tear_down(void **state);

static inline void harness_pass_seconds(struct harness *harness, int64_t seconds) {
    harness->wall_us += seconds * 1000000;
}

/* With these settings, or none. */
#define HARNESS_TEST(name, settings)                                                               \
    static int name##_set_up(void **state) {                                                       \
        *state = harness_create(settings);                                                         \
        return 0;                                                                                  \
    }                                                                                              \
    HARNESS_TEST_WITH(name, name##_set_up)
#define SERVER_TEST(name) HARNESS_TEST(name, NULL)

#endif
