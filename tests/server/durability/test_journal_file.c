/* Journals: groups are read back unchanged, and damage is always detected. */
#include <errno.h>
#include <fcntl.h>

#include "codec/bytes.h"
#include "server/durability/journal_file.h"
#include "tests/support/directory_test.h"
#include "tests/support/failing_disk.h"
#include "tests/support/random.h"

enum { GROUPS = 8, PAYLOAD_MAX = 200, FIRST = 1000 };

/* A journal in memory: the offsets of its groups. */
struct made {
    char *bytes;
    size_t size;
    size_t starts[GROUPS + 1]; /* the last: the end */
    uint64_t id;
};

static int directory_fd;
static struct made made; /* the last one made */
/* Bit i: group i is linked to the next. */
static unsigned links;

static int set_up(void **state) {
    (void)directory_set_up(state);
    links = 0;
    directory_fd = disk_open(AT_FDCWD, directory, O_RDONLY | O_DIRECTORY, 0);
    assert_true(directory_fd >= 0);
    return 0;
}

static int tear_down(void **state) {
    free(made.bytes);
    made.bytes = NULL;
    disk_close(directory_fd);
    return directory_tear_down(state);
}

static const char *file_path(void) {
    return directory_join(directory, "journal");
}

/* ---- files made for a test ---- */

static uint32_t payload_size_of(unsigned i) {
    static const uint32_t sizes[GROUPS] = {1, 40, 3, 100, 17, 1, 64, 33};
    return sizes[i];
}

static void fill_payload(char *payload, unsigned i) {
    for (uint32_t at = 0; at < payload_size_of(i); at++) {
        payload[at] = (char)(i * 37 + at);
    }
}

static bool is_linked(unsigned i) {
    return i < GROUPS && (links >> i & 1) != 0;
}

/* The first group of the chain that group i is in. */
static unsigned first_of(unsigned i) {
    while (i > 0 && is_linked(i - 1)) {
        i--;
    }
    return i;
}

static size_t put_group(char *group, unsigned i, uint64_t unsynced, uint64_t id) {
    const struct journal_group_head head = {
        .size = payload_size_of(i),
        .is_linked = is_linked(i),
        .sequence = FIRST + i,
        .unsynced = unsynced,
        .time_us = 5000000 + i,
    };
    fill_payload(group + JOURNAL_GROUP_HEAD, i);
    journal_file_seal_group(group, &head, id);
    return JOURNAL_GROUP_HEAD + payload_size_of(i);
}

/* Append the next group to a file. */
static bool append_group(struct journal_file *file, unsigned i, uint64_t unsynced) {
    char group[JOURNAL_GROUP_HEAD + PAYLOAD_MAX];
    bool is_whole = false;
    size_t size = put_group(group, i, unsynced, file->id);
    bool is_done = journal_file_append(file, group, size, is_linked(i) ? 0 : size, &is_whole);
    assert_true(is_whole);
    return is_done;
}

/* Make it, on disk and in memory, in the place of the one before. unsynced: the field of group i. */
static void make_journal(const uint64_t unsynced[GROUPS]) {
    struct journal_file file;
    free(made.bytes);
    remove(file_path());
    assert_true(journal_file_create(&file, directory_fd, "journal", FIRST));
    made.id = file.id;
    for (unsigned i = 0; i < GROUPS; i++) {
        made.starts[i] = (size_t)file.size;
        assert_true(append_group(&file, i, unsynced[i]));
    }
    made.starts[GROUPS] = (size_t)file.size;
    journal_file_close(&file);
    made.bytes = file_read(file_path(), &made.size);
    assert_int_equal(made.size, made.starts[GROUPS]);
}

/* Nothing was synced before the last write. */
static const uint64_t all_unsynced[GROUPS] = {1, 2, 3, 4, 5, 6, 7, 8};
/* Groups 2 to 5 are linked: what was synced before each of them ended a tick. */
enum { LINKED_2_TO_5 = 1 << 2 | 1 << 3 | 1 << 4 };
static const uint64_t each_run_synced[GROUPS] = {1, 1, 1, 2, 3, 4, 1, 1};
/* Each was synced before the next was written. */
static const uint64_t each_synced[GROUPS] = {1, 1, 1, 1, 1, 1, 1, 1};

/* ---- reading ---- */

struct result {
    enum journal_status status;
    unsigned group_count;
    uint64_t id;
    uint64_t size; /* up to the end of the last group */
    struct journal_torn torn;
    char error[DISK_ERROR_MAX];
};

