/* The filter of commands. See host_run.h.
 *
 * It runs before every command of the host, so a name that is none of ours must cost next to nothing:
 * the first letter decides for nearly all. */
#include <stdio.h>

#include "codec/glob.h"
#include "server/dispatch/command.h"
#include "server/module/host_run.h"

static struct host_string *new_names[MODULE_COMMANDS_MAX]; /* by command_index; NULL: stays */
static struct host_string *type_name;                      /* LB.TYPE */
/* What its master changes in boards comes to a replica as LB.APPLY. Another write on a key that matches
 * is one on a sorted set of the host, and there are no other writes: it stays as it is. */
static bool is_replica;

static struct bytes host_filter_argument(struct host_filter_input *input, int index) {
    struct host_string *text = host_CommandFilterArgGet(input, index);
    return text != NULL ? host_bytes(text) : (struct bytes){.at = "", .size = 0};
}

static bool host_filter_is_board(struct bytes key) {
    const struct settings *settings = &module.server.settings;
    for (uint32_t i = 0; i < settings->rule_count; i++) {
        if (glob_matches(bytes_from_text(settings->rules[i].pattern), key)) {
            return true;
        }
    }
    return false;
}

/* Can a name that begins so be ours? ZADD, BZPOPMIN, TYPE. */
static inline bool host_filter_is_likely(struct bytes name) {
    char first = name.size > 0 ? (char)(name.at[0] & ~0x20) : '\0';
    char second = name.size > 1 ? (char)(name.at[1] & ~0x20) : '\0';
    return first == 'Z' || (first == 'B' && second == 'Z') || (first == 'T' && second == 'Y');
}

static struct host_string *host_filter_find_new_name(struct host_filter_input *input,
                                                     struct bytes name) {
    if (type_name != NULL && bytes_is(name, "TYPE")) {
        return host_filter_is_board(host_filter_argument(input, 1)) ? type_name : NULL;
    }
    const struct command *command = command_find(name);
    const struct request sizes = {.count = (uint32_t)host_CommandFilterArgsCount(input)};
    /* A wrong number of arguments the host's own command refuses, by the name that was sent. */
    if (command == NULL || new_names[command_index(command)] == NULL ||
        command_has_wrong_arity(command, &sizes) ||
        (is_replica && (command->flags & COMMAND_WRITE) != 0)) {
        return NULL;
    }
    bool is_counted = command->first_key == 0;
    int key_index = is_counted ? command->key_count_arg + 1 : command->first_key;
    return host_filter_is_board(host_filter_argument(input, key_index))
               ? new_names[command_index(command)]
               : NULL;
}

static void host_filter_run(struct host_filter_input *input) {
    if (host_CommandFilterArgsCount(input) < 2) {
        return;
    }
    struct bytes name = host_filter_argument(input, 0);
    struct host_string *new_name =
        host_filter_is_likely(name) ? host_filter_find_new_name(input, name) : NULL;
    if (new_name != NULL) {
        host_RetainString(NULL, new_name); /* the host releases one */
        host_CommandFilterArgReplace(input, 0, new_name);
    }
}

void host_filter_note_role(bool is_now_replica) {
    is_replica = is_now_replica;
}

bool host_filter_register(struct host_context *ctx) {
    if (module.server.settings.rule_count == 0) {
        return true;
    }
    is_replica = (host_GetContextFlags(ctx) & HOST_IS_MASTER) == 0;
    for (uint32_t i = 0; i < command_count(); i++) {
        char text[COMMAND_FULL_NAME_MAX + 8];
        const struct command *command = command_by_index(i);
        if (strcmp(command->group, "sorted-set") == 0) {
            int size = snprintf(text, sizeof text, "LB.%s", command->name);
            new_names[i] = host_CreateString(NULL, text, (size_t)size);
        }
    }
    type_name = host_CreateString(NULL, "LB.TYPE", 7);
    return host_RegisterCommandFilter(ctx, host_filter_run, 0) != NULL;
}
