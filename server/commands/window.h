/* Boards with WINDOW n SUM|BEST: what members got in the running period and the n - 1 before it.
 *
 *     hourly                     ann 12     zoe 7      ranks; each member's value follows from
 *     hourly@2026-11-26T05       ann 5                 the running period's share, and from
 *     hourly@2026-11-26T04       ann 7      zoe 7      those of the periods before
 *     hourly@2026-11-25T05       zoe 3                 has left: an archive
 *
 * A share has what one period brought. It is there from the period's first result on, and frozen
 * from the beginning: commands write to the board alone (writing.h), and through it to the share of
 * the running period. What NX, XX, GT, LT, SET and BEST compare with is the member's result in the
 * running period; the board follows.
 *
 *     SUM    the sum, field by field; where it is outside of the field's range, the range's end
 *     BEST   the best result, and of equal ones (time ignored) that of the oldest period
 *
 * So the value of every member is a function of the shares, and of one number: the shares that count
 * are those of the periods from from_ms on, and of the first one only members whose rank is
 * left or more, the others having left already. Both are in the board's state, and change in
 * the same group as the members: after kill -9 and on replicas the function holds. It does not cover
 * the time of a SUM, which is that of the last write.
 *
 * What leaves does so in steps: window_job. */
#ifndef SERVER_WINDOW_H
#define SERVER_WINDOW_H

#include "server/commands/zset/zset.h"

/* More than count can be there while what is due has not left yet. */
enum { WINDOW_SHARES_MAX = 2 * BOARD_WINDOW_MAX };

/* The shares that are there, the oldest first. One that has expired is removed when it is looked for: then the
 * board has got another state (registry_roll.c). */
struct window_shares {
    const struct registry_key *key; /* the board */
    bool has_first;                 /* at[0] is the one of from_ms */
    uint32_t left;                  /* of that one: so many have left */
    uint32_t count;
    uint32_t period_count; /* that were looked for, */
    int64_t next_ms;       /* and when the next one of them begins */
    struct registry_key *at[WINDOW_SHARES_MAX];
    bool are_changed[WINDOW_SHARES_MAX]; /* by window_take, */
    bool is_board_changed;               /* and the board as well */
};
void window_find_shares(struct registry *registry, const struct registry_key *key, int64_t now_ms,
                        struct window_shares *shares);
/* The share of the period that begins then; NULL: there is none. *is_taken: its name is another
 * key's. */
struct registry_key *window_find_share(struct registry *registry, const struct registry_key *key,
                                       int64_t start_ms, int64_t now_ms, bool *is_taken);
/* The one of the running period; NULL also of a board without a WINDOW. */
struct registry_key *window_find_running(struct registry *registry, const struct registry_key *key,
                                         int64_t now_ms);
/* The board of which this key is a share that counts, or the key itself if it is such a board; NULL:
 * neither. */
struct registry_key *window_find_board(struct registry *registry, struct registry_key *key,
                                       int64_t now_ms);
/* Of members who are on a board with a PERIOD with these keys: when the period begins that the board shows. BEST: the one
 * in which it was reached; SUM: the last one with a result; without a WINDOW the running one. Nothing is changed. */
void window_find_shown(const struct registry *registry, const struct registry_key *key,
                       const struct bytes *members, const uint64_t *keys, unsigned count,
                       int64_t now_ms, int64_t *starts_ms);

/* Are the shares among this registry's keys? A board that came from a server to Redis has none that would be found.
 * false: the error was replied. */
MUST_CHECK bool window_check_host(const struct call *call);
/* The options of the running period's share beside a board with these. false: they are what it has. */
bool window_alter_share(const struct registry_key *share, const struct board_options *options,
                        struct board_options *share_options);
/* The share of the running period, made if there is none. NULL: the error was replied. */
struct registry_key *window_begin_share(const struct call *call, const struct registry_key *key,
                                        bool *is_new);
/* May a board with these options begin under this name: is the name of the running period's share
 * free, and do its times last? One without a WINDOW may. false: the error was replied. */
MUST_CHECK bool window_may_begin(const struct call *call, struct bytes name,
                                 const struct board_options *options);
/* May the board of this name get these options? Where a WINDOW begins with them, they move to the running period. false:
 * the error was replied. */
MUST_CHECK bool window_may_alter(const struct call *call, struct bytes name,
                                 const struct registry_key *key, struct board_options *options);
/* The board's state with these options: it goes on, or begins with a WINDOW. */
struct board_state window_alter_state(const struct registry_key *key,
                                      const struct board_options *options);

enum { WINDOW_VALUES_MAX = 64 };
struct window_value {
    struct bytes name;
    uint64_t most;   /* BEST: there is no better one; UINT64_MAX: that is not known */
    uint64_t times;  /* SUM: a key with the time that it gets */
    bool is_undated; /* SUM: but the latest of its results' times, if that is later */
    bool is_there;   /* on some share; this and the rest are computed */
    bool fits;       /* SUM: it is in the range of every field */
    uint64_t key;
};
/* The values of members by the shares; of the first one none counts if shares->left is UINT32_MAX. Returns
 * how many look-ups on shares that took. */
uint32_t window_compute(const struct window_shares *shares, struct window_value *values,
                        uint32_t count);
/* The key that the board's member gets when the share's becomes after. false: the sum is out of the
 * range of a field. */
MUST_CHECK bool window_follow(struct registry *registry, const struct registry_key *key,
                              const struct board_member *member, struct registry_key *share,
                              const struct board_member *share_member, uint64_t after,
                              int64_t now_ms, uint64_t *board_key);

/* Take a member off the board and all its shares. Returns of how many boards it was taken. */
uint32_t window_take(struct registry *registry, struct registry_key *key,
                     struct window_shares *shares, struct bytes member);
/* Behind the last one: shares left without members are removed, and clients are told of each that has changed. If the board
 * has, too, it may be empty: the caller tells of it, and removes it then. */
void window_end_take(struct server *server, const struct window_shares *shares);
/* Have shares changed in another way? Make the member what was computed from them. false: no memory. */
MUST_CHECK bool window_put(struct registry *registry, struct registry_key *key,
                           const struct window_value *value);
/* How many of the first share's members that have left are this member: 1 or 0. */
uint32_t window_count_gone(const struct window_shares *shares, uint32_t index, struct bytes member);
/* The share of this index has changed: of members that had left so many moved, and `to`, if it is on it,
 * has a new rank. Whether that one has left follows from its rank. */
void window_note_moved(struct registry *registry, struct registry_key *key,
                       const struct window_shares *shares, uint32_t index, uint32_t gone_count,
                       struct bytes to);
/* The board is about to get these options: where they keep archives longer, those in the window are kept as long, but for
 * such as have got an expiry by hand. false: no memory. */
MUST_CHECK bool window_keep_shares(struct registry *registry, struct registry_key *key,
                                   const struct board_options *options, int64_t now_ms);

/* What leaves does so in steps (server/sessions/job.h). */
extern const struct board_work window_job;

#endif
