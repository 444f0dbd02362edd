/* How long a command holds up everybody else: the longest PING while it runs and afterwards.
 *
 *     stall --port 6379 ZREMRANGEBYRANK board 0 999999
 *     stall --port 6379 --seconds 20                    without a command: while others load
 *     stall --port 6379 --request file                  the bytes of a file, one or more requests
 *
 * Without a command SIGTERM ends it, too. One connection sends PINGs some 50 us apart and waits for
 * each reply; --sleep n: sleeps so many us in between, so that others may have its core. After half
 * a second a second connection, on a thread of its own, sends the command. Its reply is over when
 * nothing came for --quiet ms (100). PINGs go on for
 * --seconds (2) after its reply, since what is removed is freed later. One line of JSON comes out:
 * the command's own time, the longest PING before it was sent (what the machine itself does) and
 * from then on, and the 99.9th percentile. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    PAUSE_NS = 50000,      /* between two PINGs */
    BEFORE_NS = 500000000, /* PINGs before the command is sent */
    BUCKETS = 100000,      /* of a microsecond each */
    WORDS_MAX = 64 * 1024,
    READ_SIZE = 1 << 18,
};

struct stall {
    unsigned port;
    double seconds;
    unsigned sleep_us; /* 0: turns round */
    int quiet_ms;      /* a reply of many pieces is over when nothing came for so long */
    char *request;
    size_t request_size;
    uint64_t begin_ns; /* of the PINGs */
    _Atomic uint64_t sent_ns, answered_ns;
    _Atomic bool is_answered;
};

/* Round trips in microseconds. */
struct trips {
    uint64_t count, longest_ns;
    uint32_t buckets[BUCKETS];
};

static volatile sig_atomic_t is_asked_to_end;

static void on_signal(int number) {
    (void)number;
    is_asked_to_end = 1;
}

static void die(const char *what) {
    fprintf(stderr, "stall: %s: %s\n", what, strerror(errno));
    exit(1);
}

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static int connect_to(unsigned port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int on = 1;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        die("connect");
    }
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

static void send_all(int fd, const char *at, size_t size) {
    while (size > 0) {
        ssize_t sent = send(fd, at, size, MSG_NOSIGNAL);
        if (sent <= 0) {
            die("send");
        }
        at += sent;
        size -= (size_t)sent;
    }
}

/* Send what the socket takes of the request from at on. Returns where the rest begins. */
static size_t send_some(const struct stall *stall, int fd, size_t at) {
    ssize_t sent =
        send(fd, stall->request + at, stall->request_size - at, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno != EAGAIN && errno != EWOULDBLOCK) {
        die("send");
    }
    return at + (sent > 0 ? (size_t)sent : 0);
}

static void receive_some(struct stall *stall, int fd, bool is_first) {
    static char reply[READ_SIZE];
    ssize_t size = recv(fd, reply, sizeof reply, 0);
    if (size <= 0) {
        die("recv");
    }
    if (is_first && reply[0] == '-') {
        fprintf(stderr, "stall: %.*s", (int)size, reply);
    }
    atomic_store(&stall->answered_ns, now_ns());
}

/* Replies are read while the request is still sent: many requests have many. */
static void *run_command(void *argument) {
    struct stall *stall = argument;
    struct pollfd watched = {.fd = connect_to(stall->port)};
    struct timespec before = {.tv_nsec = BEFORE_NS};
    size_t at = 0;
    bool is_first = true;
    nanosleep(&before, NULL);
    atomic_store(&stall->sent_ns, now_ns());
    for (;;) {
        bool is_sent = at == stall->request_size;
        watched.events = (short)(is_sent ? POLLIN : POLLIN | POLLOUT);
        if (poll(&watched, 1, is_sent && !is_first ? stall->quiet_ms : -1) == 0) {
            break;
        }
        if ((watched.revents & POLLOUT) != 0) {
            at = send_some(stall, watched.fd, at);
        }
        if ((watched.revents & (POLLIN | POLLERR | POLLHUP)) != 0) {
            receive_some(stall, watched.fd, is_first);
            is_first = false;
        }
    }
    close(watched.fd);
    atomic_store(&stall->is_answered, true);
    return NULL;
}

static void add_trip(struct trips *trips, uint64_t ns) {
    uint64_t bucket = ns / 1000 < BUCKETS ? ns / 1000 : BUCKETS - 1;
    trips->count++;
    trips->buckets[bucket]++;
    if (ns > trips->longest_ns) {
        trips->longest_ns = ns;
    }
}

/* Microseconds that this part of all round trips stays below. */
static unsigned percentile(const struct trips *trips, double part) {
    uint64_t wanted = (uint64_t)((double)trips->count * part);
    uint64_t seen = 0;
    unsigned bucket = 0;
    while (bucket < BUCKETS - 1 && (seen += trips->buckets[bucket]) <= wanted) {
        bucket++;
    }
    return bucket;
}

