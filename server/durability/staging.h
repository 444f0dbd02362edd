/* A full copy that a master sends, the bytes of a base: written to a file by a thread, loaded beside
 * the keys, and made the base. Then the keys of both are exchanged.
 *
 *     socket --> filling --> writing --> leaderboard.<n>.base --> another registry --> the manifest
 *                (loop)      (thread)                    (loading.h)              (thread)
 *
 *     RECEIVING --staging_end--> SYNCING --> LOADING --> LOADED --> ADOPTING --> ADOPTED
 *          any of them but ADOPTING and ADOPTED  --> FAILED
 *
 * FAILED leaves everything as it was. Persistence begins it, adopts what is LOADED and clears it
 * away (persistence_begin_receive); whoever reads the socket does the rest.
 *
 * It never waits for the disk: whoever reads the socket stops while staging_is_full. */
#ifndef SERVER_STAGING_H
#define SERVER_STAGING_H

#include "codec/buffer.h"
#include "server/durability/loading.h"
#include "server/durability/persistence.h"

enum staging_state {
    STAGING_NONE,
    STAGING_RECEIVING,
    STAGING_SYNCING,
    STAGING_LOADING,
    STAGING_LOADED, /* it waits until no save is going on */
    STAGING_ADOPTING,
    STAGING_ADOPTED,
    STAGING_FAILED,
};

struct staging {
    enum staging_state state;
    struct worker worker;
    bool has_worker; /* it is started when it is first needed */
    void (*changed)(void *context);
    void *context;
    struct store *store; /* borrowed; the thread's while ADOPTING */
    struct buffer filling, writing;
    uint64_t number;     /* of the file */
    int fd;              /* -1: it is not open */
    bool is_made;        /* there may be a file that the manifest does not name */
    uint64_t size;       /* written so far */
    struct store source; /* the file alone, for loading */
    struct loading *loading;
    struct registry *registry; /* what is loaded, or (ADOPTED) was replaced; NULL: none */
    bool is_clearing;          /* the registry is being freed; so is loading */
    bool is_given_up;
    bool waits_for_memory; /* none was at hand (memory_is_ready): step again in a millisecond */
    /* adopting */
    uint64_t group, time_us; /* of the footer */
    bool has_journal;        /* a new journal follows the base */
    bool is_adopted;
    bool is_kept; /* the manifest may name the file, though that is not certain to be on disk */
    uint64_t journal_number;
    struct journal_file journal; /* fd -1: none */
    struct store_state new_state;
    int error_number; /* of the thread's job; 0: it is fine */
    const char *what;
    char error[PERSISTENCE_ERROR_MAX]; /* FAILED: why */
};

/* A zeroed struct. changed is called on the loop when the thread is done. */
void staging_init(struct staging *staging, void (*changed)(void *context), void *context);
/* Stop the thread; the loop turns once more before staging_free. */
void staging_deinit(struct staging *staging);
void staging_free(struct staging *staging);

/* From STAGING_NONE. like: the registry it is to replace. false: no memory or thread, and nothing changed. */
MUST_CHECK bool staging_begin(struct staging *staging, struct store *store,
                              const struct registry *like, uv_loop_t *loop);
/* The next bytes: copied. Errors show in the state. */
void staging_add(struct staging *staging, const char *at, size_t size);
/* Should nothing more be received until the disk has taken some? The loop wakes then. */
bool staging_is_full(const struct staging *staging);
/* All of it has come. */
void staging_end(struct staging *staging);
/* Load, or clear away, for about budget_ns. true: there is more to do at once. */
bool staging_step(struct staging *staging, uint64_t budget_ns);
/* How many bytes of it are loaded. */
uint64_t staging_loaded_size(const struct staging *staging);
/* Make it the base, with a new journal behind it or none; from STAGING_LOADED, or again while it
 * is_kept. The job's result is in is_adopted, is_kept and error. */
void staging_adopt(struct staging *staging, bool has_journal);
/* Back to STAGING_NONE, in steps where much is to be freed (is_clearing). Not while the thread adopts. */
void staging_clear(struct staging *staging);

#endif
