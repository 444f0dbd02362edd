/* Effects as bytes: what was written is read back, and arbitrary bytes decode only to effects that
 * could have been written. */
#include "server/durability/effect_bytes.h"
#include "server/system/tzdata.h"
#include "skiplist/keyspace/effect.h"
#include "skiplist/keyspace/league.h"
#include "tests/support/keyspace.h"
#include "tests/support/layout_text.h"
#include "tests/support/registry_workload.h"
#include "tests/support/stored_text.h"

static struct effect_encoder encoder;
static struct effect_decoder decoder;

static struct bytes bytes_of(const struct buffer *buffer) {
    return (struct bytes){.at = buffer->at, .size = buffer->size};
}

/* ---- reading one by one ---- */

static void begin_chunk(struct buffer *chunk) {
    buffer_init(chunk, 0);
    effect_bytes_encode_begin(&encoder, chunk);
}

static void begin_reading(const struct buffer *chunk) {
    assert_false(chunk->is_broken);
    effect_bytes_decode_begin(&decoder, bytes_of(chunk));
}

static void assert_text(struct bytes text, struct bytes expected) {
    assert_true(bytes_equal(text, expected));
}

/* NULL: of no board. */
static void assert_same_options(const struct effect *a, const struct effect *b) {
    assert_int_equal(a->options != NULL, b->options != NULL);
    assert_true(a->options == NULL || board_options_equal(a->options, b->options));
    if (b->options != NULL && board_options_have_state(b->options) && b->state != NULL) {
        assert_memory_equal(a->state, b->state, sizeof *a->state);
    }
}

static void assert_reads_effect(const struct effect *expected) {
    const struct effect *effect = &decoder.effect;
    assert_int_equal(effect_bytes_decode(&decoder), EFFECT_RECORD_EFFECT);
    assert_int_equal(effect->kind, expected->kind);
    assert_int_equal(effect->database, expected->database);
    assert_null(effect->key);
    assert_ptr_equal(effect->key_kind, expected->key_kind);
    if (expected->kind != EFFECT_FLUSH) {
        assert_text(effect->name, expected->name);
    }
    switch (expected->kind) {
    case EFFECT_PUT:
        assert_text(effect->member, expected->member);
        if (expected->key_kind == NULL) {
            assert_true(effect->member_key == expected->member_key);
        } else {
            assert_text(effect->value, expected->value);
        }
        break;
    case EFFECT_TAGS:
    case EFFECT_NOTE:
        assert_text(effect->member, expected->member);
        assert_text(effect->value, expected->value);
        break;
    case EFFECT_TAKE:
        assert_text(effect->member, expected->member);
        break;
    case EFFECT_STATE:
        assert_memory_equal(effect->state, expected->state, sizeof *effect->state);
        break;
    case EFFECT_CUT:
        assert_int_equal(effect->rank, expected->rank);
        assert_int_equal(effect->count, expected->count);
        break;
    case EFFECT_RENAME:
    case EFFECT_COPY:
        assert_int_equal(effect->to_database, expected->to_database);
        assert_text(effect->to_name, expected->to_name);
        assert_same_options(effect, expected);
        assert_true(effect->expire_at_ms == expected->expire_at_ms);
        break;
    case EFFECT_EXPIRE:
        assert_true(effect->expire_at_ms == expected->expire_at_ms);
        break;
    case EFFECT_CREATE:
    case EFFECT_OPTIONS:
        assert_same_options(effect, expected);
        break;
    case EFFECT_REMOVE:
    case EFFECT_FLUSH:
    case EFFECT_FILL:
        break;
    }
}

/* Written one after the other, the effects are read as they were. */
static void assert_round_trip(const struct effect *effects, size_t count) {
    ENDED_BY(buffer_deinit) struct buffer chunk;
    begin_chunk(&chunk);
    for (size_t i = 0; i < count; i++) {
        effect_bytes_encode(&encoder, &effects[i]);
    }
    begin_reading(&chunk);
    for (size_t i = 0; i < count; i++) {
        test_row("effect %zu", i);
        assert_reads_effect(&effects[i]);
    }
    assert_int_equal(effect_bytes_decode(&decoder), EFFECT_RECORD_END);
    assert_int_equal(effect_bytes_decode(&decoder), EFFECT_RECORD_END);
}

static void parse_options(const char *layout, struct board_options *options) {
    char error[LAYOUT_ERROR_MAX];
    memset(options, 0, sizeof *options);
    assert_int_equal(layout_parse(bytes_from_text(layout), &options->layout, error), LAYOUT_OK);
}

enum { EACH_KIND = 34 };

