/* Life cycle of the settings, and changes to them: all or nothing.
 *
 *     settings --begin--> draft --assign, assign, ...--> commit: the draft becomes the settings
 *                                          \-----------> abort: nothing has changed
 *
 * A draft borrows the strings that it does not change, so a commit frees the replaced strings and
 * an abort frees the new ones. Layouts and options are appended to, or replaced as a whole. */
#include "server/settings/setting_private.h"

const struct setting_alias settings_aliases[] = {
    {"slaveof", "replicaof"},
    {"slave-read-only", "replica-read-only"},
    {"slave-serve-stale-data", "replica-serve-stale-data"},
    {"slave-priority", "replica-priority"},
    {"slave-announce-ip", "replica-announce-ip"},
    {"slave-announce-port", "replica-announce-port"},
    {"repl-ping-slave-period", "repl-ping-replica-period"},
    {"min-slaves-to-write", "min-replicas-to-write"},
    {"min-slaves-max-lag", "min-replicas-max-lag"},
    /* of Valkey */
    {"primaryauth", "masterauth"},
    {"primaryuser", "masteruser"},
    {"commandlog-execution-slower-than", "slowlog-log-slower-than"},
    {"commandlog-slow-execution-max-len", "slowlog-max-len"},
    {NULL, NULL},
};

const struct setting *settings_find(struct bytes name) {
    for (const struct setting_alias *alias = settings_aliases; alias->name != NULL; alias++) {
        if (bytes_is(name, alias->name)) {
            name = bytes_from_text(alias->of);
            break;
        }
    }
    for (const struct setting *setting = setting_table; setting->name != NULL; setting++) {
        if (bytes_is(name, setting->name)) {
            return setting;
        }
    }
    return NULL;
}

/* ---- Owned strings ---- */

static void settings_free_string(struct settings *settings, char **slot) {
    if (!setting_value_is_borrowed(settings, slot)) {
        memory_free(*slot);
    }
}

static void settings_free_strings(struct settings *settings) {
    for (const struct setting *setting = setting_table; setting->name != NULL; setting++) {
        char **slot = setting_value_string(settings, setting);
        if (slot != NULL) {
            settings_free_string(settings, slot);
        }
    }
    for (size_t i = 0; i < SETTING_LIST_MAX; i++) {
        settings_free_string(settings, &settings->bind.at[i]);
        settings_free_string(settings, &settings->proxied.at[i]);
    }
    settings_free_string(settings, &settings->replicaof_host);
    settings_free_string(settings, &settings->default_layout_origin);
    settings_free_string(settings, &settings->file_path);
}

/* ---- Drafts ---- */

void settings_draft_begin(struct settings *draft, struct settings *original) {
    *draft = *original;
    draft->original = original;
}

bool settings_draft_end(struct settings *draft, bool is_fine) {
    struct settings *original = draft->original;
    if (is_fine) {
        /* The other way round: free what the original does not share with the draft. */
        original->original = draft;
        settings_free_strings(original);
        setting_board_drop_replaced(original, draft);
        *original = *draft;
        original->original = NULL;
        original->has_own_layouts = false;
        original->has_own_rules = false;
    } else {
        settings_free_strings(draft);
        setting_board_drop_own(draft);
    }
    return is_fine;
}

/* ---- Life cycle ---- */

bool settings_init(struct settings *settings) {
    memset(settings, 0, sizeof *settings);
    bool is_fine = setting_board_init(settings);
    for (const struct setting *setting = setting_table; is_fine && setting->name != NULL;
         setting++) {
        struct setting_words words = {.count = 0};
        char reason[SETTING_ERROR_MAX];
        if (setting->default_value == NULL) {
            continue;
        }
        CHECK(setting_value_split_line(bytes_from_text(setting->default_value), &words, reason));
        is_fine =
            setting_value_assign(&(struct setting_input){.settings = settings,
                                                         .setting = setting,
                                                         .words = words.words,
                                                         .count = words.count,
                                                         .origin = &(struct setting_origin){0},
                                                         .reason = reason});
    }
    if (!is_fine) {
        settings_deinit(settings);
    }
    return is_fine;
}

void settings_deinit(struct settings *settings) {
    settings_free_strings(settings);
    setting_board_truncate(settings, 0, 0);
    memset(settings, 0, sizeof *settings);
}

bool settings_has_address(const struct setting_addresses *addresses, const char *name) {
    uint32_t i = 0;
    while (i < addresses->count && strcmp(addresses->at[i], name) != 0) {
        i++;
    }
    return i < addresses->count;
}

