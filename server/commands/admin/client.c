/* CLIENT: the connections, as clients and operators see and control them.
 *
 * A kill only marks the session; the loop closes it before running any more of its requests. */
#include <stdio.h>

#include "server/clients/server.h"
#include "server/dispatch/options.h"

/* ---- one line of CLIENT LIST ---- */

static void print_flags(const struct session *session, char *out) {
    size_t count = 0;
    if (session->is_monitor) {
        out[count++] = 'O';
    }
    if (session->transaction.is_open) {
        out[count++] = 'x';
    }
    if (session->watches.is_stale) {
        out[count++] = 'd';
    }
    if (session->is_close_after_reply) {
        out[count++] = 'c';
    }
    if (session->is_killed) {
        out[count++] = 'A';
    }
    if (session->is_unix_socket) {
        out[count++] = 'U';
    }
    if (session->is_no_evict) {
        out[count++] = 'e';
    }
    if (session->is_no_touch) {
        out[count++] = 'T';
    }
    if (count == 0) {
        out[count++] = 'N';
    }
    out[count] = '\0';
}

static const char *text_or_empty(const char *text) {
    return text != NULL ? text : "";
}

/* Room for numbers and addresses; each name takes up to SESSION_NAME_MAX more. */
enum { CLIENT_LINE_MAX = 2048 };

static void print_client(const struct session *session, int64_t monotonic_ms, struct buffer *out) {
    char flags[16];
    print_flags(session, flags);
    const struct buffer *output = &session->output;
    const struct transaction *transaction = &session->transaction;
    size_t memory = session_memory_size(session);
    char *line = buffer_reserve(out, CLIENT_LINE_MAX);
    if (line == NULL) {
        return;
    }
    const char *command = session->last_command != NULL
                              ? command_full_name(command_index(session->last_command))
                              : "NULL";
    int size = snprintf(
        line, CLIENT_LINE_MAX,
        "id=%llu addr=%s laddr=%s fd=%d name=%s age=%lld idle=%lld flags=%s db=%d sub=0 psub=0 "
        "ssub=0 multi=%lld watch=%u qbuf=%zu qbuf-free=0 argv-mem=0 multi-mem=%zu rbs=%zu rbp=%zu "
        "obl=%zu oll=0 omem=%zu tot-mem=%zu events=%s cmd=%s user=default redir=-1 resp=%d "
        "lib-name=%s lib-ver=%s\n",
        (unsigned long long)session->id, session->address, session->local_address, session->fd,
        text_or_empty(session->name), (long long)((monotonic_ms - session->created_at_ms) / 1000),
        (long long)((monotonic_ms - session->active_at_ms) / 1000), flags, session->database,
        transaction->is_open ? (long long)transaction->count : -1, session->watches.count,
        session->query_buffer_size, transaction->memory_size, output->capacity, output->capacity,
        output->size, output->capacity, memory, output->size > 0 ? "rw" : "r", command,
        session->protocol, text_or_empty(session->library_name),
        text_or_empty(session->library_version));
    CHECK(size > 0 && size < CLIENT_LINE_MAX);
    buffer_commit(out, (size_t)size);
}

/* Lines are written directly into the reply. So a long list is in memory only once, stops at the
 * client's output limit, and is not generated at all if replies are off. */
static void info_run(struct call *call) {
    size_t mark = reply_verbatim_begin(call->reply);
    if (!reply_is_lost(call->reply)) {
        print_client(call->session, call->server->clock.monotonic_ms, call->reply->out);
    }
    reply_verbatim_end(call->reply, mark);
}

static const struct command client_info = {
    .name = "INFO",
    .summary = "This connection's line of CLIENT LIST",
    .complexity = "O(1)",
    .group = "connection",
    .flags = COMMAND_LOADING | COMMAND_NO_PAUSE,
    .run = info_run,
};

/* ---- CLIENT LIST ---- */

