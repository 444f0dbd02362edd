/* Shares, and values that follow from them. See window.h. */
#include "server/commands/window.h"

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

void window_begin_shares(const struct registry_key *key, struct window_shares *shares) {
    shares->key = key;
    shares->has_first = false;
    shares->left = registry_state(key)->left;
    shares->count = 0;
    shares->period_count = 0;
    shares->next_ms = registry_state(key)->from_ms;
    shares->is_board_changed = false;
}

bool window_find_more_shares(struct registry *registry, int64_t now_ms, uint32_t count,
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
        /* KEEP, or SUM and BEST, may be others since it was made. */
        bool keeps_best = options->keeps_best || options->window.is_best;
        if (registry_options(share)->keeps_best != keeps_best) {
            board_options_copy(registry_options(share), &share_options);
            share_options.keeps_best = keeps_best;
            share = registry_board_alter(call->registry, share, &share_options, NULL);
        }
        if (share == NULL) {
            call_out_of_memory(call);
        }
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

static void window_add(const struct layout *layout, uint64_t key, struct window_sums *sums) {
    for (unsigned i = 0; i < layout->field_count; i++) {
        sums->at[i] += window_value(layout, key, i);
    }
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
        window_add(layout, key, &group->sums[index]);
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

bool window_leave(const struct registry_key *key, const struct board_member *member,
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
