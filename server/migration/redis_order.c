/* Redis's order on a board: by score, then by the members' bytes. See redis_apply_parts.h.
 *
 *     place    0    1    2    3    4        lowest score first
 *     score   10   20   20   20   30
 *             ann  bob  kim  zoe  eve       equal scores by their bytes
 *
 * The members with one score are neighbours on the board, in another order. So places are found by score, and
 * only a group of equal scores that is cut has to be looked at member by member. */
#include "server/migration/redis_apply_parts.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>

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

static int redis_order_compare(struct name a, struct name b) {
    char room_a[NAME_TEXT_ROOM];
    char room_b[NAME_TEXT_ROOM];
    return bytes_compare(name_text(a, room_a), name_text(b, room_b));
}

static void redis_order_swap_picks(struct redis_pick *a, struct redis_pick *b) {
    struct redis_pick pick = *a;
    *a = *b;
    *b = pick;
}

/* Two parts: what is not above the pivot, and what is not below it. Returns the size of the first,
 * which is not all: the pivot is not the last one. */
static uint32_t redis_order_part_picks(struct redis_pick *picks, uint32_t size,
                                       uint32_t pivot_index) {
    struct name pivot = picks[pivot_index].member;
    uint32_t low = 0;
    uint32_t high = size - 1;
    for (;; low++, high--) {
        while (redis_order_compare(picks[low].member, pivot) < 0) {
            low++;
        }
        while (redis_order_compare(picks[high].member, pivot) > 0) {
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

/* The rank at which places first .. end - 1 begin. */
static uint32_t redis_order_rank_from(const struct board *board, uint32_t first, uint32_t end) {
    uint32_t rank = redis_order_rank_of(board, first);
    uint32_t rank_end = redis_order_rank_of(board, end - 1);
    return rank < rank_end ? rank : rank_end;
}

/* Entries of places first .. end - 1, in whatever order. */
static void redis_order_read_places(const struct board *board, uint32_t first, uint32_t end,
                                    struct redis_pick *picks) {
    struct board_cursor cursor;
    struct board_stored entry;
    board_seek(board, redis_order_rank_from(board, first, end), &cursor);
    for (uint32_t i = 0; i < end - first && board_cursor_read(&cursor, &entry); i++) {
        picks[i] = (struct redis_pick){.member = entry.member, .key = entry.key};
        board_cursor_next(&cursor);
    }
}

/* The first, or the last, of a group: what ZPOPMIN and ZPOPMAX mostly want. */
static struct redis_pick redis_order_find_end(const struct board *board, struct group group,
                                              bool is_last) {
    struct board_cursor cursor;
    struct board_stored entry;
    struct redis_pick found = {.key = 0};
    board_seek(board, redis_order_rank_from(board, group.first, group.end), &cursor);
    for (uint32_t i = group.first; i < group.end && board_cursor_read(&cursor, &entry); i++) {
        int order = i > group.first ? redis_order_compare(entry.member, found.member) : 0;
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
    char *at = buffer_reserve(&apply->scratch, NAME_LEAD + size);
    if (at == NULL) {
        redis_selection_deinit(selection);
        return redis_apply_fail_memory(apply);
    }
    at += NAME_LEAD;
    for (uint32_t i = 0; i < selection->pick_count; i++) {
        struct name *member = &selection->picks[i].member;
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
        selection->rank = redis_order_rank_from(board, first, end);
    }
    return !is_copied || redis_order_copy_names(apply, selection);
}

/* ---- scores ---- */

bool redis_order_parse_score(struct bytes text, double *score) {
    enum { TEXT_MAX = 256 }; /* Redis reads no longer ones */
    char copy[TEXT_MAX];
    if (text.size == 0 || text.size >= sizeof copy || isspace((unsigned char)text.at[0])) {
        return false;
    }
    memcpy(copy, text.at, text.size);
    copy[text.size] = '\0';
    char *end;
    double value = strtod(copy, &end);
    if (end != copy + text.size || isnan(value)) {
        return false;
    }
    *score = value;
    return true;
}

/* "5", "(5", "-inf": an end of a range of scores. */
struct score_bound {
    double score;
    bool is_excluded;
};

static bool redis_order_parse_score_bound(struct bytes text, struct score_bound *bound) {
    bound->is_excluded = text.size > 0 && text.at[0] == '(';
    if (bound->is_excluded) {
        text.at++;
        text.size--;
    }
    return redis_order_parse_score(text, &bound->score);
}

static bool redis_order_is_below(const struct board *board, uint32_t place,
                                 const struct score_bound *bound, bool is_upper) {
    double score = rdb_value_score(board_layout(board),
                                   board_at(board, redis_order_rank_of(board, place)).key);
    if (score != bound->score) {
        return score < bound->score;
    }
    return is_upper ? !bound->is_excluded : bound->is_excluded;
}

/* The first place whose score is not below the bound. */
static uint32_t redis_order_find_place(const struct board *board, const struct score_bound *bound,
                                       bool is_upper) {
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

/* ---- names ---- */

/* "[text", "(text", "-", "+": an end of a range of members. */
struct name_bound {
    struct bytes text;
    int end; /* -1: below all members, 1: above them, 0: text */
    bool is_excluded;
};

static bool redis_order_parse_name_bound(struct bytes text, struct name_bound *bound) {
    bool is_end = text.size == 1 && (text.at[0] == '-' || text.at[0] == '+');
    if (!is_end && (text.size == 0 || (text.at[0] != '(' && text.at[0] != '['))) {
        return false;
    }
    *bound = (struct name_bound){.text = {.at = text.at + 1, .size = text.size - 1},
                                 .end = !is_end             ? 0
                                        : text.at[0] == '-' ? -1
                                                            : 1,
                                 .is_excluded = text.at[0] == '('};
    return true;
}

/* Is the member outside of the bound, which it is to be above (side 1) or below (-1)? */
static bool redis_order_is_outside(const struct name_bound *bound, struct bytes member, int side) {
    int order = bound->end != 0 ? -bound->end : bytes_compare(member, bound->text);
    return order == 0 ? bound->is_excluded : (order > 0) != (side > 0);
}

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

/* Where scores differ Redis promises nothing; this is what it does with its packed form: from the first member that
 * is not below the bounds on, until one is above them. */
static struct group redis_order_find_names(const struct board *board,
                                           const struct name_bound *lower,
                                           const struct name_bound *upper) {
    struct name_span span = {.first = 0};
    struct board_cursor cursor;
    struct board_stored entry;
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
        char room[NAME_TEXT_ROOM];
        struct bytes member = name_text(entry.member, room);
        span.below += redis_order_is_outside(lower, member, 1);
        span.above += redis_order_is_outside(upper, member, -1);
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
    bool has_any = span.has_begun && span.end > span.first;
    return has_any ? (struct group){.first = span.first, .end = span.end}
                   : (struct group){.first = 0, .end = 0};
}

/* ---- spans ---- */

static bool redis_order_find_places(const struct board *board, struct bytes from, struct bytes to,
                                    struct group *span) {
    int64_t count = board != NULL ? board_count(board) : 0;
    int64_t start;
    int64_t stop;
    if (!bytes_parse_i64(from, &start) || !bytes_parse_i64(to, &stop)) {
        return false;
    }
    start += start < 0 ? count : 0;
    stop += stop < 0 ? count : 0;
    start = start < 0 ? 0 : start;
    stop = stop >= count ? count - 1 : stop;
    if (start <= stop) {
        *span = (struct group){.first = (uint32_t)start, .end = (uint32_t)stop + 1};
    }
    return true;
}

static bool redis_order_find_by_score(const struct board *board, struct bytes from, struct bytes to,
                                      struct group *span) {
    struct score_bound lower;
    struct score_bound upper;
    if (!redis_order_parse_score_bound(from, &lower) ||
        !redis_order_parse_score_bound(to, &upper)) {
        return false;
    }
    if (board != NULL) {
        span->first = redis_order_find_place(board, &lower, false);
        span->end = redis_order_find_place(board, &upper, true);
    }
    return true;
}

static bool redis_order_find_by_name(const struct board *board, struct bytes from, struct bytes to,
                                     struct group *span) {
    struct name_bound lower;
    struct name_bound upper;
    if (!redis_order_parse_name_bound(from, &lower) || !redis_order_parse_name_bound(to, &upper)) {
        return false;
    }
    if (board != NULL) {
        *span = redis_order_find_names(board, &lower, &upper);
    }
    return true;
}

bool redis_order_find_span(const struct board *board, enum redis_span kind, struct bytes from,
                           struct bytes to, uint32_t *first, uint32_t *end) {
    struct group span = {.first = 0};
    bool is_read = kind == REDIS_SPAN_PLACES   ? redis_order_find_places(board, from, to, &span)
                   : kind == REDIS_SPAN_SCORES ? redis_order_find_by_score(board, from, to, &span)
                                               : redis_order_find_by_name(board, from, to, &span);
    *first = span.first;
    *end = span.end < span.first ? span.first : span.end;
    return is_read;
}
