/* Cost estimates for long commands. A command that would block the server for longer than
 * busy-command-limit is refused before it changes anything.
 *
 *     ZUNIONSTORE dst 2 mon tue      mon: 1,000,000 members   tue: 500,000
 *       its entry's cost:  count = 1,500,000 members of all boards, unit_ns = 150
 *       -> 225 ms
 *
 * An entry has a cost (struct command_cost) if its work grows with a board, the database or its
 * arguments by more than O(log n). docs/reference/long-commands.md is generated from these entries. Times are
 * measured on a board of a million members (bench/results) and accurate within a factor of two or
 * three: they also depend on the machine, the length of members and the overlap of boards, which
 * are not known in advance.
 *
 * EXEC costs the sum of its queued commands, from the sizes when it runs. Members that an earlier
 * queued command will add to a key (ZUNIONSTORE a ..., RENAME a b, ZRANGE b 0 -1) are added to the
 * key's size. */
#ifndef SERVER_COST_H
#define SERVER_COST_H

#include "server/dispatch/call.h"

/* An entry's cost, as the fields of struct command_cost say; key: the one that grows, 0: none. With
 * COST_ROW several entries share one. */
#define COST_ROW(command_bound, work, ns, key, of, other)                                          \
    {                                                                                              \
        .bound = command_bound, .count = work, .unit_ns = ns, .grown_key = key, .unit = of,        \
        .instead = other                                                                           \
    }
#define COST(...) (&(const struct command_cost)COST_ROW(__VA_ARGS__))

/* For count functions. The key, and its board; NULL: none. */
const struct registry_key *cost_key(const struct cost_view *view, uint32_t key_arg);
const struct board *cost_board(const struct cost_view *view, uint32_t key_arg);
/* Current number of the board's members, or the hash's fields, plus cost_growth, at most
 * UINT32_MAX. */
uint32_t cost_size(const struct cost_view *view, uint32_t key_arg);
/* Upper bound on the members that earlier commands of the transaction add to the key. */
uint32_t cost_growth(const struct cost_view *view, uint32_t key_arg);
/* a + b, saturating at UINT32_MAX. */
static inline uint32_t cost_sum(uint32_t a, uint32_t b) {
    return a > UINT32_MAX - b ? UINT32_MAX : a + b;
}
/* The arguments after the command name: keys of DEL. */
command_work cost_count_keys;
/* The arguments after the key: members of ZMSCORE, fields of HMGET. */
command_work cost_count_members;
/* Half the arguments after the key: pairs of ZADD and HSET. */
command_work cost_count_pairs;
/* Units of one result on the board of a key, or of none: on one with shares it is written twice, or may be looked up in
 * all (BEST), COST_PERIODS as much work as one result; each tag of the board is COST_TAG_UNITS. */
enum {
    COST_PERIODS = 4,
    COST_TAG_UNITS = 2,
    COST_RESULT_MAX = 1 + BOARD_WINDOW_MAX / COST_PERIODS + COST_TAG_UNITS * TAGS_MAX,
};
uint64_t cost_of_result(const struct registry_key *key);
/* Shares of the first key's board: on each of them a member may be looked up; 0 of a board without. */
command_work cost_count_shares;
/* The same pairs, on the board of the first key. */
command_work cost_count_scores;
/* The members and notes of the first key's board, or the fields of its hash. */
command_work cost_count_whole;
/* The keys of the database, or of all databases. */
command_work cost_count_database;
command_work cost_count_databases;
/* The members of all boards, estimated from used memory. */
command_work cost_count_memory;

/* At most what a request may cost, in nanoseconds, without a look at its keys: in most requests that is
 * far below the limit, and nothing is estimated. */
static inline uint64_t cost_bound_ns(const struct command *command, const struct request *request) {
    enum { MEMBER_BYTES_MIN = 16, FEW_ARGUMENTS = 8, WHERE_ARGUMENTS = 6, CODE_NS = 3 };
    uint64_t arguments = request->count;
    uint64_t members;
    uint64_t units = arguments * arguments; /* a million arguments at most */
    uint64_t bound_ns;
    switch (command->cost->bound) {
    case COMMAND_BY_MEMORY:
        members = memory_used() / MEMBER_BYTES_MIN;
        units += arguments > FEW_ARGUMENTS ? members * arguments : members;
        break;
    case COMMAND_BY_ARGUMENTS:
        break;
    case COMMAND_BY_RESULTS:
        units += arguments * (COST_RESULT_MAX / 2 + 1);
        break;
    case COMMAND_BY_GROUP:
        members = arguments >= WHERE_ARGUMENTS ? memory_used() / MEMBER_BYTES_MIN : 0;
        units += members * arguments * CODE_NS / command->cost->unit_ns;
        break;
    case COMMAND_BY_PRODUCT:
        return UINT64_MAX;
    case COMMAND_NEVER_REFUSED:
        return 0;
    }
    return __builtin_mul_overflow(units, (uint64_t)command->cost->unit_ns, &bound_ns) ? UINT64_MAX
                                                                                      : bound_ns;
}
/* Estimated nanoseconds for a request whose entry has a cost. EXEC: including everything queued. */
uint64_t cost_estimate_ns(struct server *server, struct session *session,
                          const struct command *command, const struct request *request);

/* Would it exceed busy-command-limit? If so, the error is written to text. */
enum { COST_TEXT_MAX = 160 };
MUST_CHECK bool cost_is_refused(struct server *server, struct session *session,
                                const struct command *command, const struct request *request,
                                char *text);

#endif
