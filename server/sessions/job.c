/* The list of jobs, the one to run next first, and their states. See job.h. */
#include "server/sessions/job.h"

#include "server/sessions/notify.h"
#include "skiplist/keyspace/registry.h"

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

/* ---- work on boards: passes that look for boards, and the board in hand ---- */

enum {
    PASS_COUNT = 32,  /* keys passed in a step */
    KEYS_OF_MS = 200, /* that a pass has seen, for each millisecond of rest */
    NO_BOARDS = 1U << EFFECT_PUT | 1U << EFFECT_TAKE | 1U << EFFECT_CUT | 1U << EFFECT_TAGS |
                1U << EFFECT_NOTE | 1U << EFFECT_REMOVE | 1U << EFFECT_FLUSH | 1U << EFFECT_EXPIRE,
    STALE_EVERY_MS = 30000, /* between the beginnings of two passes */
    STALE_WORK_MAX = 256,   /* members looked at in a step */
};

/* ---- what is to be done ---- */

void job_board_await(struct board_job *job, int64_t due_ms) {
    job->due_ms = due_ms < job->due_ms ? due_ms : job->due_ms;
}

void job_board_wait(struct board_job *job) {
    job->waits_ms = job->server->clock.now_ms;
}

bool job_board_holds(const struct board_job *job, uint32_t database, struct bytes name) {
    return job->has_board && job->database == database &&
           bytes_equal((struct bytes){job->board.at, job->board.size}, name);
}

struct registry_key *job_board_find(struct board_job *job) {
    struct bytes name = {.at = job->board.at, .size = job->board.size};
    struct server *server = job->server;
    return registry_find(server->registry, job->database, name, server->clock.now_ms);
}

static bool job_board_concerns(struct board_job *job, const struct registry_key *key) {
    return key != NULL && key->kind == REGISTRY_BOARD && key->database < REGISTRY_DATABASES &&
           job->work->concerns(job, key);
}

static void job_board_receive(void *context, const struct effect *effect) {
    struct board_job *job = context;
    const struct registry_key *key = effect->key;
    if (job->work->receive != NULL) {
        job->work->receive(job, effect);
    }
    if ((NO_BOARDS >> effect->kind & 1) != 0 || !job_board_concerns(job, key)) {
        return;
    }
    if (!job_board_holds(job, key->database, registry_name(key))) {
        job->has_missed |= !job->work->is_patient && registry_walk_pass_has_passed(&job->pass, key);
    } else if (effect->kind != EFFECT_STATE) { /* which the steps themselves change */
        job->is_begun = false;
    }
}

/* The clock may be set back, which ends all rest. */
static bool job_board_wants_pass(const struct board_job *job) {
    int64_t now_ms = job->server->clock.now_ms;
    bool is_awaited = job->has_missed || now_ms >= job->due_ms;
    return (now_ms < job->passed_ms || (is_awaited && now_ms >= job->rests_ms)) &&
           (job->work->has_any == NULL || job->work->has_any(job->server->registry));
}

/* ---- steps ---- */

static void job_board_pass(struct board_job *job) {
    struct server *server = job->server;
    int64_t now_ms = server->clock.now_ms;
    for (int i = 0; i < PASS_COUNT && !job->has_board && !registry_walk_pass_is_over(&job->pass);
         i++) {
        const struct registry_key *key =
            registry_walk_pass_next(server->registry, &job->pass, now_ms);
        job->passed_count++;
        if (key != NULL && key->database >= REGISTRY_DATABASES) {
            job->work->see(job, key);
        }
        if (!job_board_concerns(job, key)) {
            continue;
        }
        buffer_clear(&job->board);
        buffer_append(&job->board, key->name_at, key->name_size);
        job->database = key->database;
        job->has_board = !job->board.is_broken;
        job->is_begun = false;
        if (!job->has_board) {
            job->has_missed = true;
            job_board_wait(job);
            break;
        }
    }
    if (registry_walk_pass_is_over(&job->pass)) {
        registry_walk_pass_end(server->registry, &job->pass);
        job->rests_ms = now_ms + job->passed_count / KEYS_OF_MS;
    }
}

static bool job_board_is_ready(const struct server *server, const struct job *of) {
    const struct board_job *job = (const struct board_job *)of;
    return (job->has_board || job->pass.is_going || job_board_wants_pass(job)) &&
           job->waits_ms != server->clock.now_ms;
}

