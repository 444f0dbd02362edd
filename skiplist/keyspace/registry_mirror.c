/* Copies of keys in steps. See registry_mirror.h.
 *
 * Invariant: while the status is MORE, the copy holds the first copied_count entries of the original in order of
 * arrival: by rank, LATEST boards from the last rank on, hashes by index. An entry that is put goes behind
 * its equals (LATEST: before them), so next to an equal of last_key it is always beyond the copy. Notes follow, and of
 * those it holds the ones at index notes_left and above. */
#include "skiplist/keyspace/registry_mirror.h"

#include "codec/memory.h"
#include "skiplist/keyspace/registry.h"
#include "skiplist/keyspace/registry_private.h"
#include "skiplist/lookup.h"

static void registry_mirror_fail(struct registry_mirror *mirror,
                                 enum registry_mirror_status status) {
    if (mirror->status == REGISTRY_MIRROR_MORE) {
        mirror->status = status;
    }
}

/* ---- boards ---- */

/* Set the values that the member has in the original, or those of an effect. */
static void registry_mirror_tag_member(struct registry_mirror *mirror, struct bytes member,
                                       const struct tag_values *values) {
    struct board *board = &mirror->copy->board;
    struct board_member found;
    unsigned full;
    board_look_up(board, member, NULL, &found);
    if (!found.is_there) {
        return;
    }
    enum tags_status status = tags_set(board, &found, values, &full);
    /* As in registry_board_tag: members that were cut from the copy may still hold values. */
    while (status == TAGS_FULL && board_free_remains(board)) {
        status = tags_set(board, &found, values, &full);
    }
    switch (status) {
    case TAGS_OK:
    case TAGS_SAME:
        return;
    case TAGS_FULL:
        registry_mirror_fail(mirror, REGISTRY_MIRROR_LOST);
        return;
    case TAGS_OUT_OF_MEMORY:
        registry_mirror_fail(mirror, REGISTRY_MIRROR_OUT_OF_MEMORY);
    }
}

/* ahead: what was looked up for it, or NULL. */
static void registry_mirror_put_member(struct registry_mirror *mirror, struct bytes member,
                                       const struct lookup *ahead, uint64_t key) {
    struct board *board = &mirror->copy->board;
    struct board_member found;
    board_look_up(board, member, ahead, &found);
    if (board_put_member(board, &found, key) == BOARD_OK) {
        mirror->copied_count = board_count(board);
        const struct board *original = &mirror->key->board;
        struct tag_values values = {.mask = 0};
        if (tags_has_values(original)) {
            board_look_up(original, member, NULL, &found);
            tags_of(original, &found, &values);
        }
        if (values.mask != 0) {
            registry_mirror_tag_member(mirror, member, &values);
        }
    } else {
        registry_mirror_fail(mirror, REGISTRY_MIRROR_OUT_OF_MEMORY);
    }
}

static void registry_mirror_take_member(struct registry_mirror *mirror, struct bytes member) {
    struct board_member found;
    board_look_up(&mirror->copy->board, member, NULL, &found);
    if (found.is_there) {
        board_remove_member(&mirror->copy->board, &found);
        mirror->copied_count--;
    }
}

/* By rank, to the copy's end. */
static void registry_mirror_append_members(struct registry_mirror *mirror, uint32_t entries_max) {
    const struct board *board = &mirror->key->board;
    struct board *copy = &mirror->copy->board;
    uint32_t left = board_count(board) - mirror->copied_count;
    struct board_cursor cursor;
    struct board_stored entry;
    struct board_entry entries[REGISTRY_MIRROR_STEP];
    char rooms[REGISTRY_MIRROR_STEP][NAME_TEXT_ROOM];
    left = left < entries_max ? left : entries_max;
    board_cursor_seek(board, mirror->copied_count, &cursor);
    while (left > 0 && mirror->status == REGISTRY_MIRROR_MORE) {
        uint32_t count = left < REGISTRY_MIRROR_STEP ? left : REGISTRY_MIRROR_STEP;
        uint64_t last_key = 0;
        for (uint32_t i = 0; i < count; i++) {
            bool is_there = board_cursor_read(&cursor, &entry);
            CHECK(is_there);
            entries[i] =
                (struct board_entry){.member = name_text(entry.member, rooms[i]), .key = entry.key};
            last_key = entry.key;
            board_cursor_next(&cursor);
        }
        if (board_append_indexed(copy, entries, count) != BOARD_OK) {
            registry_mirror_fail(mirror, REGISTRY_MIRROR_OUT_OF_MEMORY);
            return;
        }
        for (uint32_t i = 0; i < count && tags_has_values(board); i++) {
            struct tag_values values;
            tags_at(board, mirror->copied_count + i, &values);
            if (values.mask != 0) {
                registry_mirror_tag_member(mirror, entries[i].member, &values);
            }
        }
        mirror->copied_count = board_count(copy);
        mirror->last_key = last_key;
        left -= count;
    }
}

