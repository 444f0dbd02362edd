/* A piece begins with its header, 8 bytes before a 16-byte boundary:
 *
 *     allocated   [ size | flags ][ the user's bytes                                ]
 *     free        [ size | flags ][ next ][ previous ]  ...  [ size, once more      ]
 *
 * size includes the header and is a multiple of 16, so its low bits hold two flags: this piece is
 * free, and the previous piece is free. A free piece repeats its size in its last bytes, where the
 * following piece finds it.
 *
 * Invariants: no two adjacent pieces are free; a chunk ends with a header of size 0, which is never
 * free; no chunk in use consists of a single free piece.
 *
 * Invariant: a chunk is in use, or in exactly one stack, or being processed by the keeper, or
 * fresh. The lock is held for only a few stores at a time, never during a long system call. */
#include "codec/pool.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "codec/thread_signals.h"

/* Since Linux 5.14; missing in older headers. */
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

static char *pool_chunk_at(const struct chunks *chunks, uint32_t chunk) {
    return chunks->range + (size_t)chunk * CHUNK_SIZE;
}

static bool pool_chunks_has_empty(const struct chunks *chunks) {
    return chunks->returned_count > 0 || chunks->fresh_begin < chunks->range_size / CHUNK_SIZE;
}

/* A chunk without memory. false: none left. */
static bool pool_chunks_pop_empty(struct chunks *chunks, uint32_t *chunk) {
    if (!pool_chunks_has_empty(chunks)) {
        return false;
    }
    if (chunks->returned_count > 0) {
        *chunk = chunks->returned[--chunks->returned_count];
        return true;
    }
    *chunk = chunks->fresh_begin++;
    (void)madvise(pool_chunk_at(chunks, *chunk), CHUNK_SIZE, MADV_DODUMP);
    return true;
}

/* ---- the keeper of the chunks ---- */

static uint32_t pool_chunks_wanted_ready(const struct chunks *chunks) {
    if (!chunks->is_growing) {
        return chunks->is_expected;
    }
    return chunks->used_count >= CHUNKS_MANY ? CHUNKS_READY : 1;
}

static bool pool_chunks_wants_ready(const struct chunks *chunks) {
    return chunks->ready_count + chunks->spare_count < pool_chunks_wanted_ready(chunks);
}

/* Called with the lock held; releases it during the system call. */
static void pool_chunks_advise(struct chunks *chunks, uint32_t chunk, int advice) {
    pthread_mutex_unlock(&chunks->lock);
    (void)madvise(pool_chunk_at(chunks, chunk), CHUNK_SIZE, advice);
    pthread_mutex_lock(&chunks->lock);
}

static void *pool_chunks_keep(void *context) {
    struct chunks *chunks = context;
    thread_signals_begin();
    pthread_mutex_lock(&chunks->lock);
    while (!chunks->is_ending) {
        uint32_t chunk;
        if (chunks->leaving_count > 0) {
            chunk = chunks->leaving[--chunks->leaving_count];
            pool_chunks_advise(chunks, chunk, MADV_DONTNEED);
            chunks->returned[chunks->returned_count++] = chunk;
        } else if (pool_chunks_wants_ready(chunks) && pool_chunks_pop_empty(chunks, &chunk)) {
            pool_chunks_advise(chunks, chunk, MADV_POPULATE_WRITE);
            chunks->ready[chunks->ready_count++] = chunk;
        } else if (chunks->ready_count > pool_chunks_wanted_ready(chunks)) {
            chunks->leaving[chunks->leaving_count++] = chunks->ready[--chunks->ready_count];
        } else if (chunks->is_growing) {
            /* Growth that has paused counts as finished. */
            struct timespec until;
            clock_gettime(CLOCK_MONOTONIC, &until);
            until.tv_sec += CHUNKS_IDLE_S;
            uint64_t taken_before = chunks->taken_count;
            if (pthread_cond_timedwait(&chunks->wake, &chunks->lock, &until) == ETIMEDOUT) {
                chunks->is_growing = chunks->taken_count != taken_before;
            }
        } else {
            pthread_cond_wait(&chunks->wake, &chunks->lock);
        }
    }
    pthread_mutex_unlock(&chunks->lock);
    return NULL;
}

