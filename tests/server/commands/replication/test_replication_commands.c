/* REPLICAOF SLAVEOF ROLE REPLCONF WAIT FAILOVER, INFO replication, and what is refused on a replica. No
 * other server is there: replicas are sessions that the tests put into the list. What Redis refuses in
 * the same words: tests/integration/roles.c. */
#include "server/dispatch/waiting.h"
#include "server/durability/file_format.h"
#include "server/replication/replication.h"
#include "tests/support/harness.h"
#include "tests/support/noted_replicator.h"

/* A test with a server, its state of replication, and a client of it. */
#define REPLICATION_TEST(name)                                                                     \
    static void name##_with(struct harness *h, struct session *s, struct replication *r);          \
    SERVER_TEST(name) {                                                                            \
        name##_with(h, s, &h->server.replication);                                                 \
    }                                                                                              \
    static void name##_with(__attribute__((unused)) struct harness *h,                             \
                            __attribute__((unused)) struct session *s,                             \
                            __attribute__((unused)) struct replication *r)

#define WITH_REPLICATOR                                                                            \
    struct replicator replicator = {.server = &h->server};                                         \
    r->replicator = &replicator

/* A client that has become an online replica. */
static struct session *connect_replica(struct harness *h, uint16_t port, enum replica_state state) {
    struct session *session = harness_connect(h);
    harness_expect(h, session, formatted("REPLCONF listening-port %u", port), "+OK\r\n");
    replication_add_replica(&h->server, session->replica, state);
    return session;
}

static bool has_line(struct harness *h, struct session *s, const char *line) {
    const char *wanted = formatted("\r\n%s\r\n", line);
    return strstr(harness_run(h, s, "INFO replication"), wanted) != NULL;
}

static void pass(struct harness *h, int64_t ms) {
    h->wall_us += ms * 1000;
    server_update_time(&h->server);
    replication_failover_step(&h->server, false);
}

/* ---- the role ---- */

#define SLAVE(port, state) "*5\r\n$5\r\nslave\r\n$9\r\n127.0.0.1\r\n:" port "\r\n" state ":-1\r\n"

REPLICATION_TEST(a_server_becomes_a_replica_and_a_master_again) {
    char first_id[REPLICATION_ID_SIZE + 1];
    memcpy(first_id, r->id, sizeof first_id);
    harness_expect(h, s, "ROLE", "*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n");
    harness_expect(h, s, "REPLICAOF 127.0.0.1 7001", "+OK\r\n");
    harness_expect(h, s, "ROLE", SLAVE("7001", "$7\r\nconnect\r\n"));
    harness_expect(h, s, "SLAVEOF 127.0.0.1 7001", "+OK Already connected to specified master\r\n");
    harness_expect(h, s, "slaveof 127.0.0.1 7002", "+OK\r\n");
    harness_expect(h, s, "ROLE", SLAVE("7002", "$7\r\nconnect\r\n"));
    harness_expect(h, s, "CONFIG GET replicaof",
                   "*2\r\n$9\r\nreplicaof\r\n$14\r\n127.0.0.1 7002\r\n");
    assert_string_equal(r->id, first_id);
    r->group = 41;
    harness_expect(h, s, "REPLICAOF No OnE", "+OK\r\n");
    assert_string_equal(r->second_id, first_id);
    assert_string_not_equal(r->id, first_id);
    assert_int_equal(r->second_until, 41);
    assert_true(has_line(h, s, "second_repl_offset:42"));
    harness_expect(h, s, "ROLE", "*3\r\n$6\r\nmaster\r\n:41\r\n*0\r\n");
    harness_expect(h, s, "CONFIG GET slaveof", "*2\r\n$7\r\nslaveof\r\n$0\r\n\r\n");
    memcpy(first_id, r->id, sizeof first_id);
    harness_expect(h, s, "REPLICAOF NO ONE", "+OK\r\n");
    assert_string_equal(r->id, first_id); /* a master stays what it is */
}

REPLICATION_TEST(what_is_no_server_is_refused_and_changes_nothing) {
    harness_expect(h, s, "REPLICAOF 127.0.0.1 0", "-ERR Invalid master port\r\n");
    harness_expect(h, s, "REPLICAOF 127.0.0.1 65536", "-ERR Invalid master port\r\n");
    harness_expect(h, s, "REPLICAOF \"\" 7001",
                   "-ERR Invalid master host: an address or a host's name is wanted\r\n");
    harness_expect(h, s, "REPLICAOF \"a\\r\\nb\" 7001",
                   "-ERR Invalid master host: an address or a host's name is wanted\r\n");
    harness_expect(h, s, "REPLICAOF * 7001",
                   "-ERR Invalid master host: an address or a host's name is wanted\r\n");
    assert_int_equal(r->role, REPLICATION_MASTER);
    assert_null(h->server.settings.replicaof_host);
    char line[400] = "REPLICAOF ";
    memset(line + 10, 'a', 254);
    memcpy(line + 264, " 7001", 6);
    harness_expect(h, s, line,
                   "-ERR Invalid master host: an address or a host's name is wanted\r\n");
    struct session *replica = connect_replica(h, 7001, REPLICA_ONLINE);
    harness_expect(h, replica, "REPLICAOF 127.0.0.1 7002",
                   "-ERR Command is not valid when client is a replica.\r\n");
    harness_expect(h, replica, "RESET", "-ERR can only reset normal connections\r\n");
    assert_int_equal(r->role, REPLICATION_MASTER);
}

