/* See shutdown.h. */
#include "server/dispatch/shutdown.h"

#include "server/dispatch/settings_file.h"
#include "server/replication/replication.h"
#include "server/system/log.h"

/* true: saved, or there is no persistence. */
static bool shutdown_prepare_persistence(struct server *server, enum persistence_ending ending,
                                         const char *advice) {
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

/* ---- retiring ---- */

static const char failed_text[] = "ERR Errors trying to SHUTDOWN. Check logs.";

/* Save while the server can still go on. true: it ends. While boards are loading there is nothing to save. */
static bool shutdown_prepare(struct server *server) {
    replication_finish_promotion(server); /* nobody else may have what was received */
    if (server->durability.is_loading) {
        server->ending.how = PERSISTENCE_END_NOSAVE;
    }
    server->ending.is_asked = shutdown_prepare_persistence(
                                  server, (enum persistence_ending)server->ending.how,
                                  "the server goes on; make room, or end it with SHUTDOWN FORCE") ||
                              server->ending.retiring.is_forced;
    return server->ending.is_asked;
}

bool shutdown_begin(struct server *server, const struct shutdown_options *options) {
    if (server->ending.retiring.is_begun) {
        server->ending.retiring.is_over |= options->is_now;
        server->ending.retiring.is_forced |= options->is_force;
        return true;
    }
    server->ending.how = options->ending;
    server->ending.is_now = options->is_now;
    server->ending.retiring.is_forced = options->is_force;
    if (server->settings.shutdown_drain_timeout_s > 0 && !options->is_now &&
        !server->durability.is_loading) {
        int64_t seconds = server->settings.shutdown_drain_timeout_s;
        server->ending.retiring.is_begun = true;
        server->ending.retiring.is_over = false;
        server->ending.retiring.from_id = server->sessions.next_id;
        server->ending.retiring.until_ms = server->clock.monotonic_ms + seconds * 1000;
        log_write(LOG_NOTICE,
                  "draining: PING of new connections is an error, for balancers; all else works "
                  "seconds=%lld clients=%u",
                  (long long)seconds, server->sessions.count);
        return true;
    }
    return shutdown_prepare(server);
}

/* An error for all who wait for the end: it does not come. */
static void shutdown_tell_who_asked(struct server *server) {
    struct session *session = server->sessions.first;
    for (; session != NULL; session = session->next) {
        if (!session->awaits_end) {
            continue;
        }
        session->awaits_end = false;
        struct buffer *output = server_output(server, session);
        if (output != NULL && session->reply_mode == SESSION_REPLY_ON) {
            struct reply reply;
            reply_init(&reply, output, session->protocol);
            reply_error(&reply, failed_text);
        }
    }
}

void shutdown_end_retiring(struct server *server) {
    if (!shutdown_prepare(server)) {
        server->ending.retiring.is_begun = false;
        shutdown_tell_who_asked(server);
    }
}

bool shutdown_abort(struct server *server) {
    if (!server->ending.retiring.is_begun || server->ending.is_asked) {
        return false;
    }
    server->ending.retiring.is_begun = false;
    log_write(LOG_NOTICE, "shutdown aborted");
    shutdown_tell_who_asked(server);
    return true;
}

/* ---- the end ---- */

void shutdown_finish(struct server *server) {
    replication_finish_promotion(server);
    enum persistence_ending ending = (enum persistence_ending)server->ending.how;
    /* SHUTDOWN SAVE has already saved. Save again only if something changed during the drain. */
    struct persistence_info info = {.changes = 0};
    if (ending == PERSISTENCE_END_SAVE && server->persistence != NULL) {
        persistence_describe(server->persistence, &info);
    }
    if (ending == PERSISTENCE_END_SAVE && info.changes == 0) {
        ending = PERSISTENCE_END_NOSAVE;
    }
    server->ending.has_failed =
        !shutdown_prepare_persistence(server, ending, "what changed last may be lost");
    settings_file_end(server);
}
