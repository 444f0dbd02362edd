/* What comes behind the handshake: copies, groups, pings; and acknowledgements. See master_link.h. */
#include "server/replication/master_link.h"

#include <inttypes.h>
#include <stdio.h>

#include "server/replication/replication.h"
#include "server/system/clock.h"
#include "server/system/log.h"

enum {
    INPUT_KEPT = 8 * 1024 * 1024,
    ACK_EVERY_MS = 10,
};

/* ---- copies ---- */

void master_link_stream_begin_copy(struct master_link *link) {
    struct replication *replication = &link->server->replication;
    char error[PERSISTENCE_ERROR_MAX];
    switch (persistence_begin_receive(link->server->persistence, error)) {
    case PERSISTENCE_OK:
        break;
    case PERSISTENCE_BUSY:
        master_link_fail(
            link, "a full copy cannot begin yet: the one before is still being cleared away");
        return;
    case PERSISTENCE_FAILED:
        master_link_fail(link, "a full copy cannot be received: %s", error);
        return;
    }
    link->wants_copy = false;
    replication->copy_read_size = 0;
    replication->copy_at_ms = link->server->clock.monotonic_ms;
    log_write(LOG_NOTICE, "replica: full copy begun master=\"%s %u\"", master_link_host(link),
              (unsigned)master_link_port(link));
    master_link_move(link, LINK_COPY_BEGUN);
}

/* It has replaced the keys, and all that was known of them. false: it does not say which history it is of. */
MUST_CHECK static bool master_link_stream_take_copy(struct master_link *link) {
    struct replication *replication = &link->server->replication;
    replication_note_copy(link->server);
    replicator_note_copy(replication->replicator);
    replication->group = persistence_last_group(link->server->persistence);
    replication->read_group = replication->group;
    if (!replication_take_history(link->server->registry, replication)) {
        return false;
    }
    replication->is_whole = true;
    link->server->durability.has_gap = false;
    return true;
}

void master_link_stream_end_copy(struct master_link *link) {
    bool is_in_place = persistence_abandon_receive(link->server->persistence);
    if (is_in_place && !master_link_stream_take_copy(link)) {
        log_write(LOG_WARNING, "replica: the full copy does not say which history it is of, and is "
                               "asked for again");
    }
}

/* It is loaded, and in place. */
static void master_link_stream_note_adopted(struct master_link *link) {
    struct replication *replication = &link->server->replication;
    (void)persistence_abandon_receive(link->server->persistence); /* what was replaced is freed */
    if (!master_link_stream_take_copy(link)) {
        master_link_fail(link, "the full copy does not say which history it is of");
        return;
    }
    link->next_group = replication->group + 1;
    link->wants_time = true;
    link->wants_ack = true;
    log_write(LOG_NOTICE, "replica: full copy in place id=%s group=%" PRIu64, replication->id,
              replication->group);
    master_link_move(link, LINK_ADOPTED);
    link->failures = 0;
    replication->error[0] = '\0';
}

/* ---- messages ---- */

void master_link_stream_continue(struct master_link *link, struct bytes id) {
    struct replication *replication = &link->server->replication;
    log_write(LOG_NOTICE, "replica: the stream continues master=\"%s %u\" id=%.*s group=%" PRIu64,
              master_link_host(link), (unsigned)master_link_port(link), (int)id.size, id.at,
              link->next_group - 1);
    replication->read_group = link->next_group - 1;
    master_link_move(link, LINK_CONTINUES);
    link->failures = 0;
    link->wants_time = true;
    link->wants_ack = true;
    replication->error[0] = '\0';
}

static bool master_link_stream_refuse(struct master_link *link, const char *reason) {
    snprintf(link->reason, sizeof link->reason, "the master's stream is not valid: %s", reason);
    return false;
}

/* false: it may not come now. */
static bool master_link_stream_take_group(struct master_link *link,
                                          const struct wire_message *message) {
    struct replication *replication = &link->server->replication;
    if (link->state != LINK_STREAMING) {
        return master_link_stream_refuse(link, "a group before the copy is there");
    }
    if (message->head.sequence != link->next_group) {
        return master_link_stream_refuse(link, "a group that is not the next one");
    }
    link->next_group++;
    if (!message->head.is_linked) {
        link->whole_size = link->parsed_size;
        replication->read_group = message->head.sequence;
    }
    replication->counters.received_size += message->whole_size;
    return true;
}

