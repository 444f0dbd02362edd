/* LB.ADD: writes of whole tuples, of single fields, of times, and of keys packed by clients.
 *
 *     LB.ADD board BEST AT 1571819021259 TAG country DE WITHRANK 200 1 zoe 100 * kim
 *       options -> the board, and from it the number of values per member -> lb_add_apply.c */
#include "server/commands/lb/lb_add_apply.h"

enum { FIRST_OPTION = 2 };

/* ---- parsing ---- */

static const char incompatible_operations[] =
    "ERR SET, INCR and BEST options at the same time are not compatible";
static const char incompatible_times[] =
    "ERR AT, TOUCH and KEEPTIME options at the same time are not compatible";

static const char *lb_add_set_operation(struct lb_add *add, enum lb_add_operation operation) {
    bool is_fine = add->operation == LB_ADD_UNSAID || add->operation == operation;
    add->operation = operation;
    return is_fine ? NULL : incompatible_operations;
}

static const char *lb_add_set_time(struct lb_add *add, enum lb_add_time time) {
    bool is_fine = add->time == ADD_TIME_OF_CHANGE || add->time == time;
    add->time = time;
    return is_fine ? NULL : incompatible_times;
}

/* AT and its unix milliseconds. */
static const char *lb_add_read_at(const struct request *request, struct lb_add *add) {
    int64_t at_ms;
    if (add->first == request->count) {
        return "ERR syntax error";
    }
    if (!bytes_parse_i64(request->args[add->first++], &at_ms) ||
        __builtin_mul_overflow(at_ms, 1000, &add->at_us)) {
        return "ERR value is not an integer or out of range";
    }
    return lb_add_set_time(add, LB_ADD_TIME_GIVEN);
}

/* TAG and its two values, which are read when the board is known. */
static const char *lb_add_skip_tag(const struct request *request, struct lb_add *add) {
    if (request->count - add->first < 2) {
        return "ERR syntax error";
    }
    add->first += 2;
    add->tag_count++;
    return NULL;
}

static const char *lb_add_read_once(const struct request *request, struct lb_add *add) {
    if (add->first == request->count || add->once_id.at != NULL) {
        return "ERR syntax error";
    }
    add->once_id = request->args[add->first++];
    return once_is_id(add->once_id) ? NULL : "ERR ONCE takes an id of 1 to 64 bytes";
}

/* Parse the option at add->first and advance past it. is_option: whether it is one. Returns the
 * error. */
static const char *lb_add_read_option(const struct request *request, struct lb_add *add,
                                      bool *is_option) {
    struct bytes word = request->args[add->first];
    *is_option = true;
    add->first++;
    if (bytes_is(word, "NX")) {
        add->is_new_only = true;
    } else if (bytes_is(word, "XX")) {
        add->is_existing_only = true;
    } else if (bytes_is(word, "NOCREATE")) {
        add->is_old_board = true;
    } else if (bytes_is(word, "WITHRANK")) {
        add->with_rank = true;
    } else if (bytes_is(word, "STRINGS")) {
        add->with_strings = true;
    } else if (bytes_is(word, "WITHREPEAT")) {
        add->with_repeat = true;
    } else if (bytes_is(word, "SET")) {
        return lb_add_set_operation(add, LB_ADD_SET);
    } else if (bytes_is(word, "INCR")) {
        return lb_add_set_operation(add, LB_ADD_INCREMENT);
    } else if (bytes_is(word, "BEST")) {
        return lb_add_set_operation(add, LB_ADD_BEST);
    } else if (bytes_is(word, "TOUCH")) {
        return lb_add_set_time(add, LB_ADD_TIME_NOW);
    } else if (bytes_is(word, "KEEPTIME")) {
        return lb_add_set_time(add, LB_ADD_TIME_KEPT);
    } else if (bytes_is(word, "AT")) {
        return lb_add_read_at(request, add);
    } else if (bytes_is(word, "TAG")) {
        return lb_add_skip_tag(request, add);
    } else if (bytes_is(word, "ONCE")) {
        return lb_add_read_once(request, add);
    } else if (bytes_is(word, "HSET")) {
        return lb_hset_read(request, &add->first, &add->hset);
    } else if (bytes_is(word, "PACKED")) {
        return "ERR PACKED must be the only option";
    } else {
        *is_option = false;
        add->first--;
    }
    return NULL;
}

