/* Tests with a directory of their own, in which the disk may be replaced and allocations may fail, and
 * which leave no memory. */
#ifndef TESTS_SUPPORT_DIRECTORY_TEST_H
#define TESTS_SUPPORT_DIRECTORY_TEST_H

#include "codec/memory.h"
#include "server/system/disk.h"
#include "tests/support/directory.h"
#include "tests/support/test.h"

static char directory[DIRECTORY_PATH_MAX];
static uint64_t directory_live_before; /* allocations */

FIXTURE(directory_set_up) {
    directory_live_before = memory_live_count();
    directory_make(directory);
    return 0;
}

FIXTURE(directory_tear_down) {
    disk = &disk_system;
    memory_fail_at(0);
    directory_remove(directory);
    assert_int_equal(memory_live_count(), directory_live_before);
    return 0;
}

#define DIRECTORY_TEST(name) TEST_WITH(name, directory_set_up, directory_tear_down)

#endif
