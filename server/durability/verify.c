/* Verifies file by file, then everything together:
 *
 *     manifest -> base: every block -> journals: every group -> cut the tail -> load, validate
 *
 * See verify.h. */
#include "server/durability/verify.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "codec/memory.h"
#include "codec/timestamp.h"
#include "server/durability/loading.h"
#include "server/settings/settings.h"

#define DIRECTORY_USUAL "appendonlydir"

struct checking {
    struct store store;
    struct settings settings;
    FILE *out;
    bool is_fixing;
    char path[STORE_PATH_MAX + STORE_NAME_MAX]; /* of the current file */
    struct effect_decoder decoder;
};

/* ---- the directory ---- */

/* Open DIRECTORY, or the store inside it that has the usual name. */
static enum store_status verify_open_store(struct checking *checking, const char *directory,
                                           char *error) {
    char parent[STORE_PATH_MAX];
    enum store_mode mode = checking->is_fixing ? STORE_FIX : STORE_READ;
    struct stat file;
    if (stat(directory, &file) == 0 && S_ISREG(file.st_mode)) {
        return store_open_base(&checking->store, directory, error);
    }
    size_t size = strlen(directory);
    while (size > 1 && directory[size - 1] == '/') {
        size--;
    }
    if (size == 0 || size >= sizeof parent) {
        snprintf(error, DISK_ERROR_MAX, "no such directory");
        return STORE_FAILED;
    }
    memcpy(parent, directory, size);
    parent[size] = '\0';
    enum store_status status = store_open(&checking->store, parent, DIRECTORY_USUAL, mode, error);
    if (status != STORE_MISSING) {
        return status;
    }
    char *slash = strrchr(parent, '/');
    if (slash == NULL) {
        return store_open(&checking->store, ".", parent, mode, error);
    }
    *slash = '\0';
    return store_open(&checking->store, slash == parent ? "/" : parent, slash + 1, mode, error);
}

/* Open a file that the manifest names, and set checking->path. */
static int verify_open_file(struct checking *checking, enum store_kind kind, uint64_t number) {
    int fd = store_open_file(&checking->store, kind, number, checking->path);
    if (fd < 0) {
        fprintf(checking->out, "cannot open %s: %s\n", checking->path, strerror(errno));
    }
    return fd;
}

static void verify_print_unnamed(void *context, const char *name) {
    const struct checking *checking = context;
    fprintf(checking->out, "%s/%s: not named by the manifest, the next start removes it\n",
            checking->store.path, name);
}

/* ---- the base ---- */

/* Read every block without decoding it. This takes fd; the reader is to be closed. */
static enum snapshot_status verify_read_blocks(struct snapshot_reader *reader, int fd,
                                               const char *path) {
    size_t room = SNAPSHOT_BLOCK_SIZE;
    size_t size = 0;
    enum snapshot_status status = snapshot_file_reader_open(reader, fd, path);
    char *raw = memory_allocate(room);
    while (raw != NULL && status == SNAPSHOT_BLOCK) {
        status = snapshot_file_reader_next(reader, raw, room, &size);
        if (status == SNAPSHOT_LARGER) {
            memory_free(raw);
            raw = memory_allocate(size);
            room = size;
            status = SNAPSHOT_BLOCK;
        }
    }
    if (raw == NULL) {
        snprintf(reader->error, sizeof reader->error, "out of memory: a block takes %zu bytes",
                 room);
        status = SNAPSHOT_FAILED;
    }
    memory_free(raw);
    return status;
}

static enum check_result verify_check_base(struct checking *checking) {
    struct snapshot_reader reader;
    uint64_t number = checking->store.state.base_number;
    int fd = number != 0 ? verify_open_file(checking, STORE_BASE, number) : -1;
    if (fd < 0) {
        return number == 0 ? CHECK_IS_WHOLE : CHECK_IS_UNKNOWN;
    }
    enum snapshot_status status = verify_read_blocks(&reader, fd, checking->path);
    if (status == SNAPSHOT_END) {
        fprintf(checking->out,
                "%s: whole, %" PRIu64 " bytes, %" PRIu64 " boards, %" PRIu64
                " members, everything up to group %" PRIu64 "\n",
                checking->path, reader.window.file_size, reader.footer.board_count,
                reader.footer.member_count, reader.footer.sequence);
    } else {
        fprintf(checking->out, "%s\n", reader.error);
    }
    snapshot_file_reader_close(&reader);
    if (status == SNAPSHOT_DAMAGED) {
        fprintf(checking->out, "    %s\n",
                checking->store.is_file
                    ? "a backup cannot be repaired: take another one"
                    : "a base cannot be repaired: restore the directory from a backup");
    }
    return status == SNAPSHOT_END       ? CHECK_IS_WHOLE
           : status == SNAPSHOT_DAMAGED ? CHECK_IS_DAMAGED
                                        : CHECK_IS_UNKNOWN;
}

