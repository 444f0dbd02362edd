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

static uint64_t below(uint64_t limit) {
    return random_below(&numbers, limit);
}

void commands_begin(const char *name) {
    clock_calibrate();
    numbers = random_begin(name);
    requests = (struct twin_requests){.random = &numbers};
}

/* Of the commands that only this server has, and on boards, members and hashes of their own. */
enum { NATIVE_BOARDS = 6, NATIVE_MEMBERS = 30, NATIVE_VALUES = 200 };

static int some_board(void) {
    return (int)below(NATIVE_BOARDS);
}

static int some_member(void) {
    return (int)below(NATIVE_MEMBERS);
}

static const char *one_of(const char *const *texts, size_t count) {
    return texts[below(count)];
}
#define ONE_OF(...)                                                                                \
    one_of((const char *const[]){__VA_ARGS__},                                                     \
           sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))

static void add_of_boards(struct text *text) {
    int board = some_board();
    switch (below(10)) {
    case 0:
        text_command(text, "LB.CREATE n%d %s%s", board,
                     ONE_OF("CAP 9", "KEEP BEST", "FIELD a 20 SCALE 2 FIELD b 10 TIME 31 S",
                            "FIELD a 20 TIME 40 MS LATEST",
                            "FIELD a 20 TIME 40 MS PERIOD HOUR ARCHIVE 2",
                            "FIELD a 20 TIME 40 MS STALE 1 MINUTE SETTLE YES"),
                     ONE_OF("", " TAG clan 3", " TAG clan 9 TAG class 1"));
        break;
    case 1:
        text_command(text, "LB.ALTER n%d %s", board,
                     ONE_OF("CAP 5", "CAP NONE", "KEEP BEST", "KEEP LAST", "LIMIT 500", "FREEZE",
                            "PERIOD NONE", "PERIOD DAY", "OPENS 1700000000000", "SETTLE YES",
                            "SETTLE NO", "STALE 5 MINUTE", "STALE NONE"));
        break;
    case 2:
        text_command(text, "LB.ALTER n%d THAW", board);
        break;
    case 3:
        text_command(text, "LB.ROLL n%d old%d EX 1000", board, some_board());
        break;
    case 4:
        text_command(text, "LB.ADD n%d PACKED %d p%d", board, (int)below(NATIVE_VALUES) * 1000003,
                     some_member());
        break;
    case 5:
        text_command(text, "COPY n%d n%d DB %d REPLACE", board, some_board(), (int)below(3));
        break;
    case 6:
        text_command(text, "RENAME n%d n%d", board, some_board());
        break;
    case 7:
        text_command(text, "LB.ALTER n%d TAG %s", board,
                     ONE_OF("clan 3", "class 2", "clan 9 TAG class 4", "x 4 CAP 50", "clan NONE"));
        break;
    case 8:
        text_command(text, "LB.SETTLE old%d", board);
        break;
    default:
        text_command(text, "PEXPIRE n%d 100000", board);
    }
}

static void add_of_members(struct text *text) {
    int member = some_member();
    int value = (int)below(NATIVE_VALUES);
    switch (below(11)) {
    case 0:
        text_command(text, "LB.BAN p%d%s", member, ONE_OF("", " EX 1000", " MATCH n1"));
        break;
    case 1:
        text_command(text, "LB.UNBAN p%d", member);
        break;
    case 2:
        text_command(text, "LB.FORGET p%d DATA d:*", member);
        break;
    case 3:
        text_command(text, "LB.MOVE p%d p%d MATCH n* %s", member, some_member(),
                     ONE_OF("SUM", "BEST"));
        break;
    case 4:
        text_command(text, "LB.SUBMIT 2 n%d n%d %s %d p%d", some_board(), some_board(),
                     ONE_OF("SET", "INCR", "BEST"), value, member);
        break;
    case 5:
        text_command(text, "HSET d:p%d name x%d f%d %d", member, value, (int)below(9), value);
        break;
    case 6:
        text_command(text, "HDEL d:p%d f%d name", member, (int)below(9));
        break;
    case 7:
    case 8:
        text_command(text, "LB.TAG n%d p%d %s %s", some_board(), member,
                     ONE_OF("clan", "class", "x"), ONE_OF("a", "b", "c", "d", "e", "f", "g", "h"));
        break;
    case 9:
        text_command(text, "LB.ADD n%d TAG clan %s %d%s p%d", some_board(),
                     ONE_OF("a", "wolves", "ravens", "0123456789012345678901234567890123456789"),
                     value, ONE_OF("", " 7"), member);
        break;
    default:
        text_command(
            text, "LB.ADD n%d %s %d%s p%d", some_board(),
            ONE_OF("SET", "INCR", "BEST", "SET TOUCH", "SET KEEPTIME", "SET AT 1800000000000"),
            value, ONE_OF("", " 7"), member);
    }
}

void commands_write(struct wire *wire, int count) {
    struct text text = {0};
    int asked = 0;
    for (int i = 0; i < count; i++) {
        int64_t now_us = (int64_t)time(NULL) * 1000000;
        size_t sizes[TWIN_REQUESTS_ARGS_MAX];
        const char *words[TWIN_REQUESTS_ARGS_MAX];
        bool is_multi = below(50) == 0;
        if (below(3) == 0) {
            add_of_boards(&text);
            add_of_members(&text);
            asked += 2;
        }
        twin_requests_make(&requests, now_us);
        for (uint32_t k = 0; k < requests.arg_count; k++) {
            words[k] = requests.args[k].at;
            sizes[k] = requests.args[k].size;
        }
        if (is_multi) {
            text_command(&text, "MULTI");
            text_command(&text, "ZADD multi%d %d m%d", (int)below(3), (int)below(9),
                         (int)below(99));
        }
        text_command_words(&text, words, sizes, requests.arg_count);
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
    text_free(&text);
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
