/* Each allocation of a command made to fail in turn: what it was to do is done, or nothing of it.
 */
#ifndef TESTS_SERVER_FAILING_MEMORY_H
#define TESTS_SERVER_FAILING_MEMORY_H

#include "tests/server/zset_fixture.h"

static inline void fill_3000(struct harness *h) {
    for (int i = 0; i < 3000; i++) {
        zset_run(h, "ZADD k %d member:%d", i % 50, i);
    }
}

/* Keys before a line runs, which may be NULL, and which of them are compared. */
struct world {
    const char *before; /* a command */
    void (*fill)(struct harness *h);
    const char *const *keys;
    size_t key_count;
};

static inline struct harness *make_world(const struct world *world) {
    void *state;
    zset_start(&state);
    struct harness *h = state;
    shadow_end(h->shadow); /* the module would only repeat what each of them begins with */
    if (world->before != NULL) {
        zset_run(h, "%s", world->before);
    }
    if (world->fill != NULL) {
        world->fill(h);
    }
    return h;
}

/* The members of the keys, or their fields, and when each expires. To be freed. */
static inline char *dump_world(struct harness *h, const struct world *world) {
    struct zset_line all = {0};
    for (size_t i = 0; i < world->key_count; i++) {
        char *dump = zset_dump(h, world->keys[i]);
        const char *text = dump != NULL ? dump : zset_run(h, "HGETALL %s", world->keys[i]);
        zset_line_add(&all, text, strlen(text));
        free(dump);
        text = zset_run(h, "PEXPIRETIME %s", world->keys[i]);
        zset_line_add(&all, text, strlen(text));
    }
    return all.text;
}

/* Fail each allocation of a line in turn: it is applied completely, with the reply expected (NULL:
 * any that is no error), or not at all. */
static inline void fail_each_allocation_in(const struct world *world, const char *line,
                                           const char *expected) {
    struct harness *twin = make_world(world);
    char *dump_before = dump_world(twin, world);
    uint32_t keys_before = registry_count(twin->server.registry, 0);
    char *reply = strdup(harness_run_failing(twin, twin->server.sessions.first, line, 0));
    char *dump_after = dump_world(twin, world);
    harness_destroy(twin);
    if (expected != NULL) {
        assert_string_equal(reply, expected);
    }
    assert_int_not_equal(reply[0], '-');
    uint64_t refused_count = 0;
    bool is_reached = true;
    for (uint64_t nth = 1; is_reached; nth++) {
        struct harness *h = make_world(world);
        uint64_t requests_before = memory_requests();
        const char *answered = harness_run_failing(h, h->server.sessions.first, line, nth);
        is_reached = memory_requests() - requests_before >= nth;
        bool is_refused = strcmp(answered, "-OOM out of memory\r\n") == 0;
        assert_true(is_refused || strcmp(answered, reply) == 0);
        if (is_refused) {
            assert_int_equal(registry_count(h->server.registry, 0), keys_before);
        }
        refused_count += is_refused;
        char *dump = dump_world(h, world);
        assert_string_equal(dump, is_refused ? dump_before : dump_after);
        free(dump);
        harness_destroy(h);
    }
    assert_in_range(refused_count, 1, 10000);
    free(reply);
    free(dump_before);
    free(dump_after);
}

/* On the board k, made by a command or NULL; is_large: and of 3000 members. */
static inline void fail_each_allocation(const char *before, const char *line, const char *expected,
                                        bool is_large) {
    static const char *const keys[] = {"k"};
    const struct world world = {before, is_large ? fill_3000 : NULL, keys, 1};
    fail_each_allocation_in(&world, line, expected);
}

#endif
