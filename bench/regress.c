/* The server's way from bytes in to bytes out, in one process and without sockets, for counting
 * instructions: bench/regress.py runs it under callgrind.
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
#include "server/commands/table.h"
#include "server/dispatch/command.h"
#include "server/dispatch/execute.h"
#include "server/loop/connection.h"
#include "server/loop/lookahead.h"
#include "server/replication/apply.h"

enum {
    MEMBERS = 100000,
    PIPELINE = 2 * LOOKAHEAD_GROUP,
    OPERATIONS = 500 * PIPELINE, /* leaves divide and merge often enough for a mean */
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

static const struct row load_row = {"load", "ZADD board $score $member", MEMBERS, MEMBER_NEW, false,
                                    false};
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
    {"LB.GET of ten",
     "LB.GET board 10 $member $member $member $member $member $member $member $member $member "
     "$member",
     OPERATIONS / 10, MEMBER_RANDOM, false, false},
    {"LB.RANGE 0 99", "LB.RANGE board 0 99", PAGES, MEMBER_RANDOM, false, false},
    {"apply a ZADD, random update", "board", OPERATIONS, MEMBER_RANDOM, false, true},
    {"ZADD, new member", "ZADD board $score $member", OPERATIONS, MEMBER_NEW, false, false},
    {"ZREM", "ZREM board $member", OPERATIONS, MEMBER_GONE, false, false},
    {"parse a ZADD", "ZADD board $score $member", OPERATIONS, MEMBER_RANDOM, true, false},
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
    CHECK(server_init(server, command_count()));
    session_init(&driver->connection.session, server->sessions.next_id++, server->clock.now_ms);
    server_add_session(server, &driver->connection.session);
    driver->arguments = (struct resp_arena){0};
    buffer_init(&driver->input, 0);
    buffer_init(&driver->output, 0);
}

static void stop(struct driver *driver) {
    server_remove_session(&driver->server, &driver->connection.session);
    session_deinit(&driver->connection.session);
    server_deinit(&driver->server);
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
        return random_below(&driver->random, MEMBERS);
    }
}

/* All requests of a row, before anything is counted. */
static void write_requests(struct driver *driver, const struct row *row) {
    buffer_clear(&driver->input);
    for (uint32_t i = 0; i < row->operations; i++) {
        uint64_t score = random_below(&driver->random, MEMBERS);
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
static size_t parse_tick(struct driver *driver, size_t at) {
    const struct resp_limits limits = {
        .args_max = 1024 * 1024,
        .bulk_size_max = driver->server.settings.proto_max_bulk_len,
        .inline_size_max = 64 * 1024,
        .is_authenticated = true,
    };
    size_t begin = at;
    for (int i = 0; i < PIPELINE; i++) {
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

static void execute_tick(struct driver *driver) {
    struct reply reply;
    reply_init(&reply, &driver->output, 2);
    struct lookahead_group group;
    for (int first = 0; first < PIPELINE; first += LOOKAHEAD_GROUP) {
        const struct queue_entry *entries = &driver->entries[first];
        lookahead_entries(&driver->server, entries, LOOKAHEAD_GROUP, &group);
        driver->server.command_begin_ticks = clock_ticks();
        for (int i = 0; i < LOOKAHEAD_GROUP; i++) {
            driver->server.ahead = group.ahead[i];
            execute_request(&driver->server, &driver->connection.session, entries[i].command,
                            &entries[i].request, &reply);
        }
    }
    CHECK(reply.error_count == 0);
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
        driver->now_us += TICK_US;
        server_update_time(&driver->server);
        at += parse_tick(driver, at);
        if (!row->is_parse_only) {
            execute_tick(driver);
        }
        resp_arena_reset(&driver->arguments);
    }
    CHECK(at == driver->input.size);
}

__attribute__((noinline)) void regress_run(struct driver *driver, const struct row *row) {
    run(driver, row);
}

int main(void) {
    static struct driver driver;
    start(&driver);
    write_input(&driver, &load_row);
    run(&driver, &load_row);
#ifdef __clang__
    printf("clang %d\n", __clang_major__);
#else
    printf("gcc %d\n", __GNUC__);
#endif
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        write_input(&driver, &rows[i]);
        regress_run(&driver, &rows[i]);
        printf("%s\t%" PRIu32 "\n", rows[i].name, rows[i].operations);
    }
    stop(&driver);
    return 0;
}
