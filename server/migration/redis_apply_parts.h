/* Private to redis_apply*.c: what their handlers share. */
#ifndef SERVER_REDIS_APPLY_PARTS_H
#define SERVER_REDIS_APPLY_PARTS_H

#include "server/migration/redis_apply.h"

/* The time of all look-ups: before everything, so that nothing expires or rolls over. */
#define REDIS_APPLY_LONG_AGO (INT64_MIN / 2)

typedef bool redis_apply_handler(struct redis_apply *apply, const struct request *request);

/* Set the error; returns false. */
__attribute__((format(printf, 2, 3))) bool redis_apply_fail(struct redis_apply *apply,
                                                            const char *format, ...);
/* The same about a key of the current database. */
__attribute__((format(printf, 3, 4))) bool
redis_apply_fail_key(struct redis_apply *apply, struct bytes name, const char *format, ...);
/* The same about a member. */
bool redis_apply_fail_member(struct redis_apply *apply, struct bytes name, struct bytes member,
                             const char *why);
/* "ZADD cannot be read": the source and this do not agree about the command. */
bool redis_apply_fail_form(struct redis_apply *apply, const struct request *request);
bool redis_apply_fail_memory(struct redis_apply *apply);

/* Has apply->load done that? false: its error is ours. */
MUST_CHECK bool redis_apply_take_load(struct redis_apply *apply, bool is_fine);

/* Can this be a key here? false: error. */
MUST_CHECK bool redis_apply_check_key(struct redis_apply *apply, struct bytes name);
struct registry_key *redis_apply_find(struct redis_apply *apply, struct bytes name);
/* The key's board; *key NULL: there is none. false: error, it is something else. */
MUST_CHECK bool redis_apply_find_board(struct redis_apply *apply, struct bytes name,
                                       struct registry_key **key);
/* Whatever has this name is gone, also a set. */
void redis_apply_remove(struct redis_apply *apply, struct bytes name);
static inline uint32_t redis_apply_database(const struct redis_apply *apply) {
    return (uint32_t)apply->database;
}
static inline struct redis_names *redis_apply_sets(struct redis_apply *apply) {
    return &apply->sets[apply->database];
}
/* REGISTRY_NO_EXPIRY: none any more. false: error. */
MUST_CHECK bool redis_apply_set_expiry(struct redis_apply *apply, struct bytes name,
                                       int64_t expire_at_ms);
/* Put a member that was looked up. false: error. */
MUST_CHECK bool redis_apply_put(struct redis_apply *apply, struct registry_key *key,
                                const struct board_member *member, uint64_t packed_key);
/* After members were put: drop what is below the CAP, and tell. */
void redis_apply_settle(struct redis_apply *apply, struct registry_key *key, const char *event);
/* After members were removed: tell, and remove the key if its board is empty. */
void redis_apply_end_removal(struct redis_apply *apply, struct registry_key *key,
                             const char *event);

/* Places first .. last of the board in Redis's order, lowest score first, equal ones by their bytes: whole
 * ranks, and, where a group of equal scores is cut, members by name. */
struct redis_selection {
    uint32_t rank, count;
    struct redis_pick {
        struct name member; /* in apply->scratch, or on the board */
        uint64_t key;
    } * picks;
    uint32_t pick_count;
    struct redis_pick one; /* picks, if it is one */
};
/* first <= last < board_count. false: no memory, error. Names are copied if is_copied. */
MUST_CHECK bool redis_apply_select(struct redis_apply *apply, const struct board *board,
                                   uint32_t first, uint32_t last, bool is_copied,
                                   struct redis_selection *selection);
void redis_selection_deinit(struct redis_selection *selection);
/* As Redis reads a score: strtod of the whole text, no blanks in front, not nan. */
MUST_CHECK bool redis_order_parse_score(struct bytes text, double *score);
/* Places *first .. *end - 1 of the board (NULL: there is none) that these words name: as ZRANGE does, with BYSCORE, with
 * BYLEX. The lower end comes first. false: they name none. */
enum redis_span { REDIS_SPAN_PLACES, REDIS_SPAN_SCORES, REDIS_SPAN_NAMES };
MUST_CHECK bool redis_order_find_span(const struct board *board, enum redis_span kind,
                                      struct bytes from, struct bytes to, uint32_t *first,
                                      uint32_t *end);

/* An error, whatever follows. */
redis_apply_handler redis_apply_refuse;
/* redis_apply_zset.c */
redis_apply_handler redis_apply_zadd, redis_apply_zincrby, redis_apply_zrem, redis_apply_zpopmin,
    redis_apply_zpopmax, redis_apply_zremrangebyrank, redis_apply_zremrangebyscore,
    redis_apply_zremrangebylex, redis_apply_zmove, redis_apply_bzmove, redis_apply_zmovemember;
/* redis_apply_store.c */
redis_apply_handler redis_apply_zunionstore, redis_apply_zinterstore, redis_apply_zdiffstore,
    redis_apply_zrangestore;
/* redis_apply_keys.c */
redis_apply_handler redis_apply_del, redis_apply_overwrite, redis_apply_overwrite_pairs,
    redis_apply_msetex, redis_apply_overwrite_set, redis_apply_set_names, redis_apply_smove,
    redis_apply_sort, redis_apply_bitop, redis_apply_rename, redis_apply_copy, redis_apply_move,
    redis_apply_swapdb, redis_apply_flushdb, redis_apply_flushall, redis_apply_expire,
    redis_apply_persist, redis_apply_restore, redis_apply_select_database, redis_apply_geo_store;
/* redis_apply_board.c */
redis_apply_handler redis_apply_effects, redis_apply_state_effects;
/* redis_apply_hash.c */
redis_apply_handler redis_apply_hash, redis_apply_hsetex, redis_apply_hgetdel, redis_apply_publish;

#endif
