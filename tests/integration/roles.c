/* Changes of roles between real servers: what Sentinel sends, FAILOVER, WAIT, and what is refused
 * meanwhile. */
#include "tests/support/test.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include "tests/support/directory.h"
#include "tests/support/process.h"
#include "tests/support/stage.h"
#include "tests/support/wire.h"

static void begin(struct process *server, struct wire *wire, const char *config) {
    const struct process_options options = {.config = config};
    assert_true(process_start(server, &options));
    *wire = wire_open(process_connect_tcp(server));
}

static void end(struct process *server, struct wire *wire) {
    wire_close(wire);
    assert_int_equal(process_stop(server), 0);
}

/* Ask until INFO replication has the line. */
static void wait_for_line(struct wire *wire, const char *line) {
    WAIT_UNTIL(strstr(wire_ask(wire, "INFO replication"), line) != NULL);
}

static void follow(struct wire *replica, const struct process *master) {
    char command[64];
    snprintf(command, sizeof command, "REPLICAOF 127.0.0.1 %u", master->port);
    wire_check(replica, command, "OK");
    wait_for_line(replica, "master_link_status:up");
}

static void wait_for_answer(struct wire *wire, const char *command, const char *reply) {
    WAIT_UNTIL(strcmp(wire_ask(wire, command), reply) == 0);
}

#define CONFIG "appendonly yes\nsave \"\"\nrepl-ping-replica-period 1\n"

static struct {
    struct process master, replica;
    struct wire to_master, to_replica;
} pair;

FIXTURE(begin_pair) {
    begin(&pair.master, &pair.to_master, CONFIG);
    begin(&pair.replica, &pair.to_replica, CONFIG);
    follow(&pair.to_replica, &pair.master);
    return 0;
}

FIXTURE(end_pair) {
    wire_close(&pair.to_replica);
    wire_close(&pair.to_master);
    bool is_killed = pair.master.pid == 0;
    return process_stop(&pair.replica) | (process_stop(&pair.master) != 0 && !is_killed);
}

#define IN_PAIR(name) TEST_WITH(name, begin_pair, end_pair)

/* ---- WAIT ---- */

IN_PAIR(wait_counts_the_replicas_that_have_the_write) {
    struct process second;
    struct wire to_second;
    begin(&second, &to_second, CONFIG);
    follow(&to_second, &pair.master);
    wait_for_line(&pair.to_master, "connected_slaves:2");
    wire_check(&pair.to_master, "ZADD a 1 ann", ":1");
    wire_check(&pair.to_master, "WAIT 2 0", ":2");
    wire_check(&to_second, "ZSCORE a ann", "1");
    process_signal(&second, SIGSTOP);
    wire_check(&pair.to_master, "ZADD a 2 bob", ":1");
    wire_check(&pair.to_master, "WAIT 1 0", ":1");
    wire_check(&pair.to_master, "WAIT 2 300", ":1");
    wire_send_text(&pair.to_master, "WAIT 2 0\r\nZCARD a\r\n");
    assert_true(wire_is_silent(&pair.to_master, 200));
    process_signal(&second, SIGCONT);
    wire_expect(&pair.to_master, ":2\r\n:2\r\n");
    /* A client that has written nothing waits for nothing. */
    struct wire other = wire_open(process_connect_tcp(&pair.master));
    wire_check(&other, "WAIT 2 0", ":2");
    wire_close(&other);
    end(&second, &to_second);
}

/* ---- what Sentinel sends ---- */

static const char *const reconfigure = "CONFIG REWRITE\r\nCLIENT KILL TYPE normal\r\n"
                                       "CLIENT KILL TYPE pubsub\r\nEXEC\r\n";
#define QUEUED "+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n"

static bool file_holds(const char *path, const char *text) {
    size_t size;
    char *content = file_read(path, &size);
    bool is_there = memmem(content, size, text, strlen(text)) != NULL;
    free(content);
    return is_there;
}