enum client_type { CLIENT_NORMAL, CLIENT_REPLICA, CLIENT_MASTER, CLIENT_PUBSUB };

/* Every client here is normal, monitors included. (Redis counts those as replicas, which would hide
 * them from anyone listing clients.) */
static bool parse_type(const struct call *call, struct bytes word, enum client_type *type) {
    if (bytes_is(word, "NORMAL")) {
        *type = CLIENT_NORMAL;
    } else if (bytes_is(word, "REPLICA") || bytes_is(word, "SLAVE")) {
        *type = CLIENT_REPLICA;
    } else if (bytes_is(word, "MASTER")) {
        *type = CLIENT_MASTER;
    } else if (bytes_is(word, "PUBSUB")) {
        *type = CLIENT_PUBSUB;
    } else {
        reply_error_format(call->reply, "ERR Unknown client type '%.*s'",
                           (int)(word.size < 128 ? word.size : 128), word.at);
        return false;
    }
    return true;
}

static void list_all(const struct call *call) {
    size_t mark = reply_verbatim_begin(call->reply);
    const struct session *session = call->server->session_first;
    for (; session != NULL && !reply_is_lost(call->reply); session = session->next) {
        print_client(session, call->server->clock.monotonic_ms, call->reply->out);
    }
    reply_verbatim_end(call->reply, mark);
}

static bool check_ids(const struct call *call) {
    for (uint32_t i = 3; i < call->request->count; i++) {
        int64_t id;
        if (!bytes_parse_i64(call_arg(call, i), &id)) {
            return call_refuse(call, "ERR Invalid client ID");
        }
    }
    return true;
}

/* The line of a repeated id is copied: generating one takes some microseconds, and a request has
 * room for a million ids. */
static void list_client(const struct call *call, struct session *session) {
    uint64_t list = call->server->client_list_count;
    if (session->line.list == list) {
        reply_repeat(call->reply, session->line.begin, session->line.size);
        return;
    }
    struct buffer *out = call->reply->out;
    session->line.list = list;
    session->line.begin = out->size;
    print_client(session, call->server->clock.monotonic_ms, out);
    session->line.size = out->size - session->line.begin;
}

static void list_ids(const struct call *call) {
    if (!check_ids(call)) {
        return;
    }
    call->server->client_list_count++;
    size_t mark = reply_verbatim_begin(call->reply);
    for (uint32_t i = 3; i < call->request->count && !reply_is_lost(call->reply); i++) {
        int64_t id;
        bool is_number = bytes_parse_i64(call_arg(call, i), &id);
        CHECK(is_number);
        struct session *session = server_find_session(call->server, (uint64_t)id);
        if (session != NULL) {
            list_client(call, session);
        }
    }
    reply_verbatim_end(call->reply, mark);
}

static void list_run(struct call *call) {
    uint32_t count = call->request->count;
    enum client_type type = CLIENT_NORMAL;
    if (count > 3 && call_arg_is(call, 2, "ID")) {
        list_ids(call);
    } else if (count == 4 && call_arg_is(call, 2, "TYPE")) {
        if (!parse_type(call, call_arg(call, 3), &type)) {
            return;
        }
        if (type == CLIENT_NORMAL) {
            list_all(call);
        } else {
            reply_verbatim(call->reply, BYTES(""));
        }
    } else if (count == 2) {
        list_all(call);
    } else {
        call_syntax_error(call);
    }
}

static const struct command client_list = {
    .name = "LIST",
    .syntax = "client-type=[TYPE <NORMAL | MASTER | REPLICA | PUBSUB>] [ID client-id:integer...]",
    .summary = "One line for every connection",
    .complexity = "O(n) in the connections",
    .group = "connection",
    .flags = COMMAND_ADMIN | COMMAND_LOADING | COMMAND_NO_PAUSE,
    .run = list_run,
};

/* ---- CLIENT KILL ---- */

