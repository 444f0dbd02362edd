/* A full copy on its way in. See staging.h.
 *
 * Invariant: while the worker is busy it owns fd, writing, size, error_number and what; while it adopts,
 * also the store, new_state, journal, is_adopted and is_kept. */
#include "server/durability/staging.h"

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

static void staging_fail_job(struct staging *staging, const char *what) {
    staging->error_number = errno != 0 ? errno : EIO;
    staging->what = what;
}

static bool staging_write_pieces(struct staging *staging) {
    if (staging->fd < 0) {
        staging->fd =
            disk_open(staging->store->directory, store_name(STORE_BASE, staging->number).text,
                      O_WRONLY | O_CREAT | O_EXCL, 0640);
    }
    if (staging->fd < 0) {
        staging_fail_job(staging, "cannot make its file");
        return false;
    }
    if (staging->writing.size > 0 &&
        !disk_write_all(staging->fd, staging->writing.at, staging->writing.size)) {
        staging_fail_job(staging, "cannot write");
        return false;
    }
    staging->size += staging->writing.size;
    return true;
}

static void staging_run_write(void *context) {
    (void)staging_write_pieces(context);
}

static void staging_run_sync(void *context) {
    struct staging *staging = context;
    if (!staging_write_pieces(staging)) {
        return;
    }
    if (!disk_sync(staging->fd)) {
        staging_fail_job(staging, "cannot sync");
    }
    disk_close(staging->fd);
    staging->fd = -1;
}

/* The journal that follows it, then the manifest. */
static void staging_run_adopt(void *context) {
    struct staging *staging = context;
    enum store_set_status status = store_adopt(staging->store, &staging->new_state,
                                               staging->has_journal ? &staging->journal : NULL);
    if (status == STORE_SET) {
        staging->is_adopted = true;
        return;
    }
    staging->is_kept |= status == STORE_SET_UNKNOWN;
    staging_fail_job(staging, staging->has_journal && staging->journal.fd < 0
                                  ? "cannot make a journal"
                                  : "cannot change the manifest");
}

/* ---- the loop ---- */

static void staging_fail(struct staging *staging, const char *what, int error) {
    if (staging->state == STAGING_FAILED || staging->state == STAGING_NONE) {
        return;
    }
    snprintf(staging->error, sizeof staging->error, "%s%s%s", what, error != 0 ? ": " : "",
             error != 0 ? strerror(error) : "");
    if (staging->state != STAGING_ADOPTING) { /* that is persistence's to end */
        staging->state = STAGING_FAILED;
    }
}

static void staging_start(struct staging *staging, worker_run *run) {
    staging->error_number = 0;
    staging->what = NULL;
    worker_start(&staging->worker, run);
}

/* Give the thread what has come. */
static void staging_go_on(struct staging *staging) {
    bool is_writing = staging->state == STAGING_RECEIVING || staging->state == STAGING_SYNCING;
    if (staging->worker.is_busy || !is_writing) {
        return;
    }
    bool is_last = staging->state == STAGING_SYNCING;
    if (staging->filling.size == 0 && !is_last) {
        return;
    }
    struct buffer spare = staging->writing;
    staging->writing = staging->filling;
    staging->filling = spare;
    staging_start(staging, is_last ? staging_run_sync : staging_run_write);
}

/* Begin to load the file, which is whole and on disk. */
static void staging_begin_loading(struct staging *staging) {
    char path[STORE_PATH_MAX + STORE_NAME_MAX];
    const struct store_name name = store_name(STORE_BASE, staging->number);
    snprintf(path, sizeof path, "%s/%s", staging->store->path, name.text);
    buffer_deinit(&staging->filling);
    buffer_deinit(&staging->writing);
    if (store_open_base(&staging->source, path, staging->error) != STORE_OK) {
        staging->state = STAGING_FAILED;
        return;
    }
    struct loading *loading =
        loading_create(staging->registry, &staging->source, staging->changed, staging->context);
    if (loading == NULL) {
        staging_fail(staging, "out of memory", 0);
        return;
    }
    loading->is_copy = true;
    staging->loading = loading;
    if (!loading_init(loading, staging->worker.async.loop)) {
        loading->worker.is_closed = true; /* by the time it is freed, in a later turn of the loop */
        staging_fail(staging, "cannot start a thread", 0);
        return;
    }
    staging->state = STAGING_LOADING;
}

