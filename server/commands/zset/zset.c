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
    layout_explain_sum(field, ordinal, delta, time_us, error);
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
    /* The lead field: its ordinal is (key >> shift & mask) ^ flip, and zero is the ordinal of 0. */
    uint64_t mask;
    uint64_t flip;
    uint64_t zero;
    unsigned shift;
    bool
        is_plain; /* neither decimals nor DECAY, and the shape is one that put_scored_member writes */
};

static void zset_begin_writing(struct writer *writer, const struct call *call,
                               const struct board *board, enum zset_shape shape) {
    const struct layout_field *lead = zset_lead(board);
    *writer = (struct writer){
        .call = call,
        .board = board,
        .shape = shape,
        .mask = lead->mask,
        .flip = lead->is_ascending ? lead->mask : 0,
        .zero = layout_field_zero(lead),
        .shift = lead->shift,
        .is_plain = shape == ZSET_MEMBERS || (lead->scale == 0 && !layout_field_decays(lead) &&
                                              shape == zset_shape_with_scores(call) &&
                                              (shape == ZSET_FLAT || call->reply->numbers == 3)),
    };
}

/* Write entries of the run to out, which has room for all, while they are short and small. Returns
 * the end of the output. The first entry that does not qualify, if any, is stored in *odd (whose
 * member is otherwise empty), and the run continues after it. Always inlined: with constant flags
 * the code is half as long. */
__attribute__((always_inline)) static inline char *
zset_put_entries(const struct writer *writer, struct board_run *run, char *out, bool is_best_first,
                 bool with_scores, bool is_pair, struct board_stored *odd) {
    /* Local copies that the compiler can keep in registers. */
    const struct writer lead = *writer;
    struct board_run left = *run;
    char room[NAME_TEXT_ROOM];
    struct name stored;
    uint64_t key;
    odd->member.size = 0;
    while (board_run_read_to(&left, is_best_first, &key, &stored)) {
        uint64_t ordinal = (key >> lead.shift & lead.mask) ^ lead.flip;
        uint64_t score = ordinal - lead.zero; /* a negative score wraps around and becomes large */
        struct bytes member = name_text(stored, room);
        if (member.size > PUT_SHORT_MAX || (with_scores && score >= PUT_SMALL_LIMIT)) {
            *odd = (struct board_stored){.key = key, .member = stored};
            break;
        }
        out = with_scores ? put_scored_member(out, member, (uint32_t)score, is_pair)
                          : put_short_bulk(out, member);
    }
    *run = left;
    return out;
}

/* One loop for each shape and direction. */
static inline char *zset_put_shape(const struct writer *writer, struct board_run *run, char *out,
                                   bool is_best_first, struct board_stored *odd) {
    switch (writer->shape) {
    case ZSET_MEMBERS:
        return zset_put_entries(writer, run, out, is_best_first, false, false, odd);
    case ZSET_FLAT:
        return zset_put_entries(writer, run, out, is_best_first, true, false, odd);
    case ZSET_PAIRS:
        return zset_put_entries(writer, run, out, is_best_first, true, true, odd);
    }
    return out;
}

static void zset_write_run(const struct writer *writer, struct board_run *run) {
    struct board_stored entry;
    struct buffer *buffer = writer->call->reply->out;
    while (run->count > 0 && writer->is_plain) {
        char *out = buffer_reserve(buffer, run->count * (size_t)PUT_SCORED_ROOM + PUT_OVERRUN);
        if (out == NULL) {
            return;
        }
        char *end = run->is_best_first ? zset_put_shape(writer, run, out, true, &entry)
                                       : zset_put_shape(writer, run, out, false, &entry);
        buffer_commit(buffer, (size_t)(end - out));
        if (entry.member.size > 0) {
            zset_reply_entry(writer->call, writer->board, &entry, writer->shape);
        }
    }
    while (board_run_read(run, &entry.key, &entry.member)) {
        zset_reply_entry(writer->call, writer->board, &entry, writer->shape);
    }
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