struct kill_filter {
    int64_t id;                                    /* 0: any */
    struct bytes address_text, local_address_text; /* at NULL: any */
    bool has_type;
    enum client_type type;
    bool is_me_spared;
    int64_t age_s_min; /* 0: any */
};

static bool check_kill_user(const struct call *call, uint32_t index, void *target) {
    struct bytes name = call_arg(call, index);
    (void)target;
    if (!bytes_equal(name, BYTES("default"))) {
        reply_error_format(call->reply, "ERR No such user '%.*s'",
                           (int)(name.size < 128 ? name.size : 128), name.at);
        return false;
    }
    return true;
}

static bool read_kill_id(const struct call *call, uint32_t index, void *target) {
    int64_t *id = &((struct kill_filter *)target)->id;
    return (bytes_parse_i64(call_arg(call, index), id) && *id >= 1) ||
           call_refuse(call, "ERR client-id should be greater than 0");
}

static bool read_kill_age(const struct call *call, uint32_t index, void *target) {
    int64_t *age_s = &((struct kill_filter *)target)->age_s_min;
    if (!bytes_parse_i64(call_arg(call, index), age_s)) {
        return call_refuse(call, "ERR maxage is not an integer or out of range");
    }
    return *age_s >= 1 || call_refuse(call, "ERR maxage should be greater than 0");
}

static bool read_kill_skipme(const struct call *call, uint32_t index, void *target) {
    bool *is_me_spared = &((struct kill_filter *)target)->is_me_spared;
    *is_me_spared = call_arg_is(call, index, "YES");
    return *is_me_spared || call_arg_is(call, index, "NO") || call_syntax_error(call);
}

static bool read_kill_type(const struct call *call, uint32_t index, void *target) {
    struct kill_filter *filter = target;
    filter->has_type = true;
    return parse_type(call, call_arg(call, index), &filter->type);
}

static const struct option_row kill_options[] = {
    {"ID", OPTION_READ, 0, read_kill_id},
    {"TYPE", OPTION_READ, 0, read_kill_type},
    {"USER", OPTION_READ, 0, check_kill_user},
    {"ADDR", OPTION_TEXT, offsetof(struct kill_filter, address_text), NULL},
    {"LADDR", OPTION_TEXT, offsetof(struct kill_filter, local_address_text), NULL},
    {"SKIPME", OPTION_READ, 0, read_kill_skipme},
    {"MAXAGE", OPTION_READ, 0, read_kill_age},
    {0},
};

static bool is_killed_by(const struct call *call, const struct kill_filter *filter,
                         const struct session *session) {
    if (filter->is_me_spared && session == call->session) {
        return false;
    }
    if (filter->has_type && filter->type != CLIENT_NORMAL) {
        return false;
    }
    if (filter->address_text.at != NULL &&
        !bytes_equal(filter->address_text, bytes_from_text(session->address))) {
        return false;
    }
    if (filter->local_address_text.at != NULL &&
        !bytes_equal(filter->local_address_text, bytes_from_text(session->local_address))) {
        return false;
    }
    if (filter->age_s_min > 0 &&
        (call->server->clock.monotonic_ms - session->created_at_ms) / 1000 < filter->age_s_min) {
        return false;
    }
    return !session->is_killed && (filter->id == 0 || (uint64_t)filter->id == session->id);
}

/* Returns the number killed, 0 or 1. The calling client gets its reply before it is closed. */
static int64_t kill_if_matching(const struct call *call, const struct kill_filter *filter,
                                struct session *session) {
    if (!is_killed_by(call, filter, session)) {
        return 0;
    }
    if (session == call->session) {
        session->is_close_after_reply = true;
    } else {
        server_kill_session(call->server, session);
    }
    return 1;
}

static int64_t kill_matching(const struct call *call, const struct kill_filter *filter) {
    if (filter->id != 0) {
        struct session *session = server_find_session(call->server, (uint64_t)filter->id);
        return session != NULL ? kill_if_matching(call, filter, session) : 0;
    }
    int64_t count = 0;
    for (struct session *session = call->server->session_first; session != NULL;
         session = session->next) {
        count += kill_if_matching(call, filter, session);
    }
    return count;
}

