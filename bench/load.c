/* A load generator for servers that answer faster than redis-benchmark can ask.
 *
 *     load --port 6379 --clients 50 --pipeline 32 --requests 1000000 --range 1000000 \
 *          ZADD board __rand_int__ user:__rand_int__
 *
 * Requests are encoded before the clock runs, all of one size; what is left to do while it runs is
 * to send slices of them and to count replies. Words as redis-benchmark has them: __rand_int__ is
 * 12 digits of 0 .. range-1; besides, __seq_int__ counts 0, 1, 2 ..., __mixed_int__ visits the same
 * numbers once each in no order, and __score_int__ is random below --score-range, with as many
 * digits as that needs. One line of JSON comes out: requests, seconds, errors.
 * --rate n: so many requests a second instead of as many as go.
 * --wait 1: says "ready" when the clients are connected, and sends when a line comes in; leaves
 * when there is no more input. So connecting can be kept out of what is measured.
 *
 * Every client sends one pipeline, waits for all its replies, sends the next: as redis-benchmark.
 * It does not look into replies; an error reply is counted, and the first one is shown. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/micro.h"

enum {
    NUMBERS_MAX = 256,
    TEMPLATE_MAX = 65536,
    BLOCK_REQUESTS = 1 << 20, /* encoded at a time; bounds memory */
    READ_SIZE = 1 << 18,
    CLIENTS_MAX = 10000,
    EVENTS_MAX = 128,
    SILENCE_MAX_MS = 60000,
    ERROR_SHOWN_MAX = 160,
};

enum number_kind { NUMBER_RANDOM, NUMBER_SEQUENTIAL, NUMBER_MIXED, NUMBER_SCORE };

struct load {
    const char *address;
    unsigned port;
    uint64_t client_count, pipeline, requests, range, score_range, seed;
    uint64_t rate; /* 0: as many as go */
    bool is_waiting;
    /* one request, and where its numbers stand */
    char template[TEMPLATE_MAX];
    size_t request_size;
    size_t number_at[NUMBERS_MAX];
    size_t number_size[NUMBERS_MAX];
    enum number_kind number_kind[NUMBERS_MAX];
    size_t number_count;
    struct random random;
    uint64_t encoded_count;      /* requests encoded so far, over all blocks */
    uint64_t mixed, mixing_step; /* mixed = encoded_count * mixing_step mod range */
    char *block;
    uint64_t block_count, block_sent, block_answered;
    uint64_t errors;
    char first_error[ERROR_SHOWN_MAX];
    int epoll;
};

struct client {
    int fd;
    const char *unsent;
    size_t unsent_size;
    uint64_t replies_left;
    /* inside a reply: values still to come, bytes of a bulk still to come, the line so far */
    uint64_t values_left;
    size_t skip;
    char line[ERROR_SHOWN_MAX];
    size_t line_size;
};

