/* leaderboard-server: command line, start, loop, shutdown.
 *
 *     settings -> listeners (a taken port stops here) -> log -> background -> loop -> drain -> exit
 *
 * SIGTERM, SIGINT: wait for balancers (shutdown-drain-timeout), write everything to disk, answer
 * queued requests, then exit with 0; a further one ends the wait, or exits at once. If the disk fails,
 * the server keeps running. SIGHUP: reopen the log. SIGUSR2: only a line in the log. All others:
 * fault.h. */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "server/acl/acl_rules.h"
#include "server/acl/player.h"
#include "server/commands/admin/admin.h"
#include "server/commands/ban.h"
#include "server/commands/lb/board_task.h"
#include "server/commands/lb/lb.h"
#include "server/commands/lb/lb_rating.h"
#include "server/commands/table.h"
#include "server/commands/window.h"
#include "server/description.h"
#include "server/dispatch/command.h"
#include "server/dispatch/execute.h"
#include "server/dispatch/shutdown.h"
#include "server/durability/persistence.h"
#include "server/durability/verify.h"
#include "server/loop/connection.h"
#include "server/loop/tick.h"
#include "server/metrics/metrics.h"
#include "server/network/acceptor.h"
#include "server/network/tls.h"
#include "server/replication/replication.h"
#include "server/sessions/job.h"
#include "server/system/fault.h"
#include "server/system/log.h"
#include "server/system/process.h"
#include "server/system/service.h"
#include "server/tools/tools.h"
#include "server/web/web.h"

enum { SIGNALS = 4, SECOND_MS = 1000, START_EXTENSION_S = 60 };
static const int signal_numbers[SIGNALS] = {SIGTERM, SIGINT, SIGHUP, SIGUSR2};

static struct {
    struct server server;
    struct persistence *persistence;
    struct listeners listeners;
    struct tls_settings tls;
    /* The metrics-port and the web-port: -1 where there is none; PEM texts, NULL: without TLS. */
    int http_fd, web_fd;
    const char *http_certificate, *http_key, *web_certificate, *web_key;
    struct metrics *metrics;
    struct web *web;
    struct tick tick;
    struct {
        uv_timer_t timer; /* does not keep the loop alive */
        bool is_running, is_loading;
    } heartbeat;
    uv_loop_t loop;
    uv_signal_t signals[SIGNALS];
    uv_timer_t second;
    bool has_files_of_redis; /* in the dir, at start */
    uint64_t file_keys;      /* a hash of the file's player-key lines, as they were read last */
    struct jwt_key argument_keys[JWT_KEYS_MAX]; /* those that are in no file */
    uint32_t argument_key_count;
    enum { PROGRAM_STARTS, PROGRAM_LOADS, PROGRAM_IS_READY } state;
} program;

/* An empty one has been told. */
static int main_fail_with(const char *error) {
    if (error[0] != '\0') {
        fprintf(stderr, "%sleaderboard-server: %s\n", log_is_journal(STDERR_FILENO) ? "<3>" : "",
                error);
    }
    return EXIT_FAILURE;
}

