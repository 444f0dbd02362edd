/* From a request to its handler. See execute.h. */
#include "server/dispatch/execute.h"

#include <stdio.h>

#include "server/acl/acl_check.h"
#include "server/acl/player.h"
#include "server/dispatch/category.h"
#include "server/dispatch/cost.h"
#include "server/dispatch/explain.h"
#include "server/dispatch/syntax.h"
#include "server/replication/replication.h"
#include "server/sessions/job.h"
#include "server/sessions/notify.h"
#include "server/sessions/server.h"
#include "server/sessions/tracking.h"

void execute_init(const struct command_row *table) {
    syntax_reset();
    command_init(table, syntax_apply);
    syntax_key_init();
}

/* ---- refusals ---- */

/* Redis's error texts show at most this many bytes of a client's words. */
enum { WORD_SHOWN_MAX = 128 };

static void execute_refuse_unknown(const struct request *request, struct reply *reply) {
    const struct command *found = command_find(request->args[0]);
    if (found != NULL && explain_covers(found)) {
        char reason[EXPLAIN_MAX], error[EXPLAIN_MAX];
        snprintf(reason, sizeof reason, "unknown subcommand '%s'. Try %s HELP.",
                 bytes_show(request->args[1]).text, found->name);
        explain_reason(found, reason, error);
        reply_error(reply, error);
        return;
    }
    if (found != NULL) {
        char container[SETTING_RENAME_SIZE_MAX + 1];
        call_print_name(request, container);
        reply_error_format(reply, "ERR unknown subcommand '%.*s'. Try %s HELP.",
                           bytes_shown_size(request->args[1], WORD_SHOWN_MAX), request->args[1].at,
                           container);
        return;
    }
    char args[WORD_SHOWN_MAX * 2];
    size_t used = 0;
    for (uint32_t i = 1; i < request->count && used < WORD_SHOWN_MAX; i++) {
        int size = snprintf(args + used, sizeof args - used, "'%.*s' ",
                            bytes_shown_size(request->args[i], WORD_SHOWN_MAX - used),
                            request->args[i].at);
        CHECK(size > 0);
        used += (size_t)size;
    }
    const char *title = category_absent_title(request->args[0]);
    char hint[EXPLAIN_HINT_MAX];
    if (title != NULL) {
        snprintf(hint, sizeof hint, "(no %s here: see docs/reference/differences-from-redis.md)",
                 title);
    } else {
        explain_unknown(request, hint);
    }
    reply_error_format(reply, "ERR unknown command '%.*s', with args beginning with: %.*s%s",
                       bytes_shown_size(request->args[0], WORD_SHOWN_MAX), request->args[0].at,
                       (int)used, args, hint);
}

static const char over_memory[] = SERVER_OVER_MEMORY_ERROR;

/* Is there a restriction for all clients (loading, or a refusal of writes)? On a replica there is one
 * for writes alone, mostly. */
static inline bool execute_is_restricted(const struct server *server,
                                         const struct command *command) {
    const struct settings *settings = &server->settings;
    return server->durability.is_loading || server->durability.write_refusal != NULL ||
           replication_may_refuse(&server->replication, (command->flags & COMMAND_WRITE) != 0,
                                  settings->replica_serve_stale_data,
                                  settings->min_replicas_to_write);
}

static enum monitor_secrets execute_secrets_of(const struct command *command) {
    if ((command->flags & COMMAND_SECRET) == 0) {
        return MONITOR_SECRETS_NONE;
    }
    return (command->flags & COMMAND_SECRET_AUTH) != 0 ? MONITOR_SECRETS_BEHIND_AUTH
                                                       : MONITOR_SECRETS_ALL;
}

/* Why the user may not run it. NULL: the user may. */
static const char *execute_find_denial(struct server *server, const struct session *session,
                                       uint32_t index, const struct request *request,
                                       bool is_changed, char *text) {
    uint32_t position;
    enum acl_denial denial = acl_check(session->user, index, request, &position);
    return denial == ACL_ALLOWED ? player_find_denial(server, session, index, request, text)
                                 : acl_check_deny(server, session, index, request, denial, position,
                                                  is_changed, text);
}

/* Why a command is refused. NULL: it is not. buffer: for a text with its name. */
enum { REFUSAL_TEXT_MAX = EXPLAIN_MAX };
_Static_assert((int)EXPLAIN_MAX >= (int)ACL_DENIAL_MAX &&
                   (int)ACL_DENIAL_MAX >= (int)PLAYER_TEXT_MAX,
               "they share a buffer");
