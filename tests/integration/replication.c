/* Replicas, as real servers: full copies while boards change, links that break, kills and restarts of
 * either end, chains, promotions; after each, all keys of both are compared to the last bit: scores,
 * times, the order of arrival, options and expiries. */
#include "tests/support/test.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/durability/store.h"
#include "server/system/clock.h"
#include "tests/support/board_pair.h"
#include "tests/support/commands.h"
#include "tests/support/nodes.h"
#include "tests/support/registry_workload.h"
#include "tests/support/tls_peer.h"

enum {
    WAIT_LIMIT_MS = 60000,
    COMMANDS = 3000,
    COMMANDS_SHORT = 500,
    LARGE = 300000,
    LARGE_SHORT = 60000,
    ROUNDS = 30,
    ROUNDS_SHORT = 3,
    WORDS_MAX = 24,
};

static char scratch[DIRECTORY_PATH_MAX];

static const char *const with_journal[] = {"--appendonly", "yes", NULL};
static const char *const with_always[] = {"--appendonly", "yes", "--appendfsync", "always", NULL};
static const char *const without_journal[] = {"--appendonly", "no", NULL};

static int set_up(void **state) {
    directory_make(scratch);
    commands_begin("replication");
    return nodes_set_up(state);
}

static int tear_down(void **state) {
    directory_remove(scratch);
    return nodes_tear_down(state);
}

#define IN_FIXTURE(name) TEST_WITH(name, set_up, tear_down)

/* ---- replication ---- */

/* ---- what a node holds ---- */

static struct registry *copy_of(struct node *node, const char *name) {
    return commands_copy(&node->server, formatted("%s/%s", scratch, name));
}

/* Nobody writes meanwhile. But keys expire when their time has come: then what was copied of the two is not
 * of the same group, and they are copied once more. */
static void check_equal(struct node *node, struct node *master) {
    int64_t give_up_at = process_now_ms() + WAIT_LIMIT_MS;
    for (;;) {
        node_wait_synced(node, master);
        int64_t group = wire_info(&master->wire, "master_repl_offset");
        struct registry *wanted = copy_of(master, "master");
        struct registry *found = copy_of(node, "node");
        bool is_same_group = wire_info(&node->wire, "slave_repl_offset") == group &&
                             wire_info(&master->wire, "master_repl_offset") == group;
        if (is_same_group) {
            workload_assert_equal(wanted, found);
        }
        registry_destroy(wanted);
        registry_destroy(found);
        if (is_same_group) {
            return;
        }
        print_message("a key has expired meanwhile: copied once more\n");
        assert_true(process_now_ms() < give_up_at);
    }
}

/* ---- writing ---- */

static int commands_count(void) {
    return (int)test_rounds(COMMANDS, COMMANDS_SHORT);
}

static int large(void) {
    return is_short_run() ? LARGE_SHORT : LARGE;
}

/* ---- copies ---- */

IN_FIXTURE(a_replica_gets_a_full_copy_and_all_that_follows) {
    node_start(MASTER, with_journal);
    node_start(REPLICA, with_journal);
    commands_make_kinds(&MASTER->wire);
    commands_write(&MASTER->wire, commands_count());
    wire_check_prefix(&REPLICA->wire, "ZADD own 1 lost", ":");
    node_follow(REPLICA, MASTER);
    node_wait_up(REPLICA);
    wire_check(&REPLICA->wire, "EXISTS own", ":0");
    check_equal(REPLICA, MASTER);
    for (int i = 0; i < 5; i++) {
        commands_write(&MASTER->wire, commands_count() / 5);
        check_equal(REPLICA, MASTER);
    }
    assert_int_equal(wire_info(&MASTER->wire, "sync_full"), 1);
}

IN_FIXTURE(without_a_journal_groups_are_numbered_too) {
    node_start(MASTER, without_journal);
    node_start(REPLICA, without_journal);
    commands_make_kinds(&MASTER->wire);
    node_follow(REPLICA, MASTER);
    node_wait_up(REPLICA);
    commands_write(&MASTER->wire, commands_count());
    check_equal(REPLICA, MASTER);
    wire_check(&REPLICA->wire, "CLIENT KILL TYPE master", ":1");
    commands_write(&MASTER->wire, commands_count());
    check_equal(REPLICA, MASTER);
    assert_int_equal(wire_info(&MASTER->wire, "sync_full"), 1);
    assert_int_equal(wire_info(&MASTER->wire, "sync_partial_ok"), 1);
}

/* The promoted server had no replicas, and no journal: what the third one lacks is in the memory that it keeps. */
IN_FIXTURE(who_lags_behind_a_promoted_server_without_a_journal_goes_on) {
    node_start(MASTER, without_journal);
    node_start(REPLICA, without_journal);
    node_start(THIRD, without_journal);
    commands_make_kinds(&MASTER->wire);
    node_follow(REPLICA, MASTER);
    node_follow(THIRD, MASTER);
    node_wait_synced(REPLICA, MASTER);
    node_wait_synced(THIRD, MASTER);
    wire_check(&THIRD->wire, "REPLICAOF 127.0.0.1 1", "OK");
    commands_write(&MASTER->wire, commands_count());
    node_wait_synced(REPLICA, MASTER);
    wire_check(&REPLICA->wire, "CONFIG SET repl-backlog-ttl 1", "OK");
    process_sleep_ms(2100);
    wire_check(&REPLICA->wire, "CONFIG SET repl-backlog-ttl 60", "OK");
    node_end(MASTER, SIGKILL);
    wire_check(&REPLICA->wire, "REPLICAOF NO ONE", "OK");
    commands_write(&REPLICA->wire, commands_count());
    node_follow(THIRD, REPLICA);
    check_equal(THIRD, REPLICA);
    assert_int_equal(wire_info(&REPLICA->wire, "sync_full"), 0);
    assert_int_equal(wire_info(&REPLICA->wire, "sync_partial_ok"), 1);
}

