/* ONCE id: a result that may be sent again, and counts once.
 *
 *     switch (once_begin(call, key, id, &once))
 *     ONCE_REPEATED  it came before, within once-window: answer as a command that changed nothing
 *     ONCE_REFUSED   there are once-max younger ids, or too many of this user; the error was replied
 *     ONCE_NEW       then, once nothing can be refused any more but for lack of memory:
 *         if (!once_put(&once)) return;
 *         change the boards; where that fails: once_take_back(&once);
 *
 * An id belongs to the key to which it was sent; over HTTP (session_once) to the user and the route, and it has a
 * further mark, of the id with what it was sent with: the id's without that one is of another request.
 *
 * The share of a user is four times what is free. So one alone has at most 80% of once-max, two who take what they can
 * 44% each, and only nine at their limits leave no room. How and where ids are kept: once_ids.h. */
#ifndef SERVER_COMMANDS_ONCE_H
#define SERVER_COMMANDS_ONCE_H

#include "server/dispatch/call.h"
#include "server/sessions/once_ids.h"

enum once_status { ONCE_NEW, ONCE_REPEATED, ONCE_REFUSED };

enum { ONCE_MARKS_MAX = 2 };

struct once {
    const struct call *call;
    struct bytes key;         /* borrowed */
    struct registry_key *ids; /* NULL: no board yet */
    uint64_t time;
    uint16_t owner;
    struct once_mark {
        struct bytes name; /* on that board */
        char room[ONCE_IDS_MEMBER_SIZE];
    } marks[ONCE_MARKS_MAX];
    uint32_t mark_count;
    /* the last one, when the board had so many */
    struct board_member member;
    uint32_t count;
};

static inline bool once_is_id(struct bytes id) {
    return id.size >= 1 && id.size <= ONCE_ID_MAX;
}
/* For an id that is one. */
MUST_CHECK enum once_status once_begin(const struct call *call, struct bytes key, struct bytes id,
                                       struct once *once);
/* Keep the id. false: no memory; the error was replied, and nothing has changed. */
MUST_CHECK bool once_put(struct once *once);
/* The command is refused after all. */
void once_take_back(struct once *once);

#endif
