/* What a board holds against results: its LIMITS (skiplist/keyspace/limits.h) and its HOLD, for the commands that write
 * results.
 *
 *     if (guarding_applies(&writing)) {
 *         guarding_plan(&writing, &result, &guards, &guarded)   for each result, one of a member at a time
 *         memory for guarding_growth_size(&writing, &guards)
 *         guarding_put(&writing, &result, &guarded)             when the other results are put; cannot fail
 *     }
 *
 * For LIMITS a result counts when its command is done, also if it is not the member's best. What NX and XX leave out does
 * not, nor does an id that came before (ONCE). On a board with a WINDOW the result is the one of the running period.
 *
 * TICKETS are of a command, whatever boards it writes: ticketing.h. */
#ifndef SERVER_GUARDING_H
#define SERVER_GUARDING_H

#include "server/commands/writing.h"
#include "skiplist/keyspace/limits.h"

/* ---- HOLD ----
 *
 * Results that are held (skiplist/keyspace/board_options.h): kept, and not ranked, until somebody has looked at them.
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

enum {
    HELD_MEMBER_MAX = 16,  /* results of a member, at a time */
    HELD_NAME_MAX = 1024,  /* bytes of a member's name */
    HELD_USER_MAX = 64,    /* of the names of users and of addresses, as far as they are kept */
    HELD_WORDS_MAX = 8192, /* bytes of the words of a result, with sizes */
    HELD_WORD_COUNT_MAX = 256,
#ifdef SKIPLIST_TINY
    HELD_COUNT_MAX = 40, /* results of a board */
#else
    HELD_COUNT_MAX = 100000,
#endif
    HELD_BYTES_MAX = 64 * 1024 * 1024,
};

enum { HELD_OVER = 1, HELD_TOP, HELD_LIMIT /* and the limit */ };
const char *guarding_held_reason_name(uint8_t reason);

/* Does the board's HOLD bind who writes? */
static inline bool guarding_has_hold(const struct writing *writing) {
    return __builtin_expect(writing->options->has_hold, 0) && !writing->is_approval &&
           (writing->options->hold.is_for_all || writing->call->session->player != NULL);
}

/* The words of a result: of LB.ADD what is behind the key, without the member. */
struct held_words {
    uint32_t size, count;
    bool is_too_long;
    char at[HELD_WORDS_MAX];
};
void guarding_held_add_word(struct held_words *words, struct bytes word);

/* ---- LIMITS ---- */

struct limited {
    uint8_t size;   /* of the record; 0: the rule keeps none, or the result does not count */
    uint8_t broken; /* the limit that the result breaks, where HOLD keeps it; LIMITS: none */
    char record[LIMITS_RECORD_BYTES_MAX];
};

/* Do the board's LIMITS hold for who writes? */
static inline bool guarding_has_limits(const struct writing *writing) {
    const struct board_options *options = writing_shown_options(writing);
    return __builtin_expect(options->has_limits, 0) && !writing->is_approval &&
           (options->limits.is_for_all || writing->call->session->player != NULL);
}
/* It comes too soon for this limit. Replies the error; false. */
bool guarding_refuse_wait(const struct writing *writing, enum limit limit, int64_t wait_ms);
/* "member 'ann' is given twice ...". Replies the error; false. */
bool guarding_refuse_again(const struct call *call, struct bytes member);

/* ---- both, for who writes ---- */

static inline bool guarding_applies(const struct writing *writing) {
    return guarding_has_limits(writing) || guarding_has_hold(writing);
}

/* A result that the board would take. */
struct guarding_result {
    struct bytes member;
    bool had_result;        /* the member had before as its key */
    bool is_written;        /* something changes, be it the time alone */
    uint64_t before, after; /* keys */
    /* Adds the words of the LB.ADD that writes it, should it be held. */
    void (*put_words)(const void *context, struct held_words *words);
    const void *context;
};
/* What becomes of it. Zeroed at first. */
struct guarded {
    struct limited limited;
    uint8_t held;                   /* why it is held; 0: it is not */
    uint64_t held_before, held_key; /* then: what the member has, and would have */
};
/* Those of a command on a board. Zeroed at first. */
struct guards {
    uint32_t count, held_count;
    size_t names_size;
};

/* May it be, and is it held? false: the error was replied. */
MUST_CHECK bool guarding_plan(const struct writing *writing, const struct guarding_result *result,
                              struct guards *guards, struct guarded *guarded);
/* The bytes that guarding_put may take for all of them. */
size_t guarding_growth_size(const struct writing *writing, const struct guards *guards);
/* Of the result, member, put_words and context count. There is memory for it. */
void guarding_put(struct writing *writing, const struct guarding_result *result,
                  const struct guarded *guarded);

/* ---- what is held, for who looks at it ---- */

struct held {
    uint64_t id, key;
    uint64_t before; /* the member's key when it came; of none, that of all fields 0 */
    int64_t at_us;
    uint8_t reason;
    struct bytes member, user, address, words; /* borrowed until the notes change */
    uint32_t word_count;
};
/* The next word; false: there is none. *words goes on. */
MUST_CHECK bool guarding_held_next_word(struct bytes *words, struct bytes *word);

uint32_t guarding_held_count(const struct registry_key *key);
/* The ids in use are first .. next - 1, though not all of them. */
void guarding_held_range(const struct registry_key *key, uint64_t *first, uint64_t *next);
MUST_CHECK bool guarding_held_find(const struct registry_key *key, uint64_t id, struct held *held);
/* Is this note a held result whose words have HSET, or could be? */
MUST_CHECK bool guarding_held_names_hash(struct bytes name, struct bytes note);
/* The ids of a member's results, the oldest first; their number. guarding_held_find finds each. */
uint32_t guarding_held_find_member(const struct registry_key *key, struct bytes member,
                                   uint64_t ids[HELD_MEMBER_MAX]);
static inline bool guarding_has_held(const struct registry_key *key, struct bytes member) {
    uint64_t ids[HELD_MEMBER_MAX];
    return registry_options(key)->has_hold && guarding_held_find_member(key, member, ids) > 0;
}
/* Bytes that guarding_held_remove may take. */
size_t guarding_held_removal_size(const struct registry_key *key);
/* Take one off, for which there is memory. member: not of a note. */
void guarding_held_remove(struct registry *registry, struct registry_key *key, struct bytes member,
                          uint64_t id);
/* Take all of a member off. false: there were none, or there was no memory. */
bool guarding_held_forget(struct registry *registry, struct registry_key *key, struct bytes member);
/* Bytes that guarding_held_rename may take. */
size_t guarding_held_rename_size(const struct registry_key *key, struct bytes from,
                                 struct bytes to);
/* They become another member's, as many as it may have. There is memory for it. */
void guarding_held_rename(struct registry *registry, struct registry_key *key, struct bytes from,
                          struct bytes to);

#endif
