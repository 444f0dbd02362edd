/* LB.GET: the records of many members, such as a list of friends, in one round trip.
 *
 *     LB.GET board 3 zoe ann kim SORT PCT
 *       members and options -> groups of members, looked up together -> records
 *
 * Without SORT each group is written as soon as it is looked up; with SORT, or inside a group of members with
 * the same tags, all members are looked up first. */
#include <stdlib.h>

#include "server/commands/lb/lb.h"
#include "server/commands/lb/lb_record.h"
#include "skiplist/lookup.h"

enum { FIRST_MEMBER = 3 };

struct get {
    struct option_values members;
    bool is_sorted; /* SORT */
    bool with_held; /* WITHHELD: with what is held of the player who asks */
    struct lb_shape shape;
    struct option_uses filter; /* WHERE, WHERENOT and WITHIN */
};

/* The result for the member at args[FIRST_MEMBER + index]. */
struct place {
    struct lookup_found found;
    struct lookup_found since; /* with SINCE: on that board */
    uint32_t shown_rank;
    uint32_t index;
    uint32_t filter_count; /* with PCT: members of its group; 0: there is none */
};

/* ---- parsing ---- */

static bool lb_get_check_count(const struct call *call, uint32_t index, void *target) {
    int64_t count;
    uint32_t left = call->request->count - FIRST_MEMBER;
    (void)target;
    return call_parse_integer(call, call_arg(call, index), &count) &&
           ((count >= 1 && count <= left) || call_syntax_error(call));
}

static const struct binding lb_get_bindings[] = {
    {"n", .read = lb_get_check_count},     {BIND("member", struct get, members)},
    {BIND("SORT", struct get, is_sorted)}, {BIND("WITHHELD", struct get, with_held)},
    LB_RECORD_BINDINGS(struct get),        {0},
};

/* ---- look-up ---- */

/* All members, group by group. A single one has been looked up together with other requests'. */
struct reading {
    const struct call *call;
    const struct board *board;
    const struct bytes *names;
    uint32_t count;
    const struct board *since; /* SINCE: the other board, or NULL */
    struct lookup_stream stream, since_stream;
};

static void lb_get_begin_reading(const struct call *call, const struct get *get,
                                 const struct board *board, struct reading *reading) {
    reading->call = call;
    reading->board = board;
    reading->names = &call->request->args[FIRST_MEMBER];
    reading->count = get->members.count;
    reading->since = get->shape.since.board;
    if (reading->count > 1) {
        lookup_stream_begin(&reading->stream, board, reading->names, reading->count);
    }
    if (reading->count > 1 && reading->since != NULL) {
        lookup_stream_begin(&reading->since_stream, reading->since, reading->names, reading->count);
    }
}

/* The next LOOKUP_TURN members on a board, whose stream this is. */
static const struct lookup_found *lb_get_read(const struct reading *reading,
                                              const struct board *board,
                                              struct lookup_stream *stream) {
    if (reading->count > 1) {
        return lookup_stream_next(stream);
    }
    lookup_read_one(board, reading->names[0], lookup_on(reading->call->ahead, board),
                    stream->found);
    return stream->found;
}

/* The places of the next count members, of which the first is that of begin. */
static void lb_get_find_group(const struct get *get, struct reading *reading, uint32_t begin,
                              unsigned count, struct place *places) {
    const struct board *board = reading->board;
    const struct lookup_found *found = NULL;
    const struct lookup_found *since = NULL;
    for (unsigned i = 0; i < count; i++) {
        bool is_turn = i % LOOKUP_TURN == 0;
        found = is_turn ? lb_get_read(reading, board, &reading->stream) : found + 1;
        places[i].found = *found;
        if (reading->since != NULL) {
            since =
                is_turn ? lb_get_read(reading, reading->since, &reading->since_stream) : since + 1;
            places[i].since = *since;
        }
        places[i].shown_rank = places[i].found.rank;
        places[i].index = begin + i;
        places[i].filter_count = 0;
    }
    if (get->shape.is_competition) {
        uint64_t keys[LOOKUP_GROUP] = {0};
        for (unsigned i = 0; i < count; i++) {
            keys[i] = places[i].found.rank == LOOKUP_NOWHERE
                          ? 0
                          : lb_best_key(board_layout(board), places[i].found.key);
        }
        lookup_keys(board, keys, count);
        for (unsigned i = 0; i < count; i++) {
            if (places[i].found.rank != LOOKUP_NOWHERE) {
                places[i].shown_rank = board_count_above(board, keys[i]);
            }
        }
    }
    for (unsigned i = 0; get->shape.is_dense && i < count; i++) {
        const struct board_member member = {.leaf = places[i].found.leaf,
                                            .index = places[i].found.index};
        if (places[i].found.rank != LOOKUP_NOWHERE) {
            places[i].shown_rank = board_dense_rank_of(board, &member);
        }
    }
}

