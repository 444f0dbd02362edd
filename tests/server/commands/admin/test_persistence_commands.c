/* BGSAVE BGREWRITEAOF SAVE LASTSAVE SHUTDOWN and INFO's Persistence section, by bytes in and bytes
 * out. A fake replaces persistence.c: it returns what a test wants, and records its calls. */
#include "server/dispatch/command.h"
#include "server/dispatch/shutdown.h"
#include "server/durability/persistence.h"
#include "server/sessions/job.h"
#include "tests/support/harness.h"
#include "tests/support/noted_replicator.h"

/* ---- the fake ---- */

struct persistence {
    enum persistence_status status; /* of everything it is asked */
    unsigned begun, saved, ended;
    enum persistence_ending ending; /* of the last one */
    struct persistence_info info;
    /* of a stream: what is read next, so many pieces, and then the end */
    bool is_busy, is_streaming, is_waiting;
    unsigned pieces;
    enum stream_status stream_end;
};

static struct persistence fake;

static enum persistence_status answer(char *error) {
    if (fake.status == PERSISTENCE_FAILED) {
        snprintf(error, PERSISTENCE_ERROR_MAX, "cannot write /data/x: No space left on device");
    }
    return fake.status;
}

#define UNUSED __attribute__((unused))

struct persistence *persistence_open(UNUSED const struct settings *settings, UNUSED char *error) {
    return &fake;
}

bool persistence_start(UNUSED struct persistence *persistence,
                       UNUSED const struct persistence_host *host, UNUSED uv_loop_t *loop,
                       UNUSED void (*changed)(void *context), UNUSED void *context,
                       UNUSED char *error) {
    return true;
}

void persistence_stop(UNUSED struct persistence *persistence) {
}

void persistence_destroy(UNUSED struct persistence *persistence) {
}

bool persistence_end_tick(UNUSED struct persistence *persistence) {
    return false;
}

bool persistence_step(UNUSED struct persistence *persistence) {
    return false;
}

void persistence_second(UNUSED struct persistence *persistence) {
}

uint64_t persistence_last_group(UNUSED const struct persistence *persistence) {
    return 1;
}

uint64_t persistence_safe_group(UNUSED const struct persistence *persistence) {
    return 1;
}

uint64_t persistence_complete_group(UNUSED const struct persistence *persistence) {
    return 1;
}

bool persistence_holds_readers(UNUSED const struct persistence *persistence) {
    return false;
}

enum persistence_status persistence_begin_snapshot(struct persistence *persistence, char *error) {
    persistence->begun++;
    return answer(error);
}

enum persistence_status persistence_save(struct persistence *persistence, char *error) {
    persistence->saved++;
    return answer(error);
}

enum persistence_status persistence_prepare_end(struct persistence *persistence,
                                                enum persistence_ending ending, char *error) {
    persistence->ended++;
    persistence->ending = ending;
    return answer(error);
}

const char *persistence_prepare_settings(UNUSED struct persistence *persistence,
                                         const struct settings *wanted, char *reason) {
    if (!wanted->appendonly) {
        return NULL;
    }
    snprintf(reason, SETTING_ERROR_MAX, "no directory");
    return "appendonly";
}

void persistence_commit_settings(UNUSED struct persistence *persistence) {
}

void persistence_abandon_settings(UNUSED struct persistence *persistence) {
}

void persistence_describe(const struct persistence *persistence, struct persistence_info *info) {
    *info = persistence->info;
}

bool persistence_stream_may_begin(const struct persistence *persistence) {
    return !persistence->is_busy && !persistence->is_streaming;
}

enum persistence_status persistence_stream_begin(struct persistence *persistence, char *error) {
    persistence->is_streaming = persistence->status == PERSISTENCE_OK;
    return answer(error);
}

enum stream_status persistence_stream_read(struct persistence *persistence, char *at, size_t room,
                                           size_t *size, char *error) {
    assert_true(persistence->is_streaming && room >= 5);
    if (persistence->pieces == 0) {
        snprintf(error, PERSISTENCE_ERROR_MAX, "given up");
        return persistence->stream_end;
    }
    persistence->pieces--;
    memcpy(at, "piece", 5);
    *size = 5;
    return STREAM_PIECE;
}

