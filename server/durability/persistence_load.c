/* The start: what the files hold is loaded, then the clock, the numbers of groups and the journal
 * go on behind it. See persistence.h. */
#include "server/durability/persistence_state.h"

#include <errno.h>
#include <inttypes.h>

#include "server/system/log.h"

enum {
#ifdef SERVER_TINY
    LOAD_BUDGET_NS = 0,
#else
    LOAD_BUDGET_NS = 2000000,
#endif
    PROGRESS_MS = 1000,
};

/* Create a new journal after everything loaded; it replaces the journals that end earlier. */
static bool persistence_load_make_journal(struct persistence *persistence, char *error) {
    struct store *store = &persistence->store;
    struct journal_file file = {.fd = -1};
    struct store_state state = store->state;
    uint64_t first = persistence->journal.group + 1;
    if (persistence->loading->journal.next_sequence != first) {
        /* The base contains all of the old journals. They must go: a torn tail in one of them would
         * be damage once the new journal follows it. */
        state.journal_count = 0;
    }
    if (state.journal_count == STORE_JOURNALS_MAX) {
        snprintf(error, PERSISTENCE_ERROR_MAX, "the manifest names too many journals");
        return false;
    }
    state.journals[state.journal_count++] =
        (struct store_journal){.number = store_take_number(store), .first_sequence = first};
    if (store_adopt(store, &state, &file) != STORE_SET) {
        snprintf(error, PERSISTENCE_ERROR_MAX, "cannot %s in %s: %s",
                 file.fd < 0 ? "make a journal" : "write the manifest", store->path,
                 strerror(errno));
        journal_file_close(&file);
        return false;
    }
    journal_take_file(&persistence->journal, &file);
    return true;
}

/* Continue after the last whole group. A new journal is needed if the current one ends before the
 * base does (its tail was torn, and the base is younger), because its groups would have a gap. */
static bool persistence_load_continue_journal(struct persistence *persistence, char *error) {
    const struct loading *loading = persistence->loading;
    struct store *store = &persistence->store;
    uint32_t count = store->state.journal_count;
    if (count == 0 || loading->journal.next_sequence != persistence->journal.group + 1) {
        return persistence_load_make_journal(persistence, error);
    }
    struct journal_file file;
    const struct store_name name =
        store_name(STORE_JOURNAL, store->state.journals[count - 1].number);
    if (!journal_file_continue(&file, store->directory, name.text, loading->journal.id,
                               loading->journal.offset)) {
        snprintf(error, PERSISTENCE_ERROR_MAX, "cannot go on with %s/%s: %s", store->path,
                 name.text, strerror(errno));
        return false;
    }
    journal_take_file(&persistence->journal, &file);
    return true;
}

static void persistence_load_update_time(const struct persistence *persistence) {
    clock_update(persistence->clock);
    registry_expiry_set_offset(persistence->registry, clock_offset_ms(persistence->clock));
}

static bool persistence_load_begin_service(struct persistence *persistence, char *error) {
    const struct loading *loading = persistence->loading;
    struct journal *journal = &persistence->journal;
    /* Stamps continue after the last one on disk, or (--reset-clock) from the machine's clock. Must run before the
     * server makes its first stamp. */
    struct clock *clock = persistence->clock;
    clock_raise(clock, (int64_t)loading->time_us);
    persistence_load_update_time(persistence);
    if (clock->is_to_be_reset) {
        log_write(LOG_WARNING,
                  "clock: reset to the machine's clock, as asked (--reset-clock) back_seconds=%.3f",
                  (double)clock->lead_us / 1e6);
        clock_reset(clock);
        persistence_load_update_time(persistence);
    } else if (clock->state == CLOCK_AHEAD) {
        log_write(LOG_WARNING,
                  "clock: the last stamp on disk is ahead of the machine's clock: the server's "
                  "time goes on from there at its own rate lead_seconds=%.3f " CLOCK_RESET_ADVICE,
                  (double)clock->lead_us / 1e6);
    }
    journal_go_to(journal, loading->sequence);
    persistence->changes_saved = persistence->state->change_count;
    persistence->base_size = loading->base.window.file_size;
    if (persistence->settings->appendonly) {
        journal->policy_next = persistence_policy_of(persistence);
        if (!persistence_load_continue_journal(persistence, error)) {
            return false;
        }
        /* What is behind the last group of the last one was cut off. */
        journal->file_size_sum = loading->size_total - persistence->base_size -
                                 (loading->journal.window.file_size - loading->journal.offset);
        persistence_note_files(persistence);
    }
    persistence_move(persistence, &persistence->journaling,
                     persistence->settings->appendonly ? LOADED_JOURNAL : LOADED);
    return true;
}

