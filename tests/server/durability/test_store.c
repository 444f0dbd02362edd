/* The directory, its lock, and the atomic replacement of the manifest. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/durability/store.h"
#include "server/system/log.h"
#include "tests/support/directory_test.h"
#include "tests/support/failing_disk.h"

static char error[DISK_ERROR_MAX];

static const char *path_of(const char *name) {
    const char *inside = formatted("kept/%s", name);
    return directory_join(directory, inside);
}

static void put_file(enum store_kind kind, uint64_t number) {
    const struct store_name name = store_name(kind, number);
    file_write(path_of(name.text), "x", 1);
}

static bool has_file(enum store_kind kind, uint64_t number) {
    const struct store_name name = store_name(kind, number);
    return file_exists(path_of(name.text));
}

static enum store_status open_kept(struct store *store, enum store_mode mode) {
    error[0] = '\0';
    return store_open(store, directory, "kept", mode, error);
}

static void assert_error_has(const char *words) {
    if (strstr(error, words) == NULL) {
        fail_msg("\"%s\" is not in \"%s\"", words, error);
    }
}

static void assert_state_is(const struct store_state *state, const struct store_state *expected) {
    assert_int_equal(state->base_number, expected->base_number);
    assert_int_equal(state->base_sequence, expected->base_sequence);
    assert_int_equal(state->journal_count, expected->journal_count);
    for (uint32_t i = 0; i < state->journal_count; i++) {
        assert_int_equal(state->journals[i].number, expected->journals[i].number);
        assert_int_equal(state->journals[i].first_sequence, expected->journals[i].first_sequence);
    }
}

static const struct store_state state_first = {
    .base_number = 3,
    .base_sequence = 81250,
    .journal_count = 2,
    .journals = {{.number = 4, .first_sequence = 81251}, {.number = 5, .first_sequence = 90012}}};
static const struct store_state state_second = {
    .base_number = 6,
    .base_sequence = 100000,
    .journal_count = 1,
    .journals = {{.number = 7, .first_sequence = 100001}}};

static void put_files_of(const struct store_state *state) {
    if (state->base_number != 0) {
        put_file(STORE_BASE, state->base_number);
    }
    for (uint32_t i = 0; i < state->journal_count; i++) {
        put_file(STORE_JOURNAL, state->journals[i].number);
    }
}

/* Create a store with state_first, and close it. */
static void make_first(void) {
    ENDED_BY(store_close) struct store store;
    assert_int_equal(open_kept(&store, STORE_CREATE), STORE_OK);
    put_files_of(&state_first);
    assert_int_equal(store_set(&store, &state_first), STORE_SET);
}

/* ---- opening ---- */

DIRECTORY_TEST(a_new_directory_is_made_and_is_empty_from_then_on) {
    struct store store;
    const struct store_state empty = {0};
    assert_int_equal(open_kept(&store, STORE_READ), STORE_MISSING);
    assert_int_equal(open_kept(&store, STORE_FIX), STORE_MISSING);
    assert_false(file_exists(path_of("")));
    assert_int_equal(open_kept(&store, STORE_CREATE), STORE_OK);
    assert_state_is(&store.state, &empty);
    assert_true(file_exists(path_of(STORE_MANIFEST_NAME)));
    struct stat status;
    assert_int_equal(stat(path_of(""), &status), 0);
    assert_int_equal(status.st_mode & 0777, 0750);
    assert_int_equal(store_take_number(&store), 1);
    assert_int_equal(store_take_number(&store), 2);
    store_close(&store);
    assert_int_equal(open_kept(&store, STORE_READ), STORE_OK);
    assert_state_is(&store.state, &empty);
    store_close(&store);
}

