/* See sim_driver.h. */
#include "tests/simulation/sim_driver.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "tests/simulation/sim_client.h"
#include "tests/simulation/sim_events.h"
#include "tests/simulation/sim_fiber.h"
#include "tests/simulation/sim_load.h"
#include "tests/simulation/sim_model.h"
#include "tests/simulation/sim_process.h"

static const int64_t DOWN_AFTER_NS = 1500 * SIM_MS;
static const int64_t ASK_NS = 400 * SIM_MS;

enum fault_kind {
    FAULT_KILL,
    FAULT_RESTART,
    FAULT_POWER,
    FAULT_STOP,
    FAULT_SLEEP,
    FAULT_CUT,
    FAULT_CUT_ONE_WAY,
    FAULT_ISOLATE,
    FAULT_SLOW_LINK,
    FAULT_RESET,
    FAULT_CLOCK,
    FAULT_DISK_FULL,
    FAULT_DISK_SLOW,
    FAULT_DISK_ERROR,
    FAULT_SAVE,
    FAULT_REWRITE,
    FAULT_FAILOVER,
    FAULT_TWO_MASTERS,
    FAULT_POINT_BACK,
    FAULT_BRIEF_MASTER,
    FAULT_WRONG_CHOICE,
    FAULT_KINDS
};
static const char *const fault_names[FAULT_KINDS] = {
    "kill",        "restart",      "power",       "stop",    "sleep",    "cut",
    "cut-one-way", "isolate",      "slow-link",   "reset",   "clock",    "disk-full",
    "disk-slow",   "disk-error",   "save",        "rewrite", "failover", "two-masters",
    "point-back",  "brief-master", "wrong-choice"};

struct fault {
    int64_t at, lasts;
    enum fault_kind kind;
    int one, other;
    int64_t size;
    char text[96];
};

/* What Sentinel knows of a server. */
struct seen {
    struct sim_client line;
    int64_t answered_at; /* PING, as a server that may be master */
    int64_t informed_at; /* INFO */
    int64_t offset;
    bool is_master, has_lost_durability;
    int master; /* it follows; -1: unknown */
};

static struct {
    struct sim_driver_options options;
    struct fault faults[SIM_FAULTS_MAX];
    int fault_count;
    struct seen seen[SIM_SERVERS_MAX];
    int master;
    struct random random;
    int64_t busy_until; /* a mistake is being made: Sentinel waits */
    bool has_chain;     /* one replica follows another one */
    int far;            /* a machine that all links to are thin, for the whole schedule; -1: none */
    int64_t far_rate;   /* of those links, in bytes a second */
    int64_t held_until
        [SIM_SERVERS_MAX]; /* an operator has stopped it; it comes back without its promise */
} driver;

/* ---- commands of an operator or a Sentinel, each on a connection of its own ---- */

struct order {
    int server;
    int64_t until; /* it is given again and again */
    char text[96];
};
static struct order orders[4096];
static int order_count;

static void sim_driver_run_order(void *context) {
    const struct order *order = context;
    struct sim_client line = {.machine = driver.options.machine, .server = -1};
    bool is_answered = sim_client_connect(&line, order->server, ASK_NS);
    while (is_answered) {
        const struct sim_reply *reply = sim_client_ask(&line, 3 * SIM_S, "%s", order->text);
        sim_trace("server %d is told: %s: %.*s", order->server, order->text,
                  reply != NULL ? (int)reply->size : 0, reply != NULL ? reply->at : "");
        is_answered = reply != NULL && sim_now() < order->until;
    }
    sim_client_close(&line);
}

static struct order *sim_driver_tell(int64_t at, int server, const char *text) {
    struct order *order = &orders[order_count++ % 4096];
    order->server = server;
    order->until = at;
    snprintf(order->text, sizeof order->text, "%s", text);
    (void)sim_fiber_create(sim_driver_run_order, order, NULL, NULL, at);
    return order;
}

static void sim_driver_promote(int64_t at, int server) {
    sim_driver_tell(at, server, "MULTI|SLAVEOF NO ONE|CLIENT KILL TYPE normal|EXEC");
}

static void sim_driver_point(int64_t at, int server, int master) {
    char text[96];
    snprintf(text, sizeof text, "SLAVEOF 10.0.0.%d %d", master + 1, SIM_PORT);
    sim_driver_tell(at, server, text);
}

/* ---- Sentinel ---- */