void persistence_load_end(struct persistence *persistence) {
    struct loading *loading = persistence->loading;
    loading_deinit(loading);
    persistence->loading = NULL;
    persistence->ended_loading = loading; /* the loop still has its handle */
}

/* false: error says why. */
bool persistence_load_finish(struct persistence *persistence, char *error) {
    const struct loading *loading = persistence->loading;
    double seconds = persistence_seconds_since(persistence->loading_begin_us);
    const struct journal_torn *torn = &loading->journal.torn;
    if (torn->size > 0) {
        log_write(LOG_WARNING,
                  "loading: the end of %s was not written whole (%s): cut at offset %" PRIu64
                  ", %" PRIu64 " bytes and %" PRIu64 " whole groups behind it are dropped. A crash "
                  "of the machine leaves that: what is lost had not been synced",
                  loading->path, torn->description, torn->offset, torn->size, torn->groups_behind);
    }
    if (!persistence_load_begin_service(persistence, error)) {
        return false;
    }
    if (loading->size_total > 0) {
        double divisor = seconds > 0 ? seconds : 1e-6;
        /* What is there, the journal's among it. */
        struct registry_counts all = registry_count_all(persistence->registry);
        log_write(LOG_NOTICE,
                  "loaded boards=%" PRIu64 " members=%" PRIu64 " effects=%" PRIu64
                  " groups=%" PRIu64 " bytes=%" PRIu64
                  " seconds=%.2f members/s=%.0f effects/s=%.0f",
                  all.boards, all.members, loading->effect_count, loading->group_count,
                  loading->size_total, seconds, (double)loading->member_count / divisor,
                  (double)loading->effect_count / divisor);
    }
    persistence_load_end(persistence);
    persistence->state->is_loading = false;
    persistence_publish(persistence);
    /* After a clock reset: no board may be in a period that has not begun. */
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
    return true;
}

/* The server must not run with only a part of the boards. */
static void persistence_load_refuse_to_start(struct persistence *persistence, const char *error) {
    log_write(LOG_WARNING, "cannot start: %s", error);
    persistence_stop_at_once(persistence, "%s", error);
    persistence_publish(persistence);
}

/* true: there is more to do at once. */
bool persistence_load_step(struct persistence *persistence) {
    char error[PERSISTENCE_ERROR_MAX];
    int64_t now_ms = persistence->clock->monotonic_ms;
    switch (loading_step(persistence->loading, LOAD_BUDGET_NS)) {
    case LOADING_MORE:
        if (now_ms - persistence->progress_ms >= PROGRESS_MS) {
            persistence->progress_ms = now_ms;
            const struct loading *loading = persistence->loading;
            struct persistence_info info;
            persistence_describe(persistence, &info);
            double seconds = persistence_seconds_since(persistence->loading_begin_us);
            log_write(LOG_NOTICE,
                      "loading: %.1f%% members=%llu effects=%llu members/s=%.0f remaining=%llds",
                      info.loading_percent, (unsigned long long)loading->member_count,
                      (unsigned long long)loading->effect_count,
                      seconds > 0 ? (double)loading->member_count / seconds : 0.0,
                      (long long)info.loading_eta_s);
        }
        return true;
    case LOADING_WAITS:
        return false;
    case LOADING_DONE:
        if (!persistence_load_finish(persistence, error)) {
            persistence_load_refuse_to_start(persistence, error);
        }
        return true;
    case LOADING_FAILED:
        persistence_load_refuse_to_start(persistence, persistence->loading->error);
    }
    return false;
}

/* ---- the interface ---- */

bool persistence_load_start(struct persistence *persistence, char *error) {
    struct loading *loading = loading_create(persistence->registry, &persistence->store,
                                             persistence_on_progress, persistence);
    if (loading == NULL) {
        snprintf(error, PERSISTENCE_ERROR_MAX, "out of memory");
        return false;
    }
    persistence->loading = loading;
    persistence->loading_begin_us = clock_monotonic_us();
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

void persistence_load_describe(const struct persistence *persistence,
                               struct persistence_info *info) {
    const struct loading *loading = persistence->loading;
    double seconds = persistence_seconds_since(persistence->loading_begin_us);
    double part =
        loading->size_total > 0 ? (double)loading->size_done / (double)loading->size_total : 0.0;
    info->loading_start_s = persistence->loading_start_s;
    info->loading_total_size = loading->size_total;
    info->loading_loaded_size = loading->size_done;
    info->loading_members = loading->member_count;
    info->loading_percent = part * 100.0;
    info->loading_eta_s = part > 0.0 ? (int64_t)(seconds * (1.0 - part) / part) + 1 : -1;
}
