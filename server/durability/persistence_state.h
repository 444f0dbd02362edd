/* The struct behind persistence.h, its states, and what its files ask of each other.
 *
 *     persistence.c         the states; what threads report; effects; saves; the tick; groups; copies
 *     persistence_load.c    the start
 *     persistence_stream.c  a snapshot that a client reads
 *
 * Only persistence.c decides: the others ask it to move a state. */
#ifndef SERVER_PERSISTENCE_STATE_H
#define SERVER_PERSISTENCE_STATE_H

#include "server/durability/journal.h"
#include "server/durability/loading.h"
#include "server/durability/persistence.h"
#include "server/durability/snapshot.h"
#include "server/durability/staging.h"
#include "skiplist/keyspace/effect.h"

enum {
    REFUSAL_MAX = 256,
    RETRY_MS = 5000, /* after a save has failed */
};

enum state {
    /* what the journal guarantees */
    LOADING,
    OFF,
    STARTING, /* buffered until the base before it is on disk; replies do not wait yet */
    ON,
    BROKEN,     /* the file is closed, for it cannot be relied on */
    RESTARTING, /* as STARTING, but replies wait */
    STOPPED,    /* nothing more may be answered: see error */
    /* how far a save is */
    IDLE,
    ROTATING, /* the journal continues in a new file */
    DUE,      /* the walk begins at the end of this tick */
    WALKING,
    ENDING,   /* the rest is written */
    ADOPTING, /* what a master has sent becomes the base */
};

enum event {
    LOADED,         /* with appendonly no */
    LOADED_JOURNAL, /* and the journal's file is open */
    FATAL,
    JOURNAL_GONE,   /* lost, though not fatally */
    JOURNAL_WANTED, /* after the boards that have just been walked */
    JOURNAL_UNWANTED,
    BASE_DONE,   /* the base that the journal waits for */
    BASE_FAILED, /* the same */
    SAVE_ASKED,
    SAVE_ASKED_WITH_JOURNAL,
    ROTATED,
    WALK_BEGUN,
    WALKED,
    SAVED,
    SAVE_FAILED,
    ADOPTION_ASKED,
    ADOPTED,
    ADOPTION_FAILED,
    FILES_REPLACED, /* by what was adopted, with a journal behind it */
};

struct persistence {
    const struct settings *settings; /* these four are from the host */
    struct registry *registry;
    struct clock *clock;
    struct durability_state *state;
    uv_loop_t *loop; /* NULL until persistence_start */
    void (*changed)(void *context);
    void *context;
    struct effect_listener listener;
    enum state journaling, saving;
    struct store store;       /* directory -1: none is open */
    struct store_state files; /* the store's, but only the loop changes this */
    bool had_manifest; /* the store, before what is being saved: a thread may be making one */
    bool is_reserved;  /* the store was opened by persistence_prepare_settings, undecided */
    struct journal journal;
    struct snapshot snapshot;
    bool is_streaming; /* what is being saved goes to a client */
    bool is_streamed;  /* the last one is whole in its pipe */
    bool has_reader;   /* from persistence_stream_begin to persistence_stream_end */
    struct stream stream;
    /* Ends the process that reads it; NULL: there is none. */
    void (*end_reader)(void *context);
    void *reader_context;
    struct staging staging;               /* from a master */
    bool is_applying;                     /* the registry changes as a master's group says */
    persistence_close_group *close_group; /* NULL: there is nothing to do */
    void *close_context;
    bool is_following;             /* all changes are a master's groups */
    struct loading *loading;       /* NULL once it is done */
    struct loading *ended_loading; /* its memory, until the loop has closed its handle */
    uint64_t loading_begin_us;
    int64_t loading_start_s; /* unix time, like save_end_s; fields ending in _ms are monotonic */
    int64_t progress_ms;
    bool is_blocking;                   /* within a call that waits: changed must not be called */
    bool has_news;                      /* changed is to be called afterwards */
    bool is_save_ok;                    /* the last snapshot succeeded */
    uint64_t changes_before;            /* state->change_count when the last snapshot began */
    uint64_t changes_saved;             /* and when the last successful one began */
    uint64_t jumps_before, jumps_saved; /* the same for clock->jump_count */
    int64_t save_begin_ms, save_end_ms, save_end_s, attempt_ms, save_seconds;
    uint64_t save_count;
    uint64_t base_size, journal_size_at_base;
    uint64_t tick_begin_size; /* journal_gathered_size when this tick began */
    char refusal[REFUSAL_MAX];
    char error[PERSISTENCE_ERROR_MAX]; /* STOPPED: why */
};

static inline double persistence_seconds_since(uint64_t begin_us) {
    return (double)(clock_monotonic_us() - begin_us) / 1e6;
}

static inline enum setting_appendfsync
persistence_policy_of(const struct persistence *persistence) {
    return (enum setting_appendfsync)persistence->settings->appendfsync;
}

static inline bool persistence_is_on(const struct persistence *persistence) {
    return persistence->journal.state == JOURNAL_WRITES;
}

static inline bool persistence_has_store(const struct persistence *persistence) {
    return persistence->store.directory >= 0;
}

/* ---- persistence.c ---- */

/* machine: journaling or saving. */
void persistence_move(struct persistence *persistence, enum state *machine, enum event event);
/* The process must end before anything more is answered. */
__attribute__((format(printf, 2, 3))) void persistence_stop_at_once(struct persistence *persistence,
                                                                    const char *format, ...);
/* No thread has the store. */
void persistence_note_files(struct persistence *persistence);
/* Let replies be sent, and pass effects to the modules that need them now. Not within a command:
 * changed may close the command's own client when only part of its effects are recorded. */
void persistence_publish(struct persistence *persistence);
/* A thread is done. */
void persistence_on_progress(void *context);

/* From now on threads may change what the store says of its files. event: SAVE_ASKED or its like. */
void persistence_begin_saving(struct persistence *persistence, enum event event);
/* true: error says why, and nothing can begin. */
MUST_CHECK bool persistence_is_stopped(struct persistence *persistence, char *error);

/* ---- persistence_stream.c ---- */

/* Close the pipe; a stream that goes on is given up, and who reads it ended. */
void persistence_stream_close(struct persistence *persistence);

/* ---- persistence_load.c ---- */

/* false: error says why. */
MUST_CHECK bool persistence_load_start(struct persistence *persistence, char *error);
/* true: there is more to do at once. */
MUST_CHECK bool persistence_load_step(struct persistence *persistence);
/* All is loaded. false: error says why. */
MUST_CHECK bool persistence_load_finish(struct persistence *persistence, char *error);
void persistence_load_end(struct persistence *persistence);
void persistence_load_describe(const struct persistence *persistence,
                               struct persistence_info *info);

#endif
