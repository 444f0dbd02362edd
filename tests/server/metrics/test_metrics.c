/* The metrics as text, from figures that the test makes. */
#include "server/commands/admin/admin.h"
#include "server/commands/table.h"
#include "server/metrics/metrics.h"
#include "server/replication/replication.h"
#include "tests/support/harness.h"

struct fixture {
    struct harness *harness;
    struct session *session;
    struct figures *figures;
    struct buffer text;
};

static int begin(void **state) {
    struct fixture *fixture = calloc(1, sizeof *fixture);
    fixture->harness = harness_create(NULL);
    fixture->session = harness_connect(fixture->harness);
    fixture->figures = calloc(1, figures_size(command_count()));
    *state = fixture;
    return 0;
}

static int end(void **state) {
    struct fixture *fixture = *state;
    buffer_deinit(&fixture->text);
    harness_destroy(fixture->harness);
    free(fixture->figures);
    free(fixture);
    return 0;
}
#define FIXTURE_TEST(name) TEST_GIVEN(name, begin, end, struct fixture *f)

static const char *print(struct fixture *fixture, enum metrics_format format) {
    buffer_clear(&fixture->text);
    figures_take(&fixture->harness->server, fixture->figures);
    metrics_print(fixture->figures, format, &fixture->text);
    buffer_append(&fixture->text, "", 1);
    assert_false(fixture->text.is_broken);
    return fixture->text.at;
}

/* The line is there, as a whole. */
static void expect_line(const char *text, const char *line) {
    const char *whole = formatted("\n%s\n", line);
    if (strstr(text, whole) == NULL) {
        fail_msg("no line \"%s\" in %s", line, text);
    }
}

FIXTURE_TEST(what_commands_did_is_seen) {
    harness_run(f->harness, f->session, "ZADD a 1 ann 2 bob 3 cid");
    harness_run(f->harness, f->session, "ZADD b 1 ann");
    harness_run(f->harness, f->session, "ZREM a bob");
    harness_run(f->harness, f->session, "HSET h f v");
    harness_run(f->harness, f->session, "SELECT 3");
    harness_run(f->harness, f->session, "ZADD c 1 ann 5 bob");
    harness_run(f->harness, f->session, "EXPIRE c 100");
    harness_run(f->harness, f->session, "ZADD c x ann");
    harness_run(f->harness, f->session, "ZADD c");
    const char *text = print(f, METRICS_OPENMETRICS);
    expect_line(text, "leaderboard_keys{database=\"0\"} 3");
    expect_line(text, "leaderboard_boards{database=\"0\"} 2");
    expect_line(text, "leaderboard_members{database=\"0\"} 3");
    expect_line(text, "leaderboard_members{database=\"3\"} 2");
    expect_line(text, "leaderboard_expiring_keys{database=\"3\"} 1");
    assert_null(strstr(text, "database=\"1\""));
    expect_line(text, "leaderboard_command_duration_seconds_count{command=\"zadd\"} 4");
    expect_line(text,
                "leaderboard_command_duration_seconds_bucket{command=\"zadd\",le=\"+Inf\"} 4");
    expect_line(text, "leaderboard_command_failures_total{command=\"zadd\"} 1");
    expect_line(text, "leaderboard_command_rejections_total{command=\"zadd\"} 1");
    expect_line(text, "leaderboard_errors_total{prefix=\"ERR\"} 2");
    expect_line(text, "leaderboard_clients 1");
    harness_run(f->harness, f->session, "FLUSHALL");
    expect_line(print(f, METRICS_OPENMETRICS), "leaderboard_members{database=\"0\"} 0");
}

FIXTURE_TEST(numbers_are_exact) {
    struct stats *stats = &f->harness->server.stats;
    stats->long_tick_wall_ns = UINT64_C(9007199254740993000); /* not a double */
    stats->long_tick_cpu_ns = 1;
    stats->tick_longest_us = 1500000;
    stats->input_bytes = UINT64_MAX;
    f->harness->server.settings.maxmemory = 0;
    f->harness->server.clock.lead_us = -1250000;
    const char *text = print(f, METRICS_OPENMETRICS);
    expect_line(text, "leaderboard_long_tick_wall_seconds_total 9007199254.740993");
    expect_line(text, "leaderboard_long_tick_cpu_seconds_total 0.000000001");
    expect_line(text, "leaderboard_tick_longest_seconds 1.5");
    expect_line(text, "leaderboard_network_received_bytes_total 18446744073709551615");
    expect_line(text, "leaderboard_memory_limit_bytes 0");
    expect_line(text, "leaderboard_clock_lead_seconds -1.25");
}

