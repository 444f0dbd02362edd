/* Records in replies. See lb_record.h for their form.
 *
 * Room is reserved once per record, for its maximum size; then its parts are written without
 * further checks. Ranges are read directly from the board's blocks, run by run. */
#include "server/commands/lb/lb_record.h"

#include "protocol/reply.h"
#include "server/commands/keyspace.h"
#include "server/commands/lb/lb.h"
#include "server/commands/lb/lb_rating.h"
#include "server/commands/writing.h"
#include "skiplist/block.h"

_Static_assert((int)REPLY_PUT_SHORT_MAX >= (int)BYTES_INTEGER_TEXT_MAX, "integers are short");

/* Decimals of PCT: 100 / 10^8 is less than one member of the largest board. */
enum { PERCENT_SCALE = 8 };
_Static_assert((int)LB_DATA_GROUP <= (int)HASH_PREFETCH_MAX,
               "notes of a group are fetched together");
/* Every integer up to 2^53 is a double. */
#define EXACT_MAX     (UINT64_C(1) << 53)
#define SINCE_NOWHERE UINT32_MAX /* nil: no member has this rank */

/* ---- SINCE: the other board ---- */

/* The newest archive of the board at call_arg(call, 1). false: the error was replied. */
static bool lb_record_since_last(const struct call *call, const struct board *board,
                                 struct lb_since *since) {
    struct bytes name = call_arg(call, 1);
    char text[REGISTRY_NAME_MAX];
    struct bytes archive;
    if (board == NULL || board_options_of(board_layout(board))->period.unit == PERIOD_NONE ||
        name.size > REGISTRY_KEY_MAX) {
        return true;
    }
    if (!writing_may_use_archives(call, name, ACL_READ)) {
        return false;
    }
    struct lb_archives archives =
        lb_archives_begin(name, board_options_of(board_layout(board)), text);
    while (since->board == NULL && lb_archives_next(&archives, &archive)) {
        /* The archive that has this name, or it with a number. */
        bool is_other;
        do {
            since->board = keyspace_find_board(call, archive);
            is_other =
                since->board != NULL &&
                !lb_is_archive(archives.options, board_options_of(board_layout(since->board)));
            since->board = is_other ? NULL : since->board;
        } while (is_other && lb_archives_next_number(&archives, &archive));
    }
    return true;
}

/* Find the other board, and the group on it, after board, that of the command's key, was found; board may be NULL.
 * Without the option nothing is done. false: the error was replied, and nothing needs to be ended. */
static bool lb_record_since_begin(const struct call *call, const struct board *board,
                                  const struct option_uses *uses, struct lb_since *since) {
    if (!lb_since_is_asked(since)) {
        return true;
    }
    if (bytes_is(since->name, "LAST") ? !lb_record_since_last(call, board, since)
                                      : !call_find_board(call, since->name, &since->board)) {
        return false;
    }
    if (since->board == NULL || board == NULL || uses->count == 0) {
        return true;
    }
    since->filter = memory_allocate(sizeof *since->filter);
    if (since->filter == NULL) {
        return call_out_of_memory(call);
    }
    if (lb_filter_begin(call, since->board, uses, since->filter)) {
        return true;
    }
    memory_free(since->filter);
    return false;
}

void lb_record_since_end(struct lb_since *since) {
    if (since->filter != NULL) {
        lb_filter_end(since->filter);
        memory_free(since->filter);
    }
}

/* ---- SINCE: ranks there ---- */

/* Is the member, which has been looked up there, in the group? *rank becomes one inside it. */
static bool lb_record_since_filter(const struct lb_since *since, const struct board *board,
                                   uint32_t rank_now, const struct board_member *member,
                                   uint32_t *rank) {
    struct lb_filter *filter = since->filter;
    bool has_memory = true;
    if (lb_filter_is_within(filter)) {
        /* The values that the member at this rank of board has, as those of the tags of the same
         * names on the other one. */
        const struct tag_set *tags = &board_layout(since->board)->tags;
        struct tag_values now;
        struct tag_values values = {.mask = 0};
        tags_at(board, rank_now, &now);
        for (unsigned i = 0; i < tags->count; i++) {
            int tag = tag_set_find(&board_layout(board)->tags, bytes_from_text(tags->tags[i].name));
            struct bytes value = {.size = 0};
            if (tag >= 0) {
                value = lb_tag_values_value(&now, (unsigned)tag);
            }
            values.mask |= value.size > 0 ? 1U << i : 0;
            values.at[i] = value;
        }

        has_memory = lb_filter_select_values(filter, &values);
    }
    if (has_memory) {
        *rank = tag_group_has(since->board, filter->group, member) ? lb_filter_rank(filter, *rank)
                                                                   : SINCE_NOWHERE;
    }
    return has_memory;
}

