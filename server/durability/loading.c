/* Loading. See loading.h for an overview.
 *
 * The batch points into the decoded block, or into groups in the reader's buffer, so it is applied
 * before these are released. */
#include "server/durability/loading.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>

#include "codec/memory.h"
#include "server/system/clock.h"
#include "server/system/tzdata.h"
#include "skiplist/keyspace/effect.h"

enum {
#ifdef SERVER_TINY
    APPEND_END_WORK = 3,
#else
    APPEND_END_WORK = 4096, /* members between two reads of the clock */
#endif
    FREE_WORK = 4096,
};

/* ---- failing ---- */

__attribute__((format(printf, 2, 3))) static enum loading_status
loading_fail(struct loading *loading, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(loading->error, sizeof loading->error, format, arguments);
    va_end(arguments);
    return LOADING_FAILED;
}

static enum loading_status loading_fail_memory(struct loading *loading) {
    loading->is_out_of_memory = true;
    return loading_fail(loading,
                        "no memory to load %s: %llu members are loaded; give the server more, or "
                        "start it where there is more",
                        loading->path, (unsigned long long)loading->member_count);
}

/* Report a reader's error, with advice. */
static enum loading_status loading_fail_reading(struct loading *loading, const char *error,
                                                bool is_damaged) {
    return loading_fail(loading, "%s%s", error,
                        is_damaged && !loading->is_copy ? "; " STORE_ADVICE : "");
}

/* File offset of the chunk that is being decoded. */
static uint64_t loading_chunk_offset(const struct loading *loading) {
    return loading->phase == LOADING_BASE ? loading->block.offset : loading->group.offset;
}

static enum loading_status loading_fail_meaning_at(struct loading *loading, uint64_t offset,
                                                   const char *what) {
    return loading_fail(
        loading,
        "%s is damaged at offset %llu: %s, though the checksum is right; it was written by "
        "another version, or by a server with a fault%s",
        loading->path, (unsigned long long)offset, what,
        loading->is_copy ? ""
                         : ". Look at it with leaderboard-server --check, and restore a backup");
}

static enum loading_status loading_fail_meaning(struct loading *loading, const char *what) {
    return loading_fail_meaning_at(loading, loading_chunk_offset(loading), what);
}

/* ---- effects ---- */

static enum loading_status loading_apply_batch(struct loading *loading) {
    struct effect_batch *batch = &loading->batch;
    for (;; batch->done++) {
        switch (effect_batch_apply(batch, loading->registry)) {
        case EFFECT_OK:
            return LOADING_MORE;
        case EFFECT_OUT_OF_MEMORY:
            return loading_fail_memory(loading);
        case EFFECT_IMPOSSIBLE:
            break;
        }
        /* A field of a hash that was removed before the walk reached it is in no piece. */
        if (!(batch->effects[batch->done].kind == EFFECT_TAKE && loading->phase == LOADING_BASE &&
              batch->effects[batch->done].key_kind == &key_kind_hash)) {
            return loading_fail_meaning_at(loading, loading->batch_offsets[batch->done],
                                           "a change does not fit the keys");
        }
    }
}

static bool loading_is_open_board(const struct loading *loading, uint32_t database,
                                  struct bytes name) {
    const struct loading_board *open = &loading->open;
    return open->is_open && open->database == database &&
           bytes_equal((struct bytes){.at = open->name, .size = open->name_size}, name);
}

static void loading_name_open(struct loading_board *open, uint32_t database, struct bytes name) {
    open->database = database;
    open->name_size = (uint32_t)name.size;
    memcpy(open->name, name.at, name.size);
}

/* The open board is indexed before the first effect on it, which then changes it in the registry, as all others do. */
static enum loading_status loading_take_effect(struct loading *loading) {
    const struct effect *effect = &loading->decoder.effect;
    struct loading_board *open = &loading->open;
    bool is_of_open = effect->kind == EFFECT_FLUSH
                          ? open->is_open && open->database == effect->database
                          : loading_is_open_board(loading, effect->database, effect->name);
    if (is_of_open && !open->is_known) {
        open->is_indexing = true;
        return LOADING_MORE;
    }
    if (!open->is_known && (effect->kind == EFFECT_RENAME || effect->kind == EFFECT_COPY) &&
        loading_is_open_board(loading, effect->to_database, effect->to_name)) {
        return loading_fail_meaning(loading, "two boards have the same name");
    }
    if (is_of_open && (effect->kind == EFFECT_FLUSH || effect->kind == EFFECT_REMOVE)) {
        open->is_open = false;
    } else if (is_of_open && effect->kind == EFFECT_RENAME &&
               effect->to_name.size <= REGISTRY_NAME_MAX) {
        loading_name_open(open, effect->to_database, effect->to_name);
    }
    loading->effect_count++;
    bool is_due = effect_batch_add(&loading->batch, effect);
    loading->batch_offsets[loading->batch.count - 1] = loading_chunk_offset(loading);
    return is_due ? loading_apply_batch(loading) : LOADING_MORE;
}

