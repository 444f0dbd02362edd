/* Prefetched requests have the same results as the same requests run one by one, even if the
 * group's own changes invalidate what was found. Two servers run the same requests. */
#include "server/loop/connection.h"
#include "server/loop/lookahead.h"
#include "tests/support/harness.h"
#include "tests/support/random.h"

enum {
    MEMBERS = 9000, /* smaller boards are not fetched ahead */
    SMALL_BOARDS = 30,
    ROUNDS = 3000,
    ROUNDS_SHORT = 300,
    ARGS_MAX = 16,
    ARG_SIZE = 320,
};

struct request_group {
    char text[LOOKAHEAD_GROUP][ARGS_MAX][ARG_SIZE];
    struct bytes args[LOOKAHEAD_GROUP][ARGS_MAX];
    struct queue_entry entries[LOOKAHEAD_GROUP];
    unsigned count;
};

/* One of the two servers; its client is a connection without a socket. */
struct side {
    struct harness *harness;
    struct connection connection;
    struct buffer output;
    struct random random;
    bool is_grouped;
    bool is_small; /* many small boards, not a large one */
};

/* The first server's replies, which the second server's must equal. */
struct record {
    char *at;
    size_t size;
    size_t capacity;
};

static struct request_group batch;

static void add_arg(struct queue_entry *entry, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void add_arg(struct queue_entry *entry, const char *format, ...) {
    unsigned number = (unsigned)(entry - batch.entries);
    uint32_t arg = entry->request.count++;
    va_list values;
    va_start(values, format);
    int size = vsnprintf(batch.text[number][arg], ARG_SIZE, format, values);
    va_end(values);
    assert_true(arg < ARGS_MAX && size < ARG_SIZE);
    batch.args[number][arg] = (struct bytes){batch.text[number][arg], (size_t)size};
}

/* A group mostly uses the same few members, so that one request changes what the next one has
 * found. Some members are long and separately allocated. */
static void add_member(struct queue_entry *entry, struct random *random, uint32_t hot) {
    uint32_t number = random_below(random, 3) > 0 ? hot + (uint32_t)random_below(random, 4)
                                                  : (uint32_t)random_below(random, MEMBERS + 50);
    int width = number % 97 == 0 ? 280 : number % 5 == 0 ? 40 : 12;
    add_arg(entry, "m%0*u", width, number);
}

static void add_score(struct queue_entry *entry, struct random *random) {
    add_arg(entry, "%u", (unsigned)random_below(random, random_below(random, 2) ? 50 : 100000));
}

static void make_request(struct queue_entry *entry, struct random *random, uint32_t hot) {
    static const char *const conditions[] = {"NX", "XX", "GT", "LT", "CH"};
    uint64_t kind = random_below(random, 100);
    entry->request = (struct request){.args = batch.args[entry - batch.entries]};
    const char *name = kind < 25   ? "ZADD"
                       : kind < 45 ? "ZINCRBY"
                       : kind < 55 ? "ZREM"
                       : kind < 65 ? "ZREVRANK"
                       : kind < 75 ? "ZSCORE"
                       : kind < 80 ? "ZMSCORE"
                       : kind < 85 ? "ZADD+"
                       : kind < 90 ? "ZREVRANGE"
                       : kind < 94 ? "ZPOPMAX"
                       : kind < 97 ? "ZREMRANGEBYRANK"
                       : kind < 99 ? "ZRANK"
                                   : "DEL";
    bool is_conditional = strcmp(name, "ZADD+") == 0;
    add_arg(entry, "%s", is_conditional ? "ZADD" : name);
    add_arg(entry, "%s", random_below(random, 20) == 0 ? "other" : "board");
    if (kind < 25) {
        add_score(entry, random);
    } else if (kind < 45) {
        add_arg(entry, "%d", (int)random_below(random, 9) - 2);
    } else if (is_conditional) {
        add_arg(entry, "%s", conditions[random_below(random, 5)]);
        add_score(entry, random);
    } else if (kind >= 85 && kind < 90) {
        add_arg(entry, "%u", (unsigned)random_below(random, MEMBERS));
        add_arg(entry, "%u", (unsigned)random_below(random, MEMBERS));
        return;
    } else if (kind >= 90 && kind < 94) {
        add_arg(entry, "%u", 1 + (unsigned)random_below(random, 3));
        return;
    } else if (kind >= 94 && kind < 97) {
        unsigned rank = (unsigned)random_below(random, MEMBERS);
        add_arg(entry, "%u", rank);
        add_arg(entry, "%u", rank + (unsigned)random_below(random, 300));
        return;
    } else if (kind >= 99) {
        /* Seldom the large board: it takes long to fill again. */
        batch.args[entry - batch.entries][1] = BYTES("other");
        return;
    }
    add_member(entry, random, hot);
    for (uint64_t more = kind >= 75 && kind < 80 ? random_below(random, 9) : 0; more > 0; more--) {
        add_member(entry, random, hot);
    }
}

/* Some of the small boards roll over every day, others drop members below a cap. */
static const char small_settings[] = "board board:1* default PERIOD DAY ARCHIVE 3\n"
                                     "board board:2* default CAP 5 KEEP BEST\n";

static void add_small_key(struct queue_entry *entry, struct random *random) {
    unsigned number = (unsigned)random_below(random, SMALL_BOARDS);
    if (random_below(random, 8) == 0) {
        add_arg(entry, "board:%u@2026-01-%02u", number, 1 + (unsigned)random_below(random, 9));
    } else {
        add_arg(entry, "board:%u", number);
    }
}

/* Many small boards and hashes, created, changed, renamed, expiring, rolling over and deleted within one
 * group: keys appear and disappear after prefetching has looked them up. */
static void make_small_request(struct queue_entry *entry, struct random *random) {
    static const char *const names[] = {"ZADD",    "LB.ADD",    "ZADD",    "ZINCRBY", "ZREM",
                                        "ZSCORE",  "ZREVRANK",  "DEL",     "RENAME",  "PEXPIRE",
                                        "PERSIST", "LB.CREATE", "LB.ROLL", "FLUSHDB", "HSET",
                                        "HGETALL", "HDEL"};
    uint64_t kind = random_below(random, COUNT_OF(names));
    if (kind == 13 && random_below(random, 10) > 0) {
        kind = 6;
    }
    entry->request = (struct request){.args = batch.args[entry - batch.entries]};
    add_arg(entry, "%s", names[kind]);
    if (kind == 13) {
        return;
    }
    add_small_key(entry, random);
    if (kind <= 3) {
        add_arg(entry, "%u", (unsigned)random_below(random, 9));
    }
    if (kind <= 6 || kind == 14 || kind == 16) {
        add_arg(entry, "m%u", (unsigned)random_below(random, 40));
    }
    if (kind == 14) {
        add_arg(entry, "%0*u", 1 + (int)random_below(random, 90), 7);
    } else if (kind == 8 || kind == 12) {
        add_small_key(entry, random);
    } else if (kind == 9) {
        add_arg(entry, "%u", 1 + (unsigned)random_below(random, 1000));
    }
}

/* Native commands: one member or several, values of every kind, keys packed by hand. */
static void make_native_add(struct queue_entry *entry, struct random *random, uint32_t hot) {
    static const char *const options[] = {"INCR", "BEST", "TOUCH", "KEEPTIME", "XX", "WITHRANK"};
    bool is_packed = random_below(random, 5) == 0;
    uint64_t member_count = random_below(random, 4) == 0 ? 1 + random_below(random, 5) : 1;
    add_arg(entry, "LB.ADD");
    add_arg(entry, random_below(random, 4) == 0 ? "hourly" : "board");
    if (is_packed) {
        add_arg(entry, "PACKED");
    } else if (random_below(random, 2) == 0) {
        add_arg(entry, "%s", options[random_below(random, 6)]);
    }
    for (; member_count > 0; member_count--) {
        uint64_t score = random_below(random, 100000);
        if (is_packed) {
            add_arg(entry, "%" PRIu64, (score << 31) + random_below(random, 1000));
        } else if (random_below(random, 9) == 0) {
            add_arg(entry, "*");
        } else {
            add_arg(entry, "%s%" PRIu64, random_below(random, 5) == 0 ? "=" : "", score);
        }
        add_member(entry, random, hot);
    }
}

static void make_native_get(struct queue_entry *entry, struct random *random, uint32_t hot) {
    unsigned count = 1 + (unsigned)random_below(random, 9);
    add_arg(entry, "LB.GET");
    add_arg(entry, "board");
    add_arg(entry, "%u", count);
    for (; count > 0; count--) {
        add_member(entry, random, hot);
    }
    if (random_below(random, 2) == 0) {
        add_arg(entry, random_below(random, 2) ? "COMP" : "SORT");
    }
}

/* Up to more boards than are fetched ahead for one request, one of which has a WINDOW, and one is small. */
static void make_submit(struct queue_entry *entry, struct random *random, uint32_t hot) {
    static const char *const boards[] = {"board", "second", "hourly", "other", "new", "third"};
    static const char *const options[] = {"INCR", "BEST", "XX", "TOUCH"};
    uint64_t first = random_below(random, COUNT_OF(boards));
    unsigned count = 1 + (unsigned)random_below(random, COUNT_OF(boards));
    add_arg(entry, "LB.SUBMIT");
    add_arg(entry, "%u", random_below(random, 50) == 0 ? 4000000000U : count);
    for (unsigned i = 0; i < count; i++) {
        add_arg(entry, "%s", boards[(first + i) % COUNT_OF(boards)]);
    }
    if (random_below(random, 2) == 0) {
        add_arg(entry, "%s", options[random_below(random, COUNT_OF(options))]);
    }
    add_score(entry, random);
    add_member(entry, random, hot);
}

static void make_league_request(struct queue_entry *entry, struct random *random, uint32_t hot) {
    static const char *const names[] = {"ADD", "ADD", "ADD", "GET", "SET", "REMOVE"};
    uint64_t kind = random_below(random, COUNT_OF(names));
    add_arg(entry, "LB.LEAGUE");
    add_arg(entry, "%s", names[kind]);
    add_arg(entry, "league");
    if (kind == 1) {
        add_arg(entry, "INCR");
    }
    if (kind < 3 || kind == 4) {
        add_arg(entry, "%u", 1 + (unsigned)random_below(random, kind == 4 ? 3 : 50));
    }
    add_member(entry, random, hot);
}

static void make_any_request(struct queue_entry *entry, struct random *random, uint32_t hot) {
    uint64_t kind = random_below(random, 12);
    if (kind > 4) {
        make_request(entry, random, hot);
        return;
    }
    entry->request = (struct request){.args = batch.args[entry - batch.entries]};
    if (kind == 0) {
        make_native_get(entry, random, hot);
    } else if (kind == 3) {
        make_submit(entry, random, hot);
    } else if (kind == 4) {
        make_league_request(entry, random, hot);
    } else {
        make_native_add(entry, random, hot);
    }
}

/* Words are missing, and what stands behind the last one is no word. */
static void cut_short(struct queue_entry *entry, struct random *random) {
    uint32_t full = entry->request.count;
    uint32_t count = 1 + (uint32_t)random_below(random, full);
    for (uint32_t i = count; i < full; i++) {
        batch.args[entry - batch.entries][i] = (struct bytes){.at = (const char *)1, .size = 99};
    }
    entry->request.count = count;
}

static void make_batch(struct random *random, struct connection *connection, bool is_small) {
    uint32_t hot = (uint32_t)random_below(random, MEMBERS);
    batch.count = 2 + (unsigned)random_below(random, LOOKAHEAD_GROUP - 1);
    for (unsigned i = 0; i < batch.count; i++) {
        struct queue_entry *entry = &batch.entries[i];
        if (is_small) {
            make_small_request(entry, random);
        } else {
            make_any_request(entry, random, hot);
        }
        if (random_below(random, 40) == 0) {
            cut_short(entry, random);
        }
        entry->session = &connection->session;
        entry->command = command_find_request(&entry->request);
    }
}

static void run_batch(struct side *side) {
    struct server *server = &side->harness->server;
    struct lookahead_group group;
    struct reply reply;
    const bool is_grouped = side->is_grouped;
    buffer_clear(&side->output);
    reply_init(&reply, &side->output, 2);
    server_update_time(server);
    if (is_grouped) {
        lookahead_entries(server, batch.entries, batch.count, &group);
    }
    for (unsigned i = 0; i < batch.count; i++) {
        if (is_grouped) {
            lookahead_recall(server, &group, i);
            server->ahead = group.ahead[i];
        }
        execute_request(server, &side->connection.session, batch.entries[i].command,
                        &batch.entries[i].request, &reply);
    }
    server->ahead = NULL;
}

static void fill(struct side *side, const char *command) {
    for (unsigned i = 0; i < MEMBERS; i++) {
        int width = i % 97 == 0 ? 280 : i % 5 == 0 ? 40 : 12;
        harness_run_format(side->harness, &side->connection.session, "%s %u m%0*u", command,
                           i * 7919U % 100000U, width, i);
    }
}

static void begin(struct side *side, uint64_t seed, bool is_grouped, bool is_small) {
    *side = (struct side){
        .harness = harness_create(small_settings), .is_grouped = is_grouped, .is_small = is_small};
    struct server *server = &side->harness->server;
    side->random.state = seed;
    session_init(&side->connection.session, server->sessions.next_id++, server->clock.now_ms);
    assert_true(server_add_session(server, &side->connection.session));
    buffer_init(&side->output, 0);
    if (!is_small) {
        struct session *session = &side->connection.session;
        harness_expect(side->harness, session,
                       "LB.CREATE hourly FIELD points 33 TIME 31 S PERIOD HOUR WINDOW 3 SUM",
                       "+OK\r\n");
        harness_expect(side->harness, session,
                       "LB.LEAGUE CREATE league FIELD points 22 TIME 31 S PERIOD HOUR ROOM 50 "
                       "TIERS 3 UP 5 DOWN 5",
                       "+OK\r\n");
        fill(side, "ZADD board");
        fill(side, "LB.SUBMIT 2 second hourly");
        fill(side, "LB.LEAGUE ADD league");
    }
}

static void end(struct side *side) {
    server_life_remove_session(&side->harness->server, &side->connection.session);
    session_deinit(&side->connection.session);
    buffer_deinit(&side->output);
    harness_destroy(side->harness);
}

/* One batch and its replies; at the end the whole board. */
static struct bytes step(struct side *side, int round, int rounds) {
    struct server *server = &side->harness->server;
    if (round == rounds) {
        ASSERT_VALID(registry_validate, side->harness->server.registry);
        harness_run(side->harness, &side->connection.session,
                    side->is_small ? "KEYS *" : "ZREVRANGE board 0 -1 WITHSCORES");
        return (struct bytes){side->harness->reply.at, side->harness->reply.size};
    }
    /* Removals must not take the board below the size that is fetched ahead. */
    if (!side->is_small && round % 10 == 0 &&
        harness_run_integer(side->harness, &side->connection.session, "ZCARD board") <
            MEMBERS * 2 / 3) {
        fill(side, "ZADD board");
    }
    side->harness->wall_us += (int64_t)random_below(&side->random, 3) * 400000;
    if (side->is_small && random_below(&side->random, 10) == 0) {
        side->harness->wall_us += INT64_C(15000000000);
    } else if (!side->is_small && random_below(&side->random, 100) == 0) {
        side->harness->wall_us += INT64_C(3600000000);
    }
    make_batch(&side->random, &side->connection, side->is_small);
    run_batch(side);
    if (round % 3 == 0) {
        registry_free_step(server->registry, 100);
    }
    if (round % 100 == 0) {
        ASSERT_VALID(registry_validate, side->harness->server.registry);
    }
    return (struct bytes){side->output.at, side->output.size};
}

static void note(struct record *record, struct bytes answer) {
    if (record->size + answer.size > record->capacity) {
        record->capacity = 2 * (record->size + answer.size);
        record->at = realloc(record->at, record->capacity);
        assert_non_null(record->at);
    }
    memcpy(record->at + record->size, answer.at, answer.size);
    record->size += answer.size;
}

static void compare_groups_with_single_requests(const char *test, bool is_small) {
    struct random random = random_begin(test);
    uint64_t seed = random_next(&random);
    int rounds = is_short_run() ? ROUNDS_SHORT : ROUNDS;
    struct record record = {0};
    static struct side side;
    begin(&side, seed, true, is_small);
    for (int round = 0; round <= rounds; round++) {
        note(&record, step(&side, round, rounds));
    }
    end(&side);
    begin(&side, seed, false, is_small);
    size_t at = 0;
    for (int round = 0; round <= rounds; round++) {
        struct bytes answer = step(&side, round, rounds);
        assert_true(at + answer.size <= record.size);
        assert_memory_equal(answer.at, record.at + at, answer.size);
        at += answer.size;
    }
    assert_int_equal(at, record.size);
    end(&side);
    free(record.at);
}

TEST(groups_have_the_results_of_single_requests) {
    compare_groups_with_single_requests(__func__, false);
}

TEST(groups_for_many_boards_have_the_results_of_single_requests) {
    compare_groups_with_single_requests(__func__, true);
}
