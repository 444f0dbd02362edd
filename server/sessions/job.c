/* The list of jobs, the one to run next first, and their states. See job.h. */
#include "server/sessions/job.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

enum event {
    EVENT_FINISHED,
    EVENT_ANSWERED,
    EVENT_LEFT,         /* its client is gone */
    EVENT_LEFT_DURABLE, /* the same, of a job that writes */
    EVENTS,
};

/* The next state. What is not here cannot occur. */
#define NEXT(state) (1 + (state))
static const uint8_t transitions[][EVENTS] = {
    [JOB_ASKED] = {[EVENT_FINISHED] = NEXT(JOB_DONE),
                   [EVENT_LEFT] = NEXT(JOB_ENDED),
                   [EVENT_LEFT_DURABLE] = NEXT(JOB_ALONE)},
    [JOB_ALONE] = {[EVENT_FINISHED] = NEXT(JOB_ENDED)},
    [JOB_DONE] = {[EVENT_ANSWERED] = NEXT(JOB_ENDED),
                  [EVENT_LEFT] = NEXT(JOB_ENDED),
                  [EVENT_LEFT_DURABLE] = NEXT(JOB_ENDED)},
    [JOB_ENDED] = {0},
};

static void job_unlink(struct jobs *jobs, struct job *job) {
    *(job->previous != NULL ? &job->previous->next : &jobs->first) = job->next;
    *(job->next != NULL ? &job->next->previous : &jobs->last) = job->previous;
    job->previous = NULL;
    job->next = NULL;
    jobs->count--;
}

static void job_link_last(struct jobs *jobs, struct job *job) {
    job->previous = jobs->last;
    job->next = NULL;
    *(jobs->last != NULL ? &jobs->last->next : &jobs->first) = job;
    jobs->last = job;
    jobs->count++;
}

static void job_destroy(struct server *server, struct job *job) {
    job_unlink(&server->jobs, job);
    job->kind->destroy(server, job);
}

/* The job may be freed. */
static void job_advance(struct server *server, struct job *job, enum event event) {
    uint8_t next = transitions[job->state][event];
    CHECK(next != 0);
    job->state = (enum job_state)(next - 1);
    bool is_awaited = job->state == JOB_ASKED || job->state == JOB_DONE;
    if (!is_awaited && job->session != NULL) {
        job->session->job = NULL;
        job->session->job_size = 0;
        job->session = NULL;
    }
    if (job->state == JOB_ENDED) {
        job_destroy(server, job);
    }
}

/* 0: the session waits for its jobs. By name, as an address may be another user's by now. */
static uint64_t job_leaver(const struct server *server, const struct session *session) {
    if (!session->leaves_jobs) {
        return 0;
    }
    struct bytes name = session->user->name;
    return XXH3_64bits_withSeed(name.at, name.size, server->hash_seed);
}

bool job_list_has_room(const struct server *server, const struct session *session,
                       struct reply *reply) {
    uint64_t leaver = job_leaver(server, session);
    uint32_t left_count = 0;
    for (const struct job *job = server->jobs.first; job != NULL; job = job->next) {
        left_count += leaver != 0 && job->left_by == leaver;
    }
    if (left_count >= JOBS_LEFT_MAX) {
        reply_error_format(
            reply, "TOOSOON %d commands of this user that take long are running already: wait 1 s",
            (int)JOBS_LEFT_MAX);
        return false;
    }
    if (server->jobs.count < JOBS_MAX) {
        return true;
    }
    reply_error_format(reply, "TRYAGAIN %d commands that take long are running already",
                       (int)JOBS_MAX);
    return false;
}

void job_begin(struct server *server, struct session *session, const struct job_kind *kind,
               bool is_silent, struct job *job) {
    *job = (struct job){.kind = kind,
                        .session = session,
                        .epoch = replication_answer_epoch(&server->replication),
                        .is_silent = is_silent};
    job->state = session != NULL ? JOB_ASKED : JOB_ALONE;
    if (session != NULL) {
        CHECK(session->job == NULL);
        session->job = job;
        job->left_by = job_leaver(server, session);
    }
    job_link_last(&server->jobs, job);
}

static bool job_can_step(const struct server *server, const struct job *job, bool may_write) {
    return job->state != JOB_DONE && (may_write || !job->kind->writes) &&
           (job->kind->is_ready == NULL || job->kind->is_ready(server, job));
}

static bool job_has_steps(const struct server *server, bool may_write) {
    for (const struct job *job = server->jobs.first; job != NULL; job = job->next) {
        if (job_can_step(server, job, may_write)) {
            return true;
        }
    }
    return false;
}

bool job_list_step(struct server *server, uint64_t budget_ns, bool may_write) {
    struct jobs *jobs = &server->jobs;
    uint64_t begin_ticks = clock_ticks();
    uint32_t skipped = 0;
    if (!jobs->is_resumed && !server->durability.is_loading &&
        replication_may_change(&server->replication)) {
        jobs->is_resumed = true;
        registry_board_drop_staged(server->registry);
        if (jobs->resume != NULL) {
            jobs->resume(server);
        }
    }
    while (skipped < jobs->count) {
        struct job *job = jobs->first;
        job_unlink(jobs, job);
        job_link_last(jobs, job);
        if (!job_can_step(server, job, may_write)) {
            skipped++;
            continue;
        }
        skipped = 0;
        server_set_writer(server, job->session);
        bool is_finished = job->kind->step(server, job);
        server_set_writer(server, NULL);
        registry_free_after_command(server->registry);
        if (is_finished) {
            job_advance(server, job, EVENT_FINISHED);
        }
        if (clock_ticks_to_ns(clock_ticks() - begin_ticks) >= budget_ns) {
            break;
        }
    }
    return job_has_steps(server, may_write);
}

bool job_list_has_steps(const struct server *server) {
    return job_has_steps(server, false);
}

struct job *job_list_find_done(const struct server *server) {
    struct job *job = server->jobs.first;
    while (job != NULL && job->state != JOB_DONE) {
        job = job->next;
    }
    return job;
}

void job_answer(struct server *server, struct job *job, struct reply *reply) {
    struct session *session = job->session;
    reply->is_silent = job->is_silent;
    server_begin_reply(session);
    job->kind->answer(server, job, reply);
    server_end_reply(server, session);
    job_advance(server, job, EVENT_ANSWERED);
}

void job_leave(struct server *server, struct session *session) {
    if (session->job != NULL) {
        struct job *job = session->job;
        job_advance(server, job, job->kind->writes ? EVENT_LEFT_DURABLE : EVENT_LEFT);
    }
}

void job_list_end_durable(struct server *server) {
    struct job *next;
    for (struct job *job = server->jobs.first; job != NULL; job = next) {
        next = job->next;
        if (!job->kind->writes) {
            continue;
        }
        struct session *session = job->session;
        struct buffer *out = session != NULL ? server_output(server, session) : NULL;
        if (out != NULL) {
            struct reply reply;
            reply_init(&reply, out, session->protocol);
            reply.is_silent = job->is_silent;
            reply_error(&reply, SERVER_UNBLOCKED_ERROR);
        }
        if (session != NULL) {
            session->is_close_after_reply = true;
            session->job = NULL;
            session->job_size = 0;
            job->session = NULL;
        }
        job_destroy(server, job);
    }
}

void job_list_end(struct server *server) {
    while (server->jobs.first != NULL) {
        struct job *job = server->jobs.first;
        CHECK(job->session == NULL);
        job_destroy(server, job);
    }
}
