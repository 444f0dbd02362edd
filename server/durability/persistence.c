/* Persistence. See persistence.h for an overview.
 *
 *                     load            snapshot followed by a new journal
 *     start ----------------> off --------------------------------------> on
 *                      \                (CONFIG SET appendonly yes)       | a sync has failed
 *                       `-- appendonly yes: on                            v
 *                                        on <-- snapshot, new file -- broken: -MISCONF
 *
 * The journal may become lost (JOURNAL_LOST) in the middle of any operation of the loop. It becomes
 * broken when that operation is over (settle_lost), before the next use of the journal.
 *
 * A snapshot while the journal is on: the journal continues in a new file (journal_rotate), then
 * boards are walked; when the base is complete, the manifest names it and the new file. */
#include "server/durability/persistence.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "server/durability/journal.h"
#include "server/durability/loading.h"
#include "server/durability/snapshot.h"
#include "server/system/log.h"
#include "skiplist/keyspace/effect_listener.h"

enum {
#ifdef SERVER_TINY
    LOAD_BUDGET_NS = 0,
    WALK_BUDGET_NS = 0,
#else
    LOAD_BUDGET_NS = 2000000,
    WALK_BUDGET_NS = 200000,
#endif
    TICK_SIZE_MAX = 4 * 1024 * 1024, /* of effects; a running command may exceed it */
    RETRY_MS = 5000,
    PROGRESS_MS = 1000,
    REFUSAL_MAX = 256,
};

struct persistence {
    const struct settings *settings; /* these four are from the host */
    struct registry *registry;
    struct clock *clock;
    struct durability_state *state;
    uv_loop_t *loop;
    void (*changed)(void *context);
    void *context;
    struct store store;
    bool has_store;
    bool is_started;
    struct effect_listener listener;
    struct journal journal;
    struct snapshot snapshot;
    struct loading *loading;       /* NULL once it is done */
    struct loading *ended_loading; /* its memory, until the loop has closed its handle */
    uint64_t loading_begin_us;
    int64_t loading_start_s; /* unix time, like save_end_s; fields ending in _ms are monotonic */
    int64_t progress_ms;
    bool is_gating;                     /* replies wait for the journal */
    bool is_rotating;                   /* for the snapshot about to begin */
    bool is_to_walk;                    /* a snapshot begins at the end of this tick */
    bool is_blocking;                   /* waiting within a command: changed must not be called */
    bool has_news;                      /* changed is to be called afterwards */
    bool is_save_ok;                    /* the last snapshot succeeded */
    uint64_t changes_before;            /* state->change_count when the last snapshot began */
    uint64_t changes_saved;             /* and when the last successful one began */
    uint64_t jumps_before, jumps_saved; /* the same for clock->jump_count */
    int64_t save_begin_ms, save_end_ms, save_end_s, attempt_ms, save_seconds;
    uint64_t save_count;
    uint64_t base_size, journal_size_at_base;
    uint64_t size_at_rotation;
    uint64_t tick_begin_size; /* journal_gathered_size when this tick began */
    char refusal[REFUSAL_MAX];
};

static uint64_t monotonic_us(void) {
    return uv_hrtime() / 1000;
}

static double seconds_since(uint64_t begin_us) {
    return (double)(monotonic_us() - begin_us) / 1e6;
}

static enum setting_appendfsync policy_of(const struct persistence *persistence) {
    return (enum setting_appendfsync)persistence->settings->appendfsync;
}

/* ---- passing effects on ---- */

/* Within a command: wait until the buffers have room for more effects. A journal that waits for its
 * file gets it when the snapshot before it is complete. */
static void make_room(struct persistence *persistence) {
    struct journal *journal = &persistence->journal;
    bool was_blocking = persistence->is_blocking;
    persistence->is_blocking = true;
    while (journal->state == JOURNAL_WAITS && persistence->snapshot.state == SNAPSHOT_ENDS) {
        worker_wait(&persistence->snapshot.worker);
    }
    if (journal->state == JOURNAL_WRITES) {
        journal_make_room(journal);
    }
    persistence->is_blocking = was_blocking;
}

static void add_one_effect(struct persistence *persistence, const struct effect *effect) {
    struct journal *journal = &persistence->journal;
    if (journal_gathers(journal)) {
        if (journal_is_full(journal)) {
            make_room(persistence);
        }
        journal_add_effect(journal, effect);
    }
    if (persistence->snapshot.state == SNAPSHOT_WALKS) {
        snapshot_add_effect(&persistence->snapshot, effect);
    }
}

