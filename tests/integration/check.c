/* leaderboard-server --check, on what a real server has left on disk: whole, torn, and damaged in
 * every byte. */
#include "tests/support/test.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/durability/effect_bytes.h"
#include "server/durability/journal_file.h"
#include "server/durability/snapshot_file.h"
#include "server/durability/store.h"
#include "server/durability/verify.h"
#include "server/system/clock.h"
#include "tests/support/directory.h"
#include "tests/support/process.h"
#include "tests/support/wire.h"

static char directory[DIRECTORY_PATH_MAX];
static struct process server;
static struct wire wire;

FIXTURE(set_up) {
    clock_calibrate();
    directory_make(directory);
    return 0;
}

FIXTURE(tear_down) {
    wire_close(&wire);
    process_stop(&server);
    directory_remove(directory);
    return 0;
}

/* ---- servers ---- */

static const char *const words_always[] = {"--appendonly", "yes", "--appendfsync", "always", NULL};
static const char *const words_no[] = {"--appendonly", "yes", "--appendfsync", "no", NULL};

static void start(const char *const *arguments) {
    const struct process_options options = {.directory = directory, .arguments = arguments};
    assert_true(process_start(&server, &options));
    wire = wire_open(process_connect_unix(&server));
    wire_wait_loaded(&wire); /* PING is answered before */
}

static void end(int signal_number) {
    wire_close(&wire);
    process_signal(&server, signal_number);
    assert_true(process_wait(&server, PROCESS_STOP_LIMIT_MS));
}

static void add(const char *board, int first, int count) {
    for (int i = first; i < first + count; i++) {
        wire_check(&wire, formatted("ZADD %s %d player:%d", board, i, i), ":1");
    }
}

static void save(void) {
    wire_check(&wire, "SAVE", "OK");
}

/* ---- checking ---- */

/* What was said, valid until the next check. */
static char *said;

static enum check_result check(bool is_fixing) {
    size_t size = 0;
    free(said);
    said = NULL;
    FILE *out = open_memstream(&said, &size);
    assert_non_null(out);
    enum check_result result = verify_run(directory, is_fixing, out);
    fclose(out);
    return result;
}

static void assert_said(const char *words) {
    if (strstr(said, words) == NULL) {
        fail_msg("\"%s\" is not in \"%s\"", words, said);
    }
}

static const char *kept(const char *name) {
    const char *inside = formatted("appendonlydir/%s", name);
    return directory_join(directory, inside);
}

static void look_at_state(struct store_state *state) {
    static struct store store;
    char error[DISK_ERROR_MAX];
    assert_int_equal(store_open(&store, directory, "appendonlydir", STORE_READ, error), STORE_OK);
    *state = store.state;
    store_close(&store);
}

/* The last journal's path, until the fourth path from now. */
static const char *last_journal(void) {
    static struct store_state state;
    struct store_name name;
    look_at_state(&state);
    assert_true(state.journal_count > 0);
    name = store_name(STORE_JOURNAL, state.journals[state.journal_count - 1].number);
    return kept(name.text);
}

static void flip(const char *path, size_t at) {
    size_t size;
    OWNED char *bytes = file_read(path, &size);
    assert_in_range(at, 0, size - 1);
    bytes[at] = (char)(bytes[at] ^ 0x10);
    file_write(path, bytes, size);
}

static void assert_start_refused(const char *words) {
    const struct process_options options = {
        .directory = directory, .arguments = words_always, .is_start_failure_expected = true};
    assert_true(process_start(&server, &options));
    assert_int_not_equal(server.exit_status, 0);
    assert_true(process_has_logged(&server, words) && process_has_logged(&server, "--check"));
}

/* ---- what is whole ---- */

#define IN_FIXTURE(name) TEST_WITH(name, set_up, tear_down)

