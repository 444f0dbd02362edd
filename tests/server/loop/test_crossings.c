/* Three features at a time, a task in the background, and a fault: where two promises meet.
 *
 *     for each triple of features
 *         boards with the options of all three      what CREATE takes is drawn from its syntax
 *         commands of all three, by several clients  also limited to some keys, in transactions, waiting
 *         a task                                     saving, a pass over 20,000 boards, the end of periods ...
 *         a fault                                    a kill, no memory, a full disk ...
 *     then: everything holds together, an error has changed nothing, a client limited to some keys has changed
 *     no others, whoever was forgotten is nowhere, and what the files hold is what the memory held
 *
 * All triples in the long form, some in the short one. LEADERBOARD_TEST_SEED repeats a run, and
 * LEADERBOARD_CROSSING=n one triple of it, with its commands, or n-m some; what jobs do beside them follows the
 * machine's time. */
#include "tests/support/loop_server.h"

#include <errno.h>
#include <unistd.h>

#include "codec/memory.h"
#include "server/commands/ban.h"
#include "server/commands/lb/lb.h"
#include "server/commands/lb/lb_rating.h"
#include "server/commands/table.h"
#include "server/commands/window.h"
#include "server/durability/file_format.h"
#include "server/durability/persistence_state.h"
#include "server/sessions/job.h"
#include "tests/support/commands.h"
#include "tests/support/failing_disk.h"
#include "tests/support/grammar.h"
#include "tests/support/jwt_maker.h"
#include "tests/support/registry_workload.h"
#include "tests/support/stored_text.h"
#include "tests/support/wire.h"

/* ---- features ---- */

enum { FEATURES = GRAMMAR_FEATURES, TRIPLES = FEATURES * (FEATURES - 1) * (FEATURES - 2) / 6 };

/* Drawn beside the features': what everybody does. */
static const char *const always[] = {"ZADD",   "ZINCRBY",  "ZREM",     "ZCARD",  "LB.ADD",
                                     "LB.GET", "LB.RANGE", "ZREVRANK", "ZRANGE", "DEL",
                                     "COPY",   "RENAME",   "HSET",     "EXPIRE", NULL};

enum task {
    TASK_SAVE,
    TASK_STREAM, /* a full copy, as a replica or a backup gets it */
    TASK_PERIODS,
    TASK_PASS,
    TASK_RIGHTS,
    TASK_CONFIG,
    TASK_LIMITED,
    TASK_PLAYER,
    TASK_FULL,
    TASK_COUNT,
};
static const char *const task_names[] = {
    "save",   "full copy",      "periods end", "pass over boards", "rights",
    "CONFIG", "a limited user", "a player",    "full server"};

enum mishap {
    MISHAP_NONE,
    MISHAP_KILL,
    MISHAP_MEMORY,
    MISHAP_DISK,
    MISHAP_CLOCK,
    MISHAP_GONE,
    MISHAP_RESTART,
    MISHAP_COUNT,
};
static const char *const mishap_names[] = {
    "none", "kill", "no memory", "full disk", "the clock back", "clients that go", "restart"};

static const char settings[] =
    "appendonly yes\nappendfsync no\nauto-aof-rewrite-percentage 0\nsave \"\"\n"
    "notify-keyspace-events KEA\naudit-log no\nloglevel warning\nonce-window 86400\n"
    "user limited on nopass ~lim:* +@all -@admin -@dangerous\n"
    "player-key back hs256 " JWT_MAKER_SECRET "\n"
    "user player:back on ~* +@all -@admin -@dangerous\n"
    "layout money FIELD cents 30 SCALE 2 TIME 34 MS END 2026-07-01T00:00:00Z\n"
    "layout pair FIELD likes 20 FIELD replies 13 TIME 31 S\n"
    "board w* default PERIOD HOUR WINDOW 3 SUM\n"
    "board lim:p* default PERIOD HOUR ARCHIVE 2\n";

static const char *const keys[] = {
    "b0",    "b0", "b1", "b2",         "b3",   "lim:0",  "lim:1",
    "lim:p", "w0", "lg", "lg:rooms:1", "h:m1", "lim:m2", "b0@2026-01-01T00",
    "old0",  NULL};

enum {
    CLIENTS = 5,
    LIMITED = 3, /* the client that may see lim:* alone */
    PASSING = 4, /* whose command goes over all boards */
    BOARDS_MADE = 30,
    STEPS = 260,
    SHORT_TRIPLES = 40,
    MANY_BOARDS = 20000,
    SHORT_BOARDS = 3000,
    SEEN_ONE_IN = 6,
    TURNS_MAX = 20000,
    LOG_SHOWN = 30000,
    DUMP_MIN = 20,
};

