/* Assertions that can fail only through a bug. They stay enabled in release builds and are never
 * made about bytes a client sent. One claim per CHECK, so that the printed line says what broke. */
#ifndef CODEC_CHECK_H
#define CODEC_CHECK_H

#include <stdbool.h>

#define CHECK(claim)                                                                               \
    (__builtin_expect(!!(claim), 1) ? (void)0 : check_failed(#claim, __FILE__, __LINE__))

/* For results that must not be ignored. */
#define MUST_CHECK __attribute__((warn_unused_result))

/* Ends a validate function: *reason = wrong, unless wrong is NULL; returns whether it is NULL. */
MUST_CHECK bool check_passed(const char *wrong, const char **reason);

/* Callback for a failed check, called before the process aborts, in addition to the message on
 * stderr. NULL: no callback. */
typedef void check_handler(const char *claim, const char *file, int line);
void check_set_handler(check_handler *handler);
/* Print the claim with its file and line to stderr, call the handler, then abort. */
__attribute__((noreturn, cold)) void check_failed(const char *claim, const char *file, int line);

#endif
