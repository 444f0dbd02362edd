/* CONFIG: the settings, as Redis's clients and operators know them. */
#include "server/dispatch/call.h"

#include "codec/glob.h"
#include "server/acl/acl_check.h"
#include "server/acl/player.h"
#include "server/dispatch/settings_file.h"
#include "server/durability/persistence.h"
#include "server/replication/replication.h"
#include "server/system/fault.h"
#include "server/system/process.h"

/* ---- CONFIG GET ---- */

/* Each pattern is tested against all settings not matched so far, so the number of patterns is
 * limited; more than there are settings are never needed. Names are looked up instead, and their
 * number is only limited by the request. */
enum { PATTERNS_MAX = 1024 };

/* What CONFIG GET should show. */
enum { ALIASES_MAX = 32 };
struct wanted {
    bool is_matched[SETTINGS_MAX + ALIASES_MAX]; /* by index, as config_at has it */
    uint32_t count;                              /* number of names matched */
    uint32_t pattern_count;                      /* patterns so far, not counting names */
};

/* The names that there are: settings, then aliases. NULL: index is after the last. */
static const char *config_at(uint32_t index, bool *is_shown) {
    static uint32_t setting_count;
    while (setting_table[setting_count].name != NULL) {
        setting_count++;
    }
    CHECK(index < SETTINGS_MAX + ALIASES_MAX);
    *is_shown = index >= setting_count || (setting_table[index].flags & SETTING_IN_FILE) == 0;
    return index < setting_count ? setting_table[index].name
                                 : settings_aliases[index - setting_count].name;
}

/* Names in the table are lower case and match case-insensitively. false: an error was replied. */
static bool config_match(const struct call *call, struct bytes pattern, struct wanted *wanted) {
    struct glob glob;
    bool is_shown;
    bool is_name = pattern.size <= GLOB_PATTERN_MAX && glob_plain_size(pattern) == pattern.size;
    if (!is_name && ++wanted->pattern_count > PATTERNS_MAX) {
        return call_refuse_format(call, "ERR CONFIG GET takes at most %d patterns", PATTERNS_MAX);
    }
    if (!is_name && !call_prepare_glob_lower(call, pattern, &glob)) {
        return false;
    }
    const char *name;
    for (uint32_t i = 0; (name = config_at(i, &is_shown)) != NULL; i++) {
        if (is_shown && !wanted->is_matched[i] &&
            (is_name ? bytes_is(pattern, name) : glob_takes(&glob, bytes_from_text(name)))) {
            wanted->is_matched[i] = true;
            wanted->count++;
        }
    }
    return true;
}

/* name: the setting's, or an alias. */
static void config_reply_setting(struct call *call, const char *name,
                                 const struct setting *setting) {
    reply_bulk_text(call->reply, name);
    if ((setting->flags & SETTING_REPEATS) != 0) {
        /* A repeatable setting is shown as one text of several lines. */
        struct buffer lines;
        char line[SETTING_VALUE_MAX];
        size_t size;
        buffer_init(&lines, 0);
        bool is_secret = (setting->flags & SETTING_SECRET) != 0;
        for (uint32_t i = 0;
             setting_value_print_line(&call->server->settings, setting, i, line, &size); i++) {
            if (i > 0) {
                buffer_append(&lines, "\n", 1);
            }
            buffer_append(&lines, line, size);
        }
        if (lines.is_broken) {
            call->reply->out->is_broken = true;
        }
        reply_bulk(call->reply,
                   is_secret && lines.size > 0 ? BYTES("(redacted)") : buffer_bytes(&lines));
        buffer_deinit(&lines);
        return;
    }
    char value[SETTING_VALUE_MAX];
    size_t size = setting_value_show(&call->server->settings, setting, value);
    if (size > 0 && (setting->flags & SETTING_SECRET) != 0) {
        reply_bulk_text(call->reply, "(redacted)");
        return;
    }
    reply_bulk(call->reply, (struct bytes){.at = value, .size = size});
}

static void config_get_run(struct call *call) {
    struct wanted wanted = {.count = 0};
    const char *name;
    uint32_t count_max = 0;
    bool is_shown;
    for (uint32_t i = 0; config_at(i, &is_shown) != NULL; i++) {
        count_max += is_shown;
    }
    for (uint32_t i = 2; i < call->request->count && wanted.count < count_max; i++) {
        if (!config_match(call, call_arg(call, i), &wanted)) {
            return;
        }
    }
    reply_map(call->reply, wanted.count);
    for (uint32_t i = 0; (name = config_at(i, &is_shown)) != NULL; i++) {
        if (wanted.is_matched[i]) {
            config_reply_setting(call, name, settings_find(bytes_from_text(name)));
        }
    }
}

static const struct command config_get = {
    .name = "GET",
    .syntax = "parameter:pattern...",
    .reply = "{s}",
    .summary = "The settings whose names match the patterns, and their values",
    .complexity = "O(n) in the settings and the patterns",
    .flags = COMMAND_ADMIN | COMMAND_LOADING,
    .run = config_get_run,
};

/* ---- CONFIG SET ---- */

/* Persistence first: what it reserves is committed or abandoned by config_set_run, like TLS.
 * Descriptors stay reserved, so they come last: nothing can fail after them. */
