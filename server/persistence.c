/* What survives the process. See persistence.h for the whole.
 *
 *                     load            snapshot with a journal behind it
 *     start ----------------> off --------------------------------------> on
 *                      \                (CONFIG SET appendonly yes)       | a sync has failed
 *                       `-- appendonly yes: on                            v
 *                                        on <-- snapshot, new file -- broken: -MISCONF
 *
 * A snapshot while the journal is on: the journal goes on in a new file (journal_rotate), then
 * boards are walked; when the base is complete, the manifest names it and the new file. */
#include "server/persistence.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "server/journal.h"
#include "server/loading.h"
#include "server/log.h"
#include "server/snapshot.h"

enum {
#ifdef SERVER_TINY
    LOAD_BUDGET_NS = 0,
    WALK_BUDGET_NS = 0,
#else
    LOAD_BUDGET_NS = 2000000,
    WALK_BUDGET_NS = 200000,
#endif
    RETRY_MS = 5000,
    PROGRESS_MS = 1000,
    REFUSAL_MAX = 256,
};

struct persistence {
    struct server *server;
    uv_loop_t *loop;
    void (*changed)(void *context);
    void *context;
    struct store store;
    bool has_store;
    bool is_started;
    struct journal journal;
    struct snapshot snapshot;
    struct loading *loading;       /* NULL when it is done */
    struct loading *ended_loading; /* its memory, until the loop has let go of its handle */
    uint64_t loading_begin_us;
    int64_t loading_start_s, progress_ms;
    bool is_gating;          /* replies wait for the journal */
    bool is_rotating;        /* for the snapshot that is to begin */
    bool is_to_walk;         /* at the end of this tick */
    bool is_broken;          /* the journal: to be cleared up between two ticks */
    bool is_blocking;        /* waiting within a command: nobody may be told */
    bool has_news;           /* and is to be told after it */
    bool is_save_ok;         /* the last snapshot was written */
    uint64_t changes_before; /* server->change_count when the last snapshot began */
    uint64_t changes_saved;  /* and when the last that was written began */
    int64_t save_begin_ms, save_end_s, attempt_ms, save_seconds;
    uint64_t save_count;
    uint64_t base_size, journal_size_at_base;
    uint64_t size_at_rotation;
    char refusal[REFUSAL_MAX];
};

static uint64_t monotonic_us(void) {
    return uv_hrtime() / 1000;
}

static double seconds_since(uint64_t begin_us) {
    return (double)(monotonic_us() - begin_us) / 1e6;
}

/* ---- who hears of effects ---- */

static void hear(void *context, const struct effect *effect) {
    struct persistence *persistence = context;
    persistence->server->effect_count++;
    if (persistence->journal.state == JOURNAL_WRITES ||
        persistence->journal.state == JOURNAL_WAITS) {
        journal_hear(&persistence->journal, effect);
    }
    if (persistence->snapshot.state == SNAPSHOT_WALKS) {
        snapshot_hear(&persistence->snapshot, effect);
    }
}

static void set_hearing(struct persistence *persistence) {
    enum journal_state state = persistence->journal.state;
    bool is_needed = state == JOURNAL_WRITES || state == JOURNAL_WAITS ||
                     persistence->snapshot.state == SNAPSHOT_WALKS;
    registry_set_effects(persistence->server->registry, is_needed ? hear : NULL, persistence);
}

/* ---- refusing ---- */

static bool is_on(const struct persistence *persistence) {
    return persistence->journal.state == JOURNAL_WRITES;
}

/* A snapshot has failed, and nobody may write until one succeeds. */
static bool is_stopped_by_save(const struct persistence *persistence) {
    const struct settings *settings = &persistence->server->settings;
    return !persistence->is_save_ok && settings->stop_writes_on_bgsave_error &&
           settings->save_point_count > 0 && !settings->appendonly;
}

