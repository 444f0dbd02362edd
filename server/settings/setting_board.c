/* Layouts by name, and the rules that give a new board its layout.
 *
 *     layout laps FIELD time_ms 32 ASC TIME 32 S     layouts[1]
 *     board race:* laps                              rules[0] -> layouts[1]
 *     board top:* default CAP 100                    rules[1] -> its own: layouts[0], and a cap
 *     default-layout default                         -> layouts[0], built in
 *
 * A rule may come before the layout that it names, so names are resolved at the end, after all
 * sources are read; until then a board line's rules are NULL. Layouts are borrowed, so they are
 * only added, never removed. */
#include "server/settings/setting_private.h"

#include "codec/glob.h"

static bool is_name(struct bytes name) {
    if (name.size == 0 || name.size > SETTING_LAYOUT_NAME_MAX) {
        return false;
    }
    for (size_t i = 0; i < name.size; i++) {
        char byte = name.at[i];
        if (!(byte >= 'a' && byte <= 'z') && !(byte >= 'A' && byte <= 'Z') &&
            !(byte >= '0' && byte <= '9') && byte != '_' && byte != '-') {
            return false;
        }
    }
    return true;
}

static bool fail_without_memory(char *reason) {
    return setting_fail(reason, SETTING_REASON_MAX, "out of memory");
}

static struct setting_layout *find_layout(const struct settings *settings, struct bytes name) {
    for (uint32_t i = 0; i < settings->layout_count; i++) {
        if (bytes_equal(bytes_from_text(settings->layouts[i]->name), name)) {
            return settings->layouts[i];
        }
    }
    return NULL;
}

const struct layout *settings_find_layout(const struct settings *settings, struct bytes name) {
    const struct setting_layout *found = find_layout(settings, name);
    return found != NULL ? &found->rules.layout : NULL;
}

/* ---- Layouts ---- */

static void destroy_layout(struct setting_layout *layout) {
    memory_free(layout->name);
    memory_free(layout->text);
    memory_free(layout);
}

/* Join the words with single blanks; NULL: no memory. */
static char *join_words(const struct bytes *words, size_t count) {
    size_t size = 1;
    for (size_t i = 0; i < count; i++) {
        size += words[i].size + 1;
    }
    char *text = memory_allocate(size);
    if (text == NULL) {
        return NULL;
    }
    char *at = text;
    for (size_t i = 0; i < count; i++) {
        if (i > 0) {
            *at++ = ' ';
        }
        memcpy(at, words[i].at, words[i].size);
        at += words[i].size;
    }
    *at = '\0';
    return text;
}

static struct setting_layout *create_layout(struct bytes name, const struct bytes *words,
                                            size_t count, const struct layout *layout) {
    struct setting_layout *created = memory_allocate_zeroed(sizeof *created);
    if (created == NULL) {
        return NULL;
    }
    created->rules.layout = *layout;
    created->name = setting_value_copy(name);
    created->text = join_words(words, count);
    if (created->name == NULL || created->text == NULL) {
        destroy_layout(created);
        return NULL;
    }
    return created;
}

bool setting_board_init(struct settings *settings) {
    static const struct bytes words[] = {
        BYTES_INIT("FIELD"), BYTES_INIT("score"), BYTES_INIT("33"), BYTES_INIT("SIGNED"),
        BYTES_INIT("TIME"),  BYTES_INIT("31"),    BYTES_INIT("S"),
    };
    struct layout layout;
    layout_init_default(&layout);
    settings->layouts[0] =
        create_layout(BYTES("default"), words, sizeof words / sizeof words[0], &layout);
    if (settings->layouts[0] == NULL) {
        return false;
    }
    settings->layout_count = 1;
    settings->default_rules = &settings->layouts[0]->rules;
    return true;
}

/* May this layout get this name? *is_there_already: this layout already has it, so there is nothing
 * to do. */
static bool check_new_name(const struct settings *settings, struct bytes name,
                           const struct layout *layout, const struct setting_place *place,
                           bool *is_there_already, char *reason) {
    *is_there_already = false;
    if (bytes_is(name, "default")) {
        return setting_fail(reason, SETTING_REASON_MAX,
                            "'default' is built in and cannot be changed; give your layout another "
                            "name and choose it with default-layout");
    }
    const struct layout *found = settings_find_layout(settings, name);
    if (found == NULL) {
        return true;
    }
    /* CONFIG REWRITE writes the command line's layouts into the file; the same command line must
     * still work afterwards. */
    if (place->is_argument && layout_equal(found, layout)) {
        *is_there_already = true;
        return true;
    }
    return setting_fail(reason, SETTING_REASON_MAX, "layout '%s' already exists",
                        setting_show(name).text);
}