struct client {
    int fd;
    struct text received;
    bool is_waiting, is_in_multi;
};

static struct crossing {
    struct loop_server f;
    struct random random;
    struct grammar grammar;
    uint32_t index;
    enum task task;
    enum mishap mishap;
    struct client clients[CLIENTS];
    struct text payload;
    char stream_path[DIRECTORY_PATH_MAX + 8], kill_path[DIRECTORY_PATH_MAX + 8];
    FILE *stream;
    bool is_streaming, is_stream_told, is_stream_whole, is_killed;
    uint64_t kill_digest;
    char *stream_keys; /* when the copy was made */
    struct text log;
    uint64_t commands, errors, seen;
} x;

static const struct command *candidates[512];
static uint32_t candidate_count, focused_count;

static uint64_t below(uint64_t limit) {
    return random_below(&x.random, limit);
}

/* Of the keys that the limited user must not change, or of all. */
static uint64_t digest_now(const char *without) {
    return workload_digest_without(x.f.server->registry, without);
}

/* ---- when something does not hold ---- */

/* The end of what was sent. */
static void show(void) {
    size_t size = x.log.size < LOG_SHOWN ? x.log.size : LOG_SHOWN;
    printf("the last commands of crossing %u, beside task %s and mishap %s:\n", x.index,
           task_names[x.task], mishap_names[x.mishap]);
    fwrite(x.log.at + x.log.size - size, 1, size, stdout);
}

#define HOLD(claim, ...)                                                                           \
    do {                                                                                           \
        if (!(claim)) {                                                                            \
            show();                                                                                \
            fail_msg(__VA_ARGS__);                                                                 \
        }                                                                                          \
    } while (false)

/* A line for each key, in any order. */
static char *print_keys(const struct registry *registry) {
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    workload_print(registry, out);
    fclose(out);
    return text;
}

/* Lines of the first that the second lacks. */
static uint32_t print_missing(const char *mark, const char *first, const char *second) {
    uint32_t missing = 0;
    for (size_t size; *first != '\0'; first += size) {
        size = strcspn(first, "\n") + 1;
        if (memmem(second, strlen(second), first, size) == NULL) {
            printf("%s %.*s", mark, (int)size, first);
            missing++;
        }
    }
    return missing;
}

/* The keys as they were, and as they are. */
static void assert_same_keys(const char *when, const char *before, const char *after) {
    uint32_t differences = print_missing("was:", before, after);
    differences += print_missing("is: ", after, before);
    HOLD(differences == 0, "other keys %s", when);
}

/* ---- turning, and what comes back ---- */

/* The size of the first whole reply; 0: it is not all there. RESP2. */
static size_t reply_size(const char *at, size_t size) {
    const char *end = memmem(at, size, "\r\n", 2);
    if (end == NULL) {
        return 0;
    }
    size_t line = (size_t)(end - at) + 2;
    long long number = strtoll(at + 1, NULL, 10);
    if (*at == '$') {
        size_t whole = number < 0 ? line : line + (size_t)number + 2;
        return whole <= size ? whole : 0;
    }
    if (*at != '*') {
        assert_non_null(strchr("+-:", *at));
        return line;
    }
    size_t used = line;
    for (; number > 0; number--) {
        size_t part = reply_size(at + used, size - used);
        if (part == 0) {
            return 0;
        }
        used += part;
    }
    return used;
}

/* A reply that could not be held is not sent in part: its client is closed, and comes back. */
static void reconnect(struct client *client) {
    HOLD(x.mishap == MISHAP_MEMORY, "a client was closed");
    loop_close(&x.f, client->fd);
    text_free(&client->received);
    text_format(&client->received, "-closed\r\n");
    client->fd = loop_connect(&x.f);
    client->is_waiting = false;
}

static void take_reply(struct client *client) {
    char part[1 << 16];
    ssize_t size;
    while ((size = read(client->fd, part, sizeof part)) > 0) {
        text_add(&client->received, part, (size_t)size);
    }
    if (size == 0) {
        reconnect(client);
    }
    if (client->is_waiting && client->received.size > 0 &&
        reply_size(client->received.at, client->received.size) == client->received.size) {
        client->is_waiting = false;
    }
}

