/* The numbers of groups: what replication and replies that wait ask for. See persistence.h. */
#include "server/durability/persistence_parts.h"

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
    if (persistence_knows_unwritten(persistence)) {
        unwritten_add_group(&persistence->unwritten,
                            (struct bytes){.at = payload, .size = head->size});
    }
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
    for (uint32_t i = 0; i < REGISTRY_DATABASES; i++) {
        persistence->state->change_count += registry_count(keys, i);
    }
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

static void persistence_groups_add_waiting(void *context, struct bytes payload) {
    unwritten_add_group(context, payload);
}

bool persistence_is_stuck(struct persistence *persistence) {
    const struct journal *journal = &persistence->journal;
    /* With groups that are in the file and not synced, more is waited for than what is buffered. */
    if (!journal->is_stalled || persistence->journaling != ON ||
        journal->synced_group != journal->written_group ||
        !persistence_holds_readers(persistence)) {
        return false;
    }
    if (!persistence_knows_unwritten(persistence)) {
        unwritten_clear(&persistence->unwritten);
        journal_each_waiting(journal, persistence_groups_add_waiting, &persistence->unwritten);
        persistence->unwritten_stall = journal->stall_count;
    }
    return true;
}

bool persistence_is_unwritten(const struct persistence *persistence, uint64_t key) {
    return unwritten_has(&persistence->unwritten, key);
}

bool persistence_has_unwritten_names(const struct persistence *persistence) {
    return persistence->unwritten.has_names;
}

/* ---- describing ---- */

static void persistence_groups_describe_journal(const struct persistence *persistence,
                                                struct persistence_info *info) {
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
        persistence_describe_loading(persistence, info);
    }
    persistence_groups_describe_journal(persistence, info);
}
