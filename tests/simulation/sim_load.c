/* See sim_load.h.
 *
 *     all       unique members, with equal scores: lost, invented, order of arrival
 *     counters  ZINCRBY of a member of the client's own: lost, counted twice
 *     left, right   the same by one MULTI, or one LB.SUBMIT: torn
 *     once, twin    one more by LB.ADD ONCE or LB.SUBMIT ONCE, sent again until it is answered: counted twice,
 *                   not counted; what HSET left with it: torn
 *     claims        a tag that is set to one more if it is what was answered: lost, torn, claimed twice
 *     registers     growing values (GT: a request that is late lowers none): stale reads
 *     long0 ..      all members by one command that is long: torn
 *     queue         put by some, popped by others: lost, popped twice
 *     filling       nothing but size */
#include "tests/simulation/sim_load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/simulation/sim_client.h"
#include "tests/simulation/sim_events.h"
#include "tests/simulation/sim_fiber.h"
#include "tests/simulation/sim_process.h"
#include "tests/simulation/sim_random.h"

enum { CLIENTS_MAX = 16, MEMBERS_MAX = 1 << 15, POWER_CUTS_MAX = 64, FREEZES_MAX = 16 };

static const int64_t PATIENCE_NS = 1500 * SIM_MS;
/* everysec: a second, and a slow sync. */
static const int64_t LATE_NS = 3 * SIM_S;

/* A member that was sent once, on "all" or "queue". */
struct member {
    int64_t sent_at, answered_at;        /* answered_at 0: in doubt */
    bool is_there, is_popped, is_waited; /* is_waited: WAIT has counted all replicas */
};

/* A value that only grows, as far as is known. */
struct bounds {
    int64_t lower, upper;
};

struct client {
    struct sim_client line;
    struct random random;
    struct sim_fiber *fiber;
    int number;
    int64_t answered_at;
    struct bounds counter, pair, submitted, once, reg, claim;
    int64_t reg_sent, long_sent;
    bool is_once_in_doubt, is_reg_in_doubt, is_claim_in_doubt;
    struct member *members, *queued;
    size_t member_count, queued_count;
};

static struct {
    struct sim_load_options options;
    struct client clients[CLIENTS_MAX];
    bool is_ending, is_judged;
    int64_t pace; /* of this schedule: pauses are so many times as long */
    uint64_t answered, in_doubt, pops_in_doubt;
    /* What was answered from `from` on may be gone. */
    struct power_cut {
        int64_t from, at;
    } power_cuts[POWER_CUTS_MAX];
    size_t power_cut_count;
    struct freeze {
        int64_t at, until;
    } freezes[FREEZES_MAX];
    size_t freeze_count;
    bool has_lots;
    int lots[3]; /* of the table of features that meet */
} load;

/* ---- asking ---- */

#define ASK(client, ...)                                                                           \
    sim_load_take_write(client, sim_client_ask(&(client)->line, PATIENCE_NS, __VA_ARGS__))
/* Any server may answer: that is no service yet. */
#define ASK_TO_READ(client, ...)                                                                   \
    sim_load_take(client, sim_client_ask(&(client)->line, PATIENCE_NS, __VA_ARGS__))

/* NULL: in doubt, or an error, which has changed nothing; the client then goes elsewhere. */
static const struct sim_reply *sim_load_take(struct client *client, const struct sim_reply *reply) {
    if (reply == NULL) {
        if (load.options.is_planned && client->line.was_left) {
            sim_fail("unanswered: client %d was left without an answer", client->number);
        }
        load.in_doubt++;
        return NULL;
    }
    if (reply->kind == SIM_ERROR) {
        sim_trace("client %d is refused by %d: %.*s", client->number, client->line.server,
                  (int)reply->size, reply->at);
        sim_client_close(&client->line);
        return reply;
    }
    load.answered++;
    return reply;
}

static const struct sim_reply *sim_load_take_write(struct client *client,
                                                   const struct sim_reply *reply) {
    reply = sim_load_take(client, reply);
    if (reply != NULL && reply->kind != SIM_ERROR &&
        (reply->kind != SIM_ARRAY || reply->count == 0 || reply->items[0].kind != SIM_ERROR)) {
        client->answered_at = sim_now();
    }
    return reply;
}

static bool sim_load_is_answer(const struct sim_reply *reply) {
    return reply != NULL && reply->kind != SIM_ERROR;
}

/* An answer, an error or nothing has come for "one more"; value: what it said. */
static void sim_load_count(struct client *client, struct bounds *bounds, const char *what,
                           const struct sim_reply *reply, int64_t value) {
    if (reply == NULL) {
        bounds->upper++;
        return;
    }
    if (reply->kind == SIM_ERROR) {
        return;
    }
    bounds->upper++;
    if (load.options.promise == SIM_KEPT && value <= bounds->lower) {
        sim_fail("lost: client %d's %s was %lld, and one more is %lld", client->number, what,
                 (long long)bounds->lower, (long long)value);
    }
    if (value > bounds->upper) {
        sim_fail("twice: client %d's %s is %lld, and only %lld were asked for", client->number,
                 what, (long long)value, (long long)bounds->upper);
    }
    bounds->lower = value;
}