static void kill_run(struct call *call) {
    if (call->request->count == 3) {
        struct kill_filter filter = {.address_text = call_arg(call, 2)};
        if (kill_matching(call, &filter) == 0) {
            reply_error(call->reply, "ERR No such client");
        } else {
            reply_ok(call->reply);
        }
        return;
    }
    struct kill_filter filter = {.is_me_spared = true};
    if (options_read(call, 2, &filter)) {
        reply_integer(call->reply, kill_matching(call, &filter));
    }
}

static const struct command client_kill = {
    .name = "KILL",
    .syntax = "filter=<old-format | new-format=<[ID client-id:integer] | client-type=[TYPE <NORMAL "
              "| MASTER | REPLICA | PUBSUB>] | [USER username] | [ADDR addr] | [LADDR laddr] | "
              "[SKIPME skipme] | [MAXAGE maxage:integer]>...>",
    .options = kill_options,
    .summary = "Close connections, by address or by filters that must all hold",
    .complexity = "O(n) in the connections",
    .group = "connection",
    .flags = COMMAND_ADMIN | COMMAND_LOADING | COMMAND_NO_PAUSE,
    .run = kill_run,
};

/* ---- names ---- */

static void id_run(struct call *call) {
    reply_integer(call->reply, (int64_t)call->session->id);
}

static const struct command client_id = {
    .name = "ID",
    .summary = "This connection's ID; IDs only increase",
    .complexity = "O(1)",
    .group = "connection",
    .flags = COMMAND_LOADING | COMMAND_NO_PAUSE,
    .run = id_run,
};

static void getname_run(struct call *call) {
    if (call->session->name != NULL) {
        reply_bulk_text(call->reply, call->session->name);
    } else {
        reply_null(call->reply);
    }
}

static const struct command client_getname = {
    .name = "GETNAME",
    .summary = "This connection's name",
    .complexity = "O(1)",
    .group = "connection",
    .flags = COMMAND_LOADING | COMMAND_NO_PAUSE,
    .run = getname_run,
};

static void set_text(const struct call *call, char **name, struct bytes text) {
    if (session_set_text(name, text)) {
        reply_ok(call->reply);
    } else {
        call_out_of_memory(call);
    }
}

static void setname_run(struct call *call) {
    if (!session_is_name(call_arg(call, 2))) {
        reply_error(call->reply, SESSION_NAME_ERROR);
        return;
    }
    set_text(call, &call->session->name, call_arg(call, 2));
}

static const struct command client_setname = {
    .name = "SETNAME",
    .syntax = "connection-name",
    .summary = "Name this connection",
    .complexity = "O(1)",
    .group = "connection",
    .flags = COMMAND_LOADING | COMMAND_NO_PAUSE,
    .run = setname_run,
};

static void setinfo_run(struct call *call) {
    struct bytes option = call_arg(call, 2);
    int shown_size = (int)(option.size < 128 ? option.size : 128);
    char **name = NULL;
    if (bytes_is(option, "LIB-NAME")) {
        name = &call->session->library_name;
    } else if (bytes_is(option, "LIB-VER")) {
        name = &call->session->library_version;
    } else {
        reply_error_format(call->reply, "ERR Unrecognized option '%.*s'", shown_size, option.at);
        return;
    }
    if (!session_is_name(call_arg(call, 3))) {
        reply_error_format(call->reply,
                           "ERR %.*s cannot contain spaces, newlines or special characters.",
                           shown_size, option.at);
        return;
    }
    set_text(call, name, call_arg(call, 3));
}

static const struct command client_setinfo = {
    .name = "SETINFO",
    .syntax = "attr=<LIB-NAME libname | LIB-VER libver>",
    .summary = "Set the client library's name or version",
    .complexity = "O(1)",
    .group = "connection",
    .flags = COMMAND_LOADING | COMMAND_NO_PAUSE,
    .run = setinfo_run,
};

