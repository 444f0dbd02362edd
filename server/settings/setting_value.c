/* Values of settings: words -> fields of struct settings, and back to text.
 *
 *     "proto-max-bulk-len 64mb"  ->  settings.proto_max_bulk_len = 67108864
 *                                ->  "67108864" (CONFIG GET), "64mb" (a file)
 *
 * A setting's kind says where its field is, how it is parsed and which values are allowed. Error
 * texts are those of Redis where it has them: clients and operators know them. */
#include "server/settings/setting_private.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <limits.h>
#include <net/if.h>
#include <stdlib.h>
#include <sys/un.h>

#include "server/system/log.h"

enum value_type {
    VALUE_INTEGER,         /* int64_t */
    VALUE_OCTAL,           /* int64_t */
    VALUE_SIZE,            /* uint64_t, with units */
    VALUE_SIZE_OR_PERCENT, /* int64_t: a size, or a percentage if negative */
    VALUE_BOOLEAN,         /* bool */
    VALUE_CHOICE,          /* int: an index of choices */
    VALUE_STRING,          /* char *, owned; minimum and maximum limit its size */
    VALUE_DIRECTORY,       /* the same, the path of a directory */
    VALUE_FILE_NAME,       /* the same, a name without directories */
    VALUE_ONLY,            /* no field: the only allowed value is choices[0]; choices[1] says why */
    VALUE_BIND,
    VALUE_OUTPUT_LIMIT,
    VALUE_SAVE,
    VALUE_LAYOUT,
    VALUE_BOARD,
    VALUE_DEFAULT_LAYOUT,
};

struct value_kind {
    enum value_type type;
    bool has_many_words;
    size_t offset;
    int64_t minimum, maximum; /* VALUE_SIZE: as uint64_t */
    const char *const *choices;
};

static const char *const loglevels[] = {
    [LOG_DEBUG] = "debug",
    [LOG_VERBOSE] = "verbose",
    [LOG_NOTICE] = "notice",
    [LOG_WARNING] = "warning",
    NULL,
};
static const char *const databases_only[] = {"16", "the number of databases is fixed"};
static const char *const appendfsyncs[] = {
    [SETTING_APPENDFSYNC_EVERYSEC] = "everysec",
    [SETTING_APPENDFSYNC_ALWAYS] = "always",
    [SETTING_APPENDFSYNC_NO] = "no",
    NULL,
};
static const char *const policy_only[] = {"noeviction",
                                          "a member or a board is never dropped to make room"};

#define FIELD(name) offsetof(struct settings, name)
#define MEBIBYTE    (1024 * 1024)

enum {
    HOST_NAME_SIZE_MAX = 253, /* RFC 1035 */
    FILE_NAME_SIZE_MAX = 255, /* Linux's NAME_MAX */
};

