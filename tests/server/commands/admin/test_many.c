/* Commands with many arguments, and servers with many clients: the cost of a command must grow with
 * the size of its arguments and of its reply, not with their product. If it does not, each of these
 * tests needs more than its limit of processor time, whatever else the machine does; otherwise
 * about a thousandth, so that slow machines and sanitizers are far from it. */
#include <time.h>

#include "tests/support/harness.h"

enum { CLIENTS = 10000, ARGS_MAX = 1000000, TEXT_MAX = 16, LIMIT_MS = 25000 };

struct request_text {
    struct bytes *args;
    uint32_t count;
    char *texts;
};

static void begin_request(struct request_text *request) {
    request->args = memory_allocate(ARGS_MAX * sizeof *request->args);
    request->texts = memory_allocate((size_t)ARGS_MAX * TEXT_MAX);
    request->count = 0;
    assert_true(request->args != NULL && request->texts != NULL);
}

static void end_request(struct request_text *request) {
    memory_free(request->args);
    memory_free(request->texts);
}

static void add_word(struct request_text *request, const char *word) {
    request->args[request->count++] = bytes_from_text(word);
}

/* count words, "<word><number>" with numbers from 1000000 on. */
static void add_numbered(struct request_text *request, const char *word, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        char *text = &request->texts[(size_t)request->count * TEXT_MAX];
        int size = snprintf(text, TEXT_MAX, "%s%u", word, 1000000 + i);
        request->args[request->count++] = (struct bytes){.at = text, .size = (size_t)size};
    }
}

/* Processor time of this program. */
static int64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Run the request with a limit on the reply's size in bytes (0: no limit). Returns the reply's
 * size; *is_broken: it would have been longer. */
static size_t run(struct harness *h, struct session *session, const struct request_text *text,
                  size_t size_max, bool *is_broken) {
    const struct request request = {.count = text->count, .args = text->args};
    struct buffer out;
    struct reply reply;
    buffer_init(&out, size_max);
    reply_init(&reply, &out, 2);
    int64_t begin_ms = now_ms();
    harness_execute(&h->server, session, &request, &reply);
    assert_in_range(now_ms() - begin_ms, 0, LIMIT_MS);
    assert_int_equal(reply.error_count, 0);
    size_t size = out.size;
    *is_broken = out.is_broken;
    buffer_deinit(&out);
    return size;
}

static void connect_many(struct harness *h) {
    for (int i = 0; i < CLIENTS; i++) {
        (void)harness_connect(h);
    }
}

/* ---- many clients ---- */

SERVER_TEST(many_ids_are_looked_up_among_many_clients) {
    struct request_text request;
    bool is_broken;
    connect_many(h);
    begin_request(&request);
    add_word(&request, "CLIENT");
    add_word(&request, "LIST");
    add_word(&request, "ID");
    add_numbered(&request, "", ARGS_MAX / 2);
    assert_int_equal(run(h, h->server.sessions.first, &request, 0, &is_broken),
                     strlen("$0\r\n\r\n"));
    end_request(&request);
}

SERVER_TEST(many_clients_are_killed_by_id_one_after_another) {
    connect_many(h);
    int64_t begin_ms = now_ms();
    struct session *killer = h->server.sessions.first;
    for (int round = 0; round < 20; round++) {
        for (int id = CLIENTS / 2; id < CLIENTS; id++) {
            harness_run_format(h, killer, "CLIENT KILL ID %d", id + 1);
        }
    }
    assert_in_range(now_ms() - begin_ms, 0, LIMIT_MS);
    assert_int_equal(h->server.sessions.killed_count, CLIENTS / 2);
}

SERVER_TEST(a_client_is_found_by_its_id_whoever_came_and_went) {
    connect_many(h);
    for (uint64_t id = 1; id <= CLIENTS; id++) {
        struct session *session = server_find_session(&h->server, id);
        assert_non_null(session);
        assert_int_equal(session->id, id);
        if (id % 100 != 0) {
            harness_disconnect(h, session);
        }
    }
    for (uint64_t id = 1; id <= CLIENTS; id++) {
        assert_true((server_find_session(&h->server, id) != NULL) == (id % 100 == 0));
    }
    assert_null(server_find_session(&h->server, 0));
    assert_null(server_find_session(&h->server, UINT64_MAX));
}

SERVER_TEST(a_monitor_costs_the_same_among_many_clients) {
    connect_many(h);
    struct session *session = h->server.sessions.first;
    struct session *monitor = h->server.sessions.last;
    harness_expect(h, monitor, "MONITOR", "+OK\r\n");
    int64_t begin_ms = now_ms();
    for (int i = 0; i < 200000; i++) {
        harness_expect(h, session, "PING", "+PONG\r\n");
        buffer_clear(&monitor->output);
    }
    assert_in_range(now_ms() - begin_ms, 0, LIMIT_MS);
    harness_expect(h, session, "ECHO seen", "$4\r\nseen\r\n");
    assert_true(monitor->output.size > 0);
    harness_expect(h, monitor, "RESET", "+RESET\r\n");
    buffer_clear(&monitor->output);
    harness_expect(h, session, "PING", "+PONG\r\n");
    assert_int_equal(monitor->output.size, 0);
}

/* ---- many arguments ---- */

