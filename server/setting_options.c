/* Words <-> how a board behaves beside its layout.
 *
 *     CAP 100 KEEP BEST   ->   .cap = 100, .keeps_best = true */
#include "server/setting_private.h"
#include "skiplist/board.h"

struct option_parser {
    const struct bytes *words;
    size_t word_count;
    size_t next;
    struct rules *rules;
    char *reason;
    bool has_cap, has_keep;
};

/* Take the next word if it is this one. */
static bool take_word(struct option_parser *parser, const char *word) {
    if (parser->next == parser->word_count || !bytes_is(parser->words[parser->next], word)) {
        return false;
    }
    parser->next++;
    return true;
}

static bool is_at_end(const struct option_parser *parser) {
    return parser->next == parser->word_count;
}

/* The next word as somebody has written it. */
static struct setting_shown show_next(const struct option_parser *parser) {
    return setting_show(parser->words[parser->next]);
}

static bool parse_cap(struct option_parser *parser) {
    uint64_t cap;
    if (is_at_end(parser)) {
        return setting_fail(parser->reason, SETTING_REASON_MAX,
                            "CAP needs a number of members: 1..%u", (unsigned)BOARD_MEMBERS_MAX);
    }
    if (!bytes_parse_u64(parser->words[parser->next], &cap) || cap < 1 || cap > BOARD_MEMBERS_MAX) {
        return setting_fail(parser->reason, SETTING_REASON_MAX,
                            "CAP '%s' is no number of members: 1..%u are allowed",
                            show_next(parser).text, (unsigned)BOARD_MEMBERS_MAX);
    }
    parser->next++;
    parser->rules->cap = (uint32_t)cap;
    return true;
}

static bool parse_keep(struct option_parser *parser) {
    bool is_best = take_word(parser, "BEST");
    if (!is_best && !take_word(parser, "LAST")) {
        return is_at_end(parser) ? setting_fail(parser->reason, SETTING_REASON_MAX,
                                                "KEEP needs LAST or BEST behind it")
                                 : setting_fail(parser->reason, SETTING_REASON_MAX,
                                                "KEEP '%s' is unknown: LAST and BEST are allowed",
                                                show_next(parser).text);
    }
    parser->rules->keeps_best = is_best;
    return true;
}

typedef bool parse_option(struct option_parser *parser);

static bool parse_once(struct option_parser *parser, const char *name, bool *has_option,
                       parse_option *parse) {
    if (*has_option) {
        return setting_fail(parser->reason, SETTING_REASON_MAX, "%s is allowed once", name);
    }
    *has_option = true;
    return parse(parser);
}

static bool parse_one(struct option_parser *parser) {
    if (take_word(parser, "CAP")) {
        return parse_once(parser, "CAP", &parser->has_cap, parse_cap);
    }
    if (take_word(parser, "KEEP")) {
        return parse_once(parser, "KEEP", &parser->has_keep, parse_keep);
    }
    if (bytes_is(parser->words[parser->next], "FIELD") ||
        bytes_is(parser->words[parser->next], "TIME") ||
        bytes_is(parser->words[parser->next], "LAYOUT")) {
        return setting_fail(parser->reason, SETTING_REASON_MAX,
                            "'%s' is out of place: a layout is given once, before the options",
                            show_next(parser).text);
    }
    return setting_fail(parser->reason, SETTING_REASON_MAX,
                        "unknown board option '%s': " SETTING_OPTIONS " are allowed",
                        show_next(parser).text);
}

bool settings_parse_options(const struct bytes *words, size_t word_count, struct rules *rules,
                            char *reason) {
    struct rules parsed;
    struct option_parser parser = {
        .words = words, .word_count = word_count, .rules = &parsed, .reason = reason};
    rules_copy(rules, &parsed);
    while (!is_at_end(&parser)) {
        if (!parse_one(&parser)) {
            return false;
        }
    }
    rules_copy(&parsed, rules);
    return true;
}
