/* Whatever a board refuses, it refuses by every path: a command by itself, in a transaction, and one that waited
 * for the board. All writing commands of the table, on boards of every kind. */
#include <ctype.h>

#include "server/commands/window.h"
#include "server/dispatch/waiting.h"
#include "server/sessions/job.h"
#include "tests/server/zset_fixture.h"
#include "tests/support/errors.h"

#define HOUR_US INT64_C(3600000000)
#define SPACE   "FIELD score 33 SIGNED TIME 31 S"

/* KEY in the lines is the board. */
struct board_kind {
    const char *what, *key;
    const char *lines[5];   /* make it */
    int hours;              /* that pass then */
    const char *to_members; /* what a command that names members is answered; NULL: it is taken */
    const char *to_range;   /* and one that takes or stores any */
};

#define SHARE                                                                                      \
    "-FROZEN board has the results of one period of a board with WINDOW: write to that one"
#define WINDOW                                                                                     \
    "-ERR board has a WINDOW: its members follow from its periods' results, and only single "      \
    "members are written or removed (ZADD, ZINCRBY, ZREM, LB.ADD, LB.SUBMIT)"
#define LEAGUE "-ERR board is of a league: only LB.LEAGUE writes to it"

static const struct board_kind kinds[] = {
    {"of a plain write", "plain", {"ZADD KEY 10 ann 20 bob"}, 0, NULL, NULL},
    {"frozen",
     "shut",
     {"LB.CREATE KEY " SPACE, "ZADD KEY 10 ann 20 bob", "LB.ALTER KEY FREEZE"},
     0,
     ERROR_FROZEN,
     ERROR_FROZEN},
    {"not open yet",
     "later",
     {"LB.CREATE KEY " SPACE, "ZADD KEY 10 ann 20 bob", "LB.ALTER KEY OPENS 2100-01-01T00:00:00Z"},
     0,
     "-CLOSED board opens at 2100-01-01T00:00:00Z",
     "-CLOSED board opens at 2100-01-01T00:00:00Z"},
    {"closed",
     "over",
     {"LB.CREATE KEY " SPACE, "ZADD KEY 10 ann 20 bob", "LB.ALTER KEY CLOSES 2000-01-01T00:00:00Z"},
     0,
     "-CLOSED board has been closed since 2000-01-01T00:00:00Z",
     "-CLOSED board has been closed since 2000-01-01T00:00:00Z"},
    {"full", "full", {"LB.CREATE KEY " SPACE " LIMIT 2", "ZADD KEY 10 ann 20 bob"}, 0, NULL, NULL},
    {"with a WINDOW",
     "w",
     {"LB.CREATE KEY " SPACE " PERIOD HOUR WINDOW 3 SUM", "ZADD KEY 10 ann 20 bob"},
     0,
     NULL,
     WINDOW},
    {"with a WINDOW of a board line", "auto:w", {"ZADD KEY 10 ann 20 bob"}, 0, NULL, WINDOW},
    {"a period of a WINDOW",
     "w@2026-11-26T05",
     {"LB.CREATE w " SPACE " PERIOD HOUR WINDOW 3 SUM", "ZADD w 10 ann 20 bob"},
     0,
     SHARE,
     SHARE},
    {"an archive",
     "p@2026-11-26T05",
     {"LB.CREATE p " SPACE " PERIOD HOUR", "ZADD p 10 ann 20 bob"},
     1,
     ERROR_FROZEN,
     ERROR_FROZEN},
    {"a league's",
     "lg",
     {"LB.LEAGUE CREATE KEY " SPACE " PERIOD WEEK ROOM 9 TIERS 3 UP 1 DOWN 1 ARCHIVE ALL",
      "LB.LEAGUE ADD KEY 10 ann", "LB.LEAGUE ADD KEY 20 bob"},
     0,
     LEAGUE,
     LEAGUE},
    {"a league's room",
     "{lg}:1:1",
     {"LB.LEAGUE CREATE lg " SPACE " PERIOD WEEK ROOM 9 TIERS 3 UP 1 DOWN 1 ARCHIVE ALL",
      "LB.LEAGUE ADD lg 10 ann", "LB.LEAGUE ADD lg 20 bob"},
     0,
     NULL,
     NULL},
    {"ascending", "laps:a", {"ZADD KEY 10 ann 20 bob"}, 0, NULL, NULL},
    {"with KEEP BEST and CAP",
     "best",
     {"LB.CREATE KEY " SPACE " KEEP BEST CAP 2", "ZADD KEY 10 ann 20 bob"},
     0,
     NULL,
     NULL},
};

