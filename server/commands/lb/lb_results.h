/* Results on boards, all of them or none: of many members on one board (LB.ADD), of one member on many
 * (LB.SUBMIT), and in the room of a league (LB.LEAGUE ADD).
 *
 *     lb_results_prepare    plan each, then hashes, the id, and memory: whatever may fail, and changes nothing
 *     lb_results_put        each on its board, CAP, tags, fields of hashes; cannot fail
 *     lb_results_end        always
 *
 * The result of a member can depend on its current state (an increment may leave its field's range), so all are
 * computed before the first change. If a member is named twice, its second result continues from the first. */
#ifndef SERVER_COMMAND_LB_RESULTS_H
#define SERVER_COMMAND_LB_RESULTS_H

#include "server/commands/lb/lb_add.h"
#include "server/commands/limiting.h"

struct lb_result {
    struct writing *writing;
    uint32_t index;             /* of the member in the command */
    bool is_put;                /* on the board, or on the share of a WINDOW */
    bool is_new;                /* planned: the member comes to the board by this result */
    struct board_member member; /* of the only one on its board: as planned */
    struct lb_add_step step;
    struct lb_hset_place place; /* of HSET */
    struct limited limited;     /* of LIMITS */
};

struct lb_results {
    const struct call *call;
    const struct lb_add *add;
    struct lb_result
        *list; /* zeroed but for writing and index; those of a board one behind the other */
    uint32_t count;
    /* Where a member may be named twice: a zeroed table of slots, at least 2 * count and a power of 2. */
    uint32_t *slots;
    uint32_t slot_mask;
    size_t more;     /* bytes that the caller will need, besides */
    uint32_t failed; /* prepare: the result that cannot be; count: it is none of a single one */
    bool is_reserved;
};

/* false: the error was replied. */
MUST_CHECK bool lb_results_prepare(struct lb_results *results);
/* In between, memory is reserved. Then a step says what has become of its result. */
void lb_results_put(struct lb_results *results);
/* Only the writings are still to be ended. */
void lb_results_end(struct lb_results *results);

#endif