static void staging_on_done(void *context) {
    struct staging *staging = context;
    buffer_clear(&staging->writing);
    if (staging->what != NULL) {
        staging_fail(staging, staging->what, staging->error_number);
    } else if (staging->worker.run == staging_run_sync && staging->state == STAGING_SYNCING) {
        staging_begin_loading(staging);
    }
    staging_go_on(staging);
    staging->changed(staging->context);
}

/* ---- the interface ---- */

void staging_init(struct staging *staging, void (*changed)(void *context), void *context) {
    staging->changed = changed;
    staging->context = context;
    staging->fd = -1;
    staging->journal.fd = -1;
    staging->source.directory = -1;
    staging->source.lock = -1;
    buffer_init(&staging->filling, 0);
    buffer_init(&staging->writing, 0);
}

bool staging_begin(struct staging *staging, struct store *store, const struct registry *like,
                   uv_loop_t *loop) {
    CHECK(staging->state == STAGING_NONE && !staging->is_clearing);
    staging->has_worker =
        staging->has_worker ||
        worker_init(&staging->worker, loop, WORKER_AS_THE_LOOP, staging_on_done, staging);
    if (!staging->has_worker) {
        return false;
    }
    staging->registry = registry_create_beside(like);
    if (staging->registry == NULL) {
        return false;
    }
    staging->store = store;
    staging->number = store_take_number(store);
    staging->size = 0;
    staging->is_made = true;
    staging->is_given_up = false;
    staging->is_adopted = false;
    staging->is_kept = false;
    staging->journal_number = 0;
    staging->error[0] = '\0';
    staging->state = STAGING_RECEIVING;
    memory_expect();
    return true;
}

void staging_add(struct staging *staging, const char *at, size_t size) {
    if (staging->state != STAGING_RECEIVING) {
        return;
    }
    if (staging->filling.capacity == 0) {
        (void)buffer_reserve(&staging->filling, PIECE_SIZE);
    }
    buffer_append(&staging->filling, at, size);
    if (staging->filling.is_broken) {
        staging_fail(staging, "no memory for what has come", 0);
    } else if (staging->filling.size >= PIECE_SIZE / 4) {
        staging_go_on(staging);
    }
}

bool staging_is_full(const struct staging *staging) {
    return staging->state == STAGING_RECEIVING && staging->filling.size >= PIECE_SIZE;
}

void staging_end(struct staging *staging) {
    if (staging->state == STAGING_RECEIVING) {
        staging->state = STAGING_SYNCING;
        staging_go_on(staging);
    }
}

/* true: there is more to do at once. */
static bool staging_free_some(struct staging *staging, uint64_t budget_ns) {
    uint64_t begin = clock_ticks();
    /* Whose memory the loop has given up its handle of. */
    if (staging->loading != NULL && staging->loading->worker.is_closed) {
        memory_free(staging->loading);
        staging->loading = NULL;
    }
    while (staging->registry != NULL) {
        if (!registry_free_step(staging->registry, FREE_WORK)) {
            registry_destroy(staging->registry);
            staging->registry = NULL;
            break;
        }
        if (clock_ticks_to_ns(clock_ticks() - begin) >= budget_ns) {
            return true;
        }
    }
    staging->is_clearing = staging->loading != NULL;
    return false;
}

