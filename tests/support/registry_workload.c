/* See registry_workload.h. */
#include "tests/support/registry_workload.h"
#include "codec/memory.h"
#include "skiplist/keyspace/registry.h"
#include "tests/support/layout_text.h"
#include "tests/support/stored_text.h"
#include "tests/support/test.h"

enum {
    MEMBERS = 400, /* different ones */
    KEYS = 40,     /* different packed keys: ties are many */
};

/* How a new board behaves is said by the first letter of its name. */
enum kind { PLAIN, LATEST, TIMELESS, CAPPED, DAYS, WEEKS, MONTHS, RATED, SEASONS, KINDS };
static const char letters[] = "pltcdwmrs";
static struct board_options kinds[KINDS];

const struct board_options *workload_options(char letter) {
    const char *at = strchr(letters, letter);
    return &kinds[at != NULL ? at - letters : PLAIN];
}

static const struct board_options *options_for(void *context, struct bytes key, uint32_t choice) {
    (void)context;
    return choice == 0 ? workload_options(key.at[0]) : NULL;
}

static void make_kinds(void) {
    static const char *const layouts[KINDS] = {"FIELD a 30 TIME 30 S TAG country 3 TAG class 2",
                                               "FIELD a 20 TIME 30 MS LATEST TAG clan 2",
                                               "FIELD a 64 SIGNED",
                                               "FIELD a 33 TIME 31 S TAG class 1",
                                               "FIELD a 30 TIME 27 MS TAG clan 9",
                                               "FIELD a 60 SCALE 2 DECAY 6 H",
                                               "FIELD a 30 TIME 22 S LATEST",
                                               "FIELD a 33 SIGNED SCALE 2 TIME 31 S TAG clan 2",
                                               "FIELD a 30 SIGNED TIME 30 S LATEST"};
    char error[LAYOUT_ERROR_MAX];
    memset(kinds, 0, sizeof kinds);
    for (int i = 0; i < KINDS; i++) {
        assert_int_equal(layout_parse(bytes_from_text(layouts[i]), &kinds[i].layout, error),
                         LAYOUT_OK);
    }
    kinds[CAPPED].cap = 30;
    kinds[CAPPED].keeps_best = true;
    kinds[DAYS].period.unit = PERIOD_DAY;
    kinds[DAYS].period.every = 1;
    kinds[DAYS].period.zone_minutes = 480;
    kinds[DAYS].archives_max = BOARD_ARCHIVES_ALL;
    kinds[WEEKS].period.unit = PERIOD_WEEK;
    kinds[WEEKS].period.every = 1;
    kinds[WEEKS].archives_max = 2;
    kinds[MONTHS].period.unit = PERIOD_MONTH;
    kinds[MONTHS].period.every = 1;
    kinds[MONTHS].period.zone_minutes = -210;
    kinds[MONTHS].archives_max = 0;
    for (int i = RATED; i <= SEASONS; i++) {
        kinds[i].has_rating = true;
        kinds[i].is_created = true;
        kinds[i].guards = BOARD_RATED;
        rating_rule_init(&kinds[i].rating, i == RATED ? RATING_GLICKO2 : RATING_ELO);
        kinds[i].rating.of[RATING_MINGAMES] = 3;
    }
    kinds[SEASONS].period = kinds[DAYS].period;
    kinds[SEASONS].archives_max = 2;
    kinds[SEASONS].copies = true;
}

struct registry *workload_create_registry(uint64_t hash_seed) {
    make_kinds();
    struct registry *registry = registry_create(hash_seed, options_for, NULL);
    assert_non_null(registry);
    return registry;
}

void workload_begin(struct workload *workload, const char *test_name, uint32_t members_max) {
    *workload = (struct workload){
        .registry = workload_create_registry(0x5eed),
        .random = random_begin(test_name),
        .now_ms = INT64_C(1795000000000),
        .members_max = members_max,
        .database_count = REGISTRY_DATABASES,
    };
}

void workload_end(struct workload *workload) {
    registry_destroy(workload->registry);
}

/* ---- picking ---- */

static uint32_t below(struct workload *workload, uint64_t limit) {
    return (uint32_t)random_below(&workload->random, limit);
}

/* Half of the time database 0, so that it is crowded. */
static uint32_t pick_database(struct workload *workload) {
    return below(workload, 2) == 0 ? 0 : below(workload, workload->database_count);
}

static struct bytes pick_name(struct workload *workload, char *text) {
    uint32_t kind = below(workload, KINDS);
    int size = below(workload, 8) == 0
                   ? snprintf(text, WORKLOAD_NAME_MAX, "%c@2026-11-%u", letters[kind],
                              10 + below(workload, 20))
                   : snprintf(text, WORKLOAD_NAME_MAX, "%c%u", letters[kind], below(workload, 3));
    return (struct bytes){text, (size_t)size};
}

