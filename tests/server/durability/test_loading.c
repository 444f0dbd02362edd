/* Files with valid checksums and invalid content: they are refused with the file, the offset and
 * the reason, and the process does not exit. */
#include "server/durability/loading.h"
#include "server/system/tzdata.h"
#include "skiplist/keyspace/effect.h"
#include "tests/support/directory.h"
#include "tests/support/keyspace.h"
#include "tests/support/registry_workload.h"
#include "tests/support/stored_text.h"

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
    uint64_t block_at;         /* the offset of the last block begun */
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
    base->block_at = SNAPSHOT_FILE_HEAD;
    base->source = workload_create_registry(1);
    base->registry = workload_create_registry(2);
    assert_true(snapshot_file_writer_init(&base->writer, SNAPSHOT_LEVEL));
    assert_true(snapshot_file_writer_open(&base->writer, base->store.directory, name.text, 1));
    buffer_init(&base->chunk, 0);
    effect_bytes_encode_begin(&base->encoder, &base->chunk);
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

/* A key of the source under this name, whose options are those of such names (registry_workload.h). */
static const struct registry_key *key_like(struct base *base, const char *name) {
    const struct registry_key *key = key_find(base->source, 0, name, 0);
    return key != NULL ? key : key_create_like(base->source, name, workload_options(name[0]), 0, 0);
}

/* Of q: those of p with other tags, clan and country. */
static void make_rules_of_q(struct base *base) {
    struct board_options options;
    char error[TAG_ERROR_MAX];
    board_options_copy(workload_options('p'), &options);
    options.layout.tags = (struct tag_set){.count = 0};
    assert_true(tag_set_add(&options.layout.tags, BYTES("clan"), BYTES("5"), error));
    assert_true(tag_set_add(&options.layout.tags, BYTES("country"), BYTES("3"), error));
    key_create_like(base->source, "q", &options, 0, 0);
}

static const struct board_options *rules_like(struct base *base, const char *name) {
    if (strcmp(name, "q") == 0 && key_find(base->source, 0, name, 0) == NULL) {
        make_rules_of_q(base);
    }
    return registry_options(key_like(base, name));
}

/* Start a new block; returns its offset. */
static uint64_t end_block(struct base *base) {
    assert_true(
        snapshot_file_writer_block(&base->writer, base->chunk.at, (uint32_t)base->chunk.size));
    buffer_clear(&base->chunk);
    effect_bytes_encode_begin(&base->encoder, &base->chunk);
    return base->writer.size;
}

static const struct {
    const char *word;
    enum effect_kind kind;
    bool is_of_hash;
} effect_words[] = {
    {"create", EFFECT_CREATE, false},     {"remove", EFFECT_REMOVE, false},
    {"rename", EFFECT_RENAME, false},     {"copy", EFFECT_COPY, false},
    {"rules", EFFECT_OPTIONS, false},     {"take", EFFECT_TAKE, false},
    {"hash-create", EFFECT_CREATE, true}, {"hash-put", EFFECT_PUT, true},
    {"hash-take", EFFECT_TAKE, true},     {"hash-rename", EFFECT_RENAME, true},
    {"tags", EFFECT_TAGS, false},         {"put", EFFECT_PUT, false},
};

/* An effect by its words: of a board "rename NAME TO RULES-LIKE", "take NAME MEMBER", of a hash
 * "hash-put NAME FIELD VALUE", "hash-rename NAME TO". "tags NAME MEMBER [VALUE]" sets the first tag. */
static void put_effect(struct base *base, char (*words)[64]) {
    struct effect effect = {.name = bytes_from_text(words[1]), .expire_at_ms = NEVER};
    struct bytes second = bytes_from_text(words[2]);
    size_t i = 0;
    while (strcmp(effect_words[i].word, words[0]) != 0) {
        assert_true(++i < COUNT_OF(effect_words));
    }
    effect.kind = effect_words[i].kind;
    char packed[TAG_VALUES_PACKED_MAX];
    const struct tag_values values = {.mask = 1, .at = {bytes_from_text(words[3])}};
    effect.to_name = effect.member = second;
    if (effect.kind == EFFECT_TAGS) {
        effect.value = (struct bytes){packed, tag_values_pack(&values, packed)};
    }
    if (effect_words[i].is_of_hash) {
        effect.key_kind = &key_kind_hash;
        effect.value = bytes_from_text(words[3]);
    } else if (effect.kind == EFFECT_CREATE || effect.kind == EFFECT_OPTIONS) {
        effect.options = rules_like(base, words[2]);
    } else if (effect.kind == EFFECT_RENAME || effect.kind == EFFECT_COPY) {
        effect.options = rules_like(base, words[3]);
    }
    effect_bytes_encode(&base->encoder, &effect);
}

