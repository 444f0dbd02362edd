/* Layouts by name, and the options that give a new board its layout.
 *
 *     layout laps FIELD time_ms 32 ASC TIME 32 S     layouts[1]
 *     board race:* laps                                rules[0] -> layouts[1]
 *     board top:* default CAP 100                      rules[1] -> its own: layouts[0], and a cap
 *     default-layout default decimals                -> layouts[0], and another that is built in
 *
 * A rule may come before the layout that it names, so names are resolved at the end, after all
 * sources are read; until then a board line's options are NULL. Layouts are borrowed by rules, so
 * CONFIG SET replaces either all rules, or all layouts and all rules. */
#include "server/settings/setting_private.h"

#include "codec/glob.h"

static bool setting_board_is_name(struct bytes name) {
    return name.size > 0 && name.size <= SETTING_LAYOUT_NAME_MAX && setting_value_is_of(name, "_-");
}

/* For scores that are no small integers, and for times as scores, in the units that programs have: those of
 * schedules are ASC, so that of equal times the first to come is the first to go. A line may give their names
 * to other layouts; what error texts say of them holds for these. */
static struct setting_layout ready_layouts[] = {
    {.name = (char[]){"decimals"}, .text = (char[]){"FIELD score 64 SIGNED SCALE 7 DOUBLE"}},
    {.name = (char[]){"int64"}, .text = (char[]){"FIELD score 64 SIGNED"}},
    {.name = (char[]){"seconds"}, .text = (char[]){"FIELD score 64 ASC SIGNED SCALE 7 DOUBLE"}},
    {.name = (char[]){"milliseconds"},
     .text = (char[]){"FIELD score 64 ASC SIGNED SCALE 4 DOUBLE"}},
};
enum { READY_LAYOUTS = sizeof ready_layouts / sizeof ready_layouts[0], READY_WORDS_MAX = 16 };

static struct setting_layout *setting_board_find_own_layout(const struct settings *settings,
                                                            struct bytes name) {
    for (uint32_t i = 0; i < settings->layout_count; i++) {
        if (bytes_equal(bytes_from_text(settings->layouts[i]->name), name)) {
            return settings->layouts[i];
        }
    }
    return NULL;
}

static struct setting_layout *setting_board_find_layout(const struct settings *settings,
                                                        struct bytes name) {
    struct setting_layout *found = setting_board_find_own_layout(settings, name);
    for (uint32_t i = 0; i < READY_LAYOUTS && found == NULL; i++) {
        found =
            bytes_equal(bytes_from_text(ready_layouts[i].name), name) ? &ready_layouts[i] : NULL;
    }
    return found;
}

const struct layout *setting_board_layout(const struct settings *settings, struct bytes name) {
    const struct setting_layout *found = setting_board_find_layout(settings, name);
    return found != NULL ? &found->options.layout : NULL;
}

/* ---- Layouts ---- */

static void setting_board_destroy_layout(struct setting_layout *layout) {
    memory_free(layout->name);
    memory_free(layout->text);
    memory_free(layout);
}

