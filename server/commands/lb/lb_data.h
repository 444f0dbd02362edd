/* DATA pattern [FIELDS n field ...]: what is known of members, in their records.
 *
 *     LB.RANGE board 0 9 DATA profile:* FIELDS 2 name tier
 *       zoe -> profile:zoe -> the hash of this key -> [Zoe, gold]
 *
 * The * of the pattern stands for the member; there is one. %@, at most one, stands for the board's period: the name that
 * its archive has, or will have (lb_hset.h). On a board with a WINDOW it is the period whose result a record shows. With FIELDS the element is an array of their
 * values, nil where there is no such field; without, all of the hash (RESP2: field, value, field,
 * value ...; RESP3: a map). Nil: the key does not exist or holds no hash. */
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
MUST_CHECK bool lb_data_find(const struct call *call, const struct lb_data *data,
                             const struct lb_data_periods *periods, const struct bytes *members,
                             unsigned count, const struct hash **hashes);
/* Is it a member whose record is wanted? One less is, then. hash may be NULL. */
MUST_CHECK bool lb_data_is_named(struct session_names *names, const struct hash *hash);
/* The element of a record. hash may be NULL. */
void lb_data_reply(struct reply *reply, const struct lb_data *data, const struct hash *hash);

#endif