/* The elements of a group of members of board. false: no memory. */
static bool lb_record_since_find(const struct lb_since *since, const struct board *board,
                                 struct lb_group *group, const struct lb_shape *shape,
                                 uint32_t *since_ranks) {
    const struct lookup_found *found = group->since;
    const struct board *other = since->board;
    bool has_memory = true;
    if (other != NULL && !group->has_since) {
        lookup_read(other, group->members, group->count, group->since);
    }
    for (unsigned i = 0; i < group->count && has_memory; i++) {
        if (other == NULL || found[i].rank == LOOKUP_NOWHERE) {
            since_ranks[i] = SINCE_NOWHERE;
            continue;
        }
        const struct board_member member = {.leaf = found[i].leaf, .index = found[i].index};
        since_ranks[i] =
            shape->is_competition
                ? board_count_above(other, lb_best_key(board_layout(other), found[i].key))
            : shape->is_dense ? board_dense_rank_of(other, &member)
                              : found[i].rank;
        if (since->filter != NULL) {
            has_memory =
                lb_record_since_filter(since, board, group->ranks[i], &member, &since_ranks[i]);
        }
    }
    return has_memory;
}

/* ---- records ---- */

bool lb_record_begin_ranks(const struct call *call, const struct board *board,
                           const struct option_uses *uses, struct lb_shape *shape) {
    if (shape->with_rating && board != NULL && !lb_match_rating_check(call, lb_rating_key(board))) {
        return false;
    }
    if (!shape->is_dense) {
        return lb_record_since_begin(call, board, uses, &shape->since);
    }
    if (shape->is_competition) {
        return call_refuse(call, "ERR COMP and DENSE exclude each other");
    }
    if (uses->count > 0) {
        return call_refuse(call, "ERR DENSE is a rank on the whole board: it excludes WHERE, "
                                 "WHERENOT and WITHIN");
    }
    if (board != NULL && !board_is_dense(board)) {
        return call_refuse(call, "ERR board does not count its different scores: LB.ALTER key "
                                 "DENSE YES");
    }
    if (!lb_record_since_begin(call, board, uses, &shape->since)) {
        return false;
    }
    const struct board *since = shape->since.board;
    return since == NULL || board_is_dense(since) ||
           call_refuse(call, "ERR board of SINCE does not count its different scores: LB.ALTER "
                             "key DENSE YES");
}

