/* LB.ADD in two parts: lb_add.c parses the request, lb_add_apply.c applies it. */
#ifndef SERVER_COMMAND_LB_ADD_APPLY_H
#define SERVER_COMMAND_LB_ADD_APPLY_H

#include "server/commands/lb/lb.h"
#include "server/commands/writing.h"

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
    bool with_rank;        /* WITHRANK */
    enum lb_add_operation operation;
    enum lb_add_time time;
    int64_t at_us;
    uint32_t first;       /* index of the first member's first value */
    uint32_t value_count; /* number of values before each member */
    uint32_t member_count;
};

/* A member's values, followed by its name. */
static inline const struct bytes *lb_add_values(const struct request *request,
                                                const struct lb_add *add, uint32_t index) {
    return &request->args[add->first + index * (add->value_count + 1)];
}

static inline struct bytes lb_add_name(const struct request *request, const struct lb_add *add,
                                       uint32_t index) {
    return lb_add_values(request, add, index)[add->value_count];
}

/* Apply the command to the board and reply. An error leaves the board unchanged. If AT is given,
 * the layout must be able to hold it. */
void lb_add_apply(const struct call *call, struct writing *writing, const struct lb_add *add);

#endif
