/* The stages of a group's prefetching. See prefetch.h for the whole.
 *
 * Invariant: each stage reads what an earlier one has fetched for the whole group, and fetches what
 * the next one reads; so the group waits for memory once per stage, not once per request. */
#include "server/prefetch.h"

#include "server/command.h"
#include "server/connection.h"

enum {
    PREFETCH_BOARD_MIN = 4096, /* members: smaller boards stay in the cache */
};

/* Neighbours in the queue often name the same key: then the lookup is saved. */
static void find_boards(const struct server *server, const struct tick_entry *entries,
                        unsigned count, struct prefetch_group *group) {
    struct bytes last_name = {0};
    uint32_t last_database = 0;
    const struct registry_key *key = NULL;
    for (unsigned i = 0; i < count; i++) {
        const struct tick_entry *entry = &entries[i];
        group->boards[i] = NULL;
        group->ahead[i] = NULL;
        if (entry->command >= TICK_CLOSE || connection_is_void(entry)) {
            continue;
        }
        const struct command *command = command_by_index(entry->command);
        if (command->member_arg == 0 || entry->request.count <= (uint32_t)command->member_arg) {
            continue;
        }
        struct bytes name = entry->request.args[command->first_key];
        uint32_t database = entry->connection->session.database;
        if (last_name.at == NULL || database != last_database || !bytes_equal(name, last_name)) {
            key = registry_peek(server->registry, database, name, server->now_ms);
            last_name = name;
            last_database = database;
        }
        if (key != NULL && board_count(&key->board) >= PREFETCH_BOARD_MIN) {
            group->boards[i] = &key->board;
            group->commands[i] = command;
        }
    }
}

static void prefetch_member(const struct board *board, struct bytes member, bool is_change,
                            struct prefetch_group *group) {
    group->are_changes[group->member_count] = is_change;
    board_prefetch_slots(board, member, &group->members[group->member_count++]);
}

static void prefetch_slots(const struct tick_entry *entries, unsigned count,
                           struct prefetch_group *group) {
    group->member_count = 0;
    for (unsigned i = 0; i < count; i++) {
        if (group->boards[i] == NULL) {
            continue;
        }
        const struct command *command = group->commands[i];
        const struct request *request = &entries[i].request;
        bool is_change = (command->flags & COMMAND_WRITE) != 0;
        uint32_t at = (uint32_t)command->member_arg;
        bool is_only = command->member_step == 0 || at + 1 == request->count;
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

/* The key that a lone new score will have. false: none; the handler says what is wrong with it. */
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

static void prefetch_ways(const struct server *server, const struct tick_entry *entries,
                          unsigned count, struct prefetch_group *group) {
    group->way_count = 0;
    for (unsigned i = 0; i < count; i++) {
        const struct board *board = group->boards[i];
        if (board == NULL || group->commands[i]->score_arg == 0 || group->ahead[i] == NULL) {
            continue;
        }
        struct bytes text = entries[i].request.args[group->commands[i]->score_arg];
        uint64_t key;
        if (key_of_score(board_layout(board), text, server->now_us, &key)) {
            group->way_members[group->way_count] = group->ahead[i];
            board_prefetch_way(board, key, &group->ways[group->way_count++]);
        }
    }
}

void prefetch_entries(const struct server *server, const struct tick_entry *entries, unsigned count,
                      struct prefetch_group *group) {
    find_boards(server, entries, count, group);
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
