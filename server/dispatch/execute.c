/* From a request to its handler. See execute.h. */
#include "server/dispatch/execute.h"

#include <stdio.h>

#include "server/clients/monitor.h"
#include "server/clients/server.h"
#include "server/dispatch/cost.h"
#include "server/dispatch/options.h"
#include "server/dispatch/syntax.h"

static void complete(struct command *command, bool is_subcommand) {
    syntax_apply(command, is_subcommand);
    options_check(command);
}

void execute_init(const struct command_row *table) {
    syntax_reset();
    command_init(table, complete);
}

/* ---- refusals ---- */

/* Redis's error texts show at most this many bytes of a client's words. */
enum { WORD_SHOWN_MAX = 128 };

static int shown_size(struct bytes word, size_t size_max) {
    return (int)(word.size < size_max ? word.size : size_max);
}

static void refuse_unknown(const struct request *request, struct reply *reply) {
    const struct command *container = command_find(request->args[0]);
    if (container != NULL) {
        reply_error_format(reply, "ERR unknown subcommand '%.*s'. Try %s HELP.",
                           shown_size(request->args[1], WORD_SHOWN_MAX), request->args[1].at,
                           container->name);
        return;
    }
    char args[WORD_SHOWN_MAX * 2];
    size_t used = 0;
    for (uint32_t i = 1; i < request->count && used < WORD_SHOWN_MAX; i++) {
        int size =
            snprintf(args + used, sizeof args - used, "'%.*s' ",
                     shown_size(request->args[i], WORD_SHOWN_MAX - used), request->args[i].at);
        CHECK(size > 0);
        used += (size_t)size;
    }
    reply_error_format(reply, "ERR unknown command '%.*s', with args beginning with: %.*s",
                       shown_size(request->args[0], WORD_SHOWN_MAX), request->args[0].at, (int)used,
                       args);
}

static bool is_over_memory(const struct server *server) {
    return server->settings.maxmemory > 0 && memory_used() > server->settings.maxmemory;
}

/* Between MULTI and EXEC, queueing any command takes memory. */
static bool takes_memory(const struct session *session, const struct command *command) {
    bool is_queueing = session->transaction.is_open && (command->flags & COMMAND_ENDS_MULTI) == 0;
    return is_queueing || (command_needs(session, command) & COMMAND_DENYOOM) != 0;
}

/* Is there a restriction for all clients (loading, or a write refusal)? Rare. */
static inline bool is_restricted(const struct server *server) {
    return server->durability.is_loading || server->durability.write_refusal != NULL;
}

static enum monitor_secrets secrets_of(const struct command *command) {
    if ((command->flags & COMMAND_SECRET) == 0) {
        return MONITOR_SECRETS_NONE;
    }
    return (command->flags & COMMAND_SECRET_AUTH) != 0 ? MONITOR_SECRETS_BEHIND_AUTH
                                                       : MONITOR_SECRETS_ALL;
}

/* A refused EXEC ends the transaction. Monitors saw the MULTI, so they get the EXEC, too. */
static void refuse_exec(struct server *server, struct session *session, const struct command *exec,
                        const struct request *request, struct reply *reply, const char *text) {
    server_end_transaction(server, session);
    if (strncmp(text, "ERR ", 4) == 0) {
        text += 4;
    }
    reply_error_format(reply, "EXECABORT Transaction discarded because of: %s", text);
    if (server->monitor_count > 0) {
        monitor_feed(server, session, request, secrets_of(exec));
    }
}

/* Why a command is refused. NULL: it is not. arity_text: buffer for an arity error. */
enum { ARITY_TEXT_MAX = COMMAND_FULL_NAME_MAX + 48 };
static const char *find_refusal(const struct server *server, const struct session *session,
                                uint32_t index, const struct request *request, char *arity_text) {
    const struct command *command = command_by_index(index);
    if (command_has_wrong_arity(command, request)) {
        snprintf(arity_text, ARITY_TEXT_MAX, "ERR wrong number of arguments for '%s' command",
                 command_full_name(index));
        return arity_text;
    }
    if ((command->flags & COMMAND_NO_AUTH) == 0 && !server_is_authenticated(server, session)) {
        return "NOAUTH Authentication required.";
    }
    if (session->transaction.is_open && (command->flags & COMMAND_NO_MULTI) != 0) {
        return "ERR Command not allowed inside a transaction";
    }
    if (takes_memory(session, command) && is_over_memory(server)) {
        return "OOM command not allowed when used memory > 'maxmemory'.";
    }
    if (server->durability.write_refusal != NULL &&
        (command_needs(session, command) & COMMAND_WRITE) != 0) {
        return server->durability.write_refusal;
    }
    if (server->durability.is_loading && (command->flags & COMMAND_LOADING) == 0) {
        return "LOADING Redis is loading the dataset in memory";
    }
    return NULL;
}

