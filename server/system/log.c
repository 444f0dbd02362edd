/* One line per event, written with one write(2), so that lines of several writers never mix.
 *
 *     text -> head or JSON -> is there room? -> write
 *
 * The server does not stop because of its log, and does not wait for it. A regular file always has
 * room, or says at once that it has none. Of everything else poll(2) is asked first: a pipe that is
 * ready takes PIPE_BUF bytes at once, and no line is longer. syslog(3) would wait for a daemon that
 * hangs, so datagrams are sent from here. */
#include "server/system/log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "codec/json.h"
#include "codec/timestamp.h"

enum {
    LOG_TEXT_MAX = 1024,
    LOG_PRIORITY_SIZE = 3, /* "<4>" */
    LOG_LINE_MAX = LOG_PRIORITY_SIZE + LOG_JSON_MAX(LOG_TEXT_MAX),
    LOG_PATH_MAX = 4096,
    IDENT_MAX = 64,
};
_Static_assert(LOG_LINE_MAX < PIPE_BUF, "a ready pipe takes a line at once");
#define SYSLOG_PATH "/dev/log"

static struct {
    int fd;
    enum log_level level;
    bool is_json;
    bool is_file;            /* a regular file */
    bool is_journal;         /* journald's: lines begin with their priority (sd-daemon(3)) */
    bool is_torn;            /* the last line was not written whole */
    uint64_t dropped;        /* lines since the last that was written */
    char path[LOG_PATH_MAX]; /* "": stdout */
    struct {
        bool is_on;
        int fd; /* -1: not connected */
        int facility;
        char ident[IDENT_MAX + 1];
    } syslog;
} log_state = {.fd = STDOUT_FILENO, .level = LOG_NOTICE, .syslog = {.fd = -1}};
/* Of log_state, for all but signal handlers. */
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;

static const struct {
    const char *name;
    int syslog_severity; /* RFC 5424, 6.2.1 */
} levels[] = {
    [LOG_DEBUG] = {"debug", 7},     [LOG_VERBOSE] = {"verbose", 6}, [LOG_NOTICE] = {"notice", 5},
    [LOG_WARNING] = {"warning", 4}, [LOG_NOTHING] = {"nothing", 5}, [LOG_AUDIT] = {"audit", 5},
};

/* ---- a line as a JSON object ----
 *
 * No allocation, no locks, no printf: a crash report is written with it. */

struct output {
    char *at;
    size_t size;
};

static void log_json_append(void *context, const char *at, size_t size) {
    struct output *out = context;
    memcpy(out->at + out->size, at, size);
    out->size += size;
}

static size_t log_json_count_digits(struct bytes text, size_t from) {
    size_t at = from;
    while (at < text.size && text.at[at] >= '0' && text.at[at] <= '9') {
        at++;
    }
    return at - from;
}

/* "12", "-3", "0.25": what JSON takes as it is. */
static bool log_json_is_number(struct bytes text) {
    enum { DIGITS_MAX = 15 }; /* a double holds them exactly */
    size_t at = text.size > 0 && text.at[0] == '-';
    size_t begin = at;
    at += log_json_count_digits(text, at);
    bool is_whole = at > begin && (at == begin + 1 || text.at[begin] != '0');
    if (at < text.size && text.at[at] == '.') {
        size_t digits = log_json_count_digits(text, ++at);
        at += digits;
        is_whole = is_whole && digits > 0;
    }
    return is_whole && at == text.size && text.size <= DIGITS_MAX;
}

/* One word at the front of a line. */
struct word {
    struct bytes name, value; /* name.size 0: no field, value is the word */
    bool is_quoted;
    size_t size; /* with what follows it: a blank */
};

static size_t log_json_find(struct bytes text, size_t from, char byte) {
    const char *found = from < text.size ? memchr(text.at + from, byte, text.size - from) : NULL;
    return found != NULL ? (size_t)(found - text.at) : text.size;
}

