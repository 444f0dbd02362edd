/* CLIENT: the connections, as clients and operators see and control them.
 *
 * A kill only marks the session; the loop closes it before running any more of its requests. */
#include <stdio.h>

#include "server/dispatch/syntax.h"
#include "server/dispatch/waiting.h"
#include "server/replication/replication.h"
#include "server/sessions/tracking.h"

/* ---- one line of CLIENT LIST ---- */

/* Lines are written directly into the reply. So a long list is in memory only once, stops at the
 * client's output limit, and is not generated at all if replies are off. */
static void client_print_line(const struct call *call, const struct session *session) {
    session_print_line(session, command_last_name(session), call->server->clock.monotonic_ms,
                       call->reply->out);
}

static void info_run(struct call *call) {
    size_t mark = reply_verbatim_begin(call->reply);
    if (!reply_is_lost(call->reply)) {
        client_print_line(call, call->session);
    }
    reply_verbatim_end(call->reply, mark);
}

static const struct command client_info = {
    .name = "INFO",
    .reply = "s",
    .summary = "This connection's line of CLIENT LIST",
    .flags = COMMAND_LOADING | COMMAND_NO_PAUSE,
    .run = info_run,
};

/* ---- CLIENT LIST ---- */

/* Types of clients. (Redis counts monitors as replicas, which would hide them from anyone listing
 * normal clients.) */
enum client_type {
    CLIENT_ANY,
    CLIENT_NORMAL,
    CLIENT_PUBSUB,
    CLIENT_REPLICA,
    CLIENT_MASTER, /* the link to it is no client: there are none */
};

static bool client_has_type(const struct session *session, enum client_type type) {
    return type == CLIENT_ANY || type == (session_is_replica(session)      ? CLIENT_REPLICA
                                          : session_is_subscriber(session) ? CLIENT_PUBSUB
                                                                           : CLIENT_NORMAL);
}

static bool client_parse_type(const struct call *call, struct bytes word, enum client_type *type) {
    static const struct {
        const char *word;
        enum client_type type;
    } types[] = {
        {"NORMAL", CLIENT_NORMAL}, {"PUBSUB", CLIENT_PUBSUB}, {"REPLICA", CLIENT_REPLICA},
        {"SLAVE", CLIENT_REPLICA}, {"MASTER", CLIENT_MASTER},
    };
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (bytes_is(word, types[i].word)) {
            *type = types[i].type;
            return true;
        }
    }
    return call_refuse_format(call, "ERR Unknown client type '%.*s'", bytes_shown_size(word, 128),
                              word.at);
}

/* What CLIENT LIST is asked for. */
struct client_filter {
    struct bytes type; /* at NULL: all */
    struct option_values ids;
};

static const struct binding list_bindings[] = {
    {BIND("TYPE", struct client_filter, type), .repeat = BINDING_ONCE},
    {BIND("ID", struct client_filter, ids)},
    {0},
};

static void client_list_ids(const struct call *call, const struct option_values *ids) {
    int64_t id;
    for (uint32_t i = 0; i < ids->count; i++) {
        if (!bytes_parse_i64(ids->at[i], &id)) {
            reply_error(call->reply, "ERR Invalid client ID");
            return;
        }
    }
    call->server->sessions.list_count++;
    size_t mark = reply_verbatim_begin(call->reply);
    for (uint32_t i = 0; i < ids->count && !reply_is_lost(call->reply); i++) {
        bool is_number = bytes_parse_i64(ids->at[i], &id);
        CHECK(is_number);
        struct session *session = server_find_session(call->server, (uint64_t)id);
        if (session == NULL) {
            continue;
        }
        /* The line of a repeated id is copied: generating one takes some microseconds, and a request has room for a
         * million ids. */
        if (session->line.list == call->server->sessions.list_count) {
            reply_repeat(call->reply, session->line.begin, session->line.size);
            continue;
        }
        struct buffer *out = call->reply->out;
        session->line.list = call->server->sessions.list_count;
        session->line.begin = out->size;
        client_print_line(call, session);
        session->line.size = out->size - session->line.begin;
    }
    reply_verbatim_end(call->reply, mark);
}