/* A full copy is of the moment at which its walk ends, which others are told only once its thread is free. */
static void note_stream(void) {
    const struct persistence *persistence = x.f.persistence;
    bool is_walked = persistence_stream_group(persistence) != 0 ||
                     (persistence->is_streaming && persistence->saving == WALKING &&
                      persistence->snapshot.state == SNAPSHOT_WALKED);
    if (x.is_streaming && !x.is_stream_told && is_walked) {
        x.is_stream_told = true;
        x.stream_keys = print_keys(x.f.server->registry);
    }
}

/* It turns, too. */
static void send_bytes(const struct client *client, const struct text *request) {
    loop_send_all(&x.f, client->fd, request->at, request->size);
    note_stream();
}

/* The rest of a full copy, or some of it. */
static void read_stream(size_t room_max) {
    struct persistence *persistence = x.f.persistence;
    char error[PERSISTENCE_ERROR_MAX], at[4096];
    enum stream_status status;
    size_t room = room_max < sizeof at ? room_max : sizeof at, size = 0;
    status = persistence_stream_read(persistence, at, room, &size, error);
    if (status == STREAM_FAILED) {
        assert_true(x.mishap == MISHAP_MEMORY || x.mishap == MISHAP_DISK);
        persistence_stream_end(persistence);
        x.is_streaming = false;
        return;
    }
    assert_int_equal(fwrite(at, 1, size, x.stream), size);
    note_stream();
    if (status == STREAM_END) {
        persistence_stream_end(persistence);
        x.is_streaming = false;
        x.is_stream_whole = true;
    }
}

static void turn(void) {
    loop_turn(&x.f);
    assert_null(persistence_fatal_error(x.f.persistence));
    note_stream();
    for (int i = 0; i < CLIENTS; i++) {
        take_reply(&x.clients[i]);
    }
}

/* Until nothing goes on by itself; clients may still wait for time to pass. */
static void rest(void) {
    uint64_t effects = 0;
    for (int quiet = 0, turns = 0; quiet < 3; turns++) {
        turn();
        bool is_quiet = !x.f.tick.is_idle_active && x.f.server->durability.effect_count == effects;
        effects = x.f.server->durability.effect_count;
        quiet = is_quiet ? quiet + 1 : 0;
        assert_true(turns < TURNS_MAX);
        if (turns > 200) {
            usleep(50);
        }
    }
}

static void pass_second(void) {
    loop_second(&x.f);
    turn();
}

static bool is_anyone_waiting(void) {
    for (int i = 0; i < CLIENTS; i++) {
        if (x.clients[i].is_waiting) {
            return true;
        }
    }
    return false;
}

static void send_words(struct client *client) {
    struct text request = {.at = NULL};
    text_command_words(&request, x.grammar.words, x.grammar.sizes, x.grammar.count);
    text_format(&x.log, "%d:", (int)(client - x.clients));
    for (uint32_t i = 0; i < x.grammar.count; i++) {
        text_format(&x.log, " %.*s", (int)(x.grammar.sizes[i] < 60 ? x.grammar.sizes[i] : 60),
                    x.grammar.words[i]);
    }
    text_format(&x.log, "\n");
    text_free(&client->received);
    client->is_waiting = true;
    send_bytes(client, &request);
    text_free(&request);
    x.commands++;
}

static void send_line(struct client *client, const char *line) {
    TEXT(request);
    text_command(&request, "%s", line);
    text_format(&x.log, "%d: %s\n", (int)(client - x.clients), line);
    text_free(&client->received);
    client->is_waiting = true;
    send_bytes(client, &request);
}

/* One of many turns: the disk has a thread of its own, which a loaded machine lets wait, and a second passes now
 * and then. */
static void pause_turn(int turns) {
    turn();
    assert_true(turns < TURNS_MAX);
    if (turns % 20 == 0) {
        usleep(turns < TURNS_MAX / 10 ? 200 : 20000);
    }
    if (turns % 100 == 0) {
        pass_second();
    }
}

static void await(const struct client *client) {
    for (int turns = 1; client->is_waiting; turns++) {
        pause_turn(turns);
    }
}

/* The answer to a line, whatever time that takes. */
static const char *ask(struct client *client, const char *line) {
    send_line(client, line);
    await(client);
    return client->received.at;
}

/* ---- a triple ---- */

