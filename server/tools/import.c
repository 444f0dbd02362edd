/* What fills a registry, and that as a directory to start from: records, as effects; a dump of Redis, where one thread
 * reads and fills and the snapshot's thread writes. See tools.h. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "codec/bytes.h"
#include "server/rdb/rdb.h"
#include "server/system/clock.h"
#include "server/system/log.h"
#include "server/tools/tools.h"
#include "skiplist/keyspace/effect.h"

struct importing {
    struct registry *registry;
    struct record_reader reader;
    struct record record;
    struct buffer name; /* of the current key */
    uint32_t database;
    bool has_key, is_hash;
    struct board_options options;
    struct board_state state;
    char error[RECORD_RULES_ERROR_MAX];
};

/* Each returns NULL, or what is wrong. */
static const char *import_apply(struct importing *importing, struct effect *effect) {
    uint32_t applied;
    effect->database = importing->database;
    effect->name = buffer_bytes(&importing->name);
    effect->key_kind = importing->is_hash ? &key_kind_hash : NULL;
    switch (effect_apply(importing->registry, effect, 1, &applied)) {
    case EFFECT_OK:
        return NULL;
    case EFFECT_OUT_OF_MEMORY:
        return "out of memory";
    case EFFECT_IMPOSSIBLE:
        break;
    }
    return effect->kind == EFFECT_CREATE ? "this key is there already, or its name is too long"
           : effect->kind == EFFECT_TAGS ? "a tag has more different values than its bits allow"
                                         : "this does not fit the key";
}

static const char *import_begin_key(struct importing *importing, bool is_hash) {
    struct bytes name = importing->record.at[RECORD_KEY];
    struct bytes expires = importing->record.at[RECORD_EXPIRES];
    uint64_t database;
    importing->is_hash = is_hash;
    if (!bytes_parse_u64(importing->record.at[RECORD_DATABASE], &database) ||
        database >= REGISTRY_ALL_DATABASES || registry_is_of_one_server((uint32_t)database)) {
        return "the database is no number from 0 to 15";
    }
    importing->database = (uint32_t)database;
    if (!is_hash && !registry_holds_boards((uint32_t)database)) {
        return "this database has hashes only";
    }
    if (!is_hash && !record_parse_options(importing->record.at[RECORD_RULES], &importing->options,
                                          &importing->state, importing->error)) {
        return importing->error;
    }
    buffer_clear(&importing->name);
    buffer_append(&importing->name, name.at, name.size);
    if (importing->name.is_broken) {
        return "out of memory";
    }
    if (name.size == 0 || name.size > REGISTRY_NAME_MAX) {
        return "the key's name is empty or too long";
    }
    struct effect effect = {.kind = EFFECT_CREATE,
                            .options = is_hash ? NULL : &importing->options,
                            .state = is_hash ? NULL : &importing->state};
    const char *wrong = import_apply(importing, &effect);
    importing->has_key = wrong == NULL;
    if (wrong != NULL || expires.size == 0) {
        return wrong;
    }
    effect = (struct effect){.kind = EFFECT_EXPIRE};
    return bytes_parse_i64(expires, &effect.expire_at_ms) ? import_apply(importing, &effect)
                                                          : "the expiry is no number";
}

/* Does the line belong to the key that the last board or hash line began? */
static bool import_is_of_key(const struct importing *importing, bool is_hash) {
    uint64_t database;
    const struct bytes name = {.at = importing->name.at, .size = importing->name.size};
    return importing->has_key && importing->is_hash == is_hash &&
           bytes_parse_u64(importing->record.at[RECORD_DATABASE], &database) &&
           database == importing->database && bytes_equal(importing->record.at[RECORD_KEY], name);
}

static const char *import_pack_score(struct importing *importing, const struct layout *layout,
                                     uint64_t *key) {
    struct bytes text = importing->record.at[RECORD_SCORE];
    *key = layout_zero_key(layout);
    for (unsigned i = 0; i < layout->field_count; i++) {
        const struct layout_field *field = &layout->fields[i];
        struct bytes word = bytes_take_word(&text);
        struct decimal value;
        uint64_t ordinal;
        if (word.size == 0) {
            return "the score has fewer numbers than the layout has fields";
        }
        enum decimal_status status = layout_field_parse(field, word, &value);
        if (status != DECIMAL_OK || layout_field_ordinal(field, value, &ordinal) != LAYOUT_OK) {
            layout_explain_value(field, word, status, importing->error);
            return importing->error;
        }
        *key = layout_with_ordinal(layout, *key, i, ordinal);
    }
    return text.size == 0 ? NULL : "the score has more numbers than the layout has fields";
}

