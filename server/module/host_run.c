/* From the host's arguments to a handler, and back; jobs, and their passes over the host's boards. In the place of
 * server/sessions/notify.c and wait.c, server/acl/acl_check.c and server/commands/lb/board_task_pass.c. See host_run.h. */
#include "server/module/host_run.h"

#include <stdio.h>
#include <string.h>

#include "codec/check.h"
#include "codec/glob.h"
#include "server/acl/acl_check.h"
#include "server/commands/ban.h"
#include "server/commands/lb/board_task.h"
#include "server/dispatch/call.h"
#include "server/dispatch/command.h"
#include "server/dispatch/explain.h"
#include "server/dispatch/syntax.h"
#include "server/loop/lookahead.h"
#include "server/module/host_effects.h"
#include "server/sessions/job.h"
#include "server/sessions/notify.h"
#include "server/sessions/wait.h"
#include "skiplist/keyspace/hash.h"
#include "skiplist/keyspace/registry.h"

enum {
    ARGS_INLINE = 64,
    OUTPUT_KEPT_MAX = 256 * 1024, /* of a longer reply the buffer is freed */
};

static struct {
    struct working_set set;
    struct working_set *running; /* NULL: no command runs */
    struct buffer output;
    struct bytes args[ARGS_INLINE];
} current;

struct working_set *host_run_set(void) {
    return current.running;
}

/* ---- events of keys ---- */

enum { PENDING_MAX = 64 };

/* As handlers report them. The host gets them once the keys are back there: what listens may look at them. */
static struct {
    const char *event; /* static text */
    struct host_string *name;
} pending[PENDING_MAX];
static uint32_t pending_count;

void notify_send(struct server *server, const char *event, uint32_t database, struct bytes name) {
    const struct working_set *set = current.running;
    (void)server;
    (void)database;
    if (set != NULL && pending_count < PENDING_MAX) {
        pending[pending_count].event = event;
        pending[pending_count++].name = host_CreateString(set->ctx, name.at, name.size);
    }
}

/* The host has no channels of boards. */
void notify_board(struct server *server, uint32_t database, struct bytes name,
                  struct bytes message) {
    (void)server;
    (void)database;
    (void)name;
    (void)message;
}

void notify_board_rolled(struct server *server, uint32_t database, struct bytes name,
                         const struct bytes archive[2]) {
    (void)archive;
    notify_send(server, "rolled", database, name);
}

void notify_board_held(struct server *server, uint32_t database, struct bytes name, uint64_t id) {
    (void)id;
    notify_send(server, "lb.held", database, name);
}

void notify_board_settled(struct server *server, uint32_t database, struct bytes name) {
    notify_send(server, "settled", database, name);
}

static void host_run_send_events(struct host_context *ctx) {
    for (uint32_t i = 0; i < pending_count; i++) {
        const char *event = pending[i].event;
        bool is_of_members = event[0] == 'z' || strncmp(event, "lb.", strlen("lb.")) == 0;
        int class = strcmp(event, "new") == 0 ? HOST_NOTIFY_NEW
                    : is_of_members           ? HOST_NOTIFY_ZSET
                                              : HOST_NOTIFY_GENERIC;
        host_NotifyKeyspaceEvent(ctx, class, event, pending[i].name);
        host_FreeString(ctx, pending[i].name);
    }
    pending_count = 0;
}

/* ---- replies ----
 *
 * The host has a function for each type of value, and none for text. It passes on what a command that a module
 * calls has replied, though, and that is text (ReplyWithCallReply). So the module once calls a command of its own
 * for replies of some sizes, and keeps them: the pieces. A reply is written into pieces that are as long as it
 * together, and they are passed on:
 *
 *     *4 $3 ann $3 700 ...                  the handler's reply, of 5013 bytes
 *     | 5 | 4096 | 512 | 256 | 128 | 16 |   pieces
 *
 * That costs one copy, instead of three writes with their checks for each value, and what a client gets is what
 * the server would send it.
 *
 * Invariant: between two replies a piece holds any text of its size. The host never reads it but to pass it on:
 * a reply is parsed only when its type or a value is asked for, or when it is freed, and neither is ever done. */

enum {
    /* "+\r\n"; every reply is longer. There is a small piece for each size from here on ... */
    SMALL_MIN = 3,
    SMALL_COUNT = 16,
    /* ... and large ones of 16, 32 ... bytes, to the size of the buffer of the host's clients. */
    LARGE_COUNT = 11,
    LARGE_MAX = SMALL_COUNT << (LARGE_COUNT - 1),
};

struct piece {
    struct host_call_reply *reply;
    char *text; /* of the reply, which is the host's, and nobody else's */
};
static struct piece small[SMALL_COUNT], large[LARGE_COUNT];

/* What LB.REPLY replies while the module calls it: a simple string, or text in pieces. */
static const char *called_string;
static const struct buffer *called_output;

static void host_run_reply(struct host_context *ctx, const struct buffer *output);

int host_run_reply_run(struct host_context *ctx, struct host_string **argv, int argc) {
    (void)argv;
    (void)argc;
    if (called_string != NULL) {
        return host_ReplyWithSimpleString(ctx, called_string);
    }
    if (called_output == NULL) {
        return host_ReplyWithError(ctx, "ERR LB.REPLY is for the module itself");
    }
    host_run_reply(ctx, called_output);
    return HOST_OK;
}

