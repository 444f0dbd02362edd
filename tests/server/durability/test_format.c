/* The sample of this format (server/durability/file_format.h): a directory with a base and a journal, in which every
 * option of boards and every kind of effect occurs, and holds.txt, what is in it.
 *
 *     make format-sample     runs `lines` on a server with LEADERBOARD_WRITE_SAMPLE, which writes the directory anew
 *
 * Until the release that is done with each change of the format; then the directory stays as it is. */
#include "tests/support/test.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "codec/bytes.h"
#include "server/durability/file_format.h"
#include "server/durability/loading.h"
#include "server/durability/store.h"
#include "server/durability/verify.h"
#include "server/replication/replication.h"
#include "server/tools/tools.h"
#include "skiplist/keyspace/effect.h"
#include "tests/support/directory.h"
#include "tests/support/durable_server.h"
#include "tests/support/registry_workload.h"
#include "tests/support/stored_text.h"

#define MANIFEST "leaderboard.manifest"
#define BASE     "leaderboard.3.base"
#define JOURNAL  "leaderboard.2.journal"
static const char *const files[] = {MANIFEST, BASE, JOURNAL};

/* What its server was sent, twice: in database 0 before the base, and in database 1 behind it. A line of digits: so
 * many hours later. */
static const char *const lines[] = {
    "ZADD plain 10 ann 20 bob 20 kim 5 zoe",
    "ZREM plain zoe",
    "ZADD capped 1 a 2 b",
    "LB.CREATE exact FIELD score 24 SIGNED SCALE 2 FIELD second 10 ASC TIME 24 M START "
    "2026-01-01T00:00:00Z",
    "LB.ADD exact -7.25 30 ann 7.25 30 bob",
    "LB.CREATE latest FIELD a 20 TIME 42 MS LATEST CAP 3 KEEP BEST",
    "LB.ADD latest 1 a 2 b 2 c",
    "LB.CREATE double FIELD a 40 SIGNED SCALE 3 DOUBLE",
    "ZADD double 0.1 ann -25.5 bob",
    "LB.CREATE hot FIELD hot 60 SCALE 3 DECAY 6 H",
    "LB.ADD hot INCR 5 ann",
    "LB.CREATE race FIELD a 20 TIME 30 S END 2040-01-01T00:00:00Z TAG country 8 TAG clan 4",
    "LB.ADD race TAG country DE TAG clan wolves 5 ann",
    "LB.ADD race 7 bob",
    "LB.TAG race ann clan bears",
    "LB.CREATE closed FIELD a 20 LIMIT 5 OPENS 2025-01-01T00:00:00Z CLOSES 2030-01-01T00:00:00Z",
    "LB.ADD closed 1 ann",
    "LB.ALTER closed FREEZE",
    "LB.CREATE season FIELD a 20 TIME 42 MS STALE 900000 DAY SETTLE YES",
    "LB.ADD season 5 ann",
    "LB.ROLL season season:paid EX 1000000000",
    "LB.SETTLE season:paid",
    "LB.ADD season 6 ann",
    "LB.ROLL season season:due EX 1000000000",
    "LB.CREATE days FIELD a 30 TIME 30 MS PERIOD DAY EVERY 2 AT 5 FROM 2026-01-01 TZ Europe/Berlin "
    "ARCHIVE 3 "
    "ARCHIVED WRITABLE",
    "LB.ADD days 5 ann",
    "LB.CREATE weeks FIELD a 30 PERIOD WEEK ON SUN TZ +05:30",
    "LB.ADD weeks 5 ann",
    "LB.CREATE copied FIELD a 30 PERIOD MONTH COPY",
    "LB.CREATE sums FIELD a 30 PERIOD HOUR ARCHIVE 5 WINDOW 2 SUM",
    "LB.ADD sums INCR 5 ann 6 bob",
    "LB.CREATE bests FIELD a 30 PERIOD DAY ARCHIVE 5 WINDOW 3 BEST",
    "LB.ADD bests 5 ann",
    "LB.LEAGUE CREATE league FIELD a 20 PERIOD WEEK ROOM 30 TIERS 3 UP 5 DOWN 4 IDLE DOWN",
    "LB.LEAGUE ADD league 5 ann",
    "LB.CREATE ranks FIELD a 20 TIME 42 MS DENSE",
    "LB.ADD ranks 5 ann 5 bob",
    "LB.CREATE rated RATING GLICKO2 MINGAMES 2 KEEP-MATCHES 3",
    "LB.MATCH rated ONCE first TEAM 1 ann TEAM 1 bob",
    "LB.CREATE asked FIELD a 20 TIME 42 MS LIMITS ALL MAX 90 RESULTS 5 PER DAY TICKETS YES HOLD "
    "ALL OVER 50",
    "LB.ADD asked 5 ann 60 bob",
    "LB.BAN moe SHADOW",
    "LB.ADD asked 6 moe",
    "1",
    "LB.ADD sums INCR 7 ann",
    "49",
    "LB.ADD days 6 bob",
    "ZADD many 1 a 2 b 3 c 4 d 5 e",
    "ZREMRANGEBYRANK many 1 3",
    "ZUNIONSTORE union 2 plain many",
    "EXPIREAT union 4102444800",
    "COPY union union:copy",
    "RENAME union union:moved",
    "ZADD gone 1 ann",
    "DEL gone",
    "LB.ADD once ONCE first 5 ann",
    "HSET profile name Ann tier gold",
    "HDEL profile tier",
    "PEXPIREAT profile 4102444800123",
    "COPY profile profile:copy",
    "RENAME profile profile:moved",
    "LB.BAN eve EX 1000000000",
    "SELECT 5",
    "ZADD flushed 1 ann",
    "FLUSHDB",
};