static const struct value_kind kinds[SETTING_ID_COUNT] = {
    [SETTING_BIND] = {.type = VALUE_BIND, .has_many_words = true},
    [SETTING_PORT] = {.type = VALUE_INTEGER, .offset = FIELD(port), .maximum = 65535},
    [SETTING_UNIXSOCKET] = {.type = VALUE_STRING,
                            .offset = FIELD(unixsocket),
                            .maximum = sizeof(((struct sockaddr_un *)0)->sun_path) - 1},
    [SETTING_UNIXSOCKETPERM] = {.type = VALUE_OCTAL,
                                .offset = FIELD(unixsocketperm),
                                .maximum = 0777},
    [SETTING_TCP_BACKLOG] = {.type = VALUE_INTEGER,
                             .offset = FIELD(tcp_backlog),
                             .minimum = 1,
                             .maximum = 65535},
    [SETTING_TIMEOUT] = {.type = VALUE_INTEGER, .offset = FIELD(timeout_s), .maximum = INT32_MAX},
    [SETTING_TCP_KEEPALIVE] = {.type = VALUE_INTEGER,
                               .offset = FIELD(tcp_keepalive_s),
                               .maximum = INT32_MAX},
    [SETTING_PROTECTED_MODE] = {.type = VALUE_BOOLEAN, .offset = FIELD(protected_mode)},
    [SETTING_REQUIREPASS] = {.type = VALUE_STRING,
                             .offset = FIELD(requirepass),
                             .maximum = SETTING_STRING_MAX},
    [SETTING_AUTH_TIMEOUT] = {.type = VALUE_INTEGER,
                              .offset = FIELD(auth_timeout_s),
                              .maximum = INT32_MAX},
    [SETTING_MAXCLIENTS] = {.type = VALUE_INTEGER,
                            .offset = FIELD(maxclients),
                            .minimum = 1,
                            .maximum = UINT32_MAX},
    [SETTING_MAXMEMORY] = {.type = VALUE_SIZE, .offset = FIELD(maxmemory), .maximum = INT64_MAX},
    [SETTING_MAXMEMORY_CLIENTS] = {.type = VALUE_SIZE_OR_PERCENT,
                                   .offset = FIELD(maxmemory_clients),
                                   .maximum = INT64_MAX},
    [SETTING_MAXMEMORY_POLICY] = {.type = VALUE_ONLY, .choices = policy_only},
    [SETTING_PROTO_MAX_BULK_LEN] = {.type = VALUE_SIZE,
                                    .offset = FIELD(proto_max_bulk_len),
                                    .minimum = MEBIBYTE,
                                    .maximum = INT64_MAX},
    [SETTING_CLIENT_QUERY_BUFFER_LIMIT] = {.type = VALUE_SIZE,
                                           .offset = FIELD(client_query_buffer_limit),
                                           .minimum = MEBIBYTE,
                                           .maximum = INT64_MAX},
    [SETTING_CLIENT_OUTPUT_BUFFER_LIMIT] = {.type = VALUE_OUTPUT_LIMIT, .has_many_words = true},
    [SETTING_BUSY_COMMAND_LIMIT] = {.type = VALUE_INTEGER,
                                    .offset = FIELD(busy_command_limit_ms),
                                    .maximum = INT32_MAX},
    [SETTING_DAEMONIZE] = {.type = VALUE_BOOLEAN, .offset = FIELD(daemonize)},
    [SETTING_PIDFILE] = {.type = VALUE_STRING,
                         .offset = FIELD(pidfile),
                         .maximum = SETTING_STRING_MAX},
    [SETTING_LOGFILE] = {.type = VALUE_STRING,
                         .offset = FIELD(logfile),
                         .maximum = SETTING_STRING_MAX},
    [SETTING_LOGLEVEL] = {.type = VALUE_CHOICE, .offset = FIELD(loglevel), .choices = loglevels},
    [SETTING_DATABASES] = {.type = VALUE_ONLY, .choices = databases_only},
    [SETTING_SLOWLOG_LOG_SLOWER_THAN] = {.type = VALUE_INTEGER,
                                         .offset = FIELD(slowlog_log_slower_than_us),
                                         .minimum = -1,
                                         .maximum = INT64_MAX},
    [SETTING_SLOWLOG_MAX_LEN] = {.type = VALUE_INTEGER,
                                 .offset = FIELD(slowlog_max_len),
                                 .maximum = 1000000},
    [SETTING_LATENCY_MONITOR_THRESHOLD] = {.type = VALUE_INTEGER,
                                           .offset = FIELD(latency_monitor_threshold_ms),
                                           .maximum = INT64_MAX},
    [SETTING_LATENCY_TRACKING] = {.type = VALUE_BOOLEAN, .offset = FIELD(latency_tracking)},
    [SETTING_DIR] = {.type = VALUE_DIRECTORY,
                     .offset = FIELD(dir),
                     .minimum = 1,
                     .maximum = SETTING_STRING_MAX},
    [SETTING_APPENDDIRNAME] = {.type = VALUE_FILE_NAME,
                               .offset = FIELD(appenddirname),
                               .minimum = 1,
                               .maximum = FILE_NAME_SIZE_MAX},
    [SETTING_APPENDONLY] = {.type = VALUE_BOOLEAN, .offset = FIELD(appendonly)},
    [SETTING_APPENDFSYNC] = {.type = VALUE_CHOICE,
                             .offset = FIELD(appendfsync),
                             .choices = appendfsyncs},
    [SETTING_AUTO_AOF_REWRITE_PERCENTAGE] = {.type = VALUE_INTEGER,
                                             .offset = FIELD(auto_aof_rewrite_percentage),
                                             .maximum = INT32_MAX},
    [SETTING_AUTO_AOF_REWRITE_MIN_SIZE] = {.type = VALUE_SIZE,
                                           .offset = FIELD(auto_aof_rewrite_min_size),
                                           .maximum = INT64_MAX},
    [SETTING_SAVE] = {.type = VALUE_SAVE, .has_many_words = true},
    [SETTING_STOP_WRITES_ON_BGSAVE_ERROR] = {.type = VALUE_BOOLEAN,
                                             .offset = FIELD(stop_writes_on_bgsave_error)},
    [SETTING_LAYOUT] = {.type = VALUE_LAYOUT, .has_many_words = true},
    [SETTING_BOARD] = {.type = VALUE_BOARD, .has_many_words = true},
    [SETTING_DEFAULT_LAYOUT] = {.type = VALUE_DEFAULT_LAYOUT},
};

