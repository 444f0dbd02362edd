/* Journal files: groups of effects, each numbered and with its own checksum.
 *
 *     file     "LBJOUR01"  u64 id  u64 sequence of the first group  u64 checksum of these
 *              group ...
 *     group    u64 checksum of all that follows, seeded with the file's id
 *              u32 size of the payload (1 .. 2^31 - 1); with bit 31: linked to the next group
 *              u32 unsynced: sequence minus the last one known to be on disk at the time of writing
 *              u64 sequence, xor the id
 *              u64 time: the clock's latest stamp in microseconds, the floor after a restart
 *              payload
 *
 * Integers are little endian, checksums XXH3 (64 bits). The id is random and secret: a group of
 * another file is never accepted in this one, and no bytes that a client can send look like a
 * group.
 *
 * Linked groups. A change with long effects is split into several groups, so that none is larger
 * than a reader's buffer. All but the last are linked to the next. They are valid together or not
 * at all: a reader returns the first only after it has verified all of them.
 *
 * The tail rule. A crash may leave anything after the last sync: a partial group, zeroes, holes
 * between whole groups. At the first invalid group, the reader searches the rest of the file for a
 * group whose sequence and unsynced prove that the group expected here had been on disk. If there
 * is one, the file is damaged, because a disk does not lose what was synced. Otherwise the tail is
 * torn and may be cut here: nothing in it was acknowledged as durable. Only the last increment may
 * have a torn tail; the others were synced as a whole before the next one began.
 *
 * Room. With appendfsync always the last increment ends in zeroes that later groups are written over:
 *
 *     group group group 000000000000        a sync then writes the groups' pages and nothing else,
 *                       ^ size      ^ room  since neither the file's size nor its blocks change
 *
 * Such a file's size is a multiple of JOURNAL_ROOM_SIZE, and its zeroes are its end: nothing is said of them. A file is cut to its groups when
 * it is closed, and before the next one begins. */
#ifndef SERVER_JOURNAL_FILE_H
#define SERVER_JOURNAL_FILE_H

#include "server/system/disk.h"

enum {
    JOURNAL_FILE_HEAD = 32,
    JOURNAL_GROUP_HEAD = 32,
    JOURNAL_READ_SIZE = 1 << 20, /* bytes per read */
    JOURNAL_ROOM_SIZE = 1 << 18,
    /* A longer batch pays for the change of the file's size, and its zeroes would be written in vain. */
    JOURNAL_ROOM_BATCH_MAX = 1 << 14,
};
#define JOURNAL_GROUP_SIZE_MAX (UINT32_C(1) << 31)

/* ---- writing ---- */

/* An open journal to append groups to. */
struct journal_file {
    int fd;
    uint64_t id;
    uint64_t size;      /* up to the end of the last group written */
    uint64_t kept_size; /* up to the end of the last one not linked to the next */
    /* As far as replies may show: it is written or, with appendfsync always, synced. The writer sets it. */
    uint64_t answered_size;
    /* The file has zeroes from size up to here; at most size: it ends with its groups. */
    uint64_t room_end;
    bool makes_room; /* set by the writer: small batches get room for more, */
    bool is_cramped; /* unless the disk has had none */
};

/* Create the file and sync it, but not its directory: store_set does that. false: errno says why,
 * and the file is removed if possible. */
MUST_CHECK bool journal_file_create(struct journal_file *file, int directory, const char *name,
                                    uint64_t first_sequence);
/* Continue a file that a reader has read up to size; id is the reader's. Everything after size is
 * cut off, and the cut is synced. false: errno says why. */
MUST_CHECK bool journal_file_continue(struct journal_file *file, int directory, const char *name,
                                      uint64_t id, uint64_t size);
struct journal_group_head {
    uint32_t size; /* of the payload */
    bool is_linked;
    uint64_t sequence;
    uint64_t unsynced; /* sequence minus the last one known to be on disk */
    uint64_t time_us;
};
/* Receives each group when it is complete, also one that is not written. The head's unsynced means
 * nothing. Both NULL: effects are lost for lack of memory, and what follows does not go on from here. */
typedef void journal_tap(void *context, const struct journal_group_head *head, const char *payload);
/* Fill in the head of a group: JOURNAL_GROUP_HEAD bytes of room, then the payload. */
void journal_file_seal_group(char *group, const struct journal_group_head *head, uint64_t id);
/* Read the head of a sealed group that is whole in size bytes: JOURNAL_GROUP_HEAD, then the payload.
 * false: it is none, or its checksum is wrong. */
