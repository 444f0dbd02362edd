/* What this node has promised, on disk, and what it has. See quorum.h. */
#include "server/replication/quorum_parts.h"

#include <string.h>

#include "server/durability/persistence.h"
#include "server/replication/history.h"
#include "server/system/digest.h"
#include "server/system/log.h"

enum { SAVE_RETRY_MS = 1000 }; /* after the file of promises could not be written */

/* ---- the file of promises ---- */

static bool quorum_promise_is_same(const struct promise *a, const struct promise *b) {
    return a->node == b->node && term_compare(&a->promised, &b->promised) == 0 &&
           a->left == b->left && a->group == b->group && a->lease_ms == b->lease_ms &&
           memcmp(a->boot, b->boot, sizeof a->boot) == 0;
}

bool quorum_is_saved(const struct quorum *quorum) {
    return quorum_promise_is_same(&quorum->wanted, &quorum->saved);
}

static void quorum_promise_run_save(void *context) {
    struct quorum *quorum = context;
    quorum->is_save_failed = !promise_save(quorum->directory, &quorum->saving);
}

void quorum_on_saved(void *context) {
    struct quorum *quorum = context;
    if (quorum->is_save_failed) {
        quorum->retry_ms = now_ms(quorum) + SAVE_RETRY_MS;
        log_write(LOG_WARNING, "quorum: %s/leaderboard.promise cannot be written: tried again",
                  quorum->directory);
    } else {
        quorum->saved = quorum->saving;
        sync_of(quorum)->promised = quorum->saved.promised;
    }
    quorum->host.wake(quorum->host.context);
}

void quorum_save(struct quorum *quorum) {
    if (!quorum->worker.is_busy && !quorum_is_saved(quorum) && now_ms(quorum) >= quorum->retry_ms) {
        quorum->saving = quorum->wanted;
        worker_start(&quorum->worker, quorum_promise_run_save);
    }
}

void quorum_promise(struct quorum *quorum, const struct term *term) {
    if (term_compare(term, &quorum->wanted.promised) > 0) {
        quorum->wanted.promised = *term;
        quorum_save(quorum);
    }
}

bool quorum_has_promised(const struct quorum *quorum, const struct term *term) {
    return term_compare(&quorum->saved.promised, term) == 0 &&
           term_compare(&quorum->wanted.promised, term) == 0;
}

uint64_t quorum_random_number(void) {
    char digits[TERM_NODE_SIZE];
    uint64_t number = 0;
    digest_random(digits, sizeof digits);
    for (size_t i = 0; i < sizeof digits; i++) {
        number =
            number << 4 | (uint64_t)(digits[i] <= '9' ? digits[i] - '0' : digits[i] - 'a' + 10);
    }
    return number;
}

/* ---- what it has ---- */

uint64_t quorum_last_group(const struct quorum *quorum) {
    return persistence_last_group(quorum->server->persistence);
}

uint64_t quorum_kept_group(const struct quorum *quorum) {
    const struct persistence *persistence = quorum->server->persistence;
    uint64_t group = replication_of(quorum)->group;
    uint64_t kept = settings_of(quorum)->sync_replicas_fsync
                        ? persistence_synced_group(persistence)
                        : persistence_written_group(persistence);
    return kept < group ? kept : group;
}

struct term_position quorum_position(const struct quorum *quorum) {
    struct history history;
    struct term_position position = {.term = TERM_NONE, .group = quorum_last_group(quorum)};
    if (history_read(quorum->server->registry, &history)) {
        memcpy(position.term.text, history.id, sizeof history.id);
    }
    return position;
}

void quorum_set_forgotten(struct quorum *quorum, bool has_forgotten) {
    static const char no_boot[] = "------------------------------------";
    _Static_assert(sizeof no_boot == PROMISE_BOOT_SIZE + 1, "as long as a boot");
    bool is_durable = settings_of(quorum)->sync_replicas_fsync && !has_forgotten;
    sync_of(quorum)->has_forgotten = has_forgotten;
    replication_of(quorum)->is_priority_zero = has_forgotten;
    quorum->wanted.left = is_durable ? PROMISE_LEFT_DURABLE : PROMISE_LEFT_CRASHED;
    quorum->wanted.group = 0;
    /* Who has forgotten has, whatever happens, until it is filled. */
    memcpy(quorum->wanted.boot, has_forgotten ? no_boot : quorum->boot, sizeof no_boot);
}

void quorum_describe(const struct quorum *quorum, struct sync_presented *said) {
    *said = (struct sync_presented){
        .node = quorum->saved.node,
        .promised = quorum->saved.promised,
        .position = quorum_position(quorum),
        .has_forgotten = sync_of(quorum)->has_forgotten,
    };
}