static void list_run(struct call *call) {
    struct client_filter filter = {.type = {.at = NULL}};
    enum client_type type = CLIENT_ANY;
    if (!syntax_read(call, &filter)) {
        return;
    }
    if (filter.ids.at != NULL && filter.type.at != NULL) {
        call_syntax_error(call);
    } else if (filter.ids.at != NULL) {
        client_list_ids(call, &filter.ids);
    } else if (filter.type.at == NULL || client_parse_type(call, filter.type, &type)) {
        size_t mark = reply_verbatim_begin(call->reply);
        const struct session *session = type != CLIENT_MASTER ? call->server->sessions.first : NULL;
        for (; session != NULL && !reply_is_lost(call->reply); session = session->next) {
            if (client_has_type(session, type)) {
                client_print_line(call, session);
            }
        }
        reply_verbatim_end(call->reply, mark);
    }
}

static const struct command client_list = {
    .name = "LIST",
    .syntax = "client-type=[TYPE <NORMAL | MASTER | REPLICA | PUBSUB>] [ID client-id:integer...]",
    .bindings = list_bindings,
    .reply = "s",
    .summary = "One line for every connection",
    .complexity = "O(n) in the connections",
    .flags = COMMAND_ADMIN | COMMAND_LOADING | COMMAND_NO_PAUSE,
    .run = list_run,
};

/* ---- CLIENT KILL ---- */

struct kill_filter {
    int64_t id;                                    /* 0: any */
    struct bytes address_text, local_address_text; /* at NULL: any */
    enum client_type type;
    const struct acl_user *user; /* NULL: any */
    bool is_me_spared;
    int64_t age_s_min; /* 0: any */
};

static bool client_read_kill_user(const struct call *call, uint32_t index, void *target) {
    struct bytes name = call_arg(call, index);
    const struct acl_user **user = &((struct kill_filter *)target)->user;
    *user = acl_users_find(&call->server->acl.users, name);
    return *user != NULL || call_refuse_format(call, "ERR No such user '%.*s'",
                                               bytes_shown_size(name, 128), name.at);
}

static bool client_read_kill_id(const struct call *call, uint32_t index, void *target) {
    int64_t *id = &((struct kill_filter *)target)->id;
    return (bytes_parse_i64(call_arg(call, index), id) && *id >= 1) ||
           call_refuse(call, "ERR client-id should be greater than 0");
}

static bool client_read_kill_age(const struct call *call, uint32_t index, void *target) {
    int64_t *age_s = &((struct kill_filter *)target)->age_s_min;
    if (!bytes_parse_i64(call_arg(call, index), age_s)) {
        return call_refuse(call, "ERR maxage is not an integer or out of range");
    }
    return *age_s >= 1 || call_refuse(call, "ERR maxage should be greater than 0");
}

static bool client_read_kill_skipme(const struct call *call, uint32_t index, void *target) {
    bool *is_me_spared = &((struct kill_filter *)target)->is_me_spared;
    *is_me_spared = call_arg_is(call, index, "YES");
    return *is_me_spared || call_arg_is(call, index, "NO") || call_syntax_error(call);
}

static bool client_read_kill_type(const struct call *call, uint32_t index, void *target) {
    return client_parse_type(call, call_arg(call, index), &((struct kill_filter *)target)->type);
}

static const struct binding kill_bindings[] = {
    {"ID", .read = client_read_kill_id},
    {"TYPE", .read = client_read_kill_type},
    {"USER", .read = client_read_kill_user},
    {BIND("ADDR", struct kill_filter, address_text)},
    {BIND("LADDR", struct kill_filter, local_address_text)},
    {"SKIPME", .read = client_read_kill_skipme},
    {"MAXAGE", .read = client_read_kill_age},
    {0},
};

static bool client_has_address(const char *address, struct bytes wanted) {
    return wanted.at == NULL || bytes_equal(wanted, bytes_from_text(address));
}

/* Returns the number killed, 0 or 1. The calling client gets its reply before it is closed. */
static int64_t client_kill_if_matching(const struct call *call, const struct kill_filter *filter,
                                       struct session *session) {
    int64_t age_s = (call->server->clock.monotonic_ms - session->created_at_ms) / 1000;
    bool is_meant = !session->is_killed && client_has_type(session, filter->type) &&
                    age_s >= filter->age_s_min &&
                    (filter->id == 0 || (uint64_t)filter->id == session->id) &&
                    (filter->user == NULL || filter->user == session->user) &&
                    client_has_address(session->address, filter->address_text) &&
                    client_has_address(session->local_address, filter->local_address_text) &&
                    !(filter->is_me_spared && session == call->session);
    if (!is_meant) {
        return 0;
    }
    if (session == call->session) {
        session->is_close_after_reply = true;
    } else {
        server_kill_session(call->server, session);
    }
    return 1;
}

