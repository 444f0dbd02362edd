/* Many clients that do anything at any time: whole and cut requests, replies that nobody reads,
 * kills, pauses, monitors, resets, silence, vanishing. The server must live, keep its boards whole
 * and forget every client that has gone. */
#include "tests/support/test.h"

#include <signal.h>
#include <sys/socket.h>

#include "server/commands/table.h"
#include "server/dispatch/execute.h"
#include "tests/support/grammar.h"
#include "tests/support/process.h"
#include "tests/support/random.h"
#include "tests/support/wire.h"

enum {
    CLIENTS = 40,
    ACTIONS = 60000,
    ACTIONS_SHORT = 15000,
    BOARDS = 6,
    REQUEST_MAX = 200, /* commands sent at once */
};

static struct process server;
static struct random chance;
static struct wire clients[CLIENTS];

FIXTURE(start_server) {
    execute_init(command_table);
    return process_start(&server, NULL) ? 0 : -1;
}

FIXTURE(stop_server) {
    return process_stop(&server);
}

static unsigned below(unsigned limit) {
    return (unsigned)random_below(&chance, limit);
}

/* Beside the table's commands on keys: those of connections, and what comes to many boards at once. */
static const char *const lines[] = {
    "ZADD board:$6 $400 m$300 $400 m$300 $400 m$300 $400 m$300",
    "ZADD board:$6 nan m$300",
    "ZREVRANGE board:$6 0 -1 WITHSCORES",
    "KEYS *",
    "DBSIZE",
    "FLUSHDB",
    "SELECT 0",
    "SELECT 3",
    "PING",
    "ECHO m$300",
    "NONSENSE m$300",
    "MULTI",
    "EXEC",
    "EXEC",
    "DISCARD",
    "WATCH board:$6 board:$6",
    "UNWATCH",
    "HELLO 3",
    "HELLO 2",
    "RESET",
    "CLIENT LIST",
    "CLIENT INFO",
    "CLIENT SETNAME m$300",
    "CLIENT REPLY OFF",
    "CLIENT REPLY ON",
    "CLIENT REPLY SKIP",
    "CLIENT KILL ID $300",
    "CLIENT PAUSE 3 WRITE",
    "CLIENT PAUSE 3 ALL",
    "CLIENT UNPAUSE",
    "CLIENT NO-EVICT ON",
    "MONITOR",
    "QUIT",
    "INFO",
    "SLOWLOG GET",
    "MEMORY USAGE board:$6",
    "OBJECT ENCODING board:$6",
    "COMMAND DOCS zadd",
    "CONFIG GET *",
};

/* Rare among many: these end or silence a connection. */
static bool is_drastic(const char *line) {
    return strncmp(line, "QUIT", 4) == 0 || strncmp(line, "MONITOR", 7) == 0 ||
           strncmp(line, "CLIENT REPLY", 12) == 0 || strncmp(line, "FLUSH", 5) == 0 ||
           strncmp(line, "CLIENT PAUSE", 12) == 0;
}

static const struct grammar_values values[] = {
    {"member", GRAMMAR_WORDS("m$300")},
    {"score", GRAMMAR_WORDS("$400", "-$100")},
    {"increment", GRAMMAR_WORDS("$400", "-$100")},
    {NULL, NULL},
};
static const char *const keys[] = {"board:$6", NULL};
static struct grammar grammar = {
    .random = &chance, .keys = keys, .values = values, .is_tame = true};

/* On sorted sets and keys, with members of plain words: each board can be read at the end. */
static const struct command *some_command(void) {
    for (;;) {
        const struct command *command = command_by_index(below(command_count()));
        if (grammar_is_on_keys(command) &&
            (strcmp(command->group, "sorted-set") == 0 || strcmp(command->group, "generic") == 0)) {
            return command;
        }
    }
}

static void add_command(struct text *request) {
    if (below(2) == 0) {
        grammar_draw(&grammar, some_command());
        text_command_words(request, grammar.words, grammar.sizes, grammar.count);
        return;
    }
    const char *pattern = lines[below(COUNT_OF(lines))];
    char line[256];
    if (is_drastic(pattern) && below(20) != 0) {
        pattern = "ZINCRBY board:$6 1 m$300";
    }
    random_line(&chance, pattern, line, sizeof line);
    if (below(10) == 0) {
        text_format(request, "%s\r\n", line); /* inline */
    } else {
        text_command(request, "%s", line);
    }
}

static void open_client(struct wire *client) {
    wire_close(client);
    *client = wire_open(below(2) ? process_connect_tcp(&server) : process_connect_unix(&server));
}

