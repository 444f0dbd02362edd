/* A full copy on its way in. See received.h.
 *
 * Invariant: while the worker is busy it owns fd, writing, size, error_number and what; while it adopts,
 * also the store, new_state, journal, is_adopted and is_kept. */
#include "server/durability/received.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "codec/memory.h"
#include "server/system/clock.h"
#include "server/system/log.h"

enum {
#ifdef SERVER_TINY
    PIECE_SIZE = 256,
#else
    PIECE_SIZE = 4 * 1024 * 1024, /* of a write; twice as much is held at most */
#endif
    FREE_WORK = 4096,
    SLICE_NS = 50000, /* takes no more than the memory that is at hand */
};

/* ---- the thread's jobs ---- */

static void received_fail_job(struct received *received, const char *what) {
    received->error_number = errno != 0 ? errno : EIO;
    received->what = what;
}

static bool received_write_pieces(struct received *received) {
    if (received->fd < 0) {
        received->fd =
            disk_open(received->store->directory, store_name(STORE_BASE, received->number).text,
                      O_WRONLY | O_CREAT | O_EXCL, 0640);
    }
    if (received->fd < 0) {
        received_fail_job(received, "cannot make its file");
        return false;
    }
    if (received->writing.size > 0 &&
        !disk_write_all(received->fd, received->writing.at, received->writing.size)) {
        received_fail_job(received, "cannot write");
        return false;
    }
    received->size += received->writing.size;
    return true;
}

static void received_run_write(void *context) {
    (void)received_write_pieces(context);
}

static void received_run_sync(void *context) {
    struct received *received = context;
    if (!received_write_pieces(received)) {
        return;
    }
    if (!disk_sync(received->fd)) {
        received_fail_job(received, "cannot sync");
    }
    disk_close(received->fd);
    received->fd = -1;
}

/* The journal that follows it, then the manifest. */
static void received_run_adopt(void *context) {
    struct received *received = context;
    enum store_set_status status = store_adopt(received->store, &received->new_state,
                                               received->has_journal ? &received->journal : NULL);
    if (status == STORE_SET) {
        received->is_adopted = true;
        return;
    }
    received->is_kept |= status == STORE_SET_UNKNOWN;
    received_fail_job(received, received->has_journal && received->journal.fd < 0
                                    ? "cannot make a journal"
                                    : "cannot change the manifest");
}

/* ---- the loop ---- */

static void received_fail(struct received *received, const char *what, int error) {
    if (received->state == RECEIVED_FAILED || received->state == RECEIVED_NONE) {
        return;
    }
    snprintf(received->error, sizeof received->error, "%s%s%s", what, error != 0 ? ": " : "",
             error != 0 ? strerror(error) : "");
    if (received->state != RECEIVED_ADOPTING) { /* that is persistence's to end */
        received->state = RECEIVED_FAILED;
    }
}

static void received_start(struct received *received, worker_run *run) {
    received->error_number = 0;
    received->what = NULL;
    worker_start(&received->worker, run);
}

/* Give the thread what has come. */
static void received_go_on(struct received *received) {
    bool is_writing = received->state == RECEIVED_RECEIVING || received->state == RECEIVED_SYNCING;
    if (received->worker.is_busy || !is_writing) {
        return;
    }
    bool is_last = received->state == RECEIVED_SYNCING;
    if (received->filling.size == 0 && !is_last) {
        return;
    }
    struct buffer spare = received->writing;
    received->writing = received->filling;
    received->filling = spare;
    received_start(received, is_last ? received_run_sync : received_run_write);
}

