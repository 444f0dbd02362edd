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
#include "skiplist/keyspace/key_kind.h"

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

static bool loading_is_member_missing(const struct loading *loading, const struct effect *effect) {
    const struct registry_key *key =
        registry_peek(loading->registry, effect->database, effect->name, INT64_MIN);
    uint64_t ignored;
    return key == NULL || key->kind != REGISTRY_BOARD ||
           !board_find(&key->board, effect->member, &ignored);
}

/* A member, or a field of a hash, that was removed before the walk reached it is in no piece. */
static bool loading_may_be_missing(const struct loading *loading, const struct effect *effect) {
    if (effect->kind == EFFECT_TAGS) {
        return loading->applies_kept && loading_is_member_missing(loading, effect);
    }
    return effect->kind == EFFECT_TAKE &&
           (loading->applies_kept ||
            (loading->phase == LOADING_BASE && effect->key_kind == &key_kind_hash));
}

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
        if (!loading_may_be_missing(loading, &batch->effects[batch->done])) {
            return loading_fail_meaning_at(loading, loading->batch_offsets[batch->done],
                                           "a change does not fit the keys");
        }
    }
}

static enum loading_status loading_add_to_batch(struct loading *loading,
                                                const struct effect *effect) {
    bool is_due = effect_batch_add(&loading->batch, effect);
    loading->batch_offsets[loading->batch.count - 1] = loading_chunk_offset(loading);
    return is_due ? loading_apply_batch(loading) : LOADING_MORE;
}

static bool loading_is_open_board(const struct loading *loading, uint32_t database,
                                  struct bytes name) {
    const struct loading_board *open = &loading->open;
    return open->is_open && open->database == database &&
           bytes_equal((struct bytes){.at = open->name, .size = open->name_size}, name);
}

static void loading_forget_kept(struct loading_board *open) {
    board_deinit(&open->touched);
    buffer_deinit(&open->kept);
    for (unsigned i = 0; i < TAGS_MAX; i++) {
        board_deinit(&open->seen[i]);
    }
}

static void loading_drop_open(struct loading *loading) {
    struct loading_board *open = &loading->open;
    registry_discard_board(loading->registry, &open->board);
    loading_forget_kept(open);
    open->is_open = false;
    open->is_ending = false;
}

static void loading_name_open(struct loading_board *open, uint32_t database, struct bytes name) {
    open->database = database;
    open->name_size = (uint32_t)name.size;
    memcpy(open->name, name.at, name.size);
}

/* Keep an effect on a member of the open board. */
static enum loading_status loading_keep_effect(struct loading *loading,
                                               const struct effect *effect) {
    struct loading_board *open = &loading->open;
    effect_bytes_encode(&open->encoder, effect);
    if (open->kept.is_broken || board_put(&open->touched, effect->member, 0) != BOARD_OK) {
        return loading_fail_memory(loading);
    }
    return LOADING_MORE;
}

/* Note the values that a member of the open board has at some time. false: no memory. */
static bool loading_see_values(struct loading_board *open, const struct tag_values *values) {
    const struct tag_set *tags = &open->rules.layout.tags;
    for (unsigned i = 0; i < tags->count && !open->keeps_values; i++) {
        if ((values->mask >> i & 1) == 0 || values->at[i].size == 0) {
            continue;
        }
        if (board_put(&open->seen[i], values->at[i], 0) != BOARD_OK) {
            return false;
        }
        open->keeps_values |= board_count(&open->seen[i]) > tag_values_max(&tags->tags[i]);
    }
    return true;
}

/* Keep values, of the tags that the stream has now: those of a member that is not there in the end go with it. */
static enum loading_status loading_keep_values(struct loading *loading,
                                               const struct effect *effect) {
    struct loading_board *open = &loading->open;
    struct tag_values values;
    if (!tag_values_unpack(effect->value, TAGS_MAX, &values)) {
        return loading_fail_meaning(loading, "values of tags are damaged");
    }
    effect_bytes_encode(&open->encoder, effect);
    return loading_see_values(open, &values) && !open->kept.is_broken
               ? LOADING_MORE
               : loading_fail_memory(loading);
}