static const char *execute_find_refusal(struct server *server, const struct session *session,
                                        uint32_t index, const struct request *request,
                                        char *buffer) {
    const struct command *command = command_by_index(index);
    if (command_has_wrong_arity(command, request)) {
        call_print_arity(command, request, buffer);
        return buffer;
    }
    if ((command->flags & COMMAND_NO_AUTH) == 0 && !server_is_authenticated(server, session)) {
        return "NOAUTH Authentication required.";
    }
    if (session->transaction.is_open && (command->flags & COMMAND_NO_MULTI) != 0) {
        return "ERR Command not allowed inside a transaction";
    }
    const char *denial = session->is_unlimited
                             ? NULL
                             : execute_find_denial(server, session, index, request, false, buffer);
    if (denial != NULL) {
        return denial;
    }
    /* Between MULTI and EXEC, queueing any command takes memory. */
    bool is_queueing = session->transaction.is_open && (command->flags & COMMAND_ENDS_MULTI) == 0;
    if ((is_queueing || (command_needs(session, command) & COMMAND_DENYOOM) != 0) &&
        server_is_over_memory(server)) {
        return over_memory;
    }
    if ((command_needs(session, command) & COMMAND_WRITE) != 0) {
        const char *why = server->durability.write_refusal != NULL
                              ? server->durability.write_refusal
                              : replication_write_refusal(server);
        if (why != NULL) {
            return why;
        }
    }
    if (session_is_restricted(session) && (command->flags & COMMAND_SUBSCRIBER) == 0) {
        snprintf(buffer, REFUSAL_TEXT_MAX,
                 "ERR Can't execute '%s': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / "
                 "RESET are allowed in this context",
                 command_full_name(index));
        return buffer;
    }
    enum replication_keys keys = replication_keys(&server->replication);
    bool is_closed = keys == REPLICATION_KEYS_PROMOTING || keys == REPLICATION_KEYS_CLOSED;
    const unsigned closed = is_closed ? COMMAND_NO_BOARDS : 0;
    const unsigned stale = COMMAND_STALE | COMMAND_LOADING | closed;
    bool runs_reads = (command->flags & COMMAND_RUNS_QUEUE) != 0 &&
                      (session->transaction.flags & COMMAND_READ) != 0;
    const char *outdated =
        (command->flags & stale) == 0 || runs_reads ? replication_read_refusal(server) : NULL;
    if (outdated != NULL) {
        return outdated;
    }
    if (server->durability.is_loading && (command->flags & COMMAND_LOADING) == 0) {
        return "LOADING Redis is loading the dataset in memory";
    }
    return NULL;
}

/* Is the request queued for EXEC? */
static bool execute_is_queued(const struct session *session, uint32_t index) {
    return session->transaction.is_open &&
           (command_by_index(index)->flags & COMMAND_NOT_QUEUED) == 0;
}

/* Is it possible that the request costs more than busy-command-limit? */
static inline bool execute_is_limited(const struct server *server, const struct session *session,
                                      const struct command *command,
                                      const struct request *request) {
    enum { NS_PER_MS = 1000000 };
    if (command->cost == NULL || server->settings.busy_command_limit_ms == 0) {
        return false;
    }
    uint64_t bound_ns = (command->flags & COMMAND_RUNS_QUEUE) != 0
                            ? session->transaction.bound_ns
                            : cost_bound_ns(command, request);
    return bound_ns > (uint64_t)server->settings.busy_command_limit_ms * NS_PER_MS;
}

/* Refuse the request with an error if it may not run. false: it may. */
static bool execute_refuse(struct server *server, struct session *session, uint32_t index,
                           const struct request *request, struct reply *reply) {
    char refusal_text[REFUSAL_TEXT_MAX];
    char cost_text[COST_TEXT_MAX];
    if (index == COMMAND_NONE) {
        execute_refuse_unknown(request, reply);
    } else {
        const struct command *command = command_by_index(index);
        const char *text = execute_find_refusal(server, session, index, request, refusal_text);
        if (text == NULL && execute_is_limited(server, session, command, request) &&
            !execute_is_queued(session, index) &&
            cost_is_refused(server, session, command, request, cost_text)) {
            text = cost_text;
        }
        if (text == NULL) {
            return false;
        }
        if (text == over_memory) {
            char details[128];
            snprintf(details, sizeof details, "command=%s used=%llu maxmemory=%llu",
                     command_full_name(index), (unsigned long long)memory_used(),
                     (unsigned long long)server->settings.maxmemory);
            server_audit_write_refused(server, AUDIT_MAXMEMORY, server_audit_who(session),
                                       "maxmemory reached", details);
        }
        if ((command->flags & COMMAND_RUNS_QUEUE) != 0) {
            /* It ends the transaction. Monitors saw the MULTI, so they get the EXEC, too. */
            server_end_transaction(server, session);
            text += strncmp(text, "ERR ", 4) == 0 ? 4 : 0;
            reply_error_format(reply, "EXECABORT Transaction discarded because of: %s", text);
            if (server->sessions.monitor_count > 0) {
                notify_monitor(server, session, request, execute_secrets_of(command));
            }
        } else {
            reply_error(reply, text);
        }
    }
    session->transaction.is_refused = session->transaction.is_open;
    return true;
}