/* ---- a journal ---- */

static enum check_result verify_check_tail(const struct checking *checking, uint64_t number,
                                           const struct journal_reader *reader,
                                           enum journal_status status, bool may_fix) {
    bool is_cuttable = reader->torn.size > 0 && status != JOURNAL_FAILED;
    const struct journal_torn *torn = &reader->torn;
    if (status == JOURNAL_TORN) {
        fprintf(checking->out, "%s is torn at offset %" PRIu64 ": %s\n", checking->path,
                torn->offset, torn->description);
    } else {
        fprintf(checking->out, "%s\n", reader->error);
    }
    if (torn->size > 0) {
        fprintf(checking->out,
                "    behind it are %" PRIu64 " bytes, %" PRIu64 " whole groups among them\n",
                torn->size, torn->groups_behind);
    }
    if (may_fix && is_cuttable) {
        struct journal_file file;
        if (!journal_file_continue(&file, checking->store.directory,
                                   store_name(STORE_JOURNAL, number).text, reader->id,
                                   torn->offset)) {
            fprintf(checking->out, "    cannot cut %s at offset %" PRIu64 ": %s\n", checking->path,
                    torn->offset, strerror(errno));
            return CHECK_IS_UNKNOWN;
        }
        journal_file_close(&file);
        fprintf(checking->out,
                "    fixed: cut at offset %" PRIu64 ", %" PRIu64
                " bytes dropped; what is kept ends with group %" PRIu64 "\n",
                torn->offset, torn->size, reader->next_sequence - 1);
        return CHECK_IS_WHOLE;
    }
    const char *advice = "restore the directory from a backup";
    if (status == JOURNAL_FAILED) {
        advice = "nothing is known of the rest of the file; check again once it can be read";
    } else if (status == JOURNAL_TORN) {
        advice = "a crash leaves that; nothing of it had been synced, and the server cuts it off "
                 "when it starts";
    } else if (reader->torn.size > 0) {
        advice = "this had been synced, so the disk or something else has changed it: restore the "
                 "directory from a backup, or give up all from this offset on with --fix. If it is "
                 "a copy of a running server's directory, copy it again";
    }
    fprintf(checking->out, "    %s\n", advice);
    return status == JOURNAL_FAILED ? CHECK_IS_UNKNOWN : CHECK_IS_DAMAGED;
}

/* may_fix: everything before this journal is intact, and the tail may be cut. *is_loadable: the
 * server can start with it. */
static enum check_result verify_check_journal(struct checking *checking, uint32_t index,
                                              bool may_fix, bool *is_loadable) {
    const struct store_state *state = &checking->store.state;
    const struct store_journal *journal = &state->journals[index];
    bool is_last = index + 1 == state->journal_count;
    struct journal_reader reader;
    uint64_t change_count = 0;
    int fd = verify_open_file(checking, STORE_JOURNAL, journal->number);
    if (fd < 0) {
        *is_loadable = false;
        return CHECK_IS_UNKNOWN;
    }
    enum journal_status status =
        journal_file_reader_open(&reader, fd, checking->path, journal->first_sequence, is_last);
    if (status == JOURNAL_GROUP) {
        /* Count groups and their changes. A change that cannot be decoded is found later, by
         * loading. */
        struct journal_group group;
        while ((status = journal_file_reader_next(&reader, &group)) == JOURNAL_GROUP) {
            effect_bytes_decode_begin(&checking->decoder,
                                      (struct bytes){.at = group.payload, .size = group.size});
            while (effect_bytes_decode(&checking->decoder) == EFFECT_RECORD_EFFECT) {
                ++change_count;
            }
        }
        uint64_t count = reader.group_count;
        fprintf(checking->out, "%s: %s, %" PRIu64 " bytes, %" PRIu64 " groups", checking->path,
                status == JOURNAL_END ? "whole" : "whole so far", reader.offset, count);
        if (count > 0) {
            fprintf(checking->out, " (%" PRIu64 " to %" PRIu64 ")", reader.next_sequence - count,
                    reader.next_sequence - 1);
        }
        fprintf(checking->out, ", %" PRIu64 " changes\n", change_count);
    }
    enum check_result result = CHECK_IS_WHOLE;
    if (status != JOURNAL_END) {
        result = verify_check_tail(checking, journal->number, &reader, status, may_fix && is_last);
    }
    *is_loadable = result == CHECK_IS_WHOLE || status == JOURNAL_TORN;
    journal_file_reader_close(&reader);
    return result;
}