static int64_t client_kill_matching(const struct call *call, const struct kill_filter *filter) {
    if (filter->type == CLIENT_MASTER) {
        bool has_others = filter->id != 0 || filter->address_text.at != NULL ||
                          filter->local_address_text.at != NULL || filter->user != NULL ||
                          filter->age_s_min != 0;
        /* The link to the master is made anew. */
        const struct replication *replication = &call->server->replication;
        bool is_there = !has_others && replication_is_replica(replication) &&
                        replication->link > REPLICATION_LINK_CONNECT;
        if (is_there) {
            replicator_drop_link(replication->replicator);
        }
        return is_there;
    }
    if (filter->id != 0) {
        struct session *session = server_find_session(call->server, (uint64_t)filter->id);
        return session != NULL ? client_kill_if_matching(call, filter, session) : 0;
    }
    int64_t count = 0;
    for (struct session *session = call->server->sessions.first; session != NULL;
         session = session->next) {
        count += client_kill_if_matching(call, filter, session);
    }
    return count;
}

static void kill_run(struct call *call) {
    if (call->request->count == 3) {
        struct kill_filter filter = {.address_text = call_arg(call, 2)};
        if (client_kill_matching(call, &filter) == 0) {
            reply_error(call->reply, "ERR No such client");
        } else {
            reply_ok(call->reply);
        }
        return;
    }
    struct kill_filter filter = {.is_me_spared = true};
    if (syntax_read(call, &filter)) {
        reply_integer(call->reply, client_kill_matching(call, &filter));
    }
}

static const struct command client_kill = {
    .name = "KILL",
    .syntax = "filter=<old-format | new-format=<[ID client-id:integer] | client-type=[TYPE <NORMAL "
              "| MASTER | REPLICA | PUBSUB>] | [USER username] | [ADDR addr] | [LADDR laddr] | "
              "[SKIPME skipme] | [MAXAGE maxage:integer]>...>",
    .bindings = kill_bindings,
    .reply = "<OK>|i",
    .summary = "Close connections, by address or by filters that must all hold",
    .complexity = "O(n) in the connections",
    .flags = COMMAND_ADMIN | COMMAND_LOADING | COMMAND_NO_PAUSE,
    .run = kill_run,
};

/* ---- names ---- */

static void id_run(struct call *call) {
    reply_integer(call->reply, (int64_t)call->session->id);
}

static const struct command client_id = {
    .name = "ID",
    .reply = "i",
    .summary = "This connection's ID; IDs only increase",
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
    .reply = "s?",
    .summary = "This connection's name",
    .flags = COMMAND_LOADING | COMMAND_NO_PAUSE,
    .run = getname_run,
};

static void client_set_text(const struct call *call, char **name, struct bytes text) {
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
    client_set_text(call, &call->session->name, call_arg(call, 2));
}

static const struct command client_setname = {
    .name = "SETNAME",
    .syntax = "connection-name",
    .reply = "<OK>",
    .summary = "Name this connection",
    .flags = COMMAND_LOADING | COMMAND_NO_PAUSE,
    .run = setname_run,
};

static void setinfo_run(struct call *call) {
    struct bytes option = call_arg(call, 2);
    int shown_size = bytes_shown_size(option, 128);
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
    client_set_text(call, name, call_arg(call, 3));
}

static const struct command client_setinfo = {
    .name = "SETINFO",
    .syntax = "attr=<LIB-NAME libname | LIB-VER libver>",
    .reply = "<OK>",
    .summary = "Set the client library's name or version",
    .flags = COMMAND_LOADING | COMMAND_NO_PAUSE,
    .run = setinfo_run,
};

/* ---- CLIENT REPLY ---- */

/* The only argument of a command is one of some words: its number. */
struct chosen {
    unsigned number;
};
static const struct binding reply_bindings[] = {{BIND("action", struct chosen, number)}, {0}};