static void sim_driver_read_info(struct seen *seen, const struct sim_reply *reply) {
    char text[4096];
    snprintf(text, sizeof text, "%.*s", (int)reply->size, reply->at);
    const char *offset = strstr(text, "slave_repl_offset:");
    const char *host = strstr(text, "master_host:10.0.0.");
    seen->is_master = strstr(text, "role:master") != NULL;
    seen->has_lost_durability = strstr(text, "sync_lost_durability:1") != NULL;
    seen->master = -1;
    seen->offset = 0;
    if (offset != NULL) {
        (void)sscanf(offset, "slave_repl_offset:%lld", (long long *)&seen->offset);
    }
    if (host != NULL && sscanf(host, "master_host:10.0.0.%d", &seen->master) == 1) {
        seen->master--;
    }
}

static void sim_driver_watch(void *context) {
    int server = (int)(intptr_t)context;
    struct seen *seen = &driver.seen[server];
    for (;;) {
        if (seen->line.server < 0) {
            (void)sim_client_connect(&seen->line, server, ASK_NS);
        }
        /* As Sentinel: an error for PING, but LOADING, is silence. */
        const struct sim_reply *reply = sim_client_ask(&seen->line, ASK_NS, "PING");
        if (reply != NULL && (reply->kind == SIM_STATUS || memcmp(reply->at, "LOADING", 7) == 0)) {
            seen->answered_at = sim_now();
        }
        reply = sim_client_ask(&seen->line, ASK_NS, "INFO replication");
        if (reply != NULL && reply->kind == SIM_BULK) {
            seen->informed_at = sim_now();
            sim_driver_read_info(seen, reply);
        }
        sim_fiber_sleep(sim_now() + 200 * SIM_MS);
    }
}

static bool sim_driver_is_up(int server) {
    return sim_now() - driver.seen[server].answered_at < DOWN_AFTER_NS;
}

static int sim_driver_choose(void) {
    int best = -1;
    for (int i = 0; i < driver.options.server_count; i++) {
        const struct seen *seen = &driver.seen[i];
        if (i != driver.master && sim_driver_is_up(i) && !seen->has_lost_durability &&
            (best < 0 || seen->offset > driver.seen[best].offset)) {
            best = i;
        }
    }
    return best;
}

/* Whom it is to follow. */
static int sim_driver_parent(int server) {
    int last = driver.options.server_count - 1;
    last -= last == driver.master;
    if (!driver.has_chain || server != last) {
        return driver.master;
    }
    return driver.master == 0 ? 1 : 0;
}

/* Whoever follows another one is pointed there. */
static void sim_driver_gather(void) {
    for (int i = 0; i < driver.options.server_count; i++) {
        const struct seen *seen = &driver.seen[i];
        if (i != driver.master && sim_now() - seen->informed_at < DOWN_AFTER_NS &&
            (seen->is_master || seen->master != sim_driver_parent(i))) {
            sim_driver_point(sim_now(), i, sim_driver_parent(i));
            driver.busy_until = sim_now() + 500 * SIM_MS;
        }
    }
}

static void sim_driver_decide(void) {
    if (!sim_driver_is_up(driver.master)) {
        int best = sim_driver_choose();
        if (best >= 0) {
            sim_trace("Sentinel promotes %d in place of %d", best, driver.master);
            driver.master = best;
            driver.busy_until = sim_now() + SIM_S;
            sim_driver_promote(sim_now(), best);
        }
        return;
    }
    if (!driver.seen[driver.master].is_master) {
        sim_driver_promote(sim_now(), driver.master);
        driver.busy_until = sim_now() + SIM_S;
        return;
    }
    sim_driver_gather();
}

/* An operator who has given FAILOVER: whoever has become master is it, and nobody is pointed anywhere
 * before that is so. */
static void sim_driver_go_along(void) {
    int masters = 0, last = 0;
    for (int i = 0; i < driver.options.server_count; i++) {
        if (driver.seen[i].is_master && sim_driver_is_up(i)) {
            masters++;
            last = i;
        }
    }
    if (masters == 1 && last == driver.master) {
        sim_driver_gather();
    } else if (masters == 1) {
        driver.master = last;
        driver.busy_until = sim_now() + 500 * SIM_MS;
    }
}

static void sim_driver_run_sentinel(void *context) {
    (void)context;
    for (;;) {
        sim_fiber_sleep(sim_now() + 100 * SIM_MS);
        if (sim_now() < driver.busy_until) {
            continue;
        }
        if (driver.options.kinds.has_sentinel) {
            sim_driver_decide();
        } else if (driver.options.kinds.is_planned) {
            sim_driver_go_along();
        }
    }
}

