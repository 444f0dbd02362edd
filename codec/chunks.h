/* 2 MiB chunks from one range of address space, each a huge page where the system supports them.
 *
 *     fresh      never used                      the system provides memory on first touch, which
 *     returned   given back to the system        may take milliseconds
 *     ready      memory provided ahead of use
 *     spare      freed by the user, memory kept
 *
 * First touches and giving memory back stall the thread that does them, so a background thread, the
 * keeper, does both. It keeps a few chunks ready while usage grows, otherwise one when the user says
 * that it will need another soon, and gives back chunks that are not needed as spare. It never touches the contents of a chunk. Without a keeper
 * (no thread, an old kernel) the user's own first touches do the work.
 *
 * One thread takes and gives chunks; the keeper is the only other thread. */
#ifndef CODEC_CHUNKS_H
#define CODEC_CHUNKS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "codec/check.h"

enum {
    CHUNK_SIZE = 2 * 1024 * 1024,
    CHUNKS_READY = 3, /* while usage grows; otherwise one or none */
    CHUNKS_SPARE_MAX = 1,
    CHUNKS_MANY = 8, /* in use; below this only one chunk is kept ready, to stay small */
    CHUNKS_IDLE_S = 1,
};

struct chunks {
    char *range; /* chunk-aligned; NULL: no range */
    size_t range_size;
    void *mapping; /* the mapping that contains the range */
    size_t mapping_size;
    bool has_keeper;
    pthread_t keeper;
    pthread_mutex_t lock; /* guards everything below */
    pthread_cond_t wake;  /* wakes the keeper */
    bool is_ending;
    bool is_growing;      /* non-spare chunks were taken recently */
    bool is_expected;     /* chunks_expect since the last one was taken */
    uint32_t fresh_begin; /* chunks from here on are fresh */
    uint32_t used_count;  /* chunks held by the user */
    uint64_t taken_count; /* total since the start */
    /* Stacks of chunk numbers. */
    uint32_t ready[CHUNKS_READY];
    uint32_t spare[CHUNKS_SPARE_MAX];
    uint32_t *returned;
    uint32_t *leaving; /* for the keeper to return to the system */
    uint32_t ready_count, spare_count, returned_count, leaving_count;
};

/* Reserve about this much address space. false: the system refused; chunks_take then always
 * fails. */
MUST_CHECK bool chunks_init(struct chunks *chunks, size_t range_size, bool with_keeper);
/* Unmap everything, including chunks in use. */
void chunks_deinit(struct chunks *chunks);

/* The user's chunks are nearly full: have one ready. */
void chunks_expect(struct chunks *chunks);
/* A chunk with undefined contents; NULL: the range is exhausted. */
MUST_CHECK char *chunks_take(struct chunks *chunks);
/* Free a chunk, given any address inside it. */
void chunks_give(struct chunks *chunks, const void *at);
/* Has the keeper provided memory for the next chunks? Work that can wait should wait for that, rather than touch
 * fresh memory itself. While usage grows, one chunk is left to work that cannot. true where waiting is of no use:
 * without a keeper, and at the end of the range. */
bool chunks_are_ready(struct chunks *chunks);

/* Is this chunk held by the user? For validation, without a keeper. */
bool chunks_is_used(const struct chunks *chunks, uint32_t chunk);

#endif
