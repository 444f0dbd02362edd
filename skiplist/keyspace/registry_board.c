/* Boards as values of keys: changes of their members, which are reported and which a walk in the
 * same board takes into account; and their table of operations.
 *
 * The cursor of a walk is a rank and the key of the last entry returned: a larger key is before it,
 * a smaller key behind it, and the rank decides only among equal keys. */
#include "codec/memory.h"
#include "skiplist/block.h"
#include "skiplist/keyspace/league.h"
#include "skiplist/keyspace/registry_private.h"

/* Cost of queueing and freeing one key, in members: the key, the board, its first block. */
enum { KEY_WORK = 2 };

/* ---- a walk in the board that changes ---- */

/* Is an entry with this key before the cursor? */
static bool registry_board_is_key_before(const struct key_cursor *cursor, uint64_t key,
                                         bool if_equal) {
    return cursor->has_last && (key != cursor->last ? key > cursor->last : if_equal);
}

static bool registry_board_is_member_before(const struct registry_walk *walk,
                                            const struct board_member *member) {
    const struct key_cursor *cursor = &walk->cursor;
    bool is_tie = cursor->has_last && member->key == cursor->last;
    return is_tie ? board_rank_of(&walk->open->board, member) < cursor->rank
                  : registry_board_is_key_before(cursor, member->key, false);
}

/* ---- members ---- */

/* Separate from the callers, so that an unobserved change costs only a test and a jump. */
__attribute__((noinline)) static enum board_status
registry_board_put_observed(struct registry *registry, struct registry_key *key,
                            const struct board_member *member, uint64_t packed_key) {
    bool is_open = registry->walk.open == key;
    uint32_t rank = registry->walk.cursor.rank;
    if (is_open) {
        struct registry_walk *walk = &registry->walk;
        walk->was_before = member->is_there && registry_board_is_member_before(walk, member);
        /* A new entry is placed behind all its equals, or (LATEST) before them. */
        walk->is_before =
            registry_board_is_key_before(&walk->cursor, packed_key, board_is_latest(&key->board));
        walk->cursor.rank += (uint32_t)walk->is_before - (uint32_t)walk->was_before;
    }
    enum board_status status = board_put_member(&key->board, member, packed_key);
    if (status == BOARD_OK) {
        registry_count_members(registry, key, !member->is_there);
        effect_emit(
            registry, key,
            (struct effect){.kind = EFFECT_PUT, .member = member->name, .member_key = packed_key});
    } else if (is_open) {
        registry->walk.cursor.rank = rank;
    }
    return status;
}

__attribute__((noinline)) static enum board_status
registry_board_put_new(struct registry *registry, struct registry_key *key,
                       const struct board_member *member, uint64_t packed_key) {
    enum board_status status = board_put_member(&key->board, member, packed_key);
    if (status == BOARD_OK) {
        registry_count_members(registry, key, 1);
    }
    return status;
}

enum board_status registry_board_put(struct registry *registry, struct registry_key *key,
                                     const struct board_member *member, uint64_t packed_key) {
    if (registry->is_observed) {
        return registry_board_put_observed(registry, key, member, packed_key);
    }
    return member->is_there ? board_put_member(&key->board, member, packed_key)
                            : registry_board_put_new(registry, key, member, packed_key);
}

enum board_status registry_board_append(struct registry *registry, struct registry_key *key,
                                        const struct board_entry *entries, uint32_t count) {
    CHECK(key->database == REGISTRY_STAGING && !board_is_latest(&key->board));
    uint32_t count_before = board_count(&key->board);
    enum board_status status = board_append_indexed(&key->board, entries, count);
    registry_count_members(registry, key, board_count(&key->board) - count_before);
    if (registry->walk.open == key) { /* they are ahead */
        registry->walk.was_before = false;
        registry->walk.is_before = false;
    }
    for (uint32_t i = 0; i < count && status == BOARD_OK && registry->is_observed; i++) {
        effect_emit(registry, key,
                    (struct effect){.kind = EFFECT_PUT,
                                    .member = entries[i].member,
                                    .member_key = entries[i].key});
    }
    return status;
}

