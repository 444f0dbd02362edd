/* The queue, its prefetching, and what is done once per turn. See tick.h for the whole. */
#include "server/tick.h"

#include <stdio.h>

#include "server/command.h"
#include "server/connection.h"
#include "server/log.h"
#include "server/process.h"

enum {
    PIECE_SIZE = 64 * 1024,     /* of input room; a read gets what is left of one */
    PIECE_ROOM_MIN = 16 * 1024, /* less is left over, and a new piece begun */
    SPARE_PIECES_MAX = 16,      /* kept for the next ticks */
    ENTRIES_MIN = 256,          /* of the queue at first */
    ENTRIES_KEPT_MAX = 65536,
    LENT_CAPACITY_MAX = 64 * 1024,
    OUTPUT_ROOM_MIN = 16 * 1024, /* for replies that can be sent at once, whatever the limit */
    TICK_BUDGET_NS = 1000000,    /* for running the queue */
    CHORE_BUDGET_NS = 200000,    /* for expiry, and for freeing */
    EXPIRE_KEYS_MAX = 16,        /* between two looks at the clock */
    FREE_WORK_MAX = 256,
    PREFETCH_MEMBERS_MAX = 64, /* in a group */
    PREFETCH_BOARD_MIN = 4096, /* members: smaller boards stay in the cache */
    SECOND_MS = 1000,
    DRAIN_MS = 5000,
};

struct tick_piece {
    struct tick_piece *next;
    size_t used;
    char at[PIECE_SIZE];
};

/* ---- input room ---- */

char *tick_input_room(struct tick *tick, size_t *size) {
    struct tick_generation *generation = &tick->generations[tick->current];
    struct tick_piece *piece = generation->pieces;
    if (piece == NULL || PIECE_SIZE - piece->used < PIECE_ROOM_MIN) {
        if (tick->spare_pieces != NULL) {
            piece = tick->spare_pieces;
            tick->spare_pieces = piece->next;
            tick->spare_piece_count--;
        } else {
            piece = memory_allocate(sizeof *piece);
            if (piece == NULL) {
                return NULL;
            }
        }
        piece->used = 0;
        piece->next = generation->pieces;
        generation->pieces = piece;
    }
    *size = PIECE_SIZE - piece->used;
    return piece->at + piece->used;
}

void tick_input_keep(struct tick *tick, size_t size) {
    struct tick_piece *piece = tick->generations[tick->current].pieces;
    CHECK(size <= PIECE_SIZE - piece->used);
    piece->used += size;
}

struct resp_arena *tick_arguments(struct tick *tick) {
    return &tick->generations[tick->current].arguments;
}

static void empty_generation(struct tick *tick, struct tick_generation *generation) {
    while (generation->pieces != NULL) {
        struct tick_piece *piece = generation->pieces;
        generation->pieces = piece->next;
        if (tick->spare_piece_count < SPARE_PIECES_MAX) {
            piece->next = tick->spare_pieces;
            tick->spare_pieces = piece;
            tick->spare_piece_count++;
        } else {
            memory_free(piece);
        }
    }
    resp_arena_reset(&generation->arguments);
}

/* Give back what requests that have run lay in. */
static void turn_generations(struct tick *tick) {
    struct tick_generation *filled = &tick->generations[tick->current];
    struct tick_generation *other = &tick->generations[1 - tick->current];
    if (tick->done_total == tick->queued_total) {
        empty_generation(tick, filled);
    } else if (tick->done_total >= other->queued_end) {
        empty_generation(tick, other);
        filled->queued_end = tick->queued_total;
        tick->current = 1 - tick->current;
    }
}

/* ---- output buffers ---- */

void tick_lend_buffer(struct tick *tick, struct session *session) {
    size_t size_max = tick->server->settings.output_limit.hard_bytes;
    if (size_max > 0 && size_max < OUTPUT_ROOM_MIN) {
        size_max = OUTPUT_ROOM_MIN;
    }
    session->output.size_max = size_max;
    if (session->output.at != NULL || tick->buffer_count == 0 ||
        (size_max > 0 && size_max < LENT_CAPACITY_MAX)) {
        return;
    }
    session->output = tick->buffers[--tick->buffer_count];
    session->output.size_max = size_max;
}

