/* What the tools share, and their command lines. See tools.h. */
#include "server/tools/tools.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>
#include <uv.h>

#include "codec/bytes.h"
#include "codec/memory.h"
#include "codec/timestamp.h"
#include "server/durability/snapshot.h"
#include "server/durability/verify.h"
#include "server/rdb/rdb.h"
#include "server/settings/settings.h"
#include "server/system/clock.h"
#include "server/system/disk.h"
#include "server/system/log.h"

bool tools_complain(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "leaderboard-server: ");
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\n");
    va_end(arguments);
    return false;
}

bool tools_sync_parent(const char *path) {
    const char *slash = strrchr(path, '/');
    size_t size = slash != NULL ? (size_t)(slash - path) : 0;
    char *parent = memory_allocate(size + 2);
    if (parent == NULL) {
        errno = ENOMEM;
        return false;
    }
    memcpy(parent, path, size);
    memcpy(parent + size, size > 0 ? "" : slash != NULL ? "/" : ".", size > 0 ? 1 : 2);
    int fd = disk_open(AT_FDCWD, parent, O_RDONLY | O_DIRECTORY, 0);
    bool is_synced = fd >= 0 && disk_sync_directory(fd);
    disk_close(fd);
    memory_free(parent);
    return is_synced;
}

int64_t tools_now_us(void) {
    struct timeval now;
    gettimeofday(&now, NULL);
    return (int64_t)now.tv_sec * 1000000 + now.tv_usec;
}

/* ---- a registry as a snapshot ---- */

static void tools_ignore(void *context) {
    (void)context;
}

static bool tools_write_all(struct snapshot *snapshot, int64_t now_us) {
    if (!snapshot_begin(snapshot, now_us)) {
        return false;
    }
    for (;;) {
        (void)!snapshot_step(snapshot, UINT64_MAX, 0, now_us);
        worker_wait(&snapshot->worker);
        switch (snapshot_take_outcome(snapshot)) {
        case SNAPSHOT_NOTHING:
            break;
        case SNAPSHOT_IS_WALKED:
            snapshot_finish(snapshot, SNAPSHOT_NO_JOURNAL);
            break;
        case SNAPSHOT_DONE:
            return true;
        case SNAPSHOT_ABORTED:
            return false;
        }
    }
}

bool tools_save(struct registry *registry, struct store *store, int64_t now_us) {
    struct snapshot *snapshot = memory_allocate_zeroed(sizeof *snapshot);
    if (snapshot == NULL) {
        return false;
    }
    snapshot->registry = registry;
    snapshot->store = store;
    snapshot->changed = tools_ignore;
    bool is_done = false;
    uv_loop_t loop;
    if (uv_loop_init(&loop) == 0) {
        bool is_ready = snapshot_init(snapshot, &loop);
        is_done = is_ready && tools_write_all(snapshot, now_us);
        if (is_ready) {
            snapshot_deinit(snapshot);
        }
        uv_run(&loop, UV_RUN_DEFAULT);
        CHECK(uv_loop_close(&loop) == 0);
    }
    memory_free(snapshot);
    return is_done;
}

/* ---- a connection to a server ---- */

enum { HOST_MAX = 256, LINK_PIECE_SIZE = 16 * 1024 };

__attribute__((format(printf, 2, 3))) static bool tools_link_fail(struct tools_link *link,
                                                                  const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(link->error, sizeof link->error, format, arguments);
    va_end(arguments);
    return false;
}

static const char *tools_link_reason_of(int number) {
    return number == 0                                 ? "the connection was closed"
           : number == EAGAIN || number == EWOULDBLOCK ? "no answer in time"
                                                       : strerror(number);
}

