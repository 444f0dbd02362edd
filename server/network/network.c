/* The batches of a network, and its thread. See network.h.
 *
 * Invariant: a batch is in exactly one place: being filled, spare, in a ring, with the engine, or on
 * its way back. A piece of input belongs to one batch or is spare. */
#include "server/network/network.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "codec/thread_signals.h"
#include "server/network/acceptor.h"

enum {
    PIECE_SIZE = 64 * 1024,     /* a read gets the free space of one piece */
    PIECE_ROOM_MIN = 16 * 1024, /* with less free space a new piece is started */
    SPARE_PIECES_MAX = 16,
    SPARE_BATCHES_MAX = 8,
    FREE_REPLIES_MAX = 8,
    FULL_PIECES = 512,     /* 32 MiB */
    FULL_REQUESTS = 65536, /* waiting requests above which only a little more is read from each */
    ENTRIES_MIN = 64,
    ENTRIES_KEPT_MAX = 65536,
    DONE_MAX = 4, /* batches that wait for replies to go back with */
    /* As many as may be in batches that wait so: then these go back, and there is room again. */
    ACCEPTED_OUT_MAX = DONE_MAX * BATCH_ACCEPTED_MAX,
    HANDSHAKES_MAX = 4, /* steps a turn: one takes as long as many requests */
};

/* A batch and all its arrays of fixed size. */
struct network_batch {
    struct batch batch; /* first */
    struct transport_note notes[BATCH_NOTES_MAX];
    struct accepted accepted[BATCH_ACCEPTED_MAX];
};

struct input_piece {
    struct input_piece *next;
    size_t used;
    char at[PIECE_SIZE];
};

/* ---- batches, on the network's thread ---- */

static void network_free_batch(struct batch *batch) {
    resp_arena_deinit(&batch->arguments);
    memory_free(batch->entries);
    memory_free(batch);
}

static void network_take_pieces_back(struct network *network, struct batch *batch) {
    while (batch->pieces != NULL) {
        struct input_piece *piece = batch->pieces;
        batch->pieces = piece->next;
        network->piece_count--;
        if (network->spare_piece_count < SPARE_PIECES_MAX) {
            piece->next = network->spare_pieces;
            network->spare_pieces = piece;
            network->spare_piece_count++;
        } else {
            memory_free(piece);
        }
    }
}

static void network_resume_accepting(struct network *network) {
    if (network->acceptor != NULL && network_may_accept(network)) {
        acceptor_resume(network->acceptor);
    }
}

/* All its requests have run. */
static void network_recycle(struct network *network, struct batch *batch) {
    network_take_pieces_back(network, batch);
    network->accepted_out -= batch->accepted_count;
    network_resume_accepting(network);
    if (network->spare_count >= SPARE_BATCHES_MAX) {
        network_free_batch(batch);
        return;
    }
    if (batch->capacity > ENTRIES_KEPT_MAX) {
        memory_free(batch->entries);
        batch->entries = NULL;
        batch->capacity = 0;
    }
    resp_arena_reset(&batch->arguments);
    batch->next = network->spare;
    network->spare = batch;
    network->spare_count++;
}

/* The batch being filled. NULL: no memory. */
static struct batch *network_filling(struct network *network) {
    struct batch *batch = network->filling;
    if (batch != NULL) {
        return batch;
    }
    batch = network->spare;
    if (batch != NULL) {
        network->spare = batch->next;
        network->spare_count--;
    } else {
        struct network_batch *whole = memory_allocate_zeroed(sizeof *whole);
        if (whole == NULL) {
            return NULL;
        }
        batch = &whole->batch;
        batch->notes = whole->notes;
        batch->accepted = whole->accepted;
    }
    batch->next = NULL;
    batch->network = network;
    batch->count = 0;
    batch->position = 0;
    batch->note_count = 0;
    batch->accepted_count = 0;
    batch->is_drained = false;
    network->filling = batch;
    return batch;
}

bool network_may_accept(const struct network *network) {
    return network->accepted_out < ACCEPTED_OUT_MAX &&
           (network->filling == NULL || network->filling->accepted_count < BATCH_ACCEPTED_MAX);
}

struct accepted *network_next_accepted(struct network *network) {
    struct batch *batch = network_filling(network);
    return batch != NULL ? &batch->accepted[batch->accepted_count] : NULL;
}

