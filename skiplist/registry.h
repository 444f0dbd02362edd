/* The databases: 16 maps from a key to a board, with expiry.
 *
 * A board belongs to exactly one key of one database. A key is expired from the millisecond of its
 * expiry on. Expired keys are removed when they are looked up, and by registry_expire_due. Removed
 * boards are not freed at once: they are buried, and registry_free_step frees them piece by piece.
 * The registry has no clock: now_ms is an argument (unix milliseconds).
 *
 * A board with a PERIOD (skiplist/rules.h) begins anew at the end of its period, to the
 * millisecond:
 *
 *     daily -> [zoe 900, ann 700]            daily             -> [] (or gone, as below)
 *                                   ---->    daily@2026-11-16  -> [zoe 900, ann 700]
 *
 * That is done by registry_roll_due, and by every look-up that could tell that it has not been done
 * yet. A board of LB.CREATE stays, empty; one that came to be by a write is gone until the next
 * one. What the look-ups below cannot know of are whole databases: whoever counts keys or walks
 * over them calls registry_roll_due before. */
#ifndef SKIPLIST_REGISTRY_H
#define SKIPLIST_REGISTRY_H

#include "skiplist/board.h"
#include "skiplist/rules.h"

enum {
    REGISTRY_DATABASES = 16,
    REGISTRY_KEY_MAX = 65536, /* bytes; 1 at least */
    /* The same with what a period's end puts behind it for the archive's name: '@' and a date. */
    REGISTRY_NAME_MAX = REGISTRY_KEY_MAX + 1 + PERIOD_DATE_TEXT_MAX,
};

struct registry;

enum registry_status {
    REGISTRY_OK = 0,
    REGISTRY_OUT_OF_MEMORY,
};

/* Which rules a new board of this name gets; called once per board that comes to be. A copy is
 * kept. */
typedef const struct rules *registry_rules_for(void *context, struct bytes key);

/* Hears of every change of a key, once it is made: of its board's members, of its expiry, that it
 * has come to be, and that it has gone, by its time too. A flushed database is one change, told
 * while its keys are still there: name.at is then NULL. It must not change the registry. */
typedef void registry_key_changed(void *context, uint32_t database, struct bytes name);

/* NULL: no memory. hash_seed: random, secret. */
MUST_CHECK struct registry *registry_create(uint64_t hash_seed, registry_rules_for *rules_for,
                                            void *context);
/* Frees every board at once, which is no effect. May be NULL. */
void registry_destroy(struct registry *registry);
/* Tell changes of keys from now on; NULL: tell nobody. */
void registry_set_listener(struct registry *registry, registry_key_changed *key_changed,
                           void *context);

/* One key of a database. Borrowed; valid until that key is removed, renamed or expired. There may
 * be millions of them: in one piece, and no larger than it has to be. */
struct registry_key {
    struct board board;
    /* From here on the registry's own. */
    union {
        struct {
            uint32_t index;        /* in the database's list */
            uint32_t expiry_place; /* in its heap, or EXPIRY_NOWHERE */
        };
        struct registry_key *next_buried;
    };
    uint32_t name_size : 24;
    uint32_t database : 6;
    uint32_t is_untold : 1;   /* that it has come to be is told with its first member */
    uint32_t is_periodic : 1; /* something follows the name (skiplist/registry_parts.h) */
    char name_at[];
};
#define REGISTRY_NO_EXPIRY INT64_MIN

static inline struct bytes registry_name(const struct registry_key *key) {
    return (struct bytes){.at = key->name_at, .size = key->name_size};
}
/* How the key's board behaves. */
static inline const struct rules *registry_rules(const struct registry_key *key) {
    return rules_of(board_layout(&key->board));
}
/* When the key goes; REGISTRY_NO_EXPIRY: it stays. */
int64_t registry_expiry(const struct registry *registry, const struct registry_key *key);
/* Heap bytes of the key and all that is on its board. */
size_t registry_memory_size(const struct registry_key *key);

/* The key, or NULL. An expired one is removed first (and counted, registry_expired_count), and a
 * board whose period is over begins anew. If there is no memory for that, the key is not there,
 * until a later look-up in another millisecond has it; what makes keys says that there is none. The
 * name is read to the end: whoever hears of changes must not free it (registry_catch_up). */
struct registry_key *registry_find(struct registry *registry, uint32_t database, struct bytes name,
                                   int64_t now_ms);
/* The same without changing anything: the key, if it is there, has not expired, and is in its
 * period. */
const struct registry_key *registry_peek(const struct registry *registry, uint32_t database,
                                         struct bytes name, int64_t now_ms);

