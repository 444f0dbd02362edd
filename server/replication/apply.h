/* Applying a master's groups to the keys of a replica, in bounded steps.
 *
 *     apply_begin(group's head and payload)
 *     while (apply_step(budget) == APPLY_MORE) the loop turns
 *
 * Nothing expires and nothing rolls over but as the groups say. A group that does not fit the keys is
 * never applied to its end: the copy is then of no use. For lack of memory nothing is lost: the same
 * step can be tried again. */
#ifndef SERVER_APPLY_H
#define SERVER_APPLY_H

#include "server/durability/effect_bytes.h"
#include "server/durability/persistence.h"

enum apply_status {
    APPLY_DONE, /* the group is applied, and recorded */
    APPLY_MORE,
    APPLY_OUT_OF_MEMORY,
    APPLY_IMPOSSIBLE, /* error says why */
};

#ifdef SERVER_TINY
enum { APPLY_BATCH = 3 };
#else
enum { APPLY_BATCH = 256 };
#endif

struct apply {
    struct registry *registry;       /* borrowed, like the next */
    struct persistence *persistence; /* NULL: nothing is recorded */
    bool is_going;                   /* a group is applied in part */
    bool is_decoded;                 /* all its effects are in the batch, or applied */
    bool has_history;                /* one of them changes the history (history.h) */
    struct journal_group_head head;
    const char *payload; /* borrowed until it is done */
    struct effect_decoder decoder;
    struct effect batch[APPLY_BATCH];
    uint32_t batch_count, batch_done;
    uint64_t effect_count; /* of all groups */
    char error[128];
};

void apply_begin(struct apply *apply, const struct journal_group_head *head, const char *payload);
MUST_CHECK enum apply_status apply_step(struct apply *apply, uint64_t budget_ns);
/* Forget the group: the keys are about to be replaced, or the process ends. */
void apply_end(struct apply *apply);

#endif
