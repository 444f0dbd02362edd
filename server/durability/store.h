/* The data directory, and the manifest that lists the current files in it:
 *
 *     lock                    held by the running server; contains its process id
 *     leaderboard.manifest    below
 *     leaderboard.3.base      a snapshot (snapshot_file.h); at most one
 *     leaderboard.4.journal   increments after it, in order (journal_file.h)
 *     leaderboard.5.journal
 *     kept/                   superseded bases and journals, if they are kept
 *
 *     leaderboard manifest 1
 *     base leaderboard.3.base sequence 81250
 *     journal leaderboard.4.journal first 81251
 *     journal leaderboard.5.journal first 90012
 *     checksum 5f1c0d2b9a8e7f34
 *
 * The checksum is XXH3 (64 bits) of all lines before it. The manifest is replaced atomically: the
 * files it names are on disk before it, and files it no longer names are removed after it. So a
 * crash at any point leaves a complete state, and possibly unused files, which the next open
 * removes.
 *
 * Superseded files are removed, or moved into kept/ for a restore to an earlier moment
 * (server/tools/restore.c). No manifest names those: each says itself what it holds.
 *
 * Nothing here allocates. All functions block; any thread may call them, one at a time. */
#ifndef SERVER_STORE_H
#define SERVER_STORE_H

#include "codec/bytes.h"
#include "server/system/disk.h"

enum {
    STORE_JOURNALS_MAX = 257,
    STORE_NAME_MAX = 48, /* room for the name of any file in the directory */
    STORE_PATH_MAX = 1024,
    STORE_MANIFEST_MAX = 64 + 112 * (STORE_JOURNALS_MAX + 1),
};
#define STORE_MANIFEST_NAME "leaderboard.manifest"
#define STORE_LOCK_NAME     "lock"
#define STORE_KEPT_NAME     "kept"
/* Advice on damage, appended to messages that name file and offset. */
#define STORE_ADVICE                                                                               \
    "restore the directory from a backup, or see what leaderboard-server --check says of it"

enum store_kind { STORE_BASE, STORE_JOURNAL };

struct store_journal {
    uint64_t number;
    uint64_t first_sequence; /* of its first group, even if it has none yet */
};

/* The content of a manifest. All zero: nothing was ever stored. */
struct store_state {
    uint64_t base_number;   /* 0: there is no base, and the journals hold everything */
    uint64_t base_sequence; /* the last one in the base */
    uint32_t journal_count;
    struct store_journal journals[STORE_JOURNALS_MAX]; /* numbers and sequences never decrease */
};

/* Which superseded files stay: of more, the oldest are removed first. */
struct store_keep {
    int64_t seconds;   /* since they were written last; 0: none is kept */
    uint64_t size_max; /* of all, in bytes; 0: no limit */
};

struct store {
    int directory; /* descriptors; -1: none */
    int lock;
    bool is_locked;
    bool has_manifest;
    bool is_made;         /* the directory was created by opening it */
    uint64_t next_number; /* greater than the number of every file that is or was there */
    struct store_state state;
    struct store_keep keep;    /* set after opening; while a job has the store, the thread's */
    bool is_file;              /* path is a base, and all there is: store_open_base */
    char path[STORE_PATH_MAX]; /* for messages */
};

enum store_status {
    STORE_OK,
    STORE_MISSING, /* no such directory, or nothing was ever stored in it; STORE_CLAIM: it cannot be made, as
                    * nobody may write there */
    STORE_IN_USE,  /* another server holds the lock */
    STORE_DAMAGED, /* its files contradict each other */
    STORE_FAILED,  /* a system call failed */
};

enum store_mode {
    STORE_READ, /* nothing is changed; the lock is taken if its file exists */
    STORE_FIX,  /* the lock is taken; apart from its file, nothing is changed */
    STORE_CLAIM, /* the same, a missing directory is created, and files that the manifest does not name are
                   * removed; each removal is logged. Call store_begin before creating any other file */
    STORE_CREATE, /* as STORE_CLAIM, with store_begin already done */
};

/* Open the directory `name` in the directory `parent` and lock it, before anything in it is looked at; a child
 * process that inherits the store holds the lock as well. A directory without a manifest counts as missing, unless
 * it has bases or journals: then it is damaged.
 *
 * Not STORE_OK: error (DISK_ERROR_MAX) says what is wrong and what to do; nothing is held, and a
 * directory that was created is removed. */
