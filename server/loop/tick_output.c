/* What leaves at the end of a tick: the clients' output, in its order. See tick.h. */
#include "server/loop/connection.h"

#include "server/dispatch/command.h"
#include "server/dispatch/syntax.h"
#include "server/dispatch/waiting.h"
#include "server/durability/persistence.h"
#include "server/replication/replication.h"

enum {
    LENT_CAPACITY_MAX = 256 * 1024,
    LENT_BYTES_MAX = 16 * 1024 * 1024, /* total capacity of the buffers available for lending */
    PUSHED_MAX = 128,                  /* clients per tick to which pushes alone are sent */
    UNAUTHENTICATED_OUTPUT_MAX = 2048, /* room for replies before authentication */
};

void tick_output_lend_buffer(struct tick *tick, struct session *session) {
    size_t size_max = server_is_authenticated(tick->server, session)
                          ? server_output_room(tick->server, session)
                          : UNAUTHENTICATED_OUTPUT_MAX;
    session->output.size_max = size_max;
    if (session->output.at != NULL || tick->buffer_count == 0 ||
        (size_max > 0 && size_max < LENT_CAPACITY_MAX)) {
        return;
    }
    session->output = tick->buffers[--tick->buffer_count];
    tick->buffer_bytes -= session->output.capacity;
    if (tick->buffer_count < tick->idle_buffer_count) {
        tick->idle_buffer_count = tick->buffer_count;
    }
    session->output.size_max = size_max;
}

void tick_output_keep_buffer(struct tick *tick, struct buffer *buffer) {
    buffer_clear(buffer);
    if (tick->buffer_count < TICK_BUFFERS_MAX && buffer->capacity <= LENT_CAPACITY_MAX &&
        tick->buffer_bytes + buffer->capacity <= LENT_BYTES_MAX) {
        tick->buffers[tick->buffer_count++] = *buffer;
        tick->buffer_bytes += buffer->capacity;
        buffer_init(buffer, buffer->size_max);
    } else {
        buffer_deinit(buffer);
    }
}

void tick_output_take_buffer(struct tick *tick, struct session *session) {
    if (session->output.at == NULL) {
        return;
    }
    if (session->output.size_max == UNAUTHENTICATED_OUTPUT_MAX) {
        buffer_clear(&session->output);
        return; /* too small for lending */
    }
    tick_output_keep_buffer(tick, &session->output);
}

void tick_output_free_idle_buffers(struct tick *tick) {
    uint32_t idle_count = tick->idle_buffer_count;
    for (uint32_t i = 0; i < idle_count; i++) {
        tick->buffer_bytes -= tick->buffers[i].capacity;
        buffer_deinit(&tick->buffers[i]);
    }
    tick->buffer_count -= idle_count;
    memmove(tick->buffers, tick->buffers + idle_count,
            tick->buffer_count * sizeof(tick->buffers[0]));
    tick->idle_buffer_count = tick->buffer_count;
}

static void tick_output_finish(struct connection *connection) {
    if (!connection->session.is_killed || connection->session.is_closed) {
        connection_finish(connection);
    }
}

static void tick_output_mark(struct tick *tick, struct connection *connection,
                             enum tick_list list) {
    if (connection->is_in[list]) {
        return;
    }
    connection->is_in[list] = true;
    connection->next[list] = NULL;
    *(tick->lists[list].last != NULL ? &tick->lists[list].last->next[list]
                                     : &tick->lists[list].first) = connection;
    tick->lists[list].last = connection;
}

void tick_output_mark_dirty(struct tick *tick, struct connection *connection) {
    tick_output_mark(tick, connection, TICK_DIRTY);
}

/* Finish the first of the list. */
static void tick_output_finish_first(struct tick *tick, enum tick_list list) {
    struct connection *connection = tick->lists[list].first;
    tick->lists[list].first = connection->next[list];
    if (tick->lists[list].first == NULL) {
        tick->lists[list].last = NULL;
    }
    connection->is_in[list] = false;
    tick_output_finish(connection);
}

void tick_output_finish_dirty(struct tick *tick) {
    tick_network_publish_limits(tick); /* before the replies of CONFIG SET leave */
    while (tick->lists[TICK_DIRTY].first != NULL) {
        tick_output_finish_first(tick, TICK_DIRTY);
    }
}