static const char *directory_of_sample(void) {
    return formatted("%.*s/format_%d", (int)(strrchr(__FILE__, '/') - __FILE__), __FILE__,
                     FILE_FORMAT);
}

/* ---- what a server holds, as text ---- */

enum { KEYS_MAX = 256 };
struct found {
    const struct registry_key *keys[KEYS_MAX];
    size_t count;
};

static void note_key(void *context, const struct registry_key *key) {
    struct found *found = context;
    CHECK(found->count < KEYS_MAX);
    found->keys[found->count++] = key;
}

static int by_name(const void *a, const void *b) {
    struct bytes left = registry_name(*(const struct registry_key *const *)a);
    struct bytes right = registry_name(*(const struct registry_key *const *)b);
    int order = memcmp(left.at, right.at, left.size < right.size ? left.size : right.size);
    return order != 0 ? order : (left.size > right.size) - (left.size < right.size);
}

static void put_bytes(FILE *out, struct bytes text) {
    for (size_t i = 0; i < text.size; i++) {
        unsigned byte = (unsigned char)text.at[i];
        fprintf(out, byte > ' ' && byte < 0x7f ? "%c" : "\\x%02x", byte);
    }
}

static int by_text(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Of a hash, or the notes of a board: printed in the order of their names. */
struct pairs {
    char *texts[KEYS_MAX];
    size_t count;
};

static void add_pair(struct pairs *pairs, struct hash_pair pair) {
    size_t size;
    CHECK(pairs->count < KEYS_MAX);
    FILE *text = open_memstream(&pairs->texts[pairs->count++], &size);
    put_bytes(text, pair.field);
    fprintf(text, " ");
    put_bytes(text, pair.value);
    fclose(text);
}

static void print_pairs(FILE *out, const char *word, struct pairs *pairs) {
    qsort(pairs->texts, pairs->count, sizeof pairs->texts[0], by_text);
    for (size_t i = 0; i < pairs->count; i++) {
        fprintf(out, "    %s%s\n", word, pairs->texts[i]);
        free(pairs->texts[i]);
    }
}

static void print_board(FILE *out, const struct registry_key *key) {
    char options[RECORD_RULES_MAX];
    (void)record_print_options(registry_options(key), registry_state(key), options);
    fprintf(out, " %s\n", options);
    for (uint32_t rank = 0; rank < board_count(&key->board); rank++) {
        const struct board_stored entry = board_at(&key->board, rank);
        struct tag_values values;
        tags_at(&key->board, rank, &values);
        fprintf(out, "    %016llx ", (unsigned long long)entry.key);
        put_bytes(out, stored_text(entry.member));
        for (unsigned i = 0; i < TAGS_MAX; i++) {
            if ((values.mask >> i & 1) != 0) {
                fprintf(out, " %u=", i);
                put_bytes(out, values.at[i]);
            }
        }
        fprintf(out, "\n");
    }
    struct pairs notes = {.count = 0};
    for (uint32_t i = 0; i < registry_note_count(key); i++) {
        struct registry_note_room room;
        struct hash_pair note;
        registry_note_at(key, i, &note, &room);
        add_pair(&notes, note);
    }
    print_pairs(out, "note ", &notes);
}

static void print_hash(FILE *out, const struct registry_key *key) {
    struct hash_cursor cursor = hash_begin(registry_hash(key));
    struct pairs fields = {.count = 0};
    struct hash_pair pair;
    while (hash_next(&cursor, &pair)) {
        add_pair(&fields, pair);
    }
    fprintf(out, " hash\n");
    print_pairs(out, "", &fields);
}

/* The caller frees it. */
static char *print_all(const struct registry *registry) {
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    for (uint32_t database = 0; database < REGISTRY_ALL_DATABASES; database++) {
        struct found found = {.count = 0};
        registry_walk_each(registry, database, INT64_MIN, note_key, &found);
        qsort(found.keys, found.count, sizeof found.keys[0], by_name);
        for (size_t i = 0; i < found.count; i++) {
            const struct registry_key *key = found.keys[i];
            int64_t expiry = registry_expiry(registry, key);
            fprintf(out, "%u ", database);
            put_bytes(out, registry_name(key));
            if (expiry != REGISTRY_NO_EXPIRY) {
                fprintf(out, " until %lld", (long long)expiry);
            }
            (key->kind == REGISTRY_BOARD ? print_board : print_hash)(out, key);
        }
    }
    fclose(out);
    return text;
}

/* ---- writing it ---- */

static void run_lines(struct durable_server *durable, struct session *session, int database) {
    harness_expect(durable->harness, session, formatted("SELECT %d", database), "+OK\r\n");
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        int64_t hours = atoi(lines[i]);
        if (hours > 0) {
            durable->harness->wall_us += hours * INT64_C(3600000000);
            server_update_time(durable->server);
            (void)registry_roll_due(durable->server->registry, durable->server->clock.now_ms, 100);
        } else {
            const char *reply = harness_run(durable->harness, session, lines[i]);
            if (reply[0] == '-') {
                fail_msg("%s: %s", lines[i], reply);
            }
        }
        durable_end_tick(durable);
        assert_true(durable_settle(durable));
    }
}

