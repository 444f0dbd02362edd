/* Bytes in, bytes out on real sockets: inline commands, every cut of the input, long pipelines,
 * framing that no argument can break, and requests that are broken. */
#include "tests/support/test.h"

#include "tests/support/process.h"
#include "tests/support/wire.h"

enum {
    PIPELINE_LENGTH = 100000,
    BACKLOG_COMMANDS = 2500, /* about 20 MB of replies that nobody reads yet */
    BOARD_SIZE = 500,
    INLINE_LIMIT = 65536,
};

static struct process server;
static struct wire wire, witness;

FIXTURE(start_server) {
    return process_start(&server, NULL) ? 0 : -1;
}

FIXTURE(stop_server) {
    return process_stop(&server);
}

FIXTURE(connect_empty) {
    wire = wire_open(process_connect_tcp(&server));
    witness = wire_open(process_connect_unix(&server));
    wire_check(&witness, "FLUSHALL", "OK");
    return 0;
}

FIXTURE(disconnect) {
    wire_close(&wire);
    wire_close(&witness);
    return 0;
}

/* Whatever was sent before on another connection has been read by the server once this returns. */
static void let_server_read(void) {
    wire_check(&witness, "PING", "PONG");
}

#define IN_TURN(name) TEST_WITH(name, connect_empty, disconnect)

/* ---- the request's bytes ---- */

/* Empty requests between commands, binary arguments, inline quotes: the whole grammar. */
static const char script[] = "\r\n*0\r\n*-1\r\nPING\r\n*2\r\n$4\r\nECHO\r\n$5\r\na\r\nbc\r\n"
                             "ECHO \"x\\x41\\n\" \r\n\n*4\r\n$4\r\nZADD\r\n$1\r\ns\r\n"
                             "$1\r\n5\r\n$1\r\nm\r\n*0\r\nzscore s 'm'\r\n*2\r\n$4\r\nEcho\r\n"
                             "$0\r\n\r\n*1\r\n$4\r\nping\r\n";
static const char script_replies[] = "+PONG\r\n$5\r\na\r\nbc\r\n$3\r\nxA\n\r\n:0\r\n$1\r\n5\r\n"
                                     "$0\r\n\r\n+PONG\r\n";
enum { SCRIPT_SIZE = sizeof script - 1 };

IN_TURN(the_script_cut_anywhere_gives_the_same_replies) {
    wire_check(&witness, "ZADD s 5 m", ":1");
    for (size_t cut = 0; cut <= SCRIPT_SIZE; cut++) {
        wire_send(&wire, script, cut);
        let_server_read();
        wire_send(&wire, script + cut, SCRIPT_SIZE - cut);
        wire_expect(&wire, script_replies);
    }
}

IN_TURN(the_script_byte_by_byte_gives_the_same_replies) {
    wire_check(&witness, "ZADD s 5 m", ":1");
    for (int turn = 0; turn < 3; turn++) {
        for (size_t i = 0; i < SCRIPT_SIZE; i++) {
            wire_send(&wire, script + i, 1);
            let_server_read();
        }
        wire_expect(&wire, script_replies);
    }
}

IN_TURN(a_pipeline_of_100000_commands_is_answered_in_order) {
    struct text requests = {.at = NULL}, replies = {.at = NULL};
    for (int i = 0; i < PIPELINE_LENGTH; i++) {
        if (i % 3 == 0) {
            text_command(&requests, "ZADD b %d m%d", i, i);
            text_format(&replies, ":1\r\n");
        } else if (i % 3 == 1) {
            text_command(&requests, "ZSCORE b m%d", i - 1);
            text_format(&replies, "$%d\r\n%d\r\n", snprintf(NULL, 0, "%d", i - 1), i - 1);
        } else {
            text_command(&requests, "ECHO %07d", i);
            text_format(&replies, "$7\r\n%07d\r\n", i);
        }
    }
    wire_send(&wire, requests.at, requests.size);
    wire_expect_bytes(&wire, replies.at, replies.size);
    text_free(&requests);
    text_free(&replies);
    wire_check(&wire, "ZCARD b", ":33334");
}