enum effect_on { ON_MEMBERS, ON_RANGE, ON_KEY };

/* A writing command; with what its refusal is to be compared. */
static const struct {
    enum effect_on on;
    const char *line;
} writes[] = {
    {ON_MEMBERS, "ZADD KEY 30 ann"},
    {ON_MEMBERS, "ZADD KEY 30 ann 5 zoe"},
    {ON_MEMBERS, "ZADD KEY INCR 1 bob"},
    {ON_MEMBERS, "ZINCRBY KEY 1 bob"},
    {ON_MEMBERS, "ZREM KEY ann"},
    {ON_MEMBERS, "LB.ADD KEY INCR 1 ann"},
    {ON_MEMBERS, "LB.ADD KEY ONCE id1 WITHRANK BEST 99 ann"},
    {ON_MEMBERS, "LB.ADD KEY HSET hash:*:x 1 field value BEST 99 ann"},
    {ON_MEMBERS, "LB.SUBMIT 1 KEY INCR 1 ann"},
    {ON_MEMBERS, "LB.SUBMIT 2 other KEY INCR 1 ann"},
    {ON_RANGE, "ZPOPMIN KEY"},
    {ON_RANGE, "ZPOPMAX KEY 5"},
    {ON_RANGE, "ZMPOP 1 KEY MIN"},
    {ON_RANGE, "BZPOPMIN KEY 1"},
    {ON_RANGE, "BZPOPMAX nobody KEY 1"},
    {ON_RANGE, "BZMPOP 1 2 nobody KEY MAX COUNT 2"},
    {ON_RANGE, "ZMOVE KEY moved MIN"},
    {ON_RANGE, "ZMOVE source KEY MAX"},
    {ON_RANGE, "ZMOVEMEMBER KEY moved MEMBERS 1 ann"},
    {ON_RANGE, "BZMOVE KEY moved MIN 1"},
    {ON_RANGE, "ZREMRANGEBYRANK KEY 0 0"},
    {ON_RANGE, "ZREMRANGEBYSCORE KEY 0 10"},
    {ON_RANGE, "ZUNIONSTORE KEY 1 source"},
    {ON_RANGE, "ZINTERSTORE KEY 1 source"},
    {ON_RANGE, "ZDIFFSTORE KEY 1 source"},
    {ON_RANGE, "ZRANGESTORE KEY source 0 -1"},
    {ON_RANGE, "LB.ROLL KEY moved"},
    {ON_KEY, "ZREMRANGEBYLEX KEY - +"},
    {ON_KEY, "RESTORE KEY 0 payload REPLACE"},
    {ON_KEY, "COPY source KEY REPLACE"},
    {ON_KEY, "DEL KEY"},
    {ON_KEY, "UNLINK KEY"},
    {ON_KEY, "RENAME KEY moved"},
    {ON_KEY, "RENAME source KEY"},
    {ON_KEY, "RENAMENX KEY moved"},
    {ON_KEY, "EXPIRE KEY 100"},
    {ON_KEY, "EXPIREAT KEY 4102444800"},
    {ON_KEY, "PEXPIRE KEY 100000"},
    {ON_KEY, "PEXPIREAT KEY 4102444800000"},
    {ON_KEY, "PERSIST KEY"},
    {ON_KEY, "HSET KEY field value"},
    {ON_KEY, "HMSET KEY field value"},
    {ON_KEY, "HSETNX KEY field value"},
    {ON_KEY, "HDEL KEY field"},
    {ON_KEY, "HINCRBY KEY field 1"},
    {ON_KEY, "HINCRBYFLOAT KEY field 1"},
    {ON_KEY, "LB.ALTER KEY CLOSES 2040-01-01T00:00:00Z"},
    {ON_KEY, "LB.CREATE KEY"},
    {ON_KEY, "LB.TAG KEY ann team red"},
    {ON_KEY, "LB.SETTLE KEY"},
    {ON_KEY, "LB.MATCH KEY TEAM 1 ann TEAM 1 bob"},
    {ON_KEY, "LB.RATE KEY ann 1500"},
    {ON_KEY, "LB.UNMATCH KEY m"},
    {ON_KEY, "LB.APPROVE KEY m"},
    {ON_KEY, "LB.REJECT KEY m"},
    {ON_KEY, "LB.REFUND KEY ann SINCE 0"},
    {ON_KEY, "LB.LEAGUE CREATE KEY " SPACE " PERIOD WEEK ROOM 9 TIERS 3 UP 1 DOWN 1 ARCHIVE ALL"},
    {ON_KEY, "LB.LEAGUE ADD KEY INCR 1 ann"},
    {ON_KEY, "LB.LEAGUE SET KEY 2 ann"},
    {ON_KEY, "LB.LEAGUE REMOVE KEY ann"},
    {ON_KEY, "FLUSHDB"},
    {ON_KEY, "FLUSHALL"},
};

