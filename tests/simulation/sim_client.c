/* See sim_client.h. */
#include "tests/simulation/sim_client.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/simulation/sim_events.h"
#include "tests/simulation/sim_fiber.h"
#include "tests/simulation/sim_process.h"

enum { TEXT_MAX = 4096 };

static void sim_client_wake(void *fiber) {
    sim_fiber_wake(fiber);
}

void sim_client_close(struct sim_client *client) {
    if (client->socket != NULL) {
        sim_socket_close(client->socket, false);
        client->socket = NULL;
    }
    client->size = 0;
    client->server = -1;
}

bool sim_client_connect(struct sim_client *client, int server, int64_t timeout_ns) {
    int64_t until = sim_now() + timeout_ns;
    sim_client_close(client);
    client->socket = sim_socket_create(client->machine);
    client->socket->on_change = sim_client_wake;
    client->socket->context = sim_fiber_current();
    (void)sim_socket_connect(client->socket, server, SIM_PORT);
    while (client->socket->state == SIM_SOCKET_CONNECTS && sim_now() < until) {
        sim_fiber_wait(until);
    }
    if (client->socket->state != SIM_SOCKET_OPEN) {
        sim_client_close(client);
        return false;
    }
    client->server = server;
    return true;
}

/* ---- replies ---- */

/* Parse one reply at *at into replies[*used]; replies may be NULL, to count. false: it is not whole. */
static bool sim_client_parse(const char **at, const char *end, struct sim_reply *replies,
                             size_t *used) {
    const char *line_end = memchr(*at, '\n', (size_t)(end - *at));
    if (line_end == NULL) {
        return false;
    }
    struct sim_reply reply = {.at = *at + 1, .size = (size_t)(line_end - *at) - 2};
    size_t own = (*used)++;
    char kind = **at;
    *at = line_end + 1;
    reply.number = kind == '+' || kind == '-' ? 0 : strtoll(reply.at, NULL, 10);
    reply.kind = kind == '+'   ? SIM_STATUS
                 : kind == '-' ? SIM_ERROR
                 : kind == ':' ? SIM_INTEGER
                 : kind == '$' ? SIM_BULK
                               : SIM_ARRAY;
    if (kind == '$' || kind == '*') {
        if (reply.number < 0) {
            reply.kind = SIM_NIL;
        } else if (kind == '$') {
            if (end - *at < reply.number + 2) {
                return false;
            }
            reply.at = *at;
            reply.size = (size_t)reply.number;
            reply.number = strtoll(reply.at, NULL, 10);
            *at += reply.size + 2;
        } else {
            reply.count = (size_t)reply.number;
            reply.items = replies != NULL ? &replies[*used] : NULL;
            for (size_t i = 0; i < reply.count; i++) {
                if (!sim_client_parse(at, end, replies, used)) {
                    return false;
                }
            }
        }
    }
    reply.whole = *used - own;
    if (replies != NULL) {
        replies[own] = reply;
    }
    return true;
}

const struct sim_reply *sim_reply_item(const struct sim_reply *array, size_t index) {
    const struct sim_reply *item = array->items;
    if (array->whole == array->count + 1) { /* no item has items */
        return item + index;
    }
    for (size_t i = 0; i < index; i++) {
        item += item->whole;
    }
    return item;
}

bool sim_reply_is(const struct sim_reply *reply, const char *text) {
    return reply->size == strlen(text) && memcmp(reply->at, text, reply->size) == 0;
}

/* The last of `wanted` replies; NULL: they are not all there. */
static const struct sim_reply *sim_client_find(struct sim_client *client, size_t wanted) {
    const char *at = client->input, *end = client->input + client->size;
    const char *last = at;
    size_t used = 0;
    for (size_t i = 0; i < wanted; i++) {
        last = at;
        used = 0;
        if (!sim_client_parse(&at, end, NULL, &used)) {
            return NULL;
        }
    }
    if (used > client->reply_capacity) {
        client->reply_capacity = used * 2;
        client->replies =
            realloc(client->replies, client->reply_capacity * sizeof *client->replies);
    }
    used = 0;
    (void)sim_client_parse(&last, end, client->replies, &used);
    return client->replies;
}

/* ---- asking ---- */

static size_t sim_client_encode(const char *text, char *out, size_t *request_count) {
    size_t size = 0;
    *request_count = 0;
    while (*text != '\0') {
        size_t words = 1, length = strcspn(text, "|");
        for (size_t i = 0; i < length; i++) {
            words += text[i] == ' ';
        }
        size += (size_t)sprintf(out + size, "*%zu\r\n", words);
        for (size_t i = 0; i < words; i++) {
            size_t word = strcspn(text, " |");
            size += (size_t)sprintf(out + size, "$%zu\r\n%.*s\r\n", word, (int)word, text);
            text += word + (text[word] != '\0');
        }
        ++*request_count;
    }
    return size;
}

static bool sim_client_send(struct sim_client *client, const char *bytes, size_t size,
                            int64_t until) {
    size_t done = 0;
    while (done < size && sim_now() < until) {
        ssize_t sent = sim_socket_send(client->socket, bytes + done, size - done);
        if (sent > 0) {
            done += (size_t)sent;
        } else if (sent == -11) {
            sim_fiber_wait(until);
        } else {
            return false;
        }
    }
    return done == size;
}

static bool sim_client_receive(struct sim_client *client, int64_t until) {
    enum { PIECE = 16 << 10 };
    for (;;) {
        if (client->size + PIECE > client->capacity) {
            client->capacity = client->capacity * 2 + PIECE;
            client->input = realloc(client->input, client->capacity);
        }
        ssize_t got =
            sim_socket_receive(client->socket, client->input + client->size, PIECE, false);
        if (got > 0) {
            client->size += (size_t)got;
            return true;
        }
        client->was_left = got != -11;
        if (client->was_left || sim_now() >= until) {
            return false;
        }
        sim_fiber_wait(until);
    }
}

const struct sim_reply *sim_client_ask(struct sim_client *client, int64_t timeout_ns,
                                       const char *format, ...) {
    char text[TEXT_MAX], bytes[4 * TEXT_MAX];
    size_t wanted;
    int64_t until = sim_now() + timeout_ns;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (client->socket == NULL) {
        return NULL;
    }
    client->size = 0;
    size_t size = sim_client_encode(text, bytes, &wanted);
    if (sim_client_send(client, bytes, size, until)) {
        do {
            if (!sim_client_receive(client, until)) {
                break;
            }
            const struct sim_reply *reply = sim_client_find(client, wanted);
            if (reply != NULL) {
                return reply;
            }
        } while (true);
    }
    sim_client_close(client);
    return NULL;
}