/* Options come before the first value, in any order. */
const char *lb_add_read_options(const struct request *request, struct lb_add *add) {
    add->options = add->first;
    /* No value begins with a letter, and usually this is the first value already. */
    while (add->first < request->count && request->args[add->first].size > 0 &&
           request->args[add->first].at[0] >= 'A') {
        bool is_option;
        const char *error = lb_add_read_option(request, add, &is_option);
        if (error != NULL) {
            return error;
        }
        if (!is_option) {
            break;
        }
    }
    if (add->with_repeat && add->once_id.at == NULL) {
        return "ERR WITHREPEAT needs ONCE";
    }
    return add->is_new_only && add->is_existing_only
               ? "ERR XX and NX options at the same time are not compatible"
               : NULL;
}

bool lb_add_check_board(const struct call *call, const struct lb_add *add, struct bytes name) {
    return !add->is_old_board || call_find_key(call, name) != NULL ||
           call_refuse(call, "ERR no such key");
}

bool lb_add_read_tags(const struct call *call, const struct lb_add *add, struct board *board,
                      struct tag_values *values) {
    struct lb_add again = {.first = add->options};
    values->mask = 0;
    while (again.first < add->first) {
        bool is_option;
        uint32_t at = again.first;
        const char *error = lb_add_read_option(call->request, &again, &is_option);
        CHECK(error == NULL && is_option);
        if (call_arg_is(call, at, "TAG") &&
            !lb_tags_read(call, &board_layout(board)->tags, call_arg(call, at + 1),
                          call_arg(call, at + 2), values)) {
            return false;
        }
    }
    return lb_tags_check_room(call, board, values);
}

static const char *lb_add_read_own_options(const struct request *request, struct lb_add *add) {
    bool is_packed = bytes_is(request->args[FIRST_OPTION], "PACKED");
    add->first = is_packed ? FIRST_OPTION + 1 : FIRST_OPTION;
    add->operation = is_packed ? LB_ADD_PACKED : LB_ADD_UNSAID;
    return is_packed ? NULL : lb_add_read_options(request, add);
}

/* The layout determines the number of values per member. false: the argument count does not fit. */
static bool lb_add_find_members(const struct request *request, const struct layout *layout,
                                struct lb_add *add) {
    uint32_t arg_count = request->count - add->first;
    add->value_count = add->operation == LB_ADD_PACKED ? 1 : layout->field_count;
    add->member_count = arg_count / (add->value_count + 1);
    return arg_count > 0 && arg_count % (add->value_count + 1) == 0;
}

/* Do the arguments fit the board, and does who has counted its values mean such a board? Otherwise names of members
 * that are numbers could be taken for values. */
static bool lb_add_fits(const struct call *call, const struct layout *layout, struct lb_add *add) {
    uint32_t meant = call->session->value_count;
    return lb_add_find_members(call->request, layout, add) &&
           (meant == 0 || meant == add->value_count);
}

static void lb_add_refuse_count(const struct call *call, const struct layout *layout,
                                const struct lb_add *add) {
    char names[LAYOUT_ERROR_MAX];
    size_t size = 0;
    if (add->operation == LB_ADD_PACKED) {
        reply_error(call->reply, "ERR syntax error, each member follows its packed key");
        return;
    }
    for (unsigned i = 0; i < layout->field_count; i++) {
        const char *name = layout->fields[i].name;
        if (size + strlen(name) + 2 > sizeof(names)) {
            break;
        }
        names[size++] = ' ';
        memcpy(names + size, name, strlen(name));
        size += strlen(name);
    }
    reply_error_format(
        call->reply, "ERR syntax error, this board takes %u value%s before each member:%.*s",
        (unsigned)layout->field_count, layout->field_count == 1 ? "" : "s", (int)size, names);
}