/* It ends with this server's right to change the keys. */
static bool job_board_step(struct server *server, struct job *of) {
    struct board_job *job = (struct board_job *)of;
    if (job->has_board) {
        struct registry_key *key = job_board_find(job);
        job->has_board = job_board_concerns(job, key);
        if (job->has_board && !job->is_begun) {
            job->is_begun = true;
            job->notes_left = UINT32_MAX;
            if (job->work->enter != NULL) {
                job->work->enter(job, key);
            }
        }
        /* Another board may get its name in the step. */
        job->has_board = job->has_board && (job->work->step(job, key) || !job->is_begun);
        return false;
    }
    if (!job->pass.is_going && job_board_wants_pass(job)) {
        job->has_missed = false;
        job->due_ms = INT64_MAX;
        job->passed_ms = server->clock.now_ms;
        job->passed_count = 0;
        job->turn++;
        registry_walk_pass_begin(server->registry, &job->pass, 0,
                                 job->work->see != NULL ? REGISTRY_ALL_DATABASES
                                                        : REGISTRY_DATABASES);
    }
    if (job->pass.is_going) {
        job_board_pass(job);
    }
    return false;
}

bool job_board_step_notes(struct board_job *job, struct registry_key *board, uint32_t looked_max,
                          uint32_t changed_max, job_board_visit *visit) {
    char room[BOARD_MEMBER_MAX];
    uint32_t changed_count = 0;
    uint32_t count = registry_note_count(board);
    job->notes_left = job->notes_left < count ? job->notes_left : count;
    for (uint32_t i = 0; i < looked_max && job->notes_left > 0 && changed_count < changed_max;
         i++) {
        struct registry_note_room note_room;
        struct hash_pair pair;
        registry_note_at(board, job->notes_left - 1, &pair, &note_room);
        if (pair.field.at != note_room.text) { /* it is borrowed */
            CHECK(pair.field.size <= sizeof room);
            memcpy(room, pair.field.at, pair.field.size);
            pair.field.at = room;
        }
        enum job_board_change change = visit(job, board, pair.field);
        if (change == JOB_BOARD_NO_MEMORY) {
            job_board_wait(job);
            break;
        }
        changed_count += change == JOB_BOARD_CHANGED;
        job->notes_left--;
    }
    if (changed_count > 0) {
        notify(job->server, SETTING_EVENT_ZSET, "zadd", board->database, registry_name(board));
        registry_tell_members(job->server->registry, board);
    }
    return job->notes_left > 0;
}

/* ---- the job ---- */

static void job_board_destroy(struct server *server, struct job *of) {
    struct board_job *job = (struct board_job *)of;
    effect_listener_remove(server->registry, &job->listener);
    registry_walk_pass_end(server->registry, &job->pass);
    buffer_deinit(&job->board);
    if (job->work->deinit != NULL) {
        job->work->deinit(job);
    }
    memory_free(job);
}

static const struct job_kind job_board_kind = {.writes = true,
                                               .is_ready = job_board_is_ready,
                                               .step = job_board_step,
                                               .destroy = job_board_destroy};

void job_board_begin(struct server *server, const struct board_work *work) {
    struct board_job *job = memory_allocate_zeroed(work->size);
    if (job == NULL) {
        return;
    }
    job->work = work;
    job->server = server;
    job->has_missed = true;
    job->passed_ms = INT64_MIN;
    job->rests_ms = INT64_MIN;
    job->due_ms = INT64_MAX;
    job->waits_ms = INT64_MIN;
    buffer_init(&job->board, 0);
    job->listener = (struct effect_listener){.receive = job_board_receive,
                                             .context = job,
                                             .skips = work->receive == NULL ? NO_BOARDS : 0};
    effect_listener_add(server->registry, &job->listener);
    job_begin(server, NULL, &job_board_kind, true, &job->job);
}

/* ---- STALE ---- */

struct stale_job {
    struct board_job of; /* first */
    uint64_t from_key;   /* where the steps are */
};

static bool job_board_stale_concerns(struct board_job *job, const struct registry_key *board) {
    int64_t now_ms = job->server->clock.now_ms;
    if (registry_options(board)->stale_ms == 0) {
        return false;
    }
    job_board_await(job, now_ms + STALE_EVERY_MS);
    return registry_board_may_drop_stale(board, now_ms);
}

static void job_board_stale_enter(struct board_job *of, const struct registry_key *board) {
    (void)board;
    ((struct stale_job *)of)->from_key = REGISTRY_STALE_BEGIN;
}

static bool job_board_stale_step(struct board_job *of, struct registry_key *board) {
    struct stale_job *job = (struct stale_job *)of;
    struct server *server = of->server;
    uint32_t work = STALE_WORK_MAX;
    bool is_done;
    if (registry_board_drop_stale(server->registry, board, server->clock.now_ms, &job->from_key,
                                  &work, &is_done) == 0) {
        return !is_done;
    }
    bool is_over = registry_board_is_over(board);
    notify(server, SETTING_EVENT_ZSET, "lb.stale", board->database, registry_name(board));
    if (is_over) {
        notify(server, SETTING_EVENT_GENERIC, "del", board->database, registry_name(board));
        registry_remove(server->registry, board);
    }
    return !is_done && !is_over;
}

const struct board_work job_board_stale = {.size = sizeof(struct stale_job),
                                           .is_patient = true,
                                           .concerns = job_board_stale_concerns,
                                           .enter = job_board_stale_enter,
                                           .step = job_board_stale_step};