void lb_record_begin(const struct call *call, const struct board *board, struct lb_shape shape,
                     struct lb_writer *writer) {
    const struct layout *layout = board_layout(board);
    bool has_data = lb_data_is_asked(&shape.data);
    bool has_since = lb_since_is_asked(&shape.since);
    uint32_t element_count = 3U + layout->field_count + shape.with_percent + shape.with_key +
                             shape.with_tags + has_data + has_since + shape.with_rating;
    /* Member by member: what is not used yet need not be zero. */
    writer->call = call;
    writer->reply = call->reply;
    writer->board = board;
    writer->layout = layout;
    writer->shape = shape;
    writer->numbers = shape.with_strings ? REPLY_STRINGS : call->reply->numbers;
    writer->element_count = element_count;
    writer->is_grouped = has_data || shape.with_tags || has_since || shape.with_rating;
    writer->shares_ranks = shape.is_competition || shape.is_dense;
    writer->has_last = false;
    writer->filter = NULL;
    writer->filter_count = shape.is_dense ? board_dense_count(board) : 0;
    writer->room = (element_count + 1) * (size_t)REPLY_PUT_NUMBER_ROOM;
    writer->is_time_plain = false;
    const struct layout_field *lead = &layout->fields[0];
    /* Values below this are written without a call; none as strings. */
    bool is_never_plain = layout_field_decays(lead) || writer->numbers == REPLY_STRINGS;
    writer->limit = is_never_plain ? 0 : REPLY_PUT_SMALL_LIMIT;
    writer->lead_shift = lead->shift;
    writer->lead_mask = lead->mask;
    writer->lead_flip = lead->is_ascending ? lead->mask : 0;
    writer->lead_zero = layout_field_zero(lead);
    writer->lead_limit = lead->scale == 0 ? writer->limit : 0;
    writer->head_size =
        (uint8_t)(reply_put_header(writer->head, '*', element_count) - writer->head);
    /* Most times are of the last days: all but the last nine digits are those of now. */
    int64_t now_ms = writer->call->now_us / 1000;
    uint64_t above = now_ms > 0 ? (uint64_t)now_ms / REPLY_PUT_SMALL_LIMIT : 0;
    char *end = reply_put_header(writer->now_text, ':', above);
    writer->now_text_size = (uint8_t)(end - writer->now_text - REPLY_PUT_LINE_END_SIZE);
    /* In 1970 there is nothing above: then no time is among them. */
    writer->now_begin_ms = above > 0 ? above * REPLY_PUT_SMALL_LIMIT : UINT64_MAX / 2;
    /* Most layouts convert their times with a single multiplication. */
    const struct layout_time *time = &writer->layout->time;
    uint64_t span_ms;
    uint64_t last_ms;
    if (time->bits == 0 || time->start_us < 0 || time->start_us % 1000 != 0 ||
        time->unit_us % 1000 != 0) {
        return;
    }
    writer->start_ms = (uint64_t)time->start_us / 1000;
    writer->unit_ms = (uint64_t)time->unit_us / 1000;
    writer->is_time_plain = !__builtin_mul_overflow(time->mask, writer->unit_ms, &span_ms) &&
                            !__builtin_add_overflow(span_ms, writer->start_ms, &last_ms) &&
                            last_ms <= EXACT_MAX;
}

void lb_record_continue(struct lb_writer *writer, const struct board *board) {
    if (writer->layout != board_layout(board) || writer->shape.is_dense) {
        lb_record_begin(writer->call, board, writer->shape, writer);
    }
    writer->board = board;
    writer->has_last = false;
}

static char *lb_record_put_decimal(char *out, const struct layout_field *field,
                                   struct decimal value, uint8_t numbers) {
    return field->scale == 0 && numbers != REPLY_STRINGS
               ? reply_put_integer(out, value, numbers == 3)
               : reply_put_decimal(out, value, field->scale, numbers == 3);
}

static inline char *lb_record_put_value(char *out, const struct layout_field *field,
                                        uint64_t ordinal, uint64_t limit, int64_t now_us,
                                        uint8_t numbers) {
    /* A negative value wraps around and becomes large. */
    uint64_t value = ordinal - layout_field_zero(field);
    if (field->scale == 0 && value < limit) {
        *out = ':';
        return reply_put_line_end(reply_put_small(out + 1, (uint32_t)value));
    }
    return lb_record_put_decimal(out, field, layout_field_decimal_at(field, ordinal, now_us),
                                 numbers);
}

static char *lb_record_put_any_time(char *out, const struct lb_writer *writer, uint64_t key) {
    int64_t time_ms;
    bool is_resp3 = writer->reply->version == 3;
    if (!layout_time_ms(writer->layout, key, &time_ms)) {
        return reply_put_nothing(out, '$', writer->reply->version);
    }
    bool is_negative = time_ms < 0;
    struct decimal time = {is_negative ? 0 - (uint64_t)time_ms : (uint64_t)time_ms, is_negative};
    return writer->numbers == REPLY_STRINGS && time.magnitude > EXACT_MAX
               ? reply_put_decimal(out, time, 0, false)
               : reply_put_integer(out, time, is_resp3);
}