static void on_effect(void *context, const struct effect *effect) {
    struct persistence *persistence = context;
    persistence->state->effect_count++;
    if (effect->kind != EFFECT_FILL) {
        add_one_effect(persistence, effect);
        return;
    }
    struct effect_fill fill;
    struct effect part;
    effect_fill_begin(&fill, effect);
    while (effect_fill_next(&fill, &part)) {
        add_one_effect(persistence, &part);
    }
}

bool persistence_is_behind(const struct persistence *persistence) {
    const struct journal *journal = &persistence->journal;
    /* A full disk may stay full: writes are refused, and reads need not wait. */
    return (journal_is_full(journal) && !journal->is_stalled) ||
           snapshot_is_full(&persistence->snapshot) ||
           journal_gathered_size(journal) - persistence->tick_begin_size >= TICK_SIZE_MAX;
}

static void set_listening(struct persistence *persistence) {
    bool is_needed =
        journal_gathers(&persistence->journal) || persistence->snapshot.state == SNAPSHOT_WALKS;
    persistence->listener.receive = on_effect;
    persistence->listener.context = persistence;
    if (is_needed) {
        effect_listener_add(persistence->registry, &persistence->listener);
    } else {
        effect_listener_remove(persistence->registry, &persistence->listener);
    }
}

/* ---- refusing writes ---- */

static bool is_on(const struct persistence *persistence) {
    return persistence->journal.state == JOURNAL_WRITES;
}

/* Has a snapshot failed, so that writes are refused until one succeeds? */
static bool is_stopped_by_save(const struct persistence *persistence) {
    const struct settings *settings = persistence->settings;
    return !persistence->is_save_ok && settings->stop_writes_on_bgsave_error &&
           settings->save_point_count > 0 && !settings->appendonly;
}

/* The error for refused writes; NULL: they are allowed. */
static const char *find_refusal(struct persistence *persistence) {
    const struct journal *journal = &persistence->journal;
    if (journal->state == JOURNAL_LOST || journal->state == JOURNAL_BROKEN || journal->is_stalled ||
        (journal->state == JOURNAL_WAITS && persistence->is_gating)) {
        snprintf(persistence->refusal, sizeof persistence->refusal,
                 "MISCONF Errors writing to the AOF file: %s", strerror(journal->error));
        return persistence->refusal;
    }
    if (is_stopped_by_save(persistence)) {
        return "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to "
               "persist to disk. Commands that may modify the data set are disabled, because this "
               "instance is configured to report errors during writes if RDB snapshotting fails "
               "(stop-writes-on-bgsave-error option). Please check the Redis logs for details "
               "about the RDB error.";
    }
    return NULL;
}

/* Let replies be sent, and pass effects to the modules that need them now. Not within a command:
 * the callback may close the command's own client when only part of its effects are recorded. */
static void tell(struct persistence *persistence) {
    persistence->has_news = persistence->is_blocking;
    if (!persistence->is_blocking) {
        set_listening(persistence);
        persistence->changed(persistence->context);
    }
}

static void update(struct persistence *persistence) {
    persistence->state->write_refusal = find_refusal(persistence);
    tell(persistence);
}

/* ---- callbacks of the journal ---- */

static void on_journal_changed(void *context) {
    update(context);
}

static void note_failed_save(struct persistence *persistence) {
    persistence->is_save_ok = false;
    persistence->save_seconds =
        (persistence->clock->monotonic_ms - persistence->save_begin_ms) / 1000;
}

static void fail_save(struct persistence *persistence) {
    note_failed_save(persistence);
    update(persistence);
}

static void on_rotated(void *context, bool is_done) {
    struct persistence *persistence = context;
    if (!persistence->is_rotating) {
        return;
    }
    persistence->is_rotating = false;
    if (is_done) {
        persistence->size_at_rotation =
            persistence->journal.file_size_sum - persistence->journal.file.size;
        persistence->is_to_walk = true;
    } else {
        fail_save(persistence);
    }
}

/* With appendfsync always a reply means that the change is on disk, so changes that cannot be
 * stored must not be acknowledged. The same holds for effects that found no room, until a snapshot
 * contains them. */
