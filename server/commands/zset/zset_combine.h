/* Private to ZUNION and its relatives: what one command asks for, and long ones in steps. */
#ifndef SERVER_COMMAND_ZSET_COMBINE_H
#define SERVER_COMMAND_ZSET_COMBINE_H

#include "server/commands/zset/zset_store.h"

enum { QUERY_SOURCES_FEW = 16 };

/* One command. */
struct zset_query {
    uint32_t first_source; /* index of the first source's key */
    struct combine combine;
    struct combine_source few_sources[QUERY_SOURCES_FEW];
    bool with_scores;
    bool is_counted; /* ZINTERCARD */
    int64_t limit;
};

/* Everything but the boards. zset_combine_query_end follows in any case. false: the error was replied. */
MUST_CHECK bool zset_combine_query_begin(const struct call *call, struct zset_query *query);
void zset_combine_query_end(struct zset_query *query);
/* Does a destination precede the keys? */
bool zset_combine_query_is_stored(const struct call *call);
/* The first board, whose layout gives equal scores their order. NULL: none exists. */
const struct board *zset_combine_query_board(const struct zset_query *query);
/* Reply the results, whose tally is sorted by that layout: how many, and then at most so many at a time. Are there
 * more? */
struct tally_walk zset_combine_query_reply_begin(const struct call *call, struct zset_query *query);
MUST_CHECK bool zset_combine_query_reply_some(const struct call *call,
                                              const struct zset_query *query,
                                              struct tally_walk *walk, uint32_t count);
/* Run it on the boards that it has, at once. */
void zset_combine_query_answer(const struct call *call, struct zset_query *query);

/* ---- zset_steps.c ---- */

/* Is there so much to do, of boards with so many members, that it is done in steps? */
bool zset_steps_are_due(const struct call *call, uint64_t member_count, uint32_t source_count);
/* Do it in steps between other commands: the client waits, and is answered at the end. */
void zset_steps_begin(const struct call *call);
/* The same for ZRANGESTORE: is the span long, and can it be stored in steps? */
bool zset_steps_are_due_for_span(const struct call *call, const struct registry_key *destination,
                                 const struct board *board, struct zset_span span);
void zset_steps_begin_span(const struct call *call);

/* ---- zset_range.c ---- */

/* The board, or NULL, and the span of it that ZRANGESTORE asks for. false: the error was replied. */
MUST_CHECK bool zset_range_find(const struct call *call, const struct registry_key **source,
                                struct zset_span *span);

#endif
