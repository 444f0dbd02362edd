/* HELLO AUTH PING ECHO SELECT QUIT RESET READONLY READWRITE: the state of the client's own
 * connection. */
#include <stdio.h>

#include "server/acl/player.h"
#include "server/dispatch/login.h"
#include "server/dispatch/syntax.h"
#include "server/sessions/tracking.h"

/* ---- passwords ---- */

/* user: at NULL: the default one. */
static bool connection_commands_authenticate(const struct call *call, struct bytes user,
                                             struct bytes password) {
    struct bytes name = user.at != NULL ? user : BYTES("default");
    if (!auth_guard_allows_queued(call->server, call->session, name)) {
        return call_refuse(call, "ERR too many wrong passwords: authenticate outside of MULTI");
    }
    if (player_has_token(call->server, user, password)) {
        /* Looking at a signature takes long: within EXEC it would hold all others. */
        if (call->session->transaction.is_running) {
            return call_refuse(call, "ERR a player's token is looked at outside of MULTI alone");
        }
        const char *wrong =
            login_try_player(call->server, call->session, password, call_arg(call, 0));
        return wrong == NULL ||
               call_refuse_format(call, "WRONGPASS the player's token was refused: %s", wrong);
    }
    return login_try(call->server, call->session, name, password, call_arg(call, 0)) ||
           call_refuse(call, "WRONGPASS invalid username-password pair or user is disabled.");
}

static void auth_run(struct call *call) {
    if (call->request->count > 3) {
        call_syntax_error(call);
        return;
    }
    bool has_user = call->request->count == 3;
    struct bytes user = has_user ? call_arg(call, 1) : (struct bytes){.at = NULL};
    struct bytes password = call_arg(call, has_user ? 2 : 1);
    if (!has_user && call->server->acl.users.default_user->has_no_password &&
        !player_has_token(call->server, user, password)) {
        reply_error(call->reply, "ERR AUTH <password> called without any password configured for "
                                 "the default user. Are you sure your configuration is correct?");
        return;
    }
    if (connection_commands_authenticate(call, user, password)) {
        reply_ok(call->reply);
    }
}

const struct command command_auth = {
    .name = "AUTH",
    .syntax = "[username] password",
    .reply = "<OK>",
    .summary = "Authenticate as a user, by default as the user named default",
    .flags = COMMAND_FAST | COMMAND_NO_PAUSE | COMMAND_NO_AUTH | COMMAND_LOADING | COMMAND_SECRET,
    .run = auth_run,
};

/* ---- HELLO ---- */

struct hello_options {
    int64_t protocol;      /* 0: unchanged */
    struct bytes login[2]; /* user and password; at NULL: not given */
    struct bytes name;     /* likewise */
};

static bool connection_commands_check_name(const struct call *call, uint32_t index, void *target) {
    (void)target;
    return session_is_name(call_arg(call, index)) || call_refuse(call, SESSION_NAME_ERROR);
}

static const struct binding hello_bindings[] = {
    {BIND("AUTH", struct hello_options, login[0])},
    {BIND("SETNAME", struct hello_options, name), .read = connection_commands_check_name},
    {0},
};

static void hello_run(struct call *call) {
    struct hello_options options = {0};
    bool has_protocol = call->request->count >= 2;
    uint32_t index = 2;
    if (has_protocol && !bytes_parse_i64(call_arg(call, 1), &options.protocol)) {
        reply_error(call->reply, "ERR Protocol version is not an integer or out of range");
        return;
    }
    if (has_protocol && (options.protocol < 2 || options.protocol > 3)) {
        reply_error(call->reply, "NOPROTO unsupported protocol version");
        return;
    }
    if (!syntax_read_options(call, &index, &options)) {
        return;
    }
    if (index < call->request->count) {
        struct bytes word = call_arg(call, index);
        reply_error_format(call->reply, "ERR Syntax error in HELLO option '%.*s'",
                           bytes_shown_size(word, 128), word.at);
        return;
    }
    if (options.login[0].at != NULL &&
        !connection_commands_authenticate(call, options.login[0], options.login[1])) {
        return;
    }
    if (!server_is_authenticated(call->server, call->session)) {
        reply_error(call->reply,
                    "NOAUTH HELLO must be called with the client already authenticated, otherwise "
                    "the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the "
                    "client and select the RESP protocol version at the same time");
        return;
    }
    if (options.name.at != NULL && !session_set_text(&call->session->name, options.name)) {
        call_out_of_memory(call);
        return;
    }
    if (options.protocol != 0) {
        call->session->protocol = (uint8_t)options.protocol;
        session_shape_reply(call->session, call->reply);
    }
    struct reply *reply = call->reply;
    reply_map(reply, 7);
    bool is_redis = call->server->settings.extended_redis_compatibility;
    reply_named_text(reply, "server", is_redis ? "redis" : SERVER_NAME);
    reply_named_text(reply, "version",
                     is_redis ? SERVER_HELLO_REDIS_VERSION : SERVER_REDIS_VERSION);
    reply_named_integer(reply, "proto", call->session->protocol);
    reply_named_integer(reply, "id", (int64_t)call->session->id);
    reply_named_text(reply, "mode", "standalone");
    reply_named_text(reply, "role",
                     replication_is_replica(&call->server->replication) ? "replica" : "master");
    reply_bulk_text(reply, "modules");
    reply_array(reply, 0);
}