static const char *import_pack(struct importing *importing, uint64_t *key) {
    const struct layout *layout = &importing->options.layout;
    struct bytes score = importing->record.at[RECORD_SCORE];
    struct bytes time = importing->record.at[RECORD_TIME];
    int64_t time_us;
    if (score.size > 0 && score.at[0] == '#') {
        score.at++;
        score.size--;
        return layout_key_parse(layout, score, key) ? NULL
                                                    : "the layout does not allow this packed score";
    }
    const char *wrong = import_pack_score(importing, layout, key);
    if (wrong != NULL || layout->time.bits == 0) {
        return wrong;
    }
    if (!bytes_parse_i64(time, &time_us)) {
        return "the time is no number of microseconds";
    }
    if (layout_stamp(layout, *key, time_us, key) != LAYOUT_OK) {
        layout_explain_time(layout, time_us, importing->error);
        return importing->error;
    }
    return NULL;
}

/* The values of a member's tags: names and values in turn. */
static const char *import_take_tags(struct importing *importing, char *text,
                                    struct tag_values *values) {
    const struct tag_set *tags = &importing->options.layout.tags;
    struct bytes left = importing->record.at[RECORD_VALUE];
    struct bytes name;
    struct bytes value;
    enum bytes_word_status status;
    while ((status = bytes_take_quoted(&left, &text, &name)) == BYTES_WORD_TAKEN) {
        int index = tag_set_find(tags, name);
        if (index < 0 || (values->mask >> index & 1) != 0) {
            return "the board has no such tag, or it is named twice";
        }
        status = bytes_take_quoted(&left, &text, &value);
        if (status == BYTES_WORD_UNBALANCED) {
            break;
        }
        if (status == BYTES_WORDS_END || value.size == 0 || value.size > TAG_VALUE_MAX) {
            return "a tag has no value, or one of more than 64 bytes";
        }
        values->mask |= 1U << index;
        values->at[index] = value;
    }
    return status == BYTES_WORDS_END ? NULL : "the quotes of a tag's value are wrong";
}

static const char *import_put_tags(struct importing *importing) {
    char packed[TAG_VALUES_PACKED_MAX];
    struct tag_values values = {.mask = 0};
    size_t size = importing->record.at[RECORD_VALUE].size;
    struct effect effect = {.kind = EFFECT_TAGS, .member = importing->record.at[RECORD_MEMBER]};
    if (size == 0) {
        return NULL;
    }
    char *text = memory_allocate(size);
    if (text == NULL) {
        return "out of memory";
    }
    const char *wrong = import_take_tags(importing, text, &values);
    if (wrong == NULL) {
        effect.value = (struct bytes){.at = packed, .size = tag_values_pack(&values, packed)};
        wrong = import_apply(importing, &effect);
    }
    memory_free(text);
    return wrong;
}

static const char *import_take_record(struct importing *importing) {
    struct bytes kind = importing->record.at[RECORD_KIND];
    if (bytes_is(kind, "MEMBER")) {
        struct effect effect = {.kind = EFFECT_PUT, .member = importing->record.at[RECORD_MEMBER]};
        if (!import_is_of_key(importing, false)) {
            return "no line of this board comes before it";
        }
        if (effect.member.size == 0 || effect.member.size > BOARD_MEMBER_MAX) {
            return "the member's name is empty or too long";
        }
        const char *wrong = import_pack(importing, &effect.member_key);
        if (wrong == NULL) {
            wrong = import_apply(importing, &effect);
        }
        return wrong == NULL ? import_put_tags(importing) : wrong;
    }
    if (bytes_is(kind, "FIELD")) {
        struct effect effect = {.kind = EFFECT_PUT,
                                .member = importing->record.at[RECORD_MEMBER],
                                .value = importing->record.at[RECORD_VALUE]};
        return import_is_of_key(importing, true) ? import_apply(importing, &effect)
                                                 : "no line of this hash comes before it";
    }
    if (bytes_is(kind, "NOTE")) {
        struct effect effect = {.kind = EFFECT_NOTE,
                                .member = importing->record.at[RECORD_MEMBER],
                                .value = importing->record.at[RECORD_VALUE]};
        return import_is_of_key(importing, false) ? import_apply(importing, &effect)
                                                  : "no line of this board comes before it";
    }
    if (bytes_is(kind, "BOARD") || bytes_is(kind, "HASH")) {
        return import_begin_key(importing, bytes_is(kind, "HASH"));
    }
    return "the kind is not board, hash, member, field or note";
}