DIRECTORY_TEST(a_claimed_directory_is_held_and_kept_nothing_before_it_has_begun) {
    struct store store;
    struct store other;
    assert_int_equal(open_kept(&store, STORE_CLAIM), STORE_OK);
    assert_false(store.has_manifest);
    assert_false(file_exists(path_of(STORE_MANIFEST_NAME)));
    assert_int_equal(open_kept(&other, STORE_CLAIM), STORE_IN_USE);
    store_close(&store);
    assert_int_equal(open_kept(&other, STORE_FIX), STORE_MISSING);
    assert_int_equal(open_kept(&store, STORE_CLAIM), STORE_OK);
    assert_true(store_begin(&store) && store_begin(&store));
    assert_true(store.has_manifest);
    store_close(&store);
    make_first();
    assert_int_equal(open_kept(&store, STORE_CLAIM), STORE_OK);
    assert_true(store_begin(&store));
    assert_state_is(&store.state, &state_first);
    store_close(&store);
}

DIRECTORY_TEST(an_abandoned_claim_leaves_nothing_that_it_made) {
    struct store store;
    const char *made = formatted("%s", directory_join(directory, "claimed"));
    assert_int_equal(store_open(&store, directory, "claimed", STORE_CLAIM, error), STORE_OK);
    assert_int_equal(access(made, F_OK), 0);
    store_abandon(&store);
    assert_int_equal(access(made, F_OK), -1);
    assert_int_equal(mkdir(made, 0750), 0); /* not made by the claim: it stays */
    assert_int_equal(store_open(&store, directory, "claimed", STORE_CLAIM, error), STORE_OK);
    store_abandon(&store);
    assert_int_equal(access(made, F_OK), 0);
    directory_remove(made);
}

DIRECTORY_TEST(a_directory_without_anything_of_ours_is_missing_unless_it_may_be_made) {
    struct store store;
    assert_int_equal(mkdir(path_of(""), 0700), 0);
    file_write(path_of("notes.txt"), "x", 1);
    assert_int_equal(open_kept(&store, STORE_READ), STORE_MISSING);
    assert_int_equal(open_kept(&store, STORE_FIX), STORE_MISSING);
    assert_error_has("there is no leaderboard.manifest in ");
    assert_int_equal(open_kept(&store, STORE_CREATE), STORE_OK);
    store_close(&store);
    assert_true(file_exists(path_of("notes.txt")));
}

DIRECTORY_TEST(what_cannot_be_opened_is_said) {
    struct store store;
    assert_int_equal(store_open(&store, "/nowhere/at/all", "kept", STORE_CREATE, error),
                     STORE_FAILED);
    assert_error_has("cannot open the directory /nowhere/at/all: No such file or directory");
}

DIRECTORY_TEST(a_file_in_the_place_of_the_directory_is_said) {
    struct store store;
    file_write(directory_join(directory, "kept"), "x", 1);
    assert_int_equal(open_kept(&store, STORE_CREATE), STORE_FAILED);
    assert_error_has("/kept: Not a directory");
}

DIRECTORY_TEST(a_path_that_is_too_long_is_said) {
    struct store store;
    char name[2000];
    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = '\0';
    assert_int_equal(store_open(&store, directory, name, STORE_CREATE, error), STORE_FAILED);
    assert_error_has("too long");
}

DIRECTORY_TEST(an_unwritable_directory_is_said) {
    if (geteuid() == 0) {
        skip(); /* root can write everything */
    }
    struct store store;
    assert_int_equal(chmod(directory, 0500), 0);
    assert_int_equal(open_kept(&store, STORE_CREATE), STORE_FAILED);
    assert_error_has("Permission denied");
    assert_int_equal(chmod(directory, 0700), 0);
}

/* ---- the lock ---- */

