/* The data type of boards, and of the ids of their results: saving, loading, copying and freeing values of the host's
 * keys. A value's form is that of server/rdb/rdb_board.h; the server reads it from dump files, too.
 *
 * What is loaded may come from anybody who may RESTORE: nothing is believed. */
#include "server/module/host_effects.h"
#include "server/module/module.h"
#include "server/rdb/rdb_board.h"
#include "server/rdb/rdb_value.h"
#include "server/sessions/once_ids.h"
#include "skiplist/board.h"
#include "skiplist/keyspace/effect.h"
#include "skiplist/keyspace/registry_embedded.h"

enum {
    MEMBERS_PER_EFFORT = 32, /* about a block */
    BLOCKS_PER_STEP = 64,    /* of activedefrag: some microseconds */
};

/* ---- saving ---- */

static void host_type_put_number(void *context, uint64_t number) {
    host_SaveUnsigned(context, number);
}

static void host_type_put_text(void *context, struct bytes text) {
    host_SaveStringBuffer(context, text.at, text.size);
}

static void host_type_save(struct host_io *io, void *context) {
    const struct host_value *value = context;
    const struct rdb_board_sink sink = {host_type_put_number, host_type_put_text, io};
    int64_t now_us = module.server.clock.now_us;
    unsigned flags = value->ids != NULL ? RDB_BOARD_HAS_IDS : 0;
    /* The host would end here, too. */
    CHECK(value->key == NULL || rdb_board_write(value->key, flags, now_us, &sink));
    CHECK(value->ids == NULL || rdb_board_write(value->ids, RDB_BOARD_IS_IDS, now_us, &sink));
}

/* ---- loading ---- */

struct type_loading {
    struct host_io *io;
    struct bytes name;
    struct rdb_board *read;
    struct board board;
    bool has_board;
    bool is_believed; /* our own files, RESTORE in the AOF included, and our master */
    struct rdb_value members;
};

static bool host_type_refuse(const struct type_loading *loading, const char *why) {
    host_LogIOError(loading->io, "warning", "board '%s': %s", bytes_show(loading->name).text, why);
    return false;
}

static bool host_type_take_entries(struct type_loading *loading) {
    uint32_t count;
    const struct board_entry *entries = rdb_board_entries(loading->read, &count);
    const struct bytes *values = rdb_board_values(loading->read);
    for (uint32_t i = 0; i < count; i++) {
        if (loading->read->is_ids &&
            !(entries[i].member.size <= ONCE_ID_MAX &&
              (loading->is_believed ||
               !module_is_too_far_ahead(once_ids_time_of(entries[i].key))))) {
            return host_type_refuse(loading, "damaged ids");
        }
        const struct bytes *tags = values != NULL ? &values[i] : NULL;
        if (rdb_value_put_key(&loading->members, &entries[i], tags) != RDB_VALUE_OK) {
            return host_type_refuse(loading, "out of memory");
        }
    }
    return true;
}

static bool host_type_take_chunk(struct type_loading *loading, struct bytes chunk) {
    struct rdb_board *read = loading->read;
    struct board_options ids;
    rdb_board_take(read, chunk);
    for (;;) {
        switch (rdb_board_next(read)) {
        case RDB_BOARD_BAD:
            return host_type_refuse(loading, read->error);
        case RDB_BOARD_CHUNK_END:
            return true;
        case RDB_BOARD_OPENED:
            once_ids_make_options(&ids);
            if (read->is_ids && !board_options_equal(&read->options, &ids)) {
                return host_type_refuse(loading, "damaged ids");
            }
            if (!registry_create_board_like(module.server.registry, &read->options,
                                            &loading->board)) {
                return host_type_refuse(loading, "out of memory");
            }
            loading->has_board = true;
            rdb_value_begin_keys(&loading->members, board_layout(&loading->board));
            break;
        case RDB_BOARD_ENTRIES:
            if (!host_type_take_entries(loading)) {
                return false;
            }
            break;
        case RDB_BOARD_NOTE:
            if (rdb_value_put_note(&loading->members, read->decoder.effect.member,
                                   read->decoder.effect.value) != RDB_VALUE_OK) {
                return host_type_refuse(loading, "out of memory");
            }
            break;
        }
    }
}

static bool host_type_load_head(struct type_loading *loading, int version) {
    uint64_t format = host_LoadUnsigned(loading->io);
    uint64_t time_us = host_LoadUnsigned(loading->io);
    uint64_t count = host_LoadUnsigned(loading->io);
    if (host_IsIOError(loading->io)) {
        return false;
    }
    if (!rdb_board_begin(loading->read, (uint64_t)version, format, time_us, count)) {
        return host_type_refuse(loading, loading->read->error);
    }
    if (loading->read->time_us > MODULE_TIME_MAX_US) {
        return host_type_refuse(loading, "damaged");
    }
    module_update_time();
    if (!loading->is_believed && module_is_too_far_ahead((uint64_t)loading->read->time_us / 1000)) {
        return host_type_refuse(loading, "its time is more than a day ahead of this server's");
    }
    module_raise_clock(module.timer_context, loading->read->time_us);
    return true;
}

