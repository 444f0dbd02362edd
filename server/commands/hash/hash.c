/* Reading fields: HGET HMGET HGETALL HKEYS HVALS HLEN HEXISTS HSTRLEN; and HSCAN: all fields of a
 * hash, in steps. A field that stays in the hash during the whole scan is returned at least once,
 * whatever else changes. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "server/commands/keyspace.h"
#include "server/dispatch/cost.h"
#include "skiplist/keyspace/registry.h"

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
    .cost = COST(COMMAND_BY_ARGUMENTS, cost_count_members, 500, 0, "requested field",
                 "several commands of a thousand each"),
    .run = hmget_run,
};

/* ---- the whole hash ---- */

/* The command's variant: what it replies of each field. */
struct parts {
    bool with_field, with_value;
};

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
    if (count == 0) {
        return;
    }
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

#define WHOLE_ENTRY(word, shape, what, ns, ...)                                                    \
    {                                                                                              \
        .name = word, .syntax = "key", .reply = shape, .summary = what,                            \
        .complexity = "O(n) in the fields of the hash", .flags = COMMAND_READ, .reads_hash = true, \
        .cost = COST(COMMAND_BY_MEMORY, cost_count_whole, ns, 0, "field of the hash",              \
                     "`HSCAN`, or `HMGET` of what is needed"),                                     \
        .variant = &(const struct parts){__VA_ARGS__}, .run = whole_run                            \
    }

const struct command command_hgetall =
    WHOLE_ENTRY("HGETALL", "{s}", "Every field of a hash with its value", 60, .with_field = true,
                .with_value = true);
const struct command command_hkeys =
    WHOLE_ENTRY("HKEYS", "[s]", "The names of all fields of a hash", 22, .with_field = true);
const struct command command_hvals =
    WHOLE_ENTRY("HVALS", "[s]", "The values of all fields of a hash", 22, .with_value = true);

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

static const struct binding hscan_bindings[] = {SCANNING_OPTIONS, {0}};

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
        (hash != NULL && !syntax_read(call, &scanning))) {
        return;
    }
    struct scan_limits limits = scanning_limits(&scanning);
    cursor = hash != NULL ? hash_scan(hash, cursor, &limits, hash_get_visit, &scanning) : 0;
    scanning_end(&scanning, call, cursor);
}

const struct command command_hscan = {
    .name = "HSCAN",
    .syntax = "key cursor:integer [MATCH pattern] [COUNT count:integer]",
    .bindings = hscan_bindings,
    .reply = "[cursor:s fields:[field:s value:s ...]]",
    .summary = "Walk over all fields of a hash in small steps, in no order; COUNT is a hint",
    .complexity = "O(COUNT) for a step, half a millisecond at the most; O(n) for the whole hash",
    .flags = COMMAND_READ,
    .run = hscan_run,
};

/* Setting and removing fields: HSET HMSET HSETNX HDEL, and HINCRBY HINCRBYFLOAT, which add to a
 * field that is a number. A field that does not exist is 0 to them. A hash is removed with its last
 * field.
 *
 * HINCRBYFLOAT calculates as Redis does, with a long double, and writes at most 17 decimals. So on
 * x86-64 the results are those of Redis there, digit by digit. */

/* Set fields of the hash at args[1]: pairs are field, value, field, value, ... *added_count: those
 * that did not exist. event: what subscribers are told. false: the error was replied; nothing has
 * changed. */
static bool hash_set_write(const struct call *call, const struct bytes *pairs, uint32_t count,
                           const char *event, uint32_t *added_count) {
    struct bytes name = call_arg(call, 1);
    bool is_new;
    if (!call_check_key(call, name)) {
        return false;
    }
    struct registry_key *key = registry_hash_find_or_create(call->registry, call->session->database,
                                                            name, call->now_ms, &is_new);
    if (key == NULL) {
        return call_out_of_memory(call);
    }
    if (!call_check_kind(call, key, REGISTRY_HASH)) {
        return false;
    }
    enum hash_status status = registry_hash_put(call->registry, &key, pairs, count, added_count);
    if (status != HASH_OK) {
        if (is_new) {
            registry_take_back(call->registry, key);
        }
        return status == HASH_FULL ? call_refuse_format(call, "ERR hash is full: at most %u fields",
                                                        (unsigned)HASH_FIELDS_END - 1)
                                   : call_out_of_memory(call);
    }
    registry_tell_members(call->registry, key);
    if (is_new) {
        call_notify(call, SETTING_EVENT_NEW, "new", name);
    }
    call_notify(call, SETTING_EVENT_HASH, event, name);
    return true;
}