/* Remove --reset-clock from the arguments: it is for this start only, so it is not a setting. */
static bool main_take_reset_clock(int *argc, char **argv) {
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

static bool main_rename_commands(const struct settings *settings, char *error) {
    for (uint32_t i = 0; i < settings->rename_count; i++) {
        const struct setting_rename *rename = &settings->renames[i];
        struct bytes name = bytes_from_text(rename->name);
        struct bytes new_name = bytes_from_text(rename->new_name);
        const char *reason = command_set_name(name, new_name);
        if (reason != NULL) {
            snprintf(error, SETTING_ERROR_MAX, "rename-command '%s' '%s': %s",
                     bytes_show(name).text, bytes_show(new_name).text, reason);
            return false;
        }
    }
    return true;
}

/* A certificate and its key, if they are given. false: error says why. */
static bool main_read_pair(const char *family, const char *certificate_file, const char *key_file,
                           const char **certificate, const char **key, char *error) {
    if (certificate_file == NULL && key_file == NULL) {
        return true;
    }
    if (certificate_file == NULL || key_file == NULL) {
        snprintf(error, HTTP_ERROR_MAX,
                 "%s-tls-cert-file and %s-tls-key-file go together: one of them is missing", family,
                 family);
        return false;
    }
    *certificate = http_read_pem(certificate_file, error);
    *key = *certificate != NULL ? http_read_pem(key_file, error) : NULL;
    return *key != NULL;
}

static bool main_read_certificates(const struct settings *settings, char *error) {
    return (settings->metrics_port == 0 ||
            main_read_pair("metrics", settings->metrics_tls_cert_file,
                           settings->metrics_tls_key_file, &program.http_certificate,
                           &program.http_key, error)) &&
           (settings->web_port == 0 ||
            main_read_pair("web", settings->web_tls_cert_file, settings->web_tls_key_file,
                           &program.web_certificate, &program.web_key, error));
}

static void main_free_certificates(void) {
    memory_free((void *)(uintptr_t)program.http_certificate);
    memory_free((void *)(uintptr_t)program.http_key);
    memory_free((void *)(uintptr_t)program.web_certificate);
    memory_free((void *)(uintptr_t)program.web_key);
}

/* What a start would refuse beside the settings themselves: names of commands, users, certificates. */
static bool main_check_as_started(const struct settings *settings, char *error) {
    struct server *server = &program.server;
    server->settings = *settings; /* borrowed */
    bool is_fine = main_rename_commands(settings, error) && acl_rules_begin(server, error) &&
                   tls_settings_open(&program.tls, settings, error) &&
                   main_read_certificates(settings, error);
    tls_settings_close(&program.tls);
    main_free_certificates();
    acl_users_deinit(&server->acl.users);
    memory_free(server->acl.path);
    return is_fine;
}

/* What is no start: --help, --check and so on. Is it one of these? *status is then the exit status. */
static bool main_answer(int argc, char **argv, int *status) {
    const char *word = argc > 1 ? argv[1] : "";
    *status = EXIT_SUCCESS;
    if (argc == 2 && (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)) {
        settings_write_help(stdout);
    } else if (argc == 2 && strcmp(word, "--describe") == 0) {
        execute_init(command_table);
        description_write(stdout);
    } else if (argc == 2 && (strcmp(word, "--version") == 0 || strcmp(word, "-v") == 0)) {
        printf("leaderboard-server %s (commands as of Redis %s) commit=%s\n", SERVER_VERSION,
               SERVER_REDIS_VERSION, SERVER_COMMIT);
    } else if (strcmp(word, "--check") == 0) {
        bool is_fixing = argc == 4 && strcmp(argv[3], "--fix") == 0;
        if (argc != 3 && !is_fixing) {
            *status = main_fail_with("usage: leaderboard-server --check DIR|FILE [--fix]");
            return true;
        }
        memory_init();
        clock_calibrate();
        *status = (int)verify_run(argv[2], is_fixing, stdout);
    } else if (strcmp(word, "--check-config") == 0) {
        if (argc != 3) {
            *status = main_fail_with("usage: leaderboard-server --check-config FILE");
            return true;
        }
        execute_init(command_table);
        bool is_fine = setting_file_check(argv[2], main_check_as_started, stdout);
        *status = is_fine ? EXIT_SUCCESS : EXIT_FAILURE;
    } else {
        return tools_run(argc, argv, status);
    }
    return true;
}

/* The metrics-port and the web-port, if they are wanted. */
static bool main_prepare_http(const struct settings *settings, char *error) {
    program.http_fd = program.web_fd = -1;
    if (!main_read_certificates(settings, error)) {
        return false;
    }
    if (settings->metrics_port != 0) {
        program.http_fd =
            http_listen("metrics", settings->metrics_bind, settings->metrics_port, error);
    }
    if (settings->web_port != 0 && (settings->metrics_port == 0 || program.http_fd >= 0)) {
        program.web_fd = http_listen("web", settings->web_bind, settings->web_port, error);
    }
    return (settings->metrics_port == 0 || program.http_fd >= 0) &&
           (settings->web_port == 0 || program.web_fd >= 0);
}

static bool main_open_log(const struct settings *settings, char *error) {
    enum { SYSLOG_USER = 1, SYSLOG_LOCAL0 = 16 };
    log_set_json(settings->log_format == SETTING_LOG_JSON);
    if (settings->syslog_enabled) {
        log_use_syslog(settings->syslog_ident, settings->syslog_facility == 0
                                                   ? SYSLOG_USER
                                                   : SYSLOG_LOCAL0 + settings->syslog_facility - 1);
    }
    bool is_open = log_open(settings->logfile, (enum log_level)settings->loglevel);
    if (!is_open) {
        snprintf(error, SETTING_ERROR_MAX, "cannot open the logfile %s: %s", settings->logfile,
                 strerror(errno));
    }
    return is_open;
}

/* One line for all settings of Redis that were given and mean nothing here. */
static void main_warn_of_ignored_settings(void) {
    enum { NAMES_MAX = 768 }; /* a line of the log has 1,024 bytes */
    struct setting_redis_place place = {.row = NULL};
    struct bytes name;
    char names[NAMES_MAX];
    int size = 0;
    unsigned count = 0, left_out = 0;
    while (setting_table_redis_next_ignored(&program.server.settings, &place, &name)) {
        count++;
        if (left_out > 0 || (size_t)size + name.size + 2 > sizeof names) {
            left_out++;
        } else {
            size += snprintf(names + size, sizeof names - (size_t)size, "%s%.*s",
                             size > 0 ? " " : "", (int)name.size, name.at);
        }
    }
    if (count > 0) {
        log_write(LOG_WARNING,
                  "settings of Redis that mean nothing here are ignored, --check-config says why "
                  "count=%u left_out=%u names=\"%.*s\"",
                  count, left_out, size, names);
    }
}

/* Everything that can fail, while the operator still sees the terminal. */
static bool main_prepare(int argc, char **argv, char *error) {
    static const char *const files_of_redis[] = {"dump.rdb", "appendonly.aof",
                                                 "appendonlydir/appendonly.aof.manifest"};
    struct settings *settings = &program.server.settings;
    if (!settings_init(settings)) {
        snprintf(error, SETTING_ERROR_MAX, "out of memory");
        return false;
    }
    bool is_loaded = setting_file_apply_arguments(settings, argc, argv, main_fail_with, error);
    setting_file_hide_arguments(argc, argv);
    if (!is_loaded || !settings_finish(settings, error) || !main_rename_commands(settings, error) ||
        !acl_rules_begin(&program.server, error) ||
        !tls_settings_open(&program.tls, settings, error) ||
        !acceptor_listen(&program.listeners, settings, error)) {
        return false;
    }
    if (main_prepare_http(settings, error) && main_open_log(settings, error)) {
        program.persistence = persistence_open(settings, error);
    }
    if (program.persistence == NULL) {
        acceptor_end_listening(&program.listeners);
    }
    /* A relative dir is one of where the server was started. */
    for (size_t i = 0; i < sizeof files_of_redis / sizeof files_of_redis[0]; i++) {
        char path[PATH_MAX];
        int size = snprintf(path, sizeof path, "%s/%s", settings->dir, files_of_redis[i]);
        program.has_files_of_redis |= size < (int)sizeof path && access(path, F_OK) == 0;
    }
    return program.persistence != NULL;
}

/* From the files that the settings name; what cannot be used changes nothing. */
static void main_reload_certificates(void) {
    char reason[SETTING_ERROR_MAX];
    if (program.tls.context == NULL) {
        return;
    }
    const char *failed = tls_settings_prepare(&program.tls, &program.server.settings, reason);
    tls_settings_end(&program.tls, failed == NULL);
    if (failed == NULL) {
        log_write(LOG_NOTICE, "certificates reloaded signal=SIGHUP");
    } else {
        log_write(LOG_WARNING,
                  "certificates cannot be reloaded, the old ones stay in use setting=%s: %s",
                  failed, reason);
    }
}

/* What the `player-key` lines of a file say. */
static uint64_t main_hash_player_keys(const struct settings *settings) {
    uint64_t hash = settings->player_key_count;
    for (uint32_t i = 0; i < settings->player_key_count; i++) {
        const struct jwt_key *key = &settings->player_keys[i];
        hash = XXH3_64bits_withSeed(key->kid, strlen(key->kid), hash + key->mark);
        hash = XXH3_64bits_withSeed(key->boards, strlen(key->boards), hash);
    }
    return hash;
}

/* The file's lines have changed: take them, with the keys of the command line. What CONFIG SET has set goes. */
static void main_take_player_keys(const struct settings *fresh) {
    struct settings *settings = &program.server.settings;
    memcpy(settings->player_keys, fresh->player_keys, sizeof settings->player_keys);
    settings->player_key_count = fresh->player_key_count;
    for (uint32_t i = 0; i < program.argument_key_count; i++) {
        const struct jwt_key *key = &program.argument_keys[i];
        if (settings->player_key_count < JWT_KEYS_MAX &&
            jwt_find_key(settings->player_keys, settings->player_key_count,
                         bytes_from_text(key->kid)) == NULL) {
            settings->player_keys[settings->player_key_count++] = *key;
        }
    }
    player_keys_set(&program.server.acl.player_keys, settings);
    log_write(LOG_NOTICE, "player-key lines read again count=%u signal=SIGHUP",
              (unsigned)settings->player_key_count);
}

/* The keys of players, if what the file says of them is not what it said when it was read last. What cannot be read
 * changes nothing. */
static void main_read_player_keys(bool is_start) {
    struct settings fresh;
    char program_name[] = "leaderboard-server";
    char *arguments[] = {program_name, program.server.settings.file_path, NULL};
    char error[SETTING_ERROR_MAX];
    if (is_start && program.server.settings.player_key_count == 0) {
        program.file_keys = main_hash_player_keys(&program.server.settings);
        return; /* nor has the file any */
    }
    if (arguments[1] == NULL || !settings_init(&fresh)) {
        return;
    }
    if (setting_file_apply_arguments(&fresh, 2, arguments, NULL, error)) {
        uint64_t hash = main_hash_player_keys(&fresh);
        const struct settings *settings = &program.server.settings;
        /* At the start: which keys has the command line given? */
        for (uint32_t i = 0; is_start && i < settings->player_key_count; i++) {
            const struct jwt_key *key = &settings->player_keys[i];
            if (jwt_find_key(fresh.player_keys, fresh.player_key_count,
                             bytes_from_text(key->kid)) == NULL) {
                program.argument_keys[program.argument_key_count++] = *key;
            }
        }
        if (!is_start && hash != program.file_keys) {
            main_take_player_keys(&fresh);
        }
        program.file_keys = hash;
    } else if (!is_start) {
        log_write(LOG_WARNING,
                  "player-key lines cannot be read again, the old ones stay in use: %s", error);
    }
    settings_deinit(&fresh);
}

static void main_on_signal(uv_signal_t *signal, int number) {
    const struct shutdown_options options = {
        .ending = PERSISTENCE_END_AS_SET,
        .is_now = program.server.ending.retiring.is_begun,
    };
    (void)signal;
    if (number == SIGHUP) {
        bool is_ready = program.state == PROGRAM_IS_READY && !program.tick.is_draining;
        if (is_ready) {
            service_tell("RELOADING=1\nMONOTONIC_USEC=%llu",
                         (unsigned long long)clock_monotonic_us());
        }
        bool is_open = log_reopen();
        log_write(is_open ? LOG_NOTICE : LOG_WARNING, "log %s signal=SIGHUP",
                  is_open ? "reopened" : "cannot be reopened, the old file stays in use");
        main_reload_certificates();
        main_read_player_keys(false);
        if (is_ready) {
            service_tell("READY=1");
        }
        return;
    }
    if (number == SIGUSR2) {
        log_write(LOG_NOTICE, "signal ignored signal=SIGUSR2");
        return;
    }
    log_write(LOG_NOTICE, "signal received signal=%s", number == SIGTERM ? "SIGTERM" : "SIGINT");
    /* The first signal does as SHUTDOWN; another one ends what the server waits for. */
    if (program.tick.is_draining) {
        tick_shutdown(&program.tick, false);
    } else if (shutdown_begin(&program.server, &options)) {
        tick_wake(&program.tick);
    }
}

/* INFO for a crash report, which cannot take memory any more. */
static void main_keep_info(uv_timer_t *timer) {
    (void)timer;
    struct buffer text;
    buffer_init(&text, 0);
    info_print(&program.server, program.server.clock.now_ms, NULL, 0, &text);
    if (!text.is_broken) {
        fault_set_info(text.at, text.size);
    }
    buffer_deinit(&text);
}

/* Do all boards with this layout have a PERIOD, which moves its times to today? */
static bool main_is_moved_by_periods(const struct settings *settings, const char *layout_name) {
    bool is_used = false;
    if (setting_board_is_default(settings, layout_name)) {
        return false;
    }
    for (uint32_t i = 0; i < settings->rule_count; i++) {
        const struct setting_rule *rule = &settings->rules[i];
        if (strcmp(rule->layout_name, layout_name) == 0) {
            is_used = true;
            if (rule->options->period.unit == PERIOD_NONE) {
                return false;
            }
        }
    }
    return is_used;
}

/* A layout whose times do not reach today refuses every write: warn at start, before the first
 * write. */
static void main_warn_of_layouts_without_today(void) {
    const struct settings *settings = &program.server.settings;
    int64_t now_us = clock_now_us(&program.server.clock);
    for (uint32_t i = 0; i < settings->layout_count; i++) {
        const struct layout *layout = &settings->layouts[i]->options.layout;
        if (layout->time.bits == 0 ||
            main_is_moved_by_periods(settings, settings->layouts[i]->name) ||
            (now_us >= layout_time_first_us(layout) && now_us <= layout_time_last_us(layout))) {
            continue;
        }
        char error[LAYOUT_ERROR_MAX];
        layout_explain_time(layout, now_us, error);
        log_write(LOG_WARNING,
                  "layout cannot hold today, writes to its boards will fail: %s layout=%s", error,
                  settings->layouts[i]->name);
    }
}

static bool main_describe_command(const void *context, struct fault_command *command) {
    return tick_describe_command(context, command);
}

static void main_stop_listening(void *context) {
    service_tell("STOPPING=1\nSTATUS=Answering what clients have sent");
    acceptor_leave(context);
}

/* A timer keeps the service manager informed (server/system/service.h) that the loop still turns, and, while boards are
 * loaded, how far that is: its time for a start is extended, as loading may take longer. If the loop hangs, nothing is
 * told, and the manager restarts the server. Without a manager there is no timer. */
static void main_tell_loading(void) {
    struct persistence_info info;
    persistence_describe(program.persistence, &info);
    service_tell("STATUS=Loading boards: %.0f%%, %llu members\nEXTEND_TIMEOUT_USEC=%lld",
                 info.loading_percent, (unsigned long long)info.loading_members,
                 START_EXTENSION_S * 1000000LL);
}

static void main_on_heartbeat(uv_timer_t *timer) {
    (void)timer;
    if (program.heartbeat.is_loading) {
        main_tell_loading();
    }
    service_ping();
}

/* false: libuv failed. */
static bool main_start_heartbeat(void) {
    if (!service_is_watched()) {
        return true;
    }
    program.heartbeat.is_loading = true;
    if (uv_timer_init(&program.loop, &program.heartbeat.timer) != 0) {
        return false;
    }
    program.heartbeat.is_running = true;
    uv_unref((uv_handle_t *)&program.heartbeat.timer);
    main_tell_loading();
    /* Twice in the time in which a ping is expected, as sd_watchdog_enabled(3) advises. */
    uint64_t half_ms = service_ping_interval_us() / 2000;
    uint64_t period_ms = half_ms == 0 || half_ms > SECOND_MS ? SECOND_MS : half_ms;
    return uv_timer_start(&program.heartbeat.timer, main_on_heartbeat, period_ms, period_ms) == 0;
}

/* Called when boards are loaded and served. */
static void main_note_ready(void) {
    if (program.state == PROGRAM_LOADS && !program.server.durability.is_loading) {
        program.state = PROGRAM_IS_READY;
        log_write(LOG_NOTICE, "ready version=%s pid=%d", SERVER_VERSION, (int)uv_os_getpid());
        if (program.heartbeat.is_loading) {
            program.heartbeat.is_loading = false;
            service_tell("READY=1\nSTATUS=Serving");
        }
        if (program.has_files_of_redis && registry_count_all(program.server.registry).keys == 0) {
            log_write(LOG_WARNING,
                      "dir has files of Redis, which are not read: leaderboard-server --import "
                      "dump.rdb leaderboard.conf fills a new dir with them dir=%s",
                      program.server.settings.dir);
        }
    }
}

/* Persistence cannot continue. End now: nothing that waits for the disk may be answered. */
static void main_end_if_fatal(void) {
    const char *error = persistence_fatal_error(program.persistence);
    if (error == NULL) {
        return;
    }
    if (program.server.durability.is_loading) {
        (void)main_fail_with(error);
    }
    log_close();
    _exit(EXIT_FAILURE);
}

static void main_on_disk_changed(void *context) {
    main_end_if_fatal();
    tick_output_release_answers(context);
    main_note_ready();
}

static bool main_start_persistence(void) {
    char error[PERSISTENCE_ERROR_MAX];
    const struct persistence_host host = {
        .settings = &program.server.settings,
        .registry = program.server.registry,
        .clock = &program.server.clock,
        .state = &program.server.durability,
    };
    program.server.persistence = program.persistence;
    if (!persistence_start(program.persistence, &host, &program.loop, main_on_disk_changed,
                           &program.tick, error)) {
        log_write(LOG_WARNING, "cannot start: %s", error);
        return false;
    }
    if (program.server.durability.is_loading) {
        tick_wake(&program.tick);
    }
    return main_start_heartbeat();
}

static void main_log_http(const char *what, const char *address, int64_t port, bool has_tls) {
    log_write(LOG_NOTICE, "%s address=\"%s port %lld\" tls=%s", what, address, (long long)port,
              has_tls ? "yes" : "no");
}

/* The metrics-port and the web-port. */
static bool main_start_http(void) {
    const struct settings *settings = &program.server.settings;
    char error[HTTP_ERROR_MAX];
    if (program.http_fd >= 0) {
        program.metrics = metrics_start(program.http_fd, &program.loop, &program.server,
                                        program.http_certificate, program.http_key, error);
        if (program.metrics == NULL) {
            log_write(LOG_WARNING, "cannot start: %s", error);
            return false;
        }
        main_log_http("metrics", settings->metrics_bind, settings->metrics_port,
                      program.http_certificate != NULL);
    }
    if (program.web_fd >= 0) {
        program.web = web_start(program.web_fd, &program.loop, &program.server,
                                program.web_certificate, program.web_key, error);
        if (program.web == NULL) {
            log_write(LOG_WARNING, "cannot start: %s", error);
            return false;
        }
        main_log_http("page", settings->web_bind, settings->web_port,
                      program.web_certificate != NULL);
        program.tick.release_others = web_release_answers;
        program.tick.drain_others = web_drain;
        program.tick.others = program.web;
    }
    return true;
}

static void main_wake_tick(void *tick) {
    tick_wake(tick);
}

static void main_resume_jobs(struct server *server) {
    board_task_resume(server);
    job_board_begin(server, &window_job);
    job_board_begin(server, &rating_job);
    job_board_begin(server, &hold_job);
    job_board_begin(server, &ban_shadow_job);
    job_board_begin(server, &job_board_stale);
}

static bool main_start(void) {
    program.tick.stop_listening = main_stop_listening;
    program.tick.context = &program.listeners;
    program.server.jobs.resume = main_resume_jobs;
    program.server.shadows.run = ban_shadow_run_call;
    program.tick.acceptor = &program.listeners.acceptor;
    program.tick.tls = &program.tls;
    program.server.tls.prepare = tls_settings_prepare;
    program.server.tls.end = tls_settings_end;
    program.server.tls.context = &program.tls;
    if (!server_life_init(&program.server, command_count()) || uv_loop_init(&program.loop) != 0) {
        return false;
    }
    for (int i = 0; i < SIGNALS; i++) {
        if (uv_signal_init(&program.loop, &program.signals[i]) != 0 ||
            uv_signal_start(&program.signals[i], main_on_signal, signal_numbers[i]) != 0) {
            return false;
        }
        uv_unref((uv_handle_t *)&program.signals[i]); /* the loop lives without them */
    }
    player_keys_init(&program.server.acl.player_keys);
    player_keys_set(&program.server.acl.player_keys, &program.server.settings);
    main_read_player_keys(true);
    if (!tick_init(&program.tick, &program.loop, &program.server) ||
        uv_timer_init(&program.loop, &program.second) != 0 ||
        uv_timer_start(&program.second, main_keep_info, SECOND_MS, SECOND_MS) != 0) {
        return false;
    }
    uv_unref((uv_handle_t *)&program.second);
    main_keep_info(&program.second);
    acceptor_log(&program.listeners);
    program.tick.replicator =
        replicator_create(&program.server, &program.loop, main_wake_tick, &program.tick);
    return program.tick.replicator != NULL && main_start_http() && main_start_persistence();
}

static void main_run(void) {
    uv_run(&program.loop, UV_RUN_DEFAULT);
    /* Closing libuv's handles restores the default actions of the signals. One of them could then kill a server that is
     * freeing its boards, and hide that it ended cleanly. */
    sigset_t signals;
    sigemptyset(&signals);
    for (int i = 0; i < SIGNALS; i++) {
        sigaddset(&signals, signal_numbers[i]);
    }
    sigprocmask(SIG_BLOCK, &signals, NULL);
    replicator_stop(program.tick.replicator);
    /* The last group, if all is on disk that this server has told others to have; else 0. */
    uint64_t group = persistence_synced_group(program.persistence);
    uint64_t clean_group = group == persistence_last_group(program.persistence) ? group : 0;
    persistence_stop(program.persistence);
    main_end_if_fatal();
    if (clean_group > 0) {
        replicator_end_cleanly(program.tick.replicator, clean_group);
    }
    if (program.metrics != NULL) {
        metrics_stop(program.metrics);
    }
    if (program.web != NULL) {
        web_stop(program.web);
    }
    for (int i = 0; i < SIGNALS; i++) {
        uv_close((uv_handle_t *)&program.signals[i], NULL);
    }
    if (program.heartbeat.is_running) {
        uv_close((uv_handle_t *)&program.heartbeat.timer, NULL);
    }
    connection_stop_verifier(&program.tick.verifier);
    uv_close((uv_handle_t *)&program.second, NULL);
    uv_run(&program.loop, UV_RUN_DEFAULT);
    CHECK(uv_loop_close(&program.loop) == 0);
    replicator_destroy(program.tick.replicator);
    persistence_destroy(program.persistence);
    tick_deinit(&program.tick);
    main_free_certificates();
    if (program.metrics != NULL) {
        metrics_destroy(program.metrics);
    }
    if (program.web != NULL) {
        web_destroy(program.web);
    }
    server_life_deinit(&program.server);
    tls_settings_close(&program.tls);
}

int main(int argc, char **argv) {
    int status;
    if (main_answer(argc, argv, &status)) {
        return status;
    }
    service_init();
    char error[PERSISTENCE_ERROR_MAX];
    program.server.clock.is_to_be_reset = main_take_reset_clock(&argc, argv);
    execute_init(command_table);
    if (!main_prepare(argc, argv, error)) {
        return main_fail_with(error);
    }
    struct settings *settings = &program.server.settings;
    enum process_side side = settings->daemonize ? process_daemonize() : PROCESS_DAEMON;
    if (side == PROCESS_PARENT) {
        _exit(EXIT_SUCCESS);
    }
    if (side == PROCESS_FAILED) {
        return main_fail_with("cannot go to the background");
    }
    fault_watch(main_describe_command, &program.tick);
    fault_set_report(settings->crash_log_enabled);
    process_leave_orphans();
    /* After daemonizing: the next calls start threads, which a fork would lose together with the
     * locks they hold. */
    memory_init();
    clock_calibrate();
    settings->maxclients = process_raise_descriptor_limit(
        settings->maxclients, settings->io_threads, settings_web_connections(settings));
    if (!main_start()) {
        acceptor_leave(&program.listeners);
        return main_fail_with("cannot start: out of memory or descriptors");
    }
    const char *pidfile = settings->pidfile != NULL ? settings->pidfile : "";
    if (pidfile[0] != '\0') {
        process_write_pidfile(pidfile);
    }
    main_warn_of_ignored_settings();
    main_warn_of_layouts_without_today();
    process_warn(&(struct surroundings){
        .tcp_backlog = settings->tcp_backlog,
        .maxmemory = settings->maxmemory,
    });
    program.state = PROGRAM_LOADS;
    main_note_ready();
    main_run();
    if (pidfile[0] != '\0') {
        process_remove_pidfile(pidfile);
    }
    bool is_fine = !program.server.ending.has_failed;
    log_write(LOG_NOTICE, "bye");
    log_close();
    settings_deinit(settings);
    return is_fine ? EXIT_SUCCESS : EXIT_FAILURE;
}
