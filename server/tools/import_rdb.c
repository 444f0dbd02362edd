/* See tools.h. One thread reads and fills the registry; the snapshot's thread writes. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/rdb/rdb_load.h"
#include "server/settings/setting.h"
#include "server/system/clock.h"
#include "server/system/log.h"
#include "server/tools/tools.h"

enum {
    PIECE_SIZE = 256 * 1024,
    PROGRESS_US = 5 * 1000 * 1000,
    ERROR_MAX = (int)DISK_ERROR_MAX + (int)SETTING_ERROR_MAX,
};

struct importing {
    const char *path;
    struct settings settings;
    struct store store;
    struct registry *registry;
    struct rdb_load load;
    int fd;
    uint64_t file_size, read_size;
    uint64_t began_us, told_us;
    char piece[PIECE_SIZE];
};

/* ---- reading ---- */

static void import_rdb_tell_progress(struct importing *importing) {
    uint64_t now_us = clock_monotonic_us();
    if (now_us - importing->told_us < PROGRESS_US) {
        return;
    }
    importing->told_us = now_us;
    fprintf(stderr, "%s: %.0f%% read, %llu members and %llu fields\n", importing->path,
            importing->file_size > 0
                ? 100.0 * (double)importing->read_size / (double)importing->file_size
                : 0.0,
            (unsigned long long)importing->load.member_count,
            (unsigned long long)importing->load.field_count);
}

/* *size is 0 at the end of the file. */
static bool import_rdb_read_piece(struct importing *importing, size_t *size) {
    ssize_t got;
    do {
        got = read(importing->fd, importing->piece, PIECE_SIZE);
    } while (got < 0 && errno == EINTR);
    if (got < 0) {
        return tools_complain("cannot read %s: %s", importing->path, strerror(errno));
    }
    *size = (size_t)got;
    importing->read_size += *size;
    return true;
}

static bool import_rdb_check_end(struct importing *importing) {
    size_t size = 0;
    if (rdb_reader_left(&importing->load.reader) > 0) {
        size = 1;
    } else if (!import_rdb_read_piece(importing, &size)) {
        return false;
    }
    return size == 0 ||
           tools_complain("%s: more bytes follow the end of the dump. Is it an AOF? Then ask "
                          "redis-server for a dump: SAVE",
                          importing->path);
}

static bool import_rdb_read_dump(struct importing *importing) {
    for (;;) {
        size_t size = 0;
        if (!import_rdb_read_piece(importing, &size)) {
            return false;
        }
        if (size == 0) {
            return tools_complain("%s: the dump is cut off at offset %llu", importing->path,
                                  (unsigned long long)importing->load.reader.offset);
        }
        const struct bytes piece = {.at = importing->piece, .size = size};
        switch (rdb_load_feed(&importing->load, piece)) {
        case RDB_LOAD_STEP:
        case RDB_LOAD_MORE:
            import_rdb_tell_progress(importing);
            break;
        case RDB_LOAD_DONE:
            return import_rdb_check_end(importing);
        case RDB_LOAD_FAILED:
            return tools_complain("%s: %s", importing->path, importing->load.error);
        }
    }
}

/* ---- the summary ---- */

/* The same kind has several types. */
static void import_rdb_tell_skipped(const struct rdb_load *load) {
    for (unsigned type = 0; type < RDB_TYPES; type++) {
        const struct rdb_skipped *skipped = &load->skipped[type];
        if (skipped->count == 0) {
            continue;
        }
        printf("skipped: %llu %s (type %u), such as", (unsigned long long)skipped->count,
               rdb_type_name(type), type);
        for (unsigned i = 0; i < RDB_LOAD_NAMES && i < skipped->count; i++) {
            printf("%s '%s'", i > 0 ? "," : "", skipped->names[i].text);
        }
        printf("\n");
    }
    if (load->reader.function_count > 0) {
        printf("skipped: %llu libraries of functions\n",
               (unsigned long long)load->reader.function_count);
    }
}

