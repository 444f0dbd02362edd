/* Chunks of 2 MiB, out of one range of address space, each a huge page where the system has them.
 *
 *     fresh    never used                       the system gives its memory when it is first
 * touched, returned given back to the system         which may take milliseconds ready    given
 * memory ahead of its use spare    given back by the user, memory kept
 *
 * First touches and giving back stop whoever does them, so the keeper, a thread of its own, does
 * both: it keeps a few chunks ready while more and more are taken, one otherwise, and gives back
 * what is not needed as spare. It never touches
 * what is in a chunk. Without it (no thread, an old kernel) the user's own touches do the work.
 *
 * One thread takes and gives; the keeper is the other one that there is. */
#ifndef CODEC_CHUNKS_H
#define CODEC_CHUNKS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "codec/check.h"

enum {
    CHUNK_SIZE = 2 * 1024 * 1024,
    CHUNKS_READY = 3, /* while more and more are taken; else one */
    CHUNKS_SPARE_MAX = 1,
    CHUNKS_MANY = 8, /* in use; with fewer only one is kept ready: a small server stays small */
    CHUNKS_IDLE_S = 1,
};

struct chunks {
    char *range; /* on a chunk's boundary; NULL: there is none */
    size_t range_size;
    void *mapping; /* what was mapped for it */
    size_t mapping_size;
    bool has_keeper;
    pthread_t keeper;
    pthread_mutex_t lock; /* all below */
    pthread_cond_t wake;  /* the keeper */
    bool is_ending;
    bool is_growing;      /* chunks that were not spare have been taken of late */
    uint32_t fresh_begin; /* chunks from here on are fresh */
    uint32_t used_count;  /* chunks that the user has */
    uint64_t taken_count; /* ever */
    /* Stacks of chunk numbers. */
    uint32_t ready[CHUNKS_READY];
    uint32_t spare[CHUNKS_SPARE_MAX];
    uint32_t *returned;
    uint32_t *leaving; /* for the keeper to give back */
    uint32_t ready_count, spare_count, returned_count, leaving_count;
};

/* Reserve address space of about this size. false: the system does not give it, and there is
 * nothing to take. */
MUST_CHECK bool chunks_init(struct chunks *chunks, size_t range_size, bool with_keeper);
/* Give everything back, whatever is in use. */
void chunks_deinit(struct chunks *chunks);

/* A chunk, whatever is in it; NULL: the range is used up. */
MUST_CHECK char *chunks_take(struct chunks *chunks);
/* Give a chunk back, by any address inside. */
void chunks_give(struct chunks *chunks, const void *at);

/* Does the user have this chunk? For checking, without a keeper. */
bool chunks_is_used(const struct chunks *chunks, uint32_t chunk);
/* Bytes of all chunks that may have memory of the system's. */
size_t chunks_held_size(struct chunks *chunks);

#endif
