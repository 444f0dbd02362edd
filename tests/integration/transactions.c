/* Transactions over real connections: beside redis-server step by step, cut at every byte, raced by
 * many clients, held by a pause, and what attackers make of them.
 *
 *     transactions [STEPS]      LEADERBOARD_TEST_SEED=n repeats a run
 *
 * Prints "N commands, M differences". */
#include "tests/support/test.h"

#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <hiredis/hiredis.h>

#include "tests/support/process.h"
#include "tests/support/random.h"
#include "tests/support/wire.h"

enum {
    MIB = 1024 * 1024,
    STEPS_DEFAULT = 60000,
    STEPS_SHORT = 12000, /* LEADERBOARD_TEST_SHORT: make test */
    CLIENTS = 4,         /* of each server, in the comparison */
    RACERS = 16,
    WINS = 300, /* of each racer */
    WINS_SHORT = 60,
    VOTES = 100, /* of each voter */
    VOTES_SHORT = 20,
    TRIES = 15, /* of one vote */
    MANY = 1000000,
    MANY_SHORT = 100000,
};

static struct process server, redis;
static struct wire witness;
static uint64_t steps;

FIXTURE(start_servers) {
    /* What a vote makes of a key today, and its points alone; the end is a month ahead. */
    char config[512], end[32];
    time_t end_s = time(NULL) + 30 * 86400;
    strftime(end, sizeof end, "%Y-%m-%dT%H:%M:%SZ", gmtime(&end_s));
    snprintf(config, sizeof config,
             "layout packed FIELD packed 64 SIGNED\n"
             "layout points FIELD points 30 TIME 34 MS END %s\n"
             "board packed:* packed\n"
             "board points:* points\n",
             end);
    const struct process_options options = {.config = config};
    const struct process_options redis_options = {.program = process_redis_program()};
    return process_start(&server, &options) && process_start(&redis, &redis_options) ? 0 : -1;
}

FIXTURE(stop_servers) {
    int failed = process_stop(&server);
    return process_stop(&redis) | failed;
}

FIXTURE(connect_witness) {
    witness = wire_open(process_connect_unix(&server));
    wire_check(&witness, "FLUSHALL", "OK");
    return 0;
}

static void wait_for_clients(int64_t count) {
    wire_wait_info(&witness, "connected_clients", count);
}

FIXTURE(disconnect_witness) {
    wait_for_clients(1);
    assert_int_equal(wire_info(&witness, "watching_clients"), 0);
    wire_wait_info(&witness, "total_watched_keys", 0);
    wire_close(&witness);
    return 0;
}

/* ---- beside redis-server ---- */

static struct random chance;

static unsigned below(unsigned limit) {
    return (unsigned)random_below(&chance, limit);
}

/* %k is a key, %s a score and a member of its own (no two are ever equal), %m a member. */
static const struct {
    const char *line;
    unsigned weight;
} kinds[] = {
    {"MULTI", 120},
    {"EXEC", 110},
    {"DISCARD", 12},
    {"WATCH %k", 60},
    {"WATCH %k %k %k", 20},
    {"UNWATCH", 12},
    {"ZADD %k %s", 60},
    {"ZADD %k %s %s %s", 20},
    {"ZADD %k NX %s", 10},
    {"ZADD %k XX CH %s", 10},
    {"ZADD %k GT CH %s", 10},
    {"ZADD %k XX INCR 0 %m", 10},
    {"ZADD %k XX INCR 1024 %m", 10},
    {"ZADD %k x y", 3},
    {"ZADD %k 1", 2},
    {"ZREM %k %m", 15},
    {"ZREM %k %m %m %m %m", 10},
    {"ZSCORE %k %m", 20},
    {"ZRANK %k %m", 10},
    {"ZCARD %k", 10},
    {"ZRANGE %k 0 -1 WITHSCORES", 20},
    {"ZREVRANGE %k 0 2", 10},
    {"ZCOUNT %k -inf (5000", 5},
    {"ZPOPMIN %k", 8},
    {"ZPOPMAX %k 2", 8},
    {"ZMPOP 2 %k %k MAX COUNT 2", 5},
    {"ZREMRANGEBYRANK %k 0 0", 5},
    {"ZREMRANGEBYRANK %k 7 9", 5},
    {"ZREMRANGEBYSCORE %k 100 900", 5},
    {"ZUNIONSTORE %k 2 %k %k AGGREGATE MAX", 5},
    {"ZINTERSTORE %k 2 %k %k AGGREGATE MIN", 5},
    {"ZDIFFSTORE %k 2 %k %k", 5},
    {"ZRANGESTORE %k %k 0 3", 5},
    {"ZINTERCARD 2 %k %k", 3},
    {"DEL %k", 12},
    {"UNLINK %k %k", 5},
    {"EXISTS %k %k", 5},
    {"TYPE %k", 3},
    {"RENAME %k %k", 8},
    {"RENAMENX %k %k", 5},
    {"COPY %k %k", 5},
    {"COPY %k %k REPLACE", 5},
    {"COPY %k %k DB 1 REPLACE", 5},
    {"EXPIRE %k 10000", 5},
    {"EXPIRE %k 10000 NX", 5},
    {"EXPIRE %k -1", 4},
    {"PERSIST %k", 5},
    {"FLUSHDB", 3},
    {"FLUSHALL", 2},
    {"SELECT 0", 8},
    {"SELECT 1", 4},
    {"SELECT 99", 1},
    {"PING", 5},
    {"ECHO %k", 5},
    {"NONSENSE %k", 3},
    {"CLIENT NONSENSE", 1},
    {"CLIENT SETNAME %m", 1},
    {"CLIENT GETNAME", 1},
    {"SHUTDOWN", 1},
    {"MULTI x", 1},
    {"EXEC x", 1},
    {"DISCARD x", 1},
    {"WATCH", 1},
    {"RESET", 3},
    {"DBSIZE", 3},
};

