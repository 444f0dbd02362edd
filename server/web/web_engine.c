/* The engine's side: users, and their commands. See web_query.h.
 *
 * A session lives as long as one question: it is in no list of the server's, so it cannot wait, subscribe or be killed,
 * and the commands that the page sends do none of that. */
#include <stdio.h>

#include "server/acl/acl_check.h"
#include "server/acl/acl_rules.h"
#include "server/acl/player.h"
#include "server/dispatch/execute.h"
#include "server/dispatch/login.h"
#include "server/dispatch/syntax.h"
#include "server/dispatch/waiting.h"
#include "server/durability/persistence.h"
#include "server/sessions/job.h"
#include "server/web/web_query.h"

static const char *const public_options[] = {
    "on",         "resetchannels", "-@all",        "+lb.range",       "+lb.get",
    "+lb.around", "+lb.hist",      "+lb.quantile", "+lb.info",        "+lb.list",
    "+lb.count",  "+lb.rating",    "+zscan",       "+lb.league|info",
};

static bool web_engine_apply(struct acl_user *user, struct bytes rule, char *error) {
    enum acl_status status = acl_rules_apply(user, rule, false);
    if (status != ACL_OK) {
        snprintf(error, HTTP_ERROR_MAX, "web-public: %s: '%s'", acl_rules_status_text(status),
                 bytes_show(rule).text);
    }
    return status == ACL_OK;
}

static bool web_engine_add_patterns(struct acl_user *user, const char *patterns, char *error) {
    char rule[ACL_TEXT_MAX + 8];
    while (*(patterns += strspn(patterns, " ")) != '\0') {
        size_t size = strcspn(patterns, " ");
        int printed = snprintf(rule, sizeof rule, "%%R~%.*s", (int)size, patterns);
        if (printed >= (int)sizeof rule) {
            snprintf(error, HTTP_ERROR_MAX, "web-public: a pattern is too long: at most %d bytes",
                     ACL_TEXT_MAX);
            return false;
        }
        bool is_all = size == 1 && patterns[0] == '*';
        if (is_all) {
            return web_engine_apply(user, BYTES("%R~*"), error);
        }
        if (!web_engine_apply(user, (struct bytes){.at = rule, .size = (size_t)printed}, error)) {
            return false;
        }
        patterns += size;
    }
    return true;
}

bool web_engine_init(struct web_engine *engine, struct server *server, char *error) {
    const char *patterns = server->settings.web_public;
    *engine = (struct web_engine){.server = server,
                                  .info = command_find_original(BYTES("info")),
                                  .slowlog_get = command_find_original(BYTES("slowlog|get"))};
    if (patterns == NULL || patterns[strspn(patterns, " ")] == '\0') {
        return true;
    }
    struct acl_user *user = acl_user_create(BYTES("(web-public)"), false);
    bool is_fine = user != NULL;
    snprintf(error, HTTP_ERROR_MAX, "web-public: out of memory");
    for (size_t i = 0; is_fine && i < sizeof public_options / sizeof public_options[0]; i++) {
        is_fine = web_engine_apply(user, bytes_from_text(public_options[i]), error);
    }
    if (!is_fine || !web_engine_add_patterns(user, patterns, error) || !acl_user_finish(user)) {
        if (user != NULL) {
            acl_user_destroy(user);
        }
        return false;
    }
    engine->public_user = user;
    return true;
}

void web_engine_deinit(struct web_engine *engine) {
    if (engine->public_user != NULL) {
        acl_user_destroy(engine->public_user);
    }
}

/* NULL: nobody; the verdict says why. */
static struct acl_user *web_engine_find_user(const struct web_engine *engine,
                                             struct web_query *query) {
    struct server *server = engine->server;
    const struct web_identity *identity = &query->identity;
    if (identity->kind == WEB_SELF) {
        return server->acl.users.default_user;
    }
    if (identity->kind == WEB_USER && identity->is_exposed && server->settings.protected_mode) {
        query->verdict = WEB_WITHOUT_TLS;
        return NULL;
    }
    if (identity->kind == WEB_USER) {
        struct acl_users *users = &server->acl.users;
        bool is_by_token = identity->is_token && !identity->is_player;
        struct acl_user *user = is_by_token
                                    ? acl_tokens_find(&users->tokens, identity->digest)
                                    : acl_users_find(users, bytes_from_text(identity->user));
        query->fault = identity->is_player ? player_find_fault(server, &identity->player) : NULL;
        user = user != NULL && user->is_on ? user : NULL;
        if (identity->is_player && query->fault == NULL && user == NULL) {
            query->fault = PLAYER_NO_USER;
        }
        bool is_right = query->fault == NULL && user != NULL &&
                        (identity->is_token || acl_user_has_password(user, identity->digest));
        query->verdict = WEB_LOGIN_NEEDED;
        query->user.is_known = true;
        return is_right ? user : NULL;
    }
    if (!server_has_password(server) && (identity->is_local || !server->settings.protected_mode)) {
        query->user.is_known = true;
        return server->acl.users.default_user;
    }
    query->user.is_public = engine->public_user != NULL;
    query->verdict = server_has_password(server) ? WEB_LOGIN_NEEDED : WEB_NOT_FROM_THERE;
    return engine->public_user;
}

