/* See redis_ask.h. */
#include "server/migration/redis_ask.h"

#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "codec/bytes.h"
#include "server/rdb/rdb_bytes.h"
#include "server/system/log.h"

enum {
#ifdef SERVER_TINY
    READ_SIZE = 64,
    INPUT_FULL = 256,
    KEYS_AT_ONCE = 3,
#else
    READ_SIZE = 64 * 1024,
    INPUT_FULL = 256 * 1024, /* more is read only where an answer is longer */
    KEYS_AT_ONCE = 100,
#endif
    MEMBERS_AT_ONCE = 10000,         /* of the boards that are here */
    ANSWER_MAX = 8 << 20,            /* bytes, but of values */
    PIECE_MAX = 16 * 1024,           /* of a value */
    BODY_HELD = RDB_FOOTER_SIZE + 1, /* the value's end is read when its checksum is known */
    READS_MAX = 4,
    RETRY_MS = 1000,
    WORDS_MAX = 4,
    LARGE_SIZE = 64 * 1024, /* bytes of a value */
    BYTES_A_MS = 1000,      /* of large values that are asked for again */
    AGAIN_MS = 60 * 1000,   /* a later question is a first one */
    PAUSE_MAX_MS = 30 * 1000,
    QUIET_MS = 100,
};

#define KEY_TRIED "leaderboard:asks"
#define RIGHTS                                                                                     \
    "+psync +replconf +ping +select +multi +exec +info +type +dump +pttl +pexpiretime +command ~*"

/* ---- failing ---- */

static void redis_ask_free_poll(uv_handle_t *handle) {
    memory_free(handle);
}

void redis_ask_close(struct redis_ask *ask) {
    struct redis_apply *apply = &ask->stream->apply;
    for (struct redis_asked *at = apply->asked.first; at != NULL; at = at->next) {
        at->state = at->state == REDIS_ASKED_SENT ? REDIS_ASKED_WAITS : at->state;
        at->is_void = false;
    }
    if (ask->state == REDIS_ASK_KEYS) {
        rdb_load_end_value(&apply->load);
    }
    ask->state = REDIS_ASK_CLOSED;
    ask->has_work = false;
    ask->stream->limit = UINT64_MAX;
    if (ask->tls != NULL) {
        tls_destroy(ask->tls);
        ask->tls = NULL;
    }
    if (ask->poll != NULL) {
        uv_poll_stop(ask->poll);
        uv_close((uv_handle_t *)ask->poll, redis_ask_free_poll);
        ask->poll = NULL;
        ask->polled = 0;
    }
    if (ask->fd >= 0) {
        close(ask->fd);
        ask->fd = -1;
    }
    buffer_deinit(&ask->input);
    buffer_deinit(&ask->output);
}

__attribute__((format(printf, 2, 3))) static void redis_ask_lose(struct redis_ask *ask,
                                                                 const char *format, ...) {
    char before[sizeof ask->error];
    va_list arguments;
    memcpy(before, ask->error, sizeof before);
    va_start(arguments, format);
    vsnprintf(ask->error, sizeof ask->error, format, arguments);
    va_end(arguments);
    redis_ask_close(ask);
    if (strcmp(before, ask->error) != 0) {
        log_write(LOG_WARNING, "replication: the source cannot be asked: %s", ask->error);
    }
}

/* ---- answers as bytes ---- */

/* The next line of an answer, without its end, and what is behind it. false: it is not there yet. */
static bool redis_ask_take_line(struct bytes *bytes, struct bytes *line) {
    const char *end = bytes->size > 0 ? memchr(bytes->at, '\n', bytes->size) : NULL;
    if (end == NULL) {
        return false;
    }
    *line = (struct bytes){.at = bytes->at, .size = (size_t)(end - bytes->at)};
    *bytes = bytes_behind(*bytes, line->size + 1);
    line->size -= line->size > 0 && line->at[line->size - 1] == '\r';
    return true;
}

/* The number behind a line's first byte; -1: there is none. */
static int64_t redis_ask_number(struct bytes line) {
    int64_t number;
    bool is_number = line.size > 1 && bytes_parse_i64(bytes_behind(line, 1), &number);
    return is_number ? number : -1;
}

/* A value: a line, or bytes of its own, or the head of so many values. false: it is not there as a whole. */
struct answer {
    char type; /* '+' '-' ':' '$' '*' */
    int64_t count;
    struct bytes text;
};
static bool redis_ask_take_answer(struct bytes *bytes, struct answer *answer) {
    struct bytes line;
    struct bytes rest = *bytes;
    if (!redis_ask_take_line(&rest, &line)) {
        return false;
    }
    *answer = (struct answer){.type = line.size > 0 ? line.at[0] : '\0',
                              .count = redis_ask_number(line),
                              .text = line.size > 0 ? bytes_behind(line, 1) : line};
    if (answer->type == '$' && answer->count >= 0) {
        uint64_t size = (uint64_t)answer->count;
        if (rest.size < 2 || rest.size - 2 < size) {
            return false;
        }
        answer->text = (struct bytes){.at = rest.at, .size = size};
        rest = bytes_behind(rest, size + 2);
    }
    *bytes = rest;
    return true;
}