/* ---- CLIENT REPLY ---- */

static void reply_run(struct call *call) {
    struct session *session = call->session;
    if (call_arg_is(call, 2, "ON")) {
        session->reply_mode = SESSION_REPLY_ON;
        call->reply->is_silent = false;
        reply_ok(call->reply);
    } else if (call_arg_is(call, 2, "OFF")) {
        session->reply_mode = SESSION_REPLY_OFF;
    } else if (!call_arg_is(call, 2, "SKIP")) {
        call_syntax_error(call);
    } else if (session->reply_mode != SESSION_REPLY_OFF) {
        session->reply_mode = SESSION_REPLY_SKIP_NEXT;
    }
}

static const struct command client_reply = {
    .name = "REPLY",
    .syntax = "action=<ON | OFF | SKIP>",
    .summary = "Turn this connection's replies on or off, or skip the next one",
    .complexity = "O(1)",
    .group = "connection",
    .flags = COMMAND_LOADING | COMMAND_NO_PAUSE,
    .run = reply_run,
};

/* ---- CLIENT PAUSE ---- */

static bool parse_pause_end(const struct call *call, int64_t *until_ms) {
    int64_t timeout_ms;
    if (!bytes_parse_i64(call_arg(call, 2), &timeout_ms)) {
        return call_refuse(call, "ERR timeout is not an integer or out of range");
    }
    if (timeout_ms < 0) {
        return call_refuse(call, "ERR timeout is negative");
    }
    if (__builtin_add_overflow(call->server->clock.monotonic_ms, timeout_ms, until_ms)) {
        return call_refuse(call, "ERR timeout is out of range");
    }
    return true;
}

/* A pause in progress can be extended, in duration and in scope, but not reduced. */
static void pause_run(struct call *call) {
    struct server *server = call->server;
    enum server_pause pause = SERVER_PAUSE_ALL;
    if (call->request->count > 4) {
        reply_error(call->reply, "ERR unknown subcommand or wrong number of arguments for 'pause'. "
                                 "Try CLIENT HELP.");
        return;
    }
    if (call->request->count == 4) {
        pause = call_arg_is(call, 3, "WRITE") ? SERVER_PAUSE_WRITE : SERVER_PAUSE_ALL;
        if (pause == SERVER_PAUSE_ALL && !call_arg_is(call, 3, "ALL")) {
            reply_error(call->reply, "ERR CLIENT PAUSE mode must be WRITE or ALL");
            return;
        }
    }
    int64_t until_ms;
    if (!parse_pause_end(call, &until_ms)) {
        return;
    }
    if (server->pause == SERVER_PAUSE_NONE || server->pause_until_ms < until_ms) {
        server->pause_until_ms = until_ms;
    }
    if (pause > server->pause) {
        server->pause = pause;
    }
    reply_ok(call->reply);
}

static const struct command client_pause = {
    .name = "PAUSE",
    .syntax = "timeout:integer mode=[WRITE | ALL]",
    .summary = "Delay writes for some milliseconds, or all commands but AUTH, HELLO, SELECT, "
               "RESET, QUIT and CLIENT",
    .complexity = "O(1)",
    .group = "connection",
    .flags = COMMAND_ADMIN | COMMAND_LOADING | COMMAND_NO_PAUSE,
    .run = pause_run,
};

static void unpause_run(struct call *call) {
    call->server->pause = SERVER_PAUSE_NONE;
    call->server->pause_until_ms = 0;
    reply_ok(call->reply);
}

static const struct command client_unpause = {
    .name = "UNPAUSE",
    .summary = "End CLIENT PAUSE",
    .complexity = "O(1)",
    .group = "connection",
    .flags = COMMAND_ADMIN | COMMAND_LOADING | COMMAND_NO_PAUSE,
    .run = unpause_run,
};