static void add_score(struct text *line) {
    unsigned id = below(12);
    text_format(line, "%d m%u", (int)(id + 1024 * below(8)) - 2048, id);
}

static void make_line(struct text *line) {
    unsigned weights = 0;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        weights += kinds[i].weight;
    }
    unsigned drawn = below(weights);
    size_t kind = 0;
    while (drawn >= kinds[kind].weight) {
        drawn -= kinds[kind++].weight;
    }
    line->size = 0;
    for (const char *at = kinds[kind].line; *at != '\0'; at++) {
        if (*at != '%') {
            text_add(line, at, 1);
        } else if (*++at == 's') {
            add_score(line);
        } else {
            text_format(line, "%c%u", *at, below(*at == 'k' ? 5 : 12));
        }
    }
}

/* One request, one reply: its bytes, as wire.c leaves them (a line's end is cut by a 0). */
static void ask_raw(struct wire *wire, const char *line, struct text *raw) {
    assert_int_equal(wire->held_at, wire->held.size);
    (void)wire_ask(wire, line);
    raw->size = 0;
    text_add(raw, wire->held.at, wire->held_at);
}

/* "multi=2" and "flags=x", the same of both. */
static void compare_state(struct wire *ours, struct wire *theirs) {
    static const char *const names[] = {" flags=", " multi=", " db="};
    const char *our_line = wire_ask(ours, "CLIENT INFO");
    const char *their_line = wire_ask(theirs, "CLIENT INFO");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *our_field = strstr(our_line, names[i]);
        const char *their_field = strstr(their_line, names[i]);
        assert_true(our_field != NULL && their_field != NULL);
        size_t size = strcspn(their_field + 1, " ") + 2;
        if (strncmp(our_field, their_field, size) != 0) {
            fail_msg("ours: %s\nredis: %s", our_line, their_line);
        }
    }
}

static void show(const char *name, const struct text *raw) {
    printf("  %s ", name);
    for (size_t i = 0; i < raw->size; i++) {
        putchar(raw->at[i] == '\0' || raw->at[i] == '\n' ? ' ' : raw->at[i]);
    }
    printf("\n");
}

/* Between MULTI and its end a client's own state can only be asked for by others. */
static void follow(const char *line, const struct text *reply, bool *is_in_multi) {
    bool is_ok = strncmp(reply->at, "+OK", 3) == 0;
    if (strcmp(line, "MULTI") == 0) {
        *is_in_multi |= is_ok;
    } else if (strncmp(line, "EXEC", 4) == 0 || strcmp(line, "DISCARD") == 0 ||
               strcmp(line, "RESET") == 0) {
        *is_in_multi = false;
    }
}

#define IN_TURN(name) TEST_WITH(name, connect_witness, disconnect_witness)