/* Staged prefetch of keys, as that of members (skiplist/board.h): each stage for all keys of a
 * group before the next. Nothing is changed.
 *
 *     slots   hash the name, fetch its map slots
 *     place   read the slots, fetch the place in the list
 *     key     read the place, fetch the key
 *     end     compare the name: the key, NULL when it is not there or has expired */
struct registry_prefetch {
    struct bytes name; /* borrowed */
    uint64_t hash;
    struct registry_key *key; /* NULL: not known (yet) */
    uint64_t gone_count;
    uint32_t database;
    uint32_t index;
    bool is_recent; /* the key found last: nothing has to be fetched */
};
void registry_prefetch_slots(const struct registry *registry, uint32_t database, struct bytes name,
                             struct registry_prefetch *state);
void registry_prefetch_place(const struct registry *registry, struct registry_prefetch *state);
void registry_prefetch_key(const struct registry *registry, struct registry_prefetch *state);
const struct registry_key *registry_prefetch_end(const struct registry *registry, int64_t now_ms,
                                                 struct registry_prefetch *state);
/* The next key looked for is likely to be the one that the stages have found. A hint: changes since
 * then do no harm. */
void registry_prefetch_recall(struct registry *registry, const struct registry_prefetch *state);
/* Find, or create an empty board with the rules that rules_for gives the name. is_new says
 * which. NULL: no memory, and nothing changed (but a key of this name may have expired or rolled).
 * A caller that leaves a new board empty takes it back; that it has come to be is told with its
 * first members (registry_tell_members). */
MUST_CHECK struct registry_key *registry_find_or_create(struct registry *registry,
                                                        uint32_t database, struct bytes name,
                                                        int64_t now_ms, bool *is_new);
/* The same for a board that shall behave like this if it is new, and be told at once. A copy of the
 * rules is kept. */
MUST_CHECK struct registry_key *registry_find_or_create_like(struct registry *registry,
                                                             uint32_t database, struct bytes name,
                                                             const struct rules *rules,
                                                             int64_t now_ms, bool *is_new);

/* Put or take off members of a key's board: as board_put_member and board_remove_member, and as an
 * effect (skiplist/effect.h). Nothing but these and registry_remove_range may change a board that
 * is under its key. The caller removes a board that is empty then. */
MUST_CHECK enum board_status registry_put_member(struct registry *registry,
                                                 struct registry_key *key,
                                                 const struct board_member *member,
                                                 uint64_t packed_key);
void registry_take_member(struct registry *registry, struct registry_key *key,
                          const struct board_member *member);
/* Once a command has put or taken all its members: tell that they changed. What the functions below
 * change they tell by themselves. */
void registry_tell_members(struct registry *registry, const struct registry_key *key);

/* Take the key away and bury its board. */
void registry_remove(struct registry *registry, struct registry_key *key);
/* The same for a key that was made just now and stayed empty: nothing has changed. */
void registry_take_back(struct registry *registry, struct registry_key *key);
/* The same for every key of one database, or of all with REGISTRY_DATABASES. O(1) in the number
 * of members. Returns the number of keys. */
uint64_t registry_flush(struct registry *registry, uint32_t database);

/* Rename or move, expiry included; key is then no longer valid; what stood at the destination is
 * removed first. The destination may be the key itself (then nothing happens). Error:
 * REGISTRY_OUT_OF_MEMORY, and nothing changed. */
MUST_CHECK enum registry_status registry_rename(struct registry *registry, struct registry_key *key,
                                                uint32_t to_database, struct bytes to_name,
                                                int64_t now_ms);
/* The same with a copy; rules, times, arrival order and expiry go along.
 * Error: REGISTRY_OUT_OF_MEMORY, and nothing changed. */
MUST_CHECK enum registry_status registry_copy(struct registry *registry,
                                              const struct registry_key *key, uint32_t to_database,
                                              struct bytes to_name, int64_t now_ms);

/* Make an empty board with the rules that rules_for gives this name, to be filled aside and then
 * put under the name, or discarded. false: no memory. */
MUST_CHECK bool registry_create_board(struct registry *registry, struct bytes name, int64_t now_ms,
                                      struct board *board);
/* Free such a board. */
void registry_discard_board(struct registry *registry, struct board *board);
/* Put such a board, which is within its cap, under its name, without an expiry; what stood there is
 * removed. The board is gone then. Error: REGISTRY_OUT_OF_MEMORY, and nothing changed. */
MUST_CHECK enum registry_status registry_put_board(struct registry *registry, uint32_t database,
                                                   struct bytes name, struct board *board,
                                                   int64_t now_ms);

/* The same for boards that are loaded: one that behaves like this to the letter, in the period that
 * the rules say; and put it under a name (REGISTRY_NAME_MAX) with an expiry, or REGISTRY_NO_EXPIRY,
 * whatever its cap. The end of its period is waited for. */
