/* Effects: a registry to which all effects of another are applied equals it, and invalid effects
 * are refused. */
#include "tests/support/test.h"

#include "codec/memory.h"
#include "skiplist/keyspace/effect_listener.h"
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
    uint64_t told[EFFECT_FILL + 1];
    bool is_queueing;
    struct queue queue;
    uint64_t failures; /* of applying, for lack of memory */
};

static void apply_one(struct registry *registry, const struct effect *effect) {
    uint32_t applied = 7;
    /* As one that was read: the key is unknown. */
    struct effect decoded = *effect;
    decoded.key = NULL;
    assert_int_equal(effect_apply(registry, &decoded, 1, &applied), EFFECT_OK);
    assert_int_equal(applied, 1);
}

/* A FILL becomes CREATE and PUTs. */
static void apply_fill(struct registry *registry, const struct effect *effect) {
    const struct board *board = &effect->key->board;
    uint32_t count = board_count(board);
    struct effect part = *effect;
    part.kind = EFFECT_CREATE;
    apply_one(registry, &part);
    part.kind = EFFECT_PUT;
    for (uint32_t i = 0; i < count; i++) {
        bool is_latest = board_layout(board)->time.bits > 0 && board_layout(board)->time.is_latest;
        struct board_entry entry = board_at(board, is_latest ? count - 1 - i : i);
        part.member = entry.member;
        part.member_key = entry.key;
        apply_one(registry, &part);
    }
}

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
    if (twin->is_queueing && (effect->kind == EFFECT_PUT || effect->kind == EFFECT_TAKE)) {
        add_to_queue(twin, effect);
        return;
    }
    apply_queue(twin);
    if (effect->kind == EFFECT_FILL) {
        apply_fill(twin->copy, effect);
    } else {
        apply_one(twin->copy, effect);
    }
}