IN_FIXTURE(what_a_server_leaves_is_whole) {
    start(words_always);
    add("one", 0, 50);
    save();
    add("two", 0, 30);
    end(SIGKILL);
    assert_int_equal(check(false), CHECK_IS_WHOLE);
    assert_said(".base: whole, ");
    assert_said(" 1 boards, 50 members, everything up to group ");
    assert_said(".journal: whole, ");
    assert_said("boards: 2 with 80 members, as of group ");
    start(words_always);
    add("three", 0, 3);
    end(SIGTERM);
    assert_int_equal(check(false), CHECK_IS_WHOLE);
    assert_said("boards: 3 with 83 members");
}

/* Members of 200 bytes, in commands of a thousand. */
static void add_long_members(int count) {
    for (int i = 0; i < count; i += 1000) {
        TEXT(request);
        text_format(&request, "*2002\r\n$4\r\nZADD\r\n$4\r\nlong\r\n");
        for (int j = i; j < i + 1000; j++) {
            text_format(&request, "$6\r\n%06d\r\n$200\r\n%0200d\r\n", j, j);
        }
        wire_send(&wire, request.at, request.size);
        wire_expect(&wire, ":1000\r\n");
    }
}

IN_FIXTURE(a_snapshot_that_stops_everything_is_written_in_blocks_too) {
    static struct store_state kept_state;
    static char raw[SNAPSHOT_BLOCK_SIZE];
    ENDED_BY(snapshot_file_reader_close) struct snapshot_reader reader;
    struct store_name name;
    size_t size;
    start((const char *[]){"--appendonly", "no", NULL});
    add_long_members(400000);
    save();
    end(SIGKILL);
    look_at_state(&kept_state);
    name = store_name(STORE_BASE, kept_state.base_number);
    int fd = disk_open(AT_FDCWD, kept(name.text), O_RDONLY, 0);
    enum snapshot_status status = snapshot_file_reader_open(&reader, fd, name.text);
    while (status == SNAPSHOT_BLOCK) {
        status = snapshot_file_reader_next(&reader, raw, sizeof raw, &size);
    }
    assert_int_equal(status, SNAPSHOT_END);
    assert_int_equal(reader.footer.member_count, 400000);
}

IN_FIXTURE(a_snapshot_alone_is_whole) {
    start((const char *[]){"--appendonly", "no", NULL});
    add("one", 0, 50);
    save();
    end(SIGKILL);
    assert_int_equal(check(false), CHECK_IS_WHOLE);
    assert_said("a base, 0 journals");
    assert_said("boards: 1 with 50 members");
}

IN_FIXTURE(the_directory_itself_will_do_as_well) {
    start(words_always);
    add("one", 0, 5);
    end(SIGKILL);
    FILE *out = tmpfile();
    assert_non_null(out);
    assert_int_equal(verify_run(kept(""), false, out), CHECK_IS_WHOLE);
    fclose(out);
}

IN_FIXTURE(files_of_no_use_are_named_and_left) {
    start(words_always);
    add("one", 0, 5);
    end(SIGKILL);
    file_write(kept("leaderboard.77.base"), "x", 1);
    assert_int_equal(check(true), CHECK_IS_WHOLE);
    assert_said("leaderboard.77.base: not named by the manifest, the next start removes it");
    assert_true(file_exists(kept("leaderboard.77.base")));
}

/* ---- what cannot be checked ---- */

IN_FIXTURE(a_directory_in_use_or_missing_is_not_checked) {
    assert_int_equal(check(false), CHECK_IS_UNKNOWN);
    assert_int_equal(verify_run("/nowhere/at/all", true, stderr), CHECK_IS_UNKNOWN);
    start(words_always);
    add("one", 0, 5);
    const char *who = formatted("(pid %d)", (int)server.pid);
    assert_int_equal(check(true), CHECK_IS_UNKNOWN);
    assert_said(who);
    add("two", 0, 5);
}

/* ---- a torn tail ---- */

