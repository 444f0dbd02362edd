/* The options of LB.ADD, which other commands with results have, too, and results on boards, all of them or none: of
 * many members on one board (LB.ADD), of one member on many (LB.SUBMIT), and in a room (LB.LEAGUE ADD).
 *
 *     lb_add_results_prepare    plan each, then hashes, the id, and memory: whatever may fail, and changes nothing
 *     lb_add_results_put        each on its board, CAP, tags, fields of hashes; cannot fail
 *     lb_add_results_end        always
 *
 * The result of a member can depend on its current state (an increment may leave its field's range), so all are
 * computed before the first change. If a member is named twice, its second result continues from the first. */
#ifndef SERVER_COMMAND_LB_ADD_H
#define SERVER_COMMAND_LB_ADD_H

#include "server/commands/guarding.h"
#include "server/commands/lb/lb.h"
#include "server/commands/lb/lb_data.h"
#include "server/commands/once.h"
#include "server/commands/ticketing.h"

enum lb_add_operation {
    LB_ADD_UNSAID, /* same as LB_ADD_SET */
    LB_ADD_SET,
    LB_ADD_INCREMENT,
    LB_ADD_BEST,
    LB_ADD_PACKED,
};

enum lb_add_time {
    ADD_TIME_OF_CHANGE, /* now, if a field changes */
    LB_ADD_TIME_GIVEN,  /* AT */
    LB_ADD_TIME_NOW,    /* TOUCH */
    LB_ADD_TIME_KEPT,   /* KEEPTIME */
};

/* One command: its options and the position of its members. */
struct lb_add {
    bool is_new_only;      /* NX */
    bool is_existing_only; /* XX */
    bool is_old_board;     /* NOCREATE: not on a board that is made for it */
    bool with_rank;        /* WITHRANK */
    bool with_strings;     /* STRINGS */
    bool with_held;        /* WITHHELD: reply how many results were held, too */
    bool with_repeat;      /* WITHREPEAT: say whether the id of ONCE came before */
    enum lb_add_operation operation;
    enum lb_add_time time;
    int64_t at_us;
    struct option_uses tags;    /* TAG */
    struct option_uses tickets; /* TICKET */
    struct bytes once_id;       /* ONCE; at NULL: none */
    struct once *once;          /* of it, once that is known to be new; NULL: none */
    struct lb_hset hset;        /* HSET */
    uint32_t first;             /* index of the first member's first value */
    uint32_t value_count;       /* number of values before each member */
    uint32_t member_count;
    uint64_t held_before; /* of a result that is approved: the member's key when it came */
};

/* None of the options. Begin with a copy: clearing that many bytes takes the compiler's code longer. */
extern const struct lb_add lb_add_plain;

/* A member's values, followed by its name. */
static inline const struct bytes *lb_add_values(const struct request *request,
                                                const struct lb_add *add, uint32_t index) {
    return &request->args[add->first + index * (add->value_count + 1)];
}

static inline struct bytes lb_add_name(const struct request *request, const struct lb_add *add,
                                       uint32_t index) {
    return lb_add_values(request, add, index)[add->value_count];
}

/* A registry_judge of its values. */
struct lb_add_of_call {
    const struct call *call;
    const struct lb_add *add;
};
enum decimal_status lb_add_judge(const void *scores, const struct layout *layout);

extern const struct binding lb_add_bindings[];
/* What results have besides members and values: of all who have these bindings. */
#define LB_ADD_SYNTAX                                                                              \
    "operator=[SET | INCR | BEST] time=[AT unix-time-milliseconds:unix-time | TOUCH | KEEPTIME] "  \
    "[TAG tag value]... [TICKET ticket]... [ONCE id] [WITHREPEAT] "                                \
    "[HSET pattern n:integer field_value=(field value)...]"
/* Of LB.ADD and LB.SUBMIT: the key of the only member, if the arguments determine it. */
command_new_key lb_add_new_key;
/* Read the options at add->first, which moves past them. PACKED is none of them here. false: the
 * error was replied. */
MUST_CHECK bool lb_add_read_options(const struct call *call, struct lb_add *add);
/* NOCREATE: is the board there? false: it is not; the error was replied. */
MUST_CHECK bool lb_add_check_board(const struct call *call, const struct lb_add *add,
                                   struct bytes name);
