/* The state of one server. Sessions form a list in order of arrival (ids only increase), so that
 * CLIENT LIST prints the oldest first. */
#include "server/sessions/server.h"

#include <stdio.h>

#include "server/system/log.h"

static uint64_t server_hash_id(uint64_t id) {
    return id * UINT64_C(0x9e3779b97f4a7c15);
}

bool server_add_session(struct server *server, struct session *session) {
    if (!link_table_reserve(&server->sessions.by_id)) {
        link_table_shrink(&server->sessions.by_id);
        return false;
    }
    server_reset_user(server, session);
    session->previous = server->sessions.last;
    session->next = NULL;
    *(server->sessions.last != NULL ? &server->sessions.last->next : &server->sessions.first) =
        session;
    server->sessions.last = session;
    server->sessions.count++;
    session->link.hash = server_hash_id(session->id);
    link_table_put(&server->sessions.by_id, &session->link);
    session_memory_count(&server->sessions.memory, session);
    return true;
}

struct session *server_find_session(const struct server *server, uint64_t id) {
    struct map_find find;
    struct link *link = NULL;
    if (link_table_find(&server->sessions.by_id, server_hash_id(id), &find)) {
        do {
            link = link_table_next(&server->sessions.by_id, &find);
        } while (link != NULL && ((struct session *)link)->id != id);
    }
    return (struct session *)link;
}

void server_update_time(struct server *server) {
    struct clock *clock = &server->clock;
    clock_update(clock);
    registry_expiry_set_offset(server->registry, clock_offset_ms(clock));
}

void server_refresh_rights(const struct server *server, struct session *session) {
    session->is_unlimited = session->player == NULL && server_is_authenticated(server, session) &&
                            acl_user_may_everything(session->user);
}

void server_set_user(struct server *server, struct session *session, struct acl_user *user,
                     bool is_authenticated) {
    session->user = user;
    session_set_player(session, NULL);
    session->is_authenticated = is_authenticated;
    server_refresh_rights(server, session);
}

void server_reset_user(struct server *server, struct session *session) {
    server_set_user(server, session, server->acl.users.default_user, !server_has_password(server));
}

void server_take_certificate(struct server *server, struct session *session, struct bytes name) {
    if (server->settings.tls_auth_clients_user != SETTING_TLS_USER_CN) {
        return;
    }
    struct acl_user *user = acl_users_find(&server->acl.users, name);
    if (user != NULL && user->is_on && !acl_is_of_players(name)) {
        server_set_user(server, session, user, true);
    }
}

void server_end_transaction(struct server *server, struct session *session) {
    session_transaction_clear(&session->transaction);
    watch_clear(&server->watches, &session->watches);
}

void server_set_monitor(struct server *server, struct session *session, bool is_monitor) {
    if (session->is_monitor == is_monitor) {
        return;
    }
    session->is_monitor = is_monitor;
    if (is_monitor) {
        session_link(&server->sessions.monitors, session, SESSION_MONITORS);
        server->sessions.monitor_count++;
    } else {
        session_unlink(&server->sessions.monitors, session, SESSION_MONITORS);
        server->sessions.monitor_count--;
    }
}

struct buffer *server_output(struct server *server, struct session *session) {
    if (session->is_killed) {
        return NULL;
    }
    if (!session->is_pushed) {
        session->is_pushed = true;
        server->has_news = true;
        session->pushed_from = session->output.size;
        session->output.size_max = server_output_room(server, session);
        session_link(&server->sessions.pushed, session, SESSION_PUSHED);
    }
    return &session->output;
}

struct buffer *server_push(struct server *server, struct session *session) {
    if (!session->is_replying || session->is_killed) {
        return server_output(server, session);
    }
    session->kept.size_max = server_output_room(server, session);
    return &session->kept;
}

void server_send_kept(struct server *server, struct session *session) {
    struct buffer kept = session->kept;
    buffer_init(&session->kept, 0);
    struct buffer *output = server_output(server, session);
    if (output != NULL) {
        buffer_append(output, kept.at, kept.size);
        output->is_broken |= kept.is_broken;
    }
    buffer_deinit(&kept);
}

void server_end_push(struct server *server, struct session *session) {
    session->is_pushed = false;
    session_unlink(&server->sessions.pushed, session, SESSION_PUSHED);
}

void server_end_subscriptions(struct server *server, struct session *session) {
    for (unsigned kind = 0; kind < SUBSCRIPTION_KINDS; kind++) {
        subscription_clear(&server->subscriptions, &session->subscriptions,
                           (enum subscription_kind)kind);
    }
}

void server_kill_session(struct server *server, struct session *session) {
    if (!session->is_killed) {
        session->is_killed = true;
        session_link(&server->sessions.killed, session, SESSION_KILLED);
        server->sessions.killed_count++;
    }
}

/* A lower limit would close clients for ordinary requests. */
enum { CLIENT_MEMORY_LIMIT_MIN = 128 * 1024 };

uint64_t server_client_memory_limit(const struct server *server) {
    int64_t setting = server->settings.maxmemory_clients;
    uint64_t limit = (uint64_t)setting;
    if (setting < 0) {
        uint64_t whole = server->settings.maxmemory > 0 ? server->settings.maxmemory
                                                        : server->about.machine_memory_size;
        limit = whole / 100 * (uint64_t)-setting;
    }
    return limit == 0 || limit > CLIENT_MEMORY_LIMIT_MIN ? limit : CLIENT_MEMORY_LIMIT_MIN;
}