static void die(const char *what) {
    fprintf(stderr, "load: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void usage(const char *complaint) {
    fprintf(stderr,
            "load: %s\nusage: load [--host a.b.c.d] --port n [--clients 50] [--pipeline 1]"
            " [--requests n] [--range n] [--score-range n] [--rate n] [--seed n] [--wait 1] "
            "COMMAND [word ...]\n",
            complaint);
    exit(2);
}

/* ---- requests ---- */

static void template_add(struct load *load, const char *at, size_t size) {
    if (load->request_size + size > TEMPLATE_MAX) {
        usage("the command is too long");
    }
    memcpy(load->template + load->request_size, at, size);
    load->request_size += size;
}

static size_t score_digits(const struct load *load) {
    size_t digits = 1;
    for (uint64_t left = (load->score_range - 1) / 10; left > 0; left /= 10) {
        digits++;
    }
    return digits;
}

/* Replace a placeholder by room for its digits. Returns the placeholder's size; 0: there is none
 * at this place. */
static size_t take_placeholder(struct load *load, const char *at) {
    static const char *const names[] = {"__rand_int__", "__seq_int__", "__mixed_int__",
                                        "__score_int__"};
    for (int kind = NUMBER_RANDOM; kind <= NUMBER_SCORE; kind++) {
        size_t size = strlen(names[kind]);
        if (strncmp(at, names[kind], size) == 0) {
            if (load->number_count == NUMBERS_MAX) {
                usage("too many numbers in the command");
            }
            size_t digits = kind == NUMBER_SCORE ? score_digits(load) : MICRO_DIGITS;
            load->number_at[load->number_count] = load->request_size;
            load->number_size[load->number_count] = digits;
            load->number_kind[load->number_count++] = (enum number_kind)kind;
            template_add(load, "000000000000", digits);
            return size;
        }
    }
    return 0;
}

static size_t word_size(const struct load *load, const char *word) {
    struct load measured = {.score_range = load->score_range};
    for (const char *at = word; *at;) {
        size_t taken = take_placeholder(&measured, at);
        if (taken == 0) {
            measured.request_size++;
            taken = 1;
        }
        at += taken;
    }
    return measured.request_size;
}

static void make_template(struct load *load, char **words, int count) {
    char head[32];
    template_add(load, head, (size_t)snprintf(head, sizeof head, "*%d\r\n", count));
    for (int i = 0; i < count; i++) {
        size_t size = (size_t)snprintf(head, sizeof head, "$%zu\r\n", word_size(load, words[i]));
        template_add(load, head, size);
        for (const char *at = words[i]; *at;) {
            size_t taken = take_placeholder(load, at);
            if (taken == 0) {
                template_add(load, at, 1);
                taken = 1;
            }
            at += taken;
        }
        template_add(load, "\r\n", 2);
    }
}

static uint64_t number(struct load *load, enum number_kind kind) {
    switch (kind) {
    case NUMBER_SEQUENTIAL:
        return load->encoded_count % load->range;
    case NUMBER_MIXED:
        return load->mixed;
    case NUMBER_SCORE:
        return random_below(&load->random, load->score_range);
    case NUMBER_RANDOM:
    default:
        return random_below(&load->random, load->range);
    }
}

static void encode_block(struct load *load) {
    uint64_t left = load->requests - load->encoded_count;
    load->block_count = left < BLOCK_REQUESTS ? left : BLOCK_REQUESTS;
    load->block_sent = load->block_answered = 0;
    char *at = load->block;
    for (uint64_t i = 0; i < load->block_count; i++) {
        memcpy(at, load->template, load->request_size);
        for (size_t n = 0; n < load->number_count; n++) {
            char digits[MICRO_DIGITS];
            size_t size = load->number_size[n];
            micro_write_digits(digits, number(load, load->number_kind[n]));
            memcpy(at + load->number_at[n], digits + MICRO_DIGITS - size, size);
        }
        load->encoded_count++;
        load->mixed = (load->mixed + load->mixing_step) % load->range;
        at += load->request_size;
    }
}

static uint64_t greatest_common_divisor(uint64_t a, uint64_t b) {
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* A step without a common divisor with range visits every number once. */
static uint64_t choose_mixing_step(uint64_t range) {
    uint64_t step = (uint64_t)((double)range * 0.6180339887) | 1;
    while (greatest_common_divisor(step, range) != 1) {
        step += 2;
    }
    return step;
}

/* ---- replies ---- */

static void count_error(struct load *load, const struct client *client) {
    if (load->errors++ == 0) {
        snprintf(load->first_error, sizeof load->first_error, "%.*s", (int)client->line_size,
                 client->line);
    }
}

/* A value's first line is complete. */
static void take_line(struct load *load, struct client *client) {
    client->line[client->line_size] = '\0';
    long count = strtol(client->line + 1, NULL, 10);
    client->values_left--;
    switch (client->line[0]) {
    case '$':
    case '=':
        client->skip = count >= 0 ? (size_t)count + 2 : 0;
        break;
    case '*':
    case '~':
    case '>':
        client->values_left += count > 0 ? (uint64_t)count : 0;
        break;
    case '%':
        client->values_left += count > 0 ? 2 * (uint64_t)count : 0;
        break;
    case '-':
        count_error(load, client);
        break;
    default:
        break;
    }
    client->line_size = 0;
}

static void take_input(struct load *load, struct client *client, const char *at, size_t size) {
    while (size > 0) {
        if (client->skip > 0) {
            size_t skipped = client->skip < size ? client->skip : size;
            client->skip -= skipped;
            at += skipped;
            size -= skipped;
        } else {
            const char *end = memchr(at, '\n', size);
            size_t taken = end ? (size_t)(end - at) + 1 : size;
            size_t room = sizeof client->line - 1 - client->line_size;
            memcpy(client->line + client->line_size, at, taken < room ? taken : room);
            client->line_size += taken < room ? taken : room;
            at += taken;
            size -= taken;
            if (!end) {
                return;
            }
            take_line(load, client);
        }
        if (client->values_left == 0 && client->skip == 0) {
            client->values_left = 1;
            client->replies_left--;
            load->block_answered++;
        }
    }
}

/* ---- clients ---- */

/* Returns when the server serves the client, not only its kernel. */
static void await_pong(int fd) {
    static const char ping[] = "PING\r\n";
    char end = '\0';
    if (send(fd, ping, strlen(ping), MSG_NOSIGNAL) < 0) {
        die("send");
    }
    while (end != '\n') {
        if (recv(fd, &end, 1, 0) != 1) {
            die("recv");
        }
    }
}

static void connect_client(const struct load *load, struct client *client) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)load->port)};
    if (inet_pton(AF_INET, load->address, &address.sin_addr) != 1) {
        usage("--host wants an IPv4 address");
    }
    client->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (client->fd < 0 ||
        connect(client->fd, (const struct sockaddr *)&address, sizeof address) != 0) {
        die("connect");
    }
    int yes = 1;
    setsockopt(client->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    await_pong(client->fd);
    client->values_left = 1;
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = client};
    if (epoll_ctl(load->epoll, EPOLL_CTL_ADD, client->fd, &event) != 0) {
        die("epoll_ctl");
    }
}