IN_PAIR(the_pipeline_of_sentinel_moves_the_role_and_the_file_keeps_it) {
    struct text request = {.at = NULL};
    char line[64];
    wire_check(&pair.to_master, "ZADD a 1 ann", ":1");
    wire_check(&pair.to_master, "WAIT 1 0", ":1");
    struct wire listener = wire_open(process_connect_tcp(&pair.replica));
    wire_check_prefix(&listener, "SUBSCRIBE __sentinel__:hello", "[subscribe ");
    wire_check(&pair.to_replica, "PUBLISH __sentinel__:hello x", ":1");
    wire_expect(&listener, "*3\r\n$7\r\nmessage\r\n$18\r\n__sentinel__:hello\r\n$1\r\nx\r\n");
    struct wire sentinel = wire_open(process_connect_tcp(&pair.replica));
    wire_send_text(&sentinel, "MULTI\r\nSLAVEOF NO ONE\r\n");
    wire_send_text(&sentinel, reconfigure);
    wire_expect(&sentinel, QUEUED "*4\r\n+OK\r\n+OK\r\n:1\r\n:1\r\n");
    assert_true(wire_is_closed(&listener, WIRE_LIMIT_MS));
    assert_true(wire_is_closed(&pair.to_replica, WIRE_LIMIT_MS));
    wire_close(&listener);
    wire_close(&pair.to_replica);
    wire_check(&sentinel, "ZADD a 2 bob", ":1");
    assert_false(file_holds(pair.replica.config_path, "replicaof"));
    /* The old master is told, too: it drops what it has of its own. */
    wire_check(&pair.to_master, "ZADD a 3 lost", ":1");
    struct wire other = wire_open(process_connect_tcp(&pair.master));
    text_format(&request, "MULTI\r\nSLAVEOF 127.0.0.1 %u\r\n", pair.replica.port);
    wire_send(&other, request.at, request.size);
    wire_send_text(&other, reconfigure);
    wire_expect(&other, QUEUED "*4\r\n+OK\r\n+OK\r\n:1\r\n:0\r\n");
    wait_for_line(&other, "master_link_status:up");
    wait_for_answer(&other, "ZRANGE a 0 -1", "[ann bob]");
    snprintf(line, sizeof line, "\nreplicaof 127.0.0.1 %u\n", pair.replica.port);
    assert_true(file_holds(pair.master.config_path, line));
    /* The file makes it a replica again after a restart. */
    struct process again;
    size_t size;
    char *content = file_read(pair.master.config_path, &size);
    struct text config = {.at = NULL};
    text_add(&config, content, size);
    const struct process_options options = {.config = config.at};
    assert_true(process_start(&again, &options));
    struct wire to_again = wire_open(process_connect_tcp(&again));
    wait_for_line(&to_again, "master_link_status:up");
    wait_for_answer(&to_again, "ZRANGE a 0 -1", "[ann bob]");
    end(&again, &to_again);
    text_free(&config);
    free(content);
    text_free(&request);
    wire_close(&other);
    wire_close(&pair.to_master);
    pair.to_master = wire_open(process_connect_tcp(&pair.master));
    wire_close(&sentinel);
    pair.to_replica = wire_open(process_connect_tcp(&pair.replica));
}

IN_PAIR(killing_the_link_makes_it_anew) {
    wire_check(&pair.to_replica, "CLIENT KILL TYPE master", ":1");
    wire_check(&pair.to_master, "ZADD a 1 ann", ":1");
    wait_for_answer(&pair.to_replica, "ZCARD a", ":1");
    wire_check(&pair.to_master, "CLIENT KILL TYPE replica", ":1");
    wire_check(&pair.to_master, "ZADD a 2 bob", ":1");
    wait_for_answer(&pair.to_replica, "ZCARD a", ":2");
}

/* ---- FAILOVER ---- */

/* Writes member after member until that is refused. */
struct writer {
    const struct process *server;
    _Atomic int64_t acknowledged;
};

static void *write_members(void *context) {
    struct writer *writer = context;
    struct wire wire = wire_open(process_connect_tcp(writer->server));
    char command[64];
    for (int64_t i = 0;; i++) {
        snprintf(command, sizeof command, "ZADD a %d m%d", (int)i, (int)i);
        const char *reply = wire_ask(&wire, command);
        if (strcmp(reply, ":1") != 0) {
            assert_memory_equal(reply, "-READONLY", 9);
            break;
        }
        atomic_store(&writer->acknowledged, i + 1);
    }
    wire_close(&wire);
    return NULL;
}