static const struct value_kind *kind_of(const struct setting *setting) {
    return &kinds[setting->id];
}

static void *field_of(struct settings *settings, const struct value_kind *kind) {
    return (char *)settings + kind->offset;
}

static const void *field_to_read(const struct settings *settings, const struct value_kind *kind) {
    return (const char *)settings + kind->offset;
}

/* ---- Strings ---- */

char *setting_value_copy(struct bytes text) {
    char *copy = memory_allocate(text.size + 1);
    if (copy != NULL) {
        if (text.size > 0) {
            memcpy(copy, text.at, text.size);
        }
        copy[text.size] = '\0';
    }
    return copy;
}

bool setting_value_replace(char **slot, struct bytes text) {
    char *copy = NULL;
    if (text.size > 0) {
        copy = setting_value_copy(text);
        if (copy == NULL) {
            return false;
        }
    }
    memory_free(*slot);
    *slot = copy;
    return true;
}

static bool fail(char *reason, const char *text) {
    return setting_fail(reason, SETTING_REASON_MAX, "%s", text);
}

static bool fail_without_memory(char *reason) {
    return fail(reason, "out of memory");
}

/* ---- One word in ---- */

static bool assign_integer(int64_t *field, const struct value_kind *kind, struct bytes word,
                           char *reason) {
    int64_t value;
    if (!bytes_parse_i64(word, &value)) {
        return fail(reason, "argument couldn't be parsed into an integer");
    }
    if (value < kind->minimum || value > kind->maximum) {
        return setting_fail(reason, SETTING_REASON_MAX,
                            "argument must be between %" PRId64 " and %" PRId64 " inclusive",
                            kind->minimum, kind->maximum);
    }
    *field = value;
    return true;
}

static bool assign_octal(int64_t *field, const struct value_kind *kind, struct bytes word,
                         char *reason) {
    int64_t value = 0;
    for (size_t i = 0; i < word.size; i++) {
        if (word.at[i] < '0' || word.at[i] > '7') {
            return fail(reason, "argument couldn't be parsed as an octal number");
        }
        /* Clamped just above the maximum, however long the word is. */
        value = value > kind->maximum ? value : value * 8 + (word.at[i] - '0');
    }
    if (word.size == 0) {
        return fail(reason, "argument couldn't be parsed as an octal number");
    }
    if (value > kind->maximum) {
        return setting_fail(reason, SETTING_REASON_MAX,
                            "argument must be between %" PRIo64 " and %" PRIo64 " inclusive",
                            (uint64_t)kind->minimum, (uint64_t)kind->maximum);
    }
    *field = value;
    return true;
}

static const struct {
    const char *name;
    uint64_t bytes;
} size_units[] = {
    {"", 1},        {"b", 1},         {"k", 1000},       {"kb", 1024},
    {"m", 1000000}, {"mb", MEBIBYTE}, {"g", 1000000000}, {"gb", (uint64_t)1024 * MEBIBYTE},
};
enum { SIZE_UNIT_COUNT = sizeof size_units / sizeof size_units[0] };

static bool parse_size(struct bytes word, uint64_t *value) {
    size_t digits = 0;
    while (digits < word.size && word.at[digits] >= '0' && word.at[digits] <= '9') {
        digits++;
    }
    uint64_t number;
    if (!bytes_parse_u64((struct bytes){.at = word.at, .size = digits}, &number)) {
        return false;
    }
    struct bytes unit = {.at = word.at + digits, .size = word.size - digits};
    for (size_t i = 0; i < SIZE_UNIT_COUNT; i++) {
        if (bytes_is(unit, size_units[i].name)) {
            return !__builtin_mul_overflow(number, size_units[i].bytes, value);
        }
    }
    return false;
}