/* One effect of each kind, with the smallest and largest values of a record. */
static void make_each_kind(struct effect *effects) {
    static char long_value[1000];
    static struct board_options plain;
    static struct board_options full;
    static struct board_options tagged;
    static const struct board_state settled = {.ended_ms = -1, .is_settled = true};
    static const struct board_state left = {
        .from_ms = 3600000, .left = UINT32_MAX, .is_anew = true};
    parse_options("FIELD a 30 TIME 30 S", &plain);
    parse_options("FIELD a 30 TIME 30 S TAG country 8 TAG abcdefghijklmnopqrstuvwxyz012345 24",
                  &tagged);
    parse_options("FIELD lead 5 ASC SIGNED SCALE 3 FIELD second 7 TIME 52 US END "
                  "2099-01-01T00:00:00Z LATEST",
                  &full);
    full.cap = UINT32_MAX;
    full.keeps_best = true;
    full.is_created = true;
    full.period.unit = PERIOD_MONTH;
    full.period.every = 1;
    full.period.zone_minutes = PERIOD_ZONE_MIN;
    full.archives_max = BOARD_ARCHIVES_ALL;
    board_options_begin_period(&full, -INT64_C(1795000000000));
    const struct bytes name = BYTES("k");
    const struct bytes archive = BYTES("archive");
    const struct effect each[EACH_KIND] = {
        {.kind = EFFECT_CREATE, .name = name, .options = &plain},
        {.kind = EFFECT_PUT, .name = name, .member = BYTES("ann"), .member_key = 700},
        {.kind = EFFECT_PUT, .name = name, .member = BYTES("bob"), .member_key = 701},
        {.kind = EFFECT_TAKE, .name = name, .member = BYTES("ann")},
        {.kind = EFFECT_CUT, .name = name, .rank = 0, .count = UINT32_MAX},
        {.kind = EFFECT_CUT, .name = name, .rank = UINT32_MAX, .count = 0},
        {.kind = EFFECT_EXPIRE, .name = name, .expire_at_ms = REGISTRY_NO_EXPIRY},
        {.kind = EFFECT_EXPIRE, .name = name, .expire_at_ms = INT64_MAX},
        {.kind = EFFECT_OPTIONS, .name = name, .options = &full},
        {.kind = EFFECT_RENAME,
         .name = name,
         .to_database = 15,
         .to_name = archive,
         .options = &full,
         .expire_at_ms = 5},
        {.kind = EFFECT_COPY,
         .database = 15,
         .name = archive,
         .to_name = name,
         .options = &plain,
         .expire_at_ms = REGISTRY_NO_EXPIRY},
        {.kind = EFFECT_REMOVE, .database = 15, .name = archive},
        {.kind = EFFECT_FLUSH, .database = 15},
        {.kind = EFFECT_PUT, .database = 15, .name = archive, .member = BYTES("c")},
        {.kind = EFFECT_PUT, .name = archive, .member = BYTES("c"), .member_key = UINT64_MAX},
        {.kind = EFFECT_FLUSH, .database = 0},
        {.kind = EFFECT_CREATE, .key_kind = &key_kind_hash, .database = 3, .name = name},
        {.kind = EFFECT_PUT,
         .key_kind = &key_kind_hash,
         .database = 3,
         .name = name,
         .member = BYTES("tier"),
         .value = BYTES("gold")},
        {.kind = EFFECT_PUT,
         .key_kind = &key_kind_hash,
         .database = 3,
         .name = name,
         .member = BYTES("tier"),
         .value = {.size = 0}},
        {.kind = EFFECT_PUT,
         .key_kind = &key_kind_hash,
         .name = name,
         .member = {.size = 0},
         .value = {.at = long_value, .size = sizeof long_value}},
        {.kind = EFFECT_TAKE, .key_kind = &key_kind_hash, .name = name, .member = {.size = 0}},
        {.kind = EFFECT_RENAME,
         .key_kind = &key_kind_hash,
         .name = name,
         .to_name = archive,
         .expire_at_ms = 7},
        {.kind = EFFECT_COPY,
         .key_kind = &key_kind_hash,
         .name = archive,
         .to_database = 15,
         .to_name = name,
         .expire_at_ms = REGISTRY_NO_EXPIRY},
        {.kind = EFFECT_REMOVE, .name = archive},
        {.kind = EFFECT_OPTIONS, .name = name, .options = &tagged},
        {.kind = EFFECT_TAGS, .name = name, .member = BYTES("bob"), .value = BYTES("\1\2DE")},
        {.kind = EFFECT_PUT, .name = name, .member = BYTES("bob"), .member_key = 8},
        {.kind = EFFECT_TAGS, .name = name, .member = BYTES("bob"), .value = BYTES("\1\0")},
        {.kind = EFFECT_TAGS, .name = name, .member = BYTES("bo"), .value = BYTES("\3\1x\2yy")},
        {.kind = EFFECT_TAGS, .name = archive, .member = BYTES("bo"), .value = BYTES("\0")},
        {.kind = EFFECT_NOTE, .name = archive, .member = BYTES("bo"), .value = BYTES("a note")},
        {.kind = EFFECT_NOTE, .name = archive, .member = BYTES("eve"), .value = {.size = 0}},
        {.kind = EFFECT_STATE, .name = archive, .state = &settled},
        {.kind = EFFECT_STATE, .name = name, .state = &left},
    };
    memcpy(effects, each, sizeof each);
}

TEST(every_kind_is_read_as_it_was_written) {
    struct effect effects[EACH_KIND];
    make_each_kind(effects);
    assert_round_trip(effects, EACH_KIND);
}

