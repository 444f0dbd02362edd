/* How a server begins and ends, how a session leaves it, and who of its clients is told of changes of keys. Here, because
 * all of them know the server, and server.h is to be read without them. */
#include <unistd.h>

#include "server/replication/replication.h"
#include "server/sessions/board_events.h"
#include "server/sessions/job.h"
#include "server/sessions/notify.h"
#include "server/sessions/server.h"
#include "server/sessions/tracking.h"
#include "server/system/disk.h"

/* Those who have read the key. A room is read with the board whose room it is, whatever key the reader has named. Returns
 * that board, .at NULL: it is no room. */
static struct bytes server_life_outdate(struct server *server, uint32_t database, struct bytes name,
                                        const struct session *writer) {
    const struct registry_key *key = registry_board_find_whole(server->registry, database, name);
    struct bytes whole = key != NULL ? registry_name(key) : (struct bytes){.at = NULL};
    if (tracking_is_on(&server->tracking)) {
        tracking_touch(server, name, writer);
        if (whole.at != NULL) {
            tracking_touch(server, whole, writer);
        }
    }
    return whole;
}

/* Not inlined: mostly nobody watches, waits, follows or tracks. A database that is flushed has nothing for
 * those who wait. */
__attribute__((noinline)) static void
server_life_tell_clients(struct server *server, uint32_t database, struct bytes name) {
    if (server->follows.boards.count > 0) {
        board_events_touch(&server->follows, database, name);
    }
    if (name.at == NULL) {
        watch_touch_all(&server->watches, database);
        watch_touch_all(&server->reads, database);
        if (tracking_is_on(&server->tracking)) {
            tracking_touch_all(&server->tracking);
        }
        return;
    }
    struct bytes whole = server_life_outdate(server, database, name, server->tracking.writer);
    watch_touch(&server->watches, database, name);
    watch_touch(&server->reads, database, name);
    if (whole.at != NULL) {
        watch_touch(&server->watches, database, whole);
        watch_touch(&server->reads, database, whole);
    }
    server->has_news |= wait_touch(&server->waits, database, name);
}

/* Fan-out of key changes: the change counter, the watches, who waits for the key, who follows it and
 * who has read it. */
static void server_life_on_key_changed(void *context, uint32_t database, struct bytes name) {
    struct server *server = context;
    server->durability.change_count++;
    if (database < REGISTRY_DATABASES &&
        (server->watches.client_count | server->reads.client_count | server->waits.client_count |
         server->follows.boards.count | server->tracking.client_count |
         server->tracking.keys.client_count) != 0) {
        server_life_tell_clients(server, database, name);
    }
}

/* The key will change, and not by the command that runs, even if that finds it due: clients are told of what they
 * change themselves only if they ask for it (NOLOOP), and of this always. */
static void server_life_on_key_due(struct server *server, uint32_t database, struct bytes name) {
    if (tracking_is_on(&server->tracking) && database < REGISTRY_DATABASES) {
        (void)server_life_outdate(server, database, name, NULL);
    }
}

static void server_life_on_key_expired(void *context, uint32_t database, struct bytes name) {
    server_life_on_key_due(context, database, name);
    notify(context, SETTING_EVENT_EXPIRED, "expired", database, name);
}

static void server_life_on_board_rolled(void *context, uint32_t database, struct bytes name,
                                        const struct bytes archive[2]) {
    struct server *server = context;
    server_life_on_key_due(server, database, name);
    notify_taken_name(name, archive);
    if (server->settings.notify_board_events) {
        notify_board_rolled(server, database, name, archive);
    }
}

static void server_life_on_share_gone(void *context, uint32_t database, struct bytes name) {
    notify(context, SETTING_EVENT_GENERIC, "del", database, name);
}

bool server_life_init(struct server *server, uint32_t command_count) {
    if (server->hash_seed == 0) {
        server->hash_seed = disk_random_id(); /* against members chosen to collide */
        server->random_state = disk_random_id();
    }
    if (server->acl.users.count == 0 &&
        !acl_users_init(&server->acl.users, server->settings.requirepass)) {
        return false;
    }
    server->registry =
        registry_create(server->hash_seed, setting_board_options_for, &server->settings);
    if (server->registry == NULL) {
        return false;
    }
    if (!stats_init(&server->stats, command_count)) {
        registry_destroy(server->registry);
        server->registry = NULL;
        return false;
    }
    registry_set_listener(server->registry, server_life_on_key_changed, server);
    registry_set_expired_listener(server->registry, server_life_on_key_expired);
    registry_set_rolled_listener(server->registry, server_life_on_board_rolled);
    registry_roll_set_share_listener(server->registry, server_life_on_share_gone);
    server->acl.guard.seed = server->hash_seed;
    server->watches.keys.hash_seed = server->hash_seed;
    server_reads_begin(server);
    server->subscriptions.hash_seed = server->hash_seed;
    server->tracking.keys.hash_seed = server->hash_seed;
    server->tracking.prefixes.hash_seed = server->hash_seed;
    server->waits.keys.hash_seed = server->hash_seed;
    board_events_init(server);
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

void server_life_deinit(struct server *server) {
    CHECK(server->sessions.first == NULL);
    job_list_end(server);
    watch_deinit(&server->watches);
    watch_deinit(&server->reads);
    tracking_deinit(&server->tracking);
    subscription_deinit(&server->subscriptions);
    buffer_deinit(&server->shadows.pairs);
    board_events_deinit(&server->follows);
    wait_deinit(&server->waits);
    stats_slowlog_deinit(&server->slowlog);
    acl_log_clear(&server->acl.log);
    acl_users_deinit(&server->acl.users);
    memory_free(server->acl.path);
    server->acl.path = NULL;
    stats_deinit(&server->stats);
    registry_destroy(server->registry);
    server->registry = NULL;
}

void server_life_remove_session(struct server *server, struct session *session) {
    CHECK(server->sessions.count > 0);
    server_set_monitor(server, session, false);
    server_end_transaction(server, session);
    job_leave(server, session);
    replication_remove_replica(server, session);
    server_end_subscriptions(server, session);
    tracking_forget(server, session);
    wait_end(&server->waits, session);
    server_postpone(server, session, false);
    if (session->is_pushed) {
        server_end_push(server, session);
    }
    link_table_take(&server->sessions.by_id, &session->link);
    session_memory_forget(&server->sessions.memory, session);
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
