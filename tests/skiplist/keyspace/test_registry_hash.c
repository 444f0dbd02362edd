/* Hashes as values of keys: what is reported, and what a failure leaves. Random operations on them,
 * with walks and copies by effects, are part of tests/support/registry_workload.h. */
#include "skiplist/keyspace/effect.h"
#include "skiplist/keyspace/registry.h"
#include "skiplist/keyspace/registry_walk.h"
#include "tests/support/keyspace.h"

#define TOLD_TEST(name) TOLD_TEST_OF(name, create_usual_registry)

static struct registry_key *find_or_create(struct registry *registry, const char *name,
                                           bool *is_new) {
    struct registry_key *key =
        registry_hash_find_or_create(registry, 0, bytes_from_text(name), 0, is_new);
    assert_non_null(key);
    return key;
}

static void put(struct registry *registry, struct registry_key **key, const char *field,
                const char *value) {
    const struct bytes args[] = {bytes_from_text(field), bytes_from_text(value)};
    uint32_t added_count;
    assert_int_equal(registry_hash_put(registry, key, args, 1, &added_count), HASH_OK);
}

static void put_many(struct registry *registry, struct registry_key **key, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        put(registry, key, formatted("f%u", i), "value");
    }
}

TOLD_TEST(every_change_of_a_field_is_reported) {
    const struct bytes args[] = {BYTES("a"), BYTES("1"), BYTES("b"),
                                 BYTES("2"), BYTES("a"), BYTES("3")};
    uint32_t added_count;
    bool is_new;
    struct registry_key *key = find_or_create(registry, "h", &is_new);
    assert_true(is_new);
    expect_told(told, "");
    assert_int_equal(registry_hash_put(registry, &key, args, 3, &added_count), HASH_OK);
    assert_int_equal(added_count, 2);
    expect_told(told, "create h; put h a=1; put h b=2; put h a=3; ");
    assert_ptr_equal(find_or_create(registry, "h", &is_new), key);
    assert_false(is_new);
    assert_false(registry_hash_remove(registry, key, BYTES("c")));
    expect_told(told, "");
    assert_true(registry_hash_remove(registry, key, BYTES("a")));
    assert_true(registry_hash_remove(registry, key, BYTES("b")));
    assert_int_equal(hash_count(registry_hash(key)), 0);
    registry_remove(registry, key);
    expect_told(told, "take h a; take h b; remove h; ");
}

TOLD_TEST(a_key_that_stays_empty_for_lack_of_memory_was_never_there) {
    /* More than a new key has room for. */
    const struct bytes args[] = {BYTES("a"), BYTES("0123456789012345678901234567890123456789"),
                                 BYTES("b"), BYTES("2")};
    uint32_t added_count;
    bool is_new;
    struct registry_key *key = find_or_create(registry, "h", &is_new);
    memory_fail_at(1);
    assert_int_equal(registry_hash_put(registry, &key, args, 2, &added_count), HASH_OUT_OF_MEMORY);
    memory_fail_at(0);
    assert_int_equal(hash_count(registry_hash(key)), 0);
    registry_take_back(registry, key);
    expect_told(told, "");
    assert_int_equal(registry_count(registry, 0), 0);
}

TOLD_TEST(a_key_keeps_its_kind) {
    bool is_new;
    struct registry_key *hash = find_or_create(registry, "h", &is_new);
    put(registry, &hash, "a", "1");
    assert_ptr_equal(registry_find_or_create(registry, 0, BYTES("h"), 0, &is_new), hash);
    assert_false(is_new);
    assert_int_equal(hash->kind, REGISTRY_HASH);
    assert_string_equal(registry_kind_name(registry, hash), "hash");
    assert_non_null(
        registry_find_or_create_like(registry, 0, BYTES("b"), &usual_options, NULL, 0, &is_new));
    struct registry_key *board = find_or_create(registry, "b", &is_new);
    assert_false(is_new);
    assert_int_equal(board->kind, REGISTRY_BOARD);
}

static const struct registry_key *prefetch(struct registry *registry, const char *name) {
    struct registry_prefetch ahead;
    registry_prefetch_slots(registry, 0, bytes_from_text(name), &ahead);
    registry_prefetch_place(registry, &ahead);
    registry_prefetch_key(registry, &ahead);
    return registry_prefetch_end(registry, 0, &ahead);
}

TOLD_TEST(the_last_stage_of_a_prefetch_finds_keys_of_any_kind) {
    bool is_new;
    struct registry_key *hash = find_or_create(registry, "h", &is_new);
    put(registry, &hash, "a", "1");
    struct registry_key *board =
        registry_find_or_create_like(registry, 0, BYTES("b"), &usual_options, NULL, 0, &is_new);
    assert_ptr_equal(prefetch(registry, "h"), hash);
    assert_ptr_equal(prefetch(registry, "b"), board);
    assert_null(prefetch(registry, "no"));
    hash_prefetch(registry_hash(hash));
    put_many(registry, &hash, 1000);
    hash_prefetch(registry_hash(hash));
    assert_int_equal(hash_count(registry_hash(hash)), 1001);
}

TOLD_TEST(memory_is_counted_to_the_byte) {
    bool is_new;
    struct registry_key *key = find_or_create(registry, "h", &is_new);
    size_t key_size = registry_memory_size(registry, key);
    size_t used = memory_used();
    for (uint32_t count = 1; count < 3000; count += count / 4 + 1) {
        put_many(registry, &key, count);
        (void)registry_free_step(registry, UINT32_MAX); /* where the key was before */
        assert_int_equal(registry_memory_size(registry, key) - key_size, memory_used() - used);
    }
}