/* A place, where a key may be or not. */
static struct bytes pick_place(struct workload *workload, uint32_t *database, char *text) {
    if (workload->favourite_size > 0 && below(workload, 3) == 0) {
        *database = workload->favourite_database;
        memcpy(text, workload->favourite, workload->favourite_size);
        return (struct bytes){text, workload->favourite_size};
    }
    *database = pick_database(workload);
    return pick_name(workload, text);
}

/* A key that is there, or NULL. */
static struct registry_key *pick_key(struct workload *workload) {
    char text[WORKLOAD_NAME_MAX];
    uint32_t database;
    struct bytes name = pick_place(workload, &database, text);
    uint64_t bits = random_next(&workload->random);
    return below(workload, 2) == 0 || name.size == workload->favourite_size
               ? registry_find(workload->registry, database, name, workload->now_ms)
               : registry_walk_random(workload->registry, database, bits, workload->now_ms);
}

static struct registry_key *pick_kind(struct workload *workload, uint32_t kind) {
    struct registry_key *key = pick_key(workload);
    return key != NULL && key->kind == kind ? key : NULL;
}

static struct bytes pick_member(struct workload *workload, char *text) {
    /* Every other one is packed; some are so long that they lie in pieces of their own. */
    uint32_t number = below(workload, MEMBERS);
    if (number % 2 == 0) {
        return packed_kind_text(number / 2 % PACKED_KINDS, number, text);
    }
    int size = snprintf(text, 512, "m%0*u", number % 49 == 0 ? 300 : (int)(number % 9), number);
    return (struct bytes){text, (size_t)size};
}

/* Values for some tags of a board: few different ones, so that there are too many now and then. */
static void pick_values(struct workload *workload, const struct board *board,
                        struct tag_values *values) {
    static const char *const some[] = {
        "",
        "a",
        "b",
        "c",
        "d",
        "e",
        "f",
        "g",
        "hh",
        "i",
        "j",
        "k",
        "0123456789012345678901234567890123456789012345678901234567890123"};
    const struct tag_set *tags = &board_layout(board)->tags;
    *values = (struct tag_values){.mask = below(workload, UINT64_C(1) << tags->count)};
    for (unsigned i = 0; i < tags->count; i++) {
        values->at[i] = bytes_from_text(some[below(workload, sizeof some / sizeof *some)]);
    }
}

/* ---- commands ---- */

/* A board goes with its last member. */
static void remove_if_empty(struct workload *workload, struct registry_key *key) {
    if (registry_board_is_over(key)) {
        registry_remove(workload->registry, key);
    }
}

static void put_members(struct workload *workload, struct registry_key *key, bool is_new) {
    char text[512];
    uint32_t count =
        below(workload, 4) == 0 ? below(workload, workload->members_max) : below(workload, 4);
    bool is_changed = false;
    for (uint32_t i = 0; i < count; i++) {
        struct board_member member;
        board_look_up(&key->board, pick_member(workload, text), NULL, &member);
        bool is_put =
            registry_board_put(workload->registry, key, &member, below(workload, KEYS)) == BOARD_OK;
        workload->failures += !is_put;
        is_changed |= is_put;
    }
    uint32_t cap = registry_options(key)->cap;
    if (cap > 0 && board_count(&key->board) > cap) {
        registry_board_cut(workload->registry, key, cap, board_count(&key->board) - cap);
    }
    if (is_changed) {
        registry_tell_members(workload->registry, key);
    } else if (is_new) {
        registry_take_back(workload->registry, key);
    }
}

static void write_board(struct workload *workload) {
    char text[WORKLOAD_NAME_MAX];
    bool is_new;
    uint32_t database;
    struct bytes name = pick_place(workload, &database, text);
    struct registry_key *key =
        registry_find_or_create(workload->registry, database, name, workload->now_ms, &is_new);
    if (key == NULL) {
        workload->failures++;
    } else if (key->kind == REGISTRY_BOARD) {
        put_members(workload, key, is_new);
    }
}

static void create_board(struct workload *workload) {
    char text[WORKLOAD_NAME_MAX];
    struct board_options options;
    bool is_new;
    uint32_t database;
    struct bytes name = pick_place(workload, &database, text);
    board_options_copy(&kinds[below(workload, KINDS)], &options);
    options.is_created = true;
    workload->failures += registry_find_or_create_like(workload->registry, database, name, &options,
                                                       NULL, workload->now_ms, &is_new) == NULL;
}

