/* The server's log: one line per event, "time level message key=value ...", to stdout or a file.
 * Each line tells an operator what to know or do; requests are not logged. Control characters in
 * values are written as '?'. */
#ifndef SERVER_LOG_H
#define SERVER_LOG_H

#include <stdbool.h>
#include <stddef.h>

enum log_level { LOG_DEBUG, LOG_VERBOSE, LOG_NOTICE, LOG_WARNING };

/* path NULL or "": stdout. false: it cannot be opened (errno says why); the old log stays open. */
bool log_open(const char *path, enum log_level level);
void log_set_level(enum log_level level);
/* SIGHUP: reopen the same path. */
bool log_reopen(void);
void log_close(void);

/* Write one line unchanged. Async-signal-safe. */
void log_write_line(const char *line, size_t size);
__attribute__((format(printf, 2, 3))) void log_write(enum log_level level, const char *format, ...);

#endif
