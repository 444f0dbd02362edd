/* Any bytes as a snapshot: never a crash, and no block that was not written. The first byte picks:
 * bytes as they are; the same with right checksums, so that what is behind them is reached; the
 * bytes as records of a whole file, which is loaded; or as blocks that are written and come back.
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "codec/bytes.h"
#include "codec/memory.h"
#include "server/durability/file_format.h"
#include "server/durability/loading.h"
#include "server/durability/snapshot_file.h"
#include "server/system/tzdata.h"
#include "skiplist/keyspace/registry.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/stored_text.h"

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
    *status = snapshot_file_reader_open(&reader, fd, "fuzz.base");
    while (*status == SNAPSHOT_BLOCK) {
        size_t size = 0;
        *status = snapshot_file_reader_next(&reader, room, ROOM_MAX, &size);
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
    snapshot_file_reader_close(&reader);
    return raw_size;
}

/* Make the checksums right, as far as the sizes lead. */
static void repair(char *bytes, size_t size) {
    if (size < SNAPSHOT_FILE_HEAD) {
        return;
    }
    file_format_put(bytes, FILE_FORMAT_BASE);
    bytes_put_u64(bytes + 24, XXH3_64bits(bytes, 24));
    uint64_t seed = bytes_get_u64(bytes + 8);
    for (size_t at = SNAPSHOT_FILE_HEAD; size - at >= SNAPSHOT_BLOCK_HEAD; seed++) {
        uint32_t stored_size = bytes_get_u32(bytes + at + 12);
        if (stored_size > size - at - SNAPSHOT_BLOCK_HEAD) {
            return;
        }
        bytes_put_u64(bytes + at, XXH3_64bits_withSeed(bytes + at + 8, stored_size + 8, seed));
        at += SNAPSHOT_BLOCK_HEAD + stored_size;
    }
}

/* ---- what is written goes to memory ---- */

static int memory_file;

static int open_memory_file(int directory, const char *name, int flags, mode_t mode) {
    (void)directory;
    (void)name;
    (void)flags;
    (void)mode;
    return memory_file;
}

static void begin_writing(struct snapshot_writer *writer) {
    static struct disk in_memory;
    in_memory = disk_system;
    in_memory.open_at = open_memory_file;
    memory_file = memfd_create("base", MFD_CLOEXEC);
    disk = &in_memory;
    CHECK(snapshot_file_writer_init(writer, SNAPSHOT_LEVEL) &&
          snapshot_file_writer_open(writer, 0, "base", 1));
}

/* ---- loaded ---- */

static void ignore(void *context) {
    (void)context;
}

/* What the file's end will say that it holds. */
static void count_records(struct bytes chunk, struct snapshot_footer *footer) {
    static struct effect_decoder decoder;
    enum effect_record record;
    effect_bytes_decode_begin(&decoder, chunk);
    while ((record = effect_bytes_decode(&decoder)) != EFFECT_RECORD_END &&
           record != EFFECT_RECORD_BAD) {
        footer->board_count += record == EFFECT_RECORD_OPEN;
        footer->member_count += record == EFFECT_RECORD_ENTRIES ? decoder.entry_count : 0;
    }
}

/* Two bytes with a size before each block. */
static int write_records(const char *bytes, size_t size) {
    struct snapshot_writer writer;
    struct snapshot_footer footer = {.sequence = 1};
    begin_writing(&writer);
    for (size_t at = 0; at + 2 < size;) {
        size_t left = size - at - 2;
        size_t wanted =
            1 + (size_t)(unsigned char)bytes[at] + ((size_t)(unsigned char)bytes[at + 1] << 8);
        struct bytes chunk = {.at = bytes + at + 2, .size = wanted < left ? wanted : left};
        count_records(chunk, &footer);
        CHECK(snapshot_file_writer_block(&writer, chunk.at, (uint32_t)chunk.size));
        at += 2 + chunk.size;
    }
    CHECK(snapshot_file_writer_finish(&writer, &footer));
    int fd = dup(memory_file);
    snapshot_file_writer_close(&writer);
    return fd;
}

