/* Reports a failed CHECK and aborts. */
#include "codec/check.h"

#include <stdio.h>
#include <stdlib.h>

static check_handler *failure_handler;

void check_set_handler(check_handler *handler) {
    failure_handler = handler;
}

bool check_passed(const char *wrong, const char **reason) {
    if (wrong != NULL) {
        *reason = wrong;
    }
    return wrong == NULL;
}

void check_failed(const char *claim, const char *file, int line) {
    check_handler *handler = failure_handler;
    fprintf(stderr, "%s:%d: claim does not hold: %s\n", file, line, claim);
    fflush(stderr);
    failure_handler = NULL; /* the handler may itself fail a CHECK */
    if (handler != NULL) {
        handler(claim, file, line);
    }
    abort();
}