static enum journal_status open_reader(struct journal_reader *reader, bool is_last) {
    static char path[2 * DIRECTORY_PATH_MAX];
    snprintf(path, sizeof path, "%s", file_path());
    int fd = disk_open(AT_FDCWD, path, O_RDONLY, 0);
    assert_true(fd >= 0);
    return journal_file_reader_open(reader, fd, path, FIRST, is_last);
}

/* Tries the buffered groups first, except for every third; the previous group stays valid then. */
static enum journal_status read_next(struct journal_reader *reader, struct journal_group *group) {
    struct journal_group before = *group;
    if (reader->group_count % 3 == 0 || !journal_file_reader_next_at_hand(reader, group)) {
        return journal_file_reader_next(reader, group);
    }
    assert_ptr_equal(group->payload, before.payload + before.size + JOURNAL_GROUP_HEAD);
    return JOURNAL_GROUP;
}

/* Read everything; every group returned is correct. */
static struct result read_all(bool is_last) {
    struct journal_reader reader;
    struct journal_group group;
    struct result result = {.status = open_reader(&reader, is_last)};
    while (result.status == JOURNAL_GROUP &&
           (result.status = read_next(&reader, &group)) == JOURNAL_GROUP) {
        char expected[PAYLOAD_MAX];
        unsigned i = result.group_count++;
        assert_in_range(i, 0, GROUPS - 1);
        fill_payload(expected, i);
        assert_int_equal(group.size, payload_size_of(i));
        assert_memory_equal(group.payload, expected, group.size);
        assert_int_equal(group.sequence, FIRST + i);
        assert_int_equal(group.time_us, 5000000 + i);
    }
    result.id = reader.id;
    result.size = reader.offset;
    result.torn = reader.torn;
    memcpy(result.error, reader.error, sizeof result.error);
    assert_int_equal(reader.group_count, result.group_count);
    journal_file_reader_close(&reader);
    return result;
}

static struct result read_bytes(const void *bytes, size_t size, bool is_last) {
    file_write(file_path(), bytes, size);
    return read_all(is_last);
}

static void assert_error_has(const struct result *result, const char *words) {
    if (strstr(result->error, words) == NULL) {
        fail_msg("\"%s\" is not in \"%s\"", words, result->error);
    }
}

/* The group that the byte at offset belongs to; GROUPS for the file's head. */
static unsigned group_at(size_t offset) {
    for (unsigned i = 0; i < GROUPS; i++) {
        if (offset >= made.starts[i] && offset < made.starts[i + 1]) {
            return i;
        }
    }
    return GROUPS;
}

/* ---- whole files ---- */

#define IN_FIXTURE(name) TEST_WITH(name, set_up, tear_down)

IN_FIXTURE(groups_come_back_as_they_were) {
    for (int is_last = 0; is_last < 2; is_last++) {
        make_journal(all_unsynced);
        struct result result = read_all(is_last != 0);
        assert_int_equal(result.status, JOURNAL_END);
        assert_int_equal(result.group_count, GROUPS);
        assert_int_equal(result.size, made.size);
        assert_int_equal(result.id, made.id);
    }
}

IN_FIXTURE(a_journal_without_groups_is_whole) {
    make_journal(all_unsynced);
    struct result result = read_bytes(made.bytes, JOURNAL_FILE_HEAD, false);
    assert_int_equal(result.status, JOURNAL_END);
    assert_int_equal(result.group_count, 0);
}

IN_FIXTURE(a_file_is_not_made_twice) {
    struct journal_file file;
    make_journal(all_unsynced);
    assert_false(journal_file_create(&file, directory_fd, "journal", FIRST));
    assert_int_equal(errno, EEXIST);
    assert_int_equal(read_all(true).group_count, GROUPS);
}

IN_FIXTURE(a_journal_that_begins_elsewhere_is_refused) {
    make_journal(all_unsynced);
    ENDED_BY(journal_file_reader_close) struct journal_reader reader;
    int fd = disk_open(AT_FDCWD, file_path(), O_RDONLY, 0);
    assert_int_equal(journal_file_reader_open(&reader, fd, "some.journal", FIRST + 1, true),
                     JOURNAL_DAMAGED);
    assert_string_equal(reader.error, "some.journal is damaged at offset 16: it begins with group "
                                      "1000, but group 1001 is expected");
}

/* ---- every byte cut ---- */