static void on_journal_lost(void *context, enum journal_loss loss, const char *what, int error) {
    struct persistence *persistence = context;
    struct journal *journal = &persistence->journal;
    if (loss == JOURNAL_LOSS_OF_DISK && journal->policy == SETTING_APPENDFSYNC_ALWAYS) {
        log_write(LOG_WARNING,
                  "journal: %s: %s. With appendfsync always no write can be confirmed: stopping at "
                  "once. Everything answered is on disk; restart once the disk works",
                  what, strerror(error));
        log_close();
        _exit(EXIT_FAILURE);
    }
    log_write(LOG_WARNING,
              "journal: %s: %s. Its file is no longer %s: writes are refused until a snapshot and "
              "a new journal are on disk",
              what, strerror(error), loss == JOURNAL_LOSS_OF_DISK ? "trusted" : "continued");
    if (persistence->is_rotating) {
        persistence->is_rotating = false;
        note_failed_save(persistence);
    }
    persistence->attempt_ms = persistence->clock->monotonic_ms - RETRY_MS; /* retry at once */
    persistence->state->write_refusal = find_refusal(persistence); /* settle_lost does the rest */
}

/* changed is not called: this may be within a command. true: the journal was lost. */
static bool settle_lost(struct persistence *persistence) {
    if (persistence->journal.state != JOURNAL_LOST) {
        return false;
    }
    bool was_blocking = persistence->is_blocking;
    persistence->is_blocking = true;
    journal_break(&persistence->journal);
    persistence->is_blocking = was_blocking;
    return true;
}

/* ---- snapshots ---- */

static void on_walked(void *context) {
    struct persistence *persistence = context;
    struct snapshot *snapshot = &persistence->snapshot;
    struct journal *journal = &persistence->journal;
    (void)settle_lost(persistence);
    snapshot->keeps_journal = is_on(persistence);
    snapshot->makes_journal = !snapshot->keeps_journal && (persistence->settings->appendonly ||
                                                           journal->state == JOURNAL_BROKEN);
    if (snapshot->makes_journal) {
        journal_begin(journal);
    }
    set_listening(persistence);
}

/* Settle the journal that was to begin after the snapshot. */
static void settle_journal(struct persistence *persistence, bool is_done) {
    struct snapshot *snapshot = &persistence->snapshot;
    struct journal *journal = &persistence->journal;
    if (snapshot->keeps_journal && is_done) {
        journal->file_size_sum -= persistence->size_at_rotation;
    }
    if (!snapshot->makes_journal || journal->state != JOURNAL_WAITS) {
        journal_file_close(&snapshot->journal); /* created, but the journal is lost already */
        snapshot->journal.fd = -1;
        return;
    }
    if (!is_done && persistence->is_gating) {
        journal_break(journal);
        return;
    }
    if (!is_done) {
        journal_end(journal);
        return;
    }
    journal_note_base(journal, snapshot->footer.sequence);
    journal_take_file(journal, &snapshot->journal);
    snapshot->journal.fd = -1;
    persistence->is_gating = true;
    log_write(LOG_NOTICE, "journal: writing behind the snapshot group=%llu",
              (unsigned long long)snapshot->footer.sequence);
}

static void on_snapshot_over(void *context, bool is_done) {
    struct persistence *persistence = context;
    const struct snapshot *snapshot = &persistence->snapshot;
    int64_t now_ms = persistence->clock->monotonic_ms;
    settle_journal(persistence, is_done);
    if (!is_done) {
        fail_save(persistence);
        return;
    }
    persistence->is_save_ok = true;
    persistence->save_count++;
    persistence->changes_saved = persistence->changes_before;
    persistence->jumps_saved = persistence->jumps_before;
    persistence->save_end_s = persistence->clock->now_ms / 1000;
    persistence->save_end_ms = now_ms;
    persistence->save_seconds = (now_ms - persistence->save_begin_ms) / 1000;
    persistence->base_size = snapshot->file_size;
    persistence->journal_size_at_base = persistence->journal.file_size_sum;
    log_write(LOG_NOTICE,
              "snapshot: on disk boards=%llu members=%llu bytes=%llu group=%llu seconds=%.2f",
              (unsigned long long)snapshot->board_count, (unsigned long long)snapshot->member_count,
              (unsigned long long)snapshot->file_size,
              (unsigned long long)snapshot->footer.sequence, seconds_since(snapshot->begin_us));
    update(persistence);
}

static bool is_saving(const struct persistence *persistence) {
    return persistence->snapshot.state != SNAPSHOT_IDLE || persistence->is_rotating ||
           persistence->is_to_walk;
}

static bool open_store(struct persistence *persistence, char *error) {
    const struct settings *settings = persistence->settings;
    if (!persistence->has_store) {
        persistence->has_store =
            store_open(&persistence->store, settings->dir, settings->appenddirname, STORE_CLAIM,
                       error) == STORE_OK;
    }
    return persistence->has_store;
}