static void choose_features(uint32_t index) {
    uint32_t at = 0;
    for (int a = 0; a < (int)FEATURES; a++) {
        for (int b = a + 1; b < (int)FEATURES; b++) {
            for (int c = b + 1; c < (int)FEATURES; c++, at++) {
                if (at == index) {
                    x.grammar.focus[0] = grammar_features[a].words;
                    x.grammar.focus[1] = grammar_features[b].words;
                    x.grammar.focus[2] = grammar_features[c].words;
                    test_row("crossing %u: %s, %s, %s; %s; %s", index, grammar_features[a].name,
                             grammar_features[b].name, grammar_features[c].name, task_names[x.task],
                             mishap_names[x.mishap]);
                    return;
                }
            }
        }
    }
}

static bool is_candidate(const struct command *command) {
    return grammar_is_on_keys(command) ||
           (command->run != NULL && strcmp(command->group, "transactions") == 0);
}

/* The focused ones first. */
static void choose_commands(void) {
    candidate_count = 0;
    for (int is_others = 0; is_others < 2; is_others++) {
        for (uint32_t i = 0; i < command_count(); i++) {
            const struct command *command = command_by_index(i);
            if (is_candidate(command) && grammar_has_focus(&x.grammar, command) != is_others) {
                candidates[candidate_count++] = command;
            }
        }
        focused_count = is_others ? focused_count : candidate_count;
    }
}

static const struct command *some_command(void) {
    uint64_t kind = below(100);
    if (kind < 65 && focused_count > 0) {
        return candidates[below(focused_count)];
    }
    if (kind < 92) {
        const struct command *command;
        do {
            command = candidates[below(candidate_count)];
        } while (!grammar_names_token(always, command, ""));
        return command;
    }
    return candidates[below(candidate_count)];
}

static void make_boards(void) {
    struct client *client = &x.clients[0];
    const struct command *create = command_find(bytes_from_text("LB.CREATE"));
    x.grammar.is_tame = true;
    for (int i = 0; i < BOARDS_MADE; i++) {
        grammar_draw(&x.grammar, create);
        send_words(client);
        await(client);
    }
    x.grammar.is_tame = false;
    (void)ask(client,
              "LB.LEAGUE CREATE lg FIELD a 20 TIME 40 MS PERIOD HOUR ROOM 3 TIERS 3 UP 1 DOWN 1");
    for (int i = 0; i < 6; i++) {
        (void)ask(client, formatted("ZADD %s 5 victim 7 banned 3 m1 4 m2", keys[1 + i]));
    }
    (void)ask(client, "HSET h:m1 a 1");
}

static int many_boards(void) {
    return is_short_run() || x.index % 4 != 0 ? SHORT_BOARDS : MANY_BOARDS;
}

/* By requests of some hundred, and a PING behind them. */
static void make_many_boards(void) {
    struct client *client = &x.clients[0];
    struct text request = {.at = NULL};
    for (int i = 0; i < many_boards(); i++) {
        text_command(&request, "ZADD many:%d %d victim 1 other", i, i % 97);
        if (i % 200 != 199) {
            continue;
        }
        text_command(&request, "PING");
        text_free(&client->received);
        send_bytes(client, &request);
        text_free(&request);
        for (int turns = 1;
             client->received.size < 7 ||
             strcmp(client->received.at + client->received.size - 7, "+PONG\r\n") != 0;
             turns++) {
            pause_turn(turns);
        }
    }
}

static void connect_clients(void) {
    for (int i = 0; i < CLIENTS; i++) {
        text_free(&x.clients[i].received);
        x.clients[i] = (struct client){.fd = loop_connect(&x.f)};
    }
    if (x.task == TASK_PLAYER) {
        char token[JWT_SIZE_MAX + 100];
        token[jwt_maker_player(JWT_HS256, "m1", HARNESS_START_US / 1000000 + 100000000, token)] =
            '\0';
        HOLD(strcmp(ask(&x.clients[LIMITED], formatted("AUTH %s", token)), "+OK\r\n") == 0,
             "the player is not let in: %s", x.clients[LIMITED].received.at);
    } else {
        (void)ask(&x.clients[LIMITED], "AUTH limited x");
    }
}

static void begin_server(bool is_first) {
    int64_t wall_us = is_first ? 0 : x.f.harness->wall_us;
    if (is_first) {
        loop_begin_kept(&x.f, settings);
    } else {
        loop_stop(&x.f);
        loop_start_kept(&x.f, settings);
        harness_set_clock(x.f.harness, wall_us);
    }
    x.f.server->shadows.run = ban_shadow_run_call; /* as main.c says */
    job_board_begin(x.f.server, &window_job);
    job_board_begin(x.f.server, &rating_job);
    job_board_begin(x.f.server, &hold_job);
    job_board_begin(x.f.server, &ban_shadow_job);
    job_board_begin(x.f.server, &job_board_stale);
    connect_clients();
}