/* A LATEST board, from its last rank on, in groups, as the copy's map is waited for. */
static void registry_mirror_copy_latest(struct registry_mirror *mirror, uint32_t entries_max) {
    const struct board *board = &mirror->key->board;
    uint32_t left = board_count(board) - mirror->copied_count;
    struct board_cursor cursor;
    struct board_stored entry;
    struct lookup lookups[LOOKUP_GROUP];
    struct bytes names[LOOKUP_GROUP];
    uint64_t keys[LOOKUP_GROUP];
    char rooms[LOOKUP_GROUP][NAME_TEXT_ROOM];
    left = left < entries_max ? left : entries_max;
    board_cursor_seek(board, board_count(board) - 1 - mirror->copied_count, &cursor);
    while (left > 0 && mirror->status == REGISTRY_MIRROR_MORE) {
        uint32_t count = lookup_group_size(left, 0);
        for (uint32_t i = 0; i < count; i++) {
            bool is_there = board_cursor_read(&cursor, &entry);
            CHECK(is_there);
            names[i] = name_text(entry.member, rooms[i]);
            keys[i] = entry.key;
            board_cursor_previous(&cursor);
        }
        lookup_members(&mirror->copy->board, names, 1, count, lookups);
        for (uint32_t i = 0; i < count && mirror->status == REGISTRY_MIRROR_MORE; i++) {
            registry_mirror_put_member(mirror, names[i], &lookups[i], keys[i]);
            mirror->last_key = keys[i];
        }
        left -= count;
    }
}

/* ---- hashes ---- */

static void registry_mirror_put_field(struct registry_mirror *mirror, struct bytes field,
                                      struct bytes value) {
    struct hash *hash = registry_own_hash(mirror->copy);
    struct bytes args[] = {field, value};
    uint32_t added_count;
    uint64_t seed = hash_is_large(hash) ? 0 : registry_next_seed(mirror->registry);
    if (hash_put_within(hash, registry_hash_room(mirror->copy), seed, args, 1, &added_count,
                        NULL) == HASH_OK) {
        mirror->copied_count = hash_count(hash);
    } else {
        registry_mirror_fail(mirror, REGISTRY_MIRROR_OUT_OF_MEMORY);
    }
}

/* ---- notes, which are copied behind the members, as a hash ---- */

static void registry_mirror_put_note(struct registry_mirror *mirror, struct bytes member,
                                     struct bytes note) {
    if (!registry_note_set(mirror->registry, mirror->copy, member, note)) {
        registry_mirror_fail(mirror, REGISTRY_MIRROR_OUT_OF_MEMORY);
    }
}

/* From the last one on: a removal moves notes to lower indexes alone, and new ones come last. */
static void registry_mirror_copy_notes(struct registry_mirror *mirror, uint32_t entries_max) {
    uint32_t count = mirror->copy->has_notes ? registry_note_count(mirror->key) : 0;
    struct registry_note_room room;
    struct hash_pair pair;
    if (!mirror->has_notes_begun || mirror->notes_left > count) {
        mirror->notes_left = count;
        mirror->has_notes_begun = true;
    }
    for (uint32_t i = 0;
         i < entries_max && mirror->status == REGISTRY_MIRROR_MORE && mirror->notes_left > 0; i++) {
        registry_note_at(mirror->key, --mirror->notes_left, &pair, &room);
        registry_mirror_put_note(mirror, pair.field, pair.value);
    }
}

/* ---- frozen copies ---- */

static void registry_mirror_tell(struct registry_mirror *mirror, const struct effect *effect) {
    enum { FEW = 1024 };
    bool is_told = true;
    if (effect->kind == EFFECT_CUT) {
        /* Reported before the members are removed: they are still there. */
        struct board_cursor cursor;
        struct board_stored entry;
        char room[NAME_TEXT_ROOM];
        is_told = effect->count <= FEW;
        board_cursor_seek(&mirror->key->board, effect->rank, &cursor);
        for (uint32_t i = 0; i < effect->count && is_told && board_cursor_read(&cursor, &entry);
             i++) {
            is_told = mirror->changed(mirror->context, name_text(entry.member, room));
            board_cursor_next(&cursor);
        }
    } else if (effect->kind != EFFECT_TAGS && effect->kind != EFFECT_NOTE) {
        is_told = mirror->changed(mirror->context, effect->member);
    }
    if (!is_told) {
        registry_mirror_fail(mirror, REGISTRY_MIRROR_LOST);
    }
}

/* ---- following changes ---- */

/* The original may be freed already, unless one of its entries changes. */
static bool registry_mirror_is_of(const struct registry_mirror *mirror,
                                  const struct effect *effect) {
    return effect->database == mirror->copy->database &&
           bytes_equal(effect->name, registry_name(mirror->copy));
}