static const char *config_prepare_settings(void *context, const struct settings *wanted,
                                           char *reason) {
    const struct call *call = context;
    const struct server *server = call->server;
    const char *failed = server->persistence != NULL
                             ? persistence_prepare_settings(server->persistence, wanted, reason)
                             : NULL;
    /* Files are read again even if their names are the same. */
    bool names_tls = false;
    for (uint32_t i = 2; i < call->request->count; i += 2) {
        struct bytes name = call_arg(call, i);
        names_tls |= name.size > 4 && bytes_is((struct bytes){.at = name.at, .size = 4}, "tls-");
    }
    if (failed == NULL && server->tls.prepare != NULL && names_tls) {
        failed = server->tls.prepare(server->tls.context, wanted, reason);
    }
    int64_t clients_max;
    if (failed != NULL || wanted->maxclients <= server->settings.maxclients ||
        process_reserve_descriptors(wanted->maxclients, wanted->io_threads,
                                    settings_web_connections(wanted), &clients_max)) {
        return failed;
    }
    snprintf(reason, SETTING_ERROR_MAX,
             "The operating system is not able to handle the specified number of clients, try with "
             "%lld",
             (long long)clients_max);
    return "maxclients";
}

/* A draft of the default user, if requirepass is among the settings: its password is that user's.
 * false: the error was replied. */
static bool config_prepare_default_user(const struct call *call, struct acl_user **draft) {
    struct bytes password = {.at = NULL};
    char *text = NULL;
    *draft = NULL;
    for (uint32_t i = 2; i + 1 < call->request->count; i += 2) {
        password = call_arg_is(call, i, "requirepass") ? call_arg(call, i + 1) : password;
    }
    if (password.at == NULL) {
        return true;
    }
    bool is_fine = session_set_text(&text, password);
    *draft = is_fine ? acl_user_copy(call->server->acl.users.default_user) : NULL;
    if (*draft == NULL || !acl_user_set_password(*draft, text) || !acl_user_finish(*draft)) {
        acl_user_destroy(*draft);
        memory_free(text);
        return call_out_of_memory(call);
    }
    memory_free(text);
    return true;
}

static void config_set_run(struct call *call) {
    struct acl_user *draft;
    if (call->request->count % 2 != 0) {
        call_syntax_error(call);
        return;
    }
    if (!config_prepare_default_user(call, &draft)) {
        return;
    }
    struct settings *settings = &call->server->settings;
    char error[SETTING_ERROR_MAX];
    struct persistence *persistence = call->server->persistence;
    bool is_set = settings_set(settings, call->request->args + 2, call->request->count / 2 - 1,
                               config_prepare_settings, call, error);
    if (persistence != NULL) {
        (is_set ? persistence_commit_settings : persistence_abandon_settings)(persistence);
    }
    if (call->server->tls.end != NULL) {
        call->server->tls.end(call->server->tls.context, is_set);
    }
    if (!is_set) {
        acl_user_destroy(draft);
        reply_error_format(call->reply, "ERR %s", error);
        return;
    }
    if (draft != NULL) {
        acl_check_refresh(call->server, acl_users_replace(&call->server->acl.users, draft));
    }
    log_set_level((enum log_level)settings->loglevel);
    fault_set_report(settings->crash_log_enabled);
    player_keys_set(&call->server->acl.player_keys, settings);
    reply_ok(call->reply);
}

static const struct command config_set = {
    .name = "SET",
    .syntax = "data=(parameter value)...",
    .reply = "<OK>",
    .summary = "Change settings while the server runs, all of them or none",
    .complexity = "O(n) in the settings given",
    /* The values may include a password. */
    .flags = COMMAND_ADMIN | COMMAND_LOADING | COMMAND_SECRET,
    .audit = AUDIT_CONFIG,
    .run = config_set_run,
};

/* ---- CONFIG REWRITE ---- */

static void config_rewrite_run(struct call *call) {
    const struct settings *settings = &call->server->settings;
    char error[SETTING_ERROR_MAX];
    if (!settings_file_write(call->server, error)) {
        log_write(LOG_WARNING, "settings not written error=\"%s\"", error);
        reply_error_format(call->reply, "ERR %s", error);
        return;
    }
    log_write(LOG_NOTICE, "settings written file=%s", settings->file_path);
    reply_ok(call->reply);
}

static const struct command config_rewrite = {
    .name = "REWRITE",
    .reply = "<OK>",
    .summary = "Write the current settings to the file that the server was started with",
    .complexity = "O(n) in the size of the file",
    .flags = COMMAND_ADMIN | COMMAND_LOADING,
    .audit = AUDIT_CONFIG,
    .run = config_rewrite_run,
};

/* ---- CONFIG RESETSTAT ---- */

static void config_resetstat_run(struct call *call) {
    stats_reset(&call->server->stats);
    replication_reset_counters(&call->server->replication);
    reply_ok(call->reply);
}

static const struct command config_resetstat = {
    .name = "RESETSTAT",
    .reply = "<OK>",
    .summary = "Reset the counters that INFO and LATENCY HISTOGRAM report",
    .complexity = "O(n) in the commands of the server",
    .flags = COMMAND_ADMIN | COMMAND_LOADING,
    .run = config_resetstat_run,
};

const struct command command_config = {
    .name = "CONFIG",
    .summary = "Read and change the settings of the running server",
    .complexity = "Depends on the subcommand",
    .subcommands = COMMAND_LIST(&config_get, &call_help_command, &config_resetstat, &config_rewrite,
                                &config_set),
};
