/* See guarding.h. */
#include "server/commands/guarding.h"

/* false: the error was replied. */
static bool guarding_judge(const struct writing *writing, const struct guarding_result *result,
                           struct guarded *guarded) {
    struct bytes member = result->member;
    uint64_t before = result->before, after = result->after;
    const struct layout *layout = board_layout(writing->board);
    bool has_limits = limiting_applies(writing);
    bool is_put = result->is_written &&
                  (!result->had_result ||
                   layout_ordinal(layout, before, 0) != layout_ordinal(layout, after, 0));
    *guarded = (struct guarded){.limited.broken = LIMITS};
    if (registry_options(writing_shown_key(writing))->has_hold && registry_note_is_own(member)) {
        return call_refuse(writing->call, "ERR a board with HOLD has no members whose names begin "
                                          "with a zero byte");
    }
    if (has_limits && !limiting_check(writing, member, result->had_result, before, after, is_put,
                                      result->is_written, &guarded->limited)) {
        return false;
    }
    if (guarded->limited.broken != LIMITS) {
        guarded->held = (uint8_t)(HOLDING_LIMIT + guarded->limited.broken);
    } else if (result->is_written && holding_applies(writing)) {
        guarded->held = holding_judge(writing, result->had_result, before, after);
        /* It counts as a result, and gains nothing. */
        return guarded->held == 0 || !has_limits ||
               limiting_check(writing, member, result->had_result, before, before, false, true,
                              &guarded->limited);
    }
    return true;
}

bool guarding_plan(const struct writing *writing, const struct guarding_result *result,
                   struct guards *guards, struct guarded *guarded) {
    if (!guarding_judge(writing, result, guarded)) {
        return false;
    }
    if (guarded->held != 0) {
        struct holding_words words = {.size = 0};
        result->put_words(result->context, &words);
        if (!holding_check(writing, result->member, &words, guards->held_count)) {
            return false;
        }
        guards->held_count++;
        guarded->held_before =
            result->had_result ? result->before : layout_zero_key(board_layout(writing->board));
        guarded->held_key = result->after;
    }
    return true;
}

size_t guarding_growth_size(const struct writing *writing, const struct guards *guards) {
    return (limiting_applies(writing)
                ? limiting_growth_size(writing, guards->count, guards->names_size)
                : 0) +
           (guards->held_count > 0 ? holding_growth_size(writing, guards->held_count) : 0);
}

void guarding_put(struct writing *writing, const struct guarding_result *result,
                  const struct guarded *guarded) {
    if (limiting_applies(writing)) {
        limiting_put(writing, result->member, &guarded->limited);
    }
    if (guarded->held != 0) {
        struct holding_words words = {.size = 0};
        result->put_words(result->context, &words);
        holding_put(writing, result->member, guarded->held_before, guarded->held_key, guarded->held,
                    &words);
    }
}
