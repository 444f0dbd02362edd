/* The steps of these commands, and the durable jobs, which outlive a restart. See board_task.h. */
#include "server/commands/lb/board_task.h"

#include <inttypes.h>
#include <stdio.h>

#include "server/acl/acl_check.h"
#include "server/commands/keyspace.h"
#include "server/commands/lb/lb_rating.h"
#include "server/commands/window.h"
#include "server/dispatch/syntax.h"
#include "skiplist/keyspace/league.h"
#include "skiplist/keyspace/registry.h"

enum {
    ARGS_MAX = 64, /* of a request */
};

static struct board_task *board_task_of(struct job *job) {
    return (struct board_task *)job;
}

/* ---- steps ---- */

static void board_task_end_durable(struct server *server, const struct board_task *task) {
    struct registry_key *kept =
        registry_find(server->registry, DURABLE_JOBS,
                      (struct bytes){.at = task->durable_name, .size = sizeof task->durable_name},
                      server->clock.now_ms);
    if (kept != NULL) {
        registry_remove(server->registry, kept);
    }
}

static bool board_task_step_job(struct server *server, struct job *job) {
    struct board_task *task = board_task_of(job);
    if (board_task_pass_step(server, task)) {
        return false;
    }
    if (task->action->finish != NULL) {
        task->action->finish(server, task);
    }
    if (task->action->writes) {
        board_task_end_durable(server, task);
    }
    board_task_pass_end(task);
    return true;
}

static void board_task_answer(struct server *server, struct job *job, struct reply *reply) {
    struct board_task *task = board_task_of(job);
    (void)server;
    task->action->answer(task, reply);
}

static void board_task_free(struct board_task *task) {
    board_task_pass_end(task);
    session_transaction_clear(&task->request);
    buffer_deinit(&task->found);
    buffer_deinit(&task->records);
    buffer_deinit(&task->data);
    memory_free(task->glob);
    memory_free(task);
}

static void board_task_destroy(struct server *server, struct job *job) {
    (void)server;
    board_task_free(board_task_of(job));
}

const struct job_kind board_task_reading = {
    .step = board_task_step_job, .answer = board_task_answer, .destroy = board_task_destroy};
const struct job_kind board_task_writing = {.writes = true,
                                            .step = board_task_step_job,
                                            .answer = board_task_answer,
                                            .destroy = board_task_destroy};

/* ---- beginning ---- */

bool board_task_read_match(const struct call *call, uint32_t index, void *target) {
    struct board_task *task = target;
    (void)index;
    task->glob = memory_allocate(sizeof *task->glob);
    if (task->glob == NULL) {
        return call_out_of_memory(call);
    }
    return call_prepare_glob(call, task->pattern, task->glob);
}

/* Parse a copy of the request. call: its request is replaced by the copy. */
static bool board_task_parse(struct call *call, uint32_t database, struct board_task *task) {
    if (!session_transaction_queue(&task->request, call->request, 0, 0)) {
        return call_out_of_memory(call);
    }
    call->request = &task->request.first->request;
    uint32_t option = call->command->args_min;
    task->member = call_arg(call, 1);
    for (uint32_t i = 1; i < option; i++) {
        if (!zset_check_name(call, call_arg(call, i))) {
            return false;
        }
    }
    task->to = option > 2 ? call_arg(call, 2) : task->member;
    if (!syntax_read(call, task)) {
        return false;
    }
    /* The counts in the replies show what was found: those that write read, too. */
    unsigned access = !task->action->writes ? (unsigned)ACL_READ : (unsigned)ACL_ALL;
    struct bytes all = {.at = "*", .size = 1};
    if (!acl_check_pattern(call, task->glob != NULL ? task->pattern : all, false, access)) {
        return false;
    }
    task->first_database = task->is_all ? 0 : database;
    task->end_database = task->is_all ? keyspace_database_count() : database + 1;
    return true;
}

/* NULL: the error was replied. */
static struct board_task *board_task_create(const struct call *call, uint32_t database) {
    struct call own = *call;
    struct board_task *task = memory_allocate_zeroed(sizeof *task);
    if (task == NULL) {
        call_out_of_memory(call);
        return NULL;
    }
    task->action = call->command->variant;
    task->protocol = call->reply->version;
    task->numbers = call->reply->numbers;
    buffer_init(&task->found, 0);
    buffer_init(&task->data, 0);
    buffer_init(&task->records,
                call->server->settings.output_limits[SETTING_OUTPUT_NORMAL].hard_bytes);
    bool is_parsed = board_task_parse(&own, database, task);
    if (!is_parsed || !board_task_pass_begin(call->server, task)) {
        if (is_parsed) {
            call_out_of_memory(call);
        }
        board_task_free(task);
        return NULL;
    }
    return task;
}