static void registry_mirror_follow_field(struct registry_mirror *mirror,
                                         const struct effect *effect) {
    struct bytes value;
    if (!hash_find(registry_hash(mirror->copy), effect->member, &value)) {
        return;
    }
    if (effect->kind == EFFECT_PUT) {
        registry_mirror_put_field(mirror, effect->member, effect->value);
    } else { /* a removal moves the last field into the hole, which the copy cannot follow */
        registry_mirror_fail(mirror, REGISTRY_MIRROR_LOST);
    }
}

static void registry_mirror_follow_member(struct registry_mirror *mirror,
                                          const struct effect *effect) {
    struct board *board = &mirror->copy->board;
    bool is_latest = board_is_latest(board);
    if (effect->kind == EFFECT_PUT) {
        bool has_begun = mirror->copied_count > 0;
        registry_mirror_take_member(mirror, effect->member);
        if (has_begun && (is_latest ? effect->member_key < mirror->last_key
                                    : effect->member_key > mirror->last_key)) {
            registry_mirror_put_member(mirror, effect->member, NULL, effect->member_key);
        }
    } else if (effect->kind == EFFECT_TAKE) {
        registry_mirror_take_member(mirror, effect->member);
    } else if (effect->kind == EFFECT_TAGS) {
        struct tag_values values;
        bool is_packed = tag_values_unpack(effect->value, TAGS_MAX, &values);
        CHECK(is_packed);
        registry_mirror_tag_member(mirror, effect->member, &values);
    } else if (effect->kind == EFFECT_NOTE) {
        if (mirror->has_notes_begun && mirror->copy->has_notes && effect->value.size > 0) {
            registry_mirror_put_note(mirror, effect->member, effect->value);
        } else if (mirror->has_notes_begun && mirror->copy->has_notes) {
            struct registry_note_room room;
            (void)hash_remove(
                registry_own_notes(mirror->copy),
                registry_note_field(registry_options(mirror->copy), effect->member, &room));
        }
    } else { /* CUT, reported before the members are removed */
        uint32_t copied = mirror->copied_count;
        uint32_t first =
            is_latest ? board_count(&mirror->key->board) - copied : 0; /* of the copy */
        uint32_t rank_end = effect->rank + effect->count;
        uint32_t begin = effect->rank > first ? effect->rank - first : 0;
        uint32_t end = rank_end > first ? rank_end - first : 0;
        end = end < copied ? end : copied;
        if (begin < end) {
            board_remove_range(board, begin, end - begin);
            mirror->copied_count -= end - begin;
        }
    }
}

static void registry_mirror_receive(void *context, const struct effect *effect) {
    struct registry_mirror *mirror = context;
    if (mirror->status != REGISTRY_MIRROR_MORE) {
        return;
    }
    if (effect->kind == EFFECT_PUT && effect->key->kind == REGISTRY_HASH &&
        registry_mirror_is_of(mirror, effect)) {
        mirror->key = effect->key; /* it may have moved to more room */
    }
    switch (effect->kind) {
    case EFFECT_PUT:
    case EFFECT_TAKE:
    case EFFECT_CUT:
    case EFFECT_TAGS:
    case EFFECT_NOTE:
        if (effect->key == mirror->key && mirror->changed != NULL) {
            registry_mirror_tell(mirror, effect);
        } else if (effect->key == mirror->key) {
            (mirror->copy->kind == REGISTRY_BOARD ? registry_mirror_follow_member
                                                  : registry_mirror_follow_field)(mirror, effect);
        }
        break;
    case EFFECT_OPTIONS:
        /* A board that slides changes its options, but for the layout. A key that has got its PERIOD is another one. */
        if (registry_mirror_is_of(mirror, effect) &&
            !(effect->key == mirror->key && effect->options != NULL &&
              registry_slides(effect->options) &&
              effect->options->is_dense == board_is_dense(&mirror->copy->board) &&
              layout_equal(&effect->options->layout, board_layout(&mirror->copy->board)))) {
            registry_mirror_fail(mirror, REGISTRY_MIRROR_LOST);
        }
        break;
    case EFFECT_REMOVE:
    case EFFECT_RENAME:
    case EFFECT_CREATE:
    case EFFECT_FILL:
        if (registry_mirror_is_of(mirror, effect)) {
            registry_mirror_fail(mirror, REGISTRY_MIRROR_LOST);
        }
        break;
    case EFFECT_FLUSH:
        if (effect->database == mirror->copy->database) {
            registry_mirror_fail(mirror, REGISTRY_MIRROR_LOST);
        }
        break;
    case EFFECT_COPY:
    case EFFECT_EXPIRE:
    case EFFECT_STATE:
        break;
    }
}

