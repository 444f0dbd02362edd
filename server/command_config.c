/* CONFIG: the settings as the clients and operators of Redis know them. */
#include "server/command.h"

#include "codec/glob.h"
#include "server/log.h"
#include "server/persistence.h"
#include "server/server.h"

/* ---- CONFIG GET ---- */

/* Does one of the patterns match? They are in lower case, as the table's names are. */
static bool is_wanted(const char *name, const struct glob *patterns, uint32_t pattern_count) {
    for (uint32_t i = 0; i < pattern_count; i++) {
        if (glob_takes(&patterns[i], bytes_from_text(name))) {
            return true;
        }
    }
    return false;
}

/* The patterns in lower case, behind each other in one piece that the caller frees; NULL: no
 * memory. */
static struct glob *copy_patterns(const struct bytes *args, uint32_t count) {
    size_t size = 0;
    for (uint32_t i = 0; i < count; i++) {
        size += args[i].size;
    }
    struct glob *patterns = memory_allocate(count * sizeof *patterns + size);
    if (patterns == NULL) {
        return NULL;
    }
    char *at = (char *)(patterns + count);
    for (uint32_t i = 0; i < count; i++) {
        struct bytes pattern = {.at = at, .size = args[i].size};
        for (size_t j = 0; j < args[i].size; j++) {
            *at++ = bytes_lower(args[i].at[j]);
        }
        patterns[i] = glob_prepare(pattern);
    }
    return patterns;
}

/* A setting that repeats is one text of several lines. */
static void reply_lines(struct call *call, const struct setting *setting) {
    struct buffer lines;
    char line[SETTING_VALUE_MAX];
    size_t size;
    buffer_init(&lines, 0);
    for (uint32_t i = 0; setting_print_line(&call->server->settings, setting, i, line, &size);
         i++) {
        if (i > 0) {
            buffer_append(&lines, "\n", 1);
        }
        buffer_append(&lines, line, size);
    }
    if (lines.is_broken) {
        call->reply->out->is_broken = true;
    }
    reply_bulk(call->reply, (struct bytes){.at = lines.at, .size = lines.size});
    buffer_deinit(&lines);
}

static void reply_setting(struct call *call, const struct setting *setting) {
    reply_bulk_text(call->reply, setting->name);
    if ((setting->flags & SETTING_REPEATS) != 0) {
        reply_lines(call, setting);
        return;
    }
    char value[SETTING_VALUE_MAX];
    size_t size = setting_print(&call->server->settings, setting, value);
    reply_bulk(call->reply, (struct bytes){.at = value, .size = size});
}

static void config_get_run(struct call *call) {
    uint32_t pattern_count = call->request->count - 2;
    struct glob *patterns = copy_patterns(call->request->args + 2, pattern_count);
    if (patterns == NULL) {
        call_out_of_memory(call);
        return;
    }
    uint64_t count = 0;
    size_t mark = reply_array_begin(call->reply);
    for (const struct setting *setting = setting_table; setting->name != NULL; setting++) {
        if (is_wanted(setting->name, patterns, pattern_count)) {
            reply_setting(call, setting);
            count++;
        }
    }
    reply_map_end(call->reply, mark, count);
    memory_free(patterns);
}

static const struct command config_get = {
    .name = "GET",
    .summary = "The settings whose names match the patterns, and their values",
    .complexity = "O(n) in the settings and the patterns",
    .since = "1.0.0",
    .group = "server",
    .arity = -3,
    .flags = COMMAND_ADMIN | COMMAND_LOADING,
    .arguments =
        (const struct argument[]){
            {.name = "parameter", .type = ARGUMENT_PATTERN, .flags = ARGUMENT_MULTIPLE},
            {.name = NULL},
        },
    .run = config_get_run,
};

/* ---- CONFIG SET ---- */

static const char *check_settings(void *context, const struct settings *wanted, char *reason) {
    const struct server *server = context;
    return server->persistence != NULL
               ? persistence_check_settings(server->persistence, wanted, reason)
               : NULL;
}