bool import_records(struct registry *registry, enum record_format format, FILE *in, char *error) {
    struct importing *importing = memory_allocate_zeroed(sizeof *importing);
    if (importing == NULL) {
        snprintf(error, IMPORT_ERROR_MAX, "out of memory");
        return false;
    }
    importing->registry = registry;
    buffer_init(&importing->name, 0);
    record_reader_init(&importing->reader, in, format);
    enum record_status status;
    while ((status = record_read(&importing->reader, &importing->record)) == RECORD_READ) {
        const char *wrong = import_take_record(importing);
        if (wrong != NULL) {
            status = record_refuse(&importing->reader, wrong);
            break;
        }
    }
    snprintf(error, IMPORT_ERROR_MAX, "%s", importing->reader.error);
    record_reader_deinit(&importing->reader);
    buffer_deinit(&importing->name);
    memory_free(importing);
    return status == RECORD_END;
}

/* ---- the directory ---- */

bool import_save(struct registry *registry, const char *target) {
    struct store store;
    char error[DISK_ERROR_MAX];
    bool is_made;
    if (!restore_begin_target(target, &is_made)) {
        return false;
    }
    if (store_open(&store, target, RESTORE_DIRECTORY, STORE_CLAIM, error) != STORE_OK) {
        return tools_complain("%s", error);
    }
    bool is_done = tools_save(registry, &store, tools_now_us());
    store_close(&store);
    if (!is_done) {
        return tools_complain("%s could not be written", target);
    }
    printf("%s: a directory to start from\n", target);
    return true;
}

/* ---- a dump of Redis ---- */

enum {
    PIECE_SIZE = 256 * 1024,
    PROGRESS_US = 5 * 1000 * 1000,
    ERROR_MAX = (int)DISK_ERROR_MAX + (int)SETTING_ERROR_MAX,
};

