/* The loop's side of the journal: effects are buffered, one group per tick, and a thread writes the
 * groups.
 *
 *     effects -> filling -> writing -> file
 *                (loop)     (thread: checksums, write, and with appendfsync always fdatasync)
 *
 * While one batch is written, the next one is buffered: one write, and one sync, serves the clients
 * of all ticks in the batch. With appendfsync everysec a second thread syncs once a second, so that
 * writes continue during the sync. When no sync is needed, the loop writes a small batch itself at
 * the end of the tick: the write takes a few microseconds, waking a thread takes longer.
 *
 * A tick with long effects becomes several linked groups (journal_file.h). When filling is full,
 * the producer waits: commands that have not started wait in the queue (persistence_is_behind), and
 * within a command the loop waits for the writer (journal_make_room). So memory is bounded, however
 * long a command's effects are.
 *
 * Groups are numbered from 1, without gaps. Replies wait for a group that ends a tick, never for
 * one that is linked to the next. Invariant: synced_group <= written_group <= ended_group <= group,
 * and the first three end a tick. */
#ifndef SERVER_JOURNAL_H
#define SERVER_JOURNAL_H

#include "server/durability/effect_bytes.h"
#include "server/durability/journal_file.h"
#include "server/durability/store.h"
#include "server/settings/setting.h"
#include "server/system/worker.h"

enum journal_state {
    JOURNAL_OFF,    /* effects are numbered and discarded */
    JOURNAL_WAITS,  /* effects are buffered until journal_take_file */
    JOURNAL_WRITES, /* effects are written to the file */
    JOURNAL_LOST, /* the file cannot be relied on; threads may still use it, until journal_break */
    JOURNAL_BROKEN, /* the same, but the file is closed: only a snapshot recovers */
    JOURNAL_STATES,
};

/* Why the journal was lost. */
enum journal_loss {
    JOURNAL_LOSS_OF_DISK,    /* the disk failed: its content is unknown */
    JOURNAL_LOSS_OF_EFFECTS, /* no memory or no room for them; earlier groups are intact */
};

struct journal {
    enum journal_state state;
    struct worker writer, syncer;
    struct store *store; /* borrowed; the writer's during a rotation */
    struct effect_encoder encoder;
    struct buffer filling; /* complete groups, then the open one */
    struct buffer writing; /* owned by the writer while it is busy */
    size_t group_at;       /* offset of the open group in filling */
    uint64_t taken_size;   /* bytes of all batches so far */
    size_t ended_size;     /* bytes of filling up to the end of the last group that ends a tick */
    bool has_group;        /* this tick has effects */
    bool is_growing;       /* a group is open at group_at */
    bool is_linked;        /* the last group written is linked to the next */
    bool is_holding; /* always: the batch is held back, so that clients answered by the last sync
                      * share the next */
    bool is_stalled; /* the disk is full: the batch is kept and retried */
    bool is_rotation_asked;
    uint64_t group;         /* the last complete one */
    uint64_t ended_group;   /* the last one that ends a tick */
    uint64_t written_group; /* in the file, or in a base that holds more */
    uint64_t synced_group;
    uint32_t filling_count;  /* effects in filling */
    uint32_t writing_count;  /* effects in the batch that is being, or was last, written */
    uint64_t hold_until_us;  /* on the monotonic clock */
    size_t writing_ended;    /* ended_size of writing */
    uint64_t writing_group;  /* written_group once the writer is done */
    uint64_t writing_synced; /* synced_group when the writer got the batch */
    uint64_t syncing_group;  /* synced_group once the syncer is done */
    uint64_t file_size_sum;  /* of all journals in the manifest */
    uint64_t delayed_sync_count;
    uint64_t sync_longest_us;
    struct journal_file file;
    int error; /* errno of the stall or failure; the loop's own */
    /* The writer's job and its result. */
    enum setting_appendfsync policy, policy_next; /* policy_next: for the next job */
    struct journal_result {
        enum { JOURNAL_JOB_WRITE, JOURNAL_JOB_ROTATE } kind;
        enum journal_job_status {
            JOURNAL_RESULT_OK,
            JOURNAL_RESULT_FULL, /* nothing changed: it can be retried */
            JOURNAL_RESULT_CUT, /* disk full, and earlier groups linked to these were cut off too */
            JOURNAL_RESULT_LOST,
        } status;
        const char *what; /* the operation that failed */
        int error;        /* errno */
        uint64_t sync_us;
    } result;
    struct {
        int error;
        uint64_t sync_us;
    } sync_result;
    struct store_state rotated; /* the manifest's new state, during a rotation */
    /* Called on the loop when something above has changed. */
    void (*changed)(void *context);
    /* Called when the state becomes JOURNAL_LOST, possibly in the middle of another operation. The
     * owner calls journal_break once that operation is over. */
    void (*lost)(void *context, enum journal_loss loss, const char *what, int error);
    void (*rotated_to)(void *context, bool is_done);
    void *context;
};

/* The struct must be zeroed except for store, the callbacks and context. false: no memory or
 * threads. */
MUST_CHECK bool journal_init(struct journal *journal, uv_loop_t *loop);
/* Write and sync what is buffered, as far as the disk allows; then stop the threads. */
void journal_deinit(struct journal *journal);

/* Does it need to receive effects? */
static inline bool journal_gathers(const struct journal *journal) {
    return journal->state == JOURNAL_WRITES || journal->state == JOURNAL_WAITS;
}
/* Record an effect. An EFFECT_FILL must be passed as its parts. */
void journal_add_effect(struct journal *journal, const struct effect *effect);
/* Is the buffer full? Then call journal_make_room, or start no command. */
MUST_CHECK bool journal_is_full(const struct journal *journal);
/* JOURNAL_WRITES only: hand the buffer to the writer, also within a tick, and wait for the batch it
 * is writing. Afterwards the buffer is not full, or the journal is lost. */
void journal_make_room(struct journal *journal);
/* Complete the current group. It is written when the writer is free. */
void journal_end_group(struct journal *journal, int64_t now_us, enum setting_appendfsync policy);
/* The same at the end of a tick, where changed may be called immediately. */
void journal_end_tick(struct journal *journal, int64_t now_us, enum setting_appendfsync policy);
/* Once a second: sync what was written since (everysec), retry on a full disk. */
void journal_second(struct journal *journal);

/* Start buffering effects. */
void journal_begin(struct journal *journal);
/* Discard what is buffered, wait for the threads, and close the file. */
void journal_end(struct journal *journal);
/* The same when the content of the disk cannot be relied on: the state becomes JOURNAL_BROKEN. */
void journal_break(struct journal *journal);
/* Write to this file from now on, beginning with what is buffered. */
void journal_take_file(struct journal *journal, const struct journal_file *file);
/* Continue in a new file, which becomes the manifest's last journal, unless the manifest is at its
 * limit of journals. rotated_to reports success, or that rotation failed and the old file stays in
 * use. */
void journal_rotate(struct journal *journal);
/* A base on disk holds everything up to this group. */
void journal_note_base(struct journal *journal, uint64_t group);

/* Wait until all groups are written, and with is_synced also synced. Call it between two ticks.
 * false: they cannot be. */
MUST_CHECK bool journal_flush(struct journal *journal, bool is_synced);
/* Bytes buffered since the start, in total. */
uint64_t journal_gathered_size(const struct journal *journal);
/* Bytes that are buffered and not on disk. */
size_t journal_waiting_size(const struct journal *journal);

#endif