static void config_set_run(struct call *call) {
    if (call->request->count % 2 != 0) {
        call_syntax_error(call);
        return;
    }
    struct settings *settings = &call->server->settings;
    char error[SETTING_ERROR_MAX];
    if (!settings_set(settings, call->request->args + 2, call->request->count / 2 - 1,
                      check_settings, call->server, error)) {
        reply_error_format(call->reply, "ERR %s", error);
        return;
    }
    log_set_level((enum log_level)settings->loglevel);
    reply_ok(call->reply);
}

static const struct command config_set = {
    .name = "SET",
    .summary = "Change settings while the server runs, all of them or none",
    .complexity = "O(n) in the settings given",
    .since = "1.0.0",
    .group = "server",
    .arity = -4,
    /* A password may be among the values. */
    .flags = COMMAND_ADMIN | COMMAND_LOADING | COMMAND_SECRET,
    .arguments =
        (const struct argument[]){
            {.name = "data",
             .type = ARGUMENT_BLOCK,
             .flags = ARGUMENT_MULTIPLE,
             .children =
                 (const struct argument[]){
                     {.name = "parameter", .type = ARGUMENT_STRING},
                     {.name = "value", .type = ARGUMENT_STRING},
                     {.name = NULL},
                 }},
            {.name = NULL},
        },
    .run = config_set_run,
};

/* ---- CONFIG REWRITE ---- */

static void config_rewrite_run(struct call *call) {
    const struct settings *settings = &call->server->settings;
    char error[SETTING_ERROR_MAX];
    if (!settings_rewrite(settings, error)) {
        log_write(LOG_WARNING, "settings not written error=\"%s\"", error);
        reply_error_format(call->reply, "ERR %s", error);
        return;
    }
    log_write(LOG_NOTICE, "settings written file=%s", settings->file_path);
    reply_ok(call->reply);
}

static const struct command config_rewrite = {
    .name = "REWRITE",
    .summary = "Write the settings as they are now into the file that the server was started with",
    .complexity = "O(n) in the size of the file",
    .since = "1.0.0",
    .group = "server",
    .arity = 2,
    .flags = COMMAND_ADMIN | COMMAND_LOADING,
    .run = config_rewrite_run,
};

/* ---- CONFIG RESETSTAT ---- */

static void config_resetstat_run(struct call *call) {
    stats_reset(&call->server->stats);
    reply_ok(call->reply);
}

static const struct command config_resetstat = {
    .name = "RESETSTAT",
    .summary = "Set the counters that INFO and LATENCY HISTOGRAM report back to zero",
    .complexity = "O(n) in the commands of the server",
    .since = "1.0.0",
    .group = "server",
    .arity = 2,
    .flags = COMMAND_ADMIN | COMMAND_LOADING,
    .run = config_resetstat_run,
};

/* ---- CONFIG HELP ---- */

static void config_help_run(struct call *call) {
    static const char *const lines[] = {
        "GET <pattern>",
        "    Return parameters matching the glob-like <pattern> and their values.",
        "SET <directive> <value>",
        "    Set the configuration <directive> to <value>.",
        "RESETSTAT",
        "    Reset statistics reported by the INFO command.",
        "REWRITE",
        "    Rewrite the configuration file.",
        NULL,
    };
    call_help(call, lines);
}

static const struct command config_help = {
    .name = "HELP",
    .summary = "What the subcommands of CONFIG do",
    .complexity = "O(1)",
    .since = "1.0.0",
    .group = "server",
    .arity = 2,
    .flags = COMMAND_LOADING,
    .run = config_help_run,
};

const struct command command_config = {
    .name = "CONFIG",
    .summary = "Read and change the settings of the running server",
    .complexity = "Depends on the subcommand",
    .since = "1.0.0",
    .group = "server",
    .arity = -2,
    .subcommands =
        (const struct command *const[]){
            &config_get,
            &config_help,
            &config_resetstat,
            &config_rewrite,
            &config_set,
            NULL,
        },
};
