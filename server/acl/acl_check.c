/* Permission checks, in Redis's order: command, keys, channels. See acl_check.h.
 *
 * In Redis and Valkey the users are the host's, and server/module/host_run.c takes this file's place. */
#include "server/acl/acl_check.h"

#include <stdio.h>

#include "codec/glob.h"
#include "server/dispatch/syntax.h"
#include "server/sessions/board_events.h"
#include "server/sessions/server.h"

/* ---- one selector ---- */

static bool acl_check_may_run(const struct acl_selector *selector, uint32_t command,
                              const struct request *request) {
    if (selector->has_all_commands || acl_selector_has_bit(selector, command) ||
        (command_by_index(command)->flags & COMMAND_NO_AUTH) != 0) {
        return true;
    }
    for (uint32_t i = 0; request->count >= 2 && i < selector->first_args.count; i++) {
        const struct acl_text *each = &selector->first_args.at[i];
        if (each->value == command && bytes_equal_ignoring_case(each->text, request->args[1])) {
            return true;
        }
    }
    return false;
}

static bool acl_check_may_access(const struct acl_selector *selector, struct bytes key,
                                 unsigned access) {
    return selector->has_all_keys || acl_patterns_take(&selector->keys, key, access);
}

static bool acl_check_may_access_all(const struct acl_selector *selector, uint32_t command,
                                     const struct request *request, uint32_t *position) {
    const struct key_spec *specs;
    uint32_t count = syntax_key_of(command, &specs);
    const struct command *entry = command_by_index(command);
    bool fits = count > 0; /* if not all keys do, the command will reply an error */
    for (uint32_t i = 0; i < count && fits && !selector->has_all_keys; i++) {
        fits = syntax_key_walk(entry, &specs[i], request).end != 0;
    }
    if (selector->has_all_keys || !fits) {
        return true;
    }
    struct request_keys keys = syntax_key_request_begin(command, request);
    for (uint32_t at; (at = syntax_key_request_next(&keys)) > 0;) {
        unsigned access = syntax_key_needs(keys.spec->flags);
        if (!acl_patterns_take(&selector->keys, request->args[at], access)) {
            *position = at;
            return false;
        }
    }
    return true;
}

/* A pattern of PSUBSCRIBE must be one of the user's. */
static bool acl_check_may_hear(const struct acl_selector *selector, struct bytes channel,
                               bool is_pattern) {
    if (selector->has_all_channels) {
        return true;
    }
    return is_pattern ? acl_list_find(&selector->channels.list, channel, ACL_LIST_ANY) != NULL
                      : acl_patterns_take(&selector->channels, channel, ACL_ALL);
}

/* Whoever subscribes to a board's channel reads the board. */
static bool acl_check_may_follow(const struct acl_selector *selector, struct bytes channel) {
    struct bytes board;
    return selector->has_all_keys || !board_events_find_board(channel, &board) ||
           acl_check_may_access(selector, board, ACL_READ);
}

static enum acl_denial acl_check_selector(const struct acl_selector *selector, uint32_t command,
                                          const struct request *request, uint32_t *position) {
    if (!acl_check_may_run(selector, command, request)) {
        return ACL_DENIED_COMMAND;
    }
    if (!acl_check_may_access_all(selector, command, request, position)) {
        return ACL_DENIED_KEY;
    }
    enum command_channels channels = command_by_index(command)->channels;
    for (uint32_t at = 1; channels == COMMAND_CHANNELS_SUBSCRIBE && at < request->count; at++) {
        if (!acl_check_may_follow(selector, request->args[at])) {
            *position = at;
            return ACL_DENIED_KEY;
        }
    }
    uint32_t end = channels == COMMAND_CHANNELS_NONE      ? 0
                   : channels == COMMAND_CHANNELS_PUBLISH ? 2
                                                          : request->count;
    for (uint32_t at = 1; at < end; at++) {
        if (!acl_check_may_hear(selector, request->args[at],
                                channels == COMMAND_CHANNELS_PATTERNS)) {
            *position = at;
            return ACL_DENIED_CHANNEL;
        }
    }
    return ACL_ALLOWED;
}

