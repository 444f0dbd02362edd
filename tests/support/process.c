/* Starting, watching and stopping a server under test; see process.h. */
#include "tests/support/process.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/directory.h"
#include "tests/support/test.h"

enum {
    WORDS_MAX = 64,
    PORT_FIRST = 20000, /* below the range the kernel takes client ports from */
    PORT_COUNT = 12000,
    SOCKET_LIMIT_S = 60,
};

int64_t process_now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void process_sleep_ms(int ms) {
    struct timespec rest = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
    while (nanosleep(&rest, &rest) != 0 && errno == EINTR) {}
}

/* BUILD/name, when this program is BUILD/tests/integration/something. */
static const char *path_in_build(const char *name, char *out, size_t size) {
    char self[PATH_MAX] = "";
    if (readlink("/proc/self/exe", self, sizeof self - 1) < 0) {
        return NULL;
    }
    char *end = strstr(self, "/tests/");
    if (!end) {
        return NULL;
    }
    *end = '\0';
    int length = snprintf(out, size, "%s/%s", self, name);
    return length > 0 && (size_t)length < size && access(out, X_OK) == 0 ? out : NULL;
}

const char *process_default_program(void) {
    static char path[256];
    const char *given = getenv("LEADERBOARD_SERVER");
    if (given && given[0]) {
        return given;
    }
    const char *built = path_in_build("leaderboard-server", path, sizeof path);
    return built ? built : "build/leaderboard-server";
}

const char *process_redis_program(void) {
    static char path[256];
    const char *built = path_in_build("peers/redis-server", path, sizeof path);
    return built ? built : "redis-server";
}

#ifndef __has_feature
#define __has_feature(name) 0
#endif

bool process_is_sanitized(void) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) ||                               \
    __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                         \
    __has_feature(undefined_behavior_sanitizer)
    return true;
#else
    return false;
#endif
}

/* ---- sockets ---- */

static int give_limits(int fd) {
    struct timeval limit = {.tv_sec = SOCKET_LIMIT_S};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    return fd;
}

static int connect_or_close(int fd, const struct sockaddr *address, socklen_t size) {
    if (fd < 0) {
        return -1;
    }
    if (connect(fd, address, size) != 0) {
        close(fd);
        return -1;
    }
    return give_limits(fd);
}

int process_connect_unix(const struct process *process) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", process->socket_path);
    return connect_or_close(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0),
                            (const struct sockaddr *)&address, sizeof address);
}

int process_connect_address(const char *text, uint16_t port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    if (inet_pton(AF_INET, text, &address.sin_addr) != 1) {
        return -1;
    }
    int fd = connect_or_close(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
                              (const struct sockaddr *)&address, sizeof address);
    int yes = 1;
    if (fd >= 0) {
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    }
    return fd;
}

int process_connect_tcp(const struct process *process) {
    return process_connect_address("127.0.0.1", process->port);
}

/* A socket bound to a port that nobody else has. While it is open the server can bind the port,
 * because both have SO_REUSEADDR, and no program beside this one can. -1: there is none. */
static int hold_port(uint16_t *port) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    unsigned step = (unsigned)now.tv_nsec ^ ((unsigned)getpid() * 7919U);
    for (unsigned i = 0; i < PORT_COUNT; i++) {
        *port = (uint16_t)(PORT_FIRST + (step + i) % PORT_COUNT);
        struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(*port)};
        address.sin_addr.s_addr = htonl(INADDR_ANY);
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        int yes = 1;
        if (bind(fd, (const struct sockaddr *)&address, sizeof address) == 0 &&
            setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0) {
            return fd;
        }
        close(fd);
    }
    return -1;
}

static bool choose_port(struct process *process, const struct process_options *options) {
    if (options->has_no_tcp || options->port) {
        process->port = options->has_no_tcp ? 0 : options->port;
        return true;
    }
    process->port_holder = hold_port(&process->port);
    return process->port_holder >= 0;
}

static void let_port_go(struct process *process) {
    if (process->port_holder > 0) {
        close(process->port_holder);
    }
    process->port_holder = 0;
}

/* ---- the directory and the log ---- */