void network_keep_accepted(struct network *network) {
    CHECK(network->filling->accepted_count < BATCH_ACCEPTED_MAX);
    network->filling->accepted_count++;
    network->accepted_out++;
}

void network_refuse_proxied(struct network *network, const struct accepted *accepted,
                            const char *reason) {
    close(accepted->fd);
    network->proxy_refusals.count++;
    network->proxy_refusals.reason = reason;
    network->proxy_refusals.peer = accepted->is_proxied ? accepted->proxy : accepted->peer;
}

char *network_input_room(struct network *network, size_t *size) {
    struct batch *batch = network_filling(network);
    if (batch == NULL) {
        return NULL;
    }
    struct input_piece *piece = batch->pieces;
    if (piece == NULL || PIECE_SIZE - piece->used < PIECE_ROOM_MIN) {
        piece = network->spare_pieces;
        if (piece != NULL) {
            network->spare_pieces = piece->next;
            network->spare_piece_count--;
        } else {
            piece = memory_allocate(sizeof *piece);
            if (piece == NULL) {
                return NULL;
            }
        }
        piece->used = 0;
        piece->next = batch->pieces;
        batch->pieces = piece;
        network->piece_count++;
    }
    *size = PIECE_SIZE - piece->used;
    return piece->at + piece->used;
}

void network_input_keep(struct network *network, size_t size) {
    struct input_piece *piece = network->filling->pieces;
    CHECK(size <= PIECE_SIZE - piece->used);
    piece->used += size;
}

struct queue_entry *network_next_entry(struct network *network) {
    struct batch *batch = network_filling(network);
    if (batch == NULL) {
        return NULL;
    }
    if (batch->count == batch->capacity) {
        size_t capacity = batch->capacity > 0 ? batch->capacity * 2 : ENTRIES_MIN;
        struct queue_entry *entries =
            memory_resize(batch->entries, capacity * sizeof *batch->entries);
        if (entries == NULL) {
            return NULL;
        }
        batch->entries = entries;
        batch->capacity = capacity;
    }
    return &batch->entries[batch->count];
}

void network_queue_entry(struct network *network) {
    CHECK(network->filling->count < network->filling->capacity);
    network->filling->count++;
}

bool network_is_full(const struct network *network) {
    return network->in_flight > FULL_REQUESTS || network->piece_count > FULL_PIECES;
}

bool network_may_shake(struct network *network) {
    return network->handshakes_left-- > 0;
}

void network_note(struct network *network, struct transport *transport,
                  enum transport_event event) {
    if (transport->events == 0) {
        transport->noted_next = network->noted;
        network->noted = transport;
    }
    transport->events |= event;
}

static bool network_is_drained(const struct network *network) {
    if (network->noted != NULL || (network->filling != NULL && network->filling->count > 0)) {
        return false;
    }
    for (const struct transport *transport = network->transports; transport != NULL;
         transport = transport->next) {
        if (transport->is_unparsed && !transport->is_stopped && !transport->is_failed) {
            return false;
        }
    }
    return true;
}

static void network_fill_notes(struct network *network, struct batch *batch) {
    while (network->noted != NULL && batch->note_count < BATCH_NOTES_MAX) {
        struct transport *transport = network->noted;
        network->noted = transport->noted_next;
        batch->notes[batch->note_count++] = (struct transport_note){
            .session = transport->session,
            .events = transport->events,
            .failure = transport->failure,
            .unfinished_size = transport->unfinished.end - transport->unfinished.begin,
            .memory_size = transport_memory_size(transport),
            .tls_error = transport->tls != NULL ? tls_error(transport->tls) : NULL,
        };
        transport->events = 0;
    }
}

static bool network_is_drained_news(const struct network *network) {
    return network->is_draining && !network->is_drained_told && network_is_drained(network);
}

static bool network_has_news(const struct network *network) {
    const struct batch *batch = network->filling;
    return network->noted != NULL || network->written != NULL || network->turned_away.error != 0 ||
           network->proxy_refusals.count > 0 ||
           (batch != NULL && (batch->count > 0 || batch->accepted_count > 0)) ||
           network_is_drained_news(network);
}

