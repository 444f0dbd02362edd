/* Hashes of members, whose keys are patterns: records show them (DATA), and results set fields of them (HSET).
 *
 *     LB.RANGE board 0 9 DATA profile:* FIELDS 2 name tier
 *       zoe -> profile:zoe -> the hash of this key -> [Zoe, gold]
 *     LB.ADD laps BEST HSET run:%:* 2 replay r/77 car 9ff 81.046 ann
 *       -> run:laps:ann -> replay r/77, car 9ff, if 81.046 is better than what ann had
 *
 * The * of a pattern stands for the member; there is one. %@, at most one, stands for the board's period: the name that
 * its archive has, or will have, so that each period has its own hash. On a board with a WINDOW DATA takes the period
 * whose result a record shows. In HSET a % alone is the board's name.
 *
 * DATA: with FIELDS the element is an array of their values, nil where there is no such field; without, all of the hash
 * (RESP2: field, value, field, value ...; RESP3: a map). Nil: the key does not exist or holds no hash.
 *
 * In Redis and Valkey the hashes are the host's, and server/module/host_keyspace.c takes the place of lb_data_keys.c. */
#ifndef SERVER_COMMAND_LB_DATA_H
#define SERVER_COMMAND_LB_DATA_H

#include "server/dispatch/cost.h"
#include "server/dispatch/syntax.h"

enum {
    LB_DATA_GROUP = 16, /* members at a time */
    /* A look-up takes as long as so many records: for the cost of a command. */
    LB_DATA_RECORDS = 4,
    LB_DATA_NAME_MAX =
        1024, /* bytes of a name that are looked at, so that long ones take no longer */
};

/* The options as given; zeroed: not. */
struct lb_data {
    struct bytes pattern;
    struct option_values fields; /* at NULL: all */
};

#define LB_DATA_SYNTAX "[DATA pattern] [FIELDS n:integer field...]"
binding_read lb_data_check_pattern;
/* Has the pattern one *? false: the error was replied. */
MUST_CHECK bool lb_data_check_star(const struct call *call, struct bytes pattern);
/* Call after the options were read. false: FIELDS without DATA; the error was replied. */
MUST_CHECK static inline bool lb_data_check(const struct call *call, const struct lb_data *data) {
    return data->fields.at == NULL || data->pattern.at != NULL ||
           call_refuse_reason(call, "FIELDS needs DATA pattern");
}

static inline bool lb_data_is_asked(const struct lb_data *data) {
    return data->pattern.at != NULL;
}
/* The work of count records of the command's board. */
uint64_t lb_data_work(const struct cost_view *view, const struct lb_data *data, uint64_t count);

/* What %@ stands for in each record of a group: the board's name, and what is behind it. */
struct lb_data_periods {
    struct bytes board;
    struct bytes suffixes[LB_DATA_GROUP];
    char texts[LB_DATA_GROUP][REGISTRY_SUFFIX_MAX];
};
/* Is %@ in the pattern? */
bool lb_data_names_period(struct bytes pattern);
/* For the records of members who have these keys on the board of call_arg(call, 1). */
void lb_data_find_periods(const struct call *call, const struct bytes *members,
                          const uint64_t *keys, unsigned count, struct lb_data_periods *periods);

/* Write the key of a member's hash: lb_data_key_size bytes at the most. board, suffix: of %@. Returns where it ends. */
static inline size_t lb_data_key_size(struct bytes pattern, struct bytes member, struct bytes board,
                                      struct bytes suffix) {
    return pattern.size + member.size + board.size + suffix.size;
}
char *lb_data_print_key(struct bytes pattern, struct bytes member, struct bytes board,
                        struct bytes suffix, char *out);
/* The hashes of count members, at most LB_DATA_GROUP; NULL: none. Their waits for memory overlap.
 * Valid until the next change. false: no memory. */
MUST_CHECK bool lb_data_keys_find_hashes(const struct call *call, const struct lb_data *data,
                                         const struct lb_data_periods *periods,
                                         const struct bytes *members, unsigned count,
                                         const struct hash **hashes);
/* Is it a member whose record is wanted? One less is, then. hash may be NULL. */
MUST_CHECK bool lb_data_is_named(struct session_names *names, const struct hash *hash);
/* The element of a record. hash may be NULL. */
void lb_data_reply(struct reply *reply, const struct lb_data *data, const struct hash *hash);

/* ---- HSET pattern n field value ... ----
 *
 *     lb_data_hset_check                        once the request is parsed
 *     lb_data_hset_begin                        of each result, without a place: the right to the hash
 *     lb_data_hset_begin                        for each hash, before the first change
 *     memory_reserve_begin of lb_data_keys_growth_size of all
 *     change the boards
 *     lb_data_keys_put                          of those whose result counts
 *     lb_data_keys_end                          for each hash, also behind an error */

enum {
    LB_HSET_FIELDS_MAX = 1024,           /* of all members together */
    LB_HSET_SIZE_MAX = 64 * 1024 * 1024, /* bytes of these */
};

/* The option as given; zeroed: not. */
struct lb_hset {
    struct bytes pattern;
    const struct bytes *args; /* field, value, field, value, ... */
    uint32_t count;           /* fields */
};

/* One member's hash. Zeroed: none. */
struct lb_hset_place {
    void *key;
    bool is_new;
    int64_t expire_at_ms; /* %@: of a new one, when the archive of its period goes; 0: never */
};

static inline bool lb_data_hset_is_asked(const struct lb_hset *hset) {
    return hset->pattern.at != NULL;
}
/* Read the option's arguments, which begin at index. false: the error was replied. */
MUST_CHECK bool lb_data_hset_read(const struct call *call, uint32_t index, struct lb_hset *hset);
/* Is the pattern one, and are that not too many fields for so many members, or boards? false: the error
 * was replied. */
MUST_CHECK bool lb_data_hset_check(const struct call *call, const struct lb_hset *hset,
                                   uint64_t times);
/* Is it another key for each board? */
bool lb_data_hset_names_board(const struct lb_hset *hset);
/* And for each of its periods? */
bool lb_data_hset_names_period(const struct lb_hset *hset);

/* Find or make the hash of a member of this board. place NULL: only say whether its name can be a key, and the user may write to
 * that. false: the error was replied. */
MUST_CHECK bool lb_data_hset_begin(const struct call *call, const struct lb_hset *hset,
                                   const struct registry_key *board, struct bytes member,
                                   struct lb_hset_place *place);

/* ---- of lb_data_keys.c, like lb_data_keys_find_hashes ---- */

/* The same for a name that is given, and allowed. */
MUST_CHECK bool lb_data_keys_open(const struct call *call, const struct lb_hset *hset,
                                  struct bytes name, struct lb_hset_place *place);
/* Bytes that lb_data_keys_put may allocate. */
size_t lb_data_keys_growth_size(const struct lb_hset *hset, const struct lb_hset_place *place);
void lb_data_keys_put(const struct call *call, const struct lb_hset *hset,
                      const struct lb_hset_place *place);
/* A hash that was made and got no fields is removed. */
void lb_data_keys_end(const struct call *call, const struct lb_hset_place *place);

#endif