/* The variant: is the reply +OK (HMSET) or the number of new fields? */
static void hset_run(struct call *call) {
    uint32_t argument_count = call->request->count - 2;
    uint32_t added_count;
    if (argument_count % 2 != 0) {
        call_refuse_arity(call);
    } else if (!hash_set_write(call, &call->request->args[2], argument_count / 2, "hset",
                               &added_count)) {
        return;
    } else if (*(const bool *)call->command->variant) {
        reply_ok(call->reply);
    } else {
        reply_integer(call->reply, added_count);
    }
}

static const struct command_cost setting_cost = COST_ROW(
    COMMAND_BY_ARGUMENTS, cost_count_pairs, 700, 1, "field", "several commands of a thousand each");

#define SET_ENTRY(word, shape, what, ...)                                                          \
    {                                                                                              \
        .name = word, .syntax = "key field_value=(field value)...", .reply = shape,                \
        .summary = what, .complexity = "O(1) for each field",                                      \
        .flags = COMMAND_WRITE | COMMAND_DENYOOM | COMMAND_FAST, .reads_hash = true,               \
        .cost = &setting_cost, .variant = &(const bool){__VA_ARGS__}, .run = hset_run              \
    }

const struct command command_hset =
    SET_ENTRY("HSET", "i", "Set fields of a hash, and count those that are new", false);
const struct command command_hmset =
    SET_ENTRY("HMSET", "<OK>", "Set fields of a hash, as HSET does; replies OK", true);

static void hsetnx_run(struct call *call) {
    const struct hash *hash;
    struct bytes value;
    uint32_t added_count;
    if (!call_find_hash(call, call_arg(call, 1), &hash)) {
        return;
    }
    if (hash != NULL && hash_find(hash, call_arg(call, 2), &value)) {
        reply_integer(call->reply, 0);
    } else if (hash_set_write(call, &call->request->args[2], 1, "hset", &added_count)) {
        reply_integer(call->reply, 1);
    }
}

const struct command command_hsetnx = {
    .name = "HSETNX",
    .syntax = "key field value",
    .reply = "b",
    .summary = "Set a field of a hash only if it does not exist",
    .flags = COMMAND_WRITE | COMMAND_DENYOOM | COMMAND_FAST,
    .key_access = "RW insert",
    .reads_hash = true,
    .run = hsetnx_run,
};

static void hdel_run(struct call *call) {
    struct registry_key *key;
    uint32_t removed_count = 0;
    if (!call_find_kind(call, call_arg(call, 1), REGISTRY_HASH, &key)) {
        return;
    }
    for (uint32_t i = 2; key != NULL && i < call->request->count; i++) {
        removed_count += registry_hash_remove(call->registry, key, call_arg(call, i));
    }
    if (removed_count > 0) {
        call_notify(call, SETTING_EVENT_HASH, "hdel", call_arg(call, 1));
    }
    if (key != NULL && hash_count(registry_hash(key)) == 0) {
        registry_remove(call->registry, key);
        call_notify(call, SETTING_EVENT_GENERIC, "del", call_arg(call, 1));
    } else if (removed_count > 0) {
        registry_tell_members(call->registry, key);
    }
    reply_integer(call->reply, removed_count);
}

const struct command command_hdel = {
    .name = "HDEL",
    .syntax = "key field...",
    .reply = "i",
    .summary = "Remove fields of a hash, and count them",
    .complexity = "O(1) for each field",
    .flags = COMMAND_WRITE | COMMAND_FAST,
    .key_access = "RW delete",
    .reads_hash = true,
    .cost = COST(COMMAND_BY_ARGUMENTS, cost_count_members, 700, 0, "field named",
                 "several commands of a thousand each; `DEL` "
                 "removes the whole hash at once"),
    .run = hdel_run,
};

enum {
    FLOAT_TEXT_MAX = 5 * 1024, /* bytes, as in Redis; the largest long double has 4,933 digits */
};

