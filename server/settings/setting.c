/* Life cycle of the settings, and changes to them: all or nothing.
 *
 *     settings --begin--> draft --assign, assign, ...--> commit: the draft becomes the settings
 *                                          \-----------> abort: nothing has changed
 *
 * A draft borrows the strings that it does not change, so a commit frees the replaced strings and
 * an abort frees the new ones. Boards borrow layouts, so existing ones keep their addresses too,
 * and new ones are appended. */
#include "server/settings/setting_private.h"

const struct setting *setting_find(struct bytes name) {
    for (const struct setting *setting = setting_table; setting->name != NULL; setting++) {
        if (bytes_is(name, setting->name)) {
            return setting;
        }
    }
    return NULL;
}

/* ---- Owned strings ---- */

static void free_string(struct settings *settings, char **slot) {
    if (!setting_value_is_borrowed(settings, slot)) {
        memory_free(*slot);
    }
}

static void free_strings(struct settings *settings) {
    for (const struct setting *setting = setting_table; setting->name != NULL; setting++) {
        char **slot = setting_value_string(settings, setting);
        if (slot != NULL) {
            free_string(settings, slot);
        }
    }
    for (size_t i = 0; i < SETTING_LIST_MAX; i++) {
        free_string(settings, &settings->bind[i]);
    }
    free_string(settings, &settings->default_layout_origin);
    free_string(settings, &settings->file_path);
}

/* ---- Drafts ---- */

void setting_draft_begin(struct settings *draft, struct settings *original) {
    *draft = *original;
    draft->original = original;
}

bool setting_draft_end(struct settings *draft, bool is_fine) {
    struct settings *original = draft->original;
    if (is_fine) {
        /* The other way round: free what the original does not share with the draft. */
        original->original = draft;
        free_strings(original);
        *original = *draft;
        original->original = NULL;
    } else {
        free_strings(draft);
        setting_board_truncate(draft, original->layout_count, original->rule_count);
    }
    return is_fine;
}

/* ---- Life cycle ---- */

static bool assign_default(struct settings *settings, const struct setting *setting) {
    struct setting_words words = {.count = 0};
    char reason[SETTING_ERROR_MAX];
    CHECK(setting_words_split(bytes_from_text(setting->default_value), &words, reason));
    return setting_value_assign(&(struct setting_input){.settings = settings,
                                                        .setting = setting,
                                                        .words = words.words,
                                                        .count = words.count,
                                                        .place = &(struct setting_place){0},
                                                        .reason = reason});
}

bool settings_init(struct settings *settings) {
    memset(settings, 0, sizeof *settings);
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
        return setting_fail(error,
                            "there is nothing to listen on: port is 0 and unixsocket is not set");
    }
    return setting_board_resolve(settings, error);
}

/* ---- CONFIG SET ---- */

static bool fail_set(char *error, struct bytes name, const char *reason) {
    return setting_fail(error, "CONFIG SET failed (possibly related to argument '%s') - %s",
                        bytes_show(name).text, reason);
}

/* Does every name exist, may it be changed, and is it given only once? */
static bool check_names(const struct bytes *pairs, uint32_t pair_count, char *error) {
    bool is_seen[SETTINGS_MAX] = {false};
    for (uint32_t i = 0; i < pair_count; i++) {
        struct bytes name = pairs[2 * i];
        const struct setting *setting = setting_find(name);
        if (setting == NULL) {
            return setting_fail(error,
                                "Unknown option or number of arguments for CONFIG SET - '%s'",
                                bytes_show(name).text);
        }
        if ((setting->flags & SETTING_FIXED) != 0) {
            return fail_set(error, name, "can't set immutable config");
        }
        if (is_seen[setting - setting_table]) {
            return fail_set(error, name, "duplicate parameter");
        }
        is_seen[setting - setting_table] = true;
    }
    return true;
}

bool settings_set(struct settings *settings, const struct bytes *pairs, uint32_t pair_count,
                  settings_check *check, void *context, char *error) {
    if (!check_names(pairs, pair_count, error)) {
        return false;
    }
    struct settings draft;
    char reason[SETTING_ERROR_MAX];
    const char *failed = NULL;
    setting_draft_begin(&draft, settings);
    for (uint32_t i = 0; i < pair_count && failed == NULL; i++) {
        const struct setting *setting = setting_find(pairs[2 * i]);
        CHECK(setting != NULL);
        struct setting_input input = {.settings = &draft,
                                      .setting = setting,
                                      .words = &pairs[2 * i + 1],
                                      .count = 1,
                                      .place = &(struct setting_place){0},
                                      .reason = reason};
        failed = setting_value_assign(&input) ? NULL : setting->name;
    }
    if (failed == NULL && check != NULL) {
        failed = check(context, &draft, reason);
    }
    return setting_draft_end(&draft, failed == NULL) ||
           fail_set(error, bytes_from_text(failed), reason);
}