static char *read_whole(const char *path) {
    size_t size = 0, capacity = 65536;
    char *text = malloc(capacity);
    FILE *file = fopen(path, "r");
    while (file && text) {
        size_t got = fread(text + size, 1, capacity - size - 1, file);
        if (got == 0) {
            break;
        }
        size += got;
        if (capacity - size < 2) {
            char *larger = realloc(text, capacity *= 2);
            if (!larger) {
                free(text);
            }
            text = larger;
        }
    }
    if (file) {
        fclose(file);
    }
    if (text) {
        text[size] = '\0';
    }
    return text;
}

char *process_log(const struct process *process) {
    return read_whole(process->log_path);
}

bool process_has_logged(const struct process *process, const char *text) {
    char *log = process_log(process);
    bool is_there = log != NULL && strstr(log, text) != NULL;
    free(log);
    return is_there;
}

static void complain(const struct process *process, const char *what) {
    OWNED char *log = process_log(process);
    fprintf(stderr, "process: %s: %s\n--- log of %s ---\n%s--- end of log ---\n", process->program,
            what, process->log_path, log ? log : "");
}

static bool make_directory(struct process *process, const struct process_options *options) {
    if (options->directory) {
        snprintf(process->directory, sizeof process->directory, "%s", options->directory);
        process->is_directory_kept = true;
    } else {
        snprintf(process->directory, sizeof process->directory, "/tmp/leaderboard-test-XXXXXX");
        if (!mkdtemp(process->directory)) {
            fprintf(stderr, "process: mkdtemp: %s\n", strerror(errno));
            process->directory[0] = '\0';
            return false;
        }
    }
    /* Members of one struct: the format reads one array while another is written. */
    char directory[PROCESS_PATH_MAX / 2];
    snprintf(directory, sizeof directory, "%.40s", process->directory);
    snprintf(process->socket_path, PROCESS_PATH_MAX, "%s/socket", directory);
    snprintf(process->log_path, PROCESS_PATH_MAX, "%s/log", directory);
    if (!options->config) {
        return true;
    }
    snprintf(process->config_path, PROCESS_PATH_MAX, "%s/test.conf", directory);
    FILE *file = fopen(process->config_path, "w");
    bool is_written = file && fputs(options->config, file) >= 0;
    return (!file || fclose(file) == 0) && is_written;
}

/* ---- starting ---- */

static bool is_redis_program(const char *program) {
    return strstr(program, "redis-server") != NULL;
}

/* The usual words come first, the test's own behind them: the later setting wins. */
static void fill_words(const struct process *process, const struct process_options *options,
                       const char **words, const char *port_text) {
    size_t count = 0;
    words[count++] = process->program;
    if (process->config_path[0]) {
        words[count++] = process->config_path;
    }
    const char *const usual[] = {"--save",       "",
                                 "--appendonly", "no",
                                 "--daemonize",  "no",
                                 "--dir",        process->directory,
                                 "--port",       process->has_tls ? "0" : port_text,
                                 "--bind",       "127.0.0.1",
                                 "--unixsocket", process->socket_path};
    for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++) {
        words[count++] = usual[i];
    }
    if (process->has_tls) {
        words[count++] = "--tls-port";
        words[count++] = port_text;
    }
    /* All tests can be run with several network threads. */
    const char *threads = getenv("LEADERBOARD_TEST_IO_THREADS");
    if (threads && !is_redis_program(process->program)) {
        words[count++] = "--io-threads";
        words[count++] = threads;
    }
    for (size_t i = 0; options->arguments && options->arguments[i] && count < WORDS_MAX - 1; i++) {
        words[count++] = options->arguments[i];
    }
    words[count] = NULL;
}

/* What runs in the background of a shell ignores SIGINT and SIGQUIT, and so would the server. */
static void reset_signals(void) {
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    for (int number = 1; number < SIGRTMIN; number++) {
        signal(number, SIG_DFL); /* not for SIGKILL and SIGSTOP */
    }
}

