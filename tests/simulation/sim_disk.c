/* See sim_disk.h. Nodes are never freed: a schedule is a process of its own. */
#include "tests/simulation/sim_disk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/simulation/sim_events.h"

enum { SECTOR = 512 };

/* A change of a directory: "from" is gone (unless empty), "to" stands for node (unless empty). */
struct sim_change {
    char from[96], to[96];
    struct sim_node *node;
    struct sim_node *from_before, *to_before; /* what the names stood for; NULL: nothing */
};

static struct sim_node *sim_disk_make(struct sim_disk *disk, int kind) {
    struct sim_node *node = calloc(1, sizeof *node);
    node->kind = kind;
    node->number = ++disk->next_number;
    return node;
}

static void sim_disk_reserve(struct sim_bytes *bytes, size_t size) {
    if (size > bytes->capacity) {
        bytes->capacity = size + size / 2 + 4096;
        bytes->at = realloc(bytes->at, bytes->capacity);
    }
    if (size > bytes->size) {
        memset(bytes->at + bytes->size, 0, size - bytes->size);
    }
    bytes->size = size;
}

void sim_disk_init(struct sim_disk *disk, struct random *random) {
    *disk = (struct sim_disk){.random = random};
    disk->root = sim_disk_make(disk, SIM_DIRECTORY);
}

/* ---- directories ---- */

static struct sim_entry *sim_disk_entry(struct sim_node *directory, const char *name) {
    for (size_t i = 0; i < directory->entry_count; i++) {
        if (strcmp(directory->entries[i].name, name) == 0) {
            return &directory->entries[i];
        }
    }
    return NULL;
}

static void sim_disk_put_entry(struct sim_node *directory, const char *name,
                               struct sim_node *node) {
    struct sim_entry *entry = sim_disk_entry(directory, name);
    if (node == NULL) {
        if (entry != NULL) {
            *entry = directory->entries[--directory->entry_count];
        }
        return;
    }
    if (entry == NULL) {
        if (directory->entry_count == directory->entry_capacity) {
            directory->entry_capacity = directory->entry_capacity * 2 + 8;
            directory->entries =
                realloc(directory->entries, directory->entry_capacity * sizeof *directory->entries);
        }
        entry = &directory->entries[directory->entry_count++];
        snprintf(entry->name, sizeof entry->name, "%s", name);
    }
    entry->node = node;
}

static struct sim_node *sim_disk_named(struct sim_node *directory, const char *name) {
    struct sim_entry *entry = sim_disk_entry(directory, name);
    return entry != NULL ? entry->node : NULL;
}

/* Changes are applied to the entries at once, and kept to be undone by a power cut. */
static void sim_disk_change(struct sim_node *directory, const char *from, const char *to,
                            struct sim_node *node) {
    if (directory->change_count == directory->change_capacity) {
        directory->change_capacity = directory->change_capacity * 2 + 16;
        directory->changes =
            realloc(directory->changes, directory->change_capacity * sizeof *directory->changes);
    }
    struct sim_change *change = &directory->changes[directory->change_count++];
    *change = (struct sim_change){
        .node = node,
        .from_before = sim_disk_named(directory, from),
        .to_before = sim_disk_named(directory, to),
    };
    snprintf(change->from, sizeof change->from, "%s", from);
    snprintf(change->to, sizeof change->to, "%s", to);
    if (from[0] != '\0') {
        sim_disk_put_entry(directory, change->from, NULL);
    }
    if (to[0] != '\0') {
        sim_disk_put_entry(directory, change->to, node);
    }
}

