/* LB.SUBMIT: one result on several boards at once, on all of them or on none.
 *
 *     LB.SUBMIT 3 daily weekly alltime BEST TAG country DE 900 zoe
 *       find or create the boards -> plan the result on each -> reserve memory -> put -> records
 *
 * Until the last board is planned nothing has changed, except that new boards are there; an error
 * takes them back. */
#include <stdio.h>

#include "server/commands/lb/lb_add_apply.h"

enum {
    FIRST_KEY = 2,
    BOARDS_MAX = 64, /* so that all is on the stack, and the command is short */
    SHOWN_MAX = 64,  /* bytes of a name shown in an error */
};

struct submit {
    const struct call *call;
    struct lb_add add; /* as an LB.ADD of one member with WITHRANK */
    uint32_t board_count;
    uint32_t begun_count;
    struct writing writings[BOARDS_MAX];
    struct lb_add_step steps[BOARDS_MAX];
};

/* ---- parsing ---- */

static bool lb_submit_read_options(const struct call *call, struct submit *submit) {
    if (call_arg_is(call, submit->add.first, "PACKED")) {
        return call_refuse(call, "ERR LB.SUBMIT takes no PACKED: each board packs keys in its way");
    }
    const char *error = lb_add_read_options(call->request, &submit->add);
    if (error != NULL) {
        return call_refuse(call, error);
    }
    return submit->add.first + 2 <= call->request->count || call_syntax_error(call);
}

/* false: the error was replied. */
static bool lb_submit_parse(const struct call *call, struct submit *submit) {
    int64_t count;
    if (!call_parse_integer(call, call_arg(call, 1), &count)) {
        return false;
    }
    if (count < 1 || count > BOARDS_MAX) {
        return call_refuse_format(call, "ERR numkeys must be 1..%d", (int)BOARDS_MAX);
    }
    /* A value and the member follow the keys. */
    if (count + FIRST_KEY + 2 > call->request->count) {
        return call_syntax_error(call);
    }
    submit->board_count = (uint32_t)count;
    submit->add.first = FIRST_KEY + submit->board_count;
    if (!lb_submit_read_options(call, submit)) {
        return false;
    }
    submit->add.value_count = call->request->count - submit->add.first - 1;
    return true;
}

static struct bytes lb_submit_name_at(const struct submit *submit, uint32_t index) {
    return call_arg(submit->call, FIRST_KEY + index);
}

/* Name the board that refuses in its error. Memory is no board's. */
static bool lb_submit_refuse_for(const struct submit *submit, uint32_t index, size_t size_before) {
    char text[SHOWN_MAX + 16];
    struct bytes name = lb_submit_name_at(submit, index);
    struct reply *reply = submit->call->reply;
    if (strcmp(reply->error_prefix, "OOM") != 0) {
        snprintf(text, sizeof text, " (board '%.*s')", bytes_shown_size(name, SHOWN_MAX), name.at);
        reply_error_extend(reply, size_before, text);
    }
    return false;
}

/* ---- the boards ---- */

static bool lb_submit_is_named_before(const struct submit *submit, uint32_t index) {
    for (uint32_t i = 0; i < index; i++) {
        if (submit->writings[i].key == submit->writings[index].key) {
            return true;
        }
    }
    return false;
}

/* false: the error was replied. */
static bool lb_submit_begin_boards(struct submit *submit) {
    const struct call *call = submit->call;
    size_t size_before = call->reply->out->size;
    /* What is due happens now: a period that ends may replace another of these keys. */
    for (uint32_t i = 0; i < submit->board_count; i++) {
        (void)call_find_key(call, lb_submit_name_at(submit, i));
    }
    for (uint32_t i = 0; i < submit->board_count; i++) {
        struct bytes name = lb_submit_name_at(submit, i);
        if (!writing_begin(call, name, &submit->writings[i])) {
            return lb_submit_refuse_for(submit, i, size_before);
        }
        if (lb_submit_is_named_before(submit, i)) {
            return call_refuse_format(call, "ERR board '%.*s' is given twice",
                                      bytes_shown_size(name, SHOWN_MAX), name.at);
        }
        submit->writings[i].is_only = true;
        submit->begun_count++;
    }
    return true;
}

static bool lb_submit_check_values(const struct submit *submit, uint32_t index) {
    const struct layout *layout = board_layout(submit->writings[index].board);
    struct bytes name = lb_submit_name_at(submit, index);
    if (submit->add.value_count == layout->field_count) {
        return true;
    }
    return call_refuse_format(submit->call, "ERR board '%.*s' takes %u value%s before the member",
                              bytes_shown_size(name, SHOWN_MAX), name.at,
                              (unsigned)layout->field_count, layout->field_count == 1 ? "" : "s");
}

/* ---- planning, and putting ---- */

/* The tags of the result, as those of this board. false: the error was replied. */
static bool lb_submit_read_tags(const struct submit *submit, uint32_t index,
                                struct tag_values *values) {
    return submit->add.tag_count == 0 ||
           lb_add_read_tags(submit->call, &submit->add, FIRST_KEY + submit->board_count,
                            submit->writings[index].board, values);
}