static bool host_run_make_piece(struct host_context *ctx, size_t size, struct piece *piece) {
    char string[LARGE_MAX];
    size_t text_size = 0;
    memset(string, '-', size - SMALL_MIN);
    string[size - SMALL_MIN] = '\0';
    called_string = string;
    piece->reply = host_Call(ctx, HOST_RUN_REPLY_COMMAND, "");
    called_string = NULL;
    if (piece->reply == NULL) {
        return false;
    }
    /* The host's function says const, for modules that only read. */
    piece->text = (char *)(uintptr_t)host_CallReplyProto(piece->reply, &text_size);
    return piece->text != NULL && text_size == size;
}

bool host_run_init_replies(struct host_context *ctx) {
    enum { NULLS = 4 * LARGE_MAX / 5 /* all large pieces, and one twice */ };
    struct buffer output;
    size_t text_size = 0;
    bool is_made = true;
    for (size_t i = 0; i < SMALL_COUNT && is_made; i++) {
        is_made = host_run_make_piece(ctx, SMALL_MIN + i, &small[i]);
    }
    for (size_t i = 0; i < LARGE_COUNT && is_made; i++) {
        is_made = host_run_make_piece(ctx, (size_t)SMALL_COUNT << i, &large[i]);
    }
    if (!is_made) {
        return false;
    }
    /* Does a reply in pieces arrive as it was written? */
    buffer_init(&output, 0);
    for (int i = 0; i < NULLS; i++) {
        buffer_append(&output, "$-1\r\n", 5);
    }
    called_output = &output;
    struct host_call_reply *reply = host_Call(ctx, HOST_RUN_REPLY_COMMAND, "");
    called_output = NULL;
    const char *text = reply != NULL ? host_CallReplyProto(reply, &text_size) : NULL;
    bool is_same = text != NULL && !output.is_broken && text_size == output.size &&
                   memcmp(text, output.at, text_size) == 0;
    host_free_reply(reply);
    buffer_deinit(&output);
    return is_same;
}

/* Returns where the rest begins. */
static const char *host_run_pass_on(struct host_context *ctx, const struct piece *piece,
                                    const char *at, size_t size) {
    memcpy(piece->text, at, size);
    host_ReplyWithCallReply(ctx, piece->reply);
    return at + size;
}

/* output: one value, in the RESP of the client. A broken buffer is an error reply. */
static void host_run_reply(struct host_context *ctx, const struct buffer *output) {
    if (output->is_broken) {
        host_ReplyWithError(ctx, "OOM out of memory");
    } else if (*output->at == '-') {
        /* The host counts errors, so it must know of them. */
        enum { LINE_MAX = 1024 };
        char line[LINE_MAX];
        size_t size = output->size - 2 < LINE_MAX - 1 ? output->size - 2 : LINE_MAX - 1;
        memcpy(line, output->at, size);
        line[size] = '\0';
        host_ReplyWithError(ctx, line + 1);
    } else {
        const char *at = output->at;
        CHECK(output->size >= SMALL_MIN);
        size_t extra = (output->size - SMALL_MIN) % SMALL_COUNT;
        const char *end = at + output->size;
        at = host_run_pass_on(ctx, &small[extra], at, SMALL_MIN + extra);
        for (size_t i = LARGE_COUNT; i-- > 0 && at < end;) {
            size_t piece_size = (size_t)SMALL_COUNT << i;
            while ((size_t)(end - at) >= piece_size) {
                at = host_run_pass_on(ctx, &large[i], at, piece_size);
            }
        }
    }
}

/* ---- rights ----
 *
 * Rights to what a command comes to by a pattern of its own, in the place of server/acl/acl_check.c: users are the
 * host's. The host says whether a user may use a key, not whether a pattern of the user's takes all that another one
 * can name. So it is asked for keys that begin as the pattern does and go on at random: a user with ~x* may use them
 * all, and one with ~x:1 none. */

enum { TAIL_MAX = 40 };

/* The user on whose behalf the command runs. NULL: another module's command, which may do everything. */
static struct host_user *host_run_find_user(struct host_context *ctx) {
    struct host_string *name = host_GetClientUserNameById(ctx, host_GetClientId(ctx));
    if (name == NULL && (host_GetContextFlags(ctx) & HOST_IN_SCRIPT) != 0) {
        name = host_GetCurrentUserName(ctx); /* who runs the script */
    }
    if (name == NULL) {
        return NULL;
    }
    struct host_user *user = host_GetModuleUserFromUserName(name);
    host_FreeString(ctx, name);
    return user;
}

static bool host_run_may_use(struct host_context *ctx, struct host_user *user,
                             const struct buffer *text, unsigned access) {
    int flags = ((access & ACL_READ) != 0 ? HOST_KEY_ACCESS : 0) |
                ((access & ACL_WRITE) != 0 ? HOST_KEY_UPDATE | HOST_KEY_DELETE : 0);
    struct host_string *key = host_CreateString(ctx, text->at, text->size);
    bool is_allowed = host_ACLCheckKeyPermissions(user, key, flags) == HOST_OK;
    host_FreeString(ctx, key);
    return is_allowed;
}

/* Keys with tails of no, one and many random bytes. One without a name is no board, and to the host it does not
 * match a pattern of * alone. */
static bool host_run_may_use_all(struct host_context *ctx, struct host_user *user,
                                 struct bytes begin, struct bytes end, unsigned access) {
    static const size_t sizes[] = {0, 1, TAIL_MAX};
    struct buffer text;
    bool is_allowed = true;
    buffer_init(&text, 0);
    for (size_t i = begin.size + end.size > 0 ? 0 : 1;
         i < sizeof sizes / sizeof sizes[0] && is_allowed; i++) {
        char tail[TAIL_MAX];
        for (size_t at = 0; at < sizes[i]; at++) {
            tail[at] = (char)server_random(&module.server);
        }
        buffer_clear(&text);
        buffer_append(&text, begin.at, begin.size);
        buffer_append(&text, tail, sizes[i]);
        buffer_append(&text, end.at, end.size);
        is_allowed = !text.is_broken && host_run_may_use(ctx, user, &text, access);
    }
    buffer_deinit(&text);
    return is_allowed;
}

