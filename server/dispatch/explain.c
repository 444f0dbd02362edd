/* From a request that does not fit its command's syntax to a text that helps. See explain.h.
 *
 *     key start stop [REV] [LIMIT offset count]       the arguments of the entry
 *     w   0     9     rev   LIMIT  5      -           the words; the match gets stuck at the end, in count
 *
 * The match is greedy, takes options in any order, and goes back only to the beginning of an option that lacks a
 * word. So it reads each word a few times at most. */
#include "server/dispatch/explain.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>

#include "codec/decimal.h"
#include "server/dispatch/category.h"
#include "server/dispatch/syntax.h"

enum {
    WANTED_MAX = 64,    /* arguments that could stand where the match got stuck */
    WORD_SHOWN = 48,    /* bytes of a client's word, before it is escaped */
    WANTED_SHOWN = 320, /* bytes of the words that were expected */
    SYNTAX_SHOWN = 320, /* bytes of the syntax */
    REASON_SHOWN = 512,
};

struct text {
    char *at;
    size_t size, used;
};

__attribute__((format(printf, 2, 3))) static void explain_put(struct text *out, const char *format,
                                                              ...) {
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(out->at + out->used, out->size - out->used, format, arguments);
    va_end(arguments);
    size_t left = out->size - 1 - out->used;
    out->used += size < 0 ? 0 : (size_t)size < left ? (size_t)size : left;
}

/* 'w', with \xff for bytes that are no printable ASCII. */
static void explain_put_word(struct text *out, struct bytes word) {
    size_t size = word.size < WORD_SHOWN ? word.size : WORD_SHOWN;
    explain_put(out, "'");
    for (size_t i = 0; i < size; i++) {
        unsigned char byte = (unsigned char)word.at[i];
        bool is_plain = byte >= ' ' && byte <= '~' && byte != '\'' && byte != '\\';
        explain_put(out, is_plain ? "%c" : "\\x%02x", byte);
    }
    explain_put(out, size < word.size ? "...'" : "'");
}

/* Is LB. in its own name? Otherwise it is a subcommand. */
static bool explain_is_named(const struct command *command) {
    return strncmp(command->name, "LB.", 3) == 0;
}

/* ---- names that are nearly the same ---- */

/* So far apart is too far for a misspelling. */
static unsigned explain_limit(struct bytes word) {
    return word.size < 3 ? 1 : word.size < 6 ? 2 : 3;
}

/* ---- matching ---- */

/* A place in the request: the argument that is there, and the option or optional part that it belongs to. */
struct place {
    const struct argument *argument, *inside; /* NULL: none */
    uint32_t inside_at;                       /* index of the first word of that */
};

struct match {
    const struct command *command;
    const struct request *request;
    uint32_t next;     /* index of the next word */
    struct place here; /* argument: unused */
    /* Where the match got stuck furthest to the right, and what could have stood there. */
    uint32_t stuck_at;
    struct place stuck;
    const struct argument *wanted[WANTED_MAX];
    uint32_t wanted_count;
    bool must_follow; /* one of them has to */
    bool is_over;     /* an option has begun, and lacks a word: it is taken for nothing else */
    const struct argument
        *given; /* it was given before, and comes once; or an alternative was; NULL: neither */
    /* What the word at this index was taken for. */
    uint32_t asked_at;
    struct place asked;
};

static uint32_t explain_match_left(const struct match *match) {
    return match->request->count - match->next;
}

static struct bytes explain_match_word(const struct match *match) {
    return match->request->args[match->next];
}

/* Returns false. must_follow: it is no option, which could as well be absent. */
static bool explain_match_fail(struct match *match, const struct argument *argument,
                               bool must_follow) {
    if (match->next > match->stuck_at) {
        match->stuck_at = match->next;
        match->wanted_count = 0;
        match->must_follow = false;
        match->given = NULL;
    }
    if (match->next < match->stuck_at || (match->must_follow && !must_follow)) {
        return false;
    }
    if (must_follow && !match->must_follow) {
        match->wanted_count = 0;
        match->must_follow = true;
    }
    if (match->wanted_count == 0) {
        match->stuck = match->here;
    }
    bool is_new = match->wanted_count < WANTED_MAX;
    for (uint32_t i = 0; i < match->wanted_count; i++) {
        is_new = is_new && match->wanted[i] != argument;
    }
    if (is_new) {
        match->wanted[match->wanted_count++] = argument;
    }
    return false;
}