/* ---- chunks for their user ---- */

bool pool_chunks_init(struct chunks *chunks, size_t range_size, bool with_keeper) {
    *chunks = (struct chunks){.range = NULL};
    /* Map the range, one extra chunk for alignment, and two stacks behind it. */
    size_t count = range_size / CHUNK_SIZE;
    if (count == 0 || count >= UINT32_MAX) {
        return false;
    }
    size_t mapping_size = (count + 1) * CHUNK_SIZE + count * 2 * sizeof(uint32_t);
    char *mapping = mmap(NULL, mapping_size, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapping == MAP_FAILED) {
        return false;
    }
    size_t over = (uintptr_t)mapping % CHUNK_SIZE;
    chunks->mapping = mapping;
    chunks->mapping_size = mapping_size;
    chunks->range = mapping + (over > 0 ? CHUNK_SIZE - over : 0);
    chunks->range_size = count * CHUNK_SIZE;
    chunks->returned = (uint32_t *)(void *)(chunks->range + chunks->range_size);
    chunks->leaving = chunks->returned + count;
    /* Works without huge pages too, only more slowly. */
    (void)madvise(chunks->range, chunks->range_size, MADV_HUGEPAGE);
    /* What was never used would make a core dump as long as the range, even if of holes. */
    (void)madvise(chunks->range, chunks->range_size, MADV_DONTDUMP);

    pthread_mutex_init(&chunks->lock, NULL);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&chunks->wake, &attributes);
    pthread_condattr_destroy(&attributes);
    if (with_keeper) {
        /* Signals are blocked in the keeper, so that the other threads handle them. */
        sigset_t all, before;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        chunks->has_keeper = pthread_create(&chunks->keeper, NULL, pool_chunks_keep, chunks) == 0;
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    return true;
}

void pool_chunks_deinit(struct chunks *chunks) {
    if (chunks->range == NULL) {
        return;
    }
    if (chunks->has_keeper) {
        pthread_mutex_lock(&chunks->lock);
        chunks->is_ending = true;
        pthread_cond_signal(&chunks->wake);
        pthread_mutex_unlock(&chunks->lock);
        pthread_join(chunks->keeper, NULL);
    }
    pthread_cond_destroy(&chunks->wake);
    pthread_mutex_destroy(&chunks->lock);
    munmap(chunks->mapping, chunks->mapping_size);
    *chunks = (struct chunks){.range = NULL};
}

/* Called with the lock held. */
static void pool_chunks_wake_keeper(struct chunks *chunks) {
    if (chunks->has_keeper && pool_chunks_wants_ready(chunks)) {
        pthread_cond_signal(&chunks->wake);
    }
}

void pool_chunks_expect(struct chunks *chunks) {
    pthread_mutex_lock(&chunks->lock);
    chunks->is_expected = true;
    pool_chunks_wake_keeper(chunks);
    pthread_mutex_unlock(&chunks->lock);
}

char *pool_chunks_take(struct chunks *chunks) {
    uint32_t chunk;
    if (chunks->range == NULL) {
        return NULL;
    }
    pthread_mutex_lock(&chunks->lock);
    bool was_spare = chunks->spare_count > 0;
    bool is_there = true;
    /* Those available at once first; one in `leaving` still has its memory. */
    if (was_spare) {
        chunk = chunks->spare[--chunks->spare_count];
    } else if (chunks->leaving_count > 0) {
        chunk = chunks->leaving[--chunks->leaving_count];
    } else if (chunks->ready_count > 0) {
        chunk = chunks->ready[--chunks->ready_count];
    } else {
        is_there = pool_chunks_pop_empty(chunks, &chunk);
    }
    chunks->used_count += is_there;
    chunks->taken_count++;
    chunks->is_growing = chunks->is_growing || !was_spare;
    chunks->is_expected = false;
    pool_chunks_wake_keeper(chunks);
    pthread_mutex_unlock(&chunks->lock);
    return is_there ? pool_chunk_at(chunks, chunk) : NULL;
}