/* Is the request queued for EXEC? */
static bool is_queued(const struct session *session, uint32_t index) {
    return session->transaction.is_open &&
           (command_by_index(index)->flags & COMMAND_NOT_QUEUED) == 0;
}

/* Does busy-command-limit apply to this command? */
static inline bool is_limited(const struct server *server, const struct command *command) {
    return server->settings.busy_command_limit_ms > 0 && command->cost != NULL;
}

/* Refuse the request with an error if it may not run. false: it may. */
static bool refuse(struct server *server, struct session *session, uint32_t index,
                   const struct request *request, struct reply *reply) {
    char arity_text[ARITY_TEXT_MAX];
    char cost_text[COST_TEXT_MAX];
    if (index == COMMAND_NONE) {
        refuse_unknown(request, reply);
    } else {
        const struct command *command = command_by_index(index);
        const char *text = find_refusal(server, session, index, request, arity_text);
        if (text == NULL && is_limited(server, command) && !is_queued(session, index) &&
            cost_is_refused(server, session, command, request, cost_text)) {
            text = cost_text;
        }
        if (text == NULL) {
            return false;
        }
        if ((command->flags & COMMAND_RUNS_QUEUE) != 0) {
            refuse_exec(server, session, command, request, reply, text);
        } else {
            reply_error(reply, text);
        }
    }
    session->transaction.is_refused = session->transaction.is_open;
    return true;
}

/* Queue the request, or only reply QUEUED if the transaction can no longer succeed. false: out of
 * memory; the error was replied. */
static bool queue(struct transaction *transaction, bool is_stale, uint32_t index,
                  const struct request *request, struct reply *reply) {
    if (!transaction->is_refused && !is_stale &&
        !transaction_queue(transaction, request, index, command_by_index(index)->flags)) {
        transaction->is_refused = true;
        reply_error(reply, "OOM out of memory");
        return false;
    }
    reply_simple(reply, "QUEUED");
    return true;
}

/* ---- running ---- */

static void note_slow(struct server *server, const struct session *session,
                      const struct command *command, const struct request *request,
                      uint64_t elapsed_ns) {
    const struct settings *settings = &server->settings;
    uint64_t elapsed_us = elapsed_ns / 1000;
    int64_t now_s = server->clock.now_ms / 1000;
    if (settings->slowlog_log_slower_than_us >= 0 && settings->slowlog_max_len > 0 &&
        elapsed_us >= (uint64_t)settings->slowlog_log_slower_than_us &&
        (command->flags & COMMAND_NO_SLOWLOG) == 0) {
        slowlog_add(&server->slowlog, (uint32_t)settings->slowlog_max_len, request,
                    (command->flags & COMMAND_SECRET) != 0, elapsed_us, now_s, session->address,
                    session->name != NULL ? session->name : "");
    }
    uint64_t elapsed_ms = elapsed_us / 1000;
    if (settings->latency_monitor_threshold_ms > 0 &&
        elapsed_ms >= (uint64_t)settings->latency_monitor_threshold_ms) {
        const char *event = (command->flags & COMMAND_FAST) != 0 ? "fast-command" : "command";
        latency_add(&server->latency, event,
                    elapsed_ms < UINT32_MAX ? (uint32_t)elapsed_ms : UINT32_MAX, now_s);
    }
}

static void count_errors(struct server *server, const struct reply *reply, uint64_t errors_before) {
    server->stats.error_replies += reply->error_count - errors_before;
    stats_count_error(&server->stats, reply->error_prefix);
}