static void explain_match_take(struct match *match, const struct argument *argument) {
    if (match->next == match->asked_at) {
        match->asked = match->here;
        match->asked.argument = argument;
    }
    match->next++;
}

/* The argument of a list that has this token, at whatever depth. NULL: none has. */
static const struct argument *explain_match_find_token(const struct argument *list,
                                                       struct bytes word) {
    const struct argument *found = NULL;
    if (word.size == 0 || word.size > COMMAND_NAME_MAX || !isalpha((unsigned char)word.at[0])) {
        return NULL;
    }
    for (; found == NULL && list != NULL && list->name != NULL; list++) {
        bool is_it = list->token != NULL && bytes_is(word, list->token);
        found = is_it ? list : explain_match_find_token(list->children, word);
    }
    return found;
}

static bool explain_match_list(struct match *match, const struct argument *list, uint32_t reserve);
static bool explain_match_argument(struct match *match, const struct argument *argument,
                                   int64_t times, uint32_t reserve);

/* An argument without its token, once. reserve: the fewest words that must follow. */
static bool explain_match_value(struct match *match, const struct argument *argument,
                                uint32_t reserve) {
    uint32_t begin = match->next;
    if (argument->type == ARGUMENT_PURE_TOKEN) {
        return true;
    }
    if (argument->type == ARGUMENT_BLOCK) {
        return explain_match_list(match, argument->children, reserve);
    }
    if (argument->type != ARGUMENT_ONEOF) {
        bool is_integer =
            argument->type == ARGUMENT_INTEGER || argument->type == ARGUMENT_UNIX_TIME;
        int64_t integer;
        uint64_t natural;
        if (explain_match_left(match) == 0 ||
            (is_integer && !bytes_parse_i64(explain_match_word(match), &integer) &&
             !bytes_parse_u64(explain_match_word(match), &natural))) {
            return explain_match_fail(match, argument, true);
        }
        explain_match_take(match, argument);
        return true;
    }
    /* First those that begin with their token: that is taken for nothing else. */
    for (int with_token = 1; with_token >= 0; with_token--) {
        for (const struct argument *choice = argument->children;
             choice != NULL && choice->name != NULL; choice++) {
            if ((choice->token != NULL) != (with_token == 1)) {
                continue;
            }
            if (explain_match_argument(match, choice, 0, reserve)) {
                return true;
            }
            match->is_over = match->is_over || (choice->token != NULL && match->next > begin);
            if (match->is_over) {
                return false;
            }
            match->next = begin;
        }
    }
    return false;
}

/* An argument, as often as it may come. times: how often, if a number before it says so; else 0. */
static bool explain_match_argument(struct match *match, const struct argument *argument,
                                   int64_t times, uint32_t reserve) {
    struct place here = match->here;
    const struct argument *all = match->command->arguments;
    if (argument->flags == ARGUMENT_MULTIPLE && argument->children == NULL && times == 0 &&
        argument->token == NULL && explain_match_left(match) > 0 &&
        explain_match_find_token(all, explain_match_word(match)) != NULL) {
        return explain_match_fail(match, argument, true); /* an option instead of the first */
    }
    if (argument->token != NULL) {
        if (explain_match_left(match) == 0 ||
            !bytes_is(explain_match_word(match), argument->token)) {
            match->here = here;
            return explain_match_fail(match, argument, true);
        }
        match->here = (struct place){.inside = argument, .inside_at = match->next};
        explain_match_take(match, argument);
    }
    bool is_matched = explain_match_value(match, argument, reserve);
    /* What has a token and may come again is an option, which explain_match_options tries again. */
    bool is_list = (argument->flags & ARGUMENT_MULTIPLE) != 0 &&
                   (argument->flags & ARGUMENT_MULTIPLE_TOKEN) == 0;
    for (int64_t i = 1; is_matched && is_list; i++) {
        if (times > 0 ? i == times
                      : explain_match_left(match) <= reserve ||
                            explain_match_find_token(all, explain_match_word(match)) != NULL) {
            break;
        }
        uint32_t begin = match->next;
        is_matched = explain_match_value(match, argument, reserve);
        if (!is_matched && times == 0 && !match->is_over) {
            match->next = begin;
            is_matched = true;
            break;
        }
    }
    match->here = here;
    return is_matched;
}

/* The argument whose token may begin this one. NULL: none that this word is. */
static const struct argument *explain_match_start(const struct argument *argument,
                                                  struct bytes word) {
    const struct argument *child = argument->children;
    const struct argument *found = NULL;
    if (argument->token != NULL) {
        return bytes_is(word, argument->token) ? argument : NULL;
    }
    for (; found == NULL && child != NULL && child->name != NULL; child++) {
        found = explain_match_start(child, word);
        if (argument->type == ARGUMENT_BLOCK && (child->flags & ARGUMENT_OPTIONAL) == 0) {
            break;
        }
    }
    return found;
}