/* May this selector alone run the request, with the keys that it names? As in Redis one selector must have all that a
 * command comes to: what it makes of its arguments, too. */
static bool acl_check_takes(const struct acl_selector *selector, uint32_t command,
                            const struct request *request) {
    uint32_t position;
    return acl_check_selector(selector, command, request, &position) == ACL_ALLOWED;
}

/* ---- a user ---- */

/* The denial that tells most: channels before keys before the command, and of equal ones the last
 * position. */
enum acl_denial acl_check(const struct acl_user *user, uint32_t command,
                          const struct request *request, uint32_t *position) {
    enum acl_denial worst = ACL_DENIED_COMMAND;
    uint32_t here = 0;
    *position = 0;
    for (uint32_t i = 0; i < user->selector_count; i++) {
        enum acl_denial denial = acl_check_selector(user->selectors[i], command, request, &here);
        if (denial == ACL_ALLOWED) {
            return ACL_ALLOWED;
        }
        if (denial > worst || (denial == worst && here > *position)) {
            worst = denial;
            *position = here;
        }
    }
    return worst;
}

bool acl_check_key(const struct acl_user *user, uint32_t command, struct bytes key) {
    const struct key_spec *specs;
    uint32_t count = syntax_key_of(command, &specs);
    unsigned access = count > 0 ? syntax_key_needs(specs[0].flags) : 0;
    const struct request none = {.count = 0};
    for (uint32_t i = 0; i < user->selector_count; i++) {
        if (acl_check_may_run(user->selectors[i], command, &none) &&
            acl_check_may_access(user->selectors[i], key, access)) {
            return true;
        }
    }
    return false;
}

/* ---- denials ---- */

void acl_check_log(struct server *server, const struct session *session, enum acl_denial denial,
                   struct bytes object, struct bytes user) {
    const char *context = session->transaction.is_open ? "multi" : "toplevel";
    struct buffer line;
    buffer_init(&line, 0);
    session_print_line(session, command_last_name(session), server->clock.monotonic_ms, &line);
    struct bytes text = {.at = line.at,
                         .size = line.size > 0 ? line.size - 1 : 0}; /* without its end */
    acl_log_add(&server->acl.log, (uint32_t)server->settings.acllog_max_len, denial, context,
                object, user, text, server->clock.now_ms);
    buffer_deinit(&line);
}

const char *acl_check_deny(struct server *server, const struct session *session, uint32_t command,
                           const struct request *request, enum acl_denial denial, uint32_t position,
                           bool is_changed, char *text) {
    static const char *const changed[] = {
        "", "no permission to execute the command or subcommand",
        "no permission to touch the specified keys",
        "no permission to access one of the channels used as arguments"};
    struct bytes object = denial == ACL_DENIED_COMMAND ? bytes_from_text(command_full_name(command))
                                                       : request->args[position];
    CHECK(denial != ACL_ALLOWED);
    acl_check_log(server, session, denial, object, session->user->name);
    if (is_changed) {
        snprintf(text, ACL_DENIAL_MAX,
                 "NOPERM ACLs rules changed between the moment the transaction was accumulated and "
                 "the EXEC call. This command is no longer allowed for the following reason: %s",
                 changed[denial]);
    } else if (denial == ACL_DENIED_COMMAND) {
        snprintf(text, ACL_DENIAL_MAX,
                 "NOPERM this user has no permissions to run the '%s' command",
                 command_full_name(command));
    } else {
        snprintf(text, ACL_DENIAL_MAX,
                 "NOPERM this user has no permissions to access one of the %ss used as arguments",
                 acl_denial_names[denial]);
    }
    return text;
}

/* ---- what a command comes to by a pattern of its own, or makes of its arguments ---- */

/* Two patterns that are the same take the same keys; made of a member, only if nothing in it but the
 * star is special. */
