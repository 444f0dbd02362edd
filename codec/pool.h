/* Memory for very many pieces of up to a mebibyte, out of chunks of 2 MiB (codec/chunks.h).
 *
 *     chunk   [ header piece | header piece | ... | end ]     a header is 8 bytes
 *
 * Free pieces lie in lists by size, two levels of them with a bitmap each, so that allocating and
 * freeing take constant time; free neighbours are joined at once (TLSF: Masmano, Ripoll, Crespo and
 * Real, "TLSF: a new dynamic memory allocator for real-time systems", ECRTS 2004). A chunk that
 * holds nothing is given back when it becomes empty, so freeing a gibibyte piece by piece never
 * stops the program. Only a few pieces of each size, freed of late, are kept at hand (pool_settle).
 *
 * Not thread-safe. It knows nothing of who uses it; codec/memory.h is what the project calls. */
#ifndef CODEC_POOL_H
#define CODEC_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "codec/chunks.h"

enum {
    POOL_PIECE_MAX = 1024 * 1024, /* bytes of one piece at the most */
    POOL_HEADER_SIZE = 8,
    POOL_SUBLISTS = 32, /* sizes between two powers of two */
    POOL_LISTS = 13,
    POOL_RECENT_SIZES = 128, /* multiples of 16 bytes */
    POOL_RECENT_MAX = 8,     /* pieces of one size */
};

struct pool_piece;
struct pool_free_piece;

struct pool {
    struct chunks chunks;
    /* Pieces freed of late, by size; to the chunks they are still in use. A block that grows or
     * shrinks leaves a piece that the next such block takes: it is in the cache, and neither of
     * them touches its neighbours, which are not. */
    struct pool_piece *recent[POOL_RECENT_SIZES][POOL_RECENT_MAX];
    uint8_t recent_count[POOL_RECENT_SIZES];
    uint32_t lists_in_use; /* bit i: sublists_in_use[i] is not 0 */
    uint32_t sublists_in_use[POOL_LISTS];
    struct pool_free_piece *free[POOL_LISTS][POOL_SUBLISTS];
};

/* Reserve address space of about this size; memory is taken from the system as it is needed.
 * false: the system does not give it; pool is then empty, and nothing can be allocated. */
MUST_CHECK bool pool_init(struct pool *pool, size_t range_size, bool with_keeper);
/* Give everything back, whatever is still allocated. */
void pool_deinit(struct pool *pool);

/* size bytes (1 .. POOL_PIECE_MAX), uninitialised, on a boundary of 16; NULL: the range is used
 * up. */
MUST_CHECK void *pool_allocate(struct pool *pool, size_t size);
/* The same for what will stay long where it is: it comes from the other end of the free space, so
 * that what comes and goes leaves no holes between. */
MUST_CHECK void *pool_allocate_lasting(struct pool *pool, size_t size);
/* at: from either of them. */
void pool_free(struct pool *pool, void *at);
/* Free in earnest what was freed of late, so that chunks can become empty. Takes a fraction of a
 * millisecond; to be called now and then. */
void pool_settle(struct pool *pool);
/* Make the piece size bytes long where it lies (1 .. POOL_PIECE_MAX). false: there is something
 * behind it, and it is as it was. */
MUST_CHECK bool pool_resize(struct pool *pool, void *at, size_t size);

/* Usable bytes of a piece: at least what was asked for. */
static inline size_t pool_size(const void *at) {
    uint64_t header;
    /* The linter does not know that something lies before the piece. */
    memcpy(&header, (const char *)at - POOL_HEADER_SIZE, sizeof header);
    return (header & ~UINT64_C(15)) - POOL_HEADER_SIZE; // NOLINT(clang-analyzer-core.*)
}

/* Is this a piece of the pool's? */
static inline bool pool_owns(const struct pool *pool, const void *at) {
    return (uintptr_t)at - (uintptr_t)pool->chunks.range < pool->chunks.range_size;
}

/* Check that every chunk in use is a row of pieces without a gap, that no two neighbours are free,
 * and that the lists hold the free ones. reason: the first claim that does not hold. */
MUST_CHECK bool pool_validate(struct pool *pool, const char **reason);

#endif
