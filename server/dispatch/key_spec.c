/* Made once, from the entries. See key_spec.h. */
#include "server/dispatch/key_spec.h"

#include "server/acl/acl.h"
#include "server/dispatch/syntax.h"

struct specs {
    struct key_spec at[KEY_SPECS_MAX];
    uint32_t count;
};
static struct specs kept[ACL_COMMANDS_MAX];

static const char *const flag_names[] = {"RO",     "RW",     "OW",     "RM",      "access",
                                         "update", "insert", "delete", "not_key", "incomplete"};

const char *key_spec_flag_name(unsigned flag) {
    for (size_t i = 0; i < sizeof flag_names / sizeof flag_names[0]; i++) {
        if (flag == 1U << i) {
            return flag_names[i];
        }
    }
    return NULL;
}

static bool key_spec_is_one_of(const char *name, const char *first, const char *second,
                               const char *third) {
    return name != NULL &&
           (strcmp(name, first) == 0 || strcmp(name, second) == 0 || strcmp(name, third) == 0);
}

/* What follows from the command's flags and the arguments' names. */
static unsigned key_spec_usual_flags(const struct command *command, const struct key_spec *spec) {
    /* Counted keys next to a single one are the sources of a STORE. */
    bool is_source = (spec->is_counted && command->first_key > 0) ||
                     key_spec_is_one_of(spec->name, "source", "src", "src");
    bool is_target = key_spec_is_one_of(spec->name, "destination", "dst", "newkey");
    bool is_read = (command->flags & COMMAND_WRITE) == 0 || is_source;
    bool is_removed = strcmp(command->name, "DEL") == 0 || strcmp(command->name, "UNLINK") == 0;
    if (is_read) {
        /* WATCH does not read the contents of its keys. */
        bool is_shown = is_source || (command->flags & COMMAND_READ) != 0;
        return KEY_READ_ONLY | (is_shown ? (unsigned)KEY_ACCESS : 0U);
    }
    if (is_removed) {
        return KEY_REMOVED | KEY_DELETE;
    }
    return (is_target ? (unsigned)KEY_REPLACED : (unsigned)KEY_CHANGED) | KEY_UPDATE;
}

/* The words of an entry's key_access, up to the next '|'. */
static unsigned key_spec_read_flags(const char **at) {
    unsigned flags = 0;
    while (**at != '\0' && **at != '|') {
        size_t size = strcspn(*at, " |");
        unsigned known = 0;
        for (unsigned i = 0; i < sizeof flag_names / sizeof flag_names[0]; i++) {
            bool is_it = strlen(flag_names[i]) == size && memcmp(*at, flag_names[i], size) == 0;
            known |= is_it ? 1U << i : 0;
        }
        CHECK(known != 0);
        flags |= known;
        *at += size;
        *at += strspn(*at, " ");
    }
    *at += **at == '|';
    return flags;
}

static void key_spec_add(struct specs *specs, bool is_counted, int begin, int last, int step) {
    CHECK(specs->count < KEY_SPECS_MAX);
    specs->at[specs->count++] =
        (struct key_spec){.is_counted = is_counted, .begin = begin, .last = last, .step = step};
}

void key_spec_init(void) {
    CHECK(command_count() <= ACL_COMMANDS_MAX);
    memset(kept, 0, sizeof kept);
    for (uint32_t index = 0; index < command_count(); index++) {
        const struct command *command = command_by_index(index);
        struct specs *specs = &kept[index];
        if (command->first_key > 0 && command->last_key >= command->first_key) {
            for (int at = command->first_key; at <= command->last_key; at += command->key_step) {
                key_spec_add(specs, false, at, 0, 1);
            }
        } else if (command->first_key > 0) {
            key_spec_add(specs, false, command->first_key, command->last_key, command->key_step);
        }
        if ((command->flags & COMMAND_MOVABLE_KEYS) != 0) {
            key_spec_add(specs, true, command->key_count_arg, 0, 1);
        }
        uint32_t option = specs->count;
        if (command->key_option != NULL) {
            key_spec_add(specs, false, (int)syntax_options_at(command), 0, 1);
            specs->at[option].word = command->key_option;
        }
        const char *access = command->key_access;
        for (uint32_t i = 0; i < specs->count; i++) {
            /* The name of that key argument. Keys are never inside blocks. */
            uint32_t nth = i;
            const struct argument *argument = command->arguments;
            while (argument != NULL && argument->name != NULL &&
                   (argument->type != ARGUMENT_KEY || nth-- > 0)) {
                argument++;
            }
            specs->at[i].name = argument != NULL ? argument->name : NULL;
            specs->at[i].flags = access != NULL ? key_spec_read_flags(&access)
                                                : key_spec_usual_flags(command, &specs->at[i]);
        }
        if (option < specs->count) {
            specs->at[option].flags = KEY_READ_ONLY | KEY_ACCESS | KEY_INCOMPLETE;
        }
        CHECK(access == NULL || *access == '\0');
    }
}

