/* The loop's side of the journal. See journal.h for an overview.
 *
 * Invariant: while the writer is busy it owns writing, file and result (and rotated and the store
 * during a rotation). While the syncer is busy the file stays open: a rotation waits for it. */
#include "server/durability/journal.h"

#include <errno.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "codec/memory.h"
#include "server/system/clock.h"
#include "server/system/log.h"

enum {
    FILLING_MIN = 4 * 1024 * 1024, /* pages that are not used are never touched */
    KEPT_MAX = 8 * 1024 * 1024,    /* capacity kept in an empty buffer */
#ifdef SERVER_TINY
    GROUP_LONG = 100,
    FILLING_MAX = 400,
    FILLING_STALLED_MAX = 4000,
#else
    GROUP_LONG = 896 * 1024, /* a longer one is linked to the next; < JOURNAL_READ_SIZE */
    FILLING_MAX = FILLING_MIN - 128 * 1024,              /* plus one effect */
    FILLING_STALLED_MAX = 64 * 1024 * 1024 - 128 * 1024, /* of a full disk, plus one effect */
#endif
    WRITTEN_HERE_MAX = 128 * 1024, /* by the loop */
    HOLD_US_MAX = 500,
    DIRTY_ROOM_MIN = 64,
    DIRTY_KEYS_MAX = 65536, /* with more, all keys count as changed */
};

static void journal_tell_tap(struct journal *journal, const struct journal_group_head *head,
                             const char *payload) {
    if (journal->tap != NULL) {
        journal->tap(journal->tap_context, head, payload);
    }
}

static void journal_lose(struct journal *journal, enum journal_loss loss, const char *what,
                         int error) {
    if (journal->state == JOURNAL_OFF) {
        return; /* not needed any more */
    }
    if (journal->state != JOURNAL_LOST || loss == JOURNAL_LOSS_OF_DISK) {
        journal->loss = loss;
        journal->what = what;
        journal->error = error;
    }
    journal->state = JOURNAL_LOST;
    journal->rotation = JOURNAL_ROTATION_NONE;
    if (journal->is_growing) {
        journal_tell_tap(journal, NULL, NULL);
    }
    journal->is_growing = false;
}

/* ---- keys whose changes a full disk does not take ---- */

/* Is it known which these are? */
static bool journal_dirty_is_known(const struct journal *journal) {
    return journal->is_stalled && journal->dirty_stall == journal->stall_count;
}

uint64_t journal_dirty_key(uint32_t database, struct bytes name) {
    uint64_t hash = XXH3_64bits_withSeed(name.at, name.size, database);
    return hash != 0 ? hash : 1;
}

static void journal_dirty_clear(struct journal_dirty *dirty) {
    memory_free(dirty->slots);
    *dirty = (struct journal_dirty){.slots = NULL};
}

/* The key's slot, or the free one that it would take. */
static uint64_t *journal_dirty_find_slot(const struct journal_dirty *dirty, uint64_t key) {
    uint32_t at = (uint32_t)key & (dirty->room - 1);
    while (dirty->slots[at] != 0 && dirty->slots[at] != key) {
        at = (at + 1) & (dirty->room - 1);
    }
    return &dirty->slots[at];
}

/* false: no memory, or too many. */
static bool journal_dirty_make_room(struct journal_dirty *dirty) {
    struct journal_dirty larger = *dirty;
    if (2 * dirty->count < dirty->room) {
        return true;
    }
    larger.room = dirty->room > 0 ? 2 * dirty->room : DIRTY_ROOM_MIN;
    larger.slots = dirty->count < DIRTY_KEYS_MAX
                       ? memory_allocate_zeroed(larger.room * sizeof *larger.slots)
                       : NULL;
    if (larger.slots == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < dirty->room; i++) {
        if (dirty->slots[i] != 0) {
            *journal_dirty_find_slot(&larger, dirty->slots[i]) = dirty->slots[i];
        }
    }
    memory_free(dirty->slots);
    *dirty = larger;
    return true;
}

