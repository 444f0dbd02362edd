/* Interrupted and partial calls; and the window over a file. */
#include <errno.h>
#include <fcntl.h>

#include "tests/support/directory_test.h"
#include "tests/support/failing_disk.h"
#include "tests/support/random.h"

static int open_new(const char *name) {
    int fd = disk_open(AT_FDCWD, directory_join(directory, name), O_RDWR | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    return fd;
}

static void assert_file_is(const char *name, const char *expected) {
    size_t size;
    OWNED char *text = file_read(directory_join(directory, name), &size);
    assert_int_equal(size, strlen(expected));
    assert_string_equal(text, expected);
}

DIRECTORY_TEST(a_short_or_interrupted_write_goes_on_where_it_stopped) {
    const enum failure failures[] = {FAILURE_SHORT, FAILURE_EINTR};
    for (unsigned i = 0; i < 2; i++) {
        int fd = open_new("file");
        failing_disk_begin(failures[i], 1);
        assert_true(disk_write_all(fd, "0123456789", 10));
        assert_int_equal(failing_disk_end(), 2);
        disk_close(fd);
        assert_file_is("file", "0123456789");
    }
}

DIRECTORY_TEST(a_failed_write_says_why) {
    int fd = open_new("file");
    failing_disk_begin(FAILURE_CRASH, 1);
    assert_false(disk_write_all(fd, "0123456789", 10));
    assert_int_equal(errno, EIO);
    failing_disk_begin(FAILURE_ENOSPC, 1);
    assert_false(disk_write_all(fd, "0123456789", 10));
    assert_int_equal(errno, ENOSPC);
    disk_close(fd);
}

static ssize_t write_three_then_nothing(int fd, const void *bytes, size_t size) {
    static int calls;
    return calls++ % 2 == 0 ? disk_system.write(fd, bytes, size < 3 ? size : 3) : 0;
}

DIRECTORY_TEST(a_write_of_nothing_is_a_full_disk) {
    struct disk full = disk_system;
    full.write = write_three_then_nothing;
    int fd = open_new("file");
    disk = &full;
    assert_false(disk_write_all(fd, "0123456789", 10));
    assert_int_equal(errno, ENOSPC);
    disk_close(fd);
    assert_file_is("file", "012");
}

DIRECTORY_TEST(a_short_or_interrupted_read_goes_on_and_the_end_ends_it) {
    const enum failure failures[] = {FAILURE_SHORT, FAILURE_EINTR};
    file_write(directory_join(directory, "file"), "0123456789", 10);
    int fd = disk_open(AT_FDCWD, directory_join(directory, "file"), O_RDONLY, 0);
    for (unsigned i = 0; i < 2; i++) {
        char text[20] = "";
        size_t got = 0;
        failing_disk_begin(failures[i], 1);
        assert_true(disk_read_all(fd, text, 4, 3, &got));
        failing_disk_end();
        assert_int_equal(got, 4);
        assert_string_equal(text, "3456");
        assert_true(disk_read_all(fd, text, 10, 7, &got));
        assert_int_equal(got, 3);
    }
    char byte;
    size_t got = 0;
    failing_disk_begin(FAILURE_EIO, 1);
    assert_false(disk_read_all(fd, &byte, 1, 0, &got));
    assert_int_equal(errno, EIO);
    disk_close(fd);
}

DIRECTORY_TEST(interrupted_calls_are_made_again_and_errors_are_final) {
    int fd = open_new("file");
    bool (*const calls[])(int) = {disk_sync, disk_sync_contents, disk_sync_directory};
    for (unsigned i = 0; i < 3; i++) {
        failing_disk_begin(FAILURE_EINTR, 1);
        assert_true(calls[i](fd));
        assert_int_equal(failing_disk_end(), 2);
        failing_disk_begin(FAILURE_EIO, 1);
        assert_false(calls[i](fd));
        assert_int_equal(errno, EIO);
        assert_int_equal(failing_disk_end(), 1);
    }
    failing_disk_begin(FAILURE_EINTR, 1);
    assert_true(disk_truncate(fd, 5));
    assert_int_equal(failing_disk_end(), 2);
    uint64_t size = 0;
    assert_int_equal(disk->size(fd, &size), 0);
    assert_int_equal(size, 5);
    disk_close(fd);
    errno = E2BIG;
    disk_close(-1);
    assert_int_equal(errno, E2BIG);
}

static int sync_refused(int fd) {
    (void)fd;
    errno = EINVAL;
    return -1;
}

DIRECTORY_TEST(a_file_system_that_cannot_sync_directories_is_let_pass) {
    struct disk odd = disk_system;
    odd.sync = sync_refused;
    disk = &odd;
    assert_true(disk_sync_directory(0));
    assert_false(disk_sync(0));
}

static void count_name(void *context, const char *name) {
    assert_true(strcmp(name, "a") == 0 || strcmp(name, "b") == 0);
    ++*(unsigned *)context;
}

DIRECTORY_TEST(a_listing_names_everything_but_the_directory_itself) {
    disk_close(open_new("a"));
    disk_close(open_new("b"));
    int fd = disk_open(AT_FDCWD, directory, O_RDONLY | O_DIRECTORY, 0);
    for (unsigned i = 0; i < 2; i++) {
        unsigned count = 0;
        assert_int_equal(disk->list(fd, count_name, &count), 0);
        assert_int_equal(count, 2);
    }
    disk_close(fd);
}

DIRECTORY_TEST(a_window_shows_any_piece_of_the_file_through_a_small_buffer) {
    struct random random = random_begin("window");
    char contents[1000];
    for (unsigned i = 0; i < sizeof contents; i++) {
        contents[i] = (char)random_next(&random);
    }
    file_write(directory_join(directory, "file"), contents, sizeof contents);
    char buffer[64];
    struct disk_window window = {.buffer = buffer, .buffer_size = 64, .file_size = 1000};
    window.fd = disk_open(AT_FDCWD, directory_join(directory, "file"), O_RDONLY, 0);
    uint64_t offset = 0;
    for (int i = 0; i < 20000; i++) {
        size_t size = (size_t)random_below(&random, 65);
        /* Mostly forward by a little, as readers do; sometimes anywhere. */
        offset = random_below(&random, 50) == 0 ? random_below(&random, 1000)
                                                : offset + random_below(&random, 40);
        offset = offset + size > 1000 ? 1000 - size : offset;
        size_t read_size = (size_t)random_below(&random, 100);
        const char *piece = disk_window_get(&window, offset, size, read_size);
        assert_non_null(piece);
        assert_memory_equal(piece, contents + offset, size);
    }
    disk_close(window.fd);
}

DIRECTORY_TEST(a_file_that_becomes_shorter_under_a_window_is_an_error) {
    char buffer[64];
    struct disk_window window = {.buffer = buffer, .buffer_size = 64, .file_size = 100};
    window.fd = open_new("file");
    assert_true(disk_truncate(window.fd, 50));
    assert_non_null(disk_window_get(&window, 0, 50, 64));
    assert_null(disk_window_get(&window, 30, 40, 64));
    assert_int_equal(errno, ENODATA);
    failing_disk_begin(FAILURE_EIO, 1);
    assert_null(disk_window_get(&window, 60, 40, 64));
    assert_int_equal(errno, EIO);
    disk_close(window.fd);
}

DIRECTORY_TEST(ids_differ) {
    assert_int_not_equal(disk_random_id(), disk_random_id());
}