/* ---- what a client does ---- */

static int64_t sim_load_number(const struct sim_reply *reply) {
    return reply != NULL ? reply->number : 0;
}

static void sim_load_step_counter(struct client *client) {
    const struct sim_reply *reply = ASK(client, "ZINCRBY counters 1 c%d", client->number);
    sim_load_count(client, &client->counter, "counter", reply, sim_load_number(reply));
}

static void sim_load_step_pair(struct client *client) {
    const struct sim_reply *reply = ASK(client, "MULTI|ZINCRBY left 1 c%d|ZINCRBY right 1 c%d|EXEC",
                                        client->number, client->number);
    int64_t value = 0;
    if (sim_load_is_answer(reply) && reply->kind == SIM_ARRAY && reply->count == 2) {
        const struct sim_reply *left = sim_reply_item(reply, 0), *right = sim_reply_item(reply, 1);
        if (left->kind == SIM_ERROR && right->kind == SIM_ERROR) {
            reply = left;
        } else if (left->number != right->number) {
            sim_fail("torn: client %d's pair is %lld and %lld", client->number,
                     (long long)left->number, (long long)right->number);
        }
        value = left->number;
    }
    sim_load_count(client, &client->pair, "pair", reply, value);
}

/* Its reply is records; the values are read at the end. */
static void sim_load_step_submit(struct client *client) {
    const struct sim_reply *reply = ASK(client, "LB.SUBMIT 2 east west INCR 1 c%d", client->number);
    sim_load_count(client, &client->submitted, "submission", reply, client->submitted.lower + 1);
}

/* The same id until there is an answer. An error says nothing of what was sent before. */
static void sim_load_step_once(struct client *client) {
    bool is_submitted = client->number % 2 == 0;
    struct bounds *once = &client->once;
    int64_t id = once->lower + 1;
    const struct sim_reply *reply =
        ASK(client, "%s ONCE c%d:%lld HSET last:* 1 id %lld INCR 1 c%d",
            is_submitted ? "LB.SUBMIT 2 once twin" : "LB.ADD once", client->number, (long long)id,
            (long long)id, client->number);
    if (reply == NULL) {
        once->upper = id;
        client->is_once_in_doubt = true;
    } else if (reply->kind != SIM_ERROR) {
        int64_t counts =
            is_submitted ? sim_reply_item(sim_reply_item(reply, 0), 2)->number : reply->number;
        if (counts != 1 && !client->is_once_in_doubt) {
            sim_fail("not counted: client %d's result %lld was known before it was sent",
                     client->number, (long long)id);
        }
        once->lower = once->upper = id;
        client->is_once_in_doubt = false;
    }
}

static struct member *sim_load_add_member(struct member **members, size_t *count) {
    if (*members == NULL) {
        *members = calloc(MEMBERS_MAX, sizeof **members);
    }
    if (*count == MEMBERS_MAX) {
        sim_fail("a client has put more than %d members", MEMBERS_MAX);
    }
    struct member *member = &(*members)[(*count)++];
    member->sent_at = sim_now();
    return member;
}

static void sim_load_step_member(struct client *client, const char *board, bool is_queue) {
    struct member *member = is_queue ? sim_load_add_member(&client->queued, &client->queued_count)
                                     : sim_load_add_member(&client->members, &client->member_count);
    size_t number = (is_queue ? client->queued_count : client->member_count) - 1;
    const struct sim_reply *reply = ASK(client, "ZADD %s 0 m%d:%zu", board, client->number, number);
    if (reply != NULL && reply->kind == SIM_ERROR) {
        member->sent_at = INT64_MAX; /* refused: it must not be there */
    } else if (reply != NULL) {
        member->answered_at = sim_now();
        if (load.options.promise == SIM_WAITED) {
            reply = ASK(client, "WAIT %d 200", load.options.server_count - 1);
            member->is_waited =
                sim_load_is_answer(reply) && reply->number >= load.options.server_count - 1;
        }
    }
}

static void sim_load_step_all(struct client *client) {
    sim_load_step_member(client, "all", false);
}

static struct member *sim_load_find(const struct sim_reply *name, bool is_queue) {
    int number;
    size_t index;
    char text[64];
    snprintf(text, sizeof text, "%.*s", (int)name->size, name->at);
    if (sscanf(text, "m%d:%zu", &number, &index) != 2 || number < 0 ||
        number >= load.options.client_count) {
        return NULL;
    }
    struct client *client = &load.clients[number];
    size_t count = is_queue ? client->queued_count : client->member_count;
    return index < count ? &(is_queue ? client->queued : client->members)[index] : NULL;
}