/* What OpenSSL says, or the system. */
static bool tools_link_fail_tls(struct tools_link *link, const char *what) {
    unsigned long code = ERR_peek_last_error();
    const char *reason = code != 0 ? ERR_reason_error_string(code) : NULL;
    long verdict = link->tls != NULL ? SSL_get_verify_result(link->tls) : X509_V_OK;
    if (verdict != X509_V_OK) {
        reason = X509_verify_cert_error_string(verdict);
    } else if (reason == NULL) {
        reason = tools_link_reason_of(errno);
    }
    ERR_clear_error();
    return tools_link_fail(link, "%s: %s", what, reason);
}

/* "HOST:PORT", "[IPv6]:PORT", or "PORT" of this machine, whose certificate may be for any name. */
static bool tools_link_split(const char *address, char *host, int *port, bool *is_port_alone) {
    const char *colon = strrchr(address, ':');
    uint64_t number;
    *is_port_alone = colon == NULL;
    if (!bytes_parse_u64(bytes_from_text(colon != NULL ? colon + 1 : address), &number) ||
        number == 0 || number > UINT16_MAX) {
        return false;
    }
    *port = (int)number;
    if (colon == NULL) {
        snprintf(host, HOST_MAX, "127.0.0.1");
        return true;
    }
    size_t size = (size_t)(colon - address);
    if (size > 1 && address[0] == '[' && colon[-1] == ']') {
        address++;
        size -= 2;
    }
    if (size == 0 || size >= HOST_MAX) {
        return false;
    }
    memcpy(host, address, size);
    host[size] = '\0';
    return true;
}

/* host: NULL: the server's certificate may be for any. */
static bool tools_link_shake_hands(struct tools_link *link, const char *host,
                                   const struct link_options *options) {
    link->tls_context = SSL_CTX_new(TLS_client_method());
    if (link->tls_context == NULL) {
        return tools_link_fail_tls(link, "TLS");
    }
    SSL_CTX *context = link->tls_context;
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    if (options->ca_file != NULL ? SSL_CTX_load_verify_file(context, options->ca_file) != 1
                                 : SSL_CTX_set_default_verify_paths(context) != 1) {
        return tools_link_fail_tls(link,
                                   options->ca_file != NULL ? options->ca_file : "authorities");
    }
    if (options->certificate != NULL &&
        SSL_CTX_use_certificate_chain_file(context, options->certificate) != 1) {
        return tools_link_fail_tls(link, options->certificate);
    }
    if (options->key != NULL &&
        SSL_CTX_use_PrivateKey_file(context, options->key, SSL_FILETYPE_PEM) != 1) {
        return tools_link_fail_tls(link, options->key);
    }
    link->tls = SSL_new(context);
    if (link->tls == NULL || SSL_set_fd(link->tls, link->context->fd) != 1) {
        return tools_link_fail_tls(link, "TLS");
    }
    X509_VERIFY_PARAM *wanted = SSL_get0_param(link->tls);
    if (host != NULL && X509_VERIFY_PARAM_set1_ip_asc(wanted, host) != 1 &&
        (SSL_set1_host(link->tls, host) != 1 ||
         /* OpenSSL's macro for this casts const away. */
         SSL_ctrl(link->tls, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
                  (void *)(uintptr_t)host) != 1)) {
        return tools_link_fail_tls(link, "TLS");
    }
    ERR_clear_error();
    return SSL_connect(link->tls) == 1 || tools_link_fail_tls(link, "TLS");
}

void tools_link_set_limit(struct tools_link *link, int limit_s) {
    const struct timeval limit = {.tv_sec = limit_s};
    (void)redisSetTimeout(link->context, limit);
}

