/* Members in replies, alone or with their scores.
 *
 * A range is written run by run, directly from the board's blocks into the client's output. Room is
 * reserved once per run. Nearly all members are short and nearly all scores small, so an entry is a
 * few stores. The others are written one by one by the general functions. */
#include "server/commands/zset/zset_reply.h"
#include "protocol/put.h"
#include "skiplist/run.h"

void zset_reply_header(const struct call *call, uint64_t count, enum zset_shape shape) {
    reply_array(call->reply, shape == ZSET_FLAT ? count * 2 : count);
}

void zset_reply_entry(const struct call *call, const struct board *board,
                      const struct board_entry *entry, enum zset_shape shape) {
    struct reply *reply = call->reply;
    if (shape == ZSET_PAIRS) {
        reply_array(reply, 2);
    }
    reply_bulk(reply, entry->member);
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
    bool is_plain; /* no decimals, and the shape is one that put_scored_member writes */
};

static void zset_reply_begin_writing(struct writer *writer, const struct call *call,
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
        .is_plain =
            shape == ZSET_MEMBERS || (lead->scale == 0 && shape == zset_shape_with_scores(call) &&
                                      (shape == ZSET_FLAT || call->reply->numbers == 3)),
    };
}

/* Write entries of the run to out, which has room for all, while they are short and small. Returns
 * the end of the output. The first entry that does not qualify, if any, is stored in *odd (whose
 * member is otherwise empty), and the run continues after it. Always inlined: with constant flags
 * the code is half as long. */
__attribute__((always_inline)) static inline char *
zset_reply_put_entries(const struct writer *writer, struct board_run *run, char *out,
                       bool is_best_first, bool with_scores, bool is_pair,
                       struct board_entry *odd) {
    /* Local copies that the compiler can keep in registers. */
    const struct writer lead = *writer;
    struct board_run left = *run;
    struct bytes member;
    uint64_t key;
    odd->member.size = 0;
    while (board_run_read_to(&left, is_best_first, &key, &member)) {
        uint64_t ordinal = (key >> lead.shift & lead.mask) ^ lead.flip;
        uint64_t score = ordinal - lead.zero; /* a negative score wraps around and becomes large */
        if (member.size > PUT_SHORT_MAX || (with_scores && score >= PUT_SMALL_LIMIT)) {
            *odd = (struct board_entry){.key = key, .member = member};
            break;
        }
        out = with_scores ? put_scored_member(out, member, (uint32_t)score, is_pair)
                          : put_short_bulk(out, member);
    }
    *run = left;
    return out;
}

/* One loop for each shape and direction. */
static inline char *zset_reply_put_shape(const struct writer *writer, struct board_run *run,
                                         char *out, bool is_best_first, struct board_entry *odd) {
    switch (writer->shape) {
    case ZSET_MEMBERS:
        return zset_reply_put_entries(writer, run, out, is_best_first, false, false, odd);
    case ZSET_FLAT:
        return zset_reply_put_entries(writer, run, out, is_best_first, true, false, odd);
    case ZSET_PAIRS:
        return zset_reply_put_entries(writer, run, out, is_best_first, true, true, odd);
    }
    return out;
}

static void write_run(const struct writer *writer, struct board_run *run) {
    struct board_entry entry;
    struct buffer *buffer = writer->call->reply->out;
    while (run->count > 0 && writer->is_plain) {
        char *out = buffer_reserve(buffer, run->count * (size_t)PUT_SCORED_ROOM + PUT_OVERRUN);
        if (out == NULL) {
            return;
        }
        char *end = run->is_best_first ? zset_reply_put_shape(writer, run, out, true, &entry)
                                       : zset_reply_put_shape(writer, run, out, false, &entry);
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
    zset_reply_begin_writing(&writer, call, board, shape);
    struct board_cursor cursor;
    struct board_run run;
    board_seek(board, zset_part(span, is_best_first, 0, 1).rank, &cursor);
    for (uint32_t left = span.count; left > 0 && !reply_is_lost(call->reply);) {
        bool is_there = board_cursor_run(&cursor, is_best_first, left, &run);
        CHECK(is_there);
        left -= run.count;
        write_run(&writer, &run);
    }
}
