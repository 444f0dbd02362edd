/* HELLO AUTH PING ECHO SELECT QUIT RESET READONLY READWRITE CLIENT MONITOR SHUTDOWN, by bytes in
 * and bytes out; expected replies are those of redis-server. */
#include <time.h>

#include "codec/memory.h"
#include "tests/support/harness.h"

#define WRONGPASS "-WRONGPASS invalid username-password pair or user is disabled.\r\n"

/* ---- HELLO ---- */

#define HELLO_REST                                                                                 \
    "$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n$7\r\nmodules\r\n*0\r\n"
#define HELLO_HEAD "$6\r\nserver\r\n$11\r\nleaderboard\r\n$7\r\nversion\r\n$5\r\n7.2.0\r\n"

SERVER_TEST(hello_answers_in_the_protocol_it_switches_to) {
    harness_expect(h, s, "HELLO 3",
                   "%7\r\n" HELLO_HEAD "$5\r\nproto\r\n:3\r\n$2\r\nid\r\n:1\r\n" HELLO_REST);
    assert_int_equal(s->protocol, 3);
    harness_expect(h, s, "CLIENT GETNAME", "_\r\n");
    harness_expect(h, s, "hello 2",
                   "*14\r\n" HELLO_HEAD "$5\r\nproto\r\n:2\r\n$2\r\nid\r\n:1\r\n" HELLO_REST);
    harness_expect(h, s, "CLIENT GETNAME", "$-1\r\n");
    harness_expect_prefix(h, s, "HELLO", "*14\r\n");
}

SERVER_TEST(hello_refuses_what_it_does_not_know) {
    harness_expect(h, s, "HELLO 1", "-NOPROTO unsupported protocol version\r\n");
    harness_expect(h, s, "HELLO 4", "-NOPROTO unsupported protocol version\r\n");
    harness_expect(h, s, "HELLO -9223372036854775808", "-NOPROTO unsupported protocol version\r\n");
    harness_expect(h, s, "HELLO x", "-ERR Protocol version is not an integer or out of range\r\n");
    harness_expect(h, s, "HELLO 3 foo", "-ERR Syntax error in HELLO option 'foo'\r\n");
    harness_expect(h, s, "HELLO 3 AUTH", "-ERR Syntax error in HELLO option 'AUTH'\r\n");
    harness_expect(h, s, "HELLO 3 AUTH a", "-ERR Syntax error in HELLO option 'AUTH'\r\n");
    harness_expect(h, s, "HELLO 3 SETNAME", "-ERR Syntax error in HELLO option 'SETNAME'\r\n");
    harness_expect(h, s, "HELLO 3 AUTH foo bar", WRONGPASS);
    harness_expect(h, s, "HELLO 3 SETNAME 'a b'",
                   "-ERR Client names cannot contain spaces, newlines or special characters.\r\n");
    assert_int_equal(s->protocol, 2);
}

HARNESS_TEST(hello_takes_password_and_name_at_once, "requirepass sesame\n") {
    harness_expect_prefix(h, s, "HELLO 3", "-NOAUTH HELLO must be called with the client already");
    harness_expect(h, s, "HELLO 3 AUTH default wrong SETNAME bob", WRONGPASS);
    assert_null(s->name);
    harness_expect_prefix(h, s, "HELLO 3 SETNAME bob AUTH default sesame", "%7\r\n");
    harness_expect(h, s, "CLIENT GETNAME", "$3\r\nbob\r\n");
}

/* ---- AUTH ---- */

HARNESS_TEST(auth_lets_in_with_the_password_alone, "requirepass sesame\n") {
    harness_expect(h, s, "PING", "-NOAUTH Authentication required.\r\n");
    harness_expect(h, s, "AUTH wrong", WRONGPASS);
    harness_expect(h, s, "AUTH sesam", WRONGPASS);
    harness_expect(h, s, "AUTH sesamee", WRONGPASS);
    harness_expect(h, s, "AUTH sesamesesame", WRONGPASS);
    harness_expect(h, s, "AUTH ''", WRONGPASS);
    harness_expect(h, s, "AUTH someone sesame", WRONGPASS);
    harness_expect(h, s, "AUTH a b c", "-ERR syntax error\r\n");
    harness_expect(h, s, "PING", "-NOAUTH Authentication required.\r\n");
    harness_expect(h, s, "AUTH sesame", "+OK\r\n");
    harness_expect(h, s, "PING", "+PONG\r\n");
}

