/* What takes longer than one call of the host: jobs, and their passes over the host's boards, in the place of
 * server/commands/lb/board_task_pass.c. See host_run.h. */
#include "server/commands/lb/board_task.h"
#include "server/module/host_effects.h"
#include "server/module/host_run.h"
#include "server/sessions/job.h"
#include "skiplist/keyspace/hash.h"

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
    host_run_reply(ctx, &waiter->output);
    return HOST_OK;
}

static void host_job_free_waiter(struct host_context *ctx, void *context) {
    struct waiter *waiter = context;
    (void)ctx;
    if (waiter != NULL) {
        session_memory_forget(&module.server.sessions.memory, &waiter->session);
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

/* ---- steps ---- */

/* true: there is more to do now. */
static bool host_job_run_steps(struct host_context *ctx) {
    int database = host_GetSelectedDb(ctx);
    module.context = ctx;
    bool has_more = job_list_step(&module.server, STEPS_NS, host_may_change(ctx));
    host_effects_state_replicate(ctx);
    module_value_free_step();
    (void)host_SelectDb(ctx, database);
    return has_more;
}

static void host_job_set_timer(int64_t delay_ms);

static void host_job_on_timer(struct host_context *ctx, void *context) {
    (void)context;
    jobs.has_timer = false;
    module_update_time();
    bool has_more = host_job_run_steps(ctx);
    struct job *job; /* of a client that waits */
    while ((job = job_list_find_done(&module.server)) != NULL && job->session != &module.session) {
        struct waiter *waiter = jobs.first;
        struct reply reply;
        while (waiter != NULL && &waiter->session != job->session) {
            waiter = waiter->next;
        }
        CHECK(waiter != NULL);
        reply_init(&reply, &waiter->output, waiter->session.protocol);
        job_answer(&module.server, job, &reply);
        host_job_take_waiter(waiter);
        host_UnblockClient(waiter->blocked, waiter);
    }
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
    struct job *job = module.session.job;
    (void)host_job_run_steps(ctx);
    if (job->state == JOB_DONE) {
        return true;
    }
    /* The job passes from the session of the handler to that of a client that waits. */
    struct waiter *waiter = jobs.spare;
    jobs.spare = NULL;
    *waiter = (struct waiter){.next = jobs.first};
    session_init(&waiter->session, module.session.id, module.server.clock.monotonic_ms);
    waiter->session.protocol = module.session.protocol;
    buffer_init(&waiter->output, 0);
    session_memory_forget(&module.server.sessions.memory, &module.session);
    waiter->session.job = job;
    waiter->session.job_size = module.session.job_size;
    module.session.job = NULL;
    module.session.job_size = 0;
    job->session = &waiter->session;
    waiter->blocked = host_BlockClient(ctx, host_job_reply_to, NULL, host_job_free_waiter, 0);
    host_SetDisconnectCallback(waiter->blocked, host_job_on_disconnect);
    jobs.first = waiter;
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
    job_list_end_durable(&module.server);
}

void host_job_init(void) {
    module.server.jobs.resume = board_task_resume;
    module.server.jobs.is_resumed = true; /* until there is something */
}

/* ---- passes over the boards of the host ----
 *
 * The host's scan has the guarantee of SCAN: a key that is there all the time is visited, perhaps
 * twice. What gets another name meanwhile is noted, from our effects and the host's events, and looked
 * at again; so LB.WHERE remembers which names it has replied. An index of boards would be faster, but the
 * host renames and exchanges keys without telling the module. */

enum { PASS_COUNT = 32 /* buckets of the host's table passed in a step */ };

struct board_task_place {
    struct board_task *task;
    struct board_task_place *next;
    uint32_t database; /* where the scan is */
    struct host_scan_cursor *cursor;
    struct hash seen; /* database and name; if it reads */
};

static struct board_task_place *places;

static bool host_job_concerns(struct board_task *task, const struct registry_key *key,
                              struct bytes name) {
    return (task->glob == NULL || glob_takes(task->glob, name)) && board_task_has(task, key);
}

static void host_job_find_board(struct board_task *task, const struct registry_key *key,
                                struct bytes name, uint32_t database) {
    const uint32_t head[] = {database, (uint32_t)name.size};
    /* When its period is over it is looked at in any case: it rolls over, and the archive may have a name of MATCH. */
    const struct board_options *options = registry_options(key);
    bool is_due =
        options->period.unit != PERIOD_NONE && options->period_end_ms <= module.server.clock.now_ms;
    if (database < task->first_database || database >= task->end_database ||
        (!is_due && !host_job_concerns(task, key, name))) {
        return;
    }
    char *at = buffer_reserve(&task->found, sizeof head + name.size);
    if (at == NULL) {
        task->has_missed = true;
        return;
    }
    memcpy(at, head, sizeof head);
    memcpy(at + sizeof head, name.at, name.size);
    buffer_commit(&task->found, sizeof head + name.size);
}

/* A command of ours has given a board this name, or a period has ended. */
static void host_job_receive(void *context, const struct effect *effect) {
    if (effect->database < REGISTRY_DATABASES && effect->key->kind == REGISTRY_BOARD &&
        (effect->kind == EFFECT_RENAME || effect->kind == EFFECT_COPY ||
         effect->kind == EFFECT_FILL)) {
        host_job_find_board(context, effect->key, registry_name(effect->key), module.database);
    }
}

void host_job_note_name(const struct host_value *value, struct bytes name, uint32_t database) {
    for (struct board_task_place *place = places; place != NULL; place = place->next) {
        host_job_find_board(place->task, value->key, name, database);
    }
}

struct acting {
    struct server *server;
    struct board_task *task;
    struct bytes name;
};

static void host_job_act(void *context) {
    const struct acting *acting = context;
    struct server *server = acting->server;
    struct registry_key *key =
        registry_find(server->registry, 0, acting->name, server->clock.now_ms);
    if (key != NULL && key->kind == REGISTRY_BOARD &&
        host_job_concerns(acting->task, key, acting->name)) {
        acting->task->action->act(server, acting->task, key);
    }
}

/* The names may move in memory as soon as something changes. */
static void host_job_act_on_found(struct server *server, struct board_task *task) {
    uint32_t head[2]; /* database, size of the name */
    const char *at = task->found.at + task->found_at;
    memcpy(head, at, sizeof head);
    task->found_at += sizeof head + head[1];
    /* Has it been replied? Without memory to remember it, it is replied again. */
    const struct bytes entry[] = {{.at = at, .size = sizeof head + head[1]}, BYTES("")};
    uint32_t added_count = 1;
    bool was_seen =
        !task->action->writes &&
        hash_put(&task->place->seen, module.server.hash_seed, entry, 1, &added_count) == HASH_OK &&
        added_count == 0;
    if (was_seen || host_SelectDb(module.context, (int)head[0]) != HOST_OK) {
        return;
    }
    struct host_string *name = host_CreateString(module.context, at + sizeof head, head[1]);
    struct acting acting = {.server = server, .task = task, .name = host_bytes(name)};
    task->has_missed |=
        !host_run_on(module.context, name, task->action->writes, host_job_act, &acting);
    host_FreeString(module.context, name);
}

static void host_job_rewind_walk(struct board_task *task) {
    task->place->database = task->first_database;
    task->has_missed = false;
    host_ScanCursorRestart(task->place->cursor);
}

void host_job_rewind(void) {
    for (struct board_task_place *place = places; place != NULL; place = place->next) {
        host_job_rewind_walk(place->task);
    }
}

static void host_job_look_at(struct host_context *ctx, struct host_string *name,
                             struct host_key *key, void *context) {
    struct board_task *task = context;
    struct host_key *opened = key == NULL ? host_OpenKey(ctx, name, HOST_READ) : NULL;
    if (key != NULL || opened != NULL) {
        const struct host_value *value = module_value_of_board(key != NULL ? key : opened);
        if (value != NULL) {
            host_job_find_board(task, value->key, host_bytes(name), task->place->database);
        }
    }
    host_close(opened);
}

bool board_task_pass_step(struct server *server, struct board_task *task) {
    if (task->found_at < task->found.size) {
        host_job_act_on_found(server, task);
        return true;
    }
    if (task->has_missed) {
        host_job_rewind_walk(task);
    }
    if (task->place->database < task->end_database) {
        /* The next buckets of the host's table. */
        bool has_more = true;
        buffer_clear(&task->found);
        task->found_at = 0;
        CHECK(host_SelectDb(module.context, (int)task->place->database) == HOST_OK);
        for (uint32_t i = 0; i < PASS_COUNT && has_more; i++) {
            has_more = host_Scan(module.context, task->place->cursor, host_job_look_at, task) != 0;
        }
        if (!has_more) {
            task->place->database++;
            host_ScanCursorRestart(task->place->cursor);
        }
        return true;
    }
    return false;
}

bool board_task_pass_begin(struct server *server, struct board_task *task) {
    struct board_task_place *place = memory_allocate(sizeof *place);
    if (place == NULL) {
        return false;
    }
    *place = (struct board_task_place){.task = task,
                                       .next = places,
                                       .database = task->first_database,
                                       .cursor = host_ScanCursorCreate()};
    places = place;
    task->place = place;
    task->registry = server->registry;
    task->listener = (struct effect_listener){.receive = host_job_receive, .context = task};
    effect_listener_add(server->registry, &task->listener);
    return true;
}

void board_task_pass_end(struct board_task *task) {
    if (task->place != NULL) {
        effect_listener_remove(task->registry, &task->listener);
        struct board_task_place *place = task->place;
        struct board_task_place **link = &places;
        uint32_t work;
        while (*link != place) {
            link = &(*link)->next;
        }
        *link = place->next;
        host_ScanCursorDestroy(place->cursor);
        do {
            work = UINT32_MAX;
        } while (!hash_free_step(&place->seen, &work));
        memory_free(place);
        task->place = NULL;
    }
}
