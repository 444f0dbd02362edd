/* Reading fields: HGET HMGET HGETALL HKEYS HVALS HLEN HEXISTS HSTRLEN; and HSCAN: all fields of a
 * hash, in steps. A field that stays in the hash during the whole scan is returned at least once,
 * whatever else changes. */
#include "server/commands/scanning.h"
#include "server/dispatch/cost.h"

/* The value of a field, or nil. hash may be NULL. */
static void hash_get_reply_value_of(const struct call *call, const struct hash *hash,
                                    struct bytes field) {
    struct bytes value;
    if (hash != NULL && hash_find(hash, field, &value)) {
        reply_bulk(call->reply, value);
    } else {
        reply_null(call->reply);
    }
}

static void hget_run(struct call *call) {
    const struct hash *hash;
    if (call_find_hash(call, call_arg(call, 1), &hash)) {
        hash_get_reply_value_of(call, hash, call_arg(call, 2));
    }
}

const struct command command_hget = {
    .name = "HGET",
    .syntax = "key field",
    .reply = "s?",
    .summary = "The value of a field of a hash",
    .flags = COMMAND_READ | COMMAND_FAST,
    .reads_hash = true,
    .run = hget_run,
};

static void hmget_run(struct call *call) {
    const struct hash *hash;
    if (!call_find_hash(call, call_arg(call, 1), &hash)) {
        return;
    }
    reply_array(call->reply, call->request->count - 2);
    for (uint32_t i = 2; i < call->request->count && !reply_is_lost(call->reply); i++) {
        hash_get_reply_value_of(call, hash, call_arg(call, i));
    }
}

const struct command command_hmget = {
    .name = "HMGET",
    .syntax = "key field...",
    .reply = "[s?]",
    .summary = "The values of several fields of a hash, in the order they are asked for",
    .complexity = "O(1) for each field",
    .flags = COMMAND_READ | COMMAND_FAST,
    .reads_hash = true,
    .cost = COST(COMMAND_BY_ARGUMENTS, cost_count_members, 300, 0, "requested field",
                 "several commands of a thousand each"),
    .run = hmget_run,
};

/* ---- the whole hash ---- */

/* The command's variant: what it replies of each field. */
struct parts {
    bool with_field, with_value;
};

static void hash_get_reply_parts(const struct call *call, const struct hash *hash,
                                 const struct parts *parts) {
    struct hash_cursor cursor = hash_begin(hash);
    struct hash_pair pair;
    while (!reply_is_lost(call->reply) && hash_next(&cursor, &pair)) {
        if (parts->with_field) {
            reply_bulk(call->reply, pair.field);
        }
        if (parts->with_value) {
            reply_bulk(call->reply, pair.value);
        }
    }
}

static void whole_run(struct call *call) {
    const struct parts *parts = call->command->variant;
    const struct hash *hash;
    if (!call_find_hash(call, call_arg(call, 1), &hash)) {
        return;
    }
    uint32_t count = hash != NULL ? hash_count(hash) : 0;
    if (parts->with_field && parts->with_value) {
        reply_map(call->reply, count);
    } else {
        reply_array(call->reply, count);
    }
    if (count > 0) {
        hash_get_reply_parts(call, hash, parts);
    }
}

static const struct command_cost whole_cost =
    COST_ROW(COMMAND_BY_MEMORY, cost_count_whole, 60, 0, "field of the hash",
             "`HSCAN`, or `HMGET` of what is needed");

#define WHOLE_ENTRY(word, shape, what, ...)                                                        \
    {                                                                                              \
        .name = word, .syntax = "key", .reply = shape, .summary = what,                            \
        .complexity = "O(n) in the fields of the hash", .flags = COMMAND_READ, .reads_hash = true, \
        .cost = &whole_cost, .variant = &(const struct parts){__VA_ARGS__}, .run = whole_run       \
    }

const struct command command_hgetall =
    WHOLE_ENTRY("HGETALL", "{s}", "Every field of a hash with its value", .with_field = true,
                .with_value = true);
const struct command command_hkeys =
    WHOLE_ENTRY("HKEYS", "[s]", "The names of all fields of a hash", .with_field = true);
const struct command command_hvals =
    WHOLE_ENTRY("HVALS", "[s]", "The values of all fields of a hash", .with_value = true);

/* ---- sizes ---- */

static void hlen_run(struct call *call) {
    const struct hash *hash;
    if (call_find_hash(call, call_arg(call, 1), &hash)) {
        reply_integer(call->reply, hash != NULL ? hash_count(hash) : 0);
    }
}

const struct command command_hlen = {
    .name = "HLEN",
    .syntax = "key",
    .reply = "i",
    .summary = "How many fields a hash has",
    .flags = COMMAND_READ | COMMAND_FAST,
    .key_access = "RO",
    .reads_hash = true,
    .run = hlen_run,
};

/* The variant: is the value's size replied, or whether there is a value? */
static void field_run(struct call *call) {
    const struct hash *hash;
    struct bytes value;
    if (!call_find_hash(call, call_arg(call, 1), &hash)) {
        return;
    }
    bool is_there = hash != NULL && hash_find(hash, call_arg(call, 2), &value);
    bool is_size = *(const bool *)call->command->variant;
    reply_integer(call->reply, !is_there ? 0 : is_size ? (int64_t)value.size : 1);
}

#define FIELD_ENTRY(word, shape, what, ...)                                                        \
    {                                                                                              \
        .name = word, .syntax = "key field", .reply = shape, .summary = what,                      \
        .flags = COMMAND_READ | COMMAND_FAST, .key_access = "RO", .reads_hash = true,              \
        .variant = &(const bool){__VA_ARGS__}, .run = field_run                                    \
    }

const struct command command_hexists =
    FIELD_ENTRY("HEXISTS", "b", "Whether a hash has a field: 1 or 0", false);
const struct command command_hstrlen =
    FIELD_ENTRY("HSTRLEN", "i", "How many bytes the value of a field of a hash has", true);

static const struct option_row hscan_options[] = {SCANNING_OPTIONS, {0}};

static void hash_get_visit(void *context, const struct hash_pair *pair) {
    struct scanning *scanning = context;
    if (scanning_takes(scanning, pair->field)) {
        reply_bulk(&scanning->found, pair->field);
        reply_bulk(&scanning->found, pair->value);
        scanning->found_count += 2;
    }
}

static void hscan_run(struct call *call) {
    struct glob glob;
    struct scanning scanning;
    uint64_t cursor;
    const struct hash *hash;
    scanning_begin(&scanning, call, &glob);
    if (!call_parse_cursor(call, call_arg(call, 2), &cursor) ||
        !call_find_hash(call, call_arg(call, 1), &hash) ||
        (hash != NULL && !options_read(call, 3, &scanning))) {
        return;
    }
    struct scan_limits limits = scanning_limits(&scanning);
    cursor = hash != NULL ? hash_scan(hash, cursor, &limits, hash_get_visit, &scanning) : 0;
    scanning_end(&scanning, call, cursor);
}

const struct command command_hscan = {
    .name = "HSCAN",
    .syntax = "key cursor:integer [MATCH pattern] [COUNT count:integer]",
    .options = hscan_options,
    .reply = "[cursor:s fields:[field:s value:s ...]]",
    .summary = "Walk over all fields of a hash in small steps, in no order; COUNT is a hint",
    .complexity = "O(COUNT) for a step, half a millisecond at the most; O(n) for the whole hash",
    .flags = COMMAND_READ,
    .run = hscan_run,
};
