/* The loop's side of the journal: effects are buffered, one group per tick, and a thread writes the
 * groups.
 *
 *     effects -> filling -> writing -> file
 *                (loop)     (thread: checksums, write, and with appendfsync always fdatasync)
 *
 * While one batch is written, the next one is buffered: one write, and one sync, serves the clients
 * of all ticks in the batch. With appendfsync everysec a second thread syncs once a second, so that
 * writes continue during the sync.
 *
 * A batch is written in one of three ways. The figures compare a server without that way, in turns
 * on one machine of two cores, ZADD unpipelined:
 *
 *     by the writer   while it writes and syncs, the loop runs commands
 *     by the loop     everysec and no, up to 128 KiB: 0.4 times the CPU time of waking the writer
 *                     with one client (1.9 times the throughput), 0.8 times with 50 (1.2)
 *     held, then by   always: until as many effects as last time are there, at most for the time of
 *     the writer      the last sync: 1.3 to 1.4 times the throughput with 4 or 8 clients, 1.1 times
 *                     with 16 or 32, no difference with 50 or more
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
#include "server/settings/settings.h"
#include "server/system/clock.h"
#include "server/system/worker.h"

enum journal_state {
    JOURNAL_OFF,    /* effects are numbered and discarded */
    JOURNAL_WAITS,  /* effects are buffered until journal_take_file */
    JOURNAL_WRITES, /* effects are written to the file */
    JOURNAL_LOST,   /* the file cannot be relied on; threads may still use it, until journal_end */
};

/* Why the journal was lost. */
enum journal_loss {
    JOURNAL_LOSS_OF_DISK,    /* the disk failed: its content is unknown */
    JOURNAL_LOSS_OF_EFFECTS, /* no memory or no room for them; earlier groups are intact */
};

/* What the owner has to decide about. */
enum journal_outcome {
    JOURNAL_NOTHING,
    JOURNAL_ROTATED,     /* it writes to a new file, or the manifest is at its limit of journals */
    JOURNAL_NOT_ROTATED, /* the old file stays in use */
    JOURNAL_IS_LOST,     /* see loss, what and error */
};

/* Which keys have changes that are not on disk, while that is full: so with appendfsync always only replies that may show
 * them wait. Built of the groups that the journal holds when it is asked for first, and kept up with what follows; no
 * command pays for it while the disk takes what is written.
 *
 * Keys are known by a hash: of two with the same one, both count as changed. */
