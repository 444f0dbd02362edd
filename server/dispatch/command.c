/* From a request to its handler, and the accounting around it.
 *
 *     name -> slot of the lookup table -> number -> entry (-> subcommand) -> arity,
 *     authentication, memory, disk, loading -> run -> statistics, slow log, monitors
 *
 * Numbers follow the order of the table. A container's subcommands come directly after it, so a
 * subcommand's number is its container's number plus its index plus one. */
#include "server/dispatch/command.h"

#include <stdio.h>

#include "codec/glob.h"
#include "server/clients/monitor.h"
#include "server/clients/server.h"
#include "server/dispatch/cost.h"
#include "server/dispatch/options.h"
#include "server/dispatch/syntax.h"

enum {
    COMMANDS_MAX = 256,    /* subcommands included */
    COMMAND_NAME_MAX = 16, /* a name is compared as two words */
    COMMAND_FULL_NAME_MAX = 40,
    COMMAND_SLOTS = 1024, /* a power of two, at most a quarter full */
};

struct command_number {
    struct command command; /* first: a pointer to it is one to its number */
    char full_name[COMMAND_FULL_NAME_MAX];
};

/* A name's letters in lower case as two overlapping words; equal names have equal words. */
struct command_name_words {
    uint64_t low, high;
};
struct command_slot {
    struct command_name_words words;
    uint16_t number_plus_one; /* 0: free */
    uint8_t size;
    bool has_letters_only; /* equal words then imply equal names */
};

static struct command_number numbers[COMMANDS_MAX];
static uint32_t number_count;
static struct command_slot slots[COMMAND_SLOTS];

/* ---- numbers ---- */

static void add_number(const struct command *command, const struct command *container) {
    CHECK(number_count < COMMANDS_MAX);
    struct command_number *number = &numbers[number_count++];
    number->command = *command;
    number->command.since = command->since != NULL ? command->since : "1.0.0";
    syntax_apply(&number->command, container != NULL);
    options_check(&number->command);
    int size = snprintf(number->full_name, sizeof number->full_name, "%s%s%s",
                        container != NULL ? container->name : "", container != NULL ? "|" : "",
                        command->name);
    CHECK(size > 0 && (size_t)size < sizeof number->full_name);
    for (char *at = number->full_name; *at != '\0'; at++) {
        if (*at >= 'A' && *at <= 'Z') {
            *at = (char)(*at | 0x20);
        }
    }
}

uint32_t command_count(void) {
    return number_count;
}

const struct command *command_by_index(uint32_t index) {
    CHECK(index < number_count);
    return &numbers[index].command;
}

const char *command_full_name(uint32_t index) {
    CHECK(index < number_count);
    return numbers[index].full_name;
}

uint32_t command_index(const struct command *command) {
    size_t index = (size_t)((const struct command_number *)(const void *)command - numbers);
    CHECK(index < number_count);
    return (uint32_t)index;
}

bool command_is_subcommand(uint32_t index) {
    return strchr(command_full_name(index), '|') != NULL;
}

/* ---- lookup ---- */

