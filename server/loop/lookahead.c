/* The stages of a group's look-ups. See lookahead.h.
 *
 * Invariant: each stage reads what an earlier stage has fetched for the whole group, and fetches
 * what the next stage reads. So the group waits for memory once per stage, not once per request. */
#include "server/loop/lookahead.h"

#include "server/dispatch/command.h"
#include "skiplist/keyspace/registry.h"
#include "skiplist/lookup.h"

/* Position of the request's first member; 0: none. */
static uint32_t lookahead_member_position(const struct command *command,
                                          const struct request *request) {
    int64_t position = command->member_arg;
    position += position < 0 ? request->count : 0;
    return position > 0 && position < request->count ? (uint32_t)position : 0;
}

/* The entry's command if it has a member or a hash to prefetch, else NULL. */
static const struct command *lookahead_command_of(const struct queue_entry *entry) {
    if (entry->command >= QUEUE_CLOSE || session_is_void(entry->session)) {
        return NULL;
    }
    const struct command *command = command_by_index(entry->command);
    if (lookahead_member_position(command, &entry->request) > 0) {
        return command;
    }
    bool has_hash = command->reads_hash && (uint32_t)command->first_key < entry->request.count;
    return has_hash ? command : NULL;
}

/* Adjacent requests often name the same key; they share one look-up. */
static void lookahead_look_up_keys(const struct server *server, const struct queue_entry *entries,
                                   unsigned count, struct lookahead_group *group) {
    const struct registry *registry = server->registry;
    const struct registry_prefetch *last = NULL;
    group->key_count = 0;
    for (unsigned i = 0; i < count; i++) {
        const struct queue_entry *entry = &entries[i];
        const struct command *command = lookahead_command_of(entry);
        group->commands[i] = command;
        group->key_numbers[i] = LOOKAHEAD_NO_KEY;
        if (command == NULL) {
            continue;
        }
        struct bytes name = entry->request.args[command->first_key];
        uint32_t database = entry->session->database;
        if (last == NULL || database != last->database || !bytes_equal(name, last->name)) {
            struct registry_prefetch *key = &group->keys[group->key_count++];
            registry_prefetch_slots(registry, database, name, key);
            last = key;
        }
        group->key_numbers[i] = (uint8_t)(group->key_count - 1);
    }
    for (unsigned i = 0; i < group->key_count; i++) {
        registry_prefetch_place(registry, &group->keys[i]);
    }
    for (unsigned i = 0; i < group->key_count; i++) {
        registry_prefetch_key(registry, &group->keys[i]);
    }
}

/* A hash is fetched here, a board further on: a small one that was used most recently is already
 * cached. */
static const struct board *lookahead_board_to_fetch(const struct server *server,
                                                    struct registry_prefetch *state) {
    const struct registry_key *key =
        registry_prefetch_end(server->registry, server->clock.now_ms, state);
    if (key != NULL && key->kind == REGISTRY_HASH) {
        hash_prefetch(registry_hash(key));
        return NULL;
    }
    if (key == NULL || (state->is_recent && board_count(&key->board) < LOOKUP_BOARD_MIN)) {
        return NULL;
    }
    return &key->board;
}

/* The key that a single new score will have. false: none; the handler reports the error. */
static bool lookahead_key_of_score(const struct layout *layout, struct bytes text, int64_t now_us,
                                   uint64_t *key) {
    struct decimal value;
    uint64_t ordinal;
    if (layout_field_parse(&layout->fields[0], text, &value) != DECIMAL_OK ||
        layout_field_ordinal(&layout->fields[0], value, &ordinal) != LAYOUT_OK) {
        return false;
    }
    *key = layout_with_ordinal(layout, layout_zero_key(layout), 0, ordinal);
    return layout_stamp(layout, *key, now_us, key) == LAYOUT_OK;
}

static bool lookahead_find_new_key(const struct command *command, const struct layout *layout,
                                   const struct request *request, int64_t now_us, uint64_t *key) {
    return command->new_key != NULL
               ? command->new_key(command, layout, request, now_us, key)
               : lookahead_key_of_score(layout, request->args[command->score_arg], now_us, key);
}