/* ---- slots ---- */

/* In a cluster: may the command not be run, because it would make a board with a PERIOD whose archives would be in
 * other slots? Then the error was replied. The name of an archive begins with the board's: with a tag it is in the
 * same slot. */
static bool host_run_refuses_period(const struct call *call) {
    const struct command *command = call->command;
    if ((command->flags & COMMAND_WRITE) == 0 || command->first_key != 1) {
        return false;
    }
    struct bytes name = call_arg(call, 1);
    bool is_by_name =
        strcmp(command->name, "LB.CREATE") == 0 || strcmp(command->name, "LB.ALTER") == 0;
    bool has_period =
        !is_by_name &&
        setting_board_options_for(&module.server.settings, name, 0)->period.unit != PERIOD_NONE;
    for (uint32_t i = 2; is_by_name && i < call->request->count; i++) {
        has_period |= call_arg_is(call, i, "PERIOD");
    }
    if (!has_period || host_slot_part(name).size < name.size) {
        return false;
    }
    reply_error(call->reply, "ERR in a cluster the name of a board with a PERIOD needs a {tag}, so "
                             "that its archives are in its slot");
    return true;
}

/* ---- both ---- */

static bool host_run_answer(const struct call *call, struct host_user *user, bool is_allowed) {
    if (user != NULL) {
        host_FreeModuleUser(user);
    }
    return is_allowed || call_refuse(call, "NOPERM this user has no permissions to access one of "
                                           "the keys used as arguments");
}

/* Asked of what a board's users may see of it; the host has no such question. */
bool acl_check_also(const struct call *call, uint32_t command, const struct request *request) {
    (void)call;
    (void)command;
    (void)request;
    return true;
}

bool acl_check_pattern(const struct call *call, struct bytes pattern, bool is_key,
                       unsigned access) {
    struct bytes begin = {.at = pattern.at, .size = glob_plain_size(pattern)};
    struct bytes end = {.at = "", .size = 0};
    if (is_key) {
        const char *star = memchr(pattern.at, '*', pattern.size);
        begin.size = (size_t)(star - pattern.at);
        end = (struct bytes){.at = star + 1, .size = pattern.size - begin.size - 1};
    }
    /* Are all keys that the pattern makes in the slot of the command's key? Their tag is before the member, which may be
     * anything. */
    struct bytes part = host_slot_part(begin);
    uint32_t first_key = (uint32_t)call->command->first_key;
    if (is_key && module.is_cluster && first_key > 0 &&
        (part.size == begin.size || !host_is_same_slot(begin, call_arg(call, first_key)))) {
        return call_refuse(call, "ERR in a cluster DATA needs the board's {tag} in front of the *, "
                                 "so that the hashes are in its slot");
    }
    struct host_user *user = host_run_find_user(module.context);
    bool is_allowed =
        user == NULL || host_run_may_use_all(module.context, user, begin, end, access);
    return host_run_answer(call, user, is_allowed);
}

bool acl_check_made_key(const struct call *call, struct bytes key, struct bytes beside,
                        unsigned access) {
    struct buffer text;
    if (module.is_cluster && !host_is_same_slot(key, beside)) {
        return call_refuse(call, "ERR in a cluster HSET needs the board's {tag} in front of the *, "
                                 "so that the hashes are in its slot");
    }
    struct host_user *user = host_run_find_user(module.context);
    buffer_init(&text, 0);
    buffer_append(&text, key.at, key.size);
    bool is_allowed =
        user == NULL || (!text.is_broken && host_run_may_use(module.context, user, &text, access));
    buffer_deinit(&text);
    return host_run_answer(call, user, is_allowed);
}

enum {
    STEPS_NS = 500 * 1000, /* of every millisecond */
    AGAIN_MS = 1,
    RETRY_MS = 50, /* while nothing may change */
};

/* A client that is blocked. */
struct waiter {
    struct session session;
    struct host_blocked *blocked;
    struct buffer output;
    struct waiter *next;
};

static struct {
    struct waiter *first; /* those whose jobs run */
    struct waiter *spare; /* for the next command; NULL: none */
    bool has_timer;
} jobs;

/* ---- jobs: clients that are blocked ---- */

/* Memory for another client that waits. Before the handler. false: there is none. */
static bool host_run_job_reserve(void) {
    if (jobs.spare == NULL) {
        jobs.spare = memory_allocate(sizeof *jobs.spare);
    }
    return jobs.spare != NULL;
}

static void host_run_job_take_waiter(const struct waiter *waiter) {
    struct waiter **link = &jobs.first;
    while (*link != waiter) {
        link = &(*link)->next;
    }
    *link = waiter->next;
}

static int host_run_job_reply_to(struct host_context *ctx, struct host_string **argv, int argc) {
    const struct waiter *waiter = host_GetBlockedClientPrivateData(ctx);
    (void)argv;
    (void)argc;
    host_run_reply(ctx, &waiter->output);
    return HOST_OK;
}

static void host_run_job_free_waiter(struct host_context *ctx, void *context) {
    struct waiter *waiter = context;
    (void)ctx;
    if (waiter != NULL) {
        session_memory_forget(&module.server.sessions.memory, &waiter->session);
        buffer_deinit(&waiter->output);
        memory_free(waiter);
    }
}

