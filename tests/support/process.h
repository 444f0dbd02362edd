/* A server under test as a process of its own: started in a fresh directory under /tmp, on a unix
 * socket and a free TCP port, watched, stopped, and its log kept for the assertions.
 *
 *     SERVER(server, NULL);
 *     int fd = process_connect_unix(&server);
 *
 * The program is $LEADERBOARD_SERVER, else leaderboard-server of the build that the test belongs to
 * (the test being BUILD/tests/integration/NAME). A redis-server gets the same words on its command
 * line. A server never outlives its test: the kernel kills it when the test program ends. */
#ifndef TESTS_SUPPORT_PROCESS_H
#define TESTS_SUPPORT_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    PROCESS_PATH_MAX = 96,
    PROCESS_START_LIMIT_MS = 120000, /* sanitized builds on a busy machine are slow */
    PROCESS_STOP_LIMIT_MS = 120000,
};

/* Zeroed is the usual server. Everything is borrowed for the call. */
struct process_options {
    const char *program;            /* NULL: as above */
    const char *directory;          /* one that is there, and stays; NULL: a fresh one */
    const char *config;             /* text of a configuration file; NULL: none is given */
    const char *const *arguments;   /* further words, NULL-ended; they win over the usual ones */
    const char *const *environment; /* "NAME=value", NULL-ended */
    uint16_t port;                  /* 0: a free one */
    uint64_t files_max;             /* limit of open files; 0: left alone */
    bool has_no_tcp;                /* port 0: the unix socket alone */
    bool has_tls;                   /* the port is for TLS; certificates are among the arguments */
    bool is_start_failure_expected; /* process_start waits for the exit, not for PING */
};

struct process {
    pid_t pid; /* 0: not running */
    bool has_tls;
    bool is_directory_kept;             /* it was given */
    uint16_t port;                      /* 0: no TCP */
    int port_holder;                    /* keeps others off the port until process_stop; 0: none */
    int exit_status;                    /* once it has ended; a signal n gives 128 + n */
    char directory[PROCESS_PATH_MAX];   /* its own; removed by process_stop */
    char socket_path[PROCESS_PATH_MAX]; /* in the directory */
    char log_path[PROCESS_PATH_MAX];    /* its stdout and stderr */
    char config_path[PROCESS_PATH_MAX]; /* "" without options.config */
    char program[256];
};

/* Start, and wait until it answers PING (-NOAUTH and -LOADING are answers, too). options may be
 * NULL.
 *
 * false: it did not come up, and is not running; the reason and its log are on stderr. With
 * is_start_failure_expected: true when it has exited by itself, exit_status says how; the directory
 * and the log stay until process_stop. */
bool process_start(struct process *process, const struct process_options *options);

/* Start it as a daemon, with its files "pid" and "daemon.log" in its directory, and wait until it
 * can be connected to. The daemon is then the process, a child of the test, and process_stop stops
 * it; or process_wait sees how it ends. */
bool process_start_daemon(struct process *process);

/* Start what must not come up: true when it has exited with status 1 and its log says each of told,
 * which ends with NULL. Otherwise what is missing is on stderr. */
bool process_start_is_refused(const struct process_options *options, const char *const *told);

/* SIGTERM, wait for the end, remove the directory. Returns the exit status; anything but 0 puts the
 * log on stderr. A process that does not end in time is killed (128 + 9). Safe after a failed
 * start, and twice. */
int process_stop(struct process *process);

/* One that must start, and must end well where its block ends: behind what is declared after it, as a WIRE. */
#define SERVER(name, options)                                                                      \
    __attribute__((cleanup(process_end))) struct process name;                                     \
    assert_true(process_start(&(name), (options)))
void process_end(struct process *process);

/* Send a signal; the process stays the caller's to stop or to wait for. */
void process_signal(const struct process *process, int signal_number);
/* Wait for the end: false if it still runs after limit_ms. exit_status is then set, pid 0. */
bool process_wait(struct process *process, int limit_ms);

/* A connected blocking socket with limits of a minute on reading and writing; -1: refused. */
int process_connect_unix(const struct process *process);
int process_connect_tcp(const struct process *process);
int process_connect_address(const char *address, uint16_t port); /* IPv4 text */

/* The log so far, terminated, to be freed; "" if there is none. */
char *process_log(const struct process *process);
bool process_has_logged(const struct process *process, const char *text);
/* Resident memory now, in bytes; 0 if it does not run. */
uint64_t process_resident_size(const struct process *process);
/* Open file descriptors, once their number is steady; -1 if it does not run. */
int process_descriptor_count(const struct process *process);
/* The same, once it is as wanted or the time is over: a network thread closes the descriptor of a client
 * that is no longer counted. */
int process_wait_descriptors(const struct process *process, int wanted, int limit_ms);
/* What process_start runs by itself, and the Redis server that replies are compared with
 * (BUILD/peers/redis-server, else the one in PATH). Static memory. */
const char *process_default_program(void);
const char *process_redis_program(void);
/* Was the test built with a sanitizer? So was the server. */
bool process_is_sanitized(void);
/* Milliseconds of a monotonic clock. */
int64_t process_now_ms(void);
void process_sleep_ms(int ms);
/* Until the condition holds, which is tried every few milliseconds; after a minute the test fails. */
#define WAIT_UNTIL(condition)                                                                      \
    do {                                                                                           \
        for (int64_t until = process_now_ms() + 60000; !(condition); process_sleep_ms(5)) {        \
            if (process_now_ms() > until) {                                                        \
                fail_msg("not within a minute: %s", #condition);                                   \
            }                                                                                      \
        }                                                                                          \
    } while (false)

#endif