/* Where the request's only member will be put, if its score tells. */
__attribute__((always_inline)) static inline void
lookahead_begin_place(const struct server *server, const struct command *command,
                      const struct request *request, struct lookup *lookup) {
    uint64_t key;
    if ((command->score_arg > 0 || command->new_key != NULL) &&
        lookahead_find_new_key(command, board_layout(lookup->board), request, server->clock.now_us,
                               &key)) {
        lookup_begin_place(lookup, key);
    }
}

/* at: lookahead_member_position */
static inline bool lookahead_has_one_member(const struct command *command,
                                            const struct request *request, uint32_t at) {
    return command->member_step == 0 || at + 1 == request->count;
}

/* Those of a request that does no staged look-up of its own, at most room. at: of the first; is_only:
 * it is the only one. Inlined: this is on the path of every request. */
__attribute__((always_inline)) static inline unsigned
lookahead_begin_members(const struct command *command, const struct request *request, uint32_t at,
                        bool is_only, const struct board *board, struct lookup *members,
                        unsigned room) {
    bool is_change = (command->flags & COMMAND_WRITE) != 0;
    unsigned count = 0;
    if (!is_only && (request->count - at) / (uint32_t)command->member_step >= LOOKUP_OWN_MIN) {
        return 0;
    }
    while (count < room && at < request->count) {
        lookup_begin(&members[count++], board, request->args[at], is_change);
        if (is_only) {
            break;
        }
        at += (uint32_t)command->member_step;
    }
    return count;
}

static void lookahead_begin_group(const struct queue_entry *entries, unsigned count,
                                  struct lookahead_group *group) {
    group->member_count = 0;
    for (unsigned i = 0; i < count; i++) {
        if (group->boards[i] == NULL) {
            continue;
        }
        const struct command *command = group->commands[i];
        const struct request *request = &entries[i].request;
        struct lookup *members = &group->members[group->member_count];
        uint32_t at = lookahead_member_position(command, request);
        bool is_only = lookahead_has_one_member(command, request, at);
        unsigned begun =
            lookahead_begin_members(command, request, at, is_only, group->boards[i], members,
                                    LOOKAHEAD_MEMBERS_MAX - group->member_count);
        group->ahead[i] = begun > 0 && is_only ? members : NULL;
        group->member_count += begun;
    }
}

void lookahead_entries(const struct server *server, const struct queue_entry *entries,
                       unsigned count, struct lookahead_group *group) {
    lookahead_look_up_keys(server, entries, count, group);
    const struct board *boards[LOOKAHEAD_GROUP];
    for (unsigned i = 0; i < group->key_count; i++) {
        boards[i] = lookahead_board_to_fetch(server, &group->keys[i]);
    }
    for (unsigned i = 0; i < count; i++) {
        bool has_key = group->key_numbers[i] != LOOKAHEAD_NO_KEY;
        group->boards[i] = has_key ? boards[group->key_numbers[i]] : NULL;
        group->ahead[i] = NULL;
    }
    lookahead_begin_group(entries, count, group);
    for (unsigned i = 0; i < count; i++) {
        if (group->ahead[i] != NULL) {
            lookahead_begin_place(server, group->commands[i], &entries[i].request, group->ahead[i]);
        }
    }
    lookup_finish(group->members, group->member_count);
}

unsigned lookahead_begin(const struct command *command, const struct request *request,
                         const struct board *board, struct lookup *members) {
    uint32_t at = lookahead_member_position(command, request);
    bool is_only = lookahead_has_one_member(command, request, at);
    return at > 0 ? lookahead_begin_members(command, request, at, is_only, board, members,
                                            LOOKUP_OWN_MIN)
                  : 0;
}

void lookahead_finish(const struct server *server, const struct command *command,
                      const struct request *request, struct lookup *members, unsigned count) {
    uint32_t at = lookahead_member_position(command, request);
    if (lookahead_has_one_member(command, request, at)) {
        lookahead_begin_place(server, command, request, &members[0]);
    }
    lookup_finish(members, count);
}

void lookahead_recall(const struct server *server, const struct lookahead_group *group,
                      unsigned i) {
    if (group->key_count > 1 && group->key_numbers[i] != LOOKAHEAD_NO_KEY) {
        registry_prefetch_recall(server->registry, &group->keys[group->key_numbers[i]]);
    }
}