/* Load while memory is at hand: a first touch of fresh memory may take milliseconds. */
static enum loading_status staging_load(struct staging *staging, uint64_t budget_ns) {
    uint64_t begin = clock_ticks();
    enum loading_status status = LOADING_MORE;
    do {
        staging->waits_for_memory = !memory_is_ready();
        if (staging->waits_for_memory) {
            return LOADING_WAITS;
        }
        status = loading_step(staging->loading, budget_ns < SLICE_NS ? budget_ns : SLICE_NS);
    } while (status == LOADING_MORE && clock_ticks_to_ns(clock_ticks() - begin) < budget_ns);
    return status;
}

bool staging_step(struct staging *staging, uint64_t budget_ns) {
    staging->waits_for_memory = false;
    if (staging->is_clearing) {
        return staging_free_some(staging, budget_ns);
    }
    if (staging->state != STAGING_LOADING) {
        return false;
    }
    switch (staging_load(staging, budget_ns)) {
    case LOADING_MORE:
        return true;
    case LOADING_WAITS:
        return false;
    case LOADING_DONE:
        staging->group = staging->loading->sequence;
        staging->time_us = staging->loading->time_us;
        staging->state = STAGING_LOADED;
        log_write(LOG_NOTICE,
                  "replica: full copy loaded boards=%" PRIu64 " members=%" PRIu64 " bytes=%" PRIu64
                  " group=%" PRIu64,
                  staging->loading->board_count, staging->loading->member_count, staging->size,
                  staging->group);
        return true;
    case LOADING_FAILED:
        break;
    }
    snprintf(staging->error, sizeof staging->error, "%s", staging->loading->error);
    staging->state = STAGING_FAILED;
    return true;
}

uint64_t staging_loaded_size(const struct staging *staging) {
    return staging->state == STAGING_LOADING  ? staging->loading->size_done
           : staging->state > STAGING_LOADING ? staging->size
                                              : 0;
}

void staging_adopt(struct staging *staging, bool has_journal) {
    struct store *store = staging->store;
    struct store_state *state = &staging->new_state;
    staging->state = STAGING_ADOPTING;
    staging->has_journal = has_journal;
    *state = (struct store_state){.base_number = staging->number, .base_sequence = staging->group};
    if (has_journal) {
        if (staging->journal_number == 0) {
            staging->journal_number = store_take_number(store);
        }
        state->journals[state->journal_count++] = (struct store_journal){
            .number = staging->journal_number, .first_sequence = staging->group + 1};
    }
    staging_start(staging, staging_run_adopt);
}

void staging_clear(struct staging *staging) {
    if (staging->state == STAGING_NONE) {
        return;
    }
    CHECK(staging->state != STAGING_ADOPTING);
    staging->state = STAGING_FAILED; /* the thread gets nothing more */
    worker_wait(&staging->worker);
    if (staging->loading != NULL) {
        loading_deinit(staging->loading);
    }
    if (staging->source.is_file) {
        store_close(&staging->source);
        staging->source.is_file = false;
    }
    if (staging->fd >= 0) {
        disk_close(staging->fd);
        staging->fd = -1;
    }
    journal_file_close(&staging->journal);
    if (staging->is_made && !staging->is_adopted && !staging->is_kept) {
        (void)store_discard(staging->store, STORE_BASE, staging->number);
        if (staging->journal_number != 0) {
            (void)store_discard(staging->store, STORE_JOURNAL, staging->journal_number);
        }
    }
    staging->is_made = false;
    buffer_deinit(&staging->filling);
    buffer_deinit(&staging->writing);
    if (staging->registry != NULL) {
        registry_clear(staging->registry);
    }
    staging->state = STAGING_NONE;
    staging->is_clearing = true;
}

void staging_deinit(struct staging *staging) {
    if (staging->state == STAGING_ADOPTING) {
        worker_wait(&staging->worker);
        staging->state = STAGING_FAILED;
    }
    staging_clear(staging);
    if (staging->has_worker) {
        worker_deinit(&staging->worker);
    }
}

void staging_free(struct staging *staging) {
    if (staging->registry != NULL) {
        registry_destroy(staging->registry);
    }
    memory_free(staging->loading);
}
