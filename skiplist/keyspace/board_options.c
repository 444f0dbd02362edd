/* The rows of options; and the set of rules. The set is structured like a database: a dense list, and a map from hashes to indexes in it. A
 * client may create a million boards with a million different caps, so no operation takes time that
 * grows with the set.
 *
 * Invariant: rules->index is the index in the list, the map holds (hash, index) for every element
 * and nothing else, no two are equal, and each has a reference count above 0. */
#include "skiplist/keyspace/board_options.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "codec/memory.h"

_Static_assert(sizeof(struct period) == 24 && sizeof(struct rules_window) == 4 &&
                   sizeof(struct rules_league) == 8 && offsetof(struct rules, index) == 96,
               "no hidden bytes: rules_equal and board_options_hash see them all");

/* ---- the rows ---- */

#define BOARD_OPTION_ROW(name, member, line, create, alter, ...)                                   \
    [BOARD_OPTION_##name] = {.at = offsetof(struct rules, member),                                 \
                             .size = sizeof(((struct rules *)NULL)->member),                       \
                             __VA_ARGS__},

#define BOARD_STATE_ROW(name, member, line, create, alter, ...)                                    \
    [BOARD_OPTION_##name] = {.is_of_state = true,                                                  \
                             .at = offsetof(struct board_state, member),                           \
                             .size = sizeof(((struct board_state *)NULL)->member),                 \
                             __VA_ARGS__},

/* NOLINTNEXTLINE(bugprone-sizeof-expression): a zone is a pointer, whose own size is meant */
const struct board_option board_options[BOARD_OPTION_COUNT] = {BOARD_OPTIONS(BOARD_OPTION_ROW)
                                                                   BOARD_STATES(BOARD_STATE_ROW)};

int64_t board_option_get(const struct board_option *option, const struct rules *rules,
                         const struct board_state *state) {
    static const struct board_state none;
    const void *in = option->is_of_state ? (const void *)(state != NULL ? state : &none) : rules;
    const char *at = (const char *)in + option->at;
    uint64_t value_64;
    uint32_t value_32;
    uint16_t value_16;
    switch (option->size) {
    case sizeof value_64:
        memcpy(&value_64, at, sizeof value_64);
        return (int64_t)value_64;
    case sizeof value_32:
        memcpy(&value_32, at, sizeof value_32);
        return option->form == BOARD_FORM_DATE || option->form == BOARD_FORM_ZONE
                   ? (int32_t)value_32
                   : (int64_t)value_32;
    case sizeof value_16:
        memcpy(&value_16, at, sizeof value_16);
        return value_16;
    default:
        return option->bit != 0 ? ((uint8_t)*at & option->bit) != 0 : (uint8_t)*at;
    }
}

void board_option_set(const struct board_option *option, struct rules *rules,
                      struct board_state *state, int64_t value) {
    void *in = option->is_of_state ? (void *)state : rules;
    if (in == NULL) {
        return;
    }
    char *at = (char *)in + option->at;
    if (option->bit != 0) {
        *at = (char)(value != 0 ? *at | option->bit : *at & ~option->bit);
    } else {
        memcpy(at, &value, option->size);
    }
    if (option->form == BOARD_FORM_ZONE) {
        rules->period.zone = NULL;
    }
}

bool board_option_applies(const struct board_option *option, const struct rules *rules) {
    switch ((enum board_option_needs)option->needs) {
    case BOARD_NEEDS_PERIOD:
        return rules->period.unit != PERIOD_NONE;
    case BOARD_NEEDS_WEEK:
        return rules->period.unit == PERIOD_WEEK;
    case BOARD_NEEDS_EVERY:
        return rules->period.every > 1;
    case BOARD_NEEDS_WINDOW:
        return rules->window.count > 0;
    case BOARD_NEEDS_SHARE:
        return rules->window.is_share;
    case BOARD_NEEDS_LEAGUE:
        return rules->league.room > 0;
    case BOARD_NEEDS_END:
        return rules->is_archive;
    case BOARD_NEEDS_NOTHING:
        break;
    }
    return true;
}

