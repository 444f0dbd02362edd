/* A server, a parser and a reply buffer in one process; no sockets, no loop. */
#include "tests/support/harness.h"
#include "server/acl/acl_rules.h"
#include "server/commands/ban.h"
#include "server/commands/table.h"
#include "server/dispatch/explain.h"
#include "server/dispatch/waiting.h"
#include "server/sessions/job.h"
#include "server/sessions/notify.h"
#include "server/system/tzdata.h"
#include "server/web/value.h"
#include "tests/support/shadow.h"
#include "tests/support/shape_check.h"
#include "tests/support/test.h"

/* A client that waits gets its reply later, as output. */
enum { WAITING_MAX = 16 };
static struct {
    const struct session *session;
    uint32_t number;
} waiting[WAITING_MAX];

/* What EXEC is about to run: it forgets the queue. */
enum { QUEUED_MAX = 256 };
static struct queued {
    uint32_t number;
    struct request request;
} queued[QUEUED_MAX];
static unsigned queued_count;

static int64_t harness_wall_us(void *context) {
    const struct harness *harness = context;
    return harness->wall_us + harness->step_us;
}

/* It goes on with wall_us and stands still when that is set back. */
static int64_t harness_monotonic_us(void *context) {
    struct harness *harness = context;
    if (harness->wall_us > harness->seen_us) {
        harness->monotonic_us += harness->wall_us - harness->seen_us;
    }
    harness->seen_us = harness->wall_us;
    return harness->monotonic_us;
}

static void stop_test(const char *text) {
    print_error("%s\n", text);
    fail();
}

static void load_settings(struct harness *harness, const char *text) {
    char error[SETTING_ERROR_MAX];
    CHECK(settings_init(&harness->server.settings));
    const char *threads = getenv("LEADERBOARD_TEST_IO_THREADS"); /* for what has a loop */
    harness->server.settings.io_threads = threads != NULL ? atoi(threads) : 1;
    if (text != NULL && !setting_file_apply_text(&harness->server.settings, bytes_from_text(text),
                                                 "harness.conf", error)) {
        stop_test(error);
    }
    if (!settings_finish(&harness->server.settings, error) ||
        !acl_rules_begin(&harness->server, error)) {
        stop_test(error);
    }
}

/* For the module, which has a clock of its own for expiry. */
static void on_expired(void *context, uint32_t database, struct bytes name) {
    struct server *server = context; /* the first member */
    struct harness *harness = (struct harness *)server;
    shadow_expire(harness->shadow, database, name);
    notify(server, SETTING_EVENT_EXPIRED, "expired", database, name);
}

struct harness *harness_create(const char *settings) {
    uint64_t live_count_before = memory_live_count();
    struct harness *harness = memory_allocate_zeroed(sizeof *harness);
    CHECK(harness != NULL);
    harness->live_count_before = live_count_before;
    harness->wall_us = HARNESS_START_US;
    harness->seen_us = HARNESS_START_US;
    harness->monotonic_us = HARNESS_MONOTONIC_START_US;
    harness->server.clock.wall_us = harness_wall_us;
    harness->server.clock.monotonic_us = harness_monotonic_us;
    harness->server.clock.context = harness;
    clock_calibrate();
    execute_init(command_table);
    load_settings(harness, settings);
    CHECK(server_life_init(&harness->server, command_count()));
    harness->server.shadows.run = ban_shadow_run_call;
    harness->arena = (struct resp_arena){0};
    buffer_init(&harness->reply, 0);
    harness->shadow = shadow_create(settings);
    if (harness->shadow != NULL) {
        registry_set_expired_listener(harness->server.registry, on_expired);
    }
    return harness;
}

void harness_destroy(struct harness *harness) {
    const char *reason = "";
    if (!watch_validate(&harness->server.watches, &reason)) {
        stop_test(reason);
    }
    while (harness->server.sessions.first != NULL) {
        harness_disconnect(harness, harness->server.sessions.first);
    }
    while (watch_free_step(&harness->server.watches, 100)) {}
    if (!subscription_validate(&harness->server.subscriptions, &reason) ||
        !wait_validate(&harness->server.waits, &reason)) {
        stop_test(reason);
    }
    assert_int_equal(watch_key_count(&harness->server.watches), 0);
    if (!registry_validate(harness->server.registry, &reason)) {
        stop_test(reason);
    }
    shadow_destroy(harness->shadow);
    server_life_deinit(&harness->server);
    settings_deinit(&harness->server.settings);
    tzdata_deinit();
    resp_arena_deinit(&harness->arena);
    buffer_deinit(&harness->reply);
    uint64_t live_count_before = harness->live_count_before;
    memory_free(harness);
    assert_true(live_count_before == 0 || memory_live_count() == live_count_before);
}