IN_FIXTURE(boards_change_while_the_copy_is_sent_and_loaded) {
    node_start(MASTER, with_journal);
    node_start(REPLICA, with_journal);
    node_start(THIRD, without_journal);
    commands_make_kinds(&MASTER->wire);
    node_fill(MASTER, "big", large());
    node_follow(REPLICA, MASTER);
    node_follow(THIRD, MASTER);
    for (int i = 0; i < 200; i++) {
        commands_write(&MASTER->wire, 20);
        wire_check_prefix(&MASTER->wire, "ZADD big XX 5 m5 6 m60 7 m700", ":");
        wire_check_prefix(&MASTER->wire, "ZREMRANGEBYRANK big 10 12", ":");
    }
    check_equal(REPLICA, MASTER);
    check_equal(THIRD, MASTER);
}

/* ---- links ---- */

IN_FIXTURE(a_link_that_breaks_goes_on_where_it_was) {
    nodes_start_pair(with_journal, with_journal);
    for (int i = 0; i < 10; i++) {
        commands_write(&MASTER->wire, 100);
        wire_check(&MASTER->wire, "CLIENT KILL TYPE replica", ":1");
        commands_write(&MASTER->wire, 100);
        node_wait_synced(REPLICA, MASTER);
    }
    check_equal(REPLICA, MASTER);
    assert_int_equal(wire_info(&MASTER->wire, "sync_full"), 1);
    assert_true(wire_info(&MASTER->wire, "sync_partial_ok") >= 10);
}

/* With a journal, before and after, it needs no copy. */
IN_FIXTURE(a_replica_that_was_killed_goes_on_where_its_files_end) {
    enum { WITH_JOURNAL = 4 };
    static const char *const appendonly[] = {"yes", "yes", "yes", "yes", "no", "no", "yes"};
    node_start(MASTER, with_journal);
    node_start(REPLICA, with_journal);
    node_follow(REPLICA, MASTER);
    commands_write(&MASTER->wire, commands_count());
    node_wait_synced(REPLICA, MASTER);
    for (size_t i = 0; i < COUNT_OF(appendonly); i++) {
        const char *address = formatted("127.0.0.1 %u", MASTER->port);
        const char *const words[] = {"--appendonly", appendonly[i], "--replicaof", address, NULL};
        node_end(REPLICA, i % 2 == 0 || i >= WITH_JOURNAL ? SIGKILL : SIGTERM);
        commands_write(&MASTER->wire, 200);
        node_start(REPLICA, words);
        commands_write(&MASTER->wire, 200);
        check_equal(REPLICA, MASTER);
        assert_true(i >= WITH_JOURNAL || wire_info(&MASTER->wire, "sync_full") == 1);
    }
}

/* ---- saving while changes are applied ---- */

/* The base that the manifest names. */
static struct registry *read_base(const struct node *node) {
    struct store_state state;
    char reason[DISK_ERROR_MAX], path[2 * DIRECTORY_PATH_MAX];
    int fd = open(formatted("%s/appendonlydir", node->directory), O_RDONLY | O_DIRECTORY);
    assert_int_equal(store_read_manifest(fd, &state, reason), STORE_OK);
    close(fd);
    snprintf(path, sizeof path, "%s/appendonlydir/%s", node->directory,
             store_name(STORE_BASE, state.base_number).text);
    return commands_read_copy(path);
}

struct long_boards {
    uint32_t members; /* of each */
    uint32_t count;
};

static void check_long_board(void *context, const struct registry_key *key) {
    struct long_boards *boards = context;
    struct bytes name = registry_name(key);
    if (name.size > 4 && memcmp(name.at, "long", 4) == 0) {
        assert_int_equal(board_count(&key->board), boards->members);
        boards->count++;
    }
}

/* Each board comes by one long change. SAVE is asked for again and again while the replica applies it. */
static void save_within(const char *appendonly, int members) {
    enum { SAVES = 5 };
    char address[32] = "no one";
    uint32_t saves = test_rounds(SAVES, SAVES);
    const char *const words[] = {"--appendonly",        appendonly, "--replicaof", address,
                                 "--repl-backlog-size", "256mb",    NULL};
    struct long_boards boards = {.members = (uint32_t)members};
    int rounds = is_short_run() ? ROUNDS_SHORT : ROUNDS;
    node_start(MASTER, words);
    snprintf(address, sizeof address, "127.0.0.1 %u", MASTER->port);
    node_start(REPLICA, words);
    node_wait_up(REPLICA);
    node_fill(MASTER, "filled", members);
    for (int i = 0; i < rounds; i++) {
        wire_send_text(&MASTER->wire, formatted("ZUNIONSTORE long%d 1 filled\r\nPING\r\n", i));
        for (uint32_t k = 0; k < saves; k++) {
            wire_check(&REPLICA->wire, "SAVE", "OK");
            struct registry *registry = read_base(REPLICA);
            boards.count = 0;
            registry_walk_each(registry, 0, INT64_MIN, check_long_board, &boards);
            assert_true(boards.count + 1 >= (uint32_t)i);
            registry_destroy(registry);
        }
        (void)wire_reply(&MASTER->wire);
        (void)wire_reply(&MASTER->wire);
        if (i % 3 == 2) {
            node_end(REPLICA, SIGKILL);
            node_start(REPLICA, words);
            node_wait_up(REPLICA);
        }
        node_wait_synced(REPLICA, MASTER);
    }
    check_equal(REPLICA, MASTER);
    assert_int_equal(wire_info(&MASTER->wire, "sync_full"), 1);
}

