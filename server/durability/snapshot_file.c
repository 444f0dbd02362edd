/* Writing and reading blocks. See snapshot_file.h for the format. */
#include "server/durability/snapshot_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <zstd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "codec/bytes.h"
#include "codec/memory.h"
#include "server/durability/file_format.h"

/* Offsets in the file's head, and in a block's head. */
enum { FILE_ID = 8, FILE_CREATED = 16, FILE_CHECKSUM = 24 };
enum { BLOCK_CHECKSUM = 0, BLOCK_RAW_SIZE = 8, BLOCK_STORED_SIZE = 12 };
_Static_assert(sizeof(struct snapshot_footer) == SNAPSHOT_FOOTER &&
                   __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "the footer is written as it is in memory");

enum {
    /* Bytes written before write-back is started. The writer waits for it after at most twice as
     * many, so that the final sync, which delays the journal's syncs, is short. */
    WRITE_BACK_SIZE = 32 << 20,
    READ_SIZE = 2 << 20,
};

/* Begin the checksum of a block with the rest of its head. */
static void snapshot_file_begin_checksum(XXH3_state_t *state, uint64_t seed, const char *head) {
    XXH3_64bits_reset_withSeed(state, seed);
    XXH3_64bits_update(state, head + BLOCK_RAW_SIZE, SNAPSHOT_BLOCK_HEAD - BLOCK_RAW_SIZE);
}

static uint64_t snapshot_file_checksum_of(uint64_t seed, const char *head, const char *stored,
                                          size_t size) {
    XXH3_state_t state = {0};
    snapshot_file_begin_checksum(&state, seed, head);
    XXH3_64bits_update(&state, stored, size);
    return XXH3_64bits_digest(&state);
}

/* ---- writing ---- */

static bool snapshot_file_write_file_head(struct snapshot_writer *writer, uint64_t created_ms) {
    char head[SNAPSHOT_FILE_HEAD];
    file_format_put(head, FILE_FORMAT_BASE);
    bytes_put_u64(head + FILE_ID, writer->id);
    bytes_put_u64(head + FILE_CREATED, created_ms);
    bytes_put_u64(head + FILE_CHECKSUM, XXH3_64bits(head, FILE_CHECKSUM));
    writer->size = sizeof head;
    return disk_write_all(writer->fd, head, sizeof head);
}

bool snapshot_file_writer_init(struct snapshot_writer *writer, int level) {
    *writer = (struct snapshot_writer){.fd = -1, .id = disk_random_id(), .level = level};
    /* zstd allocates with libc's malloc: it runs on a thread that does not own the pool. */
    writer->zstd = ZSTD_createCCtx();
    writer->stored = memory_allocate(SNAPSHOT_BLOCK_SIZE);
    return writer->zstd != NULL && writer->stored != NULL;
}

bool snapshot_file_writer_open(struct snapshot_writer *writer, int directory, const char *name,
                               uint64_t created_ms) {
    writer->fd = disk_open(directory, name, O_WRONLY | O_CREAT | O_EXCL, 0640);
    if (writer->fd < 0) {
        return false;
    }
    if (!snapshot_file_write_file_head(writer, created_ms)) {
        int error = errno;
        disk->unlink_at(directory, name);
        errno = error;
        return false;
    }
    return true;
}

bool snapshot_file_writer_open_pipe(struct snapshot_writer *writer, int fd, uint64_t created_ms) {
    writer->fd = fd;
    writer->is_stream = true;
    return snapshot_file_write_file_head(writer, created_ms);
}

