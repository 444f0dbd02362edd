/* What replicas are sent. See feed.h. */
#include "server/replication/feed.h"

#include <inttypes.h>
#include <string.h>

#include "server/clients/failover.h"
#include "server/durability/persistence.h"
#include "server/replication/history.h"
#include "server/system/log.h"

enum {
    UNSENT_MAX = 512 * 1024, /* of a replica: more is not put into its output */
    READ_MAX = 256 * 1024,
    SECOND_MS = 1000,
};

static struct feed_place *place_of(const struct replica *replica) {
    return replica->feed;
}

static struct replication *replication_of(const struct feed *feed) {
    return &feed->server->replication;
}

/* ---- opening and closing ---- */

static void take_group(void *context, const struct journal_group_head *head, const char *payload) {
    struct feed *feed = context;
    if (head == NULL || !backlog_add(&feed->backlog, head, payload)) {
        feed->has_gap = true;
    }
}

void feed_write_history(struct feed *feed) {
    const struct replication *replication = replication_of(feed);
    struct history history = {.second_until = replication->second_until};
    memcpy(history.id, replication->id, sizeof history.id);
    memcpy(history.second_id, replication->second_id, sizeof history.second_id);
    feed->owes_history = !history_write(feed->server->registry, &history);
    feed->has_gap |= feed->owes_history; /* no memory: nobody may rely on what follows */
}

void feed_close_tick(struct feed *feed) {
    const struct persistence *persistence = feed->server->persistence;
    if (feed->owes_history &&
        persistence_last_group(persistence) != persistence_complete_group(persistence)) {
        feed_write_history(feed);
    }
}

void feed_forget_history(struct feed *feed) {
    struct replication *replication = replication_of(feed);
    struct history history;
    feed_close_tick(feed); /* what this tick has changed is of the new history already */
    if (feed->owes_history && history_read(feed->server->registry, &history)) {
        memcpy(replication->id, history.id, sizeof history.id);
        memcpy(replication->second_id, history.second_id, sizeof history.second_id);
        replication->second_until = history.second_until;
    }
    feed->owes_history = false;
}

/* The keys name another history, which goes on in this one, or none. */
static void begin_history(struct feed *feed, bool had_gap) {
    struct replication *replication = replication_of(feed);
    struct history history;
    if (had_gap) {
        /* Whoever knows the id, and the number of the last group, does not know the keys. */
        replication_make_id(feed->server, replication->id);
        memcpy(replication->second_id, HISTORY_NO_ID, sizeof HISTORY_NO_ID);
        replication->second_until = 0;
    }
    if (had_gap || !history_read(feed->server->registry, &history)) {
        feed_write_history(feed);
    } else {
        feed->owes_history = strcmp(history.id, replication->id) != 0;
    }
}

void feed_open(struct feed *feed) {
    struct replication *replication = replication_of(feed);
    struct persistence *persistence = feed->server->persistence;
    if (feed->is_open) {
        return;
    }
    feed->is_open = true;
    feed->has_gap = false;
    feed->jump_count = feed->server->clock.jump_count;
    feed->deserted_at_ms = feed->server->clock.monotonic_ms;
    backlog_init(&feed->backlog, feed->server->settings.repl_backlog_size);
    bool had_gap = persistence_has_gap(persistence);
    persistence_set_tap(persistence, take_group, feed);
    persistence_clear_gap(persistence);
    if (!replication_is_passive(replication)) {
        begin_history(feed, had_gap);
    }
    log_write(LOG_NOTICE, "replication: backlog begun id=%s group=%" PRIu64 " bytes=%llu",
              replication->id, persistence_last_group(persistence),
              (unsigned long long)feed->backlog.keep_size);
}

static void end_copy(struct feed *feed) {
    if (feed->copy.is_going) {
        persistence_end_stream(feed->server->persistence);
    }
    backlog_leave(&feed->copy.pin);
    feed->copy = (struct feed_copy){.is_going = false};
}

static void close_feed(struct feed *feed) {
    end_copy(feed);
    backlog_clear(&feed->backlog);
    persistence_set_tap(feed->server->persistence, NULL, NULL);
    feed->is_open = false;
}