IN_FIXTURE(a_save_within_a_long_group_is_of_whole_groups) {
    save_within("yes", 20000);
}

IN_FIXTURE(a_save_within_linked_groups_ends_and_is_of_whole_ones) {
    save_within("yes", 100000);
}

IN_FIXTURE(a_save_without_a_journal_is_of_whole_groups) {
    save_within("no", 100000);
}

/* ---- a full disk ---- */

/* No file of this process gets longer than this from now on: to it, the disk is full. */
static void limit_files(const struct node *node, rlim_t size_max) {
    struct rlimit limit;
    assert_int_equal(prlimit(node->server.pid, RLIMIT_FSIZE, NULL, &limit), 0);
    limit.rlim_cur = size_max;
    assert_int_equal(prlimit(node->server.pid, RLIMIT_FSIZE, &limit, NULL), 0);
}

IN_FIXTURE(a_replica_with_a_full_disk_gathers_no_more_than_its_limit_and_goes_on) {
    enum { MEBIBYTE = 1024 * 1024, VALUE = 16384, VALUES = 10000, KEYS = 100, GATHERED_MAX = 100 };
    static char value[VALUE + 1];
    const char *const words[] = {"--appendonly",
                                 "yes",
                                 "--repl-backlog-size",
                                 "512mb",
                                 "--auto-aof-rewrite-percentage",
                                 "0",
                                 NULL};
    nodes_start_pair(words, words);
    memset(value, 'v', VALUE);
    int64_t before = wire_info(&REPLICA->wire, "used_memory");
    limit_files(REPLICA, 8 * MEBIBYTE);
    for (int i = 0; i < VALUES; i++) { /* 160 MiB of short groups */
        struct text text = {0};
        text_command(&text, "HSET h%d f %s", i % KEYS, value);
        wire_send(&MASTER->wire, text.at, text.size);
        text_free(&text);
        (void)wire_reply(&MASTER->wire);
    }
    WAIT_UNTIL(wire_info(&REPLICA->wire, "aof_buffer_length") >= 60 * MEBIBYTE);
    for (int i = 0; i < (is_short_run() ? 10 : 150); i++) { /* longer than repl-timeout */
        assert_true(wire_info(&REPLICA->wire, "aof_buffer_length") < 70 * MEBIBYTE);
        process_sleep_ms(100);
    }
    int64_t gathered = wire_info(&REPLICA->wire, "used_memory") - before;
    assert_in_range(gathered, 8 * MEBIBYTE, GATHERED_MAX * MEBIBYTE);
    wire_check(&REPLICA->wire, "PING", "PONG");
    limit_files(REPLICA, RLIM_INFINITY);
    check_equal(REPLICA, MASTER);
    assert_int_equal(wire_info(&MASTER->wire, "sync_full"), 1);
    node_end(REPLICA, SIGKILL);
    node_start(REPLICA, words);
    node_follow(REPLICA, MASTER);
    check_equal(REPLICA, MASTER);
}

IN_FIXTURE(a_save_in_the_tick_of_a_lifes_first_change_names_its_history) {
    nodes_start_pair(without_journal, without_journal); /* so there is a history to be named */
    wire_check(&MASTER->wire, "ZADD a 1 x", ":1");
    wire_check(&MASTER->wire, "SAVE", "OK");
    node_end(MASTER, SIGKILL);
    node_start(MASTER, without_journal);
    const char *id = formatted("%s", node_master_id(MASTER));
    wire_send_text(&MASTER->wire, "ZADD a 2 x\r\nSAVE\r\n");
    assert_string_equal(wire_reply(&MASTER->wire), ":0");
    assert_string_equal(wire_reply(&MASTER->wire), "OK");
    node_end(MASTER, SIGKILL);
    node_start(MASTER, without_journal);
    assert_non_null(
        strstr(wire_ask(&MASTER->wire, "INFO replication"), formatted("master_replid2:%s", id)));
}

IN_FIXTURE(a_master_that_was_killed_comes_back_with_another_id) {
    char id[64];
    node_start(MASTER, with_always);
    node_start(REPLICA, with_journal);
    node_follow(REPLICA, MASTER);
    for (int i = 0; i < 4; i++) {
        commands_write(&MASTER->wire, 300);
        node_wait_synced(REPLICA, MASTER);
        snprintf(id, sizeof id, "%s", node_master_id(MASTER));
        node_end(MASTER, i % 2 == 0 ? SIGKILL : SIGTERM);
        node_start(MASTER, with_always);
        assert_string_not_equal(id, node_master_id(MASTER));
        commands_write(&MASTER->wire, 300);
        check_equal(REPLICA, MASTER);
        assert_int_equal(wire_info(&MASTER->wire, "sync_full"), 0);
    }
}

