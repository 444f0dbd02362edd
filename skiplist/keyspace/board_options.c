/* The rows of options; and the set of options in use, which is structured like a database: a dense list, and a map
 * from hashes to indexes in it. A client may create a million boards with a million different caps, so no operation takes
 * time that grows with the set.
 *
 * Invariant: options->index is the index in the list, the map holds (hash, index) for every element
 * and nothing else, no two are equal, and each has a reference count above 0. */
#include "skiplist/keyspace/board_options.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "codec/decimal.h"
#include "codec/memory.h"

_Static_assert(sizeof(struct period) == 24 && sizeof(struct board_window) == 4 &&
                   sizeof(struct board_league) == 8 && sizeof(struct hold_rule) == 24 &&
                   offsetof(struct board_options, index) == 112,
               "no hidden bytes: board_options_equal and board_options_hash see them all");

/* ---- the rows ---- */

#define BOARD_OPTION_ROW(name, member, line, create, alter, rooms, ...)                            \
    [BOARD_OPTION_##name] = {.at = offsetof(struct board_options, member),                         \
                             .size = sizeof(((struct board_options *)NULL)->member),               \
                             __VA_ARGS__},

#define BOARD_STATE_ROW(name, member, line, create, alter, ...)                                    \
    [BOARD_OPTION_##name] = {.is_of_state = true,                                                  \
                             .at = offsetof(struct board_state, member),                           \
                             .size = sizeof(((struct board_state *)NULL)->member),                 \
                             __VA_ARGS__},

/* NOLINTNEXTLINE(bugprone-sizeof-expression): a zone is a pointer, whose own size is meant */
const struct board_option board_options[BOARD_OPTION_COUNT] = {BOARD_OPTIONS(BOARD_OPTION_ROW)
                                                                   BOARD_STATES(BOARD_STATE_ROW)};