IN_TURN(pipelines_of_many_clients_do_not_mix) {
    enum { CLIENTS = 20, COMMANDS = 2000 };
    struct wire clients[CLIENTS];
    struct text requests = {.at = NULL}, replies = {.at = NULL};
    for (int c = 0; c < CLIENTS; c++) {
        clients[c] =
            wire_open(c % 2 ? process_connect_tcp(&server) : process_connect_unix(&server));
        requests.size = 0;
        for (int i = 1; i <= COMMANDS; i++) {
            text_command(&requests, "ZINCRBY b 1 c%d", c);
            text_command(&requests, "ECHO %d-%d", c, i);
        }
        assert_int_equal(wire_push(&clients[c], requests.at, requests.size, WIRE_LIMIT_MS),
                         requests.size);
    }
    for (int c = 0; c < CLIENTS; c++) {
        replies.size = 0;
        for (int i = 1; i <= COMMANDS; i++) {
            text_format(&replies, "$%d\r\n%d\r\n", snprintf(NULL, 0, "%d", i), i);
            text_format(&replies, "$%d\r\n%d-%d\r\n", snprintf(NULL, 0, "%d-%d", c, i), c, i);
        }
        wire_expect_bytes(&clients[c], replies.at, replies.size);
        wire_close(&clients[c]);
    }
    text_free(&requests);
    text_free(&replies);
    wire_check(&wire, "ZCARD b", ":20");
}

/* ---- framing ---- */

IN_TURN(arguments_with_cr_lf_and_nul_come_back_whole) {
    static const char member[] = "a\r\n+OK\r\n\0:5\r\n$-1\r\n";
    enum { MEMBER_SIZE = sizeof member - 1 };
    TEXT(request);
    const char *words[] = {"ZADD", member, "1", member};
    size_t sizes[] = {4, MEMBER_SIZE, 1, MEMBER_SIZE};
    text_command_words(&request, words, sizes, 4);
    wire_send(&wire, request.at, request.size);
    wire_expect(&wire, ":1\r\n");
    request.size = 0;
    words[0] = "ZRANGE";
    const char *range[] = {"ZRANGE", member, "0", "-1"};
    size_t range_sizes[] = {6, MEMBER_SIZE, 1, 2};
    text_command_words(&request, range, range_sizes, 4);
    wire_send(&wire, request.at, request.size);
    request.size = 0;
    text_format(&request, "*1\r\n$%d\r\n", MEMBER_SIZE);
    text_add(&request, member, MEMBER_SIZE);
    text_add(&request, "\r\n", 2);
    wire_expect_bytes(&wire, request.at, request.size);
    wire_check(&wire, "PING", "PONG");
    wire_check(&wire, "DBSIZE", ":1");
    request.size = 0;
    text_command(&request, "KEYS *");
    wire_send(&wire, request.at, request.size);
    request.size = 0;
    text_format(&request, "*1\r\n$%d\r\n", MEMBER_SIZE);
    text_add(&request, member, MEMBER_SIZE);
    text_add(&request, "\r\n", 2);
    wire_expect_bytes(&wire, request.at, request.size);
}

