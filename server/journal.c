/* The journal as the loop sees it. See journal.h for the whole.
 *
 * Invariant: while the writer is busy, writing, file, result (and rotated, the store when it
 * rotates) are its own. While the syncer is busy, the file stays open: rotation waits for it. */
#include "server/journal.h"

#include <errno.h>

#include "server/clock.h"
#include "server/log.h"

enum {
    FILLING_MIN = 4 * 1024 * 1024, /* what is not used of it is never touched */
    KEPT_MAX = 8 * 1024 * 1024,    /* of an empty buffer */
    WRITTEN_HERE_MAX = 128 * 1024, /* by the loop */
    HOLD_US_MAX = 500,
};

/* ---- gathering ---- */

static void lose(struct journal *journal, const char *what, int error) {
    journal->error = error;
    journal->lost(journal->context, what, error);
}

static void give_up_gathering(struct journal *journal, const char *what) {
    journal->has_group = false;
    lose(journal, what, ENOMEM);
}

static void begin_group(struct journal *journal) {
    struct buffer *filling = &journal->filling;
    journal->group_at = filling->size;
    if (filling->at == NULL) {
        (void)buffer_reserve(filling, FILLING_MIN);
    }
    if (buffer_reserve(filling, JOURNAL_GROUP_HEAD) != NULL) {
        buffer_commit(filling, JOURNAL_GROUP_HEAD);
    }
    effect_encode_begin(&journal->encoder, filling);
    journal->has_group = true;
}

void journal_hear(struct journal *journal, const struct effect *effect) {
    journal->effect_count++;
    if (journal->state != JOURNAL_WRITES && journal->state != JOURNAL_WAITS) {
        journal->has_group = true;
        return;
    }
    if (!journal->has_group) {
        begin_group(journal);
    }
    effect_encode(&journal->encoder, effect);
    journal->filling_count++;
}

/* The head is sealed by the writer: here it gets what only the loop knows. */
struct group_note {
    uint64_t sequence;
    uint64_t time_us;
    uint32_t size;
};

static void end_group(struct journal *journal, int64_t now_us) {
    journal->has_group = false;
    journal->group++;
    if (journal->state != JOURNAL_WRITES && journal->state != JOURNAL_WAITS) {
        return;
    }
    struct buffer *filling = &journal->filling;
    size_t size = filling->size - journal->group_at - JOURNAL_GROUP_HEAD;
    if (filling->is_broken) {
        give_up_gathering(journal, "no memory for the effects of a command");
    } else if (size > JOURNAL_GROUP_SIZE_MAX) {
        give_up_gathering(journal, "the effects of a command are too long for the journal");
    } else {
        struct group_note note = {
            .sequence = journal->group, .time_us = (uint64_t)now_us, .size = (uint32_t)size};
        memcpy(filling->at + journal->group_at, &note, sizeof note);
    }
}

size_t journal_waiting_size(const struct journal *journal) {
    return journal->filling.size + journal->writing.size;
}

/* ---- the writer's jobs ---- */

static uint64_t monotonic_us(void) {
    return uv_hrtime() / 1000;
}

static void seal_groups(struct journal *journal) {
    for (size_t at = 0; at < journal->writing.size;) {
        struct group_note note;
        memcpy(&note, journal->writing.at + at, sizeof note);
        journal_group_seal(journal->writing.at + at, note.size, note.sequence,
                           note.sequence - journal->writing_synced, note.time_us, journal->file.id);
        at += JOURNAL_GROUP_HEAD + (size_t)note.size;
    }
}

/* The heads were sealed over what the loop had noted in them. */
static void run_write(void *context) {
    struct journal *journal = context;
    struct journal_result *result = &journal->result;
    bool is_whole = true;
    *result = (struct journal_result){.kind = JOURNAL_JOB_WRITE};
    if (!journal_file_append(&journal->file, journal->writing.at, journal->writing.size,
                             &is_whole)) {
        result->error = errno;
        bool is_full = errno == ENOSPC || errno == EDQUOT || errno == EFBIG;
        result->status = is_whole && is_full ? JOURNAL_RESULT_FULL : JOURNAL_RESULT_LOST;
        return;
    }
    if (journal->policy == SETTING_APPENDFSYNC_ALWAYS) {
        uint64_t begin_us = monotonic_us();
        if (!disk_sync_contents(journal->file.fd)) {
            result->error = errno;
            result->status = JOURNAL_RESULT_LOST;
        }
        result->sync_us = monotonic_us() - begin_us;
    }
}

