/* What leaves the boards with a WINDOW (window.h) does so in steps (server/sessions/board_job.h): a period ends, or a share is
 * removed.
 *
 *     ANEW     some members, in the order of their hashes, get what follows from the shares
 *     LEAVING  the next members of the first share leave, by rank; behind the last one the next
 *              period is the first
 *
 * How far it has come is in the board's state and changes with the members, so a job that begins
 * again goes on from there; only ANEW begins from the front, which changes nothing twice. */
#include "server/commands/window.h"
#include "server/sessions/board_job.h"
#include "server/sessions/notify.h"
#include "skiplist/lookup.h"

enum {
    STEP_MEMBERS = WINDOW_VALUES_MAX,
    STEP_LOOKUPS = 768, /* in shares, at most; 60 to 150 ns each */
    STEP_PERIODS = 128, /* whose shares are found in a step, at most; a microsecond each */
};

struct window_job {
    struct board_job of;   /* first */
    uint64_t cursor;       /* ANEW: of the board in hand */
    struct buffer members; /* ANEW: that a step of the scan has found, */
    size_t member_at;      /* the next of them to be made anew, */
    uint64_t next;         /* and where the scan goes on behind them */
    bool has_shares;       /* these are still those of the board in hand, */
    bool lacks_shares;     /* but not yet all of them; */
    int64_t running_ms;    /* the last one's period begins then */
    struct window_shares shares;
    struct window_shares
        with_zero; /* LEAVING: those on which a member may have 0 in the first field */
};

static bool window_job_concerns(struct board_job *job, const struct registry_key *board) {
    (void)job;
    return registry_options(board)->window.count > 0 &&
           board_options_window_behind(registry_options(board), registry_state(board), 1) > 0;
}

/* The scan of the board in hand begins anew. */
static void window_job_rewind(struct window_job *job) {
    job->cursor = 0;
    job->member_at = 0;
    buffer_clear(&job->members);
}

static void window_job_enter(struct board_job *of, const struct registry_key *board) {
    struct window_job *job = (struct window_job *)of;
    (void)board;
    job->has_shares = false;
    job->lacks_shares = false;
    window_job_rewind(job);
}

/* ---- the shares of the board in hand ---- */

/* May the board or one of its shares have this name? */
static bool window_job_is_name(const struct window_job *job, uint32_t database, struct bytes name) {
    const struct buffer *board = &job->of.board;
    return job->of.database == database && name.size >= board->size &&
           memcmp(name.at, board->at, board->size) == 0 &&
           (name.size == board->size || name.at[board->size] == '@');
}

/* May a member of the share have 0 in the first field? The end of the share tells which is the least there. */
static bool window_job_may_have_zero(const struct window_job *job,
                                     const struct registry_key *share) {
    const struct board_options *options = registry_options(share);
    uint32_t count = board_count(&share->board);
    return registry_state(share)->from_ms >= job->running_ms ||
           options->layout.fields[0].is_signed ||
           (count > 0 &&
            (layout_ordinal(&options->layout, board_at(&share->board, 0).key, 0) == 0 ||
             layout_ordinal(&options->layout, board_at(&share->board, count - 1).key, 0) == 0));
}

/* Those of the board in hand; NULL: the next step finds more of them. */
static struct window_shares *window_job_shares(struct window_job *job,
                                               const struct registry_key *key) {
    struct window_shares *shares = &job->shares;
    if (!job->has_shares || job->lacks_shares) {
        uint32_t count = STEP_PERIODS;
        if (!job->has_shares) {
            /* Where keys come and go so often that the last search had no end, this one is a single step. */
            count = job->lacks_shares ? WINDOW_SHARES_MAX : STEP_PERIODS;
            job->has_shares = true; /* unless one is gone by the time that the others are found */
            window_begin_shares(key, &job->shares);
            job->running_ms = registry_options(key)->period_start_ms;
            job->with_zero.key = key;
            job->with_zero.has_first = false; /* it leaves */
            job->with_zero.count = 0;
        }
        uint32_t begin = shares->count;
        job->lacks_shares = !window_find_more_shares(job->of.server->registry,
                                                     job->of.server->clock.now_ms, count, shares);
        begin = begin > 0 ? begin : shares->has_first;
        for (uint32_t i = begin; i < shares->count; i++) {
            if (!registry_options(key)->window.is_best &&
                window_job_may_have_zero(job, shares->at[i])) {
                job->with_zero.at[job->with_zero.count++] = shares->at[i];
            }
        }
    }
    shares->left = registry_state(key)->left;
    return job->lacks_shares ? NULL : shares;
}

