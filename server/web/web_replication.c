/* Replication as JSON: the role, the link to the master, and the replicas. */
#include "server/web/web_parts.h"

static void web_replication_put_error(struct json *json, const char *error) {
    if (error[0] != '\0') {
        json_text(json, "error", bytes_from_text(error));
    } else {
        json_null(json, "error");
    }
}

static void web_replication_put_master(struct json *json,
                                       const struct figures_replication *figures) {
    if (!figures->is_replica) {
        json_null(json, "master");
        return;
    }
    json_open(json, "master", '{');
    json_text(json, "address", bytes_from_text(figures->master));
    json_text(json, "link", bytes_from_text(replication_link_name(figures->link)));
    json_integer(json, "heard_ms", figures->heard_ms);
    json_integer(json, "down_ms", figures->down_ms);
    json_integer(json, "unapplied_groups", (int64_t)figures->unapplied_groups);
    json_integer(json, "copy_size", (int64_t)figures->copy_size);
    json_integer(json, "copied_size", (int64_t)figures->copy_read_size);
    web_replication_put_error(json, figures->error);
    json_close(json, '}');
}

static const char *web_replication_name_of(enum replica_state state) {
    switch (state) {
    case REPLICA_WAITS:
        return "waiting";
    case REPLICA_COPIES:
        return "copying";
    case REPLICA_ONLINE:
        return "online";
    case REPLICA_HANDSHAKE:
    case REPLICA_STATES:
        break;
    }
    return "handshake";
}

static void web_replication_put_replicas(struct json *json,
                                         const struct figures_replication *figures) {
    json_integer(json, "replica_count", (int64_t)figures->replicas);
    json_open(json, "replicas", '[');
    for (uint32_t i = 0; i < figures->shown; i++) {
        const struct figures_replica *replica = &figures->shown_replicas[i];
        json_open(json, NULL, '{');
        json_text(json, "address", bytes_from_text(replica->address));
        json_text(json, "state", bytes_from_text(web_replication_name_of(replica->state)));
        json_integer(json, "lag_groups", (int64_t)replica->lag_groups);
        json_integer(json, "heard_ms", replica->lag_ms);
        json_close(json, '}');
    }
    json_close(json, ']');
}

static void web_replication_put_sync(struct json *json, const struct figures_replication *figures) {
    if (figures->sync.state == SYNC_OFF) {
        json_null(json, "sync");
        return;
    }
    json_open(json, "sync", '{');
    json_text(json, "state", bytes_from_text(sync_state_name(figures->sync.state)));
    json_integer(json, "replicas_wanted", (int64_t)figures->sync.wanted);
    json_integer(json, "replicas_counted", (int64_t)figures->sync.counted);
    json_boolean(json, "may_have_forgotten", figures->sync.has_lost_durability);
    json_integer(json, "promises", (int64_t)figures->sync.promises);
    json_integer(json, "promises_needed", (int64_t)figures->sync.promises_needed);
    json_integer(json, "unacknowledged_groups", (int64_t)figures->sync.unsafe);
    json_integer(json, "held_ms", figures->sync.held_ms);
    json_close(json, '}');
}

void web_put_replication(struct json *json, const struct figures_replication *figures) {
    json_open(json, "replication", '{');
    json_text(json, "role", bytes_from_text(figures->is_replica ? "replica" : "master"));
    json_integer(json, "group", (int64_t)figures->group);
    json_boolean(json, "failing_over", figures->is_failing_over);
    json_integer(json, "backlog", (int64_t)figures->backlog_size);
    web_replication_put_master(json, figures);
    web_replication_put_replicas(json, figures);
    web_replication_put_sync(json, figures);
    json_close(json, '}');
}
