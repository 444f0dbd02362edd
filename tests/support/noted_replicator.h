/* A replicator that notes what commands ask of it, in the place of server/replication/replicator.c:
 * for one program of tests, which includes this once. */
#ifndef TESTS_NOTED_REPLICATOR_H
#define TESTS_NOTED_REPLICATOR_H

#include <stdio.h>
#include <string.h>

#include "server/replication/replication.h"

struct replicator {
    struct server *server;
    char calls[256];
    bool is_slow; /* what was received is still to be applied at a promotion */
};

static void noted_replicator_note(struct replicator *replicator, const char *word) {
    if (replicator != NULL) {
        size_t size = strlen(replicator->calls);
        snprintf(replicator->calls + size, sizeof replicator->calls - size, "%s ", word);
    }
}
void replicator_follow(struct replicator *replicator, bool is_failover) {
    noted_replicator_note(replicator, is_failover ? "shift" : "follow");
}
bool replicator_promote(struct replicator *replicator) {
    noted_replicator_note(replicator, "promote");
    return replicator == NULL || !replicator->is_slow;
}
void replicator_finish_promotion(struct replicator *replicator) {
    noted_replicator_note(replicator, "finish");
    replication_open(replicator->server);
}
void replicator_write_history(struct replicator *replicator) {
    noted_replicator_note(replicator, "history");
}
void replicator_leave(struct replicator *replicator, struct replica *replica) {
    CHECK(replicator == NULL || replica->port == 7001);
    noted_replicator_note(replicator, "leave");
}
void replicator_ask_acks(struct replicator *replicator) {
    noted_replicator_note(replicator, "ask");
}
bool replicator_ask_handover(struct replicator *replicator) {
    noted_replicator_note(replicator, "handover");
    return replicator != NULL;
}
void replicator_drop_link(struct replicator *replicator) {
    noted_replicator_note(replicator, "drop");
}
void replicator_print_source(struct replicator *replicator, struct buffer *out) {
    (void)replicator;
    (void)out;
}
void replicator_acknowledge(struct replicator *replicator, struct replica *replica, uint64_t acked,
                            uint64_t probe) {
    (void)replicator;
    (void)replica;
    (void)acked;
    (void)probe;
}
void replicator_acknowledge_bytes(struct replicator *replicator, struct replica *replica,
                                  uint64_t offset) {
    (void)replicator;
    (void)replica;
    (void)offset;
}
void replicator_sync(struct replicator *replicator, struct replica *replica,
                     const struct replication_wish *wish, struct reply *reply) {
    (void)replicator;
    (void)replica;
    (void)wish;
    reply_ok(reply);
}
void replicator_register(struct replicator *replicator, struct replica *replica,
                         const struct sync_registration *said, struct reply *reply) {
    (void)replicator;
    (void)replica;
    (void)said;
    reply_ok(reply);
}

#endif
