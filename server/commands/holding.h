/* Results that are held (HOLD, skiplist/keyspace/board_options.h): kept, and not ranked, until somebody has looked at them.
 *
 * A held result is the words of the LB.ADD that would write it, and who sent it from where, when, and why it is held. So
 * LB.APPROVE writes it as it would have been written, with the time at which it came: an increment is added, and a result
 * that is not the best changes nothing.
 *
 *     notes of the board itself, by names that begin with a zero byte:
 *       0 h             first, next, count, bytes      ids of the oldest and of the next one, ...
 *       0 r id          a held result
 *       0 m member      ids of this member's, the oldest first
 *
 * Ids are numbers in the order in which results came. */
#ifndef SERVER_HOLDING_H
#define SERVER_HOLDING_H

#include "server/commands/writing.h"
#include "skiplist/keyspace/limits.h"

enum {
    HOLDING_MEMBER_MAX = 16,  /* results of a member, at a time */
    HOLDING_NAME_MAX = 1024,  /* bytes of a member's name */
    HOLDING_USER_MAX = 64,    /* of the names of users and of addresses, as far as they are kept */
    HOLDING_WORDS_MAX = 8192, /* bytes of the words of a result, with sizes */
    HOLDING_WORD_COUNT_MAX = 256,
#ifdef SKIPLIST_TINY
    HOLDING_COUNT_MAX = 40, /* results of a board */
#else
    HOLDING_COUNT_MAX = 100000,
#endif
    HOLDING_BYTES_MAX = 64 * 1024 * 1024,
};

enum { HOLDING_OVER = 1, HOLDING_TOP, HOLDING_LIMIT /* and the limit */ };
const char *holding_reason_name(uint8_t reason);

/* Does the board's HOLD bind who writes? */
static inline bool holding_applies(const struct writing *writing) {
    return __builtin_expect(writing->options->has_hold, 0) && !writing->is_approval &&
           (writing->options->hold.is_for_all || writing->call->session->player != NULL);
}
/* Why a result is held that gives a member this key: OVER, TOP; 0: it is not. was_there: before is the key that the
 * member has. */
uint8_t holding_judge(const struct writing *writing, bool was_there, uint64_t before,
                      uint64_t after);

/* The words of a result: of LB.ADD what is behind the key, without the member. */
struct holding_words {
    uint32_t size, count;
    bool is_too_long;
    char at[HOLDING_WORDS_MAX];
};
void holding_add_word(struct holding_words *words, struct bytes word);

/* Is there room for it, besides so many others of other members? false: the error was replied. */
MUST_CHECK bool holding_check(const struct writing *writing, struct bytes member,
                              const struct holding_words *words, uint32_t others);
/* The bytes that holding_put may take for so many results. */
size_t holding_growth_size(const struct writing *writing, uint32_t count);
/* before: the key that the member has; key: what it would have. There is memory for it. */
void holding_put(struct writing *writing, struct bytes member, uint64_t before, uint64_t key,
                 uint8_t reason, const struct holding_words *words);

/* ---- what is held ---- */

struct held {
    uint64_t id, key;
    uint64_t before; /* the member's key when it came; of none, that of all fields 0 */
    int64_t at_us;
    uint8_t reason;
    struct bytes member, user, address, words; /* borrowed until the notes change */
    uint32_t word_count;
};
/* The next word; false: there is none. *words goes on. */
MUST_CHECK bool holding_next_word(struct bytes *words, struct bytes *word);

uint32_t holding_count(const struct registry_key *key);
/* The ids in use are first .. next - 1, though not all of them. */
void holding_range(const struct registry_key *key, uint64_t *first, uint64_t *next);
MUST_CHECK bool holding_find(const struct registry_key *key, uint64_t id, struct held *held);
/* Is this note a held result whose words have HSET, or could be? */
MUST_CHECK bool holding_names_hash(struct bytes name, struct bytes note);
/* The ids of a member's results, the oldest first; their number. holding_find finds each. */
uint32_t holding_find_member(const struct registry_key *key, struct bytes member,
                             uint64_t ids[HOLDING_MEMBER_MAX]);
static inline bool holding_has(const struct registry_key *key, struct bytes member) {
    uint64_t ids[HOLDING_MEMBER_MAX];
    return registry_options(key)->has_hold && holding_find_member(key, member, ids) > 0;
}
/* Bytes that holding_remove may take. */
size_t holding_removal_size(const struct registry_key *key);
/* Take one off, for which there is memory. member: not of a note. */
void holding_remove(struct registry *registry, struct registry_key *key, struct bytes member,
                    uint64_t id);
/* Take all of a member off. false: there were none, or there was no memory. */
bool holding_forget(struct registry *registry, struct registry_key *key, struct bytes member);
/* Bytes that holding_rename may take. */
size_t holding_rename_size(const struct registry_key *key, struct bytes from, struct bytes to);
/* They become another member's, as many as it may have. There is memory for it. */
void holding_rename(struct registry *registry, struct registry_key *key, struct bytes from,
                    struct bytes to);

#endif
