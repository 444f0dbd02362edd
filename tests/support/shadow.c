/* See shadow.h. */
#include "tests/support/shadow.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/dispatch/command.h"
#include "tests/support/test.h"

enum {
    CLIENTS_MAX = 64,
    ARGS_MAX = 512,
    WAIT_MS = 10000, /* for a server to start */
};

struct shadow_client {
    uint64_t id; /* of the session; 0: free */
    int fd;
    uint8_t protocol;
    uint8_t database;
};

struct shadow {
    char *settings;
    pid_t server;
    char directory[64];
    char path[96]; /* of the socket */
    struct shadow_client clients[CLIENTS_MAX];
    char *input; /* of the reply that is read */
    size_t size, capacity;
    uint64_t compared, skipped;
    bool is_over; /* the two have gone different ways */
};

/* What to do with a command. */
enum treatment {
    SKIP,              /* changes nothing that matters */
    COMPARE,           /* the same command */
    COMPARE_LB,        /* with LB. in front */
    COMPARE_ANY_ORDER, /* the same command, whose reply is an array in any order */
    COMPARE_SCAN,      /* the same of an array behind a cursor; some steps may say nothing */
    COMPARE_HELD,      /* without who has sent the results */
    RUN,               /* the same, but replies may differ */
    RUN_LB,
    END, /* the module does not have it, and it changes boards */
};

static const struct {
    const char *name;
    enum treatment treatment;
} treatments[] = {
    {"BZMPOP", SKIP},
    {"BZPOPMAX", SKIP},
    {"BZPOPMIN", SKIP},
    {"ZRANDMEMBER", SKIP},
    {"ZSCAN", SKIP},
    {"LB.WHERE", COMPARE_ANY_ORDER},
    {"LB.LIST", COMPARE_SCAN},
    {"LB.BANS", COMPARE_SCAN},
    {"LB.HELD", COMPARE_HELD},
    {"DEL", COMPARE},
    {"UNLINK", COMPARE},
    {"EXISTS", COMPARE},
    {"RENAME", COMPARE},
    {"RENAMENX", COMPARE},
    {"COPY", RUN},
    {"FLUSHALL", RUN},
    {"FLUSHDB", RUN},
    {"MULTI", COMPARE},
    {"DISCARD", COMPARE},
    {"EXEC", RUN},
    {"WATCH", RUN},
    {"UNWATCH", RUN},
    {"SELECT", RUN},
    {"RESTORE", END},
    {"DUMP", SKIP},
    {"HSET", RUN},
    {"HMSET", RUN},
    {"HDEL", RUN},
    {"HSETNX", RUN},
    {"HINCRBY", RUN},
    {"HINCRBYFLOAT", RUN},
    {"SWAPDB", RUN},
    {"MOVE", RUN},
    {"LB.INFO", RUN}, /* its memory */
};

static enum treatment treatment_of(const struct command *command) {
    for (size_t i = 0; i < sizeof treatments / sizeof treatments[0]; i++) {
        if (strcmp(treatments[i].name, command->name) == 0) {
            return treatments[i].treatment;
        }
    }
    if (strcmp(command->group, "sorted-set") == 0) {
        return COMPARE_LB;
    }
    return strcmp(command->group, "leaderboard") == 0 ? COMPARE : SKIP;
}

/* ---- the server ---- */

/* The settings that the module has too, as its arguments. */
static int split_settings(char *text, const char **args, int count) {
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        bool is_for_module = strncmp(line, "layout ", 7) == 0 || strncmp(line, "board ", 6) == 0 ||
                             strncmp(line, "default-layout ", 15) == 0;
        for (char *word = line; is_for_module && word != NULL && *word != '\0';) {
            char *space = strchr(word, ' ');
            if (space != NULL) {
                *space = '\0';
            }
            assert_in_range(count, 0, ARGS_MAX - 2);
            if (*word != '\0') {
                args[count++] = word;
            }
            word = space != NULL ? space + 1 : NULL;
        }
    }
    return count;
}

