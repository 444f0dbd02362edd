/* Commands on keys, independent of what they hold: DEL UNLINK EXISTS TOUCH TYPE RENAME RENAMENX COPY.
 * A removed value is detached, and the tick frees it in steps. */
#include "server/commands/keyspace.h"
#include "server/commands/window.h"
#include "server/commands/writing.h"
#include "server/dispatch/call.h"
#include "server/dispatch/cost.h"
#include "server/dispatch/syntax.h"
#include "server/sessions/job.h"
#include "skiplist/keyspace/registry.h"
#include "skiplist/keyspace/registry_mirror.h"

/* ---- DEL, UNLINK, EXISTS, TOUCH, TYPE ---- */

static void del_run(struct call *call) {
    int64_t removed = 0;
    for (uint32_t i = 1; i < call->request->count; i++) {
        struct registry_key *key = call_find_key(call, call_arg(call, i));
        if (key != NULL) {
            registry_remove(call->registry, key);
            call_notify(call, SETTING_EVENT_GENERIC, "del", call_arg(call, i));
            removed++;
        }
    }
    reply_integer(call->reply, removed);
}

/* A key named twice counts twice, as in Redis. */
static void exists_run(struct call *call) {
    int64_t found = 0;
    for (uint32_t i = 1; i < call->request->count; i++) {
        found += call_find_key(call, call_arg(call, i)) != NULL;
    }
    reply_integer(call->reply, found);
}

static void type_run(struct call *call) {
    const struct registry_key *key = call_find_key(call, call_arg(call, 1));
    reply_simple(call->reply, key != NULL ? registry_kind_name(call->registry, key) : "none");
}

static const struct command_cost removing_cost = COST_ROW(
    COMMAND_BY_ARGUMENTS, cost_count_keys, 1500, 0, "key", "several commands of a thousand each");

#define REMOVE_ENTRY(word, what, all_flags)                                                        \
    {                                                                                              \
        .name = (word), .syntax = "key...", .reply = "i", .summary = (what),                       \
        .complexity = "O(1) for each key; the values' memory is freed in steps afterwards",        \
        .flags = (all_flags), .cost = &removing_cost, .run = del_run                               \
    }

const struct command command_del =
    REMOVE_ENTRY("DEL", "Removes keys and their values", COMMAND_WRITE);
const struct command command_unlink = REMOVE_ENTRY(
    "UNLINK", "Removes keys and their values, as DEL does", COMMAND_WRITE | COMMAND_FAST);
static const struct command_cost finding_cost = COST_ROW(
    COMMAND_BY_ARGUMENTS, cost_count_keys, 800, 0, "key", "several commands of a thousand each");

#define COUNT_ENTRY(word, what)                                                                    \
    {                                                                                              \
        .name = (word), .syntax = "key...", .reply = "i", .summary = (what),                       \
        .complexity = "O(1) for each key", .flags = COMMAND_READ | COMMAND_FAST,                   \
        .key_access = "RO", .cost = &finding_cost, .run = exists_run                               \
    }

const struct command command_exists =
    COUNT_ENTRY("EXISTS", "Counts how many of the given keys exist");
const struct command command_touch =
    COUNT_ENTRY("TOUCH", "Counts how many of the given keys exist; access times are not kept");
const struct command command_type = {
    .name = "TYPE",
    .syntax = "key",
    .reply = "<zset|hash|none>",
    .summary = "Replies zset for a board, hash for a hash, none for a missing key",
    .flags = COMMAND_READ | COMMAND_FAST,
    .key_access = "RO",
    .run = type_run,
};

/* ---- RENAME, RENAMENX, COPY ---- */