static void take_members(struct workload *workload) {
    struct registry_key *key = pick_kind(workload, REGISTRY_BOARD);
    if (key == NULL) {
        return;
    }
    for (uint32_t left = below(workload, 6); left > 0 && board_count(&key->board) > 0; left--) {
        uint32_t rank = below(workload, board_count(&key->board));
        struct bytes name = stored_text(board_at(&key->board, rank).member);
        struct board_member member;
        char text[512];
        memcpy(text, name.at, name.size);
        board_look_up(&key->board, (struct bytes){text, name.size}, NULL, &member);
        assert_true(member.is_there);
        registry_board_take(workload->registry, key, &member);
    }
    remove_if_empty(workload, key);
}

static void tag_members(struct workload *workload) {
    struct registry_key *key = pick_kind(workload, REGISTRY_BOARD);
    char text[512];
    if (key == NULL || board_count(&key->board) == 0) {
        return;
    }
    for (uint32_t left = below(workload, 8); left > 0; left--) {
        uint32_t rank = below(workload, board_count(&key->board));
        struct bytes name = stored_text(board_at(&key->board, rank).member);
        struct board_member member;
        struct tag_values values;
        unsigned full;
        memcpy(text, name.at, name.size);
        board_look_up(&key->board, (struct bytes){text, name.size}, NULL, &member);
        pick_values(workload, &key->board, &values);
        workload->failures += registry_board_tag(workload->registry, key, &member, &values,
                                                 &full) == TAGS_OUT_OF_MEMORY;
    }
    registry_tell_members(workload->registry, key);
}

static void cut(struct workload *workload) {
    struct registry_key *key = pick_kind(workload, REGISTRY_BOARD);
    if (key == NULL) {
        return;
    }
    uint32_t rank = below(workload, board_count(&key->board) + UINT64_C(1));
    uint32_t count = below(workload, board_count(&key->board) - rank + UINT64_C(1));
    registry_board_cut(workload->registry, key, rank, count);
    remove_if_empty(workload, key);
}

/* Notes of members, on the board or not. */
static void note_members(struct workload *workload) {
    struct registry_key *key = pick_kind(workload, REGISTRY_BOARD);
    char text[512];
    static char note[REGISTRY_NOTE_MAX];
    if (key == NULL || !key->has_notes) {
        return;
    }
    uint32_t left = below(workload, 4) == 0 ? below(workload, workload->members_max) : 3;
    for (; left > 0; left--) {
        struct bytes member = pick_member(workload, text);
        size_t size = 1 + below(workload, below(workload, 500) == 0 ? REGISTRY_NOTE_MAX
                                          : below(workload, 9) == 0 ? 300U
                                                                    : 45U);
        memset(note, (int)below(workload, 256), size);
        if (below(workload, 8) == 0) {
            registry_note_remove(workload->registry, key, member);
        } else if (!registry_note_put(workload->registry, key, member,
                                      (struct bytes){note, size})) {
            workload->failures++;
        }
    }
    remove_if_empty(workload, key);
    if (registry_options(key)->is_created) {
        registry_tell_members(workload->registry, key);
    }
}

/* ---- hashes ---- */

/* An eighth of the values are long. */
static struct bytes pick_value(struct workload *workload, char *text) {
    uint32_t number = below(workload, 1000);
    int size = snprintf(text, 512, "v%0*u", number % 8 == 0 ? 400 : (int)(number % 30), number);
    return (struct bytes){text, (size_t)size};
}

static void write_hash(struct workload *workload) {
    enum { PUT_MAX = 8 };
    char text[WORKLOAD_NAME_MAX];
    char fields[PUT_MAX][512];
    char values[PUT_MAX][512];
    struct bytes args[2 * PUT_MAX];
    bool is_new;
    uint32_t added_count;
    uint32_t database;
    uint32_t count = 1 + below(workload, PUT_MAX);
    uint32_t times = below(workload, 4) == 0 ? 1 + below(workload, workload->members_max) : 1;
    struct bytes name = pick_place(workload, &database, text);
    struct registry_key *key =
        registry_hash_find_or_create(workload->registry, database, name, workload->now_ms, &is_new);
    if (key == NULL || key->kind != REGISTRY_HASH) {
        workload->failures += key == NULL;
        return;
    }
    for (uint32_t i = 0; i < times; i++) {
        for (uint32_t j = 0; j < count; j++) {
            args[(size_t)j * 2] = pick_member(workload, fields[j]);
            args[(size_t)j * 2 + 1] = pick_value(workload, values[j]);
        }
        if (registry_hash_put(workload->registry, &key, args, count, &added_count) != HASH_OK) {
            workload->failures++;
        }
    }
    if (hash_count(registry_hash(key)) > 0) {
        registry_tell_members(workload->registry, key);
    } else if (is_new) {
        registry_take_back(workload->registry, key);
    }
}