IN_FIXTURE(a_torn_tail_is_said_and_cut_when_asked) {
    start(words_no);
    add("one", 0, 40);
    end(SIGKILL);
    size_t size;
    char *bytes = file_read(last_journal(), &size);
    for (size_t cut = 1; cut < 60; cut += 7) {
        file_write(last_journal(), bytes, size - cut);
        assert_int_equal(check(false), CHECK_IS_DAMAGED);
        assert_said(" is torn at offset ");
        assert_said("the server cuts it off when it starts");
        assert_said("with 3"); /* 38 or 39 members */
        size_t size_after;
        free(file_read(last_journal(), &size_after));
        assert_int_equal(size_after, size - cut);
        assert_int_equal(check(true), CHECK_IS_WHOLE);
        assert_said("fixed: cut at offset ");
        assert_int_equal(check(true), CHECK_IS_WHOLE);
        assert_null(strstr(said, "fixed"));
    }
    free(bytes);
    start(words_no);
    assert_int_equal(wire_ask_integer(&wire, "ZCARD one"), 38);
}

IN_FIXTURE(a_hole_in_an_unsynced_tail_says_what_is_behind_it) {
    start(words_no);
    add("one", 0, 40);
    end(SIGKILL);
    flip(last_journal(), 200);
    assert_int_equal(check(false), CHECK_IS_DAMAGED);
    assert_said("torn at offset ");
    assert_said(" whole groups among them");
}

/* ---- damage ---- */

IN_FIXTURE(a_synced_group_that_changed_is_refused_and_given_up_only_when_asked) {
    start(words_always);
    add("one", 0, 40);
    end(SIGTERM); /* which leaves no room in the journal */
    size_t size;
    free(file_read(last_journal(), &size));
    flip(last_journal(), size / 2);
    assert_start_refused(".journal is damaged at offset ");
    assert_int_equal(check(false), CHECK_IS_DAMAGED);
    assert_said("had been on disk as a whole");
    assert_said("or give up all from this offset on with --fix");
    assert_int_equal(check(true), CHECK_IS_WHOLE);
    assert_said("fixed: cut at offset ");
    start(words_always);
    assert_in_range(wire_ask_integer(&wire, "ZCARD one"), 15, 25);
    add("one", 100, 1);
}

/* Append a group that takes this member off board `one`. */
static void append_take(struct buffer *file, struct journal_reader *reader, const char *member) {
    struct effect_encoder encoder;
    const struct effect take = {
        .kind = EFFECT_TAKE, .name = bytes_from_text("one"), .member = bytes_from_text(member)};
    size_t at = file->size;
    assert_non_null(buffer_reserve(file, JOURNAL_GROUP_HEAD));
    buffer_commit(file, JOURNAL_GROUP_HEAD);
    effect_bytes_encode_begin(&encoder, file);
    effect_bytes_encode(&encoder, &take);
    const struct journal_group_head head = {.size =
                                                (uint32_t)(file->size - at - JOURNAL_GROUP_HEAD),
                                            .sequence = reader->next_sequence++,
                                            .unsynced = 1};
    journal_file_seal_group(file->at + at, &head, reader->id);
}

/* Groups are applied together; what does not fit is still told from those around it. */
IN_FIXTURE(a_change_that_does_not_fit_is_said_with_the_offset_of_its_group) {
    start(words_always);
    add("one", 0, 20);
    end(SIGTERM); /* which leaves no room in the journal */
    char path[2 * DIRECTORY_PATH_MAX];
    struct store_state kept_state;
    struct journal_reader reader;
    struct journal_group group;
    struct buffer file;
    size_t size;
    snprintf(path, sizeof path, "%s", last_journal());
    look_at_state(&kept_state);
    char *bytes = file_read(path, &size);
    assert_int_equal(journal_file_reader_open(&reader, open(path, O_RDONLY), path,
                                              kept_state.journals[0].first_sequence, true),
                     JOURNAL_GROUP);
    while (journal_file_reader_next(&reader, &group) == JOURNAL_GROUP) {}
    buffer_init(&file, 0);
    buffer_append(&file, bytes, size);
    append_take(&file, &reader, "player:1");
    append_take(&file, &reader, "player:2");
    const char *words = formatted(" is damaged at offset %zu: a change does not fit", file.size);
    append_take(&file, &reader, "player:2");
    append_take(&file, &reader, "player:3");
    file_write(path, file.at, file.size);
    journal_file_reader_close(&reader);
    buffer_deinit(&file);
    free(bytes);
    assert_start_refused(words);
    assert_int_equal(check(false), CHECK_IS_DAMAGED);
    assert_said(words);
}

