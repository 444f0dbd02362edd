/* See description.h. */
#include "server/description.h"

#include "codec/json.h"
#include "server/dispatch/category.h"
#include "server/dispatch/command.h"
#include "server/dispatch/explain.h"
#include "server/dispatch/shape.h"
#include "server/dispatch/syntax.h"
#include "server/metrics/figures.h"
#include "server/sessions/board_events.h"
#include "server/settings/settings.h"
#include "skiplist/keyspace/board_options.h"

static void description_append(void *file, const char *at, size_t size) {
    (void)fwrite(at, 1, size, file);
}

/* Nothing for NULL. */
static void description_put(struct json *json, const char *key, const char *text) {
    if (text != NULL) {
        json_text(json, key, bytes_from_text(text));
    }
}

/* ---- commands ---- */

static void description_put_arguments(struct json *json, const struct argument *arguments) {
    json_open(json, "arguments", '[');
    for (const struct argument *at = arguments; at != NULL && at->name != NULL; at++) {
        json_open(json, NULL, '{');
        description_put(json, "name", at->name);
        description_put(json, "type", syntax_type_name(at->type));
        description_put(json, "token", at->token);
        json_boolean(json, "is_optional", (at->flags & ARGUMENT_OPTIONAL) != 0);
        json_boolean(json, "is_multiple", (at->flags & ARGUMENT_MULTIPLE) != 0);
        json_boolean(json, "is_token_repeated", (at->flags & ARGUMENT_MULTIPLE_TOKEN) != 0);
        if (at->children != NULL) {
            description_put_arguments(json, at->children);
        }
        json_close(json, '}');
    }
    json_close(json, ']');
}

static void description_put_command(struct json *json, const struct command *container,
                                    const struct command *command) {
    enum { SYNTAX_MAX = 4096 };
    char syntax[SYNTAX_MAX];
    json_open(json, NULL, '{');
    description_put(json, "name", command->name);
    description_put(json, "container", container != NULL ? container->name : NULL);
    description_put(json, "group", command->group);
    description_put(json, "summary", command->summary);
    description_put(json, "complexity", command->complexity);
    description_put(json, "since", command->since);
    (void)syntax_print(command, syntax, sizeof syntax);
    description_put(json, "syntax", syntax);
    description_put(json, "reply", command->reply);
    json_open(json, "flags", '[');
    for (const struct category_flag *row = category_flags; row->flags != 0; row++) {
        description_put(json, NULL, (command->flags & row->flags) != 0 ? row->name : NULL);
    }
    json_close(json, ']');
    json_boolean(json, "is_secret", (command->flags & COMMAND_SECRET) != 0);
    json_boolean(json, "runs", command->run != NULL);
    json_boolean(json, "has_keys", command->first_key != 0);
    if (command->cost != NULL && command->cost->unit_ns > 0) {
        json_open(json, "cost", '{');
        description_put(json, "unit", command->cost->unit);
        json_integer(json, "unit_ns", command->cost->unit_ns);
        description_put(json, "instead", command->cost->instead);
        json_boolean(json, "is_refused", command->cost->bound != COMMAND_NEVER_REFUSED);
        json_close(json, '}');
    }
    description_put_arguments(json, command->arguments);
    json_close(json, '}');
}

static void description_put_commands(struct json *json) {
    const struct command *container = NULL;
    json_open(json, "commands", '[');
    for (uint32_t index = 0; index < command_count(); index++) {
        const struct command *command = command_by_index(index);
        bool is_subcommand = command_is_subcommand(index);
        container = is_subcommand ? container : command;
        description_put_command(json, is_subcommand ? container : NULL, command);
    }
    json_close(json, ']');
    json_open(json, "shapes", '[');
    for (unsigned i = 0; shape_name(i) != NULL; i++) {
        json_open(json, NULL, '{');
        description_put(json, "name", shape_name(i));
        description_put(json, "shape", shape_find(bytes_from_text(shape_name(i))));
        json_close(json, '}');
    }
    json_close(json, ']');
    json_open(json, "channels", '[');
    for (const struct board_events_channel *row = board_events_channels; row->word != NULL; row++) {
        json_open(json, NULL, '{');
        description_put(json, "word", row->word);
        description_put(json, "names", row->names);
        description_put(json, "messages", row->messages);
        json_close(json, '}');
    }
    json_close(json, ']');
}

/* ---- settings ---- */

static void description_put_uses(struct json *json, const char *key,
                                 const struct setting_use *uses) {
    json_open(json, key, '[');
    for (const struct setting_use *use = uses; use->words != NULL; use++) {
        json_open(json, NULL, '{');
        description_put(json, "words", use->words);
        description_put(json, "summary", use->summary);
        json_close(json, '}');
    }
    json_close(json, ']');
}

