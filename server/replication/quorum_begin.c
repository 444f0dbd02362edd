/* The start and the end. See quorum.h. */
#include "server/replication/quorum_parts.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/system/log.h"

struct quorum *quorum_create(struct server *server, uv_loop_t *loop, const struct quorum_host *host,
                             char *error) {
    char path[PATH_MAX], absolute[PATH_MAX];
    const struct settings *settings = &server->settings;
    struct quorum *quorum = memory_allocate_zeroed(sizeof *quorum);
    snprintf(path, sizeof path, "%s/%s", settings->dir, settings->appenddirname);
    snprintf(error, DISK_ERROR_MAX, "out of memory");
    if (quorum == NULL) {
        return NULL;
    }
    quorum->server = server;
    quorum->host = *host;
    if (realpath(path, absolute) == NULL) {
        snprintf(error, DISK_ERROR_MAX, "%.900s: %s", path, strerror(errno));
        memory_free(quorum);
        return NULL;
    }
    quorum->directory = memory_allocate(strlen(absolute) + 1);
    if (quorum->directory != NULL) {
        memcpy(quorum->directory, absolute, strlen(absolute) + 1);
    }
    quorum->timer.data = quorum;
    quorum->timer_ms = INT64_MAX;
    quorum->has_worker =
        quorum->directory != NULL && uv_timer_init(loop, &quorum->timer) == 0 &&
        worker_init(&quorum->worker, loop, WORKER_AS_THE_LOOP, quorum_on_saved, quorum);
    if (!quorum->has_worker) {
        memory_free(quorum->directory);
        memory_free(quorum);
        return NULL;
    }
    uv_unref((uv_handle_t *)&quorum->timer);
    return quorum;
}

/* What it has may be less than what it has acknowledged: as far as the file says how it ended. */
static bool quorum_begin_has_lost(const struct quorum *quorum) {
    switch (quorum->saved.left) {
    case PROMISE_LEFT_CLEAN:
        return quorum->saved.group != quorum_last_group(quorum);
    case PROMISE_LEFT_DURABLE:
        return false;
    case PROMISE_LEFT_CRASHED:
        return strcmp(quorum->saved.boot, quorum->boot) != 0;
    case PROMISE_LEFTS:
        break;
    }
    return true;
}

bool quorum_begin(struct quorum *quorum, char *error) {
    struct sync *sync = sync_of(quorum);
    const struct settings *settings = settings_of(quorum);
    const struct term none = TERM_NONE;
    struct term_position position = quorum_position(quorum);
    promise_read_boot(quorum->boot);
    enum promise_status status = promise_load(quorum->directory, &quorum->saved, error);
    bool has_forgotten = position.group == 0;
    if (status == PROMISE_DAMAGED || status == PROMISE_FAILED) {
        return false;
    }
    if (status == PROMISE_MISSING) {
        quorum->saved = (struct promise){.promised = none};
        while (quorum->saved.node == 0) {
            quorum->saved.node = quorum_random_number();
        }
    } else {
        has_forgotten = has_forgotten || quorum_begin_has_lost(quorum);
    }
    quorum->wanted = quorum->saved;
    sync->node = quorum->saved.node;
    sync->promised = quorum->saved.promised;
    sync->promises_needed = election_promises_needed((uint32_t)settings->replication_nodes,
                                                     (uint32_t)settings->sync_replicas) -
                            1;
    if (quorum->saved.lease_ms > 0) { /* a master may still lean on it */
        quorum->held_until_ms = election_hold_end(now_ms(quorum), quorum->saved.lease_ms);
    }
    quorum_set_forgotten(quorum, has_forgotten);
    if (!promise_save(quorum->directory, &quorum->wanted)) {
        snprintf(error, DISK_ERROR_MAX, "%.900s/leaderboard.promise cannot be written: %s",
                 quorum->directory, strerror(errno));
        return false;
    }
    quorum->saved = quorum->wanted;
    log_write(LOG_NOTICE, "quorum: node=%016" PRIx64 " promised=%s group=%" PRIu64 "%s", sync->node,
              sync->promised.text, position.group, has_forgotten ? " may-have-forgotten=yes" : "");
    if (replication_is_replica(replication_of(quorum))) {
        quorum_move(quorum, QUORUM_BEGUN_AS_REPLICA);
    } else {
        quorum_move(quorum, QUORUM_BEGUN_AS_MASTER);
        quorum_take_term(quorum, &none);
    }
    return true;
}

void quorum_stop(struct quorum *quorum) {
    if (quorum != NULL && quorum->has_worker) {
        uv_close((uv_handle_t *)&quorum->timer, NULL);
        worker_deinit(&quorum->worker);
        quorum->has_worker = false;
    }
}

void quorum_end_cleanly(struct quorum *quorum, uint64_t group) {
    if (quorum == NULL || sync_of(quorum)->state == SYNC_OFF || sync_of(quorum)->has_forgotten) {
        return;
    }
    quorum->wanted.left = PROMISE_LEFT_CLEAN;
    quorum->wanted.group = group;
    if (!promise_save(quorum->directory, &quorum->wanted)) {
        log_write(LOG_WARNING,
                  "quorum: %s/leaderboard.promise cannot be written: the next start is as "
                  "after a crash",
                  quorum->directory);
    }
}

void quorum_destroy(struct quorum *quorum) {
    if (quorum != NULL) {
        memory_free(quorum->directory);
        memory_free(quorum);
    }
}