HARNESS_TEST(the_setting_makes_a_replica_from_the_start, "slaveof boards.example 7001\n") {
    harness_expect(
        h, s, "ROLE",
        "*5\r\n$5\r\nslave\r\n$14\r\nboards.example\r\n:7001\r\n$7\r\nconnect\r\n:-1\r\n");
    harness_expect_prefix(h, s, "ZADD a 1 b", "-READONLY ");
}

/* ---- what Sentinel sends and reads ---- */

REPLICATION_TEST(the_pipeline_of_sentinel_changes_the_role) {
    struct session *other = harness_connect(h);
    struct session *listener = harness_connect(h);
    harness_expect_prefix(h, listener, "SUBSCRIBE __sentinel__:hello", "*3\r\n");
    const char *const roles[][2] = {
        {"SLAVEOF 127.0.0.1 7001", "role:slave"},
        {"SLAVEOF NO ONE", "role:master"},
    };
    for (size_t i = 0; i < 2; i++) {
        harness_expect(h, s, "MULTI", "+OK\r\n");
        harness_expect(h, s, roles[i][0], "+QUEUED\r\n");
        harness_expect(h, s, "CONFIG REWRITE", "+QUEUED\r\n");
        harness_expect(h, s, "CLIENT KILL TYPE normal", "+QUEUED\r\n");
        harness_expect(h, s, "CLIENT KILL TYPE pubsub", "+QUEUED\r\n");
        harness_expect(h, s, "EXEC",
                       i == 0 ? "*4\r\n+OK\r\n-ERR The server is running without a config file\r\n"
                                ":1\r\n:1\r\n"
                              : "*4\r\n+OK\r\n-ERR The server is running without a config file\r\n"
                                ":0\r\n:0\r\n");
        assert_true(has_line(h, s, roles[i][1]));
    }
    assert_true(other->is_killed && listener->is_killed && !s->is_killed);
    assert_false(s->is_close_after_reply);
}

REPLICATION_TEST(the_user_that_sentinel_needs_can_be_made) {
    harness_expect(
        h, s,
        "ACL SETUSER sentinel ON >secret allchannels +multi +slaveof +ping +exec "
        "+subscribe +config|rewrite +role +publish +info +client|setname +client|kill +failover "
        "+client|pause +client|unpause +script|kill",
        "+OK\r\n");
    harness_expect(h, s, "ACL SETUSER replica ON >secret +psync +replconf +ping", "+OK\r\n");
    struct session *sentinel = harness_connect(h);
    harness_expect(h, sentinel, "AUTH sentinel secret", "+OK\r\n");
    harness_expect(h, sentinel, "CLIENT SETNAME sentinel-0123abcd-cmd", "+OK\r\n");
    harness_expect(h, sentinel, "PING", "+PONG\r\n");
    harness_expect_prefix(h, sentinel, "INFO", "$");
    harness_expect(h, sentinel, "PUBLISH __sentinel__:hello x", ":0\r\n");
    harness_expect(h, sentinel, "MULTI", "+OK\r\n");
    harness_expect(h, sentinel, "SLAVEOF 127.0.0.1 7001", "+QUEUED\r\n");
    harness_expect(h, sentinel, "CONFIG REWRITE", "+QUEUED\r\n");
    harness_expect(h, sentinel, "CLIENT KILL TYPE normal", "+QUEUED\r\n");
    harness_expect(h, sentinel, "CLIENT KILL TYPE pubsub", "+QUEUED\r\n");
    harness_expect_prefix(h, sentinel, "EXEC", "*4\r\n+OK\r\n");
    assert_int_equal(r->role, REPLICATION_REPLICA);
    harness_expect_prefix(h, sentinel, "ZCARD a", "-NOPERM ");
    harness_expect_prefix(h, sentinel, "REPLICAOF NO ONE", "-NOPERM ");
}

