/* Effects: a registry to which all effects of another are applied equals it, and invalid effects
 * are refused. */
#include "skiplist/keyspace/effect.h"
#include "tests/support/keyspace.h"
#include "tests/support/layout_text.h"
#include "tests/support/registry_workload.h"

/* ---- a twin that follows by effects ---- */

enum { QUEUE_MAX = 300, MEMBER_ROOM = 512, NAME_ROOM = 128 };

/* Effects on members, queued to be applied together. */
struct queue {
    struct effect effects[QUEUE_MAX];
    char names[QUEUE_MAX][NAME_ROOM];
    char members[QUEUE_MAX][MEMBER_ROOM];
    char values[QUEUE_MAX][MEMBER_ROOM];
    uint32_t count;
};

struct twin {
    struct workload workload;
    struct effect_listener listener;
    struct registry *copy;
    uint64_t told[EFFECT_NOTE + 1];
    bool is_queueing;
    struct queue queue;
    uint64_t failures; /* of applying, for lack of memory */
};

/* Lack of memory stops it after *applied effects; the rest can be applied later. */
static void apply_queue(struct twin *twin) {
    struct queue *queue = &twin->queue;
    uint32_t done = 0;
    while (done < queue->count) {
        uint32_t applied = UINT32_MAX;
        if (random_below(&twin->workload.random, 2) == 0) {
            memory_fail_at(1 + random_below(&twin->workload.random, 20));
        }
        enum effect_status status =
            effect_apply(twin->copy, queue->effects + done, queue->count - done, &applied);
        memory_fail_at(0);
        assert_true(applied <= queue->count - done);
        assert_int_equal(status == EFFECT_OK, applied == queue->count - done);
        assert_true(status == EFFECT_OK || status == EFFECT_OUT_OF_MEMORY);
        twin->failures += status != EFFECT_OK;
        done += applied;
    }
    queue->count = 0;
}

static void add_to_queue(struct twin *twin, const struct effect *effect) {
    struct queue *queue = &twin->queue;
    if (queue->count == QUEUE_MAX) {
        apply_queue(twin);
    }
    uint32_t at = queue->count++;
    queue->effects[at] = *effect;
    queue->effects[at].key = NULL;
    assert_true(effect->name.size <= NAME_ROOM);
    memcpy(queue->names[at], effect->name.at, effect->name.size);
    queue->effects[at].name.at = queue->names[at];
    assert_true(effect->member.size <= MEMBER_ROOM);
    memcpy(queue->members[at], effect->member.at, effect->member.size);
    queue->effects[at].member.at = queue->members[at];
    if (effect->value.size > 0) {
        assert_true(effect->value.size <= MEMBER_ROOM);
        memcpy(queue->values[at], effect->value.at, effect->value.size);
        queue->effects[at].value.at = queue->values[at];
    }
}

static void on_effect(void *context, const struct effect *effect) {
    struct twin *twin = context;
    /* The failure was meant for the other registry. */
    memory_fail_at(0);
    twin->told[effect->kind]++;
    if (twin->is_queueing && (effect->kind == EFFECT_PUT || effect->kind == EFFECT_TAKE ||
                              effect->kind == EFFECT_TAGS)) {
        add_to_queue(twin, effect);
        return;
    }
    apply_queue(twin);
    registry_follow(twin->copy, effect);
}

static bool is_each_told(const struct twin *twin) {
    bool is_each = true;
    for (int i = 0; i <= EFFECT_NOTE; i++) {
        is_each = is_each && twin->told[i] > 0;
    }
    return is_each;
}

