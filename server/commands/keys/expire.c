/* Expiry: EXPIRE PEXPIRE EXPIREAT PEXPIREAT TTL PTTL EXPIRETIME PEXPIRETIME PERSIST. Times are
 * stored as unix milliseconds; call->now_ms is the current time. A time in the past removes the key
 * immediately. */
#include "server/clients/server.h"
#include "server/dispatch/command.h"

/* ---- setting ---- */

enum expire_flag {
    EXPIRE_NX = 1 << 0, /* only if the key has no expiry */
    EXPIRE_XX = 1 << 1, /* only if the key has an expiry */
    EXPIRE_GT = 1 << 2, /* only if later than the current expiry; no expiry counts as infinite */
    EXPIRE_LT = 1 << 3, /* only if earlier */
};

static bool parse_flags(struct call *call, unsigned *flags) {
    *flags = 0;
    for (uint32_t i = 3; i < call->request->count; i++) {
        struct bytes word = call_arg(call, i);
        if (bytes_is(word, "NX")) {
            *flags |= EXPIRE_NX;
        } else if (bytes_is(word, "XX")) {
            *flags |= EXPIRE_XX;
        } else if (bytes_is(word, "GT")) {
            *flags |= EXPIRE_GT;
        } else if (bytes_is(word, "LT")) {
            *flags |= EXPIRE_LT;
        } else {
            int shown = (int)(word.size < 128 ? word.size : 128);
            reply_error_format(call->reply, "ERR Unsupported option %.*s", shown, word.at);
            return false;
        }
    }
    if ((*flags & EXPIRE_NX) != 0 && (*flags & ~(unsigned)EXPIRE_NX) != 0) {
        reply_error(call->reply,
                    "ERR NX and XX, GT or LT options at the same time are not compatible");
        return false;
    }
    if ((*flags & EXPIRE_GT) != 0 && (*flags & EXPIRE_LT) != 0) {
        reply_error(call->reply, "ERR GT and LT options at the same time are not compatible");
        return false;
    }
    return true;
}

static bool parse_time(struct call *call, int64_t base_ms, bool is_seconds, int64_t *time_ms) {
    int64_t given;
    if (!call_parse_integer(call, call_arg(call, 2), &given)) {
        return false;
    }
    int64_t given_ms;
    if (__builtin_mul_overflow(given, is_seconds ? 1000 : 1, &given_ms) ||
        __builtin_add_overflow(given_ms, base_ms, time_ms)) {
        reply_error_format(call->reply, "ERR invalid expire time in '%s' command",
                           command_full_name(command_index(call->command)));
        return false;
    }
    return true;
}

static bool is_allowed(unsigned flags, int64_t old_ms, int64_t new_ms) {
    bool has_old = old_ms != REGISTRY_NO_EXPIRY;
    if (((flags & EXPIRE_NX) != 0 && has_old) || ((flags & EXPIRE_XX) != 0 && !has_old)) {
        return false;
    }
    if ((flags & EXPIRE_GT) != 0 && (!has_old || new_ms <= old_ms)) {
        return false;
    }
    return (flags & EXPIRE_LT) == 0 || !has_old || new_ms < old_ms;
}

/* base_ms: what the given time is relative to, now or (0) 1970. A time relative to now is a
 * duration, which clock steps do not change. */
static void expire(struct call *call, int64_t base_ms, bool is_seconds) {
    unsigned flags;
    int64_t time_ms;
    if (!parse_flags(call, &flags) || !parse_time(call, base_ms, is_seconds, &time_ms)) {
        return;
    }
    struct registry_key *key = call_find_key(call, call_arg(call, 1));
    if (key == NULL || !is_allowed(flags, registry_expiry(call->registry, key), time_ms)) {
        reply_integer(call->reply, 0);
        return;
    }
    if (time_ms <= call->now_ms) {
        registry_remove(call->registry, key);
    } else if ((base_ms == 0 ? registry_set_expiry(call->registry, key, time_ms)
                             : registry_set_lasting(call->registry, key, time_ms)) != REGISTRY_OK) {
        call_out_of_memory(call);
        return;
    }
    reply_integer(call->reply, 1);
}

static void expire_run(struct call *call) {
    expire(call, call->now_ms, true);
}

static void pexpire_run(struct call *call) {
    expire(call, call->now_ms, false);
}

static void expireat_run(struct call *call) {
    expire(call, 0, true);
}

static void pexpireat_run(struct call *call) {
    expire(call, 0, false);
}

