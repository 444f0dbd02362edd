/* Rights to what a command comes to by a pattern of its own. See acl_check.h.
 *
 * In Redis and Valkey the users are the host's, and server/module/host_run.c takes this file's place. */
#include "server/acl/acl_check.h"

#include "server/clients/server.h"

/* Two patterns that are the same take the same keys; made of a member, only if nothing in it but the
 * star is special. */
static bool acl_pattern_is_same(const struct acl_selector *selector, struct bytes pattern,
                                bool is_key, unsigned access) {
    const struct acl_text *same = acl_list_find(&selector->keys.list, pattern, ACL_LIST_ANY);
    if (same == NULL || (same->value & access) != access) {
        return false;
    }
    size_t star = acl_pattern_literal_size(pattern);
    if (!is_key || star == pattern.size || pattern.at[star] != '*') {
        return !is_key;
    }
    struct bytes rest = {.at = pattern.at + star + 1, .size = pattern.size - star - 1};
    return acl_pattern_literal_size(rest) == rest.size;
}

static bool acl_pattern_may_touch(const struct acl_selector *selector, struct bytes pattern,
                                  bool is_key, unsigned access) {
    struct bytes begin = {.at = pattern.at, .size = acl_pattern_literal_size(pattern)};
    if (is_key) {
        const char *star = memchr(pattern.at, '*', pattern.size);
        begin.size = star != NULL ? (size_t)(star - pattern.at) : pattern.size;
    }
    return selector->has_all_keys || acl_patterns_cover(&selector->keys, begin, access) ||
           acl_pattern_is_same(selector, pattern, is_key, access);
}

static bool acl_pattern_refuse(const struct call *call, struct bytes name) {
    char text[ACL_DENIAL_MAX];
    const struct request named = {.count = 1, .args = &name};
    return call_refuse(call, acl_deny(call->server, call->session, command_index(call->command),
                                      &named, ACL_DENIED_KEY, 0, false, text));
}

bool acl_check_pattern(const struct call *call, struct bytes pattern, bool is_key,
                       unsigned access) {
    const struct acl_user *user = call->session->user;
    uint32_t command = command_index(call->command);
    if (call->session->is_unlimited) {
        return true;
    }
    for (uint32_t i = 0; i < user->selector_count; i++) {
        if (acl_check_takes(user->selectors[i], command, call->request) &&
            acl_pattern_may_touch(user->selectors[i], pattern, is_key, access)) {
            return true;
        }
    }
    return acl_pattern_refuse(call, pattern);
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
    return acl_pattern_refuse(call, key);
}