int64_t board_option_usual(const struct board_option *option, const struct rules *rules) {
    return option->usual != 0 && board_option_applies(option, rules) ? option->usual : 0;
}

bool board_option_may_be(const struct board_option *option, int64_t value) {
    switch ((enum board_option_form)option->form) {
    case BOARD_FORM_FLAG:
    case BOARD_FORM_YES_NO:
    case BOARD_FORM_CHOICE:
        return value == 1 || value == option->value;
    case BOARD_FORM_NUMBER:
    case BOARD_FORM_HOUR:
    case BOARD_FORM_WINDOW:
        return option->is_of_league || value == option->usual ||
               (value >= option->minimum && value <= option->maximum);
    case BOARD_FORM_TIME:
    case BOARD_FORM_AGE:
    case BOARD_FORM_UNIT:
    case BOARD_FORM_WEEKDAY:
    case BOARD_FORM_DATE:
    case BOARD_FORM_ZONE:
    case BOARD_FORM_POINTER:
        break;
    }
    return true;
}

size_t board_options_find(uint8_t code) {
    size_t i = 0;
    while (i < BOARD_OPTION_COUNT && board_options[i].code != code) {
        i++;
    }
    return i;
}

const struct board_option *board_options_find_alone(const struct rules *rules) {
    const struct board_option *found = NULL;
    for (size_t i = 0; i < BOARD_OPTION_COUNT && found == NULL; i++) {
        const struct board_option *option = &board_options[i];
        found = option->alone != NULL && board_option_get(option, rules, NULL) != 0 ? option : NULL;
    }
    return found;
}

uint8_t board_options_guards(const struct rules *rules) {
    return (uint8_t)((rules->guards & RULES_FROZEN) | (rules->opens_ms != 0 ? RULES_OPENS : 0) |
                     (rules->closes_ms != 0 ? RULES_CLOSES : 0) |
                     (rules->league.room > 0 ? RULES_LEAGUE : 0));
}

/* ---- rules ---- */

/* Bytes of rules up to the end of the last field. */
static size_t board_options_size(const struct rules *rules) {
    return offsetof(struct rules, layout.fields) +
           rules->layout.field_count * sizeof(struct layout_field);
}

void rules_copy(const struct rules *rules, struct rules *copy) {
    memcpy(copy, rules, board_options_size(rules));
}

bool rules_equal(const struct rules *a, const struct rules *b) {
    return memcmp(a, b, offsetof(struct rules, index)) == 0 && layout_equal(&a->layout, &b->layout);
}

bool rules_keys_are_akin(const struct rules *a, const struct rules *b) {
    struct rules akin;
    rules_copy(a, &akin);
    akin.layout.time.start_us = b->layout.time.start_us;
    akin.layout.time.is_given_by_end = b->layout.time.is_given_by_end;
    return layout_keys_equal(&akin.layout, &b->layout);
}

bool rules_are_akin(const struct rules *a, const struct rules *b) {
    return rules_keys_are_akin(a, b) && tag_set_equal(&a->layout.tags, &b->layout.tags);
}

/* ---- periods ---- */

void rules_enter_period(struct rules *rules, int64_t now_ms) {
    rules->period_start_ms = period_start(&rules->period, now_ms);
    rules->period_end_ms = period_start_after(&rules->period, now_ms, 1);
}

void rules_begin_period(struct rules *rules, int64_t now_ms) {
    rules_enter_period(rules, now_ms);
    if (rules->window.count == 0 && rules->layout.time.bits > 0) {
        layout_set_start(&rules->layout, rules->period_start_ms * 1000);
    }
}

void rules_slide(struct rules *rules, struct board_state *state, int64_t now_ms) {
    int64_t start_ms = rules->period_start_ms;
    rules_enter_period(rules, now_ms);
    rules->period_start_ms = rules->period_start_ms > start_ms ? rules->period_start_ms : start_ms;
    if (rules_window_behind(rules, state, rules->window.count) == rules->window.count) {
        state->from_ms = rules->period_start_ms;
        for (uint32_t i = 1; i < rules->window.count; i++) {
            state->from_ms = period_start(&rules->period, state->from_ms - 1);
        }
        state->left = 0;
        state->is_anew = true;
    }
}