static bool host_type_load_members(struct type_loading *loading) {
    do {
        size_t size = 0;
        char *at = host_LoadStringBuffer(loading->io, &size);
        if (at == NULL || host_IsIOError(loading->io)) {
            return false;
        }
        bool is_taken = host_type_take_chunk(loading, (struct bytes){.at = at, .size = size});
        host_Free(at);
        if (!is_taken) {
            return false;
        }
    } while (!rdb_board_is_whole(loading->read));
    return rdb_value_end_board(&loading->members, &loading->board, 0) == RDB_VALUE_OK ||
           host_type_refuse(
               loading,
               "a member is there twice, a tag has too many values, or there is no memory");
}

/* A board, or ids. NULL: it was refused. */
static struct registry_key *host_type_load_key(struct type_loading *loading, int version) {
    struct registry_key *key = NULL;
    rdb_value_init(&loading->members, module.server.hash_seed);
    if (host_type_load_head(loading, version) && host_type_load_members(loading)) {
        key = registry_embedded_create(
            module.server.registry, loading->read->is_ids ? REGISTRY_ONCE : 0, loading->name,
            REGISTRY_BOARD, board_options_of(board_layout(&loading->board)), &loading->read->state);
    }
    if (key != NULL) {
        board_move_to(&loading->board, &key->board);
        registry_embedded_give_notes(key, &loading->members.notes);
        loading->has_board = false;
    }
    if (loading->has_board) {
        registry_discard_board(module.server.registry, &loading->board);
        loading->has_board = false;
    }
    rdb_value_deinit(&loading->members);
    return key;
}

/* false: it was refused, and the value has what was loaded before. */
static bool host_type_load_value(struct type_loading *loading, int version,
                                 struct host_value *value) {
    struct registry_key *key = host_type_load_key(loading, version);
    if (key == NULL) {
        return false;
    }
    if (loading->read->is_ids) {
        value->ids = key;
        return true;
    }
    value->key = key;
    if (!loading->read->has_ids) {
        return true;
    }
    value->ids = host_type_load_key(loading, version);
    return value->ids != NULL &&
           (loading->read->is_ids || host_type_refuse(loading, "damaged ids"));
}

static void *host_type_load(struct host_io *io, int version) {
    const struct host_string *name = host_GetKeyNameFromIO(io);
    int flags = host_GetContextFlags(module.timer_context);
    struct type_loading loading = {
        .io = io,
        .name = BYTES("?"),
        .is_believed = (flags & HOST_IS_LOADING) != 0 || (flags & HOST_IS_MASTER) == 0,
    };
    struct host_value *value = module_value_create(NULL);
    if (name != NULL && host_bytes(name).size > 0) {
        loading.name = host_bytes(name);
    }
    loading.read = memory_allocate(sizeof *loading.read);
    bool is_loaded = value != NULL && loading.read != NULL &&
                     loading.name.size <= REGISTRY_NAME_MAX &&
                     host_type_load_value(&loading, version, value);
    memory_free(loading.read);
    if (is_loaded) {
        module_note_due(value, loading.name, host_GetDbIdFromIO(io));
    } else if (value != NULL) {
        module_value_free(value);
        value = NULL;
    }
    return value;
}

/* ---- the others ---- */

static void host_type_rewrite(struct host_io *io, struct host_string *name, void *context) {
    const struct host_value *value = context;
    if (value->key != NULL) {
        host_effects_rewrite(io, name, value->key);
    }
    if (value->ids != NULL) {
        host_effects_rewrite(io, name, value->ids);
    }
}

static size_t host_type_key_memory(const struct registry_key *key) {
    return key != NULL ? memory_size(key) + key_kind_board.size(key) : 0;
}

/* What is asked about a value that a command has just taken out of its key, while the host removes that: with
 * lazyfree-lazy-server-del, and in versions that keep count of sizes. Such a one holds nothing. */
static size_t host_type_memory(const void *context) {
    const struct host_value *value = context;
    return memory_size(value) + host_type_key_memory(value->key) + host_type_key_memory(value->ids);
}

static void host_type_free(void *context) {
    module_value_free(context);
}

static size_t host_type_key_effort(const struct registry_key *key) {
    return key != NULL ? board_count(&key->board) / MEMBERS_PER_EFFORT + registry_note_count(key)
                       : 0;
}

static size_t host_type_effort(struct host_string *name, const void *context) {
    const struct host_value *value = context;
    (void)name;
    return 1 + host_type_key_effort(value->key) + host_type_key_effort(value->ids);
}