IN_TURN(interleaved_transactions_answer_as_redis_has_them) {
    chance = random_begin(__func__);
    struct wire ours[CLIENTS], theirs[CLIENTS];
    bool are_in_multi[CLIENTS] = {false};
    for (int i = 0; i < CLIENTS; i++) {
        ours[i] = wire_open(process_connect_unix(&server));
        theirs[i] = wire_open(process_connect_unix(&redis));
    }
    struct text line = {.at = NULL}, our_reply = {.at = NULL}, their_reply = {.at = NULL};
    uint64_t differences = 0, nils = 0, aborts = 0, done = 0;
    for (uint64_t step = 0; step < steps && differences == 0; step++) {
        unsigned client = below(CLIENTS);
        make_line(&line);
        if (strcmp(line.at, "SHUTDOWN") == 0 && !are_in_multi[client]) {
            continue; /* it would be done */
        }
        ask_raw(&ours[client], line.at, &our_reply);
        ask_raw(&theirs[client], line.at, &their_reply);
        if (our_reply.size != their_reply.size ||
            memcmp(our_reply.at, their_reply.at, our_reply.size) != 0) {
            printf("step %llu, client %u: %s\n", (unsigned long long)step, client, line.at);
            show("ours ", &our_reply);
            show("redis", &their_reply);
            differences++;
        }
        if (strcmp(line.at, "EXEC") == 0) {
            nils += their_reply.at[0] == '*' && their_reply.at[1] == '-';
            aborts += strncmp(their_reply.at, "-EXECABORT", 10) == 0;
            done += their_reply.at[0] == '*' && their_reply.at[1] > '0';
        }
        follow(line.at, &our_reply, &are_in_multi[client]);
        if (!are_in_multi[client] && below(20) == 0) {
            compare_state(&ours[client], &theirs[client]);
        }
    }
    printf("%llu commands, %llu differences; EXEC: %llu done, %llu nil, %llu aborted\n",
           (unsigned long long)steps, (unsigned long long)differences, (unsigned long long)done,
           (unsigned long long)nils, (unsigned long long)aborts);
    for (int i = 0; i < CLIENTS; i++) {
        wire_close(&ours[i]);
        wire_close(&theirs[i]);
    }
    text_free(&line);
    text_free(&our_reply);
    text_free(&their_reply);
    assert_int_equal(differences, 0);
    assert_true(done > steps / 100 && nils > steps / 1000 && aborts > steps / 1000);
}

/* ---- cut and piled up ---- */

/* Whole transactions of every end, as one pipeline; text: what must be answered. */
static void add_pipeline(struct text *request, struct text *replies) {
    text_command(request, "ZADD cut 1 a");
    text_command(request, "WATCH cut other");
    text_command(request, "MULTI");
    text_command(request, "ZINCRBY cut 5 a");
    text_command(request, "ZADD cut 2 b");
    text_command(request, "EXEC");
    text_command(request, "WATCH cut");
    text_command(request, "ZINCRBY cut 1 a");
    text_command(request, "MULTI");
    text_command(request, "DEL cut");
    text_command(request, "EXEC");
    text_command(request, "MULTI");
    text_command(request, "NONSENSE");
    text_command(request, "DEL cut");
    text_command(request, "EXEC");
    text_format(request, "MULTI\r\nZSCORE cut \"a\"\r\nECHO '\\' '\r\nEXEC\r\n");
    text_command(request, "DEL cut");
    text_format(replies,
                ":1\r\n+OK\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n$1\r\n6\r\n:1\r\n"
                "+OK\r\n$1\r\n7\r\n+OK\r\n+QUEUED\r\n*-1\r\n"
                "+OK\r\n-ERR unknown command 'NONSENSE', with args beginning with: \r\n+QUEUED\r\n"
                "-EXECABORT Transaction discarded because of previous errors.\r\n"
                "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n$1\r\n7\r\n$2\r\n' \r\n:1\r\n");
}

IN_TURN(a_pipeline_cut_at_any_byte_is_answered_as_in_one_piece) {
    struct text request = {.at = NULL}, replies = {.at = NULL};
    add_pipeline(&request, &replies);
    WIRE(client, process_connect_unix(&server));
    wire_send(&client, request.at, request.size);
    wire_expect_bytes(&client, replies.at, replies.size);
    for (size_t cut = 1; cut < request.size; cut++) {
        wire_send(&client, request.at, cut);
        wire_check(&witness, "PING", "PONG");
        wire_send(&client, request.at + cut, request.size - cut);
        wire_expect_bytes(&client, replies.at, replies.size);
    }
    for (size_t i = 0; i < request.size; i++) {
        wire_send(&client, request.at + i, 1);
    }
    wire_expect_bytes(&client, replies.at, replies.size);
    text_free(&request);
    text_free(&replies);
}