/* The bytes of an answer with all that is in it; 0: it is not there as a whole. */
static size_t redis_ask_measure(struct bytes bytes) {
    struct bytes rest = bytes;
    struct answer answer;
    for (uint64_t left = 1; left > 0; left--) {
        if (!redis_ask_take_answer(&rest, &answer)) {
            return 0;
        }
        left += answer.type == '*' && answer.count > 0 ? (uint64_t)answer.count : 0;
    }
    return bytes.size - rest.size;
}

/* ---- questions ---- */

static void redis_ask_say_bytes(struct redis_ask *ask, const struct bytes *words, uint32_t count) {
    request_append_head(&ask->output, count);
    for (uint32_t i = 0; i < count; i++) {
        request_append_argument(&ask->output, words[i]);
    }
}

static void redis_ask_say(struct redis_ask *ask, const char *const *words) {
    struct bytes texts[WORDS_MAX];
    uint32_t count = 0;
    while (count < WORDS_MAX && words[count] != NULL) {
        texts[count] = bytes_from_text(words[count]);
        count++;
    }
    redis_ask_say_bytes(ask, texts, count);
}

/* ---- the greeting: whatever may be asked is tried ---- */

static const char *const greetings[][WORDS_MAX] = {
    {"PEXPIRETIME", KEY_TRIED},
    {"COMMAND", "GETKEYSANDFLAGS", "GET", KEY_TRIED},
    {"COMMAND", "GETKEYS", "GET", KEY_TRIED},
    {"COMMAND", "INFO", "GET"},
    {"INFO", "server"},
    {"SELECT", "0"},
    {"PTTL", KEY_TRIED},
    {"TYPE", KEY_TRIED},
    {"DUMP", KEY_TRIED},
    {"MULTI"},
    {"INFO", "replication"},
    {"EXEC"},
};
enum {
    GREETING_EXPIRE_TIME,
    GREETING_KEY_FLAGS,
    GREETING_SERVER = 4,
    GREETINGS = sizeof greetings / sizeof greetings[0]
};

void redis_ask_greet(struct redis_ask *ask, const char *user, const char *password) {
    bool has_user = user != NULL && user[0] != '\0';
    ask->has_auth = password != NULL && password[0] != '\0';
    if (ask->has_auth) {
        redis_ask_say(ask, (const char *const[WORDS_MAX]){"AUTH", has_user ? user : password,
                                                          has_user ? password : NULL});
    }
    for (uint32_t i = 0; i < GREETINGS; i++) {
        redis_ask_say(ask, greetings[i]);
    }
    ask->greeting = 0;
    ask->state = REDIS_ASK_GREETS;
}

static bool redis_ask_begins_with(struct bytes text, const char *wanted) {
    size_t size = strlen(wanted);
    return text.size >= size && memcmp(text.at, wanted, size) == 0;
}

/* false: the connection is lost. */
static bool redis_ask_take_greeting(struct redis_ask *ask, struct bytes bytes) {
    struct answer answer;
    uint32_t at = ask->greeting++;
    bool is_whole = redis_ask_take_answer(&bytes, &answer);
    CHECK(is_whole); /* measured */
    bool is_error = answer.type == '-';
    if (ask->has_auth && at == 0) {
        if (is_error) {
            redis_ask_lose(ask, "it does not take masterauth: %s", log_quote(answer.text).text);
        }
        return !is_error;
    }
    at -= ask->has_auth;
    bool is_optional = at == GREETING_EXPIRE_TIME || at == GREETING_KEY_FLAGS;
    bool is_unknown = redis_ask_begins_with(answer.text, "ERR unknown command") ||
                      redis_ask_begins_with(answer.text, "ERR Unknown subcommand") ||
                      redis_ask_begins_with(answer.text, "ERR unknown subcommand");
    if (is_error && !(is_optional && is_unknown)) {
        ask->is_denied = is_unknown || redis_ask_begins_with(answer.text, "NOPERM");
        redis_ask_lose(ask, "%s: %s%s", greetings[at][0], log_quote(answer.text).text,
                       ask->is_denied ? ". Following it takes these rights there: " RIGHTS : "");
        return false;
    }
    if (at == GREETING_EXPIRE_TIME) {
        ask->has_expire_times = !is_error;
    } else if (at == GREETING_KEY_FLAGS) {
        ask->stream->apply.has_key_flags = !is_error;
    } else if (at == GREETING_SERVER) {
        /* Valkey 9 has a file format of its own, which says what a value's type means. */
        static const char field[] = "valkey_version:";
        const struct bytes info = answer.text;
        const char *at_field =
            info.size > 0 ? memmem(info.at, info.size, field, sizeof field - 1) : NULL;
        const char *major = at_field != NULL ? at_field + sizeof field - 1 : NULL;
        bool is_of_its_own = major != NULL && major + 1 < info.at + info.size &&
                             (major[0] == '9' || (major[1] >= '0' && major[1] <= '9'));
        ask->version = is_of_its_own ? RDB_VERSION_VALKEY_MIN : RDB_VERSION_MAX;
    } else if (at == GREETINGS - 1) {
        ask->state = REDIS_ASK_READY;
        ask->has_greeted = true;
        ask->error[0] = '\0';
    }
    return true;
}

