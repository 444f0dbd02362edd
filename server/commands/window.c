/* Shares, and values that follow from them. See window.h. */
#include "server/commands/window.h"

#include "server/sessions/job.h"
#include "server/sessions/notify.h"
#include "server/sessions/server.h"
#include "skiplist/keyspace/registry.h"
#include "skiplist/lookup.h"

/* ---- shares ---- */

struct registry_key *window_find_share(struct registry *registry, const struct registry_key *key,
                                       int64_t start_ms, int64_t now_ms, bool *is_taken) {
    char name[REGISTRY_NAME_MAX];
    const struct period *period = &registry_options(key)->period;
    struct registry_key *share = registry_find(
        registry, key->database,
        registry_roll_archive_name(registry_name(key), period, start_ms, name), now_ms);
    bool is_share = registry_roll_is_share(share, registry_options(key), start_ms);
    *is_taken = share != NULL && !is_share;
    return is_share ? share : NULL;
}

struct registry_key *window_find_running(struct registry *registry, const struct registry_key *key,
                                         int64_t now_ms) {
    const struct board_options *options = registry_options(key);
    bool is_taken;
    return options->window.count > 0
               ? window_find_share(registry, key, options->period_start_ms, now_ms, &is_taken)
               : NULL;
}

static void window_begin_shares(const struct registry_key *key, struct window_shares *shares) {
    shares->key = key;
    shares->has_first = false;
    shares->left = registry_state(key)->left;
    shares->count = 0;
    shares->period_count = 0;
    shares->next_ms = registry_state(key)->from_ms;
    shares->is_board_changed = false;
}

/* So many periods more, while the board and its shares are there. true: that was the last one. */
static bool window_find_more_shares(struct registry *registry, int64_t now_ms, uint32_t count,
                                    struct window_shares *shares) {
    const struct registry_key *key = shares->key;
    const struct board_options *options = registry_options(key);
    uint32_t end = shares->period_count + count;
    end = end < WINDOW_SHARES_MAX ? end : WINDOW_SHARES_MAX;
    for (; shares->period_count < end && shares->next_ms <= options->period_start_ms;
         shares->period_count++) {
        bool is_taken;
        struct registry_key *share =
            window_find_share(registry, key, shares->next_ms, now_ms, &is_taken);
        if (share != NULL) {
            shares->has_first |= shares->period_count == 0;
            shares->are_changed[shares->count] = false;
            shares->at[shares->count++] = share;
        }
        shares->next_ms = period_start_after(&options->period, shares->next_ms, 1);
    }
    return shares->period_count == WINDOW_SHARES_MAX || shares->next_ms > options->period_start_ms;
}

void window_find_shares(struct registry *registry, const struct registry_key *key, int64_t now_ms,
                        struct window_shares *shares) {
    window_begin_shares(key, shares);
    (void)window_find_more_shares(registry, now_ms, WINDOW_SHARES_MAX, shares);
    shares->left = registry_state(key)->left;
}

struct registry_key *window_find_board(struct registry *registry, struct registry_key *key,
                                       int64_t now_ms) {
    struct bytes base;
    const struct board_options *options = registry_options(key);
    if (!options->window.is_share) {
        return options->window.count > 0 ? key : NULL;
    }
    if (!registry_roll_archive_board(registry_name(key), &base)) {
        return NULL;
    }
    uint32_t database = key->database;
    int64_t start_ms = registry_state(key)->from_ms;
    struct registry_key *board = registry_find(registry, database, base, now_ms);
    bool is_taken;
    if (board == NULL || board->kind != REGISTRY_BOARD ||
        registry_options(board)->window.count == 0 || start_ms < registry_state(board)->from_ms) {
        return NULL;
    }
    return window_find_share(registry, board, start_ms, now_ms, &is_taken) == key ? board : NULL;
}

