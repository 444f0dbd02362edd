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

/* A board being filled; in steps that is a staged one (registry_board_stage), and this stays empty. */
struct zset_filling {
    struct board board;
    const struct board_options *kept; /* of the destination, made by LB.CREATE; NULL: it is not */
    uint64_t staged;                  /* in steps: its number */
    bool is_staged;                   /* in steps, until it has its name or is dropped */
    bool is_put;                      /* in place: owned by the registry */
    bool has_choice;                  /* it may get another layout yet */
    bool is_refused;                  /* a result does not fit this one */
    bool has_bans;
    enum board_status status;
    uint32_t count;
    struct board_entry entries[ZSET_STORE_PORTION];
    char rooms[ZSET_STORE_PORTION][NAME_TEXT_ROOM]; /* for their members' texts */
};

/* In steps: begin; add each result, or member, in order of arrival (a LATEST board: reversed rank order), and put those
 * added in each step; then change members one by one (result NULL: it is none); end. After begin, discard follows in
 * any case, and before it drop, unless the job ends because others change the keys from now on. false: the error was
 * replied. choice: the index of the layout among those that a new board may have. Where a result does not fit, and
 * has_choice, nothing was replied: begin with the next. end: *is_outdated, nothing was replied, the destination has other options than at the beginning. */
MUST_CHECK bool zset_store_begin(const struct call *call, struct bytes destination, unsigned choice,
                                 uint32_t count, struct zset_filling *filling);
MUST_CHECK bool zset_store_add(const struct call *call, struct bytes destination,
                               struct zset_filling *filling, unsigned scale,
                               const struct tally_entry *entry);
void zset_store_add_member(struct zset_filling *filling, struct name member, uint64_t key);
MUST_CHECK bool zset_store_put(const struct call *call, struct zset_filling *filling);
MUST_CHECK bool zset_store_change(const struct call *call, struct bytes destination,
                                  struct zset_filling *filling, unsigned scale, struct bytes member,
                                  const struct tally_result *result);
/* is_there: put it, behind its equals; else take it. */
MUST_CHECK bool zset_store_change_member(const struct call *call, struct zset_filling *filling,
                                         struct bytes member, bool is_there, uint64_t key);
/* The board as far as it is made. */
const struct board *zset_store_staged(const struct call *call, const struct zset_filling *filling);
void zset_store_end(const struct call *call, struct bytes destination, struct zset_filling *filling,
                    bool *is_outdated);
void zset_store_drop(struct registry *registry, struct zset_filling *filling);
void zset_store_discard(struct registry *registry, struct zset_filling *filling);

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
/* In steps, in place of end: with only this span of what is staged, from which those who are banned were not kept away. */
void zset_store_end_span(const struct call *call, struct bytes destination,
                         struct zset_filling *filling, struct zset_span span, bool *is_outdated);
/* Would a span of the board be copied unchanged? key: the destination; NULL: there is none. */
bool zset_store_is_unchanged(const struct call *call, struct bytes destination,
                             const struct registry_key *key, const struct board *board);
/* Reply with the error for status. */
void zset_store_reply_failure(const struct call *call, const struct combine *combine,
                              enum combine_status status);

/* ---- zset_combine.c, of ZRANGESTORE ---- */

/* Is the span long, and can it be stored in steps? */
bool zset_combine_steps_are_due_for_span(const struct call *call,
                                         const struct registry_key *destination,
                                         const struct board *board, struct zset_span span);
/* Do it in steps between other commands: the client waits, and is answered at the end. */
void zset_combine_steps_begin_span(const struct call *call);

/* ---- zset_range.c ---- */

/* The board, or NULL, and the span of it that ZRANGESTORE asks for. false: the error was replied. */
MUST_CHECK bool zset_range_find(const struct call *call, const struct registry_key **source,
                                struct zset_span *span);

#endif