static void reply_run(struct call *call) {
    enum { ON, OFF, SKIP };
    struct session *session = call->session;
    struct chosen chosen;
    if (!syntax_read(call, &chosen)) {
        return;
    }
    if (chosen.number == ON) {
        session->reply_mode = SESSION_REPLY_ON;
        call->reply->is_silent = false;
        reply_ok(call->reply);
    } else if (chosen.number == OFF) {
        session->reply_mode = SESSION_REPLY_OFF;
    } else if (session->reply_mode != SESSION_REPLY_OFF) {
        session->reply_mode = SESSION_REPLY_SKIP_NEXT;
    }
}

static const struct command client_reply = {
    .name = "REPLY",
    .syntax = "action=<ON | OFF | SKIP>",
    .bindings = reply_bindings,
    .reply = "<OK>",
    .summary = "Turn this connection's replies on or off, or skip the next one",
    .flags = COMMAND_LOADING | COMMAND_NO_PAUSE,
    .run = reply_run,
};

/* ---- CLIENT PAUSE ---- */

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
    int64_t timeout_ms, until_ms;
    if (!bytes_parse_i64(call_arg(call, 2), &timeout_ms)) {
        reply_error(call->reply, "ERR timeout is not an integer or out of range");
        return;
    }
    if (timeout_ms < 0) {
        reply_error(call->reply, "ERR timeout is negative");
        return;
    }
    if (__builtin_add_overflow(server->clock.monotonic_ms, timeout_ms, &until_ms)) {
        reply_error(call->reply, "ERR timeout is out of range");
        return;
    }
    if (server->client_pause.kind == SERVER_PAUSE_NONE ||
        server->client_pause.until_ms < until_ms) {
        server->client_pause.until_ms = until_ms;
    }
    if (pause > server->client_pause.kind) {
        server->client_pause.kind = pause;
    }
    reply_ok(call->reply);
}

static const struct command client_pause = {
    .name = "PAUSE",
    .syntax = "timeout:integer mode=[WRITE | ALL]",
    .reply = "<OK>",
    .summary = "Delay writes for some milliseconds, or all commands but AUTH, HELLO, SELECT, "
               "RESET, QUIT and CLIENT; meanwhile nothing expires and no period ends",
    .flags = COMMAND_ADMIN | COMMAND_LOADING | COMMAND_NO_PAUSE,
    .run = pause_run,
};

static void unpause_run(struct call *call) {
    server_end_pause(call->server);
    reply_ok(call->reply);
}

static const struct command client_unpause = {
    .name = "UNPAUSE",
    .reply = "<OK>",
    .summary = "End CLIENT PAUSE",
    .flags = COMMAND_ADMIN | COMMAND_LOADING | COMMAND_NO_PAUSE,
    .run = unpause_run,
};

/* ---- CLIENT UNBLOCK ---- */

static void unblock_run(struct call *call) {
    int64_t id;
    bool is_error = false;
    if (call->request->count > 4) {
        reply_error(call->reply, "ERR unknown subcommand or wrong number of arguments for "
                                 "'unblock'. Try CLIENT HELP.");
        return;
    }
    if (call->request->count == 4) {
        is_error = call_arg_is(call, 3, "ERROR");
        if (!is_error && !call_arg_is(call, 3, "TIMEOUT")) {
            reply_error(call->reply, "ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR");
            return;
        }
    }
    if (call_parse_integer(call, call_arg(call, 2), &id)) {
        struct session *session = server_find_session(call->server, (uint64_t)id);
        bool is_unblocked = session != NULL && waiting_unblock(call->server, session, is_error);
        reply_integer(call->reply, is_unblocked);
    }
}

static const struct command client_unblock = {
    .name = "UNBLOCK",
    .syntax = "client-id:integer unblock-type=[TIMEOUT | ERROR]",
    .reply = "b",
    .summary = "End the waiting of a client, as if its time were over or with an error",
    .flags = COMMAND_ADMIN | COMMAND_LOADING | COMMAND_NO_PAUSE,
    .run = unblock_run,
};

/* ---- switches ---- */

static const struct binding switch_bindings[] = {{BIND("enabled", struct chosen, number)}, {0}};
static const struct binding numbers_bindings[] = {{BIND("form", struct chosen, number)}, {0}};