MUST_CHECK bool journal_file_open_group(const char *group, size_t size, uint64_t id,
                                        struct journal_group_head *head);
/* The same for a group that was opened before. */
void journal_file_read_group_head(const char *group, uint64_t id, struct journal_group_head *head);
/* Append sealed groups, all or none. kept: the number of these bytes up to the end of the last
 * group that is not linked to the next. A linked group cannot be relied on before the last group of
 * its chain is written.
 *
 * false: errno says why. The partial write is cut off again, together with earlier groups linked to
 * it: the file ends at kept_size. *is_whole false: the cut failed too, and nothing may be appended
 * any more. */
MUST_CHECK bool journal_file_append(struct journal_file *file, const char *groups, size_t size,
                                    size_t kept, bool *is_whole);
/* After a sync that failed, with appendfsync always: cut off what nobody was answered for. The system takes
 * what it could not write for written: a restart would read it and go on behind it, until the machine
 * fails. Nothing may be appended any more. */
void journal_file_cut_unanswered(struct journal_file *file);
/* Cut off the room, before another file follows. false: errno says why; the file can go on. */
MUST_CHECK bool journal_file_cut_room(struct journal_file *file);
void journal_file_close(struct journal_file *file);

/* ---- reading ---- */

enum journal_status {
    JOURNAL_GROUP,
    JOURNAL_END,
    JOURNAL_TORN,    /* reader->torn; journal_file_continue may cut it */
    JOURNAL_DAMAGED, /* reader->error */
    JOURNAL_FAILED,  /* a system call failed, or there is no memory: reader->error */
};

/* The id in the head of a file (JOURNAL_FILE_HEAD bytes); 0: the head is not valid. */
MUST_CHECK uint64_t journal_file_id(const char *head);
/* The sequence of the first group, as the file's head has it. false: it is no journal. */
MUST_CHECK bool journal_file_peek(int fd, uint64_t *first_sequence);

struct journal_group {
    const char *payload; /* valid until the next call of journal_file_reader_next */
    uint32_t size;
    uint64_t sequence;
    uint64_t time_us; /* 0: it is linked to the next */
    uint64_t end_us;  /* time_us of the last group of its chain */
    uint64_t offset;  /* of its head, in the file */
};

struct journal_torn {
    uint64_t offset;         /* end of the whole groups */
    uint64_t size;           /* of the rest of the file */
    uint64_t groups_behind;  /* whole groups in the rest */
    bool is_cut_short;       /* it ends within a group, as a file copied while it was written */
    const char *description; /* what is wrong at offset */
};

struct journal_reader {
    struct disk_window window; /* the file and its size */
    const char *path;          /* borrowed, for messages */
    bool is_last;
    uint64_t id;
    uint64_t offset;          /* of the next group */
    uint64_t chain_us;        /* time of the last of them */
    uint64_t whole_until;     /* linked groups before this offset are verified */
    uint64_t next_sequence;   /* expected at offset */
    uint64_t group_count;     /* read so far */
    struct journal_torn torn; /* also set after JOURNAL_DAMAGED: what a cut would drop; size 0: a
                               * cut does not help */
    char error[DISK_ERROR_MAX];
};

/* Read the file's head. The file must begin with group first_sequence. The reader takes fd and
 * closes it, even when this fails. is_last: no increment follows; only then can the tail be
 * JOURNAL_TORN. JOURNAL_GROUP: success. A head is synced before a manifest names the file, so an
 * invalid head is damage.
 *
 * A reader allocates, so only the thread that owns the boards may use it. */
MUST_CHECK enum journal_status journal_file_reader_open(struct journal_reader *reader, int fd,
                                                        const char *path, uint64_t first_sequence,
                                                        bool is_last);
/* The next group, if it is completely in the buffer after the last one, which then stays valid.
 * false: call journal_file_reader_next, which invalidates all earlier groups. */
MUST_CHECK bool journal_file_reader_next_at_hand(struct journal_reader *reader,
                                                 struct journal_group *group);
/* Read the next group. After anything but JOURNAL_GROUP reading is over, and offset is after the
 * last valid group. A group longer than JOURNAL_READ_SIZE gets its own buffer, allocated only after
 * the group was verified. */
MUST_CHECK enum journal_status journal_file_reader_next(struct journal_reader *reader,
                                                        struct journal_group *group);
/* Also after journal_file_reader_open has failed. */
void journal_file_reader_close(struct journal_reader *reader);

#endif