static void journal_dirty_add_key(struct journal_dirty *dirty, uint32_t database,
                                  struct bytes name) {
    if (dirty->has_all || !journal_dirty_make_room(dirty)) {
        dirty->has_all = true;
        return;
    }
    uint64_t key = journal_dirty_key(database, name);
    uint64_t *slot = journal_dirty_find_slot(dirty, key);
    dirty->count += *slot == 0;
    *slot = key;
}

static void journal_dirty_add_effect(struct journal_dirty *dirty, const struct effect *effect) {
    bool is_staged = effect->database == REGISTRY_STAGING;
    if (effect->database == REGISTRY_HISTORY || effect->database == REGISTRY_ONCE ||
        effect->database == REGISTRY_TICKETS || (is_staged && effect->kind != EFFECT_RENAME)) {
        return; /* no command that only reads shows it */
    }
    switch (effect->kind) {
    case EFFECT_PUT:
    case EFFECT_TAKE:
    case EFFECT_CUT:
    case EFFECT_OPTIONS:
    case EFFECT_TAGS:
    case EFFECT_STATE:
    case EFFECT_NOTE:
        break;
    case EFFECT_RENAME:
    case EFFECT_COPY:
        journal_dirty_add_key(dirty, effect->to_database, effect->to_name);
        dirty->has_names = true;
        if (is_staged) {
            return;
        }
        break;
    case EFFECT_FLUSH:
        dirty->has_all = true;
        dirty->has_names = true;
        return;
    case EFFECT_CREATE:
    case EFFECT_REMOVE:
    case EFFECT_EXPIRE:
    case EFFECT_FILL:
        dirty->has_names = true;
    }
    dirty->has_names |= effect->database >= REGISTRY_SYSTEM;
    journal_dirty_add_key(dirty, effect->database, effect->name);
}

static void journal_dirty_add_group(struct journal_dirty *dirty, struct bytes payload) {
    struct effect_decoder *decoder = memory_allocate(sizeof *decoder);
    enum effect_record record = EFFECT_RECORD_BAD;
    if (decoder != NULL) {
        effect_bytes_decode_begin(decoder, payload);
        while ((record = effect_bytes_decode(decoder)) == EFFECT_RECORD_EFFECT) {
            journal_dirty_add_effect(dirty, &decoder->effect);
        }
    }
    if (record != EFFECT_RECORD_END) {
        dirty->has_all = true;
        dirty->has_names = true;
    }
    memory_free(decoder);
}

/* ---- buffering ---- */

/* Complete the open group. Its head is sealed by the writer, which knows what is synced. A linked
 * group has time_us 0: the next one holds the time. It is completed only when another effect
 * follows, so that the last group of a tick is never empty. */
static void journal_complete_group(struct journal *journal, uint64_t time_us, bool is_linked) {
    struct buffer *filling = &journal->filling;
    journal->group++;
    journal->is_growing = false;
    if (filling->is_broken) {
        journal_tell_tap(journal, NULL, NULL);
        journal_lose(journal, JOURNAL_LOSS_OF_EFFECTS, "no memory for the effects of a command",
                     ENOMEM);
        if (journal->state == JOURNAL_OFF) {
            buffer_clear(filling);
        }
        return;
    }
    const struct journal_group_head head = {
        .sequence = journal->group,
        .time_us = time_us,
        .size = (uint32_t)(filling->size - journal->group_at - JOURNAL_GROUP_HEAD),
        .is_linked = is_linked,
    };
    _Static_assert(sizeof head <= JOURNAL_GROUP_HEAD, "it stays there until the group is sealed");
    journal_tell_tap(journal, &head, filling->at + journal->group_at + JOURNAL_GROUP_HEAD);
    if (journal_keeps(journal)) {
        memcpy(filling->at + journal->group_at, &head, sizeof head);
    } else {
        buffer_cut(filling, journal->group_at);
    }
}

