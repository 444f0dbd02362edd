/* Users as text. See acl_rules.h. */
#include "server/acl/acl_rules.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "codec/glob.h"
#include "server/acl/acl_check.h"
#include "server/dispatch/category.h"
#include "server/dispatch/command.h"
#include "server/system/digest.h"
#include "server/system/log.h"

const char *acl_rules_status_text(enum acl_status status) {
    static const char *const texts[] = {
        [ACL_OK] = "",
        [ACL_SYNTAX] = "Syntax error",
        [ACL_UNKNOWN_NAME] = "Unknown command or category name in ACL",
        [ACL_KEYS_BEHIND_ALL] =
            "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does "
            "not have any effect. Try 'resetkeys' to start with an empty list of patterns",
        [ACL_CHANNELS_BEHIND_ALL] =
            "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and "
            "does not have any effect. Try 'resetchannels' to start with an empty list of channels",
        [ACL_NO_SUCH_PASSWORD] =
            "The password you are trying to remove from the user does not exist",
        [ACL_BAD_HASH] = "The password hash must be exactly 64 characters and contain only "
                         "lowercase hexadecimal characters",
        [ACL_FIRST_ARG_OF_SUBCOMMAND] = "Allowing first-arg of a subcommand is not supported",
        [ACL_UNMATCHED_PARENTHESIS] = "Unmatched parenthesis",
        [ACL_BAD_TOKEN] =
            "A token is kept as token#hash or token#hash:label: its SHA-256 as 64 "
            "lowercase hexadecimal characters; a label has at most 64 letters, digits, "
            "'_' and '-', at least a letter, and is no hash",
        [ACL_NO_SUCH_TOKEN] = "The token you are trying to remove from the user does not exist: "
                              "token< takes its label or its SHA-256",
        [ACL_LABEL_TAKEN] = "The user has a token with this label: remove it, or use another label",
        [ACL_TOKEN_TAKEN] = "Another user has one of these tokens",
        [ACL_TOKEN_NOT_MADE] =
            "Only ACL SETUSER makes tokens, since it can show them: a file has token#hash",
        [ACL_TEXT_TOO_LONG] = "A pattern or argument has at most 1024 bytes, a password 16384",
        [ACL_TOO_MANY] = "Too many selectors, passwords, tokens, patterns or rules for one user",
        [ACL_OUT_OF_MEMORY] = "Out of memory",
    };
    return texts[status];
}

static bool acl_rules_has_space(struct bytes text) {
    for (size_t i = 0; i < text.size; i++) {
        if (text.at[i] == '\0' || isspace((unsigned char)text.at[i])) {
            return true;
        }
    }
    return false;
}

bool acl_rules_is_name(struct bytes name) {
    return name.size <= ACL_TEXT_MAX && !acl_rules_has_space(name);
}

static enum acl_status acl_rules_status_of(bool has_memory) {
    return has_memory ? ACL_OK : ACL_OUT_OF_MEMORY;
}

static uint32_t acl_rules_count_slow(const struct acl_list *list) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < list->count; i++) {
        struct bytes text = list->at[i].text;
        count += glob_plain_size(text) + 1 < text.size;
    }
    return count;
}

/* ---- commands ---- */

static void acl_rules_set_bit(struct acl_selector *selector, uint32_t command, bool is_allowed) {
    uint64_t bit = UINT64_C(1) << (command % 64);
    uint64_t *word = &selector->commands[command / 64];
    *word = is_allowed ? *word | bit : *word & ~bit;
    selector->has_all_commands &= is_allowed;
}

/* And the subcommands of a container. */
static void acl_rules_set_command(struct acl_selector *selector, uint32_t command,
                                  bool is_allowed) {
    const struct command *const *subcommands = command_by_index(command)->subcommands;
    acl_rules_set_bit(selector, command, is_allowed);
    for (uint32_t i = selector->first_args.count; i > 0; i--) {
        if (selector->first_args.at[i - 1].value == command) {
            acl_list_remove(&selector->first_args, i - 1);
        }
    }
    for (uint32_t i = 0; subcommands != NULL && subcommands[i] != NULL; i++) {
        acl_rules_set_bit(selector, command + 1 + i, is_allowed);
    }
}

static void acl_rules_set_all(struct acl_selector *selector, bool is_allowed) {
    memset(selector->commands, is_allowed ? 0xff : 0, sizeof selector->commands);
    selector->has_all_commands = is_allowed;
    selector->is_from_all = is_allowed;
    acl_list_deinit(&selector->first_args);
    acl_list_deinit(&selector->rules);
}

