/* Shares, and values that follow from them. See window.h. */
#include "server/commands/window.h"

#include "server/clients/server.h"
#include "skiplist/keyspace/archive_name.h"

/* ---- shares ---- */

struct registry_key *window_find_share(struct registry *registry, const struct registry_key *key,
                                       int64_t start_ms, int64_t now_ms, bool *is_taken) {
    char name[REGISTRY_NAME_MAX];
    const struct rules *rules = registry_rules(key);
    struct registry_key *share = registry_find(
        registry, key->database,
        archive_print_name(registry_name(key), &rules->period, start_ms, name), now_ms);
    bool is_share = share != NULL && share->kind == REGISTRY_BOARD &&
                    rules_are_share(registry_rules(share), rules, start_ms);
    *is_taken = share != NULL && !is_share;
    return is_share ? share : NULL;
}

void window_find_shares(struct registry *registry, const struct registry_key *key, int64_t now_ms,
                        struct window_shares *shares) {
    const struct rules *rules = registry_rules(key);
    int64_t start_ms = rules->window.from_ms;
    shares->key = key;
    shares->has_first = false;
    shares->left = rules->window.left;
    shares->count = 0;
    while (start_ms <= rules->period_start_ms && shares->count < WINDOW_SHARES_MAX) {
        bool is_taken;
        struct registry_key *share = window_find_share(registry, key, start_ms, now_ms, &is_taken);
        if (share != NULL) {
            shares->has_first |= start_ms == rules->window.from_ms;
            shares->at[shares->count++] = share;
        }
        start_ms = period_start_after(&rules->period, start_ms, 1);
    }
}

struct registry_key *window_find_board(struct registry *registry, struct registry_key *key,
                                       int64_t now_ms) {
    struct bytes base;
    const struct rules *rules = registry_rules(key);
    if (!rules->window.is_share) {
        return rules->window.count > 0 ? key : NULL;
    }
    if (!archive_find_board(registry_name(key), &base)) {
        return NULL;
    }
    uint32_t database = key->database;
    int64_t start_ms = rules->window.from_ms;
    struct registry_key *board = registry_find(registry, database, base, now_ms);
    bool is_taken;
    if (board == NULL || board->kind != REGISTRY_BOARD ||
        registry_rules(board)->window.count == 0 ||
        start_ms < registry_rules(board)->window.from_ms) {
        return NULL;
    }
    return window_find_share(registry, board, start_ms, now_ms, &is_taken) == key ? board : NULL;
}

