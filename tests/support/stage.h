/* Several clients each of our server and of a redis-server, to which the same lines are sent; all
 * that all of them receive is compared.
 *
 *     STAGE(stage, 3, NULL);
 *     stage_step(&stage, 0, "SUBSCRIBE news");
 *     stage_step(&stage, 1, "PUBLISH news hello");
 *
 * After each step every client that does not wait sends a PING, and what it has received up to its
 * reply is compared: as it is, or, where Redis promises no order, as a set. */
#ifndef TESTS_SUPPORT_STAGE_H
#define TESTS_SUPPORT_STAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/support/process.h"
#include "tests/support/wire.h"

enum { STAGE_CLIENTS_MAX = 16 };

struct stage {
    struct process servers[2]; /* ours, theirs */
    struct wire wires[2][STAGE_CLIENTS_MAX];
    struct wire witnesses[2]; /* who asks INFO */
    struct text received[2][STAGE_CLIENTS_MAX];
    bool is_waiting[STAGE_CLIENTS_MAX];
    int client_count;
    uint64_t step_count;
};

/* config: of our server; or NULL. */
void stage_begin(struct stage *stage, int client_count, const char *config);
void stage_end(struct stage *stage);
/* One that ends where its block does. */
#define STAGE(name, client_count, config)                                                          \
    __attribute__((cleanup(stage_end))) struct stage name;                                         \
    stage_begin(&(name), (client_count), (config))

/* A client sends lines parted by ';', and is then neither in a transaction nor silenced. */
void stage_step(struct stage *stage, int client, const char *lines);
/* Steps of one client, one after another. */
void stage_steps(struct stage *stage, int client, const char *const *lines, size_t count);
#define STAGE_STEPS(stage, client, ...)                                                            \
    stage_steps((stage), (client), (const char *const[]){__VA_ARGS__},                             \
                sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))
/* The same where the order of what is received may differ. */
void stage_step_unordered(struct stage *stage, int client, const char *lines);
/* A client sends a line that makes it wait. */
void stage_wait(struct stage *stage, int client, const char *line);
/* A client that waits gets its reply, which is compared. Returns it as wire.h renders it. */
const char *stage_woken(struct stage *stage, int client);
/* Does this client, which was made to wait, still do so? Both servers agree. */
bool stage_still_waits(struct stage *stage, int client);
/* What a client of ours received in the last step, as wire.h renders it, a line each. */
const char *stage_received(const struct stage *stage, int client);

#endif