/* The client is gone. A durable job goes on without it. */
static void host_run_job_on_disconnect(struct host_context *ctx, struct host_blocked *blocked) {
    struct waiter *waiter = jobs.first;
    (void)ctx;
    while (waiter != NULL && waiter->blocked != blocked) {
        waiter = waiter->next;
    }
    if (waiter != NULL) {
        host_run_job_take_waiter(waiter);
        job_leave(&module.server, &waiter->session);
        host_UnblockClient(blocked, waiter);
    }
}

/* ---- jobs: steps ---- */

/* true: there is more to do now. */
static bool host_run_job_run_steps(struct host_context *ctx) {
    int database = host_GetSelectedDb(ctx);
    module.context = ctx;
    bool has_more = job_list_step(&module.server, STEPS_NS, host_may_change(ctx));
    host_effects_state_replicate(ctx);
    module_value_free_step();
    (void)host_SelectDb(ctx, database);
    return has_more;
}

static void host_run_job_set_timer(int64_t delay_ms);

static void host_run_job_on_timer(struct host_context *ctx, void *context) {
    (void)context;
    jobs.has_timer = false;
    module_update_time();
    bool has_more = host_run_job_run_steps(ctx);
    struct job *job; /* of a client that waits */
    while ((job = job_list_find_done(&module.server)) != NULL && job->session != &module.session) {
        struct waiter *waiter = jobs.first;
        struct reply reply;
        while (waiter != NULL && &waiter->session != job->session) {
            waiter = waiter->next;
        }
        CHECK(waiter != NULL);
        reply_init(&reply, &waiter->output, waiter->session.protocol);
        job_answer(&module.server, job, &reply);
        host_run_job_take_waiter(waiter);
        host_UnblockClient(waiter->blocked, waiter);
    }
    if (module.server.jobs.count > 0) {
        host_run_job_set_timer(has_more ? AGAIN_MS : RETRY_MS);
    }
}

static void host_run_job_set_timer(int64_t delay_ms) {
    if (!jobs.has_timer) {
        (void)host_CreateTimer(module.timer_context, delay_ms, host_run_job_on_timer, NULL);
        jobs.has_timer = true;
    }
}

/* The handler has begun a job of module.session. true: it is done, and to be answered. false: the client
 * is blocked until it is. */
static bool host_run_job_run(struct host_context *ctx) {
    struct job *job = module.session.job;
    (void)host_run_job_run_steps(ctx);
    if (job->state == JOB_DONE) {
        return true;
    }
    /* The job passes from the session of the handler to that of a client that waits. */
    struct waiter *waiter = jobs.spare;
    jobs.spare = NULL;
    *waiter = (struct waiter){.next = jobs.first};
    session_init(&waiter->session, module.session.id, module.server.clock.monotonic_ms);
    waiter->session.protocol = module.session.protocol;
    buffer_init(&waiter->output, 0);
    session_memory_forget(&module.server.sessions.memory, &module.session);
    waiter->session.job = job;
    waiter->session.job_size = module.session.job_size;
    module.session.job = NULL;
    module.session.job_size = 0;
    job->session = &waiter->session;
    waiter->blocked =
        host_BlockClient(ctx, host_run_job_reply_to, NULL, host_run_job_free_waiter, 0);
    host_SetDisconnectCallback(waiter->blocked, host_run_job_on_disconnect);
    jobs.first = waiter;
    host_run_job_set_timer(AGAIN_MS);
    return false;
}

/* ---- jobs: roles ---- */

void host_run_job_resume(void) {
    module.server.jobs.is_resumed = false;
    host_run_job_set_timer(AGAIN_MS);
}

/* The host closes the clients mostly before it says that its role has changed. */
void host_run_job_stop(void) {
    struct waiter *next;
    module.server.jobs.is_resumed = true;
    for (struct waiter *waiter = jobs.first; waiter != NULL; waiter = next) {
        struct reply reply;
        next = waiter->next;
        if (waiter->session.job->kind->writes) {
            reply_init(&reply, &waiter->output, waiter->session.protocol);
            reply_error(&reply, SERVER_UNBLOCKED_ERROR);
            host_run_job_take_waiter(waiter);
            job_leave(&module.server, &waiter->session);
            host_UnblockClient(waiter->blocked, waiter);
        }
    }
    job_list_end_durable(&module.server);
}

void host_run_job_init(void) {
    module.server.jobs.resume = board_task_resume;
    module.server.jobs.is_resumed = true; /* until there is something */
}

/* ---- passes over the boards of the host ----
 *
 * The host's scan has the guarantee of SCAN: a key that is there all the time is visited, perhaps
 * twice. What gets another name meanwhile is noted, from our effects and the host's events, and looked
 * at again; so LB.WHERE remembers which names it has replied. An index of boards would be faster, but the
 * host renames and exchanges keys without telling the module. */

enum { PASS_COUNT = 32 /* buckets of the host's table passed in a step */ };

struct board_task_place {
    struct board_task *task;
    struct board_task_place *next;
    uint32_t database; /* where the scan is */
    struct host_scan_cursor *cursor;
    struct hash seen; /* database and name; if it reads */
};

static struct board_task_place *places;

static bool host_run_job_concerns(struct board_task *task, const struct registry_key *key,
                                  struct bytes name) {
    return (task->glob == NULL || glob_takes(task->glob, name)) && board_task_has(task, key);
}

