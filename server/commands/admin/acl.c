/* ACL: users, and what they may do. */
#include <stdio.h>
#include <string.h>

#include "server/acl/acl_check.h"
#include "server/acl/acl_rules.h"
#include "server/dispatch/call.h"
#include "server/dispatch/category.h"
#include "server/system/digest.h"

/* ---- ACL SETUSER ---- */

/* A copy of the user, or a new one. NULL: the error was replied. */
static struct acl_user *acl_make_draft(const struct call *call, struct bytes name,
                                       bool has_all_channels) {
    struct acl_users *users = &call->server->acl.users;
    const struct acl_user *user = acl_users_find(users, name);
    if (!acl_rules_is_name(name) || name.size == 0) {
        call_refuse(call, "ERR Usernames can't contain spaces or null characters");
        return NULL;
    }
    if (user == NULL && users->count == ACL_USERS_MAX) {
        (void)call_refuse_format(call, "ERR at most %d users", (int)ACL_USERS_MAX);
        return NULL;
    }
    struct acl_user *draft =
        user != NULL ? acl_user_copy(user) : acl_user_create(name, has_all_channels);
    if (draft == NULL || !acl_users_reserve(users)) {
        acl_user_destroy(draft);
        call_out_of_memory(call);
        return NULL;
    }
    return draft;
}

/* The rules, with those that keep new tokens in the place of each "token>label". */
struct acl_setting {
    const struct bytes *rules;
    struct bytes *changed;       /* NULL: as they were given */
    struct acl_token_made *made; /* NULL: none */
    uint32_t made_count;
};

static enum acl_status acl_make_tokens(const struct call *call, struct acl_setting *setting,
                                       struct bytes *failed) {
    const struct bytes *given = call->request->args + 3;
    uint32_t count = call->request->count - 3;
    uint32_t wanted = 0;
    *setting = (struct acl_setting){.rules = given};
    for (uint32_t i = 0; i < count; i++) {
        if (acl_token_sign(given[i]) == '>' && ++wanted > ACL_TOKENS_MAX) {
            *failed = given[i];
            return ACL_TOO_MANY;
        }
    }
    if (wanted == 0) {
        return ACL_OK;
    }
    *failed = given[0];
    setting->changed = memory_allocate(count * sizeof *setting->changed);
    setting->made = memory_allocate(wanted * sizeof *setting->made);
    if (setting->changed == NULL || setting->made == NULL) {
        return ACL_OUT_OF_MEMORY;
    }
    setting->rules = setting->changed;
    for (uint32_t i = 0; i < count; i++) {
        struct acl_token_made *made = &setting->made[setting->made_count];
        setting->changed[i] = given[i];
        if (acl_token_sign(given[i]) != '>') {
            continue;
        }
        if (!acl_token_make(given[i], made)) {
            *failed = given[i];
            return ACL_BAD_TOKEN;
        }
        setting->changed[i] = (struct bytes){.at = made->rule, .size = made->rule_size};
        setting->made_count++;
    }
    return ACL_OK;
}

