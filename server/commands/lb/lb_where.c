/* LB.WHERE: the boards that a member is on, with its record on each. */
#include "server/clients/server.h"
#include "server/commands/lb/lb_record.h"
#include "server/commands/lb/player.h"

/* Room for the header of the array, whose length is known only at the end. */
enum { HEADER_ROOM = 32 };

static bool lb_where_begin(const struct call *call, struct player_walk *walk) {
    if (buffer_reserve(&walk->records, HEADER_ROOM) == NULL) {
        return call_out_of_memory(call);
    }
    buffer_commit(&walk->records, HEADER_ROOM);
    return true;
}

static void lb_where_act(struct server *server, struct player_walk *walk,
                         struct registry_key *key) {
    struct reply reply;
    struct lb_writer writer;
    struct board_member member;
    reply_init(&reply, &walk->records, walk->protocol);
    reply.numbers = walk->numbers;
    if (reply_is_lost(&reply)) {
        return;
    }
    struct call call = {.reply = &reply, .registry = server->registry, .server = server};
    board_look_up(&key->board, walk->member, NULL, &member);
    lb_begin_records(&call, &key->board, (struct lb_shape){.with_strings = walk->with_strings},
                     &writer);
    reply_array(&reply, 2);
    reply_bulk(&reply, registry_name(key));
    lb_write_record(&writer, member.name, member.key, board_rank_of(&key->board, &member));
    walk->done_count++;
    if (walk->job.session != NULL) {
        walk->job.session->job_size = walk->records.capacity;
        client_memory_count(&server->client_memory, walk->job.session);
    }
}

/* The records may be many megabytes: they are handed over rather than copied. */
static void lb_where_answer(struct player_walk *walk, struct reply *reply) {
    struct buffer *records = &walk->records;
    char header[HEADER_ROOM];
    if (records->is_broken) {
        reply_error(reply, "ERR the reply would be longer than client-output-buffer-limit allows: "
                           "use MATCH to ask for fewer boards");
        return;
    }
    if (reply->is_silent) {
        return;
    }
    int size = snprintf(header, sizeof header, "*%llu\r\n", (unsigned long long)walk->done_count);
    memcpy(records->at + HEADER_ROOM - size, header, (size_t)size);
    buffer_drop_front(records, (size_t)(HEADER_ROOM - size));
    if (reply->out->size > 0 || reply->out->is_broken) {
        buffer_append(reply->out, records->at, records->size);
        return;
    }
    struct buffer empty = *reply->out;
    *reply->out = *records;
    reply->out->size_max = empty.size_max;
    *records = empty;
}

static const struct option_row lb_where_options[] = {
    PLAYER_MATCH_OPTION,
    {"STRINGS", OPTION_FLAG, offsetof(struct player_walk, with_strings), NULL},
    {0},
};

const struct command command_lb_where = {
    .name = "LB.WHERE",
    .syntax = "member [MATCH pattern] [STRINGS]",
    .options = lb_where_options,
    .summary = "The boards that a member is on, each with the member's record",
    .complexity = "O(n log m) for n boards of m members, in steps between other commands",
    .flags = COMMAND_READ | COMMAND_NO_MULTI,
    .run = player_run,
    .variant = &(const struct player_action){.begin = lb_where_begin,
                                             .act = lb_where_act,
                                             .answer = lb_where_answer},
};