/* ---- switches ---- */

static void set_switch(const struct call *call, bool *is_on) {
    if (call_arg_is(call, 2, "ON")) {
        *is_on = true;
    } else if (call_arg_is(call, 2, "OFF")) {
        *is_on = false;
    } else {
        call_syntax_error(call);
        return;
    }
    reply_ok(call->reply);
}

static void no_evict_run(struct call *call) {
    set_switch(call, &call->session->is_no_evict);
}

static void no_touch_run(struct call *call) {
    set_switch(call, &call->session->is_no_touch);
}

static const struct command client_no_evict = {
    .name = "NO-EVICT",
    .syntax = "enabled=<ON | OFF>",
    .summary = "Exempt this connection from being closed by maxmemory-clients",
    .complexity = "O(1)",
    .group = "connection",
    .flags = COMMAND_ADMIN | COMMAND_LOADING | COMMAND_NO_PAUSE,
    .run = no_evict_run,
};
static const struct command client_no_touch = {
    .name = "NO-TOUCH",
    .syntax = "enabled=<ON | OFF>",
    .summary = "Accepted and shown in CLIENT LIST; keys have no access times",
    .complexity = "O(1)",
    .group = "connection",
    .flags = COMMAND_LOADING | COMMAND_NO_PAUSE,
    .run = no_touch_run,
};

/* ---- CLIENT HELP ---- */

static void help_run(struct call *call) {
    static const char *const lines[] = {
        "GETNAME",
        "    Return the name of the current connection.",
        "ID",
        "    Return the ID of the current connection.",
        "INFO",
        "    Return the current connection's line of CLIENT LIST.",
        "KILL <ip:port>",
        "    Close the connection made from <ip:port>.",
        "KILL <option> <value> [<option> <value> [...]]",
        "    Close connections for which all options hold:",
        "    * ADDR (<ip:port>|<unixsocket>:0), LADDR (<ip:port>|<unixsocket>:0)",
        "      Made from, or to, this address.",
        "    * ID <id>, TYPE (NORMAL|MASTER|REPLICA|PUBSUB), USER <username>",
        "    * MAXAGE <seconds>",
        "      Open for at least this long.",
        "    * SKIPME (YES|NO)",
        "      Skip the current connection (default: yes).",
        "LIST [TYPE (NORMAL|MASTER|REPLICA|PUBSUB)] [ID <id> [<id> ...]]",
        "    Return a line for every connection.",
        "NO-EVICT (ON|OFF)",
        "    Exempt the current connection when maxmemory-clients is exceeded.",
        "NO-TOUCH (ON|OFF)",
        "    Accepted; keys have no access times.",
        "PAUSE <timeout> [WRITE|ALL]",
        "    Delay all commands, or those that write, for <timeout> milliseconds.",
        "REPLY (ON|OFF|SKIP)",
        "    Control the replies sent to the current connection.",
        "SETINFO (LIB-NAME|LIB-VER) <value>",
        "    Set the name or version of the client library.",
        "SETNAME <name>",
        "    Name the current connection.",
        "UNPAUSE",
        "    End a pause.",
        NULL,
    };
    call_help(call, lines);
}

static const struct command client_help = {
    .name = "HELP",
    .summary = "What the subcommands do",
    .complexity = "O(1)",
    .group = "connection",
    .flags = COMMAND_LOADING | COMMAND_NO_PAUSE,
    .run = help_run,
};

static const struct command *const client_subcommands[] = {
    &client_getname, &client_help,     &client_id,       &client_info,  &client_kill,
    &client_list,    &client_no_evict, &client_no_touch, &client_pause, &client_reply,
    &client_setinfo, &client_setname,  &client_unpause,  NULL,
};
const struct command command_client = {
    .name = "CLIENT",
    .summary = "Connections: list, name, pause and close them",
    .complexity = "As the subcommand says",
    .group = "connection",
    .subcommands = client_subcommands,
};
