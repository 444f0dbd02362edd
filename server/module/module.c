/* Loading of the module.
 *
 *     loadmodule leaderboard.so [layout NAME SPEC ...] [board PATTERN LAYOUT OPTIONS ...]
 *                               [default-layout NAME]
 *
 * The words are those of leaderboard.conf; each of the three begins a line. */
#include "server/module/module.h"

#include <stdio.h>
#include <sys/random.h>

#include "server/clients/notify.h"
#include "server/module/host_effects.h"
#include "server/module/host_period.h"
#include "server/module/host_reply.h"
#include "server/module/host_run.h"
#include "server/module/host_state.h"
#include "server/system/version.h"

enum {
    FREE_WORK = 256, /* members between two looks at the clock */
    FREE_NS = 500 * 1000,
    FREE_AGAIN_MS = 1,
};

struct module module;

#define EXPORT __attribute__((visibility("default")))
EXPORT int RedisModule_OnLoad(struct host_context *ctx, struct host_string **argv, int argc);

/* ---- memory ---- */

static void *module_allocate(size_t size) {
    return host_TryAlloc != NULL ? host_TryAlloc(size) : host_Alloc(size);
}

static void *module_allocate_zeroed(size_t size) {
    return host_TryCalloc != NULL ? host_TryCalloc(1, size) : host_Calloc(1, size);
}

static void *module_resize(void *at, size_t size) {
    return host_TryRealloc != NULL ? host_TryRealloc(at, size) : host_Realloc(at, size);
}

static void module_release(void *at) {
    host_Free(at);
}

/* The host's function only reads, though its parameter is not const. */
static size_t module_usable_size(const void *at) {
    void *allocation = (void *)(uintptr_t)at;
    return host_MallocUsableSize != NULL ? host_MallocUsableSize(allocation)
                                         : host_MallocSize(allocation);
}

static const struct memory_host allocator = {.name = "host",
                                             .allocate = module_allocate,
                                             .allocate_zeroed = module_allocate_zeroed,
                                             .resize = module_resize,
                                             .free = module_release,
                                             .size = module_usable_size};

/* ---- time, and freeing ---- */

#ifdef MODULE_TEST
static int64_t test_us, test_monotonic_ms;

void module_set_test_time(int64_t now_us, int64_t monotonic_ms) {
    test_us = now_us;
    test_monotonic_ms = monotonic_ms;
}

static bool module_use_test_time(struct clock *clock) {
    if (test_us != 0) {
        clock->now_us = test_us;
        clock->now_ms = test_us / 1000;
        clock->monotonic_ms = test_monotonic_ms;
    }
    return test_us != 0;
}
#else
static bool module_use_test_time(struct clock *clock) {
    (void)clock;
    return false;
}
#endif

void module_update_time(void) {
    if (!module_use_test_time(&module.server.clock)) {
        clock_update(&module.server.clock);
    }
}

void module_raise_clock(struct host_context *ctx, int64_t time_us) {
    struct clock *clock = &module.server.clock;
    bool is_believed = host_is_trusted(ctx);
    module_update_time();
    if (is_believed || time_us - (clock->now_us - clock->lead_us) < CLOCK_STEP_US) {
        clock_raise(clock, time_us);
    }
}

static void module_free_again(struct host_context *ctx, void *context) {
    (void)ctx;
    (void)context;
    module.is_freeing = false;
    module_free_step();
}

void module_free_step(void) {
    struct registry *registry = module.server.registry;
    bool has_more = host_value_has_work() || registry_totals(registry)->unfreed > 0;
    uint64_t begin = has_more ? clock_ticks() : 0;
    while (has_more) {
        has_more = host_value_step(FREE_WORK);
        has_more |= registry_free_step(registry, FREE_WORK);
        if (module.is_freeing || clock_ticks_to_ns(clock_ticks() - begin) >= FREE_NS) {
            break;
        }
    }
    if (has_more && !module.is_freeing) {
        module.is_freeing = true;
        (void)host_CreateTimer(module.timer_context, FREE_AGAIN_MS, module_free_again, NULL);
    }
}

/* ---- settings ---- */