/* What was read and noted since the last batch, to be handed over. NULL: nothing, or no memory. */
static struct batch *network_finish_batch(struct network *network) {
    bool is_told = network_is_drained_news(network);
    struct batch *batch = network_has_news(network) ? network_filling(network) : NULL;
    if (batch == NULL) {
        return NULL;
    }
    network->filling = NULL;
    network_fill_notes(network, batch);
    batch->is_drained = is_told;
    network->is_drained_told |= is_told;
    batch->turned_away = network->turned_away;
    batch->proxy_refusals = network->proxy_refusals;
    batch->read_bytes = network->read_bytes;
    batch->written_bytes = network->written_bytes;
    batch->written = network->written;
    batch->used = network->used;
    network->read_bytes = 0;
    network->written_bytes = 0;
    network->written = NULL;
    network->used = NULL;
    network->turned_away = (struct turned_away){0};
    network->proxy_refusals = (struct proxy_refusals){0};
    network_resume_accepting(network);
    return batch;
}

static void network_close_acceptor(struct network *network) {
    if (network->acceptor != NULL) {
        acceptor_close(network->acceptor);
    }
}

static void network_drain_input(struct network *network) {
    network->is_draining = true;
    network_close_acceptor(network);
    struct transport *transport = network->transports;
    for (; transport != NULL; transport = transport->next) {
        transport_update(transport);
    }
}

/* ---- the thread ---- */

static void network_hand_over(struct network *network) {
    struct batch *batch;
    while (ring_has_room(&network->to_engine) && (batch = network_finish_batch(network)) != NULL) {
        CHECK(ring_put(&network->to_engine, batch));
        wakeup_send(network->engine_wake);
    }
}

static void network_refuse_socket(int fd, const char *text, size_t size) {
    (void)!write(fd, text, size);
    close(fd);
}

static void network_apply_to(struct network *network, const struct transport_message *message,
                             const char *bytes) {
    if (message->is_closed) {
        network->is_stopping = true;
        network_close_acceptor(network);
    } else if (message->size > 0) {
        network_refuse_socket(message->fd, bytes, message->size);
    } else {
        network_drain_input(network);
    }
}

static void network_take_replies(struct network *network) {
    struct replies *replies;
    while ((replies = ring_take(&network->to_network)) != NULL) {
        for (unsigned i = 0; i < replies->count; i++) {
            const struct transport_message *message = &replies->messages[i];
            const char *bytes = replies->bytes + message->begin;
            if (message->transport == NULL) {
                network_apply_to(network, message, bytes);
            } else {
                transport_apply(message->transport, message, bytes);
            }
        }
        while (replies->used != NULL) {
            struct batch *batch = replies->used;
            replies->used = batch->next;
            network_recycle(network, batch);
        }
        replies->next = network->used;
        network->used = replies;
    }
}

static void network_stop_if_asked(struct network *network) {
    if (!network->is_stopping || network->transports != NULL) {
        return;
    }
    wakeup_close(&network->wake);
    uv_close((uv_handle_t *)&network->prepare, NULL);
    uv_close((uv_handle_t *)&network->check, NULL);
    uv_close((uv_handle_t *)&network->idle, NULL);
}

static void network_on_idle(uv_idle_t *idle) {
    (void)idle; /* an active idle handle only keeps poll from blocking */
}

static bool network_has_replies(void *context) {
    struct network *network = context;
    return !ring_is_empty(&network->to_network);
}

static void network_on_prepare(uv_prepare_t *prepare) {
    struct network *network = prepare->data;
    if (network->in_flight > 0) { /* the engine has requests of ours and is about to answer */
        (void)wakeup_spin(network->spin_ns, network_has_replies, network);
    }
    wakeup_sleep(&network->wake);
    if (ring_is_empty(&network->to_network)) {
        uv_idle_stop(&network->idle);
    } else {
        uv_idle_start(&network->idle, network_on_idle);
    }
}

static void network_on_check(uv_check_t *check) {
    struct network *network = check->data;
    wakeup_wake(&network->wake);
    network->handshakes_left = HANDSHAKES_MAX;
    network_take_replies(network);
    network_hand_over(network);
    network_stop_if_asked(network);
}

static void network_run_thread(void *context) {
    struct network *network = context;
    char name[16];
    thread_signals_begin();
    snprintf(name, sizeof name, "leaderboard-io%u", network->number % 10);
    (void)pthread_setname_np(pthread_self(), name);
    uv_run(network->loop, UV_RUN_DEFAULT);
    network_hand_over(network);
}