bool setting_board_assign_layout(struct settings *settings, const struct bytes *words, size_t count,
                                 const struct setting_place *place, char *reason) {
    if (!is_name(words[0])) {
        return setting_fail(reason, SETTING_REASON_MAX,
                            "'%s' cannot be a layout's name: 1 to %d letters, digits, '_' and '-' "
                            "are allowed",
                            setting_show(words[0]).text, SETTING_LAYOUT_NAME_MAX);
    }
    struct layout layout;
    char error[LAYOUT_ERROR_MAX];
    if (layout_parse_words(words + 1, count - 1, &layout, error) != LAYOUT_OK) {
        return setting_fail(reason, SETTING_REASON_MAX, "%s", error);
    }
    bool is_there_already;
    if (!check_new_name(settings, words[0], &layout, place, &is_there_already, reason)) {
        return false;
    }
    if (is_there_already) {
        return true;
    }
    if (settings->layout_count == SETTING_LAYOUTS_MAX) {
        return setting_fail(reason, SETTING_REASON_MAX, "at most %d layouts are allowed",
                            SETTING_LAYOUTS_MAX - 1);
    }
    struct setting_layout *created = create_layout(words[0], words + 1, count - 1, &layout);
    if (created == NULL) {
        return fail_without_memory(reason);
    }
    settings->layouts[settings->layout_count++] = created;
    return true;
}

/* ---- Rules ---- */

/* "leaderboard.conf:12: board", "option --board"; NULL: no memory. */
static char *copy_place(const struct setting_place *place, const char *name) {
    char text[SETTING_REASON_MAX];
    if (place->file_name != NULL) {
        snprintf(text, sizeof text, "%s:%u: %s", setting_show_path(place->file_name).text,
                 place->line, name);
    } else {
        snprintf(text, sizeof text, "%s%s", place->is_argument ? "option --" : "", name);
    }
    return setting_value_copy(bytes_from_text(text));
}

static void deinit_rule(struct setting_rule *rule) {
    memory_free(rule->pattern);
    memory_free(rule->layout_name);
    memory_free(rule->origin);
    memory_free(rule->options);
    memory_free(rule->own);
    *rule = (struct setting_rule){0};
}

