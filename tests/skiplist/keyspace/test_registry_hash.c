/* Hashes as values of keys: what is reported, and what a failure leaves. Random operations on them,
 * with walks and copies by effects, are part of tests/support/registry_workload.h. */
#include "tests/support/test.h"

#include "codec/memory.h"
#include "skiplist/keyspace/key_kind.h"
#include "skiplist/keyspace/registry_hash.h"
#include "skiplist/keyspace/registry_walk.h"

static struct rules usual_rules;

static const struct rules *rules_for(void *context, struct bytes key) {
    (void)context;
    (void)key;
    return &usual_rules;
}

/* A registry, and its effects as text. */
struct fixture {
    struct registry *registry;
    struct effect_listener listener;
    char told[1000];
};

static void tell(void *context, const struct effect *effect) {
    static const char *const words[] = {"put",    "take", "cut",    "create", "remove", "flush",
                                        "rename", "copy", "expire", "rules",  "fill"};
    struct fixture *f = context;
    size_t size = strlen(f->told);
    snprintf(f->told + size, sizeof f->told - size, "%s %.*s%s%.*s%s%.*s; ", words[effect->kind],
             (int)effect->name.size, effect->name.at, effect->member.size > 0 ? " " : "",
             (int)effect->member.size, effect->member.at, effect->value.size > 0 ? "=" : "",
             (int)effect->value.size, effect->value.at);
}

static int set_up(void **state) {
    struct fixture *f = memory_allocate_zeroed(sizeof *f);
    assert_non_null(f);
    layout_init_default(&usual_rules.layout);
    f->registry = registry_create(0x5eed, rules_for, NULL);
    assert_non_null(f->registry);
    f->listener = (struct effect_listener){.receive = tell, .context = f};
    effect_listener_add(f->registry, &f->listener);
    *state = f;
    return 0;
}

static int tear_down(void **state) {
    struct fixture *f = *state;
    registry_destroy(f->registry);
    memory_free(f);
    return 0;
}

#define FIXTURE_TEST(name) TEST_GIVEN(name, set_up, tear_down, struct fixture *f)

static struct registry_key *find_or_create(struct fixture *f, const char *name, bool *is_new) {
    struct registry_key *key =
        registry_find_or_create_hash(f->registry, 0, bytes_from_text(name), 0, is_new);
    assert_non_null(key);
    return key;
}

static void put(struct fixture *f, struct registry_key *key, const char *field, const char *value) {
    const struct bytes args[] = {bytes_from_text(field), bytes_from_text(value)};
    uint32_t added_count;
    assert_int_equal(registry_put_fields(f->registry, key, args, 1, &added_count), HASH_OK);
}

static void put_many(struct fixture *f, struct registry_key *key, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        char text[16];
        snprintf(text, sizeof text, "f%u", i);
        put(f, key, text, "value");
    }
}

static void assert_told(struct fixture *f, const char *expected) {
    assert_string_equal(f->told, expected);
    f->told[0] = '\0';
}

FIXTURE_TEST(every_change_of_a_field_is_reported) {
    const struct bytes args[] = {BYTES("a"), BYTES("1"), BYTES("b"),
                                 BYTES("2"), BYTES("a"), BYTES("3")};
    uint32_t added_count;
    bool is_new;
    struct registry_key *key = find_or_create(f, "h", &is_new);
    assert_true(is_new);
    assert_told(f, "");
    assert_int_equal(registry_put_fields(f->registry, key, args, 3, &added_count), HASH_OK);
    assert_int_equal(added_count, 2);
    assert_told(f, "create h; put h a=1; put h b=2; put h a=3; ");
    assert_ptr_equal(find_or_create(f, "h", &is_new), key);
    assert_false(is_new);
    assert_false(registry_remove_field(f->registry, key, BYTES("c")));
    assert_told(f, "");
    assert_true(registry_remove_field(f->registry, key, BYTES("a")));
    assert_true(registry_remove_field(f->registry, key, BYTES("b")));
    assert_int_equal(hash_count(&key->hash), 0);
    registry_remove(f->registry, key);
    assert_told(f, "take h a; take h b; remove h; ");
}

FIXTURE_TEST(a_key_that_stays_empty_for_lack_of_memory_was_never_there) {
    const struct bytes args[] = {BYTES("a"), BYTES("1"), BYTES("b"), BYTES("2")};
    uint32_t added_count;
    bool is_new;
    struct registry_key *key = find_or_create(f, "h", &is_new);
    memory_fail_at(1);
    assert_int_equal(registry_put_fields(f->registry, key, args, 2, &added_count),
                     HASH_OUT_OF_MEMORY);
    memory_fail_at(0);
    assert_int_equal(hash_count(&key->hash), 0);
    registry_take_back(f->registry, key);
    assert_told(f, "");
    assert_int_equal(registry_count(f->registry, 0), 0);
}