bool tools_link_open(struct tools_link *link, const char *address,
                     const struct link_options *options, int limit_s) {
    const struct timeval limit = {.tv_sec = limit_s};
    char host[HOST_MAX];
    int port;
    bool is_port_alone = false;
    if (strchr(address, '/') != NULL) {
        link->context = redisConnectUnixWithTimeout(address, limit);
        snprintf(host, sizeof host, "localhost");
    } else if (tools_link_split(address, host, &port, &is_port_alone)) {
        link->context = redisConnectWithTimeout(host, port, limit);
    } else {
        return tools_link_fail(link, "it is not PORT, HOST:PORT or the path of a socket");
    }
    if (link->context == NULL || link->context->err != 0) {
        return tools_link_fail(link, "%s",
                               link->context != NULL ? link->context->errstr : "out of memory");
    }
    if (link->context->connection_type == REDIS_CONN_TCP) {
        (void)redisEnableKeepAlive(link->context);
    }
    tools_link_set_limit(link, limit_s);
    return !options->has_tls || tools_link_shake_hands(link, is_port_alone ? NULL : host, options);
}

void tools_link_close(struct tools_link *link) {
    if (link->tls != NULL) {
        (void)SSL_shutdown(link->tls);
    }
    SSL_free(link->tls);
    SSL_CTX_free(link->tls_context);
    if (link->context != NULL) {
        redisFree(link->context);
    }
    *link = (struct tools_link){.context = NULL};
}

bool tools_link_send(struct tools_link *link, const char *format, ...) {
    char *text;
    va_list arguments;
    va_start(arguments, format);
    int size = redisvFormatCommand(&text, format, arguments);
    va_end(arguments);
    if (size < 0) {
        return tools_link_fail(link, "out of memory");
    }
    bool is_sent = true;
    if (link->tls == NULL) {
        is_sent = redisAppendFormattedCommand(link->context, text, (size_t)size) == REDIS_OK ||
                  tools_link_fail(link, "%s", link->context->errstr);
    }
    for (int sent = 0, part; link->tls != NULL && is_sent && sent < size; sent += part) {
        part = SSL_write(link->tls, text + sent, size - sent);
        is_sent = part > 0 || tools_link_fail_tls(link, "TLS");
    }
    redisFreeCommand(text);
    return is_sent;
}

/* hiredis has read what came before it says that the connection is at its end. */
redisReply *tools_link_reply(struct tools_link *link) {
    void *reply = NULL;
    char piece[LINK_PIECE_SIZE];
    if (link->tls == NULL) {
        if (redisGetReply(link->context, &reply) != REDIS_OK) {
            bool is_late = link->context->err == REDIS_ERR_IO && errno == EAGAIN;
            (void)tools_link_fail(link, "%s",
                                  is_late ? tools_link_reason_of(EAGAIN) : link->context->errstr);
        }
        return reply;
    }
    while (redisReaderGetReply(link->context->reader, &reply) == REDIS_OK) {
        if (reply != NULL) {
            return reply;
        }
        errno = 0;
        int size = SSL_read(link->tls, piece, sizeof piece);
        if (size <= 0) {
            (void)tools_link_fail_tls(link, "TLS");
            return NULL;
        }
        if (redisReaderFeed(link->context->reader, piece, (size_t)size) != REDIS_OK) {
            break;
        }
    }
    (void)tools_link_fail(link, "%s", link->context->reader->errstr);
    return NULL;
}

redisReply *tools_link_log_in(struct tools_link *link, const struct link_options *options) {
    if (options->password == NULL) {
        return NULL;
    }
    bool is_sent = options->user != NULL
                       ? tools_link_send(link, "AUTH %s %s", options->user, options->password)
                       : tools_link_send(link, "AUTH %s", options->password);
    redisReply *reply = is_sent ? tools_link_reply(link) : NULL;
    if (reply != NULL && reply->type != REDIS_REPLY_ERROR) {
        freeReplyObject(reply);
        reply = NULL;
    }
    return reply;
}

/* ---- command lines ---- */

enum { PASSWORD_MAX = 4096, PATHS_MAX = 3, RATE_MIN = 64 * 1024, PIECE_SIZE = 256 * 1024 };

struct words {
    const char *paths[PATHS_MAX];
    int path_count;
    const char *until, *journals, *format, *password_file, *rate, *seconds;
    struct link_options link;
    bool is_alive;
};

