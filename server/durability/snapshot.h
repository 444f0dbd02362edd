/* Writing a snapshot: boards are walked in bounded steps while commands keep running, and a thread
 * compresses and writes what was walked.
 *
 *     registry_walk_next -> OPEN PIECE ... CLOSE \
 *     effects on what was walked already ---------> filling -> writing -> leaderboard.<n>.base
 *                                                   (loop)     (thread)
 *
 * The file holds the state at its end: a change to something already walked follows in the stream. A board is read piece
 * by piece, and the stream has of its changes what they change of the pieces before them (registry_walk_trim). So the file
 * is loaded as it comes, each record when its turn is.
 *
 * The buffers are bounded. The walk stays only a little ahead of the thread. When effects come
 * faster than the thread writes, their producer waits: commands that have not started wait in the
 * queue (persistence_is_behind), and within a command the loop waits. So no client can make a
 * snapshot fail or keep it from finishing.
 *
 * The file becomes the base when it is complete: the manifest then names it instead of the files it
 * replaces.
 *
 * A snapshot may also be streamed: the thread writes the same bytes into a pipe, as its reader takes
 * them. Then nobody ever waits: the walk goes on as the pipe empties, and when the effects that are
 * gathered meanwhile exceed their limit, or the reader has closed the pipe, it is given up. */
#ifndef SERVER_SNAPSHOT_H
#define SERVER_SNAPSHOT_H

#include "server/durability/effect_bytes.h"
#include "server/durability/journal_file.h"
#include "server/durability/snapshot_file.h"
#include "server/durability/store.h"
#include "server/system/worker.h"

/* More than the chunks that fit into the buffer at its limit (FILLING_MAX in snapshot.c). */
enum { SNAPSHOT_CHUNKS_MAX = 64 };

enum snapshot_state {
    SNAPSHOT_IDLE,
    SNAPSHOT_WALKS,
    SNAPSHOT_WALKED,  /* until snapshot_finish */
    SNAPSHOT_ENDS,    /* the thread writes the rest */
    SNAPSHOT_ADOPTED, /* the manifest names the file, or all is in the pipe */
};

/* What the owner has to decide about. */
enum snapshot_outcome {
    SNAPSHOT_NOTHING,
    SNAPSHOT_IS_WALKED, /* call snapshot_finish before anything else changes */
    SNAPSHOT_DONE,      /* it is on disk; with SNAPSHOT_MAKES_JOURNAL, journal is the caller's */
    SNAPSHOT_ABORTED,   /* it failed, and its files are removed if possible */
};

/* The journal that the manifest is to name after the base. */
enum snapshot_journal {
    SNAPSHOT_NO_JOURNAL,
    SNAPSHOT_KEEPS_JOURNAL, /* the manifest's last one */
    SNAPSHOT_MAKES_JOURNAL, /* a new one, which begins after the snapshot */
};

struct snapshot {
    enum snapshot_state state;
    bool is_failed; /* the thread failed, or memory ran out */
    bool is_streamed;
    bool is_overrun; /* is_streamed: there were more effects than its reader took */
    struct worker worker;
    struct registry *registry; /* borrowed */
    struct store *store;       /* borrowed; the thread's during its first and last job */
    struct effect_encoder encoder;
    struct buffer filling, writing;
    size_t chunk_at;    /* offset of the open chunk in filling */
    size_t walked_size; /* bytes of filling from the walk; the rest are effects */
    uint32_t chunk_count, writing_count;
    uint32_t chunk_sizes[SNAPSHOT_CHUNKS_MAX], writing_sizes[SNAPSHOT_CHUNKS_MAX];
    struct snapshot_writer file;
    uint64_t number;
    uint64_t created_ms;
    struct snapshot_footer footer; /* its counts: so far */
    size_t values_size;            /* of the tags of one of its members, about */
    uint64_t file_size;
    bool is_kept; /* the manifest may name the file, though that is not certain to be on disk */
    enum snapshot_journal journal_after;
    uint64_t journal_number;     /* 0: none yet */
    struct journal_file journal; /* fd -1: none was created */
    struct store_state new_state;
    int error; /* errno of the thread's job */
    const char *what;
    uint64_t begin_us;
    /* Called on the loop when snapshot_take_outcome has something that the thread has done. */
    void (*changed)(void *context);
    void *context;
};

/* The struct must be zeroed except for registry, store, changed and context. */
MUST_CHECK bool snapshot_init(struct snapshot *snapshot, uv_loop_t *loop);
/* Abort the current snapshot, if any, and stop the thread. */
void snapshot_deinit(struct snapshot *snapshot);

/* Start a snapshot, between two ticks. The caller passes the registry's effects to
 * snapshot_add_effect. false: no memory. */
MUST_CHECK bool snapshot_begin(struct snapshot *snapshot, int64_t now_us);
/* The same into a pipe, of which this takes the writing end, unless it fails. Its reader must close
 * the other end before snapshot_deinit, or the thread may wait for it forever. */
MUST_CHECK bool snapshot_begin_stream(struct snapshot *snapshot, int pipe, int64_t now_us);
/* Give up the current snapshot. */
void snapshot_give_up(struct snapshot *snapshot);
/* Record an effect. An EFFECT_FILL must be passed as its parts. May wait for the thread. */
void snapshot_add_effect(struct snapshot *snapshot, const struct effect *effect);
/* Is the buffer full, and is the thread to be waited for? Then start no command. */
MUST_CHECK bool snapshot_is_full(const struct snapshot *snapshot);
/* Walk for about budget_ns, at the end of a tick; group is the tick's last group. true: there is
 * more to do at once. */
MUST_CHECK bool snapshot_step(struct snapshot *snapshot, uint64_t budget_ns, uint64_t group,
                              int64_t now_us);
/* After SNAPSHOT_IS_WALKED: write the rest, and change the manifest. Of a stream:
 * SNAPSHOT_NO_JOURNAL, and the manifest stays. */
void snapshot_finish(struct snapshot *snapshot, enum snapshot_journal journal_after);
/* What happened since the last call. Call it between two commands, after each step and whenever
 * changed was called. */
MUST_CHECK enum snapshot_outcome snapshot_take_outcome(struct snapshot *snapshot);

#endif