IN_FIXTURE(replicas_of_replicas_get_the_same) {
    node_start(MASTER, with_journal);
    node_start(REPLICA, without_journal);
    node_start(THIRD, with_journal);
    commands_make_kinds(&MASTER->wire);
    commands_write(&MASTER->wire, commands_count());
    node_follow(REPLICA, MASTER);
    node_wait_up(REPLICA);
    node_follow(THIRD, REPLICA);
    node_wait_up(THIRD);
    commands_write(&MASTER->wire, commands_count());
    check_equal(REPLICA, MASTER);
    check_equal(THIRD, MASTER);
    wire_check(&REPLICA->wire, "CLIENT KILL TYPE master", ":1");
    commands_write(&MASTER->wire, 200);
    node_wait_synced(REPLICA, MASTER);
    check_equal(THIRD, MASTER);
}

/* Two histories of the same length: nothing but the keys tells them apart. */
IN_FIXTURE(a_copy_that_ends_with_the_same_number_reaches_replicas_of_replicas) {
    node_start(MASTER, with_journal);
    node_start(REPLICA, with_journal);
    node_start(THIRD, with_journal);
    node_follow(THIRD, MASTER); /* it has a history from now on */
    node_wait_up(THIRD);
    wire_check(&REPLICA->wire, "ZADD old 1 m", ":1");
    node_follow(THIRD, REPLICA);
    node_wait_synced(THIRD, REPLICA);
    for (int64_t i = 0, wanted = wire_info(&REPLICA->wire, "master_repl_offset") + 3;; i++) {
        int64_t ours = wire_info(&MASTER->wire, "master_repl_offset");
        int64_t theirs = wire_info(&REPLICA->wire, "master_repl_offset");
        if (ours == wanted && theirs == wanted) {
            break;
        }
        assert_true(ours <= wanted && theirs <= wanted);
        wire_check_prefix(ours < wanted ? &MASTER->wire : &REPLICA->wire,
                          formatted("ZADD %s %d m", ours < wanted ? "new" : "old", (int)i), ":");
    }
    node_wait_synced(THIRD, REPLICA);
    node_follow(REPLICA, MASTER);
    node_wait_synced(REPLICA, MASTER);
    wire_check(&REPLICA->wire, "EXISTS new old", ":1");
    int64_t give_up_at = process_now_ms() + WAIT_LIMIT_MS / 4;
    while (wire_ask_integer(&THIRD->wire, "EXISTS new") == 0) {
        if (process_now_ms() > give_up_at) {
            fail_msg("it has other keys than its master: %s",
                     wire_ask(&THIRD->wire, "INFO replication"));
        }
        process_sleep_ms(5);
    }
    check_equal(THIRD, MASTER);
}

/* ---- roles ---- */

IN_FIXTURE(a_promoted_replica_keeps_everything_and_its_siblings_go_on) {
    node_start(MASTER, with_journal);
    node_start(REPLICA, with_journal);
    node_start(THIRD, with_journal);
    node_follow(REPLICA, MASTER);
    node_follow(THIRD, MASTER);
    commands_write(&MASTER->wire, commands_count());
    node_wait_synced(REPLICA, MASTER);
    node_wait_synced(THIRD, MASTER);
    node_end(MASTER, SIGKILL);
    wire_check(&REPLICA->wire, "REPLICAOF NO ONE", "OK");
    commands_write(&REPLICA->wire, 300);
    node_follow(THIRD, REPLICA);
    check_equal(THIRD, REPLICA);
    assert_int_equal(wire_info(&REPLICA->wire, "sync_full"), 0);
    node_start(MASTER, with_journal);
    node_follow(MASTER, REPLICA);
    commands_write(&REPLICA->wire, 300);
    check_equal(MASTER, REPLICA);
    assert_int_equal(wire_info(&REPLICA->wire, "sync_full"), 0);
}

static void check_planned_failovers(const char *const *words) {
    node_start(MASTER, words);
    node_start(REPLICA, words);
    node_follow(REPLICA, MASTER);
    commands_write(&MASTER->wire, 300);
    node_wait_synced(REPLICA, MASTER);
    for (int i = 0; i < 4; i++) {
        struct node *from = i % 2 == 0 ? MASTER : REPLICA;
        struct node *to = i % 2 == 0 ? REPLICA : MASTER;
        wire_check(&from->wire, formatted("FAILOVER TO 127.0.0.1 %u TIMEOUT 20000", to->port),
                   "OK");
        node_wait_up(from);
        commands_write(&to->wire, 100);
        check_equal(from, to);
    }
    assert_int_equal(wire_info(&MASTER->wire, "sync_full"), 1);
    assert_int_equal(wire_info(&REPLICA->wire, "sync_full"), 0);
}

IN_FIXTURE(a_failover_that_was_planned_copies_nothing) {
    check_planned_failovers(with_journal);
}

IN_FIXTURE(a_failover_that_was_planned_copies_nothing_without_a_journal_either) {
    check_planned_failovers(without_journal);
}

IN_FIXTURE(what_only_the_old_master_had_is_gone_when_it_follows) {
    node_start(MASTER, with_journal);
    node_start(REPLICA, with_journal);
    node_follow(REPLICA, MASTER);
    commands_write(&MASTER->wire, 300);
    node_wait_synced(REPLICA, MASTER);
    wire_check(&REPLICA->wire, "REPLICAOF NO ONE", "OK");
    wire_check(&MASTER->wire, "ZADD split 1 old", ":1");
    wire_check(&REPLICA->wire, "ZADD split 1 new", ":1");
    node_follow(MASTER, REPLICA);
    check_equal(MASTER, REPLICA);
    wire_check(&MASTER->wire, "ZRANGE split 0 -1", "[new]");
    assert_int_equal(wire_info(&REPLICA->wire, "sync_full"), 1);
}