HARNESS_TEST(auth_takes_the_user_default, "requirepass sesame\n") {
    harness_expect(h, s, "AUTH default sesame", "+OK\r\n");
    harness_expect(h, s, "PING", "+PONG\r\n");
}

HARNESS_TEST(a_failed_auth_leaves_who_is_in_inside, "requirepass sesame\n") {
    harness_run(h, s, "AUTH sesame");
    harness_expect(h, s, "AUTH wrong", WRONGPASS);
    harness_expect(h, s, "PING", "+PONG\r\n");
}

SERVER_TEST(without_a_password_set_auth_is_a_mistake_or_anything) {
    harness_expect(h, s, "AUTH x",
                   "-ERR AUTH <password> called without any password configured for the default "
                   "user. Are you sure your configuration is correct?\r\n");
    harness_expect(h, s, "AUTH default x", "+OK\r\n");
    harness_expect(h, s, "AUTH foo x", WRONGPASS);
}

/* ---- PING ECHO SELECT QUIT READONLY ---- */

SERVER_TEST(ping_and_echo_answer) {
    harness_expect(h, s, "PING", "+PONG\r\n");
    harness_expect(h, s, "ping ''", "$0\r\n\r\n");
    harness_expect(h, s, "PING \"a\\r\\nb\"", "$4\r\na\r\nb\r\n");
    harness_expect(h, s, "PING a b", "-ERR wrong number of arguments for 'ping' command\r\n");
    harness_expect(h, s, "ECHO hi", "$2\r\nhi\r\n");
}

SERVER_TEST(select_has_16_databases) {
    harness_expect(h, s, "ZADD k 1 a", ":1\r\n");
    harness_expect(h, s, "SELECT 15", "+OK\r\n");
    harness_expect(h, s, "ZCARD k", ":0\r\n");
    harness_expect(h, s, "SELECT 16", "-ERR DB index is out of range\r\n");
    harness_expect(h, s, "SELECT -1", "-ERR DB index is out of range\r\n");
    harness_expect(h, s, "SELECT x", "-ERR value is not an integer or out of range\r\n");
    harness_expect(h, s, "SELECT 4294967296",
                   "-ERR value is out of range, value must between -2147483648 and 2147483647\r\n");
    harness_expect(h, s, "ZCARD k", ":0\r\n");
    harness_expect(h, s, "SELECT 0", "+OK\r\n");
    harness_expect(h, s, "ZCARD k", ":1\r\n");
}

SERVER_TEST(quit_answers_and_closes) {
    const char *reply = harness_send(h, s, BYTES("PING\r\nQUIT\r\nPING\r\n"));
    assert_string_equal(reply, "+PONG\r\n+OK\r\n");
    assert_true(s->is_close_after_reply);
}

SERVER_TEST(readonly_and_readwrite_belong_to_clusters) {
    harness_expect(h, s, "READONLY", "-ERR This instance has cluster support disabled\r\n");
    harness_expect(h, s, "READWRITE", "-ERR This instance has cluster support disabled\r\n");
}

HARNESS_TEST(reset_brings_back_the_state_of_a_new_connection, "requirepass sesame\n") {
    harness_run(h, s, "AUTH sesame");
    harness_run(h, s, "HELLO 3 SETNAME bob");
    harness_run(h, s, "CLIENT SETINFO LIB-NAME lib");
    harness_run(h, s, "SELECT 4");
    harness_run(h, s, "CLIENT NO-EVICT ON");
    harness_run(h, s, "MONITOR");
    harness_run(h, s, "CLIENT REPLY OFF");
    harness_expect(h, s, "RESET", "+RESET\r\n");
    assert_int_equal(s->protocol, 2);
    assert_int_equal(s->database, 0);
    assert_null(s->name);
    assert_false(s->is_monitor || s->is_no_evict);
    assert_int_equal(h->server.sessions.monitor_count, 0);
    /* The library is still the same one. */
    assert_string_equal(s->library_name, "lib");
    harness_expect(h, s, "PING", "-NOAUTH Authentication required.\r\n");
}