static bool is_same_text(const char *a, const char *b) {
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

/* Is there an equal earlier rule? Then this one would never apply. */
static bool has_rule(const struct settings *settings, const struct setting_rule *like) {
    for (uint32_t i = 0; i < settings->rule_count; i++) {
        const struct setting_rule *rule = &settings->rules[i];
        if (is_same_text(rule->pattern, like->pattern) &&
            is_same_text(rule->layout_name, like->layout_name) &&
            is_same_text(rule->options, like->options)) {
            return true;
        }
    }
    return false;
}

static bool check_rule(const struct bytes *words, size_t count, char *reason) {
    if (count < 2) {
        return setting_fail(
            reason, SETTING_REASON_MAX,
            "a pattern of keys and a layout's name are needed: board GLOB NAME " SETTING_OPTIONS);
    }
    if (words[0].size == 0 || words[0].size > GLOB_PATTERN_MAX) {
        return setting_fail(reason, SETTING_REASON_MAX, "a pattern of 1 to %d bytes is needed",
                            GLOB_PATTERN_MAX);
    }
    if (!is_name(words[1])) {
        return setting_fail(reason, SETTING_REASON_MAX, "'%s' is not a layout name",
                            setting_show(words[1]).text);
    }
    return true;
}

/* Parse the words after the layout's name. */
static bool init_options(struct setting_rule *rule, const struct bytes *words, size_t count,
                         char *reason) {
    if (count == 0) {
        return true;
    }
    rule->own = memory_allocate_zeroed(sizeof *rule->own);
    rule->options = join_words(words, count);
    if (rule->own == NULL || rule->options == NULL) {
        return fail_without_memory(reason);
    }
    return settings_parse_options(words, count, rule->own, reason);
}

/* On false the caller must still free what *rule owns. */
static bool init_rule(struct setting_rule *rule, const struct bytes *words, size_t count,
                      const struct setting_place *place, char *reason) {
    *rule = (struct setting_rule){
        .pattern = setting_value_copy(words[0]),
        .layout_name = setting_value_copy(words[1]),
        .origin = copy_place(place, "board"),
    };
    if (rule->pattern == NULL || rule->layout_name == NULL || rule->origin == NULL) {
        return fail_without_memory(reason);
    }
    return init_options(rule, words + 2, count - 2, reason);
}

bool setting_board_assign_rule(struct settings *settings, const struct bytes *words, size_t count,
                               const struct setting_place *place, char *reason) {
    struct setting_rule rule;
    if (!check_rule(words, count, reason)) {
        return false;
    }
    bool is_fine = init_rule(&rule, words, count, place, reason);
    bool is_new = is_fine && !has_rule(settings, &rule);
    if (is_new && settings->rule_count == SETTING_RULES_MAX) {
        is_fine = setting_fail(reason, SETTING_REASON_MAX, "at most %d board rules are allowed",
                               SETTING_RULES_MAX);
    }
    if (is_fine && is_new) {
        settings->rules[settings->rule_count++] = rule;
    } else {
        deinit_rule(&rule);
    }
    return is_fine;
}

void setting_board_truncate(struct settings *settings, uint32_t layout_count, uint32_t rule_count) {
    while (settings->layout_count > layout_count) {
        destroy_layout(settings->layouts[--settings->layout_count]);
        settings->layouts[settings->layout_count] = NULL;
    }
    while (settings->rule_count > rule_count) {
        deinit_rule(&settings->rules[--settings->rule_count]);
    }
}

/* ---- Names resolved ---- */

static const char *next_layout_name(const void *context, uint32_t index) {
    const struct settings *settings = context;
    return index < settings->layout_count ? settings->layouts[index]->name : NULL;
}

void settings_explain_layout(const struct settings *settings, struct bytes name, char *reason) {
    const char *nearest = setting_words_nearest(name, next_layout_name, settings);
    setting_fail(reason, SETTING_REASON_MAX, "there is no layout '%s'%s%s%s",
                 setting_show(name).text, nearest != NULL ? "; did you mean '" : "",
                 nearest != NULL ? nearest : "", nearest != NULL ? "'?" : "");
}

bool setting_board_assign_default(struct settings *settings, struct bytes name,
                                  const struct setting_place *place, char *reason) {
    const struct setting_layout *found = find_layout(settings, name);
    bool may_come_later = place->file_name != NULL || place->is_argument;
    if (!is_name(name)) {
        return setting_fail(reason, SETTING_REASON_MAX, "'%s' is not a layout name",
                            setting_show(name).text);
    }
    if (found == NULL && !may_come_later) {
        settings_explain_layout(settings, name, reason);
        return false;
    }
    char *origin = copy_place(place, "default-layout");
    if (origin == NULL || !setting_value_replace(&settings->default_layout_name, name)) {
        memory_free(origin);
        return fail_without_memory(reason);
    }
    memory_free(settings->default_layout_origin);
    settings->default_layout_origin = origin;
    settings->default_rules = found != NULL ? &found->rules : NULL;
    return true;
}

static bool resolve_rule(const struct settings *settings, struct setting_rule *rule, char *reason) {
    struct bytes name = bytes_from_text(rule->layout_name);
    const struct setting_layout *found = find_layout(settings, name);
    if (found == NULL) {
        settings_explain_layout(settings, name, reason);
        return false;
    }
    if (rule->own != NULL) {
        rule->own->layout = found->rules.layout;
    }
    rule->rules = rule->own != NULL ? rule->own : &found->rules;
    return settings_check_rules(rule->rules, reason);
}

bool setting_board_resolve(struct settings *settings, char *error) {
    char reason[SETTING_REASON_MAX];
    for (uint32_t i = 0; i < settings->rule_count; i++) {
        struct setting_rule *rule = &settings->rules[i];
        if (!resolve_rule(settings, rule, reason)) {
            return setting_fail(error, SETTING_ERROR_MAX, "%s: %s", rule->origin, reason);
        }
    }
    struct bytes name = bytes_from_text(settings->default_layout_name);
    const struct setting_layout *found = find_layout(settings, name);
    if (found == NULL) {
        settings_explain_layout(settings, name, reason);
        return setting_fail(error, SETTING_ERROR_MAX, "%s: %s", settings->default_layout_origin,
                            reason);
    }
    settings->default_rules = &found->rules;
    return true;
}

const struct rules *settings_rules_for(void *context, struct bytes key) {
    const struct settings *settings = context;
    for (uint32_t i = 0; i < settings->rule_count; i++) {
        const struct setting_rule *rule = &settings->rules[i];
        if (glob_matches(bytes_from_text(rule->pattern), key)) {
            return rule->rules;
        }
    }
    return settings->default_rules;
}

/* ---- Text out ---- */

static size_t print_layout(const struct setting_layout *layout, char *out) {
    return (size_t)sprintf(out, "%s %s", layout->name, layout->text);
}

static size_t print_rule(const struct setting_rule *rule, char *out) {
    size_t size = setting_words_quote(out, bytes_from_text(rule->pattern));
    size += (size_t)sprintf(out + size, " %s", rule->layout_name);
    return rule->options == NULL ? size : size + (size_t)sprintf(out + size, " %s", rule->options);
}

bool setting_board_print_line(const struct settings *settings, uint32_t id, uint32_t index,
                              char *out, size_t *size) {
    if (id == SETTING_LAYOUT) {
        /* layouts[0] is built in: no line gave it. */
        if (index + 1 >= settings->layout_count) {
            return false;
        }
        *size = print_layout(settings->layouts[index + 1], out);
        return true;
    }
    CHECK(id == SETTING_BOARD);
    if (index >= settings->rule_count) {
        return false;
    }
    *size = print_rule(&settings->rules[index], out);
    return true;
}
