/* The server's way from bytes in to bytes out, in one process and without sockets, for counting
 * instructions: bench/regress.py runs it under callgrind.
 *
 *     build/bench/regress 1000000 WINDOW     times instead, of rows with this word: ns of CPU, and times a ZADD's,
 *                                            on boards of so many members
 *
 *     parse and queue a tick of 32 requests -> prefetch a group of 16 -> execute it -> next group
 *
 * That is what tick.c does with one client's pipeline. A row of changes is what a replica does with
 * the groups of its master: decode them and apply them, without its journal. Seeds, clock and requests are fixed, so two
 * runs execute the same instructions. What is counted is regress_run, once for every row; callgrind
 * writes one file for each time. Standard output names the compiler, then the rows in that order:
 * name, a tab, operations. */
#include <stdio.h>

#include "bench/request.h"
#include "codec/memory.h"
#include "server/commands/table.h"
#include "server/dispatch/command.h"
#include "server/dispatch/execute.h"
#include "server/loop/connection.h"
#include "server/loop/lookahead.h"
#include "server/replication/apply.h"

enum {
    MEMBERS = 100000,
    MEMBERS_MORE =
        10000, /* of the boards of the last rows: enough that members are fetched ahead */
    PIPELINE = 2 * LOOKAHEAD_GROUP,
    OPERATIONS = 500 * PIPELINE, /* leaves divide and merge often enough for a mean */
    LISTS = 20 * PIPELINE,       /* of a hundred members */
    ROUNDS = 7,                  /* of times; an odd number */
    PAGES = 50 * PIPELINE,       /* of a hundred members */
    TICK_US = 100,
    GONE_STEP = 7919,    /* without a common divisor with MEMBERS: every member is removed once */
    GROUP_CHANGES = 500, /* a millisecond's, of 500,000 a second */
};

enum member_kind {
    MEMBER_RANDOM,
    MEMBER_NEW,  /* counts on behind the last one */
    MEMBER_GONE, /* each one once, in no order */
};

struct row {
    const char *name;
    const char *words; /* as request_append has them; scores are random */
    uint32_t operations;
    enum member_kind member;
    bool is_parse_only;
    bool is_apply; /* of changes, not of requests */
};

#define TEN_MEMBERS                                                                                \
    "$member $member $member $member $member $member $member $member $member $member"
#define TEN_EDGES(tens)                                                                            \
    tens "05000 " tens "15000 " tens "25000 " tens "35000 " tens "45000 " tens "55000 " tens       \
         "65000 " tens "75000 " tens "85000 " tens "95000 "
#define HUNDRED_EDGES                                                                              \
    TEN_EDGES("1")                                                                                 \
    TEN_EDGES("2")                                                                                 \
    TEN_EDGES("3")                                                                                 \
    TEN_EDGES("4")                                                                                 \
    TEN_EDGES("5") TEN_EDGES("6") TEN_EDGES("7") TEN_EDGES("8") TEN_EDGES("9") TEN_EDGES("10")
#define HUNDRED_MEMBERS                                                                            \
    TEN_MEMBERS " " TEN_MEMBERS " " TEN_MEMBERS " " TEN_MEMBERS " " TEN_MEMBERS " " TEN_MEMBERS    \
                " " TEN_MEMBERS " " TEN_MEMBERS " " TEN_MEMBERS " " TEN_MEMBERS

#define TEAM_OF_THREE "TEAM 3 $member $member $member"
static const struct row load_row = {"load", "ZADD board $score $member", MEMBERS, MEMBER_NEW, false,
                                    false};
