/* HTTP beside an engine whose loop the test turns, or not: so what the engine answers late is late. */
#include "tests/support/test.h"

#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "codec/memory.h"
#include "server/metrics/metrics.h"
#include "tests/support/process.h"

enum { REPLY_MAX = 1 << 16, LIMIT_MS = 60000 };

struct view {
    unsigned looks;
};

struct fixture {
    uv_loop_t loop;
    uv_timer_t awake; /* the engine's loop has always something to wait for */
    struct metrics_routes *http;
    struct metrics_routes_options options;
    uint16_t port;
    unsigned looks;   /* by the engine */
    unsigned written; /* by the HTTP thread: read it when the thread has ended */
    struct view view;
    struct metrics_route routes[5];
    uint64_t live_before;
};

static struct fixture *fixture;

static void look(void *context, void *at) {
    struct fixture *of = context;
    struct view *view = at;
    view->looks = ++of->looks;
}

static void write_view(const void *at, const char *accept, struct http_reply *reply) {
    const struct view *view = at;
    char text[64];
    fixture->written++;
    int size = snprintf(text, sizeof text, "look %u accept %.20s\n", view->looks,
                        accept != NULL ? accept : "-");
    buffer_append(&reply->body, text, (size_t)size);
}

static void write_fixed(const void *view, const char *accept, struct http_reply *reply) {
    (void)view;
    (void)accept;
    buffer_append(&reply->body, "fixed\n", 6);
}

/* More than a socket holds. */
static void write_long(const void *view, const char *accept, struct http_reply *reply) {
    (void)view;
    (void)accept;
    for (int i = 0; i < 1 << 16; i++) {
        buffer_append(&reply->body,
                      "0123456789012345678901234567890123456789012345678901234567890\n", 62);
    }
}

static void write_too_long(const void *view, const char *accept, struct http_reply *reply) {
    write_long(view, accept, reply);
    write_long(view, accept, reply);
    write_long(view, accept, reply);
}

static enum http_verdict check_login(void *context, struct http_login *login) {
    (void)context;
    assert_string_equal(login->address, "127.0.0.1");
    assert_true(login->is_local);
    if (!login->has_password) {
        return HTTP_LOGIN_NEEDED;
    }
    if (login->is_token) {
        assert_string_equal(login->user, "");
        return strcmp(login->password, "lbt_1") == 0 ? HTTP_LOGIN_OK : HTTP_LOGIN_NEEDED;
    }
    if (strcmp(login->user, "stranger") == 0) {
        return HTTP_LOGIN_REFUSED;
    }
    return strcmp(login->user, "ann") == 0 && strcmp(login->password, "se:cret") == 0
               ? HTTP_LOGIN_OK
               : HTTP_LOGIN_NEEDED;
}

static void on_time(uv_timer_t *timer) {
    (void)timer;
}

static int begin(void **state) {
    char error[HTTP_ERROR_MAX];
    struct sockaddr_in address;
    socklen_t size = sizeof address;
    (void)state;
    (void)signal(SIGPIPE, SIG_IGN);
    uint64_t live_before = memory_live_count();
    fixture = memory_allocate_zeroed(sizeof *fixture);
    fixture->live_before = live_before;
    int fd = http_listen("metrics", "127.0.0.1", 0, error);
    if (fd < 0 || getsockname(fd, (struct sockaddr *)&address, &size) != 0 ||
        uv_loop_init(&fixture->loop) != 0 || uv_timer_init(&fixture->loop, &fixture->awake) != 0 ||
        uv_timer_start(&fixture->awake, on_time, UINT64_C(1) << 40, 0) != 0) {
        return -1;
    }
    fixture->port = ntohs(address.sin_port);
    fixture->routes[0] = (struct metrics_route){"/look", false, look, write_view, &fixture->view};
    fixture->routes[1] = (struct metrics_route){"/fixed", false, NULL, write_fixed, NULL};
    fixture->routes[2] = (struct metrics_route){"/closed", true, NULL, write_fixed, NULL};
    fixture->routes[3] = (struct metrics_route){"/long", false, NULL, write_long, NULL};
    fixture->options = (struct metrics_routes_options){
        .routes = fixture->routes, .context = fixture, .hosts = "", .login = check_login};
    fixture->http = metrics_routes_start(fd, &fixture->loop, &fixture->options, error);
    return fixture->http != NULL ? 0 : -1;
}

static void stop(void) {
    if (fixture->http != NULL) {
        metrics_routes_stop(fixture->http);
        uv_close((uv_handle_t *)&fixture->awake, NULL);
        uv_run(&fixture->loop, UV_RUN_DEFAULT);
        metrics_routes_destroy(fixture->http);
        fixture->http = NULL;
    }
}