static void host_run_job_find_board(struct board_task *task, const struct registry_key *key,
                                    struct bytes name, uint32_t database) {
    const uint32_t head[] = {database, (uint32_t)name.size};
    /* When its period is over it is looked at in any case: it rolls over, and the archive may have a name of MATCH. */
    const struct board_options *options = registry_options(key);
    bool is_due =
        options->period.unit != PERIOD_NONE && options->period_end_ms <= module.server.clock.now_ms;
    if (database < task->first_database || database >= task->end_database ||
        (!is_due && !host_run_job_concerns(task, key, name))) {
        return;
    }
    char *at = buffer_reserve(&task->found, sizeof head + name.size);
    if (at == NULL) {
        task->has_missed = true;
        return;
    }
    memcpy(at, head, sizeof head);
    memcpy(at + sizeof head, name.at, name.size);
    buffer_commit(&task->found, sizeof head + name.size);
}

/* A command of ours has given a board this name, or a period has ended. */
static void host_run_job_receive(void *context, const struct effect *effect) {
    if (effect->database < REGISTRY_DATABASES && effect->key->kind == REGISTRY_BOARD &&
        (effect->kind == EFFECT_RENAME || effect->kind == EFFECT_COPY ||
         effect->kind == EFFECT_FILL)) {
        host_run_job_find_board(context, effect->key, registry_name(effect->key), module.database);
    }
}

void host_run_job_note_name(const struct host_value *value, struct bytes name, uint32_t database) {
    for (struct board_task_place *place = places; place != NULL; place = place->next) {
        host_run_job_find_board(place->task, value->key, name, database);
    }
}

struct acting {
    struct server *server;
    struct board_task *task;
    struct bytes name;
};

static void host_run_job_act(void *context) {
    const struct acting *acting = context;
    struct server *server = acting->server;
    struct registry_key *key =
        registry_find(server->registry, 0, acting->name, server->clock.now_ms);
    if (key != NULL && key->kind == REGISTRY_BOARD &&
        host_run_job_concerns(acting->task, key, acting->name)) {
        acting->task->action->act(server, acting->task, key);
    }
}

/* The names may move in memory as soon as something changes. */
static void host_run_job_act_on_found(struct server *server, struct board_task *task) {
    uint32_t head[2]; /* database, size of the name */
    const char *at = task->found.at + task->found_at;
    memcpy(head, at, sizeof head);
    task->found_at += sizeof head + head[1];
    /* Has it been replied? Without memory to remember it, it is replied again. */
    const struct bytes entry[] = {{.at = at, .size = sizeof head + head[1]}, BYTES("")};
    uint32_t added_count = 1;
    bool was_seen =
        !task->action->writes &&
        hash_put(&task->place->seen, module.server.hash_seed, entry, 1, &added_count) == HASH_OK &&
        added_count == 0;
    if (was_seen || host_SelectDb(module.context, (int)head[0]) != HOST_OK) {
        return;
    }
    struct host_string *name = host_CreateString(module.context, at + sizeof head, head[1]);
    struct acting acting = {.server = server, .task = task, .name = host_bytes(name)};
    task->has_missed |=
        !host_run_on(module.context, name, task->action->writes, host_run_job_act, &acting);
    host_FreeString(module.context, name);
}

static void host_run_job_rewind_walk(struct board_task *task) {
    task->place->database = task->first_database;
    task->has_missed = false;
    host_ScanCursorRestart(task->place->cursor);
}

void host_run_job_rewind(void) {
    for (struct board_task_place *place = places; place != NULL; place = place->next) {
        host_run_job_rewind_walk(place->task);
    }
}

static void host_run_job_look_at(struct host_context *ctx, struct host_string *name,
                                 struct host_key *key, void *context) {
    struct board_task *task = context;
    struct host_key *opened = key == NULL ? host_OpenKey(ctx, name, HOST_READ) : NULL;
    if (key != NULL || opened != NULL) {
        const struct host_value *value = module_value_of_board(key != NULL ? key : opened);
        if (value != NULL) {
            host_run_job_find_board(task, value->key, host_bytes(name), task->place->database);
        }
    }
    host_close(opened);
}

bool board_task_pass_step(struct server *server, struct board_task *task) {
    if (task->found_at < task->found.size) {
        host_run_job_act_on_found(server, task);
        return true;
    }
    if (task->has_missed) {
        host_run_job_rewind_walk(task);
    }
    if (task->place->database < task->end_database) {
        /* The next buckets of the host's table. */
        bool has_more = true;
        buffer_clear(&task->found);
        task->found_at = 0;
        CHECK(host_SelectDb(module.context, (int)task->place->database) == HOST_OK);
        for (uint32_t i = 0; i < PASS_COUNT && has_more; i++) {
            has_more =
                host_Scan(module.context, task->place->cursor, host_run_job_look_at, task) != 0;
        }
        if (!has_more) {
            task->place->database++;
            host_ScanCursorRestart(task->place->cursor);
        }
        return true;
    }
    return false;
}

bool board_task_pass_begin(struct server *server, struct board_task *task) {
    struct board_task_place *place = memory_allocate(sizeof *place);
    if (place == NULL) {
        return false;
    }
    *place = (struct board_task_place){.task = task,
                                       .next = places,
                                       .database = task->first_database,
                                       .cursor = host_ScanCursorCreate()};
    places = place;
    task->place = place;
    task->registry = server->registry;
    task->listener = (struct effect_listener){.receive = host_run_job_receive, .context = task};
    effect_listener_add(server->registry, &task->listener);
    return true;
}