IN_PAIR(failover_loses_no_write_and_writers_are_told_where_to_go) {
    struct writer writer = {.server = &pair.master};
    pthread_t thread;
    char value[32];
    assert_int_equal(pthread_create(&thread, NULL, write_members, &writer), 0);
    while (atomic_load(&writer.acknowledged) < 200) {
        process_sleep_ms(1);
    }
    wire_check(&pair.to_master, "FAILOVER TIMEOUT 60000", "OK");
    assert_int_equal(pthread_join(thread, NULL), 0);
    snprintf(value, sizeof value, ":%d", (int)atomic_load(&writer.acknowledged));
    wait_for_line(&pair.to_replica, "role:master");
    wire_check(&pair.to_replica, "ZCARD a", value);
    wait_for_line(&pair.to_master, "master_link_status:up");
    wait_for_line(&pair.to_master, "master_failover_state:no-failover");
    wait_for_answer(&pair.to_master, "ZCARD a", value);
    wire_check(&pair.to_replica, "ZADD b 1 x", ":1");
    wait_for_answer(&pair.to_master, "ZCARD b", ":1");
}

/* The write and FAILOVER run in one tick: what the tick has written is waited for, too. */
IN_PAIR(failover_waits_for_a_write_of_the_same_moment) {
    struct wire *masters[2] = {&pair.to_master, &pair.to_replica};
    enum { ROUNDS = 6 };
    for (int i = 0; i < ROUNDS; i++) {
        char request[64];
        struct wire *old = masters[i % 2];
        struct wire *new = masters[1 - i % 2];
        wait_for_line(old, "state=online");
        process_sleep_ms(50); /* it has acknowledged all before */
        snprintf(request, sizeof request, "ZADD a %d m%d\r\nFAILOVER\r\n", i, i);
        wire_send_text(old, request);
        wire_expect(old, ":1\r\n+OK\r\n");
        wait_for_line(new, "role:master");
        snprintf(request, sizeof request, "ZSCORE a m%d", i);
        char score[16];
        snprintf(score, sizeof score, "%d", i);
        wire_check(new, request, score);
        wait_for_line(old, "master_link_status:up");
    }
}

IN_PAIR(failover_to_a_replica_that_does_not_answer_changes_nothing) {
    wait_for_line(&pair.to_master, "state=online");
    process_signal(&pair.replica, SIGSTOP);
    wire_check(&pair.to_master, "ZADD a 1 ann", ":1");
    wire_check(&pair.to_master, "FAILOVER TIMEOUT 300", "OK");
    wire_check(&pair.to_master, "ZADD a 2 bob", ":1"); /* held until it is over */
    wire_check_prefix(&pair.to_master, "ROLE", "[master ");
    wire_check(&pair.to_master, "FAILOVER", "OK");
    wire_check(&pair.to_master, "FAILOVER ABORT", "OK");
    process_signal(&pair.replica, SIGCONT);
    wait_for_answer(&pair.to_replica, "ZCARD a", ":2");
}

/* ---- what is refused ---- */

IN_PAIR(a_pause_of_all_commands_ends_during_a_failover) {
    WIRE(reader, process_connect_tcp(&pair.master));
    WIRE(writer, process_connect_tcp(&pair.master));
    wire_check(&pair.to_master, "ZADD a 1 ann", ":1");
    process_signal(&pair.replica, SIGSTOP);
    wire_check(&pair.to_master, "ZADD a 1 bob", ":1");
    wire_check(&pair.to_master, "FAILOVER TIMEOUT 60000", "OK");
    wire_check(&pair.to_master, "CLIENT PAUSE 300 ALL", "OK");
    wire_send_text(&reader, "ZCARD a\r\n");
    wire_send_text(&writer, "ZADD a 1 cid\r\n");
    assert_true(wire_is_silent(&reader, 100));
    wire_expect(&reader, ":2\r\n");
    assert_true(wire_is_silent(&writer, 200));
    wire_check(&pair.to_master, "FAILOVER ABORT", "OK");
    wire_expect(&writer, ":1\r\n");
    process_signal(&pair.replica, SIGCONT);
}

IN_PAIR(writes_are_refused_while_too_few_replicas_are_heard) {
    wire_check(&pair.to_master, "CONFIG SET min-replicas-to-write 1 min-replicas-max-lag 2", "OK");
    wait_for_answer(&pair.to_master, "ZADD a 1 ann", ":1");
    process_signal(&pair.replica, SIGSTOP);
    wait_for_answer(&pair.to_master, "ZADD a 1 ann",
                    "-NOREPLICAS Not enough good replicas to write.");
    wire_check(&pair.to_master, "ZCARD a", ":1");
    process_signal(&pair.replica, SIGCONT);
    wait_for_answer(&pair.to_master, "ZADD a 1 ann", ":0");
}

