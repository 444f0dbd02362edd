/* LB.ADD's two halves: command_lb_add.c reads what is asked for, command_lb_add_apply.c does it. */
#ifndef SERVER_COMMAND_LB_ADD_H
#define SERVER_COMMAND_LB_ADD_H

#include "server/command_lb.h"
#include "server/writing.h"

enum add_operation {
    ADD_UNSAID, /* as ADD_SET */
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

/* One command: its options, and where its members are. */
struct add {
    bool is_new_only;      /* NX */
    bool is_existing_only; /* XX */
    bool with_rank;        /* WITHRANK */
    enum add_operation operation;
    enum add_time time;
    int64_t at_us;
    uint32_t first;       /* index of the first member's first value */
    uint32_t value_count; /* values before each member */
    uint32_t member_count;
};

/* A member's values, and behind them its name. */
static inline const struct bytes *add_values(const struct request *request, const struct add *add,
                                             uint32_t index) {
    return &request->args[add->first + index * (add->value_count + 1)];
}

static inline struct bytes add_name(const struct request *request, const struct add *add,
                                    uint32_t index) {
    return add_values(request, add, index)[add->value_count];
}

/* Apply the command to the board and answer it; an error leaves the board as it was. Where AT is
 * given, the layout can hold it. */
void add_apply(const struct call *call, struct writing *writing, const struct add *add);

/* Answer that a time does not fit; returns false. */
bool add_refuse_time(const struct call *call, const struct layout *layout, int64_t time_us);

#endif
