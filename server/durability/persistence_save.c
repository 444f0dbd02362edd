/* Saves: when one is due, beginning one, and waiting for one (SAVE, SHUTDOWN). See persistence.h. */
#include "server/durability/persistence_state.h"

#include "server/system/log.h"
#include "server/system/service.h"

/* ---- when ---- */

static bool persistence_save_has_grown(const struct persistence *persistence) {
    const struct settings *settings = persistence->settings;
    uint64_t base = persistence->base_size + persistence->journal_size_at_base;
    uint64_t size = persistence->base_size + persistence->journal.file_size_sum;
    uint64_t percentage = (uint64_t)settings->auto_aof_rewrite_percentage;
    if (!persistence_is_on(persistence) || percentage == 0 ||
        size < settings->auto_aof_rewrite_min_size) {
        return false;
    }
    return size > base && (double)(size - base) >= (double)base * (double)percentage / 100.0;
}

static bool persistence_save_is_at_point(const struct persistence *persistence) {
    const struct settings *settings = persistence->settings;
    uint64_t changes = persistence->state->change_count - persistence->changes_saved;
    int64_t elapsed_s = (persistence->clock->monotonic_ms - persistence->save_end_ms) / 1000;
    if (settings->appendonly) {
        return false;
    }
    for (uint32_t i = 0; i < settings->save_point_count; i++) {
        if (changes > 0 && changes >= (uint64_t)settings->save_points[i].changes &&
            elapsed_s >= settings->save_points[i].seconds) {
            return true;
        }
    }
    return false;
}

/* Has the clock jumped? The expiries on disk are then from before the jump, and after a reset the
 * floor on disk is too high. true: a snapshot is due, which corrects both. */
static bool persistence_save_has_jumped(const struct persistence *persistence) {
    bool is_kept = persistence_is_on(persistence) || persistence->settings->save_point_count > 0;
    return is_kept && persistence->clock->jump_count != persistence->jumps_saved;
}

bool persistence_save_is_due(const struct persistence *persistence) {
    return persistence_save_has_grown(persistence) || persistence_save_is_at_point(persistence) ||
           persistence_save_has_jumped(persistence);
}

/* ---- beginning ---- */

bool persistence_open_store(struct persistence *persistence, const struct settings *settings,
                            char *error) {
    return persistence_has_store(persistence) ||
           store_open(&persistence->store, settings->dir, settings->appenddirname, STORE_CLAIM,
                      error) == STORE_OK;
}

const char *persistence_prepare_settings(struct persistence *persistence,
                                         const struct settings *wanted, char *reason) {
    char error[PERSISTENCE_ERROR_MAX];
    if (!wanted->appendonly || persistence_has_store(persistence)) {
        return NULL;
    }
    if (!persistence_open_store(persistence, wanted, error)) {
        snprintf(reason, SETTING_ERROR_MAX, "%.*s", SETTING_ERROR_MAX - 1, error);
        return "appendonly";
    }
    persistence->is_reserved = true;
    return NULL;
}

void persistence_commit_settings(struct persistence *persistence) {
    persistence->is_reserved = false;
}

void persistence_abandon_settings(struct persistence *persistence) {
    if (persistence->is_reserved) {
        store_abandon(&persistence->store);
        persistence->is_reserved = false;
    }
}

/* false: no memory, or the reader of a stream is gone. */
static bool persistence_save_open_snapshot(struct persistence *persistence) {
    struct stream *stream = &persistence->stream;
    int64_t now_us = persistence->clock->now_us;
    if (!persistence->is_streaming) {
        return snapshot_begin(&persistence->snapshot, now_us);
    }
    if (stream->state != STREAM_OPEN ||
        !snapshot_begin_stream(&persistence->snapshot, stream->writer, now_us)) {
        return false;
    }
    stream->writer = -1;
    return true;
}

void persistence_follow_keep(struct store *store, const struct settings *settings) {
    enum { DAY_SECONDS = 24 * 60 * 60 };
    store->keep = (struct store_keep){.seconds = settings->appendonly_keep_days * DAY_SECONDS,
                                      .size_max = settings->appendonly_keep_size};
}

void persistence_begin_walk(struct persistence *persistence) {
    if (!persistence_save_open_snapshot(persistence)) {
        log_write(LOG_WARNING, "snapshot: cannot begin: out of memory");
        persistence_move(persistence, &persistence->saving, SAVE_FAILED);
        return;
    }
    persistence_move(persistence, &persistence->saving, WALK_BEGUN);
    persistence_set_listening(persistence);
}

enum persistence_status persistence_begin_snapshot(struct persistence *persistence, char *error) {
    persistence_settle(persistence);
    if (persistence->journaling == STOPPED) {
        snprintf(error, PERSISTENCE_ERROR_MAX, "%s", persistence->error);
        return PERSISTENCE_FAILED;
    }
    if (persistence_is_saving(persistence)) {
        return PERSISTENCE_BUSY;
    }
    persistence->attempt_ms = persistence->clock->monotonic_ms;
    persistence->save_begin_ms = persistence->clock->monotonic_ms;
    if (!persistence_open_store(persistence, persistence->settings, error)) {
        log_write(LOG_WARNING, "snapshot: %s", error);
        persistence_move(persistence, &persistence->saving, SAVE_FAILED);
        persistence_settle(persistence);
        return PERSISTENCE_FAILED;
    }
    persistence_follow_keep(&persistence->store, persistence->settings);
    persistence_begin_saving(persistence,
                             persistence_is_on(persistence) ? SAVE_ASKED_WITH_JOURNAL : SAVE_ASKED);
    return PERSISTENCE_OK;
}