IN_TURN(thousands_of_transactions_run_in_one_pipeline) {
    enum { TRANSACTIONS = 5000 };
    struct text request = {.at = NULL}, replies = {.at = NULL};
    for (int i = 0; i < TRANSACTIONS; i++) {
        add_pipeline(&request, &replies);
    }
    WIRE(client, process_connect_tcp(&server));
    wire_send(&client, request.at, request.size);
    wire_expect_bytes(&client, replies.at, replies.size);
    text_free(&request);
    text_free(&replies);
}

/* ---- races ---- */

/* A process of its own for each racer; true: all of them have come to their end. */
static bool race(int racers, bool (*run)(redisContext *redis_context, int racer)) {
    pid_t pids[RACERS];
    for (int i = 0; i < racers; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            redisContext *context = redisConnectUnix(server.socket_path);
            bool is_done = context != NULL && context->err == 0 && run(context, i);
            redisFree(context);
            _exit(is_done ? 0 : 1);
        }
        assert_true(pids[i] > 0);
    }
    bool is_done = true;
    for (int i = 0; i < racers; i++) {
        int status = 0;
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        is_done &= WIFEXITED(status) && WEXITSTATUS(status) == 0;
    }
    return is_done;
}

/* What an answer is, in a word: its text, "nil", or the first value of an array. */
static bool take(redisReply *reply, char *text, size_t size) {
    if (reply == NULL) {
        return false;
    }
    const redisReply *value =
        reply->type == REDIS_REPLY_ARRAY && reply->elements > 0 ? reply->element[0] : reply;
    bool is_error = value->type == REDIS_REPLY_ERROR;
    if (value->type == REDIS_REPLY_INTEGER) {
        snprintf(text, size, "%lld", value->integer);
    } else {
        snprintf(text, size, "%s", value->type == REDIS_REPLY_NIL ? "nil" : value->str);
    }
    freeReplyObject(reply);
    return !is_error;
}

__attribute__((format(printf, 4, 5))) static bool ask(redisContext *context, char *text,
                                                      size_t size, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    redisReply *reply = redisvCommand(context, format, arguments);
    va_end(arguments);
    return take(reply, text, size);
}

/* Read, and write one more unless somebody else has written meanwhile. */
static bool try_increment(redisContext *context, bool *is_done) {
    char text[64];
    if (!ask(context, text, sizeof text, "WATCH counter") ||
        !ask(context, text, sizeof text, "ZSCORE counter n")) {
        return false;
    }
    long long score = strtoll(text, NULL, 10);
    if (!ask(context, text, sizeof text, "MULTI") ||
        !ask(context, text, sizeof text, "ZADD counter %lld n", score + 1) ||
        !ask(context, text, sizeof text, "EXEC")) {
        return false;
    }
    *is_done = strcmp(text, "nil") != 0;
    return true;
}

static bool increment(redisContext *context, int racer) {
    (void)racer;
    for (int wins = 0; wins < (is_short_run() ? WINS_SHORT : WINS);) {
        bool is_done = false;
        if (!try_increment(context, &is_done)) {
            return false;
        }
        wins += is_done;
    }
    return true;
}

IN_TURN(racing_read_and_write_under_watch_loses_no_increment) {
    const char *expected = formatted("%d", RACERS * (is_short_run() ? WINS_SHORT : WINS));
    assert_true(race(RACERS, increment));
    wire_check(&witness, "ZSCORE counter n", expected);
}