struct dump {
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

/* ---- reading it ---- */

/* *size is 0 at the end of the file. */
static bool import_rdb_read_piece(struct dump *dump, size_t *size) {
    ssize_t got;
    do {
        got = read(dump->fd, dump->piece, PIECE_SIZE);
    } while (got < 0 && errno == EINTR);
    if (got < 0) {
        return tools_complain("cannot read %s: %s", dump->path, strerror(errno));
    }
    *size = (size_t)got;
    dump->read_size += *size;
    return true;
}

static bool import_rdb_read_dump(struct dump *dump) {
    for (;;) {
        size_t size = 0;
        if (!import_rdb_read_piece(dump, &size)) {
            return false;
        }
        if (size == 0) {
            return tools_complain("%s: the dump is cut off at offset %llu", dump->path,
                                  (unsigned long long)dump->load.reader.offset);
        }
        const struct bytes piece = {.at = dump->piece, .size = size};
        uint64_t now_us;
        switch (rdb_load_feed(&dump->load, piece)) {
        case RDB_LOAD_STEP:
        case RDB_LOAD_MORE:
            now_us = clock_monotonic_us();
            if (now_us - dump->told_us >= PROGRESS_US) {
                dump->told_us = now_us;
                fprintf(stderr, "%s: %.0f%% read, %llu members and %llu fields\n", dump->path,
                        dump->file_size > 0
                            ? 100.0 * (double)dump->read_size / (double)dump->file_size
                            : 0.0,
                        (unsigned long long)dump->load.member_count,
                        (unsigned long long)dump->load.field_count);
            }
            break;
        case RDB_LOAD_DONE:
            size = rdb_reader_left(&dump->load.reader);
            if (size == 0 && !import_rdb_read_piece(dump, &size)) {
                return false;
            }
            return size == 0 ||
                   tools_complain("%s: more bytes follow the end of the dump. Is it an AOF? Then "
                                  "ask redis-server for a dump: SAVE",
                                  dump->path);
        case RDB_LOAD_FAILED:
            return tools_complain("%s: %s", dump->path, dump->load.error);
        }
    }
}

/* ---- the summary ---- */

static void import_rdb_tell(const struct dump *dump) {
    const struct rdb_load *load = &dump->load;
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
    if (load->value.rounded.taken_count > 0) {
        char text[RDB_ROUNDED_TEXT_MAX];
        rdb_value_print_rounded(&load->value.rounded, text);
        printf("scores taken apart: %s%s\n", text,
               load->value.rounded.count > 0
                   ? " (rounded: packed into more digits than the double of a Redis has)"
                   : "");
    }
    for (unsigned type = 0; type < RDB_TYPES; type++) { /* the same kind has several */
        const struct rdb_skipped *skipped = &load->skipped[type];
        if (skipped->count == 0) {
            continue;
        }
        printf("skipped: %llu %s (type %u), such as", (unsigned long long)skipped->count,
               rdb_reader_type_name(type), type);
        for (unsigned i = 0; i < RDB_LOAD_NAMES && i < skipped->count; i++) {
            printf("%s '%s'", i > 0 ? "," : "", skipped->names[i].text);
        }
        printf("\n");
    }
    if (load->reader.function_count > 0) {
        printf("skipped: %llu libraries of functions\n",
               (unsigned long long)load->reader.function_count);
    }
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
    printf("read %s, RDB version %u, %llu bytes, and wrote %s in %.1f s\n", dump->path,
           load->reader.version, (unsigned long long)dump->read_size, dump->store.path,
           (double)(clock_monotonic_us() - dump->began_us) / 1e6);
}

/* ---- the command line ---- */

static bool import_rdb_fill(struct dump *dump) {
    if (dump->store.state.base_number != 0 || dump->store.state.journal_count != 0) {
        return tools_complain("%s has the files of a server already: import into another directory "
                              "(--dir), or move them away",
                              dump->store.path);
    }
    dump->registry = registry_create(disk_random_id(), setting_board_options_for, &dump->settings);
    if (dump->registry == NULL) {
        return tools_complain("out of memory");
    }
    rdb_load_init(&dump->load, dump->registry, disk_random_id(), tools_now_us());
    if (!import_rdb_read_dump(dump)) {
        return false;
    }
    return tools_save(dump->registry, &dump->store, dump->load.latest_us) ||
           tools_complain("the directory %s could not be written: see the log", dump->store.path);
}

static bool import_rdb_with_store(struct dump *dump) {
    char error[ERROR_MAX];
    const struct settings *settings = &dump->settings;
    bool is_made = mkdir(settings->dir, 0750) == 0; /* if it cannot be made, it cannot be opened */
    if (store_open(&dump->store, settings->dir, settings->appenddirname, STORE_CLAIM, error) !=
        STORE_OK) {
        return tools_complain("%s", error);
    }
    bool is_done = import_rdb_fill(dump);
    if (is_done) {
        import_rdb_tell(dump);
        store_close(&dump->store);
    } else {
        store_abandon(&dump->store);
        (void)!(is_made && rmdir(settings->dir) == 0);
    }
    if (dump->registry != NULL) {
        rdb_load_deinit(&dump->load);
        registry_destroy(dump->registry);
    }
    return is_done;
}

bool import_rdb(int argc, char **argv) {
    char error[ERROR_MAX];
    struct dump *dump = memory_allocate_zeroed(sizeof *dump);
    if (dump == NULL || !settings_init(&dump->settings)) {
        memory_free(dump);
        return tools_complain("out of memory");
    }
    dump->path = argv[2];
    dump->began_us = clock_monotonic_us();
    dump->told_us = dump->began_us;
    argv[2] = argv[0];
    bool is_done = setting_file_apply_arguments(&dump->settings, argc - 2, argv + 2, NULL, error) &&
                   settings_finish(&dump->settings, error);
    setting_file_hide_arguments(argc - 2, argv + 2);
    struct stat about;
    dump->fd = is_done ? open(dump->path, O_RDONLY | O_CLOEXEC) : -1;
    if (!is_done) {
        tools_complain("%s", error);
    } else if (dump->fd < 0) {
        is_done = tools_complain("cannot open %s: %s", dump->path, strerror(errno));
    } else {
        bool is_sized = fstat(dump->fd, &about) == 0 && about.st_size > 0;
        dump->file_size = is_sized ? (uint64_t)about.st_size : 0;
        is_done = import_rdb_with_store(dump);
        close(dump->fd);
    }
    settings_deinit(&dump->settings);
    memory_free(dump);
    return is_done;
}