/* May replies leave that wait for a disk that is full, and show nothing that is not on it? With
 * sync-replicas they wait for other servers, too. */
static bool tick_output_is_stuck(const struct server *server) {
    enum sync_state state = server->replication.sync.state;
    return (state == SYNC_OFF || state == SYNC_REPLICA) &&
           persistence_is_stuck(server->persistence);
}

void tick_output_take_news(struct tick *tick, bool is_harmless) {
    struct server *server = tick->server;
    uint64_t effects_before = server->durability.effect_count;
    server->has_news = false;
    waiting_serve(server);
    is_harmless &= server->durability.effect_count == effects_before;
    while (server->sessions.pushed != NULL) {
        struct session *session = server->sessions.pushed;
        struct connection *connection = connection_of(session);
        server_end_push(server, session);
        if ((connection->hold == CONNECTION_HELD_BY_WAIT && session->wait.state == WAIT_NONE) ||
            (connection->hold == CONNECTION_HELD_BY_END && !session->awaits_end)) {
            connection->hold = CONNECTION_RUNS;
        }
        if (server->persistence != NULL && session->output.size > session->pushed_from) {
            uint64_t group = persistence_last_group(server->persistence);
            if (group > waiting_free_group(server) &&
                !(is_harmless && tick_output_is_stuck(server))) {
                connection_withhold_output(connection, session->pushed_from, group, 0);
            }
        }
        tick_output_mark(tick, connection, TICK_PUSHED);
        if (session->output.size + session->handed_size > CONNECTION_OUTPUT_HIGH) {
            (void)!connection_flush(connection);
        }
    }
}

bool tick_output_entry_sees_boards(const struct queue_entry *entry) {
    return entry->command != COMMAND_NONE && waiting_sees_boards(command_by_index(entry->command));
}

/* ---- what a reply can show, told by its request ---- */

static bool tick_output_is_of_boards(const struct command *command) {
    return strcmp(command->group, "leaderboard") == 0;
}

/* Does the reply follow from the keys that the request names? */
static bool tick_output_is_of_its_keys(const struct queue_entry *entry) {
    enum { OTHER = COMMAND_WRITE | COMMAND_RUNS_QUEUE | COMMAND_BLOCKING };
    if (entry->command >= QUEUE_CLOSE || entry->command == COMMAND_NONE) {
        return false;
    }
    const struct command *command = command_by_index(entry->command);
    const struct request *request = &entry->request;
    /* DATA brings values of other keys, SINCE LAST ranks on another board. */
    bool has_others = false;
    for (uint32_t i = 1; i < request->count && tick_output_is_of_boards(command); i++) {
        has_others |= bytes_equal_ignoring_case(request->args[i], BYTES("DATA")) ||
                      bytes_equal_ignoring_case(request->args[i], BYTES("SINCE"));
    }
    return (command->flags & COMMAND_READ) != 0 && (command->flags & OTHER) == 0 && !has_others;
}

/* persistence_is_stuck: may the reply, which has changed nothing, show what is not on disk? In doubt it does. */
static bool tick_output_is_dirty(const struct persistence *persistence,
                                 const struct session *session, const struct queue_entry *entry) {
    const struct key_spec *specs;
    if (!tick_output_is_of_its_keys(entry)) {
        return true;
    }
    const struct command *command = command_by_index(entry->command);
    bool has_names = persistence_has_dirty_names(persistence);
    if ((command->flags & COMMAND_NAMES) != 0 || (tick_output_is_of_boards(command) && has_names)) {
        return has_names; /* archives of a board, bans */
    }
    uint32_t spec_count = syntax_key_of(entry->command, &specs);
    for (uint32_t i = 0; i < spec_count; i++) {
        struct key_walk walk = syntax_key_walk(command, &specs[i], &entry->request);
        if (walk.end == 0) {
            return true;
        }
        for (; walk.next < walk.end; walk.next += walk.step) {
            struct bytes name = entry->request.args[walk.next];
            if (persistence_is_dirty(persistence, persistence_dirty_key(session->database, name))) {
                return true;
            }
        }
    }
    return spec_count == 0;
}

