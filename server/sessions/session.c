/* One client's state, which owns its names, its output and the queue of its transaction; and what they take.
 *
 * Invariant: client_memory.total is the sum of all sessions' counted_size. A session with a
 * size_class above 0 is in the list of that class; the others are in no list. */
#include "server/sessions/session.h"

#include <stdio.h>

#include "server/acl/acl.h"

static void session_forget(char **text) {
    memory_free(*text);
    *text = NULL;
}

void session_init(struct session *session, uint64_t id, int64_t monotonic_ms) {
    *session = (struct session){
        .id = id,
        .fd = -1,
        .protocol = 2,
        .created_at_ms = monotonic_ms,
        .active_at_ms = monotonic_ms,
    };
    buffer_init(&session->output, 0);
    buffer_init(&session->kept, 0);
}

void session_set_player(struct session *session, struct jwt_player *player) {
    memory_free(session->player);
    session->player = player;
}

void session_deinit(struct session *session) {
    session_forget(&session->name);
    session_forget(&session->library_name);
    session_forget(&session->library_version);
    session_set_player(session, NULL);
    memory_free(session->verified);
    session->verified = NULL;
    buffer_deinit(&session->output);
    buffer_deinit(&session->kept);
}

void session_reset(struct session *session) {
    session_forget(&session->name);
    session->protocol = 2;
    session->database = 0;
    session->is_no_evict = false;
    session->is_no_touch = false;
    session->has_strings = false;
    session->reply_mode = SESSION_REPLY_ON;
}

void session_link(struct session **first, struct session *session, enum session_list list) {
    session->links[list] = (struct session_link){.next = *first};
    if (*first != NULL) {
        (*first)->links[list].previous = session;
    }
    *first = session;
}

void session_unlink(struct session **first, struct session *session, enum session_list list) {
    struct session_link *link = &session->links[list];
    if (link->previous != NULL) {
        link->previous->links[list].next = link->next;
    } else {
        *first = link->next;
    }
    if (link->next != NULL) {
        link->next->links[list].previous = link->previous;
    }
    *link = (struct session_link){.next = NULL};
}

bool session_is_name(struct bytes text) {
    if (text.size > SESSION_NAME_MAX) {
        return false;
    }
    for (size_t i = 0; i < text.size; i++) {
        if (text.at[i] < '!' || text.at[i] > '~') {
            return false;
        }
    }
    return true;
}

bool session_set_text(char **name, struct bytes text) {
    if (text.size == 0) {
        session_forget(name);
        return true;
    }
    char *copy = memory_copy_text(text.at, text.size);
    if (copy == NULL) {
        return false;
    }
    memory_free(*name);
    *name = copy;
    return true;
}

/* ---- transactions: requests are allocated consecutively in large pieces, so that a million of them are freed as fast as a
 * few ---- */

enum {
    PIECE_SIZE_MIN = 256,       /* a short transaction takes one piece of this size */
    PIECE_SIZE_MAX = 64 * 1024, /* pieces double up to this size; a longer request gets its own */
};

struct transaction_piece {
    struct transaction_piece *next;
    size_t used;
    size_t size; /* including this header */
    char at[];
};

static struct transaction_piece *session_transaction_add_piece(struct transaction *transaction,
                                                               size_t room) {
    size_t size = PIECE_SIZE_MIN;
    if (transaction->pieces != NULL) {
        size = transaction->pieces->size * 2;
        size = size < PIECE_SIZE_MAX ? size : PIECE_SIZE_MAX;
    }
    if (size < sizeof(struct transaction_piece) + room) {
        size = sizeof(struct transaction_piece) + room;
    }
    struct transaction_piece *piece = memory_allocate(size);
    if (piece == NULL) {
        return NULL;
    }
    *piece = (struct transaction_piece){
        .next = transaction->pieces,
        .used = sizeof *piece,
        .size = size,
    };
    transaction->pieces = piece;
    transaction->memory_size += size;
    return piece;
}

bool session_transaction_queue(struct transaction *transaction, const struct request *request,
                               uint32_t command, unsigned command_flags) {
    size_t size = sizeof(struct transaction_request) + request->count * sizeof request->args[0];
    for (uint32_t i = 0; i < request->count; i++) {
        size += request->args[i].size;
    }
    size = (size + 7) & ~(size_t)7; /* aligned for a request */
    struct transaction_piece *piece = transaction->pieces;
    if (piece == NULL || piece->size - piece->used < size) {
        piece = session_transaction_add_piece(transaction, size);
        if (piece == NULL) {
            return false;
        }
    }
    void *room = (char *)piece + piece->used;
    piece->used += size;
    struct transaction_request *queued = room;
    char *at = (char *)&queued->args[request->count];
    for (uint32_t i = 0; i < request->count; i++) {
        struct bytes arg = request->args[i];
        queued->args[i] = (struct bytes){.at = at, .size = arg.size};
        if (arg.size > 0) {
            memcpy(at, arg.at, arg.size);
        }
        at += arg.size;
    }
    queued->next = NULL;
    queued->command = command;
    queued->request = (struct request){
        .count = request->count,
        .args = queued->args,
        .size = request->size,
    };
    if (transaction->last != NULL) {
        transaction->last->next = queued;
    } else {
        transaction->first = queued;
    }
    transaction->last = queued;
    transaction->count++;
    transaction->flags |= command_flags;
    return true;
}