/* Find the values of the only member behind the options. false: the error was replied. */
MUST_CHECK bool lb_add_check_only(const struct call *call, const struct layout *layout,
                                  struct lb_add *add);
/* AT must fit the layout, even if no member is written. false: the error was replied. */
MUST_CHECK bool lb_add_check_at(const struct call *call, const struct layout *layout,
                                const struct lb_add *add);

/* The planned result for one member. */
struct lb_add_step {
    uint64_t key;   /* after the command, if is_there */
    bool is_there;  /* after the command */
    bool was_there; /* before the command; so are had_rank and previous_rank */
    bool is_written;
    bool has_new_fields; /* if it is written: not its time alone changes */
    bool had_rank;
    uint32_t previous_rank;
};

struct lb_result {
    struct writing *writing;
    uint32_t index;             /* of the member in the command */
    bool is_put;                /* on the board, or on its share */
    bool is_new;                /* planned: the member comes to the board by this result */
    struct board_member member; /* of the only one on its board: as planned */
    struct lb_add_step step;
    struct lb_hset_place place; /* of HSET */
    struct guarded guarded;     /* LIMITS and HOLD */
};

struct lb_results {
    const struct call *call;
    const struct lb_add *add;
    struct lb_result *list; /* those of a board one behind the other */
    uint32_t count;
    struct writing_names names; /* where a member may be named twice */
    /* prepare: the first member's values as the fields of this layout, where they do not depend on what it has; NULL:
     * not known. */
    struct lb_add_read {
        const struct layout *layout;
        uint64_t key;
    } read;
    struct guards guards; /* prepare: of the board so far */
    size_t more;          /* bytes that the caller will need, besides */
    struct bytes whole;   /* whose room it is; at NULL: none */
    struct ticketing ticketing;
    uint32_t failed; /* prepare: the result that cannot be; count: it is none of a single one */
    bool is_reserved;
};

/* What is to be known at first. Member by member: most of their bytes are of what few results have. */
static inline void lb_result_init(struct lb_result *result, struct writing *writing,
                                  uint32_t index) {
    result->writing = writing;
    result->index = index;
    result->is_put = false;
    result->is_new = false;
    result->place.key = NULL;
    result->place.is_new = false;
    result->place.expire_at_ms = 0;
    result->guarded.held = 0;
}
static inline void lb_results_init(struct lb_results *results, const struct call *call,
                                   const struct lb_add *add, struct lb_result *list,
                                   uint32_t count) {
    results->call = call;
    results->add = add;
    results->list = list;
    results->count = count;
    results->names.slots = NULL;
    results->read.layout = NULL;
    results->more = 0;
    results->whole.at = NULL;
    results->ticketing.key = NULL;
    results->ticketing.count = 0;
    results->failed = 0;
    results->is_reserved = false;
}

/* false: the error was replied. */
MUST_CHECK bool lb_add_results_prepare(struct lb_results *results);
/* In between, memory is reserved. Then a step says what has become of its result. */
void lb_add_results_put(struct lb_results *results);
/* Only the writings are still to be ended. */
void lb_add_results_end(struct lb_results *results);

/* Write a result that was held, call's request, on a board that is there, as it came at call->now_us. rights: the call of
 * who needs the right to the hash of HSET. before: the member's key at that time. then: called behind the change, while there is memory for more bytes. false:
 * the error was replied, and nothing has changed. */
MUST_CHECK bool lb_add_approve(const struct call *call, const struct call *rights,
                               struct registry_key *key, uint64_t before, size_t more,
                               void (*then)(void *context, struct registry_key *key),
                               void *context);

/* Reply [record, previous rank | nil, 1 | 0] of the only member, as it is after the whole command; 1 if
 * the step was written. step: NULL, if the result came before (ONCE). WITHREPEAT: whether it did, behind that. */
struct lb_writer;
void lb_add_answer_result(const struct lb_writer *writer, const struct lb_add *add,
                          const struct lb_add_step *step);

/* The result came before (ONCE): answer from a board that is as it is, and may not be there or be written
 * to. answer: called with it, or with an empty one of the layout that a new one would get. */
void lb_add_answer_repeated(const struct call *call, struct bytes name, void *context,
                            void (*answer)(void *context, const struct board *board));

#endif