static void sim_load_step_queue(struct client *client) {
    if (client->number % 2 == 0) {
        sim_load_step_member(client, "queue", true);
        return;
    }
    const struct sim_reply *reply =
        sim_client_ask(&client->line, 6 * SIM_S, "BZPOPMIN queue %.1f",
                       (double)sim_random_between(&client->random, 2, 40) / 10);
    if (reply == NULL) {
        load.pops_in_doubt++;
    }
    reply = sim_load_take_write(client, reply);
    if (sim_load_is_answer(reply) && reply->kind == SIM_ARRAY) {
        const struct sim_reply *name = sim_reply_item(reply, 1);
        struct member *member = sim_load_find(name, true);
        if (member == NULL || member->sent_at == INT64_MAX) {
            sim_fail("invented: %.*s was popped and never put", (int)name->size, name->at);
        }
        if (member->is_popped && load.options.promise == SIM_KEPT) {
            sim_fail("twice: %.*s was popped by two clients", (int)name->size, name->at);
        }
        member->is_popped = true;
    }
}

static void sim_load_step_register(struct client *client) {
    int64_t value = client->is_reg_in_doubt ? client->reg_sent : ++client->reg_sent;
    const struct sim_reply *reply =
        ASK(client, "ZADD registers GT %lld r%d", (long long)value, client->number);
    client->is_reg_in_doubt = reply == NULL; /* it is sent again */
    client->reg.upper = value;
    if (sim_load_is_answer(reply) && value > client->reg.lower) {
        client->reg.lower = value;
    }
}

enum { LONG_MEMBERS = 30 };

static void sim_load_step_long(struct client *client) {
    char request[1024];
    int size = snprintf(request, sizeof request, "ZADD long%d", client->number);
    client->long_sent++;
    for (int i = 0; i < LONG_MEMBERS; i++) {
        size += snprintf(request + size, sizeof request - (size_t)size, " %lld member%d",
                         (long long)client->long_sent, i);
    }
    (void)ASK(client, "%s", request);
}

/* The least and the greatest score of a board that is written as a whole. */
static void sim_load_check_long(const struct sim_reply *least, const struct sim_reply *greatest,
                                int server) {
    if (least->kind == SIM_ARRAY && greatest->kind == SIM_ARRAY && least->count == 2 &&
        sim_reply_item(least, 1)->number != sim_reply_item(greatest, 1)->number) {
        sim_fail("torn: server %d shows %lld and %lld of one long change", server,
                 (long long)sim_reply_item(least, 1)->number,
                 (long long)sim_reply_item(greatest, 1)->number);
    }
}

/* LB.TAGS of one member: its count, or 0. The other tag says whether that is odd. */
static int64_t sim_load_read_claim(const struct client *client, const struct sim_reply *reply) {
    const struct sim_reply *tags = sim_reply_item(reply, 0);
    int64_t count = 0;
    bool is_odd = false;
    for (size_t i = 0; tags->kind == SIM_ARRAY && i + 1 < tags->count; i += 2) {
        if (sim_reply_is(sim_reply_item(tags, i), "count")) {
            count = sim_reply_item(tags, i + 1)->number;
        } else {
            is_odd = true;
        }
    }
    if (is_odd != (count % 2 == 1)) {
        sim_fail("torn: client %d's claim is %lld, and %s", client->number, (long long)count,
                 is_odd ? "odd" : "even");
    }
    return count;
}

/* Nobody knows whether a claim in doubt has been made: then it is made again, and one of the two fails. */
static void sim_load_take_claim(struct client *client, bool is_made) {
    struct bounds *claim = &client->claim;
    if (!is_made && load.options.promise != SIM_KEPT) {
        const struct sim_reply *reply = ASK_TO_READ(client, "LB.TAGS claims c%d", client->number);
        if (sim_load_is_answer(reply) && reply->kind == SIM_ARRAY) {
            claim->lower = sim_load_read_claim(client, reply);
        }
    } else if (!is_made && !client->is_claim_in_doubt) {
        sim_fail("lost: client %d's claim was answered as %lld, and is not", client->number,
                 (long long)claim->lower);
    } else {
        claim->lower++;
    }
    client->is_claim_in_doubt = false;
    if (claim->lower > claim->upper) {
        sim_fail("invented: client %d's claim is %lld, and only %lld were asked for",
                 client->number, (long long)claim->lower, (long long)claim->upper);
    }
}

/* The board's tags have other bits at times. */
static void sim_load_step_claim(struct client *client) {
    int64_t value = client->claim.lower;
    char before[24] = "";
    if (value > 0) {
        snprintf(before, sizeof before, "%lld", (long long)value);
    }
    if (client->claim.upper < value + 1) {
        client->claim.upper = value + 1;
    }
    const struct sim_reply *reply =
        ASK(client,
            "MULTI|ZADD claims NX 0 c%d|LB.ALTER claims TAG count %d TAG odd 1|"
            "LB.TAG claims c%d count %lld odd %s IF count %s|EXEC",
            client->number, (int)sim_random_between(&client->random, 12, 14), client->number,
            (long long)(value + 1), value % 2 == 0 ? "1" : "", before);
    if (reply == NULL) {
        client->is_claim_in_doubt = true;
    } else if (reply->kind == SIM_ARRAY && reply->count == 3 &&
               sim_reply_item(reply, 2)->kind == SIM_INTEGER) {
        sim_load_take_claim(client, sim_reply_item(reply, 2)->number == 1);
    }
}