static void lb_submit_look_up(const struct submit *submit, uint32_t index,
                              struct board_member *member) {
    board_look_up(submit->writings[index].board,
                  lb_add_name(submit->call->request, &submit->add, 0), NULL, member);
}

/* false: the error was replied. */
static bool lb_submit_plan(struct submit *submit, uint32_t index) {
    const struct call *call = submit->call;
    const struct writing *writing = &submit->writings[index];
    struct board_member member = {.is_there = false};
    size_t size_before = call->reply->out->size;
    if (!lb_submit_check_values(submit, index) ||
        !zset_check_member(call, lb_add_name(call->request, &submit->add, 0))) {
        return false;
    }
    if (!lb_add_check_at(call, board_layout(writing->board), &submit->add)) {
        return lb_submit_refuse_for(submit, index, size_before);
    }
    lb_submit_look_up(submit, index, &member);
    struct lb_add_step before = lb_add_step_of(writing->board, &submit->add, &member);
    if (!lb_add_plan(writing, &submit->add, lb_add_values(call->request, &submit->add, 0), &before,
                     &submit->steps[index])) {
        return lb_submit_refuse_for(submit, index, size_before);
    }
    if (!member.is_there && submit->steps[index].is_there && writing_room(writing) == 0) {
        writing_refuse_full(call, writing->rules);
        return lb_submit_refuse_for(submit, index, size_before);
    }
    struct tag_values values;
    return lb_submit_read_tags(submit, index, &values) ||
           lb_submit_refuse_for(submit, index, size_before);
}

/* Reserve memory for all boards, so that none fails after another was written. */
static bool lb_submit_reserve(const struct submit *submit) {
    size_t size = 0;
    for (uint32_t i = 0; i < submit->board_count; i++) {
        size +=
            board_growth_size(submit->writings[i].board, 1) +
            lb_add_name(submit->call->request, &submit->add, 0).size +
            (submit->add.tag_count > 0 ? board_tags_growth_size(submit->writings[i].board, 1) : 0);
    }
    return memory_reserve_begin(size) || call_out_of_memory(submit->call);
}

/* As LB.ADD does: lb_add_apply_tag_group. */
static void lb_submit_tag(struct submit *submit, uint32_t index) {
    struct tag_values values;
    struct board_member member;
    bool is_read = lb_submit_read_tags(submit, index, &values);
    CHECK(is_read);
    lb_submit_look_up(submit, index, &member);
    if (member.is_there && !(submit->add.is_new_only && submit->steps[index].was_there)) {
        writing_tag(&submit->writings[index], &member, &values);
    }
}

static void lb_submit_put(struct submit *submit, uint32_t index) {
    struct writing *writing = &submit->writings[index];
    struct board_member member;
    if (submit->steps[index].is_written) {
        lb_submit_look_up(submit, index, &member);
        enum writing_status status = writing_put(writing, &member, submit->steps[index].key, true);
        CHECK(status != WRITING_FAILED);
        submit->steps[index].is_written = status == WRITING_PUT;
    }
    writing_settle(writing);
    if (submit->add.tag_count > 0) {
        lb_submit_tag(submit, index);
    }
}

static void lb_submit_to_all(struct submit *submit) {
    for (uint32_t i = 0; i < submit->board_count; i++) {
        if (!lb_submit_plan(submit, i)) {
            return;
        }
    }
    if (!lb_submit_reserve(submit)) {
        return;
    }
    for (uint32_t i = 0; i < submit->board_count; i++) {
        lb_submit_put(submit, i);
    }
    memory_reserve_end();
    reply_array(submit->call->reply, submit->board_count);
    for (uint32_t i = 0; i < submit->board_count; i++) {
        lb_add_answer_result(submit->call, submit->writings[i].board, &submit->add,
                             &submit->steps[i]);
    }
}

static void lb_submit_run(struct call *call) {
    struct submit submit;
    submit.call = call;
    submit.begun_count = 0;
    submit.add = (struct lb_add){.operation = LB_ADD_UNSAID, .with_rank = true, .member_count = 1};
    if (!lb_submit_parse(call, &submit)) {
        return;
    }
    if (lb_submit_begin_boards(&submit)) {
        lb_submit_to_all(&submit);
    }
    for (uint32_t i = 0; i < submit.begun_count; i++) {
        writing_end(&submit.writings[i],
                    submit.add.operation == LB_ADD_INCREMENT ? "zincr" : "zadd");
    }
}

const struct command command_lb_submit = {
    .name = "LB.SUBMIT",
    .syntax = "numkeys:integer key... condition=[NX | XX] operator=[SET | INCR | BEST] time=[AT "
              "unix-time-milliseconds:unix-time | TOUCH | KEEPTIME] [TAG name value]... [STRINGS] "
              "field... member",
    .summary = "Write one result on several boards, on all of them or none; its record, its "
               "previous rank and whether it counts, on each",
    .complexity = "O(m log n) for m boards of n members",
    .flags = COMMAND_WRITE | COMMAND_DENYOOM | COMMAND_FAST,
    .key_access = "RW access update",
    .run = lb_submit_run,
};