/* Does it begin with a word, not with a token? */
static bool explain_match_is_by_place(const struct argument *argument) {
    return argument->token == NULL &&
           (argument->children == NULL ||
            (argument->type == ARGUMENT_BLOCK && explain_match_is_by_place(argument->children)));
}

/* *given: what was given of this option before; NULL: nothing. */
static bool explain_match_option(struct match *match, const struct argument *option,
                                 const struct argument **given, uint32_t reserve) {
    bool must_follow = (option->flags & ARGUMENT_OPTIONAL) == 0 && *given == NULL;
    bool is_by_place = explain_match_is_by_place(option);
    const struct argument *start = option;
    if (explain_match_left(match) > 0 && !is_by_place) {
        start = explain_match_start(option, explain_match_word(match));
    } else if (explain_match_left(match) == 0 ||
               explain_match_find_token(match->command->arguments, explain_match_word(match))) {
        start = NULL;
    }
    if (is_by_place && *given != NULL) {
        return false;
    }
    if (start == NULL) {
        return explain_match_fail(match, option, must_follow);
    }
    const struct binding *binding = *given != NULL ? match->command->bindings : NULL;
    while (binding != NULL && binding->word != NULL && strcmp(binding->word, start->token) != 0) {
        binding++;
    }
    bool comes_once =
        binding != NULL && binding->word != NULL && binding->repeat != BINDING_LAST_COUNTS;
    if (*given != NULL && (start != *given || comes_once)) {
        explain_match_fail(match, option, true);
        match->given = match->next == match->stuck_at ? *given : match->given;
        match->is_over = true;
        return false;
    }
    struct place here = match->here;
    uint32_t begin = match->next;
    match->here = (struct place){.inside = start, .inside_at = begin};
    bool is_matched = explain_match_argument(match, option, 0, reserve);
    match->here = here;
    if (is_matched) {
        *given = start;
    } else {
        match->next = begin;
        match->is_over = !is_by_place;
    }
    return is_matched;
}

/* The fewest words of a list. */
static uint32_t explain_match_reserve(const struct argument *list) {
    uint32_t count = 0;
    for (; list->name != NULL; list++) {
        if ((list->flags & ARGUMENT_OPTIONAL) == 0) {
            count += list->type == ARGUMENT_BLOCK ? explain_match_reserve(list->children) : 1;
            count += list->token != NULL && list->type != ARGUMENT_PURE_TOKEN;
        }
    }
    return count;
}

/* Options, and what must be there but has a token, come in any order. NULL: one that must be there is not. */
static const struct argument *explain_match_options(struct match *match,
                                                    const struct argument *list, uint32_t reserve) {
    enum { OPTIONS_MAX = 64 };
    const struct argument *given[OPTIONS_MAX] = {NULL};
    const struct argument *end = list;
    while (end->name != NULL && end - list < OPTIONS_MAX &&
           ((end->flags & ARGUMENT_OPTIONAL) != 0 || end->token != NULL)) {
        end++;
    }
    reserve += explain_match_reserve(end);
    for (bool is_more = true; is_more;) {
        is_more = false;
        for (const struct argument *option = list; option < end && !match->is_over; option++) {
            is_more =
                explain_match_option(match, option, &given[option - list], reserve) || is_more;
        }
    }
    bool is_whole = !match->is_over;
    for (const struct argument *option = list; option < end; option++) {
        is_whole =
            is_whole && ((option->flags & ARGUMENT_OPTIONAL) != 0 || given[option - list] != NULL);
    }
    return is_whole ? end : NULL;
}

static bool explain_match_list(struct match *match, const struct argument *list, uint32_t reserve) {
    int64_t times = 0; /* of what may be repeated, as the number before it says; 0: there is none */
    while (list->name != NULL) {
        uint32_t begin = match->next;
        if ((list->flags & ARGUMENT_OPTIONAL) != 0 || list->token != NULL) {
            list = explain_match_options(match, list, reserve);
            if (list == NULL) {
                return false;
            }
            times = 0;
            continue;
        }
        if (!explain_match_argument(match, list, times,
                                    reserve + explain_match_reserve(list + 1))) {
            return false;
        }
        bool is_count = list->type == ARGUMENT_INTEGER && list[1].name != NULL &&
                        (list[1].flags & ARGUMENT_MULTIPLE) != 0;
        times = 0;
        if (is_count && (!bytes_parse_i64(match->request->args[begin], &times) || times < 1)) {
            match->next = begin;
            return explain_match_fail(match, list, true);
        }
        list++;
    }
    return true;
}

