#include "tests/support/commands.h"

#include "tests/support/test.h"

#include <sys/wait.h>
#include <unistd.h>

#include "server/durability/loading.h"
#include "server/system/clock.h"
#include "tests/support/registry_workload.h"
#include "tests/support/twin_requests.h"

static struct random numbers;
static struct twin_requests requests;
static struct grammar native;

static uint64_t below(uint64_t limit) {
    return random_below(&numbers, limit);
}

/* Of the commands that only this server has, and on boards, members and hashes of their own. */
static const struct grammar_values native_values[] = {
    {"key", GRAMMAR_WORDS("n$6")},
    {"source", GRAMMAR_WORDS("n$6")},
    {"destination", GRAMMAR_WORDS("n$6")},
    {"newkey", GRAMMAR_WORDS("n$6")},
    {"archive", GRAMMAR_WORDS("old$6")},
    {"HSET key", GRAMMAR_WORDS("d:p$30")},
    {"HDEL key", GRAMMAR_WORDS("d:p$30")},
    {"member", GRAMMAR_WORDS("p$30")},
    {"from", GRAMMAR_WORDS("p$30")},
    {"to", GRAMMAR_WORDS("p$30")},
    {"field", GRAMMAR_WORDS("$200", "$200", "$9")},
    {"HSET field", GRAMMAR_WORDS("name", "f$9")},
    {"HDEL field", GRAMMAR_WORDS("name", "f$9")},
    {"HSET value", GRAMMAR_WORDS("x$200", "$200")},
    {"HSET pattern", GRAMMAR_WORDS("d:*")},
    {"DATA data", GRAMMAR_WORDS("d:*")},
    {"pattern", GRAMMAR_WORDS("n1", "n*")},
    {"packed-key", GRAMMAR_WORDS("$200000003")},
    {"cap", GRAMMAR_WORDS("5", "9", "50", "NONE")},
    {"limit", GRAMMAR_WORDS("500")},
    {"FIELD name", GRAMMAR_WORDS("a", "b")},
    {"LAYOUT name", GRAMMAR_WORDS("default")},
    {"name", GRAMMAR_WORDS("clan", "class", "x")},
    {"tag", GRAMMAR_WORDS("clan", "class", "x")},
    {"value", GRAMMAR_WORDS("a", "b", "c", "d", "e", "wolves", "ravens",
                            "0123456789012345678901234567890123456789")},
    {"TAG bits", GRAMMAR_WORDS("1", "2", "3", "9", "NONE")},
    {"bits", GRAMMAR_WORDS("10", "20")},
    {"TIME bits", GRAMMAR_WORDS("31", "40")},
    /* So slow that all who read it at about the same time read the same. */
    {"half-life", GRAMMAR_WORDS("1000000")},
    {"id", GRAMMAR_WORDS("$300")},
    {"unix-time-milliseconds", GRAMMAR_WORDS("1800000000000")},
    {"milliseconds", GRAMMAR_WORDS("100000")},
    {"seconds", GRAMMAR_WORDS("1000")},
    {"time", GRAMMAR_WORDS("1700000000000")},
    {"destination-db", GRAMMAR_WORDS("$3")},
    {NULL, NULL},
};
static const struct grammar_weight native_weights[] = {
    {10, "LB.CREATE"}, {40, "LB.ALTER"},  {10, "LB.ROLL"},   {60, "LB.ADD"}, {10, "COPY"},
    {10, "RENAME"},    {10, "LB.SETTLE"}, {10, "PEXPIRE"},   {10, "LB.BAN"}, {10, "LB.UNBAN"},
    {10, "LB.FORGET"}, {10, "LB.MOVE"},   {10, "LB.SUBMIT"}, {10, "HSET"},   {10, "HDEL"},
    {20, "LB.TAG"},    {0, NULL},
};
static const char *const native_usual[] = {"SET",  "INCR", "BEST", "TAG",     "ONCE", "HSET",
                                           "TIME", "DB",   "EX",   "REPLACE", "THAW", NULL};
static const char *const native_never[] = {"EVERY", "FROM", "TZ", "START", "END", "CLOSES", NULL};

void commands_begin(const char *name) {
    clock_calibrate();
    numbers = random_begin(name);
    twin_requests_begin(&requests, &numbers);
    native = (struct grammar){.random = &numbers,
                              .values = native_values,
                              .focus = {native_usual},
                              .never = native_never,
                              .is_tame = true};
}

