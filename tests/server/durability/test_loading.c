/* Files with valid checksums and invalid content: they are refused with the file, the offset and
 * the reason, and the process does not exit. */
#include "tests/support/test.h"

#include "codec/memory.h"
#include "server/durability/loading.h"
#include "tests/support/directory.h"
#include "tests/support/registry_workload.h"

#define NEVER REGISTRY_NO_EXPIRY

/* A base as a faulty server would write it. */
struct base {
    char directory[DIRECTORY_PATH_MAX];
    struct store store;
    struct registry *source; /* of the keys that records are made from */
    struct snapshot_writer writer;
    struct snapshot_footer footer;
    struct buffer chunk;
    struct effect_encoder encoder;
    struct registry *registry; /* what was loaded */
    char error[LOADING_ERROR_MAX];
};

static int set_up(void **state) {
    struct base *base = memory_allocate_zeroed(sizeof *base);
    char error[DISK_ERROR_MAX];
    char name[STORE_NAME_MAX];
    assert_non_null(base);
    directory_make(base->directory);
    assert_int_equal(store_open(&base->store, base->directory, "boards", STORE_CREATE, error),
                     STORE_OK);
    base->store.state.base_number = 1;
    base->store.state.base_sequence = 7;
    base->footer.sequence = 7;
    base->source = workload_create_registry(1);
    base->registry = workload_create_registry(2);
    store_print_name(name, STORE_BASE, 1);
    assert_true(snapshot_writer_init(&base->writer, SNAPSHOT_LEVEL));
    assert_true(snapshot_writer_open(&base->writer, base->store.directory, name, 1));
    buffer_init(&base->chunk, 0);
    effect_encode_begin(&base->encoder, &base->chunk);
    *state = base;
    return 0;
}

static int tear_down(void **state) {
    struct base *base = *state;
    buffer_deinit(&base->chunk);
    registry_destroy(base->source);
    registry_destroy(base->registry);
    store_close(&base->store);
    directory_remove(base->directory);
    memory_free(base);
    return 0;
}

/* ---- writing ---- */

/* The rules of boards whose names begin like this (tests/support/registry_workload.c). */
static const struct rules *rules_like(struct base *base, const char *name) {
    struct registry_key *key;
    struct effect create = {.kind = EFFECT_CREATE, .name = bytes_from_text(name)};
    struct board board;
    uint32_t applied;
    key = registry_find(base->source, 0, create.name, 0);
    if (key == NULL) {
        assert_true(registry_create_board(base->source, create.name, 0, &board));
        create.rules = rules_of(board_layout(&board));
        assert_int_equal(effect_apply(base->source, &create, 1, &applied), EFFECT_OK);
        registry_discard_board(base->source, &board);
        key = registry_find(base->source, 0, create.name, 0);
    }
    return registry_rules(key);
}

static void put_open(struct base *base, const char *name) {
    (void)rules_like(base, name);
    effect_encode_open(&base->encoder, registry_find(base->source, 0, bytes_from_text(name), 0),
                       NEVER);
    base->footer.board_count++;
}

static void put_member(struct base *base, const char *member, uint64_t key) {
    const struct board_entry entry = {.key = key, .member = bytes_from_text(member)};
    effect_encode_piece(&base->encoder, &entry, 1);
    base->footer.member_count++;
}

static void put_close(struct base *base) {
    effect_encode_close(&base->encoder);
}

static void put_effect(struct base *base, enum effect_kind kind, const char *name, const char *to,
                       const struct rules *rules) {
    struct effect effect = {.kind = kind, .name = bytes_from_text(name), .rules = rules};
    effect.to_name = bytes_from_text(to);
    effect.expire_at_ms = NEVER;
    effect_encode(&base->encoder, &effect);
}

/* Start a new block; returns its offset. */
static uint64_t end_block(struct base *base) {
    assert_true(snapshot_writer_block(&base->writer, base->chunk.at, (uint32_t)base->chunk.size));
    buffer_clear(&base->chunk);
    effect_encode_begin(&base->encoder, &base->chunk);
    return base->writer.size;
}

