/* The steps of these commands, and the orders that outlive a restart. See player.h. */
#include "server/commands/lb/player.h"

#include <stdio.h>

#include "server/acl/acl_check.h"
#include "server/commands/keyspace.h"
#include "server/dispatch/options.h"
#include "server/rdb/rdb_state.h"
#include "skiplist/keyspace/registry_hash.h"

_Static_assert((int)PLAYER_ORDERS == (int)RDB_STATE_ORDERS, "dump files have them by this number");

enum {
    ARGS_MAX = 64, /* of a request */
};

static struct player_walk *player_walk_of(struct job *job) {
    return (struct player_walk *)job;
}

/* ---- steps ---- */

static void player_end_order(struct server *server, const struct player_walk *walk) {
    struct registry_key *order = registry_find(
        server->registry, PLAYER_ORDERS,
        (struct bytes){.at = walk->order, .size = sizeof walk->order}, server->clock.now_ms);
    if (order != NULL) {
        registry_remove(server->registry, order);
    }
}

static bool player_step_job(struct server *server, struct job *job) {
    struct player_walk *walk = player_walk_of(job);
    if (player_pass_step(server, walk)) {
        return false;
    }
    if (walk->action->finish != NULL) {
        walk->action->finish(server, walk);
    }
    if (walk->action->writes) {
        player_end_order(server, walk);
    }
    player_pass_end(walk);
    return true;
}

static void player_answer(struct server *server, struct job *job, struct reply *reply) {
    struct player_walk *walk = player_walk_of(job);
    (void)server;
    walk->action->answer(walk, reply);
}

static void player_destroy_walk(struct player_walk *walk) {
    player_pass_end(walk);
    transaction_clear(&walk->request);
    buffer_deinit(&walk->found);
    buffer_deinit(&walk->records);
    buffer_deinit(&walk->data);
    memory_free(walk->glob);
    memory_free(walk);
}

static void player_destroy(struct server *server, struct job *job) {
    (void)server;
    player_destroy_walk(player_walk_of(job));
}

static const struct job_kind reading = {
    .step = player_step_job, .answer = player_answer, .destroy = player_destroy};
static const struct job_kind writing = {
    .writes = true, .step = player_step_job, .answer = player_answer, .destroy = player_destroy};

/* ---- beginning ---- */

bool player_read_match(const struct call *call, uint32_t index, void *target) {
    struct player_walk *walk = target;
    (void)index;
    walk->glob = memory_allocate(sizeof *walk->glob);
    if (walk->glob == NULL) {
        return call_out_of_memory(call);
    }
    return call_prepare_glob(call, walk->pattern, walk->glob);
}

static void player_set_database(struct player_walk *walk, uint32_t number) {
    walk->first_database = walk->is_all ? 0 : number;
    walk->end_database = walk->is_all ? keyspace_database_count() : number + 1;
    walk->database = walk->first_database;
    walk->keys_left = UINT32_MAX;
}

/* Parse a copy of the request. call: its request is replaced by the copy. */
static bool player_parse(struct call *call, struct player_walk *walk) {
    if (!transaction_queue(&walk->request, call->request, 0, 0)) {
        return call_out_of_memory(call);
    }
    call->request = &walk->request.first->request;
    uint32_t option = call->command->args_min;
    walk->member = call_arg(call, 1);
    for (uint32_t i = 1; i < option; i++) {
        if (!zset_check_member(call, call_arg(call, i))) {
            return false;
        }
    }
    walk->to = option > 2 ? call_arg(call, 2) : walk->member;
    if (!options_read(call, option, walk)) {
        return false;
    }
    /* The counts in the replies show what was found: those that write read, too. */
    unsigned access = !walk->action->writes ? (unsigned)ACL_READ : (unsigned)ACL_ALL;
    struct bytes all = {.at = "*", .size = 1};
    if (!acl_check_pattern(call, walk->glob != NULL ? walk->pattern : all, false, access)) {
        return false;
    }
    player_set_database(walk, keyspace_number(call->session->database));
    return true;
}

/* NULL: the error was replied. */
static struct player_walk *player_create(const struct call *call) {
    struct call own = *call;
    struct player_walk *walk = memory_allocate_zeroed(sizeof *walk);
    if (walk == NULL) {
        call_out_of_memory(call);
        return NULL;
    }
    walk->action = call->command->variant;
    walk->protocol = call->reply->version;
    walk->numbers = call->reply->numbers;
    buffer_init(&walk->found, 0);
    buffer_init(&walk->data, 0);
    buffer_init(&walk->records,
                call->server->settings.output_limits[SETTING_OUTPUT_NORMAL].hard_bytes);
    bool is_parsed = player_parse(&own, walk);
    if (!is_parsed || !player_pass_begin(call->server, walk)) {
        if (is_parsed) {
            call_out_of_memory(call);
        }
        player_destroy_walk(walk);
        return NULL;
    }
    return walk;
}

static void player_begin_job(struct server *server, struct session *session, bool is_silent,
                             struct player_walk *walk) {
    job_begin(server, session, walk->action->writes ? &writing : &reading, is_silent, &walk->job);
}

/* ---- orders ---- */

/* The fields of an order: "db", and the number of each argument. */
struct order_text {
    char numbers[ARGS_MAX][4];
    char database[12];
};

static struct bytes player_order_field(struct order_text *text, uint32_t index) {
    int size = snprintf(text->numbers[index], sizeof text->numbers[index], "%u", index);
    return (struct bytes){.at = text->numbers[index], .size = (size_t)size};
}

