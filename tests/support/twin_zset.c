/* The naive twin of the commands that read boards, and of those that remove by rank or score. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/twin_parts.h"

/* ---- reading one member ---- */

void twin_run_zscore(struct twin_server *twin, const struct bytes *args, uint32_t count) {
    const struct twin_key *key = twin_find(twin, args[1]);
    if (twin_is_word(args[0], "ZMSCORE")) {
        twin_put_array(twin, count - 2);
    }
    for (uint32_t i = 2; i < count; i++) {
        int64_t rank = twin_find_member(key, args[i]);
        if (rank < 0) {
            twin_put_null(twin);
        } else {
            twin_put_score(twin, key, key->members[rank].values[0]);
        }
    }
}

/* Redis counts from the lowest score up, or (REV) from the highest down. */
static bool walks_best_first(const struct twin_key *key, bool is_reverse) {
    return is_reverse != key->layout->fields[0].is_ascending;
}

static uint32_t place_of(const struct twin_key *key, bool is_reverse, uint32_t rank) {
    return walks_best_first(key, is_reverse) ? rank : key->count - 1 - rank;
}

void twin_run_zrank(struct twin_server *twin, const struct bytes *args, uint32_t count) {
    const struct twin_key *key = twin_find(twin, args[1]);
    if (count == 4 && !twin_is_word(args[3], "WITHSCORE")) {
        twin_put_error(twin, TWIN_SYNTAX_ERROR);
        return;
    }
    int64_t rank = twin_find_member(key, args[2]);
    if (rank < 0 && count == 4) {
        twin_put_null_array(twin);
    } else if (rank < 0) {
        twin_put_null(twin);
    } else {
        if (count == 4) {
            twin_put_array(twin, 2);
        }
        twin_put_integer(twin, place_of(key, twin_is_word(args[0], "ZREVRANK"), (uint32_t)rank));
        if (count == 4) {
            twin_put_score(twin, key, key->members[rank].values[0]);
        }
    }
}

void twin_run_zcard(struct twin_server *twin, const struct bytes *args, uint32_t count) {
    (void)count;
    const struct twin_key *key = twin_find(twin, args[1]);
    twin_put_integer(twin, key != NULL ? key->count : 0);
}

/* ---- ranges ---- */

static void put_entry(struct twin_server *twin, const struct twin_key *key, uint32_t rank,
                      bool with_score, bool is_pair) {
    if (with_score && is_pair) {
        twin_put_array(twin, 2);
    }
    twin_put_bulk(twin, key->members[rank].name);
    if (with_score) {
        twin_put_score(twin, key, key->members[rank].values[0]);
    }
}

struct range {
    bool by_score, is_reverse, with_scores, has_limit;
    int64_t start, stop; /* by place */
    struct twin_bound min, max;
    int64_t offset, limit;
};

static bool read_limits(struct twin_server *twin, const struct bytes *args, uint32_t first,
                        uint32_t second, struct bytes name, struct range *range) {
    const struct twin_key *key = twin_find(twin, name);
    int scale = (key != NULL ? key->layout : twin_layout_for(twin, name))->fields[0].scale;
    if (range->by_score) {
        if (twin_read_bound(args[range->is_reverse ? second : first], scale, &range->min) &&
            twin_read_bound(args[range->is_reverse ? first : second], scale, &range->max)) {
            return true;
        }
        twin_put_error(twin, "min or max is not a float");
        return false;
    }
    if (twin_read_integer(args[first], &range->start) &&
        twin_read_integer(args[second], &range->stop)) {
        return true;
    }
    twin_put_error(twin, TWIN_INTEGER_ERROR);
    return false;
}

