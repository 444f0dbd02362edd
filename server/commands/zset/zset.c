/* Ranges, replies and removals shared by several sorted-set commands. Ranges are in ranks: 0-based, best
 * first, the board's own order.
 *
 * A range is written run by run, directly from the board's blocks into the client's output. Room is
 * reserved once per run. Nearly all members are short and nearly all scores small, so an entry is a
 * few stores. The others are written one by one by the general functions. */
#include "server/commands/zset/zset.h"

#include "protocol/put.h"
#include "skiplist/run.h"

static struct zset_span zset_empty_span(struct zset_span span) {
    return (struct zset_span){.rank = span.rank, .count = 0};
}

struct zset_span zset_part_of_indexes(struct zset_span span, bool is_best_first, int64_t start,
                                      int64_t stop) {
    int64_t count = span.count;
    start += start < 0 ? count : 0;
    stop += stop < 0 ? count : 0;
    start = start < 0 ? 0 : start;
    stop = stop >= count ? count - 1 : stop;
    if (start > stop) {
        return zset_empty_span(span);
    }
    return zset_part(span, is_best_first, (uint32_t)start, (uint32_t)(stop - start + 1));
}

struct zset_span zset_part_of_limit(struct zset_span span, bool is_best_first, int64_t offset,
                                    int64_t count) {
    if (offset < 0 || offset >= span.count) {
        return zset_empty_span(span);
    }
    int64_t left = span.count - offset;
    int64_t taken = count < 0 || count > left ? left : count;
    return zset_part(span, is_best_first, (uint32_t)offset, (uint32_t)taken);
}

bool zset_span_of_scores(const struct call *call, const struct board *board, struct bytes min,
                         struct bytes max, struct zset_span *span) {
    unsigned scale = board != NULL ? zset_lead(board)->scale : 0;
    struct decimal_bound lower;
    struct decimal_bound upper;
    bool is_empty_below;
    bool is_empty_above;
    if (decimal_parse_bound(min, scale, true, &lower, &is_empty_below) != DECIMAL_OK ||
        decimal_parse_bound(max, scale, false, &upper, &is_empty_above) != DECIMAL_OK) {
        return call_refuse(call, "ERR min or max is not a float");
    }
    *span = (struct zset_span){0};
    uint64_t lowest_key;
    uint64_t highest_key;
    if (board == NULL || is_empty_below || is_empty_above ||
        !layout_key_range(board_layout(board), lower, upper, call->now_us, &lowest_key,
                          &highest_key)) {
        return true;
    }
    span->rank = board_count_above(board, highest_key);
    span->count = board_count_from(board, lowest_key) - span->rank;
    return true;
}

bool zset_check_member(const struct call *call, struct bytes member) {
    return zset_is_member(member) ||
           call_refuse_format(call, "ERR member is %zu bytes long: 1..%d are allowed", member.size,
                              (int)BOARD_MEMBER_MAX);
}

bool zset_refuse_value(const struct call *call, const struct layout_field *field, struct bytes text,
                       enum decimal_status status) {
    char error[LAYOUT_ERROR_MAX];
    layout_explain_value(field, text, status, error);
    return call_refuse_format(call, "ERR %s", error);
}

bool zset_refuse_sum(const struct call *call, const struct layout_field *field, uint64_t ordinal,
                     struct decimal delta, int64_t time_us) {
    char error[LAYOUT_ERROR_MAX];
    layout_explain_sum(field, ordinal, delta, time_us, call->now_us, error);
    return call_refuse_format(call, "ERR %s", error);
}

void zset_remove_span(const struct call *call, struct registry_key *key, struct zset_span span,
                      const char *event) {
    if (span.count > 0) {
        registry_remove_range(call->registry, key, span.rank, span.count);
        zset_end_removal(call, key, event);
    }
}

void zset_end_removal(const struct call *call, struct registry_key *key, const char *event) {
    call_notify(call, SETTING_EVENT_ZSET, event, registry_name(key));
    if (board_count(&key->board) == 0 && !registry_rules(key)->is_created) {
        call_notify(call, SETTING_EVENT_GENERIC, "del", registry_name(key));
        registry_remove(call->registry, key);
    }
}

void zset_reply_no_lex(const struct call *call, const char *what) {
    reply_error_format(call->reply,
                       "ERR %s is not supported: equal scores are ordered by time, never by name",
                       what);
}

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