TEST(keys_of_any_difference_are_kept) {
    static uint64_t keys[9000];
    static struct effect puts[COUNT_OF(keys)];
    struct random random = random_begin(__func__);
    size_t count = 0;
    const uint64_t ends[] = {0, UINT64_MAX, 1, UINT64_MAX - 1, INT64_MAX, UINT64_C(1) << 63, 0};
    for (size_t i = 0; i < COUNT_OF(ends); i++) {
        keys[count++] = ends[i];
        keys[count++] = ends[i];
    }
    /* Every run of bits that may differ. */
    for (unsigned low = 0; low < 64; low++) {
        for (unsigned high = low; high < 64; high++) {
            uint64_t difference = UINT64_C(1) << low | UINT64_C(1) << high;
            keys[count] = keys[count - 1] ^ difference;
            count++;
        }
    }
    while (count < COUNT_OF(keys)) {
        keys[count++] = random_next(&random) >> random_below(&random, 64);
    }
    for (size_t i = 0; i < count; i++) {
        puts[i] = (struct effect){
            .kind = EFFECT_PUT, .name = BYTES("k"), .member = BYTES("ann"), .member_key = keys[i]};
    }
    assert_round_trip(puts, count);
}

TEST(members_and_names_of_any_size_are_kept) {
    static char text[REGISTRY_NAME_MAX];
    static const size_t member_sizes[] = {1,   31,   32,   33,    62,    63,    64,
                                          127, 4095, 4096, 16383, 16384, 65535, BOARD_MEMBER_MAX};
    static const size_t name_sizes[] = {1, 2, 31, 32, 1000, REGISTRY_KEY_MAX, REGISTRY_NAME_MAX};
    struct effect effects[2 * COUNT_OF(member_sizes)];
    memset(text, 'x', sizeof text);
    for (size_t i = 0; i < COUNT_OF(name_sizes); i++) {
        for (size_t k = 0; k < COUNT_OF(effects); k++) {
            effects[k] = (struct effect){.kind = k % 2 == 0 ? EFFECT_PUT : EFFECT_TAKE,
                                         .database = (uint32_t)i,
                                         .name = {text, name_sizes[i]},
                                         .member = {text, member_sizes[k / 2]}};
        }
        assert_round_trip(effects, COUNT_OF(effects));
    }
}

/* The board is written where it changes: two boards whose names differ in size, in one byte, or
 * only in the database are not confused. */
TEST(a_change_of_board_is_never_missed) {
    static const char *const names[] = {"k", "kk", "kl", "k", "K"};
    struct random random = random_begin(__func__);
    struct effect effects[400];
    for (int i = 0; i < 400; i++) {
        effects[i] = (struct effect){
            .kind = random_below(&random, 12) == 0 ? EFFECT_FLUSH : EFFECT_TAKE,
            .database = (uint32_t)random_below(&random, 3) * 7,
            .name = bytes_from_text(names[random_below(&random, 5)]),
            .member = BYTES("ann"),
        };
    }
    assert_round_trip(effects, COUNT_OF(effects));
}

/* ---- options ---- */

static void pick_further(struct random *random, struct period *period) {
    static const char *const zones[] = {"Europe/Berlin", "America/New_York", "Pacific/Apia"};
    char error[TZDATA_ERROR_MAX];
    period->every = (uint16_t)(1 + random_below(random, PERIOD_EVERY_MAX));
    period->weekday = period->unit == PERIOD_WEEK ? (uint8_t)random_below(random, 7) : 0;
    period->hour = (uint8_t)random_below(random, 24);
    period->from_day = period->every > 1 ? (int32_t)random_below(random, 40000) - 10000 : 0;
    if (random_below(random, 2) == 0) {
        period->zone_minutes = 0;
        period->zone = tzdata_find(bytes_from_text(zones[random_below(random, 3)]), error);
        assert_non_null(period->zone);
    }
}

static void pick_guards(struct random *random, struct board_options *options) {
    options->limit = options->cap == 0 ? (uint32_t)random_next(random) : 0;
    options->guards = (uint8_t)random_below(random, 8);
    if ((options->guards & BOARD_OPENS) != 0) {
        options->opens_ms = 1 + (int64_t)random_below(random, UINT64_C(1) << 50);
    }
    if ((options->guards & BOARD_CLOSES) != 0) {
        options->closes_ms =
            options->opens_ms + 1 + (int64_t)random_below(random, UINT64_C(1) << 50);
    }
}

static void pick_contests(struct random *random, struct board_options *options,
                          struct board_state *state) {
    uint64_t parts = random_below(random, 64);
    options->settles =
        (parts & 1) != 0 && (options->period.unit == PERIOD_NONE || options->archives_max > 0);
    options->copies = (parts & 2) != 0 && options->period.unit != PERIOD_NONE;
    if ((parts & 4) != 0 && options->layout.time.bits > 0) {
        options->stale_ms = 1 + (int64_t)random_below(random, BOARD_STALE_MAX_MS);
    }
    if ((parts & 24) != 0) {
        options->is_archive = true;
        state->is_settled = (parts & 8) == 0;
        state->ended_ms = (int64_t)random_next(random);
    }
    if ((parts & 40) == 40) {
        state->settled_expire_ms = 1 + (int64_t)random_below(random, UINT64_C(1) << 50);
    }
}