static bool settings_check_sync_replicas(const struct settings *settings, char *error) {
    if (settings->sync_replicas == 0) {
        return true;
    }
    if (settings->replication_nodes <= settings->sync_replicas) {
        return setting_value_fail(
            error,
            "sync-replicas %lld needs replication-nodes %lld or more: how many "
            "servers there are, the master included",
            (long long)settings->sync_replicas, (long long)settings->sync_replicas + 1);
    }
    if (!settings->appendonly) {
        return setting_value_fail(error,
                                  "sync-replicas needs appendonly yes: what a server has voted "
                                  "and acknowledged must be on its disk");
    }
    if (settings->sync_replicas_fsync && settings->appendfsync != SETTING_APPENDFSYNC_ALWAYS) {
        return setting_value_fail(error, "sync-replicas-fsync yes needs appendfsync always");
    }
    return true;
}

bool settings_finish(struct settings *settings, char *error) {
    if (settings->port == 0 && settings->tls_port == 0 && settings->unixsocket == NULL) {
        return setting_value_fail(error,
                                  "there is nothing to listen on: port and tls-port are 0 and "
                                  "unixsocket is not set");
    }
    for (uint32_t i = 0; i < settings->proxied.count; i++) {
        const char *name = settings->proxied.at[i];
        bool is_there = strcmp(name, "unixsocket") == 0
                            ? settings->unixsocket != NULL
                            : settings_has_address(&settings->bind, name);
        if (!is_there) {
            return setting_value_fail(
                error,
                "proxy-protocol: there is no listener '%s': name addresses as bind "
                "has them, or unixsocket",
                name);
        }
    }
    return settings_check_sync_replicas(settings, error) && setting_board_resolve(settings, error);
}

/* ---- CONFIG SET ---- */

static bool settings_fail_set(char *error, struct bytes name, const char *reason) {
    return setting_value_fail(error, "CONFIG SET failed (possibly related to argument '%s') - %s",
                              bytes_show(name).text, reason);
}

/* Set the settings that repeat, or the others. The name of one that cannot be set, or NULL. */
static const char *settings_assign_pairs(struct settings *draft, const struct bytes *pairs,
                                         uint32_t pair_count, bool is_of_lines, char *reason) {
    for (uint32_t i = 0; i < pair_count; i++) {
        const struct setting *setting = settings_find(pairs[2 * i]);
        CHECK(setting != NULL);
        bool repeats = (setting->flags & SETTING_REPEATS) != 0;
        struct setting_input input = {.settings = draft,
                                      .setting = setting,
                                      .words = &pairs[2 * i + 1],
                                      .count = 1,
                                      .origin = &(struct setting_origin){0},
                                      .reason = reason};
        if (repeats == is_of_lines &&
            !(repeats ? setting_board_replace(&input) : setting_value_assign(&input))) {
            /* Its name, or the older one that was given. */
            const struct setting_alias *alias = settings_aliases;
            while (alias->name != NULL && !bytes_is(pairs[2 * i], alias->name)) {
                alias++;
            }
            return alias->name != NULL ? alias->name : setting->name;
        }
    }
    return NULL;
}

bool settings_set(struct settings *settings, const struct bytes *pairs, uint32_t pair_count,
                  settings_check *check, void *context, char *error) {
    /* Does every name exist, may it be changed, and is it given only once? */
    bool is_seen[SETTINGS_MAX] = {false};
    for (uint32_t i = 0; i < pair_count; i++) {
        struct bytes name = pairs[2 * i];
        const struct setting *setting = settings_find(name);
        if (setting == NULL || (setting->flags & SETTING_IN_FILE) != 0) {
            return setting_value_fail(error,
                                      "Unknown option or number of arguments for CONFIG SET - '%s'",
                                      bytes_show(name).text);
        }
        if ((setting->flags & SETTING_FIXED) != 0) {
            return settings_fail_set(error, name, "can't set immutable config");
        }
        if (is_seen[setting - setting_table]) {
            return settings_fail_set(error, name, "duplicate parameter");
        }
        is_seen[setting - setting_table] = true;
    }
    struct settings draft;
    char reason[SETTING_ERROR_MAX];
    settings_draft_begin(&draft, settings);
    /* Layouts first: default-layout may name one that is new. */
    const char *failed = settings_assign_pairs(&draft, pairs, pair_count, true, reason);
    if (failed == NULL) {
        failed = settings_assign_pairs(&draft, pairs, pair_count, false, reason);
    }
    if (failed == NULL && draft.has_own_layouts && !draft.has_own_rules &&
        !setting_board_repeat_rules(&draft, reason)) {
        failed = "layout";
    }
    bool has_changed = draft.has_own_layouts || draft.has_own_rules;
    if (failed == NULL && has_changed && !setting_board_resolve(&draft, reason)) {
        failed = draft.has_own_layouts ? "layout" : "board";
    }
    if (failed == NULL && !settings_check_sync_replicas(&draft, reason)) {
        failed = draft.appendonly ? "appendfsync" : "appendonly"; /* the others are fixed */
    }
    if (failed == NULL && check != NULL) {
        failed = check(context, &draft, reason);
    }
    return settings_draft_end(&draft, failed == NULL) ||
           settings_fail_set(error, bytes_from_text(failed), reason);
}

