/* Which commands the module has, and what the host is told of them. See host_run.h.
 *
 * The host calls a function without saying for which command, so each has its own. COMMAND DOCS of the host says of
 * them what the same entries say in the server. By the keys' flags the host knows which rights a user needs:
 * ~pattern, %R~pattern or %W~pattern; by the categories what +@sortedset and -@dangerous mean. Redis 7.0 has no
 * categories for modules; @leaderboard is only where modules may add one. */
#include <stdio.h>
#include <string.h>

#include "codec/memory.h"
#include "server/dispatch/category.h"
#include "server/dispatch/command.h"
#include "server/dispatch/execute.h"
#include "server/dispatch/key_spec.h"
#include "server/module/host_effects.h"
#include "server/module/host_reply.h"
#include "server/module/host_run.h"
#include "server/module/host_state.h"

/* X(group, entry) */
#define COMMANDS(X)                                                                                \
    X("generic", dump)                                                                             \
    X("generic", restore)                                                                          \
    X("leaderboard", lb_above)                                                                     \
    X("leaderboard", lb_add)                                                                       \
    X("leaderboard", lb_alter)                                                                     \
    X("leaderboard", lb_around)                                                                    \
    X("leaderboard", lb_ban)                                                                       \
    X("leaderboard", lb_bans)                                                                      \
    X("leaderboard", lb_count)                                                                     \
    X("leaderboard", lb_create)                                                                    \
    X("leaderboard", lb_cuts)                                                                      \
    X("leaderboard", lb_forget)                                                                    \
    X("leaderboard", lb_get)                                                                       \
    X("leaderboard", lb_hist)                                                                      \
    X("leaderboard", lb_info)                                                                      \
    X("leaderboard", lb_league)                                                                    \
    X("leaderboard", lb_list)                                                                      \
    X("leaderboard", lb_move)                                                                      \
    X("leaderboard", lb_quantile)                                                                  \
    X("leaderboard", lb_range)                                                                     \
    X("leaderboard", lb_roll)                                                                      \
    X("leaderboard", lb_settle)                                                                    \
    X("leaderboard", lb_submit)                                                                    \
    X("leaderboard", lb_tag)                                                                       \
    X("leaderboard", lb_tags)                                                                      \
    X("leaderboard", lb_unban)                                                                     \
    X("leaderboard", lb_where)                                                                     \
    X("sorted-set", bzmpop)                                                                        \
    X("sorted-set", bzpopmax)                                                                      \
    X("sorted-set", bzpopmin)                                                                      \
    X("sorted-set", zadd)                                                                          \
    X("sorted-set", zcard)                                                                         \
    X("sorted-set", zcount)                                                                        \
    X("sorted-set", zdiff)                                                                         \
    X("sorted-set", zdiffstore)                                                                    \
    X("sorted-set", zincrby)                                                                       \
    X("sorted-set", zinter)                                                                        \
    X("sorted-set", zintercard)                                                                    \
    X("sorted-set", zinterstore)                                                                   \
    X("sorted-set", zlexcount)                                                                     \
    X("sorted-set", zmpop)                                                                         \
    X("sorted-set", zmscore)                                                                       \
    X("sorted-set", zpopmax)                                                                       \
    X("sorted-set", zpopmin)                                                                       \
    X("sorted-set", zrandmember)                                                                   \
    X("sorted-set", zrange)                                                                        \
    X("sorted-set", zrangebylex)                                                                   \
    X("sorted-set", zrangebyscore)                                                                 \
    X("sorted-set", zrangestore)                                                                   \
    X("sorted-set", zrank)                                                                         \
    X("sorted-set", zrem)                                                                          \
    X("sorted-set", zremrangebylex)                                                                \
    X("sorted-set", zremrangebyrank)                                                               \
    X("sorted-set", zremrangebyscore)                                                              \
    X("sorted-set", zrevrange)                                                                     \
    X("sorted-set", zrevrangebylex)                                                                \
    X("sorted-set", zrevrangebyscore)                                                              \
    X("sorted-set", zrevrank)                                                                      \
    X("sorted-set", zscan)                                                                         \
    X("sorted-set", zscore)                                                                        \
    X("sorted-set", zunion)                                                                        \
    X("sorted-set", zunionstore)

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

static uint32_t module_table_count_subcommands(const struct command *command) {
    uint32_t count = 0;
    while (command->subcommands != NULL && command->subcommands[count] != NULL) {
        count++;
    }
    return count;
}

