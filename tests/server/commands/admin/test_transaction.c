/* MULTI EXEC DISCARD, by bytes in and bytes out; expected replies are those of redis-server. WATCH:
 * test_watch.c. Random ones, beside Redis: tests/integration/transactions.c. */
#include "tests/support/harness.h"

#define OK        "+OK\r\n"
#define QUEUED    "+QUEUED\r\n"
#define PONG      "+PONG\r\n"
#define EXECABORT "-EXECABORT Transaction discarded because of previous errors.\r\n"

static const struct stats_command *stats_of(struct harness *h, const char *name) {
    return &h->server.stats.commands[command_find_full_name(bytes_from_text(name))];
}

/* ---- the way of a transaction ---- */

SERVER_TEST(commands_wait_for_exec_and_run_in_their_order) {
    struct session *other = harness_connect(h);
    harness_expect(h, s, "MULTI", OK);
    harness_expect(h, s, "MULTI", "-ERR MULTI calls can not be nested\r\n");
    harness_expect(h, s, "WATCH a", "-ERR WATCH inside MULTI is not allowed\r\n");
    harness_expect(h, s, "ZADD board 10 ann 20 bob", QUEUED);
    harness_expect(h, s, "zincrby board 15 ann", QUEUED);
    harness_expect(h, s, "ZREVRANGE board 0 -1 WITHSCORES", QUEUED);
    harness_expect(h, s, "PING", QUEUED);
    harness_expect(h, other, "EXISTS board", ":0\r\n");
    harness_expect(h, s, "EXEC",
                   "*4\r\n:2\r\n$2\r\n25\r\n*4\r\n$3\r\nann\r\n$2\r\n25\r\n$3\r\nbob\r\n$2\r\n20"
                   "\r\n" PONG);
    harness_expect(h, s, "ZCARD board", ":2\r\n");
    harness_expect(h, s, "EXEC", "-ERR EXEC without MULTI\r\n");
}

SERVER_TEST(of_a_transaction_whose_replies_are_lost_only_changes_are_run) {
    for (int i = 0; i < 1000; i++) {
        harness_run_format(h, s, "ZADD board %d member:%d", i, i);
    }
    harness_expect(h, s, "MULTI", OK);
    harness_expect(h, s, "ZADD first 1 m", QUEUED);
    for (int i = 0; i < 10; i++) {
        harness_expect(h, s, "ZRANGE board 0 -1", QUEUED);
    }
    harness_expect(h, s, "ZADD last 1 m", QUEUED);
    assert_true(
        harness_breaks(h, s, "EXEC", 30000)); /* for the first range, and a part of the second */
    assert_int_equal(stats_of(h, "zrange")->calls.count, 2);
    harness_expect(h, s, "EXISTS first last", ":2\r\n");
}

SERVER_TEST(reset_and_quit_run_at_once_and_forget_the_queue) {
    harness_expect(h, s, "MULTI", OK);
    harness_expect(h, s, "ZADD a 1 x", QUEUED);
    harness_expect(h, s, "RESET", "+RESET\r\n");
    harness_expect(h, s, "EXEC", "-ERR EXEC without MULTI\r\n");
    harness_expect(h, s, "MULTI", OK);
    harness_expect(h, s, "ZADD a 1 x", QUEUED);
    harness_expect(h, s, "QUIT", OK);
    assert_true(s->is_close_after_reply);
    struct session *other = harness_connect(h);
    harness_expect(h, other, "EXISTS a", ":0\r\n");
}

SERVER_TEST(a_client_that_goes_leaves_nothing) {
    harness_run(h, s, "WATCH a b");
    harness_run(h, s, "MULTI");
    harness_run(h, s, "ZADD a 1 x");
    harness_disconnect(h, s);
    struct session *other = harness_connect(h);
    harness_expect(h, other, "EXISTS a", ":0\r\n");
    assert_int_equal(h->server.watches.client_count, 0);
    assert_int_equal(watch_key_count(&h->server.watches), 0);
}

