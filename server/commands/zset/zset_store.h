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

/* Store the tally: values in the lead field, with their times; other fields 0. Replies with the
 * number of members, or with an error that names the member whose value or time does not fit the
 * layout. */
void zset_store_results(const struct call *call, struct bytes destination, struct combine *combine);
/* Store a span of a board (NULL if there is none): copied unchanged if the layout is the same,
 * otherwise as scores and times. */
void zset_store_span(const struct call *call, struct bytes destination, const struct board *board,
                     struct zset_span span);
/* Reply with the error for status. */
void zset_reply_failure(const struct call *call, const struct combine *combine,
                        enum combine_status status);

#endif
