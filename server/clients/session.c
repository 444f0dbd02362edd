/* One client's state. A session owns its names and its output. */
#include "server/clients/session.h"

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

void session_deinit(struct session *session) {
    session_forget(&session->name);
    session_forget(&session->library_name);
    session_forget(&session->library_version);
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
    char *copy = memory_allocate(text.size + 1);
    if (copy == NULL) {
        return false;
    }
    memcpy(copy, text.at, text.size);
    copy[text.size] = '\0';
    memory_free(*name);
    *name = copy;
    return true;
}
