/* Storing results as boards: ZRANGESTORE, ZUNIONSTORE and their relatives.
 *
 * The new board is built separately, and then replaces the destination, which may be one of the
 * sources. A destination made by LB.CREATE keeps its layout and options; any other has those that
 * the settings give its name. An error leaves everything unchanged. A result without members removes
 * the destination, unless LB.CREATE made it. */
#ifndef SERVER_COMMAND_ZSET_STORE_H
#define SERVER_COMMAND_ZSET_STORE_H

#include "server/commands/zset/combine.h"
#include "server/commands/zset/zset.h"
#include "skiplist/block.h"

enum { ZSET_STORE_PORTION = 4 * BLOCK_ENTRIES_MAX }; /* entries appended at once */

/* A board being filled. */
struct zset_filling {
    struct board board;
    const struct rules *kept; /* of the destination, made by LB.CREATE; NULL: it is not */
    bool is_put;              /* in place: owned by the registry */
    bool has_choice;          /* it may get another layout yet */
    bool is_refused;          /* a result does not fit this one */
    bool has_bans;
    enum board_status status;
    uint32_t count;
    struct board_entry entries[ZSET_STORE_PORTION];
    char rooms[ZSET_STORE_PORTION][NAME_TEXT_ROOM]; /* for their members' texts */
};

/* In steps: begin; put each result, in rank order; index until *is_over; then change members one by one (result NULL:
 * it is none); end. After begin, discard follows in any case. false: the error was replied. tally: sorted by the
 * board's layout; choice: the index of that among those that a new board may have. Where a result does not fit, and
 * has_choice, nothing was replied: begin with the next. end: *is_outdated, nothing was replied, the destination has other rules than at the beginning. */
MUST_CHECK bool zset_store_begin(const struct call *call, struct bytes destination, unsigned choice,
                                 uint32_t count, struct zset_filling *filling);
MUST_CHECK bool zset_store_put(const struct call *call, struct bytes destination,
                               struct zset_filling *filling, unsigned scale,
                               const struct tally_entry *entry);
MUST_CHECK bool zset_store_index(const struct call *call, struct zset_filling *filling,
                                 struct board_indexing *progress, uint32_t work_max, bool *is_over);
MUST_CHECK bool zset_store_change(const struct call *call, struct bytes destination,
                                  struct zset_filling *filling, unsigned scale, struct bytes member,
                                  const struct tally_result *result);
void zset_store_end(const struct call *call, struct bytes destination, struct zset_filling *filling,
                    bool *is_outdated);
void zset_store_discard(const struct call *call, struct zset_filling *filling);

/* The ordinal that a board with this lead field has for a score of another board, or a result. *ordinal is set only where
 * it is DECIMAL_OK. */
MUST_CHECK enum decimal_status zset_store_score(const struct layout_field *lead, wide value,
                                                unsigned scale, int64_t now_us, uint64_t *ordinal);

/* Store the tally: values in the lead field, with their times; other fields 0. Replies with the
 * number of members, or with an error that names the member whose value or time does not fit the
 * layout. */
void zset_store_results(const struct call *call, struct bytes destination, struct combine *combine);
/* Store a span of a board (NULL if there is none): copied unchanged if the layout is the same,
 * otherwise as scores and times. */
void zset_store_span(const struct call *call, struct bytes destination, const struct board *board,
                     struct zset_span span);
/* The same of a copy in which the span is, with few members beside it: its board is moved from there. The layout must be
 * the same. */
void zset_store_copy(const struct call *call, struct bytes destination, struct board *copy,
                     struct zset_span span);
/* Would a span of the board be copied unchanged? key: the destination; NULL: there is none. */
bool zset_store_is_unchanged(const struct call *call, struct bytes destination,
                             const struct registry_key *key, const struct board *board);
/* Reply with the error for status. */
void zset_reply_failure(const struct call *call, const struct combine *combine,
                        enum combine_status status);

#endif
