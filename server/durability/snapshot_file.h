/* Snapshot files: a byte stream in compressed blocks, ended by a footer with totals.
 *
 *     file     "LBBASE01"  u64 id  u64 created, unix milliseconds  u64 checksum of these
 *              block ...
 *              end: a block of raw size 0 whose stored bytes are the footer; nothing follows it
 *     block    u64 checksum of all that follows, seeded with the file's id plus the block's number
 *              u32 raw size  u32 stored size  stored bytes
 *     footer   u64 sequence  u64 time  u64 boards  u64 members  u64 raw bytes  u64 its own offset
 *
 * Integers are little endian, checksums XXH3 (64 bits). Stored bytes are compressed with zstd. If
 * that saves nothing, and in blocks larger than SNAPSHOT_BLOCK_SIZE, they are the raw bytes, and
 * both sizes are equal.
 *
 * This module does not interpret the stream. */
#ifndef SERVER_SNAPSHOT_FILE_H
#define SERVER_SNAPSHOT_FILE_H

#include "server/system/disk.h"

enum {
    SNAPSHOT_FILE_HEAD = 32,
    SNAPSHOT_BLOCK_HEAD = 16,
    SNAPSHOT_FOOTER = 48,
    SNAPSHOT_BLOCK_SIZE = 1 << 20, /* raw bytes; only a single larger record exceeds it */
    SNAPSHOT_LEVEL = 1,            /* zstd's compression level */
};
/* Limit of a block's raw size. */
#define SNAPSHOT_RAW_SIZE_MAX (UINT32_C(1) << 31)

/* As in the file. */
struct snapshot_footer {
    uint64_t sequence; /* the file holds everything up to here */
    uint64_t time_us;
    uint64_t board_count;
    uint64_t member_count;
    uint64_t raw_size; /* the writer sets raw_size and offset */
    uint64_t offset;
};

/* ---- writing ---- */

struct snapshot_writer {
    int fd;
    uint64_t id;
    uint64_t block_number;
    uint64_t raw_size;         /* written so far */
    uint64_t size;             /* of the file */
    uint64_t write_back_begin; /* the range passed to disk->write_back so far */
    uint64_t write_back_end;
    int level;
    bool is_stream; /* fd is a pipe: nothing is synced */
    void *zstd;
    char *stored; /* buffer for a compressed block */
};

/* Allocates, as close does: call both from the thread that owns the boards. false: no memory. */
MUST_CHECK bool snapshot_file_writer_init(struct snapshot_writer *writer, int level);
/* Create the file. Any thread. false: errno says why, and the file is removed if possible. */
MUST_CHECK bool snapshot_file_writer_open(struct snapshot_writer *writer, int directory,
                                          const char *name, uint64_t created_ms);
/* The same into a pipe, which the writer takes. */
MUST_CHECK bool snapshot_file_writer_open_pipe(struct snapshot_writer *writer, int fd,
                                               uint64_t created_ms);
/* Append a block of 1 .. SNAPSHOT_RAW_SIZE_MAX bytes. Any thread, one at a time; the same holds for
 * finish. false: errno says why, and the file is unusable. */
MUST_CHECK bool snapshot_file_writer_block(struct snapshot_writer *writer, const char *raw,
                                           uint32_t raw_size);
/* Write the footer and sync the file, but not its directory: store_set does that. */
MUST_CHECK bool snapshot_file_writer_finish(struct snapshot_writer *writer,
                                            struct snapshot_footer *footer);
/* May be called at any time, also after init or open has failed; the file stays as it is. */
void snapshot_file_writer_close(struct snapshot_writer *writer);

/* ---- reading ---- */

/* Read the footer of a whole file, without verifying what is before it. false: it does not begin or end
 * as a snapshot does. */
MUST_CHECK bool snapshot_file_peek(int fd, struct snapshot_footer *footer);

enum snapshot_status {
    SNAPSHOT_BLOCK,
    SNAPSHOT_LARGER, /* the next block has *size raw bytes: call again with that much room */
    SNAPSHOT_END,    /* reader->footer */
    SNAPSHOT_DAMAGED,
    SNAPSHOT_FAILED, /* a system call failed, or there is no memory */
};

struct snapshot_reader {
    struct disk_window window; /* the file and its size */
    const char *path;          /* borrowed, for messages */
    uint64_t id;
    uint64_t created_ms;
    uint64_t offset; /* of the next block */
    uint64_t block_number;
    uint64_t raw_size; /* returned so far */
    void *zstd;
    struct snapshot_footer footer;
    char error[DISK_ERROR_MAX]; /* after SNAPSHOT_DAMAGED and SNAPSHOT_FAILED */
};

/* Read the file's head. The reader takes fd, even when this fails. Allocates, as close does: call
 * both from the thread that owns the boards. SNAPSHOT_BLOCK: success. */
MUST_CHECK enum snapshot_status snapshot_file_reader_open(struct snapshot_reader *reader, int fd,
                                                          const char *path);
/* Read the next block into raw, which has room bytes; *size is its size. Any thread, one at a time.
 * SNAPSHOT_BLOCK and SNAPSHOT_LARGER are returned only after the block's checksum was verified.
 * SNAPSHOT_BLOCK_SIZE bytes of room are enough unless a single record is longer. */
MUST_CHECK enum snapshot_status snapshot_file_reader_next(struct snapshot_reader *reader, char *raw,
                                                          size_t room, size_t *size);
/* Also after snapshot_file_reader_open has failed. */
void snapshot_file_reader_close(struct snapshot_reader *reader);

#endif
