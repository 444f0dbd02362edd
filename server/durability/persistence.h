/* How this room works: every change of the keys is an effect. The effects of a tick are a group,
 * which has a number and goes to the journal's file; a snapshot walks all keys in steps while they
 * change, and becomes the base that the journal goes on behind; the manifest (store.h) names both,
 * and is replaced at once. At the start the base is loaded and the journal's groups are applied to
 * it. A reply may leave when the group that it depends on is as far as appendfsync asks. A master's
 * full copy is a base too, which is loaded beside the keys and then takes their place.
 *
 * This header is all that the rest of the server calls: journal, snapshots, loading, and which
 * replies wait.
 *
 *     registry --effects--> journal (journal.h)    group of a tick -> leaderboard.<n>.journal
 *                      \--> snapshot (snapshot.h)  boards, piece by piece -> leaderboard.<n>.base
 *
 * Both write from worker threads, each one job at a time; everything else runs on the loop. The
 * store (store.h) owns the files; loading.h reads them at start. */
#ifndef SERVER_PERSISTENCE_H
#define SERVER_PERSISTENCE_H

#include <uv.h>

#include "server/durability/journal_file.h"
#include "server/durability/snapshot_file.h"
#include "server/durability/state.h"
#include "server/settings/settings.h"
#include "server/system/clock.h"
#include "server/system/disk.h"
#include "skiplist/keyspace/registry.h"

/* Room for any message of this module and of settings. */
enum { PERSISTENCE_ERROR_MAX = DISK_ERROR_MAX };

struct persistence;
struct staging;

/* What persistence works on. Everything is borrowed until persistence_stop. */
struct persistence_host {
    const struct settings *settings;
    struct registry *registry;
    struct clock *clock;
    struct durability_state *state;
};

/* Open the directory of the settings and lock it; it is created if missing. With appendonly no it
 * may be missing where nobody may make it: then nothing can be saved. NULL: error says why, in
 * words for the operator. Threads are started only by persistence_start, so that the process may
 * daemonize in between. */
MUST_CHECK struct persistence *persistence_open(const struct settings *settings, char *error);
/* Start loading the directory's content. Until that is done state->is_loading is set, and
 * persistence_step continues it. changed is called on the loop when replies that waited for the
 * disk may be sent, and when there is a persistence_fatal_error. false: error says why. */
MUST_CHECK bool persistence_start(struct persistence *persistence,
                                  const struct persistence_host *host, uv_loop_t *loop,
                                  void (*changed)(void *context), void *context, char *error);
/* Call it when the loop has ended: finishes pending writes, stops the threads, and closes their
 * handles, which takes one more turn of the loop; then call persistence_destroy. */
void persistence_stop(struct persistence *persistence);
/* Release the directory. May be NULL. */
void persistence_destroy(struct persistence *persistence);

/* Not NULL: the process must end before another reply is sent. Either the boards cannot be loaded,
 * or with appendfsync always the disk has failed. The error is in the log. Meanwhile persistence
 * does nothing more, and no reply that waits for the disk may be sent. */
const char *persistence_fatal_error(const struct persistence *persistence);

/* At the end of a tick: hand its effects to the disk. true: call persistence_step at once. */
bool persistence_end_tick(struct persistence *persistence);
/* Is so much buffered, in total or in this tick, that the disk should take some of it before
 * another command runs? The loop is woken when it has. */
MUST_CHECK bool persistence_is_behind(const struct persistence *persistence);
/* The same for what can wait for as long as a disk stays full, such as a master's groups: no more
 * of it is then gathered than the journal's limit. */
MUST_CHECK bool persistence_is_full(const struct persistence *persistence);
/* For what may not wait for the loop: wait until the journal has room for another group. */
void persistence_make_room(struct persistence *persistence);
/* After persistence_end_tick: continue a snapshot or loading, for a bounded time. true: there is
 * more to do at once. */
bool persistence_step(struct persistence *persistence);
/* Once a second: everysec's fsync, `save` points, growth of the journal, changed settings, retries
 * after a disk failure. */
void persistence_second(struct persistence *persistence);

/* ---- replies that wait for the disk ---- */

/* Groups of effects are numbered. Returns the latest group that has begun: everything a command has
 * changed or could see is in it or an earlier one. */
uint64_t persistence_last_group(const struct persistence *persistence);
/* The last group that is complete: the next one that is recorded, and perhaps has begun, is the one
 * after it. */
uint64_t persistence_complete_group(const struct persistence *persistence);
/* Replies that depend on no later group than this may be sent: it is on disk as far as appendfsync
 * requires. */
uint64_t persistence_safe_group(const struct persistence *persistence);
/* The last group that is on disk; 0: there is no journal. */
uint64_t persistence_synced_group(const struct persistence *persistence);
/* Do replies of read-only commands wait, too? (always) */
bool persistence_holds_readers(const struct persistence *persistence);

