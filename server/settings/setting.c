/* Life cycle of the settings, and changes to them: all or nothing.
 *
 *     settings --begin--> draft --assign, assign, ...--> commit: the draft becomes the settings
 *                                          \-----------> abort: nothing has changed
 *
 * A draft owns copies of all strings, so a commit frees the replaced strings and an abort frees the
 * copies. Layouts and rules are not copied: boards borrow layouts, so existing ones keep their
 * addresses, and new ones are appended. */
#include "server/settings/setting_private.h"
#include "skiplist/keyspace/registry.h"

const struct setting *setting_find(struct bytes name) {
    for (const struct setting *setting = setting_table; setting->name != NULL; setting++) {
        if (bytes_is(name, setting->name)) {
            return setting;
        }
    }
    return NULL;
}

/* ---- Owned strings ---- */

enum { LONE_STRING_COUNT = 9, STRING_COUNT = LONE_STRING_COUNT + SETTING_LIST_MAX };

static void list_strings(struct settings *settings, char **slots[STRING_COUNT]) {
    slots[0] = &settings->unixsocket;
    slots[1] = &settings->requirepass;
    slots[2] = &settings->pidfile;
    slots[3] = &settings->logfile;
    slots[4] = &settings->default_layout_name;
    slots[5] = &settings->default_layout_origin;
    slots[6] = &settings->file_path;
    slots[7] = &settings->dir;
    slots[8] = &settings->appenddirname;
    for (size_t i = 0; i < SETTING_LIST_MAX; i++) {
        slots[LONE_STRING_COUNT + i] = &settings->bind[i];
    }
}

static void free_strings(struct settings *settings) {
    char **slots[STRING_COUNT];
    list_strings(settings, slots);
    for (size_t i = 0; i < STRING_COUNT; i++) {
        memory_free(*slots[i]);
        *slots[i] = NULL;
    }
}

/* Replace borrowed strings by owned copies. false: no memory, and no copy remains. */
static bool own_strings(struct settings *settings) {
    char **slots[STRING_COUNT];
    char *borrowed[STRING_COUNT];
    list_strings(settings, slots);
    for (size_t i = 0; i < STRING_COUNT; i++) {
        borrowed[i] = *slots[i];
        *slots[i] = NULL;
    }
    for (size_t i = 0; i < STRING_COUNT; i++) {
        if (borrowed[i] != NULL && !setting_value_replace(slots[i], bytes_from_text(borrowed[i]))) {
            free_strings(settings);
            return false;
        }
    }
    return true;
}

/* ---- Drafts ---- */

bool setting_draft_begin(struct setting_draft *draft, struct settings *original) {
    draft->original = original;
    draft->settings = *original;
    return own_strings(&draft->settings);
}

/* An unchanged string keeps its address: it may be borrowed if its setting cannot change (the
 * pidfile's path, until exit). */
void setting_draft_commit(struct setting_draft *draft) {
    char **slots[STRING_COUNT];
    char **slots_before[STRING_COUNT];
    list_strings(&draft->settings, slots);
    list_strings(draft->original, slots_before);
    for (size_t i = 0; i < STRING_COUNT; i++) {
        char *before = *slots_before[i];
        if (before != NULL && *slots[i] != NULL && strcmp(before, *slots[i]) == 0) {
            memory_free(*slots[i]);
            *slots[i] = before;
        } else {
            memory_free(before);
        }
    }
    *draft->original = draft->settings;
}

void setting_draft_abort(struct setting_draft *draft) {
    free_strings(&draft->settings);
    setting_board_truncate(&draft->settings, draft->original->layout_count,
                           draft->original->rule_count);
}

/* ---- Life cycle ---- */

static bool assign_default(struct settings *settings, const struct setting *setting) {
    struct setting_words words;
    struct setting_place place = {0};
    char reason[SETTING_REASON_MAX];
    CHECK(setting_words_split(bytes_from_text(setting->default_value), &words, reason));
    return setting_value_assign(settings, setting, words.words, words.count, &place, reason);
}

bool settings_init(struct settings *settings) {
    memset(settings, 0, sizeof *settings);
    settings->databases = REGISTRY_DATABASES;
    bool is_fine = setting_board_init(settings);
    for (const struct setting *setting = setting_table; is_fine && setting->name != NULL;
         setting++) {
        is_fine = setting->default_value == NULL || assign_default(settings, setting);
    }
    if (!is_fine) {
        settings_deinit(settings);
    }
    return is_fine;
}

void settings_deinit(struct settings *settings) {
    free_strings(settings);
    setting_board_truncate(settings, 0, 0);
    memset(settings, 0, sizeof *settings);
}

bool settings_finish(struct settings *settings, char *error) {
    if (settings->port == 0 && settings->unixsocket == NULL) {
        return setting_fail(error, SETTING_ERROR_MAX,
                            "there is nothing to listen on: port is 0 and unixsocket is not set");
    }
    return setting_board_resolve(settings, error);
}

/* ---- CONFIG SET ---- */

static bool fail_set(char *error, struct bytes name, const char *reason) {
    return setting_fail(error, SETTING_ERROR_MAX,
                        "CONFIG SET failed (possibly related to argument '%s') - %s",
                        setting_show(name).text, reason);
}

/* Does every name exist, may it be changed, and is it given only once? */
static bool check_names(const struct bytes *pairs, uint32_t pair_count, char *error) {
    bool is_seen[SETTING_ID_COUNT] = {false};
    for (uint32_t i = 0; i < pair_count; i++) {
        struct bytes name = pairs[2 * i];
        const struct setting *setting = setting_find(name);
        if (setting == NULL) {
            return setting_fail(error, SETTING_ERROR_MAX,
                                "Unknown option or number of arguments for CONFIG SET - '%s'",
                                setting_show(name).text);
        }
        if ((setting->flags & SETTING_FIXED) != 0) {
            return fail_set(error, name, "can't set immutable config");
        }
        if (is_seen[setting->id]) {
            return fail_set(error, name, "duplicate parameter");
        }
        is_seen[setting->id] = true;
    }
    return true;
}

bool settings_set(struct settings *settings, const struct bytes *pairs, uint32_t pair_count,
                  settings_check *check, void *context, char *error) {
    if (!check_names(pairs, pair_count, error)) {
        return false;
    }
    struct setting_draft draft;
    if (!setting_draft_begin(&draft, settings)) {
        return setting_fail(error, SETTING_ERROR_MAX, "CONFIG SET failed - out of memory");
    }
    struct setting_place place = {0};
    char reason[SETTING_REASON_MAX];
    for (uint32_t i = 0; i < pair_count; i++) {
        const struct setting *setting = setting_find(pairs[2 * i]);
        if (!setting_value_assign(&draft.settings, setting, &pairs[2 * i + 1], 1, &place, reason)) {
            setting_draft_abort(&draft);
            return fail_set(error, bytes_from_text(setting->name), reason);
        }
    }
    const char *failed = check != NULL ? check(context, &draft.settings, reason) : NULL;
    if (failed != NULL) {
        setting_draft_abort(&draft);
        return fail_set(error, bytes_from_text(failed), reason);
    }
    setting_draft_commit(&draft);
    return true;
}