static void take_fields(struct workload *workload) {
    struct registry_key *key = pick_kind(workload, REGISTRY_HASH);
    char text[512];
    if (key == NULL) {
        return;
    }
    for (uint32_t left = below(workload, 9); left > 0 && hash_count(registry_hash(key)) > 0;
         left--) {
        struct hash_pair pair;
        hash_at(registry_hash(key), below(workload, hash_count(registry_hash(key))), &pair);
        memcpy(text, pair.field.at, pair.field.size);
        assert_true(
            registry_hash_remove(workload->registry, key, (struct bytes){text, pair.field.size}));
    }
    if (hash_count(registry_hash(key)) == 0) {
        registry_remove(workload->registry, key);
    } else {
        registry_tell_members(workload->registry, key);
    }
}

/* ---- keys ---- */

static void put_board(struct workload *workload) {
    char name_text[WORKLOAD_NAME_MAX];
    char text[512];
    struct board board;
    uint32_t database;
    struct bytes name = pick_place(workload, &database, name_text);
    if (!registry_create_board(workload->registry, name, workload->now_ms, &board)) {
        workload->failures++;
        return;
    }
    uint32_t cap = board_options_of(board_layout(&board))->cap;
    uint32_t count = below(workload, workload->members_max);
    bool is_filled = true;
    for (uint32_t i = 0; i < count && is_filled && (cap == 0 || i < cap); i++) {
        is_filled =
            board_put(&board, pick_member(workload, text), below(workload, KEYS)) == BOARD_OK;
    }
    for (uint32_t i = 0; is_filled && i < board_count(&board); i += 1 + below(workload, 4)) {
        struct tag_values values;
        unsigned full;
        pick_values(workload, &board, &values);
        is_filled = tags_set_at(&board, i, &values, &full) != TAGS_OUT_OF_MEMORY;
    }
    if (!is_filled || board_count(&board) == 0 ||
        registry_put_board(workload->registry, database, name, &board, workload->now_ms) !=
            REGISTRY_OK) {
        workload->failures += board_count(&board) > 0;
        registry_discard_board(workload->registry, &board);
    }
}

static void rename_or_copy(struct workload *workload) {
    char text[WORKLOAD_NAME_MAX];
    struct registry_key *key = pick_key(workload);
    uint32_t database;
    struct bytes to = pick_place(workload, &database, text);
    if (key == NULL) {
        return;
    }
    /* As a command does: what is due of the destination happens before the key is looked up. */
    uint32_t from = key->database;
    char name_text[REGISTRY_KEY_MAX];
    struct bytes name = {name_text, registry_name(key).size};
    memcpy(name_text, registry_name(key).at, name.size);
    (void)registry_find(workload->registry, database, to, workload->now_ms);
    key = registry_find(workload->registry, from, name, workload->now_ms);
    if (key == NULL) {
        return;
    }
    enum registry_status status =
        below(workload, 2) == 0
            ? registry_rename(workload->registry, key, database, to, workload->now_ms)
            : registry_copy(workload->registry, key, database, to, workload->now_ms);
    workload->failures += status != REGISTRY_OK;
}

static void set_expiry(struct workload *workload) {
    struct registry_key *key = pick_key(workload);
    int64_t time_ms = workload->now_ms + below(workload, UINT64_C(400000000));
    if (key != NULL) {
        int64_t expire_at_ms = below(workload, 4) == 0 ? REGISTRY_NO_EXPIRY : time_ms;
        workload->failures +=
            registry_expiry_set(workload->registry, key, expire_at_ms, false) != REGISTRY_OK;
    }
}

static void roll_by_hand(struct workload *workload) {
    char text[WORKLOAD_NAME_MAX];
    struct registry_key *key = pick_kind(workload, REGISTRY_BOARD);
    if (key == NULL) {
        return;
    }
    struct board_options next;
    board_options_copy(registry_options(key), &next);
    bool has_next = next.period.unit == PERIOD_NONE && below(workload, 2) == 0;
    if (has_next && next.layout.time.bits > 0) {
        layout_set_start(&next.layout, workload->now_ms * 1000);
    }
    int size = snprintf(text, sizeof text, "archive:%u", workload->archive_count++);
    int64_t expire_at_ms = below(workload, 2) == 0 ? REGISTRY_NO_EXPIRY
                                                   : workload->now_ms + below(workload, 100000000);
    workload->failures +=
        registry_roll(workload->registry, key, (struct bytes){text, (size_t)size},
                      has_next ? &next : NULL, expire_at_ms, workload->now_ms) != REGISTRY_OK;
}