void tick_take_buffer(struct tick *tick, struct session *session) {
    if (session->output.at == NULL) {
        return;
    }
    buffer_clear(&session->output);
    if (tick->buffer_count < TICK_BUFFERS_MAX && session->output.capacity <= LENT_CAPACITY_MAX) {
        tick->buffers[tick->buffer_count++] = session->output;
        buffer_init(&session->output, session->output.size_max);
    } else {
        buffer_deinit(&session->output);
    }
}

/* ---- the queue ---- */

static bool make_room_for_entry(struct tick *tick) {
    if (tick->head > tick->capacity / 2) {
        memmove(tick->entries, tick->entries + tick->head,
                (tick->end - tick->head) * sizeof *tick->entries);
        tick->end -= tick->head;
        tick->head = 0;
        return true;
    }
    size_t capacity = tick->capacity > 0 ? tick->capacity * 2 : ENTRIES_MIN;
    struct tick_entry *entries = memory_resize(tick->entries, capacity * sizeof *entries);
    if (entries == NULL) {
        return false;
    }
    tick->entries = entries;
    tick->capacity = capacity;
    return true;
}

struct tick_entry *tick_next_entry(struct tick *tick) {
    if (tick->end == tick->capacity && !make_room_for_entry(tick)) {
        return NULL;
    }
    return &tick->entries[tick->end];
}

void tick_queue_entry(struct tick *tick) {
    CHECK(tick->end < tick->capacity);
    tick->end++;
    tick->queued_total++;
}

void tick_mark_dirty(struct tick *tick, struct connection *connection) {
    if (connection->is_dirty) {
        return;
    }
    connection->is_dirty = true;
    connection->dirty_next = NULL;
    if (tick->dirty_last != NULL) {
        tick->dirty_last->dirty_next = connection;
    } else {
        tick->dirty_first = connection;
    }
    tick->dirty_last = connection;
}

/* Will this entry not be run? Its connection has gone, or has taken its requests back; its input
 * may be gone with them. */
static bool is_void(const struct tick_entry *entry) {
    const struct connection *connection = entry->connection;
    return connection->is_closing || connection->epoch != entry->epoch ||
           connection->session.is_killed;
}

/* ---- prefetching ---- */

struct prefetch_group {
    const struct board *boards[TICK_GROUP];     /* by entry; NULL: nothing to fetch */
    const struct command *commands[TICK_GROUP]; /* of the entries that have a board */
    struct board_prefetch members[PREFETCH_MEMBERS_MAX];
    bool are_changes[PREFETCH_MEMBERS_MAX];
    unsigned member_count;
    struct board_way ways[TICK_GROUP]; /* to where lone new scores will stand */
    unsigned way_count;
};

/* Neighbours in the queue often name the same key: then the lookup is saved. */
static void find_boards(const struct tick *tick, const struct tick_entry *entries, unsigned count,
                        struct prefetch_group *group) {
    const struct server *server = tick->server;
    struct bytes last_name = {0};
    uint32_t last_database = 0;
    const struct registry_key *key = NULL;
    for (unsigned i = 0; i < count; i++) {
        const struct tick_entry *entry = &entries[i];
        group->boards[i] = NULL;
        if (entry->command >= TICK_CLOSE || is_void(entry)) {
            continue;
        }
        const struct command *command = command_by_index(entry->command);
        if (command->member_arg == 0 || entry->request.count <= (uint32_t)command->member_arg) {
            continue;
        }
        struct bytes name = entry->request.args[command->first_key];
        uint32_t database = entry->connection->session.database;
        if (last_name.at == NULL || database != last_database || !bytes_equal(name, last_name)) {
            key = registry_peek(server->registry, database, name, server->now_ms);
            last_name = name;
            last_database = database;
        }
        if (key != NULL && board_count(key->board) >= PREFETCH_BOARD_MIN) {
            group->boards[i] = key->board;
            group->commands[i] = command;
        }
    }
}

static void prefetch_slots(const struct tick_entry *entries, unsigned count,
                           struct prefetch_group *group) {
    group->member_count = 0;
    for (unsigned i = 0; i < count; i++) {
        if (group->boards[i] == NULL) {
            continue;
        }
        const struct command *command = group->commands[i];
        const struct request *request = &entries[i].request;
        for (uint32_t at = (uint32_t)command->member_arg;
             at < request->count && group->member_count < PREFETCH_MEMBERS_MAX;
             at += (uint32_t)command->member_step) {
            group->are_changes[group->member_count] = (command->flags & COMMAND_WRITE) != 0;
            board_prefetch_slots(group->boards[i], request->args[at],
                                 &group->members[group->member_count++]);
            if (command->member_step == 0) {
                break;
            }
        }
    }
}