static bool assign_size(uint64_t *field, const struct value_kind *kind, struct bytes word,
                        char *reason) {
    uint64_t value;
    if (!parse_size(word, &value)) {
        return fail(reason, "argument must be a memory value");
    }
    if (value < (uint64_t)kind->minimum || value > (uint64_t)kind->maximum) {
        return setting_fail(reason, SETTING_REASON_MAX,
                            "argument must be between %" PRId64 " and %" PRId64 " inclusive",
                            kind->minimum, kind->maximum);
    }
    *field = value;
    return true;
}

static bool assign_size_or_percent(int64_t *field, const struct value_kind *kind, struct bytes word,
                                   char *reason) {
    bool is_percent = word.size > 0 && word.at[word.size - 1] == '%';
    uint64_t value = 0;
    if (is_percent) {
        word.size--;
    }
    if (is_percent ? !bytes_parse_u64(word, &value) : !parse_size(word, &value)) {
        return fail(reason, "argument must be a memory or percent value");
    }
    if (is_percent && value > 100) {
        return fail(reason, "percentage argument must be less or equal to 100");
    }
    if (value > (uint64_t)kind->maximum) {
        return setting_fail(reason, SETTING_REASON_MAX,
                            "argument must be between 0 and %" PRId64 " inclusive", kind->maximum);
    }
    *field = is_percent ? -(int64_t)value : (int64_t)value;
    return true;
}

static bool assign_boolean(bool *field, struct bytes word, char *reason) {
    if (!bytes_is(word, "yes") && !bytes_is(word, "no")) {
        return fail(reason, "argument must be 'yes' or 'no'");
    }
    *field = bytes_is(word, "yes");
    return true;
}

static bool assign_choice(int *field, const struct value_kind *kind, struct bytes word,
                          char *reason) {
    size_t size =
        (size_t)snprintf(reason, SETTING_REASON_MAX, "argument(s) must be one of the following: ");
    for (int i = 0; kind->choices[i] != NULL; i++) {
        if (bytes_is(word, kind->choices[i])) {
            *field = i;
            return true;
        }
        size += (size_t)snprintf(reason + size, SETTING_REASON_MAX - size, "%s%s",
                                 i > 0 ? ", " : "", kind->choices[i]);
        CHECK(size < SETTING_REASON_MAX);
    }
    return false;
}

static bool assign_string(char **field, const struct value_kind *kind, struct bytes word,
                          char *reason) {
    if (word.size > (size_t)kind->maximum) {
        return setting_fail(reason, SETTING_REASON_MAX,
                            "argument may have at most %" PRId64 " bytes", kind->maximum);
    }
    if (word.size < (size_t)kind->minimum) {
        return fail(reason, "argument can't be empty");
    }
    return setting_value_replace(field, word) || fail_without_memory(reason);
}

static bool assign_file_name(char **field, const struct value_kind *kind, struct bytes word,
                             char *reason) {
    if (memchr(word.at, '/', word.size) != NULL || bytes_is(word, ".") || bytes_is(word, "..")) {
        return fail(reason, "argument can't be a path, just a name");
    }
    return assign_string(field, kind, word, reason);
}

static bool check_only(const struct value_kind *kind, struct bytes word, char *reason) {
    const char *value = kind->choices[0];
    if (bytes_is(word, value)) {
        return true;
    }
    return setting_fail(reason, SETTING_REASON_MAX, "%s, so the only value is %s", kind->choices[1],
                        value[0] != '\0' ? value : "\"\"");
}

/* ---- Many words in ---- */

/* A host name must contain a letter, so that a mistyped IPv4 address is not accepted as one. */
static bool is_host_name(struct bytes word) {
    bool has_letter = false;
    for (size_t i = 0; i < word.size; i++) {
        char byte = word.at[i];
        bool is_letter = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
        has_letter |= is_letter;
        if (!is_letter && !(byte >= '0' && byte <= '9') && byte != '-' && byte != '.') {
            return false;
        }
    }
    return has_letter && word.size <= HOST_NAME_SIZE_MAX && word.at[0] != '-';
}

/* Is it a valid interface name after '%', within the kernel's limit and of bytes that need no
 * quotes? */
static bool is_interface_name(const char *name) {
    size_t size = 0;
    for (; name[size] != '\0'; size++) {
        char byte = name[size];
        bool is_letter = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
        if (!is_letter && !(byte >= '0' && byte <= '9') && strchr("-_.:@", byte) == NULL) {
            return false;
        }
    }
    return size >= 1 && size < IF_NAMESIZE;
}