/* The field's value; empty and *is_there false: it does not exist. false: the error was replied. */
static bool hash_set_find_value(const struct call *call, struct bytes *value, bool *is_there) {
    const struct hash *hash;
    if (!call_find_hash(call, call_arg(call, 1), &hash)) {
        return false;
    }
    *is_there = hash != NULL && hash_find(hash, call_arg(call, 2), value);
    return true;
}

static bool hash_set_write_value(const struct call *call, struct bytes text) {
    const char *event = command_full_name(command_index(call->command));
    uint32_t added_count;
    return hash_set_write(call, (const struct bytes[]){call_arg(call, 2), text}, 1, event,
                          &added_count);
}

static void hincrby_run(struct call *call) {
    struct bytes text;
    char printed[BYTES_INTEGER_TEXT_MAX];
    int64_t increment;
    int64_t sum = 0;
    bool is_there;
    if (!call_parse_integer(call, call_arg(call, 3), &increment) ||
        !hash_set_find_value(call, &text, &is_there)) {
        return;
    }
    if (is_there && !bytes_parse_i64(text, &sum)) {
        reply_error(call->reply, "ERR hash value is not an integer");
    } else if (__builtin_add_overflow(sum, increment, &sum)) {
        reply_error(call->reply, "ERR increment or decrement would overflow");
    } else {
        size_t size = bytes_print_i64(printed, sum);
        if (hash_set_write_value(call, (struct bytes){.at = printed, .size = size})) {
            reply_wide_integer(call->reply, sum);
        }
    }
}

const struct command command_hincrby = {
    .name = "HINCRBY",
    .syntax = "key field increment:integer",
    .reply = "#",
    .summary = "Add to a whole number in a field of a hash, and return the sum",
    .flags = COMMAND_WRITE | COMMAND_DENYOOM | COMMAND_FAST,
    .key_access = "RW access update",
    .reads_hash = true,
    .run = hincrby_run,
};

/* As Redis's string2ld: what strtold reads, to the last byte. */
static bool hash_set_parse_float(struct bytes text, long double *value) {
    char copy[FLOAT_TEXT_MAX];
    char *end;
    if (text.size == 0 || text.size >= sizeof copy || isspace((unsigned char)text.at[0])) {
        return false;
    }
    memcpy(copy, text.at, text.size);
    copy[text.size] = '\0';
    errno = 0;
    *value = strtold(copy, &end);
    bool is_out_of_range = errno == ERANGE && (isinf(*value) || *value == 0);
    return end == copy + text.size && !is_out_of_range && !isnan(*value);
}

static void hincrbyfloat_run(struct call *call) {
    struct bytes text;
    char printed[FLOAT_TEXT_MAX];
    long double increment;
    long double sum = 0;
    bool is_there;
    if (!hash_set_parse_float(call_arg(call, 3), &increment)) {
        reply_error(call->reply, "ERR value is not a valid float");
        return;
    }
    if (isinf(increment)) {
        reply_error(call->reply, "ERR value is NaN or Infinity");
        return;
    }
    if (!hash_set_find_value(call, &text, &is_there)) {
        return;
    }
    if (is_there && !hash_set_parse_float(text, &sum)) {
        reply_error(call->reply, "ERR hash value is not a float");
        return;
    }
    sum += increment;
    if (isinf(sum)) {
        reply_error(call->reply, "ERR increment would produce NaN or Infinity");
        return;
    }
    /* Without an exponent and without zeros at the end. */
    int size = snprintf(printed, sizeof printed, "%.17Lf", sum);
    CHECK(size > 0 && size < FLOAT_TEXT_MAX);
    while (printed[size - 1] == '0') {
        size--;
    }
    size -= printed[size - 1] == '.';
    text = (struct bytes){.at = printed, .size = (size_t)size};
    if (bytes_equal(text, BYTES("-0"))) {
        text = BYTES("0");
    }
    if (hash_set_write_value(call, text)) {
        reply_bulk(call->reply, text);
    }
}

const struct command command_hincrbyfloat = {
    .name = "HINCRBYFLOAT",
    .syntax = "key field increment:double",
    .reply = "s",
    .summary = "Add to a number with decimals in a field of a hash, and return the sum",
    .flags = COMMAND_WRITE | COMMAND_DENYOOM | COMMAND_FAST,
    .key_access = "RW access update",
    .reads_hash = true,
    .run = hincrbyfloat_run,
};