uint32_t rules_window_behind(const struct rules *rules, const struct board_state *state,
                             uint32_t most) {
    uint32_t count = rules->window.count;
    uint32_t behind = state->is_anew;
    while (count > 0 && behind < most &&
           period_start_after(&rules->period, state->from_ms, count + behind - state->is_anew) <=
               rules->period_start_ms) {
        behind++;
    }
    return behind;
}

void rules_without_window(const struct rules *rules, struct rules *copy) {
    rules_copy(rules, copy);
    copy->window = (struct rules_window){.count = 0};
    if (rules->window.count > 0) {
        copy->period = (struct period){.unit = PERIOD_NONE};
        copy->archives_max = 0;
        copy->period_start_ms = 0;
        copy->period_end_ms = 0;
        copy->settles = false;
    }
}

void rules_begin_share(const struct rules *rules, struct rules *share) {
    rules_end_period(rules, share);
    share->is_archive = false;
    share->guards = RULES_FROZEN;
    share->keeps_best = rules->keeps_best || rules->window.is_best;
    share->window = (struct rules_window){.is_share = true};
}

void rules_renew_period(struct rules *rules) {
    const struct zone *zone = rules->period.zone;
    if (zone != NULL && !zone_is_missing(zone)) {
        rules->period_end_ms =
            period_nearest_end(&rules->period, rules->period_end_ms, rules->period_start_ms);
    }
}

enum rules_refusal rules_find_refusal(const struct rules *rules, enum rules_write write,
                                      int64_t now_ms) {
    uint8_t guards = rules->guards;
    if ((guards & RULES_LEAGUE) != 0 && write != RULES_WRITE_LEAGUE) {
        return RULES_REFUSE_LEAGUE;
    }
    if ((guards & RULES_FROZEN) != 0) {
        return rules->window.is_share ? RULES_REFUSE_SHARE : RULES_REFUSE_FROZEN;
    }
    if ((guards & RULES_OPENS) != 0 && now_ms < rules->opens_ms) {
        return RULES_REFUSE_BEFORE;
    }
    if ((guards & RULES_CLOSES) != 0 && now_ms >= rules->closes_ms) {
        return RULES_REFUSE_AFTER;
    }
    return rules->window.count > 0 && write == RULES_WRITE_WHOLE ? RULES_REFUSE_WINDOW : RULES_TAKE;
}

void rules_end_period(const struct rules *rules, struct rules *archive) {
    bool is_frozen = rules->period.unit != PERIOD_NONE ? !rules->archives_are_writable
                                                       : (rules->guards & RULES_FROZEN) != 0;
    rules_copy(rules, archive);
    for (size_t i = 0; i < BOARD_OPTION_COUNT; i++) {
        if (!board_options[i].is_kept) {
            board_option_set(&board_options[i], archive, NULL, 0);
        }
    }
    archive->guards = is_frozen ? RULES_FROZEN : 0;
    archive->is_archive = true;
}

int64_t rules_archive_end_ms(const struct rules *rules) {
    if (rules->archives_max == RULES_ARCHIVES_ALL) {
        return INT64_MAX;
    }
    return period_start_after(&rules->period, rules->period_start_ms, rules->archives_max + 1);
}

/* ---- state ---- */

_Static_assert(sizeof(struct board_state) == 32, "no hidden bytes: states are compared as bytes");

struct board_state rules_begin_state(const struct rules *rules) {
    return (struct board_state){.from_ms = rules->window.count > 0 ? rules->period_start_ms : 0};
}

struct board_state rules_keep_state(const struct rules *rules, const struct board_state *state) {
    struct board_state kept = *state;
    for (size_t i = 0; i < BOARD_OPTION_COUNT; i++) {
        const struct board_option *option = &board_options[i];
        if (option->is_of_state && !option->is_other && !board_option_applies(option, rules) &&
            !(i == BOARD_OPTION_COUNTS && rules->window.is_share)) {
            board_option_set(option, NULL, &kept, 0);
        }
    }
    return kept;
}