/* ---- the supervisor ---- */

static void sim_driver_supervise(void *context) {
    int64_t down_since[SIM_SERVERS_MAX] = {0};
    (void)context;
    for (;;) {
        sim_fiber_sleep(sim_now() + 100 * SIM_MS);
        for (int i = 0; i < driver.options.server_count; i++) {
            struct sim_machine *machine = sim_machine_get(i);
            if (machine->process != NULL || !machine->has_power ||
                sim_now() < driver.held_until[i]) {
                down_since[i] = sim_now();
            } else if (sim_now() - down_since[i] >= 300 * SIM_MS) {
                if (driver.held_until[i] != 0) {
                    (void)sim_disk_unlink(&machine->disk, NULL,
                                          "/data/appendonlydir/leaderboard.promise");
                    sim_model_release(i);
                    driver.held_until[i] = 0;
                }
                sim_machine_start(machine);
            }
        }
    }
}

/* ---- faults ---- */

/* From all but the clients. */
static void sim_driver_isolate(int server, bool is_cut) {
    for (int i = 0; i <= driver.options.machine; i++) {
        sim_network_cut(server, i, is_cut);
        sim_network_cut(i, server, is_cut);
    }
}

static void sim_driver_cut(const struct fault *fault, bool is_cut) {
    if (fault->kind == FAULT_ISOLATE) {
        sim_driver_isolate(fault->one, is_cut);
        return;
    }
    sim_network_cut(fault->one, fault->other, is_cut);
    if (fault->kind == FAULT_CUT) {
        sim_network_cut(fault->other, fault->one, is_cut);
    }
}

static void sim_driver_end_fault(void *context, uint64_t number) {
    const struct fault *fault = context;
    (void)number;
    sim_trace("fault ends: %s", fault->text);
    switch ((int)fault->kind) {
    case FAULT_POWER:
        sim_machine_power_on(sim_machine_get(fault->one));
        break;
    case FAULT_CUT:
    case FAULT_CUT_ONE_WAY:
    case FAULT_ISOLATE:
        sim_driver_cut(fault, false);
        break;
    case FAULT_SLOW_LINK:
        sim_network_set_delay(fault->one, fault->other, 200 * SIM_US);
        sim_network_set_delay(fault->other, fault->one, 200 * SIM_US);
        break;
    default:
        break;
    }
}

/* As a Sentinel that errs, or two that disagree. */
static void sim_driver_err(const struct fault *fault) {
    int64_t now = sim_now();
    int before = driver.master, third = 3 - fault->one - before;
    driver.busy_until = now + fault->lasts;
    if (fault->kind == FAULT_TWO_MASTERS || fault->one == before ||
        driver.options.server_count != 3) {
        sim_driver_promote(now, fault->one);
        sim_driver_promote(now + fault->size * SIM_MS, fault->other);
        return;
    }
    sim_driver_point(now, third, fault->one);
    sim_driver_promote(now, fault->one);
    sim_driver_point(now + fault->size * SIM_MS, fault->one, before);
    sim_driver_point(now + fault->size * 2 * SIM_MS, before, fault->one);
    sim_driver_promote(now + fault->size * 2 * SIM_MS, fault->one);
    driver.master = fault->one;
}

static void sim_driver_crash(void *context, uint64_t number) {
    struct sim_machine *machine = context;
    (void)number;
    sim_load_note_power_cut();
    sim_machine_cut_power(machine);
    sim_machine_power_on(machine);
}

/* docs/scale/no-lost-write.md, where nobody opens: all are stopped before one is started again. One machine has
 * lost its power. */
static void sim_driver_stop_all(void *context) {
    struct random random = sim_random_of(driver.options.seed, 9);
    int64_t stopped_at = sim_now() + SIM_S;
    (void)context;
    int crashed = (int)random_below(&random, (uint64_t)driver.options.server_count);
    for (int i = 0; i < driver.options.server_count; i++) {
        if (i == crashed) {
            sim_driver_crash(sim_machine_get(i), 0);
        } else {
            sim_machine_kill(sim_machine_get(i));
        }
        driver.held_until[i] = stopped_at + sim_random_between(&random, 0, 3000) * SIM_MS;
        sim_fiber_sleep(sim_now() + sim_random_between(&random, 0, 300) * SIM_MS);
    }
}

/* A replica is master for a moment. */
static void sim_driver_interrupt(int server, int64_t until) {
    if (server != driver.master) {
        sim_driver_promote(sim_now(), server);
        sim_driver_point(until, server, driver.master);
    }
}

