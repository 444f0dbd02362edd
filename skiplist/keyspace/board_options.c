/* See board_options.h. */
#include "skiplist/keyspace/board_options.h"

#include "codec/memory.h"
#include "skiplist/keyspace/league.h"

#define BOARD_OPTION_ROW(name, member, line, create, alter, ...)                                   \
    [BOARD_OPTION_##name] = {.at = offsetof(struct rules, member),                                 \
                             .size = sizeof(((struct rules *)NULL)->member),                       \
                             __VA_ARGS__},

#define BOARD_STATE_ROW(name, member, line, create, alter, ...)                                    \
    [BOARD_OPTION_##name] = {.is_of_state = true,                                                  \
                             .at = offsetof(struct board_state, member),                           \
                             .size = sizeof(((struct board_state *)NULL)->member),                 \
                             __VA_ARGS__},

/* NOLINTNEXTLINE(bugprone-sizeof-expression): a zone is a pointer, whose own size is meant */
const struct board_option board_options[BOARD_OPTION_COUNT] = {BOARD_OPTIONS(BOARD_OPTION_ROW)
                                                                   BOARD_STATES(BOARD_STATE_ROW)};

int64_t board_option_get(const struct board_option *option, const struct rules *rules,
                         const struct board_state *state) {
    static const struct board_state none;
    const void *in = option->is_of_state ? (const void *)(state != NULL ? state : &none) : rules;
    const char *at = (const char *)in + option->at;
    uint64_t value_64;
    uint32_t value_32;
    uint16_t value_16;
    switch (option->size) {
    case sizeof value_64:
        memcpy(&value_64, at, sizeof value_64);
        return (int64_t)value_64;
    case sizeof value_32:
        memcpy(&value_32, at, sizeof value_32);
        return option->form == BOARD_FORM_DATE || option->form == BOARD_FORM_ZONE
                   ? (int32_t)value_32
                   : (int64_t)value_32;
    case sizeof value_16:
        memcpy(&value_16, at, sizeof value_16);
        return value_16;
    default:
        return option->bit != 0 ? ((uint8_t)*at & option->bit) != 0 : (uint8_t)*at;
    }
}

void board_option_set(const struct board_option *option, struct rules *rules,
                      struct board_state *state, int64_t value) {
    void *in = option->is_of_state ? (void *)state : rules;
    if (in == NULL) {
        return;
    }
    char *at = (char *)in + option->at;
    if (option->bit != 0) {
        *at = (char)(value != 0 ? *at | option->bit : *at & ~option->bit);
    } else {
        memcpy(at, &value, option->size);
    }
    if (option->form == BOARD_FORM_ZONE) {
        rules->period.zone = NULL;
    }
}

bool board_option_applies(const struct board_option *option, const struct rules *rules) {
    switch ((enum board_option_needs)option->needs) {
    case BOARD_NEEDS_PERIOD:
        return rules->period.unit != PERIOD_NONE;
    case BOARD_NEEDS_WEEK:
        return rules->period.unit == PERIOD_WEEK;
    case BOARD_NEEDS_EVERY:
        return rules->period.every > 1;
    case BOARD_NEEDS_WINDOW:
        return rules->window.count > 0;
    case BOARD_NEEDS_SHARE:
        return rules->window.is_share;
    case BOARD_NEEDS_LEAGUE:
        return rules->league.room > 0;
    case BOARD_NEEDS_END:
        return rules->is_archive;
    case BOARD_NEEDS_NOTHING:
        break;
    }
    return true;
}

int64_t board_option_usual(const struct board_option *option, const struct rules *rules) {
    return option->usual != 0 && board_option_applies(option, rules) ? option->usual : 0;
}

bool board_option_may_be(const struct board_option *option, int64_t value) {
    switch ((enum board_option_form)option->form) {
    case BOARD_FORM_FLAG:
    case BOARD_FORM_YES_NO:
    case BOARD_FORM_CHOICE:
        return value == 1 || value == option->value;
    case BOARD_FORM_NUMBER:
    case BOARD_FORM_HOUR:
    case BOARD_FORM_WINDOW:
        return option->is_of_league || value == option->usual ||
               (value >= option->minimum && value <= option->maximum);
    case BOARD_FORM_TIME:
    case BOARD_FORM_AGE:
    case BOARD_FORM_UNIT:
    case BOARD_FORM_WEEKDAY:
    case BOARD_FORM_DATE:
    case BOARD_FORM_ZONE:
    case BOARD_FORM_POINTER:
        break;
    }
    return true;
}

size_t board_options_find(uint8_t code) {
    size_t i = 0;
    while (i < BOARD_OPTION_COUNT && board_options[i].code != code) {
        i++;
    }
    return i;
}

const struct board_option *board_options_find_alone(const struct rules *rules) {
    const struct board_option *found = NULL;
    for (size_t i = 0; i < BOARD_OPTION_COUNT && found == NULL; i++) {
        const struct board_option *option = &board_options[i];
        found = option->alone != NULL && board_option_get(option, rules, NULL) != 0 ? option : NULL;
    }
    return found;
}

uint8_t board_options_guards(const struct rules *rules) {
    return (uint8_t)((rules->guards & RULES_FROZEN) | (rules->opens_ms != 0 ? RULES_OPENS : 0) |
                     (rules->closes_ms != 0 ? RULES_CLOSES : 0) |
                     (rules->league.room > 0 ? RULES_LEAGUE : 0));
}
