/* The batches of a network, and its thread. See network.h.
 *
 * Invariant: a batch is in exactly one place: being filled, spare, in a ring, with the engine, or on
 * its way back. */
#include "server/network/network.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "codec/list.h"
#include "codec/thread_signals.h"
#include "server/network/acceptor.h"

enum {
    FREE_REPLIES_MAX = 8,
};

/* ---- on the network's thread ---- */

static void network_resume_accepting(struct network *network) {
    if (network->acceptor != NULL && intake_may_accept(&network->intake)) {
        acceptor_resume(network->acceptor);
    }
}

/* All its requests have run. */
static void network_recycle(struct network *network, struct batch *batch) {
    intake_recycle(&network->intake, batch);
    network_resume_accepting(network);
}

static bool network_is_drained_news(const struct network *network) {
    const struct intake *intake = &network->intake;
    if (!intake->is_draining || network->is_drained_told || intake->noted != NULL ||
        (intake->filling != NULL && intake->filling->count > 0)) {
        return false;
    }
    for (const struct transport *at = intake->transports; at != NULL; at = at->next) {
        if (at->is_unparsed && !at->is_stopped && !at->is_failed) {
            return false;
        }
    }
    return true;
}

static bool network_has_news(const struct network *network) {
    const struct batch *batch = network->intake.filling;
    return network->intake.noted != NULL || network->intake.written != NULL ||
           network->intake.turned_away.error != 0 || network->intake.proxy_refusals.count > 0 ||
           (batch != NULL && (batch->count > 0 || batch->accepted_count > 0)) ||
           network_is_drained_news(network);
}