/* Everything here is the master's. A time far ahead of the master's is that of this machine, by which the server
 * has started: it does not count, and would stand still until the master's has come up to it. */
static void master_link_stream_take_time(struct master_link *link, int64_t master_us) {
    struct clock *clock = &link->server->clock;
    if (link->wants_time && clock->now_us - master_us > CLOCK_STEP_US) {
        log_write(LOG_WARNING,
                  "replica: the server's time was ahead of the master's, whose time it takes "
                  "lead_seconds=%" PRId64,
                  (clock->now_us - master_us) / 1000000);
        clock_follow_anew(clock, master_us);
    } else {
        clock_follow(clock, master_us, false);
    }
    link->wants_time = false;
}

/* What is no group is taken at once. */
static bool master_link_stream_take_message(struct master_link *link,
                                            const struct wire_message *message) {
    bool is_copying = link->state == LINK_COPYING;
    char text[WIRE_TEXT_MAX + 1];
    switch (message->kind) {
    case WIRE_GROUP:
        return master_link_stream_take_group(link, message);
    case WIRE_PING:
        if (link->state == LINK_STREAMING) {
            master_link_stream_take_time(link, message->time_us);
            link->wants_ack = true;
            link->asked_group = message->group;
        }
        return true;
    case WIRE_PROBE:
        if (link->state == LINK_STREAMING && link->quorum != NULL) {
            quorum_take_ping(link->quorum, &message->probe);
            link->wants_ack = true;
        }
        return true;
    case WIRE_PIECE:
        if (!is_copying) {
            return master_link_stream_refuse(link, "a piece of a copy that was not asked for");
        }
        struct replication *replication = &link->server->replication;
        staging_add(master_link_staging(link), message->at, message->size);
        replication->copy_read_size += message->size;
        replication->counters.received_copy_size += message->size;
        replication->copy_at_ms = link->server->clock.monotonic_ms;
        return true;
    case WIRE_END:
        if (!is_copying) {
            return master_link_stream_refuse(link, "the end of a copy that was not asked for");
        }
        staging_end(master_link_staging(link));
        link->copy_group = message->group;
        master_link_move(link, LINK_COPY_ENDED);
        return true;
    case WIRE_GIVEN_UP:
        snprintf(link->reason, sizeof link->reason, "the master has given the copy up: %s",
                 log_quote_into(text, sizeof text,
                                (struct bytes){.at = message->at, .size = message->size}));
        return false;
    }
    return master_link_stream_refuse(link, "an unknown message");
}

/* Drop what was taken, once that is all that is whole; linked groups that have come in part stay. Reading stops
 * at INPUT_FULL only while something whole is there (master_link_may_read). */
static void master_link_stream_drop_taken(struct master_link *link) {
    struct buffer *input = &link->input;
    if (apply_is_going(&link->apply) || link->taken_size != link->whole_size) {
        return;
    }
    buffer_drop_front(input, link->whole_size);
    link->parsed_size -= link->whole_size;
    link->taken_size = 0;
    link->whole_size = 0;
    if (input->size == 0 && input->capacity > INPUT_KEPT) {
        buffer_deinit(input);
    }
}

bool master_link_stream_parse(struct master_link *link) {
    while (link->state >= LINK_COPYING && link->state != LINK_LOADING) {
        struct wire_message message;
        const char *reason;
        size_t left = link->input.size - link->parsed_size;
        if (left < link->wanted_size) {
            break;
        }
        enum wire_status status =
            wire_read(link->input.at + link->parsed_size, left, &message, &reason);
        link->wanted_size = message.whole_size;
        if (status == WIRE_PART) {
            break;
        }
        link->wanted_size = 0;
        if (status == WIRE_BAD) {
            return master_link_stream_refuse(link, reason);
        }
        bool is_alone = link->parsed_size == link->whole_size;
        bool is_idle =
            is_alone && link->taken_size == link->whole_size && !apply_is_going(&link->apply);
        link->parsed_size += message.whole_size;
        if (!master_link_stream_take_message(link, &message)) {
            return false;
        }
        if (message.kind != WIRE_GROUP && is_alone) {
            link->whole_size = link->parsed_size; /* nothing to be applied */
            link->taken_size = is_idle ? link->parsed_size : link->taken_size;
            master_link_stream_drop_taken(link);
        }
    }
    return true;
}