REPLICATION_TEST(info_of_a_replica_has_the_fields_of_redis_in_its_order) {
    harness_expect(h, s, "REPLICAOF 127.0.0.1 7001", "+OK\r\n");
    h->wall_us += 3500000;
    static const char *const down =
        "# Replication\r\nrole:slave\r\nmaster_host:127.0.0.1\r\nmaster_port:7001\r\n"
        "master_link_status:down\r\nmaster_link_state:connect\r\nmaster_last_io_seconds_ago:-1\r\n"
        "master_sync_in_progress:0\r\nslave_read_repl_offset:0\r\nslave_repl_offset:0\r\n"
        "master_link_down_since_seconds:3\r\nslave_priority:100\r\nslave_read_only:1\r\n"
        "replica_announced:1\r\nconnected_slaves:0\r\nmaster_failover_state:no-failover\r\n"
        "master_replid:";
    harness_expect_part(h, s, "INFO replication", down);
    r->link = REPLICATION_LINK_SYNC;
    r->copy_size = 400;
    r->copy_read_size = 100;
    r->copy_at_ms = h->server.clock.monotonic_ms - 2000;
    r->is_priority_zero = true;
    static const char *const copying =
        "master_sync_in_progress:1\r\nslave_read_repl_offset:0\r\nslave_repl_offset:0\r\n"
        "master_sync_total_bytes:400\r\nmaster_sync_read_bytes:100\r\nmaster_sync_left_bytes:"
        "300\r\n"
        "master_sync_perc:25.00\r\nmaster_sync_last_io_seconds_ago:2\r\n"
        "master_link_down_since_seconds:3\r\nslave_priority:0\r\n";
    harness_expect_part(h, s, "INFO replication", copying);
    r->link = REPLICATION_LINK_CONNECTED;
    r->is_priority_zero = false;
    r->heard_at_ms = h->server.clock.monotonic_ms - 1000;
    r->group = 12;
    r->read_group = 13;
    harness_expect(h, s, "CONFIG SET replica-priority 7 replica-announced no", "+OK\r\n");
    static const char *const up =
        "master_link_status:up\r\nmaster_link_state:connected\r\nmaster_last_io_seconds_ago:1\r\n"
        "master_sync_in_progress:0\r\nslave_read_repl_offset:13\r\nslave_repl_offset:12\r\n"
        "slave_priority:7\r\nslave_read_only:1\r\nreplica_announced:0\r\n";
    harness_expect_part(h, s, "INFO replication", up);
    harness_expect(h, s, "ROLE",
                   "*5\r\n$5\r\nslave\r\n$9\r\n127.0.0.1\r\n:7001\r\n$9\r\nconnected\r\n:12\r\n");
}

REPLICATION_TEST(info_and_role_list_the_replicas) {
    struct session *first = connect_replica(h, 7001, REPLICA_ONLINE);
    struct session *second = connect_replica(h, 7002, REPLICA_COPIES);
    harness_expect(h, second, "REPLCONF ip-address 10.0.0.9 capa eof capa psync2", "+OK\r\n");
    assert_string_equal(harness_run(h, first, "REPLCONF ACK 5 FSYNC 4"), "");
    h->wall_us += 2000000;
    assert_true(has_line(h, s, "connected_slaves:2"));
    assert_true(has_line(h, s, "slave0:ip=127.0.0.1,port=7001,state=online,offset=5,lag=2"));
    assert_true(has_line(h, s, "slave1:ip=10.0.0.9,port=7002,state=send_bulk,offset=0,lag=2"));
    harness_expect(h, s, "ROLE",
                   "*3\r\n$6\r\nmaster\r\n:0\r\n*1\r\n*3\r\n$9\r\n127.0.0.1\r\n$4\r\n7001\r\n"
                   "$1\r\n5\r\n");
    assert_string_equal(harness_run(h, first, "REPLCONF ACK 3"), ""); /* never back */
    assert_int_equal(first->replica->ack_group, 5);
    harness_disconnect(h, first);
    assert_true(has_line(h, s, "connected_slaves:1"));
    assert_true(has_line(h, s, "slave0:ip=10.0.0.9,port=7002,state=send_bulk,offset=0,lag=2"));
}

/* ---- REPLCONF ---- */

REPLICATION_TEST(replconf_takes_what_replicas_of_redis_and_of_this_server_say) {
    harness_expect(h, s, "REPLCONF", "+OK\r\n");
    assert_null(s->replica);
    harness_expect(h, s, "REPLCONF listening-port 7001 ip-address 10.0.0.1 capa x version 9.0.0",
                   "+OK\r\n");
    assert_int_equal(s->replica->port, 7001);
    assert_string_equal(s->replica->ip, "10.0.0.1");
    assert_int_equal(s->replica->state, REPLICA_HANDSHAKE);
    const char *line = formatted("REPLCONF leaderboard %d rdb-only 0", FILE_FORMAT);
    harness_expect(h, s, line, formatted("+LEADERBOARD %d\r\n", FILE_FORMAT));
    harness_expect(h, s, "REPLCONF ip-address \"\"", "+OK\r\n");
    assert_string_equal(s->replica->ip, "");
    assert_int_equal(r->replica_count, 0);
}

REPLICATION_TEST(replconf_refuses_what_it_cannot_use_and_keeps_what_it_had) {
    harness_expect(h, s, "REPLCONF listening-port 7001 ip-address 10.0.0.1", "+OK\r\n");
    harness_expect(h, s, "REPLCONF listening-port 65536",
                   "-ERR value is out of range, value must between 0 and 65535\r\n");
    harness_expect(h, s, "REPLCONF listening-port 7002 ip-address \"1\\r\\nrole:slave\"",
                   "-ERR REPLCONF ip-address must be an address or a host's name\r\n");
    harness_expect(h, s, "REPLCONF ip-address 10.0.0.2 b c",
                   "-ERR Unrecognized REPLCONF option: b\r\n");
    harness_expect(h, s, "REPLCONF rdb-only 2", "-ERR REPLCONF rdb-only is 0 or 1\r\n");
    harness_expect(h, s, "REPLCONF rdb-filter-only functions",
                   "-ERR REPLCONF rdb-filter-only is not supported: all keys are sent\r\n");
    const int formats[] = {-1, 0, 6, FILE_FORMAT + 1, 1 << 30}; /* 6: before 1.0 */
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        char reply[256];
        const char *line = formatted("REPLCONF leaderboard %d", formats[i]);
        snprintf(
            reply, sizeof reply,
            "-ERR the replica's format is %d, this server's %d: they must be equal. Upgrade the "
            "older server\r\n",
            formats[i], FILE_FORMAT);
        harness_expect(h, s, line, reply);
    }
    assert_int_equal(s->replica->port, 7001);
    assert_string_equal(s->replica->ip, "10.0.0.1");
}