/* The board's shares are the same afterwards if its window begins where it began. */
static void window_job_set(struct window_job *job, struct registry_key *key,
                           const struct board_state *state) {
    bool keeps_shares = job->has_shares && state->from_ms == registry_state(key)->from_ms;
    registry_set_state(job->of.server->registry, key, state);
    job->has_shares = keeps_shares;
}

/* ---- effects ---- */

static void window_job_receive(struct board_job *of, const struct effect *effect) {
    struct window_job *job = (struct window_job *)of;
    const struct registry_key *key = effect->key;
    bool has_other = effect->kind == EFFECT_RENAME || effect->kind == EFFECT_COPY;
    switch (effect->kind) {
    case EFFECT_PUT:
        /* Shares change only while their period runs, but for passes such as LB.MOVE. */
        if (job->has_shares && key != NULL && key->kind == REGISTRY_BOARD &&
            registry_options(key)->window.is_share &&
            registry_state(key)->from_ms < job->running_ms) {
            job->has_shares = false;
        }
        return;
    case EFFECT_TAKE:
    case EFFECT_CUT:
    case EFFECT_TAGS:
    case EFFECT_NOTE:
        return;
    case EFFECT_CREATE:
    case EFFECT_REMOVE:
    case EFFECT_FLUSH:
    case EFFECT_RENAME:
    case EFFECT_COPY:
    case EFFECT_EXPIRE:
    case EFFECT_OPTIONS:
    case EFFECT_STATE:
    case EFFECT_FILL:
        break;
    }
    /* They are kept over steps, until a key with such a name comes, goes, or gets other options or another state. */
    if (job->has_shares &&
        (effect->kind == EFFECT_FLUSH || window_job_is_name(job, effect->database, effect->name) ||
         (has_other && window_job_is_name(job, effect->to_database, effect->to_name)))) {
        job->has_shares = false;
    }
    /* What was made anew under another state is made anew once more. */
    if (effect->kind == EFFECT_STATE && registry_state(key)->is_anew &&
        board_job_holds(of, effect->database, effect->name)) {
        window_job_rewind(job);
    }
}

/* ---- ANEW ---- */

static void window_job_collect(void *context, const struct board_stored *entry) {
    struct window_job *job = context;
    char room[NAME_TEXT_ROOM];
    struct bytes member = name_text(entry->member, room);
    uint32_t size = (uint32_t)member.size;
    char *at = buffer_reserve(&job->members, sizeof size + size);
    if (at == NULL) {
        board_job_wait(&job->of);
        return;
    }
    memcpy(at, &size, sizeof size);
    memcpy(at + sizeof size, member.at, size);
    buffer_commit(&job->members, sizeof size + size);
}

/* The board may be removed if its last member leaves. */
static void window_job_end_change(struct server *server, struct registry_key *key,
                                  bool is_changed) {
    if (is_changed) {
        notify(server, SETTING_EVENT_ZSET, "lb.window", key->database, registry_name(key));
    }
    if (board_count(&key->board) == 0 && !registry_options(key)->is_created) {
        notify(server, SETTING_EVENT_GENERIC, "del", key->database, registry_name(key));
        registry_remove(server->registry, key);
    } else {
        registry_tell_members(server->registry, key);
    }
}

/* The next of the members that were found, count at most. false: no memory. */
static bool window_job_renew_members(struct window_job *job, struct registry_key *key,
                                     const struct window_shares *shares, uint32_t count,
                                     bool *is_changed) {
    struct window_value values[STEP_MEMBERS];
    uint64_t keys[STEP_MEMBERS];
    bool were_there[STEP_MEMBERS];
    size_t at = job->member_at;
    uint32_t i;
    for (i = 0; i < count && at < job->members.size; i++) {
        uint32_t size;
        memcpy(&size, job->members.at + at, sizeof size);
        struct bytes name = {.at = job->members.at + at + sizeof size, .size = size};
        keys[i] = 0;
        were_there[i] = board_find(&key->board, name, &keys[i]);
        values[i] = (struct window_value){
            .name = name, .most = UINT64_MAX, .times = keys[i], .is_undated = true};
        at += sizeof size + size;
    }
    count = i;
    (void)window_compute(shares, values, count);
    for (i = 0; i < count; i++) {
        if (!window_put(job->of.server->registry, key, &values[i])) {
            return false;
        }
        *is_changed |=
            values[i].is_there != were_there[i] || (values[i].is_there && values[i].key != keys[i]);
    }
    job->member_at = at;
    return true;
}

