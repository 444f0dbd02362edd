/* INFO, by bytes in and bytes out. */
#include "tests/support/harness.h"

/* The field's value in a reply, cut into out; "" if it is not there. */
static const char *field(const char *reply, const char *name, char *out, size_t size) {
    const char *wanted = formatted("\n%s:", name);
    const char *at = strstr(reply, wanted);
    out[0] = '\0';
    if (at != NULL) {
        at += strlen(wanted);
        snprintf(out, size, "%.*s", (int)strcspn(at, "\r"), at);
    }
    return out;
}

static void expect_field(struct harness *h, struct session *s, const char *section,
                         const char *name, const char *expected) {
    char value[256];
    const char *reply = harness_run_format(h, s, "INFO %s", section);
    assert_string_equal(field(reply, name, value, sizeof value), expected);
}

static int64_t number(struct harness *h, struct session *s, const char *section, const char *name) {
    char value[256];
    const char *reply = harness_run_format(h, s, "INFO %s", section);
    assert_string_not_equal(field(reply, name, value, sizeof value), "");
    return strtoll(value, NULL, 10);
}

static uint32_t count_of(const char *text, const char *word) {
    uint32_t count = 0;
    for (; (text = strstr(text, word)) != NULL; text++) {
        count++;
    }
    return count;
}

/* ---- sections ---- */

SERVER_TEST(sections_come_in_one_order_each_once) {
    static const char *const titles[] = {"# Server\r\n",      "# Clients\r\n", "# Memory\r\n",
                                         "# Persistence\r\n", "# Stats\r\n",   "# Replication\r\n",
                                         "# CPU\r\n",         "# Modules\r\n", "# Errorstats\r\n",
                                         "# Cluster\r\n",     "# Keyspace\r\n"};
    const char *at = harness_run(h, s, "INFO");
    assert_int_equal(count_of(at, "# "), sizeof titles / sizeof titles[0]);
    for (size_t i = 0; i < sizeof titles / sizeof titles[0]; i++) {
        at = strstr(at, titles[i]);
        assert_non_null(at);
    }
    assert_int_equal(count_of(harness_run(h, s, "INFO keyspace cpu KEYSPACE"), "# "), 2);
    at = strstr(h->reply.at, "# CPU\r\n");
    assert_non_null(at);
    assert_non_null(strstr(at, "\r\n\r\n# Keyspace\r\n"));
}

SERVER_TEST(default_is_all_but_commandstats_and_latencystats) {
    uint32_t shown = count_of(harness_run(h, s, "INFO default"), "# ");
    assert_int_equal(count_of(harness_run(h, s, "INFO all"), "# "), shown + 2);
    assert_int_equal(count_of(harness_run(h, s, "INFO everything"), "# "), shown + 2);
    assert_int_equal(count_of(harness_run(h, s, "info Commandstats DEFAULT"), "# "), shown + 1);
}

SERVER_TEST(an_unknown_section_is_empty) {
    harness_expect(h, s, "INFO nothing", "$0\r\n\r\n");
    harness_expect(h, s, "INFO \"\"", "$0\r\n\r\n");
    s->protocol = 3;
    harness_expect(h, s, "INFO nothing", "=4\r\ntxt:\r\n");
    harness_expect(h, s, "INFO cluster", "=34\r\ntxt:# Cluster\r\ncluster_enabled:0\r\n\r\n");
}

SERVER_TEST(every_line_is_a_heading_a_field_or_empty) {
    harness_run(h, s, "ZADD a 1 m");
    harness_run(h, s, "ZADD a x m");
    const char *at = strchr(harness_run(h, s, "INFO everything"), '\n') + 1;
    for (; *at != '\0'; at = strchr(at, '\n') + 1) {
        size_t size = strcspn(at, "\r");
        assert_int_equal(at[size + 1], '\n');
        assert_true(size == 0 || at[0] == '#' || memchr(at, ':', size) != NULL);
    }
}

/* ---- fields ---- */