DIRECTORY_TEST(a_second_open_of_a_directory_in_use_names_the_first_process) {
    struct store store;
    ENDED_BY(store_close) struct store second;
    char who[64];
    assert_int_equal(open_kept(&store, STORE_CREATE), STORE_OK);
    snprintf(who, sizeof who, "another server (pid %d) is using it", (int)getpid());
    const enum store_mode modes[] = {STORE_READ, STORE_CLAIM, STORE_CREATE};
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(open_kept(&second, modes[i]), STORE_IN_USE);
        assert_error_has(who);
    }
    store_close(&store);
    assert_int_equal(open_kept(&second, STORE_CLAIM), STORE_OK);
}

DIRECTORY_TEST(a_lock_goes_with_the_process_that_held_it) {
    int pipe_ends[2];
    int exit_status;
    assert_int_equal(pipe(pipe_ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct store held;
        char is_held = open_kept(&held, STORE_CREATE) == STORE_OK;
        ssize_t written = write(pipe_ends[1], &is_held, 1);
        pause();
        _exit(written == 1 ? 0 : 1);
    }
    char is_held = 0;
    assert_int_equal(read(pipe_ends[0], &is_held, 1), 1);
    assert_int_equal(is_held, 1);
    struct store store;
    const char *who = formatted("(pid %d)", (int)child);
    assert_int_equal(open_kept(&store, STORE_CLAIM), STORE_IN_USE);
    assert_error_has(who);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, &exit_status, 0), child);
    assert_int_equal(open_kept(&store, STORE_CLAIM), STORE_OK);
    store_close(&store);
    close(pipe_ends[0]);
    close(pipe_ends[1]);
}

DIRECTORY_TEST(a_copy_without_a_lock_can_be_read) {
    ENDED_BY(store_close) struct store store;
    make_first();
    assert_int_equal(unlink(path_of(STORE_LOCK_NAME)), 0);
    assert_int_equal(open_kept(&store, STORE_READ), STORE_OK);
    assert_false(file_exists(path_of(STORE_LOCK_NAME)));
}

/* ---- the manifest ---- */

DIRECTORY_TEST(a_state_that_was_set_is_found_again) {
    struct store store;
    make_first();
    assert_int_equal(open_kept(&store, STORE_CLAIM), STORE_OK);
    assert_state_is(&store.state, &state_first);
    assert_int_equal(store_take_number(&store), 6);
    put_files_of(&state_second);
    assert_int_equal(store_set(&store, &state_second), STORE_SET);
    assert_state_is(&store.state, &state_second);
    assert_true(has_file(STORE_BASE, 3));
    assert_true(store_remove_old(&store, &state_first));
    assert_false(has_file(STORE_BASE, 3) || has_file(STORE_JOURNAL, 4) ||
                 has_file(STORE_JOURNAL, 5));
    assert_true(store_remove_old(&store, &state_first));
    assert_true(store_remove_old(&store, &state_second));
    assert_true(has_file(STORE_BASE, 6) && has_file(STORE_JOURNAL, 7));
    store_close(&store);
    assert_int_equal(open_kept(&store, STORE_READ), STORE_OK);
    assert_state_is(&store.state, &state_second);
    store_close(&store);
}

/* ---- keeping ---- */

static bool has_kept(enum store_kind kind, uint64_t number) {
    const char *name = formatted(STORE_KEPT_NAME "/%s", store_name(kind, number).text);
    return file_exists(path_of(name));
}

DIRECTORY_TEST(superseded_files_are_kept_if_that_is_wanted) {
    struct store store;
    make_first();
    assert_int_equal(open_kept(&store, STORE_CLAIM), STORE_OK);
    store.keep = (struct store_keep){.seconds = 1000};
    put_files_of(&state_second);
    assert_int_equal(store_set(&store, &state_second), STORE_SET);
    assert_true(store_remove_old(&store, &state_first));
    assert_false(has_file(STORE_BASE, 3) || has_file(STORE_JOURNAL, 4));
    assert_true(has_kept(STORE_BASE, 3) && has_kept(STORE_JOURNAL, 4) &&
                has_kept(STORE_JOURNAL, 5));
    assert_true(store_remove_old(&store, &state_first));
    store_close(&store);
    assert_int_equal(open_kept(&store, STORE_CLAIM), STORE_OK);
    assert_true(has_kept(STORE_BASE, 3));
    store_close(&store);
}