void journal_add_group(struct journal *journal, const struct journal_group_head *head,
                       const char *payload) {
    struct buffer *filling = &journal->filling;
    CHECK(!journal->has_group && head->sequence == journal->group + 1);
    if (journal_dirty_is_known(journal)) {
        journal_dirty_add_group(&journal->dirty, (struct bytes){.at = payload, .size = head->size});
    }
    journal->group = head->sequence;
    journal_tell_tap(journal, head, payload);
    if (journal_keeps(journal)) {
        char *at = buffer_reserve(filling, JOURNAL_GROUP_HEAD + (size_t)head->size);
        if (at == NULL) {
            journal_lose(journal, JOURNAL_LOSS_OF_EFFECTS, "no memory for a group of the master",
                         ENOMEM);
        } else {
            memcpy(at, head, sizeof *head);
            memcpy(at + JOURNAL_GROUP_HEAD, payload, head->size);
            buffer_commit(filling, JOURNAL_GROUP_HEAD + (size_t)head->size);
            journal->filling_count++;
        }
    }
    if (!head->is_linked) {
        journal->ended_group = journal->group;
        journal->ended_size = filling->size;
    }
}

bool journal_add_effect(struct journal *journal, const struct effect *effect) {
    if (journal_dirty_is_known(journal)) {
        journal_dirty_add_effect(&journal->dirty, effect);
    }
    journal->has_group = true;
    if (journal->is_growing && journal->filling.size - journal->group_at >= GROUP_LONG) {
        journal_complete_group(journal, 0, true);
    }
    if (!journal_gathers(journal)) {
        return false;
    }
    if (!journal->is_growing) {
        struct buffer *filling = &journal->filling;
        journal->group_at = filling->size;
        if (filling->at == NULL) {
            (void)buffer_reserve(filling, FILLING_MIN);
        }
        if (buffer_reserve(filling, JOURNAL_GROUP_HEAD) != NULL) {
            buffer_commit(filling, JOURNAL_GROUP_HEAD);
        }
        effect_bytes_encode_begin(&journal->encoder, filling);
        journal->is_growing = true;
    }
    effect_bytes_encode(&journal->encoder, effect);
    journal->filling_count++;
    return journal->state != JOURNAL_LOST;
}

bool journal_is_full(const struct journal *journal) {
    return journal_keeps(journal) &&
           journal->filling.size >= (journal->is_stalled ? FILLING_STALLED_MAX : FILLING_MAX);
}

uint64_t journal_gathered_size(const struct journal *journal) {
    return journal->taken_size + journal->filling.size;
}

size_t journal_waiting_size(const struct journal *journal) {
    return journal->filling.size + journal->writing.size;
}

void journal_find_dirty(struct journal *journal) {
    const struct buffer *filling = &journal->filling;
    struct journal_dirty *dirty = &journal->dirty;
    size_t end = journal->is_growing ? journal->group_at : filling->size;
    struct journal_group_head head;
    if (journal_dirty_is_known(journal)) {
        return;
    }
    journal_dirty_clear(dirty);
    for (size_t at = 0; at < journal->writing.size; at += JOURNAL_GROUP_HEAD + (size_t)head.size) {
        const char *group = journal->writing.at + at;
        journal_file_read_group_head(group, journal->file.id, &head);
        journal_dirty_add_group(
            dirty, (struct bytes){.at = group + JOURNAL_GROUP_HEAD, .size = head.size});
    }
    for (size_t at = 0; at < end; at += JOURNAL_GROUP_HEAD + (size_t)head.size) {
        const char *group = filling->at + at;
        memcpy(&head, group, sizeof head); /* it is not sealed yet */
        journal_dirty_add_group(
            dirty, (struct bytes){.at = group + JOURNAL_GROUP_HEAD, .size = head.size});
    }
    if (journal->is_growing) {
        size_t begin = journal->group_at + JOURNAL_GROUP_HEAD;
        journal_dirty_add_group(
            dirty, (struct bytes){.at = filling->at + begin, .size = filling->size - begin});
    }
    journal->dirty_stall = journal->stall_count;
}

bool journal_is_dirty(const struct journal *journal, uint64_t key) {
    const struct journal_dirty *dirty = &journal->dirty;
    return dirty->has_all || (dirty->count > 0 && *journal_dirty_find_slot(dirty, key) == key);
}

/* ---- the writer's jobs ---- */