bool lb_add_check_only(const struct call *call, const struct layout *layout, struct lb_add *add) {
    if (lb_add_find_members(call->request, layout, add) && add->member_count == 1) {
        return true;
    }
    if (add->member_count > 1) {
        return call_refuse(call, "ERR syntax error, one member is written at a time");
    }
    lb_add_refuse_count(call, layout, add);
    return false;
}

bool lb_add_check_at(const struct call *call, const struct layout *layout,
                     const struct lb_add *add) {
    uint64_t stamped;
    if (add->time != LB_ADD_TIME_GIVEN) {
        return true;
    }
    if (layout->time.bits == 0) {
        return call_refuse(call, "ERR AT is not allowed: this layout has no TIME");
    }
    return layout_stamp(layout, 0, add->at_us, &stamped) == LAYOUT_OK ||
           call_refuse_time(call, layout, add->at_us);
}

/* ---- the command ---- */

/* For prefetching: the key of a request's only member, if the arguments determine it. */
static bool lb_add_new_key(const struct layout *layout, const struct request *request,
                           int64_t now_us, uint64_t *key) {
    struct lb_add add = {.operation = LB_ADD_UNSAID};
    if (request->count < 4 || lb_add_read_own_options(request, &add) != NULL ||
        !lb_add_find_members(request, layout, &add) || add.member_count != 1 ||
        add.operation == LB_ADD_INCREMENT || add.time == LB_ADD_TIME_KEPT) {
        return false;
    }
    const struct bytes *values = &request->args[add.first];
    if (add.operation == LB_ADD_PACKED) {
        return layout_key_parse(layout, values[0], key);
    }
    *key = 0;
    for (unsigned i = 0; i < layout->field_count; i++) {
        const struct layout_field *field = &layout->fields[i];
        size_t mark_size = values[i].size > 0 && values[i].at[0] == '=';
        struct bytes text = {values[i].at + mark_size, values[i].size - mark_size};
        struct decimal value;
        uint64_t ordinal;
        if (layout_field_parse(field, text, &value) != DECIMAL_OK ||
            layout_field_ordinal(field, value, &ordinal) != LAYOUT_OK) {
            return false;
        }
        *key = layout_with_ordinal(layout, *key, i, ordinal);
    }
    return layout_stamp(layout, *key, add.time == LB_ADD_TIME_GIVEN ? add.at_us : now_us, key) ==
           LAYOUT_OK;
}

static enum decimal_status lb_add_judge_member(const struct lb_add_of_call *of, uint32_t index,
                                               const struct layout *layout) {
    enum decimal_status status = DECIMAL_OK;
    for (unsigned i = 0; i < layout->field_count && status == DECIMAL_OK; i++) {
        const struct layout_field *field = &layout->fields[i];
        struct bytes text = lb_add_values(of->call->request, of->add, index)[i];
        size_t mark_size = text.size > 0 && text.at[0] == '=';
        struct decimal value;
        uint64_t ordinal;
        if (text.size == 1 && text.at[0] == '*') {
            continue;
        }
        text = (struct bytes){.at = text.at + mark_size, .size = text.size - mark_size};
        status = layout_field_parse(field, text, &value);
        if (status == DECIMAL_OK &&
            layout_field_add_at(field, layout_field_zero(field), value, of->call->now_us,
                                of->call->now_us, &ordinal) != LAYOUT_OK) {
            status = DECIMAL_OUT_OF_RANGE;
        }
    }
    return status;
}

enum decimal_status lb_add_judge(const void *scores, const struct layout *layout) {
    const struct lb_add_of_call *of = scores;
    enum decimal_status status = DECIMAL_OK;
    if (of->add->operation == LB_ADD_PACKED || of->add->value_count != layout->field_count ||
        (of->add->time == LB_ADD_TIME_GIVEN && layout->time.bits == 0)) {
        return DECIMAL_NOT_A_NUMBER;
    }
    for (uint32_t i = 0; i < of->add->member_count && status == DECIMAL_OK; i++) {
        status = lb_add_judge_member(of, i, layout);
    }
    return status;
}