/* So many members are computed from all shares at a time, which is half a step. */
static uint32_t window_job_values_max(const struct window_shares *shares) {
    uint32_t count = shares->count > 0 ? STEP_LOOKUPS / 2 / shares->count : STEP_MEMBERS;
    return count < 1 ? 1 : count < STEP_MEMBERS ? count : STEP_MEMBERS;
}

static void window_job_renew(struct window_job *job, struct registry_key *key) {
    struct server *server = job->of.server;
    const struct window_shares *shares = window_job_shares(job, key);
    if (shares == NULL) {
        return;
    }
    struct board_state state = *registry_state(key);
    uint32_t count = window_job_values_max(shares);
    bool is_changed = false;
    if (job->member_at == job->members.size) {
        /* Of a small board a step of the scan finds all. */
        const struct scan_limits limits = {.count = count, .work_max = 50000, .byte_work = 1};
        buffer_clear(&job->members);
        job->member_at = 0;
        job->next = board_scan(&key->board, job->cursor, &limits, window_job_collect, job);
        if (job->members.is_broken) {
            buffer_clear(&job->members);
            return;
        }
    }
    if (!window_job_renew_members(job, key, shares, count, &is_changed)) {
        board_job_wait(&job->of);
        return;
    }
    if (job->member_at == job->members.size) {
        state.is_anew = job->next != 0;
        if (!state.is_anew) {
            window_job_set(job, key, &state);
        }
        job->cursor = job->next;
    }
    window_job_end_change(server, key, is_changed);
}

/* ---- LEAVING ---- */

/* Members whose values are computed from these shares next. */
struct window_values {
    const struct window_shares *shares;
    uint32_t count;
    uint32_t of[STEP_MEMBERS]; /* in the step */
    struct window_value at[STEP_MEMBERS];
};

/* The next members of the first share, and what they are to have on the board. */
struct window_step {
    uint32_t count;
    struct bytes names[STEP_MEMBERS];
    char rooms[STEP_MEMBERS][NAME_TEXT_ROOM]; /* for them */
    uint64_t keys[STEP_MEMBERS];
    enum window_change { CHANGE_NONE, CHANGE_PUT, CHANGE_TAKE } changes[STEP_MEMBERS];
    uint32_t lookup_count; /* on shares, so far */
    struct window_values all, zero;
};

static void window_job_plan_values(struct window_step *step, struct window_values *values) {
    step->lookup_count += window_compute(values->shares, values->at, values->count);
    for (uint32_t i = 0; i < values->count; i++) {
        const struct window_value *value = &values->at[i];
        uint32_t member = values->of[i];
        step->changes[member] = value->is_there ? CHANGE_PUT : CHANGE_TAKE;
        step->keys[member] = value->key;
    }
    values->count = 0;
}

static void window_job_plan_member(const struct registry_key *key, uint64_t share_key,
                                   const struct board_member *member, struct window_step *step) {
    uint32_t i = step->count++;
    step->names[i] = member->name;
    step->changes[i] = CHANGE_NONE;
    step->keys[i] = member->key;
    if (!member->is_there) {
        return;
    }
    if (window_leave(key, member, share_key, &step->keys[i])) {
        step->changes[i] = step->keys[i] != member->key ? CHANGE_PUT : CHANGE_NONE;
        return;
    }
    /* SUM: has the member nothing but 0 in the first field of what stays? It can be on few shares then. */
    const struct layout *layout = board_layout(&key->board);
    uint64_t ordinal = layout_ordinal(layout, member->key, 0);
    bool leaves_zero = !registry_options(key)->window.is_best && !layout->fields[0].is_signed &&
                       ordinal < layout->fields[0].mask &&
                       ordinal == layout_ordinal(layout, share_key, 0);
    struct window_values *values = leaves_zero ? &step->zero : &step->all;
    values->of[values->count] = i;
    values->at[values->count++] =
        (struct window_value){.name = member->name, .most = member->key, .times = member->key};
    if (values->count == window_job_values_max(values->shares)) {
        window_job_plan_values(step, values);
    }
}

/* As many members as there are look-ups for; values are computed for some at a time, and most end before
 * the last share. */