/* The boards of the last rows, and their members. */
static const char *const more_boards[] = {
    "LB.CREATE tagged FIELD points 22 TIME 31 S TAG country 8",
    "LB.LEAGUE CREATE weekly FIELD points 22 TIME 31 S PERIOD DAY ROOM 50 TIERS 10 UP 5 DOWN 5",
    "LB.CREATE hourly FIELD points 33 TIME 31 S PERIOD HOUR WINDOW 24 SUM",
    "LB.CREATE ladder RATING OPENSKILL",
};
static const char *const more_loads[] = {
    "LB.SUBMIT 3 one two three $score $member",
    "LB.ADD tagged TAG country $few $score $member",
    "LB.LEAGUE ADD weekly $score $member",
    "LB.ADD hourly $score $member",
    "LB.MATCH ladder TEAM 1 $member TEAM 1 $member",
    "ZADD mails $score $mail",
};
static const struct row rows[] = {
    {"ZADD, random update", "ZADD board $score $member", OPERATIONS, MEMBER_RANDOM, false, false},
    {"ZINCRBY 3", "ZINCRBY board 3 $member", OPERATIONS, MEMBER_RANDOM, false, false},
    {"ZREVRANK", "ZREVRANK board $member", OPERATIONS, MEMBER_RANDOM, false, false},
    {"ZSCORE", "ZSCORE board $member", OPERATIONS, MEMBER_RANDOM, false, false},
    {"ZREVRANGE 0 99 WITHSCORES", "ZREVRANGE board 0 99 WITHSCORES", PAGES, MEMBER_RANDOM, false,
     false},
    {"ZREVRANGE 300 399 WITHSCORES", "ZREVRANGE board 300 399 WITHSCORES", PAGES, MEMBER_RANDOM,
     false, false},
    {"ZREVRANGE n/3 .. +9 WITHSCORES", "ZREVRANGE board 33333 33342 WITHSCORES", OPERATIONS,
     MEMBER_RANDOM, false, false},
    {"ZREVRANGEBYSCORE LIMIT 0 10", "ZREVRANGEBYSCORE board +inf -inf LIMIT 0 10", OPERATIONS,
     MEMBER_RANDOM, false, false},
    {"LB.ADD, random update", "LB.ADD board $score $member", OPERATIONS, MEMBER_RANDOM, false,
     false},
    {"LB.GET of ten", "LB.GET board 10 " TEN_MEMBERS, OPERATIONS / 10, MEMBER_RANDOM, false, false},
    {"LB.RANGE 0 99", "LB.RANGE board 0 99", PAGES, MEMBER_RANDOM, false, false},
    {"apply a ZADD, random update", "board", OPERATIONS, MEMBER_RANDOM, false, true},
    {"ZADD, new member", "ZADD board $score $member", OPERATIONS, MEMBER_NEW, false, false},
    {"ZREM", "ZREM board $member", OPERATIONS, MEMBER_GONE, false, false},
    {"parse a ZADD", "ZADD board $score $member", OPERATIONS, MEMBER_RANDOM, true, false},
};
static const struct row zadd_row = {
    "ZADD", "ZADD one $score $member", OPERATIONS, MEMBER_RANDOM, false, false};
static const struct row more_rows[] = {
    {"LB.ADD WITHRANK", "LB.ADD one WITHRANK $score $member", OPERATIONS, MEMBER_RANDOM, false,
     false},
    {"LB.ADD of ten",
     "LB.ADD one $score $member $score $member $score $member $score $member $score $member $score "
     "$member $score $member $score $member $score $member $score $member",
     OPERATIONS / 10, MEMBER_RANDOM, false, false},
    {"LB.ADD TAG", "LB.ADD tagged TAG country $few $score $member", OPERATIONS, MEMBER_RANDOM,
     false, false},
    {"LB.SUBMIT to one", "LB.SUBMIT 1 one $score $member", OPERATIONS, MEMBER_RANDOM, false, false},
    {"LB.SUBMIT to three", "LB.SUBMIT 3 one two three $score $member", OPERATIONS, MEMBER_RANDOM,
     false, false},
    {"LB.SUBMIT to three, ONCE", "LB.SUBMIT 3 one two three ONCE $id $score $member", OPERATIONS,
     MEMBER_RANDOM, false, false},
    {"LB.LEAGUE ADD", "LB.LEAGUE ADD weekly INCR 5 $member", OPERATIONS, MEMBER_RANDOM, false,
     false},
    {"LB.ADD INCR, WINDOW", "LB.ADD hourly INCR 5 $member", OPERATIONS, MEMBER_RANDOM, false,
     false},
    {"LB.GET of a hundred", "LB.GET one 100 " HUNDRED_MEMBERS, LISTS, MEMBER_RANDOM, false, false},
    {"LB.GET of a hundred, TAGS", "LB.GET tagged 100 " HUNDRED_MEMBERS " TAGS", LISTS,
     MEMBER_RANDOM, false, false},
    {"LB.GET of a hundred, SINCE", "LB.GET one 100 " HUNDRED_MEMBERS " SINCE two", LISTS,
     MEMBER_RANDOM, false, false},
    {"LB.HIST of a hundred", "LB.HIST one " HUNDRED_EDGES "2000000", LISTS, MEMBER_RANDOM, false,
     false},
    {"LB.HIST of a hundred, WHERE half",
     "LB.HIST tagged " HUNDRED_EDGES
     "2000000 WHERE country c0 WHERE country c1 WHERE country c2 WHERE country c3",
     LISTS, MEMBER_RANDOM, false, false},
    {"LB.MATCH of two", "LB.MATCH ladder TEAM 1 $member TEAM 1 $member", OPERATIONS, MEMBER_RANDOM,
     false, false},
    {"LB.MATCH of ten teams of three",
     "LB.MATCH ladder " TEAM_OF_THREE " " TEAM_OF_THREE " " TEAM_OF_THREE " " TEAM_OF_THREE
     " " TEAM_OF_THREE " " TEAM_OF_THREE " " TEAM_OF_THREE " " TEAM_OF_THREE " " TEAM_OF_THREE
     " " TEAM_OF_THREE,
     OPERATIONS / 10, MEMBER_RANDOM, false, false},
    {"ZADD, random update, e-mails", "ZADD mails $score $mail", OPERATIONS, MEMBER_RANDOM, false,
     false},
    {"ZREVRANK, e-mails", "ZREVRANK mails $mail", OPERATIONS, MEMBER_RANDOM, false, false},
    {"ZREVRANGE 0 99 WITHSCORES, e-mails", "ZREVRANGE mails 0 99 WITHSCORES", PAGES, MEMBER_RANDOM,
     false, false},
    {"ZADD, new member, e-mails", "ZADD mails $score $mail", OPERATIONS, MEMBER_NEW, false, false},
};

