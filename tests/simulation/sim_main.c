/* Schedules of whole servers, each from one seed and in a process of its own.
 *
 *     simulate SERVER.so [TINY.so] [--seed N] [--count N] [--seconds N] [--mode NAME] [--trace]
 *              [--twice] [--rows] [--first] [--steps]
 *
 * With two objects each seed chooses one. --seconds: fresh seeds until so many seconds have passed.
 * --trace prints what happens. --twice runs each seed twice and compares the traces. --rows lists which
 * rows of the tables of states were taken. --steps prints the quorum's steps for
 * tests/model/steps.py. --first ends with the first seed that fails. Otherwise a seed
 * that fails is shortened: faults are left out, one by one, as long as it fails. The exit status is 1 if
 * a seed has failed. */
#include <execinfo.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/simulation/sim_driver.h"
#include "tests/simulation/sim_events.h"
#include "tests/simulation/sim_load.h"
#include "tests/simulation/sim_model.h"
#include "tests/simulation/sim_process.h"

static const int64_t FAULTS_UNTIL = 25 * SIM_S;
/* From the end of all faults until every client is answered again. */
static const int64_t SERVICE_NS = 60 * SIM_S;

enum { REASON_MAX = 512, LIMIT_S = 120 };

struct mode {
    const char *name;
    int server_count;
    enum sim_promise promise;
    struct sim_driver_kinds kinds;
    const char *arguments[12];
};

#define SYNC(replicas, nodes)                                                                      \
    "--sync-replicas", replicas, "--replication-nodes", nodes, "--sync-replicas-lease", "400"
static const struct mode modes[] = {
    {"sync", 3, SIM_KEPT, {.has_sentinel = true, .power_cuts = 1}, {SYNC("1", "3")}},
    {"all", 3, SIM_KEPT, {.has_sentinel = true, .power_cuts = 1}, {SYNC("2", "3")}},
    {"five", 5, SIM_KEPT, {.has_sentinel = true, .power_cuts = 1}, {SYNC("2", "5")}},
    {"fsync",
     3,
     SIM_KEPT,
     {.has_sentinel = true, .power_cuts = SIM_FAULTS_MAX, .has_disk_faults = true},
     {SYNC("1", "3"), "--sync-replicas-fsync", "yes", "--appendfsync", "always"}},
    {"async",
     3,
     SIM_BOUNDED,
     {.has_sentinel = true,
      .power_cuts = SIM_FAULTS_MAX,
      .has_disk_faults = true,
      .may_have_chain = true},
     {NULL}},
    {"wait", 3, SIM_WAITED, {.has_sentinel = true}, {NULL}},
    {"always",
     1,
     SIM_KEPT,
     {.power_cuts = SIM_FAULTS_MAX, .has_disk_faults = true},
     {"--appendfsync", "always"}},
    {"everysec", 1, SIM_KEPT_LATE, {.power_cuts = SIM_FAULTS_MAX}, {NULL}},
    /* An operator hands over; nothing fails. */
    {"planned", 3, SIM_KEPT, {.is_planned = true}, {SYNC("1", "3")}},
    {"planned-async", 3, SIM_KEPT, {.is_planned = true}, {NULL}},
    /* The promises of all are removed. */
    {"released", 3, SIM_KEPT, {.has_sentinel = true, .is_released = true}, {SYNC("1", "3")}},
    /* Only when asked for: a restart takes for synced what a failed sync has left in the page cache. */
    {"lossy",
     1,
     SIM_KEPT,
     {.power_cuts = SIM_FAULTS_MAX, .has_disk_faults = true, .loses_pages = true},
     {"--appendfsync", "always"}},
};
enum { MODES = sizeof modes / sizeof modes[0], MODES_BY_SEED = MODES - 1 };

/* What a schedule's process leaves behind. */
struct outcome {
    char reason[REASON_MAX]; /* "": it has passed */
    uint64_t hash, events, answered, in_doubt;
    int64_t simulated_ns;
    int fault_count;
    char faults[SIM_FAULTS_MAX][96];
};

static int outcome_fd;

