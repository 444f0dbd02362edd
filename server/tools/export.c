/* Keys as records, in the order in which an import takes them: the effects that make them. */

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "protocol/resp.h"
#include "server/tools/tools.h"
#include "skiplist/keyspace/effect.h"

enum {
    PACK_SIZE = 1 << 20, /* bytes written at a time */
    LISTED_MAX = 20,     /* scores that are named on stderr */
    TOGETHER_MAX = 100,  /* members in a command */
    SCORE_TEXT_MAX = LAYOUT_FIELDS_MAX * (DECIMAL_TEXT_MAX + 1),
};
/* A double holds every integer up to here. */
#define DOUBLE_EXACT (UINT64_C(1) << 53)

struct exporting {
    const struct registry *registry;
    enum record_format format;
    bool is_redis;
    FILE *out;
    struct buffer text, tags;
    bool is_failed;
    struct record record;
    char database[BYTES_INTEGER_TEXT_MAX], expires[BYTES_INTEGER_TEXT_MAX];
    char options[RECORD_RULES_MAX];
    /* for Redis */
    int64_t now_us;
    uint32_t selected; /* UINT32_MAX: none yet */
    struct buffer members;
    uint32_t member_count;
    uint64_t inexact_count, tie_count, other_fields_count, decay_count, tagged_count, note_count,
        system_count;
};

static void export_flush(struct exporting *exporting, size_t size_max) {
    struct buffer *text = &exporting->text;
    if (text->is_broken || exporting->members.is_broken) {
        exporting->is_failed = exporting->is_failed || !tools_complain("out of memory");
    } else if (text->size > size_max) {
        if (fwrite(text->at, 1, text->size, exporting->out) != text->size) {
            exporting->is_failed =
                exporting->is_failed || !tools_complain("cannot write: %s", strerror(errno));
        }
        buffer_clear(text);
    }
}

/* ---- records ---- */

static void export_print_record(struct exporting *exporting) {
    (void)!record_print(&exporting->text, exporting->format, &exporting->record);
    export_flush(exporting, PACK_SIZE);
}

/* The fields' decimals. Those of a score that decays are not as exact as the key: then it is given. */
static size_t export_print_score(const struct layout *layout, uint64_t key, char *out) {
    size_t size = 0;
    if (layout_field_decays(&layout->fields[0])) {
        out[0] = '#';
        return 1 + layout_key_print(layout, key, out + 1);
    }
    for (unsigned i = 0; i < layout->field_count; i++) {
        const struct layout_field *field = &layout->fields[i];
        if (i > 0) {
            out[size++] = ' ';
        }
        size += decimal_print(
            out + size, layout_field_decimal(field, layout_ordinal(layout, key, i)), field->scale);
    }
    return size;
}

static struct bytes export_print_integer(char *out, int64_t value) {
    return (struct bytes){.at = out, .size = bytes_print_i64(out, value)};
}

/* A value as a word. */
static void export_put_word(struct buffer *out, struct bytes value) {
    bool is_plain = true;
    for (size_t i = 0; i < value.size && is_plain; i++) {
        unsigned char byte = (unsigned char)value.at[i];
        is_plain = byte > ' ' && byte != 0x7f && byte != '"' && byte != '\'' && byte != '\\';
    }
    if (is_plain) {
        buffer_append(out, value.at, value.size);
        return;
    }
    buffer_append(out, "\"", 1);
    for (size_t i = 0; i < value.size; i++) {
        unsigned char byte = (unsigned char)value.at[i];
        char escape[4] = "\\x";
        bytes_print_hex(byte, escape + 2);
        bool is_shown = byte >= ' ' && byte != 0x7f && byte != '"' && byte != '\\';
        buffer_append(out, is_shown ? &value.at[i] : escape, is_shown ? 1 : sizeof escape);
    }
    buffer_append(out, "\"", 1);
}