static void pick_options(struct workload *workload, struct board_options *options) {
    uint32_t size = below(workload, 3);
    options->cap = size == 1 ? 1 + below(workload, 60) : 0;
    options->limit = size == 2 ? 1 + below(workload, 60) : 0;
    options->keeps_best = below(workload, 2) == 0;
    options->is_dense = below(workload, 2) == 0;
    options->guards = (uint8_t)below(workload, 8);
    options->opens_ms = (options->guards & BOARD_OPENS) != 0 ? 1 + below(workload, 1000) : 0;
    options->closes_ms =
        (options->guards & BOARD_CLOSES) != 0 ? workload->now_ms + below(workload, 1000) : 0;
    if (options->has_rating) {
        options->cap = 0;
        options->limit = 0;
        options->keeps_best = false;
        options->rating.of[RATING_MINGAMES] = below(workload, 3);
        options->guards |= BOARD_RATED;
    }
    options->limits = (struct limits_rule){
        .has = 1U << LIMIT_EVERY | 1U << LIMIT_RESULTS | 1U << LIMIT_MAX,
        .of = {[LIMIT_RESULTS] = 1 + below(workload, 5), [LIMIT_MAX] = below(workload, 1000)},
        .time_ms =
            {[LIMIT_EVERY] = 1000 * (1 + (int64_t)below(workload, 100)), [LIMIT_RESULTS] = 3600000},
        .is_for_all = below(workload, 2) == 0,
    };
    options->has_limits = below(workload, 3) == 0 && !options->has_rating &&
                          limits_refuse(&options->limits, &options->layout.fields[0]) == NULL;
    options->hold = (struct hold_rule){.over = (int64_t)below(workload, 1000),
                                       .has_over = true,
                                       .top = (uint32_t)below(workload, 10),
                                       .takes_limits = below(workload, 2) == 0,
                                       .auto_ms = (int64_t)below(workload, 3) * 3600000,
                                       .is_for_all = below(workload, 2) == 0};
    options->has_hold = below(workload, 3) == 0 && options->window.count == 0;
    options->has_hold = options->has_hold && !options->has_rating && options->league.room == 0 &&
                        board_options_hold_refuse(&options->hold, options->has_limits,
                                                  &options->layout.fields[0]) == NULL;
}

static void pick_contests(struct workload *workload, struct board_options *options) {
    options->settles = below(workload, 2) == 0;
    options->stale_ms = 0;
    if (options->layout.time.bits > 0 && below(workload, 2) == 0) {
        options->stale_ms = below(workload, 4) == 0 ? 60000 : BOARD_STALE_MAX_MS;
    }
}

static void pick_period(struct workload *workload, struct board_options *options) {
    static const enum period_unit units[] = {PERIOD_NONE, PERIOD_HOUR, PERIOD_WEEK, PERIOD_YEAR};
    options->period = (struct period){.unit = units[below(workload, 4)]};
    options->archives_max = 0;
    options->archives_are_writable = false;
    options->copies = false;
    options->period_start_ms = 0;
    options->period_end_ms = 0;
    if (options->period.unit != PERIOD_NONE) {
        options->period.every = (uint16_t)(1 + below(workload, 30));
        options->period.hour = (uint8_t)below(workload, 24);
        options->archives_max = below(workload, 4);
        options->archives_are_writable = below(workload, 2) == 0;
        options->copies = below(workload, 3) == 0;
        board_options_enter_period(options, workload->now_ms);
    }
}

/* A tag more, one less, or other bits. */
static void pick_tags(struct workload *workload, struct registry_key *key,
                      struct board_options *options) {
    static const char *const names[] = {"country", "class", "clan", "x"};
    struct tag_set *tags = &options->layout.tags;
    struct bytes name = bytes_from_text(names[below(workload, 4)]);
    char bits[2] = {(char)('1' + below(workload, 6)), '\0'};
    char error[TAG_ERROR_MAX];
    int index = tag_set_find(tags, name);
    unsigned full;
    bool is_done = true;
    if (index >= 0 && below(workload, 2) == 0) {
        tag_set_remove(tags, (unsigned)index);
    } else if (index >= 0) {
        is_done = tag_set_resize(tags, (unsigned)index, bytes_from_text(bits), error);
    } else {
        is_done = tag_set_add(tags, name, bytes_from_text(bits), error);
    }
    if (!is_done || !registry_board_tags_fit(key, &options->layout, &full)) {
        *tags = registry_options(key)->layout.tags;
    }
}

