/* The timer of periods. See host_period.h. */
#include "server/module/host_period.h"

#include "skiplist/keyspace/expiry.h"

enum {
    RETRY_MS = 1000,     /* on a replica, and while nothing may change */
    SLEEP_MAX_MS = 1000, /* the clock may be set, or follow that of a master */
    ROLLS_A_TURN = 64,   /* each takes some microseconds */
    NOTES_MAX = 16 * 1024 * 1024,
};

struct note {
    uint32_t place; /* in the heap; first: its address is the note's */
    int database;
    uint32_t name_size;
    char name_at[];
};

static struct {
    struct expiry heap; /* of notes, by the ends of periods */
    bool has_timer;
    uint64_t timer;
    int64_t timer_ms; /* when it fires, in server time */
    void (*roll)(struct host_context *ctx, struct host_string *name);
} notes;

static void host_period_on_timer(struct host_context *ctx, void *context);

static void host_period_set_timer(struct host_context *ctx, int64_t delay_ms) {
    delay_ms = delay_ms < 1 ? 1 : delay_ms > SLEEP_MAX_MS ? SLEEP_MAX_MS : delay_ms;
    if (notes.has_timer) {
        host_StopTimer(ctx, notes.timer, NULL);
    }
    notes.timer_ms = module.server.clock.now_ms + delay_ms;
    notes.timer = host_CreateTimer(ctx, delay_ms, host_period_on_timer, NULL);
    notes.has_timer = true;
}

static void host_period_roll(struct host_context *ctx, struct note *note) {
    struct host_string *name = host_CreateString(ctx, note->name_at, note->name_size);
    if (host_SelectDb(ctx, note->database) == HOST_OK) {
        notes.roll(ctx, name);
    }
    host_FreeString(ctx, name);
    memory_free(note);
}

static void host_period_on_timer(struct host_context *ctx, void *context) {
    (void)context;
    notes.has_timer = false;
    module_update_time();
    int64_t now_ms = module.server.clock.now_ms;
    if (!host_may_change(ctx)) {
        host_period_set_timer(ctx, RETRY_MS);
        return;
    }
    struct expiry_entry first = expiry_first(&notes.heap);
    for (uint32_t i = 0; i < ROLLS_A_TURN && first.place != NULL && first.time_ms <= now_ms; i++) {
        expiry_remove(&notes.heap, first.place);
        host_period_roll(ctx, (struct note *)first.place);
        first = expiry_first(&notes.heap);
    }
    expiry_trim(&notes.heap);
    module_free_step();
    if (first.place != NULL && !notes.has_timer) {
        host_period_set_timer(ctx, first.time_ms - now_ms);
    }
}

void host_period_init(void (*roll)(struct host_context *ctx, struct host_string *name)) {
    notes.roll = roll;
}

void host_period_note(const struct registry_key *key, int database) {
    if (key->is_periodic) {
        host_period_note_name(registry_name(key), registry_rules(key), database);
    }
}

void host_period_note_name(struct bytes name, const struct rules *rules, int database) {
    int64_t end_ms = rules->period_end_ms;
    bool has_room = notes.heap.count < NOTES_MAX && expiry_reserve(&notes.heap);
    struct note *note =
        has_room && database >= 0 ? memory_allocate(sizeof *note + name.size) : NULL;
    if (note == NULL) {
        return;
    }
    *note = (struct note){
        .place = EXPIRY_NOWHERE, .database = database, .name_size = (uint32_t)name.size};
    memcpy(note->name_at, name.at, name.size);
    expiry_put(&notes.heap, end_ms, &note->place);
    if (!notes.has_timer || end_ms < notes.timer_ms) {
        host_period_set_timer(module.timer_context, end_ms - module.server.clock.now_ms);
    }
}
