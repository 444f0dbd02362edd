/* Persistence. See persistence.h for an overview.
 *
 * It is two state machines, what the journal guarantees and how far a save is; `transitions` is the
 * table of both. Only this file decides: the journal and the snapshot report outcomes, which
 * persistence_settle asks for between two commands.
 *
 *     loading --> off <--> starting --> on --> broken <--> restarting --> on
 *
 *     idle [--> rotating] --> due --> walking --> ending --> idle
 *
 * A journal that was off or broken begins with a save: once the boards are walked, effects are
 * buffered (starting, restarting), and when the base is on disk they go to a new file (on). While
 * it is broken or restarting, writes are refused with -MISCONF.
 *
 * A snapshot that is streamed to a client goes the way of a save, from due to idle, and changes nothing
 * else: neither the journal nor the manifest nor what INFO says of saves.
 *
 * A save while the journal is on: the journal continues in a new file (rotating), then boards are
 * walked; when the base is complete, the manifest names it and the new file. */
#include "server/durability/persistence.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>

#include "server/durability/persistence_state.h"
#include "server/system/log.h"
#include "server/system/service.h"

enum {
#ifdef SERVER_TINY
    WALK_BUDGET_NS = 0,
#else
    WALK_BUDGET_NS = 200000,
#endif
    TICK_SIZE_MAX = 4 * 1024 * 1024, /* of effects; a running command may exceed it */
};

/* Does the journal wait for its file? */
static bool persistence_is_awaiting_base(const struct persistence *persistence) {
    return persistence->journaling == STARTING || persistence->journaling == RESTARTING;
}

static bool persistence_is_saving(const struct persistence *persistence) {
    return persistence->saving != IDLE;
}

/* Do replies wait for the journal? */
static bool persistence_holds_answers(const struct persistence *persistence) {
    return persistence->journaling == ON || persistence->journaling == BROKEN ||
           persistence->journaling == RESTARTING || persistence->journaling == STOPPED;
}

/* ---- transitions ---- */

static void persistence_begin_journal(struct persistence *persistence) {
    journal_begin(&persistence->journal);
}

static void persistence_end_journal(struct persistence *persistence) {
    journal_end(&persistence->journal);
}

static void persistence_take_new_file(struct persistence *persistence) {
    struct snapshot *snapshot = &persistence->snapshot;
    journal_note_base(&persistence->journal, snapshot->footer.sequence);
    journal_take_file(&persistence->journal, &snapshot->journal);
    snapshot->journal.fd = -1;
    log_write(LOG_NOTICE, "journal: writing behind the snapshot group=%" PRIu64,
              snapshot->footer.sequence);
}

static void persistence_rotate_journal(struct persistence *persistence) {
    journal_rotate(&persistence->journal);
}

static void persistence_note_begin(struct persistence *persistence) {
    if (persistence->is_streaming) {
        return;
    }
    persistence->changes_before = persistence->state->change_count;
    persistence->jumps_before = persistence->clock->jump_count;
}

static void persistence_begin_end(struct persistence *persistence) {
    enum snapshot_journal journal_after = SNAPSHOT_NO_JOURNAL;
    if (persistence->is_streaming) {
        /* the journal goes on as it is */
    } else if (persistence->journaling == ON) {
        journal_after = SNAPSHOT_KEEPS_JOURNAL;
    } else if (persistence->settings->appendonly || persistence->journaling == BROKEN) {
        journal_after = SNAPSHOT_MAKES_JOURNAL;
        persistence_move(persistence, &persistence->journaling, JOURNAL_WANTED);
    }
    snapshot_finish(&persistence->snapshot, journal_after);
}

static void persistence_note_failed(struct persistence *persistence) {
    if (persistence->is_streaming) {
        persistence->is_streaming = false;
        return;
    }
    persistence->is_save_ok = false;
    persistence->save_seconds =
        (persistence->clock->monotonic_ms - persistence->save_begin_ms) / 1000;
    if (persistence_is_awaiting_base(persistence)) {
        persistence_move(persistence, &persistence->journaling, BASE_FAILED);
    }
}

void persistence_note_files(struct persistence *persistence) {
    persistence->files = persistence->store.state;
}

static void persistence_print_snapshot(const char *what, const struct snapshot *snapshot) {
    log_write(LOG_NOTICE,
              "%s boards=%" PRIu64 " members=%" PRIu64 " bytes=%" PRIu64 " group=%" PRIu64
              " seconds=%.2f",
              what, snapshot->footer.board_count, snapshot->footer.member_count,
              snapshot->file_size, snapshot->footer.sequence,
              persistence_seconds_since(snapshot->begin_us));
}

