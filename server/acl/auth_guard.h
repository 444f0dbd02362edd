/* The guard against guessing passwords: failures counted by address, and how long that address's
 * next attempt waits before it is looked at (server/loop/connection.c holds the client).
 *
 *     failures    1  2  3  4  5      6      7      8      ...
 *     delay       0  0  0  0  0.1 s  0.2 s  0.4 s  0.8 s  ... auth-delay-max
 *
 * The answer is not known before the wait is over, so nothing is learned by not waiting for it. Of
 * one address some attempts wait side by side; further ones wait in turn, so many connections do not
 * guess faster. Ten minutes without a failure forget the address.
 *
 * A right password forgets the last run of failures if they were for the same name, so that who has
 * mistyped a password waits no longer. It forgets no failures for other names: a login of one's own
 * does not help to guess another's password. The names that were right last wait for nothing until
 * they fail, so a program with a wrong password does not hold back the others on its machine.
 *
 * An address is an IPv4 address, a /64 of IPv6, or "a Unix socket". The table has a fixed number of
 * places, each address four where it may be; where all are taken, the one that has failed longest
 * ago makes room. Time is monotonic. */
#ifndef SERVER_AUTH_GUARD_H
#define SERVER_AUTH_GUARD_H

#include <stdbool.h>
#include <stdint.h>

#include "codec/bytes.h"

struct server;
struct session;
struct settings;

enum {
    AUTH_GUARD_PLACES = 4096, /* a power of two */
    AUTH_GUARD_WAYS = 4,
    AUTH_GUARD_ABREAST = 8, /* attempts of an address that wait side by side */
    AUTH_GUARD_RIGHT = 4,   /* names of an address that wait for nothing */
    AUTH_GUARD_FORGET_MS = 600000,
};

struct auth_guard_address {
    uint64_t high, low;
};
struct auth_guard_entry {
    struct auth_guard_address address;
    uint32_t failures; /* 0: the place is free */
    uint32_t waiting;  /* attempts that are held back */
    uint32_t run;      /* failures for last_name, since another name failed */
    uint64_t last_name;
    uint64_t right_names[AUTH_GUARD_RIGHT]; /* hashes, the newest first; 0: none */
    int64_t failed_at_ms;
};
struct auth_guard {
    uint64_t seed;
    uint64_t failure_count; /* since the start; 0: no address has to wait */
    struct auth_guard_entry entries[AUTH_GUARD_PLACES];
};

/* Of a session's address: "127.0.0.1:50412", "[::1]:50412"; anything else is a Unix socket. */
struct auth_guard_address auth_guard_address(const char *text);
/* How long the address's next attempt for this name is to wait, in milliseconds; 0: not at all. */
int64_t auth_guard_delay_ms(const struct auth_guard *guard, const struct settings *settings,
                            struct auth_guard_address address, struct bytes name, int64_t now_ms);
/* Where an attempt cannot wait (HTTP): for how long the address must not try, from its last failure on. */
int64_t auth_guard_retry_ms(const struct auth_guard *guard, const struct settings *settings,
                            struct auth_guard_address address, struct bytes name, int64_t now_ms);
/* An attempt begins to wait; returns for how long. end it once, when it is looked at or is gone. */
int64_t auth_guard_begin_wait(struct auth_guard *guard, const struct settings *settings,
                              struct auth_guard_address address, struct bytes name, int64_t now_ms);
void auth_guard_end_wait(struct auth_guard *guard, struct auth_guard_address address);
/* A password was wrong; returns how many of this address now. */
uint32_t auth_guard_fail(struct auth_guard *guard, struct auth_guard_address address,
                         struct bytes name, int64_t now_ms);
/* A password was right. */
void auth_guard_pass(struct auth_guard *guard, struct auth_guard_address address,
                     struct bytes name);

/* What the two above mean for a session that gave a password, and the audit log's line. shown: the
 * name, if it is no secret. */
void auth_guard_note(struct server *server, const struct session *session, bool is_right,
                     struct bytes name, struct bytes shown);
/* Within EXEC nothing can wait: may a password be looked at there? */
MUST_CHECK bool auth_guard_allows_queued(const struct server *server, const struct session *session,
                                         struct bytes name);

MUST_CHECK bool auth_guard_validate(const struct auth_guard *guard, const char **reason);

#endif
