/* Registries for the tests of the keyspace: made, filled, checked, and what they report as text. */
#ifndef TESTS_SUPPORT_KEYSPACE_H
#define TESTS_SUPPORT_KEYSPACE_H

#include "codec/memory.h"
#include "skiplist/keyspace/effect.h"
#include "skiplist/keyspace/registry.h"
#include "skiplist/tags.h"
#include "tests/support/test.h"

/* ---- registries ---- */

/* The options of every key of create_usual_registry: the default layout. */
static struct board_options usual_options;

static inline const struct board_options *usual_options_for(void *context, struct bytes key,
                                                            uint32_t choice) {
    (void)context;
    (void)key;
    return choice == 0 ? &usual_options : NULL;
}

static inline struct registry *create_usual_registry(void) {
    memset(&usual_options, 0, sizeof usual_options);
    layout_init_default(&usual_options.layout);
    struct registry *registry = registry_create(0x5eed, usual_options_for, NULL);
    assert_non_null(registry);
    return registry;
}

/* A test with an empty registry, which must hold together at the end and leave no memory. */
#define REGISTRY_TEST_OF(name, create)                                                             \
    static void name##_in(struct registry *registry);                                              \
    TEST(name) {                                                                                   \
        registry_test((create), name##_in);                                                        \
    }                                                                                              \
    static void name##_in(struct registry *registry)
static inline void registry_test(struct registry *(*create)(void),
                                 void (*test)(struct registry *registry)) {
    uint64_t live_before = memory_live_count();
    struct registry *registry = create();
    test(registry);
    ASSERT_VALID(registry_validate, registry);
    registry_set_listener(registry, NULL, NULL); /* what it tells may be gone */
    registry_destroy(registry);
    assert_int_equal(memory_live_count(), live_before);
}

static inline void registry_free_all(struct registry *registry) {
    while (registry_free_step(registry, 100)) {}
    assert_int_equal(registry_totals(registry)->unfreed, 0);
    ASSERT_VALID(registry_validate, registry);
}

/* ---- keys ---- */

/* Put a member on a board that belongs to a key, without a command. */
static inline bool key_put(struct registry *registry, struct registry_key *key, struct bytes name,
                           uint64_t packed_key) {
    struct board_member member;
    board_look_up(&key->board, name, NULL, &member);
    return registry_board_put(registry, key, &member, packed_key) == BOARD_OK;
}

/* Put the members m0, m1, ... in rank order, their keys count + mark down to 1 + mark. */
static inline bool key_fill(struct registry *registry, struct registry_key *key, uint64_t mark,
                            uint32_t count) {
    bool is_put = true;
    for (uint32_t i = 0; i < count && is_put; i++) {
        is_put = key_put(registry, key, bytes_from_text(formatted("m%u", i)), mark + count - i);
    }
    return is_put;
}

/* The same on a board that belongs to no key yet. */
static inline bool board_fill(struct board *board, uint64_t mark, uint32_t count) {
    bool is_put = true;
    for (uint32_t i = 0; i < count && is_put; i++) {
        is_put =
            board_put(board, bytes_from_text(formatted("m%u", i)), mark + count - i) == BOARD_OK;
    }
    return is_put;
}

/* By which such a board is known again; UINT64_MAX: it is empty. */
static inline uint64_t board_mark(const struct board *board) {
    uint32_t count = board_count(board);
    return count > 0 ? board_at(board, 0).key - count : UINT64_MAX;
}

static inline struct registry_key *key_find(struct registry *registry, uint32_t database,
                                            const char *name, int64_t now_ms) {
    return registry_find(registry, database, bytes_from_text(name), now_ms);
}

/* A new key, as a write makes it, with count members. */
static inline struct registry_key *key_create(struct registry *registry, uint32_t database,
                                              const char *name, uint32_t count, int64_t now_ms) {
    bool is_new = false;
    struct registry_key *key =
        registry_find_or_create(registry, database, bytes_from_text(name), now_ms, &is_new);
    assert_non_null(key);
    assert_true(is_new);
    assert_true(key_fill(registry, key, 0, count));
    return key;
}

/* The same with these options. */
static inline struct registry_key *key_create_like(struct registry *registry, const char *name,
                                                   const struct board_options *options,
                                                   uint32_t count, int64_t now_ms) {
    bool is_new = false;
    struct registry_key *key = registry_find_or_create_like(registry, 0, bytes_from_text(name),
                                                            options, NULL, now_ms, &is_new);
    assert_non_null(key);
    assert_true(is_new);
    assert_true(key_fill(registry, key, 0, count));
    return key;
}

static inline void key_expire(struct registry *registry, struct registry_key *key,
                              int64_t expire_at_ms) {
    assert_int_equal(registry_expiry_set(registry, key, expire_at_ms, false), REGISTRY_OK);
}

/* ---- effects ---- */

/* Apply an effect as one that was read: its key is unknown. */
static inline void registry_apply(struct registry *registry, struct effect effect) {
    uint32_t applied = 7;
    effect.key = NULL;
    assert_int_equal(effect_apply(registry, &effect, 1, &applied), EFFECT_OK);
    assert_int_equal(applied, 1);
}

/* Do to a copy what an effect says was done; of a FILL in its parts. */
static inline void registry_follow(struct registry *copy, const struct effect *effect) {
    struct effect_fill fill = {.whole = *effect};
    struct effect part;
    if (effect->kind != EFFECT_FILL) {
        registry_apply(copy, *effect);
        return;
    }
    while (effect_fill_next(&fill, &part)) {
        registry_apply(copy, part);
    }
}

/* What was reported since the last expect_told: "create h; put h a=1; rename h g; ". */
struct told {
    struct effect_listener listener;
    char text[4096];
};

/* What has no more room is cut off. */
static inline void told_add(struct told *told, const char *before, struct bytes part) {
    size_t size = strlen(told->text);
    snprintf(told->text + size, sizeof told->text - size, "%s%.*s", before, (int)part.size,
             part.at);
}

static inline void told_receive(void *context, const struct effect *effect) {
    static const char *const words[] = {"put",    "take", "cut",    "create", "remove", "flush",
                                        "rename", "copy", "expire", "rules",  "fill",   "tags"};
    struct told *told = context;
    const struct bytes parts[] = {effect->name, effect->to_name, effect->member, effect->value};
    told_add(told, words[effect->kind], BYTES(""));
    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        if (parts[i].size > 0) {
            told_add(told, i < 3 ? " " : "=", parts[i]);
        }
    }
    told_add(told, "; ", BYTES(""));
    assert_int_equal(effect->kind == EFFECT_FLUSH, effect->key == NULL);
}