const struct command command_expire = {
    .name = "EXPIRE",
    .syntax = "key seconds:integer condition=[NX | XX | GT | LT]",
    .summary = "Expires a key after some seconds",
    .complexity = "O(log n) in the keys that expire",
    .group = "generic",
    .flags = COMMAND_WRITE | COMMAND_FAST,
    .run = expire_run,
};
const struct command command_pexpire = {
    .name = "PEXPIRE",
    .syntax = "key milliseconds:integer condition=[NX | XX | GT | LT]",
    .summary = "Expires a key after some milliseconds",
    .complexity = "O(log n) in the keys that expire",
    .group = "generic",
    .flags = COMMAND_WRITE | COMMAND_FAST,
    .run = pexpire_run,
};
const struct command command_expireat = {
    .name = "EXPIREAT",
    .syntax = "key unix-time-seconds:unix-time condition=[NX | XX | GT | LT]",
    .summary = "Expires a key at a point in time, given in unix seconds",
    .complexity = "O(log n) in the keys that expire",
    .group = "generic",
    .flags = COMMAND_WRITE | COMMAND_FAST,
    .run = expireat_run,
};
const struct command command_pexpireat = {
    .name = "PEXPIREAT",
    .syntax = "key unix-time-milliseconds:unix-time condition=[NX | XX | GT | LT]",
    .summary = "Expires a key at a point in time, given in unix milliseconds",
    .complexity = "O(log n) in the keys that expire",
    .group = "generic",
    .flags = COMMAND_WRITE | COMMAND_FAST,
    .run = pexpireat_run,
};

static void persist_run(struct call *call) {
    struct registry_key *key = call_find_key(call, call_arg(call, 1));
    if (key == NULL || registry_expiry(call->registry, key) == REGISTRY_NO_EXPIRY) {
        reply_integer(call->reply, 0);
        return;
    }
    if (registry_set_expiry(call->registry, key, REGISTRY_NO_EXPIRY) != REGISTRY_OK) {
        call_out_of_memory(call);
        return;
    }
    reply_integer(call->reply, 1);
}

const struct command command_persist = {
    .name = "PERSIST",
    .syntax = "key",
    .summary = "Removes a key's expiry",
    .complexity = "O(log n) in the keys that expire",
    .group = "generic",
    .flags = COMMAND_WRITE | COMMAND_FAST,
    .run = persist_run,
};

/* ---- reading ---- */

/* Rounds to the nearest second, as Redis does. */
static int64_t to_seconds(int64_t ms) {
    return ms / 1000 + (ms % 1000 >= 500 ? 1 : 0);
}

/* Milliseconds from base to the expiry; -2: no such key, -1: no expiry. */
static int64_t time_left_ms(struct call *call, int64_t base_ms) {
    const struct registry_key *key = call_find_key(call, call_arg(call, 1));
    if (key == NULL) {
        return -2;
    }
    int64_t expire_at_ms = registry_expiry(call->registry, key);
    if (expire_at_ms == REGISTRY_NO_EXPIRY) {
        return -1;
    }
    return expire_at_ms > base_ms ? expire_at_ms - base_ms : 0;
}

static void reply_seconds(struct call *call, int64_t ms) {
    reply_integer(call->reply, ms < 0 ? ms : to_seconds(ms));
}

static void ttl_run(struct call *call) {
    reply_seconds(call, time_left_ms(call, call->now_ms));
}

static void pttl_run(struct call *call) {
    reply_integer(call->reply, time_left_ms(call, call->now_ms));
}

static void expiretime_run(struct call *call) {
    reply_seconds(call, time_left_ms(call, 0));
}

static void pexpiretime_run(struct call *call) {
    reply_integer(call->reply, time_left_ms(call, 0));
}

const struct command command_ttl = {
    .name = "TTL",
    .syntax = "key",
    .summary = "Seconds until a key expires; -1: it does not expire, -2: it does not exist",
    .complexity = "O(1)",
    .group = "generic",
    .flags = COMMAND_READ | COMMAND_FAST,
    .run = ttl_run,
};
const struct command command_pttl = {
    .name = "PTTL",
    .syntax = "key",
    .summary = "Milliseconds until a key expires; -1: it does not expire, -2: it does not exist",
    .complexity = "O(1)",
    .group = "generic",
    .flags = COMMAND_READ | COMMAND_FAST,
    .run = pttl_run,
};
const struct command command_expiretime = {
    .name = "EXPIRETIME",
    .syntax = "key",
    .summary =
        "The unix second at which a key expires; -1: it does not expire, -2: it does not exist",
    .complexity = "O(1)",
    .group = "generic",
    .flags = COMMAND_READ | COMMAND_FAST,
    .run = expiretime_run,
};
const struct command command_pexpiretime = {
    .name = "PEXPIRETIME",
    .syntax = "key",
    .summary = "The unix millisecond at which a key expires; -1: it does not expire, -2: it does "
               "not exist",
    .complexity = "O(1)",
    .group = "generic",
    .flags = COMMAND_READ | COMMAND_FAST,
    .run = pexpiretime_run,
};
