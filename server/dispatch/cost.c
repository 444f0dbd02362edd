/* Cost estimates. See cost.h. */
#include "server/dispatch/cost.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <inttypes.h>
#include <stdio.h>

enum {
    MEMBER_BYTES = 48, /* used memory per member, including its name and its share of the index */
    NS_PER_MS = 1000000,
};

/* ---- growth within a transaction ---- */

/* The members that earlier commands of a transaction may add to each key. Open addressing, at most
 * half full. */
struct growth {
    struct growth_slot {
        uint64_t hash;  /* of the database and the key */
        uint64_t count; /* members; 0: free */
    } * slots;
    uint64_t mask;
    uint64_t seed;
};

/* The count of members of this key, at first 0. */
static uint64_t *cost_growth_of(const struct growth *growth, uint32_t database, struct bytes name) {
    uint64_t hash = XXH3_64bits_withSeed(name.at, name.size, growth->seed + database);
    uint64_t at = hash & growth->mask;
    while (growth->slots[at].count != 0 && growth->slots[at].hash != hash) {
        at = (at + 1) & growth->mask;
    }
    growth->slots[at].hash = hash;
    return &growth->slots[at].count;
}

/* ---- counting ---- */

const struct registry_key *cost_key(const struct cost_view *view, uint32_t key_arg) {
    return key_arg < view->call->request->count
               ? registry_find(view->call->registry, view->call->session->database,
                               call_arg(view->call, key_arg), view->call->now_ms)
               : NULL;
}

const struct board *cost_board(const struct cost_view *view, uint32_t key_arg) {
    return call_board(cost_key(view, key_arg));
}

uint32_t cost_growth(const struct cost_view *view, uint32_t key_arg) {
    if (view->growth == NULL || key_arg >= view->call->request->count) {
        return 0;
    }
    uint64_t count =
        *cost_growth_of(view->growth, view->call->session->database, call_arg(view->call, key_arg));
    return count < UINT32_MAX ? (uint32_t)count : UINT32_MAX;
}

/* Members or fields. */
static uint32_t cost_count_of(const struct registry_key *key) {
    return key == NULL                  ? 0
           : key->kind == REGISTRY_HASH ? hash_count(registry_hash(key))
                                        : board_count(&key->board);
}

uint32_t cost_size(const struct cost_view *view, uint32_t key_arg) {
    return cost_sum(cost_count_of(cost_key(view, key_arg)), cost_growth(view, key_arg));
}

uint64_t cost_count_keys(const struct cost_view *view) {
    return view->call->request->count - 1;
}

uint64_t cost_count_members(const struct cost_view *view) {
    return view->call->request->count - 2;
}

uint64_t cost_count_pairs(const struct cost_view *view) {
    return (view->call->request->count - 2) / 2;
}

uint64_t cost_of_result(const struct registry_key *key) {
    uint64_t units = 1;
    if (key == NULL || key->kind != REGISTRY_BOARD) {
        return units;
    }
    if (registry_options(key)->window.count > 0) {
        bool is_followed = !registry_options(key)->window.is_best && !registry_state(key)->is_anew;
        units += is_followed ? 1 : registry_options(key)->window.count / COST_PERIODS;
    }
    units += registry_options(key)->has_limits;
    return units + COST_TAG_UNITS * (uint64_t)board_layout(&key->board)->tags.count;
}

uint64_t cost_count_shares(const struct cost_view *view) {
    const struct registry_key *key = cost_key(view, 1);
    return key != NULL && key->kind == REGISTRY_BOARD ? registry_options(key)->window.count : 0;
}

uint64_t cost_count_scores(const struct cost_view *view) {
    return cost_count_pairs(view) * cost_of_result(cost_key(view, 1));
}

uint64_t cost_count_whole(const struct cost_view *view) {
    const struct registry_key *key = cost_key(view, 1);
    uint64_t note_count = key != NULL ? registry_note_count(key) : 0;
    return cost_sum(cost_count_of(key), cost_growth(view, 1)) + note_count;
}

uint64_t cost_count_database(const struct cost_view *view) {
    return registry_count(view->call->registry, view->call->session->database);
}

uint64_t cost_count_databases(const struct cost_view *view) {
    return registry_count_all(view->call->registry).keys;
}

uint64_t cost_count_memory(const struct cost_view *view) {
    (void)view;
    return memory_used() / MEMBER_BYTES;
}