bool rules_take_state(const struct rules *rules, const struct board_state *state) {
    struct board_state kept = rules_keep_state(rules, state);
    /* A period can begin before 1970, too. */
    return memcmp(&kept, state, sizeof kept) == 0 && state->from_ms >= -PERIOD_TIME_MAX &&
           state->from_ms <= PERIOD_TIME_MAX && state->settled_expire_ms >= 0 &&
           (state->settled_expire_ms == 0 || rules_are_unsettled(rules, state)) &&
           (rules->window.count == 0 || state->from_ms <= rules->period_start_ms);
}

/* ---- hashing ---- */

static uint64_t board_options_hash_field(const struct layout_field *field, uint64_t seed) {
    const uint64_t words[] = {
        XXH3_64bits_withSeed(field->name, strlen(field->name), seed),
        (uint64_t)field->bits << 24 | (uint64_t)field->scale << 16 |
            (uint64_t)field->is_signed << 8 | (uint64_t)field->is_double << 1 |
            (uint64_t)field->is_ascending,
        (uint64_t)field->decay.count << 8 | field->decay.unit,
    };
    return XXH3_64bits_withSeed(words, sizeof(words), seed);
}

static uint64_t board_options_hash_tags(const struct tag_set *set, uint64_t seed) {
    for (unsigned i = 0; i < set->count; i++) {
        const struct tag *tag = &set->tags[i];
        seed = XXH3_64bits_withSeed(tag->name, strlen(tag->name), seed + tag->bits);
    }
    return seed;
}

/* Hash of everything rules_equal compares. */
static uint64_t board_options_hash(const struct rules *rules, uint64_t seed) {
    const struct layout *layout = &rules->layout;
    const struct layout_time *time = &layout->time;
    uint64_t hash = XXH3_64bits_withSeed(rules, offsetof(struct rules, index), seed);
    for (unsigned i = 0; i < layout->field_count; i++) {
        hash = board_options_hash_field(&layout->fields[i], hash);
    }
    const uint64_t words[] = {
        board_options_hash_tags(&layout->tags, hash),
        (uint64_t)time->start_us,
        (uint64_t)time->bits << 32 | (uint64_t)time->unit << 8 | (uint64_t)time->is_latest << 1 |
            (uint64_t)time->is_given_by_end,
    };
    return XXH3_64bits_withSeed(words, sizeof(words), seed);
}

/* ---- the set ---- */

static struct rules **board_options_list_at(const struct rules_set *set, uint32_t index) {
    return pages_at(&set->list, index * (uint64_t)sizeof(struct rules *));
}

/* Callback of the map: the hash of the rules at one index. */
static uint32_t board_options_set_hashes(const void *owner, uint32_t id, uint64_t *hashes) {
    const struct rules_set *set = owner;
    if (id >= set->count) {
        return 0;
    }
    hashes[0] = (*board_options_list_at(set, id))->hash;
    return 1;
}

void rules_set_init(struct rules_set *set, uint64_t hash_seed) {
    *set = (struct rules_set){.hash_seed = hash_seed};
    map_init(&set->map, board_options_set_hashes, set);
}

void rules_set_deinit(struct rules_set *set) {
    CHECK(set->count == 0);
    CHECK(set->use_count == 0);
    rules_free_gone(set);
    map_deinit(&set->map);
    pages_deinit(&set->list);
}

static struct rules *board_options_find_equal(const struct rules_set *set, const struct rules *like,
                                              uint64_t hash) {
    struct map_find find;
    uint32_t index;
    map_find(&set->map, hash, &find);
    while (map_find_next(&find, &index)) {
        struct rules *rules = index < set->count ? *board_options_list_at(set, index) : NULL;
        if (rules != NULL && rules->hash == hash && rules_equal(rules, like)) {
            return rules;
        }
    }
    return NULL;
}