/* always, and the disk is full: replies that wait may wait without an end, and it is known which
 * keys have changes that are not on disk. Only replies that may show those need to wait. */
bool persistence_is_stuck(struct persistence *persistence);
/* Then: has this key such changes? Have the names of keys, or what else the server keeps? */
uint64_t persistence_dirty_key(uint32_t database, struct bytes name); /* never 0 */
bool persistence_is_dirty(const struct persistence *persistence, uint64_t key);
bool persistence_has_dirty_names(const struct persistence *persistence);

/* ---- for commands ---- */

/* CONFIG SET: a journal needs a usable directory. prepare creates, opens and locks it if it has to;
 * commit keeps it, abandon leaves nothing behind of what prepare did. As a settings_check, prepare
 * returns NULL or the setting that cannot take effect; nothing is then to be undone. */
const char *persistence_prepare_settings(struct persistence *persistence,
                                         const struct settings *wanted, char *reason);
void persistence_commit_settings(struct persistence *persistence);
void persistence_abandon_settings(struct persistence *persistence);

enum persistence_status {
    PERSISTENCE_OK,
    PERSISTENCE_BUSY,   /* a snapshot is already being written */
    PERSISTENCE_FAILED, /* error (PERSISTENCE_ERROR_MAX bytes) says why */
};
/* Start a snapshot, which becomes the new base (BGSAVE, BGREWRITEAOF). */
MUST_CHECK enum persistence_status persistence_begin_snapshot(struct persistence *persistence,
                                                              char *error);
/* Write a snapshot and wait for it (SAVE): on PERSISTENCE_OK it is on disk. A replica first applies
 * the rest of a group that it has begun; where that cannot be done now, it is an error. */
MUST_CHECK enum persistence_status persistence_save(struct persistence *persistence, char *error);

enum stream_status {
    STREAM_PIECE,
    STREAM_WAITS, /* the loop wakes when there is more */
    STREAM_END,   /* all of it has been read */
    STREAM_FAILED,
};

/* A snapshot that is streamed to a client instead of written to disk: the bytes of a base
 * (snapshot_file.h), which hold the boards as they are when the walk ends. It and a save exclude
 * each other. It never makes commands wait: where its reader is too slow for what is changed
 * meanwhile, it fails.
 *
 * May one begin now? No while a save or another one is going on. */
bool persistence_stream_may_begin(const struct persistence *persistence);
/* Begin one. Call persistence_stream_end afterwards, also before it has been read to its end. */
MUST_CHECK enum persistence_status persistence_stream_begin(struct persistence *persistence,
                                                            char *error);
/* Read the next bytes, at most room. STREAM_FAILED: error (PERSISTENCE_ERROR_MAX). */
MUST_CHECK enum stream_status persistence_stream_read(struct persistence *persistence, char *at,
                                                      size_t room, size_t *size, char *error);
/* Instead of that, for another process that reads: the reading end of the pipe, the caller's to
 * close. end_reader ends that process, however it stands: it is called when the stream is closed
 * before all of it is in the pipe, and the server may wait for that (SHUTDOWN). -1: errno says
 * why. */
MUST_CHECK int persistence_stream_share(struct persistence *persistence,
                                        void (*end_reader)(void *context), void *context);
/* How far a shared one is. WAITS: it goes on; END: all of it is in the pipe, which ends behind
 * it. */
MUST_CHECK enum stream_status persistence_stream_look(const struct persistence *persistence,
                                                      char *error);
/* Is there nothing to read until the loop wakes? */
bool persistence_stream_waits(const struct persistence *persistence);
/* The last group that the stream will hold, as soon as that is known; 0: not yet. */
uint64_t persistence_stream_group(const struct persistence *persistence);
/* After STREAM_END: what the file says of itself; borrowed. */
const struct snapshot_footer *persistence_stream_footer(const struct persistence *persistence);
void persistence_stream_end(struct persistence *persistence);

/* The pipe of a stream: a thread or process writes into it and waits, and the loop reads as fast as a client takes it. */
struct stream {
    int reader, writer; /* -1: closed, or not ours */
    uv_poll_t poll;
    enum { STREAM_UNUSED, STREAM_OPEN, STREAM_CLOSING } state; /* of poll */
    bool is_waiting; /* the pipe was empty, and the loop will be woken */
};
/* A zeroed struct: nothing is open. false: errno says why, and nothing is open. The writer's end is
 * the caller's once it has set writer to -1. */
MUST_CHECK bool persistence_stream_open_pipe(struct stream *stream, uv_loop_t *loop);
/* Read at most room bytes. STREAM_END: the writing end is closed. */
MUST_CHECK enum stream_status persistence_stream_read_pipe(struct stream *stream, char *at,
                                                           size_t room, size_t *size);
