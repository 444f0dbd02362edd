/* Who waits for the disk: clients on sockets, a whole loop, and a disk whose syncs and writes end
 * when the test says so. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/connection.h"
#include "server/log.h"
#include "server/persistence.h"
#include "server/tick.h"
#include "tests/support/directory.h"
#include "tests/support/harness.h"
#include "tests/support/random.h"

enum { CLIENTS_MAX = 16, NOTHING_TURNS = 30, TURNS_MAX = 200000, INPUT_MAX = 1 << 20 };

static bool is_short(void) {
    return getenv("LEADERBOARD_TEST_SHORT") != NULL;
}

/* ---- a disk that waits for the test ---- */

static struct disk disk_held;
static atomic_bool are_syncs_held, is_full;
static atomic_uint syncs_begun;
static sem_t may_sync;

static int sync_when_told(int fd) {
    (void)fd;
    if (are_syncs_held) {
        syncs_begun++;
        while (sem_wait(&may_sync) != 0) {}
    }
    return 0;
}

static int sync_at_once(int fd) {
    (void)fd;
    return 0;
}

static ssize_t write_if_there_is_room(int fd, const void *bytes, size_t size) {
    if (is_full) {
        errno = ENOSPC;
        return -1;
    }
    return disk_system.write(fd, bytes, size);
}

static void use_held_disk(void) {
    disk_held = disk_system;
    disk_held.sync = sync_at_once;
    disk_held.sync_contents = sync_when_told;
    disk_held.write = write_if_there_is_room;
    are_syncs_held = false;
    is_full = false;
    syncs_begun = 0;
    assert_int_equal(sem_init(&may_sync, 0, 0), 0);
    disk = &disk_held;
}

static void let_one_sync_end(void) {
    sem_post(&may_sync);
}

/* From now on they end by themselves, the one that waits too. */
static void let_syncs_end(void) {
    are_syncs_held = false;
    sem_post(&may_sync);
}

/* ---- a server and its clients ---- */

struct fixture {
    char directory[DIRECTORY_PATH_MAX];
    struct harness *harness;
    struct server *server;
    uv_loop_t loop;
    struct tick tick;
    struct persistence *persistence;
    int clients[CLIENTS_MAX];
    int client_count;
};

static void stop_listening(void *context) {
    (void)context;
}

static void open_gates(void *context) {
    tick_open_gates(context);
}

static struct fixture *begin(const char *settings) {
    char text[1024];
    char error[PERSISTENCE_ERROR_MAX];
    struct fixture *fixture = calloc(1, sizeof *fixture);
    assert_non_null(fixture);
    log_set_level(LOG_WARNING);
    directory_make(fixture->directory);
    use_held_disk();
    signal(SIGPIPE, SIG_IGN);
    snprintf(text, sizeof text, "dir %s\nappenddirname kept\n%s", fixture->directory, settings);
    fixture->harness = harness_create(text);
    fixture->server = &fixture->harness->server;
    fixture->tick.stop_listening = stop_listening;
    assert_int_equal(uv_loop_init(&fixture->loop), 0);
    assert_true(tick_init(&fixture->tick, &fixture->loop, fixture->server));
    fixture->persistence = persistence_open(&fixture->server->settings, error);
    assert_non_null(fixture->persistence);
    assert_true(persistence_start(fixture->persistence, fixture->server, &fixture->loop, open_gates,
                                  &fixture->tick, error));
    assert_false(fixture->server->is_loading);
    return fixture;
}

