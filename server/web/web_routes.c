/* From a path to a route, and the parameters that all of them have. */
#include <stdio.h>

#include "codec/tag_set.h"
#include "server/dispatch/command.h"
#include "server/web/web_parts.h"

enum { FIRST = 2 /* behind api and v1 */ };

/* Behind /api/v1; * is any segment. */
static const struct {
    const char *path;
    const struct web_route *route;
} routes[] = {
    {"boards", &web_route_list},
    {"boards/*", &web_route_board},
    {"boards/*/page", &web_route_page},
    {"boards/*/events", &web_route_page},
    {"boards/*/search", &web_route_search},
    {"boards/*/histogram", &web_route_histogram},
    {"boards/*/archives", &web_route_archives},
    {"boards/*/member/*", &web_route_member},
    {"server", &web_route_server},
    {"server/events", &web_route_server},
    {"server/history", &web_route_history},
    {"slowlog", &web_route_slowlog},
    {"me", &web_route_me},
};

static bool web_routes_match(const struct http_target *target, const char *path) {
    unsigned at = FIRST;
    for (; *path != '\0' && at < target->segment_count; at++) {
        struct bytes word = {.at = path, .size = strcspn(path, "/")};
        if (*path != '*' && !bytes_equal(word, target->segments[at])) {
            return false;
        }
        path += word.size + (path[word.size] == '/');
    }
    return *path == '\0' && at == target->segment_count;
}

static const struct web_route *web_routes_find(const struct web_query *query) {
    for (size_t i = 0; i < sizeof routes / sizeof routes[0]; i++) {
        if (web_routes_match(&query->target, routes[i].path)) {
            return routes[i].route;
        }
    }
    return NULL;
}

static bool web_routes_set_fields(struct web_query *query, struct bytes text) {
    const char *end = text.at + text.size;
    for (const char *at = text.at; at < end;) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        struct bytes field = {.at = at, .size = (size_t)((comma != NULL ? comma : end) - at)};
        if (query->data.count == WEB_FIELDS_MAX) {
            web_error(query, 400, "data has at most %d fields", WEB_FIELDS_MAX);
            return false;
        }
        query->data.fields[query->data.count++] = field;
        at += field.size + 1;
    }
    return true;
}

/* ?hash=PATTERN&data=FIELD,FIELD, or what web-data says. */
static bool web_routes_read_data(struct web_query *query) {
    const struct web *web = query->web;
    struct bytes pattern = http_target_find(&query->target, "hash");
    struct bytes fields = http_target_find(&query->target, "data");
    query->data = web->data;
    query->data.is_default = web->data.pattern.at != NULL;
    if (fields.at == NULL && pattern.at == NULL) {
        return true;
    }
    query->data.is_default = false;
    query->data.count = 0;
    if (pattern.at != NULL) {
        query->data.pattern = pattern;
    }
    if (fields.at != NULL && fields.size == 0 && pattern.at == NULL) {
        query->data.pattern = (struct bytes){.at = NULL}; /* none wanted */
        return true;
    }
    if (fields.size == 0 || query->data.pattern.at == NULL) {
        web_error(query, 400,
                  "hash=PATTERN, in which * stands for the member, and data=FIELD,FIELD go "
                  "together");
        return false;
    }
    return web_routes_set_fields(query, fields);
}

static bool web_routes_add_where(struct web_query *query, struct bytes text) {
    const char *colon = text.size > 0 ? memchr(text.at, ':', text.size) : NULL;
    if (colon == NULL) {
        web_error(query, 400, "where is TAG:VALUE, as in where=country:DE");
        return false;
    }
    struct web_where where = {.tag = {.at = text.at, .size = (size_t)(colon - text.at)}};
    where.value = (struct bytes){.at = colon + 1, .size = text.size - where.tag.size - 1};
    if (where.value.size > TAG_VALUE_MAX) {
        web_error(query, 400, "where: a value of tag '%s' has at most %d bytes",
                  bytes_show(where.tag).text, TAG_VALUE_MAX);
        return false;
    }
    if (query->where_count == WEB_WHERES_MAX) {
        web_error(query, 400, "where is given at most %d times", WEB_WHERES_MAX);
        return false;
    }
    query->wheres[query->where_count++] = where;
    return true;
}

/* ?where=TAG:VALUE, as often as it is there, ?tags=1 and ?since=BOARD. */
static bool web_routes_read_tags(struct web_query *query) {
    int64_t has_tags;
    if (!web_number(query, "tags", 0, 1, 0, &has_tags)) {
        return false;
    }
    query->has_tags = has_tags != 0;
    struct bytes since = http_target_find(&query->target, "since");
    query->since = since.size > 0 ? since : (struct bytes){.at = NULL};
    for (unsigned i = 0; i < query->target.parameter_count; i++) {
        const struct http_parameter *parameter = &query->target.parameters[i];
        if (bytes_equal(parameter->name, BYTES("where")) &&
            !web_routes_add_where(query, parameter->value)) {
            return false;
        }
    }
    return true;
}

bool web_query_parse(struct web_query *query, const char *target) {
    size_t size = strlen(target);
    int64_t database;
    query->text = memory_allocate(size + 1);
    if (query->text == NULL) {
        web_error(query, 503, "out of memory");
        return false;
    }
    memcpy(query->text, target, size + 1);
    const char *wrong = http_target_parse(query->text, &query->target);
    if (wrong != NULL) {
        web_error(query, 400, "%s", wrong);
        return false;
    }
    query->route = web_routes_find(query);
    if (query->route == NULL) {
        web_error(query, 404, "there is no such path: docs/web.md lists them");
        return false;
    }
    if (!web_number(query, "db", 0, REGISTRY_DATABASES - 1, 0, &database) ||
        !web_routes_read_data(query) || !web_routes_read_tags(query)) {
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
            web_error(query, 503, "out of memory");
            return false;
        }
    }
    return true;
}
