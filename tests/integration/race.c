/* Many clients change the same members at once. Nobody's change may be lost, and the order must be
 * that of the commands as they ran: a client that watches (MONITOR) sees them one after another,
 * and the naive twin repeats them.
 *
 *     race [COMMANDS]      LEADERBOARD_RACE_COMMANDS=1000000 LEADERBOARD_TEST_SEED=n
 *
 * Every client's commands follow from the seed, so that the test knows them without being told.
 * Prints "N commands, 0 differences". */
#include "tests/support/test.h"

#include <netinet/in.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <hiredis/hiredis.h>

#include "tests/support/process.h"
#include "tests/support/random.h"
#include "tests/support/wire.h"

enum {
    CLIENTS = 16,
    COMMANDS_DEFAULT = 100000,
    COMMANDS_SHORT = 32000, /* LEADERBOARD_TEST_SHORT: make test */
    BOARDS = 2,
    MEMBERS = 800, /* of each board */
    PIPELINE_MAX = 64,
    WORDS_MAX = 128,
};

/* In a second many changes meet, and arrival decides; milliseconds show whose time it is. */
static const struct {
    const char *name;
    int64_t unit_us;
} boards[BOARDS] = {{"race:s", 1000000}, {"race:ms", 1000}};

static const char config[] = "layout s FIELD score 31 SIGNED FIELD flag 2 TIME 31 S\n"
                             "layout ms FIELD score 21 SIGNED FIELD flag 2 TIME 41 MS\n"
                             "board race:s s\n"
                             "board race:ms ms\n"
                             "client-output-buffer-limit normal 0 0 0\n";

static struct process server;
static uint64_t commands_per_client, seed;

/* ---- what a client sends ---- */

enum kind { KIND_ZINCRBY, KIND_ADD, KIND_KEEP_TIME, KIND_WITH_RANK, KIND_TWO };

struct change {
    int member, delta;
    int flag; /* -1: it stays */
};

struct operation {
    enum kind kind;
    int board;
    struct change changes[2];
    int change_count;
};

static struct random random_of(int client) {
    return (struct random){.state = seed + (uint64_t)client * 0x1000003U};
}

static int below(struct random *random, uint64_t limit) {
    return (int)random_below(random, limit);
}

static struct operation next_operation(struct random *random) {
    static const enum kind kinds[] = {KIND_ZINCRBY, KIND_ZINCRBY,   KIND_ZINCRBY, KIND_ZINCRBY,
                                      KIND_ZINCRBY, KIND_ADD,       KIND_ADD,     KIND_ADD,
                                      KIND_ADD,     KIND_KEEP_TIME, KIND_TWO,     KIND_WITH_RANK};
    struct operation operation = {.kind = kinds[random_below(random, 12)],
                                  .board = below(random, BOARDS)};
    int first = below(random, MEMBERS);
    operation.change_count = operation.kind == KIND_TWO ? 2 : 1;
    for (int i = 0; i < operation.change_count; i++) {
        bool has_flag = operation.kind != KIND_ZINCRBY && below(random, 2) == 0;
        operation.changes[i] = (struct change){
            .member = (first + i * (1 + below(random, MEMBERS - 1))) % MEMBERS,
            .delta = below(random, 7) - 3,
            .flag = has_flag ? below(random, 4) : -1,
        };
    }
    return operation;
}

/* Parted by spaces. */
static void write_words(const struct operation *operation, char *words) {
    static const char *const options[] = {[KIND_ADD] = "",
                                          [KIND_KEEP_TIME] = " KEEPTIME",
                                          [KIND_WITH_RANK] = " WITHRANK",
                                          [KIND_TWO] = ""};
    const char *board = boards[operation->board].name;
    const struct change *change = operation->changes;
    if (operation->kind == KIND_ZINCRBY) {
        snprintf(words, WORDS_MAX, "ZINCRBY %s %d m%d", board, change->delta, change->member);
        return;
    }
    int size = snprintf(words, WORDS_MAX, "LB.ADD %s INCR%s", board, options[operation->kind]);
    for (int i = 0; i < operation->change_count; i++, change++) {
        char flag[4] = "*";
        if (change->flag >= 0) {
            snprintf(flag, sizeof flag, "=%d", change->flag & 3);
        }
        size += snprintf(words + size, WORDS_MAX - (size_t)size, " %d %s m%d", change->delta, flag,
                         change->member);
    }
}