/* Its name is somebody else's. */
static bool window_refuse_taken(const struct call *call, struct bytes base,
                                const struct board_options *options) {
    enum { SHOWN_MAX = 64 };
    char suffix[REGISTRY_SUFFIX_MAX];
    size_t size = registry_roll_archive_suffix(&options->period, options->period_start_ms, suffix);
    return call_refuse_format(call,
                              "BUSYKEY '%.*s%.*s' is the board of the running period's results "
                              "(WINDOW), but another key has this name: rename or delete it",
                              bytes_shown_size(base, SHOWN_MAX), base.at, (int)size, suffix);
}

bool window_check_host(const struct call *call) {
    return !call->server->is_embedded ||
           call_refuse(call, "ERR WINDOW is not possible here: in Redis and Valkey the boards of "
                             "its periods would have other keys; it needs leaderboard-server");
}

bool window_alter_share(const struct registry_key *share, const struct board_options *options,
                        struct board_options *share_options) {
    board_options_copy(registry_options(share), share_options);
    share_options->keeps_best = options->keeps_best || options->window.is_best;
    return share_options->keeps_best != registry_options(share)->keeps_best;
}

struct registry_key *window_begin_share(const struct call *call, const struct registry_key *key,
                                        bool *is_new) {
    char name[REGISTRY_NAME_MAX];
    struct board_options share_options;
    const struct board_options *options = registry_options(key);
    int64_t end_ms = board_options_archive_end_ms(options);
    bool is_taken;
    *is_new = false;
    struct registry_key *share =
        window_find_share(call->registry, key, options->period_start_ms, call->now_ms, &is_taken);
    if (is_taken) {
        (void)window_refuse_taken(call, registry_name(key), options);
        return NULL;
    }
    options = registry_options(key);
    if (share != NULL) {
        return share;
    }
    board_options_begin_share(options, &share_options);
    const struct board_state state = {.from_ms = options->period_start_ms};
    end_ms = options->settles ? INT64_MAX : end_ms; /* it gets one at the end of the period */
    struct bytes full = registry_roll_archive_name(registry_name(key), &options->period,
                                                   options->period_start_ms, name);
    share = registry_find_or_create_like(call->registry, key->database, full, &share_options,
                                         &state, call->now_ms, is_new);
    if (share != NULL && end_ms != INT64_MAX &&
        registry_expiry_set(call->registry, share, end_ms, false) != REGISTRY_OK) {
        registry_remove(call->registry, share);
        share = NULL;
    }
    if (share == NULL) {
        *is_new = false;
        call_out_of_memory(call);
    }
    return share;
}

bool window_may_begin(const struct call *call, struct bytes base,
                      const struct board_options *options) {
    char name[REGISTRY_NAME_MAX];
    struct board_options running;
    if (options->window.count == 0) {
        return true;
    }
    if (!window_check_host(call)) {
        return false;
    }
    board_options_copy(options, &running);
    board_options_enter_period(&running, call->now_ms);
    const struct layout *layout = &running.layout;
    int64_t last_ms = period_start_after(&running.period, call->now_ms, running.window.count);
    if (layout->time.bits > 0 && (layout_time_first_us(layout) / 1000 > call->now_ms ||
                                  layout_time_last_us(layout) / 1000 < last_ms)) {
        return call_refuse(call, "ERR WINDOW is not possible: the times of its board do not begin "
                                 "anew with each period, and this TIME does not last: give it more "
                                 "bits, a larger unit or a START");
    }
    struct bytes full =
        registry_roll_archive_name(base, &running.period, running.period_start_ms, name);
    return call_find_key(call, full) == NULL || window_refuse_taken(call, base, &running);
}

