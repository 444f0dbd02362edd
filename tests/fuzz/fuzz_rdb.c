/* Any bytes as a dump file, or as the value of a DUMP payload: never a crash, and boards that hold
 * together. The first byte picks the size of the pieces; whole or in pieces, the result is the same. */
#include "server/rdb/rdb.h"
#include "tests/fuzz/fuzz.h"

enum { NOW_S = 1767225600, VERSION = 10, HEAD = 10 };

static struct board_options options;

static const struct board_options *options_for(void *context, struct bytes key, uint32_t choice) {
    (void)context;
    (void)key;
    if (options.layout.field_count == 0) {
        layout_init_default(&options.layout);
    }
    return choice == 0 ? &options : NULL;
}

static enum rdb_load_status load_pieces(struct rdb_load *load, struct bytes file, size_t piece) {
    enum rdb_load_status status = RDB_LOAD_MORE;
    for (size_t at = 0; at < file.size && status == RDB_LOAD_MORE; at += piece) {
        size_t left = file.size - at;
        status = rdb_load_feed(
            load, (struct bytes){.at = file.at + at, .size = left < piece ? left : piece});
    }
    return status;
}

static void check_file(struct bytes file, size_t piece) {
    struct rdb_load loads[2];
    enum rdb_load_status statuses[2];
    for (int i = 0; i < 2; i++) {
        const char *reason = "";
        struct registry *registry = registry_create(1, options_for, NULL);
        CHECK(registry != NULL);
        rdb_load_init(&loads[i], registry, 3, INT64_C(1000000) * NOW_S);
        statuses[i] = load_pieces(&loads[i], file, i == 0 ? file.size : piece);
        CHECK((statuses[i] == RDB_LOAD_FAILED) == (loads[i].error[0] != '\0'));
        rdb_load_deinit(&loads[i]); /* with a board that was being filled */
        CHECK(registry_validate(registry, &reason));
        registry_destroy(registry);
    }
    CHECK(statuses[0] == statuses[1] && loads[0].reader.offset == loads[1].reader.offset);
    CHECK(loads[0].member_count == loads[1].member_count);
    CHECK(loads[0].field_count == loads[1].field_count);
    CHECK(loads[0].ban_count == loads[1].ban_count);
    CHECK(strcmp(loads[0].error, loads[1].error) == 0);
}

/* What a board holds is in order, and fits its layout. */
static void check_entries(const struct rdb_reader *reader) {
    uint32_t count;
    const struct board_entry *entries = rdb_board_entries(reader->board, &count);
    const struct bytes *packed = rdb_board_values(reader->board);
    struct tag_values values;
    CHECK(reader->kind == RDB_BOARD && count > 0);
    CHECK(reader->board->read_count <= reader->board->member_count);
    for (uint32_t i = 0; i < count; i++) {
        CHECK(layout_has_room(&reader->board->options.layout, entries[i].key));
        CHECK(i == 0 || entries[i].key <= entries[i - 1].key);
        CHECK(entries[i].member.size > 0 && entries[i].member.size <= BOARD_MEMBER_MAX);
        CHECK(packed == NULL ||
              tag_values_unpack(packed[i], reader->board->options.layout.tags.count, &values));
    }
}

static void check_value(struct bytes value) {
    struct rdb_reader reader;
    rdb_reader_init_value(&reader, VERSION);
    rdb_reader_feed(&reader, value);
    enum rdb_event event;
    while ((event = rdb_reader_next(&reader)) > RDB_END) {
        if (event == RDB_ENTRY) {
            CHECK(reader.kind != RDB_OTHER && reader.score == reader.score);
        }
        if (event == RDB_ENTRIES) {
            check_entries(&reader);
        }
    }
    CHECK((event == RDB_BAD) == (reader.error[0] != '\0'));
    CHECK(event != RDB_END || reader.offset + rdb_reader_left(&reader) == value.size);
    rdb_reader_deinit(&reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size > HEAD + 1) {
        const struct bytes file = {.at = (const char *)data + 1, .size = size - 1};
        check_file(file, (size_t)data[0] % 64 + 1);
        check_value((struct bytes){.at = file.at + HEAD, .size = file.size - HEAD});
    }
    return 0;
}
