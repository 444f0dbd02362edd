/* Ranks on another board. See lb_since.h. */
#include "server/commands/lb/lb_since.h"

#include "protocol/put.h"
#include "server/commands/keyspace.h"
#include "server/commands/lb/lb.h"
#include "server/commands/lb/lb_record.h"
#include "server/commands/lb/lb_tag.h"
#include "server/commands/writing.h"

/* ---- the board ---- */

/* The archive that has this name, or it with a number. NULL: there is none. */
static const struct board *lb_since_find_archive(const struct call *call,
                                                 struct lb_archives *archives, struct bytes *name) {
    const struct board *board;
    do {
        board = keyspace_find_board(call, *name);
        if (board == NULL ||
            lb_is_archive(archives->options, board_options_of(board_layout(board)))) {
            return board;
        }
    } while (lb_archives_next_number(archives, name));
    return NULL;
}

/* The newest archive of the board at call_arg(call, 1). false: the error was replied. */
static bool lb_since_find_last(const struct call *call, const struct board *board,
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
        since->board = lb_since_find_archive(call, &archives, &archive);
    }
    return true;
}

bool lb_since_begin(const struct call *call, const struct board *board,
                    const struct option_uses *uses, struct lb_since *since) {
    if (!lb_since_is_asked(since)) {
        return true;
    }
    if (bytes_is(since->name, "LAST") ? !lb_since_find_last(call, board, since)
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

void lb_since_end(struct lb_since *since) {
    if (since->filter != NULL) {
        lb_filter_end(since->filter);
        memory_free(since->filter);
    }
}

/* ---- ranks ---- */

/* Is the member, which has been looked up there, in the group? *rank becomes one inside it. */
static bool lb_since_filter(const struct lb_since *since, const struct board *board,
                            uint32_t rank_now, const struct board_member *member, uint32_t *rank) {
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
                value = lb_tags_value(&now, (unsigned)tag);
            }
            values.mask |= value.size > 0 ? 1U << i : 0;
            values.at[i] = value;
        }

        has_memory = lb_filter_select_values(filter, &values);
    }
    if (has_memory) {
        *rank = tag_group_has(since->board, filter->group, member) ? lb_filter_rank(filter, *rank)
                                                                   : LB_SINCE_NOWHERE;
    }
    return has_memory;
}

bool lb_since_find(const struct lb_since *since, const struct board *board,
                   const struct bytes *members, const uint32_t *ranks, unsigned count,
                   const struct lb_shape *shape, uint32_t *since_ranks) {
    struct lookup_found found[LOOKUP_GROUP];
    const struct board *other = since->board;
    bool has_memory = true;
    CHECK(count <= LOOKUP_GROUP);
    if (other != NULL) {
        lookup_read(other, members, count, found);
    }
    for (unsigned i = 0; i < count && has_memory; i++) {
        if (other == NULL || found[i].rank == LOOKUP_NOWHERE) {
            since_ranks[i] = LB_SINCE_NOWHERE;
            continue;
        }
        const struct board_member member = {.leaf = found[i].leaf, .index = found[i].index};
        since_ranks[i] =
            shape->is_competition
                ? board_count_above(other, lb_best_key(board_layout(other), found[i].key))
            : shape->is_dense ? board_dense_rank_of(other, &member)
                              : found[i].rank;
        if (since->filter != NULL) {
            has_memory = lb_since_filter(since, board, ranks[i], &member, &since_ranks[i]);
        }
    }
    return has_memory;
}

char *lb_since_put(char *out, uint32_t since_rank, uint8_t version) {
    if (since_rank != LB_SINCE_NOWHERE) {
        return put_header(out, ':', since_rank);
    }
    return put_nothing(out, '$', version);
}

void lb_since_reply(struct reply *reply, uint32_t since_rank) {
    if (since_rank == LB_SINCE_NOWHERE) {
        reply_null(reply);
    } else {
        reply_integer(reply, since_rank);
    }
}