static void cut_everywhere(const uint64_t unsynced[GROUPS], bool is_last) {
    make_journal(unsynced);
    for (size_t size = 0; size < made.size; size++) {
        struct result result = read_bytes(made.bytes, size, is_last);
        if (size < JOURNAL_FILE_HEAD) {
            assert_int_equal(result.status, JOURNAL_DAMAGED);
            assert_error_has(&result, "the file ends within its head");
            assert_int_equal(result.group_count, 0);
            continue;
        }
        unsigned written_count = group_at(size);
        unsigned whole_count = first_of(written_count);
        bool is_boundary = size == made.starts[whole_count];
        assert_int_equal(result.status, is_boundary ? JOURNAL_END
                                        : is_last   ? JOURNAL_TORN
                                                    : JOURNAL_DAMAGED);
        assert_int_equal(result.group_count, whole_count);
        if (result.status == JOURNAL_TORN) {
            assert_int_equal(result.torn.offset, made.starts[whole_count]);
            assert_int_equal(result.torn.size, size - made.starts[whole_count]);
            assert_int_equal(result.torn.groups_behind,
                             written_count > whole_count ? written_count - whole_count - 1 : 0);
            assert_non_null(result.torn.description);
        } else if (result.status == JOURNAL_DAMAGED) {
            assert_error_has(&result, "increments follow");
        }
    }
}

IN_FIXTURE(a_tail_cut_at_any_byte_leaves_exactly_the_whole_groups) {
    cut_everywhere(all_unsynced, true);
    cut_everywhere(each_synced, true);
}

IN_FIXTURE(any_cut_within_an_increment_that_others_follow_is_damage) {
    cut_everywhere(all_unsynced, false);
    cut_everywhere(each_synced, false);
    links = LINKED_2_TO_5;
    cut_everywhere(each_run_synced, false);
}

IN_FIXTURE(linked_groups_cut_at_any_byte_are_as_if_they_had_never_been) {
    links = LINKED_2_TO_5;
    cut_everywhere(all_unsynced, true);
    cut_everywhere(each_run_synced, true);
    links = 0x7f; /* all of them */
    cut_everywhere(all_unsynced, true);
}

IN_FIXTURE(a_journal_that_ends_with_a_linked_group_is_torn_before_it) {
    links = 1 << (GROUPS - 1);
    make_journal(all_unsynced);
    struct result result = read_all(true);
    assert_int_equal(result.status, JOURNAL_TORN);
    assert_int_equal(result.group_count, GROUPS - 1);
    assert_int_equal(result.torn.offset, made.starts[GROUPS - 1]);
    assert_string_equal(result.torn.description, "the file ends before the last of linked groups");
}

/* ---- every bit flipped ---- */

static void check_flip(const struct result *result, size_t at, bool is_last, bool is_synced) {
    unsigned hit = group_at(at);
    if (hit == GROUPS) {
        assert_int_equal(result->status, JOURNAL_DAMAGED);
        assert_int_equal(result->group_count, 0);
        return;
    }
    unsigned first = first_of(hit);
    assert_int_equal(result->group_count, first);
    /* The groups after the hole are intact, so they prove that the missing one was on disk. */
    bool is_torn = is_last && (!is_synced || hit == GROUPS - 1);
    assert_int_equal(result->status, is_torn ? JOURNAL_TORN : JOURNAL_DAMAGED);
    if (is_last) {
        assert_int_equal(result->torn.offset, made.starts[first]);
        assert_int_equal(result->torn.size, made.size - made.starts[first]);
        assert_int_equal(result->torn.groups_behind,
                         GROUPS - 1 - hit + (hit > first ? hit - first - 1 : 0));
    }
    if (!is_torn) {
        char offset[64];
        snprintf(offset, sizeof offset, "is damaged at offset %zu: ", made.starts[first]);
        assert_error_has(result, offset);
        assert_error_has(result, is_last ? "had been on disk as a whole" : "increments follow");
    }
}

static void flip_everywhere(const uint64_t unsynced[GROUPS], bool is_last, bool is_synced) {
    make_journal(unsynced);
    for (size_t at = 0; at < made.size; at++) {
        for (int bit = 0; bit < 8; bit++) {
            made.bytes[at] = (char)(made.bytes[at] ^ (1 << bit));
            struct result result = read_bytes(made.bytes, made.size, is_last);
            check_flip(&result, at, is_last, is_synced);
            made.bytes[at] = (char)(made.bytes[at] ^ (1 << bit));
        }
    }
}

IN_FIXTURE(any_bit_flipped_in_a_synced_group_is_damage) {
    flip_everywhere(each_synced, true, true);
}

IN_FIXTURE(any_bit_flipped_in_an_unsynced_tail_tears_it_there) {
    flip_everywhere(all_unsynced, true, false);
}

IN_FIXTURE(any_bit_flipped_before_another_increment_is_damage) {
    flip_everywhere(all_unsynced, false, false);
}