static inline __attribute__((always_inline)) char *
lb_record_put_time(char *out, const struct lb_writer *writer, uint64_t key) {
    const struct layout_time *time = &writer->layout->time;
    if (!writer->is_time_plain) {
        return lb_record_put_any_time(out, writer, key);
    }
    uint64_t stored = key & time->mask;
    uint64_t unit_index = time->is_latest ? stored : stored ^ time->mask;
    uint64_t time_ms = writer->start_ms + unit_index * writer->unit_ms;
    if (time_ms - writer->now_begin_ms < REPLY_PUT_SMALL_LIMIT) {
        memcpy(out, writer->now_text, 8);
        out += writer->now_text_size;
        return reply_put_line_end(
            reply_put_nine_digits(out, (uint32_t)(time_ms - writer->now_begin_ms)));
    }
    uint64_t above =
        time_ms / REPLY_PUT_SMALL_LIMIT; /* days and hours: small for a long time to come */
    *out++ = ':';
    if (above == 0 || above >= REPLY_PUT_SMALL_LIMIT) {
        return reply_put_line_end(reply_put_digits(out, time_ms));
    }
    out = reply_put_small(out, (uint32_t)above);
    return reply_put_line_end(
        reply_put_nine_digits(out, (uint32_t)(time_ms % REPLY_PUT_SMALL_LIMIT)));
}

/* floor(100 * (count - rank) / count * 10^8), in two steps that fit 64 bits. */
static char *lb_record_put_percent(char *out, uint32_t count, uint32_t rank, bool is_double) {
    const uint64_t half = 100000; /* 10^10 = half * half */
    uint64_t part = (count - rank) * half;
    uint64_t high = part / count;
    uint64_t low = part % count * half / count;
    struct decimal percent = {.magnitude = high * half + low};
    return reply_put_decimal(out, percent, PERCENT_SCALE, is_double);
}

static inline __attribute__((always_inline)) char *lb_record_put(const struct lb_writer *writer,
                                                                 char *out, struct bytes member,
                                                                 uint64_t key,
                                                                 uint32_t shown_rank) {
    uint8_t numbers = writer->numbers;
    memcpy(out, writer->head, 8);
    out = reply_put_bulk(out + writer->head_size, member);
    out = reply_put_header(out, ':', shown_rank);
    out = lb_record_put_time(out, writer, key);
    /* A negative value wraps around and becomes large. */
    uint64_t lead =
        ((key >> writer->lead_shift & writer->lead_mask) ^ writer->lead_flip) - writer->lead_zero;
    bool is_plain = lead < writer->lead_limit;
    if (is_plain) {
        *out = ':';
        out = reply_put_line_end(reply_put_small(out + 1, (uint32_t)lead));
    }
    for (unsigned i = is_plain; i < writer->layout->field_count; i++) {
        out = lb_record_put_value(out, &writer->layout->fields[i],
                                  layout_ordinal(writer->layout, key, i), writer->limit,
                                  writer->call->now_us, numbers);
    }
    if (writer->shape.with_percent) {
        uint32_t count =
            writer->filter_count > 0 ? writer->filter_count : board_count(writer->board);
        out = lb_record_put_percent(out, count, shown_rank, numbers == 3);
    }
    if (writer->shape.with_key) {
        char text[REPLY_PUT_SHORT_MAX];
        size_t size = layout_key_print(writer->layout, key, text);
        out = reply_put_short_bulk(out, (struct bytes){.at = text, .size = size});
    }
    return out;
}

char *lb_record_put_at(const struct lb_writer *writer, char *out, struct bytes member, uint64_t key,
                       uint32_t shown_rank) {
    return lb_record_put(writer, out, member, key, shown_rank);
}

/* Room for size bytes; NULL: none is needed, or there is no memory. */
static inline char *lb_record_room(const struct lb_writer *writer, size_t size) {
    return writer->reply->is_silent ? NULL : buffer_reserve(writer->reply->out, size);
}

static inline void lb_record_commit(const struct lb_writer *writer, const char *out) {
    struct buffer *buffer = writer->reply->out;
    buffer_commit(buffer, (size_t)(out - (buffer->at + buffer->size)));
}

static void lb_record_write_as(const struct lb_writer *writer, struct bytes member, uint64_t key,
                               uint32_t shown_rank) {
    char *out = lb_record_room(writer, writer->room + member.size);
    if (out != NULL) {
        lb_record_commit(writer, lb_record_put(writer, out, member, key, shown_rank));
    }
}

