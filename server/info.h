/* Figures that INFO and MEMORY STATS share. INFO's text itself is server_print_info (server.h). */
#ifndef SERVER_INFO_H
#define SERVER_INFO_H

#include "server/server.h"

struct info_memory {
    uint64_t used, peak;    /* heap bytes: codec/memory.h */
    uint64_t resident;      /* of the process; 0 where the system does not say */
    uint64_t startup;       /* used once the server was ready */
    uint64_t clients;       /* sessions, their unfinished input and unsent output */
    uint64_t overhead;      /* startup and clients; the rest of used is boards and keys */
    double dataset_percent; /* boards and keys, of what was taken since the start */
    double fragmentation;   /* resident / used */
};
struct info_memory info_measure_memory(const struct server *server);

/* 0 when whole is. */
double info_percent(uint64_t part, uint64_t whole);

#endif