static void make_random_league(struct random *random, struct board_options *options) {
    *options = (struct board_options){.guards = BOARD_LEAGUE, .is_created = true};
    league_init_layout(&options->layout);
    options->league = (struct board_league){.room = 1 + (uint16_t)random_below(random, 1000),
                                            .tiers = 1 + (uint8_t)random_below(random, 255),
                                            .up = (uint16_t)random_next(random),
                                            .down = (uint16_t)random_next(random),
                                            .idle_goes_down = random_below(random, 2) == 0};
}

static void pick_window(struct random *random, struct board_options *options,
                        struct board_state *state) {
    if (options->period.unit == PERIOD_NONE) {
        options->window = (struct board_window){.is_share = true};
        state->from_ms = (int64_t)random_below(random, UINT64_C(1) << 50);
        return;
    }
    if (layout_field_decays(&options->layout.fields[0])) {
        return;
    }
    options->cap = 0;
    options->limit = 0;
    options->archives_are_writable = false;
    options->archives_max = BOARD_ARCHIVES_ALL;
    options->guards |= BOARD_WINDOW;
    options->window =
        (struct board_window){.count = (uint16_t)(2 + random_below(random, BOARD_WINDOW_MAX - 1)),
                              .is_best = random_below(random, 2) == 0};
    *state = (struct board_state){.is_anew = random_below(random, 2) == 0,
                                  .left = (uint32_t)random_next(random),
                                  .from_ms = options->period_start_ms -
                                             (int64_t)random_below(random, UINT64_C(1) << 40)};
}

static void make_random_options(struct random *random, struct board_options *options,
                                struct board_state *state) {
    static const char *const layouts[] = {
        "FIELD a 64",
        "FIELD a 60 SCALE 3 DECAY 6 H FIELD b 4",
        "FIELD a 54 ASC DECAY 1000000 D TIME 10 D START 0 TAG c 3",
        "FIELD a 63 SIGNED",
        "FIELD a 1 TIME 63 US",
        "FIELD score 33 SIGNED TIME 31 S",
        "FIELD abcdefghijklmnopqrstuvwxyz012345 20 ASC SCALE 2 FIELD b 10 TIME 34 MS LATEST",
        "FIELD wins 10 FIELD goals 12 SIGNED FIELD lost 9 ASC TIME 20 M",
        "FIELD a 30 TIME 20 D START 2000-01-01T00:00:00Z",
        "FIELD a 30 TIME 20 H",
        "FIELD a 30 TIME 20 H TAG country 8",
        "FIELD a 64 TAG a 1 TAG b 2 TAG c 3 TAG d 4 TAG e 5 TAG f 6 TAG g 7 TAG h 4",
    };
    if (random_below(random, 8) == 0) {
        make_random_league(random, options);
        return;
    }
    parse_options(layouts[random_below(random, COUNT_OF(layouts))], options);
    options->cap = (uint32_t)(random_next(random) >> (32 + random_below(random, 32)));
    options->keeps_best = random_below(random, 2) == 0;
    options->is_created = random_below(random, 2) == 0;
    if (random_below(random, 2) == 0) {
        options->cap = random_below(random, 2) == 0 ? options->cap : 0;
        pick_guards(random, options);
    }
    options->period.unit = (enum period_unit)random_below(random, PERIOD_UNITS);
    if (options->period.unit != PERIOD_NONE) {
        int zone = (int)random_below(random, PERIOD_ZONE_MAX - PERIOD_ZONE_MIN + 1);
        options->period.zone_minutes = (int16_t)(zone + PERIOD_ZONE_MIN);
        options->period.every = 1;
        if (random_below(random, 2) == 0) {
            pick_further(random, &options->period);
        }
        options->archives_are_writable = random_below(random, 2) == 0;
        options->archives_max = random_below(random, 8) == 0
                                    ? BOARD_ARCHIVES_ALL
                                    : (uint32_t)random_below(random, PERIOD_COUNT_MAX + 1);
        board_options_begin_period(options, (int64_t)random_below(random, UINT64_C(1) << 41));
    }
    switch (random_below(random, 3)) {
    case 0:
        pick_contests(random, options, state);
        break;
    case 1:
        pick_window(random, options, state);
        break;
    default:
        break;
    }
}

/* Made by a tzdata in which the clock was an hour elsewhere. */
TEST(the_end_of_a_period_in_a_zone_is_that_of_todays_tzdata) {
    struct buffer out;
    char error[TZDATA_ERROR_MAX];
    struct board_options options;
    parse_options("FIELD a 30 TIME 30 MS", &options);
    options.period = (struct period){
        .unit = PERIOD_DAY, .every = 1, .zone = tzdata_find(BYTES("Europe/Berlin"), error)};
    assert_non_null(options.period.zone);
    board_options_begin_period(&options, INT64_C(1794830400000));
    int64_t end_ms = options.period_end_ms;
    options.period_end_ms += 3600000;
    buffer_init(&out, 0);
    effect_bytes_encode_begin(&encoder, &out);
    effect_bytes_encode(
        &encoder, &(struct effect){.kind = EFFECT_CREATE, .name = BYTES("d"), .options = &options});
    effect_bytes_decode_begin(&decoder, (struct bytes){out.at, out.size});
    assert_int_equal(effect_bytes_decode(&decoder), EFFECT_RECORD_EFFECT);
    assert_true(decoder.effect.options->period_end_ms == end_ms);
    assert_null(decoder.missing_zone);
    buffer_deinit(&out);
    tzdata_deinit();
}

