/* See client_line.h. */
#include "server/dispatch/client_line.h"

#include <stdio.h>

#include "server/dispatch/command.h"

static void client_line_print_flags(const struct session *session, char *out) {
    const struct {
        bool is_set;
        char letter;
    } flags[] = {
        {session_is_replica(session), 'S'},
        {session->is_monitor, 'O'},
        {session_is_subscriber(session), 'P'},
        {session->transaction.is_open, 'x'},
        {session->wait.state != WAIT_NONE || session->is_postponed, 'b'},
        {session->tracking.is_on, 't'},
        {session->tracking.is_broken, 'R'},
        {session->tracking.is_broadcast, 'B'},
        {session->watches.is_stale, 'd'},
        {session->is_close_after_reply, 'c'},
        {session->is_killed, 'A'},
        {session->is_unix_socket, 'U'},
        {session->is_no_evict, 'e'},
        {session->is_no_touch, 'T'},
    };
    size_t count = 0;
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        if (flags[i].is_set) {
            out[count++] = flags[i].letter;
        }
    }
    out[count > 0 ? count : 1] = '\0';
    out[0] = count > 0 ? out[0] : 'N';
}

static const char *client_line_text_or_empty(const char *text) {
    return text != NULL ? text : "";
}

/* What Redis holds in a reply buffer of fixed size, which it does not count in omem. */
enum { REPLY_BUFFER_SIZE = 16384 };

/* Room for numbers and addresses; each name takes up to SESSION_NAME_MAX more. */
enum { CLIENT_LINE_MAX = 2048 + ACL_TEXT_MAX };

void client_line_print(const struct session *session, int64_t monotonic_ms, struct buffer *out) {
    char flags[16];
    client_line_print_flags(session, flags);
    const struct buffer *output = &session->output;
    const struct transaction *transaction = &session->transaction;
    const uint32_t *counts = session->subscriptions.counts;
    size_t memory = session_memory_size(session);
    size_t queued = output->size > REPLY_BUFFER_SIZE ? output->capacity : 0;
    char *line = buffer_reserve(out, CLIENT_LINE_MAX);
    if (line == NULL) {
        return;
    }
    const char *command = session->last_command != NULL
                              ? command_full_name(command_index(session->last_command))
                              : "NULL";
    int size = snprintf(
        line, CLIENT_LINE_MAX,
        "id=%llu addr=%s laddr=%s fd=%d name=%s age=%lld idle=%lld flags=%s db=%d sub=%u psub=%u "
        "ssub=%u multi=%lld watch=%u qbuf=%zu qbuf-free=0 argv-mem=0 multi-mem=%zu rbs=%zu rbp=%zu "
        "obl=%zu oll=%d omem=%zu tot-mem=%zu events=%s cmd=%s user=%.*s redir=%lld resp=%d "
        "lib-name=%s lib-ver=%s\n",
        (unsigned long long)session->id, session->address, session->local_address, session->fd,
        client_line_text_or_empty(session->name),
        (long long)((monotonic_ms - session->created_at_ms) / 1000),
        (long long)((monotonic_ms - session->active_at_ms) / 1000), flags, session->database,
        counts[SUBSCRIPTION_CHANNEL], counts[SUBSCRIPTION_PATTERN], counts[SUBSCRIPTION_SHARD],
        transaction->is_open ? (long long)transaction->count : -1, watch_count(&session->watches),
        session->query_buffer_size, transaction->memory_size, output->capacity, output->capacity,
        output->size, queued > 0, queued, memory, output->size > 0 ? "rw" : "r", command,
        (int)session->user->name.size, session->user->name.at,
        session->tracking.is_on ? (long long)session->tracking.redirect : -1LL, session->protocol,
        client_line_text_or_empty(session->library_name),
        client_line_text_or_empty(session->library_version));
    CHECK(size > 0 && size < CLIENT_LINE_MAX);
    buffer_commit(out, (size_t)size);
}

void client_line_log(struct server *server, const struct session *session, const char *reason,
                     struct bytes object, struct bytes user) {
    const char *context = session->transaction.is_open ? "multi" : "toplevel";
    struct buffer line;
    buffer_init(&line, 0);
    client_line_print(session, server->clock.monotonic_ms, &line);
    struct bytes text = {.at = line.at,
                         .size = line.size > 0 ? line.size - 1 : 0}; /* without its end */
    acl_log_add(&server->acl.log, (uint32_t)server->settings.acllog_max_len, reason, context,
                object, user, text, server->clock.now_ms);
    buffer_deinit(&line);
}