__attribute__((noinline)) static void
registry_board_take_observed(struct registry *registry, struct registry_key *key,
                             const struct board_member *member) {
    if (registry->walk.open == key) {
        registry->walk.was_before = registry_board_is_member_before(&registry->walk, member);
        registry->walk.is_before = false;
        registry->walk.cursor.rank -= registry->walk.was_before;
    }
    board_remove_member(&key->board, member);
    effect_emit(registry, key, (struct effect){.kind = EFFECT_TAKE, .member = member->name});
}

void registry_board_take(struct registry *registry, struct registry_key *key,
                         const struct board_member *member) {
    registry_count_members(registry, key, -1);
    if (registry->is_observed) {
        registry_board_take_observed(registry, key, member);
    } else {
        board_remove_member(&key->board, member);
    }
}

/* Values of removed members take room until they are freed, and when that is differs from server to server. */
enum tags_status registry_board_tag(struct registry *registry, struct registry_key *key,
                                    const struct board_member *member,
                                    const struct tag_values *values, unsigned *full) {
    enum tags_status status = tags_set(&key->board, member, values, full);
    while (status == TAGS_FULL && board_free_remains(&key->board)) {
        status = tags_set(&key->board, member, values, full);
    }
    if (status == TAGS_OK && registry->listeners != NULL) {
        char packed[TAG_VALUES_PACKED_MAX];
        size_t size = tag_values_pack(values, packed);
        if (registry->walk.open == key) {
            registry->walk.was_before = registry_board_is_member_before(&registry->walk, member);
            registry->walk.is_before = registry->walk.was_before;
        }
        effect_emit(registry, key,
                    (struct effect){.kind = EFFECT_TAGS,
                                    .member = member->name,
                                    .value = {.at = packed, .size = size}});
    }
    return status;
}

void registry_board_cut(struct registry *registry, struct registry_key *key, uint32_t rank,
                        uint32_t count) {
    if (count > 0) {
        effect_emit(registry, key,
                    (struct effect){.kind = EFFECT_CUT, .rank = rank, .count = count});
    }
    uint32_t *walked = &registry->walk.cursor.rank;
    if (registry->walk.open == key && rank < *walked) {
        *walked -= *walked - rank < count ? *walked - rank : count;
    }
    board_remove_range(&key->board, rank, count);
    registry_count_members(registry, key, -(int64_t)count);
    board_chain_put(&registry->remains, &key->board);
    registry_tell(registry, key->database, registry_name(key));
}

/* ---- boards that are made in steps ---- */

static struct bytes registry_board_name_staged(const uint64_t *number) {
    return (struct bytes){.at = (const char *)number, .size = sizeof *number};
}

struct registry_key *registry_board_stage(struct registry *registry, const struct layout *layout,
                                          uint64_t *number) {
    struct board_options whole;
    board_options_copy(board_options_of(layout), &whole);
    const struct board_options options = {.is_dense = whole.is_dense, .layout = whole.layout};
    *number = registry->board_count;
    while (registry_board_find_staged(registry, *number) != NULL) {
        (*number)++;
    }
    struct registry_key *key =
        registry_make_key(registry, REGISTRY_STAGING, registry_board_name_staged(number),
                          REGISTRY_BOARD, &options, NULL);
    if (key != NULL) {
        effect_emit_key(registry, EFFECT_CREATE, key);
    }
    return key;
}

struct registry_key *registry_board_find_staged(struct registry *registry, uint64_t number) {
    return registry_find_again(registry_database(registry, REGISTRY_STAGING),
                               registry_board_name_staged(&number));
}

enum registry_status registry_board_unstage(struct registry *registry, struct registry_key *key,
                                            uint32_t to_database, struct bytes to_name,
                                            const struct board_options *options, bool is_told_whole,
                                            int64_t now_ms) {
    CHECK(layout_equal(&options->layout, board_layout(&key->board)));
    CHECK(options->is_dense == board_is_dense(&key->board));
    const struct board_options *held = board_options_hold(&registry->options, options);
    return held != NULL ? registry_rename_to(registry, key, to_database, to_name, held,
                                             is_told_whole ? EFFECT_FILL : EFFECT_RENAME, now_ms)
                        : REGISTRY_OUT_OF_MEMORY;
}