struct driver {
    struct server server;
    struct connection connection; /* its session is the client; it has no socket */
    struct queue_entry entries[PIPELINE];
    struct resp_arena arguments;
    struct buffer input, output;
    struct apply apply;
    struct journal_group_head groups[OPERATIONS / GROUP_CHANGES]; /* in the input */
    struct random random, change_random;
    int64_t now_us;
    uint32_t members; /* of the boards */
    uint32_t new_count, gone_count;
};

/* Neither static nor inlined, so that it is there to be counted. */
__attribute__((noinline)) void regress_run(struct driver *driver, const struct row *row);

/* ---- the server ---- */

static int64_t wall_us(void *context) {
    const struct driver *driver = context;
    return driver->now_us;
}

static void start(struct driver *driver) {
    /* A slow log would be filled by chance: nothing is fast under callgrind. */
    static const char settings[] = "slowlog-log-slower-than -1\n";
    struct server *server = &driver->server;
    char error[SETTING_ERROR_MAX];
    driver->random.state = 1;
    driver->change_random.state = 2; /* of its own: the rows behind it stay as they are */
    driver->now_us = INT64_C(1767225600000000); /* 2026-01-01 */
    server->clock.wall_us = wall_us;
    server->clock.monotonic_us = wall_us;
    server->clock.context = driver;
    /* Otherwise random; it decides which slots of the maps collide. */
    server->hash_seed = 1;
    clock_calibrate();
    execute_init(command_table);
    CHECK(settings_init(&server->settings));
    CHECK(setting_file_apply_text(&server->settings, bytes_from_text(settings), "regress", error));
    CHECK(settings_finish(&server->settings, error));
    CHECK(server_life_init(server, command_count()));
    session_init(&driver->connection.session, server->sessions.next_id++, server->clock.now_ms);
    CHECK(server_add_session(server, &driver->connection.session));
    driver->arguments = (struct resp_arena){0};
    buffer_init(&driver->input, 0);
    buffer_init(&driver->output, 0);
}

static void stop(struct driver *driver) {
    server_life_remove_session(&driver->server, &driver->connection.session);
    session_deinit(&driver->connection.session);
    server_life_deinit(&driver->server);
    settings_deinit(&driver->server.settings);
    resp_arena_deinit(&driver->arguments);
    buffer_deinit(&driver->input);
    buffer_deinit(&driver->output);
}

/* ---- requests ---- */

static uint64_t next_member(struct driver *driver, enum member_kind kind) {
    switch (kind) {
    case MEMBER_NEW:
        return driver->new_count++;
    case MEMBER_GONE:
        return (uint64_t)driver->gone_count++ * GONE_STEP % MEMBERS;
    case MEMBER_RANDOM:
    default:
        return random_below(&driver->random, driver->members);
    }
}