static void alter(struct workload *workload) {
    struct registry_key *key = pick_kind(workload, REGISTRY_BOARD);
    if (key == NULL || key->name_size > REGISTRY_KEY_MAX) {
        return;
    }
    struct board_options options;
    board_options_copy(registry_options(key), &options);
    pick_options(workload, &options);
    if (below(workload, 2) == 0) {
        pick_contests(workload, &options);
    }
    if (below(workload, 2) == 0) {
        pick_period(workload, &options);
    }
    if (options.period.unit != PERIOD_NONE && board_count(&key->board) == 0) {
        board_options_begin_period(&options, workload->now_ms);
    }
    if (options.period.unit != PERIOD_NONE && options.archives_max == 0) {
        options.settles = false; /* as the settings demand */
    }
    if (below(workload, 2) == 0) {
        pick_tags(workload, key, &options);
    }
    key = registry_board_alter(workload->registry, key, &options, NULL);
    workload->failures += key == NULL;
    if (key != NULL && options.cap > 0 && board_count(&key->board) > options.cap) {
        registry_board_cut(workload->registry, key, options.cap,
                           board_count(&key->board) - options.cap);
    }
}

static void settle(struct workload *workload) {
    struct registry_key *key = pick_kind(workload, REGISTRY_BOARD);
    if (key != NULL && board_options_are_unsettled(registry_options(key), registry_state(key))) {
        workload->failures +=
            registry_roll_settle_archive(workload->registry, key, workload->now_ms) != REGISTRY_OK;
    }
}

/* Time goes by, now and then so much that periods end, or archives go. */
static void wait_some(struct workload *workload) {
    workload->now_ms += below(workload, below(workload, 8) == 0 ? UINT64_C(3000000000) : 40000000);
    (void)registry_roll_due(workload->registry, workload->now_ms, below(workload, 8));
    (void)registry_expiry_remove_due(workload->registry, workload->now_ms, below(workload, 8));
    struct registry_key *key = pick_kind(workload, REGISTRY_BOARD);
    uint64_t from_key = REGISTRY_STALE_BEGIN;
    uint32_t work = 1 + below(workload, 1000);
    bool is_done;
    if (key != NULL && registry_board_may_drop_stale(key, workload->now_ms) &&
        registry_board_drop_stale(workload->registry, key, workload->now_ms, &from_key, &work,
                                  &is_done) > 0 &&
        registry_board_is_over(key)) {
        registry_remove(workload->registry, key);
    }
    (void)registry_roll_archive_step(workload->registry, workload->now_ms, 1 + below(workload, 40));
}

static void remove_key(struct workload *workload) {
    struct registry_key *key = pick_key(workload);
    if (key != NULL) {
        registry_remove(workload->registry, key);
    }
}

/* Ids of results, as server/sessions/once_ids.h has them. */
static void keep_id(struct workload *workload) {
    static const struct layout_field field = {.name = "time_ms", .bits = 64, .is_ascending = true};
    struct board_options options = {.layout = {.field_count = 1, .fields = {field}}};
    char name = (char)below(workload, 3);
    char id[16] = {(char)below(workload, 256), (char)below(workload, 256)};
    struct board_member member;
    bool is_new;
    layout_complete(&options.layout);
    struct registry_key *key =
        registry_find_or_create_like(workload->registry, REGISTRY_ONCE, (struct bytes){&name, 1},
                                     &options, NULL, workload->now_ms, &is_new);
    if (key == NULL) {
        workload->failures++;
        return;
    }
    board_look_up(&key->board, (struct bytes){id, sizeof id}, NULL, &member);
    workload->failures += registry_board_put(workload->registry, key, &member,
                                             ~(uint64_t)workload->now_ms) != BOARD_OK;
    uint32_t count = board_count(&key->board);
    if (below(workload, 10) == 0) {
        uint32_t gone = below(workload, count + 1);
        registry_board_cut(workload->registry, key, 0, gone);
    }
    if (board_count(&key->board) == 0) {
        registry_remove(workload->registry, key);
    }
}

void workload_step(struct workload *workload) {
    static const struct {
        uint32_t weight;
        void (*run)(struct workload *);
    } commands[] = {
        {40, write_board},   {10, take_members}, {4, cut},
        {5, put_board},      {4, create_board},  {5, remove_key},
        {8, rename_or_copy}, {5, set_expiry},    {4, roll_by_hand},
        {3, wait_some},      {10, write_hash},   {6, take_fields},
        {4, alter},          {12, tag_members},  {4, settle},
        {10, note_members},
    };
    uint32_t turn = below(workload, 134);
    if (turn == 133 && below(workload, 4) == 0) {
        uint32_t database = below(workload, REGISTRY_DATABASES + 3);
        registry_flush(workload->registry,
                       database < REGISTRY_DATABASES ? database : REGISTRY_DATABASES);
    }
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        if (turn < commands[i].weight) {
            commands[i].run(workload);
            break;
        }
        turn -= commands[i].weight;
    }
    if (workload->has_ids && below(workload, 4) == 0) {
        keep_id(workload);
    }
    memory_fail_at(0);
    (void)registry_free_step(workload->registry, below(workload, 200));
}