bool persistence_stream_waits(const struct persistence *persistence) {
    return persistence->is_waiting;
}

const struct snapshot_footer *
persistence_stream_footer(UNUSED const struct persistence *persistence) {
    static const struct snapshot_footer footer = {
        .sequence = 7, .time_us = INT64_C(1767225600000000), .board_count = 2, .member_count = 3};
    return &footer;
}

void persistence_stream_end(struct persistence *persistence) {
    persistence->is_streaming = false;
}

/* ---- fixture ---- */

static int setup(void **state) {
    struct harness *harness = harness_create(NULL);
    fake = (struct persistence){.info = {.is_last_save_ok = true, .is_journal_ok = true}};
    harness->server.persistence = &fake;
    *state = harness;
    return 0;
}

#define DISK_TEST(name) HARNESS_TEST_WITH(name, setup)

/* ---- LB.SNAPSHOT ---- */

/* The harness would wait for the end. */
static void send_snapshot(struct harness *h, struct session *s) {
    struct bytes args[] = {BYTES("LB.SNAPSHOT")};
    struct request request = {.args = args, .count = 1, .size = args[0].size};
    struct reply reply;
    buffer_clear(&h->reply);
    reply_init(&reply, &h->reply, 2);
    reply.is_silent = s->reply_mode == SESSION_REPLY_OFF;
    server_update_time(&h->server);
    execute_request(&h->server, s, command_find_request(&request), &request, &reply);
}

static void ask(struct harness *h, struct session *s) {
    send_snapshot(h, s);
    assert_int_equal(h->reply.size, 0);
}

static void take_step(struct harness *h, struct session *s) {
    (void)job_list_step(&h->server, 0, true);
    if (s->is_pushed) {
        server_end_push(&h->server, s);
    }
}

static const char *take_answer(struct harness *h, struct session *s) {
    struct reply reply;
    struct job *job = job_list_find_done(&h->server);
    assert_ptr_equal(job, s->job);
    reply_init(&reply, &s->output, 2);
    job_answer(&h->server, job, &reply);
    assert_null(s->job);
    assert_false(fake.is_streaming);
    return harness_output(s);
}

DISK_TEST(a_backup_is_sent_in_pieces) {
    fake.pieces = 2;
    fake.stream_end = STREAM_END;
    ask(h, s);
    take_step(h, s); /* begins */
    assert_true(fake.is_streaming);
    take_step(h, s);
    assert_string_equal(harness_output(s), "$5\r\npiece\r\n");
    fake.is_waiting = true;
    take_step(h, s);
    assert_string_equal(harness_output(s), "");
    assert_false(job_list_has_steps(&h->server));
    fake.is_waiting = false;
    assert_true(job_list_has_steps(&h->server));
    take_step(h, s);
    assert_string_equal(harness_output(s), "$5\r\npiece\r\n");
    take_step(h, s);
    assert_string_equal(take_answer(h, s),
                        "+END group=7 time=2026-01-01T00:00:00Z boards=2 members=3\r\n");
}

DISK_TEST(a_backup_that_fails_ends_with_an_error) {
    fake.stream_end = STREAM_FAILED;
    ask(h, s);
    take_step(h, s);
    take_step(h, s);
    assert_string_equal(take_answer(h, s), "-ERR given up\r\n");
    fake.status = PERSISTENCE_FAILED;
    ask(h, s);
    take_step(h, s);
    assert_string_equal(take_answer(h, s),
                        "-ERR cannot write /data/x: No space left on device\r\n");
}

DISK_TEST(a_backup_waits_for_a_save_and_a_client_that_does_not_read) {
    fake.pieces = 100;
    fake.is_busy = true;
    ask(h, s);
    assert_false(job_list_has_steps(&h->server));
    fake.is_busy = false;
    take_step(h, s);
    s->handed_size = 1 << 20;
    assert_false(job_list_has_steps(&h->server));
    h->wall_us += 59000000;
    server_update_time(&h->server);
    assert_false(job_list_has_steps(&h->server));
    h->wall_us += 2000000;
    server_update_time(&h->server);
    assert_true(job_list_has_steps(&h->server));
    take_step(h, s);
    assert_string_equal(take_answer(h, s),
                        "-ERR the backup's reader took nothing for a minute\r\n");
    s->handed_size = 0;
}