/* So many steps, and on until each kind of effect has come. */
static void run_twins(const char *test_name, uint32_t members_max, int steps, int compare_every,
                      bool is_queueing) {
    static struct twin twin;
    uint64_t live_before = memory_live_count();
    memset(&twin, 0, sizeof twin);
    workload_begin(&twin.workload, test_name, members_max);
    twin.workload.has_ids = true;
    twin.copy = workload_create_registry(0xface);
    twin.is_queueing = is_queueing;
    twin.listener = (struct effect_listener){.receive = on_effect, .context = &twin};
    effect_listener_add(twin.workload.registry, &twin.listener);
    for (int i = 1; i <= steps || (!is_each_told(&twin) && i <= 20 * steps); i++) {
        if (random_below(&twin.workload.random, 3) == 0) {
            memory_fail_at(1 + random_below(&twin.workload.random, 6));
        }
        workload_step(&twin.workload);
        (void)registry_free_step(twin.copy, 100);
        if (i % compare_every == 0) {
            apply_queue(&twin);
            workload_assert_equal(twin.workload.registry, twin.copy);
        }
    }
    assert_true(is_each_told(&twin));
    assert_true(twin.workload.failures > 0);
    assert_int_equal(twin.failures > 0, is_queueing);
    registry_destroy(twin.copy);
    workload_end(&twin.workload);
    assert_int_equal(memory_live_count(), live_before);
}

TEST(whoever_applies_all_effects_has_the_same) {
    run_twins(__func__, 12, (int)test_rounds(20000, 4000), 1, false);
}

TEST(the_same_holds_of_large_boards) {
    run_twins(__func__, 1000, (int)test_rounds(20000, 4000), 100, false);
}

/* Only large boards are prefetched. */
TEST(effects_may_be_applied_many_at_once) {
    run_twins(__func__, 12, (int)test_rounds(20000, 4000), 20, true);
    run_twins(__func__, 1000, (int)test_rounds(20000, 4000), 100, true);
}

/* ---- what is reported ---- */

static struct registry *create_registry(void) {
    return workload_create_registry(1);
}

#define TOLD_TEST(name) TOLD_TEST_OF(name, create_registry)

static struct registry_key *write_member(struct registry *registry, const char *name,
                                         const char *member) {
    bool is_new;
    struct registry_key *key =
        registry_find_or_create(registry, 0, bytes_from_text(name), 0, &is_new);
    assert_non_null(key);
    assert_true(key_put(registry, key, bytes_from_text(member), 1));
    return key;
}

TOLD_TEST(a_board_that_is_written_is_told_before_its_first_member) {
    key_create(registry, 0, "p", 0, 0);
    expect_told(told, "");
    write_member(registry, "p", "ann");
    expect_told(told, "create p; put p ann; ");
    write_member(registry, "p", "ann");
    expect_told(told, "put p ann; ");
}

TOLD_TEST(a_board_that_is_taken_back_is_never_told) {
    registry_take_back(registry, key_create(registry, 0, "p", 0, 0));
    expect_told(told, "");
}

TOLD_TEST(what_stands_at_a_destination_is_told_as_removed_before) {
    struct registry_key *from = write_member(registry, "p", "ann");
    write_member(registry, "q", "bob");
    expect_told(told, "create p; put p ann; create q; put q bob; ");
    assert_int_equal(registry_copy(registry, from, 0, BYTES("q"), 0), REGISTRY_OK);
    expect_told(told, "remove q; copy p q; ");
    assert_int_equal(registry_rename(registry, from, 0, BYTES("q"), 0), REGISTRY_OK);
    expect_told(told, "remove q; rename p q; ");
    struct board board;
    assert_true(registry_create_board(registry, BYTES("q"), 0, &board));
    assert_int_equal(registry_put_board(registry, 0, BYTES("q"), &board, 0), REGISTRY_OK);
    expect_told(told, "remove q; fill q; ");
    assert_int_equal(registry_flush(registry, REGISTRY_DATABASES), 1);
    expect_told(told, "flush; ");
}

