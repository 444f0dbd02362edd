/* The state of one server. Sessions form a list in the order they came (ids only grow), so that
 * CLIENT LIST prints the oldest first. */
#include "server/server.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "server/command.h"

static uint64_t splitmix64(uint64_t *state) {
    /* Guy L. Steele et al., "Fast splittable pseudorandom number generators", 2014. */
    uint64_t z = *state += 0x9e3779b97f4a7c15ULL;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

/* The seed guards the maps against members chosen to collide, so it comes from the system. */
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

/* Here every change of a key is heard of, and whoever is to know of it is told. */
static void on_key_changed(void *context, uint32_t database, struct bytes name) {
    struct server *server = context;
    server->change_count++;
    if (server->watches.client_count == 0) {
        return;
    }
    if (name.at != NULL) {
        watch_touch(&server->watches, database, name);
    } else {
        watch_touch_all(&server->watches, server->registry, database);
    }
}

bool server_init(struct server *server) {
    if (server->hash_seed == 0) {
        server->hash_seed = random_seed();
        server->random_state = random_seed();
    }
    server->registry = registry_create(server->hash_seed, settings_rules_for, &server->settings);
    if (server->registry == NULL) {
        return false;
    }
    if (!stats_init(&server->stats, command_count())) {
        registry_destroy(server->registry);
        server->registry = NULL;
        return false;
    }
    registry_set_listener(server->registry, on_key_changed, server);
    server->watches.hash_seed = server->hash_seed;
    slowlog_init(&server->slowlog);
    server_update_time(server);
    server->started_at_ms = server->now_ms;
    server->session_next_id = 1;
    server->tcp_port = server->settings.port;
    make_run_id(server);
    find_executable(server);
    return true;
}

void server_deinit(struct server *server) {
    CHECK(server->session_first == NULL);
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
}

void server_remove_session(struct server *server, struct session *session) {
    CHECK(server->session_count > 0);
    server_set_monitor(server, session, false);
    server_end_transaction(server, session);
    server->killed_count -= session->is_killed;
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
    for (struct session *session = server->session_first; session != NULL;
         session = session->next) {
        if (session->id == id) {
            return session;
        }
    }
    return NULL;
}

void server_update_time(struct server *server) {
    server->now_us = clock_now_us(&server->clock);
    int64_t rest_us = server->now_us % 1000;
    server->now_ms = server->now_us / 1000 - (rest_us < 0 ? 1 : 0);
}

bool server_has_password(const struct server *server) {
    return server->settings.requirepass != NULL && server->settings.requirepass[0] != '\0';
}

void server_end_transaction(struct server *server, struct session *session) {
    transaction_clear(&session->transaction);
    watch_clear(&server->watches, &session->watches);
}

void server_set_monitor(struct server *server, struct session *session, bool is_monitor) {
    if (session->is_monitor != is_monitor) {
        session->is_monitor = is_monitor;
        server->monitor_count += is_monitor ? 1U : UINT32_MAX;
    }
}

void server_kill_session(struct server *server, struct session *session) {
    if (!session->is_killed) {
        session->is_killed = true;
        server->killed_count++;
    }
}

uint64_t server_random(struct server *server) {
    return splitmix64(&server->random_state);
}