static void sim_driver_begin_fault(void *context, uint64_t number) {
    const struct fault *fault = context;
    struct sim_machine *machine = sim_machine_get(fault->one);
    (void)number;
    sim_trace("fault: %s", fault->text);
    switch (fault->kind) {
    case FAULT_KILL:
        sim_machine_kill(machine);
        break;
    case FAULT_RESTART:
        sim_machine_signal(machine, SIGTERM);
        break;
    case FAULT_POWER:
        sim_load_note_power_cut();
        sim_machine_cut_power(machine);
        break;
    case FAULT_STOP:
    case FAULT_SLEEP:
        sim_load_note_freeze(fault->lasts);
        sim_machine_freeze(machine, fault->lasts, fault->kind == FAULT_SLEEP);
        break;
    case FAULT_CUT:
    case FAULT_CUT_ONE_WAY:
    case FAULT_ISOLATE:
        sim_driver_cut(fault, true);
        break;
    case FAULT_SLOW_LINK:
        sim_network_set_delay(fault->one, fault->other, fault->size * SIM_MS);
        sim_network_set_delay(fault->other, fault->one, fault->size * SIM_MS);
        break;
    case FAULT_RESET:
        sim_network_reset_one(fault->one, -1);
        break;
    case FAULT_CLOCK:
        machine->wall_offset_ns += fault->size * SIM_S;
        break;
    case FAULT_DISK_FULL:
        machine->disk.full_until = sim_now() + fault->lasts;
        break;
    case FAULT_DISK_SLOW:
        machine->disk.slow_until = sim_now() + fault->lasts;
        machine->disk.slow_ns = fault->size * SIM_MS;
        break;
    case FAULT_DISK_ERROR: /* of writes, or of syncs */
        *(fault->size % 2 ? &machine->disk.sync_fails_until : &machine->disk.write_fails_until) =
            sim_now() + fault->lasts / 4;
        if (fault->size % 3 == 0) { /* and takes its machine with it */
            sim_at(sim_now() + fault->lasts / 8, sim_driver_crash, machine, 0);
        }
        break;
    case FAULT_SAVE:
        sim_driver_tell(sim_now(), fault->one, "SAVE")->until = sim_now() + fault->lasts / 4;
        break;
    case FAULT_REWRITE:
        sim_driver_tell(sim_now(), fault->one, "BGREWRITEAOF");
        break;
    case FAULT_FAILOVER:
        driver.busy_until = sim_now() + 500 * SIM_MS;
        sim_driver_tell(sim_now(), driver.master, "FAILOVER TIMEOUT 300");
        break;
    case FAULT_TWO_MASTERS:
    case FAULT_POINT_BACK:
        sim_driver_err(fault);
        break;
    case FAULT_BRIEF_MASTER:
        sim_driver_interrupt(driver.has_chain ? driver.master == 0 : fault->one,
                             sim_now() + fault->size * SIM_MS / 8);
        break;
    case FAULT_WRONG_CHOICE: /* as if it had the most */
        driver.master = driver.far >= 0 ? driver.far : fault->one;
        driver.busy_until = sim_now() + SIM_S;
        sim_driver_promote(sim_now(), driver.master);
        break;
    case FAULT_KINDS:
        break;
    }
    if (fault->kind == FAULT_POWER || fault->kind == FAULT_CUT ||
        fault->kind == FAULT_CUT_ONE_WAY || fault->kind == FAULT_ISOLATE ||
        fault->kind == FAULT_SLOW_LINK) {
        sim_at(sim_now() + fault->lasts, sim_driver_end_fault, context, 0);
    }
}

static bool sim_driver_may_have(enum fault_kind kind, int *power_cuts) {
    const struct sim_driver_options *options = &driver.options;
    if (options->kinds.is_planned) {
        return kind == FAULT_SLOW_LINK || kind == FAULT_CLOCK || kind == FAULT_DISK_SLOW ||
               (kind >= FAULT_SAVE && kind <= FAULT_FAILOVER);
    }
    if (kind == FAULT_POWER) {
        return (*power_cuts)++ < options->kinds.power_cuts;
    }
    if (kind == FAULT_DISK_FULL || kind == FAULT_DISK_ERROR) {
        return options->kinds.has_disk_faults;
    }
    return options->kinds.has_sentinel || kind < FAULT_FAILOVER;
}

