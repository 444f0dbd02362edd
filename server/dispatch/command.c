/* The table of commands, and the look-up of names in it. See command.h.
 *
 * Numbers follow the order of the table. A container's subcommands come directly after it, so a
 * subcommand's number is its container's number plus its index plus one. */
#include "server/dispatch/command.h"

#include <stdio.h>

#include "server/sessions/session.h"
#include "server/settings/settings.h"

enum {
    COMMANDS_MAX = 256,   /* subcommands included */
    COMMAND_SLOTS = 1024, /* a power of two, at most a quarter full */
    RENAMED_MAX = SETTING_RENAMES_MAX,
};

struct command_slot {
    struct command_name_words words;
    uint16_t number_plus_one; /* 0: free */
    uint8_t size;
    bool has_letters_only; /* equal words then imply equal names */
};

struct command_number command_numbers[COMMANDS_MAX];
uint32_t command_number_count;
static struct command_slot slots[COMMAND_SLOTS];
/* New names, which may be longer than those in slots. A slot whose size is 0 had the old one. */
static struct {
    char name[SETTING_RENAME_SIZE_MAX + 1];
    uint32_t index;
} renamed[RENAMED_MAX];
static uint32_t renamed_count;

/* ---- numbers ---- */

static void command_add_number(const struct command *command, const struct command *container,
                               const char *group, command_complete *complete) {
    CHECK(command_number_count < COMMANDS_MAX);
    struct command_number *number = &command_numbers[command_number_count++];
    number->is_gone = false;
    number->command = *command;
    number->command.since = command->since != NULL ? command->since : "1.0.0";
    number->command.complexity = command->complexity != NULL ? command->complexity : "O(1)";
    number->command.group = group;
    CHECK(command->reply != NULL || command->run == NULL);
    complete(&number->command, container != NULL);
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
    return command_number_count;
}

const char *command_full_name(uint32_t index) {
    CHECK(index < command_number_count);
    return command_numbers[index].full_name;
}

const char *command_last_name(const struct session *session) {
    return session->last_command != NULL ? command_full_name(command_index(session->last_command))
                                         : "NULL";
}

uint32_t command_index(const struct command *command) {
    size_t index = (size_t)((const struct command_number *)(const void *)command - command_numbers);
    CHECK(index < command_number_count);
    return (uint32_t)index;
}

bool command_is_subcommand(uint32_t index) {
    return strchr(command_full_name(index), '|') != NULL;
}

/* ---- lookup ---- */

static inline uint32_t command_slot_of(struct command_name_words words, size_t size) {
    uint64_t hash = (words.low ^ (words.high << 1 | words.high >> 63)) + size;
    /* With this factor (of Pelle Evensen's rrmxmx) hardly any two commands share a slot. */
    return (uint32_t)(hash * 0xd6e8feb86659fd93U >> 54);
}