static void board_task_begin_job(struct server *server, struct session *session, bool is_silent,
                                 struct board_task *task) {
    job_begin(server, session, task->action->writes ? &board_task_writing : &board_task_reading,
              is_silent, &task->job);
}

/* ---- durable jobs ---- */

/* The fields of a durable job: "db", and the number of each argument. */
struct durable_text {
    char numbers[ARGS_MAX][4];
    char database[12];
    char until[24];
};

static struct bytes board_task_durable_field(struct durable_text *text, uint32_t index) {
    int size = snprintf(text->numbers[index], sizeof text->numbers[index], "%u", index);
    return (struct bytes){.at = text->numbers[index], .size = (size_t)size};
}

/* Keep the job until it is finished. false: the error was replied. */
static bool board_task_keep_durable(const struct call *call, struct board_task *task) {
    struct durable_text text;
    struct bytes args[2 * (ARGS_MAX + 2)];
    uint32_t count = call->request->count;
    CHECK(count <= ARGS_MAX);
    char name[DURABLE_JOB_NAME_SIZE + 1];
    snprintf(name, sizeof name, "%016llx", (unsigned long long)server_random(call->server));
    memcpy(task->durable_name, name, sizeof task->durable_name);
    int size = snprintf(text.database, sizeof text.database, "%u",
                        keyspace_number(call->session->database));
    args[0] = bytes_from_text("db");
    args[1] = (struct bytes){.at = text.database, .size = (size_t)size};
    for (uint32_t i = 0; i < count; i++) {
        args[2 * (i + 1)] = board_task_durable_field(&text, i);
        args[2 * (i + 1) + 1] = i == 0 ? bytes_from_text(call->command->name) : call_arg(call, i);
    }
    if (task->until_ms != 0) { /* EX counts from now on, and not from a restart */
        size = snprintf(text.until, sizeof text.until, "%" PRId64, task->until_ms);
        count++;
        args[2 * count] = bytes_from_text("until");
        args[2 * count + 1] = (struct bytes){.at = text.until, .size = (size_t)size};
    }
    struct registry_key *key = registry_hash_put_own(
        call->registry, DURABLE_JOBS,
        (struct bytes){.at = task->durable_name, .size = sizeof task->durable_name}, args,
        count + 1, call->now_ms);
    if (key == NULL) {
        return call_out_of_memory(call);
    }
    registry_tell_members(call->registry, key);
    return true;
}

void board_task_run(struct call *call) {
    if (!job_list_has_room(call->server, call->session, call->reply)) {
        return;
    }
    if (call->request->count > ARGS_MAX) {
        (void)call_refuse_format(call, "ERR too many arguments: at most %d", (int)ARGS_MAX);
        return;
    }
    struct board_task *task = board_task_create(call, keyspace_number(call->session->database));
    if (task == NULL) {
        return;
    }
    const struct board_task_kind *action = task->action;
    if (action->writes && !board_task_keep_durable(call, task)) {
        board_task_free(task);
        return;
    }
    if (action->begin != NULL && !action->begin(call, task)) {
        if (action->writes) {
            board_task_end_durable(call->server, task);
        }
        board_task_free(task);
        return;
    }
    board_task_begin_job(call->server, call->session, call->reply->is_silent, task);
}

/* ---- resuming ---- */

/* false: this is not a durable job as they are written. */
static bool board_task_read_durable(const struct registry_key *key, struct bytes *args,
                                    uint32_t *count, int64_t *database) {
    struct durable_text text = {.database = ""};
    struct bytes value;
    if (key->kind != REGISTRY_HASH || key->name_size != DURABLE_JOB_NAME_SIZE ||
        !hash_find(registry_hash(key), bytes_from_text("db"), &value) ||
        !bytes_parse_i64(value, database) || *database < 0 ||
        *database >= keyspace_database_count()) {
        return false;
    }
    *count = 0;
    while (*count < ARGS_MAX &&
           hash_find(registry_hash(key), board_task_durable_field(&text, *count), &args[*count])) {
        (*count)++;
    }
    return *count > 0;
}

