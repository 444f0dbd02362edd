/* A list of the zones in use: there are a few, at most the six hundred of tzdata. */
#include "server/system/tzdata.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "codec/memory.h"
#include "server/system/disk.h"

enum {
    ZONES_MAX = 2048, /* more than tzdata has, with posix/ and right/ */
    MISSING_MAX = 64,
    PATH_MAX_SIZE = 4096,
};

static struct {
    pthread_mutex_t lock;
    struct zone *zones[ZONES_MAX];
    size_t count;
    /* Of names that tzdata does not know: these come from strangers, and take no room of others. Behind the last
     * one all are the same. */
    struct zone *missing[MISSING_MAX];
    size_t missing_count;
} tzdata = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const char *tzdata_directory(void) {
    const char *given = getenv("TZDIR");
    return given != NULL && given[0] != '\0' ? given : "/usr/share/zoneinfo";
}

static void tzdata_explain_name(struct bytes name, const char *reason, char *error) {
    snprintf(error, TZDATA_ERROR_MAX, "time zone '%s' cannot be used: %.*s: %s",
             bytes_show(name).text, 64, tzdata_directory(), reason);
}

static struct zone *tzdata_find_kept(struct zone *const *zones, size_t count, struct bytes name) {
    for (size_t i = 0; i < count; i++) {
        if (bytes_equal(bytes_from_text(zone_name(zones[i])), name)) {
            return zones[i];
        }
    }
    return NULL;
}

/* NULL: *reason says why. */
static struct zone *tzdata_read_zone(struct bytes name, const char **reason) {
    char path[PATH_MAX_SIZE];
    struct stat about;
    char *bytes = NULL;
    size_t size = 0;
    int length =
        snprintf(path, sizeof path, "%s/%.*s", tzdata_directory(), (int)name.size, name.at);
    *reason = "there is no zone of this name (is the package tzdata installed?)";
    if (length >= (int)sizeof path) {
        return NULL;
    }
    /* Never waits, whatever has this name. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        if (errno != ENOENT && errno != ENOTDIR) {
            *reason = strerror(errno);
        }
        return NULL;
    }
    if (fstat(fd, &about) == 0 && S_ISREG(about.st_mode)) {
        bytes = memory_allocate(ZONE_FILE_MAX + 1);
        *reason = bytes == NULL ? "out of memory" : "its file cannot be read";
        if (bytes != NULL && !disk_read_all(fd, bytes, ZONE_FILE_MAX + 1, 0, &size)) {
            memory_free(bytes);
            bytes = NULL;
        }
    }
    close(fd);
    struct zone *zone =
        bytes != NULL ? zone_create(name, (struct bytes){.at = bytes, .size = size}, reason) : NULL;
    memory_free(bytes);
    return zone;
}

static const struct zone *tzdata_find_or_read(struct bytes name, bool is_anyway,
                                              const char **reason) {
    if (!zone_is_name(name)) {
        *reason = "names are like Europe/Berlin";
        return NULL;
    }
    pthread_mutex_lock(&tzdata.lock);
    struct zone *zone = tzdata_find_kept(tzdata.zones, tzdata.count, name);
    if (zone == NULL) {
        zone = tzdata_find_kept(tzdata.missing, tzdata.missing_count, name);
    }
    if (zone == NULL && tzdata.count == ZONES_MAX) {
        *reason = "too many zones";
    } else if (zone == NULL) {
        zone = tzdata_read_zone(name, reason);
        if (zone != NULL) {
            tzdata.zones[tzdata.count++] = zone;
        } else if (is_anyway && tzdata.missing_count == MISSING_MAX) {
            zone = tzdata.missing[MISSING_MAX - 1];
        } else if (is_anyway) {
            bool is_last = tzdata.missing_count == MISSING_MAX - 1;
            zone = zone_create_missing(is_last ? BYTES("Unknown") : name);
            tzdata.missing[tzdata.missing_count] = zone;
            tzdata.missing_count += zone != NULL;
        }
    }
    pthread_mutex_unlock(&tzdata.lock);
    if (zone != NULL && !is_anyway && zone_is_missing(zone)) {
        *reason = "it was missing when the server started";
        return NULL;
    }
    return zone;
}

const struct zone *tzdata_find(struct bytes name, char *error) {
    const char *reason = "";
    const struct zone *zone = tzdata_find_or_read(name, false, &reason);
    if (zone == NULL) {
        tzdata_explain_name(name, reason, error);
    }
    return zone;
}

const struct zone *tzdata_find_anyway(struct bytes name) {
    const char *reason;
    return tzdata_find_or_read(name, true, &reason);
}

void tzdata_explain(const struct zone *zone, char *error) {
    struct bytes name = bytes_from_text(zone_name(zone));
    const char *reason = "it can be read now";
    pthread_mutex_lock(&tzdata.lock);
    struct zone *again = tzdata_read_zone(name, &reason);
    pthread_mutex_unlock(&tzdata.lock);
    tzdata_explain_name(name, reason, error);
    if (again != NULL) {
        zone_destroy(again);
    }
}

void tzdata_deinit(void) {
    for (size_t i = 0; i < tzdata.count; i++) {
        zone_destroy(tzdata.zones[i]);
    }
    for (size_t i = 0; i < tzdata.missing_count; i++) {
        zone_destroy(tzdata.missing[i]);
    }
    tzdata.count = tzdata.missing_count = 0;
}