void lb_record_write_found(const struct lb_writer *writer, const struct bytes *members,
                           const struct lookup_found *found, unsigned count) {
    size_t room = 0;
    for (unsigned i = 0; i < count; i++) {
        room += writer->room + members[i].size;
    }
    char *out = lb_record_room(writer, room);
    for (unsigned i = 0; i < count && out != NULL; i++) {
        out = found[i].rank != LOOKUP_NOWHERE
                  ? lb_record_put(writer, out, members[i], found[i].key, found[i].rank)
                  : reply_put_nothing(out, '*', writer->reply->version);
    }
    if (out != NULL) {
        lb_record_commit(writer, out);
    }
}

/* The rank that all with these fields share. Records are usually written in rank order, or with REV in reverse, and
 * then the previous record determines it. */
static uint32_t lb_record_shared_rank(struct lb_writer *writer, uint64_t key, uint32_t rank) {
    uint64_t fields = layout_without_time(writer->layout, key);
    bool is_behind_last = writer->has_last && rank == writer->last_rank + 1;
    bool is_before_last = writer->has_last && rank + 1 == writer->last_rank;
    bool is_other = !writer->has_last || fields != writer->last_fields;
    if (is_other && !writer->shape.is_competition) {
        writer->last_shared_rank = is_behind_last   ? writer->last_shared_rank + 1
                                   : is_before_last ? writer->last_shared_rank - 1
                                                    : board_dense_rank(writer->board, rank);
    } else if (is_other && is_behind_last) {
        writer->last_shared_rank = rank;
    } else if (is_other) {
        uint32_t above = board_count_above(writer->board, lb_best_key(writer->layout, key));
        writer->last_shared_rank =
            writer->filter != NULL ? lb_filter_rank(writer->filter, above) : above;
    }
    writer->has_last = true;
    writer->last_fields = fields;
    writer->last_rank = rank;
    return writer->last_shared_rank;
}

static inline uint32_t lb_record_shown_rank(struct lb_writer *writer, uint64_t key, uint32_t rank) {
    return writer->shares_ranks ? lb_record_shared_rank(writer, key, rank) : rank;
}

void lb_record_write(struct lb_writer *writer, struct bytes member, uint64_t key, uint32_t rank) {
    lb_record_write_as(writer, member, key, lb_record_shown_rank(writer, key, rank));
}

/* What the records of a group show besides themselves. */
struct lb_group_shown {
    const struct hash *hashes[LB_DATA_GROUP];
    uint32_t since_ranks[LB_DATA_GROUP];
    struct tag_values tags[LB_DATA_GROUP];
};

/* All of it, so that look-ups of one kind overlap. false: there is no memory for keys' names. */
__attribute__((always_inline)) static inline bool
lb_record_group_find(const struct lb_writer *writer, struct lb_group *group, bool has_data,
                     struct lb_group_shown *shown) {
    const struct lb_shape *shape = &writer->shape;
    struct lb_data_periods periods;
    if (has_data && lb_data_names_period(shape->data.pattern)) {
        lb_data_find_periods(writer->call, group->members, group->keys, group->count, &periods);
    } else {
        periods.board = (struct bytes){.size = 0};
        memset(periods.suffixes, 0, sizeof periods.suffixes);
    }
    if ((has_data && !lb_data_keys_find_hashes(writer->call, &shape->data, &periods, group->members,
                                               group->count, shown->hashes)) ||
        (lb_since_is_asked(&shape->since) &&
         !lb_record_since_find(&shape->since, writer->board, group, shape, shown->since_ranks))) {
        return false;
    }
    if (shape->with_tags && group->has_below) {
        tags_below_many(writer->board, group->below, group->count, shown->tags);
    } else if (shape->with_tags) {
        tags_at_many(writer->board, group->ranks, group->count, shown->tags);
    }
    if (shape->with_rating) {
        hash_prefetch_fields(registry_note_hash(lb_rating_key(writer->board)), group->members,
                             group->count);
    }
    return true;
}