/* Members that are stale leave with the next pass, and a job that begins begins with one. */
static void drop_stale(void) {
    job_board_begin(x.f.server, &job_board_stale);
    rest();
}

/* What was written is read. */
static void restart(void) {
    drop_stale();
    OWNED char *before = print_keys(x.f.server->registry);
    begin_server(false);
    OWNED char *after = print_keys(x.f.server->registry);
    assert_same_keys("after a restart", before, after);
}

/* ---- while it goes on ---- */

static void step_task(int step) {
    struct client *admin = &x.clients[0];
    if (admin->is_waiting) {
        return;
    }
    switch (x.task) {
    case TASK_SAVE:
        if (step % 60 == 20) {
            (void)ask(admin, step % 120 == 20 ? "BGSAVE" : "BGREWRITEAOF");
        }
        break;
    case TASK_STREAM:
        if (step == 60 && persistence_stream_may_begin(x.f.persistence)) {
            char error[PERSISTENCE_ERROR_MAX];
            x.is_streaming = persistence_stream_begin(x.f.persistence, error) == PERSISTENCE_OK;
        }
        break;
    case TASK_PERIODS:
        if (step % 80 == 79) {
            rest();
            x.f.harness->wall_us += INT64_C(3660000000);
            pass_second();
        }
        break;
    case TASK_PASS:
        if (step == 60) {
            (void)ask(admin, "BGSAVE");
            send_line(&x.clients[PASSING], x.index % 3 == 0   ? "LB.FORGET victim"
                                           : x.index % 3 == 1 ? "LB.MOVE victim moved"
                                                              : "LB.BAN victim");
        } else if (step > 60) {
            (void)ask(admin, formatted(step % 2 == 0 ? "COPY many:%u copied:%u"
                                                     : "RENAME many:%u renamed:%u",
                                       (unsigned)below((uint64_t)many_boards()), (unsigned)step));
        }
        break;
    case TASK_RIGHTS:
        if (step % 30 == 29) {
            static const char *const rights[] = {
                "-lb.add", "+lb.add", "~lim:0 -zadd", "resetkeys ~lim:*",
                "off",     "on",      "+zadd",        "%R~b*"};
            (void)ask(admin, formatted("ACL SETUSER limited %s", rights[below(COUNT_OF(rights))]));
        }
        break;
    case TASK_CONFIG:
        if (step % 20 == 19) {
            static const char *const changes[] = {"busy-command-limit 1",
                                                  "busy-command-limit 0",
                                                  "notify-keyspace-events KEA",
                                                  "notify-keyspace-events Kz",
                                                  "once-window 7200",
                                                  "once-window 3600",
                                                  "default-layout money",
                                                  "default-layout default",
                                                  "appendonly no",
                                                  "appendonly yes",
                                                  "once-max 5",
                                                  "once-max 100000"};
            (void)ask(admin, formatted("CONFIG SET %s", changes[below(COUNT_OF(changes))]));
        }
        break;
    case TASK_FULL:
        if (step % 40 == 19) {
            (void)ask(admin,
                      step % 80 == 19 ? "CONFIG SET maxmemory 1mb" : "CONFIG SET maxmemory 0");
        }
        break;
    case TASK_PLAYER:
        if (step % 40 == 5) {
            static const char *const bans[] = {"LB.BAN m1 SHADOW", "LB.BAN m1 SHADOW MATCH b*",
                                               "LB.BAN m1 SHADOW EX 3", "LB.UNBAN m1"};
            (void)ask(admin, bans[below(COUNT_OF(bans))]);
        }
        break;
    case TASK_LIMITED:
    case TASK_COUNT:
        break;
    }
    if (x.is_streaming) {
        read_stream(200);
    }
}

static void copy_directory(const char *from, const char *to) {
    assert_int_equal(system(formatted("rm -rf '%s' && cp -r '%s' '%s'", to, from, to)), 0);
}

/* Until all that was done is written. false: the journal is off. */
static bool settle_disk(void) {
    for (int turns = 0; turns < TURNS_MAX; turns++) {
        struct persistence_info info;
        rest();
        persistence_describe(x.f.persistence, &info);
        bool is_wanted = x.f.server->settings.appendonly;
        if (!info.is_saving && info.is_journal_on == is_wanted &&
            (!is_wanted || info.written_group == info.group)) {
            return is_wanted;
        }
        usleep(500);
        pass_second();
    }
    HOLD(false, "the disk is never written");
    return false;
}