/* Of 8 bytes, the number, in which `told` shows the first as text. */
static struct registry_key *stage(struct registry *registry, uint64_t *number) {
    static const struct board_options like = {.limit = 5};
    struct board board;
    assert_true(registry_create_board(registry, BYTES("q"), 0, &board));
    struct registry_key *key = registry_board_stage(registry, board_layout(&board), number);
    registry_discard_board(registry, &board);
    assert_non_null(key);
    assert_ptr_equal(key, registry_board_find_staged(registry, *number));
    assert_int_equal(registry_options(key)->limit, 0);
    assert_true(key_put(registry, key, BYTES("ann"), like.limit));
    return key;
}

TOLD_TEST(a_board_that_is_made_in_steps_is_told_as_a_key_that_gets_its_name) {
    uint64_t numbers[3];
    struct board_options options;
    write_member(registry, "q", "bob");
    told->text[0] = '\0';
    struct registry_key *key = stage(registry, &numbers[0]);
    (void)stage(registry, &numbers[1]);
    assert_null(strstr(told->text, " q"));
    told->text[0] = '\0';
    board_options_copy(registry_options(key_find(registry, 0, "q", 0)), &options);
    options.limit = 7;
    assert_int_equal(registry_board_unstage(registry, key, 0, BYTES("q"), &options, false, 0),
                     REGISTRY_OK);
    assert_non_null(strstr(told->text, "remove q; rename "));
    assert_null(registry_board_find_staged(registry, numbers[0]));
    key = key_find(registry, 0, "q", 0);
    assert_int_equal(registry_options(key)->limit, 7);
    assert_int_equal(board_count(&key->board), 1);
    told->text[0] = '\0';
    /* For those who do not know of it. */
    key = registry_board_find_staged(registry, numbers[1]);
    assert_int_equal(registry_board_unstage(registry, key, 0, BYTES("q"), &options, true, 0),
                     REGISTRY_OK);
    assert_null(strstr(told->text, "rename"));
    assert_non_null(strstr(told->text, "remove q; fill q; "));
    (void)stage(registry, &numbers[2]);
    registry_board_drop_staged(registry);
    assert_int_equal(registry_count(registry, REGISTRY_STAGING), 0);
    assert_int_equal(registry_count(registry, 0), 1);
}

TOLD_TEST(a_periods_end_is_told_as_what_it_amounts_to) {
    const int64_t day_ms = INT64_C(86400000);
    write_member(registry, "d", "ann");
    write_member(registry, "d@1970-01-01", "old");
    write_member(registry, "m", "ann");
    told->text[0] = '\0';
    /* Each has a period; the first archive gets a number, because the other board is still there. */
    assert_int_equal(registry_roll_due(registry, day_ms, 10), 3);
    expect_told(told,
                "remove m; rename d d@1970-01-01.2; rename d@1970-01-01 d@1970-01-01@1970-01-01; ");
}

TOLD_TEST(a_created_boards_roll_tells_the_next_one) {
    struct board_options options = {.is_created = true};
    layout_init_default(&options.layout);
    struct registry_key *key = key_create_like(registry, "k", &options, 0, 0);
    expect_told(told, "create k; ");
    assert_int_equal(registry_roll(registry, key, BYTES("a"), NULL, REGISTRY_NO_EXPIRY, 0),
                     REGISTRY_OK);
    expect_told(told, "rules k; ");
    write_member(registry, "k", "ann");
    key_expire(registry, key, 99);
    expect_told(told, "put k ann; expire k; ");
    assert_int_equal(registry_roll(registry, key, BYTES("a"), NULL, REGISTRY_NO_EXPIRY, 0),
                     REGISTRY_OK);
    expect_told(told, "rename k a; create k; expire k; ");
    assert_null(registry_find(registry, 0, BYTES("k"), 99));
    expect_told(told, "remove k; ");
}

/* ---- tags ---- */

static void assert_impossible(struct registry *registry, struct effect effect) {
    uint32_t applied = 7;
    assert_int_equal(effect_apply(registry, &effect, 1, &applied), EFFECT_IMPOSSIBLE);
    assert_int_equal(applied, 0);
}