static void journal_fail_job(struct journal *journal, enum journal_job_status status,
                             const char *what) {
    journal->result.error = errno;
    journal->result.status = status;
    journal->result.what = what;
}

/* Is the last group in the file linked to the next? Only while the writer is idle, or by it. */
static bool journal_is_linked(const struct journal *journal) {
    return journal->file.kept_size < journal->file.size;
}

/* Also to retry a batch, which is sealed already. */
static void journal_run_write(void *context) {
    struct journal *journal = context;
    struct journal_result *result = &journal->result;
    struct journal_file *file = &journal->file;
    bool is_whole = true;
    bool was_linked = journal_is_linked(journal);
    *result = (struct journal_result){.status = JOURNAL_RESULT_OK};
    file->makes_room = journal->policy == SETTING_APPENDFSYNC_ALWAYS;
    if (!journal_file_append(file, journal->writing.at, journal->writing.size,
                             journal->writing_ended, &is_whole)) {
        bool is_full = is_whole && (errno == ENOSPC || errno == EDQUOT || errno == EFBIG);
        journal_fail_job(journal,
                         !is_full     ? JOURNAL_RESULT_LOST
                         : was_linked ? JOURNAL_RESULT_CUT
                                      : JOURNAL_RESULT_FULL,
                         is_full
                             ? "the disk is full, and the effects of a command are too long to wait"
                             : "cannot write");
        return;
    }
    if (journal->policy != SETTING_APPENDFSYNC_ALWAYS) {
        file->answered_size = file->kept_size;
        return;
    }
    /* Is the last group of the batch linked to one that does not exist yet? */
    if (journal->writing_ended < journal->writing.size) {
        return; /* nobody waits for a sync of incomplete linked groups */
    }
    uint64_t begin_us = clock_monotonic_us();
    if (disk_sync_contents(file->fd)) {
        file->answered_size = file->kept_size;
    } else {
        journal_fail_job(journal, JOURNAL_RESULT_LOST, "cannot sync");
        journal_file_cut_unanswered(file);
    }
    result->sync_us = clock_monotonic_us() - begin_us;
}

static void journal_run_seal_and_write(void *context) {
    struct journal *journal = context;
    for (size_t at = 0; at < journal->writing.size;) {
        struct journal_group_head head;
        memcpy(&head, journal->writing.at + at, sizeof head);
        head.unsynced = head.sequence - journal->writing_synced;
        journal_file_seal_group(journal->writing.at + at, &head, journal->file.id);
        at += JOURNAL_GROUP_HEAD + (size_t)head.size;
    }
    journal_run_write(journal);
}

/* The old file is synced as a whole before anything is written to the new one: only the last
 * journal may have a torn tail. */
static void journal_run_rotate(void *context) {
    struct journal *journal = context;
    struct store_state *state = &journal->rotated;
    struct journal_file file;
    journal->result = (struct journal_result){.status = JOURNAL_RESULT_OK};
    if (!journal_file_cut_room(&journal->file)) {
        journal_fail_job(journal, JOURNAL_RESULT_FULL, "cannot cut it");
        return;
    }
    if (!disk_sync_contents(journal->file.fd)) {
        journal_fail_job(journal, JOURNAL_RESULT_LOST, "cannot sync");
        return;
    }
    uint64_t number = state->journals[state->journal_count - 1].number;
    if (!journal_file_create(&file, journal->store->directory,
                             store_name(STORE_JOURNAL, number).text, journal->written_group + 1)) {
        journal_fail_job(journal, JOURNAL_RESULT_FULL, "cannot make its file");
        return;
    }
    enum store_set_status status = store_set(journal->store, state);
    if (status != STORE_SET) {
        /* STORE_SET_UNKNOWN: a restart may find the new file as the last one, so nothing more may
         * be appended to the old file. */
        journal_fail_job(journal,
                         status == STORE_SET_FAILED ? JOURNAL_RESULT_FULL : JOURNAL_RESULT_LOST,
                         "cannot change the manifest");
        journal_file_close(&file);
        if (status == STORE_SET_FAILED) {
            (void)store_remove(journal->store, STORE_JOURNAL, number);
        }
        return;
    }
    journal_file_close(&journal->file);
    journal->file = file;
}

