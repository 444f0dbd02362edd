/* One machine's disk: files and directories as the kernel shows them (the page cache), and what of
 * them has reached the platters.
 *
 * A killed process loses nothing of what it has written. A power cut keeps what was synced, and of the
 * rest any sectors of 512 bytes; of each directory's changes since its last sync it keeps any first
 * part, in order. Names are absolute paths with one "/" between parts.
 *
 * Calls return -errno for what fails. None of them takes time: that is its caller's part. */
#ifndef SIM_DISK_H
#define SIM_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "tests/simulation/sim_random.h"

struct sim_bytes {
    char *at;
    size_t size, capacity;
};

struct sim_range {
    size_t from, to;
};

struct sim_entry {
    char name[96];
    struct sim_node *node;
};

struct sim_node {
    enum { SIM_FILE, SIM_DIRECTORY, SIM_NULL } kind;
    uint64_t number;
    struct sim_bytes seen;    /* what reading shows */
    struct sim_bytes durable; /* what is on the platters */
    struct sim_range dirty,
        dirty_since_sync; /* not yet in durable; of that, written since a sync began */
    uint64_t sync_count;  /* begun */
    const void *locked_by;
    struct sim_node *parent;   /* of a directory */
    struct sim_entry *entries; /* of a directory */
    size_t entry_count, entry_capacity;
    struct sim_change *changes; /* since its last sync */
    size_t change_count, change_capacity;
};

struct sim_disk {
    struct sim_node *root;
    struct random *random;
    uint64_t next_number;
    /* Faults in force. */
    int64_t full_until;        /* writes that need room fail with ENOSPC */
    int64_t write_fails_until; /* EIO for writes */
    int64_t sync_fails_until;  /* EIO for syncs */
    bool loses_pages;          /* of a sync that fails: they count as written, as on Linux */
    int64_t slow_until;        /* syncs take slow_ns */
    int64_t slow_ns;
};

void sim_disk_init(struct sim_disk *disk, struct random *random);
/* The node at this path, below directory unless it begins with "/". NULL: there is none. */
struct sim_node *sim_disk_find(struct sim_disk *disk, struct sim_node *directory, const char *path);
/* As open(2): *node. */
int sim_disk_open(struct sim_disk *disk, struct sim_node *directory, const char *path, int flags,
                  struct sim_node **node);
int sim_disk_make_directory(struct sim_disk *disk, struct sim_node *directory, const char *path);
int sim_disk_unlink(struct sim_disk *disk, struct sim_node *directory, const char *path);
int sim_disk_rename(struct sim_disk *disk, struct sim_node *from_directory, const char *from,
                    struct sim_node *to_directory, const char *to);
ssize_t sim_disk_write(struct sim_disk *disk, struct sim_node *node, size_t offset,
                       const void *bytes, size_t size);
ssize_t sim_disk_read(const struct sim_node *node, size_t offset, void *bytes, size_t size);
int sim_disk_truncate(struct sim_node *node, size_t size);

/* A sync in two steps: what it will make durable is fixed when it begins. */
struct sim_sync {
    struct sim_node *node;
    char *bytes;
    size_t from, size, file_size, change_count;
    uint64_t number;
};
void sim_disk_begin_sync(struct sim_node *node, struct sim_sync *sync);
int sim_disk_end_sync(struct sim_disk *disk, struct sim_sync *sync);
/* How long a sync takes now. */
int64_t sim_disk_sync_ns(struct sim_disk *disk);

/* A file with these contents. */
void sim_disk_put(struct sim_disk *disk, const char *path, const char *text);
/* All names are durable: the machine has just booted. */
void sim_disk_settle(struct sim_disk *disk);
void sim_disk_cut_power(struct sim_disk *disk);
/* The process that has these locks is gone. */
void sim_disk_unlock(struct sim_node *node, const void *owner);

#endif