IN_PAIR(a_replica_without_its_master_serves_what_it_has_or_refuses) {
    wire_check(&pair.to_master, "ZADD a 1 ann", ":1");
    wait_for_answer(&pair.to_replica, "ZCARD a", ":1");
    process_signal(&pair.master, SIGKILL);
    assert_true(process_wait(&pair.master, PROCESS_STOP_LIMIT_MS));
    wait_for_line(&pair.to_replica, "master_link_status:down");
    wire_check(&pair.to_replica, "ZCARD a", ":1");
    wire_check(&pair.to_replica, "CONFIG SET replica-serve-stale-data no", "OK");
    wire_check(&pair.to_replica, "ZCARD a",
               "-MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.");
    wire_check(&pair.to_replica, "REPLICAOF NO ONE", "OK");
    wire_check(&pair.to_replica, "ZADD a 2 bob", ":1");
    wire_check(&pair.to_replica, "ZCARD a", ":2");
}

IN_PAIR(who_waits_for_a_key_is_told_that_its_server_is_a_replica_now) {
    struct process other;
    struct wire to_other;
    begin(&other, &to_other, CONFIG);
    struct wire waiter = wire_open(process_connect_tcp(&other));
    wire_send_text(&waiter, "BZPOPMIN a 0\r\n");
    wire_wait_info(&to_other, "blocked_clients", 1);
    wire_check(&pair.to_master, "ZADD a 1 ann", ":1");
    follow(&to_other, &pair.master);
    wire_expect(&waiter, "-UNBLOCKED force unblock from blocking operation, instance state changed "
                         "(master -> replica?)\r\n");
    assert_true(wire_is_closed(&waiter, WIRE_LIMIT_MS));
    wait_for_answer(&to_other, "ZCARD a", ":1");
    wire_close(&waiter);
    end(&other, &to_other);
}

/* An erasure goes over all boards in steps: what a change of roles interrupts is finished by who is
 * master afterwards. */
IN_PAIR(an_order_is_finished_by_the_next_master) {
    char command[64];
    TEXT(request);
    enum { BOARDS = 20000 };
    for (int i = 0; i < BOARDS; i++) {
        text_format(&request, "ZADD b%d 1 ann\r\n", i);
    }
    wire_send(&pair.to_master, request.at, request.size);
    for (int i = 0; i < BOARDS; i++) {
        wire_expect(&pair.to_master, ":1\r\n");
    }
    wait_for_answer(&pair.to_replica, "DBSIZE", ":20000");
    WIRE(eraser, process_connect_tcp(&pair.master));
    wire_send_text(&eraser, "LB.FORGET ann\r\n");
    int64_t left = BOARDS;
    while (left == BOARDS) {
        left = wire_ask_integer(&pair.to_replica, "DBSIZE");
    }
    wire_check(&pair.to_replica, "REPLICAOF NO ONE", "OK");
    snprintf(command, sizeof command, "REPLICAOF 127.0.0.1 %u", pair.replica.port);
    wire_check(&pair.to_master, command, "OK");
    (void)wire_try_reply(&eraser); /* answered, or told that the server is a replica */
    wait_for_answer(&pair.to_replica, "DBSIZE", ":0");
    wait_for_line(&pair.to_master, "master_link_status:up");
    wait_for_answer(&pair.to_master, "DBSIZE", ":0");
}

/* ---- beside Redis ---- */