/* Killed between the manifest and the keeping. */
DIRECTORY_TEST(what_a_crash_left_is_kept_by_the_next_start) {
    struct store store;
    make_first();
    assert_int_equal(open_kept(&store, STORE_CLAIM), STORE_OK);
    put_files_of(&state_second);
    assert_int_equal(store_set(&store, &state_second), STORE_SET);
    store_close(&store);
    assert_int_equal(mkdir(path_of(STORE_KEPT_NAME), 0700), 0);
    assert_int_equal(open_kept(&store, STORE_CLAIM), STORE_OK);
    assert_true(has_kept(STORE_BASE, 3) && has_kept(STORE_JOURNAL, 4) &&
                has_kept(STORE_JOURNAL, 5));
    assert_true(has_file(STORE_BASE, 6) && has_file(STORE_JOURNAL, 7));
    assert_int_equal(store_take_number(&store), 8);
    store_close(&store);
}

DIRECTORY_TEST(no_new_file_has_the_number_of_a_kept_one) {
    ENDED_BY(store_close) struct store store;
    make_first();
    assert_int_equal(mkdir(path_of(STORE_KEPT_NAME), 0700), 0);
    file_write(path_of(STORE_KEPT_NAME "/leaderboard.77.journal"), "x", 1);
    assert_int_equal(open_kept(&store, STORE_CLAIM), STORE_OK);
    assert_int_equal(store_take_number(&store), 78);
}