uint64_t server_random(struct server *server) {
    /* Guy L. Steele et al., "Fast splittable pseudorandom number generators", 2014. */
    uint64_t z = server->random_state += 0x9e3779b97f4a7c15ULL;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

/* ---- what an answer was read from ---- */

static void server_reads_on_stale(struct watch_list *list) {
    server_reads_outdate((struct reads *)list);
}

void server_reads_begin(struct server *server) {
    server->reads.keys.hash_seed = server->hash_seed;
    server->reads.on_stale = server_reads_on_stale;
}

void server_reads_init(struct reads *reads) {
    *reads = (struct reads){.due_ms = REGISTRY_NO_EXPIRY};
}

static void server_reads_note_due(struct reads *reads, int64_t due_ms) {
    if (due_ms != REGISTRY_NO_EXPIRY &&
        (reads->due_ms == REGISTRY_NO_EXPIRY || due_ms < reads->due_ms)) {
        reads->due_ms = due_ms;
    }
}

void server_reads_note(struct server *server, struct reads *reads, uint32_t database,
                       struct bytes name) {
    if (server_reads_are_outdated(reads)) {
        return;
    }
    int64_t now_ms = server->clock.now_ms;
    const struct registry_key *key = registry_peek(server->registry, database, name, now_ms);
    if (key != NULL) {
        server_reads_note_due(reads, registry_expiry(server->registry, key));
    }
    if (key != NULL && key->kind == REGISTRY_BOARD) {
        const struct board_options *options = registry_options(key);
        bool decays = layout_field_decays(&board_layout(&key->board)->fields[0]);
        if (options->period.unit != PERIOD_NONE) {
            server_reads_note_due(reads, options->period_end_ms);
        }
        if (decays) {
            server_reads_note_due(reads, now_ms);
        }
    }
    if (!watch_add(&server->reads, &reads->list, database, name, key != NULL)) {
        server_reads_outdate(reads);
    }
}

void server_reads_end(struct server *server, struct reads *reads) {
    watch_clear(&server->reads, &reads->list);
}

void server_reads_outdate_all(struct server *server) {
    watch_outdate_all(&server->reads);
    server->reads_outdated_count++;
}

/* ---- the audit log ---- */

static const struct {
    const char *name;
    uint32_t lines_max; /* within window_ms */
    int64_t window_ms;
} classes[AUDIT_CLASSES] = {
    [AUDIT_NONE] = {"none", 0, 0},
    [AUDIT_FLUSH] = {"flush", 20, 10000},
    [AUDIT_SHUTDOWN] = {"shutdown", 20, 10000},
    [AUDIT_CONFIG] = {"config", 20, 10000},
    [AUDIT_USERS] = {"users", 20, 10000},
    [AUDIT_PLAYERS] = {"players", 20, 10000},
    [AUDIT_ROLE] = {"role", 20, 10000},
    [AUDIT_SNAPSHOT] = {"snapshot", 20, 10000},
    [AUDIT_AUTH] = {"auth", 20, 10000},
    [AUDIT_MAXMEMORY] = {"maxmemory", 1, 60000},
};

static void server_audit_end_window(enum audit_class class, struct audit_window *window) {
    if (window->left_out > 0) {
        log_write(LOG_AUDIT, "lines left out class=%s count=%llu", classes[class].name,
                  (unsigned long long)window->left_out);
    }
    *window = (struct audit_window){.end_ms = 0};
}

static bool server_audit_is_over(const struct audit_window *window, int64_t now_ms) {
    return window->end_ms != 0 && now_ms >= window->end_ms;
}

struct audit_who server_audit_who(const struct session *session) {
    return (struct audit_who){
        .user = session_user_name(session), .address = session->address, .client = session->id};
}

void server_audit_write(struct server *server, struct audit_who who, const char *event,
                        const char *details) {
    if (server->settings.audit_log) {
        log_write(LOG_AUDIT, "%s user=\"%s\" addr=%s id=%llu %s", event, log_quote(who.user).text,
                  who.address, (unsigned long long)who.client, details);
    }
}

void server_audit_write_refused(struct server *server, enum audit_class class, struct audit_who who,
                                const char *event, const char *details) {
    struct audit_window *window = &server->audit.windows[class];
    int64_t now_ms = server->clock.monotonic_ms;
    if (!server->settings.audit_log) {
        return;
    }
    if (server_audit_is_over(window, now_ms)) {
        server_audit_end_window(class, window);
    }
    if (window->end_ms == 0) {
        window->end_ms = now_ms + classes[class].window_ms;
    }
    if (window->written == classes[class].lines_max) {
        window->left_out++;
        return;
    }
    window->written++;
    server_audit_write(server, who, event, details);
}

void server_audit_second(struct server *server) {
    for (enum audit_class class = AUDIT_NONE; class < AUDIT_CLASSES; class ++) {
        struct audit_window *window = &server->audit.windows[class];
        if (server_audit_is_over(window, server->clock.monotonic_ms)) {
            server_audit_end_window(class, window);
        }
    }
}
