/* Backups of real servers by the real tool: while boards change, with either side killed, the connection
 * cut, the disk full, and with readers that do not read. The file is whole or not there, and the server
 * goes on. */
#include "tests/support/test.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/durability/verify.h"
#include "server/settings/settings.h"
#include "server/system/clock.h"
#include "tests/support/directory.h"
#include "tests/support/process.h"
#include "tests/support/random.h"
#include "tests/support/wire.h"

enum { VALUE_SIZE = 8192, VALUES = 700, WORDS_MAX = 12 };

static char directory[DIRECTORY_PATH_MAX];
static struct process server;
static struct wire wire;
static struct random numbers;
static bool is_killed;

static const char *backup_path(void) {
    return directory_join(directory, "boards.backup");
}

/* Hashes of random bytes: what does not get smaller takes a while to send. */
static void put_values(const char *name, int count) {
    static char value[VALUE_SIZE];
    for (int i = 0; i < count; i++) {
        char key[64];
        int size = snprintf(key, sizeof key, "%s:%d", name, i);
        for (size_t k = 0; k < sizeof value; k += 8) {
            uint64_t bits = random_next(&numbers);
            memcpy(value + k, &bits, 8);
        }
        struct text command = {0};
        const char *words[] = {"HSET", key, "f", value};
        const size_t sizes[] = {4, (size_t)size, 1, sizeof value};
        text_command_words(&command, words, sizes, 4);
        wire_send(&wire, command.at, command.size);
        text_free(&command);
        (void)wire_reply(&wire);
    }
}

FIXTURE(set_up) {
    const char *const words[] = {"--appendonly", "yes", "--auto-aof-rewrite-percentage", "0", NULL};
    const struct process_options options = {.arguments = words};
    signal(SIGPIPE, SIG_IGN);
    clock_calibrate();
    numbers = random_begin("backup");
    directory_make(directory);
    assert_true(process_start(&server, &options));
    wire = wire_open(process_connect_unix(&server));
    wire_wait_loaded(&wire);
    is_killed = false;
    put_values("big", VALUES);
    return 0;
}

FIXTURE(tear_down) {
    wire_close(&wire);
    int status = process_stop(&server);
    directory_remove(directory);
    return is_killed ? 0 : status;
}

/* ---- the tool ---- */

/* Start it with these words; what it says goes to the file "said". */
static pid_t start_tool(const char *address, uint64_t size_max) {
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        int said = open(directory_join(directory, "said"), O_WRONLY | O_CREAT | O_TRUNC, 0600);
        const struct rlimit limit = {.rlim_cur = size_max, .rlim_max = size_max};
        dup2(said, 1);
        dup2(said, 2);
        if (size_max > 0) {
            setrlimit(RLIMIT_FSIZE, &limit);
        }
        execl(server.program, server.program, "--backup", address, backup_path(), NULL);
        _exit(127);
    }
    return child;
}

static int end_tool(pid_t tool) {
    int status;
    assert_int_equal(waitpid(tool, &status, 0), tool);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void assert_said(const char *words) {
    size_t size;
    OWNED char *said = file_read(directory_join(directory, "said"), &size);
    if (memmem(said, size, words, strlen(words)) == NULL) {
        fail_msg("\"%s\" is not in \"%.*s\"", words, (int)size, said);
    }
}

/* Is it there? Then it is whole. */
static bool has_backup(void) {
    struct snapshot_footer footer;
    char error[DISK_ERROR_MAX];
    if (!file_exists(backup_path())) {
        return false;
    }
    int fd = open(backup_path(), O_RDONLY);
    if (!verify_blocks(fd, backup_path(), &footer, error)) {
        fail_msg("%s", error);
    }
    return true;
}

static void check_whole(void) {
    OWNED char *said = NULL;
    size_t size;
    FILE *out = open_memstream(&said, &size);
    enum check_result result = verify_run(backup_path(), false, out);
    fclose(out);
    if (result != CHECK_IS_WHOLE) {
        fail_msg("%s", said);
    }
}

static void take_backup(void) {
    pid_t tool = start_tool(server.socket_path, 0);
    if (end_tool(tool) != 0) {
        assert_said("why it has failed");
    }
    assert_true(has_backup());
}

static void forget_backup(void) {
    (void)unlink(backup_path());
}

#define IN_FIXTURE(name) TEST_WITH(name, set_up, tear_down)

/* ---- while boards change ---- */

/* Until it is killed: both boards have the same score in every transaction. */
static pid_t start_writer(void) {
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct wire own = wire_open(process_connect_unix(&server));
        for (int i = 0;; i++) {
            char text[256];
            snprintf(text, sizeof text,
                     "MULTI\r\nZADD one %d p%d\r\nHSET last a %d\r\nZADD two %d p%d\r\nEXEC\r\n", i,
                     i % 5000, i, i, i % 5000);
            wire_send_text(&own, text);
            for (int k = 0; k < 5; k++) {
                (void)wire_reply(&own);
            }
        }
    }
    return child;
}

