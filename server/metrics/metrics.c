/* The metrics, from the table of figures. See metrics.h.
 *
 *     row                             OpenMetrics                     Prometheus
 *     COUNTER(..., "x", ...)          # TYPE leaderboard_x counter    # TYPE leaderboard_x_total counter
 *                                     leaderboard_x_total 1           leaderboard_x_total 1
 *
 * Units are seconds and bytes, and end the name. Numbers are printed exactly, from integers.
 *
 * /healthz is answered by the HTTP thread alone: the process is there. A probe that restarts the server
 * must not do so because of a long command. /readyz asks the engine. */
#include "server/metrics/metrics.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "codec/list.h"
#include "server/acl/acl_check.h"
#include "server/dispatch/command.h"
#include "server/dispatch/login.h"
#include "server/http/http.h"
#include "server/replication/replication.h"

struct page {
    const struct figures *figures;
    struct buffer *out;
    const struct figure *family; /* being printed */
    const struct figure *sample; /* the same, or the row of a further sample */
};

/* ---- printing ---- */

__attribute__((format(printf, 2, 3))) static void metrics_put(struct page *page, const char *format,
                                                              ...) {
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    CHECK(size >= 0 && (size_t)size < sizeof line);
    buffer_append(page->out, line, (size_t)size);
}

/* value / per_unit, exactly: per_unit is a power of ten. */
static void metrics_put_value(struct page *page, bool is_negative, uint64_t value,
                              uint32_t per_unit) {
    int digits = 0;
    uint64_t rest = value % per_unit;
    for (uint32_t unit = per_unit; unit > 1; unit /= 10) {
        digits++;
    }
    const char *sign = is_negative ? "-" : "";
    if (rest == 0) {
        metrics_put(page, " %s%llu\n", sign, (unsigned long long)(value / per_unit));
        return;
    }
    while (rest % 10 == 0) {
        rest /= 10;
        digits--;
    }
    metrics_put(page, " %s%llu.%0*llu\n", sign, (unsigned long long)(value / per_unit), digits,
                (unsigned long long)rest);
}

enum { LABELS_MAX = 768 }; /* a replica's host has up to 255 bytes */

enum { BUCKET_STEP = 2, BUCKETS_SHOWN = 24 }; /* 1 us, 4 us, 16 us ... 4.2 s */

static void metrics_put_histogram(struct page *page, const char *labels,
                                  const struct durations *durations) {
    const char *name = page->family->metric;
    const char *comma = labels[0] != '\0' ? "," : "";
    uint64_t seen = 0;
    for (int i = 0; i < DURATIONS_BUCKETS; i++) {
        seen += durations->buckets[i];
        if (i < BUCKETS_SHOWN && i % BUCKET_STEP == 0) {
            metrics_put(page, "%s_bucket{%s%sle=\"%.10g\"} %llu\n", name, labels, comma,
                        (double)(UINT64_C(1) << i) / 1e6, (unsigned long long)seen);
        }
    }
    metrics_put(page, "%s_bucket{%s%sle=\"+Inf\"} %llu\n", name, labels, comma,
                (unsigned long long)seen);
    const char *open = comma[0] != '\0' ? "{" : "";
    const char *close = comma[0] != '\0' ? "}" : "";
    metrics_put(page, "%s_count%s%s%s %llu\n%s_sum%s%s%s", name, open, labels, close,
                (unsigned long long)seen, name, open, labels, close);
    metrics_put_value(page, false, durations->total_ns, 1000000000);
}

/* Samples of a counter or of information have the family's name and this. */
static const char *metrics_sample_suffix(const struct figure *family) {
    return family->kind == FIGURE_COUNTER ? "_total" : family->kind == FIGURE_INFO ? "_info" : "";
}