/* What does not depend on addresses and ids is replied as Redis 7.0 does. */
static const char *const same_as_redis[] = {
    "REPLICAOF x 99999",
    "REPLICAOF x y",
    "REPLICAOF no two",
    "REPLICAOF x",
    "SLAVEOF a b c",
    "ROLE",
    "ROLE x",
    "WAIT 0 0",
    "WAIT a 1",
    "WAIT 1 -1",
    "WAIT 1 a",
    "WAIT 1 10",
    "WAIT 1",
    "FAILOVER ABORT",
    "FAILOVER",
    "FAILOVER TIMEOUT 0",
    "FAILOVER TIMEOUT x",
    "FAILOVER x",
    "FAILOVER TO a",
    "FAILOVER TO a x",
    "FAILOVER TO a 1 FORCE",
    "FAILOVER FORCE",
    "REPLCONF",
    "REPLCONF a",
    "REPLCONF a b",
    "REPLCONF listening-port x",
    "REPLCONF listening-port 7001",
    "REPLCONF capa eof capa psync2",

    "REPLCONF ip-address 10.0.0.9",
    "CLIENT LIST TYPE replica",
    "CLIENT LIST TYPE slave",
    "CLIENT LIST TYPE master",
    "CLIENT KILL TYPE replica",
    "CLIENT KILL TYPE master",
    "CLIENT KILL TYPE slave",
    "CONFIG GET slave-priority",
    "CONFIG GET replica-priority",
    "CONFIG GET min-slaves-to-write",
    "CONFIG GET slave-announce-ip",
    "CONFIG SET slave-priority -1",
    "CONFIG SET repl-timeout 0",
    "CONFIG SET min-slaves-max-lag -1",
    "CONFIG SET replica-serve-stale-data maybe",
    "CONFIG SET min-replicas-to-write 1",
    "ZADD a 1 b",
    "MULTI",
    "ZADD a 1 b",
    "EXEC",
    "CONFIG SET min-replicas-to-write 0",
    "ZADD a 1 b",
    "MULTI",
    "ZADD a 1 c",
    "SLAVEOF 127.0.0.1 1",
    "EXEC",
    "SLAVEOF 127.0.0.1 1",
    "ZADD a 1 e",
    "DEL a",
    "EXPIRE a 10",
    "ZCARD a",
    "PING",
    "WAIT 0 0",
    "FAILOVER",
    "PUBLISH a b",
    "CONFIG GET replicaof",
    "CONFIG GET slaveof",
    "CONFIG SET replicaof x",
    "MULTI",
    "ZADD a 1 e",
    "EXEC",
    "MULTI",
    "ZCARD a",
    "EXEC",
    "CONFIG SET slave-serve-stale-data no",
    "ZCARD a",
    "PING",
    "ECHO x",
    "MULTI",
    "ZCARD a",
    "EXEC",
    "SELECT 1",
    "SELECT 0",
    "DBSIZE",
    "KEYS *",
    "SUBSCRIBE a",
    "UNSUBSCRIBE a",
    "WATCH a",
    "UNWATCH",
    "BZPOPMIN a 0",
    "SLAVEOF NO ONE",
    "SLAVEOF NO ONE",
    "ZADD a 1 f",
    "ZCARD a",
    "PING",
    "CONFIG GET replicaof",
};

TEST(replies_are_those_of_redis) {
    STAGE(stage, 1, NULL);
    for (size_t i = 0; i < COUNT_OF(same_as_redis); i++) {
        OWNED char *wanted = strdup(wire_ask(&stage.wires[1][0], same_as_redis[i]));
        const char *got = wire_ask(&stage.wires[0][0], same_as_redis[i]);
        if (strcmp(wanted, got) != 0) {
            fail_msg("%s: redis %s, here %s", same_as_redis[i], wanted, got);
        }
    }
}

/* The fields that Redis has in INFO replication are here, in its order: Sentinel and tools read them. */
TEST(info_has_the_fields_of_redis_in_its_order) {
    STAGE(stage, 1, NULL);
    for (int role = 0; role < 2; role++) {
        char *wanted = strdup(wire_ask(&stage.witnesses[1], "INFO replication"));
        const char *rest = wire_ask(&stage.witnesses[0], "INFO replication");
        char *save = NULL;
        for (char *line = strtok_r(wanted, "\r\n", &save); line != NULL;
             line = strtok_r(NULL, "\r\n", &save)) {
            char name[64];
            if (sscanf(line, "%62[a-z_0-9]:", name) != 1) {
                continue;
            }
            strcat(name, ":");
            const char *at = strstr(rest, name);
            if (at == NULL) {
                fail_msg("no %s behind its predecessors in %s", name,
                         wire_ask(&stage.witnesses[0], "INFO replication"));
            }
            rest = at;
        }
        free(wanted);
        stage_step(&stage, 0, "REPLICAOF 127.0.0.1 1");
    }
}
