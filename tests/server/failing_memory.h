/* Each allocation of a command made to fail in turn: what it was to do is done, or nothing of it.
 */
#ifndef TESTS_SERVER_FAILING_MEMORY_H
#define TESTS_SERVER_FAILING_MEMORY_H

#include "tests/server/zset_fixture.h"

/* Run a line of plain words without any memory but the handler's own. */
static inline const char *run_words(struct harness *h, const char *line) {
    static char words[65536];
    static struct bytes args[4096];
    struct request request = {.args = args, .size = strlen(line)};
    assert_true(request.size < sizeof(words));
    strcpy(words, line);
    for (char *word = strtok(words, " "); word != NULL; word = strtok(NULL, " ")) {
        args[request.count++] = bytes_from_text(word);
    }
    buffer_clear(&h->reply);
    struct reply reply;
    reply_init(&reply, &h->reply, 2);
    server_update_time(&h->server);
    harness_execute(&h->server, h->server.sessions.first, &request, &reply);
    h->reply.at[h->reply.size] = '\0';
    return h->reply.at;
}

static inline struct harness *harness_with(const char *before, bool is_large) {
    void *state;
    zset_start(&state);
    struct harness *h = state;
    shadow_end(h->shadow); /* the module would only repeat what each of them begins with */
    assert_non_null(buffer_reserve(&h->reply, 65536));
    if (before != NULL) {
        zset_run(h, "%s", before);
    }
    for (int i = 0; i < (is_large ? 3000 : 0); i++) {
        zset_run(h, "ZADD k %d member:%d", i % 50, i);
    }
    return h;
}

/* Fail each allocation of a line in turn: it is applied, or not at all. */
static inline void fail_each_allocation(const char *before, const char *line, const char *expected,
                                        bool is_large) {
    struct harness *twin = harness_with(before, is_large);
    char *dump_before = zset_dump(twin, "k");
    uint32_t keys_before = registry_count(twin->server.registry, 0);
    assert_string_equal(run_words(twin, line), expected);
    char *dump_after = zset_dump(twin, "k");
    harness_destroy(twin);
    uint64_t refused_count = 0;
    bool is_reached = true;
    for (uint64_t nth = 1; is_reached; nth++) {
        struct harness *h = harness_with(before, is_large);
        uint64_t requests_before = memory_requests();
        memory_fail_at(nth);
        const char *answered = run_words(h, line);
        is_reached = memory_requests() - requests_before >= nth;
        memory_fail_at(0);
        bool is_refused = strcmp(answered, "-OOM out of memory\r\n") == 0;
        assert_true(is_refused || strcmp(answered, expected) == 0);
        const char *wanted = is_refused ? dump_before : dump_after;
        char *dump = zset_dump(h, "k");
        assert_true(dump == NULL ? wanted == NULL : wanted != NULL && strcmp(dump, wanted) == 0);
        if (is_refused) {
            assert_int_equal(registry_count(h->server.registry, 0), keys_before);
        }
        refused_count += is_refused;
        free(dump);
        harness_destroy(h);
    }
    assert_in_range(refused_count, 1, 10000);
    free(dump_before);
    free(dump_after);
}

#endif