IN_FIXTURE(keys_expire_and_boards_roll_only_when_the_master_says_so) {
    nodes_start_pair(with_journal, with_journal);
    wire_check(&MASTER->wire, "ZADD short 1 a", ":1");
    wire_check(&MASTER->wire, "PEXPIRE short 2000", ":1");
    node_wait_synced(REPLICA, MASTER);
    process_signal(&MASTER->server, SIGSTOP);
    WAIT_UNTIL(wire_ask_integer(&REPLICA->wire, "EXISTS short") == 0); /* by the master's clock */
    wire_check(&REPLICA->wire, "DBSIZE", ":1");                        /* but it is there */
    process_signal(&MASTER->server, SIGCONT);
    check_equal(REPLICA, MASTER);
    wire_check(&REPLICA->wire, "DBSIZE", ":0");
}

/* ---- refusals ---- */

IN_FIXTURE(a_wrong_password_is_told_and_the_right_one_heals) {
    const char *const all[] = {"--requirepass", "secret", NULL};
    node_start(REPLICA, with_journal);
    const struct process_options options = {.directory = MASTER->directory, .arguments = all};
    assert_true(process_start(&MASTER->server, &options));
    MASTER->port = MASTER->server.port;
    MASTER->is_running = true;
    MASTER->wire = wire_open(process_connect_unix(&MASTER->server));
    wire_check(&MASTER->wire, "AUTH secret", "OK");
    node_follow(REPLICA, MASTER);
    WAIT_UNTIL(strstr(wire_ask(&REPLICA->wire, "INFO replication"), "NOAUTH") != NULL);
    assert_false(node_is_up(REPLICA));
    wire_check(&REPLICA->wire, "CONFIG SET masterauth wrong", "OK");
    WAIT_UNTIL(strstr(wire_ask(&REPLICA->wire, "INFO replication"), "WRONGPASS") != NULL);
    assert_false(node_is_up(REPLICA));
    wire_check(&REPLICA->wire, "CONFIG SET masterauth secret", "OK");
    node_wait_up(REPLICA);
}

/* The link is a client that shows its certificate, and the certificate of the master must be of the same
 * authority. */
/* Both nodes with TLS in both directions, and the master with this certificate. */
static void start_encrypted(const struct tls_files *files, const char *certificate_name) {
    for (int i = 0; i < 2; i++) {
        char certificate[300], key[300], authority[300];
        const char *name = &nodes[i] == MASTER ? certificate_name : "server";
        snprintf(certificate, sizeof certificate, "%s/%s.crt", files->path, name);
        snprintf(key, sizeof key, "%s/%s.key", files->path, name);
        snprintf(authority, sizeof authority, "%s/ca.crt", files->path);
        const char *const words[] = {"--repl-timeout",
                                     "10",
                                     "--tls-cert-file",
                                     certificate,
                                     "--tls-key-file",
                                     key,
                                     "--tls-ca-cert-file",
                                     authority,
                                     "--tls-auth-clients",
                                     "yes",
                                     "--tls-replication",
                                     "yes",
                                     "--io-threads",
                                     "2",
                                     NULL};
        const struct process_options options = {
            .directory = nodes[i].directory, .arguments = words, .has_tls = true};
        assert_true(process_start(&nodes[i].server, &options));
        nodes[i].port = nodes[i].server.port;
        nodes[i].is_running = true;
        node_connect(&nodes[i]);
    }
}

static void follow_host(const char *host) {
    const char *command = formatted("REPLICAOF %s %u", host, MASTER->port);
    wire_check(&REPLICA->wire, "REPLICAOF NO ONE", "OK");
    wire_check(&REPLICA->wire, command, "OK");
}

static void wait_for_link_error(const char *error) {
    int64_t give_up_at = process_now_ms() + WAIT_LIMIT_MS;
    const char *info = wire_ask(&REPLICA->wire, "INFO replication");
    while (strstr(info, error) == NULL && process_now_ms() < give_up_at) {
        process_sleep_ms(10);
        info = wire_ask(&REPLICA->wire, "INFO replication");
    }
    assert_non_null(strstr(info, error));
    assert_non_null(strstr(info, "master_link_status:down"));
}

/* A certificate of the same authority may be anybody's, a client's for instance. */
IN_FIXTURE(a_certificate_must_name_the_master_s_host) {
    static const char mismatch[] = "the certificate does not name the host";
    struct tls_files files;
    tls_files_make(&files);
    tls_files_sign(&files, "client", "client", -1);
    start_encrypted(&files, "client");
    commands_make_kinds(&MASTER->wire);
    wire_check(&REPLICA->wire, "ZADD mine 1 ann", ":1");
    follow_host("127.0.0.1");
    wait_for_link_error(mismatch);
    follow_host("localhost");
    wait_for_link_error(mismatch);
    wire_check(&REPLICA->wire, "ZCARD mine", ":1");
    wire_check(&REPLICA->wire, "CONFIG SET tls-replication-verify-name no", "OK");
    check_equal(REPLICA, MASTER);
    tls_files_remove(&files);
}