/* As in Redis: RESET's own reply is skipped after SKIP, and replies that are off are turned on. */
HARNESS_TEST(reset_is_silent_when_its_reply_is_skipped, "requirepass sesame\n") {
    harness_run(h, s, "AUTH sesame");
    const char *reply = harness_send(h, s, BYTES("CLIENT REPLY SKIP\r\nRESET\r\nRESET\r\n"));
    assert_string_equal(reply, "+RESET\r\n");
}

/* ---- CLIENT: names ---- */

SERVER_TEST(ids_grow_and_are_never_given_twice) {
    struct session *b = harness_connect(h);
    harness_expect(h, s, "CLIENT ID", ":1\r\n");
    harness_expect(h, b, "CLIENT ID", ":2\r\n");
    harness_disconnect(h, b);
    struct session *c = harness_connect(h);
    harness_expect(h, c, "CLIENT ID", ":3\r\n");
}

SERVER_TEST(a_name_is_printable_and_can_be_cleared) {
    harness_expect(h, s, "CLIENT GETNAME", "$-1\r\n");
    harness_expect(h, s, "CLIENT SETNAME bob", "+OK\r\n");
    harness_expect(h, s, "CLIENT GETNAME", "$3\r\nbob\r\n");
    static const char *const wrong[] = {"'a b'", "\"a\\nb\"", "\"\\x7f\"", "\"\\xff\"",
                                        "\"\\x00\""};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_string_equal(
            harness_run_format(h, s, "CLIENT SETNAME %s", wrong[i]),
            "-ERR Client names cannot contain spaces, newlines or special characters.\r\n");
    }
    harness_expect(h, s, "CLIENT GETNAME", "$3\r\nbob\r\n");
    harness_expect(h, s, "CLIENT SETNAME ''", "+OK\r\n");
    harness_expect(h, s, "CLIENT GETNAME", "$-1\r\n");
}

SERVER_TEST(a_name_of_256_bytes_is_the_longest) {
    char name[SESSION_NAME_MAX + 1];
    memset(name, 'n', sizeof name);
    struct bytes args[] = {
        BYTES("CLIENT"), BYTES("SETNAME"), {.at = name, .size = SESSION_NAME_MAX}};
    assert_string_equal(harness_run_args(h, s, args, 3), "+OK\r\n");
    harness_expect_prefix(h, s, "CLIENT INFO", "$");
    args[2].size = SESSION_NAME_MAX + 1;
    assert_string_equal(harness_run_args(h, s, args, 3), "-" SESSION_NAME_ERROR "\r\n");
}

SERVER_TEST(the_library_tells_its_name_in_any_case) {
    harness_expect(h, s, "CLIENT SETINFO lib-name lettuce", "+OK\r\n");
    harness_expect(h, s, "CLIENT SETINFO LIB-VER 6.1", "+OK\r\n");
    harness_expect_part(h, s, "CLIENT INFO", "lib-name=lettuce lib-ver=6.1\n");
    harness_expect(h, s, "CLIENT SETINFO lib-name 'a b'",
                   "-ERR lib-name cannot contain spaces, newlines or special characters.\r\n");
    harness_expect(h, s, "CLIENT SETINFO foo bar", "-ERR Unrecognized option 'foo'\r\n");
    harness_expect(h, s, "CLIENT SETINFO lib-name ''", "+OK\r\n");
    harness_expect_part(h, s, "CLIENT INFO", "lib-name= lib-ver=6.1\n");
}

SERVER_TEST(a_name_that_finds_no_memory_changes_nothing) {
    harness_run(h, s, "CLIENT SETNAME old");
    harness_run(h, s, "CLIENT SETNAME older");
    assert_string_equal(harness_run_failing(h, s, "CLIENT SETNAME new", 1),
                        "-OOM out of memory\r\n");
    harness_expect(h, s, "CLIENT GETNAME", "$5\r\nolder\r\n");
}