/* ---- the boards ---- */

static void verify_ignore(void *context) {
    (void)context;
}

struct counts {
    uint64_t boards, members;
    uint64_t hashes, fields;
};

static void verify_count_key(void *context, const struct registry_key *key) {
    struct counts *counts = context;
    if (key->kind == REGISTRY_HASH) {
        counts->hashes++;
        counts->fields += hash_count(registry_hash(key));
    } else {
        counts->boards++;
        counts->members += board_count(&key->board);
    }
}

enum verify_loaded { RUN_NOT_BEGUN, RUN_FAILED, RUN_DONE };

/* Load everything as the server does, on a loop of its own. */
static enum verify_loaded verify_run_loading(struct checking *checking, struct loading *loading) {
    uv_loop_t loop;
    enum verify_loaded result = RUN_NOT_BEGUN;
    if (uv_loop_init(&loop) != 0) {
        return RUN_NOT_BEGUN;
    }
    loading->store = &checking->store;
    loading->changed = verify_ignore;
    if (loading_init(loading, &loop)) {
        result = loading_run(loading) ? RUN_DONE : RUN_FAILED;
        loading_deinit(loading);
    }
    uv_run(&loop, UV_RUN_DEFAULT);
    CHECK(uv_loop_close(&loop) == 0);
    return result;
}

/* Load everything, and validate the result. */
static enum check_result verify_whole(struct checking *checking, struct loading *loading) {
    const char *reason = "";
    switch (verify_run_loading(checking, loading)) {
    case RUN_NOT_BEGUN:
        return CHECK_IS_UNKNOWN;
    case RUN_FAILED:
        fprintf(checking->out, "%s\n", loading->error);
        return loading->is_out_of_memory ? CHECK_IS_UNKNOWN : CHECK_IS_DAMAGED;
    case RUN_DONE:
        break;
    }
    if (!registry_validate(loading->registry, &reason)) {
        fprintf(checking->out,
                "the keys contradict themselves, though every file is whole: %s. This is a "
                "fault of the server: please report it, and keep a copy of the directory\n",
                reason);
        return CHECK_IS_DAMAGED;
    }
    struct counts counts = {.boards = 0};
    char time[TIMESTAMP_TEXT_MAX];
    for (uint32_t database = 0; database < REGISTRY_DATABASES; database++) {
        registry_walk_each(loading->registry, database, INT64_MIN, verify_count_key, &counts);
    }
    size_t size = timestamp_print(time, (int64_t)loading->time_us);
    fprintf(checking->out,
            "boards: %" PRIu64 " with %" PRIu64 " members, as of group %" PRIu64 " (%.*s)\n",
            counts.boards, counts.members, loading->sequence, (int)size, time);
    if (counts.hashes > 0) {
        fprintf(checking->out, "hashes: %" PRIu64 " with %" PRIu64 " fields\n", counts.hashes,
                counts.fields);
    }
    return CHECK_IS_WHOLE;
}

static enum check_result verify_check_boards(struct checking *checking) {
    struct loading *loading = memory_allocate_zeroed(sizeof *loading);
    if (loading == NULL) {
        return CHECK_IS_UNKNOWN;
    }
    loading->registry =
        registry_create(disk_random_id(), setting_board_options_for, &checking->settings);
    enum check_result result = CHECK_IS_UNKNOWN;
    if (loading->registry != NULL) {
        result = verify_whole(checking, loading);
    }
    if (result == CHECK_IS_UNKNOWN) {
        fprintf(checking->out, "the boards could not be loaded: too little memory or no thread\n");
    }
    registry_destroy(loading->registry);
    memory_free(loading);
    return result;
}