/* Over all boards at once, and outside of transactions only; they erase what is frozen, too. Or over none. */
static const char *const of_all_boards[] = {"LB.FORGET", "LB.MOVE",   "LB.BAN",
                                            "LB.UNBAN",  "LB.REVOKE", "LB.TICKET"};

static void run_with_key(struct harness *h, const char *line, const char *key, char *out,
                         size_t out_size) {
    char command[512];
    size_t size = 0;
    while (*line != '\0') {
        bool is_key = strncmp(line, "KEY", 3) == 0;
        size += (size_t)snprintf(command + size, sizeof command - size, "%.*s",
                                 is_key ? (int)strlen(key) : 1, is_key ? key : line);
        line += is_key ? 3 : 1;
    }
    const char *reply = zset_run(h, "%s", command);
    if (out != NULL) {
        snprintf(out, out_size, "%s", reply);
    }
}

static struct harness *given(const struct board_kind *kind) {
    static const char settings[] = "layout laps FIELD ms 32 ASC TIME 31 S\n"
                                   "layout one " SPACE "\n"
                                   "board laps:* laps\n"
                                   "board auto:* one PERIOD HOUR WINDOW 3 SUM\n";
    struct harness *h = harness_create(settings);
    harness_connect(h);
    h->wall_us = zset_us("2026-11-26T05:10:00Z");
    zset_expect(h, "ZADD source 1 x 2 y", ":2");
    for (size_t i = 0; i < COUNT_OF(kind->lines) && kind->lines[i] != NULL; i++) {
        char reply[512];
        run_with_key(h, kind->lines[i], kind->key, reply, sizeof reply);
        assert_true(reply[0] != '-');
    }
    h->wall_us += kind->hours * HOUR_US;
    return h;
}

/* All keys and what is in them. */
static void contents(struct harness *h, const char *key, char *out, size_t size) {
    size_t at = 0;
    static const char *const lines[] = {"ZRANGE KEY 0 -1 WITHSCORES",
                                        "ZRANGE w 0 -1 WITHSCORES",
                                        "ZRANGE lg 0 -1 WITHSCORES",
                                        "ZRANGE other 0 -1",
                                        "ZRANGE moved 0 -1",
                                        "TYPE KEY",
                                        "PEXPIRETIME KEY",
                                        "EXISTS hash:ann:x source"};
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        run_with_key(h, lines[i], key, out + at, size - at);
        at += strlen(out + at);
    }
    at += (size_t)snprintf(out + at, size - at, "%s", zset_run(h, "KEYS *"));
}