/* Without ids: these are of results that were sent to the other name. */
static void *host_type_copy(struct host_key_context *ctx, const void *context) {
    const struct host_value *value = context;
    struct bytes name = host_bytes(host_GetToKeyNameFromOptCtx(ctx));
    if (name.size == 0 || name.size > REGISTRY_NAME_MAX || value->key == NULL) {
        return NULL;
    }
    struct registry_key *key = registry_embedded_copy(module.server.registry, value->key, name);
    struct host_value *copy = key != NULL && registry_embedded_part(module.server.registry, key)
                                  ? module_value_create(key)
                                  : NULL;
    if (copy == NULL) {
        if (key != NULL) {
            registry_embedded_release(module.server.registry, registry_embedded_free(key));
        }
        return NULL;
    }
    module_note_due(copy, name, host_GetToDbIdFromOptCtx(ctx));
    return copy;
}

static void *host_type_move_allocation(void *ctx, void *allocation) {
    return host_DefragAlloc(ctx, allocation);
}

/* activedefrag: a large board in steps. 1: call again. */
static int host_type_defrag(struct host_defrag *ctx, struct host_string *name, void **context) {
    struct host_value *value = *context;
    unsigned long position = 0;
    (void)name;
    (void)host_DefragCursorGet(ctx, &position); /* a small value is done at once, and has none */
    if (position == 0) {
        bool is_listed = atomic_load_explicit(&value->has_remains, memory_order_relaxed);
        struct host_value *moved = is_listed ? NULL : host_DefragAlloc(ctx, value);
        value = moved != NULL ? moved : value;
        struct registry_key *key = value->key != NULL ? host_DefragAlloc(ctx, value->key) : NULL;
        if (key != NULL) {
            value->key = key;
            board_relocated(&key->board);
        }
        *context = value;
    }
    if (value->key == NULL) {
        return 0;
    }
    do {
        position = board_relocate(&value->key->board, (uint32_t)position, BLOCKS_PER_STEP,
                                  host_type_move_allocation, ctx);
        if (position != 0 && host_DefragShouldStop(ctx)) {
            (void)host_DefragCursorSet(ctx, position);
            return 1;
        }
    } while (position != 0);
    return 0;
}

static void host_type_digest_board(struct host_digest *digest, const struct registry_key *key) {
    const struct board *board = &key->board;
    struct board_cursor cursor;
    struct board_stored entry;
    char room[NAME_TEXT_ROOM];
    struct tag_values values;
    uint32_t rank = 0;
    char layout[LAYOUT_TEXT_MAX];
    char packed[TAG_VALUES_PACKED_MAX];
    size_t size = layout_print(board_layout(board), layout);
    host_DigestAddStringBuffer(digest, layout, size);
    for (board_cursor_seek(board, 0, &cursor); board_cursor_read(&cursor, &entry);
         board_cursor_next(&cursor)) {
        struct bytes member = name_text(entry.member, room);
        host_DigestAddStringBuffer(digest, member.at, member.size);
        host_DigestAddLongLong(digest, (long long)entry.key);
        tags_at(board, rank++, &values);
        if (values.mask != 0) {
            host_DigestAddStringBuffer(digest, packed, tag_values_pack(&values, packed));
        }
    }
    host_DigestEndSequence(digest);
    struct registry_note_room note_room;
    struct hash_pair pair;
    for (uint32_t i = 0; i < registry_note_count(key); i++) {
        registry_note_at(key, i, &pair, &note_room);
        host_DigestAddStringBuffer(digest, pair.field.at, pair.field.size);
        host_DigestAddStringBuffer(digest, pair.value.at, pair.value.size);
        host_DigestEndSequence(digest); /* in any order */
    }
}

/* In order: equal boards and ids have equal digests, and only they. */
static void host_type_digest(struct host_digest *digest, void *context) {
    const struct host_value *value = context;
    if (value->key != NULL) {
        host_type_digest_board(digest, value->key);
    }
    if (value->ids != NULL) {
        host_type_digest_board(digest, value->ids);
    }
}

bool host_type_register(struct host_context *ctx) {
    static struct host_type_methods methods = {
        .version = 5,
        .rdb_load = host_type_load,
        .rdb_save = host_type_save,
        .aof_rewrite = host_type_rewrite,
        .mem_usage = host_type_memory,
        .digest = host_type_digest,
        .free = host_type_free,
        .aux_load = host_effects_state_load,
        .aux_save = host_effects_state_save,
        .aux_save2 = host_effects_state_save_some,
        .aux_save_triggers = HOST_AUX_BEFORE_RDB,
        .free_effort = host_type_effort,
        .defrag = host_type_defrag,
        .copy2 = host_type_copy,
    };
    module.type = host_CreateDataType(ctx, RDB_BOARD_TYPE_NAME, RDB_BOARD_TYPE_VERSION, &methods);
    return module.type != NULL;
}