/* ---- the life of a mirror ---- */

static bool registry_mirror_begin_as(struct registry_mirror *mirror, struct registry *registry,
                                     const struct registry_key *key, bool has_notes) {
    *mirror = (struct registry_mirror){.registry = registry, .key = key};
    mirror->copy = registry_reserve_key(registry, key->database,
                                        (struct registry_new_name){.first = registry_name(key)},
                                        key->kind, false, has_notes ? TAIL_NOTES : 0);
    if (mirror->copy == NULL) {
        return false;
    }
    if (key->kind == REGISTRY_BOARD) {
        const struct board_options *options = registry_options(key);
        board_options_hold_again(&registry->options, options);
        registry_init_board(registry, options, &mirror->copy->board);
    }
    mirror->listener.receive = registry_mirror_receive;
    mirror->listener.context = mirror;
    effect_listener_add(registry, &mirror->listener);
    return true;
}

bool registry_mirror_begin(struct registry_mirror *mirror, struct registry *registry,
                           const struct registry_key *key) {
    return registry_mirror_begin_as(mirror, registry, key, key->has_notes);
}

bool registry_mirror_begin_members(struct registry_mirror *mirror, struct registry *registry,
                                   const struct registry_key *key) {
    return registry_mirror_begin_as(mirror, registry, key, false);
}

bool registry_mirror_watch(struct registry_mirror *mirror, struct registry *registry,
                           const struct registry_key *key, registry_mirror_changed *changed,
                           void *context) {
    bool has_begun = registry_mirror_begin_members(mirror, registry, key);
    mirror->changed = changed;
    mirror->context = context;
    return has_begun;
}

enum registry_mirror_status registry_mirror_step(struct registry_mirror *mirror,
                                                 uint32_t entries_max) {
    if (mirror->status != REGISTRY_MIRROR_MORE || mirror->changed != NULL) {
        return mirror->status;
    }
    bool is_board = mirror->key->kind == REGISTRY_BOARD;
    const struct hash *hash = is_board ? NULL : registry_hash(mirror->key);
    /* Entries that the whole copy is to have. */
    uint32_t count = is_board ? board_count(&mirror->key->board) : hash_count(hash);
    if (!is_board) {
        struct hash_pair pair;
        for (uint32_t i = 0; i < entries_max && mirror->status == REGISTRY_MIRROR_MORE &&
                             mirror->copied_count < count;
             i++) {
            hash_at(hash, mirror->copied_count, &pair);
            registry_mirror_put_field(mirror, pair.field, pair.value);
        }
    } else if (mirror->copied_count < count && board_is_latest(&mirror->key->board)) {
        registry_mirror_copy_latest(mirror, entries_max);
    } else if (mirror->copied_count < count) {
        registry_mirror_append_members(mirror, entries_max);
    }
    if (mirror->copied_count == count) {
        registry_mirror_copy_notes(mirror, entries_max);
    }
    return mirror->status == REGISTRY_MIRROR_MORE && mirror->copied_count == count &&
                   mirror->notes_left == 0
               ? REGISTRY_MIRROR_WHOLE
               : mirror->status;
}

enum registry_status registry_mirror_copy_to(struct registry_mirror *mirror, uint32_t to_database,
                                             struct bytes to_name, int64_t now_ms) {
    struct registry *registry = mirror->registry;
    CHECK(registry_mirror_step(mirror, 0) == REGISTRY_MIRROR_WHOLE);
    if (mirror->copy->kind == REGISTRY_HASH) {
        registry_own_hash(mirror->copy)->is_hashtable |= registry_hash(mirror->key)->is_hashtable;
    }
    effect_listener_remove(registry, &mirror->listener);
    return registry_copy_value(registry, mirror->key, &mirror->copy, to_database, to_name, now_ms);
}

void registry_mirror_freeze(struct registry_mirror *mirror, registry_mirror_changed *changed,
                            void *context) {
    CHECK(registry_mirror_step(mirror, 0) == REGISTRY_MIRROR_WHOLE);
    mirror->changed = changed;
    mirror->context = context;
}

void registry_mirror_give(struct registry_mirror *mirror, struct registry_key *to) {
    CHECK(registry_mirror_step(mirror, 0) == REGISTRY_MIRROR_WHOLE);
    effect_listener_remove(mirror->registry, &mirror->listener);
    board_move_to(&mirror->copy->board, &to->board);
    registry_note_move_all(mirror->copy, to);
    registry_free_key(mirror->copy);
    mirror->copy = NULL;
}

void registry_mirror_end(struct registry_mirror *mirror) {
    if (mirror->copy != NULL) {
        effect_listener_remove(mirror->registry, &mirror->listener);
        registry_free_later(mirror->registry, mirror->copy);
        mirror->copy = NULL;
    }
}