static void become_server(const struct process *process, const struct process_options *options,
                          const char *const *words) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    reset_signals();
    int log = open(process->log_path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    int none = open("/dev/null", O_RDONLY);
    if (log < 0 || none < 0 || dup2(none, 0) < 0 || dup2(log, 1) < 0 || dup2(log, 2) < 0) {
        _exit(126);
    }
    for (size_t i = 0; options->environment && options->environment[i]; i++) {
        char *pair = strdup(options->environment[i]);
        if (!pair || putenv(pair) != 0) {
            _exit(126);
        }
    }
    if (options->files_max) {
        struct rlimit limit = {.rlim_cur = options->files_max, .rlim_max = options->files_max};
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    /* Nothing of the test may stay open in the server; CLOEXEC covers only our own sockets. */
    for (int fd = 3; fd < 1024; fd++) {
        close(fd);
    }
    char program[PATH_MAX];
    char *argv[WORDS_MAX];
    size_t count = 0;
    for (; words[count]; count++) {
        argv[count] = strdup(words[count]);
    }
    argv[count] = NULL;
    /* The working directory is the test's own, so that nothing is written elsewhere. */
    bool is_path = strchr(words[0], '/') != NULL;
    if (is_path && !realpath(words[0], program)) {
        fprintf(stderr, "%s: %s\n", words[0], strerror(errno));
        _exit(127);
    }
    if (chdir(process->directory) == 0) {
        execvp(is_path ? program : words[0], argv);
    }
    fprintf(stderr, "%s: %s\n", words[0], strerror(errno));
    _exit(127);
}

static bool answers_ping(const struct process *process) {
    int fd = process->port && !process->has_tls ? process_connect_tcp(process)
                                                : process_connect_unix(process);
    if (fd < 0) {
        return false;
    }
    char answer[64] = "";
    bool is_sent = send(fd, "PING\r\n", 6, MSG_NOSIGNAL) == 6;
    ssize_t got = is_sent ? recv(fd, answer, sizeof answer - 1, 0) : -1;
    close(fd);
    return got > 0 && (strncmp(answer, "+PONG", 5) == 0 || strncmp(answer, "-NOAUTH", 7) == 0 ||
                       strncmp(answer, "-LOADING", 8) == 0);
}

static bool wait_until_ready(struct process *process) {
    int64_t give_up_at = process_now_ms() + PROCESS_START_LIMIT_MS;
    while (process_now_ms() < give_up_at) {
        if (answers_ping(process)) {
            return true;
        }
        if (process_wait(process, 0)) {
            complain(process, "ended before it answered PING");
            return false;
        }
        process_sleep_ms(5);
    }
    complain(process, "does not answer PING");
    process_signal(process, SIGKILL);
    process_wait(process, PROCESS_STOP_LIMIT_MS);
    return false;
}

bool process_start(struct process *process, const struct process_options *options) {
    static const struct process_options usual;
    options = options ? options : &usual;
    *process = (struct process){.pid = 0};
    snprintf(process->program, sizeof process->program, "%s",
             options->program ? options->program : process_default_program());
    process->has_tls = options->has_tls;
    if (!make_directory(process, options) || !choose_port(process, options)) {
        return false;
    }
    char port_text[8];
    snprintf(port_text, sizeof port_text, "%u", process->port);
    const char *words[WORDS_MAX];
    fill_words(process, options, words, port_text);
    fflush(NULL); /* or the child prints it again */
    process->pid = fork();
    if (process->pid == 0) {
        become_server(process, options, words);
    }
    if (process->pid < 0) {
        process->pid = 0;
        return false;
    }
    if (!options->is_start_failure_expected) {
        return wait_until_ready(process);
    }
    if (!process_wait(process, PROCESS_START_LIMIT_MS)) {
        complain(process, "was expected to end by itself, and runs");
        return false;
    }
    return true;
}

static pid_t read_pid(const struct process *process) {
    char path[PROCESS_PATH_MAX + 8];
    snprintf(path, sizeof path, "%s/pid", process->directory);
    long pid = 0;
    FILE *file = fopen(path, "r");
    bool is_read = file != NULL && fscanf(file, "%ld\n", &pid) == 1;
    if (file != NULL) {
        fclose(file);
    }
    return is_read ? (pid_t)pid : 0;
}

bool process_start_daemon(struct process *process) {
    static const char *const arguments[] = {"--daemonize", "yes",        "--pidfile", "pid",
                                            "--logfile",   "daemon.log", NULL};
    const struct process_options options = {.arguments = arguments,
                                            .is_start_failure_expected = true};
    /* It becomes a child of the test: not every machine has an init that reaps orphans. */
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (!process_start(process, &options) || process->exit_status != 0) {
        return false;
    }
    int64_t give_up_at = process_now_ms() + PROCESS_START_LIMIT_MS;
    while ((process->pid = read_pid(process)) == 0 || !answers_ping(process)) {
        if (process_now_ms() >= give_up_at) {
            complain(process, "does not answer as a daemon");
            return false;
        }
        process_sleep_ms(10);
    }
    return true;
}

/* ---- stopping ---- */

void process_signal(const struct process *process, int signal_number) {
    if (process->pid > 0) {
        kill(process->pid, signal_number);
    }
}

bool process_wait(struct process *process, int limit_ms) {
    int64_t give_up_at = process_now_ms() + limit_ms;
    while (process->pid > 0) {
        int status = 0;
        pid_t ended = waitpid(process->pid, &status, WNOHANG);
        if (ended == process->pid) {
            process->exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
            process->pid = 0;
        } else if (process_now_ms() >= give_up_at) {
            return false;
        } else {
            process_sleep_ms(2);
        }
    }
    return true;
}

int process_stop(struct process *process) {
    bool was_running = process->pid > 0;
    process_signal(process, SIGTERM);
    if (!process_wait(process, PROCESS_STOP_LIMIT_MS)) {
        process_signal(process, SIGKILL);
        process_wait(process, PROCESS_STOP_LIMIT_MS);
    }
    let_port_go(process);
    if (was_running && process->exit_status != 0) {
        char what[64];
        snprintf(what, sizeof what, "ended with status %d", process->exit_status);
        complain(process, what);
    }
    if (process->directory[0]) {
        if (!process->is_directory_kept) {
            directory_remove(process->directory);
        }
        process->directory[0] = '\0';
    }
    return process->exit_status;
}

void process_end(struct process *process) {
    assert_int_equal(process_stop(process), 0);
}

static bool log_says_all(const struct process *process, const char *const *told) {
    char *log = process_log(process);
    bool says_all = log != NULL;
    for (size_t i = 0; says_all && told[i]; i++) {
        if (!strstr(log, told[i])) {
            fprintf(stderr, "process: the log does not say \"%s\": %s\n", told[i], log);
            says_all = false;
        }
    }
    free(log);
    return says_all;
}

bool process_start_is_refused(const struct process_options *options, const char *const *told) {
    struct process_options wanted = *options;
    wanted.is_start_failure_expected = true;
    struct process refused;
    bool is_refused = process_start(&refused, &wanted) && refused.exit_status == 1 &&
                      log_says_all(&refused, told);
    process_stop(&refused);
    return is_refused;
}

/* ---- watching ---- */

uint64_t process_resident_size(const struct process *process) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/statm", (int)process->pid);
    unsigned long long total = 0, resident = 0;
    FILE *file = process->pid > 0 ? fopen(path, "r") : NULL;
    bool is_read = file && fscanf(file, "%llu %llu", &total, &resident) == 2;
    if (file) {
        fclose(file);
    }
    return is_read ? (uint64_t)resident * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

static int count_descriptors(const struct process *process) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd", (int)process->pid);
    DIR *directory = process->pid > 0 ? opendir(path) : NULL;
    int count = 0;
    const struct dirent *entry;
    while (directory && (entry = readdir(directory)) != NULL) {
        count += entry->d_name[0] != '.';
    }
    if (!directory) {
        return -1;
    }
    closedir(directory);
    return count;
}

int process_descriptor_count(const struct process *process) {
    enum { STEP_MS = 5, STEADY_MS = 100 };
    int count = count_descriptors(process);
    for (int steady_ms = 0; steady_ms < STEADY_MS; steady_ms += STEP_MS) {
        process_sleep_ms(STEP_MS);
        int now = count_descriptors(process);
        if (now != count) {
            count = now;
            steady_ms = 0;
        }
    }
    return count;
}

int process_wait_descriptors(const struct process *process, int wanted, int limit_ms) {
    int64_t give_up_at = process_now_ms() + limit_ms;
    int count;
    while ((count = count_descriptors(process)) != wanted && process_now_ms() < give_up_at) {
        process_sleep_ms(5);
    }
    return count;
}