static bool snapshot_file_write_block(struct snapshot_writer *writer, uint32_t raw_size,
                                      const char *stored, uint32_t stored_size) {
    char head[SNAPSHOT_BLOCK_HEAD];
    bytes_put_u32(head + BLOCK_RAW_SIZE, raw_size);
    bytes_put_u32(head + BLOCK_STORED_SIZE, stored_size);
    bytes_put_u64(
        head + BLOCK_CHECKSUM,
        snapshot_file_checksum_of(writer->id + writer->block_number, head, stored, stored_size));
    if (!disk_write_all(writer->fd, head, sizeof head) ||
        !disk_write_all(writer->fd, stored, stored_size)) {
        return false;
    }
    writer->block_number++;
    writer->raw_size += raw_size;
    writer->size += SNAPSHOT_BLOCK_HEAD + (uint64_t)stored_size;
    /* Keep the disk writing about as fast as blocks arrive. */
    uint64_t begin = writer->write_back_begin, end = writer->write_back_end;
    if (writer->is_stream || writer->size - end < WRITE_BACK_SIZE) {
        return true;
    }
    if (disk->write_back(writer->fd, end, writer->size - end, false) != 0 && errno != EINTR) {
        return false;
    }
    writer->write_back_begin = end;
    writer->write_back_end = writer->size;
    return end == begin || disk->write_back(writer->fd, begin, end - begin, true) == 0 ||
           errno == EINTR;
}

bool snapshot_file_writer_block(struct snapshot_writer *writer, const char *raw,
                                uint32_t raw_size) {
    CHECK(raw_size > 0 && raw_size <= SNAPSHOT_RAW_SIZE_MAX);
    size_t size = 0;
    if (raw_size <= SNAPSHOT_BLOCK_SIZE) {
        /* The room is one byte less than the raw size: if that is not enough, zstd returns an
         * error, and the raw bytes are stored. */
        size = ZSTD_compressCCtx(writer->zstd, writer->stored, raw_size - 1, raw, raw_size,
                                 writer->level);
    }
    bool is_raw = size == 0 || ZSTD_isError(size);
    return is_raw ? snapshot_file_write_block(writer, raw_size, raw, raw_size)
                  : snapshot_file_write_block(writer, raw_size, writer->stored, (uint32_t)size);
}

bool snapshot_file_writer_finish(struct snapshot_writer *writer, struct snapshot_footer *footer) {
    footer->raw_size = writer->raw_size;
    footer->offset = writer->size;
    return snapshot_file_write_block(writer, 0, (const char *)footer, SNAPSHOT_FOOTER) &&
           (writer->is_stream || disk_sync(writer->fd));
}

void snapshot_file_writer_close(struct snapshot_writer *writer) {
    int error = errno;
    disk_close(writer->fd);
    writer->fd = -1;
    ZSTD_freeCCtx(writer->zstd);
    writer->zstd = NULL;
    memory_free(writer->stored);
    writer->stored = NULL;
    errno = error;
}

/* ---- reading ---- */

static enum snapshot_status snapshot_file_refuse(struct snapshot_reader *reader, uint64_t offset,
                                                 const char *reason) {
    snprintf(reader->error, sizeof reader->error, "%s is damaged at offset %" PRIu64 ": %s",
             reader->path, offset, reason);
    return SNAPSHOT_DAMAGED;
}

/* errno has the cause. */
static enum snapshot_status snapshot_file_fail(struct snapshot_reader *reader, uint64_t offset) {
    snprintf(reader->error, sizeof reader->error, "cannot read %s at offset %" PRIu64 ": %s",
             reader->path, offset, errno == ENODATA ? "the file was truncated" : strerror(errno));
    return SNAPSHOT_FAILED;
}

enum snapshot_status snapshot_file_reader_open(struct snapshot_reader *reader, int fd,
                                               const char *path) {
    *reader = (struct snapshot_reader){.window = {.fd = fd}, .path = path};
    if (disk->size(fd, &reader->window.file_size) != 0) {
        return snapshot_file_fail(reader, 0);
    }
    if (reader->window.file_size < SNAPSHOT_FILE_HEAD) {
        return snapshot_file_refuse(reader, reader->window.file_size,
                                    "the file ends within its head");
    }
    reader->window.buffer = memory_allocate(READ_SIZE);
    reader->window.buffer_size = READ_SIZE;
    reader->zstd = ZSTD_createDCtx();
    if (reader->window.buffer == NULL || reader->zstd == NULL) {
        snprintf(reader->error, sizeof reader->error, "out of memory: reading %s takes %d bytes",
                 path, READ_SIZE);
        return SNAPSHOT_FAILED;
    }
    const char *head = disk_window_get(&reader->window, 0, SNAPSHOT_FILE_HEAD, READ_SIZE);
    if (head == NULL) {
        return snapshot_file_fail(reader, 0);
    }
    unsigned format = file_format_of(head, FILE_FORMAT_BASE);
    if (format == 0) {
        return snapshot_file_refuse(reader, 0, "it does not begin as a snapshot does");
    }
    if (bytes_get_u64(head + FILE_CHECKSUM) != XXH3_64bits(head, FILE_CHECKSUM)) {
        return snapshot_file_refuse(reader, 0, "the checksum of its head is wrong");
    }
    if (!file_format_is_read(format)) {
        char why[FILE_FORMAT_ERROR_MAX];
        snprintf(reader->error, sizeof reader->error, "cannot read %s: %s", reader->path,
                 file_format_explain(format, why));
        return SNAPSHOT_FAILED;
    }
    reader->id = bytes_get_u64(head + FILE_ID);
    reader->created_ms = bytes_get_u64(head + FILE_CREATED);
    reader->offset = SNAPSHOT_FILE_HEAD;
    return SNAPSHOT_BLOCK;
}