static void stop(struct fixture *fixture) {
    let_syncs_end();
    tick_shutdown(&fixture->tick, true);
    assert_int_equal(uv_run(&fixture->loop, UV_RUN_DEFAULT), 0);
    persistence_stop(fixture->persistence);
    assert_int_equal(uv_run(&fixture->loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(uv_loop_close(&fixture->loop), 0);
    persistence_destroy(fixture->persistence);
    fixture->server->persistence = NULL;
    tick_deinit(&fixture->tick);
    harness_destroy(fixture->harness);
    fixture->harness = NULL;
}

static void end(struct fixture *fixture) {
    if (fixture->harness != NULL) {
        stop(fixture);
    }
    for (int i = 0; i < fixture->client_count; i++) {
        close(fixture->clients[i]);
    }
    disk = &disk_system;
    sem_destroy(&may_sync);
    directory_remove(fixture->directory);
    free(fixture);
}

/* The client's end of a new connection. */
static int new_client(struct fixture *fixture) {
    int ends[2];
    assert_true(fixture->client_count < CLIENTS_MAX);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    assert_true(connection_open(&fixture->tick, ends[0], true, "test"));
    fixture->clients[fixture->client_count++] = ends[1];
    return ends[1];
}

static void turn(struct fixture *fixture) {
    uv_run(&fixture->loop, UV_RUN_NOWAIT);
}

static void turn_some(struct fixture *fixture) {
    for (int i = 0; i < NOTHING_TURNS; i++) {
        turn(fixture);
        usleep(50);
    }
}

/* Turn while something is waited for; true: it may still come. Whoever is to bring it may need this
 * processor. */
static bool turn_and_wait(struct fixture *fixture, int *turns) {
    turn(fixture);
    if (++*turns > 100) {
        usleep(50);
    }
    return *turns < TURNS_MAX;
}

static void send_bytes(int client, const char *bytes, size_t size) {
    assert_int_equal(write(client, bytes, size), (ssize_t)size);
}

static void send_text(int client, const char *text) {
    send_bytes(client, text, strlen(text));
}

/* Exactly this comes, and in the end. */
static void expect(struct fixture *fixture, int client, const char *expected) {
    static char got[INPUT_MAX];
    size_t size = 0;
    for (int turns = 0; size < strlen(expected) && turn_and_wait(fixture, &turns);) {
        ssize_t part = read(client, got + size, sizeof got - 1 - size);
        size += part > 0 ? (size_t)part : 0;
    }
    got[size] = '\0';
    assert_string_equal(got, expected);
}

static void expect_nothing(struct fixture *fixture, int client) {
    char byte;
    turn_some(fixture);
    ssize_t size = read(client, &byte, 1);
    assert_true(size < 0 && errno == EAGAIN);
}

static void expect_end(struct fixture *fixture, int client) {
    char byte;
    ssize_t size = -1;
    for (int turns = 0; size < 0 && turn_and_wait(fixture, &turns);) {
        size = read(client, &byte, 1);
    }
    assert_int_equal(size, 0);
}

/* A reply begins like this; the rest of it is thrown away. */
static void expect_something(struct fixture *fixture, int client, const char *prefix) {
    static char got[INPUT_MAX];
    ssize_t size = -1;
    for (int turns = 0; size <= 0 && turn_and_wait(fixture, &turns);) {
        size = read(client, got, sizeof got);
    }
    assert_true(size >= (ssize_t)strlen(prefix));
    assert_memory_equal(got, prefix, strlen(prefix));
}

static void hold_syncs(void) {
    are_syncs_held = true;
}

/* Turn until the disk syncs for the nth time since they are held. */
static void wait_for_sync(struct fixture *fixture, unsigned nth) {
    for (int turns = 0; syncs_begun < nth && turn_and_wait(fixture, &turns);) {}
    assert_int_equal(syncs_begun, nth);
}

#define ALWAYS   "appendonly yes\nappendfsync always\n"
#define EVERYSEC "appendonly yes\nappendfsync everysec\n"

/* ---- always ---- */

static void a_writers_reply_waits_for_the_disk(void **state) {
    (void)state;
    struct fixture *f = begin(ALWAYS);
    int ann = new_client(f);
    hold_syncs();
    send_text(ann, "ZADD k 5 m\r\n");
    expect_nothing(f, ann);
    let_one_sync_end();
    expect(f, ann, ":1\r\n");
    end(f);
}

static void a_reader_who_could_see_it_waits_too(void **state) {
    (void)state;
    struct fixture *f = begin(ALWAYS);
    int ann = new_client(f);
    int bob = new_client(f);
    int kim = new_client(f);
    send_text(bob, "ZSCORE k m\r\n");
    expect(f, bob, "$-1\r\n");
    hold_syncs();
    send_text(ann, "ZADD k 5 m\r\n");
    expect_nothing(f, ann);
    send_text(bob, "ZSCORE k m\r\n");
    send_text(kim, "DBSIZE\r\n");
    expect_nothing(f, bob);
    expect_nothing(f, kim);
    let_one_sync_end();
    expect(f, bob, "$1\r\n5\r\n");
    expect(f, kim, ":1\r\n");
    expect(f, ann, ":1\r\n");
    /* All is on disk: a reader waits for nothing. */
    send_text(bob, "ZSCORE k m\r\n");
    expect(f, bob, "$1\r\n5\r\n");
    end(f);
}

static void who_sees_no_boards_does_not_wait(void **state) {
    (void)state;
    struct fixture *f = begin(ALWAYS);
    int ann = new_client(f);
    int bob = new_client(f);
    hold_syncs();
    send_text(ann, "ZADD k 5 m\r\n");
    expect_nothing(f, ann);
    send_text(bob, "PING\r\n");
    expect(f, bob, "+PONG\r\n");
    send_text(bob, "ECHO x\r\n");
    expect(f, bob, "$1\r\nx\r\n");
    send_text(bob, "CONFIG GET port\r\n");
    expect_something(f, bob, "*2\r\n$4\r\nport\r\n");
    send_text(bob, "INFO persistence\r\n");
    expect_something(f, bob, "$");
    send_text(bob, "NOSUCH\r\n");
    expect_something(f, bob, "-ERR unknown command");
    expect_nothing(f, ann);
    let_one_sync_end();
    expect(f, ann, ":1\r\n");
    end(f);
}

static void the_order_of_a_clients_replies_is_kept(void **state) {
    (void)state;
    struct fixture *f = begin(ALWAYS);
    int ann = new_client(f);
    hold_syncs();
    send_text(ann, "PING\r\nECHO a\r\nZADD k 5 m\r\nPING\r\nZSCORE k m\r\nECHO b\r\n");
    expect(f, ann, "+PONG\r\n$1\r\na\r\n");
    expect_nothing(f, ann);
    send_text(ann, "PING\r\n");
    expect_nothing(f, ann);
    let_one_sync_end();
    expect(f, ann, ":1\r\n+PONG\r\n$1\r\n5\r\n$1\r\nb\r\n+PONG\r\n");
    send_text(ann, "PING\r\n");
    expect(f, ann, "+PONG\r\n");
    end(f);
}

static void replies_leave_up_to_what_is_on_disk(void **state) {
    (void)state;
    struct fixture *f = begin(ALWAYS);
    int ann = new_client(f);
    hold_syncs();
    send_text(ann, "ZADD k 5 first\r\n");
    wait_for_sync(f, 1);
    send_text(ann, "ZADD k 5 second\r\nPING\r\n");
    turn_some(f);
    send_text(ann, "ZADD k 5 second third\r\nZCARD k\r\n");
    expect_nothing(f, ann);
    let_one_sync_end();
    expect(f, ann, ":1\r\n");
    expect_nothing(f, ann);
    let_one_sync_end();
    expect(f, ann, ":1\r\n+PONG\r\n-ERR syntax error\r\n:2\r\n");
    end(f);
}

static void a_transaction_that_reads_waits_as_a_reader_does(void **state) {
    (void)state;
    struct fixture *f = begin(ALWAYS);
    int ann = new_client(f);
    int bob = new_client(f);
    int kim = new_client(f);
    send_text(bob, "MULTI\r\nZSCORE k m\r\n");
    expect(f, bob, "+OK\r\n+QUEUED\r\n");
    send_text(kim, "WATCH k\r\nMULTI\r\nPING\r\n");
    expect(f, kim, "+OK\r\n+OK\r\n+QUEUED\r\n");
    hold_syncs();
    send_text(ann, "ZADD k 5 m\r\n");
    wait_for_sync(f, 1);
    send_text(bob, "EXEC\r\n");
    send_text(kim, "EXEC\r\n");
    expect_nothing(f, bob);
    expect_nothing(f, kim); /* that nothing was run shows that k has changed */
    let_one_sync_end();
    expect(f, bob, "*1\r\n$1\r\n5\r\n");
    expect(f, kim, "*-1\r\n");
    end(f);
}

static void a_transaction_that_writes_waits_as_a_whole(void **state) {
    (void)state;
    struct fixture *f = begin(ALWAYS);
    int ann = new_client(f);
    hold_syncs();
    send_text(ann, "MULTI\r\nPING\r\nZADD k 5 m\r\nEXEC\r\nPING\r\n");
    expect(f, ann, "+OK\r\n+QUEUED\r\n+QUEUED\r\n");
    expect_nothing(f, ann);
    let_one_sync_end();
    expect(f, ann, "*2\r\n+PONG\r\n:1\r\n+PONG\r\n");
    end(f);
}

static void what_changes_by_a_look_waits_too(void **state) {
    (void)state;
    struct fixture *f = begin(EVERYSEC);
    int ann = new_client(f);
    send_text(ann, "ZADD k 5 m\r\nPEXPIRE k 1000\r\n");
    expect(f, ann, ":1\r\n:1\r\n");
    f->harness->wall_us += 2000000;
    send_text(ann, "ZSCORE k m\r\n");
    expect(f, ann, "$-1\r\n");
    end(f);
}

static void without_a_reply_nothing_waits(void **state) {
    (void)state;
    struct fixture *f = begin(ALWAYS);
    int ann = new_client(f);
    send_text(ann, "CLIENT REPLY OFF\r\n");
    expect_nothing(f, ann);
    hold_syncs();
    send_text(ann, "ZADD k 5 m\r\n");
    wait_for_sync(f, 1);
    send_text(ann, "CLIENT REPLY ON\r\nPING\r\n");
    expect(f, ann, "+OK\r\n+PONG\r\n");
    end(f);
}

/* ---- clients that go ---- */

static void clients_may_close_while_they_wait(void **state) {
    (void)state;
    struct fixture *f = begin(ALWAYS);
    int clients[5];
    hold_syncs();
    for (int i = 0; i < 5; i++) {
        clients[i] = new_client(f);
        send_text(clients[i], "ZINCRBY k 1 m\r\n");
        turn_some(f);
    }
    /* The first, one of the middle and the last of those that wait. */
    shutdown(clients[0], SHUT_RDWR);
    shutdown(clients[2], SHUT_RDWR);
    shutdown(clients[4], SHUT_RDWR);
    turn_some(f);
    let_syncs_end();
    expect(f, clients[1], "$1\r\n2\r\n");
    expect(f, clients[3], "$1\r\n4\r\n");
    expect_end(f, clients[0]);
    assert_int_equal(f->server->session_count, 2);
    end(f);
}

static void a_client_that_is_killed_gets_nothing(void **state) {
    (void)state;
    struct fixture *f = begin(ALWAYS);
    int ann = new_client(f);
    int bob = new_client(f);
    hold_syncs();
    send_text(ann, "ZADD k 5 m\r\n");
    expect_nothing(f, ann);
    send_text(bob, "CLIENT KILL ID 1\r\n");
    expect(f, bob, ":1\r\n");
    expect_end(f, ann);
    let_one_sync_end();
    turn_some(f);
    send_text(bob, "ZSCORE k m\r\n");
    expect(f, bob, "$1\r\n5\r\n");
    end(f);
}

static void who_quits_gets_the_replies_first(void **state) {
    (void)state;
    struct fixture *f = begin(ALWAYS);
    int ann = new_client(f);
    int bob = new_client(f);
    hold_syncs();
    send_text(ann, "ZADD k 5 m\r\nQUIT\r\n");
    send_text(bob, "ZADD l 5 m\r\n");
    shutdown(bob, SHUT_WR);
    expect_nothing(f, ann);
    expect_nothing(f, bob);
    let_syncs_end();
    expect(f, ann, ":1\r\n+OK\r\n");
    expect_end(f, ann);
    expect(f, bob, ":1\r\n");
    expect_end(f, bob);
    end(f);
}

/* ---- a full disk ---- */

static void let_a_second_pass(struct fixture *fixture) {
    fixture->harness->wall_us += 1000000;
    server_update_time(fixture->server);
    persistence_second(fixture->persistence);
}

static void while_the_disk_is_full_only_the_refused_are_answered(void **state) {
    (void)state;
    struct fixture *f = begin(ALWAYS);
    int ann = new_client(f);
    int bob = new_client(f);
    int kim = new_client(f);
    send_text(ann, "ZADD k 4 m\r\n");
    expect(f, ann, ":1\r\n");
    is_full = true;
    send_text(ann, "ZADD k 5 m\r\n");
    expect_nothing(f, ann);
    assert_non_null(f->server->write_refusal);
    send_text(bob, "ZADD k 6 m\r\nPING\r\n");
    expect(f, bob, "-MISCONF Errors writing to the AOF file: No space left on device\r\n+PONG\r\n");
    send_text(kim, "ZSCORE k m\r\n");
    expect_nothing(f, kim);
    let_a_second_pass(f);
    expect_nothing(f, ann);
    is_full = false;
    let_a_second_pass(f);
    expect(f, ann, ":0\r\n");
    expect(f, kim, "$1\r\n5\r\n");
    send_text(bob, "ZADD k 6 m\r\n");
    expect(f, bob, ":0\r\n");
    end(f);
}

static void what_is_not_on_disk_at_the_end_is_not_answered(void **state) {
    (void)state;
    struct fixture *f = begin(ALWAYS);
    int ann = new_client(f);
    char byte;
    is_full = true;
    send_text(ann, "ZADD k 5 m\r\n");
    expect_nothing(f, ann);
    stop(f);
    assert_int_equal(read(ann, &byte, 1), 0);
    end(f);
}

/* ---- everysec, and none ---- */

static void with_everysec_nobody_waits_for_a_sync(void **state) {
    (void)state;
    struct fixture *f = begin(EVERYSEC);
    int ann = new_client(f);
    int bob = new_client(f);
    hold_syncs();
    send_text(ann, "ZADD k 5 m\r\n");
    expect(f, ann, ":1\r\n");
    let_a_second_pass(f);
    wait_for_sync(f, 1);
    send_text(ann, "ZADD k 6 m\r\n");
    expect(f, ann, ":0\r\n");
    send_text(bob, "ZSCORE k m\r\n");
    expect(f, bob, "$1\r\n6\r\n");
    end(f);
}

static void with_everysec_writers_wait_for_room_and_readers_do_not(void **state) {
    (void)state;
    struct fixture *f = begin(EVERYSEC);
    int ann = new_client(f);
    int bob = new_client(f);
    is_full = true;
    send_text(ann, "ZADD k 5 m\r\nPING\r\n");
    expect_nothing(f, ann);
    send_text(bob, "ZSCORE k m\r\n");
    expect(f, bob, "$1\r\n5\r\n");
    is_full = false;
    let_a_second_pass(f);
    expect(f, ann, ":1\r\n+PONG\r\n");
    end(f);
}

static void without_a_journal_nobody_waits(void **state) {
    (void)state;
    struct fixture *f = begin("appendonly no\n");
    int ann = new_client(f);
    hold_syncs();
    is_full = true;
    send_text(ann, "ZADD k 5 m\r\nZSCORE k m\r\n");
    expect(f, ann, ":1\r\n$1\r\n5\r\n");
    is_full = false;
    end(f);
}

static void who_waits_as_the_journal_goes_off_is_answered(void **state) {
    (void)state;
    struct fixture *f = begin(ALWAYS);
    int ann = new_client(f);
    int bob = new_client(f);
    hold_syncs();
    send_text(ann, "ZADD k 5 m\r\n");
    wait_for_sync(f, 1);
    send_text(bob, "CONFIG SET appendonly no\r\n");
    expect(f, bob, "+OK\r\n");
    expect_nothing(f, ann);
    let_syncs_end();
    let_a_second_pass(f);
    expect(f, ann, ":1\r\n");
    end(f);
}

static void always_may_be_set_while_a_second_goes_by(void **state) {
    (void)state;
    struct fixture *f = begin(EVERYSEC);
    int ann = new_client(f);
    int bob = new_client(f);
    send_text(ann, "ZADD k 5 m\r\n");
    expect(f, ann, ":1\r\n");
    hold_syncs();
    send_text(bob, "CONFIG SET appendfsync always\r\n");
    expect(f, bob, "+OK\r\n");
    /* What was written before is not on disk yet: who sees it waits now. */
    send_text(bob, "ZSCORE k m\r\n");
    expect_nothing(f, bob);
    let_syncs_end();
    let_a_second_pass(f);
    expect(f, bob, "$1\r\n5\r\n");
    end(f);
}

static void a_sync_that_everysec_has_begun_is_waited_for_by_always(void **state) {
    (void)state;
    struct fixture *f = begin(EVERYSEC);
    int ann = new_client(f);
    send_text(ann, "ZADD k 5 m\r\n");
    expect(f, ann, ":1\r\n");
    hold_syncs();
    let_a_second_pass(f);
    wait_for_sync(f, 1);
    send_text(ann, "CONFIG SET appendfsync always\r\n");
    expect(f, ann, "+OK\r\n");
    send_text(ann, "ZADD k 6 m\r\n");
    expect_nothing(f, ann);
    assert_int_equal(syncs_begun, 1);
    let_one_sync_end();
    wait_for_sync(f, 2);
    let_a_second_pass(f);
    expect_nothing(f, ann);
    assert_int_equal(syncs_begun, 2);
    let_one_sync_end();
    expect(f, ann, ":0\r\n");
    end(f);
}

/* ---- any of it ---- */

enum { COUNT_CLIENTS = 8, GROUPS_MAX = 100000, WANTED_MAX = 4096 };

/* All clients count one member up, or look at it: each reply shows a number, and no number may be
 * seen before the group that brought it is on disk. */
struct counting {
    struct fixture *fixture;
    struct random random;
    int clients[COUNT_CLIENTS];
    uint64_t last_seen[COUNT_CLIENTS];
    uint32_t asked[COUNT_CLIENTS];           /* replies that are still to come */
    bool is_ping[COUNT_CLIENTS][WANTED_MAX]; /* of what kind, in order */
    uint32_t sent[COUNT_CLIENTS], got[COUNT_CLIENTS];
    char text[COUNT_CLIENTS][65536]; /* of replies, up to where a whole one ends */
    size_t text_size[COUNT_CLIENTS];
    uint64_t numbers[GROUPS_MAX]; /* as they were at the end of each group */
    uint64_t noted_group;
    uint64_t seen_count;
};

static uint64_t number_now(const struct fixture *fixture) {
    const struct registry_key *key =
        registry_peek(fixture->server->registry, 0, BYTES("k"), INT64_MIN);
    uint64_t packed;
    if (key == NULL || !board_find(&key->board, BYTES("m"), &packed)) {
        return 0;
    }
    uint64_t ordinal = layout_ordinal(board_layout(&key->board), packed, 0);
    return ordinal - layout_field_zero(&board_layout(&key->board)->fields[0]);
}

static void note_group(struct counting *counting) {
    struct persistence_info info;
    persistence_describe(counting->fixture->persistence, &info);
    assert_true(info.group < GROUPS_MAX);
    assert_true(info.group <= counting->noted_group + 1);
    counting->noted_group = info.group;
    counting->numbers[info.group] = number_now(counting->fixture);
}

static void check_seen(struct counting *counting, int client, uint64_t number) {
    struct persistence_info info;
    persistence_describe(counting->fixture->persistence, &info);
    assert_true(number >= counting->last_seen[client]);
    assert_true(number <= counting->numbers[info.synced_group]);
    counting->last_seen[client] = number;
    counting->seen_count++;
}

/* The size of the reply at text, or 0: it is not all there. */
static size_t take_reply(struct counting *counting, int client, const char *text) {
    const char *end = strstr(text, "\r\n");
    if (end == NULL) {
        return 0;
    }
    bool is_ping = counting->is_ping[client][counting->got[client] % WANTED_MAX];
    if (is_ping) {
        assert_memory_equal(text, "+PONG", 5);
    } else if (memcmp(text, "$-1", 3) == 0) {
        check_seen(counting, client, 0);
    } else {
        assert_int_equal(text[0], '$');
        const char *number = end + 2;
        end = strstr(number, "\r\n");
        if (end == NULL) {
            return 0;
        }
        check_seen(counting, client, strtoull(number, NULL, 10));
    }
    counting->got[client]++;
    return (size_t)(end + 2 - text);
}

static void read_replies(struct counting *counting, int client) {
    char *text = counting->text[client];
    size_t *size = &counting->text_size[client];
    ssize_t part =
        read(counting->clients[client], text + *size, sizeof counting->text[client] - 1 - *size);
    *size += part > 0 ? (size_t)part : 0;
    text[*size] = '\0';
    size_t done = 0;
    for (size_t taken; done < *size && (taken = take_reply(counting, client, text + done)) > 0;) {
        done += taken;
    }
    memmove(text, text + done, *size - done + 1);
    *size -= done;
}

static void ask_some(struct counting *counting, int client) {
    static const char *const lines[] = {"ZINCRBY k 1 m\r\n", "ZSCORE k m\r\n", "PING\r\n"};
    char text[256] = "";
    for (uint64_t left = random_below(&counting->random, 6); left > 0; left--) {
        if (counting->sent[client] - counting->got[client] == WANTED_MAX) {
            break;
        }
        uint64_t kind = random_below(&counting->random, 3);
        counting->is_ping[client][counting->sent[client]++ % WANTED_MAX] = kind == 2;
        strcat(text, lines[kind]);
    }
    send_text(counting->clients[client], text);
}

static void run_counting(const char *test_name, const char *settings, int rounds) {
    struct counting *counting = calloc(1, sizeof *counting);
    assert_non_null(counting);
    counting->fixture = begin(settings);
    counting->random = random_begin(test_name);
    struct random *random = &counting->random;
    for (int i = 0; i < COUNT_CLIENTS; i++) {
        counting->clients[i] = new_client(counting->fixture);
    }
    hold_syncs();
    for (int round = 0; round < rounds; round++) {
        if (random_below(random, 3) == 0) {
            ask_some(counting, (int)random_below(random, COUNT_CLIENTS));
        }
        if (random_below(random, 5) == 0) {
            let_one_sync_end();
        }
        turn(counting->fixture);
        note_group(counting);
        for (int i = 0; i < COUNT_CLIENTS; i++) {
            read_replies(counting, i);
        }
    }
    let_syncs_end();
    for (int i = 0; i < COUNT_CLIENTS; i++) {
        for (int turns = 0;
             counting->got[i] < counting->sent[i] && turn_and_wait(counting->fixture, &turns);) {
            note_group(counting);
            read_replies(counting, i);
        }
        assert_int_equal(counting->got[i], counting->sent[i]);
    }
    printf("%llu numbers seen, %llu groups\n", (unsigned long long)counting->seen_count,
           (unsigned long long)counting->noted_group);
    assert_true(counting->seen_count > 0);
    end(counting->fixture);
    free(counting);
}

static void no_number_is_seen_before_it_is_on_disk(void **state) {
    (void)state;
    run_counting(__func__, ALWAYS, is_short() ? 20000 : 100000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_writers_reply_waits_for_the_disk),
        cmocka_unit_test(a_reader_who_could_see_it_waits_too),
        cmocka_unit_test(who_sees_no_boards_does_not_wait),
        cmocka_unit_test(the_order_of_a_clients_replies_is_kept),
        cmocka_unit_test(replies_leave_up_to_what_is_on_disk),
        cmocka_unit_test(a_transaction_that_reads_waits_as_a_reader_does),
        cmocka_unit_test(a_transaction_that_writes_waits_as_a_whole),
        cmocka_unit_test(what_changes_by_a_look_waits_too),
        cmocka_unit_test(without_a_reply_nothing_waits),
        cmocka_unit_test(clients_may_close_while_they_wait),
        cmocka_unit_test(a_client_that_is_killed_gets_nothing),
        cmocka_unit_test(who_quits_gets_the_replies_first),
        cmocka_unit_test(while_the_disk_is_full_only_the_refused_are_answered),
        cmocka_unit_test(what_is_not_on_disk_at_the_end_is_not_answered),
        cmocka_unit_test(with_everysec_nobody_waits_for_a_sync),
        cmocka_unit_test(with_everysec_writers_wait_for_room_and_readers_do_not),
        cmocka_unit_test(without_a_journal_nobody_waits),
        cmocka_unit_test(who_waits_as_the_journal_goes_off_is_answered),
        cmocka_unit_test(always_may_be_set_while_a_second_goes_by),
        cmocka_unit_test(a_sync_that_everysec_has_begun_is_waited_for_by_always),
        cmocka_unit_test(no_number_is_seen_before_it_is_on_disk),
    };
    return cmocka_run_group_tests_name("gates", tests, NULL, NULL);
}
