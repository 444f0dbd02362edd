/* LB.ADD in two parts: lb_add.c parses the request, lb_add_apply.c applies it. */
#ifndef SERVER_COMMAND_LB_ADD_H
#define SERVER_COMMAND_LB_ADD_H

#include "server/commands/lb/lb.h"
#include "server/commands/writing.h"

enum add_operation {
    ADD_UNSAID, /* same as ADD_SET */
    ADD_SET,
    ADD_INCREMENT,
    ADD_BEST,
    ADD_PACKED,
};

enum add_time {
    ADD_TIME_OF_CHANGE, /* now, if a field changes */
    ADD_TIME_GIVEN,     /* AT */
    ADD_TIME_NOW,       /* TOUCH */
    ADD_TIME_KEPT,      /* KEEPTIME */
};

/* One command: its options and the position of its members. */
struct add {
    bool is_new_only;      /* NX */
    bool is_existing_only; /* XX */
    bool with_rank;        /* WITHRANK */
    enum add_operation operation;
    enum add_time time;
    int64_t at_us;
    uint32_t first;       /* index of the first member's first value */
    uint32_t value_count; /* number of values before each member */
    uint32_t member_count;
};

/* A member's values, followed by its name. */
static inline const struct bytes *add_values(const struct request *request, const struct add *add,
                                             uint32_t index) {
    return &request->args[add->first + index * (add->value_count + 1)];
}

static inline struct bytes add_name(const struct request *request, const struct add *add,
                                    uint32_t index) {
    return add_values(request, add, index)[add->value_count];
}

/* Apply the command to the board and reply. An error leaves the board unchanged. If AT is given,
 * the layout must be able to hold it. */
void add_apply(const struct call *call, struct writing *writing, const struct add *add);

/* Reply that the time does not fit. Returns false. */
bool add_refuse_time(const struct call *call, const struct layout *layout, int64_t time_us);

#endif