static void journal_run_sync(void *context) {
    struct journal *journal = context;
    uint64_t begin_us = clock_monotonic_us();
    journal->sync_result.error = disk_sync_contents(journal->file.fd) ? 0 : errno;
    journal->sync_result.sync_us = clock_monotonic_us() - begin_us;
}

/* ---- the loop's side of the jobs ---- */

static void journal_note_sync_time(struct journal *journal, uint64_t sync_us) {
    if (sync_us > journal->sync_longest_us) {
        journal->sync_longest_us = sync_us;
    }
    durations_add(&journal->syncs, sync_us * 1000);
}

/* Before the writer's next job, which owns the file. */
static void journal_end_rotation(struct journal *journal) {
    journal->rotation = JOURNAL_ROTATION_DONE;
    journal->rotated_size = journal->file_size_sum - journal->file.size;
}

/* If there is no room for a file, that many snapshots have failed, each after a journal was begun
 * for it: the next one uses the current file and replaces them all. */
static void journal_begin_rotation(struct journal *journal) {
    struct store_state *state = &journal->rotated;
    *state = journal->store->state;
    if (state->journal_count >= STORE_JOURNALS_MAX - 1) { /* one more for a start */
        journal_end_rotation(journal);
        return;
    }
    journal->rotation = JOURNAL_ROTATION_RUNS;
    state->journals[state->journal_count++] = (struct store_journal){
        .number = store_take_number(journal->store), .first_sequence = journal->written_group + 1};
    worker_start(&journal->writer, journal_run_rotate);
}

static void journal_take_batch(struct journal *journal) {
    struct buffer spare = journal->writing;
    journal->taken_size += journal->filling.size;
    journal->writing = journal->filling;
    journal->filling = spare;
    journal->writing_count = journal->filling_count;
    journal->filling_count = 0;
    journal->writing_ended = journal->ended_size;
    journal->ended_size = 0;
    journal->writing_group = journal->ended_group;
    journal->writing_synced = journal->synced_group;
}

/* When two syncs of a file run at the same time, an error may be reported to only one of them. With
 * appendfsync always the writer syncs, so it waits for a running everysec sync. */
static bool journal_is_sync_in_the_way(const struct journal *journal) {
    return journal->policy == SETTING_APPENDFSYNC_ALWAYS && journal->syncer.is_busy;
}

/* The writer owns the policy while it is busy. */
static void journal_follow_policy(struct journal *journal) {
    if (!journal->writer.is_busy) {
        journal->policy = journal->policy_next;
    }
}

static void journal_write_batch(struct journal *journal) {
    journal_take_batch(journal);
    worker_start(&journal->writer, journal_run_seal_and_write);
}

/* Give the writer its next job, if there is one. true: the batch is held back. */
static bool journal_go_on(struct journal *journal) {
    journal_follow_policy(journal);
    if (journal->state != JOURNAL_WRITES || journal->writer.is_busy || journal->is_stalled ||
        journal_is_sync_in_the_way(journal)) {
        return false;
    }
    if (journal->rotation == JOURNAL_ROTATION_ASKED && journal->writing.size == 0 &&
        !journal_is_linked(journal)) {
        if (!journal->syncer.is_busy) {
            journal_begin_rotation(journal);
        }
        if (journal->rotation != JOURNAL_ROTATION_DONE) {
            return false;
        }
    }
    if (journal->filling.size == 0 || journal->has_group) {
        return false; /* the end of the tick does it */
    }
    /* A sync has answered many clients, which will send their next commands in a moment. One
     * sync for all of them is better than one now for the few effects that have arrived and
     * another for the rest. Wait no longer than the last sync took. */
    if (journal->policy == SETTING_APPENDFSYNC_ALWAYS &&
        journal->rotation != JOURNAL_ROTATION_ASKED &&
        journal->filling_count < journal->writing_count &&
        clock_monotonic_us() < journal->hold_until_us) {
        return true;
    }
    journal_write_batch(journal);
    return false;
}

