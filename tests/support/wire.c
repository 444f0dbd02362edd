/* A client down to the byte; see wire.h. */
#include "tests/support/wire.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/support/process.h"
#include "tests/support/test.h"

enum {
    WORDS_MAX = 128,
    READ_SIZE = 65536,
};

/* ---- text ---- */

static void text_reserve(struct text *text, size_t size) {
    if (text->capacity - text->size <= size) {
        text->capacity = (text->size + size + 1) * 2;
        text->at = realloc(text->at, text->capacity);
        assert_non_null(text->at);
    }
}

void text_free(struct text *text) {
    free(text->at);
    *text = (struct text){.at = NULL};
}

void text_add(struct text *text, const void *at, size_t size) {
    text_reserve(text, size);
    memcpy(text->at + text->size, at, size);
    text->size += size;
    text->at[text->size] = '\0';
}

__attribute__((format(printf, 2, 0))) static void
text_format_list(struct text *text, const char *format, va_list values) {
    va_list again;
    va_copy(again, values);
    int size = vsnprintf(NULL, 0, format, again);
    va_end(again);
    assert_true(size >= 0);
    text_reserve(text, (size_t)size);
    vsnprintf(text->at + text->size, (size_t)size + 1, format, values);
    text->size += (size_t)size;
}

void text_format(struct text *text, const char *format, ...) {
    va_list values;
    va_start(values, format);
    text_format_list(text, format, values);
    va_end(values);
}

void text_command_words(struct text *text, const char *const *words, const size_t *sizes,
                        size_t count) {
    text_format(text, "*%zu\r\n", count);
    for (size_t i = 0; i < count; i++) {
        text_format(text, "$%zu\r\n", sizes[i]);
        text_add(text, words[i], sizes[i]);
        text_add(text, "\r\n", 2);
    }
}

static void text_add_line(struct text *text, const char *line) {
    const char *words[WORDS_MAX];
    size_t sizes[WORDS_MAX];
    size_t count = 0;
    for (const char *at = line;; at++) {
        assert_true(count < WORDS_MAX);
        words[count] = at;
        at += sizes[count] = strcspn(at, " ");
        count++;
        if (!*at) {
            break;
        }
    }
    text_command_words(text, words, sizes, count);
}

void text_command(struct text *text, const char *format, ...) {
    struct text line = {.at = NULL};
    va_list values;
    va_start(values, format);
    text_format_list(&line, format, values);
    va_end(values);
    text_add_line(text, line.at);
    text_free(&line);
}

/* ---- the socket ---- */

struct wire wire_open(int fd) {
    assert_true(fd >= 0);
    struct wire wire = {.fd = fd};
    text_reserve(&wire.held, READ_SIZE);
    return wire;
}

void wire_close(struct wire *wire) {
    if (wire->fd >= 0) {
        close(wire->fd);
    }
    wire->fd = -1;
    wire->held_at = 0;
    text_free(&wire->held);
    text_free(&wire->reply);
}