TEST(more_rules_than_slots_are_all_kept) {
    enum { RULES = 3 * EFFECT_RULES_SLOTS, EFFECTS = 4000 };
    static struct board_options options[RULES];
    static struct board_state states[RULES];
    static struct effect effects[EFFECTS];
    struct random random = random_begin(__func__);
    for (int i = 0; i < RULES; i++) {
        make_random_options(&random, &options[i], &states[i]);
    }
    for (int i = 0; i < EFFECTS; i++) {
        /* Runs of a few options, so that slots are used again, then others, so that they are
         * replaced. */
        uint64_t which = random_below(&random, i / 200 % 2 == 0 ? 4 : RULES);
        effects[i] = (struct effect){
            .kind = random_below(&random, 2) == 0 ? EFFECT_CREATE : EFFECT_RENAME,
            .name = BYTES("k"),
            .to_name = BYTES("l"),
            .options = &options[which],
            .state = &states[which],
            .expire_at_ms = (int64_t)random_next(&random),
        };
    }
    assert_round_trip(effects, EFFECTS);
    tzdata_deinit();
}

/* The widest layout there is: 64 fields and 8 tags, whose names are as long as they may be. */
TEST(the_longest_rules_fit) {
    static char text[LAYOUT_TEXT_MAX];
    struct board_options options;
    int size = 0;
    for (int i = 0; i < LAYOUT_FIELDS_MAX; i++) {
        size += snprintf(text + size, sizeof text - (size_t)size,
                         "%sFIELD abcdefghijklmnopqrstuvwxyz0123%02d 1 ASC SCALE 17",
                         i > 0 ? " " : "", i);
    }
    for (int i = 0; i < TAGS_MAX; i++) {
        size += snprintf(text + size, sizeof text - (size_t)size,
                         " TAG abcdefghijklmnopqrstuvwxyz0123%02d 4", i);
    }
    parse_options(text, &options);
    options.period.unit = PERIOD_DAY;
    options.period.every = 1;
    board_options_begin_period(&options, 1);
    options.cap = UINT32_MAX;
    options.copies = true;
    options.is_archive = true;
    const struct board_state happened = {.ended_ms = INT64_MIN,
                                         .settled_expire_ms = INT64_MAX / 1000};
    const struct effect create = {
        .kind = EFFECT_CREATE, .name = BYTES("k"), .options = &options, .state = &happened};
    assert_round_trip((const struct effect[]){create, create}, 2);
}

/* ---- boards of a snapshot ---- */

static void assert_reads_open(const struct registry_key *key, int64_t expire_at_ms) {
    assert_int_equal(effect_bytes_decode(&decoder), EFFECT_RECORD_OPEN);
    assert_int_equal(decoder.effect.database, key->database);
    assert_text(decoder.effect.name, registry_name(key));
    assert_true(board_options_equal(decoder.effect.options, registry_options(key)));
    assert_true(decoder.effect.expire_at_ms == expire_at_ms);
}

/* A piece may be returned in several parts. */
static void assert_reads_entries(const struct board_stored *entries, uint32_t count) {
    while (count > 0) {
        assert_int_equal(effect_bytes_decode(&decoder), EFFECT_RECORD_ENTRIES);
        assert_in_range(decoder.entry_count, 1, count);
        for (uint32_t i = 0; i < decoder.entry_count; i++) {
            assert_true(decoder.entries[i].key == entries[i].key);
            assert_text(decoder.entries[i].member, stored_text(entries[i].member));
        }
        entries += decoder.entry_count;
        count -= decoder.entry_count;
    }
}

TEST(boards_of_a_snapshot_are_read_in_pieces) {
    static const uint32_t counts[] = {1, 511, 512, 513, 1024, 1025, 4000};
    static struct board_stored entries[4000];
    static char names[4000][12];
    static struct packed_name forms[4000];
    struct registry *registry = workload_create_registry(1);
    const struct registry_key *key = key_create(registry, 3, "daily", 1, 0);
    struct buffer chunk;
    for (uint32_t i = 0; i < 4000; i++) {
        int size = snprintf(names[i], sizeof names[i], i % 2 == 0 ? "m%u" : "user:%u", i);
        struct bytes name = {names[i], (size_t)size};
        name_pack(name, &forms[i]);
        entries[i] =
            (struct board_stored){.key = UINT64_MAX - i * i, .member = name_from(name, &forms[i])};
    }
    for (size_t i = 0; i < COUNT_OF(counts); i++) {
        struct effect put = {
            .kind = EFFECT_PUT, .name = BYTES("other"), .member = BYTES("bob"), .member_key = 7};
        struct effect take = {.kind = EFFECT_TAKE,
                              .database = key->database,
                              .name = registry_name(key),
                              .member = BYTES("kim")};
        begin_chunk(&chunk);
        effect_bytes_encode_open(&encoder, key, 99);
        effect_bytes_encode_piece(&encoder, NULL, 0, entries, counts[i]);
        effect_bytes_encode(&encoder, &put);
        effect_bytes_encode_piece(&encoder, NULL, 0, entries, counts[i]);
        effect_bytes_encode(&encoder, &take);
        effect_bytes_encode_close(&encoder);
        effect_bytes_encode_open(&encoder, key, REGISTRY_NO_EXPIRY);
        begin_reading(&chunk);
        assert_reads_open(key, 99);
        assert_reads_entries(entries, counts[i]);
        assert_reads_effect(&put);
        assert_reads_entries(entries, counts[i]);
        assert_reads_effect(&take);
        assert_int_equal(effect_bytes_decode(&decoder), EFFECT_RECORD_CLOSE);
        assert_reads_open(key, REGISTRY_NO_EXPIRY);
        assert_int_equal(effect_bytes_decode(&decoder), EFFECT_RECORD_END);
        buffer_deinit(&chunk);
    }
    registry_destroy(registry);
}