static void run_seal_and_write(void *context) {
    seal_groups(context);
    run_write(context);
}

/* The old file is synced as a whole before anything is written to the new one: only the last may
 * have a torn tail. */
static void run_rotate(void *context) {
    struct journal *journal = context;
    struct journal_result *result = &journal->result;
    struct store_state *state = &journal->rotated;
    struct journal_file file;
    char name[STORE_NAME_MAX];
    *result = (struct journal_result){.kind = JOURNAL_JOB_ROTATE};
    if (!disk_sync_contents(journal->file.fd)) {
        result->error = errno;
        result->status = JOURNAL_RESULT_LOST;
        return;
    }
    uint64_t number = state->journals[state->journal_count - 1].number;
    store_print_name(name, STORE_JOURNAL, number);
    if (!journal_file_create(&file, journal->store->directory, name, journal->written_group + 1)) {
        result->error = errno;
        result->status = JOURNAL_RESULT_FULL;
        return;
    }
    enum store_set_status status = store_set(journal->store, state);
    if (status != STORE_SET) {
        result->error = errno;
        journal_file_close(&file);
        /* Were the new file the last one after a restart, what goes on into the old one would be
         * behind it. */
        result->status = status == STORE_SET_FAILED ? JOURNAL_RESULT_FULL : JOURNAL_RESULT_LOST;
        if (status == STORE_SET_FAILED) {
            (void)store_remove(journal->store, STORE_JOURNAL, number);
        }
        return;
    }
    journal_file_close(&journal->file);
    journal->file = file;
}

static void run_sync(void *context) {
    struct journal *journal = context;
    uint64_t begin_us = monotonic_us();
    journal->sync_result.error = disk_sync_contents(journal->file.fd) ? 0 : errno;
    journal->sync_result.sync_us = monotonic_us() - begin_us;
}

/* ---- the loop's side of them ---- */

static void note_sync_time(struct journal *journal, uint64_t sync_us) {
    if (sync_us > journal->sync_longest_us) {
        journal->sync_longest_us = sync_us;
    }
}

/* An empty buffer that has grown large for once is not kept. */
static void empty(struct buffer *buffer) {
    buffer_clear(buffer);
    if (buffer->capacity > KEPT_MAX) {
        buffer_deinit(buffer);
    }
}

static bool begin_rotation(struct journal *journal) {
    struct store_state *state = &journal->rotated;
    *state = journal->store->state;
    if (state->journal_count == STORE_JOURNALS_MAX) {
        return false;
    }
    state->journals[state->journal_count++] = (struct store_journal){
        .number = store_take_number(journal->store), .first_sequence = journal->written_group + 1};
    worker_start(&journal->writer, run_rotate);
    return true;
}

/* A sync has answered many clients, who will be back in a moment: one sync for all of them is worth
 * more than one at once for the few that came meanwhile, and another one for the rest. For no
 * longer than the sync itself took. */
static bool is_worth_holding(const struct journal *journal) {
    return journal->policy == SETTING_APPENDFSYNC_ALWAYS &&
           journal->filling_count < journal->writing_count &&
           monotonic_us() < journal->hold_until_us;
}

static void take_batch(struct journal *journal) {
    struct buffer spare = journal->writing;
    journal->writing = journal->filling;
    journal->filling = spare;
    journal->writing_count = journal->filling_count;
    journal->filling_count = 0;
    journal->writing_group = journal->group;
    journal->writing_synced = journal->synced_group;
}

/* Of two syncs of a file that run at the same time, one may be told of the failure that the other
 * was to hear of. With always the writer syncs, so it waits for a sync that everysec has begun. */
static bool is_sync_in_the_way(const struct journal *journal) {
    return journal->policy == SETTING_APPENDFSYNC_ALWAYS && journal->syncer.is_busy;
}

/* Give the writer what there is to do. */
static void go_on(struct journal *journal) {
    journal->is_holding = false;
    if (journal->state != JOURNAL_WRITES || journal->writer.is_busy || journal->is_stalled ||
        is_sync_in_the_way(journal)) {
        return;
    }
    if (journal->is_rotation_asked && journal->writing.size == 0) {
        if (journal->syncer.is_busy) {
            return;
        }
        journal->is_rotation_asked = false;
        if (begin_rotation(journal)) {
            return;
        }
        /* So many snapshots have failed, each with a journal begun for it. The next one makes do
         * with the file that there is, and takes the others' place. */
        journal->rotated_to(journal->context, true);
    }
    if (journal->filling.size == 0 || journal->has_group) {
        return; /* at the end of the tick */
    }
    journal->is_holding = is_worth_holding(journal);
    if (!journal->is_holding) {
        take_batch(journal);
        worker_start(&journal->writer, run_seal_and_write);
    }
}