bool pool_chunks_are_ready(struct chunks *chunks) {
    if (!chunks->has_keeper) {
        return true;
    }
    pthread_mutex_lock(&chunks->lock);
    uint32_t count = chunks->spare_count + chunks->leaving_count + chunks->ready_count;
    uint32_t wanted = pool_chunks_wanted_ready(chunks);
    bool are_ready = count >= (wanted > 1 ? 2 : wanted) || !pool_chunks_has_empty(chunks);
    pthread_mutex_unlock(&chunks->lock);
    return are_ready;
}

void pool_chunks_give(struct chunks *chunks, const void *at) {
    uint32_t chunk = (uint32_t)((size_t)((const char *)at - chunks->range) / CHUNK_SIZE);
    pthread_mutex_lock(&chunks->lock);
    chunks->used_count--;
    if (chunks->spare_count < CHUNKS_SPARE_MAX) {
        chunks->spare[chunks->spare_count++] = chunk;
    } else if (chunks->has_keeper) {
        chunks->leaving[chunks->leaving_count++] = chunk;
        pthread_cond_signal(&chunks->wake);
    } else {
        (void)madvise(pool_chunk_at(chunks, chunk), CHUNK_SIZE, MADV_DONTNEED);
        chunks->returned[chunks->returned_count++] = chunk;
    }
    pthread_mutex_unlock(&chunks->lock);
}

static bool pool_chunks_is_in(const uint32_t *stack, uint32_t count, uint32_t chunk) {
    for (uint32_t i = 0; i < count; i++) {
        if (stack[i] == chunk) {
            return true;
        }
    }
    return false;
}

bool pool_chunks_is_used(const struct chunks *chunks, uint32_t chunk) {
    return chunk < chunks->fresh_begin &&
           !pool_chunks_is_in(chunks->ready, chunks->ready_count, chunk) &&
           !pool_chunks_is_in(chunks->spare, chunks->spare_count, chunk) &&
           !pool_chunks_is_in(chunks->leaving, chunks->leaving_count, chunk) &&
           !pool_chunks_is_in(chunks->returned, chunks->returned_count, chunk);
}

/* ---- pieces ---- */

enum {
    ALIGNMENT = 16,
    PIECE_MIN = 32,
    /* Chunk overhead: 8 bytes before the first header, and the end header. */
    CHUNK_PIECE_SIZE = CHUNK_SIZE - ALIGNMENT,
    SUBLIST_BITS = 5,
    /* When no free piece is larger, another chunk will be needed soon. */
    CHUNK_REST = CHUNK_SIZE / 4,
};
#define IS_FREE          UINT64_C(1)
#define IS_PREVIOUS_FREE UINT64_C(2)
#define FLAGS            (IS_FREE | IS_PREVIOUS_FREE)

struct pool_piece {
    uint64_t size_and_flags;
};

struct pool_free_piece {
    struct pool_piece piece;
    struct pool_free_piece *next;
    struct pool_free_piece *previous;
};

static uint64_t pool_size_of(const struct pool_piece *piece) {
    return piece->size_and_flags & ~FLAGS;
}

static bool pool_is_free(const struct pool_piece *piece) {
    return (piece->size_and_flags & IS_FREE) != 0;
}

static struct pool_piece *pool_behind(struct pool_piece *piece) {
    return (struct pool_piece *)(void *)((char *)piece + pool_size_of(piece));
}

static struct pool_piece *pool_piece_of(void *at) {
    return (struct pool_piece *)(void *)((char *)at - POOL_HEADER_SIZE);
}

/* ---- lists of free pieces ---- */

struct list {
    uint32_t first;
    uint32_t second;
};

/* The list for this size. Each size below 64 units has its own list. */
static struct list pool_list_for(uint64_t size) {
    uint32_t units = (uint32_t)(size / ALIGNMENT);
    if (units < POOL_SUBLISTS) {
        return (struct list){.first = 0, .second = units};
    }
    uint32_t top = 31U - (uint32_t)__builtin_clz(units);
    return (struct list){
        .first = top - SUBLIST_BITS + 1,
        .second = units >> (top - SUBLIST_BITS) & (POOL_SUBLISTS - 1),
    };
}

