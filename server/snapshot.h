/* A snapshot being written: boards are walked in bounded steps while everything goes on, and a
 * thread compresses and writes what was walked.
 *
 *     registry_walk_next -> OPEN PIECE ... CLOSE \
 *     effects on what was walked already ---------> filling -> writing -> leaderboard.<n>.base
 *                                                   (loop)     (thread)
 *
 * The file holds the state at its end: whatever changes after it has been walked is in the stream
 * behind it. A board is read piece by piece; members that change in between are in the stream with
 * what became of them, and whoever loads it believes that (loading.h).
 *
 * It becomes the base when its file is complete: the manifest names it then, and no longer what it
 * replaces. */
#ifndef SERVER_SNAPSHOT_H
#define SERVER_SNAPSHOT_H

#include "server/effect_bytes.h"
#include "server/journal_file.h"
#include "server/snapshot_file.h"
#include "server/store.h"
#include "server/worker.h"

enum { SNAPSHOT_CHUNKS_MAX = 2048 };

enum snapshot_state {
    SNAPSHOT_IDLE,
    SNAPSHOT_WALKS,
    SNAPSHOT_ENDS, /* all is walked: the thread has the rest */
};

struct snapshot {
    enum snapshot_state state;
    bool is_failed; /* the thread said so, or memory has run out: it is given up at the next step */
    struct worker worker;
    struct registry *registry; /* borrowed */
    struct store *store;       /* borrowed; the thread's while it begins and ends */
    struct effect_encoder encoder;
    struct buffer filling, writing;
    size_t chunk_at; /* in filling: the chunk that grows */
    uint32_t chunk_count, writing_count;
    uint32_t chunk_sizes[SNAPSHOT_CHUNKS_MAX], writing_sizes[SNAPSHOT_CHUNKS_MAX];
    struct snapshot_writer file;
    uint64_t number;
    uint64_t created_ms;
    struct snapshot_footer footer;
    uint64_t board_count, member_count;
    uint64_t file_size;
    bool makes_journal;      /* a journal begins behind it, in a file of its own */
    bool keeps_journal;      /* the manifest's last journal goes on behind it */
    bool is_kept;            /* the manifest may name it, though that is not sure to be on disk */
    bool is_ending;          /* the job is the last one */
    uint64_t journal_number; /* 0: none yet */
    struct journal_file journal; /* fd -1: none was made */
    struct store_state new_state, old_state;
    int error; /* errno of the thread's job */
    const char *what;
    uint64_t begin_us;
    /* Called on the loop when all is walked, to say what becomes of the journal (makes_journal,
     * keeps_journal), and once it is over. */
    void (*walked)(void *context);
    void (*over)(void *context, bool is_done);
    void *context;
};

/* Zeroed but for registry, store, the callbacks and context. */
MUST_CHECK bool snapshot_init(struct snapshot *snapshot, uv_loop_t *loop);
/* Give up what is being written, and end the thread. */
void snapshot_deinit(struct snapshot *snapshot);

/* Begin, between two ticks. false: no memory. Whoever calls makes the registry's effects come to
 * snapshot_hear. */
MUST_CHECK bool snapshot_begin(struct snapshot *snapshot, int64_t now_us);
void snapshot_hear(struct snapshot *snapshot, const struct effect *effect);
/* Walk for about budget_ns, at the end of a tick: group is its last one. true: there is more to do
 * at once. */
MUST_CHECK bool snapshot_step(struct snapshot *snapshot, uint64_t budget_ns, uint64_t group,
                              int64_t now_us);
/* Has the walk ended in the last step, so that effects from now on are behind it? */
static inline bool snapshot_is_walking(const struct snapshot *snapshot) {
    return snapshot->state == SNAPSHOT_WALKS;
}

#endif
