/* Ratings of players: what the notes of a board with RATING say (skiplist/keyspace/registry.h, codec/rating.h).
 *
 *     registry_note_find(key, "ann") -> 39 bytes -> rating_unpack -> value, deviation, games
 *
 * A player with a record is on the board while there are enough games (MINGAMES) and the deviation is small enough
 * (MAXDEV). Nothing else puts a member on such a board, so whoever is on it without a record came from a file: a match
 * takes it for a new player. */
#ifndef SERVER_COMMAND_LB_RATING_H
#define SERVER_COMMAND_LB_RATING_H

#include "codec/rating.h"
#include "server/commands/zset/zset.h"

/* The key of a board that is one's value. */
static inline const struct registry_key *lb_rating_key(const struct board *board) {
    const void *key = board;
    return key;
}
_Static_assert(offsetof(struct registry_key, board) == 0, "a board is where its key is");

/* false: there is no record; *record is then a new player's. */
bool lb_rating_find(const struct registry_key *key, struct bytes member,
                    struct rating_record *record);
/* An element of a record with the word RATING: [rating, deviation, volatility, games, won, drawn, lost, last], or nil. The
 * deviation is that of now_ms. */
void lb_rating_reply(struct reply *reply, const struct registry_key *key, struct bytes member,
                     int64_t now_ms);
/* "RATING is for boards that have it"; key NULL: there is no board. false: the error was replied. */
MUST_CHECK bool lb_rating_check(const struct call *call, const struct registry_key *key);

#endif