/* Close both ends, as far as they are ours. The loop must turn once more before it can be opened
 * again, or freed. */
void persistence_stream_close_pipe(struct stream *stream);

/* ---- for replication ---- */

/* Give each group to this function from now on, when it is complete; NULL: not any more. Call it
 * between two commands. */
void persistence_set_tap(struct persistence *persistence, journal_tap *tap, void *context);
/* All changes are a master's groups from now on, and so all are numbered; or not any more. */
void persistence_set_following(struct persistence *persistence, bool is_following);

/* The last group that is in a file of the journal; 0: it is off. */
uint64_t persistence_written_group(const struct persistence *persistence);
/* Is this group, and each behind it, in the journal's files, or the one that is written next? Then
 * path is that of the file with it. */
MUST_CHECK bool persistence_find_group(const struct persistence *persistence, uint64_t group,
                                       char *path, size_t path_size);

/* A replica applies its master's groups (effect_apply), which keep their numbers: meanwhile changes
 * of the registry are not recorded, but by a snapshot that is being written. Then
 * persistence_add_group records the group as it came; head->sequence is the one after the last. A
 * tick that does so has no effects of its own. */
void persistence_set_applying(struct persistence *persistence, bool is_applying);
void persistence_add_group(struct persistence *persistence, const struct journal_group_head *head,
                           const char *payload);
/* What a snapshot that is written at once calls before it, within a command: add to the present
 * group what belongs to it, and with is_saved, apply the rest of what is applied in part. false: it
 * cannot be applied now. */
typedef bool persistence_close_group(void *context, bool is_saved);
void persistence_set_close_group(struct persistence *persistence, persistence_close_group *close,
                                 void *context);

/* A full copy that a master sends (staging.h): it replaces everything, keys, files and the numbers
 * of groups. */
struct staging *persistence_staging(struct persistence *persistence);
/* From STAGING_NONE. PERSISTENCE_BUSY: what was received before is not cleared away yet, or a first save makes the
 * directory: try again. */
MUST_CHECK enum persistence_status persistence_begin_receive(struct persistence *persistence,
                                                             char *error);
/* Go on for about budget_ns. true: there is more to do at once. */
MUST_CHECK bool persistence_step_receive(struct persistence *persistence, uint64_t budget_ns);
/* Clear it away, and give it up if it is not ADOPTED; one that is ADOPTING is waited for. true: it has replaced
 * everything. */
bool persistence_abandon_receive(struct persistence *persistence);

/* Exchange all keys with those of another registry (registry_create_beside). A journal ends with that: what is on disk
 * stays as it is until a snapshot of the new keys and a journal behind it are there, and replies wait meanwhile. false:
 * not now, as a save is going on, or the journal is busy; the loop wakes when it is not. */
MUST_CHECK bool persistence_exchange_keys(struct persistence *persistence, struct registry *keys);

/* What to do before the process may exit. */
enum persistence_ending {
    PERSISTENCE_END_AS_SET, /* a snapshot if there are `save` points, the journal is off and
                             * something has changed; the journal is synced */
    PERSISTENCE_END_SAVE,   /* always a snapshot */
    PERSISTENCE_END_NOSAVE, /* the journal is synced, no snapshot */
};
/* In each case a journal whose base is not on disk yet gets it: it has no file before. */
MUST_CHECK enum persistence_status persistence_prepare_end(struct persistence *persistence,
                                                           enum persistence_ending ending,
                                                           char *error);

/* INFO's Persistence section; sizes in bytes, times in unix seconds, durations in seconds; -1: none
 * yet. */
struct persistence_info {
    int64_t loading_start_s;
    uint64_t loading_total_size, loading_loaded_size;
    uint64_t loading_members;
    double loading_percent;
    int64_t loading_eta_s;
    uint64_t changes; /* effects since the last snapshot */
    bool is_saving;
    bool is_last_save_ok;
    int64_t last_save_s; /* when it ended; initially the start of the server */
    int64_t last_save_seconds, current_save_seconds;
    uint64_t save_count;    /* since the start */
    uint64_t saved_members; /* by the current snapshot */
    bool is_journal_on;
    bool is_journal_ok;
    uint64_t journal_size, journal_base_size; /* base and increments: now, and at the base */
    uint64_t base_size;
    uint64_t waiting_size; /* effects not written yet */
    uint64_t group, written_group, synced_group;
    uint64_t delayed_sync_count; /* everysec: an fsync was still running when the next was due */
    uint64_t sync_longest_us;
    struct durations syncs;
};
void persistence_describe(const struct persistence *persistence, struct persistence_info *info);
/* Row `index` of the table of transitions, as the log has it at loglevel debug when it is taken.
 * NULL: there are fewer rows. */
const char *persistence_transition(uint32_t index);

#endif
