/* Reports a failed CHECK and aborts. */
#include "codec/check.h"

#include <stdio.h>
#include <stdlib.h>

static check_listener *failure_listener;

void check_set_listener(check_listener *listener) {
    failure_listener = listener;
}

bool check_passed(const char *wrong, const char **reason) {
    if (wrong != NULL) {
        *reason = wrong;
    }
    return wrong == NULL;
}

void check_failed(const char *claim, const char *file, int line) {
    check_listener *listener = failure_listener;
    fprintf(stderr, "%s:%d: claim does not hold: %s\n", file, line, claim);
    fflush(stderr);
    failure_listener = NULL; /* the listener may itself fail a CHECK */
    if (listener != NULL) {
        listener(claim, file, line);
    }
    abort();
}