uint32_t key_spec_of(uint32_t command, const struct key_spec **specs) {
    CHECK(command < ACL_COMMANDS_MAX);
    *specs = kept[command].at;
    return kept[command].count;
}

unsigned key_spec_needs(unsigned flags) {
    return ((flags & KEY_ACCESS) != 0 ? (unsigned)ACL_READ : 0U) |
           ((flags & (KEY_UPDATE | KEY_INSERT | KEY_DELETE)) != 0 ? (unsigned)ACL_WRITE : 0U);
}

uint32_t key_spec_option(const struct command *command, const struct request *request) {
    if (command->key_option == NULL || command_has_wrong_arity(command, request)) {
        return 0;
    }
    uint32_t index = syntax_find(command, request, command->key_option);
    /* A word in the place of the key: SINCE LAST. */
    return index > 0 && !bytes_is(request->args[index], "LAST") ? index : 0;
}

struct key_walk key_spec_walk(const struct command *command, const struct key_spec *spec,
                              const struct request *request) {
    int64_t count = request->count;
    if (spec->word != NULL) {
        uint32_t at = key_spec_option(command, request);
        return (struct key_walk){.next = at > 0 ? at : 1, .end = at + 1, .step = 1};
    }
    int64_t begin = spec->begin;
    int64_t last = spec->last >= 0 ? begin + spec->last : count + spec->last;
    if (spec->is_counted) {
        int64_t keys;
        if (begin >= count || !bytes_parse_i64(request->args[begin], &keys) || keys < 1 ||
            keys > count - 1 - begin) {
            return (struct key_walk){.end = 0};
        }
        last = begin + keys;
        begin++;
    }
    if (last >= count) {
        return (struct key_walk){.end = 0};
    }
    return (struct key_walk){
        .next = (uint32_t)begin,
        .end = last >= begin ? (uint32_t)last + 1 : (uint32_t)begin,
        .step = (uint32_t)spec->step,
    };
}

struct request_keys key_spec_request_begin(uint32_t command, const struct request *request) {
    struct request_keys keys = {.command = command_by_index(command), .request = request};
    uint32_t count = key_spec_of(command, &keys.spec);
    keys.end = keys.spec + count;
    keys.walk.end = 0;
    if (count > 0) {
        keys.walk = key_spec_walk(keys.command, keys.spec, request);
    }
    return keys;
}

uint32_t key_spec_request_next(struct request_keys *keys) {
    while (keys->spec < keys->end && keys->walk.next >= keys->walk.end) {
        if (++keys->spec < keys->end) {
            keys->walk = key_spec_walk(keys->command, keys->spec, keys->request);
        }
    }
    if (keys->spec == keys->end) {
        return 0;
    }
    uint32_t at = keys->walk.next;
    keys->walk.next += keys->walk.step;
    return at;
}

int key_spec_positions(const struct command *command, const struct request *request,
                       uint32_t *positions) {
    const struct key_spec *specs;
    uint32_t spec_count = key_spec_of(command_index(command), &specs);
    int count = 0;
    if (command_has_wrong_arity(command, request)) {
        return -1;
    }
    for (uint32_t i = 0; i < spec_count; i++) {
        struct key_walk walk = key_spec_walk(command, &specs[i], request);
        if (walk.end == 0) {
            return -1;
        }
        for (uint32_t at = walk.next; at < walk.end; at += walk.step) {
            positions[count++] = at;
        }
    }
    return count;
}