SERVER_TEST(server_tells_versions_process_and_uptime) {
    expect_field(h, s, "server", "redis_version", SERVER_REDIS_VERSION);
    expect_field(h, s, "server", "leaderboard_version", SERVER_VERSION);
    expect_field(h, s, "server", "redis_mode", "standalone");
    expect_field(h, s, "server", "tcp_port", "6379");
    expect_field(h, s, "server", "run_id", h->server.about.run_id);
    expect_field(h, s, "server", "executable", h->server.about.executable_path);
    expect_field(h, s, "server", "config_file", "");
    expect_field(h, s, "server", "arch_bits", formatted("%zu", sizeof(void *) * 8));
    expect_field(h, s, "server", "uptime_in_seconds", "0");
    h->wall_us += (INT64_C(86400) * 3 + 17) * 1000000;
    expect_field(h, s, "server", "uptime_in_seconds", "259217");
    expect_field(h, s, "server", "uptime_in_days", "3");
    assert_true(number(h, s, "server", "process_id") > 1);
    assert_int_equal(strlen(h->server.about.run_id), 40);
}

SERVER_TEST(clients_are_counted) {
    expect_field(h, s, "clients", "connected_clients", "1");
    harness_connect(h);
    expect_field(h, s, "clients", "connected_clients", "2");
    expect_field(h, s, "clients", "maxclients", "10000");
    expect_field(h, s, "clients", "blocked_clients", "0");
}

SERVER_TEST(memory_is_what_was_allocated) {
    int64_t before = number(h, s, "memory", "used_memory");
    for (int i = 0; i < 10000; i++) {
        harness_run_format(h, s, "ZADD a %d member:%d", i, i);
    }
    int64_t after = number(h, s, "memory", "used_memory");
    assert_true(after > before + 10000 * 20);
    assert_true(number(h, s, "memory", "used_memory_peak") >= after);
    assert_true(number(h, s, "memory", "used_memory_rss") > 0);
    assert_true(number(h, s, "memory", "used_memory_dataset") > 10000 * 20);
    assert_true(number(h, s, "memory", "used_memory_startup") > 0);
    expect_field(h, s, "memory", "maxmemory", "0");
    expect_field(h, s, "memory", "maxmemory_human", "0B");
    expect_field(h, s, "memory", "maxmemory_policy", "noeviction");
    h->server.settings.maxmemory = UINT64_C(3) << 29;
    expect_field(h, s, "memory", "maxmemory_human", "1.50G");
}

SERVER_TEST(lazily_freed_boards_are_told) {
    harness_run(h, s, "ZADD a 1 m");
    harness_run(h, s, "DEL a");
    expect_field(h, s, "memory", "lazyfree_pending_objects", "1");
    while (registry_free_step(h->server.registry, 100)) {}
    expect_field(h, s, "memory", "lazyfree_pending_objects", "0");
    expect_field(h, s, "memory", "lazyfreed_objects", "1");
}

SERVER_TEST(nothing_is_loading) {
    expect_field(h, s, "persistence", "loading", "0");
    expect_field(h, s, "persistence", "aof_enabled", "0");
    expect_field(h, s, "persistence", "rdb_last_save_time", "1767225600");
}

SERVER_TEST(stats_are_counters) {
    harness_run(h, s, "ZADD a 1 m");
    harness_run(h, s, "EXISTS a b");
    harness_run(h, s, "PEXPIRE a 1");
    h->wall_us += 2000;
    harness_run(h, s, "TTL a");
    h->server.stats.connections_received = 11;
    h->server.stats.tick_longest_us = 1234;
    expect_field(h, s, "stats", "keyspace_hits", "1");
    expect_field(h, s, "stats", "keyspace_misses", "2");
    expect_field(h, s, "stats", "expired_keys", "1");
    expect_field(h, s, "stats", "evicted_keys", "0");
    expect_field(h, s, "stats", "total_connections_received", "11");
    expect_field(h, s, "stats", "tick_longest_us", "1234");
    int64_t processed = number(h, s, "stats", "total_commands_processed");
    assert_int_equal(number(h, s, "stats", "total_commands_processed"), processed + 1);
}

SERVER_TEST(rates_are_those_of_the_last_sample) {
    struct stats *stats = &h->server.stats;
    stats_sample(stats, 1000000);
    stats->commands_processed += 500;
    stats->input_bytes += 4096;
    stats->output_bytes += 1024;
    stats_sample(stats, 1002000);
    expect_field(h, s, "stats", "instantaneous_ops_per_sec", "250");
    expect_field(h, s, "stats", "instantaneous_input_kbps", "2.00");
    expect_field(h, s, "stats", "instantaneous_output_kbps", "0.50");
}

SERVER_TEST(this_server_is_a_master_without_replicas) {
    char value[256];
    expect_field(h, s, "replication", "role", "master");
    expect_field(h, s, "replication", "connected_slaves", "0");
    field(harness_run(h, s, "INFO replication"), "master_replid", value, sizeof value);
    assert_int_equal(strspn(value, "0123456789abcdef"), 40);
}

