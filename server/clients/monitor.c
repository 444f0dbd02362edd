/* Formats the lines sent to monitors. See monitor.h. */
#include "server/clients/monitor.h"

#include <stdio.h>

#include "server/clients/server.h"

static void monitor_append_text(struct buffer *out, const char *text) {
    buffer_append(out, text, strlen(text));
}

static void monitor_append_quoted(struct buffer *out, struct bytes text) {
    static const char escaped[] = "\n\r\t\a\b\"\\";
    static const char letters[] = "nrtab\"\\";
    monitor_append_text(out, " \"");
    for (size_t i = 0; i < text.size; i++) {
        char byte = text.at[i];
        const char *found = memchr(escaped, byte, sizeof escaped - 1);
        char shown[5] = {byte, '\0'};
        if (found != NULL) {
            shown[0] = '\\';
            shown[1] = letters[found - escaped];
        } else if (byte < ' ' || byte > '~') {
            snprintf(shown, sizeof shown, "\\x%02x", (unsigned)(unsigned char)byte);
        }
        monitor_append_text(out, shown);
    }
    monitor_append_text(out, "\"");
}

/* Number of HELLO arguments in the option at index, its name included. */
static uint32_t monitor_option_size(const struct request *request, uint32_t index) {
    if (bytes_is(request->args[index], "AUTH") && index + 2 < request->count) {
        return 3;
    }
    return bytes_is(request->args[index], "SETNAME") ? 2 : 1;
}

/* One pass over the arguments, however many HELLO has. */
static void monitor_append_arguments(struct buffer *out, enum monitor_secrets secrets,
                                     const struct request *request) {
    uint32_t option_end = 2; /* end of the current HELLO option */
    bool is_option_secret = false;
    for (uint32_t index = 0; index < request->count && !out->is_broken; index++) {
        bool is_secret = secrets == MONITOR_SECRETS_ALL ? index > 0 : is_option_secret;
        if (secrets == MONITOR_SECRETS_BEHIND_AUTH && index == option_end) {
            uint32_t size = monitor_option_size(request, index);
            option_end = index + size;
            is_secret = false; /* the option's name */
            is_option_secret = size == 3;
        }
        monitor_append_quoted(out, is_secret ? BYTES("(redacted)") : request->args[index]);
    }
}

static void monitor_print_line(const struct session *session, const struct request *request,
                               enum monitor_secrets secrets, int64_t now_us, struct buffer *out) {
    char head[SESSION_ADDRESS_MAX + 64];
    size_t address_size = strlen(session->address);
    if (session->is_unix_socket && address_size > 2) {
        address_size -= 2; /* ":0", the port shown for a unix socket */
    }
    snprintf(head, sizeof head, "+%lld.%06lld [%d %s%.*s]", (long long)(now_us / 1000000),
             (long long)(now_us % 1000000), session->database,
             session->is_unix_socket ? "unix:" : "", (int)address_size, session->address);
    monitor_append_text(out, head);
    monitor_append_arguments(out, secrets, request);
    monitor_append_text(out, "\r\n");
}

void monitor_feed(struct server *server, const struct session *session,
                  const struct request *request, enum monitor_secrets secrets) {
    struct buffer line;
    buffer_init(&line, 0);
    monitor_print_line(session, request, secrets, server->clock.now_us, &line);
    for (struct session *monitor = server->monitor_first; monitor != NULL;
         monitor = monitor->links[SESSION_MONITORS].next) {
        struct buffer *out = server_push(server, monitor);
        if (out != NULL && line.is_broken) {
            /* Close the monitor: silently missing lines would be worse than none. */
            server_kill_session(server, monitor);
        } else if (out != NULL) {
            buffer_append(out, line.at, line.size);
        }
    }
    buffer_deinit(&line);
}