/* State for writing a range, the same for all entries. */
struct writer {
    const struct call *call;
    const struct board *board;
    enum zset_shape shape;
    /* A plain score is (key >> shift) * step + origin: the lead field, above which a key has no bits, counted up
     * or (ASC) down from the key of 0. */
    uint64_t step;
    uint64_t origin;
    unsigned shift;
    const struct put_digits *digits; /* of the score written last */
    bool
        is_plain; /* neither decimals nor DECAY, and the shape is one that zset_put_entries writes */
};

static void zset_begin_writing(struct writer *writer, const struct call *call,
                               const struct board *board, enum zset_shape shape) {
    const struct layout_field *lead = zset_lead(board);
    *writer = (struct writer){
        .call = call,
        .board = board,
        .shape = shape,
        .step = lead->is_ascending ? UINT64_MAX : 1,
        .origin = (lead->is_ascending ? lead->mask : 0) - layout_field_zero(lead),
        .shift = lead->shift,
        .digits = put_digits_table,
        .is_plain = shape == ZSET_MEMBERS || (lead->scale == 0 && !layout_field_decays(lead) &&
                                              shape == zset_shape_with_scores(call) &&
                                              (shape == ZSET_FLAT || call->reply->numbers == 3)),
    };
}

static uint64_t zset_plain_score(const struct writer *writer, uint64_t key) {
    /* A negative score wraps around and becomes large. */
    return (key >> writer->shift) * writer->step + writer->origin;
}

static uint64_t zset_key_ahead(const struct board_run *run, uint32_t index) {
    return run->is_best_first ? run->keys[index] : run->keys[-1 - (ptrdiff_t)index];
}

static bool zset_is_plain(const struct writer *writer, const struct board_run *run,
                          uint32_t index) {
    return put_digits_have(writer->digits, zset_plain_score(writer, zset_key_ahead(run, index)));
}

/* How many of the run's next entries have scores of as many digits as the first, all but always the whole run:
 * they are sorted. 0: the first is not small. */
static uint32_t zset_count_plain(struct writer *writer, const struct board_run *run) {
    uint64_t first = zset_plain_score(writer, zset_key_ahead(run, 0));
    uint32_t count = run->count;
    if (writer->shape == ZSET_MEMBERS) {
        return count;
    }
    if (first >= PUT_SMALL_LIMIT) {
        return 0;
    }
    if (!put_digits_have(writer->digits, first)) {
        writer->digits = put_digits_of(first);
    }
    uint32_t least = zset_is_plain(writer, run, count - 1) ? count : 1;
    while (least < count) {
        uint32_t middle = least + (count - least) / 2;
        bool is_plain = zset_is_plain(writer, run, middle);
        least = is_plain ? middle + 1 : least;
        count = is_plain ? count : middle;
    }
    return count;
}

/* A score, unless the shape has none. */
__attribute__((always_inline)) static inline char *
zset_put_score(char *out, const struct put_digits *digits, uint32_t scaled, enum zset_shape shape) {
    return shape == ZSET_MEMBERS ? out : put_next_score(out, digits, scaled, shape == ZSET_PAIRS);
}

/* Write the next count entries of the run, whose scores are plain, to out, which has room for all, and move the
 * run past them; up to the first whose name is not short. out is as put_next_ has it, and so is what is
 * returned. Always inlined: with a constant shape and direction the code is a third as long. */