/* Begin to load the file, which is whole and on disk. */
static void received_begin_loading(struct received *received) {
    char path[STORE_PATH_MAX + STORE_NAME_MAX];
    const struct store_name name = store_name(STORE_BASE, received->number);
    snprintf(path, sizeof path, "%s/%s", received->store->path, name.text);
    buffer_deinit(&received->filling);
    buffer_deinit(&received->writing);
    if (store_open_base(&received->source, path, received->error) != STORE_OK) {
        received->state = RECEIVED_FAILED;
        return;
    }
    struct loading *loading =
        loading_create(received->registry, &received->source, received->changed, received->context);
    if (loading == NULL) {
        received_fail(received, "out of memory", 0);
        return;
    }
    loading->is_copy = true;
    received->loading = loading;
    if (!loading_init(loading, received->worker.async.loop)) {
        loading->worker.is_closed = true; /* by the time it is freed, in a later turn of the loop */
        received_fail(received, "cannot start a thread", 0);
        return;
    }
    received->state = RECEIVED_LOADING;
}

static void received_on_done(void *context) {
    struct received *received = context;
    buffer_clear(&received->writing);
    if (received->what != NULL) {
        received_fail(received, received->what, received->error_number);
    } else if (received->worker.run == received_run_sync && received->state == RECEIVED_SYNCING) {
        received_begin_loading(received);
    }
    received_go_on(received);
    received->changed(received->context);
}

/* ---- the interface ---- */

void received_init(struct received *received, void (*changed)(void *context), void *context) {
    received->changed = changed;
    received->context = context;
    received->fd = -1;
    received->journal.fd = -1;
    received->source.directory = -1;
    received->source.lock = -1;
    buffer_init(&received->filling, 0);
    buffer_init(&received->writing, 0);
}

bool received_begin(struct received *received, struct store *store, const struct registry *like,
                    uv_loop_t *loop) {
    CHECK(received->state == RECEIVED_NONE && !received->is_clearing);
    received->has_worker =
        received->has_worker ||
        worker_init(&received->worker, loop, WORKER_AS_THE_LOOP, received_on_done, received);
    if (!received->has_worker) {
        return false;
    }
    received->registry = registry_create_beside(like);
    if (received->registry == NULL) {
        return false;
    }
    received->store = store;
    received->number = store_take_number(store);
    received->size = 0;
    received->is_made = true;
    received->is_given_up = false;
    received->is_adopted = false;
    received->is_kept = false;
    received->journal_number = 0;
    received->error[0] = '\0';
    received->state = RECEIVED_RECEIVING;
    memory_expect();
    return true;
}

void received_add(struct received *received, const char *at, size_t size) {
    if (received->state != RECEIVED_RECEIVING) {
        return;
    }
    if (received->filling.capacity == 0) {
        (void)buffer_reserve(&received->filling, PIECE_SIZE);
    }
    buffer_append(&received->filling, at, size);
    if (received->filling.is_broken) {
        received_fail(received, "no memory for what has come", 0);
    } else if (received->filling.size >= PIECE_SIZE / 4) {
        received_go_on(received);
    }
}

bool received_is_full(const struct received *received) {
    return received->state == RECEIVED_RECEIVING && received->filling.size >= PIECE_SIZE;
}

void received_end(struct received *received) {
    if (received->state == RECEIVED_RECEIVING) {
        received->state = RECEIVED_SYNCING;
        received_go_on(received);
    }
}

/* true: there is more to do at once. */
static bool received_free_some(struct received *received, uint64_t budget_ns) {
    uint64_t begin = clock_ticks();
    /* Whose memory the loop has given up its handle of. */
    if (received->loading != NULL && received->loading->worker.is_closed) {
        memory_free(received->loading);
        received->loading = NULL;
    }
    while (received->registry != NULL) {
        if (!registry_free_step(received->registry, FREE_WORK)) {
            registry_destroy(received->registry);
            received->registry = NULL;
            break;
        }
        if (clock_ticks_to_ns(clock_ticks() - begin) >= budget_ns) {
            return true;
        }
    }
    received->is_clearing = received->loading != NULL;
    return false;
}