IN_FIXTURE(any_bit_flipped_in_linked_groups_is_found_before_one_of_them_is_given) {
    links = LINKED_2_TO_5;
    flip_everywhere(each_run_synced, true, true);
    flip_everywhere(all_unsynced, true, false);
    flip_everywhere(all_unsynced, false, false);
}

/* ---- the tail rule ---- */

IN_FIXTURE(one_later_group_that_knew_of_a_sync_proves_damage) {
    /* The last group was written when the first four were known to be on disk. */
    const uint64_t unsynced[GROUPS] = {1, 2, 3, 4, 5, 6, 7, 4};
    make_journal(unsynced);
    for (unsigned hit = 0; hit < GROUPS - 1; hit++) {
        char *at = made.bytes + made.starts[hit] + JOURNAL_GROUP_HEAD;
        *at = (char)(*at ^ 1);
        struct result result = read_bytes(made.bytes, made.size, true);
        assert_int_equal(result.status, hit < 4 ? JOURNAL_DAMAGED : JOURNAL_TORN);
        assert_int_equal(result.group_count, hit);
        *at = (char)(*at ^ 1);
    }
}

IN_FIXTURE(holes_of_zeroes_in_an_unsynced_tail_are_torn) {
    for (unsigned from = 0; from < GROUPS; from++) {
        for (unsigned to = from + 1; to <= GROUPS; to++) {
            make_journal(all_unsynced);
            memset(made.bytes + made.starts[from], 0, made.starts[to] - made.starts[from]);
            struct result result = read_bytes(made.bytes, made.size, true);
            assert_int_equal(result.status, JOURNAL_TORN);
            assert_int_equal(result.group_count, from);
            assert_int_equal(result.torn.groups_behind, GROUPS - to);
        }
    }
}

IN_FIXTURE(bytes_behind_the_last_group_are_torn) {
    struct random random = random_begin("bytes behind");
    make_journal(each_synced);
    for (unsigned i = 0; i < 500; i++) {
        char bytes[4096];
        size_t more = 1 + (size_t)random_below(&random, 2000);
        memcpy(bytes, made.bytes, made.size);
        for (size_t at = 0; at < more; at++) {
            bytes[made.size + at] = i % 4 == 0 ? 0 : (char)random_next(&random);
        }
        struct result result = read_bytes(bytes, made.size + more, true);
        assert_int_equal(result.status, JOURNAL_TORN);
        assert_int_equal(result.group_count, GROUPS);
        assert_int_equal(result.torn.size, more);
    }
}

IN_FIXTURE(a_whole_group_with_another_number_is_damage) {
    make_journal(each_synced);
    char bytes[2048];
    for (unsigned gone = 0; gone < GROUPS - 1; gone++) {
        /* One group is missing. */
        size_t gone_size = made.starts[gone + 1] - made.starts[gone];
        memcpy(bytes, made.bytes, made.starts[gone]);
        memcpy(bytes + made.starts[gone], made.bytes + made.starts[gone + 1],
               made.size - made.starts[gone + 1]);
        struct result result = read_bytes(bytes, made.size - gone_size, true);
        assert_int_equal(result.status, JOURNAL_DAMAGED);
        assert_int_equal(result.group_count, gone);
        assert_error_has(&result, "is expected");
        assert_int_equal(result.torn.size, 0);
        /* One group is duplicated. */
        memcpy(bytes, made.bytes, made.starts[gone + 1]);
        memcpy(bytes + made.starts[gone + 1], made.bytes + made.starts[gone],
               made.size - made.starts[gone]);
        result = read_bytes(bytes, made.size + gone_size, true);
        assert_int_equal(result.status, JOURNAL_DAMAGED);
        assert_int_equal(result.group_count, gone + 1);
    }
}

IN_FIXTURE(groups_of_another_file_do_not_pass) {
    char bytes[2048];
    make_journal(each_synced);
    uint64_t id_before = made.id;
    memcpy(bytes, made.bytes, made.size);
    make_journal(each_synced);
    assert_int_not_equal(id_before, made.id);
    memcpy(bytes, made.bytes, made.starts[3]);
    struct result result = read_bytes(bytes, made.size, true);
    assert_int_equal(result.status, JOURNAL_TORN);
    assert_int_equal(result.group_count, 3);
    assert_int_equal(result.torn.groups_behind, 0);
}

/* ---- continuing a file ---- */