void module_table_init(void) {
    uint32_t index = 0;
    execute_init(rows);
    for (uint32_t i = 0; i < NUMBERS; i++) {
        indexes[i] = index;
        index += 1 + module_table_count_subcommands(rows[i].command);
    }
    CHECK(command_count() == index);
    CHECK(index <= MODULE_COMMANDS_MAX); /* the filter has room for every command */
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

static void module_table_free_arguments(struct host_argument *arguments) {
    for (struct host_argument *each = arguments; each != NULL && each->name != NULL; each++) {
        module_table_free_arguments(each->children);
    }
    memory_free(arguments);
}

/* Counts the keys. NULL: no memory. */
static struct host_argument *module_table_copy_arguments(const struct argument *arguments,
                                                         uint32_t specs_count,
                                                         uint32_t *key_count) {
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
            copy[i].children = module_table_copy_arguments(from->children, specs_count, key_count);
        }
        if (from->children != NULL && copy[i].children == NULL) {
            module_table_free_arguments(copy);
            copy = NULL;
        }
    }
    return copy;
}

static struct host_key_spec module_table_copy_spec(const struct key_spec *from) {
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

static void module_table_init_categories(struct host_context *ctx) {
    has_own_category =
        host_AddACLCategory != NULL && host_AddACLCategory(ctx, CATEGORY_OWN) == HOST_OK;
}

static bool module_table_set_categories(struct host_context *ctx, const char *name,
                                        const char *categories) {
    struct host_created *created = host_GetCommand(ctx, name);
    return created != NULL && (host_SetCommandACLCategories == NULL ||
                               host_SetCommandACLCategories(created, categories) == HOST_OK);
}

static bool module_table_add_categories(struct host_context *ctx, const char *name,
                                        uint32_t number) {
    enum { CATEGORIES_TEXT_MAX = 256 };
    char text[CATEGORIES_TEXT_MAX] = "";
    uint32_t mask = category_mask(number);
    for (uint32_t i = 0; i < CATEGORIES; i++) {
        bool is_known = has_own_category || strcmp(category_name(i), CATEGORY_OWN) != 0;
        if ((mask >> i & 1) != 0 && is_known) {
            size_t size = strlen(text);
            snprintf(text + size, sizeof text - size, "%s%s", size > 0 ? " " : "",
                     category_name(i));
        }
    }
    return module_table_set_categories(ctx, name, text);
}

static bool module_table_set_info(struct host_context *ctx, const char *name,
                                  const struct host_command_info *info) {
    struct host_created *created = host_GetCommand(ctx, name);
    return created != NULL && host_SetCommandInfo(created, info) == HOST_OK;
}

static bool module_table_describe(struct host_context *ctx, const char *name, uint32_t number) {
    const struct command *command = command_by_index(number);
    const struct key_spec *specs;
    uint32_t count = key_specs_of(number, &specs);
    struct host_key_spec key_specs[KEY_SPECS_MAX + 1] = {{.begin_type = HOST_SEARCH_NONE}};
    for (uint32_t i = 0; i < count; i++) {
        key_specs[i] = module_table_copy_spec(&specs[i]);
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
        info.arguments = module_table_copy_arguments(command->arguments, count, &key_count);
    }
    bool is_set = (command->arguments == NULL || info.arguments != NULL) &&
                  module_table_set_info(ctx, name, &info);
    module_table_free_arguments(info.arguments);
    /* By those of a container a user would get all its subcommands, whatever theirs are. */
    bool is_container = command->subcommands != NULL;
    return is_set && (is_container || module_table_add_categories(ctx, name, number));
}

/* ---- registering ---- */

enum { FLAGS_MAX = 96 };

static void module_table_print_flags(const struct command *command, char out[FLAGS_MAX]) {
    static const struct {
        unsigned flags;
        const char *word;
    } words[] = {
        {COMMAND_WRITE, "write"},           {COMMAND_READ, "readonly"},
        {COMMAND_DENYOOM, "deny-oom"},      {COMMAND_FAST, "fast"},
        {COMMAND_LOADING, "allow-loading"}, {COMMAND_LOADING | COMMAND_STALE, "allow-stale"},
        {COMMAND_NO_MULTI, "deny-script"},
    };
    bool has_hidden_keys =
        (command->flags & COMMAND_MOVABLE_KEYS) != 0 || command->key_option != NULL;
    size_t used = (size_t)snprintf(out, FLAGS_MAX, "%s", has_hidden_keys ? "getkeys-api" : "");
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if ((command->flags & words[i].flags) != 0) {
            used += (size_t)snprintf(out + used, FLAGS_MAX - used, "%s%s", used > 0 ? " " : "",
                                     words[i].word);
        }
    }
}

/* Each subcommand has the function of its container. */
static bool module_table_register_container(struct host_context *ctx, const char *name,
                                            uint32_t number) {
    char flags[FLAGS_MAX];
    const struct command *container = command_by_index(indexes[number]);
    struct host_created *created = host_CreateCommand(ctx, name, NULL, "", 0, 0, 0) == HOST_OK
                                       ? host_GetCommand(ctx, name)
                                       : NULL;
    bool is_registered = created != NULL && module_table_describe(ctx, name, indexes[number]);
    for (uint32_t i = 1; i <= module_table_count_subcommands(container) && is_registered; i++) {
        uint32_t index = indexes[number] + i;
        const struct command *command = command_by_index(index);
        const char *full_name = command_full_name(index);
        module_table_print_flags(command, flags);
        is_registered = host_CreateSubcommand(created, strchr(full_name, '|') + 1,
                                              functions[number], flags, command->first_key,
                                              command->last_key, command->key_step) == HOST_OK &&
                        module_table_describe(ctx, full_name, index);
    }
    return is_registered;
}