static bool is_address(struct bytes word) {
    if (word.size > 0 && word.at[0] == '-') {
        word = (struct bytes){.at = word.at + 1, .size = word.size - 1};
    }
    if (is_host_name(word)) {
        return true;
    }
    char text[INET6_ADDRSTRLEN + 32]; /* with an interface name: fe80::1%eth0 */
    if (word.size == 0 || word.size >= sizeof text || memchr(word.at, '\0', word.size) != NULL) {
        return false;
    }
    memcpy(text, word.at, word.size);
    text[word.size] = '\0';
    unsigned char parsed[sizeof(struct in6_addr)];
    if (strcmp(text, "*") == 0 || strcmp(text, "::*") == 0 || inet_pton(AF_INET, text, parsed)) {
        return true;
    }
    char *zone = strchr(text, '%');
    if (zone != NULL) {
        *zone = '\0';
    }
    return inet_pton(AF_INET6, text, parsed) == 1 && (zone == NULL || is_interface_name(zone + 1));
}

static bool assign_bind(struct settings *settings, const struct bytes *words, size_t count,
                        char *reason) {
    if (count > SETTING_LIST_MAX) {
        return setting_fail(reason, SETTING_REASON_MAX, "at most %d addresses are allowed",
                            SETTING_LIST_MAX);
    }
    for (size_t i = 0; i < count; i++) {
        if (!is_address(words[i])) {
            return setting_fail(reason, SETTING_REASON_MAX,
                                "'%s' is not an address: IPv4, IPv6, a host's name, * and ::* are "
                                "allowed, with '-' in front if it may be missing",
                                setting_show(words[i]).text);
        }
    }
    for (size_t i = 0; i < SETTING_LIST_MAX; i++) {
        struct bytes word = i < count ? words[i] : BYTES("");
        if (!setting_value_replace(&settings->bind[i], word)) {
            return fail_without_memory(reason);
        }
    }
    settings->bind_count = (uint32_t)count;
    return true;
}

static bool assign_output_limit(struct setting_output_limit *field, const struct bytes *words,
                                size_t count, char *reason) {
    if (count % 4 != 0) {
        return fail(reason, "Wrong number of arguments in buffer limit configuration.");
    }
    struct setting_output_limit limit = *field;
    for (size_t i = 0; i < count; i += 4) {
        if (!bytes_is(words[i], "normal")) {
            return setting_fail(reason, SETTING_REASON_MAX,
                                "Invalid client class '%s' specified in buffer limit "
                                "configuration: all clients here are of class normal",
                                setting_show(words[i]).text);
        }
        if (!parse_size(words[i + 1], &limit.hard_bytes) ||
            !parse_size(words[i + 2], &limit.soft_bytes) ||
            !bytes_parse_i64(words[i + 3], &limit.soft_seconds) || limit.soft_seconds < 0 ||
            limit.soft_seconds > INT32_MAX) {
            return fail(reason, "Error in hard, soft or soft_seconds setting in buffer limit "
                                "configuration.");
        }
    }
    *field = limit;
    return true;
}

/* Without words: no snapshots. */
static bool assign_save(struct settings *settings, const struct bytes *words, size_t count,
                        const struct setting_place *place, char *reason) {
    bool is_list = place->is_argument || place->file_name != NULL;
    uint32_t before = is_list && settings->is_save_begun ? settings->save_point_count : 0;
    if (count % 2 != 0) {
        return fail(reason, "Invalid save parameters");
    }
    if (before + count / 2 > SETTING_SAVE_POINTS_MAX) {
        return setting_fail(reason, SETTING_REASON_MAX, "at most %d pairs are allowed",
                            SETTING_SAVE_POINTS_MAX);
    }
    struct setting_save_point *point = &settings->save_points[before];
    for (size_t i = 0; i < count; i += 2, point++) {
        if (!bytes_parse_i64(words[i], &point->seconds) || point->seconds < 1 ||
            point->seconds > INT32_MAX || !bytes_parse_i64(words[i + 1], &point->changes) ||
            point->changes < 0) {
            return fail(reason, "Invalid save parameters");
        }
    }
    settings->save_point_count = count > 0 ? before + (uint32_t)(count / 2) : 0;
    settings->is_save_begun = is_list;
    return true;
}