/* A sample: the row's field of this object, which the label names. */
static void metrics_put_sample(struct page *page, const void *object, const char *name) {
    const struct figure *sample = page->sample;
    struct figure_value value = figures_read(sample, object);
    char labels[LABELS_MAX];
    /* Without their braces: "thread=\"0\",call=\"read\"". */
    const char *more = sample->label != NULL ? sample->label : "";
    const char *label = figures_label(sample->of);
    const char *comma = label != NULL && more[0] != '\0' ? "," : "";
    int size = label == NULL
                   ? snprintf(labels, LABELS_MAX, "%s", more)
                   : snprintf(labels, LABELS_MAX, "%s=\"%s\"%s%s", label, name, comma, more);
    CHECK(size >= 0 && size < LABELS_MAX);
    if (sample->type == FIGURE_DURATIONS) {
        metrics_put_histogram(page, labels, value.durations);
    } else if (!sample->is_optional || !value.is_negative) {
        metrics_put(page, labels[0] != '\0' ? "%s%s{%s}" : "%s%s%s", page->family->metric,
                    metrics_sample_suffix(page->family), labels);
        metrics_put_value(page, value.is_negative, value.number,
                          sample->per_unit > 0 ? sample->per_unit : 1);
    }
}

/* Of databases those that have keys, and the first; of commands those that were called. */
static void metrics_put_samples(struct page *page) {
    const struct figures *figures = page->figures;
    bool is_histogram = page->sample->type == FIGURE_DURATIONS;
    char name[FIGURES_NAME_MAX];
    const void *object;
    for (uint32_t i = 0; (object = figures_object(figures, page->sample->of, i, name)) != NULL;
         i++) {
        const struct stats_command *command = object;
        bool is_shown = true;
        if (page->sample->of == FIGURE_OF_COMMAND) {
            is_shown = command->calls.count > 0 || (!is_histogram && command->rejected_calls > 0);
        } else if (page->sample->of == FIGURE_OF_DATABASE) {
            is_shown = i == 0 || figures->databases[i].keys > 0;
        }
        /* The prefix of an error is its first word, which the server chose; what would end a label's value early is
         * shown as '_'. */
        for (char *at = name;
             page->sample->of == FIGURE_OF_ERROR && (at = strpbrk(at, "\"\\\n")) != NULL;) {
            *at = '_';
        }
        if (is_shown) {
            metrics_put_sample(page, object, name);
        }
    }
}

/* ---- the page ---- */

/* The name ends with it. */
static const char *metrics_unit(const struct figure *family) {
    static const char *const units[] = {"_seconds", "_bytes", "_ratio"};
    size_t size = strlen(family->metric);
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        size_t unit = strlen(units[i]);
        if (size > unit && strcmp(family->metric + size - unit, units[i]) == 0) {
            return units[i] + 1;
        }
    }
    return "";
}

void metrics_print(const struct figures *figures, enum metrics_format format, struct buffer *out) {
    const struct figure *end = figures_table + figures_row_count;
    bool is_open = format == METRICS_OPENMETRICS;
    struct page page = {.figures = figures, .out = out, .family = figures_table};
    for (unsigned place = 1; place < FIGURE_PLACES; place++) {
        for (const struct figure *row = figures_table; row < end; row++) {
            if (row->place != place) {
                continue;
            }
            if (row->metric != NULL) {
                const char *suffix = is_open ? "" : metrics_sample_suffix(row);
                const char *unit = is_open ? metrics_unit(row) : "";
                const char *kind =
                    row->kind == FIGURE_INFO && !is_open ? "gauge" : figures_kind_names[row->kind];
                metrics_put(&page, "# TYPE %s%s %s\n", row->metric, suffix, kind);
                if (unit[0] != '\0') {
                    metrics_put(&page, "# UNIT %s %s\n", row->metric, unit);
                }
                metrics_put(&page, "# HELP %s%s %s.\n", row->metric, suffix, row->help);
                page.family = row;
            }
            page.sample = row;
            metrics_put_samples(&page);
        }
    }
    if (is_open) {
        metrics_put(&page, "# EOF\n");
    }
}

/* ---- formats ---- */

enum metrics_format metrics_choose(const char *accept) {
    return http_request_quality(accept, "text/plain") >
                   http_request_quality(accept, "application/openmetrics-text")
               ? METRICS_PROMETHEUS
               : METRICS_OPENMETRICS;
}

/* ---- a table of routes: see metrics.h ---- */

struct metrics_asked_route {
    struct ask ask; /* first */
    const struct metrics_route *is;
    bool is_asked;
    int64_t asked_ms;
    struct metrics_request *first; /* those that wait for it */
};

/* A request's own part. */
struct metrics_request {
    struct http_exchange *exchange;
    struct metrics_asked_route *route;
    struct http_login_ask *login;            /* that the engine has */
    struct metrics_request *next, *previous; /* of those that wait for the same route */
    bool is_gathered;                        /* it is in the route's list */
    bool is_asked;                           /* the engine has its route's question */
};