static const char *refusal_of(const struct board_kind *kind, enum effect_on on) {
    return on == ON_MEMBERS ? kind->to_members : on == ON_RANGE ? kind->to_range : NULL;
}

TEST(each_board_refuses_the_same_alone_and_in_a_transaction) {
    char alone[4096], queued[4096], before[8192], after_alone[8192], after_queued[8192];
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        for (size_t j = 0; j < COUNT_OF(writes); j++) {
            const struct board_kind *kind = &kinds[i];
            struct harness *h = given(kind);
            contents(h, kind->key, before, sizeof before);
            run_with_key(h, writes[j].line, kind->key, alone, sizeof alone);
            contents(h, kind->key, after_alone, sizeof after_alone);
            harness_destroy(h);
            const char *refusal = refusal_of(kind, writes[j].on);
            bool is_told = refusal == NULL ? alone[0] != '-' || writes[j].on == ON_KEY ||
                                                 strstr(kind->what, "full") != NULL
                                           : strncmp(alone, refusal, strlen(refusal)) == 0;
            if (!is_told || (refusal != NULL && strcmp(before, after_alone) != 0)) {
                fail_msg("a board %s: %s: %s\n%s\n%s", kind->what, writes[j].line, alone, before,
                         after_alone);
            }
            h = given(kind);
            zset_expect(h, "MULTI", "+OK");
            run_with_key(h, writes[j].line, kind->key, queued, sizeof queued);
            snprintf(queued, sizeof queued, "%s", zset_run(h, "EXEC"));
            contents(h, kind->key, after_queued, sizeof after_queued);
            harness_destroy(h);
            size_t size = strlen(alone);
            if (queued[0] != '[' || strncmp(queued + 1, alone, size) != 0 ||
                strcmp(queued + 1 + size, "]") != 0 || strcmp(after_alone, after_queued) != 0) {
                fail_msg("a board %s: %s: %s, EXEC %s\n%s\n%s", kind->what, writes[j].line, alone,
                         queued, after_alone, after_queued);
            }
        }
    }
}

/* Boards that can be made empty, and are then filled while a client waits. */
static const struct {
    const char *what, *key;
    const char *lines[3], *filling;
    const char *answer; /* of the client that waits; NULL: it goes on waiting */
    const char *direct; /* of one that comes then */
} waited_for[] = {
    {"of a plain write",
     "k",
     {NULL},
     "ZADD KEY 10 ann",
     "*3\r\n$1\r\nk\r\n$3\r\nann\r\n$2\r\n10\r\n",
     "nil*"},
    {"with a WINDOW of a board line", "auto:w", {NULL}, "ZADD KEY 10 ann", WINDOW "\r\n", WINDOW},
    {"that gets a WINDOW",
     "k",
     {NULL},
     "LB.CREATE KEY " SPACE " PERIOD HOUR WINDOW 3 BEST",
     NULL,
     WINDOW},
    {"of a league",
     "lg",
     {NULL},
     "LB.LEAGUE CREATE KEY " SPACE " PERIOD WEEK ROOM 9 TIERS 3 UP 1 DOWN 1 ARCHIVE ALL",
     NULL,
     LEAGUE},
    {"that comes frozen",
     "k",
     {"LB.CREATE was " SPACE, "ZADD was 1 ann", "LB.ALTER was FREEZE"},
     "RENAME was KEY",
     NULL,
     ERROR_FROZEN},
};