static void setuser_run(struct call *call) {
    struct server *server = call->server;
    bool has_all_channels = server->settings.acl_pubsub_default == SETTING_ACL_ALLCHANNELS;
    struct acl_user *draft = acl_make_draft(call, call_arg(call, 2), has_all_channels);
    if (draft == NULL) {
        return;
    }
    struct acl_setting setting;
    struct buffer joined;
    struct bytes failed = {.size = 0};
    buffer_init(&joined, 0);
    enum acl_status status = acl_make_tokens(call, &setting, &failed);
    if (status == ACL_OK) {
        uint32_t count = call->request->count - 3;
        status = acl_rules_apply_all(draft, &server->acl.users, setting.rules, count,
                                     has_all_channels, &joined, &failed);
        /* It is refused as it was given. */
        for (uint32_t i = 0; i < count; i++) {
            if (failed.at == setting.rules[i].at) {
                failed = call_arg(call, 3 + i);
            }
        }
    }
    if (status == ACL_OK) {
        const struct acl_user *user = acl_users_replace(&server->acl.users, draft);
        acl_check_refresh(server, user);
        draft = NULL;
    }
    int shown = bytes_shown_size(failed, 1024);
    if (status == ACL_OUT_OF_MEMORY) {
        call_out_of_memory(call);
    } else if (status == ACL_UNMATCHED_PARENTHESIS) {
        reply_error_format(call->reply,
                           "ERR Unmatched parenthesis in acl selector starting at '%.*s'.", shown,
                           failed.at);
    } else if (status != ACL_OK) {
        reply_error_format(call->reply, "ERR Error in ACL SETUSER modifier '%.*s': %s", shown,
                           failed.at, acl_rules_status_text(status));
    } else if (setting.made_count == 0) {
        reply_ok(call->reply);
    } else if (setting.made_count > 1) {
        reply_array(call->reply, setting.made_count);
    }
    /* The tokens, this once. */
    for (uint32_t i = 0; status == ACL_OK && i < setting.made_count; i++) {
        reply_bulk(call->reply,
                   (struct bytes){.at = setting.made[i].token, .size = ACL_TOKEN_SIZE});
    }
    acl_user_destroy(draft);
    if (setting.made != NULL) {
        explicit_bzero(setting.made, setting.made_count * sizeof *setting.made);
    }
    memory_free(setting.made);
    memory_free(setting.changed);
    buffer_deinit(&joined);
}

static const struct command acl_setuser = {
    .name = "SETUSER",
    .audit = AUDIT_USERS,
    .syntax = "username [rule...]",
    .reply = "<OK>|s|[s]",
    .summary = "Change the rules of a user, all or none, or add a user; reply the tokens made",
    .complexity = "O(n) in the rules given and those of the user",
    .flags = COMMAND_ADMIN | COMMAND_LOADING | COMMAND_SECRET,
    .run = setuser_run,
};

/* ---- ACL DELUSER ---- */

static void deluser_run(struct call *call) {
    struct server *server = call->server;
    int64_t count = 0;
    for (uint32_t i = 2; i < call->request->count; i++) {
        if (bytes_equal(call_arg(call, i), BYTES("default"))) {
            reply_error(call->reply, "ERR The 'default' user cannot be removed");
            return;
        }
    }
    for (uint32_t i = 2; i < call->request->count; i++) {
        struct acl_user *user = acl_users_find(&server->acl.users, call_arg(call, i));
        if (user != NULL) {
            acl_rules_close_clients(server, user, call->session);
            acl_users_remove(&server->acl.users, user);
            count++;
        }
    }
    reply_integer(call->reply, count);
}

static const struct command acl_deluser = {
    .name = "DELUSER",
    .audit = AUDIT_USERS,
    .syntax = "username...",
    .reply = "i",
    .summary = "Remove users, and close their connections; count the users",
    .complexity = "O(n) in the connections, for each user",
    .flags = COMMAND_ADMIN | COMMAND_LOADING,
    .run = deluser_run,
};

/* ---- ACL GETUSER LIST USERS WHOAMI ---- */

static void acl_reply_printed(const struct call *call, const char *name,
                              void (*print)(const struct acl_selector *, struct buffer *),
                              const struct acl_selector *selector) {
    struct buffer text;
    buffer_init(&text, 0);
    print(selector, &text);
    reply_bulk_text(call->reply, name);
    reply_bulk(call->reply, buffer_bytes(&text));
    call->reply->out->is_broken |= text.is_broken;
    buffer_deinit(&text);
}

static void acl_reply_selector(const struct call *call, const struct acl_selector *selector) {
    acl_reply_printed(call, "commands", acl_rules_print_commands, selector);
    acl_reply_printed(call, "keys", acl_rules_print_keys, selector);
    acl_reply_printed(call, "channels", acl_rules_print_channels, selector);
}

static void acl_reply_list(struct reply *reply, const char *name, const struct acl_list *list) {
    reply_bulk_text(reply, name);
    reply_array(reply, list->count);
    for (uint32_t i = 0; i < list->count; i++) {
        reply_bulk(reply, list->at[i].text);
    }
}

