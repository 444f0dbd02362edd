/* The journal as the loop sees it: effects are gathered, one group a tick, and a thread writes the
 * groups.
 *
 *     effects -> filling -> writing -> file
 *                (loop)     (thread: checksums, write, and with appendfsync always fdatasync)
 *
 * While one batch is written the next is gathered: one write, and one sync, serves all clients of
 * as many ticks as it takes. With appendfsync everysec another thread syncs once a second, so that
 * writing goes on meanwhile. Where nothing is synced, a small batch is written by the loop itself
 * at the end of its tick: that takes some microseconds, to wake a thread for it takes more.
 *
 * Groups are numbered from 1, without a gap. Invariant: synced_group <= written_group <= group. */
#ifndef SERVER_JOURNAL_H
#define SERVER_JOURNAL_H

#include "server/effect_bytes.h"
#include "server/journal_file.h"
#include "server/setting.h"
#include "server/store.h"
#include "server/worker.h"

enum journal_state {
    JOURNAL_OFF,    /* effects are numbered, and forgotten */
    JOURNAL_WAITS,  /* they are gathered, until journal_take_file */
    JOURNAL_WRITES, /* to its file */
    JOURNAL_BROKEN, /* its file cannot be trusted, or what it should hold could not be gathered:
                     * only a snapshot helps */
};

struct journal {
    enum journal_state state;
    struct worker writer, syncer;
    struct store *store; /* borrowed; the writer's while it rotates */
    struct effect_encoder encoder;
    struct buffer filling; /* whole groups, then the one of this tick */
    struct buffer writing; /* the writer's */
    size_t group_at;       /* where the group of this tick begins in filling */
    bool has_group;        /* it has effects */
    bool is_holding; /* always: for those whom the last sync has answered, to sync with them */
    bool is_stalled; /* the disk is full: the batch is kept, and tried again */
    bool is_rotation_asked;
    uint64_t group;         /* the last that is complete */
    uint64_t written_group; /* of the file, or of a base that holds more */
    uint64_t synced_group;
    uint32_t filling_count;  /* effects in filling */
    uint32_t writing_count;  /* and in the batch that is, or was, written */
    uint64_t hold_until_us;  /* by the monotonic clock */
    uint64_t writing_group;  /* the last in writing */
    uint64_t writing_synced; /* synced_group when the writer was given it */
    uint64_t syncing_group;  /* synced when the syncer is done */
    uint64_t effect_count;   /* since the last snapshot */
    uint64_t file_size_sum;  /* of all journals that the manifest names */
    uint64_t delayed_sync_count;
    uint64_t sync_longest_us;
    struct journal_file file;
    int error; /* errno of what has stalled or broken it; the loop's own */
    /* The writer's job, and what came of it. */
    enum setting_appendfsync policy;
    struct journal_result {
        enum { JOURNAL_JOB_WRITE, JOURNAL_JOB_ROTATE } kind;
        enum { JOURNAL_RESULT_OK, JOURNAL_RESULT_FULL, JOURNAL_RESULT_LOST } status;
        int error; /* errno */
        uint64_t sync_us;
    } result;
    struct {
        int error;
        uint64_t sync_us;
    } sync_result;
    struct store_state rotated; /* the manifest's new state, while it rotates */
    /* Called on the loop when something above has changed. */
    void (*changed)(void *context);
    /* The file is lost, or what it should hold could not be gathered. */
    void (*lost)(void *context, const char *what, int error);
    void (*rotated_to)(void *context, bool is_done);
    void *context;
};

/* Zeroed but for store, the callbacks and context. false: no memory or threads. */
MUST_CHECK bool journal_init(struct journal *journal, uv_loop_t *loop);
/* Write and sync what is gathered, as far as the disk lets it; then end the threads. */
void journal_deinit(struct journal *journal);

/* Hear of an effect. */
void journal_hear(struct journal *journal, const struct effect *effect);
/* Its effects up to here are a group. It is written when the writer is free. */
void journal_end_group(struct journal *journal, int64_t now_us, enum setting_appendfsync policy);
/* The same at the end of a tick, where changed may be called at once. */
void journal_end_tick(struct journal *journal, int64_t now_us, enum setting_appendfsync policy);
/* Once a second: sync what was written since (everysec), try a full disk again. */
void journal_second(struct journal *journal);

/* Gather effects from now on. */
void journal_begin(struct journal *journal);
/* Forget what is gathered, and close the file. */
void journal_end(struct journal *journal);
/* The same where the file cannot be trusted: JOURNAL_BROKEN. */
void journal_break(struct journal *journal);
/* Write to this file from now on; what is gathered first. */
void journal_take_file(struct journal *journal, const struct journal_file *file);
/* Go on in a new file, which the manifest names then as the last one, unless it names as many as it
 * can; rotated_to says when it is done, or that it could not be and the old one goes on. */
void journal_rotate(struct journal *journal);
/* A base holds everything up to this group, on disk. */
void journal_note_base(struct journal *journal, uint64_t group);

/* Wait until all complete groups are written, and with is_synced synced. false: they cannot be. */
MUST_CHECK bool journal_flush(struct journal *journal, bool is_synced);
/* Bytes that are gathered and not on disk. */
size_t journal_waiting_size(const struct journal *journal);

#endif
