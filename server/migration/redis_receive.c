/* See redis_receive.h. */
#include "server/migration/redis_receive.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "codec/memory.h"
#include "server/system/clock.h"

#define RING_MASK ((uint64_t)REDIS_SPOOL_RING_SIZE - 1)

enum {
    WRITTEN_MIN = 1 << 18, /* less waits in memory */
    FILLING_FULL = 1 << 20,
    FREED_MIN = 16 << 20,
    AGAIN_MS = 1000,
    PAGE = 4096,
};

static int64_t redis_receive_spool_now_ms(void) {
    return (int64_t)(clock_monotonic_us() / 1000);
}

/* ---- the spool: the thread's job ---- */

static void redis_receive_spool_run(void *context) {
    struct redis_spool *spool = context;
    if (spool->is_emptied) {
        (void)!disk_truncate(spool->fd, 0); /* else it is overwritten */
    }
    if (!disk_write_all_at(spool->fd, spool->writing.at, spool->writing.size, spool->write_at)) {
        spool->failed = "write";
    } else if (spool->read_size > 0 &&
               !disk_read_whole(spool->fd, spool->piece, spool->read_size, spool->read_at)) {
        spool->failed = "read";
    }
    spool->error = errno;
    if (spool->free_until > spool->file_begin) {
        (void)fallocate(spool->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                        (off_t)spool->file_begin, (off_t)(spool->free_until - spool->file_begin));
    }
}

/* ---- the spool: the loop ---- */

/* Into the ring, as far as there is room. */
static void redis_receive_spool_copy_in(struct redis_spool *spool, const char *bytes, size_t size) {
    if (size == 0) {
        return; /* bytes may be NULL */
    }
    size_t offset = (size_t)(spool->ready & RING_MASK);
    size_t first = REDIS_SPOOL_RING_SIZE - offset;
    first = first < size ? first : size;
    memcpy(spool->ring + offset, bytes, first);
    memcpy(spool->ring, bytes + first, size - first);
    spool->ready += size;
}

static size_t redis_receive_spool_room(const struct redis_spool *spool) {
    return REDIS_SPOOL_RING_SIZE - (size_t)(spool->ready - spool->taken);
}

/* Pass on what waits: past the file, if it is empty, else by a job. */
static void redis_receive_spool_go_on(struct redis_spool *spool) {
    if (spool->worker.is_busy || spool->failed != NULL || spool->is_closing) {
        return;
    }
    uint64_t left = spool->file_end - spool->ready;
    size_t room = redis_receive_spool_room(spool);
    if (left == 0 && spool->filling.size <= room) {
        redis_receive_spool_copy_in(spool, spool->filling.at, spool->filling.size);
        buffer_clear(&spool->filling);
        spool->file_end = spool->ready;
    }
    size_t size = room < REDIS_SPOOL_PIECE_MAX ? room : REDIS_SPOOL_PIECE_MAX;
    spool->read_size = left < size ? (size_t)left : size;
    if (spool->filling.size >= WRITTEN_MIN) {
        struct buffer spare = spool->writing;
        spool->writing = spool->filling;
        spool->filling = spare;
        spool->write_at = spool->file_end;
    }
    if (spool->read_size > 0 || spool->writing.size > 0) {
        spool->read_at = spool->ready;
        /* What nobody reads any more. */
        uint64_t until = spool->taken - spool->taken % PAGE;
        spool->free_until = until >= spool->file_begin + FREED_MIN ? until : spool->file_begin;
        worker_start(&spool->worker, redis_receive_spool_run);
    }
}

static void redis_receive_spool_on_done(void *context) {
    struct redis_spool *spool = context;
    if (spool->failed != NULL && spool->is_void) {
        spool->failed = NULL;
    }
    if (spool->failed != NULL) {
        spool->failed_at_ms = redis_receive_spool_now_ms();
    } else {
        if (!spool->is_void) {
            spool->file_end += spool->writing.size;
            redis_receive_spool_copy_in(spool, spool->piece, spool->read_size);
        }
        buffer_clear(&spool->writing);
        spool->file_begin = spool->is_void ? 0 : spool->free_until;
        spool->is_emptied = spool->is_void;
        spool->is_void = false;
    }
    redis_receive_spool_go_on(spool);
    spool->changed(spool->context);
}

bool redis_receive_spool_check(struct redis_spool *spool, char *error) {
    /* What a job has found is known when it is done. */
    if (spool->worker.is_busy || spool->failed == NULL) {
        return true;
    }
    snprintf(error, DISK_ERROR_MAX, "cannot %s the spool: %s", spool->failed,
             strerror(spool->error));
    if (redis_receive_spool_now_ms() - spool->failed_at_ms >= AGAIN_MS) {
        spool->failed = NULL;
        spool->read_size = 0;
        if (spool->writing.size > 0) {
            worker_start(&spool->worker, redis_receive_spool_run);
        } else {
            redis_receive_spool_go_on(spool);
        }
    }
    return false;
}

/* ---- the spool: the interface ---- */

