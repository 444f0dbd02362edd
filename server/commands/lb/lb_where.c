/* LB.WHERE: the boards that a member is on, with its record on each. LB.FORGET: takes a member off
 * all boards, and removes its hashes. */
#include "server/acl/acl_check.h"
#include "server/commands/keyspace.h"
#include "server/commands/lb/board_task.h"
#include "server/commands/lb/lb_data.h"
#include "server/commands/lb/lb_record.h"

/* Room for the header of the array, whose length is known only at the end. */
enum { HEADER_ROOM = 32 };

static bool lb_where_begin(const struct call *call, struct board_task *task) {
    if (buffer_reserve(&task->records, HEADER_ROOM) == NULL) {
        return call_out_of_memory(call);
    }
    buffer_commit(&task->records, HEADER_ROOM);
    return true;
}

static void lb_where_act(struct server *server, struct board_task *task, struct registry_key *key) {
    struct reply reply;
    struct lb_writer writer;
    struct board_member member;
    reply_init(&reply, &task->records, task->protocol);
    reply.numbers = task->numbers;
    if (reply_is_lost(&reply)) {
        return;
    }
    struct call call = {.reply = &reply,
                        .registry = server->registry,
                        .server = server,
                        .now_us = server->clock.now_us};
    board_look_up(&key->board, task->member, NULL, &member);
    lb_record_begin(&call, &key->board, (struct lb_shape){.with_strings = task->with_strings},
                    &writer);
    reply_array(&reply, 2);
    reply_bulk(&reply, registry_name(key));
    lb_record_write(&writer, member.name, member.key, board_rank_of(&key->board, &member));
    task->done_count++;
    if (task->job.session != NULL) {
        task->job.session->job_size = task->records.capacity;
        session_memory_count(&server->sessions.memory, task->job.session);
    }
}

/* The records may be many megabytes: they are handed over rather than copied. */
static void lb_where_answer(struct board_task *task, struct reply *reply) {
    struct buffer *records = &task->records;
    char header[HEADER_ROOM];
    if (records->is_broken) {
        reply_error(reply, "ERR the reply would be longer than client-output-buffer-limit allows: "
                           "use MATCH to ask for fewer boards");
        return;
    }
    if (reply->is_silent) {
        return;
    }
    int size = snprintf(header, sizeof header, "*%llu\r\n", (unsigned long long)task->done_count);
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

static const struct binding lb_where_bindings[] = {
    BOARD_TASK_MATCH_OPTION,
    {BIND("STRINGS", struct board_task, with_strings)},
    {0},
};

const struct command command_lb_where = {
    .name = "LB.WHERE",
    .syntax = "member [MATCH pattern] [STRINGS]",
    .bindings = lb_where_bindings,
    .reply = "[@BoardRecord]",
    .summary = "The boards that a member is on, each with the member's record",
    .complexity = "O(n log m) for n boards of m members, in steps between other commands",
    .flags = COMMAND_READ | COMMAND_NO_MULTI,
    .run = board_task_run,
    .variant = &(const struct board_task_kind){.begin = lb_where_begin,
                                               .act = lb_where_act,
                                               .answer = lb_where_answer},
};

static void lb_where_finish(struct server *server, struct board_task *task) {
    uint32_t size;
    for (size_t at = 0; at < task->data.size; at += sizeof size + size) {
        memcpy(&size, task->data.at + at, sizeof size);
        if (size <= REGISTRY_KEY_MAX) {
            const struct bytes name = {.at = task->data.at + at + sizeof size, .size = size};
            for (uint32_t i = task->first_database; i < task->end_database; i++) {
                keyspace_remove_hash(server, i, name);
            }
        }
    }
}

/* DATA, as often as it is given. */
static bool lb_where_read_data(const struct call *call, uint32_t index, void *target) {
    struct board_task *task = target;
    struct bytes pattern = call_arg(call, index);
    if (lb_data_names_period(pattern)) {
        return call_refuse(call,
                           "ERR DATA of LB.FORGET takes no %@: name the hashes of each period");
    }
    if (!lb_data_check_star(call, pattern) || !acl_check_pattern(call, pattern, true, ACL_WRITE)) {
        return false;
    }
    uint32_t size = (uint32_t)(pattern.size - 1 + task->member.size);
    char *out = buffer_reserve(&task->data, sizeof size + size);
    if (out == NULL) {
        return call_out_of_memory(call);
    }
    memcpy(out, &size, sizeof size);
    struct bytes none = {.at = "", .size = 0};
    lb_data_print_key(pattern, task->member, none, none, out + sizeof size);
    task->data.size += sizeof size + size;
    return true;
}

static const struct binding lb_forget_bindings[] = {
    BOARD_TASK_MATCH_OPTION,
    {"DATA", .read = lb_where_read_data},
    {BIND("ALL", struct board_task, is_all)},
    {0},
};

const struct command command_lb_forget = {
    .name = "LB.FORGET",
    .syntax = "member [MATCH pattern] data=[DATA data:pattern]... [ALL]",
    .bindings = lb_forget_bindings,
    .reply = "i",
    .summary = "Take a member off all boards, and remove its hashes; count the boards",
    .complexity = "O(n log m) for n boards of m members, in steps between other commands",
    .flags = COMMAND_WRITE | COMMAND_NO_MULTI,
    .audit = AUDIT_PLAYERS,
    .run = board_task_run,
    .variant = &(const struct board_task_kind){.writes = true,
                                               .takes_shadows = true,
                                               .takes_notes = true,
                                               .act = board_task_take,
                                               .finish = lb_where_finish,
                                               .answer = board_task_answer_count},
};