void board_task_pass_end(struct board_task *task) {
    if (task->place != NULL) {
        effect_listener_remove(task->registry, &task->listener);
        struct board_task_place *place = task->place;
        struct board_task_place **link = &places;
        uint32_t work;
        while (*link != place) {
            link = &(*link)->next;
        }
        *link = place->next;
        host_ScanCursorDestroy(place->cursor);
        do {
            work = UINT32_MAX;
        } while (!hash_free_step(&place->seen, &work));
        memory_free(place);
        task->place = NULL;
    }
}

/* ---- one command ---- */

static bool host_run_put_keys(struct working_set *set, const struct command *command,
                              const struct request *request, struct host_string **argv) {
    bool is_counted = (command->flags & COMMAND_MOVABLE_KEYS) != 0;
    if (!is_counted && command->last_key == command->first_key) {
        int at = command->first_key;
        uint32_t option = syntax_key_option(command, request);
        return at == 0 ||
               (working_set_put(set, argv[at], request->args[at]) &&
                (option == 0 || working_set_put(set, argv[option], request->args[option])));
    }
    uint32_t *positions = memory_allocate(request->count * sizeof *positions);
    if (positions == NULL) {
        return false;
    }
    int count = syntax_key_positions(command, request, positions);
    bool are_put = true;
    for (int i = 0; i < count && are_put; i++) {
        are_put = working_set_put(set, argv[positions[i]], request->args[positions[i]]);
    }
    memory_free(positions);
    return are_put;
}

/* The members of the request on the board of its first key.
 *
 * A member, its rank and the place of its new score are in different parts of memory. A write fetches them at once,
 * as the server does for a group of requests. A read goes from one to the next, and the host is asked meanwhile. */
struct members {
    unsigned count;
    struct lookup ahead[LOOKUP_OWN_MIN];
};

static bool host_run_is_reading(const struct command *command) {
    return (command->flags & COMMAND_WRITE) == 0;
}

static void host_run_handler(const struct command *command, const struct request *request,
                             struct members *members, struct reply *reply) {
    struct server *server = &module.server;
    if (members->count > 0 && host_run_is_reading(command)) {
        lookup_run(members->ahead, members->count, LOOKUP_ENTRY);
    } else if (members->count > 0) {
        lookahead_finish(server, command, request, members->ahead, members->count);
    }
    struct call call = {
        .request = request,
        .command = command,
        .reply = reply,
        .registry = server->registry,
        .session = &module.session,
        .server = server,
        .ahead = members->count > 0 ? &members->ahead[0] : NULL,
        .now_us = server->clock.now_us,
        .now_ms = server->clock.now_ms,
    };
    if (!module.is_cluster || !host_run_refuses_period(&call)) {
        command->run(&call);
    }
}

bool host_run_on(struct host_context *ctx, struct host_string *name, bool writes,
                 void (*run)(void *context), void *context) {
    struct working_set *set = &current.set;
    CHECK(current.running == NULL);
    working_set_begin(set, ctx, writes, false);
    current.running = set;
    host_effects_begin(set);
    bool are_put = working_set_put(set, name, host_bytes(name));
    if (are_put) {
        run(context);
    }
    host_effects_end();
    working_set_end(set);
    current.running = NULL;
    host_run_send_events(ctx);
    return are_put;
}

void host_run_look_up(void *context) {
    const struct host_due *due = context;
    (void)registry_find(module.server.registry, 0, due->name, module.server.clock.now_ms);
}

void host_run_drop_stale(void *context) {
    enum { STALE_WORK_MAX = 1024 };
    struct host_due *due = context;
    struct registry *registry = module.server.registry;
    int64_t now_ms = module.server.clock.now_ms;
    const struct host_value *value = working_set_value(current.running, due->name);
    uint32_t work = STALE_WORK_MAX;
    bool is_done = false;
    if (value == NULL || value->stale_number != due->number) {
        return;
    }
    struct registry_key *key = registry_find(registry, 0, due->name, now_ms);
    if (key == NULL || key->kind != REGISTRY_BOARD || registry_options(key)->stale_ms == 0) {
        return;
    }
    due->left = HOST_STALE_DONE;
    if (!registry_board_may_drop_stale(key, now_ms) ||
        registry_board_drop_stale(registry, key, now_ms, &due->from_key, &work, &is_done) == 0) {
        due->left = is_done || work > 0 ? HOST_STALE_DONE : HOST_STALE_MORE;
        return;
    }
    due->left = is_done ? HOST_STALE_DONE : HOST_STALE_MORE;
    notify_send(&module.server, "lb.stale", 0, due->name);
    if (registry_board_is_over(key)) {
        notify_send(&module.server, "del", 0, due->name);
        registry_remove(registry, key);
        due->left = HOST_STALE_GONE;
    }
}

static void host_run_with_keys(struct host_context *ctx, const struct command *command,
                               const struct request *request, struct host_string **argv) {
    struct working_set *set = &current.set;
    struct members members;
    struct reply reply;
    bool are_put = host_run_put_keys(set, command, request, argv);
    const struct board *board = working_set_first_board(set);
    members.count = board != NULL ? lookahead_begin(command, request, board, members.ahead) : 0;
    unsigned read_count = host_run_is_reading(command) ? members.count : 0;
    working_set_close_lent(set);
    lookup_run(members.ahead, read_count, LOOKUP_NODE);
    /* What is asked of the host of each client. */
    int flags = host_GetContextFlags(ctx);
    module.context = ctx;
    module.session.protocol = (flags & HOST_IS_RESP3) != 0 ? 3 : 2;
    module.session.transaction.is_running =
        (flags & (HOST_IN_MULTI | HOST_IN_SCRIPT | HOST_DENIES_BLOCKING)) != 0;
    module.wait.is_asked = false;
    lookup_run(members.ahead, read_count, LOOKUP_LEAF);
    module_update_time();
    buffer_clear(&current.output);
    reply_init(&reply, &current.output, module.session.protocol);
    const char *refusal = are_put ? NULL : "OOM out of memory";
    if (are_put && (command->flags & COMMAND_NO_MULTI) != 0) {
        refusal = module.session.transaction.is_running
                      ? "ERR Command not allowed inside a transaction"
                  : host_run_job_reserve() ? NULL
                                           : "OOM out of memory";
    }
    if (refusal == NULL) {
        host_run_handler(command, request, &members, &reply);
    }
    if (set->refusal != NULL) {
        refusal = set->refusal;
        module.wait.is_asked = false;
        buffer_clear(&current.output);
    }
    if (refusal != NULL) {
        reply_error(&reply, refusal);
    }
}

