/* Loading of the module, and what the host is told of its commands.
 *
 *     loadmodule leaderboard.so [layout NAME SPEC ...] [board PATTERN LAYOUT OPTIONS ...]
 *                               [default-layout NAME]
 *
 * The words are those of leaderboard.conf; each of the three begins a line. */
#include <stdio.h>
#include <sys/random.h>

#include "server/commands/table.h"
#include "server/dispatch/category.h"
#include "server/dispatch/command.h"
#include "server/dispatch/execute.h"
#include "server/dispatch/syntax.h"
#include "server/module/host_effects.h"
#include "server/module/host_run.h"
#include "server/sessions/notify.h"
#include "server/system/version.h"

#define EXPORT __attribute__((visibility("default")))
EXPORT int RedisModule_OnLoad(struct host_context *ctx, struct host_string **argv, int argc);

/* ---- the commands: those of boards; ZADD is LB.ZADD to the host, LB.ADD is LB.ADD ----
 *
 * The host calls a function without saying for which command, so each has its own. COMMAND DOCS of the host says of
 * them what the same entries say in the server. By the keys' flags the host knows which rights a user needs:
 * ~pattern, %R~pattern or %W~pattern; by the categories what +@sortedset and -@dangerous mean. Redis 7.0 has no
 * categories for modules; @leaderboard is only where modules may add one. */

#define NOT_HERE(group, entry)
/* X(group, entry) */
#define COMMANDS(X)                                                                                \
    X("generic", dump) X("generic", restore) TABLE_LEADERBOARD(X) TABLE_SORTED_SET(X, NOT_HERE)

#define DECLARE(group, entry) extern const struct command command_##entry;
COMMANDS(DECLARE)
#undef DECLARE

/* The position in the list, which is that in the table. A command's number is the same but for the
 * subcommands of those before it. */
enum number {
#define NUMBER(group, entry) NUMBER_##entry,
    COMMANDS(NUMBER)
#undef NUMBER
        NUMBERS
};

static const struct command_row rows[] = {
#define ROW(group, entry) {group, &command_##entry},
    COMMANDS(ROW)
#undef ROW
        {0},
};

/* command_index of each. */
static uint32_t indexes[NUMBERS];

