/* The directory that a server keeps its boards in, and the manifest that says which of its files
 * are the boards:
 *
 *     lock                    held by the running server; its process id as text
 *     leaderboard.manifest    below
 *     leaderboard.3.base      a snapshot (snapshot_file.h); at most one
 *     leaderboard.4.journal   increments behind it, in order (journal_file.h)
 *     leaderboard.5.journal
 *
 *     leaderboard manifest 1
 *     base leaderboard.3.base sequence 81250
 *     journal leaderboard.4.journal first 81251
 *     journal leaderboard.5.journal first 90012
 *     checksum 5f1c0d2b9a8e7f34
 *
 * The checksum is XXH3 (64 bits) of all lines before it. The manifest is replaced as a whole: what
 * it names was on disk before it, and what it no longer names is removed after it. So whatever
 * happens in between, a whole state is found, and files of no use, which the next open removes.
 *
 * Nothing here allocates. All functions block, and any thread may call them, one at a time. */
#ifndef SERVER_STORE_H
#define SERVER_STORE_H

#include "codec/bytes.h"
#include "server/disk.h"

enum {
    STORE_JOURNALS_MAX = 256,
    STORE_NAME_MAX = 48, /* room for the name of any of its files */
    STORE_PATH_MAX = 1024,
    STORE_MANIFEST_MAX = 64 + 112 * (STORE_JOURNALS_MAX + 1),
};
#define STORE_MANIFEST_NAME "leaderboard.manifest"
#define STORE_LOCK_NAME     "lock"
/* What to do about damage, behind any message that names file and offset. */
#define STORE_ADVICE                                                                               \
    "restore the directory from a backup, or see what leaderboard-server --check says of it"

enum store_kind { STORE_BASE, STORE_JOURNAL };

struct store_journal {
    uint64_t number;
    uint64_t first_sequence; /* of its first group, also while it has none */
};

/* What a manifest says. All zero: nothing was ever kept. */
struct store_state {
    uint64_t base_number;   /* 0: there is no base, and everything is in the journals */
    uint64_t base_sequence; /* the last one that is in the base */
    uint32_t journal_count;
    struct store_journal journals[STORE_JOURNALS_MAX]; /* numbers and sequences never fall */
};

struct store {
    int directory; /* descriptors; -1: none */
    int lock;
    bool has_manifest;
    uint64_t next_number; /* above that of every file that is or was there */
    struct store_state state;
    char path[STORE_PATH_MAX]; /* for messages */
};

enum store_status {
    STORE_OK,
    STORE_MISSING, /* no such directory, or nothing was ever kept in it */
    STORE_IN_USE,  /* another server has it */
    STORE_DAMAGED, /* its files contradict each other */
    STORE_FAILED,  /* the system says no */
};

enum store_mode {
    STORE_READ,   /* nothing is changed; a lock is held if there is a file for it */
    STORE_USE,    /* what the manifest does not name is removed, with a line in the log for each */
    STORE_CLAIM,  /* the same, and a directory that is not there is made; a manifest is to be made
                     with store_begin before any other file */
    STORE_CREATE, /* the same, and that is done */
};

/* Open the directory `name` in the directory `parent` and lock it; a child that inherits the store
 * holds the lock as well. A directory without a manifest is as good as none, unless there are bases
 * or journals in it: then it is damaged.
 *
 * Not STORE_OK: error (DISK_ERROR_MAX) says what is wrong and what to do; nothing is held. */
MUST_CHECK enum store_status store_open(struct store *store, const char *parent, const char *name,
                                        enum store_mode mode, char *error);
/* Make the manifest, if there is none: from then on a base or journal without one is known to be
 * wrong. The only part of opening that waits for the disk. false: errno says why; it may be tried
 * again. */
MUST_CHECK bool store_begin(struct store *store);
/* Write this process's id into the lock, as opening does: after going to the background, where the
 * lock is still held. */
void store_note_process(const struct store *store);
/* Give the lock back. The files stay. */
void store_close(struct store *store);

/* A number for a new file. */
uint64_t store_take_number(struct store *store);
/* "leaderboard.4.journal"; out: STORE_NAME_MAX. */
void store_print_name(char *out, enum store_kind kind, uint64_t number);
/* The same with its directory before it, for messages; out: STORE_PATH_MAX + STORE_NAME_MAX. */
void store_print_path(const struct store *store, char *out, enum store_kind kind, uint64_t number);

enum store_set_status {
    STORE_SET,         /* the new state is on disk, and in store->state */
    STORE_SET_FAILED,  /* the old state is, as if nothing had been asked */
    STORE_SET_UNKNOWN, /* a restart may find either; nothing that only one of them holds may be
                          acknowledged until a later call says STORE_SET. store->state: the old */
};

/* Write a manifest that names these files. They are complete and synced; their entries in the
 * directory are synced here. Not STORE_SET: errno says why. */
MUST_CHECK enum store_set_status store_set(struct store *store, const struct store_state *state);
/* Remove what `before` names and the store's state does not. false: some file could not be removed,
 * errno says why for the last one; the next open removes it. */
bool store_remove_old(struct store *store, const struct store_state *before);
/* Remove one file that no manifest names, say a snapshot that was given up. */
bool store_remove(struct store *store, enum store_kind kind, uint64_t number);

/* Each file of the store's own that the manifest does not name, with STORE_READ. */
MUST_CHECK bool store_list_unnamed(const struct store *store, disk_visit_name *visit,
                                   void *context);

/* Manifests as text. print: returns the size; out: STORE_MANIFEST_MAX. parse: false, and then error
 * (DISK_ERROR_MAX) names the offset and what is wrong there. */
size_t store_print_manifest(char *out, const struct store_state *state);
MUST_CHECK bool store_parse_manifest(struct bytes text, struct store_state *state, char *error);

#endif