static bool web_engine_may_run(const struct acl_user *user, uint32_t number,
                               const struct bytes *words, uint32_t count) {
    const struct request request = {.args = words, .count = count};
    uint32_t position;
    return acl_check(user, number, &request, &position) == ACL_ALLOWED;
}

static void web_engine_describe_user(const struct web_engine *engine, const struct acl_user *user,
                                     struct web_query *query) {
    const struct bytes info[] = {BYTES("INFO")};
    const struct bytes slowlog[] = {BYTES("SLOWLOG"), BYTES("GET")};
    query->user.may_see_server =
        query->identity.kind == WEB_SELF ||
        (!query->user.is_public && web_engine_may_run(user, engine->info, info, 1));
    query->user.may_see_slowlog =
        !query->user.is_public && web_engine_may_run(user, engine->slowlog_get, slowlog, 2);
    snprintf(query->user.shown, sizeof query->user.shown, "%.*s", (int)user->name.size,
             user->name.at);
}

enum http_verdict web_engine_check_login(void *context, struct http_login *login) {
    struct web_engine *engine = context;
    struct acl_user *user;
    server_update_time(engine->server);
    if (engine->server->settings.protected_mode && !login->is_local && !login->is_secure) {
        return HTTP_LOGIN_REFUSED;
    }
    enum login_outcome outcome =
        login->is_player
            ? login_try_player_address(engine->server, login->address, &login->player,
                                       login->player_status, &user, &login->wrong, &login->retry_ms)
        : login->is_token
            ? login_try_token(engine->server, login->address, bytes_from_text(login->password),
                              &user, &login->retry_ms)
            : login_try_address(engine->server, login->address, bytes_from_text(login->user),
                                bytes_from_text(login->password), &user, &login->retry_ms);
    if (outcome == LOGIN_RIGHT && user->name.size >= sizeof login->user) {
        return HTTP_LOGIN_NEEDED; /* as with a password: no name of HTTP is as long */
    }
    if (outcome == LOGIN_RIGHT) {
        memcpy(login->user, user->name.at, user->name.size);
        login->user[user->name.size] = '\0';
    }
    return outcome == LOGIN_RIGHT   ? HTTP_LOGIN_OK
           : outcome == LOGIN_WRONG ? HTTP_LOGIN_NEEDED
                                    : HTTP_LOGIN_TOO_SOON;
}

/* A pattern of keys that the user may read: the nth, over all selectors. Sets how many there are. */
static void web_engine_choose_pattern(const struct acl_user *user, struct web_query *query) {
    unsigned count = 0;
    struct bytes chosen = BYTES("*");
    for (uint32_t i = 0; i < user->selector_count; i++) {
        const struct acl_selector *selector = user->selectors[i];
        if (selector->has_all_keys) {
            query->scan.pattern_count = 1;
            return;
        }
        for (uint32_t k = 0; k < selector->keys.list.count; k++) {
            const struct acl_text *pattern = &selector->keys.list.at[k];
            if ((pattern->value & ACL_READ) != 0 && count++ == query->scan.part) {
                chosen = pattern->text;
            }
        }
    }
    query->scan.pattern_count = count;
    if (chosen.size <= sizeof query->pattern_text) {
        memcpy(query->pattern_text, chosen.at, chosen.size);
        query->words[query->scan.pattern_word] =
            (struct bytes){.at = query->pattern_text, .size = chosen.size};
    }
}

/* How long the answer is the same if nothing is told to change, and nothing but a key's change can outdate it. */
static int64_t web_engine_fresh_ms(const struct server *server, const struct web_query *query) {
    const struct reads *reads = query->reads;
    const struct replication *replication = &server->replication;
    int64_t now_ms = server->clock.now_ms;
    bool waits_for_lease = server->persistence != NULL && sync_holds_answers(&replication->sync);
    bool may_refuse =
        replication_is_replica(replication) && !server->settings.replica_serve_stale_data;
    if (waits_for_lease || may_refuse || watch_count(&reads->list) == 0) {
        return 0;
    }
    int64_t left_ms = reads->due_ms == REGISTRY_NO_EXPIRY ? WEB_KEPT_MS : reads->due_ms - now_ms;
    return left_ms < 0 ? 0 : left_ms < WEB_KEPT_MS ? left_ms : WEB_KEPT_MS;
}