static void start_server(struct shadow *shadow, const char *module, const char *settings) {
    const char *own = getenv("LEADERBOARD_REDIS_SERVER");
    const char *program = own != NULL ? own : "redis-server";
    const char *args[ARGS_MAX] = {
        program, "--port",          "0",          "--unixsocket", shadow->path,   "--save", "",
        "--dir", shadow->directory, "--loglevel", "warning",      "--loadmodule", module};
    OWNED char *text = strdup(settings != NULL ? settings : "");
    CHECK(text != NULL);
    int count = split_settings(text, args, 13);
    args[count] = NULL;
    shadow->server = fork();
    assert_int_not_equal(shadow->server, -1);
    if (shadow->server == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)!freopen("/dev/null", "w", stdout);
        execvp(program, (char *const *)(uintptr_t)args);
        _exit(127);
    }
}

static int connect_to(const struct shadow *shadow) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", shadow->path);
    for (int waited_ms = 0; waited_ms < WAIT_MS; waited_ms += 5) {
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (connect(fd, (const struct sockaddr *)&address, sizeof address) == 0) {
            return fd;
        }
        close(fd);
        if (waitpid(shadow->server, NULL, WNOHANG) == shadow->server) {
            break;
        }
        usleep(5000);
    }
    print_error("redis-server with the module did not start\n");
    fail();
    return -1;
}

static struct bytes ask(struct shadow *shadow, int fd, const char *prefix, const struct bytes *args,
                        uint32_t count);
static struct shadow_client *client_of(struct shadow *shadow, const struct session *session);

/* The server of the last harness, for the next one with the same settings. */
static struct {
    char *settings; /* NULL: none */
    pid_t server;
    char directory[sizeof((struct shadow *)0)->directory];
    char path[sizeof((struct shadow *)0)->path];
} kept;

static void stop_kept(void) {
    if (kept.settings != NULL) {
        kill(kept.server, SIGKILL);
        waitpid(kept.server, NULL, 0);
        unlink(kept.path);
        rmdir(kept.directory);
        free(kept.settings);
        kept.settings = NULL;
    }
}

static bool take_kept(struct shadow *shadow, const char *settings) {
    if (kept.settings == NULL || strcmp(kept.settings, settings) != 0) {
        return false;
    }
    shadow->server = kept.server;
    memcpy(shadow->directory, kept.directory, sizeof kept.directory);
    memcpy(shadow->path, kept.path, sizeof kept.path);
    shadow->settings = kept.settings;
    kept.settings = NULL;
    return true;
}

static void keep(struct shadow *shadow) {
    static bool is_registered;
    if (!is_registered) {
        is_registered = atexit(stop_kept) == 0;
    }
    stop_kept();
    kept.settings = shadow->settings;
    kept.server = shadow->server;
    memcpy(kept.directory, shadow->directory, sizeof kept.directory);
    memcpy(kept.path, shadow->path, sizeof kept.path);
}

struct shadow *shadow_create(const char *settings) {
    const char *module = getenv("LEADERBOARD_MODULE");
    const char *text = settings != NULL ? settings : "";
    if (module == NULL) {
        return NULL;
    }
    struct shadow *shadow = calloc(1, sizeof *shadow);
    assert_non_null(shadow);
    if (take_kept(shadow, text)) {
        const struct session own = {.id = UINT64_MAX};
        const struct bytes args[] = {BYTES("FLUSHALL")};
        const struct bytes more[] = {BYTES("LB.TESTCLEAR")}; /* bans and orders */
        int fd = client_of(shadow, &own)->fd;
        assert_int_equal(ask(shadow, fd, "", args, 1).at[0], '+');
        assert_int_equal(ask(shadow, fd, "", more, 1).at[0], '+');
        return shadow;
    }
    shadow->settings = strdup(text);
    snprintf(shadow->directory, sizeof shadow->directory, "/tmp/leaderboard-shadow-XXXXXX");
    assert_non_null(mkdtemp(shadow->directory));
    snprintf(shadow->path, sizeof shadow->path, "%s/socket", shadow->directory);
    start_server(shadow, module, settings);
    return shadow;
}

