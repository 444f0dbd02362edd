/* The common path for writing members to boards. Every command that writes a member uses it, so
 * that none can bypass the board's options.
 *
 *     if (!writing_begin(call, name, &writing)) return;              finds or creates the board
 *     for (...) writing_put(&writing, &member, key, is_increment);   KEEP BEST
 *     writing_settle(&writing);                                      CAP: drop those below the cap
 *     for (...) writing_tag(&writing, &member, &values);             tags of those that are left
 *     reply
 *     writing_end(&writing);
 *
 * A board that is frozen, not open yet or closed is refused at once, LIMIT before the first member.
 *
 * On a board with a WINDOW (window.h) all this is about the share of the running period: `key` and
 * `board` are the share's, and what is written there changes the board itself, `whole`, in
 * writing_put. Replies about the board show `whole`: writing_shown.
 *
 * CAP applies after the whole command, not between its members: the final ranks decide. Boards that
 * are replaced as a whole (zset_store.c) are cut before they are put in place. */
#ifndef SERVER_WRITING_H
#define SERVER_WRITING_H

#include "server/commands/ban.h"
#include "server/commands/zset/zset.h"

struct writing {
    const struct call *call;
    struct registry_key *key;
    struct board *board;
    const struct board_options *options;
    struct registry_key *whole; /* WINDOW: the board of which key is a share; NULL: no window */
    bool is_only; /* set by the caller if only one member is written: writing_put then decides at
                        once whether it stays */
    bool is_new;  /* the board was created by writing_begin */
    bool
        is_given; /* its options are the caller's (writing_begin_in): there is no choice of layouts */
    bool is_whole_new;     /* so was `whole` */
    bool is_approval;      /* what is written was held: HOLD and LIMITS take it */
    bool has_held;         /* HOLD: a result was kept, and not put */
    bool is_reserved;      /* writing_reserve has reserved memory */
    bool is_newcomer;      /* the member put last was not on the board before; WINDOW: on `whole` */
    bool is_as_before;     /* WINDOW: it left `whole` as it was */
    bool is_changed;       /* at least one member was put, or got other tags, on `key` or `whole` */
    bool is_whole_changed; /* WINDOW: on `whole`, */
    bool is_share_changed; /* on `key` */
    bool has_bans;         /* some member is banned (ban.h) */
    bool has_lost;         /* CAP: writing_settle removed members, new or old */
};

enum writing_status {
    WRITING_PUT,
    WRITING_LEFT,       /* KEEP BEST: the existing key is as good or better and was kept */
    WRITING_PUSHED_OUT, /* CAP: a new member that would rank below the cap; nothing changed */
    WRITING_FAILED,     /* the error was replied; nothing changed */
};

/* Does the board take no such write now (options.h says why)? Then the error was replied. What writes to boards in
 * other ways than by struct writing, or removes members, asks here before it changes anything. */
bool writing_explain(const struct call *call, const struct board_options *options,
                     enum board_write write);
MUST_CHECK static inline bool writing_refuses(const struct call *call,
                                              const struct board_options *options,
                                              enum board_write write) {
    return options->guards != 0 && writing_explain(call, options, write);
}

/* Is it the name of a room, or of the template of rooms? */
MUST_CHECK bool writing_names_room(const struct call *call, struct bytes name);

/* Write what LB.APPROVE approves: on a board that is there, whatever its guards say. */
void writing_begin_approval(const struct call *call, struct registry_key *key,
                            struct writing *writing);

/* false: the error was replied. */
MUST_CHECK bool writing_begin(const struct call *call, struct bytes name, struct writing *writing);

/* The same, but a new board gets these options, in the period they state, and goes with its last member. The name
 * is a valid one. */
MUST_CHECK bool writing_begin_in(const struct call *call, struct bytes name,
                                 const struct board_options *options, struct writing *writing);

/* A new board that has a choice of layouts gets the first one that takes these scores, before they are read. false:
 * the error was replied. */
MUST_CHECK bool writing_choose_for(struct writing *writing, registry_judge *judge,
                                   const void *scores);
MUST_CHECK static inline bool writing_choose(struct writing *writing, registry_judge *judge,
                                             const void *scores) {
    return !writing->is_new || writing->is_given || writing_choose_for(writing, judge, scores);
}

/* Can this be a member, and is it not banned from the board? For every member before the first
 * change. false: the error was replied. */
bool writing_refuse_banned(const struct writing *writing, struct bytes member);
MUST_CHECK static inline bool writing_check_member(const struct writing *writing,
                                                   struct bytes member) {
    return zset_check_member(writing->call, member) &&
           (!writing->has_bans || !writing_refuse_banned(writing, member));
}

/* Would the member be written with this key? For callers that must know before their first
 * change. */
static inline bool writing_takes(const struct writing *writing, const struct board_member *member,
                                 uint64_t key, bool is_increment) {
    return is_increment || !member->is_there ||
           board_options_take(writing->options, member->key, key);
}

/* The members that a command names on a board, by their hashes, where one may be named twice. */
struct writing_names {
    const struct bytes *first; /* in the request, and each step further */
    uint32_t step;
    uint32_t *
        slots; /* zeroed at first, at least twice their number: what the latest one of a member is, from 1; NULL: none is named twice */
    uint32_t mask; /* of the slots, whose number is a power of 2 */
};
/* So many slots are enough. */
static inline uint32_t writing_names_slots(uint32_t member_count) {
    uint32_t count = 8;
    while (count < 2 * member_count) {
        count *= 2;
    }
    return count;
}
/* The member's slot, to be set; 0 in it: it was not named before. */
static inline uint32_t *writing_names_find(const struct writing_names *names,
                                           const struct board_member *member) {
    uint32_t place = (uint32_t)(member->hash >> 32) & names->mask;
    while (
        names->slots[place] != 0 &&
        !bytes_equal(names->first[(size_t)(names->slots[place] - 1) * names->step], member->name)) {
        place = (place + 1) & names->mask;
    }
    return &names->slots[place];
}