const char *persistence_check_settings(struct persistence *persistence,
                                       const struct settings *wanted, char *reason) {
    char error[PERSISTENCE_ERROR_MAX];
    if (!wanted->appendonly || open_store(persistence, error)) {
        return NULL;
    }
    snprintf(reason, SETTING_REASON_MAX, "%.*s", SETTING_REASON_MAX - 1, error);
    return "appendonly";
}

static void begin_walk(struct persistence *persistence) {
    persistence->is_to_walk = false;
    if (!snapshot_begin(&persistence->snapshot, persistence->clock->now_us)) {
        log_write(LOG_WARNING, "snapshot: cannot begin: out of memory");
        fail_save(persistence);
        return;
    }
    persistence->changes_before = persistence->state->change_count;
    persistence->jumps_before = persistence->clock->jump_count;
    set_listening(persistence);
}

enum persistence_status persistence_begin_snapshot(struct persistence *persistence, char *error) {
    if (is_saving(persistence)) {
        return PERSISTENCE_BUSY;
    }
    (void)settle_lost(persistence);
    persistence->attempt_ms = persistence->clock->monotonic_ms;
    persistence->save_begin_ms = persistence->clock->monotonic_ms;
    if (!open_store(persistence, error)) {
        log_write(LOG_WARNING, "snapshot: %s", error);
        fail_save(persistence);
        return PERSISTENCE_FAILED;
    }
    if (is_on(persistence)) {
        persistence->is_rotating = true;
        journal_rotate(&persistence->journal);
    } else {
        persistence->is_to_walk = true;
    }
    return PERSISTENCE_OK;
}

/* Continue the snapshot until it is over. */
static void finish_snapshot(struct persistence *persistence) {
    struct journal *journal = &persistence->journal;
    journal_end_group(journal, persistence->clock->now_us, policy_of(persistence));
    persistence->is_blocking = true;
    while (is_saving(persistence)) {
        if (persistence->is_rotating) {
            worker_wait(&journal->syncer);
            worker_wait(&journal->writer);
            if (persistence->is_rotating && journal->is_stalled) {
                (void)!journal_flush(journal, false);
                if (journal->is_stalled) {
                    journal->is_rotation_asked = false;
                    on_rotated(persistence, false);
                }
            }
        } else if (persistence->is_to_walk) {
            begin_walk(persistence);
        } else {
            (void)!snapshot_step(&persistence->snapshot, UINT64_MAX, journal->group,
                                 persistence->clock->now_us);
            worker_wait(&persistence->snapshot.worker);
        }
    }
    persistence->is_blocking = false;
}

enum persistence_status persistence_save(struct persistence *persistence, char *error) {
    uint64_t count_before = persistence->save_count;
    enum persistence_status status = persistence_begin_snapshot(persistence, error);
    if (status != PERSISTENCE_OK) {
        return status;
    }
    finish_snapshot(persistence);
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
    journal_end_group(journal, persistence->clock->now_us, policy_of(persistence));
    bool is_changed = persistence->state->change_count != persistence->changes_saved;
    bool is_asked = ending == PERSISTENCE_END_SAVE ||
                    (ending == PERSISTENCE_END_AS_SET && !is_on(persistence) && is_changed &&
                     persistence->settings->save_point_count > 0);
    if (is_asked) {
        if (is_saving(persistence)) {
            finish_snapshot(persistence); /* it may have begun before the last change */
        }
        enum persistence_status status = persistence_save(persistence, error);
        if (status != PERSISTENCE_OK) {
            return status;
        }
    }
    persistence->is_blocking = true;
    bool is_flushed = !persistence->is_gating || journal_flush(journal, true);
    persistence->is_blocking = false;
    if (!is_flushed) {
        snprintf(error, PERSISTENCE_ERROR_MAX, "the journal could not be written: see the log");
        return PERSISTENCE_FAILED;
    }
    return PERSISTENCE_OK;
}

/* ---- loading ---- */

static void print_progress(struct persistence *persistence) {
    const struct loading *loading = persistence->loading;
    struct persistence_info info;
    persistence_describe(persistence, &info);
    double seconds = seconds_since(persistence->loading_begin_us);
    log_write(
        LOG_NOTICE, "loading: %.1f%% members=%llu effects=%llu members/s=%.0f remaining=%llds",
        info.loading_percent, (unsigned long long)loading->member_count,
        (unsigned long long)loading->effect_count,
        seconds > 0 ? (double)loading->member_count / seconds : 0.0, (long long)info.loading_eta_s);
}