bool window_may_alter(const struct call *call, struct bytes name, const struct registry_key *key,
                      struct board_options *options) {
    const struct board_options *before = registry_options(key);
    if (options->window.count == 0) {
        return true;
    }
    if (before->window.count > 0) {
        return period_equal(&options->period, &before->period) ||
               call_refuse(call, "ERR PERIOD of a board with a WINDOW cannot be changed: take the "
                                 "WINDOW away first (WINDOW NONE)");
    }
    if (board_count(&key->board) > 0) {
        return call_refuse(call, "ERR WINDOW is not possible: the board has members: LB.ROLL it "
                                 "first");
    }
    board_options_enter_period(options, call->now_ms);
    return window_may_begin(call, name, options);
}

struct board_state window_alter_state(const struct registry_key *key,
                                      const struct board_options *options) {
    const struct board_window *before = &registry_options(key)->window;
    if (options->window.count > 0 && before->count == 0) {
        return board_options_begin_state(options);
    }
    struct board_state state = board_options_keep_state(options, registry_state(key));
    state.is_anew |= options->window.count > 0 && options->window.is_best != before->is_best;
    return state;
}

/* ---- values ---- */

__extension__ typedef __int128 wide_sum;

/* A member's decimals, field by field. */
struct window_sums {
    wide_sum at[LAYOUT_FIELDS_MAX];
};

static wide_sum window_value(const struct layout *layout, uint64_t key, unsigned index) {
    return (wide_sum)layout_ordinal(layout, key, index) -
           (wide_sum)layout_field_zero(&layout->fields[index]);
}

/* The key of the sums, without a time. *fits: every one is in its field's range. */
static uint64_t window_pack(const struct layout *layout, const struct window_sums *sums,
                            bool *fits) {
    uint64_t key = 0;
    *fits = true;
    for (unsigned i = 0; i < layout->field_count; i++) {
        const struct layout_field *field = &layout->fields[i];
        wide_sum ordinal = sums->at[i] + (wide_sum)layout_field_zero(field);
        if (ordinal < 0 || ordinal > (wide_sum)field->mask) {
            *fits = false;
            ordinal = ordinal < 0 ? 0 : (wide_sum)field->mask;
        }
        key = layout_with_ordinal(layout, key, i, (uint64_t)ordinal);
    }
    return key;
}

/* May the true sum of a field be beyond what the key can say? */
static bool window_is_at_end(const struct layout *layout, uint64_t key) {
    for (unsigned i = 0; i < layout->field_count; i++) {
        const struct layout_field *field = &layout->fields[i];
        uint64_t ordinal = layout_ordinal(layout, key, i);
        if (ordinal == field->mask || (field->is_signed && ordinal == 0)) {
            return true;
        }
    }
    return false;
}

/* Has the share's member not left? */
static bool window_counts(const struct window_shares *shares, uint32_t index,
                          const struct board_member *member) {
    return member->is_there && (index > 0 || !shares->has_first || shares->left == 0 ||
                                board_rank_of(&shares->at[0]->board, member) >= shares->left);
}

/* Look-ups of members on shares. */
struct window_lookups {
    uint32_t count;
    struct lookup ahead[LOOKUP_GROUP];
    uint32_t share[LOOKUP_GROUP], value[LOOKUP_GROUP];
};

struct window_group {
    const struct window_shares *shares;
    struct window_value *values;
    struct window_sums *sums;    /* of each value; NULL: BEST */
    uint32_t lookup_count;       /* so far */
    struct window_lookups begun; /* BEST: the next to be bounded, */
    struct window_lookups due;   /* and those that may be better; SUM: all */
};

static const struct board *window_board_of(const struct window_group *group, uint32_t share) {
    return &group->shares->at[share]->board;
}

/* BEST: is a result with this key, of a later period, no better than what the member has? */
static bool window_is_no_better(const struct window_group *group, uint32_t index, uint64_t key) {
    const struct layout *layout = board_layout(&group->shares->key->board);
    const struct window_value *value = &group->values[index];
    return value->is_there &&
           layout_without_time(layout, key) <= layout_without_time(layout, value->key);
}