REPLICATION_TEST(an_ack_of_no_replica_is_ignored) {
    assert_string_equal(harness_run(h, s, "REPLCONF ACK 5"), "");
    assert_string_equal(harness_run(h, s, "REPLCONF GETACK *"), "");
    assert_null(s->replica);
    harness_expect(h, s, "MULTI", "+OK\r\n");
    harness_expect(h, s, "REPLCONF ACK 5", "+QUEUED\r\n");
    harness_expect(h, s, "EXEC", "*1\r\n+OK\r\n");
    struct session *replica = connect_replica(h, 7001, REPLICA_ONLINE);
    static const char *const wrong[] = {"REPLCONF ACK", "REPLCONF ACK x", "REPLCONF ACK -1"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_string_equal(harness_run(h, replica, wrong[i]), "");
    }
    assert_int_equal(replica->replica->ack_group, 0);
}

/* ---- what is refused ---- */

#define READONLY "-READONLY You can't write against a read only replica.\r\n"
#define MASTERDOWN                                                                                 \
    "-MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.\r\n"

REPLICATION_TEST(a_replica_reads_and_does_not_write) {
    harness_expect(h, s, "ZADD a 1 b", ":1\r\n");
    harness_expect(h, s, "REPLICAOF 127.0.0.1 7001", "+OK\r\n");
    static const char *const writes[] = {
        "ZADD a 2 c",        "DEL a",      "EXPIRE a 10",     "HSET h f v", "FLUSHALL",
        "BZPOPMIN a 0",      "LB.ADD a 1", "RENAME a b",      "PERSIST a",  "LB.FORGET b",
        "ZUNIONSTORE d 1 a", "COPY a b",   "LB.CREATE board",
    };
    for (size_t i = 0; i < sizeof writes / sizeof writes[0]; i++) {
        const char *reply = harness_run(h, s, writes[i]);
        if (!harness_is_reply(writes[i], "-ERR syntax error\r\n", reply) &&
            strncmp(reply, "-ERR wrong number", 17) != 0) {
            assert_string_equal(reply, READONLY);
        }
    }
    harness_expect(h, s, "ZSCORE a b", "$1\r\n1\r\n");
    harness_expect(h, s, "PUBLISH channel message", ":0\r\n");
    harness_expect_prefix(h, s, "SUBSCRIBE channel", "*3\r\n");
    struct session *t = harness_connect(h);
    harness_expect(h, t, "MULTI", "+OK\r\n");
    harness_expect(h, t, "ZADD a 2 c", READONLY);
    harness_expect(h, t, "EXEC",
                   "-EXECABORT Transaction discarded because of previous errors.\r\n");
    struct session *u = harness_connect(h);
    u->protocol = 3;
    harness_expect_prefix(h, u, "HELLO 3", "%7\r\n");
    harness_expect_part(h, u, "HELLO 3", "$4\r\nrole\r\n$7\r\nreplica\r\n");
}

REPLICATION_TEST(a_transaction_begun_on_a_master_is_not_run_on_a_replica) {
    struct session *t = harness_connect(h);
    harness_expect(h, t, "MULTI", "+OK\r\n");
    harness_expect(h, t, "ZADD a 1 b", "+QUEUED\r\n");
    harness_expect(h, s, "REPLICAOF 127.0.0.1 7001", "+OK\r\n");
    harness_expect(
        h, t, "EXEC",
        "-EXECABORT Transaction discarded because of: READONLY You can't write against a "
        "read only replica.\r\n");
    harness_expect(h, t, "ZCARD a", ":0\r\n");
}

REPLICATION_TEST(without_its_master_a_replica_refuses_reads_if_it_is_told_to) {
    harness_expect(h, s, "REPLICAOF 127.0.0.1 7001", "+OK\r\n");
    harness_expect(h, s, "CONFIG SET replica-serve-stale-data no", "+OK\r\n");
    harness_expect(h, s, "ZCARD a", MASTERDOWN);
    harness_expect(h, s, "PING", MASTERDOWN);
    harness_expect(h, s, "ZADD a 1 b", READONLY);
    harness_expect_prefix(h, s, "INFO", "$");
    harness_expect_prefix(h, s, "ROLE", "*5\r\n");
    harness_expect(h, s, "SELECT 0", "+OK\r\n");
    struct session *t = harness_connect(h);
    harness_expect(h, t, "MULTI", "+OK\r\n");
    harness_expect(h, t, "ZCARD a", MASTERDOWN);
    harness_expect(h, t, "EXEC",
                   "-EXECABORT Transaction discarded because of previous errors.\r\n");
    r->link = REPLICATION_LINK_CONNECTED;
    harness_expect(h, s, "ZCARD a", ":0\r\n");
    harness_expect(h, s, "PING", "+PONG\r\n");
    r->link = REPLICATION_LINK_CONNECT;
    harness_expect(h, s, "REPLICAOF 127.0.0.1 7002", "+OK\r\n");
    harness_expect(h, s, "ZCARD a", MASTERDOWN);
    harness_expect(h, s, "REPLICAOF NO ONE", "+OK\r\n");
    harness_expect(h, s, "ZCARD a", ":0\r\n");
}