void shadow_destroy(struct shadow *shadow) {
    if (shadow == NULL) {
        return;
    }
    for (uint32_t i = 0; i < CLIENTS_MAX; i++) {
        if (shadow->clients[i].id != 0) {
            close(shadow->clients[i].fd);
        }
    }
    keep(shadow);
    if (getenv("LEADERBOARD_MODULE_SHOW") != NULL) {
        print_message("module: %llu replies compared, %llu skipped%s\n",
                      (unsigned long long)shadow->compared, (unsigned long long)shadow->skipped,
                      shadow->is_over ? ", and then ended" : "");
    }
    free(shadow->input);
    free(shadow);
}

/* ---- bytes ---- */

static void send_all(int fd, const char *at, size_t size) {
    while (size > 0) {
        ssize_t sent = send(fd, at, size, MSG_NOSIGNAL);
        if (sent <= 0) {
            print_error("redis-server with the module is gone\n");
            fail();
        }
        at += sent;
        size -= (size_t)sent;
    }
}

static void send_request(int fd, const char *prefix, const struct bytes *args, uint32_t count) {
    char head[64];
    send_all(fd, head, (size_t)snprintf(head, sizeof head, "*%u\r\n", count));
    for (uint32_t i = 0; i < count; i++) {
        const char *before = i == 0 ? prefix : "";
        send_all(fd, head,
                 (size_t)snprintf(head, sizeof head, "$%zu\r\n%s", strlen(before) + args[i].size,
                                  before));
        send_all(fd, args[i].at, args[i].size);
        send_all(fd, "\r\n", 2);
    }
}

/* Have at least size bytes. */
static void receive(struct shadow *shadow, int fd, size_t size) {
    while (shadow->size < size) {
        if (shadow->size == shadow->capacity) {
            shadow->capacity = shadow->capacity * 2 + 4096;
            shadow->input = realloc(shadow->input, shadow->capacity);
            assert_non_null(shadow->input);
        }
        ssize_t got = recv(fd, shadow->input + shadow->size, shadow->capacity - shadow->size, 0);
        if (got <= 0) {
            print_error("redis-server with the module is gone\n");
            fail();
        }
        shadow->size += (size_t)got;
    }
}

/* Returns where the value that begins at `at` ends. */
static size_t receive_value(struct shadow *shadow, int fd, size_t at) {
    size_t end = at;
    do {
        receive(shadow, fd, end + 2);
    } while (memcmp(shadow->input + end++, "\r\n", 2) != 0);
    end++;
    char kind = shadow->input[at];
    long count = strtol(shadow->input + at + 1, NULL, 10);
    if ((kind == '$' || kind == '=') && count >= 0) {
        end += (size_t)count + 2;
        receive(shadow, fd, end);
    } else if (strchr("*%~>", kind) != NULL && count > 0) {
        for (long i = 0; i < (kind == '%' ? 2 * count : count); i++) {
            end = receive_value(shadow, fd, end);
        }
    }
    return end;
}

static struct bytes ask(struct shadow *shadow, int fd, const char *prefix, const struct bytes *args,
                        uint32_t count) {
    shadow->size = 0;
    send_request(fd, prefix, args, count);
    size_t size = receive_value(shadow, fd, 0);
    return (struct bytes){.at = shadow->input, .size = size};
}

static void ask_words(struct shadow *shadow, int fd, const char *first, unsigned number) {
    char text[16];
    snprintf(text, sizeof text, "%u", number);
    const struct bytes args[] = {bytes_from_text(first), bytes_from_text(text)};
    struct bytes reply = ask(shadow, fd, "", args, 2);
    if (reply.at[0] == '-') {
        print_error("%s: %.*s\n", first, (int)reply.size, reply.at);
        fail();
    }
}

/* ---- comparing ---- */