TEST(pieces_have_the_values_of_their_members) {
    enum { MEMBERS = 1300 };
    struct registry *registry = workload_create_registry(1);
    struct registry_key *key = key_create(registry, 3, "p", MEMBERS, 0);
    struct buffer chunk;
    struct tag_values values;
    uint32_t rank = 0;
    begin_chunk(&chunk);
    assert_true(effect_bytes_encode_next_piece(&encoder, &key->board, &rank));
    for (uint32_t i = 0; i < MEMBERS; i += 3) {
        unsigned full;
        values = (struct tag_values){.mask = 1 + i % 3, .at = {BYTES_INIT("DE"), BYTES_INIT("x")}};
        assert_int_equal(tags_set_at(&key->board, i, &values, &full), TAGS_OK);
    }
    while (effect_bytes_encode_next_piece(&encoder, &key->board, &rank)) {}
    begin_reading(&chunk);
    assert_int_equal(rank, MEMBERS);
    for (rank = 0; rank < MEMBERS; rank += decoder.entry_count) {
        assert_int_equal(effect_bytes_decode(&decoder), EFFECT_RECORD_ENTRIES);
        assert_int_equal(decoder.has_values, rank >= EFFECT_PIECE_ENTRIES);
        for (uint32_t i = 0; i < decoder.entry_count; i++) {
            char packed[TAG_VALUES_PACKED_MAX];
            tags_at(&key->board, rank + i, &values);
            assert_text(decoder.entries[i].member,
                        stored_text(board_at(&key->board, rank + i).member));
            if (decoder.has_values) {
                assert_text(decoder.entry_values[i],
                            (struct bytes){packed, tag_values_pack(&values, packed)});
            }
        }
    }
    assert_int_equal(effect_bytes_decode(&decoder), EFFECT_RECORD_END);
    buffer_deinit(&chunk);
    registry_destroy(registry);
}

/* ---- arbitrary bytes ---- */

static void assert_within(struct bytes text, struct bytes chunk, size_t size_max) {
    assert_in_range(text.size, 1, size_max);
    assert_true(text.at >= chunk.at && text.at + text.size <= chunk.at + chunk.size);
}

/* It may be empty. */
static void assert_hash_text(struct bytes text, struct bytes chunk) {
    if (text.size > 0) {
        assert_within(text, chunk, HASH_TEXT_MAX);
    }
}

static void assert_good_options(const struct board_options *options) {
    ASSERT_VALID(board_options_validate, options);
    assert_true(options->period.unit < PERIOD_UNITS);
}

static void assert_good_values(struct bytes packed, struct bytes chunk) {
    struct tag_values values;
    assert_within(packed, chunk, TAG_VALUES_PACKED_MAX);
    assert_true(tag_values_unpack(packed, TAGS_MAX, &values));
}

/* The effect could have been written. */
static void assert_good_effect(const struct effect *effect, struct bytes chunk) {
    assert_true(effect->kind < EFFECT_FILL || effect->kind == EFFECT_TAGS ||
                effect->kind == EFFECT_STATE || effect->kind == EFFECT_NOTE);
    assert_true(effect->database < REGISTRY_ALL_DATABASES);
    if (effect->kind != EFFECT_FLUSH) {
        assert_within(effect->name, chunk, REGISTRY_NAME_MAX);
    }
    bool is_of_board = effect->key_kind == NULL;
    assert_true(is_of_board || effect->key_kind == &key_kind_hash);
    if (!is_of_board && (effect->kind == EFFECT_PUT || effect->kind == EFFECT_TAKE)) {
        assert_hash_text(effect->member, chunk);
        assert_hash_text(effect->value, chunk);
    } else if (effect->kind == EFFECT_PUT || effect->kind == EFFECT_TAKE ||
               effect->kind == EFFECT_TAGS || effect->kind == EFFECT_NOTE) {
        assert_within(effect->member, chunk, BOARD_MEMBER_MAX);
    }
    if (effect->kind == EFFECT_TAGS) {
        assert_good_values(effect->value, chunk);
    } else if (effect->kind == EFFECT_NOTE && effect->value.size > 0) {
        assert_within(effect->value, chunk, REGISTRY_NOTE_MAX);
    }
    if (effect->kind == EFFECT_RENAME || effect->kind == EFFECT_COPY) {
        assert_within(effect->to_name, chunk, REGISTRY_NAME_MAX);
        assert_true(effect->to_database < REGISTRY_DATABASES);
    }
    if (!is_of_board) {
        assert_null(effect->options);
    } else if (effect->kind == EFFECT_RENAME || effect->kind == EFFECT_COPY ||
               effect->kind == EFFECT_CREATE || effect->kind == EFFECT_OPTIONS) {
        assert_good_options(effect->options);
        assert_true(!board_options_have_state(effect->options) ||
                    board_options_take_state(effect->options, effect->state));
    }
}

