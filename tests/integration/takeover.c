/* The moment at which a server changes its role: with changes of the same turn, with groups that are applied in
 * part, after a restart, and with replicas that do not read. */
#include "server/durability/file_format.h"
#include "tests/support/test.h"

#include <errno.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/replication/wire.h"
#include "tests/support/nodes.h"
#include "tests/support/random.h"

/* Of names of 32 bytes: their groups are more than the 4 MiB that a tick may hand to the disk. */
static int large(void) {
    return is_short_run() ? 150000 : 300000;
}

static const char *const with_journal[] = {"--appendonly", "yes", NULL};

static void copy_directory(const char *from, const char *to) {
    const char *whole = formatted("%s/.", from);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        execlp("cp", "cp", "-a", whole, to, NULL);
        _exit(127);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* Members whose names do not compress, by commands of at_once each. */
static void send_noise(struct node *node, const char *board, int members, int at_once) {
    enum { NAME = 32 };
    struct random numbers = random_begin("takeover");
    TEXT(text);
    for (int first = 0; first < members; first += at_once) {
        text_format(&text, "*%d\r\n$4\r\nZADD\r\n$%zu\r\n%s\r\n", 2 + 2 * at_once, strlen(board),
                    board);
        for (int k = 0; k < at_once; k++) {
            text_format(&text, "$3\r\n%d\r\n$%d\r\n", 100 + k % 900, NAME);
            for (int part = 0; part < NAME / 16; part++) {
                text_format(&text, "%016llx", (unsigned long long)random_next(&numbers));
            }
            text_add(&text, "\r\n", 2);
        }
    }
    wire_send(&node->wire, text.at, text.size);
}

static void fill_with_noise(struct node *node, const char *board, int members) {
    enum { AT_ONCE = 1000 };
    send_noise(node, board, members, AT_ONCE);
    for (int first = 0; first < members; first += AT_ONCE) {
        assert_int_equal(wire_reply(&node->wire)[0], ':');
    }
}

/* ---- changes of the same turn ---- */

WITH_NODES(a_write_behind_replicaof_in_a_transaction_is_refused) {
    char request[128];
    node_start(MASTER, with_journal);
    node_start(REPLICA, with_journal);
    snprintf(request, sizeof request,
             "MULTI\r\nZADD a 1 x\r\nREPLICAOF 127.0.0.1 %u\r\nZADD b 1 y\r\nEXEC\r\n",
             MASTER->port);
    wire_send_text(&REPLICA->wire, request);
    wire_expect(&REPLICA->wire, "+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*3\r\n:1\r\n+OK\r\n"
                                "-READONLY You can't write against a read only replica.\r\n");
    node_wait_synced(REPLICA, MASTER);
    wire_check(&REPLICA->wire, "EXISTS a b", ":0");
}

/* The master loses what it wrote last, as in a power cut; another one has it, and takes over. The first change of
 * the old master comes in the same turn as the order to follow, and has a number that the new one knows, too. */
WITH_NODES(what_is_written_in_the_turn_of_replicaof_is_of_no_common_history) {
    /* So what it has answered is on its disk. */
    const char *const words[] = {"--appendonly", "yes", "--appendfsync", "always", NULL};
    char request[128];
    nodes_start_pair(words, with_journal);
    wire_check(&MASTER->wire, "ZADD w 1 one", ":1");
    node_wait_synced(REPLICA, MASTER);
    copy_directory(MASTER->directory, THIRD->directory);
    wire_check(&MASTER->wire, "ZADD w 1 two", ":1");
    node_wait_synced(REPLICA, MASTER);
    node_end(MASTER, SIGKILL);
    wire_check(&REPLICA->wire, "REPLICAOF NO ONE", "OK");
    wire_check(&REPLICA->wire, "ZADD w 3 three", ":1");
    node_start(THIRD, with_journal);
    wire_check(&THIRD->wire, "ZRANGE w 0 -1", "[one]");
    snprintf(request, sizeof request,
             "MULTI\r\nZADD other 1 x\r\nREPLICAOF 127.0.0.1 %u\r\nEXEC\r\n", REPLICA->port);
    wire_send_text(&THIRD->wire, request);
    wire_expect(&THIRD->wire, "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n:1\r\n+OK\r\n");
    node_wait_synced(THIRD, REPLICA);
    wire_check(&THIRD->wire, "EXISTS other", ":0");
    wire_check(&THIRD->wire, "ZRANGE w 0 -1", "[two one three]");
}

/* Without a journal, and once no replica was there for repl-backlog-ttl, changes have no numbers: two files of that time
 * end with the same one. */
WITH_NODES(a_replica_from_an_older_file_of_a_time_without_numbers_copies) {
    const char *const words[] = {"--appendonly", "no", "--repl-backlog-ttl", "1", NULL};
    node_start(MASTER, words);
    node_start(REPLICA, words);
    node_follow(REPLICA, MASTER);
    node_wait_synced(REPLICA, MASTER);
    node_end(REPLICA, SIGTERM);
    WAIT_UNTIL(wire_info(&MASTER->wire, "repl_backlog_active") == 0);
    wire_check(&MASTER->wire, "ZADD w 1 older", ":1");
    wire_check(&MASTER->wire, "SAVE", "OK");
    copy_directory(MASTER->directory, THIRD->directory);
    wire_check(&MASTER->wire, "ZADD w 1 newer", ":1");
    wire_check(&MASTER->wire, "SAVE", "OK");
    node_end(MASTER, SIGTERM);
    node_start(MASTER, words);
    node_start(THIRD, words);
    node_follow(THIRD, MASTER);
    node_wait_synced(THIRD, MASTER);
    wire_check(&THIRD->wire, "ZRANGE w 0 -1", wire_ask(&MASTER->wire, "ZRANGE w 0 -1"));
}

/* A full copy is in the place of the keys before the tick that says so: with what it replaces the old id goes, too. */
WITH_NODES(a_promotion_while_a_full_copy_takes_its_place_is_of_the_history_of_the_keys) {
    enum { LATEST_MS = 200 };
    struct random numbers = random_begin("takeover");
    node_start(MASTER, with_journal);
    node_start(THIRD, with_journal);
    node_start(REPLICA, with_journal);
    wire_check(&MASTER->wire, "ZADD first 1 x", ":1");
    wire_check(&THIRD->wire, "ZADD second 1 x", ":1");
    for (uint32_t i = test_rounds(100, 20); i > 0; i--) {
        node_follow(REPLICA, MASTER);
        node_wait_synced(REPLICA, MASTER);
        node_follow(REPLICA, THIRD);
        process_sleep_ms((int)random_below(&numbers, LATEST_MS));
        wire_check(&REPLICA->wire, "REPLICAOF NO ONE", "OK");
        WAIT_UNTIL(strstr(wire_ask(&REPLICA->wire, "INFO replication"), "role:master") != NULL);
        bool is_copied = wire_ask(&REPLICA->wire, "EXISTS second")[1] == '1';
        const char *id = formatted("master_replid2:%s", node_master_id(is_copied ? THIRD : MASTER));
        assert_non_null(strstr(wire_ask(&REPLICA->wire, "INFO replication"), id));
    }
}

/* The journal goes off within a second: a full copy that comes before that is saved, too. */
WITH_NODES(a_full_copy_takes_its_place_while_the_journal_is_turned_off) {
    node_start(MASTER, with_journal);
    node_start(REPLICA, with_journal);
    wire_check(&MASTER->wire, "ZADD a 1 x", ":1");
    for (int i = 0; i < 10; i++) {
        wire_check(&REPLICA->wire, "CONFIG SET appendonly no", "OK");
        node_follow(REPLICA, MASTER);
        node_wait_synced(REPLICA, MASTER);
        wire_check(&REPLICA->wire, "SAVE", "OK");
        wire_check(&REPLICA->wire, "REPLICAOF NO ONE", "OK");
        wire_check(&REPLICA->wire, "ZADD a 2 y", ":1");
        wire_check(&REPLICA->wire, "CONFIG SET appendonly yes", "OK");
        WAIT_UNTIL(strstr(wire_ask(&REPLICA->wire, "INFO persistence"), "aof_enabled:1") != NULL);
    }
}

/* ---- FAILOVER ---- */

WITH_NODES(a_master_that_has_changed_nothing_since_its_start_hands_over) {
    nodes_start_pair(with_journal, with_journal);
    wire_check(&MASTER->wire, "ZADD w 1 one", ":1");
    node_wait_synced(REPLICA, MASTER);
    node_end(MASTER, SIGTERM);
    node_start(MASTER, with_journal);
    node_wait_synced(REPLICA, MASTER);
    wire_check(&MASTER->wire, formatted("FAILOVER TO 127.0.0.1 %u TIMEOUT 30000", REPLICA->port),
               "OK");
    node_wait_up(MASTER);
    wire_check(&REPLICA->wire, "ZADD w 2 two", ":1");
    node_wait_synced(MASTER, REPLICA);
    wire_check(&MASTER->wire, "ZCARD w", ":2");
    assert_int_equal(wire_info(&REPLICA->wire, "sync_full"), 0);
}

/* ---- groups that are applied in part ---- */

/* A command that changes large() members is applied on the replica in many steps: returns in the middle of them. */
static void begin_long_change(void) {
    nodes_start_pair(with_journal, with_journal);
    send_noise(MASTER, "sum", large(), large());
    WAIT_UNTIL(wire_ask_integer(&REPLICA->wire, "ZCARD sum") > 0);
}

/* All of it, in memory and on disk. */
static void check_whole(void) {
    wire_check(&REPLICA->wire, "REPLICAOF NO ONE", "OK");
    assert_int_equal(wire_ask_integer(&REPLICA->wire, "ZCARD sum"), large());
    node_end(REPLICA, SIGTERM);
    node_start(REPLICA, with_journal);
    assert_int_equal(wire_ask_integer(&REPLICA->wire, "ZCARD sum"), large());
}

WITH_NODES(a_replica_that_is_promoted_in_the_middle_of_a_group_has_it_whole) {
    begin_long_change();
    check_whole();
}

WITH_NODES(a_link_that_is_lost_in_the_middle_of_a_group_leaves_it_whole) {
    begin_long_change();
    node_end(MASTER, SIGKILL);
    WAIT_UNTIL(!node_is_up(REPLICA));
    check_whole();
}

WITH_NODES(a_link_that_is_made_anew_in_the_middle_of_a_group_goes_on_behind_it) {
    begin_long_change();
    wire_check(&REPLICA->wire, "CLIENT KILL TYPE master", ":1");
    wire_expect(&MASTER->wire, formatted(":%d\r\n", large()));
    node_wait_synced(REPLICA, MASTER);
    assert_int_equal(wire_info(&MASTER->wire, "sync_full"), 1);
    check_whole();
}

WITH_NODES(a_change_that_is_too_long_to_be_held_comes_as_a_copy) {
    const char *const words[] = {"--appendonly", "yes", "--client-query-buffer-limit", "1mb", NULL};
    node_start(MASTER, with_journal);
    node_start(REPLICA, words);
    node_follow(REPLICA, MASTER);
    node_wait_synced(REPLICA, MASTER);
    assert_int_equal(wire_info(&MASTER->wire, "sync_full"), 1);
    send_noise(MASTER, "sum", large(), large());
    wire_expect(&MASTER->wire, formatted(":%d\r\n", large()));
    node_wait_synced(REPLICA, MASTER);
    assert_int_equal(wire_info(&MASTER->wire, "sync_full"), 2);
    assert_int_equal(wire_ask_integer(&REPLICA->wire, "ZCARD sum"), large());
    wire_check(&MASTER->wire, "ZADD sum 1 after", ":1"); /* and goes on */
    node_wait_synced(REPLICA, MASTER);
    wire_check(&REPLICA->wire, "ZSCORE sum after", "1");
    assert_int_equal(wire_info(&MASTER->wire, "sync_full"), 2);
}

/* ---- while what was received is applied, the role is new and the boards are not there ---- */

WITH_NODES(who_asks_for_boards_of_a_new_master_waits_and_others_do_not) {
    begin_long_change();
    struct wire writer = wire_open(process_connect_tcp(&REPLICA->server));
    struct wire killed = wire_open(process_connect_tcp(&REPLICA->server));
    wire_check(&REPLICA->wire, "REPLICAOF NO ONE", "OK");
    wire_send_text(&writer, "ZADD new 1 m\r\nZCARD sum\r\n");
    wire_send_text(&killed, "ZADD new 1 never\r\n");
    wire_check(&REPLICA->wire, "PING", "PONG");
    wire_check_prefix(&REPLICA->wire, "ROLE", "[master ");
    assert_non_null(strstr(wire_ask(&REPLICA->wire, "INFO replication"), "role:master"));
    wire_check(&REPLICA->wire, "REPLICAOF NO ONE", "OK");
    wire_expect(&writer, formatted(":1\r\n:%d\r\n", large()));
    wire_check_prefix(&REPLICA->wire, "CLIENT KILL TYPE normal", ":");
    wire_check(&REPLICA->wire, "ZCARD sum", formatted(":%d", large()));
    wire_close(&writer);
    wire_close(&killed);
    check_whole();
}

/* The whole transaction is one turn of the loop. */
WITH_NODES(a_transaction_that_makes_a_master_does_not_see_boards_that_are_not_whole) {
    begin_long_change();
    wire_check(&REPLICA->wire, "MULTI", "OK");
    wire_check(&REPLICA->wire, "REPLICAOF NO ONE", "QUEUED");
    wire_check(&REPLICA->wire, "ZCARD sum", "QUEUED");
    const char *reply = wire_ask(&REPLICA->wire, "EXEC");
    bool is_loading =
        strcmp(reply, "[OK -LOADING What was received from the master is being applied]") == 0;
    if (!is_loading) { /* it was over already */
        assert_string_equal(reply, formatted("[OK :%d]", large()));
    }
    check_whole();
}

/* It has never opened, so its history is still that of the master. */
WITH_NODES(who_is_sent_back_before_it_has_applied_all_goes_on_where_it_was) {
    begin_long_change();
    const char *command = formatted("REPLICAOF 127.0.0.1 %u", MASTER->port);
    wire_check(&REPLICA->wire, "REPLICAOF NO ONE", "OK");
    wire_check(&REPLICA->wire, command, "OK");
    wire_expect(&MASTER->wire, formatted(":%d\r\n", large()));
    node_wait_synced(REPLICA, MASTER);
    assert_int_equal(wire_info(&MASTER->wire, "sync_full"), 1);
    check_whole();
}

WITH_NODES(a_forced_failover_to_who_still_applies_loses_and_copies_nothing) {
    begin_long_change();
    wire_expect(&MASTER->wire, formatted(":%d\r\n", large()));
    wire_check(&MASTER->wire, formatted("FAILOVER TO 127.0.0.1 %u TIMEOUT 1 FORCE", REPLICA->port),
               "OK");
    node_wait_up(MASTER);
    wire_check(&REPLICA->wire, "ZCARD sum", formatted(":%d", large()));
    wire_check(&REPLICA->wire, "ZADD sum 1 after", ":1");
    node_wait_synced(MASTER, REPLICA);
    wire_check(&MASTER->wire, "ZCARD sum", formatted(":%d", large() + 1));
    assert_int_equal(wire_info(&REPLICA->wire, "sync_full"), 0);
}

WITH_NODES(a_new_master_that_ends_before_it_has_applied_all_keeps_it) {
    static const char *const ends[] = {"SHUTDOWN NOW\r\n", "SHUTDOWN\r\n"};
    for (int i = 0; i < (is_short_run() ? 1 : 2); i++) {
        begin_long_change();
        wire_check(&REPLICA->wire, "REPLICAOF NO ONE", "OK");
        wire_send_text(&REPLICA->wire, ends[i]);
        assert_true(process_wait(&REPLICA->server, PROCESS_STOP_LIMIT_MS));
        wire_close(&REPLICA->wire);
        REPLICA->is_running = false;
        node_start(REPLICA, with_journal);
        assert_int_equal(wire_ask_integer(&REPLICA->wire, "ZCARD sum"), large());
        node_end(REPLICA, SIGTERM);
        node_end(MASTER, SIGTERM);
        directory_remove(REPLICA->directory);
        directory_remove(MASTER->directory);
        directory_make(REPLICA->directory);
        directory_make(MASTER->directory);
        MASTER->port = REPLICA->port = 0;
    }
}

/* ---- a master whose copy is damaged ---- */

/* What a master answers up to LB.SYNC, and then a copy that is none. */
static void answer_with_damage(int listener) {
    char text[4096];
    int fd = accept(listener, NULL, NULL);
    assert_true(fd >= 0);
    for (;;) {
        ssize_t part = recv(fd, text, sizeof text - 1, 0);
        assert_true(part > 0);
        text[part] = '\0';
        if (strstr(text, "LB.SYNC") != NULL) {
            break;
        }
        char answer[64];
        bool is_version = strstr(text, "leaderboard") != NULL;
        int count = is_version ? snprintf(answer, sizeof answer, "+LEADERBOARD %d\r\n", FILE_FORMAT)
                               : snprintf(answer, sizeof answer, "+OK\r\n");
        assert_int_equal(send(fd, answer, (size_t)count, MSG_NOSIGNAL), count);
    }
    struct buffer out;
    buffer_init(&out, 0);
    static const char full[] = "+FULL 0123456789012345678901234567890123456789\r\n";
    buffer_append(&out, full, sizeof full - 1);
    wire_put_piece(&out, text, sizeof text);
    wire_put_end(&out, 7, 1);
    assert_int_equal(send(fd, out.at, out.size, MSG_NOSIGNAL), out.size);
    buffer_deinit(&out);
    while (recv(fd, text, sizeof text, 0) > 0) {}
    close(fd);
}

WITH_NODES(a_damaged_copy_is_said_to_be_the_masters_and_is_asked_for_again) {
    char wanted[128];
    uint16_t port;
    int listener = node_listen(&port);
    node_start(REPLICA, with_journal);
    wire_check(&REPLICA->wire, "ZADD mine 1 ann", ":1");
    wire_check(&REPLICA->wire, formatted("REPLICAOF 127.0.0.1 %u", port), "OK");
    answer_with_damage(listener);
    answer_with_damage(listener); /* asked for again */
    snprintf(wanted, sizeof wanted,
             "master_link_error:the full copy from 127.0.0.1:%u cannot be taken, and is asked for "
             "again: ",
             port);
    const char *info = wire_ask(&REPLICA->wire, "INFO replication");
    assert_non_null(strstr(info, wanted));
    assert_null(strstr(info, "backup"));
    assert_false(process_has_logged(&REPLICA->server, "backup"));
    wire_check(&REPLICA->wire, "ZRANGE mine 0 -1", "[ann]");
    close(listener);
}

/* ---- replicas that do not read ---- */

enum { NOISE = 300000 }; /* members: more than what sockets hold */

/* It goes on acknowledging, and would hold up everybody's copies and snapshots. */
WITH_NODES(a_replica_that_takes_nothing_of_its_copy_is_closed) {
    const char *const words[] = {"--appendonly", "yes", "--repl-timeout", "3", NULL};
    const int small = 4096;
    int64_t give_up_at = process_now_ms() + WIRE_LIMIT_MS;
    node_start(MASTER, words);
    node_start(REPLICA, with_journal);
    fill_with_noise(MASTER, "noise", NOISE);
    WIRE(stuck, process_connect_tcp(&MASTER->server));
    assert_int_equal(setsockopt(stuck.fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small), 0);
    wire_push(&stuck, "LB.SYNC ? 0\r\n", sizeof "LB.SYNC ? 0\r\n" - 1, 50);
    wire_wait_info(&MASTER->wire, "connected_slaves", 1);
    node_follow(REPLICA, MASTER);
    while (!node_is_up(REPLICA)) {
        (void)wire_push(&stuck, "REPLCONF ACK 0\r\n", sizeof "REPLCONF ACK 0\r\n" - 1, 50);
        process_sleep_ms(200);
        assert_true(process_now_ms() < give_up_at);
    }
    wire_check(&MASTER->wire, "SAVE", "OK");
}

/* Takes at most so many bytes, and acknowledges nothing. Returns how many; -1: the connection is closed. */
static ssize_t take(struct wire *wire, size_t size) {
    static char piece[1 << 20];
    ssize_t taken = recv(wire->fd, piece, size, MSG_DONTWAIT);
    static const char ack[] = "REPLCONF ACK 0\r\n";
    (void)!send(wire->fd, ack, sizeof ack - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    return taken > 0 ? taken : taken < 0 && errno == EAGAIN ? 0 : -1;
}

/* It takes a little again and again: so it is not stuck, but the other one that shares its copy waits for it. */
WITH_NODES(a_replica_that_takes_its_copy_slowly_does_not_hold_up_another_for_long) {
    enum { SLOWLY = 2048, EVERY_MS = 20, QUICKLY = 1 << 20, COPY = NOISE * 16 };
    const char *const words[] = {"--appendonly", "yes", "--repl-timeout", "10", NULL};
    const int small = 4096;
    uint64_t taken = 0;
    bool is_closed = false;
    node_start(MASTER, words);
    fill_with_noise(MASTER, "noise", NOISE);
    WIRE(slow, process_connect_tcp(&MASTER->server));
    WIRE(quick, process_connect_tcp(&MASTER->server));
    assert_int_equal(setsockopt(slow.fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small), 0);
    /* Both wait until the save is over: it begins once both have asked. */
    process_signal(&MASTER->server, SIGSTOP);
    wire_send_text(&slow, "BGSAVE\r\nLB.SYNC ? 0\r\n");
    wire_send_text(&quick, "LB.SYNC ? 0\r\n");
    process_signal(&MASTER->server, SIGCONT);
    int64_t give_up_at = process_now_ms() + WIRE_LIMIT_MS;
    while (taken < COPY || !is_closed) {
        ssize_t size = take(&quick, QUICKLY);
        assert_true(size >= 0);
        taken += (uint64_t)size;
        is_closed = is_closed || take(&slow, SLOWLY) < 0;
        process_sleep_ms(EVERY_MS);
        assert_true(process_now_ms() < give_up_at);
    }
    assert_true(process_has_logged(&MASTER->server, "full copy begun replicas=2"));
    assert_true(process_has_logged(&MASTER->server, "it takes its copy more slowly than others"));
}