/* Commands whose errors repeat an argument: "%" stands for it. */
static const char *const echoing[] = {
    "%",
    "% 1 2",
    "FOO %",
    "CLIENT %",
    "CONFIG %",
    "CONFIG SET % 1",
    "CONFIG SET timeout %",
    "CONFIG GET %",
    "OBJECT %",
    "MEMORY %",
    "COMMAND %",
    "COMMAND INFO %",
    "COMMAND DOCS %",
    "SLOWLOG %",
    "LATENCY %",
    "LATENCY HISTORY %",
    "HELLO %",
    "HELLO 3 AUTH % %",
    "HELLO 3 SETNAME %",
    "AUTH %",
    "AUTH % %",
    "SELECT %",
    "ECHO %",
    "PING %",
    "ZADD b % m",
    "ZADD b % 1 m",
    "ZINCRBY b % m",
    "ZRANGE b % 1",
    "ZRANGE b 0 1 %",
    "ZRANGEBYSCORE b % 1",
    "ZMPOP % b MIN",
    "ZMPOP 1 b %",
    "SCAN %",
    "SCAN 0 TYPE %",
    "SCAN 0 % 1",
    "EXPIRE b %",
    "EXPIRE b 100 %",
    "CLIENT SETNAME %",
    "CLIENT KILL %",
    "CLIENT KILL TYPE %",
    "CLIENT LIST TYPE %",
    "CLIENT REPLY %",
    "CLIENT PAUSE %",
    "CLIENT NO-EVICT %",
    "CLIENT SETINFO % x",
    "CLIENT SETINFO lib-name %",
    "INFO %",
    "FLUSHALL %",
    "SHUTDOWN %",
};

static void send_echoing(const char *format, const char *argument, size_t argument_size) {
    const char *words[8];
    size_t sizes[8];
    size_t count = 0;
    for (const char *at = format; *at; at += strspn(at, " ")) {
        assert_true(count < 8);
        sizes[count] = strcspn(at, " ");
        words[count] = at;
        at += sizes[count];
        if (words[count][0] == '%') {
            words[count] = argument;
            sizes[count] = argument_size;
        }
        count++;
    }
    TEXT(request);
    text_command_words(&request, words, sizes, count);
    wire_send(&wire, request.at, request.size);
}

IN_TURN(no_argument_breaks_the_framing_of_an_error) {
    static const struct {
        const char *at;
        size_t size;
    } evil[] = {{"x\r\n+INJECTED", 12}, {"\r\n", 2},    {"\n", 1},          {"a\0b\r\n:1", 7},
                {"\r\n$-1\r\n", 7},     {"'\"%s%n", 6}, {"\xff\xfe\x80", 3}};
    wire_ask(&witness, "CONFIG SET auth-delay 0"); /* wrong passwords are not waited for */
    for (size_t e = 0; e < sizeof evil / sizeof evil[0]; e++) {
        for (size_t i = 0; i < sizeof echoing / sizeof echoing[0]; i++) {
            send_echoing(echoing[i], evil[e].at, evil[e].size);
            const char *reply = wire_reply(&wire);
            if (strncmp(reply, "INJECTED", 8) == 0) {
                fail_msg("%s: the argument became a reply", echoing[i]);
            }
            wire_check(&wire, "ECHO still-in-step", "still-in-step");
            wire_check_prefix(&wire, "HELLO 2", "[server ");
        }
    }
    wire_check(&witness, "CLIENT SETNAME a", "OK");
    wire_check_prefix(&witness, "CLIENT LIST", "id=");
}

IN_TURN(replies_keep_their_order_when_nobody_reads) {
    struct text request = {.at = NULL}, range = {.at = NULL}, expected = {.at = NULL};
    text_format(&range, "*%d\r\n", 2 * BOARD_SIZE);
    for (int i = 0; i < BOARD_SIZE; i++) {
        text_command(&request, "ZADD b %d m%06d", 1000 + i, i);
        text_format(&range, "$7\r\nm%06d\r\n$4\r\n%d\r\n", i, 1000 + i);
    }
    wire_send(&witness, request.at, request.size);
    for (int i = 0; i < BOARD_SIZE; i++) {
        wire_expect(&witness, ":1\r\n");
    }
    request.size = 0;
    for (int i = 0; i < BACKLOG_COMMANDS; i++) {
        text_command(&request, "ZRANGE b 0 -1 WITHSCORES");
        text_command(&request, "ECHO %06d", i);
    }
    assert_int_equal(wire_push(&wire, request.at, request.size, WIRE_LIMIT_MS), request.size);
    wire_check(&witness, "ZADD b 1000 m000000", ":0"); /* others are served meanwhile */
    for (int i = 0; i < BACKLOG_COMMANDS; i++) {
        wire_expect_bytes(&wire, range.at, range.size);
        expected.size = 0;
        text_format(&expected, "$6\r\n%06d\r\n", i);
        wire_expect_bytes(&wire, expected.at, expected.size);
    }
    wire_check(&wire, "PING", "PONG");
    text_free(&request);
    text_free(&range);
    text_free(&expected);
}

