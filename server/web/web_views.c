/* Viewers: those who look at the same page with the same rights share a view.
 *
 *     each 250 ms, if anything in the server has changed      view: the page as JSON, and a version
 *     the page is another one: version + 1                    viewers: a text each 250 ms at most
 *
 * Sending is what costs, some 8 us a text: so of more than 250 viewers each is told so many milliseconds after the last
 * time, at most a second, and a view sends no more than 1,000 texts a second until it has 1,000 viewers.
 *
 * So a write costs nothing more when somebody views its board, and 500 viewers cost the engine as much as
 * one. (A hot board changes far more often than it is shown, so reporting each change would cost more.)
 * A viewer who reads slowly gets the newest state when it reads on: http_stream_put replaces what has
 * not begun.
 *
 * A stream begins with the first look behind the request: until then the request waits, and an error is its answer. So
 * who comes to a view is shown nothing that the user's rights no longer allow. */
#include <stdio.h>

#include "codec/list.h"
#include "server/web/web_query.h"

struct web_view {
    struct web_view *next, *previous;
    struct web_request *first; /* its viewers */
    unsigned viewer_count;
    struct web_query *query;
    char *target; /* as sent: who asks the same sends the same */
    bool is_asked, is_over;
    bool is_server; /* figures, once a second */
    int64_t asked_ms, checked_ms;
    int64_t due_ms;   /* before that no viewer gets a text by time alone */
    uint64_t version; /* of text; 0: none yet */
    /* Looks: how many have begun, the last one that was answered, and the one that viewers wait for. */
    uint64_t looks, answered, awaited;
    size_t counted;         /* bytes of text and JSON, by web_query_take_memory */
    struct http_text *text; /* "event: page ..." */
    struct buffer json;     /* what it was made of */
};

/* Those who wait for the first text get the query's error in its place, with its status: a browser then does not
 * come back. */
static void web_views_refuse(const struct web_view *view) {
    const struct web_query *query = view->query;
    for (struct web_request *viewer = view->first; viewer != NULL; viewer = viewer->next) {
        struct http_exchange *exchange = viewer->exchange;
        if (exchange->stage == HTTP_WAITS) {
            exchange->reply.status = query->status;
            web_answer_error(exchange, buffer_bytes(&query->out));
        }
    }
}

/* The query's JSON becomes the view's text. */
static void web_views_renew(struct web *web, struct web_view *view, const char *event) {
    struct web_query *query = view->query;
    size_t size = 2 * query->out.size;
    bool is_long = query->out.size > WEB_VIEW_SIZE_MAX;
    web_query_give_memory(web, view->counted);
    view->counted = !is_long && web_query_take_memory(web, size) ? size : 0;
    if (view->counted == 0) {
        web_query_error(query, is_long ? 413 : 503, "%s",
                        is_long ? "the page is too long to be told of its changes: view fewer rows"
                                : "too much is viewed: the server has no memory for more");
        view->is_over = true;
        event = "event: gone\n";
        web_views_refuse(view);
    }
    struct http_text *text = http_text_create(WEB_JSON_MAX + 256);
    if (text != NULL) {
        buffer_append(&text->bytes, event, strlen(event));
        buffer_append(&text->bytes, "data: ", 6);
        /* One line: line ends are escaped in JSON. */
        buffer_append(&text->bytes, query->out.at, query->out.size);
        buffer_append(&text->bytes, "\n\n", 2);
    }
    if (text == NULL || text->bytes.is_broken) {
        http_text_release(text);
        return; /* the next look tries again */
    }
    http_text_release(view->text);
    view->text = text;
    view->version++;
    struct buffer json = view->json;
    view->json = view->query->out;
    view->query->out = json;
}

static void web_views_send_to(struct web_view *view, struct web_request *viewer, int64_t now_ms) {
    struct http_exchange *exchange = viewer->exchange;
    if (exchange->stage == HTTP_WAITS && view->text != NULL && !view->is_over &&
        view->answered >= viewer->first_look) {
        /* The first text is there. */
        exchange->reply.header_count = 0;
        web_answer_add_headers(exchange);
        http_reply_header(&exchange->reply, "X-Accel-Buffering", "no");
        if (!http_exchange_stream(exchange)) {
            http_exchange_refuse(exchange, 503, "too many viewers: see web-max-connections\n");
        }
    }
    if (exchange->stage != HTTP_STREAMS || view->text == NULL || viewer->version == view->version ||
        (now_ms < viewer->due_ms && !view->is_over)) {
        return;
    }
    viewer->version = view->version;
    /* Looks, which see that a right is withdrawn, are as often as ever. */
    int64_t pace_ms = view->viewer_count > WEB_VIEW_MS ? view->viewer_count : WEB_VIEW_MS;
    bool is_slow = view->is_server || pace_ms > WEB_SERVER_VIEW_MS;
    viewer->due_ms = now_ms + (is_slow ? WEB_SERVER_VIEW_MS : pace_ms);
    http_stream_put(exchange, view->text);
    if (view->is_over) {
        http_stream_end(exchange);
    }
}

static void web_views_send_to_all(struct web *web, struct web_view *view) {
    int64_t now_ms = http_server_now(web->http);
    view->due_ms = INT64_MAX;
    for (struct web_request *viewer = view->first; viewer != NULL; viewer = viewer->next) {
        web_views_send_to(view, viewer, now_ms);
        if (viewer->version != view->version && viewer->due_ms < view->due_ms) {
            view->due_ms = viewer->due_ms;
        }
    }
}