/* A piece of members, each with its key. */
static void put_members(struct base *base, char (*words)[64]) {
    struct board_stored entries[2];
    uint32_t count = 0;
    for (; count < 2 && words[1 + 2 * count][0] != '\0'; count++) {
        entries[count] = (struct board_stored){
            .key = strtoull(words[2 + 2 * count], NULL, 10),
            .member = stored_name(bytes_from_text(words[1 + 2 * count])),
        };
    }
    effect_bytes_encode_piece(&base->encoder, NULL, 0, entries, count);
    base->footer.member_count += count;
}

/* A member in a piece, its key, and the value of its first tag. */
static void put_tagged(struct base *base, char (*words)[64]) {
    const struct tag_values values = {.mask = 1, .at = {bytes_from_text(words[3])}};
    const struct bytes member = bytes_from_text(words[1]);
    const struct board_stored entry = {.key = strtoull(words[2], NULL, 10),
                                       .member = stored_name(member)};
    ENDED_BY(board_deinit) struct board board;
    unsigned full;
    board_init(&board, &workload_options('p')->layout, 1);
    assert_int_equal(board_put(&board, member, entry.key), BOARD_OK);
    assert_int_equal(tags_set_at(&board, 0, &values, &full), TAGS_OK);
    effect_bytes_encode_piece(&base->encoder, &board, 0, &entry, 1);
    base->footer.member_count++;
}

static void put_line(struct base *base, const char *line) {
    char words[5][64] = {""};
    sscanf(line, "%63[^ ;] %63[^ ;] %63[^ ;] %63[^ ;] %63[^ ;]", words[0], words[1], words[2],
           words[3], words[4]);
    if (strcmp(words[0], "open") == 0) {
        effect_bytes_encode_open(&base->encoder, key_like(base, words[1]), NEVER);
        base->footer.board_count++;
    } else if (strcmp(words[0], "members") == 0) {
        put_members(base, words);
    } else if (strcmp(words[0], "tagged") == 0) {
        put_tagged(base, words);
    } else if (strcmp(words[0], "close") == 0) {
        effect_bytes_encode_close(&base->encoder);
    } else if (strcmp(words[0], "block") == 0) {
        base->block_at = end_block(base);
    } else if (strcmp(words[0], "sequence") == 0) {
        base->footer.sequence = strtoull(words[1], NULL, 10);
    } else if (strcmp(words[0], "count") == 0) {
        base->footer.board_count += (uint64_t)strtoll(words[1], NULL, 10);
        base->footer.member_count += (uint64_t)strtoll(words[2], NULL, 10);
    } else {
        put_effect(base, words);
    }
}

/* "open NAME; members NAME KEY NAME KEY; tagged NAME KEY VALUE; close; block; sequence N; count BOARDS MEMBERS", and
 * effects: what a faulty server writes. The last two are said too many or few at the end. */
static void put(struct base *base, const char *script) {
    for (const char *line = script; line != NULL; line = strchr(line, ';')) {
        line += strspn(line, "; ");
        put_line(base, line);
    }
}

/* A journal after the base, with these bytes as its only group, if any. */
static void put_journal(struct base *base, uint64_t first_sequence, const struct buffer *chunk) {
    struct store_state *state = &base->store.state;
    ENDED_BY(journal_file_close) struct journal_file file;
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
        journal_file_seal_group(group, &head, file.id);
        assert_true(journal_file_append(&file, group, size, size, &is_whole));
        memory_free(group);
    }
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
    assert_true(snapshot_file_writer_finish(&base->writer, &base->footer));
    snapshot_file_writer_close(&base->writer);
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
    if (!load(base)) {
        fail_msg("%s", base->error);
    }
    ASSERT_VALID(registry_validate, base->registry);
}

static void assert_error(struct base *base, const char *expected) {
    assert_false(load(base));
    if (strstr(base->error, expected) == NULL) {
        fail_msg("'%s' is not in '%s'", expected, base->error);
    }
}