/* HOST_ERROR: it has to wait, and nothing was replied. */
static int host_run_command(struct host_context *ctx, const struct command *command,
                            const struct request *request, struct host_string **argv) {
    struct working_set *set = &current.set;
    bool writes = !host_run_is_reading(command);
    if (writes && ban_exists(module.server.registry)) {
        module_update_time();
        host_effects_expire_bans();
    }
    working_set_begin(set, ctx, writes, false);
    current.running = set;
    host_effects_begin(set);
    host_run_with_keys(ctx, command, request, argv);
    host_effects_end();
    host_effects_state_replicate(ctx);
    working_set_end(set);
    current.running = NULL;
    host_run_send_events(ctx);
    host_keyspace_clear();
    if (module.session.job != NULL) {
        /* A job has begun: its first steps, and if that was not all, its client waits. */
        struct reply reply;
        if (!host_run_job_run(ctx)) {
            return HOST_OK;
        }
        reply_init(&reply, &current.output, module.session.protocol);
        job_answer(&module.server, module.session.job, &reply);
        host_run_reply(ctx, &current.output);
        return HOST_OK;
    }
    module_value_free_step();
    if (module.wait.is_asked) {
        module.wait.first_key = (uint32_t)(module.wait.names - request->args);
        return HOST_ERROR;
    }
    host_run_reply(ctx, &current.output);
    if (current.output.capacity > OUTPUT_KEPT_MAX) {
        buffer_deinit(&current.output);
    }
    return HOST_OK;
}

static int host_run_run(struct host_context *ctx, struct host_string **argv, int argc,
                        uint32_t index) {
    const struct command *command = command_by_index(index);
    if (command->subcommands != NULL) { /* the host has found it */
        const struct bytes words[] = {bytes_from_text(command->name), host_bytes(argv[1])};
        index = command_find_request(&(struct request){.count = 2, .args = words});
        CHECK(index != COMMAND_NONE);
        command = command_by_index(index);
    }
    struct bytes *args = current.args;
    int status = HOST_OK;
    if (argc > ARGS_INLINE) {
        args = memory_allocate((size_t)argc * sizeof *args);
        if (args == NULL) {
            return host_ReplyWithError(ctx, "OOM out of memory");
        }
    }
    for (int i = 0; i < argc; i++) {
        args[i] = host_bytes(argv[i]);
    }
    const struct request request = {.count = (uint32_t)argc, .args = args};
    bool is_wrong = command_has_wrong_arity(command, &request);
    /* Has it keys whose positions the host cannot tell, and asks for (COMMAND GETKEYS, cluster, ACL)? */
    bool is_asked = ((command->flags & COMMAND_MOVABLE_KEYS) != 0 || command->key_option != NULL) &&
                    host_IsKeysPositionRequest(ctx);
    if (is_asked && !is_wrong) {
        struct request_keys keys = syntax_key_request_begin(command_index(command), &request);
        for (uint32_t at; (at = syntax_key_request_next(&keys)) > 0;) {
            host_KeyAtPosWithFlags(ctx, (int)at,
                                   (int)(keys.spec->flags & ~(unsigned)KEY_INCOMPLETE));
        }
    } else if (is_wrong && !is_asked) {
        /* The host has refused a wrong number of arguments, but not in an AOF. */
        char text[EXPLAIN_MAX];
        call_print_arity(command, &request, text);
        status = host_ReplyWithError(ctx, text);
    } else if (!is_asked) {
        status = host_run_command(ctx, command, &request, argv);
    }
    if (args != current.args) {
        memory_free(args);
    }
    return status;
}

/* ---- waiting for keys: BZPOPMIN, BZPOPMAX and BZMPOP by the host's means ---- */

/* For a client that has waited for a key: the same as host_run, but HOST_ERROR if it has to wait on. */
static int host_run_again(struct host_context *ctx, struct host_string **argv, int argc) {
    enum { PREFIX_SIZE = 3 }; /* "LB." */
    struct bytes name = host_bytes(argv[0]);
    CHECK(name.size > PREFIX_SIZE);
    const struct command *command =
        command_find((struct bytes){.at = name.at + PREFIX_SIZE, .size = name.size - PREFIX_SIZE});
    CHECK(command != NULL);
    int status = host_run_run(ctx, argv, argc, command_index(command));
    if (status != HOST_OK) {
        /* Redis 7.0 propagates what a waiting client's attempt has done only if the client got something, and ends
         * itself when it finds the rest later (handleClientsBlockedOnKeys). The attempt may end a period, and meet
         * an expired key. Any call that may propagate ("!") does it; its reply says nothing. */
        host_free_reply(host_Call(ctx, "PING", "!"));
    }
    return status;
}