/* Values of the entries that were appended last. */
static enum loading_status loading_tag_entries(struct loading *loading,
                                               const struct board_entry *entries,
                                               const struct bytes *packed, uint32_t count) {
    struct loading_board *open = &loading->open;
    struct tag_values values;
    uint32_t first = board_count(&open->board) - count;
    for (uint32_t i = 0; i < count; i++) {
        const struct effect effect = {.kind = EFFECT_TAGS,
                                      .database = open->database,
                                      .name = {.at = open->name, .size = open->name_size},
                                      .member = entries[i].member,
                                      .value = packed[i]};
        unsigned full;
        if (packed[i].size <= 1) {
            continue; /* it has none */
        }
        if (!open->keeps_values &&
            !tag_values_unpack(packed[i], open->rules.layout.tags.count, &values)) {
            return loading_fail_meaning(loading, "a member has values of unknown tags");
        }
        if (!open->keeps_values && !loading_see_values(open, &values)) {
            return loading_fail_memory(loading);
        }
        if (open->keeps_values) {
            if (loading_keep_values(loading, &effect) != LOADING_MORE) {
                return LOADING_FAILED;
            }
            continue;
        }
        switch (board_tag_at(&open->board, first + i, &values, &full)) {
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

/* Give the open board these rules, whose layout packs keys the same way: swap layouts with a board
 * created for that. */
static enum loading_status loading_behave_like(struct loading *loading, const struct rules *rules) {
    struct board *board = &loading->open.board;
    struct board other;
    if (!registry_create_board_like(loading->registry, rules, &other)) {
        return loading_fail_memory(loading);
    }
    const struct layout *layout = board_layout(board);
    board_set_layout(board, board_layout(&other));
    board_set_layout(&other, layout);
    registry_discard_board(loading->registry, &other);
    rules_copy(rules, &loading->open.rules);
    return LOADING_MORE;
}

/* Other rules of the open board. Its tags stay what they are until all its values are set: what they are to
 * be then is kept. */
static enum loading_status loading_change_rules(struct loading *loading,
                                                const struct rules *rules) {
    struct loading_board *open = &loading->open;
    const struct tag_set *tags = &open->rules.layout.tags;
    struct rules same;
    open->tags = rules->layout.tags;
    open->changes_tags |= !tag_set_equal(tags, &rules->layout.tags);
    if (open->changes_tags) {
        const struct effect effect = {.kind = EFFECT_RULES,
                                      .database = open->database,
                                      .name = {.at = open->name, .size = open->name_size},
                                      .rules = rules};
        open->keeps_values = true;
        effect_bytes_encode(&open->encoder, &effect);
    }
    rules_copy(rules, &same);
    same.layout.tags = *tags;
    return open->kept.is_broken ? loading_fail_memory(loading)
                                : loading_behave_like(loading, &same);
}

static void loading_set_state(struct loading_board *open, const struct effect *effect) {
    open->state = effect->state != NULL ? *effect->state : (struct board_state){.from_ms = 0};
}

static enum loading_status loading_rename_open(struct loading *loading,
                                               const struct effect *effect) {
    struct loading_board *open = &loading->open;
    if (!rules_keys_are_akin(&open->rules, effect->rules) ||
        !registry_may_put(loading->registry, effect->to_database, effect->to_name, effect->rules)) {
        return loading_fail_meaning(loading, "a board that is being read cannot be renamed so");
    }
    open->expire_at_ms = effect->expire_at_ms;
    loading_name_open(open, effect->to_database, effect->to_name);
    loading_set_state(open, effect);
    return loading_change_rules(loading, effect->rules);
}

static enum loading_status loading_change_open_rules(struct loading *loading,
                                                     const struct effect *effect) {
    if (!rules_keys_are_akin(&loading->open.rules, effect->rules)) {
        return loading_fail_meaning(loading, "a board that is being read cannot behave so");
    }
    loading_set_state(&loading->open, effect);
    return loading_change_rules(loading, effect->rules);
}

/* Handle an effect on the open board. */
static enum loading_status loading_change_open(struct loading *loading,
                                               const struct effect *effect) {
    struct loading_board *open = &loading->open;
    if (effect->key_kind != NULL) {
        return loading_fail_meaning(loading, "a change of a hash cannot happen to a board");
    }
    switch (effect->kind) {
    case EFFECT_PUT:
    case EFFECT_TAKE:
        return loading_keep_effect(loading, effect);
    case EFFECT_TAGS:
        return loading_keep_values(loading, effect);
    case EFFECT_EXPIRE:
        open->expire_at_ms = effect->expire_at_ms;
        return LOADING_MORE;
    case EFFECT_REMOVE:
        loading_drop_open(loading);
        return LOADING_MORE;
    case EFFECT_RENAME:
        return loading_rename_open(loading, effect);
    case EFFECT_RULES:
        return loading_change_open_rules(loading, effect);
    case EFFECT_STATE:
        loading_set_state(open, effect);
        return rules_take_state(&open->rules, &open->state)
                   ? LOADING_MORE
                   : loading_fail_meaning(loading, "a board that is being read has no such state");
    case EFFECT_CUT:
    case EFFECT_CREATE:
    case EFFECT_COPY:
    case EFFECT_FLUSH:
    case EFFECT_FILL:
        break;
    }
    return loading_fail_meaning(loading, "a change cannot happen to a board that is being read");
}

/* Does the effect give a board the open board's name? */
static bool loading_is_for_open_name(const struct loading *loading, const struct effect *effect) {
    return (effect->kind == EFFECT_RENAME || effect->kind == EFFECT_COPY) &&
           loading_is_open_board(loading, effect->to_database, effect->to_name);
}

static enum loading_status loading_take_effect(struct loading *loading) {
    const struct effect *effect = &loading->decoder.effect;
    loading->effect_count++;
    if (effect->kind == EFFECT_FLUSH) {
        if (loading->open.is_open && loading->open.database == effect->database) {
            loading_drop_open(loading);
        }
    } else if (loading_is_open_board(loading, effect->database, effect->name)) {
        return loading_change_open(loading, effect);
    } else if (loading_is_for_open_name(loading, effect)) {
        return loading_fail_meaning(loading, "two boards have the same name");
    }
    return loading_add_to_batch(loading, effect);
}

/* ---- boards of the base ---- */

static bool loading_begin_open(struct loading *loading) {
    struct loading_board *open = &loading->open;
    static const struct rules plain; /* its layout is never used: all keys are equal */
    if (!registry_create_board_like(loading->registry, &open->rules, &open->board)) {
        return false;
    }
    board_init(&open->touched, &plain.layout, 1);
    for (unsigned i = 0; i < TAGS_MAX; i++) {
        board_init(&open->seen[i], &plain.layout, 1);
    }
    open->keeps_values = false;
    open->changes_tags = false;
    buffer_init(&open->kept, 0);
    effect_bytes_encode_begin(&open->encoder, &open->kept);
    open->indexing = (struct board_indexing){.has_begun = false};
    open->is_open = true;
    return true;
}

static enum loading_status loading_open_board(struct loading *loading) {
    const struct effect *effect = &loading->decoder.effect;
    struct loading_board *open = &loading->open;
    if (open->is_open) {
        return loading_fail_meaning(loading, "a board begins within another one");
    }
    if (!registry_may_put(loading->registry, effect->database, effect->name, effect->rules)) {
        return loading_fail_meaning(loading, "two boards have the same name, or it is too long");
    }
    loading->base_boards++;
    loading_name_open(open, effect->database, effect->name);
    open->expire_at_ms = effect->expire_at_ms;
    rules_copy(effect->rules, &open->rules);
    loading_set_state(open, effect);
    open->tags = open->rules.layout.tags;
    return loading_begin_open(loading) ? LOADING_MORE : loading_fail_memory(loading);
}

/* Remove the entries whose members have changed since; returns how many remain. */
static uint32_t loading_leave_out_touched(const struct loading_board *open,
                                          struct board_entry *entries, struct bytes *values,
                                          uint32_t count) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct board_member member;
        board_look_up(&open->touched, entries[i].member, NULL, &member);
        if (!member.is_there) {
            values[kept] = values[i];
            entries[kept++] = entries[i];
        }
    }
    return kept;
}

static bool loading_is_in_order(const struct loading_board *open, const struct board_entry *entries,
                                uint32_t count) {
    uint32_t before = board_count(&open->board);
    uint64_t last = before > 0 ? open->last_key : UINT64_MAX;
    for (uint32_t i = 0; i < count; i++) {
        if (entries[i].key > last) {
            return false;
        }
        last = entries[i].key;
    }
    return true;
}

static enum loading_status loading_append_entries(struct loading *loading) {
    struct loading_board *open = &loading->open;
    struct board_entry *entries = loading->decoder.entries;
    uint32_t count = loading->decoder.entry_count;
    if (!open->is_open) {
        return loading_fail_meaning(loading, "members outside a board");
    }
    loading->base_members += count;
    if (board_count(&open->touched) > 0) {
        count = loading_leave_out_touched(open, entries, loading->decoder.entry_values, count);
    }
    if (count == 0) {
        return LOADING_MORE;
    }
    if (!loading_is_in_order(open, entries, count)) {
        return loading_fail_meaning(loading, "members of a board are out of order");
    }
    if (!layout_has_room(board_layout(&open->board), entries[0].key)) {
        return loading_fail_meaning(loading,
                                    "a member's key is larger than its board's layout allows");
    }
    if (board_append(&open->board, entries, count) != BOARD_OK) {
        return loading_fail_memory(loading);
    }
    open->last_key = entries[count - 1].key;
    loading->member_count += count;
    return loading->decoder.has_values
               ? loading_tag_entries(loading, entries, loading->decoder.entry_values, count)
               : LOADING_MORE;
}

/* Apply the kept effects, now that the board is in the registry. */
static enum loading_status loading_apply_kept(struct loading *loading) {
    struct loading_board *open = &loading->open;
    struct effect_decoder *decoder = &loading->kept_decoder;
    if (open->kept.size == 0) {
        return LOADING_MORE;
    }
    effect_bytes_decode_begin(decoder,
                              (struct bytes){.at = open->kept.at, .size = open->kept.size});
    while (effect_bytes_decode(decoder) == EFFECT_RECORD_EFFECT) {
        struct effect effect = decoder->effect;
        effect.database = open->database;
        effect.name = (struct bytes){.at = open->name, .size = open->name_size};
        struct rules rules;
        if (effect.kind == EFFECT_RULES) {
            rules_copy(effect.rules, &rules);
            rules.layout.time = open->rules.layout.time; /* the board may have emptied since */
            effect.rules = &rules;
            effect.state = &open->state; /* what it has come to be */
        }
        enum loading_status status = loading_add_to_batch(loading, &effect);
        if (status != LOADING_MORE) {
            return status;
        }
    }
    return loading_apply_batch(loading);
}

static enum loading_status loading_close_board(struct loading *loading) {
    struct loading_board *open = &loading->open;
    struct bytes name = {.at = open->name, .size = open->name_size};
    if (registry_put_loaded(loading->registry, open->database, name, &open->board, &open->state,
                            open->expire_at_ms) != REGISTRY_OK) {
        return loading_fail_memory(loading);
    }
    open->is_open = false;
    open->is_ending = false;
    loading->board_count++;
    loading->applies_kept = true;
    enum loading_status status = loading_apply_kept(loading);
    loading->applies_kept = false;
    loading_forget_kept(open);
    return status;
}

static enum loading_status loading_reopen_board(struct loading *loading) {
    if (!loading->open.is_open) {
        return loading_fail_meaning(loading, "no board is there to begin anew");
    }
    loading_drop_open(loading);
    loading->open.rules.layout.tags = loading->open.tags;
    return loading_begin_open(loading) ? LOADING_MORE : loading_fail_memory(loading);
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
        loading->open.is_ending = true;
        return LOADING_MORE;
    case EFFECT_RECORD_REOPEN:
        return loading_reopen_board(loading);
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

static enum loading_status loading_step_base(struct loading *loading) {
    if (loading->open.is_ending) {
        /* Build the index of the board once all its pieces are read. */
        bool is_done = false;
        if (board_append_end_step(&loading->open.board, &loading->open.indexing, APPEND_END_WORK,
                                  &is_done) != BOARD_OK) {
            return loading_fail_memory(loading);
        }
        return is_done ? loading_close_board(loading) : LOADING_MORE;
    }
    if (loading->is_decoding) {
        return loading_take_record(loading);
    }
    if (!loading->is_base_open) {
        return loading_open_base(loading);
    }
    return loading->has_next ? loading_take_block(loading) : LOADING_WAITS;
}

/* ---- the journals ---- */

/* A file can lose groups at a group boundary; only the first sequence of the next file shows it. */
static enum loading_status loading_fail_gap(struct loading *loading, uint64_t first_sequence) {
    const struct store_state *state = &loading->store->state;
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
        loading->path, (unsigned long long)first_sequence, before.text,
        (unsigned long long)loading->sequence);
}

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
        return loading_fail_gap(loading, journal->first_sequence);
    }
    loading->is_journal_open = true;
    enum journal_status status = journal_file_reader_open(&loading->journal, fd, loading->path,
                                                          journal->first_sequence, is_last);
    return status == JOURNAL_GROUP
               ? LOADING_MORE
               : loading_fail_reading(loading, loading->journal.error, status == JOURNAL_DAMAGED);
}

static enum loading_status loading_close_journal(struct loading *loading) {
    loading->size_before += loading->journal.window.file_size;
    loading->size_done = loading->size_before;
    journal_file_reader_close(&loading->journal);
    loading->is_journal_open = false;
    loading->journal_index++;
    return LOADING_MORE;
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
        return loading_close_journal(loading);
    case JOURNAL_DAMAGED:
    case JOURNAL_FAILED:
        break;
    }
    return loading_fail_reading(loading, loading->journal.error, status == JOURNAL_DAMAGED);
}

static enum loading_status loading_step_journals(struct loading *loading) {
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
    if (loading->open.is_open) {
        loading_drop_open(loading);
    }
    if (loading->is_journal_open) {
        journal_file_reader_close(&loading->journal);
        loading->is_journal_open = false;
    }
}

static enum loading_status loading_step_once(struct loading *loading) {
    switch (loading->phase) {
    case LOADING_BASE:
        return loading_step_base(loading);
    case LOADING_JOURNALS:
        return loading_step_journals(loading);
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