/* Two boards change together, while others look at both. */
static bool move_points(redisContext *context, int racer) {
    char text[64];
    for (int i = 0; i < (is_short_run() ? WINS_SHORT : WINS); i++) {
        redisAppendCommand(context, "MULTI");
        redisAppendCommand(context, "ZINCRBY from -1 purse");
        redisAppendCommand(context, "ZINCRBY to 1 purse");
        redisAppendCommand(context, "EXEC");
        redisAppendCommand(context, "MULTI");
        redisAppendCommand(context, "ZSCORE from purse");
        redisAppendCommand(context, "ZSCORE to purse");
        redisAppendCommand(context, "EXEC");
        for (int j = 0; j < 7; j++) {
            void *reply = NULL;
            if (redisGetReply(context, &reply) != REDIS_OK || !take(reply, text, sizeof text)) {
                return false;
            }
        }
        redisReply *reply = NULL;
        if (redisGetReply(context, (void **)&reply) != REDIS_OK || reply->elements != 2 ||
            atoll(reply->element[0]->str) + atoll(reply->element[1]->str) != 0) {
            fprintf(stderr, "racer %d saw half a transaction\n", racer);
            return false;
        }
        freeReplyObject(reply);
    }
    return true;
}

IN_TURN(nobody_sees_half_a_transaction) {
    assert_true(race(RACERS, move_points));
}

/* ---- the voting system ----
 *
 * Today: one integer holds 30 bits of points and 34 bits of milliseconds to the period's end, and a
 * vote reads it, adds a point, and writes it back under WATCH; after 15 tries the voter gets an
 * error. That loop runs as it is. */

static bool vote_packed(redisContext *context, int racer) {
    const long long end_ms = (long long)time(NULL) * 1000 + 30LL * 86400 * 1000;
    char text[64];
    long long votes = 0;
    for (int vote = 0; vote < (is_short_run() ? VOTES_SHORT : VOTES); vote++) {
        bool is_done = false;
        for (int i = 0; i < TRIES && !is_done; i++) {
            if (!ask(context, text, sizeof text, "WATCH packed:poll") ||
                !ask(context, text, sizeof text, "ZSCORE packed:poll candidate")) {
                return false;
            }
            unsigned long long packed = strcmp(text, "nil") == 0 ? 0 : strtoull(text, NULL, 10);
            unsigned long long points = (packed >> 34) + 1;
            unsigned long long left_ms =
                (unsigned long long)(end_ms - (long long)time(NULL) * 1000);
            if (!ask(context, text, sizeof text, "MULTI") ||
                !ask(context, text, sizeof text, "ZADD packed:poll %llu candidate",
                     points << 34 | left_ms) ||
                !ask(context, text, sizeof text, "EXEC")) {
                return false;
            }
            is_done = strcmp(text, "nil") != 0;
        }
        votes += is_done;
    }
    return ask(context, text, sizeof text, "ZADD told %lld voter:%d", votes, racer);
}

IN_TURN(the_loop_of_watch_and_fifteen_tries_works_unchanged) {
    assert_true(race(RACERS, vote_packed));
    unsigned long long packed =
        strtoull(wire_ask(&witness, "ZSCORE packed:poll candidate"), NULL, 10);
    unsigned long long told = 0;
    for (int i = 0; i < RACERS; i++) {
        told += strtoull(wire_ask(&witness, formatted("ZSCORE told voter:%d", i)), NULL, 10);
    }
    int asked = RACERS * (is_short_run() ? VOTES_SHORT : VOTES);
    printf("%d votes asked for, %llu given: the others had no luck in %d tries\n", asked, told,
           TRIES);
    assert_true(told > 0);
    assert_int_equal(packed >> 34, told);
    assert_true((packed & ((1ULL << 34) - 1)) < 30ULL * 86400 * 1000 + 1);
}

static bool vote_points(redisContext *context, int racer) {
    char text[64];
    for (int vote = 0; vote < (is_short_run() ? VOTES_SHORT : VOTES); vote++) {
        if (!ask(context, text, sizeof text, "ZINCRBY points:poll 1 candidate") ||
            !ask(context, text, sizeof text, "ZINCRBY points:poll 1 voter:%d", racer)) {
            return false;
        }
    }
    return true;
}

IN_TURN(zincrby_alone_needs_neither_watch_nor_tries) {
    int votes = is_short_run() ? VOTES_SHORT : VOTES;
    assert_true(race(RACERS, vote_points));
    wire_check(&witness, "ZSCORE points:poll candidate", formatted("%d", RACERS * votes));
    wire_check(&witness, "ZREVRANK points:poll candidate", ":0");
    wire_check(&witness, "ZSCORE points:poll voter:3", formatted("%d", votes));
    wire_check(&witness, "ZCARD points:poll", ":17");
}

/* ---- pause, time ---- */