/* ---- keys ---- */

/* A large board that is popped all the time would be asked for without an end: each answer is followed by the next
 * pop. So of large values that were answered lately no more than a megabyte a second comes again, of all keys together,
 * while commands come. Where none do, as behind CLIENT PAUSE WRITE, nothing waits. */

static struct redis_ask_recent *
redis_ask_find_recent(struct redis_ask *ask, const struct redis_asked *asked, uint64_t *hash) {
    int64_t now_ms = ask->stream->apply.now_us / 1000;
    *hash =
        XXH3_64bits_withSeed(asked->name, asked->name_size, ask->stream->seed + asked->database);
    for (uint32_t i = 0; i < REDIS_ASK_RECENT; i++) {
        if (ask->recent[i].hash == *hash && now_ms - ask->recent[i].at_ms < AGAIN_MS) {
            return &ask->recent[i];
        }
    }
    return NULL;
}

static bool redis_ask_must_pause(struct redis_ask *ask, const struct redis_asked *asked) {
    const struct redis_apply *apply = &ask->stream->apply;
    uint64_t hash;
    return apply->now_us / 1000 < ask->again_at_ms &&
           apply->now_us - apply->run_at_us < QUIET_MS * 1000 &&
           redis_ask_find_recent(ask, asked, &hash) != NULL;
}

/* Those of one database. */
static uint32_t redis_ask_choose_keys(struct redis_ask *ask) {
    struct redis_asked *first = NULL;
    uint32_t count = 0;
    uint64_t size = 0;
    for (struct redis_asked *at = ask->stream->apply.asked.first;
         at != NULL && count < KEYS_AT_ONCE && size < MEMBERS_AT_ONCE; at = at->next) {
        if (at->state == REDIS_ASKED_WAITS && (first == NULL || at->database == first->database) &&
            !redis_ask_must_pause(ask, at)) {
            first = first == NULL ? at : first;
            at->state = REDIS_ASKED_SENT;
            /* What makes an answer long is most likely here already. */
            const struct registry_key *key =
                at->wants_value ? registry_peek(ask->stream->apply.registry, at->database,
                                                redis_stream_asked_name(at), REDIS_APPLY_LONG_AGO)
                                : NULL;
            size += key == NULL                   ? 0
                    : key->kind == REGISTRY_BOARD ? board_count(&key->board)
                                                  : hash_count(registry_hash(key));
            count++;
        }
    }
    ask->asked = first;
    return count;
}

/* The next one that was sent, this one or behind it. */
static struct redis_asked *redis_ask_find_sent(struct redis_asked *at) {
    while (at != NULL && at->state != REDIS_ASKED_SENT) {
        at = at->next;
    }
    return at;
}

static void redis_ask_send_keys(struct redis_ask *ask, uint64_t received) {
    char number[24];
    uint32_t count = redis_ask_choose_keys(ask);
    if (count == 0) {
        return;
    }
    snprintf(number, sizeof number, "%u", (unsigned)ask->asked->database);
    redis_ask_say(ask, (const char *const[WORDS_MAX]){"SELECT", number});
    redis_ask_say(ask, (const char *const[WORDS_MAX]){"MULTI"});
    redis_ask_say(ask, (const char *const[WORDS_MAX]){"INFO", "replication"});
    ask->queued_left = 3;
    for (struct redis_asked *at = ask->asked; at != NULL; at = redis_ask_find_sent(at->next)) {
        const struct bytes expiry[] = {ask->has_expire_times ? BYTES("PEXPIRETIME") : BYTES("PTTL"),
                                       redis_stream_asked_name(at)};
        const struct bytes value[] = {at->wants_value ? BYTES("DUMP") : BYTES("TYPE"),
                                      redis_stream_asked_name(at)};
        if (at->wants_value) {
            redis_ask_say_bytes(ask, expiry, 2);
        }
        redis_ask_say_bytes(ask, value, 2);
        ask->queued_left += 1 + at->wants_value;
    }
    redis_ask_say(ask, (const char *const[WORDS_MAX]){"EXEC"});
    ask->next = REDIS_ASK_QUEUED;
    ask->stream->limit = received;
    ask->state = REDIS_ASK_KEYS;
}

void redis_ask_send(struct redis_ask *ask, uint64_t received) {
    struct redis_apply *apply = &ask->stream->apply;
    if (ask->state != REDIS_ASK_READY) {
        return;
    }
    if (apply->question != REDIS_QUESTION_NONE) {
        buffer_append_bytes(&ask->output, buffer_bytes(&apply->question_words));
        ask->output.is_broken |= apply->question_words.is_broken;
        ask->state = REDIS_ASK_COMMAND;
    } else {
        redis_ask_send_keys(ask, received);
    }
}