MUST_CHECK bool registry_create_board_like(struct registry *registry, const struct rules *rules,
                                           struct board *board);
MUST_CHECK enum registry_status registry_put_loaded(struct registry *registry, uint32_t database,
                                                    struct bytes name, struct board *board,
                                                    int64_t expire_at_ms);

/* Set the time at which the key goes, or REGISTRY_NO_EXPIRY.
 * Error: REGISTRY_OUT_OF_MEMORY, and nothing changed. */
MUST_CHECK enum registry_status registry_set_expiry(struct registry *registry,
                                                    struct registry_key *key, int64_t expire_at_ms);
/* Remove keys whose time has come, the earliest first, at most keys_max. Returns how many. */
uint32_t registry_expire_due(struct registry *registry, int64_t now_ms, uint32_t keys_max);
/* When the next key expires; REGISTRY_NO_EXPIRY: none will. */
int64_t registry_next_expiry(const struct registry *registry);

/* Let the boards whose periods are over begin anew, the earliest first, at most keys_max. Returns
 * how many; fewer than keys_max: all that can be done is done. */
uint32_t registry_roll_due(struct registry *registry, int64_t now_ms, uint32_t keys_max);
/* Let happen what is due of this name, and tell it, as a look-up does. The name may be gone as soon
 * as a change is told: it is for those who keep names of their own and hear of changes. Where there
 * is no memory for it the name is told all the same. */
void registry_catch_up(struct registry *registry, uint32_t database, struct bytes name,
                       int64_t now_ms);
/* When something happens by itself next: an expiry, or the end of a period. REGISTRY_NO_EXPIRY:
 * never.
 */
int64_t registry_next_due(const struct registry *registry);
/* The same by hand: the members of a key's board become another one, of a name that no key has,
 * with the same layout, times and arrival order, and expire at expire_at_ms (or
 * REGISTRY_NO_EXPIRY); an empty board has no archive. What begins in its place behaves like next.
 * NULL: as the board has behaved; one that came to be by a write is then gone, and so is key.
 *
 * Error: REGISTRY_OUT_OF_MEMORY, and nothing changed. */
MUST_CHECK enum registry_status registry_roll(struct registry *registry, struct registry_key *key,
                                              struct bytes archive, const struct rules *next,
                                              int64_t expire_at_ms, int64_t now_ms);
/* Boards that have begun anew because their period was over, since the start. */
uint64_t registry_rolled_count(const struct registry *registry);

/* Keys of one database that are in the map (an expired key counts until it is removed), and how
 * many of them have an expiry. */
uint32_t registry_count(const struct registry *registry, uint32_t database);
uint32_t registry_expiring_count(const struct registry *registry, uint32_t database);
/* Mean milliseconds left of the keys with an expiry, expired ones counting as negative; 0 without
 * any, and never below. */
int64_t registry_average_ttl_ms(const struct registry *registry, uint32_t database, int64_t now_ms);
/* Keys removed because their time came, since the start. */
uint64_t registry_expired_count(const struct registry *registry);

/* A key drawn evenly at random, from 64 random bits; NULL when the database is empty. Expired
 * ones are removed and drawn again. */
struct registry_key *registry_random(struct registry *registry, uint32_t database,
                                     uint64_t random_bits, int64_t now_ms);

/* SCAN with Redis's guarantee; see board_scan. Expired keys are not visited. visit must not change
 * the registry. */
typedef void registry_visit(void *context, const struct registry_key *key);
uint64_t registry_scan(const struct registry *registry, uint32_t database, uint64_t cursor,
                       uint32_t count, int64_t now_ms, registry_visit *visit, void *context);
/* Every key of one database that has not expired, in no order. */
void registry_each(const struct registry *registry, uint32_t database, int64_t now_ms,
                   registry_visit *visit, void *context);

/* Remove count members of a key's board from rank on (board_remove_range); what remains of them is
 * left to registry_free_step. The caller removes a board that is empty then. */
void registry_remove_range(struct registry *registry, struct registry_key *key, uint32_t rank,
                           uint32_t count);

/* Free up to about work_max members' worth of buried boards, of the maps of flushed databases, and
 * of what remains on boards; false when nothing is left to free. */
bool registry_free_step(struct registry *registry, uint32_t work_max);
/* Buried boards that wait (INFO lazyfree_pending_objects), and those freed since the start. */
uint64_t registry_buried_count(const struct registry *registry);
uint64_t registry_freed_count(const struct registry *registry);

/* Check the maps, the expiry heap, the rules and every board. reason: the first claim that does not
 * hold. */
MUST_CHECK bool registry_validate(const struct registry *registry, const char **reason);

#endif