DISK_TEST(a_client_that_goes_ends_its_backup) {
    fake.pieces = 100;
    ask(h, s);
    take_step(h, s);
    assert_true(fake.is_streaming);
    harness_disconnect(h, s);
    assert_false(fake.is_streaming);
    assert_int_equal(h->server.jobs.count, 0);
}

DISK_TEST(few_backups_are_waited_for) {
    for (int i = 0; i < 4; i++) {
        struct session *other = harness_connect(h);
        ask(h, other);
    }
    harness_expect(h, s, "LB.SNAPSHOT", "-TRYAGAIN 4 backups are being read or wait already\r\n");
    harness_expect(h, s, "CLIENT REPLY OFF", "");
    ask(h, s);
    assert_null(s->job);
}

DISK_TEST(without_memory_there_is_no_backup) {
    ask(h, s); /* so that the reply's buffer has room */
    harness_disconnect(h, s);
    s = harness_connect(h);
    memory_fail_at(1);
    send_snapshot(h, s);
    memory_fail_at(0);
    assert_memory_equal(h->reply.at, "-OOM out of memory\r\n", h->reply.size);
    assert_null(s->job);
}

/* ---- BGSAVE, BGREWRITEAOF, SAVE, LASTSAVE ---- */

DISK_TEST(a_snapshot_is_begun_in_either_words) {
    harness_expect(h, s, "BGSAVE", "+Background saving started\r\n");
    harness_expect(h, s, "bgsave Schedule", "+Background saving started\r\n");
    harness_expect(h, s, "BGREWRITEAOF", "+Background append only file rewriting started\r\n");
    assert_int_equal(fake.begun, 3);
    assert_int_equal(fake.saved, 0);
}

DISK_TEST(bad_words_begin_none) {
    harness_expect(h, s, "BGSAVE now", "-ERR syntax error\r\n");
    harness_expect(h, s, "BGSAVE SCHEDULE now", "-ERR syntax error\r\n");
    assert_int_equal(fake.begun + fake.saved, 0);
}

DISK_TEST(a_second_snapshot_is_refused_in_the_words_of_redis) {
    fake.status = PERSISTENCE_BUSY;
    harness_expect(h, s, "BGSAVE", "-ERR Background save already in progress\r\n");
    harness_expect(h, s, "BGSAVE SCHEDULE", "-ERR Background save already in progress\r\n");
    harness_expect(h, s, "SAVE", "-ERR Background save already in progress\r\n");
    harness_expect(h, s, "BGREWRITEAOF",
                   "-ERR Background append only file rewriting already in progress\r\n");
}

DISK_TEST(what_fails_says_why) {
    fake.status = PERSISTENCE_FAILED;
    static const char why[] = "-ERR cannot write /data/x: No space left on device\r\n";
    harness_expect(h, s, "BGSAVE", why);
    harness_expect(h, s, "BGREWRITEAOF", why);
    harness_expect(h, s, "SAVE", why);
}

DISK_TEST(save_answers_when_it_is_done) {
    harness_expect(h, s, "SAVE", "+OK\r\n");
    assert_int_equal(fake.saved, 1);
    harness_expect(h, s, "MULTI", "+OK\r\n");
    harness_expect(h, s, "SAVE", "-ERR Command not allowed inside a transaction\r\n");
    harness_expect(h, s, "DISCARD", "+OK\r\n");
    assert_int_equal(fake.saved, 1);
}

DISK_TEST(a_transaction_may_begin_a_snapshot) {
    harness_expect(h, s, "MULTI", "+OK\r\n");
    harness_expect(h, s, "BGSAVE", "+QUEUED\r\n");
    harness_expect(h, s, "EXEC", "*1\r\n+Background saving started\r\n");
    assert_int_equal(fake.begun, 1);
}

DISK_TEST(lastsave_is_the_time_of_the_last_snapshot) {
    fake.info.last_save_s = 1767225000;
    harness_expect(h, s, "LASTSAVE", ":1767225000\r\n");
}