static bool acl_check_is_same(const struct acl_selector *selector, struct bytes pattern,
                              bool is_key, unsigned access) {
    const struct acl_text *same = acl_list_find(&selector->keys.list, pattern, ACL_LIST_ANY);
    if (same == NULL || (same->value & access) != access) {
        return false;
    }
    size_t star = glob_plain_size(pattern);
    if (!is_key || star == pattern.size || pattern.at[star] != '*') {
        return !is_key;
    }
    struct bytes rest = {.at = pattern.at + star + 1, .size = pattern.size - star - 1};
    return glob_plain_size(rest) == rest.size;
}

static bool acl_check_refuse(const struct call *call, struct bytes name) {
    char text[ACL_DENIAL_MAX];
    const struct request named = {.count = 1, .args = &name};
    return call_refuse(call,
                       acl_check_deny(call->server, call->session, command_index(call->command),
                                      &named, ACL_DENIED_KEY, 0, false, text));
}

bool acl_check_also(const struct call *call, uint32_t command, const struct request *request) {
    uint32_t position;
    return call->session->is_unlimited ||
           acl_check(call->session->user, command, request, &position) == ACL_ALLOWED;
}

bool acl_check_pattern(const struct call *call, struct bytes pattern, bool is_key,
                       unsigned access) {
    const struct acl_user *user = call->session->user;
    uint32_t command = command_index(call->command);
    if (call->session->is_unlimited) {
        return true;
    }
    struct bytes begin = {.at = pattern.at, .size = glob_plain_size(pattern)};
    if (is_key) {
        const char *star = memchr(pattern.at, '*', pattern.size);
        begin.size = star != NULL ? (size_t)(star - pattern.at) : pattern.size;
    }
    for (uint32_t i = 0; i < user->selector_count; i++) {
        const struct acl_selector *selector = user->selectors[i];
        if (acl_check_takes(selector, command, call->request) &&
            (selector->has_all_keys || acl_patterns_cover(&selector->keys, begin, access) ||
             acl_check_is_same(selector, pattern, is_key, access))) {
            return true;
        }
    }
    return acl_check_refuse(call, pattern);
}

bool acl_check_made_key(const struct call *call, struct bytes key, struct bytes beside,
                        unsigned access) {
    (void)beside;
    const struct acl_user *user = call->session->user;
    uint32_t command = command_index(call->command);
    if (call->session->is_unlimited) {
        return true;
    }
    for (uint32_t i = 0; i < user->selector_count; i++) {
        const struct acl_selector *selector = user->selectors[i];
        if (acl_check_takes(selector, command, call->request) &&
            (selector->has_all_keys || acl_patterns_take(&selector->keys, key, access))) {
            return true;
        }
    }
    return acl_check_refuse(call, key);
}

/* ---- after a change ---- */

/* Does a client subscribe to a channel that it may not? */
static bool acl_check_hears_too_much(const struct session *session) {
    for (enum subscription_kind kind = 0; kind < SUBSCRIPTION_KINDS; kind++) {
        const struct subscription *each = subscription_first(&session->subscriptions, kind);
        for (; each != NULL; each = subscription_next(each)) {
            struct bytes name = subscription_name(each);
            bool is_pattern = kind == SUBSCRIPTION_PATTERN;
            bool hears = false;
            for (uint32_t i = 0; i < session->user->selector_count && !hears; i++) {
                const struct acl_selector *selector = session->user->selectors[i];
                hears = acl_check_may_hear(selector, name, is_pattern) &&
                        (is_pattern || acl_check_may_follow(selector, name));
            }
            if (!hears) {
                return true;
            }
        }
    }
    return false;
}

void acl_check_refresh(struct server *server, const struct acl_user *user) {
    struct bytes word = BYTES("monitor");
    const struct request monitor = {.count = 1, .args = &word};
    uint32_t command = command_find_request(&monitor);
    uint32_t position;
    for (struct session *session = server->sessions.first; session != NULL;
         session = session->next) {
        server_refresh_rights(server, session);
        if (session->is_unlimited || (user != NULL && session->user != user)) {
            continue;
        }
        if ((session_is_subscriber(session) && acl_check_hears_too_much(session)) ||
            (session->is_monitor &&
             acl_check(session->user, command, &monitor, &position) != ACL_ALLOWED)) {
            server_kill_session(server, session);
        }
    }
}