struct journal_dirty {
    uint64_t *slots; /* open addressing; 0: free */
    uint32_t room, count;
    /* Keys were made, removed or renamed, their expiry was set, or a database of the server's own
     * changed. */
    bool has_names;
    bool has_all;
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
    bool is_stalled;       /* the disk is full: the batch is kept and retried */
    uint32_t stall_count;  /* how often it became so */
    struct journal_dirty dirty;
    uint32_t dirty_stall; /* the stall_count that it is of; 0: none */
    enum journal_rotation {
        JOURNAL_ROTATION_NONE,
        JOURNAL_ROTATION_ASKED,
        JOURNAL_ROTATION_RUNS, /* it is the writer's job */
        JOURNAL_ROTATION_DONE,
        JOURNAL_ROTATION_FAILED,
    } rotation;
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
    uint64_t rotated_size;   /* of those before the file of the last rotation */
    uint64_t delayed_sync_count;
    uint64_t sync_longest_us;
    struct durations syncs;
    struct journal_file file;
    enum journal_loss loss;
    const char *what; /* the operation that lost it */
    int error;        /* errno of the stall or loss; the loop's own */
    /* The writer's job and its result. */
    enum setting_appendfsync policy, policy_next; /* policy_next: for the next job */
    struct journal_result {
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
    journal_tap *tap;           /* NULL: nobody wants the groups; set between two of them */
    void *tap_context;
    /* Called on the loop when a thread is done: written_group, synced_group or is_stalled may have
     * changed, and journal_take_outcome may have something. */
    void (*changed)(void *context);
    void *context;
};

/* The struct must be zeroed except for store, changed and context. false: no memory or threads. */
MUST_CHECK bool journal_init(struct journal *journal, uv_loop_t *loop);
/* Discard what is buffered, and stop the threads. */
void journal_deinit(struct journal *journal);

/* Does it keep groups for a file? */
static inline bool journal_keeps(const struct journal *journal) {
    return journal->state == JOURNAL_WRITES || journal->state == JOURNAL_WAITS;
}
/* Does it need to receive effects? */
static inline bool journal_gathers(const struct journal *journal) {
    return journal_keeps(journal) || journal->tap != NULL;
}
/* Record an effect. An EFFECT_FILL must be passed as its parts. false: the journal is lost. */
MUST_CHECK bool journal_add_effect(struct journal *journal, const struct effect *effect);
/* Is the buffer full? Then call journal_make_room, or start no command. */
MUST_CHECK bool journal_is_full(const struct journal *journal);
/* JOURNAL_WRITES only: hand the buffer to the writer, also within a tick, and wait for the batch it
 * is writing. Afterwards the buffer is not full, or the journal is lost. */
void journal_make_room(struct journal *journal);
/* Complete the current group. It is written when the writer is free. */
void journal_end_group(struct journal *journal, int64_t now_us, enum setting_appendfsync policy);
/* The same at the end of a tick, where changed may be called immediately. true: with always, the
 * batch is held back for a moment, so that clients answered by the last sync share the next; call
 * this again soon. */
bool journal_end_tick(struct journal *journal, int64_t now_us, enum setting_appendfsync policy);
/* Once a second: sync what was written since (everysec), retry on a full disk. */
void journal_second(struct journal *journal);

/* Record a group that somebody else has numbered and encoded: the one after the last, in a tick without
 * effects of its own. Of linked groups all are to follow. The journal may be lost by it. */
void journal_add_group(struct journal *journal, const struct journal_group_head *head,
                       const char *payload);

/* Start buffering effects. */
void journal_begin(struct journal *journal);
/* Discard what is buffered, wait for the threads, and close the file: JOURNAL_OFF. */
void journal_end(struct journal *journal);
/* Write to this file from now on, beginning with what is buffered. */
void journal_take_file(struct journal *journal, const struct journal_file *file);
/* Continue in a new file, which becomes the manifest's last journal, unless the manifest is at its
 * limit of journals. The outcome is JOURNAL_ROTATED or JOURNAL_NOT_ROTATED, unless the journal is
 * lost. */
void journal_rotate(struct journal *journal);
/* A rotation is asked for, and cannot begin while the disk is full: forget it. */
void journal_cancel_rotation(struct journal *journal);
/* What happened since the last call. JOURNAL_IS_LOST is returned until journal_end. Call it between
 * two commands. */
MUST_CHECK enum journal_outcome journal_take_outcome(struct journal *journal);
/* Between two ticks: everything up to this group is in memory and on disk, and the next is the one after
 * it: files were loaded. JOURNAL_OFF only. */
void journal_go_to(struct journal *journal, uint64_t group);
/* Is nothing buffered, and no thread at work? */
bool journal_is_idle(const struct journal *journal);
/* A base on disk holds everything up to this group. */
void journal_note_base(struct journal *journal, uint64_t group);

/* Wait until all groups are written, and with is_synced also synced. Call it between two ticks.
 * false: they cannot be. */
MUST_CHECK bool journal_flush(struct journal *journal, bool is_synced);
/* A key as the functions below know it; never 0. */
uint64_t journal_dirty_key(uint32_t database, struct bytes name);
/* While it is stalled: find the dirty keys, unless they are known. Then journal->dirty.has_names, and: is this one of
 * them? */
void journal_find_dirty(struct journal *journal);
bool journal_is_dirty(const struct journal *journal, uint64_t key);
/* Bytes buffered since the start, in total. */
uint64_t journal_gathered_size(const struct journal *journal);
/* Bytes that are buffered and not on disk. */
size_t journal_waiting_size(const struct journal *journal);

#endif