static void copy_files(const char *from, const char *to) {
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        size_t size;
        OWNED char *bytes = file_read(formatted("%s/%s", from, files[i]), &size);
        file_write(formatted("%s/%s", to, files[i]), bytes, size);
    }
}

static void write_sample(void) {
    char directory[DIRECTORY_PATH_MAX];
    char error[PERSISTENCE_ERROR_MAX];
    struct durable_server durable;
    struct history history;
    directory_make(directory);
    durable_start(&durable, directory, "appendonly yes\n");
    struct session *session = harness_connect(durable.harness);
    memset(history.id, 'a', REPLICATION_ID_SIZE + 1);
    memset(history.second_id, 'b', REPLICATION_ID_SIZE + 1);
    history.id[REPLICATION_ID_SIZE] = history.second_id[REPLICATION_ID_SIZE] = '\0';
    history.second_until = 3;
    assert_true(replication_write_history(durable.server->registry, &history));
    run_lines(&durable, session, 0);
    assert_int_equal(persistence_save(durable.persistence, error), PERSISTENCE_OK);
    assert_true(durable_settle(&durable));
    run_lines(&durable, session, 1);
    char *text = print_all(durable.server->registry);
    harness_disconnect(durable.harness, session);
    durable_stop(&durable);
    const char *sample = directory_of_sample();
    (void)mkdir(sample, 0755);
    copy_files(formatted("%s/kept", directory), sample);
    file_write(directory_join(sample, "holds.txt"), text, strlen(text));
    free(text);
    directory_remove(directory);
}

/* ---- reading it ---- */

static int set_up(void **state) {
    static char directory[DIRECTORY_PATH_MAX];
    if (getenv("LEADERBOARD_WRITE_SAMPLE") != NULL) {
        write_sample();
        unsetenv("LEADERBOARD_WRITE_SAMPLE");
    }
    directory_make(directory);
    assert_int_equal(mkdir(directory_join(directory, "kept"), 0700), 0);
    copy_files(directory_of_sample(), formatted("%s/kept", directory));
    *state = directory;
    return 0;
}

static int tear_down(void **state) {
    directory_remove(*state);
    return 0;
}

static void assert_holds(const struct durable_server *durable, const char *wanted) {
    OWNED char *text = print_all(durable->server->registry);
    for (const char *found = text, *line = wanted; *line != '\0';) {
        size_t size = strcspn(line, "\n") + 1;
        if (strncmp(found, line, size) != 0) {
            fail_msg("it holds\n%.*s\nwhere the sample has\n%.*s", (int)size, found, (int)size,
                     line);
        }
        found += size;
        line += size;
    }
    assert_int_equal(strlen(text), strlen(wanted));
}