static void getuser_run(struct call *call) {
    const struct acl_user *user = acl_users_find(&call->server->acl.users, call_arg(call, 2));
    struct reply *reply = call->reply;
    uint32_t flag_count = 0;
    if (user == NULL) {
        reply_null(reply);
        return;
    }
    while (acl_rules_flag(user, flag_count) != NULL) {
        flag_count++;
    }
    bool has_tokens = user->tokens.count > 0; /* which Redis has not */
    reply_map(reply, has_tokens ? 7 : 6);
    reply_bulk_text(reply, "flags");
    reply_set(reply, flag_count);
    for (uint32_t i = 0; i < flag_count; i++) {
        reply_bulk_text(reply, acl_rules_flag(user, i));
    }
    acl_reply_list(reply, "passwords", &user->passwords);
    acl_reply_selector(call, user->selectors[0]);
    reply_bulk_text(reply, "selectors");
    reply_array(reply, user->selector_count - 1);
    for (uint32_t i = 1; i < user->selector_count; i++) {
        reply_map(reply, 3);
        acl_reply_selector(call, user->selectors[i]);
    }
    if (has_tokens) {
        acl_reply_list(reply, "tokens", &user->tokens);
    }
}

static const struct command acl_getuser = {
    .name = "GETUSER",
    .syntax = "username",
    .reply = "(flags:[s] passwords:[s] commands:s keys:s channels:s selectors:[(commands:s keys:s "
             "channels:s)] tokens?:[s])?",
    .summary = "The rules of a user, by what they are about",
    .complexity = "O(n) in the rules of the user",
    .flags = COMMAND_ADMIN | COMMAND_LOADING,
    .run = getuser_run,
};

static void list_run(struct call *call) {
    const struct acl_users *users = &call->server->acl.users;
    struct buffer line;
    buffer_init(&line, 0);
    reply_array(call->reply, users->count);
    for (uint32_t i = 0; i < users->count && !reply_is_lost(call->reply); i++) {
        buffer_clear(&line);
        buffer_append_text(&line, "user ");
        acl_rules_print_named(users->at[i], &line);
        reply_bulk(call->reply, buffer_bytes(&line));
        call->reply->out->is_broken |= line.is_broken;
    }
    buffer_deinit(&line);
}

static const struct command acl_list = {
    .name = "LIST",
    .reply = "[s]",
    .summary = "All users with their rules, as lines of a file",
    .complexity = "O(n) in the users and their rules",
    .flags = COMMAND_ADMIN | COMMAND_LOADING,
    .run = list_run,
};

static void users_run(struct call *call) {
    const struct acl_users *users = &call->server->acl.users;
    reply_array(call->reply, users->count);
    for (uint32_t i = 0; i < users->count; i++) {
        reply_bulk(call->reply, users->at[i]->name);
    }
}

static const struct command acl_users_command = {
    .name = "USERS",
    .reply = "[s]",
    .summary = "The names of all users",
    .complexity = "O(n) in the users",
    .flags = COMMAND_ADMIN | COMMAND_LOADING,
    .run = users_run,
};

static void whoami_run(struct call *call) {
    reply_bulk(call->reply, session_user_name(call->session));
}

static const struct command acl_whoami = {
    .name = "WHOAMI",
    .reply = "s",
    .summary = "The name of this connection's user",
    .flags = COMMAND_LOADING,
    .run = whoami_run,
};

/* ---- ACL CAT ---- */

static void cat_run(struct call *call) {
    if (!call_check_count(call, 3, "ACL")) {
        return;
    }
    if (call->request->count == 2) {
        reply_array(call->reply, CATEGORIES);
        for (uint32_t category = 0; category < CATEGORIES; category++) {
            reply_bulk_text(call->reply, category_name(category));
        }
        return;
    }
    struct bytes name = call_arg(call, 2);
    uint32_t category = category_find(name);
    if (category == CATEGORIES) {
        reply_error_format(call->reply, "ERR Unknown category '%.*s'", bytes_shown_size(name, 128),
                           name.at);
        return;
    }
    uint64_t count = 0;
    size_t mark = reply_array_begin(call->reply);
    for (uint32_t index = 0; index < command_count(); index++) {
        if ((category_mask(index) >> category & 1) != 0) {
            reply_bulk_text(call->reply, command_full_name(index));
            count++;
        }
    }
    reply_array_end(call->reply, mark, count);
}

