/* Settings that Redis and Valkey have and this server does not, so that a stock redis.conf starts it.
 *
 *     hz 10                  ignored: it changes nothing that a client could rely on here
 *     cluster-enabled no     ignored: this is how it is here
 *     cluster-enabled yes    an error: ignoring it would be unsafe
 *
 * What this server has, with its own name or an older one, is in setting_table and settings_aliases,
 * which are looked at first. */
#include "server/settings/setting_private.h"

const struct setting_redis setting_redis_table[] = {
    {"hash-max-listpack-entries hash-max-listpack-value hash-max-ziplist-entries "
     "hash-max-ziplist-value zset-max-listpack-entries zset-max-listpack-value "
     "zset-max-ziplist-entries zset-max-ziplist-value",
     NULL, "boards and hashes are kept in one form, whatever their size"},
    {"list-compress-depth list-max-listpack-size list-max-ziplist-size list-max-ziplist-entries "
     "list-max-ziplist-value set-max-intset-entries set-max-listpack-entries "
     "set-max-listpack-value hll-sparse-max-bytes stream-node-max-bytes stream-node-max-entries "
     "stream-idmp-duration stream-idmp-maxsize vset-force-single-threaded-execution",
     NULL, "there are no lists, sets, streams and other types"},
    {"hz dynamic-hz active-expire-effort activerehashing activedefrag active-defrag-cycle-max "
     "active-defrag-cycle-min active-defrag-cycle-us active-defrag-ignore-bytes "
     "active-defrag-max-scan-fields active-defrag-threshold-lower active-defrag-threshold-upper "
     "jemalloc-bg-thread lazyfree-lazy-expire lazyfree-lazy-server-del lazyfree-lazy-user-del "
     "lazyfree-lazy-user-flush replica-lazy-flush slave-lazy-flush",
     NULL, "expiry, growth and freeing go in small steps, with nothing to tune"},
    {"maxmemory-samples maxmemory-eviction-tenacity lfu-decay-time lfu-log-factor "
     "lazyfree-lazy-eviction replica-ignore-maxmemory slave-ignore-maxmemory",
     NULL, "nothing is ever evicted"},
    {"dbfilename rdbchecksum rdbcompression rdb-del-sync-files rdb-key-save-delay "
     "rdb-save-incremental-fsync rdb-version-check key-load-delay sanitize-dump-payload",
     NULL, "snapshots have names and a format of their own; dump.rdb is not read"},
    {"appendfilename aof-disable-auto-gc aof-rewrite-incremental-fsync aof-timestamp-enabled "
     "aof-use-rdb-preamble no-appendfsync-on-rewrite",
     NULL, "the journal has names and a format of its own, and is synced during snapshots, too"},
    {"aof-load-truncated", "yes", "what a crash left torn at a journal's end is cut off at start"},
    {"aof-load-corrupt-tail-max-size", "0",
     "a damaged journal is never loaded in part; leaderboard-server --check DIR --fix repairs it"},
    {"repl-diskless-load repl-diskless-sync repl-diskless-sync-delay "
     "repl-diskless-sync-max-replicas repl-diskless-sync-period repl-disable-tcp-nodelay "
     "repl-mptcp mptcp dual-channel-replication-enabled replica-full-sync-buffer-limit "
     "replica-ignore-disk-write-errors propagation-error-behavior",
     NULL, "replication has one way to copy boards"},
    {"cluster-enabled", "no", "this server is no cluster node (docs/scale/cluster.md)"},
    {"cluster-allow-pubsubshard-when-down cluster-allow-reads-when-down "
     "cluster-allow-replica-migration cluster-announce-bus-port cluster-announce-client-ipv4 "
     "cluster-announce-client-ipv6 cluster-announce-client-port cluster-announce-client-tls-port "
     "cluster-announce-hostname cluster-announce-human-nodename cluster-announce-ip "
     "cluster-announce-port cluster-announce-tls-port cluster-blacklist-ttl "
     "cluster-compatibility-sample-ratio cluster-config-file cluster-config-save-behavior "
     "cluster-databases cluster-link-sendbuf-limit cluster-manual-failover-timeout "
     "cluster-migration-barrier cluster-node-timeout cluster-port cluster-preferred-endpoint-type "
     "cluster-replica-no-failover cluster-replica-validity-factor cluster-require-full-coverage "
     "cluster-slave-no-failover cluster-slave-validity-factor "
     "cluster-slot-migration-handoff-max-lag-bytes cluster-slot-migration-log-max-len "
     "cluster-slot-migration-write-pause-timeout cluster-slot-stats-enabled "
     "slot-migration-max-failover-repl-bytes",
     NULL, "they only matter with cluster-enabled yes"},
    {"events-per-io-thread io-threads-do-reads lookahead max-new-connections-per-cycle "
     "max-new-tls-connections-per-cycle prefetch-batch-max-size tcp-keepalive-probes",
     NULL, "io-threads, maxclients and tcp-keepalive are all that is set of connections"},
    {"aof-rewrite-cpulist aof_rewrite_cpulist bgsave-cpulist bgsave_cpulist bio-cpulist "
     "bio_cpulist server-cpulist server_cpulist disable-thp oom-score-adj oom-score-adj-values "
     "supervised",
     NULL, "processors and memory are the service manager's; systemd is told of the start unasked"},
    {"always-show-logo availability-zone crash-memcheck-enabled "
     "hash-seed ignore-warnings locale-collate proc-title-template set-proc-title "
     "watchdog-period",
     NULL, "no logo, title, zone or sort order is set"},
    {"commandlog-large-reply-max-len commandlog-large-request-max-len "
     "commandlog-reply-larger-than commandlog-request-larger-than hide-user-data-from-log "
     "key-memory-histograms latency-tracking-info-percentiles log-timestamp-format",
     NULL,
     "the log has one format of times, and neither members nor values; SLOWLOG and LATENCY "
     "have no more settings"},
    {"busy-reply-threshold lua-replicate-commands lua-time-limit enable-debug-command "
     "enable-module-command enable-protected-configs gopher-enabled",
     NULL, "there are no scripts, modules and DEBUG, and what is fixed stays fixed"},
    {"shutdown-timeout", NULL, "shutdown-drain-timeout says how long the end may take"},
    {"shutdown-on-sigint shutdown-on-sigterm", "default",
     "signals end the server as SHUTDOWN without words does"},
    {"import-mode", "no", "keys expire during an import, too"},
    {"include", "", "other files are not read: put their lines into this one"},
    {"loadmodule", "", "modules of Redis cannot be loaded"},
    {"bind-source-addr", "", "the system chooses the address of links to a master"},
    {"unixsocketgroup", "",
     "the socket's group is that of the server's user: start it with the group that is to connect"},
    {"socket-mark-id", "0", "sockets carry no mark for firewalls and routes"},
    {"rdma-bind", "", "clients connect over TCP and Unix sockets"},
    {"rdma-port", "0", "clients connect over TCP and Unix sockets"},
    {"rdma-completion-vector rdma-rx-size", NULL, "they only matter with rdma-port"},
    {"tls-cluster", "no", "this server is no cluster node (docs/scale/cluster.md)"},
    {"tls-client-cert-file tls-client-key-file tls-client-key-file-pass", "",
     "links to a master show tls-cert-file, which must be good for clients, too"},
    {"tls-dh-params-file", "", "OpenSSL chooses the parameters of DHE"},
    {"tls-auto-reload-interval", "0", "certificates are read again at SIGHUP and CONFIG SET"},
    {NULL, NULL, NULL},
};