/* ---- a client, in a process of its own ---- */

/* ZINCRBY: the score. LB.ADD: the count. WITHRANK: the rank, and the one before it or -1. */
struct answer {
    int64_t first, second;
};

/* Shared with the clients' processes. */
struct shared {
    _Atomic int ports[CLIENTS]; /* once connected */
    _Atomic bool has_begun;
    struct answer answers[];
};
static struct shared *shared;

static bool take_answer(const redisReply *reply, enum kind kind, struct answer *answer) {
    *answer = (struct answer){0, 0};
    if (kind == KIND_WITH_RANK) {
        if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 1) {
            return false;
        }
        const redisReply *pair = reply->element[0];
        answer->first = pair->element[0]->element[1]->integer;
        answer->second = pair->element[1]->type == REDIS_REPLY_NIL ? -1 : pair->element[1]->integer;
        return true;
    }
    bool is_text = reply->type == REDIS_REPLY_STRING;
    answer->first = is_text ? strtoll(reply->str, NULL, 10) : reply->integer;
    return is_text == (kind == KIND_ZINCRBY) && (is_text || reply->type == REDIS_REPLY_INTEGER);
}

static bool receive_answers(redisContext *context, const enum kind *kinds, int count,
                            struct answer *answers) {
    for (int i = 0; i < count; i++) {
        redisReply *reply = NULL;
        bool is_right = redisGetReply(context, (void **)&reply) == REDIS_OK &&
                        take_answer(reply, kinds[i], &answers[i]);
        if (!is_right) {
            fprintf(stderr, "answered: %s\n", reply && reply->str ? reply->str : context->errstr);
        }
        freeReplyObject(reply);
        if (!is_right) {
            return false;
        }
    }
    return true;
}

static bool send_all(redisContext *context, int client) {
    struct random random = random_of(client), sizes = {.state = seed ^ (uint64_t)client};
    struct answer *answers = &shared->answers[(uint64_t)client * commands_per_client];
    struct text request = {.at = NULL};
    bool is_done = true;
    for (uint64_t sent = 0; is_done && sent < commands_per_client;) {
        enum kind kinds[PIPELINE_MAX];
        int count = 0, most = 1 + below(&sizes, PIPELINE_MAX);
        request.size = 0;
        for (; count < most && sent + (uint64_t)count < commands_per_client; count++) {
            char words[WORDS_MAX];
            struct operation operation = next_operation(&random);
            write_words(&operation, words);
            text_command(&request, "%s", words);
            kinds[count] = operation.kind;
        }
        redisAppendFormattedCommand(context, request.at, request.size);
        is_done = receive_answers(context, kinds, count, answers + sent);
        sent += (uint64_t)count;
    }
    text_free(&request);
    return is_done;
}

static bool run_client(int client) {
    redisContext *context = redisConnect("127.0.0.1", server.port);
    struct sockaddr_in address = {.sin_port = 0};
    socklen_t size = sizeof address;
    bool is_done = context != NULL && context->err == 0 &&
                   getsockname(context->fd, (struct sockaddr *)&address, &size) == 0;
    atomic_store(&shared->ports[client], ntohs(address.sin_port));
    while (is_done && !atomic_load(&shared->has_begun)) {
        process_sleep_ms(1);
    }
    is_done = is_done && send_all(context, client);
    redisFree(context);
    return is_done;
}

/* None begins before all are connected. */
static void start_clients(pid_t *pids) {
    for (int client = 0; client < CLIENTS; client++) {
        pids[client] = fork();
        if (pids[client] == 0) {
            _exit(run_client(client) ? 0 : 1);
        }
        assert_true(pids[client] > 0);
    }
    for (int client = 0; client < CLIENTS; client++) {
        WAIT_UNTIL(atomic_load(&shared->ports[client]) != 0);
    }
    atomic_store(&shared->has_begun, true);
}