/* ---- applying ---- */

/* The keys do not fit the stream: only a full copy helps. */
static void master_link_stream_give_up_keys(struct master_link *link) {
    struct replication *replication = &link->server->replication;
    log_write(LOG_WARNING,
              "replica: %s: the keys here are not those of the master; a full copy "
              "will replace them",
              link->apply.error);
    replication_make_id(link->server, replication->id); /* which nobody knows */
    struct history history = {.second_id = REPLICATION_NO_ID};
    memcpy(history.id, replication->id, sizeof history.id);
    if (!replication_write_history(link->server->registry, &history)) {
        log_write(LOG_WARNING, "replica: no memory to say so in the keys: do not save them");
    }
    if (link->quorum != NULL) {
        quorum_doubt(link->quorum);
    }
    master_link_drop_groups(link);
    master_link_fail(link, "%s", link->apply.error);
}

/* Give the next groups that have come whole to be applied, so many at most, if there is room. */
static void master_link_stream_add_groups(struct master_link *link, uint32_t count_max) {
    struct wire_message message;
    size_t at = link->taken_size;
    for (; at < link->whole_size && apply_has_room(&link->apply) && count_max > 0;
         at += message.whole_size) {
        wire_read_again(link->input.at + at, &message);
        if (message.kind == WIRE_GROUP) {
            apply_add(&link->apply, &message.head, wire_payload(&message));
            count_max--;
        }
    }
    if (!apply_is_going(&link->apply)) {
        link->taken_size = at; /* what came behind the last group */
    }
}

/* Apply what was added, for about budget_ns. */
static enum apply_status master_link_stream_step_groups(struct master_link *link,
                                                        uint64_t budget_ns) {
    struct apply *apply = &link->apply;
    enum apply_status status = apply_step(apply, budget_ns);
    for (uint32_t i = 0; i < apply->group_done; i++) {
        const struct apply_group *group = &apply->groups[i];
        struct replication *replication = &link->server->replication;
        link->taken_size = (size_t)(group->payload - link->input.at) + group->head.size;
        replication->group = group->head.sequence;
        if (group->has_history) {
            (void)!replication_take_history(link->server->registry, replication);
        }
        if (group->head.time_us != 0) {
            clock_follow(&link->server->clock, (int64_t)group->head.time_us, true);
        }
        link->server->durability.is_walk_held = group->head.is_linked;
        link->is_retrying = false;
    }
    if (apply_is_going(apply)) {
        link->server->durability.is_walk_held = true;
    }
    return status;
}

/* true: there is more to do at once. */
bool master_link_stream_apply(struct master_link *link, uint64_t budget_ns) {
    struct apply *apply = &link->apply;
    uint64_t begin = clock_ticks();
    if (link->is_retrying) {
        return false;
    }
    while (master_link_has_groups(link)) {
        uint64_t spent_ns = clock_ticks_to_ns(clock_ticks() - begin);
        if (spent_ns >= budget_ns) {
            return true;
        }
        if (budget_ns == UINT64_MAX) {
            persistence_make_room(link->server->persistence);
        } else if (persistence_is_full(link->server->persistence)) {
            return false; /* the loop is woken when the disk has taken some */
        }
        if (!apply_is_going(apply)) {
            master_link_stream_add_groups(link, UINT32_MAX);
        }
        switch (master_link_stream_step_groups(link, budget_ns - spent_ns)) {
        case APPLY_DONE:
        case APPLY_MORE:
            break;
        case APPLY_OUT_OF_MEMORY:
            log_write(LOG_WARNING, "replica: no memory to apply group %" PRIu64 ": tried again",
                      apply->groups[apply->group_done].head.sequence);
            link->is_retrying = true;
            return false;
        case APPLY_IMPOSSIBLE:
            master_link_stream_give_up_keys(link);
            return false;
        }
    }
    master_link_stream_drop_taken(link);
    return false;
}

bool master_link_stream_finish_group(struct master_link *link) {
    struct persistence *persistence = link->server->persistence;
    link->is_retrying = false;
    while (link->server->durability.is_walk_held) {
        persistence_make_room(persistence);
        if (!apply_is_going(&link->apply)) {
            master_link_stream_add_groups(link, 1); /* or another one would be begun */
        }
        enum apply_status status = master_link_stream_step_groups(link, UINT64_MAX);
        if (status == APPLY_OUT_OF_MEMORY) {
            link->is_retrying = true;
            return false;
        }
        if (status == APPLY_IMPOSSIBLE) {
            master_link_stream_give_up_keys(link);
        }
    }
    return true;
}