/* asked_at: the index of a word that is no good for another reason; 0: none is. false: the request does not fit. */
static bool explain_match_request(struct match *match, const struct command *command,
                                  const struct request *request, uint32_t first,
                                  uint32_t asked_at) {
    *match =
        (struct match){.command = command, .request = request, .next = first, .asked_at = asked_at};
    bool is_matched =
        command->arguments == NULL || explain_match_list(match, command->arguments, 0);
    if (is_matched && match->next < request->count && match->stuck_at < match->next) {
        match->stuck_at = match->next;
        match->wanted_count = 0;
    }
    return is_matched && match->next == request->count;
}

/* ---- what to say ---- */

/* Words that other servers or commands know, and what takes their place. */
static const struct {
    const char *word, *text;
} familiar_words[] = {
    {"WITHSCORES", "records have scores already; without WITHSCORES"},
    {"WITHSCORE", "records have scores already; without WITHSCORE"},
    {"GT", "BEST keeps the better result; without GT"},
    {"LT", "BEST keeps the better result; without LT"},
    {"BYLEX", "boards have no order by name; without BYLEX"},
    {"DESC", "the best come first already; without DESC"},
    {"ASC", "REV begins with the worst; without ASC"},
};

static const char *explain_say_familiar(const struct command *command, struct bytes word) {
    for (size_t i = 0; i < sizeof familiar_words / sizeof familiar_words[0]; i++) {
        if (bytes_is(word, familiar_words[i].word)) {
            return explain_match_find_token(command->arguments, word) == NULL
                       ? familiar_words[i].text
                       : NULL;
        }
    }
    return NULL;
}

/* The token of a list, at whatever depth, that the word may be a misspelling of. */
static const char *explain_say_near_token(const struct argument *list, struct bytes word,
                                          unsigned *best) {
    const char *near = NULL;
    for (; list != NULL && list->name != NULL; list++) {
        const char *inner = explain_say_near_token(list->children, word, best);
        near = inner != NULL ? inner : near;
        if (list->token != NULL) {
            unsigned distance = bytes_distance(word, bytes_from_text(list->token), true);
            if (distance > 0 && distance < *best) {
                near = list->token;
                *best = distance;
            }
        }
    }
    return near;
}

/* " (LB.RANGE key start stop [LIMIT offset count] ...)" */
static void explain_say_syntax(struct text *out, const struct command *command,
                               const struct argument *inside) {
    char syntax[SYNTAX_SHOWN];
    if (command->subcommands != NULL) {
        explain_put(out, " (%s <", command->name);
        for (int i = 0; command->subcommands[i] != NULL; i++) {
            explain_put(out, "%s%s", i > 0 ? " | " : "", command->subcommands[i]->name);
        }
        explain_put(out, "> ...)");
        return;
    }
    char name[COMMAND_FULL_NAME_MAX];
    snprintf(name, sizeof name, "%s",
             explain_is_named(command) ? command->name : command_full_name(command_index(command)));
    for (char *at = name; *at != '\0'; at++) {
        *at = *at == '|' ? ' ' : (char)toupper((unsigned char)*at);
    }
    size_t size = syntax_print_short(command, inside, syntax, sizeof syntax);
    explain_put(out, " (%s%s%s)", name, size > 0 ? " " : "", syntax);
}

/* "members" of "n member...": what a number counts. NULL: nothing. */
static const char *explain_say_counted(const struct argument *argument) {
    const struct argument *next = argument + 1;
    if (argument->type != ARGUMENT_INTEGER || next->name == NULL ||
        (next->flags & ARGUMENT_MULTIPLE) == 0) {
        return NULL;
    }
    return next->type == ARGUMENT_KEY     ? "board"
           : next->type == ARGUMENT_BLOCK ? next->children->name
                                          : next->name;
}

