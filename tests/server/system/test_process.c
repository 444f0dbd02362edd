/* What is warned of at start, of a system whose files the test has written. */
#include "tests/support/test.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include "codec/memory.h"
#include "server/system/log.h"
#include "server/system/process.h"
#include "tests/support/directory.h"

static char root[DIRECTORY_PATH_MAX];

FIXTURE(begin) {
    directory_make(root);
    return log_open(directory_join(root, "log"), LOG_NOTICE) ? 0 : -1;
}

FIXTURE(end) {
    log_close();
    directory_remove(root);
    return 0;
}

static void write_system(const char *path, const char *text) {
    char whole[DIRECTORY_PATH_MAX + 128];
    snprintf(whole, sizeof whole, "%s%s", root, path);
    for (char *slash = whole + strlen(root) + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = '\0';
        (void)mkdir(whole, 0700);
        *slash = '/';
    }
    file_write(whole, text, strlen(text));
}

/* Is this in the log of a start with these settings? NULL: the log is empty. */
static void expect_said(int64_t tcp_backlog, uint64_t maxmemory, const char *wanted) {
    size_t size;
    file_write(directory_join(root, "log"), "", 0);
    process_warn(&(struct surroundings){
        .tcp_backlog = tcp_backlog,
        .maxmemory = maxmemory,
        .root = root,
    });
    OWNED char *log = file_read(directory_join(root, "log"), &size);
    if (wanted == NULL ? size > 0 : memmem(log, size, wanted, strlen(wanted)) == NULL) {
        fail_msg("\"%s\" was expected of: %.*s", wanted != NULL ? wanted : "", (int)size, log);
    }
}

TEST(a_system_that_tells_nothing_is_not_blamed) {
    expect_said(511, 0, NULL);
}

TEST(a_small_somaxconn_is_told_with_both_numbers) {
    write_system("/proc/sys/net/core/somaxconn", "511\n");
    expect_said(511, 0, NULL);
    expect_said(512, 0, " tcp-backlog=512 somaxconn=511 ");
    write_system("/proc/sys/net/core/somaxconn", "many\n");
    expect_said(512, 0, NULL);
}

TEST(huge_pages_that_are_off_matter_where_the_pool_is_used) {
    static const char path[] = "/sys/kernel/mm/transparent_hugepage/enabled";
    bool has_pool = strcmp(memory_allocator(), "pool") == 0;
    write_system(path, "always [madvise] never\n");
    expect_said(1, 0, NULL);
    write_system(path, "always madvise [never]\n");
    expect_said(1, 0, has_pool ? "huge pages are off" : NULL);
    write_system(path, "[always] madvise never\n");
    expect_said(1, 0, NULL);
}

TEST(a_control_group_with_less_memory_than_maxmemory_is_told) {
    static const char limit[] = "/sys/fs/cgroup/a/b.service/memory.max";
    write_system("/proc/self/cgroup", "0::/a/b.service\n");
    expect_said(1, 0, NULL);
    write_system(limit, "max\n");
    expect_said(1, 0, NULL);
    write_system(limit, "1000000\n");
    expect_said(1, 0, "memory.max=1000000 maxmemory=0 advice=\"set maxmemory to 800000\"");
    expect_said(1, 1000001, "maxmemory=1000001 ");
    expect_said(1, 1000000, NULL);
    write_system("/proc/self/cgroup", "0::/\n");
    write_system("/sys/fs/cgroup/memory.max", "7\n");
    expect_said(1, 8, "memory.max=7 ");
    write_system("/proc/self/cgroup", "12:cpu:/\n11:memory:/\n");
    expect_said(1, 8, NULL);
}

TEST_MAIN(begin, end)
