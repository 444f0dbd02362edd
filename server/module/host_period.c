/* The timer of periods. See host_period.h. */
#include "server/module/host_period.h"

enum {
    RETRY_MS = 1000,     /* on a replica, and while nothing may change */
    SLEEP_MAX_MS = 1000, /* the clock may be set, or follow that of a master */
    ROLLS_A_TURN = 64,   /* each takes some microseconds */
    NOTES_MAX = 16 * 1024 * 1024,
};

struct note {
    int64_t end_ms;
    int database;
    uint32_t name_size;
    char name_at[];
};

/* A binary heap, the earliest first. */
static struct {
    struct note **at;
    uint32_t count, capacity;
    bool has_timer;
    uint64_t timer;
    int64_t timer_ms; /* when it fires, in server time */
    void (*roll)(struct host_context *ctx, struct host_string *name);
} notes;

static void host_period_swap(uint32_t a, uint32_t b) {
    struct note *note = notes.at[a];
    notes.at[a] = notes.at[b];
    notes.at[b] = note;
}

static void host_period_sift_up(uint32_t index) {
    while (index > 0 && notes.at[index]->end_ms < notes.at[(index - 1) / 2]->end_ms) {
        host_period_swap(index, (index - 1) / 2);
        index = (index - 1) / 2;
    }
}

static void host_period_sift_down(uint32_t index) {
    for (;;) {
        uint32_t least = index;
        for (uint32_t child = 2 * index + 1; child <= 2 * index + 2 && child < notes.count;
             child++) {
            least = notes.at[child]->end_ms < notes.at[least]->end_ms ? child : least;
        }
        if (least == index) {
            return;
        }
        host_period_swap(index, least);
        index = least;
    }
}

static struct note *host_period_take_first(void) {
    struct note *first = notes.at[0];
    notes.at[0] = notes.at[--notes.count];
    if (notes.count > 0) {
        host_period_sift_down(0);
    }
    return first;
}

static bool host_period_reserve(void) {
    if (notes.count < notes.capacity) {
        return true;
    }
    uint32_t capacity = notes.capacity > 0 ? notes.capacity * 2 : 64;
    struct note **at =
        notes.count < NOTES_MAX ? memory_resize(notes.at, capacity * sizeof(struct note *)) : NULL;
    if (at != NULL) {
        notes.at = at;
        notes.capacity = capacity;
    }
    return at != NULL;
}

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

static void host_period_on_timer(struct host_context *ctx, void *context) {
    (void)context;
    notes.has_timer = false;
    module_update_time();
    int64_t now_ms = module.server.clock.now_ms;
    if (!host_may_change(ctx)) {
        host_period_set_timer(ctx, RETRY_MS);
        return;
    }
    for (uint32_t i = 0; i < ROLLS_A_TURN && notes.count > 0 && notes.at[0]->end_ms <= now_ms;
         i++) {
        struct note *note = host_period_take_first();
        struct host_string *name = host_CreateString(ctx, note->name_at, note->name_size);
        if (host_SelectDb(ctx, note->database) == HOST_OK) {
            notes.roll(ctx, name);
        }
        host_FreeString(ctx, name);
        memory_free(note);
    }
    module_free_step();
    if (notes.count > 0 && !notes.has_timer) {
        host_period_set_timer(ctx, notes.at[0]->end_ms - now_ms);
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
    struct note *note = host_period_reserve() ? memory_allocate(sizeof *note + name.size) : NULL;
    if (note == NULL || database < 0) {
        memory_free(note);
        return;
    }
    note->end_ms = rules->period_end_ms;
    note->database = database;
    note->name_size = (uint32_t)name.size;
    memcpy(note->name_at, name.at, name.size);
    notes.at[notes.count++] = note;
    host_period_sift_up(notes.count - 1);
    if (!notes.has_timer || note->end_ms < notes.timer_ms) {
        host_period_set_timer(module.timer_context, note->end_ms - module.server.clock.now_ms);
    }
}
