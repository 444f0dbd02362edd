/* HOLD ... AUTO: what nobody has looked at is approved some time after it came, in steps (server/sessions/board_job.h) from the
 * oldest id on, up to one that is not due.
 *
 * What cannot be written stays, and is tried again in the next pass. Of a board whose ids lie far apart a pass looks at
 * a part, another one each time, so that the boards behind it get their turn. */
#include "server/commands/holding.h"
#include "server/commands/lb/lb_held.h"
#include "server/sessions/board_job.h"

enum {
    STEP_IDS = 256,     /* ids looked at in a step, */
    STEP_RESULTS = 8,   /* and results approved */
    PASS_IDS = 1 << 18, /* ids of a board looked at in a pass */
    PAUSE_MS = 60000,   /* between two passes */
};

struct hold_job {
    struct board_job of; /* first */
    uint64_t at, end;    /* the next id, and where this pass ends */
};

static bool hold_job_concerns(struct board_job *job, const struct registry_key *board) {
    const struct board_options *options = registry_options(board);
    if (!options->has_hold || options->hold.auto_ms == 0) {
        return false;
    }
    board_job_await(job, job->server->clock.now_ms + PAUSE_MS);
    return holding_count(board) > 0 && lb_held_find_refusal(board) == NULL;
}

static void hold_job_enter(struct board_job *of, const struct registry_key *board) {
    struct hold_job *job = (struct hold_job *)of;
    uint64_t first;
    uint64_t next;
    holding_range(board, &first, &next);
    uint64_t parts = first < next ? (next - first - 1) / PASS_IDS + 1 : 1;
    job->at = first + of->turn % parts * PASS_IDS;
    job->end = job->at + PASS_IDS;
}

static bool hold_job_step(struct board_job *of, struct registry_key *board) {
    struct hold_job *job = (struct hold_job *)of;
    int64_t now_ms = of->server->clock.now_ms;
    bool has_more = true;
    struct buffer nowhere;
    struct reply silent;
    buffer_init(&nowhere, 0);
    reply_init(&silent, &nowhere, 2);
    silent.is_silent = true;
    for (uint32_t looked_at = 0, done = 0; has_more && looked_at < STEP_IDS && done < STEP_RESULTS;
         looked_at++) {
        uint64_t first;
        uint64_t next;
        struct held held;
        holding_range(board, &first, &next);
        job->at = job->at > first ? job->at : first;
        has_more = job->at < next && job->at < job->end;
        /* Of a time to come, as the clock was set back: it is not due, and says nothing of the others. */
        if (has_more && holding_find(board, job->at, &held) && held.at_us / 1000 <= now_ms) {
            if (held.at_us / 1000 > now_ms - registry_options(board)->hold.auto_ms) {
                has_more = false; /* nor are those that came later */
                break;
            }
            (void)!lb_held_approve(of->server, board, job->at, NULL, &silent);
            done++;
            /* What is written may replace the key. */
            board = board_job_find(of);
            has_more =
                board != NULL && board->kind == REGISTRY_BOARD && hold_job_concerns(of, board);
        }
        job->at++;
    }
    buffer_deinit(&nowhere);
    return has_more;
}

const struct board_work hold_job = {.size = sizeof(struct hold_job),
                                    .concerns = hold_job_concerns,
                                    .enter = hold_job_enter,
                                    .step = hold_job_step};