static bool board_task_resume_key(struct server *server, const struct registry_key *key) {
    struct bytes args[ARGS_MAX];
    struct request request = {.args = args};
    struct session session = {.protocol = 2, .is_unlimited = true};
    struct buffer nowhere;
    struct reply reply;
    int64_t database = 0;
    if (!board_task_read_durable(key, args, &request.count, &database)) {
        return false;
    }
    uint32_t index = command_find_original(args[0]);
    const struct command *command = index != COMMAND_NONE ? command_by_index(index) : NULL;
    if (command == NULL || command->run != board_task_run ||
        command_has_wrong_arity(command, &request)) {
        return false;
    }
    buffer_init(&nowhere, 0);
    reply_init(&reply, &nowhere, 2);
    reply.is_silent = true;
    struct call call = call_begin(server, &session, command, &request, &reply);
    struct board_task *task = board_task_create(&call, (uint32_t)database);
    if (task != NULL) {
        struct bytes until;
        memcpy(task->durable_name, key->name_at, sizeof task->durable_name);
        if (hash_find(registry_hash(key), bytes_from_text("until"), &until)) {
            (void)!bytes_parse_i64(until, &task->until_ms);
        }
        board_task_begin_job(server, NULL, true, task);
    }
    buffer_deinit(&nowhere);
    return task != NULL;
}

static void board_task_resume_durable(void *context, const struct registry_key *key) {
    struct bytes name = registry_name(key);
    bool is_resumed = board_task_resume_key(context, key);
    log_write(is_resumed ? LOG_NOTICE : LOG_WARNING, "%s order=%.*s",
              is_resumed ? "continuing what a restart interrupted" : "an order cannot be continued",
              bytes_shown_size(name, DURABLE_JOB_NAME_SIZE), name.at);
}

void board_task_resume(struct server *server) {
    registry_walk_each(server->registry, DURABLE_JOBS, INT64_MIN, board_task_resume_durable,
                       server);
}

/* ---- boards ---- */

/* In the module: the league that the board, a room, or its archive is of, and its template. false: no memory. */
static bool board_task_open_league(struct server *server, const struct registry_key *key) {
    struct bytes room = registry_name(key);
    struct bytes names[2];
    struct league_entry entry;
    struct session session = {.database = key->database};
    struct buffer nowhere;
    struct reply reply;
    bool has_rooms = (registry_options(key)->guards & BOARD_LEAGUE) != 0;
    (void)!registry_roll_archive_board(registry_name(key), &room);
    if (has_rooms) {
        names[0] = names[1] = registry_name(key);
    } else if (!league_parse_room(room, &names[0], &names[1], &entry)) {
        return true;
    }
    buffer_init(&nowhere, 0);
    reply_init(&reply, &nowhere, 2);
    struct call call = call_begin(server, &session, NULL, NULL, &reply);
    bool are_open = true;
    for (unsigned i = 0; i < 2 && are_open && league_is_name(names[i]); i++) {
        struct league_names rooms;
        league_names_init(&rooms, names[i]);
        are_open = keyspace_open(&call, names[i]) && keyspace_open(&call, league_template(&rooms));
    }
    buffer_deinit(&nowhere);
    return are_open;
}

bool board_task_settle(struct server *server, struct board_task *task,
                       const struct registry_key *key) {
    uint32_t work;
    bool is_settled =
        board_task_open_league(server, key) &&
        league_settle(server->registry, key, UINT32_MAX, &work) != KEY_EXPIRY_OUT_OF_MEMORY;
    task->has_missed |= !is_settled;
    return is_settled;
}

void board_task_take(struct server *server, struct board_task *task, struct registry_key *key) {
    struct board_member member;
    if (!board_task_settle(server, task, key)) {
        return;
    }
    struct registry_key *board = window_find_board(server->registry, key, server->clock.now_ms);
    if (board != NULL) {
        /* Off the board and its shares. */
        struct window_shares shares;
        key = board;
        window_find_shares(server->registry, key, server->clock.now_ms, &shares);
        uint64_t taken_count = window_take(server->registry, key, &shares, task->member);
        bool had_note =
            task->action->takes_notes && registry_note_remove(server->registry, key, task->member);
        task->done_count += taken_count > 0 ? taken_count : had_note;
        window_end_take(server, &shares);
        if (!shares.is_board_changed && !had_note) {
            return;
        }
    } else {
        board_look_up(&key->board, task->member, NULL, &member);
        if (member.is_there) {
            registry_board_take(server->registry, key, &member);
        }
        if (task->action->takes_shadows) {
            (void)ban_shadow_remove(server->registry, key, task->member);
        }
        (void)guarding_held_forget(server->registry, key, task->member);
        if (task->action->takes_notes) {
            (void)lb_kept_remove(server->registry, key, task->member);
        }
        task->done_count++;
    }
    notify(server, SETTING_EVENT_ZSET, "zrem", key->database, registry_name(key));
    if (registry_board_is_over(key)) {
        notify(server, SETTING_EVENT_GENERIC, "del", key->database, registry_name(key));
        registry_remove(server->registry, key);
    } else {
        registry_tell_members(server->registry, key);
    }
}

void board_task_answer_count(struct board_task *task, struct reply *reply) {
    reply_integer(reply, (int64_t)task->done_count);
}