/* What the member has on a share, the oldest first. */
static void window_take_in(const struct window_group *group, uint32_t index, uint64_t key) {
    struct window_value *value = &group->values[index];
    const struct layout *layout = board_layout(&group->shares->key->board);
    if (group->sums != NULL) {
        for (unsigned i = 0; i < layout->field_count; i++) {
            group->sums[index].at[i] += window_value(layout, key, i);
        }
        if (value->is_undated) {
            value->times = layout_later_time(layout, value->times, key);
        }
    } else if (!window_is_no_better(group, index, key)) {
        value->key = key;
    }
    value->is_there = true;
}

static void window_end_due(struct window_group *group) {
    struct window_lookups *due = &group->due;
    lookup_finish(due->ahead, due->count);
    for (uint32_t i = 0; i < due->count; i++) {
        struct board_member member;
        board_look_up(window_board_of(group, due->share[i]), due->ahead[i].member, &due->ahead[i],
                      &member);
        if (window_counts(group->shares, due->share[i], &member)) {
            window_take_in(group, due->value[i], member.key);
        }
    }
    due->count = 0;
}

static void window_put_due(struct window_group *group, const struct lookup *lookup, uint32_t share,
                           uint32_t value) {
    struct window_lookups *due = &group->due;
    due->ahead[due->count] = *lookup;
    due->share[due->count] = share;
    due->value[due->count++] = value;
    if (due->count == LOOKUP_GROUP) {
        window_end_due(group);
    }
}

static void window_bound_begun(struct window_group *group) {
    uint64_t bounds[LOOKUP_GROUP];
    struct window_lookups *begun = &group->begun;
    lookup_bounds(begun->ahead, begun->count, bounds);
    for (uint32_t i = 0; i < begun->count; i++) {
        if (!window_is_no_better(group, begun->value[i], bounds[i])) {
            window_put_due(group, &begun->ahead[i], begun->share[i], begun->value[i]);
        }
    }
    begun->count = 0;
}

static void window_look_up(struct window_group *group, uint32_t share, uint32_t value) {
    struct lookup lookup;
    struct window_lookups *begun = &group->begun;
    group->lookup_count++;
    if (group->sums != NULL) {
        lookup_begin(&lookup, window_board_of(group, share), group->values[value].name, false);
        window_put_due(group, &lookup, share, value);
    } else {
        lookup_begin(&begun->ahead[begun->count], window_board_of(group, share),
                     group->values[value].name, false);
        begun->share[begun->count] = share;
        begun->value[begun->count++] = value;
        if (begun->count == LOOKUP_GROUP) {
            window_bound_begun(group);
        }
    }
}

/* Of the running period's share, which is the last one and is looked up no more, the member is to have
 * *after; NULL: what it has. */
static uint32_t window_compute_with(const struct window_shares *shares, struct window_value *values,
                                    uint32_t count, const struct registry_key *running,
                                    const uint64_t *after) {
    const struct layout *layout = board_layout(&shares->key->board);
    struct window_sums sums[WINDOW_VALUES_MAX];
    struct window_group group = {.shares = shares, .values = values, .sums = sums};
    bool is_best = registry_options(shares->key)->window.is_best;
    group.sums = is_best ? NULL : sums;
    CHECK(count <= WINDOW_VALUES_MAX);
    for (uint32_t i = 0; i < count; i++) {
        values[i].is_there = false;
        memset(sums[i].at, 0, layout->field_count * sizeof sums[i].at[0]);
    }
    for (uint32_t share = shares->has_first && shares->left == UINT32_MAX; share < shares->count;
         share++) {
        for (uint32_t i = 0; i < count && shares->at[share] != running; i++) {
            if (!is_best || !window_is_no_better(&group, i, values[i].most)) {
                window_look_up(&group, share, i);
            }
        }
    }
    window_bound_begun(&group);
    window_end_due(&group);
    for (uint32_t i = 0; i < count; i++) {
        if (after != NULL) {
            window_take_in(&group, i, *after);
        }
        if (!is_best) {
            values[i].key = window_pack(layout, &sums[i], &values[i].fits) |
                            (values[i].times & layout->time.mask);
        }
    }
    return group.lookup_count;
}