/* ---- CLIENT LIST, INFO ---- */

SERVER_TEST(info_is_a_line_as_redis_prints_it) {
    h->wall_us += 3500000;
    harness_run(h, s, "HELLO 3 SETNAME bob");
    harness_run(h, s, "SELECT 3");
    h->wall_us += 2000000;
    const char *line = harness_run(h, s, "CLIENT INFO");
    assert_int_equal(strncmp(line, "=", 1), 0);
    assert_non_null(strstr(line,
                           "txt:id=1 addr=127.0.0.1:50001 laddr=127.0.0.1:6379 fd=8 name=bob "
                           "age=5 idle=0 flags=N db=3 sub=0 psub=0 ssub=0 multi=-1 watch=0 "));
    assert_non_null(strstr(line, " cmd=client|info user=default redir=-1 resp=3 "
                                 "lib-name= lib-ver=\n"));
}

static uint32_t line_count(const char *reply) {
    uint32_t count = 0;
    for (const char *at = strstr(reply, "id="); at != NULL; at = strstr(at + 1, "\nid=")) {
        count++;
    }
    return count;
}

SERVER_TEST(list_has_a_line_for_every_client_oldest_first) {
    harness_connect(h);
    struct session *c = harness_connect(h);
    assert_int_equal(line_count(harness_run(h, s, "CLIENT LIST")), 3);
    const char *reply = harness_run(h, s, "CLIENT LIST TYPE normal");
    assert_true(strstr(reply, "id=1 ") < strstr(reply, "\nid=2 "));
    assert_true(strstr(reply, "\nid=2 ") < strstr(reply, "\nid=3 "));
    assert_non_null(strstr(reply, "cmd=NULL"));
    harness_disconnect(h, c);
    assert_int_equal(line_count(harness_run(h, s, "CLIENT LIST")), 2);
}

SERVER_TEST(list_chooses_by_type_and_id) {
    struct session *a = harness_connect(h);
    harness_connect(h);
    harness_expect(h, a, "CLIENT LIST TYPE pubsub", "$0\r\n\r\n");
    harness_expect(h, a, "CLIENT LIST TYPE replica", "$0\r\n\r\n");
    harness_expect(h, a, "CLIENT LIST TYPE foo", "-ERR Unknown client type 'foo'\r\n");
    assert_int_equal(line_count(harness_run(h, a, "CLIENT LIST ID 2 99 1")), 2);
    harness_expect(h, a, "CLIENT LIST ID 99", "$0\r\n\r\n");
    harness_expect(h, a, "CLIENT LIST ID 1 x", "-ERR Invalid client ID\r\n");
    harness_expect(h, a, "CLIENT LIST ID", "-ERR syntax error\r\n");
    harness_expect(h, a, "CLIENT LIST foo", "-ERR syntax error\r\n");
}

/* ---- CLIENT KILL ---- */

SERVER_TEST(the_old_form_kills_by_address) {
    struct session *b = harness_connect(h);
    harness_expect(h, s, "CLIENT KILL 127.0.0.1:50002", "+OK\r\n");
    assert_true(b->is_killed);
    assert_int_equal(h->server.sessions.killed_count, 1);
    harness_expect(h, s, "CLIENT KILL 127.0.0.1:50002", "-ERR No such client\r\n");
    harness_expect(h, s, "CLIENT KILL nobody", "-ERR No such client\r\n");
    harness_expect(h, s, "CLIENT KILL 127.0.0.1:50001", "+OK\r\n");
    assert_true(s->is_close_after_reply && !s->is_killed);
    harness_disconnect(h, b);
    assert_int_equal(h->server.sessions.killed_count, 0);
}

SERVER_TEST(filters_must_all_hold) {
    struct session *b = harness_connect(h);
    harness_expect(h, s, "CLIENT KILL ID 2 ADDR 127.0.0.1:50001", ":0\r\n");
    harness_expect(h, s, "CLIENT KILL ID 2 LADDR elsewhere", ":0\r\n");
    harness_expect(h, s, "CLIENT KILL TYPE pubsub", ":0\r\n");
    harness_expect(h, s, "CLIENT KILL ID 1", ":0\r\n");
    assert_false(b->is_killed);
    harness_expect(h, s,
                   "CLIENT KILL TYPE NORMAL USER default ID 2 ADDR 127.0.0.1:50002 LADDR "
                   "127.0.0.1:6379 SKIPME yes",
                   ":1\r\n");
    assert_true(b->is_killed);
    harness_expect(h, s, "CLIENT KILL ID 1 SKIPME NO", ":1\r\n");
    assert_true(s->is_close_after_reply);
}