#define NOREPLICAS "-NOREPLICAS Not enough good replicas to write.\r\n"

REPLICATION_TEST(writes_want_as_many_replicas_as_the_setting_says) {
    harness_expect(h, s, "CONFIG SET min-replicas-to-write 1 min-slaves-max-lag 5", "+OK\r\n");
    harness_expect(h, s, "ZADD a 1 b", NOREPLICAS);
    harness_expect(h, s, "ZCARD a", ":0\r\n");
    struct session *replica = connect_replica(h, 7001, REPLICA_COPIES);
    harness_expect(h, s, "ZADD a 1 b", NOREPLICAS); /* not online yet */
    replica->replica->state = REPLICA_ONLINE;
    harness_expect(h, s, "ZADD a 1 b", ":1\r\n");
    assert_true(has_line(h, s, "min_slaves_good_slaves:1"));
    h->wall_us += 5000000;
    harness_expect(h, s, "ZADD a 1 c", ":1\r\n");
    h->wall_us += 1000000;
    harness_expect(h, s, "ZADD a 1 d", NOREPLICAS);
    harness_expect(h, s, "MULTI", "+OK\r\n");
    harness_expect(h, s, "ZADD a 1 d", NOREPLICAS);
    harness_expect(h, s, "DISCARD", "+OK\r\n");
    assert_string_equal(harness_run(h, replica, "REPLCONF ACK 1"), "");
    harness_expect(h, s, "ZADD a 1 d", ":1\r\n");
    h->wall_us += 9000000;
    harness_expect(h, s, "CONFIG SET min-replicas-max-lag 0", "+OK\r\n");
    harness_expect(h, s, "ZADD a 1 e", ":1\r\n");
}

/* ---- WAIT ---- */

REPLICATION_TEST(wait_answers_at_once_where_it_need_not_or_cannot_wait) {
    harness_expect(h, s, "WAIT -1 0", ":0\r\n");
    harness_expect(h, s, "WAIT 1 9223372036854775807", "-ERR timeout is out of range\r\n");
    struct session *replica = connect_replica(h, 7001, REPLICA_ONLINE);
    harness_expect(h, s, "WAIT 1 0", ":1\r\n"); /* it has written nothing */
    s->changed_group = 7;
    harness_expect(h, s, "MULTI", "+OK\r\n");
    harness_expect(h, s, "WAIT 1 0", "+QUEUED\r\n");
    harness_expect(h, s, "EXEC", "*1\r\n:0\r\n");
    assert_string_equal(harness_run(h, replica, "REPLCONF ACK 7"), "");
    harness_expect(h, s, "WAIT 1 0", ":1\r\n");
    harness_expect(h, s, "REPLICAOF 127.0.0.1 7002", "+OK\r\n");
    harness_expect(h, s, "WAIT 1 0",
                   "-ERR WAIT cannot be used with replica instances. Please also note that since "
                   "Redis 4.0 if a replica is configured to be writable (which is not the default) "
                   "writes to replicas are just local and are not propagated.\r\n");
}

/* ---- what balancers ask for ---- */

REPLICATION_TEST(a_master_serves_as_one_while_its_answers_leave) {
    assert_true(has_line(h, s, "serves_as_master:1"));
    r->sync.state = SYNC_CLOSED;
    assert_true(has_line(h, s, "serves_as_master:0"));
    r->sync = (struct sync){.state = SYNC_OPEN, .has_lease = true, .lease_end_ms = INT64_MAX};
    assert_true(has_line(h, s, "serves_as_master:1"));
    r->sync.lease_end_ms = 0;
    assert_true(has_line(h, s, "serves_as_master:0"));
    r->sync = (struct sync){.state = SYNC_OFF};
    harness_expect(h, s, "CONFIG SET min-replicas-to-write 1", "+OK\r\n");
    assert_true(has_line(h, s, "serves_as_master:0"));
    connect_replica(h, 7001, REPLICA_ONLINE);
    assert_true(has_line(h, s, "serves_as_master:1"));
    r->is_promoting = true;
    assert_true(has_line(h, s, "serves_as_master:0"));
    r->is_promoting = false;
    h->server.durability.is_loading = true;
    assert_true(has_line(h, s, "serves_as_master:0"));
    h->server.durability.is_loading = false;
    harness_expect(h, s, "REPLICAOF 127.0.0.1 7003", "+OK\r\n");
    assert_false(has_line(h, s, "serves_as_master:1"));
}

/* ---- FAILOVER ---- */

REPLICATION_TEST(failover_is_refused_in_the_words_of_redis) {
    harness_expect(h, s, "FAILOVER FORCE FORCE", "-ERR syntax error\r\n");
    harness_expect(h, s, "FAILOVER ABORT TIMEOUT 1", "-ERR syntax error\r\n");
    struct session *replica = connect_replica(h, 7001, REPLICA_COPIES);
    harness_expect(h, s, "FAILOVER TO 127.0.0.1 7002",
                   "-ERR FAILOVER target HOST and PORT is not a replica.\r\n");
    harness_expect(h, s, "FAILOVER TO 127.0.0.1 7001",
                   "-ERR FAILOVER target replica is not online.\r\n");
    harness_expect(h, s, "FAILOVER TO 127.0.0.1 7001 FORCE",
                   "-ERR FAILOVER with force option requires both a timeout and target HOST and "
                   "IP.\r\n");
    assert_int_equal(r->failover.state, REPLICATION_FAILOVER_NONE);
    replica->replica->state = REPLICA_ONLINE;
    harness_expect(h, s, "REPLICAOF 127.0.0.1 7003", "+OK\r\n");
    harness_expect(h, s, "FAILOVER", "-ERR FAILOVER is not valid when server is a replica.\r\n");
}

