/* A load generator for servers that answer faster than redis-benchmark can ask.
 *
 *     load --port 6379 --clients 50 --pipeline 32 --requests 1000000 --range 1000000 \
 *          ZADD board __rand_int__ user:__rand_int__
 *
 * Requests are encoded before the clock runs, all of one size; what is left to do while it runs is
 * to send slices of them and to count replies. Words as redis-benchmark has them: __rand_int__ is
 * 12 digits of 0 .. range-1; besides, __seq_int__ counts 0, 1, 2 ..., __mixed_int__ visits the same
 * numbers once each in no order, and __score_int__ is random below --score-range, with as many
 * digits as that needs. With bytes, uuid or id in place of int (__mixed_uuid__) the number's name of
 * that form (bench/names.h) is sent. One line of JSON comes out: requests, seconds, errors, and how
 * long a client waited for the replies to one pipeline.
 * --from n: counting and mixing begin with the nth number, not with the first.
 * --names n: bytes and uuids are others than those of other n.
 * --rate n: so many requests a second, from the clients in turn, instead of as many as go. Those
 * that are sent late, as their client still waits, count as waiting since they were due.
 * --seconds n: until then, in place of --requests.
 * --file name: the request is this file's bytes, as they are, in place of a command.
 * --wait 1: says "ready" when the clients are connected, and sends when a line comes in; leaves
 * when there is no more input. So connecting can be kept out of what is measured; without a line
 * its clients are connected, and idle.
 * --tls 1: with TLS, whatever certificate the server has.
 *
 * Every client sends one pipeline, waits for all its replies, sends the next: as redis-benchmark.
 * It does not look into replies; an error reply is counted, and the first one is shown. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/names.h"

enum {
    NUMBERS_MAX = 256,
    TEMPLATE_MAX = 65536,
    BLOCK_REQUESTS = 1 << 18, /* encoded at a time; bounds memory */
    READ_SIZE = 1 << 18,
    CLIENTS_MAX = 10000,
    EVENTS_MAX = 128,
    SILENCE_MAX_MS = 60000,
    ERROR_SHOWN_MAX = 160,
    WAIT_STEPS = 64, /* between two powers of two: waits are known to 1.6% */
    WAIT_BUCKETS = 64 * WAIT_STEPS,
    LATE_NS = 2000000,
};

enum number_kind { NUMBER_RANDOM, NUMBER_SEQUENTIAL, NUMBER_MIXED, NUMBER_SCORE, NUMBER_KINDS };

struct load {
    const char *address;
    unsigned port;
    uint64_t client_count, pipeline, requests, range, score_range, seed, from, name_seed;
    uint64_t rate;      /* 0: as many as go */
    double seconds_max; /* 0: until all requests are sent */
    const char *file;
    bool is_waiting;
    SSL_CTX *tls; /* NULL: without */
    /* one request, and where its numbers stand */
    char template[TEMPLATE_MAX];
    const char *request; /* the template, or the file's bytes */
    size_t request_size;
    size_t number_at[NUMBERS_MAX];
    size_t number_size[NUMBERS_MAX];
    enum number_kind number_kind[NUMBERS_MAX];
    enum name_form number_form[NUMBERS_MAX];
    size_t number_count;
    struct random random;
    uint64_t encoded_count;      /* requests encoded so far, over all blocks */
    uint64_t mixed, mixing_step; /* mixed = (from + encoded_count) * mixing_step mod range */
    char *block;
    uint64_t block_count, block_sent, block_answered;
    double begun_at, end_at;
    bool is_ended; /* nothing more is sent */
    uint64_t answered;
    double seconds;
    double longest_ns;
    uint64_t waits[WAIT_BUCKETS], wait_count;
    uint64_t errors;
    char first_error[ERROR_SHOWN_MAX];
    int epoll;
};