/* The first of the two words means true. */
static void client_set_switch(const struct call *call, bool *is_on) {
    struct chosen chosen;
    if (syntax_read(call, &chosen)) {
        *is_on = chosen.number == 0;
        reply_ok(call->reply);
    }
}

static void no_evict_run(struct call *call) {
    client_set_switch(call, &call->session->is_no_evict);
}

static void no_touch_run(struct call *call) {
    client_set_switch(call, &call->session->is_no_touch);
}

static const struct command client_no_evict = {
    .name = "NO-EVICT",
    .syntax = "enabled=<ON | OFF>",
    .bindings = switch_bindings,
    .reply = "<OK>",
    .summary = "Exempt this connection from being closed by maxmemory-clients",
    .flags = COMMAND_ADMIN | COMMAND_LOADING | COMMAND_NO_PAUSE,
    .run = no_evict_run,
};
static const struct command client_no_touch = {
    .name = "NO-TOUCH",
    .syntax = "enabled=<ON | OFF>",
    .bindings = switch_bindings,
    .reply = "<OK>",
    .summary = "Accepted and shown in CLIENT LIST; keys have no access times",
    .flags = COMMAND_LOADING | COMMAND_NO_PAUSE,
    .run = no_touch_run,
};

static void numbers_run(struct call *call) {
    client_set_switch(call, &call->session->has_strings);
    session_shape_reply(call->session, call->reply);
}

static const struct command client_numbers = {
    .name = "NUMBERS",
    .syntax = "form=<STRINGS | NATIVE>",
    .bindings = numbers_bindings,
    .reply = "<OK>",
    .summary = "How numbers that may exceed 2^53 are sent to this connection",
    .flags = COMMAND_LOADING | COMMAND_NO_PAUSE,
    .run = numbers_run,
};

/* ---- CLIENT TRACKING ---- */

struct client_tracking_request {
    unsigned status;
    int64_t redirect; /* 0: none */
    struct option_uses prefixes;
    bool is_broadcast, is_opt_in, is_opt_out, is_no_loop;
};

static bool client_read_redirect(const struct call *call, uint32_t index, void *target) {
    int64_t *redirect = &((struct client_tracking_request *)target)->redirect;
    if (*redirect != 0) {
        return call_refuse(call, "ERR A client can only redirect to a single other client");
    }
    if (!call_parse_integer(call, call_arg(call, index), redirect)) {
        return false;
    }
    return (*redirect > 0 && server_find_session(call->server, (uint64_t)*redirect) != NULL) ||
           call_refuse(call, "ERR The client ID you want redirect to does not exist");
}

static const struct binding tracking_bindings[] = {
    {BIND("status", struct client_tracking_request, status)},
    {"REDIRECT", .read = client_read_redirect},
    {BIND("PREFIX", struct client_tracking_request, prefixes)},
    {BIND("BCAST", struct client_tracking_request, is_broadcast)},
    {BIND("OPTIN", struct client_tracking_request, is_opt_in)},
    {BIND("OPTOUT", struct client_tracking_request, is_opt_out)},
    {BIND("NOLOOP", struct client_tracking_request, is_no_loop)},
    {0},
};

/* Do the options fit each other, and what the client has? false: the error was replied. */
static bool client_check_tracking(const struct call *call,
                                  const struct client_tracking_request *asked) {
    const struct session_tracking *now = &call->session->tracking;
    if (!asked->is_broadcast && asked->prefixes.count > 0) {
        return call_refuse(call, "ERR PREFIX option requires BCAST mode to be enabled");
    }
    if (asked->prefixes.count > TRACKING_PREFIXES_MAX) {
        return call_refuse_format(call, "ERR at most %d prefixes", (int)TRACKING_PREFIXES_MAX);
    }
    if (now->is_on && now->is_broadcast != asked->is_broadcast) {
        return call_refuse(call, "ERR You can't switch BCAST mode on/off before disabling tracking "
                                 "for this client, and then re-enabling it with a different mode.");
    }
    if (asked->is_broadcast && (asked->is_opt_in || asked->is_opt_out)) {
        return call_refuse(call, "ERR OPTIN and OPTOUT are not compatible with BCAST");
    }
    if (asked->is_opt_in && asked->is_opt_out) {
        return call_refuse(call, "ERR You can't specify both OPTIN mode and OPTOUT mode");
    }
    if ((asked->is_opt_in && now->is_opt_out) || (asked->is_opt_out && now->is_opt_in)) {
        return call_refuse(call,
                           "ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for "
                           "this client, and then re-enabling it with a different mode.");
    }
    return true;
}