REPLICATION_TEST(failover_waits_until_its_target_has_everything) {
    struct session *first = connect_replica(h, 7001, REPLICA_ONLINE);
    struct session *second = connect_replica(h, 7002, REPLICA_ONLINE);
    r->group = 9;
    assert_string_equal(harness_run(h, first, "REPLCONF ACK 9"), "");
    harness_expect(h, s, "FAILOVER TO 127.0.0.1 7002 TIMEOUT 1000", "+OK\r\n");
    harness_expect(h, s, "FAILOVER", "-ERR FAILOVER already in progress.\r\n");
    harness_expect(h, s, "REPLICAOF NO ONE", "-ERR REPLICAOF not allowed while failing over.\r\n");
    assert_true(has_line(h, s, "master_failover_state:waiting-for-sync"));
    assert_int_equal(server_pause(&h->server), SERVER_PAUSE_WRITE);
    replication_failover_step(&h->server, false);
    assert_int_equal(r->failover.state, REPLICATION_FAILOVER_WAITS);
    assert_string_equal(harness_run(h, second, "REPLCONF ACK 9"), "");
    replication_failover_step(&h->server, false);
    assert_true(has_line(h, s, "master_failover_state:failover-in-progress"));
    harness_expect(h, s, "ROLE", SLAVE("7002", "$7\r\nconnect\r\n"));
    replication_failover_end(&h->server, true);
    assert_true(has_line(h, s, "master_failover_state:no-failover"));
    assert_int_equal(server_pause(&h->server), SERVER_PAUSE_NONE);
    assert_int_equal(r->role, REPLICATION_REPLICA);
}

REPLICATION_TEST(failover_waits_for_answers_that_would_be_lost) {
    struct session *replica = connect_replica(h, 7001, REPLICA_ONLINE);
    r->group = 9;
    r->sync.state = SYNC_OPEN;
    assert_string_equal(harness_run(h, replica, "REPLCONF ACK 9"), "");
    harness_expect(h, s, "FAILOVER TIMEOUT 1000", "+OK\r\n");
    replication_failover_step(&h->server, true);
    assert_int_equal(r->failover.state, REPLICATION_FAILOVER_WAITS);
    replication_failover_step(&h->server, false);
    assert_int_equal(r->failover.state, REPLICATION_FAILOVER_SHIFTS);
}

/* Without sync-replicas they wait for this server's disk, and go on doing so when it is a replica. */
REPLICATION_TEST(failover_does_not_wait_for_the_disk_of_the_old_master) {
    struct session *replica = connect_replica(h, 7001, REPLICA_ONLINE);
    r->group = 9;
    assert_string_equal(harness_run(h, replica, "REPLCONF ACK 9"), "");
    harness_expect(h, s, "FAILOVER", "+OK\r\n");
    replication_failover_step(&h->server, true);
    assert_int_equal(r->failover.state, REPLICATION_FAILOVER_SHIFTS);
}

/* ---- Sentinel ---- */

static struct session *connect_sentinel(struct harness *h) {
    struct session *sentinel = harness_connect(h);
    harness_expect(h, sentinel, "CLIENT SETNAME sentinel-0123abcd-cmd", "+OK\r\n");
    return sentinel;
}

REPLICATION_TEST(failover_under_a_sentinel_is_for_the_sentinel_to_order) {
    struct session *replica = connect_replica(h, 7001, REPLICA_ONLINE);
    struct session *watcher = harness_connect(h), *sentinel = connect_sentinel(h);
    r->group = 9;
    (void)harness_run(h, watcher, "SUBSCRIBE __sentinel__:hello");
    harness_expect(h, s, "FAILOVER",
                   "-ERR FAILOVER is refused because a Sentinel watches this server, and would not "
                   "follow. Send it SENTINEL FAILOVER <master name>.\r\n");
    assert_int_equal(r->failover.state, REPLICATION_FAILOVER_NONE);
    harness_expect(h, sentinel, "FAILOVER TO 127.0.0.1 7001 TIMEOUT 1000", "+OK\r\n");
    harness_expect(h, sentinel, "FAILOVER ABORT", "+OK\r\n");
    assert_string_equal(harness_run(h, replica, "REPLCONF HANDOVER"), "");
    assert_int_equal(r->failover.state, REPLICATION_FAILOVER_WAITS);
    assert_int_equal(r->failover.port, 7001);
    assert_int_equal(server_pause(&h->server), SERVER_PAUSE_WRITE);
    pass(h, 1000);
    assert_int_equal(r->failover.state, REPLICATION_FAILOVER_NONE);
    assert_int_equal(r->role, REPLICATION_MASTER);
    harness_expect(h, s, "REPLCONF HANDOVER", "-ERR syntax error\r\n");
}