FIXTURE(end) {
    stop();
    int status = uv_loop_close(&fixture->loop);
    uint64_t live_before = fixture->live_before;
    memory_free(fixture);
    return status == 0 && memory_live_count() == live_before ? 0 : -1;
}
#define HTTP_TEST(name) TEST_WITH(name, begin, end)

/* ---- a client ---- */

static int dial(void) {
    int fd = process_connect_address("127.0.0.1", fixture->port);
    assert_true(fd >= 0);
    return fd;
}

static void send_text(int fd, const char *text) {
    size_t size = strlen(text);
    assert_int_equal(send(fd, text, size, MSG_NOSIGNAL), size);
}

/* The engine turns while nothing arrives, if it does at all. */
static bool wait_for_bytes(int fd, bool engine_turns) {
    struct pollfd waited = {.fd = fd, .events = POLLIN};
    for (int64_t until_ms = process_now_ms() + LIMIT_MS; process_now_ms() < until_ms;) {
        if (engine_turns) {
            uv_run(&fixture->loop, UV_RUN_NOWAIT);
        }
        if (poll(&waited, 1, 1) == 1) {
            return true;
        }
    }
    return false;
}

static bool is_complete(const char *reply, bool is_head) {
    const char *body = strstr(reply, "\r\n\r\n");
    const char *length = strstr(reply, "Content-Length: ");
    return body != NULL &&
           (is_head || (length != NULL && strlen(body + 4) >= strtoul(length + 16, NULL, 10)));
}

/* One reply, or what came before the end of the connection. */
static const char *read_reply(int fd, bool engine_turns, bool is_head) {
    static char reply[REPLY_MAX];
    size_t size = 0;
    reply[0] = '\0';
    while (!is_complete(reply, is_head)) {
        assert_true(wait_for_bytes(fd, engine_turns));
        ssize_t got = recv(fd, reply + size, sizeof reply - 1 - size, 0);
        if (got <= 0) {
            break;
        }
        size += (size_t)got;
        reply[size] = '\0';
    }
    return reply;
}

/* On a machine that is too busy for the time limits, once more. */
static const char *ask(const char *request, bool engine_turns) {
    const char *reply;
    int64_t until_ms = process_now_ms() + LIMIT_MS;
    do {
        int fd = dial();
        send_text(fd, request);
        reply = read_reply(fd, engine_turns, strncmp(request, "HEAD", 4) == 0);
        close(fd);
    } while (engine_turns && strstr(reply, "\r\n\r\nbusy") != NULL && process_now_ms() < until_ms);
    return reply;
}

static void expect(const char *reply, const char *status, const char *part) {
    const char *line = formatted("HTTP/1.1 %s", status);
    if (strncmp(reply, line, strlen(line)) != 0 || strstr(reply, part) == NULL) {
        fail_msg("wanted %s and \"%s\", got: %s", status, part, reply);
    }
}

#define REQUEST(method, path, headers)                                                             \
    method " " path " HTTP/1.1\r\nHost: localhost\r\n" headers "\r\n"

/* ---- what is asked of the engine ---- */

HTTP_TEST(a_route_shows_what_the_engine_has_when_the_request_has_come) {
    expect(ask(REQUEST("GET", "/look", ""), true), "200", "look 1 accept -\n");
    expect(ask(REQUEST("GET", "/look", "Accept: a/b\r\n"), true), "200", "look 2 accept a/b\n");
    assert_int_equal(fixture->looks, 2);
}

HTTP_TEST(a_fixed_route_needs_no_engine) {
    expect(ask(REQUEST("GET", "/fixed", ""), false), "200", "\r\n\r\nfixed\n");
    expect(ask("GET /fixed HTTP/1.0\r\n\r\n", false), "200", "\r\n\r\nfixed\n");
}

HTTP_TEST(an_engine_that_does_not_answer_gives_a_503) {
    expect(ask(REQUEST("GET", "/look", ""), false), "503", "busy");
    expect(ask(REQUEST("GET", "/closed", "Authorization: Basic YW5uOnNlOmNyZXQ=\r\n"), false),
           "503", "busy");
    /* And what it answers late harms nobody. */
    for (int i = 0; i < 10; i++) {
        uv_run(&fixture->loop, UV_RUN_NOWAIT);
    }
    expect(ask(REQUEST("GET", "/look", ""), true), "200", "look");
}