/* The variant says whether the new name must be free. */
static void rename_run(struct call *call) {
    bool only_new = *(const bool *)call->command->variant;
    struct bytes to = call_arg(call, 2);
    struct registry_key *key = call_find_key(call, call_arg(call, 1));
    if (key == NULL) {
        (void)call_refuse_no_key(call);
    } else if (!call_check_key(call, to) || !writing_may_name(call, to, key)) {
        return;
    } else if (key->kind == REGISTRY_BOARD &&
               window_find_board(call->registry, key, call->now_ms) != NULL) {
        /* They belong together by their names. */
        reply_error(call->reply, "ERR a board with a WINDOW cannot be renamed, nor can the boards "
                                 "of its periods: COPY makes one of its own");
    } else if (only_new && call_find_key(call, to) != NULL) {
        reply_integer(call->reply, 0);
    } else if (registry_rename(call->registry, key, call->session->database, to, call->now_ms) !=
               REGISTRY_OK) {
        call_out_of_memory(call);
    } else {
        if (!bytes_equal(call_arg(call, 1), to)) {
            call_notify(call, SETTING_EVENT_NEW, "new", to);
            call_notify(call, SETTING_EVENT_GENERIC, "rename_from", call_arg(call, 1));
            call_notify(call, SETTING_EVENT_GENERIC, "rename_to", to);
        }
        if (only_new) {
            reply_integer(call->reply, 1);
        } else {
            reply_ok(call->reply);
        }
    }
}

static const struct command_cost renaming_cost =
    COST_ROW(COMMAND_BY_MEMORY, cost_count_whole, 0, 2, "member or field", "");

#define RENAME_ENTRY(word, shape, what, all_flags, access, only_new)                               \
    {                                                                                              \
        .name = (word), .syntax = "key newkey:key", .reply = (shape),                              \
        .summary = "Renames a key" what, .flags = (all_flags),                                     \
        .key_access = "RW access delete|OW " access, .cost = &renaming_cost,                       \
        .variant = &(const bool){only_new}, .run = rename_run                                      \
    }

const struct command command_rename = RENAME_ENTRY(
    "RENAME", "<OK>", "; a key with the new name is replaced", COMMAND_WRITE, "update", false);
const struct command command_renamenx = RENAME_ENTRY("RENAMENX", "b", " if the new name is free",
                                                     COMMAND_WRITE | COMMAND_FAST, "insert", true);

/* Expiry: EXPIRE PEXPIRE EXPIREAT PEXPIREAT TTL PTTL EXPIRETIME PEXPIRETIME PERSIST. Times are
 * stored as unix milliseconds; call->now_ms is the current time. A time in the past removes the key
 * immediately. */

/* The command's variant: what its times mean. */
struct time_form {
    bool is_seconds;  /* else milliseconds */
    bool is_absolute; /* since 1970, else from now on */
};

static const struct time_form *keys_expire_form_of(const struct call *call) {
    return call->command->variant;
}

/* The point that the command's times are relative to. */
static int64_t keys_expire_base_ms_of(const struct call *call) {
    return keys_expire_form_of(call)->is_absolute ? 0 : call->now_ms;
}

/* ---- setting ---- */

struct conditions {
    bool is_nx; /* only if the key has no expiry */
    bool is_xx; /* only if the key has an expiry */
    bool is_gt; /* only if later than the current expiry; no expiry counts as infinite */
    bool is_lt; /* only if earlier */
};

static const struct binding expire_bindings[] = {
    {BIND("NX", struct conditions, is_nx)},
    {BIND("XX", struct conditions, is_xx)},
    {BIND("GT", struct conditions, is_gt)},
    {BIND("LT", struct conditions, is_lt)},
    {0},
};

static bool keys_expire_parse_conditions(struct call *call, struct conditions *given) {
    uint32_t index = 3;
    if (!syntax_read_options(call, &index, given)) {
        return false;
    }
    if (index < call->request->count) {
        struct bytes word = call_arg(call, index);
        int shown = bytes_shown_size(word, 128);
        return call_refuse_format(call, "ERR Unsupported option %.*s", shown, word.at);
    }
    if (given->is_nx && (given->is_xx || given->is_gt || given->is_lt)) {
        return call_refuse(call,
                           "ERR NX and XX, GT or LT options at the same time are not compatible");
    }
    if (given->is_gt && given->is_lt) {
        return call_refuse(call, "ERR GT and LT options at the same time are not compatible");
    }
    return true;
}