void commands_write(struct wire *wire, int count) {
    TEXT(text);
    int asked = 0;
    for (int i = 0; i < count; i++) {
        bool is_multi = below(50) == 0;
        for (int k = below(3) == 0 ? 2 : 0; k > 0; k--) {
            grammar_draw(&native, grammar_choose(&numbers, native_weights));
            text_command_words(&text, native.words, native.sizes, native.count);
            asked++;
        }
        twin_requests_make(&requests);
        if (is_multi) {
            text_command(&text, "MULTI");
            text_command(&text, "ZADD multi%d %d m%d", (int)below(3), (int)below(9),
                         (int)below(99));
        }
        if (below(8) == 0) {
            text_command(&text, "LB.CREATE rated RATING GLICKO2 MINGAMES 2 KEEP-MATCHES 9");
            text_command(&text, "LB.MATCH rated ONCE g%d RANKS %d %d TEAM 1 p%d TEAM 2 q%d r%d",
                         (int)below(99), (int)below(2), (int)below(2), (int)below(20),
                         (int)below(20), (int)below(20));
            text_command(&text,
                         below(4) == 0 ? "LB.REFUND rated p%d SINCE 0" : "LB.UNMATCH rated g%d",
                         (int)below(99));
            text_command(&text, below(6) == 0 ? "ZREM rated p%d" : "LB.RATE rated p%d 1700",
                         (int)below(20));
            asked += 4;
        }
        if (below(8) == 0) {
            text_command(&text, "LB.CREATE held FIELD a 20 TIME 44 MS HOLD ALL OVER 500 TOP 3");
            text_command(&text, "LB.ADD held %s %d m%d", below(2) == 0 ? "INCR" : "BEST",
                         (int)below(999), (int)below(20));
            text_command(&text, below(3) == 0 ? "LB.REJECT held m%d" : "LB.APPROVE held m%d",
                         (int)below(20));
            asked += 3;
        }
        const struct grammar *drawn = &requests.grammar;
        text_command_words(&text, drawn->words, drawn->sizes, drawn->count);
        if (is_multi) {
            text_command(&text, "HSET hash%d f%d %d", (int)below(5), (int)below(40), (int)below(9));
            text_command(&text, "EXEC");
            asked += 4;
        }
        asked++;
    }
    wire_send(wire, text.at, text.size);
    for (int i = 0; i < asked; i++) {
        (void)wire_reply(wire);
    }
}

void commands_make_kinds(struct wire *wire) {
    wire_check(wire, "LB.CREATE capped FIELD a 33 TIME 31 S CAP 20 KEEP BEST", "OK");
    wire_check(wire, "LB.CREATE late FIELD a 20 TIME 44 MS LATEST", "OK");
    wire_check(wire, "LB.CREATE hourly FIELD a 20 TIME 44 MS PERIOD HOUR ARCHIVE 3", "OK");
    for (int i = 0; i < 200; i++) {
        wire_check_prefix(wire, "ZADD capped 1 a 2 b 3 c", ":");
        (void)wire_ask(wire, i % 2 == 0 ? "ZINCRBY capped 7 a" : "ZADD late 5 x 5 y");
    }
    wire_check_prefix(wire, "ZADD hourly 1 one 1 two", ":");
    wire_check(wire, "LB.CREATE rated RATING GLICKO2 MINGAMES 2 KEEP-MATCHES 9", "OK");
    for (int i = 0; i < 60; i++) {
        (void)wire_ask(wire, "LB.MATCH rated TEAM 1 p7 TEAM 2 q8 r9");
    }
    wire_check(wire, "LB.CREATE periods RATING GLICKO2 EVERY-HOURS 876000 KEEP-MATCHES 9", "OK");
    for (int i = 0; i < 30; i++) {
        (void)wire_ask(wire, "LB.MATCH periods TEAM 1 p7 TEAM 2 q8 r9");
    }
    wire_check(wire, "LB.CREATE held FIELD a 20 TIME 44 MS HOLD ALL OVER 500 TOP 3", "OK");
    for (int i = 0; i < 60; i++) {
        (void)wire_ask(wire, i % 4 == 3 ? "LB.APPROVE held b" : "LB.ADD held 7 a 800 b 9 c");
    }
    wire_check(wire, "PEXPIRE late 10000000", ":1");
    wire_check_prefix(wire, "LB.BAN cheater EX 1000", ":");
}

/* ---- what a server holds ---- */

static void save_copy(const struct process *server, const char *path) {
    (void)unlink(path);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        execl(server->program, server->program, "--backup", server->socket_path, path, NULL);
        _exit(127);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void ignore(void *context) {
    (void)context;
}

struct registry *commands_read_copy(const char *path) {
    uv_loop_t loop;
    struct store store;
    char error[DISK_ERROR_MAX];
    assert_int_equal(uv_loop_init(&loop), 0);
    assert_int_equal(store_open_base(&store, path, error), STORE_OK);
    struct loading *loading = memory_allocate_zeroed(sizeof *loading);
    assert_non_null(loading);
    loading->registry = workload_create_registry(1);
    loading->store = &store;
    loading->changed = ignore;
    assert_true(loading_init(loading, &loop));
    if (!loading_run(loading)) {
        fail_msg("%s", loading->error);
    }
    struct registry *registry = loading->registry;
    loading_deinit(loading);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
    memory_free(loading);
    store_close(&store);
    return registry;
}

struct registry *commands_copy(const struct process *server, const char *path) {
    save_copy(server, path);
    return commands_read_copy(path);
}
