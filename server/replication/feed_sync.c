/* LB.SYNC and PSYNC: may a replica be served, and from where on. See feed.h. */
#include <inttypes.h>
#include <string.h>

#include "server/durability/persistence.h"
#include "server/replication/failover.h"
#include "server/replication/feed_parts.h"
#include "server/replication/history.h"
#include "server/replication/replication.h"
#include "server/system/log.h"

static bool feed_sync_is_id(const char *id, struct bytes wanted) {
    return bytes_equal(bytes_from_text(id), wanted);
}

/* Does whoever has all groups before this one, of that history, have what is true here, too? */
static bool feed_sync_is_ours(const struct feed *feed, struct bytes id, uint64_t group) {
    const struct replication *replication = feed_replication(feed);
    uint64_t last_group = persistence_complete_group(feed->server->persistence);
    if (group == 0 || !history_is_id(id) || feed_sync_is_id(HISTORY_NO_ID, id)) {
        return false;
    }
    return (feed_sync_is_id(replication->id, id) && group - 1 <= last_group) ||
           (feed_sync_is_id(replication->second_id, id) && group - 1 <= replication->second_until);
}

static const char *feed_sync_find_sync_refusal(const struct feed *feed,
                                               const struct replication_wish *wish) {
    const struct replication *replication = feed_replication(feed);
    const char *refusal = NULL;
    if (feed->quorum != NULL) {
        refusal = quorum_find_sync_refusal(feed->quorum, wish->is_pulling, &wish->term);
    } else if (wish->is_pulling) {
        refusal = "NOMASTERLINK sync-replicas is 0 here";
    }
    if (refusal != NULL || wish->is_pulling) {
        return refusal;
    }
    if (wish->wants_failover && !feed_sync_is_id(replication->id, wish->id)) {
        return "ERR PSYNC FAILOVER replid must match my replid.";
    }
    if (replication_is_replica(replication) && !wish->wants_failover &&
        (!replication->is_whole || replication->link == REPLICATION_LINK_SYNC ||
         !replication_is_up(replication))) {
        return "NOMASTERLINK Can't SYNC while not connected with my master";
    }
    if (replication_keys(replication) == REPLICATION_KEYS_PROMOTING) {
        return "NOMASTERLINK Can't SYNC while what was received is being applied";
    }
    if (replication->failover.state == REPLICATION_FAILOVER_SHIFTS) {
        return "NOMASTERLINK Can't SYNC while failing over";
    }
    return feed->server->persistence == NULL ? "ERR this server runs without a disk" : NULL;
}

static void feed_sync_answer(struct feed *feed, const struct replica *replica, struct reply *reply,
                             const struct replication_wish *wish, bool is_continued) {
    if (wish->is_redis) {
        feed_redis_answer(replica, wish->is_old, is_continued, reply);
        return;
    }
    char text[sizeof "CONTINUE " + REPLICATION_ID_SIZE];
    const struct session *session = replica->session;
    snprintf(text, sizeof text, "%s %s", is_continued ? "CONTINUE" : "FULL",
             feed_replication(feed)->id);
    reply_simple(reply, text);
    log_write(LOG_NOTICE, "replica %s id=%llu addr=%s port=%u group=%" PRIu64,
              is_continued ? "continues" : "wants a full copy", (unsigned long long)session->id,
              session->address, replica->port, replica->sent_group);
}

void feed_sync(struct feed *feed, struct replica *replica, const struct replication_wish *wish,
               struct reply *reply) {
    struct bytes id = wish->id;
    uint64_t group = wish->group;
    struct replication *replication = feed_replication(feed);
    const char *refusal = feed_sync_find_sync_refusal(feed, wish);
    if (refusal != NULL) {
        reply_error(reply, refusal);
        return;
    }
    if (replica->state != REPLICA_HANDSHAKE) {
        reply_error(reply, "ERR this connection is a replica's already");
        return;
    }
    struct feed_place *place = memory_allocate_zeroed(sizeof *place);
    if (place == NULL) {
        reply_error(reply, "OOM out of memory");
        return;
    }
    if (wish->wants_failover) {
        if (feed->quorum != NULL) {
            quorum_end_hold(feed->quorum, id);
        }
        replication_promote(feed->server);
    }
    if (wish->wants_failover && (feed->quorum != NULL || replication->is_promoting)) {
        memory_free(place);
        reply_simple(reply, "AGREED"); /* not open yet: it comes again, and registers */
        return;
    }
    feed_open(feed);
    place->disk.fd = -1;
    replica->feed = place;
    if (wish->is_redis && !feed_redis_join(feed, replica, wish, &group)) {
        memory_free(place);
        replica->feed = NULL;
        reply_error(reply, "OOM out of memory");
        return;
    }
    bool is_continued = (wish->is_redis ? group != 0 : feed_sync_is_ours(feed, id, group)) &&
                        feed_is_at_hand(feed, group);
    if (is_continued) {
        place->next_group = group;
        place->is_streaming = true;
        replica->ack_group = group - 1;
        replica->sent_group = group - 1;
        replication->counters.partial_syncs++;
    } else {
        replication->counters.full_syncs++;
        replication->counters.partial_sync_failures +=
            id.at != NULL && history_is_id(id) && !feed_sync_is_id(HISTORY_NO_ID, id);
    }
    replication_add_replica(feed->server, replica, is_continued ? REPLICA_ONLINE : REPLICA_WAITS);
    feed->deserted_at_ms = 0;
    feed_sync_answer(feed, replica, reply, wish, is_continued);
    replica->session->reply_mode = SESSION_REPLY_OFF; /* what follows is no reply */
}

void feed_leave(struct feed *feed, struct replica *replica) {
    struct feed_place *place = feed_place_of(replica);
    if (place != NULL) {
        backlog_leave(&place->cursor);
        feed_disk_leave(&feed->disk, &place->disk);
        feed_redis_leave(feed, replica);
        memory_free(place);
        replica->feed = NULL;
    }
    if (feed_replication(feed)->replica_count == 0) {
        feed->deserted_at_ms = feed->server->clock.monotonic_ms;
    }
}