/* ---- writing ---- */

/* Behind the records follows what is held. */
static void lb_get_begin_reply(const struct call *call, const struct get *get) {
    if (get->with_held) {
        reply_array(call->reply, 2);
    }
}

/* Missing members end a group, so that the order stays. */
static void lb_get_write_places(const struct call *call, struct lb_writer *writer,
                                const struct place *places, uint32_t count) {
    struct lb_group group;
    bool has_since = writer->shape.since.board != NULL;
    lb_record_group_begin(&group);
    for (uint32_t i = 0; i < count && !reply_is_lost(call->reply); i++) {
        if (places[i].found.rank == LOOKUP_NOWHERE) {
            lb_record_group_write(writer, &group);
            reply_null_array(call->reply);
        } else {
            lb_record_group_add_found(
                writer, &group, call_arg(call, FIRST_MEMBER + places[i].index), &places[i].found,
                has_since ? &places[i].since : NULL, places[i].shown_rank);
        }
    }
    lb_record_group_write(writer, &group);
}

static void lb_get_reply_as_asked(const struct call *call, const struct get *get,
                                  const struct board *board, struct lb_writer *writer) {
    struct place places[LOOKUP_GROUP];
    struct reading reading;
    lb_get_begin_reply(call, get);
    reply_array(call->reply, get->members.count);
    lb_get_begin_reading(call, get, board, &reading);
    /* Records of nothing but what a look-up finds are written as members are found. */
    bool is_plain = !writer->is_grouped && !writer->shares_ranks;
    for (uint32_t i = 0; is_plain && i < reading.count && !reply_is_lost(call->reply);
         i += LOOKUP_TURN) {
        uint32_t left = reading.count - i;
        lb_record_write_found(writer, &reading.names[i],
                              lb_get_read(&reading, board, &reading.stream),
                              left < LOOKUP_TURN ? left : LOOKUP_TURN);
    }
    for (uint32_t begin = 0;
         !is_plain && begin < get->members.count && !reply_is_lost(call->reply);) {
        unsigned count = lookup_group_size(get->members.count, begin);
        lb_get_find_group(get, &reading, begin, count, places);
        lb_get_write_places(call, writer, places, count);
        begin += count;
    }
}

/* By rank, missing members last. */
static int lb_get_compare_places(const void *left, const void *right) {
    const struct place *a = left;
    const struct place *b = right;
    return a->found.rank < b->found.rank ? -1 : a->found.rank > b->found.rank;
}

/* All members' places, to be freed. NULL: no memory. */
static struct place *lb_get_find_all(const struct call *call, const struct get *get,
                                     const struct board *board) {
    struct place *places = memory_allocate(get->members.count * sizeof(places[0]));
    struct reading reading;
    lb_get_begin_reading(call, get, board, &reading);
    for (uint32_t begin = 0; places != NULL && begin < get->members.count;) {
        unsigned count = lookup_group_size(get->members.count, begin);
        lb_get_find_group(get, &reading, begin, count, &places[begin]);
        begin += count;
    }
    return places;
}

/* ---- inside a group ---- */

/* Change ranks to those inside. false: no memory. */
static bool lb_get_filter_places(const struct get *get, struct lb_filter *filter,
                                 struct place *places) {
    if (!lb_filter_is_within(filter)) {
        tag_filter_expect(filter->group, get->members.count);
    }
    for (uint32_t i = 0; i < get->members.count; i++) {
        struct place *place = &places[i];
        const struct board_member member = {.leaf = place->found.leaf, .index = place->found.index};
        bool is_in;
        if (place->found.rank == LOOKUP_NOWHERE) {
            continue;
        }
        if (!lb_filter_select(filter, &member, &is_in)) {
            return false;
        }
        if (!is_in) {
            place->found.rank = LOOKUP_NOWHERE;
            continue;
        }
        place->shown_rank = place->shown_rank == place->found.rank
                                ? tag_group_rank(filter->board, filter->group, &member)
                                : lb_filter_rank(filter, place->shown_rank);
        place->filter_count = get->shape.with_percent ? lb_filter_count(filter) : 0;
    }
    return true;
}