static void import_rdb_tell(const struct importing *importing) {
    const struct rdb_load *load = &importing->load;
    printf("imported: %llu sorted sets with %llu members, %llu hashes with %llu fields\n",
           (unsigned long long)load->board_count, (unsigned long long)load->member_count,
           (unsigned long long)load->hash_count, (unsigned long long)load->field_count);
    if (load->module_board_count > 0) {
        printf("boards of the module: %llu of the sorted sets, with layout, options and times\n",
               (unsigned long long)load->module_board_count);
    }
    if (load->ban_count > 0) {
        printf("bans of the module: %llu members\n", (unsigned long long)load->ban_count);
    }
    import_rdb_tell_skipped(load);
    if (load->expired_count > 0) {
        printf("expired: %llu keys\n", (unsigned long long)load->expired_count);
    }
    if (load->cut_count > 0) {
        printf("cut: %llu members below the CAP of their boards\n",
               (unsigned long long)load->cut_count);
    }
    if (load->reader.field_expiry_count > 0) {
        printf("expired: %llu fields of hashes; without expiry now: %llu (only whole keys expire "
               "here)\n",
               (unsigned long long)load->expired_field_count,
               (unsigned long long)(load->reader.field_expiry_count - load->expired_field_count));
    }
    printf("read %s, RDB version %u, %llu bytes, and wrote %s in %.1f s\n", importing->path,
           load->reader.version, (unsigned long long)importing->read_size, importing->store.path,
           (double)(clock_monotonic_us() - importing->began_us) / 1e6);
}

/* ---- the command line ---- */

static bool import_rdb_fill(struct importing *importing) {
    if (importing->store.state.base_number != 0 || importing->store.state.journal_count != 0) {
        return tools_complain("%s has the files of a server already: import into another directory "
                              "(--dir), or move them away",
                              importing->store.path);
    }
    importing->registry =
        registry_create(disk_random_id(), settings_rules_for, &importing->settings);
    if (importing->registry == NULL) {
        return tools_complain("out of memory");
    }
    rdb_load_init(&importing->load, importing->registry, disk_random_id(), tools_now_us());
    if (!import_rdb_read_dump(importing)) {
        return false;
    }
    return tools_save(importing->registry, &importing->store, importing->load.latest_us) ||
           tools_complain("the directory %s could not be written: see the log",
                          importing->store.path);
}

static bool import_rdb_with_store(struct importing *importing) {
    char error[ERROR_MAX];
    const struct settings *settings = &importing->settings;
    if (store_open(&importing->store, settings->dir, settings->appenddirname, STORE_CLAIM, error) !=
        STORE_OK) {
        return tools_complain("%s", error);
    }
    bool is_done = import_rdb_fill(importing);
    if (is_done) {
        import_rdb_tell(importing);
        store_close(&importing->store);
    } else {
        store_abandon(&importing->store);
    }
    if (importing->registry != NULL) {
        rdb_load_deinit(&importing->load);
        registry_destroy(importing->registry);
    }
    return is_done;
}

static bool import_rdb_with_file(struct importing *importing) {
    struct stat about;
    importing->fd = open(importing->path, O_RDONLY | O_CLOEXEC);
    if (importing->fd < 0) {
        return tools_complain("cannot open %s: %s", importing->path, strerror(errno));
    }
    if (fstat(importing->fd, &about) == 0 && about.st_size > 0) {
        importing->file_size = (uint64_t)about.st_size;
    }
    bool is_done = import_rdb_with_store(importing);
    close(importing->fd);
    return is_done;
}

static bool import_rdb_run(int argc, char **argv) {
    char error[ERROR_MAX];
    struct importing *importing = memory_allocate_zeroed(sizeof *importing);
    if (importing == NULL || !settings_init(&importing->settings)) {
        memory_free(importing);
        return tools_complain("out of memory");
    }
    importing->path = argv[2];
    importing->began_us = clock_monotonic_us();
    importing->told_us = importing->began_us;
    argv[2] = argv[0];
    bool is_done = settings_load_arguments(&importing->settings, argc - 2, argv + 2, error) &&
                   settings_finish(&importing->settings, error);
    settings_hide_arguments(argc - 2, argv + 2);
    is_done = is_done ? import_rdb_with_file(importing) : tools_complain("%s", error);
    settings_deinit(&importing->settings);
    memory_free(importing);
    return is_done;
}

bool import_rdb_and_exit(int argc, char **argv, int *status) {
    if (argc < 2 || strcmp(argv[1], "--import") != 0) {
        return false;
    }
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "--format") == 0) {
            return false;
        }
    }
    *status = EXIT_FAILURE;
    if (argc == 2 || strncmp(argv[2], "--", 2) == 0) {
        (void)tools_complain(
            "usage: leaderboard-server --import dump.rdb [settings as at a start]");
        return true;
    }
    memory_init();
    clock_calibrate();
    log_set_level(LOG_WARNING);
    *status = import_rdb_run(argc, argv) ? EXIT_SUCCESS : EXIT_FAILURE;
    return true;
}
