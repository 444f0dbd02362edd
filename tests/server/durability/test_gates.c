/* Which replies wait for the disk: clients on sockets, a complete loop, and a disk whose syncs and
 * writes end when the test lets them. */
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

#include "server/durability/persistence.h"
#include "server/loop/connection.h"
#include "server/loop/tick.h"
#include "server/system/log.h"
#include "tests/support/directory.h"
#include "tests/support/harness.h"
#include "tests/support/kept_server.h"
#include "tests/support/random.h"

enum { CLIENTS_MAX = 16, NOTHING_TURNS = 30, TURNS_MAX = 200000, INPUT_MAX = 1 << 20 };

static bool is_short(void) {
    return getenv("LEADERBOARD_TEST_SHORT") != NULL;
}

/* ---- a disk that waits for the test ---- */

static struct disk disk_held;
static atomic_bool are_syncs_held, is_full, is_failing_sync;
static atomic_uint syncs_begun;
static atomic_size_t write_longest, room; /* of one call; until the disk is full */
static sem_t may_sync;

static int sync_when_told(int fd) {
    (void)fd;
    if (are_syncs_held) {
        syncs_begun++;
        while (sem_wait(&may_sync) != 0) {}
    }
    if (is_failing_sync) {
        is_failing_sync = false;
        errno = EIO;
        return -1;
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
    if (size > room) {
        room = 0; /* it stays full: a shorter write, of a snapshot, must not fit */
        errno = ENOSPC;
        return -1;
    }
    room -= size;
    if (size > write_longest) {
        write_longest = size;
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
    is_failing_sync = false;
    write_longest = 0;
    room = SIZE_MAX;
    syncs_begun = 0;
    assert_int_equal(sem_init(&may_sync, 0, 0), 0);
    disk = &disk_held;
}

static void let_one_sync_end(void) {
    sem_post(&may_sync);
}

/* From now on syncs end by themselves, including one that is waiting. */
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

static void start_in(struct fixture *fixture, const char *settings) {
    char text[1024];
    char error[PERSISTENCE_ERROR_MAX];
    snprintf(text, sizeof text, "dir %s\nappenddirname kept\n%s", fixture->directory, settings);
    fixture->harness = harness_create(text);
    fixture->server = &fixture->harness->server;
    fixture->tick = (struct tick){.stop_listening = stop_listening};
    assert_int_equal(uv_loop_init(&fixture->loop), 0);
    assert_true(tick_init(&fixture->tick, &fixture->loop, fixture->server));
    fixture->persistence = persistence_open(&fixture->server->settings, error);
    assert_non_null(fixture->persistence);
    const struct persistence_host host = kept_host_of(fixture->server, fixture->persistence);
    assert_true(persistence_start(fixture->persistence, &host, &fixture->loop, open_gates,
                                  &fixture->tick, error));
    while (fixture->server->durability.is_loading) {
        (void)persistence_step(fixture->persistence);
        uv_run(&fixture->loop, UV_RUN_NOWAIT);
    }
}

static struct fixture *begin(const char *settings) {
    struct fixture *fixture = calloc(1, sizeof *fixture);
    assert_non_null(fixture);
    log_set_level(LOG_WARNING);
    directory_make(fixture->directory);
    use_held_disk();
    signal(SIGPIPE, SIG_IGN);
    start_in(fixture, settings);
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

/* Turn while something is expected; true: it may still come. Yields, because another thread may
 * need this processor. */
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

/* Exactly this reply arrives. */
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

/* A reply begins with prefix; the rest is discarded. */
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

/* Turn until the nth sync since syncs were held. */
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
    /* Everything is on disk: a reader does not wait. */
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

/* ---- clients that disconnect ---- */

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
    /* The first, a middle one and the last of those waiting. */
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
    for (int turns = 0; f->server->durability.write_refusal == NULL && turn_and_wait(f, &turns);) {}
    assert_non_null(f->server->durability.write_refusal);
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
    /* The last write is not on disk yet: readers that see it wait now. */
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

/* ---- all together ---- */

enum { COUNT_CLIENTS = 8, GROUPS_MAX = 100000, WANTED_MAX = 4096 };

/* All clients increment one member or read it: each reply has a number, and no number may be seen
 * before the group with it is on disk. */
struct counting {
    struct fixture *fixture;
    struct random random;
    int clients[COUNT_CLIENTS];
    uint64_t last_seen[COUNT_CLIENTS];
    uint32_t asked[COUNT_CLIENTS];           /* replies still expected */
    bool is_ping[COUNT_CLIENTS][WANTED_MAX]; /* their kinds, in order */
    uint32_t sent[COUNT_CLIENTS], got[COUNT_CLIENTS];
    char text[COUNT_CLIENTS][65536]; /* of replies, up to the end of a whole one */
    size_t text_size[COUNT_CLIENTS];
    uint64_t numbers[GROUPS_MAX]; /* at the end of each group */
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

/* The size of the reply at text; 0: it is incomplete. */
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

/* ---- effects that are long ---- */

enum { LONG_MEMBERS = 600, LONG_MEMBER = 60000, AT_ONCE_MAX = 8 * 1024 * 1024 };
#define LONG_COUNT ":600\r\n"

/* 36 MB on the board `src`. */
static void fill_src(struct fixture *fixture, int client) {
    char *text = malloc(LONG_MEMBER + 64);
    assert_non_null(text);
    for (int i = 0; i < LONG_MEMBERS; i++) {
        int size = sprintf(text, "*4\r\n$4\r\nZADD\r\n$3\r\nsrc\r\n$1\r\n7\r\n$%d\r\n%08d",
                           LONG_MEMBER, i);
        memset(text + size, 'x', LONG_MEMBER - 8);
        memcpy(text + size + LONG_MEMBER - 8, "\r\n", 3);
        for (size_t at = 0, left = (size_t)size + LONG_MEMBER - 6; left > 0;) {
            ssize_t part = write(client, text + at, left);
            at += part > 0 ? (size_t)part : 0;
            left -= part > 0 ? (size_t)part : 0;
            turn(fixture);
        }
        expect(fixture, client, ":1\r\n");
    }
    free(text);
}

static uint64_t member_count(struct fixture *fixture, int client, const char *board) {
    char line[64];
    char got[64] = "";
    snprintf(line, sizeof line, "ZCARD %s\r\n", board);
    send_text(client, line);
    for (int turns = 0; strchr(got, '\n') == NULL && turn_and_wait(fixture, &turns);) {
        ssize_t part = read(client, got + strlen(got), sizeof got - 1 - strlen(got));
        (void)part;
    }
    assert_int_equal(got[0], ':');
    return strtoull(got + 1, NULL, 10);
}

/* Stop the server and start another one on its directory. */
static void start_again(struct fixture *fixture, const char *settings) {
    char directory[DIRECTORY_PATH_MAX];
    snprintf(directory, sizeof directory, "%s", fixture->directory);
    stop(fixture);
    start_in(fixture, settings);
    assert_string_equal(fixture->directory, directory);
}

static void keep_long_effects(const char *settings) {
    struct fixture *f = begin(settings);
    int ann = new_client(f);
    fill_src(f, ann);
    write_longest = 0;
    send_text(ann, "ZUNIONSTORE dst 1 src\r\nMULTI\r\nZUNIONSTORE a 1 src\r\n"
                   "ZUNIONSTORE b 1 src\r\nEXEC\r\n");
    expect(f, ann, LONG_COUNT "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n" LONG_COUNT LONG_COUNT);
    assert_in_range(write_longest, 1, AT_ONCE_MAX);
    start_again(f, settings);
    int bob = new_client(f);
    assert_int_equal(member_count(f, bob, "src"), LONG_MEMBERS);
    assert_int_equal(member_count(f, bob, "dst"), LONG_MEMBERS);
    assert_int_equal(member_count(f, bob, "a"), LONG_MEMBERS);
    assert_int_equal(member_count(f, bob, "b"), LONG_MEMBERS);
    end(f);
}

static void effects_of_any_size_go_to_the_disk_in_pieces_with_always(void **state) {
    (void)state;
    keep_long_effects(ALWAYS);
}

static void and_with_everysec(void **state) {
    (void)state;
    keep_long_effects(EVERYSEC);
}

static void a_reply_waits_for_the_last_piece_and_for_one_sync(void **state) {
    (void)state;
    struct fixture *f = begin(ALWAYS);
    int ann = new_client(f);
    int bob = new_client(f);
    fill_src(f, ann);
    hold_syncs();
    send_text(ann, "ZADD k 1 m\r\nZUNIONSTORE dst 1 src\r\n");
    wait_for_sync(f, 1);
    send_text(bob, "ZCARD dst\r\n");
    expect_nothing(f, ann);
    expect_nothing(f, bob);
    assert_int_equal(syncs_begun, 1);
    let_one_sync_end();
    expect(f, ann, ":1\r\n" LONG_COUNT);
    expect(f, bob, LONG_COUNT);
    end(f);
}

/* Each union gets its own turn, in which its effects are passed to the disk. */
static void a_turn_ends_when_it_has_gathered_much(void **state) {
    (void)state;
    struct fixture *f = begin(EVERYSEC);
    int ann = new_client(f);
    fill_src(f, ann);
    uint64_t done = f->tick.done_total;
    for (int i = 0; i < 8; i++) {
        send_text(ann, "ZUNIONSTORE dst 1 src\r\n");
    }
    for (int turns = 0; f->tick.done_total < done + 8 && turns < TURNS_MAX; turns++) {
        uint64_t before = f->tick.done_total;
        turn(f);
        assert_in_range(f->tick.done_total - before, 0, 1);
    }
    expect(f, ann,
           LONG_COUNT LONG_COUNT LONG_COUNT LONG_COUNT LONG_COUNT LONG_COUNT LONG_COUNT LONG_COUNT);
    end(f);
}

static size_t journal_size(const struct fixture *fixture) {
    size_t size;
    char path[2 * DIRECTORY_PATH_MAX];
    snprintf(path, sizeof path, "%s/kept/leaderboard.1.journal", fixture->directory);
    free(file_read(path, &size));
    return size;
}

/* The effects of one command fit neither the buffer nor the disk: the process does not exit, the
 * file is as before the command, and no reply is sent before a snapshot contains them. */
static void a_disk_that_is_full_within_long_effects_ends_nothing(void **state) {
    (void)state;
    struct fixture *f = begin(ALWAYS);
    int ann = new_client(f);
    int bob = new_client(f);
    fill_src(f, ann);
    size_t size_before = journal_size(f);
    room = 20 * 1024 * 1024;
    send_text(ann, "ZUNIONSTORE dst 1 src\r\n");
    expect_nothing(f, ann);
    send_text(bob, "ZADD k 1 m\r\n");
    expect_something(f, bob, "-MISCONF Errors writing to the AOF file: No space left");
    assert_int_equal(journal_size(f), size_before);
    room = SIZE_MAX;
    f->harness->wall_us += 10000000;
    server_update_time(f->server);
    persistence_second(f->persistence);
    expect(f, ann, LONG_COUNT);
    send_text(bob, "ZADD k 1 m\r\n");
    expect(f, bob, ":1\r\n");
    start_again(f, ALWAYS);
    int kim = new_client(f);
    assert_int_equal(member_count(f, kim, "dst"), LONG_MEMBERS);
    assert_int_equal(member_count(f, kim, "k"), 1);
    end(f);
}

/* ---- between two states ---- */

/* A batch held back for a shared sync is also written before the journal is turned off. */
static void a_journal_that_goes_off_leaves_no_group_behind(void **state) {
    (void)state;
    struct fixture *f = begin(ALWAYS);
    struct persistence_info info;
    int ann = new_client(f);
    int bob = new_client(f);
    hold_syncs();
    send_text(ann, "ZADD k 1 a 2 b 3 c 4 d 5 e 6 f 7 g\r\n");
    wait_for_sync(f, 1);
    send_text(bob, "ZADD k 8 h\r\n");
    turn_some(f);
    f->server->settings.appendonly = false;
    let_syncs_end();
    persistence_second(f->persistence);
    persistence_describe(f->persistence, &info);
    assert_false(info.is_journal_on);
    assert_int_equal(info.written_group, info.group);
    expect(f, ann, ":7\r\n");
    expect(f, bob, ":1\r\n");
    start_again(f, ALWAYS);
    assert_int_equal(member_count(f, new_client(f), "k"), 8);
    end(f);
}

/* ---- files of version 1 ---- */

/* ZADD daily 100 ann 90 bob, ZADD daily 100 zoe, ZREM daily bob. */
static const char old_journal[] = "\x4c\x42\x4a\x52\x4e\x4c\x30\x31\x76\xdd\x41\xb7\x95\xd9\xa0\x9b"
                                  "\x01\x00\x00\x00\x00\x00\x00\x00\x5c\x5b\x7e\x70\x16\x9a\xc1\x20"
                                  "\x29\x68\xe6\x65\xcc\x78\xd7\x09\x34\x00\x00\x00\x01\x00\x00\x00"
                                  "\x77\xdd\x41\xb7\x95\xd9\xa0\x9b\x75\x80\x88\x9f\xd7\x60\x06\x00"
                                  "\x16\x00\x64\x61\x69\x6c\x79\x03\x80\x00\x00\x00\x1f\x02\x00\x00"
                                  "\x40\xfa\xc1\x08\x9b\x05\x00\x01\x21\x00\x01\x05\x73\x63\x6f\x72"
                                  "\x65\x0c\x08\xd0\x54\x09\x73\x32\x00\x00\x80\x61\x6e\x6e\x0c\x41"
                                  "\x1f\x62\x6f\x62\x87\x84\x5f\xcf\x08\x12\xaf\x35\x14\x00\x00\x00"
                                  "\x02\x00\x00\x00\x74\xdd\x41\xb7\x95\xd9\xa0\x9b\x5f\x46\x89\x9f"
                                  "\xd7\x60\x06\x00\x16\x00\x64\x61\x69\x6c\x79\x0c\x08\xd0\x54\x09"
                                  "\x73\x32\x00\x00\x80\x7a\x6f\x65\xd0\xe6\x48\xe7\x1d\xa9\x55\x9f"
                                  "\x0b\x00\x00\x00\x03\x00\x00\x00\x75\xdd\x41\xb7\x95\xd9\xa0\x9b"
                                  "\xc9\x0a\x8a\x9f\xd7\x60\x06\x00\x16\x00\x64\x61\x69\x6c\x79\x0d"
                                  "\x62\x6f\x62";
static const char old_manifest[] = "leaderboard manifest 1\n"
                                   "journal leaderboard.1.journal first 1\n"
                                   "checksum ba3d47d433aba309\n";

static void write_old_files(const struct fixture *fixture, size_t journal_bytes) {
    char path[2 * DIRECTORY_PATH_MAX];
    snprintf(path, sizeof path, "%s/kept/leaderboard.1.journal", fixture->directory);
    file_write(path, old_journal, journal_bytes);
    snprintf(path, sizeof path, "%s/kept/leaderboard.manifest", fixture->directory);
    file_write(path, old_manifest, sizeof old_manifest - 1);
}

/* A journal of this version is added after the old one. cut: bytes torn off its end. */
static void go_on_with_old_files(size_t cut, const char *range) {
    struct fixture *f = begin(ALWAYS);
    size_t journal_bytes = sizeof old_journal - 1 - cut;
    stop(f);
    write_old_files(f, journal_bytes);
    start_in(f, ALWAYS);
    int ann = new_client(f);
    send_text(ann, "ZREVRANGE daily 0 -1\r\n");
    expect(f, ann, range);
    uint64_t count = member_count(f, ann, "daily");
    send_text(ann, "ZADD daily 1 kim\r\n");
    expect(f, ann, ":1\r\n");
    assert_true(journal_size(f) <= journal_bytes);
    start_again(f, ALWAYS);
    assert_int_equal(member_count(f, new_client(f), "daily"), count + 1);
    end(f);
}

static void a_journal_of_the_version_before_is_loaded_and_gets_a_successor(void **state) {
    (void)state;
    go_on_with_old_files(0, "*2\r\n$3\r\nann\r\n$3\r\nzoe\r\n");
}

static void so_is_one_with_a_torn_tail(void **state) {
    (void)state;
    go_on_with_old_files(3, "*3\r\n$3\r\nann\r\n$3\r\nzoe\r\n$3\r\nbob\r\n");
}

/* ---- syncs that fail ---- */

static char log_path[DIRECTORY_PATH_MAX];

static bool log_has(const char *words) {
    size_t size;
    char *text = file_read(log_path, &size);
    bool has = memmem(text, size, words, strlen(words)) != NULL;
    free(text);
    return has;
}

static struct fixture *begin_with_failing_sync(int *client) {
    struct fixture *f = begin(EVERYSEC);
    snprintf(log_path, sizeof log_path, "%s", directory_join(f->directory, "log"));
    assert_true(log_open(log_path, LOG_WARNING));
    *client = new_client(f);
    send_text(*client, "ZADD k 1 m\r\n");
    expect(f, *client, ":1\r\n");
    is_failing_sync = true;
    return f;
}

static void end_with_log(struct fixture *f) {
    assert_true(log_has("warning journal: cannot sync: Input/output error."));
    assert_false(log_has("manifest"));
    assert_true(log_open(NULL, LOG_WARNING));
    end(f);
}

static void a_save_behind_one_whose_journal_was_lost_begins_a_new_one(void **state) {
    (void)state;
    int ann;
    struct fixture *f = begin_with_failing_sync(&ann);
    send_text(ann, "SAVE\r\nSAVE\r\nZADD k 2 n\r\n");
    expect(f, ann, "-ERR the snapshot could not be written: see the log\r\n+OK\r\n:1\r\n");
    start_again(f, EVERYSEC);
    assert_int_equal(member_count(f, new_client(f), "k"), 2);
    end_with_log(f);
}

static void a_bgsave_behind_it_too(void **state) {
    (void)state;
    int ann;
    struct fixture *f = begin_with_failing_sync(&ann);
    send_text(ann, "SAVE\r\nMULTI\r\nBGSAVE\r\nEXEC\r\n");
    expect_something(f, ann, "-ERR the snapshot could not be written: see the log\r\n");
    turn_some(f);
    send_text(ann, "ZADD k 2 n\r\n");
    for (int turns = 0; f->server->durability.write_refusal != NULL && turn_and_wait(f, &turns);) {}
    assert_null(f->server->durability.write_refusal);
    end_with_log(f);
}

static void the_end_behind_it_saves_what_there_is(void **state) {
    (void)state;
    int ann;
    struct fixture *f = begin_with_failing_sync(&ann);
    send_text(ann, "SAVE\r\nSHUTDOWN SAVE\r\n");
    expect(f, ann, "-ERR the snapshot could not be written: see the log\r\n");
    expect_end(f, ann);
    start_again(f, EVERYSEC);
    assert_int_equal(member_count(f, new_client(f), "k"), 1);
    end_with_log(f);
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
        cmocka_unit_test(effects_of_any_size_go_to_the_disk_in_pieces_with_always),
        cmocka_unit_test(and_with_everysec),
        cmocka_unit_test(a_reply_waits_for_the_last_piece_and_for_one_sync),
        cmocka_unit_test(a_turn_ends_when_it_has_gathered_much),
        cmocka_unit_test(a_disk_that_is_full_within_long_effects_ends_nothing),
        cmocka_unit_test(a_journal_that_goes_off_leaves_no_group_behind),
        cmocka_unit_test(a_journal_of_the_version_before_is_loaded_and_gets_a_successor),
        cmocka_unit_test(so_is_one_with_a_torn_tail),
        cmocka_unit_test(a_save_behind_one_whose_journal_was_lost_begins_a_new_one),
        cmocka_unit_test(a_bgsave_behind_it_too),
        cmocka_unit_test(the_end_behind_it_saves_what_there_is),
    };
    return cmocka_run_group_tests_name("gates", tests, NULL, NULL);
}