IN_FIXTURE(a_torn_journal_goes_on_where_it_was_cut) {
    make_journal(all_unsynced);
    for (size_t size = JOURNAL_FILE_HEAD; size <= made.size; size++) {
        struct result before = read_bytes(made.bytes, size, true);
        struct journal_file file;
        assert_true(journal_file_continue(&file, directory_fd, "journal", before.id, before.size));
        for (unsigned i = before.group_count; i < GROUPS; i++) {
            assert_true(append_group(&file, i, 1));
        }
        assert_int_equal(file.size, made.size);
        journal_file_close(&file);
        struct result after = read_all(false);
        assert_int_equal(after.status, JOURNAL_END);
        assert_int_equal(after.group_count, GROUPS);
    }
}

/* ---- linked groups of any size ---- */

IN_FIXTURE(linked_groups_far_larger_than_memory_are_given_one_at_a_time) {
    enum { SIZE = JOURNAL_READ_SIZE / 2, COUNT = 40 };
    struct journal_file file;
    ENDED_BY(journal_file_reader_close) struct journal_reader reader;
    struct journal_group group;
    bool is_whole;
    OWNED char *bytes = calloc(1, JOURNAL_GROUP_HEAD + SIZE);
    assert_non_null(bytes);
    assert_true(journal_file_create(&file, directory_fd, "journal", FIRST));
    for (unsigned i = 0; i < COUNT; i++) {
        bool is_last = i == COUNT - 1;
        const struct journal_group_head head = {
            .size = SIZE, .is_linked = !is_last, .sequence = FIRST + i, .unsynced = 1 + i};
        bytes[JOURNAL_GROUP_HEAD] = (char)i;
        journal_file_seal_group(bytes, &head, file.id);
        assert_true(journal_file_append(&file, bytes, JOURNAL_GROUP_HEAD + SIZE,
                                        is_last ? JOURNAL_GROUP_HEAD + SIZE : 0, &is_whole));
    }
    journal_file_close(&file);
    assert_int_equal(open_reader(&reader, true), JOURNAL_GROUP);
    for (unsigned i = 0; i < COUNT; i++) {
        assert_int_equal(journal_file_reader_next(&reader, &group), JOURNAL_GROUP);
        assert_int_equal(group.payload[0], (char)i);
        assert_int_equal(reader.window.buffer_size, JOURNAL_READ_SIZE);
    }
    assert_int_equal(journal_file_reader_next(&reader, &group), JOURNAL_END);
}

/* ---- large groups, and memory ---- */

/* Groups around the size of the buffer and far above, between small ones. */
enum { LARGE_GROUPS = 8, FITS = JOURNAL_READ_SIZE - JOURNAL_GROUP_HEAD };
static const uint32_t large_sizes[LARGE_GROUPS] = {
    10, FITS - 1, FITS, FITS + 1, 5, 3 * JOURNAL_READ_SIZE + 77, 1, 2 * JOURNAL_READ_SIZE};

static void make_large(void) {
    ENDED_BY(journal_file_close) struct journal_file file;
    OWNED char *group = malloc(JOURNAL_GROUP_HEAD + 4 * JOURNAL_READ_SIZE);
    assert_non_null(group);
    for (size_t i = 0; i < 4 * JOURNAL_READ_SIZE; i++) {
        group[JOURNAL_GROUP_HEAD + i] = (char)(i * 31 / 7);
    }
    assert_true(journal_file_create(&file, directory_fd, "journal", FIRST));
    for (unsigned i = 0; i < LARGE_GROUPS; i++) {
        bool is_whole;
        size_t size = (size_t)large_sizes[i] + JOURNAL_GROUP_HEAD;
        const struct journal_group_head head = {
            .size = large_sizes[i], .sequence = FIRST + i, .unsynced = 1, .time_us = 7};
        journal_file_seal_group(group, &head, file.id);
        assert_true(journal_file_append(&file, group, size, size, &is_whole));
    }
}

IN_FIXTURE(groups_larger_than_the_buffer_come_back_in_their_own_memory) {
    make_large();
    ENDED_BY(journal_file_reader_close) struct journal_reader reader;
    struct journal_group group;
    assert_int_equal(open_reader(&reader, true), JOURNAL_GROUP);
    for (unsigned i = 0; i < LARGE_GROUPS; i++) {
        assert_int_equal(journal_file_reader_next(&reader, &group), JOURNAL_GROUP);
        assert_int_equal(group.size, large_sizes[i]);
        for (uint32_t at = 0; at < group.size; at++) {
            if (group.payload[at] != (char)((size_t)at * 31 / 7)) {
                fail_msg("group %u differs at %u", i, at);
            }
        }
        size_t room = (size_t)large_sizes[i] + JOURNAL_GROUP_HEAD;
        assert_true(i < 3 ? reader.window.buffer_size == JOURNAL_READ_SIZE
                          : reader.window.buffer_size >= room);
    }
    assert_int_equal(reader.window.buffer_size, large_sizes[5] + JOURNAL_GROUP_HEAD);
    assert_int_equal(journal_file_reader_next(&reader, &group), JOURNAL_END);
}