/* ---- estimating ---- */

static uint64_t cost_time_of(const struct command *command, uint64_t unit_count) {
    uint64_t time_ns;
    uint64_t unit_ns = command->cost != NULL ? command->cost->unit_ns : 0;
    return __builtin_mul_overflow(unit_count, unit_ns, &time_ns) ? UINT64_MAX : time_ns;
}

/* Number of units of one command; without a cost, one. */
static uint64_t cost_count_units(struct call *call, const struct growth *growth) {
    const struct cost_view view = {.call = call, .growth = growth};
    return call->command->cost != NULL ? call->command->cost->count(&view) : 1;
}

static uint64_t cost_time_of_queue(struct call *call, const struct growth *growth) {
    uint64_t time_ns = 0;
    uint64_t exec_ns = call->command->cost->unit_ns;
    const struct transaction_request *queued = call->session->transaction.first;
    for (; queued != NULL; queued = queued->next) {
        call->command = command_by_index(queued->command);
        call->request = &queued->request;
        uint64_t unit_count = cost_count_units(call, growth);
        uint64_t own_ns = cost_time_of(call->command, unit_count);
        if (__builtin_add_overflow(time_ns, own_ns, &time_ns) ||
            __builtin_add_overflow(time_ns, exec_ns, &time_ns)) {
            return UINT64_MAX;
        }
        if (growth != NULL) {
            /* The key that the command may add members to; ZINCRBY: at most one. */
            const struct command *command = call->command;
            const unsigned puts = COMMAND_WRITE | COMMAND_DENYOOM;
            int grown = command->cost != NULL ? command->cost->grown_key : command->first_key;
            bool grows = command->cost != NULL || (command->flags & puts) == puts;
            uint32_t key = grows ? (uint32_t)grown : 0;
            if (key > 0 && unit_count > 0 && key < call->request->count) {
                *cost_growth_of(growth, call->session->database, call_arg(call, key)) += unit_count;
            }
        }
        /* SELECT determines the database of the keys after it. */
        int64_t database;
        if (bytes_is((struct bytes){call->command->name, strlen(call->command->name)}, "SELECT") &&
            bytes_parse_i64(call_arg(call, 1), &database) && database >= 0 &&
            database < REGISTRY_DATABASES) {
            call->session->database = (uint8_t)database;
        }
    }
    return time_ns;
}

uint64_t cost_estimate_ns(struct server *server, struct session *session,
                          const struct command *command, const struct request *request) {
    struct buffer nowhere;
    struct reply reply;
    buffer_init(&nowhere, 0);
    reply_init(&reply, &nowhere, session->protocol);
    reply.is_silent = true;
    struct call call = call_begin(server, session, command, request, &reply);
    uint64_t time_ns;
    if ((command->flags & COMMAND_RUNS_QUEUE) != 0) {
        uint8_t database = session->database;
        uint64_t slot_count = 4;
        while (slot_count < (uint64_t)session->transaction.count * 2) {
            slot_count *= 2;
        }
        struct growth growth = {.mask = slot_count - 1, .seed = server->hash_seed};
        growth.slots = memory_allocate_zeroed(slot_count * sizeof growth.slots[0]);
        /* If out of memory, use the current sizes. */
        time_ns = cost_time_of_queue(&call, growth.slots != NULL ? &growth : NULL);
        session->database = database;
        memory_free(growth.slots);
    } else {
        time_ns = cost_time_of(command, cost_count_units(&call, NULL));
    }
    buffer_deinit(&nowhere);
    return time_ns;
}

bool cost_is_refused(struct server *server, struct session *session, const struct command *command,
                     const struct request *request, char *text) {
    uint64_t limit_ms = (uint64_t)server->settings.busy_command_limit_ms;
    uint64_t time_ns = cost_estimate_ns(server, session, command, request);
    if (time_ns <= limit_ms * NS_PER_MS) {
        return false;
    }
    /* Rounded up, because it exceeds the limit. */
    uint64_t time_ms = time_ns / NS_PER_MS + (time_ns % NS_PER_MS != 0);
    snprintf(text, COST_TEXT_MAX,
             "TOOLONG %s would hold the server for about %" PRIu64
             " ms, and busy-command-limit is %" PRIu64 " ms",
             command->name, time_ms, limit_ms);
    return true;
}
