/* From a path to a route, and the parameters that all of them have. */
#include <stdio.h>

#include "server/dispatch/command.h"
#include "server/web/web_parts.h"

enum { FIRST = 2 /* behind api and v1 */ };

static bool web_routes_is(const struct web_query *query, unsigned segment, const char *word) {
    return segment < query->target.segment_count &&
           bytes_equal(query->target.segments[segment], bytes_from_text(word));
}

static const struct web_route *web_routes_find_of_board(const struct web_query *query) {
    static const struct {
        const char *name;
        const struct web_route *route;
    } routes[] = {
        {"page", &web_route_page},         {"events", &web_route_page},
        {"search", &web_route_search},     {"histogram", &web_route_histogram},
        {"archives", &web_route_archives},
    };
    unsigned count = query->target.segment_count - FIRST;
    if (count == 2) {
        return &web_route_board;
    }
    if (count == 4) {
        return web_routes_is(query, FIRST + 2, "member") ? &web_route_member : NULL;
    }
    for (size_t i = 0; count == 3 && i < sizeof routes / sizeof routes[0]; i++) {
        if (web_routes_is(query, FIRST + 2, routes[i].name)) {
            return routes[i].route;
        }
    }
    return NULL;
}

static const struct web_route *web_routes_find(const struct web_query *query) {
    unsigned count = query->target.segment_count - FIRST;
    if (count > 1 && web_routes_is(query, FIRST, "boards")) {
        return web_routes_find_of_board(query);
    }
    if (count == 2 && web_routes_is(query, FIRST, "server")) {
        return web_routes_is(query, FIRST + 1, "history")  ? &web_route_history
               : web_routes_is(query, FIRST + 1, "events") ? &web_route_server
                                                           : NULL;
    }
    if (count != 1) {
        return NULL;
    }
    return web_routes_is(query, FIRST, "boards")    ? &web_route_list
           : web_routes_is(query, FIRST, "server")  ? &web_route_server
           : web_routes_is(query, FIRST, "slowlog") ? &web_route_slowlog
           : web_routes_is(query, FIRST, "me")      ? &web_route_me
                                                    : NULL;
}

static bool web_routes_set_fields(struct web_query *query, struct bytes text) {
    const char *end = text.at + text.size;
    for (const char *at = text.at; at < end;) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        struct bytes field = {.at = at, .size = (size_t)((comma != NULL ? comma : end) - at)};
        if (query->data_field_count == WEB_FIELDS_MAX) {
            web_error(query, 400, "bad_request", "data has at most %d fields", WEB_FIELDS_MAX);
            return false;
        }
        query->data_fields[query->data_field_count++] = field;
        at += field.size + 1;
    }
    return true;
}

/* ?hash=PATTERN&data=FIELD,FIELD, or what web-data says. */
static bool web_routes_read_data(struct web_query *query) {
    const struct web *web = query->web;
    struct bytes pattern = http_target_find(&query->target, "hash");
    struct bytes fields = http_target_find(&query->target, "data");
    query->data_pattern = web->data_pattern;
    query->data_field_count = 0;
    if (fields.at == NULL && pattern.at == NULL) {
        memcpy(query->data_fields, web->data_fields, sizeof web->data_fields);
        query->data_field_count = web->data_field_count;
        query->is_data_default = web->data_pattern.at != NULL;
        return true;
    }
    if (pattern.at != NULL) {
        query->data_pattern = pattern;
    }
    if (fields.at != NULL && fields.size == 0 && pattern.at == NULL) {
        query->data_pattern = (struct bytes){.at = NULL}; /* none wanted */
        return true;
    }
    if (fields.size == 0 || query->data_pattern.at == NULL) {
        web_error(query, 400, "bad_request",
                  "hash=PATTERN, in which * stands for the member, and data=FIELD,FIELD go "
                  "together");
        return false;
    }
    return web_routes_set_fields(query, fields);
}

bool web_query_parse(struct web_query *query, const char *target) {
    size_t size = strlen(target);
    int64_t database;
    query->text = memory_allocate(size + 1);
    if (query->text == NULL) {
        web_error(query, 503, "busy", "out of memory");
        return false;
    }
    memcpy(query->text, target, size + 1);
    const char *wrong = http_target_parse(query->text, &query->target);
    if (wrong != NULL) {
        web_error(query, 400, "bad_request", "%s", wrong);
        return false;
    }
    query->route = query->target.segment_count > FIRST ? web_routes_find(query) : NULL;
    if (query->route == NULL) {
        web_error(query, 404, "not_found", "there is no such path: docs/web.md lists them");
        return false;
    }
    if (!web_number(query, "db", 0, REGISTRY_DATABASES - 1, 0, &database) ||
        !web_routes_read_data(query)) {
        return false;
    }
    query->database = (uint8_t)database;
    if (query->target.segment_count > FIRST + 1) {
        query->board = query->target.segments[FIRST + 1];
    }
    if (query->target.segment_count > FIRST + 3) {
        query->member = query->target.segments[FIRST + 3];
    }
    if (query->route->needs_figures) {
        query->figures = memory_allocate_zeroed(figures_size(command_count()));
        if (query->figures == NULL) {
            web_error(query, 503, "busy", "out of memory");
            return false;
        }
    }
    return true;
}
