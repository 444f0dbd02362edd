/* A value while it is read: members of a sorted set until they make a board, or fields of a hash.
 *
 *     rdb_value_init(&value, seed);
 *     rdb_value_begin_board(&value, layout, now_us, error)
 *     rdb_value_put_score(&value, member, score, error) ...
 *     rdb_value_end_board(&value, &board, kept_max)
 *
 * Redis orders equal scores by the members' bytes. The board has the same order, as the order of
 * arrival: on a board where higher is better ZREVRANGE lists it as Redis does, and ZRANGE too; so it is
 * with ZRANGE where lower is better. All members have the time of the import.
 *
 * A board of a `board` line with PACKED or SCORE+FRACTION takes the doubles apart:
 *
 *     PACKED              215575316911          -> the key of the layout that LB.ADD ... PACKED 215575316911 puts
 *     SCORE+FRACTION t    120 + (1 - time / t)  -> score 120, reached at that time, to the second
 *     SCORE+FRACTION      120.0000005           -> score 120
 *
 * What a double cannot hold of them is counted: rounded.
 *
 * Memory is taken for what has been put, and kept for the next value. */
#ifndef SERVER_RDB_VALUE_H
#define SERVER_RDB_VALUE_H

#include "skiplist/board.h"
#include "skiplist/keyspace/hash.h"
#include "skiplist/keyspace/registry.h"

enum { RDB_VALUE_ERROR_MAX = 400 };

enum rdb_value_status {
    RDB_VALUE_OK = 0,
    RDB_VALUE_OUT_OF_MEMORY,
    RDB_VALUE_REFUSED, /* the board cannot hold it; error says why, and which layout could */
    /* A member is there twice, or its name is impossible: value->culprit. Of a hash: a field is there twice, there are too
     * many, or one is too long; culprit.at is NULL. */
    RDB_VALUE_DAMAGED,
    RDB_VALUE_TAGS_FULL, /* a tag has more different values than its bits allow; of value->culprit */
};

/* Doubles that were taken apart, and what they had lost, at the most. */
struct rdb_rounded {
    uint64_t taken_count; /* of all */
    uint64_t count;       /* of these: so large that digits at their end may be gone */
    uint64_t field_count; /* of these: not only of the time */
    uint64_t time_us;     /* times are right within this */
};
void rdb_value_add_rounded(struct rdb_rounded *rounded, const struct rdb_rounded *more);
/* "packed=5 rounded=2 rounded_fields=0 within_ms=1024" */
enum { RDB_ROUNDED_TEXT_MAX = 128 };
void rdb_value_print_rounded(const struct rdb_rounded *rounded, char *out);

/* A board while it is filled. */
struct rdb_fill {
    struct board *board;
    uint32_t kept, at; /* of the entries */
    uint64_t *slots;   /* the upper half of a hash, and an entry's index plus 1; 0: free */
    uint64_t slot_mask;
    struct board_indexing indexing;
};

struct rdb_value {
    uint64_t seed; /* random, secret */
    const struct layout *layout;
    uint64_t base;               /* the key of score 0, now */
    struct board_entry *entries; /* members are in the chunks */
    uint32_t count, capacity;
    struct bytes *tags; /* of the entries, packed, in the chunks; NULL: none has any yet */
    double score;       /* that was put last */
    bool is_in_order, is_in_reverse; /* as the board wants it */
    struct rdb_rounded rounded;      /* of all boards */
    struct bytes culprit;
    struct rdb_fill fill;
    struct rdb_chunk *chunks;
    size_t chunk_used;
    struct hash hash;
    struct hash notes;    /* of members of a board; whoever takes them zeroes them */
    struct bytes *fields; /* field, value, field, value ..., in the chunks, not in the hash yet */
    uint32_t field_count, field_capacity;
};

void rdb_value_init(struct rdb_value *value, uint64_t seed);
void rdb_value_deinit(struct rdb_value *value);

/* layout: of a board of a registry, whose options say what its doubles are; borrowed until the end. REFUSED: it has no
 * room for the time. Discards what was put before. */
MUST_CHECK enum rdb_value_status rdb_value_begin_board(struct rdb_value *value,
                                                       const struct layout *layout, int64_t now_us,
                                                       char *error);
/* The same for members with keys of their own. */
void rdb_value_begin_keys(struct rdb_value *value, const struct layout *layout);
/* DECIMAL_OK, or why it cannot. */
enum decimal_status rdb_value_judge_score(const struct layout_field *field, double score);
/* Does a double say more than a score? */
static inline bool rdb_value_takes_apart(const struct board_options *options) {
    return options->is_packed || options->fraction_ms != 0;
}
/* Is the time part of the double? Else other fields and the present time go with it. */
static inline bool rdb_value_says_time(const struct board_options *options) {
    return options->is_packed || options->fraction_ms > BOARD_FRACTION_IS_NOTHING;
}
/* The key of a double on a board with these options. base: the fields that it does not say. *rounded is added to; NULL:
 * nobody counts. OK or REFUSED. */
MUST_CHECK enum rdb_value_status rdb_value_find_key(const struct board_options *options,
                                                    uint64_t base, double score, uint64_t *key,
                                                    struct rdb_rounded *rounded, char *error);
/* With that key. */
MUST_CHECK enum rdb_value_status rdb_value_put_score(struct rdb_value *value, struct bytes member,
                                                     double score, char *error);
/* After REFUSED: *board, which is empty, and what was put become those of the first layout that the registry has for
 * this name and that takes this score, too. REFUSED: there is none other; nothing has changed, but error says what
 * the best of them has against the score. Where doubles are taken apart there is one layout, and error stays. */
MUST_CHECK enum rdb_value_status rdb_value_choose(struct rdb_value *value,
                                                  struct registry *registry, struct bytes name,
                                                  double score, int64_t now_us, struct board *board,
                                                  char *error);
/* With a packed key of the layout, and in the board's order. tags: its values, as tag_values_pack writes them, of the
 * layout's tags; NULL: none. */
MUST_CHECK enum rdb_value_status rdb_value_put_key(struct rdb_value *value,
                                                   const struct board_entry *entry,
                                                   const struct bytes *tags);
/* A note of a member. */
MUST_CHECK enum rdb_value_status rdb_value_put_note(struct rdb_value *value, struct bytes member,
                                                    struct bytes note);
/* Fill an empty board of this layout with the best kept_max members (0: all). An error leaves a board
 * that may only be discarded. */
MUST_CHECK enum rdb_value_status rdb_value_end_board(struct rdb_value *value, struct board *board,
                                                     uint32_t kept_max);

/* The same in steps of some hundred members: begin, then some until it is done. */
void rdb_value_begin_fill(struct rdb_value *value, struct board *board, uint32_t kept_max);
MUST_CHECK enum rdb_value_status rdb_value_fill_some(struct rdb_value *value, bool *is_done);

/* Fields of one hash. */
void rdb_value_begin_hash(struct rdb_value *value);
MUST_CHECK enum rdb_value_status rdb_value_put_field(struct rdb_value *value, struct bytes field,
                                                     struct bytes content);
/* value->hash is then whole; whoever takes it zeroes it there. */
MUST_CHECK enum rdb_value_status rdb_value_end_hash(struct rdb_value *value);

/* The double of a key: the very one that was put, but for SCORE+FRACTION, where it is the score alone. */
double rdb_value_score(const struct board_options *options, uint64_t key);
/* The shortest decimal text that is this double. Returns its size. */
enum { RDB_SCORE_TEXT_MAX = 40 };
size_t rdb_value_print_score(double score, char *out);

#endif
