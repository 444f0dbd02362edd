/* Writes the channels' names. See notify.h. */
#include "server/sessions/notify.h"

#include <stdio.h>

#include "server/sessions/broadcast.h"

enum { CHANNEL_MAX = 32 + REGISTRY_NAME_MAX };

static void notify_send_to(struct server *server, const char *space, uint32_t database,
                           struct bytes last, struct bytes message) {
    char channel[CHANNEL_MAX];
    int size = snprintf(channel, sizeof channel, "__%s@%u__:", space, database);
    CHECK(size > 0 && (size_t)size + last.size <= sizeof channel);
    memcpy(channel + size, last.at, last.size);
    (void)broadcast_publish(server, SUBSCRIPTION_CHANNEL,
                            (struct bytes){.at = channel, .size = (size_t)size + last.size},
                            message);
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
