/* ZPOPMIN, ZPOPMAX and ZMPOP: remove the members at one end of a board and return them. BZPOPMIN,
 * BZPOPMAX and BZMPOP: the same, but if there are none, wait for them. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "server/commands/writing.h"
#include "server/dispatch/syntax.h"

/* Write the first members of a walk over the board, then remove them: names are borrowed from the
 * board until it changes. If the reply cannot be sent, nothing is removed, except in a transaction,
 * which must run completely. */
static void zset_pop_pop(const struct call *call, struct registry_key *key, bool is_reverse,
                         int64_t count, enum zset_shape shape) {
    bool is_best_first = zset_is_best_first(&key->board, is_reverse);
    struct zset_span span = zset_part_of_limit(zset_whole(&key->board), is_best_first, 0, count);
    zset_reply_span(call, &key->board, span, is_best_first, shape);
    if (!call->reply->out->is_broken || call->session->transaction.is_running) {
        zset_remove_span(call, key, span, is_reverse ? "zpopmax" : "zpopmin");
    }
}

/* ZPOPMIN key [count]. Without a count the one member is flat in RESP3, too. */
static void pop_run(struct call *call) {
    bool is_reverse = *(const bool *)call->command->variant;
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
    struct registry_key *key;
    if (!call_find_kind(call, call_arg(call, 1), REGISTRY_BOARD, &key)) {
        return;
    }
    if (key == NULL) {
        reply_array(call->reply, 0);
        return;
    }
    if (writing_refuses(call, registry_options(key), BOARD_WRITE_WHOLE)) {
        return;
    }
    zset_pop_pop(call, key, is_reverse, count,
                 has_count ? zset_shape_with_scores(call) : ZSET_FLAT);
}

static uint64_t zset_pop_least(int64_t count, uint32_t size) {
    return count > size ? size : (uint64_t)count;
}

static uint64_t zset_pop_count_popped(const struct cost_view *view) {
    int64_t count = 1;
    bool is_read =
        view->call->request->count < 3 || bytes_parse_i64(call_arg(view->call, 2), &count);
    return is_read && count >= 0 ? zset_pop_least(count, cost_size(view, 1)) : 0;
}

static const struct command_cost popping_cost =
    COST_ROW(COMMAND_BY_MEMORY, zset_pop_count_popped, 80, 0, "member popped",
             "fewer of them; `ZREMRANGEBYRANK` if you do not need the members");

#define POP_ENTRY(word, what, ...)                                                                 \
    {                                                                                              \
        .name = word, .syntax = "key [count:integer]",                                             \
        .reply = "[member:s score:n ...]|[[member:s score:n]]", .summary = what,                   \
        .complexity = "O(log n + m) for m of the board's n members",                               \
        .flags = COMMAND_WRITE | COMMAND_FAST, .key_access = "RW access delete",                   \
        .cost = &popping_cost, .variant = &(const bool){__VA_ARGS__}, .run = pop_run               \
    }

const struct command command_zpopmin = POP_ENTRY(
    "ZPOPMIN", "Remove the members with the lowest scores from a board, and return them", false);
const struct command command_zpopmax = POP_ENTRY(
    "ZPOPMAX", "Remove the members with the highest scores from a board, and return them", true);

bool zset_pop_read_positive(const struct call *call, uint32_t index, const char *error,
                            int64_t *value) {
    int64_t read;
    if (!bytes_parse_i64(call_arg(call, index), &read) || read < 1) {
        return call_refuse(call, error);
    }
    *value = read;
    return true;
}

static bool zset_pop_check_key_count(const struct call *call, uint32_t index, void *target) {
    int64_t key_count;
    (void)target;
    return zset_pop_read_positive(call, index, "ERR numkeys should be greater than 0", &key_count);
}

static bool zset_pop_read_count(const struct call *call, uint32_t index, void *target) {
    return zset_pop_read_positive(call, index, "ERR count should be greater than 0",
                                  &((struct zset_taking *)target)->count);
}

const struct binding zset_taking_bindings[] = {
    {"numkeys", .read = zset_pop_check_key_count},
    {BIND("key", struct zset_taking, keys)},
    {BIND("where", struct zset_taking, where)},
    {"COUNT", .repeat = BINDING_ONCE, .read = zset_pop_read_count},
    {0},
};

static uint64_t zset_pop_count_zmpop(const struct cost_view *view) {
    struct zset_taking taking = {.count = 0};
    if (!syntax_read(view->call, &taking)) {
        return 0;
    }
    for (uint32_t i = 0; i < taking.keys.count; i++) {
        uint32_t size = cost_size(view, (uint32_t)view->call->command->key_count_arg + 1 + i);
        if (size > 0) {
            return i + zset_pop_least(taking.count > 0 ? taking.count : 1, size);
        }
    }
    return taking.keys.count;
}