const struct command command_hello = {
    .name = "HELLO",
    .syntax = "arguments=[protover:integer [AUTH username password] [SETNAME clientname]]",
    .bindings = hello_bindings,
    .reply = "(server:s version:s proto:i id:i mode:s role:<master|replica> modules:[o])",
    .summary =
        "Choose RESP2 or RESP3, authenticate, name the connection, and get server information",
    .flags = COMMAND_FAST | COMMAND_NO_PAUSE | COMMAND_NO_AUTH | COMMAND_LOADING | COMMAND_SECRET |
             COMMAND_SECRET_AUTH,
    .run = hello_run,
};

/* ---- PING ECHO ---- */

static void ping_run(struct call *call) {
    const struct server_retiring *retiring = &call->server->ending.retiring;
    if (call->request->count > 2) {
        call_refuse_arity(call);
    } else if (retiring->is_begun && call->session->id >= retiring->from_id) {
        /* Of those who have connected since. Clients know this prefix: try again, or elsewhere. Closed,
         * because HAProxy would wait for more of the reply that it expects. */
        call->session->is_close_after_reply = true;
        reply_error(call->reply, "LOADING the server is shutting down");
    } else if (sync_is_closed(&call->server->replication.sync) &&
               sync_is_unfit(&call->server->replication.sync)) {
        reply_error(call->reply, SYNC_PING_ERROR);
    } else if (session_is_restricted(call->session)) {
        /* Like a message, because the client reads only those. */
        reply_array(call->reply, 2);
        reply_bulk_text(call->reply, "pong");
        reply_bulk(call->reply, call->request->count == 2 ? call_arg(call, 1) : BYTES(""));
    } else if (call->request->count == 2) {
        reply_bulk(call->reply, call_arg(call, 1));
    } else {
        reply_simple(call->reply, "PONG");
    }
}

const struct command command_ping = {
    .name = "PING",
    .syntax = "[message]",
    .reply = "<PONG>|s|[pong:<pong> message:s]",
    .summary = "Reply PONG, or the given message",
    /* Not while loading: a server that replies PONG must be able to serve boards. */
    .flags = COMMAND_FAST | COMMAND_NO_BOARDS | COMMAND_SUBSCRIBER,
    .run = ping_run,
};

static void echo_run(struct call *call) {
    reply_bulk(call->reply, call_arg(call, 1));
}

const struct command command_echo = {
    .name = "ECHO",
    .syntax = "message",
    .reply = "s",
    .summary = "Reply the given message",
    .flags = COMMAND_FAST | COMMAND_LOADING,
    .run = echo_run,
};

/* ---- SELECT ---- */

static void select_run(struct call *call) {
    int64_t index;
    if (call_parse_integer(call, call_arg(call, 1), &index) && call_check_database(call, index)) {
        call->session->database = (uint8_t)index;
        reply_ok(call->reply);
    }
}

const struct command command_select = {
    .name = "SELECT",
    .syntax = "index:integer",
    .reply = "<OK>",
    .summary = "Choose the database of this connection, 0 to 15",
    .flags = COMMAND_FAST | COMMAND_NO_PAUSE | COMMAND_LOADING,
    .run = select_run,
};

/* ---- QUIT RESET ---- */

static void quit_run(struct call *call) {
    call->session->is_close_after_reply = true;
    reply_ok(call->reply);
}

const struct command command_quit = {
    .name = "QUIT",
    .reply = "<OK>",
    .summary = "Close the connection after the reply",
    .arity = -1,
    .flags = COMMAND_FAST | COMMAND_NO_PAUSE | COMMAND_NO_AUTH | COMMAND_LOADING |
             COMMAND_NOT_QUEUED | COMMAND_ENDS_MULTI | COMMAND_SUBSCRIBER,
    .run = quit_run,
};

/* RESET turns replies back on, but its own reply is skipped after CLIENT REPLY SKIP. */
static void reset_run(struct call *call) {
    if (session_is_replica(call->session)) {
        reply_error(call->reply, "ERR can only reset normal connections");
        return;
    }
    call->reply->is_silent = call->session->reply_mode == SESSION_REPLY_SKIP;
    server_set_monitor(call->server, call->session, false);
    server_end_transaction(call->server, call->session);
    server_end_subscriptions(call->server, call->session);
    tracking_forget(call->server, call->session);
    session_reset(call->session);
    server_reset_user(call->server, call->session);
    session_shape_reply(call->session, call->reply);
    reply_simple(call->reply, "RESET");
}

const struct command command_reset = {
    .name = "RESET",
    .reply = "<RESET>",
    .summary = "Reset the connection to its initial state",
    .flags = COMMAND_FAST | COMMAND_NO_PAUSE | COMMAND_NO_AUTH | COMMAND_LOADING |
             COMMAND_NOT_QUEUED | COMMAND_ENDS_MULTI | COMMAND_SUBSCRIBER,
    .run = reset_run,
};

/* ---- READONLY READWRITE ---- */

/* Cluster clients send these; a server outside a cluster replies with this error. */
static void cluster_run(struct call *call) {
    reply_error(call->reply, "ERR This instance has cluster support disabled");
}

#define CLUSTER_ENTRY(word)                                                                        \
    {                                                                                              \
        .name = (word), .reply = "!",                                                              \
        .summary = "Replies an error: for cluster replicas, and this server has no cluster mode",  \
        .flags = COMMAND_FAST | COMMAND_LOADING, .run = cluster_run                                \
    }

const struct command command_readonly = CLUSTER_ENTRY("READONLY");
const struct command command_readwrite = CLUSTER_ENTRY("READWRITE");
