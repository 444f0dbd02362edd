/* Each allocation of a command made to fail in turn: what it was to do is done, or nothing of it.
 */
#ifndef TESTS_SERVER_FAILING_MEMORY_H
#define TESTS_SERVER_FAILING_MEMORY_H

#include "tests/server/zset_fixture.h"
#include "tests/support/registry_workload.h"

/* Keys before a line runs. Of a step's line, # is how often it has run, and @ that modulo another number. */
enum { WORLD_STEPS = 10 };
struct world {
    const char *name;
    struct {
        int times, modulo;
        const char *line;
    } steps[WORLD_STEPS];
    void (*fill)(struct harness *h); /* after the steps; or NULL */
};

static inline void zset_expect_no_error(struct harness *h, const char *line) {
    const char *reply = zset_run(h, "%s", line);
    if (reply[0] == '-') {
        fail_msg("%s: %s", line, reply);
    }
}

static inline struct harness *make_world(const struct world *world) {
    void *state;
    zset_start(&state);
    struct harness *h = state;
    shadow_end(h->shadow); /* the module would only repeat what each of them begins with */
    for (size_t i = 0; i < WORLD_STEPS && world->steps[i].line != NULL; i++) {
        for (int k = 0; k < world->steps[i].times; k++) {
            char line[1024];
            size_t size = 0;
            for (const char *at = world->steps[i].line; *at != '\0'; at++) {
                int number = *at == '#' ? k : k % world->steps[i].modulo;
                size += *at == '#' || *at == '@'
                            ? (size_t)snprintf(line + size, sizeof line - size, "%d", number)
                            : (size_t)snprintf(line + size, sizeof line - size, "%c", *at);
            }
            zset_expect_no_error(h, line);
        }
    }
    if (world->fill != NULL) {
        world->fill(h);
    }
    return h;
}

/* Fail each allocation of a line in turn (of a part of the short form: some, drawn): it is applied completely, with
 * the reply that it has with memory, or not at all. begin: how that reply begins, which is no error. */
static inline void fail_each_allocation_in(const struct world *world, const char *line,
                                           const char *begin) {
    struct harness *twin = make_world(world);
    uint64_t before = workload_digest(twin->server.registry);
    char *reply = strdup(harness_run_failing(twin, twin->server.sessions.first, line, 0));
    uint64_t after = workload_digest(twin->server.registry);
    harness_destroy(twin);
    if (reply[0] == '-' || strncmp(reply, begin, strlen(begin)) != 0) {
        fail_msg("%s: %s", line, reply);
    }
    struct random random = random_begin(world->name);
    const uint32_t step = test_step(1, 1);
    uint64_t refused_count = 0;
    bool is_reached = true;
    for (uint64_t nth = 1; is_reached; nth += 1 + random_below(&random, 2 * step - 1)) {
        struct harness *h = make_world(world);
        uint64_t requests_before = memory_requests();
        const char *answered = harness_run_failing(h, h->server.sessions.first, line, nth);
        is_reached = memory_requests() - requests_before >= nth;
        bool is_refused = strcmp(answered, "-OOM out of memory\r\n") == 0;
        if (!is_refused && strcmp(answered, reply) != 0) {
            fail_msg("%s, allocation %u: %s", line, (unsigned)nth, answered);
        }
        refused_count += is_refused;
        if (workload_digest(h->server.registry) != (is_refused ? before : after)) {
            fail_msg("%s, allocation %u: other keys after %s", line, (unsigned)nth, answered);
        }
        harness_destroy(h);
    }
    assert_in_range(refused_count, step == 1, 10000);
    free(reply);
}

#endif
