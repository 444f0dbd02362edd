/* What the tests of commands on one player share: a command whose steps are taken one by one,
 * between others. */
#ifndef TESTS_SERVER_PLAYER_FIXTURE_H
#define TESTS_SERVER_PLAYER_FIXTURE_H

#include "server/commands/lb/board_task.h"
#include "skiplist/keyspace/registry_walk.h"
#include "tests/server/failing_memory.h"
#include "tests/support/random.h"
#include "tests/support/shadow.h"

enum { PLAYER_WORDS_MAX = 16 };

/* Send a line of plain words; the session then has a job. */
static inline void player_begin(struct harness *h, struct session *session, const char *line) {
    char words[1024];
    struct bytes args[PLAYER_WORDS_MAX];
    struct request request = {.args = args, .size = strlen(line)};
    struct reply reply;
    snprintf(words, sizeof words, "%s", line);
    for (char *word = strtok(words, " "); word != NULL; word = strtok(NULL, " ")) {
        args[request.count++] = bytes_from_text(word);
    }
    buffer_clear(&h->reply);
    reply_init(&reply, &h->reply, 2);
    server_update_time(&h->server);
    execute_request(&h->server, session, command_find_request(&request), &request, &reply);
    assert_non_null(session->job);
    shadow_end(h->shadow); /* between steps the two have gone different ways */
}

/* One step of one job. true: the session is to be answered. */
static inline bool player_step(struct harness *h, struct session *session) {
    server_update_time(&h->server);
    (void)job_list_step(&h->server, 0, true);
    return session->job->state == JOB_DONE;
}

/* The reply, terminated. */
static inline const char *player_end(struct harness *h, struct session *session) {
    struct reply reply;
    buffer_clear(&h->reply);
    reply_init(&reply, &h->reply, 2);
    job_answer(&h->server, session->job, &reply);
    assert_null(session->job);
    char *end = buffer_reserve(&h->reply, 1);
    assert_non_null(end);
    *end = '\0';
    return h->reply.at;
}

static inline uint32_t player_orders(const struct harness *h) {
    return registry_count(h->server.registry, DURABLE_JOBS);
}

/* A snapshot goes on, or begins. */
static inline void player_walk_some(struct random *random, struct registry *registry) {
    struct registry_walk_piece piece;
    union {
        struct board_stored of_board;
        struct hash_pair of_hash;
    } entries[2];
    for (uint64_t left = random_below(random, 20); left > 0; left--) {
        if (!registry_walk_next(registry, entries, COUNT_OF(entries), &piece)) {
            registry_walk_begin(registry);
            return;
        }
    }
}

#endif
