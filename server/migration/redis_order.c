/* Redis's order on a board: by score, then by the members' bytes. See redis_apply_parts.h.
 *
 *     place    0    1    2    3    4        lowest score first
 *     score   10   20   20   20   30
 *             ann  bob  kim  zoe  eve       equal scores by their bytes
 *
 * The members with one score are neighbours on the board, in another order. So places are found by score, and
 * only a group of equal scores that is cut has to be looked at member by member. */
#include "server/migration/redis_apply_parts.h"

/* A group of equal scores, as places. */
struct group {
    uint32_t first, end;
};

static uint32_t redis_order_rank_of(const struct board *board, uint32_t place) {
    bool is_ascending = board_layout(board)->fields[0].is_ascending;
    return is_ascending ? place : board_count(board) - 1 - place;
}

static uint64_t redis_order_low_bits(const struct layout *layout) {
    return (UINT64_C(1) << layout->fields[0].shift) - 1;
}

static struct group redis_order_group_at(const struct board *board, uint32_t place) {
    uint64_t key = board_at(board, redis_order_rank_of(board, place)).key;
    uint64_t low = redis_order_low_bits(board_layout(board));
    uint32_t rank = board_count_above(board, key | low);
    uint32_t rank_end = board_count_from(board, key & ~low);
    if (board_layout(board)->fields[0].is_ascending) {
        return (struct group){.first = rank, .end = rank_end};
    }
    uint32_t count = board_count(board);
    return (struct group){.first = count - rank_end, .end = count - rank};
}

/* ---- groups that are cut ---- */

static void redis_order_swap_picks(struct redis_pick *a, struct redis_pick *b) {
    struct redis_pick pick = *a;
    *a = *b;
    *b = pick;
}

/* Two parts: what is not above the pivot, and what is not below it. Returns the size of the first,
 * which is not all: the pivot is not the last one. */
static uint32_t redis_order_part_picks(struct redis_pick *picks, uint32_t size,
                                       uint32_t pivot_index) {
    struct bytes pivot = picks[pivot_index].member;
    uint32_t low = 0;
    uint32_t high = size - 1;
    for (;; low++, high--) {
        while (bytes_compare(picks[low].member, pivot) < 0) {
            low++;
        }
        while (bytes_compare(picks[high].member, pivot) > 0) {
            high--;
        }
        if (low >= high) {
            return high + 1;
        }
        redis_order_swap_picks(&picks[low], &picks[high]);
    }
}

/* Hoare's selection: the `count` lowest come to the front, in whatever order. Pivots are at random
 * (seed: secret), as clients choose the names. */
static void redis_order_bring_lowest(struct redis_pick *picks, uint32_t size, uint32_t count,
                                     uint64_t seed) {
    uint64_t random = seed | 1;
    while (count > 0 && count < size) {
        random ^= random << 13; /* xorshift64 */
        random ^= random >> 7;
        random ^= random << 17;
        CHECK(size > 1);
        uint32_t front = redis_order_part_picks(picks, size, (uint32_t)(random % (size - 1)));
        if (count < front) {
            size = front;
        } else {
            picks += front;
            size -= front;
            count -= front;
        }
    }
}

/* Entries of places first .. end - 1, in whatever order. */
static void redis_order_read_places(const struct board *board, uint32_t first, uint32_t end,
                                    struct redis_pick *picks) {
    uint32_t rank = redis_order_rank_of(board, first);
    uint32_t rank_end = redis_order_rank_of(board, end - 1);
    struct board_cursor cursor;
    struct board_entry entry;
    board_seek(board, rank < rank_end ? rank : rank_end, &cursor);
    for (uint32_t i = 0; i < end - first && board_cursor_read(&cursor, &entry); i++) {
        picks[i] = (struct redis_pick){.member = entry.member, .key = entry.key};
        board_cursor_next(&cursor);
    }
}

/* The first, or the last, of a group: what ZPOPMIN and ZPOPMAX mostly want. */
static struct redis_pick redis_order_find_end(const struct board *board, struct group group,
                                              bool is_last) {
    uint32_t rank = redis_order_rank_of(board, group.first);
    uint32_t rank_end = redis_order_rank_of(board, group.end - 1);
    struct board_cursor cursor;
    struct board_entry entry;
    struct redis_pick found = {.key = 0};
    board_seek(board, rank < rank_end ? rank : rank_end, &cursor);
    for (uint32_t i = group.first; i < group.end && board_cursor_read(&cursor, &entry); i++) {
        int order = i > group.first ? bytes_compare(entry.member, found.member) : 0;
        if (i == group.first || (is_last ? order > 0 : order < 0)) {
            found = (struct redis_pick){.member = entry.member, .key = entry.key};
        }
        board_cursor_next(&cursor);
    }
    return found;
}

/* Add members first .. end - 1 of the group. */
static bool redis_order_add_picks(struct redis_apply *apply, const struct board *board,
                                  struct group group, uint32_t first, uint32_t end,
                                  struct redis_selection *selection) {
    uint32_t size = group.end - group.first;
    uint32_t count = end - first;
    bool is_at_end = count == 1 && (first == group.first || end == group.end);
    if (is_at_end && selection->picks == NULL) {
        selection->one = redis_order_find_end(board, group, first != group.first);
        selection->picks = &selection->one;
        selection->pick_count = 1;
        return true;
    }
    bool is_one = selection->picks == &selection->one;
    struct redis_pick *picks = memory_resize(is_one ? NULL : selection->picks,
                                             (selection->pick_count + size) * sizeof *picks);
    if (picks == NULL) {
        return redis_apply_fail_memory(apply);
    }
    if (is_one) {
        picks[0] = selection->one;
    }
    struct redis_pick *added = picks + selection->pick_count;
    selection->picks = picks;
    redis_order_read_places(board, group.first, group.end, added);
    uint32_t left = first - group.first;
    redis_order_bring_lowest(added, size, end - group.first, apply->sets[0].seed);
    redis_order_bring_lowest(added, end - group.first, left, apply->sets[0].seed);
    memmove(added, added + left, count * sizeof *added);
    selection->pick_count += count;
    return true;
}