static struct shadow_client *client_of(struct shadow *shadow, const struct session *session) {
    struct shadow_client *unused = NULL;
    for (uint32_t i = 0; i < CLIENTS_MAX; i++) {
        if (shadow->clients[i].id == session->id) {
            return &shadow->clients[i];
        }
        if (shadow->clients[i].id == 0 && unused == NULL) {
            unused = &shadow->clients[i];
        }
    }
    assert_non_null(unused);
    *unused = (struct shadow_client){.id = session->id, .fd = connect_to(shadow), .protocol = 2};
    return unused;
}

void shadow_disconnect(struct shadow *shadow, const struct session *session) {
    for (uint32_t i = 0; shadow != NULL && i < CLIENTS_MAX; i++) {
        if (shadow->clients[i].id == session->id) {
            close(shadow->clients[i].fd);
            shadow->clients[i].id = 0;
        }
    }
}

static void fail_over(const struct request *request, struct bytes expected, struct bytes got) {
    print_error("the module answers differently:");
    for (uint32_t i = 0; i < request->count && i < 20; i++) {
        print_error(" %.*s", (int)request->args[i].size, request->args[i].at);
    }
    /* Of any length: print_error cuts. */
    fprintf(stderr, "\n--- expected\n%.*s\n--- answered\n%.*s\n", (int)expected.size, expected.at,
            (int)got.size, got.at);
    fail();
}

static bool begins_with(struct bytes reply, const char *text) {
    size_t size = strlen(text);
    return reply.size >= size && memcmp(reply.at, text, size) == 0;
}

/* Replies with these say where the module differs, and docs/reference/module.md says so. */
static bool is_known_difference(struct bytes expected, struct bytes got) {
    return begins_with(got, "-EXECABORT") || begins_with(expected, "-TOOLONG") ||
           begins_with(expected, "-ERR the reply would be longer");
}

/* What the module has not, docs/reference/module.md says so: then the two go different ways. */
static bool is_only_of_servers(struct bytes got) {
    static const char *const refusals[] = {
        "-ERR WINDOW is not possible here: ",
        "-ERR HOLD ... AUTO is not possible here: ",
        "-ERR RESET and EVERY-HOURS are not possible here: ",
        "-ERR tickets are not in the module: ",
        "-ERR unknown command 'LB.TICKET'",
    };
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        if (begins_with(got, refusals[i])) {
            return true;
        }
    }
    return false;
}

/* ---- in any order ---- */

enum { ELEMENTS_MAX = 4096 };

struct elements {
    uint32_t count;
    struct bytes at[ELEMENTS_MAX];
};

/* Returns where the value that begins here ends. */
static const char *skip_value(const char *at) {
    char kind = *at;
    long count = strtol(at + 1, NULL, 10);
    const char *next = strchr(at, '\n') + 1;
    if ((kind == '$' || kind == '=') && count >= 0) {
        return next + count + 2;
    }
    for (long i = 0; strchr("*%~>", kind) != NULL && i < (kind == '%' ? 2 * count : count); i++) {
        next = skip_value(next);
    }
    return next;
}

static int compare_bytes(const void *a, const void *b) {
    const struct bytes *one = a, *other = b;
    size_t size = one->size < other->size ? one->size : other->size;
    int order = memcmp(one->at, other->at, size);
    return order != 0 ? order : (one->size > other->size) - (one->size < other->size);
}

static void sort_elements(const char *array, struct elements *elements) {
    long count = strtol(array + 1, NULL, 10);
    assert_in_range(count, 0, ELEMENTS_MAX);
    const char *at = strchr(array, '\n') + 1;
    elements->count = (uint32_t)count;
    for (long i = 0; i < count; i++) {
        const char *end = skip_value(at);
        elements->at[i] = (struct bytes){.at = at, .size = (size_t)(end - at)};
        at = end;
    }
    qsort(elements->at, elements->count, sizeof elements->at[0], compare_bytes);
}