IN_TURN(a_pause_of_writes_holds_back_exec_with_writes_and_no_other) {
    WIRE(writer, process_connect_unix(&server));
    WIRE(reader, process_connect_unix(&server));
    wire_check(&writer, "MULTI", "OK");
    wire_check(&writer, "ZADD held 1 a", "QUEUED");
    wire_check(&reader, "MULTI", "OK");
    wire_check(&reader, "ZCARD held", "QUEUED");
    wire_check(&witness, "CLIENT PAUSE 60000 WRITE", "OK");
    wire_send_text(&writer, "EXEC\r\nPING\r\n");
    wire_check(&reader, "EXEC", "[:0]");
    wire_check(&reader, "MULTI", "OK");
    wire_send_text(&reader, "ZADD held 2 b\r\n"); /* as in Redis: held before it is queued */
    assert_true(wire_is_silent(&writer, 100));
    assert_true(wire_is_silent(&reader, 100));
    wire_check(&witness, "CLIENT UNPAUSE", "OK");
    assert_string_equal(wire_reply(&writer), "[:1]");
    assert_string_equal(wire_reply(&writer), "PONG");
    assert_string_equal(wire_reply(&reader), "QUEUED");
    wire_check(&reader, "EXEC", "[:1]");
}

/* false: the key was gone before it was watched. */
static bool watch_brief_key(struct wire *client) {
    wire_send_text(client, "ZADD brief 1 a\r\nPEXPIRE brief 20\r\nWATCH brief\r\nEXISTS brief\r\n");
    wire_expect(client, ":1\r\n:1\r\n+OK\r\n");
    bool is_watched = strcmp(wire_reply(client), ":1") == 0;
    wire_check(client, is_watched ? "MULTI" : "UNWATCH", "OK");
    return is_watched;
}

IN_TURN(a_watched_key_that_expires_in_silence_makes_exec_nil) {
    WIRE(client, process_connect_unix(&server));
    for (int is_removed = 0; is_removed < 2; is_removed++) {
        int64_t expired_before;
        int64_t give_up_at = process_now_ms() + WIRE_LIMIT_MS;
        do {
            assert_true(process_now_ms() < give_up_at);
            expired_before = wire_info(&witness, "expired_keys");
        } while (!watch_brief_key(&client));
        wire_check(&client, "PING", "QUEUED");
        if (is_removed) {
            wire_wait_info_range(&witness, "expired_keys", expired_before + 1, INT64_MAX);
        }
        process_sleep_ms(is_removed ? 0 : 21);
        wire_check(&client, "EXEC", "nil");
    }
}

/* ---- attackers ---- */

static void expect_cut_off(struct wire *client, const struct text *request) {
    size_t pushed = 0;
    bool is_closed = false;
    for (int i = 0; i < 200 && !is_closed; i++) {
        size_t size = wire_push(client, request->at, request->size, WIRE_LIMIT_MS);
        pushed += size;
        is_closed = size < request->size;
        wire_check(&witness, "PING", "PONG");
    }
    assert_true(wire_is_closed(client, WIRE_LIMIT_MS));
    wire_close(client);
    wait_for_clients(1);
    printf("cut off after %zu KiB\n", pushed / 1024);
}

IN_TURN(a_client_that_queues_without_end_is_cut_off) {
    static const char *const lines[] = {"ZADD board 1 member", "PING", "WATCH"};
    wire_check(&witness, "CONFIG SET client-query-buffer-limit 4194304", "OK");
    int64_t before = wire_info(&witness, "used_memory");
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        bool is_watch = strcmp(lines[i], "WATCH") == 0;
        TEXT(request);
        struct wire client = wire_open(process_connect_unix(&server));
        wire_check(&client, is_watch ? "PING" : "MULTI", is_watch ? "PONG" : "OK");
        wire_send_text(&client, "CLIENT REPLY OFF\r\n"); /* queued, but for WATCH */
        for (int line = 0; line < 20000; line++) {
            if (is_watch) {
                text_command(&request, "WATCH key:%0200d", line);
            } else {
                text_command(&request, "%s", lines[i]);
            }
        }
        expect_cut_off(&client, &request);
    }
    assert_true(wire_info(&witness, "used_memory") < before + 24 * MIB);
    wire_check(&witness, "CONFIG SET client-query-buffer-limit 268435456", "OK");
}

