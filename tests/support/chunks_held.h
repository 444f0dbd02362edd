/* What a range of chunks takes from the system. */
#ifndef TESTS_SUPPORT_CHUNKS_HELD_H
#define TESTS_SUPPORT_CHUNKS_HELD_H

#include "codec/pool.h"

/* Bytes of the chunks that have memory. */
static inline size_t chunks_held_size(struct chunks *chunks) {
    if (chunks->range == NULL) {
        return 0;
    }
    pthread_mutex_lock(&chunks->lock);
    size_t held = (size_t)chunks->fresh_begin - chunks->returned_count;
    pthread_mutex_unlock(&chunks->lock);
    return held * CHUNK_SIZE;
}

#endif