FIXTURE_TEST(a_histogram_is_cumulative_and_loses_nothing) {
    struct durations *ticks = &f->harness->server.stats.ticks;
    durations_add(ticks, 1000);       /* 1 us */
    durations_add(ticks, 2000);       /* 2 us */
    durations_add(ticks, 5000);       /* 8 us */
    durations_add(ticks, 8000000000); /* 8 s: beyond the last bucket shown */
    const char *text = print(f, METRICS_OPENMETRICS);
    expect_line(text, "leaderboard_tick_duration_seconds_bucket{le=\"1e-06\"} 1");
    expect_line(text, "leaderboard_tick_duration_seconds_bucket{le=\"4e-06\"} 2");
    expect_line(text, "leaderboard_tick_duration_seconds_bucket{le=\"1.6e-05\"} 3");
    expect_line(text, "leaderboard_tick_duration_seconds_bucket{le=\"4.194304\"} 3");
    expect_line(text, "leaderboard_tick_duration_seconds_bucket{le=\"+Inf\"} 4");
    expect_line(text, "leaderboard_tick_duration_seconds_count 4");
    expect_line(text, "leaderboard_tick_duration_seconds_sum 8.000008");
}

FIXTURE_TEST(the_two_formats_differ_as_their_specifications_say) {
    const char *text = print(f, METRICS_OPENMETRICS);
    assert_non_null(strstr(text, "# TYPE leaderboard_clock_steps counter\n"));
    assert_non_null(strstr(text, "# UNIT leaderboard_uptime_seconds seconds\n"));
    assert_non_null(strstr(text, "# TYPE leaderboard_build info\n"));
    assert_string_equal(text + strlen(text) - 6, "# EOF\n");
    text = print(f, METRICS_PROMETHEUS);
    assert_non_null(strstr(text, "# TYPE leaderboard_clock_steps_total counter\n"));
    assert_non_null(strstr(text, "# TYPE leaderboard_build_info gauge\n"));
    assert_null(strstr(text, "# UNIT"));
    assert_null(strstr(text, "# EOF"));
}

FIXTURE_TEST(the_longest_name_of_a_replica_is_a_whole_label) {
    char name[253 + 1];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    struct session *replica = harness_connect(f->harness);
    harness_run(f->harness, replica, "REPLCONF listening-port 65535");
    harness_run(f->harness, replica, formatted("REPLCONF ip-address %s", name));
    replication_add_replica(&f->harness->server, replica->replica, REPLICA_ONLINE);
    expect_line(print(f, METRICS_OPENMETRICS),
                formatted("leaderboard_replica_online{replica=\"%s:65535\"} 1", name));
}

FIXTURE_TEST(replication_is_seen_from_both_ends) {
    struct replication *replication = &f->harness->server.replication;
    struct session *replica = harness_connect(f->harness);
    harness_run(f->harness, replica, "REPLCONF listening-port 7001");
    replication_add_replica(&f->harness->server, replica->replica, REPLICA_ONLINE);
    harness_run(f->harness, replica, "REPLCONF ACK 5");
    replication->group = 8;
    replication->counters.full_syncs = 1;
    replication->counters.copied_size = 1000;
    replication->counters.streamed_size = 70;
    f->harness->wall_us += 1500000;
    server_update_time(&f->harness->server);
    const char *text = print(f, METRICS_OPENMETRICS);
    expect_line(text, "leaderboard_replica 0");
    expect_line(text, "leaderboard_replication_group 8");
    expect_line(text, "leaderboard_connected_replicas 1");
    expect_line(text, "leaderboard_good_replicas 1");
    expect_line(text, "leaderboard_replica_online{replica=\"127.0.0.1:7001\"} 1");
    expect_line(text, "leaderboard_replica_lag_groups{replica=\"127.0.0.1:7001\"} 3");
    expect_line(text, "leaderboard_replica_lag_seconds{replica=\"127.0.0.1:7001\"} 1.5");
    expect_line(text, "leaderboard_replication_full_copies_total 1");
    expect_line(text, "leaderboard_replication_sent_bytes_total{what=\"copies\"} 1000");
    expect_line(text, "leaderboard_replication_sent_bytes_total{what=\"groups\"} 70");
    assert_null(strstr(text, "\nleaderboard_master_link_up "));
    harness_run(f->harness, f->session, "REPLICAOF 127.0.0.1 7002");
    f->harness->wall_us += 2000000;
    server_update_time(&f->harness->server);
    text = print(f, METRICS_OPENMETRICS);
    expect_line(text, "leaderboard_replica 1");
    expect_line(text, "leaderboard_master_link_up 0");
    expect_line(text, "leaderboard_master_link_down_seconds 2");
    replication->link = REPLICATION_LINK_CONNECTED;
    expect_line(print(f, METRICS_OPENMETRICS), "leaderboard_master_link_up 1");
    harness_run(f->harness, f->session, "CONFIG RESETSTAT");
    expect_line(print(f, METRICS_OPENMETRICS), "leaderboard_replication_full_copies_total 0");
}