static const struct command acl_cat = {
    .name = "CAT",
    .syntax = "[category]",
    .reply = "[s]",
    .summary = "The categories of commands, or the commands of one",
    .complexity = "O(n) in the commands",
    .arity = -2,
    .flags = COMMAND_LOADING,
    .run = cat_run,
};

/* ---- ACL LOG ---- */

static void acl_reply_named(struct reply *reply, const char *name, struct bytes text) {
    reply_bulk_text(reply, name);
    reply_bulk(reply, text);
}

static void log_run(struct call *call) {
    struct acl_log *log = &call->server->acl.log;
    struct reply *reply = call->reply;
    int64_t wanted = 10;
    if (!call_check_count(call, 3, "ACL")) {
        return;
    }
    if (call->request->count == 3 && call_arg_is(call, 2, "RESET")) {
        acl_log_clear(log);
        reply_ok(reply);
        return;
    }
    if (call->request->count == 3 && !call_parse_integer(call, call_arg(call, 2), &wanted)) {
        return;
    }
    wanted = wanted < 0 ? 0 : wanted;
    uint64_t count = wanted < log->count ? (uint64_t)wanted : log->count;
    reply_array(reply, count);
    const struct acl_log_entry *entry = log->first;
    for (uint64_t i = 0; i < count && !reply_is_lost(reply); i++, entry = entry->next) {
        reply_map(reply, 10);
        reply_named_integer(reply, "count", (int64_t)entry->count);
        reply_named_text(reply, "reason", acl_denial_names[entry->denial]);
        reply_named_text(reply, "context", entry->context);
        acl_reply_named(reply, "object", entry->object);
        acl_reply_named(reply, "username", entry->user);
        reply_bulk_text(reply, "age-seconds");
        reply_double(reply, (double)(call->now_ms - entry->time_ms) / 1000);
        acl_reply_named(reply, "client-info", entry->client);
        reply_named_integer(reply, "entry-id", (int64_t)entry->id);
        reply_named_integer(reply, "timestamp-created", entry->first_time_ms);
        reply_named_integer(reply, "timestamp-last-updated", entry->time_ms);
    }
}

static const struct command acl_log_command = {
    .name = "LOG",
    .syntax = "operation=[count:integer | RESET]",
    .reply = "[(count:i reason:s context:s object:s username:s age-seconds:n client-info:s "
             "entry-id:i timestamp-created:i timestamp-last-updated:i)]|RESET=<OK>",
    .summary =
        "What was refused to whom, newest first: logins that failed, and requests without a right",
    .complexity = "O(n) in the entries returned",
    .arity = -2,
    .flags = COMMAND_ADMIN | COMMAND_LOADING,
    .run = log_run,
};

/* ---- ACL DRYRUN ---- */

static void dryrun_run(struct call *call) {
    const struct acl_user *user = acl_users_find(&call->server->acl.users, call_arg(call, 2));
    const struct request request = {
        .count = call->request->count - 3,
        .args = call->request->args + 3,
        .size = call->request->size,
    };
    if (user == NULL) {
        reply_error_format(call->reply, "ERR User '%.*s' not found",
                           bytes_shown_size(call_arg(call, 2), 1024), call_arg(call, 2).at);
        return;
    }
    uint32_t index = command_find_request(&request);
    if (index == COMMAND_NONE) {
        reply_error_format(call->reply, "ERR Command '%.*s' not found",
                           bytes_shown_size(request.args[0], 1024), request.args[0].at);
        return;
    }
    if (command_has_wrong_arity(command_by_index(index), &request)) {
        reply_error_format(call->reply, "ERR wrong number of arguments for '%s' command",
                           command_full_name(index));
        return;
    }
    uint32_t position;
    enum acl_denial denial = acl_check(user, index, &request, &position);
    struct bytes name = request.args[position];
    if (denial == ACL_ALLOWED) {
        reply_ok(call->reply);
    } else if (denial == ACL_DENIED_COMMAND) {
        reply_bulk_format(call->reply, "This user has no permissions to run the '%s' command",
                          command_full_name(index));
    } else {
        reply_bulk_format(call->reply, "This user has no permissions to access the '%.*s' %s",
                          bytes_shown_size(name, 1024), name.at, acl_denial_names[denial]);
    }
}

