/* Groups of random changes of every kind, applied elsewhere: equal after each, also where memory is missing
 * at any allocation, while a walk goes on, and for whoever listens there. */
#include "tests/support/test.h"

#include "server/replication/apply.h"
#include "skiplist/keyspace/effect.h"
#include "skiplist/keyspace/registry_walk.h"
#include "tests/support/registry_workload.h"

enum { GROUPS = 1500, COMMANDS_MAX = 6, MEMBERS_MAX = 30, COMPARED_EVERY = 25, TOGETHER_MAX = 9 };

/* A master: its changes become groups. */
static struct workload workload;
static struct effect_encoder encoder;

/* Those that have come, and are not applied. */
static struct buffer groups[TOGETHER_MAX];
static uint32_t group_count;
static uint64_t first_sequence;

/* A replica, and a replica of that: its listener's. */
static struct registry *replica, *third;
static struct apply apply;

static void record_one(const struct effect *effect) {
    effect_bytes_encode(&encoder, effect);
}

static void record(void *context, const struct effect *effect) {
    (void)context;
    if (effect->kind != EFFECT_FILL) {
        record_one(effect);
        return;
    }
    struct effect_fill fill = {.whole = *effect};
    struct effect part;
    while (effect_fill_next(&fill, &part)) {
        record_one(&part);
    }
}

static void repeat(void *context, const struct effect *effect) {
    uint32_t applied;
    (void)context;
    assert_int_equal(effect->kind == EFFECT_FILL, false);
    assert_int_equal(effect_apply(third, effect, 1, &applied), EFFECT_OK);
}

static uint32_t below(uint64_t limit) {
    return (uint32_t)random_below(&workload.random, limit);
}

/* One tick of the master: a group, unless it has changed nothing. */
static void make_group(void) {
    struct buffer *group = &groups[group_count];
    buffer_clear(group);
    effect_bytes_encode_begin(&encoder, group);
    for (uint32_t i = below(COMMANDS_MAX); i > 0; i--) {
        workload_step(&workload);
    }
    group_count += group->size > 0;
}

static void add_group(uint32_t index) {
    const struct journal_group_head head = {.size = (uint32_t)groups[index].size,
                                            .sequence = first_sequence + index};
    apply_add(&apply, &head, groups[index].at);
}

/* All that have come, some at a time, as often as it takes, with memory missing now and then. */
static void apply_groups(bool may_fail, uint64_t *failures) {
    uint32_t done = 0;
    while (done < group_count) {
        uint32_t added = done + apply_is_going(&apply);
        for (uint32_t i = below(TOGETHER_MAX) + !apply_is_going(&apply);
             i > 0 && added < group_count && apply_has_room(&apply); i--) {
            add_group(added++);
        }
        if (may_fail) {
            memory_fail_at(1 + below(40));
        }
        enum apply_status status = apply_step(&apply, below(2) == 0 ? 0 : 100000);
        memory_fail_at(0);
        *failures += status == APPLY_OUT_OF_MEMORY;
        may_fail &= below(4) != 0;
        assert_int_not_equal(status, APPLY_IMPOSSIBLE);
        for (uint32_t i = 0; i < apply.group_done; i++) {
            assert_int_equal(apply.groups[i].head.sequence, first_sequence + done);
            done++;
        }
        assert_true(apply.group_count - apply.group_done <= 1);
        assert_true(status != APPLY_DONE || done == added);
        assert_true(status != APPLY_MORE || !apply_is_going(&apply) ||
                    apply.groups[apply.group_done].head.size > APPLY_AT_ONCE_SIZE);
    }
    assert_false(apply_is_going(&apply));
    assert_int_equal(apply.size, 0);
    first_sequence += group_count;
    group_count = 0;
}