/* Keep the rule, in lower case up to text.size - as_given bytes, and none that it replaces. */
static enum acl_status acl_rules_keep_rule(struct acl_selector *selector, struct bytes rule,
                                           size_t as_given) {
    char lower[ACL_TEXT_MAX + 64];
    CHECK(rule.size > 1);
    lower[1] = '\0';
    if (rule.size > sizeof lower) {
        return ACL_TEXT_TOO_LONG;
    }
    for (size_t i = 0; i < rule.size; i++) {
        lower[i] = i + as_given < rule.size ? bytes_lower(rule.at[i]) : rule.at[i];
    }
    struct bytes text = {.at = lower, .size = rule.size};
    for (uint32_t i = selector->rules.count; i > 0; i--) {
        /* One about the same name, or ("config") a part of it ("-config|get"). */
        struct bytes name = bytes_behind(text, 1);
        struct bytes other = bytes_behind(selector->rules.at[i - 1].text, 1);
        if (other.size >= name.size && memcmp(other.at, name.at, name.size) == 0 &&
            (other.size == name.size || (name.at[0] != '@' && other.at[name.size] == '|'))) {
            acl_list_remove(&selector->rules, i - 1);
        }
    }
    return selector->rules.count == ACL_RULES_MAX
               ? ACL_TOO_MANY
               : acl_rules_status_of(acl_list_add(&selector->rules, text, 0));
}

/* A command of Redis that is not here, or a subcommand of one, whatever its word. */
static bool acl_rules_is_absent_name(struct bytes name) {
    return !acl_rules_has_space(name) && category_is_absent(name);
}

/* A command or subcommand by its name. */
static enum acl_status acl_rules_apply_named(struct acl_selector *selector, struct bytes rule,
                                             struct bytes name, bool is_allowed) {
    uint32_t command = command_find_original(name);
    if (command == COMMAND_NONE && !acl_rules_is_absent_name(name)) {
        return ACL_UNKNOWN_NAME;
    }
    if (command != COMMAND_NONE) {
        acl_rules_set_command(selector, command, is_allowed);
    }
    return acl_rules_keep_rule(selector, rule, 0);
}

/* "+config|get", "+select|0": cut at the last bar. */
static enum acl_status acl_rules_apply_divided(struct acl_selector *selector, struct bytes rule,
                                               struct bytes name, const char *bar) {
    struct bytes command_name = {.at = name.at, .size = (size_t)(bar - name.at)};
    struct bytes arg = bytes_behind(name, command_name.size + 1);
    bool is_absent = acl_rules_is_absent_name(command_name);
    uint32_t command = command_find_original(command_name);
    if (command == COMMAND_NONE && !is_absent) {
        return ACL_UNKNOWN_NAME;
    }
    if (command != COMMAND_NONE && command_is_subcommand(command)) {
        return ACL_FIRST_ARG_OF_SUBCOMMAND;
    }
    if (arg.size == 0 || acl_rules_has_space(arg)) {
        return ACL_SYNTAX;
    }
    if (is_absent) {
        return acl_rules_keep_rule(selector, rule, arg.size);
    }
    if (command_by_index(command)->subcommands == NULL) {
        if (arg.size > ACL_TEXT_MAX) {
            return ACL_TEXT_TOO_LONG;
        }
        for (uint32_t i = 0; i < selector->first_args.count; i++) {
            const struct acl_text *each = &selector->first_args.at[i];
            if (each->value == command && bytes_equal_ignoring_case(each->text, arg)) {
                return ACL_OK;
            }
        }
        enum acl_status status = acl_rules_keep_rule(selector, rule, arg.size);
        return status != ACL_OK
                   ? status
                   : acl_rules_status_of(acl_list_add(&selector->first_args, arg, command));
    }
    return acl_rules_apply_named(selector, rule, name, true);
}

static enum acl_status acl_rules_apply_command(struct acl_selector *selector, struct bytes rule) {
    struct bytes name = bytes_behind(rule, 1);
    bool is_allowed = rule.at[0] == '+';
    const char *bar = name.size > 0 ? memrchr(name.at, '|', name.size) : NULL;
    if (name.size > 0 && name.at[0] == '@') {
        uint32_t category = category_find(bytes_behind(name, 1));
        if (category == CATEGORIES) {
            return ACL_UNKNOWN_NAME;
        }
        for (uint32_t index = 0; index < command_count(); index++) {
            if ((category_mask(index) >> category & 1) != 0) {
                acl_rules_set_command(selector, index, is_allowed);
            }
        }
        return acl_rules_keep_rule(selector, rule, 0);
    }
    if (is_allowed && bar != NULL) {
        return acl_rules_apply_divided(selector, rule, name, bar);
    }
    return acl_rules_apply_named(selector, rule, name, is_allowed);
}

/* ---- keys and channels ---- */

static enum acl_status acl_rules_add_pattern(struct acl_patterns *patterns, struct bytes pattern,
                                             unsigned access) {
    if (acl_rules_has_space(pattern)) {
        return ACL_SYNTAX;
    }
    if (pattern.size > GLOB_PATTERN_MAX) {
        return ACL_TEXT_TOO_LONG;
    }
    struct acl_text *same = acl_list_find(&patterns->list, pattern, ACL_LIST_ANY);
    if (same != NULL) {
        same->value |= access;
        return ACL_OK;
    }
    return patterns->list.count == ACL_PATTERNS_MAX
               ? ACL_TOO_MANY
               : acl_rules_status_of(acl_list_add(&patterns->list, pattern, access));
}

