/* See commit_wait.h. */
#include "server/dispatch/commit_wait.h"

#include "server/durability/persistence.h"

void commit_wait_note_change(const struct server *server, struct session *session) {
    session->changed_group = persistence_last_group(server->persistence);
    session->changed_epoch = server->replication.epoch;
}

bool commit_wait_holds_readers(const struct server *server) {
    return server->persistence != NULL && (persistence_holds_readers(server->persistence) ||
                                           sync_holds_answers(&server->replication.sync));
}

uint64_t commit_wait_free_group(struct server *server) {
    uint64_t safe_group = persistence_safe_group(server->persistence);
    uint64_t complete_group = persistence_complete_group(server->persistence);
    if (sync_holds_answers(&server->replication.sync)) {
        return 0;
    }
    if (server->replication.replicas == NULL) {
        return safe_group;
    }
    server->owes_release = true;
    return safe_group < complete_group ? safe_group : complete_group;
}

uint64_t commit_wait_open_group(const struct server *server) {
    return replication_sync_safe_group(&server->replication.sync,
                                       persistence_safe_group(server->persistence),
                                       clock_read_ms(&server->clock));
}