static void sim_main_end(const char *reason) {
    struct outcome outcome = {.hash = sim_trace_hash(), .events = sim_event_count()};
    snprintf(outcome.reason, sizeof outcome.reason, "%s", reason);
    outcome.answered = sim_load_answered();
    outcome.in_doubt = sim_load_in_doubt();
    outcome.simulated_ns = sim_now();
    outcome.fault_count = sim_driver_fault_count();
    for (int i = 0; i < outcome.fault_count; i++) {
        snprintf(outcome.faults[i], sizeof outcome.faults[i], "%s", sim_driver_fault(i));
    }
    fflush(stdout);
    (void)!write(outcome_fd, &outcome, sizeof outcome);
    _exit(0);
}

static void sim_main_on_crash(int number) {
    void *frames[48];
    backtrace_symbols_fd(frames, backtrace(frames, 48), STDERR_FILENO);
    sim_main_end(number == SIGSEGV ? "crash: SIGSEGV" : "crash: a signal");
}

static void sim_main_catch(void) {
    static char stack[1 << 16];
    const stack_t other = {.ss_sp = stack, .ss_size = sizeof stack};
    const struct sigaction action = {.sa_handler = sim_main_on_crash,
                                     .sa_flags = SA_ONSTACK | (int)SA_RESETHAND};
    sigaltstack(&other, NULL);
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
    sigaction(SIGFPE, &action, NULL);
    alarm(LIMIT_S);
}

static void sim_main_add(struct sim_machine *machine, const char *const *words) {
    size_t count = 0;
    while (machine->arguments[count] != NULL) {
        count++;
    }
    while (*words != NULL) {
        machine->arguments[count++] = *words++;
    }
}

static void sim_main_begin(const struct mode *mode, uint64_t seed, uint64_t left_out) {
    static struct random random;
    static const char *const common[] = {"--dir",
                                         "/data",
                                         "--appendonly",
                                         "yes",
                                         "--bind",
                                         "0.0.0.0",
                                         "--protected-mode",
                                         "no",
                                         "--loglevel",
                                         "debug",
                                         "--save",
                                         "",
                                         "--repl-timeout",
                                         "5",
                                         NULL};
    static const char *const replica[] = {"--replicaof", "10.0.0.1 6379", NULL};
    /* Who is far away, and behind, needs a full copy. */
    static const char *const forgetful[] = {"--repl-backlog-size", "20000", NULL};
    struct random choice = sim_random_of(seed, 2);
    random = sim_random_of(seed, 1);
    sim_images_choose((int)random_below(&choice, (uint64_t)sim_images_count()));
    sim_network_init(&random);
    sim_driver_start(&(struct sim_driver_options){
        .server_count = mode->server_count,
        .machine = mode->server_count,
        .seed = seed,
        .until = FAULTS_UNTIL,
        .left_out = left_out,
        .kinds = mode->kinds,
    });
    for (int i = 0; i < mode->server_count; i++) {
        struct sim_machine *machine = sim_machine_get(i);
        struct random clock = sim_random_of(seed, 300 + (uint64_t)i);
        sim_machine_init(machine, i, seed);
        machine->disk.loses_pages = mode->kinds.loses_pages;
        machine->rate_ppm = sim_random_between(&clock, -200, 200);
        machine->wall_offset_ns = sim_random_between(&clock, -500, 500) * SIM_MS;
        sim_main_add(machine, common);
        sim_main_add(machine, mode->arguments);
        if (sim_driver_far_rate() > 0) {
            sim_main_add(machine, forgetful);
        }
        if (i > 0) {
            sim_main_add(machine, replica);
        }
        sim_machine_start(machine);
    }
}

static void sim_main_wait(bool (*is_it)(void), int64_t ns, const char *what) {
    int64_t until = sim_now() + ns;
    while (!is_it()) {
        if (sim_now() >= until) {
            sim_fail("%s after %lld s without faults", what, (long long)(ns / SIM_S));
        }
        sim_run_until(sim_now() + 100 * SIM_MS);
    }
}

