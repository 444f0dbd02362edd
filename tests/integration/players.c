/* Orders on one player across kill -9: what has begun is finished after the restart. */
#include "tests/support/test.h"

#include <signal.h>

#include "tests/support/directory.h"
#include "tests/support/process.h"
#include "tests/support/wire.h"

enum { BOARDS = 20000, BOARDS_SHORT = 4000, PIPELINE = 500, WAIT_LIMIT_MS = 60000 };

static const char *const with_always[] = {"--appendonly", "yes", "--appendfsync", "always", NULL};

static void start(struct process *server, const char *directory, struct wire *wire) {
    const struct process_options options = {.directory = directory, .arguments = with_always};
    assert_true(process_start(server, &options));
    *wire = wire_open(process_connect_unix(server));
    wire_wait_loaded(wire);
}

static int board_count(void) {
    return is_short_run() ? BOARDS_SHORT : BOARDS;
}

static void fill(struct wire *wire) {
    for (int begin = 0; begin < board_count(); begin += PIPELINE) {
        TEXT(requests);
        for (int i = begin; i < begin + PIPELINE; i++) {
            text_format(&requests, "ZADD b:%d 5 ann\r\n", i);
        }
        wire_send(wire, requests.at, requests.size);
        for (int i = 0; i < PIPELINE; i++) {
            wire_expect(wire, ":1\r\n");
        }
    }
}

/* Kill the server once an effect of the order is seen, and so is on disk. After the restart it is
 * finished; then the command is answered so. */
static void kill_in_between(const char *order, const char *command, const char *reply) {
    char directory[DIRECTORY_PATH_MAX];
    struct process server;
    struct wire wire, asking;
    directory_make(directory);
    start(&server, directory, &wire);
    fill(&wire);
    asking = wire_open(process_connect_unix(&server));
    wire_send_text(&asking, order);
    while (wire_ask_integer(&wire, "DBSIZE") == board_count()) {}
    process_signal(&server, SIGKILL);
    assert_true(process_wait(&server, WAIT_LIMIT_MS));
    wire_close(&wire);
    wire_close(&asking);
    process_stop(&server);
    start(&server, directory, &wire);
    while (wire_ask_integer(&wire, "DBSIZE") > 0) {}
    wire_check_prefix(&wire, command, reply);
    wire_close(&wire);
    assert_int_equal(process_stop(&server), 0);
    directory_remove(directory);
}

TEST(a_member_half_forgotten_is_forgotten_after_kill_9) {
    kill_in_between("LB.FORGET ann\r\n", "LB.WHERE ann", "[]");
}

TEST(a_member_half_banned_is_off_all_boards_after_kill_9) {
    kill_in_between("LB.BAN ann\r\n", "ZADD b:1 5 ann", "-BANNED ");
}