/* The bytes belong to the input, which is freed by then; the address sanitizer checks this. */
SERVER_TEST(arguments_of_any_bytes_and_size_outlive_their_input) {
    enum { LARGE = 60000 };
    char *large = memory_allocate(LARGE);
    assert_non_null(large);
    memset(large, '\xff', LARGE);
    const struct bytes texts[] = {
        BYTES(""), BYTES("\0\r\n$5\r\n*"), BYTES("x"), {.at = large, .size = LARGE}};
    harness_expect(h, s, "MULTI", OK);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        const struct bytes args[] = {BYTES("ECHO"), texts[i]};
        assert_string_equal(harness_run_args(h, s, args, 2), QUEUED);
    }
    harness_run(h, s, "EXEC");
    BUFFER(expected, 0);
    struct reply reply;
    reply_init(&reply, &expected, 2);
    reply_array(&reply, 4);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        reply_bulk(&reply, texts[i]);
    }
    assert_int_equal(h->reply.size, expected.size);
    assert_memory_equal(h->reply.at, expected.at, expected.size);
    memory_free(large);
}

SERVER_TEST(many_commands_run_in_one_exec) {
    enum { COMMANDS = 20000 };
    harness_expect(h, s, "MULTI", OK);
    for (int i = 0; i < COMMANDS; i++) {
        harness_run_format(h, s, "ZINCRBY board %d ann", i % 3);
    }
    harness_expect_prefix(h, s, "EXEC", "*20000\r\n$1\r\n0\r\n$1\r\n1\r\n$1\r\n3\r\n$1\r\n3\r\n");
    harness_expect(h, s, "ZSCORE board ann", "$5\r\n19999\r\n");
    assert_int_equal(s->transaction.memory_size, 0);
}

/* ---- what cannot be queued ---- */

SERVER_TEST(a_command_that_cannot_be_queued_makes_exec_refuse_all) {
    static const char *const lines[][2] = {
        {"FOO bar", "-ERR unknown command 'FOO', with args beginning with: 'bar' \r\n"},
        {"ZADD a 1", "-ERR wrong number of arguments for 'zadd' command\r\n"},
        {"client FOO", "-ERR unknown subcommand 'FOO'. Try CLIENT HELP.\r\n"},
        {"CLIENT KILL", "-ERR wrong number of arguments for 'client|kill' command\r\n"},
        {"SHUTDOWN", "-ERR Command not allowed inside a transaction\r\n"},
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        harness_expect(h, s, "MULTI", OK);
        harness_expect(h, s, "ZADD before 1 x", QUEUED);
        harness_expect(h, s, lines[i][0], lines[i][1]);
        harness_expect(h, s, "ZADD after 1 x", QUEUED);
        assert_int_equal(s->transaction.count, 1);
        harness_expect(h, s, "EXEC", EXECABORT);
        harness_expect(h, s, "EXISTS before after", ":0\r\n");
        harness_expect(h, s, "EXEC", "-ERR EXEC without MULTI\r\n");
    }
    assert_false(h->server.ending.is_asked);
}

SERVER_TEST(an_exec_with_arguments_ends_the_transaction) {
    static const char text[] = "-EXECABORT Transaction discarded because of: wrong number of "
                               "arguments for 'exec' command\r\n";
    harness_expect(h, s, "MULTI", OK);
    harness_expect(h, s, "ZADD a 1 x", QUEUED);
    harness_expect(h, s, "EXEC now", text);
    harness_expect(h, s, "EXISTS a", ":0\r\n");
    harness_expect(h, s, "EXEC now", text);
    assert_int_equal(stats_of(h, "exec")->rejected_calls, 2);
}

SERVER_TEST(before_authentication_there_is_no_transaction) {
    harness_run(h, s, "CONFIG SET requirepass sesame");
    s = harness_connect(h);
    harness_expect(h, s, "MULTI", "-NOAUTH Authentication required.\r\n");
    harness_expect(h, s, "WATCH a", "-NOAUTH Authentication required.\r\n");
    harness_expect(
        h, s, "EXEC",
        "-EXECABORT Transaction discarded because of: NOAUTH Authentication required.\r\n");
    harness_expect(h, s, "AUTH sesame", OK);
    harness_expect(h, s, "MULTI", OK);
    harness_expect(h, s, "AUTH wrong", QUEUED);
    harness_expect(h, s, "PING", QUEUED);
    harness_expect_prefix(h, s, "EXEC", "*2\r\n-WRONGPASS ");
}

