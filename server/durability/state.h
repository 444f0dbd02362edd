/* State of persistence that other modules may read: the only header of this folder that everyone
 * may include. */
#ifndef SERVER_STATE_H
#define SERVER_STATE_H

#include <stdbool.h>
#include <stdint.h>

struct durability_state {
    uint64_t change_count; /* changes of keys, for `save` points */
    /* Effects so far; lets a session tell its own changes from those of others. */
    uint64_t effect_count;
    /* Loading is in progress: only COMMAND_LOADING commands run, and expired keys and ended periods
     * wait. */
    bool is_loading;
    /* The error for refused writes, "MISCONF ..."; borrowed; NULL: writes are allowed. */
    const char *write_refusal;
    /* There was a time in which changes had no numbers, as the journal was off and nobody wanted the
     * groups: the number of the last group does not say what the keys are. Cleared where it does
     * from here on, as long as groups are recorded. */
    bool has_gap;
    /* A group, or one of linked groups, is applied in part: no walk ends, as a file holds groups as
     * a whole. */
    bool is_walk_held;
};

#endif
