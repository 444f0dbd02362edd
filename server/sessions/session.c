/* One client's state, which owns its names and its output; the table of all; and what they take.
 *
 * Invariant: client_memory.total is the sum of all sessions' counted_size. A session with a
 * size_class above 0 is in the list of that class; the others are in no list. */
#include "server/sessions/session.h"

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