/* The caller frees it. */
static char *read_holds(void) {
    size_t size;
    char *text = file_read(directory_join(directory_of_sample(), "holds.txt"), &size);
    char *ended = strndup(text, size);
    free(text);
    return ended;
}

TEST_WITH(the_sample_of_this_format_is_loaded_and_goes_on, set_up, tear_down) {
    struct durable_server durable;
    char error[PERSISTENCE_ERROR_MAX];
    OWNED char *holds = read_holds();
    durable_start(&durable, *state, "appendonly yes\n");
    assert_holds(&durable, holds);
    struct session *session = harness_connect(durable.harness);
    harness_run(durable.harness, session, "SELECT 7");
    harness_expect(durable.harness, session, "ZADD more 1 ann", ":1\r\n");
    harness_expect(durable.harness, session, "DEL more", ":1\r\n");
    durable_end_tick(&durable);
    assert_true(durable_settle(&durable));
    harness_disconnect(durable.harness, session);
    durable_stop(&durable);
    for (int i = 0; i < 2; i++) { /* as it was, and from one base */
        durable_start(&durable, *state, "appendonly yes\n");
        assert_holds(&durable, holds);
        assert_int_equal(persistence_save(durable.persistence, error), PERSISTENCE_OK);
        assert_true(durable_settle(&durable));
        durable_stop(&durable);
    }
}

/* Of options what their rows say; beside them what a layout and a state can have, and other keys. */
TEST(the_sample_has_every_option_and_state_of_boards) {
    static const char *const words[] = {
        " ASC",     " SIGNED", " SCALE ",        " DOUBLE",          " DECAY ",
        " TIME ",   " START ", " END ",          " LATEST",          " TAG ",
        " TZ +",    " TZ Eur", " SUM",           " BEST ",           " SETTLED",
        " SHARE ",  " COUNTS", " SETTLED ENDED", " UNSETTLED ENDED", " EXPIRES ",
        " CREATED", " hash",   " until ",        " note ",           "\n19 ",
        "\n18 "};
    OWNED char *holds = read_holds();
    for (size_t i = 0; i < COUNT_OF(words); i++) {
        if (strstr(holds, words[i]) == NULL) {
            fail_msg("the sample has no%s", words[i]);
        }
    }
    for (size_t i = 0; i < BOARD_OPTION_COUNT; i++) {
        const struct board_option *option = &board_options[i];
        bool is_printed = option->word != NULL && option->code != 0 && !option->is_of_line &&
                          !option->is_state && !option->is_more;
        if (is_printed && strstr(holds, formatted(" %s ", option->word)) == NULL &&
            strstr(holds, formatted(" %s\n", option->word)) == NULL) {
            fail_msg("the sample has no board with %s", option->word);
        }
    }
}

/* By record, and of effects by kind, of boards and of other keys. */
struct counts {
    uint64_t records[EFFECT_RECORD_CLOSE + 1];
    uint64_t effects[2][EFFECT_NOTE + 1];
    uint64_t tagged;
};

static void count_chunk(struct counts *counts, struct bytes chunk) {
    static struct effect_decoder decoder;
    enum effect_record record;
    effect_bytes_decode_begin(&decoder, chunk);
    while ((record = effect_bytes_decode(&decoder)) != EFFECT_RECORD_END) {
        assert_int_not_equal(record, EFFECT_RECORD_BAD);
        counts->records[record]++;
        counts->tagged += record == EFFECT_RECORD_ENTRIES && decoder.has_values;
        if (record == EFFECT_RECORD_EFFECT) {
            counts->effects[decoder.effect.key_kind == &key_kind_hash][decoder.effect.kind]++;
        }
    }
}