/* ---- words ---- */

static const char **tools_option_of(struct words *words, const char *word) {
    const struct {
        const char *name;
        const char **value;
    } options[] = {
        {"--until", &words->until},
        {"--journals", &words->journals},
        {"--format", &words->format},
        {"--user", &words->link.user},
        {"--rate", &words->rate},
        {"--for", &words->seconds},
        {"--password-file", &words->password_file},
        {"--key", &words->link.key},
        {"--cacert", &words->link.ca_file},
        {"--cert", &words->link.certificate},
    };
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        if (strcmp(options[i].name, word) == 0) {
            return options[i].value;
        }
    }
    return NULL;
}

static bool tools_take_words(int argc, char **argv, int path_count, struct words *words) {
    for (int i = 2; i < argc; i++) {
        const char **value = tools_option_of(words, argv[i]);
        bool *is_on = strcmp(argv[i], "--tls") == 0     ? &words->link.has_tls
                      : strcmp(argv[i], "--alive") == 0 ? &words->is_alive
                                                        : NULL;
        if (is_on != NULL) {
            *is_on = true;
        } else if (value != NULL && i + 1 < argc) {
            *value = argv[++i];
        } else if (strncmp(argv[i], "--", 2) != 0 && words->path_count < path_count) {
            words->paths[words->path_count++] = argv[i];
        } else {
            return false;
        }
    }
    return words->path_count == path_count;
}

/* ---- to a running server ---- */

/* The options of a connection, with user and password from the file or the environment. */
static bool tools_find_link(const struct words *words, struct link_options *link) {
    static char text[PASSWORD_MAX];
    *link = words->link;
    if (!link->has_tls &&
        (link->ca_file != NULL || link->certificate != NULL || link->key != NULL)) {
        return tools_complain("--cacert, --cert and --key are for --tls, which is missing");
    }
    if ((link->certificate != NULL) != (link->key != NULL)) {
        return tools_complain("--cert and --key go together: one of them is missing");
    }
    if (link->user == NULL) {
        link->user = getenv("LEADERBOARD_USER");
    }
    if (words->password_file == NULL) {
        link->password = getenv("LEADERBOARD_PASSWORD");
        if (link->password == NULL) {
            link->password = getenv("REDISCLI_AUTH");
        }
        return words->link.user == NULL || link->password != NULL ||
               tools_complain("--user needs a password: --password-file, LEADERBOARD_PASSWORD or "
                              "REDISCLI_AUTH");
    }
    /* The first line of the file. */
    FILE *file = fopen(words->password_file, "r");
    bool is_read = file != NULL && fgets(text, PASSWORD_MAX, file) != NULL;
    if (file != NULL) {
        fclose(file);
    }
    if (!is_read) {
        return tools_complain("cannot read a password from %s", words->password_file);
    }
    text[strcspn(text, "\r\n")] = '\0';
    link->password = text;
    return true;
}

/* --ping: a health check where there is no redis-cli, such as in a container. The answer is printed, or why there is
 * none. true: it is PONG, or, with --alive, any answer. */
static bool tools_run_ping(const struct words *words) {
    enum { LIMIT_S = 2 /* for connecting, and for each reply */ };
    struct tools_link link = {.context = NULL};
    struct link_options options;
    const char *target = words->paths[0];
    if (!tools_find_link(words, &options)) {
        return false;
    }
    bool is_open = tools_link_open(&link, target, &options, LIMIT_S);
    /* Of a login that is refused the error. NULL: link.error says why there is none. */
    redisReply *reply = is_open ? tools_link_log_in(&link, &options) : NULL;
    if (is_open && reply == NULL && link.error[0] == '\0' && tools_link_send(&link, "PING")) {
        reply = tools_link_reply(&link);
    }
    bool has_text = reply != NULL && reply->str != NULL;
    bool is_pong = has_text && reply->type == REDIS_REPLY_STATUS && strcmp(reply->str, "PONG") == 0;
    if (has_text) {
        printf("%s\n", reply->str);
    } else {
        printf("%s: %s\n", target, link.error);
    }
    freeReplyObject(reply);
    tools_link_close(&link);
    return is_pong || (has_text && words->is_alive);
}

