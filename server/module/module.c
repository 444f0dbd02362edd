/* What all files of the module share: its state, its clock, the values of keys and when something is due; and, in the place of
 * server/system/log.c and digest.c, the host's log and no passwords. */
#include "server/module/module.h"

#include <stdarg.h>
#include <stdio.h>

#include "server/system/digest.h"
#include "server/system/log.h"
#include "skiplist/keyspace/expiry.h"
#include "skiplist/keyspace/registry_embedded.h"

struct module module;

#ifdef MODULE_TEST
static int64_t test_us, test_monotonic_ms;

void module_set_test_time(int64_t now_us, int64_t monotonic_ms) {
    test_us = now_us;
    test_monotonic_ms = monotonic_ms;
}

#endif

void module_update_time(void) {
    struct clock *clock = &module.server.clock;
#ifdef MODULE_TEST
    if (test_us != 0) {
        clock->now_us = test_us;
        clock->now_ms = test_us / 1000;
        clock->monotonic_ms = test_monotonic_ms;
        return;
    }
#endif
    clock_update(clock);
}

void module_raise_clock(struct host_context *ctx, int64_t time_us) {
    struct clock *clock = &module.server.clock;
    bool is_believed = host_is_trusted(ctx);
    module_update_time();
    if (is_believed || time_us - (clock->now_us - clock->lead_us) < CLOCK_STEP_US) {
        clock_raise(clock, time_us);
    }
}

/* Lines go to the host's log. */
void log_write(enum log_level level, const char *format, ...) {
    enum { LINE_MAX = 1024 };
    static const char *const levels[] = {"debug",   "verbose", "notice",
                                         "warning", "warning", "notice"};
    char line[LINE_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    host_Log(module.timer_context, levels[level], "%s", line);
}

/* Users and their passwords are the host's, and a `user` line is not among what the module reads. So nobody
 * calls this, and the module needs no OpenSSL. */
void digest_print(struct bytes text, char out[DIGEST_TEXT_SIZE]) {
    (void)text;
    (void)out;
    CHECK(false); /* a module has no passwords */
}

/* ---- values of the host's keys ----
 *
 * The host frees values in other threads, too (UNLINK, FLUSHALL ASYNC). The members go there; what is
 * shared, the options, is released in the main thread, from a list that any thread may push to. A value that the main
 * thread is at work on (has_remains) goes to that list with all it holds. */

enum {
    FREE_WORK = 256, /* members between two looks at the clock */
    FREE_NS = 500 * 1000,
    FREE_AGAIN_MS = 1,
};

static struct host_value *_Atomic freed;
static struct {
    struct host_value *freed;    /* taken from the list */
    struct host_value **remains; /* values with remains */
    uint32_t remains_count, remains_capacity;
} unfreed; /* of the main thread */

struct host_value *module_value_create(struct registry_key *key) {
    struct host_value *value = memory_allocate(sizeof *value);
    if (value != NULL) {
        *value = (struct host_value){.key = key};
    }
    return value;
}

struct host_value *module_value_of(struct host_key *opened) {
    return host_ModuleTypeGetType(opened) == module.type ? host_ModuleTypeGetValue(opened) : NULL;
}

struct host_value *module_value_of_board(struct host_key *opened) {
    struct host_value *value = module_value_of(opened);
    return value != NULL && value->key != NULL ? value : NULL;
}

static const struct board_options *module_value_free_key(struct registry_key *key) {
    return key != NULL ? registry_embedded_free(key) : NULL;
}

void module_value_free(struct host_value *value) {
    if (!atomic_load_explicit(&value->has_remains, memory_order_acquire)) {
        if (value->key == NULL && value->ids == NULL) {
            memory_free(value);
            return;
        }
        value->options = module_value_free_key(value->key);
        value->ids_options = module_value_free_key(value->ids);
        value->is_emptied = true;
    }
    value->next_freed = atomic_load_explicit(&freed, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&freed, &value->next_freed, value,
                                                  memory_order_release, memory_order_relaxed)) {}
}

/* ---- the main thread ---- */

static bool module_value_key_has_remains(const struct registry_key *key) {
    return key != NULL && board_has_remains(&key->board);
}

/* true: nothing is left of them. */
static bool module_value_free_remains_of(struct registry_key *key, uint32_t work) {
    return key == NULL || board_free_step(&key->board, work);
}