int64_t harness_now_us(const struct harness *harness) {
    struct clock clock = harness->server.clock;
    return clock_now_us(&clock);
}

void harness_set_clock(struct harness *harness, int64_t wall_us) {
    harness->wall_us = wall_us;
    clock_reset(&harness->server.clock);
}

struct session *harness_connect(struct harness *harness) {
    struct server *server = &harness->server;
    server_update_time(server);
    struct session *session = memory_allocate(sizeof *session);
    CHECK(session != NULL);
    session_init(session, server->sessions.next_id++, server->clock.monotonic_ms);
    session->fd = (int)session->id + 7;
    snprintf(session->address, sizeof session->address, "127.0.0.1:%d", 50000 + (int)session->id);
    snprintf(session->local_address, sizeof session->local_address, "127.0.0.1:6379");
    bool is_added = server_add_session(server, session);
    CHECK(is_added);
    return session;
}

void harness_drop_stale(struct harness *harness) {
    server_update_time(&harness->server);
    job_board_begin(&harness->server, &job_board_stale);
    while (job_list_step(&harness->server, 0, true)) {}
    job_list_end(&harness->server);
}

void harness_disconnect(struct harness *harness, struct session *session) {
    for (unsigned i = 0; i < WAITING_MAX; i++) {
        waiting[i].session = waiting[i].session == session ? NULL : waiting[i].session;
    }
    shadow_disconnect(harness->shadow, session);
    server_life_remove_session(&harness->server, session);
    session_deinit(session);
    memory_free(session);
}

void harness_execute(struct server *server, struct session *session, const struct request *request,
                     struct reply *reply) {
    server->command_begin_ticks = clock_ticks();
    execute_request(server, session, command_find_request(request), request, reply);
    size_t sent_size = session->output.size;
    while (session->job != NULL) {
        (void)job_list_step(server, 0, true);
        if (session->job != NULL && session->job->state == JOB_DONE && session->job->streams) {
            /* A reply that was sent in pieces. Of one that broke off, the loop closes the client. */
            if (session->output.is_broken) {
                reply_error(reply, "OOM out of memory");
            } else {
                buffer_append(reply->out, session->output.at + sent_size,
                              session->output.size - sent_size);
            }
            session->output.is_broken = false;
            buffer_cut(&session->output, sent_size);
        }
        struct job *done = job_list_find_done(server);
        if (done != NULL &&
            done != session->job) { /* that of another client, which the test has begun */
            struct reply own;
            reply_init(&own, &done->session->output, done->session->protocol);
            job_answer(server, done, &own);
        } else if (done != NULL) {
            job_answer(server, done, reply);
        }
    }
    server->has_news = false;
    waiting_serve(server);
}

/* Is this what the command's entry says? */
static void check_shape(const struct session *session, uint32_t number,
                        const struct request *request, struct bytes reply) {
    if (!shape_check(reply, number, session->protocol, request)) {
        print_error("%s, whose reply is %s, answered\n%.*s\n", command_full_name(number),
                    command_by_index(number)->reply, (int)(reply.size < 4096 ? reply.size : 4096),
                    reply.at);
        fail();
    }
}

static void copy_queue(const struct transaction *transaction) {
    while (queued_count > 0) {
        free((void *)(uintptr_t)queued[--queued_count].request.args);
    }
    const struct transaction_request *at =
        transaction->count <= QUEUED_MAX ? transaction->first : NULL;
    for (; at != NULL; at = at->next) {
        const struct request *from = &at->request;
        size_t size = from->count * sizeof from->args[0];
        for (uint32_t i = 0; i < from->count; i++) {
            size += from->args[i].size;
        }
        struct bytes *args = malloc(size);
        char *out = (char *)&args[from->count];
        for (uint32_t i = 0; i < from->count; i++) {
            args[i] = (struct bytes){.at = out, .size = from->args[i].size};
            out = mempcpy(out, from->args[i].at, from->args[i].size);
        }
        queued[queued_count++] =
            (struct queued){.number = at->command,
                            .request = {.args = args, .count = from->count, .size = from->size}};
    }
}

