/* A chained hash table; the hash is the id itself. See session_table.h. */
#include "server/clients/session_table.h"

enum { SLOTS_MIN = 64 };

static struct session **session_table_slot_of(const struct session_table *table, uint64_t id) {
    return &table->slots[id & (table->slot_count - 1)];
}

bool session_table_init(struct session_table *table) {
    struct session **slots = memory_allocate_zeroed(SLOTS_MIN * sizeof(struct session *));
    *table = (struct session_table){.slots = slots, .slot_count = SLOTS_MIN};
    return slots != NULL;
}

void session_table_deinit(struct session_table *table) {
    CHECK(table->count == 0);
    memory_free(table->slots);
    *table = (struct session_table){.slots = NULL};
}

/* Rehash into slot_count slots. If out of memory, the table stays unchanged. */
static void session_table_resize(struct session_table *table, uint32_t slot_count) {
    struct session_table resized = {
        .slots = memory_allocate_zeroed(slot_count * sizeof(struct session *)),
        .slot_count = slot_count,
        .count = table->count,
    };
    if (resized.slots == NULL) {
        return;
    }
    for (uint32_t i = 0; i < table->slot_count; i++) {
        struct session *session = table->slots[i];
        while (session != NULL) {
            struct session *next = session->same_slot;
            struct session **slot = session_table_slot_of(&resized, session->id);
            session->same_slot = *slot;
            *slot = session;
            session = next;
        }
    }
    memory_free(table->slots);
    *table = resized;
}

void session_table_put(struct session_table *table, struct session *session) {
    if (table->count == table->slot_count && table->slot_count <= UINT32_MAX / 2) {
        session_table_resize(table, table->slot_count * 2);
    }
    struct session **slot = session_table_slot_of(table, session->id);
    session->same_slot = *slot;
    *slot = session;
    table->count++;
}

void session_table_take(struct session_table *table, struct session *session) {
    struct session **at = session_table_slot_of(table, session->id);
    while (*at != session) {
        at = &(*at)->same_slot;
    }
    *at = session->same_slot;
    session->same_slot = NULL;
    table->count--;
    if (table->slot_count > SLOTS_MIN && table->count < table->slot_count / 8) {
        session_table_resize(table, table->slot_count / 2);
    }
}

struct session *session_table_find(const struct session_table *table, uint64_t id) {
    struct session *session = *session_table_slot_of(table, id);
    while (session != NULL && session->id != id) {
        session = session->same_slot;
    }
    return session;
}