/* The message has the file, the offset and the reason. */
static void assert_refused(struct base *base, uint64_t offset, const char *reason) {
    assert_error(base, formatted("leaderboard.1.base is damaged at offset %llu: %s, though the "
                                 "checksum is right",
                                 (unsigned long long)offset, reason));
}

/* ---- valid content ---- */

#define FIXTURE_TEST(name) TEST_GIVEN(name, set_up, tear_down, struct base *base)

FIXTURE_TEST(a_base_that_means_what_it_says_is_loaded) {
    put(base, "open pa; members ann 9; rename pa pb pa; members bob 8; close; open pa; close");
    assert_loaded(base);
    const struct registry_key *key = registry_find(base->registry, 0, BYTES("pb"), 0);
    assert_non_null(key);
    assert_int_equal(board_count(&key->board), 2);
    assert_int_equal(registry_count(base->registry, 0), 2);
}

/* ---- invalid content ---- */

TEST(what_no_server_writes_is_refused_with_its_block) {
#define NOT_FIT "a change does not fit the keys"
#define ORDER   "members of a board are out of order"
#define COUNTS  "it does not hold as many boards and members as it says"
    static const struct {
        const char *sentence, *script, *reason;
    } rows[] = {
        {"the open board is not renamed to another layout",
         "open pa; members ann 9; rename pa pb ta; close", NOT_FIT},
        {"the open board is not renamed to a name that is taken",
         "open pa; close; open pb; rename pb pa pa; close", NOT_FIT},
        {"the open board gets no rules of another layout", "open pa; rules pa ta; close", NOT_FIT},
        {"two boards do not have one name", "open pa; close; open pa; close",
         "two boards have the same name, or it is too long"},
        {"no board is copied to the name of the open one",
         "open pa; close; open pb; copy pa pb pa; close", "two boards have the same name"},
        {"a key has no more bits than its layout",
         "open pa; members ann 1152921504606846976; close",
         "a member's key is larger than its board's layout allows"},
        {"the open board is not created", "open pa; block; create pa pa; close", NOT_FIT},
        {"no board begins within another", "open pa; open pb", "a board begins within another one"},
        {"members are in a board", "members ann 9", "members outside a board"},
        {"members are in order", "open pa; members ann 9; block; members bob 8 cid 9", ORDER},
        {"from piece to piece, too", "open pa; members ann 9; members bob 10", ORDER},
        {"only an open board ends", "open pa; close; block; close",
         "the end of a board that was not begun"},
        {"a base does not end within a board", "open pa; block", "it ends within a board"},
        {"a base has the sequence that the manifest names", "sequence 8",
         "it is not the snapshot that the manifest means"},
        {"a base does not count a board too many", "open pa; close; block; count 1 0", COUNTS},
        {"nor a member too few", "open pa; members ann 9; close; block; count 0 -1", COUNTS},
        {"a field is of a hash", "open pa; close; block; hash-put pa tier gold", NOT_FIT},
        {"a hash is not made twice", "hash-create h; hash-create h", NOT_FIT},
        {"a board that is read does not take the changes of a hash",
         "open pa; hash-put pa tier gold", NOT_FIT},
        {"nor is it renamed as a hash is", "open pa; hash-rename pa pb", NOT_FIT},
        {"members have values of the board's tags", "open ta; tagged ann 9 x; close",
         "a member has values of unknown tags"},
        {"what is set later, too", "open ta; members ann 9; block; tags ta ann x; close", NOT_FIT},
        {"a member that is tagged is there", "open pa; close; block; tags pa ann x", NOT_FIT},
        {"no tag has more values than it takes", "open ca; tagged ann 9 x; tagged bob 8 y; close",
         "a tag has too many values"},
        {"a member that is taken was in a piece", "open pa; members ann 9; take pa bob; close",
         NOT_FIT},
        {"a board that is gone has no more members",
         "open pa; members ann 9; remove pa; members bob 8", "members outside a board"},
        {"members are in order behind those that have changed",
         "open pa; members ann 9; take pa ann; members bob 8; block; members cid 9", ORDER},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        void *base;
        test_row("%s", rows[i].sentence);
        set_up(&base);
        put(base, rows[i].script);
        assert_refused(base, ((struct base *)base)->block_at, rows[i].reason);
        tear_down(&base);
    }
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
    put(base, "open pa; block");
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
    put(base, "open pa; count -1 0");
    put_journal(base, 8, &base->chunk);
    buffer_clear(&base->chunk);
    assert_error(base, "leaderboard.2.journal is damaged at offset 32: a board of a snapshot");
}