struct redis_spool *redis_receive_spool_open(uv_loop_t *loop, const char *directory,
                                             uint64_t size_max, void (*changed)(void *context),
                                             void *context, char *error) {
    int fd = disk_open_unnamed(directory);
    if (fd < 0) {
        snprintf(error, DISK_ERROR_MAX, "cannot create a file in %s: %s", directory,
                 strerror(errno));
        return NULL;
    }
    snprintf(error, DISK_ERROR_MAX, "out of memory");
    struct redis_spool *spool = memory_allocate_zeroed(sizeof *spool);
    if (spool == NULL) {
        disk_close(fd);
        return NULL;
    }
    *spool = (struct redis_spool){
        .fd = fd, .size_max = size_max, .changed = changed, .context = context};
    buffer_init(&spool->filling, 0);
    buffer_init(&spool->writing, 0);
    spool->ring = memory_allocate(REDIS_SPOOL_RING_SIZE);
    spool->piece = memory_allocate(REDIS_SPOOL_PIECE_MAX);
    if (spool->ring != NULL && spool->piece != NULL &&
        worker_init(&spool->worker, loop, WORKER_AS_THE_LOOP, redis_receive_spool_on_done, spool)) {
        return spool;
    }
    redis_receive_spool_free(spool);
    return NULL;
}

void redis_receive_spool_close(struct redis_spool *spool) {
    spool->is_closing = true;
    worker_deinit(&spool->worker);
}

void redis_receive_spool_free(struct redis_spool *spool) {
    buffer_deinit(&spool->filling);
    buffer_deinit(&spool->writing);
    memory_free(spool->ring);
    memory_free(spool->piece);
    disk_close(spool->fd);
    memory_free(spool);
}

void redis_receive_spool_begin(struct redis_spool *spool) {
    spool->is_void = spool->worker.is_busy;
    spool->is_emptied = !spool->worker.is_busy;
    spool->taken = spool->ready = spool->file_end = spool->received = 0;
    buffer_clear(&spool->filling);
    if (!spool->worker.is_busy) {
        buffer_clear(&spool->writing);
        spool->file_begin = 0;
        spool->failed = NULL;
    }
}

bool redis_receive_spool_put(struct redis_spool *spool, struct bytes bytes) {
    bool is_direct =
        spool->ready == spool->received && bytes.size <= redis_receive_spool_room(spool);
    if (!is_direct && buffer_reserve(&spool->filling, bytes.size) == NULL) {
        spool->filling.is_broken = false;
        return false;
    }
    spool->received += bytes.size;
    if (is_direct) {
        redis_receive_spool_copy_in(spool, bytes.at, bytes.size);
        spool->file_end = spool->ready;
        return true;
    }
    buffer_append(&spool->filling, bytes.at, bytes.size);
    redis_receive_spool_go_on(spool);
    return true;
}

bool redis_receive_spool_is_over_limit(const struct redis_spool *spool) {
    return spool->size_max > 0 && redis_receive_spool_waiting(spool) >= spool->size_max;
}

bool redis_receive_spool_is_full(const struct redis_spool *spool) {
    return spool->filling.size >= FILLING_FULL || redis_receive_spool_is_over_limit(spool);
}

struct bytes redis_receive_spool_peek(const struct redis_spool *spool) {
    size_t size = (size_t)(spool->ready - spool->taken);
    size_t offset = (size_t)(spool->taken & RING_MASK);
    size_t first = REDIS_SPOOL_RING_SIZE - offset;
    return (struct bytes){.at = spool->ring + offset, .size = size < first ? size : first};
}

void redis_receive_spool_take(struct redis_spool *spool, size_t size) {
    spool->taken += size;
    redis_receive_spool_go_on(spool);
}

/* ---- what comes into it ---- */

enum { LINE_SIZE_MAX = 512 };

void redis_receive_init(struct redis_receive *receive, struct redis_spool *spool, const char *id,
                        uint64_t offset) {
    *receive = (struct redis_receive){
        .spool = spool, .has_copy = id[0] != '\0', .received_offset = offset};
    snprintf(receive->id, sizeof receive->id, "%s", id);
}

const char *redis_receive_print_wish(const struct redis_receive *receive, char *offset) {
    if (!receive->has_copy) {
        snprintf(offset, REDIS_RECEIVE_OFFSET_SIZE, "-1");
        return "?";
    }
    snprintf(offset, REDIS_RECEIVE_OFFSET_SIZE, "%" PRIu64, receive->received_offset + 1);
    return receive->id;
}

/* What is behind the word. false: it begins otherwise. */
static bool redis_receive_skip(struct bytes *line, const char *word) {
    size_t size = strlen(word);
    if (line->size < size || memcmp(line->at, word, size) != 0) {
        return false;
    }
    line->at += size;
    line->size -= size;
    return true;
}

static void redis_receive_set_id(struct redis_receive *receive, const char *id) {
    memcpy(receive->id, id, REPLICATION_ID_SIZE);
    receive->id[REPLICATION_ID_SIZE] = '\0';
}