static void command_add_slot(uint32_t index, const char *name) {
    size_t size = strlen(name);
    CHECK(size >= 1 && size <= COMMAND_NAME_MAX);
    struct command_name_words words = command_words_of_name(name, size);
    uint32_t at = command_slot_of(words, size);
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

void command_init(const struct command_row *table, command_complete *complete) {
    command_number_count = 0;
    renamed_count = 0;
    memset(slots, 0, sizeof slots);
    for (const struct command_row *row = table; row->command != NULL; row++) {
        command_add_slot(command_number_count, row->command->name);
        command_add_number(row->command, NULL, row->group, complete);
        const struct command *const *subcommand = row->command->subcommands;
        for (; subcommand != NULL && *subcommand != NULL; subcommand++) {
            command_add_number(*subcommand, row->command, row->group, complete);
        }
    }
    CHECK(command_number_count <= COMMAND_SLOTS / 4);
}

/* Its place in renamed; RENAMED_MAX: none. */
static uint32_t command_find_renamed(struct bytes name) {
    for (uint32_t i = 0; i < renamed_count; i++) {
        if (bytes_is(name, renamed[i].name)) {
            return i;
        }
    }
    return RENAMED_MAX;
}

__attribute__((noinline)) static uint32_t command_find_renamed_index(struct bytes name) {
    uint32_t at = command_find_renamed(name);
    return at != RENAMED_MAX ? renamed[at].index : COMMAND_NONE;
}

/* By name, case-insensitive. COMMAND_NONE: not found. */
static uint32_t command_find_index(struct bytes name) {
    if (name.size < 1 || name.size > COMMAND_NAME_MAX) {
        return command_find_renamed_index(name);
    }
    struct command_name_words words = command_words_of_name(name.at, name.size);
    uint32_t at = command_slot_of(words, name.size);
    for (; slots[at].number_plus_one != 0; at = (at + 1) % COMMAND_SLOTS) {
        const struct command_slot *slot = &slots[at];
        if (slot->words.low != words.low || slot->words.high != words.high ||
            slot->size != name.size) {
            continue;
        }
        uint32_t index = slot->number_plus_one - 1U;
        if (slot->has_letters_only || bytes_is(name, command_numbers[index].command.name)) {
            return index;
        }
    }
    return command_find_renamed_index(name);
}

uint32_t command_find_original(struct bytes full_name) {
    for (uint32_t index = 0; index < command_number_count; index++) {
        if (bytes_is(full_name, command_numbers[index].full_name)) {
            return index;
        }
    }
    return COMMAND_NONE;
}

const struct command *command_find(struct bytes name) {
    uint32_t index = command_find_index(name);
    return index == COMMAND_NONE ? NULL : &command_numbers[index].command;
}

/* COMMAND_NONE: not found. Not inlined: most commands have none. */
__attribute__((noinline)) static uint32_t command_find_subcommand(uint32_t container,
                                                                  struct bytes name) {
    const struct command *const *subcommands = command_numbers[container].command.subcommands;
    for (uint32_t i = 0; subcommands[i] != NULL; i++) {
        if (bytes_is(name, subcommands[i]->name)) {
            return container + 1 + i;
        }
    }
    return COMMAND_NONE;
}

uint32_t command_find_request(const struct request *request) {
    uint32_t index = command_find_index(request->args[0]);
    if (index == COMMAND_NONE || command_numbers[index].command.subcommands == NULL ||
        request->count == 1) {
        return index;
    }
    return command_find_subcommand(index, request->args[1]);
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

/* ---- renaming ---- */

const char *command_set_name(struct bytes name, struct bytes new_name) {
    uint32_t index = command_find_index(name);
    if (index == COMMAND_NONE) {
        return "No such command in rename-command";
    }
    if (new_name.size > 0 && command_find_index(new_name) != COMMAND_NONE) {
        return "Target command name already exists";
    }
    if (new_name.size > SETTING_RENAME_SIZE_MAX ||
        (new_name.size > 0 && renamed_count == RENAMED_MAX)) {
        return "Too many commands are renamed, or to names that are too long";
    }
    /* Take the name away, which may be a new one already. */
    uint32_t at = command_find_renamed(name);
    if (at != RENAMED_MAX) {
        renamed[at] = renamed[--renamed_count];
    } else {
        struct command_name_words words = command_words_of_name(name.at, name.size);
        uint32_t slot = command_slot_of(words, name.size);
        while (slots[slot].size != name.size || slots[slot].words.low != words.low ||
               slots[slot].words.high != words.high ||
               !bytes_is(name, command_numbers[slots[slot].number_plus_one - 1].command.name)) {
            slot = (slot + 1) % COMMAND_SLOTS;
        }
        slots[slot].size = 0; /* others may be found behind it */
    }
    if (new_name.size > 0) {
        memcpy(renamed[renamed_count].name, new_name.at, new_name.size);
        renamed[renamed_count].name[new_name.size] = '\0';
        renamed[renamed_count++].index = index;
        return NULL;
    }
    const struct command *const *subcommand = command_numbers[index].command.subcommands;
    command_numbers[index].is_gone = true;
    for (; subcommand != NULL && *subcommand != NULL; subcommand++) {
        command_numbers[++index].is_gone = true;
    }
    return NULL;
}

unsigned command_needs(const struct session *session, const struct command *command) {
    unsigned needs = command->flags;
    if ((command->flags & COMMAND_RUNS_QUEUE) != 0) {
        needs |= session->transaction.flags;
    }
    return needs & (COMMAND_WRITE | COMMAND_DENYOOM);
}