/* The places (in the walk) of the members inside, in order; returns how many. */
static uint32_t select_places(const struct twin_key *key, const struct range *range,
                              uint32_t *places) {
    uint32_t found = 0;
    int64_t seen = 0;
    int64_t start = range->start < 0 ? range->start + key->count : range->start;
    int64_t stop = range->stop < 0 ? range->stop + key->count : range->stop;
    for (uint32_t place = 0; place < key->count; place++) {
        uint32_t rank = place_of(key, range->is_reverse, place);
        bool is_in = range->by_score
                         ? twin_is_inside(key->members[rank].values[0], range->min, range->max)
                         : place >= start && place <= stop;
        if (is_in && range->has_limit) {
            is_in = range->offset >= 0 && seen >= range->offset &&
                    (range->limit < 0 || seen - range->offset < range->limit);
            seen++;
        }
        if (is_in) {
            places[found++] = rank;
        }
    }
    return found;
}

static void answer_range(struct twin_server *twin, struct bytes name, const struct range *range) {
    const struct twin_key *key = twin_find(twin, name);
    uint32_t *ranks = twin_plain(malloc((key != NULL ? key->count + 1 : 1) * sizeof *ranks));
    uint32_t found = key != NULL ? select_places(key, range, ranks) : 0;
    bool is_flat = range->with_scores && twin->protocol == 2;
    twin_put_array(twin, is_flat ? 2 * (uint64_t)found : found);
    for (uint32_t i = 0; i < found; i++) {
        put_entry(twin, key, ranks[i], range->with_scores, !is_flat);
    }
    free(ranks);
}

/* Options behind first; by_all: ZRANGE's, otherwise WITHSCORES and, by score, LIMIT. */
static bool read_range_options(struct twin_server *twin, const struct bytes *args, uint32_t count,
                               bool by_all, struct range *range) {
    bool is_stored = twin_is_word(args[0], "ZRANGESTORE");
    for (uint32_t i = is_stored ? 5 : 4; i < count; i++) {
        if (!is_stored && twin_is_word(args[i], "WITHSCORES")) {
            range->with_scores = true;
        } else if (twin_is_word(args[i], "LIMIT") && i + 2 < count) {
            if (!twin_read_integer(args[i + 1], &range->offset) ||
                !twin_read_integer(args[i + 2], &range->limit)) {
                twin_put_error(twin, TWIN_INTEGER_ERROR);
                return false;
            }
            range->has_limit = true;
            i += 2;
        } else if (by_all && twin_is_word(args[i], "REV")) {
            range->is_reverse = true;
        } else if (by_all && twin_is_word(args[i], "BYSCORE")) {
            range->by_score = true;
        } else {
            twin_put_error(twin, TWIN_SYNTAX_ERROR);
            return false;
        }
    }
    /* LIMIT 0 -1 is what no LIMIT is, and passes. */
    if (range->has_limit && !range->by_score && range->limit != -1) {
        twin_put_error(twin,
                       "syntax error, LIMIT is only supported in combination with either BYSCORE "
                       "or BYLEX");
        return false;
    }
    range->has_limit = range->has_limit && range->by_score;
    return true;
}

void twin_run_range(struct twin_server *twin, const struct bytes *args, uint32_t count) {
    struct range range = {
        .by_score =
            twin_is_word(args[0], "ZRANGEBYSCORE") || twin_is_word(args[0], "ZREVRANGEBYSCORE"),
        .is_reverse =
            twin_is_word(args[0], "ZREVRANGE") || twin_is_word(args[0], "ZREVRANGEBYSCORE"),
    };
    if (read_range_options(twin, args, count, twin_is_word(args[0], "ZRANGE"), &range) &&
        read_limits(twin, args, 2, 3, args[1], &range)) {
        answer_range(twin, args[1], &range);
    }
}

void twin_run_rangestore(struct twin_server *twin, const struct bytes *args, uint32_t count) {
    struct range range = {.by_score = false};
    if (!read_range_options(twin, args, count, true, &range) ||
        !read_limits(twin, args, 3, 4, args[2], &range)) {
        return;
    }
    const struct twin_key *key = twin_find(twin, args[2]);
    uint32_t *ranks = twin_plain(malloc((key != NULL ? key->count + 1 : 1) * sizeof *ranks));
    uint32_t found = key != NULL ? select_places(key, &range, ranks) : 0;
    twin_store_members(twin, args[1], key, ranks, found);
    free(ranks);
}