/* What a kill would leave. */
static void note_kill(void) {
    if (settle_disk() && !x.is_killed) {
        x.is_killed = true;
        x.kill_digest = digest_now(NULL);
        copy_directory(x.f.directory, x.kill_path);
    }
}

static void step_mishap(int step) {
    int at = STEPS / 2;
    switch (x.mishap) {
    case MISHAP_KILL:
        if (step == at) {
            note_kill();
        }
        break;
    case MISHAP_MEMORY:
        if (step % 10 == 5) {
            memory_fail_at(1 + below(60));
        }
        break;
    case MISHAP_CLOCK:
        if (step % 50 == 25) {
            x.f.harness->wall_us -= (int64_t)below(200) * 1000000;
        }
        break;
    case MISHAP_GONE:
        if (step % 25 == 12) {
            struct client *client = &x.clients[1 + below(2)];
            loop_close(&x.f, client->fd);
            text_free(&client->received);
            *client = (struct client){.fd = loop_connect(&x.f)};
        }
        break;
    case MISHAP_RESTART:
        if (step == at && !x.is_streaming && settle_disk()) {
            restart();
        }
        break;
    case MISHAP_NONE:
    case MISHAP_DISK:
    case MISHAP_COUNT:
        break;
    }
}

/* An error has changed nothing; who is limited has changed nothing else. */
static void run_seen(struct client *client) {
    rest();
    bool is_limited = client == &x.clients[LIMITED] && x.task != TASK_PLAYER;
    const struct command *command = command_find(bytes_from_text(x.grammar.words[0]));
    uint64_t before = digest_now(NULL), others_before = digest_now("lim:");
    send_words(client);
    rest();
    x.seen++;
    if (!client->is_waiting && client->received.at[0] == '-') {
        x.errors++;
        HOLD(digest_now(NULL) == before, "an error, but something has changed: %s",
             client->received.at);
    }
    if (is_limited) {
        HOLD(digest_now("lim:") == others_before, "the limited user has changed other keys");
    }
    if (command != NULL && command->run != NULL && (command->flags & COMMAND_WRITE) == 0 &&
        strcmp(command->group, "transactions") != 0) {
        HOLD(digest_now(NULL) == before, "a command that reads has changed something");
    }
}

static void step_client(struct client *client) {
    grammar_draw(&x.grammar, some_command());
    bool is_dump = strcasecmp(x.grammar.words[0], "DUMP") == 0;
    bool is_restore = strcasecmp(x.grammar.words[0], "RESTORE") == 0;
    if (is_restore && x.task == TASK_PASS) {
        return; /* it would bring back who was forgotten */
    }
    if (x.task != TASK_PASS && !is_anyone_waiting() && x.mishap != MISHAP_MEMORY &&
        below(SEEN_ONE_IN) == 0) {
        run_seen(client);
    } else {
        send_words(client);
        for (uint64_t turns = below(4); turns > 0; turns--) {
            turn();
        }
    }
    memory_fail_at(0);
    if (is_dump && !client->is_waiting && client->received.at[0] == '$' &&
        client->received.size > DUMP_MIN) {
        const char *value = strchr(client->received.at, '\n') + 1;
        text_free(&x.payload);
        text_add(&x.payload, value,
                 client->received.size - 2 - (size_t)(value - client->received.at));
        x.grammar.payload = (struct bytes){.at = x.payload.at, .size = x.payload.size};
    }
}

static void run_steps(void) {
    for (int step = 0; step < STEPS; step++) {
        step_task(step);
        step_mishap(step);
        int first = x.task == TASK_LIMITED || x.task == TASK_PLAYER || x.task == TASK_RIGHTS
                        ? (int)below(2) * (LIMITED - 1) + 1
                        : 1;
        struct client *client = &x.clients[first == 1 ? 1 + below(2) : LIMITED];
        if (!client->is_waiting) {
            step_client(client);
        } else {
            turn();
            usleep(100); /* the disk has a thread of its own */
        }
        if (step % 8 == 7) {
            pass_second();
        }
    }
}

/* ---- at the end ---- */

static void end_steps(void) {
    memory_fail_at(0);
    failing_disk_heal();
    for (int seconds = 0; is_anyone_waiting() || x.f.server->durability.write_refusal != NULL;
         seconds++) {
        rest();
        pass_second();
        usleep(500);
        HOLD(seconds < TURNS_MAX, "a client waits for ever");
    }
    for (int i = 0; i < PASSING; i++) {
        (void)ask(&x.clients[i], "DISCARD");
    }
    (void)ask(&x.clients[0], "CONFIG SET maxmemory 0");
    while (x.is_streaming) {
        turn();
        read_stream(4096);
    }
    rest();
}