/* Keys that expire while servers come and go: they are compared at rest, and replicas wait for their
 * master's word. */
static void sim_load_step_expiring(struct client *client) {
    (void)ASK(client, "MULTI|ZADD brief%d 1 a 2 b|PEXPIRE brief%d %d|EXEC", client->number,
              client->number, (int)sim_random_between(&client->random, 1, 3000));
}

/* At a server that says it is the master: not older than what was answered or read before it began. */
static void sim_load_step_read(struct client *client) {
    struct client *owner =
        &load.clients[random_below(&client->random, (uint64_t)load.options.client_count)];
    int64_t floor = owner->reg.lower;
    int server = client->line.server;
    const struct sim_reply *reply =
        ASK_TO_READ(client,
                    "MULTI|ROLE|ZSCORE registers r%d|ZSCORE left c%d|ZSCORE right c%d|"
                    "ZRANGE long%d 0 0 WITHSCORES|ZREVRANGE long%d 0 0 WITHSCORES|EXEC",
                    owner->number, owner->number, owner->number, owner->number, owner->number);
    if (!sim_load_is_answer(reply) || reply->kind != SIM_ARRAY || reply->count != 6) {
        return;
    }
    const struct sim_reply *role = sim_reply_item(reply, 0), *value = sim_reply_item(reply, 1);
    const struct sim_reply *left = sim_reply_item(reply, 2), *right = sim_reply_item(reply, 3);
    if (left->kind != SIM_ERROR && right->kind != SIM_ERROR && left->number != right->number) {
        sim_fail("torn: server %d shows %lld and %lld", server, (long long)left->number,
                 (long long)right->number);
    }
    if (role->kind != SIM_ARRAY || !sim_reply_is(sim_reply_item(role, 0), "master") ||
        value->kind == SIM_ERROR) {
        sim_client_close(&client->line);
        return;
    }
    sim_load_check_long(sim_reply_item(reply, 4), sim_reply_item(reply, 5), server);
    int64_t number = value->kind == SIM_NIL ? 0 : value->number;
    if (load.options.promise == SIM_KEPT && number < floor) {
        sim_fail("stale: client %d read %lld at server %d, where r%d was %lld before",
                 client->number, (long long)number, server, owner->number, (long long)floor);
    }
    if (number > owner->reg_sent) {
        sim_fail("invented: r%d is %lld", owner->number, (long long)number);
    }
    if (load.options.promise == SIM_KEPT && number > owner->reg.lower) {
        owner->reg.lower = number;
    }
}

/* ---- features that meet ---- */

/* Half of the schedules draw three of these, and do them on boards that all clients share; what the boards are
 * then, nobody knows, but it is the same everywhere. $n: a number below n. */
enum { LOTS = 3, LOT_LINES = 6 };
static const char *const lots[][LOT_LINES] = {
    {"LB.ALTER x$4 CAP $9", "LB.CREATE x$4 FIELD a 20 TIME 40 MS CAP 4", "LB.ALTER x$4 CAP NONE"},
    {"LB.ALTER x$4 TAG clan 3", "LB.TAG x$4 m$9 clan v$6", "LB.ADD x$4 TAG clan v$9 $50 m$9",
     "LB.ALTER x$4 TAG clan NONE"},
    {"LB.ALTER x$4 STALE 1 MINUTE", "LB.ADD x$4 TOUCH * m$9",
     "LB.CREATE x$4 FIELD a 20 TIME 40 MS STALE 1 MINUTE"},
    {"LB.CREATE x$4 FIELD a 30 TIME 34 MS PERIOD HOUR WINDOW 3 SUM", "LB.ADD x$4 INCR 1 m$9",
     "LB.ALTER x$4 WINDOW 2 BEST", "ZREM x$4 m$9"},
    {"LB.LEAGUE CREATE xl FIELD a 20 TIME 40 MS PERIOD HOUR ROOM 3 TIERS 3 UP 1 DOWN 1",
     "LB.LEAGUE ADD xl INCR $9 m$30", "LB.LEAGUE SET xl $3 m$30", "LB.LEAGUE REMOVE xl m$30"},
    {"LB.ADD x$4 ONCE i$40 INCR 1 m$9", "LB.SUBMIT 2 x$4 x$4 ONCE j$40 INCR 1 m$9"},
    {"LB.ADD x$4 HSET xh:* 1 f $9 $50 m$9", "HDEL xh:m$9 f",
     "LB.ADD x$4 HSET xh:* 2 f $9 g 1 BEST $50 m$9"},
    {"LB.FORGET m$9 MATCH x* DATA xh:*", "LB.FORGET m$9"},
    {"LB.BAN m$9 EX $9 MATCH x*", "LB.BAN m$9 EX 1", "LB.UNBAN m$9"},
    {"LB.BAN m$9 SHADOW EX $9 MATCH x*", "LB.BAN m$9 SHADOW EX 1", "LB.UNBAN m$9", "ZREM x$4 m$9"},
    {"LB.MOVE m$9 m$9 MATCH x* SUM", "LB.MOVE m$9 m$9 MATCH x* BEST"},
    {"COPY x$4 x$4 REPLACE", "RENAME x$4 x$4", "DEL x$4", "RENAMENX x$4 xo$2"},
    {"PEXPIRE x$4 $3000", "PERSIST x$4"},
    {"ZUNIONSTORE x$4 2 x$4 x$4", "ZINTERSTORE x$4 2 x$4 x$4", "ZRANGESTORE x$4 x$4 0 2"},
    {"ZPOPMIN x$4 2", "ZPOPMAX x$4", "ZREMRANGEBYRANK x$4 0 1"},
    {"LB.ROLL x$4 xo$2 EX 9", "LB.SETTLE xo$2", "LB.ALTER x$4 SETTLE YES"},
    {"LB.ALTER x$4 FREEZE", "LB.ALTER x$4 THAW", "LB.ALTER x$4 KEEP BEST",
     "LB.ALTER x$4 KEEP LAST"},
    {"LB.ALTER x$4 DENSE YES", "LB.ALTER x$4 DENSE NO"},
    {"LB.CREATE xr$2 RATING ELO MINGAMES 2 KEEP-MATCHES 6",
     "LB.MATCH xr$2 ONCE g$30 TEAM 1 m$9 TEAM 1 n$9",
     "LB.MATCH xr$2 RANKS 1 1 TEAM 1 n$9 TEAM 2 m$9 o$9",
     "MULTI|LB.UNMATCH xr$2 g$30|ZREM xr$2 m$9|EXEC"},
    {"LB.CREATE xr$2 FIELD a 20 TIME 40 MS HOLD ALL OVER 30 TOP 2 AUTO 1 H",
     "LB.ADD xr$2 INCR $9 m$9 $50 n$9", "ZADD xr$2 $50 m$9", "LB.APPROVE xr$2 m$9",
     "LB.REJECT xr$2 n$9", "MULTI|LB.APPROVE xr$2 m$9|LB.ADD xr$2 60 m$9|EXEC"},
    {"MULTI|ZADD x$4 $50 m$9|RENAME x$4 x$4|LB.ADD x$4 INCR 1 m$9|EXEC",
     "MULTI|DEL x$4|ZADD x$4 $50 m$9 $50 m$9|EXEC"},
};
enum { LOT_COUNT = sizeof lots / sizeof lots[0] };

