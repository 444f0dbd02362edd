/* Failures by address, in a table of sets of four. See auth_guard.h. */
#include "server/acl/auth_guard.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "server/sessions/server.h"

/* ---- addresses ---- */

static struct auth_guard_address auth_guard_of_v4(uint32_t address) {
    return (struct auth_guard_address){.high = 4, .low = address};
}

struct auth_guard_address auth_guard_address(const char *text) {
    const struct auth_guard_address of_unix = {.high = 0, .low = 0};
    char host[INET6_ADDRSTRLEN];
    unsigned char bytes[sizeof(struct in6_addr)];
    bool is_v6 = text[0] == '[';
    const char *end = strrchr(text, is_v6 ? ']' : ':');
    text += is_v6;
    if (end == NULL || end < text || (size_t)(end - text) >= sizeof host) {
        return of_unix;
    }
    memcpy(host, text, (size_t)(end - text));
    host[end - text] = '\0';
    struct in_addr v4;
    if (!is_v6) {
        return inet_pton(AF_INET, host, &v4) == 1 ? auth_guard_of_v4(ntohl(v4.s_addr)) : of_unix;
    }
    if (inet_pton(AF_INET6, host, bytes) != 1) {
        return of_unix;
    }
    static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};
    if (memcmp(bytes, mapped, sizeof mapped) == 0) {
        memcpy(&v4, bytes + sizeof mapped, sizeof v4);
        return auth_guard_of_v4(ntohl(v4.s_addr));
    }
    struct auth_guard_address network = {.high = 6};
    memcpy(&network.low, bytes, sizeof network.low);
    return network;
}

/* ---- the table ---- */

/* Index of the first of the address's places. The mixing is that of splitmix64. */
static uint32_t auth_guard_first_place(const struct auth_guard *guard,
                                       struct auth_guard_address address) {
    uint64_t hash = (address.low ^ guard->seed) + address.high * 0x9e3779b97f4a7c15U;
    hash = (hash ^ hash >> 30) * 0xbf58476d1ce4e5b9U;
    hash = (hash ^ hash >> 27) * 0x94d049bb133111ebU;
    hash ^= hash >> 31;
    return (uint32_t)(hash % (AUTH_GUARD_PLACES / AUTH_GUARD_WAYS)) * AUTH_GUARD_WAYS;
}

/* The index of its place; AUTH_GUARD_PLACES: it has no failures. */
static uint32_t auth_guard_find_place(const struct auth_guard *guard,
                                      struct auth_guard_address address) {
    uint32_t first = auth_guard_first_place(guard, address);
    for (uint32_t i = first; i < first + AUTH_GUARD_WAYS; i++) {
        const struct auth_guard_entry *entry = &guard->entries[i];
        if (entry->failures > 0 && entry->address.high == address.high &&
            entry->address.low == address.low) {
            return i;
        }
    }
    return AUTH_GUARD_PLACES;
}

/* NULL: it has no failures. */
static struct auth_guard_entry *auth_guard_find(struct auth_guard *guard,
                                                struct auth_guard_address address) {
    uint32_t place = auth_guard_find_place(guard, address);
    return place < AUTH_GUARD_PLACES ? &guard->entries[place] : NULL;
}

/* ---- names ---- */

/* Never 0. */
static uint64_t auth_guard_hash_name(const struct auth_guard *guard, struct bytes name) {
    return XXH3_64bits_withSeed(name.at, name.size, guard->seed) | 1;
}

static bool auth_guard_is_right_name(const struct auth_guard_entry *entry, uint64_t name) {
    bool is_right = false;
    for (int i = 0; i < AUTH_GUARD_RIGHT; i++) {
        is_right |= entry->right_names[i] == name;
    }
    return is_right;
}

/* ---- failures ---- */

static bool auth_guard_is_old(const struct auth_guard_entry *entry, int64_t now_ms) {
    return now_ms - entry->failed_at_ms >= AUTH_GUARD_FORGET_MS;
}

/* ---- delays ---- */

int64_t auth_guard_delay_ms(const struct auth_guard *guard, const struct settings *settings,
                            struct auth_guard_address address, struct bytes name, int64_t now_ms) {
    uint32_t place = auth_guard_find_place(guard, address);
    if (place == AUTH_GUARD_PLACES || auth_guard_is_old(&guard->entries[place], now_ms) ||
        auth_guard_is_right_name(&guard->entries[place], auth_guard_hash_name(guard, name))) {
        return 0;
    }
    int64_t delay_ms = settings->auth_delay_ms;
    int64_t doublings = (int64_t)guard->entries[place].failures - settings->auth_delay_after;
    if (doublings < 0) {
        return 0;
    }
    for (; doublings > 0 && delay_ms < settings->auth_delay_max_ms && delay_ms > 0; doublings--) {
        delay_ms *= 2;
    }
    return delay_ms < settings->auth_delay_max_ms ? delay_ms : settings->auth_delay_max_ms;
}

int64_t auth_guard_retry_ms(const struct auth_guard *guard, const struct settings *settings,
                            struct auth_guard_address address, struct bytes name, int64_t now_ms) {
    int64_t delay_ms = auth_guard_delay_ms(guard, settings, address, name, now_ms);
    if (delay_ms == 0) {
        return 0;
    }
    int64_t left_ms =
        guard->entries[auth_guard_find_place(guard, address)].failed_at_ms + delay_ms - now_ms;
    return left_ms > 0 ? left_ms : 0;
}

