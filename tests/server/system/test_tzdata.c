/* Zones by name, from a directory of the test. */
#include "tests/support/test.h"

#include <sys/stat.h>

#include "codec/memory.h"
#include "server/system/tzdata.h"
#include "tests/support/directory.h"

static char directory[DIRECTORY_PATH_MAX];

FIXTURE(set_up) {
    directory_make(directory);
    return setenv("TZDIR", directory, 1);
}

FIXTURE(tear_down) {
    tzdata_deinit();
    directory_remove(directory);
    return unsetenv("TZDIR");
}

#define IN_DIRECTORY(name) TEST_WITH(name, set_up, tear_down)

static void copy(const char *zone, const char *name) {
    assert_int_equal(system(formatted("cp /usr/share/zoneinfo/%s %s/%s", zone, directory, name)),
                     0);
}

static void assert_unusable(const char *name, const char *reason) {
    char error[TZDATA_ERROR_MAX];
    assert_null(tzdata_find(bytes_from_text(name), error));
    assert_string_equal(
        error, formatted("time zone '%s' cannot be used: %.64s: %s", name, directory, reason));
}

IN_DIRECTORY(a_zone_is_read_once_and_kept_as_it_was) {
    char error[TZDATA_ERROR_MAX];
    copy("Europe/Berlin", "Here");
    const struct zone *zone = tzdata_find(BYTES("Here"), error);
    assert_non_null(zone);
    assert_int_equal(zone_offset_s(zone, 1794830400), 3600);
    /* An update is taken at the next start. */
    copy("Asia/Shanghai", "Here");
    assert_ptr_equal(tzdata_find(BYTES("Here"), error), zone);
    assert_ptr_equal(tzdata_find_anyway(BYTES("Here")), zone);
    assert_int_equal(zone_offset_s(zone, 1794830400), 3600);
    tzdata_deinit();
    zone = tzdata_find(BYTES("Here"), error);
    assert_int_equal(zone_offset_s(zone, 1794830400), 8 * 3600);
}

IN_DIRECTORY(what_is_no_zone_is_named_with_its_reason) {
    static const char missing[] =
        "there is no zone of this name (is the package tzdata installed?)";
    assert_unusable("Nowhere", missing);
    assert_unusable("No/Where", missing);
    assert_unusable("../etc/passwd", "names are like Europe/Berlin");
    assert_unusable("/etc/passwd", "names are like Europe/Berlin");
    assert_unusable("", "names are like Europe/Berlin");
    assert_int_equal(mkdir(formatted("%s/Folder", directory), 0700), 0);
    assert_unusable("Folder", missing);
    /* It would be waited for. */
    assert_int_equal(mkfifo(formatted("%s/Pipe", directory), 0600), 0);
    assert_unusable("Pipe", missing);
    FILE *file = fopen(formatted("%s/Text", directory), "w");
    assert_non_null(file);
    for (int i = 0; i < 3 * ZONE_FILE_MAX; i++) {
        fputc('x', file);
    }
    fclose(file);
    assert_unusable("Text", "it is not a file of tzdata, or one from before 2005");
    /* Nothing is left of them. */
    copy("Asia/Shanghai", "Nowhere");
    char error[TZDATA_ERROR_MAX];
    assert_non_null(tzdata_find(BYTES("Nowhere"), error));
}

IN_DIRECTORY(a_file_of_ours_may_name_a_zone_that_is_missing) {
    const struct zone *zone = tzdata_find_anyway(BYTES("Mars/Base"));
    assert_non_null(zone);
    assert_true(zone_is_missing(zone));
    assert_ptr_equal(tzdata_find_anyway(BYTES("Mars/Base")), zone);
    assert_unusable("Mars/Base", "it was missing when the server started");
    assert_null(tzdata_find_anyway(BYTES("../Mars")));
    char error[TZDATA_ERROR_MAX];
    tzdata_explain(zone, error);
    assert_non_null(strstr(error, "there is no zone of this name"));
}

IN_DIRECTORY(names_that_nobody_knows_take_no_room_of_zones) {
    char name[ZONE_NAME_MAX + 1], error[TZDATA_ERROR_MAX];
    for (int i = 0; i < 5000; i++) { /* more than there is room for zones */
        snprintf(name, sizeof name, "Mars/Base%d", i);
        const struct zone *zone = tzdata_find_anyway(bytes_from_text(name));
        assert_non_null(zone);
        assert_true(zone_is_missing(zone));
    }
    copy("Europe/Berlin", "Here");
    const struct zone *here = tzdata_find(BYTES("Here"), error);
    assert_non_null(here);
    assert_false(zone_is_missing(here));
}

IN_DIRECTORY(without_memory_nothing_is_kept) {
    char error[TZDATA_ERROR_MAX];
    copy("Europe/Berlin", "Here");
    for (uint64_t nth = 1; nth <= 2; nth++) {
        memory_fail_at(nth);
        assert_unusable("Here", "out of memory");
        memory_fail_at(0);
    }
    assert_non_null(tzdata_find(BYTES("Here"), error));
}