static enum acl_status acl_rules_apply_to_selector(struct acl_selector *selector,
                                                   struct bytes rule) {
    if (bytes_is(rule, "allkeys") || bytes_is(rule, "~*") || bytes_is(rule, "resetkeys")) {
        selector->has_all_keys = !bytes_is(rule, "resetkeys");
        acl_list_deinit(&selector->keys.list);
    } else if (bytes_is(rule, "allchannels") || bytes_is(rule, "&*") ||
               bytes_is(rule, "resetchannels")) {
        selector->has_all_channels = !bytes_is(rule, "resetchannels");
        acl_list_deinit(&selector->channels.list);
    } else if (bytes_is(rule, "allcommands") || bytes_is(rule, "+@all")) {
        acl_rules_set_all(selector, true);
    } else if (bytes_is(rule, "nocommands") || bytes_is(rule, "-@all")) {
        acl_rules_set_all(selector, false);
    } else if (rule.size > 0 && (rule.at[0] == '~' || rule.at[0] == '%')) {
        /* ~pattern, %R~pattern, %W~pattern, %RW~pattern. */
        size_t at = 1;
        unsigned access = rule.at[0] == '~' ? (unsigned)ACL_ALL : 0U;
        if (selector->has_all_keys) {
            return ACL_KEYS_BEHIND_ALL;
        }
        for (bool is_read = rule.at[0] == '~'; !is_read && at < rule.size; at++) {
            int letter = toupper((unsigned char)rule.at[at]);
            unsigned one = letter == 'R' ? ACL_READ : letter == 'W' ? ACL_WRITE : 0U;
            is_read = letter == '~' && access != 0;
            if (!is_read && (one == 0 || (access & one) != 0)) {
                return ACL_SYNTAX;
            }
            access |= one;
        }
        return access == 0 ? ACL_SYNTAX
                           : acl_rules_add_pattern(&selector->keys, bytes_behind(rule, at), access);
    } else if (rule.size > 0 && rule.at[0] == '&') {
        return selector->has_all_channels
                   ? ACL_CHANNELS_BEHIND_ALL
                   : acl_rules_add_pattern(&selector->channels, bytes_behind(rule, 1), ACL_ALL);
    } else if (rule.size > 0 && (rule.at[0] == '+' || rule.at[0] == '-')) {
        return acl_rules_apply_command(selector, rule);
    } else {
        return ACL_SYNTAX;
    }
    return ACL_OK;
}

/* "(~app:* +get)", cut at its blanks. A word that ends with ")" would close it where it is read again. */
static enum acl_status acl_rules_apply_parenthesis(struct acl_user *draft, struct bytes rule,
                                                   bool has_all_channels) {
    struct bytes rest = {.at = rule.at + 1, .size = rule.size - 2};
    struct acl_selector *selector = acl_user_add_selector(draft, has_all_channels);
    enum acl_status status = acl_rules_status_of(selector != NULL);
    while (status == ACL_OK && rest.size > 0) {
        size_t size = 0;
        while (size < rest.size && !isspace((unsigned char)rest.at[size])) {
            size++;
        }
        if (size > 0) {
            bool is_closing = rest.at[size - 1] == ')';
            struct bytes word = {.at = rest.at, .size = size};
            status = is_closing ? ACL_SYNTAX : acl_rules_apply_to_selector(selector, word);
        }
        rest = bytes_behind(rest, size < rest.size ? size + 1 : size);
    }
    return status;
}

/* ---- users ---- */

/* >password #hash <password !hash */
static enum acl_status acl_rules_apply_password(struct acl_user *draft, struct bytes rule) {
    char digest[DIGEST_TEXT_SIZE];
    struct bytes text = {.at = digest, .size = sizeof digest};
    char sign = rule.at[0];
    if (rule.size > ACL_PASSWORD_MAX) {
        return ACL_TEXT_TOO_LONG;
    }
    if (sign == '>' || sign == '<') {
        digest_print(bytes_behind(rule, 1), digest);
    } else if (digest_is_text(bytes_behind(rule, 1))) {
        text = bytes_behind(rule, 1);
    } else {
        return ACL_BAD_HASH;
    }
    const struct acl_text *same = acl_list_find(&draft->passwords, text, ACL_LIST_ANY);
    if (sign == '>' || sign == '#') {
        draft->has_no_password = false;
        return same != NULL ? ACL_OK
                            : acl_rules_status_of(acl_list_add(&draft->passwords, text, 0));
    }
    if (same == NULL) {
        return ACL_NO_SUCH_PASSWORD;
    }
    acl_list_remove(&draft->passwords, (uint32_t)(same - draft->passwords.at));
    return ACL_OK;
}

/* token#hash:label token<label token<hash */
static enum acl_status acl_rules_apply_token(struct acl_user *draft, struct bytes rule) {
    struct acl_list *tokens = &draft->tokens;
    char sign = acl_token_sign(rule);
    struct bytes text = bytes_behind(rule, ACL_TOKEN_SIGN + 1);
    if (sign == '>') {
        return ACL_TOKEN_NOT_MADE;
    }
    if (sign == '<') {
        uint32_t at = acl_token_find(tokens, text);
        if (at == tokens->count) {
            return ACL_NO_SUCH_TOKEN;
        }
        acl_list_remove(tokens, at);
        return ACL_OK;
    }
    if (!acl_token_is_kept(text)) {
        return ACL_BAD_TOKEN;
    }
    uint32_t same = acl_token_find(tokens, (struct bytes){.at = text.at, .size = DIGEST_TEXT_SIZE});
    uint32_t labelled = acl_token_find(tokens, acl_token_label(text));
    if (labelled != tokens->count && labelled != same) {
        return ACL_LABEL_TAKEN;
    }
    if (same != tokens->count) {
        acl_list_remove(tokens, same);
    }
    return acl_rules_status_of(acl_list_add(tokens, text, 0));
}

