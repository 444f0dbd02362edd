/* Replies that list members.
 *
 * A range is written run by run, directly from the board's blocks into the client's output. Room is
 * reserved once per run. Nearly always entries that follow each other are alike: their names have one
 * form and size, their scores one count of digits. Then their texts have one size, and what differs
 * is always at the same place. The others are written one by one by the general functions. */
#include "protocol/reply.h"
#include "server/commands/zset/zset.h"
#include "skiplist/block.h"

void zset_reply_header(const struct call *call, uint64_t count, enum zset_shape shape) {
    reply_array(call->reply, shape == ZSET_FLAT ? count * 2 : count);
}

void zset_reply_entry(const struct call *call, const struct board *board,
                      const struct board_stored *entry, enum zset_shape shape) {
    struct reply *reply = call->reply;
    char room[NAME_TEXT_ROOM];
    if (shape == ZSET_PAIRS) {
        reply_array(reply, 2);
    }
    reply_bulk(reply, name_text(entry->member, room));
    if (shape != ZSET_MEMBERS) {
        zset_reply_score(call, zset_lead(board),
                         layout_ordinal(board_layout(board), entry->key, 0));
    }
}

/* Fewer that are alike are written one by one: to find where their parts are would take longer. */
enum { ALIKE_MIN = 4 };

/* How names are written. */
enum names {
    NAMES_MIDDLE,   /* 17 to 32 bytes: where all are of one size, in two words of sixteen */
    NAMES_PACKED,   /* at most sixteen digits */
    NAMES_PREFIXED, /* the same behind a prefix */
    NAMES_UUID,     /* with a prefix or without */
    NAMES_SHORT,    /* at most BYTES_SHORT_MAX bytes, of any size */
    NAMES_LONG,     /* packed, and longer: one by one */
    NAMES_LETTERS,  /* few, of any size: name_is_few_letters */
    NAMES_OTHERS,   /* by the general functions */
};

/* Entries whose names are of one form and size, and whose scores have one count of digits: where the parts of
 * their texts are, and those that are always the same. A text begins with the line end of what is before it, and
 * has none of its own. */
struct alike {
    char head[16];     /* the name's header, and a packed name's prefix */
    uint32_t name_at;  /* behind what is in head */
    uint32_t score_at; /* its header */
    uint32_t size;
    /* The name, as it is in the block. */
    uint32_t stored;
    unsigned name_shift; /* of the eight bytes that end with it */
    uint8_t code;
    char prefix_byte; /* the first one stored, if it says which prefix the name has */
    /* The score: (uint32_t)(key >> key_shift) * step + origin are its digits, and zeros at the end. */
    unsigned key_shift;
    uint32_t step;
    uint32_t origin;
    char score_head[8];
    uint32_t score_size; /* with its header; 0: there are no scores */
    bool is_wide;        /* more than six digits */
};

/* State for writing a range, the same for all entries. */
struct writer {
    const struct call *call;
    const struct board *board;
    enum zset_shape shape;
    bool is_plain; /* neither decimals nor DECAY, and the shape is one of put_alike's */
    /* A plain score is (key >> shift) * step + origin: the lead field, above which a key has no bits, counted up
     * or (ASC) down from the key of 0. */
    uint64_t step;
    uint64_t origin;
    unsigned shift;
    const struct reply_put_digits *digits; /* of the score written last; NULL: none yet */
    struct alike alike;                    /* to what was written last */
};

static void zset_reply_begin_writing(struct writer *writer, const struct call *call,
                                     const struct board *board, enum zset_shape shape) {
    const struct layout_field *lead = zset_lead(board);
    writer->call = call;
    writer->board = board;
    writer->shape = shape;
    writer->is_plain = shape == ZSET_MEMBERS || (lead->scale == 0 && !layout_field_decays(lead) &&
                                                 shape == zset_shape_with_scores(call) &&
                                                 (shape == ZSET_FLAT || call->reply->numbers == 3));
    writer->step = lead->is_ascending ? UINT64_MAX : 1;
    writer->origin = (lead->is_ascending ? lead->mask : 0) - layout_field_zero(lead);
    writer->shift = lead->shift;
    writer->digits = NULL;
    writer->alike.code = NAME_LONG; /* like nothing that is written */
    writer->alike.key_shift = 0;
    writer->alike.step = 0;
    writer->alike.origin = 0;
    writer->alike.score_size = 0;
    writer->alike.is_wide = false;
}

/* ---- which entries are alike ---- */