static bool sim_main_is_served(void) {
    return sim_load_is_answered_since(FAULTS_UNTIL);
}

static void sim_main_run_schedule(const struct mode *mode, uint64_t seed, uint64_t left_out) {
    sim_on_fail = sim_main_end;
    sim_main_catch();
    sim_model_begin();
    sim_main_begin(mode, seed, left_out);
    sim_run_until(SIM_S);
    sim_load_start(&(struct sim_load_options){
        .server_count = mode->server_count,
        .client_count = 8,
        .machine = mode->server_count + 1,
        .seed = seed,
        .promise = mode->promise,
        .is_planned = mode->kinds.is_planned,
        .thin_rate = sim_driver_far_rate(),
    });
    sim_run_until(FAULTS_UNTIL);
    sim_main_wait(sim_main_is_served, SERVICE_NS, "not every client is answered");
    sim_load_end();
    sim_driver_bring_near();
    sim_main_wait(sim_load_is_over, 20 * SIM_S, "a client waits still");
    sim_run_until(sim_now() + 3 * SIM_S);
    sim_load_judge(sim_driver_master());
    sim_main_wait(sim_load_is_judged, 120 * SIM_S, "the servers cannot be judged");
    sim_main_end("");
}

/* ---- seeds ---- */

static struct outcome sim_main_run(const struct mode *mode, uint64_t seed, uint64_t left_out,
                                   bool is_shown) {
    struct outcome outcome = {.reason = "the process ended without a word, or took too long"};
    int ends[2], status;
    if (pipe(ends) != 0) {
        abort();
    }
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        outcome_fd = ends[1];
        sim_trace_show(is_shown);
        sim_main_run_schedule(mode, seed, left_out);
    }
    close(ends[1]);
    char *at = (char *)&outcome;
    for (size_t size = 0; size < sizeof outcome;) {
        ssize_t got = read(ends[0], at + size, sizeof outcome - size);
        if (got <= 0) {
            break;
        }
        size += (size_t)got;
    }
    close(ends[0]);
    (void)waitpid(child, &status, 0);
    return outcome;
}

static bool sim_main_has_failed(const struct outcome *outcome) {
    return outcome->reason[0] != '\0';
}

/* Leave out faults one by one, the last first, as long as it fails for a reason of the same kind. */
static void sim_main_shorten(const struct mode *mode, uint64_t seed, const struct outcome *failed) {
    uint64_t left_out = 0;
    struct outcome last = *failed;
    size_t kind = strcspn(failed->reason, ":");
    for (int i = failed->fault_count; i-- > 0;) {
        struct outcome tried = sim_main_run(mode, seed, left_out | UINT64_C(1) << i, false);
        if (sim_main_has_failed(&tried) && strncmp(tried.reason, failed->reason, kind) == 0) {
            left_out |= UINT64_C(1) << i;
            last = tried;
        }
    }
    printf("  shortest: --mode %s --seed %llu --without %llx: %s\n", mode->name,
           (unsigned long long)seed, (unsigned long long)left_out, last.reason);
    for (int i = 0; i < failed->fault_count; i++) {
        if ((left_out >> i & 1) == 0) {
            printf("    %s\n", failed->faults[i]);
        }
    }
}

struct arguments {
    uint64_t seed, count, without;
    int64_t seconds;
    const char *mode;
    bool is_shown, is_twice, is_listing, is_first, shows_steps;
};

static bool sim_main_read_flag(struct arguments *arguments, const char *name) {
    const struct {
        const char *name;
        bool *flag;
    } flags[] = {{"--trace", &arguments->is_shown},
                 {"--twice", &arguments->is_twice},
                 {"--rows", &arguments->is_listing},
                 {"--first", &arguments->is_first},
                 {"--steps", &arguments->shows_steps}};
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        if (strcmp(name, flags[i].name) == 0) {
            *flags[i].flag = true;
            return true;
        }
    }
    return false;
}