static bool have_equal_elements(const char *expected, const char *got) {
    static struct elements both[2];
    sort_elements(expected, &both[0]);
    sort_elements(got, &both[1]);
    bool is_equal = both[0].count == both[1].count;
    for (uint32_t i = 0; is_equal && i < both[0].count; i++) {
        is_equal = bytes_equal(both[0].at[i], both[1].at[i]);
    }
    return is_equal;
}

static bool is_whole_scan(struct bytes reply) {
    return begins_with(reply, "*2\r\n$1\r\n0\r\n");
}

/* Cursors are those of the server that made them. */
static bool goes_on(const struct request *request) {
    for (uint32_t i = 1; i + 1 < request->count; i++) {
        if (bytes_is(request->args[i], "CURSOR") && !bytes_is(request->args[i + 1], "0")) {
            return true;
        }
    }
    return false;
}

/* The host says the name by which it knows the command: lb.zadd. */
static bool is_same_arity_error(struct bytes expected, struct bytes got) {
    static const char head[] = "-ERR wrong number of arguments for '";
    static const char host_head[] = "-ERR wrong number of arguments for 'lb.";
    enum { SIZE = sizeof head - 1, HOST_SIZE = sizeof host_head - 1 };
    /* Of the module's own commands, too, whose errors say more here. */
    if (begins_with(expected, "-ERR ") && begins_with(got, host_head) &&
        memmem(expected.at, expected.size, " (LB.", 5) != NULL) {
        return true;
    }
    return begins_with(expected, head) && begins_with(got, host_head) &&
           bytes_equal((struct bytes){.at = expected.at + SIZE, .size = expected.size - SIZE},
                       (struct bytes){.at = got.at + HOST_SIZE, .size = got.size - HOST_SIZE});
}

/* Users and addresses are the host's: the module keeps none. */
static bool is_same_held(struct bytes expected, struct bytes got) {
    static const char user[] = "$7\r\ndefault\r\n$15\r\n127.0.0.1:",
                      none[] = "$0\r\n\r\n$0\r\n\r\n";
    enum { USER_SIZE = sizeof user - 1, PORT_SIZE = 5 + 2, NONE_SIZE = sizeof none - 1 };
    size_t at = 0;
    size_t got_at = 0;
    while (at < expected.size && got_at < got.size) {
        if (expected.size - at >= USER_SIZE + PORT_SIZE &&
            memcmp(expected.at + at, user, USER_SIZE) == 0) {
            if (got.size - got_at < NONE_SIZE || memcmp(got.at + got_at, none, NONE_SIZE) != 0) {
                return false;
            }
            at += USER_SIZE + PORT_SIZE;
            got_at += NONE_SIZE;
        } else if (expected.at[at++] != got.at[got_at++]) {
            return false;
        }
    }
    return at == expected.size && got_at == got.size;
}

/* Other errors are compared as they are. */
static bool are_equal(enum treatment treatment, const struct request *request,
                      struct bytes expected, struct bytes got) {
    enum { SCAN_HEAD = 11 }; /* of a scan in one step: *2 $1 0 */
    if (treatment == COMPARE_SCAN && expected.at[0] == '*' && got.at[0] == '*') {
        return goes_on(request) || !is_whole_scan(expected) || !is_whole_scan(got) ||
               have_equal_elements(expected.at + SCAN_HEAD, got.at + SCAN_HEAD);
    }
    if (treatment == COMPARE_ANY_ORDER && expected.at[0] == '*' && got.at[0] == '*') {
        return have_equal_elements(expected.at, got.at);
    }
    return bytes_equal(expected, got) || is_same_arity_error(expected, got) ||
           (treatment == COMPARE_HELD && is_same_held(expected, got));
}