static void sim_load_step_lot(struct client *client) {
    const char *const *lines = lots[load.lots[random_below(&client->random, LOTS)]];
    const char *line = lines[random_below(&client->random, LOT_LINES)];
    char request[256];
    random_line(&client->random, line != NULL ? line : "ZADD x$4 $50 m$9", request, sizeof request);
    (void)ASK(client, "%s", request);
}

static void sim_load_draw_lots(uint64_t seed) {
    struct random random = sim_random_of(seed, 997);
    load.has_lots = sim_random_chance(&random, 50);
    for (int i = 0; i < LOTS; i++) {
        load.lots[i] = (int)random_below(&random, LOT_COUNT);
    }
    if (load.has_lots) {
        sim_trace("features that meet: %d, %d and %d", load.lots[0], load.lots[1], load.lots[2]);
    }
}

static void sim_load_step(struct client *client) {
    if (load.has_lots && sim_random_chance(&client->random, 50)) {
        sim_load_step_lot(client);
        return;
    }
    static void (*const steps[])(struct client *) = {
        sim_load_step_counter,  sim_load_step_pair,     sim_load_step_submit, sim_load_step_all,
        sim_load_step_register, sim_load_step_read,     sim_load_step_queue,  sim_load_step_all,
        sim_load_step_read,     sim_load_step_expiring, sim_load_step_long,   sim_load_step_claim,
        sim_load_step_once,
    };
    size_t count = sizeof steps / sizeof steps[0];
    steps[random_below(&client->random, count)](client);
}

static void sim_load_run(void *context) {
    struct client *client = context;
    while (!load.is_ending) {
        if (client->line.server < 0) {
            int server = (int)random_below(&client->random, (uint64_t)load.options.server_count);
            if (!sim_client_connect(&client->line, server, 500 * SIM_MS)) {
                sim_fiber_sleep(sim_now() + sim_random_between(&client->random, 1, 50) * SIM_MS);
                continue;
            }
        }
        sim_load_step(client);
        int64_t pause_us = sim_random_chance(&client->random, 5)
                               ? sim_random_between(&client->random, 1000, 100000)
                               : sim_random_between(&client->random, 500, 12000);
        sim_fiber_sleep(sim_now() + pause_us * load.pace * SIM_US);
        if (sim_random_chance(&client->random, 1)) {
            sim_client_close(&client->line);
        }
    }
    sim_client_close(&client->line);
}

/* Of a request, at the most: in the journal of the small build, whose groups are short, so that most of it is heads. */
enum { FILL_BYTES = 4000 };

/* Names that do not compress, at the server that is master in the beginning. No more than crosses the thin link in half
 * a minute, since who is chosen behind it has to fetch them before it answers. */