/* packed: values of its tags; empty: none. */
static void export_print_member(struct exporting *exporting, const struct effect *effect,
                                struct bytes packed, const struct layout *layout) {
    struct record *record = &exporting->record;
    char score[SCORE_TEXT_MAX];
    char time[BYTES_INTEGER_TEXT_MAX];
    int64_t time_us;
    uint64_t same = 0;
    record->at[RECORD_KIND] = BYTES("member");
    record->at[RECORD_MEMBER] = effect->member;
    record->at[RECORD_SCORE] =
        (struct bytes){.at = score, .size = export_print_score(layout, effect->member_key, score)};
    record->at[RECORD_TIME] = BYTES("");
    if (!layout_field_decays(&layout->fields[0]) &&
        layout_time_us(layout, effect->member_key, &time_us)) {
        record->at[RECORD_TIME] = export_print_integer(time, time_us);
        /* A time at the end of all times is not given exactly by its text: then the key is. */
        if (layout_stamp(layout, effect->member_key, time_us, &same) != LAYOUT_OK ||
            same != effect->member_key) {
            score[0] = '#';
            record->at[RECORD_SCORE].size =
                1 + layout_key_print(layout, effect->member_key, score + 1);
            record->at[RECORD_TIME] = BYTES("");
        }
    }
    buffer_clear(&exporting->tags);
    if (packed.size > 0) {
        /* "country DE class mage" */
        struct buffer *out = &exporting->tags;
        struct tag_values values;
        bool is_packed = tag_values_unpack(packed, layout->tags.count, &values);
        CHECK(is_packed);
        for (unsigned i = 0; i < layout->tags.count; i++) {
            if ((values.mask >> i & 1) != 0) {
                const char *name = layout->tags.tags[i].name;
                buffer_append(out, " ", out->size > 0);
                buffer_append(out, name, strlen(name));
                buffer_append(out, " ", 1);
                export_put_word(out, values.at[i]);
            }
        }
        exporting->is_failed |= exporting->tags.is_broken;
    }
    record->at[RECORD_VALUE] = buffer_bytes(&exporting->tags);
    export_print_record(exporting);
}

static void export_begin_key(struct exporting *exporting, const struct registry_key *key,
                             int64_t expire_at_ms) {
    struct record *record = &exporting->record;
    bool is_hash = key->kind == REGISTRY_HASH;
    *record = (struct record){.at = {{0}}};
    record->at[RECORD_DATABASE] = export_print_integer(exporting->database, key->database);
    record->at[RECORD_KEY] = registry_name(key);
    record->at[RECORD_KIND] = is_hash ? BYTES("hash") : BYTES("board");
    if (!is_hash) {
        record->at[RECORD_RULES] =
            (struct bytes){.at = exporting->options,
                           .size = record_print_options(registry_options(key), registry_state(key),
                                                        exporting->options)};
    }
    if (expire_at_ms != REGISTRY_NO_EXPIRY) {
        record->at[RECORD_EXPIRES] = export_print_integer(exporting->expires, expire_at_ms);
    }
    export_print_record(exporting);
    record->at[RECORD_RULES] = BYTES("");
    record->at[RECORD_EXPIRES] = BYTES("");
}

/* ---- Redis ---- */

static void export_put_command(struct buffer *out, const char *name, struct bytes key,
                               uint32_t count) {
    request_append_head(out, count);
    request_append_argument(out, bytes_from_text(name));
    request_append_argument(out, key);
}

/* ZADD or HSET of the members that were gathered. */
static void export_end_command(struct exporting *exporting, const struct registry_key *key) {
    if (exporting->member_count > 0) {
        bool is_hash = key->kind == REGISTRY_HASH;
        export_put_command(&exporting->text, is_hash ? "HSET" : "ZADD", registry_name(key),
                           2 + 2 * exporting->member_count);
        buffer_append(&exporting->text, exporting->members.at, exporting->members.size);
        buffer_clear(&exporting->members);
        exporting->member_count = 0;
        export_flush(exporting, PACK_SIZE);
    }
}