TEST(a_client_that_waited_is_refused_as_one_that_comes) {
    char reply[1024];
    for (size_t i = 0; i < COUNT_OF(waited_for); i++) {
        const struct board_kind kind = {
            .key = waited_for[i].key,
            .lines = {waited_for[i].lines[0], waited_for[i].lines[1], waited_for[i].lines[2]}};
        for (size_t j = 0; j < 3; j++) {
            static const char *const waits[][2] = {
                {"BZPOPMIN", " 0"}, {"BZPOPMAX", " 0"}, {"BZMPOP 0 1", " MIN"}};
            struct harness *h = given(&kind);
            struct session *waiting = harness_connect(h);
            char line[64];
            snprintf(line, sizeof line, "%s %s%s", waits[j][0], kind.key, waits[j][1]);
            harness_expect(h, waiting, line, "");
            run_with_key(h, waited_for[i].filling, kind.key, reply, sizeof reply);
            assert_true(reply[0] != '-');
            waiting_serve(&h->server);
            const char *answer = waited_for[i].answer;
            if (answer == NULL) {
                assert_int_equal(waiting->wait.state, WAIT_FOR_KEY);
            } else if (j < 2 || answer[0] == '-') {
                assert_string_equal(harness_output(waiting), answer);
            }
            snprintf(line, sizeof line, "ZMPOP 1 %s MIN", kind.key);
            zset_expect(h, line, waited_for[i].direct);
            harness_destroy(h);
        }
    }
}

/* The members of the board and of its period stay, and so the next writes are right. */
TEST(nothing_is_popped_from_a_window_by_a_client_that_waited) {
    static const struct board_kind kind = {.key = "w"};
    struct harness *h = given(&kind);
    struct session *waiting = harness_connect(h);
    zset_expect(h, "LB.CREATE w " SPACE " PERIOD HOUR WINDOW 3 SUM", "+OK");
    zset_expect(h, "ZADD w 1 ann", ":1");
    zset_expect(h, "ZREM w ann", ":1");
    harness_expect(h, waiting, "BZPOPMIN w 0", WINDOW "\r\n");
    zset_expect(h, "DEL w", ":1");
    harness_expect(h, waiting, "BZPOPMIN w 0", "");
    zset_expect(h, "LB.CREATE w " SPACE " PERIOD HOUR WINDOW 3 SUM", "+OK");
    zset_expect(h, "ZADD w 10 ann", ":1");
    waiting_serve(&h->server);
    assert_string_equal(harness_output(waiting), WINDOW "\r\n");
    zset_expect(h, "ZRANGE w 0 -1 WITHSCORES", "[ann 10]");
    zset_expect(h, "ZRANGE w@2026-11-26T05 0 -1 WITHSCORES", "[ann 10]");
    zset_expect(h, "ZADD w NX 7 ann", ":0");
    zset_expect(h, "ZINCRBY w 7 ann", "17");
    harness_destroy(h);
}

TEST(every_writing_command_is_among_them) {
    struct harness *h = harness_create(NULL);
    for (uint32_t i = 0; i < command_count(); i++) {
        const struct command *command = command_by_index(i);
        char name[64];
        snprintf(name, sizeof name, "%s", command_full_name(i));
        for (char *at = name; *at != '\0'; at++) {
            *at = *at == '|' ? ' ' : (char)toupper((unsigned char)*at);
        }
        bool is_found = (command->flags & COMMAND_WRITE) == 0 || command->run == NULL;
        size_t size = strlen(name);
        for (size_t j = 0; j < COUNT_OF(writes) && !is_found; j++) {
            is_found = strncmp(writes[j].line, name, size) == 0 &&
                       (writes[j].line[size] == ' ' || writes[j].line[size] == '\0');
        }
        for (size_t j = 0; j < COUNT_OF(of_all_boards) && !is_found; j++) {
            is_found = strcmp(of_all_boards[j], name) == 0;
        }
        if (!is_found) {
            fail_msg("%s writes, and is not tried here", name);
        }
    }
    harness_destroy(h);
}

/* ---- events ---- */

enum { KEYS_MAX = 32, CONTENT_MAX = 2048 };