static char *text_of(uint32_t size) {
    static char text[2 * HASH_SHORT_SIZE_MAX];
    memset(text, 'x', size);
    text[size] = '\0';
    return text;
}

TOLD_TEST(a_key_is_as_long_as_its_short_hash_and_no_longer) {
    bool is_new;
    struct registry_key *key = find_or_create(registry, "h", &is_new);
    assert_int_equal(registry_expiry_set(registry, key, 1000, true), REGISTRY_OK);
    size_t empty = registry_memory_size(registry, key);
    uint64_t live_count = memory_live_count();
    uint32_t sizes[] = {HASH_SHORT_SIZE_MAX / 2, HASH_SHORT_SIZE_MAX - 4, HASH_SHORT_SIZE_MAX};
    for (uint32_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        put(registry, &key, "f", text_of(sizes[i]));
        (void)registry_free_step(registry, UINT32_MAX);
        bool is_short = sizes[i] <= HASH_SHORT_SIZE_MAX - 4; /* two sizes, and the field */
        assert_int_equal(memory_live_count(), live_count + !is_short);
        assert_true(registry_memory_size(registry, key) <= empty + sizes[i] + 100);
        assert_ptr_equal(registry_find(registry, 0, BYTES("h"), 0), key);
        assert_int_equal(registry_expiry(registry, key), 1000);
        ASSERT_VALID(registry_validate, registry);
    }
    /* One that has become short again is so from its next move on. */
    put(registry, &key, "f", "x");
    assert_int_equal(registry_rename(registry, key, 1, BYTES("other"), 0), REGISTRY_OK);
    (void)registry_free_step(registry, UINT32_MAX);
    key = registry_find(registry, 1, BYTES("other"), 0);
    assert_int_equal(hash_memory_size(registry_hash(key)), 0);
    assert_true(registry_memory_size(registry, key) <= empty + 16); /* a longer name */
    assert_int_equal(registry_copy(registry, key, 0, BYTES("h"), 0), REGISTRY_OK);
    key = registry_find(registry, 0, BYTES("h"), 0);
    struct bytes value;
    assert_true(hash_find(registry_hash(key), BYTES("f"), &value));
    assert_true(bytes_equal(value, BYTES("x")));
}

TOLD_TEST(a_large_hash_is_freed_in_steps_and_found_no_more) {
    enum { FIELDS = 20000, WORK = 100, PAGE = 32 /* of so many fields are freed at once */ };
    bool is_new;
    struct registry_key *key = find_or_create(registry, "h", &is_new);
    put_many(registry, &key, FIELDS);
    assert_true(hash_is_large(registry_hash(key)));
    uint64_t live_count = memory_live_count();
    registry_remove(registry, key);
    assert_true(live_count - memory_live_count() <= 8); /* of the map of keys */
    assert_null(registry_find(registry, 0, BYTES("h"), 0));
    uint32_t steps = 0;
    while (registry_free_step(registry, WORK)) {
        assert_true(live_count - memory_live_count() <= 2 * WORK);
        live_count = memory_live_count();
        steps++;
    }
    assert_true(steps >= FIELDS / PAGE / WORK);
}

TOLD_TEST(a_step_frees_about_as_much_as_it_may_of_many_small_hashes) {
    enum { KEYS = 200, FIELDS = 30, WORK = 20 };
    bool is_new;
    for (uint32_t i = 0; i < KEYS; i++) {
        struct registry_key *key = find_or_create(registry, formatted("h%u", i), &is_new);
        put_many(registry, &key, FIELDS);
    }
    (void)registry_free_step(registry, UINT32_MAX); /* where the keys were before */
    assert_int_equal(registry_flush(registry, 0), KEYS);
    uint64_t live_count = memory_live_count();
    uint32_t steps = 0;
    while (registry_free_step(registry, WORK)) {
        assert_true(live_count - memory_live_count() <= 2 * WORK);
        live_count = memory_live_count();
        steps++;
    }
    assert_true(steps >= KEYS / WORK);
    assert_int_equal(registry_totals(registry)->freed, KEYS);
}

TOLD_TEST(a_piece_of_a_walk_has_a_limited_number_of_bytes) {
    enum { FIELDS = 20, VALUE_SIZE = 30000, ENTRIES_MAX = 512 };
    struct hash_pair pairs[ENTRIES_MAX];
    struct registry_walk_piece piece;
    char *value = memory_allocate(VALUE_SIZE + 1);
    bool is_new;
    uint32_t count = 0;
    struct registry_key *key = find_or_create(registry, "h", &is_new);
    assert_non_null(value);
    memset(value, 'v', VALUE_SIZE);
    value[VALUE_SIZE] = '\0';
    effect_listener_remove(registry, &told->listener);
    for (uint32_t i = 0; i < FIELDS; i++) {
        put(registry, &key, formatted("f%u", i), value);
    }
    registry_walk_begin(registry);
    while (registry_walk_next(registry, pairs, ENTRIES_MAX, &piece)) {
        assert_ptr_equal(piece.key, key);
        assert_true(piece.count <= 2);
        assert_int_equal(piece.is_first, count == 0);
        count += piece.count;
        assert_int_equal(piece.is_last, count == FIELDS);
    }
    registry_walk_end(registry);
    memory_free(value);
}
