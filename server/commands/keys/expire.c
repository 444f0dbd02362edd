/* Expiry: EXPIRE PEXPIRE EXPIREAT PEXPIREAT TTL PTTL EXPIRETIME PEXPIRETIME PERSIST. Times are
 * stored as unix milliseconds; call->now_ms is the current time. A time in the past removes the key
 * immediately. */
#include "server/dispatch/syntax.h"

/* The command's variant: what its times mean. */
struct time_form {
    bool is_seconds;  /* else milliseconds */
    bool is_absolute; /* since 1970, else from now on */
};

static const struct time_form *expire_form_of(const struct call *call) {
    return call->command->variant;
}

/* The point that the command's times are relative to. */
static int64_t expire_base_ms_of(const struct call *call) {
    return expire_form_of(call)->is_absolute ? 0 : call->now_ms;
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

static bool expire_parse_conditions(struct call *call, struct conditions *given) {
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

static bool expire_parse_time(struct call *call, int64_t *time_ms) {
    int64_t given;
    if (!call_parse_integer(call, call_arg(call, 2), &given)) {
        return false;
    }
    int64_t given_ms;
    if (__builtin_mul_overflow(given, expire_form_of(call)->is_seconds ? 1000 : 1, &given_ms) ||
        __builtin_add_overflow(given_ms, expire_base_ms_of(call), time_ms)) {
        return call_refuse_format(call, "ERR invalid expire time in '%s' command",
                                  command_full_name(command_index(call->command)));
    }
    return true;
}

static bool expire_is_allowed(const struct conditions *given, int64_t old_ms, int64_t new_ms) {
    bool has_old = old_ms != REGISTRY_NO_EXPIRY;
    if ((given->is_nx && has_old) || (given->is_xx && !has_old)) {
        return false;
    }
    if (given->is_gt && (!has_old || new_ms <= old_ms)) {
        return false;
    }
    return !given->is_lt || !has_old || new_ms < old_ms;
}

/* A time from now on is a duration, which clock steps do not change. */
static void expire_run(struct call *call) {
    struct conditions given = {0};
    int64_t time_ms;
    if (!expire_parse_conditions(call, &given) || !expire_parse_time(call, &time_ms)) {
        return;
    }
    struct registry_key *key = call_find_key(call, call_arg(call, 1));
    if (key == NULL || !expire_is_allowed(&given, registry_expiry(call->registry, key), time_ms)) {
        reply_integer(call->reply, 0);
        return;
    }
    if (time_ms <= call->now_ms) {
        registry_remove(call->registry, key);
        call_notify(call, SETTING_EVENT_GENERIC, "del", call_arg(call, 1));
    } else if (registry_expiry_set(call->registry, key, time_ms,
                                   !expire_form_of(call)->is_absolute) != REGISTRY_OK) {
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
    int64_t base_ms = expire_base_ms_of(call);
    int64_t left_ms = expire_at_ms > base_ms ? expire_at_ms - base_ms : 0;
    /* Seconds are rounded to the nearest, as in Redis. */
    int64_t left_s = left_ms / 1000 + (left_ms % 1000 >= 500 ? 1 : 0);
    reply_integer(call->reply, expire_form_of(call)->is_seconds ? left_s : left_ms);
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