void lb_record_group_write(const struct lb_writer *writer, struct lb_group *group) {
    const struct lb_shape *shape = &writer->shape;
    struct session_names *names = writer->call->session->names;
    bool has_data = lb_data_is_asked(&shape->data) && (names == NULL || names->left > 0);
    bool has_since = lb_since_is_asked(&shape->since);
    struct lb_group_shown shown;
    if (group->count == 0) {
        return;
    }
    if (!lb_record_group_find(writer, group, has_data, &shown)) {
        writer->reply->out->is_broken = true; /* as where there is no memory for the reply */
        return;
    }
    size_t room = writer->room + (shape->with_tags ? lb_tag_values_room(&writer->layout->tags) : 0);
    for (unsigned i = 0; i < group->count; i++) {
        if (names != NULL && !(has_data && lb_data_is_named(names, shown.hashes[i]))) {
            reply_null_array(writer->reply);
            continue;
        }
        char *out = lb_record_room(writer, room + group->members[i].size);
        if (out == NULL) {
            break;
        }
        out = lb_record_put(writer, out, group->members[i], group->keys[i], group->shown_ranks[i]);
        if (shape->with_tags) {
            out = lb_tag_values_put(out, &writer->layout->tags, &shown.tags[i],
                                    writer->reply->version);
        }
        bool was_there = has_since && shown.since_ranks[i] != SINCE_NOWHERE;
        if (has_since && !has_data) {
            out = was_there ? reply_put_header(out, ':', shown.since_ranks[i])
                            : reply_put_nothing(out, '$', writer->reply->version);
        }
        lb_record_commit(writer, out);
        if (has_data) {
            lb_data_reply(writer->reply, &shape->data, shown.hashes[i]);
        }
        if (was_there && has_data) {
            reply_integer(writer->reply, shown.since_ranks[i]);
        } else if (has_since && has_data) {
            reply_null(writer->reply);
        }
        if (shape->with_rating) {
            lb_match_rating_reply(writer->reply, lb_rating_key(writer->board), group->members[i],
                                  writer->call->now_ms);
        }
    }
    group->count = 0;
}

/* below, since: NULL in a group whose records have none. */
static inline void lb_record_group(struct lb_writer *writer, struct lb_group *group,
                                   struct bytes member, uint64_t key, uint32_t rank,
                                   uint32_t shown_rank, const struct board_below *below,
                                   const struct lookup_found *since) {
    if (!writer->is_grouped) {
        lb_record_write_as(writer, member, key, shown_rank);
        return;
    }
    group->members[group->count] = member;
    group->keys[group->count] = key;
    group->ranks[group->count] = rank;
    group->shown_ranks[group->count] = shown_rank;
    group->has_below = below != NULL;
    if (below != NULL) {
        group->below[group->count] = *below;
    }
    group->has_since = since != NULL;
    if (since != NULL) {
        group->since[group->count] = *since;
    }
    if (++group->count == LB_DATA_GROUP) {
        lb_record_group_write(writer, group);
    }
}

void lb_record_group_add_found(struct lb_writer *writer, struct lb_group *group,
                               struct bytes member, const struct lookup_found *found,
                               const struct lookup_found *since, uint32_t shown_rank) {
    lb_record_group(writer, group, member, found->key, found->rank, shown_rank, &found->below,
                    since);
}

void lb_record_group_add_stored(struct lb_writer *writer, struct lb_group *group,
                                struct name member, uint64_t key, uint32_t rank,
                                uint32_t shown_rank) {
    struct bytes text = name_text(member, group->rooms[group->count]);
    lb_record_group(writer, group, text, key, rank, shown_rank, NULL, NULL);
}

void lb_record_reply_nils(const struct call *call, uint32_t count) {
    reply_array(call->reply, count);
    for (uint32_t i = 0; i < count && !reply_is_lost(call->reply); i++) {
        reply_null_array(call->reply);
    }
}

/* Are all records there that are wanted by their names? Then the others are nil. */
static bool lb_record_end_names(const struct lb_writer *writer, struct lb_group *group,
                                uint32_t left) {
    const struct session_names *names = writer->call->session->names;
    if (names == NULL || names->left > 0) {
        return false;
    }
    lb_record_group_write(writer, group);
    for (; left > 0 && !reply_is_lost(writer->reply); left--) {
        reply_null_array(writer->reply);
    }
    return true;
}

