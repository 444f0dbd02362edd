/* leaderboard-server: command line, start, loop, shutdown.
 *
 *     settings -> listeners (a taken port stops here) -> log -> background -> loop -> drain -> exit
 *
 * SIGTERM, SIGINT: write everything to disk, answer queued requests, then exit with 0; a second one
 * exits at once. If the disk fails, the server keeps running. SIGHUP: reopen the log. SIGUSR1,
 * SIGUSR2: only a line in the log. Other fatal signals: fault.h. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "server/commands/table.h"
#include "server/dispatch/command.h"
#include "server/dispatch/execute.h"
#include "server/dispatch/shutdown.h"
#include "server/durability/persistence.h"
#include "server/durability/verify.h"
#include "server/loop/listener.h"
#include "server/loop/tick.h"
#include "server/system/fault.h"
#include "server/system/log.h"
#include "server/system/process.h"

enum { SIGNALS = 5 };
static const int signal_numbers[SIGNALS] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2};

static struct {
    struct server server;
    struct persistence *persistence;
    struct listeners listeners;
    struct tick tick;
    uv_loop_t loop;
    uv_signal_t signals[SIGNALS];
    enum { PROGRAM_STARTS, PROGRAM_LOADS, PROGRAM_IS_READY } state;
} program;

static int fail_with(const char *error) {
    fprintf(stderr, "leaderboard-server: %s\n", error);
    return EXIT_FAILURE;
}

static bool answer_and_exit(int argc, char **argv) {
    const char *word = argc == 2 ? argv[1] : "";
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
        settings_write_help(stdout);
        return true;
    }
    if (strcmp(word, "--version") == 0 || strcmp(word, "-v") == 0) {
        printf("leaderboard-server %s (commands as of Redis %s)\n", SERVER_VERSION,
               SERVER_REDIS_VERSION);
        return true;
    }
    return false;
}

/* Remove --reset-clock from the arguments: it is for this start only, so it is not a setting. */
static bool take_reset_clock(int *argc, char **argv) {
    int kept = 0;
    bool is_asked = false;
    for (int i = 0; i < *argc; i++) {
        bool is_it = i > 0 && strcmp(argv[i], "--reset-clock") == 0;
        is_asked |= is_it;
        if (!is_it) {
            argv[kept++] = argv[i];
        }
    }
    argv[kept] = NULL;
    *argc = kept;
    return is_asked;
}

/* --check DIR [--fix]; *status is then the exit status. */
static bool check_and_exit(int argc, char **argv, int *status) {
    if (argc < 2 || strcmp(argv[1], "--check") != 0) {
        return false;
    }
    bool is_fixing = argc == 4 && strcmp(argv[3], "--fix") == 0;
    if (argc != 3 && !is_fixing) {
        *status = fail_with("usage: leaderboard-server --check DIR [--fix]");
        return true;
    }
    memory_init();
    clock_calibrate();
    *status = (int)check_run(argv[2], is_fixing, stdout);
    return true;
}

static bool load_settings(int argc, char **argv, char *error) {
    struct settings *settings = &program.server.settings;
    if (!settings_init(settings)) {
        snprintf(error, SETTING_ERROR_MAX, "out of memory");
        return false;
    }
    return settings_load_arguments(settings, argc, argv, error) && settings_finish(settings, error);
}

/* Everything that can fail, while the operator still sees the terminal. */
static bool prepare(int argc, char **argv, char *error) {
    const struct settings *settings = &program.server.settings;
    if (!load_settings(argc, argv, error) || !listeners_open(&program.listeners, settings, error)) {
        return false;
    }
    if (!log_open(settings->logfile, (enum log_level)settings->loglevel)) {
        snprintf(error, SETTING_ERROR_MAX, "cannot open the logfile %s: %s", settings->logfile,
                 strerror(errno));
        listeners_close(&program.listeners);
        return false;
    }
    program.persistence = persistence_open(settings, error);
    if (program.persistence == NULL) {
        listeners_close(&program.listeners);
    }
    return program.persistence != NULL;
}

static void on_signal(uv_signal_t *signal, int number) {
    (void)signal;
    if (number == SIGHUP) {
        bool is_open = log_reopen();
        log_write(is_open ? LOG_NOTICE : LOG_WARNING, "log %s signal=SIGHUP",
                  is_open ? "reopened" : "cannot be reopened, the old file stays in use");
        return;
    }
    if (number == SIGUSR1 || number == SIGUSR2) {
        log_write(LOG_NOTICE, "signal ignored signal=%s",
                  number == SIGUSR1 ? "SIGUSR1" : "SIGUSR2");
        return;
    }
    log_write(LOG_NOTICE, "signal received signal=%s", number == SIGTERM ? "SIGTERM" : "SIGINT");
    if (program.tick.is_draining || shutdown_prepare(&program.server, PERSISTENCE_END_AS_SET)) {
        tick_shutdown(&program.tick, false);
    }
}

/* Signal handles do not keep the loop alive. */
static bool watch_signals(void) {
    for (int i = 0; i < SIGNALS; i++) {
        if (uv_signal_init(&program.loop, &program.signals[i]) != 0 ||
            uv_signal_start(&program.signals[i], on_signal, signal_numbers[i]) != 0) {
            return false;
        }
        uv_unref((uv_handle_t *)&program.signals[i]);
    }
    return true;
}

/* Do all boards with this layout have a PERIOD, which moves its times to today? */
static bool is_moved_by_periods(const struct settings *settings, const char *layout_name) {
    bool is_used = false;
    if (strcmp(settings->default_layout_name, layout_name) == 0) {
        return false;
    }
    for (uint32_t i = 0; i < settings->rule_count; i++) {
        const struct setting_rule *rule = &settings->rules[i];
        if (strcmp(rule->layout_name, layout_name) == 0) {
            is_used = true;
            if (rule->rules->period == PERIOD_NONE) {
                return false;
            }
        }
    }
    return is_used;
}