/* A key that begins with both would be told twice. */
static bool client_prefixes_overlap(const struct call *call, struct bytes new, struct bytes old,
                                    const char *which) {
    size_t size = new.size < old.size ? new.size : old.size;
    if (size > 0 && memcmp(new.at, old.at, size) != 0) {
        return false;
    }
    return !call_refuse_format(call,
                               "ERR Prefix '%.*s' overlaps with %s prefix '%.*s'. Prefixes for a "
                               "single client must not overlap.",
                               bytes_shown_size(new, 128), new.at, which,
                               bytes_shown_size(old, 128), old.at);
}

/* Read them. false: the error was replied. */
static bool client_read_prefixes(const struct call *call, struct option_uses uses,
                                 struct bytes *prefixes) {
    const struct subscription_list *own = &call->session->tracking.prefixes;
    uint32_t index, count = 0;
    if (own->counts[SUBSCRIPTION_PREFIX] + uses.count > TRACKING_PREFIXES_MAX) {
        return call_refuse_format(call, "ERR at most %d prefixes", (int)TRACKING_PREFIXES_MAX);
    }
    while (syntax_take_use(call, &uses, &index) != NULL) {
        prefixes[count++] = call_arg(call, index + 1);
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct subscription *old = subscription_first(own, SUBSCRIPTION_PREFIX);
        for (; old != NULL; old = subscription_next(old)) {
            if (client_prefixes_overlap(call, prefixes[i], subscription_name(old), "an existing")) {
                return false;
            }
        }
        for (uint32_t j = i + 1; j < count; j++) {
            if (client_prefixes_overlap(call, prefixes[i], prefixes[j], "another provided")) {
                return false;
            }
        }
    }
    return true;
}

static void tracking_run(struct call *call) {
    enum { ON, OFF };
    struct bytes prefixes[TRACKING_PREFIXES_MAX];
    struct client_tracking_request asked = {.redirect = 0};
    if (!syntax_read(call, &asked)) {
        return;
    }
    if (asked.status == OFF) {
        tracking_end(call->server, call->session);
        reply_ok(call->reply);
        return;
    }
    if (!client_check_tracking(call, &asked) ||
        !client_read_prefixes(call, asked.prefixes, prefixes)) {
        return;
    }
    const struct tracking_options options = {
        .is_broadcast = asked.is_broadcast,
        .is_opt_in = asked.is_opt_in,
        .is_opt_out = asked.is_opt_out,
        .is_no_loop = asked.is_no_loop,
        .redirect = (uint64_t)asked.redirect,
        .prefixes = prefixes,
        .prefix_count = asked.prefixes.count,
    };
    if (tracking_begin(call->server, call->session, &options)) {
        reply_ok(call->reply);
    } else {
        call_out_of_memory(call);
    }
}

static const struct command client_tracking = {
    .name = "TRACKING",
    .syntax = "status=<ON | OFF> [REDIRECT client-id:integer] [PREFIX prefix]... [BCAST] [OPTIN] "
              "[OPTOUT] [NOLOOP]",
    .bindings = tracking_bindings,
    .reply = "<OK>",
    .summary = "Tell this connection, or the one after REDIRECT, when a key that it has read "
               "changes: by the push message invalidate, or in RESP2 by a message of the channel "
               "__redis__:invalidate. With BCAST: when any key changes that begins with a PREFIX",
    .complexity = "O(p) in the prefixes; then O(1) for each key that is read, and for each client "
                  "that is told",
    .flags = COMMAND_LOADING | COMMAND_NO_PAUSE,
    .run = tracking_run,
};

static const struct binding caching_bindings[] = {{BIND("mode", struct chosen, number)}, {0}};

