/* See board_options.h. */
#include "skiplist/keyspace/board_options.h"

#include "codec/memory.h"

#define BOARD_OPTION_ROW(name, member, line, create, alter, ...)                                   \
    [BOARD_OPTION_##name] = {.at = offsetof(struct rules, member),                                 \
                             .size = sizeof(((struct rules *)NULL)->member),                       \
                             __VA_ARGS__},

const struct board_option board_options[BOARD_OPTION_COUNT] = {BOARD_OPTIONS(BOARD_OPTION_ROW)};

int64_t board_option_get(const struct board_option *option, const struct rules *rules) {
    uint64_t value = 0;
    memcpy(&value, (const char *)rules + option->at, option->size);
    if (option->bit != 0) {
        return (value & option->bit) != 0;
    }
    return option->form == BOARD_FORM_DATE ? (int32_t)value : (int64_t)value;
}

void board_option_set(const struct board_option *option, struct rules *rules, int64_t value) {
    char *at = (char *)rules + option->at;
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
        return rules->settlement != RULES_NO_ARCHIVE;
    case BOARD_NEEDS_NOTHING:
        break;
    }
    return true;
}

const struct board_option *board_options_find_alone(const struct rules *rules) {
    const struct board_option *found = NULL;
    for (size_t i = 0; i < BOARD_OPTION_COUNT && found == NULL; i++) {
        const struct board_option *option = &board_options[i];
        found = option->alone != NULL && board_option_get(option, rules) != 0 ? option : NULL;
    }
    return found;
}

void board_options_complete(struct rules *rules) {
    rules->guards =
        (uint8_t)((rules->guards & RULES_FROZEN) | (rules->opens_ms != 0 ? RULES_OPENS : 0) |
                  (rules->closes_ms != 0 ? RULES_CLOSES : 0) |
                  (rules->league.room > 0 ? RULES_LEAGUE : 0));
}