struct scores {
    uint64_t sums[2];
};

static void add_scores(void *context, const struct registry_key *key) {
    struct scores *scores = context;
    struct bytes name = registry_name(key);
    if (key->kind == REGISTRY_BOARD) {
        int which = bytes_equal(name, BYTES("two"));
        for (uint32_t i = 0; i < board_count(&key->board); i++) {
            scores->sums[which] +=
                layout_ordinal(board_layout(&key->board), board_at(&key->board, i).key, 0);
        }
    }
}

IN_FIXTURE(a_backup_has_whole_transactions_only) {
    ENDED_BY(settings_deinit) struct settings settings;
    char error[DISK_ERROR_MAX];
    pid_t writer = start_writer();
    assert_true(settings_init(&settings));
    for (int i = 0; i < (is_short_run() ? 2 : 20); i++) {
        uint64_t time_us;
        struct scores scores = {{0}};
        while (wire_ask_integer(&wire, "ZCARD two") < 100) {}
        take_backup();
        check_whole();
        struct registry *registry = registry_create(7, setting_board_options_for, &settings);
        assert_true(verify_load(backup_path(), registry, &time_us, error));
        registry_walk_each(registry, 0, INT64_MIN, add_scores, &scores);
        assert_true(scores.sums[0] == scores.sums[1]);
        assert_true(scores.sums[0] > 0);
        registry_destroy(registry);
    }
    kill(writer, SIGKILL);
    (void)end_tool(writer);
}

/* ---- kills and cuts ---- */

IN_FIXTURE(a_backup_that_is_killed_leaves_no_file_and_a_server_that_goes_on) {
    uint32_t killed = 0;
    for (int i = 0; i < (is_short_run() ? 8 : 100); i++) {
        forget_backup();
        pid_t tool = start_tool(server.socket_path, 0);
        usleep((useconds_t)random_below(&numbers, 60000));
        kill(tool, SIGKILL);
        bool was_killed = end_tool(tool) != 0;
        killed += was_killed;
        assert_true(has_backup() || was_killed);
    }
    assert_true(killed > 0);
    forget_backup();
    take_backup();
    check_whole();
}

IN_FIXTURE(a_server_that_is_killed_leaves_no_backup) {
    pid_t tool = start_tool(server.socket_path, 0);
    wire_close(&wire);
    process_signal(&server, SIGKILL);
    is_killed = true;
    assert_true(process_wait(&server, PROCESS_STOP_LIMIT_MS));
    int status = end_tool(tool);
    assert_int_equal(has_backup(), status == 0);
}

/* Between the tool and the server: passes so many bytes of replies on, then cuts. */
static pid_t start_cutter(int listener, uint64_t size_max) {
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        char bytes[4096];
        int to_server = process_connect_unix(&server);
        int to_tool = accept(listener, NULL, NULL);
        ssize_t size = read(to_tool, bytes, sizeof bytes);
        bool is_sent = size > 0 && write(to_server, bytes, (size_t)size) == size;
        while (is_sent && size_max > 0) {
            size_t room = size_max < sizeof bytes ? (size_t)size_max : sizeof bytes;
            size = read(to_server, bytes, room);
            is_sent = size > 0 && write(to_tool, bytes, (size_t)size) == size;
            size_max -= size > 0 ? (uint64_t)size : 0;
        }
        _exit(0);
    }
    return child;
}

