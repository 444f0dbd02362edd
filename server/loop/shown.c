/* See shown.h. In doubt a reply shows everything: what is not known here waits. */
#include "server/loop/shown.h"

#include <string.h>

#include "server/dispatch/command.h"
#include "server/dispatch/key_spec.h"
#include "server/durability/unwritten.h"

static bool shown_is_of_boards(const struct command *command) {
    return strcmp(command->group, "leaderboard") == 0;
}

/* DATA brings values of other keys. */
static bool shown_has_data(const struct request *request) {
    for (uint32_t i = 1; i < request->count; i++) {
        if (bytes_equal_ignoring_case(request->args[i], BYTES("DATA"))) {
            return true;
        }
    }
    return false;
}

/* Does the reply follow from the keys that the request names? */
static bool shown_is_of_its_keys(const struct queue_entry *entry) {
    enum { OTHER = COMMAND_WRITE | COMMAND_RUNS_QUEUE | COMMAND_BLOCKING };
    if (entry->command >= QUEUE_CLOSE || entry->command == COMMAND_NONE) {
        return false;
    }
    const struct command *command = command_by_index(entry->command);
    return (command->flags & COMMAND_READ) != 0 && (command->flags & OTHER) == 0 &&
           !(shown_is_of_boards(command) && shown_has_data(&entry->request));
}

bool shown_is_unwritten(const struct persistence *persistence, const struct session *session,
                        const struct queue_entry *entry) {
    const struct key_spec *specs;
    if (!shown_is_of_its_keys(entry)) {
        return true;
    }
    const struct command *command = command_by_index(entry->command);
    bool has_names = persistence_has_unwritten_names(persistence);
    if ((command->flags & COMMAND_NAMES) != 0 || (shown_is_of_boards(command) && has_names)) {
        return has_names; /* archives of a board, bans */
    }
    uint32_t spec_count = key_specs_of(entry->command, &specs);
    for (uint32_t i = 0; i < spec_count; i++) {
        struct key_walk walk = key_spec_walk(&specs[i], &entry->request);
        if (walk.end == 0) {
            return true;
        }
        for (; walk.next < walk.end; walk.next += walk.step) {
            struct bytes name = entry->request.args[walk.next];
            if (persistence_is_unwritten(persistence, unwritten_key(session->database, name))) {
                return true;
            }
        }
    }
    return spec_count == 0;
}

uint64_t shown_key(const struct session *session, const struct queue_entry *entry) {
    const struct key_spec *specs;
    if (!shown_is_of_its_keys(entry) || shown_is_of_boards(command_by_index(entry->command)) ||
        key_specs_of(entry->command, &specs) != 1) {
        return 0;
    }
    struct key_walk walk = key_spec_walk(&specs[0], &entry->request);
    bool is_one = walk.next < walk.end && walk.next + walk.step >= walk.end;
    return is_one ? unwritten_key(session->database, entry->request.args[walk.next]) : 0;
}