struct client {
    int fd;
    SSL *ssl; /* NULL: without TLS */
    const char *unsent;
    size_t unsent_size;
    uint64_t replies_left;
    double sent_at;
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
            " [--requests n | --seconds n] [--range n] [--score-range n] [--rate n] [--seed n]"
            " [--from n] [--names n] [--wait 1] [--tls 1] COMMAND [word ...] | --file name\n",
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

/* The size of the placeholder at this place; 0: there is none. */
static size_t parse_placeholder(const char *at, enum number_kind *kind, enum name_form *form) {
    static const char *const names[NUMBER_KINDS] = {"rand", "seq", "mixed", "score"};
    for (int i = 0; i < NUMBER_KINDS; i++) {
        for (int j = 0; j < (i == NUMBER_SCORE ? 1 : NAME_FORMS); j++) {
            char text[32];
            int size = snprintf(text, sizeof text, "__%s_%s__", names[i], name_forms[j]);
            if (strncmp(at, text, (size_t)size) == 0) {
                *kind = (enum number_kind)i;
                *form = (enum name_form)j;
                return (size_t)size;
            }
        }
    }
    return 0;
}

/* Replace a placeholder by room for its name or digits. Returns the placeholder's size; 0: there is
 * none at this place. */
static size_t take_placeholder(struct load *load, const char *at) {
    static const char room[MICRO_NAME_MAX];
    enum number_kind kind;
    enum name_form form;
    size_t size = parse_placeholder(at, &kind, &form);
    if (size == 0) {
        return 0;
    }
    if (load->number_count == NUMBERS_MAX) {
        usage("too many numbers in the command");
    }
    size_t written = kind == NUMBER_SCORE ? score_digits(load) : name_sizes[form];
    load->number_at[load->number_count] = load->request_size;
    load->number_size[load->number_count] = written;
    load->number_form[load->number_count] = form;
    load->number_kind[load->number_count++] = kind;
    template_add(load, room, written);
    return size;
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
    load->request = load->template;
}

static void read_request(struct load *load) {
    FILE *file = fopen(load->file, "rb");
    if (!file || fseek(file, 0, SEEK_END) != 0) {
        die(load->file);
    }
    long size = ftell(file);
    char *request = size > 0 ? malloc((size_t)size) : NULL;
    rewind(file);
    if (!request || fread(request, 1, (size_t)size, file) != (size_t)size) {
        die(load->file);
    }
    fclose(file);
    load->request = request;
    load->request_size = (size_t)size;
}

/* index: the request's in its block. */
static uint64_t number(struct load *load, enum number_kind kind, uint64_t index) {
    switch (kind) {
    case NUMBER_SEQUENTIAL:
        return (load->from + load->encoded_count + index) % load->range;
    case NUMBER_MIXED:
        return load->mixed;
    case NUMBER_SCORE:
        return random_below(&load->random, load->score_range);
    case NUMBER_RANDOM:
    case NUMBER_KINDS:
    default:
        return random_below(&load->random, load->range);
    }
}

/* Requests that the block has room for: those without numbers are all the same, and one pipeline of
 * them is sent again and again. */
static uint64_t room_count(const struct load *load) {
    uint64_t count = load->number_count > 0 ? BLOCK_REQUESTS : load->pipeline;
    return load->requests < count ? load->requests : count;
}

static void encode_block(struct load *load) {
    uint64_t left = load->requests - load->encoded_count;
    load->block_count = left < BLOCK_REQUESTS ? left : BLOCK_REQUESTS;
    load->block_sent = load->block_answered = 0;
    if (load->number_count == 0 && load->encoded_count > 0) {
        load->encoded_count += load->block_count;
        return;
    }
    uint64_t room = room_count(load);
    uint64_t count = load->block_count < room ? load->block_count : room;
    char *at = load->block;
    for (uint64_t i = 0; i < count; i++) {
        memcpy(at, load->request, load->request_size);
        for (size_t n = 0; n < load->number_count; n++) {
            char name[MICRO_NAME_MAX];
            enum name_form form = load->number_form[n];
            size_t size = load->number_size[n];
            micro_write_name(form, load->name_seed, number(load, load->number_kind[n], i), name);
            memcpy(at + load->number_at[n], name + name_sizes[form] - size, size);
        }
        load->mixed = (load->mixed + load->mixing_step) % load->range;
        at += load->request_size;
    }
    load->encoded_count += load->block_count;
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

/* ---- waits ---- */

/* WAIT_STEPS of equal width between two powers of two. */
static size_t wait_bucket(uint64_t ns) {
    unsigned power = 63U - (unsigned)__builtin_clzll(ns | WAIT_STEPS);
    unsigned shift = power - 6U; /* WAIT_STEPS is 2^6 */
    return (size_t)shift * WAIT_STEPS + (size_t)(ns >> shift);
}

/* The middle of a bucket. */
static double bucket_ns(size_t bucket) {
    size_t shift = bucket < 2 * WAIT_STEPS ? 0 : bucket / WAIT_STEPS - 1;
    return ((double)(bucket - shift * WAIT_STEPS) + 0.5) * (double)(1ULL << shift);
}

static void count_wait(struct load *load, double ns) {
    load->waits[wait_bucket((uint64_t)(ns > 0 ? ns : 0))]++;
    load->wait_count++;
    load->longest_ns = ns > load->longest_ns ? ns : load->longest_ns;
}

/* In microseconds; share: 0.99 for that which 99% of waits do not exceed. */
static double wait_us(const struct load *load, double share) {
    uint64_t rank = (uint64_t)(share * (double)load->wait_count), below = 0;
    for (size_t bucket = 0; bucket < WAIT_BUCKETS; bucket++) {
        below += load->waits[bucket];
        if (below > rank) {
            return bucket_ns(bucket) / 1000;
        }
    }
    return load->longest_ns / 1000;
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

/* -1 with EAGAIN: not now. */
static ssize_t tls_result(const struct client *client, int result) {
    int error = SSL_get_error(client->ssl, result);
    if (result > 0 || error == SSL_ERROR_ZERO_RETURN) {
        return result > 0 ? result : 0;
    }
    errno = error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE ? EAGAIN : EPROTO;
    return -1;
}

static ssize_t send_bytes(const struct client *client, const char *at, size_t size, int flags) {
    if (client->ssl == NULL) {
        return send(client->fd, at, size, MSG_NOSIGNAL | flags);
    }
    return size > 0 ? tls_result(client, SSL_write(client->ssl, at, (int)size)) : 0;
}

static ssize_t receive_bytes(const struct client *client, char *at, size_t room, int flags) {
    return client->ssl == NULL ? recv(client->fd, at, room, flags)
                               : tls_result(client, SSL_read(client->ssl, at, (int)room));
}

/* Returns when the server serves the client, not only its kernel. */
static void await_pong(const struct client *client) {
    static const char ping[] = "PING\r\n";
    char end = '\0';
    if (send_bytes(client, ping, strlen(ping), 0) < 0) {
        die("send");
    }
    while (end != '\n') {
        if (receive_bytes(client, &end, 1, 0) != 1) {
            die("recv");
        }
    }
}

static void begin_tls(const struct load *load, struct client *client) {
    client->ssl = SSL_new(load->tls);
    if (client->ssl == NULL || SSL_set_fd(client->ssl, client->fd) != 1 ||
        SSL_connect(client->ssl) != 1) {
        die("TLS handshake");
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
    if (load->tls != NULL) {
        begin_tls(load, client);
    }
    await_pong(client);
    if (load->tls != NULL && fcntl(client->fd, F_SETFL, O_NONBLOCK) != 0) {
        die("fcntl");
    }
    client->values_left = 1;
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = client};
    if (epoll_ctl(load->epoll, EPOLL_CTL_ADD, client->fd, &event) != 0) {
        die("epoll_ctl");
    }
}

static void send_some(const struct load *load, struct client *client) {
    ssize_t sent = send_bytes(client, client->unsent, client->unsent_size, MSG_DONTWAIT);
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
    if (count == 0 || load->is_ended) {
        return;
    }
    client->sent_at = micro_now_ns();
    if (client->sent_at >= load->end_at) {
        load->is_ended = true;
        return;
    }
    if (load->rate > 0) {
        double due_at = load->begun_at + (double)load->block_sent * 1e9 / (double)load->rate;
        client->sent_at = client->sent_at - due_at > LATE_NS ? due_at : client->sent_at;
    }
    client->unsent = load->block;
    if (load->number_count > 0) {
        client->unsent += load->block_sent * load->request_size;
    }
    client->unsent_size = count * load->request_size;
    client->replies_left = count;
    load->block_sent += count;
    send_some(load, client);
}

/* What has come. */
static void take_replies(struct load *load, struct client *client) {
    static char input[READ_SIZE];
    ssize_t got;
    do { /* of TLS, record by record */
        got = receive_bytes(client, input, sizeof input, MSG_DONTWAIT);
        if (got == 0) {
            fprintf(stderr, "load: the server closed a connection\n");
            exit(1);
        }
        if (got < 0 && errno != EAGAIN && errno != EINTR) {
            die("recv");
        }
        if (got > 0) {
            take_input(load, client, input, (size_t)got);
        }
    } while (got > 0 && client->ssl != NULL && SSL_has_pending(client->ssl) == 1);
}

static void serve_client(struct load *load, struct client *client, uint32_t events) {
    uint64_t left = client->replies_left;
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
    take_replies(load, client);
    if (client->replies_left == 0 && left > 0) {
        count_wait(load, micro_now_ns() - client->sent_at);
        if (load->rate == 0) {
            send_next(load, client);
        }
    }
}

/* With a rate: the pipelines that are due by now, from each client in turn. One that still waits
 * holds up those behind it. Returns the client whose turn is next. */
static uint64_t send_due(struct load *load, struct client *clients, uint64_t turn) {
    uint64_t due = (uint64_t)((micro_now_ns() - load->begun_at) * 1e-9 * (double)load->rate);
    due = due < load->block_count ? due : load->block_count;
    while (load->block_sent < due && clients[turn].replies_left == 0 && !load->is_ended) {
        send_next(load, &clients[turn]);
        turn = (turn + 1) % load->client_count;
    }
    return turn;
}

/* Send the encoded block, or what there is time for, and wait for all replies. */
static void run_block(struct load *load, struct client *clients) {
    struct epoll_event events[EVENTS_MAX];
    int wait_ms = load->rate > 0 ? 1 : SILENCE_MAX_MS;
    int silent_ms = 0;
    uint64_t turn = 0;
    load->begun_at = micro_now_ns();
    load->end_at =
        load->begun_at + (load->seconds_max > 0 ? load->seconds_max - load->seconds : 1e9) * 1e9;
    for (uint64_t i = 0; i < load->client_count && load->rate == 0; i++) {
        send_next(load, &clients[i]);
    }
    while (load->block_answered < (load->is_ended ? load->block_sent : load->block_count)) {
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
            turn = send_due(load, clients, turn);
        }
    }
    load->answered += load->block_answered;
    load->seconds += (micro_now_ns() - load->begun_at) * 1e-9;
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
        } else if (strcmp(name, "from") == 0) {
            load->from = parse_count(value, UINT32_MAX);
        } else if (strcmp(name, "names") == 0) {
            load->name_seed = parse_count(value, UINT16_MAX);
        } else if (strcmp(name, "seconds") == 0) {
            load->seconds_max = strtod(value, NULL);
            load->requests = UINT64_MAX / 2;
        } else if (strcmp(name, "file") == 0) {
            load->file = value;
        } else if (strcmp(name, "wait") == 0) {
            load->is_waiting = parse_count(value, 1) == 1;
        } else if (strcmp(name, "tls") == 0) {
            load->tls = SSL_CTX_new(TLS_client_method());
            SSL_CTX_set_mode(load->tls,
                             SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
            SSL_CTX_set_read_ahead(load->tls, 1);
        } else {
            usage("unknown option");
        }
    }
    if ((at >= argc) == (load->file == NULL) || load->port == 0) {
        usage("a port, and a command or a file, are needed");
    }
    return at;
}

static void allow_many_files(void) {
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
}

static void start(struct load *load, struct client *clients) {
    load->random.state = load->seed;
    load->mixing_step = choose_mixing_step(load->range);
    for (uint64_t i = 0; i < load->from; i++) {
        load->mixed = (load->mixed + load->mixing_step) % load->range;
    }
    load->block = malloc(room_count(load) * load->request_size);
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
        if (getchar() == EOF) {
            exit(0);
        }
    }
}

static void finish(const struct load *load) {
    printf("{\"requests\": %llu, \"seconds\": %.6f, \"per_second\": %.0f, \"errors\": %llu,"
           " \"p50_us\": %.1f, \"p99_us\": %.1f, \"longest_us\": %.1f}\n",
           (unsigned long long)load->answered, load->seconds,
           (double)load->answered / load->seconds, (unsigned long long)load->errors,
           wait_us(load, 0.5), wait_us(load, 0.99), load->longest_ns / 1000);
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
    if (load.file) {
        read_request(&load);
    } else {
        make_template(&load, argv + first_word, argc - first_word);
    }
    allow_many_files();
    struct client *clients = calloc(load.client_count, sizeof *clients);
    start(&load, clients);
    while (load.encoded_count < load.requests && !load.is_ended) {
        encode_block(&load);
        run_block(&load, clients);
    }
    finish(&load);
    free(load.block);
    free(clients);
    return load.errors ? 1 : 0;
}