DIRECTORY_TEST(of_more_than_is_wanted_the_oldest_go) {
    ENDED_BY(store_close) struct store store;
    struct store_state nothing = {0};
    make_first();
    assert_int_equal(open_kept(&store, STORE_CLAIM), STORE_OK);
    assert_int_equal(mkdir(path_of(STORE_KEPT_NAME), 0700), 0);
    for (int i = 1; i <= 12; i++) {
        file_write(path_of(formatted(STORE_KEPT_NAME "/leaderboard.%d.journal", i)), "0123456789",
                   10);
    }
    file_write(path_of(STORE_KEPT_NAME "/notes"), "mine", 4);
    store.keep = (struct store_keep){.seconds = 1000, .size_max = 35};
    assert_true(store_remove_old(&store, &nothing));
    assert_false(has_kept(STORE_JOURNAL, 9));
    assert_true(has_kept(STORE_JOURNAL, 10) && has_kept(STORE_JOURNAL, 12));
    const struct timespec long_ago[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    assert_int_equal(
        utimensat(AT_FDCWD, path_of(STORE_KEPT_NAME "/leaderboard.10.journal"), long_ago, 0), 0);
    assert_true(store_remove_old(&store, &nothing));
    assert_false(has_kept(STORE_JOURNAL, 10));
    assert_true(has_kept(STORE_JOURNAL, 11));
    assert_true(file_exists(path_of(STORE_KEPT_NAME "/notes")));
}

DIRECTORY_TEST(a_manifest_reads_as_it_is_documented) {
    make_first();
    size_t size;
    OWNED char *text = file_read(path_of(STORE_MANIFEST_NAME), &size);
    const char *lines = "leaderboard manifest 1\n"
                        "base leaderboard.3.base sequence 81250\n"
                        "journal leaderboard.4.journal first 81251\n"
                        "journal leaderboard.5.journal first 90012\n"
                        "checksum ";
    assert_memory_equal(text, lines, strlen(lines));
    assert_int_equal(size, strlen(lines) + 17);
}

DIRECTORY_TEST(the_largest_state_has_room) {
    static struct store_state largest = {.base_number = UINT64_MAX, .base_sequence = UINT64_MAX};
    static struct store_state again;
    char text[STORE_MANIFEST_MAX];
    for (uint32_t i = 0; i < STORE_JOURNALS_MAX; i++) {
        largest.journals[largest.journal_count++] = (struct store_journal){
            .number = UINT64_MAX - STORE_JOURNALS_MAX + i, .first_sequence = UINT64_MAX};
    }
    size_t size = store_print_manifest(text, &largest);
    assert_in_range(size, 1, STORE_MANIFEST_MAX);
    assert_true(store_parse_manifest((struct bytes){.at = text, .size = size}, &again, error));
    assert_state_is(&again, &largest);
}

DIRECTORY_TEST(every_byte_of_a_manifest_flipped_or_cut_is_found) {
    make_first();
    size_t size;
    char *text = file_read(path_of(STORE_MANIFEST_NAME), &size);
    struct store store;
    for (size_t i = 0; i < size; i++) {
        for (int bit = 0; bit < 8; bit++) {
            text[i] = (char)(text[i] ^ (1 << bit));
            file_write(path_of(STORE_MANIFEST_NAME), text, size);
            assert_int_equal(open_kept(&store, STORE_CLAIM), STORE_DAMAGED);
            assert_error_has("/kept/leaderboard.manifest is damaged at offset ");
            text[i] = (char)(text[i] ^ (1 << bit));
        }
        file_write(path_of(STORE_MANIFEST_NAME), text, i);
        assert_int_equal(open_kept(&store, STORE_CLAIM), STORE_DAMAGED);
        assert_error_has(STORE_ADVICE);
    }
    text[size] = '\n';
    file_write(path_of(STORE_MANIFEST_NAME), text, size + 1);
    assert_int_equal(open_kept(&store, STORE_CLAIM), STORE_DAMAGED);
    free(text);
    assert_true(has_file(STORE_BASE, 3) && has_file(STORE_JOURNAL, 4) &&
                has_file(STORE_JOURNAL, 5));
}

static void assert_refused(const char *lines, const char *words) {
    struct store_state parsed;
    assert_false(store_parse_manifest(bytes_from_text(lines), &parsed, error));
    assert_error_has(words);
}

DIRECTORY_TEST(lines_that_no_server_writes_are_refused_with_their_offset) {
    const char *title = "leaderboard manifest 1\n";
    assert_refused("", "offset 0: not a manifest line");
    assert_refused(title, "offset 23: the checksum");
    assert_refused("leaderboard manifest 2\n", "offset 0");
    const char *const wrong[] = {
        "base leaderboard.0.base sequence 5\n",
        "base leaderboard.01.base sequence 5\n",
        "base leaderboard.1.journal sequence 5\n",
        "base leaderboard.1.base sequence -5\n",
        "base leaderboard.1.base sequence 5 \n",
        "base leaderboard.1.base sequence 99999999999999999999\n",
        "base leaderboard.1.base first 5\n",
        "base ../leaderboard.1.base sequence 5\n",
        "journal leaderboard.1.journal first\n",
    };
    for (unsigned i = 0; i < COUNT_OF(wrong); i++) {
        assert_refused(formatted("%s%s", title, wrong[i]), "offset 23: not a manifest line");
    }
    const char *journal = "journal leaderboard.7.journal first 100\n";
    const char *const after[] = {
        "journal leaderboard.7.journal first 100\n",
        "journal leaderboard.6.journal first 200\n",
        "journal leaderboard.8.journal first 99\n",
    };
    for (unsigned i = 0; i < COUNT_OF(after); i++) {
        assert_refused(formatted("%s%s%s", title, journal, after[i]),
                       "offset 63: not a manifest line");
    }
}

DIRECTORY_TEST(a_missing_manifest_beside_its_files_is_refused) {
    struct store store;
    make_first();
    assert_int_equal(unlink(path_of(STORE_MANIFEST_NAME)), 0);
    const enum store_mode modes[] = {STORE_READ, STORE_CLAIM, STORE_CREATE};
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(open_kept(&store, modes[i]), STORE_DAMAGED);
        assert_error_has("/kept/leaderboard.manifest is missing, but leaderboard.");
    }
    assert_true(has_file(STORE_BASE, 3) && has_file(STORE_JOURNAL, 4) &&
                has_file(STORE_JOURNAL, 5));
}