bool redis_receive_take_answer(struct redis_receive *receive, struct bytes line) {
    if (receive->has_copy && redis_receive_skip(&line, "+CONTINUE")) {
        if (line.size == 1 + REPLICATION_ID_SIZE) {
            redis_receive_set_id(receive, line.at + 1);
        }
        receive->state = REDIS_RECEIVE_STREAM;
        receive->partial_syncs++;
        return true;
    }
    uint64_t offset;
    size_t skipped = REPLICATION_ID_SIZE + 1;
    if (!redis_receive_skip(&line, "+FULLRESYNC ") || line.size <= skipped ||
        !bytes_parse_u64((struct bytes){.at = line.at + skipped, .size = line.size - skipped},
                         &offset)) {
        return false;
    }
    redis_receive_set_id(receive, line.at);
    receive->begin_offset = receive->received_offset = offset;
    receive->copy_size = receive->copy_read_size = 0;
    receive->mark[0] = '\0';
    receive->has_copy = false;
    receive->state = REDIS_RECEIVE_HEAD;
    receive->full_syncs++;
    receive->is_restarted = true;
    redis_receive_spool_begin(receive->spool);
    return true;
}

static void redis_receive_end_copy(struct redis_receive *receive) {
    receive->state = REDIS_RECEIVE_STREAM;
    receive->has_copy = true;
}

static bool redis_receive_take_head(struct redis_receive *receive, struct bytes bytes,
                                    size_t *used) {
    const char *end = bytes.size > 0 ? memchr(bytes.at, '\n', bytes.size) : NULL;
    if (end == NULL) {
        return bytes.size < LINE_SIZE_MAX;
    }
    struct bytes line = {.at = bytes.at, .size = (size_t)(end - bytes.at)};
    *used = line.size + 1;
    line.size -= line.size > 0 && end[-1] == '\r';
    if (line.size == 0) {
        return true; /* the source is still there */
    }
    if (redis_receive_skip(&line, "$EOF:") && line.size == REDIS_RECEIVE_MARK_SIZE) {
        memcpy(receive->mark, line.at, line.size);
        receive->state = REDIS_RECEIVE_COPY;
        return true;
    }
    if (!redis_receive_skip(&line, "$") || !bytes_parse_u64(line, &receive->copy_size)) {
        return false;
    }
    receive->state = REDIS_RECEIVE_COPY;
    if (receive->copy_size == 0) {
        redis_receive_end_copy(receive);
    }
    return true;
}

static bool redis_receive_put_copy(struct redis_receive *receive, struct bytes bytes) {
    receive->copy_read_size += bytes.size;
    return bytes.size == 0 || redis_receive_spool_put(receive->spool, bytes);
}

/* Until the mark: the last bytes may be its beginning, and wait. */
static bool redis_receive_take_marked(struct redis_receive *receive, struct bytes bytes,
                                      size_t *used) {
    if (bytes.size < REDIS_RECEIVE_MARK_SIZE) {
        return true;
    }
    const char *found = memmem(bytes.at, bytes.size, receive->mark, REDIS_RECEIVE_MARK_SIZE);
    bytes.size =
        found != NULL ? (size_t)(found - bytes.at) : bytes.size - (REDIS_RECEIVE_MARK_SIZE - 1);
    if (!redis_receive_put_copy(receive, bytes)) {
        return false;
    }
    *used = bytes.size;
    if (found != NULL) {
        *used += REDIS_RECEIVE_MARK_SIZE;
        redis_receive_end_copy(receive);
    }
    return true;
}

static bool redis_receive_take_some(struct redis_receive *receive, struct bytes bytes, size_t *used,
                                    const char **error) {
    bool is_put = false;
    switch (receive->state) {
    case REDIS_RECEIVE_HEAD:
        *error = "what the source sends is no copy";
        return redis_receive_take_head(receive, bytes, used);
    case REDIS_RECEIVE_COPY:
        if (receive->mark[0] != '\0') {
            is_put = redis_receive_take_marked(receive, bytes, used);
            break;
        }
        uint64_t left = receive->copy_size - receive->copy_read_size;
        bytes.size = left < bytes.size ? (size_t)left : bytes.size;
        *used = bytes.size;
        is_put = redis_receive_put_copy(receive, bytes);
        if (is_put && bytes.size == left) {
            redis_receive_end_copy(receive);
        }
        break;
    case REDIS_RECEIVE_STREAM:
        is_put = redis_receive_spool_put(receive->spool, bytes);
        receive->received_offset += is_put ? bytes.size : 0;
        *used = is_put ? bytes.size : *used;
        break;
    }
    *error = "no memory for what the source sends";
    return is_put;
}

bool redis_receive_take(struct redis_receive *receive, struct bytes bytes, size_t *used,
                        const char **error) {
    size_t some = 1;
    *used = 0;
    while (some > 0 && *used < bytes.size) {
        some = 0;
        if (!redis_receive_take_some(
                receive, (struct bytes){.at = bytes.at + *used, .size = bytes.size - *used}, &some,
                error)) {
            return false;
        }
        *used += some;
    }
    return true;
}