/* ---- at once ---- */

void persistence_finish_adoption(struct persistence *persistence) {
    struct received *received = &persistence->received;
    if (!received->worker.is_busy) {
        received_adopt(received, received->has_journal);
        worker_wait(&received->worker);
        received->is_given_up = true;
    }
    worker_wait(&received->worker);
}

/* End this tick's group within the tick. false: with is_saved, that the keys are of no whole group. */
static bool persistence_save_close_tick_group(struct persistence *persistence, bool is_saved) {
    bool is_closed = persistence->close_group == NULL ||
                     persistence->close_group(persistence->close_context, is_saved);
    journal_end_group(&persistence->journal, persistence->clock->now_us,
                      persistence_policy_of(persistence));
    return is_closed && !(is_saved && persistence->state->is_walk_held);
}

/* Continue the snapshot until it is over. The keys are those of a whole group. */
static void persistence_save_finish_snapshot(struct persistence *persistence) {
    struct journal *journal = &persistence->journal;
    CHECK(!persistence->state->is_walk_held);
    persistence->is_blocking = true;
    while (persistence_is_saving(persistence) && persistence->journaling != STOPPED) {
        if (persistence->saving == ROTATING) {
            worker_wait(&journal->syncer);
            worker_wait(&journal->writer);
            if (journal->rotation == JOURNAL_ROTATION_ASKED && journal->is_stalled) {
                (void)!journal_flush(journal, false);
                if (journal->is_stalled) {
                    journal_cancel_rotation(journal);
                }
            }
        } else if (persistence->saving == ADOPTING) {
            persistence_finish_adoption(persistence);
        } else if (persistence->saving == DUE) {
            persistence_begin_walk(persistence);
        } else {
            (void)!snapshot_step(&persistence->snapshot, UINT64_MAX, journal->group,
                                 persistence->clock->now_us);
            worker_wait(&persistence->snapshot.worker);
        }
        persistence_settle(persistence);
        service_ping(); /* the loop stands still, but not for a fault */
    }
    persistence->is_blocking = false;
}

enum persistence_status persistence_save(struct persistence *persistence, char *error) {
    uint64_t count_before = persistence->save_count;
    if (persistence->journal.is_stalled || !persistence_save_close_tick_group(persistence, true)) {
        snprintf(error, PERSISTENCE_ERROR_MAX, "%s",
                 persistence->journal.is_stalled
                     ? "the disk is full: nothing can be saved"
                     : "a change of the master is applied in part, and the rest cannot be applied "
                       "now: try again");
        return PERSISTENCE_FAILED;
    }
    enum persistence_status status = persistence_begin_snapshot(persistence, error);
    if (status != PERSISTENCE_OK) {
        return status;
    }
    persistence_save_finish_snapshot(persistence);
    if (persistence->save_count > count_before) {
        return PERSISTENCE_OK;
    }
    snprintf(error, PERSISTENCE_ERROR_MAX, "the snapshot could not be written: see the log");
    return PERSISTENCE_FAILED;
}

enum persistence_status persistence_prepare_end(struct persistence *persistence,
                                                enum persistence_ending ending, char *error) {
    struct journal *journal = &persistence->journal;
    if (persistence->state->is_loading) {
        return PERSISTENCE_OK;
    }
    persistence_abort_stream(persistence);
    persistence_abandon_receive(persistence);
    (void)persistence_save_close_tick_group(persistence, false);
    bool is_changed = persistence->state->change_count != persistence->changes_saved;
    bool is_asked = ending == PERSISTENCE_END_SAVE ||
                    (ending == PERSISTENCE_END_AS_SET && !persistence_is_on(persistence) &&
                     is_changed && persistence->settings->save_point_count > 0);
    /* The journal that replies wait for has no file before its base is on disk. */
    bool lacks_base = persistence_holds_answers(persistence) && !persistence_is_on(persistence);
    if ((is_asked || lacks_base) && persistence_is_saving(persistence) &&
        persistence_save_close_tick_group(persistence, true)) {
        persistence_save_finish_snapshot(
            persistence); /* it may have begun before the last change */
        lacks_base = !persistence_is_on(persistence);
    }
    if (is_asked || lacks_base) {
        enum persistence_status status = persistence_save(persistence, error);
        if (status != PERSISTENCE_OK) {
            return status;
        }
    }
    persistence->is_blocking = true;
    bool is_flushed = !persistence_holds_answers(persistence) || journal_flush(journal, true);
    persistence->is_blocking = false;
    persistence_settle(persistence);
    if (!is_flushed) {
        snprintf(error, PERSISTENCE_ERROR_MAX, "the journal could not be written: see the log");
        return PERSISTENCE_FAILED;
    }
    return PERSISTENCE_OK;
}