/* Queue the request, or only reply QUEUED if the transaction can no longer succeed. false: out of
 * memory; the error was replied. */
static bool execute_queue(struct transaction *transaction, bool is_stale, uint32_t index,
                          const struct request *request, struct reply *reply) {
    const struct command *command = command_by_index(index);
    if (!transaction->is_refused && !is_stale &&
        !session_transaction_queue(transaction, request, index, command->flags)) {
        transaction->is_refused = true;
        reply_error(reply, "OOM out of memory");
        return false;
    }
    /* Commands that put members on other keys make the bounds of those behind them too small. */
    enum { QUEUED_NS = 2000 }; /* of a short command, and of being queued */
    const struct command_cost *cost = command->cost;
    bool grows = cost != NULL && cost->grown_key > 0 && cost->bound != COMMAND_BY_ARGUMENTS &&
                 cost->bound != COMMAND_BY_RESULTS;
    uint64_t bound_ns = cost == NULL ? 0 : grows ? UINT64_MAX : cost_bound_ns(command, request);
    if (__builtin_add_overflow(transaction->bound_ns, bound_ns, &transaction->bound_ns) ||
        __builtin_add_overflow(transaction->bound_ns, QUEUED_NS, &transaction->bound_ns)) {
        transaction->bound_ns = UINT64_MAX;
    }
    reply_simple(reply, "QUEUED");
    return true;
}

/* ---- running ---- */

static void execute_note_slow(struct server *server, const struct session *session,
                              const struct command *command, const struct request *request,
                              uint64_t elapsed_ns) {
    const struct settings *settings = &server->settings;
    uint64_t elapsed_us = elapsed_ns / 1000;
    int64_t now_s = server->clock.now_ms / 1000;
    if (settings->slowlog_log_slower_than_us >= 0 && settings->slowlog_max_len > 0 &&
        elapsed_us >= (uint64_t)settings->slowlog_log_slower_than_us &&
        (command->flags & COMMAND_NO_SLOWLOG) == 0) {
        stats_slowlog_add(&server->slowlog, (uint32_t)settings->slowlog_max_len, request,
                          (command->flags & COMMAND_SECRET) != 0, elapsed_us, now_s,
                          session->address, session->name != NULL ? session->name : "");
    }
    uint64_t elapsed_ms = elapsed_us / 1000;
    if (settings->latency_monitor_threshold_ms > 0 &&
        elapsed_ms >= (uint64_t)settings->latency_monitor_threshold_ms) {
        const char *event = (command->flags & COMMAND_FAST) != 0 ? "fast-command" : "command";
        stats_latency_add(&server->latency, event,
                          elapsed_ms < UINT32_MAX ? (uint32_t)elapsed_ms : UINT32_MAX, now_s);
    }
}

static void execute_count_errors(struct server *server, const struct reply *reply,
                                 uint64_t errors_before) {
    server->stats.error_replies += reply->error_count - errors_before;
    stats_count_error(&server->stats, reply->error_prefix);
}

