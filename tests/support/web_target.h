/* A question of the page for a target, as web.c takes it from the table of routes. */
#ifndef TESTS_SUPPORT_WEB_TARGET_H
#define TESTS_SUPPORT_WEB_TARGET_H

#include "server/web/web_query.h"

MUST_CHECK static inline bool web_target_parse(struct web_query *query, enum http_method method,
                                               const char *text) {
    char copy[HTTP_CONNECTION_SIZE];
    struct http_target target;
    const struct web_operation *operation = NULL;
    snprintf(copy, sizeof copy, "%s", text);
    if (http_request_parse_target(copy, &target) == NULL) {
        operation = web_find_operation(method, &target);
    }
    if (operation != NULL) {
        query->answer = query->web->answers[operation - web_operations];
    }
    return web_query_parse(query, operation != NULL ? operation->route : NULL, text);
}

#endif