static struct word log_json_read_word(struct bytes text) {
    size_t end = log_json_find(text, 0, ' ');
    size_t name_size = 0;
    for (; name_size < end && text.at[name_size] != '\0'; name_size++) {
        char lower = bytes_lower(text.at[name_size]);
        bool is_alphanumeric = (lower >= 'a' && lower <= 'z') || (lower >= '0' && lower <= '9');
        if (!is_alphanumeric && strchr("_-./", lower) == NULL) {
            break;
        }
    }
    struct word word = {.value = {.at = text.at, .size = end}};
    if (name_size > 0 && name_size < end && text.at[name_size] == '=') {
        size_t begin = name_size + 1;
        word.name = (struct bytes){.at = text.at, .size = name_size};
        word.is_quoted = begin < text.size && text.at[begin] == '"';
        if (word.is_quoted) {
            end = log_json_find(text, ++begin, '"');
        }
        word.value = (struct bytes){.at = text.at + begin, .size = end - begin};
        end = word.is_quoted ? log_json_find(text, end, ' ') : end;
    }
    word.size = end < text.size ? end + 1 : end;
    return word;
}

size_t log_json_print(char *out, struct bytes time, const char *level, struct bytes text) {
    struct output output = {.at = out};
    struct json json = {.append = log_json_append, .out = &output};
    json_open(&json, NULL, '{');
    json_text(&json, "time", time);
    json_text(&json, "level", bytes_from_text(level));
    /* The words that are no field are the message. */
    bool is_first = true;
    json_begin_text(&json, "message");
    for (struct bytes rest = text; rest.size > 0;) {
        struct word word = log_json_read_word(rest);
        if (word.name.size == 0) {
            json_add_text(&json, is_first ? BYTES("") : BYTES(" "));
            json_add_text(&json, word.value);
            is_first = false;
        }
        rest = (struct bytes){.at = rest.at + word.size, .size = rest.size - word.size};
    }
    json_end_text(&json);
    while (text.size > 0) {
        struct word word = log_json_read_word(text);
        if (word.name.size > 0) {
            json_begin_text(&json, NULL);
            json_add_text(&json, word.name);
            json_add_text(&json, (bytes_equal(word.name, BYTES("time")) ||
                                  bytes_equal(word.name, BYTES("level")) ||
                                  bytes_equal(word.name, BYTES("message")))
                                     ? BYTES("_")
                                     : BYTES(""));
            json_end_key(&json);
            if (!word.is_quoted && log_json_is_number(word.value)) {
                json_verbatim(&json, NULL, word.value);
            } else {
                json_text(&json, NULL, word.value);
            }
        }
        text = (struct bytes){.at = text.at + word.size, .size = text.size - word.size};
    }
    json_close(&json, '}');
    return output.size;
}

/* ---- opening ---- */

static void log_close_file(void) {
    if (log_state.fd != STDOUT_FILENO) {
        close(log_state.fd);
        log_state.fd = STDOUT_FILENO;
    }
}

static void log_close_syslog(void) {
    if (log_state.syslog.fd >= 0) {
        close(log_state.syslog.fd);
        log_state.syslog.fd = -1;
    }
}

/* JOURNAL_STREAM is the device and inode of the stream that systemd has connected to the journal. */
bool log_is_journal(int fd) {
    struct stat status;
    char own[2 * BYTES_INTEGER_TEXT_MAX + 1];
    const char *named = getenv("JOURNAL_STREAM");
    if (named == NULL || fstat(fd, &status) != 0) {
        return false;
    }
    snprintf(own, sizeof own, "%ju:%ju", (uintmax_t)status.st_dev, (uintmax_t)status.st_ino);
    return strcmp(named, own) == 0;
}

static bool log_open_path(const char *path) {
    int fd = STDOUT_FILENO;
    struct stat status;
    if (path[0] != '\0') {
        /* A FIFO without a reader is an error, too, instead of a wait for one. */
        fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0644);
        if (fd < 0) {
            return false;
        }
    }
    log_close_file();
    log_state.fd = fd;
    log_state.is_file = fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
    log_state.is_journal = log_is_journal(fd);
    log_state.is_torn = false;
    return true;
}