DIRECTORY_TEST(a_missing_file_that_the_manifest_names_is_refused) {
    const char *const names[] = {"leaderboard.3.base", "leaderboard.4.journal",
                                 "leaderboard.5.journal"};
    struct store store;
    make_first();
    put_file(STORE_JOURNAL, 9);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(unlink(path_of(names[i])), 0);
        assert_int_equal(open_kept(&store, STORE_CLAIM), STORE_DAMAGED);
        assert_error_has(names[i]);
        assert_error_has("which is missing");
        file_write(path_of(names[i]), "x", 1);
    }
    assert_true(has_file(STORE_JOURNAL, 9));
}

static void collect_name(void *context, const char *name) {
    strcat(context, name);
    strcat(context, ";");
}

DIRECTORY_TEST(files_that_no_manifest_names_are_removed_and_others_are_left) {
    const char *const kept[] = {"leaderboard.03.base", "leaderboard.8.base.txt",
                                "leaderboard.x.journal", "notes", "leaderboard.0.base"};
    const char *const removed[] = {"leaderboard.2.base", "leaderboard.9.base",
                                   "leaderboard.3.journal", "leaderboard.12.journal",
                                   "leaderboard.manifest.new"};
    struct store store;
    make_first();
    for (unsigned i = 0; i < 5; i++) {
        file_write(path_of(kept[i]), "x", 1);
        file_write(path_of(removed[i]), "x", 1);
    }
    char names[1024] = "";
    assert_int_equal(open_kept(&store, STORE_READ), STORE_OK);
    assert_true(store_list_unnamed(&store, collect_name, names));
    store_close(&store);
    for (unsigned i = 0; i < 5; i++) {
        assert_non_null(strstr(names, removed[i]));
        assert_true(file_exists(path_of(removed[i])));
    }
    assert_int_equal(open_kept(&store, STORE_CLAIM), STORE_OK);
    for (unsigned i = 0; i < 5; i++) {
        assert_true(file_exists(path_of(kept[i])));
        assert_false(file_exists(path_of(removed[i])));
    }
    assert_int_equal(store_take_number(&store), 13);
    store_close(&store);
    assert_int_equal(directory_count(path_of("")), 5 + 5);
}

/* ---- the nth call fails ---- */

/* What a restart finds: the first or the second state, with all its files. Returns which. */
static int find_state(void) {
    struct store store;
    assert_int_equal(open_kept(&store, STORE_CLAIM), STORE_OK);
    bool is_second = store.state.base_number == state_second.base_number;
    assert_state_is(&store.state, is_second ? &state_second : &state_first);
    store_close(&store);
    /* Its files, the lock and the manifest, and nothing else. */
    assert_int_equal(directory_count(path_of("")), is_second ? 4 : 5);
    return is_second ? 2 : 1;
}

static void fail_set_at_every_call(enum failure failure) {
    unsigned statuses[3] = {0};
    bool is_reached = true;
    for (uint64_t nth = 1; is_reached; nth++) {
        struct store store;
        make_first();
        assert_int_equal(open_kept(&store, STORE_CLAIM), STORE_OK);
        put_files_of(&state_second);
        failing_disk_begin(failure, nth);
        enum store_set_status status = store_set(&store, &state_second);
        bool is_removed = status == STORE_SET && store_remove_old(&store, &state_first);
        is_reached = failing_disk_end() >= nth;
        statuses[status]++;
        assert_true(is_reached || is_removed);
        assert_state_is(&store.state, status == STORE_SET ? &state_second : &state_first);
        store_close(&store);
        int found = find_state();
        assert_true(status == STORE_SET_UNKNOWN || found == (status == STORE_SET ? 2 : 1));
        directory_remove(path_of(""));
    }
    bool is_harmless = failure == FAILURE_EINTR || failure == FAILURE_SHORT;
    assert_int_equal(statuses[STORE_SET_FAILED] > 0, !is_harmless);
    assert_int_equal(statuses[STORE_SET_UNKNOWN], is_harmless ? 0 : 1);
    assert_true(statuses[STORE_SET] > 0);
}