struct contents_of {
    unsigned count;
    struct {
        char name[64], content[CONTENT_MAX];
    } keys[KEYS_MAX];
};

static void read_keys(struct harness *h, struct contents_of *all) {
    static const char *const questions[] = {"TYPE KEY", "ZRANGE KEY 0 -1 WITHSCORES",
                                            "LB.RANGE KEY 0 -1 TAGS", "HGETALL KEY",
                                            "PEXPIRETIME KEY"};
    char names[4096];
    snprintf(names, sizeof names, "%s", zset_run(h, "KEYS *"));
    all->count = 0;
    for (char *name = strtok(names, "[ ]"); name != NULL; name = strtok(NULL, "[ ]")) {
        assert_true(all->count < KEYS_MAX);
        char *content = all->keys[all->count].content;
        snprintf(all->keys[all->count++].name, sizeof all->keys[0].name, "%s", name);
        content[0] = '\0';
        for (size_t i = 0; i < COUNT_OF(questions); i++) {
            size_t size = strlen(content);
            run_with_key(h, questions[i], name, content + size, CONTENT_MAX - size);
        }
    }
}

static const char *find_content(const struct contents_of *all, const char *name) {
    for (unsigned i = 0; i < all->count; i++) {
        if (strcmp(all->keys[i].name, name) == 0) {
            return all->keys[i].content;
        }
    }
    return "";
}

/* Has the listener heard of this key: at all, and of the same event twice? */
static bool is_told(const char *heard, const char *name, bool *is_twice) {
    char channel[128];
    char events[1024] = "";
    snprintf(channel, sizeof channel, "__keyspace@0__:%s\r\n", name);
    for (const char *at = heard; (at = strstr(at, channel)) != NULL;) {
        at = strchr(at + strlen(channel), '\n') + 1;
        char event[64];
        snprintf(event, sizeof event, " %.*s ", (int)strcspn(at, "\r"), at);
        *is_twice |= strstr(events, event) != NULL;
        snprintf(events + strlen(events), sizeof events - strlen(events), "%s", event);
    }
    return events[0] != '\0';
}

/* A board with two periods, whose members have tags. */
static struct harness *given_periods(const char *of) {
    static const struct board_kind kind = {.key = "w"};
    struct harness *h = given(&kind);
    zset_run(h, "LB.CREATE w FIELD s 33 SIGNED TIME 31 S TAG team 8 PERIOD HOUR WINDOW 3 %s", of);
    zset_expect(h, "LB.ADD w TAG team red 50 ann 20 bob 7 cid", ":3");
    h->wall_us += HOUR_US;
    zset_run(h, "LB.ADD w TAG team red 5 ann 30 bob 1 dan 2 eva");
    return h;
}

/* Every key that a command changes is told of, none that it does not change, and no event comes twice. */
static void check_events(struct harness *h, const char *line, const char *key) {
    static struct contents_of before, after;
    struct session *listener = harness_connect(h);
    char reply[4096];
    zset_expect(h, "CONFIG SET notify-keyspace-events KEAn", "+OK");
    read_keys(h, &before);
    harness_run(h, listener, "PSUBSCRIBE __keyspace@0__:*");
    (void)harness_output(listener);
    run_with_key(h, line, key, reply, sizeof reply);
    while (job_list_step(&h->server, 0, true)) {}
    char *heard = strdup(harness_output(listener));
    read_keys(h, &after);
    for (unsigned i = 0; i < before.count + after.count; i++) {
        bool is_before = i < before.count;
        const char *name = is_before ? before.keys[i].name : after.keys[i - before.count].name;
        bool is_changed = strcmp(find_content(&before, name), find_content(&after, name)) != 0;
        bool is_twice = false;
        bool is_heard = is_told(heard, name, &is_twice);
        if (is_changed != is_heard || is_twice) {
            fail_msg("%s: %s: %s is %s and %s%s\n%s", line, reply, name,
                     is_changed ? "changed" : "unchanged", is_heard ? "told" : "not told",
                     is_twice ? " twice" : "", heard);
        }
    }
    free(heard);
    harness_disconnect(h, listener);
}