/* ---- boards of the base ---- */

static enum loading_status loading_open_board(struct loading *loading) {
    const struct effect *effect = &loading->decoder.effect;
    struct loading_board *open = &loading->open;
    if (open->is_open) {
        return loading_fail_meaning(loading, "a board begins within another one");
    }
    if (!registry_may_put(loading->registry, effect->database, effect->name, effect->options)) {
        return loading_fail_meaning(loading, "two boards have the same name, or it is too long");
    }
    if (!registry_create_board_like(loading->registry, effect->options, &open->board)) {
        return loading_fail_memory(loading);
    }
    loading->base_boards++;
    loading_name_open(open, effect->database, effect->name);
    open->expire_at_ms = effect->expire_at_ms;
    open->state = effect->state != NULL ? *effect->state : (struct board_state){.from_ms = 0};
    open->indexing = (struct board_indexing){.has_begun = false};
    open->is_open = true;
    open->is_known = false;
    open->is_indexing = false;
    open->is_whole = false;
    return LOADING_MORE;
}

/* Values of the entries that were appended last. */
static enum loading_status loading_tag_entries(struct loading *loading, struct board *board,
                                               const struct bytes *packed, uint32_t count) {
    struct tag_values values;
    uint32_t first = board_count(board) - count;
    for (uint32_t i = 0; i < count; i++) {
        unsigned full;
        if (packed[i].size <= 1) {
            continue; /* it has none */
        }
        if (!tag_values_unpack(packed[i], board_layout(board)->tags.count, &values)) {
            return loading_fail_meaning(loading, "a member has values of unknown tags");
        }
        enum tags_status status = tags_set_at(board, first + i, &values, &full);
        /* As in registry_board_tag: members that were cut may still hold values. */
        while (status == TAGS_FULL && board_free_remains(board)) {
            status = tags_set_at(board, first + i, &values, &full);
        }
        switch (status) {
        case TAGS_OK:
        case TAGS_SAME:
            break;
        case TAGS_FULL:
            return loading_fail_meaning(loading, "a tag has too many values");
        case TAGS_OUT_OF_MEMORY:
            return loading_fail_memory(loading);
        }
    }
    return LOADING_MORE;
}

static bool loading_is_in_order(const struct board *board, const struct board_entry *entries,
                                uint32_t count) {
    struct board_cursor cursor;
    struct board_stored entry = {.key = UINT64_MAX};
    if (board_count(board) > 0) {
        board_cursor_seek(board, board_count(board) - 1, &cursor);
        (void)!board_cursor_read(&cursor, &entry);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (entries[i].key > (i > 0 ? entries[i - 1].key : entry.key)) {
            return false;
        }
    }
    return true;
}

static enum loading_status loading_append_entries(struct loading *loading) {
    struct loading_board *open = &loading->open;
    const struct board_entry *entries = loading->decoder.entries;
    uint32_t count = loading->decoder.entry_count;
    struct registry_key *key = NULL;
    if (!open->is_open) {
        return loading_fail_meaning(loading, "members outside a board");
    }
    if (open->is_known) {
        key = registry_find(loading->registry, open->database,
                            (struct bytes){.at = open->name, .size = open->name_size}, INT64_MIN);
    }
    if (open->is_known && (key == NULL || key->kind != REGISTRY_BOARD)) {
        return loading_fail_meaning(loading, "members outside a board");
    }
    struct board *board = key != NULL ? &key->board : &open->board;
    if (!loading_is_in_order(board, entries, count)) {
        return loading_fail_meaning(loading, "members of a board are out of order");
    }
    if (count > 0 && !layout_has_room(board_layout(board), entries[0].key)) {
        return loading_fail_meaning(loading,
                                    "a member's key is larger than its board's layout allows");
    }
    enum board_status status = key != NULL
                                   ? registry_append_loaded(loading->registry, key, entries, count)
                                   : board_append(board, entries, count);
    if (status != BOARD_OK) {
        return loading_fail_memory(loading);
    }
    loading->base_members += count;
    loading->member_count += count;
    return loading->decoder.has_values
               ? loading_tag_entries(loading, board, loading->decoder.entry_values, count)
               : LOADING_MORE;
}

