/* The handshake: one line answers the other. See master_link.h. */
#include <inttypes.h>
#include <stdio.h>

#include "server/durability/file_format.h"
#include "server/replication/failover.h"
#include "server/replication/history.h"
#include "server/replication/master_link_parts.h"
#include "server/system/log.h"

enum {
    LINE_MAX_SIZE = 1024,   /* of an answer */
    REGISTER_AGAIN_MS = 20, /* between two REPLCONF PRESENT */
};

static void master_link_greet_say_auth(struct master_link *link) {
    const struct settings *settings = &link->server->settings;
    const char *const texts[] = {"AUTH", settings->masteruser, settings->masterauth};
    const char *const short_texts[] = {"AUTH", settings->masterauth};
    bool has_user = settings->masteruser != NULL && settings->masteruser[0] != '\0';
    master_link_say(link, has_user ? texts : short_texts, has_user ? 3 : 2);
}

/* Ask for what follows the last group, if that is anything that the master can know. */
static void master_link_greet_say_sync(struct master_link *link) {
    const struct replication *replication = replication_of(link);
    struct persistence *persistence = link->server->persistence;
    struct history history;
    char number[24];
    bool is_known = history_read(link->server->registry, &history) &&
                    strcmp(history.id, replication->id) == 0 && !link->server->durability.has_gap &&
                    replication->is_whole && !link->wants_copy;
    bool is_named = is_known || link->wants_failover;
    link->next_group = persistence_last_group(persistence) + 1;
    snprintf(number, sizeof number, "%" PRIu64, is_named ? link->next_group : 0);
    const char *const texts[] = {"LB.SYNC", is_named ? replication->id : "?", number,
                                 link->pull_port != 0 ? "PULL" : "FAILOVER",
                                 replication->sync.term.text};
    master_link_say(link, texts, link->pull_port != 0 ? 5 : link->wants_failover ? 4 : 3);
}

/* What this node has voted for, and how far it is (quorum.h). */
static void master_link_greet_say_registration(struct master_link *link) {
    struct sync_registration said;
    char node[TERM_NODE_SIZE + 1], number[24];
    quorum_describe(link->quorum, &said);
    snprintf(node, sizeof node, "%016" PRIx64, said.node);
    snprintf(number, sizeof number, "%" PRIu64, said.position.group);
    const char *const texts[] = {"REPLCONF",
                                 "PRESENT",
                                 node,
                                 said.voted.text,
                                 said.position.term.text,
                                 number,
                                 said.has_lost_durability ? "1" : "0"};
    master_link_say(link, texts, sizeof texts / sizeof texts[0]);
}

static void master_link_greet_say_line(struct master_link *link);

void master_link_greet(struct master_link *link) {
    link->line = LINK_SAYS_PING;
    master_link_greet_say_line(link);
}

void master_link_go_on_with_redis(struct master_link *link, struct redis_receive *redis) {
    link->redis = redis;
    if (link->state == LINK_GREETING && link->line == LINK_SAYS_VERSION) {
        link->line = LINK_SAYS_REDIS_VERSION;
        master_link_greet_say_line(link);
    }
}

static void master_link_greet_say_next(struct master_link *link);

static bool master_link_greet_begins_with(struct bytes text, const char *wanted) {
    size_t size = strlen(wanted);
    return text.size >= size && memcmp(text.at, wanted, size) == 0;
}

/* "+LEADERBOARD 1"; the error of a Redis, which does not know the option; or another error, for
 * which the next attempt asks again. */
static void master_link_greet_take_version(struct master_link *link, struct bytes answer) {
    uint64_t format;
    if (master_link_greet_begins_with(answer, "-" FILE_FORMAT_REFUSAL)) {
        master_link_fail_with_answer(link, "the master refuses", answer);
        return;
    }
    if (master_link_redis_is_refusal(answer) && !link->wants_failover) {
        master_link_redis_found(link);
        return;
    }
    if (!master_link_greet_begins_with(answer, "+LEADERBOARD ")) {
        master_link_fail_with_answer(link, "the master answers REPLCONF leaderboard", answer);
        return;
    }
    if (link->redis != NULL) {
        link->has_found_leaderboard = true;
        master_link_wake(link);
        return;
    }
    struct bytes number = {.at = answer.at + sizeof "+LEADERBOARD " - 1,
                           .size = answer.size - (sizeof "+LEADERBOARD " - 1)};
    if (!bytes_parse_u64(number, &format) || !file_format_is_read(format)) {
        master_link_fail(link, "the master's format is %.*s, this server's %d: %s",
                         (int)(number.size < 20 ? number.size : 20), number.at, (int)FILE_FORMAT,
                         FILE_FORMAT_ADVICE);
        return;
    }
    master_link_greet_say_next(link);
}