/* The key that a lone new score will have. false: none; the handler says what is wrong with it. */
static bool key_of_score(const struct layout *layout, struct bytes text, int64_t now_us,
                         uint64_t *key) {
    struct decimal value;
    uint64_t ordinal;
    if (decimal_parse(text, layout->fields[0].scale, &value) != DECIMAL_OK ||
        layout_field_ordinal(&layout->fields[0], value, &ordinal) != LAYOUT_OK) {
        return false;
    }
    *key = layout_with_ordinal(layout, layout_zero_key(layout), 0, ordinal);
    return layout_stamp(layout, *key, now_us, key) == LAYOUT_OK;
}

static void prefetch_ways(const struct tick *tick, const struct tick_entry *entries, unsigned count,
                          struct prefetch_group *group) {
    group->way_count = 0;
    for (unsigned i = 0; i < count; i++) {
        const struct board *board = group->boards[i];
        if (board == NULL || group->commands[i]->score_arg == 0 ||
            entries[i].request.count != (uint32_t)group->commands[i]->member_arg + 1) {
            continue;
        }
        struct bytes text = entries[i].request.args[group->commands[i]->score_arg];
        uint64_t key;
        if (key_of_score(board_layout(board), text, tick->server->now_us, &key)) {
            board_prefetch_way(board, key, &group->ways[group->way_count++]);
        }
    }
}

/* Each step fetches for the whole group what the next one reads. */
static void prefetch(const struct tick *tick, const struct tick_entry *entries, unsigned count) {
    struct prefetch_group group;
    find_boards(tick, entries, count, &group);
    prefetch_slots(entries, count, &group);
    prefetch_ways(tick, entries, count, &group);
    for (unsigned i = 0; i < group.member_count; i++) {
        board_prefetch_descriptor(&group.members[i]);
    }
    for (unsigned i = 0; i < group.way_count; i++) {
        board_prefetch_way_index(&group.ways[i]);
    }
    for (unsigned i = 0; i < group.member_count; i++) {
        board_prefetch_block(&group.members[i]);
    }
    for (unsigned i = 0; i < group.way_count; i++) {
        board_prefetch_way_leaf(&group.ways[i]);
    }
    for (unsigned i = 0; i < group.member_count; i++) {
        board_prefetch_entry(&group.members[i], group.are_changes[i]);
    }
    for (unsigned i = 0; i < group.way_count; i++) {
        board_prefetch_way_end(&group.ways[i]);
    }
}

/* ---- running ---- */

/* Must this request wait for the end of CLIENT PAUSE? */
static bool is_paused(const struct tick *tick, const struct tick_entry *entry) {
    const struct server *server = tick->server;
    if (server->pause == SERVER_PAUSE_NONE || entry->command >= TICK_CLOSE) {
        return false;
    }
    unsigned flags = command_by_index(entry->command)->flags;
    return server->pause == SERVER_PAUSE_ALL ? (flags & COMMAND_NO_PAUSE) == 0
                                             : (flags & COMMAND_WRITE) != 0;
}

static void run_broken(struct session *session, const struct tick_entry *entry,
                       struct reply *reply) {
    if (entry->command == TICK_PROTOCOL_ERROR) {
        reply->is_silent = false;
        reply_error(reply, entry->error);
    }
    session->is_close_after_reply = true;
}

static void run_entry(struct tick *tick, const struct tick_entry *entry, struct reply *reply) {
    struct connection *connection = entry->connection;
    struct session *session = &connection->session;
    connection->queued--;
    tick_mark_dirty(tick, connection);
    tick_lend_buffer(tick, session);
    reply->out = &session->output;
    reply->version = session->protocol;
    if (entry->command == TICK_PROTOCOL_ERROR || entry->command == TICK_CLOSE) {
        run_broken(session, entry, reply);
        return;
    }
    command_execute_index(tick->server, session, entry->command, &entry->request, reply);
    /* A client that asks for much and reads little holds up its own requests, no one else's. */
    if (session->output.size > CONNECTION_OUTPUT_HIGH && !session->is_killed) {
        (void)!connection_flush(connection);
    }
}