static inline uint64_t load_64(const char *at) {
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

static inline uint64_t load_32(const char *at) {
    uint32_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

/* size is 1 .. COMMAND_NAME_MAX. Setting bit 5 folds the case of letters, and conflates other bytes
 * only. */
static inline struct command_name_words name_words(const char *at, size_t size) {
    const uint64_t fold = 0x2020202020202020U;
    struct command_name_words words;
    if (size >= 8) {
        words.low = load_64(at);
        words.high = load_64(at + size - 8);
    } else if (size >= 4) {
        words.low = load_32(at);
        words.high = load_32(at + size - 4);
    } else {
        words.low = (unsigned char)at[0];
        words.high = (uint64_t)(unsigned char)at[size / 2] << 8 | (unsigned char)at[size - 1];
    }
    words.low |= fold;
    words.high |= fold;
    return words;
}

static inline uint32_t slot_of(struct command_name_words words, size_t size) {
    uint64_t hash = (words.low ^ (words.high << 1 | words.high >> 63)) + size;
    return (uint32_t)(hash * 0x9e3779b97f4a7c15U >> 54);
}

static void add_slot(uint32_t index, const char *name) {
    size_t size = strlen(name);
    CHECK(size >= 1 && size <= COMMAND_NAME_MAX);
    struct command_name_words words = name_words(name, size);
    uint32_t at = slot_of(words, size);
    while (slots[at].number_plus_one != 0) {
        at = (at + 1) % COMMAND_SLOTS;
    }
    slots[at] = (struct command_slot){
        .words = words,
        .number_plus_one = (uint16_t)(index + 1),
        .size = (uint8_t)size,
        .has_letters_only = true,
    };
    for (size_t i = 0; i < size; i++) {
        if (name[i] < 'A' || name[i] > 'Z') {
            slots[at].has_letters_only = false;
        }
    }
}

void command_init(const struct command *const *table) {
    syntax_reset();
    number_count = 0;
    memset(slots, 0, sizeof slots);
    for (const struct command *const *entry = table; *entry != NULL; entry++) {
        add_slot(number_count, (*entry)->name);
        add_number(*entry, NULL);
        const struct command *const *subcommand = (*entry)->subcommands;
        for (; subcommand != NULL && *subcommand != NULL; subcommand++) {
            add_number(*subcommand, *entry);
        }
    }
    CHECK(number_count <= COMMAND_SLOTS / 4);
}

uint32_t command_find_index(struct bytes name) {
    if (name.size < 1 || name.size > COMMAND_NAME_MAX) {
        return COMMAND_NONE;
    }
    struct command_name_words words = name_words(name.at, name.size);
    uint32_t at = slot_of(words, name.size);
    for (; slots[at].number_plus_one != 0; at = (at + 1) % COMMAND_SLOTS) {
        const struct command_slot *slot = &slots[at];
        if (slot->words.low != words.low || slot->words.high != words.high ||
            slot->size != name.size) {
            continue;
        }
        uint32_t index = slot->number_plus_one - 1U;
        if (slot->has_letters_only || bytes_is(name, numbers[index].command.name)) {
            return index;
        }
    }
    return COMMAND_NONE;
}

const struct command *command_find(struct bytes name) {
    uint32_t index = command_find_index(name);
    return index == COMMAND_NONE ? NULL : &numbers[index].command;
}

/* COMMAND_NONE: not found. */
static uint32_t find_subcommand(uint32_t container, struct bytes name) {
    const struct command *const *subcommands = numbers[container].command.subcommands;
    for (uint32_t i = 0; subcommands != NULL && subcommands[i] != NULL; i++) {
        if (bytes_is(name, subcommands[i]->name)) {
            return container + 1 + i;
        }
    }
    return COMMAND_NONE;
}

const struct command *command_find_subcommand(const struct command *container, struct bytes name) {
    uint32_t index = find_subcommand(command_index(container), name);
    return index == COMMAND_NONE ? NULL : &numbers[index].command;
}

uint32_t command_find_request(const struct request *request) {
    uint32_t index = command_find_index(request->args[0]);
    if (index == COMMAND_NONE || numbers[index].command.subcommands == NULL ||
        request->count == 1) {
        return index;
    }
    return find_subcommand(index, request->args[1]);
}

uint32_t command_find_full_name(struct bytes name) {
    const char *bar = name.size > 0 ? memchr(name.at, '|', name.size) : NULL;
    if (bar == NULL) {
        return command_find_index(name);
    }
    size_t container_size = (size_t)(bar - name.at);
    const struct bytes words[] = {
        {.at = name.at, .size = container_size},
        {.at = bar + 1, .size = name.size - container_size - 1},
    };
    uint32_t index = command_find_request(&(struct request){.count = 2, .args = words});
    return index != COMMAND_NONE && command_is_subcommand(index) ? index : COMMAND_NONE;
}

/* ---- keys ---- */

static int counted_key_positions(const struct command *command, const struct request *request,
                                 uint32_t *positions, int positions_max) {
    int count = 0;
    if (command->first_key > 0) {
        if (positions_max > 0) {
            positions[0] = (uint32_t)command->first_key;
        }
        count = 1;
    }
    uint32_t at = (uint32_t)command->key_count_arg;
    int64_t keys;
    if (at >= request->count || !bytes_parse_i64(request->args[at], &keys) || keys < 1 ||
        keys > (int64_t)(request->count - 1 - at)) {
        return -1;
    }
    for (uint32_t i = 1; i <= (uint32_t)keys; i++, count++) {
        if (count < positions_max) {
            positions[count] = at + i;
        }
    }
    return count;
}

int command_key_positions(const struct command *command, const struct request *request,
                          uint32_t *positions, int positions_max) {
    int64_t args = request->count;
    if ((command->arity > 0 && args != command->arity) || args < -(int64_t)command->arity) {
        return -1;
    }
    if ((command->flags & COMMAND_MOVABLE_KEYS) != 0) {
        return counted_key_positions(command, request, positions, positions_max);
    }
    if (command->first_key == 0) {
        return 0;
    }
    int64_t last = command->last_key >= 0 ? command->last_key : args + command->last_key;
    if (last >= args) {
        return -1;
    }
    int count = 0;
    for (int64_t at = command->first_key; at <= last; at += command->key_step, count++) {
        if (count < positions_max) {
            positions[count] = (uint32_t)at;
        }
    }
    return count;
}

/* ---- refusals ---- */

/* Redis's error texts show at most this many bytes of a client's words. */
enum { WORD_SHOWN_MAX = 128 };

static int shown_size(struct bytes word, size_t size_max) {
    return (int)(word.size < size_max ? word.size : size_max);
}

static void refuse_unknown_subcommand(const struct command *container,
                                      const struct request *request, struct reply *reply) {
    reply_error_format(reply, "ERR unknown subcommand '%.*s'. Try %s HELP.",
                       shown_size(request->args[1], WORD_SHOWN_MAX), request->args[1].at,
                       container->name);
}

static void refuse_unknown(const struct request *request, struct reply *reply) {
    const struct command *container = command_find(request->args[0]);
    if (container != NULL) {
        refuse_unknown_subcommand(container, request, reply);
        return;
    }
    char args[WORD_SHOWN_MAX * 2];
    size_t used = 0;
    for (uint32_t i = 1; i < request->count && used < WORD_SHOWN_MAX; i++) {
        int size =
            snprintf(args + used, sizeof args - used, "'%.*s' ",
                     shown_size(request->args[i], WORD_SHOWN_MAX - used), request->args[i].at);
        CHECK(size > 0);
        used += (size_t)size;
    }
    reply_error_format(reply, "ERR unknown command '%.*s', with args beginning with: %.*s",
                       shown_size(request->args[0], WORD_SHOWN_MAX), request->args[0].at, (int)used,
                       args);
}

/* Also true of a container, which cannot run. */
static inline bool has_wrong_arity(const struct command *command, const struct request *request) {
    return request->count - command->args_min > command->args_more;
}

static bool is_over_memory(const struct server *server) {
    return server->settings.maxmemory > 0 && memory_used() > server->settings.maxmemory;
}

unsigned command_needs(const struct session *session, const struct command *command) {
    unsigned needs = command->flags;
    if ((command->flags & COMMAND_RUNS_QUEUE) != 0) {
        needs |= session->transaction.flags;
    }
    return needs & (COMMAND_WRITE | COMMAND_DENYOOM);
}

/* Between MULTI and EXEC, queueing any command takes memory. */
static bool takes_memory(const struct session *session, const struct command *command) {
    bool is_queueing = session->transaction.is_open && (command->flags & COMMAND_ENDS_MULTI) == 0;
    return is_queueing || (command_needs(session, command) & COMMAND_DENYOOM) != 0;
}

/* Is there a restriction for all clients (loading, or a write refusal)? Rare. */
static inline bool is_restricted(const struct server *server) {
    return server->durability.is_loading || server->durability.write_refusal != NULL;
}

/* Why this command is refused for every client. NULL: it is not. */
static const char *find_restriction(const struct server *server, const struct session *session,
                                    const struct command *command) {
    if (server->durability.write_refusal != NULL &&
        (command_needs(session, command) & COMMAND_WRITE) != 0) {
        return server->durability.write_refusal;
    }
    if (server->durability.is_loading && (command->flags & COMMAND_LOADING) == 0) {
        return "LOADING Redis is loading the dataset in memory";
    }
    return NULL;
}

static enum monitor_secrets secrets_of(const struct command *command) {
    if ((command->flags & COMMAND_SECRET) == 0) {
        return MONITOR_SECRETS_NONE;
    }
    return (command->flags & COMMAND_SECRET_AUTH) != 0 ? MONITOR_SECRETS_BEHIND_AUTH
                                                       : MONITOR_SECRETS_ALL;
}

/* A refused EXEC ends the transaction. Monitors saw the MULTI, so they get the EXEC, too. */
static void refuse_exec(struct server *server, struct session *session, const struct command *exec,
                        const struct request *request, struct reply *reply, const char *text) {
    server_end_transaction(server, session);
    if (strncmp(text, "ERR ", 4) == 0) {
        text += 4;
    }
    reply_error_format(reply, "EXECABORT Transaction discarded because of: %s", text);
    if (server->monitor_count > 0) {
        monitor_feed(server, session, request, secrets_of(exec));
    }
}

/* Why a command is refused. NULL: it is not. arity_text: buffer for an arity error. */
enum { ARITY_TEXT_MAX = COMMAND_FULL_NAME_MAX + 48 };
static const char *find_refusal(const struct server *server, const struct session *session,
                                uint32_t index, const struct request *request, char *arity_text) {
    const struct command *command = &numbers[index].command;
    if (has_wrong_arity(command, request)) {
        snprintf(arity_text, ARITY_TEXT_MAX, "ERR wrong number of arguments for '%s' command",
                 numbers[index].full_name);
        return arity_text;
    }
    if ((command->flags & COMMAND_NO_AUTH) == 0 && !server_is_authenticated(server, session)) {
        return "NOAUTH Authentication required.";
    }
    if (session->transaction.is_open && (command->flags & COMMAND_NO_MULTI) != 0) {
        return "ERR Command not allowed inside a transaction";
    }
    if (takes_memory(session, command) && is_over_memory(server)) {
        return "OOM command not allowed when used memory > 'maxmemory'.";
    }
    return is_restricted(server) ? find_restriction(server, session, command) : NULL;
}

/* Is the request queued for EXEC? */
static bool is_queued(const struct session *session, uint32_t index) {
    return session->transaction.is_open && (numbers[index].command.flags & COMMAND_NOT_QUEUED) == 0;
}

/* Does busy-command-limit apply to this command? */
static inline bool is_limited(const struct server *server, const struct command *command) {
    return server->settings.busy_command_limit_ms > 0 && command->cost != NULL;
}

/* Refuse the request with an error if it may not run. false: it may. */
static bool refuse(struct server *server, struct session *session, uint32_t index,
                   const struct request *request, struct reply *reply) {
    char arity_text[ARITY_TEXT_MAX];
    char cost_text[COST_TEXT_MAX];
    if (index == COMMAND_NONE) {
        refuse_unknown(request, reply);
    } else {
        const struct command *command = &numbers[index].command;
        const char *text = find_refusal(server, session, index, request, arity_text);
        if (text == NULL && is_limited(server, command) && !is_queued(session, index) &&
            cost_is_refused(server, session, command, request, cost_text)) {
            text = cost_text;
        }
        if (text == NULL) {
            return false;
        }
        if ((command->flags & COMMAND_RUNS_QUEUE) != 0) {
            refuse_exec(server, session, command, request, reply, text);
        } else {
            reply_error(reply, text);
        }
    }
    session->transaction.is_refused = session->transaction.is_open;
    return true;
}

/* Queue the request, or only reply QUEUED if the transaction can no longer succeed. false: out of
 * memory; the error was replied. */
static bool queue(struct transaction *transaction, bool is_stale, uint32_t index,
                  const struct request *request, struct reply *reply) {
    if (!transaction->is_refused && !is_stale &&
        !transaction_queue(transaction, request, index, numbers[index].command.flags)) {
        transaction->is_refused = true;
        reply_error(reply, "OOM out of memory");
        return false;
    }
    reply_simple(reply, "QUEUED");
    return true;
}

/* ---- running ---- */

static void note_slow(struct server *server, const struct session *session,
                      const struct command *command, const struct request *request,
                      uint64_t elapsed_ns) {
    const struct settings *settings = &server->settings;
    uint64_t elapsed_us = elapsed_ns / 1000;
    int64_t now_s = server->clock.now_ms / 1000;
    if (settings->slowlog_log_slower_than_us >= 0 && settings->slowlog_max_len > 0 &&
        elapsed_us >= (uint64_t)settings->slowlog_log_slower_than_us &&
        (command->flags & COMMAND_NO_SLOWLOG) == 0) {
        slowlog_add(&server->slowlog, (uint32_t)settings->slowlog_max_len, request,
                    (command->flags & COMMAND_SECRET) != 0, elapsed_us, now_s, session->address,
                    session->name != NULL ? session->name : "");
    }
    uint64_t elapsed_ms = elapsed_us / 1000;
    if (settings->latency_monitor_threshold_ms > 0 &&
        elapsed_ms >= (uint64_t)settings->latency_monitor_threshold_ms) {
        const char *event = (command->flags & COMMAND_FAST) != 0 ? "fast-command" : "command";
        latency_add(&server->latency, event,
                    elapsed_ms < UINT32_MAX ? (uint32_t)elapsed_ms : UINT32_MAX, now_s);
    }
}

static void count_errors(struct server *server, const struct reply *reply, uint64_t errors_before) {
    server->stats.error_replies += reply->error_count - errors_before;
    stats_count_error(&server->stats, reply->error_prefix);
}

/* Run a request that passed all checks, and count it. */
static void run(struct server *server, struct session *session, uint32_t index,
                const struct request *request, struct reply *reply) {
    const struct command *command = &numbers[index].command;
    uint64_t begin_ticks = server->command_begin_ticks; /* EXEC's commands overwrite it */
    uint64_t errors_before = reply->error_count;
    struct call call = {
        .request = request,
        .command = command,
        .reply = reply,
        .registry = server->registry,
        .session = session,
        .server = server,
        .ahead = server->ahead,
        .now_us = server->clock.now_us,
        .now_ms = server->clock.now_ms,
    };
    command->run(&call);
    uint64_t end_ticks = clock_ticks();
    uint64_t elapsed_ns = clock_ticks_to_ns(end_ticks - begin_ticks);
    server->command_begin_ticks = end_ticks;
    server->stats.commands_processed++;
    stats_count_call(&server->stats.commands[index], elapsed_ns);
    /* Both thresholds are well above a microsecond, unless everything is logged. */
    if (elapsed_ns >= 1000 || server->settings.slowlog_log_slower_than_us == 0) {
        note_slow(server, session, command, request, elapsed_ns);
    }
    if (server->monitor_count > 0 && (command->flags & COMMAND_ADMIN) == 0) {
        monitor_feed(server, session, request, secrets_of(command));
    }
    if (reply->error_count != errors_before) {
        server->stats.commands[index].failed_calls++;
        count_errors(server, reply, errors_before);
    }
}

/* The common case: the request may run immediately, and its reply is sent. */
static inline bool is_plain(const struct server *server, const struct session *session,
                            uint32_t index, const struct request *request) {
    if (index == COMMAND_NONE || session->reply_mode != SESSION_REPLY_ON) {
        return false;
    }
    const struct command *command = &numbers[index].command;
    return !has_wrong_arity(command, request) && server_is_authenticated(server, session) &&
           !session->transaction.is_open && !is_restricted(server) &&
           !is_limited(server, command) &&
           ((command->flags & COMMAND_DENYOOM) == 0 || !is_over_memory(server));
}

/* Run it, refuse it, or queue it. */
static void run_if_allowed(struct server *server, struct session *session, uint32_t index,
                           const struct request *request, struct reply *reply) {
    uint64_t errors_before = reply->error_count;
    if (!refuse(server, session, index, request, reply)) {
        session->last_command = &numbers[index].command;
        if (!is_queued(session, index)) {
            run(server, session, index, request, reply);
            return;
        }
        if (queue(&session->transaction, session->watches.is_stale, index, request, reply)) {
            return;
        }
    }
    if (index != COMMAND_NONE) {
        server->stats.commands[index].rejected_calls++;
    }
    count_errors(server, reply, errors_before);
}

/* The slow path, for requests that are not plain. */
static void execute_any(struct server *server, struct session *session, uint32_t index,
                        const struct request *request, struct reply *reply) {
    bool is_skipped = session->reply_mode == SESSION_REPLY_SKIP_NEXT;
    if (is_skipped) {
        session->reply_mode = SESSION_REPLY_SKIP;
    }
    reply->is_silent = session->reply_mode != SESSION_REPLY_ON;
    run_if_allowed(server, session, index, request, reply);
    if (is_skipped && session->reply_mode == SESSION_REPLY_SKIP) {
        session->reply_mode = SESSION_REPLY_ON;
    }
}

void command_execute_index(struct server *server, struct session *session, uint32_t index,
                           const struct request *request, struct reply *reply) {
    session->command_count++;
    session->active_at_ms = server->clock.monotonic_ms;
    if (is_plain(server, session, index, request)) {
        reply->is_silent = false;
        session->last_command = &numbers[index].command;
        run(server, session, index, request, reply);
    } else {
        execute_any(server, session, index, request, reply);
    }
}

void command_execute_queued(struct server *server, struct session *session, uint32_t index,
                            const struct request *request, struct reply *reply) {
    uint64_t errors_before = reply->error_count;
    run(server, session, index, request, reply);
    /* Count the errors for this command, not for EXEC. */
    reply->error_count = errors_before;
}

void command_execute(struct server *server, struct session *session, const struct request *request,
                     struct reply *reply) {
    server->command_begin_ticks = clock_ticks();
    command_execute_index(server, session, command_find_request(request), request, reply);
}

/* ---- helpers for handlers ---- */

struct registry_key *call_find_key(const struct call *call, struct bytes name) {
    struct registry_key *key =
        registry_find(call->registry, call->session->database, name, call->now_ms);
    if ((call->command->flags & COMMAND_READ) != 0) {
        call->server->stats.keyspace_hits += key != NULL;
        call->server->stats.keyspace_misses += key == NULL;
    }
    return key;
}

const struct board *call_find_board(const struct call *call, struct bytes name) {
    const struct registry_key *key = call_find_key(call, name);
    return key != NULL ? &key->board : NULL;
}

bool call_parse_integer(const struct call *call, struct bytes text, int64_t *value) {
    if (bytes_parse_i64(text, value)) {
        return true;
    }
    return call_refuse(call, "ERR value is not an integer or out of range");
}

bool call_parse_cursor(const struct call *call, struct bytes text, uint64_t *cursor) {
    if (text.size > 1 && text.at[0] == '+') {
        text = (struct bytes){.at = text.at + 1, .size = text.size - 1};
    }
    while (text.size > 1 && text.at[0] == '0') {
        text = (struct bytes){.at = text.at + 1, .size = text.size - 1};
    }
    if (bytes_parse_u64(text, cursor)) {
        return true;
    }
    return call_refuse(call, "ERR invalid cursor");
}

static bool reply_unless(const struct call *call, bool is_read) {
    if (!is_read) {
        reply_error_format(call->reply, "ERR pattern is too long: at most %d bytes",
                           GLOB_PATTERN_MAX);
    }
    return is_read;
}

bool call_prepare_glob(const struct call *call, struct bytes pattern, struct glob *glob) {
    return reply_unless(call, glob_prepare(glob, pattern));
}

bool call_prepare_glob_lower(const struct call *call, struct bytes pattern, struct glob *glob) {
    return reply_unless(call, glob_prepare_lower(glob, pattern));
}

bool call_refuse_time(const struct call *call, const struct layout *layout, int64_t time_us) {
    const struct clock *clock = &call->server->clock;
    char error[LAYOUT_ERROR_MAX];
    layout_explain_time(layout, time_us, error);
    if (time_us == call->now_us && clock->state == CLOCK_AHEAD) {
        reply_error_format(call->reply,
                           "ERR %s; the server's clock is %lld s ahead of the machine's, "
                           "restart it with --reset-clock to correct it",
                           error, (long long)(clock->lead_us / 1000000));
    } else {
        reply_error_format(call->reply, "ERR %s", error);
    }
    return false;
}

void call_help(const struct call *call, const char *const *lines) {
    uint64_t count = 0;
    while (lines[count] != NULL) {
        count++;
    }
    char first[128];
    size_t name_size = 0;
    const struct bytes name = call_arg(call, 0);
    char shown[COMMAND_NAME_MAX + 1];
    for (; name_size < name.size && name_size < COMMAND_NAME_MAX; name_size++) {
        char c = name.at[name_size];
        shown[name_size] = (char)(c >= 'a' && c <= 'z' ? c & ~0x20 : c);
    }
    shown[name_size] = '\0';
    snprintf(first, sizeof first,
             "%s <subcommand> [<arg> [value] [opt] ...]. Subcommands are:", shown);
    reply_array(call->reply, count + 3);
    reply_simple(call->reply, first);
    for (uint64_t i = 0; i < count; i++) {
        reply_simple(call->reply, lines[i]);
    }
    reply_simple(call->reply, "HELP");
    reply_simple(call->reply, "    Print this help.");
}