SERVER_TEST(many_names_are_looked_up_by_config_get) {
    struct request_text request;
    bool is_broken;
    begin_request(&request);
    add_word(&request, "CONFIG");
    add_word(&request, "GET");
    add_numbered(&request, "maxmemo", ARGS_MAX / 4);
    struct session *session = harness_connect(h);
    assert_int_equal(run(h, session, &request, 0, &is_broken), strlen("*0\r\n"));
    end_request(&request);
}

SERVER_TEST(config_get_stops_at_the_pattern_that_matches_all) {
    struct request_text request;
    bool is_broken;
    struct session *session = harness_connect(h);
    size_t size = strlen(harness_run(h, session, "CONFIG GET *"));
    begin_request(&request);
    add_word(&request, "CONFIG");
    add_word(&request, "GET");
    add_word(&request, "*");
    add_numbered(&request, "*a?[b]", ARGS_MAX - 3);
    assert_int_equal(run(h, session, &request, 0, &is_broken), size);
    end_request(&request);
}

SERVER_TEST(config_get_refuses_more_patterns_than_anybody_needs) {
    struct request_text request;
    struct session *session = harness_connect(h);
    begin_request(&request);
    add_word(&request, "CONFIG");
    add_word(&request, "GET");
    add_numbered(&request, "*[x]*", 1025);
    assert_string_equal(harness_run_args(h, session, request.args, request.count),
                        "-ERR CONFIG GET takes at most 1024 patterns\r\n");
    assert_string_equal(harness_run_args(h, session, request.args, request.count - 1), "*0\r\n");
    end_request(&request);
}

SERVER_TEST(many_sections_are_looked_up_by_info) {
    struct request_text request;
    bool is_broken;
    begin_request(&request);
    add_word(&request, "INFO");
    add_numbered(&request, "persiste", ARGS_MAX - 1);
    struct session *session = harness_connect(h);
    assert_int_equal(run(h, session, &request, 0, &is_broken), strlen("$0\r\n\r\n"));
    end_request(&request);
}

/* words: a command and its subcommand; name: the argument that is repeated. A reply of any size
 * equals the concatenated single replies; a short buffer ends the work. */
static void ask_again_and_again(struct harness *h, const char *const *words, const char *name,
                                size_t header_size, size_t size_of_one) {
    struct request_text request;
    struct session *session = harness_connect(h);
    bool is_broken;
    begin_request(&request);
    add_word(&request, words[0]);
    add_word(&request, words[1]);
    for (int i = 0; i < 1000; i++) {
        add_word(&request, name);
    }
    assert_int_equal(run(h, session, &request, 0, &is_broken), header_size + 1000 * size_of_one);
    while (request.count < ARGS_MAX) {
        add_word(&request, name);
    }
    int64_t begin_ms = now_ms();
    for (int i = 0; i < 20; i++) {
        size_t size = run(h, session, &request, 1 << 20, &is_broken);
        assert_true(is_broken);
        assert_in_range(size, (1 << 20) - size_of_one - 64, 1 << 20);
    }
    assert_in_range(now_ms() - begin_ms, 0, LIMIT_MS);
    end_request(&request);
}

SERVER_TEST(commands_named_again_and_again_are_described_by_copies) {
    struct session *session = harness_connect(h);
    static const char *const docs[] = {"COMMAND", "DOCS"};
    static const char *const info[] = {"COMMAND", "INFO"};
    size_t docs_size = strlen(harness_run(h, session, "COMMAND DOCS zadd"));
    size_t info_size = strlen(harness_run(h, session, "COMMAND INFO zadd"));
    ask_again_and_again(h, docs, "zadd", strlen("*2000\r\n"), docs_size - strlen("*2\r\n"));
    ask_again_and_again(h, info, "zadd", strlen("*1000\r\n"), info_size - strlen("*1\r\n"));
}

SERVER_TEST(histograms_asked_for_again_and_again_are_copies) {
    struct session *session = harness_connect(h);
    static const char *const histogram[] = {"LATENCY", "HISTOGRAM"};
    harness_expect(h, session, "PING", "+PONG\r\n");
    size_t size = strlen(harness_run(h, session, "LATENCY HISTOGRAM ping"));
    ask_again_and_again(h, histogram, "ping", strlen("*2000\r\n"), size - strlen("*2\r\n"));
}

SERVER_TEST(clients_listed_again_and_again_have_copies_of_their_lines) {
    struct session *session = harness_connect(h);
    struct request_text request;
    bool is_broken;
    begin_request(&request);
    add_word(&request, "CLIENT");
    add_word(&request, "LIST");
    add_word(&request, "ID");
    while (request.count < ARGS_MAX) {
        add_word(&request, "1");
    }
    size_t size = run(h, session, &request, 1 << 20, &is_broken);
    assert_true(is_broken);
    /* The list was written directly into the reply, and only as far as there was room. */
    assert_in_range(size, (1 << 20) - 2 * 2048, 1 << 20);
    request.count = 3 + 1000;
    size = run(h, session, &request, 0, &is_broken);
    request.count = 3 + 1;
    size_t one_size = run(h, session, &request, 0, &is_broken);
    size_t line_size = one_size - strlen("$100\r\n\r\n");
    assert_int_equal(size, strlen("$100000\r\n\r\n") + 1000 * line_size);
    end_request(&request);
}