/* group: NULL without TAGS, DATA, SINCE and RATING. */
__attribute__((always_inline)) static inline void lb_record_write_span(struct lb_writer *writer,
                                                                       struct zset_span span,
                                                                       bool is_best_first,
                                                                       struct lb_group *group) {
    struct board_cursor cursor;
    struct block_run run;
    uint32_t rank = zset_part(span, is_best_first, 0, 1).rank;
    board_cursor_seek(writer->board, rank, &cursor);
    for (uint32_t left = span.count; left > 0 && !reply_is_lost(writer->reply);) {
        if (group != NULL && lb_record_end_names(writer, group, left)) {
            return;
        }
        bool is_there = board_cursor_run(&cursor, is_best_first, left, &run);
        CHECK(is_there);
        left -= run.count;
        uint64_t key;
        for (struct name member; block_run_read(&run, &key, &member);) {
            if (group != NULL) {
                lb_record_group_add_stored(writer, group, member, key, rank,
                                           lb_record_shown_rank(writer, key, rank));
            } else {
                char room[NAME_TEXT_ROOM];
                lb_record_write(writer, name_text(member, room), key, rank);
            }
            rank = is_best_first ? rank + 1 : rank - 1;
        }
    }
}

/* Apart, so that a group takes no room on the stack of those that need none. */
__attribute__((noinline)) static void lb_record_write_span_in_groups(struct lb_writer *writer,
                                                                     struct zset_span span,
                                                                     bool is_best_first) {
    struct lb_group group;
    lb_record_group_begin(&group);
    lb_record_write_span(writer, span, is_best_first, &group);
    lb_record_group_write(writer, &group);
}

void lb_record_reply_span(const struct call *call, const struct board *board, struct zset_span span,
                          bool is_best_first, struct lb_shape shape) {
    struct lb_writer writer;
    reply_array(call->reply, span.count);
    if (span.count == 0) {
        return;
    }
    lb_record_begin(call, board, shape, &writer);
    if (writer.is_grouped) {
        lb_record_write_span_in_groups(&writer, span, is_best_first);
    } else {
        lb_record_write_span(&writer, span, is_best_first, NULL);
    }
}

/* ---- inside a group ---- */

void lb_record_reply_filter_span(const struct call *call, const struct lb_filter *filter,
                                 struct zset_span span, bool is_best_first, struct lb_shape shape) {
    struct lb_writer writer;
    struct lb_group group;
    uint32_t ranks[BOARD_AT_MAX];
    struct board_stored entries[BOARD_AT_MAX];
    reply_array(call->reply, span.count);
    if (span.count == 0) {
        return;
    }
    lb_record_group_begin(&group);
    lb_record_begin(call, filter->board, shape, &writer);
    writer.filter = filter;
    writer.filter_count = shape.with_percent ? lb_filter_count(filter) : 0;
    uint32_t inside = zset_part(span, is_best_first, 0, 1).rank, step = is_best_first ? 1U : 0U - 1;
    uint32_t rank = lb_filter_at(filter, inside), count;
    for (uint32_t left = span.count; left > 0 && !reply_is_lost(writer.reply); left -= count) {
        if (lb_record_end_names(&writer, &group, left)) {
            return;
        }
        /* The entries are read many at a time: they lie apart. */
        count = left < BOARD_AT_MAX ? left : BOARD_AT_MAX;
        uint32_t found =
            tag_group_read(filter->board, filter->group, rank, is_best_first, ranks, count);
        CHECK(found == count);
        board_at_many(filter->board, ranks, count, entries);
        for (uint32_t i = 0; i < count; i++, inside += step) {
            lb_record_group_add_stored(&writer, &group, entries[i].member, entries[i].key, ranks[i],
                                       lb_record_shown_rank(&writer, entries[i].key, inside));
        }
        rank = ranks[count - 1] + step;
    }
    lb_record_group_write(&writer, &group);
}

void lb_record_reply_decimal(const struct call *call, const struct layout_field *field,
                             struct decimal value) {
    char *out =
        call->reply->is_silent ? NULL : buffer_reserve(call->reply->out, REPLY_PUT_NUMBER_ROOM);
    if (out != NULL) {
        char *end = lb_record_put_decimal(out, field, value, call->reply->numbers);
        buffer_commit(call->reply->out, (size_t)(end - out));
    }
}