static void sim_load_fill(void *context) {
    struct sim_client line = {.machine = load.options.machine, .server = -1};
    struct random random = sim_random_of(load.options.seed, 998);
    int requests = sim_random_chance(&random, 50) ? (int)sim_random_between(&random, 100, 400) : 0;
    int64_t requests_max = load.options.thin_rate * 30 / FILL_BYTES;
    (void)context;
    requests = requests < requests_max ? requests : (int)requests_max;
    for (int r = 0; r < requests && (line.server == 0 || sim_client_connect(&line, 0, SIM_S));
         r++) {
        char request[2048] = "ZADD filling";
        for (size_t size = strlen(request); size + 32 < sizeof request;
             size += strlen(request + size)) {
            snprintf(request + size, 32, " 0 %016llx", (unsigned long long)random_next(&random));
        }
        (void)sim_client_ask(&line, PATIENCE_NS, "%s", request);
    }
    sim_client_close(&line);
}

void sim_load_start(const struct sim_load_options *options) {
    struct random random = sim_random_of(options->seed, 999);
    load.options = *options;
    sim_load_draw_lots(options->seed);
    load.pace = INT64_C(1) << random_below(&random, 7);
    if (options->thin_rate > 0) {
        (void)sim_fiber_create(sim_load_fill, NULL, NULL, NULL, sim_now());
    }
    for (int i = 0; i < options->client_count; i++) {
        struct client *client = &load.clients[i];
        client->number = i;
        client->line = (struct sim_client){.machine = options->machine, .server = -1};
        client->random = sim_random_of(options->seed, 1000 + (uint64_t)i);
        client->fiber = sim_fiber_create(sim_load_run, client, NULL, NULL, sim_now());
    }
}

bool sim_load_is_answered_since(int64_t at) {
    for (int i = 0; i < load.options.client_count; i++) {
        if (load.clients[i].answered_at < at) {
            return false;
        }
    }
    return true;
}

void sim_load_end(void) {
    load.is_ending = true;
}

bool sim_load_is_over(void) {
    for (int i = 0; i < load.options.client_count; i++) {
        if (!sim_fiber_is_over(load.clients[i].fiber)) {
            return false;
        }
    }
    return true;
}

uint64_t sim_load_answered(void) {
    return load.answered;
}

uint64_t sim_load_in_doubt(void) {
    return load.in_doubt;
}

void sim_load_note_freeze(int64_t lasts) {
    load.freezes[load.freeze_count++ % FREEZES_MAX] =
        (struct freeze){.at = sim_now(), .until = sim_now() + lasts};
}

/* A server that stands still syncs nothing: that time does not count. */
void sim_load_note_power_cut(void) {
    int64_t now = sim_now(), from = now - LATE_NS;
    for (size_t i = load.freeze_count; i-- > 0 && load.freeze_count - i <= FREEZES_MAX;) {
        const struct freeze *freeze = &load.freezes[i % FREEZES_MAX];
        int64_t until = freeze->until < now ? freeze->until : now;
        from -= until >= from ? until - freeze->at : 0;
    }
    load.power_cuts[load.power_cut_count++ % POWER_CUTS_MAX] =
        (struct power_cut){.from = from, .at = now};
}

/* ---- the end ---- */

static bool sim_load_must_be_there(const struct member *member) {
    if (member->answered_at == 0 || load.options.promise == SIM_BOUNDED) {
        return false;
    }
    if (load.options.promise == SIM_WAITED) {
        return member->is_waited;
    }
    for (size_t i = 0; load.options.promise == SIM_KEPT_LATE && i < load.power_cut_count; i++) {
        const struct power_cut *cut = &load.power_cuts[i % POWER_CUTS_MAX];
        if (member->answered_at <= cut->at && member->answered_at >= cut->from) {
            return false;
        }
    }
    return true;
}

static const struct sim_reply *sim_load_fetch(struct sim_client *line, int server,
                                              const char *request) {
    for (int attempt = 0; attempt < 100; attempt++) {
        if (line->server == server || sim_client_connect(line, server, SIM_S)) {
            const struct sim_reply *reply = sim_client_ask(line, 5 * SIM_S, "%s", request);
            if (reply != NULL && reply->kind == SIM_ARRAY) {
                return reply;
            }
        }
        sim_fiber_sleep(sim_now() + 200 * SIM_MS);
    }
    sim_fail("server %d does not answer %s at the end", server, request);
}

/* "all" in order of arrival: nothing that was answered before another was sent is behind it. */
static void sim_load_judge_order(const struct sim_reply *members) {
    int64_t earliest_answer = INT64_MAX;
    const struct sim_reply *earliest = NULL;
    for (size_t i = members->count; i-- > 0;) {
        const struct sim_reply *name = sim_reply_item(members, i);
        struct member *member = sim_load_find(name, false);
        if (member == NULL || (member->sent_at == INT64_MAX && load.options.promise == SIM_KEPT)) {
            sim_fail("invented: %.*s is there and was never put", (int)name->size, name->at);
        }
        member->is_there = true;
        if (member->sent_at != INT64_MAX && member->sent_at > earliest_answer &&
            load.options.promise < SIM_BOUNDED) {
            sim_fail("order: %.*s, sent at %.6f, is before %.*s, answered at %.6f", (int)name->size,
                     name->at, (double)member->sent_at / 1e9, (int)earliest->size, earliest->at,
                     (double)earliest_answer / 1e9);
        }
        if (member->answered_at != 0 && member->answered_at < earliest_answer) {
            earliest_answer = member->answered_at;
            earliest = name;
        }
    }
}

