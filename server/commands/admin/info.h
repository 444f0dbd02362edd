/* Memory figures shared by INFO and MEMORY STATS, and INFO's text. */
#ifndef SERVER_INFO_H
#define SERVER_INFO_H

#include "server/clients/server.h"

struct info_memory {
    uint64_t used, peak;    /* heap bytes: codec/memory.h */
    uint64_t resident;      /* of the process; 0: unknown */
    uint64_t startup;       /* used when startup was complete */
    uint64_t clients;       /* sessions, their unfinished input and unsent output */
    uint64_t overhead;      /* startup and clients; the rest of used is boards and keys */
    double dataset_percent; /* boards and keys, as a share of what was allocated since startup */
    double fragmentation;   /* resident / used */
};
struct info_memory info_measure_memory(const struct server *server);

/* 0 if whole is 0. */
double info_percent(uint64_t part, uint64_t whole);

/* Print INFO's text. sections: as given to INFO; none: the default sections. */
void info_print(struct server *server, int64_t now_ms, const struct bytes *sections,
                uint32_t section_count, struct buffer *out);

#endif
