/* Shared by the native commands (LB.): layouts and values of fields. */
#ifndef SERVER_COMMAND_LB_H
#define SERVER_COMMAND_LB_H

#include "server/commands/zset/zset.h"

/* The key that has exactly the members with better fields above it: board_count_above of it is the
 * competition rank. */
static inline uint64_t lb_best_key(const struct layout *layout, uint64_t key) {
    return key | layout->time.mask;
}

/* The layout of a board or, if NULL, the one that a new board of this name would get. */
const struct layout *lb_layout(const struct call *call, const struct board *board,
                               struct bytes name);

/* For a command that gives a board a PERIOD: may the user write all archives that it will make? false:
 * the error was replied. */
MUST_CHECK bool lb_check_archives(const struct call *call, struct bytes name);

/* The rules of a new board of this name before its options, and *next moves past the layout's words.
 * A layout given here replaces all rules from the settings. Without one, layout and options come from
 * the settings. false: the error was replied. */
MUST_CHECK bool lb_create_read_begin(const struct call *call, struct bytes name, uint32_t *next,
                                     struct rules *rules);

/* The seconds of EX, more than 0, as a time: unix milliseconds. false: the error was replied. */
MUST_CHECK bool lb_parse_expiry(const struct call *call, struct bytes text, int64_t *time_ms);

/* Parse a field's value: one that the field can hold, or (for increments and limits) any decimal of
 * its SCALE. false: the error was replied; it names the field. */
MUST_CHECK bool lb_parse_value(const struct call *call, const struct layout_field *field,
                               struct bytes text, uint64_t *ordinal);
MUST_CHECK bool lb_parse_decimal(const struct call *call, const struct layout_field *field,
                                 struct bytes text, struct decimal *value);

/* The members with a score between the limits at args[index] and behind it, in either order. If board is
 * NULL, only the texts are checked, and the span is empty. false: the error was replied. */
MUST_CHECK bool lb_span_of_scores(const struct call *call, const struct board *board,
                                  uint32_t index, struct zset_span *span);

#endif