void registry_board_drop_staged(struct registry *registry) {
    struct database *staging = registry_database(registry, REGISTRY_STAGING);
    while (staging->count > 0) {
        registry_remove(registry, registry_key_at(staging, staging->count - 1));
    }
}

/* ---- members whose time is over ---- */

enum { CUT_WORK = 32 /* removing a range, in members looked at */ };

/* The keys of one layout whose times are over: units below a limit. */
struct ages {
    uint64_t mask, flip; /* of the bits of the time: they are its units, XOR flip */
    uint64_t units_end;  /* the first unit that is not stale */
};

bool registry_board_may_drop_stale(const struct registry_key *key, int64_t now_ms) {
    if (key->kind != REGISTRY_BOARD) {
        return false;
    }
    const struct board_options *options = registry_options(key);
    return options->stale_ms > 0 && !registry_is_over(key, now_ms) &&
           board_options_refuse(options, BOARD_WRITE_AWAY, now_ms) == BOARD_TAKE;
}

/* Entries in a row of which all are stale, or none is. */
struct stretch {
    uint32_t count;
    bool is_stale;
    uint64_t last_key;
};

/* The stretch from a rank on, of about count_max entries at the most. */
static struct stretch registry_board_find_stretch(const struct board *board, uint32_t rank,
                                                  uint32_t count_max, const struct ages *ages) {
    struct stretch stretch = {.count = 0};
    struct board_cursor cursor;
    struct block_run run;
    board_cursor_seek(board, rank, &cursor);
    while (stretch.count < count_max &&
           board_cursor_run(&cursor, true, count_max - stretch.count, &run)) {
        while (run.count > 0) {
            bool is_stale = ((*run.keys & ages->mask) ^ ages->flip) < ages->units_end;
            struct name member;
            if (stretch.count > 0 && is_stale != stretch.is_stale) {
                return stretch;
            }
            stretch.is_stale = is_stale;
            stretch.count += block_run_read_to(&run, true, &stretch.last_key, &member);
        }
    }
    return stretch;
}

uint32_t registry_board_drop_stale(struct registry *registry, struct registry_key *key,
                                   int64_t now_ms, uint64_t *from_key, uint32_t *work,
                                   bool *is_done) {
    const struct board *board = &key->board;
    const struct board_options *options = registry_options(key);
    const struct layout_time *time = &options->layout.time;
    int64_t limit_us = (now_ms - options->stale_ms) * 1000;
    uint64_t passed_us =
        limit_us > time->start_us ? (uint64_t)limit_us - (uint64_t)time->start_us : 0;
    const struct ages ages = {.mask = time->mask,
                              .flip = time->is_latest ? 0 : time->mask,
                              .units_end = passed_us / (uint64_t)time->unit_us};
    uint32_t removed_count = 0;
    uint32_t rank = board_count_above(board, *from_key);
    *is_done = ages.units_end == 0;
    while (!*is_done && *work > 0) {
        struct stretch stretch = registry_board_find_stretch(board, rank, *work, &ages);
        uint32_t cost = stretch.count + (stretch.is_stale ? CUT_WORK : 0);
        *work -= cost < *work ? cost : *work;
        *is_done = stretch.count == 0;
        if (stretch.is_stale) {
            registry_board_cut(registry, key, rank, stretch.count);
            removed_count += stretch.count;
        } else {
            rank += stretch.count;
        }
        if (stretch.count > 0 && !stretch.is_stale) {
            /* Those with the same key have the same time, and are not stale either. */
            *is_done = stretch.last_key == 0;
            *from_key = stretch.last_key - !*is_done;
        } else if (stretch.count > 0) {
            *from_key = stretch.last_key;
        }
    }
    registry->totals.stale += removed_count;
    return removed_count;
}

/* ---- other options ---- */

static bool registry_board_fits(const struct board *board, const struct tag_set *tags,
                                unsigned *full) {
    for (unsigned i = 0; i < tags->count; i++) {
        const struct tag *tag = &tags->tags[i];
        int index = tag_set_find(&board_layout(board)->tags, bytes_from_text(tag->name));
        if (index >= 0 && tags_count_values(board, (unsigned)index) > tag_values_max(tag)) {
            *full = i;
            return false;
        }
    }
    return true;
}