IN_FIXTURE(a_link_may_be_encrypted) {
    struct tls_files files;
    tls_files_make(&files);
    start_encrypted(&files, "server");
    follow_host("localhost");
    node_wait_up(REPLICA);
    commands_make_kinds(&MASTER->wire);
    node_fill(MASTER, "big", LARGE_SHORT);
    node_follow(REPLICA, MASTER);
    commands_write(&MASTER->wire, 300);
    check_equal(REPLICA, MASTER);
    wire_check(&REPLICA->wire, "CLIENT KILL TYPE master", ":1");
    commands_write(&MASTER->wire, 300);
    check_equal(REPLICA, MASTER);
    assert_int_equal(wire_info(&MASTER->wire, "sync_full"), 1);
    tls_files_remove(&files);
}

IN_FIXTURE(a_replica_that_reads_too_slowly_is_closed_and_comes_again) {
    const char *const words[] = {
        "--appendonly",      "no", "--repl-backlog-size", "1mb", "--client-output-buffer-limit",
        "replica 4mb 2mb 5", NULL};
    nodes_start_pair(words, without_journal);
    process_signal(&REPLICA->server, SIGSTOP);
    for (int i = 0; i < 12; i++) {
        node_fill(MASTER, formatted("slow%d", i), LARGE_SHORT);
    }
    wire_wait_info(&MASTER->wire, "connected_slaves", 0);
    process_signal(&REPLICA->server, SIGCONT);
    check_equal(REPLICA, MASTER);
}

/* What is put into its output as it reads is no backlog of its own making: pieces of a copy, and a
 * group, are longer than the limit. */
IN_FIXTURE(a_limit_below_one_piece_of_a_copy_lets_copies_and_groups_through) {
    enum { VALUE_SIZE = 3 << 20, STOPPED_MS = 2500 };
    const char *const words[] = {"--appendonly", "no", "--client-output-buffer-limit",
                                 "replica 16kb 8kb 1", NULL};
    struct text request = {.size = 0};
    node_start(MASTER, words);
    node_start(REPLICA, without_journal);
    for (int i = 0; i < 8; i++) {
        node_fill(MASTER, formatted("big%d", i), LARGE_SHORT);
    }
    node_follow(REPLICA, MASTER);
    wire_wait_info(&MASTER->wire, "connected_slaves", 1);
    process_signal(&REPLICA->server, SIGSTOP);
    process_sleep_ms(STOPPED_MS);
    process_signal(&REPLICA->server, SIGCONT);
    check_equal(REPLICA, MASTER);
    char *value = malloc(VALUE_SIZE);
    assert_non_null(value);
    memset(value, 'v', VALUE_SIZE);
    const char *const hset[] = {"HSET", "hash", "field", value};
    const size_t sizes[] = {4, 4, 5, VALUE_SIZE};
    text_command_words(&request, hset, sizes, 4);
    free(value);
    wire_send(&MASTER->wire, request.at, request.size);
    wire_expect(&MASTER->wire, ":1\r\n");
    check_equal(REPLICA, MASTER);
    assert_int_equal(wire_info(&MASTER->wire, "sync_full"), 1);
    assert_int_equal(wire_info(&MASTER->wire, "sync_partial_ok"), 0);
    text_free(&request);
}

/* Each reply is waited for, so that every write is a group of its own, and several fall into one
 * millisecond. The end is of the same turn as the last one. */
IN_FIXTURE(what_a_master_answers_last_before_it_ends_is_on_its_replica) {
    enum { WRITES = 40 };
    int count = 0;
    node_start(MASTER, with_journal);
    node_start(REPLICA, without_journal);
    node_follow(REPLICA, MASTER);
    for (int i = 0; i < (is_short_run() ? 6 : 18); i++) {
        static const char *const ends[] = {"", "SHUTDOWN\r\n", "SHUTDOWN NOW\r\n"};
        const char *end = ends[i % 3];
        node_wait_synced(REPLICA, MASTER);
        for (int k = 0; k < WRITES; k++) {
            wire_check(&MASTER->wire, formatted("ZADD last %d m%d", k, count++), ":1");
        }
        wire_send_text(&MASTER->wire, formatted("ZADD last 1 m%d\r\n%s", count++, end));
        wire_expect(&MASTER->wire, ":1\r\n");
        if (end[0] == '\0') {
            node_end(MASTER, SIGTERM);
        } else {
            assert_true(process_wait(&MASTER->server, PROCESS_STOP_LIMIT_MS));
            wire_close(&MASTER->wire);
            MASTER->is_running = false;
        }
        int64_t give_up_at = process_now_ms() + WAIT_LIMIT_MS;
        while (node_is_up(REPLICA) && process_now_ms() < give_up_at) {
            process_sleep_ms(2);
        }
        assert_int_equal(wire_ask_integer(&REPLICA->wire, "ZCARD last"), count);
        node_start(MASTER, with_journal);
    }
}

static const char *const with_short_backlog[] = {"--appendonly",
                                                 "yes",
                                                 "--repl-backlog-size",
                                                 "16kb",
                                                 "--auto-aof-rewrite-percentage",
                                                 "0",
                                                 "--client-output-buffer-limit",
                                                 "replica 4mb 2mb 5",
                                                 NULL};

