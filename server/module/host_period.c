/* The timer of periods, of STALE and of ids. See host_period.h. */
#include "server/module/host_period.h"

#include "skiplist/keyspace/expiry.h"
#include "skiplist/keyspace/registry_stale.h"

enum {
    RETRY_MS = 1000,     /* on a replica, and while nothing may change */
    SLEEP_MAX_MS = 1000, /* the clock may be set, or follow that of a master */
    ROLLS_A_TURN = 64,   /* each takes some microseconds */
    TURN_NS = 500000,
    STALE_EVERY_MS = 30000, /* between two passes over a board */
    IDS_EVERY_MS = 1000,
    NOTES_MAX = 16 * 1024 * 1024,
};

enum note_kind { NOTE_ROLL, NOTE_STALE, NOTE_IDS };

struct note {
    uint32_t place; /* in the heap; first: its address is the note's */
    enum note_kind kind;
    int database;
    uint32_t number;   /* of STALE and ids */
    uint64_t from_key; /* of STALE: where the pass goes on */
    uint32_t name_size;
    char name_at[];
};

static struct {
    struct expiry heap; /* of notes, by the ends of periods */
    bool has_timer;
    uint64_t timer;
    int64_t timer_ms;     /* when it fires, in server time */
    uint32_t last_number; /* that a note got; two under one name cannot be 2^32 apart */
    struct host_period_work work;
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

/* Put the note back for the next step, or free it. */
static void host_period_go_on(struct note *note, enum host_stale left, int64_t again_ms) {
    if (left == HOST_STALE_GONE || !expiry_reserve(&notes.heap)) {
        memory_free(note);
        return;
    }
    if (left == HOST_STALE_DONE) {
        note->from_key = REGISTRY_STALE_BEGIN;
    }
    expiry_put(&notes.heap, again_ms, &note->place);
}

static void host_period_carry_out(struct host_context *ctx, struct note *note, int64_t now_ms) {
    struct host_string *name = host_CreateString(ctx, note->name_at, note->name_size);
    enum host_stale left = HOST_STALE_GONE;
    int64_t again_ms = now_ms + STALE_EVERY_MS;
    if (host_SelectDb(ctx, note->database) == HOST_OK) {
        switch (note->kind) {
        case NOTE_ROLL:
            notes.work.roll(ctx, name);
            break;
        case NOTE_STALE:
            left = notes.work.drop(ctx, name, note->number, &note->from_key);
            break;
        case NOTE_IDS:
            left = notes.work.forget(ctx, name, note->number, &again_ms);
            break;
        }
    }
    host_FreeString(ctx, name);
    host_period_go_on(note, left, left == HOST_STALE_MORE ? now_ms : again_ms);
}

static void host_period_on_timer(struct host_context *ctx, void *context) {
    (void)context;
    uint64_t begin = clock_ticks();
    notes.has_timer = false;
    module_update_time();
    int64_t now_ms = module.server.clock.now_ms;
    if (!host_may_change(ctx)) {
        host_period_set_timer(ctx, RETRY_MS);
        return;
    }
    struct expiry_entry first = expiry_first(&notes.heap);
    for (uint32_t i = 0; i < ROLLS_A_TURN && first.place != NULL && first.time_ms <= now_ms &&
                         clock_ticks_to_ns(clock_ticks() - begin) < TURN_NS;
         i++) {
        expiry_remove(&notes.heap, first.place);
        host_period_carry_out(ctx, (struct note *)first.place, now_ms);
        first = expiry_first(&notes.heap);
    }
    expiry_trim(&notes.heap);
    module_free_step();
    if (first.place != NULL && !notes.has_timer) {
        host_period_set_timer(ctx, first.time_ms - now_ms);
    }
}

void host_period_init(const struct host_period_work *work) {
    notes.work = *work;
}

/* The number of the note; 0: it was not noted. */
static uint32_t host_period_put_note(enum note_kind kind, struct bytes name, int database,
                                     int64_t time_ms) {
    bool has_room = notes.heap.count < NOTES_MAX && expiry_reserve(&notes.heap);
    struct note *note =
        has_room && database >= 0 ? memory_allocate(sizeof *note + name.size) : NULL;
    if (note == NULL) {
        return 0;
    }
    notes.last_number += notes.last_number == UINT32_MAX ? 2 : 1;
    *note = (struct note){.place = EXPIRY_NOWHERE,
                          .kind = kind,
                          .database = database,
                          .number = notes.last_number,
                          .from_key = REGISTRY_STALE_BEGIN,
                          .name_size = (uint32_t)name.size};
    memcpy(note->name_at, name.at, name.size);
    expiry_put(&notes.heap, time_ms, &note->place);
    if (!notes.has_timer || time_ms < notes.timer_ms) {
        host_period_set_timer(module.timer_context, time_ms - module.server.clock.now_ms);
    }
    return notes.last_number;
}

static void host_period_note_board(struct host_value *value, struct bytes name, int database) {
    const struct rules *rules = registry_rules(value->key);
    int64_t now_ms = module.server.clock.now_ms;
    if (rules->period.unit != PERIOD_NONE) {
        (void)host_period_put_note(NOTE_ROLL, name, database, rules->period_end_ms);
    }
    value->stale_number = rules->stale_ms > 0 ? host_period_put_note(NOTE_STALE, name, database,
                                                                     now_ms + STALE_EVERY_MS)
                                              : 0;
}

void host_period_note_ids(struct host_value *value, struct bytes name, int database) {
    int64_t now_ms = module.server.clock.now_ms;
    if (value->ids != NULL && value->ids_number == 0) {
        value->ids_number = host_period_put_note(NOTE_IDS, name, database, now_ms + IDS_EVERY_MS);
    }
}

void host_period_note(struct host_value *value, struct bytes name, int database) {
    if (value->key != NULL) {
        host_period_note_board(value, name, database);
    }
    value->ids_number = 0;
    host_period_note_ids(value, name, database);
}
