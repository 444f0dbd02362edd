/* See rules_text.h. */
#include "server/tools/rules_text.h"

#include <stdio.h>

enum { WORDS_MAX = 1024 };

size_t rules_text_print(const struct rules *rules, const struct board_state *state, char *out) {
    size_t size = layout_print(&rules->layout, out);
    return size + settings_print_rules(rules, state, out + size);
}

bool rules_text_parse(struct bytes text, struct rules *rules, struct board_state *state,
                      char *error) {
    struct bytes words[WORDS_MAX];
    size_t count = 0;
    const char *reason = NULL;
    char why[SETTING_ERROR_MAX] = ""; /* more than LAYOUT_ERROR_MAX */
    while (text.size > 0 && count < WORDS_MAX) {
        words[count] = bytes_take_word(&text);
        count += words[count].size > 0;
    }
    memset(rules, 0, sizeof *rules);
    *state = (struct board_state){.from_ms = 0};
    size_t layout_count = layout_count_words(words, count);
    if (layout_parse_words(words, layout_count, &rules->layout, why) != LAYOUT_OK ||
        !settings_parse_rules(words + layout_count, count - layout_count, rules, state, why)) {
        snprintf(error, RULES_TEXT_ERROR_MAX, "%.900s", why);
        return false;
    }
    if (!rules_validate(rules, &reason)) {
        snprintf(error, RULES_TEXT_ERROR_MAX, "%s", reason);
        return false;
    }
    if (!rules_take_state(rules, state)) {
        snprintf(error, RULES_TEXT_ERROR_MAX, "rules: their options contradict each other");
        return false;
    }
    return true;
}