int64_t auth_guard_begin_wait(struct auth_guard *guard, const struct settings *settings,
                              struct auth_guard_address address, struct bytes name,
                              int64_t now_ms) {
    int64_t delay_ms = auth_guard_delay_ms(guard, settings, address, name, now_ms);
    struct auth_guard_entry *entry = auth_guard_find(guard, address);
    if (delay_ms == 0 || entry == NULL) {
        return 0;
    }
    return delay_ms * (1 + entry->waiting++ / AUTH_GUARD_ABREAST);
}

void auth_guard_end_wait(struct auth_guard *guard, struct auth_guard_address address) {
    struct auth_guard_entry *entry = auth_guard_find(guard, address);
    if (entry != NULL && entry->waiting > 0) {
        entry->waiting--;
    }
}

uint32_t auth_guard_fail(struct auth_guard *guard, struct auth_guard_address address,
                         struct bytes name, int64_t now_ms) {
    struct auth_guard_entry *entry = auth_guard_find(guard, address);
    uint64_t hash = auth_guard_hash_name(guard, name);
    if (entry == NULL) {
        /* A free place, or that of the address that failed longest ago. */
        struct auth_guard_entry *each = &guard->entries[auth_guard_first_place(guard, address)];
        entry = each;
        for (int i = 0; i < AUTH_GUARD_WAYS && entry->failures > 0; i++, each++) {
            bool is_better = each->failures == 0 || each->failed_at_ms < entry->failed_at_ms;
            entry = is_better ? each : entry;
        }
        *entry = (struct auth_guard_entry){.address = address};
    }
    if (auth_guard_is_old(entry, now_ms)) {
        entry->failures = entry->run = 0;
    }
    if (hash != entry->last_name) {
        entry->last_name = hash;
        entry->run = 0;
    }
    for (int i = 0; i < AUTH_GUARD_RIGHT; i++) {
        if (entry->right_names[i] == hash) {
            entry->right_names[i] = 0;
        }
    }
    uint32_t more = entry->failures < UINT32_MAX;
    entry->run += more;
    entry->failures += more;
    entry->failed_at_ms = now_ms;
    guard->failure_count++;
    return entry->failures;
}

void auth_guard_pass(struct auth_guard *guard, struct auth_guard_address address,
                     struct bytes name) {
    struct auth_guard_entry *entry = auth_guard_find(guard, address);
    if (entry == NULL) {
        return;
    }
    uint64_t hash = auth_guard_hash_name(guard, name);
    if (hash == entry->last_name) {
        entry->failures -= entry->run;
        entry->run = 0;
    }
    if (entry->failures == 0) {
        *entry = (struct auth_guard_entry){.failures = 0};
    } else {
        if (!auth_guard_is_right_name(entry, hash)) {
            memmove(entry->right_names + 1, entry->right_names,
                    sizeof entry->right_names - sizeof entry->right_names[0]);
            entry->right_names[0] = hash;
        }
    }
}

void auth_guard_note(struct server *server, const struct session *session, bool is_right,
                     struct bytes name, struct bytes shown) {
    struct auth_guard *guard = &server->acl.guard;
    int64_t now_ms = server->clock.monotonic_ms;
    if (is_right && guard->failure_count == 0) {
        return;
    }
    struct auth_guard_address address = auth_guard_address(session->address);
    if (is_right) {
        auth_guard_pass(guard, address, name);
        return;
    }
    char details[64];
    uint32_t failures = auth_guard_fail(guard, address, name, now_ms);
    int64_t delay_ms = auth_guard_delay_ms(guard, &server->settings, address, name, now_ms);
    snprintf(details, sizeof details, "failures=%u delay_ms=%lld%s", failures, (long long)delay_ms,
             session->id == 0 ? " by=http" : "");
    struct audit_who who = server_audit_who(session);
    who.user = shown;
    server_audit_write_refused(server, AUDIT_AUTH, who, "auth failed", details);
}

bool auth_guard_allows_queued(const struct server *server, const struct session *session,
                              struct bytes name) {
    return !session->transaction.is_running ||
           auth_guard_delay_ms(&server->acl.guard, &server->settings,
                               auth_guard_address(session->address), name,
                               server->clock.monotonic_ms) == 0;
}

bool auth_guard_validate(const struct auth_guard *guard, const char **reason) {
    const char *wrong = NULL;
    for (uint32_t i = 0; i < AUTH_GUARD_PLACES; i++) {
        const struct auth_guard_entry *entry = &guard->entries[i];
        if (entry->failures == 0) {
            wrong = entry->waiting > 0 ? "an attempt waits for an address without failures" : wrong;
            continue;
        }
        uint32_t first = auth_guard_first_place(guard, entry->address);
        if (i - first >= AUTH_GUARD_WAYS) {
            wrong = "an address is not in one of its places";
        } else if (entry->run > entry->failures) {
            wrong = "more failures for one name than in all";
        } else if (auth_guard_find_place(guard, entry->address) != i) {
            wrong = "an address has two places";
        }
    }
    return check_passed(wrong, reason);
}
