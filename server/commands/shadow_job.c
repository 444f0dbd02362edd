/* Shadows whose ban is over are put back among all in steps, by a job (server/clients/job.h) that is there as long as this
 * server may change the keys.
 *
 *     a ban has ended, by its time or by LB.UNBAN,       a pass over all keys finds the boards that have shadows
 *     a restart, a change of roles, a copy of a board
 *     a step                                             some notes of the first of them, from the last to the first
 *
 * The pass notes when the next ban ends: until then, or until bans change, there is nothing to do. */
#include "server/clients/job.h"
#include "server/clients/notify.h"
#include "server/commands/shadow.h"
#include "skiplist/keyspace/effect.h"
#include "skiplist/keyspace/registry_walk.h"

enum {
    PASS_COUNT = 32,   /* keys passed in a step */
    STEP_NOTES = 64,   /* looked at in a step */
    STEP_RETURNED = 8, /* put back in a step; some microseconds each */
};

struct shadow_job {
    struct job job; /* first */
    struct server *server;
    struct effect_listener listener;
    struct registry_pass pass;
    bool has_board; /* one is being walked: */
    uint32_t database;
    uint32_t left;               /* notes at indexes below it are to be looked at */
    struct buffer board, member; /* names */
    int64_t due_ms;              /* another pass follows then */
    int64_t waits_ms;            /* there was no memory at that time */
};

static bool shadow_job_has_shadows(const struct registry_key *key) {
    return key != NULL && key->kind == REGISTRY_BOARD && registry_options(key)->has_shadows &&
           registry_note_count(key) > 0;
}

static void shadow_job_await(struct shadow_job *job, int64_t due_ms) {
    job->due_ms = due_ms < job->due_ms ? due_ms : job->due_ms;
}

static void shadow_job_receive(void *context, const struct effect *effect) {
    struct shadow_job *job = context;
    bool is_named =
        effect->kind == EFFECT_FILL || effect->kind == EFFECT_COPY || effect->kind == EFFECT_RENAME;
    if (effect->database == BAN_DATABASE) {
        shadow_job_await(job, effect->kind == EFFECT_PUT ? ban_until(effect->value) : 0);
    } else if (is_named && shadow_job_has_shadows(effect->key)) {
        shadow_job_await(job, 0);
    }
}

/* false: no memory. */
static bool shadow_job_keep(struct shadow_job *job, struct buffer *buffer, struct bytes name) {
    buffer_clear(buffer);
    buffer_append(buffer, name.at, name.size);
    if (buffer->is_broken) {
        job->waits_ms = job->server->clock.now_ms;
    }
    return !buffer->is_broken;
}

/* Some notes. One that is new, or comes to another place by a removal, is of a ban whose end is known from its effect. */
static void shadow_job_walk(struct shadow_job *job, struct registry_key *key) {
    struct server *server = job->server;
    struct registry *registry = server->registry;
    int64_t now_ms = server->clock.now_ms;
    uint32_t count = registry_note_count(key);
    unsigned returned_count = 0;
    job->left = job->left < count ? job->left : count;
    for (int i = 0; i < STEP_NOTES && job->left > 0 && returned_count < STEP_RETURNED; i++) {
        struct registry_note_room room;
        struct hash_pair pair;
        struct bytes member;
        int64_t until_ms = 0;
        registry_note_at(key, job->left - 1, &pair, &room);
        if (shadow_find_member(pair.field, &member)) {
            if (!shadow_job_keep(job, &job->member, member)) {
                break;
            }
            member = (struct bytes){.at = job->member.at, .size = job->member.size};
            if (ban_find(registry, key->database, registry_name(key), member, now_ms, &until_ms) !=
                BAN_NONE) {
                shadow_job_await(job, until_ms);
            } else if (!shadow_return(registry, key, member)) {
                job->waits_ms = now_ms;
                break;
            } else {
                returned_count++;
            }
        }
        job->left--;
    }
    job->has_board = job->left > 0;
    if (returned_count > 0) {
        notify(server, SETTING_EVENT_ZSET, "zadd", key->database, registry_name(key));
        registry_tell_members(registry, key);
    }
}

static void shadow_job_pass(struct shadow_job *job) {
    struct server *server = job->server;
    for (int i = 0; i < PASS_COUNT && !job->has_board; i++) {
        const struct registry_key *key =
            registry_pass_next(server->registry, &job->pass, server->clock.now_ms);
        if (!shadow_job_has_shadows(key)) {
            continue;
        }
        if (!shadow_job_keep(job, &job->board, registry_name(key))) {
            shadow_job_await(job, 0);
            return;
        }
        job->has_board = true;
        job->database = key->database;
        job->left = UINT32_MAX;
    }
    if (registry_pass_is_over(&job->pass)) {
        registry_pass_end(server->registry, &job->pass);
    }
}

static bool shadow_job_is_due(const struct shadow_job *job) {
    return job->due_ms <= job->server->clock.now_ms && registry_has_shadows(job->server->registry);
}

static bool shadow_job_is_ready(const struct server *server, const struct job *of) {
    const struct shadow_job *job = (const struct shadow_job *)of;
    return (job->has_board || !registry_pass_is_over(&job->pass) || shadow_job_is_due(job)) &&
           job->waits_ms != server->clock.now_ms;
}

/* It ends with this server's right to change the keys. */
static bool shadow_job_step(struct server *server, struct job *of) {
    struct shadow_job *job = (struct shadow_job *)of;
    if (job->has_board) {
        struct bytes name = {.at = job->board.at, .size = job->board.size};
        struct registry_key *key =
            registry_find(server->registry, job->database, name, server->clock.now_ms);
        if (shadow_job_has_shadows(key)) {
            shadow_job_walk(job, key);
        } else {
            job->has_board = false;
        }
        return false;
    }
    if (registry_pass_is_over(&job->pass) && shadow_job_is_due(job)) {
        job->due_ms = INT64_MAX;
        registry_pass_begin(server->registry, &job->pass, 0, REGISTRY_DATABASES);
    }
    if (!registry_pass_is_over(&job->pass)) {
        shadow_job_pass(job);
    }
    return false;
}

static void shadow_job_destroy(struct server *server, struct job *of) {
    struct shadow_job *job = (struct shadow_job *)of;
    effect_listener_remove(server->registry, &job->listener);
    registry_pass_end(server->registry, &job->pass);
    buffer_deinit(&job->board);
    buffer_deinit(&job->member);
    memory_free(job);
}

static const struct job_kind shadow_job_kind = {.writes = true,
                                                .is_ready = shadow_job_is_ready,
                                                .step = shadow_job_step,
                                                .destroy = shadow_job_destroy};

void shadow_job_begin(struct server *server) {
    struct shadow_job *job = memory_allocate_zeroed(sizeof *job);
    if (job == NULL) {
        return;
    }
    job->server = server;
    registry_pass_begin(server->registry, &job->pass, 0, REGISTRY_DATABASES);
    job->due_ms = INT64_MAX;
    job->waits_ms = INT64_MIN;
    buffer_init(&job->board, 0);
    buffer_init(&job->member, 0);
    job->listener = (struct effect_listener){.receive = shadow_job_receive, .context = job};
    effect_listener_add(server->registry, &job->listener);
    job_begin(server, NULL, &shadow_job_kind, true, &job->job);
}