/* ---- numbers at their ends ---- */

/* "#" stands for the number. Writes go to board e, which is filled again for each. */
static const char *const counting[] = {
    "ZRANGE b # 1",
    "ZRANGE b 0 #",
    "ZRANGE b # #",
    "ZREVRANGE b # -1",
    "ZREVRANGE b 0 # WITHSCORES",
    "ZRANGE b -inf +inf BYSCORE LIMIT # 1",
    "ZRANGE b -inf +inf BYSCORE LIMIT 0 #",
    "ZRANGEBYSCORE b -inf +inf LIMIT # #",
    "ZREVRANGEBYSCORE b +inf -inf LIMIT # 3",
    "ZRANGEBYSCORE b # #",
    "ZCOUNT b # (#",
    "ZREMRANGEBYRANK e # 0",
    "ZREMRANGEBYRANK e -1 #",
    "ZREMRANGEBYSCORE e # #",
    "ZPOPMIN e #",
    "ZPOPMAX e #",
    "ZMPOP # e MIN",
    "ZMPOP 1 e MIN COUNT #",
    "ZRANDMEMBER b # WITHSCORES",
    "ZSCAN b #",
    "ZSCAN b 0 COUNT #",
    "SCAN #",
    "SCAN 0 COUNT #",
    "ZADD e # m",
    "ZADD e INCR # m",
    "ZINCRBY e # m",
    "ZRANGESTORE d e # #",
    "EXPIRE e #",
    "PEXPIRE e #",
    "EXPIREAT e #",
    "PEXPIREAT e # NX",
    "COPY b d DB #",
    "SELECT #",
    "MEMORY USAGE b SAMPLES #",
    "SLOWLOG GET #",
    "CLIENT KILL ID #",
    "CLIENT LIST ID #",
    "CLIENT PAUSE # WRITE",
    "HELLO #",
    "COMMAND GETKEYS ZMPOP # b MIN",
    "OBJECT FREQ #",
    "LATENCY HISTORY #",
};

static void send_counting(const char *format, const char *number) {
    struct text line = {.at = NULL}, request = {.at = NULL};
    for (const char *at = format; *at; at++) {
        text_format(&line, *at == '#' ? "%s" : "%.1s", *at == '#' ? number : at);
    }
    text_command(&request, "%s", line.at);
    wire_send(&wire, request.at, request.size);
    text_free(&line);
    text_free(&request);
}

IN_TURN(every_integer_at_its_ends_gets_one_reply) {
    static const char *const numbers[] = {"-9223372036854775808",
                                          "-4294967297",
                                          "-2147483649",
                                          "-1",
                                          "0",
                                          "1",
                                          "4294967295",
                                          "4294967296",
                                          "2147483648",
                                          "4611686018427387903",
                                          "9223372036854775807"};
    static const char *const words[] = {"9223372036854775808",
                                        "-9223372036854775809",
                                        "+1",
                                        "1e3",
                                        "0x1",
                                        "18446744073709551616",
                                        "1.0",
                                        "--1",
                                        "01"};
    wire_check(&witness, "ZADD b 1 a 2 b 3 c", ":3");
    for (size_t i = 0; i < sizeof counting / sizeof counting[0]; i++) {
        for (size_t n = 0; n < sizeof numbers / sizeof numbers[0]; n++) {
            /* A count of minus billions asks for billions of members, in Redis too. */
            if (strstr(counting[i], "ZRANDMEMBER") && numbers[n][0] == '-' && numbers[n][2]) {
                continue;
            }
            wire_ask(&witness, "ZADD e 1 a 2 b 3 c");
            send_counting(counting[i], numbers[n]);
            wire_reply(&wire);
            wire_check(&witness, "CLIENT UNPAUSE", "OK");
            wire_check(&wire, "ECHO still-in-step", "still-in-step");
            wire_ask(&wire, "SELECT 0");
            wire_ask(&wire, "HELLO 2");
        }
    }
    wire_check(&witness, "ZRANGE b 0 -1 WITHSCORES", "[a 1 b 2 c 3]");
    for (size_t n = 0; n < sizeof words / sizeof words[0]; n++) {
        send_counting("ZRANGE b # 1", words[n]);
        assert_string_equal(wire_reply(&wire), "-ERR value is not an integer or out of range");
    }
}