static void give_up(struct feed *feed, struct replica *replica, const char *reason) {
    struct feed_place *place = place_of(replica);
    if (replica->is_failed) {
        return;
    }
    replica->is_failed = true;
    backlog_leave(&place->cursor);
    log_write(LOG_WARNING, "replica closed id=%llu addr=%s reason=\"%s\" group=%" PRIu64,
              (unsigned long long)replica->session->id, replica->session->address, reason,
              replica->sent_group);
    server_kill_session(feed->server, replica->session);
}

void feed_drop_replicas(struct feed *feed, const char *reason) {
    for (struct replica *replica = replication_of(feed)->replicas; replica != NULL;
         replica = replica->next) {
        give_up(feed, replica, reason);
    }
}

void feed_reset(struct feed *feed, const char *reason) {
    feed_drop_replicas(feed, reason);
    if (feed->is_open) {
        close_feed(feed);
    }
}

static void take_read(void *context, struct feed_disk_place *files, enum feed_disk_result result);

struct feed *feed_create(struct server *server, uv_loop_t *loop, void (*wake)(void *context),
                         void *context) {
    struct feed *feed = memory_allocate_zeroed(sizeof *feed);
    if (feed != NULL) {
        feed->server = server;
        feed->loop = loop;
        feed->wake = wake;
        feed->context = context;
        backlog_init(&feed->backlog, 0);
        feed_disk_init(&feed->disk, take_read, feed);
    }
    return feed;
}

void feed_stop(struct feed *feed) {
    feed_disk_deinit(&feed->disk);
}

void feed_destroy(struct feed *feed) {
    if (feed != NULL) {
        backlog_leave(&feed->copy.pin);
        backlog_clear(&feed->backlog);
        memory_free(feed);
    }
}

/* ---- LB.SYNC ---- */

static bool is_id(const char *id, struct bytes wanted) {
    return bytes_equal(bytes_from_text(id), wanted);
}

/* Does whoever has all groups before this one, of that history, have what is true here, too? */
static bool is_ours(const struct feed *feed, struct bytes id, uint64_t group) {
    const struct replication *replication = replication_of(feed);
    uint64_t last_group = persistence_complete_group(feed->server->persistence);
    if (group == 0 || !history_is_id(id) || is_id(HISTORY_NO_ID, id)) {
        return false;
    }
    return (is_id(replication->id, id) && group - 1 <= last_group) ||
           (is_id(replication->second_id, id) && group - 1 <= replication->second_until);
}

static bool is_on_disk(const struct feed *feed, uint64_t group) {
    char path[sizeof feed->disk.path];
    return group >= feed->disk_from &&
           persistence_find_group(feed->server->persistence, group, path, sizeof path);
}

static bool is_in_backlog(const struct feed *feed, uint64_t group) {
    const struct backlog *backlog = &feed->backlog;
    if (backlog->first == NULL) {
        return group == persistence_complete_group(feed->server->persistence) + 1;
    }
    return group >= backlog_first_group(backlog) && group <= backlog->next_group;
}

/* Can the groups from this one on be sent? */
static bool is_at_hand(const struct feed *feed, uint64_t group) {
    return is_in_backlog(feed, group) || is_on_disk(feed, group);
}

static const char *find_sync_refusal(const struct feed *feed, const struct replication_wish *wish) {
    const struct replication *replication = replication_of(feed);
    const char *refusal = NULL;
    if (feed->quorum != NULL) {
        refusal = quorum_find_sync_refusal(feed->quorum, wish->is_pulling, &wish->term);
    } else if (wish->is_pulling) {
        refusal = "NOMASTERLINK sync-replicas is 0 here";
    }
    if (refusal != NULL || wish->is_pulling) {
        return refusal;
    }
    if (wish->wants_failover && !is_id(replication->id, wish->id)) {
        return "ERR PSYNC FAILOVER replid must match my replid.";
    }
    if (replication_is_replica(replication) && !wish->wants_failover &&
        (!replication->is_whole || replication->link == REPLICATION_LINK_SYNC ||
         !replication_is_up(replication))) {
        return "NOMASTERLINK Can't SYNC while not connected with my master";
    }
    if (replication->failover.state == REPLICATION_FAILOVER_SHIFTS) {
        return "NOMASTERLINK Can't SYNC while failing over";
    }
    return feed->server->persistence == NULL ? "ERR this server runs without a disk" : NULL;
}