struct metrics_routes {
    struct http_server *server;
    struct metrics_routes_options options;
    struct http_handler handler;
    struct metrics_asked_route routes[METRICS_ROUTES_MAX];
    unsigned route_count;
};

/* ---- asking the engine ---- */

static void metrics_routes_ask(struct metrics_routes *http, struct metrics_asked_route *route) {
    int64_t now_ms = http_server_now(http->server);
    if (route->is_asked || now_ms - route->asked_ms < METRICS_GATHER_MS) {
        return;
    }
    for (struct metrics_request *request = route->first; request != NULL; request = request->next) {
        request->is_asked = true;
        route->is_asked = true;
    }
    if (route->is_asked) {
        route->asked_ms = now_ms;
        http_server_ask(http->server, &route->ask);
    }
}

static bool metrics_routes_answer(void *context, struct ask *ask) {
    const struct metrics_routes *http = context;
    const struct metrics_asked_route *route = (struct metrics_asked_route *)ask;
    route->is->look(http->options.context, route->is->view);
    return true;
}

static void metrics_routes_part(struct metrics_request *request) {
    if (!request->is_gathered) {
        return;
    }
    LIST_PART(request->route->first, request);
    request->is_gathered = false;
}

static void metrics_routes_on_answer(void *context, struct ask *ask) {
    struct metrics_routes *http = context;
    struct metrics_asked_route *route = (struct metrics_asked_route *)ask;
    struct metrics_request *next;
    route->is_asked = false;
    for (struct metrics_request *request = route->first; request != NULL; request = next) {
        next = request->next;
        if (request->is_asked) {
            metrics_routes_part(request);
            if (request->exchange->stage == HTTP_WAITS) {
                route->is->write(route->is->view, http_request_header(request->exchange, "Accept"),
                                 &request->exchange->reply);
                http_exchange_ready(request->exchange);
            }
        }
    }
    metrics_routes_ask(http, route);
}

/* The user may. */
static void metrics_routes_run(struct metrics_routes *http, struct metrics_request *request) {
    struct metrics_asked_route *route = request->route;
    if (route->is->look == NULL) {
        route->is->write(route->is->view, NULL, &request->exchange->reply);
        http_exchange_ready(request->exchange);
        return;
    }
    request->is_gathered = true;
    LIST_JOIN(route->first, request);
    http_exchange_wait(request->exchange, HTTP_ASK_LIMIT_MS);
    metrics_routes_ask(http, route);
}

/* ---- logging in ---- */

static void metrics_routes_refuse_login(struct http_exchange *exchange,
                                        const struct http_login_ask *login) {
    if (login->verdict == HTTP_LOGIN_TOO_SOON) {
        http_ask_refuse_too_soon(exchange, &login->given);
        return;
    }
    if (login->verdict == HTTP_LOGIN_REFUSED) {
        http_reply_fill(exchange, 403,
                        HTTP_LOCAL_ALONE "; with one, the user must be allowed to run INFO\n",
                        login->given.address);
    } else {
        http_reply_fill(exchange, 401, "a user and a password, or a token, are needed\n");
        exchange->reply.is_login_wanted = true;
    }
    if (login->given.has_password) {
        http_exchange_delay(exchange, HTTP_REFUSAL_DELAY_MS);
    } else {
        http_exchange_ready(exchange);
    }
}

static void metrics_routes_on_login(void *context, struct http_login_ask *login) {
    struct http_exchange *exchange = login->exchange;
    struct metrics_request *request = exchange->own;
    request->login = NULL;
    if (exchange->stage != HTTP_WAITS) {
        return; /* it has waited too long */
    }
    if (login->verdict == HTTP_LOGIN_OK) {
        metrics_routes_run(context, request);
    } else {
        metrics_routes_refuse_login(exchange, login);
    }
}

static enum http_verdict metrics_routes_check_login(void *context, struct http_login *login) {
    const struct metrics_routes *http = context;
    return http->options.login(http->options.context, login);
}

/* ---- what comes ---- */

