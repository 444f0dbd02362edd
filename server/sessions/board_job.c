/* Passes that look for boards, and the board in hand. See board_job.h. */
#include "server/sessions/board_job.h"

#include "server/sessions/notify.h"
#include "skiplist/keyspace/registry.h"

enum {
    PASS_COUNT = 32,  /* keys passed in a step */
    KEYS_OF_MS = 200, /* that a pass has seen, for each millisecond of rest */
    NO_BOARDS = 1U << EFFECT_PUT | 1U << EFFECT_TAKE | 1U << EFFECT_CUT | 1U << EFFECT_TAGS |
                1U << EFFECT_NOTE | 1U << EFFECT_REMOVE | 1U << EFFECT_FLUSH | 1U << EFFECT_EXPIRE,
    STALE_EVERY_MS = 30000, /* between the beginnings of two passes */
    STALE_WORK_MAX = 256,   /* members looked at in a step */
};

/* ---- what is to be done ---- */

void board_job_await(struct board_job *job, int64_t due_ms) {
    job->due_ms = due_ms < job->due_ms ? due_ms : job->due_ms;
}

void board_job_wait(struct board_job *job) {
    job->waits_ms = job->server->clock.now_ms;
}

bool board_job_holds(const struct board_job *job, uint32_t database, struct bytes name) {
    return job->has_board && job->database == database &&
           bytes_equal((struct bytes){job->board.at, job->board.size}, name);
}

struct registry_key *board_job_find(struct board_job *job) {
    struct bytes name = {.at = job->board.at, .size = job->board.size};
    struct server *server = job->server;
    return registry_find(server->registry, job->database, name, server->clock.now_ms);
}

static bool board_job_concerns(struct board_job *job, const struct registry_key *key) {
    return key != NULL && key->kind == REGISTRY_BOARD && key->database < REGISTRY_DATABASES &&
           job->work->concerns(job, key);
}

static void board_job_receive(void *context, const struct effect *effect) {
    struct board_job *job = context;
    const struct registry_key *key = effect->key;
    if (job->work->receive != NULL) {
        job->work->receive(job, effect);
    }
    if ((NO_BOARDS >> effect->kind & 1) != 0 || !board_job_concerns(job, key)) {
        return;
    }
    if (!board_job_holds(job, key->database, registry_name(key))) {
        job->has_missed |= !job->work->is_patient && registry_pass_has_passed(&job->pass, key);
    } else if (effect->kind != EFFECT_STATE) { /* which the steps themselves change */
        job->is_begun = false;
    }
}

/* The clock may be set back, which ends all rest. */
static bool board_job_wants_pass(const struct board_job *job) {
    int64_t now_ms = job->server->clock.now_ms;
    bool is_awaited = job->has_missed || now_ms >= job->due_ms;
    return (now_ms < job->passed_ms || (is_awaited && now_ms >= job->rests_ms)) &&
           (job->work->has_any == NULL || job->work->has_any(job->server->registry));
}

/* ---- steps ---- */

static void board_job_pass(struct board_job *job) {
    struct server *server = job->server;
    int64_t now_ms = server->clock.now_ms;
    for (int i = 0; i < PASS_COUNT && !job->has_board && !registry_pass_is_over(&job->pass); i++) {
        const struct registry_key *key = registry_pass_next(server->registry, &job->pass, now_ms);
        job->passed_count++;
        if (key != NULL && key->database >= REGISTRY_DATABASES) {
            job->work->see(job, key);
        }
        if (!board_job_concerns(job, key)) {
            continue;
        }
        buffer_clear(&job->board);
        buffer_append(&job->board, key->name_at, key->name_size);
        job->database = key->database;
        job->has_board = !job->board.is_broken;
        job->is_begun = false;
        if (!job->has_board) {
            job->has_missed = true;
            board_job_wait(job);
            break;
        }
    }
    if (registry_pass_is_over(&job->pass)) {
        registry_pass_end(server->registry, &job->pass);
        job->rests_ms = now_ms + job->passed_count / KEYS_OF_MS;
    }
}

static bool board_job_is_ready(const struct server *server, const struct job *of) {
    const struct board_job *job = (const struct board_job *)of;
    return (job->has_board || job->pass.is_going || board_job_wants_pass(job)) &&
           job->waits_ms != server->clock.now_ms;
}

/* It ends with this server's right to change the keys. */
static bool board_job_step(struct server *server, struct job *of) {
    struct board_job *job = (struct board_job *)of;
    if (job->has_board) {
        struct registry_key *key = board_job_find(job);
        job->has_board = board_job_concerns(job, key);
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
    if (!job->pass.is_going && board_job_wants_pass(job)) {
        job->has_missed = false;
        job->due_ms = INT64_MAX;
        job->passed_ms = server->clock.now_ms;
        job->passed_count = 0;
        job->turn++;
        registry_pass_begin(server->registry, &job->pass, 0,
                            job->work->see != NULL ? REGISTRY_ALL_DATABASES : REGISTRY_DATABASES);
    }
    if (job->pass.is_going) {
        board_job_pass(job);
    }
    return false;
}

bool board_job_step_notes(struct board_job *job, struct registry_key *board, uint32_t looked_max,
                          uint32_t changed_max, board_job_visit *visit) {
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
        enum board_job_change change = visit(job, board, pair.field);
        if (change == BOARD_JOB_NO_MEMORY) {
            board_job_wait(job);
            break;
        }
        changed_count += change == BOARD_JOB_CHANGED;
        job->notes_left--;
    }
    if (changed_count > 0) {
        notify(job->server, SETTING_EVENT_ZSET, "zadd", board->database, registry_name(board));
        registry_tell_members(job->server->registry, board);
    }
    return job->notes_left > 0;
}

/* ---- the job ---- */

static void board_job_destroy(struct server *server, struct job *of) {
    struct board_job *job = (struct board_job *)of;
    effect_listener_remove(server->registry, &job->listener);
    registry_pass_end(server->registry, &job->pass);
    buffer_deinit(&job->board);
    if (job->work->deinit != NULL) {
        job->work->deinit(job);
    }
    memory_free(job);
}

static const struct job_kind board_job_kind = {.writes = true,
                                               .is_ready = board_job_is_ready,
                                               .step = board_job_step,
                                               .destroy = board_job_destroy};

void board_job_begin(struct server *server, const struct board_work *work) {
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
    job->listener = (struct effect_listener){.receive = board_job_receive,
                                             .context = job,
                                             .skips = work->receive == NULL ? NO_BOARDS : 0};
    effect_listener_add(server->registry, &job->listener);
    job_begin(server, NULL, &board_job_kind, true, &job->job);
}

/* ---- STALE ---- */

struct stale_job {
    struct board_job of; /* first */
    uint64_t from_key;   /* where the steps are */
};

static bool board_job_stale_concerns(struct board_job *job, const struct registry_key *board) {
    int64_t now_ms = job->server->clock.now_ms;
    if (registry_options(board)->stale_ms == 0) {
        return false;
    }
    board_job_await(job, now_ms + STALE_EVERY_MS);
    return registry_board_may_drop_stale(board, now_ms);
}

static void board_job_stale_enter(struct board_job *of, const struct registry_key *board) {
    (void)board;
    ((struct stale_job *)of)->from_key = REGISTRY_STALE_BEGIN;
}

static bool board_job_stale_step(struct board_job *of, struct registry_key *board) {
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

const struct board_work board_job_stale = {.size = sizeof(struct stale_job),
                                           .is_patient = true,
                                           .concerns = board_job_stale_concerns,
                                           .enter = board_job_stale_enter,
                                           .step = board_job_stale_step};