/* The directory that holds the path's last part, and that part; "": the path is that directory. */
static struct sim_node *sim_disk_walk(struct sim_disk *disk, struct sim_node *directory,
                                      const char *path, char last[96]) {
    struct sim_node *at = path[0] == '/' || directory == NULL ? disk->root : directory;
    last[0] = '\0';
    for (;;) {
        path += strspn(path, "/");
        size_t size = strcspn(path, "/");
        if (size == 0) {
            return at;
        }
        if (last[0] != '\0') {
            at = sim_disk_named(at, last);
            if (at == NULL || at->kind != SIM_DIRECTORY) {
                return NULL;
            }
        }
        snprintf(last, 96, "%.*s", (int)size, path);
        if (strcmp(last, "..") == 0 || strcmp(last, ".") == 0) {
            at = last[1] == '.' && at->parent != NULL ? at->parent : at;
            last[0] = '\0';
        }
        path += size;
    }
}

struct sim_node *sim_disk_find(struct sim_disk *disk, struct sim_node *directory,
                               const char *path) {
    char last[96];
    struct sim_node *at = sim_disk_walk(disk, directory, path, last);
    if (at == NULL || last[0] == '\0') {
        return at;
    }
    struct sim_entry *entry = sim_disk_entry(at, last);
    return entry != NULL ? entry->node : NULL;
}

int sim_disk_open(struct sim_disk *disk, struct sim_node *directory, const char *path, int flags,
                  struct sim_node **node) {
    char last[96];
    struct sim_node *at = sim_disk_walk(disk, directory, path, last);
    if (at == NULL) {
        return -ENOENT;
    }
    struct sim_entry *entry = last[0] != '\0' ? sim_disk_entry(at, last) : NULL;
    *node = last[0] == '\0' ? at : entry != NULL ? entry->node : NULL;
    if (*node != NULL && (flags & O_EXCL) != 0) {
        return -EEXIST;
    }
    if (*node == NULL) {
        if ((flags & O_CREAT) == 0) {
            return -ENOENT;
        }
        if (disk->full_until > sim_now()) {
            return -ENOSPC;
        }
        *node = sim_disk_make(disk, SIM_FILE);
        sim_disk_change(at, "", last, *node);
    }
    if ((flags & O_DIRECTORY) != 0 && (*node)->kind != SIM_DIRECTORY) {
        return -ENOTDIR;
    }
    if ((flags & O_TRUNC) != 0 && (*node)->kind == SIM_FILE) {
        (void)sim_disk_truncate(*node, 0);
    }
    return 0;
}

int sim_disk_make_directory(struct sim_disk *disk, struct sim_node *directory, const char *path) {
    char last[96];
    struct sim_node *at = sim_disk_walk(disk, directory, path, last);
    if (at == NULL) {
        return -ENOENT;
    }
    if (last[0] == '\0' || sim_disk_entry(at, last) != NULL) {
        return -EEXIST;
    }
    if (disk->full_until > sim_now()) {
        return -ENOSPC;
    }
    struct sim_node *made = sim_disk_make(disk, SIM_DIRECTORY);
    made->parent = at;
    sim_disk_change(at, "", last, made);
    return 0;
}

int sim_disk_unlink(struct sim_disk *disk, struct sim_node *directory, const char *path) {
    char last[96];
    struct sim_node *at = sim_disk_walk(disk, directory, path, last);
    if (at == NULL || sim_disk_entry(at, last) == NULL) {
        return -ENOENT;
    }
    sim_disk_change(at, last, "", NULL);
    return 0;
}

int sim_disk_rename(struct sim_disk *disk, struct sim_node *from_directory, const char *from,
                    struct sim_node *to_directory, const char *to) {
    char old_name[96], new_name[96];
    struct sim_node *at = sim_disk_walk(disk, from_directory, from, old_name);
    struct sim_node *target = sim_disk_walk(disk, to_directory, to, new_name);
    struct sim_entry *entry = at != NULL ? sim_disk_entry(at, old_name) : NULL;
    if (entry == NULL || target == NULL) {
        return -ENOENT;
    }
    struct sim_node *node = entry->node;
    if (at == target) {
        sim_disk_change(at, old_name, new_name, node);
    } else {
        sim_disk_change(target, "", new_name, node);
        sim_disk_change(at, old_name, "", NULL);
    }
    return 0;
}

