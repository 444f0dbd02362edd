/* Any bytes as a journal: never a crash, and the same judgement as a model gives that looks at the
 * whole file at once. The first byte picks: bytes as they are, or groups and damage that they
 * describe; whether it is the last increment; and how small the reader's buffer is. */
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "codec/bytes.h"
#include "codec/memory.h"
#include "server/durability/file_format.h"
#include "server/durability/journal_file.h"
#include "tests/fuzz/fuzz.h"

enum { FILE_MAX = 65536, FIRST = 100, ID = 0x1234567 };
#define FILE_ID (UINT64_C(0x9e3779b97f4a7c15) ^ ID)

struct file {
    char bytes[FILE_MAX];
    size_t size;
};

/* ---- a file from instructions ---- */

static void put_file_head(struct file *file) {
    file_format_put(file->bytes, FILE_FORMAT_JOURNAL);
    bytes_put_u64(file->bytes + 8, FILE_ID);
    bytes_put_u64(file->bytes + 16, FIRST);
    bytes_put_u64(file->bytes + 24, XXH3_64bits(file->bytes, 24));
    file->size = JOURNAL_FILE_HEAD;
}

/* Three bytes an instruction: mostly a group of so many bytes that says so many were unsynced;
 * otherwise damage. */
static void obey(struct file *file, const uint8_t *instruction, uint64_t *sequence) {
    uint32_t size = 1 + instruction[1] % 100U;
    if (file->size + JOURNAL_GROUP_HEAD + size > FILE_MAX) {
        return;
    }
    char *at = file->bytes + file->size;
    switch (instruction[0] % 16) {
    case 0: /* bytes that are no group */
        memset(at, instruction[2], size);
        file->size += size;
        return;
    case 1: /* a bit somewhere */
        at = file->bytes + (size_t)instruction[1] * 256 % file->size + instruction[2] % 32U;
        *at = (char)(*at ^ (1 << instruction[0] / 32));
        return;
    case 2: /* the end cut off */
        file->size -= instruction[1] % file->size;
        return;
    case 3: /* a number left out, or used twice */
        *sequence += instruction[1] % 2 != 0 ? 1 : UINT64_MAX;
        return;
    default:
        memset(at + JOURNAL_GROUP_HEAD, instruction[2], size);
        const struct journal_group_head head = {.size = size,
                                                .is_linked = instruction[0] % 16 > 12,
                                                .sequence = (*sequence)++,
                                                .unsynced = instruction[2] % 20U,
                                                .time_us = 7};
        journal_file_seal_group(at, &head, FILE_ID);
        file->size += JOURNAL_GROUP_HEAD + size;
    }
}

/* ---- the model ---- */

struct verdict {
    enum journal_status status;
    uint64_t group_count;
    uint64_t size; /* up to the end of the last group that was given */
    uint64_t groups_behind;
};

static uint64_t id_of(const struct file *file) {
    return bytes_get_u64(file->bytes + 8);
}

static bool is_linked_at(const struct file *file, size_t offset) {
    return bytes_get_u32(file->bytes + offset + 8) >> 31 != 0;
}

/* The size of the whole group at offset with its head; 0: there is none. */
static size_t group_at(const struct file *file, size_t offset) {
    if (file->size - offset <= JOURNAL_GROUP_HEAD) {
        return 0;
    }
    const char *head = file->bytes + offset;
    uint32_t size = bytes_get_u32(head + 8) & INT32_MAX;
    if (size == 0 || size > file->size - offset - JOURNAL_GROUP_HEAD ||
        XXH3_64bits_withSeed(head + 8, size + 24, id_of(file)) != bytes_get_u64(head)) {
        return 0;
    }
    return size + (size_t)JOURNAL_GROUP_HEAD;
}

static void judge_tail(const struct file *file, uint64_t expected, struct verdict *verdict) {
    verdict->status = JOURNAL_TORN;
    for (size_t at = verdict->size + 1; at < file->size;) {
        size_t size = group_at(file, at);
        uint64_t sequence = bytes_get_u64(file->bytes + at + 16) ^ id_of(file);
        if (size == 0 || sequence <= expected || sequence - expected > at - verdict->size) {
            at++;
            continue;
        }
        if (sequence - bytes_get_u32(file->bytes + at + 12) >= expected) {
            verdict->status = JOURNAL_DAMAGED;
        }
        verdict->groups_behind++;
        at += size;
    }
}

static bool is_zero_from(const struct file *file, size_t at) {
    while (at < file->size && file->bytes[at] == 0) {
        at++;
    }
    return at == file->size;
}

