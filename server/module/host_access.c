/* Rights to what a command comes to by a pattern of its own, in the place of
 * server/acl/acl_pattern.c: users are the host's.
 *
 * The host says whether a user may use a key, not whether a pattern of the user's takes all that another
 * one can name. So it is asked for keys that begin as the pattern does and go on at random: a user
 * with ~x* may use them all, and one with ~x:1 none. */
#include "server/acl/acl_check.h"
#include "server/dispatch/command.h"
#include "server/module/host_run.h"

enum { TAIL_MAX = 40 };

/* The user on whose behalf the command runs. NULL: another module's command, which may do everything. */
static struct host_user *host_access_find_user(struct host_context *ctx) {
    struct host_string *name = host_GetClientUserNameById(ctx, host_GetClientId(ctx));
    if (name == NULL && (host_GetContextFlags(ctx) & HOST_IN_SCRIPT) != 0) {
        name = host_GetCurrentUserName(ctx); /* who runs the script */
    }
    if (name == NULL) {
        return NULL;
    }
    struct host_user *user = host_GetModuleUserFromUserName(name);
    host_FreeString(ctx, name);
    return user;
}

static bool host_access_may_use(struct host_context *ctx, struct host_user *user,
                                const struct buffer *text, unsigned access) {
    int flags = ((access & ACL_READ) != 0 ? HOST_KEY_ACCESS : 0) |
                ((access & ACL_WRITE) != 0 ? HOST_KEY_UPDATE | HOST_KEY_DELETE : 0);
    struct host_string *key = host_CreateString(ctx, text->at, text->size);
    bool is_allowed = host_ACLCheckKeyPermissions(user, key, flags) == HOST_OK;
    host_FreeString(ctx, key);
    return is_allowed;
}

/* Keys with tails of no, one and many random bytes. One without a name is no board, and to the host it does not
 * match a pattern of * alone. */
static bool host_access_may_use_all(struct host_context *ctx, struct host_user *user,
                                    struct bytes begin, struct bytes end, unsigned access) {
    static const size_t sizes[] = {0, 1, TAIL_MAX};
    struct buffer text;
    bool is_allowed = true;
    buffer_init(&text, 0);
    for (size_t i = begin.size + end.size > 0 ? 0 : 1;
         i < sizeof sizes / sizeof sizes[0] && is_allowed; i++) {
        char tail[TAIL_MAX];
        for (size_t at = 0; at < sizes[i]; at++) {
            tail[at] = (char)server_random(&module.server);
        }
        buffer_clear(&text);
        buffer_append(&text, begin.at, begin.size);
        buffer_append(&text, tail, sizes[i]);
        buffer_append(&text, end.at, end.size);
        is_allowed = !text.is_broken && host_access_may_use(ctx, user, &text, access);
    }
    buffer_deinit(&text);
    return is_allowed;
}

/* ---- slots ---- */

/* Are all keys that the pattern makes in the slot of the command's key? Their tag is before the member,
 * which may be anything. */
static bool host_access_is_in_slot(const struct call *call, struct bytes before) {
    struct bytes part = host_slot_part(before);
    return part.size < before.size &&
           bytes_equal(part, host_slot_part(call_arg(call, (uint32_t)call->command->first_key)));
}

static bool host_access_asks_for_period(const struct call *call) {
    for (uint32_t i = 2; i < call->request->count; i++) {
        if (call_arg_is(call, i, "PERIOD")) {
            return true;
        }
    }
    return false;
}

/* The name of an archive begins with the board's: with a tag it is in the same slot. */
bool host_access_refuses_period(const struct call *call) {
    const struct command *command = call->command;
    if ((command->flags & COMMAND_WRITE) == 0 || command->first_key != 1) {
        return false;
    }
    struct bytes name = call_arg(call, 1);
    bool is_by_name =
        strcmp(command->name, "LB.CREATE") == 0 || strcmp(command->name, "LB.ALTER") == 0;
    bool has_period =
        is_by_name
            ? host_access_asks_for_period(call)
            : settings_rules_for(&module.server.settings, name, 0)->period.unit != PERIOD_NONE;
    if (!has_period || host_slot_part(name).size < name.size) {
        return false;
    }
    reply_error(call->reply, "ERR in a cluster the name of a board with a PERIOD needs a {tag}, so "
                             "that its archives are in its slot");
    return true;
}

/* ---- both ---- */

static bool host_access_answer(const struct call *call, struct host_user *user, bool is_allowed) {
    if (user != NULL) {
        host_FreeModuleUser(user);
    }
    return is_allowed || call_refuse(call, "NOPERM this user has no permissions to access one of "
                                           "the keys used as arguments");
}

bool acl_check_pattern(const struct call *call, struct bytes pattern, bool is_key,
                       unsigned access) {
    struct bytes begin = {.at = pattern.at, .size = acl_pattern_literal_size(pattern)};
    struct bytes end = {.at = "", .size = 0};
    if (is_key) {
        const char *star = memchr(pattern.at, '*', pattern.size);
        begin.size = (size_t)(star - pattern.at);
        end = (struct bytes){.at = star + 1, .size = pattern.size - begin.size - 1};
    }
    if (is_key && module.is_cluster && call->command->first_key > 0 &&
        !host_access_is_in_slot(call, begin)) {
        return call_refuse(call, "ERR in a cluster DATA needs the board's {tag} in front of the *, "
                                 "so that the hashes are in its slot");
    }
    struct host_user *user = host_access_find_user(module.context);
    bool is_allowed =
        user == NULL || host_access_may_use_all(module.context, user, begin, end, access);
    return host_access_answer(call, user, is_allowed);
}

bool acl_check_made_key(const struct call *call, struct bytes key, struct bytes beside,
                        unsigned access) {
    struct buffer text;
    if (module.is_cluster && !host_is_same_slot(key, beside)) {
        return call_refuse(call, "ERR in a cluster HSET needs the board's {tag} in front of the *, "
                                 "so that the hashes are in its slot");
    }
    struct host_user *user = host_access_find_user(module.context);
    buffer_init(&text, 0);
    buffer_append(&text, key.at, key.size);
    bool is_allowed = user == NULL ||
                      (!text.is_broken && host_access_may_use(module.context, user, &text, access));
    buffer_deinit(&text);
    return host_access_answer(call, user, is_allowed);
}