SERVER_TEST(without_a_disk_nothing_can_be_saved_and_that_is_said) {
    static const char none[] = "-ERR this server runs without a disk: nothing can be saved\r\n";
    harness_expect(h, s, "BGSAVE", none);
    harness_expect(h, s, "BGREWRITEAOF", none);
    harness_expect(h, s, "SAVE", none);
    harness_expect(h, s, "LASTSAVE", ":1767225600\r\n");
    harness_run(h, s, "INFO persistence");
    assert_non_null(strstr(h->reply.at, "\r\nloading:0\r\n"));
    assert_non_null(strstr(h->reply.at, "\r\nrdb_last_bgsave_status:ok\r\n"));
    assert_non_null(strstr(h->reply.at, "\r\nrdb_last_save_time:1767225600\r\n"));
    assert_non_null(strstr(h->reply.at, "\r\naof_enabled:0\r\n"));
    harness_expect(h, s, "SHUTDOWN", "");
    assert_true(h->server.ending.is_asked);
}

DISK_TEST(while_boards_are_loaded_nothing_is_saved) {
    static const char loading[] = "-LOADING Redis is loading the dataset in memory\r\n";
    h->server.durability.is_loading = true;
    harness_expect(h, s, "BGSAVE", loading);
    harness_expect(h, s, "BGREWRITEAOF", loading);
    harness_expect(h, s, "SAVE", loading);
    harness_expect_prefix(h, s, "LASTSAVE", ":");
    harness_expect(h, s, "SHUTDOWN SAVE", "");
    assert_int_equal(fake.ending, PERSISTENCE_END_NOSAVE);
    shutdown_finish(&h->server);
    assert_int_equal(fake.ending, PERSISTENCE_END_NOSAVE);
    h->server.durability.is_loading = false;
}

/* ---- SHUTDOWN ---- */

DISK_TEST(shutdown_saves_as_it_is_told) {
    static const struct {
        const char *line;
        enum persistence_ending ending;
        bool is_now;
    } samples[] = {
        {"SHUTDOWN", PERSISTENCE_END_AS_SET, false},
        {"SHUTDOWN SAVE", PERSISTENCE_END_SAVE, false},
        {"SHUTDOWN NOSAVE NOW", PERSISTENCE_END_NOSAVE, true},
        {"SHUTDOWN NOW SAVE FORCE", PERSISTENCE_END_SAVE, true},
    };
    for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++) {
        h->server.ending.is_asked = false;
        harness_expect(h, s, samples[i].line, "");
        assert_int_equal(fake.ended, i + 1);
        assert_int_equal(fake.ending, samples[i].ending);
        assert_true(h->server.ending.is_asked);
        assert_int_equal(h->server.ending.is_now, samples[i].is_now);
    }
    harness_expect(h, s, "SHUTDOWN SAVE NOSAVE", "-ERR syntax error\r\n");
    assert_int_equal(fake.ended, 4);
}

DISK_TEST(shutdown_that_cannot_save_goes_on_unless_it_is_forced) {
    fake.status = PERSISTENCE_FAILED;
    static const char *const lines[] = {"SHUTDOWN", "SHUTDOWN SAVE", "SHUTDOWN NOW"};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        harness_expect(h, s, lines[i], "-ERR Errors trying to SHUTDOWN. Check logs.\r\n");
    }
    assert_false(h->server.ending.is_asked);
    harness_expect(h, s, "SHUTDOWN FORCE", "");
    assert_true(h->server.ending.is_asked);
}

DISK_TEST(what_changes_while_clients_are_drained_is_saved_too) {
    harness_expect(h, s, "SHUTDOWN", "");
    shutdown_finish(&h->server);
    assert_int_equal(fake.ended, 2);
    assert_int_equal(fake.ending, PERSISTENCE_END_AS_SET);

    harness_expect(h, s, "SHUTDOWN SAVE", "");
    shutdown_finish(&h->server);
    assert_int_equal(fake.ending, PERSISTENCE_END_NOSAVE);
    fake.info.changes = 1;
    shutdown_finish(&h->server);
    assert_int_equal(fake.ending, PERSISTENCE_END_SAVE);
    assert_false(h->server.ending.has_failed);

    fake.status = PERSISTENCE_FAILED;
    shutdown_finish(&h->server);
    assert_true(h->server.ending.has_failed);
}