bool registry_board_tags_fit(struct registry_key *key, const struct layout *layout,
                             unsigned *full) {
    bool fits = registry_board_fits(&key->board, &layout->tags, full);
    while (!fits && board_free_remains(&key->board)) {
        fits = registry_board_fits(&key->board, &layout->tags, full);
    }
    return fits;
}

/* Give the board options that are held, in whose tags its values have room. false: no memory. */
static bool registry_board_set_options(struct registry *registry, struct registry_key *key,
                                       const struct board_options *options) {
    const struct board_options *before = registry_options(key);
    bool was_dense = before->is_dense;
    unsigned full;
    if (!board_set_dense(&key->board, options->is_dense || was_dense)) {
        return false;
    }
    bool is_set = true;
    if (!tag_set_equal(&before->layout.tags, &options->layout.tags)) {
        /* Not TAGS_FULL: registry_board_tags_fit has been asked. */
        enum tags_status status = tags_alter(&key->board, &options->layout, &full);
        is_set = status == TAGS_OK || status == TAGS_SAME;
    }
    /* To end needs no memory. */
    bool has_ended = board_set_dense(&key->board, is_set ? options->is_dense : was_dense);
    CHECK(has_ended);
    if (is_set) {
        board_set_layout(&key->board, &options->layout);
        board_chain_put(&registry->remains, &key->board);
        board_options_release(&registry->options, before);
    }
    return is_set;
}

struct registry_key *registry_board_alter(struct registry *registry, struct registry_key *key,
                                          const struct board_options *options,
                                          const struct board_state *state) {
    const struct board_options *held = board_options_hold(&registry->options, options);
    if (held == NULL) {
        return NULL;
    }
    struct board_state given = *(state != NULL ? state : registry_state(key));
    bool is_set;
    registry_count_state(registry, key, -1);
    if ((held->period.unit != PERIOD_NONE) != key->is_periodic ||
        (board_options_have_state(held) && !key->has_state) ||
        board_options_have_notes(held) != key->has_notes) {
        /* The board moves to a key of the same name with another tail; notes that this cannot have to a hash that is in no
         * database, to be freed in steps. */
        bool drops_notes = key->has_notes && !board_options_have_notes(held);
        struct registry_new_name name = {.first = registry_name(key)};
        struct registry_key *notes =
            drops_notes ? registry_create_key(key->database, name, REGISTRY_HASH,
                                              registry_tail_of_hash(registry_note_hash(key)))
                        : NULL;
        struct registry_key *successor =
            (notes != NULL) == drops_notes
                ? registry_reserve_key(registry, key->database, name, REGISTRY_BOARD,
                                       key->expiry_place != EXPIRY_NOWHERE, registry_tail_for(held))
                : NULL;
        is_set = successor != NULL && registry_board_set_options(registry, key, held);
        if (is_set) {
            if (drops_notes) {
                hash_move(registry_own_notes(key), registry_own_hash(notes),
                          registry_hash_room(notes));
                registry_free_later(registry, notes);
            }
            registry_replace(registry, key, successor);
            key = successor;
        } else {
            registry_free_key(notes);
            memory_free(successor);
        }
    } else {
        is_set = (!key->is_periodic ||
                  registry_roll_reserve_end(registry_database(registry, key->database))) &&
                 registry_board_set_options(registry, key, held);
        if (is_set && key->is_periodic) {
            registry_roll_await(registry, key);
        }
    }
    if (!is_set) {
        registry_count_state(registry, key, 1);
        board_options_release(&registry->options, held);
        return NULL;
    }
    registry_give_state(key, &given);
    registry_count_state(registry, key, 1);
    effect_emit_key(registry, EFFECT_OPTIONS, key);
    registry_tell(registry, key->database, registry_name(key));
    return key;
}

struct registry_key *registry_board_alter_both(struct registry *registry, struct registry_key *key,
                                               const struct board_options *options,
                                               const struct board_state *state,
                                               struct registry_key *other,
                                               const struct board_options *beside) {
    const struct board_options *held =
        other != NULL ? board_options_hold(&registry->options, beside) : NULL;
    if (other != NULL && held == NULL) {
        return NULL;
    }
    key = registry_board_alter(registry, key, options, state);
    if (key != NULL && other != NULL) {
        /* What it gets is held, and it stays where it is: that needs no memory. */
        bool is_altered = registry_board_alter(registry, other, held, NULL) == other;
        CHECK(is_altered);
    }
    board_options_release(&registry->options, held);
    return key;
}

