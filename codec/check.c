/* The one way out when a claim about ourselves is wrong. */
#include "codec/check.h"

#include <stdio.h>
#include <stdlib.h>

void check_failed(const char *claim, const char *file, int line) {
    fprintf(stderr, "%s:%d: claim does not hold: %s\n", file, line, claim);
    fflush(stderr);
    abort();
}
