/* Sealing, appending and reading groups. See journal_file.h for the format and the tail rule. */
#include "server/durability/journal_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "codec/bytes.h"
#include "codec/memory.h"
#include "server/durability/file_format.h"

/* Offsets in the file's head and in a group's head. */
enum { FILE_ID = 8, FILE_SEQUENCE = 16, FILE_CHECKSUM = 24 };
enum {
    GROUP_CHECKSUM = 0,
    GROUP_SIZE = 8,
    GROUP_UNSYNCED = 12,
    GROUP_SEQUENCE = 16,
    GROUP_TIME = 24
};
#define GROUP_IS_LINKED (UINT32_C(1) << 31)
enum { OWN_ZEROES = 16 };

/* ---- writing ---- */

bool journal_file_create(struct journal_file *file, int directory, const char *name,
                         uint64_t first_sequence) {
    *file = (struct journal_file){
        .id = disk_random_id(),
        .size = JOURNAL_FILE_HEAD,
        .kept_size = JOURNAL_FILE_HEAD,
        .answered_size = JOURNAL_FILE_HEAD,
    };
    file->fd = disk_open(directory, name, O_WRONLY | O_CREAT | O_EXCL, 0640);
    if (file->fd < 0) {
        return false;
    }
    char head[JOURNAL_FILE_HEAD];
    file_format_put(head, FILE_FORMAT_JOURNAL);
    bytes_put_u64(head + FILE_ID, file->id);
    bytes_put_u64(head + FILE_SEQUENCE, first_sequence);
    bytes_put_u64(head + FILE_CHECKSUM, XXH3_64bits(head, FILE_CHECKSUM));
    if (disk_write_all_at(file->fd, head, sizeof head, 0) && disk_sync(file->fd)) {
        return true;
    }
    int error = errno;
    journal_file_close(file);
    disk->unlink_at(directory, name);
    errno = error;
    return false;
}

bool journal_file_continue(struct journal_file *file, int directory, const char *name, uint64_t id,
                           uint64_t size) {
    CHECK(size >= JOURNAL_FILE_HEAD);
    *file = (struct journal_file){.id = id, .size = size, .kept_size = size, .answered_size = size};
    file->fd = disk_open(directory, name, O_WRONLY, 0);
    if (file->fd < 0) {
        return false;
    }
    if (disk_truncate(file->fd, size) && disk_sync(file->fd)) {
        return true;
    }
    journal_file_close(file);
    return false;
}

void journal_file_seal_group(char *group, const struct journal_group_head *head, uint64_t id) {
    CHECK(head->size > 0 && head->size < GROUP_IS_LINKED);
    uint32_t unsynced = head->unsynced < UINT32_MAX ? (uint32_t)head->unsynced : UINT32_MAX;
    bytes_put_u32(group + GROUP_SIZE, head->size | (head->is_linked ? GROUP_IS_LINKED : 0));
    bytes_put_u32(group + GROUP_UNSYNCED, unsynced);
    bytes_put_u64(group + GROUP_SEQUENCE, head->sequence ^ id);
    bytes_put_u64(group + GROUP_TIME, head->time_us);
    size_t checked_size = (size_t)head->size + JOURNAL_GROUP_HEAD - GROUP_SIZE;
    bytes_put_u64(group + GROUP_CHECKSUM,
                  XXH3_64bits_withSeed(group + GROUP_SIZE, checked_size, id));
}

void journal_file_read_group_head(const char *group, uint64_t id, struct journal_group_head *head) {
    uint32_t word = bytes_get_u32(group + GROUP_SIZE);
    *head = (struct journal_group_head){
        .size = word & ~GROUP_IS_LINKED,
        .is_linked = (word & GROUP_IS_LINKED) != 0,
        .sequence = bytes_get_u64(group + GROUP_SEQUENCE) ^ id,
        .unsynced = bytes_get_u32(group + GROUP_UNSYNCED),
        .time_us = bytes_get_u64(group + GROUP_TIME),
    };
}

bool journal_file_open_group(const char *group, size_t size, uint64_t id,
                             struct journal_group_head *head) {
    if (size <= JOURNAL_GROUP_HEAD ||
        XXH3_64bits_withSeed(group + GROUP_SIZE, size - GROUP_SIZE, id) !=
            bytes_get_u64(group + GROUP_CHECKSUM)) {
        return false;
    }
    journal_file_read_group_head(group, id, head);
    return head->size == size - JOURNAL_GROUP_HEAD;
}

