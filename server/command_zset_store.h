/* Results that become boards: ZRANGESTORE, ZUNIONSTORE and their kin.
 *
 * The new board is built aside, with the layout that the settings give the destination's name, and
 * then put in place of what stood there, which may have been one of the sources. An error leaves
 * everything as it was. A result without members removes the destination. */
#ifndef SERVER_COMMAND_ZSET_STORE_H
#define SERVER_COMMAND_ZSET_STORE_H

#include "server/combine.h"
#include "server/command_zset.h"

/* Store what is in the tally: values into the lead field, their times, other fields 0. Answers the
 * number of members, or an error that names the member whose value or time the layout does not
 * hold. */
void zset_store_results(const struct call *call, struct bytes destination, struct combine *combine);
/* Store neighbours of a board, which may be NULL if there are none: as they are where the layout is
 * the same, otherwise scores and times. */
void zset_store_span(const struct call *call, struct bytes destination, const struct board *board,
                     struct zset_span span);
/* Answer why there are no results. */
void zset_reply_failure(const struct call *call, const struct combine *combine,
                        enum combine_status status);

#endif
