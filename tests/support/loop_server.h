/* A server with connections, on an event loop that the test turns: the test has the other ends of
 * its clients' sockets. To be included behind cmocka.h.
 *
 *     loop_begin(&server, NULL);
 *     int ann = loop_connect(&server);
 *     loop_send(ann, "PING\r\n");
 *     loop_expect(&server, ann, "+PONG\r\n");
 *     loop_end(&server);
 *
 * The test has the clock, and seconds pass only in loop_second: so nothing depends on how long a
 * step takes. What is waited for is waited for a minute at least; then the test fails. */
#ifndef TESTS_SUPPORT_LOOP_SERVER_H
#define TESTS_SUPPORT_LOOP_SERVER_H

#include "server/durability/persistence.h"
#include "server/loop/tick.h"
#include "tests/support/directory.h"
#include "tests/support/harness.h"

enum { LOOP_CLIENTS_MAX = 64, LOOP_REPLY_MAX = 1 << 20 };

struct loop_server {
    struct harness *harness;
    struct server *server;
    uv_loop_t loop;
    struct tick tick;
    struct persistence *persistence; /* NULL: boards are not kept */
    char directory[DIRECTORY_PATH_MAX];
    int clients[LOOP_CLIENTS_MAX]; /* closed by loop_end; -1: closed before */
    int client_count;
};

/* Start a server that keeps nothing; settings: text of a leaderboard.conf, or NULL. */
void loop_begin(struct loop_server *looped, const char *settings);
/* Start one that keeps its boards in a new directory. */
void loop_begin_kept(struct loop_server *looped, const char *settings);
/* Start one on the directory that is there, and load. */
void loop_start_kept(struct loop_server *looped, const char *settings);
/* It takes part in replication from now on: before its first turn. */
void loop_replicate(struct loop_server *looped);
/* End the server; its directory and the test's ends stay. */
void loop_stop(struct loop_server *looped);
/* loop_stop, if it has not been called, and everything else. */
void loop_end(struct loop_server *looped);

/* The client's end of a new connection: non-blocking. */
int loop_connect(struct loop_server *looped);
/* Close the test's end. */
void loop_close(struct loop_server *looped, int client);
/* The socket must have room for all of it. */
void loop_send_bytes(int client, const void *bytes, size_t size);
void loop_send(int client, const char *text);
/* Send any number of bytes, turning until the server has taken them. */
void loop_send_all(struct loop_server *looped, int client, const void *bytes, size_t size);

/* One turn of the loop, which does not wait. */
void loop_turn(struct loop_server *looped);
/* Enough turns for the effects of what was sent, as far as they wait for no other thread. */
void loop_turn_some(struct loop_server *looped);
/* Turn while something is expected; zeroed at first. false: it has taken far too long. */
struct loop_wait {
    uint64_t turns;
    int64_t began_ms;
};
bool loop_turn_and_wait(struct loop_server *looped, struct loop_wait *wait);
/* Until so many clients are left. */
void loop_wait_clients(struct loop_server *looped, uint32_t count);
/* Let a second pass on the server's clock, with all that is done once a second. */
void loop_second(struct loop_server *looped);

/* Exactly this reply arrives. */
void loop_expect(struct loop_server *looped, int client, const char *expected);
/* The same, behind a request. */
void loop_ask(struct loop_server *looped, int client, const char *request, const char *expected);
/* The same over a connection of its own. */
void loop_ask_anew(struct loop_server *looped, const char *request, const char *expected);
/* A reply begins with prefix; the rest that has arrived is discarded. */
void loop_expect_prefix(struct loop_server *looped, int client, const char *prefix);
/* Nothing arrives, and it stays open. */
void loop_expect_nothing(struct loop_server *looped, int client);
/* The server closes it and sends nothing before. */
void loop_expect_end(struct loop_server *looped, int client);

/* A test with a server that keeps nothing. */
#define LOOP_SERVER_TEST(name, settings)                                                           \
    static void name##_in(struct loop_server *f);                                                  \
    TEST(name) {                                                                                   \
        struct loop_server looped;                                                                 \
        loop_begin(&looped, settings);                                                             \
        name##_in(&looped);                                                                        \
        loop_end(&looped);                                                                         \
    }                                                                                              \
    static void name##_in(struct loop_server *f)

#endif