FIXTURE_TEST(more_replicas_than_are_shown_are_counted) {
    for (int i = 0; i < FIGURES_REPLICAS_MAX + 3; i++) {
        struct session *replica = harness_connect(f->harness);
        harness_run(f->harness, replica, "REPLCONF listening-port 7001");
        replication_add_replica(&f->harness->server, replica->replica, REPLICA_ONLINE);
    }
    expect_line(print(f, METRICS_OPENMETRICS), "leaderboard_connected_replicas 19");
    assert_int_equal(f->figures->replication.shown, FIGURES_REPLICAS_MAX);
}

FIXTURE_TEST(an_error_prefix_cannot_break_a_line) {
    stats_count_error(&f->harness->server.stats, "A\"\\\nB");
    expect_line(print(f, METRICS_OPENMETRICS), "leaderboard_errors_total{prefix=\"A___B\"} 1");
}

/* Units end the names of families, names are there once, and each has a text. */
FIXTURE_TEST(families_keep_to_the_conventions) {
    OWNED char *text = strdup(print(f, METRICS_OPENMETRICS));
    char family[128] = "";
    unsigned count = 0;
    char *save = NULL;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        char name[128];
        char unit[32];
        if (sscanf(line, "# TYPE %127s", name) == 1) {
            assert_null(strstr(line + 1 + strlen(line), formatted("# TYPE %s ", name)));
            snprintf(family, sizeof family, "%s", name);
            count++;
        } else if (sscanf(line, "# UNIT %127s %31s", name, unit) == 2) {
            assert_string_equal(name, family);
            assert_true(strlen(name) > strlen(unit) + 1);
            assert_string_equal(name + strlen(name) - strlen(unit), unit);
        } else if (line[0] != '#') {
            assert_memory_equal(line, family, strlen(family));
        }
    }
    assert_in_range(count, 70, 200);
}

/* Both print the row's field: here a number that either could have had from elsewhere. */
FIXTURE_TEST(info_and_the_metrics_say_the_same_of_a_figure) {
    const struct bytes everything = BYTES("everything");
    struct server *server = &f->harness->server;
    unsigned count = 0;
    harness_run(f->harness, f->session, "ZADD a 1 ann 2 bob 3 cid");
    harness_run(f->harness, f->session, "ZADD a x ann");
    harness_run(f->harness, f->session, "ZRANGE a 0 -1");
    harness_run(f->harness, f->session, "SUBSCRIBE c");
    const char *text = print(f, METRICS_PROMETHEUS);
    BUFFER(info, 0);
    info_print(server, server->clock.now_ms, &everything, 1, &info);
    buffer_append(&info, "", 1);
    for (const struct figure *row = figures_table; row < figures_table + figures_row_count; row++) {
        const char *line =
            row->info != NULL ? strstr(info.at, formatted("\r\n%s:", row->info)) : NULL;
        if (line != NULL && row->metric != NULL && row->label == NULL &&
            row->of == FIGURE_OF_FIGURES && row->type == FIGURE_U64 && row->per_unit == 0 &&
            strstr(row->metric, "memory") == NULL) {
            const char *suffix = row->kind == FIGURE_COUNTER ? "_total" : "";
            expect_line(text, formatted("%s%s %llu", row->metric, suffix,
                                        strtoull(strchr(line, ':') + 1, NULL, 10)));
            count++;
        }
    }
    assert_in_range(count, 30, 60);
}

static void expect_once(const char *one, const char *other) {
    if (one != NULL && one[0] != '\0' && other != NULL && strcmp(one, other) == 0) {
        fail_msg("two rows have the name %s", one);
    }
}

TEST(a_name_stands_in_one_row) {
    const struct figure *end = figures_table + figures_row_count;
    for (const struct figure *one = figures_table; one < end; one++) {
        assert_true(one->metric == NULL || (one->place > 0 && one->help != NULL));
        assert_in_range(one->place, 0, FIGURE_PLACES - 1);
        for (const struct figure *other = one + 1; other < end; other++) {
            expect_once(one->metric, other->metric);
            if (one->of == other->of) {
                expect_once(one->info, other->info);
                expect_once(one->api, other->api);
            }
        }
    }
}

TEST(the_accept_header_chooses_the_format) {
    assert_int_equal(metrics_choose(NULL), METRICS_OPENMETRICS);
    assert_int_equal(metrics_choose("*/*"), METRICS_OPENMETRICS);
    assert_int_equal(metrics_choose("text/plain"), METRICS_PROMETHEUS);
    assert_int_equal(metrics_choose("text/plain;version=0.0.4;q=1,*/*;q=0.1"), METRICS_PROMETHEUS);
    assert_int_equal(metrics_choose("application/openmetrics-text;version=1.0.0,text/plain;q=0.5"),
                     METRICS_OPENMETRICS);
}