static uint64_t zset_reply_plain_score(const struct writer *writer, uint64_t key) {
    /* A negative score wraps around and becomes large. */
    return (key >> writer->shift) * writer->step + writer->origin;
}

static uint64_t zset_reply_key_ahead(const struct block_run *run, uint32_t index) {
    return run->is_best_first ? run->keys[index] : run->keys[-1 - (ptrdiff_t)index];
}

static bool zset_reply_is_plain(const struct writer *writer, const struct block_run *run,
                                uint32_t index) {
    return reply_put_digits_have(writer->digits,
                                 zset_reply_plain_score(writer, zset_reply_key_ahead(run, index)));
}

/* From here on scores have this many digits. */
static void zset_reply_set_digits(struct writer *writer, const struct reply_put_digits *digits) {
    bool is_double = writer->shape == ZSET_PAIRS;
    struct alike *alike = &writer->alike;
    writer->digits = digits;
    char *end = reply_put_next_score_header(alike->score_head, digits, is_double);
    alike->score_size = (uint32_t)(end - alike->score_head) + digits->count;
    alike->is_wide = digits->count > REPLY_PUT_SIX_DIGITS;
    alike->key_shift = writer->shift;
    alike->step = (uint32_t)writer->step * digits->factor;
    alike->origin = (uint32_t)writer->origin * digits->factor;
    alike->code = NAME_LONG;
}

/* How many of the run's next entries have scores of as many digits as the first, all but always the whole run:
 * they are sorted. 0: the first is not small. */
static uint32_t zset_reply_count_plain(struct writer *writer, const struct block_run *run) {
    uint64_t first = zset_reply_plain_score(writer, zset_reply_key_ahead(run, 0));
    uint32_t count = run->count;
    if (writer->shape == ZSET_MEMBERS) {
        return count;
    }
    if (first >= REPLY_PUT_SMALL_LIMIT) {
        return 0;
    }
    if (writer->digits == NULL || !reply_put_digits_have(writer->digits, first)) {
        zset_reply_set_digits(writer, reply_put_digits_of(first));
    }
    uint32_t least = zset_reply_is_plain(writer, run, count - 1) ? count : 1U;
    while (least < count) {
        uint32_t middle = least + (count - least) / 2;
        bool is_plain = zset_reply_is_plain(writer, run, middle);
        least = is_plain ? middle + 1 : least;
        count = is_plain ? count : middle;
    }
    return count;
}

/* The next entry's, which is not NAME_LONG or not read. */
static struct name zset_reply_next_name(const struct block_run *run) {
    uint8_t code = (uint8_t)(run->marks[run->is_best_first ? 0 : -1] >> 8);
    uint32_t size = name_stored_size(code);
    return (struct name){run->members - (run->is_best_first ? 0 : size), size, code};
}

static uint64_t zset_reply_four_marks(const uint16_t *at) {
    uint64_t four;
    memcpy(&four, at, sizeof four);
    return four;
}

/* How many of the next count entries, at least one, have names of the first one's code. */
static uint32_t zset_reply_count_code(const struct block_run *run, uint32_t count) {
    const uint64_t codes = UINT64_C(0xff00ff00ff00ff00);
    const ptrdiff_t forward = run->is_best_first ? 1 : -1;
    const uint16_t *mark = run->marks - !run->is_best_first;
    const uint16_t code = *mark >> 8;
    const uint64_t same = code * UINT64_C(0x0100010001000100);
    const uint16_t *four_at = run->is_best_first ? mark : mark - 3;
    uint32_t left = run->is_of_one_code ? 0 : count;
    for (; left >= 8; left -= 8, four_at += 8 * forward) {
        uint64_t four = zset_reply_four_marks(four_at);
        uint64_t next_four = zset_reply_four_marks(four_at + 4 * forward);
        if ((((four ^ same) | (next_four ^ same)) & codes) != 0) {
            break;
        }
    }
    if (left >= 4 && (zset_reply_four_marks(four_at) & codes) == same) {
        left -= 4;
    }
    for (mark += (ptrdiff_t)(count - left) * forward; left > 0 && *mark >> 8 == code; left--) {
        mark += forward;
    }
    return count - left;
}

/* How many of the next count entries, at least one, have names of this one's code, which is that of the next. If
 * the first ALIKE_MIN of them have not all its prefix: how many of those have. */
