/* What a Redis or Valkey server offers to modules, as its public documentation describes it
 * (https://redis.io/docs/latest/develop/reference/modules/modules-api-ref/): the functions that we
 * use, declared here. Nothing is vendored and no header is needed to build.
 *
 *     leaderboard.so  -- RedisModule_OnLoad(ctx) -->  host_load: the first word of a context is
 *                                                     GetApi, which finds each function by name
 *
 * A function that this server does not have stays NULL; those marked OPTIONAL may be missing. */
#ifndef SERVER_MODULE_HOST_H
#define SERVER_MODULE_HOST_H

#include "codec/bytes.h"

/* Opaque to us. */
struct host_context;      /* of a call: RedisModuleCtx */
struct host_created;      /* RedisModuleCommand */
struct host_string;       /* RedisModuleString */
struct host_key;          /* RedisModuleKey */
struct host_type;         /* RedisModuleType */
struct host_io;           /* RedisModuleIO */
struct host_digest;       /* RedisModuleDigest */
struct host_blocked;      /* RedisModuleBlockedClient */
struct host_filter;       /* RedisModuleCommandFilter */
struct host_filter_input; /* RedisModuleCommandFilterCtx */
struct host_call_reply;   /* RedisModuleCallReply */
struct host_key_context;  /* RedisModuleKeyOptCtx */
struct host_defrag;       /* RedisModuleDefragCtx */
struct host_user;         /* RedisModuleUser */
struct host_scan_cursor;  /* RedisModuleScanCursor */

enum { HOST_OK = 0, HOST_ERROR = 1 };
enum { HOST_READ = 1, HOST_WRITE = 2 };
enum { HOST_NO_EXPIRY = -1 };
enum { HOST_REPLY_ERROR = 1 }; /* a type of replies */
/* Types of keys. */
enum { HOST_KEY_EMPTY = 0, HOST_KEY_HASH = 3, HOST_KEY_MODULE = 6 };
enum { HOST_HASH_NONE = 0 };
/* What is done with a key, for ACLCheckKeyPermissions. */
enum { HOST_KEY_ACCESS = 1 << 4, HOST_KEY_UPDATE = 1 << 5, HOST_KEY_DELETE = 1 << 7 };
/* GetContextFlags. */
enum {
    HOST_IN_SCRIPT = 1 << 0,
    HOST_IN_MULTI = 1 << 1,
    HOST_IS_MASTER = 1 << 2,
    HOST_IS_CLUSTER = 1 << 5,
    HOST_IS_REPLICATED = 1 << 12, /* the command came from the master */
    HOST_IS_LOADING = 1 << 13,
    HOST_DENIES_BLOCKING = 1 << 21,
    HOST_IS_RESP3 = 1 << 22,
};
/* SetModuleOptions. */
enum {
    HOST_HANDLES_IO_ERRORS = 1 << 0,
    HOST_SIGNALS_ITSELF = 1 << 1, /* says which keys have changed */
    HOST_LOADS_ASYNC = 1 << 2,    /* diskless replication with swapdb */
    HOST_MIGRATES_SLOTS = 1 << 5, /* Valkey 9: atomic slot migration */
};
/* Classes of keyspace events. */
enum {
    HOST_NOTIFY_GENERIC = 1 << 2,
    HOST_NOTIFY_ZSET = 1 << 7,
    HOST_NOTIFY_NEW = 1 << 14,
};
/* Events of the server, and their kinds. */
struct host_event {
    uint64_t id, version;
};
enum { HOST_EVENT_ROLE = 0, HOST_ROLE_MASTER = 0, HOST_ROLE_REPLICA = 1 };
enum {
    HOST_EVENT_LOADING = 3,
    HOST_LOADING_RDB = 0,
    HOST_LOADING_AOF = 1,
    HOST_LOADING_REPLICATION = 2,
};
enum { HOST_EVENT_SWAPDB = 11 };
enum { HOST_EVENT_FORK = 13, HOST_FORK_BORN = 0 };
/* A copy of the master is loaded beside the keys (diskless, swapdb). */
enum {
    HOST_EVENT_BESIDE = 14,
    HOST_BESIDE_STARTED = 0,
    HOST_BESIDE_ABORTED = 1,
    HOST_BESIDE_COMPLETED = 2,
};