/* One step of building the index of the open board, which then comes into the registry: all its pieces are read, or an
 * effect on it waits. */
static enum loading_status loading_index_board(struct loading *loading) {
    struct loading_board *open = &loading->open;
    bool is_done = false;
    if (board_append_end_step(&open->board, &open->indexing, APPEND_END_WORK, &is_done) !=
        BOARD_OK) {
        return loading_fail_memory(loading);
    }
    if (!is_done) {
        return LOADING_MORE;
    }
    if (registry_put_loaded(loading->registry, open->database,
                            (struct bytes){.at = open->name, .size = open->name_size}, &open->board,
                            &open->state, NULL, open->expire_at_ms) != REGISTRY_OK) {
        return loading_fail_memory(loading);
    }
    loading->board_count++;
    open->is_known = true;
    open->is_indexing = false;
    open->is_open = !open->is_whole;
    return open->is_whole ? LOADING_MORE : loading_take_effect(loading);
}

/* ---- records ---- */

static enum loading_status loading_take_record(struct loading *loading) {
    enum effect_record record = effect_bytes_decode(&loading->decoder);
    bool is_base = loading->phase == LOADING_BASE;
    bool is_end_of_group = !is_base && record == EFFECT_RECORD_END;
    if (record != EFFECT_RECORD_EFFECT && !is_end_of_group) {
        enum loading_status status = loading_apply_batch(loading);
        if (status != LOADING_MORE) {
            return status;
        }
    }
    if (loading->decoder.missing_zone != NULL) {
        char error[TZDATA_ERROR_MAX];
        tzdata_explain(loading->decoder.missing_zone, error);
        return loading_fail(loading, "a board's PERIOD needs a time zone that is missing: %s",
                            error);
    }
    switch (record) {
    case EFFECT_RECORD_END:
        loading->is_decoding = false;
        return LOADING_MORE;
    case EFFECT_RECORD_EFFECT:
        return loading_take_effect(loading);
    case EFFECT_RECORD_OPEN:
        return is_base ? loading_open_board(loading)
                       : loading_fail_meaning(loading, "a board of a snapshot");
    case EFFECT_RECORD_ENTRIES:
        return loading_append_entries(loading);
    case EFFECT_RECORD_CLOSE:
        if (!loading->open.is_open) {
            return loading_fail_meaning(loading, "the end of a board that was not begun");
        }
        loading->open.is_open = !loading->open.is_known;
        loading->open.is_whole = true;
        loading->open.is_indexing = !loading->open.is_known;
        return LOADING_MORE;
    case EFFECT_RECORD_BAD:
        break;
    }
    return loading_fail_meaning(loading, "it holds an unknown record");
}

/* ---- the base ---- */

static void loading_run_read(void *context) {
    struct loading *loading = context;
    loading->next.offset = loading->base.offset;
    loading->next_status = snapshot_file_reader_next(&loading->base, loading->next.raw,
                                                     loading->next.room, &loading->next.size);
}

static void loading_on_read(void *context) {
    struct loading *loading = context;
    loading->has_next = true;
    loading->changed(loading->context);
}

static void loading_read_next(struct loading *loading) {
    loading->has_next = false;
    worker_start(&loading->worker, loading_run_read);
}

static bool loading_grow(struct loading_block *block, size_t room) {
    char *grown = memory_allocate(room);
    if (grown == NULL) {
        return false;
    }
    memory_free(block->raw);
    block->raw = grown;
    block->room = room;
    return true;
}

static int loading_open_file(struct loading *loading, enum store_kind kind, uint64_t number) {
    return store_open_file(loading->store, kind, number, loading->path);
}

static enum loading_status loading_open_base(struct loading *loading) {
    int fd = loading_open_file(loading, STORE_BASE, loading->store->state.base_number);
    if (fd < 0) {
        return loading_fail(loading, "cannot open %s, which the manifest names: %s", loading->path,
                            strerror(errno));
    }
    loading->is_base_open = true;
    enum snapshot_status status = snapshot_file_reader_open(&loading->base, fd, loading->path);
    if (status != SNAPSHOT_BLOCK) {
        return loading_fail_reading(loading, loading->base.error, status == SNAPSHOT_DAMAGED);
    }
    if (!loading_grow(&loading->block, SNAPSHOT_BLOCK_SIZE) ||
        !loading_grow(&loading->next, SNAPSHOT_BLOCK_SIZE)) {
        return loading_fail_memory(loading);
    }
    loading_read_next(loading);
    return LOADING_WAITS;
}

