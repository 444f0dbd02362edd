/* HOLD ... AUTO: what nobody has looked at is approved some time after it came, in steps, a job (server/clients/job.h) that is
 * there as long as this server may change the keys.
 *
 *     now and then, and after a restart    a pass over all keys finds the boards with AUTO
 *     a step                               some of the ids of the first of them, from the oldest on, up to one that is not due
 *
 * What cannot be written stays, and is tried again in the next pass. Of a board whose ids lie far apart a pass looks at
 * a part, another one each time, so that the boards behind it get their turn. */
#include "server/clients/job.h"
#include "server/commands/holding.h"
#include "server/commands/lb/lb_held.h"
#include "skiplist/keyspace/registry_walk.h"

enum {
    PASS_COUNT = 32,    /* keys passed in a step */
    STEP_IDS = 256,     /* ids looked at in a step, */
    STEP_RESULTS = 8,   /* and results approved */
    PASS_IDS = 1 << 18, /* ids of a board looked at in a pass */
    PAUSE_MS = 60000,   /* between two passes */
};

struct hold_job {
    struct job job; /* first */
    struct server *server;
    struct registry_pass pass;
    int64_t passed_ms; /* the last one began then */
    bool has_board;    /* one is being walked: */
    uint32_t database;
    uint64_t at, end; /* the next id, and where this pass ends */
    uint64_t turn;    /* of the passes */
    struct buffer board;
};

static bool hold_job_has_auto(const struct registry_key *key) {
    return key != NULL && key->kind == REGISTRY_BOARD && registry_options(key)->has_hold &&
           registry_options(key)->hold.auto_ms > 0;
}

static void hold_job_walk(struct hold_job *job) {
    struct server *server = job->server;
    struct bytes name = {.at = job->board.at, .size = job->board.size};
    int64_t now_ms = server->clock.now_ms;
    struct buffer nowhere;
    struct reply silent;
    buffer_init(&nowhere, 0);
    reply_init(&silent, &nowhere, 2);
    silent.is_silent = true;
    job->has_board = false;
    for (uint32_t looked_at = 0, done = 0; done < STEP_RESULTS; looked_at++) {
        /* What is written may replace the key. */
        struct registry_key *key = registry_find(server->registry, job->database, name, now_ms);
        uint64_t first;
        uint64_t next;
        struct held held;
        if (!hold_job_has_auto(key) || lb_held_find_refusal(key) != NULL) {
            break;
        }
        holding_range(key, &first, &next);
        job->at = job->at > first ? job->at : first;
        if (job->at >= next || job->at >= job->end) {
            break;
        }
        if (looked_at == STEP_IDS) {
            job->has_board = true;
            break;
        }
        /* Of a time to come, as the clock was set back: it is not due, and says nothing of the others. */
        if (holding_find(key, job->at, &held) && held.at_us / 1000 <= now_ms) {
            if (held.at_us / 1000 > now_ms - registry_options(key)->hold.auto_ms) {
                break; /* nor are those that came later */
            }
            (void)!lb_held_approve(server, key, job->at, NULL, &silent);
            done++;
            job->has_board = done == STEP_RESULTS;
        }
        job->at++;
    }
    buffer_deinit(&nowhere);
}

static void hold_job_pass(struct hold_job *job) {
    struct server *server = job->server;
    for (int i = 0; i < PASS_COUNT && !job->has_board; i++) {
        uint64_t first;
        uint64_t next;
        const struct registry_key *key =
            registry_pass_next(server->registry, &job->pass, server->clock.now_ms);
        if (!hold_job_has_auto(key) || holding_count(key) == 0) {
            continue;
        }
        buffer_clear(&job->board);
        buffer_append(&job->board, key->name_at, key->name_size);
        job->has_board = !job->board.is_broken; /* no memory: in the next pass */
        job->database = key->database;
        holding_range(key, &first, &next);
        uint64_t parts = first < next ? (next - first - 1) / PASS_IDS + 1 : 1;
        job->at = first + job->turn % parts * PASS_IDS;
        job->end = job->at + PASS_IDS;
    }
    if (registry_pass_is_over(&job->pass)) {
        registry_pass_end(server->registry, &job->pass);
    }
}

/* The clock may be set back, which begins a pass, too. */
static bool hold_job_is_due(const struct server *server, const struct hold_job *job) {
    int64_t now_ms = server->clock.now_ms;
    return now_ms < job->passed_ms || now_ms >= job->passed_ms + PAUSE_MS;
}

static bool hold_job_is_ready(const struct server *server, const struct job *of) {
    const struct hold_job *job = (const struct hold_job *)of;
    return job->has_board || !registry_pass_is_over(&job->pass) || hold_job_is_due(server, job);
}

/* It ends with this server's right to change the keys. */
static bool hold_job_step(struct server *server, struct job *of) {
    struct hold_job *job = (struct hold_job *)of;
    if (job->has_board) {
        hold_job_walk(job);
    } else if (!registry_pass_is_over(&job->pass)) {
        hold_job_pass(job);
    } else if (hold_job_is_due(server, job)) {
        job->passed_ms = server->clock.now_ms;
        job->turn++;
        registry_pass_begin(server->registry, &job->pass, 0, REGISTRY_DATABASES);
    }
    return false;
}

static void hold_job_destroy(struct server *server, struct job *of) {
    struct hold_job *job = (struct hold_job *)of;
    registry_pass_end(server->registry, &job->pass);
    buffer_deinit(&job->board);
    memory_free(job);
}

static const struct job_kind hold_job_kind = {.writes = true,
                                              .is_ready = hold_job_is_ready,
                                              .step = hold_job_step,
                                              .destroy = hold_job_destroy};

void hold_job_begin(struct server *server) {
    struct hold_job *job = memory_allocate_zeroed(sizeof *job);
    if (job == NULL) {
        return;
    }
    job->server = server;
    job->passed_ms = server->clock.now_ms;
    registry_pass_begin(server->registry, &job->pass, 0, REGISTRY_DATABASES);
    buffer_init(&job->board, 0);
    job_begin(server, NULL, &hold_job_kind, true, &job->job);
}