/* false: the connection is lost. */
static bool redis_ask_fail_answer(struct redis_ask *ask, struct bytes line) {
    redis_ask_lose(ask, "it answers with: %s", log_quote(line).text);
    return false;
}

static void redis_ask_answered(struct redis_ask *ask) {
    struct redis_asked *asked = ask->asked;
    asked->state = asked->is_void ? REDIS_ASKED_WAITS : REDIS_ASKED_ANSWERED;
    asked->is_void = false;
    asked->until = ask->offset;
}

/* On to the next key, or the end. */
static void redis_ask_go_on(struct redis_ask *ask) {
    struct redis_stream *stream = ask->stream;
    ask->asked = redis_ask_find_sent(ask->asked);
    if (ask->asked != NULL) {
        ask->next = ask->asked->wants_value ? REDIS_ASK_EXPIRY : REDIS_ASK_TYPE;
        return;
    }
    ask->state = REDIS_ASK_READY;
    stream->limit = UINT64_MAX;
    stream->answered = redis_stream_end_asked(&stream->apply.asked, stream->offset);
}

static bool redis_ask_take_offset(struct redis_ask *ask, const struct answer *answer) {
    static const char field[] = "master_repl_offset:";
    struct bytes line;
    struct bytes info = answer->text;
    bool is_found = false;
    /* master_replid, or master_replid2, since the source has become a master itself. */
    bool is_same = ask->id == NULL ||
                   (info.size > 0 && memmem(info.at, info.size, ask->id, strlen(ask->id)) != NULL);
    while (!is_found && redis_ask_take_line(&info, &line)) {
        is_found = redis_ask_begins_with(line, field) &&
                   bytes_parse_u64(bytes_behind(line, sizeof field - 1), &ask->offset);
    }
    if (answer->type != '$' || !is_found || !is_same || ask->offset < ask->stream->limit) {
        redis_ask_lose(ask, "its INFO replication is not that of the server whose stream comes");
        return false;
    }
    ask->stream->limit = ask->offset;
    redis_ask_go_on(ask);
    return true;
}

/* ---- values ---- */

/* false: it cannot be held. */
static bool redis_ask_stop(struct redis_ask *ask, const char *error) {
    struct redis_apply *apply = &ask->stream->apply;
    return apply->error[0] != '\0' ? false : redis_apply_fail(apply, "%s", error);
}

/* The footer: version and checksum, and the last byte in front of it. false: it is wrong. */
static bool redis_ask_end_body(struct redis_ask *ask) {
    const char *at = ask->input.at;
    unsigned version = (unsigned)((unsigned char)at[1] | (unsigned char)at[2] << 8);
    uint64_t stored = bytes_get_u64(at + 3);
    ask->crc = rdb_bytes_crc(ask->crc, at, 3);
    bool is_known = rdb_knows_version(version) &&
                    (version >= RDB_VERSION_VALKEY_MIN) == (ask->version >= RDB_VERSION_VALKEY_MIN);
    if (!is_known || (stored != 0 && stored != ask->crc)) {
        return redis_apply_fail(
            &ask->stream->apply, "key '%s' of database %u: the source's DUMP has %s %u%s",
            bytes_show(redis_stream_asked_name(ask->asked)).text, (unsigned)ask->asked->database,
            is_known ? "a wrong checksum, in RDB version" : "RDB version", version,
            is_known ? "" : ", which needs a newer server here");
    }
    rdb_reader_feed(&ask->stream->apply.load.reader, (struct bytes){.at = at, .size = 1});
    buffer_drop_front(&ask->input, BODY_HELD + 2);
    ask->body_left = 0;
    ask->is_body_hungry = false;
    return true;
}

/* Feed some of what has come. *has_fed false: more bytes are needed. false: error. */
static bool redis_ask_feed_body(struct redis_ask *ask, bool *has_fed) {
    size_t size = ask->input.size < PIECE_MAX ? ask->input.size : PIECE_MAX;
    uint64_t free = ask->body_left - BODY_HELD;
    *has_fed = true;
    if (free == 0) {
        *has_fed = ask->input.size >= BODY_HELD + 2;
        return !*has_fed || redis_ask_end_body(ask);
    }
    size = free < size ? (size_t)free : size;
    *has_fed = size > 0;
    if (size > 0) {
        struct bytes piece = {.at = ask->input.at, .size = size};
        ask->crc = rdb_bytes_crc(ask->crc, piece.at, size);
        rdb_reader_feed(&ask->stream->apply.load.reader, piece);
        buffer_drop_front(&ask->input, size);
        ask->body_left -= size;
        ask->is_body_hungry = false;
    }
    return true;
}

