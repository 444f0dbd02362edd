/* Boards that somebody follows: subscriptions to the channels that tell what happens to a board.
 *
 *     __board@0__:daily               opened, closed (and rolled: server/sessions/notify.h)
 *     __top@0__:10:daily              changed            the first 10 are not as before
 *     __toplist@0__:10:daily          [["zoe","900"],...]            the same, with the first 10
 *     __topmembers@0__:10:daily       entered zoe, left ann
 *     __overtaken@0__:5:daily:zoe     overtaken 2 3 kim  (5: the size of the board's name)
 *
 * Who subscribes to such a channel follows the board; patterns receive but do not follow. Messages
 * reach only those who may read the board (server/sessions/notify.h). A change
 * of a key is one test if nobody follows any board, and otherwise one look-up: it only marks the
 * board. At the end of the tick, board_events_step compares a marked board with what was told last, in
 * bounded steps, and then the board rests. So it does not matter which command made the change, and
 * a board has no more than one message a channel (one a member that came or went) in 100 ms:
 *
 *                 change              check                  done
 *     QUIET ----------------> CHANGED -----> CHECKING ------------------> RESTING
 *       ^                        ^                                           |
 *       |                        | changed meanwhile                         |
 *       +------------------------+----------- rested <-----------------------+
 *
 * Invariant: a followed board has a channel, and is in the queue that its state says. */
#ifndef SERVER_BOARD_EVENTS_H
#define SERVER_BOARD_EVENTS_H

#include "server/sessions/server.h"

enum {
    BOARD_EVENTS_TOP_MAX = 100,          /* the n of the first n */
    BOARD_EVENTS_PER_CLIENT_MAX = 10000, /* channels */
    BOARD_EVENTS_CHANNELS_MAX = 100000,  /* of all clients */
    BOARD_EVENTS_REST_MS = 100,
};

/* __WORD@DB__:NAMES, and each of the messages: a word and what follows it, of which the last has all that is left, or
 * JSON. Types are those of server/dispatch/shape.h. */
struct board_events_channel {
    const char *word, *names, *messages;
};
/* The last one has no word. */
extern const struct board_events_channel board_events_channels[];

/* Make the server's subscriptions tell which boards are followed. */
void board_events_init(struct server *server);
/* No client may be subscribed any more. */
void board_events_deinit(struct board_events *follows);

/* Why may this client not subscribe to the channel? NULL: it may. */
const char *board_events_refuse(const struct server *server, const struct session *session,
                                struct bytes channel);

/* The board whose events a channel tells. false: the channel tells no board's. */
MUST_CHECK bool board_events_find_board(struct bytes channel, struct bytes *board);

/* Somebody follows a board: a key has changed. name.at NULL: all keys of the database. */
void board_events_touch(struct board_events *follows, uint32_t database, struct bytes name);
/* Publish what has happened to followed boards. true: more is left to do at once. */
bool board_events_step(struct server *server);
/* Milliseconds until board_events_step has something to do. INT64_MAX: nothing before a change. */
int64_t board_events_wait_ms(const struct server *server);

MUST_CHECK bool board_events_validate(const struct board_events *follows, const char **reason);

#endif