static void answer(struct feed *feed, const struct replica *replica, struct reply *reply,
                   bool is_continued) {
    char text[sizeof "CONTINUE " + REPLICATION_ID_SIZE];
    const struct session *session = replica->session;
    snprintf(text, sizeof text, "%s %s", is_continued ? "CONTINUE" : "FULL",
             replication_of(feed)->id);
    reply_simple(reply, text);
    log_write(LOG_NOTICE, "replica %s id=%llu addr=%s port=%u group=%" PRIu64,
              is_continued ? "continues" : "wants a full copy", (unsigned long long)session->id,
              session->address, replica->port, replica->sent_group);
}

void feed_sync(struct feed *feed, struct replica *replica, const struct replication_wish *wish,
               struct reply *reply) {
    struct bytes id = wish->id;
    uint64_t group = wish->group;
    struct replication *replication = replication_of(feed);
    const char *refusal = find_sync_refusal(feed, wish);
    if (refusal != NULL) {
        reply_error(reply, refusal);
        return;
    }
    if (replica->state != REPLICA_HANDSHAKE) {
        reply_error(reply, "ERR this connection is a replica's already");
        return;
    }
    if (wish->wants_failover && feed->quorum != NULL) {
        replication_promote(feed->server);
        reply_simple(reply, "AGREED"); /* it comes again, and presents itself */
        return;
    }
    struct feed_place *place = memory_allocate_zeroed(sizeof *place);
    if (place == NULL) {
        reply_error(reply, "OOM out of memory");
        return;
    }
    if (wish->wants_failover) {
        replication_promote(feed->server);
    }
    feed_open(feed);
    place->disk.fd = -1;
    replica->feed = place;
    bool is_continued = is_ours(feed, id, group) && is_at_hand(feed, group);
    if (is_continued) {
        place->next_group = group;
        place->is_streaming = true;
        replica->ack_group = group - 1;
        replica->sent_group = group - 1;
        replication->counters.partial_syncs++;
    } else {
        replication->counters.full_syncs++;
        replication->counters.partial_sync_failures +=
            history_is_id(id) && !is_id(HISTORY_NO_ID, id);
    }
    replication_add_replica(feed->server, replica, is_continued ? REPLICA_ONLINE : REPLICA_WAITS);
    feed->deserted_at_ms = 0;
    answer(feed, replica, reply, is_continued);
    replica->session->reply_mode = SESSION_REPLY_OFF; /* what follows is no reply */
}

void feed_leave(struct feed *feed, struct replica *replica) {
    struct feed_place *place = place_of(replica);
    if (place != NULL) {
        backlog_leave(&place->cursor);
        feed_disk_leave(&feed->disk, &place->disk);
        memory_free(place);
        replica->feed = NULL;
    }
    if (replication_of(feed)->replica_count == 0) {
        feed->deserted_at_ms = feed->server->clock.monotonic_ms;
    }
}

/* ---- sending ---- */

static size_t unsent(const struct replica *replica) {
    return replica->session->output.size + replica->session->handed_size;
}

static bool is_lost(const struct replica *replica) {
    return replica->is_failed || session_is_void(replica->session);
}

static struct buffer *output_of(struct feed *feed, struct replica *replica) {
    struct session *session = replica->session;
    session->output.size_max = server_output_room(feed->server, session);
    return &session->output;
}

static uint64_t lag_limit(const struct feed *feed) {
    return feed->server->settings.output_limits[SETTING_OUTPUT_REPLICA].hard_bytes;
}

/* Of the replica that has the place; NULL: none has. */
static struct replica *owner_of(const struct feed *feed, const struct feed_disk_place *files) {
    struct replica *replica = replication_of(feed)->replicas;
    while (replica != NULL && &place_of(replica)->disk != files) {
        replica = replica->next;
    }
    return replica;
}

/* The thread has read for a place, or could not. */
static void take_read(void *context, struct feed_disk_place *files, enum feed_disk_result result) {
    struct feed *feed = context;
    struct replica *replica = owner_of(feed, files);
    CHECK(replica != NULL);
    switch (result) {
    case FEED_DISK_READ:
    case FEED_DISK_END:
        break;
    case FEED_DISK_NONE:
        feed->disk_from = persistence_complete_group(feed->server->persistence) + 1;
        give_up(feed, replica, "what it needs next is not in the journal any more");
        break;
    case FEED_DISK_OUT_OF_MEMORY:
        give_up(feed, replica, "no memory to read the journal for it");
    }
    feed->wake(feed->context);
}

