/* The server's log: one line per event, to stdout or a file, and to syslog where asked.
 *
 *     2026-11-21T10:59:01.250000Z notice listening address="127.0.0.1:6379"
 *     {"time":"2026-11-21T10:59:01.250Z","level":"notice","message":"listening",
 *      "address":"127.0.0.1:6379"}                       (is_json; one line)
 *
 * Each line tells an operator what to know or do; requests are not logged. Control characters in
 * values are written as '?'.
 *
 * A line never waits for its reader: what a pipe, a terminal or syslog has no room for is dropped,
 * and the next line that can be written is preceded by one that counts them. */
#ifndef SERVER_LOG_H
#define SERVER_LOG_H

#include <stdbool.h>
#include <stddef.h>

#include "codec/bytes.h"

enum log_level {
    LOG_DEBUG,
    LOG_VERBOSE,
    LOG_NOTICE,
    LOG_WARNING,
    LOG_NOTHING, /* as a setting: no line is written */
    LOG_AUDIT,   /* of a line: who did what; written with every level but LOG_NOTHING */
};

/* path NULL or "": stdout; if that is systemd's journal (JOURNAL_STREAM), lines begin with their priority, "<4>",
 * which journald takes off. false: it cannot be opened (errno says why); the old log stays open. */
bool log_open(const char *path, enum log_level level);
/* Is it connected to systemd's journal? */
bool log_is_journal(int fd);
void log_set_level(enum log_level level);
/* JSON lines instead of text. */
void log_set_json(bool is_json);
/* Send each line to syslog, too. facility: 1 is user, 16 to 23 are local0 to local7. ident is
 * copied, as far as it has room. */
void log_use_syslog(const char *ident, int facility);
/* SIGHUP: reopen the same path, and syslog. */
bool log_reopen(void);
void log_close(void);

__attribute__((format(printf, 2, 3))) void log_write(enum log_level level, const char *format, ...);
/* Write text as one line, whatever the level is. Async-signal-safe. */
void log_write_from_signal(enum log_level level, const char *text, size_t size);

/* A value to stand between quotes in a line: '"', '\\' and control characters as \xHH, at most
 * LOG_QUOTED_MAX bytes, terminated. */
enum { LOG_QUOTED_MAX = 128 };
struct log_quoted {
    char text[LOG_QUOTED_MAX + 1];
};
struct log_quoted log_quote(struct bytes text);
/* The same of a text that may be longer, such as an error: into room bytes at out, which is returned. */
const char *log_quote_into(char *out, size_t room, struct bytes text);

/* ---- a line as a JSON object ----
 *
 *     ready version=1.0.0 pid=7 dir="a b"
 *     {"time":"...","level":"notice","message":"ready","version":"1.0.0","pid":7,"dir":"a b"}
 *
 * name=value and name="value" become fields, the other words are the message. A value without
 * quotes that is a decimal number is one in JSON, too. Bytes that are no UTF-8 become U+FFFD, control
 * characters '?': the result is always valid. */

/* Room for a line of this many bytes. */
#define LOG_JSON_MAX(size) (3 * (size) + 128)

/* Print without a line end; out has room for LOG_JSON_MAX(text.size). Returns the size.
 * Async-signal-safe. */
size_t log_json_print(char *out, struct bytes time, const char *level, struct bytes text);

#endif