/* Each element of EXEC's reply is its command's, but where replies were switched off, or one has several. */
static void check_queue(const struct session *session, struct bytes reply) {
    struct value_reader reader = {.at = reply.at, .end = reply.at + reply.size};
    unsigned count = 0;
    if (queued_count == 0 || reply.size == 0 || value_next(&reader).kind != VALUE_LIST) {
        return;
    }
    for (struct value_reader at = reader; at.at < at.end; count++) {
        value_skip(&at);
    }
    for (unsigned i = 0; i < count && count == queued_count; i++) {
        const char *begin = reader.at;
        value_skip(&reader);
        check_shape(session, queued[i].number, &queued[i].request,
                    (struct bytes){.at = begin, .size = (size_t)(reader.at - begin)});
    }
}

static void check_reply(const struct session *session, const struct request *request,
                        struct bytes reply) {
    uint32_t number = command_find_request(request);
    if (number == COMMAND_NONE || command_by_index(number)->run == NULL ||
        bytes_equal(reply, BYTES("+QUEUED\r\n"))) {
        return;
    }
    check_shape(session, number, request, reply);
    for (unsigned i = 0; i < WAITING_MAX && session->wait.state != WAIT_NONE; i++) {
        if (waiting[i].session == NULL) {
            waiting[i].session = session;
            waiting[i].number = number;
            break;
        }
    }
}

static void check_output(const struct session *session) {
    const struct request none = {.count = 0};
    for (unsigned i = 0; i < WAITING_MAX && session->output.size > 0; i++) {
        if (waiting[i].session == session) {
            check_shape(session, waiting[i].number, &none, buffer_bytes(&session->output));
            waiting[i].session = NULL;
        }
    }
}

/* Parse and run the first request of input into harness->reply; false: the client is to be
 * closed. */
static bool run_one(struct harness *harness, struct session *session, struct bytes input,
                    size_t *used) {
    const struct resp_limits limits = {
        .args_max = 1048576,
        .bulk_size_max = harness->server.settings.proto_max_bulk_len,
        .inline_size_max = 65536,
        .is_authenticated = session->is_authenticated,
    };
    struct resp_parser parser = {0};
    struct request request;
    const char *error = NULL;
    enum resp_status status =
        resp_parse(&parser, input.at, input.size, &limits, &harness->arena, &request, used, &error);
    struct reply reply;
    reply_init(&reply, &harness->reply, session->protocol);
    session_shape_reply(session, &reply);
    if (status == RESP_REQUEST) {
        size_t size_before = harness->reply.size;
        unsigned version = session->protocol;
        server_update_time(&harness->server);
        copy_queue(&session->transaction);
        harness_execute(&harness->server, session, &request, &reply);
        struct bytes replied = {.at = harness->reply.at + size_before,
                                .size = harness->reply.size - size_before};
        check_reply(session, &request, replied);
        if (bytes_is(request.args[0], "EXEC") && version == session->protocol) {
            check_queue(session, replied);
        }
        if (harness->shadow != NULL) {
            shadow_run(harness->shadow, &harness->server, session, &request, replied);
        }
        return !session->is_killed && !session->is_close_after_reply;
    }
    if (status == RESP_ERROR) {
        reply_error(&reply, error);
        return false;
    }
    resp_parser_deinit(&parser);
    CHECK(status == RESP_SKIP);
    return true;
}

static const char *take_reply(struct harness *harness) {
    char *end = buffer_reserve(&harness->reply, 1);
    CHECK(end != NULL);
    *end = '\0';
    if (harness->reply.size > 0 && harness->reply.at[0] == '-') {
        struct bytes prefix = {.at = harness->reply.at + 1,
                               .size = strcspn(harness->reply.at + 1, " \r")};
        CHECK(explain_error(prefix) != NULL); /* it is described */
    }
    resp_arena_reset(&harness->arena);
    return harness->reply.at;
}