SERVER_TEST(past_maxmemory_nothing_is_queued_and_exec_runs_what_needs_none) {
    static const char oom[] = "-OOM command not allowed when used memory > 'maxmemory'.\r\n";
    harness_run(h, s, "ZADD a 1 x 2 y");
    harness_expect(h, s, "MULTI", OK);
    h->server.settings.maxmemory = 1;
    harness_expect(h, s, "ZCARD a", oom);
    harness_expect(h, s, "MULTI", oom);
    harness_expect(h, s, "WATCH a", oom);
    harness_expect(h, s, "EXEC", EXECABORT);
    h->server.settings.maxmemory = 0;

    harness_expect(h, s, "MULTI", OK);
    harness_expect(h, s, "ZREM a x", QUEUED);
    h->server.settings.maxmemory = 1;
    harness_expect(h, s, "EXEC", "*1\r\n:1\r\n");
    h->server.settings.maxmemory = 0;

    harness_expect(h, s, "MULTI", OK);
    harness_expect(h, s, "ZREM a y", QUEUED);
    harness_expect(h, s, "ZADD b 1 x", QUEUED);
    h->server.settings.maxmemory = 1;
    harness_expect(h, s, "EXEC",
                   "-EXECABORT Transaction discarded because of: OOM command not allowed when used "
                   "memory > 'maxmemory'.\r\n");
    harness_expect(h, s, "ZCARD a", ":1\r\n");
    harness_expect(h, s, "DISCARD", "-ERR DISCARD without MULTI\r\n");
    h->server.settings.maxmemory = 0;
}

/* The first request of a transaction needs memory, and a long one. */
SERVER_TEST(without_memory_to_queue_exec_refuses_all) {
    const char *lines[] = {"ZADD a 2 x", formatted("ZADD a 2 %01000d", 7)};
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        harness_expect(h, s, "MULTI", OK);
        if (i == 1) {
            harness_expect(h, s, "ZADD a 1 x", QUEUED);
        }
        assert_string_equal(harness_run_failing(h, s, lines[i], 1), "-OOM out of memory\r\n");
        harness_expect(h, s, "PING", QUEUED);
        harness_expect(h, s, "EXEC", EXECABORT);
        harness_expect(h, s, "EXISTS a", ":0\r\n");
    }
    assert_int_equal(stats_of(h, "zadd")->rejected_calls, 2);
}

/* ---- what runs inside ---- */

SERVER_TEST(a_command_that_fails_leaves_the_others) {
    harness_expect(h, s, "MULTI", OK);
    harness_run(h, s, "ZADD a 1 x");
    harness_run(h, s, "ZADD a nothing y");
    harness_run(h, s, "ZINCRBY a 1 x");
    harness_expect(h, s, "EXEC", "*3\r\n:1\r\n-ERR value is not a valid float\r\n$1\r\n2\r\n");
    assert_int_equal(stats_of(h, "zadd")->calls.count, 2);
    assert_int_equal(stats_of(h, "zadd")->failed_calls, 1);
    assert_int_equal(stats_of(h, "exec")->calls.count, 1);
    assert_int_equal(stats_of(h, "exec")->failed_calls, 0);
    assert_int_equal(h->server.stats.error_replies, 1);
    assert_int_equal(h->server.stats.commands_processed, 5);
}

SERVER_TEST(a_protocol_chosen_inside_holds_for_what_follows) {
    harness_run(h, s, "ZADD a 1 x");
    harness_run(h, s, "MULTI");
    harness_run(h, s, "ZSCORE a x");
    harness_run(h, s, "HELLO 3");
    harness_run(h, s, "ZSCORE a x");
    const char *reply = harness_run(h, s, "EXEC");
    assert_memory_equal(reply, "*3\r\n$1\r\n1\r\n%7\r\n", 15);
    assert_non_null(strstr(reply, "\r\n,1\r\n"));
    harness_expect(h, s, "ZSCORE a x", ",1\r\n");
}

