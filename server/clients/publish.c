/* Writes messages to the subscribers' outputs. See publish.h. */
#include "server/clients/publish.h"

struct message {
    struct server *server;
    const char *word; /* "message" */
    struct bytes channel, text;
    uint64_t count; /* sent so far */
};

static void send_to(void *context, struct session *session, struct bytes pattern) {
    struct message *message = context;
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

uint64_t publish(struct server *server, enum subscription_kind kind, struct bytes channel,
                 struct bytes text) {
    struct message message = {
        .server = server,
        .word = kind == SUBSCRIPTION_SHARD ? "smessage" : "message",
        .channel = channel,
        .text = text,
    };
    if (server->subscriptions.client_count > 0) {
        subscription_each_receiver(&server->subscriptions, kind, channel, send_to, &message);
    }
    return message.count;
}