const char *harness_send(struct harness *harness, struct session *session, struct bytes input) {
    buffer_clear(&harness->reply);
    while (input.size > 0) {
        size_t used = 0;
        if (!run_one(harness, session, input, &used)) {
            break;
        }
        input = (struct bytes){.at = input.at + used, .size = input.size - used};
    }
    return take_reply(harness);
}

const char *harness_run(struct harness *harness, struct session *session, const char *line) {
    struct buffer input;
    buffer_init(&input, 0);
    buffer_append(&input, line, strlen(line));
    buffer_append(&input, "\r\n", 2);
    const char *reply =
        harness_send(harness, session, (struct bytes){.at = input.at, .size = input.size});
    buffer_deinit(&input);
    return reply;
}

const char *harness_run_format(struct harness *harness, struct session *session, const char *format,
                               ...) {
    va_list arguments;
    va_start(arguments, format);
    char line[4096];
    int size = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    CHECK(size >= 0 && (size_t)size < sizeof line);
    return harness_run(harness, session, line);
}

const char *harness_run_args(struct harness *harness, struct session *session,
                             const struct bytes *args, uint32_t count) {
    struct buffer input;
    buffer_init(&input, 0);
    struct reply request;
    reply_init(&request, &input, 2);
    reply_array(&request, count);
    for (uint32_t i = 0; i < count; i++) {
        reply_bulk(&request, args[i]);
    }
    const char *reply =
        harness_send(harness, session, (struct bytes){.at = input.at, .size = input.size});
    buffer_deinit(&input);
    return reply;
}

/* The words of a line, cut at blanks; static memory. */
static struct request plain_request(const char *line) {
    enum { WORDS_MAX = 4096 };
    static char words[65536];
    static struct bytes args[WORDS_MAX];
    struct request request = {.args = args, .size = strlen(line)};
    CHECK(request.size < sizeof words);
    strcpy(words, line);
    for (char *word = strtok(words, " "); word != NULL; word = strtok(NULL, " ")) {
        CHECK(request.count < WORDS_MAX);
        args[request.count++] = bytes_from_text(word);
    }
    return request;
}

const char *harness_fail_request(struct harness *harness, struct session *session,
                                 const struct request *request, uint64_t nth) {
    struct reply reply;
    struct settings *settings = &harness->server.settings;
    int64_t slow_us = settings->slowlog_log_slower_than_us;
    buffer_clear(&harness->reply);
    /* Names of 70,000 bytes may come back: a reply without memory closes, which is no answer to look at. */
    CHECK(buffer_reserve(&harness->reply, 65536 + 4 * request->size) != NULL);
    reply_init(&reply, &harness->reply, session->protocol);
    session_shape_reply(session, &reply);
    server_update_time(&harness->server);
    /* How long the command takes is no matter of the test: an entry would be memory beside its own. */
    settings->slowlog_log_slower_than_us = -1;
    memory_fail_at(nth);
    harness_execute(&harness->server, session, request, &reply);
    memory_fail_at(0);
    settings->slowlog_log_slower_than_us = slow_us;
    return take_reply(harness);
}

const char *harness_run_failing(struct harness *harness, struct session *session, const char *line,
                                uint64_t nth) {
    struct request request = plain_request(line);
    return harness_fail_request(harness, session, &request, nth);
}

bool harness_breaks(struct harness *harness, struct session *session, const char *line,
                    size_t size_max) {
    struct request request = plain_request(line);
    struct buffer out;
    struct reply reply;
    buffer_init(&out, size_max);
    reply_init(&reply, &out, session->protocol);
    harness_execute(&harness->server, session, &request, &reply);
    bool is_broken = out.is_broken;
    buffer_deinit(&out);
    return is_broken;
}

const char *harness_output(struct session *session) {
    check_output(session);
    static char *taken; /* by malloc: not among what a test must give back */
    taken = realloc(taken, session->output.size + 1);
    CHECK(taken != NULL);
    if (session->output.size > 0) {
        memcpy(taken, session->output.at, session->output.size);
    }
    taken[session->output.size] = '\0';
    buffer_clear(&session->output);
    return taken;
}