static uint64_t ping(int fd) {
    char reply[64];
    uint64_t begin = now_ns();
    send_all(fd, "*1\r\n$4\r\nPING\r\n", 14);
    if (recv(fd, reply, sizeof reply, 0) <= 0) {
        die("recv");
    }
    return now_ns() - begin;
}

static bool is_over(const struct stall *stall) {
    uint64_t from = stall->begin_ns;
    if (stall->request_size > 0) {
        if (!atomic_load(&stall->is_answered)) {
            return false;
        }
        from = atomic_load(&stall->answered_ns);
    } else if (is_asked_to_end) {
        return true;
    }
    return (double)(now_ns() - from) > stall->seconds * 1e9;
}

static void pause_between(const struct stall *stall) {
    struct timespec asleep = {.tv_nsec = (long)stall->sleep_us * 1000};
    uint64_t begin = now_ns();
    if (stall->sleep_us > 0) {
        nanosleep(&asleep, NULL);
        return;
    }
    while (now_ns() - begin < PAUSE_NS) {}
}

static void run_pings(struct stall *stall, struct trips *before, struct trips *after) {
    int fd = connect_to(stall->port);
    stall->begin_ns = now_ns();
    while (!is_over(stall)) {
        uint64_t begin = now_ns();
        uint64_t ns = ping(fd);
        uint64_t sent_ns = atomic_load(&stall->sent_ns);
        bool is_before = stall->request_size > 0 && (sent_ns == 0 || sent_ns > begin + ns);
        add_trip(is_before ? before : after, ns);
        pause_between(stall);
    }
    close(fd);
}

static void print_result(const struct stall *stall, const struct trips *before,
                         const struct trips *after) {
    uint64_t sent_ns = atomic_load(&stall->sent_ns);
    uint64_t answered_ns = atomic_load(&stall->answered_ns);
    printf("{\"command_us\": %llu, \"before_longest_us\": %llu, \"longest_us\": %llu, "
           "\"p999_us\": %u, \"p50_us\": %u, \"pings\": %llu}\n",
           (unsigned long long)(answered_ns - sent_ns) / 1000,
           (unsigned long long)before->longest_ns / 1000,
           (unsigned long long)after->longest_ns / 1000, percentile(after, 0.999),
           percentile(after, 0.5), (unsigned long long)after->count);
}

/* Write the words as a request. */
static void encode(struct stall *stall, int count, char **words) {
    static char request[WORDS_MAX];
    char *at = request;
    size_t left = sizeof request;
    size_t size = (size_t)snprintf(at, left, "*%d\r\n", count);
    for (int i = 0; i < count && size < left; i++) {
        size +=
            (size_t)snprintf(at + size, left - size, "$%zu\r\n%s\r\n", strlen(words[i]), words[i]);
    }
    if (size >= left) {
        fprintf(stderr, "stall: the command is too long\n");
        exit(2);
    }
    stall->request = request;
    stall->request_size = size;
}

static void read_request(struct stall *stall, const char *path) {
    FILE *file = fopen(path, "rb");
    if (file == NULL || fseek(file, 0, SEEK_END) != 0) {
        die(path);
    }
    stall->request_size = (size_t)ftell(file);
    rewind(file);
    stall->request = malloc(stall->request_size + 1);
    if (stall->request == NULL ||
        fread(stall->request, 1, stall->request_size, file) != stall->request_size) {
        die(path);
    }
    (void)fclose(file);
}

static bool read_option(struct stall *stall, const char *name, const char *value) {
    if (strcmp(name, "--port") == 0) {
        stall->port = (unsigned)strtoul(value, NULL, 10);
    } else if (strcmp(name, "--seconds") == 0) {
        stall->seconds = strtod(value, NULL);
    } else if (strcmp(name, "--sleep") == 0) {
        stall->sleep_us = (unsigned)strtoul(value, NULL, 10) % 1000000;
    } else if (strcmp(name, "--quiet") == 0) {
        stall->quiet_ms = (int)strtol(value, NULL, 10);
    } else if (strcmp(name, "--request") == 0) {
        read_request(stall, value);
    } else {
        return false;
    }
    return true;
}

int main(int argc, char **argv) {
    static struct stall stall = {.port = 6379, .seconds = 2, .quiet_ms = 100};
    static struct trips before;
    static struct trips after;
    int index = 1;
    for (; index + 1 < argc && strncmp(argv[index], "--", 2) == 0; index += 2) {
        if (!read_option(&stall, argv[index], argv[index + 1])) {
            fprintf(stderr, "usage: stall [--port n] [--seconds 2] [--sleep us] [--quiet ms] "
                            "[--request file] [command ...]\n");
            return 2;
        }
    }
    pthread_t thread;
    (void)signal(SIGTERM, on_signal);
    if (index < argc) {
        encode(&stall, argc - index, argv + index);
    }
    if (stall.request_size > 0 && pthread_create(&thread, NULL, run_command, &stall) != 0) {
        die("pthread_create");
    }
    run_pings(&stall, &before, &after);
    if (stall.request_size > 0) {
        pthread_join(thread, NULL);
    }
    print_result(&stall, &before, &after);
    return 0;
}