/* A step of a walk, as a snapshot takes them between two groups. */
static void walk_some(void) {
    union {
        struct board_stored of_board[8];
        struct hash_pair of_hash[8];
    } entries;
    struct registry_walk_piece piece;
    for (uint32_t i = below(4); i > 0; i--) {
        if (!registry_walk_next(replica, &entries, 8, &piece)) {
            registry_walk_end(replica);
            registry_walk_begin(replica);
        }
    }
}

static void run(bool has_listener, bool may_fail) {
    struct effect_listener recorder = {.receive = record};
    struct effect_listener listener = {.receive = repeat};
    uint64_t failures = 0;
    workload_begin(&workload, "apply", MEMBERS_MAX);
    workload.has_ids = true;
    first_sequence = 1;
    group_count = 0;
    for (uint32_t i = 0; i < TOGETHER_MAX; i++) {
        buffer_init(&groups[i], 0);
    }
    replica = workload_create_registry(3);
    third = workload_create_registry(4);
    registry_set_passive(replica, true);
    effect_listener_add(workload.registry, &recorder);
    if (has_listener) {
        effect_listener_add(replica, &listener);
        registry_walk_begin(replica);
    }
    apply = (struct apply){.registry = replica};
    for (uint64_t i = 1; i <= GROUPS; i++) {
        make_group();
        if (group_count == TOGETHER_MAX || below(3) == 0 || i % COMPARED_EVERY == 0) {
            apply_groups(may_fail, &failures);
        }
        if (has_listener) {
            walk_some();
        }
        (void)registry_free_step(replica, 100);
        if (i % COMPARED_EVERY == 0) {
            workload_assert_equal(workload.registry, replica);
            if (has_listener) {
                workload_assert_equal(workload.registry, third);
            }
        }
    }
    assert_true(!may_fail || failures > 0);
    effect_listener_remove(workload.registry, &recorder);
    effect_listener_remove(replica, &listener);
    registry_walk_end(replica);
    /* A copy takes the place of what was there. */
    struct registry *other = registry_create_beside(replica);
    assert_non_null(other);
    registry_exchange(replica, other);
    workload_assert_equal(workload.registry, other);
    registry_exchange(other, replica);
    workload_assert_equal(workload.registry, replica);
    registry_clear(other);
    while (registry_free_step(other, 1000)) {}
    registry_destroy(other);
    registry_destroy(replica);
    registry_destroy(third);
    for (uint32_t i = 0; i < TOGETHER_MAX; i++) {
        buffer_deinit(&groups[i]);
    }
    workload_end(&workload);
}

TEST(groups_that_are_applied_make_equal_keys) {
    run(false, false);
}

TEST(whoever_listens_hears_of_all_that_is_applied) {
    run(true, false);
}

TEST(what_finds_no_memory_is_tried_again) {
    run(false, true);
}

/* ---- a passive registry ---- */

TEST(nothing_expires_in_a_passive_registry_but_by_effects) {
    struct registry *registry = workload_create_registry(5);
    const struct bytes name = BYTES("p1");
    bool is_new;
    struct registry_key *key = registry_find_or_create(registry, 0, name, 1000, &is_new);
    struct board_member member;
    assert_non_null(key);
    board_look_up(&key->board, BYTES("ann"), NULL, &member);
    assert_int_equal(registry_board_put(registry, key, &member, 7), BOARD_OK);
    assert_int_equal(registry_expiry_set(registry, key, 2000, false), REGISTRY_OK);
    registry_set_passive(registry, true);
    assert_null(registry_find(registry, 0, name, 3000)); /* as if missing */
    assert_int_equal(registry_expiry_remove_due(registry, 3000, 10), 0);
    assert_true(registry_expiry_next_due(registry) == REGISTRY_NO_EXPIRY);
    assert_null(registry_walk_random(registry, 0, 4711, 3000));
    assert_int_equal(registry_count(registry, 0), 1); /* but there */
    registry_set_passive(registry, false);
    assert_int_equal(registry_expiry_remove_due(registry, 3000, 10), 1);
    assert_int_equal(registry_count(registry, 0), 0);
    registry_destroy(registry);
}