static struct board_options tagged_options(const char *layout) {
    struct board_options options = {.is_created = true};
    char error[LAYOUT_ERROR_MAX];
    assert_int_equal(layout_parse(bytes_from_text(layout), &options.layout, error), LAYOUT_OK);
    return options;
}

#define TAGGED "FIELD a 30 TIME 30 S TAG country 2 TAG class 1"

/* country, class: NULL: not named. */
static enum tags_status tag(struct registry *registry, struct registry_key *key, const char *member,
                            const char *country, const char *class) {
    struct tag_values values = {.mask = 0};
    struct board_member found;
    unsigned full;
    if (country != NULL) {
        values.mask |= 1;
        values.at[0] = bytes_from_text(country);
    }
    if (class != NULL) {
        values.mask |= 2;
        values.at[1] = bytes_from_text(class);
    }
    board_look_up(&key->board, bytes_from_text(member), NULL, &found);
    assert_true(found.is_there);
    return registry_board_tag(registry, key, &found, &values, &full);
}

TOLD_TEST(values_are_told_as_they_were_set_unless_they_were_so_before) {
    struct board_options options = tagged_options(TAGGED);
    struct registry_key *key = key_create_like(registry, "k", &options, 1, 0);
    expect_told(told, "create k; put k m0; ");
    assert_int_equal(tag(registry, key, "m0", "DE", NULL), TAGS_OK);
    expect_told(told, "tags k m0=\x01\x02"
                      "DE; ");
    assert_int_equal(tag(registry, key, "m0", "DE", NULL), TAGS_SAME);
    expect_told(told, "");
    assert_int_equal(tag(registry, key, "m0", "DE", "mage"), TAGS_OK);
    expect_told(told, "tags k m0=\x03\x02"
                      "DE\x04mage; ");
    assert_true(key_put(registry, key, BYTES("m1"), 1));
    told->text[0] = '\0';
    assert_int_equal(tag(registry, key, "m1", "FR", "rogue"), TAGS_FULL);
    expect_told(told, "");
}

/* The members' text of a FILL. */
static void on_fill(void *context, const struct effect *effect) {
    struct told *parts = context;
    struct effect_fill fill = {.whole = *effect};
    struct effect part;
    while (effect->kind == EFFECT_FILL && effect_fill_next(&fill, &part)) {
        told_receive(parts, &part);
    }
}

static void assert_fills_as(const char *layout, const char *expected) {
    struct registry *registry = create_registry();
    struct told parts = {.text = ""};
    struct effect_listener listener = {.receive = on_fill, .context = &parts};
    struct board_options options = tagged_options(layout);
    struct board board;
    const struct tag_values values = {.mask = 3, .at = {BYTES_INIT("DE"), BYTES_INIT("x")}};
    unsigned full;
    assert_true(registry_create_board_like(registry, &options, &board));
    assert_true(board_fill(&board, 0, 3));
    assert_int_equal(tags_set_at(&board, 0, &values, &full), TAGS_OK);
    assert_int_equal(tags_set_at(&board, 2, &values, &full), TAGS_OK);
    effect_listener_add(registry, &listener);
    assert_int_equal(registry_put_board(registry, 0, BYTES("k"), &board, 0), REGISTRY_OK);
    assert_string_equal(parts.text, expected);
    registry_destroy(registry);
}

#define VALUES                                                                                     \
    "\x03\x02"                                                                                     \
    "DE\x01x; "

TEST(a_fill_has_the_values_of_its_members) {
    assert_fills_as(TAGGED, "create k; put k m0; tags k m0=" VALUES
                            "put k m1; put k m2; tags k m2=" VALUES);
    assert_fills_as("FIELD a 30 TIME 30 S LATEST TAG country 2 TAG class 1",
                    "create k; put k m2; tags k m2=" VALUES
                    "put k m1; put k m0; tags k m0=" VALUES);
}

