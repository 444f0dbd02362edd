/* See redis_spool.h. */
#include "server/migration/redis_spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "codec/memory.h"
#include "server/system/log.h"

#define RING_MASK ((uint64_t)REDIS_SPOOL_RING_SIZE - 1)

enum { FREED_MIN = 16 << 20 };

bool redis_spool_open(struct redis_spool *spool, const char *directory, uint64_t size_max,
                      char *error) {
    *spool = (struct redis_spool){.size_max = size_max};
    spool->fd = disk_open_unnamed(directory);
    if (spool->fd < 0) {
        snprintf(error, DISK_ERROR_MAX, "cannot create a file in %s: %s", directory,
                 strerror(errno));
        return false;
    }
    spool->ring = memory_allocate(REDIS_SPOOL_RING_SIZE);
    spool->piece = memory_allocate(REDIS_SPOOL_PIECE_MAX);
    if (spool->ring == NULL || spool->piece == NULL || uv_mutex_init(&spool->mutex) != 0) {
        goto no_memory;
    }
    if (uv_cond_init(&spool->changed) == 0) {
        return true;
    }
    uv_mutex_destroy(&spool->mutex);
no_memory:
    memory_free(spool->ring);
    memory_free(spool->piece);
    disk_close(spool->fd);
    snprintf(error, DISK_ERROR_MAX, "out of memory");
    return false;
}

void redis_spool_close(struct redis_spool *spool) {
    uv_cond_destroy(&spool->changed);
    uv_mutex_destroy(&spool->mutex);
    memory_free(spool->ring);
    memory_free(spool->piece);
    disk_close(spool->fd);
}

/* ---- the thread's ---- */

bool redis_spool_begin(struct redis_spool *spool, bool (*is_ended)(void *context), void *context) {
    enum { LOOK_NS = 100 * 1000 * 1000 };
    bool is_seen = false;
    uv_mutex_lock(&spool->mutex);
    spool->generation++;
    while (!is_seen && !is_ended(context)) {
        (void)uv_cond_timedwait(&spool->changed, &spool->mutex, LOOK_NS);
        is_seen = spool->seen == spool->generation;
    }
    uv_mutex_unlock(&spool->mutex);
    if (is_seen) {
        spool->file_begin = 0;
        spool->file_end = 0;
        if (!disk_truncate(spool->fd, 0)) {
            log_write(LOG_WARNING, "replication: the spool keeps its size on disk: %s",
                      strerror(errno));
        }
    }
    return is_seen;
}

/* Into the ring, as far as there is room. */
static void redis_spool_copy_in(struct redis_spool *spool, uint64_t at, const char *bytes,
                                size_t size) {
    size_t offset = (size_t)(at & RING_MASK);
    size_t first = REDIS_SPOOL_RING_SIZE - offset;
    first = first < size ? first : size;
    memcpy(spool->ring + offset, bytes, first);
    memcpy(spool->ring, bytes + first, size - first);
}

static bool redis_spool_write_at(int fd, const char *at, size_t size, uint64_t offset) {
    while (size > 0) {
        ssize_t written = pwrite(fd, at, size, (off_t)offset);
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written <= 0) {
            return false;
        }
        at += written;
        offset += (uint64_t)written;
        size -= (size_t)written;
    }
    return true;
}

enum redis_spool_status redis_spool_put(struct redis_spool *spool, struct bytes bytes,
                                        char *error) {
    uv_mutex_lock(&spool->mutex);
    uint64_t at = spool->received;
    uint64_t waiting = at - (spool->is_kept ? spool->file_begin : spool->taken);
    bool is_direct = !spool->is_kept && spool->ready == at &&
                     bytes.size <= REDIS_SPOOL_RING_SIZE - (spool->ready - spool->taken);
    if (is_direct) {
        redis_spool_copy_in(spool, at, bytes.at, bytes.size);
        spool->ready += bytes.size;
        spool->received += bytes.size;
    }
    uv_mutex_unlock(&spool->mutex);
    if (is_direct) {
        return REDIS_SPOOL_OK;
    }
    if (spool->size_max > 0 && waiting + bytes.size > spool->size_max) {
        return REDIS_SPOOL_FULL;
    }
    if (!redis_spool_write_at(spool->fd, bytes.at, bytes.size, at)) {
        snprintf(error, DISK_ERROR_MAX, "cannot write the spool: %s", strerror(errno));
        return REDIS_SPOOL_FAILED;
    }
    spool->file_end = at + bytes.size;
    uv_mutex_lock(&spool->mutex);
    spool->received += bytes.size;
    uv_mutex_unlock(&spool->mutex);
    return REDIS_SPOOL_OK;
}

