/* The server's log: one line per event, "time level message key=value ...", to stdout or a file.
 * Each line tells an operator what to know or do; nothing per request. Control characters in
 * values come out as '?'. */
#ifndef SERVER_LOG_H
#define SERVER_LOG_H

#include <stdbool.h>

enum log_level { LOG_DEBUG, LOG_VERBOSE, LOG_NOTICE, LOG_WARNING };

/* path NULL or "": stdout. false: it cannot be opened (errno says why); the old one stays. */
bool log_open(const char *path, enum log_level level);
void log_set_level(enum log_level level);
/* SIGHUP: open the same path anew. */
bool log_reopen(void);
void log_close(void);

__attribute__((format(printf, 2, 3))) void log_write(enum log_level level, const char *format, ...);

#endif