static void web_engine_run_command(struct server *server, struct web_query *query, unsigned nth,
                                   struct session *session) {
    struct reply reply;
    uint32_t number = query->commands[nth].number;
    unsigned begin = nth > 0 ? query->commands[nth - 1].end : 0;
    const struct request request = {
        .args = &query->words[begin],
        .count = query->commands[nth].end - begin,
    };
    reply_init(&reply, &query->replies, 3);
    session_shape_reply(session, &reply);
    server->ahead = NULL;
    server->command_begin_ticks = clock_ticks();
    session->value_count = query->commands[nth].value_count;
    session->is_brief = query->commands[nth].is_brief;
    execute_request(server, session, number, &request, &reply);
    if (session->job !=
        NULL) { /* LB.BAN: what it says holds at once, and nobody waits for the rest */
        job_leave(server, session);
        reply_ok(&reply);
    }
    /* What it has read, but for hashes (lb_data.h). */
    struct request_keys keys = syntax_key_request_begin(number, &request);
    for (uint32_t at; query->reads != NULL && (at = syntax_key_request_next(&keys)) > 0;) {
        server_reads_note(server, query->reads, query->database, request.args[at]);
    }
    query->retry_s = reply.error_wait_s;
    query->commands[query->reply_count].cause = reply.error_cause;
    query->commands[query->reply_count++].reply_end = query->replies.size;
}

/* Take the cursor of the last reply for the next step. false: there is none, or it was the last step. */
static bool web_engine_take_cursor(struct web_query *query) {
    if (query->replies.is_broken || query->reply_count == WEB_COMMANDS_MAX) {
        return false;
    }
    struct value_reader reader = web_query_reply(query, query->reply_count - 1);
    struct value list = value_next(&reader);
    struct value cursor = {.kind = VALUE_NULL};
    if (list.kind == VALUE_LIST && list.count > 0) {
        cursor = value_next(&reader);
    }
    if (cursor.kind != VALUE_TEXT || cursor.text.size > sizeof query->cursor_text ||
        bytes_equal(cursor.text, BYTES("0"))) {
        return false;
    }
    memcpy(query->cursor_text, cursor.text.at, cursor.text.size);
    query->words[query->scan.cursor_word] =
        (struct bytes){.at = query->cursor_text, .size = cursor.text.size};
    return true;
}

static void web_engine_run_commands(const struct web_engine *engine, struct web_query *query,
                                    struct session *session) {
    enum { SCAN_NS = 200000 };
    uint64_t begin_ticks = clock_ticks();
    query->reply_count = 0;
    bool is_over = false;
    for (unsigned i = 0; i < query->command_count && !is_over; i++) {
        size_t begin = query->replies.size;
        struct web_command *command = &query->commands[i];
        struct session_once once = {
            .route = {.at = (const char *)query->write.route, .size = sizeof query->write.route},
            .fingerprint = {.at = (const char *)command->fingerprint,
                            .size = sizeof command->fingerprint},
        };
        session->once = command->has_id ? &once : NULL;
        web_engine_run_command(engine->server, query, i, session);
        session->once = NULL;
        command->is_repeated = once.is_repeated;
        is_over =
            query->route->writes && query->replies.size > begin && query->replies.at[begin] == '-';
    }
    while (query->scan.cursor_word > 0 && query->replies.size < query->scan.size_max &&
           clock_ticks_to_ns(clock_ticks() - begin_ticks) < SCAN_NS &&
           web_engine_take_cursor(query)) {
        web_engine_run_command(engine->server, query, 0, session);
    }
}

static bool web_engine_must_be_held(const struct web_engine *engine, struct web_query *query) {
    struct server *server = engine->server;
    bool sees_boards = false;
    for (unsigned i = 0; i < query->command_count; i++) {
        sees_boards |= waiting_sees_boards(command_by_index(query->commands[i].number));
    }
    bool has_changed = query->has_changed && server->persistence != NULL;
    if (!has_changed && (!sees_boards || !waiting_holds_readers(server))) {
        return false;
    }
    query->held_for = persistence_last_group(server->persistence);
    return query->held_for > waiting_free_group(server);
}