SERVER_TEST(maxage_kills_those_open_for_so_long) {
    struct session *b = harness_connect(h);
    h->wall_us += 10000000;
    struct session *c = harness_connect(h);
    harness_expect(h, s, "CLIENT KILL MAXAGE 11", ":0\r\n");
    harness_expect(h, s, "CLIENT KILL MAXAGE 10", ":1\r\n");
    assert_true(b->is_killed && !c->is_killed);
    harness_expect(h, s, "CLIENT KILL MAXAGE 0", "-ERR maxage should be greater than 0\r\n");
    harness_expect(h, s, "CLIENT KILL MAXAGE x",
                   "-ERR maxage is not an integer or out of range\r\n");
}

SERVER_TEST(kill_refuses_what_it_does_not_know_and_kills_nobody) {
    struct session *a = harness_connect(h);
    struct session *b = harness_connect(h);
    harness_expect(h, a, "CLIENT KILL ID 0", "-ERR client-id should be greater than 0\r\n");
    harness_expect(h, a, "CLIENT KILL ID x", "-ERR client-id should be greater than 0\r\n");
    harness_expect(h, a, "CLIENT KILL TYPE foo", "-ERR Unknown client type 'foo'\r\n");
    harness_expect(h, a, "CLIENT KILL USER foo", "-ERR No such user 'foo'\r\n");
    harness_expect(h, a, "CLIENT KILL SKIPME foo", "-ERR syntax error\r\n");
    harness_expect(h, a, "CLIENT KILL ID 2 ADDR", "-ERR syntax error\r\n");
    harness_expect(h, a, "CLIENT KILL ID 2 foo bar", "-ERR syntax error\r\n");
    assert_false(b->is_killed);
}

/* ---- CLIENT REPLY ---- */

SERVER_TEST(reply_off_is_silent_until_on) {
    const char *reply = harness_send(
        h, s,
        BYTES(
            "CLIENT REPLY OFF\r\nPING\r\nfoo\r\nCLIENT REPLY SKIP\r\nCLIENT REPLY ON\r\nPING\r\n"));
    assert_string_equal(reply, "+OK\r\n+PONG\r\n");
}

SERVER_TEST(reply_skip_leaves_out_the_next_reply_alone) {
    assert_string_equal(harness_send(h, s, BYTES("CLIENT REPLY SKIP\r\nECHO a\r\nECHO b\r\n")),
                        "$1\r\nb\r\n");
    assert_string_equal(
        harness_send(h, s, BYTES("CLIENT REPLY SKIP\r\nCLIENT REPLY SKIP\r\nECHO a\r\nECHO b\r\n")),
        "$1\r\nb\r\n");
    assert_string_equal(
        harness_send(h, s, BYTES("CLIENT REPLY SKIP\r\nCLIENT REPLY ON\r\nECHO b\r\n")),
        "+OK\r\n$1\r\nb\r\n");
    harness_expect(h, s, "CLIENT REPLY foo", "-ERR syntax error\r\n");
}

/* ---- CLIENT PAUSE ---- */

