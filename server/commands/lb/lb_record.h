/* Records in the replies of the native commands.
 *
 * A record describes one member:
 *
 *     [member, rank, time | nil, field 1, field 2, ...]
 *                   PCT, WITHKEY, TAGS, DATA, SINCE, RATING append: [..., pct, key, tags, data, since, rating]
 *
 *     rank     0-based, best first, on every board; with COMP the rank of the first member with
 *              the same fields, whatever their times; with DENSE how many such fields are better
 *     time     when the fields were reached, in unix milliseconds; nil: the layout has no TIME
 *     field    an integer or, with a SCALE, a decimal string (RESP3: a double). Integers above
 *              2^63 - 1 are decimal strings (RESP3: big numbers)
 *              With DECAY the score now
 *     pct      100 * (count - rank) / count, truncated to eight decimals, so that no two ranks
 *              of a board have the same: a decimal string (RESP3: a double)
 *     key      the packed key as a decimal string: layout_key_print
 *     tags     lb.h
 *     data     of the member's hash: lb_data.h
 *     since    the rank on another board: SINCE
 *     rating   of the player, on a board with RATING: lb_rating.h
 *
 * With STRINGS, or after CLIENT NUMBERS STRINGS, every field and percentage is a string, in both
 * versions of the protocol. Ranks and times stay integers: a time above 2^53 is a string, but the
 * first is in the year 287396.
 *
 * The record of a missing member is nil (RESP2: a nil array). */
#ifndef SERVER_COMMAND_LB_RECORD_H
#define SERVER_COMMAND_LB_RECORD_H

#include "protocol/reply.h"
#include "server/commands/lb/lb_data.h"
#include "server/commands/lb/lb_filter.h"
#include "server/commands/zset/zset.h"
#include "skiplist/lookup.h"

/* SINCE archive, SINCE LAST: where the members of a reply's records were on another board.
 *
 *     LB.RANGE daily 0 2 SINCE LAST            daily@2026-11-15: kim, ann, zoe
 *     [zoe, 0, ..., 2] [kim, 1, ..., 0] [eve, 2, ..., nil]
 *
 * The element is the member's rank on that board, counted as the record's own: with COMP that of the first
 * member with the same fields there, with DENSE the dense one there, with WHERE, WHERENOT and WITHIN inside the same group there. The
 * tags are those that members had on that board; of WITHIN, the values are those that they have now. Nil:
 * the member was not on it, or not in the group, or there is no such board.
 *
 * LAST is the newest archive of a board with a PERIOD, of the LB_ARCHIVES_MAX periods before the running
 * one. */
/* A look-up on the other board takes as long as so many records of LB.RANGE, and of LB.GET: for the cost
 * of a command. */
enum { LB_SINCE_RECORDS = 4, LB_SINCE_MEMBERS = 4 };

/* Zeroed: not asked for. */
struct lb_since {
    struct bytes name;         /* the option as given */
    const struct board *board; /* the other board; NULL: there is none */
    struct lb_filter *filter;  /* the group on it; NULL without one */
};

#define LB_SINCE_WORD   "SINCE"
#define LB_SINCE_SYNTAX "[" LB_SINCE_WORD " <archive:key | LAST>]"
static inline bool lb_since_is_asked(const struct lb_since *since) {
    return since->name.at != NULL;
}
/* The work that it adds to count records of so many units each. */
static inline uint64_t lb_since_work(const struct cost_view *view, const struct lb_since *since,
                                     const struct option_uses *uses, uint64_t units,
                                     uint64_t count) {
    return lb_since_is_asked(since)
               ? units * count + lb_filter_work(view, uses, LB_FILTER_RANKS, count)
               : 0;
}

void lb_record_since_end(struct lb_since *since);

/* Which parts a record has. */
struct lb_shape {
    bool is_competition;   /* COMP */
    bool is_dense;         /* DENSE: of a board that has the option DENSE */
    bool with_percent;     /* PCT */
    bool with_key;         /* WITHKEY */
    bool with_strings;     /* STRINGS */
    bool with_tags;        /* TAGS */
    bool with_rating;      /* RATING: of a board that has it */
    struct lb_data data;   /* DATA */
    struct lb_since since; /* SINCE: begun by the caller */
};
/* The work of count records in units of the command. TAGS of one takes as long as so many records of LB.RANGE, or members of
 * LB.GET. */
enum { LB_TAGS_RECORDS = 4, LB_TAGS_MEMBERS = 2 };
static inline uint64_t lb_record_work(const struct cost_view *view, const struct lb_shape *shape,
                                      uint64_t tags_units, uint64_t count) {
    return lb_data_work(view, &shape->data, count) +
           ((uint64_t)shape->with_tags + shape->with_rating) * tags_units * count;
}

/* What records may have last. */
#define LB_RECORD_SYNTAX "[TAGS] [RATING] " LB_DATA_SYNTAX " " LB_SINCE_SYNTAX
/* Bindings for a struct with a shape and a filter (lb_filter.h); a command takes those that its syntax has. */
#define LB_RECORD_BINDINGS(type)                                                                   \
    {BIND("COMP", type, shape.is_competition)}, {BIND("DENSE", type, shape.is_dense)},             \
        {BIND("PCT", type, shape.with_percent)}, {BIND("WITHKEY", type, shape.with_key)},          \
        {BIND("STRINGS", type, shape.with_strings)}, {BIND("TAGS", type, shape.with_tags)},        \
        {BIND("RATING", type, shape.with_rating)}, LB_FILTER_BINDINGS(type, filter),               \
        {BIND("DATA", type, shape.data.pattern), .repeat = BINDING_ONCE_NAMED,                     \
         .read = lb_data_check_pattern},                                                           \
        {BIND("FIELDS", type, shape.data.fields)}, {                                               \
        BIND(LB_SINCE_WORD, type, shape.since.name), .repeat = BINDING_ONCE_NAMED                  \
    }