bool log_open(const char *path, enum log_level level) {
    const char *wanted = path != NULL ? path : "";
    size_t size = strlen(wanted);
    if (size >= LOG_PATH_MAX) {
        errno = ENAMETOOLONG;
        return false;
    }
    pthread_mutex_lock(&log_lock);
    bool is_open = log_open_path(wanted);
    if (is_open) {
        memmove(log_state.path, wanted, size + 1);
        log_state.level = level;
    }
    pthread_mutex_unlock(&log_lock);
    return is_open;
}

void log_set_level(enum log_level level) {
    log_state.level = level;
}

void log_set_json(bool is_json) {
    log_state.is_json = is_json;
}

void log_use_syslog(const char *ident, int facility) {
    pthread_mutex_lock(&log_lock);
    snprintf(log_state.syslog.ident, sizeof log_state.syslog.ident, "%s", ident);
    log_state.syslog.facility = facility;
    log_state.syslog.is_on = true;
    pthread_mutex_unlock(&log_lock);
}

bool log_reopen(void) {
    pthread_mutex_lock(&log_lock);
    log_close_syslog();
    bool is_open = log_open_path(log_state.path);
    pthread_mutex_unlock(&log_lock);
    return is_open;
}

void log_close(void) {
    pthread_mutex_lock(&log_lock);
    log_close_file();
    log_close_syslog();
    pthread_mutex_unlock(&log_lock);
}

/* ---- syslog ---- */

static size_t log_add(char *out, size_t size, const char *text, size_t text_size) {
    memcpy(out + size, text, text_size);
    return size + text_size;
}

static size_t log_add_text(char *out, size_t size, const char *text) {
    return log_add(out, size, text, strlen(text));
}

/* "<133>leaderboard[4711]: ready". The time is left to the daemon: it knows it, and the local zone. */
static void log_send_to_syslog(enum log_level level, struct bytes text) {
    char line[LOG_TEXT_MAX + IDENT_MAX + 2 * BYTES_INTEGER_TEXT_MAX + 8];
    uint64_t priority =
        (uint64_t)log_state.syslog.facility * 8 + (uint64_t)levels[level].syslog_severity;
    size_t size = log_add_text(line, 0, "<");
    size += bytes_print_u64(line + size, priority);
    size = log_add_text(line, size, ">");
    size = log_add_text(line, size, log_state.syslog.ident);
    size = log_add_text(line, size, "[");
    size += bytes_print_u64(line + size, (uint64_t)getpid());
    size = log_add_text(line, size, "]: ");
    size = log_add(line, size, text.at, text.size);
    /* Once more, if the daemon was restarted. */
    for (int i = 0; i < 2; i++) {
        if (log_state.syslog.fd < 0) {
            const struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = SYSLOG_PATH};
            int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
            if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof address) != 0) {
                close(fd);
                fd = -1;
            }
            log_state.syslog.fd = fd;
        }
        if (log_state.syslog.fd < 0) {
            return;
        }
        if (send(log_state.syslog.fd, line, size, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0 ||
            errno == EAGAIN || errno == ENOBUFS || errno == EINTR) {
            return;
        }
        log_close_syslog();
    }
}

/* ---- writing ---- */

/* "2026-11-21T10:59:01.250000Z": all six digits, so that lines sort. */
static size_t log_print_time(char *out) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    int64_t us = (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
    size_t size = timestamp_print(out, us - us % 1000000);
    if (size == 0 || out[size - 1] != 'Z') {
        return size; /* a year beyond 9999 */
    }
    out[size - 1] = '.';
    for (int64_t unit = 100000, left = us % 1000000; unit > 0; unit /= 10) {
        out[size++] = (char)('0' + left / unit % 10);
    }
    out[size++] = 'Z';
    return size;
}