REGISTRY_TEST_OF(values_that_do_not_fit_are_refused, create_registry) {
    struct board_options options = tagged_options(TAGGED);
    struct registry_key *key = key_create_like(registry, "k", &options, 2, 0);
    key_create_like(registry, "p", workload_options('t'), 1, 0);
    assert_int_equal(tag(registry, key, "m0", NULL, "mage"), TAGS_OK);
    const struct bytes name = BYTES("k"), member = BYTES("m1");
    const struct effect refused[] = {
        {.kind = EFFECT_TAGS, .name = BYTES("no"), .member = member, .value = BYTES("\1\1a")},
        {.kind = EFFECT_TAGS, .name = BYTES("p"), .member = BYTES("m0"), .value = BYTES("\1\1a")},
        {.kind = EFFECT_TAGS, .name = name, .member = BYTES("m2"), .value = BYTES("\1\1a")},
        {.kind = EFFECT_TAGS, .name = name, .member = member, .value = BYTES("")},
        {.kind = EFFECT_TAGS, .name = name, .member = member, .value = BYTES("\1\2a")},
        {.kind = EFFECT_TAGS, .name = name, .member = member, .value = BYTES("\4\1a")},
        {.kind = EFFECT_TAGS, .name = name, .member = member, .value = BYTES("\2\1a")}, /* full */
        {.kind = EFFECT_TAGS,
         .key_kind = &key_kind_hash,
         .name = name,
         .member = member,
         .value = BYTES("\1\1a")},
    };
    for (size_t i = 0; i < COUNT_OF(refused); i++) {
        test_row("%zu", i);
        assert_impossible(registry, refused[i]);
    }
    struct tag_values values;
    tags_at(&key->board, 1, &values);
    assert_int_equal(values.mask, 0);
}

static void assert_value(const struct registry_key *key, uint32_t rank, unsigned index,
                         const char *expected) {
    struct tag_values values;
    tags_at(&key->board, rank, &values);
    assert_int_equal(values.mask >> index & 1, expected[0] != '\0');
    assert_true(expected[0] == '\0' || bytes_equal(values.at[index], bytes_from_text(expected)));
}

REGISTRY_TEST_OF(other_tags_are_rules_that_change, create_registry) {
    static const char *const values[] = {"a", "b", "c"};
    struct board_options options = tagged_options(TAGGED);
    struct board_options other = tagged_options("FIELD a 30 TIME 30 S TAG clan 9 TAG country 1");
    struct board_options larger = tagged_options("FIELD a 30 TIME 30 S TAG clan 9 TAG country 3");
    struct registry_key *key = key_create_like(registry, "k", &options, 3, 0);
    unsigned full = 7;
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(tag(registry, key, formatted("m%u", i), values[i], "x"), TAGS_OK);
    }
    assert_false(registry_board_tags_fit(key, &other.layout, &full));
    assert_int_equal(full, 1);
    assert_impossible(
        registry, (struct effect){.kind = EFFECT_OPTIONS, .name = BYTES("k"), .options = &other});
    assert_true(registry_board_tags_fit(key, &larger.layout, &full));
    registry_apply(registry,
                   (struct effect){.kind = EFFECT_OPTIONS, .name = BYTES("k"), .options = &larger});
    assert_true(board_options_equal(registry_options(key), &larger));
    for (unsigned i = 0; i < 3; i++) {
        assert_value(key, i, 0, "");
        assert_value(key, i, 1, values[i]);
    }
    /* The value that is left has any of the places that there were. */
    for (unsigned i = 0; i < 2; i++) {
        struct tag_values none = {.mask = 2};
        struct board_member member;
        board_look_up(&key->board, bytes_from_text(formatted("m%u", i)), NULL, &member);
        assert_int_equal(registry_board_tag(registry, key, &member, &none, &full), TAGS_OK);
    }
    assert_true(registry_board_tags_fit(key, &other.layout, &full));
    registry_apply(registry,
                   (struct effect){.kind = EFFECT_OPTIONS, .name = BYTES("k"), .options = &other});
    assert_true(board_options_equal(registry_options(key), &other));
    assert_value(key, 0, 1, "");
    assert_value(key, 2, 1, "c");
    ASSERT_VALID(registry_validate, registry);
}

