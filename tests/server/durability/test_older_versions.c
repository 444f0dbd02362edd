/* Files that older versions wrote, a directory of each (server/durability/file_format.h), and of the
 * current one for those to come; commands.txt is what its server was sent. Each is loaded, goes on in
 * files of this version, and is whole: docs/install.md promises that. */
#include "tests/support/test.h"

#include <sys/stat.h>

#include "server/durability/file_format.h"
#include "server/durability/store.h"
#include "server/durability/verify.h"
#include "skiplist/keyspace/registry_hash.h"
#include "tests/support/directory.h"
#include "tests/support/durable_server.h"
#include "tests/support/stored_text.h"

static const char *const files[] = {"leaderboard.manifest", "leaderboard.3.base",
                                    "leaderboard.2.journal"};

static const struct kept {
    const char *folder;
    unsigned base_version, journal_version;
    uint32_t hashes;
    bool has_history; /* of replication */
} kept[] = {{"version_1", 1, 1, 0, false}, {"version_2", 1, 2, 0, false},
            {"version_3", 3, 3, 1, false}, {"version_4", 4, 4, 1, true},
            {"version_5", 5, 5, 1, true},  {"version_6", 6, 6, 1, true}};
enum { KEPT = COUNT_OF(kept) };
_Static_assert(FILE_FORMAT == 6, "keep a directory of the new version, too");

/* The members of a board, best first. */
struct expected {
    uint32_t database;
    const char *name;
    const char *members;
    const char *layout;
    int64_t expire_at_ms;
    uint32_t cap;
    enum period_unit period;
    int zone_minutes;
    uint32_t archives_max;
};

#define PLAIN "FIELD score 33 SIGNED TIME 31 S"

static const struct expected expected[] = {
    {.name = "plain", .members = "bob kim ann", .layout = PLAIN, .expire_at_ms = 4102444800000},
    {.name = "points",
     .members = "kim ann bob",
     .layout = "FIELD points 20 ASC TIME 40 MS LATEST",
     .cap = 3},
    {.name = "exact",
     .members = "bob ann",
     .layout = "FIELD score 40 SIGNED SCALE 2 FIELD second 24"},
    {.name = "days",
     .members = "ann",
     .layout = "FIELD score 34 TIME 30 MS",
     .period = PERIOD_DAY,
     .zone_minutes = 330,
     .archives_max = 7},
    {.name = "weeks",
     .members = "bob",
     .layout = "FIELD score 34 TIME 30 MS",
     .period = PERIOD_WEEK,
     .zone_minutes = -180,
     .archives_max = RULES_ARCHIVES_ALL},
    {.name = "months",
     .members = "bob ann",
     .layout = "FIELD score 30",
     .cap = 1000,
     .period = PERIOD_MONTH},
    {.name = "new", .members = "bob ann", .layout = PLAIN},
    {.name = "new:copy", .members = "bob ann", .layout = PLAIN, .expire_at_ms = 4102444800123},
    {.name = "cut", .members = "e d a", .layout = PLAIN},
    {.name = "group", .members = "b a", .layout = PLAIN},
    {.database = 3, .name = "far", .members = "yan zoe", .layout = PLAIN},
};
enum { EXPECTED = COUNT_OF(expected) };
#define DAY_MS INT64_C(86400000)

static void copy_directory(const char *folder, const char *to) {
    char from[DIRECTORY_PATH_MAX];
    size_t folder_size = (size_t)(strrchr(__FILE__, '/') - __FILE__);
    snprintf(from, sizeof from, "%.*s/%s", (int)folder_size, __FILE__, folder);
    assert_int_equal(mkdir(directory_join(to, "kept"), 0700), 0);
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        size_t size;
        char *bytes = file_read(directory_join(from, files[i]), &size);
        file_write(directory_join(directory_join(to, "kept"), files[i]), bytes, size);
        free(bytes);
    }
}

static void assert_board(const struct registry *registry, const struct expected *one) {
    const struct registry_key *key =
        registry_peek(registry, one->database, bytes_from_text(one->name), INT64_MIN);
    char members[64] = "";
    char layout[LAYOUT_TEXT_MAX];
    assert_non_null(key);
    assert_int_equal(key->kind, REGISTRY_BOARD);
    for (uint32_t i = 0; i < board_count(&key->board); i++) {
        struct bytes member = stored_text(board_at(&key->board, i).member);
        size_t size = strlen(members);
        snprintf(members + size, sizeof members - size, "%s%.*s", i > 0 ? " " : "",
                 (int)member.size, member.at);
    }
    assert_string_equal(members, one->members);
    const struct rules *rules = registry_rules(key);
    size_t size = layout_print(&rules->layout, layout);
    assert_true(size >= strlen(one->layout));
    assert_memory_equal(layout, one->layout, strlen(one->layout));
    assert_true(registry_expiry(registry, key) ==
                (one->expire_at_ms != 0 ? one->expire_at_ms : REGISTRY_NO_EXPIRY));
    assert_int_equal(rules->cap, one->cap);
    assert_int_equal(rules->keeps_best, one->cap == 3);
    const struct period period = {
        .unit = one->period,
        .every = one->period != PERIOD_NONE,
        .zone_minutes = (int16_t)one->zone_minutes,
    };
    assert_true(period_equal(&rules->period, &period));
    assert_int_equal(rules->limit, 0);
    assert_int_equal(rules->guards, 0);
    assert_int_equal(rules->archives_max, one->archives_max);
}