/* Writes records of one board. Valid until the board's next change. */
struct lb_writer {
    const struct call *call;
    struct reply *reply;
    const struct board *board;
    const struct layout *layout;
    struct lb_shape shape;
    uint8_t numbers; /* as in struct reply; REPLY_STRINGS with STRINGS */
    uint64_t limit;  /* integers below it take the fast path */
    /* The lead field's value is (key >> lead_shift & lead_mask ^ lead_flip) - lead_zero, if it is a plain
     * integer below lead_limit. */
    uint64_t lead_mask, lead_flip, lead_zero, lead_limit;
    uint8_t lead_shift;
    uint32_t element_count;
    bool is_grouped; /* TAGS, DATA, SINCE or RATING: records are written in groups */
    size_t room;     /* reserved for everything but the member's bytes */
    char head[REPLY_PUT_HEADER_ROOM]; /* of a record */
    uint8_t head_size;
    /* If the whole TIME window is whole milliseconds from 1970 on: time = start_ms + u *
     * unit_ms. */
    bool is_time_plain;
    uint8_t now_text_size;
    char now_text[REPLY_PUT_HEADER_ROOM]; /* the time now, but for its last nine digits */
    uint64_t now_begin_ms;                /* what these are counted from */
    uint64_t start_ms;
    uint64_t unit_ms;
    /* COMP and DENSE: the last record's fields, its rank, and the rank that all with these fields
     * share. */
    bool shares_ranks;
    bool has_last;
    uint64_t last_fields;
    uint32_t last_rank;
    uint32_t last_shared_rank;
    /* Inside a group (lb_filter.h), set by the caller: ranks are those inside, and PCT is of its count. */
    const struct lb_filter *filter; /* for COMP; or NULL */
    uint32_t filter_count;          /* 0: that of the board; with DENSE, of its different scores */
};

/* Can the ranks be as the shape says, on the board and on that of SINCE, which is found, and lb_record_since_end follows, before
 * which neither may change? board: NULL if there is none;
 * uses: of LB_FILTER_SYNTAX. false: the error was replied. */
MUST_CHECK bool lb_record_begin_ranks(const struct call *call, const struct board *board,
                                      const struct option_uses *uses, struct lb_shape *shape);
void lb_record_begin(const struct call *call, const struct board *board, struct lb_shape shape,
                     struct lb_writer *writer);
/* From here on records of another board, of the same shape; no group. */
void lb_record_continue(struct lb_writer *writer, const struct board *board);
/* The record of the member with this rank and key; without TAGS, DATA, SINCE and RATING. */
void lb_record_write(struct lb_writer *writer, struct bytes member, uint64_t key, uint32_t rank);

/* The same where there is writer->room and room for the member; returns its end. */
char *lb_record_put_at(const struct lb_writer *writer, char *out, struct bytes member, uint64_t key,
                       uint32_t shown_rank);
/* The same of count members, at most LOOKUP_GROUP: nil for those that are not on the board. */
void lb_record_write_found(const struct lb_writer *writer, const struct bytes *members,
                           const struct lookup_found *found, unsigned count);

/* Records with TAGS, DATA, SINCE or RATING are written in groups, whose members are looked up together; those without
 * are written at once. */
struct lb_group {
    struct bytes members[LB_DATA_GROUP];       /* of the board */
    char rooms[LB_DATA_GROUP][NAME_TEXT_ROOM]; /* for their texts */
    uint64_t keys[LB_DATA_GROUP];
    uint32_t ranks[LB_DATA_GROUP]; /* on the board */
    uint32_t shown_ranks[LB_DATA_GROUP];
    struct board_below below[LB_DATA_GROUP];  /* of members that were looked up */
    struct lookup_found since[LB_DATA_GROUP]; /* likewise, on the board of SINCE */
    bool has_below, has_since;                /* all have, or none */
    unsigned count; /* 0 at first: set by the caller, the rest need not be */
};
static inline void lb_record_group_begin(struct lb_group *group) {
    group->count = 0;
}
/* Add a record to the group, and write the group when it is full. The order stays. since: on the board of SINCE, if that
 * is there. */
void lb_record_group_add_found(struct lb_writer *writer, struct lb_group *group,
                               struct bytes member, const struct lookup_found *found,
                               const struct lookup_found *since, uint32_t shown_rank);
/* The same for a member as it is stored. */
void lb_record_group_add_stored(struct lb_writer *writer, struct lb_group *group,
                                struct name member, uint64_t key, uint32_t rank,
                                uint32_t shown_rank);
/* Write what is left in the group. */
void lb_record_group_write(const struct lb_writer *writer, struct lb_group *group);
/* An array with the records of count missing members. */
void lb_record_reply_nils(const struct call *call, uint32_t count);
/* An array with the record of every member of span, best first or in reverse. */
void lb_record_reply_span(const struct call *call, const struct board *board, struct zset_span span,
                          bool is_best_first, struct lb_shape shape);
/* The same inside a group: span is of ranks inside it. */
void lb_record_reply_filter_span(const struct call *call, const struct lb_filter *filter,
                                 struct zset_span span, bool is_best_first, struct lb_shape shape);

/* A field's value, as shown in records. */
void lb_record_reply_decimal(const struct call *call, const struct layout_field *field,
                             struct decimal value);

#endif
