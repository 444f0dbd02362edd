/* LB.CREATE: creates an empty board with its own layout and options.
 *
 *     LB.CREATE board FIELD points 22 TIME 31 S CAP 1000 KEEP BEST
 *       rules from the settings, or from the arguments -> options -> an empty board */
#include "server/clients/server.h"
#include "server/commands/lb/lb.h"

enum { FIRST_WORD = 2 };

static bool refuse(const struct call *call, const char *reason) {
    reply_error_format(call->reply, "ERR %s", reason);
    return false;
}

/* LAYOUT name: parse the words at *next and advance *next past them. */
static bool read_layout_name(const struct call *call, uint32_t *next, struct layout *layout) {
    const struct settings *settings = &call->server->settings;
    char reason[SETTING_REASON_MAX];
    if (*next + 1 == call->request->count) {
        return refuse(call, "LAYOUT needs the name of a configured layout");
    }
    struct bytes name = call_arg(call, *next + 1);
    const struct layout *found = settings_find_layout(settings, name);
    if (found == NULL) {
        settings_explain_layout(settings, name, reason);
        return refuse(call, reason);
    }
    *layout = *found;
    *next += 2;
    return true;
}

/* FIELD ... TIME ..., likewise. */
static bool read_layout(const struct call *call, uint32_t *next, struct layout *layout) {
    const struct bytes *words = &call->request->args[*next];
    size_t count = layout_count_words(words, call->request->count - *next);
    char error[LAYOUT_ERROR_MAX];
    if (layout_parse_words(words, count, layout, error) != LAYOUT_OK) {
        return refuse(call, error);
    }
    *next += (uint32_t)count;
    return true;
}

/* The arguments after the key. A layout given here replaces all rules from the settings. Without
 * one, layout and options come from the settings, and the arguments override what they name. */
static bool read_rules(const struct call *call, struct rules *rules) {
    const struct request *request = call->request;
    char reason[SETTING_REASON_MAX];
    uint32_t next = FIRST_WORD;
    *rules = (struct rules){.is_created = true};
    if (next < request->count && call_arg_is(call, next, "LAYOUT")) {
        if (!read_layout_name(call, &next, &rules->layout)) {
            return false;
        }
    } else if (next < request->count &&
               (call_arg_is(call, next, "FIELD") || call_arg_is(call, next, "TIME"))) {
        if (!read_layout(call, &next, &rules->layout)) {
            return false;
        }
    } else {
        rules_copy(settings_rules_for(&call->server->settings, call_arg(call, 1)), rules);
        rules->is_created = true;
    }
    bool is_fine =
        settings_parse_options(&request->args[next], request->count - next, rules, reason) &&
        settings_check_rules(rules, reason);
    return is_fine || refuse(call, reason);
}

static void lb_create_run(struct call *call) {
    struct rules rules;
    struct bytes name = call_arg(call, 1);
    bool is_new;
    if (!zset_check_key(call, name) || !read_rules(call, &rules)) {
        return;
    }
    if (registry_find_or_create_like(call->registry, call->session->database, name, &rules,
                                     call->now_ms, &is_new) == NULL) {
        call_out_of_memory(call);
    } else if (!is_new) {
        reply_error(call->reply, "BUSYKEY Target key name already exists.");
    } else {
        reply_ok(call->reply);
    }
}

#define TOKEN(argument, word)                                                                      \
    { .name = (argument), .type = ARGUMENT_PURE_TOKEN, .token = (word) }

static const struct argument field_arguments[] = {
    {.name = "name", .type = ARGUMENT_STRING},
    {.name = "bits", .type = ARGUMENT_INTEGER},
    {.name = "order",
     .type = ARGUMENT_ONEOF,
     .flags = ARGUMENT_OPTIONAL,
     .children = (const struct argument[]){TOKEN("asc", "ASC"), TOKEN("desc", "DESC"), {0}}},
    {.name = "signed", .type = ARGUMENT_PURE_TOKEN, .token = "SIGNED", .flags = ARGUMENT_OPTIONAL},
    {.name = "scale", .type = ARGUMENT_INTEGER, .token = "SCALE", .flags = ARGUMENT_OPTIONAL},
    {0},
};

static const struct argument time_arguments[] = {
    {.name = "bits", .type = ARGUMENT_INTEGER},
    {.name = "unit",
     .type = ARGUMENT_ONEOF,
     .children = (const struct argument[]){TOKEN("us", "US"),
                                           TOKEN("ms", "MS"),
                                           TOKEN("s", "S"),
                                           TOKEN("m", "M"),
                                           TOKEN("h", "H"),
                                           TOKEN("d", "D"),
                                           {0}}},
    {.name = "window",
     .type = ARGUMENT_ONEOF,
     .flags = ARGUMENT_OPTIONAL,
     .children = lb_window_arguments},
    {.name = "latest", .type = ARGUMENT_PURE_TOKEN, .token = "LATEST", .flags = ARGUMENT_OPTIONAL},
    {0},
};

static const struct argument fields_arguments[] = {
    {.name = "field",
     .type = ARGUMENT_BLOCK,
     .token = "FIELD",
     .flags = ARGUMENT_MULTIPLE | ARGUMENT_MULTIPLE_TOKEN,
     .children = field_arguments},
    {.name = "time",
     .type = ARGUMENT_BLOCK,
     .token = "TIME",
     .flags = ARGUMENT_OPTIONAL,
     .children = time_arguments},
    {0},
};

static const struct argument period_arguments[] = {
    {.name = "unit",
     .type = ARGUMENT_ONEOF,
     .children =
         (const struct argument[]){
             TOKEN("day", "DAY"), TOKEN("week", "WEEK"), TOKEN("month", "MONTH"), {0}}},
    {.name = "offset", .type = ARGUMENT_STRING, .token = "TZ", .flags = ARGUMENT_OPTIONAL},
    {.name = "periods", .type = ARGUMENT_INTEGER, .token = "ARCHIVE", .flags = ARGUMENT_OPTIONAL},
    {0},
};

static const struct argument lb_create_arguments[] = {
    {.name = "key", .type = ARGUMENT_KEY},
    {.name = "layout",
     .type = ARGUMENT_ONEOF,
     .flags = ARGUMENT_OPTIONAL,
     .children =
         (const struct argument[]){
             {.name = "name", .type = ARGUMENT_STRING, .token = "LAYOUT"},
             {.name = "fields", .type = ARGUMENT_BLOCK, .children = fields_arguments},
             {0},
         }},
    {.name = "cap", .type = ARGUMENT_INTEGER, .token = "CAP", .flags = ARGUMENT_OPTIONAL},
    {.name = "keep",
     .type = ARGUMENT_ONEOF,
     .token = "KEEP",
     .flags = ARGUMENT_OPTIONAL,
     .children = (const struct argument[]){TOKEN("last", "LAST"), TOKEN("best", "BEST"), {0}}},
    {.name = "period",
     .type = ARGUMENT_BLOCK,
     .token = "PERIOD",
     .flags = ARGUMENT_OPTIONAL,
     .children = period_arguments},
    {0},
};

const struct command command_lb_create = {
    .name = "LB.CREATE",
    .summary = "Make an empty board with a layout and options of its own, which stays when it is "
               "empty",
    .complexity = "O(1)",
    .since = "1.0.0",
    .group = "leaderboard",
    .arity = -2,
    .flags = COMMAND_WRITE | COMMAND_DENYOOM | COMMAND_FAST,
    .first_key = 1,
    .last_key = 1,
    .key_step = 1,
    .arguments = lb_create_arguments,
    .run = lb_create_run,
};