bool master_link_stream_step(struct master_link *link, uint64_t budget_ns) {
    if (link->state == LINK_COPYING || link->state == LINK_LOADING) {
        const struct staging *staging = master_link_staging(link);
        bool has_more = persistence_step_receive(link->server->persistence, budget_ns);
        if (staging->state == STAGING_FAILED) {
            master_link_fail(
                link, "the full copy from %s:%u cannot be taken, and is asked for again: %s",
                master_link_host(link), (unsigned)master_link_port(link), staging->error);
            return false;
        }
        if (staging->state == STAGING_ADOPTED) {
            master_link_stream_note_adopted(link);
            has_more = true;
        }
        master_link_watch(link);
        return has_more;
    }
    bool is_clearing = persistence_step_receive(link->server->persistence, budget_ns / 2);
    if (link->state == LINK_WAITS && master_link_has_groups(link)) {
        return master_link_stream_apply(link, budget_ns) || is_clearing;
    }
    if (link->state != LINK_STREAMING) {
        return is_clearing;
    }
    if (link->parsed_size < link->input.size && !apply_is_going(&link->apply) &&
        !master_link_stream_parse(link)) {
        master_link_lose(link); /* what came behind a copy, or while a group was applied in part */
        return false;
    }
    bool has_more = master_link_stream_apply(link, budget_ns);
    if (link->state == LINK_STREAMING && !apply_is_going(&link->apply)) {
        master_link_watch(link);
        if (link->tls != NULL && tls_has_input(link->tls) && master_link_may_read(link)) {
            master_link_take_input(link);
        }
    }
    return has_more || is_clearing;
}

/* ---- acknowledging ---- */

void master_link_stream_say_ack(struct master_link *link, uint64_t group) {
    char number[24], probe_number[24], kept_number[24];
    uint64_t probe = 0;
    bool has_probe = group > 0 && link->quorum != NULL && link->pull_port == 0 &&
                     quorum_acknowledge(link->quorum, &link->kept_group, &probe);
    link->acked_group = group;
    link->acked_at_ms = link->server->clock.monotonic_ms;
    snprintf(number, sizeof number, "%" PRIu64, group);
    snprintf(probe_number, sizeof probe_number, "%" PRIu64, probe);
    snprintf(kept_number, sizeof kept_number, "%" PRIu64, link->kept_group);
    /* FSYNC counts for nothing; a master expects PROBE behind it. */
    const char *const texts[] = {"REPLCONF", "ACK",   number,       "FSYNC",
                                 "0",        "PROBE", probe_number, kept_number};
    master_link_say(link, texts, has_probe ? 8 : 3);
}

static void master_link_stream_on_ack_due(uv_timer_t *timer) {
    struct master_link *link = timer->data;
    master_link_wake(link);
}

void master_link_stream_acknowledge(struct master_link *link) {
    if (link->state != LINK_STREAMING || link->output.size > 0 || master_link_is_redis(link)) {
        return;
    }
    int64_t waited_ms = link->server->clock.monotonic_ms - link->acked_at_ms;
    bool is_new = link->server->replication.group != link->acked_group;
    bool is_awaited = link->quorum != NULL || link->acked_group < link->asked_group;
    bool is_owed = link->quorum != NULL && (quorum_owes_probe(link->quorum) ||
                                            quorum_owes_ack(link->quorum, link->kept_group));
    if (link->wants_ack || is_owed || (is_new && (is_awaited || waited_ms >= ACK_EVERY_MS))) {
        link->wants_ack = false;
        master_link_stream_say_ack(link, link->server->replication.group);
    } else if (is_new && !uv_is_active((uv_handle_t *)&link->timer)) {
        (void)uv_timer_start(&link->timer, master_link_stream_on_ack_due, ACK_EVERY_MS, 0);
    }
}

bool master_link_stream_ask_handover(struct master_link *link) {
    if (link->state != LINK_STREAMING || master_link_is_redis(link)) {
        return false;
    }
    master_link_say(link, (const char *const[]){"REPLCONF", "HANDOVER"}, 2);
    return link->state == LINK_STREAMING;
}
