/* Helpers for handlers. See call.h. */
#include "server/dispatch/call.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>

#include "codec/glob.h"
#include "server/dispatch/explain.h"
#include "server/dispatch/syntax.h"

__attribute__((cold)) static void call_note_miss(const struct call *call, struct bytes name) {
    call->server->stats.keyspace_misses++;
    call_notify(call, SETTING_EVENT_MISS, "keymiss", name);
}

struct registry_key *call_find_key(const struct call *call, struct bytes name) {
    struct registry_key *key =
        registry_find(call->registry, call->session->database, name, call->now_ms);
    if ((call->command->flags & COMMAND_READ) != 0) {
        if (key != NULL) {
            call->server->stats.keyspace_hits++;
        } else {
            call_note_miss(call, name);
        }
    }
    return key;
}

bool call_need_board(const struct call *call, struct bytes name, struct registry_key **key) {
    if (!call_find_kind(call, name, REGISTRY_BOARD, key)) {
        return false;
    }
    return *key != NULL || call_refuse_no_key(call);
}

/* Returns true if it did. */
__attribute__((cold)) bool call_refuse_foreign(const struct call *call, struct bytes member) {
    const struct jwt_claims *claims = &call->session->player->claims;
    const struct bytes own = {.at = claims->player, .size = claims->player_size};
    if (bytes_equal(own, member)) {
        return false;
    }
    reply_error_format(
        call->reply, "NOPERM a player's token writes of its own member alone: '%.*s' is not '%.*s'",
        bytes_shown_size(member, 64), member.at, bytes_shown_size(own, 64), own.at);
    return true;
}

__attribute__((cold)) bool call_refuse_kind(const struct call *call) {
    return call_refuse(call, "WRONGTYPE Operation against a key holding the wrong kind of value");
}

bool call_check_key(const struct call *call, struct bytes key) {
    return (key.size >= 1 && key.size <= REGISTRY_KEY_MAX) ||
           call_refuse_format(call, "ERR key is %zu bytes long: 1..%d are allowed", key.size,
                              (int)REGISTRY_KEY_MAX);
}

/* Whether its errors are explained; nobody reads those of a silent reply. */
static bool call_is_explained(const struct call *call) {
    return !call->reply->is_silent && explain_covers(call->command);
}

__attribute__((cold)) void call_reply_syntax_error(const struct call *call) {
    char error[EXPLAIN_MAX] = "ERR syntax error";
    if (call_is_explained(call)) {
        (void)explain_request(call->command, call->request, error);
    }
    reply_error(call->reply, error);
}

__attribute__((cold)) void call_reply_not_integer(const struct call *call, struct bytes text) {
    char error[EXPLAIN_MAX] = "ERR value is not an integer or out of range";
    if (call_is_explained(call)) {
        explain_word(call->command, call->request, text, NULL, NULL, error);
    }
    reply_error(call->reply, error);
}

__attribute__((cold)) void call_reply_word(const struct call *call, struct bytes word,
                                           const char *field, const char *why, const char *redis) {
    char error[EXPLAIN_MAX];
    const char *text = redis != NULL ? redis : "ERR syntax error"; /* which nobody reads */
    if (call_is_explained(call)) {
        explain_word(call->command, call->request, word, field, why, error);
        text = error;
    }
    reply_error(call->reply, text);
}