static void send_some(const struct load *load, struct client *client) {
    ssize_t sent =
        send(client->fd, client->unsent, client->unsent_size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno != EAGAIN && errno != EINTR) {
        die("send");
    }
    bool was_partial = client->unsent_size > (size_t)(sent > 0 ? sent : 0);
    client->unsent += sent > 0 ? sent : 0;
    client->unsent_size -= sent > 0 ? (size_t)sent : 0;
    if (was_partial) { /* rare: watch for room until all is out */
        struct epoll_event event = {.events = EPOLLIN | EPOLLOUT, .data.ptr = client};
        epoll_ctl(load->epoll, EPOLL_CTL_MOD, client->fd, &event);
    }
}

static void send_next(struct load *load, struct client *client) {
    uint64_t left = load->block_count - load->block_sent;
    uint64_t count = left < load->pipeline ? left : load->pipeline;
    if (count == 0) {
        return;
    }
    client->unsent = load->block + load->block_sent * load->request_size;
    client->unsent_size = count * load->request_size;
    client->replies_left = count;
    load->block_sent += count;
    send_some(load, client);
}

static void serve_client(struct load *load, struct client *client, uint32_t events) {
    static char input[READ_SIZE];
    if (events & EPOLLOUT) {
        if (client->unsent_size > 0) {
            send_some(load, client);
        }
        if (client->unsent_size == 0) {
            struct epoll_event event = {.events = EPOLLIN, .data.ptr = client};
            epoll_ctl(load->epoll, EPOLL_CTL_MOD, client->fd, &event);
        }
    }
    if (!(events & (EPOLLIN | EPOLLHUP | EPOLLERR))) {
        return;
    }
    ssize_t got = recv(client->fd, input, sizeof input, MSG_DONTWAIT);
    if (got == 0) {
        fprintf(stderr, "load: the server closed a connection\n");
        exit(1);
    }
    if (got < 0) {
        if (errno != EAGAIN && errno != EINTR) {
            die("recv");
        }
        return;
    }
    take_input(load, client, input, (size_t)got);
    if (client->replies_left == 0 && load->rate == 0) {
        send_next(load, client);
    }
}

/* With a rate: the pipelines that are due by now, from each client in turn. One that still waits
 * holds up those behind it. Returns the client whose turn is next. */
static uint64_t send_due(struct load *load, struct client *clients, uint64_t turn,
                         double begun_at) {
    uint64_t due = (uint64_t)((micro_now_ns() - begun_at) * 1e-9 * (double)load->rate);
    due = due < load->block_count ? due : load->block_count;
    while (load->block_sent < due && clients[turn].replies_left == 0) {
        send_next(load, &clients[turn]);
        turn = (turn + 1) % load->client_count;
    }
    return turn;
}