bool setting_redis_take(struct setting_redis_place *place, struct bytes *name) {
    while (place->rest.size == 0) {
        place->row = place->row == NULL ? setting_redis_table : place->row + 1;
        if (place->row->names == NULL) {
            return false;
        }
        place->rest = bytes_from_text(place->row->names);
    }
    *name = bytes_take_word(&place->rest);
    place->count++;
    return true;
}

bool setting_redis_find(struct bytes name, struct setting_redis_place *place) {
    struct bytes other;
    *place = (struct setting_redis_place){.row = NULL};
    while (setting_redis_take(place, &other)) {
        if (bytes_equal_ignoring_case(name, other)) {
            return true;
        }
    }
    return false;
}

bool setting_redis_ignore(struct settings *settings, const struct setting_redis_place *place,
                          const struct bytes *values, size_t count, char *reason) {
    const char *only = place->row->only;
    CHECK(place->count <= SETTING_REDIS_MAX);
    if (only != NULL && (count != 1 || !bytes_is(values[0], only))) {
        return setting_words_fail(reason, "%s%s%s", place->row->why,
                                  only[0] != '\0' ? ", so the only value is " : "", only);
    }
    settings->is_ignored[place->count - 1] = true;
    return true;
}

bool setting_redis_next_ignored(const struct settings *settings, struct setting_redis_place *place,
                                struct bytes *name) {
    while (setting_redis_take(place, name)) {
        if (settings->is_ignored[place->count - 1]) {
            return true;
        }
    }
    return false;
}
