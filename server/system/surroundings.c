/* See surroundings.h. A file that cannot be read says nothing: the system has no such limit, or hides
 * it. */
#include "server/system/surroundings.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "codec/bytes.h"
#include "codec/memory.h"
#include "server/system/disk.h"
#include "server/system/log.h"

enum { TEXT_MAX = 512, PATH_SIZE = 768 };

/* The beginning of a file, without the line end. */
static bool surroundings_read_text(const struct surroundings *wanted, const char *path,
                                   char text[TEXT_MAX]) {
    char whole[PATH_SIZE];
    snprintf(whole, sizeof whole, "%s%s", wanted->root != NULL ? wanted->root : "", path);
    return disk_read_text(whole, text, TEXT_MAX);
}

static bool surroundings_read_number(const struct surroundings *wanted, const char *path,
                                     int64_t *number) {
    char text[TEXT_MAX];
    return surroundings_read_text(wanted, path, text) &&
           bytes_parse_i64(bytes_from_text(text), number);
}

/* The pool reserves twice the machine's memory in addresses. */
static void surroundings_check_address_space(const struct surroundings *wanted) {
    struct rlimit limit;
    int64_t overcommit;
    if (strcmp(memory_allocator(), "pool") == 0) {
        return;
    }
    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
        log_write(LOG_WARNING, "the address space is limited, so memory comes from the C library: "
                               "slower, and larger advice=\"ulimit -v unlimited\"");
    } else if (surroundings_read_number(wanted, "/proc/sys/vm/overcommit_memory", &overcommit) &&
               overcommit == 2) {
        log_write(LOG_WARNING,
                  "the system reserves no addresses beyond its memory, so memory comes "
                  "from the C library: slower, and larger "
                  "advice=\"sysctl vm.overcommit_memory=0\"");
    }
}

void surroundings_warn(const struct surroundings *wanted) {
    int64_t somaxconn;
    if (surroundings_read_number(wanted, "/proc/sys/net/core/somaxconn", &somaxconn) &&
        somaxconn < wanted->tcp_backlog) {
        log_write(LOG_WARNING,
                  "the system lowers tcp-backlog, clients that connect at once may be refused "
                  "tcp-backlog=%lld somaxconn=%lld advice=\"sysctl net.core.somaxconn=%lld\"",
                  (long long)wanted->tcp_backlog, (long long)somaxconn,
                  (long long)wanted->tcp_backlog);
    }
    char text[TEXT_MAX];
    if (strcmp(memory_allocator(), "pool") == 0 &&
        surroundings_read_text(wanted, "/sys/kernel/mm/transparent_hugepage/enabled", text) &&
        strstr(text, "[never]") != NULL) {
        log_write(LOG_WARNING,
                  "huge pages are off, large boards are about a tenth slower "
                  "advice=\"echo madvise > /sys/kernel/mm/transparent_hugepage/enabled\"");
    }
    surroundings_check_address_space(wanted);
    /* Of the server's own control group: "0::/system.slice/leaderboard.service". */
    char path[TEXT_MAX + 64];
    int64_t memory_max;
    bool has_group =
        surroundings_read_text(wanted, "/proc/self/cgroup", text) && strncmp(text, "0::/", 4) == 0;
    text[has_group ? strcspn(text, "\n") : 0] = '\0';
    snprintf(path, sizeof path, "/sys/fs/cgroup%s/memory.max",
             has_group && strcmp(text + 3, "/") != 0 ? text + 3 : "");
    if (has_group && surroundings_read_number(wanted, path, &memory_max) &&
        (wanted->maxmemory == 0 || wanted->maxmemory > (uint64_t)memory_max)) {
        log_write(LOG_WARNING,
                  "the control group allows less memory than maxmemory, beyond it the system kills "
                  "the server memory.max=%lld maxmemory=%llu advice=\"set maxmemory to %lld\"",
                  (long long)memory_max, (unsigned long long)wanted->maxmemory,
                  (long long)memory_max / 5 * 4);
    }
    struct rlimit limit;
    if (getrlimit(RLIMIT_CORE, &limit) == 0 && limit.rlim_cur == 0) {
        log_write(LOG_VERBOSE, "a crash would leave no core file advice=\"ulimit -c unlimited\"");
    }
}