typedef int host_command(struct host_context *ctx, struct host_string **argv, int argc);
typedef void host_timer(struct host_context *ctx, void *context);
typedef void host_filter_function(struct host_filter_input *input);
typedef void host_free(struct host_context *ctx, void *context);
typedef void host_disconnected(struct host_context *ctx, struct host_blocked *blocked);
typedef void host_server_event(struct host_context *ctx, struct host_event event, uint64_t subevent,
                               void *details);
typedef int host_key_event(struct host_context *ctx, int class, const char *event,
                           struct host_string *key);

/* A key of a scan, or a field of a hash. key: NULL if it would have to be opened. */
typedef void host_scan_key(struct host_context *ctx, struct host_string *name, struct host_key *key,
                           void *context);
typedef void host_scan_field(struct host_key *key, struct host_string *field,
                             struct host_string *value, void *context);

/* RedisModuleTypeMethods, version 5. Redis 7.0 has version 4, and reads no further. */
struct host_type_methods {
    uint64_t version;
    void *(*rdb_load)(struct host_io *io, int encoding_version);
    void (*rdb_save)(struct host_io *io, void *value);
    void (*aof_rewrite)(struct host_io *io, struct host_string *key, void *value);
    size_t (*mem_usage)(const void *value);
    void (*digest)(struct host_digest *digest, void *value);
    void (*free)(void *value);
    int (*aux_load)(struct host_io *io, int encoding_version, int when);
    void (*aux_save)(struct host_io *io, int when);
    int aux_save_triggers;
    size_t (*free_effort)(struct host_string *key, const void *value);
    void (*unlink)(struct host_string *key, const void *value);
    void *(*copy)(struct host_string *from, struct host_string *to, const void *value);
    int (*defrag)(struct host_defrag *ctx, struct host_string *key, void **value);
    size_t (*mem_usage2)(struct host_key_context *ctx, const void *value, size_t samples);
    size_t (*free_effort2)(struct host_key_context *ctx, const void *value);
    void (*unlink2)(struct host_key_context *ctx, const void *value);
    void *(*copy2)(struct host_key_context *ctx, const void *value);
    void (*aux_save2)(struct host_io *io, int when); /* version 5 (Redis 7.2) */
};
enum { HOST_AUX_BEFORE_RDB = 1 << 0 };

/* RedisModuleCommandInfo, version 1: what COMMAND DOCS says, and where keys are. Types and flags of arguments, and
 * the flags of keys, are the numbers of enum argument_type, argument_flag and key_flag. */
struct host_history; /* RedisModuleCommandHistoryEntry, of two pointers; we have none */
struct host_argument {
    const char *name; /* NULL ends a list */
    int type;
    int key_spec_index; /* of a key; -1: none */
    const char *token, *summary, *since;
    int flags;
    const char *deprecated_since;
    struct host_argument *children;
};
enum { HOST_SEARCH_NONE = 0 /* ends a list */, HOST_SEARCH_INDEX = 2, HOST_SEARCH_WORD = 3 };
enum { HOST_FIND_RANGE = 2, HOST_FIND_COUNTED = 3 };
struct host_key_spec {
    const char *notes;
    uint64_t flags;
    int begin_type; /* HOST_SEARCH_ */
    union {
        int index;
        struct {
            const char *word;
            int from;
        } keyword;
    } begin;
    int find_type; /* HOST_FIND_ */
    union {
        struct {
            int last, step, limit;
        } range;
        struct {
            int count_at, first, step;
        } counted;
    } find;
};
struct host_info_version {
    int version;
    size_t history_size, key_spec_size, argument_size;
};
struct host_command_info {
    const struct host_info_version *version;
    const char *summary, *complexity, *since;
    struct host_history *history;
    const char *tips;
    int arity; /* 0: any */
    struct host_key_spec *key_specs;
    struct host_argument *arguments;
};

