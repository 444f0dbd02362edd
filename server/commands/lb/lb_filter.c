/* Groups of members. See lb_filter.h.
 *
 * Options are read before the board is known: struct option_uses says where they stand, and they are read
 * again here. */
#include "server/commands/lb/lb_filter.h"

#include "server/commands/lb/lb.h"

enum {
    NS_A_CODE = 3,      /* one that is compared with many values; with few it takes one */
    NS_A_COUNTED = 4,   /* that is counted by its values */
    SMALL_TAG_BITS = 8, /* of a larger one a rank takes so many times as long: */
    LARGE_TAG_UNITS = 2,
    SUMMED_CODES = 8, /* of one tag with sums, so many of what may be read take the time of one */
};

/* What is read before there are groups. */
struct filter_choices {
    const struct tag_set *tags;
    unsigned within_mask;
    uint32_t count;
    struct tag_choice *at;
    struct tag_choice few[LB_FILTER_FEW];
};

/* false: the error was replied. */
static bool lb_filter_read(const struct call *call, struct option_uses uses,
                           struct filter_choices *choices) {
    const char *word;
    uint32_t index;
    unsigned tag;
    while ((word = syntax_take_use(call, &uses, &index)) != NULL) {
        if (!lb_tag_values_find(call, choices->tags, call_arg(call, index + 1), &tag)) {
            return false;
        }
        if (strcmp(word, "WITHIN") == 0) {
            choices->within_mask |= 1U << tag;
        } else {
            choices->at[choices->count++] =
                (struct tag_choice){.tag = (uint8_t)tag,
                                    .is_excluded = strcmp(word, "WHERENOT") == 0,
                                    .value = call_arg(call, index + 2)};
        }
    }
    return true;
}

bool lb_filter_begin(const struct call *call, const struct board *board,
                     const struct option_uses *uses, struct lb_filter *filter) {
    struct filter_choices choices = {.tags = &board_layout(board)->tags};
    if (uses->count > LB_FILTER_USES_MAX) {
        return call_refuse_format(call, "ERR at most %d WHERE, WHERENOT and WITHIN are allowed",
                                  (int)LB_FILTER_USES_MAX);
    }
    choices.at = choices.few;
    if (uses->count > LB_FILTER_FEW) {
        choices.at = memory_allocate(uses->count * sizeof choices.at[0]);
        if (choices.at == NULL) {
            return call_out_of_memory(call);
        }
    }
    bool is_done = lb_filter_read(call, *uses, &choices);
    if (is_done) {
        *filter = (struct lb_filter){.board = board, .within_mask = choices.within_mask};
        struct tag_filter *whole = tag_filter_create(board, choices.at, choices.count);
        filter->whole = choices.within_mask != 0 ? whole : NULL;
        filter->group = choices.within_mask != 0 ? NULL : whole;
        is_done = whole != NULL || call_out_of_memory(call);
    }
    if (choices.at != choices.few) {
        memory_free(choices.at);
    }
    return is_done;
}

void lb_filter_end(struct lb_filter *filter) {
    tag_filter_destroy(filter->group);
    tag_filter_destroy(filter->whole);
}

enum {
    NEAR_MAX = 64,
    NEAR_CODES = 32 << 10, /* a search reads so many codes, where it has to read some */
};

uint32_t lb_filter_begin_near(struct lb_filter *filter, uint32_t rank, uint32_t count) {
    uint64_t reach = (uint64_t)NEAR_CODES * count / (board_count(filter->board) + UINT64_C(1));
    filter->near_rank = rank;
    filter->near = lb_filter_rank(filter, rank);
    filter->near_max = reach < NEAR_MAX ? (uint32_t)reach : NEAR_MAX;
    return filter->near;
}

uint32_t lb_filter_at(const struct lb_filter *filter, uint32_t nth) {
    uint32_t ranks[NEAR_MAX] = {0};
    if (nth <= filter->near && filter->near - nth < filter->near_max) {
        /* Those in front of it, or the first from there on. */
        uint32_t before = filter->near - nth, wanted = before > 0 ? before : 1;
        uint32_t found =
            tag_group_read(filter->board, filter->group, filter->near_rank - (before > 0),
                           before == 0, ranks, wanted);
        CHECK(found == wanted);
        return ranks[wanted - 1];
    }
    bool is_there = tag_group_find(filter->board, filter->group, nth, &ranks[0]);
    CHECK(is_there);
    return ranks[0];
}