IN_FIXTURE(a_connection_that_is_cut_leaves_no_backup) {
    for (int i = 0; i < (is_short_run() ? 4 : 40); i++) {
        struct sockaddr_storage bound;
        socklen_t length = sizeof bound;
        int listener = socket(AF_INET, SOCK_STREAM, 0);
        assert_int_equal(listen(listener, 1), 0); /* on any port */
        assert_int_equal(getsockname(listener, (struct sockaddr *)&bound, &length), 0);
        uint16_t port;
        memcpy(&port, (char *)&bound + 2, 2);
        const char *address =
            formatted("127.0.0.1:%u", (unsigned)(uint16_t)(port << 8 | port >> 8));
        pid_t cutter = start_cutter(listener, random_below(&numbers, VALUES * VALUE_SIZE));
        assert_int_equal(end_tool(start_tool(address, 0)), 1);
        assert_said("the connection broke after");
        assert_false(has_backup());
        assert_int_equal(directory_count(directory), 1); /* "said" */
        (void)end_tool(cutter);
        close(listener);
    }
    take_backup();
}

IN_FIXTURE(a_full_disk_leaves_no_backup) {
    for (uint64_t size_max = 100; size_max < VALUES * VALUE_SIZE; size_max *= 40) {
        assert_int_equal(end_tool(start_tool(server.socket_path, size_max)), 1);
        assert_said("cannot write");
        assert_false(has_backup());
        assert_int_equal(directory_count(directory), 1);
    }
    take_backup();
}

IN_FIXTURE(an_older_backup_stays_until_the_new_one_is_whole) {
    take_backup();
    assert_int_equal(end_tool(start_tool(server.socket_path, 1000)), 1);
    assert_true(has_backup());
}

/* ---- readers that do not read ---- */

static void wait_until_others_are_served(void) {
    for (int i = 0; i < 100; i++) {
        wire_check(&wire, "PING", "PONG");
    }
}

/* The reply that ends the stream. */
static const char *read_to_end(struct wire *reader) {
    const char *reply;
    do {
        reply = wire_reply(reader);
    } while (strncmp(reply, "END group=", 10) != 0 && strncmp(reply, "-ERR", 4) != 0);
    return reply;
}

IN_FIXTURE(a_reader_that_is_too_slow_is_told_and_holds_nobody_up) {
    put_values("further", 1500); /* more than the socket, the pipe and the walk take ahead */
    struct wire slow = wire_open(process_connect_unix(&server));
    wire_send_text(&slow, "LB.SNAPSHOT\r\n");
    wait_until_others_are_served();
    put_values("more", 72 * 1024 * 1024 / VALUE_SIZE);
    const char *reply = read_to_end(&slow);
    assert_non_null(strstr(reply, "read more slowly than boards changed"));
    wire_check(&slow, "PING", "PONG");
    wire_close(&slow);
    take_backup();
}

IN_FIXTURE(backups_wait_for_each_other_and_few_may) {
    enum { READERS = 4 };
    struct wire readers[READERS];
    for (int i = 0; i < READERS; i++) {
        readers[i] = wire_open(process_connect_unix(&server));
        wire_send_text(&readers[i], "LB.SNAPSHOT\r\n");
        wait_until_others_are_served();
    }
    wire_check_prefix(&wire, "LB.SNAPSHOT", "-TRYAGAIN 4 backups");
    for (int i = 0; i < READERS; i++) {
        assert_int_equal(strncmp(read_to_end(&readers[i]), "END group=", 10), 0);
        wire_close(&readers[i]);
    }
    take_backup();
}

IN_FIXTURE(a_save_and_a_backup_exclude_each_other) {
    struct wire slow = wire_open(process_connect_unix(&server));
    wire_send_text(&slow, "LB.SNAPSHOT\r\n");
    wait_until_others_are_served();
    wire_check_prefix(&wire, "BGSAVE", "-ERR Background save already in progress");
    assert_int_equal(wire_info(&wire, "rdb_bgsave_in_progress"), 0);
    assert_int_equal(strncmp(read_to_end(&slow), "END group=", 10), 0);
    wire_close(&slow);
    wire_check(&wire, "SAVE", "OK");
}

IN_FIXTURE(a_server_ends_in_spite_of_a_backup) {
    struct wire slow = wire_open(process_connect_unix(&server));
    wire_send_text(&slow, "LB.SNAPSHOT\r\n");
    wait_until_others_are_served();
    process_signal(&server, SIGTERM);
    assert_non_null(strstr(read_to_end(&slow), "given up"));
    wire_close(&slow);
    assert_true(process_wait(&server, PROCESS_STOP_LIMIT_MS));
    assert_int_equal(server.exit_status, 0);
}
