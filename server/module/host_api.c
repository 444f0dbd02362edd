/* The host's functions, by name. See host_api.h. */
#include "server/module/host_api.h"

#include <string.h>

#define HOST_DEFINE(need, result, name, parameters) result(*host_##name) parameters;
HOST_API(HOST_DEFINE)
#undef HOST_DEFINE

bool host_is_valkey;

typedef int get_api(const char *name, void *function);

enum { REQUIRED = true, OPTIONAL = false };

bool host_api_load(struct host_context *ctx, const char **missing) {
    get_api *get;
    void (*probe)(void) = NULL;
    memcpy(&get, ctx, sizeof get); /* the first word of a context */
#define HOST_FIND(need, result, name, parameters)                                                  \
    if (get("RedisModule_" #name, &host_##name) != HOST_OK && (need)) {                            \
        *missing = "RedisModule_" #name;                                                           \
        return false;                                                                              \
    }
    HOST_API(HOST_FIND)
#undef HOST_FIND
    host_is_valkey = get("ValkeyModule_Alloc", &probe) == HOST_OK;
    return true;
}