uint32_t window_compute(const struct window_shares *shares, struct window_value *values,
                        uint32_t count) {
    return window_compute_with(shares, values, count, NULL, NULL);
}

/* Does the board show what the member has on this share, of which so many have left? */
static bool window_shows(const struct board_options *options, const struct board *share,
                         uint32_t left, struct bytes name, uint64_t key) {
    struct board_member member;
    board_look_up(share, name, NULL, &member);
    return member.is_there && (left == 0 || board_rank_of(share, &member) >= left) &&
           (!options->window.is_best || layout_without_time(&options->layout, member.key) ==
                                            layout_without_time(&options->layout, key));
}

void window_find_shown(const struct registry *registry, const struct registry_key *key,
                       const struct bytes *members, const uint64_t *keys, unsigned count,
                       int64_t now_ms, int64_t *starts_ms) {
    char name[REGISTRY_NAME_MAX];
    const struct board_options *options = registry_options(key);
    const struct board_state *state = registry_state(key);
    int64_t start_ms = options->window.count > 0 ? state->from_ms : INT64_MAX;
    for (unsigned i = 0; i < count; i++) {
        starts_ms[i] = INT64_MAX;
    }
    for (unsigned i = 0; i < WINDOW_SHARES_MAX && start_ms <= options->period_start_ms; i++) {
        const struct registry_key *share = registry_peek(
            registry, key->database,
            registry_roll_archive_name(registry_name(key), &options->period, start_ms, name),
            now_ms);
        bool is_share = registry_roll_is_share(share, options, start_ms);
        uint32_t left = start_ms == state->from_ms ? state->left : 0;
        for (unsigned j = 0; is_share && j < count; j++) {
            if ((!options->window.is_best || starts_ms[j] == INT64_MAX) &&
                window_shows(options, &share->board, left, members[j], keys[j])) {
                starts_ms[j] = start_ms;
            }
        }
        start_ms = period_start_after(&options->period, start_ms, 1);
    }
    for (unsigned i = 0; i < count; i++) {
        starts_ms[i] = starts_ms[i] == INT64_MAX ? options->period_start_ms : starts_ms[i];
    }
}

/* ---- a write ---- */

/* What the member is by the shares if it has the key `after` in the running period. */
static uint64_t window_compute_after(struct registry *registry, const struct registry_key *key,
                                     struct bytes member, const struct registry_key *share,
                                     uint64_t after, int64_t now_ms, bool *fits) {
    struct window_shares shares;
    struct window_value value = {.name = member, .most = UINT64_MAX, .times = after, .fits = true};
    window_find_shares(registry, key, now_ms, &shares);
    (void)window_compute_with(&shares, &value, 1, share, &after);
    *fits = value.fits;
    return value.key;
}

static bool window_follow_sum(struct registry *registry, const struct registry_key *key,
                              const struct board_member *member, struct registry_key *share,
                              const struct board_member *share_member, uint64_t after,
                              int64_t now_ms, uint64_t *board_key) {
    const struct layout *layout = board_layout(&key->board);
    struct window_sums sums;
    bool fits;
    if (registry_state(key)->is_anew ||
        (member->is_there && window_is_at_end(layout, member->key))) {
        *board_key = window_compute_after(registry, key, member->name, share, after, now_ms, &fits);
        return fits;
    }
    for (unsigned i = 0; i < layout->field_count; i++) {
        sums.at[i] = window_value(layout, after, i);
        sums.at[i] += member->is_there ? window_value(layout, member->key, i) : 0;
        sums.at[i] -= share_member->is_there ? window_value(layout, share_member->key, i) : 0;
    }
    *board_key = window_pack(layout, &sums, &fits) | (after & layout->time.mask);
    return fits;
}

