/* One line per event, written with one write(2), so that lines of several writers never mix.
 *
 *     2026-11-21T10:59:01.250000Z notice listening address=127.0.0.1:6379
 *
 * A line that cannot be written is dropped: the server does not stop because of its log. */
#include "server/system/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "codec/bytes.h"
#include "codec/timestamp.h"

enum { LOG_LINE_MAX = 1024, LOG_PATH_MAX = 4096 };

static struct {
    int fd;
    enum log_level level;
    char path[LOG_PATH_MAX]; /* "": stdout */
} log_state = {.fd = STDOUT_FILENO, .level = LOG_NOTICE};

static const char *level_name(enum log_level level) {
    static const char *const names[] = {"debug", "verbose", "notice", "warning"};
    return names[level];
}

static bool open_path(const char *path) {
    int fd = STDOUT_FILENO;
    if (path[0] != '\0') {
        fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
        if (fd < 0) {
            return false;
        }
    }
    log_close();
    log_state.fd = fd;
    return true;
}

bool log_open(const char *path, enum log_level level) {
    const char *wanted = path != NULL ? path : "";
    size_t size = strlen(wanted);
    if (size >= LOG_PATH_MAX) {
        errno = ENAMETOOLONG;
        return false;
    }
    if (!open_path(wanted)) {
        return false;
    }
    memmove(log_state.path, wanted, size + 1);
    log_state.level = level;
    return true;
}

void log_set_level(enum log_level level) {
    log_state.level = level;
}

bool log_reopen(void) {
    return open_path(log_state.path);
}

void log_close(void) {
    if (log_state.fd != STDOUT_FILENO) {
        close(log_state.fd);
        log_state.fd = STDOUT_FILENO;
    }
}

/* Print "2026-11-21T10:59:01.250000Z notice "; returns its size. */
static size_t print_head(char *line, enum log_level level) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    size_t size =
        timestamp_print(line, (int64_t)now.tv_sec * 1000000 + (int64_t)now.tv_nsec / 1000);
    int printed = snprintf(line + size, LOG_LINE_MAX - size, " %s ", level_name(level));
    CHECK(printed > 0);
    return size + (size_t)printed;
}

void log_write_line(const char *line, size_t size) {
    ssize_t written;
    do {
        written = write(log_state.fd, line, size);
    } while (written < 0 && errno == EINTR);
}

void log_write(enum log_level level, const char *format, ...) {
    if (level < log_state.level) {
        return;
    }
    char line[LOG_LINE_MAX + 1];
    size_t size = print_head(line, level);
    va_list arguments;
    va_start(arguments, format);
    int printed = vsnprintf(line + size, LOG_LINE_MAX - size, format, arguments);
    va_end(arguments);
    if (printed > 0) {
        size_t room = LOG_LINE_MAX - size - 1;
        size += (size_t)printed < room ? (size_t)printed : room;
    }
    for (size_t i = 0; i < size; i++) {
        if ((unsigned char)line[i] < ' ' || line[i] == '\x7f') {
            line[i] = '?';
        }
    }
    line[size++] = '\n';
    log_write_line(line, size);
}