static void metrics_routes_handle(void *context, struct http_exchange *exchange) {
    struct metrics_routes *http = context;
    struct metrics_asked_route *route = NULL;
    for (unsigned i = 0; i < http->route_count && route == NULL; i++) {
        bool is_it = strcmp(http->routes[i].is->path, exchange->path) == 0;
        route = is_it ? &http->routes[i] : NULL;
    }
    if (route == NULL) {
        http_reply_fill(exchange, 404, "there is no such page\n");
        for (unsigned i = 0; i < http->route_count; i++) {
            const char *path = http->routes[i].is->path;
            buffer_append(&exchange->reply.body, path, strlen(path));
            buffer_append(&exchange->reply.body, "\n", 1);
        }
        http_exchange_ready(exchange);
        return;
    }
    struct metrics_request *request = memory_allocate_zeroed(sizeof *request);
    if (request == NULL) {
        http_exchange_refuse(exchange, 503, "out of memory\n");
        return;
    }
    exchange->own = request;
    request->exchange = exchange;
    request->route = route;
    if (!route->is->needs_user) {
        metrics_routes_run(http, request);
        return;
    }
    struct http_login_ask *login =
        http_ask_create_login(exchange, metrics_routes_check_login, metrics_routes_on_login);
    if (login == NULL) {
        return;
    }
    if (!http_ask_take_login(login)) {
        login->verdict = HTTP_LOGIN_NEEDED;
        metrics_routes_refuse_login(exchange, login);
        http_ask_destroy_login(login);
        return;
    }
    request->login = login;
    http_ask_login(login);
}

static void metrics_routes_leave(void *context, struct http_exchange *exchange) {
    struct metrics_request *request = exchange->own;
    (void)context;
    if (request != NULL) {
        metrics_routes_part(request);
        http_ask_leave_login(request->login);
        memory_free(request);
    }
}

static void metrics_routes_step(void *context, int64_t now_ms) {
    struct metrics_routes *http = context;
    (void)now_ms;
    for (unsigned i = 0; i < http->route_count; i++) {
        metrics_routes_ask(http, &http->routes[i]);
    }
}

static void metrics_routes_drop(void *context, struct ask *ask) {
    (void)context;
    (void)http_ask_drop_login(ask);
}

/* ---- its beginning and end ---- */

struct metrics_routes *metrics_routes_start(int fd, uv_loop_t *engine_loop,
                                            const struct metrics_routes_options *options,
                                            char *error) {
    struct metrics_routes *http = memory_allocate_zeroed(sizeof *http);
    if (http == NULL) {
        close(fd);
        snprintf(error, HTTP_ERROR_MAX, "cannot serve HTTP: out of memory");
        return NULL;
    }
    http->options = *options;
    for (const struct metrics_route *route = options->routes; route->path != NULL; route++) {
        CHECK(http->route_count < METRICS_ROUTES_MAX);
        http->routes[http->route_count++] = (struct metrics_asked_route){
            .ask = {.answer = metrics_routes_answer, .done = metrics_routes_on_answer},
            .is = route,
            .asked_ms = -METRICS_GATHER_MS,
        };
    }
    http->handler = (struct http_handler){
        .context = http,
        .engine_context = http,
        .handle = metrics_routes_handle,
        .leave = metrics_routes_leave,
        .step = metrics_routes_step,
        .drop = metrics_routes_drop,
    };
    const struct http_server_options server = {
        .handler = &http->handler,
        .place = &http->server,
        .connections_max = METRICS_CONNECTIONS_MAX,
        .hosts = options->hosts,
        .hosts_setting = "metrics-hosts",
        .certificate = options->certificate,
        .key = options->key,
    };
    if (http_server_start(fd, engine_loop, &server, error) == NULL) {
        memory_free(http);
        return NULL;
    }
    return http;
}

void metrics_routes_stop(struct metrics_routes *http) {
    http_server_stop(http->server);
}

void metrics_routes_destroy(struct metrics_routes *http) {
    http_server_destroy(http->server);
    memory_free(http);
}

/* ---- the routes ---- */

struct readiness {
    bool is_loading, is_draining;
    double loaded_percent;
    bool is_copyless; /* a replica that never had a copy */
    double copied_percent;
    enum replication_keys keys;
    bool is_outdated; /* its master is gone, and it does not serve what it has */
    bool is_closed;   /* a master that does not serve: too few replicas are there */
};

struct metrics {
    struct server *server;
    struct readiness readiness;
    struct metrics_route routes[4];
    struct figures *figures;
    struct metrics_routes *http;
};