/* *found: the first of the keys that has members; NULL: none has. false: one before it holds no
 * board, or it takes no writes; the error was replied. An empty one may be waited for until it takes some. */
static bool zset_pop_find_filled(const struct call *call, struct option_values keys,
                                 struct registry_key **found) {
    *found = NULL;
    for (uint32_t i = 0; i < keys.count; i++) {
        struct registry_key *key;
        if (!call_find_kind(call, keys.at[i], REGISTRY_BOARD, &key)) {
            return false;
        }
        /* Or one from which nothing can ever be popped, whatever comes. */
        if (key != NULL && (board_count(&key->board) > 0 ||
                            board_options_refusal_lasts(board_options_refuse(
                                registry_options(key), BOARD_WRITE_WHOLE, call->now_ms)))) {
            *found = key;
            return !writing_refuses(call, registry_options(key), BOARD_WRITE_WHOLE);
        }
    }
    return true;
}

static void zset_pop_reply_zmpop(const struct call *call, struct registry_key *key, bool is_reverse,
                                 int64_t count) {
    reply_array(call->reply, 2);
    reply_bulk(call->reply, registry_name(key));
    zset_pop_pop(call, key, is_reverse, count, ZSET_PAIRS);
}

/* ---- BZPOPMIN BZPOPMAX BZMPOP ---- */

/* Seconds as strtold reads them, as in Redis, rounded up to milliseconds. *due_ms is
 * REGISTRY_NO_EXPIRY for 0. */
bool zset_pop_read_timeout(const struct call *call, struct bytes text, int64_t *due_ms) {
    enum { TEXT_MAX = 5 * 1024 };
    char copy[TEXT_MAX];
    char *end = copy;
    long double seconds = 0;
    errno = 0;
    if (text.size > 0 && text.size < sizeof copy && strchr(" \t\n\v\f\r", text.at[0]) == NULL) {
        memcpy(copy, text.at, text.size);
        copy[text.size] = '\0';
        seconds = strtold(copy, &end);
    }
    if (end == copy || end != copy + text.size || errno != 0 || isnan(seconds)) {
        return call_refuse(call, "ERR timeout is not a float or out of range");
    }
    long double exact_ms = seconds * 1000;
    /* To Redis, what does not fit its integers is negative. */
    if (exact_ms <= -1 || exact_ms >= (long double)INT64_MAX) {
        return call_refuse(call, "ERR timeout is negative");
    }
    int64_t wait_ms = (int64_t)exact_ms;
    wait_ms += exact_ms > (long double)wait_ms;
    if (wait_ms == 0) {
        *due_ms = REGISTRY_NO_EXPIRY;
    } else if (__builtin_add_overflow(call->server->clock.monotonic_ms, wait_ms, due_ms)) {
        *due_ms = INT64_MAX;
    }
    return true;
}

void zset_pop_wait_for(const struct call *call, struct option_values keys, int64_t due_ms,
                       bool is_reverse, int64_t count) {
    struct session *session = call->session;
    if (session->transaction.is_running) {
        reply_null_array(call->reply);
        return;
    }
    session->wait.command = call->command;
    session->wait.is_silent = call->reply->is_silent;
    session->wait.is_reverse = is_reverse;
    session->wait.count = count;
    if (!wait_begin(&call->server->waits, session, session->database, keys.at, keys.count,
                    due_ms)) {
        call_out_of_memory(call);
    }
    call->server->has_news = true;
}

/* key, member, score: not nested. */
static void zset_pop_reply_bzpop(const struct call *call, struct registry_key *key,
                                 bool is_reverse) {
    bool is_best_first = zset_is_best_first(&key->board, is_reverse);
    struct zset_span span = zset_part_of_limit(zset_whole(&key->board), is_best_first, 0, 1);
    struct board_stored entry = board_at(&key->board, span.rank);
    reply_array(call->reply, 3);
    reply_bulk(call->reply, registry_name(key));
    zset_reply_entry(call, &key->board, &entry, ZSET_FLAT);
    if (!call->reply->out->is_broken || call->session->transaction.is_running) {
        zset_remove_span(call, key, span, is_reverse ? "zpopmax" : "zpopmin");
    }
}

static void bzpop_run(struct call *call) {
    bool is_reverse = *(const bool *)call->command->variant;
    uint32_t timeout_at = call->request->count - 1;
    const struct option_values keys = {.at = &call->request->args[1], .count = timeout_at - 1};
    int64_t due_ms;
    struct registry_key *key;
    if (!zset_pop_read_timeout(call, call_arg(call, timeout_at), &due_ms) ||
        !zset_pop_find_filled(call, keys, &key)) {
        return;
    }
    if (key != NULL) {
        zset_pop_reply_bzpop(call, key, is_reverse);
    } else {
        zset_pop_wait_for(call, keys, due_ms, is_reverse, 1);
    }
}