static void assert_boards(const struct registry *registry, uint32_t hashes) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < REGISTRY_DATABASES; i++) {
        count += registry_count(registry, i);
    }
    assert_int_equal(count, EXPECTED + hashes);
    for (size_t i = 0; i < EXPECTED; i++) {
        assert_board(registry, &expected[i]);
    }
}

/* The values of a member of the board exact: "country DE clan wolves". */
static void assert_tags(const struct registry *registry, uint32_t rank, const char *wanted) {
    const struct registry_key *key = registry_peek(registry, 0, BYTES("exact"), INT64_MIN);
    char text[64] = "";
    struct tag_values values;
    assert_non_null(key);
    board_tags_at(&key->board, rank, &values);
    for (unsigned i = 0; i < TAGS_MAX; i++) {
        size_t size = strlen(text);
        if ((values.mask >> i & 1) != 0) {
            snprintf(text + size, sizeof text - size, "%s%s %.*s", size > 0 ? " " : "",
                     board_layout(&key->board)->tags.tags[i].name, (int)values.at[i].size,
                     values.at[i].at);
        }
    }
    assert_string_equal(text, wanted);
}

/* Those of versions that had tags. */
static void assert_all_tags(const struct registry *registry, unsigned version) {
    bool has_tags = version >= FILE_FORMAT_TAGS;
    assert_tags(registry, 0, has_tags ? "country FR clan wolves" : "");
    assert_tags(registry, 1, has_tags ? "country DE" : "");
}

/* The options of versions that had them. */
static void assert_contests(const struct registry *registry, unsigned version) {
    bool has_contests = version >= FILE_FORMAT_CONTESTS;
    const struct registry_key *points = registry_peek(registry, 0, BYTES("points"), INT64_MIN);
    const struct registry_key *weeks = registry_peek(registry, 0, BYTES("weeks"), INT64_MIN);
    assert_true(registry_rules(points)->stale_ms == (has_contests ? 900000 * DAY_MS : 0));
    assert_int_equal(registry_rules(weeks)->settles, has_contests);
}

static void put_hash(struct durable_server *durable, const char *name) {
    const struct bytes args[] = {BYTES("name"), BYTES("Ann"), BYTES("tier"), BYTES("gold")};
    struct registry *registry = durable->server->registry;
    uint32_t added_count;
    bool is_new;
    struct registry_key *key =
        registry_find_or_create_hash(registry, 0, bytes_from_text(name), 0, &is_new);
    assert_true(key != NULL && is_new);
    assert_int_equal(registry_put_fields(registry, key, args, 2, &added_count), HASH_OK);
    registry_tell_members(registry, key);
    durable_end_tick(durable);
    assert_true(durable_settle(durable));
}

static void assert_hash(const struct registry *registry, const char *name) {
    const struct registry_key *key = registry_peek(registry, 0, bytes_from_text(name), INT64_MIN);
    struct bytes value;
    assert_non_null(key);
    assert_int_equal(key->kind, REGISTRY_HASH);
    assert_int_equal(hash_count(&key->hash), 2);
    assert_true(hash_find(&key->hash, BYTES("tier"), &value));
    assert_true(bytes_equal(value, BYTES("gold")));
}

/* The version that the current file of this kind has. */
static unsigned version_of(const struct store_state *state, const char *directory,
                           enum store_kind kind) {
    uint64_t number =
        kind == STORE_BASE ? state->base_number : state->journals[state->journal_count - 1].number;
    size_t size;
    char *bytes = file_read(
        directory_join(directory_join(directory, "kept"), store_name(kind, number).text), &size);
    unsigned version = file_format_of(bytes, kind == STORE_BASE ? "LBSNAP" : "LBJRNL");
    free(bytes);
    return version;
}

static void read_state(const char *directory, struct store_state *state) {
    struct store store;
    char error[DISK_ERROR_MAX];
    assert_int_equal(store_open(&store, directory, "kept", STORE_READ, error), STORE_OK);
    *state = store.state;
    store_close(&store);
}

