/* The stages of a group's prefetching. See prefetch.h.
 *
 * Invariant: each stage reads what an earlier stage has fetched for the whole group, and fetches
 * what the next stage reads. So the group waits for memory once per stage, not once per request. */
#include "server/loop/prefetch.h"

#include "server/dispatch/command.h"
#include "server/loop/connection.h"
#include "skiplist/lookup.h"

/* Position of the request's first member; 0: none. */
static uint32_t member_position(const struct command *command, const struct request *request) {
    int64_t position = command->member_arg;
    position += position < 0 ? request->count : 0;
    return position > 0 && position < request->count ? (uint32_t)position : 0;
}

/* The entry's command if it has a member to prefetch, else NULL. */
static const struct command *command_of(const struct queue_entry *entry) {
    if (entry->command >= QUEUE_CLOSE || connection_is_void(entry)) {
        return NULL;
    }
    const struct command *command = command_by_index(entry->command);
    return member_position(command, &entry->request) > 0 ? command : NULL;
}

/* Adjacent requests often name the same key; they share one look-up. */
static void prefetch_keys(const struct server *server, const struct queue_entry *entries,
                          unsigned count, struct prefetch_group *group) {
    const struct registry *registry = server->registry;
    const struct registry_prefetch *last = NULL;
    group->key_count = 0;
    for (unsigned i = 0; i < count; i++) {
        const struct queue_entry *entry = &entries[i];
        const struct command *command = command_of(entry);
        group->commands[i] = command;
        group->key_numbers[i] = PREFETCH_NO_KEY;
        if (command == NULL) {
            continue;
        }
        struct bytes name = entry->request.args[command->first_key];
        uint32_t database = entry->connection->session.database;
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

/* A small board that was used most recently is already cached. */
static const struct board *board_to_fetch(const struct server *server,
                                          struct registry_prefetch *state) {
    const struct registry_key *key =
        registry_prefetch_end(server->registry, server->clock.now_ms, state);
    if (key == NULL || (state->is_recent && board_count(&key->board) < LOOKUP_BOARD_MIN)) {
        return NULL;
    }
    return &key->board;
}

static void find_boards(const struct server *server, unsigned count, struct prefetch_group *group) {
    const struct board *boards[TICK_GROUP];
    for (unsigned i = 0; i < group->key_count; i++) {
        boards[i] = board_to_fetch(server, &group->keys[i]);
    }
    for (unsigned i = 0; i < count; i++) {
        bool has_key = group->key_numbers[i] != PREFETCH_NO_KEY;
        group->boards[i] = has_key ? boards[group->key_numbers[i]] : NULL;
        group->ahead[i] = NULL;
    }
}

static void prefetch_member(const struct board *board, struct bytes member, bool is_change,
                            struct prefetch_group *group) {
    group->are_changes[group->member_count] = is_change;
    board_prefetch_slots(board, member, &group->members[group->member_count++]);
}

static void prefetch_slots(const struct queue_entry *entries, unsigned count,
                           struct prefetch_group *group) {
    group->member_count = 0;
    for (unsigned i = 0; i < count; i++) {
        if (group->boards[i] == NULL) {
            continue;
        }
        const struct command *command = group->commands[i];
        const struct request *request = &entries[i].request;
        bool is_change = (command->flags & COMMAND_WRITE) != 0;
        uint32_t at = member_position(command, request);
        bool is_only = command->member_step == 0 || at + 1 == request->count;
        if (!is_only && (request->count - at) / (uint32_t)command->member_step >= LOOKUP_OWN_MIN) {
            continue;
        }
        if (is_only && group->member_count < PREFETCH_MEMBERS_MAX) {
            group->ahead[i] = &group->members[group->member_count];
        }
        do {
            if (group->member_count == PREFETCH_MEMBERS_MAX) {
                return;
            }
            prefetch_member(group->boards[i], request->args[at], is_change, group);
            at += (uint32_t)command->member_step;
        } while (!is_only && at < request->count);
    }
}

/* The key that a single new score will have. false: none; the handler reports the error. */
static bool key_of_score(const struct layout *layout, struct bytes text, int64_t now_us,
                         uint64_t *key) {
    struct decimal value;
    uint64_t ordinal;
    if (decimal_parse(text, layout->fields[0].scale, &value) != DECIMAL_OK ||
        layout_field_ordinal(&layout->fields[0], value, &ordinal) != LAYOUT_OK) {
        return false;
    }
    *key = layout_with_ordinal(layout, layout_zero_key(layout), 0, ordinal);
    return layout_stamp(layout, *key, now_us, key) == LAYOUT_OK;
}

static bool find_new_key(const struct command *command, const struct layout *layout,
                         const struct request *request, int64_t now_us, uint64_t *key) {
    return command->new_key != NULL
               ? command->new_key(layout, request, now_us, key)
               : key_of_score(layout, request->args[command->score_arg], now_us, key);
}

static void prefetch_ways(const struct server *server, const struct queue_entry *entries,
                          unsigned count, struct prefetch_group *group) {
    group->way_count = 0;
    for (unsigned i = 0; i < count; i++) {
        const struct board *board = group->boards[i];
        if (board == NULL || group->ahead[i] == NULL) {
            continue;
        }
        const struct command *command = group->commands[i];
        uint64_t key;
        if ((command->score_arg > 0 || command->new_key != NULL) &&
            find_new_key(command, board_layout(board), &entries[i].request, server->clock.now_us,
                         &key)) {
            group->way_members[group->way_count] = group->ahead[i];
            board_prefetch_way(board, key, &group->ways[group->way_count++]);
        }
    }
}

void prefetch_entries(const struct server *server, const struct queue_entry *entries, unsigned count,
                      struct prefetch_group *group) {
    prefetch_keys(server, entries, count, group);
    find_boards(server, count, group);
    prefetch_slots(entries, count, group);
    prefetch_ways(server, entries, count, group);
    for (unsigned i = 0; i < group->member_count; i++) {
        board_prefetch_descriptor(&group->members[i]);
    }
    for (unsigned i = 0; i < group->way_count; i++) {
        board_prefetch_way_index(&group->ways[i]);
    }
    for (unsigned i = 0; i < group->member_count; i++) {
        board_prefetch_block(&group->members[i]);
    }
    for (unsigned i = 0; i < group->way_count; i++) {
        board_prefetch_way_leaf(&group->ways[i]);
        group->way_members[i]->target = group->ways[i].block;
    }
    for (unsigned i = 0; i < group->member_count; i++) {
        board_prefetch_entry(&group->members[i], group->are_changes[i]);
    }
    for (unsigned i = 0; i < group->way_count; i++) {
        board_prefetch_way_end(&group->ways[i]);
    }
}

void prefetch_recall(const struct server *server, const struct prefetch_group *group, unsigned i) {
    if (group->key_count > 1 && group->key_numbers[i] != PREFETCH_NO_KEY) {
        registry_prefetch_recall(server->registry, &group->keys[group->key_numbers[i]]);
    }
}