static uint32_t zset_reply_count_alike(const struct block_run *run, struct name name,
                                       uint32_t count) {
    const ptrdiff_t at_step = run->is_best_first ? (ptrdiff_t)name.size : -(ptrdiff_t)name.size;
    count = zset_reply_count_code(run, count);
    if (name.code >= NAME_PREFIX_CODE) {
        for (uint32_t i = 1; i < count && i < ALIKE_MIN; i++) {
            if (name.at[at_step * (ptrdiff_t)i] != name.at[0]) {
                return i;
            }
        }
    }
    return count;
}

/* ---- entries that are alike ---- */

static enum names zset_reply_names_of(struct name name) {
    if (!name_is_packed(name.code)) {
        return name.code > BYTES_SHORT_MAX         ? NAMES_OTHERS
               : name.code > 16 && name.code <= 32 ? NAMES_MIDDLE
                                                   : NAMES_SHORT;
    }
    if (name_has_letters(name)) {
        return name_is_few_letters(name.code) ? NAMES_LETTERS : NAMES_OTHERS;
    }
    struct name_digits digits = name_digits_of(name);
    return digits.rest == NAME_REST_UUID   ? NAMES_UUID
           : digits.stored > 8             ? NAMES_LONG
           : name.code >= NAME_PREFIX_CODE ? NAMES_PREFIXED
                                           : NAMES_PACKED;
}

/* From here on names are of this one's form. */
static void zset_reply_set_alike(struct writer *writer, struct name name) {
    struct alike *alike = &writer->alike;
    struct name_digits digits = name_digits_of(name);
    bool is_packed = name_is_packed(name.code);
    uint32_t size = is_packed ? (uint32_t)name_digits_size(&digits) : name.size;
    uint32_t prefix_size = is_packed ? digits.prefix->size : 0;
    char *end = reply_put_next_bulk_header(alike->head, size);
    memcpy(end, digits.prefix->text, NAME_PREFIX_MAX);
    alike->name_at = (writer->shape == ZSET_PAIRS ? REPLY_PUT_PAIR_SIZE : 0) +
                     (uint32_t)(end - alike->head) + prefix_size;
    alike->score_at = alike->name_at + size - prefix_size;
    alike->size = alike->score_at + alike->score_size;
    alike->stored = name.size;
    alike->name_shift = 64 - 8 * digits.stored;
    alike->code = name.code;
    alike->prefix_byte = name.code >= NAME_PREFIX_CODE ? name.at[0] : 0;
}

static bool zset_reply_is_alike(const struct alike *alike, struct name name) {
    return name.code == alike->code &&
           (name.code < NAME_PREFIX_CODE || name.at[0] == alike->prefix_byte);
}

static inline uint32_t zset_reply_scale(const struct alike *alike, uint64_t key) {
    return (uint32_t)(key >> alike->key_shift) * alike->step + alike->origin;
}

/* The same of two. */
static inline void zset_reply_scale_two(const struct alike *alike, uint64_t key, uint64_t other,
                                        uint32_t scaled[2]) {
#if defined(__SSE2__)
    __m128i keys =
        _mm_unpacklo_epi64(_mm_cvtsi64_si128((long long)key), _mm_cvtsi64_si128((long long)other));
    keys = _mm_srl_epi64(keys, _mm_cvtsi32_si128((int)alike->key_shift));
    keys = _mm_mul_epu32(keys, _mm_set1_epi32((int)alike->step));
    keys = _mm_add_epi32(keys, _mm_set1_epi32((int)alike->origin));
    scaled[0] = (uint32_t)_mm_cvtsi128_si32(keys);
    scaled[1] = (uint32_t)_mm_cvtsi128_si32(_mm_unpackhi_epi64(keys, keys));
#else
    scaled[0] = zset_reply_scale(alike, key);
    scaled[1] = zset_reply_scale(alike, other);
#endif
}

/* A score, with its header. */
__attribute__((always_inline)) static inline void
zset_reply_put_score(char *out, const struct alike *alike, uint32_t scaled, enum zset_shape shape,
                     bool is_wide) {
    if (shape != ZSET_MEMBERS) {
        memcpy(out, alike->score_head, sizeof alike->score_head);
        reply_put_score_digits(
            out + (shape == ZSET_PAIRS ? REPLY_PUT_DOUBLE_SCORE : REPLY_PUT_BULK_SCORE), scaled,
            is_wide);
    }
}