/* Log the use of a command that asks for it. Not inlined: hardly any does. */
__attribute__((noinline)) static void
execute_audit_command(struct server *server, const struct session *session, uint32_t index,
                      const struct request *request, bool has_failed) {
    enum { DETAILS_MAX = 512, SETTINGS_SHOWN_MAX = 384 };
    enum audit_class class = command_by_index(index)->audit;
    char event[COMMAND_FULL_NAME_MAX + 16];
    char details[DETAILS_MAX];
    const char *result = has_failed ? "error" : session->job != NULL ? "begun" : "ok";
    snprintf(event, sizeof event, "command=%s", command_full_name(index));
    size_t size =
        (size_t)snprintf(details, sizeof details, "db=%u result=%s", session->database, result);
    if (class == AUDIT_CONFIG && request->count > 2) {
        /* Names of the settings of a CONFIG SET. A word that names none may be a password in the wrong place. */
        size_t end = size + SETTINGS_SHOWN_MAX;
        for (uint32_t i = 2; i < request->count && size + 1 < end; i += 2) {
            const struct setting *setting = settings_find(request->args[i]);
            int printed = snprintf(details + size, end - size, "%s%s", i > 2 ? " " : " settings=\"",
                                   setting != NULL ? setting->name : "?");
            size += printed > 0 ? (size_t)printed : 0;
        }
        memcpy(details + (size < end ? size : end - 1), "\"", 2);
    } else if (class == AUDIT_USERS && request->count > 2) {
        snprintf(details + size, sizeof details - size, " target=\"%s\"",
                 log_quote(request->args[2]).text);
    } else if (class == AUDIT_ROLE) {
        size += (size_t)snprintf(details + size, sizeof details - size, " args=\"");
        for (uint32_t i = 1; i < request->count && size + LOG_QUOTED_MAX + 2 < sizeof details;
             i++) {
            size += (size_t)snprintf(details + size, sizeof details - size, "%s%s",
                                     i > 1 ? " " : "", log_quote(request->args[i]).text);
        }
        memcpy(details + size, "\"", 2);
    }
    if (has_failed) {
        server_audit_write_refused(server, class, server_audit_who(session), event, details);
    } else {
        server_audit_write(server, server_audit_who(session), event, details);
    }
    /* Users, settings, the role: all that an answer depends on besides keys. */
    server_reads_outdate_all(server);
}

/* What a client with CLIENT TRACKING has read. Not inlined: mostly nobody tracks. */
__attribute__((noinline)) static void execute_remember_keys(struct server *server,
                                                            struct session *session, uint32_t index,
                                                            const struct command *command,
                                                            const struct request *request) {
    const struct session_tracking *tracking = &session->tracking;
    if (!tracking->is_on || tracking->is_broadcast ||
        (command->flags & (COMMAND_READ | COMMAND_WRITE)) != COMMAND_READ) {
        return;
    }
    struct request_keys keys = syntax_key_request_begin(index, request);
    for (uint32_t at; (at = syntax_key_request_next(&keys)) > 0;) {
        tracking_remember(server, session, request->args[at]);
    }
}

/* Does it see entries that others do not? */
static inline bool execute_sees_shadows(const struct server *server, const struct session *session,
                                        const struct command *command) {
    return ((command->flags & COMMAND_WRITE) != 0
                ? command->member_arg != 0 && registry_has_hidden(server->registry)
                : session->player != NULL && (command->flags & COMMAND_OWN_MEMBER) != 0 &&
                      registry_has_shadows(server->registry)) &&
           server->shadows.run != NULL;
}

/* Run a request that passed all checks, and count it. */
static void execute_run(struct server *server, struct session *session, uint32_t index,
                        const struct command *command, const struct request *request,
                        struct reply *reply) {
    uint64_t begin_ticks = server->command_begin_ticks; /* EXEC's commands overwrite it */
    uint64_t errors_before = reply->error_count;
    struct call call = call_begin(server, session, command, request, reply);
    call.ahead = server->ahead;
    server_set_writer(server, session);
    if (__builtin_expect(execute_sees_shadows(server, session, command), 0)) {
        server->shadows.run(&call);
    } else {
        command->run(&call);
    }
    server_set_writer(server, NULL);
    if (__builtin_expect(server->tracking.client_count > 0, 0)) {
        execute_remember_keys(server, session, index, command, request);
    }
    registry_free_after_command(server->registry);
    uint64_t end_ticks = clock_ticks();
    uint64_t elapsed_ns = clock_ticks_to_ns(end_ticks - begin_ticks);
    server->command_begin_ticks = end_ticks;
    server->stats.commands_processed++;
    durations_add(&server->stats.commands[index].calls, elapsed_ns);
    /* Both thresholds are well above a microsecond, unless everything is logged. */
    if (elapsed_ns >= 1000 || server->settings.slowlog_log_slower_than_us == 0) {
        execute_note_slow(server, session, command, request, elapsed_ns);
    }
    if (server->sessions.monitor_count > 0 && (command->flags & COMMAND_ADMIN) == 0) {
        notify_monitor(server, session, request, execute_secrets_of(command));
    }
    if (command->audit != AUDIT_NONE) {
        execute_audit_command(server, session, index, request, reply->error_count != errors_before);
    }
    if (reply->error_count != errors_before) {
        server->stats.commands[index].failed_calls++;
        execute_count_errors(server, reply, errors_before);
    }
}

