/* Snapshot files: a stream of bytes in compressed blocks, and an end that counts them.
 *
 *     file     "LBSNAP01"  u64 id  u64 created, unix milliseconds  u64 checksum of these
 *              block ...
 *              end: a block of raw size 0 whose stored bytes are the footer; nothing behind it
 *     block    u64 checksum of all that follows, seeded with the file's id plus the block's number
 *              u32 raw size  u32 stored size  stored bytes
 *     footer   u64 sequence  u64 time  u64 boards  u64 members  u64 raw bytes  u64 its own offset
 *
 * Integers are little endian, checksums XXH3 (64 bits). Stored bytes are zstd's; where these would
 * not be fewer, and in blocks larger than SNAPSHOT_BLOCK_SIZE, they are the raw ones, and both
 * sizes are equal.
 *
 * What the stream holds is not known here. */
#ifndef SERVER_SNAPSHOT_FILE_H
#define SERVER_SNAPSHOT_FILE_H

#include "server/disk.h"

enum {
    SNAPSHOT_FILE_HEAD = 32,
    SNAPSHOT_BLOCK_HEAD = 16,
    SNAPSHOT_FOOTER = 48,
    SNAPSHOT_BLOCK_SIZE = 1 << 20, /* raw bytes of all blocks but those with one huge record */
    SNAPSHOT_LEVEL = 1,            /* of zstd */
};
/* No block is larger. */
#define SNAPSHOT_RAW_SIZE_MAX (UINT32_C(1) << 31)

struct snapshot_footer {
    uint64_t sequence; /* everything up to here is in the file */
    uint64_t time_us;
    uint64_t board_count;
    uint64_t member_count;
    uint64_t raw_size; /* these two the writer fills in */
    uint64_t offset;
};

/* ---- writing ---- */

struct snapshot_writer {
    int fd;
    uint64_t id;
    uint64_t block_number;
    uint64_t raw_size;         /* taken so far */
    uint64_t size;             /* of the file */
    uint64_t write_back_begin; /* what the disk has been told to write */
    uint64_t write_back_end;
    int level;
    void *zstd;
    char *stored; /* a block as it is written */
};

/* By the thread that owns the boards, for it allocates, as close does. false: no memory. */
MUST_CHECK bool snapshot_writer_init(struct snapshot_writer *writer, int level);
/* Make the file. Any thread. false: errno says why, nothing is left behind unless it cannot be
 * removed. */
MUST_CHECK bool snapshot_writer_open(struct snapshot_writer *writer, int directory,
                                     const char *name, uint64_t created_ms);
/* Append a block of 1 .. SNAPSHOT_RAW_SIZE_MAX bytes. Any thread, one at a time; so finish. false:
 * errno says why, and the file is of no use. */
MUST_CHECK bool snapshot_writer_block(struct snapshot_writer *writer, const char *raw,
                                      uint32_t raw_size);
/* Write the end and sync the file, but not its directory: store_set does. */
MUST_CHECK bool snapshot_writer_finish(struct snapshot_writer *writer,
                                       struct snapshot_footer *footer);
/* At any time; the file stays as it is. Also after init or open has failed. */
void snapshot_writer_close(struct snapshot_writer *writer);

/* ---- reading ---- */

enum snapshot_status {
    SNAPSHOT_BLOCK,
    SNAPSHOT_LARGER, /* the next block has *size raw bytes: call again with that much room */
    SNAPSHOT_END,    /* reader->footer */
    SNAPSHOT_DAMAGED,
    SNAPSHOT_FAILED, /* the system said no, or there is no memory */
};

struct snapshot_reader {
    struct disk_window window; /* the file and its size */
    const char *path;          /* borrowed, for messages */
    uint64_t id;
    uint64_t created_ms;
    uint64_t offset; /* of the next block */
    uint64_t block_number;
    uint64_t raw_size; /* given so far */
    void *zstd;
    struct snapshot_footer footer;
    char error[DISK_ERROR_MAX]; /* after SNAPSHOT_DAMAGED and SNAPSHOT_FAILED */
};

/* Read the file's head. fd is the reader's, also when this fails. By the thread that owns the
 * boards, for it allocates, as close does. SNAPSHOT_BLOCK: it can be read. */
MUST_CHECK enum snapshot_status snapshot_reader_open(struct snapshot_reader *reader, int fd,
                                                     const char *path);
/* The next block into raw, of room bytes: *size of them. Any thread, one at a time. SNAPSHOT_BLOCK
 * never comes before the block's checksum has been seen to be right, and SNAPSHOT_LARGER neither.
 * Room for SNAPSHOT_BLOCK_SIZE is enough unless a single record is longer. */
MUST_CHECK enum snapshot_status snapshot_reader_next(struct snapshot_reader *reader, char *raw,
                                                     size_t room, size_t *size);
/* Also after snapshot_reader_open has failed. */
void snapshot_reader_close(struct snapshot_reader *reader);

#endif