/* All requests of a row, before anything is counted. */
static void write_requests(struct driver *driver, const struct row *row) {
    buffer_clear(&driver->input);
    for (uint32_t i = 0; i < row->operations; i++) {
        uint64_t score = random_below(&driver->random, driver->members);
        request_append(&driver->input, row->words, score, next_member(driver, row->member));
    }
    CHECK(!driver->input.is_broken);
}

/* The changes that ZADDs would make, in groups. */
static void write_groups(struct driver *driver, const struct row *row) {
    static struct effect_encoder encoder;
    struct bytes name = bytes_from_text(row->words);
    const struct registry_key *key = registry_find(driver->server.registry, 0, name, 0);
    const struct layout *layout = board_layout(&key->board);
    buffer_clear(&driver->input);
    for (uint32_t i = 0; i < row->operations; i++) {
        struct journal_group_head *head = &driver->groups[i / GROUP_CHANGES];
        if (i % GROUP_CHANGES == 0) {
            *head = (struct journal_group_head){.sequence = i / GROUP_CHANGES + 1};
            effect_bytes_encode_begin(&encoder, &driver->input);
        }
        size_t before = driver->input.size;
        char member[MICRO_MEMBER_SIZE + 1];
        micro_write_member(member, random_below(&driver->change_random, MEMBERS));
        struct decimal score = {.magnitude = random_below(&driver->change_random, MEMBERS)};
        struct effect effect = {
            .kind = EFFECT_PUT, .name = name, .member = bytes_from_text(member)};
        uint64_t ordinal;
        CHECK(layout_field_ordinal(&layout->fields[0], score, &ordinal) == LAYOUT_OK);
        effect.member_key = layout_with_ordinal(layout, layout_zero_key(layout), 0, ordinal);
        CHECK(layout_stamp(layout, effect.member_key, driver->now_us, &effect.member_key) ==
              LAYOUT_OK);
        effect_bytes_encode(&encoder, &effect);
        head->size += (uint32_t)(driver->input.size - before);
    }
    CHECK(!driver->input.is_broken);
}

static void write_input(struct driver *driver, const struct row *row) {
    if (row->is_apply) {
        write_groups(driver, row);
    } else {
        write_requests(driver, row);
    }
}

/* ---- running ---- */

/* Returns how many bytes the requests took. */
static size_t parse_tick(struct driver *driver, size_t at, uint32_t count) {
    const struct resp_limits limits = {
        .args_max = 1024 * 1024,
        .bulk_size_max = driver->server.settings.proto_max_bulk_len,
        .inline_size_max = 64 * 1024,
        .is_authenticated = true,
    };
    size_t begin = at;
    for (uint32_t i = 0; i < count; i++) {
        struct queue_entry *entry = &driver->entries[i];
        size_t used = 0;
        entry->session = &driver->connection.session;
        enum resp_status status = resp_parse(
            &driver->connection.transport.parser, driver->input.at + at, driver->input.size - at,
            &limits, &driver->arguments, &entry->request, &used, &entry->error);
        CHECK(status == RESP_REQUEST);
        entry->command = command_find_request(&entry->request);
        at += used;
    }
    return at - begin;
}

static void execute_tick(struct driver *driver, uint32_t count) {
    struct reply reply;
    reply_init(&reply, &driver->output, 2);
    struct lookahead_group group;
    for (uint32_t first = 0; first < count; first += LOOKAHEAD_GROUP) {
        const struct queue_entry *entries = &driver->entries[first];
        unsigned size = count - first < LOOKAHEAD_GROUP ? count - first : LOOKAHEAD_GROUP;
        lookahead_entries(&driver->server, entries, size, &group);
        driver->server.command_begin_ticks = clock_ticks();
        for (unsigned i = 0; i < size; i++) {
            lookahead_recall(&driver->server, &group, i);
            driver->server.ahead = group.ahead[i];
            execute_request(&driver->server, &driver->connection.session, entries[i].command,
                            &entries[i].request, &reply);
        }
    }
    driver->server.ahead = NULL;
    if (reply.error_count > 0) {
        fprintf(stderr, "%.*s", (int)driver->output.size, driver->output.at);
        exit(1);
    }
    CHECK(!driver->output.is_broken);
    buffer_clear(&driver->output);
}