/* ---- INFO ---- */

static void expect_persistence(struct harness *h, struct session *s, const char *text) {
    assert_string_equal(harness_run(h, s, "INFO persistence"),
                        formatted("$%zu\r\n%s\r\n", strlen(text), text));
}

#define SNAPSHOT_FIELDS                                                                            \
    "current_cow_peak:0\r\ncurrent_cow_size:0\r\ncurrent_cow_size_age:0\r\n"                       \
    "current_fork_perc:0.00\r\nsnapshot_members_saved:100\r\n"                                     \
    "rdb_changes_since_last_save:7\r\nrdb_bgsave_in_progress:1\r\nrdb_last_save_time:1767225000\r" \
    "\nrdb_last_bgsave_status:err\r\nrdb_last_bgsave_time_sec:3\r\nrdb_current_bgsave_time_sec:2"  \
    "\r\nrdb_saves:5\r\nrdb_last_cow_size:0\r\naof_enabled:1\r\naof_rewrite_in_progress:1\r\n"     \
    "aof_rewrite_scheduled:0\r\naof_last_rewrite_time_sec:3\r\naof_current_rewrite_time_sec:2\r\n" \
    "aof_last_bgrewrite_status:err\r\naof_rewrites:5\r\naof_last_write_status:err\r\n"             \
    "aof_last_cow_size:0\r\n"
#define JOURNAL_FIELDS                                                                             \
    "aof_current_size:1000\r\naof_base_size:600\r\naof_pending_rewrite:0\r\n"                      \
    "aof_buffer_length:50\r\naof_pending_bio_fsync:1\r\naof_delayed_fsync:4\r\n"                   \
    "journal_group:30\r\njournal_written_group:29\r\njournal_synced_group:20\r\n"                  \
    "journal_fsync_longest_us:1500\r\n"

static const struct persistence_info busy = {
    .loading_start_s = 1767225500,
    .loading_total_size = 2000,
    .loading_loaded_size = 500,
    .loading_members = 12,
    .loading_percent = 25,
    .loading_eta_s = 9,
    .changes = 7,
    .is_saving = true,
    .last_save_s = 1767225000,
    .last_save_seconds = 3,
    .current_save_seconds = 2,
    .save_count = 5,
    .saved_members = 100,
    .is_journal_on = true,
    .journal_size = 1000,
    .journal_base_size = 600,
    .base_size = 600,
    .waiting_size = 50,
    .group = 30,
    .written_group = 29,
    .synced_group = 20,
    .delayed_sync_count = 4,
    .sync_longest_us = 1500,
};

DISK_TEST(info_tells_of_snapshot_and_journal) {
    fake.info = busy;
    expect_persistence(
        h, s, "# Persistence\r\nloading:0\r\nasync_loading:0\r\n" SNAPSHOT_FIELDS JOURNAL_FIELDS);
    /* With the system deciding when to fsync, no command waits for it. */
    h->server.settings.appendfsync = SETTING_APPENDFSYNC_NO;
    harness_run(h, s, "INFO persistence");
    assert_non_null(strstr(h->reply.at, "\r\naof_pending_bio_fsync:0\r\n"));
}

DISK_TEST(info_tells_how_far_loading_is) {
    fake.info = busy;
    fake.info.is_journal_on = false;
    h->server.durability.is_loading = true;
    harness_run(h, s, "INFO persistence");
    assert_non_null(strstr(h->reply.at, "# Persistence\r\nloading:1\r\n"));
    assert_non_null(strstr(h->reply.at, "\r\naof_enabled:0\r\n"));
    assert_null(strstr(h->reply.at, "aof_current_size"));
    assert_non_null(strstr(h->reply.at, "\r\nloading_start_time:1767225500\r\n"
                                        "loading_total_bytes:2000\r\nloading_loaded_bytes:500\r\n"
                                        "loading_loaded_perc:25.00\r\nloading_eta_seconds:9\r\n"
                                        "loading_loaded_members:12\r\n"));
    h->server.durability.is_loading = false;
    harness_run(h, s, "INFO persistence");
    assert_null(strstr(h->reply.at, "loading_start_time"));
}