/* The replica is not there, or does not read, while more is written than the backlog holds. */
IN_FIXTURE(behind_the_backlog_is_the_journal) {
    char address[32];
    node_start(MASTER, with_short_backlog);
    node_start(REPLICA, with_journal);
    commands_make_kinds(&MASTER->wire);
    node_follow(REPLICA, MASTER);
    node_wait_synced(REPLICA, MASTER);
    snprintf(address, sizeof address, "127.0.0.1 %u", MASTER->port);
    const char *const words[] = {"--appendonly", "yes", "--replicaof", address, NULL};
    node_end(REPLICA, SIGKILL);
    for (int i = 0; i < 20; i++) {
        commands_write(&MASTER->wire, 100);
        node_fill(MASTER, "long", 5000);
    }
    node_start(REPLICA, words);
    commands_write(&MASTER->wire, 200);
    check_equal(REPLICA, MASTER);
    process_signal(&REPLICA->server, SIGSTOP);
    for (int i = 0; i < 12; i++) {
        node_fill(MASTER, formatted("slow%d", i), LARGE_SHORT);
    }
    process_signal(&REPLICA->server, SIGCONT);
    check_equal(REPLICA, MASTER);
    assert_int_equal(wire_info(&MASTER->wire, "sync_full"), 1);
    assert_true(wire_info(&MASTER->wire, "sync_partial_ok") >= 1);
}

/* What was rewritten is no journal any more: only a copy helps. */
IN_FIXTURE(behind_the_journal_is_a_full_copy) {
    node_start(MASTER, with_short_backlog);
    node_start(REPLICA, with_journal);
    node_follow(REPLICA, MASTER);
    node_wait_synced(REPLICA, MASTER);
    const char *address = formatted("127.0.0.1 %u", MASTER->port);
    const char *const words[] = {"--appendonly", "yes", "--replicaof", address, NULL};
    node_end(REPLICA, SIGTERM);
    node_fill(MASTER, "long", LARGE_SHORT);
    (void)wire_ask(&MASTER->wire, "BGREWRITEAOF");
    wire_wait_info(&MASTER->wire, "aof_rewrite_in_progress", 0);
    node_fill(MASTER, "more", LARGE_SHORT);
    node_start(REPLICA, words);
    commands_write(&MASTER->wire, 200);
    check_equal(REPLICA, MASTER);
    assert_int_equal(wire_info(&MASTER->wire, "sync_full"), 2);
    assert_int_equal(wire_info(&MASTER->wire, "sync_partial_err"), 1);
}

/* ---- contests ---- */

/* Members with these names: "ZADD" in pieces of a thousand. */
static void fill_at(struct node *node, const char *name, int count, const char *at) {
    TEXT(text);
    for (int i = 0; i < count; i += 1000) {
        text_format(&text, "*2004\r\n$6\r\nLB.ADD\r\n$1\r\nk\r\n$2\r\nAT\r\n$%zu\r\n%s\r\n",
                    strlen(at), at);
        for (int j = i; j < i + 1000; j++) {
            text_format(&text, "$4\r\n%04d\r\n$%zu\r\n%s%06d\r\n", j * 7 % 1000, strlen(name) + 6,
                        name, j);
        }
        wire_send(&node->wire, text.at, text.size);
        text.size = 0;
        (void)wire_reply(&node->wire);
    }
}

IN_FIXTURE(who_is_stale_and_what_is_settled_is_the_same_on_every_copy) {
    enum { FRESH = 20000, OLD = 40000 };
    nodes_start_pair(with_journal, with_journal);
    wire_check(&MASTER->wire, "LB.CREATE k FIELD a 20 TIME 42 MS SETTLE YES", "OK");
    fill_at(MASTER, "old", OLD, "1700000000000");
    fill_at(MASTER, "new", FRESH, formatted("%lld", (long long)time(NULL) * 1000));
    wire_check(&MASTER->wire, "LB.ALTER k STALE 1 HOUR", "OK");
    /* Some have left when the master dies, and the rest leaves when it is back. */
    WAIT_UNTIL(wire_info(&MASTER->wire, "stale_members") > 0);
    node_end(MASTER, SIGKILL);
    node_start(MASTER, with_journal);
    WAIT_UNTIL(strcmp(wire_ask(&MASTER->wire, "ZCARD k"), formatted(":%d", FRESH)) == 0);
    node_wait_synced(REPLICA, MASTER);
    check_equal(REPLICA, MASTER);
    wire_check(&MASTER->wire, "LB.ROLL k kept EX 1000", formatted(":%d", FRESH));
    wire_check(&MASTER->wire, "ZADD k 5 ann", ":1");
    wire_check(&MASTER->wire, "LB.ROLL k paid EX 1000", ":1");
    wire_check(&MASTER->wire, "LB.SETTLE paid", ":1");
    node_end(MASTER, SIGKILL);
    node_start(MASTER, with_journal);
    wire_check(&MASTER->wire, "LB.SETTLE paid", ":0");
    node_wait_synced(REPLICA, MASTER);
    check_equal(REPLICA, MASTER);
    /* And after a failover. */
    wire_check(&MASTER->wire, formatted("FAILOVER TO 127.0.0.1 %u TIMEOUT 20000", REPLICA->port),
               "OK");
    node_wait_up(MASTER);
    wire_check(&REPLICA->wire, "TTL kept", ":-1");
    wire_check(&REPLICA->wire, "LB.SETTLE paid", ":0");
    wire_check(&REPLICA->wire, "LB.SETTLE kept", ":1");
    assert_int_equal(wire_info(&REPLICA->wire, "unsettled_archives"), 0);
    node_wait_synced(MASTER, REPLICA);
    wire_check(&MASTER->wire, "LB.LIST UNSETTLED", "[0 []]");
    check_equal(MASTER, REPLICA);
}

