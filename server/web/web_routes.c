/* From a path to a route, and the parameters that all of them have. */
#include <stdio.h>

#include "codec/tag.h"
#include "server/dispatch/command.h"
#include "server/web/web_parts.h"

enum { FIRST = 2 /* behind api and v1 */ };

#define GROUP "hash data where tags"
#define PAGE  "db from count:1-200=25 " GROUP " since"

const struct web_operation web_operations[] = {
    {HTTP_GET, "boards", "listBoards", "Boards, in steps", "match cursor count:1-200=100 rooms db",
     NULL, "Boards", &web_route_list, false},
    {HTTP_GET, "boards/{NAME}", "getBoard", "A board", "db where", NULL, "Board", &web_route_board,
     false},
    {HTTP_GET, "boards/{NAME}/page", "getPage", "Rows by rank", PAGE, NULL, "Page", &web_route_page,
     false},
    {HTTP_GET, "boards/{NAME}/events", "followPage",
     "event: page with a Page whenever it has changed; event: gone with a Problem", PAGE " key",
     NULL, NULL, &web_route_page, true},
    {HTTP_GET, "boards/{NAME}/search", "searchMembers", "Members that begin with q",
     "db q count:1-50=25 cursor by " GROUP, NULL, "Found", &web_route_search, false},
    {HTTP_GET, "boards/{NAME}/histogram", "getHistogram", "Bins and quantiles of the first field",
     "db buckets spacing hash data where", NULL, "Histogram", &web_route_histogram, false},
    {HTTP_GET, "boards/{NAME}/archives", "listArchives", "The last periods",
     "db count:1-50=10 " GROUP, NULL, "Archives", &web_route_archives, false},
    {HTTP_GET, "boards/{NAME}/members/{MEMBER}", "getMember",
     "A member: place, percentile, the ten around", "db " GROUP " since", NULL, "Member",
     &web_route_member, false},
    {HTTP_POST, "boards/{NAME}/results", "writeResults", "Write results: LB.ADD",
     "db hash rank create Idempotency-Key", "Results", "Written", &web_route_results, false},
    {HTTP_POST, "results", "submitResults",
     "Write results, each on several boards or on none: LB.SUBMIT",
     "db hash create Idempotency-Key", "Submissions", "Submitted", &web_route_submit, false},
    {HTTP_DELETE, "boards/{NAME}/members/{MEMBER}", "removeMember", "Remove a member: ZREM", "db",
     NULL, "Removed", &web_route_remove, false},
    {HTTP_PATCH, "boards/{NAME}/members/{MEMBER}/tags", "setTags",
     "Set some of a member's tags: LB.TAG", "db", "Tags", "Tagged", &web_route_set_tags, false},
    {HTTP_PUT, "boards/{NAME}/members/{MEMBER}/tags", "replaceTags",
     "Set a member's tags, and take away those that are not named", "db", "Tags", "Tagged",
     &web_route_replace_tags, false},
    {HTTP_GET, "leagues/{NAME}", "getLeague", "A league's tiers, the highest first: LB.LEAGUE INFO",
     "db", NULL, "League", &web_route_league, false},
    {HTTP_POST, "leagues/{NAME}/results", "writeLeagueResults",
     "Write results in members' rooms: LB.LEAGUE ADD", "db hash Idempotency-Key", "Results",
     "LeagueResults", &web_route_league_results, false},
    {HTTP_GET, "leagues/{NAME}/members/{MEMBER}", "getLeagueMember",
     "A member's tier and room: LB.LEAGUE GET", "db", NULL, "LeagueMember",
     &web_route_league_member, false},
    {HTTP_DELETE, "leagues/{NAME}/members/{MEMBER}", "removeLeagueMember",
     "Take a member out: LB.LEAGUE REMOVE", "db", NULL, "Removed", &web_route_leave_league, false},
    {HTTP_GET, "server", "getServer", "Figures of the server", "", NULL, "Server",
     &web_route_server, false},
    {HTTP_GET, "server/events", "followServer", "event: server with Server, every second", "key",
     NULL, NULL, &web_route_server, true},
    {HTTP_GET, "server/history", "getHistory", "The last hour", "", NULL, "History",
     &web_route_history, false},
    {HTTP_GET, "slowlog", "getSlowlog", "The slow log", "count:1-128=128", NULL, "Slowlog",
     &web_route_slowlog, false},
    {HTTP_GET, "me", "getMe", "Who asks, and what the page may show", "", NULL, "Me", &web_route_me,
     false},
    {HTTP_POST, "stream-key", "makeStreamKey",
     "A key with which one stream of events begins, for programs that can send no header there", "",
     NULL, "StreamKey", &web_route_stream_key, false},
    {HTTP_POST, "login", "logIn", "Log in: sets a cookie", "", "Login", "Me", NULL, false},
    {HTTP_POST, "logout", "logOut", "End the login", "", NULL, "Me", NULL, false},
    {HTTP_GET, "openapi.json", "getOpenapi", "This document", "", NULL, "Document", NULL, false},
};
const unsigned web_operation_count = sizeof web_operations / sizeof web_operations[0];

static bool web_routes_match(const struct http_target *target, const char *path) {
    unsigned at = FIRST;
    for (; *path != '\0' && at < target->segment_count; at++) {
        struct bytes word = {.at = path, .size = strcspn(path, "/")};
        if (word.at[0] != '{' && !bytes_equal(word, target->segments[at])) {
            return false;
        }
        path += word.size + (path[word.size] == '/');
    }
    return *path == '\0' && at == target->segment_count;
}

const struct web_operation *web_find_operation(enum http_method method,
                                               const struct http_target *target) {
    for (unsigned i = 0; i < web_operation_count; i++) {
        const struct web_operation *operation = &web_operations[i];
        if (operation->method == (method == HTTP_HEAD ? HTTP_GET : method) &&
            web_routes_match(target, operation->path)) {
            return operation;
        }
    }
    return NULL;
}

unsigned web_find_methods(const struct http_target *target) {
    unsigned methods = 0;
    for (unsigned i = 0; i < web_operation_count; i++) {
        if (web_routes_match(target, web_operations[i].path)) {
            methods |= 1U << web_operations[i].method;
        }
    }
    return (methods >> HTTP_GET & 1) != 0 ? methods | 1U << HTTP_HEAD : methods;
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

bool web_query_parse(struct web_query *query, enum http_method method, const char *target) {
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
    const struct web_operation *operation = web_find_operation(method, &query->target);
    query->route = operation != NULL ? operation->route : NULL;
    if (query->route == NULL) {
        web_error(query, 404, "there is no such path: docs/web.md lists them");
        return false;
    }
    if (!web_number(query, "db", 0, REGISTRY_DATABASES - 1, 0, &database) ||
        (!query->route->writes && (!web_routes_read_data(query) || !web_routes_read_tags(query)))) {
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
