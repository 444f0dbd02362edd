/* Private to follow.h: the structs.
 *
 *     follow.c        who follows what; which boards have changed
 *     follow_tell.c   what has changed, and the messages */
#ifndef SERVER_FOLLOW_PARTS_H
#define SERVER_FOLLOW_PARTS_H

#include "server/clients/follow.h"
#include "server/clients/server.h"

enum follow_kind {
    FOLLOW_BOARD,
    FOLLOW_TOP,
    FOLLOW_TOP_LIST,
    FOLLOW_TOP_MEMBERS,
    FOLLOW_OVERTAKEN,
    FOLLOW_KINDS,
};

enum follow_state {
    FOLLOW_QUIET,
    FOLLOW_CHANGED,
    FOLLOW_CHECKING, /* some of its channels have been compared */
    FOLLOW_CHECKING_CHANGED,
    FOLLOW_RESTING,
    FOLLOW_RESTING_CHANGED,
    FOLLOW_STATES,
};

/* What OPENS and CLOSES say. */
enum follow_opening { FOLLOW_NO_BOARD, FOLLOW_NOT_OPEN, FOLLOW_OPEN, FOLLOW_CLOSED };

/* The members of the first n, in one allocation with their bytes. */
struct follow_roster {
    size_t size;
    uint32_t count;
    struct follow_member {
        uint64_t hash;
        struct bytes name;
    } members[];
};

/* A channel that has a subscriber, with what was told last. */
struct followed_channel {
    struct followed_board *board;
    struct followed_channel *next, *previous; /* of the board */
    struct bytes name;                        /* the topic's */
    enum follow_kind kind;
    union {
        enum follow_opening opening; /* BOARD */
        struct {                     /* TOP, TOP_LIST, TOP_MEMBERS */
            uint32_t n;
            uint64_t digest;              /* of the first n, with their fields */
            struct follow_roster *roster; /* TOP_MEMBERS; NULL: there was no memory */
        };
        struct {                 /* OVERTAKEN */
            struct bytes member; /* in the channel's name */
            uint64_t key;
            uint32_t rank;
            bool is_there;
        };
    };
};

struct followed_board {
    struct link link; /* first member: a link is cast to its board */
    enum follow_state state;
    struct followed_board *next, *previous; /* in its queue */
    int64_t rest_until_ms;                  /* monotonic */
    struct followed_channel *first, *last;
    struct followed_channel *check; /* CHECKING: the next one to compare */
    uint32_t channel_count;
    uint32_t guard_place; /* in follows.guards */
    uint32_t database;
    uint32_t name_size;
    char name[];
};
#define FOLLOW_NEVER INT64_MAX

static inline struct bytes follow_name(const struct followed_board *board) {
    return (struct bytes){.at = board->name, .size = board->name_size};
}

/* Compare a channel's board with what was told last, publish what has changed if is_told, and
 * remember it. Returns a measure of the work done. */
uint32_t follow_tell(struct server *server, struct followed_channel *channel, bool is_told);
/* Free what a channel remembers. */
void follow_forget(struct follows *follows, struct followed_channel *channel);

#endif