/* A time from now on is a duration, which clock steps do not change. */
static void expire_run(struct call *call) {
    struct conditions given = {0};
    int64_t time, time_ms;
    if (!keys_expire_parse_conditions(call, &given) ||
        !call_parse_integer(call, call_arg(call, 2), &time)) {
        return;
    }
    if (__builtin_mul_overflow(time, keys_expire_form_of(call)->is_seconds ? 1000 : 1, &time_ms) ||
        __builtin_add_overflow(time_ms, keys_expire_base_ms_of(call), &time_ms)) {
        reply_error_format(call->reply, "ERR invalid expire time in '%s' command",
                           command_full_name(command_index(call->command)));
        return;
    }
    struct registry_key *key = call_find_key(call, call_arg(call, 1));
    int64_t old_ms = key != NULL ? registry_expiry(call->registry, key) : REGISTRY_NO_EXPIRY;
    bool has_old = old_ms != REGISTRY_NO_EXPIRY;
    if (key == NULL || (given.is_nx && has_old) || (given.is_xx && !has_old) ||
        (given.is_gt && (!has_old || time_ms <= old_ms)) ||
        (given.is_lt && has_old && time_ms >= old_ms)) {
        reply_integer(call->reply, 0);
        return;
    }
    if (time_ms <= call->now_ms) {
        registry_remove(call->registry, key);
        call_notify(call, SETTING_EVENT_GENERIC, "del", call_arg(call, 1));
    } else if (registry_expiry_set(call->registry, key, time_ms,
                                   !keys_expire_form_of(call)->is_absolute) != REGISTRY_OK) {
        call_out_of_memory(call);
        return;
    } else {
        call_notify(call, SETTING_EVENT_GENERIC, "expire", call_arg(call, 1));
    }
    reply_integer(call->reply, 1);
}

/* An entry of those that set an expiry; the times are those of the variant. */
#define EXPIRE_ENTRY(word, times, what, ...)                                                       \
    {                                                                                              \
        .name = word, .syntax = "key " times " condition=[NX | XX | GT | LT]", .reply = "b",       \
        .bindings = expire_bindings, .summary = "Expires a key " what,                             \
        .complexity = "O(log n) in the keys that expire", .flags = COMMAND_WRITE | COMMAND_FAST,   \
        .variant = &(const struct time_form){__VA_ARGS__}, .run = expire_run                       \
    }

const struct command command_expire =
    EXPIRE_ENTRY("EXPIRE", "seconds:integer", "after some seconds", .is_seconds = true);
const struct command command_pexpire =
    EXPIRE_ENTRY("PEXPIRE", "milliseconds:integer", "after some milliseconds", .is_seconds = false);
const struct command command_expireat = EXPIRE_ENTRY("EXPIREAT", "unix-time-seconds:unix-time",
                                                     "at a point in time, given in unix seconds",
                                                     .is_seconds = true, .is_absolute = true);
const struct command command_pexpireat =
    EXPIRE_ENTRY("PEXPIREAT", "unix-time-milliseconds:unix-time",
                 "at a point in time, given in unix milliseconds", .is_absolute = true);

static void persist_run(struct call *call) {
    struct registry_key *key = call_find_key(call, call_arg(call, 1));
    if (key == NULL || registry_expiry(call->registry, key) == REGISTRY_NO_EXPIRY) {
        reply_integer(call->reply, 0);
        return;
    }
    if (registry_expiry_set(call->registry, key, REGISTRY_NO_EXPIRY, false) != REGISTRY_OK) {
        call_out_of_memory(call);
        return;
    }
    call_notify(call, SETTING_EVENT_GENERIC, "persist", call_arg(call, 1));
    reply_integer(call->reply, 1);
}

const struct command command_persist = {
    .name = "PERSIST",
    .syntax = "key",
    .reply = "b",
    .summary = "Removes a key's expiry",
    .complexity = "O(log n) in the keys that expire",
    .flags = COMMAND_WRITE | COMMAND_FAST,
    .run = persist_run,
};

/* ---- reading ---- */

/* -2: no such key, -1: no expiry. */
static void time_left_run(struct call *call) {
    const struct registry_key *key = call_find_key(call, call_arg(call, 1));
    int64_t expire_at_ms = key != NULL ? registry_expiry(call->registry, key) : REGISTRY_NO_EXPIRY;
    if (expire_at_ms == REGISTRY_NO_EXPIRY) {
        reply_integer(call->reply, key != NULL ? -1 : -2);
        return;
    }
    int64_t base_ms = keys_expire_base_ms_of(call);
    int64_t left_ms = expire_at_ms > base_ms ? expire_at_ms - base_ms : 0;
    /* Seconds are rounded to the nearest, as in Redis. */
    int64_t left_s = left_ms / 1000 + (left_ms % 1000 >= 500 ? 1 : 0);
    reply_integer(call->reply, keys_expire_form_of(call)->is_seconds ? left_s : left_ms);
}