/* ---- operations ---- */

/* What the last step of a board with remains takes is not known, and counts in full. */
static bool registry_board_free_step(struct registry *registry, struct registry_key *key,
                                     uint32_t *work) {
    const struct board_options *options = registry_options(key);
    uint64_t work_left = (uint64_t)board_count(&key->board) + KEY_WORK;
    if (key->has_notes && hash_size(registry_note_hash(key)) > HASH_HEAD_SIZE) {
        (void)!hash_free_step(registry_own_notes(key), work);
        return false;
    }
    bool has_remains = board_has_remains(&key->board);
    if (!board_deinit_step(&key->board, *work)) {
        return false;
    }
    if (!has_remains && work_left < *work) {
        *work = (uint32_t)work_left;
    }
    board_options_release(&registry->options, options);
    return true;
}

static size_t registry_board_size(const struct registry_key *key) {
    return board_memory_size(&key->board) +
           (key->has_notes ? hash_memory_size(registry_note_hash(key)) : 0);
}

static bool registry_board_copy(struct registry *registry, const struct registry_key *key,
                                struct registry_key *to) {
    CHECK(key->has_notes == to->has_notes);
    if (!board_copy(&key->board, &to->board)) {
        return false;
    }
    if (key->has_notes && !hash_copy(registry_note_hash(key), registry_own_notes(to))) {
        board_deinit(&to->board);
        return false;
    }
    board_options_hold_again(&registry->options, registry_options(key));
    return true;
}

static void registry_board_move(struct registry_key *key, struct registry_key *to) {
    board_move_to(&key->board, &to->board);
    registry_note_move_all(key, to);
}

bool registry_board_walks_notes(const struct registry_key *key, const struct key_cursor *cursor) {
    return cursor->rank == board_count(&key->board) && !cursor->are_notes_done &&
           registry_note_count(key) > 0;
}

/* Members, then the notes once, then members that have come behind them meanwhile. Changes of notes on the open board are
 * all recorded. */
static uint32_t registry_board_walk(const struct registry_key *key, struct key_cursor *cursor,
                                    void *entries, uint32_t entries_max, bool *is_last) {
    if (registry_board_walks_notes(key, cursor)) {
        /* As fields of a hash, from the last one on. */
        struct key_cursor notes = {.rank = cursor->notes_ahead,
                                   .has_last = cursor->has_notes_begun};
        uint32_t note_count = registry_hash_walk_on(registry_note_hash(key), &notes, entries,
                                                    entries_max, &cursor->are_notes_done);
        cursor->notes_ahead = notes.rank;
        cursor->has_notes_begun = true;
        *is_last = cursor->are_notes_done && cursor->rank == board_count(&key->board);
        return note_count;
    }
    struct board_stored *entry = entries;
    struct board_cursor place;
    struct block_run run;
    uint32_t count = 0;
    board_cursor_seek(&key->board, cursor->rank, &place);
    while (count < entries_max && board_cursor_run(&place, true, entries_max - count, &run)) {
        while (block_run_read_to(&run, true, &entry[count].key, &entry[count].member)) {
            count++;
        }
    }
    if (count > 0) {
        cursor->rank += count;
        cursor->last = entry[count - 1].key;
        cursor->has_last = true;
    }
    *is_last = cursor->rank == board_count(&key->board) && !registry_board_walks_notes(key, cursor);
    return count;
}

/* The TAGS of the member that was filled in last; false: it has no values. */
static bool registry_board_fill_tags(struct effect_fill *fill, struct effect *effect) {
    const struct board *board = &effect->key->board;
    uint32_t rank = fill->is_reverse ? board_count(board) - fill->done : fill->done - 1;
    struct tag_values values;
    fill->has_tags_left = false;
    tags_at(board, rank, &values);
    if (values.mask == 0) {
        return false;
    }
    effect->kind = EFFECT_TAGS;
    effect->member = fill->member;
    effect->value =
        (struct bytes){.at = fill->values, .size = tag_values_pack(&values, fill->values)};
    return true;
}