HTTP_TEST(requests_at_one_time_are_one_question) {
    enum { CLIENTS = 20 };
    int clients[CLIENTS];
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = dial();
        send_text(clients[i], REQUEST("GET", "/look", ""));
    }
    for (int i = 0; i < CLIENTS; i++) {
        expect(read_reply(clients[i], true, false), "200", "look ");
        close(clients[i]);
    }
    assert_in_range(fixture->looks, 1, CLIENTS - 1);
    stop();
    assert_int_equal(fixture->written, CLIENTS);
}

HTTP_TEST(a_client_that_leaves_while_it_waits_is_forgotten) {
    for (int i = 0; i < 20; i++) {
        int fd = dial();
        send_text(fd, i % 2 == 0 ? REQUEST("GET", "/look", "")
                                 : REQUEST("GET", "/closed", "Authorization: Basic eDp5\r\n"));
        close(fd);
    }
    expect(ask(REQUEST("GET", "/look", ""), true), "200", "look");
}

HTTP_TEST(the_end_answers_those_who_wait) {
    int fd = dial();
    send_text(fd, REQUEST("GET", "/look", ""));
    expect(ask(REQUEST("GET", "/fixed", ""), false), "200",
           "fixed"); /* so the one before is read */
    stop();
    expect(read_reply(fd, false, false), "503", "the server ends");
    close(fd);
}

/* ---- who asks ---- */

HTTP_TEST(a_closed_route_wants_a_user) {
    expect(ask(REQUEST("GET", "/closed", ""), true), "401",
           "WWW-Authenticate: Basic realm=\"leaderboard\"");
    expect(ask(REQUEST("GET", "/closed", "Authorization: Basic YW5uOnNlOmNyZXQ=\r\n"), true), "200",
           "fixed"); /* ann:se:cret */
    expect(ask(REQUEST("GET", "/closed", "Authorization: Basic YW5uOnNlY3JldA==\r\n"), true), "401",
           "are needed"); /* ann:secret */
    expect(ask(REQUEST("GET", "/closed", "Authorization: Basic c3RyYW5nZXI6eA==\r\n"), true), "403",
           "not from 127.0.0.1"); /* stranger:x */
    expect(ask(REQUEST("GET", "/closed", "Authorization: Basic ????\r\n"), true), "401", "");
    expect(ask(REQUEST("GET", "/closed", "Authorization: bearer lbt_1\r\n"), true), "200", "fixed");
    expect(ask(REQUEST("GET", "/closed", "Authorization: Bearer x\r\n"), true), "401", "");
    expect(ask(REQUEST("GET", "/closed", "Authorization: Bearer lbt_1 x\r\n"), true), "401", "");
    static const char *const schemes[] = {"Basic", "Bearer"};
    for (size_t i = 0; i < COUNT_OF(schemes); i++) {
        char longest[8000];
        int size =
            snprintf(longest, sizeof longest,
                     "GET /closed HTTP/1.1\r\nHost: localhost\r\nAuthorization: %s ", schemes[i]);
        for (; size < 6000; size += 4) {
            memcpy(longest + size, "YWFh", 4); /* no colon */
        }
        snprintf(longest + size, sizeof longest - (size_t)size, "\r\n\r\n");
        expect(ask(longest, true), "401", "");
    }
}

HTTP_TEST(another_host_is_refused) {
    expect(ask("GET /fixed HTTP/1.1\r\nHost: evil.example\r\n\r\n", false), "421", "metrics-hosts");
    expect(ask("GET /fixed HTTP/1.1\r\nHost: 127.0.0.1:1\r\n\r\n", false), "200", "fixed");
    /* Also behind more headers than are found at once. */
    char request[1000];
    for (unsigned k = 0; k < 2; k++) {
        size_t size = (size_t)snprintf(request, sizeof request, "GET /fixed HTTP/1.1\r\n");
        for (unsigned i = 0; i < 2 * HTTP_SEEN_MAX; i++) {
            size += (size_t)snprintf(request + size, sizeof request - size, "X-%u: a\r\n", i);
        }
        snprintf(request + size, sizeof request - size, "Host: %s\r\n\r\n",
                 k == 0 ? "evil.example" : "localhost");
        expect(ask(request, false), k == 0 ? "421" : "200", k == 0 ? "metrics-hosts" : "fixed");
    }
}