IN_TURN(a_million_watches_are_set_once_and_ended_by_one_write) {
    int count = is_short_run() ? MANY_SHORT : MANY;
    TEXT(request);
    struct wire client = wire_open(process_connect_unix(&server));
    text_format(&request, "*%d\r\n$5\r\nWATCH\r\n", count);
    for (int i = 1; i < count; i++) {
        text_format(&request, "$7\r\nk%06d\r\n", i);
    }
    for (int round = 0; round < 2; round++) {
        int64_t begun_at = process_now_ms();
        wire_send(&client, request.at, request.size);
        wire_expect(&client, "+OK\r\n");
        printf("WATCH of %d keys: %d ms\n", count - 1, (int)(process_now_ms() - begun_at));
        assert_int_equal(wire_info(&witness, "total_watched_keys"), count - 1);
    }
    int64_t begun_at = process_now_ms();
    wire_check(&witness, "ZADD k000077 1 m", ":1");
    printf("the write that ends them: %d ms\n", (int)(process_now_ms() - begun_at));
    assert_int_equal(wire_info(&witness, "watching_clients"), 0);
    wire_wait_info(&witness, "total_watched_keys", 0);
    wire_check(&client, "MULTI", "OK");
    wire_check(&client, "EXEC", "nil");
    wire_send(&client, request.at, request.size);
    wire_expect(&client, "+OK\r\n");
    wire_abort(&client);
}

IN_TURN(a_million_commands_are_one_transaction) {
    int count = is_short_run() ? MANY_SHORT : MANY;
    TEXT(request);
    WIRE(client, process_connect_unix(&server));
    WIRE(reader, process_connect_unix(&server));
    text_command(&request, "MULTI");
    for (int i = 0; i < count; i++) {
        text_command(&request, "ZINCRBY long 1 n");
    }
    wire_send(&client, request.at, request.size);
    wire_expect(&client, "+OK\r\n");
    for (int i = 0; i < count; i++) {
        wire_expect(&client, "+QUEUED\r\n");
    }
    char expected[32];
    snprintf(expected, sizeof expected, "%d", count);
    int64_t begun_at = process_now_ms();
    wire_send_text(&client, "EXEC\r\n");
    /* None or all of it. */
    while (strcmp(wire_ask(&reader, "ZSCORE long n"), expected) != 0) {
        assert_string_equal(reader.reply.at, "nil");
    }
    request.size = 0;
    text_format(&request, "*%d\r\n", count);
    for (int i = 1; i <= count; i++) {
        text_format(&request, "$%d\r\n%d\r\n", snprintf(NULL, 0, "%d", i), i);
    }
    wire_expect_bytes(&client, request.at, request.size);
    printf("EXEC of %d commands: %d ms\n", count, (int)(process_now_ms() - begun_at));
}

IN_TURN(clients_killed_anywhere_leave_whole_transactions) {
    enum { ROUNDS = 150, TRANSACTIONS = 60 };
    chance = random_begin(__func__);
    for (int round = 0; round < ROUNDS; round++) {
        struct wire client = wire_open(process_connect_unix(&server));
        int64_t id = wire_ask_integer(&client, "CLIENT ID");
        struct text request = {.at = NULL};
        for (int i = 0; i < TRANSACTIONS; i++) {
            text_command(&request, "WATCH watched:%d", round);
            text_command(&request, "MULTI");
            text_command(&request, "ZADD left 1 %d-%d", round, i);
            text_command(&request, "ZREM nothing x");
            text_command(&request, "ZADD right 1 %d-%d", round, i);
            text_command(&request, "EXEC");
        }
        wire_push(&client, request.at, 1 + below((unsigned)request.size), WIRE_LIMIT_MS);
        text_free(&request);
        if (round % 2 == 0) {
            wire_check(&witness, formatted("CLIENT KILL ID %lld", (long long)id), ":1");
            wire_close(&client);
        } else {
            wire_abort(&client);
        }
    }
    wait_for_clients(1);
    int64_t left = wire_ask_integer(&witness, "ZCARD left");
    printf("%lld transactions done of %d\n", (long long)left, ROUNDS * TRANSACTIONS);
    assert_true(left > 0);
    assert_int_equal(wire_ask_integer(&witness, "ZCARD right"), left);
}

int main(int argc, char **argv) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    steps = is_short_run() ? STEPS_SHORT : STEPS_DEFAULT;
    if (argc > 1) {
        steps = strtoull(argv[1], NULL, 10);
    }
    return test_run(start_servers, stop_servers);
}