/* One entry; digits: the name's text, if it is packed and not long. */
__attribute__((always_inline)) static inline void
zset_reply_put_entry(char *out, const struct alike *alike, const char *at, name_16 digits,
                     uint32_t scaled, enum names names, enum zset_shape shape, bool is_wide) {
    memcpy(shape == ZSET_PAIRS ? reply_put_next_pair(out) : out, alike->head, sizeof alike->head);
    if (names == NAMES_MIDDLE) {
        memcpy(out + alike->name_at, at, 16);
        memcpy(out + alike->score_at - 16, at + alike->stored - 16, 16);
    } else if (names == NAMES_UUID) {
        name_write_uuid(out + alike->name_at, at + alike->stored - 16);
    } else {
        memcpy(out + alike->name_at, &digits, sizeof digits);
    }
    zset_reply_put_score(out + alike->score_at, alike, scaled, shape, is_wide);
}

/* Write the next count entries of the run, or those before the first with another prefix, and move it past
 * them. out is as reply_put_next_ has it, and so is what is returned. Digits of two names are unpacked together.
 * Always inlined, with the last three constant: the loop has what it needs in registers. */
__attribute__((always_inline)) static inline char *
zset_reply_put_alike(const struct writer *writer, struct block_run *run, uint32_t count, char *out,
                     enum names names, enum zset_shape shape, bool is_wide) {
    const struct alike alike = writer->alike; /* a copy: what is written could be anything */
    const bool is_packed = names == NAMES_PACKED || names == NAMES_PREFIXED;
    const bool has_prefix =
        names == NAMES_PREFIXED || (names == NAMES_UUID && alike.code >= NAME_PREFIX_CODE);
    const ptrdiff_t forward = run->is_best_first ? 1 : -1;
    const ptrdiff_t at_step = forward * (ptrdiff_t)alike.stored;
    const uint64_t *key = run->keys - !run->is_best_first;
    const char *at = run->members - (run->is_best_first ? 0 : alike.stored);
    name_16 first = {0};
    name_16 second = {0};
    uint32_t left = count;
    while (is_packed && left > 1) {
        if (has_prefix && (*at != alike.prefix_byte || at[at_step] != alike.prefix_byte)) {
            break;
        }
        uint32_t scaled[2];
        name_unpack_two(bytes_get_u64(at + alike.stored - 8),
                        bytes_get_u64(at + at_step + alike.stored - 8), alike.name_shift, &first,
                        &second);
        zset_reply_scale_two(&alike, key[0], key[forward], scaled);
        zset_reply_put_entry(out, &alike, at, first, scaled[0], names, shape, is_wide);
        zset_reply_put_entry(out + alike.size, &alike, at + at_step, second, scaled[1], names,
                             shape, is_wide);
        out += 2 * alike.size;
        at += 2 * at_step;
        key += 2 * forward;
        left -= 2;
    }
    for (; left > 0 && (!has_prefix || *at == alike.prefix_byte); left--) {
        if (is_packed) {
            name_unpack_two(bytes_get_u64(at + alike.stored - 8), 0, alike.name_shift, &first,
                            &second);
        }
        zset_reply_put_entry(out, &alike, at, first, zset_reply_scale(&alike, *key), names, shape,
                             is_wide);
        out += alike.size;
        at += at_step;
        key += forward;
    }
    run->marks += forward * (ptrdiff_t)(count - left);
    run->keys = key + !run->is_best_first;
    run->members = at + (run->is_best_first ? 0 : alike.stored);
    run->count -= count - left;
    return out;
}

/* The same of names of different sizes, up to the first that is not short. */
__attribute__((always_inline)) static inline char *
zset_reply_put_short(const struct writer *writer, struct block_run *run, uint32_t count, char *out,
                     enum zset_shape shape, bool is_wide) {
    const struct alike alike = writer->alike;
    const bool is_best_first = run->is_best_first;
    const ptrdiff_t forward = is_best_first ? 1 : -1;
    const uint16_t *mark = run->marks - !is_best_first;
    const uint64_t *key = run->keys - !is_best_first;
    const char *at = run->members;
    uint32_t left = count;
    for (; left > 0 && *mark >> 8 <= BYTES_SHORT_MAX; left--) {
        uint32_t size = *mark >> 8;
        at -= is_best_first ? 0 : size;
        out =
            reply_put_next_bulk_header(shape == ZSET_PAIRS ? reply_put_next_pair(out) : out, size);
        out = bytes_copy_short(out, at, size);
        zset_reply_put_score(out, &alike, zset_reply_scale(&alike, *key), shape, is_wide);
        out += alike.score_size;
        at += is_best_first ? size : 0;
        mark += forward;
        key += forward;
    }
    run->marks = mark + !is_best_first;
    run->keys = key + !is_best_first;
    run->members = at;
    run->count -= count - left;
    return out;
}

