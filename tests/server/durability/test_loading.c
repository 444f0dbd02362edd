/* Files with valid checksums and invalid content: they are refused with the file, the offset and
 * the reason, and the process does not exit. */
#include "tests/support/test.h"

#include "codec/memory.h"
#include "server/durability/loading.h"
#include "server/system/tzdata.h"
#include "skiplist/keyspace/key_kind.h"
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
    bool fails_at_block;       /* the first block cannot be allocated */
    char error[LOADING_ERROR_MAX];
};

static int set_up(void **state) {
    struct base *base = memory_allocate_zeroed(sizeof *base);
    char error[DISK_ERROR_MAX];
    const struct store_name name = store_name(STORE_BASE, 1);
    assert_non_null(base);
    directory_make(base->directory);
    assert_int_equal(store_open(&base->store, base->directory, "boards", STORE_CREATE, error),
                     STORE_OK);
    base->store.state.base_number = 1;
    base->store.state.base_sequence = 7;
    base->footer.sequence = 7;
    base->source = workload_create_registry(1);
    base->registry = workload_create_registry(2);
    assert_true(snapshot_writer_init(&base->writer, SNAPSHOT_LEVEL));
    assert_true(snapshot_writer_open(&base->writer, base->store.directory, name.text, 1));
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

/* A journal after the base, with these bytes as its only group, if any. */
static void put_journal(struct base *base, uint64_t first_sequence, const struct buffer *chunk) {
    struct store_state *state = &base->store.state;
    struct journal_file file;
    uint64_t number = 2 + state->journal_count;
    bool is_whole;
    state->journals[state->journal_count++] =
        (struct store_journal){.number = number, .first_sequence = first_sequence};
    assert_true(journal_file_create(&file, base->store.directory,
                                    store_name(STORE_JOURNAL, number).text, first_sequence));
    if (chunk != NULL) {
        const struct journal_group_head head = {.size = (uint32_t)chunk->size,
                                                .sequence = first_sequence};
        size_t size = JOURNAL_GROUP_HEAD + chunk->size;
        char *group = memory_allocate(size);
        assert_non_null(group);
        memcpy(group + JOURNAL_GROUP_HEAD, chunk->at, chunk->size);
        journal_group_seal(group, &head, file.id);
        assert_true(journal_file_append(&file, group, size, size, &is_whole));
        memory_free(group);
    }
    journal_file_close(&file);
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
    memory_fail_at(base->fails_at_block ? 2 : 0);
    bool is_loaded = loading_run(loading);
    memory_fail_at(0);
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

static void assert_error(struct base *base, const char *expected) {
    assert_false(load(base));
    if (strstr(base->error, expected) == NULL) {
        fail_msg("'%s' is not in '%s'", expected, base->error);
    }
}

/* The message has the file, the offset and the reason. */
static void assert_refused(struct base *base, uint64_t offset, const char *reason) {
    char expected[LOADING_ERROR_MAX];
    snprintf(expected, sizeof expected,
             "leaderboard.1.base is damaged at offset %llu: %s, though the checksum is right",
             (unsigned long long)offset, reason);
    assert_error(base, expected);
}

/* ---- valid content ---- */

#define FIXTURE_TEST(name) TEST_GIVEN(name, set_up, tear_down, struct base *base)

FIXTURE_TEST(a_base_that_means_what_it_says_is_loaded) {
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

FIXTURE_TEST(the_open_board_is_not_renamed_to_another_layout) {
    put_open(base, "pa");
    put_member(base, "ann", 9);
    put_effect(base, EFFECT_RENAME, "pa", "pb", rules_like(base, "ta"));
    put_close(base);
    assert_refused(base, 32, "a board that is being read cannot be renamed so");
}

FIXTURE_TEST(the_open_board_is_not_renamed_to_a_name_that_is_taken) {
    put_open(base, "pa");
    put_close(base);
    put_open(base, "pb");
    put_effect(base, EFFECT_RENAME, "pb", "pa", rules_like(base, "pa"));
    put_close(base);
    assert_refused(base, 32, "a board that is being read cannot be renamed so");
}

FIXTURE_TEST(the_open_board_gets_no_rules_of_another_layout) {
    put_open(base, "pa");
    put_effect(base, EFFECT_RULES, "pa", "", rules_like(base, "ta"));
    put_close(base);
    assert_refused(base, 32, "a board that is being read cannot behave so");
}

FIXTURE_TEST(two_boards_do_not_have_one_name) {
    put_open(base, "pa");
    put_close(base);
    put_open(base, "pa");
    put_close(base);
    assert_refused(base, 32, "two boards have the same name, or it is too long");
}

FIXTURE_TEST(no_board_is_copied_to_the_name_of_the_open_one) {
    put_open(base, "pa");
    put_close(base);
    put_open(base, "pb");
    put_effect(base, EFFECT_COPY, "pa", "pb", rules_like(base, "pa"));
    put_close(base);
    assert_refused(base, 32, "two boards have the same name");
}

FIXTURE_TEST(a_key_has_no_more_bits_than_its_layout) {
    put_open(base, "pa");
    put_member(base, "ann", UINT64_C(1) << 60);
    put_close(base);
    assert_refused(base, 32, "a member's key is larger than its board's layout allows");
}

FIXTURE_TEST(the_open_board_is_not_created) {
    put_open(base, "pa");
    uint64_t offset = end_block(base);
    put_effect(base, EFFECT_CREATE, "pa", "", rules_like(base, "pa"));
    put_close(base);
    assert_refused(base, offset, "a change cannot happen to a board that is being read");
}

FIXTURE_TEST(no_board_begins_within_another) {
    put_open(base, "pa");
    put_open(base, "pb");
    assert_refused(base, 32, "a board begins within another one");
}

FIXTURE_TEST(members_are_in_a_board) {
    put_member(base, "ann", 9);
    assert_refused(base, 32, "members outside a board");
}

FIXTURE_TEST(members_are_in_order) {
    const struct board_entry entries[] = {{.key = 8, .member = BYTES("bob")},
                                          {.key = 9, .member = BYTES("cid")}};
    put_open(base, "pa");
    put_member(base, "ann", 9);
    uint64_t offset = end_block(base);
    effect_encode_piece(&base->encoder, entries, 2);
    assert_refused(base, offset, "members of a board are out of order");
}

FIXTURE_TEST(members_are_in_order_from_piece_to_piece) {
    put_open(base, "pa");
    put_member(base, "ann", 9);
    put_member(base, "bob", 10);
    assert_refused(base, 32, "members of a board are out of order");
}

FIXTURE_TEST(only_an_open_board_ends) {
    put_open(base, "pa");
    put_close(base);
    uint64_t offset = end_block(base);
    put_close(base);
    assert_refused(base, offset, "the end of a board that was not begun");
}

FIXTURE_TEST(only_an_open_board_begins_anew) {
    effect_encode_reopen(&base->encoder);
    assert_refused(base, 32, "no board is there to begin anew");
}

FIXTURE_TEST(a_base_does_not_end_within_a_board) {
    put_open(base, "pa");
    uint64_t offset = end_block(base);
    assert_refused(base, offset, "it ends within a board");
}

FIXTURE_TEST(a_base_has_the_sequence_that_the_manifest_names) {
    base->footer.sequence = 8;
    assert_refused(base, 32, "it is not the snapshot that the manifest means");
}

/* ---- the files ---- */

FIXTURE_TEST(a_base_that_is_gone_is_named) {
    base->store.state.base_number = 3;
    assert_error(base, "leaderboard.3.base, which the manifest names: No such file");
}

FIXTURE_TEST(a_journal_that_is_gone_is_named) {
    put_journal(base, 8, NULL);
    base->store.state.journals[0].number = 3;
    assert_error(base, "leaderboard.3.journal, which the manifest names: No such file");
}

FIXTURE_TEST(a_damaged_base_is_refused_with_advice) {
    put_open(base, "pa");
    (void)end_block(base);
    base->writer.id++; /* of the blocks that follow */
    assert_error(base, "the checksum of a block is wrong; " STORE_ADVICE);
}

FIXTURE_TEST(journals_follow_the_base_without_a_gap) {
    put_journal(base, 9, NULL);
    assert_error(base, "leaderboard.2.journal begins with change 9, but leaderboard.1.base ends "
                       "with 7: the changes between them are missing. Restore a backup");
}

FIXTURE_TEST(journals_follow_one_another_without_a_gap) {
    put_journal(base, 8, NULL);
    put_journal(base, 9, NULL);
    assert_error(base, "leaderboard.3.journal begins with change 9, but leaderboard.2.journal "
                       "ends with 7: the changes between them are missing");
}

FIXTURE_TEST(no_board_of_a_snapshot_is_in_a_journal) {
    put_open(base, "pa");
    base->footer.board_count--;
    put_journal(base, 8, &base->chunk);
    buffer_clear(&base->chunk);
    assert_error(base, "leaderboard.2.journal is damaged at offset 32: a board of a snapshot");
}

FIXTURE_TEST(without_memory_the_boards_are_not_loaded) {
    put_open(base, "pa");
    put_member(base, "ann", 9);
    put_close(base);
    base->fails_at_block = true;
    assert_error(base, "no memory to load ");
}

/* A date is appended to it when the period ends. */
FIXTURE_TEST(a_board_with_a_period_has_no_longer_name_than_a_client_can_give) {
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
    assert_refused(base, offset, "a change does not fit the keys");
    memory_free(name);
}

FIXTURE_TEST(rules_keep_no_more_archives_than_can_be_counted) {
    struct rules rules;
    rules_copy(rules_like(base, "da"), &rules);
    rules.archives_max = PERIOD_COUNT_MAX + 1;
    put_effect(base, EFFECT_CREATE, "da", "", &rules);
    assert_refused(base, 32, "it holds an unknown record");
}

FIXTURE_TEST(a_board_whose_time_zone_is_missing_is_not_loaded) {
    struct rules rules;
    rules_copy(rules_like(base, "da"), &rules);
    rules.period.zone_minutes = 0;
    rules.period.zone = tzdata_find_anyway(BYTES("Mars/Base"));
    assert_non_null(rules.period.zone);
    put_effect(base, EFFECT_CREATE, "da", "", &rules);
    assert_error(base, "a board's PERIOD needs a time zone that is missing: time zone 'Mars/Base' "
                       "cannot be used: /usr/share/zoneinfo: there is no zone of this name (is the "
                       "package tzdata installed?)");
    tzdata_deinit();
}

/* ---- what is counted ---- */

FIXTURE_TEST(a_base_that_counts_a_board_too_many_is_refused) {
    put_open(base, "pa");
    put_close(base);
    uint64_t offset = end_block(base);
    base->footer.board_count++;
    assert_refused(base, offset, "it does not hold as many boards and members as it says");
}

FIXTURE_TEST(a_base_that_counts_a_member_too_few_is_refused) {
    put_open(base, "pa");
    put_member(base, "ann", 9);
    put_close(base);
    uint64_t offset = end_block(base);
    base->footer.member_count--;
    assert_refused(base, offset, "it does not hold as many boards and members as it says");
}

/* Members that changed while the board was open, and boards that were removed, count as written. */
FIXTURE_TEST(what_changed_while_it_was_written_is_counted_as_written) {
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

/* ---- hashes ---- */

static void put_hash_effect(struct base *base, struct buffer *chunk, enum effect_kind kind,
                            const char *name, const char *field, const char *value) {
    const struct effect effect = {.kind = kind,
                                  .key_kind = &key_kind_hash,
                                  .name = bytes_from_text(name),
                                  .member = bytes_from_text(field),
                                  .value = bytes_from_text(value)};
    base->encoder.out = chunk;
    effect_encode(&base->encoder, &effect);
    base->encoder.out = &base->chunk;
}

static void assert_field(struct base *base, const char *name, const char *field,
                         const char *expected) {
    const struct registry_key *key = registry_find(base->registry, 0, bytes_from_text(name), 0);
    struct bytes value;
    assert_non_null(key);
    assert_int_equal(key->kind, REGISTRY_HASH);
    assert_int_equal(hash_find(&key->hash, bytes_from_text(field), &value), expected != NULL);
    if (expected != NULL) {
        assert_true(bytes_equal(value, bytes_from_text(expected)));
    }
}

/* A field that changed while its hash was written may be there several times, or be removed before
 * it is there. */
FIXTURE_TEST(a_hash_is_what_its_last_changes_make_it) {
    put_hash_effect(base, &base->chunk, EFFECT_CREATE, "h", "", "");
    put_hash_effect(base, &base->chunk, EFFECT_PUT, "h", "tier", "silver");
    put_open(base, "pa");
    put_member(base, "ann", 9);
    put_hash_effect(base, &base->chunk, EFFECT_TAKE, "h", "gone", "");
    put_hash_effect(base, &base->chunk, EFFECT_PUT, "h", "name", "Ann");
    put_close(base);
    put_hash_effect(base, &base->chunk, EFFECT_PUT, "h", "tier", "gold");
    put_hash_effect(base, &base->chunk, EFFECT_TAKE, "h", "name", "");
    assert_loaded(base);
    assert_field(base, "h", "tier", "gold");
    assert_field(base, "h", "name", NULL);
    assert_int_equal(registry_count(base->registry, 0), 2);
}

FIXTURE_TEST(a_field_of_no_hash_is_refused) {
    put_open(base, "pa");
    put_close(base);
    uint64_t offset = end_block(base);
    put_hash_effect(base, &base->chunk, EFFECT_PUT, "pa", "tier", "gold");
    assert_refused(base, offset, "a change does not fit the keys");
}

FIXTURE_TEST(a_hash_is_not_made_twice) {
    put_hash_effect(base, &base->chunk, EFFECT_CREATE, "h", "", "");
    put_hash_effect(base, &base->chunk, EFFECT_CREATE, "h", "", "");
    assert_refused(base, 32, "a change does not fit the keys");
}

FIXTURE_TEST(a_board_that_is_read_does_not_take_the_changes_of_a_hash) {
    put_open(base, "pa");
    put_hash_effect(base, &base->chunk, EFFECT_PUT, "pa", "", "gold");
    assert_refused(base, 32, "a change of a hash cannot happen to a board");
}

FIXTURE_TEST(a_board_that_is_read_is_not_renamed_as_a_hash_is) {
    put_open(base, "pa");
    struct effect rename = {.kind = EFFECT_RENAME,
                            .key_kind = &key_kind_hash,
                            .name = BYTES("pa"),
                            .to_name = BYTES("pb"),
                            .expire_at_ms = NEVER};
    effect_encode(&base->encoder, &rename);
    assert_refused(base, 32, "a change of a hash cannot happen to a board");
}

/* Only a snapshot is written while its hashes change. */
FIXTURE_TEST(a_journal_does_not_remove_what_is_not_there) {
    struct buffer group;
    buffer_init(&group, 0);
    put_hash_effect(base, &base->chunk, EFFECT_CREATE, "h", "", "");
    put_hash_effect(base, &base->chunk, EFFECT_PUT, "h", "tier", "gold");
    (void)end_block(base);
    effect_encode_begin(&base->encoder, &group);
    put_hash_effect(base, &group, EFFECT_TAKE, "h", "name", "");
    put_journal(base, 8, &group);
    effect_encode_begin(&base->encoder, &base->chunk);
    assert_error(base, "a change does not fit the keys");
    buffer_deinit(&group);
}

/* ---- where ---- */

/* A thread reads the next block ahead; a message is about the one before it. */
FIXTURE_TEST(a_message_names_the_block_that_it_is_about) {
    uint64_t offsets[5];
    offsets[0] = SNAPSHOT_FILE_HEAD;
    for (int i = 0; i < 4; i++) {
        put_open(base, i < 2 ? "pa" : i == 2 ? "pb" : "pc");
        put_close(base);
        offsets[i + 1] = end_block(base);
    }
    assert_refused(base, offsets[1], "two boards have the same name, or it is too long");
}