/* ---- files ---- */

static void sim_disk_extend(struct sim_range *range, size_t from, size_t to) {
    bool is_empty = range->from == range->to;
    range->from = is_empty || from < range->from ? from : range->from;
    range->to = is_empty || to > range->to ? to : range->to;
}

static void sim_disk_dirty(struct sim_node *node, size_t from, size_t to) {
    sim_disk_extend(&node->dirty, from, to);
    sim_disk_extend(&node->dirty_since_sync, from, to);
}

ssize_t sim_disk_write(struct sim_disk *disk, struct sim_node *node, size_t offset,
                       const void *bytes, size_t size) {
    if (disk->write_fails_until > sim_now()) {
        return -EIO;
    }
    if (disk->full_until > sim_now() && offset + size > node->seen.size) {
        /* What is left of the last block still fits, as on real disks. */
        size_t room = (4096 - node->seen.size % 4096) % 4096;
        size_t fits = node->seen.size + room > offset ? node->seen.size + room - offset : 0;
        if (fits == 0) {
            return -ENOSPC;
        }
        size = fits < size ? fits : size;
    }
    if (offset + size > node->seen.size) {
        sim_disk_reserve(&node->seen, offset + size);
    }
    memcpy(node->seen.at + offset, bytes, size);
    sim_disk_dirty(node, offset, offset + size);
    return (ssize_t)size;
}

ssize_t sim_disk_read(const struct sim_node *node, size_t offset, void *bytes, size_t size) {
    if (offset >= node->seen.size) {
        return 0;
    }
    size = size < node->seen.size - offset ? size : node->seen.size - offset;
    memcpy(bytes, node->seen.at + offset, size);
    return (ssize_t)size;
}

int sim_disk_truncate(struct sim_node *node, size_t size) {
    sim_disk_reserve(&node->seen, size);
    struct sim_range *ranges[] = {&node->dirty, &node->dirty_since_sync};
    for (int i = 0; i < 2; i++) {
        ranges[i]->to = ranges[i]->to < size ? ranges[i]->to : size;
        ranges[i]->from = ranges[i]->from < ranges[i]->to ? ranges[i]->from : ranges[i]->to;
    }
    return 0;
}

/* ---- syncs ---- */

/* What is dirty stays so until the sync ends: whoever asked for it may be killed meanwhile. */
void sim_disk_begin_sync(struct sim_node *node, struct sim_sync *sync) {
    *sync = (struct sim_sync){
        .node = node,
        .from = node->dirty.from,
        .size = node->dirty.to - node->dirty.from,
        .number = ++node->sync_count,
        .file_size = node->seen.size,
        .change_count = node->change_count,
    };
    if (sync->size > 0) {
        sync->bytes = malloc(sync->size);
        memcpy(sync->bytes, node->seen.at + sync->from, sync->size);
    }
    node->dirty_since_sync = (struct sim_range){.from = 0};
}

int sim_disk_end_sync(struct sim_disk *disk, struct sim_sync *sync) {
    struct sim_node *node = sync->node;
    int result = 0;
    if (disk->sync_fails_until > sim_now()) {
        result = -EIO;
    } else if (node->kind == SIM_DIRECTORY) {
        node->change_count -=
            sync->change_count < node->change_count ? sync->change_count : node->change_count;
        memmove(node->changes, node->changes + sync->change_count,
                node->change_count * sizeof *node->changes);
    } else {
        sim_disk_reserve(&node->durable, sync->file_size);
        if (sync->size > 0) {
            memcpy(node->durable.at + sync->from, sync->bytes, sync->size);
        }
    }
    if (sync->number == node->sync_count && (result == 0 || disk->loses_pages)) {
        node->dirty = node->dirty_since_sync;
    }
    free(sync->bytes);
    return result;
}