void module_value_note_remains(struct host_value *value) {
    if (atomic_load_explicit(&value->has_remains, memory_order_relaxed) ||
        (!module_value_key_has_remains(value->key) && !module_value_key_has_remains(value->ids))) {
        return;
    }
    if (unfreed.remains_count == unfreed.remains_capacity) {
        uint32_t capacity = unfreed.remains_capacity == 0 ? 16 : unfreed.remains_capacity * 2;
        struct host_value **resized =
            memory_resize(unfreed.remains, capacity * sizeof(struct host_value *));
        unfreed.remains = resized != NULL ? resized : unfreed.remains;
        unfreed.remains_capacity = resized != NULL ? capacity : unfreed.remains_capacity;
    }
    if (unfreed.remains_count == unfreed.remains_capacity) { /* no memory for a note of it */
        while (!module_value_free_remains_of(value->key, UINT32_MAX)) {}
        while (!module_value_free_remains_of(value->ids, UINT32_MAX)) {}
        return;
    }
    unfreed.remains[unfreed.remains_count++] = value;
    atomic_store_explicit(&value->has_remains, true, memory_order_relaxed);
}

static bool module_value_has_work(void) {
    return unfreed.freed != NULL || unfreed.remains_count > 0 ||
           atomic_load_explicit(&freed, memory_order_relaxed) != NULL;
}

static void module_value_free_later(struct registry_key **key) {
    if (*key != NULL) {
        registry_embedded_free_later(module.server.registry, *key);
        *key = NULL;
    }
}

/* Release what freed values have held, and free remains: about as much as work members. true: there is more. */
static bool module_value_step(uint32_t work) {
    enum { VALUE_WORK = 4 /* as long as so many members */ };
    if (unfreed.freed == NULL) {
        unfreed.freed = atomic_exchange_explicit(&freed, NULL, memory_order_acquire);
    }
    for (uint32_t done = 0; unfreed.freed != NULL && done < work; done += VALUE_WORK) {
        struct host_value *next = unfreed.freed->next_freed;
        struct host_value *value = unfreed.freed;
        if (value->is_emptied) {
            registry_embedded_release(module.server.registry, value->options);
            registry_embedded_release(module.server.registry, value->ids_options);
        } else {
            module_value_free_later(&value->key);
            module_value_free_later(&value->ids);
        }
        if (atomic_load_explicit(&value->has_remains, memory_order_relaxed)) {
            value->is_freed = true;
        } else {
            memory_free(value);
        }
        unfreed.freed = next;
    }
    /* Of the value that was noted last. */
    struct host_value *last =
        unfreed.remains_count > 0 ? unfreed.remains[unfreed.remains_count - 1] : NULL;
    if (last != NULL && module_value_free_remains_of(last->key, work) &&
        module_value_free_remains_of(last->ids, work)) {
        unfreed.remains_count--;
        if (last->is_freed) {
            memory_free(last);
        } else {
            atomic_store_explicit(&last->has_remains, false, memory_order_release);
        }
        if (unfreed.remains_count == 0) {
            memory_free(unfreed.remains);
            unfreed.remains = NULL;
            unfreed.remains_capacity = 0;
        }
    }
    return module_value_has_work();
}

static void module_value_free_again(struct host_context *ctx, void *context) {
    (void)ctx;
    (void)context;
    module.is_freeing = false;
    module_value_free_step();
}

void module_value_free_step(void) {
    struct registry *registry = module.server.registry;
    bool has_more = module_value_has_work() || registry_totals(registry)->unfreed > 0;
    uint64_t begin = has_more ? clock_ticks() : 0;
    while (has_more) {
        has_more = module_value_step(FREE_WORK);
        has_more |= registry_free_step(registry, FREE_WORK);
        if (module.is_freeing || clock_ticks_to_ns(clock_ticks() - begin) >= FREE_NS) {
            break;
        }
    }
    if (has_more && !module.is_freeing) {
        module.is_freeing = true;
        (void)host_CreateTimer(module.timer_context, FREE_AGAIN_MS, module_value_free_again, NULL);
    }
}

/* ---- what is due when ----
 *
 * What is due when: boards with a PERIOD, by its end; boards with STALE, by the next step of a pass; ids of results,
 * by when the oldest is to be forgotten. A timer of the host rolls boards over, has members leave, and forgets ids, on
 * masters only.
 *
 * A note is a hint: the key may have been renamed or removed since. What is found under the name
 * then decides. A look-up rolls over what it finds due, so a board that lost its note rolls over at the
 * next one. STALE and ids have one note each, whose number their value knows; a note with another number is dropped. */