HTTP_TEST(what_a_request_has_once_is_not_there_twice_or_missing) {
    static const char *const doubled[][2] = {
        {"Host: localhost\r\n", "Host"},
        {"Host: evil.example\r\n", "Host"},
        {"host: 127.0.0.1\r\n", "Host"},
        {"Authorization: Bearer lbt_1\r\nAuthorization: Bearer lbt_1\r\n", "Authorization"},
        {"Authorization: Bearer lbt_1\r\nAUTHORIZATION: Basic eDp5\r\n", "Authorization"},
        {"Content-Length: 0\r\nContent-Length: 0\r\n", "Content-Length"},
        {"Content-Length: 0\r\nContent-Length: 5\r\n", "Content-Length"},
        {"Content-Type: a/b\r\nX: y\r\nContent-Type: a/b\r\n", "Content-Type"},
        {"Idempotency-Key: 1\r\nIdempotency-Key: 2\r\n", "Idempotency-Key"},
    };
    for (size_t i = 0; i < COUNT_OF(doubled); i++) {
        const char *request =
            formatted("GET /closed HTTP/1.1\r\nHost: localhost\r\n%s\r\n", doubled[i][0]);
        expect(ask(request, true), "400", formatted("the header %s is there twice", doubled[i][1]));
    }
    expect(ask("GET /fixed HTTP/1.1\r\n\r\n", false), "400", "Host is missing");
    expect(ask("GET /fixed HTTP/1.1\r\nX-Host: localhost\r\n\r\n", false), "400",
           "Host is missing");
    expect(ask("GET /fixed HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n", false), "400", "Host");
}

/* With its NULs. */
static const char *ask_bytes(const char *request, size_t size) {
    int fd = dial();
    assert_int_equal(send(fd, request, size, MSG_NOSIGNAL), size);
    const char *reply = read_reply(fd, false, false);
    close(fd);
    return reply;
}

HTTP_TEST(a_head_is_lines_and_nothing_else) {
#define HEAD(line) "GET /fixed HTTP/1.1\r\nHost: localhost\r\n" line "\r\n\r\n"
    static const struct {
        const char *at;
        size_t size;
    } heads[] = {
#define ROW(line) {HEAD(line), sizeof HEAD(line) - 1}
        ROW("X: a\0b"),    ROW("X: a\0"),          ROW("X: a\rb"),
        ROW("X: a\r\n b"), ROW("X: a\r\n b: c"),   ROW("X:\0 a\r\nY: b"),
        ROW("X\r: a"),     ROW("X: a\0b\r\nY: c"), ROW("Content-Length: 0\0 9"),
    };
    for (size_t i = 0; i < COUNT_OF(heads); i++) {
        const char *answer = ask_bytes(heads[i].at, heads[i].size);
        expect(answer, "400", "a header must not go on in a further line, or have NUL or CR in it");
        assert_null(strstr(answer + 1, "HTTP/1.1"));
    }
}

HTTP_TEST(a_length_that_is_no_number_has_one_answer) {
    static const char *const lengths[] = {"+1", "-1", "0x1", "1, 1", "", "a"};
    for (size_t i = 0; i < COUNT_OF(lengths); i++) {
        const char *answer =
            ask(formatted("GET /fixed HTTP/1.1\r\nHost: localhost\r\nContent-Length: %s\r\n\r\n",
                          lengths[i]),
                false);
        expect(answer, "400", "Content-Length is a number of bytes, in digits\n");
        assert_null(strstr(answer + 1, "HTTP/1.1"));
    }
}

HTTP_TEST(what_may_come_twice_may) {
    expect(ask(REQUEST("GET", "/fixed",
                       "Accept: a/b\r\nAccept: c/d\r\nX: y\r\nX: y\r\n"
                       "If-None-Match: \"1\"\r\nIf-None-Match: \"2\"\r\n"),
               false),
           "200", "fixed");
}

HTTP_TEST(probes_of_balancers_need_no_host) {
    static const char *const probes[] = {
        "GET /fixed HTTP/1.0\r\n\r\n", /* HAProxy, option httpchk GET /fixed */
        "GET /fixed HTTP/1.0\r\nConnection: close\r\n\r\n",
        "GET /fixed HTTP/1.1\r\nHost: 10.0.0.7:9100\r\nUser-Agent: kube-probe/1.30\r\n\r\n",
    };
    for (size_t i = 0; i < COUNT_OF(probes); i++) {
        expect(ask(probes[i], false), "200", "fixed");
    }
}

/* ---- requests of all kinds ---- */

