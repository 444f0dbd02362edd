/* What periods do to ratings (RESET, EVERY-HOURS) is written in steps, a job (server/clients/job.h) that is there as long as
 * this server may change the keys.
 *
 *     a board's period has ended (RESET), an hour has (EVERY-HOURS),    a pass over all keys finds the boards whose
 *     a restart, a change of roles                                      records follow from periods
 *     a step                                                            some records of the first of them, from the last
 *                                                                       to the first
 *
 * Whoever reads or changes a record before the job has come to it computes the same (lb_rating.h): what is late is the
 * place on the board alone. Records say of which periods they are, so a job that begins again changes nothing twice. */
#include "server/clients/job.h"
#include "server/commands/lb/lb_rating.h"
#include "skiplist/keyspace/effect.h"
#include "skiplist/keyspace/registry_walk.h"

enum {
    PASS_COUNT = 32, /* keys passed in a step */
#ifdef SKIPLIST_TINY
    STEP_RECORDS = 2,
#else
    STEP_RECORDS = 32, /* looked at in a step; about a microsecond each where they change */
#endif
    MS_OF_HOUR = 3600000,
};

struct rating_job {
    struct job job; /* first */
    struct server *server;
    struct effect_listener listener;
    struct registry_pass pass;
    bool has_missed; /* another pass follows */
    bool has_every;  /* some board has EVERY-HOURS, perhaps */
    bool has_board;  /* one is being walked: */
    uint32_t database;
    uint32_t left;               /* notes at indexes below it are to be looked at */
    struct buffer board, member; /* names */
    int64_t hour;                /* of the last pass for EVERY-HOURS */
    int64_t waits_ms;            /* there was no memory at that time */
};

static bool rating_job_has_periods(const struct registry_key *key) {
    return key != NULL && key->kind == REGISTRY_BOARD &&
           lb_rating_has_periods(registry_options(key));
}

static bool rating_job_has_every(const struct registry_key *key) {
    return registry_options(key)->rating.rule.of[RATING_EVERY_HOURS] > 0;
}

static void rating_job_receive(void *context, const struct effect *effect) {
    struct rating_job *job = context;
    bool may_be = effect->kind == EFFECT_OPTIONS || effect->kind == EFFECT_FILL ||
                  effect->kind == EFFECT_CREATE || effect->kind == EFFECT_COPY ||
                  effect->kind == EFFECT_RENAME;
    if (may_be && rating_job_has_periods(effect->key)) {
        job->has_missed |= effect->kind != EFFECT_CREATE;
        job->has_every |= rating_job_has_every(effect->key);
    }
}

/* false: no memory. */
static bool rating_job_keep(struct rating_job *job, struct buffer *buffer, struct bytes name) {
    buffer_clear(buffer);
    buffer_append(buffer, name.at, name.size);
    if (buffer->is_broken) {
        job->waits_ms = job->server->clock.now_ms;
    }
    return !buffer->is_broken;
}

/* Some records. Those that are new, or come to other places by a removal, are of the running periods or still ahead. */
static void rating_job_walk(struct rating_job *job, struct registry_key *key) {
    struct server *server = job->server;
    int64_t now_ms = server->clock.now_ms;
    uint32_t count = registry_note_count(key);
    bool is_changed = false;
    job->left = job->left < count ? job->left : count;
    for (int i = 0; i < STEP_RECORDS && job->left > 0; i++) {
        struct registry_note_room room;
        struct hash_pair pair;
        struct lb_rated rated;
        registry_note_at(key, job->left - 1, &pair, &room);
        if (!registry_note_is_own(pair.field) && lb_rating_find(key, pair.field, now_ms, &rated) &&
            rated.is_due) {
            if (!rating_job_keep(job, &job->member, pair.field)) {
                break;
            }
            struct bytes name = {.at = job->member.at, .size = job->member.size};
            if (!lb_match_settle(server->registry, key, name, now_ms, &is_changed)) {
                job->waits_ms = now_ms;
                break;
            }
        }
        job->left--;
    }
    job->has_board = job->left > 0;
    if (is_changed) {
        notify(server, SETTING_EVENT_ZSET, "zadd", key->database, registry_name(key));
        registry_tell_members(server->registry, key);
    }
}

static void rating_job_pass(struct rating_job *job) {
    struct server *server = job->server;
    for (int i = 0; i < PASS_COUNT && !job->has_board; i++) {
        const struct registry_key *key =
            registry_pass_next(server->registry, &job->pass, server->clock.now_ms);
        if (!rating_job_has_periods(key)) {
            continue;
        }
        job->has_every |= rating_job_has_every(key);
        if (!rating_job_keep(job, &job->board, registry_name(key))) {
            job->has_missed = true;
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

static bool rating_job_is_new_hour(const struct rating_job *job) {
    return job->has_every && job->server->clock.now_ms / MS_OF_HOUR != job->hour;
}

static bool rating_job_is_ready(const struct server *server, const struct job *of) {
    const struct rating_job *job = (const struct rating_job *)of;
    return (job->has_board || job->has_missed || !registry_pass_is_over(&job->pass) ||
            rating_job_is_new_hour(job)) &&
           job->waits_ms != server->clock.now_ms;
}

/* It ends with this server's right to change the keys. */
static bool rating_job_step(struct server *server, struct job *of) {
    struct rating_job *job = (struct rating_job *)of;
    if (rating_job_is_new_hour(job)) {
        job->hour = server->clock.now_ms / MS_OF_HOUR;
        job->has_missed = true;
    }
    if (job->has_board) {
        struct bytes name = {.at = job->board.at, .size = job->board.size};
        struct registry_key *key =
            registry_find(server->registry, job->database, name, server->clock.now_ms);
        if (rating_job_has_periods(key)) {
            rating_job_walk(job, key);
        } else {
            job->has_board = false;
        }
        return false;
    }
    if (registry_pass_is_over(&job->pass) && job->has_missed) {
        registry_pass_begin(server->registry, &job->pass, 0, REGISTRY_DATABASES);
        job->has_missed = false;
    }
    if (!registry_pass_is_over(&job->pass)) {
        rating_job_pass(job);
    }
    return false;
}

static void rating_job_destroy(struct server *server, struct job *of) {
    struct rating_job *job = (struct rating_job *)of;
    effect_listener_remove(server->registry, &job->listener);
    registry_pass_end(server->registry, &job->pass);
    buffer_deinit(&job->board);
    buffer_deinit(&job->member);
    memory_free(job);
}

static const struct job_kind rating_job_kind = {.writes = true,
                                                .is_ready = rating_job_is_ready,
                                                .step = rating_job_step,
                                                .destroy = rating_job_destroy};

void rating_job_begin(struct server *server) {
    struct rating_job *job = memory_allocate_zeroed(sizeof *job);
    if (job == NULL) {
        return;
    }
    job->server = server;
    registry_pass_begin(server->registry, &job->pass, 0, REGISTRY_DATABASES);
    job->waits_ms = INT64_MIN;
    buffer_init(&job->board, 0);
    buffer_init(&job->member, 0);
    job->listener = (struct effect_listener){.receive = rating_job_receive, .context = job};
    effect_listener_add(server->registry, &job->listener);
    job_begin(server, NULL, &rating_job_kind, true, &job->job);
}