/* Load while memory is at hand: a first touch of fresh memory may take milliseconds. */
static enum loading_status received_load(struct received *received, uint64_t budget_ns) {
    uint64_t begin = clock_ticks();
    enum loading_status status = LOADING_MORE;
    do {
        received->waits_for_memory = !memory_is_ready();
        if (received->waits_for_memory) {
            return LOADING_WAITS;
        }
        status = loading_step(received->loading, budget_ns < SLICE_NS ? budget_ns : SLICE_NS);
    } while (status == LOADING_MORE && clock_ticks_to_ns(clock_ticks() - begin) < budget_ns);
    return status;
}

bool received_step(struct received *received, uint64_t budget_ns) {
    received->waits_for_memory = false;
    if (received->is_clearing) {
        return received_free_some(received, budget_ns);
    }
    if (received->state != RECEIVED_LOADING) {
        return false;
    }
    switch (received_load(received, budget_ns)) {
    case LOADING_MORE:
        return true;
    case LOADING_WAITS:
        return false;
    case LOADING_DONE:
        received->group = received->loading->sequence;
        received->time_us = received->loading->time_us;
        received->state = RECEIVED_LOADED;
        log_write(LOG_NOTICE,
                  "replica: full copy loaded boards=%" PRIu64 " members=%" PRIu64 " bytes=%" PRIu64
                  " group=%" PRIu64,
                  received->loading->board_count, received->loading->member_count, received->size,
                  received->group);
        return true;
    case LOADING_FAILED:
        break;
    }
    snprintf(received->error, sizeof received->error, "%s", received->loading->error);
    received->state = RECEIVED_FAILED;
    return true;
}

uint64_t received_loaded_size(const struct received *received) {
    return received->state == RECEIVED_LOADING  ? received->loading->size_done
           : received->state > RECEIVED_LOADING ? received->size
                                                : 0;
}

void received_adopt(struct received *received, bool has_journal) {
    struct store *store = received->store;
    struct store_state *state = &received->new_state;
    received->state = RECEIVED_ADOPTING;
    received->has_journal = has_journal;
    *state =
        (struct store_state){.base_number = received->number, .base_sequence = received->group};
    if (has_journal) {
        if (received->journal_number == 0) {
            received->journal_number = store_take_number(store);
        }
        state->journals[state->journal_count++] = (struct store_journal){
            .number = received->journal_number, .first_sequence = received->group + 1};
    }
    received_start(received, received_run_adopt);
}

void received_clear(struct received *received) {
    if (received->state == RECEIVED_NONE) {
        return;
    }
    CHECK(received->state != RECEIVED_ADOPTING);
    received->state = RECEIVED_FAILED; /* the thread gets nothing more */
    worker_wait(&received->worker);
    if (received->loading != NULL) {
        loading_deinit(received->loading);
    }
    if (received->source.is_file) {
        store_close(&received->source);
        received->source.is_file = false;
    }
    if (received->fd >= 0) {
        disk_close(received->fd);
        received->fd = -1;
    }
    journal_file_close(&received->journal);
    if (received->is_made && !received->is_adopted && !received->is_kept) {
        (void)store_discard(received->store, STORE_BASE, received->number);
        if (received->journal_number != 0) {
            (void)store_discard(received->store, STORE_JOURNAL, received->journal_number);
        }
    }
    received->is_made = false;
    buffer_deinit(&received->filling);
    buffer_deinit(&received->writing);
    if (received->registry != NULL) {
        registry_clear(received->registry);
    }
    received->state = RECEIVED_NONE;
    received->is_clearing = true;
}

void received_deinit(struct received *received) {
    if (received->state == RECEIVED_ADOPTING) {
        worker_wait(&received->worker);
        received->state = RECEIVED_FAILED;
    }
    received_clear(received);
    if (received->has_worker) {
        worker_deinit(&received->worker);
    }
}

void received_free(struct received *received) {
    if (received->registry != NULL) {
        registry_destroy(received->registry);
    }
    memory_free(received->loading);
}
