/* In the place of server/system/log.c and digest.c. */
#include <stdarg.h>
#include <stdio.h>

#include "server/module/module.h"
#include "server/system/digest.h"
#include "server/system/log.h"

/* Lines go to the host's log. */
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

/* Users and their passwords are the host's, and a `user` line is not among what the module reads. So nobody
 * calls this, and the module needs no OpenSSL. */
void digest_print(struct bytes text, char out[DIGEST_TEXT_SIZE]) {
    (void)text;
    (void)out;
    CHECK(false); /* a module has no passwords */
}