/* An entry of those that reply an expiry. */
#define TIME_LEFT_ENTRY(word, what, ...)                                                           \
    {                                                                                              \
        .name = word, .syntax = "key", .reply = "i",                                               \
        .summary = what " a key expires; -1: it does not expire, -2: it does not exist",           \
        .flags = COMMAND_READ | COMMAND_FAST, .variant = &(const struct time_form){__VA_ARGS__},   \
        .run = time_left_run                                                                       \
    }

const struct command command_ttl = TIME_LEFT_ENTRY("TTL", "Seconds until", .is_seconds = true);
const struct command command_pttl =
    TIME_LEFT_ENTRY("PTTL", "Milliseconds until", .is_seconds = false);
const struct command command_expiretime = TIME_LEFT_ENTRY("EXPIRETIME", "The unix second at which",
                                                          .is_seconds = true, .is_absolute = true);
const struct command command_pexpiretime =
    TIME_LEFT_ENTRY("PEXPIRETIME", "The unix millisecond at which", .is_absolute = true);

/* Commands that find keys: KEYS SCAN RANDOMKEY. */

struct name_list {
    struct reply *reply;
    const struct glob *glob;
    uint64_t count;
};

static void keys_visit_name(void *context, struct bytes name) {
    struct name_list *names = context;
    if (glob_takes(names->glob, name)) {
        reply_bulk(names->reply, name);
        names->count++;
    }
}

static void keys_run(struct call *call) {
    struct glob glob;
    struct name_list names = {.reply = call->reply, .glob = &glob};
    if (!call_prepare_glob(call, call_arg(call, 1), &glob)) {
        return;
    }
    size_t mark = reply_array_begin(call->reply);
    registry_walk_each_name(call->registry, call->session->database, call->now_ms, keys_visit_name,
                            &names);
    reply_array_end(call->reply, mark, names.count);
}

const struct command command_keys = {
    .name = "KEYS",
    .syntax = "pattern",
    .reply = "[s]",
    .summary = "Lists every key that matches a pattern, all at once; SCAN does it in steps",
    .complexity = "O(n) in the keys of the database",
    .flags = COMMAND_READ | COMMAND_NAMES,
    .cost = COST(COMMAND_BY_MEMORY, cost_count_database, 17, 0, "key of the database", "`SCAN`"),
    .run = keys_run,
};

static void randomkey_run(struct call *call) {
    const struct registry_key *key = registry_walk_random(
        call->registry, call->session->database, server_random(call->server), call->now_ms);
    if (key == NULL) {
        reply_null(call->reply);
        return;
    }
    reply_bulk(call->reply, registry_name(key));
}

const struct command command_randomkey = {
    .name = "RANDOMKEY",
    .reply = "s?",
    .summary = "Draws a key of the database evenly at random; nil where the next 16,384 keys have "
               "expired and are not removed yet",
    .flags = COMMAND_READ | COMMAND_NAMES,
    .run = randomkey_run,
};

struct key_scan {
    struct scanning scanning; /* first: see SCANNING_OPTIONS */
    struct bytes type;        /* TYPE; at NULL: any */
    const struct registry *registry;
};

static const struct binding scan_bindings[] = {
    SCANNING_OPTIONS,
    {BIND("TYPE", struct key_scan, type)},
    {0},
};

static void keys_visit_key(void *context, const struct registry_key *key) {
    struct key_scan *scan = context;
    if ((scan->type.at == NULL || bytes_is(scan->type, registry_kind_name(scan->registry, key))) &&
        scanning_takes(&scan->scanning, registry_name(key))) {
        reply_bulk(&scan->scanning.found, registry_name(key));
        scan->scanning.found_count++;
    }
}

static void scan_run(struct call *call) {
    struct glob glob;
    struct key_scan scan = {.registry = call->registry};
    uint64_t cursor;
    scanning_begin(&scan.scanning, call, &glob);
    if (!call_parse_cursor(call, call_arg(call, 1), &cursor) || !syntax_read(call, &scan)) {
        return;
    }
    cursor = scanning_keys(&scan.scanning, call, cursor, UINT32_MAX, keys_visit_key, &scan);
    scanning_end(&scan.scanning, call, cursor);
}