/* Whatever values there were before. */
REGISTRY_TEST_OF(a_tag_with_fewer_bits_takes_new_values, create_registry) {
    struct board_options options = tagged_options("FIELD a 40 TAG country 4");
    struct board_options smaller = tagged_options("FIELD a 40 TAG country 2");
    struct registry_key *key = key_create_like(registry, "k", &options, 20, 0);
    for (unsigned round = 0; round < 2; round++) {
        for (unsigned i = 0; i < 15; i++) {
            assert_int_equal(tag(registry, key, formatted("m%u", i), formatted("c%u", i), NULL),
                             TAGS_OK);
        }
        for (unsigned i = 0; i < 15; i++) {
            if (round == 0 ? i >= 2 : i < 13) {
                assert_int_equal(tag(registry, key, formatted("m%u", i), "", NULL), TAGS_OK);
            }
        }
        registry_apply(
            registry,
            (struct effect){.kind = EFFECT_OPTIONS, .name = BYTES("k"), .options = &smaller});
        assert_value(key, round == 0 ? 1 : 14, 0, round == 0 ? "c1" : "c14");
        assert_int_equal(tag(registry, key, "m17", "new", NULL), TAGS_OK);
        assert_int_equal(tag(registry, key, "m18", "more", NULL), TAGS_FULL);
        assert_value(key, 17, 0, "new");
        ASSERT_VALID(registry_validate, registry);
        registry_apply(
            registry,
            (struct effect){.kind = EFFECT_OPTIONS, .name = BYTES("k"), .options = &options});
        assert_int_equal(tag(registry, key, "m17", "", NULL), TAGS_OK);
        for (unsigned i = 0; round == 0 && i < 2; i++) {
            assert_int_equal(tag(registry, key, formatted("m%u", i), "", NULL), TAGS_OK);
        }
    }
}

/* Whether they are freed already must not decide what can be applied. */
REGISTRY_TEST_OF(values_of_removed_members_are_in_nobodys_way, create_registry) {
    struct board_options options = tagged_options("FIELD a 40 TAG country 2");
    struct board_options smaller = tagged_options("FIELD a 40 TAG country 1");
    for (int i = 0; i < 2; i++) {
        struct registry_key *key = key_create_like(registry, i == 0 ? "k" : "l", &options, 5000, 0);
        for (unsigned rank = 0; rank < 4990; rank++) {
            assert_int_equal(
                tag(registry, key, formatted("m%u", rank), formatted("c%u", rank % 3), NULL),
                TAGS_OK);
        }
        registry_board_cut(registry, key, 0, 4995);
        assert_true(board_has_remains(&key->board));
        if (i == 0) {
            assert_int_equal(tag(registry, key, "m4998", "new", NULL), TAGS_OK);
            assert_value(key, 3, 0, "new");
        } else {
            registry_apply(
                registry,
                (struct effect){.kind = EFFECT_OPTIONS, .name = BYTES("l"), .options = &smaller});
        }
        ASSERT_VALID(registry_validate, registry);
    }
}

/* ---- invalid effects ---- */