static bool tools_run_backup(const struct words *words) {
    struct backup_options options = {.rate = 0};
    if (words->rate != NULL && (!bytes_parse_u64(bytes_from_text(words->rate), &options.rate) ||
                                options.rate < RATE_MIN)) {
        return tools_complain("--rate is a number of bytes a second, %d at least", (int)RATE_MIN);
    }
    return tools_find_link(words, &options.link) &&
           backup_run(words->paths[0], words->paths[1], &options);
}

/* ---- restore ---- */

static bool tools_run_restore(const struct words *words) {
    struct restore_options options = {.until_us = INT64_MAX, .journals = words->journals};
    /* Unix seconds, with a fraction or without, or RFC 3339. */
    struct decimal seconds;
    struct bytes until = words->until != NULL ? bytes_from_text(words->until) : BYTES("");
    if (words->until != NULL && decimal_parse(until, 6, &seconds) == DECIMAL_OK &&
        !seconds.is_negative && seconds.magnitude < INT64_MAX) {
        options.until_us = (int64_t)seconds.magnitude;
    } else if (words->until != NULL && !timestamp_parse(until, &options.until_us)) {
        return tools_complain("--until is a time: unix seconds, or 2026-11-16T18:30:00Z");
    }
    return restore_run(words->paths[0], words->paths[1], &options);
}

/* ---- export and import ---- */

enum format { FORMAT_CSV, FORMAT_JSONL, FORMAT_REDIS, FORMAT_RDB, FORMATS };

static bool tools_put_out(void *context, const char *at, size_t size) {
    return fwrite(at, 1, size, context) == size;
}

/* Write what is loaded to the file, which is synced and then gets its name; "-": standard output. */
static bool tools_write_out(struct registry *registry, const char *path, enum format format,
                            int64_t time_us) {
    bool is_stdout = strcmp(path, "-") == 0;
    char part[4096];
    if (!is_stdout && snprintf(part, sizeof part, "%s.part", path) >= (int)sizeof part) {
        return tools_complain("the path %.100s is too long", path);
    }
    FILE *out = is_stdout ? stdout : fopen(part, "w");
    if (out == NULL) {
        return tools_complain("cannot make %s: %s", part, strerror(errno));
    }
    bool is_done =
        format == FORMAT_REDIS ? export_redis(registry, out)
        : format == FORMAT_RDB
            ? rdb_write(registry, time_us, tools_put_out, out)
            : export_records(registry, format == FORMAT_JSONL ? RECORD_JSONL : RECORD_CSV, out);
    bool is_written = fflush(out) == 0 && (is_stdout || disk_sync(fileno(out)));
    if (!is_stdout) {
        fclose(out);
        is_done = is_done && is_written && rename(part, path) == 0 && tools_sync_parent(path);
        if (!is_done) {
            remove(part);
        }
    }
    return is_done && is_written ? true
                                 : tools_complain("%s was not written: %s", path, strerror(errno));
}

/* Standard input, a backup, into a file that has no name, in the current directory. -1: the error was printed. */
static int tools_keep_input(void) {
    static char piece[PIECE_SIZE];
    ssize_t size = 0;
    int fd = disk_open_unnamed(".");
    bool is_kept = fd >= 0;
    while (is_kept &&
           ((size = read(STDIN_FILENO, piece, sizeof piece)) > 0 || (size < 0 && errno == EINTR))) {
        is_kept = size < 0 || disk_write_all(fd, piece, (size_t)size);
    }
    if (is_kept && size == 0) {
        return fd;
    }
    (void)tools_complain("cannot keep the input in a file: %s", strerror(errno));
    disk_close(fd);
    return -1;
}