static void run_or_drop(struct tick *tick, const struct tick_entry *entry, struct reply *reply) {
    struct connection *connection = entry->connection;
    bool is_dropped = is_void(entry);
    if (!is_dropped && connection->session.is_close_after_reply) {
        connection->queued--;
        is_dropped = true;
    }
    if (!is_dropped) {
        if (connection->hold != CONNECTION_RUNS) {
            connection_hold(connection, entry->input, connection->hold);
        } else if (is_paused(tick, entry)) {
            tick->is_pausing = true;
            connection_hold(connection, entry->input, CONNECTION_HELD_BY_PAUSE);
        } else {
            run_entry(tick, entry, reply);
        }
    }
    connection_release(connection);
}

/* The queue is empty. One that grew large for once is not kept. */
static void forget_entries(struct tick *tick) {
    tick->head = 0;
    tick->end = 0;
    if (tick->capacity > ENTRIES_KEPT_MAX) {
        memory_free(tick->entries);
        tick->entries = NULL;
        tick->capacity = 0;
    }
}

/* Run what waits, until the budget is spent. */
static void run_queue(struct tick *tick) {
    uint64_t begin = clock_ticks();
    struct buffer nowhere;
    struct reply reply;
    buffer_init(&nowhere, 0);
    reply_init(&reply, &nowhere, 2);
    while (tick->head < tick->end) {
        size_t waiting = tick->end - tick->head;
        unsigned count = waiting < TICK_GROUP ? (unsigned)waiting : TICK_GROUP;
        if (count > 1) {
            prefetch(tick, &tick->entries[tick->head], count);
        }
        tick->server->command_begin_ticks = clock_ticks();
        /* Running them queues nothing, so the entries stay where they are. */
        for (unsigned i = 0; i < count; i++) {
            run_or_drop(tick, &tick->entries[tick->head++], &reply);
        }
        tick->done_total += count;
        if (clock_ticks_to_ns(tick->server->command_begin_ticks - begin) >= TICK_BUDGET_NS) {
            break;
        }
    }
    if (tick->head == tick->end) {
        forget_entries(tick);
    }
}

/* ---- the end of a tick ---- */

static void finish_dirty(struct tick *tick) {
    while (tick->dirty_first != NULL) {
        struct connection *connection = tick->dirty_first;
        tick->dirty_first = connection->dirty_next;
        if (tick->dirty_first == NULL) {
            tick->dirty_last = NULL;
        }
        connection->is_dirty = false;
        if (!connection->session.is_killed) {
            connection_finish(connection);
        }
    }
}

/* Monitors got output without having asked for anything in this tick. */
static void mark_monitors(struct tick *tick) {
    if (tick->server->monitor_count == 0) {
        return;
    }
    for (struct session *session = tick->server->session_first; session != NULL;
         session = session->next) {
        if (session->is_monitor && (session->output.size > 0 || session->output.is_broken)) {
            tick_mark_dirty(tick, connection_of(session));
        }
    }
}

static void close_killed(struct tick *tick) {
    struct session *session = tick->server->session_first;
    while (tick->server->killed_count > 0 && session != NULL) {
        struct session *next = session->next;
        if (session->is_killed) {
            connection_close(connection_of(session), "killed");
        }
        session = next;
    }
}

/* A pause ends by time, by CLIENT UNPAUSE, or with the server. */
static void check_pause_time(struct tick *tick) {
    struct server *server = tick->server;
    if (server->pause != SERVER_PAUSE_NONE &&
        (server->now_ms >= server->pause_until_ms || tick->is_draining)) {
        server->pause = SERVER_PAUSE_NONE;
    }
}

static void resume_paused(struct tick *tick) {
    if (!tick->is_pausing || tick->server->pause != SERVER_PAUSE_NONE) {
        return;
    }
    tick->is_pausing = false;
    struct session *session = tick->server->session_first;
    while (session != NULL) {
        struct session *next = session->next;
        struct connection *connection = connection_of(session);
        if (connection->hold == CONNECTION_HELD_BY_PAUSE) {
            connection_resume(connection);
        }
        session = next;
    }
}

static void note_latency(struct tick *tick, const char *event, uint64_t elapsed_ns) {
    struct server *server = tick->server;
    uint64_t elapsed_ms = elapsed_ns / 1000000;
    int64_t threshold_ms = server->settings.latency_monitor_threshold_ms;
    if (threshold_ms > 0 && elapsed_ms >= (uint64_t)threshold_ms) {
        latency_add(&server->latency, event,
                    elapsed_ms < UINT32_MAX ? (uint32_t)elapsed_ms : UINT32_MAX,
                    server->now_ms / 1000);
    }
}

