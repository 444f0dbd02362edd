/* The host's functions, by name. See host.h. */
#include "server/module/host.h"

/* NOLINTNEXTLINE(bugprone-macro-parentheses): a type and a list of parameters cannot be in them */
#define HOST_DEFINE(need, result, name, parameters) result(*host_##name) parameters;
HOST_API(HOST_DEFINE)
#undef HOST_DEFINE

bool host_is_valkey;

typedef int get_api(const char *name, void *function);

enum { REQUIRED = true, OPTIONAL = false };

static const struct {
    const char *name;
    void *function; /* where its address goes */
    bool is_required;
} functions[] = {
#define HOST_ROW(need, result, name, parameters) {"RedisModule_" #name, &host_##name, (need)},
    HOST_API(HOST_ROW)
#undef HOST_ROW
};

bool host_moves_clients(void) {
    enum { SINCE = 0x080100, UNTIL = 0x090102 };
    int version = host_GetServerVersion();
    return host_is_valkey && version >= SINCE && version < UNTIL;
}

bool host_load(struct host_context *ctx, const char **missing) {
    get_api *get;
    void (*probe)(void) = NULL;
    memcpy(&get, ctx, sizeof get); /* the first word of a context */
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        if (get(functions[i].name, functions[i].function) != HOST_OK && functions[i].is_required) {
            *missing = functions[i].name;
            return false;
        }
    }
    host_is_valkey = get("ValkeyModule_Alloc", &probe) == HOST_OK;
    return true;
}

struct bytes host_bytes(const struct host_string *string) {
    size_t size;
    const char *at = host_StringPtrLen(string, &size);
    return (struct bytes){.at = at, .size = size};
}

bool host_is_error(struct host_call_reply *reply) {
    return reply == NULL || host_CallReplyType(reply) == HOST_REPLY_ERROR;
}

struct bytes host_reply_string(struct host_call_reply *reply) {
    size_t size = 0;
    const char *at = reply != NULL ? host_CallReplyStringPtr(reply, &size) : NULL;
    return (struct bytes){.at = at, .size = at != NULL ? size : 0};
}

struct host_named host_open_named(struct host_context *ctx, struct bytes name) {
    struct host_named named = {.name = host_CreateString(ctx, name.at, name.size)};
    named.key = host_OpenKey(ctx, named.name, HOST_READ);
    return named;
}

void host_close_named(struct host_context *ctx, struct host_named named) {
    host_close(named.key);
    host_FreeString(ctx, named.name);
}

bool host_may_change(struct host_context *ctx) {
    return (host_GetContextFlags(ctx) & HOST_IS_MASTER) != 0 && !host_AvoidReplicaTraffic();
}

struct bytes host_slot_part(struct bytes key) {
    const char *open = key.size > 0 ? memchr(key.at, '{', key.size) : NULL;
    if (open == NULL) {
        return key;
    }
    size_t left = (size_t)(key.at + key.size - open - 1);
    const char *close = left > 0 ? memchr(open + 1, '}', left) : NULL;
    size_t size = close != NULL ? (size_t)(close - open - 1) : 0;
    return size > 0 ? (struct bytes){.at = open + 1, .size = size} : key;
}

bool host_is_same_slot(struct bytes a, struct bytes b) {
    return bytes_equal(host_slot_part(a), host_slot_part(b));
}