FIXTURE_TEST(without_memory_the_boards_are_not_loaded) {
    put(base, "open pa; members ann 9; close");
    base->fails_at_block = true;
    assert_error(base, "no memory to load ");
}

static void put_named(struct base *base, enum effect_kind kind, const char *name, const char *to,
                      const struct board_options *options) {
    const struct effect effect = {.kind = kind,
                                  .name = bytes_from_text(name),
                                  .to_name = bytes_from_text(to),
                                  .options = options,
                                  .expire_at_ms = NEVER};
    effect_bytes_encode(&base->encoder, &effect);
}

/* A date is appended to it when the period ends. */
FIXTURE_TEST(a_board_with_a_period_has_no_longer_name_than_a_client_can_give) {
    char *name = memory_allocate(REGISTRY_KEY_MAX + 2);
    assert_non_null(name);
    memset(name, 'p', REGISTRY_KEY_MAX + 1);
    name[REGISTRY_KEY_MAX + 1] = '\0';
    put(base, "open pa; close");
    put_named(base, EFFECT_COPY, "pa", name, rules_like(base, "pa"));
    put(base, "create da da");
    put_named(base, EFFECT_RENAME, "da", name + 1, rules_like(base, "da"));
    put(base, "create da da; block");
    *name = 'd';
    put_named(base, EFFECT_RENAME, "da", name, rules_like(base, "da"));
    assert_refused(base, base->block_at, NOT_FIT);
    memory_free(name);
}

FIXTURE_TEST(rules_keep_no_more_archives_than_can_be_counted) {
    struct board_options options;
    board_options_copy(rules_like(base, "da"), &options);
    options.archives_max = PERIOD_COUNT_MAX + 1;
    put_named(base, EFFECT_CREATE, "da", "", &options);
    assert_refused(base, base->block_at, "it holds an unknown record");
}

FIXTURE_TEST(a_board_whose_time_zone_is_missing_is_not_loaded) {
    struct board_options options;
    board_options_copy(rules_like(base, "da"), &options);
    options.period.zone_minutes = 0;
    options.period.zone = tzdata_find_anyway(BYTES("Mars/Base"));
    assert_non_null(options.period.zone);
    put_named(base, EFFECT_CREATE, "da", "", &options);
    assert_error(base, "a board's PERIOD needs a time zone that is missing: time zone 'Mars/Base' "
                       "cannot be used: /usr/share/zoneinfo: there is no zone of this name (is the "
                       "package tzdata installed?)");
    tzdata_deinit();
}

/* ---- what is counted ---- */

/* Members that changed while the board was open, and boards that were removed, count as written. */
FIXTURE_TEST(what_changed_while_it_was_written_is_counted_as_written) {
    put(base, "open pa; members ann 9; remove pa; open pd; members ann 9 cid 9; take pd cid; "
              "members bob 8; close");
    assert_loaded(base);
    const struct registry_key *key = registry_find(base->registry, 0, BYTES("pd"), 0);
    assert_int_equal(board_count(&key->board), 2);
}

/* ---- tags ---- */

/* The name of a board's first tag, and the values of its members, best first: "clan: ann x. bob .y". */
static void assert_values(struct base *base, const char *name, const char *expected) {
    const struct registry_key *key = registry_find(base->registry, 0, bytes_from_text(name), 0);
    char text[256];
    assert_non_null(key);
    snprintf(text, sizeof text, "%s:", board_layout(&key->board)->tags.tags[0].name);
    for (uint32_t rank = 0; rank < board_count(&key->board); rank++) {
        struct tag_values values = {.at = {{.at = NULL}}};
        struct bytes member = stored_text(board_at(&key->board, rank).member);
        size_t size = strlen(text);
        tags_at(&key->board, rank, &values);
        snprintf(text + size, sizeof text - size, " %.*s %.*s.%.*s", (int)member.size, member.at,
                 (int)values.at[0].size, values.at[0].size > 0 ? values.at[0].at : "",
                 (int)values.at[1].size, values.at[1].size > 0 ? values.at[1].at : "");
    }
    assert_string_equal(text, expected);
}