static struct arguments sim_main_read(int argc, char **argv) {
    struct arguments arguments = {.seed = (uint64_t)time(NULL), .count = 1};
    for (int i = 1; i < argc; i++) {
        if (argv[i][0] != '-' || sim_main_read_flag(&arguments, argv[i])) {
            continue;
        }
        const char *name = argv[i], *value = i + 1 < argc ? argv[++i] : "";
        if (strcmp(name, "--seed") == 0) {
            arguments.seed = strtoull(value, NULL, 10);
        } else if (strcmp(name, "--count") == 0) {
            arguments.count = strtoull(value, NULL, 10);
        } else if (strcmp(name, "--seconds") == 0) {
            arguments.seconds = strtoll(value, NULL, 10);
            arguments.count = UINT64_MAX;
        } else if (strcmp(name, "--mode") == 0) {
            arguments.mode = value;
        } else if (strcmp(name, "--without") == 0) {
            arguments.without = strtoull(value, NULL, 16);
        }
    }
    return arguments;
}

static const struct mode *sim_main_mode(const char *name, uint64_t seed) {
    for (int i = 0; i < MODES; i++) {
        if (name != NULL && strcmp(name, modes[i].name) == 0) {
            return &modes[i];
        }
    }
    return &modes[seed % MODES_BY_SEED];
}

static bool sim_main_run_seed(const struct arguments *arguments, uint64_t seed,
                              struct outcome *total) {
    const struct mode *mode = sim_main_mode(arguments->mode, seed);
    struct outcome outcome = sim_main_run(mode, seed, arguments->without, arguments->is_shown);
    total->events += outcome.events;
    total->answered += outcome.answered;
    total->in_doubt += outcome.in_doubt;
    total->simulated_ns += outcome.simulated_ns;
    if (sim_main_has_failed(&outcome)) {
        printf("seed %llu (%s): %s\n", (unsigned long long)seed, mode->name, outcome.reason);
        if (!arguments->is_shown && !arguments->is_first && arguments->without == 0) {
            sim_main_shorten(mode, seed, &outcome);
        }
        return false;
    }
    if (arguments->is_twice &&
        sim_main_run(mode, seed, arguments->without, false).hash != outcome.hash) {
        printf("seed %llu (%s): two runs differ\n", (unsigned long long)seed, mode->name);
        return false;
    }
    return true;
}

/* The same addresses in every run. */
static void sim_main_fix_addresses(char **argv) {
    int now = personality(0xffffffff);
    if ((now & ADDR_NO_RANDOMIZE) == 0 && personality((unsigned)now | ADDR_NO_RANDOMIZE) >= 0) {
        execv("/proc/self/exe", argv);
    }
}

int main(int argc, char **argv) {
    struct outcome total = {.events = 0};
    uint64_t run_count = 0, failed_count = 0;
    if (argc < 2) {
        fprintf(stderr, "usage: simulate SERVER.so [TINY.so] [--seed N] ...\n");
        return 2;
    }
    sim_main_fix_addresses(argv);
    struct arguments arguments = sim_main_read(argc, argv);
    for (int i = 1; i < argc && argv[i][0] != '-'; i++) {
        const char *error = sim_images_load(argv[i]);
        if (error != NULL) {
            fprintf(stderr, "cannot load %s: %s\n", argv[i], error);
            return 2;
        }
    }
    sim_model_init();
    sim_model_show_steps(arguments.shows_steps);
    time_t began = time(NULL);
    while (run_count < arguments.count && !(arguments.is_first && failed_count > 0) &&
           (arguments.seconds == 0 || time(NULL) - began < arguments.seconds)) {
        failed_count += !sim_main_run_seed(&arguments, arguments.seed + run_count, &total);
        run_count++;
    }
    printf("%llu schedules, %.2f simulated hours in %lld s, %llu answers, %llu in doubt\n",
           (unsigned long long)run_count, (double)total.simulated_ns / 3600e9,
           (long long)(time(NULL) - began), (unsigned long long)total.answered,
           (unsigned long long)total.in_doubt);
    sim_model_print(arguments.is_listing);
    printf("%llu passed, %llu failed\n", (unsigned long long)(run_count - failed_count),
           (unsigned long long)failed_count);
    return failed_count > 0;
}