/* "NX", "NX, XX", "member", "number of members": how an argument can begin. count: of those before. */
static void explain_say_wanted(struct text *out, const struct match *match,
                               const struct argument *argument, unsigned *count, unsigned total) {
    /* Of an option that has begun only the value is missing. */
    bool has_token = argument->token != NULL && argument != match->stuck.inside;
    bool is_choice = !has_token && argument->type == ARGUMENT_ONEOF;
    if (is_choice) {
        for (const struct argument *one = argument->children; one->name != NULL; one++) {
            explain_say_wanted(out, match, one, count, total);
        }
        return;
    }
    if (!has_token && argument->type == ARGUMENT_BLOCK) {
        explain_say_wanted(out, match, argument->children, count, total);
        return;
    }
    const char *counted = has_token ? NULL : explain_say_counted(argument);
    explain_put(out, "%s%s%s%s",
                *count == 0           ? ""
                : *count + 1 == total ? " or "
                                      : ", ",
                counted != NULL ? "number of "
                : has_token     ? argument->token
                                : argument->name,
                counted != NULL ? counted : "", counted != NULL ? "s" : "");
    ++*count;
}

static void explain_say_all_wanted(struct text *out, const struct match *match) {
    char unused[2];
    struct text counting = {.at = unused, .size = sizeof unused};
    char list[WANTED_SHOWN];
    struct text listed = {.at = list, .size = sizeof list};
    unsigned total = 0, count = 0;
    for (uint32_t i = 0; i < match->wanted_count; i++) {
        explain_say_wanted(&counting, match, match->wanted[i], &total, 0);
    }
    list[0] = '\0';
    for (uint32_t i = 0; i < match->wanted_count; i++) {
        explain_say_wanted(&listed, match, match->wanted[i], &count, total);
    }
    explain_put(out, "%s%s", list, listed.used == sizeof list - 1 ? "..." : "");
}

/* WHERE country=DE: an option of two values got one. false: it is not that. */
static bool explain_say_pair(struct text *out, const struct request *request,
                             const struct place *place, uint32_t index) {
    const struct argument *option = place->inside, *values;
    if (option == NULL || option->token == NULL || option->type != ARGUMENT_BLOCK ||
        index != place->inside_at + 1 || index >= request->count) {
        return false;
    }
    struct bytes word = request->args[index];
    const char *sign = word.size > 0 ? memchr(word.at, '=', word.size) : NULL;
    values = option->children;
    if (sign == NULL || values[0].type != ARGUMENT_STRING || values[1].name == NULL ||
        values[1].type != ARGUMENT_STRING || values[2].name != NULL) {
        return false;
    }
    struct bytes name = {.at = word.at, .size = (size_t)(sign - word.at)};
    struct bytes value = {.at = sign + 1, .size = word.size - name.size - 1};
    explain_put(out, "ERR %s takes a %s and a %s: %s %s %s", option->token, values[0].name,
                values[1].name, option->token, bytes_show(name).text, bytes_show(value).text);
    return true;
}

/* The word at index is not the integer that it should be. */
static void explain_say_number(struct text *out, const struct argument *argument,
                               struct bytes word) {
    const char *counted = argument != NULL ? explain_say_counted(argument) : NULL;
    int64_t number;
    bool is_number = bytes_parse_i64(word, &number);
    if (counted != NULL && !is_number) {
        explain_put(out, "ERR number of %ss expected before ", counted);
    } else {
        explain_put(out, "ERR %s must be %s, not ", argument != NULL ? argument->name : "value",
                    is_number ? "at least 1" : "a 64-bit integer");
    }
    explain_put_word(out, word);
}

/* A word that no option begins with, and nothing must follow. */
static void explain_say_unexpected(struct text *out, const struct match *match, struct bytes word) {
    unsigned best = explain_limit(word);
    const char *familiar = explain_say_familiar(match->command, word);
    const char *near = NULL;
    for (uint32_t i = 0; i < match->wanted_count && familiar == NULL; i++) {
        const struct argument one[] = {*match->wanted[i], {.name = NULL}};
        const char *nearer = explain_say_near_token(one, word, &best);
        near = nearer != NULL ? nearer : near;
    }
    if (familiar != NULL) {
        explain_put(out, "ERR %s", familiar);
        return;
    }
    explain_put(out, "ERR ");
    explain_put_word(out, word);
    if (near != NULL) {
        explain_put(out, " is not expected here: did you mean %s?", near);
    } else if (match->wanted_count == 0) {
        explain_put(out, " is one word too many: the end is expected after ");
        explain_put_word(out, match->request->args[match->stuck_at - 1]);
    } else {
        explain_put(out, " is not expected here, but ");
        explain_say_all_wanted(out, match);
    }
}

