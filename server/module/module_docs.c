/* Descriptions of commands, given to the host, which copies them. See module_docs.h. */
#include "server/module/module_docs.h"

#include <stdio.h>
#include <string.h>

#include "codec/memory.h"
#include "server/dispatch/category.h"
#include "server/dispatch/key_spec.h"

/* The host has the same numbers. */
_Static_assert(ARGUMENT_STRING == 0 && ARGUMENT_KEY == 3 && ARGUMENT_UNIX_TIME == 5 &&
                   ARGUMENT_BLOCK == 8,
               "types of arguments");
_Static_assert(ARGUMENT_OPTIONAL == 1 && ARGUMENT_MULTIPLE == 2 && ARGUMENT_MULTIPLE_TOKEN == 4,
               "flags of arguments");
_Static_assert(KEY_READ_ONLY == 1 && KEY_REMOVED == 8 && KEY_ACCESS == 16 && KEY_DELETE == 128,
               "flags of keys");

static const struct host_info_version version = {
    .version = 1,
    .history_size = 2 * sizeof(void *),
    .key_spec_size = sizeof(struct host_key_spec),
    .argument_size = sizeof(struct host_argument),
};

static void module_docs_free_arguments(struct host_argument *arguments) {
    for (struct host_argument *each = arguments; each != NULL && each->name != NULL; each++) {
        module_docs_free_arguments(each->children);
    }
    memory_free(arguments);
}

/* Counts the keys. NULL: no memory. */
static struct host_argument *module_docs_copy_arguments(const struct argument *arguments,
                                                        uint32_t specs_count, uint32_t *key_count) {
    size_t count = 0;
    while (arguments[count].name != NULL) {
        count++;
    }
    struct host_argument *copy = memory_allocate_zeroed((count + 1) * sizeof *copy);
    for (size_t i = 0; i < count && copy != NULL; i++) {
        const struct argument *from = &arguments[i];
        bool is_key = from->type == ARGUMENT_KEY && specs_count > 0;
        uint32_t nth = is_key ? (*key_count)++ : 0;
        copy[i] = (struct host_argument){.name = from->name,
                                         .type = (int)from->type,
                                         .key_spec_index = -1,
                                         .token = from->token,
                                         .flags = (int)from->flags};
        if (is_key) {
            copy[i].key_spec_index = (int)(nth < specs_count ? nth : specs_count - 1);
        }
        if (from->children != NULL) {
            copy[i].children = module_docs_copy_arguments(from->children, specs_count, key_count);
        }
        if (from->children != NULL && copy[i].children == NULL) {
            module_docs_free_arguments(copy);
            copy = NULL;
        }
    }
    return copy;
}

static struct host_key_spec module_docs_copy_spec(const struct key_spec *from) {
    struct host_key_spec spec = {.flags = from->flags, .begin_type = HOST_SEARCH_INDEX};
    spec.begin.index = from->begin;
    if (from->is_counted) {
        spec.find_type = HOST_FIND_COUNTED;
        spec.find.counted.first = 1;
        spec.find.counted.step = 1;
    } else {
        spec.find_type = HOST_FIND_RANGE;
        spec.find.range.last = from->last;
        spec.find.range.step = from->step;
    }
    return spec;
}

/* ---- categories ---- */

static bool has_own_category;

void module_docs_init(struct host_context *ctx) {
    has_own_category =
        host_AddACLCategory != NULL && host_AddACLCategory(ctx, CATEGORY_OWN) == HOST_OK;
}

bool module_docs_set_categories(struct host_context *ctx, const char *name,
                                const char *categories) {
    struct host_created *created = host_GetCommand(ctx, name);
    return created != NULL && (host_SetCommandACLCategories == NULL ||
                               host_SetCommandACLCategories(created, categories) == HOST_OK);
}

static bool module_docs_set_categories_of(struct host_context *ctx, const char *name,
                                          uint32_t number) {
    enum { CATEGORIES_TEXT_MAX = 256 };
    char text[CATEGORIES_TEXT_MAX] = "";
    uint32_t mask = category_mask(number);
    for (uint32_t i = 0; i < CATEGORIES; i++) {
        bool is_known = has_own_category || strcmp(category_name(i), CATEGORY_OWN) != 0;
        if ((mask >> i & 1) != 0 && is_known) {
            size_t size = strlen(text);
            snprintf(text + size, sizeof text - size, "%s%s", size > 0 ? " " : "",
                     category_name(i));
        }
    }
    return module_docs_set_categories(ctx, name, text);
}

/* ---- both ---- */

static bool module_docs_set_info(struct host_context *ctx, const char *name,
                                 const struct host_command_info *info) {
    struct host_created *created = host_GetCommand(ctx, name);
    return created != NULL && host_SetCommandInfo(created, info) == HOST_OK;
}

bool module_docs_set(struct host_context *ctx, const char *name, uint32_t number) {
    const struct command *command = command_by_index(number);
    const struct key_spec *specs;
    uint32_t count = key_specs_of(number, &specs);
    struct host_key_spec key_specs[KEY_SPECS_MAX + 1] = {{.begin_type = HOST_SEARCH_NONE}};
    for (uint32_t i = 0; i < count; i++) {
        key_specs[i] = module_docs_copy_spec(&specs[i]);
    }
    /* The arity stays ours: the host would say the new name in the error. */
    struct host_command_info info = {
        .version = &version,
        .summary = command->summary,
        .complexity = command->complexity,
        .since = command->since,
        .key_specs = count > 0 ? key_specs : NULL,
    };
    uint32_t key_count = 0;
    if (command->arguments != NULL) {
        info.arguments = module_docs_copy_arguments(command->arguments, count, &key_count);
    }
    bool is_set = (command->arguments == NULL || info.arguments != NULL) &&
                  module_docs_set_info(ctx, name, &info);
    module_docs_free_arguments(info.arguments);
    return is_set && module_docs_set_categories_of(ctx, name, number);
}

bool module_docs_set_key(struct host_context *ctx, const char *name, const char *summary,
                         unsigned flags) {
    struct host_key_spec specs[2] = {{.flags = flags, .begin_type = HOST_SEARCH_INDEX},
                                     {.begin_type = HOST_SEARCH_NONE}};
    specs[0].begin.index = 1;
    specs[0].find_type = HOST_FIND_RANGE;
    specs[0].find.range.step = 1;
    const struct host_command_info info = {
        .version = &version, .summary = summary, .key_specs = specs};
    return module_docs_set_info(ctx, name, &info);
}
