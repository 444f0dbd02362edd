/* Journal files: groups of effects, each numbered and with a checksum of its own.
 *
 *     file     "LBJRNL01"  u64 id  u64 sequence of the first group  u64 checksum of these
 *              group ...
 *     group    u64 checksum of all that follows, seeded with the file's id
 *              u32 size of the payload (1 .. 2^31)
 *              u32 unsynced: sequence less the last one known to be on disk when it was written
 *              u64 sequence, xor the id
 *              u64 time: the clock's latest stamp in microseconds, the floor after a restart
 *              payload
 *
 * Integers are little endian, checksums XXH3 (64 bits). The id is random and secret: groups of
 * another file never pass for this one's, and no bytes that a client can send look like a group.
 *
 * The tail rule. A crash may leave anything behind the last sync: a part of a group, zeroes, holes
 * between whole groups. At the first place that is not a whole group, the rest of the file is
 * searched for one that says, by its sequence and unsynced, that the group expected here had been
 * on disk. Then the file is damaged, for a disk does not forget what was synced. Otherwise the tail
 * is torn, and may be cut here: nobody was promised what it held. Only the last increment may have
 * a torn tail; the others were synced as a whole before the next one began. */
#ifndef SERVER_JOURNAL_FILE_H
#define SERVER_JOURNAL_FILE_H

#include "server/disk.h"

enum {
    JOURNAL_FILE_HEAD = 32,
    JOURNAL_GROUP_HEAD = 32,
    JOURNAL_READ_SIZE = 1 << 20, /* what a reader reads at once */
};
#define JOURNAL_GROUP_SIZE_MAX (UINT32_C(1) << 31)

/* ---- writing ---- */

/* A journal that groups are appended to. */
struct journal_file {
    int fd;
    uint64_t id;
    uint64_t size; /* up to the end of the last group that was written whole */
};

/* Make the file and sync it, but not its directory: store_set does. false: errno says why, and
 * nothing is left behind unless it cannot be removed. */
MUST_CHECK bool journal_file_create(struct journal_file *file, int directory, const char *name,
                                    uint64_t first_sequence);
/* Go on with a file that a reader has read to size, of which id is the reader's. What is behind
 * size is cut off, and the cut is synced. false: errno says why. */
MUST_CHECK bool journal_file_continue(struct journal_file *file, int directory, const char *name,
                                      uint64_t id, uint64_t size);
/* Complete the head of a group: room for JOURNAL_GROUP_HEAD, then size bytes of payload. unsynced:
 * sequence less the last sequence that is known to be on disk. */
void journal_group_seal(char *group, uint32_t size, uint64_t sequence, uint64_t unsynced,
                        uint64_t time_us, uint64_t id);
/* Append sealed groups, all or none: on failure the part that was written is cut off again. false:
 * errno says why. *is_whole false: even the cut failed, and nothing may be appended any more. */
MUST_CHECK bool journal_file_append(struct journal_file *file, const char *groups, size_t size,
                                    bool *is_whole);
void journal_file_close(struct journal_file *file);

/* ---- reading ---- */

enum journal_status {
    JOURNAL_GROUP,
    JOURNAL_END,
    JOURNAL_TORN,    /* reader->torn; may be cut with journal_file_continue */
    JOURNAL_DAMAGED, /* reader->error */
    JOURNAL_FAILED,  /* the system said no, or there is no memory: reader->error */
};

struct journal_group {
    const char *payload; /* valid until the next call of journal_reader_next */
    uint32_t size;
    uint64_t sequence;
    uint64_t time_us;
    uint64_t offset; /* of its head in the file */
};

struct journal_torn {
    uint64_t offset;         /* where the whole groups end */
    uint64_t size;           /* of what is behind */
    uint64_t groups_behind;  /* whole groups in it */
    const char *description; /* what is wrong at offset */
};

struct journal_reader {
    struct disk_window window; /* the file and its size */
    const char *path;          /* borrowed, for messages */
    bool is_last;
    uint64_t id;
    uint64_t offset;          /* of the next group */
    uint64_t next_sequence;   /* expected there */
    uint64_t group_count;     /* read so far */
    struct journal_torn torn; /* also after JOURNAL_DAMAGED: what a cut would drop; size 0: no cut
                                 will do */
    char error[DISK_ERROR_MAX];
};

/* Read the file's head. The file (fd, which the reader closes, also when this fails) must begin
 * with the group first_sequence. is_last: no increment follows; only then can the tail be
 * JOURNAL_TORN. JOURNAL_GROUP: it can be read. A head is synced before a manifest names the file,
 * so one that is not whole is damage.
 *
 * A reader allocates; the thread that owns the boards reads. */
MUST_CHECK enum journal_status journal_reader_open(struct journal_reader *reader, int fd,
                                                   const char *path, uint64_t first_sequence,
                                                   bool is_last);
/* The next group, if it lies whole in memory behind the last one, which stays valid then. false:
 * ask journal_reader_next, after which no group before is. */
MUST_CHECK bool journal_reader_next_at_hand(struct journal_reader *reader,
                                            struct journal_group *group);
/* The next group; after anything but JOURNAL_GROUP it is over. A group longer than
 * JOURNAL_READ_SIZE takes memory for itself, and only once it has been seen to be whole. */
MUST_CHECK enum journal_status journal_reader_next(struct journal_reader *reader,
                                                   struct journal_group *group);
/* Also after journal_reader_open has failed. */
void journal_reader_close(struct journal_reader *reader);

#endif