static void master_link_greet_on_register_again(uv_timer_t *timer) {
    struct master_link *link = timer->data;
    if (link->state == LINK_GREETING && link->line == LINK_SAYS_REGISTRATION) {
        server_update_time(link->server);
        master_link_greet_say_line(link);
    }
}

static void master_link_greet_take_advice(struct master_link *link, struct bytes answer) {
    char reason[REPLICATION_ERROR_MAX];
    switch (quorum_take_answer(link->quorum, answer, reason)) {
    case QUORUM_GO_ON:
        master_link_greet_say_next(link);
        return;
    case QUORUM_WAIT:
        (void)uv_timer_start(&link->timer, master_link_greet_on_register_again, REGISTER_AGAIN_MS,
                             0);
        return;
    case QUORUM_REFUSES:
        break;
    }
    master_link_fail(link, "%s", reason);
}

static void master_link_greet_take_sync(struct master_link *link, struct bytes answer) {
    enum { CONTINUE_SIZE = sizeof "+CONTINUE " - 1, FULL_SIZE = sizeof "+FULL " - 1 };
    struct bytes rest = {.at = NULL};
    bool is_continued = master_link_greet_begins_with(answer, "+CONTINUE ");
    if (link->wants_failover && bytes_equal(answer, BYTES("+AGREED"))) {
        link->wants_failover = false;
        failover_end(link->server, true);
        master_link_fail(link, "the new master is not open yet");
        master_link_hurry(link);
        return;
    }
    if (!is_continued && !master_link_greet_begins_with(answer, "+FULL ")) {
        master_link_fail_with_answer(link, "the master refuses", answer);
        return;
    }
    size_t skipped = is_continued ? CONTINUE_SIZE : FULL_SIZE;
    rest = (struct bytes){.at = answer.at + skipped, .size = answer.size - skipped};
    if (!history_is_id(rest)) {
        master_link_fail_with_answer(link, "the master's answer is not valid", answer);
        return;
    }
    if (link->quorum != NULL && !quorum_may_take(link->quorum, rest)) {
        master_link_fail(link, "the master's term has changed");
        return;
    }
    if (link->wants_failover) {
        link->wants_failover = false;
        failover_end(link->server, true);
    }
    if (is_continued) {
        master_link_continue(link, rest);
    } else {
        master_link_begin_copy(link);
    }
}

/* ---- the lines ---- */

static void master_link_greet_say_ping(struct master_link *link) {
    master_link_say(link, (const char *const[]){"PING"}, 1);
}

static void master_link_greet_take_ping(struct master_link *link, struct bytes answer) {
    static const char of_lost_durability[] = "-" SYNC_PING_ERROR;
    static const char *const fine[] = {"+", "-NOAUTH", "-NOPERM", "-ERR operation not permitted",
                                       of_lost_durability};
    for (size_t i = 0; i < sizeof fine / sizeof fine[0]; i++) {
        if (master_link_greet_begins_with(answer, fine[i])) {
            master_link_greet_say_next(link);
            return;
        }
    }
    master_link_fail_with_answer(link, "the master answers PING", answer);
}

static bool master_link_greet_has_auth(const struct master_link *link) {
    const char *auth = link->server->settings.masterauth;
    return auth != NULL && auth[0] != '\0';
}

static void master_link_greet_take_auth(struct master_link *link, struct bytes answer) {
    if (master_link_greet_begins_with(answer, "+")) {
        master_link_greet_say_next(link);
    } else {
        master_link_fail_with_answer(link, "the master does not take masterauth", answer);
    }
}

static void master_link_greet_say_port(struct master_link *link) {
    char number[24];
    const struct settings *settings = &link->server->settings;
    int64_t port = settings->replica_announce_port != 0 ? settings->replica_announce_port
                   : settings->tls_replication          ? settings->tls_port
                                                        : settings->port;
    snprintf(number, sizeof number, "%" PRId64, port);
    master_link_say(link, (const char *const[]){"REPLCONF", "listening-port", number}, 3);
}