/* Run a request that passed all checks, and count it. */
static void run(struct server *server, struct session *session, uint32_t index,
                const struct command *command, const struct request *request, struct reply *reply) {
    uint64_t begin_ticks = server->command_begin_ticks; /* EXEC's commands overwrite it */
    uint64_t errors_before = reply->error_count;
    struct call call = {
        .request = request,
        .command = command,
        .reply = reply,
        .registry = server->registry,
        .session = session,
        .server = server,
        .ahead = server->ahead,
        .now_us = server->clock.now_us,
        .now_ms = server->clock.now_ms,
    };
    command->run(&call);
    uint64_t end_ticks = clock_ticks();
    uint64_t elapsed_ns = clock_ticks_to_ns(end_ticks - begin_ticks);
    server->command_begin_ticks = end_ticks;
    server->stats.commands_processed++;
    stats_count_call(&server->stats.commands[index], elapsed_ns);
    /* Both thresholds are well above a microsecond, unless everything is logged. */
    if (elapsed_ns >= 1000 || server->settings.slowlog_log_slower_than_us == 0) {
        note_slow(server, session, command, request, elapsed_ns);
    }
    if (server->monitor_count > 0 && (command->flags & COMMAND_ADMIN) == 0) {
        monitor_feed(server, session, request, secrets_of(command));
    }
    if (reply->error_count != errors_before) {
        server->stats.commands[index].failed_calls++;
        count_errors(server, reply, errors_before);
    }
}

/* The common case: the command is known, the request may run immediately, and its reply is sent. */
static inline bool is_plain(const struct server *server, const struct session *session,
                            const struct command *command, const struct request *request) {
    return command != NULL && session->reply_mode == SESSION_REPLY_ON &&
           !command_has_wrong_arity(command, request) && server_is_authenticated(server, session) &&
           !session->transaction.is_open && !is_restricted(server) &&
           !is_limited(server, command) &&
           ((command->flags & COMMAND_DENYOOM) == 0 || !is_over_memory(server));
}

/* Run it, refuse it, or queue it. */
static void run_if_allowed(struct server *server, struct session *session, uint32_t index,
                           const struct request *request, struct reply *reply) {
    uint64_t errors_before = reply->error_count;
    if (!refuse(server, session, index, request, reply)) {
        const struct command *command = command_by_index(index);
        session->last_command = command;
        if (!is_queued(session, index)) {
            run(server, session, index, command, request, reply);
            return;
        }
        if (queue(&session->transaction, session->watches.is_stale, index, request, reply)) {
            return;
        }
    }
    if (index != COMMAND_NONE) {
        server->stats.commands[index].rejected_calls++;
    }
    count_errors(server, reply, errors_before);
}

/* The slow path, for requests that are not plain. */
static void execute_any(struct server *server, struct session *session, uint32_t index,
                        const struct request *request, struct reply *reply) {
    bool is_skipped = session->reply_mode == SESSION_REPLY_SKIP_NEXT;
    if (is_skipped) {
        session->reply_mode = SESSION_REPLY_SKIP;
    }
    reply->is_silent = session->reply_mode != SESSION_REPLY_ON;
    run_if_allowed(server, session, index, request, reply);
    if (is_skipped && session->reply_mode == SESSION_REPLY_SKIP) {
        session->reply_mode = SESSION_REPLY_ON;
    }
}

void execute_request(struct server *server, struct session *session, uint32_t index,
                     const struct request *request, struct reply *reply) {
    session->command_count++;
    session->active_at_ms = server->clock.monotonic_ms;
    const struct command *command = index != COMMAND_NONE ? command_by_index(index) : NULL;
    if (is_plain(server, session, command, request)) {
        reply->is_silent = false;
        session->last_command = command;
        run(server, session, index, command, request, reply);
    } else {
        execute_any(server, session, index, request, reply);
    }
}

void execute_queued(struct server *server, struct session *session, uint32_t index,
                    const struct request *request, struct reply *reply) {
    uint64_t errors_before = reply->error_count;
    run(server, session, index, command_by_index(index), request, reply);
    /* Count the errors for this command, not for EXEC. */
    reply->error_count = errors_before;
}
