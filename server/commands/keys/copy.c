/* COPY. A long value is copied in steps between the commands of other clients (server/sessions/job.h):
 *
 *     copy    some entries a step, while the copy follows changes of the original (registry_mirror.h)
 *     store   in the step in which the copy is whole: the result is the original at that moment
 *
 * A source that is replaced meanwhile is copied from its beginning, and at the last attempt at once. In MULTI
 * a transaction's commands are not interrupted: there COPY is done at once. */
#include "server/commands/writing.h"
#include "server/dispatch/cost.h"
#include "server/dispatch/syntax.h"
#include "server/sessions/job.h"
#include "skiplist/keyspace/registry.h"
#include "skiplist/keyspace/registry_mirror.h"

enum {
    AT_ONCE_MAX =
        4000, /* members, or fields and players' records that count as MEMBERS_PER_FIELD */
    ATTEMPTS_MAX = 8,
    FIELD_UNITS = 4,       /* what a field or a record takes, in members */
    MEMBERS_PER_FIELD = 8, /* a field has memory of its own, unlike a member */
};

struct copy_request {
    struct bytes from, to; /* names */
    uint32_t database;     /* of the source */
    int64_t to_database;
    bool is_replacing;
};

struct copying {
    struct job job; /* first */
    struct copy_request request;
    struct registry_mirror mirror; /* copy NULL: it has not begun */
    unsigned attempt_count;
    bool is_periodic; /* the board had a PERIOD when the user's rights were checked */
    bool is_copied;
    const char *error; /* NULL: none */
    char names[];      /* what the request's names point into */
};

/* ---- both ways ---- */

static bool copy_check_database(const struct call *call, uint32_t index, void *target) {
    (void)index;
    return call_check_database(call, ((struct copy_request *)target)->to_database);
}

static const struct binding copy_bindings[] = {
    {BIND("DB", struct copy_request, to_database), .read = copy_check_database},
    {BIND("REPLACE", struct copy_request, is_replacing)},
    {0},
};

static bool copy_may_store(struct server *server, const struct copy_request *request) {
    return request->is_replacing || registry_find(server->registry, (uint32_t)request->to_database,
                                                  request->to, server->clock.now_ms) == NULL;
}

static void copy_notify(struct server *server, const struct copy_request *request) {
    uint32_t database = (uint32_t)request->to_database;
    notify(server, SETTING_EVENT_NEW, "new", database, request->to);
    notify(server, SETTING_EVENT_GENERIC, "copy_to", database, request->to);
}

/* ---- in steps ---- */

static const char no_memory[] = "OOM out of memory";

/* true: that was the last step. */
static bool copy_end(struct server *server, struct copying *copying,
                     enum registry_status (*store)(struct copying *copying, int64_t now_ms)) {
    if (copy_may_store(server, &copying->request)) {
        copying->is_copied = store(copying, server->clock.now_ms) == REGISTRY_OK;
        copying->error = copying->is_copied ? NULL : no_memory;
    }
    if (copying->is_copied) {
        copy_notify(server, &copying->request);
    }
    return true;
}

static enum registry_status copy_store_mirror(struct copying *copying, int64_t now_ms) {
    return registry_mirror_copy_to(&copying->mirror, (uint32_t)copying->request.to_database,
                                   copying->request.to, now_ms);
}

static enum registry_status copy_store_now(struct copying *copying, int64_t now_ms) {
    return registry_copy(copying->mirror.registry, copying->mirror.key,
                         (uint32_t)copying->request.to_database, copying->request.to, now_ms);
}

static bool copy_is_periodic(const struct registry_key *key) {
    return key->kind == REGISTRY_BOARD && registry_options(key)->period.unit != PERIOD_NONE;
}

/* Begin, or begin again. true: it is over. */
static bool copy_begin(struct server *server, struct copying *copying,
                       const struct registry_key *key) {
    registry_mirror_end(&copying->mirror);
    if (key == NULL) {
        return true;
    }
    if (copy_is_periodic(key) && !copying->is_periodic) {
        copying->error = "TRYAGAIN the board has got a PERIOD while it was copied";
        return true;
    }
    if (copying->attempt_count++ == ATTEMPTS_MAX) {
        copying->mirror = (struct registry_mirror){.registry = server->registry, .key = key};
        return copy_end(server, copying, copy_store_now);
    }
    if (!registry_mirror_begin(&copying->mirror, server->registry, key)) {
        copying->error = no_memory;
    }
    return copying->error != NULL;
}

static bool copy_is_ready(const struct server *server, const struct job *job) {
    (void)server;
    (void)job;
    return memory_is_ready();
}

