/* How members get onto boards. Whatever command writes a member does it through here, so that none
 * can forget what the board's rules say.
 *
 *     if (!writing_begin(call, name, &writing)) return;              finds or makes the board
 *     for (...) writing_put(&writing, &member, key, is_increment);   KEEP BEST
 *     writing_settle(&writing);                                      CAP: the last ones go
 *     answer
 *     writing_end(&writing);
 *
 * CAP holds after the whole command, not between its members: what counts is who is among the best
 * when all of it is done. Boards that are put in place as a whole
 * (command_zset_store.c) are cut before that. */
#ifndef SERVER_WRITING_H
#define SERVER_WRITING_H

#include "server/command.h"

struct writing {
    const struct call *call;
    struct registry_key *key;
    struct board *board;
    const struct rules *rules;
    bool is_only;    /* set it when one member alone is written: then it is known at once whether
                      * it stays */
    bool is_new;     /* the board was made for this */
    bool is_changed; /* something was put */
    bool has_lost; /* CAP: after writing_settle not everyone who was put, or was there, still is */
};

enum writing_status {
    WRITING_PUT,
    WRITING_LEFT,       /* KEEP BEST: what is there is as good, and stays as it was */
    WRITING_PUSHED_OUT, /* CAP: a newcomer that is not among the best; nothing changed */
    WRITING_FAILED,     /* the error is answered; nothing changed */
};

/* false: the error is answered. */
MUST_CHECK bool writing_begin(const struct call *call, struct bytes name, struct writing *writing);

/* Would a member be written with this key? For whoever has to know before its first change. */
static inline bool writing_takes(const struct writing *writing, const struct board_member *member,
                                 uint64_t key, bool is_increment) {
    return is_increment || !member->is_there || rules_take(writing->rules, member->key, key);
}

/* Put a member that was looked up. */
MUST_CHECK enum writing_status writing_put(struct writing *writing,
                                           const struct board_member *member, uint64_t key,
                                           bool is_increment);

/* Push out who is behind the board's cap. Ranks are final then. */
void writing_cut(struct writing *writing);
static inline void writing_settle(struct writing *writing) {
    if (writing->rules->cap > 0) {
        writing_cut(writing);
    }
}

/* The last thing: a change is told, and a new board that was left empty, after an error or by XX,
 * is taken back. */
static inline void writing_end(struct writing *writing) {
    writing_settle(writing);
    if (writing->is_changed) {
        registry_tell_members(writing->call->registry, writing->key);
    } else if (writing->is_new) {
        registry_take_back(writing->call->registry, writing->key);
    }
}

/* Answer that the board has as many members as a board can have. */
void writing_refuse_full(const struct call *call);

#endif
