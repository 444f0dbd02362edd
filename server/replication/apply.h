/* Applying a master's groups to the keys of a replica, in bounded steps.
 *
 *     while (apply_has_room() and a group is there) apply_add(its head and payload)
 *     apply_step(budget)
 *     groups[0 .. group_done - 1] are applied and recorded
 *
 * Short groups are applied together, so that their memory accesses overlap (skiplist/keyspace/effect.h). Each
 * is either applied or not when a step ends, except for one that is long, or for which there was no memory:
 * only that one stays (apply_is_going), the others are added again.
 *
 * Nothing expires and nothing rolls over but as the groups say. A group that does not fit the keys is
 * never applied to its end: the copy is then of no use. For lack of memory nothing is lost: the same
 * step can be tried again. */
#ifndef SERVER_APPLY_H
#define SERVER_APPLY_H

#include "server/durability/effect_bytes.h"
#include "server/durability/persistence.h"

enum apply_status {
    APPLY_DONE, /* all groups are applied, and recorded */
    APPLY_MORE,
    APPLY_OUT_OF_MEMORY,
    APPLY_IMPOSSIBLE, /* error says why */
};

enum {
#ifdef SERVER_TINY
    APPLY_AT_ONCE_SIZE = 40,
#else
    APPLY_AT_ONCE_SIZE = 32 * 1024, /* a group of no more is applied in one step */
#endif
    APPLY_GROUPS_MAX = 256,
    APPLY_SIZE_MAX = 256 * 1024, /* of the payloads of several groups */
};

struct apply_group {
    struct journal_group_head head;
    const char *payload; /* borrowed until it is done */
    uint32_t batch_end;  /* where its effects end in the batch, once they are decoded */
    bool has_history;    /* one of them changes the history (replication.h) */
};

struct apply {
    struct registry *registry;       /* borrowed, like the next */
    struct persistence *persistence; /* NULL: nothing is recorded */
    /* [ group_done: applied and recorded ][ .. group_decoded: the rest of their effects is in the batch ]
     * [ the one that is being decoded ][ .. group_count: not begun ] */
    struct apply_group groups[APPLY_GROUPS_MAX];
    uint32_t group_done, group_decoded, group_count;
    size_t size; /* of the payloads of all groups that are not done */
    bool is_decoding;
    struct effect_decoder decoder;
    struct effect_batch batch;
    char error[128];
};

/* Are there groups to be applied? Behind a step: one is applied in part. */
static inline bool apply_is_going(const struct apply *apply) {
    return apply->group_done < apply->group_count;
}
/* May a group be added? */
static inline bool apply_has_room(const struct apply *apply) {
    return apply->group_count - apply->group_done < APPLY_GROUPS_MAX &&
           apply->size < APPLY_SIZE_MAX;
}
/* Add the group that follows the last one. Those that are done are forgotten. */
void apply_add(struct apply *apply, const struct journal_group_head *head, const char *payload);
/* APPLY_MORE: the budget is spent. In every case the first group_done groups are done. */
MUST_CHECK enum apply_status apply_step(struct apply *apply, uint64_t budget_ns);
/* Forget the groups: the keys are about to be replaced, or the process ends. */
void apply_end(struct apply *apply);

#endif