static struct verdict judge(const struct file *file, uint64_t first, bool is_last) {
    struct verdict verdict = {.status = JOURNAL_DAMAGED};
    if (file->size < JOURNAL_FILE_HEAD) {
        return verdict;
    }
    if (file_format_of(file->bytes, FILE_FORMAT_JOURNAL) != FILE_FORMAT ||
        bytes_get_u64(file->bytes + 16) != first ||
        bytes_get_u64(file->bytes + 24) != XXH3_64bits(file->bytes, 24)) {
        return verdict;
    }
    verdict.size = JOURNAL_FILE_HEAD;
    /* Groups up to here are whole; they count once one of them is not linked to the next. */
    size_t at = verdict.size;
    uint64_t sequence = first;
    while (at < file->size) {
        size_t size = group_at(file, at);
        if (size == 0) {
            break;
        }
        if ((bytes_get_u64(file->bytes + at + 16) ^ id_of(file)) != sequence) {
            return verdict;
        }
        sequence++;
        bool is_linked = is_linked_at(file, at);
        at += size;
        if (!is_linked) {
            verdict.size = at;
            verdict.group_count = sequence - first;
        }
    }
    bool has_room = is_last && file->size % JOURNAL_ROOM_SIZE == 0;
    if (verdict.size == file->size || (has_room && is_zero_from(file, verdict.size))) {
        verdict.status = JOURNAL_END;
    } else if (is_last) {
        judge_tail(file, first + verdict.group_count, &verdict);
    }
    return verdict;
}

/* ---- the reader ---- */

/* Now and then those at hand first, which leave the group before as it is. */
static enum journal_status read_next(struct journal_reader *reader, struct journal_group *group) {
    struct journal_group before = *group;
    if (reader->group_count % 4 == 0 || !journal_file_reader_next_at_hand(reader, group)) {
        return journal_file_reader_next(reader, group);
    }
    CHECK(group->payload == before.payload + before.size + JOURNAL_GROUP_HEAD);
    return JOURNAL_GROUP;
}

/* buffer_size 0: as it is. */
static struct verdict read_file(const struct file *file, uint64_t first, bool is_last,
                                size_t buffer_size) {
    struct journal_reader reader;
    struct journal_group group;
    int fd = memfd_create("journal", MFD_CLOEXEC);
    CHECK(fd >= 0 && write(fd, file->bytes, file->size) == (ssize_t)file->size);
    enum journal_status status =
        journal_file_reader_open(&reader, fd, "fuzz.journal", first, is_last);
    if (status == JOURNAL_GROUP && buffer_size != 0) {
        reader.window.used = 0;
        reader.window.buffer_size = buffer_size;
    }
    struct verdict verdict = {0};
    while (status == JOURNAL_GROUP && (status = read_next(&reader, &group)) == JOURNAL_GROUP) {
        CHECK(group.sequence == first + verdict.group_count);
        CHECK(memcmp(group.payload, file->bytes + group.offset + JOURNAL_GROUP_HEAD, group.size) ==
              0);
        verdict.group_count++;
    }
    CHECK(status != JOURNAL_FAILED);
    CHECK((status == JOURNAL_DAMAGED) == (reader.error[0] != '\0'));
    CHECK(status != JOURNAL_TORN || (reader.torn.offset == reader.offset &&
                                     reader.torn.offset + reader.torn.size == file->size));
    verdict.status = status;
    verdict.size = reader.offset;
    verdict.groups_behind = reader.torn.groups_behind;
    journal_file_reader_close(&reader);
    return verdict;
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size) {
    static struct file file;
    if (size == 0 || size > FILE_MAX) {
        return 0;
    }
    bool is_last = (input[0] & 1) != 0;
    uint64_t first = FIRST;
    if ((input[0] & 2) != 0) {
        uint64_t sequence = FIRST;
        put_file_head(&file);
        for (size_t at = 1; at + 3 <= size && file.size > JOURNAL_FILE_HEAD - 1; at += 3) {
            obey(&file, input + at, &sequence);
        }
    } else {
        file.size = size - 1;
        memcpy(file.bytes, input + 1, file.size);
        first = file.size >= JOURNAL_FILE_HEAD ? bytes_get_u64(file.bytes + 16) : 0;
    }
    uint64_t live_count = memory_live_count();
    struct verdict expected = judge(&file, first, is_last);
    struct verdict found =
        read_file(&file, first, is_last, (input[0] & 4) != 0 ? 32 + input[0] / 8U * 4 : 0);
    CHECK(found.status == expected.status);
    CHECK(found.group_count == expected.group_count);
    CHECK(found.size == expected.size);
    CHECK(found.groups_behind == expected.groups_behind);
    if (found.status == JOURNAL_TORN || found.status == JOURNAL_END) {
        file.size = found.size;
        CHECK(read_file(&file, first, false, 0).status == JOURNAL_END);
    }
    CHECK(memory_live_count() == live_count);
    return 0;
}
