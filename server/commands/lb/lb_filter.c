/* Groups of members. See lb_filter.h.
 *
 * Options are read before the board is known: struct option_uses says where they stand, and they are read
 * again here. */
#include "server/commands/lb/lb_filter.h"

#include "server/commands/lb/lb_tags.h"

/* One of the options at index. false: the error was replied. */
static bool lb_filter_read(const struct call *call, uint32_t index, struct lb_filter *filter) {
    const struct tag_set *tags = &board_layout(filter->board)->tags;
    unsigned tag;
    bool is_excluded = call_arg_is(call, index, "WHERENOT");
    bool is_choice = is_excluded || call_arg_is(call, index, "WHERE");
    if (!is_choice && !call_arg_is(call, index, "WITHIN")) {
        return true; /* another option */
    }
    if (!lb_tags_find(call, tags, call_arg(call, index + 1), &tag)) {
        return false;
    }
    if (is_choice) {
        filter->choices[filter->choice_count++] = (struct tag_choice){
            .tag = (uint8_t)tag, .is_excluded = is_excluded, .value = call_arg(call, index + 2)};
    } else {
        filter->within_mask |= 1U << tag;
    }
    return true;
}

static bool lb_filter_read_all(const struct call *call, const struct option_uses *uses,
                               struct lb_filter *filter) {
    uint32_t index = uses->first;
    for (; index < call->request->count; index = options_next(call, index)) {
        if (!lb_filter_read(call, index, filter)) {
            return false;
        }
    }
    return true;
}

/* Use the group of the first count choices. */
static bool lb_filter_use(struct lb_filter *filter, const struct tag_choice *choices,
                          uint32_t count) {
    tag_filter_destroy(filter->group);
    filter->group = tag_filter_create(filter->board, choices, count);
    return filter->group != NULL;
}

bool lb_filter_begin(const struct call *call, const struct board *board,
                     const struct option_uses *uses, struct lb_filter *filter) {
    /* Behind those of the options are those of a member's group: each of the former again, and its own. */
    size_t choices_max = 2 * (size_t)uses->count + TAGS_MAX;
    if (uses->count > LB_FILTER_USES_MAX) {
        return call_refuse_format(call, "ERR at most %d WHERE, WHERENOT and WITHIN are allowed",
                                  (int)LB_FILTER_USES_MAX);
    }
    filter->board = board;
    filter->group = NULL;
    filter->choice_count = 0;
    filter->within_mask = 0;
    filter->choices = filter->few;
    if (choices_max > LB_FILTER_FEW) {
        filter->choices = memory_allocate(choices_max * sizeof filter->choices[0]);
        if (filter->choices == NULL) {
            return call_out_of_memory(call);
        }
    }
    if (lb_filter_read_all(call, uses, filter) &&
        (lb_filter_is_within(filter) ||
         lb_filter_use(filter, filter->choices, filter->choice_count) ||
         call_out_of_memory(call))) {
        return true;
    }
    lb_filter_end(filter);
    return false;
}

void lb_filter_end(struct lb_filter *filter) {
    tag_filter_destroy(filter->group);
    if (filter->choices != filter->few) {
        memory_free(filter->choices);
    }
}

/* ---- WITHIN ---- */

/* Do these values match WHERE and WHERENOT? */
static bool lb_filter_matches(const struct lb_filter *filter, const struct tag_values *values) {
    unsigned asked = 0;
    unsigned met = 0;
    for (uint32_t i = 0; i < filter->choice_count; i++) {
        const struct tag_choice *choice = &filter->choices[i];
        bool is_equal = bytes_equal(lb_tags_value(values, choice->tag), choice->value);
        if (is_equal && choice->is_excluded) {
            return false;
        }
        asked |= choice->is_excluded ? 0 : 1U << choice->tag;
        met |= is_equal ? 1U << choice->tag : 0;
    }
    return (asked & ~met) == 0;
}

static bool lb_filter_is_same(const struct lb_filter *filter, const struct tag_values *values) {
    for (unsigned tag = 0; tag < TAGS_MAX; tag++) {
        if ((filter->within_mask >> tag & 1) != 0 &&
            !bytes_equal(lb_tags_value(values, tag), lb_tags_value(&filter->within, tag))) {
            return false;
        }
    }
    return true;
}

/* The group of a member with these values, which match: its own value of a tag is all that is left of
 * the WHERE of this tag. */
static bool lb_filter_use_within(struct lb_filter *filter, const struct tag_values *values) {
    struct tag_choice *choices = &filter->choices[filter->choice_count];
    uint32_t count = 0;
    for (uint32_t i = 0; i < filter->choice_count; i++) {
        const struct tag_choice *choice = &filter->choices[i];
        if (choice->is_excluded || (filter->within_mask >> choice->tag & 1) == 0) {
            choices[count++] = *choice;
        }
    }
    for (unsigned tag = 0; tag < TAGS_MAX; tag++) {
        if ((filter->within_mask >> tag & 1) != 0) {
            choices[count++] =
                (struct tag_choice){.tag = (uint8_t)tag, .value = lb_tags_value(values, tag)};
        }
    }
    filter->within = *values;
    return lb_filter_use(filter, choices, count);
}

bool lb_filter_select_values(struct lb_filter *filter, const struct tag_values *values) {
    return (filter->group != NULL && lb_filter_is_same(filter, values)) ||
           lb_filter_use_within(filter, values);
}

bool lb_filter_select(struct lb_filter *filter, uint32_t rank, bool *is_in) {
    struct tag_values values;
    if (!lb_filter_is_within(filter)) {
        *is_in = board_group_has(filter->board, filter->group, rank);
        return true;
    }
    board_tags_at(filter->board, rank, &values);
    *is_in = lb_filter_matches(filter, &values);
    return !*is_in || lb_filter_select_values(filter, &values);
}