/* Why nothing may be written; NULL: it may. */
static const char *find_refusal(struct persistence *persistence) {
    const struct journal *journal = &persistence->journal;
    if (journal->state == JOURNAL_BROKEN || journal->is_stalled ||
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

/* Replies may leave. Not within a command: its own client may be closed by that. */
static void tell(struct persistence *persistence) {
    persistence->has_news = persistence->is_blocking;
    if (!persistence->is_blocking) {
        persistence->changed(persistence->context);
    }
}

static void update(struct persistence *persistence) {
    persistence->server->write_refusal = find_refusal(persistence);
    set_hearing(persistence);
    tell(persistence);
}

/* ---- the journal's news ---- */

static void on_journal_changed(void *context) {
    struct persistence *persistence = context;
    persistence->server->write_refusal = find_refusal(persistence);
    tell(persistence);
}

static void fail_save(struct persistence *persistence) {
    persistence->is_save_ok = false;
    persistence->save_seconds = (persistence->server->now_ms - persistence->save_begin_ms) / 1000;
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

/* With appendfsync always a reply means: on disk. What cannot be kept must not be answered. */
static void on_journal_lost(void *context, const char *what, int error) {
    struct persistence *persistence = context;
    struct journal *journal = &persistence->journal;
    if (journal->policy == SETTING_APPENDFSYNC_ALWAYS) {
        log_write(LOG_WARNING,
                  "journal: %s: %s. With appendfsync always nothing can be answered any more: "
                  "stopping at once. What was answered is on disk; start again once the disk works",
                  what, strerror(error));
        log_close();
        _exit(EXIT_FAILURE);
    }
    log_write(LOG_WARNING,
              "journal: %s: %s. Its file is not trusted any more: writers are refused until a "
              "snapshot and a new journal are on disk",
              what, strerror(error));
    journal->state = JOURNAL_BROKEN;
    persistence->is_broken = true;
    on_rotated(persistence, false);
    persistence->attempt_ms = 0;
    persistence->server->write_refusal = find_refusal(persistence);
}

/* ---- snapshots ---- */

static void on_walked(void *context) {
    struct persistence *persistence = context;
    struct snapshot *snapshot = &persistence->snapshot;
    struct journal *journal = &persistence->journal;
    snapshot->keeps_journal = is_on(persistence);
    snapshot->makes_journal =
        !snapshot->keeps_journal &&
        (persistence->server->settings.appendonly || journal->state == JOURNAL_BROKEN);
    if (snapshot->makes_journal) {
        journal_begin(journal);
    }
    set_hearing(persistence);
}

/* The journal that was to begin behind the snapshot. */
static void settle_journal(struct persistence *persistence, bool is_done) {
    struct snapshot *snapshot = &persistence->snapshot;
    struct journal *journal = &persistence->journal;
    if (snapshot->keeps_journal && is_done) {
        journal->file_size_sum -= persistence->size_at_rotation;
    }
    if (!snapshot->makes_journal || journal->state != JOURNAL_WAITS) {
        return;
    }
    if (!is_done) {
        journal_end(journal);
        journal->state = persistence->is_gating ? JOURNAL_BROKEN : JOURNAL_OFF;
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
    int64_t now_ms = persistence->server->now_ms;
    settle_journal(persistence, is_done);
    if (!is_done) {
        fail_save(persistence);
        return;
    }
    persistence->is_save_ok = true;
    persistence->save_count++;
    persistence->changes_saved = persistence->changes_before;
    persistence->save_end_s = now_ms / 1000;
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
    const struct settings *settings = &persistence->server->settings;
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
    struct server *server = persistence->server;
    persistence->is_to_walk = false;
    if (!snapshot_begin(&persistence->snapshot, server->now_us)) {
        log_write(LOG_WARNING, "snapshot: cannot begin: out of memory");
        fail_save(persistence);
        return;
    }
    persistence->changes_before = server->change_count;
    set_hearing(persistence);
}

enum persistence_status persistence_begin_snapshot(struct persistence *persistence, char *error) {
    struct server *server = persistence->server;
    if (is_saving(persistence)) {
        return PERSISTENCE_BUSY;
    }
    persistence->attempt_ms = server->now_ms;
    persistence->save_begin_ms = server->now_ms;
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

/* Go on with it until it is over. */
static void finish_snapshot(struct persistence *persistence) {
    struct server *server = persistence->server;
    struct journal *journal = &persistence->journal;
    journal_end_group(journal, server->now_us, journal->policy);
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
                                 server->now_us);
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
    const struct server *server = persistence->server;
    struct journal *journal = &persistence->journal;
    if (server->is_loading) {
        return PERSISTENCE_OK;
    }
    journal_end_group(journal, server->now_us, journal->policy);
    bool is_changed = server->change_count != persistence->changes_saved;
    bool is_asked = ending == PERSISTENCE_END_SAVE ||
                    (ending == PERSISTENCE_END_AS_SET && !is_on(persistence) && is_changed &&
                     server->settings.save_point_count > 0);
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

/* A journal of its own behind all that was loaded, in the place of those that end before that. */
static bool make_journal(struct persistence *persistence, char *error) {
    struct store *store = &persistence->store;
    struct journal_file file;
    struct store_state state = store->state;
    char name[STORE_NAME_MAX];
    uint64_t first = persistence->journal.group + 1;
    if (persistence->loading->journal_next_sequence != first) {
        /* The base ends behind all that is there, and has what is in it. A torn tail that stayed
         * would be damage, with the new journal behind it. */
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

/* Go on behind the last whole group. A journal that ends before the base does (its tail was torn,
 * and the base is younger) gets a successor, or its groups would have a gap. */
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
    journal_take_file(&persistence->journal, &file);
    return true;
}

static bool begin_service(struct persistence *persistence, char *error) {
    struct server *server = persistence->server;
    const struct loading *loading = persistence->loading;
    struct journal *journal = &persistence->journal;
    if ((int64_t)loading->time_us > server->clock.latest_us) {
        server->clock.latest_us = (int64_t)loading->time_us;
    }
    server_update_time(server);
    journal->group = loading->sequence;
    journal->written_group = loading->sequence;
    journal->synced_group = loading->sequence;
    persistence->changes_saved = server->change_count;
    if (server->settings.appendonly) {
        journal->policy = (enum setting_appendfsync)server->settings.appendfsync;
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
    persistence->ended_loading = loading; /* its handle is still the loop's */
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
    persistence->server->is_loading = false;
    update(persistence);
    return true;
}

/* Nothing can be served from half of the boards. */
static void refuse_to_start(const char *error) {
    log_write(LOG_WARNING, "cannot start: %s", error);
    fprintf(stderr, "leaderboard-server: %s\n", error);
    log_close();
    _exit(EXIT_FAILURE);
}

/* true: there is more to do at once. */
static bool step_loading(struct persistence *persistence) {
    char error[PERSISTENCE_ERROR_MAX];
    int64_t now_ms = persistence->server->now_ms;
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

static enum setting_appendfsync policy_of(const struct persistence *persistence) {
    return (enum setting_appendfsync)persistence->server->settings.appendfsync;
}

bool persistence_end_tick(struct persistence *persistence) {
    if (persistence->loading != NULL) {
        return false;
    }
    journal_end_tick(&persistence->journal, persistence->server->now_us, policy_of(persistence));
    if (persistence->is_broken) {
        persistence->is_broken = false;
        journal_break(&persistence->journal);
        update(persistence);
    }
    if (persistence->has_news) {
        tell(persistence);
    }
    return persistence->journal.is_holding;
}

bool persistence_step(struct persistence *persistence) {
    const struct server *server = persistence->server;
    if (persistence->loading != NULL) {
        return step_loading(persistence);
    }
    if (persistence->is_to_walk) {
        begin_walk(persistence);
    }
    return persistence->snapshot.state == SNAPSHOT_WALKS &&
           snapshot_step(&persistence->snapshot, WALK_BUDGET_NS, persistence->journal.group,
                         server->now_us);
}

static bool has_grown(const struct persistence *persistence) {
    const struct settings *settings = &persistence->server->settings;
    uint64_t base = persistence->base_size + persistence->journal_size_at_base;
    uint64_t size = persistence->base_size + persistence->journal.file_size_sum;
    uint64_t percentage = (uint64_t)settings->auto_aof_rewrite_percentage;
    if (!is_on(persistence) || percentage == 0 || size < settings->auto_aof_rewrite_min_size) {
        return false;
    }
    return size > base && (double)(size - base) >= (double)base * (double)percentage / 100.0;
}

static bool is_save_point(const struct persistence *persistence) {
    const struct server *server = persistence->server;
    const struct settings *settings = &server->settings;
    uint64_t changes = server->change_count - persistence->changes_saved;
    int64_t elapsed_s = server->now_ms / 1000 - persistence->save_end_s;
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

/* CONFIG SET appendonly: on with a snapshot, off at once. true: a snapshot is due. */
static bool follow_appendonly(struct persistence *persistence) {
    struct journal *journal = &persistence->journal;
    bool is_wanted = persistence->server->settings.appendonly;
    if (is_wanted || is_saving(persistence)) {
        return is_wanted && !is_on(persistence);
    }
    if (journal->state == JOURNAL_WRITES || journal->state == JOURNAL_BROKEN) {
        bool is_kept = journal->state == JOURNAL_BROKEN || journal_flush(journal, true);
        if (!is_kept && journal->state == JOURNAL_WRITES) {
            return false; /* the disk is full: not before what was answered is on it */
        }
        journal_end(journal);
        persistence->is_gating = false;
        persistence->is_broken = false;
        log_write(LOG_NOTICE, "journal: off, as set");
        update(persistence);
    }
    return false;
}

void persistence_second(struct persistence *persistence) {
    char error[PERSISTENCE_ERROR_MAX];
    struct server *server = persistence->server;
    if (persistence->loading != NULL) {
        return;
    }
    /* Where the start took long, the first second is over before the loop has turned once. */
    if (persistence->ended_loading != NULL && persistence->ended_loading->worker.is_closed) {
        memory_free(persistence->ended_loading);
        persistence->ended_loading = NULL;
    }
    journal_end_group(&persistence->journal, server->now_us, policy_of(persistence));
    journal_second(&persistence->journal);
    bool is_due = follow_appendonly(persistence);
    /* Where nobody may write no save point is reached any more. */
    is_due = is_due || has_grown(persistence) || is_save_point(persistence) ||
             is_stopped_by_save(persistence);
    server->write_refusal = find_refusal(persistence);
    bool may_try = persistence->is_save_ok || server->now_ms - persistence->attempt_ms >= RETRY_MS;
    if (is_due && may_try && !is_saving(persistence) && !persistence->journal.is_stalled) {
        (void)!persistence_begin_snapshot(persistence, error);
    }
}

/* ---- who waits ---- */

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
           persistence->server->settings.appendfsync == SETTING_APPENDFSYNC_ALWAYS;
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
    loading->registry = persistence->server->registry;
    loading->store = &persistence->store;
    loading->changed = persistence->changed;
    loading->context = persistence->context;
    persistence->loading = loading;
    persistence->loading_begin_us = monotonic_us();
    persistence->loading_start_s = persistence->server->now_ms / 1000;
    persistence->progress_ms = persistence->server->now_ms;
    persistence->server->is_loading = true;
    if (!loading_init(loading, persistence->loop)) {
        snprintf(error, PERSISTENCE_ERROR_MAX, "cannot start a thread");
        return false;
    }
    /* Where there is nothing to load it is done already. */
    if (loading->size_total == 0 && !loading_run(loading)) {
        snprintf(error, PERSISTENCE_ERROR_MAX, "%s", loading->error);
        return false;
    }
    return true;
}

bool persistence_start(struct persistence *persistence, struct server *server, uv_loop_t *loop,
                       void (*changed)(void *context), void *context, char *error) {
    persistence->server = server;
    persistence->loop = loop;
    persistence->changed = changed;
    persistence->context = context;
    persistence->is_save_ok = true;
    persistence->save_end_s = server->now_ms / 1000;
    persistence->save_seconds = -1;
    persistence->journal.store = &persistence->store;
    persistence->journal.changed = on_journal_changed;
    persistence->journal.lost = on_journal_lost;
    persistence->journal.rotated_to = on_rotated;
    persistence->journal.context = persistence;
    persistence->snapshot.registry = server->registry;
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
        store_note_process(&persistence->store); /* it may have gone to the background since */
    }
    persistence->is_started = true;
    server->persistence = persistence;
    return start_loading(persistence, error) &&
           (persistence->loading->size_total > 0 || finish_loading(persistence, error));
}

void persistence_stop(struct persistence *persistence) {
    if (persistence == NULL || !persistence->is_started) {
        return;
    }
    registry_set_effects(persistence->server->registry, NULL, NULL);
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
    info->is_journal_ok = journal->state != JOURNAL_BROKEN && !journal->is_stalled;
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
    const struct server *server = persistence->server;
    *info = (struct persistence_info){
        .changes = server->change_count - persistence->changes_saved,
        .is_saving = is_saving(persistence),
        .is_last_save_ok = persistence->is_save_ok,
        .last_save_s = persistence->save_end_s,
        .last_save_seconds = persistence->save_seconds,
        .current_save_seconds = -1,
        .save_count = persistence->save_count,
        .base_size = persistence->base_size,
    };
    if (info->is_saving) {
        info->current_save_seconds = (server->now_ms - persistence->save_begin_ms) / 1000;
        info->saved_members = persistence->snapshot.member_count;
    }
    if (persistence->loading != NULL) {
        describe_loading(persistence, info);
    }
    describe_journal(persistence, info);
}