static void send_requests(struct wire *client) {
    TEXT(request);
    unsigned count = below(4) == 0 ? below(REQUEST_MAX) : below(4);
    for (unsigned i = 0; i <= count; i++) {
        add_command(&request);
    }
    size_t size = request.size;
    if (below(25) == 0) {
        size = below((unsigned)size + 1); /* cut: the rest never comes, or other bytes do */
    } else if (below(200) == 0) {
        request.at[below((unsigned)size)] = (char)below(256); /* broken */
    }
    wire_push(client, request.at, size, 0);
}

/* Take what is there, whole or not. */
static void read_some(struct wire *client) {
    static char dropped[1 << 18];
    ssize_t got = recv(client->fd, dropped, sizeof dropped, MSG_DONTWAIT);
    if (got == 0) {
        open_client(client);
    }
}

static void act(void) {
    struct wire *client = &clients[below(CLIENTS)];
    unsigned dice = below(100);
    if (dice < 55) {
        send_requests(client);
    } else if (dice < 96) {
        read_some(client);
    } else if (dice < 98) {
        wire_abort(client);
        open_client(client);
    } else if (dice < 99) {
        open_client(client);
    } else {
        shutdown(client->fd, SHUT_WR); /* half open */
        wire_push(client, "PING\r\n", 6, 0);
    }
}

/* Every board answers the same count by each of its ways, and its ranks and scores agree. */
static void check_board(struct wire *witness, unsigned board) {
    /* It may have been given 5 ms, and must not go while it is looked at. */
    wire_ask_integer(witness, formatted("PERSIST board:%u", board));
    int64_t count = wire_ask_integer(witness, formatted("ZCARD board:%u", board));
    assert_int_equal(wire_ask_integer(witness, formatted("ZCOUNT board:%u -inf +inf", board)),
                     count);
    TEXT(members);
    const char *list = wire_ask(witness, formatted("ZREVRANGE board:%u 0 -1", board));
    text_add(&members, list + 1, strlen(list) - 2);
    int64_t rank = 0;
    for (char *at = members.at; members.size > 0 && at;) {
        char *space = strchr(at, ' ');
        if (space) {
            *space = '\0';
        }
        assert_int_equal(wire_ask_integer(witness, formatted("ZREVRANK board:%u %s", board, at)),
                         rank);
        rank++;
        at = space ? space + 1 : NULL;
    }
    assert_int_equal(rank, count);
}

static void wait_until_alone(struct wire *witness) {
    WAIT_UNTIL(strstr(wire_ask(witness, "INFO clients"), "connected_clients:1\r\n"));
}

TEST(a_server_outlives_whatever_its_clients_do) {
    int actions = is_short_run() ? ACTIONS_SHORT : ACTIONS;
    chance = random_begin("chaos");
    WIRE(witness, process_connect_tcp(&server));
    wait_until_alone(&witness);
    int descriptors = process_descriptor_count(&server);
    wire_close(&witness);
    for (int i = 0; i < CLIENTS; i++) {
        clients[i].fd = -1;
        open_client(&clients[i]);
    }
    for (int i = 0; i < actions; i++) {
        act();
    }
    for (int i = 0; i < CLIENTS; i++) {
        wire_close(&clients[i]);
    }
    witness = wire_open(process_connect_tcp(&server));
    wire_check(&witness, "CLIENT UNPAUSE", "OK");
    wait_until_alone(&witness);
    assert_int_equal(process_wait_descriptors(&server, descriptors, WIRE_LIMIT_MS), descriptors);
    for (unsigned board = 0; board < BOARDS; board++) {
        check_board(&witness, board);
    }
    const char *statistics = wire_ask(&witness, "INFO stats");
    const char *commands_run = strstr(statistics, "total_commands_processed:");
    assert_non_null(commands_run);
    printf("%.*s\n", (int)strcspn(commands_run, "\r"), commands_run);
}

/* Whatever is queued, held, unsent or half read: SIGTERM ends it, with status 0. */
TEST(a_server_ends_well_in_the_middle_of_it) {
    enum { ROUNDS = 8, ROUND_ACTIONS = 600 };
    assert_int_equal(process_stop(&server), 0);
    for (int round = 0; round < ROUNDS; round++) {
        assert_true(process_start(&server, NULL));
        for (int i = 0; i < CLIENTS; i++) {
            open_client(&clients[i]);
        }
        for (int i = 0; i < ROUND_ACTIONS; i++) {
            act();
        }
        process_signal(&server, SIGTERM);
        if (round % 2) {
            process_sleep_ms(20);
            process_signal(&server, SIGTERM);
        }
        for (int i = 0; i < CLIENTS; i++) {
            if (i % 2) {
                wire_close(&clients[i]);
            }
        }
        assert_true(process_wait(&server, PROCESS_STOP_LIMIT_MS));
        assert_int_equal(process_stop(&server), 0);
        for (int i = 0; i < CLIENTS; i++) {
            wire_close(&clients[i]);
        }
    }
}

TEST_MAIN(start_server, stop_server)