static void pool_take_from_list(struct pool *pool, struct pool_piece *piece) {
    struct pool_free_piece *free_piece = (struct pool_free_piece *)(void *)piece;
    if (free_piece->next != NULL) {
        free_piece->next->previous = free_piece->previous;
    }
    if (free_piece->previous != NULL) {
        free_piece->previous->next = free_piece->next;
        return;
    }
    struct list list = pool_list_for(pool_size_of(piece));
    pool->free[list.first][list.second] = free_piece->next;
    if (free_piece->next == NULL) {
        pool->sublists_in_use[list.first] &= ~(UINT32_C(1) << list.second);
        if (pool->sublists_in_use[list.first] == 0) {
            pool->lists_in_use &= ~(UINT32_C(1) << list.first);
        }
    }
}

/* The first piece of the first non-empty list from this one on; NULL: none. */
static struct pool_piece *pool_first_from(const struct pool *pool, struct list list) {
    uint32_t seconds = list.second < POOL_SUBLISTS
                           ? pool->sublists_in_use[list.first] & UINT32_MAX << list.second
                           : 0;
    if (seconds == 0) {
        uint32_t firsts = pool->lists_in_use & UINT32_MAX << list.first << 1;
        if (firsts == 0) {
            return NULL;
        }
        list.first = (uint32_t)__builtin_ctz(firsts);
        seconds = pool->sublists_in_use[list.first];
    }
    return &pool->free[list.first][__builtin_ctz(seconds)]->piece;
}

/* A free piece of at least this size. Pieces in the list of the size itself may be too short, so
 * only its first is tried; the pieces of later lists are all long enough. */
static struct pool_piece *pool_find_free(const struct pool *pool, uint64_t size) {
    struct list list = pool_list_for(size);
    const struct pool_free_piece *first = pool->free[list.first][list.second];
    if (first != NULL && pool_size_of(&first->piece) >= size) {
        return &pool->free[list.first][list.second]->piece;
    }
    list.second++;
    return pool_first_from(pool, list);
}

/* ---- the pool ---- */

bool pool_init(struct pool *pool, size_t range_size, bool with_keeper) {
    *pool = (struct pool){.lists_in_use = 0};
    return pool_chunks_init(&pool->chunks, range_size, with_keeper);
}

void pool_deinit(struct pool *pool) {
    pool_chunks_deinit(&pool->chunks);
    *pool = (struct pool){.lists_in_use = 0};
}

/* ---- taking and giving pieces ---- */

static uint64_t pool_size_for(size_t size) {
    uint64_t whole = (size + POOL_HEADER_SIZE + ALIGNMENT - 1) & ~(uint64_t)(ALIGNMENT - 1);
    return whole > PIECE_MIN ? whole : PIECE_MIN;
}

/* Mark a piece as free and add it to its list. The previous piece is not free. */
static void pool_make_free(struct pool *pool, struct pool_piece *piece, uint64_t size) {
    piece->size_and_flags = size | IS_FREE;
    struct pool_piece *next = pool_behind(piece);
    memcpy((char *)next - sizeof size, &size, sizeof size);
    next->size_and_flags |= IS_PREVIOUS_FREE;
    struct pool_free_piece *free_piece = (struct pool_free_piece *)(void *)piece;
    struct list list = pool_list_for(pool_size_of(piece));
    struct pool_free_piece *behind = pool->free[list.first][list.second];
    free_piece->next = behind;
    free_piece->previous = NULL;
    if (behind != NULL) {
        behind->previous = free_piece;
    }
    pool->free[list.first][list.second] = free_piece;
    pool->sublists_in_use[list.first] |= UINT32_C(1) << list.second;
    pool->lists_in_use |= UINT32_C(1) << list.first;
}

/* Trim an allocated piece to this size. The following piece is not free. */
static void pool_cut(struct pool *pool, struct pool_piece *piece, uint64_t size) {
    uint64_t rest = pool_size_of(piece) - size;
    if (rest < PIECE_MIN) {
        pool_behind(piece)->size_and_flags &= ~IS_PREVIOUS_FREE;
        return;
    }
    piece->size_and_flags -= rest;
    pool_make_free(pool, pool_behind(piece), rest);
}