static void lb_get_reply_filtered(const struct call *call, const struct get *get,
                                  const struct board *board) {
    struct lb_filter filter;
    struct lb_writer writer;
    if (!lb_filter_begin(call, board, &get->filter, &filter)) {
        return;
    }
    struct place *places = lb_get_find_all(call, get, board);
    if (places == NULL || !lb_get_filter_places(get, &filter, places)) {
        call_out_of_memory(call);
    } else {
        if (get->is_sorted) {
            qsort(places, get->members.count, sizeof(places[0]), lb_get_compare_places);
        }
        lb_record_begin(call, board, get->shape, &writer);
        lb_get_begin_reply(call, get);
        reply_array(call->reply, get->members.count);
        /* The percentage is of a member's own group. */
        for (uint32_t begin = 0, count; begin < get->members.count; begin += count) {
            count = 1;
            while (begin + count < get->members.count &&
                   places[begin + count].filter_count == places[begin].filter_count) {
                count++;
            }
            writer.filter_count = places[begin].filter_count;
            lb_get_write_places(call, &writer, &places[begin], count);
        }
    }
    memory_free(places);
    lb_filter_end(&filter);
}

static bool lb_get_read_arguments(const struct call *call, struct get *get) {
    return syntax_read(call, get) && lb_data_check(call, &get->shape.data);
}

static uint64_t lb_get_count_members(const struct cost_view *view) {
    struct get get = {.is_sorted = false};
    if (!lb_get_read_arguments(view->call, &get)) {
        return 0;
    }
    return lb_record_work(view, &get.shape, LB_TAGS_MEMBERS, get.members.count) +
           lb_filter_work(view, &get.filter, LB_FILTER_RANKS, get.members.count) +
           lb_since_work(view, &get.shape.since, &get.filter, LB_SINCE_MEMBERS, get.members.count);
}

static void lb_get_reply(const struct call *call, const struct get *get,
                         const struct board *board) {
    struct lb_writer writer;
    if (get->filter.count > 0) {
        lb_get_reply_filtered(call, get, board);
        return;
    }
    lb_record_begin(call, board, get->shape, &writer);
    if (!get->is_sorted) {
        lb_get_reply_as_asked(call, get, board, &writer);
        return;
    }
    struct place *places = lb_get_find_all(call, get, board);
    if (places == NULL) {
        call_out_of_memory(call);
        return;
    }
    qsort(places, get->members.count, sizeof(places[0]), lb_get_compare_places);
    lb_get_begin_reply(call, get);
    reply_array(call->reply, get->members.count);
    lb_get_write_places(call, &writer, places, get->members.count);
    memory_free(places);
}

static void lb_get_run(struct call *call) {
    struct get get = {.is_sorted = false};
    if (!lb_get_read_arguments(call, &get)) {
        return;
    }
    const struct board *board;
    uint64_t errors = call->reply->error_count;
    if (!call_find_board(call, call_arg(call, 1), &board) ||
        !lb_record_begin_ranks(call, board, &get.filter, &get.shape)) {
        return;
    }
    if (board == NULL) {
        lb_get_begin_reply(call, &get);
        lb_record_reply_nils(call, get.members.count);
    } else {
        lb_get_reply(call, &get, board);
    }
    if (get.with_held && call->reply->error_count == errors) {
        lb_held_put_own(call, call_arg(call, 1), &call->request->args[FIRST_MEMBER],
                        get.members.count);
    }
    lb_record_since_end(&get.shape.since);
}

const struct command command_lb_get = {
    .name = "LB.GET",
    .syntax = "key n:integer member... [COMP] [DENSE] [SORT] [PCT] [WITHKEY] [WITHHELD] "
              "[STRINGS] " LB_FILTER_SYNTAX " " LB_FILTER_WITHIN " " LB_RECORD_SYNTAX,
    .bindings = lb_get_bindings,
    .key_option = LB_SINCE_WORD,
    .reply = "[@Record?]|WITHHELD=@OwnRecords",
    .summary = "Rank, reach time and fields of many members at once, in the order asked for or by "
               "rank; WHERE and WITHIN: inside a group of members with the same tags; SINCE: with "
               "the rank on another board; WITHHELD: with what is held of the player who asks",
    .complexity =
        "O(m log n) for m of the board's n members, also inside a group; SORT adds O(m log m)",
    .flags = COMMAND_READ | COMMAND_OWN_MEMBER,
    .member_arg = FIRST_MEMBER,
    .cost = COST(COMMAND_BY_GROUP, lb_get_count_members, 450, 0, "requested member",
                 "several commands of a thousand each"),
    .run = lb_get_run,
};
