/* Ends the waiting of clients. See waiting.h. */
#include "server/dispatch/waiting.h"

#include "server/acl/acl_check.h"
#include "server/dispatch/call.h"
#include "server/durability/persistence.h"
#include "server/replication/replication.h"

/* The client waits no more; *reply is where its reply goes. false: it is killed and gets none. */
static bool waiting_end(struct server *server, struct session *session, struct reply *reply) {
    struct buffer *out = server_output(server, session);
    wait_end(&server->waits, session);
    if (out != NULL) {
        reply_init(reply, out, session->protocol);
        session_shape_reply(session, reply);
        reply->is_silent = session->wait.is_silent;
    }
    return out != NULL;
}

/* May the user still use the key, and that to which members are moved? Otherwise the error was replied. */
static bool waiting_may_use(struct server *server, struct session *session, struct bytes name,
                            struct reply *reply) {
    const struct wait *wait = &session->wait;
    uint32_t command = command_index(wait->command);
    uint32_t position = 0;
    struct bytes args[] = {name, name, {.at = wait->target, .size = wait->target_size}};
    const struct request one = {.count = 1, .args = args};
    const struct request both = {.count = 3, .args = args};
    const struct request *request = wait->target != NULL ? &both : &one;
    enum acl_denial denial = ACL_ALLOWED;
    char text[ACL_DENIAL_MAX];
    if (session->is_unlimited) {
        return true;
    }
    if (wait->target != NULL) {
        denial = acl_check(session->user, command, request, &position);
    } else if (!acl_check_key(session->user, command, name)) {
        denial = ACL_DENIED_KEY;
    }
    if (denial != ACL_ALLOWED) {
        reply_error(reply, acl_check_deny(server, session, command, request, denial, position,
                                          false, text));
    }
    return denial == ACL_ALLOWED;
}

static void waiting_serve_session(struct server *server, struct session *session,
                                  struct registry_key *key) {
    struct reply reply;
    struct wait *wait = &session->wait;
    char *target = wait->target; /* outlives the waiting */
    uint32_t target_size = wait->target_size;
    wait->target = NULL;
    bool is_alive = waiting_end(server, session, &reply);
    wait->target = target;
    wait->target_size = target_size;
    if (is_alive && waiting_may_use(server, session, registry_name(key), &reply)) {
        const struct command *command = wait->command;
        const struct call call = call_begin(server, session, command, NULL, &reply);
        session->active_at_ms = server->clock.monotonic_ms;
        server_begin_reply(session);
        server_set_writer(server, session);
        command->serve(&call, key);
        server_set_writer(server, NULL);
        server_end_reply(server, session);
        if (server->persistence != NULL) {
            waiting_note_change(server, session);
        }
    }
    wait_drop_target(session);
}

/* A client that is served changes the key, which marks it anew: it loses its mark when it has no
 * members, or nobody waits for it any more. While the keys may not be changed, marks stay. */
void waiting_serve(struct server *server) {
    struct session *session;
    uint32_t database;
    struct bytes name;
    if (!server_may_change(server)) {
        return;
    }
    while ((session = wait_first(&server->waits, &database, &name)) != NULL) {
        int64_t now_ms = server->clock.now_ms;
        struct registry_key *key = registry_find(server->registry, database, name, now_ms);
        bool gives = key != NULL && key->kind == REGISTRY_BOARD && board_count(&key->board) > 0;
        if (gives) {
            const struct board_options *options = registry_options(key);
            enum board_refusal refusal = board_options_refuse(options, BOARD_WRITE_WHOLE, now_ms);
            if (refusal == BOARD_REFUSE_BEFORE) {
                wait_note_opening(&server->waits, options->opens_ms);
            }
            /* One that never gives anything is served: its handler says so. */
            gives = refusal == BOARD_TAKE || board_options_refusal_lasts(refusal);
        }
        if (!gives) {
            subscription_unmark(&server->waits.keys);
        } else {
            waiting_serve_session(server, session, key);
        }
    }
}

void waiting_serve_opened(struct server *server) {
    if (server_may_change(server) && wait_has_opened(&server->waits, server->clock.now_ms)) {
        waiting_serve(server);
    }
}

void waiting_serve_replicas(struct server *server) {
    struct session *session = server->waits.replica_waiter_count > 0 && server->replication.has_acks
                                  ? server->waits.first
                                  : NULL;
    while (session != NULL) {
        struct session *next = session->links[SESSION_WAITERS].next;
        if (session->wait.state == WAIT_FOR_REPLICAS &&
            session->wait.epoch == server->waits.epoch &&
            replication_count_acked(&server->replication, session->wait.group) >=
                session->wait.count) {
            (void)waiting_unblock(server, session, false);
        }
        session = next;
    }
}

bool waiting_disconnect(struct server *server, uint32_t clients_max) {
    struct waits *waits = &server->waits;
    struct session *session = waits->has_outdated ? waits->first : NULL;
    for (uint32_t i = 0; session != NULL && i < clients_max;) {
        struct session *next = session->links[SESSION_WAITERS].next;
        struct reply reply;
        if (session->wait.epoch != waits->epoch) {
            i++;
            if (waiting_end(server, session, &reply)) {
                reply_error(&reply, SERVER_UNBLOCKED_ERROR);
                session->is_close_after_reply = true;
            }
        }
        session = next;
    }
    waits->has_outdated = session != NULL;
    return waits->has_outdated;
}

bool waiting_give_up(struct server *server, uint32_t clients_max) {
    struct session *session = wait_due(&server->waits, server->clock.monotonic_ms);
    for (uint32_t i = 0; session != NULL && i < clients_max; i++) {
        (void)waiting_unblock(server, session, false);
        session = wait_due(&server->waits, server->clock.monotonic_ms);
    }
    return session != NULL;
}

bool waiting_unblock(struct server *server, struct session *session, bool is_error) {
    struct reply reply;
    enum wait_state state = session->wait.state;
    if (state == WAIT_NONE) {
        return false;
    }
    if (waiting_end(server, session, &reply)) {
        if (is_error) {
            reply_error(&reply, "UNBLOCKED client unblocked via CLIENT UNBLOCK");
        } else if (state == WAIT_FOR_REPLICAS) {
            reply_integer(&reply,
                          replication_count_acked(&server->replication, session->wait.group));
        } else {
            reply_null_array(&reply);
        }
    }
    return true;
}

/* ---- answers that wait for what they show ---- */

void waiting_note_change(const struct server *server, struct session *session) {
    session->changed_group = persistence_last_group(server->persistence);
    session->changed_epoch = server->replication.epoch;
}

bool waiting_holds_readers(const struct server *server) {
    return server->persistence != NULL && (persistence_holds_readers(server->persistence) ||
                                           sync_holds_answers(&server->replication.sync));
}

uint64_t waiting_free_group(struct server *server) {
    uint64_t safe_group = persistence_safe_group(server->persistence);
    uint64_t complete_group = persistence_complete_group(server->persistence);
    if (sync_holds_answers(&server->replication.sync)) {
        return 0;
    }
    if (server->replication.replicas == NULL) {
        return safe_group;
    }
    server->owes_release = true;
    return safe_group < complete_group ? safe_group : complete_group;
}

uint64_t waiting_open_group(const struct server *server) {
    return replication_sync_safe_group(&server->replication.sync,
                                       persistence_safe_group(server->persistence),
                                       clock_read_ms(&server->clock));
}