static enum acl_status acl_rules_apply_rule(struct acl_user *draft, struct bytes rule,
                                            bool has_all_channels) {
    if (rule.size == 0) {
        return ACL_OK;
    }
    if (bytes_is(rule, "on") || bytes_is(rule, "off")) {
        draft->is_on = bytes_is(rule, "on");
    } else if (bytes_is(rule, "skip-sanitize-payload")) {
        draft->sanitize = ACL_SANITIZE_SKIP;
    } else if (bytes_is(rule, "sanitize-payload")) {
        draft->sanitize = ACL_SANITIZE_YES;
    } else if (bytes_is(rule, "nopass") || bytes_is(rule, "resetpass")) {
        draft->has_no_password = bytes_is(rule, "nopass");
        acl_list_deinit(&draft->passwords);
    } else if (bytes_is(rule, "resettokens")) {
        acl_list_deinit(&draft->tokens);
    } else if (acl_token_sign(rule) != '\0') {
        return acl_rules_apply_token(draft, rule);
    } else if (strchr("><#!", rule.at[0]) != NULL && rule.at[0] != '\0') {
        return acl_rules_apply_password(draft, rule);
    } else if (rule.at[0] == '(' && rule.at[rule.size - 1] == ')' && rule.size > 1) {
        return acl_rules_apply_parenthesis(draft, rule, has_all_channels);
    } else if (bytes_is(rule, "clearselectors")) {
        acl_user_cut_selectors(draft, 1);
    } else if (bytes_is(rule, "reset")) {
        struct acl_selector *root = draft->selectors[0];
        acl_user_cut_selectors(draft, 1);
        acl_list_deinit(&draft->passwords);
        acl_list_deinit(&draft->tokens);
        acl_list_deinit(&root->keys.list);
        acl_list_deinit(&root->channels.list);
        acl_rules_set_all(root, false);
        root->has_all_keys = false;
        root->has_all_channels = has_all_channels;
        draft->is_on = false;
        draft->has_no_password = false;
        draft->sanitize = ACL_SANITIZE_YES;
    } else {
        return acl_rules_apply_to_selector(draft->selectors[0], rule);
    }
    return ACL_OK;
}

enum acl_status acl_rules_apply(struct acl_user *draft, struct bytes rule, bool has_all_channels) {
    enum acl_status status = acl_rules_apply_rule(draft, rule, has_all_channels);
    bool is_counted = draft->selector_count > ACL_SELECTORS_MAX ||
                      draft->passwords.count > ACL_PASSWORDS_MAX ||
                      draft->tokens.count > ACL_TOKENS_MAX;
    return status == ACL_OK && is_counted ? ACL_TOO_MANY : status;
}

static bool acl_rules_is_opening(struct bytes rule) {
    return rule.size > 0 && rule.at[0] == '(' && rule.at[rule.size - 1] != ')';
}

/* Find the rule that closes the parenthesis of the one at *begin. As in Redis, another one that opens
 * begins anew: *begin is then that. *end == count: none does. */
static void acl_rules_find_end(const struct bytes *rules, uint32_t count, uint32_t *begin,
                               uint32_t *end) {
    for (*end = *begin + 1; *end < count; (*end)++) {
        struct bytes rule = rules[*end];
        if (acl_rules_is_opening(rule)) {
            *begin = *end;
        } else if (rule.size > 0 && rule.at[rule.size - 1] == ')') {
            return;
        }
    }
}