/* Join the words with single blanks; NULL: no memory. */
static char *setting_board_join_words(const struct bytes *words, size_t count) {
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

/* Takes over the text; NULL: no memory for it. */
static struct setting_layout *setting_board_create_layout(struct bytes name, char *text,
                                                          const struct layout *layout) {
    struct setting_layout *created = memory_allocate_zeroed(sizeof *created);
    if (created == NULL) {
        memory_free(text);
        return NULL;
    }
    created->options.layout = *layout;
    created->name = setting_value_copy(name);
    created->text = text;
    if (created->name == NULL || created->text == NULL) {
        setting_board_destroy_layout(created);
        return NULL;
    }
    return created;
}

bool setting_board_init(struct settings *settings) {
    struct layout layout;
    char error[LAYOUT_ERROR_MAX];
    for (uint32_t i = 0; i < READY_LAYOUTS; i++) {
        struct bytes text = bytes_from_text(ready_layouts[i].text);
        struct bytes words[READY_WORDS_MAX];
        size_t count = 0;
        while (count < READY_WORDS_MAX && (words[count] = bytes_take_word(&text)).size > 0) {
            count++;
        }
        bool is_ready =
            layout_parse_words(words, count, &ready_layouts[i].options.layout, error) == LAYOUT_OK;
        CHECK(is_ready);
    }
    layout_init_default(&layout);
    settings->layouts[0] = setting_board_create_layout(
        BYTES("default"), setting_value_copy(BYTES("FIELD score 33 SIGNED TIME 31 S")), &layout);
    settings->layout_count = settings->layouts[0] != NULL;
    return settings->layouts[0] != NULL;
}

bool setting_board_assign_layout(const struct setting_input *in) {
    struct settings *settings = in->settings;
    struct bytes name = in->words[0];
    struct layout layout;
    char error[LAYOUT_ERROR_MAX];
    if (!setting_board_is_name(name)) {
        return setting_value_fail(
            in->reason,
            "'%s' cannot be a layout's name: 1 to %d letters, digits, '_' and '-' "
            "are allowed",
            bytes_show(name).text, SETTING_LAYOUT_NAME_MAX);
    }
    if (layout_parse_words(in->words + 1, in->count - 1, &layout, error) != LAYOUT_OK) {
        return setting_value_fail(in->reason, "%s", error);
    }
    if (bytes_is(name, "default")) {
        return setting_value_fail(in->reason,
                                  "'default' is built in and cannot be changed; give your "
                                  "layout another name and choose it with default-layout");
    }
    const struct setting_layout *found = setting_board_find_own_layout(settings, name);
    if (found != NULL) {
        /* CONFIG REWRITE writes the command line's layouts into the file; the same command line
         * must still work afterwards. */
        return (in->origin->is_argument && layout_equal(&found->options.layout, &layout)) ||
               setting_value_fail(in->reason, "layout '%s' already exists", bytes_show(name).text);
    }
    if (settings->layout_count == SETTING_LAYOUTS_MAX) {
        return setting_value_fail(in->reason, "at most %d layouts are allowed",
                                  SETTING_LAYOUTS_MAX - 1);
    }
    struct setting_layout *created = setting_board_create_layout(
        name, setting_board_join_words(in->words + 1, in->count - 1), &layout);
    if (created == NULL) {
        return setting_value_fail(in->reason, "out of memory");
    }
    settings->layouts[settings->layout_count++] = created;
    return true;
}

/* ---- Rules ---- */

/* "leaderboard.conf:12: board", "option --board"; out: SETTING_ERROR_MAX. */
static void setting_board_print_origin(const struct setting_origin *origin, const char *name,
                                       char *out) {
    if (origin->file_name != NULL) {
        snprintf(out, SETTING_ERROR_MAX, "%s:%u: %s",
                 setting_value_show_path(origin->file_name).text, origin->line, name);
    } else {
        snprintf(out, SETTING_ERROR_MAX, "%s%s", origin->is_argument ? "option --" : "", name);
    }
}

static void setting_board_deinit_rule(struct setting_rule *rule) {
    memory_free(rule->pattern);
    memory_free(rule->layout_name);
    memory_free(rule->origin);
    memory_free(rule->text);
    memory_free(rule->own);
    memory_free(rule->tags);
    *rule = (struct setting_rule){0};
}

static bool setting_board_is_same_text(const char *a, const char *b) {
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

/* false: no memory. */
static bool setting_board_keep_tags(struct setting_rule *rule, const struct tag_set *tags) {
    if (tags == NULL || tags->count == 0) {
        return true;
    }
    rule->tags = memory_allocate(sizeof *rule->tags);
    if (rule->tags != NULL) {
        *rule->tags = *tags;
    }
    return rule->tags != NULL;
}

/* On false the caller must still free what *rule owns. */
static bool setting_board_init_rule(struct setting_rule *rule, const struct setting_input *in) {
    const struct bytes *options = in->words + 2;
    size_t option_count = in->count - 2;
    char origin[SETTING_ERROR_MAX];
    setting_board_print_origin(in->origin, "board", origin);
    *rule = (struct setting_rule){
        .pattern = setting_value_copy(in->words[0]),
        .layout_name = setting_value_copy(in->words[1]),
        .origin = setting_value_copy(bytes_from_text(origin)),
    };
    if (option_count > 0) {
        rule->own = memory_allocate_zeroed(sizeof *rule->own);
        rule->text = setting_board_join_words(options, option_count);
    }
    if (rule->pattern == NULL || rule->layout_name == NULL || rule->origin == NULL ||
        (option_count > 0 && (rule->own == NULL || rule->text == NULL))) {
        return setting_value_fail(in->reason, "out of memory");
    }
    if (option_count == 0) {
        return true;
    }
    return setting_options_parse(SETTING_TAKES_LINE, options, option_count, rule->own, NULL,
                                 in->reason) &&
           (setting_board_keep_tags(rule, &rule->own->layout.tags) ||
            setting_value_fail(in->reason, "out of memory"));
}

bool setting_board_assign_rule(const struct setting_input *in) {
    struct settings *settings = in->settings;
    struct setting_rule rule;
    if (in->count < 2) {
        return setting_value_fail(
            in->reason,
            "a pattern of keys and a layout's name are needed: board GLOB NAME " SETTING_OPTIONS);
    }
    if (in->words[0].size == 0 || in->words[0].size > GLOB_PATTERN_MAX) {
        return setting_value_fail(in->reason, "a pattern of 1 to %d bytes is needed",
                                  GLOB_PATTERN_MAX);
    }
    if (!setting_board_is_name(in->words[1])) {
        return setting_value_fail(in->reason, "'%s' is not a layout name",
                                  bytes_show(in->words[1]).text);
    }
    bool is_fine = setting_board_init_rule(&rule, in);
    bool is_new = is_fine;
    /* Behind an equal one it would never apply. */
    for (uint32_t i = 0; i < settings->rule_count && is_new; i++) {
        const struct setting_rule *earlier = &settings->rules[i];
        is_new = !setting_board_is_same_text(earlier->pattern, rule.pattern) ||
                 !setting_board_is_same_text(earlier->layout_name, rule.layout_name) ||
                 !setting_board_is_same_text(earlier->text, rule.text);
    }
    if (is_new && settings->rule_count == SETTING_RULES_MAX) {
        is_fine =
            setting_value_fail(in->reason, "at most %d board rules are allowed", SETTING_RULES_MAX);
    }
    if (is_fine && is_new) {
        settings->rules[settings->rule_count++] = rule;
    } else {
        setting_board_deinit_rule(&rule);
    }
    return is_fine;
}

void setting_board_truncate(struct settings *settings, uint32_t layout_count, uint32_t rule_count) {
    while (settings->layout_count > layout_count) {
        setting_board_destroy_layout(settings->layouts[--settings->layout_count]);
        settings->layouts[settings->layout_count] = NULL;
    }
    while (settings->rule_count > rule_count) {
        setting_board_deinit_rule(&settings->rules[--settings->rule_count]);
    }
}

/* ---- CONFIG SET ---- */

bool setting_board_replace(const struct setting_input *in) {
    struct settings *draft = in->settings;
    struct bytes rest = in->words[0];
    struct bytes line;
    if (in->setting->kind.type == SETTING_TYPE_LAYOUT) {
        draft->has_own_layouts = true;
        draft->layout_count = 1;
    } else if (in->setting->kind.type == SETTING_TYPE_PLAYER_KEY) {
        draft->player_key_count = 0;
    } else {
        draft->has_own_rules = true;
        draft->rule_count = 0;
    }
    while (bytes_take_line(&rest, &line)) {
        if (!setting_value_is_silent_line(line) && !setting_value_assign_text(in, line)) {
            return false;
        }
    }
    return true;
}

bool setting_board_repeat_rules(struct settings *draft, char *reason) {
    const struct settings *original = draft->original;
    draft->has_own_rules = true;
    draft->rule_count = 0;
    for (uint32_t i = 0; i < original->rule_count; i++) {
        const struct setting_rule *rule = &original->rules[i];
        struct setting_rule *copy = &draft->rules[draft->rule_count++];
        *copy = (struct setting_rule){
            .pattern = setting_value_copy(bytes_from_text(rule->pattern)),
            .layout_name = setting_value_copy(bytes_from_text(rule->layout_name)),
            .origin = setting_value_copy(bytes_from_text(rule->origin)),
            .text = rule->text != NULL ? setting_value_copy(bytes_from_text(rule->text)) : NULL,
            .own = rule->own != NULL ? memory_allocate(sizeof *rule->own) : NULL,
        };
        if (copy->pattern == NULL || copy->layout_name == NULL || copy->origin == NULL ||
            (rule->text != NULL && copy->text == NULL) ||
            (rule->own != NULL && copy->own == NULL) ||
            !setting_board_keep_tags(copy, rule->tags)) {
            return setting_value_fail(reason, "out of memory");
        }
        if (rule->own != NULL) {
            board_options_copy(rule->own, copy->own);
        }
    }
    return true;
}

void setting_board_drop_own(struct settings *draft) {
    const struct settings *original = draft->original;
    setting_board_truncate(draft, draft->has_own_layouts ? 1 : original->layout_count,
                           draft->has_own_rules ? 0 : original->rule_count);
}

void setting_board_drop_replaced(struct settings *original, const struct settings *draft) {
    setting_board_truncate(original, draft->has_own_layouts ? 1 : original->layout_count,
                           draft->has_own_rules ? 0 : original->rule_count);
}

/* ---- Names resolved ---- */

static const char *setting_board_next_layout_name(const void *context, uint32_t index) {
    const struct settings *settings = context;
    uint32_t ready = index - settings->layout_count;
    return index < settings->layout_count ? settings->layouts[index]->name
           : ready < READY_LAYOUTS        ? ready_layouts[ready].name
                                          : NULL;
}

void setting_board_explain(const struct settings *settings, struct bytes name, char *reason) {
    setting_value_fail_unknown(reason, "there is no layout", name, setting_board_next_layout_name,
                               settings, "");
}

/* default_options, of the names that are known by now. false: reason names the first one that is not. */
static bool setting_board_find_defaults(struct settings *settings, char *reason) {
    struct bytes names = bytes_from_text(settings->default_layouts);
    for (uint32_t i = 0; i < settings->default_count; i++) {
        struct bytes name = bytes_take_word(&names);
        const struct setting_layout *found = setting_board_find_layout(settings, name);
        if (found == NULL) {
            setting_board_explain(settings, name, reason);
            return false;
        }
        settings->default_options[i] = &found->options;
    }
    return true;
}

bool setting_board_assign_default(const struct setting_input *in) {
    struct settings *settings = in->settings;
    char origin[SETTING_ERROR_MAX];
    char reason[SETTING_ERROR_MAX];
    bool may_come_later = in->origin->file_name != NULL || in->origin->is_argument;
    if (in->count > SETTING_DEFAULT_LAYOUTS_MAX) {
        return setting_value_fail(in->reason, "at most %d layouts are allowed",
                                  SETTING_DEFAULT_LAYOUTS_MAX);
    }
    for (size_t i = 0; i < in->count; i++) {
        if (!setting_board_is_name(in->words[i])) {
            return setting_value_fail(in->reason, "'%s' is not a layout name",
                                      bytes_show(in->words[i]).text);
        }
        for (size_t j = 0; j < i; j++) {
            if (bytes_equal(in->words[j], in->words[i])) {
                return setting_value_fail(in->reason, "layout '%s' is given twice",
                                          bytes_show(in->words[i]).text);
            }
        }
        if (!may_come_later && setting_board_find_layout(in->settings, in->words[i]) == NULL) {
            setting_board_explain(in->settings, in->words[i], in->reason);
            return false;
        }
    }
    setting_board_print_origin(in->origin, "default-layout", origin);
    char *names = setting_board_join_words(in->words, in->count);
    bool is_kept =
        names != NULL &&
        setting_value_replace(settings, &settings->default_layouts, bytes_from_text(names)) &&
        setting_value_replace(settings, &settings->default_layout_origin, bytes_from_text(origin));
    memory_free(names);
    if (!is_kept) {
        return setting_value_fail(in->reason, "out of memory");
    }
    settings->default_count = (uint32_t)in->count;
    (void)!setting_board_find_defaults(settings, reason); /* again when all layouts are known */
    return true;
}

bool setting_board_is_default(const struct settings *settings, const char *name) {
    struct bytes names = bytes_from_text(settings->default_layouts);
    for (uint32_t i = 0; i < settings->default_count; i++) {
        if (bytes_equal(bytes_take_word(&names), bytes_from_text(name))) {
            return true;
        }
    }
    return false;
}

static bool setting_board_resolve_rule(const struct settings *settings, struct setting_rule *rule,
                                       char *reason) {
    struct bytes name = bytes_from_text(rule->layout_name);
    const struct setting_layout *found = setting_board_find_layout(settings, name);
    if (found == NULL) {
        setting_board_explain(settings, name, reason);
        return false;
    }
    if (rule->own != NULL) {
        rule->own->layout = found->options.layout;
        struct tag_set *tags = &rule->own->layout.tags;
        for (unsigned i = 0; rule->tags != NULL && i < rule->tags->count; i++) {
            char text[BYTES_INTEGER_TEXT_MAX];
            const struct tag *tag = &rule->tags->tags[i];
            struct bytes bits = {.at = text, .size = bytes_print_u64(text, tag->bits)};
            struct bytes tag_name = bytes_from_text(tag->name);
            int index = tag_set_find(tags, tag_name);
            if (!(index >= 0 ? tag_set_resize(tags, (unsigned)index, bits, reason)
                             : tag_set_add(tags, tag_name, bits, reason))) {
                return false;
            }
        }
    }
    rule->options = rule->own != NULL ? rule->own : &found->options;
    if (rule->options->is_packed && rule->options->period.unit != PERIOD_NONE) {
        return setting_value_fail(reason,
                                  "PACKED and PERIOD exclude each other: a PERIOD moves the "
                                  "START of times that are packed already. LB.ALTER gives "
                                  "the board its PERIOD after the move");
    }
    return setting_options_check(rule->options, reason);
}

bool setting_board_resolve_from(struct settings *settings, uint32_t *next, char *error) {
    char reason[SETTING_ERROR_MAX];
    while (*next < settings->rule_count) {
        struct setting_rule *rule = &settings->rules[(*next)++];
        if (!setting_board_resolve_rule(settings, rule, reason)) {
            return setting_value_fail(error, "%s: %s", rule->origin, reason);
        }
    }
    return (*next)++ > settings->rule_count || setting_board_find_defaults(settings, reason) ||
           setting_value_fail(error, "%s: %s", settings->default_layout_origin, reason);
}

bool setting_board_resolve(struct settings *settings, char *error) {
    uint32_t next = 0;
    return setting_board_resolve_from(settings, &next, error);
}

const char *setting_board_find_taking(const struct settings *settings,
                                      const struct layout_field *field, struct bytes text) {
    const struct setting_layout *taking = NULL;
    bool is_known = false;
    struct bytes names = bytes_from_text(settings->default_layouts);
    for (uint32_t i = 0; i < settings->default_count + READY_LAYOUTS; i++) {
        const struct setting_layout *layout = setting_board_find_layout(
            settings, i < settings->default_count
                          ? bytes_take_word(&names)
                          : bytes_from_text(ready_layouts[i - settings->default_count].name));
        const struct layout_field *lead = &layout->options.layout.fields[0];
        struct decimal value;
        uint64_t ordinal;
        bool takes = layout->options.layout.field_count == 1 &&
                     layout_field_parse(lead, text, &value) == DECIMAL_OK &&
                     layout_field_ordinal(lead, value, &ordinal) == LAYOUT_OK;
        is_known |= lead->bits == field->bits && lead->scale == field->scale &&
                    lead->is_signed == field->is_signed &&
                    lead->is_ascending == field->is_ascending &&
                    strcmp(lead->name, field->name) == 0;
        taking = taking == NULL && takes ? layout : taking;
    }
    return is_known && taking != NULL && settings->default_count > 1 ? taking->name : NULL;
}

const struct board_options *setting_board_options_for(void *context, struct bytes key,
                                                      uint32_t choice) {
    const struct settings *settings = context;
    for (uint32_t i = 0; i < settings->rule_count; i++) {
        const struct setting_rule *rule = &settings->rules[i];
        if (glob_matches(bytes_from_text(rule->pattern), key)) {
            return choice == 0 ? rule->options : NULL;
        }
    }
    return choice < settings->default_count ? settings->default_options[choice] : NULL;
}