/* These make, alter or empty keys as a whole, and no version of Redis has events for it. */
static bool has_no_events(const char *line) {
    static const char *const words[] = {"FLUSH", "LB.CREATE", "LB.ROLL", "LB.LEAGUE CREATE"};
    for (size_t i = 0; i < COUNT_OF(words); i++) {
        if (strncmp(line, words[i], strlen(words[i])) == 0) {
            return true;
        }
    }
    return false;
}

TEST(each_key_that_a_command_changes_has_its_event) {
    static const char *const more[] = {"LB.TAG w ann team blue",
                                       "LB.TAG w cid team blue",
                                       "LB.TAG w ann team red",
                                       "LB.ADD w TAG team blue 5 ann",
                                       "LB.ADD w TAG team blue 1 cid",
                                       "LB.ADD w 6 ann",
                                       "LB.ADD w 4 new",
                                       "ZADD w 99 ann 98 bob",
                                       "ZREM w ann",
                                       "ZREM w ann bob cid dan eva",
                                       "ZREM w cid",
                                       "ZREM w dan eva",
                                       "LB.FORGET ann",
                                       "LB.FORGET cid",
                                       "LB.BAN bob",
                                       "LB.MOVE ann bob SUM",
                                       "LB.MOVE cid zoe BEST",
                                       "LB.MOVE dan ann BEST",
                                       "LB.ALTER w WINDOW NONE",
                                       "LB.ALTER w WINDOW 2 SUM",
                                       "DEL w",
                                       "DEL w@2026-11-26T06",
                                       "UNLINK w w@2026-11-26T05",
                                       "RENAME source w",
                                       "RENAME w@2026-11-26T05 elsewhere",
                                       "COPY source w REPLACE",
                                       "EXPIRE w -1",
                                       "LB.ADD w HSET run:%@:* 1 f v 6 ann"};
    static const char *const of[] = {"SUM", "BEST"};
    static const struct board_kind plain = {.key = "k", .lines = {"ZADD KEY 10 ann 20 bob"}};
    for (size_t i = 0; i < COUNT_OF(writes) + COUNT_OF(more); i++) {
        const char *line = i < COUNT_OF(writes) ? writes[i].line : more[i - COUNT_OF(writes)];
        for (size_t j = 0; j < 3 && !has_no_events(line); j++) {
            struct harness *h = j < 2 ? given_periods(of[j]) : given(&plain);
            job_board_begin(&h->server, &window_job);
            check_events(h, line, j < 2 ? "w" : "k");
            job_list_end(&h->server);
            harness_destroy(h);
        }
    }
}

/* What leaves a board by time is told of as well, once for a step. */
TEST(what_leaves_with_a_period_is_told) {
    static const char *const of[] = {"SUM", "BEST"};
    for (size_t i = 0; i < COUNT_OF(of); i++) {
        struct harness *h = given_periods(of[i]);
        struct session *listener = harness_connect(h);
        job_board_begin(&h->server, &window_job);
        zset_expect(h, "CONFIG SET notify-keyspace-events KEA", "+OK");
        harness_run(h, listener, "PSUBSCRIBE __keyspace@0__:*");
        h->wall_us += 2 * HOUR_US;
        server_update_time(&h->server);
        (void)registry_roll_due(h->server.registry, h->server.clock.now_ms, 1000);
        (void)harness_output(listener);
        while (job_list_step(&h->server, 0, true)) {}
        bool is_twice = false;
        assert_true(is_told(harness_output(listener), "w", &is_twice));
        assert_false(is_twice);
        zset_expect(h, "ZSCORE w cid", "nil");
        job_list_end(&h->server);
        harness_destroy(h);
    }
}