static void assert_good_record(enum effect_record record, struct bytes chunk) {
    switch (record) {
    case EFFECT_RECORD_EFFECT:
        assert_good_effect(&decoder.effect, chunk);
        break;
    case EFFECT_RECORD_OPEN:
        assert_within(decoder.effect.name, chunk, REGISTRY_NAME_MAX);
        assert_true(decoder.effect.database < REGISTRY_ALL_DATABASES);
        assert_good_options(decoder.effect.options);
        break;
    case EFFECT_RECORD_ENTRIES:
        assert_in_range(decoder.entry_count, 1, EFFECT_ENTRIES_MAX);
        for (uint32_t i = 0; i < decoder.entry_count; i++) {
            assert_within(decoder.entries[i].member, chunk, BOARD_MEMBER_MAX);
            if (decoder.has_values) {
                assert_good_values(decoder.entry_values[i], chunk);
            }
        }
        break;
    case EFFECT_RECORD_CLOSE:
    case EFFECT_RECORD_END:
    case EFFECT_RECORD_BAD:
        break;
    }
}

/* Read everything from an allocation of its exact size, so that a read out of bounds is detected.
 * Returns the number of records before the end. */
static uint32_t read_any(struct bytes given, enum effect_record *last) {
    uint32_t count = 0;
    char *copy = malloc(given.size + 1); /* the size may be 0 */
    assert_non_null(copy);
    struct bytes chunk = {.at = memcpy(copy + 1, given.at, given.size), .size = given.size};
    effect_bytes_decode_begin(&decoder, chunk);
    for (;;) {
        const char *before = decoder.at;
        *last = effect_bytes_decode(&decoder);
        if (*last == EFFECT_RECORD_END || *last == EFFECT_RECORD_BAD) {
            assert_true(*last == EFFECT_RECORD_BAD || decoder.at == chunk.at + chunk.size);
            free(copy);
            return count;
        }
        assert_true(decoder.at > before && decoder.at <= chunk.at + chunk.size);
        assert_good_record(*last, chunk);
        count++;
    }
}

/* A small chunk with a record of every kind. */
static void make_small_chunk(struct buffer *chunk) {
    struct effect effects[EACH_KIND];
    struct registry *registry = workload_create_registry(1);
    const struct registry_key *key = key_create(registry, 3, "daily", 1, 0);
    struct registry_key *tagged = key_create(registry, 3, "p", 2, 0);
    const struct board_stored entries[] = {{.key = 900, .member = stored_name(BYTES("zoe"))},
                                           {.key = 700, .member = stored_name(BYTES("ann"))}};
    const struct tag_values values = {.mask = 2, .at = {{NULL, 0}, BYTES_INIT("mage")}};
    unsigned full;
    assert_int_equal(tags_set_at(&tagged->board, 1, &values, &full), TAGS_OK);
    make_each_kind(effects);
    begin_chunk(chunk);
    for (int i = 0; i < EACH_KIND; i++) {
        effect_bytes_encode(&encoder, &effects[i]);
    }
    effect_bytes_encode_open(&encoder, key, 99);
    effect_bytes_encode_piece(&encoder, NULL, 0, entries, 2);
    effect_bytes_encode_piece(&encoder, NULL, 0, entries, 1);
    effect_bytes_encode_piece(&encoder, &tagged->board, 0, entries, 2);
    effect_bytes_encode_close(&encoder);
    assert_false(chunk->is_broken);
    registry_destroy(registry);
}
enum { SMALL_CHUNK_RECORDS = EACH_KIND + 5 };

TEST(a_chunk_cut_anywhere_is_read_up_to_there) {
    ENDED_BY(buffer_deinit) struct buffer chunk;
    make_small_chunk(&chunk);
    uint32_t before = 0;
    uint32_t ends = 0;
    for (size_t size = 0; size <= chunk.size; size++) {
        enum effect_record last;
        uint32_t count = read_any((struct bytes){chunk.at, size}, &last);
        /* Records are read one by one, and cutting between two is no error. */
        assert_in_range(count, before, before + 1);
        assert_true(count == before || last == EFFECT_RECORD_END);
        ends += last == EFFECT_RECORD_END;
        before = count;
    }
    assert_int_equal(before, SMALL_CHUNK_RECORDS);
    assert_true(ends > SMALL_CHUNK_RECORDS);
}

TEST(a_flipped_bit_gives_what_could_have_been_written_or_is_seen) {
    ENDED_BY(buffer_deinit) struct buffer chunk;
    uint32_t bad = 0;
    make_small_chunk(&chunk);
    for (size_t bit = 0; bit < chunk.size * 8; bit++) {
        enum effect_record last;
        chunk.at[bit / 8] ^= (char)(1 << bit % 8);
        (void)read_any(bytes_of(&chunk), &last);
        chunk.at[bit / 8] ^= (char)(1 << bit % 8);
        bad += last == EFFECT_RECORD_BAD;
    }
    assert_true(bad > 0);
}