/* In rank order, so that equals arrive in their order; LATEST: in reverse. Then the notes. */
static bool registry_board_fill(struct effect_fill *fill, struct effect *effect) {
    const struct board *board = &effect->key->board;
    uint32_t count = board_count(board);
    struct board_stored entry;
    if (fill->done == 0) {
        fill->has_values = tags_has_values(board);
        fill->is_reverse = board_is_latest(board);
        board_cursor_seek(board, fill->is_reverse && count > 0 ? count - 1 : 0, &fill->cursor);
    }
    if (fill->has_tags_left && registry_board_fill_tags(fill, effect)) {
        return true;
    }
    struct registry_note_room *room = &fill->rooms[fill->done % 2];
    if (fill->done >= count) {
        struct hash_pair pair;
        if (fill->done - count == registry_note_count(effect->key)) {
            return false;
        }
        registry_note_at(effect->key, fill->done - count, &pair, room);
        fill->done++;
        effect->kind = EFFECT_NOTE;
        effect->member = pair.field;
        effect->value = pair.value;
        return true;
    }
    CHECK(board_cursor_read(&fill->cursor, &entry));
    fill->member = name_text(entry.member, room->text);
    effect->member = fill->member;
    effect->member_key = entry.key;
    fill->has_tags_left = fill->has_values;
    fill->done++;
    if (fill->is_reverse) {
        board_cursor_previous(&fill->cursor);
    } else {
        board_cursor_next(&fill->cursor);
    }
    return true;
}

static const char *registry_board_check(const struct registry *registry,
                                        const struct registry_key *key,
                                        const struct key_cursor *cursor) {
    const char *reason;
    if (!board_options_are_in(&registry->options, registry_options(key))) {
        return "registry: a board's options are not those of the set";
    }
    if (key->is_periodic != (registry_options(key)->period.unit != PERIOD_NONE)) {
        return "registry: a key and its board differ about having a period";
    }
    if ((board_options_have_state(registry_options(key)) && !key->has_state) ||
        !board_options_take_state(registry_options(key), registry_state(key))) {
        return "registry: a board has no state, or one that contradicts its options";
    }
    if (key->has_notes != board_options_have_notes(registry_options(key))) {
        return "registry: a key and its board differ about having notes";
    }
    const char *wrong = key->has_notes ? hash_check(registry_note_hash(key)) : NULL;
    if (wrong != NULL) {
        return wrong;
    }
    if (cursor != NULL) {
        uint32_t rank_min = cursor->has_last ? board_count_above(&key->board, cursor->last) : 0;
        uint32_t rank_max = cursor->has_last ? board_count_from(&key->board, cursor->last) : 0;
        return cursor->rank >= rank_min && cursor->rank <= rank_max
                   ? NULL
                   : "registry: the walk's rank is not where its last key belongs";
    }
    return board_validate(&key->board, &reason) ? NULL : reason;
}

const struct registry_key *registry_board_find_whole(const struct registry *registry,
                                                     uint32_t database, struct bytes name) {
    struct league_entry place;
    const struct board_options *options;
    if (registry_league_count(registry) == 0) {
        return NULL;
    }
    (void)!registry_roll_archive_board(name, &name);
    const struct registry_key *key =
        league_find_of_room(registry, database, name, &place, &options);
    return key != NULL ? key : league_find_of_template(registry, database, name);
}

bool registry_board_names_room(struct bytes name) {
    struct bytes room = name;
    struct bytes prefix, inner;
    struct league_entry place;
    (void)!registry_roll_archive_board(name, &room);
    return league_parse_room(room, &prefix, &inner, &place);
}

const struct key_kind key_kind_board = {
    .name = "zset",
    .number = REGISTRY_BOARD,
    .free_step = registry_board_free_step,
    .size = registry_board_size,
    .copy = registry_board_copy,
    .move = registry_board_move,
    .walk = registry_board_walk,
    .fill = registry_board_fill,
    .change = effect_apply_to_board,
    .expire = league_settle,
    .taken = registry_roll_note_taken,
    .removed = registry_roll_note_removed,
    .check = registry_board_check,
};