bool snapshot_file_peek(int fd, struct snapshot_footer *footer) {
    enum { END = SNAPSHOT_BLOCK_HEAD + SNAPSHOT_FOOTER };
    char head[SNAPSHOT_FILE_HEAD];
    char end[END];
    uint64_t size;
    if (disk->size(fd, &size) != 0 || size < SNAPSHOT_FILE_HEAD + END ||
        !disk_read_whole(fd, head, sizeof head, 0) ||
        !disk_read_whole(fd, end, sizeof end, size - END)) {
        return false;
    }
    memcpy(footer, end + SNAPSHOT_BLOCK_HEAD, SNAPSHOT_FOOTER);
    return file_format_is_read(file_format_of(head, FILE_FORMAT_BASE)) &&
           bytes_get_u32(end + BLOCK_RAW_SIZE) == 0 &&
           bytes_get_u32(end + BLOCK_STORED_SIZE) == SNAPSHOT_FOOTER &&
           footer->offset == size - END;
}

struct block {
    uint32_t raw_size;
    uint32_t stored_size;
    uint64_t checksum;
};

/* Read and check the head of the next block. */
static enum snapshot_status snapshot_file_read_block_head(struct snapshot_reader *reader,
                                                          struct block *block) {
    uint64_t left = reader->window.file_size - reader->offset;
    if (left < SNAPSHOT_BLOCK_HEAD) {
        return snapshot_file_refuse(reader, reader->window.file_size,
                                    "the file ends before its end mark");
    }
    const char *head =
        disk_window_get(&reader->window, reader->offset, SNAPSHOT_BLOCK_HEAD, READ_SIZE);
    if (head == NULL) {
        return snapshot_file_fail(reader, reader->offset);
    }
    block->checksum = bytes_get_u64(head + BLOCK_CHECKSUM);
    block->raw_size = bytes_get_u32(head + BLOCK_RAW_SIZE);
    block->stored_size = bytes_get_u32(head + BLOCK_STORED_SIZE);
    bool is_end = block->raw_size == 0;
    bool is_raw = block->raw_size == block->stored_size;
    bool is_possible = is_end ? block->stored_size == SNAPSHOT_FOOTER
                              : block->stored_size > 0 && block->stored_size <= block->raw_size &&
                                    block->raw_size <= SNAPSHOT_RAW_SIZE_MAX &&
                                    (is_raw || block->raw_size <= SNAPSHOT_BLOCK_SIZE);
    if (!is_possible) {
        return snapshot_file_refuse(reader, reader->offset,
                                    "no block has the sizes that are written here");
    }
    if (block->stored_size > left - SNAPSHOT_BLOCK_HEAD) {
        return snapshot_file_refuse(reader, reader->offset, "the file ends within a block");
    }
    return SNAPSHOT_BLOCK;
}

