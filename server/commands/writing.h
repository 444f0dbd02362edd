/* The common path for writing members to boards. Every command that writes a member uses it, so
 * that none can bypass the board's rules.
 *
 *     if (!writing_begin(call, name, &writing)) return;              finds or creates the board
 *     for (...) writing_put(&writing, &member, key, is_increment);   KEEP BEST
 *     writing_settle(&writing);                                      CAP: drop those below the cap
 *     reply
 *     writing_end(&writing);
 *
 * CAP applies after the whole command, not between its members: the final ranks decide. Boards that
 * are replaced as a whole (zset_store.c) are cut before they are put in place. */
#ifndef SERVER_WRITING_H
#define SERVER_WRITING_H

#include "server/dispatch/call.h"
#include "server/dispatch/command.h"

struct writing {
    const struct call *call;
    struct registry_key *key;
    struct board *board;
    const struct rules *rules;
    bool is_only;    /* set by the caller if only one member is written: writing_put then decides at
                        once whether it stays */
    bool is_new;     /* the board was created by writing_begin */
    bool is_changed; /* at least one member was put */
    bool has_lost;   /* CAP: writing_settle removed members, new or old */
};

enum writing_status {
    WRITING_PUT,
    WRITING_LEFT,       /* KEEP BEST: the existing key is as good or better and was kept */
    WRITING_PUSHED_OUT, /* CAP: a new member that would rank below the cap; nothing changed */
    WRITING_FAILED,     /* the error was replied; nothing changed */
};

/* false: the error was replied. */
MUST_CHECK bool writing_begin(const struct call *call, struct bytes name, struct writing *writing);

/* Would the member be written with this key? For callers that must know before their first
 * change. */
static inline bool writing_takes(const struct writing *writing, const struct board_member *member,
                                 uint64_t key, bool is_increment) {
    return is_increment || !member->is_there || rules_take(writing->rules, member->key, key);
}

/* Put a member that was looked up. */
MUST_CHECK enum writing_status writing_put(struct writing *writing,
                                           const struct board_member *member, uint64_t key,
                                           bool is_increment);

/* Remove the members ranked below the board's cap. Ranks are then final. */
void writing_cut(struct writing *writing);
static inline void writing_settle(struct writing *writing) {
    if (writing->rules->cap > 0) {
        writing_cut(writing);
    }
}

/* Call last: notify the registry of a change, or remove a new board left empty by an error or by
 * XX. */
static inline void writing_end(struct writing *writing) {
    writing_settle(writing);
    if (writing->is_changed) {
        registry_tell_members(writing->call->registry, writing->key);
    } else if (writing->is_new) {
        registry_take_back(writing->call->registry, writing->key);
    }
}

/* Reply that the board has the maximum number of members. */
void writing_refuse_full(const struct call *call);

#endif