static void caching_run(struct call *call) {
    enum { YES, NO };
    struct session_tracking *tracking = &call->session->tracking;
    struct chosen chosen;
    if (!syntax_read(call, &chosen)) {
        return;
    }
    if (!tracking->is_on) {
        call_refuse(call, "ERR CLIENT CACHING can be called only when the client is in tracking "
                          "mode with OPTIN or OPTOUT mode enabled");
    } else if (chosen.number == YES && !tracking->is_opt_in) {
        call_refuse(call,
                    "ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.");
    } else if (chosen.number == NO && !tracking->is_opt_out) {
        call_refuse(call,
                    "ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.");
    } else {
        tracking->is_caching = true;
        reply_ok(call->reply);
    }
}

static const struct command client_caching = {
    .name = "CACHING",
    .syntax = "mode=<YES | NO>",
    .bindings = caching_bindings,
    .reply = "<OK>",
    .summary = "With TRACKING OPTIN: the next command, or transaction, is tracked (YES); with "
               "OPTOUT: it is not (NO)",
    .flags = COMMAND_LOADING | COMMAND_NO_PAUSE,
    .run = caching_run,
};

static int64_t client_redirect_of(const struct session_tracking *tracking) {
    return tracking->is_on ? (int64_t)tracking->redirect : -1;
}

static void getredir_run(struct call *call) {
    reply_integer(call->reply, client_redirect_of(&call->session->tracking));
}

static const struct command client_getredir = {
    .name = "GETREDIR",
    .reply = "i",
    .summary = "The ID of the connection that is told for this one (TRACKING ... REDIRECT); 0: "
               "this one, -1: it does not track",
    .flags = COMMAND_LOADING | COMMAND_NO_PAUSE,
    .run = getredir_run,
};

static void trackinginfo_run(struct call *call) {
    const struct session_tracking *tracking = &call->session->tracking;
    const struct {
        bool is_set;
        const char *flag;
    } flags[] = {
        {!tracking->is_on, "off"},
        {tracking->is_on, "on"},
        {tracking->is_broadcast, "bcast"},
        {tracking->is_opt_in, "optin"},
        {tracking->is_opt_in && tracking->is_caching, "caching-yes"},
        {tracking->is_opt_out, "optout"},
        {tracking->is_opt_out && tracking->is_caching, "caching-no"},
        {tracking->is_no_loop, "noloop"},
        {tracking->is_broken, "broken_redirect"},
    };
    uint64_t set_count = 0;
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        set_count += flags[i].is_set;
    }
    reply_map(call->reply, 3);
    reply_bulk_text(call->reply, "flags");
    reply_set(call->reply, set_count);
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        if (flags[i].is_set) {
            reply_bulk_text(call->reply, flags[i].flag);
        }
    }
    reply_named_integer(call->reply, "redirect", client_redirect_of(tracking));
    reply_bulk_text(call->reply, "prefixes");
    reply_array(call->reply, tracking->prefixes.counts[SUBSCRIPTION_PREFIX]);
    const struct subscription *prefix =
        subscription_first(&tracking->prefixes, SUBSCRIPTION_PREFIX);
    for (; prefix != NULL; prefix = subscription_next(prefix)) {
        reply_bulk(call->reply, subscription_name(prefix));
    }
}

static const struct command client_trackinginfo = {
    .name = "TRACKINGINFO",
    .reply = "(flags:[s] redirect:i prefixes:[s])",
    .summary = "How this connection tracks: flags (on, off, bcast, optin, optout, noloop, "
               "caching-yes, caching-no, broken_redirect), redirection, and prefixes",
    .complexity = "O(p) in the prefixes",
    .flags = COMMAND_LOADING | COMMAND_NO_PAUSE,
    .run = trackinginfo_run,
};

/* ---- CLIENT HELP ---- */

static const struct command client_help = CALL_HELP(COMMAND_LOADING | COMMAND_NO_PAUSE);

const struct command command_client = {
    .name = "CLIENT",
    .summary = "Connections: list, name, pause and close them",
    .complexity = "As the subcommand says",
    .subcommands = COMMAND_LIST(&client_caching, &client_getname, &client_getredir, &client_help,
                                &client_id, &client_info, &client_kill, &client_list,
                                &client_no_evict, &client_no_touch, &client_numbers, &client_pause,
                                &client_reply, &client_setinfo, &client_setname, &client_tracking,
                                &client_trackinginfo, &client_unblock, &client_unpause),
};
