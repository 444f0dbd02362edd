/* See shutdown.h. */
#include "server/dispatch/shutdown.h"

#include "server/system/log.h"

/* true: saved, or there is no persistence. */
static bool prepare(struct server *server, enum persistence_ending ending, const char *advice) {
    char error[PERSISTENCE_ERROR_MAX];
    if (server->persistence == NULL) {
        return true;
    }
    if (persistence_prepare_end(server->persistence, ending, error) == PERSISTENCE_OK) {
        return true;
    }
    log_write(LOG_WARNING, "shutdown: not everything is on disk error=\"%s\" advice=\"%s\"", error,
              advice);
    return false;
}

bool shutdown_prepare(struct server *server, enum persistence_ending ending) {
    if (server->durability.is_loading) {
        ending = PERSISTENCE_END_NOSAVE;
    }
    server->shutdown_ending = ending;
    return prepare(server, ending, "the server goes on; make room, or end it with SHUTDOWN FORCE");
}

/* SHUTDOWN SAVE has already saved. Save again only if something changed during the drain. */
static bool has_changed(const struct server *server) {
    struct persistence_info info;
    persistence_describe(server->persistence, &info);
    return info.changes > 0;
}

void shutdown_finish(struct server *server) {
    enum persistence_ending ending = (enum persistence_ending)server->shutdown_ending;
    if (ending == PERSISTENCE_END_SAVE && (server->persistence == NULL || !has_changed(server))) {
        ending = PERSISTENCE_END_NOSAVE;
    }
    server->is_end_failed = !prepare(server, ending, "what changed last may be lost");
}