static const struct command acl_dryrun = {
    .name = "DRYRUN",
    .syntax = "username command [arg...]",
    .reply = "<OK>|s",
    .summary = "Whether a user may run a command, without running it",
    .complexity = "O(n) in the keys of the command",
    /* The command may be AUTH. */
    .flags = COMMAND_ADMIN | COMMAND_LOADING | COMMAND_SECRET,
    .run = dryrun_run,
};

/* ---- ACL GENPASS ---- */

static void genpass_run(struct call *call) {
    enum { BITS_MAX = 4096 };
    char text[BITS_MAX / 4];
    int64_t bits = 256;
    if (!call_check_count(call, 3, "ACL") ||
        (call->request->count == 3 && !call_parse_integer(call, call_arg(call, 2), &bits))) {
        return;
    }
    if (bits <= 0 || bits > BITS_MAX) {
        reply_error_format(call->reply,
                           "ERR ACL GENPASS argument must be the number of bits for the output "
                           "password, a positive number up to %d",
                           (int)BITS_MAX);
        return;
    }
    size_t size = (size_t)(bits + 3) / 4;
    digest_random(text, size);
    reply_bulk(call->reply, (struct bytes){.at = text, .size = size});
}

static const struct command acl_genpass = {
    .name = "GENPASS",
    .syntax = "[bits:integer]",
    .reply = "s",
    .summary = "A random password, in hexadecimal",
    .arity = -2,
    .flags = COMMAND_LOADING,
    .run = genpass_run,
};

/* ---- ACL LOAD SAVE ---- */

static bool acl_check_file(const struct call *call) {
    return call->server->acl.path != NULL ||
           call_refuse(call, "ERR This Redis instance is not configured to use an ACL file. You "
                             "may want to specify users via the ACL SETUSER command and then issue "
                             "a CONFIG REWRITE (assuming you have a Redis configuration file set) "
                             "in order to store users in the Redis configuration.");
}

static void load_run(struct call *call) {
    char error[ACL_FILE_ERROR_MAX];
    if (!acl_check_file(call)) {
        return;
    }
    if (acl_rules_load(call->server, call->session, error)) {
        reply_ok(call->reply);
    } else {
        reply_error_format(call->reply, "ERR %s", error);
    }
}

static const struct command acl_load = {
    .name = "LOAD",
    .audit = AUDIT_USERS,
    .reply = "<OK>",
    .summary = "Read all users from the aclfile again, or none if it has an error",
    .complexity = "O(n) in the users and the connections",
    .flags = COMMAND_ADMIN | COMMAND_LOADING,
    .run = load_run,
};

static void save_run(struct call *call) {
    char error[ACL_FILE_ERROR_MAX];
    if (!acl_check_file(call)) {
        return;
    }
    if (acl_rules_save(call->server, error)) {
        reply_ok(call->reply);
        return;
    }
    log_write(LOG_WARNING, "users not saved file=%s error=\"%s\"", call->server->acl.path, error);
    reply_error(call->reply, "ERR There was an error trying to save the ACLs. Please check the "
                             "server logs for more information");
}

static const struct command acl_save = {
    .name = "SAVE",
    .audit = AUDIT_USERS,
    .reply = "<OK>",
    .summary = "Write all users to the aclfile",
    .complexity = "O(n) in the users and their rules",
    .flags = COMMAND_ADMIN | COMMAND_LOADING,
    .run = save_run,
};

const struct command command_acl = {
    .name = "ACL",
    .summary = "Users, and what each of them may do",
    .complexity = "Depends on the subcommand",
    .subcommands = COMMAND_LIST(&acl_cat, &acl_deluser, &acl_dryrun, &acl_genpass, &acl_getuser,
                                &call_help_command, &acl_list, &acl_load, &acl_log_command,
                                &acl_save, &acl_setuser, &acl_users_command, &acl_whoami),
};