SERVER_TEST(a_pause_grows_but_does_not_shrink) {
    harness_expect(h, s, "CLIENT PAUSE 1000 WRITE", "+OK\r\n");
    assert_int_equal(h->server.client_pause.kind, SERVER_PAUSE_WRITE);
    assert_int_equal(h->server.client_pause.until_ms, HARNESS_MONOTONIC_START_US / 1000 + 1000);
    harness_expect(h, s, "CLIENT PAUSE 500", "+OK\r\n");
    assert_int_equal(h->server.client_pause.kind, SERVER_PAUSE_ALL);
    assert_int_equal(h->server.client_pause.until_ms, HARNESS_MONOTONIC_START_US / 1000 + 1000);
    harness_expect(h, s, "CLIENT PAUSE 2000 write", "+OK\r\n");
    assert_int_equal(h->server.client_pause.kind, SERVER_PAUSE_ALL);
    assert_int_equal(h->server.client_pause.until_ms, HARNESS_MONOTONIC_START_US / 1000 + 2000);
    harness_expect(h, s, "CLIENT UNPAUSE", "+OK\r\n");
    assert_int_equal(h->server.client_pause.kind, SERVER_PAUSE_NONE);
    harness_expect(h, s, "CLIENT PAUSE 10 ALL", "+OK\r\n");
    assert_int_equal(h->server.client_pause.until_ms, HARNESS_MONOTONIC_START_US / 1000 + 10);
}

SERVER_TEST(pause_refuses_what_it_does_not_know) {
    harness_expect(h, s, "CLIENT PAUSE x", "-ERR timeout is not an integer or out of range\r\n");
    harness_expect(h, s, "CLIENT PAUSE -1", "-ERR timeout is negative\r\n");
    harness_expect(h, s, "CLIENT PAUSE 9223372036854775807", "-ERR timeout is out of range\r\n");
    harness_expect(h, s, "CLIENT PAUSE 1 foo", "-ERR CLIENT PAUSE mode must be WRITE or ALL\r\n");
    harness_expect(h, s, "CLIENT PAUSE 1 all x",
                   "-ERR unknown subcommand or wrong number of arguments for 'pause'. Try CLIENT "
                   "HELP.\r\n");
    assert_int_equal(h->server.client_pause.kind, SERVER_PAUSE_NONE);
}

/* ---- switches, HELP ---- */

SERVER_TEST(switches_are_kept_and_shown) {
    harness_expect(h, s, "CLIENT NO-EVICT ON", "+OK\r\n");
    harness_expect(h, s, "CLIENT NO-TOUCH on", "+OK\r\n");
    harness_expect_part(h, s, "CLIENT INFO", " flags=eT ");
    harness_expect(h, s, "CLIENT NO-EVICT off", "+OK\r\n");
    harness_expect(h, s, "CLIENT NO-TOUCH OFF", "+OK\r\n");
    harness_expect(h, s, "CLIENT NO-EVICT foo", "-ERR syntax error\r\n");
    harness_expect_part(h, s, "CLIENT INFO", " flags=N ");
}

/* ---- MONITOR ---- */

SERVER_TEST(a_monitor_sees_what_others_run_as_redis_prints_it) {
    struct session *monitor = harness_connect(h);
    harness_expect(h, monitor, "MONITOR", "+OK\r\n");
    h->wall_us += 42;
    harness_run(h, s, "SELECT 2");
    assert_string_equal(harness_output(monitor),
                        "+1767225600.000042 [2 127.0.0.1:50001] \"SELECT\" \"2\"\r\n");
    harness_run(h, s, "echo \"a\\x00\\x01\\n\\r\\t\\b\\a\\\"\\\\z\\xff\"");
    assert_string_equal(harness_output(monitor),
                        "+1767225600.000042 [2 127.0.0.1:50001] \"echo\" "
                        "\"a\\x00\\x01\\n\\r\\t\\b\\a\\\"\\\\z\\xff\"\r\n");
    harness_run(h, monitor, "PING");
    assert_non_null(strstr(harness_output(monitor), "[0 127.0.0.1:50002] \"PING\"\r\n"));
    assert_int_equal(s->output.size, 0);
}