enum acl_status acl_rules_apply_all(struct acl_user *draft, const struct acl_users *users,
                                    const struct bytes *rules, uint32_t count,
                                    bool has_all_channels, struct buffer *joined,
                                    struct bytes *failed) {
    for (uint32_t i = 0; i < count; i++) {
        uint32_t begin = i;
        if (acl_rules_is_opening(rules[i])) {
            acl_rules_find_end(rules, count, &begin, &i);
        }
        if (i == count) {
            *failed = rules[begin];
            return ACL_UNMATCHED_PARENTHESIS;
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        struct bytes rule = rules[i];
        if (acl_rules_is_opening(rule)) {
            uint32_t begin = i;
            acl_rules_find_end(rules, count, &begin, &i);
            buffer_clear(joined);
            for (uint32_t j = begin; j <= i; j++) {
                buffer_append(joined, " ", j > begin ? 1 : 0);
                buffer_append_bytes(joined, rules[j]);
            }
            if (joined->is_broken) {
                return ACL_OUT_OF_MEMORY;
            }
            rule = buffer_bytes(joined);
        }
        *failed = rule;
        enum acl_status status = acl_rules_apply(draft, rule, has_all_channels);
        if (status != ACL_OK) {
            return status;
        }
    }
    *failed = count > 0 ? rules[count - 1] : draft->name;
    uint32_t patterns = 0, slow_patterns = 0, first_args = 0;
    for (uint32_t i = 0; i < draft->selector_count; i++) {
        const struct acl_selector *each = draft->selectors[i];
        patterns += each->keys.list.count + each->channels.list.count;
        slow_patterns +=
            acl_rules_count_slow(&each->keys.list) + acl_rules_count_slow(&each->channels.list);
        first_args += each->first_args.count;
    }
    if (draft->selector_count > ACL_SELECTORS_MAX || draft->passwords.count > ACL_PASSWORDS_MAX ||
        patterns > ACL_PATTERNS_MAX || slow_patterns > ACL_SLOW_PATTERNS_MAX ||
        first_args > ACL_FIRST_ARGS_MAX) {
        return ACL_TOO_MANY;
    }
    if (!acl_user_finish(draft)) {
        return ACL_OUT_OF_MEMORY;
    }
    return acl_users_have_token_of(users, draft) ? ACL_TOKEN_TAKEN : ACL_OK;
}

/* ---- printing ---- */

void acl_rules_print_commands(const struct acl_selector *selector, struct buffer *out) {
    buffer_append_text(out, selector->is_from_all ? "+@all" : "-@all");
    for (uint32_t i = 0; i < selector->rules.count; i++) {
        buffer_append_text(out, " ");
        buffer_append_bytes(out, selector->rules.at[i].text);
    }
}

void acl_rules_print_keys(const struct acl_selector *selector, struct buffer *out) {
    static const char *const signs[] = {"", "%R~", "%W~", "~"};
    buffer_append_text(out, selector->has_all_keys ? "~*" : "");
    for (uint32_t i = 0; i < selector->keys.list.count; i++) {
        const struct acl_text *each = &selector->keys.list.at[i];
        /* "~*" would be read as all keys, which takes no patterns after it. */
        bool is_star = each->value == ACL_ALL && bytes_equal(each->text, BYTES("*"));
        buffer_append_text(out, i > 0 ? " " : "");
        buffer_append_text(out, is_star ? "%RW~" : signs[each->value]);
        buffer_append_bytes(out, each->text);
    }
}

void acl_rules_print_channels(const struct acl_selector *selector, struct buffer *out) {
    buffer_append_text(out, selector->has_all_channels ? "&*" : "");
    for (uint32_t i = 0; i < selector->channels.list.count; i++) {
        buffer_append_text(out, i > 0 ? " &" : "&");
        buffer_append_bytes(out, selector->channels.list.at[i].text);
    }
}

const char *acl_rules_flag(const struct acl_user *user, uint32_t nth) {
    const char *flags[4] = {user->is_on ? "on" : "off"};
    uint32_t count = 1;
    if (user->has_no_password) {
        flags[count++] = "nopass";
    }
    if (user->sanitize != ACL_SANITIZE_UNSAID) {
        flags[count++] =
            user->sanitize == ACL_SANITIZE_SKIP ? "skip-sanitize-payload" : "sanitize-payload";
    }
    return nth < count ? flags[nth] : NULL;
}

static void acl_rules_print_list(const struct acl_list *list, const char *sign,
                                 struct buffer *out) {
    for (uint32_t i = 0; i < list->count; i++) {
        buffer_append_text(out, sign);
        buffer_append_bytes(out, list->at[i].text);
        buffer_append_text(out, " ");
    }
}

void acl_rules_print(const struct acl_user *user, struct buffer *out) {
    for (uint32_t i = 0; acl_rules_flag(user, i) != NULL; i++) {
        buffer_append_text(out, acl_rules_flag(user, i));
        buffer_append_text(out, " ");
    }
    acl_rules_print_list(&user->passwords, "#", out);
    acl_rules_print_list(&user->tokens, "token#", out);
    for (uint32_t i = 0; i < user->selector_count; i++) {
        buffer_append_text(out, i > 0 ? " (" : "");
        const struct acl_selector *selector = user->selectors[i];
        size_t size_before = out->size;
        acl_rules_print_keys(selector, out);
        buffer_append_text(out, out->size > size_before ? " " : "");
        buffer_append_text(out, selector->has_all_channels ? "" : "resetchannels ");
        size_before = out->size;
        acl_rules_print_channels(selector, out);
        buffer_append_text(out, out->size > size_before ? " " : "");
        acl_rules_print_commands(selector, out);
        buffer_append_text(out, i > 0 ? ")" : "");
    }
}

void acl_rules_print_named(const struct acl_user *user, struct buffer *out) {
    buffer_append_bytes(out, user->name);
    buffer_append_text(out, " ");
    acl_rules_print(user, out);
}

/* ---- users from lines ----
 *
 * A file is read into users of its own, which take the place of those that there are only if all of
 * it was right. */

enum { LINE_WORDS_MAX = 100000 };

/* A line being read: "name rule rule". */
struct reading {
    struct acl_users *users;
    bool has_all_channels;
    struct bytes *words;
    uint32_t count;
    struct buffer joined;
    char *error; /* where the next text goes */
    size_t room;
};

__attribute__((format(printf, 2, 3))) static void acl_rules_complain(struct reading *reading,
                                                                     const char *format, ...) {
    va_list args;
    va_start(args, format);
    int size = vsnprintf(reading->error, reading->room, format, args);
    va_end(args);
    size_t used = size > 0 && (size_t)size < reading->room ? (size_t)size
                  : reading->room > 0                      ? reading->room - 1
                                                           : 0;
    reading->error += used;
    reading->room -= used;
}

static bool acl_rules_split(struct reading *reading, struct bytes line) {
    reading->count = 0;
    for (size_t at = 0; at < line.size;) {
        size_t size = 0;
        while (at + size < line.size && strchr(" \t\r", line.at[at + size]) == NULL) {
            size++;
        }
        if (size > 0 && reading->count == LINE_WORDS_MAX) {
            return false;
        }
        if (size > 0) {
            reading->words[reading->count++] = (struct bytes){.at = line.at + at, .size = size};
        }
        at += size + 1;
    }
    return true;
}

/* A draft of the user whom the words describe. NULL: *failed and the status say why. */
static struct acl_user *acl_rules_make_user(struct reading *reading, const struct bytes *words,
                                            uint32_t count, enum acl_status *status,
                                            struct bytes *failed) {
    struct acl_user *user = acl_user_create(words[0], reading->has_all_channels);
    *status = ACL_OUT_OF_MEMORY;
    *failed = words[0];
    if (user == NULL || !acl_users_reserve(reading->users)) {
        acl_user_destroy(user);
        return NULL;
    }
    *status = acl_rules_apply_all(user, reading->users, words + 1, count - 1,
                                  reading->has_all_channels, &reading->joined, failed);
    if (*status != ACL_OK) {
        acl_user_destroy(user);
        return NULL;
    }
    return user;
}

/* A `user` line of the settings. */
static bool acl_rules_read_setting(struct reading *reading, struct bytes line) {
    enum acl_status status;
    struct bytes failed;
    if (!acl_rules_split(reading, line) || reading->count == 0 ||
        !acl_rules_is_name(reading->words[0])) {
        acl_rules_complain(reading, "Spaces not allowed in ACL usernames");
        return false;
    }
    struct acl_user *user =
        acl_rules_make_user(reading, reading->words, reading->count, &status, &failed);
    if (user == NULL) {
        acl_rules_complain(reading, "Error loading ACL rule '%s' for the user named '%s': %s",
                           bytes_show(failed).text, bytes_show(reading->words[0]).text,
                           acl_rules_status_text(status));
        return false;
    }
    /* If its rules do not say "off" it was perhaps not meant to be. */
    bool is_said = user->is_on;
    for (uint32_t i = 1; i < reading->count; i++) {
        is_said |= bytes_is(reading->words[i], "off");
    }
    if (!is_said) {
        log_write(LOG_NOTICE, "user is disabled: there is no 'on' among its rules user=%s",
                  bytes_show(user->name).text);
    }
    (void)acl_users_replace(reading->users, user);
    return true;
}

/* A line of the aclfile. */
static bool acl_rules_read_file_line(struct reading *reading, const char *path, unsigned number,
                                     struct bytes line) {
    enum acl_status status;
    struct bytes failed;
    if (!acl_rules_split(reading, line)) {
        acl_rules_complain(reading, "%s:%u: too many words. ", path, number);
        return false;
    }
    if (reading->count == 0) {
        return true;
    }
    if (reading->count < 2 || !bytes_equal(reading->words[0], BYTES("user"))) {
        acl_rules_complain(reading,
                           "%s:%u should start with user keyword followed by the username. ", path,
                           number);
        return false;
    }
    struct bytes name = reading->words[1];
    if (!acl_rules_is_name(name)) {
        acl_rules_complain(reading, "%s:%u: username '%s' contains invalid characters. ", path,
                           number, bytes_show(name).text);
        return false;
    }
    if (acl_users_find(reading->users, name) != NULL) {
        acl_rules_complain(reading, "WARNING: Duplicate user '%s' found on line %u. ",
                           bytes_show(name).text, number);
        return false;
    }
    struct acl_user *user =
        acl_rules_make_user(reading, reading->words + 1, reading->count - 1, &status, &failed);
    if (user == NULL) {
        if (status == ACL_UNMATCHED_PARENTHESIS) {
            acl_rules_complain(reading, "%s:%u: Unmatched parenthesis in selector definition.",
                               path, number);
        } else if (status == ACL_UNKNOWN_NAME) {
            acl_rules_complain(reading, "%s:%u: Error in applying operation '%s': %s. ", path,
                               number, bytes_show(failed).text, acl_rules_status_text(status));
        } else {
            acl_rules_complain(reading, "%s:%u: %s. ", path, number, acl_rules_status_text(status));
        }
        return false;
    }
    (void)acl_users_replace(reading->users, user);
    return true;
}

static bool acl_rules_begin_reading(struct reading *reading, const struct server *server,
                                    struct acl_users *users, char *error, size_t room) {
    *reading = (struct reading){
        .users = users,
        .has_all_channels = server->settings.acl_pubsub_default == SETTING_ACL_ALLCHANNELS,
        .words = memory_allocate(LINE_WORDS_MAX * sizeof(struct bytes)),
        .error = error,
        .room = room,
    };
    buffer_init(&reading->joined, 0);
    if (reading->words == NULL) {
        acl_rules_complain(reading, "out of memory");
    }
    return reading->words != NULL;
}

static void acl_rules_end_reading(struct reading *reading) {
    buffer_deinit(&reading->joined);
    memory_free(reading->words);
}

/* ---- the settings' lines ---- */

static bool acl_rules_read_settings(struct server *server, char *error) {
    struct reading reading;
    if (server->settings.user_lines == NULL) {
        return true;
    }
    struct bytes text = bytes_from_text(server->settings.user_lines);
    bool is_fine =
        acl_rules_begin_reading(&reading, server, &server->acl.users, error, SETTING_ERROR_MAX);
    for (struct bytes line; is_fine && bytes_take_line(&text, &line);) {
        is_fine = acl_rules_read_setting(&reading, line);
        if (is_fine && server->acl.users.count > ACL_USERS_MAX) {
            acl_rules_complain(&reading, "at most %d users", (int)ACL_USERS_MAX);
            is_fine = false;
        }
    }
    acl_rules_end_reading(&reading);
    return is_fine;
}

/* ---- the aclfile ---- */

/* All users of the file, the default user included. */
static bool acl_rules_read(const struct server *server, const char *path, struct acl_users *users,
                           char *error) {
    struct reading reading;
    char why[SETTING_ERROR_MAX];
    char *text = NULL;
    size_t size = 0;
    bool is_fine = setting_file_read(path, &text, &size, why);
    if (!is_fine) {
        snprintf(error, ACL_FILE_ERROR_MAX, "Error loading ACLs: %s", why);
        memory_free(text);
        return false;
    }
    struct bytes rest = {.at = text, .size = size};
    is_fine = acl_rules_begin_reading(&reading, server, users, error, ACL_FILE_ERROR_MAX - 100);
    struct bytes line;
    for (unsigned number = 1; reading.words != NULL && bytes_take_line(&rest, &line); number++) {
        is_fine &= acl_rules_read_file_line(&reading, path, number, line);
        if (users->count > ACL_USERS_MAX) {
            acl_rules_complain(&reading, "%s:%u: at most %d users. ", path, number,
                               (int)ACL_USERS_MAX);
            is_fine = false;
            break;
        }
    }
    if (is_fine && acl_users_find(users, BYTES("default")) == NULL) {
        struct acl_user *user = acl_users_create_default();
        is_fine = user != NULL && acl_users_reserve(users);
        if (is_fine) {
            (void)acl_users_replace(users, user);
        } else {
            acl_user_destroy(user);
        }
    }
    acl_rules_end_reading(&reading);
    memory_free(text);
    if (!is_fine) {
        snprintf(error + strlen(error), 100,
                 "WARNING: ACL errors detected, no change to the previously active ACL rules was "
                 "performed");
    }
    return is_fine;
}

bool acl_rules_begin(struct server *server, char *error) {
    const struct settings *settings = &server->settings;
    char path[PATH_MAX];
    char why[ACL_FILE_ERROR_MAX];
    if (settings->aclfile != NULL && settings->user_lines != NULL) {
        snprintf(error, SETTING_ERROR_MAX,
                 "there are `user` lines and an aclfile: define users in one of them, not in both");
        return false;
    }
    if (!acl_users_init(&server->acl.users, settings->requirepass)) {
        snprintf(error, SETTING_ERROR_MAX, "out of memory");
        return false;
    }
    if (settings->aclfile == NULL) {
        return acl_rules_read_settings(server, error);
    }
    struct acl_users users = {.count = 0};
    /* As in Redis a relative path is one in dir. */
    char joined[PATH_MAX];
    bool is_absolute = settings->aclfile[0] == '/';
    int size = snprintf(joined, sizeof joined, "%s%s%s", is_absolute ? "" : settings->dir,
                        is_absolute ? "" : "/", settings->aclfile);
    errno = ENAMETOOLONG;
    if (size >= (int)sizeof joined || realpath(joined, path) == NULL) {
        snprintf(error, SETTING_ERROR_MAX, "Error loading ACLs, opening file '%.256s': %s",
                 settings->aclfile, strerror(errno));
        return false;
    }
    if (!acl_rules_read(server, path, &users, why)) {
        snprintf(error, SETTING_ERROR_MAX, "%.500s", why);
        acl_users_deinit(&users);
        return false;
    }
    acl_users_exchange(&server->acl.users, &users);
    acl_users_deinit(&users);
    server->acl.path = memory_allocate(strlen(path) + 1);
    if (server->acl.path == NULL) {
        snprintf(error, SETTING_ERROR_MAX, "out of memory");
        return false;
    }
    memcpy(server->acl.path, path, strlen(path) + 1);
    return true;
}

void acl_rules_close_clients(struct server *server, const struct acl_user *user,
                             const struct session *caller) {
    for (struct session *session = server->sessions.first; session != NULL;
         session = session->next) {
        if (session->user != user) {
            continue;
        }
        /* It runs nothing more; were that wrong, it would be nobody. */
        server_set_user(server, session, server->acl.users.default_user, false);
        if (session == caller) {
            session->is_close_after_reply = true;
        } else {
            server_kill_session(server, session);
        }
    }
}

bool acl_rules_load(struct server *server, const struct session *caller, char *error) {
    struct acl_users fresh = {.count = 0};
    if (!acl_rules_read(server, server->acl.path, &fresh, error)) {
        acl_users_deinit(&fresh);
        return false;
    }
    acl_users_exchange(&server->acl.users, &fresh);
    for (uint32_t i = 0; i < fresh.count; i++) {
        if (acl_users_find(&server->acl.users, fresh.at[i]->name) == NULL) {
            acl_rules_close_clients(server, fresh.at[i], caller);
        }
    }
    acl_users_deinit(&fresh);
    acl_check_refresh(server, NULL);
    return true;
}

static void acl_rules_print_line(const struct acl_user *user, struct buffer *out) {
    acl_rules_print_named(user, out);
    buffer_append_text(out, "\n");
}

bool acl_rules_save(const struct server *server, char *error) {
    struct buffer text;
    buffer_init(&text, 0);
    for (uint32_t i = 0; i < server->acl.users.count; i++) {
        buffer_append_text(&text, "user ");
        acl_rules_print_line(server->acl.users.at[i], &text);
    }
    errno = ENOMEM;
    bool is_saved = !text.is_broken && setting_file_replace(server->acl.path, &text);
    if (!is_saved) {
        snprintf(error, ACL_FILE_ERROR_MAX, "%s", strerror(errno));
    }
    buffer_deinit(&text);
    return is_saved;
}

/* ---- CONFIG REWRITE ---- */

/* Does a line of the settings say what holds of its user? */
static bool acl_rules_is_as_it_was(struct reading *reading, const struct server *server,
                                   struct bytes line) {
    enum acl_status status;
    struct bytes failed;
    struct acl_user *now = NULL;
    struct acl_user *then = NULL;
    if (acl_rules_split(reading, line) && reading->count > 0) {
        now = acl_users_find(&server->acl.users, reading->words[0]);
        then = acl_rules_make_user(reading, reading->words, reading->count, &status, &failed);
    }
    struct buffer texts[2];
    buffer_init(&texts[0], 0);
    buffer_init(&texts[1], 0);
    bool is_same = now != NULL && then != NULL;
    if (is_same) {
        acl_rules_print(now, &texts[0]);
        acl_rules_print(then, &texts[1]);
        is_same = bytes_equal(buffer_bytes(&texts[0]), buffer_bytes(&texts[1]));
    }
    buffer_deinit(&texts[0]);
    buffer_deinit(&texts[1]);
    acl_user_destroy(then);
    return is_same;
}

/* Append the user's line: the one that there was, if it still says what holds. */
static void acl_rules_put_user(struct reading *reading, const struct server *server,
                               const struct acl_user *user, struct buffer *out) {
    struct bytes text =
        bytes_from_text(server->settings.user_lines != NULL ? server->settings.user_lines : "");
    for (struct bytes line; bytes_take_line(&text, &line);) {
        if (line.size >= user->name.size && memcmp(line.at, user->name.at, user->name.size) == 0 &&
            (line.size == user->name.size || line.at[user->name.size] == ' ')) {
            if (acl_rules_is_as_it_was(reading, server, line)) {
                buffer_append_bytes(out, line);
                buffer_append_text(out, "\n");
            } else {
                acl_rules_print_line(user, out);
            }
            return;
        }
    }
    /* Is it what requirepass alone makes of the default user? */
    const char *password = server->settings.requirepass;
    bool has_one = password != NULL && user->passwords.count == 1 &&
                   acl_user_takes_password(user, bytes_from_text(password));
    const struct acl_selector *root = user->selectors[0];
    if (user != server->acl.users.default_user || !user->is_on || user->selector_count != 1 ||
        user->sanitize != ACL_SANITIZE_UNSAID || root->rules.count > 0 || user->tokens.count > 0 ||
        !acl_user_may_everything(user) || !(password != NULL ? has_one : user->has_no_password)) {
        acl_rules_print_line(user, out);
    }
}

bool acl_rules_to_settings(struct server *server, char *error) {
    struct reading reading;
    struct buffer lines;
    buffer_init(&lines, 0);
    bool is_fine =
        acl_rules_begin_reading(&reading, server, &server->acl.users, error, SETTING_ERROR_MAX);
    for (uint32_t i = 0; is_fine && server->acl.path == NULL && i < server->acl.users.count; i++) {
        acl_rules_put_user(&reading, server, server->acl.users.at[i], &lines);
    }
    if (is_fine && (lines.is_broken ||
                    !setting_value_set_user_lines(&server->settings, buffer_bytes(&lines)))) {
        acl_rules_complain(&reading, "out of memory");
        is_fine = false;
    }
    /* Does each fit a line of a file? */
    const struct setting *setting = settings_find(BYTES("user"));
    char text[SETTING_VALUE_MAX];
    size_t size = 1;
    for (uint32_t i = 0;
         is_fine && setting_value_print_line(&server->settings, setting, i, text, &size); i++) {
        if (size == 0) {
            acl_rules_complain(&reading, "a user has too many rules for a line: use an aclfile");
            is_fine = false;
        }
    }
    acl_rules_end_reading(&reading);
    buffer_deinit(&lines);
    return is_fine;
}
