/* A line of the log as one JSON object.
 *
 *     ready version=1.0.0 pid=7 dir="a b"
 *     {"time":"...","level":"notice","message":"ready","version":"1.0.0","pid":7,"dir":"a b"}
 *
 * name=value and name="value" become fields, the other words are the message. A value without
 * quotes that is a decimal number is one in JSON, too. Bytes that are no UTF-8 become U+FFFD, control
 * characters '?': the result is always valid. */
#ifndef SERVER_LOG_JSON_H
#define SERVER_LOG_JSON_H

#include <stddef.h>

#include "codec/bytes.h"

/* Room for a line of this many bytes. */
#define LOG_JSON_MAX(size) (3 * (size) + 128)

/* Print without a line end; out has room for LOG_JSON_MAX(text.size). Returns the size.
 * Async-signal-safe. */
size_t log_json_print(char *out, struct bytes time, const char *level, struct bytes text);

#endif