static bool copy_step(struct server *server, struct job *job) {
    struct copying *copying = (struct copying *)job;
    const struct copy_request *request = &copying->request;
    if (server_is_over_memory(server)) { /* many copies may have begun below it */
        copying->error = SERVER_OVER_MEMORY_ERROR;
        return true;
    }
    /* What is due for the source happens now, and may end the mirror. */
    const struct registry_key *key =
        registry_find(server->registry, request->database, request->from, server->clock.now_ms);
    if (copying->mirror.copy == NULL || key == NULL) {
        return copy_begin(server, copying, key);
    }
    switch (registry_mirror_step(&copying->mirror, REGISTRY_MIRROR_STEP)) {
    case REGISTRY_MIRROR_MORE:
        return false;
    case REGISTRY_MIRROR_LOST:
        return copy_begin(server, copying, key);
    case REGISTRY_MIRROR_OUT_OF_MEMORY:
        copying->error = no_memory;
        return true;
    case REGISTRY_MIRROR_WHOLE:
        break;
    }
    return copy_end(server, copying, copy_store_mirror);
}

static void copy_answer(struct server *server, struct job *job, struct reply *reply) {
    const struct copying *copying = (const struct copying *)job;
    (void)server;
    if (copying->error != NULL) {
        reply_error(reply, copying->error);
    } else {
        reply_integer(reply, copying->is_copied);
    }
}

static void copy_destroy(struct server *server, struct job *job) {
    (void)server;
    registry_mirror_end(&((struct copying *)job)->mirror);
    memory_free(job);
}

static const struct job_kind copy_kind = {.writes = true,
                                          .is_ready = copy_is_ready,
                                          .step = copy_step,
                                          .answer = copy_answer,
                                          .destroy = copy_destroy};

static void copy_in_steps(const struct call *call, const struct copy_request *request,
                          const struct registry_key *key) {
    struct copying *copying =
        memory_allocate_zeroed(sizeof *copying + request->from.size + request->to.size);
    if (copying == NULL) {
        call_out_of_memory(call);
        return;
    }
    char *from = copying->names;
    char *to = from + request->from.size;
    memcpy(from, request->from.at, request->from.size);
    memcpy(to, request->to.at, request->to.size);
    copying->request = *request;
    copying->is_periodic = copy_is_periodic(key);
    copying->request.from.at = from;
    copying->request.to.at = to;
    job_begin(call->server, call->session, &copy_kind, call->reply->is_silent, &copying->job);
}

/* ---- COPY ---- */

static void copy_run(struct call *call) {
    const struct session *session = call->session;
    struct copy_request request = {
        .from = call_arg(call, 1),
        .to = call_arg(call, 2),
        .database = session->database,
        .to_database = session->database,
    };
    if (!syntax_read(call, &request)) {
        return;
    }
    if ((uint32_t)request.to_database == request.database &&
        bytes_equal(request.from, request.to)) {
        reply_error(call->reply, "ERR source and destination objects are the same");
        return;
    }
    const struct registry_key *key = call_find_key(call, request.from);
    if (key == NULL) {
        reply_integer(call->reply, 0);
    } else if (!call_check_key(call, request.to) || !writing_may_name(call, request.to, key)) {
        return;
    } else if (!copy_may_store(call->server, &request)) {
        reply_integer(call->reply, 0);
    } else {
        uint64_t fields =
            key->kind == REGISTRY_HASH ? hash_count(registry_hash(key)) : registry_note_count(key);
        uint64_t size = fields * MEMBERS_PER_FIELD +
                        (key->kind == REGISTRY_HASH ? 0 : board_count(&key->board));
        if (size > AT_ONCE_MAX && !session->transaction.is_running &&
            call->server->jobs.count < JOBS_MAX) {
            copy_in_steps(call, &request, key);
        } else if (registry_copy(call->registry, key, (uint32_t)request.to_database, request.to,
                                 call->now_ms) != REGISTRY_OK) {
            call_out_of_memory(call);
        } else {
            copy_notify(call->server, &request);
            reply_integer(call->reply, 1);
        }
    }
}

/* It holds the server in a transaction, and where too many long commands run already. */
static uint64_t copy_count(const struct cost_view *view) {
    const struct registry_key *key = cost_key(view, 1);
    bool is_hash = key != NULL && key->kind == REGISTRY_HASH;
    uint64_t note_count = key != NULL ? registry_note_count(key) : 0;
    return view->call->session->transaction.is_open || view->call->server->jobs.count >= JOBS_MAX
               ? (uint64_t)cost_size(view, 1) * (is_hash ? FIELD_UNITS : 1) +
                     note_count * FIELD_UNITS
               : 0;
}

const struct command command_copy = {
    .name = "COPY",
    .syntax = "source:key destination:key [DB destination-db:integer] [REPLACE]",
    .bindings = copy_bindings,
    .reply = "b",
    .summary = "Copies a hash, or a board with its layout and reach times, to another key, with "
               "its expiry",
    .complexity = "O(n) in the members of the board or the fields of the hash, in steps between "
                  "other commands",
    .flags = COMMAND_WRITE | COMMAND_DENYOOM,
    .cost = COST(COMMAND_BY_PRODUCT, copy_count, 18, 2,
                 "in `MULTI`: member of the board; a field of a "
                 "hash, or a player's record, counts as 4",
                 "`COPY` outside of `MULTI`"),
    .run = copy_run,
};