/* false: error. *is_waiting: for bytes. */
static bool redis_ask_read_body(struct redis_ask *ask, bool *is_waiting) {
    struct redis_apply *apply = &ask->stream->apply;
    bool has_fed = true;
    *is_waiting = false;
    if (ask->is_body_hungry) {
        if (ask->body_left == 0) {
            return redis_ask_stop(ask, "a value of the source's DUMP ends early");
        }
        bool is_fine = redis_ask_feed_body(ask, &has_fed);
        *is_waiting = !has_fed;
        return is_fine;
    }
    apply->load.now_us = apply->now_us;
    switch (rdb_load_step(&apply->load)) {
    case RDB_LOAD_MORE:
        ask->is_body_hungry = true;
        return true;
    case RDB_LOAD_STEP:
        return true;
    case RDB_LOAD_FAILED:
        return redis_ask_stop(ask, apply->load.error);
    case RDB_LOAD_DONE:
        break;
    }
    if (ask->body_left > 0) {
        return redis_ask_stop(ask, "a value of the source's DUMP has something behind it");
    }
    redis_apply_raise_time(apply, apply->load.latest_us);
    if (ask->body_size >= LARGE_SIZE) {
        int64_t now_ms = apply->now_us / 1000;
        uint64_t hash;
        struct redis_ask_recent *recent = redis_ask_find_recent(ask, ask->asked, &hash);
        if (recent == NULL) {
            recent = &ask->recent[ask->recent_next++ % REDIS_ASK_RECENT];
            recent->hash = hash;
        } else {
            int64_t begin_ms = ask->again_at_ms > now_ms ? ask->again_at_ms : now_ms;
            int64_t end_ms = begin_ms + (int64_t)(ask->body_size / BYTES_A_MS);
            int64_t last_ms = now_ms + PAUSE_MAX_MS;
            ask->again_at_ms = end_ms < last_ms ? end_ms : last_ms;
        }
        recent->at_ms = now_ms;
    }
    if (!redis_apply_end_value(apply, ask->asked, ask->expire_at_ms, !ask->has_expire_times)) {
        return false;
    }
    redis_ask_answered(ask);
    redis_ask_go_on(ask);
    return true;
}

/* ---- what the source says of a command ---- */

static bool redis_ask_has_word(struct bytes words, const char *word) {
    struct answer answer;
    bool is_there = false;
    while (redis_ask_take_answer(&words, &answer)) {
        is_there |= bytes_is(answer.text, word);
    }
    return is_there;
}

/* By its categories: of sorted sets and hashes, or of other types. */
static enum redis_makes redis_ask_find_makes(struct bytes categories) {
    static const struct {
        const char *word;
        enum redis_makes makes;
    } rows[] = {
        {"@sortedset", REDIS_MAKES_OURS},     {"@hash", REDIS_MAKES_OURS},
        {"@geo", REDIS_MAKES_OURS},           {"@string", REDIS_MAKES_OTHERS},
        {"@list", REDIS_MAKES_OTHERS},        {"@set", REDIS_MAKES_OTHERS},
        {"@stream", REDIS_MAKES_OTHERS},      {"@bitmap", REDIS_MAKES_OTHERS},
        {"@hyperloglog", REDIS_MAKES_OTHERS},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (redis_ask_has_word(categories, rows[i].word)) {
            return rows[i].makes;
        }
    }
    return REDIS_MAKES_ANY;
}

/* One value, without what is behind it. */
static struct bytes redis_ask_part(struct bytes *bytes) {
    struct bytes part = {.at = bytes->at, .size = redis_ask_measure(*bytes)};
    *bytes = bytes_behind(*bytes, part.size);
    return part;
}

/* COMMAND INFO name: one command, of which it says name, arity, flags, first, last, step, categories, tips, keys,
 * subcommands; the last ones since Redis 6 and 7. A command that it does not know has a key, most likely. */
static void redis_ask_take_command(struct redis_ask *ask, struct bytes bytes) {
    enum {
        PART_FLAGS = 2,
        PART_FIRST,
        PART_LAST,
        PART_STEP,
        PART_CATEGORIES,
        PART_SUBCOMMANDS = 9
    };
    struct redis_learned learned = {.makes = REDIS_MAKES_ANY, .first = 1, .last = 1, .step = 1};
    struct answer answer = {.count = 0};
    bool is_known = redis_ask_take_answer(&bytes, &answer); /* of one */
    is_known = is_known && redis_ask_take_answer(&bytes, &answer) && answer.type == '*' &&
               answer.count >= PART_CATEGORIES;
    for (int64_t i = 0, count = answer.count; is_known && i < count && bytes.size > 0; i++) {
        struct bytes part = redis_ask_part(&bytes);
        struct bytes rest = part;
        bool is_whole = redis_ask_take_answer(&rest, &answer);
        CHECK(is_whole); /* measured */
        if (i == PART_FLAGS) {
            learned.needs_keys = redis_ask_has_word(part, "movablekeys");
        } else if (i == PART_FIRST) {
            learned.first = answer.count;
        } else if (i == PART_LAST) {
            int64_t last;
            learned.last = bytes_parse_i64(answer.text, &last) ? last : 0;
        } else if (i == PART_STEP) {
            learned.step = answer.count > 0 ? answer.count : 1;
        } else if (i == PART_CATEGORIES) {
            learned.makes = redis_ask_find_makes(part);
        } else if (i == PART_SUBCOMMANDS) {
            learned.needs_keys |= answer.type == '*' && answer.count > 0;
        }
    }
    redis_apply_learn(&ask->stream->apply, &learned);
}

