/* What all files of the module share: its state, its clock, and, in the place of server/system/log.c and digest.c, the
 * host's log and no passwords. */
#include "server/module/module.h"

#include <stdarg.h>
#include <stdio.h>

#include "server/system/digest.h"
#include "server/system/log.h"

struct module module;

#ifdef MODULE_TEST
static int64_t test_us, test_monotonic_ms;

void module_set_test_time(int64_t now_us, int64_t monotonic_ms) {
    test_us = now_us;
    test_monotonic_ms = monotonic_ms;
}

#endif

void module_update_time(void) {
    struct clock *clock = &module.server.clock;
#ifdef MODULE_TEST
    if (test_us != 0) {
        clock->now_us = test_us;
        clock->now_ms = test_us / 1000;
        clock->monotonic_ms = test_monotonic_ms;
        return;
    }
#endif
    clock_update(clock);
}

void module_raise_clock(struct host_context *ctx, int64_t time_us) {
    struct clock *clock = &module.server.clock;
    bool is_believed = host_is_trusted(ctx);
    module_update_time();
    if (is_believed || time_us - (clock->now_us - clock->lead_us) < CLOCK_STEP_US) {
        clock_raise(clock, time_us);
    }
}

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