static bool assign_words(struct settings *settings, const struct setting *setting,
                         const struct bytes *words, size_t count, const struct setting_place *place,
                         char *reason) {
    const struct value_kind *kind = kind_of(setting);
    void *field = field_of(settings, kind);
    switch (kind->type) {
    case VALUE_INTEGER:
        return assign_integer(field, kind, words[0], reason);
    case VALUE_OCTAL:
        return assign_octal(field, kind, words[0], reason);
    case VALUE_SIZE:
        return assign_size(field, kind, words[0], reason);
    case VALUE_SIZE_OR_PERCENT:
        return assign_size_or_percent(field, kind, words[0], reason);
    case VALUE_BOOLEAN:
        return assign_boolean(field, words[0], reason);
    case VALUE_CHOICE:
        return assign_choice(field, kind, words[0], reason);
    case VALUE_STRING:
    case VALUE_DIRECTORY:
        return assign_string(field, kind, words[0], reason);
    case VALUE_FILE_NAME:
        return assign_file_name(field, kind, words[0], reason);
    case VALUE_ONLY:
        return check_only(kind, words[0], reason);
    case VALUE_BIND:
        return assign_bind(settings, words, count, reason);
    case VALUE_OUTPUT_LIMIT:
        return assign_output_limit(&settings->output_limit, words, count, reason);
    case VALUE_SAVE:
        return assign_save(settings, words, count, place, reason);
    case VALUE_LAYOUT:
        return setting_board_assign_layout(settings, words, count, place, reason);
    case VALUE_BOARD:
        return setting_board_assign_rule(settings, words, count, place, reason);
    case VALUE_DEFAULT_LAYOUT:
        return setting_board_assign_default(settings, words[0], place, reason);
    }
    check_failed("every type is above", __FILE__, __LINE__);
}

static bool fail_count(const struct setting *setting, char *reason) {
    return setting_fail(reason, SETTING_REASON_MAX, "wrong number of arguments, the form is: %s %s",
                        setting->name, setting->value_syntax);
}

/* A single word with blanks inside is a quoted list, as CONFIG SET and shells pass it. */
static bool assign_list(struct settings *settings, const struct setting *setting, struct bytes list,
                        const struct setting_place *place, char *reason) {
    struct setting_words words;
    if (!setting_words_split(list, &words, reason)) {
        return false;
    }
    if (words.count == 0 && kind_of(setting)->type != VALUE_SAVE) {
        return fail_count(setting, reason);
    }
    return assign_words(settings, setting, words.words, words.count, place, reason);
}

bool setting_value_assign(struct settings *settings, const struct setting *setting,
                          const struct bytes *words, size_t count,
                          const struct setting_place *place, char *reason) {
    bool has_many_words = kind_of(setting)->has_many_words;
    if (count == 0 || (count > 1 && !has_many_words)) {
        return fail_count(setting, reason);
    }
    for (size_t i = 0; i < count; i++) {
        if (words[i].size > 0 && memchr(words[i].at, '\0', words[i].size) != NULL) {
            return fail(reason, "a zero byte is not allowed");
        }
    }
    if (has_many_words && count == 1) {
        return assign_list(settings, setting, words[0], place, reason);
    }
    return assign_words(settings, setting, words, count, place, reason);
}

/* ---- Text out ---- */

/* 67108864 -> "64mb": the largest power of 1024 that divides it. */
static size_t print_size(char *out, uint64_t value, bool is_for_file) {
    const char *unit = "";
    for (size_t i = SIZE_UNIT_COUNT - 1; is_for_file && value > 0 && i > 0; i--) {
        uint64_t bytes = size_units[i].bytes;
        if (bytes % 1024 == 0 && value % bytes == 0) {
            unit = size_units[i].name;
            value /= bytes;
            break;
        }
    }
    return (size_t)sprintf(out, "%" PRIu64 "%s", value, unit);
}

static size_t print_size_or_percent(char *out, int64_t value, bool is_for_file) {
    return value < 0 ? (size_t)sprintf(out, "%" PRId64 "%%", -value)
                     : print_size(out, (uint64_t)value, is_for_file);
}

static size_t print_text(char *out, const char *text, bool is_for_file) {
    struct bytes bytes = bytes_from_text(text != NULL ? text : "");
    if (is_for_file) {
        return setting_words_quote(out, bytes);
    }
    memcpy(out, bytes.at, bytes.size);
    return bytes.size;
}