/* ---- --help; the pages are made of what --describe says (docs/write) ---- */

const struct setting_use settings_uses[] = {
    {"", "all defaults: 127.0.0.1, port 6379"},
    {"leaderboard.conf", "settings from a file"},
    {"leaderboard.conf --port 7000", "options win over the file"},
    {"- < leaderboard.conf", "settings from the standard input"},
    {"leaderboard.conf --reset-clock",
     "this once stamps follow the machine's clock, even back (docs/reference/clock.md)"},
    {"--check-config FILE", "print every error of a configuration file, and which settings of "
                            "Redis it ignores; status 0 if "
                            "there is no error"},
    {"--ping ADDRESS", "is a server ready?"},
    {"--ping ADDRESS --alive", "does it answer at all?"},
    {"--ping ADDRESS --tls --cacert FILE", "the same with TLS (docs/operate/tls.md)"},
    {"--check DIR", "are the files in DIR whole?"},
    {"--check DIR --fix", "and cut a damaged end off the journal"},
    {"--backup ADDRESS FILE",
     "all boards of a running server, in one file (docs/operate/backup.md)"},
    {"--restore FILE DIR", "a data directory from a backup, or from kept files to a second"},
    {"--export FILE OUT --format csv|jsonl|redis|rdb",
     "a backup as text, as commands for Redis, or as a file for Redis with the module"},
    {"--import OUT DIR --format csv|jsonl", "a data directory from such a text"},
    {"--import dump.rdb leaderboard.conf", "fill the data directory with a dump of Redis"},
    {"--player-token leaderboard.conf KID PLAYER",
     "a token of an hs256 player-key, for an hour or --for SECONDS (docs/players-write.md)"},
    {"--describe", "commands, settings and figures as JSON, of which the documentation is made"},
    {"--version", "the version and the commit"},
    {"--help", "this text"},
    {NULL, NULL},
};

const struct setting_use settings_link_words[] = {
    {"ADDRESS", "PORT of this machine, HOST:PORT, [IPv6]:PORT, or the path of a Unix socket"},
    {"--user NAME", "the user who logs in; without, LEADERBOARD_USER, then the user named default"},
    {"--password-file FILE", "the password is the first line of this file; without, "
                             "LEADERBOARD_PASSWORD, then REDISCLI_AUTH"},
    {"--tls",
     "the server's certificate must be of an authority that the system trusts, and for HOST"},
    {"--cacert FILE", "the authorities to trust instead"},
    {"--cert FILE --key FILE", "the certificate to show, if the server asks for one"},
    {"LEADERBOARD_USER", "a variable of the environment: the user"},
    {"LEADERBOARD_PASSWORD", "a variable of the environment: the password"},
    {"REDISCLI_AUTH", "the password if LEADERBOARD_PASSWORD is not set, as redis-cli takes it"},
    {NULL, NULL},
};

void settings_write_help(FILE *file) {
    fputs("Usage: leaderboard-server [leaderboard.conf | -] [--setting value ...] ...\n\n", file);
    for (const struct setting_use *use = settings_uses; use->words != NULL; use++) {
        char command[SETTING_SYNTAX_MAX];
        snprintf(command, sizeof command, "leaderboard-server %s", use->words);
        fprintf(file, "  %s\n      %s\n", command, use->summary);
    }
    fputs("\nWhat --ping and --backup take:\n\n", file);
    for (const struct setting_use *use = settings_link_words; use->words != NULL; use++) {
        fprintf(file, "  %s\n      %s\n", use->words, use->summary);
    }
    fputs("\nSettings, with their defaults (leaderboard.conf explains them):\n", file);
    for (const struct setting *setting = setting_table; setting->name != NULL; setting++) {
        if (setting == setting_table || setting->section != setting[-1].section) {
            fprintf(file, "\n%s\n", setting->section->title);
        }
        char syntax[SETTING_SYNTAX_MAX];
        fprintf(file, "  --%s %s\n      default: %s\n", setting->name,
                setting_value_print_syntax(setting, syntax),
                setting->default_value != NULL ? setting->default_value : "none");
    }
}