static bool tools_export_from(const struct words *words, struct registry *registry,
                              enum format format) {
    const char *path = words->paths[0];
    uint64_t time_us;
    char time[TIMESTAMP_TEXT_MAX];
    char error[DISK_ERROR_MAX];
    char kept_path[64];
    int kept = -1;
    if (strcmp(path, "-") == 0) {
        kept = tools_keep_input();
        if (kept < 0) {
            return false;
        }
        snprintf(kept_path, sizeof kept_path, "/proc/self/fd/%d", kept);
        path = kept_path;
    }
    bool is_loaded = verify_load(path, registry, &time_us, error);
    disk_close(kept);
    if (!is_loaded) {
        return tools_complain("%s", error);
    }
    if (!tools_write_out(registry, words->paths[1], format, (int64_t)time_us)) {
        return false;
    }
    int size = (int)timestamp_print(time, (int64_t)time_us);
    fprintf(stderr, "%s: exported, as of %.*s\n", words->paths[0], size, time);
    return true;
}

static bool tools_import_into(const struct words *words, struct registry *registry,
                              enum format format) {
    char error[IMPORT_ERROR_MAX];
    bool is_stdin = strcmp(words->paths[0], "-") == 0;
    FILE *in = is_stdin ? stdin : fopen(words->paths[0], "r");
    if (in == NULL) {
        return tools_complain("cannot open %s: %s", words->paths[0], strerror(errno));
    }
    bool is_done =
        import_records(registry, format == FORMAT_JSONL ? RECORD_JSONL : RECORD_CSV, in, error);
    if (!is_stdin) {
        fclose(in);
    }
    return is_done ? import_save(registry, words->paths[1])
                   : tools_complain("%s: %s", words->paths[0], error);
}

static bool tools_with_registry(const struct words *words, bool is_import) {
    static const char *const names[FORMATS] = {"csv", "jsonl", "redis", "rdb"};
    struct settings settings;
    enum format format = FORMAT_CSV;
    enum format end = is_import ? FORMAT_REDIS : FORMATS;
    while (format < end && (words->format == NULL || strcmp(words->format, names[format]) != 0)) {
        ++format;
    }
    if (format == end) {
        return tools_complain("--format is one of %s",
                              is_import ? "csv and jsonl" : "csv, jsonl, redis and rdb");
    }
    if (!settings_init(&settings)) {
        return tools_complain("out of memory");
    }
    struct registry *registry =
        registry_create(disk_random_id(), setting_board_options_for, &settings);
    bool is_done = false;
    if (registry == NULL) {
        (void)tools_complain("out of memory");
    } else {
        is_done = is_import ? tools_import_into(words, registry, format)
                            : tools_export_from(words, registry, format);
    }
    registry_destroy(registry);
    settings_deinit(&settings);
    return is_done;
}

static bool tools_run_export(const struct words *words) {
    return tools_with_registry(words, false);
}

static bool tools_run_import(const struct words *words) {
    return tools_with_registry(words, true);
}

/* ---- --player-token FILE KID PLAYER ---- */

/* For trying out. Whoever serves players signs where they log in: docs/players-write.md. */
static bool tools_print_player_token(const struct settings *settings, const char *kid,
                                     const char *player, int64_t seconds) {
    char token[JWT_SIZE_MAX];
    const struct jwt_key *key =
        jwt_find_key(settings->player_keys, settings->player_key_count, bytes_from_text(kid));
    int64_t now_s = tools_now_us() / 1000000;
    if (key == NULL) {
        return tools_complain("there is no player-key '%s' in the file", kid);
    }
    if (key->algorithm != JWT_HS256) {
        return tools_complain("the player-key '%s' is a public one: tokens are signed where the "
                              "private key is (docs/players-write.md)",
                              kid);
    }
    size_t size = jwt_sign(key, bytes_from_text(player), now_s, now_s + seconds, token);
    if (size == 0) {
        return tools_complain(
            "a player's name has 1 to %d bytes, of UTF-8 without control characters",
            (int)JWT_CLAIM_MAX);
    }
    printf("%.*s\n", (int)size, token);
    return true;
}

