/* Sessions by size class. See client_memory.h.
 *
 * Invariant: total is the sum of all sessions' counted_size. A session with a size_class above 0 is
 * in the list of that class; the others are in no list. */
#include "server/clients/client_memory.h"

/* Never 0 but for replicas, which count nowhere: client-output-buffer-limit bounds them. */
static size_t client_memory_size_of(const struct session *session) {
    return session_is_replica(session) ? 0 : session_memory_size(session);
}

static uint8_t client_memory_class_of(const struct session *session) {
    size_t size = session->counted_size;
    return session->is_no_evict || size == 0 ? 0 : (uint8_t)(63 - __builtin_clzll(size));
}

static void client_memory_leave_class(struct client_memory *memory, struct session *session) {
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

static void client_memory_enter_class(struct client_memory *memory, struct session *session,
                                      uint8_t size_class) {
    session->size_class = size_class;
    if (size_class != 0) {
        session_link(&memory->classes[size_class], session, SESSION_BY_SIZE);
        memory->filled |= UINT64_C(1) << size_class;
    }
}

void client_memory_count(struct client_memory *memory, struct session *session) {
    size_t size = client_memory_size_of(session);
    memory->total += size - session->counted_size;
    session->counted_size = size;
    uint8_t size_class = client_memory_class_of(session);
    if (size_class != session->size_class) {
        client_memory_leave_class(memory, session);
        client_memory_enter_class(memory, session, size_class);
    }
}

void client_memory_forget(struct client_memory *memory, struct session *session) {
    client_memory_leave_class(memory, session);
    memory->total -= session->counted_size;
    session->counted_size = 0;
}

struct session *client_memory_largest(const struct client_memory *memory) {
    return memory->filled != 0 ? memory->classes[63 - __builtin_clzll(memory->filled)] : NULL;
}