static void loading_close_base(struct loading *loading) {
    worker_wait(&loading->worker);
    if (loading->is_base_open) {
        loading->size_before += loading->base.window.file_size;
        snapshot_file_reader_close(&loading->base);
        loading->is_base_open = false;
    }
    memory_free(loading->block.raw);
    memory_free(loading->next.raw);
    loading->block.raw = NULL;
    loading->next.raw = NULL;
}

/* At the end of the base: compare its totals with what was found. */
static enum loading_status loading_end_base(struct loading *loading) {
    const struct snapshot_footer *footer = &loading->base.footer;
    if (loading->open.is_open) {
        return loading_fail_meaning(loading, "it ends within a board");
    }
    if (footer->sequence != loading->store->state.base_sequence) {
        return loading_fail_meaning(loading, "it is not the snapshot that the manifest means");
    }
    if (footer->board_count != loading->base_boards ||
        footer->member_count != loading->base_members) {
        return loading_fail_meaning(loading,
                                    "it does not hold as many boards and members as it says");
    }
    loading->sequence = footer->sequence;
    loading->time_us = footer->time_us;
    loading_close_base(loading);
    loading->size_done = loading->size_before;
    loading->phase = LOADING_JOURNALS;
    return LOADING_MORE;
}

static enum loading_status loading_take_block(struct loading *loading) {
    struct loading_block taken = loading->next;
    switch (loading->next_status) {
    case SNAPSHOT_BLOCK:
        loading->next = loading->block;
        loading->block = taken;
        loading->size_done = taken.offset;
        loading_read_next(loading);
        effect_bytes_decode_begin(&loading->decoder,
                                  (struct bytes){.at = taken.raw, .size = taken.size});
        loading->is_decoding = true;
        return LOADING_MORE;
    case SNAPSHOT_LARGER:
        if (!loading_grow(&loading->next, taken.size)) {
            return loading_fail_memory(loading);
        }
        loading_read_next(loading);
        return LOADING_WAITS;
    case SNAPSHOT_END:
        loading->block.offset = taken.offset;
        return loading_end_base(loading);
    case SNAPSHOT_DAMAGED:
    case SNAPSHOT_FAILED:
        break;
    }
    return loading_fail_reading(loading, loading->base.error,
                                loading->next_status == SNAPSHOT_DAMAGED);
}

/* ---- the journals ---- */

static enum loading_status loading_open_journal(struct loading *loading) {
    const struct store_state *state = &loading->store->state;
    const struct store_journal *journal = &state->journals[loading->journal_index];
    bool is_last = loading->journal_index + 1 == state->journal_count;
    int fd = loading_open_file(loading, STORE_JOURNAL, journal->number);
    if (fd < 0) {
        return loading_fail(loading, "cannot open %s, which the manifest names: %s", loading->path,
                            strerror(errno));
    }
    if (journal->first_sequence > loading->sequence + 1) {
        close(fd);
        /* A file can lose groups at a group boundary; only the first sequence of the next file shows it. */
        struct store_name before = {.text = "what is before it"};
        if (loading->journal_index > 0) {
            before = store_name(STORE_JOURNAL, state->journals[loading->journal_index - 1].number);
        } else if (state->base_number != 0) {
            before = store_name(STORE_BASE, state->base_number);
        }
        return loading_fail(
            loading,
            "%s begins with change %llu, but %s ends with %llu: the changes between them are "
            "missing. Restore a backup",
            loading->path, (unsigned long long)journal->first_sequence, before.text,
            (unsigned long long)loading->sequence);
    }
    loading->is_journal_open = true;
    enum journal_status status = journal_file_reader_open(&loading->journal, fd, loading->path,
                                                          journal->first_sequence, is_last);
    return status == JOURNAL_GROUP
               ? LOADING_MORE
               : loading_fail_reading(loading, loading->journal.error, status == JOURNAL_DAMAGED);
}