/* WINDOW: would the sum be out of a field's range if the member had this key in the running period?
 * For every member before the first change. false: the error was replied. */
bool writing_check_sum(const struct writing *writing, struct bytes member, uint64_t key);
MUST_CHECK static inline bool writing_check_put(const struct writing *writing, struct bytes member,
                                                uint64_t key) {
    return writing->whole == NULL || writing_check_sum(writing, member, key);
}

/* Will other fields than before be shown of the member when it has this key, which is new to it, in the
 * running period? A BEST that is none of the whole WINDOW changes none. */
bool writing_changes_whole(const struct writing *writing, struct bytes member, uint64_t key);
static inline bool writing_changes_shown(const struct writing *writing, struct bytes member,
                                         uint64_t key) {
    return writing->whole == NULL || writing_changes_whole(writing, member, key);
}

/* The key that commands reply about, and its board. */
static inline struct registry_key *writing_shown_key(const struct writing *writing) {
    return writing->whole != NULL ? writing->whole : writing->key;
}
static inline struct board *writing_shown(const struct writing *writing) {
    return &writing_shown_key(writing)->board;
}
/* Its options, by which results are limited, held and ask for tickets; a share's are those of an archive. */
static inline const struct board_options *writing_shown_options(const struct writing *writing) {
    return writing->whole == NULL ? writing->options : registry_options(writing->whole);
}

/* What count members may take, whose names have so many bytes. */
size_t writing_growth_size(const struct writing *writing, uint32_t count, size_t names_size,
                           bool with_tags);
/* Reserve memory for count members, every stride-th of names, so that none fails after another was
 * put; memory_reserve_end follows. with_tags: also for tags_set of each. more: bytes for what else is to be done.
 * false: out of memory. */
MUST_CHECK bool writing_reserve(struct writing *writing, const struct bytes *names, uint32_t stride,
                                uint32_t count, bool with_tags, size_t more);
/* Put a member that was looked up. */
MUST_CHECK enum writing_status writing_put(struct writing *writing,
                                           const struct board_member *member, uint64_t key,
                                           bool is_increment);

/* Set tags of a member that was looked up and is on the board (WINDOW: on the share), once it is known that there is room
 * (tags_fit) and memory. */
void writing_tag(struct writing *writing, const struct board_member *member,
                 const struct tag_values *values);

/* Remove the members ranked below the board's cap. Ranks are then final. */
void writing_cut(struct writing *writing);
static inline void writing_settle(struct writing *writing) {
    if (writing->options->cap > 0) {
        writing_cut(writing);
    }
}

void writing_notify(const struct writing *writing, const char *event);
/* Nothing was put: remove what writing_begin has created. */
void writing_take_back(const struct writing *writing);
void writing_tell_whole(const struct writing *writing, const char *event);
/* Call last: notify the registry of a change, and clients of this event, or remove a new board left
 * empty by an error or by XX. */
static inline void writing_end(struct writing *writing, const char *event) {
    writing_settle(writing);
    if (writing->is_changed) {
        if (writing->whole != NULL) {
            writing_tell_whole(writing, event);
        }
        if (writing->whole == NULL || writing->is_share_changed) {
            registry_tell_members(writing->call->registry, writing->key);
            if (__builtin_expect(notify_is_on(writing->call->server, ~0U), 0)) {
                writing_notify(writing, event);
            }
        }
    } else if (writing->has_held && (writing->is_approval || writing->is_new)) {
        registry_tell_members(writing->call->registry, writing->key);
    } else if (!writing->has_held && (writing->is_new || writing->is_whole_new)) {
        writing_take_back(writing);
    }
}

/* The number of newcomers for which the board has room: LIMIT, or the maximum of any board. */
static inline uint32_t writing_room(const struct writing *writing) {
    uint32_t count = board_count(writing_shown(writing));
    uint32_t limit = writing->options->limit > 0 ? writing->options->limit : BOARD_MEMBERS_MAX;
    return count < limit ? limit - count : 0;
}
/* Reply that the board has no room. */
void writing_refuse_full(const struct call *call, const struct board_options *options);

/* For commands that replace a key by a board as a whole. *kept: the options of a board made by
 * LB.CREATE, which the new one keeps; NULL: there is none. false: the board that is there takes no
 * writes; the error was replied. */
MUST_CHECK bool writing_may_replace(const struct call *call, struct bytes name,
                                    const struct board_options **kept);
/* May the user use all archives of a board of this name, of at most REGISTRY_KEY_MAX bytes? access: ACL_READ,
 * ACL_WRITE. false: the error was replied. */
MUST_CHECK bool writing_may_use_archives(const struct call *call, struct bytes name,
                                         unsigned access);
/* For commands that give a name to a value that is there, or was: may the user write the archives that it will
 * make there? false: the error was replied. */
MUST_CHECK bool writing_may_name(const struct call *call, struct bytes name,
                                 const struct registry_key *key);
/* An empty board with these options or, if they are NULL, the choice that the settings have for the name
 * (setting_board_options_for). false: the error was replied. */
MUST_CHECK bool writing_create_board(const struct call *call, const struct board_options *kept,
                                     unsigned choice, struct bytes name, struct board *board);
/* Do its options refuse that it begins with so many members? Then the error was replied. */
MUST_CHECK bool writing_refuses_whole(const struct call *call, const struct board *board,
                                      uint32_t count);

#endif