/* What was read from the journal, and then more of that. true: there is more to do at once. */
static bool send_from_disk(struct feed *feed, struct replica *replica) {
    struct feed_place *place = place_of(replica);
    struct feed_disk_place *files = &place->disk;
    if (unsent(replica) >= UNSENT_MAX) {
        return false;
    }
    if (files->ready.size > 0) {
        buffer_append(output_of(feed, replica), files->ready.at, files->ready.size);
        replication_of(feed)->counters.streamed_size += files->ready.size;
        buffer_clear(&files->ready);
        place->next_group = files->next_group;
        replica->sent_group = files->next_group - 1;
        return true;
    }
    if (feed->disk.place == files) {
        return false; /* the thread is at it */
    }
    files->next_group = place->next_group;
    (void)feed_disk_ask(&feed->disk, files, feed->loop, feed->server->persistence);
    return false;
}

/* It leaves more unread than memory may hold for it: the journal has that, too, or it is closed. */
static void bound_lag(struct feed *feed, struct replica *replica) {
    struct feed_place *place = place_of(replica);
    uint64_t limit = lag_limit(feed);
    if (limit == 0 || backlog_unread(&feed->backlog, &place->cursor) <= limit) {
        return;
    }
    if (is_on_disk(feed, place->next_group)) {
        backlog_leave(&place->cursor);
        log_write(LOG_NOTICE,
                  "replica is behind, and gets the journal's files id=%llu group=%" PRIu64,
                  (unsigned long long)replica->session->id, place->next_group);
    } else {
        give_up(feed, replica, "it reads too slowly: client-output-buffer-limit replica");
    }
}

/* true: there is more to do at once. */
static bool send_groups(struct feed *feed, struct replica *replica) {
    struct feed_place *place = place_of(replica);
    struct backlog *backlog = &feed->backlog;
    if (place->cursor.chunk == NULL && feed->disk.place != &place->disk &&
        place->disk.ready.size == 0 && backlog_seek(backlog, &place->cursor, place->next_group)) {
        feed_disk_leave(&feed->disk, &place->disk);
    }
    if (place->cursor.chunk == NULL) {
        return !is_in_backlog(feed, place->next_group) && send_from_disk(feed, replica);
    }
    while (unsent(replica) < UNSENT_MAX) {
        const char *at;
        uint64_t last_group;
        size_t size = backlog_read(backlog, &place->cursor, READ_MAX, &at, &last_group);
        if (size == 0) {
            return false;
        }
        buffer_append(output_of(feed, replica), at, size);
        replica->sent_group = last_group;
        place->next_group = last_group + 1;
        replication_of(feed)->counters.streamed_size += size;
    }
    bound_lag(feed, replica);
    return false; /* the loop turns when its socket has taken some */
}

static void note_online(struct replica *replica) {
    const struct feed_place *place = place_of(replica);
    if (replica->state == REPLICA_COPIES && place->is_streaming &&
        replica->ack_group >= place->online_from) {
        replica->state = REPLICA_ONLINE;
        log_write(LOG_NOTICE, "replica has its full copy id=%llu addr=%s group=%" PRIu64,
                  (unsigned long long)replica->session->id, replica->session->address,
                  replica->ack_group);
    }
}

/* ---- full copies ---- */

static bool takes_copy(const struct replica *replica) {
    return replica->state == REPLICA_COPIES && !place_of(replica)->is_streaming &&
           !is_lost(replica);
}

static uint32_t count_waiting(const struct feed *feed, enum replica_state state) {
    uint32_t count = 0;
    for (const struct replica *replica = replication_of(feed)->replicas; replica != NULL;
         replica = replica->next) {
        count += replica->state == state && !is_lost(replica) &&
                 (state != REPLICA_COPIES || takes_copy(replica));
    }
    return count;
}

static void fail_copy(struct feed *feed, const char *reason) {
    for (struct replica *replica = replication_of(feed)->replicas; replica != NULL;
         replica = replica->next) {
        if (takes_copy(replica)) {
            wire_put_given_up(output_of(feed, replica), reason);
            replica->session->is_close_after_reply = true;
            replica->is_failed = true;
        }
    }
    log_write(LOG_WARNING, "full copy given up: %s", reason);
    end_copy(feed);
}

