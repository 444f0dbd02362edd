/* Private to tick*.c:
 *
 *     tick.c           the loop's callbacks: what a tick does, in its order
 *     tick_network.c   the networks, and the queue of what they bring
 *     tick_run.c       running the queue, and the commands that run in steps
 *     tick_output.c    output: lending buffers, what waits, what leaves
 *     tick_stop.c      retiring, draining, the end */
#ifndef SERVER_TICK_PARTS_H
#define SERVER_TICK_PARTS_H

#include "server/loop/connection.h"

enum { SECOND_MS = 1000 };

/* ---- tick.c ---- */

void tick_set_idle(struct tick *tick, bool is_active);

/* ---- tick_network.c ---- */

void tick_release_batches(struct tick *tick);
/* Take what the networks have for the engine. */
void tick_take_batches(struct tick *tick);
bool tick_has_batches(struct tick *tick);
/* Hand over the replies. true: some must wait for the next tick. */
bool tick_push_replies(struct tick *tick);
/* What the networks need to know. */
void tick_publish_limits(struct tick *tick);
/* Waiting requests are dropped without running. */
void tick_drop_queue(struct tick *tick);
/* The threads close their sockets and end. */
void tick_join_networks(struct tick *tick);
/* Requests that come soon after each other are waited for without sleeping. */
void tick_note_requests(struct tick *tick);
void tick_note_networks(struct tick *tick);
bool tick_init_networks(struct tick *tick);

/* ---- tick_run.c ---- */

/* While writes wait, nothing may expire or roll over either. */
static inline void tick_hold_due(struct tick *tick, bool is_held) {
    if (tick->is_due_held != is_held) {
        tick->is_due_held = is_held;
        registry_set_held(tick->server->registry, is_held);
    }
}
/* Run the queue until the budget is spent; the command that exceeds it is the last. Then replies
 * are sent, and disconnected clients are detected before more of their requests run. */
void tick_run_queue(struct tick *tick);
bool tick_is_behind(const struct server *server);
/* true: there is more to do. */
bool tick_run_jobs(struct tick *tick);

/* ---- tick_output.c ---- */

/* Keep an empty buffer for lending, or free it. */
void tick_keep_buffer(struct tick *tick, struct buffer *buffer);
/* Once a second: free the buffers that were not lent since the last call. They are at the bottom,
 * because lending takes from the top. */
void tick_free_idle_buffers(struct tick *tick);
void tick_finish_dirty(struct tick *tick);
/* Serve clients that waited for keys which have changed. Clients have received output without
 * asking for it: it may show changes of the command that ran, so it waits as that command's reply
 * does. is_harmless: that command has seen no boards, and none of its client's replies waits. */
void tick_take_news(struct tick *tick, bool is_harmless);
bool tick_entry_sees_boards(const struct queue_entry *entry);
/* Hold the reply back if it may show changes that must be on disk first: the command's own changes or,
 * with appendfsync always, any that it could see. A refused command has seen none. entry NULL: it
 * could see all. */
void tick_hold_output(struct connection *connection, size_t size_before, bool has_changed,
                      const struct queue_entry *entry);
/* What began in an epoch that is over by now has seen or changed what is not decided here any more:
 * a job, or a transaction that has ended the epoch itself. Its client is closed without an answer.
 */
void tick_drop_outdated(struct server *server, struct session *session, uint64_t epoch);
/* With replicas, answers wait for what these are sent. With sync-replicas acknowledgements come in
 * any tick, and the lease ends in any. Else the disk tells. */
bool tick_must_release_answers(const struct tick *tick);
/* Send what clients received without asking, to some of them. true: more are left. */
bool tick_finish_pushed(struct tick *tick);
/* What replicas are sent leaves before the replies: a change that is answered is in their sockets,
 * and outlives this process. */
bool tick_end_replication(struct tick *tick);

/* ---- tick_stop.c ---- */

void tick_close_handle(uv_handle_t *handle);
void tick_check_shutdown(struct tick *tick);

#endif