/* ---- broken requests ---- */

static void check_broken(const char *request, size_t size, const char *reply) {
    WIRE(broken, process_connect_tcp(&server));
    wire_push(&broken, request, size, WIRE_LIMIT_MS);
    wire_expect(&broken, reply);
    assert_true(wire_is_closed(&broken, WIRE_LIMIT_MS));
}

IN_TURN(a_broken_request_is_answered_and_closed) {
    static const struct {
        const char *request, *reply;
    } cases[] = {
        {"*abc\r\n", "-ERR Protocol error: invalid multibulk length\r\n"},
        {"*99999999999999999999\r\n", "-ERR Protocol error: invalid multibulk length\r\n"},
        {"*1\r\nPING\r\n", "-ERR Protocol error: expected '$', got 'P'\r\n"},
        {"*1\r\n$abc\r\n", "-ERR Protocol error: invalid bulk length\r\n"},
        {"*1\r\n$-1\r\n", "-ERR Protocol error: invalid bulk length\r\n"},
        {"*1\r\n$99999999999999999999\r\n", "-ERR Protocol error: invalid bulk length\r\n"},
        {"ECHO \"a\r\n", "-ERR Protocol error: unbalanced quotes in request\r\n"},
        {"ECHO 'a'b\r\n", "-ERR Protocol error: unbalanced quotes in request\r\n"},
        {"PING\r\n*abc\r\nZADD after 1 a\r\n",
         "+PONG\r\n-ERR Protocol error: invalid multibulk length\r\n"},
        {"*1\r\n$4\r\nPING\r\n*1\r\n$x\r\nZADD after 1 a\r\n",
         "+PONG\r\n-ERR Protocol error: invalid bulk length\r\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        check_broken(cases[i].request, strlen(cases[i].request), cases[i].reply);
    }
    wire_check(&wire, "EXISTS after", ":0");
}

IN_TURN(a_line_without_end_is_answered_and_closed) {
    static char line[INLINE_LIMIT + 4096];
    memset(line, '1', sizeof line);
    line[0] = 'P';
    check_broken(line, sizeof line, "-ERR Protocol error: too big inline request\r\n");
    line[0] = '*';
    check_broken(line, sizeof line, "-ERR Protocol error: too big mbulk count string\r\n");
    memcpy(line, "*1\r\n$", 5);
    check_broken(line, sizeof line, "-ERR Protocol error: too big bulk count string\r\n");
}

IN_TURN(http_clients_are_closed) {
    static const char post[] = "POST / HTTP/1.1\r\nContent-Length: 14\r\n\r\nZADD p 1 a\r\n";
    static const char get[] = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\nZADD p 1 a\r\n";
    for (int i = 0; i < 2; i++) {
        const char *request = i ? get : post;
        WIRE(browser, process_connect_tcp(&server));
        wire_push(&browser, request, strlen(request), WIRE_LIMIT_MS);
        assert_true(wire_is_closed(&browser, WIRE_LIMIT_MS));
    }
    wire_check(&wire, "EXISTS p", ":0");
}

IN_TURN(quit_answers_and_closes) {
    wire_send_text(&wire, "PING\r\nQUIT\r\nZADD q 1 a\r\n");
    wire_expect(&wire, "+PONG\r\n+OK\r\n");
    assert_true(wire_is_closed(&wire, WIRE_LIMIT_MS));
    wire_check(&witness, "EXISTS q", ":0");
}

TEST_MAIN(start_server, stop_server)
