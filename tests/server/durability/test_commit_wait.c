/* Which replies wait for the disk: clients on sockets, a complete loop, and a disk whose syncs and
 * writes end when the test lets them. */
#include "tests/support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/durability/persistence_state.h"
#include "server/system/log.h"
#include "tests/support/directory.h"
#include "tests/support/failing_disk.h"
#include "tests/support/loop_server.h"
#include "tests/support/random.h"

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

static bool takes(size_t size) {
    if (is_full) {
        errno = ENOSPC;
        return false;
    }
    if (size > room) {
        room = 0; /* it stays full: a shorter write, of a snapshot, must not fit */
        errno = ENOSPC;
        return false;
    }
    room -= size;
    if (size > write_longest) {
        write_longest = size;
    }
    return true;
}

static ssize_t write_if_there_is_room(int fd, const void *bytes, size_t size) {
    return takes(size) ? disk_system.write(fd, bytes, size) : -1;
}

static ssize_t write_at_if_there_is_room(int fd, const void *bytes, size_t size, off_t offset) {
    return takes(size) ? disk_system.write_at(fd, bytes, size, offset) : -1;
}

static void use_held_disk(void) {
    disk_held = disk_system;
    disk_held.sync = sync_at_once;
    disk_held.sync_contents = sync_when_told;
    disk_held.write = write_if_there_is_room;
    disk_held.write_at = write_at_if_there_is_room;
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

/* ---- a server ---- */

static struct loop_server *begin(const char *settings) {
    struct loop_server *server = calloc(1, sizeof *server);
    assert_non_null(server);
    use_held_disk();
    loop_begin_kept(server, settings);
    return server;
}

static void stop(struct loop_server *server) {
    let_syncs_end();
    loop_stop(server);
}

static void end(struct loop_server *server) {
    let_syncs_end();
    loop_end(server);
    disk = &disk_system;
    sem_destroy(&may_sync);
    free(server);
}

/* A test between begin and end. */
#define LOOP_TEST(name, settings)                                                                  \
    static void name##_in(struct loop_server *f);                                                  \
    TEST(name) {                                                                                   \
        struct loop_server *f = begin(settings);                                                   \
        name##_in(f);                                                                              \
        end(f);                                                                                    \
    }                                                                                              \
    static void name##_in(struct loop_server *f)

static void hold_syncs(void) {
    are_syncs_held = true;
}

/* Turn until the nth sync since syncs were held. */
static void wait_for_sync(struct loop_server *fixture, unsigned nth) {
    for (struct loop_wait wait = {0}; syncs_begun < nth && loop_turn_and_wait(fixture, &wait);) {}
    assert_int_equal(syncs_begun, nth);
}

#define ALWAYS   "appendonly yes\nappendfsync always\n"
#define EVERYSEC "appendonly yes\nappendfsync everysec\n"

/* ---- always ---- */

LOOP_TEST(a_writer_waits_for_the_disk_and_a_reader_who_could_see_it_too, ALWAYS) {
    int ann = loop_connect(f);
    int bob = loop_connect(f);
    int kim = loop_connect(f);
    loop_ask(f, bob, "ZSCORE k m\r\n", "$-1\r\n");
    hold_syncs();
    loop_send(ann, "ZADD k 5 m\r\n");
    loop_expect_nothing(f, ann);
    loop_send(bob, "ZSCORE k m\r\n");
    loop_send(kim, "DBSIZE\r\n");
    loop_expect_nothing(f, bob);
    loop_expect_nothing(f, kim);
    let_one_sync_end();
    loop_expect(f, bob, "$1\r\n5\r\n");
    loop_expect(f, kim, ":1\r\n");
    loop_expect(f, ann, ":1\r\n");
    /* Everything is on disk: a reader does not wait. */
    loop_ask(f, bob, "ZSCORE k m\r\n", "$1\r\n5\r\n");
}

/* That it counts already is not said before it does for good. */
LOOP_TEST(a_result_that_comes_again_waits_for_the_first, ALWAYS) {
    int ann = loop_connect(f);
    int again = loop_connect(f);
    int other = loop_connect(f);
    hold_syncs();
    loop_send(ann, "LB.ADD k ONCE a BEST 5 m\r\n");
    loop_expect_nothing(f, ann);
    loop_send(again, "LB.ADD k ONCE a BEST 5 m\r\n");
    loop_expect_nothing(f, again);
    loop_send(other, "LB.SUBMIT 1 k ONCE a BEST 5 m\r\n");
    loop_expect_nothing(f, other);
    let_one_sync_end();
    loop_expect(f, again, ":0\r\n");
    loop_expect_prefix(f, other, "*1\r\n*3\r\n*4\r\n");
    loop_expect(f, ann, ":1\r\n");
    loop_ask(f, again, "LB.ADD k ONCE a BEST 5 m\r\n", ":0\r\n");
    /* Also where it changes nothing but that its id is known. */
    hold_syncs();
    loop_send(ann, "LB.ADD k ONCE b BEST 4 m\r\n");
    loop_expect_nothing(f, ann);
    let_one_sync_end();
    loop_expect(f, ann, ":0\r\n");
}

/* The key by which tickets are signed is made with the first one: a ticket that was given is there after a crash. */
static void tickets_wait_for_their_key(struct loop_server *f, void (*begin_wait)(void),
                                       void (*end_wait)(struct loop_server *f)) {
    int ann = loop_connect(f);
    int bob = loop_connect(f);
    loop_ask(f, ann, "LB.CREATE b FIELD a 20 TICKETS YES\r\n", "+OK\r\n");
    begin_wait();
    loop_send(ann, "LB.TICKET b ann\r\n");
    loop_send(bob, "LB.TICKET b bob\r\n");
    loop_expect_nothing(f, ann);
    loop_expect_nothing(f, bob);
    end_wait(f);
    loop_expect_prefix(f, bob, "$");
    loop_expect_prefix(f, ann, "$");
}

static void end_one_sync(struct loop_server *f) {
    (void)f;
    let_one_sync_end();
}

LOOP_TEST(a_ticket_waits_for_the_key_of_tickets, ALWAYS) {
    tickets_wait_for_their_key(f, hold_syncs, end_one_sync);
}

/* Nobody hears of a change before it is on disk. */
LOOP_TEST(a_message_waits_as_a_reply_does, ALWAYS) {
    int ann = loop_connect(f);
    int bob = loop_connect(f);
    loop_ask(f, bob, "SUBSCRIBE a\r\n", "*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n");
    hold_syncs();
    loop_ask(f, ann, "MULTI\r\nZADD k 5 m\r\nPUBLISH a x\r\nEXEC\r\n",
             "+OK\r\n+QUEUED\r\n+QUEUED\r\n");
    loop_expect_nothing(f, bob);
    let_one_sync_end();
    loop_expect(f, bob, "*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\nx\r\n");
    loop_expect(f, ann, "*2\r\n:1\r\n:1\r\n");
}

LOOP_TEST(whoever_waited_for_a_member_waits_for_the_disk, ALWAYS) {
    int ann = loop_connect(f);
    int bob = loop_connect(f);
    loop_send(bob, "BZPOPMIN k 0\r\nPING\r\n");
    loop_expect_nothing(f, bob);
    hold_syncs();
    loop_send(ann, "ZADD k 5 m\r\n");
    loop_expect_nothing(f, bob);
    let_one_sync_end();
    loop_expect(f, ann, ":1\r\n");
    loop_expect(f, bob, "*3\r\n$1\r\nk\r\n$1\r\nm\r\n$1\r\n5\r\n+PONG\r\n");
}

LOOP_TEST(who_sees_no_boards_does_not_wait, ALWAYS) {
    int ann = loop_connect(f);
    int bob = loop_connect(f);
    hold_syncs();
    loop_send(ann, "ZADD k 5 m\r\n");
    loop_expect_nothing(f, ann);
    loop_ask(f, bob, "PING\r\n", "+PONG\r\n");
    loop_ask(f, bob, "ECHO x\r\n", "$1\r\nx\r\n");
    loop_send(bob, "CONFIG GET port\r\n");
    loop_expect_prefix(f, bob, "*2\r\n$4\r\nport\r\n");
    loop_send(bob, "INFO persistence\r\n");
    loop_expect_prefix(f, bob, "$");
    loop_send(bob, "NOSUCH\r\n");
    loop_expect_prefix(f, bob, "-ERR unknown command");
    loop_expect_nothing(f, ann);
    let_one_sync_end();
    loop_expect(f, ann, ":1\r\n");
}

LOOP_TEST(the_order_of_a_clients_replies_is_kept, ALWAYS) {
    int ann = loop_connect(f);
    hold_syncs();
    loop_ask(f, ann, "PING\r\nECHO a\r\nZADD k 5 m\r\nPING\r\nZSCORE k m\r\nECHO b\r\n",
             "+PONG\r\n$1\r\na\r\n");
    loop_expect_nothing(f, ann);
    loop_send(ann, "PING\r\n");
    loop_expect_nothing(f, ann);
    let_one_sync_end();
    loop_expect(f, ann, ":1\r\n+PONG\r\n$1\r\n5\r\n$1\r\nb\r\n+PONG\r\n");
    loop_ask(f, ann, "PING\r\n", "+PONG\r\n");
}

LOOP_TEST(replies_leave_up_to_what_is_on_disk, ALWAYS) {
    int ann = loop_connect(f);
    hold_syncs();
    loop_send(ann, "ZADD k 5 first\r\n");
    wait_for_sync(f, 1);
    loop_send(ann, "ZADD k 5 second\r\nPING\r\n");
    loop_turn_some(f);
    loop_send(ann, "ZADD k 5 second third\r\nZCARD k\r\n");
    loop_expect_nothing(f, ann);
    let_one_sync_end();
    loop_expect(f, ann, ":1\r\n");
    loop_expect_nothing(f, ann);
    let_one_sync_end();
    loop_expect(f, ann, ":1\r\n+PONG\r\n-ERR syntax error\r\n:2\r\n");
}

LOOP_TEST(a_transaction_that_reads_waits_as_a_reader_does, ALWAYS) {
    int ann = loop_connect(f);
    int bob = loop_connect(f);
    int kim = loop_connect(f);
    loop_ask(f, bob, "MULTI\r\nZSCORE k m\r\n", "+OK\r\n+QUEUED\r\n");
    loop_ask(f, kim, "WATCH k\r\nMULTI\r\nPING\r\n", "+OK\r\n+OK\r\n+QUEUED\r\n");
    hold_syncs();
    loop_send(ann, "ZADD k 5 m\r\n");
    wait_for_sync(f, 1);
    loop_send(bob, "EXEC\r\n");
    loop_send(kim, "EXEC\r\n");
    loop_expect_nothing(f, bob);
    loop_expect_nothing(f, kim); /* that nothing was run shows that k has changed */
    let_one_sync_end();
    loop_expect(f, bob, "*1\r\n$1\r\n5\r\n");
    loop_expect(f, kim, "*-1\r\n");
}

LOOP_TEST(a_transaction_that_writes_waits_as_a_whole, ALWAYS) {
    int ann = loop_connect(f);
    hold_syncs();
    loop_ask(f, ann, "MULTI\r\nPING\r\nZADD k 5 m\r\nEXEC\r\nPING\r\n",
             "+OK\r\n+QUEUED\r\n+QUEUED\r\n");
    loop_expect_nothing(f, ann);
    let_one_sync_end();
    loop_expect(f, ann, "*2\r\n+PONG\r\n:1\r\n+PONG\r\n");
}

LOOP_TEST(what_changes_by_a_look_waits_too, EVERYSEC) {
    int ann = loop_connect(f);
    loop_ask(f, ann, "ZADD k 5 m\r\nPEXPIRE k 1000\r\n", ":1\r\n:1\r\n");
    f->harness->wall_us += 2000000;
    loop_ask(f, ann, "ZSCORE k m\r\n", "$-1\r\n");
}

LOOP_TEST(without_a_reply_nothing_waits, ALWAYS) {
    int ann = loop_connect(f);
    loop_send(ann, "CLIENT REPLY OFF\r\n");
    loop_expect_nothing(f, ann);
    hold_syncs();
    loop_send(ann, "ZADD k 5 m\r\n");
    wait_for_sync(f, 1);
    loop_ask(f, ann, "CLIENT REPLY ON\r\nPING\r\n", "+OK\r\n+PONG\r\n");
}

/* ---- clients that disconnect ---- */

LOOP_TEST(clients_may_close_while_they_wait, ALWAYS) {
    int clients[5];
    hold_syncs();
    for (int i = 0; i < 5; i++) {
        clients[i] = loop_connect(f);
        loop_send(clients[i], "ZINCRBY k 1 m\r\n");
        loop_turn_some(f);
    }
    /* The first, a middle one and the last of those waiting. */
    shutdown(clients[0], SHUT_RDWR);
    shutdown(clients[2], SHUT_RDWR);
    shutdown(clients[4], SHUT_RDWR);
    loop_turn_some(f);
    let_syncs_end();
    loop_expect(f, clients[1], "$1\r\n2\r\n");
    loop_expect(f, clients[3], "$1\r\n4\r\n");
    loop_expect_end(f, clients[0]);
    assert_int_equal(f->server->sessions.count, 2);
}

LOOP_TEST(a_client_that_is_killed_gets_nothing, ALWAYS) {
    int ann = loop_connect(f);
    int bob = loop_connect(f);
    hold_syncs();
    loop_send(ann, "ZADD k 5 m\r\n");
    loop_expect_nothing(f, ann);
    loop_ask(f, bob, "CLIENT KILL ID 1\r\n", ":1\r\n");
    loop_expect_end(f, ann);
    let_one_sync_end();
    loop_turn_some(f);
    loop_ask(f, bob, "ZSCORE k m\r\n", "$1\r\n5\r\n");
}

LOOP_TEST(who_quits_gets_the_replies_first, ALWAYS) {
    int ann = loop_connect(f);
    int bob = loop_connect(f);
    hold_syncs();
    loop_send(ann, "ZADD k 5 m\r\nQUIT\r\n");
    loop_send(bob, "ZADD l 5 m\r\n");
    shutdown(bob, SHUT_WR);
    loop_expect_nothing(f, ann);
    loop_expect_nothing(f, bob);
    let_syncs_end();
    loop_expect(f, ann, ":1\r\n+OK\r\n");
    loop_expect_end(f, ann);
    loop_expect(f, bob, ":1\r\n");
    loop_expect_end(f, bob);
}

/* ---- a full disk ---- */

static void wait_until_refused(struct loop_server *f) {
    struct loop_wait wait = {0};
    while (f->server->durability.write_refusal == NULL) {
        assert_true(loop_turn_and_wait(f, &wait));
    }
}

/* Behind a try that has begun, which would be the one of this second and find the disk full. */
static void make_room(struct loop_server *f) {
    worker_wait(&f->server->persistence->journal.writer);
    loop_turn(f);
    is_full = false;
    loop_second(f);
}

LOOP_TEST(on_a_full_disk_only_what_shows_the_waiting_change_waits, ALWAYS) {
    int ann = loop_connect(f);
    int bob = loop_connect(f);
    loop_ask(f, ann, "ZADD k 4 m\r\nZADD other 1 x\r\nHSET d:m name Ann\r\nHSET d:x name Bob\r\n",
             ":1\r\n:1\r\n:1\r\n:1\r\n");
    loop_send(bob, "SUBSCRIBE a\r\n");
    loop_expect_prefix(f, bob, "*3\r\n$9\r\nsubscribe\r\n");
    is_full = true;
    loop_send(ann, "ZADD k 5 m\r\n");
    loop_expect_nothing(f, ann);
    wait_until_refused(f);
    static const char *const free_ones[][2] = {
        {"ZSCORE other x\r\n", "$1\r\n1\r\n"},
        {"ZCARD missing\r\n", ":0\r\n"},
        {"KEYS *e*\r\n", "*1\r\n$5\r\nother\r\n"},
        {"DBSIZE\r\n", ":4\r\n"},
        {"EXISTS other missing\r\n", ":1\r\n"},
        {"ZINTERCARD 2 other missing\r\n", ":0\r\n"},
        {"HGET d:m name\r\n", "$3\r\nAnn\r\n"},
        {"SCAN 0 MATCH other\r\n", NULL},
        {"LB.RANGE other 0 0\r\n", NULL},
        {"SELECT 1\r\nEXISTS k\r\n", "+OK\r\n:0\r\n"},
        {"PUBLISH a x\r\n", ":1\r\n"},
    };
    for (size_t i = 0; i < COUNT_OF(free_ones); i++) {
        int own = loop_connect(f);
        loop_send(own, free_ones[i][0]);
        if (free_ones[i][1] != NULL) {
            loop_expect(f, own, free_ones[i][1]);
        } else {
            loop_expect_prefix(f, own, "*");
        }
        close(own);
    }
    loop_expect(f, bob, "*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\nx\r\n");
    static const char *const waiting[] = {
        "ZSCORE k m\r\n",        "EXISTS other k\r\n",
        "ZUNION 2 other k\r\n",  "TYPE k\r\n",
        "LB.RANGE k 0 0\r\n",    "LB.RANGE other 0 0 DATA d:*\r\n",
        "LB.WHERE m\r\n",        "MULTI\r\nZSCORE k m\r\nEXEC\r\n",
        "OBJECT ENCODING k\r\n",
    };
    enum { WAITING = COUNT_OF(waiting) };
    int waits[WAITING];
    for (int i = 0; i < WAITING; i++) {
        waits[i] = loop_connect(f);
        loop_send(waits[i], waiting[i]);
        if (strncmp(waiting[i], "MULTI", 5) == 0) {
            loop_expect(f, waits[i], "+OK\r\n");
        }
        loop_expect_nothing(f, waits[i]);
    }
    make_room(f);
    loop_expect(f, ann, ":0\r\n");
    for (int i = 0; i < WAITING; i++) {
        loop_expect_prefix(f, waits[i], "");
    }
}

LOOP_TEST(on_a_full_disk_a_new_key_is_not_shown, ALWAYS) {
    int ann = loop_connect(f);
    loop_ask(f, ann, "ZADD other 1 x\r\n", ":1\r\n");
    is_full = true;
    loop_send(ann, "ZADD fresh 5 m\r\n");
    loop_expect_nothing(f, ann);
    wait_until_refused(f);
    static const char *const waiting[] = {"KEYS *\r\n", "DBSIZE\r\n",    "EXISTS fresh\r\n",
                                          "SCAN 0\r\n", "RANDOMKEY\r\n", "LB.LIST\r\n"};
    for (size_t i = 0; i < COUNT_OF(waiting); i++) {
        int own = loop_connect(f);
        loop_send(own, waiting[i]);
        loop_expect_nothing(f, own);
    }
    int kim = loop_connect(f);
    loop_ask(f, kim, "ZSCORE other x\r\nEXISTS missing\r\n", "$1\r\n1\r\n:0\r\n");
}

/* "" where nothing comes. */
static void ask_shortly(struct loop_server *f, const char *request, char *reply, size_t size_max) {
    int own = loop_connect(f);
    loop_send(own, request);
    loop_turn_some(f);
    ssize_t size = read(own, reply, size_max - 1);
    reply[size > 0 ? size : 0] = '\0';
    close(own);
    loop_turn_some(f);
}

/* What leaves says what is on disk, whatever was changed: the state from before. */
TEST(on_a_full_disk_every_reply_is_of_what_is_on_it) {
    static const char *const reads[] = {
        "ZRANGE k0 0 -1\r\n",
        "ZRANGE k1 0 -1\r\n",
        "ZCARD k2\r\n",
        "HGETALL h0\r\n",
        "HLEN h1\r\n",
        "KEYS *\r\n",
        "DBSIZE\r\n",
        "SCAN 0\r\n",
        "EXISTS k0 k1 k2 k3 h0 h1\r\n",
        "TYPE k3\r\n",
        "TTL k0\r\n",
        "TTL h0\r\n",
        "ZUNION 2 k0 k1\r\n",
        "ZSCORE k2 a\r\n",
        "LB.RANGE k0 0 -1\r\n",
        "LB.RANGE k1 0 -1 DATA h*\r\n",
        "LB.INFO k0\r\n",
        "LB.LIST\r\n",
        "DUMP k1\r\n",
        "OBJECT ENCODING k2\r\n",
        "ZRANDMEMBER k3 1\r\n",
        "ZMSCORE k0 a b c\r\n",
    };
    static const char *const writes[] = {
        "ZADD k0 7 a\r\n",
        "ZADD k3 7 a\r\n",
        "ZREM k0 a b c\r\n",
        "DEL k1\r\n",
        "RENAME k0 k3\r\n",
        "HSET h0 f 9\r\n",
        "HSET h1 f 9\r\n",
        "EXPIRE k0 100\r\n",
        "EXPIRE h0 100\r\n",
        "ZUNIONSTORE k2 2 k0 k1\r\n",
        "FLUSHDB\r\n",
        "LB.BAN a\r\n",
        "COPY k0 k3 REPLACE\r\n",
        "ZPOPMIN k2\r\n",
        "LB.ALTER k0 CAP 1\r\n",
        "HDEL h0 f\r\n",
        "MULTI\r\nDEL h0\r\nZADD k1 3 z\r\nEXEC\r\n",
    };
    enum { READS = COUNT_OF(reads), WRITES = COUNT_OF(writes) };
    static char before[READS][4096], reply[4096];
    struct random random = random_begin(__func__);
    uint32_t came = 0, waited = 0;
    for (uint32_t round = test_rounds(200, 12); round > 0; round--) {
        struct loop_server *f = begin(ALWAYS);
        int ann = loop_connect(f);
        loop_ask(f, ann,
                 "ZADD k0 1 a 2 b\r\nZADD k1 3 a\r\nZADD k2 4 a 5 c\r\nHSET h0 f 1\r\nHSET "
                 "apart f 0\r\n",
                 ":2\r\n:1\r\n:2\r\n:1\r\n:1\r\n");
        for (int i = 0; i < READS; i++) {
            ask_shortly(f, reads[i], before[i], sizeof before[i]);
            assert_true(before[i][0] != '\0');
        }
        is_full = true;
        for (uint64_t i = 0; i <= random_below(&random, 3); i++) {
            loop_send(loop_connect(f), writes[random_below(&random, WRITES)]);
        }
        loop_send(ann, "HSET apart f 1\r\n"); /* something is changed in any case */
        wait_until_refused(f);
        for (int i = 0; i < READS; i++) {
            ask_shortly(f, reads[i], reply, sizeof reply);
            came += reply[0] != '\0';
            waited += reply[0] == '\0';
            assert_true(reply[0] == '\0' || strcmp(reply, before[i]) == 0);
        }
        end(f);
    }
    assert_true(came > 0 && waited > 0);
    print_message("replies=%u waited=%u\n", came, waited);
}

/* Who asked before the disk was found to be full, and sees nothing of what waits. */
LOOP_TEST(a_reader_who_waits_as_the_disk_gets_full_is_let_go, ALWAYS) {
    int ann = loop_connect(f);
    int bob = loop_connect(f);
    int kim = loop_connect(f);
    int zoe = loop_connect(f);
    loop_ask(f, ann, "ZADD k 4 m\r\nZADD other 1 x\r\n", ":1\r\n:1\r\n");
    hold_syncs();
    loop_send(ann, "ZADD other 2 x\r\n");
    wait_for_sync(f, 1);
    loop_send(ann, "ZADD k 5 m\r\n");
    loop_turn_some(f);
    loop_send(bob, "ZSCORE other x\r\n");
    loop_send(kim, "ZSCORE k m\r\n");
    loop_send(zoe, "ZSCORE other x\r\nZSCORE k m\r\n");
    loop_expect_nothing(f, bob);
    is_full = true;
    let_syncs_end();
    wait_until_refused(f);
    loop_expect(f, bob, "$1\r\n2\r\n");
    loop_expect_nothing(f, kim);
    loop_expect_nothing(f, zoe);
    make_room(f);
    loop_expect(f, kim, "$1\r\n5\r\n");
    loop_expect(f, zoe, "$1\r\n2\r\n$1\r\n5\r\n");
    loop_expect(f, ann, ":0\r\n:0\r\n");
}

LOOP_TEST(while_the_disk_is_full_only_the_refused_are_answered, ALWAYS) {
    int ann = loop_connect(f);
    int bob = loop_connect(f);
    int kim = loop_connect(f);
    loop_ask(f, ann, "ZADD k 4 m\r\n", ":1\r\n");
    is_full = true;
    loop_send(ann, "ZADD k 5 m\r\n");
    loop_expect_nothing(f, ann);
    wait_until_refused(f);
    loop_send(bob, "ZADD k 6 m\r\nPING\r\n");
    loop_expect(f, bob,
                "-MISCONF Errors writing to the AOF file: No space left on device\r\n+PONG\r\n");
    loop_send(kim, "ZSCORE k m\r\n");
    loop_expect_nothing(f, kim);
    loop_second(f);
    loop_expect_nothing(f, ann);
    make_room(f);
    loop_expect(f, ann, ":0\r\n");
    loop_expect(f, kim, "$1\r\n5\r\n");
    loop_ask(f, bob, "ZADD k 6 m\r\n", ":0\r\n");
}

LOOP_TEST(what_is_not_on_disk_at_the_end_is_not_answered, ALWAYS) {
    int ann = loop_connect(f);
    char byte;
    is_full = true;
    loop_send(ann, "ZADD k 5 m\r\n");
    loop_expect_nothing(f, ann);
    stop(f);
    assert_int_equal(read(ann, &byte, 1), 0);
}

/* ---- everysec, and none ---- */

LOOP_TEST(with_everysec_nobody_waits_for_a_sync, EVERYSEC) {
    int ann = loop_connect(f);
    int bob = loop_connect(f);
    hold_syncs();
    loop_ask(f, ann, "ZADD k 5 m\r\n", ":1\r\n");
    loop_second(f);
    wait_for_sync(f, 1);
    loop_ask(f, ann, "ZADD k 6 m\r\n", ":0\r\n");
    loop_ask(f, bob, "ZSCORE k m\r\n", "$1\r\n6\r\n");
}

LOOP_TEST(with_everysec_writers_wait_for_room_and_readers_do_not, EVERYSEC) {
    int ann = loop_connect(f);
    int bob = loop_connect(f);
    is_full = true;
    loop_send(ann, "ZADD k 5 m\r\nPING\r\n");
    loop_expect_nothing(f, ann);
    loop_ask(f, bob, "ZSCORE k m\r\n", "$1\r\n5\r\n");
    make_room(f);
    loop_expect(f, ann, ":1\r\n+PONG\r\n");
}

static void fill_disk(void) {
    is_full = true;
}

LOOP_TEST(with_everysec_a_ticket_waits_for_the_key_of_tickets, EVERYSEC) {
    tickets_wait_for_their_key(f, fill_disk, make_room);
}

LOOP_TEST(without_a_journal_nobody_waits, "appendonly no\n") {
    int ann = loop_connect(f);
    hold_syncs();
    is_full = true;
    loop_ask(f, ann, "ZADD k 5 m\r\nZSCORE k m\r\n", ":1\r\n$1\r\n5\r\n");
    is_full = false;
}

LOOP_TEST(who_waits_as_the_journal_goes_off_is_answered, ALWAYS) {
    int ann = loop_connect(f);
    int bob = loop_connect(f);
    hold_syncs();
    loop_send(ann, "ZADD k 5 m\r\n");
    wait_for_sync(f, 1);
    loop_ask(f, bob, "CONFIG SET appendonly no\r\n", "+OK\r\n");
    loop_expect_nothing(f, ann);
    let_syncs_end();
    loop_second(f);
    loop_expect(f, ann, ":1\r\n");
}

LOOP_TEST(always_may_be_set_while_a_second_goes_by, EVERYSEC) {
    int ann = loop_connect(f);
    int bob = loop_connect(f);
    loop_ask(f, ann, "ZADD k 5 m\r\n", ":1\r\n");
    hold_syncs();
    loop_ask(f, bob, "CONFIG SET appendfsync always\r\n", "+OK\r\n");
    /* The last write is not on disk yet: readers that see it wait now. */
    loop_send(bob, "ZSCORE k m\r\n");
    loop_expect_nothing(f, bob);
    let_syncs_end();
    loop_second(f);
    loop_expect(f, bob, "$1\r\n5\r\n");
}

LOOP_TEST(a_sync_that_everysec_has_begun_is_waited_for_by_always, EVERYSEC) {
    int ann = loop_connect(f);
    loop_ask(f, ann, "ZADD k 5 m\r\n", ":1\r\n");
    hold_syncs();
    loop_second(f);
    wait_for_sync(f, 1);
    loop_ask(f, ann, "CONFIG SET appendfsync always\r\n", "+OK\r\n");
    loop_send(ann, "ZADD k 6 m\r\n");
    loop_expect_nothing(f, ann);
    assert_int_equal(syncs_begun, 1);
    let_one_sync_end();
    wait_for_sync(f, 2);
    loop_second(f);
    loop_expect_nothing(f, ann);
    assert_int_equal(syncs_begun, 2);
    let_one_sync_end();
    loop_expect(f, ann, ":0\r\n");
}

/* ---- all together ---- */

enum { COUNT_CLIENTS = 8, GROUPS_MAX = 100000, WANTED_MAX = 4096 };

/* All clients increment one member or read it: each reply has a number, and no number may be seen
 * before the group with it is on disk. */
struct counting {
    struct loop_server *fixture;
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

static uint64_t number_now(const struct loop_server *fixture) {
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
    loop_send(counting->clients[client], text);
}

TEST(no_number_is_seen_before_it_is_on_disk) {
    int rounds = is_short_run() ? 20000 : 100000;
    OWNED struct counting *counting = calloc(1, sizeof *counting);
    assert_non_null(counting);
    counting->fixture = begin(ALWAYS);
    counting->random = random_begin(__func__);
    struct random *random = &counting->random;
    for (int i = 0; i < COUNT_CLIENTS; i++) {
        counting->clients[i] = loop_connect(counting->fixture);
    }
    hold_syncs();
    for (int round = 0; round < rounds; round++) {
        if (random_below(random, 3) == 0) {
            ask_some(counting, (int)random_below(random, COUNT_CLIENTS));
        }
        if (random_below(random, 5) == 0) {
            let_one_sync_end();
        }
        loop_turn(counting->fixture);
        note_group(counting);
        for (int i = 0; i < COUNT_CLIENTS; i++) {
            read_replies(counting, i);
        }
    }
    let_syncs_end();
    for (int i = 0; i < COUNT_CLIENTS; i++) {
        for (struct loop_wait wait = {0}; counting->got[i] < counting->sent[i] &&
                                          loop_turn_and_wait(counting->fixture, &wait);) {
            note_group(counting);
            read_replies(counting, i);
        }
        assert_int_equal(counting->got[i], counting->sent[i]);
    }
    printf("%llu numbers seen, %llu groups\n", (unsigned long long)counting->seen_count,
           (unsigned long long)counting->noted_group);
    assert_true(counting->seen_count > 0);
    end(counting->fixture);
}

/* ---- effects that are long ---- */

enum { LONG_MEMBERS = 600, LONG_MEMBER = 60000, AT_ONCE_MAX = 8 * 1024 * 1024 };
#define LONG_COUNT ":600\r\n"

/* 36 MB on the board `src`. */
static void fill_src(struct loop_server *fixture, int client) {
    OWNED char *text = malloc(LONG_MEMBER + 64);
    assert_non_null(text);
    for (int i = 0; i < LONG_MEMBERS; i++) {
        int size = sprintf(text, "*4\r\n$4\r\nZADD\r\n$3\r\nsrc\r\n$1\r\n7\r\n$%d\r\n%08d",
                           LONG_MEMBER, i);
        memset(text + size, 'x', LONG_MEMBER - 8);
        memcpy(text + size + LONG_MEMBER - 8, "\r\n", 3);
        loop_send_all(fixture, client, text, (size_t)size + LONG_MEMBER - 6);
        loop_expect(fixture, client, ":1\r\n");
    }
}

static uint64_t member_count(struct loop_server *fixture, int client, const char *board) {
    char got[64] = "";
    loop_send(client, formatted("ZCARD %s\r\n", board));
    for (struct loop_wait wait = {0};
         strchr(got, '\n') == NULL && loop_turn_and_wait(fixture, &wait);) {
        ssize_t part = read(client, got + strlen(got), sizeof got - 1 - strlen(got));
        (void)part;
    }
    assert_int_equal(got[0], ':');
    return strtoull(got + 1, NULL, 10);
}

/* Stop the server and start another one on its directory. */
static void start_again(struct loop_server *fixture, const char *settings) {
    char directory[DIRECTORY_PATH_MAX];
    snprintf(directory, sizeof directory, "%s", fixture->directory);
    stop(fixture);
    loop_start_kept(fixture, settings);
    assert_string_equal(fixture->directory, directory);
}

TEST(effects_of_any_size_go_to_the_disk_in_pieces) {
    static const char *const settings[] = {ALWAYS, EVERYSEC};
    static const char *const boards[] = {"src", "dst", "a", "b"};
    for (size_t i = 0; i < COUNT_OF(settings); i++) {
        test_row("%s", settings[i]);
        struct loop_server *f = begin(settings[i]);
        int ann = loop_connect(f);
        fill_src(f, ann);
        write_longest = 0;
        loop_ask(f, ann,
                 "ZUNIONSTORE dst 1 src\r\nMULTI\r\nZUNIONSTORE a 1 src\r\n"
                 "ZUNIONSTORE b 1 src\r\nEXEC\r\n",
                 LONG_COUNT "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n" LONG_COUNT LONG_COUNT);
        assert_in_range(write_longest, 1, AT_ONCE_MAX);
        start_again(f, settings[i]);
        int bob = loop_connect(f);
        for (size_t k = 0; k < COUNT_OF(boards); k++) {
            assert_int_equal(member_count(f, bob, boards[k]), LONG_MEMBERS);
        }
        end(f);
    }
}

LOOP_TEST(a_reply_waits_for_the_last_piece_and_for_one_sync, ALWAYS) {
    int ann = loop_connect(f);
    int bob = loop_connect(f);
    fill_src(f, ann);
    hold_syncs();
    loop_send(ann, "ZADD k 1 m\r\nZUNIONSTORE dst 1 src\r\n");
    wait_for_sync(f, 1);
    loop_send(bob, "ZCARD dst\r\n");
    loop_expect_nothing(f, ann);
    loop_expect_nothing(f, bob);
    assert_int_equal(syncs_begun, 1);
    let_one_sync_end();
    loop_expect(f, ann, ":1\r\n" LONG_COUNT);
    loop_expect(f, bob, LONG_COUNT);
}

/* Each union gets its own turn, in which its effects are passed to the disk. */
LOOP_TEST(a_turn_ends_when_it_has_gathered_much, EVERYSEC) {
    int ann = loop_connect(f);
    fill_src(f, ann);
    uint64_t done = f->tick.done_total;
    for (int i = 0; i < 8; i++) {
        loop_send(ann, "ZUNIONSTORE dst 1 src\r\n");
    }
    for (struct loop_wait wait = {0}; f->tick.done_total < done + 8;) {
        uint64_t before = f->tick.done_total;
        assert_true(loop_turn_and_wait(f, &wait));
        assert_in_range(f->tick.done_total - before, 0, 1);
    }
    loop_expect(
        f, ann,
        LONG_COUNT LONG_COUNT LONG_COUNT LONG_COUNT LONG_COUNT LONG_COUNT LONG_COUNT LONG_COUNT);
}

static size_t journal_size(const struct loop_server *fixture) {
    size_t size;
    free(file_read(formatted("%s/kept/leaderboard.1.journal", fixture->directory), &size));
    return size;
}

/* The effects of one command fit neither the buffer nor the disk: the process does not exit, the
 * file is as before the command, and no reply is sent before a snapshot contains them. */
LOOP_TEST(a_disk_that_is_full_within_long_effects_ends_nothing, ALWAYS) {
    int ann = loop_connect(f);
    int bob = loop_connect(f);
    fill_src(f, ann);
    size_t size_before = journal_size(f);
    room = 20 * 1024 * 1024;
    loop_send(ann, "ZUNIONSTORE dst 1 src\r\n");
    loop_expect_nothing(f, ann);
    loop_send(bob, "ZADD k 1 m\r\n");
    loop_expect_prefix(f, bob, "-MISCONF Errors writing to the AOF file: No space left");
    assert_int_equal(journal_size(f), size_before);
    room = SIZE_MAX;
    f->harness->wall_us += 10000000;
    server_update_time(f->server);
    persistence_second(f->persistence);
    loop_expect(f, ann, LONG_COUNT);
    loop_ask(f, bob, "ZADD k 1 m\r\n", ":1\r\n");
    start_again(f, ALWAYS);
    int kim = loop_connect(f);
    assert_int_equal(member_count(f, kim, "dst"), LONG_MEMBERS);
    assert_int_equal(member_count(f, kim, "k"), 1);
}

/* ---- between two states ---- */

/* A batch held back for a shared sync is also written before the journal is turned off. */
LOOP_TEST(a_journal_that_goes_off_leaves_no_group_behind, ALWAYS) {
    struct persistence_info info;
    int ann = loop_connect(f);
    int bob = loop_connect(f);
    hold_syncs();
    loop_send(ann, "ZADD k 1 a 2 b 3 c 4 d 5 e 6 f 7 g\r\n");
    wait_for_sync(f, 1);
    loop_send(bob, "ZADD k 8 h\r\n");
    loop_turn_some(f);
    f->server->settings.appendonly = false;
    let_syncs_end();
    persistence_second(f->persistence);
    persistence_describe(f->persistence, &info);
    assert_false(info.is_journal_on);
    assert_int_equal(info.written_group, info.group);
    loop_expect(f, ann, ":7\r\n");
    loop_expect(f, bob, ":1\r\n");
    start_again(f, ALWAYS);
    assert_int_equal(member_count(f, loop_connect(f), "k"), 8);
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

/* A test with a client that has written, and a sync that fails next. */
#define FAILING_SYNC_TEST(name)                                                                    \
    static void name##_of(struct loop_server *f, int ann);                                         \
    LOOP_TEST(name, EVERYSEC) {                                                                    \
        fail_the_next_sync(f, name##_of);                                                          \
    }                                                                                              \
    static void name##_of(struct loop_server *f, int ann)
static void fail_the_next_sync(struct loop_server *f,
                               void (*test)(struct loop_server *f, int ann)) {
    int ann = loop_connect(f);
    snprintf(log_path, sizeof log_path, "%s", directory_join(f->directory, "log"));
    assert_true(log_open(log_path, LOG_WARNING));
    loop_ask(f, ann, "ZADD k 1 m\r\n", ":1\r\n");
    is_failing_sync = true;
    test(f, ann);
    assert_true(log_has("warning journal: cannot sync: Input/output error."));
    assert_false(log_has("manifest"));
    assert_true(log_open(NULL, LOG_WARNING));
}

FAILING_SYNC_TEST(a_save_behind_one_whose_journal_was_lost_begins_a_new_one) {
    loop_ask(f, ann, "SAVE\r\nSAVE\r\nZADD k 2 n\r\n",
             "-ERR the snapshot could not be written: see the log\r\n+OK\r\n:1\r\n");
    start_again(f, EVERYSEC);
    assert_int_equal(member_count(f, loop_connect(f), "k"), 2);
}

FAILING_SYNC_TEST(a_bgsave_behind_it_too) {
    loop_send(ann, "SAVE\r\nMULTI\r\nBGSAVE\r\nEXEC\r\n");
    loop_expect_prefix(f, ann, "-ERR the snapshot could not be written: see the log\r\n");
    loop_turn_some(f);
    loop_send(ann, "ZADD k 2 n\r\n");
    for (struct loop_wait wait = {0};
         f->server->durability.write_refusal != NULL && loop_turn_and_wait(f, &wait);) {}
    assert_null(f->server->durability.write_refusal);
}

FAILING_SYNC_TEST(the_end_behind_it_saves_what_there_is) {
    loop_ask(f, ann, "SAVE\r\nSHUTDOWN SAVE\r\n",
             "-ERR the snapshot could not be written: see the log\r\n");
    loop_expect_end(f, ann);
    start_again(f, EVERYSEC);
    assert_int_equal(member_count(f, loop_connect(f), "k"), 1);
}

/* ---- every call in turn ---- */

enum { WRITES = 12, WRITES_MAX = 200 };

enum told { TOLD_NOTHING, TOLD_DONE, TOLD_REFUSED };

/* A client that adds one member after another, and what it was told of each. */
struct writer {
    struct loop_server *fixture;
    int client;
    int count;
    enum told told[WRITES_MAX];
};

static const char *fatal_error(const struct loop_server *fixture) {
    return persistence_fatal_error(fixture->persistence);
}

/* Seconds pass meanwhile: so what waits for room is tried again. "": the server has stopped. */
static const char *ask_over_seconds(struct loop_server *fixture, int client, const char *request) {
    enum { TURNS_PER_SECOND = 50 };
    static char reply[256];
    ssize_t size = -1;
    loop_send(client, request);
    for (struct loop_wait wait = {0}; size <= 0 && fatal_error(fixture) == NULL;) {
        assert_true(loop_turn_and_wait(fixture, &wait));
        if (wait.turns % TURNS_PER_SECOND == 0) {
            loop_second(fixture);
        }
        size = read(client, reply, sizeof reply - 1);
    }
    reply[size > 0 ? size : 0] = '\0';
    return reply;
}

static enum told write_one(struct writer *writer) {
    assert_true(writer->count < WRITES_MAX);
    const char *request = formatted("ZADD k 7 m%d\r\n", writer->count);
    const char *reply = ask_over_seconds(writer->fixture, writer->client, request);
    enum told told = strcmp(reply, ":1\r\n") == 0                 ? TOLD_DONE
                     : strncmp(reply, "-MISCONF Errors", 15) == 0 ? TOLD_REFUSED
                                                                  : TOLD_NOTHING;
    assert_true(told != TOLD_NOTHING || (reply[0] == '\0' && fatal_error(writer->fixture) != NULL));
    writer->told[writer->count++] = told;
    return told;
}

/* What was confirmed is there, and what was refused has changed nothing. */
static void check_told(const struct writer *writer) {
    for (int i = 0; i < writer->count; i++) {
        if (writer->told[i] != TOLD_NOTHING) {
            loop_ask(writer->fixture, writer->client, formatted("ZSCORE k m%d\r\n", i),
                     writer->told[i] == TOLD_DONE ? "$1\r\n7\r\n" : "$-1\r\n");
        }
    }
}

struct failing_runs {
    uint32_t runs, with_refusals, stopped;
};

/* false: there are fewer calls. */
static bool write_while_one_call_fails(const char *settings, enum failure failure, uint64_t nth,
                                       struct failing_runs *runs) {
    struct loop_server *f = calloc(1, sizeof *f);
    assert_non_null(f);
    quick_disk_begin();
    loop_begin_kept(f, settings);
    struct writer writer = {.fixture = f, .client = loop_connect(f)};
    assert_int_equal(write_one(&writer), TOLD_DONE);
    failing_disk_begin(failure, nth);
    bool is_refused = false;
    for (int i = 0; i < WRITES && fatal_error(f) == NULL; i++) {
        is_refused |= write_one(&writer) == TOLD_REFUSED;
        if (i == WRITES / 3) { /* those behind it are in the journal alone */
            (void)ask_over_seconds(f, writer.client, "SAVE\r\n");
            loop_second(f);
        }
    }
    bool is_reached = failing_disk_hit() != FAILING_NOTHING;
    failing_disk_heal();
    while (fatal_error(f) == NULL && write_one(&writer) == TOLD_REFUSED) {
        loop_second(f);
        loop_turn_some(f);
    }
    if (fatal_error(f) == NULL) {
        check_told(&writer);
    } else {
        assert_non_null(strstr(settings, "always"));
        assert_non_null(strstr(fatal_error(f), "no write can be confirmed"));
    }
    runs->runs++;
    runs->with_refusals += is_refused;
    runs->stopped += fatal_error(f) != NULL;
    loop_stop(f);
    loop_start_kept(f, settings);
    writer.client = loop_connect(f);
    check_told(&writer);
    loop_end(f);
    free(f);
    failing_disk_end();
    disk = &disk_system;
    return is_reached;
}

TEST(whichever_disk_call_fails_replies_and_boards_agree) {
    static const char *const settings[] = {ALWAYS, EVERYSEC};
    static const enum failure failures[] = {FAILURE_EIO, FAILURE_FULL};
    struct failing_runs runs = {0};
    for (size_t i = 0; i < COUNT_OF(settings) * COUNT_OF(failures); i++) {
        bool is_reached = true;
        for (uint64_t nth = 1; is_reached; nth++) {
            test_row("%sfailure %d of call %d", settings[i % 2], (int)failures[i / 2], (int)nth);
            is_reached = write_while_one_call_fails(settings[i % 2], failures[i / 2], nth, &runs);
        }
    }
    printf("%u runs, %u with writes refused, %u times the server stopped\n", runs.runs,
           runs.with_refusals, runs.stopped);
    assert_true(runs.with_refusals > 0 && runs.stopped > 0);
}
