/* Micro benchmark of the files: how fast journals and snapshots are written and read, without what
 * is done with their contents.
 *
 *     build/bench/micro_files [directory]        default: /dev/shm, so that no disk is measured
 *
 * A snapshot of MEMBERS members such as "player:0000012345678" in the order of their ranks, keys of
 * 33 bits of score and 31 of time, written much as effect_bytes.h writes them; at several levels of
 * compression. A journal of the same, in groups of several sizes. MB are those of the raw bytes;
 * the best of ROUNDS rounds is printed. */
#include <fcntl.h>
#include <inttypes.h>
#include <unistd.h>

#include "bench/micro.h"
#include "server/durability/journal_file.h"
#include "server/durability/snapshot_file.h"

enum { MEMBERS = 5000000, ROUNDS = 3, RECORD_MAX = 40, MEMBER_SIZE = 20 };

static struct random drawn = {.state = 7};
static char *stream;
static size_t stream_size;
static int directory;

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static int compare_keys(const void *a, const void *b) {
    uint64_t left = *(const uint64_t *)a;
    uint64_t right = *(const uint64_t *)b;
    return (left < right) - (left > right);
}

/* One member of a piece: its size, its key's difference to the one before, its bytes. */
static size_t put_record(char *out, uint64_t key, uint64_t last_key) {
    uint64_t change = key ^ last_key;
    int below = change != 0 ? __builtin_ctzll(change) / 8 : 0;
    int count = change != 0 ? 8 - __builtin_clzll(change) / 8 - below : 0;
    size_t size = 0;
    out[size++] = MEMBER_SIZE;
    out[size++] = (char)(below << 4 | count);
    change >>= 8 * below;
    memcpy(out + size, &change, sizeof change);
    size += (size_t)count;
    char member[MEMBER_SIZE + 1];
    snprintf(member, sizeof member, "player:%013" PRIu64, random_next(&drawn) % 100000000);
    memcpy(out + size, member, MEMBER_SIZE);
    return size + MEMBER_SIZE;
}

static void make_stream(void) {
    uint64_t *keys = calloc(MEMBERS, sizeof *keys);
    stream = malloc((size_t)MEMBERS * RECORD_MAX);
    if (keys == NULL || stream == NULL) {
        fail("micro_files");
    }
    for (uint32_t i = 0; i < MEMBERS; i++) {
        /* Scores up to a million, reached in the last month. */
        uint64_t score = (UINT64_C(1) << 32) + random_below(&drawn, 1000000);
        keys[i] = score << 31 | random_below(&drawn, 2600000);
    }
    qsort(keys, MEMBERS, sizeof *keys, compare_keys);
    for (uint32_t i = 0; i < MEMBERS; i++) {
        stream_size += put_record(stream + stream_size, keys[i], i > 0 ? keys[i - 1] : 0);
    }
    free(keys);
}

static double mb_per_s(double begin_ns) {
    return (double)stream_size * 1e3 / (micro_now_ns() - begin_ns);
}

static int open_file(const char *name) {
    int fd = disk_open(directory, name, O_RDONLY, 0);
    if (fd < 0) {
        fail(name);
    }
    return fd;
}

/* ---- snapshots ---- */

static uint64_t write_snapshot(int level) {
    struct snapshot_writer writer;
    struct snapshot_footer footer = {.sequence = 1};
    bool is_done = snapshot_file_writer_init(&writer, level) &&
                   snapshot_file_writer_open(&writer, directory, "micro.base", 1);
    for (size_t at = 0; is_done && at < stream_size; at += SNAPSHOT_BLOCK_SIZE) {
        size_t left = stream_size - at;
        is_done = snapshot_file_writer_block(
            &writer, stream + at,
            (uint32_t)(left < SNAPSHOT_BLOCK_SIZE ? left : SNAPSHOT_BLOCK_SIZE));
    }
    if (!is_done || !snapshot_file_writer_finish(&writer, &footer)) {
        fail("micro.base");
    }
    snapshot_file_writer_close(&writer);
    return footer.offset;
}

