/* The state of one server. Sessions form a list in order of arrival (ids only increase), so that
 * CLIENT LIST prints the oldest first. */
#include "server/clients/server.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

static uint64_t splitmix64(uint64_t *state) {
    /* Guy L. Steele et al., "Fast splittable pseudorandom number generators", 2014. */
    uint64_t z = *state += 0x9e3779b97f4a7c15ULL;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

/* The seed protects the maps against members chosen to collide, so it comes from the system. */
static uint64_t random_seed(void) {
    uint64_t seed;
    if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) != (ssize_t)sizeof seed) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        seed = (uint64_t)now.tv_nsec * 0x9e3779b97f4a7c15ULL ^ (uint64_t)now.tv_sec ^
               (uint64_t)getpid() << 32 ^ (uint64_t)(uintptr_t)&now;
    }
    return seed;
}

static void make_run_id(struct server *server) {
    for (int i = 0; i < 40; i++) {
        server->run_id[i] = "0123456789abcdef"[server_random(server) & 15];
    }
    server->run_id[40] = '\0';
}

static void find_executable(struct server *server) {
    ssize_t size =
        readlink("/proc/self/exe", server->executable_path, sizeof server->executable_path - 1);
    server->executable_path[size > 0 ? size : 0] = '\0';
}

/* Fan-out of key changes: the change counter and the watches. */
static void on_key_changed(void *context, uint32_t database, struct bytes name) {
    struct server *server = context;
    server->durability.change_count++;
    if (server->watches.client_count == 0) {
        return;
    }
    if (name.at != NULL) {
        watch_touch(&server->watches, database, name);
    } else {
        watch_touch_all(&server->watches, database);
    }
}

static uint64_t machine_memory_size(void) {
    long pages = sysconf(_SC_PHYS_PAGES);
    long page_size = sysconf(_SC_PAGESIZE);
    return pages > 0 && page_size > 0 ? (uint64_t)pages * (uint64_t)page_size : 0;
}

bool server_init(struct server *server, uint32_t command_count) {
    if (server->hash_seed == 0) {
        server->hash_seed = random_seed();
        server->random_state = random_seed();
    }
    server->registry = registry_create(server->hash_seed, settings_rules_for, &server->settings);
    if (server->registry == NULL) {
        return false;
    }
    if (!session_table_init(&server->sessions_by_id) ||
        !stats_init(&server->stats, command_count)) {
        session_table_deinit(&server->sessions_by_id);
        registry_destroy(server->registry);
        server->registry = NULL;
        return false;
    }
    registry_set_listener(server->registry, on_key_changed, server);
    server->watches.hash_seed = server->hash_seed;
    slowlog_init(&server->slowlog);
    server_update_time(server);
    server->started_at_ms = server->clock.monotonic_ms;
    server->started_at_s = server->clock.now_ms / 1000;
    server->session_next_id = 1;
    server->tcp_port = server->settings.port;
    make_run_id(server);
    find_executable(server);
    server->machine_memory_size = machine_memory_size();
    return true;
}

void server_deinit(struct server *server) {
    CHECK(server->session_first == NULL);
    session_table_deinit(&server->sessions_by_id);
    watch_deinit(&server->watches);
    slowlog_deinit(&server->slowlog);
    stats_deinit(&server->stats);
    registry_destroy(server->registry);
    server->registry = NULL;
}

void server_add_session(struct server *server, struct session *session) {
    session->is_authenticated = !server_has_password(server);
    session->previous = server->session_last;
    session->next = NULL;
    if (server->session_last != NULL) {
        server->session_last->next = session;
    } else {
        server->session_first = session;
    }
    server->session_last = session;
    server->session_count++;
    session_table_put(&server->sessions_by_id, session);
    client_memory_count(&server->client_memory, session);
}

void server_remove_session(struct server *server, struct session *session) {
    CHECK(server->session_count > 0);
    server_set_monitor(server, session, false);
    server_end_transaction(server, session);
    session_table_take(&server->sessions_by_id, session);
    client_memory_forget(&server->client_memory, session);
    if (session->is_killed) {
        session_unlink(&server->killed_first, session, SESSION_KILLED);
        server->killed_count--;
    }
    if (session->previous != NULL) {
        session->previous->next = session->next;
    } else {
        server->session_first = session->next;
    }
    if (session->next != NULL) {
        session->next->previous = session->previous;
    } else {
        server->session_last = session->previous;
    }
    session->next = NULL;
    session->previous = NULL;
    server->session_count--;
}

struct session *server_find_session(const struct server *server, uint64_t id) {
    return session_table_find(&server->sessions_by_id, id);
}

void server_update_time(struct server *server) {
    struct clock *clock = &server->clock;
    clock_update(clock);
    registry_set_offset(server->registry, clock_offset_ms(clock));
}

bool server_has_password(const struct server *server) {
    return server->settings.requirepass != NULL;
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
        session_link(&server->monitor_first, session, SESSION_MONITORS);
        server->monitor_count++;
    } else {
        session_unlink(&server->monitor_first, session, SESSION_MONITORS);
        server->monitor_count--;
    }
}

void server_kill_session(struct server *server, struct session *session) {
    if (!session->is_killed) {
        session->is_killed = true;
        session_link(&server->killed_first, session, SESSION_KILLED);
        server->killed_count++;
    }
}

/* A lower limit would close clients for ordinary requests. */
enum { CLIENT_MEMORY_LIMIT_MIN = 128 * 1024 };

uint64_t server_client_memory_limit(const struct server *server) {
    int64_t setting = server->settings.maxmemory_clients;
    uint64_t limit = (uint64_t)setting;
    if (setting < 0) {
        uint64_t whole = server->settings.maxmemory > 0 ? server->settings.maxmemory
                                                        : server->machine_memory_size;
        limit = whole / 100 * (uint64_t)-setting;
    }
    return limit == 0 || limit > CLIENT_MEMORY_LIMIT_MIN ? limit : CLIENT_MEMORY_LIMIT_MIN;
}

uint64_t server_random(struct server *server) {
    return splitmix64(&server->random_state);
}