static bool module_begins_line(struct bytes word) {
    static const char *const names[] = {"layout", "board", "default-layout", "once-window",
                                        "once-max"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (bytes_is(word, names[i])) {
            return true;
        }
    }
    return false;
}

/* The arguments as lines of leaderboard.conf. */
static bool module_print_lines(struct host_string **argv, int argc, struct buffer *text,
                               char *error) {
    for (int i = 0; i < argc; i++) {
        struct bytes word = host_bytes(argv[i]);
        if (i == 0 && !module_begins_line(word)) {
            snprintf(error, SETTING_ERROR_MAX,
                     "'%s': arguments begin with layout, board, default-layout, once-window or "
                     "once-max",
                     bytes_show(word).text);
            return false;
        }
        if (i > 0) {
            buffer_append(text, module_begins_line(word) ? "\n" : " ", 1);
        }
        buffer_append(text, word.at, word.size);
    }
    return !text->is_broken;
}

static bool module_read_settings(struct host_string **argv, int argc, char *error) {
    struct settings *settings = &module.server.settings;
    struct buffer text;
    buffer_init(&text, 0);
    bool is_read = settings_init(settings) && module_print_lines(argv, argc, &text, error) &&
                   (text.size == 0 ||
                    settings_load_text(settings, buffer_bytes(&text), "loadmodule", error)) &&
                   settings_finish(settings, error);
    buffer_deinit(&text);
    /* The host decides who gets events, and reports misses itself. */
    settings->notify_keyspace_events = SETTING_EVENT_ALL | SETTING_EVENT_NEW;
    settings->notify_board_events = true;
    return is_read;
}

/* ---- loading ---- */

static void module_on_rolled(void *context, uint32_t database, struct bytes name,
                             const struct bytes archive[2]) {
    notify_taken_name(name, archive);
    notify_board_rolled(context, database, name, archive);
}

static bool module_init_server(void) {
    struct server *server = &module.server;
    uint64_t seeds[2];
    server->is_embedded = true;
    if (getrandom(seeds, sizeof seeds, 0) != (ssize_t)sizeof seeds) {
        return false;
    }
    server->hash_seed = seeds[0] | 1;
    server->random_state = seeds[1];
    server->registry = registry_create(server->hash_seed, settings_rules_for, &server->settings);
    if (server->registry == NULL) {
        return false;
    }
    registry_set_listener(server->registry, NULL, server);
    registry_set_rolled_listener(server->registry, module_on_rolled);
    registry_set_elsewhere(server->registry, working_set_is_elsewhere);
    session_init(&module.session, 1, 0);
    module.session.is_unlimited = true;
    module_update_time();
    host_period_init(
        &(struct host_period_work){host_run_look_up, host_run_drop_stale, host_once_forget});
    host_state_init();
    host_job_init();
    return host_effects_init();
}

static void module_take_role(bool is_replica) {
    if (is_replica) {
        host_job_stop();
    } else {
        host_job_resume();
    }
    host_filter_note_role(is_replica);
}

static void module_on_loading(struct host_context *ctx, uint64_t kind) {
    if (kind == HOST_LOADING_RDB || kind == HOST_LOADING_AOF || kind == HOST_LOADING_REPLICATION) {
        host_state_clear();
        return;
    }
    host_player_rewind();
    if ((host_GetContextFlags(ctx) & HOST_IS_MASTER) != 0) {
        host_job_resume();
    }
}

static void module_on_event(struct host_context *ctx, struct host_event event, uint64_t kind,
                            void *details) {
    (void)details;
    if (event.id == HOST_EVENT_ROLE) {
        module_take_role(kind == HOST_ROLE_REPLICA);
    } else if (event.id == HOST_EVENT_SWAPDB) {
        host_player_rewind();
    } else if (event.id == HOST_EVENT_LOADING && !host_state_is_beside()) {
        module_on_loading(ctx, kind);
    } else if (event.id == HOST_EVENT_BESIDE) {
        host_state_load_beside(kind);
        if (kind == HOST_BESIDE_COMPLETED) {
            host_player_rewind();
        }
    } else if (event.id == HOST_EVENT_FORK && kind == HOST_FORK_BORN) {
        host_state_on_fork(ctx);
    }
}