static enum loading_status loading_take_group(struct loading *loading) {
    struct journal_group *group = &loading->group;
    enum journal_status status = JOURNAL_GROUP;
    if (!journal_file_reader_next_at_hand(&loading->journal, group)) {
        if (!effect_batch_is_done(&loading->batch)) {
            return loading_apply_batch(loading);
        }
        status = journal_file_reader_next(&loading->journal, group);
    }
    switch (status) {
    case JOURNAL_GROUP:
        loading->size_done = loading->size_before + group->offset;
        if (group->sequence <= loading->sequence) {
            return LOADING_MORE;
        }
        loading->sequence = group->sequence;
        loading->time_us = group->time_us; /* not earlier than the previous, except after a reset */
        loading->group_count++;
        effect_bytes_decode_begin(&loading->decoder,
                                  (struct bytes){.at = group->payload, .size = group->size});
        loading->is_decoding = true;
        return LOADING_MORE;
    case JOURNAL_END:
    case JOURNAL_TORN:
        loading->size_before += loading->journal.window.file_size;
        loading->size_done = loading->size_before;
        journal_file_reader_close(&loading->journal);
        loading->is_journal_open = false;
        loading->journal_index++;
        return LOADING_MORE;
    case JOURNAL_DAMAGED:
    case JOURNAL_FAILED:
        break;
    }
    return loading_fail_reading(loading, loading->journal.error, status == JOURNAL_DAMAGED);
}

/* ---- the interface ---- */

static uint64_t loading_size_of(struct loading *loading, enum store_kind kind, uint64_t number) {
    uint64_t size = 0;
    int fd = loading_open_file(loading, kind, number);
    if (fd >= 0) {
        (void)disk->size(fd, &size);
        disk_close(fd);
    }
    return size;
}

struct loading *loading_create(struct registry *registry, const struct store *store,
                               void (*changed)(void *context), void *context) {
    struct loading *loading = memory_allocate_zeroed(sizeof *loading);
    if (loading != NULL) {
        loading->registry = registry;
        loading->store = store;
        loading->changed = changed;
        loading->context = context;
    }
    return loading;
}

bool loading_init(struct loading *loading, uv_loop_t *loop) {
    const struct store_state *state = &loading->store->state;
    if (state->base_number != 0) {
        loading->size_total = loading_size_of(loading, STORE_BASE, state->base_number);
    }
    for (uint32_t i = 0; i < state->journal_count; i++) {
        loading->size_total += loading_size_of(loading, STORE_JOURNAL, state->journals[i].number);
    }
    loading->phase = state->base_number != 0 ? LOADING_BASE : LOADING_JOURNALS;
    return worker_init(&loading->worker, loop, WORKER_AS_THE_LOOP, loading_on_read, loading);
}

void loading_deinit(struct loading *loading) {
    loading_close_base(loading);
    worker_deinit(&loading->worker);
    if (loading->open.is_open && !loading->open.is_known) {
        registry_discard_board(loading->registry, &loading->open.board);
    }
    loading->open.is_open = false;
    if (loading->is_journal_open) {
        journal_file_reader_close(&loading->journal);
        loading->is_journal_open = false;
    }
}

static enum loading_status loading_step_once(struct loading *loading) {
    switch (loading->phase) {
    case LOADING_BASE:
        if (loading->open.is_indexing) {
            return loading_index_board(loading);
        }
        if (loading->is_decoding) {
            return loading_take_record(loading);
        }
        if (!loading->is_base_open) {
            return loading_open_base(loading);
        }
        return loading->has_next ? loading_take_block(loading) : LOADING_WAITS;
    case LOADING_JOURNALS:
        if (loading->is_decoding) {
            return loading_take_record(loading);
        }
        if (loading->is_journal_open) {
            return loading_take_group(loading);
        }
        if (loading->journal_index < loading->store->state.journal_count) {
            return loading_open_journal(loading);
        }
        loading->phase = LOADING_END;
        return LOADING_MORE;
    case LOADING_END:
        break;
    }
    return LOADING_DONE;
}

enum loading_status loading_step(struct loading *loading, uint64_t budget_ns) {
    uint64_t begin = clock_ticks();
    enum loading_status status;
    do {
        status = loading_step_once(loading);
    } while (status == LOADING_MORE && clock_ticks_to_ns(clock_ticks() - begin) < budget_ns);
    (void)registry_free_step(loading->registry, FREE_WORK);
    return status;
}

bool loading_run(struct loading *loading) {
    enum loading_status status;
    while ((status = loading_step(loading, UINT64_MAX)) == LOADING_WAITS) {
        worker_wait(&loading->worker);
    }
    return status == LOADING_DONE;
}