/* Keep the order until it is finished. false: the error was replied. */
static bool player_keep_order(const struct call *call, struct player_walk *walk) {
    struct order_text text;
    struct bytes args[2 * (ARGS_MAX + 1)];
    uint32_t count = call->request->count;
    uint32_t added_count;
    bool is_new;
    CHECK(count <= ARGS_MAX);
    char name[PLAYER_ORDER_NAME_SIZE + 1];
    snprintf(name, sizeof name, "%016llx", (unsigned long long)server_random(call->server));
    memcpy(walk->order, name, sizeof walk->order);
    int size = snprintf(text.database, sizeof text.database, "%u",
                        keyspace_number(call->session->database));
    args[0] = bytes_from_text("db");
    args[1] = (struct bytes){.at = text.database, .size = (size_t)size};
    for (uint32_t i = 0; i < count; i++) {
        args[2 * (i + 1)] = player_order_field(&text, i);
        args[2 * (i + 1) + 1] = i == 0 ? bytes_from_text(call->command->name) : call_arg(call, i);
    }
    struct registry_key *key = registry_find_or_create_hash(
        call->registry, PLAYER_ORDERS,
        (struct bytes){.at = walk->order, .size = sizeof walk->order}, call->now_ms, &is_new);
    if (key == NULL) {
        return call_out_of_memory(call);
    }
    if (key->kind != REGISTRY_HASH ||
        registry_put_fields(call->registry, key, args, count + 1, &added_count) != HASH_OK) {
        if (is_new) {
            registry_take_back(call->registry, key);
        }
        return call_out_of_memory(call);
    }
    registry_tell_members(call->registry, key);
    return true;
}

void player_run(struct call *call) {
    if (!jobs_have_room(call->server, call->reply)) {
        return;
    }
    if (call->request->count > ARGS_MAX) {
        (void)call_refuse_format(call, "ERR too many arguments: at most %d", (int)ARGS_MAX);
        return;
    }
    struct player_walk *walk = player_create(call);
    if (walk == NULL) {
        return;
    }
    const struct player_action *action = walk->action;
    if (action->writes && !player_keep_order(call, walk)) {
        player_destroy_walk(walk);
        return;
    }
    if (action->begin != NULL && !action->begin(call, walk)) {
        if (action->writes) {
            player_end_order(call->server, walk);
        }
        player_destroy_walk(walk);
        return;
    }
    player_begin_job(call->server, call->session, call->reply->is_silent, walk);
}

/* ---- resuming ---- */

/* false: this is not an order as they are written. */
static bool player_read_order(const struct registry_key *key, struct bytes *args, uint32_t *count,
                              int64_t *database) {
    struct order_text text = {.database = ""};
    struct bytes value;
    if (key->kind != REGISTRY_HASH || key->name_size != PLAYER_ORDER_NAME_SIZE ||
        !hash_find(&key->hash, bytes_from_text("db"), &value) ||
        !bytes_parse_i64(value, database) || *database < 0 ||
        *database >= keyspace_database_count()) {
        return false;
    }
    *count = 0;
    while (*count < ARGS_MAX &&
           hash_find(&key->hash, player_order_field(&text, *count), &args[*count])) {
        (*count)++;
    }
    return *count > 0;
}

static bool player_resume_key(struct server *server, const struct registry_key *key) {
    struct bytes args[ARGS_MAX];
    struct request request = {.args = args};
    struct session session = {.protocol = 2, .is_unlimited = true};
    struct buffer nowhere;
    struct reply reply;
    int64_t database = 0;
    if (!player_read_order(key, args, &request.count, &database)) {
        return false;
    }
    uint32_t index = command_find_original(args[0]);
    const struct command *command = index != COMMAND_NONE ? command_by_index(index) : NULL;
    if (command == NULL || command->run != player_run ||
        command_has_wrong_arity(command, &request)) {
        return false;
    }
    buffer_init(&nowhere, 0);
    reply_init(&reply, &nowhere, 2);
    reply.is_silent = true;
    struct call call = call_begin(server, &session, command, &request, &reply);
    struct player_walk *walk = player_create(&call);
    if (walk != NULL) {
        memcpy(walk->order, key->name_at, sizeof walk->order);
        player_set_database(walk, (uint32_t)database);
        player_begin_job(server, NULL, true, walk);
    }
    buffer_deinit(&nowhere);
    return walk != NULL;
}

static void player_resume_order(void *context, const struct registry_key *key) {
    struct bytes name = registry_name(key);
    bool is_resumed = player_resume_key(context, key);
    log_write(is_resumed ? LOG_NOTICE : LOG_WARNING, "%s order=%.*s",
              is_resumed ? "continuing what a restart interrupted" : "an order cannot be continued",
              (int)(name.size < PLAYER_ORDER_NAME_SIZE ? name.size : PLAYER_ORDER_NAME_SIZE),
              name.at);
}

void player_resume(struct server *server) {
    registry_each(server->registry, PLAYER_ORDERS, INT64_MIN, player_resume_order, server);
}

/* ---- boards ---- */

void player_take(struct server *server, struct registry_key *key,
                 const struct board_member *member) {
    registry_take_member(server->registry, key, member);
    notify(server, SETTING_EVENT_ZSET, "zrem", key->database, registry_name(key));
    if (board_count(&key->board) == 0 && !registry_rules(key)->is_created) {
        notify(server, SETTING_EVENT_GENERIC, "del", key->database, registry_name(key));
        registry_remove(server->registry, key);
    } else {
        registry_tell_members(server->registry, key);
    }
}