/* If there is none, the groups are appended as to any file. */
static void journal_file_extend_room(struct journal_file *file, size_t size) {
    static const char zeroes[1 << 15];
    if (!file->makes_room || file->is_cramped || size > JOURNAL_ROOM_BATCH_MAX ||
        file->size + size <= file->room_end) {
        return;
    }
    uint64_t begin = file->room_end > file->size ? file->room_end : file->size;
    uint64_t end =
        (file->size + size + JOURNAL_ROOM_SIZE - 1) / JOURNAL_ROOM_SIZE * JOURNAL_ROOM_SIZE;
    for (uint64_t at = begin; at < end;) {
        size_t part = end - at < sizeof zeroes ? (size_t)(end - at) : sizeof zeroes;
        if (!disk_write_all_at(file->fd, zeroes, part, at)) {
            /* The disk is full, perhaps: what is left is for groups. */
            file->is_cramped = true;
            file->room_end = disk_truncate(file->fd, begin) ? begin : end;
            return;
        }
        at += part;
    }
    file->room_end = end;
}

bool journal_file_append(struct journal_file *file, const char *groups, size_t size, size_t kept,
                         bool *is_whole) {
    CHECK(kept <= size);
    *is_whole = true;
    journal_file_extend_room(file, size);
    if (disk_write_all_at(file->fd, groups, size, file->size)) {
        file->kept_size = kept > 0 ? file->size + kept : file->kept_size;
        file->size += size;
        return true;
    }
    int error = errno;
    *is_whole = disk_truncate(file->fd, file->kept_size);
    file->size = file->room_end = file->kept_size;
    errno = error;
    return false;
}

void journal_file_cut_unanswered(struct journal_file *file) {
    int error = errno;
    (void)!disk_truncate(file->fd, file->answered_size);
    file->room_end = 0;
    errno = error;
}

bool journal_file_cut_room(struct journal_file *file) {
    bool is_cut = file->room_end <= file->size || disk_truncate(file->fd, file->size);
    file->room_end = is_cut ? 0 : file->room_end;
    return is_cut;
}

void journal_file_close(struct journal_file *file) {
    int error = errno;
    if (file->fd >= 0) {
        (void)!journal_file_cut_room(file);
    }
    errno = error;
    disk_close(file->fd);
    file->fd = -1;
}

/* ---- errors ---- */

