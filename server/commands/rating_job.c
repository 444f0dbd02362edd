/* What periods do to ratings (RESET, EVERY-HOURS) is written in steps (server/sessions/board_job.h): a board's period has ended
 * (RESET), or an hour has (EVERY-HOURS).
 *
 * Whoever reads or changes a record before the job has come to it computes the same (lb_rating.h): what is late is the
 * place on the board alone. Records say of which periods they are, so a job that begins again changes nothing twice. */
#include "server/commands/lb/lb_rating.h"
#include "server/sessions/board_job.h"

enum {
#ifdef SKIPLIST_TINY
    STEP_RECORDS = 2,
#else
    STEP_RECORDS = 32, /* looked at in a step; about a microsecond each where they change */
#endif
    MS_OF_HOUR = 3600000,
};

static bool rating_job_concerns(struct board_job *job, const struct registry_key *board) {
    const struct board_options *options = registry_options(board);
    if (!lb_rating_has_periods(options)) {
        return false;
    }
    if (options->rating.of[RATING_EVERY_HOURS] > 0) {
        board_job_await(job, (job->server->clock.now_ms / MS_OF_HOUR + 1) * MS_OF_HOUR);
    }
    return registry_note_count(board) > 0;
}

/* Records that are new, or come to other places by a removal, are of the running periods or still ahead. */
static enum board_job_change rating_job_visit(struct board_job *job, struct registry_key *board,
                                              struct bytes name) {
    struct lb_rated rated;
    bool is_changed = false;
    int64_t now_ms = job->server->clock.now_ms;
    if (registry_note_is_own(name) || !lb_match_rating_find(board, name, now_ms, &rated) ||
        !rated.is_due) {
        return BOARD_JOB_SAME;
    }
    if (!lb_match_settle(job->server->registry, board, name, now_ms, &is_changed)) {
        return BOARD_JOB_NO_MEMORY;
    }
    return is_changed ? BOARD_JOB_CHANGED : BOARD_JOB_SAME;
}

static bool rating_job_step(struct board_job *job, struct registry_key *board) {
    return board_job_step_notes(job, board, STEP_RECORDS, STEP_RECORDS, rating_job_visit);
}

const struct board_work rating_job = {
    .size = sizeof(struct board_job), .concerns = rating_job_concerns, .step = rating_job_step};