/* Redis's arrays come out short like that, too. */
SERVER_TEST(replies_switched_off_inside_are_left_out) {
    harness_run(h, s, "MULTI");
    harness_run(h, s, "PING");
    harness_run(h, s, "CLIENT REPLY OFF");
    harness_run(h, s, "ECHO unheard");
    harness_run(h, s, "CLIENT REPLY ON");
    harness_run(h, s, "PING");
    harness_expect(h, s, "EXEC", "*5\r\n" PONG OK PONG);
    harness_run(h, s, "MULTI");
    harness_run(h, s, "CLIENT REPLY OFF");
    harness_run(h, s, "PING");
    harness_expect(h, s, "EXEC", "*2\r\n");
    harness_expect(h, s, "PING", "");
    harness_expect(h, s, "CLIENT REPLY ON", OK);
}

SERVER_TEST(reply_skip_inside_skips_what_follows_exec) {
    harness_run(h, s, "MULTI");
    harness_run(h, s, "PING");
    harness_run(h, s, "CLIENT REPLY SKIP");
    harness_run(h, s, "PING");
    harness_expect(h, s, "EXEC", "*3\r\n" PONG PONG);
    harness_expect(h, s, "PING", "");
    harness_expect(h, s, "PING", PONG);
    harness_run(h, s, "MULTI");
    harness_run(h, s, "CLIENT REPLY SKIP");
    harness_run(h, s, "PING");
    s->reply_mode = SESSION_REPLY_SKIP_NEXT; /* this EXEC is skipped itself */
    harness_expect(h, s, "EXEC", "");
    harness_expect(h, s, "PING", "");
    harness_expect(h, s, "PING", PONG);
}

SERVER_TEST(a_transaction_without_replies_runs_all_the_same) {
    harness_expect(h, s, "CLIENT REPLY OFF", "");
    harness_expect(h, s, "MULTI", "");
    harness_expect(h, s, "ZADD a 1 x", "");
    harness_expect(h, s, "EXEC", "");
    harness_expect(h, s, "CLIENT REPLY ON", OK);
    harness_expect(h, s, "ZCARD a", ":1\r\n");
}

SERVER_TEST(monitor_is_not_allowed_inside) {
    harness_run(h, s, "MULTI");
    harness_expect(h, s, "MONITOR", QUEUED);
    harness_expect(h, s, "EXEC", "*1\r\n-ERR MONITOR isn't allowed for DENY BLOCKING client\r\n");
    assert_int_equal(h->server.sessions.monitor_count, 0);
    harness_expect(h, s, "MONITOR", OK);
}

SERVER_TEST(all_commands_of_a_transaction_carry_one_time) {
    harness_run(h, s, "ZADD k 1 x");
    harness_run(h, s, "MULTI");
    harness_run(h, s, "TIME");
    harness_run(h, s, "ZADD board 10 first");
    harness_run(h, s, "ZADD board 10 second");
    harness_run(h, s, "TIME");
    harness_run(h, s, "ZREVRANGE board 0 -1");
    h->wall_us += 5000000;
    harness_expect(h, s, "EXEC",
                   "*5\r\n*2\r\n$10\r\n1767225605\r\n$1\r\n0\r\n:1\r\n:1\r\n"
                   "*2\r\n$10\r\n1767225605\r\n$1\r\n0\r\n"
                   "*2\r\n$5\r\nfirst\r\n$6\r\nsecond\r\n");
}

/* A client whose output exceeds its limit is closed; executing half a transaction would be
 * worse. */