enum {
    RETRY_MS = 1000,     /* on a replica, and while nothing may change */
    SLEEP_MAX_MS = 1000, /* the clock may be set, or follow that of a master */
    ROLLS_A_TURN = 64,   /* each takes some microseconds */
    TURN_NS = 500000,
    STALE_EVERY_MS = 30000, /* between two passes over a board */
    IDS_EVERY_MS = 1000,
    NOTES_MAX = 16 * 1024 * 1024,
};

struct note {
    uint32_t place; /* in the heap; first: its address is the note's */
    enum host_work kind;
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
    struct host_value_work work;
} notes;

static void module_on_timer(struct host_context *ctx, void *context);

static void module_set_timer(struct host_context *ctx, int64_t delay_ms) {
    delay_ms = delay_ms < 1 ? 1 : delay_ms > SLEEP_MAX_MS ? SLEEP_MAX_MS : delay_ms;
    if (notes.has_timer) {
        host_StopTimer(ctx, notes.timer, NULL);
    }
    notes.timer_ms = module.server.clock.now_ms + delay_ms;
    notes.timer = host_CreateTimer(ctx, delay_ms, module_on_timer, NULL);
    notes.has_timer = true;
}

static void module_carry_out(struct host_context *ctx, struct note *note, int64_t now_ms) {
    struct host_string *name = host_CreateString(ctx, note->name_at, note->name_size);
    struct host_due due = {.name = host_bytes(name),
                           .number = note->number,
                           .from_key = note->from_key,
                           .again_ms = now_ms + STALE_EVERY_MS};
    if (host_SelectDb(ctx, note->database) == HOST_OK &&
        !notes.work.run_on(ctx, name, true, notes.work.steps[note->kind], &due) &&
        note->kind != HOST_WORK_ROLL) {
        due.left = HOST_STALE_DONE; /* there was no memory to look at it */
    }
    host_FreeString(ctx, name);
    /* Put the note back for the next step, or free it. */
    if (due.left == HOST_STALE_GONE || !expiry_reserve(&notes.heap)) {
        memory_free(note);
        return;
    }
    bool has_more = due.left == HOST_STALE_MORE;
    note->from_key = has_more ? due.from_key : REGISTRY_STALE_BEGIN;
    expiry_put(&notes.heap, has_more ? now_ms : due.again_ms, &note->place);
}

static void module_on_timer(struct host_context *ctx, void *context) {
    (void)context;
    uint64_t begin = clock_ticks();
    notes.has_timer = false;
    module_update_time();
    int64_t now_ms = module.server.clock.now_ms;
    if (!host_may_change(ctx)) {
        module_set_timer(ctx, RETRY_MS);
        return;
    }
    struct expiry_entry first = expiry_first(&notes.heap);
    for (uint32_t i = 0; i < ROLLS_A_TURN && first.place != NULL && first.time_ms <= now_ms &&
                         clock_ticks_to_ns(clock_ticks() - begin) < TURN_NS;
         i++) {
        expiry_remove(&notes.heap, first.place);
        module_carry_out(ctx, (struct note *)first.place, now_ms);
        first = expiry_first(&notes.heap);
    }
    expiry_trim(&notes.heap);
    module_value_free_step();
    if (first.place != NULL && !notes.has_timer) {
        module_set_timer(ctx, first.time_ms - now_ms);
    }
}

void module_init_timer(const struct host_value_work *work) {
    notes.work = *work;
}

/* The number of the note; 0: it was not noted. */
static uint32_t module_put_note(enum host_work kind, struct bytes name, int database,
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
        module_set_timer(module.timer_context, time_ms - module.server.clock.now_ms);
    }
    return notes.last_number;
}

void module_note_ids(struct host_value *value, struct bytes name, int database) {
    int64_t now_ms = module.server.clock.now_ms;
    if (value->ids != NULL && value->ids_number == 0) {
        value->ids_number = module_put_note(HOST_WORK_IDS, name, database, now_ms + IDS_EVERY_MS);
    }
}

void module_note_due(struct host_value *value, struct bytes name, int database) {
    if (value->key != NULL) {
        const struct board_options *options = registry_options(value->key);
        int64_t now_ms = module.server.clock.now_ms;
        if (options->period.unit != PERIOD_NONE) {
            (void)module_put_note(HOST_WORK_ROLL, name, database, options->period_end_ms);
        }
        value->stale_number =
            options->stale_ms > 0
                ? module_put_note(HOST_WORK_STALE, name, database, now_ms + STALE_EVERY_MS)
                : 0;
    }
    value->ids_number = 0;
    module_note_ids(value, name, database);
}