static void metrics_reply_text(struct http_reply *reply, unsigned status, const char *text) {
    reply->status = status;
    buffer_append(&reply->body, text, strlen(text));
}

/* ---- /metrics ---- */

static void metrics_look_at_figures(void *context, void *view) {
    const struct metrics *metrics = context;
    figures_take(metrics->server, view);
}

static void metrics_write_metrics(const void *view, const char *accept, struct http_reply *reply) {
    enum metrics_format format = metrics_choose(accept);
    reply->content_type = format == METRICS_OPENMETRICS
                              ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                              : "text/plain; version=0.0.4; charset=utf-8";
    metrics_print(view, format, &reply->body);
}

/* ---- /healthz and /readyz ---- */

static void metrics_write_health(const void *view, const char *accept, struct http_reply *reply) {
    (void)view;
    (void)accept;
    metrics_reply_text(reply, 200, "ok\n");
}

static void metrics_look_at_readiness(void *context, void *view) {
    const struct metrics *metrics = context;
    const struct server *server = metrics->server;
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

static void metrics_write_readiness(const void *view, const char *accept,
                                    struct http_reply *reply) {
    const struct readiness *readiness = view;
    char text[64];
    (void)accept;
    if (readiness->is_draining) {
        metrics_reply_text(reply, 503, "shutting down\n");
    } else if (readiness->is_loading) {
        snprintf(text, sizeof text, "loading: %.1f%%\n", readiness->loaded_percent);
        metrics_reply_text(reply, 503, text);
    } else if (readiness->is_copyless) {
        snprintf(text, sizeof text, "copying the master: %.1f%%\n", readiness->copied_percent);
        metrics_reply_text(reply, 503, text);
    } else if (readiness->keys == REPLICATION_KEYS_PROMOTING) {
        metrics_reply_text(reply, 503, "applying what was received\n");
    } else if (readiness->keys == REPLICATION_KEYS_CLOSED) {
        metrics_reply_text(reply, 503, "closed: waiting for votes\n");
    } else if (readiness->is_closed) {
        metrics_reply_text(reply, 503, "closed: too few replicas\n");
    } else if (readiness->is_outdated) {
        metrics_reply_text(reply, 503, "master down\n");
    } else {
        metrics_reply_text(reply, 200, "ready\n");
    }
}

/* ---- who may ask ---- */

/* As for a client that connects, and for INFO: a user who may run that; without a user the default one,
 * from this machine alone while protected-mode is on and that one has no password. */
static enum http_verdict metrics_check_login(void *context, struct http_login *login) {
    const struct metrics *metrics = context;
    struct server *server = metrics->server;
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

struct metrics *metrics_start(int fd, uv_loop_t *engine_loop, struct server *server,
                              const char *certificate, const char *key, char *error) {
    const char *hosts = server->settings.metrics_hosts;
    struct metrics *metrics = memory_allocate_zeroed(sizeof *metrics);
    struct figures *figures = memory_allocate_zeroed(figures_size(server->stats.command_count));
    if (metrics == NULL || figures == NULL) {
        memory_free(metrics);
        memory_free(figures);
        close(fd);
        snprintf(error, HTTP_ERROR_MAX, "metrics-port: out of memory");
        return NULL;
    }
    metrics->figures = figures;
    metrics->server = server;
    metrics->routes[0] = (struct metrics_route){"/metrics", true, metrics_look_at_figures,
                                                metrics_write_metrics, figures};
    metrics->routes[1] =
        (struct metrics_route){"/healthz", false, NULL, metrics_write_health, NULL};
    metrics->routes[2] = (struct metrics_route){"/readyz", false, metrics_look_at_readiness,
                                                metrics_write_readiness, &metrics->readiness};
    const struct metrics_routes_options options = {
        .routes = metrics->routes,
        .context = metrics,
        .hosts = hosts != NULL ? hosts : "",
        .login = metrics_check_login,
        .certificate = certificate,
        .key = key,
    };
    metrics->http = metrics_routes_start(fd, engine_loop, &options, error);
    if (metrics->http == NULL) {
        memory_free(figures);
        memory_free(metrics);
        return NULL;
    }
    return metrics;
}

void metrics_stop(struct metrics *metrics) {
    metrics_routes_stop(metrics->http);
}

void metrics_destroy(struct metrics *metrics) {
    metrics_routes_destroy(metrics->http);
    memory_free(metrics->figures);
    memory_free(metrics);
}