/* ---- the engine ---- */

static void network_fill(struct network *network, uv_loop_t *loop,
                         const struct network_options *options) {
    *network = (struct network){
        .loop = loop,
        .limits = options->limits,
        .find_command = options->find_command,
        .acceptor = options->acceptor,
        .engine_wake = options->engine_wake,
        .spin_ns = options->spin_ns,
        .number = options->number,
        .handshakes_left = HANDSHAKES_MAX,
    };
}

static bool network_watch_acceptor(struct network *network) {
    return network->acceptor == NULL || acceptor_watch(network->acceptor, network);
}

bool network_init(struct network *network, uv_loop_t *loop, const struct network_options *options) {
    network_fill(network, loop, options);
    return network_watch_acceptor(network);
}

static bool network_init_handles(struct network *network) {
    uv_loop_t *loop = &network->own_loop;
    if (uv_loop_init(loop) != 0) {
        return false;
    }
    network->prepare.data = network;
    network->check.data = network;
    if (!wakeup_init(&network->wake, loop)) {
        CHECK(uv_loop_close(loop) == 0);
        return false;
    }
    uv_prepare_init(loop, &network->prepare);
    uv_check_init(loop, &network->check);
    uv_idle_init(loop, &network->idle);
    uv_prepare_start(&network->prepare, network_on_prepare);
    uv_check_start(&network->check, network_on_check);
    return true;
}

bool network_start(struct network *network, const struct network_options *options) {
    network_fill(network, &network->own_loop, options);
    if (!network_init_handles(network)) {
        network_close_acceptor(network);
        return false;
    }
    if (!network_watch_acceptor(network) ||
        uv_thread_create(&network->thread, network_run_thread, network) != 0) {
        network->is_stopping = true;
        network_close_acceptor(network);
        network_stop_if_asked(network);
        uv_run(&network->own_loop, UV_RUN_DEFAULT);
        CHECK(uv_loop_close(&network->own_loop) == 0);
        wakeup_deinit(&network->wake);
        return false;
    }
    network->has_thread = true;
    return true;
}

struct batch *network_take(struct network *network) {
    struct batch *batch = network->has_thread ? ring_take(&network->to_engine) : NULL;
    if (batch == NULL && (!network->has_thread || network->is_joined)) {
        network->handshakes_left = HANDSHAKES_MAX;
        batch = network_finish_batch(network);
    }
    if (batch != NULL) {
        network->is_drained |= batch->is_drained;
    }
    return batch;
}

bool network_has_batch(struct network *network) {
    return network->has_thread ? !ring_is_empty(&network->to_engine) : network_has_news(network);
}

void network_give_back(struct network *network, struct batch *batch) {
    if (!network->has_thread) {
        network_recycle(network, batch);
        return;
    }
    batch->next = network->done_first;
    network->done_first = batch;
    network->done_count++;
}

static void network_free_outgoing(struct outgoing *outgoing) {
    buffer_deinit(&outgoing->buffer);
    memory_free(outgoing);
}

static void network_keep_replies(struct network *network, struct replies *replies) {
    if (network->free_replies_count >= FREE_REPLIES_MAX) {
        memory_free(replies);
        return;
    }
    replies->next = network->free_replies;
    network->free_replies = replies;
    network->free_replies_count++;
}

void network_reclaim(struct network *network, struct batch *batch) {
    while (batch->written != NULL) {
        struct outgoing *outgoing = batch->written;
        batch->written = outgoing->next;
        network_free_outgoing(outgoing);
    }
    while (batch->used != NULL) {
        struct replies *replies = batch->used;
        batch->used = replies->next;
        network_keep_replies(network, replies);
    }
}

static struct replies *network_new_replies(struct network *network) {
    struct replies *replies = network->free_replies;
    if (replies != NULL) {
        network->free_replies = replies->next;
        network->free_replies_count--;
    } else {
        replies = memory_allocate(sizeof *replies);
        if (replies == NULL) {
            return NULL;
        }
    }
    replies->next = NULL;
    replies->used = NULL;
    replies->count = 0;
    replies->size = 0;
    return replies;
}

