/* Records in the replies of the native commands.
 *
 * A record describes one member:
 *
 *     [member, rank, time | nil, field 1, field 2, ...]      PCT, WITHKEY append: [..., pct, key]
 *
 *     rank     0-based, best first, on every board; with COMP the rank of the first member with
 *              the same fields, whatever their times
 *     time     when the fields were reached, in unix milliseconds; nil: the layout has no TIME
 *     field    an integer or, with a SCALE, a decimal string (RESP3: a double). Integers above
 *              2^63 - 1 are decimal strings (RESP3: big numbers)
 *     pct      100 * (count - rank) / count, truncated to eight decimals, so that no two ranks
 *              of a board have the same: a decimal string (RESP3: a double)
 *     key      the packed key as a decimal string: layout_key_print
 *
 * The record of a missing member is nil (RESP2: a nil array). */
#ifndef SERVER_COMMAND_LB_RECORD_H
#define SERVER_COMMAND_LB_RECORD_H

#include "server/commands/zset/zset.h"

/* Which parts a record has. */
struct lb_shape {
    bool is_competition; /* COMP */
    bool with_percent;   /* PCT */
    bool with_key;       /* WITHKEY */
};

/* Writes records of one board. Valid until the board's next change. */
struct lb_writer {
    struct reply *reply;
    const struct board *board;
    const struct layout *layout;
    struct lb_shape shape;
    uint32_t element_count;
    size_t room; /* reserved for everything but the member's bytes */
    /* If the whole TIME window is whole milliseconds from 1970 on: time = start_ms + u *
     * unit_ms. */
    bool is_time_plain;
    uint64_t start_ms;
    uint64_t unit_ms;
    /* COMP: the last record's fields, its rank, and the rank of the first member with these
     * fields. */
    bool has_last;
    uint64_t last_fields;
    uint32_t last_rank;
    uint32_t last_shared_rank;
};

void lb_begin_records(const struct call *call, const struct board *board, struct lb_shape shape,
                      struct lb_writer *writer);
/* The record of the member with this rank and key. */
void lb_write_record(struct lb_writer *writer, struct bytes member, uint64_t key, uint32_t rank);
/* The same if the rank to show is already known. */
void lb_write_record_as(const struct lb_writer *writer, struct bytes member, uint64_t key,
                        uint32_t shown_rank);
/* An array with the records of count missing members. */
void lb_reply_nils(const struct call *call, uint32_t count);
/* An array with the record of every member of span, best first or in reverse. */
void lb_reply_span(const struct call *call, const struct board *board, struct zset_span span,
                   bool is_best_first, struct lb_shape shape);

/* A field's value, as shown in records. */
void lb_reply_value(const struct call *call, const struct layout_field *field, uint64_t ordinal);

#endif
