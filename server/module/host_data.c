/* The hashes of DATA, in the place of server/commands/lb/lb_data_find.c: they are keys of the host, and
 * copied for the records of one group. */
#include "server/module/host_data.h"

#include "server/commands/lb/lb_data.h"
#include "server/module/host_stage.h"
#include "skiplist/keyspace/hash.h"

static struct hash copies[LB_DATA_GROUP];
static unsigned copy_count; /* that may have fields */

static bool host_data_put(struct hash *copy, struct bytes field, struct bytes value) {
    const struct bytes args[] = {field, value};
    uint32_t added_count;
    return hash_put(copy, module.server.hash_seed, args, 1, &added_count) == HASH_OK;
}

/* The fields that are asked for, one after another. */
static bool host_data_copy_fields(struct host_key *key, const struct option_values *fields,
                                  struct hash *copy) {
    bool is_copied = true;
    for (uint32_t i = 0; i < fields->count && is_copied; i++) {
        struct host_string *value = NULL;
        struct host_string *field =
            host_CreateString(module.context, fields->at[i].at, fields->at[i].size);
        host_HashGet(key, HOST_HASH_NONE, field, &value, NULL);
        host_FreeString(module.context, field);
        if (value != NULL) {
            is_copied = host_data_put(copy, fields->at[i], host_bytes(value));
            host_FreeString(module.context, value);
        }
    }
    return is_copied;
}

struct copying {
    struct hash *copy;
    bool has_failed;
};

static void host_data_copy_field(struct host_key *key, struct host_string *field,
                                 struct host_string *value, void *context) {
    struct copying *copying = context;
    (void)key;
    copying->has_failed |=
        value != NULL && !host_data_put(copying->copy, host_bytes(field), host_bytes(value));
}

static bool host_data_copy_all(struct host_key *key, struct hash *copy) {
    struct copying copying = {.copy = copy};
    struct host_scan_cursor *cursor = host_ScanCursorCreate();
    while (host_ScanKey(key, cursor, host_data_copy_field, &copying) != 0 && !copying.has_failed) {}
    host_ScanCursorDestroy(cursor);
    return !copying.has_failed;
}

/* *hash: NULL if the host has no hash of this name. */
static bool host_data_copy_hash(const struct lb_data *data, struct bytes name, struct hash *copy,
                                const struct hash **hash) {
    bool is_copied = true;
    struct host_string *text = host_CreateString(module.context, name.at, name.size);
    struct host_key *key = host_OpenKey(module.context, text, HOST_READ);
    *hash = NULL;
    if (key != NULL && host_KeyType(key) == HOST_KEY_HASH) {
        *hash = copy;
        is_copied = data->fields.at != NULL ? host_data_copy_fields(key, &data->fields, copy)
                                            : host_data_copy_all(key, copy);
    }
    if (key != NULL) {
        host_CloseKey(key);
    }
    host_FreeString(module.context, text);
    return is_copied;
}

void host_data_clear(void) {
    while (copy_count > 0) {
        uint32_t work = UINT32_MAX;
        copy_count -= hash_free_step(&copies[copy_count - 1], &work);
    }
}

bool lb_data_find(const struct call *call, const struct lb_data *data, const struct bytes *members,
                  unsigned count, const struct hash **hashes) {
    struct buffer name;
    bool is_found = true;
    (void)call;
    CHECK(count <= LB_DATA_GROUP);
    host_data_clear();
    copy_count = count;
    buffer_init(&name, 0);
    for (unsigned i = 0; i < count && is_found; i++) {
        size_t size = data->pattern.size - 1 + members[i].size;
        buffer_clear(&name);
        char *out = buffer_reserve(&name, size > 0 ? size : 1);
        is_found = out != NULL;
        if (is_found) {
            lb_data_print_key(data->pattern, members[i], out);
            is_found = host_data_copy_hash(data, (struct bytes){.at = out, .size = size},
                                           &copies[i], &hashes[i]);
        }
    }
    buffer_deinit(&name);
    return is_found;
}