static void journal_finish_write(struct journal *journal) {
    journal->file_size_sum += journal->writing.size;
    /* Empty a buffer; do not keep one that has grown large. */
    struct buffer *buffer = &journal->writing;
    buffer_clear(buffer);
    if (buffer->capacity > KEPT_MAX) {
        buffer_deinit(buffer);
    }
    if (journal->is_stalled) {
        log_write(LOG_NOTICE, "journal: the disk takes what is written again");
        journal->is_stalled = false;
    }
    journal->written_group = journal->writing_group;
    if (journal->policy == SETTING_APPENDFSYNC_ALWAYS && !journal_is_linked(journal)) {
        journal->synced_group = journal->writing_group;
        journal_note_sync_time(journal, journal->result.sync_us);
        uint64_t hold_us = journal->result.sync_us;
        journal->hold_until_us =
            clock_monotonic_us() + (hold_us < HOLD_US_MAX ? hold_us : HOLD_US_MAX);
    }
}

static void journal_on_written(void *context) {
    struct journal *journal = context;
    const struct journal_result *result = &journal->result;
    if (result->status == JOURNAL_RESULT_LOST || result->status == JOURNAL_RESULT_CUT) {
        bool is_cut = result->status == JOURNAL_RESULT_CUT;
        journal_lose(journal, is_cut ? JOURNAL_LOSS_OF_EFFECTS : JOURNAL_LOSS_OF_DISK, result->what,
                     result->error);
    } else if (journal->rotation == JOURNAL_ROTATION_RUNS) {
        bool is_done = journal->result.status == JOURNAL_RESULT_OK;
        journal->rotation = JOURNAL_ROTATION_FAILED;
        if (is_done) {
            journal->synced_group = journal->written_group;
            journal->file_size_sum += JOURNAL_FILE_HEAD;
            journal_end_rotation(journal);
        } else {
            log_write(LOG_WARNING, "journal: %s, the old one goes on: %s", journal->result.what,
                      strerror(journal->result.error));
        }
    } else if (result->status == JOURNAL_RESULT_FULL) {
        journal->error = journal->result.error;
        if (!journal->is_stalled) {
            log_write(LOG_WARNING,
                      "journal: the disk does not take what was written, trying again: %s "
                      "waiting=%zu dir=%s advice=\"%s, and do not restart: it is tried each "
                      "second\"",
                      strerror(journal->error), journal_waiting_size(journal), journal->store->path,
                      journal->error == ENOSPC || journal->error == EDQUOT
                          ? "make room on this disk"
                          : "look at this disk");
            journal->stall_count++;
        }
        journal->is_stalled = true;
    } else {
        journal_finish_write(journal);
    }
    (void)journal_go_on(journal);
    journal->changed(journal->context);
}

static void journal_on_synced(void *context) {
    struct journal *journal = context;
    /* Then the writer waits for this sync: the file is not its own. */
    bool is_always = journal->policy == SETTING_APPENDFSYNC_ALWAYS && !journal->writer.is_busy;
    if (journal->sync_result.error != 0) {
        if (is_always) {
            journal_file_cut_unanswered(&journal->file);
        }
        journal_lose(journal, JOURNAL_LOSS_OF_DISK, "cannot sync", journal->sync_result.error);
    } else {
        if (is_always) {
            journal->file.answered_size = journal->file.kept_size;
        }
        journal_note_sync_time(journal, journal->sync_result.sync_us);
        if (journal->synced_group < journal->syncing_group) {
            journal->synced_group = journal->syncing_group;
        }
    }
    (void)journal_go_on(journal); /* a rotation may be waiting */
    journal->changed(journal->context);
}

/* ---- the interface ---- */

bool journal_init(struct journal *journal, uv_loop_t *loop) {
    journal->file.fd = -1;
    buffer_init(&journal->filling, 0);
    buffer_init(&journal->writing, 0);
    return worker_init(&journal->writer, loop, WORKER_AS_THE_LOOP, journal_on_written, journal) &&
           worker_init(&journal->syncer, loop, WORKER_AS_THE_LOOP, journal_on_synced, journal);
}