/* The handler's names are arguments of its request. */
bool wait_begin(struct waits *waits, struct session *session, uint32_t database,
                const struct bytes *names, uint32_t name_count, int64_t due_ms) {
    (void)waits;
    (void)session;
    (void)database;
    CHECK(current.running != NULL);
    module.wait.is_asked = true;
    module.wait.names = names;
    module.wait.key_count = name_count;
    module.wait.due_ms = due_ms;
    return true;
}

static int host_run_give_up(struct host_context *ctx, struct host_string **argv, int argc) {
    (void)argv;
    (void)argc;
    return host_ReplyWithNullArray(ctx);
}

static void host_run_end_wait(struct host_context *ctx, void *context) {
    (void)ctx;
    (void)context;
    module.waiting_count--;
}

int host_run(struct host_context *ctx, struct host_string **argv, int argc, uint32_t index) {
    static char unused;
    int64_t timeout_ms = 0; /* for ever */
    if (host_run_run(ctx, argv, argc, index) == HOST_OK) {
        return HOST_OK;
    }
    if (module.wait.due_ms != REGISTRY_NO_EXPIRY) {
        timeout_ms = module.wait.due_ms - module.server.clock.monotonic_ms;
        timeout_ms = timeout_ms > 0 ? timeout_ms : 1;
    }
    module.waiting_count++;
    if (host_BlockClientOnKeys(ctx, host_run_again, host_run_give_up, host_run_end_wait, timeout_ms,
                               argv + module.wait.first_key, (int)module.wait.key_count,
                               &unused) == NULL) {
        module.waiting_count--;
    }
    return HOST_OK;
}

/* ---- existing clients ----
 *
 * ZADD becomes LB.ZADD for keys whose names match a `board` line of the module's configuration. Only the name of the
 * command changes, never the number of arguments. The filter runs before every command of the host, so a name that is
 * none of ours must cost next to nothing: the first letter decides for nearly all. */

enum { COMMANDS_MAX = 96 };                         /* with their subcommands */
static struct host_string *new_names[COMMANDS_MAX]; /* by command_index; NULL: stays */
static struct host_string *type_name;               /* LB.TYPE */
/* What its master changes in boards comes to a replica as LB.APPLY. Another write on a key that matches
 * is one on a sorted set of the host, and there are no other writes: it stays as it is. */
static bool is_replica;

static struct bytes host_run_argument(struct host_filter_input *input, int index) {
    struct host_string *text = host_CommandFilterArgGet(input, index);
    return text != NULL ? host_bytes(text) : (struct bytes){.at = "", .size = 0};
}

static bool host_run_is_board(struct bytes key) {
    const struct settings *settings = &module.server.settings;
    for (uint32_t i = 0; i < settings->rule_count; i++) {
        if (glob_matches(bytes_from_text(settings->rules[i].pattern), key)) {
            return true;
        }
    }
    return false;
}

static struct host_string *host_run_find_new_name(struct host_filter_input *input,
                                                  struct bytes name) {
    if (type_name != NULL && bytes_is(name, "TYPE")) {
        return host_run_is_board(host_run_argument(input, 1)) ? type_name : NULL;
    }
    const struct command *command = command_find(name);
    const struct request sizes = {.count = (uint32_t)host_CommandFilterArgsCount(input)};
    /* A wrong number of arguments the host's own command refuses, by the name that was sent. */
    if (command == NULL || new_names[command_index(command)] == NULL ||
        command_has_wrong_arity(command, &sizes) ||
        (is_replica && (command->flags & COMMAND_WRITE) != 0)) {
        return NULL;
    }
    bool is_counted = command->first_key == 0;
    int key_index = is_counted ? command->key_count_arg + 1 : command->first_key;
    return host_run_is_board(host_run_argument(input, key_index))
               ? new_names[command_index(command)]
               : NULL;
}

static void host_run_filter(struct host_filter_input *input) {
    if (host_CommandFilterArgsCount(input) < 2) {
        return;
    }
    /* Can a name that begins so be ours? ZADD, BZPOPMIN, TYPE. */
    struct bytes name = host_run_argument(input, 0);
    char first = name.size > 0 ? (char)(name.at[0] & ~0x20) : '\0';
    char second = name.size > 1 ? (char)(name.at[1] & ~0x20) : '\0';
    bool is_likely =
        first == 'Z' || (first == 'B' && second == 'Z') || (first == 'T' && second == 'Y');
    struct host_string *new_name = is_likely ? host_run_find_new_name(input, name) : NULL;
    if (new_name != NULL) {
        host_RetainString(NULL, new_name); /* the host releases one */
        host_CommandFilterArgReplace(input, 0, new_name);
    }
}

void host_run_note_role(bool is_now_replica) {
    is_replica = is_now_replica;
}

bool host_run_register_filter(struct host_context *ctx) {
    CHECK(command_count() <= COMMANDS_MAX);
    if (module.server.settings.rule_count == 0) {
        return true;
    }
    is_replica = (host_GetContextFlags(ctx) & HOST_IS_MASTER) == 0;
    for (uint32_t i = 0; i < command_count(); i++) {
        char text[COMMAND_FULL_NAME_MAX + 8];
        const struct command *command = command_by_index(i);
        if (strcmp(command->group, "sorted-set") == 0) {
            int size = snprintf(text, sizeof text, "LB.%s", command->name);
            new_names[i] = host_CreateString(NULL, text, (size_t)size);
        }
    }
    type_name = host_CreateString(NULL, "LB.TYPE", 7);
    return host_RegisterCommandFilter(ctx, host_run_filter, 0) != NULL;
}
