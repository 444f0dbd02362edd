/* Groups for a replica that is behind the backlog: read from the journal's files by a thread, sealed as
 * messages (wire.h), for one replica at a time.
 *
 *     place --ask--> READS (thread) --feed_take_read--> place->ready --> session's output
 *
 * An open file stays readable when a rewrite of the journal removes it; the next one must then be there. Only
 * what is written is read: groups up to persistence_written_group. */
#ifndef SERVER_FEED_DISK_H
#define SERVER_FEED_DISK_H

#include "codec/buffer.h"
#include "server/durability/persistence.h"
#include "server/system/worker.h"

struct feed;

/* One replica's place in the files; zeroed but for fd: not there yet. */
struct feed_disk_place {
    int fd; /* -1: none is open */
    uint64_t file_id, offset;
    uint64_t next_group;
    struct buffer ready; /* messages, to be sent */
    size_t room;         /* of the window: more for a long group; 0: as usual */
};

enum feed_disk_result {
    FEED_DISK_READ, /* ready has more; next_group is behind it */
    FEED_DISK_END,  /* the file has no more: the next one, if there is one */
    FEED_DISK_NONE, /* there is no such group: the replica needs a copy */
    FEED_DISK_OUT_OF_MEMORY,
};

struct feed_disk {
    struct worker worker;
    bool is_started;
    struct feed_disk_place *place; /* whose job the thread does; NULL: nobody's any more */
    /* the thread's, during a job */
    struct feed_disk_place job;
    char path[512];
    uint64_t limit_group;
    struct buffer raw, out;
    size_t larger_size; /* a group that needs so much room; 0: none */
    enum feed_disk_result result;
    struct feed *feed;
};

/* The thread is started when it is first needed. */
void feed_disk_init(struct feed_disk *reader, struct feed *feed);
/* The loop turns once more before the memory may be freed. */
void feed_disk_deinit(struct feed_disk *reader);

/* feed.c: it has read for a place, or could not. */
void feed_take_read(struct feed *feed, struct feed_disk_place *place, enum feed_disk_result result);

/* Read more for this place, which has sent what was ready. true: feed_take_read is called later. false: the
 * thread is busy, try again; or it was called at once, as there is no such group, or no thread. */
bool feed_disk_ask(struct feed_disk *reader, struct feed_disk_place *place, uv_loop_t *loop,
                   const struct persistence *persistence);
/* Close its file, and free what it has. */
void feed_disk_leave(struct feed_disk *reader, struct feed_disk_place *place);

#endif