/* ---- reading ---- */

static void ignore(void *context) {
    (void)context;
}

static bool load(struct base *base) {
    uv_loop_t loop;
    struct loading *loading = memory_allocate_zeroed(sizeof *loading);
    assert_non_null(loading);
    if (base->chunk.size > 0) {
        (void)end_block(base);
    }
    assert_true(snapshot_writer_finish(&base->writer, &base->footer));
    snapshot_writer_close(&base->writer);
    assert_int_equal(uv_loop_init(&loop), 0);
    loading->registry = base->registry;
    loading->store = &base->store;
    loading->changed = ignore;
    assert_true(loading_init(loading, &loop));
    bool is_loaded = loading_run(loading);
    memcpy(base->error, loading->error, sizeof base->error);
    loading_deinit(loading);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
    memory_free(loading);
    return is_loaded;
}

static void assert_loaded(struct base *base) {
    const char *reason;
    if (!load(base)) {
        fail_msg("%s", base->error);
    }
    assert_true(registry_validate(base->registry, &reason));
}

/* The message has the file, the offset and the reason. */
static void assert_refused(struct base *base, uint64_t offset, const char *reason) {
    char expected[LOADING_ERROR_MAX];
    assert_false(load(base));
    snprintf(expected, sizeof expected,
             "leaderboard.1.base is damaged at offset %llu: %s, though the checksum is right",
             (unsigned long long)offset, reason);
    if (strstr(base->error, expected) == NULL) {
        fail_msg("'%s' is not in '%s'", expected, base->error);
    }
}

/* ---- valid content ---- */

#define IN_FIXTURE(name) TEST_WITH(name, set_up, tear_down)

IN_FIXTURE(a_base_that_means_what_it_says_is_loaded) {
    struct base *base = *state;
    put_open(base, "pa");
    put_member(base, "ann", 9);
    put_effect(base, EFFECT_RENAME, "pa", "pb", rules_like(base, "pa"));
    put_member(base, "bob", 8);
    put_close(base);
    put_open(base, "pa");
    put_close(base);
    assert_loaded(base);
    const struct registry_key *key = registry_find(base->registry, 0, BYTES("pb"), 0);
    assert_non_null(key);
    assert_int_equal(board_count(&key->board), 2);
    assert_int_equal(registry_count(base->registry, 0), 2);
}

/* ---- invalid content ---- */

IN_FIXTURE(the_open_board_is_not_renamed_to_another_layout) {
    struct base *base = *state;
    put_open(base, "pa");
    put_member(base, "ann", 9);
    put_effect(base, EFFECT_RENAME, "pa", "pb", rules_like(base, "ta"));
    put_close(base);
    assert_refused(base, 32, "a board that is being read cannot be renamed so");
}

IN_FIXTURE(the_open_board_is_not_renamed_to_a_name_that_is_taken) {
    struct base *base = *state;
    put_open(base, "pa");
    put_close(base);
    put_open(base, "pb");
    put_effect(base, EFFECT_RENAME, "pb", "pa", rules_like(base, "pa"));
    put_close(base);
    assert_refused(base, 32, "a board that is being read cannot be renamed so");
}

IN_FIXTURE(the_open_board_gets_no_rules_of_another_layout) {
    struct base *base = *state;
    put_open(base, "pa");
    put_effect(base, EFFECT_RULES, "pa", "", rules_like(base, "ta"));
    put_close(base);
    assert_refused(base, 32, "a board that is being read cannot behave so");
}

IN_FIXTURE(two_boards_do_not_have_one_name) {
    struct base *base = *state;
    put_open(base, "pa");
    put_close(base);
    put_open(base, "pa");
    put_close(base);
    assert_refused(base, 32, "two boards have the same name, or it is too long");
}

IN_FIXTURE(no_board_is_copied_to_the_name_of_the_open_one) {
    struct base *base = *state;
    put_open(base, "pa");
    put_close(base);
    put_open(base, "pb");
    put_effect(base, EFFECT_COPY, "pa", "pb", rules_like(base, "pa"));
    put_close(base);
    assert_refused(base, 32, "two boards have the same name");
}

