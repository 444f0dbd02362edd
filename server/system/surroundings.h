/* What the system around the server should be like: differences that cost speed, memory or clients
 * are logged at start, each with what to do. */
#ifndef SERVER_SURROUNDINGS_H
#define SERVER_SURROUNDINGS_H

#include <stdint.h>

struct surroundings {
    int64_t tcp_backlog; /* the settings of these names */
    uint64_t maxmemory;
    const char *root; /* what is in front of /proc and /sys; NULL: nothing */
};

/* After memory_init. */
void surroundings_warn(const struct surroundings *wanted);

#endif