/* false: it was not written, or not whole. */
static bool log_put_line(enum log_level level, struct bytes text) {
    enum { MILLISECONDS_SIZE = 23 }; /* "2026-11-21T10:59:01.250" */
    char line[LOG_LINE_MAX];
    char time[TIMESTAMP_TEXT_MAX];
    size_t size = log_state.is_torn ? log_add_text(line, 0, "\n") : 0;
    if (log_state.is_journal) {
        const char priority[] = {'<', (char)('0' + levels[level].syslog_severity), '>'};
        size = log_add(line, size, priority, LOG_PRIORITY_SIZE);
    }
    size_t time_size = log_print_time(time);
    if (log_state.is_json) {
        if (time_size > MILLISECONDS_SIZE) {
            time[MILLISECONDS_SIZE] = 'Z';
            time_size = MILLISECONDS_SIZE + 1;
        }
        size += log_json_print(line + size, (struct bytes){.at = time, .size = time_size},
                               levels[level].name, text);
    } else {
        size = log_add(line, size, time, time_size);
        size = log_add_text(line, size, " ");
        size = log_add_text(line, size, levels[level].name);
        size = log_add_text(line, size, " ");
        size = log_add(line, size, text.at, text.size);
    }
    line[size++] = '\n';
    /* Would a write wait? */
    struct pollfd ready = {.fd = log_state.fd, .events = POLLOUT};
    if (!log_state.is_file && (poll(&ready, 1, 0) != 1 || (ready.revents & POLLOUT) == 0)) {
        return false;
    }
    ssize_t written;
    do {
        written = write(log_state.fd, line, size);
    } while (written < 0 && errno == EINTR);
    log_state.is_torn = written > 0 ? (size_t)written < size : log_state.is_torn && written < 0;
    return written == (ssize_t)size;
}

static void log_put_everywhere(enum log_level level, char *text, size_t size) {
    for (size_t i = 0; i < size; i++) {
        if ((unsigned char)text[i] < ' ' || text[i] == '\x7f') {
            text[i] = '?';
        }
    }
    const struct bytes bytes = {.at = text, .size = size};
    if (log_state.syslog.is_on) {
        log_send_to_syslog(level, bytes);
    }
    if (log_state.dropped > 0) {
        char notice[64];
        size_t notice_size = log_add_text(notice, 0, "log: lines were dropped count=");
        notice_size += bytes_print_u64(notice + notice_size, log_state.dropped);
        if (log_put_line(LOG_WARNING, (struct bytes){.at = notice, .size = notice_size})) {
            log_state.dropped = 0;
        }
    }
    log_state.dropped += log_state.dropped > 0 || !log_put_line(level, bytes);
}

void log_write(enum log_level level, const char *format, ...) {
    enum log_level least = log_state.level;
    if (level < least || least == LOG_NOTHING) {
        return;
    }
    char text[LOG_TEXT_MAX + 1];
    va_list arguments;
    va_start(arguments, format);
    int printed = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    size_t size = printed < 0 ? 0 : (size_t)printed;
    pthread_mutex_lock(&log_lock);
    log_put_everywhere(level, text, size < LOG_TEXT_MAX ? size : LOG_TEXT_MAX);
    pthread_mutex_unlock(&log_lock);
}

void log_write_from_signal(enum log_level level, const char *text, size_t size) {
    char copy[LOG_TEXT_MAX];
    size = size < LOG_TEXT_MAX ? size : LOG_TEXT_MAX;
    memcpy(copy, text, size);
    log_put_everywhere(level, copy, size);
}

const char *log_quote_into(char *out, size_t room, struct bytes text) {
    enum { ESCAPE_SIZE = 4 };
    size_t size = 0;
    for (size_t i = 0; i < text.size && size + ESCAPE_SIZE < room; i++) {
        unsigned byte = (unsigned char)text.at[i];
        if (byte < ' ' || byte == '"' || byte == '\\' || byte == 0x7f) {
            size += (size_t)snprintf(out + size, ESCAPE_SIZE + 1, "\\x%02x", byte);
        } else {
            out[size++] = (char)byte;
        }
    }
    out[size] = '\0';
    return out;
}

struct log_quoted log_quote(struct bytes text) {
    struct log_quoted quoted = {.text = ""};
    (void)log_quote_into(quoted.text, sizeof quoted.text, text);
    return quoted;
}