TEST(what_does_not_fit_is_refused_and_changes_nothing) {
    struct registry *registry = workload_create_registry(1);
    struct registry *same = workload_create_registry(2);
    write_member(registry, "p", "ann");
    write_member(registry, "q", "ann");
    write_member(same, "p", "ann");
    write_member(same, "q", "ann");
    const struct board_options *options =
        registry_options(registry_find(registry, 0, BYTES("p"), 0));
    struct board_options other = {.cap = 1};
    layout_init_default(&other.layout);
    static char long_text[REGISTRY_KEY_MAX + 100];
    const struct effect refused[] = {
        {.kind = EFFECT_PUT, .name = BYTES("no"), .member = BYTES("ann")},
        {.kind = EFFECT_PUT, .database = 16, .name = BYTES("p"), .member = BYTES("ann")},
        {.kind = EFFECT_PUT, .name = BYTES("p"), .member = BYTES("")},
        {.kind = EFFECT_PUT, .name = BYTES("p"), .member = {long_text, BOARD_MEMBER_MAX + 1}},
        {.kind = EFFECT_PUT,
         .name = BYTES("p"),
         .member = BYTES("ann"),
         .member_key = UINT64_C(1) << 60},
        {.kind = EFFECT_TAKE, .name = BYTES("p"), .member = BYTES("bob")},
        {.kind = EFFECT_TAKE, .name = BYTES("no"), .member = BYTES("ann")},
        {.kind = EFFECT_CUT, .name = BYTES("no")},
        {.kind = EFFECT_CUT, .name = BYTES("p"), .rank = 1, .count = 1},
        {.kind = EFFECT_CUT, .name = BYTES("p"), .rank = 2, .count = UINT32_MAX},
        {.kind = EFFECT_CREATE, .name = BYTES("p"), .options = options},
        {.kind = EFFECT_CREATE, .name = BYTES(""), .options = options},
        {.kind = EFFECT_CREATE, .name = {long_text, sizeof long_text}, .options = options},
        {.kind = EFFECT_CREATE, .database = 16, .name = BYTES("r"), .options = options},
        {.kind = EFFECT_CREATE, .name = BYTES("r")},
        {.kind = EFFECT_REMOVE, .name = BYTES("no")},
        {.kind = EFFECT_FLUSH, .database = 16},
        {.kind = EFFECT_RENAME, .name = BYTES("p"), .to_name = BYTES("q"), .options = options},
        {.kind = EFFECT_RENAME, .name = BYTES("p"), .to_name = BYTES("r"), .options = &other},
        {.kind = EFFECT_RENAME, .name = BYTES("no"), .to_name = BYTES("r"), .options = options},
        {.kind = EFFECT_COPY, .name = BYTES("p"), .to_name = BYTES("p"), .options = options},
        {.kind = EFFECT_COPY,
         .name = BYTES("p"),
         .to_database = 16,
         .to_name = BYTES("p"),
         .options = options},
        {.kind = EFFECT_EXPIRE, .name = BYTES("no"), .expire_at_ms = 5},
        {.kind = EFFECT_OPTIONS, .name = BYTES("p"), .options = &other},
        {.kind = EFFECT_OPTIONS, .name = BYTES("p")},
        {.kind = EFFECT_OPTIONS, .name = BYTES("no"), .options = options},
        {.kind = EFFECT_FILL, .name = BYTES("r"), .options = options},
    };
    for (size_t i = 0; i < COUNT_OF(refused); i++) {
        assert_impossible(registry, refused[i]);
        workload_assert_equal(registry, same);
    }
    registry_destroy(registry);
    registry_destroy(same);
}

REGISTRY_TEST_OF(the_effects_before_one_that_does_not_fit_are_applied, create_registry) {
    struct board_options options = {.cap = 0};
    layout_init_default(&options.layout);
    const struct effect effects[] = {
        {.kind = EFFECT_CREATE, .name = BYTES("k"), .options = &options},
        {.kind = EFFECT_PUT, .name = BYTES("k"), .member = BYTES("ann"), .member_key = 5},
        {.kind = EFFECT_PUT, .name = BYTES("k"), .member = BYTES("bob"), .member_key = 5},
        {.kind = EFFECT_TAKE, .name = BYTES("k"), .member = BYTES("kim")},
        {.kind = EFFECT_REMOVE, .name = BYTES("k")},
    };
    uint32_t applied = 0;
    assert_int_equal(effect_apply(registry, effects, 5, &applied), EFFECT_IMPOSSIBLE);
    assert_int_equal(applied, 3);
    assert_int_equal(board_count(&registry_find(registry, 0, BYTES("k"), 0)->board), 2);
    assert_int_equal(effect_apply(registry, effects, 0, &applied), EFFECT_OK);
    assert_int_equal(applied, 0);
}

