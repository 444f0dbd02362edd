/* What the native commands (LB.) share: records, and what their arguments have in common.
 *
 * A record is what is known of one member:
 *
 *     [member, rank, time | nil, field 1, field 2, ...]       PCT and WITHKEY append: [..., pct,
 * key]
 *
 *     rank     0-based, best first, on every board; with COMP the rank of the first member with the
 *              same fields, whatever their times
 *     time     when the fields were reached, in unix milliseconds; nil: the layout has no TIME
 *     field    an integer, or where it has a SCALE a decimal string (RESP3: a double). Integers
 * above 2^63 - 1 are decimal strings (RESP3: big numbers) pct      100 * (count - rank) / count,
 * cut off behind the eighth decimal, so that no two ranks of a board have the same: a decimal
 * string (RESP3: a double) key      the packed key as a decimal string: layout_key_print
 *
 * The record of a member that is not there is nil (RESP2: a nil array). */
#ifndef SERVER_COMMAND_LB_H
#define SERVER_COMMAND_LB_H

#include "server/command_zset.h"

/* How records are written. */
struct lb_shape {
    bool is_competition; /* COMP */
    bool with_percent;   /* PCT */
    bool with_key;       /* WITHKEY */
};

/* Writes records of one board; valid until the board's next change. */
struct lb_writer {
    struct reply *reply;
    const struct board *board;
    const struct layout *layout;
    struct lb_shape shape;
    uint32_t element_count;
    size_t room; /* for all but the member's bytes */
    /* TIME, where all of the window is whole milliseconds from 1970 on: start_ms + u * unit_ms. */
    bool is_time_plain;
    uint64_t start_ms;
    uint64_t unit_ms;
    /* COMP: the last record's fields, its rank, and that of the first member with these fields. */
    bool has_last;
    uint64_t last_fields;
    uint32_t last_rank;
    uint32_t last_shared_rank;
};

void lb_begin_records(const struct call *call, const struct board *board, struct lb_shape shape,
                      struct lb_writer *writer);
/* The member that has this rank and this key. */
void lb_write_record(struct lb_writer *writer, struct bytes member, uint64_t key, uint32_t rank);
/* The same for a member of which is known what rank to show. */
void lb_write_record_as(const struct lb_writer *writer, struct bytes member, uint64_t key,
                        uint32_t shown_rank);
/* The record of nobody; and an array of count of them. */
void lb_reply_nil(const struct call *call);
void lb_reply_nils(const struct call *call, uint32_t count);
/* An array with the record of every member of span, best first or in reverse. */
void lb_reply_span(const struct call *call, const struct board *board, struct zset_span span,
                   bool is_best_first, struct lb_shape shape);

/* The key above which are exactly those members whose fields are better: board_count_above of it is
 * the rank by competition. */
static inline uint64_t lb_best_key(const struct layout *layout, uint64_t key) {
    return key | layout->time.mask;
}

/* What can be said of the window of a layout's times: START or END. */
extern const struct argument lb_window_arguments[];

/* A field's value, as records have it. */
void lb_reply_value(const struct call *call, const struct layout_field *field, uint64_t ordinal);

/* The layout of a board, or (NULL) the one that a new board of this name would get. */
const struct layout *lb_layout(const struct call *call, const struct board *board,
                               struct bytes name);

/* Read a field's value from text: one that it can hold, or (an increment, a limit) any decimal of
 * its SCALE. false: the error is answered, and names the field. */
MUST_CHECK bool lb_parse_value(const struct call *call, const struct layout_field *field,
                               struct bytes text, uint64_t *ordinal);
MUST_CHECK bool lb_parse_decimal(const struct call *call, const struct layout_field *field,
                                 struct bytes text, struct decimal *value);

#endif