static void lb_add_run_on_board(const struct call *call, struct writing *writing,
                                struct lb_add *add) {
    const struct lb_add_of_call scores = {.call = call, .add = add};
    if (lb_add_fits(call, board_layout(writing->board), add) &&
        !writing_choose(writing, lb_add_judge, &scores)) {
        return;
    }
    const struct layout *layout = board_layout(writing->board);
    if (!lb_add_fits(call, layout, add)) {
        lb_add_refuse_count(call, layout, add);
    } else if (lb_add_check_at(call, layout, add) &&
               lb_hset_check(call, &add->hset, add->member_count)) {
        lb_add_apply(call, writing, add);
    }
}

/* ---- a result that came before ---- */

struct repeated {
    const struct call *call;
    struct lb_add *add;
};

static void lb_add_answer_ranks(void *context, const struct board *board) {
    const struct repeated *repeated = context;
    const struct layout *layout = board_layout(board);
    if (lb_add_fits(repeated->call, layout, repeated->add)) {
        lb_add_answer_unchanged(repeated->call, board, repeated->add);
    } else {
        lb_add_refuse_count(repeated->call, layout, repeated->add);
    }
}

static void lb_add_run_repeated(const struct call *call, struct lb_add *add) {
    struct repeated repeated = {.call = call, .add = add};
    if (add->with_rank) {
        lb_add_answer_repeated(call, call_arg(call, 1), &repeated, lb_add_answer_ranks);
    } else {
        reply_integer(call->reply, add->with_repeat ? -1 : 0);
    }
}

/* ONCE. false: the command is answered. */
static bool lb_add_is_new(const struct call *call, struct lb_add *add, struct once *once) {
    switch (once_begin(call, call_arg(call, 1), add->once_id, once)) {
    case ONCE_NEW:
        add->once = once;
        return true;
    case ONCE_REPEATED:
        lb_add_run_repeated(call, add);
        return false;
    case ONCE_REFUSED:
        break;
    }
    return false;
}

/* The values depend on the board's layout, so a new board is created first. */
static void lb_add_run(struct call *call) {
    struct lb_add add = {.operation = LB_ADD_UNSAID};
    const char *error = lb_add_read_own_options(call->request, &add);
    struct once once;
    if (error != NULL) {
        reply_error(call->reply, error);
        return;
    }
    if (add.once_id.at != NULL && !lb_add_is_new(call, &add, &once)) {
        return;
    }
    struct writing writing;
    if (lb_add_check_board(call, &add, call_arg(call, 1)) &&
        writing_begin(call, call_arg(call, 1), &writing)) {
        lb_add_run_on_board(call, &writing, &add);
        writing_end(&writing, add.operation == LB_ADD_INCREMENT ? "zincr" : "zadd");
    }
}

const struct command command_lb_add = {
    .name = "LB.ADD",
    .syntax = "key condition=[NX | XX] [NOCREATE] operator=[SET | INCR | BEST] time=[AT "
              "unix-time-milliseconds:unix-time | TOUCH | KEEPTIME] [TAG name value]... [ONCE "
              "id] [WITHREPEAT] " LB_HSET_SYNTAX " [WITHRANK] [STRINGS] "
              "members=<results=(field... member)... | PACKED "
              "packed_member=(packed-key:integer member)...>",
    .reply = "i|WITHRANK=[@Placed]",
    .summary = "Write fields, times and tags of members, all of them or nothing; count those added "
               "or changed",
    .complexity = "O(log n) for each member named, n being the members of the board",
    .flags = COMMAND_WRITE | COMMAND_DENYOOM | COMMAND_FAST,
    .key_access = "RW access update",
    .member_arg = -1,
    .new_key = lb_add_new_key,
    .cost = COST(COMMAND_BY_ARGUMENTS, cost_count_results, 1200, 1, "member named",
                 "several commands of a thousand each"),
    .run = lb_add_run,
};
