/* Records as effects, which fill a registry; and that as a directory. See export.h. */
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "codec/words.h"
#include "server/tools/rules_text.h"
#include "server/tools/tools.h"
#include "skiplist/keyspace/key_kind.h"

struct importing {
    struct registry *registry;
    struct record_reader reader;
    struct record record;
    struct buffer name; /* of the current key */
    uint32_t database;
    bool has_key, is_hash;
    struct rules rules;
    struct board_state state;
    char error[RULES_TEXT_ERROR_MAX];
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

static const char *import_take_database(struct importing *importing) {
    uint64_t database;
    if (!bytes_parse_u64(importing->record.at[RECORD_DATABASE], &database) ||
        database >= REGISTRY_ALL_DATABASES || database == REGISTRY_HISTORY) {
        return "the database is no number from 0 to 15";
    }
    importing->database = (uint32_t)database;
    return NULL;
}

static const char *import_take_rules(struct importing *importing) {
    return rules_text_parse(importing->record.at[RECORD_RULES], &importing->rules,
                            &importing->state, importing->error)
               ? NULL
               : importing->error;
}

static const char *import_begin_key(struct importing *importing, bool is_hash) {
    struct bytes name = importing->record.at[RECORD_KEY];
    struct bytes expires = importing->record.at[RECORD_EXPIRES];
    importing->is_hash = is_hash;
    const char *wrong = import_take_database(importing);
    if (wrong == NULL && !is_hash) {
        wrong = importing->database < REGISTRY_SYSTEM || importing->database == REGISTRY_ONCE
                    ? import_take_rules(importing)
                    : "this database has hashes only";
    }
    if (wrong != NULL) {
        return wrong;
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
                            .rules = is_hash ? NULL : &importing->rules,
                            .state = is_hash ? NULL : &importing->state};
    wrong = import_apply(importing, &effect);
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
    const struct layout *layout = &importing->rules.layout;
    struct bytes score = importing->record.at[RECORD_SCORE];
    struct bytes time = importing->record.at[RECORD_TIME];
    int64_t time_us;
    if (score.size > 0 && score.at[0] == '#') {
        score.at++;
        score.size--;
        return layout_key_parse(layout, score, key) ? NULL
                                                    : "the packed score is none of the layout";
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
    const struct tag_set *tags = &importing->rules.layout.tags;
    struct bytes left = importing->record.at[RECORD_VALUE];
    struct bytes name;
    struct bytes value;
    enum words_status status;
    while ((status = words_take(&left, &text, &name)) == WORDS_TAKEN) {
        int index = tag_set_find(tags, name);
        if (index < 0 || (values->mask >> index & 1) != 0) {
            return "the board has no such tag, or it is named twice";
        }
        status = words_take(&left, &text, &value);
        if (status == WORDS_UNBALANCED) {
            break;
        }
        if (status == WORDS_END || value.size == 0 || value.size > TAG_VALUE_MAX) {
            return "a tag has no value, or one of more than 64 bytes";
        }
        values->mask |= 1U << index;
        values->at[index] = value;
    }
    return status == WORDS_END ? NULL : "the quotes of a tag's value are wrong";
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

static const char *import_put_field(struct importing *importing) {
    struct effect effect = {.kind = EFFECT_PUT,
                            .member = importing->record.at[RECORD_MEMBER],
                            .value = importing->record.at[RECORD_VALUE]};
    return import_is_of_key(importing, true) ? import_apply(importing, &effect)
                                             : "no line of this hash comes before it";
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
        return import_put_field(importing);
    }
    if (bytes_is(kind, "BOARD") || bytes_is(kind, "HASH")) {
        return import_begin_key(importing, bytes_is(kind, "HASH"));
    }
    return "the kind is none of board, hash, member and field";
}

static bool import_all(struct importing *importing, char *error) {
    enum record_status status;
    while ((status = record_read(&importing->reader, &importing->record)) == RECORD_READ) {
        const char *wrong = import_take_record(importing);
        if (wrong != NULL) {
            status = record_refuse(&importing->reader, wrong);
            break;
        }
    }
    snprintf(error, IMPORT_ERROR_MAX, "%s", importing->reader.error);
    return status == RECORD_END;
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
    bool is_done = import_all(importing, error);
    record_reader_deinit(&importing->reader);
    buffer_deinit(&importing->name);
    memory_free(importing);
    return is_done;
}

/* ---- the directory ---- */

static bool import_save_into(struct registry *registry, const char *target) {
    struct store store;
    char error[DISK_ERROR_MAX];
    if (store_open(&store, target, RESTORE_DIRECTORY, STORE_CLAIM, error) != STORE_OK) {
        return tools_complain("%s", error);
    }
    bool is_done = tools_save(registry, &store, tools_now_us());
    store_close(&store);
    return is_done || tools_complain("%s could not be written", target);
}

bool import_save(struct registry *registry, const char *target) {
    bool is_made;
    if (!restore_begin_target(target, &is_made) || !import_save_into(registry, target)) {
        return false;
    }
    printf("%s: a directory to start from\n", target);
    return true;
}