IN_FIXTURE(a_key_has_no_more_bits_than_its_layout) {
    struct base *base = *state;
    put_open(base, "pa");
    put_member(base, "ann", UINT64_C(1) << 60);
    put_close(base);
    assert_refused(base, 32, "a member's key is larger than its board's layout allows");
}

/* A date is appended to it when the period ends. */
IN_FIXTURE(a_board_with_a_period_has_no_longer_name_than_a_client_can_give) {
    struct base *base = *state;
    char *name = memory_allocate(REGISTRY_KEY_MAX + 2);
    assert_non_null(name);
    memset(name, 'p', REGISTRY_KEY_MAX + 1);
    name[REGISTRY_KEY_MAX + 1] = '\0';
    put_open(base, "pa");
    put_close(base);
    put_effect(base, EFFECT_COPY, "pa", name, rules_like(base, "pa"));
    put_effect(base, EFFECT_CREATE, "da", "", rules_like(base, "da"));
    put_effect(base, EFFECT_RENAME, "da", name + 1, rules_like(base, "da"));
    put_effect(base, EFFECT_CREATE, "da", "", rules_like(base, "da"));
    uint64_t offset = end_block(base);
    *name = 'd';
    put_effect(base, EFFECT_RENAME, "da", name, rules_like(base, "da"));
    assert_refused(base, offset, "a change does not fit the boards");
    memory_free(name);
}

IN_FIXTURE(rules_keep_no_more_archives_than_can_be_counted) {
    struct base *base = *state;
    struct rules rules;
    rules_copy(rules_like(base, "da"), &rules);
    rules.archives_max = PERIOD_COUNT_MAX + 1;
    put_effect(base, EFFECT_CREATE, "da", "", &rules);
    assert_refused(base, 32, "it holds an unknown record");
}

/* ---- what is counted ---- */

IN_FIXTURE(a_base_that_counts_a_board_too_many_is_refused) {
    struct base *base = *state;
    put_open(base, "pa");
    put_close(base);
    uint64_t offset = end_block(base);
    base->footer.board_count++;
    assert_refused(base, offset, "it does not hold as many boards and members as it says");
}

IN_FIXTURE(a_base_that_counts_a_member_too_few_is_refused) {
    struct base *base = *state;
    put_open(base, "pa");
    put_member(base, "ann", 9);
    put_close(base);
    uint64_t offset = end_block(base);
    base->footer.member_count--;
    assert_refused(base, offset, "it does not hold as many boards and members as it says");
}

/* Members that changed while the board was open, and boards that were removed, count as written. */
IN_FIXTURE(what_changed_while_it_was_written_is_counted_as_written) {
    struct base *base = *state;
    put_open(base, "pa");
    put_member(base, "ann", 9);
    put_effect(base, EFFECT_REMOVE, "pa", "", NULL);
    put_open(base, "pd");
    put_member(base, "ann", 9);
    struct effect take = {.kind = EFFECT_TAKE, .name = BYTES("pd"), .member = BYTES("bob")};
    effect_encode(&base->encoder, &take);
    put_member(base, "bob", 8);
    put_close(base);
    assert_loaded(base);
    const struct registry_key *key = registry_find(base->registry, 0, BYTES("pd"), 0);
    assert_int_equal(board_count(&key->board), 1);
}

/* ---- where ---- */

/* A thread reads the next block ahead; a message is about the one before it. */
IN_FIXTURE(a_message_names_the_block_that_it_is_about) {
    struct base *base = *state;
    uint64_t offsets[5];
    offsets[0] = SNAPSHOT_FILE_HEAD;
    for (int i = 0; i < 4; i++) {
        put_open(base, i < 2 ? "pa" : i == 2 ? "pb" : "pc");
        put_close(base);
        offsets[i + 1] = end_block(base);
    }
    assert_refused(base, offsets[1], "two boards have the same name, or it is too long");
}

TEST_MAIN(NULL, NULL)
