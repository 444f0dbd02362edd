/* MULTI EXEC DISCARD WATCH UNWATCH.
 *
 *     WATCH board -> reads -> MULTI -> writes, queued -> EXEC: all of them, or nil
 *
 * EXEC runs the queue as one command of the tick: nothing of another client comes in between, and
 * all of it carries one time. A command that fails answers its error in its place, and the others
 * run all the same. */
#include "server/command.h"
#include "server/server.h"

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
    .summary = "Queue the commands that follow, until EXEC runs them together",
    .complexity = "O(1)",
    .since = "1.0.0",
    .group = "transactions",
    .arity = 1,
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
    .summary = "Forget the commands queued since MULTI, and all watched keys",
    .complexity = "O(1)",
    .since = "1.0.0",
    .group = "transactions",
    .arity = 1,
    .flags = COMMAND_FAST | COMMAND_LOADING | COMMAND_NOT_QUEUED | COMMAND_ENDS_MULTI,
    .run = discard_run,
};

/* ---- EXEC ---- */

/* CLIENT REPLY may be among the commands. SKIP is for what follows EXEC. */
static void set_silence(const struct call *call) {
    enum session_reply_mode mode = call->session->reply_mode;
    if (mode != SESSION_REPLY_SKIP_NEXT) {
        call->reply->is_silent = mode != SESSION_REPLY_ON;
    }
}

static void run_queue(const struct call *call) {
    struct transaction *transaction = &call->session->transaction;
    /* What they change themselves is none of their own business. */
    watch_clear(&call->server->watches, &call->session->watches);
    transaction->is_running = true;
    reply_array(call->reply, transaction->count);
    const struct transaction_request *queued = transaction->first;
    for (; queued != NULL; queued = queued->next) {
        set_silence(call);
        command_execute_queued(call->server, call->session, queued->command, &queued->request,
                               call->reply);
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
        run_queue(call);
    }
    server_end_transaction(call->server, session);
}

const struct command command_exec = {
    .name = "EXEC",
    .summary = "Run the commands queued since MULTI, unless a watched key has changed",
    .complexity = "As the queued commands say; nothing else runs meanwhile",
    .since = "1.0.0",
    .group = "transactions",
    .arity = 1,
    .flags = COMMAND_LOADING | COMMAND_NO_SLOWLOG | COMMAND_NOT_QUEUED | COMMAND_ENDS_MULTI,
    .run = exec_run,
};

/* ---- WATCH, UNWATCH ---- */

static bool watch_keys(const struct call *call) {
    struct watch_list *list = &call->session->watches;
    uint32_t database = call->session->database;
    uint32_t count_before = list->count;
    for (uint32_t i = 1; i < call->request->count; i++) {
        struct bytes name = call_arg(call, i);
        /* A key whose time has come already must not be taken for one that goes later. */
        (void)registry_find(call->registry, database, name, call->now_ms);
        if (list->is_stale) {
            return true;
        }
        if (!watch_add(&call->server->watches, list, database, name)) {
            watch_cut(&call->server->watches, list, count_before);
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
    /* EXEC will refuse in any case when something has changed already. */
    if (call->session->watches.is_stale || watch_keys(call)) {
        reply_ok(call->reply);
    } else {
        call_out_of_memory(call);
    }
}

static const struct argument watch_arguments[] = {
    {.name = "key", .type = ARGUMENT_KEY, .flags = ARGUMENT_MULTIPLE},
    {0},
};
const struct command command_watch = {
    .name = "WATCH",
    .summary = "Have the next EXEC run nothing if one of these keys changes before",
    .complexity = "O(1) for each key",
    .since = "1.0.0",
    .group = "transactions",
    .arity = -2,
    .flags =
        COMMAND_FAST | COMMAND_NOT_QUEUED, /* not while loading: keys come to be all the time */
    .first_key = 1,
    .last_key = -1,
    .key_step = 1,
    .arguments = watch_arguments,
    .run = watch_run,
};

static void unwatch_run(struct call *call) {
    watch_clear(&call->server->watches, &call->session->watches);
    reply_ok(call->reply);
}

const struct command command_unwatch = {
    .name = "UNWATCH",
    .summary = "Forget all watched keys, and what has happened to them",
    .complexity = "O(1)",
    .since = "1.0.0",
    .group = "transactions",
    .arity = 1,
    .flags = COMMAND_FAST | COMMAND_LOADING,
    .run = unwatch_run,
};