static void finish_write(struct journal *journal) {
    journal->file_size_sum += journal->writing.size;
    empty(&journal->writing);
    if (journal->is_stalled) {
        log_write(LOG_NOTICE, "journal: the disk takes what is written again");
        journal->is_stalled = false;
    }
    journal->written_group = journal->writing_group;
    if (journal->policy == SETTING_APPENDFSYNC_ALWAYS) {
        journal->synced_group = journal->writing_group;
        note_sync_time(journal, journal->result.sync_us);
        uint64_t hold_us = journal->result.sync_us;
        journal->hold_until_us = monotonic_us() + (hold_us < HOLD_US_MAX ? hold_us : HOLD_US_MAX);
    }
}

static void finish_rotation(struct journal *journal) {
    bool is_done = journal->result.status == JOURNAL_RESULT_OK;
    if (is_done) {
        journal->synced_group = journal->written_group;
        journal->file_size_sum += JOURNAL_FILE_HEAD;
    } else {
        log_write(LOG_WARNING, "journal: cannot begin a new file, the old one goes on: %s",
                  strerror(journal->result.error));
    }
    journal->rotated_to(journal->context, is_done);
}

static void on_written(void *context) {
    struct journal *journal = context;
    const struct journal_result *result = &journal->result;
    bool is_write = result->kind == JOURNAL_JOB_WRITE;
    if (result->status == JOURNAL_RESULT_LOST) {
        lose(journal, is_write ? "cannot write" : "cannot change the manifest", result->error);
        if (!is_write) {
            journal->rotated_to(journal->context, false);
        }
        return;
    }
    if (!is_write) {
        finish_rotation(journal);
    } else if (result->status == JOURNAL_RESULT_FULL) {
        journal->error = result->error;
        if (!journal->is_stalled) {
            log_write(LOG_WARNING,
                      "journal: the disk does not take what was written, trying again: %s "
                      "waiting=%zu",
                      strerror(result->error), journal_waiting_size(journal));
        }
        journal->is_stalled = true;
    } else {
        finish_write(journal);
    }
    go_on(journal);
    journal->changed(journal->context);
}

static void on_synced(void *context) {
    struct journal *journal = context;
    if (journal->sync_result.error != 0) {
        lose(journal, "cannot sync", journal->sync_result.error);
        return;
    }
    note_sync_time(journal, journal->sync_result.sync_us);
    if (journal->synced_group < journal->syncing_group) {
        journal->synced_group = journal->syncing_group;
    }
    go_on(journal); /* a rotation may have waited */
    journal->changed(journal->context);
}

/* ---- the interface ---- */

bool journal_init(struct journal *journal, uv_loop_t *loop) {
    journal->file.fd = -1;
    buffer_init(&journal->filling, 0);
    buffer_init(&journal->writing, 0);
    return worker_init(&journal->writer, loop, WORKER_AS_THE_LOOP, on_written, journal) &&
           worker_init(&journal->syncer, loop, WORKER_AS_THE_LOOP, on_synced, journal);
}

void journal_deinit(struct journal *journal) {
    if (journal->state == JOURNAL_WRITES && !journal->has_group) {
        (void)!journal_flush(journal, true);
    }
    journal->state = JOURNAL_OFF; /* nothing is begun any more */
    worker_deinit(&journal->writer);
    worker_deinit(&journal->syncer);
    journal_file_close(&journal->file);
    buffer_deinit(&journal->filling);
    buffer_deinit(&journal->writing);
}

static void close_group(struct journal *journal, int64_t now_us, enum setting_appendfsync policy) {
    if (!journal->writer.is_busy) {
        journal->policy = policy;
    }
    if (journal->has_group) {
        end_group(journal, now_us);
    }
}

void journal_end_group(struct journal *journal, int64_t now_us, enum setting_appendfsync policy) {
    close_group(journal, now_us, policy);
    go_on(journal);
}

/* Is it a small batch, and nothing else to be done with the file? While a sync is under way a write
 * could have to wait for it. */
