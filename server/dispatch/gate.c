/* See gate.h. */
#include "server/dispatch/gate.h"

#include "server/durability/persistence.h"

void gate_note_change(const struct server *server, struct session *session) {
    session->changed_group = persistence_last_group(server->persistence);
    session->changed_epoch = server->replication.epoch;
}

bool gate_holds_readers(const struct server *server) {
    return server->persistence != NULL && (persistence_holds_readers(server->persistence) ||
                                           sync_is_gating(&server->replication.sync));
}

uint64_t gate_free_group(const struct server *server) {
    return sync_is_gating(&server->replication.sync) ? 0
                                                     : persistence_safe_group(server->persistence);
}

uint64_t gate_open_group(const struct server *server) {
    return sync_safe_group(&server->replication.sync, persistence_safe_group(server->persistence),
                           clock_read_ms(&server->clock));
}