SERVER_TEST(a_pop_inside_is_done_even_if_its_answer_is_lost) {
    harness_run(h, s, "ZADD from 1 x 2 y");
    harness_run(h, s, "MULTI");
    harness_run(h, s, "ZPOPMAX from");
    harness_run(h, s, "ZADD to 2 y");
    h->reply.is_broken = true;
    const struct bytes exec[] = {BYTES("EXEC")};
    struct reply reply;
    reply_init(&reply, &h->reply, 2);
    harness_execute(&h->server, s, &(struct request){.count = 1, .args = exec}, &reply);
    harness_expect(h, s, "ZRANGE from 0 -1", "*1\r\n$1\r\nx\r\n");
    harness_expect(h, s, "ZRANGE to 0 -1", "*1\r\n$1\r\ny\r\n");
}

/* ---- what operators see ---- */

static const char *field_of(struct harness *h, struct session *s, const char *line,
                            const char *name) {
    static char value[64];
    const char *found = strstr(harness_run(h, s, line), name);
    assert_non_null(found);
    found += strlen(name);
    snprintf(value, sizeof value, "%.*s", (int)strcspn(found, " \r\n"), found);
    return value;
}

SERVER_TEST(client_list_shows_queue_and_watches) {
    struct session *other = harness_connect(h);
    static const char line[] = "CLIENT LIST ID 1";
    assert_string_equal(field_of(h, other, line, " multi="), "-1");
    assert_string_equal(field_of(h, other, line, " multi-mem="), "0");
    assert_string_equal(field_of(h, other, line, " flags="), "N");
    int64_t memory_before = atoll(field_of(h, other, line, " tot-mem="));
    harness_run(h, s, "WATCH a b a");
    assert_string_equal(field_of(h, other, line, " watch="), "2");
    harness_run(h, s, "MULTI");
    assert_string_equal(field_of(h, other, line, " multi="), "0");
    assert_string_equal(field_of(h, other, line, " flags="), "x");
    harness_run(h, s, "ZADD a 1 x");
    harness_run(h, s, "PING");
    assert_string_equal(field_of(h, other, line, " multi="), "2");
    assert_string_equal(field_of(h, other, line, " cmd="), "ping");
    int64_t queued_size = atoll(field_of(h, other, line, " multi-mem="));
    assert_true(queued_size >= 4 * 16 + 7);
    assert_true(atoll(field_of(h, other, line, " tot-mem=")) >= memory_before + queued_size);
    harness_run(h, other, "ZADD b 1 x");
    assert_string_equal(field_of(h, other, line, " flags="), "xd");
    assert_string_equal(field_of(h, other, line, " watch="), "0");
    harness_run(h, s, "DISCARD");
    assert_string_equal(field_of(h, other, line, " flags="), "N");
    assert_int_equal(atoll(field_of(h, other, line, " tot-mem=")), memory_before);
}

SERVER_TEST(inside_exec_a_client_sees_itself_in_it) {
    harness_run(h, s, "MULTI");
    harness_run(h, s, "CLIENT INFO");
    const char *reply = harness_run(h, s, "EXEC");
    assert_non_null(strstr(reply, " flags=x "));
    assert_non_null(strstr(reply, " multi=1 "));
    assert_non_null(strstr(reply, " cmd=exec "));
}

SERVER_TEST(info_counts_watching_clients_and_watched_keys) {
    struct session *other = harness_connect(h);
    harness_run(h, s, "WATCH a b");
    harness_run(h, other, "WATCH b c");
    assert_string_equal(field_of(h, s, "INFO clients", "\nwatching_clients:"), "2");
    assert_string_equal(field_of(h, s, "INFO clients", "\ntotal_watched_keys:"), "3");
    harness_run(h, s, "ZADD c 1 x");
    assert_string_equal(field_of(h, s, "INFO clients", "\nwatching_clients:"), "1");
    assert_string_equal(field_of(h, s, "INFO clients", "\ntotal_watched_keys:"), "2");
    harness_run(h, s, "UNWATCH");
    assert_string_equal(field_of(h, s, "INFO clients", "\nwatching_clients:"), "0");
    assert_string_equal(field_of(h, s, "INFO clients", "\ntotal_watched_keys:"), "0");
}