HTTP_TEST(only_get_and_head_without_a_body_are_answered) {
    expect(ask(REQUEST("HEAD", "/fixed", ""), false), "200", "Content-Length: 6\r\n");
    assert_null(strstr(ask(REQUEST("HEAD", "/fixed", ""), false), "fixed\n"));
    static const char *const methods[] = {"POST", "PUT", "DELETE", "OPTIONS", "PATCH", "XYZ"};
    for (size_t i = 0; i < COUNT_OF(methods); i++) {
        expect(ask(formatted("%s /fixed HTTP/1.1\r\nHost: localhost\r\n\r\n", methods[i]), false),
               "405", "Allow: GET, HEAD\r\n");
    }
    expect(ask(REQUEST("GET", "/fixed", "Content-Length: 5\r\n") "hello", false), "413", "no body");
    expect(ask(REQUEST("GET", "/fixed", "Transfer-Encoding: chunked\r\n") "0\r\n\r\n", false),
           "413", "no body");
    expect(ask(REQUEST("GET", "/nowhere", ""), false), "404", "/look\n/fixed\n");
    expect(ask(REQUEST("GET", "/fixed?x=1&y", ""), false), "200", "fixed");
}

HTTP_TEST(a_connection_serves_many_requests) {
    int fd = dial();
    for (int i = 1; i <= 50; i++) {
        send_text(fd, REQUEST("GET", "/fixed", ""));
        expect(read_reply(fd, false, false), "200", "fixed");
    }
    close(fd);
}

HTTP_TEST(headers_beyond_the_limit_are_refused) {
    char *request = memory_allocate(2 * HTTP_CONNECTION_SIZE);
    memset(request, 'x', 2 * HTTP_CONNECTION_SIZE);
    static const char head[] = "GET /fixed HTTP/1.1\r\nHost: localhost\r\nX: ";
    memcpy(request, head, sizeof head - 1);
    int fd = dial();
    (void)!send(fd, request, 2 * HTTP_CONNECTION_SIZE, MSG_NOSIGNAL);
    const char *reply = read_reply(fd, false, false);
    assert_true(reply[0] == '\0' || strncmp(reply, "HTTP/1.1 4", 10) == 0);
    close(fd);
    memory_free(request);
    expect(ask(REQUEST("GET", "/fixed", ""), false), "200", "fixed");
}

HTTP_TEST(nonsense_and_halves_harm_nobody_else) {
    static const char *const texts[] = {
        "",
        "G",
        "GET",
        "GET /fixed",
        "GET /fixed HTTP/1.1\r\nHost: loc",
        "\r\n\r\n",
        "\x16\x03\x01\x02",
        "PING\r\n",
        "*1\r\n$4\r\nPING\r\n",
        "GET / HTTP/9.9\r\n\r\n",
    };
    enum { COUNT = COUNT_OF(texts) };
    int clients[COUNT];
    for (int i = 0; i < COUNT; i++) {
        clients[i] = dial();
        send_text(clients[i], texts[i]);
    }
    expect(ask(REQUEST("GET", "/look", ""), true), "200", "look");
    for (int i = 0; i < COUNT; i++) {
        close(clients[i]);
    }
    expect(ask(REQUEST("GET", "/look", ""), true), "200", "look");
}

HTTP_TEST(a_thousand_silent_connections_keep_nobody_out) {
    enum { CLIENTS = 1000 };
    const struct sockaddr_in to = {.sin_family = AF_INET,
                                   .sin_port = htons(fixture->port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int clients[CLIENTS];
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        assert_true(clients[i] >= 0);
        (void)!connect(clients[i], (const struct sockaddr *)&to, sizeof to);
        if (i % 2 == 0) {
            (void)!send(clients[i], "GET /fixed HTTP/1.1\r\n", 21, MSG_NOSIGNAL);
        }
    }
    expect(ask(REQUEST("GET", "/look", ""), true), "200", "look");
    for (int i = 0; i < CLIENTS; i++) {
        close(clients[i]);
    }
    expect(ask(REQUEST("GET", "/look", ""), true), "200", "look");
}

HTTP_TEST(a_client_that_does_not_read_holds_up_nobody) {
    int slow = dial();
    send_text(slow, REQUEST("GET", "/long", ""));
    for (int i = 0; i < 5; i++) {
        expect(ask(REQUEST("GET", "/look", ""), true), "200", "look");
    }
    close(slow);
    expect(ask(REQUEST("GET", "/look", ""), true), "200", "look");
}

HTTP_TEST(a_port_in_use_is_told) {
    char error[HTTP_ERROR_MAX];
    assert_int_equal(http_listen("metrics", "127.0.0.1", fixture->port, error), -1);
    assert_non_null(strstr(error, "another program listens there"));
    assert_int_equal(http_listen("metrics", "no.such.host.invalid", 1, error), -1);
    assert_non_null(strstr(error, "no.such.host.invalid"));
}

static int begin_too_long(void **state) {
    int status = begin(state);
    fixture->routes[3].write = write_too_long;
    return status;
}

TEST_WITH(a_reply_beyond_the_limit_is_an_error, begin_too_long, end) {
    expect(ask(REQUEST("GET", "/long", ""), false), "500", "too long");
}