/* The one key that the reply shows, as persistence_dirty_key has it; 0: there are others, or that is not certain. */
static uint64_t tick_output_shown_key(const struct session *session,
                                      const struct queue_entry *entry) {
    const struct key_spec *specs;
    if (!tick_output_is_of_its_keys(entry) ||
        tick_output_is_of_boards(command_by_index(entry->command)) ||
        syntax_key_of(entry->command, &specs) != 1) {
        return 0;
    }
    struct key_walk walk =
        syntax_key_walk(command_by_index(entry->command), &specs[0], &entry->request);
    bool is_one = walk.next < walk.end && walk.next + walk.step >= walk.end;
    return is_one ? persistence_dirty_key(session->database, entry->request.args[walk.next]) : 0;
}

void tick_output_hold(struct connection *connection, size_t size_before, bool has_changed,
                      const struct queue_entry *entry) {
    struct server *server = connection->tick->server;
    uint64_t group = persistence_last_group(server->persistence);
    if (group <= waiting_free_group(server) || connection->session.output.size == size_before) {
        return;
    }
    bool holds_readers = waiting_holds_readers(server);
    if (has_changed || (holds_readers && entry == NULL)) {
        connection_withhold_output(connection, size_before, group, 0);
    } else if (holds_readers && entry != NULL && tick_output_entry_sees_boards(entry) &&
               !(tick_output_is_stuck(server) &&
                 !tick_output_is_dirty(server->persistence, &connection->session, entry))) {
        connection_withhold_output(connection, size_before, group,
                                   tick_output_shown_key(&connection->session, entry));
    }
}

void tick_output_drop_outdated(struct server *server, struct session *session, uint64_t epoch) {
    if (epoch != replication_answer_epoch(&server->replication)) {
        server_kill_session(server, session);
    }
}

void tick_output_release_answers(struct tick *tick) {
    if (tick->is_feeding) {
        tick->server->owes_release = true;
        return; /* when replicas were sent what the answers show */
    }
    tick->server->owes_release = false;
    uint64_t group = waiting_open_group(tick->server);
    struct connection *connection = tick->waiting_first;
    tick->release_epoch = replication_answer_epoch(&tick->server->replication);
    bool is_partial = connection != NULL && tick_output_is_stuck(tick->server);
    while (connection != NULL) {
        struct connection *next = connection->wait.next;
        if (connection->wait.epoch != tick->release_epoch) {
            connection_close(connection,
                             "its answer waits for a history that is not decided here any more");
            connection = next;
            continue;
        }
        uint64_t shown = is_partial ? connection->wait.shown : 0;
        bool is_free = shown != 0 && !persistence_is_dirty(tick->server->persistence, shown);
        connection_free_output(connection, is_free ? UINT64_MAX : group);
        if (connection_sendable_size(connection) > 0) {
            connection_finish(connection);
        }
        connection = next;
    }
    if (tick->release_others != NULL) {
        tick->release_others(tick->others);
    }
}

bool tick_output_must_release_answers(const struct tick *tick) {
    const struct replication *replication = &tick->server->replication;
    return tick->server->owes_release || sync_holds_answers(&replication->sync) ||
           tick->release_epoch != replication_answer_epoch(replication);
}

bool tick_output_finish_pushed(struct tick *tick) {
    for (int i = 0; i < PUSHED_MAX && tick->lists[TICK_PUSHED].first != NULL; i++) {
        tick_output_finish_first(tick, TICK_PUSHED);
    }
    return tick->lists[TICK_PUSHED].first != NULL;
}

bool tick_output_end_replication(struct tick *tick) {
    if (tick->replicator == NULL) {
        return false;
    }
    bool has_more = replicator_end_tick(tick->replicator);
    struct replica *replica = tick->server->replication.replicas;
    while (replica != NULL) {
        struct replica *next = replica->next; /* finishing may close this one */
        struct connection *connection = connection_of(replica->session);
        if (replica->session->output.size > 0) {
            struct network *network = connection->network;
            tick_output_finish(connection);
            has_more |= network->has_thread && network_push(network);
        }
        replica = next;
    }
    return has_more;
}