/* COMMAND GETKEYS: names. GETKEYSANDFLAGS: pairs of a name and its flags. An error: it has none. */
static void redis_ask_take_keys(struct redis_ask *ask, struct bytes bytes) {
    struct redis_apply *apply = &ask->stream->apply;
    struct answer answer;
    bool is_list = redis_ask_take_answer(&bytes, &answer) && answer.type == '*';
    for (int64_t left = is_list ? answer.count : 0; left > 0 && bytes.size > 0; left--) {
        struct bytes part = redis_ask_part(&bytes);
        bool is_only_read = redis_ask_has_word(part, "RO");
        bool is_named = redis_ask_take_answer(&part, &answer);
        if (is_named && answer.type == '*') {
            is_named = redis_ask_take_answer(&part, &answer);
        } else {
            is_only_read = false;
        }
        if (is_named && answer.type == '$' && answer.count >= 0 && !is_only_read) {
            redis_apply_learn_key(apply, answer.text);
        }
    }
    redis_apply_learn_keys(apply);
}

/* ---- reading ---- */

/* An answer in a transaction, which is there as a whole. false: the connection is lost. */
static bool redis_ask_take_part(struct redis_ask *ask, struct bytes bytes) {
    struct answer answer;
    struct redis_asked *asked = ask->asked;
    int64_t now_ms;
    bool is_whole = redis_ask_take_answer(&bytes, &answer);
    CHECK(is_whole); /* measured */
    if (answer.type == '-') {
        return redis_ask_fail_answer(ask, answer.text);
    }
    switch (ask->next) {
    case REDIS_ASK_QUEUED: /* SELECT, MULTI, and what it is of */
        ask->next = --ask->queued_left == 0 ? REDIS_ASK_EXEC : REDIS_ASK_QUEUED;
        return true;
    case REDIS_ASK_OFFSET:
        return redis_ask_take_offset(ask, &answer);
    case REDIS_ASK_EXPIRY:
        now_ms = ask->has_expire_times ? 0 : ask->stream->apply.now_us / 1000;
        ask->expire_at_ms = answer.count < 0 ? REGISTRY_NO_EXPIRY : answer.count + now_ms;
        ask->next = REDIS_ASK_VALUE;
        return answer.type == ':' || redis_ask_fail_answer(ask, answer.text);
    case REDIS_ASK_TYPE:
        /* Its value is asked for next, if it is of ours. */
        asked->wants_value = bytes_is(answer.text, "zset") || bytes_is(answer.text, "hash") ||
                             bytes_is(answer.text, RDB_BOARD_TYPE_NAME);
        asked->is_void |= asked->wants_value;
        if (!asked->wants_value) {
            redis_apply_take_nothing(&ask->stream->apply, asked);
        }
        redis_ask_answered(ask);
        redis_ask_go_on(ask);
        return true;
    case REDIS_ASK_EXEC:
    case REDIS_ASK_VALUE:
    case REDIS_ASK_BODY:
        break;
    }
    CHECK(false);
    return false;
}

/* A line that is the head of more. false: the connection is lost. */
static bool redis_ask_take_head(struct redis_ask *ask, struct bytes line) {
    if (line.size == 0 || line.at[0] == '-') {
        return redis_ask_fail_answer(ask, line);
    }
    if (ask->next == REDIS_ASK_VALUE) {
        /* The head of a value: only its size. */
        struct redis_apply *apply = &ask->stream->apply;
        int64_t size = redis_ask_number(line);
        if (line.at[0] != '$') {
            return redis_ask_fail_answer(ask, line);
        }
        if (size < 0) {
            redis_apply_take_nothing(apply, ask->asked);
            redis_ask_answered(ask);
            redis_ask_go_on(ask);
            return true;
        }
        if (size < BODY_HELD) {
            return redis_ask_fail_answer(ask, line);
        }
        ask->body_size = ask->body_left = (uint64_t)size;
        ask->crc = 0;
        ask->is_body_hungry = true;
        ask->next = REDIS_ASK_BODY;
        redis_apply_begin_value(apply, ask->asked, ask->version);
        return true;
    }
    ask->next = REDIS_ASK_OFFSET;
    return line.at[0] == '*' || redis_ask_fail_answer(ask, line);
}