SERVER_TEST(a_monitor_sees_no_secrets_no_admins_and_nothing_refused) {
    struct session *monitor = harness_connect(h);
    harness_run(h, monitor, "MONITOR");
    harness_run(h, s, "AUTH default sesame");
    assert_non_null(strstr(harness_output(monitor), "\"AUTH\" \"(redacted)\" \"(redacted)\"\r\n"));
    harness_run(h, s, "HELLO 2 SETNAME AUTH AUTH default sesame");
    assert_non_null(strstr(harness_output(monitor), "\"HELLO\" \"2\" \"SETNAME\" \"AUTH\" \"AUTH\" "
                                                    "\"(redacted)\" \"(redacted)\"\r\n"));
    harness_run(h, s, "HELLO 2 AUTH default wrong SETNAME bob AUTH default sesame");
    assert_non_null(strstr(harness_output(monitor), "\"AUTH\" \"(redacted)\" \"(redacted)\" "
                                                    "\"SETNAME\" \"bob\" "
                                                    "\"AUTH\" \"(redacted)\" \"(redacted)\"\r\n"));
    harness_run(h, s, "CONFIG SET requirepass sesame");
    harness_run(h, s, "CLIENT LIST");
    harness_run(h, s, "foo");
    harness_run(h, s, "ECHO");
    assert_string_equal(harness_output(monitor), "");
}

/* The arguments used to be walked from the start for each option, which took minutes. */
SERVER_TEST(a_hello_of_many_options_is_shown_in_one_pass) {
    enum { OPTIONS = 200000, ARGS = 2 + 2 * OPTIONS };
    struct session *monitor = harness_connect(h);
    harness_run(h, monitor, "MONITOR");
    struct bytes *args = memory_allocate(ARGS * sizeof *args);
    assert_non_null(args);
    args[0] = BYTES("HELLO");
    args[1] = BYTES("2");
    for (int i = 0; i < OPTIONS; i++) {
        args[2 + 2 * i] = BYTES("SETNAME");
        args[3 + 2 * i] = BYTES("x");
    }
    clock_t begin = clock();
    harness_run_args(h, s, args, ARGS);
    assert_true(clock() - begin < 2 * CLOCKS_PER_SEC);
    assert_int_equal(s->name[0], 'x');
    assert_true(monitor->output.size > OPTIONS * sizeof "\"SETNAME\" \"x\"");
    memory_free(args);
}

SERVER_TEST(a_monitor_that_finds_no_memory_for_a_line_is_closed) {
    struct session *monitor = harness_connect(h);
    harness_run(h, monitor, "MONITOR");
    h->server.settings.output_limits[SETTING_OUTPUT_NORMAL].hard_bytes = 8;
    harness_run(h, s, "ECHO a");
    assert_false(monitor->output.is_broken); /* there is always some room */
    harness_run_format(h, s, "ECHO %04000d", 0);
    harness_run_format(h, s, "ECHO %04000d", 0);
    harness_run_format(h, s, "ECHO %04000d", 0);
    harness_run_format(h, s, "ECHO %04000d", 0);
    harness_run_format(h, s, "ECHO %04000d", 0);
    assert_true(monitor->output.is_broken || monitor->is_killed);
}

/* ---- SHUTDOWN ---- */

SERVER_TEST(shutdown_asks_the_loop_to_stop_and_does_not_answer) {
    harness_expect(h, s, "SHUTDOWN NOSAVE", "");
    assert_true(h->server.ending.is_asked && !h->server.ending.is_now);
    harness_expect(h, s, "SHUTDOWN NOW FORCE", "");
    assert_true(h->server.ending.is_now);
}

SERVER_TEST(shutdown_takes_only_options_that_fit_together) {
    harness_expect(h, s, "SHUTDOWN foo", "-ERR syntax error\r\n");
    harness_expect(h, s, "SHUTDOWN SAVE NOSAVE", "-ERR syntax error\r\n");
    harness_expect(h, s, "SHUTDOWN ABORT NOW", "-ERR syntax error\r\n");
    harness_expect(h, s, "SHUTDOWN ABORT", "-ERR No shutdown in progress.\r\n");
    assert_false(h->server.ending.is_asked);
}

/* omem is what waits for a client, not the buffer in which its own line is written. */
HARNESS_TEST(a_clients_own_line_has_no_output_that_waits, "") {
    struct session *other = harness_connect(h);
    harness_expect_part(h, s, "CLIENT LIST", " oll=0 omem=0 ");
    assert_non_null(buffer_reserve(&other->output, 100000));
    other->output.size = 100000;
    harness_expect_part(h, s, "CLIENT LIST", " obl=100000 oll=1 omem=1");
    other->output.size = 0;
}