static void run_twins(const char *test_name, uint32_t members_max, int steps, int compare_every,
                      bool is_queueing) {
    static struct twin twin;
    uint64_t live_before = memory_live_count();
    memset(&twin, 0, sizeof twin);
    workload_begin(&twin.workload, test_name, members_max);
    twin.copy = workload_create_registry(0xface);
    twin.is_queueing = is_queueing;
    twin.listener = (struct effect_listener){.receive = on_effect, .context = &twin};
    effect_listener_add(twin.workload.registry, &twin.listener);
    for (int i = 1; i <= steps; i++) {
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
    for (int i = 0; i <= EFFECT_FILL; i++) {
        assert_true(twin.told[i] > 0);
    }
    assert_true(twin.workload.failures > 0);
    assert_int_equal(twin.failures > 0, is_queueing);
    registry_destroy(twin.copy);
    workload_end(&twin.workload);
    assert_int_equal(memory_live_count(), live_before);
}

TEST(whoever_applies_all_effects_has_the_same) {
    run_twins(__func__, 12, is_short_run() ? 4000 : 20000, 1, false);
}

TEST(the_same_holds_of_large_boards) {
    run_twins(__func__, 1000, is_short_run() ? 4000 : 20000, 100, false);
}

/* Only large boards are prefetched. */
TEST(effects_may_be_applied_many_at_once) {
    run_twins(__func__, 12, is_short_run() ? 4000 : 20000, 20, true);
    run_twins(__func__, 1000, is_short_run() ? 4000 : 20000, 100, true);
}

/* ---- what is reported ---- */

struct heard {
    struct effect_listener listener;
    char text[4096];
};

static void write_down(void *context, const struct effect *effect) {
    static const char *const names[] = {"PUT",    "TAKE", "CUT",    "CREATE", "REMOVE", "FLUSH",
                                        "RENAME", "COPY", "EXPIRE", "RULES",  "FILL"};
    struct heard *heard = context;
    size_t size = strlen(heard->text);
    snprintf(heard->text + size, sizeof heard->text - size, "%s%s %.*s%s%.*s%s%.*s",
             size > 0 ? ", " : "", names[effect->kind], (int)effect->name.size, effect->name.at,
             effect->to_name.size > 0 ? " " : "", (int)effect->to_name.size, effect->to_name.at,
             effect->member.size > 0 ? " " : "", (int)effect->member.size, effect->member.at);
    assert_int_equal(effect->kind == EFFECT_FLUSH, effect->key == NULL);
}

static void assert_received(struct heard *heard, const char *text) {
    assert_string_equal(heard->text, text);
    heard->text[0] = '\0';
}

static struct registry *create_listened(struct heard *heard) {
    struct registry *registry = workload_create_registry(1);
    heard->text[0] = '\0';
    heard->listener = (struct effect_listener){.receive = write_down, .context = heard};
    effect_listener_add(registry, &heard->listener);
    return registry;
}

static struct registry_key *write_member(struct registry *registry, const char *name,
                                         const char *member) {
    bool is_new;
    struct board_member found;
    struct registry_key *key =
        registry_find_or_create(registry, 0, bytes_from_text(name), 0, &is_new);
    assert_non_null(key);
    board_look_up(&key->board, bytes_from_text(member), NULL, &found);
    assert_int_equal(registry_put_member(registry, key, &found, 1), BOARD_OK);
    return key;
}

TEST(a_board_that_is_written_is_told_before_its_first_member) {
    struct heard heard;
    struct registry *registry = create_listened(&heard);
    bool is_new;
    struct registry_key *key = registry_find_or_create(registry, 0, BYTES("p"), 0, &is_new);
    assert_non_null(key);
    assert_received(&heard, "");
    write_member(registry, "p", "ann");
    assert_received(&heard, "CREATE p, PUT p ann");
    write_member(registry, "p", "ann");
    assert_received(&heard, "PUT p ann");
    registry_destroy(registry);
}

TEST(a_board_that_is_taken_back_is_never_told) {
    struct heard heard;
    struct registry *registry = create_listened(&heard);
    bool is_new;
    struct registry_key *key = registry_find_or_create(registry, 0, BYTES("p"), 0, &is_new);
    assert_non_null(key);
    registry_take_back(registry, key);
    assert_received(&heard, "");
    registry_destroy(registry);
}

TEST(what_stands_at_a_destination_is_told_as_removed_before) {
    struct heard heard;
    struct registry *registry = create_listened(&heard);
    struct registry_key *from = write_member(registry, "p", "ann");
    write_member(registry, "q", "bob");
    assert_received(&heard, "CREATE p, PUT p ann, CREATE q, PUT q bob");
    assert_int_equal(registry_copy(registry, from, 0, BYTES("q"), 0), REGISTRY_OK);
    assert_received(&heard, "REMOVE q, COPY p q");
    assert_int_equal(registry_rename(registry, from, 0, BYTES("q"), 0), REGISTRY_OK);
    assert_received(&heard, "REMOVE q, RENAME p q");
    struct board board;
    assert_true(registry_create_board(registry, BYTES("q"), 0, &board));
    assert_int_equal(registry_put_board(registry, 0, BYTES("q"), &board, 0), REGISTRY_OK);
    assert_received(&heard, "REMOVE q, FILL q");
    assert_int_equal(registry_flush(registry, REGISTRY_DATABASES), 1);
    assert_received(&heard, "FLUSH ");
    registry_destroy(registry);
}

TEST(a_periods_end_is_told_as_what_it_amounts_to) {
    struct heard heard;
    struct registry *registry = create_listened(&heard);
    const int64_t day_ms = INT64_C(86400000);
    write_member(registry, "d", "ann");
    write_member(registry, "d@1970-01-01", "old");
    write_member(registry, "m", "ann");
    heard.text[0] = '\0';
    /* Each has a period; the first archive gets a number, because the other board is still there. */
    assert_int_equal(registry_roll_due(registry, day_ms, 10), 3);
    assert_received(&heard, "REMOVE m, RENAME d d@1970-01-01.2, "
                            "RENAME d@1970-01-01 d@1970-01-01@1970-01-01");
    registry_destroy(registry);
}

TEST(a_created_boards_roll_tells_the_next_one) {
    struct heard heard;
    struct registry *registry = create_listened(&heard);
    struct rules rules = {.is_created = true};
    bool is_new;
    layout_init_default(&rules.layout);
    struct registry_key *key =
        registry_find_or_create_like(registry, 0, BYTES("k"), &rules, 0, &is_new);
    assert_non_null(key);
    assert_received(&heard, "CREATE k");
    assert_int_equal(registry_roll(registry, key, BYTES("a"), NULL, REGISTRY_NO_EXPIRY, 0),
                     REGISTRY_OK);
    assert_received(&heard, "RULES k");
    write_member(registry, "k", "ann");
    assert_int_equal(registry_set_expiry(registry, key, 99, false), REGISTRY_OK);
    assert_received(&heard, "PUT k ann, EXPIRE k");
    assert_int_equal(registry_roll(registry, key, BYTES("a"), NULL, REGISTRY_NO_EXPIRY, 0),
                     REGISTRY_OK);
    assert_received(&heard, "RENAME k a, CREATE k, EXPIRE k");
    assert_null(registry_find(registry, 0, BYTES("k"), 99));
    assert_received(&heard, "REMOVE k");
    registry_destroy(registry);
}

/* ---- invalid effects ---- */

static void assert_impossible(struct registry *registry, struct effect effect) {
    uint32_t applied = 7;
    assert_int_equal(effect_apply(registry, &effect, 1, &applied), EFFECT_IMPOSSIBLE);
    assert_int_equal(applied, 0);
}

TEST(what_does_not_fit_is_refused_and_changes_nothing) {
    struct registry *registry = workload_create_registry(1);
    struct registry *same = workload_create_registry(2);
    write_member(registry, "p", "ann");
    write_member(registry, "q", "ann");
    write_member(same, "p", "ann");
    write_member(same, "q", "ann");
    const struct rules *rules = registry_rules(registry_find(registry, 0, BYTES("p"), 0));
    struct rules other = {.cap = 1};
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
        {.kind = EFFECT_CREATE, .name = BYTES("p"), .rules = rules},
        {.kind = EFFECT_CREATE, .name = BYTES(""), .rules = rules},
        {.kind = EFFECT_CREATE, .name = {long_text, sizeof long_text}, .rules = rules},
        {.kind = EFFECT_CREATE, .database = 16, .name = BYTES("r"), .rules = rules},
        {.kind = EFFECT_CREATE, .name = BYTES("r")},
        {.kind = EFFECT_REMOVE, .name = BYTES("no")},
        {.kind = EFFECT_FLUSH, .database = 16},
        {.kind = EFFECT_RENAME, .name = BYTES("p"), .to_name = BYTES("q"), .rules = rules},
        {.kind = EFFECT_RENAME, .name = BYTES("p"), .to_name = BYTES("r"), .rules = &other},
        {.kind = EFFECT_RENAME, .name = BYTES("no"), .to_name = BYTES("r"), .rules = rules},
        {.kind = EFFECT_COPY, .name = BYTES("p"), .to_name = BYTES("p"), .rules = rules},
        {.kind = EFFECT_COPY,
         .name = BYTES("p"),
         .to_database = 16,
         .to_name = BYTES("p"),
         .rules = rules},
        {.kind = EFFECT_EXPIRE, .name = BYTES("no"), .expire_at_ms = 5},
        {.kind = EFFECT_RULES, .name = BYTES("p"), .rules = &other},
        {.kind = EFFECT_RULES, .name = BYTES("p")},
        {.kind = EFFECT_RULES, .name = BYTES("no"), .rules = rules},
        {.kind = EFFECT_FILL, .name = BYTES("r"), .rules = rules},
    };
    for (size_t i = 0; i < COUNT_OF(refused); i++) {
        assert_impossible(registry, refused[i]);
        workload_assert_equal(registry, same);
    }
    registry_destroy(registry);
    registry_destroy(same);
}

TEST(the_effects_before_one_that_does_not_fit_are_applied) {
    struct registry *registry = workload_create_registry(1);
    struct rules rules = {.cap = 0};
    layout_init_default(&rules.layout);
    const struct effect effects[] = {
        {.kind = EFFECT_CREATE, .name = BYTES("k"), .rules = &rules},
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
    registry_destroy(registry);
}