static void take_hash_apart(struct registry *registry, struct registry_key *key) {
    while (hash_count(registry_hash(key)) > 0) {
        struct hash_pair pair;
        struct bytes value;
        hash_at(registry_hash(key), hash_count(registry_hash(key)) / 2, &pair);
        CHECK(hash_find(registry_hash(key), pair.field, &value) && value.at == pair.value.at);
        char *field = memory_allocate(pair.field.size + 1);
        CHECK(field != NULL);
        memcpy(field, pair.field.at, pair.field.size);
        CHECK(registry_hash_remove(registry, key, (struct bytes){field, pair.field.size}));
        memory_free(field);
    }
}

/* What is there can be taken away again, member by member. */
static void take_apart(void *context, const struct registry_key *key) {
    struct registry *registry = context;
    struct registry_key *own =
        registry_find(registry, key->database, registry_name(key), INT64_MIN);
    struct board_cursor cursor;
    struct board_stored entry;
    CHECK(own == key);
    if (own->kind == REGISTRY_HASH) {
        take_hash_apart(registry, own);
        return;
    }
    while (board_count(&own->board) > 0) {
        struct board_member member;
        board_cursor_seek(&own->board, 0, &cursor);
        CHECK(board_cursor_read(&cursor, &entry));
        board_look_up(&own->board, stored_text(entry.member), NULL, &member);
        CHECK(member.is_there);
        board_remove_member(&own->board, &member);
    }
}

static void load_records(const char *bytes, size_t size) {
    static struct loading loading;
    static struct store store;
    uv_loop_t loop;
    memory_file = write_records(bytes, size);
    struct registry *registry = fuzz_create_registry(fuzz_no_options);
    CHECK(uv_loop_init(&loop) == 0);
    store = (struct store){.state = {.base_number = 1, .base_sequence = 1}, .path = "fuzz"};
    memset(&loading, 0, sizeof loading);
    loading.registry = registry;
    loading.store = &store;
    loading.changed = ignore;
    int first = memory_file;
    memory_file = dup(first); /* loading_init looks at its size, and closes it */
    CHECK(loading_init(&loading, &loop));
    memory_file = first;
    bool is_loaded = loading_run(&loading);
    CHECK(is_loaded == (loading.error[0] == '\0'));
    loading_deinit(&loading);
    disk = &disk_system;
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    CHECK(uv_loop_close(&loop) == 0);
    if (is_loaded) {
        fuzz_check_valid(registry);
        (void)registry_roll_due(registry, INT64_C(1795000000000), 20);
        (void)registry_expiry_remove_due(registry, INT64_C(1795000000000), 20);
        for (uint32_t database = 0; database < REGISTRY_DATABASES; database++) {
            registry_walk_each(registry, database, INT64_MIN, take_apart, registry);
        }
    }
    registry_destroy(registry);
    tzdata_deinit(); /* zones that options have named stay otherwise */
}

/* ---- written and read ---- */

static void round_trip(const char *bytes, size_t size, size_t step) {
    struct snapshot_writer writer;
    struct snapshot_footer footer = {.sequence = 1};
    enum snapshot_status status;
    static char given[FILE_MAX];
    begin_writing(&writer);
    disk = &disk_system;
    for (size_t at = 0; at < size; at += step) {
        uint32_t part = (uint32_t)(size - at < step ? size - at : step);
        CHECK(snapshot_file_writer_block(&writer, bytes + at, part));
    }
    CHECK(snapshot_file_writer_finish(&writer, &footer));
    int fd = dup(memory_file);
    snapshot_file_writer_close(&writer);
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
    } else if (input[0] % 4 == 2) {
        load_records(bytes, size - 1);
    } else {
        if (input[0] % 4 == 1) {
            repair(bytes, size - 1);
        }
        read_all(file_of(bytes, size - 1), &status, NULL);
    }
    CHECK(memory_live_count() == live_count);
    return 0;
}