IN_FIXTURE(a_large_group_takes_no_memory_before_it_is_known_to_be_whole) {
    make_large();
    size_t size;
    char *bytes = file_read(file_path(), &size);
    bytes[size - 1] = (char)~bytes[size - 1];
    file_write(file_path(), bytes, size);
    free(bytes);
    ENDED_BY(journal_file_reader_close) struct journal_reader reader;
    struct journal_group group;
    assert_int_equal(open_reader(&reader, true), JOURNAL_GROUP);
    /* Skip the small groups and the three that need more memory than there is. */
    reader.next_sequence = FIRST + LARGE_GROUPS - 1;
    reader.offset = size - large_sizes[LARGE_GROUPS - 1] - JOURNAL_GROUP_HEAD;
    uint64_t requests_before = memory_requests();
    assert_int_equal(journal_file_reader_next(&reader, &group), JOURNAL_TORN);
    assert_int_equal(memory_requests(), requests_before);
    assert_int_equal(reader.torn.size, large_sizes[LARGE_GROUPS - 1] + JOURNAL_GROUP_HEAD);
}

IN_FIXTURE(without_memory_it_is_said_and_nothing_leaks) {
    make_large();
    for (uint64_t nth = 1; nth <= 3; nth++) {
        struct journal_reader reader;
        struct journal_group group;
        memory_fail_at(nth);
        enum journal_status status = open_reader(&reader, true);
        while (status == JOURNAL_GROUP) {
            status = journal_file_reader_next(&reader, &group);
        }
        memory_fail_at(0);
        assert_int_equal(status, JOURNAL_FAILED);
        assert_non_null(strstr(reader.error, "out of memory: reading "));
        journal_file_reader_close(&reader);
        assert_int_equal(memory_live_count(), directory_live_before);
    }
}

/* ---- the nth call fails ---- */

static void fail_create_at_every_call(enum failure failure) {
    bool is_harmless = failure == FAILURE_EINTR || failure == FAILURE_SHORT;
    bool is_reached = true;
    for (uint64_t nth = 1; is_reached; nth++) {
        struct journal_file file;
        failing_disk_begin(failure, nth);
        bool is_made = journal_file_create(&file, directory_fd, "journal", FIRST);
        is_reached = failing_disk_end() >= nth;
        assert_int_equal(is_made, is_harmless || !is_reached);
        if (is_made) {
            journal_file_close(&file);
            assert_int_equal(read_all(true).status, JOURNAL_END);
            assert_int_equal(remove(file_path()), 0);
        } else if (failure == FAILURE_CRASH) {
            remove(file_path());
        } else {
            assert_int_equal(errno, failure == FAILURE_EIO ? EIO : ENOSPC);
            assert_false(file_exists(file_path()));
        }
    }
}

IN_FIXTURE(a_journal_is_made_whole_or_not_at_all) {
    for (int i = FAILURE_EIO; i <= FAILURE_CRASH; i++) {
        fail_create_at_every_call((enum failure)i);
    }
}

static ssize_t write_part_then_enospc(int fd, const void *bytes, size_t size, off_t offset) {
    static bool is_full;
    is_full = !is_full;
    if (is_full) {
        return disk_system.write_at(fd, bytes, size / 3, offset);
    }
    errno = ENOSPC;
    return -1;
}

/* On a disk that takes a part of it. */
static void fail_to_append(struct journal_file *file, size_t from, size_t to, size_t kept_size) {
    struct disk full = disk_system;
    bool is_whole = false;
    full.write_at = write_part_then_enospc;
    disk = &full;
    assert_false(journal_file_append(file, made.bytes + from, to - from, kept_size, &is_whole));
    assert_int_equal(errno, ENOSPC);
    disk = &disk_system;
    assert_true(is_whole);
}

IN_FIXTURE(groups_that_did_not_fit_are_cut_off_and_can_be_tried_again) {
    make_journal(each_synced);
    ENDED_BY(journal_file_close) struct journal_file file;
    assert_true(journal_file_continue(&file, directory_fd, "journal", made.id, made.starts[3]));
    size_t size = made.size - made.starts[3];
    bool is_whole = false;
    fail_to_append(&file, made.starts[3], made.size, size);
    struct result result = read_all(false);
    assert_int_equal(result.status, JOURNAL_END);
    assert_int_equal(result.group_count, 3);
    assert_true(journal_file_append(&file, made.bytes + made.starts[3], size, size, &is_whole));
    assert_int_equal(read_all(false).group_count, GROUPS);
}