static bool master_link_greet_has_address(const struct master_link *link) {
    const char *address = link->server->settings.replica_announce_ip;
    return address != NULL && address[0] != '\0';
}

static void master_link_greet_say_address(struct master_link *link) {
    const char *address = link->server->settings.replica_announce_ip;
    master_link_say(link, (const char *const[]){"REPLCONF", "ip-address", address}, 3);
}

static void master_link_greet_say_capabilities(struct master_link *link) {
    master_link_say(link, (const char *const[]){"REPLCONF", "capa", "eof", "capa", "psync2"}, 5);
}

static void master_link_greet_say_version(struct master_link *link) {
    char number[24];
    snprintf(number, sizeof number, "%d", (int)FILE_FORMAT);
    master_link_say(link, (const char *const[]){"REPLCONF", "leaderboard", number}, 3);
}

static bool master_link_greet_registers(const struct master_link *link) {
    return link->quorum != NULL && !link->wants_failover && link->pull_port == 0;
}

static const struct {
    bool (*is_said)(const struct master_link *link); /* NULL: always */
    void (*say)(struct master_link *link);
    /* NULL: whatever the answer is, as an old server may not know it, the next line is said. */
    void (*take)(struct master_link *link, struct bytes answer);
} lines[LINK_LINES] = {
    [LINK_SAYS_PING] = {NULL, master_link_greet_say_ping, master_link_greet_take_ping},
    [LINK_SAYS_AUTH] = {master_link_greet_has_auth, master_link_greet_say_auth,
                        master_link_greet_take_auth},
    [LINK_SAYS_PORT] = {NULL, master_link_greet_say_port, NULL},
    [LINK_SAYS_ADDRESS] = {master_link_greet_has_address, master_link_greet_say_address, NULL},
    [LINK_SAYS_CAPABILITIES] = {NULL, master_link_greet_say_capabilities, NULL},
    [LINK_SAYS_VERSION] = {NULL, master_link_greet_say_version, master_link_greet_take_version},
    [LINK_SAYS_REGISTRATION] = {master_link_greet_registers, master_link_greet_say_registration,
                                master_link_greet_take_advice},
    [LINK_SAYS_SYNC] = {NULL, master_link_greet_say_sync, master_link_greet_take_sync},
    [LINK_SAYS_REDIS_VERSION] = {NULL, master_link_redis_say_version, NULL},
    [LINK_SAYS_PSYNC] = {NULL, master_link_redis_say_psync, master_link_redis_take_answer},
};

static void master_link_greet_say_line(struct master_link *link) {
    if (link->line == LINK_SAYS_SYNC || link->line == LINK_SAYS_PSYNC) {
        master_link_move(link, LINK_GREETED);
    }
    lines[link->line].say(link);
}

static void master_link_greet_say_next(struct master_link *link) {
    do {
        link->line++;
        CHECK(link->line < LINK_LINES);
    } while (lines[link->line].is_said != NULL && !lines[link->line].is_said(link));
    master_link_greet_say_line(link);
}

static void master_link_greet_take_line(struct master_link *link, struct bytes answer) {
    if (lines[link->line].take != NULL) {
        lines[link->line].take(link, answer);
    } else {
        master_link_greet_say_next(link);
    }
}

/* Lines of the handshake. true: the rest is messages. */
bool master_link_take_lines(struct master_link *link) {
    while (link->state == LINK_GREETING || link->state == LINK_ASKING) {
        const char *end = memchr(link->input.at, '\n', link->input.size);
        if (end == NULL) {
            if (link->input.size > LINE_MAX_SIZE) {
                master_link_fail(link, "the master's answer is no line");
            }
            return false;
        }
        char line[LINE_MAX_SIZE + 1];
        size_t size = (size_t)(end - link->input.at);
        if (size > LINE_MAX_SIZE) {
            master_link_fail(link, "the master's answer is too long");
            return false;
        }
        memcpy(line, link->input.at, size);
        buffer_drop_front(&link->input, size + 1);
        size -= size > 0 && line[size - 1] == '\r';
        if (size > 0) { /* empty lines: the master is still there */
            master_link_greet_take_line(link, (struct bytes){.at = line, .size = size});
        }
        if (link->input.size == 0) {
            break;
        }
    }
    return link->state >= LINK_COPYING;
}