/* A layout whose times do not reach today refuses every write: warn at start, before the first
 * write. */
static void warn_of_layouts_without_today(void) {
    const struct settings *settings = &program.server.settings;
    int64_t now_us = clock_now_us(&program.server.clock);
    for (uint32_t i = 0; i < settings->layout_count; i++) {
        const struct layout *layout = &settings->layouts[i]->rules.layout;
        if (layout->time.bits == 0 || is_moved_by_periods(settings, settings->layouts[i]->name) ||
            (now_us >= layout_time_first_us(layout) && now_us <= layout_time_last_us(layout))) {
            continue;
        }
        char error[LAYOUT_ERROR_MAX];
        layout_explain_time(layout, now_us, error);
        log_write(LOG_WARNING,
                  "layout cannot hold today, writes to its boards will fail: %s "
                  "layout=%s",
                  error, settings->layouts[i]->name);
    }
}

static const char *running_command(const void *context) {
    return tick_running_command(context);
}

static void stop_listening(void *context) {
    listeners_close(context);
}

/* Called when boards are loaded and served. */
static void note_ready(void) {
    if (program.state == PROGRAM_LOADS && !program.server.durability.is_loading) {
        program.state = PROGRAM_IS_READY;
        log_write(LOG_NOTICE, "ready version=%s pid=%d", SERVER_VERSION, (int)uv_os_getpid());
    }
}

/* Persistence cannot continue. End now: nothing that waits for the disk may be answered. */
static void end_if_fatal(void) {
    const char *error = persistence_fatal_error(program.persistence);
    if (error == NULL) {
        return;
    }
    if (program.server.durability.is_loading) {
        (void)fail_with(error);
    }
    log_close();
    _exit(EXIT_FAILURE);
}

static void on_disk_changed(void *context) {
    end_if_fatal();
    tick_open_gates(context);
    note_ready();
}

static bool start_persistence(void) {
    char error[PERSISTENCE_ERROR_MAX];
    const struct persistence_host host = {
        .settings = &program.server.settings,
        .registry = program.server.registry,
        .clock = &program.server.clock,
        .state = &program.server.durability,
    };
    program.server.persistence = program.persistence;
    if (!persistence_start(program.persistence, &host, &program.loop, on_disk_changed,
                           &program.tick, error)) {
        log_write(LOG_WARNING, "cannot start: %s", error);
        return false;
    }
    if (program.server.durability.is_loading) {
        tick_wake(&program.tick);
    }
    return true;
}

static bool start(void) {
    program.tick.stop_listening = stop_listening;
    program.tick.context = &program.listeners;
    return server_init(&program.server, command_count()) && uv_loop_init(&program.loop) == 0 &&
           watch_signals() && tick_init(&program.tick, &program.loop, &program.server) &&
           listeners_watch(&program.listeners, &program.tick) && start_persistence();
}

/* Closing libuv's handles restores the default actions of the signals. One of them could then kill
 * a server that is freeing its boards, and hide that it ended cleanly. */
static void block_signals(void) {
    sigset_t signals;
    sigemptyset(&signals);
    for (int i = 0; i < SIGNALS; i++) {
        sigaddset(&signals, signal_numbers[i]);
    }
    sigprocmask(SIG_BLOCK, &signals, NULL);
}

static void run(void) {
    uv_run(&program.loop, UV_RUN_DEFAULT);
    block_signals();
    persistence_stop(program.persistence);
    end_if_fatal();
    for (int i = 0; i < SIGNALS; i++) {
        uv_close((uv_handle_t *)&program.signals[i], NULL);
    }
    uv_run(&program.loop, UV_RUN_DEFAULT);
    CHECK(uv_loop_close(&program.loop) == 0);
    persistence_destroy(program.persistence);
    tick_deinit(&program.tick);
    server_deinit(&program.server);
}

int main(int argc, char **argv) {
    if (answer_and_exit(argc, argv)) {
        return EXIT_SUCCESS;
    }
    int status;
    if (check_and_exit(argc, argv, &status)) {
        return status;
    }
    char error[PERSISTENCE_ERROR_MAX];
    program.server.clock.is_to_be_reset = take_reset_clock(&argc, argv);
    execute_init(command_table);
    if (!prepare(argc, argv, error)) {
        return fail_with(error);
    }
    struct settings *settings = &program.server.settings;
    enum process_side side = settings->daemonize ? process_daemonize() : PROCESS_DAEMON;
    if (side == PROCESS_PARENT) {
        _exit(EXIT_SUCCESS);
    }
    if (side == PROCESS_FAILED) {
        return fail_with("cannot go to the background");
    }
    fault_watch(running_command, &program.tick);
    /* After daemonizing: the next calls start threads, which a fork would lose together with the
     * locks they hold. */
    memory_init();
    clock_calibrate();
    settings->maxclients = process_raise_descriptor_limit(settings->maxclients);
    if (!start()) {
        listeners_close(&program.listeners);
        return fail_with("cannot start: out of memory or descriptors");
    }
    const char *pidfile = settings->pidfile != NULL ? settings->pidfile : "";
    if (pidfile[0] != '\0') {
        process_write_pidfile(pidfile);
    }
    warn_of_layouts_without_today();
    program.state = PROGRAM_LOADS;
    note_ready();
    run();
    if (pidfile[0] != '\0') {
        process_remove_pidfile(pidfile);
    }
    bool is_fine = !program.server.is_end_failed;
    log_write(LOG_NOTICE, "bye");
    log_close();
    settings_deinit(settings);
    return is_fine ? EXIT_SUCCESS : EXIT_FAILURE;
}