/* ---- comparing ---- */

struct comparison {
    const struct registry *a;
    const struct registry *b;
};

static void compare_values(const struct board *a, const struct board *b, uint32_t rank) {
    struct tag_values values_a;
    struct tag_values values_b;
    tags_at(a, rank, &values_a);
    tags_at(b, rank, &values_b);
    assert_int_equal(values_a.mask, values_b.mask);
    for (unsigned i = 0; i < TAGS_MAX; i++) {
        assert_true((values_a.mask >> i & 1) == 0 || bytes_equal(values_a.at[i], values_b.at[i]));
    }
}

static void compare_boards(const struct board *a, const struct board *b) {
    struct board_cursor at_a;
    struct board_cursor at_b;
    struct board_stored entry_a;
    struct board_stored entry_b;
    assert_int_equal(board_count(a), board_count(b));
    board_cursor_seek(a, 0, &at_a);
    board_cursor_seek(b, 0, &at_b);
    for (uint32_t rank = 0; board_cursor_read(&at_a, &entry_a); rank++) {
        assert_true(board_cursor_read(&at_b, &entry_b));
        compare_values(a, b, rank);
        assert_int_equal(entry_a.key, entry_b.key);
        assert_true(name_equal(entry_a.member, entry_b.member));
        board_cursor_next(&at_a);
        board_cursor_next(&at_b);
    }
}

static void compare_hashes(const struct hash *a, const struct hash *b) {
    struct hash_cursor cursor = hash_begin(a);
    struct hash_pair pair;
    struct bytes value;
    assert_int_equal(hash_count(a), hash_count(b));
    while (hash_next(&cursor, &pair)) {
        assert_true(hash_find(b, pair.field, &value));
        assert_true(bytes_equal(value, pair.value));
    }
}

static void compare_key(void *context, const struct registry_key *key) {
    const struct comparison *comparison = context;
    const struct registry_key *other =
        registry_peek(comparison->b, key->database, registry_name(key), INT64_MIN);
    assert_non_null(other);
    assert_int_equal(registry_expiry(comparison->a, key), registry_expiry(comparison->b, other));
    assert_int_equal(key->kind, other->kind);
    if (key->kind == REGISTRY_HASH) {
        compare_hashes(registry_hash(key), registry_hash(other));
        return;
    }
    assert_true(board_options_equal(registry_options(key), registry_options(other)));
    compare_boards(&key->board, &other->board);
    assert_int_equal(key->has_notes, other->has_notes);
    if (key->has_notes) {
        compare_hashes(registry_note_hash(key), registry_note_hash(other));
    }
}

void workload_assert_equal(const struct registry *a, const struct registry *b) {
    struct comparison comparison = {.a = a, .b = b};
    ASSERT_VALID(registry_validate, a);
    ASSERT_VALID(registry_validate, b);
    for (uint32_t i = 0; i < REGISTRY_DATABASES; i++) {
        assert_int_equal(registry_count(a, i), registry_count(b, i));
        registry_walk_each(a, i, INT64_MIN, compare_key, &comparison);
    }
    assert_int_equal(registry_count(a, REGISTRY_ONCE), registry_count(b, REGISTRY_ONCE));
    registry_walk_each(a, REGISTRY_ONCE, INT64_MIN, compare_key, &comparison);
}

/* ---- digests ---- */

/* Fowler, Noll and Vo's hash, 64 bits. */
static void digest_bytes(uint64_t *hash, const void *at, size_t size) {
    const uint8_t *byte = at;
    for (size_t i = 0; i < size; i++) {
        *hash = (*hash ^ byte[i]) * UINT64_C(0x100000001b3);
    }
}

static void digest_number(uint64_t *hash, int64_t number) {
    digest_bytes(hash, &number, sizeof number);
}

static void digest_text(uint64_t *hash, struct bytes text) {
    digest_number(hash, (int64_t)text.size);
    digest_bytes(hash, text.at, text.size);
}