/* What is worse than before, or as good at another time, may be no longer the member's best. */
static uint64_t window_follow_best(struct registry *registry, const struct registry_key *key,
                                   const struct board_member *member, struct registry_key *share,
                                   const struct board_member *share_member, uint64_t after,
                                   int64_t now_ms) {
    const struct layout *layout = board_layout(&key->board);
    uint64_t value = layout_without_time(layout, after);
    uint64_t best = layout_without_time(layout, member->key);
    bool fits;
    bool is_anew = registry_state(key)->is_anew;
    if (!is_anew && (!member->is_there || value > best)) {
        return after;
    }
    if (!is_anew &&
        (!share_member->is_there || layout_without_time(layout, share_member->key) < best)) {
        return member->key;
    }
    return window_compute_after(registry, key, member->name, share, after, now_ms, &fits);
}

bool window_follow(struct registry *registry, const struct registry_key *key,
                   const struct board_member *member, struct registry_key *share,
                   const struct board_member *share_member, uint64_t after, int64_t now_ms,
                   uint64_t *board_key) {
    if (!registry_options(key)->window.is_best) {
        return window_follow_sum(registry, key, member, share, share_member, after, now_ms,
                                 board_key);
    }
    *board_key = window_follow_best(registry, key, member, share, share_member, after, now_ms);
    return true;
}

/* ---- leaving ---- */

/* What the board's member, which is there, is when what it had in a share leaves. false: that follows
 * from the other shares only. */
static bool window_leave(const struct registry_key *key, const struct board_member *member,
                         uint64_t share_key, uint64_t *board_key) {
    const struct layout *layout = board_layout(&key->board);
    struct window_sums sums;
    bool fits;
    bool is_zero = true;
    *board_key = member->key;
    if (registry_options(key)->window.is_best) {
        return layout_without_time(layout, member->key) > layout_without_time(layout, share_key);
    }
    if (window_is_at_end(layout, member->key)) {
        return false;
    }
    for (unsigned i = 0; i < layout->field_count; i++) {
        sums.at[i] = window_value(layout, member->key, i) - window_value(layout, share_key, i);
        is_zero = is_zero && sums.at[i] == 0;
    }
    *board_key = window_pack(layout, &sums, &fits) | (member->key & layout->time.mask);
    return fits && !is_zero;
}

/* ---- changes ---- */

static int64_t window_archive_end_ms(const struct board_options *options, int64_t start_ms) {
    struct board_options of_period;
    board_options_copy(options, &of_period);
    of_period.period_start_ms = start_ms;
    return board_options_archive_end_ms(&of_period);
}

bool window_keep_shares(struct registry *registry, struct registry_key *key,
                        const struct board_options *options, int64_t now_ms) {
    struct window_shares shares;
    const struct board_options *before = registry_options(key);
    if (before->window.count == 0 || options->archives_max <= before->archives_max) {
        return true;
    }
    window_find_shares(registry, key, now_ms, &shares);
    before = registry_options(key);
    for (uint32_t i = 0; i < shares.count; i++) {
        /* It has the one end, as an expiry or until it is settled, and gets the other. */
        struct registry_key *share = shares.at[i];
        struct board_state state = *registry_state(share);
        int64_t before_ms = window_archive_end_ms(before, state.from_ms);
        int64_t after_ms = window_archive_end_ms(options, state.from_ms);
        if (state.settled_expire_ms == before_ms) {
            state.settled_expire_ms = after_ms == INT64_MAX ? 0 : after_ms;
            registry_set_state(registry, share, &state);
        } else if (registry_expiry(registry, share) == before_ms &&
                   registry_expiry_set(registry, share,
                                       after_ms == INT64_MAX ? REGISTRY_NO_EXPIRY : after_ms,
                                       false) != REGISTRY_OK) {
            return false;
        }
    }
    return true;
}