/* Remove keys whose time has come; true: there are more. */
static bool expire_some(struct tick *tick) {
    struct server *server = tick->server;
    if (registry_next_expiry(server->registry) == REGISTRY_NO_EXPIRY) {
        return false;
    }
    uint64_t begin = clock_ticks();
    uint64_t elapsed_ns = 0;
    uint32_t removed;
    do {
        removed = registry_expire_due(server->registry, server->now_ms, EXPIRE_KEYS_MAX);
        elapsed_ns = clock_ticks_to_ns(clock_ticks() - begin);
    } while (removed == EXPIRE_KEYS_MAX && elapsed_ns < CHORE_BUDGET_NS);
    note_latency(tick, "expire-cycle", elapsed_ns);
    return removed == EXPIRE_KEYS_MAX;
}

/* Free some of the removed boards; true: there is more to free. */
static bool free_some(struct tick *tick) {
    struct registry *registry = tick->server->registry;
    uint64_t begin = clock_ticks();
    while (registry_free_step(registry, FREE_WORK_MAX)) {
        if (clock_ticks_to_ns(clock_ticks() - begin) >= CHORE_BUDGET_NS) {
            return true;
        }
    }
    return false;
}

static void on_idle(uv_idle_t *idle) {
    (void)idle; /* that it is active is all it does: poll does not block then */
}

static void set_idle(struct tick *tick, bool is_active) {
    if (tick->is_idle_active == is_active) {
        return;
    }
    tick->is_idle_active = is_active;
    if (is_active) {
        uv_idle_start(&tick->idle, on_idle);
    } else {
        uv_idle_stop(&tick->idle);
    }
}

static void on_wake(uv_timer_t *timer) {
    struct tick *tick = timer->data;
    tick->wake_at_ms = INT64_MAX;
    /* The work is done in check, which must not wait for poll. */
    set_idle(tick, true);
}

/* Wake up for the next expiry, or the end of a pause. */
static void set_wake(struct tick *tick) {
    const struct server *server = tick->server;
    int64_t at_ms = registry_next_expiry(server->registry);
    at_ms = at_ms == REGISTRY_NO_EXPIRY ? INT64_MAX : at_ms;
    if (tick->is_pausing && server->pause_until_ms < at_ms) {
        at_ms = server->pause_until_ms;
    }
    if (at_ms == tick->wake_at_ms) {
        return;
    }
    tick->wake_at_ms = at_ms;
    if (at_ms == INT64_MAX) {
        uv_timer_stop(&tick->wake);
        return;
    }
    int64_t wait_ms = at_ms - server->now_ms;
    uv_timer_start(&tick->wake, on_wake, wait_ms > 0 ? (uint64_t)wait_ms : 1, 0);
}

/* ---- stopping ---- */

static void close_handle(uv_handle_t *handle) {
    if (!uv_is_closing(handle)) {
        uv_close(handle, NULL);
    }
}

/* What still waits will not run. */
static void drop_queue(struct tick *tick) {
    for (; tick->head < tick->end; tick->head++) {
        connection_release(tick->entries[tick->head].connection);
    }
    for (; tick->dirty_first != NULL; tick->dirty_first = tick->dirty_first->dirty_next) {
        tick->dirty_first->is_dirty = false;
    }
    tick->dirty_last = NULL;
}

static void stop(struct tick *tick) {
    if (tick->is_stopping) {
        return;
    }
    tick->is_stopping = true;
    drop_queue(tick);
    while (tick->server->session_first != NULL) {
        connection_close(connection_of(tick->server->session_first), "shutdown");
    }
    set_idle(tick, false);
    close_handle((uv_handle_t *)&tick->check);
    close_handle((uv_handle_t *)&tick->idle);
    close_handle((uv_handle_t *)&tick->second);
    close_handle((uv_handle_t *)&tick->wake);
    close_handle((uv_handle_t *)&tick->drain);
}

static void on_drain_over(uv_timer_t *timer) {
    log_write(LOG_WARNING, "shutdown: some clients did not read their replies in time");
    stop(timer->data);
}

void tick_shutdown(struct tick *tick, bool is_now) {
    if (tick->is_stopping) {
        return;
    }
    bool is_second = tick->is_draining;
    tick->is_draining = true;
    if (!is_second) {
        log_write(LOG_NOTICE, "shutdown: clients=%u", tick->server->session_count);
        tick->stop_listening(tick->context);
    }
    if (is_now || is_second) {
        stop(tick);
        return;
    }
    struct session *session = tick->server->session_first;
    for (; session != NULL; session = session->next) {
        connection_update_events(connection_of(session));
    }
    uv_timer_start(&tick->drain, on_drain_over, DRAIN_MS, 0);
    set_idle(tick, true);
}

