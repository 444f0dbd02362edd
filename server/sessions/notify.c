/* Messages, channels' names and lines to monitors. See notify.h. */
#include "server/sessions/notify.h"

#include <stdio.h>

#include "server/sessions/board_events.h"

/* ---- messages to subscribers ---- */

struct message {
    struct server *server;
    const char *word; /* "message" */
    struct bytes channel, text;
    bool has_board; /* it tells what happens to this board: */
    struct bytes board;
    uint64_t count; /* sent so far */
};

static void notify_deliver(void *context, void *owner, struct bytes pattern) {
    struct session *session = owner;
    struct message *message = context;
    /* Asked for each message, so that it holds for patterns and after every change of rights. */
    if (message->has_board && !session->is_unlimited &&
        !acl_user_may_read(session->user, message->board)) {
        return;
    }
    struct buffer *out = server_push(message->server, session);
    bool has_pattern = pattern.at != NULL;
    message->count++;
    if (out == NULL || out->is_broken) {
        return;
    }
    struct reply reply;
    reply_init(&reply, out, session->protocol);
    reply_push(&reply, 3U + has_pattern);
    reply_bulk_text(&reply, has_pattern ? "pmessage" : message->word);
    if (has_pattern) {
        reply_bulk(&reply, pattern);
    }
    reply_bulk(&reply, message->channel);
    reply_bulk(&reply, message->text);
}

uint64_t notify_publish(struct server *server, enum subscription_kind kind, struct bytes channel,
                        struct bytes text) {
    struct message message = {
        .server = server,
        .word = kind == SUBSCRIPTION_SHARD ? "smessage" : "message",
        .channel = channel,
        .text = text,
    };
    if (server->subscriptions.client_count > 0) {
        message.has_board = board_events_find_board(channel, &message.board);
        subscription_each_receiver(&server->subscriptions, kind, channel, notify_deliver, &message);
    }
    return message.count;
}

/* ---- events ---- */

enum { CHANNEL_MAX = 32 + REGISTRY_NAME_MAX };

static void notify_send_to(struct server *server, const char *space, uint32_t database,
                           struct bytes last, struct bytes message) {
    char channel[CHANNEL_MAX];
    int size = snprintf(channel, sizeof channel, "__%s@%u__:", space, database);
    CHECK(size > 0 && (size_t)size + last.size <= sizeof channel);
    memcpy(channel + size, last.at, last.size);
    (void)notify_publish(server, SUBSCRIPTION_CHANNEL,
                         (struct bytes){.at = channel, .size = (size_t)size + last.size}, message);
}

void notify_send(struct server *server, const char *event, uint32_t database, struct bytes name) {
    unsigned wanted = server->settings.notify_keyspace_events;
    if (server->subscriptions.client_count == 0 || name.size > REGISTRY_NAME_MAX) {
        return;
    }
    if ((wanted & SETTING_EVENT_KEYSPACE) != 0) {
        notify_send_to(server, "keyspace", database, name, bytes_from_text(event));
    }
    if ((wanted & SETTING_EVENT_KEYEVENT) != 0) {
        notify_send_to(server, "keyevent", database, bytes_from_text(event), name);
    }
}

void notify_board(struct server *server, uint32_t database, struct bytes name,
                  struct bytes message) {
    if (server->settings.notify_board_events && server->subscriptions.client_count > 0 &&
        name.size <= REGISTRY_NAME_MAX) {
        notify_send_to(server, "board", database, name, message);
    }
}

void notify_board_held(struct server *server, uint32_t database, struct bytes name, uint64_t id) {
    char message[32];
    if (server->settings.notify_board_events && server->subscriptions.client_count > 0 &&
        name.size <= REGISTRY_NAME_MAX) {
        int size = snprintf(message, sizeof message, "held %llu", (unsigned long long)id);
        notify_send_to(server, "held", database, name, (struct bytes){message, (size_t)size});
    }
}

void notify_board_rolled(struct server *server, uint32_t database, struct bytes name,
                         const struct bytes archive[2]) {
    char message[CHANNEL_MAX];
    size_t size = archive[0].size + archive[1].size;
    int used = snprintf(message, sizeof message, "%s", size > 0 ? "rolled " : "rolled");
    CHECK(used > 0 && (size_t)used + size <= sizeof message);
    if (server->subscriptions.client_count == 0) {
        return;
    }
    for (int i = 0; i < 2 && archive[i].size > 0; i++) {
        memcpy(message + used, archive[i].at, archive[i].size);
        used += (int)archive[i].size;
    }
    notify_send_to(server, "board", database, name,
                   (struct bytes){.at = message, .size = (size_t)used});
}

void notify_board_settled(struct server *server, uint32_t database, struct bytes name) {
    if (server->subscriptions.client_count > 0) {
        notify_send_to(server, "board", database, name, BYTES("settled"));
    }
}

/* ---- MONITOR ---- */

static void notify_append_quoted(struct buffer *out, struct bytes text) {
    static const char escaped[] = "\n\r\t\a\b\"\\";
    static const char letters[] = "nrtab\"\\";
    buffer_append_text(out, " \"");
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
        buffer_append_text(out, shown);
    }
    buffer_append_text(out, "\"");
}

void notify_monitor(struct server *server, const struct session *session,
                    const struct request *request, enum monitor_secrets secrets) {
    struct buffer line;
    buffer_init(&line, 0);
    char head[SESSION_ADDRESS_MAX + 64];
    size_t address_size = strlen(session->address);
    if (session->is_unix_socket && address_size > 2) {
        address_size -= 2; /* ":0", the port shown for a unix socket */
    }
    snprintf(head, sizeof head, "+%lld.%06lld [%d %s%.*s]",
             (long long)(server->clock.now_us / 1000000),
             (long long)(server->clock.now_us % 1000000), session->database,
             session->is_unix_socket ? "unix:" : "", (int)address_size, session->address);
    buffer_append_text(&line, head);
    /* One pass over the arguments, however many HELLO has. */
    uint32_t option_end = 2; /* end of the current HELLO option */
    bool is_option_secret = false;
    for (uint32_t index = 0; index < request->count && !line.is_broken; index++) {
        bool is_secret = secrets == MONITOR_SECRETS_ALL ? index > 0 : is_option_secret;
        if (secrets == MONITOR_SECRETS_BEHIND_AUTH && index == option_end) {
            is_option_secret = bytes_is(request->args[index], "AUTH") && index + 2 < request->count;
            bool is_name = !is_option_secret && bytes_is(request->args[index], "SETNAME");
            option_end = index + (is_option_secret ? 3 : is_name ? 2 : 1);
            is_secret = false; /* the option's name */
        }
        notify_append_quoted(&line, is_secret ? BYTES("(redacted)") : request->args[index]);
    }
    buffer_append_text(&line, "\r\n");
    for (struct session *monitor = server->sessions.monitors; monitor != NULL;
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
