/* MULTI EXEC DISCARD WATCH UNWATCH.
 *
 *     WATCH board -> reads -> MULTI -> writes, queued -> EXEC: all of them, or nil
 *
 * EXEC runs the queue as one command of the tick: no other client's commands run in between, and
 * all of it uses one time. If a command fails, its error is replied in its position, and the others
 * still run. */
#include "server/dispatch/cost.h"
#include "server/dispatch/execute.h"

/* ---- MULTI, DISCARD ---- */

static void multi_run(struct call *call) {
    struct transaction *transaction = &call->session->transaction;
    if (transaction->is_open) {
        reply_error(call->reply, "ERR MULTI calls can not be nested");
        return;
    }
    transaction->is_open = true;
    reply_ok(call->reply);
}

const struct command command_multi = {
    .name = "MULTI",
    .reply = "<OK>",
    .summary = "Queue the commands that follow, until EXEC runs them together",
    .flags = COMMAND_FAST | COMMAND_LOADING | COMMAND_NOT_QUEUED,
    .run = multi_run,
};

static void discard_run(struct call *call) {
    if (!call->session->transaction.is_open) {
        reply_error(call->reply, "ERR DISCARD without MULTI");
        return;
    }
    server_end_transaction(call->server, call->session);
    reply_ok(call->reply);
}

const struct command command_discard = {
    .name = "DISCARD",
    .reply = "<OK>",
    .summary = "Discard the commands queued since MULTI, and all watched keys",
    .flags = COMMAND_FAST | COMMAND_LOADING | COMMAND_NOT_QUEUED | COMMAND_ENDS_MULTI,
    .run = discard_run,
};

/* ---- EXEC ---- */

static void transaction_commands_run_queue(const struct call *call) {
    struct transaction *transaction = &call->session->transaction;
    /* The transaction's own changes must not affect its watches. */
    watch_clear(&call->server->watches, &call->session->watches);
    transaction->is_running = true;
    reply_array(call->reply, transaction->count);
    const struct transaction_request *queued = transaction->first;
    for (; queued != NULL; queued = queued->next) {
        /* A client whose output is over its limit will be closed and gets no more replies. Commands
         * that only read are then skipped; commands that write still run, because EXEC is all or
         * nothing. */
        unsigned flags = command_by_index(queued->command)->flags;
        if (call->reply->out->is_broken &&
            (flags & (COMMAND_READ | COMMAND_WRITE)) == COMMAND_READ) {
            continue;
        }
        /* CLIENT REPLY may be among the commands. SKIP applies to the command after EXEC. */
        enum session_reply_mode mode = call->session->reply_mode;
        if (mode != SESSION_REPLY_SKIP_NEXT) {
            call->reply->is_silent = mode != SESSION_REPLY_ON;
        }
        execute_queued(call->server, call->session, queued->command, &queued->request, call->reply);
    }
}

static void exec_run(struct call *call) {
    struct session *session = call->session;
    if (!session->transaction.is_open) {
        reply_error(call->reply, "ERR EXEC without MULTI");
        return;
    }
    watch_expire(&session->watches, call->registry, call->now_ms);
    if (session->transaction.is_refused) {
        reply_error(call->reply, "EXECABORT Transaction discarded because of previous errors.");
    } else if (session->watches.is_stale) {
        reply_null_array(call->reply);
    } else {
        transaction_commands_run_queue(call);
    }
    server_end_transaction(call->server, session);
}

static uint64_t transaction_commands_count_queued(const struct cost_view *view) {
    return view->call->session->transaction.count;
}

const struct command command_exec = {
    .name = "EXEC",
    .reply = "[o]?",
    .summary = "Run the commands queued since MULTI, unless a watched key has changed",
    .complexity = "As the queued commands say; nothing else runs meanwhile",
    .flags = COMMAND_LOADING | COMMAND_NO_SLOWLOG | COMMAND_NOT_QUEUED | COMMAND_ENDS_MULTI |
             COMMAND_RUNS_QUEUE,
    .cost =
        COST(COMMAND_BY_MEMORY, transaction_commands_count_queued, 700, 0,
             "queued command, in addition to its own row", "transactions of a thousand commands"),
    .run = exec_run,
};

/* ---- WATCH, UNWATCH ---- */

static bool transaction_commands_watch_keys(const struct call *call) {
    struct watch_list *list = &call->session->watches;
    uint32_t database = call->session->database;
    struct watch_mark before = watch_mark(list);
    for (uint32_t i = 1; i < call->request->count; i++) {
        struct bytes name = call_arg(call, i);
        /* A key that has already expired must count as missing, not as one that expires later. */
        bool is_held = registry_find(call->registry, database, name, call->now_ms) != NULL;
        if (list->is_stale) {
            return true;
        }
        if (!watch_add(&call->server->watches, list, database, name, is_held)) {
            watch_cut(&call->server->watches, list, before);
            return false;
        }
    }
    return true;
}

static void watch_run(struct call *call) {
    if (call->session->transaction.is_open) {
        reply_error(call->reply, "ERR WATCH inside MULTI is not allowed");
        return;
    }
    /* While keys are loaded, each may still change. */
    if (call->server->durability.is_loading) {
        watch_clear(&call->server->watches, &call->session->watches);
        call->session->watches.is_stale = true;
    }
    /* If something has already changed, EXEC will be aborted in any case. */
    if (call->session->watches.is_stale || transaction_commands_watch_keys(call)) {
        reply_ok(call->reply);
    } else {
        call_out_of_memory(call);
    }
}

const struct command command_watch = {
    .name = "WATCH",
    .syntax = "key...",
    .reply = "<OK>",
    .summary = "Make the next EXEC run nothing if one of these keys changes first",
    .complexity = "O(1) for each key",
    .flags = COMMAND_FAST | COMMAND_LOADING | COMMAND_NOT_QUEUED,
    .cost = COST(COMMAND_BY_ARGUMENTS, cost_count_keys, 1300, 0, "key", "fewer keys"),
    .run = watch_run,
};

static void unwatch_run(struct call *call) {
    watch_clear(&call->server->watches, &call->session->watches);
    reply_ok(call->reply);
}

const struct command command_unwatch = {
    .name = "UNWATCH",
    .reply = "<OK>",
    .summary = "Stop watching all keys",
    .flags = COMMAND_FAST | COMMAND_LOADING,
    .run = unwatch_run,
};