/* A key may come to another name without a word to us. Where these events are not to be had, a pass over all boards
 * may miss one that gets another name meanwhile, and a board with a PERIOD rolls over with its next command. */
static int module_on_key_event(struct host_context *ctx, int class, const char *event,
                               struct host_string *name) {
    (void)class;
    static const char *const events[] = {"rename_to", "move_to", "copy_to", "restore"};
    bool is_new_name = false;
    for (size_t i = 0; i < sizeof events / sizeof events[0]; i++) {
        is_new_name |= strcmp(event, events[i]) == 0;
    }
    if (is_new_name) {
        struct host_key *key = host_OpenKey(ctx, name, HOST_READ);
        struct host_value *value = key != NULL ? host_value_of(key) : NULL;
        if (value != NULL && value->key != NULL) {
            host_player_note(value, host_bytes(name), (uint32_t)host_GetSelectedDb(ctx));
        }
        if (value != NULL) {
            host_period_note(value, host_bytes(name), host_GetSelectedDb(ctx));
        }
        host_close(key);
    }
    return HOST_OK;
}

static bool module_subscribe(struct host_context *ctx) {
    static const uint64_t events[] = {HOST_EVENT_LOADING, HOST_EVENT_BESIDE, HOST_EVENT_FORK,
                                      HOST_EVENT_ROLE, HOST_EVENT_SWAPDB};
    bool is_subscribed = true;
    for (size_t i = 0; is_subscribed && i < sizeof events / sizeof events[0]; i++) {
        is_subscribed = host_SubscribeToServerEvent(ctx, (struct host_event){events[i], 1},
                                                    module_on_event) == HOST_OK;
    }
    return is_subscribed &&
           (host_moves_clients() || host_SubscribeToKeyspaceEvents(ctx, HOST_NOTIFY_GENERIC,
                                                                   module_on_key_event) == HOST_OK);
}

static int module_refuse(struct host_context *ctx, const char *why) {
    host_Log(ctx, "warning", "leaderboard: %s", why);
    return HOST_ERROR;
}

int RedisModule_OnLoad(struct host_context *ctx, struct host_string **argv, int argc) {
    enum { VERSION_NUMBER = 1, API_VERSION = 1 };
    static const char name[] = "leaderboard";
    char error[SETTING_ERROR_MAX] = "out of memory";
    const char *missing;
    if (!host_api_load(ctx, &missing)) {
        return HOST_ERROR; /* there may not even be a log */
    }
    if (host_IsModuleNameBusy(name) != 0) { /* from the same file: what is in memory is in use */
        return module_refuse(ctx, "it is loaded already");
    }
    host_SetModuleAttribs(ctx, name, VERSION_NUMBER, API_VERSION);
    memory_use_host(&allocator);
    if (!module_read_settings(argv, argc, error)) {
        return module_refuse(ctx, error);
    }
    module_table_init();
    module.timer_context = host_GetDetachedThreadSafeContext(ctx);
    if (!module_init_server()) {
        return module_refuse(ctx, "out of memory");
    }
    while (host_SelectDb(module.timer_context, (int)module.database_count) == HOST_OK) {
        module.database_count++;
    }
    (void)host_SelectDb(module.timer_context, 0);
    module.is_cluster = (host_GetContextFlags(ctx) & HOST_IS_CLUSTER) != 0;
    host_SetModuleOptions(ctx, HOST_HANDLES_IO_ERRORS | HOST_SIGNALS_ITSELF | HOST_LOADS_ASYNC |
                                   (host_is_valkey ? HOST_MIGRATES_SLOTS : 0));
    if (!host_type_register(ctx) || !module_table_register(ctx)) {
        return module_refuse(ctx, "the server refused the data type or a command");
    }
    if (!host_reply_init(module.timer_context)) {
        return module_refuse(ctx, "the server does not pass on replies as text");
    }
    /* Last: Redis 7.0 does not undo these for a module that it then does not load. */
    if (!host_filter_register(ctx) || !module_subscribe(ctx)) {
        return module_refuse(ctx, "the server refused the filter or an event");
    }
    host_Log(ctx, "notice", "leaderboard " SERVER_VERSION ": %u board line(s), %u layout(s)",
             module.server.settings.rule_count, module.server.settings.layout_count);
    return HOST_OK;
}
