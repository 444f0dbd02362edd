/* Any bytes as a snapshot: never a crash, and no block that was not written. The first byte picks:
 * bytes as they are; the same with right checksums, so that what is behind them is reached; or the
 * bytes as blocks that are written and come back. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "codec/little.h"
#include "codec/memory.h"
#include "server/snapshot_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

enum { FILE_MAX = 65536, ROOM_MAX = SNAPSHOT_BLOCK_SIZE };

static char room[ROOM_MAX];

static int file_of(const char *bytes, size_t size) {
    int fd = memfd_create("base", MFD_CLOEXEC);
    CHECK(fd >= 0 && write(fd, bytes, size) == (ssize_t)size);
    return fd;
}

/* Read to the end. Returns the raw bytes given. */
static uint64_t read_all(int fd, enum snapshot_status *status, char *given) {
    struct snapshot_reader reader;
    uint64_t raw_size = 0;
    *status = snapshot_reader_open(&reader, fd, "fuzz.base");
    while (*status == SNAPSHOT_BLOCK) {
        size_t size = 0;
        *status = snapshot_reader_next(&reader, room, ROOM_MAX, &size);
        if (*status == SNAPSHOT_BLOCK) {
            CHECK(size > 0 && size <= ROOM_MAX);
            if (given != NULL) {
                memcpy(given + raw_size, room, size);
            }
            raw_size += size;
        }
    }
    CHECK(*status == SNAPSHOT_END || *status == SNAPSHOT_DAMAGED || *status == SNAPSHOT_LARGER);
    CHECK((*status == SNAPSHOT_DAMAGED) == (reader.error[0] != '\0'));
    CHECK(*status != SNAPSHOT_END || reader.footer.raw_size == raw_size);
    snapshot_reader_close(&reader);
    return raw_size;
}

/* Make the checksums right, as far as the sizes lead. */
static void repair(char *bytes, size_t size) {
    if (size < SNAPSHOT_FILE_HEAD) {
        return;
    }
    memcpy(bytes, "LBSNAP01", 8);
    little_put_u64(bytes + 24, XXH3_64bits(bytes, 24));
    uint64_t seed = little_get_u64(bytes + 8);
    for (size_t at = SNAPSHOT_FILE_HEAD; size - at >= SNAPSHOT_BLOCK_HEAD; seed++) {
        uint32_t stored_size = little_get_u32(bytes + at + 12);
        if (stored_size > size - at - SNAPSHOT_BLOCK_HEAD) {
            return;
        }
        little_put_u64(bytes + at, XXH3_64bits_withSeed(bytes + at + 8, stored_size + 8, seed));
        at += SNAPSHOT_BLOCK_HEAD + stored_size;
    }
}

/* ---- written and read ---- */

static int memory_file;

static int open_memory_file(int directory, const char *name, int flags, mode_t mode) {
    (void)directory;
    (void)name;
    (void)flags;
    (void)mode;
    return memory_file;
}

static void round_trip(const char *bytes, size_t size, size_t step) {
    struct disk in_memory = disk_system;
    struct snapshot_writer writer;
    struct snapshot_footer footer = {.sequence = 1};
    enum snapshot_status status;
    static char given[FILE_MAX];
    memory_file = memfd_create("base", MFD_CLOEXEC);
    in_memory.open_at = open_memory_file;
    disk = &in_memory;
    CHECK(snapshot_writer_init(&writer, SNAPSHOT_LEVEL) &&
          snapshot_writer_open(&writer, 0, "base", 1));
    disk = &disk_system;
    for (size_t at = 0; at < size; at += step) {
        uint32_t part = (uint32_t)(size - at < step ? size - at : step);
        CHECK(snapshot_writer_block(&writer, bytes + at, part));
    }
    CHECK(snapshot_writer_finish(&writer, &footer));
    int fd = dup(memory_file);
    snapshot_writer_close(&writer);
    CHECK(read_all(fd, &status, given) == size);
    CHECK(status == SNAPSHOT_END && memcmp(given, bytes, size) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size) {
    static char bytes[FILE_MAX];
    if (size == 0 || size > FILE_MAX) {
        return 0;
    }
    uint64_t live_count = memory_live_count();
    enum snapshot_status status;
    memcpy(bytes, input + 1, size - 1);
    if (input[0] % 4 == 3) {
        round_trip(bytes, size - 1, 1 + input[0] / 4U * 20);
    } else {
        if (input[0] % 4 != 0) {
            repair(bytes, size - 1);
        }
        read_all(file_of(bytes, size - 1), &status, NULL);
    }
    CHECK(memory_live_count() == live_count);
    return 0;
}