static void sim_driver_draw(void) {
    struct random random = sim_random_of(driver.options.seed, 7);
    int servers = driver.options.server_count;
    int64_t from = 3 * SIM_S, to = driver.options.until - 5 * SIM_S, last = to;
    int power_cuts = 0;
    int wanted = (int)sim_random_between(&random, 2, 12);
    for (int i = 0; i < wanted; i++) {
        struct fault *fault = &driver.faults[driver.fault_count];
        fault->at = sim_random_between(&random, from / SIM_MS, to / SIM_MS) * SIM_MS;
        if (last < to && sim_random_chance(&random, 30)) { /* right behind another one */
            fault->at = last + sim_random_between(&random, 1, 200) * SIM_MS;
        }
        fault->lasts = sim_random_between(&random, 50, 4500) * SIM_MS;
        fault->kind = driver.options.kinds.is_planned && i % 2 == 0
                          ? FAULT_FAILOVER
                          : (enum fault_kind)random_below(&random, FAULT_KINDS);
        if (driver.far >= 0 && i == 0) {
            fault->kind = FAULT_WRONG_CHOICE;
            fault->at = from + (fault->at - from) / 2;
        }
        fault->one = (int)random_below(&random, (uint64_t)servers);
        /* Another server, Sentinel's machine or the clients'. */
        fault->other =
            (int)((fault->one + sim_random_between(&random, 1, servers + 1)) % (servers + 2));
        if (fault->kind == FAULT_TWO_MASTERS) {
            fault->other = (fault->one + 1) % servers;
        }
        fault->size = sim_random_between(&random, 2, 400);
        if (fault->kind == FAULT_CLOCK) {
            fault->size = (fault->size - 200) * 5;
        }
        snprintf(fault->text, sizeof fault->text, "%s of %d at %.3f for %.3f (%d, %lld)",
                 fault_names[fault->kind], fault->one, (double)fault->at / 1e9,
                 (double)fault->lasts / 1e9, fault->other, (long long)fault->size);
        if (sim_driver_may_have(fault->kind, &power_cuts)) {
            driver.fault_count++;
            last = fault->at;
        }
    }
}

static void sim_driver_set_far(int far, int64_t rate) {
    for (int i = 0; i < driver.options.server_count; i++) {
        sim_network_set_rate(i, far, rate);
        sim_network_set_rate(far, i, rate);
    }
}

int64_t sim_driver_far_rate(void) {
    return driver.far_rate;
}

void sim_driver_bring_near(void) {
    for (int i = 0; i < driver.options.server_count; i++) {
        sim_driver_set_far(i, 0);
    }
}

void sim_driver_start(const struct sim_driver_options *options) {
    driver.options = *options;
    driver.random = sim_random_of(options->seed, 8);
    driver.far = -1;
    driver.far_rate = 0;
    driver.has_chain = options->kinds.may_have_chain && sim_random_chance(&driver.random, 50);
    if (options->kinds.has_sentinel && sim_random_chance(&driver.random, 20)) {
        driver.far = (int)random_below(&driver.random, (uint64_t)options->server_count);
        driver.far_rate = sim_random_between(&driver.random, 16, 64) * 1000;
        sim_driver_set_far(driver.far, driver.far_rate);
        sim_trace("machine %d is far", driver.far);
    }
    sim_driver_draw();
    if (options->kinds.is_released) {
        struct random random = sim_random_of(options->seed, 10);
        (void)sim_fiber_create(sim_driver_stop_all, NULL, NULL, NULL,
                               sim_random_between(&random, 4000, 18000) * SIM_MS);
    }
    for (int i = 0; i < driver.fault_count; i++) {
        if ((options->left_out >> i & 1) == 0) {
            sim_at(driver.faults[i].at, sim_driver_begin_fault, &driver.faults[i], 0);
        }
    }
    for (int i = 0; i < options->server_count; i++) {
        driver.seen[i].line = (struct sim_client){.machine = options->machine, .server = -1};
        (void)sim_fiber_create(sim_driver_watch, (void *)(intptr_t)i, NULL, NULL, 100 * SIM_MS);
    }
    (void)sim_fiber_create(sim_driver_supervise, NULL, NULL, NULL, 0);
    (void)sim_fiber_create(sim_driver_run_sentinel, NULL, NULL, NULL, 3 * SIM_S);
}

int sim_driver_fault_count(void) {
    return driver.fault_count;
}

const char *sim_driver_fault(int index) {
    return driver.faults[index].text;
}

int sim_driver_master(void) {
    return driver.master;
}