const struct command command_scan = {
    .name = "SCAN",
    .syntax = "cursor:integer [MATCH pattern] [COUNT count:integer] [TYPE type]",
    .bindings = scan_bindings,
    .reply = "[cursor:s keys:[s]]",
    .summary = "Walks over the keys of the database in steps, from one cursor to the next; COUNT "
               "is a hint, and a step may be empty",
    .complexity = "O(COUNT) for each call, half a millisecond at the most; O(n) for the whole walk "
                  "over n keys",
    .flags = COMMAND_READ | COMMAND_NAMES,
    .run = scan_run,
};

/* OBJECT: what Redis reports about a value's internals, as far as it applies here. */

/* NULL: there is no such key, and nil is replied. */
static const struct registry_key *keys_find_object(struct call *call) {
    const struct registry_key *key = call_find_key(call, call_arg(call, 2));
    if (key == NULL) {
        reply_null(call->reply);
    }
    return key;
}

static void encoding_run(struct call *call) {
    const struct registry_key *key = keys_find_object(call);
    if (key != NULL) {
        reply_bulk_text(call->reply, key->kind == REGISTRY_HASH ? hash_encoding(registry_hash(key))
                                                                : "skiplist");
    }
}

static void refcount_run(struct call *call) {
    if (keys_find_object(call) != NULL) {
        reply_integer(call->reply, 1);
    }
}

/* The variant is the error. */
static void untracked_run(struct call *call) {
    if (keys_find_object(call) != NULL) {
        reply_error(call->reply, call->command->variant);
    }
}

static const struct command object_encoding = {
    .name = "ENCODING",
    .syntax = "key",
    .reply = "s?",
    .summary =
        "How a value is kept in memory: skiplist for a board, listpack or hashtable for a hash",
    .flags = COMMAND_READ,
    .key_access = "RO",
    .run = encoding_run,
};
#define UNTRACKED_ENTRY(word, what, own)                                                           \
    {                                                                                              \
        .name = (word), .syntax = "key", .reply = "!?", .summary = (what), .flags = COMMAND_READ,  \
        .key_access = "RO", .variant = (own), .run = untracked_run                                 \
    }

static const struct command object_freq = UNTRACKED_ENTRY(
    "FREQ", "Replies an error: access frequencies are not tracked",
    "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that "
    "when switching between policies at runtime LRU and LFU data will take some time to adjust.");
static const struct command object_idletime =
    UNTRACKED_ENTRY("IDLETIME", "Replies an error: access times are not tracked",
                    "ERR Idle times are not tracked, as nothing is ever evicted");
static const struct command object_refcount = {
    .name = "REFCOUNT",
    .syntax = "key",
    .reply = "i?",
    .summary = "How many keys share a value: always 1",
    .flags = COMMAND_READ,
    .key_access = "RO",
    .run = refcount_run,
};
const struct command command_object = {
    .name = "OBJECT",
    .summary = "How a key's value is kept",
    .complexity = "Depends on subcommand.",
    .subcommands = COMMAND_LIST(&object_encoding, &object_freq, &object_idletime, &object_refcount,
                                &call_help_command),
};

/* ---- COPY ----
 *
 * A long value is copied in steps between the commands of other clients (server/sessions/job.h):
 *
 *     copy    some entries a step, while the copy follows changes of the original (registry_mirror.h)
 *     store   in the step in which the copy is whole: the result is the original at that moment
 *
 * A source that is replaced meanwhile is copied from its beginning, and at the last attempt at once. In MULTI
 * a transaction's commands are not interrupted: there COPY is done at once. */

enum {
    AT_ONCE_MAX =
        4000, /* members, or fields and players' records that count as MEMBERS_PER_FIELD */
    ATTEMPTS_MAX = 8,
    FIELD_UNITS = 4,       /* what a field or a record takes, in members */
    MEMBERS_PER_FIELD = 8, /* a field has memory of its own, unlike a member */
};

struct copy_request {
    struct bytes from, to; /* names */
    uint32_t database;     /* of the source */
    int64_t to_database;
    bool is_replacing;
};

struct copying {
    struct job job; /* first */
    struct copy_request request;
    struct registry_mirror mirror; /* copy NULL: it has not begun */
    unsigned attempt_count;
    bool is_periodic; /* the board had a PERIOD when the user's rights were checked */
    bool is_copied;
    const char *error; /* NULL: none */
    char names[];      /* what the request's names point into */
};

/* ---- both ways ---- */

