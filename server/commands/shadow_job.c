/* Shadows whose ban is over are put back among all in steps (server/clients/board_job.h): a ban has ended, by its time or by
 * LB.UNBAN.
 *
 * A pass notes when the next ban ends: until then, or until bans change, there is nothing to do. */
#include "server/clients/board_job.h"
#include "server/commands/shadow.h"

enum {
    STEP_NOTES = 64,   /* looked at in a step */
    STEP_RETURNED = 8, /* put back in a step; some microseconds each */
};

static bool shadow_job_concerns(struct board_job *job, const struct registry_key *board) {
    (void)job;
    return registry_options(board)->has_shadows && registry_note_count(board) > 0;
}

static void shadow_job_see(struct board_job *job, const struct registry_key *key) {
    if (key->database == BAN_DATABASE) {
        struct hash_cursor cursor = hash_begin(registry_hash(key));
        for (struct hash_pair pair; hash_next(&cursor, &pair);) {
            int64_t until_ms = ban_until(pair.value);
            /* Others were over for each board of this pass. */
            if (until_ms > job->passed_ms) {
                board_job_await(job, until_ms);
            }
        }
    }
}

static void shadow_job_receive(struct board_job *job, const struct effect *effect) {
    if (effect->database == BAN_DATABASE) {
        board_job_await(job, effect->kind == EFFECT_PUT ? ban_until(effect->value) : 0);
    }
}

/* One that is new, or comes to another place by a removal, is of a ban whose end is known. */
static enum board_job_change shadow_job_visit(struct board_job *job, struct registry_key *board,
                                              struct bytes name) {
    struct registry *registry = job->server->registry;
    struct bytes member;
    if (!shadow_find_member(name, &member)) {
        return BOARD_JOB_SAME;
    }
    if (ban_holds(registry, board->database, registry_name(board), member,
                  job->server->clock.now_ms)) {
        return BOARD_JOB_SAME;
    }
    return shadow_return(registry, board, member) ? BOARD_JOB_CHANGED : BOARD_JOB_NO_MEMORY;
}

static bool shadow_job_step(struct board_job *job, struct registry_key *board) {
    return board_job_step_notes(job, board, STEP_NOTES, STEP_RETURNED, shadow_job_visit);
}

const struct board_work shadow_job = {.size = sizeof(struct board_job),
                                      .concerns = shadow_job_concerns,
                                      .step = shadow_job_step,
                                      .has_any = registry_has_shadows,
                                      .see = shadow_job_see,
                                      .receive = shadow_job_receive};