static void wait_for_clients(const pid_t *pids) {
    for (int client = 0; client < CLIENTS; client++) {
        int status = 0;
        assert_int_equal(waitpid(pids[client], &status, 0), pids[client]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
}

/* ---- the twin ---- */

struct member {
    bool is_there;
    int64_t score, time_us;
    int flag, number;
    uint64_t arrival;
};

static struct member members[BOARDS][MEMBERS];
static uint64_t arrivals;
static int board_compared;

/* Negative: a ranks better. */
static int compare_members(const void *first, const void *second) {
    const struct member *a = first, *b = second;
    int64_t unit_us = boards[board_compared].unit_us;
    if (a->score != b->score) {
        return a->score > b->score ? -1 : 1;
    }
    if (a->flag != b->flag) {
        return a->flag > b->flag ? -1 : 1;
    }
    if (a->time_us / unit_us != b->time_us / unit_us) {
        return a->time_us < b->time_us ? -1 : 1;
    }
    return a->arrival < b->arrival ? -1 : 1;
}

static int64_t rank_of(int board, const struct member *member) {
    int64_t better = 0;
    board_compared = board;
    for (int i = 0; i < MEMBERS; i++) {
        const struct member *other = &members[board][i];
        better += other != member && other->is_there && compare_members(other, member) < 0;
    }
    return better;
}

/* true: the member was added or changed. */
static bool apply(const struct operation *operation, const struct change *change, int64_t now_us) {
    struct member *member = &members[operation->board][change->member];
    int flag = change->flag >= 0 ? change->flag : member->flag;
    bool is_changed = !member->is_there || change->delta != 0 || flag != member->flag;
    if (is_changed) {
        if (!member->is_there || operation->kind != KIND_KEEP_TIME) {
            member->time_us = now_us;
        }
        member->is_there = true;
        member->score += change->delta;
        member->flag = flag;
        member->arrival = ++arrivals;
    }
    return is_changed;
}

static struct answer repeat(const struct operation *operation, int64_t now_us) {
    struct answer answer = {0, 0};
    struct member *member = &members[operation->board][operation->changes[0].member];
    if (operation->kind == KIND_WITH_RANK) {
        answer.second = member->is_there ? rank_of(operation->board, member) : -1;
    }
    for (int i = 0; i < operation->change_count; i++) {
        answer.first += apply(operation, &operation->changes[i], now_us);
    }
    if (operation->kind == KIND_ZINCRBY) {
        answer.first = member->score;
    } else if (operation->kind == KIND_WITH_RANK) {
        answer.first = rank_of(operation->board, member);
    }
    return answer;
}

/* ---- watching ---- */

struct watched {
    struct random random[CLIENTS];
    uint64_t seen[CLIENTS];
    struct answer *answers; /* as the twin gives them */
    int client;             /* the last one */
    uint64_t turns;         /* of clients */
};

static int client_at(int port) {
    for (int client = 0; client < CLIENTS; client++) {
        if (atomic_load(&shared->ports[client]) == port) {
            return client;
        }
    }
    fail_msg("nobody of ours sends from port %d", port);
    return 0;
}

/* 1795175999.000123 [0 127.0.0.1:50123] "ZINCRBY" "race:s" "2" "m7" */
static void repeat_line(struct watched *watched, const char *line) {
    long long seconds = 0, micros = 0;
    int port = 0, head = 0;
    assert_int_equal(sscanf(line, "%lld.%lld [0 127.0.0.1:%d]%n", &seconds, &micros, &port, &head),
                     3);
    int client = client_at(port);
    struct operation operation = next_operation(&watched->random[client]);
    watched->turns += client != watched->client;
    watched->client = client;
    char words[WORDS_MAX], wanted[2 * WORDS_MAX], *save = NULL;
    size_t size = 0;
    write_words(&operation, words);
    for (char *word = strtok_r(words, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        size += (size_t)snprintf(wanted + size, sizeof wanted - size, " \"%s\"", word);
    }
    assert_string_equal(line + head, wanted); /* a client's commands run in its order */
    uint64_t place = (uint64_t)client * commands_per_client + watched->seen[client]++;
    watched->answers[place] = repeat(&operation, seconds * 1000000 + micros);
}

static struct wire begin_watching(void) {
    struct wire monitor = wire_open(process_connect_unix(&server));
    wire_check(&monitor, "MONITOR", "OK");
    return monitor;
}

/* ---- comparing ---- */

/* Whatever the order was: every member's increments add up. */
static void check_sums(void) {
    static int64_t sums[BOARDS][MEMBERS];
    memset(sums, 0, sizeof sums);
    for (int client = 0; client < CLIENTS; client++) {
        struct random random = random_of(client);
        for (uint64_t i = 0; i < commands_per_client; i++) {
            struct operation operation = next_operation(&random);
            for (int j = 0; j < operation.change_count; j++) {
                sums[operation.board][operation.changes[j].member] += operation.changes[j].delta;
            }
        }
    }
    WIRE(wire, process_connect_unix(&server));
    for (int board = 0; board < BOARDS; board++) {
        for (int i = 0; i < MEMBERS; i++) {
            char line[WORDS_MAX], score[32];
            snprintf(line, sizeof line, "ZSCORE %s m%d", boards[board].name, i);
            snprintf(score, sizeof score, "%lld", (long long)sums[board][i]);
            wire_check(&wire, line, members[board][i].is_there ? score : "nil");
        }
    }
}

static void check_order(int board) {
    TEXT(expected);
    WIRE(wire, process_connect_unix(&server));
    int64_t rank = 0, unit_ms = boards[board].unit_us / 1000;
    for (int i = 0; i < MEMBERS; i++) {
        members[board][i].number = i;
    }
    board_compared = board;
    qsort(members[board], MEMBERS, sizeof members[board][0], compare_members);
    text_add(&expected, "[", 1);
    for (int i = 0; i < MEMBERS; i++) {
        const struct member *member = &members[board][i];
        if (member->is_there) {
            text_format(&expected, "%s[m%d :%lld :%lld :%lld :%d]", rank > 0 ? " " : "",
                        member->number, (long long)rank,
                        (long long)(member->time_us / 1000 / unit_ms * unit_ms),
                        (long long)member->score, member->flag);
            rank++;
        }
    }
    text_add(&expected, "]", 1);
    assert_string_equal(wire_ask(&wire, formatted("LB.RANGE %s 0 -1", boards[board].name)),
                        expected.at);
}

TEST(sixteen_clients_lose_nothing_and_rank_as_their_commands_ran) {
    uint64_t commands = CLIENTS * commands_per_client;
    size_t size = sizeof *shared + commands * sizeof shared->answers[0];
    shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(shared != MAP_FAILED);
    struct watched watched = {.answers = calloc(commands, sizeof(struct answer))};
    assert_non_null(watched.answers);
    struct wire monitor = begin_watching();
    pid_t pids[CLIENTS];
    for (int client = 0; client < CLIENTS; client++) {
        watched.random[client] = random_of(client);
    }
    start_clients(pids);
    for (uint64_t i = 0; i < commands; i++) {
        repeat_line(&watched, wire_reply(&monitor));
    }
    wait_for_clients(pids);
    wire_close(&monitor);
    assert_memory_equal(shared->answers, watched.answers, commands * sizeof(struct answer));
    check_sums();
    for (int board = 0; board < BOARDS; board++) {
        check_order(board);
    }
    assert_true(watched.turns > 10 * CLIENTS); /* or it was no race */
    printf("%llu commands, 0 differences\n%d clients in %llu turns\n", (unsigned long long)commands,
           CLIENTS, (unsigned long long)watched.turns);
    free(watched.answers);
    munmap(shared, size);
}

FIXTURE(start_server) {
    const struct process_options options = {.config = config};
    return process_start(&server, &options) ? 0 : -1;
}

FIXTURE(stop_server) {
    return process_stop(&server);
}

int main(int argc, char **argv) {
    const char *given = argc > 1 ? argv[1] : getenv("LEADERBOARD_RACE_COMMANDS");
    uint64_t commands = is_short_run() ? COMMANDS_SHORT : COMMANDS_DEFAULT;
    commands_per_client = (given ? strtoull(given, NULL, 10) : commands) / CLIENTS;
    seed = random_begin("race").state;
    return test_run(start_server, stop_server);
}