static bool keys_copy_check_database(const struct call *call, uint32_t index, void *target) {
    (void)index;
    return call_check_database(call, ((struct copy_request *)target)->to_database);
}

static const struct binding copy_bindings[] = {
    {BIND("DB", struct copy_request, to_database), .read = keys_copy_check_database},
    {BIND("REPLACE", struct copy_request, is_replacing)},
    {0},
};

static bool keys_copy_may_store(struct server *server, const struct copy_request *request) {
    return request->is_replacing || registry_find(server->registry, (uint32_t)request->to_database,
                                                  request->to, server->clock.now_ms) == NULL;
}

static void keys_copy_notify(struct server *server, const struct copy_request *request) {
    uint32_t database = (uint32_t)request->to_database;
    notify(server, SETTING_EVENT_NEW, "new", database, request->to);
    notify(server, SETTING_EVENT_GENERIC, "copy_to", database, request->to);
}

/* ---- in steps ---- */

static const char no_memory[] = "OOM out of memory";

/* true: that was the last step. */
static bool keys_copy_end(struct server *server, struct copying *copying,
                          enum registry_status (*store)(struct copying *copying, int64_t now_ms)) {
    if (keys_copy_may_store(server, &copying->request)) {
        copying->is_copied = store(copying, server->clock.now_ms) == REGISTRY_OK;
        copying->error = copying->is_copied ? NULL : no_memory;
    }
    if (copying->is_copied) {
        keys_copy_notify(server, &copying->request);
    }
    return true;
}

static enum registry_status keys_copy_store_mirror(struct copying *copying, int64_t now_ms) {
    return registry_mirror_copy_to(&copying->mirror, (uint32_t)copying->request.to_database,
                                   copying->request.to, now_ms);
}

static enum registry_status keys_copy_store_now(struct copying *copying, int64_t now_ms) {
    return registry_copy(copying->mirror.registry, copying->mirror.key,
                         (uint32_t)copying->request.to_database, copying->request.to, now_ms);
}

static bool keys_copy_is_periodic(const struct registry_key *key) {
    return key->kind == REGISTRY_BOARD && registry_options(key)->period.unit != PERIOD_NONE;
}

/* Begin, or begin again. true: it is over. */
static bool keys_copy_begin(struct server *server, struct copying *copying,
                            const struct registry_key *key) {
    registry_mirror_end(&copying->mirror);
    if (key == NULL) {
        return true;
    }
    if (keys_copy_is_periodic(key) && !copying->is_periodic) {
        copying->error = "TRYAGAIN the board has got a PERIOD while it was copied";
        return true;
    }
    if (copying->attempt_count++ == ATTEMPTS_MAX) {
        copying->mirror = (struct registry_mirror){.registry = server->registry, .key = key};
        return keys_copy_end(server, copying, keys_copy_store_now);
    }
    if (!registry_mirror_begin(&copying->mirror, server->registry, key)) {
        copying->error = no_memory;
    }
    return copying->error != NULL;
}

static bool keys_copy_is_ready(const struct server *server, const struct job *job) {
    (void)server;
    (void)job;
    return memory_is_ready();
}

static bool keys_copy_step(struct server *server, struct job *job) {
    struct copying *copying = (struct copying *)job;
    const struct copy_request *request = &copying->request;
    if (server_is_over_memory(server)) { /* many copies may have begun below it */
        copying->error = SERVER_OVER_MEMORY_ERROR;
        return true;
    }
    /* What is due for the source happens now, and may end the mirror. */
    const struct registry_key *key =
        registry_find(server->registry, request->database, request->from, server->clock.now_ms);
    if (copying->mirror.copy == NULL || key == NULL) {
        return keys_copy_begin(server, copying, key);
    }
    switch (registry_mirror_step(&copying->mirror, REGISTRY_MIRROR_STEP)) {
    case REGISTRY_MIRROR_MORE:
        return false;
    case REGISTRY_MIRROR_LOST:
        return keys_copy_begin(server, copying, key);
    case REGISTRY_MIRROR_OUT_OF_MEMORY:
        copying->error = no_memory;
        return true;
    case REGISTRY_MIRROR_WHOLE:
        break;
    }
    return keys_copy_end(server, copying, keys_copy_store_mirror);
}