static void begin_copy(struct feed *feed) {
    char error[PERSISTENCE_ERROR_MAX];
    struct persistence *persistence = feed->server->persistence;
    if (!persistence_may_stream(persistence)) {
        return;
    }
    enum persistence_status status = persistence_begin_stream(persistence, error);
    if (status == PERSISTENCE_BUSY) {
        return;
    }
    for (struct replica *replica = replication_of(feed)->replicas; replica != NULL;
         replica = replica->next) {
        if (replica->state == REPLICA_WAITS && !is_lost(replica)) {
            replica->state = REPLICA_COPIES;
        }
    }
    if (status != PERSISTENCE_OK) {
        fail_copy(feed, error);
        return;
    }
    feed->copy = (struct feed_copy){.is_going = true};
    log_write(LOG_NOTICE, "full copy begun replicas=%u", count_waiting(feed, REPLICA_COPIES));
}

/* Keep the groups behind the copy: its last group is known when its walk has ended. */
static void pin_copy(struct feed *feed) {
    struct feed_copy *copy = &feed->copy;
    struct backlog *backlog = &feed->backlog;
    if (copy->is_walked) {
        return;
    }
    copy->group = persistence_stream_group(feed->server->persistence);
    copy->is_walked = copy->group != 0;
    uint64_t next_group = copy->is_walked ? copy->group + 1 : backlog->next_group;
    if (backlog->first != NULL && !backlog_seek(backlog, &copy->pin, next_group) &&
        !is_on_disk(feed, next_group)) {
        fail_copy(feed, "the groups behind it are lost");
    }
}

static bool is_copy_slow(const struct feed *feed) {
    for (const struct replica *replica = replication_of(feed)->replicas; replica != NULL;
         replica = replica->next) {
        if (takes_copy(replica) && unsent(replica) > UNSENT_MAX) {
            return true;
        }
    }
    return false;
}

static void send_piece(struct feed *feed, size_t size) {
    for (struct replica *replica = replication_of(feed)->replicas; replica != NULL;
         replica = replica->next) {
        if (takes_copy(replica)) {
            wire_put_piece(output_of(feed, replica), feed->piece, size);
            replication_of(feed)->counters.copied_size += size;
        }
    }
}

static void complete_copy(struct feed *feed) {
    struct persistence_streamed streamed = persistence_streamed(feed->server->persistence);
    for (struct replica *replica = replication_of(feed)->replicas; replica != NULL;
         replica = replica->next) {
        struct feed_place *place = place_of(replica);
        if (takes_copy(replica)) {
            wire_put_end(output_of(feed, replica), streamed.group, streamed.time_us);
            place->next_group = streamed.group + 1;
            place->online_from = streamed.group;
            place->is_streaming = true;
            replica->sent_group = streamed.group;
            if (!is_at_hand(feed, place->next_group)) {
                give_up(feed, replica, "the groups behind its copy are lost");
            } else if (feed->backlog.first != NULL) {
                (void)!backlog_seek(&feed->backlog, &place->cursor, place->next_group);
            }
        }
    }
    end_copy(feed);
}

/* true: there is more to do at once. */
static bool step_copy(struct feed *feed) {
    char error[PERSISTENCE_ERROR_MAX];
    struct persistence *persistence = feed->server->persistence;
    enum { PIECES_MAX = 4 }; /* in one tick */
    if (!feed->copy.is_going) {
        return false;
    }
    if (count_waiting(feed, REPLICA_COPIES) == 0) {
        end_copy(feed);
        return true;
    }
    pin_copy(feed);
    uint64_t limit = lag_limit(feed);
    if (limit > 0 && backlog_unread(&feed->backlog, &feed->copy.pin) > limit) {
        backlog_leave(&feed->copy.pin);
    }
    if (feed->copy.is_walked && feed->copy.pin.chunk == NULL &&
        !is_at_hand(feed, feed->copy.group + 1)) {
        fail_copy(feed, "more is written meanwhile than client-output-buffer-limit replica allows");
    }
    for (int i = 0; i < PIECES_MAX && feed->copy.is_going; i++) {
        size_t size = 0;
        if (is_copy_slow(feed)) {
            return false;
        }
        switch (
            persistence_read_stream(persistence, feed->piece, sizeof feed->piece, &size, error)) {
        case PERSISTENCE_STREAM_PIECE:
            send_piece(feed, size);
            break;
        case PERSISTENCE_STREAM_WAITS:
            return false;
        case PERSISTENCE_STREAM_END:
            pin_copy(feed);
            complete_copy(feed);
            return true;
        case PERSISTENCE_STREAM_FAILED:
            fail_copy(feed, error);
            return true;
        }
    }
    return feed->copy.is_going;
}