IN_FIXTURE(ids_of_results_outlive_a_failover) {
    node_start(MASTER, with_journal);
    node_start(REPLICA, with_journal);
    wire_check(&MASTER->wire, "LB.ADD board ONCE a HSET run:* 1 id a INCR 1 ann", ":1");
    node_follow(REPLICA, MASTER); /* a full copy, then groups */
    node_wait_up(REPLICA);
    wire_check(&MASTER->wire, "LB.ADD board ONCE b INCR 1 ann", ":1");
    node_wait_synced(REPLICA, MASTER);
    assert_int_equal(wire_info(&REPLICA->wire, "once_ids"), 2);
    wire_check(&MASTER->wire, formatted("FAILOVER TO 127.0.0.1 %u TIMEOUT 20000", REPLICA->port),
               "OK");
    WAIT_UNTIL(strstr(wire_ask(&REPLICA->wire, "ROLE"), "master") != NULL);
    node_wait_up(MASTER);
    wire_check(&REPLICA->wire, "LB.ADD board ONCE a INCR 1 ann", ":0");
    wire_check(&REPLICA->wire, "LB.ADD board ONCE b INCR 1 ann", ":0");
    wire_check(&REPLICA->wire, "LB.ADD board ONCE c INCR 1 ann", ":1");
    node_wait_synced(MASTER, REPLICA);
    wire_check(&MASTER->wire, "ZSCORE board ann", "3");
    wire_check(&MASTER->wire, "HGET run:ann id", "a");
    /* They are forgotten everywhere. */
    wire_check(&REPLICA->wire, "CONFIG SET once-window 1", "OK");
    WAIT_UNTIL(wire_info(&REPLICA->wire, "once_ids") == 0);
    node_wait_synced(MASTER, REPLICA);
    assert_int_equal(wire_info(&MASTER->wire, "once_ids"), 0);
}

/* ---- other formats ---- */

/* A master as far as its lines go: what it answers to REPLCONF leaderboard, and then to LB.SYNC. Until the replica
 * closes the link. */
static void play_master(int listener, const char *answer, struct bytes stream) {
    char line[512];
    ssize_t size;
    int link = accept(listener, NULL, NULL);
    assert_true(link >= 0);
    while ((size = recv(link, line, sizeof line - 1, 0)) > 0) {
        line[size] = '\0';
        const char *reply = strstr(line, "PING") != NULL          ? "+PONG\r\n"
                            : strstr(line, "leaderboard") != NULL ? answer
                                                                  : "+OK\r\n";
        bool is_sync = strstr(line, "LB.SYNC") != NULL;
        const char *at = is_sync ? stream.at : reply;
        size_t left = is_sync ? stream.size : strlen(reply);
        assert_int_equal(send(link, at, left, MSG_NOSIGNAL), left);
    }
    close(link);
}

/* What a master says is shown whole, however long it is. */
IN_FIXTURE(a_master_of_another_format_is_not_followed_and_its_reasons_come_whole) {
    enum { REASON_SIZE = 440, GIVEN_UP = 5 };
    static const char refusal[] =
        "-ERR the replica's format is 1, this server's 6: they may differ by one, from 4 on. "
        "Upgrade the older one, or both in steps";
    char stream[512];
    char reason[REASON_SIZE + 1];
    int size = snprintf(stream, sizeof stream, "+FULL %040d\r\n", 7);
    char *message = stream + size;
    memset(reason, 'y', REASON_SIZE);
    reason[REASON_SIZE] = '\0';
    memcpy(message, (const uint8_t[8]){REASON_SIZE & 0xff, REASON_SIZE >> 8, 0, 0, GIVEN_UP}, 8);
    memcpy(message + 8, reason, REASON_SIZE);
    const struct bytes given_up = {stream, (size_t)size + 8 + REASON_SIZE};
    const char *told[] = {
        formatted("the master refuses: %s", refusal),
        "the master's format is 2, this server's 1: they must be equal. Upgrade the older server",
        formatted("the master has given the copy up: %s", reason)};
    const char *answers[] = {formatted("%s\r\n", refusal), "+LEADERBOARD 2\r\n",
                             "+LEADERBOARD 1\r\n"};
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t address_size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, address_size), 0);
    assert_int_equal(listen(listener, 8), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &address_size), 0);
    node_start(REPLICA, with_journal);
    wire_check(&REPLICA->wire, "ZADD own 1 ann", ":1");
    wire_check(&REPLICA->wire, formatted("REPLICAOF 127.0.0.1 %u", ntohs(address.sin_port)), "OK");
    for (size_t i = 0; i < COUNT_OF(told); i++) {
        play_master(listener, answers[i], given_up);
        WAIT_UNTIL(strstr(wire_ask(&REPLICA->wire, "INFO replication"), told[i]) != NULL);
        wire_check(&REPLICA->wire, "ZRANGE own 0 -1", "[ann]");
    }
    close(listener);
}

/* Whoever is told that a result counts already may wait until replicas have it. */
IN_FIXTURE(wait_behind_a_result_that_comes_again_counts_who_has_the_first) {
    nodes_start_pair(with_journal, with_journal);
    WIRE(again, process_connect_tcp(&MASTER->server));
    process_signal(&REPLICA->server, SIGSTOP);
    wire_check(&MASTER->wire, "LB.ADD board ONCE a INCR 1 ann", ":1");
    wire_check(&again, "LB.ADD board ONCE a INCR 1 ann", ":0");
    wire_check(&again, "WAIT 1 50", ":0");
    process_signal(&REPLICA->server, SIGCONT);
    wire_check(&again, "WAIT 1 20000", ":1");
}