__attribute__((always_inline)) static inline char *
zset_put_entries(const struct writer *writer, struct board_run *run, uint32_t count, char *out,
                 bool is_best_first, enum zset_shape shape) {
    /* Local copies that the compiler can keep in registers. */
    const struct put_digits digits = *writer->digits;
    const unsigned shift = writer->shift;
    /* zset_plain_score * digits.factor */
    const uint32_t step = (uint32_t)writer->step * digits.factor;
    const uint32_t origin = (uint32_t)writer->origin * digits.factor;
    const ptrdiff_t forward = is_best_first ? 1 : -1;
    /* Backwards, what is read is before the run's place. */
    const uint16_t *mark = run->marks - !is_best_first;
    const uint64_t *key = run->keys - !is_best_first;
    const char *at = run->members;
    uint32_t left = count;
    while (left > 0) {
        uint8_t code = (uint8_t)(*mark >> 8);
        uint32_t size = name_stored_size(code);
        if (code > BYTES_SHORT_MAX && !name_is_packed(code)) {
            break;
        }
        if (!name_is_packed(code)) {
            at -= is_best_first ? 0 : size;
            do {
                out = shape == ZSET_PAIRS ? put_next_pair(out) : out;
                out = bytes_copy_short(put_next_bulk_header(out, size), at, size);
                out =
                    zset_put_score(out, &digits, (uint32_t)(*key >> shift) * step + origin, shape);
                at += is_best_first ? (ptrdiff_t)size : -(ptrdiff_t)size;
                mark += forward;
                key += forward;
                left--;
            } while (left > 0 && *mark >> 8 == code);
            at += is_best_first ? 0 : size;
            continue;
        }
        at -= is_best_first ? 0 : size;
        const struct put_packed alike = put_packed_of((struct name){at, size, code});
        do {
            out = shape == ZSET_PAIRS ? put_next_pair(out) : out;
            out = put_next_packed(out, alike, at);
            out = zset_put_score(out, &digits, (uint32_t)(*key >> shift) * step + origin, shape);
            at += is_best_first ? (ptrdiff_t)size : -(ptrdiff_t)size;
            mark += forward;
            key += forward;
            left--;
        } while (left > 0 && put_packed_has(alike, (uint8_t)(*mark >> 8), at));
        at += is_best_first ? 0 : size;
    }
    run->marks = mark + !is_best_first;
    run->keys = key + !is_best_first;
    run->members = at;
    run->count -= count - left;
    return out;
}

/* One loop for each shape. */
__attribute__((always_inline)) static inline char *zset_put_shape(const struct writer *writer,
                                                                  struct board_run *run,
                                                                  uint32_t count, char *out,
                                                                  bool is_best_first) {
    switch (writer->shape) {
    case ZSET_MEMBERS:
        return zset_put_entries(writer, run, count, out, is_best_first, ZSET_MEMBERS);
    case ZSET_FLAT:
        return zset_put_entries(writer, run, count, out, is_best_first, ZSET_FLAT);
    case ZSET_PAIRS:
        return zset_put_entries(writer, run, count, out, is_best_first, ZSET_PAIRS);
    }
    return out;
}

/* Not inlined: a loop for each direction, and each has the registers for itself. */
__attribute__((noinline)) static char *
zset_put_down(const struct writer *writer, struct board_run *run, uint32_t count, char *out) {
    return zset_put_shape(writer, run, count, out, true);
}

__attribute__((noinline)) static char *
zset_put_up(const struct writer *writer, struct board_run *run, uint32_t count, char *out) {
    return zset_put_shape(writer, run, count, out, false);
}

/* What is in the output ends with a line end, as it has the array's header. */
static void zset_put_run(struct writer *writer, struct board_run *run) {
    struct buffer *buffer = writer->call->reply->out;
    uint32_t count = zset_count_plain(writer, run);
    char *begin =
        buffer_reserve(buffer, count * (size_t)PUT_SCORED_ROOM + PUT_LINE_END_SIZE + PUT_OVERRUN);
    if (begin != NULL) {
        char *out = begin - PUT_LINE_END_SIZE;
        out = run->is_best_first ? zset_put_down(writer, run, count, out)
                                 : zset_put_up(writer, run, count, out);
        buffer_commit(buffer, (size_t)(put_line_end(out) - begin));
    }
}

static void zset_write_run(struct writer *writer, struct board_run *run) {
    struct board_stored entry;
    do {
        if (writer->is_plain) {
            zset_put_run(writer, run);
        }
        if (board_run_read(run, &entry.key, &entry.member)) {
            zset_reply_entry(writer->call, writer->board, &entry, writer->shape);
        }
    } while (run->count > 0 && !reply_is_lost(writer->call->reply));
}

void zset_reply_span(const struct call *call, const struct board *board, struct zset_span span,
                     bool is_best_first, enum zset_shape shape) {
    zset_reply_header(call, span.count, shape);
    if (span.count == 0 || reply_is_lost(call->reply)) {
        return;
    }
    struct writer writer;
    zset_begin_writing(&writer, call, board, shape);
    struct board_cursor cursor;
    struct board_run run;
    board_seek(board, zset_part(span, is_best_first, 0, 1).rank, &cursor);
    for (uint32_t left = span.count; left > 0 && !reply_is_lost(call->reply);) {
        bool is_there = board_cursor_run(&cursor, is_best_first, left, &run);
        CHECK(is_there);
        left -= run.count;
        zset_write_run(&writer, &run);
    }
}
