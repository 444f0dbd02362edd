/* What survives the process: journal, snapshots, loading, and who has to wait for the disk.
 *
 *     registry --effects--> journal (journal.h)    group of a tick -> leaderboard.<n>.journal
 *                      \--> snapshot (snapshot.h)  boards, piece by piece -> leaderboard.<n>.base
 *
 * Both write from worker threads, one job each at a time; everything else happens on the loop. What
 * lies on disk is the store's (store.h); it is read back at start by loading.h. */
#ifndef SERVER_PERSISTENCE_H
#define SERVER_PERSISTENCE_H

#include <uv.h>

#include "server/disk.h"
#include "server/server.h"

/* Room for any message of this file, and of settings. */
enum { PERSISTENCE_ERROR_MAX = DISK_ERROR_MAX };

struct persistence;

/* Open the directory of the settings and lock it; with appendonly yes it is made if it is not
 * there. NULL: error says why, in words for the operator. Threads come only with persistence_start,
 * so that the process may go to the background in between. */
MUST_CHECK struct persistence *persistence_open(const struct settings *settings, char *error);
/* Begin to load what the directory holds: until that is done server->is_loading, and
 * persistence_step goes on with it. changed is called on the loop when replies that have waited for
 * the disk may leave. false: error says why. */
MUST_CHECK bool persistence_start(struct persistence *persistence, struct server *server,
                                  uv_loop_t *loop, void (*changed)(void *context), void *context,
                                  char *error);
/* When the loop has ended: what is being written is finished, threads end, and their handles are
 * closed, for which the loop has to turn once more; then persistence_destroy. */
void persistence_stop(struct persistence *persistence);
/* Give the directory back. May be NULL. */
void persistence_destroy(struct persistence *persistence);

/* The end of a tick: hand its effects to the disk. true: there is more to do at once. */
bool persistence_end_tick(struct persistence *persistence);
/* Behind it: go on with a snapshot or with loading, for a bounded time. true: there is more to do
 * at once. */
bool persistence_step(struct persistence *persistence);
/* Once a second: everysec's fsync, `save` points, growth of the journal, settings that have
 * changed, another attempt where the disk has failed. */
void persistence_second(struct persistence *persistence);

/* ---- who waits for the disk ---- */

/* Groups of effects are numbered. The last one that has begun: what a command has changed, or
 * could see, is in it or before it. */
uint64_t persistence_last_group(const struct persistence *persistence);
/* Replies that show no later group than this may leave: it has reached the disk as far as
 * appendfsync asks. */
uint64_t persistence_safe_group(const struct persistence *persistence);
/* Do replies to those who only read wait, too? (always) */
bool persistence_holds_readers(const struct persistence *persistence);

/* ---- for commands ---- */

/* settings_check: a journal needs a directory that can be used. */
const char *persistence_check_settings(struct persistence *persistence,
                                       const struct settings *wanted, char *reason);

enum persistence_status {
    PERSISTENCE_OK,
    PERSISTENCE_BUSY,   /* a snapshot is being written already */
    PERSISTENCE_FAILED, /* error (PERSISTENCE_ERROR_MAX bytes) says why */
};
/* Begin a snapshot, which becomes the new base (BGSAVE, BGREWRITEAOF). */
MUST_CHECK enum persistence_status persistence_begin_snapshot(struct persistence *persistence,
                                                              char *error);
/* Write a snapshot here and now (SAVE): when this returns PERSISTENCE_OK it is on disk. */
MUST_CHECK enum persistence_status persistence_save(struct persistence *persistence, char *error);

/* What has to be done before the process may end. */
enum persistence_ending {
    PERSISTENCE_END_AS_SET, /* a snapshot if there are `save` points, the journal is off and
                             * something has changed; the journal reaches the disk */
    PERSISTENCE_END_SAVE,   /* a snapshot in any case */
    PERSISTENCE_END_NOSAVE, /* the journal reaches the disk, no snapshot */
};
MUST_CHECK enum persistence_status persistence_prepare_end(struct persistence *persistence,
                                                           enum persistence_ending ending,
                                                           char *error);

/* INFO's Persistence section; sizes in bytes, times in unix seconds or seconds, -1: none yet. */
struct persistence_info {
    int64_t loading_start_s;
    uint64_t loading_total_size, loading_loaded_size;
    uint64_t loading_members;
    double loading_percent;
    int64_t loading_eta_s;
    uint64_t changes; /* effects since the last snapshot */
    bool is_saving;
    bool is_last_save_ok;
    int64_t last_save_s; /* when it was done; at first: when the server started */
    int64_t last_save_seconds, current_save_seconds;
    uint64_t save_count;    /* since the start */
    uint64_t saved_members; /* of the one that is being written */
    bool is_journal_on;
    bool is_journal_ok;
    uint64_t journal_size, journal_base_size; /* on disk: increments and base; size at the base */
    uint64_t base_size;
    uint64_t waiting_size; /* effects that are not written yet */
    uint64_t group, written_group, synced_group;
    uint64_t delayed_sync_count; /* everysec: the last fsync had not ended when the next was due */
    uint64_t sync_longest_us;
};
void persistence_describe(const struct persistence *persistence, struct persistence_info *info);

#endif