/* The same of few letters, up to the first name that has others. */
__attribute__((always_inline)) static inline char *
zset_reply_put_letters(const struct writer *writer, struct block_run *run, uint32_t count,
                       char *out, enum zset_shape shape, bool is_wide) {
    const struct alike alike = writer->alike;
    const bool is_best_first = run->is_best_first;
    const ptrdiff_t forward = is_best_first ? 1 : -1;
    const uint16_t *mark = run->marks - !is_best_first;
    const uint64_t *key = run->keys - !is_best_first;
    const char *at = run->members;
    uint32_t left = count;
    for (; left > 0; left--) {
        const uint8_t code = (uint8_t)(*mark >> 8);
        if (!name_is_few_letters(code)) {
            break;
        }
        const uint32_t stored = name_stored_size(code);
        const char *first = is_best_first ? at : at - stored;
        if (!name_has_letters((struct name){first, stored, code})) {
            break;
        }
        const struct name_ending *ending = name_ending_in(first);
        size_t letters = name_count_letters(first, stored), size = letters + ending->size;
        out =
            reply_put_next_bulk_header(shape == ZSET_PAIRS ? reply_put_next_pair(out) : out, size);
        name_write_few_letters(first, stored, letters, ending, out);
        out += size;
        zset_reply_put_score(out, &alike, zset_reply_scale(&alike, *key), shape, is_wide);
        out += alike.score_size;
        at = is_best_first ? at + stored : first;
        mark += forward;
        key += forward;
    }
    run->marks = mark + !is_best_first;
    run->keys = key + !is_best_first;
    run->members = at;
    run->count -= count - left;
    return out;
}

/* A loop for each kind of names, shape, and digits. */
__attribute__((always_inline)) static inline char *
zset_reply_put_scored(const struct writer *writer, struct block_run *run, uint32_t count, char *out,
                      enum names names, enum zset_shape shape, bool is_wide) {
    return names == NAMES_SHORT ? zset_reply_put_short(writer, run, count, out, shape, is_wide)
           : names == NAMES_LETTERS
               ? zset_reply_put_letters(writer, run, count, out, shape, is_wide)
               : zset_reply_put_alike(writer, run, count, out, names, shape, is_wide);
}

__attribute__((always_inline)) static inline char *zset_reply_put_names(const struct writer *writer,
                                                                        struct block_run *run,
                                                                        uint32_t count, char *out,
                                                                        enum names names) {
    bool is_wide = writer->alike.is_wide;
    switch (writer->shape) {
    case ZSET_MEMBERS:
        break;
    case ZSET_FLAT:
        return is_wide ? zset_reply_put_scored(writer, run, count, out, names, ZSET_FLAT, true)
                       : zset_reply_put_scored(writer, run, count, out, names, ZSET_FLAT, false);
    case ZSET_PAIRS:
        return is_wide ? zset_reply_put_scored(writer, run, count, out, names, ZSET_PAIRS, true)
                       : zset_reply_put_scored(writer, run, count, out, names, ZSET_PAIRS, false);
    }
    return zset_reply_put_scored(writer, run, count, out, names, ZSET_MEMBERS, false);
}

/* Not inlined: each has the registers for itself. */
#define PUT_NAMES(function, names)                                                                 \
    __attribute__((noinline)) static char *function(                                               \
        const struct writer *writer, struct block_run *run, uint32_t count, char *out) {           \
        return zset_reply_put_names(writer, run, count, out, names);                               \
    }
PUT_NAMES(zset_reply_put_short_names, NAMES_SHORT)
PUT_NAMES(zset_reply_put_middle_names, NAMES_MIDDLE)
PUT_NAMES(zset_reply_put_packed_names, NAMES_PACKED)
PUT_NAMES(zset_reply_put_prefixed_names, NAMES_PREFIXED)
PUT_NAMES(zset_reply_put_uuids, NAMES_UUID)
PUT_NAMES(zset_reply_put_names_of_letters, NAMES_LETTERS)