/* X(need, result, name, parameters): need is REQUIRED or OPTIONAL. */
#define HOST_API(X)                                                                                \
    X(REQUIRED, int, IsModuleNameBusy, (const char *))                                             \
    X(REQUIRED, int, SetModuleAttribs, (struct host_context *, const char *, int, int))            \
    X(REQUIRED, void, SetModuleOptions, (struct host_context *, int))                              \
    X(REQUIRED, void *, Alloc, (size_t))                                                           \
    X(OPTIONAL, void *, TryAlloc, (size_t))                                                        \
    X(REQUIRED, void *, Calloc, (size_t, size_t))                                                  \
    X(OPTIONAL, void *, TryCalloc, (size_t, size_t))                                               \
    X(REQUIRED, void *, Realloc, (void *, size_t))                                                 \
    X(OPTIONAL, void *, TryRealloc, (void *, size_t))                                              \
    X(REQUIRED, void, Free, (void *))                                                              \
    X(OPTIONAL, size_t, MallocUsableSize, (void *))                                                \
    X(REQUIRED, size_t, MallocSize, (void *))                                                      \
    X(REQUIRED, int, CreateCommand,                                                                \
      (struct host_context *, const char *, host_command *, const char *, int, int, int))          \
    X(REQUIRED, struct host_created *, GetCommand, (struct host_context *, const char *))          \
    X(REQUIRED, int, CreateSubcommand,                                                             \
      (struct host_created *, const char *, host_command *, const char *, int, int, int))          \
    X(REQUIRED, int, SetCommandInfo, (struct host_created *, const struct host_command_info *))    \
    X(OPTIONAL, int, SetCommandACLCategories, (struct host_created *, const char *))               \
    X(OPTIONAL, int, AddACLCategory, (struct host_context *, const char *))                        \
    X(REQUIRED, int, IsKeysPositionRequest, (struct host_context *))                               \
    X(REQUIRED, void, KeyAtPosWithFlags, (struct host_context *, int, int))                        \
    X(REQUIRED, int, GetContextFlags, (struct host_context *))                                     \
    X(REQUIRED, int, AvoidReplicaTraffic, (void))                                                  \
    X(REQUIRED, struct host_context *, GetDetachedThreadSafeContext, (struct host_context *))      \
    X(REQUIRED, int, GetSelectedDb, (struct host_context *))                                       \
    X(REQUIRED, int, SelectDb, (struct host_context *, int))                                       \
    X(REQUIRED, const char *, StringPtrLen, (const struct host_string *, size_t *))                \
    X(REQUIRED, struct host_string *, CreateString, (struct host_context *, const char *, size_t)) \
    X(REQUIRED, void, FreeString, (struct host_context *, struct host_string *))                   \
    X(REQUIRED, void, RetainString, (struct host_context *, struct host_string *))                 \
    X(REQUIRED, struct host_key *, OpenKey, (struct host_context *, struct host_string *, int))    \
    X(REQUIRED, void, CloseKey, (struct host_key *))                                               \
    X(REQUIRED, int, KeyType, (struct host_key *))                                                 \
    X(REQUIRED, int, DeleteKey, (struct host_key *))                                               \
    X(REQUIRED, int, SetAbsExpire, (struct host_key *, int64_t))                                   \
    X(REQUIRED, int64_t, GetAbsExpire, (struct host_key *)) /* negative: none */                   \
    X(REQUIRED, int, ModuleTypeSetValue, (struct host_key *, struct host_type *, void *))          \
    X(REQUIRED, struct host_type *, ModuleTypeGetType, (struct host_key *))                        \
    X(REQUIRED, void *, ModuleTypeGetValue, (struct host_key *))                                   \
    X(REQUIRED, struct host_type *, CreateDataType,                                                \
      (struct host_context *, const char *, int, struct host_type_methods *))                      \
    X(REQUIRED, int, HashGet, (struct host_key *, int, ...))                                       \
    X(REQUIRED, struct host_scan_cursor *, ScanCursorCreate, (void))                               \
    X(REQUIRED, void, ScanCursorDestroy, (struct host_scan_cursor *))                              \
    X(REQUIRED, void, ScanCursorRestart, (struct host_scan_cursor *))                              \
    X(REQUIRED, int, Scan,                                                                         \
      (struct host_context *, struct host_scan_cursor *, host_scan_key *, void *))                 \
    X(REQUIRED, int, ScanKey,                                                                      \
      (struct host_key *, struct host_scan_cursor *, host_scan_field *, void *))                   \
    X(REQUIRED, uint64_t, GetClientId, (struct host_context *))                                    \
    X(REQUIRED, struct host_string *, GetClientUserNameById, (struct host_context *, uint64_t))    \
    X(REQUIRED, struct host_string *, GetCurrentUserName, (struct host_context *))                 \
    X(REQUIRED, struct host_user *, GetModuleUserFromUserName, (struct host_string *))             \
    X(REQUIRED, int, FreeModuleUser, (struct host_user *))                                         \
    X(REQUIRED, int, ACLCheckKeyPermissions, (struct host_user *, struct host_string *, int))      \
    X(REQUIRED, int, SignalModifiedKey, (struct host_context *, struct host_string *))             \
    X(REQUIRED, void, SignalKeyAsReady, (struct host_context *, struct host_string *))             \
    X(REQUIRED, int, NotifyKeyspaceEvent,                                                          \
      (struct host_context *, int, const char *, struct host_string *))                            \
    X(REQUIRED, int, SubscribeToKeyspaceEvents, (struct host_context *, int, host_key_event *))    \
    X(REQUIRED, int, Replicate, (struct host_context *, const char *, const char *, ...))          \
    X(REQUIRED, int, ReplicateVerbatim, (struct host_context *))                                   \
    X(REQUIRED, struct host_call_reply *, Call,                                                    \
      (struct host_context *, const char *, const char *, ...))                                    \
    X(REQUIRED, void, FreeCallReply, (struct host_call_reply *))                                   \
    X(REQUIRED, int, CallReplyType, (struct host_call_reply *))                                    \
    X(REQUIRED, const char *, CallReplyProto, (struct host_call_reply *, size_t *))                \
    X(REQUIRED, struct host_call_reply *, CallReplyArrayElement,                                   \
      (struct host_call_reply *, size_t))                                                          \
    X(REQUIRED, size_t, CallReplyLength, (struct host_call_reply *))                               \
    X(REQUIRED, const char *, CallReplyStringPtr, (struct host_call_reply *, size_t *))            \
    X(REQUIRED, int, ReplyWithSimpleString, (struct host_context *, const char *))                 \
    X(REQUIRED, int, ReplyWithError, (struct host_context *, const char *))                        \
    X(REQUIRED, int, ReplyWithStringBuffer, (struct host_context *, const char *, size_t))         \
    X(REQUIRED, int, ReplyWithCallReply, (struct host_context *, struct host_call_reply *))        \
    X(REQUIRED, int, ReplyWithNullArray, (struct host_context *))                                  \
    X(REQUIRED, void, SaveUnsigned, (struct host_io *, uint64_t))                                  \
    X(REQUIRED, uint64_t, LoadUnsigned, (struct host_io *))                                        \
    X(REQUIRED, void, SaveStringBuffer, (struct host_io *, const char *, size_t))                  \
    X(REQUIRED, char *, LoadStringBuffer, (struct host_io *, size_t *))                            \
    X(REQUIRED, int, IsIOError, (struct host_io *))                                                \
    X(REQUIRED, void, LogIOError, (struct host_io *, const char *, const char *, ...))             \
    X(REQUIRED, const struct host_string *, GetKeyNameFromIO, (struct host_io *))                  \
    X(REQUIRED, int, GetDbIdFromIO, (struct host_io *))                                            \
    X(REQUIRED, const struct host_string *, GetToKeyNameFromOptCtx, (struct host_key_context *))   \
    X(REQUIRED, int, GetToDbIdFromOptCtx, (struct host_key_context *))                             \
    X(REQUIRED, void, EmitAOF, (struct host_io *, const char *, const char *, ...))                \
    X(REQUIRED, void, DigestAddStringBuffer, (struct host_digest *, const char *, size_t))         \
    X(REQUIRED, void, DigestAddLongLong, (struct host_digest *, long long))                        \
    X(REQUIRED, void, DigestEndSequence, (struct host_digest *))                                   \
    X(REQUIRED, void *, DefragAlloc, (struct host_defrag *, void *))                               \
    X(REQUIRED, int, DefragShouldStop, (struct host_defrag *))                                     \
    X(REQUIRED, int, DefragCursorSet, (struct host_defrag *, unsigned long))                       \
    X(REQUIRED, int, DefragCursorGet, (struct host_defrag *, unsigned long *))                     \
    X(REQUIRED, void, Log, (struct host_context *, const char *, const char *, ...))               \
    X(REQUIRED, uint64_t, CreateTimer, (struct host_context *, int64_t, host_timer *, void *))     \
    X(REQUIRED, int, StopTimer, (struct host_context *, uint64_t, void **))                        \
    X(REQUIRED, struct host_blocked *, BlockClientOnKeys,                                          \
      (struct host_context *, host_command *, host_command *, host_free *, long long,              \
       struct host_string **, int, void *))                                                        \
    X(REQUIRED, struct host_blocked *, BlockClient,                                                \
      (struct host_context *, host_command *, host_command *, host_free *, long long))             \
    X(REQUIRED, int, UnblockClient, (struct host_blocked *, void *))                               \
    X(REQUIRED, void *, GetBlockedClientPrivateData, (struct host_context *))                      \
    X(REQUIRED, void, SetDisconnectCallback, (struct host_blocked *, host_disconnected *))         \
    X(REQUIRED, int, GetServerVersion, (void))                                                     \
    X(REQUIRED, int, SubscribeToServerEvent,                                                       \
      (struct host_context *, struct host_event, host_server_event *))                             \
    X(REQUIRED, struct host_filter *, RegisterCommandFilter,                                       \
      (struct host_context *, host_filter_function *, int))                                        \
    X(REQUIRED, int, CommandFilterArgsCount, (struct host_filter_input *))                         \
    X(REQUIRED, struct host_string *, CommandFilterArgGet, (struct host_filter_input *, int))      \
    X(REQUIRED, int, CommandFilterArgReplace,                                                      \
      (struct host_filter_input *, int, struct host_string *))