int64_t board_options_get(const struct board_option *option, const struct board_options *options,
                          const struct board_state *state) {
    static const struct board_state none;
    const void *in = option->is_of_state ? (const void *)(state != NULL ? state : &none) : options;
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

void board_options_set(const struct board_option *option, struct board_options *options,
                       struct board_state *state, int64_t value) {
    void *in = option->is_of_state ? (void *)state : options;
    if (in == NULL) {
        return;
    }
    char *at = (char *)in + option->at;
    if (option->bit != 0) {
        *at = (char)(value != 0 ? *at | option->bit : *at & ~option->bit);
    } else {
        memcpy(at, &value, option->size);
    }
    if (option->form == BOARD_FORM_ZONE && options != NULL) {
        options->period.zone = NULL;
    }
}

bool board_options_applies(const struct board_option *option, const struct board_options *options) {
    switch ((enum board_option_needs)option->needs) {
    case BOARD_NEEDS_PERIOD:
        return options->period.unit != PERIOD_NONE;
    case BOARD_NEEDS_WEEK:
        return options->period.unit == PERIOD_WEEK;
    case BOARD_NEEDS_EVERY:
        return options->period.every > 1;
    case BOARD_NEEDS_WINDOW:
        return options->window.count > 0;
    case BOARD_NEEDS_SHARE:
        return options->window.is_share;
    case BOARD_NEEDS_LEAGUE:
        return options->league.room > 0;
    case BOARD_NEEDS_END:
        return options->is_archive;
    case BOARD_NEEDS_NOTHING:
        break;
    }
    return true;
}

int64_t board_options_usual(const struct board_option *option,
                            const struct board_options *options) {
    return option->usual != 0 && board_options_applies(option, options) ? option->usual : 0;
}

bool board_options_may_be(const struct board_option *option, int64_t value) {
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
    case BOARD_FORM_FRACTION:
        return value == BOARD_FRACTION_IS_NOTHING ||
               (value >= BOARD_FRACTION_MIN_MS && value <= BOARD_FRACTION_MAX_MS);
    case BOARD_FORM_TIME:
    case BOARD_FORM_AGE:
    case BOARD_FORM_UNIT:
    case BOARD_FORM_WEEKDAY:
    case BOARD_FORM_DATE:
    case BOARD_FORM_ZONE:
    case BOARD_FORM_POINTER:
    case BOARD_FORM_RATING:
    case BOARD_FORM_LIMITS:
    case BOARD_FORM_HOLD:
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

/* What the layout cannot do of PACKED or SCORE+FRACTION. */
static const char *board_options_refuse_doubles(const struct board_options *options) {
    const struct layout *layout = &options->layout;
    const struct layout_field *lead = &layout->fields[0];
    bool has_doubles = false;
    for (unsigned i = 0; i < layout->field_count; i++) {
        has_doubles |= layout->fields[i].is_double;
    }
    if (options->is_packed && options->fraction_ms != 0) {
        return "PACKED and SCORE+FRACTION exclude each other";
    }
    if (options->is_packed && (has_doubles || layout_field_decays(lead))) {
        return "PACKED needs a layout without DOUBLE and DECAY: packed keys have whole numbers";
    }
    if (options->fraction_ms != 0 && (lead->is_ascending || layout_field_decays(lead))) {
        return "SCORE+FRACTION needs a first field without ASC and DECAY: the larger double ranks "
               "better";
    }
    return options->fraction_ms > BOARD_FRACTION_IS_NOTHING &&
                   (layout->time.bits == 0 || layout->time.is_latest)
               ? "SCORE+FRACTION with a time needs a layout with a TIME, without LATEST"
               : NULL;
}

/* What the layout and the other options have against RATING. */
static const char *board_options_refuse_rating(const struct board_options *options) {
    const struct layout *layout = &options->layout;
    const struct layout_field *lead = &layout->fields[0];
    const struct rating_rule *rule = &options->rating;
    uint64_t ordinal;
    if (!options->has_rating) {
        return NULL;
    }
    if (layout->field_count != 1 || lead->is_ascending || lead->is_double ||
        layout_field_decays(lead)) {
        return "RATING needs a layout of one field, without ASC, DOUBLE and DECAY: the rating "
               "ranks";
    }
    if (options->is_packed || options->fraction_ms != 0 || options->keeps_best ||
        options->cap > 0 || options->limit > 0 || options->league.room > 0) {
        return "RATING excludes CAP, LIMIT, KEEP BEST, PACKED, SCORE+FRACTION and leagues: all "
               "players are rated, and ratings rise and fall";
    }
    if (rule->of[RATING_RESET] > 0 && !options->is_archive && !options->copies) {
        return "RATING ... RESET needs a PERIOD with COPY: the board goes on then";
    }
    return layout_field_ordinal(lead, decimal_from_i64(rating_ranks_least(rule, lead->scale)),
                                &ordinal) != LAYOUT_OK ||
                   layout_field_ordinal(lead,
                                        decimal_from_i64(rating_ranks_most(rule, lead->scale)),
                                        &ordinal) != LAYOUT_OK
               ? "RATING needs a field with room for all ratings from FLOOR to CEILING: "
                 "FIELD rating 32 SIGNED has it"
               : NULL;
}

const char *board_options_find_conflict(const struct board_options *options) {
    const struct layout *layout = &options->layout;
    const char *found = NULL;
    if (options->opens_ms > 0 && options->closes_ms > 0 &&
        options->opens_ms >= options->closes_ms) {
        return "OPENS must be before CLOSES";
    }
    if (options->period.unit != PERIOD_NONE && options->settles && options->archives_max == 0) {
        return "SETTLE YES requires ARCHIVE 1 or more: without an archive there is nothing to "
               "settle";
    }
    if ((found = board_options_refuse_doubles(options)) != NULL ||
        (found = board_options_refuse_rating(options)) != NULL) {
        return found;
    }
    if (options->has_limits && options->has_rating) {
        return "LIMITS and RATING exclude each other: matches rate players, who send no results";
    }
    if (options->has_limits && limits_has(&options->limits, LIMIT_MINTIME) &&
        (options->guards & BOARD_TICKETS) == 0) {
        return "LIMITS ... MINTIME needs TICKETS YES: a ticket says when the run began";
    }
    if (options->has_limits && options->limits.time_ms[LIMIT_MINTIME] >= INT64_C(86400) * 1000) {
        return "LIMITS ... MINTIME must be less than a day, for which a ticket holds at the most";
    }
    if (options->has_limits &&
        (found = limits_refuse(&options->limits, &layout->fields[0])) != NULL) {
        return found;
    }
    if (options->has_hold && (options->has_rating || options->league.room > 0)) {
        return "HOLD excludes RATING and leagues: results are held that members send to a board";
    }
    if (options->has_hold && (found = board_options_hold_refuse(&options->hold, options->has_limits,
                                                                &layout->fields[0])) != NULL) {
        return found;
    }
    if (options->stale_ms > 0 && layout->time.bits == 0) {
        return "STALE requires a layout with a TIME";
    }
    if (options->league.room > 0 && (options->cap > 0 || options->period.unit != PERIOD_NONE)) {
        return "a league takes no CAP and no PERIOD: its rooms have them";
    }
    return options->window.count > 0 && layout_field_decays(&layout->fields[0])
               ? "WINDOW and DECAY exclude each other: what members got either leaves with its "
                 "period, or fades"
               : NULL;
}

const struct board_option *board_options_find_alone(const struct board_options *options) {
    const struct board_option *found = NULL;
    for (size_t i = 0; i < BOARD_OPTION_COUNT && found == NULL; i++) {
        const struct board_option *option = &board_options[i];
        found =
            option->alone != NULL && board_options_get(option, options, NULL) != 0 ? option : NULL;
    }
    return found;
}

/* Flat: each result in a league asks. Rows that rooms can have are gone when it is compiled, and of the others the tests
 * of their members are left. */
#define BOARD_OPTION_REFUSAL(name, ...)                                                            \
    if (board_options[BOARD_OPTION_##name].not_in_rooms != NULL &&                                 \
        board_options_get(&board_options[BOARD_OPTION_##name], options, NULL) != 0) {              \
        return board_options[BOARD_OPTION_##name].not_in_rooms;                                    \
    }
__attribute__((flatten)) const char *
board_options_refuse_rooms(const struct board_options *options) {
    BOARD_OPTIONS(BOARD_OPTION_REFUSAL)
    return NULL;
}

uint8_t board_options_guards(const struct board_options *options) {
    return (uint8_t)((options->guards & (BOARD_FROZEN | BOARD_TICKETS)) |
                     (options->opens_ms != 0 ? BOARD_OPENS : 0) |
                     (options->closes_ms != 0 ? BOARD_CLOSES : 0) |
                     (options->league.room > 0 ? BOARD_LEAGUE : 0) |
                     (options->window.count > 0 ? BOARD_WINDOW : 0) |
                     (options->has_rating ? BOARD_RATED : 0));
}

/* ---- options ---- */

/* Bytes of options up to the end of the last field. */
static size_t board_options_size(const struct board_options *options) {
    return offsetof(struct board_options, layout.fields) +
           options->layout.field_count * sizeof(struct layout_field);
}

void board_options_copy(const struct board_options *options, struct board_options *copy) {
    memcpy(copy, options, board_options_size(options));
}

bool board_options_equal(const struct board_options *a, const struct board_options *b) {
    const struct rating_rule *rating = &a->rating;
    const struct rating_rule *other = &b->rating;
    return memcmp(a, b, offsetof(struct board_options, index)) == 0 &&
           (!a->has_rating || (rating->system == other->system &&
                               memcmp(rating->of, other->of, sizeof rating->of) == 0)) &&
           (!a->has_limits || limits_equal(&a->limits, &b->limits)) &&
           (!a->has_hold || memcmp(&a->hold, &b->hold, sizeof a->hold) == 0) &&
           layout_equal(&a->layout, &b->layout);
}

bool board_options_keys_are_akin(const struct board_options *a, const struct board_options *b) {
    struct board_options akin;
    board_options_copy(a, &akin);
    akin.layout.time.start_us = b->layout.time.start_us;
    akin.layout.time.is_given_by_end = b->layout.time.is_given_by_end;
    return layout_keys_equal(&akin.layout, &b->layout);
}

bool board_options_are_akin(const struct board_options *a, const struct board_options *b) {
    return board_options_keys_are_akin(a, b) && tag_set_equal(&a->layout.tags, &b->layout.tags);
}

/* ---- periods ---- */

void board_options_enter_period(struct board_options *options, int64_t now_ms) {
    options->period_start_ms = period_start(&options->period, now_ms);
    options->period_end_ms = period_start_after(&options->period, now_ms, 1);
}

void board_options_begin_period(struct board_options *options, int64_t now_ms) {
    board_options_enter_period(options, now_ms);
    if (options->window.count == 0 && options->layout.time.bits > 0) {
        layout_set_start(&options->layout, options->period_start_ms * 1000);
    }
}

void board_options_slide(struct board_options *options, struct board_state *state, int64_t now_ms) {
    int64_t start_ms = options->period_start_ms;
    board_options_enter_period(options, now_ms);
    options->period_start_ms =
        options->period_start_ms > start_ms ? options->period_start_ms : start_ms;
    if (board_options_window_behind(options, state, options->window.count) ==
        options->window.count) {
        state->from_ms = options->period_start_ms;
        for (uint32_t i = 1; i < options->window.count; i++) {
            state->from_ms = period_start(&options->period, state->from_ms - 1);
        }
        state->left = 0;
        state->is_anew = true;
    }
}

uint32_t board_options_window_behind(const struct board_options *options,
                                     const struct board_state *state, uint32_t most) {
    uint32_t count = options->window.count;
    uint32_t behind = state->is_anew;
    while (count > 0 && behind < most &&
           period_start_after(&options->period, state->from_ms, count + behind - state->is_anew) <=
               options->period_start_ms) {
        behind++;
    }
    return behind;
}

void board_options_without_window(const struct board_options *options, struct board_options *copy) {
    board_options_copy(options, copy);
    copy->window = (struct board_window){.count = 0};
    copy->guards = board_options_guards(copy);
    if (options->window.count > 0) {
        copy->period = (struct period){.unit = PERIOD_NONE};
        copy->archives_max = 0;
        copy->period_start_ms = 0;
        copy->period_end_ms = 0;
        copy->settles = false;
    }
}

void board_options_begin_share(const struct board_options *options, struct board_options *share) {
    board_options_end_period(options, share);
    share->is_archive = false;
    share->guards = (uint8_t)(BOARD_FROZEN | (share->guards & BOARD_TICKETS));
    share->keeps_best = options->keeps_best || options->window.is_best;
    share->window = (struct board_window){.is_share = true};
}

void board_options_renew_period(struct board_options *options) {
    const struct zone *zone = options->period.zone;
    if (zone != NULL && !zone_is_missing(zone)) {
        options->period_end_ms =
            period_nearest_end(&options->period, options->period_end_ms, options->period_start_ms);
    }
}

enum board_refusal board_options_find_refusal(const struct board_options *options,
                                              enum board_write write, int64_t now_ms) {
    uint8_t guards = options->guards;
    if ((guards & BOARD_LEAGUE) != 0 && write != BOARD_WRITE_LEAGUE) {
        return BOARD_REFUSE_LEAGUE;
    }
    if ((guards & BOARD_RATED) != 0 && write < BOARD_WRITE_RATED) {
        return BOARD_REFUSE_RATED;
    }
    if ((guards & BOARD_FROZEN) != 0) {
        return options->window.is_share ? BOARD_REFUSE_SHARE : BOARD_REFUSE_FROZEN;
    }
    if ((guards & BOARD_OPENS) != 0 && now_ms < options->opens_ms) {
        return BOARD_REFUSE_BEFORE;
    }
    if ((guards & BOARD_CLOSES) != 0 && now_ms >= options->closes_ms) {
        return BOARD_REFUSE_AFTER;
    }
    return (guards & BOARD_WINDOW) != 0 && write == BOARD_WRITE_WHOLE ? BOARD_REFUSE_WINDOW
                                                                      : BOARD_TAKE;
}

void board_options_end_period(const struct board_options *options, struct board_options *archive) {
    bool is_frozen = options->period.unit != PERIOD_NONE ? !options->archives_are_writable
                                                         : (options->guards & BOARD_FROZEN) != 0;
    board_options_copy(options, archive);
    for (size_t i = 0; i < BOARD_OPTION_COUNT; i++) {
        if (!board_options[i].is_kept) {
            board_options_set(&board_options[i], archive, NULL, 0);
        }
    }
    archive->guards = (uint8_t)((archive->guards & BOARD_TICKETS) | (is_frozen ? BOARD_FROZEN : 0));
    archive->guards = board_options_guards(archive);
    archive->is_archive = true;
}

int64_t board_options_archive_end_ms(const struct board_options *options) {
    if (options->archives_max == BOARD_ARCHIVES_ALL) {
        return INT64_MAX;
    }
    return period_start_after(&options->period, options->period_start_ms,
                              options->archives_max + 1);
}

/* ---- state ---- */

_Static_assert(sizeof(struct board_state) == 32, "no hidden bytes: states are compared as bytes");

struct board_state board_options_begin_state(const struct board_options *options) {
    return (struct board_state){.from_ms =
                                    options->window.count > 0 ? options->period_start_ms : 0};
}

struct board_state board_options_keep_state(const struct board_options *options,
                                            const struct board_state *state) {
    struct board_state kept = *state;
    for (size_t i = 0; i < BOARD_OPTION_COUNT; i++) {
        const struct board_option *option = &board_options[i];
        if (option->is_of_state && !option->is_other && !board_options_applies(option, options) &&
            !(i == BOARD_OPTION_COUNTS && options->window.is_share)) {
            board_options_set(option, NULL, &kept, 0);
        }
    }
    return kept;
}

bool board_options_take_state(const struct board_options *options,
                              const struct board_state *state) {
    struct board_state kept = board_options_keep_state(options, state);
    /* A period can begin before 1970, too. */
    return memcmp(&kept, state, sizeof kept) == 0 && state->from_ms >= -PERIOD_TIME_MAX &&
           state->from_ms <= PERIOD_TIME_MAX && state->settled_expire_ms >= 0 &&
           (state->settled_expire_ms == 0 || board_options_are_unsettled(options, state)) &&
           (options->window.count == 0 || state->from_ms <= options->period_start_ms);
}

/* ---- hashing ---- */

/* Hash of everything board_options_equal compares. */
static uint64_t board_options_hash(const struct board_options *options, uint64_t seed) {
    const struct layout *layout = &options->layout;
    const struct layout_time *time = &layout->time;
    uint64_t hash = XXH3_64bits_withSeed(options, offsetof(struct board_options, index), seed);
    for (unsigned i = 0; i < layout->field_count; i++) {
        const struct layout_field *field = &layout->fields[i];
        const uint64_t words[] = {
            XXH3_64bits_withSeed(field->name, strlen(field->name), hash),
            (uint64_t)field->bits << 24 | (uint64_t)field->scale << 16 |
                (uint64_t)field->is_signed << 8 | (uint64_t)field->is_double << 1 |
                (uint64_t)field->is_ascending,
            (uint64_t)field->decay.count << 8 | field->decay.unit,
        };
        hash = XXH3_64bits_withSeed(words, sizeof(words), hash);
    }
    for (unsigned i = 0; i < layout->tags.count; i++) {
        const struct tag *tag = &layout->tags.tags[i];
        hash = XXH3_64bits_withSeed(tag->name, strlen(tag->name), hash + tag->bits);
    }
    if (options->has_rating) {
        hash = XXH3_64bits_withSeed(options->rating.of, sizeof options->rating.of, hash);
    }
    if (options->has_limits) {
        const struct limits_rule *limits = &options->limits;
        hash = XXH3_64bits_withSeed(limits->of, sizeof limits->of, hash + limits->has);
        hash = XXH3_64bits_withSeed(limits->time_ms, sizeof limits->time_ms,
                                    hash + limits->is_for_all);
        hash = XXH3_64bits_withSeed(limits->scale, sizeof limits->scale, hash);
    }
    if (options->has_hold) {
        const struct hold_rule *hold = &options->hold;
        const uint64_t words[] = {(uint64_t)hold->over, (uint64_t)hold->auto_ms, hold->top,
                                  (uint64_t)hold->scale << 3 | (uint64_t)hold->has_over << 2 |
                                      (uint64_t)hold->takes_limits << 1 |
                                      (uint64_t)hold->is_for_all};
        hash = XXH3_64bits_withSeed(words, sizeof words, hash);
    }
    const uint64_t words[] = {
        hash,
        (uint64_t)time->start_us,
        (uint64_t)time->bits << 32 | (uint64_t)time->unit << 8 | (uint64_t)time->is_latest << 1 |
            (uint64_t)time->is_given_by_end,
    };
    return XXH3_64bits_withSeed(words, sizeof(words), seed);
}

/* ---- the set ---- */

static struct board_options **board_options_list_at(const struct board_options_set *set,
                                                    uint32_t index) {
    return map_pages_at(&set->list, index * (uint64_t)sizeof(struct board_options *));
}

/* Callback of the map: the hash of the options at one index. */
static uint32_t board_options_set_hashes(const void *owner, uint32_t id, uint64_t *hashes) {
    const struct board_options_set *set = owner;
    if (id >= set->count) {
        return 0;
    }
    hashes[0] = (*board_options_list_at(set, id))->hash;
    return 1;
}

void board_options_set_init(struct board_options_set *set, uint64_t hash_seed) {
    *set = (struct board_options_set){.hash_seed = hash_seed};
    map_init(&set->map, board_options_set_hashes, set);
}

void board_options_set_deinit(struct board_options_set *set) {
    CHECK(set->count == 0);
    CHECK(set->use_count == 0);
    board_options_free_gone(set);
    map_deinit(&set->map);
    map_pages_deinit(&set->list);
}

static struct board_options *board_options_find_equal(const struct board_options_set *set,
                                                      const struct board_options *like,
                                                      uint64_t hash) {
    struct map_find find;
    uint32_t index;
    map_find(&set->map, hash, &find);
    while (map_find_next(&find, &index)) {
        struct board_options *options =
            index < set->count ? *board_options_list_at(set, index) : NULL;
        if (options != NULL && options->hash == hash && board_options_equal(options, like)) {
            return options;
        }
    }
    return NULL;
}

/* NULL: no memory. */
static struct board_options *board_options_add(struct board_options_set *set,
                                               const struct board_options *like, uint64_t hash) {
    uint64_t count = set->count + (uint64_t)1;
    if (count >= MAP_ID_END ||
        !map_pages_reserve(&set->list, count * sizeof(struct board_options *)) ||
        !map_reserve(&set->map, 1, (uint32_t)count)) {
        return NULL;
    }
    struct board_options *options = memory_allocate_lasting(board_options_size(like));
    if (options == NULL) {
        return NULL;
    }
    board_options_copy(like, options);
    options->hash = hash;
    options->use_count = 0;
    options->index = set->count++;
    set->shadow_count += options->has_shadows;
    *board_options_list_at(set, options->index) = options;
    map_put(&set->map, hash, options->index);
    return options;
}

void board_options_free_gone(struct board_options_set *set) {
    while (set->gone != NULL) {
        struct board_options *options = set->gone;
        set->gone = options->next_gone;
#ifdef SKIPLIST_TINY
        memset(options, 0xdd, board_options_size(options)); /* who still reads them is to notice */
#endif
        memory_free(options);
    }
}

static void board_options_count_user(struct board_options_set *set, struct board_options *options,
                                     int change) {
    uint64_t difference = (uint64_t)(int64_t)change;
    options->use_count += difference;
    set->use_count += difference;
    set->league_count += options->league.room > 0 ? difference : 0;
}

const struct board_options *board_options_hold(struct board_options_set *set,
                                               const struct board_options *like) {
    uint64_t hash = board_options_hash(like, set->hash_seed);
    struct board_options *options = board_options_find_equal(set, like, hash);
    if (options == NULL) {
        options = board_options_add(set, like, hash);
    }
    if (options != NULL) {
        board_options_count_user(set, options, 1);
    }
    return options;
}

void board_options_hold_again(struct board_options_set *set, const struct board_options *options) {
    board_options_count_user(set, *board_options_list_at(set, options->index), 1);
}

void board_options_release(struct board_options_set *set, const struct board_options *options) {
    if (options == NULL) {
        return;
    }
    struct board_options *own = *board_options_list_at(set, options->index);
    CHECK(own == options);
    CHECK(own->use_count > 0);
    board_options_count_user(set, own, -1);
    if (own->use_count == 0) {
        /* Remove options from the set; the last element of the list takes its index. */
        map_remove(&set->map, own->hash, own->index);
        uint32_t last_index = --set->count;
        set->shadow_count -= own->has_shadows;
        struct board_options *last = *board_options_list_at(set, last_index);
        if (last != own) {
            map_replace(&set->map, last->hash, last_index, own->index);
            *board_options_list_at(set, own->index) = last;
            last->index = own->index;
        }
        (void)map_step(&set->map, set->count);
        map_pages_trim(&set->list, set->count * (uint64_t)sizeof(struct board_options *));
        own->next_gone = set->gone;
        set->gone = own;
    }
}

bool board_options_are_in(const struct board_options_set *set,
                          const struct board_options *options) {
    return options->index < set->count && *board_options_list_at(set, options->index) == options;
}

/* ---- validation ---- */

/* Is the period a calendar period? In a zone the calendar may have changed since: only ends are
 * corrected. START may be elsewhere: a board that had members got its PERIOD later. */
static bool board_options_is_period_right(const struct board_options *options) {
    struct board_options same;
    if (!period_is_valid(&options->period) ||
        (options->archives_max > PERIOD_COUNT_MAX && options->archives_max != BOARD_ARCHIVES_ALL)) {
        return false;
    }
    board_options_copy(options, &same);
    if (options->period.zone == NULL) {
        board_options_enter_period(&same, options->period_start_ms);
    }
    return options->period_start_ms < options->period_end_ms && board_options_equal(options, &same);
}

/* Has it a number of microseconds? */
static bool board_options_is_time(int64_t time_ms) {
    return time_ms >= 0 && time_ms <= INT64_MAX / 1000;
}

/* Do they agree with each other? */
static bool board_options_are_right(const struct board_options *options) {
    const struct layout *layout = &options->layout;
    const struct board_window *window = &options->window;
    /* Nothing is there without what it needs. */
    for (size_t i = 0; i < BOARD_OPTION_COUNT; i++) {
        const struct board_option *option = &board_options[i];
        bool may_stand =
            option->code == 0 || option->is_of_state || board_options_applies(option, options);
        if (!may_stand && board_options_get(option, options, NULL) != 0) {
            return false;
        }
    }
    /* The board of a league has its layout, and nothing that removes members. */
    if (options->league.room > 0 &&
        (options->league.tiers == 0 || layout->bits_total != 64 || layout->field_count != 3 ||
         layout->fields[0].bits != 8 || layout->fields[1].bits != 24)) {
        return false;
    }
    /* One with a window has what it needs and nothing that would change its members otherwise. */
    if (window->count > 0 &&
        (window->count < 2 || window->count > BOARD_WINDOW_MAX || window->is_share ||
         options->archives_max < window->count || board_options_find_alone(options) != NULL ||
         options->league.room > 0 || options->is_archive)) {
        return false;
    }
    enum rating_parameter wrong;
    if (options->has_rating && !rating_rule_check(&options->rating, &wrong)) {
        return false;
    }
    return (!window->is_share || options->period.unit == PERIOD_NONE) &&
           options->guards == board_options_guards(options) &&
           (!options->has_limits ||
            (options->limits.has != 0 && limits_validate(&options->limits))) &&
           (!options->has_hold ||
            (board_options_hold_is_right(&options->hold) && window->count == 0)) &&
           board_options_is_time(options->opens_ms) && board_options_is_time(options->closes_ms) &&
           (options->cap == 0 || options->limit == 0) && options->stale_ms >= 0 &&
           options->stale_ms <= BOARD_STALE_MAX_MS && board_options_find_conflict(options) == NULL;
}

bool board_options_validate(const struct board_options *options, const char **reason) {
    if (!layout_validate(&options->layout, reason)) {
        return false;
    }
    if (!board_options_are_right(options)) {
        return check_passed("options: their options contradict each other", reason);
    }
    return options->period.unit == PERIOD_NONE || board_options_is_period_right(options) ||
           check_passed(
               "options: their period is not in the calendar, or they keep too many archives",
               reason);
}

bool board_options_set_validate(const struct board_options_set *set, const char **reason) {
    const char *wrong = NULL;
    uint64_t use_count = 0;
    uint64_t league_count = 0;
    uint32_t shadow_count = 0;
    for (uint32_t i = 0; i < set->count && wrong == NULL; i++) {
        const struct board_options *options = *board_options_list_at(set, i);
        if (options->index != i || options->use_count == 0) {
            wrong = "options: they do not stand where they think, or have no user";
        } else if (options->hash != board_options_hash(options, set->hash_seed)) {
            wrong = "options: they have changed";
        } else if (board_options_find_equal(set, options, options->hash) != options) {
            wrong = "options: they are not found, or not the only ones of their kind";
        } else if (!board_options_validate(options, reason)) {
            return false;
        }
        league_count += options->league.room > 0 ? options->use_count : 0;
        shadow_count += options->has_shadows;
        use_count += options->use_count;
    }
    if (wrong == NULL && (use_count != set->use_count || league_count != set->league_count ||
                          shadow_count != set->shadow_count)) {
        wrong = "options: their users, or those of leagues, are not counted right";
    }
    if (wrong == NULL && map_count(&set->map) != set->count) {
        wrong = "options: the map holds more or less than there are";
    }
    return check_passed(wrong, reason) && map_validate(&set->map, reason);
}

/* ---- HOLD ---- */

bool board_options_hold_is_right(const struct hold_rule *rule) {
    enum { MS_OF_HOUR = 3600000 };
    return (rule->has_over ? rule->over > INT64_MIN && rule->scale <= DECIMAL_SCALE_MAX
                           : rule->over == 0 && rule->scale == 0) &&
           rule->top <= HOLD_TOP_MAX && rule->auto_ms >= 0 && rule->auto_ms <= HOLD_AUTO_MS_MAX &&
           rule->auto_ms % MS_OF_HOUR == 0 &&
           (rule->has_over || rule->top > 0 || rule->takes_limits);
}

const char *board_options_hold_refuse(const struct hold_rule *rule, bool has_limits,
                                      const struct layout_field *lead) {
    return lead->is_double || layout_field_decays(lead)
               ? "HOLD needs a first field without DOUBLE and DECAY"
           : rule->scale > lead->scale
               ? "HOLD OVER has a value with more decimals than the board's first field keeps"
           : rule->takes_limits && !has_limits ? "HOLD LIMITS needs a board with LIMITS"
                                               : NULL;
}

bool board_options_hold_is_over(const struct hold_rule *rule, const struct layout_field *lead,
                                uint64_t ordinal) {
    wide over = rule->over;
    wide value = decimal_to_wide(layout_field_decimal(lead, ordinal));
    for (unsigned scale = rule->scale; scale < lead->scale; scale++) {
        over *= 10;
    }
    return rule->has_over && (lead->is_ascending ? value < over : value > over);
}