/* What --check says. */
static void assert_whole(const char *directory, const char *wanted) {
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    assert_int_equal(check_run(directory_join(directory, "kept"), false, out), CHECK_IS_WHOLE);
    fclose(out);
    assert_non_null(strstr(text, wanted));
    free(text);
}

static void assert_hashes(const char *directory, uint32_t count) {
    assert_whole(directory, formatted("hashes: %u with %u fields", count, 2 * count));
}

static void check_directory(const struct kept *one) {
    char directory[DIRECTORY_PATH_MAX];
    struct durable_server durable;
    struct store_state files_now;
    char error[PERSISTENCE_ERROR_MAX];
    directory_make(directory);
    copy_directory(one->folder, directory);
    read_state(directory, &files_now);
    assert_int_equal(version_of(&files_now, directory, STORE_BASE), one->base_version);
    assert_int_equal(version_of(&files_now, directory, STORE_JOURNAL), one->journal_version);
    assert_whole(directory, "boards: 11 with 23 members");

    durable_start(&durable, directory, "appendonly yes\n");
    assert_boards(durable.server->registry, one->hashes);
    assert_all_tags(durable.server->registry, one->base_version);
    assert_contests(durable.server->registry, one->base_version);
    put_hash(&durable, "profile:ann");
    durable_stop(&durable);
    read_state(directory, &files_now);
    assert_int_equal(files_now.journal_count, one->journal_version == FILE_FORMAT ? 1 : 2);
    assert_int_equal(version_of(&files_now, directory, STORE_JOURNAL), FILE_FORMAT);
    assert_hashes(directory, one->hashes + 1);

    durable_start(&durable, directory, "appendonly yes\n");
    assert_boards(durable.server->registry, one->hashes + 1);
    assert_hash(durable.server->registry, "profile:ann");
    put_hash(&durable, "profile:bob");
    assert_int_equal(persistence_save(durable.persistence, error), PERSISTENCE_OK);
    assert_true(durable_settle(&durable));
    durable_stop(&durable);
    read_state(directory, &files_now);
    assert_int_equal(version_of(&files_now, directory, STORE_BASE), FILE_FORMAT);
    assert_hashes(directory, one->hashes + 2);

    durable_start(&durable, directory, "appendonly yes\n");
    assert_boards(durable.server->registry, one->hashes + 2);
    assert_all_tags(durable.server->registry, one->base_version);
    assert_contests(durable.server->registry, one->base_version);
    assert_int_equal(registry_count(durable.server->registry, REGISTRY_HISTORY), one->has_history);
    assert_hash(durable.server->registry, "profile:ann");
    assert_hash(durable.server->registry, "profile:bob");
    durable_stop(&durable);
    directory_remove(directory);
}

TEST(a_directory_of_an_older_version_is_loaded_and_goes_on_in_this_one) {
    for (size_t i = 0; i < KEPT; i++) {
        check_directory(&kept[i]);
    }
}

/* What is torn off its end was never acknowledged; the journal that goes on is of this version. */
TEST(a_journal_of_an_older_version_may_have_a_torn_tail) {
    char directory[DIRECTORY_PATH_MAX];
    struct durable_server durable;
    struct store_state files_now;
    size_t size;
    directory_make(directory);
    copy_directory("version_1", directory);
    const char *path = formatted("%s/kept/leaderboard.2.journal", directory);
    char *bytes = file_read(path, &size);
    file_write(path, bytes, size - 3);
    free(bytes);
    durable_start(&durable, directory, "appendonly yes\n");
    put_hash(&durable, "profile:ann");
    durable_stop(&durable);
    read_state(directory, &files_now);
    assert_int_equal(files_now.journal_count, 2);
    durable_start(&durable, directory, "appendonly yes\n");
    assert_board(durable.server->registry, &expected[0]);
    assert_hash(durable.server->registry, "profile:ann");
    durable_stop(&durable);
    assert_hashes(directory, 1);
    directory_remove(directory);
}

TEST(a_file_of_a_later_version_is_refused) {
    char head[FILE_FORMAT_MAGIC];
    file_format_put(head, "LBJRNL", FILE_FORMAT);
    assert_int_equal(file_format_of(head, "LBJRNL"), FILE_FORMAT);
    assert_int_equal(file_format_of(head, "LBSNAP"), 0);
    head[FILE_FORMAT_MAGIC - 1]++;
    assert_int_equal(file_format_of(head, "LBJRNL"), 0);
    head[FILE_FORMAT_MAGIC - 1] = '0' - 1;
    assert_int_equal(file_format_of(head, "LBJRNL"), 0);
}
