/* Memory of clients, counted by class: random sizes against a naive count. */
#include "tests/support/harness.h"
#include "tests/support/random.h"

enum { CLIENTS = 40 };

static unsigned highest_bit(size_t size) {
    return 63U - (unsigned)__builtin_clzll(size);
}

/* The total, and the class of the largest of those that are not spared. */
static void check(const struct harness *h) {
    uint64_t total = 0;
    unsigned largest = 0;
    for (const struct session *s = h->server.sessions.first; s != NULL; s = s->next) {
        size_t size = session_memory_size(s);
        total += size;
        if (!s->is_no_evict && highest_bit(size) > largest) {
            largest = highest_bit(size);
        }
    }
    assert_int_equal(h->server.sessions.memory.total, total);
    const struct session *found = session_memory_largest(&h->server.sessions.memory);
    assert_true((found == NULL) == (largest == 0));
    if (found != NULL) {
        assert_false(found->is_no_evict);
        assert_int_equal(highest_bit(session_memory_size(found)), largest);
    }
}

SERVER_TEST(the_largest_is_found_whatever_grows_shrinks_comes_and_goes) {
    struct session *sessions[CLIENTS] = {NULL};
    struct random random = random_begin("test_client_memory");
    for (int step = 0; step < 20000; step++) {
        struct session **session = &sessions[random_below(&random, CLIENTS)];
        if (*session == NULL) {
            *session = harness_connect(h);
        } else if (random_below(&random, 10) == 0) {
            harness_disconnect(h, *session);
            *session = NULL;
        } else {
            (*session)->is_no_evict = random_below(&random, 8) == 0;
            (*session)->input_memory_size = (size_t)1 << random_below(&random, 30);
            session_memory_count(&h->server.sessions.memory, *session);
        }
        check(h);
    }
}

static void expect_limit(struct harness *h, const char *setting, uint64_t limit) {
    struct session *session = h->server.sessions.first;
    harness_expect(h, session, formatted("CONFIG SET %s", setting), "+OK\r\n");
    assert_int_equal(server_client_memory_limit(&h->server), limit);
    harness_expect_part(h, session, "INFO memory",
                        formatted("\r\nmaxmemory_clients:%llu\r\n", (unsigned long long)limit));
}

HARNESS_TEST(a_percentage_is_one_of_maxmemory_or_else_of_the_machines_memory, "maxmemory 400mb\n") {
    assert_int_equal(server_client_memory_limit(&h->server), 100 << 20);
    expect_limit(h, "maxmemory-clients 10%", 40 << 20);
    expect_limit(h, "maxmemory 100mb", 10 << 20);
    h->server.about.machine_memory_size = (uint64_t)8 << 30;
    expect_limit(h, "maxmemory 0", ((uint64_t)8 << 30) / 100 * 10);
    expect_limit(h, "maxmemory-clients 1mb", 1 << 20);
    expect_limit(h, "maxmemory-clients 1", 128 << 10);
    expect_limit(h, "maxmemory-clients 0", 0);
    expect_limit(h, "maxmemory-clients 0%", 0);
}