TEST(any_bytes_are_read_without_harm) {
    struct random random = random_begin(__func__);
    ENDED_BY(buffer_deinit) struct buffer chunk;
    make_small_chunk(&chunk);
    int rounds = is_short_run() ? 20000 : 200000;
    for (int i = 0; i < rounds; i++) {
        size_t size = 1 + random_below(&random, chunk.size);
        OWNED char *any = malloc(size);
        assert_non_null(any);
        bool is_changed = random_below(&random, 2) == 0;
        memcpy(any, chunk.at + random_below(&random, chunk.size - size + 1), size);
        uint64_t changes = is_changed ? 1 + random_below(&random, 8) : size;
        for (uint64_t k = 0; k < changes; k++) {
            size_t at = is_changed ? random_below(&random, size) : k;
            any[at] = (char)random_next(&random);
        }
        enum effect_record last;
        (void)read_any((struct bytes){any, size}, &last);
    }
}

/* No tags, no TIME, one field of one bit. */
#define FIELD "\x00\x00\x01\x01\x00\x00\x01s"

TEST(lengths_that_lie_are_seen) {
    /* BOARD k of database 0, then: */
    static const struct {
        const char *at;
        size_t size;
    } records[] = {
        {"\xfc\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00x", 12}, /* PUT of 2^62 bytes */
        {"\xfd\xff\xff\xff\xff\xff\xff\xff\xff\x01x", 11},     /* TAKE likewise */
        {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10},      /* of unknown kind */
        {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11},  /* a varint too long */
        {"\x00\x00", 2},                                       /* PUT of nothing */
        {"\x01", 1},                                           /* TAKE of nothing */
        {"\x04\x09x", 3},                                      /* a key of 9 bytes */
        {"\x04\x81\x01x", 4},                                  /* with an end before its begin */
        {"\x27\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11},  /* PIECE of 2^64 - 1 */
        {"\x27\x00", 2},                                       /* PIECE of none */
        {"\x1f\x80\x80\x80\x80\x10\x00", 7},                   /* CUT from 2^32 on */
        {"\x0b\x10", 2},                                       /* FLUSH of database 16 */
        {"\x06\x17x", 3},                                      /* BOARD in database 23 */
        {"\x02\x00", 2},                                       /* BOARD without a name */
        {"\x03\x00", 2},                                       /* options of an empty slot */
        {"\x03\x90", 2},                                       /* of slot 16 */
        {"\x47\x00\x00", 3},                                   /* TAGS of no member */
        {"\x47\x02x", 3},                                      /* TAGS of a longer one */
        {"\x47\x01x\x01\x02y", 6},                             /* with a longer value */
        {"\x2f\x01\x01\x00x\x01", 6},                          /* PIECE without a value */
        /* Rules with CAP of 2^32, CAP twice, KEEP that is none, and an option that nobody knows. */
        {"\x03\x80\x01\x80\x80\x80\x80\x20\x00" FIELD, 17},
        {"\x03\x80\x01\x02\x01\x02\x00" FIELD, 15},
        {"\x03\x80\x03\x04\x00" FIELD, 13},
        {"\x03\x80\xf0\x02\x00" FIELD, 13},
    };
    for (size_t i = 0; i < COUNT_OF(records); i++) {
        char chunk[32] = "\x06\x00k";
        enum effect_record last;
        memcpy(chunk + 3, records[i].at, records[i].size);
        test_row("%zu", i);
        assert_int_equal(read_any((struct bytes){chunk, records[i].size + 3}, &last), 0);
        assert_int_equal(last, EFFECT_RECORD_BAD);
        /* Records of a board are invalid without one. */
        assert_int_equal(read_any((struct bytes){chunk + 3, records[i].size}, &last), 0);
        assert_int_equal(last, EFFECT_RECORD_BAD);
    }
}

/* ---- without memory ---- */

TEST(without_memory_the_buffer_is_broken_and_nothing_else) {
    struct effect effects[EACH_KIND];
    static char text[5000];
    memset(text, 'x', sizeof text);
    struct buffer chunk;
    make_each_kind(effects);
    effects[2].member = (struct bytes){text, sizeof text};
    effects[3].name = (struct bytes){text, sizeof text};
    uint64_t live_before = memory_live_count();
    uint32_t broken = 0;
    for (uint64_t nth = 1; nth < 20; nth++) {
        begin_chunk(&chunk);
        memory_fail_at(nth);
        for (int i = 0; i < EACH_KIND; i++) {
            effect_bytes_encode(&encoder, &effects[i]);
        }
        memory_fail_at(0);
        broken += chunk.is_broken;
        if (!chunk.is_broken) {
            effect_bytes_decode_begin(&decoder, bytes_of(&chunk));
            for (int i = 0; i < EACH_KIND; i++) {
                assert_reads_effect(&effects[i]);
            }
        }
        buffer_deinit(&chunk);
    }
    assert_in_range(broken, 2, 18);
    assert_int_equal(memory_live_count(), live_before);
}