static void explain_say_stuck(struct text *out, const struct match *match) {
    const struct request *request = match->request;
    const struct argument *wanted = match->wanted_count == 1 ? match->wanted[0] : NULL;
    uint32_t at = match->stuck_at;
    struct bytes word = at < request->count ? request->args[at] : request->args[at - 1];
    if (explain_say_pair(out, request, &match->stuck, match->stuck.inside_at + 1)) {
        return;
    }
    if (match->given != NULL) {
        explain_put(out, "ERR ");
        explain_put_word(out, word);
        explain_put(out,
                    bytes_is(word, match->given->token)
                        ? " comes again: %s is expected once"
                        : " comes after %s: one of them is expected",
                    match->given->token);
    } else if (at < request->count && !match->must_follow) {
        explain_say_unexpected(out, match, word);
    } else if (at < request->count && wanted != NULL &&
               (wanted->token == NULL || wanted == match->stuck.inside) &&
               wanted->type != ARGUMENT_ONEOF) {
        explain_say_number(out, wanted, word);
    } else {
        explain_put(out, "ERR ");
        explain_say_all_wanted(out, match);
        explain_put(out, " expected %s ", at < request->count ? "before" : "after");
        explain_put_word(out, word);
    }
}

/* ---- */

bool explain_covers(const struct command *command) {
    return explain_is_named(command) ||
           (command->group != NULL && strcmp(command->group, "leaderboard") == 0);
}

/* The index of the first argument. */
static uint32_t explain_first(const struct command *command) {
    return explain_is_named(command) ? 1 : 2;
}

bool explain_request(const struct command *command, const struct request *request, char *out) {
    struct text text = {.at = out, .size = EXPLAIN_MAX};
    struct match match;
    out[0] = '\0';
    if (command->subcommands != NULL) {
        explain_put(&text, "ERR subcommand expected after ");
        explain_put_word(&text, request->args[request->count - 1]);
        explain_say_syntax(&text, command, NULL);
        return true;
    }
    bool is_wrong = !explain_match_request(&match, command, request, explain_first(command), 0);
    if (is_wrong || (match.stuck_at == request->count && match.wanted_count > 0)) {
        explain_say_stuck(&text, &match); /* of what is right, an option is missing */
    } else {
        explain_put(&text, "ERR syntax error");
    }
    explain_say_syntax(&text, command, is_wrong ? match.stuck.inside : NULL);
    return is_wrong;
}

void explain_word(const struct command *command, const struct request *request, struct bytes word,
                  const char *field, const char *why, char *out) {
    struct text text = {.at = out, .size = EXPLAIN_MAX};
    struct match match;
    uint32_t first = explain_first(command);
    uint32_t index = 0; /* of the argument that has this text, or that it is a part of; 0: none */
    for (uint32_t i = first; i < request->count && index == 0; i++) {
        const struct bytes *each = &request->args[i];
        bool is_in = word.at >= each->at && word.at + word.size == each->at + each->size;
        index = is_in ? i : 0;
    }
    unsigned best = explain_limit(word);
    const char *familiar = explain_say_familiar(command, word);
    out[0] = '\0';
    (void)explain_match_request(&match, command, request, first, index);
    if (index > 0 && match.asked.argument == NULL && match.stuck_at == index &&
        match.wanted_count > 0) {
        match.asked = match.stuck;
        match.asked.argument = match.wanted[0];
    }
    if (explain_say_pair(&text, request, &match.asked, index)) {
        why = NULL;
    } else if (familiar != NULL) {
        explain_put(&text, "ERR %s", familiar);
    } else if (field == NULL && why == NULL) {
        explain_say_number(&text, match.asked.argument, word);
    } else {
        const char *near = explain_say_near_token(command->arguments, word, &best);
        const struct argument *argument = match.asked.argument;
        bool is_before = argument != NULL && (argument->flags & ARGUMENT_MULTIPLE) != 0 &&
                         argument[1].name != NULL && argument[1].flags == 0;
        explain_put(&text, "ERR ");
        explain_put_word(&text, word);
        if (field == NULL) {
            explain_put(&text, " %s", why);
        } else if ((command->flags & COMMAND_WRITE) != 0 &&
                   explain_match_find_token(command->arguments, word) != NULL) {
            explain_put(&text, " is an option: options come before the values");
        } else {
            explain_put(&text, " is not a %s%s%s", field, why != NULL ? ": " : "",
                        why != NULL ? why : "");
            if (why == NULL && is_before) {
                explain_put(&text, ": values come before the %s", argument[1].name);
            }
        }
        if (near != NULL) {
            explain_put(&text, ", or did you mean %s?", near);
        }
    }
    explain_say_syntax(&text, command, match.asked.inside);
}