static void check_pass(void) {
    const struct text *answer = &x.clients[PASSING].received;
    if (x.task != TASK_PASS || answer->size == 0 || answer->at[0] == '-') {
        return;
    }
    /* LB.MOVE says how many boards it left as they were, for want of memory, say. */
    if (answer->at[0] == '*' && strstr(answer->at, "\r\n:0\r\n") == NULL) {
        return;
    }
    const char *where = ask(&x.clients[0], "LB.WHERE victim");
    HOLD(strcmp(where, "*0\r\n") == 0, "who was taken off every board is on one: %s", where);
}

enum { WINDOWS_MAX = 64 };
struct windows {
    const struct registry_key *keys[WINDOWS_MAX];
    uint32_t count;
};

static void note_window(void *context, const struct registry_key *key) {
    struct windows *windows = context;
    if (key->kind == REGISTRY_BOARD && registry_options(key)->window.count > 0 &&
        windows->count < WINDOWS_MAX) {
        windows->keys[windows->count++] = key;
    }
}

/* At rest each member of a board with a WINDOW has what its periods' boards say, and so has nobody else. */
static void check_window(const struct registry_key *key) {
    static struct window_shares shares;
    const struct board_options *options = registry_options(key);
    int64_t now_ms = x.f.server->clock.now_ms;
    window_find_shares(x.f.server->registry, key, now_ms, &shares);
    struct bytes name = registry_name(key);
    struct board_cursor cursor;
    struct board_stored entry;
    for (board_cursor_seek(&key->board, 0, &cursor); board_cursor_read(&cursor, &entry);
         board_cursor_next(&cursor)) {
        struct window_value value = {.name = stored_text(entry.member), .most = UINT64_MAX};
        window_compute(&shares, &value, 1);
        HOLD(value.is_there, "%.*s is on %.*s, and on no period's board", (int)value.name.size,
             value.name.at, (int)name.size, name.at);
        HOLD(layout_without_time(&options->layout, entry.key) ==
                 layout_without_time(&options->layout, value.key),
             "%.*s on %.*s is not what its periods' boards say", (int)value.name.size,
             value.name.at, (int)name.size, name.at);
    }
    for (uint32_t i = shares.has_first ? 1 : 0; i < shares.count; i++) {
        for (board_cursor_seek(&shares.at[i]->board, 0, &cursor);
             board_cursor_read(&cursor, &entry); board_cursor_next(&cursor)) {
            struct bytes member = stored_text(entry.member);
            uint64_t packed;
            HOLD(board_find(&key->board, member, &packed),
                 "%.*s is on a period's board of %.*s alone", (int)member.size, member.at,
                 (int)name.size, name.at);
        }
    }
}

static void check_windows(void) {
    struct windows windows = {.count = 0};
    for (uint32_t i = 0; i < REGISTRY_DATABASES; i++) {
        registry_walk_each(x.f.server->registry, i, x.f.server->clock.now_ms, note_window,
                           &windows);
    }
    for (uint32_t i = 0; i < windows.count; i++) {
        check_window(windows.keys[i]);
    }
}

static void check_stream(void) {
    if (x.is_stream_whole) {
        assert_true(x.is_stream_told);
        fflush(x.stream);
        struct registry *copy = commands_read_copy(x.stream_path);
        OWNED char *keys_of_copy = print_keys(copy);
        assert_same_keys("in a full copy", x.stream_keys, keys_of_copy);
        registry_destroy(copy);
    }
}

static void check_kept(void) {
    const char *reason = "";
    HOLD(registry_validate(x.f.server->registry, &reason), "%s", reason);
    const char *answer = ask(&x.clients[0], "CONFIG SET appendonly yes");
    HOLD(strcmp(answer, "+OK\r\n") == 0 && settle_disk(), "the journal stays off: %s", answer);
    restart();
    HOLD(registry_validate(x.f.server->registry, &reason), "after a restart: %s", reason);
    if (x.is_killed) {
        copy_directory(x.kill_path, x.f.directory);
        int64_t wall_us = x.f.harness->wall_us;
        loop_stop(&x.f);
        copy_directory(x.kill_path, x.f.directory);
        loop_start_kept(&x.f, settings);
        harness_set_clock(x.f.harness, wall_us);
        HOLD(digest_now(NULL) == x.kill_digest, "other boards after a kill");
    }
}

