/* MONITOR: a client that sees every command the server runs, as lines of Redis's form.
 *
 *     +1339518083.107412 [0 127.0.0.1:60866] "ZADD" "board" "1" "ann"
 *
 * Commands for operators (COMMAND_ADMIN) are not shown, and secrets never. */
#include <stdio.h>

#include "server/command.h"
#include "server/server.h"

static void append_text(struct buffer *out, const char *text) {
    buffer_append(out, text, strlen(text));
}

/* The two-character escape of a byte, or NULL. */
static const char *short_escape(char byte) {
    switch (byte) {
    case '\n':
        return "\\n";
    case '\r':
        return "\\r";
    case '\t':
        return "\\t";
    case '\a':
        return "\\a";
    case '\b':
        return "\\b";
    case '"':
        return "\\\"";
    case '\\':
        return "\\\\";
    default:
        return NULL;
    }
}

static void append_quoted(struct buffer *out, struct bytes text) {
    append_text(out, " \"");
    for (size_t i = 0; i < text.size; i++) {
        const char *escape = short_escape(text.at[i]);
        char shown[5] = {text.at[i], '\0'};
        if (escape == NULL && (text.at[i] < ' ' || text.at[i] > '~')) {
            snprintf(shown, sizeof shown, "\\x%02x", (unsigned)(unsigned char)text.at[i]);
        }
        append_text(out, escape != NULL ? escape : shown);
    }
    append_text(out, "\"");
}

/* Is args[index] a password, or beside one? AUTH hides all it is given, HELLO what follows its
 * word AUTH, as Redis does. */
static bool is_secret_arg(const struct command *command, const struct request *request,
                          uint32_t index) {
    if ((command->flags & COMMAND_SECRET) == 0 || index == 0) {
        return false;
    }
    if (command != command_find(BYTES("HELLO"))) {
        return true;
    }
    /* AUTH may be given more than once. */
    for (uint32_t i = 2; i < index; i++) {
        if (bytes_is(request->args[i], "AUTH") && i + 2 < request->count) {
            i += 2;
            if (index <= i) {
                return true;
            }
        } else {
            i += bytes_is(request->args[i], "SETNAME");
        }
    }
    return false;
}

static void print_line(const struct session *session, const struct command *command,
                       const struct request *request, int64_t now_us, struct buffer *out) {
    char head[SESSION_ADDRESS_MAX + 64];
    size_t address_size = strlen(session->address);
    if (session->is_unix_socket && address_size > 2) {
        address_size -= 2; /* ":0", the port of a socket without one */
    }
    snprintf(head, sizeof head, "+%lld.%06lld [%d %s%.*s]", (long long)(now_us / 1000000),
             (long long)(now_us % 1000000), session->database,
             session->is_unix_socket ? "unix:" : "", (int)address_size, session->address);
    append_text(out, head);
    for (uint32_t i = 0; i < request->count; i++) {
        bool is_secret = is_secret_arg(command, request, i);
        append_quoted(out, is_secret ? BYTES("(redacted)") : request->args[i]);
    }
    append_text(out, "\r\n");
}

void command_feed_monitors(struct server *server, const struct session *session,
                           const struct command *command, const struct request *request) {
    struct buffer line;
    buffer_init(&line, 0);
    print_line(session, command, request, server->now_us, &line);
    for (struct session *monitor = server->session_first; monitor != NULL;
         monitor = monitor->next) {
        if (!monitor->is_monitor || monitor->is_killed) {
            continue;
        }
        if (line.is_broken) {
            /* A monitor that missed a line without knowing would be worse than none. */
            server_kill_session(server, monitor);
        } else {
            buffer_append(&monitor->output, line.at, line.size);
        }
    }
    buffer_deinit(&line);
}

static void monitor_run(struct call *call) {
    if (call->session->transaction.is_running) {
        reply_error(call->reply, "ERR MONITOR isn't allowed for DENY BLOCKING client");
        return;
    }
    server_set_monitor(call->server, call->session, true);
    reply_ok(call->reply);
}

const struct command command_monitor = {
    .name = "MONITOR",
    .summary = "See every command that the server runs from now on",
    .complexity = "O(1)",
    .since = "1.0.0",
    .group = "server",
    .arity = 1,
    .flags = COMMAND_ADMIN | COMMAND_LOADING,
    .run = monitor_run,
};