static void web_engine_execute(const struct web_engine *engine, struct web_query *query,
                               struct acl_user *user) {
    struct session session;
    session_init(&session, 0, engine->server->clock.monotonic_ms);
    session.protocol = 3;
    session.has_strings = true;
    session.database = query->database;
    session.is_no_touch = !query->route->writes;
    session.leaves_jobs = true;
    session.reads = query->reads;
    session.names = query->names.field.at != NULL ? &query->names : NULL;
    snprintf(session.address, sizeof session.address,
             strchr(query->address, ':') != NULL ? "[%s]:0" : "%s:0", query->address);
    server_set_user(engine->server, &session, user, true);
    if (query->identity.is_player) {
        session.player = &query->identity.player;
        server_refresh_rights(engine->server, &session);
    }
    if (query->scan.pattern_word > 0) {
        web_engine_choose_pattern(user, query);
    }
    uint64_t effects_before = engine->server->durability.effect_count;
    web_engine_run_commands(engine, query, &session);
    query->has_changed = engine->server->durability.effect_count != effects_before;
    if (query->reads != NULL) {
        const struct clock *clock = &engine->server->clock;
        query->fresh_ms = web_engine_fresh_ms(engine->server, query);
        int64_t left_us = query->fresh_ms * 1000 - (clock->now_us - clock->now_ms * 1000);
        query->fresh_until_ms = (clock->read_us + left_us) / 1000;
        query->reads_size = query->reads->list.keys.memory_size;
    }
    session.player = NULL; /* it is the question's */
    session_deinit(&session);
    if (query->figures != NULL && query->user.may_see_server) {
        figures_take(engine->server, query->figures);
    }
}

bool web_engine_answer(void *context, struct ask *ask) {
    struct web_engine *engine = context;
    struct web_query *query = (struct web_query *)ask;
    uint64_t begin_ticks = clock_ticks();
    server_update_time(engine->server);
    query->verdict = WEB_ALLOWED;
    query->user = (struct web_user){
        .can_login = server_has_password(engine->server) || engine->server->acl.users.count > 1,
    };
    struct acl_user *user = web_engine_find_user(engine, query);
    const struct replication *replication = &engine->server->replication;
    if (query->round == 0) {
        /* All only grow: the sum is another one when one of them is. */
        query->change_count = engine->server->durability.change_count + replication->epoch +
                              engine->server->reads_outdated_count;
        query->epoch = replication_answer_epoch(replication);
    }
    query->is_unchanged = false;
    if (user == NULL) {
        return true;
    }
    query->verdict = WEB_ALLOWED;
    if (!query->route->writes) {
        web_engine_describe_user(engine, user, query);
    }
    if (query->has_seen && query->round == 0 && query->figures == NULL &&
        query->seen_change_count == query->change_count) {
        query->is_unchanged = true;
        return true;
    }
    bool is_outdated = query->epoch != replication_answer_epoch(replication);
    if (is_outdated || (engine->server->durability.is_loading && query->command_count > 0)) {
        query->verdict = WEB_LOADING;
        return true;
    }
    /* What makes a client's write wait before it runs: a pause, or a journal that the disk holds up. Once the server is
     * over it waits for the end of the HTTP thread, which says so. */
    const struct server *server = engine->server;
    bool is_later = query->route->writes &&
                    (server->ending.is_over || server_pause(server) != SERVER_PAUSE_NONE ||
                     (server->persistence != NULL && persistence_is_behind(server->persistence)));
    if (is_later) {
        enum { LATER_NS = 20000 }; /* asking again is at a pace, too */
        query->verdict = WEB_LATER;
        query->elapsed_ns = LATER_NS;
        return true;
    }
    web_engine_execute(engine, query, user);
    query->elapsed_ns = clock_ticks_to_ns(clock_ticks() - begin_ticks);
    if (!web_engine_must_be_held(engine, query)) {
        return true;
    }
    query->next = engine->held_first;
    engine->held_first = query;
    return false;
}

void web_engine_release_answers(struct web_engine *engine) {
    if (engine->held_first == NULL) {
        return;
    }
    uint64_t group = waiting_open_group(engine->server);
    uint64_t epoch = replication_answer_epoch(&engine->server->replication);
    struct web_query **at = &engine->held_first;
    while (*at != NULL) {
        struct web_query *query = *at;
        if (query->epoch == epoch && query->held_for > group) {
            at = &query->next;
            continue;
        }
        if (query->epoch != epoch) {
            buffer_clear(&query->replies);
            query->reply_count = 0;
            query->verdict = WEB_LOADING;
        }
        *at = query->next;
        http_ask_answer(engine->asks, &query->ask);
    }
}