void wire_abort(struct wire *wire) {
    struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    setsockopt(wire->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    wire_close(wire);
}

static short wait_for(const struct wire *wire, short events, int limit_ms) {
    struct pollfd poller = {.fd = wire->fd, .events = events};
    int ready;
    do {
        ready = poll(&poller, 1, limit_ms);
    } while (ready < 0 && errno == EINTR);
    return ready > 0 ? poller.revents : 0;
}

/* Take in what has arrived: bytes, 0 when the peer has closed, -1 when nothing is there. */
static ssize_t receive(struct wire *wire) {
    if (wire->held_at == wire->held.size) {
        wire->held_at = wire->held.size = 0;
    }
    text_reserve(&wire->held, READ_SIZE);
    ssize_t got = recv(wire->fd, wire->held.at + wire->held.size, READ_SIZE, MSG_DONTWAIT);
    if (got < 0) {
        return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? -1 : 0;
    }
    wire->held.size += (size_t)got;
    return got;
}

void wire_send(struct wire *wire, const void *at, size_t size) {
    const char *from = at;
    while (size > 0) {
        short ready = wait_for(wire, POLLIN | POLLOUT, WIRE_LIMIT_MS);
        if (!ready) {
            fail_msg("the server took no input for %d ms", WIRE_LIMIT_MS);
        }
        if (ready & POLLIN && receive(wire) == 0) {
            fail_msg("the server closed with %zu bytes still to send", size);
        }
        if (ready & POLLOUT) {
            ssize_t sent = send(wire->fd, from, size, MSG_NOSIGNAL | MSG_DONTWAIT);
            if (sent < 0 && errno != EAGAIN && errno != EINTR) {
                fail_msg("send: %s", strerror(errno));
            }
            from += sent > 0 ? sent : 0;
            size -= sent > 0 ? (size_t)sent : 0;
        }
    }
}

void wire_send_text(struct wire *wire, const char *text) {
    wire_send(wire, text, strlen(text));
}

size_t wire_push(struct wire *wire, const void *at, size_t size, int quiet_ms) {
    const char *from = at;
    size_t done = 0;
    while (done < size) {
        if (!wait_for(wire, POLLOUT, quiet_ms)) {
            break;
        }
        ssize_t sent = send(wire->fd, from + done, size - done, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno != EAGAIN && errno != EINTR) {
            break;
        }
        done += sent > 0 ? (size_t)sent : 0;
    }
    return done;
}

/* Have at least size bytes held: false when the peer closes before. */
static bool hold(struct wire *wire, size_t size) {
    while (wire->held.size - wire->held_at < size) {
        if (!wait_for(wire, POLLIN, WIRE_LIMIT_MS)) {
            fail_msg("no answer for %d ms", WIRE_LIMIT_MS);
        }
        if (receive(wire) == 0) {
            return false;
        }
    }
    return true;
}

void wire_expect_bytes(struct wire *wire, const void *at, size_t size) {
    bool is_whole = hold(wire, size);
    size_t got = wire->held.size - wire->held_at;
    const char *from = wire->held.at + wire->held_at;
    if (!is_whole || memcmp(from, at, size) != 0) {
        size_t shown = got < size ? got : size;
        fail_msg("expected \"%.*s\", got \"%.*s\"%s", (int)size, (const char *)at, (int)shown, from,
                 is_whole ? "" : " and the end");
    }
    wire->held_at += size;
}

void wire_expect(struct wire *wire, const char *text) {
    wire_expect_bytes(wire, text, strlen(text));
}

bool wire_is_closed(struct wire *wire, int limit_ms) {
    int64_t give_up_at = process_now_ms() + limit_ms;
    for (;;) {
        int64_t left_ms = give_up_at - process_now_ms();
        if (!wait_for(wire, POLLIN, left_ms > 0 ? (int)left_ms : 0)) {
            return false;
        }
        wire->held_at = wire->held.size;
        if (receive(wire) == 0) {
            return true;
        }
    }
}

bool wire_is_silent(struct wire *wire, int quiet_ms) {
    return wire->held_at == wire->held.size && wait_for(wire, POLLIN, quiet_ms) == 0;
}

/* ---- replies ---- */

/* The next line without its end; NULL: closed. It stays where it is until more is received. */
static char *next_line(struct wire *wire) {
    size_t searched = 0;
    for (;;) {
        size_t held = wire->held.size - wire->held_at;
        char *from = wire->held.at + wire->held_at;
        char *end = held > searched ? memmem(from + searched, held - searched, "\r\n", 2) : NULL;
        if (end) {
            *end = '\0';
            wire->held_at += (size_t)(end - from) + 2;
            return from;
        }
        searched = held > 0 ? held - 1 : 0;
        if (!hold(wire, held + 1)) {
            return NULL;
        }
    }
}

static bool render(struct wire *wire);

static bool render_list(struct wire *wire, const char *open, long count, const char *close_text) {
    text_format(&wire->reply, "%s", open);
    for (long i = 0; i < count; i++) {
        if (i > 0) {
            text_add(&wire->reply, " ", 1);
        }
        if (!render(wire)) {
            return false;
        }
    }
    text_format(&wire->reply, "%s", close_text);
    return true;
}

static bool render_bulk(struct wire *wire, const char *mark, long size) {
    if (!hold(wire, (size_t)size + 2)) {
        return false;
    }
    text_format(&wire->reply, "%s", mark);
    text_add(&wire->reply, wire->held.at + wire->held_at, (size_t)size);
    assert_memory_equal(wire->held.at + wire->held_at + size, "\r\n", 2);
    wire->held_at += (size_t)size + 2;
    return true;
}

static bool render(struct wire *wire) {
    const char *line = next_line(wire);
    if (!line) {
        return false;
    }
    char *end = NULL;
    long count = strtol(line + 1, &end, 10);
    bool is_sized = strchr("$*%~>=", line[0]) && line[0] && line[1];
    if (is_sized && (*end != '\0' || count < -1)) {
        fail_msg("not a length: \"%s\"", line);
    }
    if (is_sized && count < 0) {
        text_format(&wire->reply, "nil");
        return true;
    }
    switch (line[0]) {
    case '$':
        return render_bulk(wire, "", count);
    case '=':
        return render_bulk(wire, "=", count);
    case '*':
        return render_list(wire, "[", count, "]");
    case '~':
        return render_list(wire, "~[", count, "]");
    case '>':
        return render_list(wire, ">[", count, "]");
    case '%':
        return render_list(wire, "{", 2 * count, "}");
    case '+':
        text_format(&wire->reply, "%s", line + 1);
        return true;
    case '_':
        text_format(&wire->reply, "nil");
        return true;
    case '-':
    case ':':
    case ',':
    case '#':
    case '(':
        text_format(&wire->reply, "%s", line);
        return true;
    default:
        fail_msg("not a reply: \"%s\"", line);
        return false;
    }
}

const char *wire_try_reply(struct wire *wire) {
    wire->reply.size = 0;
    text_add(&wire->reply, "", 0);
    return render(wire) ? wire->reply.at : NULL;
}

const char *wire_reply(struct wire *wire) {
    const char *reply = wire_try_reply(wire);
    if (!reply) {
        fail_msg("the server closed instead of answering");
    }
    return reply;
}

const char *wire_ask(struct wire *wire, const char *command) {
    struct text request = {.at = NULL};
    text_add_line(&request, command);
    wire_send(wire, request.at, request.size);
    text_free(&request);
    return wire_reply(wire);
}

int64_t wire_ask_integer(struct wire *wire, const char *command) {
    const char *reply = wire_ask(wire, command);
    if (reply[0] != ':') {
        fail_msg("%s: expected an integer, got \"%s\"", command, reply);
    }
    return strtoll(reply + 1, NULL, 10);
}

void wire_check(struct wire *wire, const char *command, const char *expected) {
    const char *reply = wire_ask(wire, command);
    if (strcmp(reply, expected) != 0) {
        fail_msg("%s: expected \"%s\", got \"%s\"", command, expected, reply);
    }
}

void wire_check_prefix(struct wire *wire, const char *command, const char *prefix) {
    const char *reply = wire_ask(wire, command);
    if (strncmp(reply, prefix, strlen(prefix)) != 0) {
        fail_msg("%s: expected \"%s...\", got \"%s\"", command, prefix, reply);
    }
}

int64_t wire_info(struct wire *wire, const char *name) {
    char wanted[64];
    snprintf(wanted, sizeof wanted, "\n%s:", name);
    const char *at = strstr(wire_ask(wire, "INFO everything"), wanted);
    if (at == NULL) {
        fail_msg("INFO does not tell %s", name);
    }
    return strtoll(at + strlen(wanted), NULL, 10);
}

void wire_wait_info_range(struct wire *wire, const char *name, int64_t low, int64_t high) {
    int64_t give_up_at = process_now_ms() + WIRE_LIMIT_MS;
    for (int64_t value; (value = wire_info(wire, name)) < low || value > high;) {
        if (process_now_ms() > give_up_at) {
            fail_msg("%s never was within %lld and %lld, it is %lld", name, (long long)low,
                     (long long)high, (long long)value);
        }
        process_sleep_ms(5);
    }
}

void wire_wait_info(struct wire *wire, const char *name, int64_t value) {
    wire_wait_info_range(wire, name, value, value);
}

void wire_wait_loaded(struct wire *wire) {
    int64_t give_up_at = process_now_ms() + PROCESS_START_LIMIT_MS;
    while (strncmp(wire_ask(wire, "DBSIZE"), "-LOADING", 8) == 0) {
        assert_true(process_now_ms() < give_up_at);
        process_sleep_ms(5);
    }
}