void journal_deinit(struct journal *journal) {
    journal_end(journal);
    worker_deinit(&journal->writer);
    worker_deinit(&journal->syncer);
    journal_dirty_clear(&journal->dirty);
}

static void journal_close_group(struct journal *journal, int64_t now_us,
                                enum setting_appendfsync policy) {
    journal->policy_next = policy;
    journal_follow_policy(journal);
    if (!journal->has_group) {
        return;
    }
    journal->has_group = false;
    if (journal->is_growing) {
        journal_complete_group(journal, (uint64_t)now_us, false);
    } else {
        journal->group++; /* for effects that are discarded */
        journal_tell_tap(journal, NULL, NULL);
    }
    journal->ended_group = journal->group;
    journal->ended_size = journal->filling.size;
}

void journal_end_group(struct journal *journal, int64_t now_us, enum setting_appendfsync policy) {
    journal_close_group(journal, now_us, policy);
    (void)journal_go_on(journal);
}

bool journal_end_tick(struct journal *journal, int64_t now_us, enum setting_appendfsync policy) {
    journal_close_group(journal, now_us, policy);
    /* A small batch is written here, with no other work on the file: during a sync the write might block. */
    bool is_written_here = journal->state == JOURNAL_WRITES &&
                           journal->policy != SETTING_APPENDFSYNC_ALWAYS &&
                           !journal->writer.is_busy && !journal->syncer.is_busy &&
                           !journal->is_stalled && journal->rotation != JOURNAL_ROTATION_ASKED &&
                           journal->filling.size > 0 && journal->filling.size <= WRITTEN_HERE_MAX;
    if (!is_written_here) {
        return journal_go_on(journal);
    }
    journal_take_batch(journal);
    journal_run_seal_and_write(journal);
    journal_on_written(journal);
    return false;
}

void journal_second(struct journal *journal) {
    if (journal->state != JOURNAL_WRITES) {
        return;
    }
    if (journal->is_stalled && !journal->writer.is_busy && !journal_is_sync_in_the_way(journal)) {
        worker_start(&journal->writer, journal_run_write);
    }
    if (journal->policy == SETTING_APPENDFSYNC_ALWAYS && journal->writer.is_busy) {
        return; /* it also syncs what was written before */
    }
    /* With always, unsynced groups exist only right after it was set. */
    bool is_due =
        journal->policy != SETTING_APPENDFSYNC_NO && journal->synced_group < journal->written_group;
    if (is_due && (journal->syncer.is_busy || journal->rotation == JOURNAL_ROTATION_RUNS)) {
        journal->delayed_sync_count++;
    } else if (is_due) {
        journal->syncing_group = journal->written_group;
        worker_start(&journal->syncer, journal_run_sync);
    }
}

void journal_make_room(struct journal *journal) {
    CHECK(journal->state == JOURNAL_WRITES);
    if (journal->is_stalled && !journal->writer.is_busy) {
        worker_wait(&journal->syncer);
        if (journal->state == JOURNAL_WRITES) {
            worker_start(&journal->writer, journal_run_write);
        }
    }
    /* Within a tick: hand over filling to make room for the effects that follow. The end of a sync may
     * give the writer a rotation, and the end of a job is when the policy changes: so both are waited
     * for until neither is in the way. */
    if (journal->is_growing) {
        journal_complete_group(journal, 0, true);
    }
    while (journal->writer.is_busy || journal_is_sync_in_the_way(journal)) {
        worker_wait(&journal->writer);
        if (journal_is_sync_in_the_way(journal)) {
            worker_wait(&journal->syncer);
        }
    }
    if (journal->state == JOURNAL_WRITES && !journal->is_stalled && journal->filling.size > 0) {
        journal_write_batch(journal);
    }
    if (journal->state == JOURNAL_WRITES && journal_is_full(journal)) {
        journal_lose(journal, JOURNAL_LOSS_OF_EFFECTS,
                     "the disk is full, and the effects of a command are too long to wait",
                     journal->error);
    }
}

