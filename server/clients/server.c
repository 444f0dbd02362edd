/* The state of one server. Sessions form a list in order of arrival (ids only increase), so that
 * CLIENT LIST prints the oldest first. */
#include "server/clients/server.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/clients/follow.h"
#include "server/clients/job.h"
#include "server/clients/notify.h"
#include "server/replication/replication.h"
#include "server/system/disk.h"
#include "skiplist/keyspace/registry_stale.h"
#include "skiplist/keyspace/registry_window.h"

static uint64_t server_splitmix64(uint64_t *state) {
    /* Guy L. Steele et al., "Fast splittable pseudorandom number generators", 2014. */
    uint64_t z = *state += 0x9e3779b97f4a7c15ULL;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

void server_add_session(struct server *server, struct session *session) {
    server_reset_user(server, session);
    session->previous = server->sessions.last;
    session->next = NULL;
    *(server->sessions.last != NULL ? &server->sessions.last->next : &server->sessions.first) =
        session;
    server->sessions.last = session;
    server->sessions.count++;
    session_table_put(&server->sessions.by_id, session);
    client_memory_count(&server->sessions.memory, session);
}

struct session *server_find_session(const struct server *server, uint64_t id) {
    return session_table_find(&server->sessions.by_id, id);
}

void server_update_time(struct server *server) {
    struct clock *clock = &server->clock;
    clock_update(clock);
    registry_set_offset(server->registry, clock_offset_ms(clock));
}

const char *server_unready_reason(const struct server *server) {
    if (server->durability.is_loading) {
        return "loading";
    }
    switch (replication_keys(&server->replication)) {
    case REPLICATION_KEYS_OWN:
    case REPLICATION_KEYS_HELD:
    case REPLICATION_KEYS_FOLLOWED:
        break;
    case REPLICATION_KEYS_PROMOTING:
        return "promoting";
    case REPLICATION_KEYS_CLOSED:
        return "closed";
    }
    return server->ending.retiring.is_begun ? "draining" : NULL;
}

void server_refresh_rights(const struct server *server, struct session *session) {
    session->is_unlimited =
        server_is_authenticated(server, session) && acl_user_may_everything(session->user);
}

void server_set_user(struct server *server, struct session *session, struct acl_user *user,
                     bool is_authenticated) {
    session->user = user;
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
    if (user != NULL && user->is_on) {
        server_set_user(server, session, user, true);
    }
}

void server_end_transaction(struct server *server, struct session *session) {
    transaction_clear(&session->transaction);
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
    return server_splitmix64(&server->random_state);
}

/* ---- its life, and who is told of changes of keys ---- */

/* Not inlined: mostly nobody watches, waits or follows. A database that is flushed has nothing for
 * those who wait. */
__attribute__((noinline)) static void server_tell_clients(struct server *server, uint32_t database,
                                                          struct bytes name) {
    if (server->follows.boards.count > 0) {
        follow_touch(&server->follows, database, name);
    }
    if (name.at == NULL) {
        watch_touch_all(&server->watches, database);
        return;
    }
    watch_touch(&server->watches, database, name);
    server->has_news |= wait_touch(&server->waits, database, name);
}

/* Fan-out of key changes: the change counter, the watches, who waits for the key and who follows
 * it. */
static void server_on_key_changed(void *context, uint32_t database, struct bytes name) {
    struct server *server = context;
    server->durability.change_count++;
    if (database < REGISTRY_DATABASES &&
        (server->watches.client_count | server->waits.client_count |
         server->follows.boards.count) != 0) {
        server_tell_clients(server, database, name);
    }
}

static void server_on_key_expired(void *context, uint32_t database, struct bytes name) {
    notify(context, SETTING_EVENT_EXPIRED, "expired", database, name);
}

static void server_on_board_rolled(void *context, uint32_t database, struct bytes name,
                                   const struct bytes archive[2]) {
    struct server *server = context;
    notify_taken_name(name, archive);
    if (server->settings.notify_board_events) {
        notify_board_rolled(server, database, name, archive);
    }
}

static void server_on_board_stale(void *context, uint32_t database, struct bytes name,
                                  bool is_removed) {
    notify(context, SETTING_EVENT_ZSET, "lb.stale", database, name);
    if (is_removed) {
        notify(context, SETTING_EVENT_GENERIC, "del", database, name);
    }
}

static void server_on_share_gone(void *context, uint32_t database, struct bytes name) {
    notify(context, SETTING_EVENT_GENERIC, "del", database, name);
}

bool server_init(struct server *server, uint32_t command_count) {
    if (server->hash_seed == 0) {
        server->hash_seed = disk_random_id(); /* against members chosen to collide */
        server->random_state = disk_random_id();
    }
    if (server->acl.users.count == 0 &&
        !acl_users_init(&server->acl.users, server->settings.requirepass)) {
        return false;
    }
    server->registry =
        registry_create(server->hash_seed, setting_board_rules_for, &server->settings);
    if (server->registry == NULL) {
        return false;
    }
    if (!session_table_init(&server->sessions.by_id) ||
        !stats_init(&server->stats, command_count)) {
        session_table_deinit(&server->sessions.by_id);
        registry_destroy(server->registry);
        server->registry = NULL;
        return false;
    }
    registry_set_listener(server->registry, server_on_key_changed, server);
    registry_set_expired_listener(server->registry, server_on_key_expired);
    registry_set_rolled_listener(server->registry, server_on_board_rolled);
    registry_set_stale_listener(server->registry, server_on_board_stale);
    registry_set_share_listener(server->registry, server_on_share_gone);
    server->acl.guard.seed = server->hash_seed;
    server->watches.keys.hash_seed = server->hash_seed;
    server->subscriptions.hash_seed = server->hash_seed;
    server->waits.keys.hash_seed = server->hash_seed;
    follow_init(server);
    server_update_time(server);
    server->about.started_at_ms = server->clock.monotonic_ms;
    server->about.started_at_s = server->clock.now_ms / 1000;
    server->sessions.next_id = 1;
    server->about.tcp_port =
        server->settings.port != 0 ? server->settings.port : server->settings.tls_port;
    replication_make_id(server, server->about.run_id);
    replication_init(server);
    ssize_t size = readlink("/proc/self/exe", server->about.executable_path,
                            sizeof server->about.executable_path - 1);
    server->about.executable_path[size > 0 ? size : 0] = '\0';
    long pages = sysconf(_SC_PHYS_PAGES), page_size = sysconf(_SC_PAGESIZE);
    server->about.machine_memory_size =
        pages > 0 && page_size > 0 ? (uint64_t)pages * (uint64_t)page_size : 0;
    return true;
}

void server_deinit(struct server *server) {
    CHECK(server->sessions.first == NULL);
    jobs_end(server);
    session_table_deinit(&server->sessions.by_id);
    watch_deinit(&server->watches);
    subscription_deinit(&server->subscriptions);
    follow_deinit(&server->follows);
    wait_deinit(&server->waits);
    slowlog_deinit(&server->slowlog);
    acl_log_clear(&server->acl.log);
    acl_users_deinit(&server->acl.users);
    memory_free(server->acl.path);
    server->acl.path = NULL;
    stats_deinit(&server->stats);
    registry_destroy(server->registry);
    server->registry = NULL;
}

void server_remove_session(struct server *server, struct session *session) {
    CHECK(server->sessions.count > 0);
    server_set_monitor(server, session, false);
    server_end_transaction(server, session);
    job_leave(server, session);
    replication_remove_replica(server, session);
    server_end_subscriptions(server, session);
    wait_end(&server->waits, session);
    server_postpone(server, session, false);
    if (session->is_pushed) {
        server_end_push(server, session);
    }
    session_table_take(&server->sessions.by_id, session);
    client_memory_forget(&server->sessions.memory, session);
    if (session->is_killed) {
        session_unlink(&server->sessions.killed, session, SESSION_KILLED);
        server->sessions.killed_count--;
    }
    *(session->previous != NULL ? &session->previous->next : &server->sessions.first) =
        session->next;
    *(session->next != NULL ? &session->next->previous : &server->sessions.last) =
        session->previous;
    session->next = NULL;
    session->previous = NULL;
    server->sessions.count--;
}