#define FUNCTION(group, entry)                                                                     \
    static int run_##entry(struct host_context *ctx, struct host_string **argv, int argc) {        \
        return host_run(ctx, argv, argc, indexes[NUMBER_##entry]);                                 \
    }
COMMANDS(FUNCTION)
#undef FUNCTION

static host_command *const functions[] = {
#define POINTER(group, entry) run_##entry,
    COMMANDS(POINTER)
#undef POINTER
};

static uint32_t module_load_count_subcommands(const struct command *command) {
    uint32_t count = 0;
    while (command->subcommands != NULL && command->subcommands[count] != NULL) {
        count++;
    }
    return count;
}

/* ---- descriptions, which the host copies ---- */

/* The host has the same numbers. */
_Static_assert(ARGUMENT_STRING == 0 && ARGUMENT_KEY == 3 && ARGUMENT_UNIX_TIME == 5 &&
                   ARGUMENT_BLOCK == 8,
               "types of arguments");
_Static_assert(ARGUMENT_OPTIONAL == 1 && ARGUMENT_MULTIPLE == 2 && ARGUMENT_MULTIPLE_TOKEN == 4,
               "flags of arguments");
_Static_assert(KEY_READ_ONLY == 1 && KEY_REMOVED == 8 && KEY_ACCESS == 16 && KEY_DELETE == 128 &&
                   KEY_INCOMPLETE == 512,
               "flags of keys");

static const struct host_info_version version = {
    .version = 1,
    .history_size = 2 * sizeof(void *),
    .key_spec_size = sizeof(struct host_key_spec),
    .argument_size = sizeof(struct host_argument),
};

static void module_load_free_arguments(struct host_argument *arguments) {
    for (struct host_argument *each = arguments; each != NULL && each->name != NULL; each++) {
        module_load_free_arguments(each->children);
    }
    memory_free(arguments);
}

/* Counts the keys. NULL: no memory. */
static struct host_argument *module_load_copy_arguments(const struct argument *arguments,
                                                        uint32_t specs_count, uint32_t *key_count) {
    size_t count = 0;
    while (arguments[count].name != NULL) {
        count++;
    }
    struct host_argument *copy = memory_allocate_zeroed((count + 1) * sizeof *copy);
    for (size_t i = 0; i < count && copy != NULL; i++) {
        const struct argument *from = &arguments[i];
        bool is_key = from->type == ARGUMENT_KEY && specs_count > 0;
        uint32_t nth = is_key ? (*key_count)++ : 0;
        copy[i] = (struct host_argument){.name = from->name,
                                         .type = (int)from->type,
                                         .key_spec_index = -1,
                                         .token = from->token,
                                         .flags = (int)from->flags};
        if (is_key) {
            copy[i].key_spec_index = (int)(nth < specs_count ? nth : specs_count - 1);
        }
        if (from->children != NULL) {
            copy[i].children = module_load_copy_arguments(from->children, specs_count, key_count);
        }
        if (from->children != NULL && copy[i].children == NULL) {
            module_load_free_arguments(copy);
            copy = NULL;
        }
    }
    return copy;
}

static struct host_key_spec module_load_copy_spec(const struct key_spec *from) {
    struct host_key_spec spec = {.flags = from->flags, .begin_type = HOST_SEARCH_INDEX};
    if (from->word != NULL) {
        spec.begin_type = HOST_SEARCH_WORD;
        spec.begin.keyword.word = from->word;
        spec.begin.keyword.from = from->begin;
    } else {
        spec.begin.index = from->begin;
    }
    if (from->is_counted) {
        spec.find_type = HOST_FIND_COUNTED;
        spec.find.counted.first = 1;
        spec.find.counted.step = 1;
    } else {
        spec.find_type = HOST_FIND_RANGE;
        spec.find.range.last = from->last;
        spec.find.range.step = from->step;
    }
    return spec;
}

/* ---- categories ---- */

static bool has_own_category;

static bool module_load_set_categories(struct host_context *ctx, const char *name,
                                       const char *categories) {
    struct host_created *created = host_GetCommand(ctx, name);
    return created != NULL && (host_SetCommandACLCategories == NULL ||
                               host_SetCommandACLCategories(created, categories) == HOST_OK);
}

static bool module_load_set_info(struct host_context *ctx, const char *name,
                                 const struct host_command_info *info) {
    struct host_created *created = host_GetCommand(ctx, name);
    return created != NULL && host_SetCommandInfo(created, info) == HOST_OK;
}

static bool module_load_describe(struct host_context *ctx, const char *name, uint32_t number) {
    enum { CATEGORIES_TEXT_MAX = 256 };
    const struct command *command = command_by_index(number);
    const struct key_spec *specs;
    uint32_t count = syntax_key_of(number, &specs);
    struct host_key_spec key_specs[KEY_SPECS_MAX + 1] = {{.begin_type = HOST_SEARCH_NONE}};
    for (uint32_t i = 0; i < count; i++) {
        key_specs[i] = module_load_copy_spec(&specs[i]);
    }
    /* With the arity, or the host would look for a number of keys behind the last argument. */
    struct host_command_info info = {
        .version = &version,
        .summary = command->summary,
        .complexity = command->complexity,
        .since = command->since,
        .tips = *category_tips(number) != '\0' ? category_tips(number) : NULL,
        .arity = command->arity,
        .key_specs = count > 0 ? key_specs : NULL,
    };
    uint32_t key_count = 0;
    if (command->arguments != NULL) {
        info.arguments = module_load_copy_arguments(command->arguments, count, &key_count);
    }
    bool is_set = (command->arguments == NULL || info.arguments != NULL) &&
                  module_load_set_info(ctx, name, &info);
    module_load_free_arguments(info.arguments);
    if (!is_set || command->subcommands != NULL) {
        return is_set; /* by a container's categories a user would get all its subcommands, whatever theirs are */
    }
    char text[CATEGORIES_TEXT_MAX] = "";
    for (uint32_t i = 0; i < CATEGORIES; i++) {
        bool is_known = has_own_category || strcmp(category_name(i), CATEGORY_OWN) != 0;
        if ((category_mask(number) >> i & 1) != 0 && is_known) {
            size_t size = strlen(text);
            snprintf(text + size, sizeof text - size, "%s%s", size > 0 ? " " : "",
                     category_name(i));
        }
    }
    return module_load_set_categories(ctx, name, text);
}

/* ---- registering ---- */

enum { FLAGS_MAX = 96 };

static void module_load_print_flags(const struct command *command, char out[FLAGS_MAX]) {
    bool has_hidden_keys =
        (command->flags & COMMAND_MOVABLE_KEYS) != 0 || command->key_option != NULL;
    size_t used = (size_t)snprintf(out, FLAGS_MAX, "%s", has_hidden_keys ? "getkeys-api" : "");
    for (const struct category_flag *row = category_flags; row->flags != 0; row++) {
        if ((command->flags & row->flags) != 0 && row->host_name != NULL) {
            used += (size_t)snprintf(out + used, FLAGS_MAX - used, "%s%s", used > 0 ? " " : "",
                                     row->host_name);
        }
    }
}

/* By the names that the host shows of its own commands, too: in lower case. Clients of clusters compare
 * those of subcommands byte by byte. */
static bool module_load_register_one(struct host_context *ctx, uint32_t number) {
    const struct command *command = command_by_index(indexes[number]);
    const char *own_name = command_full_name(indexes[number]);
    char name[COMMAND_FULL_NAME_MAX + 8];
    char flags[FLAGS_MAX];
    bool is_native = strncmp(own_name, "lb.", 3) == 0;
    snprintf(name, sizeof name, "%s%s", is_native ? "" : "lb.", own_name);
    if (command->subcommands == NULL) {
        module_load_print_flags(command, flags);
        return host_CreateCommand(ctx, name, functions[number], flags, command->first_key,
                                  command->last_key, command->key_step) == HOST_OK &&
               module_load_describe(ctx, name, indexes[number]);
    }
    struct host_created *created = host_CreateCommand(ctx, name, NULL, "", 0, 0, 0) == HOST_OK
                                       ? host_GetCommand(ctx, name)
                                       : NULL;
    bool is_registered = created != NULL && module_load_describe(ctx, name, indexes[number]);
    for (uint32_t i = 1; i <= module_load_count_subcommands(command) && is_registered; i++) {
        /* Each subcommand has the function of its container. */
        uint32_t index = indexes[number] + i;
        const struct command *each = command_by_index(index);
        const char *full_name = command_full_name(index);
        module_load_print_flags(each, flags);
        is_registered =
            host_CreateSubcommand(created, strchr(full_name, '|') + 1, functions[number], flags,
                                  each->first_key, each->last_key, each->key_step) == HOST_OK &&
            module_load_describe(ctx, full_name, index);
    }
    return is_registered;
}

/* What clients may know as zset; of any other key its own type. */
static int module_load_run_type(struct host_context *ctx, struct host_string **argv, int argc) {
    static const char *const names[] = {"none", "string", "list", "hash", "set", "zset"};
    if (argc != 2) {
        return host_ReplyWithError(ctx, "ERR wrong number of arguments for 'type' command");
    }
    struct host_key *key = host_OpenKey(ctx, argv[1], HOST_READ);
    int type = key != NULL ? host_KeyType(key) : HOST_KEY_EMPTY;
    const char *name = type >= 0 && type < HOST_KEY_MODULE ? names[type] : "stream";
    if (type == HOST_KEY_MODULE) {
        name = module_value_of_board(key) != NULL ? "zset"
               : module_value_of(key) != NULL     ? "none"
                                                  : "module";
    }
    host_close(key);
    return host_ReplyWithSimpleString(ctx, name);
}

#ifdef MODULE_TEST
/* LB.TESTCLOCK unix-us monotonic-ms [lead-us state]: from now on this is the time, and what struct clock
 * says of it (tests/support/shadow.h). */
static int module_load_run_test_clock(struct host_context *ctx, struct host_string **argv,
                                      int argc) {
    int64_t numbers[4] = {0};
    for (int i = 1; i < argc && i <= 4; i++) {
        if (!bytes_parse_i64(host_bytes(argv[i]), &numbers[i - 1])) {
            return host_ReplyWithError(ctx, "ERR not a number");
        }
    }
    module_set_test_time(numbers[0], numbers[1]);
    module.server.clock.lead_us = numbers[2];
    module.server.clock.state = (enum clock_state)numbers[3];
    return host_ReplyWithSimpleString(ctx, "OK");
}

/* LB.TESTCLEAR: no bans, no durable jobs. */
static int module_load_run_test_clear(struct host_context *ctx, struct host_string **argv,
                                      int argc) {
    (void)argv;
    (void)argc;
    host_effects_state_clear();
    return host_ReplyWithSimpleString(ctx, "OK");
}
#endif

/* Those that are no command of the server. */
static const struct own_command {
    const char *name, *summary, *flags, *categories; /* categories NULL: of the flags alone */
    host_command *run;
    int arity, first_key, last_key, key_step;
    bool shows_no_value; /* of its key */
} own_commands[] = {
    {"lb.type", "TYPE, and zset of a board", "readonly fast", "keyspace read fast",
     module_load_run_type, 2, 1, 1, 1, true},
    {"lb.apply", "Apply changes of boards as the module has written them", "write admin deny-oom",
     "write admin slow dangerous", host_effects_apply, -3, 1, -1, 2, false},
    {"lb.applystate", "Apply changes of bans as the module has written them",
     "write admin deny-oom", "write admin slow dangerous", host_effects_apply_state, 2, 0, 0, 0,
     false},
    {HOST_RUN_REPLY_COMMAND, "For the module itself",
     "readonly fast no-monitor no-slowlog allow-loading allow-stale", NULL, host_run_reply_run, 1,
     0, 0, 0, false},
#ifdef MODULE_TEST
    {"lb.testclock", "Set the clock", "readonly", NULL, module_load_run_test_clock, -3, 0, 0, 0,
     false},
    {"lb.testclear", "Forget bans and jobs", "readonly", NULL, module_load_run_test_clear, 1, 0, 0,
     0, false},
#endif
};

static bool module_load_register_commands(struct host_context *ctx) {
    bool is_registered = true;
    has_own_category =
        host_AddACLCategory != NULL && host_AddACLCategory(ctx, CATEGORY_OWN) == HOST_OK;
    for (uint32_t i = 0; i < NUMBERS && is_registered; i++) {
        is_registered = module_load_register_one(ctx, i);
    }
    for (size_t i = 0; i < sizeof own_commands / sizeof *own_commands && is_registered; i++) {
        struct host_key_spec specs[2] = {{.flags = KEY_READ_ONLY, .begin_type = HOST_SEARCH_INDEX},
                                         {.begin_type = HOST_SEARCH_NONE}};
        specs[0].begin.index = own_commands[i].first_key;
        specs[0].find_type = HOST_FIND_RANGE;
        specs[0].find.range.step = own_commands[i].key_step;
        const struct host_command_info info = {.version = &version,
                                               .summary = own_commands[i].summary,
                                               .arity = own_commands[i].arity,
                                               .key_specs =
                                                   own_commands[i].shows_no_value ? specs : NULL};
        is_registered =
            host_CreateCommand(ctx, own_commands[i].name, own_commands[i].run,
                               own_commands[i].flags, own_commands[i].first_key,
                               own_commands[i].last_key, own_commands[i].key_step) == HOST_OK &&
            module_load_set_info(ctx, own_commands[i].name, &info) &&
            (own_commands[i].categories == NULL ||
             module_load_set_categories(ctx, own_commands[i].name, own_commands[i].categories));
    }
    return is_registered;
}

/* ---- memory ---- */

static void *module_load_allocate(size_t size) {
    return host_TryAlloc != NULL ? host_TryAlloc(size) : host_Alloc(size);
}

static void *module_load_allocate_zeroed(size_t size) {
    return host_TryCalloc != NULL ? host_TryCalloc(1, size) : host_Calloc(1, size);
}

static void *module_load_resize(void *at, size_t size) {
    return host_TryRealloc != NULL ? host_TryRealloc(at, size) : host_Realloc(at, size);
}

static void module_load_release(void *at) {
    host_Free(at);
}

/* The host's function only reads, though its parameter is not const. */
static size_t module_load_usable_size(const void *at) {
    void *allocation = (void *)(uintptr_t)at;
    return host_MallocUsableSize != NULL ? host_MallocUsableSize(allocation)
                                         : host_MallocSize(allocation);
}

static const struct memory_host allocator = {.name = "host",
                                             .allocate = module_load_allocate,
                                             .allocate_zeroed = module_load_allocate_zeroed,
                                             .resize = module_load_resize,
                                             .free = module_load_release,
                                             .size = module_load_usable_size};

/* ---- settings ---- */

static bool module_load_begins_line(struct bytes word) {
    static const char *const names[] = {"layout", "board", "default-layout", "once-window",
                                        "once-max"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (bytes_is(word, names[i])) {
            return true;
        }
    }
    return false;
}

/* The arguments are lines of leaderboard.conf. */
static bool module_load_read_settings(struct host_string **argv, int argc, char *error) {
    struct settings *settings = &module.server.settings;
    struct buffer text;
    buffer_init(&text, 0);
    bool is_read = settings_init(settings);
    if (is_read && argc > 0 && !module_load_begins_line(host_bytes(argv[0]))) {
        snprintf(error, SETTING_ERROR_MAX,
                 "'%s': arguments begin with layout, board, default-layout, once-window or "
                 "once-max",
                 bytes_show(host_bytes(argv[0])).text);
        is_read = false;
    }
    for (int i = 0; i < argc; i++) {
        struct bytes word = host_bytes(argv[i]);
        buffer_append(&text, module_load_begins_line(word) ? "\n" : " ", i > 0);
        buffer_append(&text, word.at, word.size);
    }
    is_read = is_read && !text.is_broken &&
              (text.size == 0 ||
               setting_file_apply_text(settings, buffer_bytes(&text), "loadmodule", error)) &&
              settings_finish(settings, error);
    buffer_deinit(&text);
    /* The host decides who gets events, and reports misses itself. */
    settings->notify_keyspace_events = SETTING_EVENT_ALL | SETTING_EVENT_NEW;
    settings->notify_board_events = true;
    return is_read;
}

/* ---- loading ---- */

static void module_load_on_rolled(void *context, uint32_t database, struct bytes name,
                                  const struct bytes archive[2]) {
    notify_taken_name(name, archive);
    notify_board_rolled(context, database, name, archive);
}

static bool module_load_init_server(void) {
    struct server *server = &module.server;
    uint64_t seeds[2];
    server->is_embedded = true;
    if (getrandom(seeds, sizeof seeds, 0) != (ssize_t)sizeof seeds) {
        return false;
    }
    server->hash_seed = seeds[0] | 1;
    server->random_state = seeds[1];
    server->registry =
        registry_create(server->hash_seed, setting_board_options_for, &server->settings);
    if (server->registry == NULL) {
        return false;
    }
    registry_set_listener(server->registry, NULL, server);
    registry_set_rolled_listener(server->registry, module_load_on_rolled);
    registry_set_elsewhere(server->registry, working_set_is_elsewhere);
    session_init(&module.session, 1, 0);
    module.session.is_unlimited = true;
    module_update_time();
    module_init_timer(&(struct host_value_work){
        host_run_on, {host_run_look_up, host_run_drop_stale, host_keyspace_forget}});
    host_run_job_init();
    return host_effects_init();
}

static void module_load_on_event(struct host_context *ctx, struct host_event event, uint64_t kind,
                                 void *details) {
    (void)details;
    if (event.id == HOST_EVENT_ROLE) {
        bool is_replica = kind == HOST_ROLE_REPLICA;
        if (is_replica) {
            host_run_job_stop();
        } else {
            host_run_job_resume();
        }
        host_run_note_role(is_replica);
    } else if (event.id == HOST_EVENT_SWAPDB) {
        host_run_job_rewind();
    } else if (event.id == HOST_EVENT_LOADING && !host_effects_state_is_beside()) {
        if (kind == HOST_LOADING_RDB || kind == HOST_LOADING_AOF ||
            kind == HOST_LOADING_REPLICATION) {
            host_effects_state_clear();
            return;
        }
        host_run_job_rewind();
        if ((host_GetContextFlags(ctx) & HOST_IS_MASTER) != 0) {
            host_run_job_resume();
        }
    } else if (event.id == HOST_EVENT_BESIDE) {
        host_effects_state_load_beside(kind);
        if (kind == HOST_BESIDE_COMPLETED) {
            host_run_job_rewind();
        }
    } else if (event.id == HOST_EVENT_FORK && kind == HOST_FORK_BORN) {
        host_effects_on_fork(ctx);
    }
}

/* A key may come to another name without a word to us. Where these events are not to be had, a pass over all boards
 * may miss one that gets another name meanwhile, and a board with a PERIOD rolls over with its next command. */
static int module_load_on_key_event(struct host_context *ctx, int class, const char *event,
                                    struct host_string *name) {
    (void)class;
    static const char *const events[] = {"rename_to", "move_to", "copy_to", "restore"};
    bool is_new_name = false;
    for (size_t i = 0; i < sizeof events / sizeof events[0]; i++) {
        is_new_name |= strcmp(event, events[i]) == 0;
    }
    if (is_new_name) {
        struct host_key *key = host_OpenKey(ctx, name, HOST_READ);
        struct host_value *value = key != NULL ? module_value_of(key) : NULL;
        if (value != NULL && value->key != NULL) {
            host_run_job_note_name(value, host_bytes(name), (uint32_t)host_GetSelectedDb(ctx));
        }
        if (value != NULL) {
            module_note_due(value, host_bytes(name), host_GetSelectedDb(ctx));
        }
        host_close(key);
    }
    return HOST_OK;
}

static bool module_load_subscribe(struct host_context *ctx) {
    static const uint64_t events[] = {HOST_EVENT_LOADING, HOST_EVENT_BESIDE, HOST_EVENT_FORK,
                                      HOST_EVENT_ROLE, HOST_EVENT_SWAPDB};
    bool is_subscribed = true;
    for (size_t i = 0; is_subscribed && i < sizeof events / sizeof events[0]; i++) {
        is_subscribed = host_SubscribeToServerEvent(ctx, (struct host_event){events[i], 1},
                                                    module_load_on_event) == HOST_OK;
    }
    return is_subscribed && (host_moves_clients() ||
                             host_SubscribeToKeyspaceEvents(ctx, HOST_NOTIFY_GENERIC,
                                                            module_load_on_key_event) == HOST_OK);
}

static int module_load_refuse(struct host_context *ctx, const char *why) {
    host_Log(ctx, "warning", "leaderboard: %s", why);
    return HOST_ERROR;
}

int RedisModule_OnLoad(struct host_context *ctx, struct host_string **argv, int argc) {
    enum { VERSION_NUMBER = 1, API_VERSION = 1 };
    static const char name[] = "leaderboard";
    char error[SETTING_ERROR_MAX] = "out of memory";
    const char *missing;
    if (!host_load(ctx, &missing)) {
        return HOST_ERROR; /* there may not even be a log */
    }
    if (host_IsModuleNameBusy(name) != 0) { /* from the same file: what is in memory is in use */
        return module_load_refuse(ctx, "it is loaded already");
    }
    host_SetModuleAttribs(ctx, name, VERSION_NUMBER, API_VERSION);
    memory_use_host(&allocator);
    if (!module_load_read_settings(argv, argc, error)) {
        return module_load_refuse(ctx, error);
    }
    uint32_t index = 0;
    execute_init(rows);
    for (uint32_t i = 0; i < NUMBERS; i++) {
        indexes[i] = index;
        index += 1 + module_load_count_subcommands(rows[i].command);
    }
    CHECK(command_count() == index);
    module.timer_context = host_GetDetachedThreadSafeContext(ctx);
    if (!module_load_init_server()) {
        return module_load_refuse(ctx, "out of memory");
    }
    while (host_SelectDb(module.timer_context, (int)module.database_count) == HOST_OK) {
        module.database_count++;
    }
    (void)host_SelectDb(module.timer_context, 0);
    module.is_cluster = (host_GetContextFlags(ctx) & HOST_IS_CLUSTER) != 0;
    host_SetModuleOptions(ctx, HOST_HANDLES_IO_ERRORS | HOST_SIGNALS_ITSELF | HOST_LOADS_ASYNC |
                                   (host_is_valkey ? HOST_MIGRATES_SLOTS : 0));
    if (!host_type_register(ctx) || !module_load_register_commands(ctx)) {
        return module_load_refuse(ctx, "the server refused the data type or a command");
    }
    if (!host_run_init_replies(module.timer_context)) {
        return module_load_refuse(ctx, "the server does not pass on replies as text");
    }
    /* Last: Redis 7.0 does not undo these for a module that it then does not load. */
    if (!host_run_register_filter(ctx) || !module_load_subscribe(ctx)) {
        return module_load_refuse(ctx, "the server refused the filter or an event");
    }
    host_Log(ctx, "notice", "leaderboard " SERVER_VERSION ": %u board line(s), %u layout(s)",
             module.server.settings.rule_count, module.server.settings.layout_count);
    return HOST_OK;
}