static bool tools_run_player_token(const struct words *words) {
    enum { FILE_NAME, KID, PLAYER };
    char program[] = "leaderboard-server";
    char *path = memory_copy_text(words->paths[FILE_NAME], strlen(words->paths[FILE_NAME]));
    char *arguments[] = {program, path, NULL};
    char error[SETTING_ERROR_MAX];
    struct settings settings;
    int64_t seconds = 3600;
    bool is_fine = path != NULL && settings_init(&settings);
    if (!is_fine) {
        memory_free(path);
        return tools_complain("out of memory");
    }
    if (words->seconds != NULL && (!bytes_parse_i64(bytes_from_text(words->seconds), &seconds) ||
                                   seconds < 1 || seconds > INT32_MAX)) {
        is_fine = tools_complain("--for takes seconds, not '%s'", words->seconds);
    } else if (!setting_file_apply_arguments(&settings, 2, arguments, NULL, error)) {
        is_fine = tools_complain("%s", error);
    }
    is_fine = is_fine &&
              tools_print_player_token(&settings, words->paths[KID], words->paths[PLAYER], seconds);
    settings_deinit(&settings);
    memory_free(path);
    return is_fine;
}

/* ---- the table ---- */

/* --help explains them: settings_link_words */
#define LINK_WORDS                                                                                 \
    "[--user NAME] [--password-file FILE] [--tls [--cacert FILE] [--cert FILE --key FILE]]"

static const struct tool {
    const char *name;
    bool (*run)(const struct words *words);
    int path_count;
    const char *usage;
} tools[] = {
    {"--ping", tools_run_ping, 1, "--ping ADDRESS [--alive] " LINK_WORDS},
    {"--backup", tools_run_backup, 2, "--backup ADDRESS FILE [--rate BYTES] " LINK_WORDS},
    {"--restore", tools_run_restore, 2,
     "--restore FILE|DIR TARGET [--until TIME] [--journals DIR]"},
    {"--export", tools_run_export, 2, "--export FILE|DIR|- OUT --format csv|jsonl|redis|rdb"},
    {"--import", tools_run_import, 2, "--import FILE TARGET --format csv|jsonl"},
    {"--player-token", tools_run_player_token, 3, "--player-token FILE KID PLAYER [--for SECONDS]"},
};

bool tools_run(int argc, char **argv, int *status) {
    struct words words = {.path_count = 0};
    const struct tool *tool = NULL;
    for (size_t i = 0; i < sizeof tools / sizeof *tools && argc > 1 && tool == NULL; i++) {
        tool = strcmp(tools[i].name, argv[1]) == 0 ? &tools[i] : NULL;
    }
    if (tool == NULL) {
        return false;
    }
    bool is_dump = tool->run == tools_run_import;
    for (int i = 2; i < argc && is_dump; i++) {
        is_dump = strcmp(argv[i], "--format") != 0;
    }
    *status = EXIT_FAILURE;
    if (is_dump ? argc == 2 || strncmp(argv[2], "--", 2) == 0
                : !tools_take_words(argc, argv, tool->path_count, &words)) {
        (void)tools_complain("usage: leaderboard-server %s",
                             is_dump ? "--import dump.rdb [settings as at a start]" : tool->usage);
        return true;
    }
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* write says so */
    memory_init();
    clock_calibrate();
    log_set_level(LOG_WARNING);
    bool is_done = is_dump ? import_rdb(argc, argv) : tool->run(&words);
    *status = is_done ? EXIT_SUCCESS : EXIT_FAILURE;
    return true;
}