static void persistence_note_saved(struct persistence *persistence) {
    struct snapshot *snapshot = &persistence->snapshot;
    if (persistence->is_streaming) {
        persistence->is_streaming = false;
        persistence->is_streamed = true;
        persistence_print_snapshot("backup: sent", snapshot);
        return;
    }
    if (snapshot->journal_after == SNAPSHOT_KEEPS_JOURNAL) {
        persistence->journal.file_size_sum -= persistence->journal.rotated_size;
    } else if (persistence_is_awaiting_base(persistence)) {
        persistence_move(persistence, &persistence->journaling, BASE_DONE);
    } else {
        journal_file_close(&snapshot->journal); /* the journal has failed meanwhile, if any */
    }
    persistence->is_save_ok = true;
    persistence->save_count++;
    persistence->changes_saved = persistence->changes_before;
    persistence->jumps_saved = persistence->jumps_before;
    persistence->save_end_s = persistence->clock->now_ms / 1000;
    persistence->save_end_ms = persistence->clock->monotonic_ms;
    persistence->save_seconds = (persistence->save_end_ms - persistence->save_begin_ms) / 1000;
    persistence->base_size = snapshot->file_size;
    persistence->journal_size_at_base = persistence->journal.file_size_sum;
    persistence_print_snapshot("snapshot: on disk", snapshot);
}

/* What was received has replaced the files; now it replaces the keys, and the journal goes on behind it. */
static void persistence_take_staged(struct persistence *persistence) {
    struct staging *staging = &persistence->staging;
    struct journal *journal = &persistence->journal;
    bool was_off = persistence->journaling == OFF;
    if (staging->has_journal || !was_off) {
        persistence_move(persistence, &persistence->journaling, FILES_REPLACED);
    }
    journal_go_to(journal, staging->group);
    if (staging->has_journal) {
        journal->policy_next = persistence_policy_of(persistence);
        journal_take_file(journal, &staging->journal);
        staging->journal.fd = -1;
        journal->rotated_size = 0;
    }
    registry_exchange(persistence->registry, staging->registry);
    /* Its stamps go up to this. The server may give stamps of its own before its master tells it the time. */
    clock_raise(persistence->clock, (int64_t)staging->time_us);
    persistence->changes_saved = persistence->state->change_count;
    persistence->jumps_saved = persistence->clock->jump_count;
    persistence->base_size = staging->size;
    persistence->journal_size_at_base = journal->file_size_sum;
    persistence->is_save_ok = true;
    staging->state = STAGING_ADOPTED;
}

static void persistence_drop_staged(struct persistence *persistence) {
    persistence->staging.state = STAGING_FAILED;
}