static void run_crossing(uint64_t seed, uint32_t index) {
    struct text log = x.log;
    log.size = 0;
    uint64_t commands = x.commands, errors = x.errors, seen = x.seen;
    x = (struct crossing){
        .index = index, .log = log, .commands = commands, .errors = errors, .seen = seen};
    x.random = (struct random){.state = seed + index * UINT64_C(0x9e3779b97f4a7c15)};
    x.task = (enum task)below(TASK_COUNT);
    x.mishap = (enum mishap)below(MISHAP_COUNT);
    x.grammar = (struct grammar){.random = &x.random, .keys = keys};
    static const char *const favourites[] = {"b0", "w0", "lg", "lim:0", "lim:p", "h:m1"};
    x.grammar.favourite = favourites[below(COUNT_OF(favourites))];
    choose_features(index);
    if (x.mishap == MISHAP_DISK) {
        failing_disk_begin_for(FAILURE_FULL, 60 + below(200), 2 + below(8));
    }
    begin_server(true);
    choose_commands();
    snprintf(x.stream_path, sizeof x.stream_path, "%s.stream", x.f.directory);
    snprintf(x.kill_path, sizeof x.kill_path, "%s.kill", x.f.directory);
    x.stream = x.task == TASK_STREAM ? fopen(x.stream_path, "w") : NULL;
    make_boards();
    if (x.task == TASK_PASS) {
        make_many_boards();
    }
    run_steps();
    end_steps();
    check_pass();
    check_windows();
    check_stream();
    check_kept();
    loop_end(&x.f);
    if (x.mishap == MISHAP_DISK) {
        (void)failing_disk_end();
    }
    if (x.stream != NULL) {
        fclose(x.stream);
        (void)unlink(x.stream_path);
    }
    if (x.is_killed) {
        directory_remove(x.kill_path);
    }
    for (int i = 0; i < CLIENTS; i++) {
        text_free(&x.clients[i].received);
    }
    text_free(&x.payload);
    free(x.stream_keys);
}

TEST(three_features_a_task_and_a_fault_at_a_time_hold) {
    struct random random = random_begin(__func__);
    const uint64_t seed = random.state;
    const char *only = getenv("LEADERBOARD_CROSSING");
    unsigned first = 0;
    unsigned last = 0;
    uint32_t done = 0;
    if (only != NULL && sscanf(only, "%u-%u", &first, &last) < 2) {
        last = first;
    }
    for (uint32_t i = 0; i < TRIPLES; i++) {
        bool is_drawn = !is_short_run() || random_below(&random, TRIPLES) < SHORT_TRIPLES;
        if (only != NULL ? i >= first && i <= last : is_drawn) {
            run_crossing(seed, i);
            done++;
        }
    }
    text_free(&x.log);
    printf("%" PRIu64 " commands, %u of %u triples, %" PRIu64 " looked at, %" PRIu64
           " of them errors\n",
           x.commands, done, (unsigned)TRIPLES, x.seen, x.errors);
}

static void expect_feature(void *context, const struct command *command, const char *token) {
    static const char *const plain[] = {
        "NX",   "XX",    "GT",   "LT",  "CH", "MATCH",   "COUNT",  "REV",  "US",
        "MS",   "S",     "M",    "H",   "D",  "MEMBERS", "MINUTE", "HOUR", "DAY",
        "WEEK", "MONTH", "YEAR", "YES", "NO", "RANKS",   "SCORES", NULL};
    (void)context;
    for (size_t i = 0; i < FEATURES; i++) {
        if (grammar_names_token(grammar_features[i].words, command, token)) {
            return;
        }
    }
    if (!grammar_names_token(always, command, token) &&
        !grammar_names_token(plain, command, token)) {
        fail_msg("%s of %s is no feature's", token, command->name);
    }
}

/* So a new option is drawn with all others from its first day. */
TEST(each_command_that_writes_and_each_of_its_options_is_a_features) {
    execute_init(command_table);
    for (uint32_t i = 0; i < command_count(); i++) {
        const struct command *command = command_by_index(i);
        if (is_candidate(command) && (command->flags & COMMAND_WRITE) != 0) {
            bool is_drawn = grammar_is_named(always, command);
            for (size_t k = 0; k < FEATURES; k++) {
                is_drawn |= grammar_is_named(grammar_features[k].words, command);
            }
            if (!is_drawn) {
                fail_msg("%s is no feature's", command->name);
            }
            grammar_each_token(command, expect_feature, NULL);
        }
    }
}
