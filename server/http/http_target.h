/* What stands behind GET: the path and the query, taken apart. All of it may come from anybody.
 *
 *     /api/v1/boards/week%2F47/page?from=0&count=25
 *     segments "api" "v1" "boards" "week/47" "page", parameters from=0 count=25 */
#ifndef SERVER_HTTP_TARGET_H
#define SERVER_HTTP_TARGET_H

#include "codec/bytes.h"

enum { HTTP_SEGMENTS_MAX = 8, HTTP_PARAMETERS_MAX = 48 };

struct http_parameter {
    struct bytes name, value;
};
struct http_target {
    struct bytes segments[HTTP_SEGMENTS_MAX]; /* at least one; "/" is one that is empty */
    unsigned segment_count;
    struct http_parameter parameters[HTTP_PARAMETERS_MAX];
    unsigned parameter_count;
};

/* Take it apart in place: text is terminated, and decoded where it is; the target borrows it. Percent signs
 * must be followed by two hexadecimal digits; a plus in the query is a blank. NULL, or why it is refused. */
MUST_CHECK const char *http_target_parse(char *text, struct http_target *target);
/* A parameter's value, the first of that name; at NULL: there is none. */
struct bytes http_target_find(const struct http_target *target, const char *name);

#endif