__attribute__((format(printf, 3, 4))) static enum journal_status
journal_file_refuse(struct journal_reader *reader, uint64_t offset, const char *format, ...) {
    char reason[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    snprintf(reader->error, sizeof reader->error, "%s is damaged at offset %" PRIu64 ": %s",
             reader->path, offset, reason);
    return JOURNAL_DAMAGED;
}

/* errno has the cause. */
static enum journal_status journal_file_fail(struct journal_reader *reader, uint64_t offset) {
    snprintf(reader->error, sizeof reader->error, "cannot read %s at offset %" PRIu64 ": %s",
             reader->path, offset, errno == ENODATA ? "the file was truncated" : strerror(errno));
    return JOURNAL_FAILED;
}

static enum journal_status journal_file_fail_without_memory(struct journal_reader *reader,
                                                            size_t size) {
    snprintf(reader->error, sizeof reader->error,
             "out of memory: reading %s at offset %" PRIu64 " takes %zu bytes", reader->path,
             reader->offset, size);
    return JOURNAL_FAILED;
}

/* ---- reading ---- */

uint64_t journal_file_id(const char *head) {
    bool is_fine = file_format_is_read(file_format_of(head, FILE_FORMAT_JOURNAL)) &&
                   bytes_get_u64(head + FILE_CHECKSUM) == XXH3_64bits(head, FILE_CHECKSUM);
    return is_fine ? bytes_get_u64(head + FILE_ID) : 0;
}

bool journal_file_peek(int fd, uint64_t *first_sequence) {
    char head[JOURNAL_FILE_HEAD];
    if (!disk_read_whole(fd, head, sizeof head, 0) || journal_file_id(head) == 0) {
        return false;
    }
    *first_sequence = bytes_get_u64(head + FILE_SEQUENCE);
    return true;
}

enum journal_status journal_file_reader_open(struct journal_reader *reader, int fd,
                                             const char *path, uint64_t first_sequence,
                                             bool is_last) {
    *reader = (struct journal_reader){
        .window = {.fd = fd}, .path = path, .is_last = is_last, .next_sequence = first_sequence};
    if (disk->size(fd, &reader->window.file_size) != 0) {
        return journal_file_fail(reader, 0);
    }
    if (reader->window.file_size < JOURNAL_FILE_HEAD) {
        return journal_file_refuse(reader, reader->window.file_size,
                                   "the file ends within its head");
    }
    reader->window.buffer = memory_allocate(JOURNAL_READ_SIZE);
    if (reader->window.buffer == NULL) {
        return journal_file_fail_without_memory(reader, JOURNAL_READ_SIZE);
    }
    reader->window.buffer_size = JOURNAL_READ_SIZE;
    const char *head = disk_window_get(&reader->window, 0, JOURNAL_FILE_HEAD, JOURNAL_READ_SIZE);
    if (head == NULL) {
        return journal_file_fail(reader, 0);
    }
    unsigned format = file_format_of(head, FILE_FORMAT_JOURNAL);
    if (format == 0) {
        return journal_file_refuse(reader, 0, "it does not begin as a journal does");
    }
    if (bytes_get_u64(head + FILE_CHECKSUM) != XXH3_64bits(head, FILE_CHECKSUM)) {
        return journal_file_refuse(reader, 0, "the checksum of its head is wrong");
    }
    if (!file_format_is_read(format)) {
        char why[FILE_FORMAT_ERROR_MAX];
        snprintf(reader->error, sizeof reader->error, "cannot read %s: %s", path,
                 file_format_explain(format, why));
        return JOURNAL_FAILED;
    }
    uint64_t sequence = bytes_get_u64(head + FILE_SEQUENCE);
    if (sequence != first_sequence) {
        return journal_file_refuse(reader, FILE_SEQUENCE,
                                   "it begins with group %" PRIu64 ", but group %" PRIu64
                                   " is expected",
                                   sequence, first_sequence);
    }
    reader->id = bytes_get_u64(head + FILE_ID);
    reader->offset = JOURNAL_FILE_HEAD;
    return JOURNAL_GROUP;
}

static uint32_t journal_file_size_in(const char *head) {
    return bytes_get_u32(head + GROUP_SIZE) & ~GROUP_IS_LINKED;
}

static bool journal_file_is_linked(const char *head) {
    return (bytes_get_u32(head + GROUP_SIZE) & GROUP_IS_LINKED) != 0;
}

/* Is the group at offset whole, if its payload has this size, whatever its head says? JOURNAL_TORN: it is not. Reads it
 * piece by piece: it may be large, and the size may be wrong. */
static enum journal_status journal_file_check_on_disk(struct journal_reader *reader,
                                                      uint64_t offset, uint32_t size) {
    char piece[32768];
    XXH3_state_t state = {0};
    XXH3_64bits_reset_withSeed(&state, reader->id);
    uint64_t end = offset + JOURNAL_GROUP_HEAD + size;
    uint64_t expected = 0;
    for (uint64_t at = offset; at < end;) {
        size_t wanted = end - at < sizeof piece ? (size_t)(end - at) : sizeof piece;
        if (!disk_read_whole(reader->window.fd, piece, wanted, at)) {
            return journal_file_fail(reader, offset);
        }
        size_t skipped = at == offset ? GROUP_SIZE : 0;
        if (skipped != 0) {
            uint32_t word = bytes_get_u32(piece + GROUP_SIZE);
            expected = bytes_get_u64(piece + GROUP_CHECKSUM);
            bytes_put_u32(piece + GROUP_SIZE, (word & GROUP_IS_LINKED) | size);
        }
        XXH3_64bits_update(&state, piece + skipped, wanted - skipped);
        at += wanted;
    }
    return XXH3_64bits_digest(&state) == expected ? JOURNAL_GROUP : JOURNAL_TORN;
}

/* Look for a whole group at offset. If there is one, count it and set *size to its size with the
 * head; otherwise to 0. The first one that proves that the broken group had been on disk makes the
 * file damaged. */
static enum journal_status journal_file_look_for_group(struct journal_reader *reader,
                                                       uint64_t offset, uint64_t *size) {
    *size = 0;
    const char *head =
        disk_window_get(&reader->window, offset, JOURNAL_GROUP_HEAD, JOURNAL_READ_SIZE);
    if (head == NULL) {
        return journal_file_fail(reader, offset);
    }
    /* Can this be the head of a group after the broken one? The sequence alone nearly decides it, because the id is in
     * it. Every group takes at least one byte. */
    uint64_t sequence = bytes_get_u64(head + GROUP_SEQUENCE) ^ reader->id;
    uint32_t payload_size = journal_file_size_in(head);
    if (sequence - reader->next_sequence - 1 >= offset - reader->offset || payload_size == 0 ||
        payload_size > JOURNAL_GROUP_SIZE_MAX ||
        payload_size > reader->window.file_size - offset - JOURNAL_GROUP_HEAD) {
        return JOURNAL_TORN;
    }
    uint64_t synced = sequence - bytes_get_u32(head + GROUP_UNSYNCED);
    enum journal_status status = journal_file_check_on_disk(reader, offset, payload_size);
    if (status != JOURNAL_GROUP) {
        return status;
    }
    *size = JOURNAL_GROUP_HEAD + (uint64_t)payload_size;
    reader->torn.groups_behind++;
    if (synced < reader->next_sequence || reader->error[0] != '\0') {
        return JOURNAL_TORN;
    }
    return journal_file_refuse(reader, reader->offset,
                               "%s, and group %" PRIu64 " at offset %" PRIu64
                               " shows that group %" PRIu64 " had been on disk as a whole",
                               reader->torn.description, sequence, offset, reader->next_sequence);
}

/* *filled_end: one past the last byte from offset on that is not zero; offset itself: all are zeroes. JOURNAL_END: all
 * behind the groups are, and the file has the size of one with room. */
static enum journal_status journal_file_look_for_room(struct journal_reader *reader,
                                                      uint64_t offset, uint64_t *filled_end) {
    char piece[32768];
    uint64_t file_size = reader->window.file_size;
    *filled_end = offset;
    for (uint64_t at = offset; at < file_size;) {
        size_t size = file_size - at < sizeof piece ? (size_t)(file_size - at) : sizeof piece;
        if (!disk_read_whole(reader->window.fd, piece, size, at)) {
            return journal_file_fail(reader, offset);
        }
        size_t last = size;
        while (last > 0 && piece[last - 1] == 0) {
            last--;
        }
        *filled_end = last > 0 ? at + last : *filled_end;
        at += size;
    }
    return reader->is_last && *filled_end == reader->offset && file_size % JOURNAL_ROOM_SIZE == 0
               ? JOURNAL_END
               : JOURNAL_TORN;
}

/* The bytes at reader->offset are not a whole group: is this a torn tail, or damage? cut_at: the offset of a group whose
 * end is missing; 0: there is none. */
static enum journal_status journal_file_judge(struct journal_reader *reader, uint64_t cut_at,
                                              const char *description) {
    if (!reader->is_last) {
        return journal_file_refuse(reader, reader->offset, "%s, and increments follow this file",
                                   description);
    }
    uint64_t file_size = reader->window.file_size;
    reader->torn = (struct journal_torn){
        .offset = reader->offset, .size = file_size - reader->offset, .description = description};
    enum journal_status judgement = JOURNAL_TORN;
    uint64_t last_whole_at = 0;
    uint64_t at = reader->offset + 1;
    while (at < file_size && file_size - at > JOURNAL_GROUP_HEAD) {
        uint64_t size;
        enum journal_status status = journal_file_look_for_group(reader, at, &size);
        if (status == JOURNAL_FAILED) {
            return status;
        }
        judgement = status == JOURNAL_DAMAGED ? status : judgement;
        last_whole_at = size != 0 ? at : last_whole_at;
        at += size != 0 ? size : 1;
    }
    reader->torn.is_cut_short = cut_at > last_whole_at;
    return judgement;
}

/* The same where the file ends before the group at offset does, by the size that its head gives. That may be wrong. */
static enum journal_status journal_file_judge_end(struct journal_reader *reader, uint64_t offset,
                                                  const char *description) {
    uint64_t left = reader->window.file_size - offset;
    enum journal_status status = JOURNAL_TORN;
    if (left > JOURNAL_GROUP_HEAD && left - JOURNAL_GROUP_HEAD < GROUP_IS_LINKED) {
        status = journal_file_check_on_disk(reader, offset, (uint32_t)(left - JOURNAL_GROUP_HEAD));
    }
    return status == JOURNAL_FAILED
               ? status
               : journal_file_judge(reader, status == JOURNAL_GROUP ? 0 : offset, description);
}

/* The same where the group at offset, which would end at end, is not whole. If there are zeroes in place of its last bytes,
 * and up to the file's end, it was copied while it was written. */
static enum journal_status journal_file_judge_group(struct journal_reader *reader, uint64_t offset,
                                                    uint64_t end, const char *description) {
    uint64_t filled_end;
    enum journal_status status = journal_file_look_for_room(reader, offset, &filled_end);
    /* Its own last bytes may be zeroes; what was copied ends with a block, or anywhere. */
    bool has_zeroes = filled_end < end && (filled_end % 512 == 0 || end - filled_end > OWN_ZEROES);
    bool has_room = has_zeroes && end < reader->window.file_size;
    return status == JOURNAL_TORN ? journal_file_judge(reader, has_room ? offset : 0, description)
                                  : status;
}

/* Allocate room for a verified group that is larger than the buffer. */
static enum journal_status journal_file_make_room(struct journal_reader *reader, uint32_t size) {
    size_t room = (size_t)size + JOURNAL_GROUP_HEAD;
    if (room <= reader->window.buffer_size) {
        return JOURNAL_GROUP;
    }
    enum journal_status status = journal_file_check_on_disk(reader, reader->offset, size);
    if (status != JOURNAL_GROUP) {
        return status == JOURNAL_TORN
                   ? journal_file_judge(reader, 0, "the checksum of a group is wrong")
                   : status;
    }
    char *buffer = memory_resize(reader->window.buffer, room);
    if (buffer == NULL) {
        return journal_file_fail_without_memory(reader, room);
    }
    reader->window.buffer = buffer;
    reader->window.buffer_size = room;
    return JOURNAL_GROUP;
}

/* Get the size of the payload from the head of the group at reader->offset. */
static enum journal_status journal_file_read_size(struct journal_reader *reader, uint32_t *size) {
    uint64_t left = reader->window.file_size - reader->offset;
    if (left == 0) {
        return JOURNAL_END;
    }
    if (left <= JOURNAL_GROUP_HEAD) {
        uint64_t filled_end;
        enum journal_status status =
            journal_file_look_for_room(reader, reader->offset, &filled_end);
        return status == JOURNAL_TORN
                   ? journal_file_judge_end(reader, reader->offset,
                                            "the file ends within the head of a group")
                   : status;
    }
    const char *head =
        disk_window_get(&reader->window, reader->offset, JOURNAL_GROUP_HEAD, JOURNAL_READ_SIZE);
    if (head == NULL) {
        return journal_file_fail(reader, reader->offset);
    }
    *size = journal_file_size_in(head);
    if (*size == 0 || *size > JOURNAL_GROUP_SIZE_MAX) {
        return journal_file_judge_group(reader, reader->offset, reader->offset + JOURNAL_GROUP_HEAD,
                                        "no group has the size that is written here");
    }
    if (*size > left - JOURNAL_GROUP_HEAD) {
        return journal_file_judge_end(reader, reader->offset, "the file ends within a group");
    }
    return journal_file_make_room(reader, *size);
}

static bool journal_file_is_whole(const struct journal_reader *reader, const char *head,
                                  size_t whole_size) {
    return XXH3_64bits_withSeed(head + GROUP_SIZE, whole_size - GROUP_SIZE, reader->id) ==
           bytes_get_u64(head + GROUP_CHECKSUM);
}

/* Is the group not linked, or is its whole chain verified? */
static bool journal_file_is_sure_of_next(const struct journal_reader *reader, const char *head) {
    return !journal_file_is_linked(head) || reader->offset < reader->whole_until;
}

static enum journal_status journal_file_refuse_sequence(struct journal_reader *reader,
                                                        uint64_t offset, uint64_t sequence,
                                                        uint64_t expected) {
    return journal_file_refuse(reader, offset,
                               "group %" PRIu64 " stands where group %" PRIu64 " is expected",
                               sequence, expected);
}

/* Read the head of the group at offset, which is in the chain of the one at reader->offset. Is it
 * whole, with this sequence? */
static enum journal_status journal_file_check_linked(struct journal_reader *reader, uint64_t offset,
                                                     uint64_t expected, char *head) {
    uint64_t left = reader->window.file_size - offset;
    if (left <= JOURNAL_GROUP_HEAD) {
        return journal_file_judge_end(reader, offset,
                                      "the file ends before the last of linked groups");
    }
    if (!disk_read_whole(reader->window.fd, head, JOURNAL_GROUP_HEAD, offset)) {
        return journal_file_fail(reader, offset);
    }
    uint32_t size = journal_file_size_in(head);
    if (size == 0) {
        return journal_file_judge_group(reader, offset, offset + JOURNAL_GROUP_HEAD,
                                        "a linked group has a size that no group has");
    }
    if (size > left - JOURNAL_GROUP_HEAD) {
        return journal_file_judge_end(reader, offset, "the file ends within a linked group");
    }
    enum journal_status status = journal_file_check_on_disk(reader, offset, size);
    if (status == JOURNAL_TORN) {
        return journal_file_judge_group(reader, offset, offset + JOURNAL_GROUP_HEAD + size,
                                        "the checksum of a linked group is wrong");
    }
    uint64_t sequence = bytes_get_u64(head + GROUP_SEQUENCE) ^ reader->id;
    return status == JOURNAL_GROUP && sequence != expected
               ? journal_file_refuse_sequence(reader, offset, sequence, expected)
               : status;
}

/* The group at reader->offset, which ends at end, is whole and linked: verify the rest of its
 * chain. It is read from disk, because the chain may be larger than memory. */
static enum journal_status journal_file_look_ahead(struct journal_reader *reader, uint64_t end) {
    char head[JOURNAL_GROUP_HEAD];
    uint64_t expected = reader->next_sequence;
    bool has_more = true;
    while (has_more) {
        enum journal_status status = journal_file_check_linked(reader, end, ++expected, head);
        if (status != JOURNAL_GROUP) {
            return status;
        }
        has_more = journal_file_is_linked(head);
        end += JOURNAL_GROUP_HEAD + (uint64_t)journal_file_size_in(head);
    }
    reader->chain_us = bytes_get_u64(head + GROUP_TIME);
    reader->whole_until = end;
    return JOURNAL_GROUP;
}

static void journal_file_take_group(struct journal_reader *reader, const char *head, uint32_t size,
                                    struct journal_group *group) {
    uint64_t time_us = bytes_get_u64(head + GROUP_TIME);
    *group = (struct journal_group){
        .payload = head + JOURNAL_GROUP_HEAD,
        .size = size,
        .sequence = reader->next_sequence++,
        .time_us = time_us,
        .end_us = reader->offset < reader->whole_until ? reader->chain_us : time_us,
        .offset = reader->offset};
    reader->offset += (uint64_t)size + JOURNAL_GROUP_HEAD;
    reader->group_count++;
}

bool journal_file_reader_next_at_hand(struct journal_reader *reader, struct journal_group *group) {
    const struct disk_window *window = &reader->window;
    if (reader->offset < window->offset || reader->offset > window->offset + window->used) {
        return false;
    }
    const char *head = window->buffer + (reader->offset - window->offset);
    size_t left = window->used - (size_t)(reader->offset - window->offset);
    if (left <= JOURNAL_GROUP_HEAD) {
        return false;
    }
    uint32_t size = journal_file_size_in(head);
    if (size == 0 || size > left - JOURNAL_GROUP_HEAD ||
        !journal_file_is_sure_of_next(reader, head) ||
        !journal_file_is_whole(reader, head, (size_t)size + JOURNAL_GROUP_HEAD) ||
        (bytes_get_u64(head + GROUP_SEQUENCE) ^ reader->id) != reader->next_sequence) {
        return false;
    }
    journal_file_take_group(reader, head, size, group);
    return true;
}

enum journal_status journal_file_reader_next(struct journal_reader *reader,
                                             struct journal_group *group) {
    uint32_t size = 0;
    enum journal_status status = journal_file_read_size(reader, &size);
    if (status != JOURNAL_GROUP) {
        return status;
    }
    size_t whole_size = (size_t)size + JOURNAL_GROUP_HEAD;
    const char *head =
        disk_window_get(&reader->window, reader->offset, whole_size, JOURNAL_READ_SIZE);
    if (head == NULL) {
        return journal_file_fail(reader, reader->offset);
    }
    if (!journal_file_is_whole(reader, head, whole_size)) {
        return journal_file_judge_group(reader, reader->offset, reader->offset + whole_size,
                                        "the checksum of a group is wrong");
    }
    uint64_t sequence = bytes_get_u64(head + GROUP_SEQUENCE) ^ reader->id;
    if (sequence != reader->next_sequence) {
        return journal_file_refuse_sequence(reader, reader->offset, sequence,
                                            reader->next_sequence);
    }
    if (!journal_file_is_sure_of_next(reader, head)) {
        status = journal_file_look_ahead(reader, reader->offset + whole_size);
        if (status != JOURNAL_GROUP) {
            return status;
        }
    }
    journal_file_take_group(reader, head, size, group);
    return JOURNAL_GROUP;
}

void journal_file_reader_close(struct journal_reader *reader) {
    disk_close(reader->window.fd);
    reader->window.fd = -1;
    memory_free(reader->window.buffer);
    reader->window.buffer = NULL;
}
