/* An allocator for many pieces of up to 1 MiB, out of 2 MiB chunks.
 *
 *     chunk   [ header piece | header piece | ... | end ]     a header is 8 bytes
 *
 * Free pieces are in two-level segregated lists by size, with a bitmap per level, so allocating and
 * freeing take constant time. Adjacent free pieces are merged at once (TLSF: Masmano, Ripoll,
 * Crespo and Real, "TLSF: a new dynamic memory allocator for real-time systems", ECRTS 2004). A
 * chunk is given back as soon as it is empty, so freeing 1 GiB piece by piece never stalls the
 * program. A few recently freed pieces of each size are cached (pool_settle).
 *
 * Why not libc or jemalloc: with 4 KiB pages each access to a large board misses the TLB, too; libc
 * returns memory only on request, and stops the program for 0.1 ms a mebibyte; allocators with size
 * classes waste more than they save, because blocks change size all the time. bench/README.md has
 * the comparison. Keys, which never move, come from the other end of the free space than blocks.
 *
 * Not thread-safe. Independent of its users; the project calls codec/memory.h. */
#ifndef CODEC_POOL_H
#define CODEC_POOL_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "codec/check.h"

/* ---- chunks ----
 *
 * Of 2 MiB, from one range of address space, each a huge page where the system supports them.
 *
 *     fresh      never used                      the system provides memory on first touch, which
 *     returned   given back to the system        may take milliseconds
 *     ready      memory provided ahead of use
 *     spare      freed by the user, memory kept
 *
 * First touches and giving memory back stall the thread that does them, so a background thread, the
 * keeper, does both. It keeps a few chunks ready while usage grows, otherwise one when the user says
 * that it will need another soon, and gives back chunks that are not needed as spare. It never touches
 * the contents of a chunk. Without a keeper (no thread, an old kernel) the user's own first touches do
 * the work.
 *
 * One thread takes and gives chunks; the keeper is the only other thread. */

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
    bool is_expected;     /* pool_chunks_expect since the last one was taken */
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

/* Reserve about this much address space. false: the system refused; pool_chunks_take then always
 * fails. */
MUST_CHECK bool pool_chunks_init(struct chunks *chunks, size_t range_size, bool with_keeper);
/* Unmap everything, including chunks in use. */
void pool_chunks_deinit(struct chunks *chunks);

/* The user's chunks are nearly full: have one ready. */
void pool_chunks_expect(struct chunks *chunks);
/* A chunk with undefined contents; NULL: the range is exhausted. */
MUST_CHECK char *pool_chunks_take(struct chunks *chunks);
/* Free a chunk, given any address inside it. */
void pool_chunks_give(struct chunks *chunks, const void *at);
/* Has the keeper provided memory for the next chunks? Work that can wait should wait for that, rather than touch
 * fresh memory itself. While usage grows, one chunk is left to work that cannot. true where waiting is of no use:
 * without a keeper, and at the end of the range. */
bool pool_chunks_are_ready(struct chunks *chunks);

/* Is this chunk held by the user? For validation, without a keeper. */
bool pool_chunks_is_used(const struct chunks *chunks, uint32_t chunk);

/* ---- pieces ---- */

enum {
    POOL_PIECE_MAX = 1024 * 1024, /* maximum bytes of one piece */
    POOL_HEADER_SIZE = 8,
    POOL_SUBLISTS = 32, /* size classes between two powers of two */
    POOL_LISTS = 13,
    POOL_RECENT_SIZES = 128, /* multiples of 16 bytes */
    POOL_RECENT_MAX = 8,     /* cached pieces of one size */
};

struct pool_piece;
struct pool_free_piece;

struct pool {
    struct chunks chunks;
    /* Recently freed pieces by size; the chunks still count them as in use. A block that grows or
     * shrinks leaves a piece that the next such block reuses. That piece is in the CPU cache, and
     * reusing it does not touch its neighbours, which are not. */
    struct pool_piece *recent[POOL_RECENT_SIZES][POOL_RECENT_MAX];
    uint8_t recent_count[POOL_RECENT_SIZES];
    uint32_t lists_in_use; /* bit i: sublists_in_use[i] is not 0 */
    uint32_t sublists_in_use[POOL_LISTS];
    struct pool_free_piece *free[POOL_LISTS][POOL_SUBLISTS];
};

/* Reserve about this much address space; memory is taken from the system as needed. false: the
 * system refused; the pool is then empty and every allocation fails. */
MUST_CHECK bool pool_init(struct pool *pool, size_t range_size, bool with_keeper);
/* Unmap everything, including pieces still allocated. */
void pool_deinit(struct pool *pool);

/* size bytes (1 .. POOL_PIECE_MAX), uninitialised, 16-byte aligned; NULL: the range is
 * exhausted. */
MUST_CHECK void *pool_allocate(struct pool *pool, size_t size);
/* The same for long-lived pieces: they come from the other end of the free space, which reduces
 * fragmentation by short-lived ones. */
MUST_CHECK void *pool_allocate_lasting(struct pool *pool, size_t size);
/* Free a piece from either function. */
void pool_free(struct pool *pool, void *at);
/* Free the cached pieces, so that chunks can become empty. Takes a fraction of a millisecond; call
 * it now and then. */
void pool_settle(struct pool *pool);
/* Resize the piece in place (1 .. POOL_PIECE_MAX). false: the space behind it is in use; the piece
 * is unchanged. */
MUST_CHECK bool pool_resize(struct pool *pool, void *at, size_t size);

/* Usable bytes of a piece: at least the requested size. */
static inline size_t pool_size(const void *at) {
    uint64_t header;
    /* The linter does not know about the header before the piece. */
    memcpy(&header, (const char *)at - POOL_HEADER_SIZE, sizeof header);
    return (header & ~UINT64_C(15)) - POOL_HEADER_SIZE; // NOLINT(clang-analyzer-core.*)
}

/* Was this piece allocated from the pool? */
static inline bool pool_owns(const struct pool *pool, const void *at) {
    return (uintptr_t)at - (uintptr_t)pool->chunks.range < pool->chunks.range_size;
}

/* Check that every chunk in use is a gapless sequence of pieces, that no two adjacent pieces are
 * free, and that the lists hold exactly the free pieces. reason: the first violated invariant. */
MUST_CHECK bool pool_validate(struct pool *pool, const char **reason);

#endif