/* By the names that the host shows of its own commands, too: in lower case. Clients of clusters compare
 * those of subcommands byte by byte. */
static bool module_table_register_one(struct host_context *ctx, uint32_t number) {
    const struct command *command = command_by_index(indexes[number]);
    const char *own_name = command_full_name(indexes[number]);
    char name[COMMAND_FULL_NAME_MAX + 8];
    char flags[FLAGS_MAX];
    bool is_native = strncmp(own_name, "lb.", 3) == 0;
    snprintf(name, sizeof name, "%s%s", is_native ? "" : "lb.", own_name);
    if (command->subcommands != NULL) {
        return module_table_register_container(ctx, name, number);
    }
    module_table_print_flags(command, flags);
    return host_CreateCommand(ctx, name, functions[number], flags, command->first_key,
                              command->last_key, command->key_step) == HOST_OK &&
           module_table_describe(ctx, name, indexes[number]);
}

/* What clients may know as zset; of any other key its own type. */
static int module_table_run_type(struct host_context *ctx, struct host_string **argv, int argc) {
    static const char *const names[] = {"none", "string", "list", "hash", "set", "zset"};
    if (argc != 2) {
        return host_ReplyWithError(ctx, "ERR wrong number of arguments for 'type' command");
    }
    struct host_key *key = host_OpenKey(ctx, argv[1], HOST_READ);
    int type = key != NULL ? host_KeyType(key) : HOST_KEY_EMPTY;
    const char *name = type >= 0 && type < HOST_KEY_MODULE ? names[type] : "stream";
    if (type == HOST_KEY_MODULE) {
        name = host_value_of_board(key) != NULL ? "zset"
               : host_value_of(key) != NULL     ? "none"
                                                : "module";
    }
    host_close(key);
    return host_ReplyWithSimpleString(ctx, name);
}

#ifdef MODULE_TEST
/* LB.TESTCLOCK unix-us monotonic-ms [lead-us state]: from now on this is the time, and what struct clock
 * says of it (tests/support/shadow.h). */
static int module_table_run_test_clock(struct host_context *ctx, struct host_string **argv,
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
static int module_table_run_test_clear(struct host_context *ctx, struct host_string **argv,
                                       int argc) {
    (void)argv;
    (void)argc;
    host_state_clear();
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
     module_table_run_type, 2, 1, 1, 1, true},
    {"lb.apply", "Apply changes of boards as the module has written them", "write admin deny-oom",
     "write admin slow dangerous", host_effects_apply, -3, 1, -1, 2, false},
    {"lb.applystate", "Apply changes of bans as the module has written them",
     "write admin deny-oom", "write admin slow dangerous", host_state_apply, 2, 0, 0, 0, false},
    {HOST_REPLY_COMMAND, "For the module itself",
     "readonly fast no-monitor no-slowlog allow-loading allow-stale", NULL, host_reply_run, 1, 0, 0,
     0, false},
#ifdef MODULE_TEST
    {"lb.testclock", "Set the clock", "readonly", NULL, module_table_run_test_clock, -3, 0, 0, 0,
     false},
    {"lb.testclear", "Forget bans and jobs", "readonly", NULL, module_table_run_test_clear, 1, 0, 0,
     0, false},
#endif
};

static bool module_table_register_own(struct host_context *ctx, const struct own_command *own) {
    struct host_key_spec specs[2] = {{.flags = KEY_READ_ONLY, .begin_type = HOST_SEARCH_INDEX},
                                     {.begin_type = HOST_SEARCH_NONE}};
    specs[0].begin.index = own->first_key;
    specs[0].find_type = HOST_FIND_RANGE;
    specs[0].find.range.step = own->key_step;
    const struct host_command_info info = {.version = &version,
                                           .summary = own->summary,
                                           .arity = own->arity,
                                           .key_specs = own->shows_no_value ? specs : NULL};
    return host_CreateCommand(ctx, own->name, own->run, own->flags, own->first_key, own->last_key,
                              own->key_step) == HOST_OK &&
           module_table_set_info(ctx, own->name, &info) &&
           (own->categories == NULL ||
            module_table_set_categories(ctx, own->name, own->categories));
}

bool module_table_register(struct host_context *ctx) {
    bool is_registered = true;
    module_table_init_categories(ctx);
    for (uint32_t i = 0; i < NUMBERS && is_registered; i++) {
        is_registered = module_table_register_one(ctx, i);
    }
    for (size_t i = 0; i < sizeof own_commands / sizeof *own_commands && is_registered; i++) {
        is_registered = module_table_register_own(ctx, &own_commands[i]);
    }
    return is_registered;
}