/* Names that are written many at a time where they are alike. */
static char *(*const zset_reply_put_many[])(const struct writer *, struct block_run *, uint32_t,
                                            char *) = {
    [NAMES_MIDDLE] = zset_reply_put_middle_names,
    [NAMES_PACKED] = zset_reply_put_packed_names,
    [NAMES_PREFIXED] = zset_reply_put_prefixed_names,
    [NAMES_UUID] = zset_reply_put_uuids,
};

/* Write the next entry, whose name is packed, whatever the others are. */
static char *zset_reply_put_one(const struct writer *writer, struct block_run *run, char *out) {
    const struct alike *alike = &writer->alike;
    const struct name name = zset_reply_next_name(run);
    const ptrdiff_t forward = run->is_best_first ? 1 : -1;
    const struct name_digits digits = name_digits_of(name);
    const size_t size = name_digits_size(&digits);
    uint64_t key = zset_reply_key_ahead(run, 0);
    out = reply_put_next_bulk_header(writer->shape == ZSET_PAIRS ? reply_put_next_pair(out) : out,
                                     size);
    name_digits_write(&digits, out);
    zset_reply_put_score(out + size, alike, zset_reply_scale(alike, key), writer->shape,
                         alike->is_wide);
    run->marks += forward;
    run->keys += forward;
    run->members += forward * (ptrdiff_t)name.size;
    run->count--;
    return out + size + alike->score_size;
}

/* Write the next count entries, whose scores are plain, or those before the first with a longer name. */
static char *zset_reply_put_entries(struct writer *writer, struct block_run *run, uint32_t count,
                                    char *out) {
    const uint32_t end = run->count - count;
    while (run->count > end) {
        struct name name = zset_reply_next_name(run);
        enum names names = zset_reply_names_of(name);
        uint32_t left = run->count - end;
        if (names == NAMES_OTHERS) {
            break;
        }
        uint32_t alike_count = names <= NAMES_UUID ? zset_reply_count_alike(run, name, left) : 0;
        if (alike_count >= ALIKE_MIN) {
            if (!zset_reply_is_alike(&writer->alike, name)) {
                zset_reply_set_alike(writer, name);
            }
            out = zset_reply_put_many[names](writer, run, alike_count, out);
        } else if (names == NAMES_LETTERS) {
            out = zset_reply_put_names_of_letters(writer, run, left, out);
        } else if (name_is_packed(name.code)) {
            out = zset_reply_put_one(writer, run, out);
        } else {
            out = zset_reply_put_short_names(writer, run, left, out);
        }
    }
    return out;
}

/* Write entries whose scores are plain and whose names are not too long. false: the next one, if there is one, is
 * another. What is in the output ends with a line end, as it has the array's header. */
static bool zset_reply_put_run(struct writer *writer, struct block_run *run) {
    struct buffer *buffer = writer->call->reply->out;
    uint32_t count = zset_reply_count_plain(writer, run);
    uint32_t before = run->count;
    char *begin = buffer_reserve(buffer, count * (size_t)REPLY_PUT_SCORED_ROOM +
                                             REPLY_PUT_LINE_END_SIZE + REPLY_PUT_OVERRUN);
    if (begin != NULL) {
        char *out = zset_reply_put_entries(writer, run, count, begin - REPLY_PUT_LINE_END_SIZE);
        buffer_commit(buffer, (size_t)(reply_put_line_end(out) - begin));
    }
    return count > 0 && run->count == before - count;
}

static void zset_reply_write_run(struct writer *writer, struct block_run *run) {
    struct board_stored entry;
    while (run->count > 0 && !reply_is_lost(writer->call->reply)) {
        if ((!writer->is_plain || !zset_reply_put_run(writer, run)) &&
            block_run_read(run, &entry.key, &entry.member)) {
            zset_reply_entry(writer->call, writer->board, &entry, writer->shape);
        }
    }
}

void zset_reply_span(const struct call *call, const struct board *board, struct zset_span span,
                     bool is_best_first, enum zset_shape shape) {
    zset_reply_header(call, span.count, shape);
    if (span.count == 0 || reply_is_lost(call->reply)) {
        return;
    }
    struct writer writer;
    zset_reply_begin_writing(&writer, call, board, shape);
    struct board_cursor cursor;
    struct block_run run;
    board_cursor_seek(board, zset_part(span, is_best_first, 0, 1).rank, &cursor);
    for (uint32_t left = span.count; left > 0 && !reply_is_lost(call->reply);) {
        bool is_there = board_cursor_run(&cursor, is_best_first, left, &run);
        CHECK(is_there);
        left -= run.count;
        zset_reply_write_run(&writer, &run);
    }
}