IN_FIXTURE(a_damaged_base_is_not_repaired) {
    static struct store_state kept_state;
    struct store_name name;
    start(words_always);
    add("one", 0, 200);
    save();
    add("one", 200, 20);
    end(SIGKILL);
    look_at_state(&kept_state);
    name = store_name(STORE_BASE, kept_state.base_number);
    flip(kept(name.text), 100);
    /* A torn tail behind it stays as well: somebody may want to look at all of it. */
    size_t size;
    OWNED char *bytes = file_read(last_journal(), &size);
    file_write(last_journal(), bytes, size - 3);
    assert_start_refused(".base is damaged at offset ");
    assert_int_equal(check(true), CHECK_IS_DAMAGED);
    assert_said(".base is damaged at offset 32: the checksum of a block is wrong");
    assert_said("a base cannot be repaired");
    assert_null(strstr(said, "fixed"));
    size_t size_after;
    free(file_read(last_journal(), &size_after));
    assert_int_equal(size_after, size - 3);
}

/* ---- every byte ---- */

static void damage_everywhere(const char *path) {
    size_t size;
    char *bytes = file_read(path, &size);
    for (size_t at = 0; at < size; at++) {
        bytes[at] = (char)(bytes[at] ^ (1 << at % 8));
        file_write(path, bytes, size);
        assert_int_equal(check(false), CHECK_IS_DAMAGED);
        bytes[at] = (char)(bytes[at] ^ (1 << at % 8));
    }
    file_write(path, bytes, size);
    free(bytes);
    assert_int_equal(check(false), CHECK_IS_WHOLE);
}

IN_FIXTURE(every_flipped_byte_of_every_file_is_found) {
    static struct store_state kept_state;
    struct store_name name;
    start(words_always);
    add("one", 0, 10);
    wire_check(&wire, "EXPIRE one 100000", ":1");
    save();
    add("two", 0, 4);
    wire_check(&wire, "RENAME two three", "OK");
    end(SIGTERM); /* which leaves no room in the journal */
    look_at_state(&kept_state);
    damage_everywhere(kept(STORE_MANIFEST_NAME));
    name = store_name(STORE_BASE, kept_state.base_number);
    damage_everywhere(kept(name.text));
    for (uint32_t i = 0; i < kept_state.journal_count; i++) {
        name = store_name(STORE_JOURNAL, kept_state.journals[i].number);
        damage_everywhere(kept(name.text));
    }
}

/* ---- the program ---- */

/* Its exit status. */
static int run_program(const char *arguments) {
    int status = system(formatted("%s %s >%s 2>&1", process_default_program(), arguments,
                                  directory_join(directory, "out")));
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

IN_FIXTURE(the_program_exits_with_what_it_found) {
    start(words_always);
    add("one", 0, 40);
    end(SIGKILL);
    const char *arguments = formatted("--check %s", directory);
    assert_int_equal(run_program(arguments), 0);
    size_t size;
    free(file_read(last_journal(), &size));
    flip(last_journal(), size / 2);
    assert_int_equal(run_program(arguments), 1);
    assert_int_equal(run_program(formatted("--check %s --fix", directory)), 0);
    assert_int_equal(run_program("--check /nowhere/at/all"), 2);
    assert_int_equal(run_program("--check"), 1);
    assert_int_equal(run_program("--check a --repair"), 1);
    OWNED char *text = file_read(directory_join(directory, "out"), &size);
    assert_non_null(strstr(text, "usage: leaderboard-server --check DIR|FILE [--fix]"));
}

int main(void) {
    int failed = test_run(NULL, NULL);
    free(said);
    return failed;
}