static void sim_load_judge_members(bool is_queue, uint64_t allowed) {
    uint64_t lost = 0;
    char first[64] = "";
    for (int i = 0; i < load.options.client_count; i++) {
        struct client *client = &load.clients[i];
        struct member *members = is_queue ? client->queued : client->members;
        size_t count = is_queue ? client->queued_count : client->member_count;
        for (size_t m = 0; m < count; m++) {
            if (is_queue && members[m].is_popped && members[m].is_there &&
                load.options.promise == SIM_KEPT) {
                sim_fail("twice: m%d:%zu was popped and is there", i, m);
            }
            if (sim_load_must_be_there(&members[m]) && !members[m].is_there &&
                !members[m].is_popped) {
                if (lost++ == 0) {
                    snprintf(first, sizeof first, "m%d:%zu answered at %.6f", i, m,
                             (double)members[m].answered_at / 1e9);
                }
            }
        }
    }
    if (lost > allowed) {
        sim_fail("lost: %llu members of %s, the first %s", (unsigned long long)lost,
                 is_queue ? "the queue" : "the board", first);
    }
}

static void sim_load_judge_value(const struct client *client, const char *what,
                                 const struct bounds *bounds, int64_t value) {
    if (load.options.promise == SIM_KEPT && value < bounds->lower) {
        sim_fail("lost: client %d's %s is %lld at the end, and %lld was answered", client->number,
                 what, (long long)value, (long long)bounds->lower);
    }
    if (value > bounds->upper) {
        sim_fail("twice: client %d's %s is %lld at the end, and %lld were asked for",
                 client->number, what, (long long)value, (long long)bounds->upper);
    }
}

static void sim_load_judge_values(struct sim_client *line, int master) {
    for (int i = 0; i < load.options.client_count; i++) {
        const struct client *client = &load.clients[i];
        char request[256];
        int64_t values[6];
        snprintf(request, sizeof request,
                 "MULTI|ZSCORE counters c%d|ZSCORE left c%d|ZSCORE right c%d|ZSCORE east c%d|"
                 "ZSCORE west c%d|ZSCORE registers r%d|ZRANGE long%d 0 0 WITHSCORES|"
                 "ZREVRANGE long%d 0 0 WITHSCORES|EXEC",
                 i, i, i, i, i, i, i, i);
        const struct sim_reply *reply = sim_load_fetch(line, master, request);
        for (size_t v = 0; v < 6; v++) {
            const struct sim_reply *item = sim_reply_item(reply, v);
            values[v] = item->kind == SIM_BULK ? item->number : 0;
        }
        sim_load_check_long(sim_reply_item(reply, 6), sim_reply_item(reply, 7), master);
        if (values[1] != values[2] || values[3] != values[4]) {
            sim_fail("torn: client %d has %lld and %lld, %lld and %lld at the end", i,
                     (long long)values[1], (long long)values[2], (long long)values[3],
                     (long long)values[4]);
        }
        sim_load_judge_value(client, "counter", &client->counter, values[0]);
        sim_load_judge_value(client, "pair", &client->pair, values[1]);
        sim_load_judge_value(client, "submission", &client->submitted, values[3]);
        sim_load_judge_value(client, "register", &client->reg, values[5]);
    }
}

/* Each result has its own number: the last that counts is at least their count, and where none is lost the same. */
static void sim_load_judge_once(struct sim_client *line, int master) {
    for (int i = 0; i < load.options.client_count; i++) {
        const struct client *client = &load.clients[i];
        char request[128];
        int64_t values[3];
        snprintf(request, sizeof request,
                 "MULTI|ZSCORE once c%d|ZSCORE twin c%d|HGET last:c%d id|EXEC", i, i, i);
        const struct sim_reply *reply = sim_load_fetch(line, master, request);
        for (size_t v = 0; v < 3; v++) {
            const struct sim_reply *item = sim_reply_item(reply, v);
            values[v] = item->kind == SIM_BULK ? item->number : 0;
        }
        sim_load_judge_value(client, "result", &client->once, values[0]);
        bool is_last =
            load.options.promise == SIM_KEPT ? values[2] == values[0] : values[2] >= values[0];
        if (!is_last || values[1] != (i % 2 == 0 ? values[0] : 0)) {
            sim_fail("torn: client %d has %lld and %lld results, the last of them %lld", i,
                     (long long)values[0], (long long)values[1], (long long)values[2]);
        }
    }
}