/* Verify the checksum of a block that is larger than the buffer, reading it into raw if it fits. */
static enum snapshot_status snapshot_file_read_huge(struct snapshot_reader *reader,
                                                    const struct block *block, char *raw,
                                                    size_t room) {
    char head[SNAPSHOT_BLOCK_HEAD];
    bytes_put_u32(head + BLOCK_RAW_SIZE, block->raw_size);
    bytes_put_u32(head + BLOCK_STORED_SIZE, block->stored_size);
    XXH3_state_t state = {0};
    snapshot_file_begin_checksum(&state, reader->id + reader->block_number, head);
    uint64_t offset = reader->offset + SNAPSHOT_BLOCK_HEAD;
    bool is_kept = room >= block->raw_size;
    char piece[32768];
    piece[0] = 0;
    for (uint32_t done = 0; done < block->raw_size;) {
        uint32_t left = block->raw_size - done;
        uint32_t wanted = left < sizeof piece ? left : (uint32_t)sizeof piece;
        char *to = is_kept ? raw + done : piece;
        if (!disk_read_whole(reader->window.fd, to, wanted, offset + done)) {
            return snapshot_file_fail(reader, offset + done);
        }
        XXH3_64bits_update(&state, to, wanted);
        done += wanted;
    }
    if (XXH3_64bits_digest(&state) != block->checksum) {
        return snapshot_file_refuse(reader, reader->offset, "the checksum of a block is wrong");
    }
    return is_kept ? SNAPSHOT_BLOCK : SNAPSHOT_LARGER;
}

/* Handle a block that is completely in the buffer, or the end. */
static enum snapshot_status snapshot_file_read_usual(struct snapshot_reader *reader,
                                                     const struct block *block, char *raw,
                                                     size_t room) {
    size_t whole_size = SNAPSHOT_BLOCK_HEAD + (size_t)block->stored_size;
    const char *head = disk_window_get(&reader->window, reader->offset, whole_size, READ_SIZE);
    if (head == NULL) {
        return snapshot_file_fail(reader, reader->offset);
    }
    const char *stored = head + SNAPSHOT_BLOCK_HEAD;
    if (snapshot_file_checksum_of(reader->id + reader->block_number, head, stored,
                                  block->stored_size) != block->checksum) {
        return snapshot_file_refuse(reader, reader->offset, "the checksum of a block is wrong");
    }
    if (block->raw_size == 0) {
        memcpy(&reader->footer, stored, SNAPSHOT_FOOTER);
        uint64_t end = reader->offset + SNAPSHOT_BLOCK_HEAD + SNAPSHOT_FOOTER;
        if (reader->footer.raw_size != reader->raw_size ||
            reader->footer.offset != reader->offset) {
            return snapshot_file_refuse(reader, reader->offset,
                                        "blocks before the end mark are missing");
        }
        if (end != reader->window.file_size) {
            return snapshot_file_refuse(reader, end, "the file continues after its end mark");
        }
        return SNAPSHOT_END;
    }
    if (block->raw_size > room) {
        return SNAPSHOT_LARGER;
    }
    if (block->stored_size == block->raw_size) {
        memcpy(raw, stored, block->raw_size);
        return SNAPSHOT_BLOCK;
    }
    size_t size =
        ZSTD_decompressDCtx(reader->zstd, raw, block->raw_size, stored, block->stored_size);
    if (size != block->raw_size) {
        return snapshot_file_refuse(reader, reader->offset, "a block cannot be unpacked");
    }
    return SNAPSHOT_BLOCK;
}

enum snapshot_status snapshot_file_reader_next(struct snapshot_reader *reader, char *raw,
                                               size_t room, size_t *size) {
    struct block block;
    enum snapshot_status status = snapshot_file_read_block_head(reader, &block);
    if (status != SNAPSHOT_BLOCK) {
        return status;
    }
    bool is_usual = block.raw_size <= SNAPSHOT_BLOCK_SIZE;
    status =
        (is_usual ? snapshot_file_read_usual : snapshot_file_read_huge)(reader, &block, raw, room);
    if (status == SNAPSHOT_BLOCK || status == SNAPSHOT_LARGER) {
        *size = block.raw_size;
    }
    if (status == SNAPSHOT_BLOCK) {
        reader->offset += SNAPSHOT_BLOCK_HEAD + (uint64_t)block.stored_size;
        reader->raw_size += block.raw_size;
        reader->block_number++;
    }
    return status;
}

void snapshot_file_reader_close(struct snapshot_reader *reader) {
    disk_close(reader->window.fd);
    reader->window.fd = -1;
    ZSTD_freeDCtx(reader->zstd);
    reader->zstd = NULL;
    memory_free(reader->window.buffer);
    reader->window.buffer = NULL;
}