DIRECTORY_TEST(whichever_call_of_a_set_fails_a_whole_state_is_found) {
    for (int i = FAILURE_EIO; i <= FAILURE_CRASH; i++) {
        fail_set_at_every_call((enum failure)i);
    }
}

DIRECTORY_TEST(a_set_that_failed_can_be_tried_again) {
    for (uint64_t nth = 1; nth <= 7; nth++) {
        struct store store;
        make_first();
        assert_int_equal(open_kept(&store, STORE_CLAIM), STORE_OK);
        put_files_of(&state_second);
        failing_disk_begin(FAILURE_ENOSPC, nth);
        enum store_set_status status = store_set(&store, &state_second);
        failing_disk_end();
        assert_true(status == STORE_SET || errno == ENOSPC);
        assert_int_equal(store_set(&store, &state_second), STORE_SET);
        store_close(&store);
        assert_int_equal(find_state(), 2);
        directory_remove(path_of(""));
    }
}

DIRECTORY_TEST(a_set_syncs_the_file_and_the_directory_before_and_after) {
    ENDED_BY(store_close) struct store store;
    make_first();
    assert_int_equal(open_kept(&store, STORE_CLAIM), STORE_OK);
    failing_disk_begin(FAILURE_NONE, 0);
    assert_int_equal(store_set(&store, &state_first), STORE_SET);
    failing_disk_end();
    assert_int_equal(failing_disk_syncs(), 3);
}

static void fail_open_at_every_call(enum failure failure) {
    bool is_reached = true;
    for (uint64_t nth = 1; is_reached; nth++) {
        struct store store;
        failing_disk_begin(failure, nth);
        enum store_status status = open_kept(&store, STORE_CREATE);
        is_reached = failing_disk_end() >= nth;
        if (status == STORE_OK) {
            store_close(&store);
        } else {
            assert_true(is_reached && failure != FAILURE_EINTR && failure != FAILURE_SHORT);
            assert_int_equal(status, STORE_FAILED);
            assert_error_has("cannot ");
        }
        assert_int_equal(open_kept(&store, STORE_CREATE), STORE_OK);
        assert_int_equal(store.state.journal_count + store.state.base_number, 0);
        store_close(&store);
        directory_remove(path_of(""));
    }
}

DIRECTORY_TEST(whichever_call_of_a_first_open_fails_the_next_one_succeeds) {
    for (int i = FAILURE_EIO; i <= FAILURE_CRASH; i++) {
        fail_open_at_every_call((enum failure)i);
    }
}

DIRECTORY_TEST(whichever_call_of_an_open_fails_nothing_is_lost) {
    make_first();
    for (int i = FAILURE_EIO; i <= FAILURE_CRASH; i++) {
        bool is_reached = true;
        for (uint64_t nth = 1; is_reached; nth++) {
            struct store store;
            put_file(STORE_BASE, 9);
            failing_disk_begin((enum failure)i, nth);
            enum store_status status = open_kept(&store, STORE_CLAIM);
            is_reached = failing_disk_end() >= nth;
            assert_true(status == STORE_OK || status == STORE_FAILED);
            if (status == STORE_OK) {
                assert_state_is(&store.state, &state_first);
                store_close(&store);
            }
            assert_int_equal(find_state(), 1);
        }
    }
}