/* Into the ring, behind those that wait for room in it. */
static void network_put_replies(struct network *network) {
    struct replies *replies = network->replies;
    network->replies = NULL;
    replies->used = network->done_first;
    network->done_first = NULL;
    network->done_count = 0;
    if (network->waiting_last != NULL) {
        network->waiting_last->next = replies;
    } else {
        network->waiting_first = replies;
    }
    network->waiting_last = replies;
}

bool network_push(struct network *network) {
    bool has_put = false;
    if (network->replies == NULL && network->done_count >= DONE_MAX) {
        network->replies =
            network_new_replies(network); /* nothing to say for long: the batches go back */
    }
    if (network->replies != NULL &&
        (network->replies->count > 0 || network->done_count >= DONE_MAX)) {
        network_put_replies(network);
    }
    while (network->waiting_first != NULL) {
        struct replies *replies = network->waiting_first;
        struct replies *next = replies->next;
        if (!ring_put(&network->to_network, replies)) {
            break;
        }
        has_put = true;
        network->waiting_first = next;
        if (next == NULL) {
            network->waiting_last = NULL;
        }
    }
    if (has_put) {
        wakeup_send(&network->wake);
    }
    return network->waiting_first != NULL;
}

struct transport_message *network_message(struct network *network, struct transport *transport,
                                          size_t size, char **bytes) {
    CHECK(size <= REPLIES_COPIED_MAX);
    struct replies *replies = network->replies;
    if (replies != NULL &&
        (replies->count == REPLIES_MESSAGES_MAX || REPLIES_SIZE_MAX - replies->size < size)) {
        (void)network_push(network);
        replies = NULL;
    }
    if (replies == NULL) {
        replies = network_new_replies(network);
        if (replies == NULL) {
            return NULL;
        }
        network->replies = replies;
    }
    struct transport_message *message = &replies->messages[replies->count++];
    *message = (struct transport_message){
        .transport = transport,
        .begin = replies->size,
        .size = size,
    };
    if (size > 0) {
        *bytes = replies->bytes + replies->size;
        replies->size += size;
    }
    return message;
}

void network_refuse(struct network *network, int fd, const char *text) {
    size_t size = strlen(text);
    char *bytes = NULL;
    struct transport_message *message =
        network->has_thread ? network_message(network, NULL, size, &bytes) : NULL;
    if (message == NULL) {
        network_refuse_socket(fd, text, size);
        return;
    }
    message->fd = fd;
    memcpy(bytes, text, size);
}

void network_drain(struct network *network) {
    if (!network->has_thread) {
        network_drain_input(network);
        return;
    }
    struct transport_message *message = network_message(network, NULL, 0, NULL);
    if (message == NULL) {
        network->is_drained = true; /* no memory: what is on its way is not waited for */
    }
    (void)network_push(network);
}

void network_join(struct network *network) {
    struct transport_message *message;
    while ((message = network_message(network, NULL, 0, NULL)) == NULL) {
        sched_yield(); /* nothing can be done without it */
    }
    message->is_closed = true;
    while (network_push(network)) {
        sched_yield();
    }
    uv_thread_join(&network->thread);
    network->is_joined = true;
    wakeup_deinit(&network->wake);
    CHECK(uv_loop_close(&network->own_loop) == 0);
}

void network_deinit(struct network *network) {
    while (network->done_first != NULL) {
        struct batch *batch = network->done_first;
        network->done_first = batch->next;
        network_recycle(network, batch);
    }
    if (network->filling != NULL) {
        network_take_pieces_back(network, network->filling);
        network_free_batch(network->filling);
    }
    while (network->spare != NULL) {
        struct batch *batch = network->spare;
        network->spare = batch->next;
        network_free_batch(batch);
    }
    while (network->spare_pieces != NULL) {
        struct input_piece *piece = network->spare_pieces;
        network->spare_pieces = piece->next;
        memory_free(piece);
    }
    while (network->written != NULL) {
        struct outgoing *outgoing = network->written;
        network->written = outgoing->next;
        network_free_outgoing(outgoing);
    }
    while (network->used != NULL) {
        struct replies *replies = network->used;
        network->used = replies->next;
        network_keep_replies(network, replies);
    }
    memory_free(network->replies);
    while (network->free_replies != NULL) {
        struct replies *replies = network->free_replies;
        network->free_replies = replies->next;
        memory_free(replies);
    }
}