/* Send the encoded block and wait for all its replies; returns the seconds that took. */
static double run_block(struct load *load, struct client *clients) {
    struct epoll_event events[EVENTS_MAX];
    int wait_ms = load->rate > 0 ? 1 : SILENCE_MAX_MS;
    int silent_ms = 0;
    uint64_t turn = 0;
    double begun_at = micro_now_ns();
    for (uint64_t i = 0; i < load->client_count && load->rate == 0; i++) {
        send_next(load, &clients[i]);
    }
    while (load->block_answered < load->block_count) {
        int ready = epoll_wait(load->epoll, events, EVENTS_MAX, wait_ms);
        silent_ms = ready == 0 ? silent_ms + wait_ms : 0;
        if (silent_ms >= SILENCE_MAX_MS) {
            fprintf(stderr, "load: no reply for a minute\n");
            exit(1);
        }
        for (int i = 0; i < ready; i++) {
            serve_client(load, events[i].data.ptr, events[i].events);
        }
        if (load->rate > 0) {
            turn = send_due(load, clients, turn, begun_at);
        }
    }
    return (micro_now_ns() - begun_at) * 1e-9;
}

/* ---- the command line ---- */

static uint64_t parse_count(const char *text, uint64_t max) {
    char *end = NULL;
    unsigned long long value = strtoull(text, &end, 10);
    if (end == text || *end || text[0] == '-' || value == 0 || value > max) {
        usage("not a number that is possible here");
    }
    return value;
}

/* Returns the index of the first word of the command. */
static int parse_options(struct load *load, int argc, char **argv) {
    int at = 1;
    for (; at + 1 < argc && strncmp(argv[at], "--", 2) == 0; at += 2) {
        const char *name = argv[at] + 2, *value = argv[at + 1];
        if (strcmp(name, "host") == 0) {
            load->address = value;
        } else if (strcmp(name, "port") == 0) {
            load->port = (unsigned)parse_count(value, 65535);
        } else if (strcmp(name, "clients") == 0) {
            load->client_count = parse_count(value, CLIENTS_MAX);
        } else if (strcmp(name, "pipeline") == 0) {
            load->pipeline = parse_count(value, BLOCK_REQUESTS);
        } else if (strcmp(name, "requests") == 0) {
            load->requests = parse_count(value, UINT64_MAX / 2);
        } else if (strcmp(name, "range") == 0) {
            load->range = parse_count(value, 999999999999ULL);
        } else if (strcmp(name, "score-range") == 0) {
            load->score_range = parse_count(value, 999999999999ULL);
        } else if (strcmp(name, "rate") == 0) {
            load->rate = parse_count(value, UINT32_MAX);
        } else if (strcmp(name, "seed") == 0) {
            load->seed = parse_count(value, UINT64_MAX);
        } else if (strcmp(name, "wait") == 0) {
            load->is_waiting = parse_count(value, 1) == 1;
        } else {
            usage("unknown option");
        }
    }
    if (at >= argc || load->port == 0) {
        usage("a port and a command are needed");
    }
    return at;
}

static void start(struct load *load, struct client *clients) {
    load->random.state = load->seed;
    load->mixing_step = choose_mixing_step(load->range);
    uint64_t largest = load->requests < BLOCK_REQUESTS ? load->requests : BLOCK_REQUESTS;
    load->block = malloc(largest * load->request_size);
    load->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (!load->block || !clients || load->epoll < 0) {
        die("start");
    }
    for (uint64_t i = 0; i < load->client_count; i++) {
        connect_client(load, &clients[i]);
    }
    if (load->is_waiting) {
        printf("ready\n");
        fflush(stdout);
        getchar();
    }
}

static void finish(const struct load *load, double seconds) {
    printf("{\"requests\": %llu, \"seconds\": %.6f, \"per_second\": %.0f, \"errors\": %llu}\n",
           (unsigned long long)load->requests, seconds, (double)load->requests / seconds,
           (unsigned long long)load->errors);
    fflush(stdout);
    if (load->errors) {
        fprintf(stderr, "load: %llu error replies, the first: %s\n",
                (unsigned long long)load->errors, load->first_error);
    }
    while (load->is_waiting && getchar() != EOF) {}
}

int main(int argc, char **argv) {
    static struct load load = {.address = "127.0.0.1",
                               .client_count = 50,
                               .pipeline = 1,
                               .requests = 100000,
                               .range = 1000000,
                               .score_range = 1000000,
                               .seed = 1};
    int first_word = parse_options(&load, argc, argv);
    make_template(&load, argv + first_word, argc - first_word);
    struct client *clients = calloc(load.client_count, sizeof *clients);
    start(&load, clients);
    double seconds = 0;
    while (load.encoded_count < load.requests) {
        encode_block(&load);
        seconds += run_block(&load, clients);
    }
    finish(&load, seconds);
    free(load.block);
    free(clients);
    return load.errors ? 1 : 0;
}