static void print_torn(const struct persistence *persistence) {
    const struct loading *loading = persistence->loading;
    if (loading->is_torn) {
        log_write(LOG_WARNING,
                  "loading: the end of %s was not written whole (%s): cut at offset %llu, %llu "
                  "bytes and %llu whole groups behind it are dropped. A crash of the machine "
                  "leaves that: what is lost had not been synced",
                  loading->path, loading->torn.description,
                  (unsigned long long)loading->torn.offset, (unsigned long long)loading->torn.size,
                  (unsigned long long)loading->torn.groups_behind);
    }
}

/* Create a new journal after everything loaded; it replaces the journals that end earlier. */
static bool make_journal(struct persistence *persistence, char *error) {
    struct store *store = &persistence->store;
    struct journal_file file;
    struct store_state state = store->state;
    char name[STORE_NAME_MAX];
    uint64_t first = persistence->journal.group + 1;
    if (persistence->loading->journal_next_sequence != first) {
        /* The base contains all of the old journals. They must go: a torn tail in one of them would
         * be damage once the new journal follows it. */
        state.journal_count = 0;
    }
    if (state.journal_count == STORE_JOURNALS_MAX) {
        snprintf(error, PERSISTENCE_ERROR_MAX, "the manifest names too many journals");
        return false;
    }
    uint64_t number = store_take_number(store);
    state.journals[state.journal_count++] =
        (struct store_journal){.number = number, .first_sequence = first};
    store_print_name(name, STORE_JOURNAL, number);
    struct store_state before = store->state;
    if (!journal_file_create(&file, store->directory, name, first)) {
        snprintf(error, PERSISTENCE_ERROR_MAX, "cannot make a journal in %s: %s", store->path,
                 strerror(errno));
        return false;
    }
    if (store_set(store, &state) != STORE_SET) {
        snprintf(error, PERSISTENCE_ERROR_MAX, "cannot write the manifest in %s: %s", store->path,
                 strerror(errno));
        journal_file_close(&file);
        return false;
    }
    (void)store_remove_old(store, &before);
    journal_take_file(&persistence->journal, &file);
    return true;
}

/* Continue after the last whole group. A new journal is needed if the current one ends before the
 * base does (its tail was torn, and the base is younger), because its groups would have a gap; and
 * if it is of version 1, once its tail is cut. */
static bool continue_journal(struct persistence *persistence, char *error) {
    const struct loading *loading = persistence->loading;
    struct store *store = &persistence->store;
    uint32_t count = store->state.journal_count;
    if (count == 0 || loading->journal_next_sequence != persistence->journal.group + 1) {
        return make_journal(persistence, error);
    }
    struct journal_file file;
    char name[STORE_NAME_MAX];
    store_print_name(name, STORE_JOURNAL, store->state.journals[count - 1].number);
    if (!journal_file_continue(&file, store->directory, name, loading->journal_id,
                               loading->journal_size)) {
        snprintf(error, PERSISTENCE_ERROR_MAX, "cannot go on with %s/%s: %s", store->path, name,
                 strerror(errno));
        return false;
    }
    if (loading->is_journal_old) {
        journal_file_close(&file);
        return make_journal(persistence, error);
    }
    journal_take_file(&persistence->journal, &file);
    return true;
}

static void update_time(const struct persistence *persistence) {
    clock_update(persistence->clock);
    registry_set_offset(persistence->registry, clock_offset_ms(persistence->clock));
}

/* Stamps continue after the last one on disk, or (--reset-clock) from the machine's clock. Must run
 * before the server makes its first stamp. */
static void set_clock(struct persistence *persistence) {
    struct clock *clock = persistence->clock;
    int64_t floor_us = (int64_t)persistence->loading->time_us;
    clock_raise(clock, floor_us);
    update_time(persistence);
    if (persistence->clock->is_to_be_reset) {
        log_write(LOG_WARNING,
                  "clock: reset to the machine's clock, as asked (--reset-clock) back_seconds=%.3f",
                  (double)clock->lead_us / 1e6);
        clock_reset(clock);
        update_time(persistence);
    } else if (clock->state == CLOCK_AHEAD) {
        log_write(LOG_WARNING,
                  "clock: the last stamp on disk is ahead of the machine's clock: the server's "
                  "time goes on from there at its own rate lead_seconds=%.3f " CLOCK_RESET_ADVICE,
                  (double)clock->lead_us / 1e6);
    }
}

