/* In the place of server/system/log.c: lines go to the host's log. */
#include "server/system/log.h"

#include <stdarg.h>
#include <stdio.h>

#include "server/module/module.h"

void log_write(enum log_level level, const char *format, ...) {
    enum { LINE_MAX = 1024 };
    static const char *const levels[] = {"debug",   "verbose", "notice",
                                         "warning", "warning", "notice"};
    char line[LINE_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    host_Log(module.timer_context, levels[level], "%s", line);
}