void call_reply_reason(const struct call *call, const char *format, ...) {
    char reason[EXPLAIN_MAX], error[EXPLAIN_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    if (call_is_explained(call)) {
        explain_reason(call->command, reason, error);
        reply_error(call->reply, error);
    } else {
        reply_error_format(call->reply, "ERR %s", reason);
    }
}

void call_print_arity(const struct command *command, const struct request *request, char *out) {
    if (explain_covers(command)) {
        (void)explain_request(command, request, out);
    } else {
        snprintf(out, EXPLAIN_MAX, "ERR wrong number of arguments for '%s' command",
                 command_full_name(command_index(command)));
    }
}

bool call_check_database(const struct call *call, int64_t number) {
    if (number < INT_MIN || number > INT_MAX) {
        return call_refuse_format(call, "ERR value is out of range, value must between %d and %d",
                                  INT_MIN, INT_MAX);
    }
    return (number >= 0 && number < REGISTRY_DATABASES) ||
           call_refuse(call, "ERR DB index is out of range");
}

bool call_parse_cursor(const struct call *call, struct bytes text, uint64_t *cursor) {
    text = bytes_behind(text, text.size > 1 && text.at[0] == '+');
    while (text.size > 1 && text.at[0] == '0') {
        text = bytes_behind(text, 1);
    }
    return bytes_parse_u64(text, cursor) || call_refuse(call, "ERR invalid cursor");
}

static bool call_reply_unless(const struct call *call, bool is_read) {
    return is_read ||
           call_refuse_format(call, "ERR pattern is too long: at most %d bytes", GLOB_PATTERN_MAX);
}

bool call_prepare_glob(const struct call *call, struct bytes pattern, struct glob *glob) {
    return call_reply_unless(call, glob_prepare(glob, pattern));
}

bool call_prepare_glob_lower(const struct call *call, struct bytes pattern, struct glob *glob) {
    return call_reply_unless(call, glob_prepare_lower(glob, pattern));
}

bool call_refuse_arity(const struct call *call) {
    char error[EXPLAIN_MAX];
    call_print_arity(call->command, call->request, error);
    return call_refuse(call, error);
}

bool call_check_count(const struct call *call, uint32_t count_max, const char *container) {
    struct bytes word = call_arg(call, 1);
    return call->request->count <= count_max ||
           call_refuse_format(
               call, "ERR unknown subcommand or wrong number of arguments for '%.*s'. Try %s HELP.",
               (int)word.size, word.at, container);
}

bool call_refuse_time(const struct call *call, const struct layout *layout, int64_t time_us) {
    const struct clock *clock = &call->server->clock;
    char error[LAYOUT_ERROR_MAX];
    layout_explain_time(layout, time_us, error);
    if (time_us == call->now_us && clock->state == CLOCK_AHEAD) {
        reply_error_format(call->reply,
                           "ERR %s; the server's clock is %lld s ahead of the machine's, "
                           "restart it with --reset-clock to correct it",
                           error, (long long)(clock->lead_us / 1000000));
    } else {
        reply_error_format(call->reply, "ERR %s", error);
    }
    return false;
}

void call_print_name(const struct request *request, char *out) {
    struct bytes name = request->args[0];
    CHECK(name.size <= SETTING_RENAME_SIZE_MAX);
    for (size_t i = 0; i < name.size; i++) {
        out[i] = name.at[i] >= 'a' && name.at[i] <= 'z' ? (char)(name.at[i] & ~0x20) : name.at[i];
    }
    out[name.size] = '\0';
}

void call_help(struct call *call) {
    enum { HELP_LINE_MAX = 1024 };
    const struct command *container = command_find(call_arg(call, 0));
    char line[HELP_LINE_MAX];
    uint32_t count = 0;
    CHECK(container != NULL);
    call_print_name(call->request, line);
    size_t size = strlen(line);
    snprintf(line + size, sizeof line - size,
             " <subcommand> [<arg> [value] [opt] ...]. Subcommands are:");
    size_t mark = reply_array_begin(call->reply);
    reply_simple(call->reply, line);
    for (; container->subcommands[count] != NULL; count++) {
        const struct command *each = command_by_index(command_index(container) + 1 + count);
        size = (size_t)snprintf(line, sizeof line, "%s ", each->name);
        size += syntax_print(each, line + size, sizeof line - size);
        line[line[size - 1] == ' ' ? size - 1 : size] = '\0';
        reply_simple(call->reply, line);
        snprintf(line, sizeof line, "    %s.", each->summary);
        reply_simple(call->reply, line);
    }
    reply_array_end(call->reply, mark, 1 + 2 * (uint64_t)count);
}

const struct command call_help_command = CALL_HELP(COMMAND_LOADING);
