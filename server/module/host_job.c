/* Jobs. See host_run.h. */
#include "server/clients/job.h"
#include "server/commands/lb/board_task.h"
#include "server/module/host_reply.h"
#include "server/module/host_run.h"
#include "server/module/host_state.h"

enum {
    STEPS_NS = 500 * 1000, /* of every millisecond */
    AGAIN_MS = 1,
    RETRY_MS = 50, /* while nothing may change */
};

/* A client that is blocked. */
struct waiter {
    struct session session;
    struct host_blocked *blocked;
    struct buffer output;
    struct waiter *next;
};

static struct {
    struct waiter *first; /* those whose jobs run */
    struct waiter *spare; /* for the next command; NULL: none */
    bool has_timer;
} jobs;

/* ---- clients ---- */

bool host_job_reserve(void) {
    if (jobs.spare == NULL) {
        jobs.spare = memory_allocate(sizeof *jobs.spare);
    }
    return jobs.spare != NULL;
}

static void host_job_take_waiter(const struct waiter *waiter) {
    struct waiter **link = &jobs.first;
    while (*link != waiter) {
        link = &(*link)->next;
    }
    *link = waiter->next;
}

static int host_job_reply_to(struct host_context *ctx, struct host_string **argv, int argc) {
    const struct waiter *waiter = host_GetBlockedClientPrivateData(ctx);
    (void)argv;
    (void)argc;
    host_reply(ctx, &waiter->output);
    return HOST_OK;
}

static void host_job_free_waiter(struct host_context *ctx, void *context) {
    struct waiter *waiter = context;
    (void)ctx;
    if (waiter != NULL) {
        client_memory_forget(&module.server.sessions.memory, &waiter->session);
        buffer_deinit(&waiter->output);
        memory_free(waiter);
    }
}

/* The client is gone. A durable job goes on without it. */
static void host_job_on_disconnect(struct host_context *ctx, struct host_blocked *blocked) {
    struct waiter *waiter = jobs.first;
    (void)ctx;
    while (waiter != NULL && waiter->blocked != blocked) {
        waiter = waiter->next;
    }
    if (waiter != NULL) {
        host_job_take_waiter(waiter);
        job_leave(&module.server, &waiter->session);
        host_UnblockClient(blocked, waiter);
    }
}

static struct waiter *host_job_waiter_of(const struct session *session) {
    struct waiter *waiter = jobs.first;
    while (waiter != NULL && &waiter->session != session) {
        waiter = waiter->next;
    }
    return waiter;
}

/* The job passes from the session of the handler to that of a client that waits. */
static void host_job_block(struct host_context *ctx) {
    struct waiter *waiter = jobs.spare;
    struct job *job = module.session.job;
    jobs.spare = NULL;
    *waiter = (struct waiter){.next = jobs.first};
    session_init(&waiter->session, module.session.id, module.server.clock.monotonic_ms);
    waiter->session.protocol = module.session.protocol;
    buffer_init(&waiter->output, 0);
    client_memory_forget(&module.server.sessions.memory, &module.session);
    waiter->session.job = job;
    waiter->session.job_size = module.session.job_size;
    module.session.job = NULL;
    module.session.job_size = 0;
    job->session = &waiter->session;
    waiter->blocked = host_BlockClient(ctx, host_job_reply_to, NULL, host_job_free_waiter, 0);
    host_SetDisconnectCallback(waiter->blocked, host_job_on_disconnect);
    jobs.first = waiter;
}

/* ---- steps ---- */

/* Those of clients that wait. */
static void host_job_answer_done(void) {
    struct job *job;
    while ((job = jobs_find_done(&module.server)) != NULL && job->session != &module.session) {
        struct waiter *waiter = host_job_waiter_of(job->session);
        struct reply reply;
        CHECK(waiter != NULL);
        reply_init(&reply, &waiter->output, waiter->session.protocol);
        job_answer(&module.server, job, &reply);
        host_job_take_waiter(waiter);
        host_UnblockClient(waiter->blocked, waiter);
    }
}

/* true: there is more to do now. */
static bool host_job_run_steps(struct host_context *ctx) {
    int database = host_GetSelectedDb(ctx);
    module.context = ctx;
    bool has_more = jobs_step(&module.server, STEPS_NS, host_may_change(ctx));
    host_state_replicate(ctx);
    module_free_step();
    (void)host_SelectDb(ctx, database);
    return has_more;
}

static void host_job_set_timer(int64_t delay_ms);

static void host_job_on_timer(struct host_context *ctx, void *context) {
    (void)context;
    jobs.has_timer = false;
    module_update_time();
    bool has_more = host_job_run_steps(ctx);
    host_job_answer_done();
    if (module.server.jobs.count > 0) {
        host_job_set_timer(has_more ? AGAIN_MS : RETRY_MS);
    }
}

static void host_job_set_timer(int64_t delay_ms) {
    if (!jobs.has_timer) {
        (void)host_CreateTimer(module.timer_context, delay_ms, host_job_on_timer, NULL);
        jobs.has_timer = true;
    }
}

bool host_job_run(struct host_context *ctx) {
    const struct job *job = module.session.job;
    (void)host_job_run_steps(ctx);
    if (job->state == JOB_DONE) {
        return true;
    }
    host_job_block(ctx);
    host_job_set_timer(AGAIN_MS);
    return false;
}

/* ---- roles ---- */

void host_job_resume(void) {
    module.server.jobs.is_resumed = false;
    host_job_set_timer(AGAIN_MS);
}

/* The host closes the clients mostly before it says that its role has changed. */
void host_job_stop(void) {
    struct waiter *next;
    module.server.jobs.is_resumed = true;
    for (struct waiter *waiter = jobs.first; waiter != NULL; waiter = next) {
        struct reply reply;
        next = waiter->next;
        if (waiter->session.job->kind->writes) {
            reply_init(&reply, &waiter->output, waiter->session.protocol);
            reply_error(&reply, SERVER_UNBLOCKED_ERROR);
            host_job_take_waiter(waiter);
            job_leave(&module.server, &waiter->session);
            host_UnblockClient(waiter->blocked, waiter);
        }
    }
    jobs_end_durable(&module.server);
}

void host_job_init(void) {
    module.server.jobs.resume = board_task_resume;
    module.server.jobs.is_resumed = true; /* until there is something */
}