void journal_begin(struct journal *journal) {
    CHECK(journal->state == JOURNAL_OFF && !journal->has_group);
    journal->state = JOURNAL_WAITS;
}

void journal_end(struct journal *journal) {
    if (journal->is_growing && journal->tap != NULL) {
        journal_complete_group(journal, 0, true); /* which the tap would miss */
    }
    journal->state = JOURNAL_OFF; /* no further job starts */
    worker_wait(&journal->writer);
    worker_wait(&journal->syncer);
    journal->is_stalled = false;
    journal->rotation = JOURNAL_ROTATION_NONE;
    journal->is_growing = false;
    journal->ended_size = 0;
    journal->filling_count = 0;
    journal->taken_size += journal->filling.size;
    buffer_deinit(&journal->filling);
    buffer_deinit(&journal->writing);
    journal_file_close(&journal->file);
}

void journal_take_file(struct journal *journal, const struct journal_file *file) {
    CHECK(journal->state == JOURNAL_OFF || journal->state == JOURNAL_WAITS);
    journal->state = JOURNAL_WRITES;
    journal->file = *file;
    journal->file_size_sum = file->size;
    (void)journal_go_on(journal);
}

void journal_rotate(struct journal *journal) {
    CHECK(journal->state == JOURNAL_WRITES && journal->rotation == JOURNAL_ROTATION_NONE);
    journal->rotation = JOURNAL_ROTATION_ASKED;
    (void)journal_go_on(journal);
}

void journal_cancel_rotation(struct journal *journal) {
    CHECK(journal->rotation == JOURNAL_ROTATION_ASKED);
    journal->rotation = JOURNAL_ROTATION_FAILED;
}

enum journal_outcome journal_take_outcome(struct journal *journal) {
    enum journal_rotation rotation = journal->rotation;
    if (journal->state == JOURNAL_LOST) {
        return JOURNAL_IS_LOST;
    }
    if (rotation != JOURNAL_ROTATION_DONE && rotation != JOURNAL_ROTATION_FAILED) {
        return JOURNAL_NOTHING;
    }
    journal->rotation = JOURNAL_ROTATION_NONE;
    return rotation == JOURNAL_ROTATION_DONE ? JOURNAL_ROTATED : JOURNAL_NOT_ROTATED;
}

void journal_go_to(struct journal *journal, uint64_t group) {
    CHECK(journal->state == JOURNAL_OFF && !journal->has_group);
    journal->group = group;
    journal->ended_group = group;
    journal->written_group = group;
    journal->synced_group = group;
}

bool journal_is_idle(const struct journal *journal) {
    return journal->filling.size == 0 && journal->writing.size == 0 && !journal->writer.is_busy &&
           !journal->syncer.is_busy;
}

void journal_note_base(struct journal *journal, uint64_t group) {
    if (journal->written_group < group) {
        journal->written_group = group;
    }
    if (journal->synced_group < group) {
        journal->synced_group = group;
    }
}

bool journal_flush(struct journal *journal, bool is_synced) {
    CHECK(!journal->has_group);
    /* Write everything that is buffered, batch after batch. A batch may be held back for others
     * (journal_is_worth_holding) or wait for a rotation, which in turn waits for the syncer. */
    worker_wait(&journal->syncer);
    worker_wait(&journal->writer);
    if (journal->state == JOURNAL_WRITES && journal->is_stalled) {
        worker_start(&journal->writer, journal_run_write);
        worker_wait(&journal->writer);
    }
    while (journal->state == JOURNAL_WRITES && !journal->is_stalled &&
           (journal->writer.is_busy || journal->filling.size > 0)) {
        journal->hold_until_us = 0;
        (void)journal_go_on(journal);
        worker_wait(&journal->writer);
    }
    if (journal->state != JOURNAL_WRITES || journal->is_stalled) {
        return false;
    }
    if (is_synced && journal->synced_group < journal->written_group) {
        journal->syncing_group = journal->written_group;
        worker_start(&journal->syncer, journal_run_sync);
        worker_wait(&journal->syncer);
    }
    return journal->state == JOURNAL_WRITES;
}