/* Its name is somebody else's. */
static bool window_refuse_taken(const struct call *call, struct bytes base,
                                const struct rules *rules) {
    enum { SHOWN_MAX = 64 };
    char suffix[REGISTRY_SUFFIX_MAX];
    size_t size = archive_print_suffix(&rules->period, rules->period_start_ms, suffix);
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

/* KEEP, or SUM and BEST, may be others since the share was made. NULL: the error was replied. */
static struct registry_key *window_follow_alter(const struct call *call, const struct rules *rules,
                                                struct registry_key *share) {
    bool keeps_best = rules->keeps_best || rules->window.is_best;
    struct rules altered;
    if (registry_rules(share)->keeps_best == keeps_best) {
        return share;
    }
    rules_copy(registry_rules(share), &altered);
    altered.keeps_best = keeps_best;
    share = registry_alter(call->registry, share, &altered);
    if (share == NULL) {
        call_out_of_memory(call);
    }
    return share;
}

struct registry_key *window_begin_share(const struct call *call, const struct registry_key *key,
                                        bool *is_new) {
    char name[REGISTRY_NAME_MAX];
    struct rules share_rules;
    const struct rules *rules = registry_rules(key);
    int64_t end_ms = rules_archive_end_ms(rules);
    bool is_taken;
    *is_new = false;
    struct registry_key *share =
        window_find_share(call->registry, key, rules->period_start_ms, call->now_ms, &is_taken);
    if (is_taken) {
        (void)window_refuse_taken(call, registry_name(key), rules);
        return NULL;
    }
    if (share != NULL) {
        return window_follow_alter(call, rules, share);
    }
    rules_begin_share(rules, &share_rules);
    if (rules->settles && end_ms != INT64_MAX) {
        share_rules.settled_expire_ms = end_ms;
        end_ms = INT64_MAX;
    }
    struct bytes full =
        archive_print_name(registry_name(key), &rules->period, rules->period_start_ms, name);
    share = registry_find_or_create_like(call->registry, key->database, full, &share_rules,
                                         call->now_ms, is_new);
    if (share != NULL && end_ms != INT64_MAX &&
        registry_set_expiry(call->registry, share, end_ms, false) != REGISTRY_OK) {
        registry_remove(call->registry, share);
        share = NULL;
    }
    if (share == NULL) {
        *is_new = false;
        call_out_of_memory(call);
    }
    return share;
}

bool window_may_begin(const struct call *call, struct bytes base, const struct rules *rules) {
    char name[REGISTRY_NAME_MAX];
    struct rules running;
    if (!window_check_host(call)) {
        return false;
    }
    rules_copy(rules, &running);
    rules_enter_period(&running, call->now_ms);
    const struct layout *layout = &running.layout;
    int64_t last_ms = period_start_after(&running.period, call->now_ms, running.window.count);
    if (layout->time.bits > 0 && (layout_time_first_us(layout) / 1000 > call->now_ms ||
                                  layout_time_last_us(layout) / 1000 < last_ms)) {
        return call_refuse(call, "ERR WINDOW is not possible: the times of its board do not begin "
                                 "anew with each period, and this TIME does not last: give it more "
                                 "bits, a larger unit or a START");
    }
    struct bytes full = archive_print_name(base, &running.period, running.period_start_ms, name);
    return call_find_key(call, full) == NULL || window_refuse_taken(call, base, &running);
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

/* Does the share's member count: has it not left? */
static bool window_counts(const struct window_shares *shares, uint32_t index, struct bytes name,
                          uint64_t *key) {
    const struct board *board = &shares->at[index]->board;
    struct board_member member;
    board_look_up(board, name, NULL, &member);
    *key = member.key;
    return member.is_there && (index > 0 || !shares->has_first || shares->left == 0 ||
                               board_rank_of(board, &member) >= shares->left);
}

/* Without the share `except`, if that is not NULL. */
static bool window_sum_up(const struct window_shares *shares, struct bytes member,
                          const struct registry_key *except, struct window_sums *sums) {
    const struct layout *layout = board_layout(&shares->key->board);
    bool is_found = false;
    memset(sums->at, 0, layout->field_count * sizeof sums->at[0]);
    for (uint32_t i = 0; i < shares->count; i++) {
        uint64_t key;
        if (shares->at[i] != except && window_counts(shares, i, member, &key)) {
            window_add(layout, key, sums);
            is_found = true;
        }
    }
    return is_found;
}

static bool window_find_best(const struct window_shares *shares, struct bytes member,
                             uint64_t *best) {
    const struct layout *layout = board_layout(&shares->key->board);
    bool is_found = false;
    for (uint32_t i = 0; i < shares->count; i++) {
        uint64_t key;
        if (window_counts(shares, i, member, &key) &&
            (!is_found || layout_without_time(layout, key) > layout_without_time(layout, *best))) {
            *best = key;
            is_found = true;
        }
    }
    return is_found;
}

bool window_compute(const struct window_shares *shares, struct bytes member, uint64_t *key) {
    struct window_sums sums;
    bool fits;
    if (registry_rules(shares->key)->window.is_best) {
        return window_find_best(shares, member, key);
    }
    if (!window_sum_up(shares, member, NULL, &sums)) {
        return false;
    }
    *key = window_pack(board_layout(&shares->key->board), &sums, &fits);
    return true;
}

/* ---- a write ---- */

static bool window_follow_sum(struct registry *registry, const struct registry_key *key,
                              const struct board_member *member, struct registry_key *share,
                              const struct board_member *share_member, uint64_t after,
                              int64_t now_ms, uint64_t *board_key) {
    const struct layout *layout = board_layout(&key->board);
    struct window_sums sums;
    bool fits;
    memset(sums.at, 0, layout->field_count * sizeof sums.at[0]);
    if (member->is_there && window_is_at_end(layout, member->key)) {
        struct window_shares shares;
        window_find_shares(registry, key, now_ms, &shares);
        (void)window_sum_up(&shares, member->name, share, &sums);
        window_add(layout, after, &sums);
    } else {
        if (member->is_there) {
            window_add(layout, member->key, &sums);
        }
        window_add(layout, after, &sums);
        for (unsigned i = 0; share_member->is_there && i < layout->field_count; i++) {
            sums.at[i] -= window_value(layout, share_member->key, i);
        }
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
    if (!member->is_there || value > best) {
        return after;
    }
    if (!share_member->is_there || layout_without_time(layout, share_member->key) < best) {
        return member->key;
    }
    struct window_shares shares;
    uint64_t found = after;
    bool is_found = false;
    window_find_shares(registry, key, now_ms, &shares);
    for (uint32_t i = 0; i < shares.count; i++) {
        uint64_t key_there = after;
        if ((shares.at[i] == share || window_counts(&shares, i, member->name, &key_there)) &&
            (!is_found ||
             layout_without_time(layout, key_there) > layout_without_time(layout, found))) {
            found = key_there;
            is_found = true;
        }
    }
    return found;
}

bool window_follow(struct registry *registry, const struct registry_key *key,
                   const struct board_member *member, struct registry_key *share,
                   const struct board_member *share_member, uint64_t after, int64_t now_ms,
                   uint64_t *board_key) {
    if (!registry_rules(key)->window.is_best) {
        return window_follow_sum(registry, key, member, share, share_member, after, now_ms,
                                 board_key);
    }
    *board_key = window_follow_best(registry, key, member, share, share_member, after, now_ms);
    return true;
}

/* ---- leaving ---- */

bool window_leave(const struct registry_key *key, const struct board_member *member,
                  uint64_t share_key, const struct window_shares *shares, bool *needs_shares,
                  uint64_t *board_key) {
    const struct layout *layout = board_layout(&key->board);
    bool is_best = registry_rules(key)->window.is_best;
    *needs_shares = false;
    *board_key = member->key;
    if (is_best &&
        layout_without_time(layout, member->key) > layout_without_time(layout, share_key)) {
        return true;
    }
    if (!is_best && !window_is_at_end(layout, member->key)) {
        struct window_sums sums;
        bool fits;
        bool is_zero = true;
        memset(sums.at, 0, layout->field_count * sizeof sums.at[0]);
        for (unsigned i = 0; i < layout->field_count; i++) {
            sums.at[i] = window_value(layout, member->key, i) - window_value(layout, share_key, i);
            is_zero = is_zero && sums.at[i] == 0;
        }
        *board_key = window_pack(layout, &sums, &fits) | (member->key & layout->time.mask);
        if (fits && !is_zero) {
            return true;
        }
    }
    if (shares == NULL) {
        *needs_shares = true;
        return true;
    }
    bool is_there = window_compute(shares, member->name, board_key);
    if (is_there && !is_best) {
        *board_key |= member->key & layout->time.mask;
    }
    return is_there;
}

/* ---- changes ---- */

bool window_set(struct registry *registry, struct registry_key *key,
                const struct rules_window *window) {
    struct rules rules;
    rules_copy(registry_rules(key), &rules);
    rules.window = *window;
    return registry_alter(registry, key, &rules) != NULL;
}

static int64_t window_archive_end_ms(const struct rules *rules, int64_t start_ms) {
    struct rules of_period;
    rules_copy(rules, &of_period);
    of_period.period_start_ms = start_ms;
    return rules_archive_end_ms(&of_period);
}

/* The share has the one end, as an expiry or until it is settled, and gets the other. */
static bool window_keep_share(struct registry *registry, struct registry_key *share,
                              int64_t before_ms, int64_t after_ms) {
    struct rules rules;
    rules_copy(registry_rules(share), &rules);
    if (rules.settled_expire_ms == before_ms) {
        rules.settled_expire_ms = after_ms == INT64_MAX ? 0 : after_ms;
        return registry_alter(registry, share, &rules) != NULL;
    }
    return registry_expiry(registry, share) != before_ms ||
           registry_set_expiry(registry, share,
                               after_ms == INT64_MAX ? REGISTRY_NO_EXPIRY : after_ms,
                               false) == REGISTRY_OK;
}

bool window_keep_shares(struct registry *registry, struct registry_key *key,
                        const struct rules *rules, int64_t now_ms) {
    struct window_shares shares;
    const struct rules *before = registry_rules(key);
    if (before->window.count == 0 || rules->archives_max <= before->archives_max) {
        return true;
    }
    window_find_shares(registry, key, now_ms, &shares);
    for (uint32_t i = 0; i < shares.count; i++) {
        int64_t start_ms = registry_rules(shares.at[i])->window.from_ms;
        if (!window_keep_share(registry, shares.at[i], window_archive_end_ms(before, start_ms),
                               window_archive_end_ms(rules, start_ms))) {
            return false;
        }
    }
    return true;
}

/* The member goes from the first share: those that have left are fewer by one if it has. */
static void window_note_gone(struct registry *registry, struct registry_key *key,
                             const struct window_shares *shares,
                             const struct board_member *member) {
    struct rules_window window = registry_rules(key)->window;
    if (window.left > 0 && board_rank_of(&shares->at[0]->board, member) < window.left) {
        window.left--;
        bool is_set = window_set(registry, key, &window);
        CHECK(is_set);
    }
}

static bool window_take_from(struct registry *registry, struct registry_key *key,
                             struct bytes name) {
    struct board_member member;
    board_look_up(&key->board, name, NULL, &member);
    if (!member.is_there) {
        return false;
    }
    registry_take_member(registry, key, &member);
    registry_tell_members(registry, key);
    return true;
}

/* What is without members is removed, as other boards are. */
static void window_drop_empty(struct registry *registry, struct window_shares *shares,
                              uint32_t index) {
    struct registry_key *share = shares->at[index];
    if (board_count(&share->board) > 0) {
        return;
    }
    shares->has_first = shares->has_first && index > 0;
    shares->count--;
    for (uint32_t i = index; i < shares->count; i++) {
        shares->at[i] = shares->at[i + 1];
    }
    registry_remove(registry, share);
}

uint32_t window_take(struct registry *registry, struct registry_key *key,
                     struct window_shares *shares, struct bytes name) {
    struct board_member member;
    uint32_t taken_count = 0;
    for (uint32_t i = shares->count; i-- > 0;) {
        board_look_up(&shares->at[i]->board, name, NULL, &member);
        if (i == 0 && shares->has_first && member.is_there) {
            window_note_gone(registry, key, shares, &member);
        }
        taken_count += window_take_from(registry, shares->at[i], name);
        window_drop_empty(registry, shares, i);
    }
    return taken_count + window_take_from(registry, key, name);
}

uint32_t window_count_gone(const struct window_shares *shares, uint32_t index, struct bytes name) {
    uint64_t key;
    struct board_member member;
    board_look_up(&shares->at[index]->board, name, NULL, &member);
    return member.is_there && !window_counts(shares, index, name, &key);
}

void window_note_moved(struct registry *registry, struct registry_key *key,
                       const struct window_shares *shares, uint32_t index, uint32_t gone_count,
                       struct bytes to) {
    struct rules_window window = registry_rules(key)->window;
    struct board_member member;
    const struct board *board = &shares->at[index]->board;
    if (index > 0 || !shares->has_first || window.left == 0) {
        return;
    }
    window.left -= gone_count;
    board_look_up(board, to, NULL, &member);
    window.left += member.is_there && board_rank_of(board, &member) < window.left;
    if (!window_set(registry, key, &window)) {
        return; /* the number is too large by one or two: their members count less */
    }
}

bool window_renew_by(struct registry *registry, struct registry_key *key,
                     const struct window_shares *shares, struct bytes name, const uint64_t *times) {
    struct board_member member;
    uint64_t value;
    const struct layout *layout = board_layout(&key->board);
    board_look_up(&key->board, name, NULL, &member);
    if (!window_compute(shares, name, &value)) {
        (void)window_take_from(registry, key, name);
        return true;
    }
    if (!registry_rules(key)->window.is_best && (times != NULL || member.is_there)) {
        value |= (times != NULL ? *times : member.key) & layout->time.mask;
    }
    if (member.is_there && member.key == value) {
        return true;
    }
    return registry_put_member(registry, key, &member, value) == BOARD_OK;
}
