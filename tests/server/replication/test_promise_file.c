/* leaderboard.promise: what is written is read, and nothing else is. */
#include "server/replication/promise_file.h"

#include "tests/support/directory.h"
#include "tests/support/failing_disk.h"
#include "tests/support/test.h"

static char directory[DIRECTORY_PATH_MAX];
static char error[DISK_ERROR_MAX];

static int set_up(void **state) {
    (void)state;
    directory_make(directory);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    disk = &disk_system;
    directory_remove(directory);
    return 0;
}

static struct promise some_promise(void) {
    struct promise promise = {
        .node = 0x5f1c0d2b9a8e7f34,
        .promised = {"00000000000a5f1c0d2b9a8e7f3491c2d0e4a7b3"},
        .left = PROMISE_LEFT_DURABLE,
        .group = 81250,
        .lease_ms = 1000,
    };
    promise_read_boot(promise.boot);
    return promise;
}

static void assert_same(const struct promise *a, const struct promise *b) {
    char a_text[PROMISE_TEXT_MAX], b_text[PROMISE_TEXT_MAX];
    a_text[promise_print(a, a_text)] = '\0';
    b_text[promise_print(b, b_text)] = '\0';
    assert_string_equal(a_text, b_text);
}

TEST_WITH(what_is_saved_is_loaded, set_up, tear_down) {
    struct promise saved = some_promise(), loaded;
    assert_int_equal(promise_load(directory, &loaded, error), PROMISE_MISSING);
    for (int left = 0; left < PROMISE_LEFTS; left++) {
        saved.left = (enum promise_left)left;
        saved.group++;
        assert_true(promise_save(directory, &saved));
        assert_int_equal(promise_load(directory, &loaded, error), PROMISE_OK);
        assert_same(&loaded, &saved);
    }
}

TEST(every_changed_byte_and_every_cut_is_found) {
    char text[PROMISE_TEXT_MAX];
    struct promise promise = some_promise(), parsed;
    size_t size = promise_print(&promise, text);
    assert_true(promise_parse((struct bytes){.at = text, .size = size}, &parsed));
    for (size_t at = 0; at < size; at++) {
        assert_false(promise_parse((struct bytes){.at = text, .size = at}, &parsed));
        for (int bit = 0; bit < 8; bit++) {
            text[at] ^= (char)(1 << bit);
            assert_false(promise_parse((struct bytes){.at = text, .size = size}, &parsed));
            text[at] ^= (char)(1 << bit);
        }
    }
    text[size] = '\n';
    assert_false(promise_parse((struct bytes){.at = text, .size = size + 1}, &parsed));
}

TEST_WITH(a_damaged_file_is_named, set_up, tear_down) {
    struct promise promise;
    file_write(directory_join(directory, "leaderboard.promise"), "leaderboard promise 1\n", 22);
    assert_int_equal(promise_load(directory, &promise, error), PROMISE_DAMAGED);
    assert_non_null(strstr(error, "leaderboard.promise"));
}

TEST(a_boot_has_its_size_and_stays) {
    char first[PROMISE_BOOT_SIZE + 1], second[PROMISE_BOOT_SIZE + 1];
    promise_read_boot(first);
    promise_read_boot(second);
    assert_int_equal(strlen(first), PROMISE_BOOT_SIZE);
    assert_string_equal(first, second);
}

/* Whichever call of the disk fails: the file is the old one or the new one, and whole. */
TEST_WITH(a_failing_disk_leaves_the_old_or_the_new_promise, set_up, tear_down) {
    struct promise old = some_promise(), loaded;
    struct promise next = old;
    next.promised.text[11] = 'b';
    for (int failure = FAILURE_EIO; failure <= FAILURE_CRASH; failure++) {
        bool is_over = false;
        for (uint64_t nth = 1; !is_over; nth++) {
            assert_true(promise_save(directory, &old));
            failing_disk_begin((enum failure)failure, nth);
            bool is_saved = promise_save(directory, &next);
            is_over = failing_disk_end() < nth;
            assert_int_equal(promise_load(directory, &loaded, error), PROMISE_OK);
            bool is_new = term_compare(&loaded.promised, &next.promised) == 0;
            assert_true(is_new || term_compare(&loaded.promised, &old.promised) == 0);
            assert_true(!is_saved || is_new);
            assert_true(!is_over || is_saved);
        }
    }
}