/* NULL: no memory. */
static struct rules *board_options_add(struct rules_set *set, const struct rules *like,
                                       uint64_t hash) {
    uint64_t count = set->count + (uint64_t)1;
    if (count >= MAP_ID_END || !pages_reserve(&set->list, count * sizeof(struct rules *)) ||
        !map_reserve(&set->map, 1, (uint32_t)count)) {
        return NULL;
    }
    struct rules *rules = memory_allocate_lasting(board_options_size(like));
    if (rules == NULL) {
        return NULL;
    }
    rules_copy(like, rules);
    rules->hash = hash;
    rules->use_count = 0;
    rules->index = set->count++;
    set->stale_count += rules->stale_ms > 0;
    *board_options_list_at(set, rules->index) = rules;
    map_put(&set->map, hash, rules->index);
    return rules;
}

/* Remove rules from the set; the last element of the list takes its index. */
static void board_options_take_out(struct rules_set *set, struct rules *rules) {
    map_remove(&set->map, rules->hash, rules->index);
    uint32_t last_index = --set->count;
    set->stale_count -= rules->stale_ms > 0;
    struct rules *last = *board_options_list_at(set, last_index);
    if (last != rules) {
        map_replace(&set->map, last->hash, last_index, rules->index);
        *board_options_list_at(set, rules->index) = last;
        last->index = rules->index;
    }
    (void)map_step(&set->map, set->count);
    pages_trim(&set->list, set->count * (uint64_t)sizeof(struct rules *));
    rules->next_gone = set->gone;
    set->gone = rules;
}

void rules_free_gone(struct rules_set *set) {
    while (set->gone != NULL) {
        struct rules *rules = set->gone;
        set->gone = rules->next_gone;
#ifdef SKIPLIST_TINY
        memset(rules, 0xdd, board_options_size(rules)); /* who still reads them is to notice */
#endif
        memory_free(rules);
    }
}

static void board_options_count_user(struct rules_set *set, struct rules *rules, int change) {
    uint64_t difference = (uint64_t)(int64_t)change;
    rules->use_count += difference;
    set->use_count += difference;
    set->league_count += rules->league.room > 0 ? difference : 0;
}

const struct rules *rules_hold(struct rules_set *set, const struct rules *like) {
    uint64_t hash = board_options_hash(like, set->hash_seed);
    struct rules *rules = board_options_find_equal(set, like, hash);
    if (rules == NULL) {
        rules = board_options_add(set, like, hash);
    }
    if (rules != NULL) {
        board_options_count_user(set, rules, 1);
    }
    return rules;
}

void rules_hold_again(struct rules_set *set, const struct rules *rules) {
    board_options_count_user(set, *board_options_list_at(set, rules->index), 1);
}

void rules_release(struct rules_set *set, const struct rules *rules) {
    if (rules == NULL) {
        return;
    }
    struct rules *own = *board_options_list_at(set, rules->index);
    CHECK(own == rules);
    CHECK(own->use_count > 0);
    board_options_count_user(set, own, -1);
    if (own->use_count == 0) {
        board_options_take_out(set, own);
    }
}

bool rules_are_in(const struct rules_set *set, const struct rules *rules) {
    return rules->index < set->count && *board_options_list_at(set, rules->index) == rules;
}

/* ---- validation ---- */

/* Is the period a calendar period? In a zone the calendar may have changed since: only ends are
 * corrected. START may be elsewhere: a board that had members got its PERIOD later. */
static bool board_options_is_period_right(const struct rules *rules) {
    struct rules same;
    if (!period_is_valid(&rules->period) ||
        (rules->archives_max > PERIOD_COUNT_MAX && rules->archives_max != RULES_ARCHIVES_ALL)) {
        return false;
    }
    rules_copy(rules, &same);
    if (rules->period.zone == NULL) {
        rules_enter_period(&same, rules->period_start_ms);
    }
    return rules->period_start_ms < rules->period_end_ms && rules_equal(rules, &same);
}

/* Has it a number of microseconds? */
static bool board_options_is_time(int64_t time_ms) {
    return time_ms >= 0 && time_ms <= INT64_MAX / 1000;
}