static void apply_groups(struct driver *driver, const struct row *row) {
    const char *at = driver->input.at;
    driver->apply.registry = driver->server.registry;
    for (uint32_t i = 0; i < row->operations / GROUP_CHANGES; i++) {
        apply_add(&driver->apply, &driver->groups[i], at);
        CHECK(apply_step(&driver->apply, UINT64_MAX) == APPLY_DONE);
        at += driver->groups[i].size;
    }
    CHECK(at == driver->input.at + driver->input.size);
}

static void run(struct driver *driver, const struct row *row) {
    size_t at = 0;
    if (row->is_apply) {
        apply_groups(driver, row);
        return;
    }
    for (uint32_t i = 0; i < row->operations; i += PIPELINE) {
        uint32_t left = row->operations - i;
        uint32_t count = left < PIPELINE ? left : PIPELINE;
        driver->now_us += TICK_US;
        server_update_time(&driver->server);
        at += parse_tick(driver, at, count);
        if (!row->is_parse_only) {
            execute_tick(driver, count);
        }
        resp_arena_reset(&driver->arguments);
    }
    CHECK(at == driver->input.size);
}

__attribute__((noinline)) void regress_run(struct driver *driver, const struct row *row) {
    run(driver, row);
}

static void load_more(struct driver *driver, uint32_t members) {
    driver->members = members;
    for (size_t i = 0; i < sizeof more_boards / sizeof *more_boards; i++) {
        const struct row row = {.words = more_boards[i], .operations = 1};
        write_input(driver, &row);
        run(driver, &row);
    }
    for (size_t i = 0; i < sizeof more_loads / sizeof *more_loads; i++) {
        const struct row row = {
            .words = more_loads[i], .operations = members, .member = MEMBER_NEW};
        driver->new_count = 0;
        write_input(driver, &row);
        run(driver, &row);
    }
}

/* ---- times ---- */

static int compare_times(const void *left, const void *right) {
    double a = *(const double *)left;
    double b = *(const double *)right;
    return a < b ? -1 : a > b;
}

/* The median of some rounds of each row, in turns with the ZADD that it is compared with. */
static void print_times(struct driver *driver, const char *word) {
    enum { COUNT = 1 + sizeof more_rows / sizeof *more_rows };
    static double times[COUNT][ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < COUNT; i++) {
            const struct row *row = i == 0 ? &zadd_row : &more_rows[i - 1];
            if (i > 0 && strstr(row->name, word) == NULL) {
                continue;
            }
            write_input(driver, row);
            double begin = micro_cpu_ns();
            run(driver, row);
            times[i][round] = (micro_cpu_ns() - begin) / row->operations;
        }
    }
    for (int i = 0; i < COUNT; i++) {
        qsort(times[i], ROUNDS, sizeof times[i][0], compare_times);
        double median = times[i][ROUNDS / 2];
        if (median > 0) {
            printf("%-28s %8.0f ns %6.2f\n", i == 0 ? zadd_row.name : more_rows[i - 1].name, median,
                   median / times[0][ROUNDS / 2]);
        }
    }
}

static void count_rows(struct driver *driver, const struct row *list, size_t count) {
    for (size_t i = 0; i < count; i++) {
        write_input(driver, &list[i]);
        regress_run(driver, &list[i]);
        printf("%s\t%" PRIu32 "\n", list[i].name, list[i].operations);
    }
}

int main(int argc, char **argv) {
    static struct driver driver;
    start(&driver);
    if (argc > 1) {
        memory_init(); /* as the server does */
        load_more(&driver, (uint32_t)strtoul(argv[1], NULL, 10));
        print_times(&driver, argc > 2 ? argv[2] : "");
        stop(&driver);
        return 0;
    }
    driver.members = MEMBERS;
    write_input(&driver, &load_row);
    run(&driver, &load_row);
#ifdef __clang__
    printf("clang %d\n", __clang_major__);
#else
    printf("gcc %d\n", __GNUC__);
#endif
    count_rows(&driver, rows, sizeof rows / sizeof *rows);
    load_more(&driver, MEMBERS_MORE);
    count_rows(&driver, more_rows, sizeof more_rows / sizeof *more_rows);
    stop(&driver);
    return 0;
}
