/* Invariant: a chunk is in use, or in exactly one stack, or being processed by the keeper, or
 * fresh. The lock is held for only a few stores at a time, never during a long system call. */
#include "codec/chunks.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <time.h>

#include "codec/thread_signals.h"

/* Since Linux 5.14; missing in older headers. */
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

static char *chunks_chunk_at(const struct chunks *chunks, uint32_t chunk) {
    return chunks->range + (size_t)chunk * CHUNK_SIZE;
}

static bool chunks_has_empty(const struct chunks *chunks) {
    return chunks->returned_count > 0 || chunks->fresh_begin < chunks->range_size / CHUNK_SIZE;
}

/* A chunk without memory. false: none left. */
static bool chunks_pop_empty(struct chunks *chunks, uint32_t *chunk) {
    if (!chunks_has_empty(chunks)) {
        return false;
    }
    if (chunks->returned_count > 0) {
        *chunk = chunks->returned[--chunks->returned_count];
        return true;
    }
    *chunk = chunks->fresh_begin++;
    (void)madvise(chunks_chunk_at(chunks, *chunk), CHUNK_SIZE, MADV_DODUMP);
    return true;
}

/* ---- the keeper ---- */

static uint32_t chunks_wanted_ready(const struct chunks *chunks) {
    if (!chunks->is_growing) {
        return chunks->is_expected;
    }
    return chunks->used_count >= CHUNKS_MANY ? CHUNKS_READY : 1;
}

static bool chunks_wants_ready(const struct chunks *chunks) {
    return chunks->ready_count + chunks->spare_count < chunks_wanted_ready(chunks);
}

/* Called with the lock held; releases it during the system call. */
static void chunks_advise(struct chunks *chunks, uint32_t chunk, int advice) {
    pthread_mutex_unlock(&chunks->lock);
    (void)madvise(chunks_chunk_at(chunks, chunk), CHUNK_SIZE, advice);
    pthread_mutex_lock(&chunks->lock);
}

static void *chunks_keep(void *context) {
    struct chunks *chunks = context;
    thread_signals_begin();
    pthread_mutex_lock(&chunks->lock);
    while (!chunks->is_ending) {
        uint32_t chunk;
        if (chunks->leaving_count > 0) {
            chunk = chunks->leaving[--chunks->leaving_count];
            chunks_advise(chunks, chunk, MADV_DONTNEED);
            chunks->returned[chunks->returned_count++] = chunk;
        } else if (chunks_wants_ready(chunks) && chunks_pop_empty(chunks, &chunk)) {
            chunks_advise(chunks, chunk, MADV_POPULATE_WRITE);
            chunks->ready[chunks->ready_count++] = chunk;
        } else if (chunks->ready_count > chunks_wanted_ready(chunks)) {
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

/* ---- the user ---- */

bool chunks_init(struct chunks *chunks, size_t range_size, bool with_keeper) {
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
        chunks->has_keeper = pthread_create(&chunks->keeper, NULL, chunks_keep, chunks) == 0;
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    return true;
}

void chunks_deinit(struct chunks *chunks) {
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
static void chunks_wake_keeper(struct chunks *chunks) {
    if (chunks->has_keeper && chunks_wants_ready(chunks)) {
        pthread_cond_signal(&chunks->wake);
    }
}

void chunks_expect(struct chunks *chunks) {
    pthread_mutex_lock(&chunks->lock);
    chunks->is_expected = true;
    chunks_wake_keeper(chunks);
    pthread_mutex_unlock(&chunks->lock);
}

char *chunks_take(struct chunks *chunks) {
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
        is_there = chunks_pop_empty(chunks, &chunk);
    }
    chunks->used_count += is_there;
    chunks->taken_count++;
    chunks->is_growing = chunks->is_growing || !was_spare;
    chunks->is_expected = false;
    chunks_wake_keeper(chunks);
    pthread_mutex_unlock(&chunks->lock);
    return is_there ? chunks_chunk_at(chunks, chunk) : NULL;
}

bool chunks_are_ready(struct chunks *chunks) {
    if (!chunks->has_keeper) {
        return true;
    }
    pthread_mutex_lock(&chunks->lock);
    uint32_t count = chunks->spare_count + chunks->leaving_count + chunks->ready_count;
    uint32_t wanted = chunks_wanted_ready(chunks);
    bool are_ready = count >= (wanted > 1 ? 2 : wanted) || !chunks_has_empty(chunks);
    pthread_mutex_unlock(&chunks->lock);
    return are_ready;
}

void chunks_give(struct chunks *chunks, const void *at) {
    uint32_t chunk = (uint32_t)((size_t)((const char *)at - chunks->range) / CHUNK_SIZE);
    pthread_mutex_lock(&chunks->lock);
    chunks->used_count--;
    if (chunks->spare_count < CHUNKS_SPARE_MAX) {
        chunks->spare[chunks->spare_count++] = chunk;
    } else if (chunks->has_keeper) {
        chunks->leaving[chunks->leaving_count++] = chunk;
        pthread_cond_signal(&chunks->wake);
    } else {
        (void)madvise(chunks_chunk_at(chunks, chunk), CHUNK_SIZE, MADV_DONTNEED);
        chunks->returned[chunks->returned_count++] = chunk;
    }
    pthread_mutex_unlock(&chunks->lock);
}

static bool chunks_is_in(const uint32_t *stack, uint32_t count, uint32_t chunk) {
    for (uint32_t i = 0; i < count; i++) {
        if (stack[i] == chunk) {
            return true;
        }
    }
    return false;
}

bool chunks_is_used(const struct chunks *chunks, uint32_t chunk) {
    return chunk < chunks->fresh_begin &&
           !chunks_is_in(chunks->ready, chunks->ready_count, chunk) &&
           !chunks_is_in(chunks->spare, chunks->spare_count, chunk) &&
           !chunks_is_in(chunks->leaving, chunks->leaving_count, chunk) &&
           !chunks_is_in(chunks->returned, chunks->returned_count, chunk);
}