/* Is a text like this one, in which "..." stands for anything? */
static bool is_like(const char *text, size_t size, const char *like) {
    size_t part = strcspn(like, ".");
    while (like[part] == '.' && strncmp(like + part, "...", 3) != 0) {
        part += 1 + strcspn(like + part + 1, ".");
    }
    if (size < part || memcmp(text, like, part) != 0) {
        return false;
    }
    if (like[part] == '\0') {
        return size == part;
    }
    for (size_t i = part; i <= size; i++) {
        if (is_like(text + i, size - i, like + part + 3)) {
            return true;
        }
    }
    return false;
}

bool harness_is_reply(const char *line, const char *expected, const char *reply) {
    static const char *const plain[][2] = {
        {"-ERR syntax error", "-ERR ..."},
        {"-ERR wrong number of arguments", "-ERR ..."},
        {"-ERR value is not an integer or out of range", "-ERR ..."},
        {"-ERR value is not a valid float", "-ERR ... is not a ..."},
        {"-ERR min or max is not a float", "-ERR ... is not a score"},
    };
    const char *syntax = strstr(reply, " (LB.");
    const char *behind = syntax != NULL ? strchr(syntax, ')') : NULL;
    if (strcmp(reply, expected) == 0) {
        return true;
    }
    if (strncasecmp(line, "LB.", 3) != 0 || strncmp(reply, "-ERR ", 5) != 0 || behind == NULL ||
        strncmp(reply, "-ERR syntax error (", 19) == 0) {
        return false;
    }
    /* Without the syntax. */
    char bare[1024];
    snprintf(bare, sizeof bare, "%.*s%s", (int)(syntax - reply), reply, behind + 1);
    const char *like = expected;
    for (size_t i = 0; i < COUNT_OF(plain); i++) {
        size_t size = strlen(plain[i][0]);
        bool is_plain = strncmp(expected, plain[i][0], size) == 0 &&
                        (expected[size] == '\0' || strchr("\r: ", expected[size]) != NULL);
        like =
            is_plain ? formatted("%s%s", plain[i][1], strchr(expected, '\r') ? "..." : "") : like;
    }
    const char *field = strstr(expected, ": field '");
    if (field != NULL) { /* which the explanation names, too */
        like = formatted("-ERR ... is not a %.*s...", (int)strcspn(field + 9, "'"), field + 9);
    }
    return is_like(bare, strlen(bare), like);
}

void harness_expect_at(struct harness *harness, struct session *session, const char *line,
                       const char *expected, const char *file, int line_number) {
    const char *reply = harness_run(harness, session, line);
    if (!harness_is_reply(line, expected, reply)) {
        print_error("%s:%d: %s\n--- expected\n%s\n--- answered\n%s\n", file, line_number, line,
                    expected, reply);
        _fail(file, line_number);
    }
}

void harness_expect_rows(struct harness *harness, struct session *session,
                         const char *const (*rows)[2], size_t count, const char *file,
                         int line_number) {
    for (size_t i = 0; i < count; i++) {
        harness_expect_at(harness, session, rows[i][0], rows[i][1], file, line_number);
    }
}

void harness_expect_prefix_at(struct harness *harness, struct session *session, const char *line,
                              const char *prefix, const char *file, int line_number) {
    const char *reply = harness_run(harness, session, line);
    if (strncmp(reply, prefix, strlen(prefix)) != 0) {
        print_error("%s:%d: %s\n--- expected, to begin with\n%s\n--- answered\n%s\n", file,
                    line_number, line, prefix, reply);
        _fail(file, line_number);
    }
}

void harness_expect_part_at(struct harness *harness, struct session *session, const char *line,
                            const char *part, const char *file, int line_number) {
    const char *reply = harness_run(harness, session, line);
    if (strstr(reply, part) == NULL) {
        print_error("%s:%d: %s\n--- expected, to have in it\n%s\n--- answered\n%s\n", file,
                    line_number, line, part, reply);
        _fail(file, line_number);
    }
}

int64_t harness_run_integer(struct harness *harness, struct session *session, const char *line) {
    const char *reply = harness_run(harness, session, line);
    int64_t value = 0;
    struct bytes digits = {.at = reply + 1, .size = strcspn(reply + 1, "\r")};
    if (reply[0] != ':' || !bytes_parse_i64(digits, &value)) {
        print_error("%s\n--- expected an integer, answered\n%s\n", line, reply);
        fail();
    }
    return value;
}

int harness_tear_down(void **state) {
    harness_destroy(*state);
    return 0;
}
