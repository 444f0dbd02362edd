/* LB.SUBMIT: one result on several boards at once, on all of them or on none.
 *
 *     LB.SUBMIT 3 daily weekly alltime BEST TAG country DE 900 zoe
 *       find or create the boards -> lb_add_results_prepare -> records
 *
 * An error takes new boards back. */
#include <stdio.h>

#include "server/commands/lb/lb_add.h"
#include "server/commands/lb/lb_record.h"
#include "skiplist/lookup.h"

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
    struct lb_result list[BOARDS_MAX];
    struct once once;
};

/* ---- parsing ---- */

/* false: the error was replied. */
static bool lb_submit_parse(const struct call *call, struct submit *submit) {
    int64_t count;
    if (!call_parse_integer(call, call_arg(call, 1), &count)) {
        return false;
    }
    if (count < 1 || count > BOARDS_MAX) {
        return call_refuse_reason(call, "numkeys must be 1..%d", (int)BOARDS_MAX);
    }
    /* A value and the member follow the keys. */
    if (count + FIRST_KEY + 2 > call->request->count) {
        return call_syntax_error(call);
    }
    submit->board_count = (uint32_t)count;
    submit->add.first = FIRST_KEY + submit->board_count;
    if (call_arg_is(call, submit->add.first, "PACKED")) {
        return call_refuse_reason(call,
                                  "LB.SUBMIT takes no PACKED: each board packs keys in its way");
    }
    if (!lb_add_read_options(call, &submit->add)) {
        return false;
    }
    if (submit->add.first + 2 > call->request->count) {
        return call_syntax_error(call);
    }
    submit->add.value_count = call->request->count - submit->add.first - 1;
    return lb_data_hset_check(call, &submit->add.hset, submit->board_count);
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

/* false: the error was replied. */
static bool lb_submit_begin_boards(struct submit *submit) {
    const struct call *call = submit->call;
    const struct lb_add_of_call scores = {.call = call, .add = &submit->add};
    size_t size_before = call->reply->out->size;
    /* What is due happens now: a period that ends may replace another of these keys. */
    for (uint32_t i = 0; i < submit->board_count && submit->board_count > 1; i++) {
        (void)call_find_key(call, lb_submit_name_at(submit, i));
    }
    for (uint32_t i = 0; i < submit->board_count; i++) {
        struct bytes name = lb_submit_name_at(submit, i);
        if (!lb_add_check_board(call, &submit->add, name) ||
            !writing_begin(call, name, &submit->writings[i])) {
            return lb_submit_refuse_for(submit, i, size_before);
        }
        if (!writing_choose(&submit->writings[i], lb_add_judge, &scores)) {
            writing_take_back(&submit->writings[i]);
            return false;
        }
        for (uint32_t j = 0; j < i; j++) {
            if (submit->writings[j].key == submit->writings[i].key) {
                return call_refuse_format(call, "ERR board '%.*s' is given twice",
                                          bytes_shown_size(name, SHOWN_MAX), name.at);
            }
        }
        submit->writings[i].is_only = true;
        submit->begun_count++;
    }
    return true;
}

/* The member on all boards at once, where that was not done for a group of requests (server/loop/lookahead.h). */
static void lb_submit_look_up(const struct submit *submit, struct call *call,
                              struct lookup *lookups) {
    uint32_t count = 0;
    struct bytes member = lb_add_name(call->request, &submit->add, 0);
    for (uint32_t i = 0; i < submit->board_count && call->ahead == NULL; i++) {
        uint64_t key;
        const struct board *board = submit->writings[i].board;
        if (board_count(board) < LOOKUP_BOARD_MIN) {
            continue;
        }
        struct lookup *lookup = &lookups[count];
        lookup_begin(lookup, board, member, true);
        if (lb_add_new_key(call->command, board_layout(board), call->request, call->now_us, &key)) {
            lookup_begin_place(lookup, key);
        }
        lookup->more = count > 0 ? &lookups[count - 1] : NULL;
        count++;
    }
    for (uint32_t i = 0; i < count; i += LOOKUP_GROUP) {
        lookup_finish(&lookups[i], lookup_group_size(count, i));
    }
    if (count > 0) {
        call->ahead = &lookups[count - 1];
    }
}

/* ---- the result ---- */

static void lb_submit_begin_records(const struct submit *submit, const struct board *board,
                                    struct lb_writer *writer) {
    lb_record_begin(submit->call, board,
                    (struct lb_shape){.with_strings = submit->add.with_strings}, writer);
}

static void lb_submit_to_all(struct submit *submit) {
    const struct call *call = submit->call;
    struct lb_results results;
    lb_results_init(&results, call, &submit->add, submit->list, submit->board_count);
    size_t size_before = call->reply->out->size;
    if (!zset_check_member(call, lb_add_name(call->request, &submit->add, 0))) {
        return;
    }
    for (uint32_t i = 0; i < submit->board_count; i++) {
        const struct layout *layout = board_layout(submit->writings[i].board);
        if (!lb_add_check_only(call, layout, &submit->add) ||
            !lb_add_check_at(call, layout, &submit->add)) {
            (void)lb_submit_refuse_for(submit, i, size_before);
            return;
        }
        lb_result_init(&submit->list[i], &submit->writings[i], 0);
    }
    bool is_put = lb_add_results_prepare(&results);
    if (is_put) {
        lb_add_results_put(&results);
    } else if (results.failed < results.count) {
        (void)lb_submit_refuse_for(submit, results.failed, size_before);
    }
    lb_add_results_end(&results);
    if (!is_put) {
        return;
    }
    struct lb_writer writer;
    reply_array(call->reply, submit->board_count);
    lb_submit_begin_records(submit, writing_shown(&submit->writings[0]), &writer);
    for (uint32_t i = 0; i < submit->board_count; i++) {
        lb_record_continue(&writer, writing_shown(&submit->writings[i]));
        lb_add_answer_result(&writer, &submit->add, &submit->list[i].step);
    }
}

/* ---- the command ---- */

static void lb_submit_answer_unchanged(void *context, const struct board *board) {
    const struct submit *submit = context;
    struct lb_writer writer;
    lb_submit_begin_records(submit, board, &writer);
    lb_add_answer_result(&writer, &submit->add, NULL);
}

static void lb_submit_run(struct call *call) {
    struct submit submit;
    struct lookup lookups[BOARDS_MAX];
    submit.call = call;
    submit.begun_count = 0;
    submit.add = lb_add_plain;
    submit.add.with_rank = true;
    submit.add.member_count = 1;
    if (!lb_submit_parse(call, &submit)) {
        return;
    }
    if (submit.add.once_id.at != NULL) {
        enum once_status status =
            once_begin(call, lb_submit_name_at(&submit, 0), submit.add.once_id, &submit.once);
        struct registry_key *key;
        for (uint32_t i = 0; status == ONCE_REPEATED && i < submit.board_count; i++) {
            if (!call_find_kind(call, lb_submit_name_at(&submit, i), REGISTRY_BOARD, &key)) {
                return;
            }
        }
        if (status == ONCE_REPEATED) {
            reply_array(call->reply, submit.board_count);
        }
        for (uint32_t i = 0; status == ONCE_REPEATED && i < submit.board_count; i++) {
            lb_add_answer_repeated(call, lb_submit_name_at(&submit, i), &submit,
                                   lb_submit_answer_unchanged);
        }
        if (status != ONCE_NEW) {
            return;
        }
        submit.add.once = &submit.once;
    }
    if (lb_submit_begin_boards(&submit)) {
        lb_submit_look_up(&submit, call, lookups);
        lb_submit_to_all(&submit);
    }
    for (uint32_t i = 0; i < submit.begun_count; i++) {
        writing_end(&submit.writings[i],
                    submit.add.operation == LB_ADD_INCREMENT ? "zincr" : "zadd");
    }
}

const struct command command_lb_submit = {
    .name = "LB.SUBMIT",
    .syntax = "numkeys:integer key... condition=[NX | XX] [NOCREATE] " LB_ADD_SYNTAX " [STRINGS] "
              "field... member",
    .hidden_syntax = "[WITHRANK]", /* which it replies in any case */
    .bindings = lb_add_bindings,
    .reply = "[@Result]",
    .summary = "Write one result on several boards, on all of them or none; its record, its "
               "previous rank and whether it counts, on each",
    .complexity = "O(m log n) for m boards of n members",
    .flags = COMMAND_WRITE | COMMAND_DENYOOM | COMMAND_FAST | COMMAND_OWN_MEMBER,
    .key_access = "RW access update",
    .member_arg = -1,
    .new_key = lb_add_new_key,
    .run = lb_submit_run,
};