SERVER_TEST(monitors_see_commands_when_they_run_and_exec_behind_them) {
    struct session *monitor = harness_connect(h);
    harness_run(h, monitor, "MONITOR");
    static const char *const lines[] = {"MULTI", "SELECT 2", "PING", "EXEC", "EXEC x"};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        harness_run(h, s, lines[i]);
    }
    buffer_append(&monitor->output, "", 1);
    assert_string_equal(monitor->output.at,
                        "+1767225600.000000 [0 127.0.0.1:50001] \"MULTI\"\r\n"
                        "+1767225600.000000 [2 127.0.0.1:50001] \"SELECT\" \"2\"\r\n"
                        "+1767225600.000000 [2 127.0.0.1:50001] \"PING\"\r\n"
                        "+1767225600.000000 [2 127.0.0.1:50001] \"EXEC\"\r\n"
                        "+1767225600.000000 [2 127.0.0.1:50001] \"EXEC\" \"x\"\r\n");
}

SERVER_TEST(the_slow_log_holds_what_exec_runs_and_not_exec) {
    harness_run(h, s, "CONFIG SET slowlog-log-slower-than 0");
    harness_run(h, s, "MULTI");
    harness_run(h, s, "ZADD a 1 x");
    harness_run(h, s, "SLOWLOG RESET");
    harness_run(h, s, "PING");
    harness_run(h, s, "EXEC");
    const struct slowlog *slowlog = &h->server.slowlog;
    assert_int_equal(slowlog->count, 2);
    assert_string_equal(stats_slowlog_newest(slowlog, 0)->args[0], "PING");
    assert_string_equal(stats_slowlog_newest(slowlog, 1)->args[0], "SLOWLOG");
}

SERVER_TEST(execs_time_is_that_of_all_it_runs) {
    harness_run(h, s, "MULTI");
    for (int i = 0; i < 100; i++) {
        harness_run(h, s, "ZADD a 1 x 2 y 3 z");
    }
    harness_run(h, s, "EXEC");
    assert_true(stats_of(h, "exec")->calls.total_ns >= stats_of(h, "zadd")->calls.total_ns);
}

SERVER_TEST(the_table_says_of_transactions_what_redis_says) {
    harness_expect(h, s, "COMMAND INFO multi exec",
                   "*2\r\n*10\r\n$5\r\nmulti\r\n:1\r\n*3\r\n+loading\r\n+stale\r\n+fast\r\n"
                   ":0\r\n:0\r\n:0\r\n*2\r\n+@fast\r\n+@transaction\r\n*0\r\n*0\r\n*0\r\n"
                   "*10\r\n$4\r\nexec\r\n:1\r\n*3\r\n+loading\r\n+stale\r\n+skip_slowlog\r\n"
                   ":0\r\n:0\r\n:0\r\n*2\r\n+@slow\r\n+@transaction\r\n*0\r\n*0\r\n*0\r\n");
    harness_expect_prefix(h, s, "COMMAND INFO watch",
                          "*1\r\n*10\r\n$5\r\nwatch\r\n:-2\r\n*3\r\n+loading\r\n+stale\r\n+fast\r\n"
                          ":1\r\n:-1\r\n:1\r\n*2\r\n+@fast\r\n+@transaction\r\n*0\r\n"
                          "*1\r\n*6\r\n$5\r\nflags\r\n*1\r\n+RO\r\n");
    harness_expect_part(h, s, "COMMAND INFO shutdown", "+no_multi\r\n");
    harness_expect(h, s, "COMMAND GETKEYS WATCH a b", "*2\r\n$1\r\na\r\n$1\r\nb\r\n");
    harness_expect(h, s, "COMMAND LIST FILTERBY ACLCAT transaction",
                   "*5\r\n$7\r\ndiscard\r\n$4\r\nexec\r\n$5\r\nmulti\r\n$7\r\nunwatch\r\n"
                   "$5\r\nwatch\r\n");
    harness_expect_prefix(h, s, "COMMAND DOCS watch", "*2\r\n$5\r\nwatch\r\n*10\r\n");
}
