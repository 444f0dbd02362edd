/* See registry_stale.h. */
#include "skiplist/keyspace/registry_stale.h"

#include "skiplist/keyspace/registry_private.h"
#include "skiplist/run.h"

enum { CUT_WORK = 32 /* removing a range, in members looked at */ };

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