/* The common case: the command is known, the request may run immediately, and its reply is sent. */
static inline bool execute_is_plain(const struct server *server, const struct session *session,
                                    const struct command *command, const struct request *request) {
    return command != NULL && session->reply_mode == SESSION_REPLY_ON &&
           !command_has_wrong_arity(command, request) && session->is_unlimited &&
           !session->transaction.is_open && !session_is_restricted(session) &&
           !execute_is_restricted(server, command) &&
           !execute_is_limited(server, session, command, request) &&
           ((command->flags & COMMAND_DENYOOM) == 0 || !server_is_over_memory(server));
}

/* The slow path, for requests that are not plain; not inlined, so that the others are faster. */
__attribute__((noinline)) static void execute_any(struct server *server, struct session *session,
                                                  uint32_t index, const struct request *request,
                                                  struct reply *reply) {
    bool is_skipped = session->reply_mode == SESSION_REPLY_SKIP_NEXT;
    if (is_skipped) {
        session->reply_mode = SESSION_REPLY_SKIP;
    }
    reply->is_silent = session->reply_mode != SESSION_REPLY_ON;
    /* Run it, refuse it, or queue it. */
    uint64_t errors_before = reply->error_count;
    bool is_done = !execute_refuse(server, session, index, request, reply);
    if (is_done) {
        const struct command *command = command_by_index(index);
        session->last_command = command;
        if (!execute_is_queued(session, index)) {
            execute_run(server, session, index, command, request, reply);
        } else {
            is_done = execute_queue(&session->transaction, session->watches.is_stale, index,
                                    request, reply);
        }
    }
    if (!is_done && index != COMMAND_NONE) {
        server->stats.commands[index].rejected_calls++;
    }
    if (!is_done) {
        execute_count_errors(server, reply, errors_before);
    }
    if (is_skipped && session->reply_mode == SESSION_REPLY_SKIP) {
        session->reply_mode = SESSION_REPLY_ON;
    }
}

void execute_request(struct server *server, struct session *session, uint32_t index,
                     const struct request *request, struct reply *reply) {
    session->command_count++;
    session->active_at_ms = server->clock.monotonic_ms;
    const struct command *command = index != COMMAND_NONE ? command_by_index(index) : NULL;
    server_begin_reply(session);
    if (execute_is_plain(server, session, command, request)) {
        reply->is_silent = false;
        session->last_command = command;
        execute_run(server, session, index, command, request, reply);
    } else {
        execute_any(server, session, index, request, reply);
    }
    if (__builtin_expect(server->tracking.client_count > 0, 0) && session->tracking.is_caching) {
        /* CLIENT CACHING is for the next command, or transaction, that is none of CLIENT's. */
        bool is_about_client =
            index != COMMAND_NONE && strncmp(command_full_name(index), "client|", 7) == 0;
        session->tracking.is_caching = session->transaction.is_open || is_about_client;
    }
    if (session->job == NULL || !session->job->streams) {
        server_end_reply(server, session);
    }
}

void execute_queued(struct server *server, struct session *session, uint32_t index,
                    const struct request *request, struct reply *reply) {
    uint64_t errors_before = reply->error_count;
    char text[ACL_DENIAL_MAX];
    const struct command *command = command_by_index(index);
    const char *denial = session->is_unlimited
                             ? NULL
                             : execute_find_denial(server, session, index, request, true, text);
    if (denial == NULL && (command->flags & COMMAND_WRITE) != 0 &&
        !replication_may_change(&server->replication)) {
        denial = replication_write_refusal(server); /* a REPLICAOF was queued before it */
    } else if (denial == NULL && (command->flags & COMMAND_READ) != 0 &&
               !replication_may_change(&server->replication)) {
        denial = replication_read_refusal(server);
    }
    if (denial == NULL) {
        execute_run(server, session, index, command, request, reply);
    } else {
        reply_error(reply, denial);
        server->stats.commands[index].rejected_calls++;
        execute_count_errors(server, reply, errors_before);
    }
    /* Count the errors for this command, not for EXEC. */
    reply->error_count = errors_before;
}