static void window_job_plan(const struct window_job *job, const struct registry_key *key,
                            struct window_shares *shares, struct window_step *step) {
    const struct registry_key *share = shares->at[0];
    struct board_cursor cursor;
    unsigned count = LOOKUP_GROUP;
    board_cursor_seek(&share->board, shares->left, &cursor);
    shares->left = UINT32_MAX;
    step->all.shares = shares;
    step->zero.shares = &job->with_zero;
    while (count == LOOKUP_GROUP && step->count + LOOKUP_GROUP <= STEP_MEMBERS &&
           step->lookup_count < STEP_LOOKUPS / 2) {
        struct lookup ahead[LOOKUP_GROUP];
        struct board_stored entries[LOOKUP_GROUP];
        struct bytes names[LOOKUP_GROUP];
        uint32_t begin = step->count;
        count = 0;
        while (count < LOOKUP_GROUP && board_cursor_read(&cursor, &entries[count])) {
            names[count] = name_text(entries[count].member, step->rooms[begin + count]);
            board_cursor_next(&cursor);
            count++;
        }
        lookup_members(&key->board, names, 1, count, ahead);
        for (unsigned i = 0; i < count && step->lookup_count < STEP_LOOKUPS / 2; i++) {
            struct board_member member;
            board_look_up(&key->board, names[i], &ahead[i], &member);
            window_job_plan_member(key, entries[i].key, &member, step);
        }
    }
    window_job_plan_values(step, &step->all);
    window_job_plan_values(step, &step->zero);
}

static void window_job_change(struct registry *registry, struct registry_key *key,
                              const struct window_step *step) {
    for (uint32_t begin = 0; begin < step->count; begin += LOOKUP_GROUP) {
        struct lookup ahead[LOOKUP_GROUP];
        unsigned count = lookup_group_size(step->count, begin);
        lookup_members_to_put(&key->board, &step->names[begin], 1, count, &step->keys[begin],
                              ahead);
        for (uint32_t i = begin; i < begin + count; i++) {
            struct board_member member;
            if (step->changes[i] == CHANGE_NONE) {
                continue;
            }
            board_look_up(&key->board, step->names[i], &ahead[i - begin], &member);
            if (step->changes[i] == CHANGE_TAKE) {
                registry_board_take(registry, key, &member);
            } else {
                enum board_status status =
                    registry_board_put(registry, key, &member, step->keys[i]);
                CHECK(status == BOARD_OK);
            }
        }
    }
}

static void window_job_leave(struct window_job *job, struct registry_key *key) {
    struct server *server = job->of.server;
    struct window_step step; /* large: only the counts are set */
    step.count = 0;
    step.lookup_count = 0;
    step.all.count = 0;
    step.zero.count = 0;
    struct window_shares *shares = window_job_shares(job, key);
    const struct board_options *options = registry_options(key);
    struct board_state state = *registry_state(key);
    if (shares == NULL || state.is_anew) { /* a share has expired just now */
        return;
    }
    uint32_t share_count = shares->has_first ? board_count(&shares->at[0]->board) : 0;
    if (state.left < share_count) {
        window_job_plan(job, key, shares, &step);
    }
    state.left += step.count;
    if (state.left >= share_count) {
        state.from_ms = period_start_after(&options->period, state.from_ms, 1);
        state.left = 0;
    }
    if (!memory_reserve_begin(board_growth_size(&key->board, step.count))) {
        board_job_wait(&job->of);
        return;
    }
    window_job_set(job, key, &state);
    window_job_change(server->registry, key, &step);
    memory_reserve_end();
    bool is_changed = false;
    for (uint32_t i = 0; i < step.count; i++) {
        is_changed |= step.changes[i] != CHANGE_NONE;
    }
    window_job_end_change(server, key, is_changed);
}

/* ---- steps ---- */

static bool window_job_step(struct board_job *of, struct registry_key *board) {
    struct window_job *job = (struct window_job *)of;
    if (registry_state(board)->is_anew) {
        window_job_renew(job, board);
    } else {
        window_job_leave(job, board);
    }
    return true; /* as long as the board is of concern */
}

static void window_job_deinit(struct board_job *of) {
    struct window_job *job = (struct window_job *)of;
    buffer_deinit(&job->members);
}

const struct board_work window_job = {.size = sizeof(struct window_job),
                                      .concerns = window_job_concerns,
                                      .enter = window_job_enter,
                                      .step = window_job_step,
                                      .receive = window_job_receive,
                                      .deinit = window_job_deinit};
