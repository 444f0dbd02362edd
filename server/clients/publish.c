/* Writes messages to the subscribers' outputs. See publish.h. */
#include "server/clients/publish.h"

struct message {
    struct server *server;
    const char *word; /* "message" */
    struct bytes channel, text;
    bool has_board; /* it tells what happens to this board: */
    struct bytes board;
    uint64_t count; /* sent so far */
};

/* Asked for each message, so that it holds for patterns and after every change of rights. */
static bool publish_may_receive(const struct message *message, const struct session *session) {
    return !message->has_board || session->is_unlimited ||
           acl_user_may_read(session->user, message->board);
}

static void publish_send_to(void *context, struct session *session, struct bytes pattern) {
    struct message *message = context;
    if (!publish_may_receive(message, session)) {
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

uint64_t publish(struct server *server, enum subscription_kind kind, struct bytes channel,
                 struct bytes text) {
    struct message message = {
        .server = server,
        .word = kind == SUBSCRIPTION_SHARD ? "smessage" : "message",
        .channel = channel,
        .text = text,
    };
    if (server->subscriptions.client_count > 0) {
        message.has_board = follow_find_board(channel, &message.board);
        subscription_each_receiver(&server->subscriptions, kind, channel, publish_send_to,
                                   &message);
    }
    return message.count;
}