static void export_put_pair(struct exporting *exporting, const struct registry_key *key,
                            struct bytes first, struct bytes second) {
    request_append_argument(&exporting->members, first);
    request_append_argument(&exporting->members, second);
    if (++exporting->member_count == TOGETHER_MAX) {
        export_end_command(exporting, key);
    }
}

/* ---- both ---- */

/* Of a board, as lines: a PUT, and TAGS if there are, are one. */
static void export_board_members(struct exporting *exporting, const struct registry_key *key,
                                 struct effect_fill *fill) {
    const struct layout *layout = board_layout(&key->board);
    struct record *record = &exporting->record;
    struct effect effect = {.kind = EFFECT_FILL};
    bool has_more = true;
    while (has_more) {
        struct effect member = effect; /* the one before */
        has_more = !exporting->is_failed && effect_fill_next(fill, &effect);
        bool is_tags = has_more && effect.kind == EFFECT_TAGS;
        if (member.kind == EFFECT_PUT) {
            export_print_member(exporting, &member, is_tags ? effect.value : BYTES(""), layout);
        } else if (member.kind == EFFECT_NOTE) {
            record->at[RECORD_KIND] = BYTES("note");
            record->at[RECORD_MEMBER] = member.member;
            record->at[RECORD_SCORE] = BYTES("");
            record->at[RECORD_TIME] = BYTES("");
            record->at[RECORD_VALUE] = member.value;
            export_print_record(exporting);
        }
    }
}

static void export_members(struct exporting *exporting, const struct registry_key *key,
                           struct effect_fill *fill) {
    struct effect effect;
    uint64_t score_before = UINT64_MAX;
    if (!exporting->is_redis && key->kind == REGISTRY_BOARD) {
        export_board_members(exporting, key, fill);
        return;
    }
    while (!exporting->is_failed && effect_fill_next(fill, &effect)) {
        exporting->tagged_count += effect.kind == EFFECT_TAGS;
        exporting->note_count += effect.kind == EFFECT_NOTE;
        if (effect.kind != EFFECT_PUT) {
            continue;
        }
        if (exporting->is_redis && key->kind == REGISTRY_HASH) {
            export_put_pair(exporting, key, effect.member, effect.value);
        } else if (exporting->is_redis) {
            const struct layout *layout = board_layout(&key->board);
            const struct layout_field *field = &layout->fields[0];
            char text[DECIMAL_TEXT_MAX];
            struct decimal value = layout_field_decimal_at(
                field, layout_ordinal(layout, effect.member_key, 0), exporting->now_us);
            struct bytes score = {.at = text, .size = decimal_print(text, value, field->scale)};
            if (value.magnitude > DOUBLE_EXACT && exporting->inexact_count++ < LISTED_MAX) {
                fprintf(stderr,
                        "leaderboard-server: Redis rounds the score %.*s of '%s' on '%s', database "
                        "%u\n",
                        (int)score.size, score.at, bytes_show(effect.member).text,
                        bytes_show(registry_name(key)).text, (unsigned)key->database);
            }
            uint64_t ordinal = layout_ordinal(layout, effect.member_key, 0);
            exporting->tie_count += ordinal == score_before;
            score_before = ordinal;
            export_put_pair(exporting, key, score, effect.member);
        } else {
            exporting->record.at[RECORD_KIND] = BYTES("field");
            exporting->record.at[RECORD_MEMBER] = effect.member;
            exporting->record.at[RECORD_VALUE] = effect.value;
            export_print_record(exporting);
        }
    }
}

