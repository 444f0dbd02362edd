/* Options of requests. See options.h. */
#include "server/dispatch/options.h"

static uint32_t options_value_count(enum option_kind kind) {
    bool is_pair = kind == OPTION_INTEGERS || kind == OPTION_TEXTS || kind == OPTION_COUNTED ||
                   kind == OPTION_EACH_PAIR;
    return kind == OPTION_FLAG ? 0 : is_pair ? 2 : 1;
}

static uint32_t options_key_count(const struct call *call) {
    int64_t count = 0;
    bool is_read = bytes_parse_i64(call_arg(call, (uint32_t)call->command->key_count_arg), &count);
    CHECK(is_read && count > 0 && count <= UINT32_MAX);
    return (uint32_t)count;
}

static const struct option_row *options_find_row(const struct option_row *rows, struct bytes word) {
    while (rows->word != NULL && !bytes_is(word, rows->word)) {
        rows++;
    }
    return rows->word != NULL ? rows : NULL;
}

/* OPTION_COUNTED: the number at index, and the values after it. */
static bool options_read_counted(const struct call *call, const struct option_row *row,
                                 uint32_t index, struct option_values *values) {
    uint32_t left = call->request->count - index - 1;
    int64_t count;
    if (!call_parse_integer(call, call_arg(call, index), &count)) {
        return false;
    }
    if (count < 1 || count > left) {
        return call_refuse_format(
            call, "ERR %s needs the number of values that follow it: 1..%u here", row->word, left);
    }
    *values =
        (struct option_values){.at = &call->request->args[index + 1], .count = (uint32_t)count};
    return true;
}

static void options_note_use(struct option_uses *uses, uint32_t index) {
    uses->first = uses->count == 0 ? index : uses->first;
    uses->count++;
}

/* false: the error was replied. */
static bool options_read_option(const struct call *call, const struct option_row *row,
                                uint32_t index, void *target) {
    void *value = (char *)target + row->offset;
    switch (row->kind) {
    case OPTION_FLAG:
        *(bool *)value = true;
        break;
    case OPTION_INTEGERS:
    case OPTION_INTEGER:
        for (uint32_t i = 0; i < options_value_count(row->kind); i++) {
            if (!call_parse_integer(call, call_arg(call, index + i), (int64_t *)value + i)) {
                return false;
            }
        }
        break;
    case OPTION_TEXT_ONCE:
        if (((const struct bytes *)value)->at != NULL) {
            return call_refuse_format(call, "ERR %s may be given once", row->word);
        }
        *(struct bytes *)value = call_arg(call, index);
        break;
    case OPTION_TEXTS:
    case OPTION_TEXT:
        for (uint32_t i = 0; i < options_value_count(row->kind); i++) {
            ((struct bytes *)value)[i] = call_arg(call, index + i);
        }
        break;
    case OPTION_COUNTED:
        if (!options_read_counted(call, row, index, value)) {
            return false;
        }
        break;
    case OPTION_EACH:
    case OPTION_EACH_PAIR:
        options_note_use(value, index - 1);
        break;
    case OPTION_READ:
    case OPTION_READ_PER_KEY:
        break;
    }
    return row->read == NULL || row->read(call, index, target);
}

bool options_read_to(const struct call *call, uint32_t *index, void *target) {
    while (*index < call->request->count) {
        const struct option_row *row =
            options_find_row(call->command->options, call_arg(call, *index));
        uint32_t values = row == NULL                        ? 0
                          : row->kind == OPTION_READ_PER_KEY ? options_key_count(call)
                                                             : options_value_count(row->kind);
        if (row == NULL || call->request->count - *index <= values) {
            return true;
        }
        if (!options_read_option(call, row, *index + 1, target)) {
            return false;
        }
        *index += 1 + values;
        if (row->kind == OPTION_COUNTED) {
            *index += ((struct option_values *)((char *)target + row->offset))->count - 1;
        }
    }
    return true;
}

bool options_read(const struct call *call, uint32_t index, void *target) {
    return options_read_to(call, &index, target) &&
           (index == call->request->count || call_syntax_error(call));
}