FIXTURE_TEST(a_key_keeps_its_kind) {
    bool is_new;
    struct registry_key *hash = find_or_create(f, "h", &is_new);
    put(f, hash, "a", "1");
    assert_ptr_equal(registry_find_or_create(f->registry, 0, BYTES("h"), 0, &is_new), hash);
    assert_false(is_new);
    assert_int_equal(hash->kind, REGISTRY_HASH);
    assert_string_equal(registry_kind_name(f->registry, hash), "hash");
    assert_non_null(
        registry_find_or_create_like(f->registry, 0, BYTES("b"), &usual_rules, 0, &is_new));
    struct registry_key *board = find_or_create(f, "b", &is_new);
    assert_false(is_new);
    assert_int_equal(board->kind, REGISTRY_BOARD);
}

static const struct registry_key *prefetch(struct fixture *f, const char *name) {
    struct registry_prefetch ahead;
    registry_prefetch_slots(f->registry, 0, bytes_from_text(name), &ahead);
    registry_prefetch_place(f->registry, &ahead);
    registry_prefetch_key(f->registry, &ahead);
    return registry_prefetch_end(f->registry, 0, &ahead);
}

FIXTURE_TEST(the_last_stage_of_a_prefetch_finds_keys_of_any_kind) {
    bool is_new;
    struct registry_key *hash = find_or_create(f, "h", &is_new);
    put(f, hash, "a", "1");
    struct registry_key *board =
        registry_find_or_create_like(f->registry, 0, BYTES("b"), &usual_rules, 0, &is_new);
    assert_ptr_equal(prefetch(f, "h"), hash);
    assert_ptr_equal(prefetch(f, "b"), board);
    assert_null(prefetch(f, "no"));
    hash_prefetch(&hash->hash);
    put_many(f, hash, 1000);
    hash_prefetch(&hash->hash);
    assert_int_equal(hash_count(&hash->hash), 1001);
}

FIXTURE_TEST(memory_is_counted_to_the_byte) {
    bool is_new;
    struct registry_key *key = find_or_create(f, "h", &is_new);
    size_t key_size = memory_size(key);
    size_t used = memory_used();
    assert_int_equal(registry_memory_size(f->registry, key), key_size);
    for (uint32_t count = 1; count < 3000; count *= 3) {
        put_many(f, key, count);
        assert_int_equal(registry_memory_size(f->registry, key) - key_size, memory_used() - used);
    }
}

FIXTURE_TEST(a_large_hash_is_freed_in_steps_and_found_no_more) {
    enum { FIELDS = 5000, WORK = 100 };
    bool is_new;
    struct registry_key *key = find_or_create(f, "h", &is_new);
    put_many(f, key, FIELDS);
    assert_true(key->hash.is_large);
    uint64_t live_count = memory_live_count();
    registry_remove(f->registry, key);
    assert_true(live_count - memory_live_count() <= 8); /* of the map of keys */
    assert_null(registry_find(f->registry, 0, BYTES("h"), 0));
    uint32_t steps = 0;
    while (registry_free_step(f->registry, WORK)) {
        assert_true(live_count - memory_live_count() <= 2 * WORK);
        live_count = memory_live_count();
        steps++;
    }
    assert_true(steps >= FIELDS / WORK);
}

FIXTURE_TEST(a_piece_of_a_walk_has_a_limited_number_of_bytes) {
    enum { FIELDS = 20, VALUE_SIZE = 30000, ENTRIES_MAX = 512 };
    struct hash_pair pairs[ENTRIES_MAX];
    struct registry_walk_piece piece;
    char *value = memory_allocate(VALUE_SIZE + 1);
    bool is_new;
    uint32_t count = 0;
    struct registry_key *key = find_or_create(f, "h", &is_new);
    assert_non_null(value);
    memset(value, 'v', VALUE_SIZE);
    value[VALUE_SIZE] = '\0';
    effect_listener_remove(f->registry, &f->listener);
    for (uint32_t i = 0; i < FIELDS; i++) {
        char text[16];
        snprintf(text, sizeof text, "f%u", i);
        put(f, key, text, value);
    }
    registry_walk_begin(f->registry);
    while (registry_walk_next(f->registry, pairs, ENTRIES_MAX, &piece)) {
        assert_ptr_equal(piece.key, key);
        assert_true(piece.count <= 2);
        assert_int_equal(piece.is_first, count == 0);
        count += piece.count;
        assert_int_equal(piece.is_last, count == FIELDS);
    }
    registry_walk_end(f->registry);
    memory_free(value);
}