static bool is_written_here(const struct journal *journal) {
    return journal->state == JOURNAL_WRITES && journal->policy != SETTING_APPENDFSYNC_ALWAYS &&
           !journal->writer.is_busy && !journal->syncer.is_busy && !journal->is_stalled &&
           !journal->is_rotation_asked && journal->filling.size > 0 &&
           journal->filling.size <= WRITTEN_HERE_MAX;
}

void journal_end_tick(struct journal *journal, int64_t now_us, enum setting_appendfsync policy) {
    close_group(journal, now_us, policy);
    if (is_written_here(journal)) {
        take_batch(journal);
        run_seal_and_write(journal);
        on_written(journal);
    } else {
        go_on(journal);
    }
}

/* The batch that found the disk full; it is sealed. */
static void try_again(struct journal *journal) {
    worker_start(&journal->writer, run_write);
}

void journal_second(struct journal *journal) {
    if (journal->state != JOURNAL_WRITES) {
        return;
    }
    if (journal->is_stalled && !journal->writer.is_busy && !is_sync_in_the_way(journal)) {
        try_again(journal);
    }
    if (journal->policy == SETTING_APPENDFSYNC_ALWAYS && journal->writer.is_busy) {
        return; /* it syncs what was written before, too */
    }
    /* With always there is something to sync only after it has been set. */
    bool is_due =
        journal->policy != SETTING_APPENDFSYNC_NO && journal->synced_group < journal->written_group;
    bool is_rotating = journal->writer.is_busy && journal->writer.run == run_rotate;
    if (is_due && (journal->syncer.is_busy || is_rotating)) {
        journal->delayed_sync_count++;
    } else if (is_due) {
        journal->syncing_group = journal->written_group;
        worker_start(&journal->syncer, run_sync);
    }
}

void journal_begin(struct journal *journal) {
    CHECK(journal->state == JOURNAL_OFF || journal->state == JOURNAL_BROKEN);
    CHECK(!journal->has_group);
    journal->state = JOURNAL_WAITS;
}

/* Forget what is gathered, and the file. */
static void let_go(struct journal *journal, enum journal_state state) {
    CHECK(!journal->writer.is_busy && !journal->syncer.is_busy);
    journal->state = state;
    journal->is_stalled = false;
    journal->is_rotation_asked = false;
    buffer_deinit(&journal->filling);
    buffer_deinit(&journal->writing);
    journal_file_close(&journal->file);
    journal->file.fd = -1;
}

void journal_end(struct journal *journal) {
    worker_wait(&journal->writer);
    worker_wait(&journal->syncer);
    let_go(journal, JOURNAL_OFF);
}

void journal_break(struct journal *journal) {
    journal->state = JOURNAL_BROKEN; /* so that nothing is begun any more */
    journal_end(journal);
    journal->state = JOURNAL_BROKEN;
}

void journal_take_file(struct journal *journal, const struct journal_file *file) {
    CHECK(journal->state != JOURNAL_WRITES && journal->file.fd == -1);
    journal->file = *file;
    journal->file_size_sum = file->size;
    journal->state = JOURNAL_WRITES;
    go_on(journal);
}

void journal_rotate(struct journal *journal) {
    CHECK(journal->state == JOURNAL_WRITES);
    journal->is_rotation_asked = true;
    go_on(journal);
}

void journal_note_base(struct journal *journal, uint64_t group) {
    if (journal->written_group < group) {
        journal->written_group = group;
    }
    if (journal->synced_group < group) {
        journal->synced_group = group;
    }
}

/* Write all that is gathered. What is gathered waits for a rotation, and that for the syncer. */
static bool flush_writes(struct journal *journal) {
    journal->hold_until_us = 0;
    worker_wait(&journal->syncer);
    worker_wait(&journal->writer);
    if (journal->state == JOURNAL_WRITES && journal->is_stalled) {
        try_again(journal);
        worker_wait(&journal->writer);
    }
    go_on(journal);
    worker_wait(&journal->writer);
    return journal->state == JOURNAL_WRITES && !journal->is_stalled;
}

bool journal_flush(struct journal *journal, bool is_synced) {
    CHECK(!journal->has_group);
    if (!flush_writes(journal)) {
        return false;
    }
    if (is_synced && journal->synced_group < journal->written_group) {
        journal->syncing_group = journal->written_group;
        worker_start(&journal->syncer, run_sync);
        worker_wait(&journal->syncer);
    }
    return journal->state == JOURNAL_WRITES;
}