static void export_key(void *context, const struct registry_key *key) {
    struct exporting *exporting = context;
    int64_t expire_at_ms = registry_expiry(exporting->registry, key);
    if (registry_is_of_one_server(key->database)) {
        return;
    }
    if (exporting->is_redis && key->database >= REGISTRY_SYSTEM) {
        exporting->system_count += key->database != REGISTRY_ONCE; /* which ends by itself */
        return;
    }
    if (key->database == REGISTRY_TICKETS && bytes_is(registry_name(key), "key")) {
        return; /* a secret, by which whoever reads the export could sign tickets */
    }
    bool is_hash = key->kind == REGISTRY_HASH;
    struct effect_fill fill = {.whole = {.kind = EFFECT_FILL,
                                         .key_kind = is_hash ? &key_kind_hash : &key_kind_board,
                                         .database = key->database,
                                         .name = registry_name(key),
                                         .expire_at_ms = expire_at_ms,
                                         .options = is_hash ? NULL : registry_options(key),
                                         .state = registry_state(key),
                                         .key = key}};
    if (!exporting->is_redis) {
        export_begin_key(exporting, key, expire_at_ms);
        export_members(exporting, key, &fill);
        return;
    }
    char number[BYTES_INTEGER_TEXT_MAX];
    if (exporting->selected != key->database) {
        exporting->selected = key->database;
        export_put_command(&exporting->text, "SELECT", export_print_integer(number, key->database),
                           2);
    }
    if (!is_hash) {
        const struct layout *layout = board_layout(&key->board);
        exporting->other_fields_count += layout->field_count > 1;
        exporting->decay_count += layout_field_decays(&layout->fields[0]);
    }
    export_members(exporting, key, &fill);
    export_end_command(exporting, key);
    if (expire_at_ms != REGISTRY_NO_EXPIRY) {
        export_put_command(&exporting->text, "PEXPIREAT", registry_name(key), 3);
        request_append_argument(&exporting->text, export_print_integer(number, expire_at_ms));
    }
}

static bool export_all(struct exporting *exporting) {
    buffer_init(&exporting->text, 0);
    buffer_init(&exporting->members, 0);
    buffer_init(&exporting->tags, 0);
    if (!exporting->is_redis) {
        (void)!record_print_head(&exporting->text, exporting->format);
    }
    for (uint32_t i = 0; i < REGISTRY_ALL_DATABASES; i++) {
        registry_walk_each(exporting->registry, i, INT64_MIN, export_key, exporting);
    }
    export_flush(exporting, 0);
    buffer_deinit(&exporting->text);
    buffer_deinit(&exporting->members);
    buffer_deinit(&exporting->tags);
    return !exporting->is_failed;
}

bool export_records(const struct registry *registry, enum record_format format, FILE *out) {
    struct exporting exporting = {.registry = registry, .format = format, .out = out};
    return export_all(&exporting);
}

bool export_redis(const struct registry *registry, FILE *out) {
    struct exporting exporting = {.registry = registry,
                                  .is_redis = true,
                                  .out = out,
                                  .selected = UINT32_MAX,
                                  .now_us = tools_now_us()};
    bool is_done = export_all(&exporting);
    const struct {
        uint64_t count;
        const char *what;
    } losses[] = {
        {exporting.inexact_count, "scores beyond 2^53 are rounded by Redis"},
        {exporting.tie_count,
         "members have the score of the one before: Redis orders them by name"},
        {exporting.other_fields_count, "boards have several fields: Redis gets the first"},
        {exporting.decay_count, "boards have DECAY: Redis gets their scores as they are now"},
        {exporting.tagged_count, "members have tags, which Redis has not"},
        {exporting.note_count, "players have rating records, which Redis has not"},
        {exporting.system_count, "keys of the server's own (bans, used tickets) are left out"},
    };
    for (size_t i = 0; i < sizeof losses / sizeof *losses; i++) {
        if (losses[i].count > 0) {
            fprintf(stderr, "leaderboard-server: %" PRIu64 " %s\n", losses[i].count,
                    losses[i].what);
        }
    }
    return is_done;
}