#define HOST_DECLARE(need, result, name, parameters) extern result(*host_##name) parameters;
HOST_API(HOST_DECLARE)
#undef HOST_DECLARE

/* ---- what several files do with these ---- */

struct bytes host_bytes(const struct host_string *string);
static inline void host_close(struct host_key *key) {
    if (key != NULL) {
        host_CloseKey(key);
    }
}
static inline void host_free_reply(struct host_call_reply *reply) {
    if (reply != NULL) {
        host_FreeCallReply(reply);
    }
}
/* Was the call refused, or the command? */
bool host_is_error(struct host_call_reply *reply);
/* The text of a reply; empty if it is none. */
struct bytes host_reply_string(struct host_call_reply *reply);
/* A key of the selected database, to be read. key NULL: there is none. */
struct host_named {
    struct host_string *name;
    struct host_key *key;
};
struct host_named host_open_named(struct host_context *ctx, struct bytes name);
void host_close_named(struct host_context *ctx, struct host_named named);
/* What of a key decides on its slot: what is between its first braces; nothing there: all of it. */
struct bytes host_slot_part(struct bytes key);
bool host_is_same_slot(struct bytes a, struct bytes b);
/* May this server change keys? Masters do, and replicas follow; but while a failover waits for the replicas,
 * nothing may change. */
bool host_may_change(struct host_context *ctx);
/* Does the command come from the master, or from the host's own files? */
static inline bool host_is_trusted(struct host_context *ctx) {
    return (host_GetContextFlags(ctx) & (HOST_IS_REPLICATED | HOST_IS_LOADING)) != 0;
}

/* Find every function. false: this server lacks one that we need, whose name is *missing. */
bool host_load(struct host_context *ctx, const char **missing);
/* Is it Valkey? */
extern bool host_is_valkey;
/* Valkey from 8.1 on leaves a client that runs MOVE or COPY in the other database if a module listens to events
 * of keys (valkey-io/valkey#4024). 9.1.2 does not; the fix may be in some versions between them, too. */
bool host_moves_clients(void);

#endif