/* The group of those whose claims are odd is as large as they are. */
static void sim_load_judge_claims(struct sim_client *line, int master) {
    int64_t odd = 0;
    for (int i = 0; i < load.options.client_count; i++) {
        const struct client *client = &load.clients[i];
        char request[64];
        snprintf(request, sizeof request, "LB.TAGS claims c%d", i);
        int64_t count = sim_load_read_claim(client, sim_load_fetch(line, master, request));
        sim_load_judge_value(client, "claim", &client->claim, count);
        odd += count % 2;
    }
    const struct sim_reply *groups =
        sim_load_fetch(line, master,
                       "MULTI|LB.COUNT claims WHERE odd 1|LB.COUNT claims WHERENOT odd 1|"
                       "LB.COUNT claims|EXEC");
    int64_t counts[3];
    for (size_t i = 0; i < 3; i++) {
        counts[i] = sim_reply_item(groups, i)->number;
    }
    if (counts[0] != odd || counts[0] + counts[1] != counts[2]) {
        sim_fail("group: %lld of %lld claims are odd and %lld are not, where %lld are",
                 (long long)counts[0], (long long)counts[2], (long long)counts[1], (long long)odd);
    }
}

static uint64_t sim_load_hash(const struct sim_reply *reply) {
    uint64_t hash = 14695981039346656037U;
    for (size_t i = 0; i < reply->whole; i++) {
        for (size_t b = 0; reply[i].kind != SIM_ARRAY && b < reply[i].size; b++) {
            hash = (hash ^ (unsigned char)reply[i].at[b]) * 1099511628211U;
        }
        hash = (hash ^ 0xff) * 1099511628211U;
    }
    return hash;
}

/* At rest all servers show the same, ties included. */
static void sim_load_judge_equality(struct sim_client *line, int master, const char *board,
                                    const char *request) {
    for (int server = 0; server < load.options.server_count; server++) {
        for (int attempt = 0;; attempt++) {
            /* Again each time: what expires in the meantime is not there any more. */
            uint64_t wanted = sim_load_hash(sim_load_fetch(line, master, request));
            if (sim_load_hash(sim_load_fetch(line, server, request)) == wanted) {
                break;
            }
            if (attempt == 150) {
                sim_fail("unequal: servers %d and %d differ in %s at rest", master, server, board);
            }
            sim_fiber_sleep(sim_now() + 200 * SIM_MS);
        }
    }
}

/* The same boards, and on them the same members with the same keys, tags and hashes. */
static void sim_load_judge_lots(struct sim_client *line, int master) {
    static const char *const boards[] = {"x0", "x1", "x2", "x3", "xl", "xo0", "xo1", "xr0", "xr1"};
    char request[128];
    /* By its clock, which may be ahead, a replica hides what expires before the master takes it away. */
    (void)sim_load_fetch(
        line, master,
        "MULTI|PERSIST x0|PERSIST x1|PERSIST x2|PERSIST x3|PERSIST xo0|PERSIST xo1|EXEC");
    sim_load_judge_equality(line, master, "the number of keys", "MULTI|DBSIZE|EXEC");
    for (size_t i = 0; i < sizeof boards / sizeof boards[0]; i++) {
        snprintf(request, sizeof request, "MULTI|TYPE %s|LB.RANGE %s 0 -1 WITHKEY TAGS|EXEC",
                 boards[i], boards[i]);
        sim_load_judge_equality(line, master, boards[i], request);
    }
    for (int i = 0; i < 9; i++) {
        snprintf(request, sizeof request, "HGETALL xh:m%d", i);
        sim_load_judge_equality(line, master, "a hash", request);
    }
}

static void sim_load_judge_equalities(struct sim_client *line, int master) {
    static const char *const boards[] = {"all",       "counters", "left",  "right", "east", "west",
                                         "registers", "queue",    "long0", "long1", "once", "twin"};
    for (size_t b = 0; b < sizeof boards / sizeof boards[0]; b++) {
        char request[64];
        snprintf(request, sizeof request, "ZREVRANGE %s 0 -1 WITHSCORES", boards[b]);
        sim_load_judge_equality(line, master, boards[b], request);
    }
    sim_load_judge_equality(line, master, "claims", "LB.RANGE claims 0 -1 TAGS");
    if (load.has_lots) {
        sim_load_judge_lots(line, master);
    }
}

static void sim_load_judge_run(void *context) {
    int master = (int)(intptr_t)context;
    struct sim_client line = {.machine = load.options.machine, .server = -1};
    sim_load_judge_order(sim_load_fetch(&line, master, "ZREVRANGE all 0 -1"));
    sim_load_judge_members(false, 0);
    const struct sim_reply *queue = sim_load_fetch(&line, master, "ZREVRANGE queue 0 -1");
    for (size_t i = 0; i < queue->count; i++) {
        struct member *member = sim_load_find(sim_reply_item(queue, i), true);
        if (member != NULL) {
            member->is_there = true;
        }
    }
    sim_load_judge_members(true, load.pops_in_doubt);
    sim_load_judge_values(&line, master);
    sim_load_judge_once(&line, master);
    sim_load_judge_claims(&line, master);
    sim_load_judge_equalities(&line, master);
    load.is_judged = true;
}

void sim_load_judge(int master) {
    (void)sim_fiber_create(sim_load_judge_run, (void *)(intptr_t)master, NULL, NULL, sim_now());
}

bool sim_load_is_judged(void) {
    return load.is_judged;
}