TEST(members_have_the_values_that_they_had_in_the_end) {
    static const struct {
        const char *sentence, *script, *expected;
    } rows[] = {
        {"a value comes with its member", "open pa; tagged ann 9 x; members bob 8; close",
         "country: ann x. bob ."},
        {"one that is set while the board is written follows",
         "open pa; tagged ann 9 x; members bob 8; tags pa ann y; tags pa bob x; close",
         "country: ann y. bob x."},
        {"also on a board that is renamed",
         "open pb; tagged ann 9 x; rename pb pa pa; tags pa ann y; tagged bob 8 z; close",
         "country: ann y. bob z."},
        {"and by itself when the board is there", "open pa; members ann 9; close; tags pa ann y",
         "country: ann y."},
        {"one that moves has those that follow it",
         "open pa; tagged ann 9 x; put pa ann; tags pa ann x; put pa bob; tags pa bob z; close",
         "country: ann x. bob z."},
        {"one that comes again has none",
         "open pa; tagged ann 9 x; take pa ann; tagged bob 8 y; put pa ann; close",
         "country: bob y. ann ."},
        {"a value that made room for another one is not in its way",
         "open ca; tagged ann 9 x; tags ca ann; tagged bob 8 y; close", "class: ann . bob y."},
        {"nor where it came and went in between",
         "open ca; members ann 9; tags ca ann x; tags ca ann; tagged bob 8 y; close",
         "class: ann . bob y."},
        {"nor where it went with its member",
         "open ca; tagged ann 9 x; take ca ann; tagged bob 8 y; close", "class: bob y."},
        {"tags that change in between are those in the end",
         "open pa; tagged ann 9 x; rules pa q; tags pa ann z; tagged bob 8 y; close",
         "clan: ann z.x bob y."},
        {"also when the board is renamed then",
         "open pb; tagged ann 9 x; rules pb q; rename pb pa q; tagged bob 8 y; close",
         "clan: ann .x bob y."},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        void *fixture;
        test_row("%s", rows[i].sentence);
        set_up(&fixture);
        put(fixture, rows[i].script);
        assert_loaded(fixture);
        assert_values(fixture, ((const char *)rows[i].script)[5] == 'c' ? "ca" : "pa",
                      rows[i].expected);
        tear_down(&fixture);
    }
}

/* ---- hashes ---- */

static void assert_field(struct base *base, const char *name, const char *field,
                         const char *expected) {
    const struct registry_key *key = registry_find(base->registry, 0, bytes_from_text(name), 0);
    struct bytes value;
    assert_non_null(key);
    assert_int_equal(key->kind, REGISTRY_HASH);
    assert_int_equal(hash_find(registry_hash(key), bytes_from_text(field), &value),
                     expected != NULL);
    if (expected != NULL) {
        assert_true(bytes_equal(value, bytes_from_text(expected)));
    }
}

/* A field that changed while its hash was written may be there several times, or be removed before
 * it is there. */
FIXTURE_TEST(a_hash_is_what_its_last_changes_make_it) {
    put(base, "hash-create h; hash-put h tier silver; open pa; members ann 9; hash-take h gone; "
              "hash-put h name Ann; close; hash-put h tier gold; hash-take h name");
    assert_loaded(base);
    assert_field(base, "h", "tier", "gold");
    assert_field(base, "h", "name", NULL);
    assert_int_equal(registry_count(base->registry, 0), 2);
}

/* Only a snapshot is written while its hashes change. */
FIXTURE_TEST(a_journal_does_not_remove_what_is_not_there) {
    BUFFER(group, 0);
    put(base, "hash-create h; hash-put h tier gold; block");
    effect_bytes_encode_begin(&base->encoder, &group);
    put(base, "hash-take h name");
    put_journal(base, 8, &group);
    effect_bytes_encode_begin(&base->encoder, &base->chunk);
    assert_error(base, "a change does not fit the keys");
}

/* ---- where ---- */

/* A thread reads the next block ahead; a message is about the one before it. */
FIXTURE_TEST(a_message_names_the_block_that_it_is_about) {
    put(base, "open pa; close; block");
    uint64_t offset = base->block_at;
    put(base, "open pa; close; block; open pb; close; block; open pc; close; block");
    assert_refused(base, offset, "two boards have the same name, or it is too long");
}