static bool window_take_from(struct registry *registry, struct registry_key *key,
                             struct bytes name) {
    struct board_member member;
    board_look_up(&key->board, name, NULL, &member);
    if (!member.is_there) {
        return false;
    }
    registry_board_take(registry, key, &member);
    registry_tell_members(registry, key);
    return true;
}

uint32_t window_take(struct registry *registry, struct registry_key *key,
                     struct window_shares *shares, struct bytes name) {
    struct board_member member;
    uint32_t taken_count = 0;
    for (uint32_t i = shares->count; i-- > 0;) {
        board_look_up(&shares->at[i]->board, name, NULL, &member);
        struct board_state state = *registry_state(key);
        if (i == 0 && shares->has_first && member.is_there && state.left > 0 &&
            board_rank_of(&shares->at[0]->board, &member) < state.left) {
            state.left--; /* those that have left are fewer by one */
            registry_set_state(registry, key, &state);
        }
        bool is_taken = window_take_from(registry, shares->at[i], name);
        shares->are_changed[i] |= is_taken;
        taken_count += is_taken;
    }
    bool is_taken = window_take_from(registry, key, name);
    shares->is_board_changed |= is_taken;
    return taken_count + is_taken;
}

void window_end_take(struct server *server, const struct window_shares *shares) {
    for (uint32_t i = 0; i < shares->count; i++) {
        struct registry_key *share = shares->at[i];
        struct bytes name = registry_name(share);
        if (shares->are_changed[i]) {
            notify(server, SETTING_EVENT_ZSET, "zrem", share->database, name);
        }
        if (board_count(&share->board) == 0) {
            notify(server, SETTING_EVENT_GENERIC, "del", share->database, name);
            registry_remove(server->registry, share);
        }
    }
}

uint32_t window_count_gone(const struct window_shares *shares, uint32_t index, struct bytes name) {
    struct board_member member;
    board_look_up(&shares->at[index]->board, name, NULL, &member);
    return member.is_there && !window_counts(shares, index, &member);
}

void window_note_moved(struct registry *registry, struct registry_key *key,
                       const struct window_shares *shares, uint32_t index, uint32_t gone_count,
                       struct bytes to) {
    struct board_state state = *registry_state(key);
    struct board_member member;
    const struct board *board = &shares->at[index]->board;
    if (index > 0 || !shares->has_first || state.left == 0) {
        return;
    }
    state.left -= gone_count;
    board_look_up(board, to, NULL, &member);
    state.left += member.is_there && board_rank_of(board, &member) < state.left;
    registry_set_state(registry, key, &state);
}

bool window_put(struct registry *registry, struct registry_key *key,
                const struct window_value *value) {
    struct board_member member;
    if (!value->is_there) {
        (void)window_take_from(registry, key, value->name);
        return true;
    }
    board_look_up(&key->board, value->name, NULL, &member);
    return (member.is_there && member.key == value->key) ||
           registry_board_put(registry, key, &member, value->key) == BOARD_OK;
}

/* ---- what leaves ----
 *
 * It does so in steps (server/sessions/job.h): a period ends, or a share is removed.
 *
 *     ANEW     some members, in the order of their hashes, get what follows from the shares
 *     LEAVING  the next members of the first share leave, by rank; behind the last one the next
 *              period is the first
 *
 * How far it has come is in the board's state and changes with the members, so a job that begins
 * again goes on from there; only ANEW begins from the front, which changes nothing twice. */

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
        job_board_holds(of, effect->database, effect->name)) {
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
        job_board_wait(&job->of);
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
        job->next = board_cursor_scan(&key->board, job->cursor, &limits, window_job_collect, job);
        if (job->members.is_broken) {
            buffer_clear(&job->members);
            return;
        }
    }
    if (!window_job_renew_members(job, key, shares, count, &is_changed)) {
        job_board_wait(&job->of);
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
        job_board_wait(&job->of);
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