/* One answer, or a part of one. *is_waiting: it is not there yet. false: it cannot be held. */
static bool redis_ask_take_one(struct redis_ask *ask, bool *is_waiting) {
    struct bytes input = buffer_bytes(&ask->input);
    struct bytes rest = input;
    struct bytes line;
    bool is_of_keys = ask->state == REDIS_ASK_KEYS;
    if (is_of_keys && ask->next == REDIS_ASK_BODY) {
        return redis_ask_read_body(ask, is_waiting);
    }
    bool is_head = is_of_keys && (ask->next == REDIS_ASK_EXEC || ask->next == REDIS_ASK_VALUE);
    size_t size = 0;
    if (is_head && redis_ask_take_line(&rest, &line)) {
        size = input.size - rest.size;
    } else if (!is_head) {
        size = redis_ask_measure(input);
    }
    *is_waiting = size == 0;
    if (size == 0) {
        if (input.size > ANSWER_MAX) {
            redis_ask_lose(ask, "an answer is too long");
        }
        return true;
    }
    struct bytes answer = {.at = input.at, .size = size};
    bool is_open = true;
    if (is_head) {
        is_open = redis_ask_take_head(ask, line);
    } else if (is_of_keys) {
        is_open = redis_ask_take_part(ask, answer);
    } else if (ask->state == REDIS_ASK_GREETS) {
        is_open = redis_ask_take_greeting(ask, answer);
    } else if (ask->state == REDIS_ASK_COMMAND) {
        if (ask->stream->apply.question == REDIS_QUESTION_COMMAND) {
            redis_ask_take_command(ask, answer);
        } else {
            redis_ask_take_keys(ask, answer);
        }
        ask->state = REDIS_ASK_READY;
    } else {
        is_open = redis_ask_fail_answer(ask, answer); /* nothing was asked */
    }
    if (is_open) {
        buffer_drop_front(&ask->input, size);
    }
    return true;
}

bool redis_ask_take(struct redis_ask *ask, uint64_t budget_ns) {
    uint64_t begin_ticks = clock_ticks();
    bool is_waiting = false;
    while (!is_waiting && ask->state >= REDIS_ASK_GREETS &&
           clock_ticks_to_ns(clock_ticks() - begin_ticks) < budget_ns) {
        if (!redis_ask_take_one(ask, &is_waiting)) {
            return false;
        }
    }
    ask->has_work = !is_waiting && ask->state >= REDIS_ASK_GREETS;
    return true;
}

/* ---- the socket ---- */

void redis_ask_init(struct redis_ask *ask, struct redis_stream *stream, uv_loop_t *loop,
                    void (*changed)(void *context), void *context) {
    *ask = (struct redis_ask){.stream = stream,
                              .loop = loop,
                              .changed = changed,
                              .context = context,
                              .fd = -1,
                              .version = RDB_VERSION_MAX};
    buffer_init(&ask->input, 0);
    buffer_init(&ask->output, 0);
}

static void redis_ask_on_ready(uv_poll_t *poll, int status, int events) {
    struct redis_ask *ask = poll->data;
    (void)events;
    if (status != 0) {
        ask->polled = 0; /* libuv has stopped it; there may be more to read */
    }
    ask->changed(ask->context);
}

/* While it has enough to read, more waits with the source. */
static bool redis_ask_may_read(const struct redis_ask *ask) {
    bool is_in_body = ask->state == REDIS_ASK_KEYS && ask->next == REDIS_ASK_BODY;
    return ask->input.size < (is_in_body ? INPUT_FULL : ANSWER_MAX + 1);
}

static void redis_ask_watch(struct redis_ask *ask) {
    bool is_connecting = ask->state == REDIS_ASK_CONNECTING;
    bool wants_write =
        is_connecting || ask->output.size > 0 || (ask->tls != NULL && tls_wants_write(ask->tls));
    bool wants_read = !is_connecting && redis_ask_may_read(ask);
    int events = (wants_read ? UV_READABLE : 0) | (wants_write ? UV_WRITABLE : 0);
    if (ask->poll == NULL || events == ask->polled) {
        return;
    }
    if (events == 0) {
        uv_poll_stop(ask->poll);
        ask->polled = 0;
    } else if (uv_poll_start(ask->poll, events, redis_ask_on_ready) == 0) {
        ask->polled = events;
    }
}