static void keys_copy_answer(struct server *server, struct job *job, struct reply *reply) {
    const struct copying *copying = (const struct copying *)job;
    (void)server;
    if (copying->error != NULL) {
        reply_error(reply, copying->error);
    } else {
        reply_integer(reply, copying->is_copied);
    }
}

static void keys_copy_destroy(struct server *server, struct job *job) {
    (void)server;
    registry_mirror_end(&((struct copying *)job)->mirror);
    memory_free(job);
}

static const struct job_kind copy_kind = {.writes = true,
                                          .is_ready = keys_copy_is_ready,
                                          .step = keys_copy_step,
                                          .answer = keys_copy_answer,
                                          .destroy = keys_copy_destroy};

static void keys_copy_in_steps(const struct call *call, const struct copy_request *request,
                               const struct registry_key *key) {
    struct copying *copying =
        memory_allocate_zeroed(sizeof *copying + request->from.size + request->to.size);
    if (copying == NULL) {
        call_out_of_memory(call);
        return;
    }
    char *from = copying->names;
    char *to = from + request->from.size;
    memcpy(from, request->from.at, request->from.size);
    memcpy(to, request->to.at, request->to.size);
    copying->request = *request;
    copying->is_periodic = keys_copy_is_periodic(key);
    copying->request.from.at = from;
    copying->request.to.at = to;
    job_begin(call->server, call->session, &copy_kind, call->reply->is_silent, &copying->job);
}

/* ---- COPY ---- */

static void copy_run(struct call *call) {
    const struct session *session = call->session;
    struct copy_request request = {
        .from = call_arg(call, 1),
        .to = call_arg(call, 2),
        .database = session->database,
        .to_database = session->database,
    };
    if (!syntax_read(call, &request)) {
        return;
    }
    if ((uint32_t)request.to_database == request.database &&
        bytes_equal(request.from, request.to)) {
        reply_error(call->reply, "ERR source and destination objects are the same");
        return;
    }
    const struct registry_key *key = call_find_key(call, request.from);
    if (key == NULL) {
        reply_integer(call->reply, 0);
    } else if (!call_check_key(call, request.to) || !writing_may_name(call, request.to, key)) {
        return;
    } else if (!keys_copy_may_store(call->server, &request)) {
        reply_integer(call->reply, 0);
    } else {
        uint64_t fields =
            key->kind == REGISTRY_HASH ? hash_count(registry_hash(key)) : registry_note_count(key);
        uint64_t size = fields * MEMBERS_PER_FIELD +
                        (key->kind == REGISTRY_HASH ? 0 : board_count(&key->board));
        if (size > AT_ONCE_MAX && !session->transaction.is_running &&
            call->server->jobs.count < JOBS_MAX) {
            keys_copy_in_steps(call, &request, key);
        } else if (registry_copy(call->registry, key, (uint32_t)request.to_database, request.to,
                                 call->now_ms) != REGISTRY_OK) {
            call_out_of_memory(call);
        } else {
            keys_copy_notify(call->server, &request);
            reply_integer(call->reply, 1);
        }
    }
}

/* It holds the server in a transaction, and where too many long commands run already. */
static uint64_t keys_copy_count(const struct cost_view *view) {
    const struct registry_key *key = cost_key(view, 1);
    bool is_hash = key != NULL && key->kind == REGISTRY_HASH;
    uint64_t note_count = key != NULL ? registry_note_count(key) : 0;
    return view->call->session->transaction.is_open || view->call->server->jobs.count >= JOBS_MAX
               ? (uint64_t)cost_size(view, 1) * (is_hash ? FIELD_UNITS : 1) +
                     note_count * FIELD_UNITS
               : 0;
}

const struct command command_copy = {
    .name = "COPY",
    .syntax = "source:key destination:key [DB destination-db:integer] [REPLACE]",
    .bindings = copy_bindings,
    .reply = "b",
    .summary = "Copies a hash, or a board with its layout and reach times, to another key, with "
               "its expiry",
    .complexity = "O(n) in the members of the board or the fields of the hash, in steps between "
                  "other commands",
    .flags = COMMAND_WRITE | COMMAND_DENYOOM,
    .cost = COST(COMMAND_BY_PRODUCT, keys_copy_count, 18, 2,
                 "in `MULTI`: member of the board; a field of a "
                 "hash, or a player's record, counts as 4",
                 "`COPY` outside of `MULTI`"),
    .run = copy_run,
};