/* What was read and noted since the last batch, to be handed over. NULL: nothing, or no memory. */
static struct batch *network_finish_batch(struct network *network) {
    bool is_told = network_is_drained_news(network);
    struct batch *batch = network_has_news(network) ? intake_filling(&network->intake) : NULL;
    if (batch == NULL) {
        return NULL;
    }
    network->intake.filling = NULL;
    batch->network = network;
    struct transport *transport;
    while ((transport = network->intake.noted) != NULL && batch->note_count < BATCH_NOTES_MAX) {
        network->intake.noted = transport->noted_next;
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
    batch->is_drained = is_told;
    network->is_drained_told |= is_told;
    batch->turned_away = network->intake.turned_away;
    batch->proxy_refusals = network->intake.proxy_refusals;
    batch->read_bytes = network->intake.read_bytes;
    batch->written_bytes = network->intake.written_bytes;
    batch->written = network->intake.written;
    batch->used = network->used;
    network->intake.read_bytes = 0;
    network->intake.written_bytes = 0;
    network->intake.written = NULL;
    network->used = NULL;
    network->intake.turned_away = (struct turned_away){0};
    network->intake.proxy_refusals = (struct proxy_refusals){0};
    network_resume_accepting(network);
    return batch;
}

static void network_close_acceptor(struct network *network) {
    if (network->acceptor != NULL) {
        acceptor_close(network->acceptor);
    }
}

static void network_drain_input(struct network *network) {
    network->intake.is_draining = true;
    network_close_acceptor(network);
    struct transport *transport = network->intake.transports;
    for (; transport != NULL; transport = transport->next) {
        transport_update(transport);
    }
}

/* ---- the thread ---- */

static void network_hand_over(struct network *network) {
    struct batch *batch;
    while (ring_has_room(&network->to_engine) && (batch = network_finish_batch(network)) != NULL) {
        CHECK(ring_put(&network->to_engine, batch));
        worker_wakeup_send(network->engine_wake);
    }
}

static void network_refuse_socket(int fd, const char *text, size_t size) {
    (void)!write(fd, text, size);
    close(fd);
}

static void network_stop_if_asked(struct network *network) {
    if (!network->is_stopping || network->intake.transports != NULL) {
        return;
    }
    worker_wakeup_close(&network->wake);
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
    if (network->intake.in_flight >
        0) { /* the engine has requests of ours and is about to answer */
        (void)worker_wakeup_spin(network->spin_ns, network_has_replies, network);
    }
    worker_wakeup_sleep(&network->wake);
    if (ring_is_empty(&network->to_network)) {
        uv_idle_stop(&network->idle);
    } else {
        uv_idle_start(&network->idle, network_on_idle);
    }
}

static void network_on_check(uv_check_t *check) {
    struct network *network = check->data;
    worker_wakeup_wake(&network->wake);
    intake_begin_turn(&network->intake);
    struct replies *replies;
    struct batch *batch;
    while ((replies = ring_take(&network->to_network)) != NULL) {
        for (unsigned i = 0; i < replies->count; i++) {
            const struct transport_message *message = &replies->messages[i];
            const char *bytes = replies->bytes + message->begin;
            if (message->transport == NULL) {
                if (message->is_closed) {
                    network->is_stopping = true;
                    network_close_acceptor(network);
                } else if (message->size > 0) {
                    network_refuse_socket(message->fd, bytes, message->size);
                } else {
                    network_drain_input(network);
                }
            } else {
                transport_apply(message->transport, message, bytes);
            }
        }
        LIST_TAKE_EACH(replies->used, batch) {
            network_recycle(network, batch);
        }
        replies->next = network->used;
        network->used = replies;
    }
    network_hand_over(network);
    network_stop_if_asked(network);
}

static void network_run_thread(void *context) {
    struct network *network = context;
    char name[16];
    thread_signals_begin();
    snprintf(name, sizeof name, "leaderboard-io%u", network->number % 10);
    (void)pthread_setname_np(pthread_self(), name);
    uv_run(network->intake.loop, UV_RUN_DEFAULT);
    network_hand_over(network);
}

/* ---- the engine ---- */

static void network_fill(struct network *network, uv_loop_t *loop,
                         const struct network_options *options) {
    *network = (struct network){
        .intake = {.loop = loop, .limits = options->limits, .find_command = options->find_command},
        .acceptor = options->acceptor,
        .engine_wake = options->engine_wake,
        .spin_ns = options->spin_ns,
        .number = options->number,
    };
    intake_begin_turn(&network->intake);
}

static bool network_watch_acceptor(struct network *network) {
    return network->acceptor == NULL || acceptor_watch(network->acceptor, &network->intake);
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
    if (!worker_wakeup_init(&network->wake, loop)) {
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
        worker_wakeup_deinit(&network->wake);
        return false;
    }
    network->has_thread = true;
    return true;
}

struct batch *network_take(struct network *network) {
    struct batch *batch = network->has_thread ? ring_take(&network->to_engine) : NULL;
    if (batch == NULL && (!network->has_thread || network->is_joined)) {
        intake_begin_turn(&network->intake);
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

void network_reclaim(struct network *network, struct batch *batch) {
    struct outgoing *outgoing;
    struct replies *replies;
    LIST_TAKE_EACH(batch->written, outgoing) {
        network_free_outgoing(outgoing);
    }
    LIST_TAKE_EACH(batch->used, replies) {
        if (network->free_replies_count >= FREE_REPLIES_MAX) {
            memory_free(replies);
            continue;
        }
        replies->next = network->free_replies;
        network->free_replies = replies;
        network->free_replies_count++;
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

bool network_push(struct network *network) {
    bool has_put = false;
    if (network->replies == NULL && network->done_count >= BATCHES_DONE_MAX) {
        network->replies =
            network_new_replies(network); /* nothing to say for long: the batches go back */
    }
    if (network->replies != NULL &&
        (network->replies->count > 0 || network->done_count >= BATCHES_DONE_MAX)) {
        /* Into the ring, behind those that wait for room in it. */
        struct replies *ready = network->replies;
        network->replies = NULL;
        ready->used = network->done_first;
        network->done_first = NULL;
        network->done_count = 0;
        LIST_APPEND(network->waiting_first, network->waiting_last, ready);
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
        worker_wakeup_send(&network->wake);
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
    CHECK(size > 0);
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
    worker_wakeup_deinit(&network->wake);
    CHECK(uv_loop_close(&network->own_loop) == 0);
}

void network_deinit(struct network *network) {
    struct batch *batch;
    struct outgoing *outgoing;
    struct replies *replies;
    LIST_TAKE_EACH(network->done_first, batch) {
        intake_recycle(&network->intake, batch);
    }
    intake_deinit(&network->intake);
    LIST_TAKE_EACH(network->intake.written, outgoing) {
        network_free_outgoing(outgoing);
    }
    LIST_TAKE_EACH(network->used, replies) {
        memory_free(replies);
    }
    memory_free(network->replies);
    LIST_TAKE_EACH(network->free_replies, replies) {
        memory_free(replies);
    }
}