static bool redis_ask_connect(struct redis_ask *ask, int fd) {
    const int yes = 1;
    struct sockaddr_storage address = {.ss_family = AF_UNSPEC};
    socklen_t size = sizeof address;
    if (getpeername(fd, (struct sockaddr *)&address, &size) != 0) {
        return false;
    }
    ask->fd = socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (ask->fd < 0) {
        return false;
    }
    (void)setsockopt(ask->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    (void)setsockopt(ask->fd, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
    return connect(ask->fd, (struct sockaddr *)&address, size) == 0 || errno == EINPROGRESS;
}

void redis_ask_open(struct redis_ask *ask, int fd, struct ssl_ctx_st *context, const char *user,
                    const char *password, int64_t now_ms) {
    ask->heard_at_ms = now_ms;
    ask->retry_at_ms = now_ms + RETRY_MS;
    if (!redis_ask_connect(ask, fd)) {
        redis_ask_lose(ask, "cannot connect: %s", strerror(errno));
        return;
    }
    ask->poll = memory_allocate_zeroed(sizeof *ask->poll);
    if (ask->poll == NULL || uv_poll_init(ask->loop, ask->poll, ask->fd) != 0) {
        memory_free(ask->poll);
        ask->poll = NULL;
        redis_ask_lose(ask, "out of memory");
        return;
    }
    ask->poll->data = ask;
    uv_unref((uv_handle_t *)ask->poll);
    if (context != NULL) {
        ask->tls = tls_create_client(context, ask->fd);
        if (ask->tls == NULL) {
            redis_ask_lose(ask, "out of memory");
            return;
        }
    }
    redis_ask_greet(ask, user, password); /* said when it is connected */
    ask->state = REDIS_ASK_CONNECTING;
    redis_ask_watch(ask);
}

/* From CONNECTING to GREETS, as far as the socket lets it. */
static void redis_ask_go_on_connecting(struct redis_ask *ask) {
    if (ask->state == REDIS_ASK_CONNECTING) {
        int error = 0;
        socklen_t size = sizeof error;
        struct pollfd polled = {.fd = ask->fd, .events = POLLOUT};
        if (poll(&polled, 1, 0) <= 0) {
            return;
        }
        if (getsockopt(ask->fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0) {
            redis_ask_lose(ask, "cannot connect: %s", strerror(error != 0 ? error : errno));
            return;
        }
        ask->state = ask->tls != NULL ? REDIS_ASK_SHAKING : REDIS_ASK_GREETS;
    }
    if (ask->state == REDIS_ASK_SHAKING) {
        switch (tls_handshake(ask->tls)) {
        case TLS_IS_WAITING:
            return;
        case TLS_IS_OPEN:
            ask->state = REDIS_ASK_GREETS;
            return;
        case TLS_HAS_FAILED:
            break;
        }
        const char *error = tls_error(ask->tls);
        redis_ask_lose(ask, "TLS: %s", error != NULL ? error : "the connection was closed");
    }
}

static void redis_ask_read(struct redis_ask *ask, int64_t now_ms) {
    for (int i = 0; i < READS_MAX && ask->state >= REDIS_ASK_GREETS && redis_ask_may_read(ask);
         i++) {
        char *room = buffer_reserve(&ask->input, READ_SIZE);
        if (room == NULL) {
            redis_ask_lose(ask, "out of memory");
            return;
        }
        ssize_t got = ask->tls != NULL ? tls_read(ask->tls, room, READ_SIZE)
                                       : recv(ask->fd, room, READ_SIZE, 0);
        if (got > 0) {
            buffer_commit(&ask->input, (size_t)got);
            ask->heard_at_ms = now_ms;
        } else if (got < 0 && errno == EAGAIN) {
            return;
        } else if (got == 0 && ask->state == REDIS_ASK_READY) {
            redis_ask_close(ask); /* it was idle for the source's timeout */
        } else if (got == 0 || errno != EINTR) {
            redis_ask_lose(ask, "%s", got == 0 ? "it has closed the connection" : strerror(errno));
        }
    }
}

void redis_ask_flush(struct redis_ask *ask, uint64_t received) {
    struct buffer *output = &ask->output;
    bool is_full = false; /* the socket */
    redis_ask_send(ask, received);
    while (output->size > 0 && ask->state >= REDIS_ASK_GREETS && !is_full) {
        ssize_t sent = ask->tls != NULL ? tls_write(ask->tls, output->at, output->size)
                                        : send(ask->fd, output->at, output->size, MSG_NOSIGNAL);
        if (sent > 0) {
            buffer_drop_front(output, (size_t)sent);
        } else if (sent < 0 && errno == EAGAIN) {
            is_full = true;
        } else if (sent == 0 || errno != EINTR) {
            redis_ask_lose(ask, "the connection is lost: %s", strerror(errno));
        }
    }
    if (output->is_broken || ask->input.is_broken) {
        redis_ask_lose(ask, "out of memory");
    }
    redis_ask_watch(ask);
}

bool redis_ask_step(struct redis_ask *ask, uint64_t received, int64_t now_ms, int64_t timeout_ms,
                    uint64_t budget_ns) {
    redis_ask_go_on_connecting(ask);
    redis_ask_read(ask, now_ms);
    if (!redis_ask_take(ask, budget_ns)) {
        return false;
    }
    if (ask->state == REDIS_ASK_READY || ask->has_work) {
        ask->heard_at_ms = now_ms; /* nothing is asked, or not all is read */
    }
    redis_ask_flush(ask, received);
    if (ask->state != REDIS_ASK_CLOSED && now_ms - ask->heard_at_ms > timeout_ms) {
        redis_ask_lose(ask, "it said nothing for repl-timeout");
    }
    ask->has_work |= ask->tls != NULL && tls_has_input(ask->tls) && redis_ask_may_read(ask);
    return true;
}