static inline void tell(struct registry *registry, struct told *told) {
    *told = (struct told){.listener = {.receive = told_receive, .context = told}};
    effect_listener_add(registry, &told->listener);
}

#define expect_told(told, expected)                                                                \
    do {                                                                                           \
        assert_string_equal((told)->text, (expected));                                             \
        (told)->text[0] = '\0';                                                                    \
    } while (false)

/* A test with an empty registry and what it tells. */
#define TOLD_TEST_OF(name, create)                                                                 \
    static void name##_heard(struct registry *registry, struct told *told);                        \
    REGISTRY_TEST_OF(name, create) {                                                               \
        struct told told;                                                                          \
        tell(registry, &told);                                                                     \
        name##_heard(registry, &told);                                                             \
        effect_listener_remove(registry, &told.listener);                                          \
    }                                                                                              \
    static void name##_heard(struct registry *registry, __attribute__((unused)) struct told *told)

/* Entries, their order and their tags. */
static inline void assert_same_boards(const struct board *a, const struct board *b) {
    struct board_cursor at_a, at_b;
    struct board_stored entry_a, entry_b;
    struct tag_values values_a, values_b;
    assert_int_equal(board_count(a), board_count(b));
    board_cursor_seek(a, 0, &at_a);
    board_cursor_seek(b, 0, &at_b);
    for (uint32_t rank = 0; board_cursor_read(&at_a, &entry_a); rank++) {
        tags_at(a, rank, &values_a);
        tags_at(b, rank, &values_b);
        assert_int_equal(values_a.mask, values_b.mask);
        for (unsigned i = 0; i < TAGS_MAX; i++) {
            assert_true((values_a.mask >> i & 1) == 0 ||
                        bytes_equal(values_a.at[i], values_b.at[i]));
        }
        assert_true(board_cursor_read(&at_b, &entry_b));
        assert_true(entry_a.key == entry_b.key);
        assert_true(name_equal(entry_a.member, entry_b.member));
        board_cursor_next(&at_a);
        board_cursor_next(&at_b);
    }
}

#endif