/* Do the guards say what there is, and is nothing there without what it needs? */
static bool board_options_are_right(const struct rules *rules) {
    for (size_t i = 0; i < BOARD_OPTION_COUNT; i++) {
        const struct board_option *option = &board_options[i];
        bool may_stand =
            option->code == 0 || option->is_of_state || board_option_applies(option, rules);
        if (!may_stand && board_option_get(option, rules, NULL) != 0) {
            return false;
        }
    }
    return rules->guards == board_options_guards(rules) && board_options_is_time(rules->opens_ms) &&
           board_options_is_time(rules->closes_ms) && (rules->cap == 0 || rules->limit == 0) &&
           rules->stale_ms >= 0 && rules->stale_ms <= RULES_STALE_MAX_MS &&
           (rules->stale_ms == 0 || rules->layout.time.bits > 0);
}

/* Has the board of a league its layout, and nothing that removes members? */
static bool board_options_is_league_right(const struct rules *rules) {
    const struct layout *layout = &rules->layout;
    return rules->league.room == 0 ||
           (rules->league.tiers > 0 && layout->bits_total == 64 && layout->field_count == 3 &&
            layout->fields[0].bits == 8 && layout->fields[1].bits == 24 &&
            rules->period.unit == PERIOD_NONE && rules->cap == 0);
}

/* Has a board with a window what it needs and nothing that would change its members otherwise, and
 * is a share of one period? */
static bool board_options_is_window_right(const struct rules *rules) {
    const struct rules_window *window = &rules->window;
    if (window->count == 0) {
        return !window->is_share || rules->period.unit == PERIOD_NONE;
    }
    return window->count >= 2 && window->count <= RULES_WINDOW_MAX && !window->is_share &&
           rules->archives_max >= window->count && board_options_find_alone(rules) == NULL &&
           !layout_field_decays(&rules->layout.fields[0]) && rules->league.room == 0 &&
           !rules->is_archive;
}

bool rules_validate(const struct rules *rules, const char **reason) {
    if (!layout_validate(&rules->layout, reason)) {
        return false;
    }
    if (!board_options_are_right(rules) || !board_options_is_league_right(rules) ||
        !board_options_is_window_right(rules)) {
        return check_passed("rules: their options contradict each other", reason);
    }
    return rules->period.unit == PERIOD_NONE || board_options_is_period_right(rules) ||
           check_passed(
               "rules: their period is none of the calendar's, or they keep too many archives",
               reason);
}

static const char *board_options_check(const struct rules_set *set, uint32_t index) {
    const struct rules *rules = *board_options_list_at(set, index);
    const char *reason;
    if (rules->index != index || rules->use_count == 0) {
        return "rules: they do not stand where they think, or have no user";
    }
    if (rules->hash != board_options_hash(rules, set->hash_seed)) {
        return "rules: they have changed";
    }
    if (board_options_find_equal(set, rules, rules->hash) != rules) {
        return "rules: they are not found, or not the only ones of their kind";
    }
    return rules_validate(rules, &reason) ? NULL : reason;
}

bool rules_set_validate(const struct rules_set *set, const char **reason) {
    const char *wrong = NULL;
    uint64_t use_count = 0;
    uint64_t league_count = 0;
    uint32_t stale_count = 0;
    for (uint32_t i = 0; i < set->count && wrong == NULL; i++) {
        const struct rules *rules = *board_options_list_at(set, i);
        wrong = board_options_check(set, i);
        league_count += rules->league.room > 0 ? rules->use_count : 0;
        stale_count += rules->stale_ms > 0;
        use_count += rules->use_count;
    }
    if (wrong == NULL && (use_count != set->use_count || league_count != set->league_count ||
                          stale_count != set->stale_count)) {
        wrong = "rules: their users, or those of leagues, are not counted right";
    }
    if (wrong == NULL && map_count(&set->map) != set->count) {
        wrong = "rules: the map holds more or less than the rules";
    }
    return check_passed(wrong, reason) && map_validate(&set->map, reason);
}