static void digest_options(uint64_t *hash, const struct board_options *options,
                           const struct board_state *state) {
    char layout[LAYOUT_TEXT_MAX];
    digest_text(hash, (struct bytes){layout, layout_print(&options->layout, layout)});
    for (size_t i = 0; i < BOARD_OPTION_COUNT; i++) {
        const struct board_option *option = &board_options[i];
        bool is_pointer = option->form == BOARD_FORM_POINTER;
        digest_number(hash, is_pointer ? 0 : board_options_get(option, options, state));
    }
    digest_number(hash, options->guards);
    for (unsigned i = 0; i < RATING_PARAMETERS && options->has_rating; i++) {
        digest_number(hash, options->rating.of[i]);
    }
    if (options->has_hold) {
        digest_number(hash, options->hold.over);
        digest_number(hash, options->hold.auto_ms);
        digest_number(hash, options->hold.top);
        digest_number(hash, options->hold.takes_limits);
        digest_number(hash, options->hold.is_for_all);
    }
    for (unsigned limit = 0; limit < LIMITS && options->has_limits; limit++) {
        digest_number(hash, options->limits.of[limit]);
        digest_number(hash, options->limits.time_ms[limit]);
        digest_number(hash, options->limits.is_for_all);
    }
}

struct digest {
    const struct registry *registry;
    const char *prefix; /* of the names that are left out; NULL: none */
    FILE *out;          /* for a line of each key; NULL: none */
    uint64_t sum;       /* of the keys', for they come in no order */
};

static void digest_board(uint64_t *hash, const struct registry_key *key) {
    struct board_cursor cursor;
    struct board_stored entry;
    uint32_t rank = 0;
    digest_options(hash, registry_options(key), registry_state(key));
    for (board_cursor_seek(&key->board, 0, &cursor); board_cursor_read(&cursor, &entry);
         board_cursor_next(&cursor)) {
        char packed[TAG_VALUES_PACKED_MAX];
        struct tag_values values;
        tags_at(&key->board, rank++, &values);
        digest_number(hash, (int64_t)entry.key);
        digest_text(hash, stored_text(entry.member));
        digest_text(hash, (struct bytes){packed, tag_values_pack(&values, packed)});
    }
}

/* Fields come in no order. */
static void digest_hash(uint64_t *hash, const struct hash *fields) {
    struct hash_cursor cursor = hash_begin(fields);
    struct hash_pair pair;
    uint64_t sum = 0;
    while (hash_next(&cursor, &pair)) {
        uint64_t of_pair = 1;
        digest_text(&of_pair, pair.field);
        digest_text(&of_pair, pair.value);
        sum += of_pair;
    }
    digest_number(hash, (int64_t)sum);
}

static void digest_key(void *context, const struct registry_key *key) {
    struct digest *digest = context;
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    struct bytes name = registry_name(key);
    size_t prefix_size = digest->prefix != NULL ? strlen(digest->prefix) : 0;
    if (prefix_size > 0 && name.size >= prefix_size &&
        memcmp(name.at, digest->prefix, prefix_size) == 0) {
        return;
    }
    digest_number(&hash, key->database);
    digest_text(&hash, registry_name(key));
    digest_number(&hash, registry_expiry(digest->registry, key));
    if (key->kind == REGISTRY_HASH) {
        digest_hash(&hash, registry_hash(key));
    } else {
        digest_board(&hash, key);
    }
    if (key->has_notes) {
        digest_hash(&hash, registry_note_hash(key));
    }
    struct random mixed = {.state = hash};
    uint64_t of_key = random_next(&mixed);
    digest->sum += of_key;
    if (digest->out != NULL) {
        fprintf(digest->out, "%u %.*s %016" PRIx64 " members %u expires %lld\n", key->database,
                (int)name.size, name.at, of_key,
                key->kind == REGISTRY_BOARD ? board_count(&key->board) : 0,
                (long long)registry_expiry(digest->registry, key));
    }
}

static uint64_t workload_digest_each(struct digest digest) {
    const struct registry *registry = digest.registry;
    for (uint32_t i = 0; i < REGISTRY_DATABASES; i++) {
        registry_walk_each(registry, i, INT64_MIN, digest_key, &digest);
    }
    if (digest.prefix == NULL) { /* ids of results have no names by which to leave some out */
        registry_walk_each(registry, REGISTRY_ONCE, INT64_MIN, digest_key, &digest);
    }
    return digest.sum;
}

uint64_t workload_digest(const struct registry *registry) {
    return workload_digest_each((struct digest){.registry = registry});
}

uint64_t workload_digest_without(const struct registry *registry, const char *prefix) {
    return workload_digest_each((struct digest){.registry = registry, .prefix = prefix});
}

void workload_print(const struct registry *registry, FILE *out) {
    (void)workload_digest_each((struct digest){.registry = registry, .out = out});
}