/* Keep only the last size bytes of an allocated piece. The previous piece is not free. */
static struct pool_piece *pool_cut_front(struct pool *pool, struct pool_piece *piece,
                                         uint64_t size) {
    uint64_t rest = pool_size_of(piece) - size;
    if (rest < PIECE_MIN) {
        pool_cut(pool, piece, pool_size_of(piece));
        return piece;
    }
    struct pool_piece *last = (struct pool_piece *)(void *)((char *)piece + rest);
    last->size_and_flags = size;
    pool_behind(last)->size_and_flags &= ~IS_PREVIOUS_FREE;
    pool_make_free(pool, piece, rest);
    return last;
}

/* A piece of at least `whole` bytes, in no list. *is_recent: it has exactly that size and needs no
 * trimming. NULL: the range is exhausted. */
static struct pool_piece *pool_take_piece(struct pool *pool, uint64_t whole, bool *is_recent) {
    uint64_t number = whole / ALIGNMENT;
    *is_recent = number < POOL_RECENT_SIZES && pool->recent_count[number] > 0;
    if (*is_recent) {
        return pool->recent[number][--pool->recent_count[number]];
    }
    struct pool_piece *piece = pool_find_free(pool, whole);
    if (piece != NULL) {
        pool_take_from_list(pool, piece);
    } else {
        /* A new chunk as one free piece that is in no list, with the end marked. */
        char *chunk = pool_chunks_take(&pool->chunks);
        if (chunk == NULL) {
            return NULL;
        }
        piece = (struct pool_piece *)(void *)(chunk + ALIGNMENT - POOL_HEADER_SIZE);
        piece->size_and_flags = CHUNK_PIECE_SIZE | IS_FREE;
        pool_behind(piece)->size_and_flags = 0;
    }
    if (pool_size_of(piece) >= CHUNK_REST && pool_size_of(piece) - whole < CHUNK_REST &&
        pool_first_from(pool, pool_list_for(CHUNK_REST)) == NULL) {
        pool_chunks_expect(&pool->chunks);
    }
    piece->size_and_flags &= ~IS_FREE;
    return piece;
}

/* A piece from the start or the end of a free piece, trimmed to size. */
static inline void *pool_allocate_piece(struct pool *pool, size_t size, bool is_lasting) {
    CHECK(size >= 1);
    CHECK(size <= POOL_PIECE_MAX);
    bool is_recent;
    struct pool_piece *piece = pool_take_piece(pool, pool_size_for(size), &is_recent);
    if (piece == NULL) {
        return NULL;
    }
    if (!is_recent && is_lasting) {
        piece = pool_cut_front(pool, piece, pool_size_for(size));
    } else if (!is_recent) {
        pool_cut(pool, piece, pool_size_for(size));
    }
    return (char *)piece + POOL_HEADER_SIZE;
}

void *pool_allocate(struct pool *pool, size_t size) {
    return pool_allocate_piece(pool, size, false);
}

void *pool_allocate_lasting(struct pool *pool, size_t size) {
    return pool_allocate_piece(pool, size, true);
}

static void pool_return_piece(struct pool *pool, struct pool_piece *piece) {
    CHECK(!pool_is_free(piece));
    uint64_t size = pool_size_of(piece);
    struct pool_piece *next = pool_behind(piece);
    if (pool_is_free(next)) {
        pool_take_from_list(pool, next);
        size += pool_size_of(next);
    }
    if ((piece->size_and_flags & IS_PREVIOUS_FREE) != 0) {
        uint64_t previous_size;
        memcpy(&previous_size, (char *)piece - sizeof previous_size, sizeof previous_size);
        piece = (struct pool_piece *)(void *)((char *)piece - previous_size);
        pool_take_from_list(pool, piece);
        size += previous_size;
    }
    if (size == CHUNK_PIECE_SIZE) {
        pool_chunks_give(&pool->chunks, piece);
    } else {
        pool_make_free(pool, piece, size);
    }
}