void explain_reason(const struct command *command, const char *reason, char *out) {
    struct text text = {.at = out, .size = EXPLAIN_MAX};
    explain_put(&text, "ERR %.*s", REASON_SHOWN, reason);
    explain_say_syntax(&text, command, NULL);
}

/* ---- commands that are not there ---- */

/* What a leaderboard's commands are called elsewhere, and what they are here: ? is the first argument that was sent,
 * ! the second one. Of commands with # these are a number and a member, in any order; what follows # is its default. */
static const struct {
    const char *names, *instead; /* a blank behind each name */
} familiar_commands[] = {
    {"LB.TOP LB.TOPN LB.REVRANGE LB.PAGE LB.LEADERS ", "LB.RANGE ? 0 9"},
    {"LB.RANK LB.REVRANK LB.SCORE LB.MEMBER ", "LB.GET ? 1 !"},
    {"LB.INCR LB.INCRBY ", "LB.ADD ? INCR #1 !"},
    {"LB.SET LB.PUT LB.UPDATE ", "LB.ADD ? #100 !"},
    {"LB.NEAR LB.NEIGHBORS LB.NEIGHBOURS ", "LB.AROUND ? MEMBER ! 5"},
    {"LB.CARD LB.SIZE LB.LEN ", "LB.COUNT ?"},
    {"LB.REM LB.REMOVE ", "ZREM ? !"},
    {"LB.DEL LB.DELETE ", "DEL ?"},
    {"LB.RESET LB.END ", "LB.ROLL ? archive"},
    {"LB.BOARDS LB.KEYS ", "LB.LIST"},
    {"LB.HELP LB.COMMANDS ", "COMMAND DOCS, or help @leaderboard in redis-cli"},
};

static bool explain_is_number(struct bytes word) {
    struct decimal value;
    unsigned scale;
    return decimal_parse_exact(word, &value, &scale) == DECIMAL_OK;
}

void explain_unknown(const struct request *request, char *out) {
    struct bytes name = request->args[0];
    struct text text = {.at = out, .size = EXPLAIN_HINT_MAX};
    const char *instead = NULL, *near = NULL;
    for (size_t i = 0; i < sizeof familiar_commands / sizeof familiar_commands[0]; i++) {
        bool is_it = category_has_word(familiar_commands[i].names, name);
        instead = is_it ? familiar_commands[i].instead : instead;
    }
    /* Of the names in here the first letters are all the same. */
    bool is_own = name.size > 3 &&
                  bytes_equal_ignoring_case((struct bytes){.at = name.at, .size = 3}, BYTES("LB."));
    unsigned best = explain_limit(bytes_behind(name, is_own ? 3 : 0));
    out[0] = '\0';
    for (uint32_t i = 0; instead == NULL && name.size > 3 && i < command_count(); i++) {
        const struct command *command = command_by_index(i);
        struct bytes each = bytes_from_text(command->name);
        unsigned distance = command_is_subcommand(i) ? best : bytes_distance(name, each, true);
        if (distance < best && command_find(each) == command) {
            best = distance;
            near = command->name;
        }
    }
    if (instead == NULL && near == NULL) {
        return;
    }
    explain_put(&text, "(did you mean %s", near != NULL ? near : "");
    uint32_t number = 0, member = 2;
    if (instead != NULL && strchr(instead, '#') != NULL && request->count > 3) {
        bool is_behind =
            !explain_is_number(request->args[2]) && explain_is_number(request->args[3]);
        number = is_behind ? 3 : 2;
        member = is_behind ? 2 : 3;
    }
    for (; instead != NULL && *instead != '\0'; instead++) {
        uint32_t index = *instead == '?' ? 1 : *instead == '!' ? member : number;
        if (*instead == '#' && number > 0) {
            explain_put(&text, "%s", bytes_show(request->args[number]).text);
            instead += strcspn(instead, " ") - 1;
        } else if (*instead == '?' || *instead == '!') {
            explain_put(&text, "%s",
                        index < request->count ? bytes_show(request->args[index]).text
                        : index == 1           ? "key"
                                               : "member");
        } else if (*instead != '#') {
            explain_put(&text, "%c", *instead);
        }
    }
    explain_put(&text, "?)");
}

/* ---- what errors mean ---- */

