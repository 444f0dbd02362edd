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
#ifndef SKIPLIST_REGISTRY_PASS_H
#define SKIPLIST_REGISTRY_PASS_H

#include "skiplist/keyspace/registry.h"

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

#endif