bool options_has_word(const struct call *call, uint32_t index) {
    return options_find_row(call->command->options, call_arg(call, index)) != NULL;
}

uint32_t options_next(const struct call *call, uint32_t index) {
    const struct option_row *row = options_find_row(call->command->options, call_arg(call, index));
    CHECK(row != NULL);
    if (row->kind == OPTION_COUNTED) {
        int64_t count = 0;
        bool is_read = bytes_parse_i64(call_arg(call, index + 1), &count);
        CHECK(is_read && count > 0 && count <= UINT32_MAX);
        return index + 2 + (uint32_t)count;
    }
    return index + 1 +
           (row->kind == OPTION_READ_PER_KEY ? options_key_count(call)
                                             : options_value_count(row->kind));
}

/* The words of an option whose word is at index, itself among them; 0: they are too few. */
static uint32_t options_word_count(const struct option_row *row, const struct request *request,
                                   uint32_t index) {
    uint32_t values = options_value_count(row->kind);
    uint32_t left = request->count - index - 1;
    int64_t count = 1;
    if (left < values) {
        return 0;
    }
    if (row->kind == OPTION_COUNTED &&
        (!bytes_parse_i64(request->args[index + 1], &count) || count < 1 || count > left - 1)) {
        return 0;
    }
    return 1 + values + (uint32_t)count - 1;
}

uint32_t options_find(const struct command *command, const struct request *request, uint32_t index,
                      const char *word) {
    while (index < request->count) {
        const struct option_row *row = options_find_row(command->options, request->args[index]);
        uint32_t words = row != NULL ? options_word_count(row, request, index) : 0;
        if (words == 0) {
            return 0;
        }
        if (strcmp(row->word, word) == 0) {
            return index + 1;
        }
        index += words;
    }
    return 0;
}

/* ---- agreement with the syntax ---- */

/* Do the values after the token have the types that the row reads? */
static bool options_has_values(const struct argument *argument, const struct option_row *row) {
    bool is_block = argument->type == ARGUMENT_BLOCK;
    const struct argument *value = is_block ? argument->children : argument;
    bool is_integer = row->kind == OPTION_INTEGER || row->kind == OPTION_INTEGERS;
    bool is_each = row->kind == OPTION_EACH || row->kind == OPTION_EACH_PAIR;
    if (is_each && (argument->flags & ARGUMENT_MULTIPLE) == 0) {
        return false;
    }
    if (row->kind == OPTION_COUNTED && (!is_block || value[0].type != ARGUMENT_INTEGER ||
                                        (value[1].flags & ARGUMENT_MULTIPLE) == 0)) {
        return false;
    }
    uint32_t count = 0;
    for (; argument->type != ARGUMENT_PURE_TOKEN && value->name != NULL; value++) {
        count++;
        if (is_integer && value->type != ARGUMENT_INTEGER) {
            return false;
        }
        if (!is_block) {
            break;
        }
    }
    return count == options_value_count(row->kind);
}

/* Options are the tokens inside what is optional or repeated, but not those among the values of
 * another. Returns how many there are. */
static uint32_t options_check_tokens(const struct argument *list, bool is_inside,
                                     const struct option_row *rows) {
    uint32_t count = 0;
    for (; list->name != NULL; list++) {
        bool is_option = is_inside || list->flags != 0;
        if (list->token != NULL && is_option) {
            const struct option_row *row = options_find_row(rows, bytes_from_text(list->token));
            CHECK(row != NULL && options_has_values(list, row));
            count++;
        } else if (list->token == NULL && list->children != NULL) {
            count += options_check_tokens(list->children, is_option, rows);
        }
    }
    return count;
}

void options_check(const struct command *command) {
    if (command->options != NULL) {
        uint32_t row_count = 0;
        while (command->options[row_count].word != NULL) {
            row_count++;
        }
        CHECK(command->arguments != NULL);
        uint32_t token_count = options_check_tokens(command->arguments, false, command->options);
        CHECK(token_count == row_count);
    }
}