void twin_run_zcount(struct twin_server *twin, const struct bytes *args, uint32_t count) {
    (void)count;
    struct range range = {.by_score = true};
    if (!read_limits(twin, args, 2, 3, args[1], &range)) {
        return;
    }
    const struct twin_key *key = twin_find(twin, args[1]);
    int64_t found = 0;
    for (uint32_t i = 0; key != NULL && i < key->count; i++) {
        found += twin_is_inside(key->members[i].values[0], range.min, range.max);
    }
    twin_put_integer(twin, found);
}

void twin_run_remove_range(struct twin_server *twin, const struct bytes *args, uint32_t count) {
    (void)count;
    struct range range = {.by_score = twin_is_word(args[0], "ZREMRANGEBYSCORE")};
    if (!read_limits(twin, args, 2, 3, args[1], &range)) {
        return;
    }
    struct twin_key *key = twin_find(twin, args[1]);
    if (key == NULL) {
        twin_put_integer(twin, 0);
        return;
    }
    uint32_t *ranks = twin_plain(malloc((key->count + 1) * sizeof *ranks));
    uint32_t found = select_places(key, &range, ranks);
    bool is_best_first = walks_best_first(key, false);
    for (uint32_t i = 0; i < found; i++) {
        twin_remove_rank(key, ranks[is_best_first ? found - 1 - i : i]);
    }
    free(ranks);
    twin_remove_if_empty(twin, key);
    twin_put_integer(twin, found);
}

/* ---- pops ---- */

static void pop(struct twin_server *twin, struct twin_key *key, bool is_max, int64_t count,
                bool are_pairs) {
    for (int64_t i = 0; i < count; i++) {
        uint32_t rank = place_of(key, is_max, 0);
        put_entry(twin, key, rank, true, are_pairs);
        twin_remove_rank(key, rank);
    }
    twin_remove_if_empty(twin, key);
}

void twin_run_zpop(struct twin_server *twin, const struct bytes *args, uint32_t count) {
    int64_t asked = 1;
    if (count == 3 && (!twin_read_integer(args[2], &asked) || asked < 0)) {
        twin_put_error(twin, "value is out of range, must be positive");
        return;
    }
    struct twin_key *key = twin_find(twin, args[1]);
    int64_t popped = key == NULL ? 0 : asked < key->count ? asked : key->count;
    bool are_pairs = count == 3 && twin->protocol == 3;
    twin_put_array(twin, (uint64_t)(are_pairs ? popped : 2 * popped));
    if (popped > 0) {
        pop(twin, key, twin_is_word(args[0], "ZPOPMAX"), popped, are_pairs);
    }
}

void twin_run_zmpop(struct twin_server *twin, const struct bytes *args, uint32_t count) {
    int64_t keys;
    int64_t asked = 1;
    if (!twin_read_integer(args[1], &keys) || keys < 1) {
        twin_put_error(twin, "numkeys should be greater than 0");
        return;
    }
    if (keys > (int64_t)count - 3) {
        twin_put_error(twin, TWIN_SYNTAX_ERROR);
        return;
    }
    uint32_t at = 2 + (uint32_t)keys;
    bool is_max = twin_is_word(args[at], "MAX");
    if ((!is_max && !twin_is_word(args[at], "MIN")) ||
        (count > at + 1 && (count != at + 3 || !twin_is_word(args[at + 1], "COUNT")))) {
        twin_put_error(twin, TWIN_SYNTAX_ERROR);
        return;
    }
    if (count > at + 1 && (!twin_read_integer(args[at + 2], &asked) || asked < 1)) {
        twin_put_error(twin, "count should be greater than 0");
        return;
    }
    for (uint32_t i = 2; i < at; i++) {
        struct twin_key *key = twin_find(twin, args[i]);
        if (key != NULL) {
            int64_t popped = asked < key->count ? asked : key->count;
            twin_put_array(twin, 2);
            twin_put_bulk(twin, args[i]);
            twin_put_array(twin, (uint64_t)popped);
            pop(twin, key, is_max, popped, true);
            return;
        }
    }
    twin_put_null_array(twin);
}
