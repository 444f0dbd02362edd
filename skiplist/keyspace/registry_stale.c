/* See registry_stale.h. */
#include "skiplist/keyspace/registry_stale.h"

#include "skiplist/keyspace/registry_private.h"
#include "skiplist/run.h"

enum {
    CUT_WORK = 32,  /* removing a range, in members looked at */
    BOARD_WORK = 8, /* beginning with a board */
};

/* ---- one board ---- */

/* The keys of one layout whose times are over: units below a limit. */
struct ages {
    uint64_t mask, flip; /* of the bits of the time: they are its units, XOR flip */
    uint64_t units_end;  /* the first unit that is not stale */
};

bool registry_stale_may_leave(const struct registry_key *key, int64_t now_ms) {
    if (key->kind != REGISTRY_BOARD) {
        return false;
    }
    const struct board_options *options = registry_options(key);
    return options->stale_ms > 0 && !registry_is_over(key, now_ms) &&
           board_options_refuse(options, BOARD_WRITE_AWAY, now_ms) == BOARD_TAKE;
}

/* Entries in a row of which all are stale, or none is. */
struct stretch {
    uint32_t count;
    bool is_stale;
    uint64_t last_key;
};

/* The stretch from a rank on, of about count_max entries at the most. */
static struct stretch registry_stale_find_stretch(const struct board *board, uint32_t rank,
                                                  uint32_t count_max, const struct ages *ages) {
    struct stretch stretch = {.count = 0};
    struct board_cursor cursor;
    struct board_run run;
    board_cursor_seek(board, rank, &cursor);
    while (stretch.count < count_max &&
           board_cursor_run(&cursor, true, count_max - stretch.count, &run)) {
        while (run.count > 0) {
            bool is_stale = ((*run.keys & ages->mask) ^ ages->flip) < ages->units_end;
            struct name member;
            if (stretch.count > 0 && is_stale != stretch.is_stale) {
                return stretch;
            }
            stretch.is_stale = is_stale;
            stretch.count += board_run_read_to(&run, true, &stretch.last_key, &member);
        }
    }
    return stretch;
}

uint32_t registry_stale_drop(struct registry *registry, struct registry_key *key, int64_t now_ms,
                             uint64_t *from_key, uint32_t *work, bool *is_done) {
    const struct board *board = &key->board;
    const struct board_options *options = registry_options(key);
    const struct layout_time *time = &options->layout.time;
    int64_t limit_us = (now_ms - options->stale_ms) * 1000;
    uint64_t passed_us =
        limit_us > time->start_us ? (uint64_t)limit_us - (uint64_t)time->start_us : 0;
    const struct ages ages = {.mask = time->mask,
                              .flip = time->is_latest ? 0 : time->mask,
                              .units_end = passed_us / (uint64_t)time->unit_us};
    uint32_t removed_count = 0;
    uint32_t rank = board_count_above(board, *from_key);
    *is_done = ages.units_end == 0;
    while (!*is_done && *work > 0) {
        struct stretch stretch = registry_stale_find_stretch(board, rank, *work, &ages);
        uint32_t cost = stretch.count + (stretch.is_stale ? CUT_WORK : 0);
        *work -= cost < *work ? cost : *work;
        *is_done = stretch.count == 0;
        if (stretch.is_stale) {
            registry_board_cut(registry, key, rank, stretch.count);
            removed_count += stretch.count;
        } else {
            rank += stretch.count;
        }
        if (stretch.count > 0 && !stretch.is_stale) {
            /* Those with the same key have the same time, and are not stale either. */
            *is_done = stretch.last_key == 0;
            *from_key = stretch.last_key - !*is_done;
        } else if (stretch.count > 0) {
            *from_key = stretch.last_key;
        }
    }
    registry->totals.stale += removed_count;
    return removed_count;
}

/* ---- all boards ---- */

bool registry_stale_is_there(const struct registry *registry) {
    return registry->options.stale_count > 0;
}

void registry_stale_set_listener(struct registry *registry, registry_board_stale *board_stale) {
    registry->outside.board_stale = board_stale;
}

void registry_stale_begin(struct registry *registry) {
    if (!registry->stale.pass.is_going) {
        registry_pass_begin(registry, &registry->stale.pass, 0, REGISTRY_DATABASES);
    }
}

bool registry_stale_is_going(const struct registry *registry) {
    return registry->stale.pass.is_going;
}

/* The next board that can be stale, which becomes the open one. false: the work is used up, or no key is left. */
static bool registry_stale_open_next(struct registry *registry, int64_t now_ms, uint32_t *work) {
    struct registry_stale *stale = &registry->stale;
    while (*work > 0 && !registry_pass_is_over(&stale->pass)) {
        struct registry_key *key = registry_pass_next(registry, &stale->pass, now_ms);
        --*work;
        if (key != NULL && registry_stale_may_leave(key, now_ms)) {
            stale->pass.open = key;
            stale->from_key = REGISTRY_STALE_BEGIN;
            *work -= *work < BOARD_WORK ? *work : BOARD_WORK;
            return true;
        }
    }
    return false;
}

/* Some members of the open board. */
static void registry_stale_step_open(struct registry *registry, int64_t now_ms, uint32_t *work) {
    struct registry_stale *stale = &registry->stale;
    struct registry_key *key = stale->pass.open;
    bool is_done = !registry_stale_may_leave(key, now_ms);
    uint32_t removed_count =
        is_done ? 0 : registry_stale_drop(registry, key, now_ms, &stale->from_key, work, &is_done);
    bool is_removed = removed_count > 0 && registry_board_is_over(key);
    if (removed_count > 0 && registry->outside.board_stale != NULL) {
        registry->outside.board_stale(registry->outside.listener_context, key->database,
                                      registry_name(key), is_removed);
    }
    if (is_done) {
        stale->pass.open = NULL;
    }
    if (is_removed) {
        registry_remove(registry, key);
    }
}

bool registry_stale_step(struct registry *registry, int64_t now_ms, uint32_t work_max) {
    struct registry_stale *stale = &registry->stale;
    uint32_t work = work_max;
    if (registry->is_still) {
        return false;
    }
    while (work > 0 &&
           (stale->pass.open != NULL || registry_stale_open_next(registry, now_ms, &work))) {
        registry_stale_step_open(registry, now_ms, &work);
    }
    if (stale->pass.open == NULL && registry_pass_is_over(&stale->pass)) {
        registry_pass_end(registry, &stale->pass);
    }
    return registry_stale_is_going(registry);
}