static void read_snapshot(void) {
    static char raw[SNAPSHOT_BLOCK_SIZE];
    struct snapshot_reader reader;
    size_t size;
    enum snapshot_status status =
        snapshot_file_reader_open(&reader, open_file("micro.base"), "micro.base");
    while (status == SNAPSHOT_BLOCK) {
        status = snapshot_file_reader_next(&reader, raw, sizeof raw, &size);
    }
    if (status != SNAPSHOT_END) {
        fprintf(stderr, "%s\n", reader.error);
        exit(1);
    }
    snapshot_file_reader_close(&reader);
}

static void run_snapshot(int level) {
    double written = 0;
    double read = 0;
    uint64_t size = 0;
    for (int round = 0; round < ROUNDS; round++) {
        disk->unlink_at(directory, "micro.base");
        double begin = micro_now_ns();
        size = write_snapshot(level);
        written = mb_per_s(begin) > written ? mb_per_s(begin) : written;
        begin = micro_now_ns();
        read_snapshot();
        read = mb_per_s(begin) > read ? mb_per_s(begin) : read;
    }
    disk->unlink_at(directory, "micro.base");
    printf("snapshot, level %2d: written %5.0f MB/s, read %5.0f MB/s; %5.2f B a member of %5.2f, "
           "written %4.1f M members/s\n",
           level, written, read, (double)size / MEMBERS, (double)stream_size / MEMBERS,
           written * MEMBERS / (double)stream_size);
}

/* ---- journals ---- */

static uint64_t write_journal(size_t group_size) {
    struct journal_file file;
    static char groups[1 << 22];
    size_t filled = 0;
    bool is_whole = true;
    uint64_t sequence = 1;
    bool is_done = journal_file_create(&file, directory, "micro.journal", 1);
    for (size_t at = 0; is_done && at < stream_size; at += group_size, sequence++) {
        size_t size = stream_size - at < group_size ? stream_size - at : group_size;
        memcpy(groups + filled + JOURNAL_GROUP_HEAD, stream + at, size);
        const struct journal_group_head head = {
            .size = (uint32_t)size, .sequence = sequence, .unsynced = 1, .time_us = 1};
        journal_file_seal_group(groups + filled, &head, file.id);
        filled += JOURNAL_GROUP_HEAD + size;
        if (filled + JOURNAL_GROUP_HEAD + group_size > sizeof groups || at + size == stream_size) {
            is_done = journal_file_append(&file, groups, filled, filled, &is_whole);
            filled = 0;
        }
    }
    if (!is_done) {
        fail("micro.journal");
    }
    uint64_t size = file.size;
    journal_file_close(&file);
    return size;
}

static void read_journal(void) {
    struct journal_reader reader;
    struct journal_group group;
    enum journal_status status =
        journal_file_reader_open(&reader, open_file("micro.journal"), "micro.journal", 1, true);
    while (status == JOURNAL_GROUP) {
        status = journal_file_reader_next(&reader, &group);
    }
    if (status != JOURNAL_END) {
        fprintf(stderr, "%s\n", reader.error);
        exit(1);
    }
    journal_file_reader_close(&reader);
}

static void run_journal(size_t group_size) {
    double written = 0;
    double read = 0;
    uint64_t size = 0;
    for (int round = 0; round < ROUNDS; round++) {
        disk->unlink_at(directory, "micro.journal");
        double begin = micro_now_ns();
        size = write_journal(group_size);
        written = mb_per_s(begin) > written ? mb_per_s(begin) : written;
        begin = micro_now_ns();
        read_journal();
        read = mb_per_s(begin) > read ? mb_per_s(begin) : read;
    }
    disk->unlink_at(directory, "micro.journal");
    printf("journal, groups of %7zu B: written %5.0f MB/s, read %5.0f MB/s, %5.1f M effects/s; "
           "%5.2f B an effect\n",
           group_size, written, read, read * MEMBERS / (double)stream_size, (double)size / MEMBERS);
}

int main(int argc, char **argv) {
    const char *path = argc > 1 ? argv[1] : "/dev/shm";
    directory = disk_open(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);
    if (directory < 0) {
        fail(path);
    }
    make_stream();
    static const int levels[] = {-3, -1, 1, 2, 3};
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        run_snapshot(levels[i]);
    }
    static const size_t group_sizes[] = {26, 26 * 16, 26 * 800, 1 << 20};
    for (size_t i = 0; i < sizeof group_sizes / sizeof *group_sizes; i++) {
        run_journal(group_sizes[i]);
    }
    free(stream);
    disk_close(directory);
    return 0;
}