/* What nobody reads any more. Where holes cannot be made, the file is emptied once all of it was read. */
static void redis_spool_free_file(struct redis_spool *spool, uint64_t until) {
    enum { PAGE = 4096 };
    until -= until % PAGE;
    if (until < spool->file_begin + FREED_MIN) {
        return;
    }
    uint64_t from = spool->file_begin - spool->file_begin % PAGE;
    (void)fallocate(spool->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)from,
                    (off_t)(until - from));
    spool->file_begin = until;
}

bool redis_spool_pump(struct redis_spool *spool, bool *is_more, char *error) {
    while (true) {
        uv_mutex_lock(&spool->mutex);
        uint64_t ready = spool->ready;
        uint64_t taken = spool->taken;
        uint64_t left = spool->received - ready;
        bool is_kept = spool->is_kept;
        uv_mutex_unlock(&spool->mutex);
        size_t size = REDIS_SPOOL_RING_SIZE - (size_t)(ready - taken);
        size = size < REDIS_SPOOL_PIECE_MAX ? size : REDIS_SPOOL_PIECE_MAX;
        size = left < size ? (size_t)left : size;
        *is_more = left > size || is_kept;
        if (!is_kept) {
            redis_spool_free_file(spool, taken);
        }
        if (size == 0) {
            return true;
        }
        if (!disk_read_whole(spool->fd, spool->piece, size, ready)) {
            snprintf(error, DISK_ERROR_MAX, "cannot read the spool: %s", strerror(errno));
            return false;
        }
        uv_mutex_lock(&spool->mutex);
        if (spool->ready == ready) { /* else the loop reads it again from the beginning */
            redis_spool_copy_in(spool, ready, spool->piece, size);
            spool->ready += size;
        }
        uv_mutex_unlock(&spool->mutex);
    }
}

/* ---- the loop's ---- */

bool redis_spool_look(struct redis_spool *spool) {
    uv_mutex_lock(&spool->mutex);
    bool is_new = spool->seen != spool->generation;
    if (is_new) {
        spool->seen = spool->generation;
        spool->taken = spool->ready = spool->received = 0;
        spool->is_kept = true;
        uv_cond_signal(&spool->changed);
    }
    uv_mutex_unlock(&spool->mutex);
    return is_new;
}

struct bytes redis_spool_peek(struct redis_spool *spool) {
    uv_mutex_lock(&spool->mutex);
    size_t size = (size_t)(spool->ready - spool->taken);
    size_t offset = (size_t)(spool->taken & RING_MASK);
    uv_mutex_unlock(&spool->mutex);
    size_t first = REDIS_SPOOL_RING_SIZE - offset;
    return (struct bytes){.at = spool->ring + offset, .size = size < first ? size : first};
}

void redis_spool_take(struct redis_spool *spool, size_t size) {
    uv_mutex_lock(&spool->mutex);
    spool->taken += size;
    uv_cond_signal(&spool->changed);
    uv_mutex_unlock(&spool->mutex);
}

void redis_spool_rewind(struct redis_spool *spool) {
    uv_mutex_lock(&spool->mutex);
    CHECK(spool->is_kept);
    spool->taken = spool->ready = 0;
    uv_cond_signal(&spool->changed);
    uv_mutex_unlock(&spool->mutex);
}

void redis_spool_release(struct redis_spool *spool) {
    uv_mutex_lock(&spool->mutex);
    spool->is_kept = false;
    uv_mutex_unlock(&spool->mutex);
}

uint64_t redis_spool_waiting(struct redis_spool *spool) {
    uv_mutex_lock(&spool->mutex);
    uint64_t waiting = spool->received - spool->taken;
    uv_mutex_unlock(&spool->mutex);
    return waiting;
}