static void description_put_settings(struct json *json) {
    char syntax[SETTING_SYNTAX_MAX];
    json_open(json, "settings", '[');
    for (const struct setting *setting = setting_table; setting->name != NULL; setting++) {
        enum setting_type type = setting->kind.type;
        json_open(json, NULL, '{');
        description_put(json, "name", setting->name);
        json_open(json, "aliases", '[');
        for (const struct setting_alias *alias = settings_aliases; alias->name != NULL; alias++) {
            description_put(json, NULL, strcmp(alias->of, setting->name) == 0 ? alias->name : NULL);
        }
        json_close(json, ']');
        description_put(json, "section", setting->section->title);
        description_put(json, "about", setting->section->summary);
        description_put(json, "type",
                        type == SETTING_TYPE_CHOICE      ? "choice"
                        : type == SETTING_TYPE_ONLY      ? "choice"
                        : type == SETTING_TYPE_BOOLEAN   ? "choice"
                        : type == SETTING_TYPE_DIRECTORY ? "directory"
                        : type == SETTING_TYPE_STRING && strstr(setting->kind.text, "path") != NULL
                            ? "path"
                            : "other");
        description_put(json, "syntax", setting_value_print_syntax(setting, syntax));
        description_put(json, "default", setting->default_value);
        description_put(json, "example", setting->example);
        json_boolean(json, "is_fixed", (setting->flags & SETTING_FIXED) != 0);
        description_put(json, "summary", setting->summary);
        json_close(json, '}');
    }
    json_close(json, ']');
    json_open(json, "redis_settings", '[');
    for (const struct setting_redis *row = setting_redis_table; row->names != NULL; row++) {
        json_open(json, NULL, '{');
        description_put(json, "names", row->names);
        description_put(json, "only", row->only);
        description_put(json, "why", row->why);
        json_close(json, '}');
    }
    json_close(json, ']');
    description_put_uses(json, "uses", settings_uses);
    description_put_uses(json, "link_words", settings_link_words);
}

/* ---- options of boards ---- */

/* Those that have a word of their own; what they are on a board is in the shapes of LB.INFO. */
static void description_put_options(struct json *json) {
    json_open(json, "options", '[');
    for (size_t i = 0; i < BOARD_OPTION_COUNT; i++) {
        const struct board_option *option = &board_options[i];
        if (option->word == NULL || option->is_state || option->is_of_line) {
            continue;
        }
        json_open(json, NULL, '{');
        description_put(json, "word", option->word);
        description_put(json, "wanted", option->wanted);
        json_open(json, "words", '[');
        description_put(json, NULL, option->words[0]);
        description_put(json, NULL, option->words[1]);
        json_close(json, ']');
        description_put(json, "none", option->none);
        if (option->form == BOARD_FORM_NUMBER) {
            json_integer(json, "minimum", option->minimum);
            json_integer(json, "maximum", option->maximum);
        }
        json_boolean(json, "is_of_league", option->is_of_league);
        json_close(json, '}');
    }
    json_close(json, ']');
}

/* ---- figures ---- */

static void description_put_figures(struct json *json) {
    const struct figure *end = figures_table + figures_row_count;
    json_open(json, "figures", '[');
    for (unsigned place = 0; place < FIGURE_PLACES; place++) {
        for (const struct figure *row = figures_table; row < end; row++) {
            bool has_name = row->info != NULL || row->metric != NULL || row->api != NULL;
            if (row->place != place || row->section != NULL || !has_name) {
                continue;
            }
            json_open(json, NULL, '{');
            description_put(json, "info", row->info);
            if (row->metric != NULL) {
                description_put(json, "heading", figures_heading(row->place));
                description_put(json, "metric", row->metric);
                description_put(json, "kind", figures_kind_names[row->kind]);
                description_put(json, "each", figures_label(row->of));
                description_put(json, "labels", row->label);
                description_put(json, "help", row->help);
            }
            description_put(json, "api", row->api);
            json_close(json, '}');
        }
    }
    json_close(json, ']');
}

void description_write(FILE *file) {
    struct json json = {.append = description_append, .out = file, .is_for_page = true};
    json_open(&json, NULL, '{');
    description_put(&json, "version", SERVER_VERSION);
    description_put(&json, "redis_version", SERVER_REDIS_VERSION);
    description_put_commands(&json);
    description_put_settings(&json);
    description_put_options(&json);
    description_put_figures(&json);
    json_open(&json, "errors", '[');
    for (const struct explained_error *row = explain_errors; row->prefix != NULL; row++) {
        json_open(&json, NULL, '{');
        description_put(&json, "prefix", row->prefix);
        if (row->http_status != 0) {
            json_integer(&json, "http_status", row->http_status);
        }
        description_put(&json, "meaning", row->meaning);
        description_put(&json, "advice", row->advice);
        json_close(&json, '}');
    }
    json_close(&json, ']');
    json_close(&json, '}');
    fputc('\n', file);
}