IN_FIXTURE(a_full_disk_within_linked_groups_cuts_off_all_of_them) {
    links = LINKED_2_TO_5;
    make_journal(each_run_synced);
    for (unsigned at = 3; at <= 5; at++) {
        ENDED_BY(journal_file_close) struct journal_file file;
        assert_true(journal_file_continue(&file, directory_fd, "journal", made.id, made.starts[2]));
        for (unsigned i = 2; i < at; i++) {
            assert_true(append_group(&file, i, i - 1));
        }
        assert_int_equal(file.size, made.starts[at]);
        assert_int_equal(file.kept_size, made.starts[2]);
        fail_to_append(&file, made.starts[at], made.starts[at + 1], 0);
        assert_int_equal(file.size, made.starts[2]);
        struct result result = read_all(false);
        assert_int_equal(result.status, JOURNAL_END);
        assert_int_equal(result.group_count, 2);
    }
}

/* In a batch that ends within linked groups, the groups before them are kept when the next batch
 * fails. */
IN_FIXTURE(groups_before_linked_ones_of_the_same_batch_are_kept) {
    links = LINKED_2_TO_5;
    make_journal(each_run_synced);
    ENDED_BY(journal_file_close) struct journal_file file;
    bool is_whole = false;
    assert_true(journal_file_continue(&file, directory_fd, "journal", made.id, made.starts[1]));
    assert_true(journal_file_append(&file, made.bytes + made.starts[1],
                                    made.starts[4] - made.starts[1],
                                    made.starts[2] - made.starts[1], &is_whole));
    fail_to_append(&file, made.starts[4], made.size, made.size - made.starts[4]);
    assert_int_equal(read_all(false).group_count, 2);
}

IN_FIXTURE(a_journal_that_cannot_even_be_cut_says_so) {
    make_journal(all_unsynced);
    struct journal_file file;
    assert_true(journal_file_continue(&file, directory_fd, "journal", made.id, made.starts[3]));
    bool is_whole = true;
    failing_disk_begin(FAILURE_CRASH, 1);
    size_t size = made.size - made.starts[3];
    assert_false(journal_file_append(&file, made.bytes + made.starts[3], size, size, &is_whole));
    failing_disk_end();
    assert_false(is_whole);
    assert_int_equal(errno, EIO);
    journal_file_close(&file);
    struct result result = read_all(true);
    assert_int_equal(result.status, JOURNAL_TORN);
    assert_in_range(result.group_count, 3, GROUPS - 1);
}

/* ---- room for more groups ---- */

static size_t size_on_disk(void) {
    size_t size;
    free(file_read(file_path(), &size));
    return size;
}

/* The groups from the third on, by a writer that keeps room. */
static void append_with_room(struct journal_file *file) {
    make_journal(all_unsynced);
    assert_true(journal_file_continue(file, directory_fd, "journal", made.id, made.starts[3]));
    file->makes_room = true;
    for (unsigned i = 3; i < GROUPS; i++) {
        assert_true(append_group(file, i, all_unsynced[i]));
        assert_int_equal(size_on_disk() % JOURNAL_ROOM_SIZE, 0);
    }
}

IN_FIXTURE(groups_in_room_are_read_and_zeroes_behind_them_are_the_end) {
    ENDED_BY(journal_file_close) struct journal_file file;
    append_with_room(&file);
    assert_true(size_on_disk() >= made.size);
    struct result result = read_all(true);
    assert_int_equal(result.status, JOURNAL_END);
    assert_int_equal(result.group_count, GROUPS);
    assert_int_equal(result.size, made.size);
    /* What follows began behind a whole file. */
    assert_int_equal(read_all(false).status, JOURNAL_DAMAGED);
    assert_true(journal_file_cut_room(&file));
    assert_int_equal(size_on_disk(), made.size);
    assert_int_equal(read_all(false).status, JOURNAL_END);
}

IN_FIXTURE(a_file_is_closed_without_room_and_goes_on_behind_it_after_a_kill) {
    struct journal_file file;
    append_with_room(&file);
    size_t size = size_on_disk();
    char *killed = file_read(file_path(), &size);
    journal_file_close(&file);
    assert_int_equal(size_on_disk(), made.size);
    file_write(file_path(), killed, size);
    free(killed);
    assert_true(journal_file_continue(&file, directory_fd, "journal", made.id, made.size));
    assert_int_equal(size_on_disk(), made.size);
    journal_file_close(&file);
}

