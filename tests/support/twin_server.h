/* The naive twin of the whole server: databases, keys, boards, expiry and commands, written in the
 * plainest way. A database is an array of keys, a board an array of members in rank order, every
 * search goes from end to end; a score is a wide integer, a reach time the clock's reading, and
 * arrival a number that only grows. It knows nothing of packed keys, layouts, maps or skiplists.
 *
 * It takes its memory from malloc directly, so that it is not among the live allocations. */
#ifndef TESTS_SUPPORT_TWIN_SERVER_H
#define TESTS_SUPPORT_TWIN_SERVER_H

#include "skiplist/keyspace/registry.h"

/* Wider than any score; not ISO C, but both compilers have it. */
__extension__ typedef __int128 twin_wide;

/* A layout as people would tell it: its lead field and its time. */
struct twin_layout {
    const char *prefix; /* keys whose names begin so have it; the last one of a list: "" */
    const char *text;   /* for the configuration of the real server */
    int bits, scale;
    bool is_signed, is_ascending;
    int time_bits; /* 0: none */
    bool is_latest;
    int64_t unit_us, start_us;
};

struct twin_member {
    struct bytes name;  /* its own copy */
    twin_wide score;    /* in units of 10^-scale */
    int64_t reached_us; /* the clock when the score was last changed */
    uint64_t arrival;
};

struct twin_key {
    struct bytes name; /* its own copy */
    uint32_t database;
    const struct twin_layout *layout;
    struct twin_member *members; /* best first */
    uint32_t count, capacity;
    bool has_expiry;
    int64_t expire_at_ms;
};

struct twin_server {
    const struct twin_layout *layouts; /* ended by one whose prefix is "" */
    struct twin_key **keys;
    uint32_t key_count, key_capacity;
    uint64_t arrivals;
    int64_t now_us, now_ms; /* of the command that runs */
    uint32_t database;      /* of the client that runs it */
    int protocol;
    char *reply; /* terminated; what the real server must answer */
    size_t reply_size, reply_capacity;
};

/* A number in units of 10^-scale, shortest, not terminated; out: 64 bytes. Returns its size. */
size_t twin_print_decimal(char *out, twin_wide number, int scale);

void twin_server_init(struct twin_server *twin, const struct twin_layout *layouts);
void twin_server_deinit(struct twin_server *twin);

/* Run one command: reply says what must be answered, byte for byte; an error that begins with
 * "-ERR ~" may have any text. The number of arguments is right for the command. */
void twin_server_run(struct twin_server *twin, const struct bytes *args, uint32_t count,
                     int64_t now_us, uint32_t database, int protocol);

/* Forget expired keys. */
void twin_server_expire(struct twin_server *twin, int64_t now_ms);
/* Do both hold the same keys with the same expiry, and the same members in the same order with the
 * same scores and reach times? Nothing may have expired. difference: what is not the same. */
bool twin_server_equals(const struct twin_server *twin, const struct registry *registry,
                        int64_t now_ms, char *difference, size_t size);

#endif