REPLICATION_TEST(a_sentinels_order_to_be_master_is_passed_on_to_a_master_that_is_there) {
    WITH_REPLICATOR;
    struct session *sentinel = connect_sentinel(h);
    harness_expect(h, s, "REPLICAOF 127.0.0.1 7001", "+OK\r\n");
    r->link = REPLICATION_LINK_CONNECTED;
    r->heard_at_ms = h->server.clock.monotonic_ms;
    harness_expect(h, sentinel, "SLAVEOF NO ONE", "+OK\r\n");
    assert_string_equal(replicator.calls, "follow handover ");
    assert_int_equal(r->role, REPLICATION_REPLICA);
    assert_string_equal(h->server.settings.replicaof_host == NULL ? "" : "set", "");
    pass(h, 999);
    assert_int_equal(r->role, REPLICATION_REPLICA);
    assert_int_equal(replication_failover_due_ms(&h->server), h->server.clock.monotonic_ms + 1);
    pass(h, 1);
    assert_int_equal(r->role, REPLICATION_MASTER);
    assert_int_equal(replication_failover_due_ms(&h->server), INT64_MAX);
}

REPLICATION_TEST(whoever_else_orders_it_or_whose_master_is_gone_is_master_at_once) {
    WITH_REPLICATOR;
    struct session *sentinel = connect_sentinel(h);
    for (int i = 0; i < 3; i++) {
        harness_expect(h, s, "REPLICAOF 127.0.0.1 7001", "+OK\r\n");
        r->link = i == 1 ? REPLICATION_LINK_CONNECT : REPLICATION_LINK_CONNECTED;
        r->heard_at_ms = h->server.clock.monotonic_ms - (i == 2 ? 2001 : 0);
        harness_expect(h, i == 0 ? s : sentinel, "SLAVEOF NO ONE", "+OK\r\n");
        assert_int_equal(r->role, REPLICATION_MASTER);
    }
    assert_null(strstr(replicator.calls, "handover"));
}

/* The link is lost, or another master is named, before the master has handed over. */
REPLICATION_TEST(what_was_passed_on_ends_with_the_link) {
    WITH_REPLICATOR;
    struct session *sentinel = connect_sentinel(h);
    for (int i = 0; i < 2; i++) {
        harness_expect(h, s, i == 0 ? "REPLICAOF 127.0.0.1 7001" : "REPLICAOF 127.0.0.1 7002",
                       "+OK\r\n");
        r->link = REPLICATION_LINK_CONNECTED;
        r->heard_at_ms = h->server.clock.monotonic_ms;
        harness_expect(h, sentinel, "SLAVEOF NO ONE", "+OK\r\n");
        if (i == 0) {
            harness_expect(h, sentinel, "SLAVEOF 127.0.0.1 7001", "+OK\r\n");
            assert_string_equal(h->server.settings.replicaof_host, "127.0.0.1");
            assert_int_equal(replication_failover_due_ms(&h->server), INT64_MAX);
            continue;
        }
        r->link = REPLICATION_LINK_CONNECT;
        replication_failover_step(&h->server, false);
        assert_int_equal(r->role, REPLICATION_MASTER);
    }
}

REPLICATION_TEST(failover_takes_whoever_is_there_first) {
    connect_replica(h, 7001, REPLICA_ONLINE);
    struct session *second = connect_replica(h, 7002, REPLICA_ONLINE);
    r->group = 9;
    harness_expect(h, s, "FAILOVER", "+OK\r\n");
    assert_string_equal(harness_run(h, second, "REPLCONF ACK 9"), "");
    replication_failover_step(&h->server, false);
    harness_expect(h, s, "ROLE", SLAVE("7002", "$7\r\nconnect\r\n"));
}

REPLICATION_TEST(failover_ends_with_its_timeout_or_goes_on_by_force) {
    connect_replica(h, 7001, REPLICA_ONLINE);
    r->group = 9;
    harness_expect(h, s, "FAILOVER TIMEOUT 1000", "+OK\r\n");
    pass(h, 999);
    assert_int_equal(r->failover.state, REPLICATION_FAILOVER_WAITS);
    pass(h, 1);
    assert_int_equal(r->failover.state, REPLICATION_FAILOVER_NONE);
    assert_int_equal(r->role, REPLICATION_MASTER);
    harness_expect(h, s, "FAILOVER", "+OK\r\n");
    harness_expect(h, s, "FAILOVER ABORT", "+OK\r\n");
    assert_int_equal(r->failover.state, REPLICATION_FAILOVER_NONE);
    harness_expect(h, s, "FAILOVER TO 127.0.0.1 7001 FORCE TIMEOUT 1000", "+OK\r\n");
    pass(h, 1000);
    assert_int_equal(r->failover.state, REPLICATION_FAILOVER_SHIFTS);
    assert_int_equal(r->role, REPLICATION_REPLICA);
    replication_failover_end(&h->server, false); /* refused: a master again */
    assert_int_equal(r->failover.state, REPLICATION_FAILOVER_NONE);
    assert_int_equal(r->role, REPLICATION_MASTER);
    harness_expect(h, s, "ZADD a 1 b", ":1\r\n");
}

/* ---- types of clients ---- */