SERVER_TEST(processor_time_is_told) {
    char value[256];
    static const char *const names[] = {"used_cpu_sys", "used_cpu_user", "used_cpu_sys_children",
                                        "used_cpu_user_children"};
    for (size_t i = 0; i < 4; i++) {
        field(harness_run(h, s, "INFO cpu"), names[i], value, sizeof value);
        assert_int_equal(strlen(strchr(value, '.')), 7);
    }
}

SERVER_TEST(commandstats_tell_calls_failures_and_refusals) {
    h->server.settings.slowlog_log_slower_than_us = -1;
    harness_run(h, s, "ZADD a 1 m");
    harness_run(h, s, "ZADD a x m");
    harness_run(h, s, "ZADD a");
    harness_run(h, s, "OBJECT ENCODING a");
    const char *zadd =
        strstr(harness_run(h, s, "INFO commandstats"), "\ncmdstat_zadd:calls=2,usec=");
    assert_non_null(zadd);
    zadd = strstr(zadd, ",rejected_calls=");
    assert_non_null(zadd);
    assert_int_equal(strncmp(zadd, ",rejected_calls=1,failed_calls=1\r\n", 34), 0);
    assert_non_null(strstr(h->reply.at, "\ncmdstat_object|encoding:calls=1,usec="));
    assert_null(strstr(h->reply.at, "cmdstat_zscore"));
}

SERVER_TEST(errorstats_count_errors_by_their_first_word) {
    harness_run(h, s, "ZADD a x m");
    harness_run(h, s, "NOSUCH");
    expect_field(h, s, "errorstats", "errorstat_ERR", "count=2");
    expect_field(h, s, "stats", "total_error_replies", "2");
    h->server.settings.maxmemory = 1;
    harness_run(h, s, "ZADD a 1 m");
    expect_field(h, s, "errorstats", "errorstat_OOM", "count=1");
    expect_field(h, s, "errorstats", "errorstat_ERR", "count=2");
}

SERVER_TEST(latencystats_tell_percentiles) {
    struct stats_command *zscore =
        &h->server.stats.commands[command_find_full_name(BYTES("zscore"))];
    for (int i = 0; i < 98; i++) {
        durations_add(&zscore->calls, 2000);
    }
    durations_add(&zscore->calls, 60000);
    durations_add(&zscore->calls, 60000000);
    expect_field(h, s, "latencystats", "latency_percentiles_usec_zscore",
                 "p50=2,p99=64,p99.9=65536");
    expect_field(h, s, "latencystats", "latency_percentiles_usec_zadd", "");
}

SERVER_TEST(keyspace_tells_databases_that_hold_keys) {
    harness_expect(h, s, "INFO keyspace", "$12\r\n# Keyspace\r\n\r\n");
    harness_run(h, s, "ZADD a 1 m");
    expect_field(h, s, "keyspace", "db0", "keys=1,expires=0,avg_ttl=0");
    harness_run(h, s, "SELECT 15");
    harness_run(h, s, "ZADD a 1 m");
    harness_run(h, s, "ZADD b 1 m");
    harness_run(h, s, "ZADD c 1 m");
    harness_run(h, s, "PEXPIRE a 1000");
    harness_run(h, s, "PEXPIRE b 3000");
    expect_field(h, s, "keyspace", "db15", "keys=3,expires=2,avg_ttl=2000");
    expect_field(h, s, "keyspace", "db1", "");
}

SERVER_TEST(without_memory_an_error_is_answered) {
    assert_int_equal(harness_run_failing(h, s, "INFO server", 1)[0], '-');
}

/* Names that redis_exporter reads, and that mean something here. */
SERVER_TEST(info_has_the_names_that_an_exporter_reads) {
    static const char *const names[] = {
        "acl_access_denied_auth",
        "acl_access_denied_channel",
        "acl_access_denied_cmd",
        "acl_access_denied_key",
        "allocator_allocated",
        "allocator_resident",
        "expired_time_cap_reached_count",
        "io_threaded_reads_processed",
        "io_threaded_writes_processed",
        "mem_aof_buffer",
        "mem_not_counted_for_evict",
        "mem_total_replication_buffers",
        "total_reads_processed",
        "total_writes_processed",
        "unexpected_error_replies",
    };
    const char *info = harness_run(h, s, "INFO");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strstr(info, formatted("\r\n%s:", names[i])) == NULL) {
            fail_msg("%s", names[i]);
        }
    }
}