static size_t print_bind(const struct settings *settings, char *out) {
    size_t size = 0;
    for (uint32_t i = 0; i < settings->bind_count; i++) {
        size += (size_t)sprintf(out + size, "%s%s", i > 0 ? " " : "", settings->bind[i]);
    }
    return size;
}

static size_t print_output_limit(const struct setting_output_limit *limit, char *out,
                                 bool is_for_file) {
    size_t size = (size_t)sprintf(out, "normal ");
    size += print_size(out + size, limit->hard_bytes, is_for_file);
    out[size++] = ' ';
    size += print_size(out + size, limit->soft_bytes, is_for_file);
    return size + (size_t)sprintf(out + size, " %" PRId64, limit->soft_seconds);
}

/* As in Redis: an absolute path, if the directory exists. */
static size_t print_directory(char *out, const char *path, bool is_for_file) {
    char absolute[PATH_MAX];
    if (!is_for_file && realpath(path, absolute) != NULL) {
        path = absolute;
    }
    return print_text(out, path, is_for_file);
}

static size_t print_save(const struct settings *settings, char *out, bool is_for_file) {
    size_t size = 0;
    for (uint32_t i = 0; i < settings->save_point_count; i++) {
        const struct setting_save_point *point = &settings->save_points[i];
        size += (size_t)sprintf(out + size, "%s%" PRId64 " %" PRId64, i > 0 ? " " : "",
                                point->seconds, point->changes);
    }
    return size > 0 ? size : print_text(out, "", is_for_file);
}

static size_t print_value(const struct settings *settings, const struct setting *setting, char *out,
                          bool is_for_file) {
    const struct value_kind *kind = kind_of(setting);
    const void *field = field_to_read(settings, kind);
    switch (kind->type) {
    case VALUE_INTEGER:
        return bytes_print_i64(out, *(const int64_t *)field);
    case VALUE_OCTAL:
        return (size_t)sprintf(out, "%" PRIo64, (uint64_t) * (const int64_t *)field);
    case VALUE_SIZE:
        return print_size(out, *(const uint64_t *)field, is_for_file);
    case VALUE_SIZE_OR_PERCENT:
        return print_size_or_percent(out, *(const int64_t *)field, is_for_file);
    case VALUE_BOOLEAN:
        return print_text(out, *(const bool *)field ? "yes" : "no", false);
    case VALUE_CHOICE:
        return print_text(out, kind->choices[*(const int *)field], false);
    case VALUE_STRING:
    case VALUE_FILE_NAME:
        return print_text(out, *(char *const *)field, is_for_file);
    case VALUE_DIRECTORY:
        return print_directory(out, *(char *const *)field, is_for_file);
    case VALUE_ONLY:
        return print_text(out, kind->choices[0], is_for_file);
    case VALUE_BIND:
        return print_bind(settings, out);
    case VALUE_OUTPUT_LIMIT:
        return print_output_limit(&settings->output_limit, out, is_for_file);
    case VALUE_SAVE:
        return print_save(settings, out, is_for_file);
    case VALUE_DEFAULT_LAYOUT:
        return print_text(out, settings->default_layout_name, is_for_file);
    case VALUE_LAYOUT:
    case VALUE_BOARD:
        break;
    }
    check_failed("settings that repeat are printed line by line", __FILE__, __LINE__);
}

size_t setting_print(const struct settings *settings, const struct setting *setting, char *out) {
    return print_value(settings, setting, out, false);
}

bool setting_print_line(const struct settings *settings, const struct setting *setting,
                        uint32_t index, char *out, size_t *size) {
    if ((setting->flags & SETTING_REPEATS) != 0) {
        return setting_board_print_line(settings, setting->id, index, out, size);
    }
    if (index > 0) {
        return false;
    }
    *size = print_value(settings, setting, out, true);
    return true;
}

bool setting_value_is_equal(const struct settings *a, const struct settings *b,
                            const struct setting *setting) {
    char text_a[SETTING_VALUE_MAX];
    char text_b[SETTING_VALUE_MAX];
    size_t size_a = 0;
    size_t size_b = 0;
    for (uint32_t i = 0;; i++) {
        bool has_a = setting_print_line(a, setting, i, text_a, &size_a);
        bool has_b = setting_print_line(b, setting, i, text_b, &size_b);
        if (!has_a || !has_b) {
            return has_a == has_b;
        }
        if (size_a != size_b || memcmp(text_a, text_b, size_a) != 0) {
            return false;
        }
    }
}