/* ---- the tick ---- */

static void describe(struct feed *feed) {
    struct replication *replication = replication_of(feed);
    replication->backlog_size = feed->is_open ? feed->backlog.keep_size : 0;
    replication->backlog_first_group = backlog_first_group(&feed->backlog);
    replication->backlog_used_size = backlog_size(&feed->backlog);
}

/* Which it acknowledges. */
static void ping(struct feed *feed, struct replica *replica) {
    if (unsent(replica) < UNSENT_MAX) {
        wire_put_ping(output_of(feed, replica), feed->server->clock.now_us, replica->sent_group);
    }
}

bool feed_step(struct feed *feed) {
    struct replication *replication = replication_of(feed);
    bool has_more = false;
    if (!feed->is_open) {
        return false;
    }
    if (feed->has_gap) {
        feed_reset(feed, "groups were lost for lack of memory");
        return true;
    }
    feed->backlog.keep_size = feed->server->settings.repl_backlog_size;
    if (!feed->copy.is_going && count_waiting(feed, REPLICA_WAITS) > 0) {
        begin_copy(feed);
    }
    has_more |= step_copy(feed);
    for (struct replica *replica = replication->replicas; replica != NULL;
         replica = replica->next) {
        if (!is_lost(replica) && place_of(replica)->is_streaming) {
            note_online(replica);
            has_more |= send_groups(feed, replica);
            if (feed->wants_ping) {
                ping(feed, replica);
            }
        }
    }
    feed->wants_ping = false;
    backlog_trim(&feed->backlog);
    describe(feed);
    return has_more;
}

/* A copy goes on when all that share it have taken what was sent, and while it goes on no snapshot is saved. */
static bool is_stuck(const struct feed *feed, struct replica *replica) {
    struct feed_place *place = place_of(replica);
    int64_t now_ms = feed->server->clock.monotonic_ms;
    size_t size = takes_copy(replica) ? unsent(replica) : 0;
    if (size <= UNSENT_MAX || size != place->untaken_size) {
        place->untaken_size = size;
        place->taken_at_ms = now_ms;
    }
    return now_ms - place->taken_at_ms > feed->server->settings.repl_timeout_s * SECOND_MS;
}

void feed_second(struct feed *feed) {
    const struct server *server = feed->server;
    struct replication *replication = replication_of(feed);
    int64_t now_ms = server->clock.monotonic_ms;
    if (!feed->is_open) {
        return;
    }
    if (feed->jump_count != server->clock.jump_count) {
        /* What was to last for a while now ends at another time, which no effect tells. */
        feed_reset(feed, "the clock has jumped: replicas need a new copy");
        return;
    }
    for (struct replica *replica = replication->replicas; replica != NULL;
         replica = replica->next) {
        if (is_lost(replica)) {
            continue;
        }
        if (now_ms - replica->ack_at_ms > server->settings.repl_timeout_s * SECOND_MS) {
            give_up(feed, replica, "it said nothing for repl-timeout");
        } else if (is_stuck(feed, replica)) {
            give_up(feed, replica, "it has taken nothing of its copy for repl-timeout");
        } else {
            ping(feed, replica);
        }
    }
    int64_t ttl_s = server->settings.repl_backlog_ttl_s;
    if (replication->replica_count == 0 && ttl_s > 0 && feed->quorum == NULL &&
        feed->deserted_at_ms != 0 && now_ms - feed->deserted_at_ms > ttl_s * SECOND_MS) {
        log_write(LOG_NOTICE,
                  "replication: backlog ended, as no replica came for repl-backlog-ttl");
        close_feed(feed);
        describe(feed);
    }
}