REPLICATION_TEST(replicas_are_clients_of_a_type_of_their_own) {
    struct session *replica = connect_replica(h, 7001, REPLICA_ONLINE);
    struct session *other = harness_connect(h);
    const char *reply = harness_run(h, s, "CLIENT LIST TYPE replica");
    assert_non_null(strstr(reply, "id=2 "));
    assert_non_null(strstr(reply, " flags=S "));
    assert_null(strstr(reply, "id=3 "));
    harness_expect_part(h, s, "CLIENT LIST TYPE SLAVE", "id=2 ");
    assert_null(strstr(harness_run(h, s, "CLIENT LIST TYPE normal"), "id=2 "));
    harness_expect(h, s, "CLIENT LIST TYPE master", "$0\r\n\r\n");
    harness_expect_part(h, s, "INFO clients", "\r\nconnected_clients:2\r\n");
    harness_expect(h, s, "CLIENT KILL TYPE master", ":0\r\n");
    harness_expect(h, s, "CLIENT KILL TYPE normal", ":1\r\n");
    assert_true(other->is_killed && !replica->is_killed);
    harness_expect(h, s, "CLIENT KILL TYPE slave", ":1\r\n");
    assert_true(replica->is_killed);
}

REPLICATION_TEST(killing_the_master_drops_the_link_to_it) {
    WITH_REPLICATOR;
    harness_expect(h, s, "REPLICAOF 127.0.0.1 7001", "+OK\r\n");
    harness_expect(h, s, "CLIENT KILL TYPE master", ":0\r\n");
    r->link = REPLICATION_LINK_CONNECTED;
    harness_expect(h, s, "CLIENT KILL TYPE master ID 7", ":0\r\n");
    assert_string_equal(replicator.calls, "follow ");
    harness_expect(h, s, "CLIENT KILL TYPE master", ":1\r\n");
    assert_string_equal(replicator.calls, "follow drop ");
}

REPLICATION_TEST(what_a_replica_has_unread_counts_for_its_own_limits_alone) {
    struct session *replica = connect_replica(h, 7001, REPLICA_ONLINE);
    session_memory_count(&h->server.sessions.memory, replica);
    assert_int_equal(replica->counted_size, 0);
    assert_ptr_equal(server_output_limit(&h->server, replica),
                     &h->server.settings.output_limits[SETTING_OUTPUT_REPLICA]);
    assert_ptr_equal(server_output_limit(&h->server, s),
                     &h->server.settings.output_limits[SETTING_OUTPUT_NORMAL]);
}

/* ---- what commands ask of the replicator ---- */

REPLICATION_TEST(the_replicator_is_told_in_order) {
    WITH_REPLICATOR;
    harness_expect(h, s, "REPLICAOF 127.0.0.1 7002", "+OK\r\n");
    harness_expect(h, s, "REPLICAOF 127.0.0.1 7002",
                   "+OK Already connected to specified master\r\n");
    harness_expect(h, s, "REPLICAOF NO ONE", "+OK\r\n");
    assert_string_equal(replicator.calls, "follow promote history ");
    replicator.calls[0] = '\0';
    struct session *replica = connect_replica(h, 7001, REPLICA_ONLINE);
    harness_expect(h, s, "FAILOVER", "+OK\r\n");
    replication_failover_step(&h->server, false);
    replication_failover_end(&h->server, false);
    harness_disconnect(h, replica);
    assert_string_equal(replicator.calls, "ask shift promote history leave ");
}

/* The role is the new one at once; the boards are not there until all is applied. */
REPLICATION_TEST(who_still_applies_what_it_received_is_master_without_boards) {
    WITH_REPLICATOR;
    replicator.is_slow = true;
    static const char loading[] = "-LOADING What was received from the master is being applied\r\n";
    char id[REPLICATION_ID_SIZE + 1];
    memcpy(id, r->id, sizeof id);
    harness_expect(h, s, "REPLICAOF 127.0.0.1 7002", "+OK\r\n");
    harness_expect(h, s, "REPLICAOF NO ONE", "+OK\r\n");
    assert_int_equal(replication_keys(r), REPLICATION_KEYS_PROMOTING);
    assert_int_equal(server_pause(&h->server), SERVER_PAUSE_BOARDS);
    assert_string_equal(r->id, id); /* it may still go on where it was */
    harness_expect(h, s, "ZADD b 1 m", loading);
    harness_expect(h, s, "ZCARD b", loading);
    harness_expect(h, s, "PING", "+PONG\r\n");
    harness_expect(h, s, "REPLICAOF NO ONE", "+OK\r\n");
    harness_expect(h, s, "FAILOVER", "-ERR FAILOVER is not valid when server is a replica.\r\n");
    assert_string_equal(replicator.calls, "follow promote ");
    /* Sent back: a replica as before. */
    harness_expect(h, s, "REPLICAOF 127.0.0.1 7002", "+OK\r\n");
    assert_false(r->is_promoting);
    harness_expect(h, s, "ZADD b 1 m",
                   "-READONLY You can't write against a read only replica.\r\n");
    harness_expect(h, s, "REPLICAOF NO ONE", "+OK\r\n");
    replicator.calls[0] = '\0';
    replication_finish_promotion(&h->server);
    replication_finish_promotion(&h->server);
    assert_string_equal(replicator.calls, "finish history ");
    assert_string_equal(r->second_id, id);
    assert_int_equal(server_pause(&h->server), SERVER_PAUSE_NONE);
    harness_expect(h, s, "ZADD b 1 m", ":1\r\n");
}