void lb_filter_at_many(const struct board *board, const struct lb_filter *filter,
                       const uint32_t *places, uint32_t count, uint32_t *ranks,
                       struct board_stored *entries) {
    for (uint32_t i = 0; i < count; i++) {
        ranks[i] = filter != NULL ? lb_filter_at(filter, places[i]) : places[i];
    }
    board_at_many(board, ranks, count, entries);
}

/* ---- WITHIN ---- */

bool lb_filter_select_values(struct lb_filter *filter, const struct tag_values *values) {
    bool is_same = filter->group != NULL;
    for (unsigned tag = 0; tag < TAGS_MAX && is_same; tag++) {
        is_same = (filter->within_mask >> tag & 1) == 0 ||
                  bytes_equal(lb_tag_values_value(values, tag),
                              lb_tag_values_value(&filter->within, tag));
    }
    if (is_same) {
        return true;
    }
    filter->within = *values;
    return tag_filter_narrow(filter->board, filter->whole, filter->within_mask, values,
                             &filter->group);
}

bool lb_filter_select(struct lb_filter *filter, const struct board_member *member, bool *is_in) {
    struct tag_values values;
    bool is_within = lb_filter_is_within(filter);
    *is_in = tag_group_has(filter->board, is_within ? filter->whole : filter->group, member);
    if (!*is_in || !is_within) {
        return true;
    }
    tags_of(filter->board, member, &values);
    return lb_filter_select_values(filter, &values);
}

/* ---- estimates ---- */

/* The tags that are asked for, and those of which values are only left out. */
static void lb_filter_masks(const struct cost_view *view, struct option_uses uses,
                            const struct board *board, unsigned *asked, unsigned *excluding,
                            unsigned *within) {
    const char *word;
    unsigned wanted = 0;
    uint32_t index;
    *asked = *within = 0;
    while ((word = syntax_take_use(view->call, &uses, &index)) != NULL) {
        int tag = tag_set_find(&board_layout(board)->tags, call_arg(view->call, index + 1));
        if (tag >= 0) {
            *asked |= 1U << tag;
            *within |= strcmp(word, "WITHIN") == 0 ? 1U << tag : 0;
            wanted |= strcmp(word, "WHERENOT") == 0 ? 0 : 1U << tag;
        }
    }
    *excluding = *asked & ~wanted;
}

uint64_t lb_filter_work(const struct cost_view *view, const struct option_uses *uses, uint64_t unit,
                        uint64_t count) {
    const struct board *board = cost_board(view, 1);
    unsigned asked, excluding, within;
    if (uses->count == 0) {
        return 0;
    }
    uint64_t work = (unit + uses->count) * count;
    if (board == NULL) {
        return work;
    }
    lb_filter_masks(view, *uses, board, &asked, &excluding, &within);
    const struct tag_set *tags = &board_layout(board)->tags;
    bool has_large = false;
    for (unsigned i = 0; i < tags->count; i++) {
        has_large = has_large || ((asked >> i & 1) != 0 && tags->tags[i].bits > SMALL_TAG_BITS);
    }
    work += has_large ? (LARGE_TAG_UNITS - 1) * unit * count : 0;
    uint32_t reads = tag_filter_reads(board, asked, excluding);
    bool is_summed = (asked & (asked - 1)) == 0 && reads < board_count(board);
    uint64_t codes = count * reads / (is_summed ? SUMMED_CODES : 1);
    uint64_t twice = 2 * (uint64_t)board_count(board);
    /* Each part of WITHIN is read for itself. */
    codes = within == 0 && codes > twice ? twice : codes;
    return work + codes * (uses->count <= LB_FILTER_FEW ? 1 : NS_A_CODE) /
                      view->call->command->cost->unit_ns;
}

uint64_t lb_filter_histogram_work(const struct cost_view *view, const struct option_uses *uses,
                                  unsigned by_mask, uint64_t span_count) {
    const struct board *board = cost_board(view, 1);
    unsigned asked, excluding, within;
    lb_filter_masks(view, *uses, board, &asked, &excluding, &within);
    uint64_t codes = tag_filter_reads(board, asked | by_mask, excluding);
    return (codes > 0 ? span_count : 0) * NS_A_COUNTED / view->call->command->cost->unit_ns;
}