MUST_CHECK enum store_status store_open(struct store *store, const char *parent, const char *name,
                                        enum store_mode mode, char *error);
/* A base alone, as a backup is, to be read as if a manifest named nothing else. The same errors. */
MUST_CHECK enum store_status store_open_base(struct store *store, const char *path, char *error);
/* Create the manifest if there is none: from then on, a base or journal without a manifest is
 * recognized as damage. The only part of opening that waits for the disk. false: errno says why; it
 * may be retried. */
MUST_CHECK bool store_begin(struct store *store);
/* Write this process's id into the lock file, as opening does. Call it after daemonizing, where the
 * lock is still held. */
void store_note_process(const struct store *store);
/* Close a store to which nothing was written since it was opened with STORE_CLAIM, and remove the
 * directory if that created it. */
void store_abandon(struct store *store);
/* Release the lock. The files stay. */
void store_close(struct store *store);

/* A number for a new file. */
uint64_t store_take_number(struct store *store);
/* "leaderboard.4.journal" */
struct store_name {
    char text[STORE_NAME_MAX];
};
struct store_name store_name(enum store_kind kind, uint64_t number);
/* Does the manifest name this file? */
bool store_is_named(const struct store_state *state, enum store_kind kind, uint64_t number);
/* Is this such a name? */
MUST_CHECK bool store_parse_name(const char *name, enum store_kind *kind, uint64_t *number);
/* Open such a file for reading. path (STORE_PATH_MAX + STORE_NAME_MAX): its name with the directory
 * in front, for messages. -1: errno says why. */
MUST_CHECK int store_open_file(const struct store *store, enum store_kind kind, uint64_t number,
                               char *path);

enum store_set_status {
    STORE_SET,         /* the new state is on disk and in store->state */
    STORE_SET_FAILED,  /* the old state stays, as if nothing had been asked */
    STORE_SET_UNKNOWN, /* a restart may find either; acknowledge nothing that only one of them holds
                        * until a later call returns STORE_SET. store->state: the old */
};

/* Replace a small file: name.new is written and synced, the directory is synced (for the files that
 * a new manifest names), then name.new is renamed to name, and the directory synced. Not STORE_SET:
 * errno says why. */
MUST_CHECK enum store_set_status store_replace(int directory, const char *name, const char *text,
                                               size_t size);
/* Write a manifest that names these files. They must be complete and synced; their directory
 * entries are synced here. Not STORE_SET: errno says why. */
MUST_CHECK enum store_set_status store_set(struct store *store, const struct store_state *state);
/* Remove the files in `before` that the store's state does not name, or keep them, as store->keep
 * says. false: some file could not be removed; the next open does that. */
bool store_remove_old(struct store *store, const struct store_state *before);
/* The same, and then store_remove_old. journal: closed (fd -1), it is made first, as the state's last one; NULL: all
 * files are there. Not STORE_SET: errno says why; the journal is open unless it could not be made. */
struct journal_file;
MUST_CHECK enum store_set_status store_adopt(struct store *store, const struct store_state *state,
                                             struct journal_file *journal);
/* Remove one file that no manifest names, such as an aborted snapshot. */
bool store_remove(struct store *store, enum store_kind kind, uint64_t number);
/* The same of a file that no manifest has ever named: also while another thread sets the state. */
bool store_discard(const struct store *store, enum store_kind kind, uint64_t number);

/* Visit each of the store's files that the manifest does not name; for STORE_READ. */
MUST_CHECK bool store_list_unnamed(const struct store *store, disk_visit_name *visit,
                                   void *context);

/* Read a directory's manifest, whoever uses it. Not STORE_OK: reason (DISK_ERROR_MAX) says what is wrong
 * with it. */
MUST_CHECK enum store_status store_read_manifest(int directory, struct store_state *state,
                                                 char *reason);
/* The text form of a manifest. print: returns the size; out: STORE_MANIFEST_MAX. parse: on false,
 * error (DISK_ERROR_MAX) says what is wrong, and at which offset. */
size_t store_print_manifest(char *out, const struct store_state *state);
MUST_CHECK bool store_parse_manifest(struct bytes text, struct store_state *state, char *error);

#endif