/* After a clock reset: no board may be in a period that has not begun. */
static void roll_ahead(struct persistence *persistence) {
    if (persistence->clock->is_to_be_reset) {
        persistence->clock->is_to_be_reset = false;
        uint32_t count = registry_roll_ahead(persistence->registry, persistence->clock->now_ms);
        if (count > 0) {
            log_write(LOG_WARNING,
                      "clock: boards were in periods that have not begun: they begin anew in the "
                      "present one, and their members are in the archives boards=%u",
                      count);
        }
    }
}

static bool begin_service(struct persistence *persistence, char *error) {
    const struct loading *loading = persistence->loading;
    struct journal *journal = &persistence->journal;
    set_clock(persistence);
    journal->group = loading->sequence;
    journal->ended_group = loading->sequence;
    journal->written_group = loading->sequence;
    journal->synced_group = loading->sequence;
    persistence->changes_saved = persistence->state->change_count;
    if (persistence->settings->appendonly) {
        journal->policy = policy_of(persistence);
        journal->policy_next = journal->policy;
        if (!continue_journal(persistence, error)) {
            return false;
        }
        journal->file_size_sum = loading->size_total - loading->base_file_size;
        persistence->journal_size_at_base = 0;
        persistence->is_gating = true;
    }
    persistence->base_size = loading->base_file_size;
    return true;
}

static void end_loading(struct persistence *persistence) {
    struct loading *loading = persistence->loading;
    loading_deinit(loading);
    persistence->loading = NULL;
    persistence->ended_loading = loading; /* the loop still has its handle */
}

/* false: error says why. */
static bool finish_loading(struct persistence *persistence, char *error) {
    const struct loading *loading = persistence->loading;
    double seconds = seconds_since(persistence->loading_begin_us);
    print_torn(persistence);
    if (!begin_service(persistence, error)) {
        return false;
    }
    if (loading->size_total > 0) {
        log_write(LOG_NOTICE,
                  "loaded boards=%llu members=%llu effects=%llu groups=%llu bytes=%llu "
                  "seconds=%.2f members/s=%.0f effects/s=%.0f",
                  (unsigned long long)loading->board_count,
                  (unsigned long long)loading->member_count,
                  (unsigned long long)loading->effect_count,
                  (unsigned long long)loading->group_count, (unsigned long long)loading->size_total,
                  seconds, (double)loading->member_count / (seconds > 0 ? seconds : 1e-6),
                  (double)loading->effect_count / (seconds > 0 ? seconds : 1e-6));
    }
    end_loading(persistence);
    persistence->state->is_loading = false;
    update(persistence);
    roll_ahead(persistence);
    return true;
}

/* Exit: the server must not run with only a part of the boards. */
static void refuse_to_start(const char *error) {
    log_write(LOG_WARNING, "cannot start: %s", error);
    fprintf(stderr, "leaderboard-server: %s\n", error);
    log_close();
    _exit(EXIT_FAILURE);
}

/* true: there is more to do at once. */
static bool step_loading(struct persistence *persistence) {
    char error[PERSISTENCE_ERROR_MAX];
    int64_t now_ms = persistence->clock->monotonic_ms;
    switch (loading_step(persistence->loading, LOAD_BUDGET_NS)) {
    case LOADING_MORE:
        if (now_ms - persistence->progress_ms >= PROGRESS_MS) {
            persistence->progress_ms = now_ms;
            print_progress(persistence);
        }
        return true;
    case LOADING_WAITS:
        return false;
    case LOADING_DONE:
        if (!finish_loading(persistence, error)) {
            refuse_to_start(error);
        }
        return true;
    case LOADING_FAILED:
        refuse_to_start(persistence->loading->error);
    }
    return false;
}

/* ---- the tick ---- */

bool persistence_end_tick(struct persistence *persistence) {
    if (persistence->loading != NULL) {
        return false;
    }
    journal_end_tick(&persistence->journal, persistence->clock->now_us, policy_of(persistence));
    persistence->tick_begin_size = journal_gathered_size(&persistence->journal);
    if (settle_lost(persistence) || persistence->has_news) {
        update(persistence);
    }
    return persistence->journal.is_holding;
}

bool persistence_step(struct persistence *persistence) {
    if (persistence->loading != NULL) {
        return step_loading(persistence);
    }
    if (persistence->is_to_walk) {
        begin_walk(persistence);
    }
    return persistence->snapshot.state == SNAPSHOT_WALKS &&
           snapshot_step(&persistence->snapshot, WALK_BUDGET_NS, persistence->journal.group,
                         persistence->clock->now_us);
}

