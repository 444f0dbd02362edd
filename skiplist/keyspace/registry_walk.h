/* Passes over all keys while they change, and the walk, which shows all that they hold. */
#ifndef SKIPLIST_REGISTRY_WALK_H
#define SKIPLIST_REGISTRY_WALK_H

#include "skiplist/keyspace/effect.h"

/* ---- passes ---- */

/* A pass over all keys of some databases, in steps between which anything may change.
 *
 *     registry_pass_begin(registry, &pass, 0, REGISTRY_DATABASES);
 *     while (!registry_pass_is_over(&pass)) {
 *         struct registry_key *key = registry_pass_next(registry, &pass, now_ms);
 *         if (key != NULL)
 *             look at it, change or remove it
 *         let commands run
 *     }
 *     registry_pass_end(registry, &pass);
 *
 * It goes along the list of each database, from its end, so that keys come nearly as they lie in memory. The registry
 * knows the passes that are going on, a walk (registry_walk.h) among them, and moves no key from before to behind where
 * one of them is, nor back:
 *
 *     list       a b c d | e f g | h i        c is removed: d takes its place, g that of d, and i that of g
 *     ahead of   <------>  pass 1             a copy that the walk is to meet goes to where e is, e to where h is, and
 *                <-------------->  the walk   h to the end
 *
 * So a key that is there all the time comes once; a board that begins anew, empty, while it is walked may not come. What gets
 * its name meanwhile comes if registry_pass_has_passed is false for it then. Where another registry takes the place of this one
 * (registry_exchange) the pass begins anew. */

/* Zeroed at first. Private. */
struct registry_pass {
    struct registry_pass *next; /* that is going on */
    bool is_going;
    uint32_t first_database, database, end_database; /* database: where it is */
    uint32_t left[REGISTRY_ALL_DATABASES]; /* the first so many keys of each list are ahead */
};

/* All keys that are there are ahead. It may be going on. */
void registry_pass_begin(struct registry *registry, struct registry_pass *pass,
                         uint32_t first_database, uint32_t end_database);
/* May come twice, or without a beginning. */
void registry_pass_end(struct registry *registry, struct registry_pass *pass);
/* No key is left. */
bool registry_pass_is_over(const struct registry_pass *pass);
/* The next key. NULL: it has expired; or the pass is over. */
struct registry_key *registry_pass_next(const struct registry *registry, struct registry_pass *pass,
                                        int64_t now_ms);
/* Is the key in one of the databases, and will not come? */
static inline bool registry_pass_has_passed(const struct registry_pass *pass,
                                            const struct registry_key *key) {
    return key->database >= pass->first_database && key->database < pass->end_database &&
           key->index >= pass->left[key->database];
}

/* ---- the walk ---- */

/* A walk over every key of a registry, in bounded steps between which anything may change. Used
 * to write a snapshot while commands run.
 *
 *     registry_walk_begin(registry);
 *     while (registry_walk_next(registry, entries, 1000, &piece))
 *         write the entries; let commands run
 *     registry_walk_end(registry);
 *
 * Keys are walked one after another, boards from their best member to their last. A key is ahead of
 * the walk, open, or done, and effect listeners (skiplist/keyspace/effect.h) can ask which: changes
 * to keys ahead need not be recorded, because the walk will include them.
 *
 *     CREATE, FILL   new keys are done at once
 *     RENAME         a key keeps its state; the walk continues in the open board
 *     COPY           a copy of a done key is done, any other is ahead
 *
 * What was returned of the open board, with the changes of it (registry_walk_trim), is at all times its first entries as
 * they are then, in their order: so what is written down as it comes gives the board, and nothing is met twice.
 *
 * Hashes are walked from their last field to the first, in pieces of limited bytes. Every field that
 * is there is returned at least once, with the value it then has, as struct hash_pair.
 *
 * There is one walk at a time. Only changes on the open board cost more. */

struct registry_walk_piece {
    const struct registry_key *key;
    uint32_t count; /* entries; an empty value is one piece with 0 entries */
    uint32_t rank;  /* of the first one, on a board: its tags are those of tags_at */
    bool is_first;  /* the first piece of this key */
    bool is_last;   /* the last piece of this key */
};

/* Start: all keys are ahead. */
void registry_walk_begin(struct registry *registry);
/* The next entries (at most entries_max, which is at least 1), borrowed until the next change, with
 * room for so many of any kind: those of a board are struct board_stored, in rank order; of a hash
 * struct hash_pair. false: all
 * keys are done. */
MUST_CHECK bool registry_walk_next(struct registry *registry, void *entries, uint32_t entries_max,
                                   struct registry_walk_piece *piece);
/* End or abandon the walk. */
void registry_walk_end(struct registry *registry);

/* The walk state of a key, also inside an effect listener; for a removed key, the state it had. */
enum registry_walk_state registry_walk_state(const struct registry *registry,
                                             const struct registry_key *key);
/* Inside an effect listener: what an effect changes of what has been returned, the first entries of the open board
 * among it. false: nothing, as the walk will meet it.
 *
 *     a b c | d e f     PUT of d before the bar: PUT, has_come    PUT of b behind it: TAKE    CUT of b to e: of b and c
 */
struct registry_walk_change {
    struct effect effect;
    bool has_come; /* a PUT: the member was not among them, and its tags are new there, too */
};
MUST_CHECK bool registry_walk_trim(const struct registry *registry, const struct effect *effect,
                                   struct registry_walk_change *change);

#endif