/* The harness holds every error that a test gets against the table. */
const struct explained_error explain_errors[] = {
    {"ERR", 0, "The request is wrong: its words, a value, or a key that is not there.",
     "Correct the request. The text says what is wrong."},
    {"BANNED", 403, "The member is banned from this board.",
     "`LB.BANS` shows bans; `LB.UNBAN` ends one."},
    {"BUSYKEY", 409, "The name of a new board is taken.",
     "Choose another name, or remove the key."},
    {"CLOSED", 409, "The board is not open yet (`OPENS`), or no longer (`CLOSES`).",
     "`LB.INFO` shows both times; `LB.ALTER` changes them."},
    {"DENIED", 0,
     "The server has no password and refuses clients of other machines (`protected-mode`).",
     "Set a password: [secure.md](../operate/secure.md)."},
    {"EXECABORT", 0, "`EXEC` has run nothing, because a command before it was refused.",
     "Find the first error between `MULTI` and `EXEC`, and send all of it again."},
    {"FROZEN", 409, "The board takes no writes: it is an archive, or `FREEZE` was given.",
     "`LB.ALTER key THAW`, if the results may change."},
    {"FULL", 0, "The board has as many members as `LIMIT` allows, and takes no new ones.",
     "`LB.ALTER key LIMIT n` raises it; `CAP` drops the worst member instead."},
    {"LIMIT", 422, "The board's `LIMITS` do not allow a result with this value.",
     "The text names the limit. `LB.ALTER key LIMITS ...` changes it."},
    {"LOADING", 503,
     "The server loads its boards, shuts down, or is not open yet as the new master.",
     "Send it again later. `INFO persistence` shows the time that is left."},
    {"MASTERDOWN", 503,
     "This replica has lost its master, and `replica-serve-stale-data` is `no`, or what it has is "
     "too old.",
     "Ask another server; look at the link in `INFO replication`."},
    {"MISCONF", 503, "The journal or a snapshot could not be written, so writes are refused.",
     "Look at the disk and the log. Writes work again after the next success."},
    {"NOAUTH", 0, "The connection has not logged in.", "`AUTH user password` first."},
    {"NOMASTERLINK", 503, "A replica asks a server that cannot give it anything now.",
     "Nothing: the replica asks again. If it stays, see `INFO replication`."},
    {"NOPERM", 403, "The user may not run this command, or not on this key or channel.",
     "`ACL WHOAMI` names the user, `ACL LOG` the refusals; `ACL SETUSER` changes rights."},
    {"NOPROTO", 0, "`HELLO` asks for a protocol other than 2 and 3.", "`HELLO 3` or `HELLO 2`."},
    {"NOREPLICAS", 503, "Too few replicas are connected (`min-replicas-to-write`).",
     "Bring replicas back, or lower the setting."},
    {"OOM", 503, "`maxmemory` is reached, or the system has no memory left.",
     "Raise `maxmemory`, or remove boards: `LB.LIST`, `MEMORY USAGE key`."},
    {"READONLY", 503, "This server is a replica.",
     "Write to the master: `INFO replication` names it."},
    {"TICKET", 403,
     "A player's result on a board with `TICKETS` has no ticket, or one that does not count.",
     "`LB.TICKET` at the start of each run, and `TICKET t` with its result: "
     "[tickets.md](tickets.md)."},
    {"TOOLONG", 0, "The command would hold up everybody for longer than `busy-command-limit`.",
     "Use what the text names instead, or raise the setting."},
    {"TOOSOON", 429,
     "The member has sent as much as the board takes of one for now (`LIMITS`: `EVERY`, `RESULTS`, "
     "`GAIN`), or the run was too short (`MINTIME`). Over HTTP also: 16 bans of the user are "
     "still being carried out.",
     "Send it again after the seconds that the text says."},
    {"TRYAGAIN", 503,
     "Something else must end first: another long command, a copy, or younger ids of `ONCE`.",
     "Send it again later."},
    {"UNBLOCKED", 0,
     "Waiting was ended by `CLIENT UNBLOCK`, or because the server became a replica. A write that "
     "waited "
     "for replicas may have been kept.",
     "Send reads again; for writes see [retries.md](retries.md)."},
    {"WRONGPASS", 0, "The user, the password or both are wrong, or the user is off.",
     "Check both. Wrong passwords are answered slower each time."},
    {"WRONGTYPE", 404,
     "The key is there, but it is a board and not a hash, or the other way round.",
     "`TYPE key` says what it is."},
    {NULL, 0, NULL, NULL},
};

const struct explained_error *explain_error(struct bytes prefix) {
    for (const struct explained_error *row = explain_errors; row->prefix != NULL; row++) {
        if (bytes_equal(prefix, bytes_from_text(row->prefix))) {
            return row;
        }
    }
    return NULL;
}