static bool has_grown(const struct persistence *persistence) {
    const struct settings *settings = persistence->settings;
    uint64_t base = persistence->base_size + persistence->journal_size_at_base;
    uint64_t size = persistence->base_size + persistence->journal.file_size_sum;
    uint64_t percentage = (uint64_t)settings->auto_aof_rewrite_percentage;
    if (!is_on(persistence) || percentage == 0 || size < settings->auto_aof_rewrite_min_size) {
        return false;
    }
    return size > base && (double)(size - base) >= (double)base * (double)percentage / 100.0;
}

static bool is_save_point(const struct persistence *persistence) {
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
static bool has_jumped(const struct persistence *persistence) {
    bool is_kept = is_on(persistence) || persistence->settings->save_point_count > 0;
    return is_kept && persistence->clock->jump_count != persistence->jumps_saved;
}

/* Apply CONFIG SET appendonly: turning on takes a snapshot, turning off is immediate. true: a
 * snapshot is due. */
static bool follow_appendonly(struct persistence *persistence) {
    struct journal *journal = &persistence->journal;
    bool is_wanted = persistence->settings->appendonly;
    if (is_wanted || is_saving(persistence)) {
        return is_wanted && !is_on(persistence);
    }
    if (journal->state != JOURNAL_OFF) {
        bool is_kept = journal->state != JOURNAL_WRITES || journal_flush(journal, true);
        if (!is_kept && journal->state == JOURNAL_WRITES) {
            return false; /* the disk is full: wait until acknowledged changes are on it */
        }
        journal_end(journal);
        persistence->is_gating = false;
        log_write(LOG_NOTICE, "journal: off, as set");
        update(persistence);
    }
    return false;
}

void persistence_second(struct persistence *persistence) {
    char error[PERSISTENCE_ERROR_MAX];
    if (persistence->loading != NULL) {
        return;
    }
    /* After a long start, the first second may be over before the loop has turned once. */
    if (persistence->ended_loading != NULL && persistence->ended_loading->worker.is_closed) {
        memory_free(persistence->ended_loading);
        persistence->ended_loading = NULL;
    }
    journal_end_group(&persistence->journal, persistence->clock->now_us, policy_of(persistence));
    journal_second(&persistence->journal);
    bool is_due = follow_appendonly(persistence);
    /* is_stopped_by_save: while writes are refused, no save point is ever reached. */
    is_due = is_due || has_grown(persistence) || is_save_point(persistence) ||
             has_jumped(persistence) || is_stopped_by_save(persistence);
    persistence->state->write_refusal = find_refusal(persistence);
    bool may_try = persistence->is_save_ok ||
                   persistence->clock->monotonic_ms - persistence->attempt_ms >= RETRY_MS;
    if (is_due && may_try && !is_saving(persistence) && !persistence->journal.is_stalled) {
        (void)!persistence_begin_snapshot(persistence, error);
    }
}

/* ---- replies that wait ---- */

uint64_t persistence_last_group(const struct persistence *persistence) {
    return persistence->journal.group + persistence->journal.has_group;
}

uint64_t persistence_safe_group(const struct persistence *persistence) {
    const struct journal *journal = &persistence->journal;
    if (!persistence->is_gating) {
        return UINT64_MAX;
    }
    return persistence_holds_readers(persistence) ? journal->synced_group : journal->written_group;
}

bool persistence_holds_readers(const struct persistence *persistence) {
    return persistence->is_gating &&
           persistence->settings->appendfsync == SETTING_APPENDFSYNC_ALWAYS;
}

/* ---- the interface ---- */

struct persistence *persistence_open(const struct settings *settings, char *error) {
    struct persistence *persistence = memory_allocate_zeroed(sizeof *persistence);
    if (persistence == NULL) {
        snprintf(error, PERSISTENCE_ERROR_MAX, "out of memory");
        return NULL;
    }
    enum store_status status =
        store_open(&persistence->store, settings->dir, settings->appenddirname,
                   settings->appendonly ? STORE_CREATE : STORE_USE, error);
    persistence->has_store = status == STORE_OK;
    if (status != STORE_OK && status != STORE_MISSING) {
        memory_free(persistence);
        return NULL;
    }
    return persistence;
}

static bool start_loading(struct persistence *persistence, char *error) {
    struct loading *loading = memory_allocate_zeroed(sizeof *loading);
    if (loading == NULL) {
        snprintf(error, PERSISTENCE_ERROR_MAX, "out of memory");
        return false;
    }
    loading->registry = persistence->registry;
    loading->store = &persistence->store;
    loading->changed = persistence->changed;
    loading->context = persistence->context;
    persistence->loading = loading;
    persistence->loading_begin_us = monotonic_us();
    persistence->loading_start_s = persistence->clock->now_ms / 1000;
    persistence->progress_ms = persistence->clock->monotonic_ms;
    persistence->state->is_loading = true;
    if (!loading_init(loading, persistence->loop)) {
        snprintf(error, PERSISTENCE_ERROR_MAX, "cannot start a thread");
        return false;
    }
    if (loading->size_total > 0) {
        log_write(LOG_NOTICE, "loading: begun bytes=%llu", (unsigned long long)loading->size_total);
    }
    /* If there is nothing to load, it is done already. */
    if (loading->size_total == 0 && !loading_run(loading)) {
        snprintf(error, PERSISTENCE_ERROR_MAX, "%s", loading->error);
        return false;
    }
    return true;
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
    persistence->journal.changed = on_journal_changed;
    persistence->journal.lost = on_journal_lost;
    persistence->journal.rotated_to = on_rotated;
    persistence->journal.context = persistence;
    persistence->snapshot.registry = persistence->registry;
    persistence->snapshot.store = &persistence->store;
    persistence->snapshot.walked = on_walked;
    persistence->snapshot.over = on_snapshot_over;
    persistence->snapshot.context = persistence;
    if (!journal_init(&persistence->journal, loop) ||
        !snapshot_init(&persistence->snapshot, loop)) {
        snprintf(error, PERSISTENCE_ERROR_MAX, "cannot start a thread");
        return false;
    }
    if (persistence->has_store) {
        store_note_process(&persistence->store); /* the process may have daemonized since */
    }
    persistence->is_started = true;
    return start_loading(persistence, error) &&
           (persistence->loading->size_total > 0 || finish_loading(persistence, error));
}

void persistence_stop(struct persistence *persistence) {
    if (persistence == NULL || !persistence->is_started) {
        return;
    }
    effect_listener_remove(persistence->registry, &persistence->listener);
    if (persistence->loading != NULL) {
        end_loading(persistence);
    }
    persistence->is_rotating = false;
    persistence->is_to_walk = false;
    snapshot_deinit(&persistence->snapshot);
    journal_deinit(&persistence->journal);
}

void persistence_destroy(struct persistence *persistence) {
    if (persistence == NULL) {
        return;
    }
    memory_free(persistence->ended_loading);
    if (persistence->has_store) {
        store_close(&persistence->store);
    }
    memory_free(persistence);
}

/* ---- describing ---- */

static void describe_loading(const struct persistence *persistence, struct persistence_info *info) {
    const struct loading *loading = persistence->loading;
    double seconds = seconds_since(persistence->loading_begin_us);
    double part =
        loading->size_total > 0 ? (double)loading->size_done / (double)loading->size_total : 0.0;
    info->loading_start_s = persistence->loading_start_s;
    info->loading_total_size = loading->size_total;
    info->loading_loaded_size = loading->size_done;
    info->loading_members = loading->member_count;
    info->loading_percent = part * 100.0;
    info->loading_eta_s = part > 0.0 ? (int64_t)(seconds * (1.0 - part) / part) + 1 : -1;
}

static void describe_journal(const struct persistence *persistence, struct persistence_info *info) {
    const struct journal *journal = &persistence->journal;
    info->is_journal_on = is_on(persistence);
    info->is_journal_ok =
        journal->state != JOURNAL_LOST && journal->state != JOURNAL_BROKEN && !journal->is_stalled;
    info->journal_size = persistence->base_size + journal->file_size_sum;
    info->journal_base_size = persistence->base_size + persistence->journal_size_at_base;
    info->waiting_size = journal_waiting_size(journal);
    info->group = journal->group;
    info->written_group = journal->written_group;
    info->synced_group = journal->synced_group;
    info->delayed_sync_count = journal->delayed_sync_count;
    info->sync_longest_us = journal->sync_longest_us;
}

void persistence_describe(const struct persistence *persistence, struct persistence_info *info) {
    *info = (struct persistence_info){
        .changes = persistence->state->change_count - persistence->changes_saved,
        .is_saving = is_saving(persistence),
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
        info->saved_members = persistence->snapshot.member_count;
    }
    if (persistence->loading != NULL) {
        describe_loading(persistence, info);
    }
    describe_journal(persistence, info);
}
