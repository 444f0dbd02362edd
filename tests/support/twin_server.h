/* The naive twin of the whole server: databases, keys, boards, expiry and commands, written in the
 * plainest way. A database is an array of keys, a board an array of members in rank order, every
 * search goes from end to end; a value is a wide integer, a reach time whole units since START, and
 * arrival a number that only grows. It knows nothing of packed keys, maps or skiplists.
 *
 * It takes its memory from malloc directly, so that it is not among the live allocations. */
#ifndef TESTS_SUPPORT_TWIN_SERVER_H
#define TESTS_SUPPORT_TWIN_SERVER_H

#include "skiplist/keyspace/registry.h"

/* Wider than any score; not ISO C, but both compilers have it. */
__extension__ typedef __int128 twin_wide;

enum { TWIN_FIELDS = 4 };

struct twin_field {
    int bits, scale;
    bool is_signed, is_ascending;
};

/* A layout as people would tell it. */
struct twin_layout {
    const char *prefix; /* keys whose names begin so have it; the last one of a list: "" */
    const char *text;   /* for the configuration of the real server */
    struct twin_field fields[TWIN_FIELDS];
    int field_count;
    int time_bits; /* 0: none */
    bool is_latest;
    int64_t unit_us, start_us;
    uint32_t cap; /* members; 0: any number */
    bool keeps_best;
};

struct twin_member {
    struct bytes name;             /* its own copy */
    twin_wide values[TWIN_FIELDS]; /* in units of 10^-scale */
    int64_t unit;                  /* of time since START; 0 without TIME */
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

/* Run one command: reply says what must be answered. The number of arguments is right for the
 * command. */
void twin_server_run(struct twin_server *twin, const struct bytes *args, uint32_t count,
                     int64_t now_us, uint32_t database, int protocol);
/* Is that the reply, byte for byte? An error may have any text from a "~" on. */
bool twin_server_expects(const struct twin_server *twin, const char *answered);

/* Forget expired keys. */
void twin_server_expire(struct twin_server *twin, int64_t now_ms);
/* Do both hold the same keys with the same expiry, and the same members in the same order with the
 * same values and reach times, and is the registry valid? Nothing may have expired. difference:
 * what is wrong. */
bool twin_server_equals(const struct twin_server *twin, const struct registry *registry,
                        int64_t now_ms, char *difference, size_t size);

#endif
