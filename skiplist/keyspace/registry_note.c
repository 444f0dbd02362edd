/* Notes of members: a hash behind the name of a board's key, by the member's name.
 *
 *     key   [ board | ... | name | tail of a PERIOD | state | struct hash ]      board_options_have_notes(options)
 *
 * What they say is the option's that asks for them: ratings (codec/rating.h), or what limits count (limits.h).
 *
 * A field is the member's name, or its packed form (codec/name.h) behind a mark, if that is shorter. A name that is such
 * a form has the name that it is of as its field. So names and fields are the same texts, some of them in pairs that have
 * changed places, and one function turns either into the other. Of boards with RATING they are the names: a match looks for
 * many, and packing takes as long as finding; a board has RATING as long as it is. */
#include "skiplist/keyspace/registry_private.h"

/* Bytes with which no name in UTF-8 begins. */
enum {
    MARK_PREFIX = 0xf8, /* a form that begins with what is in front of its digits */
    MARK_DIGITS = 0xfc, /* with its digits; and which they are, enum name_rest */
    NAME_UUID_BYTES = 16,
};

/* The name whose short form this is; or the name itself, which begins with a mark and is none. */
static struct bytes registry_note_unpack(struct bytes name, struct registry_note_room *room) {
    struct registry_note_room again;
    size_t size = name.size - 1;
    unsigned mark = (uint8_t)name.at[0];
    bool has_prefix = mark == MARK_PREFIX;
    if (size <= has_prefix || size > NAME_FORM_MAX || (!has_prefix && mark < MARK_DIGITS)) {
        return name;
    }
    unsigned rest = has_prefix ? (uint8_t)name.at[1] / NAME_PREFIXES : mark - MARK_DIGITS;
    if ((!has_prefix && rest > NAME_REST_UUID) ||
        (rest == NAME_REST_UUID && size - has_prefix != NAME_UUID_BYTES)) {
        return name;
    }
    memcpy(room->form + NAME_LEAD, name.at, name.size);
    struct name form = {
        .at = room->form + NAME_LEAD + 1,
        .size = (uint32_t)size,
        .code = (uint8_t)(has_prefix               ? NAME_PREFIX_CODE + size - 1
                          : rest == NAME_REST_UUID ? NAME_UUID_CODE
                          : rest == NAME_REST_ODD  ? NAME_ODD_CODE + size - 1
                                                   : NAME_HEX_CODE + size - 1),
    };
    struct bytes text = name_text(form, room->text);
    return bytes_equal(registry_note_short(text, &again), name) ? text : name;
}

struct bytes registry_note_short(struct bytes name, struct registry_note_room *room) {
    struct packed_name form;
    if (name.size > 0 && (uint8_t)name.at[0] >= MARK_PREFIX) {
        return registry_note_unpack(name, room);
    }
    name_pack(name, &form);
    if (!name_is_packed(form.code) || name_stored_size(form.code) + 1U >= name.size) {
        return name;
    }
    char *at = room->form + NAME_LEAD;
    at[0] = (char)(form.code >= NAME_PREFIX_CODE ? MARK_PREFIX
                   : form.code == NAME_UUID_CODE ? MARK_DIGITS + NAME_REST_UUID
                   : form.code >= NAME_ODD_CODE  ? MARK_DIGITS + NAME_REST_ODD
                                                 : MARK_DIGITS + NAME_REST_EVEN);
    memcpy(at + 1, form.packed, NAME_FORM_MAX);
    return (struct bytes){.at = at, .size = name_stored_size(form.code) + 1};
}

const struct hash *registry_note_hash(const struct registry_key *key) {
    return key->has_notes ? registry_own_notes((struct registry_key *)(uintptr_t)key) : NULL;
}

void registry_note_at(const struct registry_key *key, uint32_t index, struct hash_pair *note,
                      struct registry_note_room *room) {
    hash_at(registry_note_hash(key), index, note);
    note->field = registry_note_field(registry_options(key), note->field, room);
}

bool registry_note_find(const struct registry_key *key, struct bytes member, struct bytes *note) {
    struct registry_note_room room;
    return key->has_notes &&
           hash_find(registry_note_hash(key),
                     registry_note_field(registry_options(key), member, &room), note);
}

bool registry_note_set(struct registry *registry, struct registry_key *key, struct bytes member,
                       struct bytes note) {
    struct hash *notes = registry_own_notes(key);
    struct registry_note_room room;
    const struct bytes args[] = {registry_note_field(registry_options(key), member, &room), note};
    uint32_t added_count;
    uint64_t seed = hash_is_large(notes) ? 0 : registry_next_seed(registry);
    return hash_put_within(notes, sizeof *notes, seed, args, 1, &added_count, NULL) == HASH_OK;
}

bool registry_note_put(struct registry *registry, struct registry_key *key, struct bytes member,
                       struct bytes note) {
    CHECK(key->has_notes && note.size > 0 && note.size <= REGISTRY_NOTE_MAX);
    if (!registry_note_set(registry, key, member, note)) {
        return false;
    }
    effect_emit(registry, key,
                (struct effect){.kind = EFFECT_NOTE, .member = member, .value = note});
    return true;
}

bool registry_note_remove(struct registry *registry, struct registry_key *key,
                          struct bytes member) {
    struct registry_note_room room;
    if (!key->has_notes ||
        !hash_remove(registry_own_notes(key),
                     registry_note_field(registry_options(key), member, &room))) {
        return false;
    }
    effect_emit(registry, key, (struct effect){.kind = EFFECT_NOTE, .member = member});
    return true;
}

void registry_note_move_all(struct registry_key *key, struct registry_key *to) {
    if (key->has_notes && to->has_notes) {
        hash_move(registry_own_notes(key), registry_own_notes(to), sizeof(struct hash));
    }
}