TEST_WITH(the_sample_has_every_kind_of_record, set_up, tear_down) {
    static char room[SNAPSHOT_BLOCK_SIZE];
    const char *kept = formatted("%s/kept", (char *)*state);
    struct counts base = {0}, journal = {0};
    struct snapshot_reader blocks;
    struct journal_reader groups;
    struct journal_group group;
    uint64_t first;
    size_t size;
    int fd = disk_open(AT_FDCWD, directory_join(kept, BASE), O_RDONLY, 0);
    enum snapshot_status status = snapshot_file_reader_open(&blocks, fd, BASE);
    while (status == SNAPSHOT_BLOCK && (status = snapshot_file_reader_next(
                                            &blocks, room, sizeof room, &size)) == SNAPSHOT_BLOCK) {
        count_chunk(&base, (struct bytes){room, size});
    }
    assert_int_equal(status, SNAPSHOT_END);
    snapshot_file_reader_close(&blocks);
    fd = disk_open(AT_FDCWD, directory_join(kept, JOURNAL), O_RDONLY, 0);
    assert_true(journal_file_peek(fd, &first));
    assert_int_equal(journal_file_reader_open(&groups, fd, JOURNAL, first, true), JOURNAL_GROUP);
    while (journal_file_reader_next(&groups, &group) == JOURNAL_GROUP) {
        count_chunk(&journal, (struct bytes){group.payload, group.size});
    }
    journal_file_reader_close(&groups);
    for (int record = EFFECT_RECORD_EFFECT; record <= EFFECT_RECORD_CLOSE; record++) {
        assert_true(base.records[record] > 0);
    }
    assert_true(base.tagged > 0);
    for (int kind = 0; kind <= EFFECT_NOTE; kind++) {
        assert_int_equal(journal.effects[0][kind] > 0, kind != EFFECT_FILL);
    }
    static const enum effect_kind of_hashes[] = {EFFECT_CREATE, EFFECT_PUT, EFFECT_TAKE,
                                                 EFFECT_RENAME, EFFECT_COPY};
    for (size_t i = 0; i < COUNT_OF(of_hashes); i++) {
        assert_true(journal.effects[1][of_hashes[i]] > 0);
    }
}

/* ---- other formats ---- */

/* The head of a file with another beginning, and the checksum that belongs to it. */
static void rewrite_head(const char *path, const char *magic) {
    enum { CHECKSUM = 24 };
    size_t size;
    OWNED char *bytes = file_read(path, &size);
    memcpy(bytes, magic, FILE_FORMAT_MAGIC);
    bytes_put_u64(bytes + CHECKSUM, XXH3_64bits(bytes, CHECKSUM));
    file_write(path, bytes, size);
}

static void ignore(void *context) {
    (void)context;
}

static void assert_refused(const char *directory, const char *wanted) {
    char error[DISK_ERROR_MAX];
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    assert_int_equal(verify_run(directory_join(directory, "kept"), true, out), CHECK_IS_UNKNOWN);
    fclose(out);
    assert_non_null(strstr(text, wanted));
    assert_null(strstr(text, "damaged"));
    free(text);
    struct store store;
    assert_int_equal(store_open(&store, directory, "kept", STORE_READ, error), STORE_OK);
    struct registry *registry = workload_create_registry(1);
    struct loading loading = {.registry = registry, .store = &store, .changed = ignore};
    uv_loop_t loop;
    assert_int_equal(uv_loop_init(&loop), 0);
    assert_true(loading_init(&loading, &loop));
    assert_false(loading_run(&loading));
    assert_non_null(strstr(loading.error, wanted));
    assert_null(strstr(loading.error, "damaged"));
    loading_deinit(&loading);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
    registry_destroy(registry);
    store_close(&store);
}

TEST_WITH(a_file_of_another_format_is_named_and_left_as_it_is, set_up, tear_down) {
    static const struct {
        const char *file, *magic, *wanted;
    } cases[] = {
        {BASE, "LBBASE02", "a newer version wrote it, in format 2: this one reads format 1"},
        {BASE, "LBSNAP06", "a version before 1.0 wrote it. Export it with that one"},
        {JOURNAL, "LBJOUR99", "a newer version wrote it, in format 99: this one reads format 1"},
        {JOURNAL, "LBJRNL01", "a version before 1.0 wrote it. Export it with that one"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        copy_files(directory_of_sample(), formatted("%s/kept", (char *)*state));
        rewrite_head(directory_join(directory_join(*state, "kept"), cases[i].file), cases[i].magic);
        assert_refused(*state, cases[i].wanted);
    }
}

TEST(a_beginning_that_no_version_writes_is_no_file_of_ours) {
    char head[FILE_FORMAT_MAGIC];
    file_format_put(head, FILE_FORMAT_JOURNAL);
    assert_memory_equal(head, "LBJOUR01", sizeof head);
    assert_int_equal(file_format_of(head, FILE_FORMAT_JOURNAL), FILE_FORMAT);
    assert_int_equal(file_format_of(head, FILE_FORMAT_BASE), 0);
    head[FILE_FORMAT_MAGIC - 1] = '0' - 1;
    assert_int_equal(file_format_of(head, FILE_FORMAT_JOURNAL), 0);
    head[FILE_FORMAT_MAGIC - 1] = '9' + 1;
    assert_int_equal(file_format_of(head, FILE_FORMAT_JOURNAL), 0);
}