void pool_free(struct pool *pool, void *at) {
    struct pool_piece *piece = pool_piece_of(at);
    uint64_t number = pool_size_of(piece) / ALIGNMENT;
    CHECK(!pool_is_free(piece));
    if (number >= POOL_RECENT_SIZES) {
        pool_return_piece(pool, piece);
        return;
    }
    if (pool->recent_count[number] == POOL_RECENT_MAX) {
        /* Free the older half of the cached pieces of one size. */
        struct pool_piece **recent = pool->recent[number];
        for (unsigned i = 0; i < POOL_RECENT_MAX / 2; i++) {
            pool_return_piece(pool, recent[i]);
        }
        memmove(recent, recent + POOL_RECENT_MAX / 2, sizeof(pool->recent[number]) / 2);
        pool->recent_count[number] = POOL_RECENT_MAX / 2;
    }
    pool->recent[number][pool->recent_count[number]++] = piece;
}

void pool_settle(struct pool *pool) {
    for (uint64_t number = 0; number < POOL_RECENT_SIZES; number++) {
        while (pool->recent_count[number] > 0) {
            pool_return_piece(pool, pool->recent[number][--pool->recent_count[number]]);
        }
    }
}

bool pool_resize(struct pool *pool, void *at, size_t size) {
    CHECK(size >= 1);
    CHECK(size <= POOL_PIECE_MAX);
    struct pool_piece *piece = pool_piece_of(at);
    struct pool_piece *next = pool_behind(piece);
    uint64_t whole = pool_size_for(size);
    uint64_t room = pool_size_of(piece) + (pool_is_free(next) ? pool_size_of(next) : 0);
    if (whole > room) {
        return false;
    }
    if (pool_is_free(next)) {
        pool_take_from_list(pool, next);
        piece->size_and_flags += pool_size_of(next);
    }
    pool_cut(pool, piece, whole);
    return true;
}

/* ---- checking ---- */

/* Number of free pieces in a chunk; -1: its pieces are not contiguous. */
static int64_t pool_check_chunk(char *chunk) {
    char *at = chunk + ALIGNMENT - POOL_HEADER_SIZE;
    const char *end = at + CHUNK_PIECE_SIZE;
    bool was_free = false;
    int64_t free_count = 0;
    for (struct pool_piece *piece = (void *)at; (char *)piece != end; piece = pool_behind(piece)) {
        if (pool_size_of(piece) < PIECE_MIN ||
            pool_size_of(piece) > (size_t)(end - (char *)piece)) {
            return -1;
        }
        bool says_free = (piece->size_and_flags & IS_PREVIOUS_FREE) != 0;
        if (says_free != was_free || (was_free && pool_is_free(piece))) {
            return -1;
        }
        was_free = pool_is_free(piece);
        free_count += was_free;
    }
    return free_count;
}

static int64_t pool_count_listed(const struct pool *pool) {
    int64_t count = 0;
    for (uint32_t i = 0; i < POOL_LISTS; i++) {
        for (uint32_t j = 0; j < POOL_SUBLISTS; j++) {
            const struct pool_free_piece *free_piece = pool->free[i][j];
            if ((free_piece != NULL) != ((pool->sublists_in_use[i] >> j & 1) != 0)) {
                return -1;
            }
            for (; free_piece != NULL; free_piece = free_piece->next) {
                struct list list = pool_list_for(pool_size_of(&free_piece->piece));
                if (!pool_is_free(&free_piece->piece) || list.first != i || list.second != j) {
                    return -1;
                }
                count++;
            }
        }
    }
    return count;
}

bool pool_validate(struct pool *pool, const char **reason) {
    int64_t free_count = 0;
    struct chunks *chunks = &pool->chunks;
    for (uint32_t chunk = 0; chunk < chunks->fresh_begin; chunk++) {
        if (!pool_chunks_is_used(chunks, chunk)) {
            continue;
        }
        int64_t here = pool_check_chunk(chunks->range + (size_t)chunk * CHUNK_SIZE);
        if (here < 0) {
            *reason = "pool: a chunk is not a row of pieces";
            return false;
        }
        free_count += here;
    }
    int64_t listed = pool_count_listed(pool);
    if (listed < 0) {
        *reason = "pool: a free piece is in the wrong list";
        return false;
    }
    if (listed != free_count) {
        *reason = "pool: a free piece is in no list";
        return false;
    }
    return true;
}