IN_FIXTURE(long_batches_get_no_room) {
    make_journal(all_unsynced);
    ENDED_BY(journal_file_close) struct journal_file file;
    bool is_whole = false;
    static char batch[JOURNAL_ROOM_BATCH_MAX + 1];
    assert_true(journal_file_continue(&file, directory_fd, "journal", made.id, made.starts[3]));
    file.makes_room = true;
    assert_true(journal_file_append(&file, batch, sizeof batch, sizeof batch, &is_whole));
    assert_int_equal(size_on_disk(), made.starts[3] + sizeof batch);
}

/* Whatever fails: groups that were taken are whole, and the file ends with them or in zeroes. */
IN_FIXTURE(a_full_disk_has_no_room_and_takes_groups_as_long_as_it_can) {
    bool is_reached = true;
    for (uint64_t nth = 1; is_reached; nth++) {
        make_journal(each_synced);
        ENDED_BY(journal_file_close) struct journal_file file;
        assert_true(journal_file_continue(&file, directory_fd, "journal", made.id, made.starts[3]));
        file.makes_room = true;
        failing_disk_begin(FAILURE_ENOSPC, nth);
        unsigned count = 3;
        for (unsigned tries = 0; count < GROUPS && tries < GROUPS; tries++) {
            count += append_group(&file, count, 1);
        }
        is_reached = failing_disk_end() >= nth;
        assert_int_equal(count, GROUPS);
        struct result result = read_all(true);
        assert_int_equal(result.group_count, GROUPS);
        assert_true(result.status == JOURNAL_END);
        assert_true(journal_file_cut_room(&file));
        assert_int_equal(size_on_disk(), made.size);
    }
}

/* A group is copied while it is written: the pages that came last are still zeroes. */
IN_FIXTURE(a_group_whose_end_is_still_room_is_cut_short) {
    struct journal_file file;
    append_with_room(&file);
    size_t size;
    OWNED char *bytes = file_read(file_path(), &size);
    journal_file_close(&file);
    size_t begin = made.starts[GROUPS - 1];
    for (size_t filled = begin + 1; filled < made.size; filled++) {
        memset(bytes + filled, 0, made.size - filled);
        memcpy(bytes + begin, made.bytes + begin, filled - begin);
        struct result result = read_bytes(bytes, size, true);
        assert_int_equal(result.group_count, GROUPS - 1);
        assert_int_equal(result.status, JOURNAL_TORN);
        /* A few zeroes may be a damaged group's own. */
        assert_int_equal(result.torn.is_cut_short, made.size - filled > 16);
    }
    /* Not so where it is whole and wrong. */
    memcpy(bytes, made.bytes, made.size);
    bytes[begin + JOURNAL_GROUP_HEAD] ^= 1;
    struct result result = read_bytes(bytes, size, true);
    assert_int_equal(result.status, JOURNAL_TORN);
    assert_false(result.torn.is_cut_short);
}

IN_FIXTURE(going_on_with_a_journal_fails_as_a_whole) {
    make_journal(all_unsynced);
    bool is_reached = true;
    for (uint64_t nth = 1; is_reached; nth++) {
        struct journal_file file;
        failing_disk_begin(FAILURE_EIO, nth);
        bool is_open = journal_file_continue(&file, directory_fd, "journal", made.id, made.size);
        is_reached = failing_disk_end() >= nth;
        assert_int_equal(is_open, !is_reached);
        if (is_open) {
            journal_file_close(&file);
        }
        assert_int_equal(read_all(true).group_count, GROUPS);
    }
}

IN_FIXTURE(a_read_that_fails_is_no_damage) {
    make_journal(all_unsynced);
    /* A hole, so that the tail is searched as well. */
    made.bytes[made.starts[2]] = (char)~made.bytes[made.starts[2]];
    file_write(file_path(), made.bytes, made.size);
    for (int i = FAILURE_EIO; i <= FAILURE_SHORT; i++) {
        bool is_reached = true;
        for (uint64_t nth = 2; is_reached; nth++) {
            failing_disk_begin((enum failure)i, nth);
            struct result result = read_all(true);
            is_reached = failing_disk_end() >= nth;
            bool is_harmless = i == FAILURE_EINTR || i == FAILURE_SHORT || !is_reached;
            assert_int_equal(result.status, is_harmless ? JOURNAL_TORN : JOURNAL_FAILED);
            if (!is_harmless) {
                assert_error_has(&result, i == FAILURE_EIO ? ": Input/output error"
                                                           : ": No space left on device");
            }
        }
    }
}
