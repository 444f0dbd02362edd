/* A client down to the byte, for what client libraries hide: cut requests, endless pipelines, slow
 * readers, RESP3 types, closed connections. All waits end after a minute, and then the test fails.
 *
 *     WIRE(wire, process_connect_unix(&server));
 *     wire_check(&wire, "ZADD b 3 zoe", ":1");
 *     wire_check(&wire, "ZRANGE b 0 -1 WITHSCORES", "[zoe 3]");
 *
 * One reply is rendered on one line: "OK", "-ERR ...", ":7", bulk bytes as they are, "nil",
 * "[a b]"; RESP3: "{k v}" map, "~[a b]" set, ">[a b]" push, ",1.5" double, "#t" boolean, "=txt:..."
 * verbatim. */
#ifndef TESTS_SUPPORT_WIRE_H
#define TESTS_SUPPORT_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whatever comes at all comes long before, on the busiest machine too. */
enum { WIRE_LIMIT_MS = 60000 };

/* A growing run of bytes; zeroed is empty. Always terminated behind its last byte once used. */
struct text {
    char *at;
    size_t size, capacity;
};
void text_free(struct text *text);
/* An empty one, which is freed where its block ends. */
#define TEXT(name) __attribute__((cleanup(text_free))) struct text name = {.at = NULL}
void text_add(struct text *text, const void *at, size_t size);
__attribute__((format(printf, 2, 3))) void text_format(struct text *text, const char *format, ...);
/* A request as an array of bulk strings, from words parted by single spaces. */
__attribute__((format(printf, 2, 3))) void text_command(struct text *text, const char *format, ...);
void text_command_words(struct text *text, const char *const *words, const size_t *sizes,
                        size_t count);

struct wire {
    int fd;           /* -1: closed */
    struct text held; /* received and not yet looked at, from held_at on */
    size_t held_at;
    struct text reply; /* the last rendered one */
};

/* fd must be a connected socket; -1 fails the test. */
struct wire wire_open(int fd);
void wire_close(struct wire *wire); /* safe twice */
/* One that is closed where its block ends. */
#define WIRE(name, fd) __attribute__((cleanup(wire_close))) struct wire name = wire_open(fd)
/* Close with a reset instead of an orderly end. */
void wire_abort(struct wire *wire);

/* Send all of it. Whatever arrives meanwhile is kept, so that no pipeline can block both sides. */
void wire_send(struct wire *wire, const void *at, size_t size);
void wire_send_text(struct wire *wire, const char *text);
/* Send without ever reading, until all is gone, the peer has closed, or nothing more went out for
 * quiet_ms. Returns how many bytes went out. */
size_t wire_push(struct wire *wire, const void *at, size_t size, int quiet_ms);

/* The next bytes must be exactly these. */
void wire_expect(struct wire *wire, const char *text);
void wire_expect_bytes(struct wire *wire, const void *at, size_t size);
/* Send a command of words parted by spaces, and its one reply must be this. */
void wire_check(struct wire *wire, const char *command, const char *reply);
/* As wire_check; the reply must begin so. */
void wire_check_prefix(struct wire *wire, const char *command, const char *prefix);
/* Send a command, return its reply; valid until the next one is read. */
const char *wire_ask(struct wire *wire, const char *command);
int64_t wire_ask_integer(struct wire *wire, const char *command);
/* The number behind name in INFO; it must be there. */
int64_t wire_info(struct wire *wire, const char *name);
/* Ask until the number in INFO is this, or within these. */
void wire_wait_info(struct wire *wire, const char *name, int64_t value);
void wire_wait_info_range(struct wire *wire, const char *name, int64_t low, int64_t high);
/* Ask until everything is loaded. */
void wire_wait_loaded(struct wire *wire);
/* Read one reply. wire_try_reply: NULL when the peer closes before it is complete. */
const char *wire_reply(struct wire *wire);
const char *wire_try_reply(struct wire *wire);

/* Drop what arrives until the peer closes: true; false if it is still open after limit_ms. */
bool wire_is_closed(struct wire *wire, int limit_ms);
/* Nothing has arrived for quiet_ms, and the peer has not closed. */
bool wire_is_silent(struct wire *wire, int quiet_ms);

#endif