/* Has every client got all it is to get? */
static bool is_drained(const struct tick *tick) {
    struct session *session = tick->server->session_first;
    for (; session != NULL; session = session->next) {
        const struct connection *connection = connection_of(session);
        if (connection->queued > 0 || connection->is_unparsed || session->output.size > 0) {
            return false;
        }
    }
    return true;
}

static void check_shutdown(struct tick *tick) {
    struct server *server = tick->server;
    if (server->is_shutdown_asked && !tick->is_draining) {
        tick_shutdown(tick, server->is_shutdown_now);
    }
    if (tick->is_draining && !tick->is_stopping && is_drained(tick)) {
        stop(tick);
    }
}

/* ---- the loop's callbacks ---- */

static void on_check(uv_check_t *check) {
    struct tick *tick = check->data;
    struct server *server = tick->server;
    uint64_t begin = clock_ticks();
    server->stats.ticks++;
    server_update_time(server);
    check_pause_time(tick);
    if (tick->head < tick->end) {
        run_queue(tick);
        mark_monitors(tick);
    }
    finish_dirty(tick);
    resume_paused(tick);
    close_killed(tick);
    bool has_more = expire_some(tick);
    has_more |= free_some(tick);
    turn_generations(tick);
    uint64_t elapsed_ns = clock_ticks_to_ns(clock_ticks() - begin);
    if (elapsed_ns / 1000 > server->stats.tick_longest_us) {
        server->stats.tick_longest_us = elapsed_ns / 1000;
    }
    note_latency(tick, "tick", elapsed_ns);
    check_shutdown(tick);
    if (!tick->is_stopping) {
        set_idle(tick, has_more || tick->head < tick->end);
        set_wake(tick);
    }
}

/* Boards that are freed leave pages that hold nothing. */
static void give_back_memory(struct tick *tick) {
    uint64_t begin = clock_ticks();
    if (memory_give_back()) {
        note_latency(tick, "memory-give-back", clock_ticks_to_ns(clock_ticks() - begin));
    }
}

static void on_second(uv_timer_t *timer) {
    struct tick *tick = timer->data;
    struct server *server = tick->server;
    server_update_time(server);
    stats_sample(&server->stats, server->now_ms);
    give_back_memory(tick);
    if (server->settings.maxclients != tick->maxclients) { /* CONFIG SET */
        process_raise_descriptor_limit(&server->settings);
        tick->maxclients = server->settings.maxclients;
    }
    struct session *session = server->session_first;
    while (session != NULL) {
        struct session *next = session->next;
        connection_check_time(connection_of(session));
        session = next;
    }
}

bool tick_init(struct tick *tick, uv_loop_t *loop, struct server *server) {
    tick->loop = loop;
    tick->server = server;
    tick->wake_at_ms = INT64_MAX;
    tick->maxclients = server->settings.maxclients;
    resp_arena_init(&tick->generations[0].arguments);
    resp_arena_init(&tick->generations[1].arguments);
    tick->check.data = tick;
    tick->idle.data = tick;
    tick->second.data = tick;
    tick->wake.data = tick;
    tick->drain.data = tick;
    return uv_check_init(loop, &tick->check) == 0 && uv_idle_init(loop, &tick->idle) == 0 &&
           uv_timer_init(loop, &tick->second) == 0 && uv_timer_init(loop, &tick->wake) == 0 &&
           uv_timer_init(loop, &tick->drain) == 0 && uv_check_start(&tick->check, on_check) == 0 &&
           uv_timer_start(&tick->second, on_second, SECOND_MS, SECOND_MS) == 0;
}

void tick_deinit(struct tick *tick) {
    for (unsigned i = 0; i < 2; i++) {
        empty_generation(tick, &tick->generations[i]);
        resp_arena_deinit(&tick->generations[i].arguments);
    }
    while (tick->spare_pieces != NULL) {
        struct tick_piece *piece = tick->spare_pieces;
        tick->spare_pieces = piece->next;
        memory_free(piece);
    }
    while (tick->buffer_count > 0) {
        buffer_deinit(&tick->buffers[--tick->buffer_count]);
    }
    memory_free(tick->entries);
    tick->entries = NULL;
}