struct transition {
    enum state from;
    enum event event;
    enum state to;
    void (*act)(struct persistence *persistence); /* NULL: nothing to do */
    const char *text;
};
#define ROW(from, event, to, act)                                                                  \
    { from, event, to, act, #from " " #event " " #to }

/* Both machines; no other event can occur in a state. */
static const struct transition transitions[] = {
    ROW(LOADING, LOADED, OFF, NULL),
    ROW(LOADING, LOADED_JOURNAL, ON, NULL),
    ROW(LOADING, FATAL, STOPPED, NULL),
    ROW(OFF, JOURNAL_WANTED, STARTING, persistence_begin_journal),
    ROW(OFF, FILES_REPLACED, ON, persistence_end_journal),
    ROW(STARTING, BASE_DONE, ON, persistence_take_new_file),
    ROW(STARTING, BASE_FAILED, OFF, persistence_end_journal),
    ROW(STARTING, JOURNAL_GONE, OFF, persistence_end_journal),
    ROW(ON, FILES_REPLACED, ON, persistence_end_journal),
    ROW(ON, JOURNAL_UNWANTED, OFF, persistence_end_journal),
    ROW(ON, JOURNAL_GONE, BROKEN, persistence_end_journal),
    ROW(ON, FATAL, STOPPED, NULL),
    ROW(BROKEN, FILES_REPLACED, ON, persistence_end_journal),
    ROW(BROKEN, JOURNAL_UNWANTED, OFF, NULL),
    ROW(BROKEN, JOURNAL_WANTED, RESTARTING, persistence_begin_journal),
    ROW(RESTARTING, BASE_DONE, ON, persistence_take_new_file),
    ROW(RESTARTING, BASE_FAILED, BROKEN, persistence_end_journal),
    ROW(RESTARTING, JOURNAL_GONE, BROKEN, persistence_end_journal),

    ROW(IDLE, SAVE_ASKED, DUE, NULL),
    ROW(IDLE, SAVE_ASKED_WITH_JOURNAL, ROTATING, persistence_rotate_journal),
    ROW(IDLE, SAVE_FAILED, IDLE, persistence_note_failed), /* there is no directory for it */
    ROW(ROTATING, ROTATED, DUE, NULL),
    ROW(ROTATING, SAVE_FAILED, IDLE, persistence_note_failed),
    ROW(DUE, WALK_BEGUN, WALKING, persistence_note_begin),
    ROW(DUE, SAVE_FAILED, IDLE, persistence_note_failed),
    ROW(WALKING, WALKED, ENDING, persistence_begin_end),
    ROW(WALKING, SAVE_FAILED, IDLE, persistence_note_failed),
    ROW(ENDING, SAVED, IDLE, persistence_note_saved),
    ROW(ENDING, SAVE_FAILED, IDLE, persistence_note_failed),
    ROW(IDLE, ADOPTION_ASKED, ADOPTING, NULL),
    ROW(ADOPTING, ADOPTED, IDLE, persistence_take_staged),
    ROW(ADOPTING, ADOPTION_FAILED, IDLE, persistence_drop_staged),
};
enum { TRANSITIONS = sizeof transitions / sizeof *transitions };

const char *persistence_transition(uint32_t index) {
    return index < TRANSITIONS ? transitions[index].text : NULL;
}

void persistence_move(struct persistence *persistence, enum state *machine, enum event event) {
    const struct transition *row = transitions;
    while (row->from != *machine || row->event != event) {
        row++;
        CHECK(row < transitions + TRANSITIONS);
    }
    log_write(LOG_DEBUG, "persistence: %s", row->text);
    *machine = row->to;
    persistence->has_news = true;
    if (row->act != NULL) {
        row->act(persistence);
    }
}

void persistence_begin_saving(struct persistence *persistence, enum event event) {
    persistence->had_manifest = persistence->store.has_manifest;
    persistence_move(persistence, &persistence->saving, event);
}

void persistence_stop_at_once(struct persistence *persistence, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(persistence->error, sizeof persistence->error, format, arguments);
    va_end(arguments);
    persistence_move(persistence, &persistence->journaling, FATAL);
}

const char *persistence_fatal_error(const struct persistence *persistence) {
    return persistence->journaling == STOPPED ? persistence->error : NULL;
}

/* ---- passing effects on ---- */

static const char *persistence_find_refusal(struct persistence *persistence);
static void persistence_settle(struct persistence *persistence);

/* Within a command: wait until the buffers have room for more effects. A journal that waits for its
 * file gets it when the snapshot before it is complete. */
static void persistence_make_room_for_effects(struct persistence *persistence) {
    struct journal *journal = &persistence->journal;
    bool was_blocking = persistence->is_blocking;
    persistence->is_blocking = true;
    while (journal->state == JOURNAL_WAITS && persistence->saving == ENDING) {
        worker_wait(&persistence->snapshot.worker);
        persistence_settle(persistence);
    }
    if (journal->state == JOURNAL_WRITES) {
        journal_make_room(journal);
    }
    persistence->is_blocking = was_blocking;
}

void persistence_make_room(struct persistence *persistence) {
    if (journal_is_full(&persistence->journal)) {
        persistence_make_room_for_effects(persistence);
    }
}

static void persistence_add_one_effect(struct persistence *persistence,
                                       const struct effect *effect) {
    struct journal *journal = &persistence->journal;
    if (journal_gathers(journal) && !persistence->is_applying) {
        if (journal_is_full(journal)) {
            persistence_make_room_for_effects(persistence);
        }
        if (!journal_add_effect(journal, effect)) {
            persistence->state->write_refusal = persistence_find_refusal(persistence);
        }
    }
    if (persistence->saving == WALKING) {
        bool was_blocking = persistence->is_blocking;
        persistence->is_blocking = true;
        snapshot_add_effect(&persistence->snapshot, effect);
        persistence->is_blocking = was_blocking;
    }
}

static void persistence_on_effect(void *context, const struct effect *effect) {
    struct persistence *persistence = context;
    /* What is staged is one change, which its new name makes. */
    persistence->state->effect_count +=
        effect->database != REGISTRY_STAGING || effect->kind == EFFECT_RENAME;
    if (effect->kind != EFFECT_FILL) {
        persistence_add_one_effect(persistence, effect);
        return;
    }
    struct effect_fill fill;
    struct effect part;
    fill = (struct effect_fill){.whole = *effect};
    while (effect_fill_next(&fill, &part)) {
        persistence_add_one_effect(persistence, &part);
    }
}

bool persistence_is_behind(const struct persistence *persistence) {
    const struct journal *journal = &persistence->journal;
    /* A full disk may stay full: writes are refused, and reads need not wait. */
    return (journal_is_full(journal) && !journal->is_stalled) ||
           snapshot_is_full(&persistence->snapshot) ||
           journal_gathered_size(journal) - persistence->tick_begin_size >= TICK_SIZE_MAX;
}

bool persistence_is_full(const struct persistence *persistence) {
    return journal_is_full(&persistence->journal) || persistence_is_behind(persistence);
}

/* After a change of what effects are wanted for. */
static void persistence_set_listening(struct persistence *persistence) {
    bool is_recorded = journal_gathers(&persistence->journal) && !persistence->is_applying;
    bool is_needed = is_recorded || persistence->saving == WALKING;
    persistence->state->has_gap |= !is_recorded && !persistence->is_following;
    persistence->listener.receive = persistence_on_effect;
    persistence->listener.context = persistence;
    if (is_needed) {
        effect_listener_add(persistence->registry, &persistence->listener);
    } else {
        effect_listener_remove(persistence->registry, &persistence->listener);
    }
}

/* ---- refusing writes ---- */

/* Has a snapshot failed, so that writes are refused until one succeeds? */
static bool persistence_is_stopped_by_save(const struct persistence *persistence) {
    const struct settings *settings = persistence->settings;
    return !persistence->is_save_ok && settings->stop_writes_on_bgsave_error &&
           settings->save_point_count > 0 && !settings->appendonly;
}

/* The error for refused writes; NULL: they are allowed. */
static const char *persistence_find_refusal(struct persistence *persistence) {
    const struct journal *journal = &persistence->journal;
    /* Behind an exchange of keys there was no error: replies wait for the snapshot, nothing is refused. */
    bool is_renewed_after_error = persistence->journaling == RESTARTING && journal->error != 0;
    if (journal->state == JOURNAL_LOST || journal->is_stalled ||
        persistence->journaling == BROKEN || is_renewed_after_error) {
        const char *why = journal->error != 0 ? strerror(journal->error)
                                              : "a snapshot of the keys has to be written first";
        snprintf(persistence->refusal, sizeof persistence->refusal,
                 "MISCONF Errors writing to the AOF file: %s", why);
        return persistence->refusal;
    }
    if (persistence_is_stopped_by_save(persistence)) {
        return "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to "
               "persist to disk. Commands that may modify the data set are disabled, because this "
               "instance is configured to report errors during writes if RDB snapshotting fails "
               "(stop-writes-on-bgsave-error option). Please check the Redis logs for details "
               "about the RDB error.";
    }
    return NULL;
}

/* ---- deciding ---- */

/* With appendfsync always a reply means that the change is on disk, so changes that cannot be
 * stored must not be acknowledged. The same holds for effects that found no room, until a snapshot
 * contains them. */
static void persistence_handle_loss(struct persistence *persistence) {
    const struct journal *journal = &persistence->journal;
    bool is_disk = journal->loss == JOURNAL_LOSS_OF_DISK;
    if (is_disk && journal->policy == SETTING_APPENDFSYNC_ALWAYS) {
        persistence_stop_at_once(
            persistence,
            "journal: %s: %s. With appendfsync always no write can be confirmed: stopping "
            "at once. Everything answered is on disk; restart once the disk works",
            journal->what, strerror(journal->error));
        log_write(LOG_WARNING, "%s", persistence->error);
        return;
    }
    if (persistence->journaling == STARTING) {
        log_write(LOG_WARNING,
                  "journal: %s: %s. It stays off, and writes are not refused: it is started again "
                  "with another snapshot",
                  journal->what, strerror(journal->error));
    } else {
        log_write(LOG_WARNING,
                  "journal: %s: %s. Its file is no longer %s: writes are refused until a snapshot "
                  "and a new journal are on disk",
                  journal->what, strerror(journal->error), is_disk ? "trusted" : "continued");
    }
    persistence_move(persistence, &persistence->journaling, JOURNAL_GONE);
    if (persistence->saving == ROTATING) {
        persistence_move(persistence, &persistence->saving, SAVE_FAILED);
    }
    persistence->attempt_ms = persistence->clock->monotonic_ms - RETRY_MS; /* retry at once */
}

/* false: there was nothing to handle. */
static bool persistence_handle_journal(struct persistence *persistence) {
    switch (journal_take_outcome(&persistence->journal)) {
    case JOURNAL_NOTHING:
        return false;
    case JOURNAL_ROTATED:
        persistence_note_files(persistence);
        persistence_move(persistence, &persistence->saving, ROTATED);
        break;
    case JOURNAL_NOT_ROTATED:
        persistence_move(persistence, &persistence->saving, SAVE_FAILED);
        break;
    case JOURNAL_IS_LOST:
        persistence_handle_loss(persistence);
    }
    return true;
}

static bool persistence_handle_snapshot(struct persistence *persistence) {
    switch (snapshot_take_outcome(&persistence->snapshot)) {
    case SNAPSHOT_NOTHING:
        return false;
    case SNAPSHOT_IS_WALKED:
        persistence_move(persistence, &persistence->saving, WALKED);
        break;
    case SNAPSHOT_DONE:
        if (!persistence->is_streaming) {
            persistence_note_files(persistence);
        }
        persistence_move(persistence, &persistence->saving, SAVED);
        break;
    case SNAPSHOT_ABORTED:
        persistence_move(persistence, &persistence->saving, SAVE_FAILED);
    }
    return true;
}

static bool persistence_handle_staging(struct persistence *persistence) {
    const struct staging *staging = &persistence->staging;
    if (persistence->saving != ADOPTING || staging->worker.is_busy) {
        return false;
    }
    if (staging->is_kept && !staging->is_adopted && !staging->is_given_up) {
        return false; /* the manifest may name it: tried again each second */
    }
    persistence_note_files(persistence);
    persistence_move(persistence, &persistence->saving,
                     staging->is_adopted ? ADOPTED : ADOPTION_FAILED);
    return true;
}

/* Handle what the journal and the snapshot report, the only place that does. Not within a command, except where it
 * waits for a base. */
static void persistence_settle(struct persistence *persistence) {
    bool was_blocking = persistence->is_blocking;
    persistence->is_blocking = true;
    while (persistence->journaling != STOPPED &&
           (persistence_handle_journal(persistence) || persistence_handle_snapshot(persistence) ||
            persistence_handle_staging(persistence))) {}
    persistence->is_blocking = was_blocking;
    if (persistence->has_news) {
        persistence->state->write_refusal = persistence_find_refusal(persistence);
    }
}

void persistence_publish(struct persistence *persistence) {
    persistence_settle(persistence);
    if (persistence->has_news && !persistence->is_blocking) {
        persistence->has_news = false;
        persistence_set_listening(persistence);
        persistence->changed(persistence->context);
    }
}

void persistence_on_progress(void *context) {
    struct persistence *persistence = context;
    persistence->has_news = true;
    if (!persistence->is_blocking) {
        persistence_publish(persistence);
    }
}

/* ---- when a save is due ---- */

/* The journal has grown by its percentage, a save point is reached, or the clock has jumped: the expiries on disk
 * are then from before the jump, and after a reset the floor on disk is too high. */
static bool persistence_save_is_due(const struct persistence *persistence) {
    const struct settings *settings = persistence->settings;
    uint64_t base = persistence->base_size + persistence->journal_size_at_base;
    uint64_t size = persistence->base_size + persistence->journal.file_size_sum;
    uint64_t percentage = (uint64_t)settings->auto_aof_rewrite_percentage;
    if (persistence_is_on(persistence) && percentage > 0 && size > base &&
        size >= settings->auto_aof_rewrite_min_size &&
        (double)(size - base) >= (double)base * (double)percentage / 100.0) {
        return true;
    }
    uint64_t changes = persistence->state->change_count - persistence->changes_saved;
    int64_t elapsed_s = (persistence->clock->monotonic_ms - persistence->save_end_ms) / 1000;
    uint32_t points = settings->appendonly ? 0 : settings->save_point_count;
    for (uint32_t i = 0; i < points; i++) {
        if (changes > 0 && changes >= (uint64_t)settings->save_points[i].changes &&
            elapsed_s >= settings->save_points[i].seconds) {
            return true;
        }
    }
    return (persistence_is_on(persistence) || settings->save_point_count > 0) &&
           persistence->clock->jump_count != persistence->jumps_saved;
}

/* ---- beginning one ---- */

/* Open the store, if it is not. false: error says why. */
static bool persistence_open_store(struct persistence *persistence, const struct settings *settings,
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

/* Not while a thread has the store. */
static void persistence_follow_keep(struct store *store, const struct settings *settings) {
    enum { DAY_SECONDS = 24 * 60 * 60 };
    store->keep = (struct store_keep){.seconds = settings->appendonly_keep_days * DAY_SECONDS,
                                      .size_max = settings->appendonly_keep_size};
}

static void persistence_begin_walk(struct persistence *persistence) {
    struct stream *stream = &persistence->stream;
    int64_t now_us = persistence->clock->now_us;
    bool has_begun;
    if (!persistence->is_streaming) {
        has_begun = snapshot_begin(&persistence->snapshot, now_us);
    } else {
        has_begun = stream->state == STREAM_OPEN /* its reader is there */ &&
                    snapshot_begin_stream(&persistence->snapshot, stream->writer, now_us);
        stream->writer = has_begun ? -1 : stream->writer;
    }
    if (!has_begun) {
        log_write(LOG_WARNING, "snapshot: cannot begin: out of memory");
        persistence_move(persistence, &persistence->saving, SAVE_FAILED);
        return;
    }
    persistence_move(persistence, &persistence->saving, WALK_BEGUN);
    persistence_set_listening(persistence);
}

bool persistence_is_stopped(struct persistence *persistence, char *error) {
    persistence_settle(persistence);
    snprintf(error, PERSISTENCE_ERROR_MAX, "%s", persistence->error);
    return persistence->journaling == STOPPED;
}

enum persistence_status persistence_begin_snapshot(struct persistence *persistence, char *error) {
    if (persistence_is_stopped(persistence, error)) {
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

/* Before something that cannot wait for a stream's reader. */
static void persistence_abort_stream(struct persistence *persistence) {
    if (!persistence->is_streaming) {
        return;
    }
    persistence_stream_close(persistence);
    persistence->is_blocking = true;
    while (persistence->is_streaming) {
        if (persistence->saving == DUE) {
            persistence_begin_walk(persistence);
        }
        worker_wait(&persistence->snapshot.worker);
        persistence_settle(persistence);
    }
    persistence->is_blocking = false;
}

/* ---- a save at once (SAVE, SHUTDOWN) ---- */

/* The disk did not say what the manifest is: it is asked once more, and then nothing waits for it. */
static void persistence_finish_adoption(struct persistence *persistence) {
    struct staging *staging = &persistence->staging;
    if (!staging->worker.is_busy) {
        staging_adopt(staging, staging->has_journal);
        worker_wait(&staging->worker);
        staging->is_given_up = true;
    }
    worker_wait(&staging->worker);
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
    (void)persistence_abandon_receive(persistence);
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

/* ---- the tick ---- */

bool persistence_end_tick(struct persistence *persistence) {
    if (persistence->loading != NULL) {
        return false;
    }
    bool is_held = journal_end_tick(&persistence->journal, persistence->clock->now_us,
                                    persistence_policy_of(persistence));
    persistence->tick_begin_size = journal_gathered_size(&persistence->journal);
    persistence_publish(persistence);
    return is_held;
}

bool persistence_step(struct persistence *persistence) {
    if (persistence->journaling == STOPPED) {
        return false;
    }
    if (persistence->loading != NULL) {
        return persistence_load_step(persistence);
    }
    if (persistence->saving == DUE) {
        persistence_begin_walk(persistence);
    }
    bool has_more = persistence->saving == WALKING && !persistence->state->is_walk_held &&
                    snapshot_step(&persistence->snapshot, WALK_BUDGET_NS,
                                  persistence->journal.group, persistence->clock->now_us);
    persistence_publish(persistence);
    return has_more;
}

/* Apply CONFIG SET appendonly: turning on takes a snapshot, turning off is immediate. true: a
 * snapshot is due. */
static bool persistence_follow_appendonly(struct persistence *persistence) {
    struct journal *journal = &persistence->journal;
    bool is_wanted = persistence->settings->appendonly;
    if (is_wanted || (persistence_is_saving(persistence) && !persistence->is_streaming)) {
        return is_wanted && !persistence_is_on(persistence);
    }
    if (persistence->journaling == OFF) {
        return false;
    }
    persistence->is_blocking = true;
    bool is_kept = !persistence_is_on(persistence) || journal_flush(journal, true);
    persistence->is_blocking = false;
    persistence_settle(persistence);
    if (persistence->journaling == STOPPED || (!is_kept && persistence_is_on(persistence))) {
        return false; /* the disk is full: wait until acknowledged changes are on it */
    }
    persistence_move(persistence, &persistence->journaling, JOURNAL_UNWANTED);
    log_write(LOG_NOTICE, "journal: off, as set");
    return false;
}

void persistence_second(struct persistence *persistence) {
    char error[PERSISTENCE_ERROR_MAX];
    if (persistence->loading != NULL || persistence->journaling == STOPPED) {
        return;
    }
    /* After a long start, the first second may be over before the loop has turned once. */
    if (persistence->ended_loading != NULL && persistence->ended_loading->worker.is_closed) {
        memory_free(persistence->ended_loading);
        persistence->ended_loading = NULL;
    }
    journal_end_group(&persistence->journal, persistence->clock->now_us,
                      persistence_policy_of(persistence));
    journal_second(&persistence->journal);
    if (persistence->saving == ADOPTING && !persistence->staging.worker.is_busy) {
        staging_adopt(&persistence->staging, persistence->staging.has_journal);
    }
    persistence_settle(persistence);
    bool is_due = persistence_follow_appendonly(persistence);
    /* persistence_is_stopped_by_save: while writes are refused, no save point is ever reached. */
    is_due = is_due || persistence_save_is_due(persistence) ||
             persistence_is_stopped_by_save(persistence);
    persistence_publish(persistence);
    persistence->state->write_refusal = persistence_find_refusal(persistence);
    bool may_try = persistence->is_save_ok ||
                   persistence->clock->monotonic_ms - persistence->attempt_ms >= RETRY_MS;
    if (persistence->journaling == BROKEN && persistence->is_streaming) {
        persistence_abort_stream(persistence); /* writes are refused until a snapshot is on disk */
    }
    if (is_due && may_try && !persistence_is_saving(persistence) &&
        !persistence->journal.is_stalled) {
        (void)!persistence_begin_snapshot(persistence, error);
    }
}

/* ---- replication ---- */

void persistence_set_tap(struct persistence *persistence, journal_tap *tap, void *context) {
    persistence->journal.tap = tap;
    persistence->journal.tap_context = context;
    persistence_set_listening(persistence);
}

uint64_t persistence_written_group(const struct persistence *persistence) {
    return persistence_is_on(persistence) ? persistence->journal.written_group : 0;
}

bool persistence_find_group(const struct persistence *persistence, uint64_t group, char *path,
                            size_t path_size) {
    const struct store_state *files = &persistence->files;
    uint32_t i = files->journal_count;
    if (!persistence_is_on(persistence) || group > persistence->journal.group + 1) {
        return false;
    }
    while (i > 0 && files->journals[i - 1].first_sequence > group) {
        i--;
    }
    if (i == 0) {
        return false;
    }
    const struct store_name name = store_name(STORE_JOURNAL, files->journals[i - 1].number);
    int size = snprintf(path, path_size, "%s/%s", persistence->store.path, name.text);
    return size > 0 && (size_t)size < path_size;
}

void persistence_set_following(struct persistence *persistence, bool is_following) {
    persistence->is_following = is_following;
    persistence_set_listening(persistence);
}

void persistence_set_applying(struct persistence *persistence, bool is_applying) {
    persistence->is_applying = is_applying;
    persistence_set_listening(persistence);
}

void persistence_add_group(struct persistence *persistence, const struct journal_group_head *head,
                           const char *payload) {
    journal_add_group(&persistence->journal, head, payload);
}

void persistence_set_close_group(struct persistence *persistence, persistence_close_group *close,
                                 void *context) {
    persistence->close_group = close;
    persistence->close_context = context;
}

bool persistence_exchange_keys(struct persistence *persistence, struct registry *keys) {
    char error[PERSISTENCE_ERROR_MAX];
    persistence_settle(persistence);
    bool is_on = persistence->journaling == ON;
    if (persistence->saving != IDLE || persistence->journaling == STOPPED ||
        (is_on && !journal_is_idle(&persistence->journal))) {
        return false;
    }
    persistence->state->change_count += registry_count_all(keys).keys;
    registry_exchange(persistence->registry, keys);
    if (is_on) {
        persistence->journal.error = 0;
        persistence_move(persistence, &persistence->journaling, JOURNAL_GONE);
        persistence->attempt_ms = persistence->clock->monotonic_ms - RETRY_MS;
        (void)!persistence_begin_snapshot(persistence, error); /* else tried again each second */
    }
    persistence->has_news = true;
    return true;
}

/* ---- replies that wait ---- */

uint64_t persistence_last_group(const struct persistence *persistence) {
    return persistence->journal.group + persistence->journal.has_group;
}

uint64_t persistence_complete_group(const struct persistence *persistence) {
    return persistence->journal.group;
}

uint64_t persistence_safe_group(const struct persistence *persistence) {
    const struct journal *journal = &persistence->journal;
    if (!persistence_holds_answers(persistence)) {
        return UINT64_MAX;
    }
    return persistence_holds_readers(persistence) ? journal->synced_group : journal->written_group;
}

uint64_t persistence_synced_group(const struct persistence *persistence) {
    return persistence_is_on(persistence) ? persistence->journal.synced_group : 0;
}

bool persistence_holds_readers(const struct persistence *persistence) {
    return persistence_holds_answers(persistence) &&
           persistence->settings->appendfsync == SETTING_APPENDFSYNC_ALWAYS;
}

bool persistence_is_stuck(struct persistence *persistence) {
    struct journal *journal = &persistence->journal;
    /* With groups that are in the file and not synced, more is waited for than what is buffered. */
    if (!journal->is_stalled || persistence->journaling != ON ||
        journal->synced_group != journal->written_group ||
        !persistence_holds_readers(persistence)) {
        return false;
    }
    journal_find_dirty(journal);
    return true;
}

uint64_t persistence_dirty_key(uint32_t database, struct bytes name) {
    return journal_dirty_key(database, name);
}

bool persistence_is_dirty(const struct persistence *persistence, uint64_t key) {
    return journal_is_dirty(&persistence->journal, key);
}

bool persistence_has_dirty_names(const struct persistence *persistence) {
    return persistence->journal.dirty.has_names;
}

/* ---- describing ---- */

void persistence_describe(const struct persistence *persistence, struct persistence_info *info) {
    *info = (struct persistence_info){
        .changes = persistence->state->change_count - persistence->changes_saved,
        .is_saving = persistence_is_saving(persistence) && !persistence->is_streaming,
        .is_last_save_ok = persistence->is_save_ok,
        .last_save_s = persistence->save_end_s,
        .last_save_seconds = persistence->save_seconds,
        .current_save_seconds = -1,
        .save_count = persistence->save_count,
        .base_size = persistence->base_size,
    };
    if (info->is_saving) {
        info->current_save_seconds =
            (persistence->clock->monotonic_ms - persistence->save_begin_ms) / 1000;
        info->saved_members = persistence->snapshot.footer.member_count;
    }
    if (persistence->loading != NULL) {
        persistence_load_describe(persistence, info);
    }
    const struct journal *journal = &persistence->journal;
    info->is_journal_on = persistence_is_on(persistence);
    info->is_journal_ok =
        journal->state != JOURNAL_LOST && persistence->journaling != BROKEN && !journal->is_stalled;
    info->journal_size = persistence->base_size + journal->file_size_sum;
    info->journal_base_size = persistence->base_size + persistence->journal_size_at_base;
    info->waiting_size = journal_waiting_size(journal);
    info->group = journal->group;
    info->written_group = journal->written_group;
    info->synced_group = journal->synced_group;
    info->delayed_sync_count = journal->delayed_sync_count;
    info->sync_longest_us = journal->sync_longest_us;
    info->syncs = journal->syncs;
}

/* ---- a full copy of a master, as it becomes the keys and the files (staging.h) ---- */

enum persistence_status persistence_begin_receive(struct persistence *persistence, char *error) {
    struct staging *staging = &persistence->staging;
    if (persistence_is_stopped(persistence, error)) {
        return PERSISTENCE_FAILED;
    }
    if (staging->state != STAGING_NONE || staging->is_clearing) {
        return PERSISTENCE_BUSY;
    }
    if (!persistence_open_store(persistence, persistence->settings, error)) {
        return PERSISTENCE_FAILED;
    }
    if (!(persistence_is_saving(persistence) ? persistence->had_manifest
                                             : persistence->store.has_manifest)) {
        if (persistence_is_saving(persistence)) {
            return PERSISTENCE_BUSY;
        }
        if (!store_begin(&persistence->store)) {
            snprintf(error, PERSISTENCE_ERROR_MAX, "cannot write the manifest in %s: %s",
                     persistence->store.path, strerror(errno));
            return PERSISTENCE_FAILED;
        }
    }
    if (!staging_begin(staging, &persistence->store, persistence->registry, persistence->loop)) {
        snprintf(error, PERSISTENCE_ERROR_MAX, "out of memory");
        return PERSISTENCE_FAILED;
    }
    return PERSISTENCE_OK;
}

struct staging *persistence_staging(struct persistence *persistence) {
    return &persistence->staging;
}

bool persistence_step_receive(struct persistence *persistence, uint64_t budget_ns) {
    bool has_more = staging_step(&persistence->staging, budget_ns);
    if (persistence->staging.state != STAGING_LOADED) {
        return has_more;
    }
    /* Let it take the place of everything. Not while the files are in use; the journal's threads wake the loop. */
    persistence_settle(persistence);
    if (persistence->saving != IDLE || persistence->journaling == STOPPED ||
        (persistence->journaling == ON && !journal_is_idle(&persistence->journal))) {
        return has_more;
    }
    persistence_follow_keep(&persistence->store, persistence->settings);
    persistence_begin_saving(persistence, ADOPTION_ASKED);
    /* A journal that is on goes on until persistence_second has turned it off as set. */
    staging_adopt(&persistence->staging,
                  persistence->settings->appendonly || persistence->journaling != OFF);
    return has_more;
}

bool persistence_abandon_receive(struct persistence *persistence) {
    persistence->is_blocking = true;
    while (persistence->saving == ADOPTING) {
        persistence_finish_adoption(persistence);
        persistence_settle(persistence);
    }
    persistence->is_blocking = false;
    bool is_adopted = persistence->staging.state == STAGING_ADOPTED;
    staging_clear(&persistence->staging);
    return is_adopted;
}

/* ---- the interface ---- */

struct persistence *persistence_open(const struct settings *settings, char *error) {
    struct persistence *persistence = memory_allocate_zeroed(sizeof *persistence);
    if (persistence == NULL) {
        snprintf(error, PERSISTENCE_ERROR_MAX, "out of memory");
        return NULL;
    }
    persistence->saving = IDLE;
    staging_init(&persistence->staging, persistence_on_progress, persistence);
    enum store_status status =
        store_open(&persistence->store, settings->dir, settings->appenddirname,
                   settings->appendonly ? STORE_CREATE : STORE_CLAIM, error);
    if (status != STORE_OK && status != STORE_MISSING) {
        memory_free(persistence);
        return NULL;
    }
    if (status == STORE_MISSING) { /* so no other server keeps anything there, either */
        log_write(LOG_WARNING, "nothing can be kept: %s", error);
    }
    persistence_follow_keep(&persistence->store, settings);
    return persistence;
}

bool persistence_start(struct persistence *persistence, const struct persistence_host *host,
                       uv_loop_t *loop, void (*changed)(void *context), void *context,
                       char *error) {
    persistence->settings = host->settings;
    persistence->registry = host->registry;
    persistence->clock = host->clock;
    persistence->state = host->state;
    persistence->loop = loop;
    persistence->changed = changed;
    persistence->context = context;
    persistence->is_save_ok = true;
    persistence->save_end_s = persistence->clock->now_ms / 1000;
    persistence->save_end_ms = persistence->clock->monotonic_ms;
    persistence->save_seconds = -1;
    persistence->journal.store = &persistence->store;
    persistence->journal.changed = persistence_on_progress;
    persistence->journal.context = persistence;
    persistence->snapshot.registry = persistence->registry;
    persistence->snapshot.store = &persistence->store;
    persistence->snapshot.changed = persistence_on_progress;
    persistence->snapshot.context = persistence;
    if (!journal_init(&persistence->journal, loop) ||
        !snapshot_init(&persistence->snapshot, loop)) {
        snprintf(error, PERSISTENCE_ERROR_MAX, "cannot start a thread");
        return false;
    }
    if (persistence_has_store(persistence)) {
        store_note_process(&persistence->store); /* the process may have daemonized since */
    }
    return persistence_load_start(persistence, error) &&
           (persistence->loading->size_total > 0 || persistence_load_finish(persistence, error));
}

void persistence_stop(struct persistence *persistence) {
    if (persistence == NULL || persistence->loop == NULL) {
        return;
    }
    persistence->is_blocking = true;
    effect_listener_remove(persistence->registry, &persistence->listener);
    if (persistence->loading != NULL) {
        persistence_load_end(persistence);
    }
    if (persistence->journaling == ON && !persistence->journal.has_group) {
        (void)!journal_flush(&persistence->journal, true);
        persistence_settle(persistence); /* it may be fatal */
    }
    persistence_stream_close_pipe(&persistence->stream);
    staging_deinit(&persistence->staging);
    snapshot_deinit(&persistence->snapshot);
    journal_deinit(&persistence->journal);
}

void persistence_destroy(struct persistence *persistence) {
    if (persistence == NULL) {
        return;
    }
    memory_free(persistence->ended_loading);
    staging_free(&persistence->staging);
    if (persistence->store.has_manifest) {
        store_close(&persistence->store);
    } else {
        store_abandon(&persistence->store);
    }
    memory_free(persistence);
}