int64_t sim_disk_sync_ns(struct sim_disk *disk) {
    int64_t ns = sim_random_between(disk->random, 50, 1500) * SIM_US;
    return disk->slow_until > sim_now() ? ns + disk->slow_ns : ns;
}

void sim_disk_put(struct sim_disk *disk, const char *path, const char *text) {
    struct sim_node *node;
    char part[256];
    for (const char *at = strchr(path + 1, '/'); at != NULL; at = strchr(at + 1, '/')) {
        snprintf(part, sizeof part, "%.*s", (int)(at - path), path);
        (void)sim_disk_make_directory(disk, NULL, part);
    }
    if (sim_disk_open(disk, NULL, path, O_CREAT | O_TRUNC, &node) == 0) {
        sim_disk_reserve(&node->seen, strlen(text));
        memcpy(node->seen.at, text, strlen(text));
        sim_disk_reserve(&node->durable, strlen(text));
        memcpy(node->durable.at, text, strlen(text));
    }
}

static void sim_disk_settle_below(struct sim_node *node) {
    node->change_count = 0;
    for (size_t i = 0; i < node->entry_count; i++) {
        sim_disk_settle_below(node->entries[i].node);
    }
}

void sim_disk_settle(struct sim_disk *disk) {
    sim_disk_settle_below(disk->root);
}

/* ---- power ---- */

static void sim_disk_tear(struct sim_disk *disk, struct sim_node *node) {
    size_t low = node->durable.size < node->seen.size ? node->durable.size : node->seen.size;
    size_t high = node->durable.size > node->seen.size ? node->durable.size : node->seen.size;
    unsigned kind = (unsigned)random_below(disk->random, 3);
    if (kind == 0) { /* all that was written is there */
        sim_disk_reserve(&node->durable, node->seen.size);
        memcpy(node->durable.at, node->seen.at, node->seen.size);
    } else if (kind == 1) { /* any sectors, and any size between */
        size_t size = low + random_below(disk->random, high - low + 1);
        sim_disk_reserve(&node->durable, size);
        for (size_t at = 0; at < size; at += SECTOR) {
            size_t end = at + SECTOR < size ? at + SECTOR : size;
            end = end < node->seen.size ? end : node->seen.size;
            if (at < end && memcmp(node->durable.at + at, node->seen.at + at, end - at) != 0 &&
                sim_random_chance(disk->random, 50)) {
                memcpy(node->durable.at + at, node->seen.at + at, end - at);
            }
        }
    }
    sim_disk_reserve(&node->seen, node->durable.size);
    memcpy(node->seen.at, node->durable.at, node->durable.size);
    node->dirty = node->dirty_since_sync = (struct sim_range){.from = 0};
    node->locked_by = NULL;
}

/* Take back the changes behind the first `kept`. */
static void sim_disk_undo(struct sim_node *directory, size_t kept) {
    for (size_t i = directory->change_count; i-- > kept;) {
        const struct sim_change *change = &directory->changes[i];
        if (change->to[0] != '\0') {
            sim_disk_put_entry(directory, change->to, change->to_before);
        }
        if (change->from[0] != '\0') {
            sim_disk_put_entry(directory, change->from, change->from_before);
        }
    }
}

static void sim_disk_cut(struct sim_disk *disk, struct sim_node *node) {
    if (node->kind == SIM_FILE) {
        sim_disk_tear(disk, node);
        return;
    }
    size_t kept = random_below(disk->random, node->change_count + 1);
    sim_disk_undo(node, kept);
    node->change_count = 0;
    for (size_t i = 0; i < node->entry_count; i++) {
        if (node->entries[i].node->kind != SIM_NULL) {
            sim_disk_cut(disk, node->entries[i].node);
        }
    }
}

void sim_disk_cut_power(struct sim_disk *disk) {
    sim_disk_cut(disk, disk->root);
}

void sim_disk_unlock(struct sim_node *node, const void *owner) {
    if (node->locked_by == owner) {
        node->locked_by = NULL;
    }
}