static void set_clock(struct shadow *shadow, int fd, const struct clock *clock) {
    const int64_t numbers[] = {clock->now_us, clock->monotonic_ms, clock->lead_us, clock->state};
    struct bytes args[5] = {BYTES("LB.TESTCLOCK")};
    char texts[4][32];
    for (uint32_t i = 0; i < 4; i++) {
        snprintf(texts[i], sizeof texts[i], "%lld", (long long)numbers[i]);
        args[i + 1] = bytes_from_text(texts[i]);
    }
    assert_int_equal(ask(shadow, fd, "", args, 5).at[0], '+');
}

static void keep_state(struct shadow *shadow, const struct server *server,
                       const struct session *session, struct shadow_client *client,
                       bool is_in_multi) {
    if (is_in_multi) {
        return;
    }
    if (client->protocol != session->protocol) {
        ask_words(shadow, client->fd, "HELLO", session->protocol);
        client->protocol = session->protocol;
    }
    set_clock(shadow, client->fd, &server->clock);
}

/* EXPIRE with a time that is over removes the key. */
static bool has_expired_at_once(const struct server *server, const struct session *session,
                                const struct command *command, const struct request *request) {
    return strstr(command->name, "EXPIRE") != NULL && request->count > 2 &&
           registry_peek(server->registry, session->database, request->args[1],
                         server->clock.now_ms) == NULL;
}

void shadow_run(struct shadow *shadow, const struct server *server, const struct session *session,
                const struct request *request, struct bytes reply) {
    uint32_t index = command_find_request(request);
    if (shadow == NULL || shadow->is_over || index == COMMAND_NONE) {
        return;
    }
    const struct command *command = command_by_index(index);
    enum treatment treatment = treatment_of(command);
    /* What is refused in a transaction is refused by the host when it runs. */
    bool is_refused = session->transaction.is_open && (command->flags & COMMAND_NO_MULTI) != 0;
    bool is_of_boards = strcmp(command->group, "leaderboard") == 0; /* LB.LEAGUE GET */
    if ((command_is_subcommand(index) && !is_of_boards) || treatment == SKIP || is_refused) {
        shadow->skipped++;
        if (has_expired_at_once(server, session, command, request)) {
            shadow_expire(shadow, session->database, request->args[1]);
        }
        return;
    }
    if (treatment == END) {
        shadow->is_over = reply.size > 0 && reply.at[0] != '-';
        return;
    }
    if (begins_with(reply, "-OOM")) {
        shadow->is_over = true; /* a test has taken the harness's memory, not the module's */
        return;
    }
    if (session->player != NULL) {
        shadow->is_over = true; /* the module has no players */
        return;
    }
    struct shadow_client *client = client_of(shadow, session);
    bool is_in_multi = session->transaction.is_open || strcmp(command->name, "EXEC") == 0 ||
                       strcmp(command->name, "DISCARD") == 0;
    keep_state(shadow, server, session, client, is_in_multi);
    struct bytes got =
        ask(shadow, client->fd, treatment == COMPARE_LB || treatment == RUN_LB ? "LB." : "",
            request->args, request->count);
    if (is_only_of_servers(got) && !bytes_equal(reply, got)) {
        shadow->is_over = true;
        return;
    }
    /* A test may break the harness's output. */
    bool is_compared = treatment != RUN && treatment != RUN_LB && reply.size > 0;
    if (is_compared && !session->has_strings && !is_known_difference(reply, got)) {
        shadow->compared++;
        if (!are_equal(treatment, request, reply, got)) {
            fail_over(request, reply, got);
        }
    } else {
        shadow->skipped++;
    }
}

void shadow_end(struct shadow *shadow) {
    if (shadow != NULL) {
        shadow->is_over = true;
    }
}

void shadow_expire(struct shadow *shadow, uint32_t database, struct bytes name) {
    if (shadow == NULL || shadow->is_over || database >= REGISTRY_DATABASES) {
        return;
    }
    const struct session own = {.id = UINT64_MAX};
    struct shadow_client *client = client_of(shadow, &own);
    const struct bytes args[] = {BYTES("DEL"), name};
    ask_words(shadow, client->fd, "SELECT", database);
    ask(shadow, client->fd, "", args, 2);
}
