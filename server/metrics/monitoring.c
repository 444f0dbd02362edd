/* See monitoring.h.
 *
 * /healthz is answered by the HTTP thread alone: the process is there. A probe that restarts the server
 * must not do so because of a long command. /readyz asks the engine. */
#include "server/metrics/monitoring.h"

#include <stdio.h>
#include <unistd.h>

#include "server/acl/acl_check.h"
#include "server/dispatch/login.h"
#include "server/metrics/metrics.h"
#include "server/replication/replication.h"

struct readiness {
    bool is_loading, is_draining;
    double loaded_percent;
    bool is_copyless; /* a replica that never had a copy */
    double copied_percent;
    enum replication_keys keys;
    bool is_outdated; /* its master is gone, and it does not serve what it has */
    bool is_closed;   /* a master that does not serve: too few replicas are there */
};

struct monitoring {
    struct server *server;
    struct readiness readiness;
    struct http_route routes[4];
    struct figures *figures;
    struct http *http;
};

static void monitoring_reply_text(struct http_reply *reply, unsigned status, const char *text) {
    reply->status = status;
    buffer_append(&reply->body, text, strlen(text));
}

/* ---- /metrics ---- */

static void monitoring_look_at_figures(void *context, void *view) {
    const struct monitoring *monitoring = context;
    figures_take(monitoring->server, view);
}

static void monitoring_write_metrics(const void *view, const char *accept,
                                     struct http_reply *reply) {
    enum metrics_format format = metrics_choose(accept);
    reply->content_type = metrics_content_type(format);
    metrics_print(view, format, &reply->body);
}

/* ---- /healthz and /readyz ---- */

static void monitoring_write_health(const void *view, const char *accept,
                                    struct http_reply *reply) {
    (void)view;
    (void)accept;
    monitoring_reply_text(reply, 200, "ok\n");
}

static void monitoring_look_at_readiness(void *context, void *view) {
    const struct monitoring *monitoring = context;
    const struct server *server = monitoring->server;
    struct readiness *readiness = view;
    *readiness = (struct readiness){
        .is_loading = server->durability.is_loading,
        .is_draining = server->ending.retiring.is_begun,
        .is_copyless =
            replication_is_replica(&server->replication) && !server->replication.is_whole,
        .keys = replication_keys(&server->replication),
        .is_outdated = replication_read_refusal(server) != NULL,
        .is_closed =
            !replication_is_replica(&server->replication) && !replication_serves_as_master(server),
    };
    if (server->replication.copy_size > 0) {
        readiness->copied_percent = (double)server->replication.copy_read_size * 100 /
                                    (double)server->replication.copy_size;
    }
    if (readiness->is_loading && server->persistence != NULL) {
        struct persistence_info kept;
        persistence_describe(server->persistence, &kept);
        readiness->loaded_percent = kept.loading_percent;
    }
}

static void monitoring_write_readiness(const void *view, const char *accept,
                                       struct http_reply *reply) {
    const struct readiness *readiness = view;
    char text[64];
    (void)accept;
    if (readiness->is_draining) {
        monitoring_reply_text(reply, 503, "shutting down\n");
    } else if (readiness->is_loading) {
        snprintf(text, sizeof text, "loading: %.1f%%\n", readiness->loaded_percent);
        monitoring_reply_text(reply, 503, text);
    } else if (readiness->is_copyless) {
        snprintf(text, sizeof text, "copying the master: %.1f%%\n", readiness->copied_percent);
        monitoring_reply_text(reply, 503, text);
    } else if (readiness->keys == REPLICATION_KEYS_PROMOTING) {
        monitoring_reply_text(reply, 503, "applying what was received\n");
    } else if (readiness->keys == REPLICATION_KEYS_CLOSED) {
        monitoring_reply_text(reply, 503, "closed: waiting for votes\n");
    } else if (readiness->is_closed) {
        monitoring_reply_text(reply, 503, "closed: too few replicas\n");
    } else if (readiness->is_outdated) {
        monitoring_reply_text(reply, 503, "master down\n");
    } else {
        monitoring_reply_text(reply, 200, "ready\n");
    }
}

/* ---- who may ask ---- */

/* As for a client that connects, and for INFO: a user who may run that; without a user the default one,
 * from this machine alone while protected-mode is on and that one has no password. */
static enum http_verdict monitoring_check_login(void *context, struct http_login *login) {
    const struct monitoring *monitoring = context;
    struct server *server = monitoring->server;
    struct bytes arg = BYTES("INFO");
    const struct request info = {.args = &arg, .count = 1};
    struct acl_user *user = server->acl.users.default_user;
    uint32_t position;
    server_update_time(server);
    if (server_has_password(server) || login->is_token) {
        if (!login->has_password) {
            return HTTP_LOGIN_NEEDED;
        }
        struct bytes password = bytes_from_text(login->password);
        enum login_outcome outcome =
            login->is_token
                ? login_try_token(server, login->address, password, &user, &login->retry_ms)
                : login_try_address(server, login->address, bytes_from_text(login->user), password,
                                    &user, &login->retry_ms);
        if (outcome != LOGIN_RIGHT) {
            return outcome == LOGIN_WRONG ? HTTP_LOGIN_NEEDED : HTTP_LOGIN_TOO_SOON;
        }
    } else if (server->settings.protected_mode && !login->is_client_local) {
        return HTTP_LOGIN_REFUSED;
    }
    return acl_check(user, command_find_full_name(BYTES("info")), &info, &position) == ACL_ALLOWED
               ? HTTP_LOGIN_OK
               : HTTP_LOGIN_REFUSED;
}

/* ---- beginning and end ---- */

struct monitoring *monitoring_start(int fd, uv_loop_t *engine_loop, struct server *server,
                                    const char *certificate, const char *key, char *error) {
    const char *hosts = server->settings.metrics_hosts;
    struct monitoring *monitoring = memory_allocate_zeroed(sizeof *monitoring);
    struct figures *figures = memory_allocate_zeroed(figures_size(server->stats.command_count));
    if (monitoring == NULL || figures == NULL) {
        memory_free(monitoring);
        memory_free(figures);
        close(fd);
        snprintf(error, HTTP_ERROR_MAX, "metrics-port: out of memory");
        return NULL;
    }
    monitoring->figures = figures;
    monitoring->server = server;
    monitoring->routes[0] = (struct http_route){"/metrics", true, monitoring_look_at_figures,
                                                monitoring_write_metrics, figures};
    monitoring->routes[1] =
        (struct http_route){"/healthz", false, NULL, monitoring_write_health, NULL};
    monitoring->routes[2] = (struct http_route){"/readyz", false, monitoring_look_at_readiness,
                                                monitoring_write_readiness, &monitoring->readiness};
    const struct http_options options = {
        .routes = monitoring->routes,
        .context = monitoring,
        .hosts = hosts != NULL ? hosts : "",
        .login = monitoring_check_login,
        .certificate = certificate,
        .key = key,
    };
    monitoring->http = http_start(fd, engine_loop, &options, error);
    if (monitoring->http == NULL) {
        memory_free(figures);
        memory_free(monitoring);
        return NULL;
    }
    return monitoring;
}

void monitoring_stop(struct monitoring *monitoring) {
    http_stop(monitoring->http);
}

void monitoring_destroy(struct monitoring *monitoring) {
    http_destroy(monitoring->http);
    memory_free(monitoring->figures);
    memory_free(monitoring);
}