static void web_views_view_is_answered(struct web_query *query) {
    struct web_view *view = query->owner;
    struct web *web = query->web;
    view->is_asked = false;
    if (query->is_unchanged) {
        view->answered = view->looks;
        web_views_send_to_all(web, view);
        return;
    }
    if (query->status == 503) {
        return; /* busy: the next look tries again */
    }
    if (query->status != 200) {
        view->is_over = true;
        web_views_refuse(view);
        web_views_renew(web, view, "event: gone\n");
        web_views_send_to_all(web, view);
        return;
    }
    query->has_seen = true;
    query->seen_change_count = query->change_count;
    view->answered = view->looks;
    if (view->json.size != query->out.size || view->version == 0 ||
        memcmp(view->json.at, query->out.at, query->out.size) != 0) {
        web_views_renew(web, view, view->is_server ? "event: server\n" : "event: page\n");
    }
    web_views_send_to_all(web, view);
}

static void web_views_look(struct web_view *view, int64_t now_ms) {
    int64_t wait_ms = view->is_server ? WEB_SERVER_VIEW_MS : WEB_VIEW_MS;
    bool is_awaited = view->answered < view->awaited;
    if (view->is_asked || view->is_over || (!is_awaited && now_ms - view->asked_ms < wait_ms)) {
        return;
    }
    view->is_asked = true;
    view->asked_ms = now_ms;
    view->looks++;
    if (now_ms - view->checked_ms >= WEB_VIEW_CHECK_MS) {
        view->checked_ms = now_ms;
        view->query->has_seen = false; /* it may be another one by time alone */
    }
    web_query_run(view->query);
}

static struct web_view *web_views_create_view(struct web *web, const char *target,
                                              struct web_query *query) {
    struct web_view *view = memory_allocate_zeroed(sizeof *view);
    char *copy = memory_allocate(strlen(target) + 1);
    if (view == NULL || copy == NULL) {
        memory_free(view);
        memory_free(copy);
        return NULL;
    }
    memcpy(copy, target, strlen(target) + 1);
    view->target = copy;
    view->query = query;
    view->is_server = query->route->needs_figures;
    buffer_init(&view->json, WEB_JSON_MAX);
    query->is_view = true;
    query->owner = view;
    query->done = web_views_view_is_answered;
    LIST_JOIN(web->views.first, view);
    web->views.count++;
    return view;
}

void web_views_add(struct web *web, struct web_request *request, struct web_query *query) {
    struct http_exchange *exchange = request->exchange;
    struct web_view *view = web->views.first;
    while (view != NULL &&
           (view->is_over || strcmp(view->target, exchange->target) != 0 ||
            !web_answer_is_same_identity(&view->query->identity, &query->identity))) {
        view = view->next;
    }
    if (view == NULL && web->views.count < WEB_VIEWS_MAX) {
        view = web_views_create_view(web, exchange->target, query);
    }
    if (view == NULL || view->query != query) {
        web_query_leave(query);
    }
    if (view == NULL) {
        http_exchange_refuse(exchange, 503, "too many viewers: see web-max-connections\n");
        return;
    }
    http_exchange_wait(exchange, WEB_LIMIT_MS);
    request->view = view;
    request->first_look = view->looks + 1;
    view->awaited = request->first_look;
    LIST_JOIN(view->first, request);
    view->viewer_count++;
    web_views_look(view, http_server_now(web->http));
}

void web_views_leave(struct web *web, struct web_request *request) {
    struct web_view *view = request->view;
    if (view == NULL) {
        return;
    }
    request->view = NULL;
    LIST_PART(view->first, request);
    view->viewer_count--;
    if (view->first == NULL) {
        LIST_PART(web->views.first, view);
        web->views.count--;
        web_query_give_memory(web, view->counted);
        web_query_leave(view->query);
        http_text_release(view->text);
        buffer_deinit(&view->json);
        memory_free(view->target);
        memory_free(view);
    }
}

void web_views_step(struct web *web, int64_t now_ms) {
    for (struct web_view *view = web->views.first; view != NULL; view = view->next) {
        web_views_look(view, now_ms);
        if (now_ms >= view->due_ms) {
            web_views_send_to_all(web, view);
        }
    }
    /* A text without meaning, so that what lies between the two ends sees life. */
    struct web_views *views = &web->views;
    if (now_ms - views->pinged_ms < WEB_PING_MS) {
        return;
    }
    views->pinged_ms = now_ms;
    web_views_check_logins(web);
    if (views->ping == NULL) {
        views->ping = http_text_create(64);
        if (views->ping == NULL) {
            return;
        }
        buffer_append(&views->ping->bytes, ": ping\n\n", 8);
    }
    for (struct web_view *view = views->first; view != NULL; view = view->next) {
        for (struct web_request *viewer = view->first; viewer != NULL; viewer = viewer->next) {
            struct http_exchange *exchange = viewer->exchange;
            if (exchange->stage == HTTP_STREAMS && exchange->pending == NULL &&
                exchange->sending == NULL) {
                http_stream_put(exchange, views->ping);
            }
        }
    }
}

void web_views_check_logins(struct web *web) {
    for (struct web_view *view = web->views.first; view != NULL; view = view->next) {
        for (struct web_request *viewer = view->first; viewer != NULL; viewer = viewer->next) {
            if (viewer->exchange->stage == HTTP_STREAMS && !web_login_keep(web, viewer)) {
                http_stream_end(viewer->exchange);
            }
        }
    }
}

void web_views_end(struct web *web) {
    CHECK(web->views.first == NULL);
    http_text_release(web->views.ping);
}