bool verify_blocks(int fd, const char *path, struct snapshot_footer *footer, char *error) {
    struct snapshot_reader reader;
    if (fd < 0) {
        snprintf(error, DISK_ERROR_MAX, "cannot open %s: %s", path, strerror(errno));
        return false;
    }
    enum snapshot_status status = verify_read_blocks(&reader, fd, path);
    *footer = reader.footer;
    snprintf(error, DISK_ERROR_MAX, "%s", reader.error);
    snapshot_file_reader_close(&reader);
    return status == SNAPSHOT_END;
}

/* ---- the interface ---- */

bool verify_load(const char *path, struct registry *registry, uint64_t *time_us, char *error) {
    struct checking *checking = memory_allocate_zeroed(sizeof *checking);
    struct loading *loading = memory_allocate_zeroed(sizeof *loading);
    bool is_done = false;
    if (checking == NULL || loading == NULL) {
        snprintf(error, DISK_ERROR_MAX, "out of memory");
    } else if (verify_open_store(checking, path, error) == STORE_OK) {
        loading->registry = registry;
        snprintf(loading->error, sizeof loading->error, "cannot start a thread");
        is_done = verify_run_loading(checking, loading) == RUN_DONE;
        snprintf(error, DISK_ERROR_MAX, "%s", loading->error);
        *time_us = loading->time_us;
        store_close(&checking->store);
    }
    memory_free(loading);
    memory_free(checking);
    return is_done;
}

static enum check_result verify_worse_of(enum check_result a, enum check_result b) {
    /* Damage outweighs unknown: it is certain. */
    return a == CHECK_IS_DAMAGED || b == CHECK_IS_DAMAGED ? CHECK_IS_DAMAGED : a > b ? a : b;
}

static enum check_result verify_check_files(struct checking *checking) {
    const struct store_state *state = &checking->store.state;
    if (!checking->store.is_file) {
        fprintf(checking->out, "%s/" STORE_MANIFEST_NAME ": whole, %s, %" PRIu32 " journals\n",
                checking->store.path, state->base_number != 0 ? "a base" : "no base",
                state->journal_count);
        if (!store_list_unnamed(&checking->store, verify_print_unnamed, checking)) {
            fprintf(checking->out, "cannot list %s: %s\n", checking->store.path, strerror(errno));
        }
    }
    enum check_result result = verify_check_base(checking);
    bool is_loadable = result == CHECK_IS_WHOLE;
    for (uint32_t i = 0; i < checking->store.state.journal_count; i++) {
        bool may_fix = checking->is_fixing && result == CHECK_IS_WHOLE;
        bool is_journal_loadable = false;
        result = verify_worse_of(result,
                                 verify_check_journal(checking, i, may_fix, &is_journal_loadable));
        is_loadable = is_loadable && is_journal_loadable;
    }
    return is_loadable ? verify_worse_of(result, verify_check_boards(checking)) : result;
}

enum check_result verify_run(const char *directory, bool is_fixing, FILE *out) {
    static const char *const words[] = {[CHECK_IS_WHOLE] = "whole",
                                        [CHECK_IS_DAMAGED] = "not whole",
                                        [CHECK_IS_UNKNOWN] = "not checked"};
    char error[DISK_ERROR_MAX];
    enum check_result result = CHECK_IS_UNKNOWN;
    struct checking *checking = memory_allocate_zeroed(sizeof *checking);
    if (checking == NULL || !settings_init(&checking->settings)) {
        fprintf(out, "out of memory\n");
        memory_free(checking);
        return CHECK_IS_UNKNOWN;
    }
    checking->out = out;
    checking->is_fixing = is_fixing;
    enum store_status status = verify_open_store(checking, directory, error);
    if (status == STORE_OK) {
        result = verify_check_files(checking);
        store_close(&checking->store);
    } else {
        result = status == STORE_DAMAGED ? CHECK_IS_DAMAGED : CHECK_IS_UNKNOWN;
        fprintf(out, "%s\n", error);
    }
    fprintf(out, "%s: %s\n", directory, words[result]);
    settings_deinit(&checking->settings);
    memory_free(checking);
    return result;
}