void redis_selection_deinit(struct redis_selection *selection) {
    if (selection->picks != &selection->one) {
        memory_free(selection->picks);
    }
    selection->picks = NULL;
}

/* The names move to memory that does not change with the board. */
static bool redis_order_copy_names(struct redis_apply *apply, struct redis_selection *selection) {
    size_t size = 0;
    if (selection->pick_count == 0) {
        return true;
    }
    for (uint32_t i = 0; i < selection->pick_count; i++) {
        size += selection->picks[i].member.size;
    }
    buffer_clear(&apply->scratch);
    char *at = buffer_reserve(&apply->scratch, size);
    if (at == NULL) {
        redis_selection_deinit(selection);
        return redis_apply_fail_memory(apply);
    }
    for (uint32_t i = 0; i < selection->pick_count; i++) {
        struct bytes *member = &selection->picks[i].member;
        memcpy(at, member->at, member->size);
        member->at = at;
        at += member->size;
    }
    return true;
}

bool redis_apply_select(struct redis_apply *apply, const struct board *board, uint32_t first,
                        uint32_t last, bool is_copied, struct redis_selection *selection) {
    *selection = (struct redis_selection){.count = 0};
    uint32_t end = last + 1;
    struct group low = redis_order_group_at(board, first);
    bool is_fine = true;
    if (low.first < first) {
        uint32_t low_end = low.end < end ? low.end : end;
        is_fine = redis_order_add_picks(apply, board, low, first, low_end, selection);
        first = low_end;
    }
    if (is_fine && first < end) {
        struct group high = redis_order_group_at(board, last);
        if (high.end > end) {
            uint32_t high_first = high.first > first ? high.first : first;
            is_fine = redis_order_add_picks(apply, board, high, high_first, end, selection);
            end = high_first;
        }
    }
    if (!is_fine) {
        redis_selection_deinit(selection);
        return false;
    }
    selection->count = end - first;
    if (selection->count > 0) {
        uint32_t rank = redis_order_rank_of(board, first);
        uint32_t rank_last = redis_order_rank_of(board, end - 1);
        selection->rank = rank < rank_last ? rank : rank_last;
    }
    return !is_copied || redis_order_copy_names(apply, selection);
}

/* ---- scores ---- */

static bool redis_order_is_below(const struct board *board, uint32_t place,
                                 const struct redis_score_bound *bound, bool is_upper) {
    double score = rdb_value_score(board_layout(board),
                                   board_at(board, redis_order_rank_of(board, place)).key);
    if (score != bound->score) {
        return score < bound->score;
    }
    return is_upper ? !bound->is_excluded : bound->is_excluded;
}

/* The first place whose score is not below the bound. */
static uint32_t redis_order_find_place(const struct board *board,
                                       const struct redis_score_bound *bound, bool is_upper) {
    uint32_t low = 0;
    uint32_t high = board_count(board);
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (redis_order_is_below(board, middle, bound, is_upper)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

void redis_apply_span_of_scores(const struct board *board, const struct redis_score_bound *lower,
                                const struct redis_score_bound *upper, uint32_t *first,
                                uint32_t *end) {
    *first = redis_order_find_place(board, lower, false);
    *end = redis_order_find_place(board, upper, true);
    *end = *end < *first ? *first : *end;
}

/* ---- names ---- */

/* The places between two bounds, group after group: within one, members below the bounds come
 * first, and those above them last, so that counting them is enough. */
struct name_span {
    uint32_t first, end;
    bool has_begun;
    uint32_t group_first, below, above; /* of the group that is read */
};

/* The group ends before this place. true: what is behind it is above the upper bound. */
static bool redis_order_end_group(struct name_span *span, uint32_t group_end) {
    if (!span->has_begun && span->below < group_end - span->group_first) {
        span->has_begun = true;
        span->first = span->group_first + span->below;
    }
    bool is_over = span->has_begun && span->above > 0;
    span->end = group_end - span->above;
    span->group_first = group_end;
    span->below = span->above = 0;
    return is_over;
}

void redis_apply_span_of_names(const struct board *board, const struct redis_lex_bound *lower,
                               const struct redis_lex_bound *upper, uint32_t *first,
                               uint32_t *end) {
    struct name_span span = {.first = 0};
    struct board_cursor cursor;
    struct board_entry entry;
    uint64_t low = redis_order_low_bits(board_layout(board));
    uint64_t score = 0;
    uint32_t count = board_count(board);
    uint32_t place = 0;
    bool is_ascending = board_layout(board)->fields[0].is_ascending;
    bool is_over = false;
    board_seek(board, count > 0 ? redis_order_rank_of(board, 0) : 0, &cursor);
    while (place < count && board_cursor_read(&cursor, &entry)) {
        is_over = place > 0 && (entry.key | low) != score && redis_order_end_group(&span, place);
        if (is_over) {
            break;
        }
        score = entry.key | low;
        span.below += !redis_lex_is_from(lower, entry.member);
        span.above += !redis_lex_is_until(upper, entry.member);
        place++;
        if (is_ascending) {
            board_cursor_next(&cursor);
        } else {
            board_cursor_previous(&cursor);
        }
    }
    if (!is_over) {
        (void)redis_order_end_group(&span, place);
    }
    *first = span.has_begun ? span.first : 0;
    *end = span.has_begun && span.end > span.first ? span.end : *first;
}
