/* ZPOPMIN, ZPOPMAX and ZMPOP: remove the members at one end of a board and return them. */
#include "server/clients/session.h"
#include "server/commands/zset/zset_reply.h"
#include "server/dispatch/cost.h"
#include "server/dispatch/options.h"

/* Write the first members of a walk over the board, then remove them: names are borrowed from the
 * board until it changes. If the reply cannot be sent, nothing is removed, except in a transaction,
 * which must run completely. */
static void pop(const struct call *call, struct registry_key *key, bool is_reverse, int64_t count,
                enum zset_shape shape) {
    bool is_best_first = zset_is_best_first(&key->board, is_reverse);
    struct zset_span span = zset_part_of_limit(zset_whole(&key->board), is_best_first, 0, count);
    zset_reply_span(call, &key->board, span, is_best_first, shape);
    if (!call->reply->out->is_broken || call->session->transaction.is_running) {
        zset_remove_span(call, key, span);
    }
}

/* ZPOPMIN key [count]. Without a count the one member is flat in RESP3, too. */
static void pop_one_end(const struct call *call, bool is_reverse) {
    bool has_count = call->request->count == 3;
    int64_t count = 1;
    if (call->request->count > 3) {
        call_syntax_error(call);
        return;
    }
    if (has_count && (!bytes_parse_i64(call_arg(call, 2), &count) || count < 0)) {
        reply_error(call->reply, "ERR value is out of range, must be positive");
        return;
    }
    struct registry_key *key = call_find_key(call, call_arg(call, 1));
    if (key == NULL) {
        reply_array(call->reply, 0);
        return;
    }
    pop(call, key, is_reverse, count, has_count ? zset_shape_with_scores(call) : ZSET_FLAT);
}

static uint64_t least(int64_t count, uint32_t size) {
    return count > size ? size : (uint64_t)count;
}

static uint64_t count_popped(const struct cost_view *view) {
    int64_t count = 1;
    bool is_read =
        view->call->request->count < 3 || bytes_parse_i64(call_arg(view->call, 2), &count);
    return is_read && count >= 0 ? least(count, cost_size(view, 1)) : 0;
}

static const struct command_cost popping_cost = {
    .count = count_popped,
    .unit_ns = 30,
    .unit = "member popped",
    .instead = "fewer of them; `ZREMRANGEBYRANK` if you do not need the members"};

static void zpopmin_run(struct call *call) {
    pop_one_end(call, false);
}

const struct command command_zpopmin = {
    .name = "ZPOPMIN",
    .syntax = "key [count:integer]",
    .summary = "Remove the members with the lowest scores from a board, and return them",
    .complexity = "O(log n + m) for m of the board's n members",
    .group = "sorted-set",
    .flags = COMMAND_WRITE | COMMAND_FAST,
    .cost = &popping_cost,
    .run = zpopmin_run,
};

static void zpopmax_run(struct call *call) {
    pop_one_end(call, true);
}

const struct command command_zpopmax = {
    .name = "ZPOPMAX",
    .syntax = "key [count:integer]",
    .summary = "Remove the members with the highest scores from a board, and return them",
    .complexity = "O(log n + m) for m of the board's n members",
    .group = "sorted-set",
    .flags = COMMAND_WRITE | COMMAND_FAST,
    .cost = &popping_cost,
    .run = zpopmax_run,
};

struct zmpop {
    uint32_t key_count; /* from args[2] on */
    bool is_reverse;    /* MAX */
    int64_t count;
};

/* An integer of at least 1. */
static bool read_positive(const struct call *call, uint32_t index, const char *error,
                          int64_t *value) {
    int64_t read;
    if (!bytes_parse_i64(call_arg(call, index), &read) || read < 1) {
        return call_refuse(call, error);
    }
    *value = read;
    return true;
}

/* COUNT may be given only once. */
static bool read_count(const struct call *call, uint32_t index, void *target) {
    struct zmpop *zmpop = target;
    return zmpop->count > 0
               ? call_syntax_error(call)
               : read_positive(call, index, "ERR count should be greater than 0", &zmpop->count);
}

static const struct option_row zmpop_options[] = {
    {"COUNT", OPTION_READ, 0, read_count},
    {0},
};

/* The arguments after the keys: MIN|MAX [COUNT count]. */
static bool read_zmpop_options(const struct call *call, struct zmpop *zmpop) {
    uint32_t where = 2 + zmpop->key_count;
    zmpop->is_reverse = call_arg_is(call, where, "MAX");
    if (!zmpop->is_reverse && !call_arg_is(call, where, "MIN")) {
        return call_syntax_error(call);
    }
    zmpop->count = 0;
    if (!options_read(call, where + 1, zmpop)) {
        return false;
    }
    zmpop->count = zmpop->count > 0 ? zmpop->count : 1;
    return true;
}

static bool read_zmpop(const struct call *call, struct zmpop *zmpop) {
    int64_t key_count;
    if (!read_positive(call, 1, "ERR numkeys should be greater than 0", &key_count)) {
        return false;
    }
    if (key_count >= (int64_t)call->request->count - 2) {
        return call_syntax_error(call);
    }
    zmpop->key_count = (uint32_t)key_count;
    return read_zmpop_options(call, zmpop);
}

static uint64_t count_zmpop(const struct cost_view *view) {
    struct zmpop zmpop;
    if (!read_zmpop(view->call, &zmpop)) {
        return 0;
    }
    for (uint32_t i = 0; i < zmpop.key_count; i++) {
        uint32_t size = cost_size(view, 2 + i);
        if (size > 0) {
            return i + least(zmpop.count, size);
        }
    }
    return zmpop.key_count;
}

static void zmpop_run(struct call *call) {
    struct zmpop zmpop;
    if (!read_zmpop(call, &zmpop)) {
        return;
    }
    for (uint32_t i = 0; i < zmpop.key_count; i++) {
        struct registry_key *key = call_find_key(call, call_arg(call, 2 + i));
        if (key != NULL && board_count(&key->board) > 0) {
            reply_array(call->reply, 2);
            reply_bulk(call->reply, call_arg(call, 2 + i));
            pop(call, key, zmpop.is_reverse, zmpop.count, ZSET_PAIRS);
            return;
        }
    }
    reply_null_array(call->reply);
}

const struct command command_zmpop = {
    .name = "ZMPOP",
    .syntax = "numkeys:integer key... where=<MIN | MAX> [COUNT count:integer]",
    .options = zmpop_options,
    .summary = "Remove members from the first of several boards that has any, and return them",
    .complexity = "O(k + log n + m) for k keys and m of the board's n members",
    .group = "sorted-set",
    .flags = COMMAND_WRITE,
    .cost =
        &(const struct command_cost){
            .count = count_zmpop,
            .unit_ns = 30,
            .unit = "member popped",
            .instead = "fewer of them; `ZREMRANGEBYRANK` if you do not need the members"},
    .run = zmpop_run,
};