void session_transaction_clear(struct transaction *transaction) {
    while (transaction->pieces != NULL) {
        struct transaction_piece *piece = transaction->pieces;
        transaction->pieces = piece->next;
        memory_free(piece);
    }
    *transaction = (struct transaction){.is_open = false};
}

/* ---- memory ---- */

static void session_leave_class(struct client_memory *memory, struct session *session) {
    uint8_t size_class = session->size_class;
    if (size_class == 0) {
        return;
    }
    session_unlink(&memory->classes[size_class], session, SESSION_BY_SIZE);
    if (memory->classes[size_class] == NULL) {
        memory->filled &= ~(UINT64_C(1) << size_class);
    }
    session->size_class = 0;
}

void session_memory_count(struct client_memory *memory, struct session *session) {
    /* Never 0 but for replicas, which count nowhere: client-output-buffer-limit bounds them. */
    size_t size = session_is_replica(session) ? 0 : session_memory_size(session);
    memory->total += size - session->counted_size;
    session->counted_size = size;
    uint8_t size_class =
        session->is_no_evict || size == 0 ? 0 : (uint8_t)(63 - __builtin_clzll(size));
    if (size_class != session->size_class) {
        session_leave_class(memory, session);
        session->size_class = size_class;
        if (size_class != 0) {
            session_link(&memory->classes[size_class], session, SESSION_BY_SIZE);
            memory->filled |= UINT64_C(1) << size_class;
        }
    }
}

void session_memory_forget(struct client_memory *memory, struct session *session) {
    session_leave_class(memory, session);
    memory->total -= session->counted_size;
    session->counted_size = 0;
}

struct session *session_memory_largest(const struct client_memory *memory) {
    return memory->filled != 0 ? memory->classes[63 - __builtin_clzll(memory->filled)] : NULL;
}

/* ---- its line ---- */

static void session_print_flags(const struct session *session, char *out) {
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

static const char *session_text_or_empty(const char *text) {
    return text != NULL ? text : "";
}

/* What Redis holds in a reply buffer of fixed size, which it does not count in omem. */
enum { REPLY_BUFFER_SIZE = 16384 };

/* Room for numbers and addresses; each name takes up to SESSION_NAME_MAX more. */
enum { LINE_SIZE_MAX = 2048 + ACL_TEXT_MAX };

void session_print_line(const struct session *session, const char *command, int64_t monotonic_ms,
                        struct buffer *out) {
    char flags[16];
    session_print_flags(session, flags);
    const struct buffer *output = &session->output;
    const struct transaction *transaction = &session->transaction;
    const uint32_t *counts = session->subscriptions.counts;
    size_t memory = session_memory_size(session);
    size_t queued = output->size > REPLY_BUFFER_SIZE ? output->capacity : 0;
    char *line = buffer_reserve(out, LINE_SIZE_MAX);
    if (line == NULL) {
        return;
    }
    int size = snprintf(
        line, LINE_SIZE_MAX,
        "id=%llu addr=%s laddr=%s fd=%d name=%s age=%lld idle=%lld flags=%s db=%d sub=%u psub=%u "
        "ssub=%u multi=%lld watch=%u qbuf=%zu qbuf-free=0 argv-mem=0 multi-mem=%zu rbs=%zu rbp=%zu "
        "obl=%zu oll=%d omem=%zu tot-mem=%zu events=%s cmd=%s user=%.*s redir=%lld resp=%d "
        "lib-name=%s lib-ver=%s\n",
        (unsigned long long)session->id, session->address, session->local_address, session->fd,
        session_text_or_empty(session->name),
        (long long)((monotonic_ms - session->created_at_ms) / 1000),
        (long long)((monotonic_ms - session->active_at_ms) / 1000), flags, session->database,
        counts[SUBSCRIPTION_CHANNEL], counts[SUBSCRIPTION_PATTERN], counts[SUBSCRIPTION_SHARD],
        transaction->is_open ? (long long)transaction->count : -1, watch_count(&session->watches),
        session->query_buffer_size, transaction->memory_size, output->capacity, output->capacity,
        output->size, queued > 0, queued, memory, output->size > 0 ? "rw" : "r", command,
        (int)session->user->name.size, session->user->name.at,
        session->tracking.is_on ? (long long)session->tracking.redirect : -1LL, session->protocol,
        session_text_or_empty(session->library_name),
        session_text_or_empty(session->library_version));
    CHECK(size > 0 && size < LINE_SIZE_MAX);
    buffer_commit(out, (size_t)size);
}