REGISTRY_TEST_OF(an_effect_of_another_kind_is_impossible, create_registry) {
    const struct bytes name = BYTES("p"), member = BYTES("m"), board = BYTES("q");
    const struct board_options *options = workload_options('p');
    const struct effect of_hashes[] = {
        {.kind = EFFECT_CREATE, .key_kind = &key_kind_hash, .name = name},
        {.kind = EFFECT_PUT,
         .key_kind = &key_kind_hash,
         .name = name,
         .member = member,
         .value = member},
    };
    const struct effect refused[] = {
        {.kind = EFFECT_PUT, .name = name, .member = member, .member_key = 7},
        {.kind = EFFECT_TAKE, .name = name, .member = member},
        {.kind = EFFECT_CUT, .name = name, .count = 1},
        {.kind = EFFECT_OPTIONS, .name = name, .options = options},
        {.kind = EFFECT_OPTIONS, .key_kind = &key_kind_hash, .name = name, .options = options},
        {.kind = EFFECT_CREATE, .key_kind = &key_kind_hash, .name = member, .options = options},
        {.kind = EFFECT_CREATE, .name = member},
        {.kind = EFFECT_RENAME, .name = name, .to_name = member, .options = options},
        {.kind = EFFECT_CUT, .key_kind = &key_kind_hash, .name = name, .count = 1},
        {.kind = EFFECT_PUT, .key_kind = &key_kind_hash, .name = board, .member = member},
    };
    const struct effect of_any[] = {
        {.kind = EFFECT_EXPIRE, .name = name, .expire_at_ms = 5},
        {.kind = EFFECT_RENAME, .name = name, .to_name = member, .expire_at_ms = 5},
        {.kind = EFFECT_REMOVE, .name = member},
    };
    uint32_t applied;
    assert_int_equal(effect_apply(registry, of_hashes, 2, &applied), EFFECT_OK);
    key_create_like(registry, "q", options, 0, 0);
    for (size_t i = 0; i < COUNT_OF(refused); i++) {
        test_row("%zu", i);
        assert_impossible(registry, refused[i]);
    }
    assert_int_equal(hash_count(registry_hash(registry_find(registry, 0, name, 0))), 1);
    assert_int_equal(effect_apply(registry, of_any, 3, &applied), EFFECT_OK);
    assert_int_equal(registry_count(registry, 0), 1);
}

/* ---- listeners ---- */

REGISTRY_TEST_OF(listeners_come_and_go, create_registry) {
    struct told told[3];
    for (int i = 0; i < 3; i++) {
        tell(registry, &told[i]);
        effect_listener_add(registry, &told[i].listener);
    }
    key_create_like(registry, "a", workload_options('p'), 0, 0);
    effect_listener_remove(registry, &told[1].listener);
    effect_listener_remove(registry, &told[1].listener);
    key_create_like(registry, "b", workload_options('p'), 0, 0);
    effect_listener_remove(registry, &told[0].listener);
    effect_listener_add(registry, &told[1].listener);
    key_create_like(registry, "c", workload_options('p'), 0, 0);
    effect_listener_remove(registry, &told[2].listener);
    effect_listener_remove(registry, &told[1].listener);
    key_create_like(registry, "d", workload_options('p'), 0, 0);
    expect_told(&told[0], "create a; create b; ");
    expect_told(&told[1], "create a; create c; ");
    expect_told(&told[2], "create a; create b; create c; ");
}