static void zset_pop_bzpop_serve(const struct call *call, struct registry_key *key) {
    if (!writing_refuses(call, registry_options(key), BOARD_WRITE_WHOLE)) {
        zset_pop_reply_bzpop(call, key, call->session->wait.is_reverse);
    }
}

static uint64_t zset_pop_count_waited_for(const struct cost_view *view) {
    return view->call->request->count - 2;
}

static const struct command_cost waiting_cost =
    COST_ROW(COMMAND_BY_ARGUMENTS, zset_pop_count_waited_for, 350, 0, "key named", "fewer keys");

#define BLOCKING_POP_ENTRY(word, what, ...)                                                        \
    {                                                                                              \
        .name = word, .syntax = "key... timeout:double", .reply = "[key:s member:s score:n]?",     \
        .summary = what, .complexity = "O(k + log n) for k keys and n members",                    \
        .flags = COMMAND_WRITE | COMMAND_FAST | COMMAND_BLOCKING,                                  \
        .key_access = "RW access delete", .cost = &waiting_cost,                                   \
        .variant = &(const bool){__VA_ARGS__}, .run = bzpop_run, .serve = zset_pop_bzpop_serve     \
    }

const struct command command_bzpopmin =
    BLOCKING_POP_ENTRY("BZPOPMIN",
                       "Remove the member with the lowest score from the first of several boards "
                       "that has any, and return it; if none has, wait for it",
                       false);
const struct command command_bzpopmax =
    BLOCKING_POP_ENTRY("BZPOPMAX",
                       "Remove the member with the highest score from the first of several boards "
                       "that has any, and return it; if none has, wait for it",
                       true);

/* The variant: does it wait where there are none? The timeout is then the first argument. */
static void mpop_run(struct call *call) {
    bool waits = *(const bool *)call->command->variant;
    struct zset_taking taking = {.count = 0};
    int64_t due_ms = REGISTRY_NO_EXPIRY;
    struct registry_key *key;
    if (!syntax_read(call, &taking) ||
        (waits && !zset_pop_read_timeout(call, call_arg(call, 1), &due_ms)) ||
        !zset_pop_find_filled(call, taking.keys, &key)) {
        return;
    }
    bool is_reverse = taking.where == ZSET_MAX;
    int64_t count = taking.count > 0 ? taking.count : 1;
    if (key != NULL) {
        zset_pop_reply_zmpop(call, key, is_reverse, count);
    } else if (waits) {
        zset_pop_wait_for(call, taking.keys, due_ms, is_reverse, count);
    } else {
        reply_null_array(call->reply);
    }
}

const struct command command_zmpop = {
    .name = "ZMPOP",
    .syntax = "numkeys:integer key... where=<MIN | MAX> [COUNT count:integer]",
    .bindings = zset_taking_bindings,
    .reply = "[key:s members:[[member:s score:n]]]?",
    .summary = "Remove members from the first of several boards that has any, and return them",
    .complexity = "O(k + log n + m) for k keys and m of the board's n members",
    .flags = COMMAND_WRITE,
    .key_access = "RW access delete",
    .cost = COST(COMMAND_BY_PRODUCT, zset_pop_count_zmpop, 100, 0, "member popped",
                 "fewer of them; `ZREMRANGEBYRANK` if you do not need the members"),
    .variant = &(const bool){false},
    .run = mpop_run,
};

static void zset_pop_bzmpop_serve(const struct call *call, struct registry_key *key) {
    if (!writing_refuses(call, registry_options(key), BOARD_WRITE_WHOLE)) {
        zset_pop_reply_zmpop(call, key, call->session->wait.is_reverse, call->session->wait.count);
    }
}

const struct command command_bzmpop = {
    .name = "BZMPOP",
    .syntax = "timeout:double numkeys:integer key... where=<MIN | MAX> [COUNT count:integer]",
    .bindings = zset_taking_bindings,
    .reply = "[key:s members:[[member:s score:n]]]?",
    .summary = "Remove members from the first of several boards that has any, and return them; if "
               "none has, wait for them",
    .complexity = "O(k + log n + m) for k keys and m of the board's n members",
    .flags = COMMAND_WRITE | COMMAND_BLOCKING,
    .key_access = "RW access delete",
    .cost = COST(COMMAND_BY_PRODUCT, zset_pop_count_zmpop, 250, 0, "member popped, and key named",
                 "fewer of them"),
    .variant = &(const bool){true},
    .run = mpop_run,
    .serve = zset_pop_bzmpop_serve,
};
