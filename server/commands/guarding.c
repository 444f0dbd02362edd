/* See guarding.h. */
#include "server/commands/guarding.h"

#include <inttypes.h>

#include "codec/decimal.h"
#include "server/commands/shadow.h"

/* ---- LIMITS ---- */

enum { TIDIED = 2 /* records that are looked at for each new one */ };

static const struct board_options *guarding_options(const struct writing *writing) {
    return registry_options(writing_shown_key(writing));
}

bool guarding_refuse_wait(const struct writing *writing, enum limit limit, int64_t wait_ms) {
    const struct call *call = writing->call;
    char said[SETTING_LIMITS_TEXT_MAX];
    setting_options_print_limit(&guarding_options(writing)->limits, limit, said);
    stats_count_limit(&call->server->stats, registry_name(writing_shown_key(writing)), limit);
    reply_error_format(call->reply, "TOOSOON %s: wait %" PRId64 " s", said, (wait_ms + 999) / 1000);
    return false;
}

/* "LIMIT STEP 1000: 5000 is 4000 more", "TOOSOON EVERY 10 S: wait 4 s" */
static void guarding_refuse(const struct writing *writing, enum limit limit,
                            const struct limits_result *result, int64_t wait_ms) {
    const struct call *call = writing->call;
    const struct board_options *options = guarding_options(writing);
    char said[SETTING_LIMITS_TEXT_MAX];
    char value[DECIMAL_TEXT_MAX + 1];
    char gain[DECIMAL_WIDE_TEXT_MAX + 1];
    unsigned scale = result->lead->scale;
    if (wait_ms > 0) {
        (void)guarding_refuse_wait(writing, limit, wait_ms);
        return;
    }
    setting_options_print_limit(&options->limits, limit, said);
    stats_count_limit(&call->server->stats, registry_name(writing_shown_key(writing)), limit);
    value[decimal_print(value, layout_field_decimal(result->lead, result->after), scale)] = '\0';
    gain[decimal_wide_print(gain, (wide)limits_gain(result), scale)] = '\0';
    if (limit == LIMIT_MAX || limit == LIMIT_MIN) {
        reply_error_format(call->reply, "LIMIT %s: %s is %s", said, value,
                           limit == LIMIT_MAX ? "above" : "below");
    } else {
        reply_error_format(call->reply, "LIMIT %s: %s is better by %s", said, value, gain);
    }
}

/* May this result be, as far as LIMITS say, if it gives the member the key after? is_put: it changes the first field.
 * false: the error was replied, and the refusal is counted. */
static bool guarding_check_limits(const struct writing *writing,
                                  const struct guarding_result *judged, uint64_t after, bool is_put,
                                  struct limited *limited) {
    const struct registry_key *key = writing_shown_key(writing);
    const struct limits_rule *rule = &guarding_options(writing)->limits;
    struct bytes shadowed;
    if (shadow_find_member(judged->member, &shadowed)) {
        return call_refuse(writing->call, "ERR the name of a member of a board with LIMITS may not "
                                          "begin with a zero byte and S");
    }
    const struct layout *layout = board_layout(writing->board);
    struct limits_result result = {
        .lead = &layout->fields[0],
        .before = judged->had_result ? layout_ordinal(layout, judged->before, 0) : 0,
        .after = layout_ordinal(layout, after, 0),
        .had_result = judged->had_result,
        .is_as_before = !is_put,
    };
    struct limits_record record = {.last_ms = 0};
    struct bytes note;
    int64_t wait_ms;
    if (registry_note_find(key, judged->member, &note)) {
        limits_unpack(note, &record);
    }
    enum limit limit = limits_check(rule, &result, writing->call->now_ms, &record, &wait_ms);
    limited->size = 0;
    limited->broken = (uint8_t)limit;
    if (limit != LIMITS && judged->is_written && holding_applies(writing) &&
        writing->options->hold.takes_limits) {
        return true;
    }
    if (limit != LIMITS) {
        guarding_refuse(writing, limit, &result, wait_ms);
        return false;
    }
    uint8_t packed[LIMITS_RECORD_BYTES_MAX];
    limited->size = (uint8_t)limits_pack(rule, &record, packed);
    memcpy(limited->record, packed, limited->size);
    return true;
}

bool guarding_refuse_again(const struct call *call, struct bytes member) {
    return call_refuse_format(call,
                              "ERR member '%s' is given twice: a board with LIMITS or HOLD takes "
                              "one result of a member at a time",
                              bytes_show(member).text);
}

/* Take some records off whose times are over, so that there are no more than of those who play. */
static void guarding_tidy(const struct writing *writing) {
    const struct call *call = writing->call;
    struct registry_key *key = writing_shown_key(writing);
    const struct limits_rule *rule = &registry_options(key)->limits;
    for (unsigned i = 0; i < TIDIED && registry_note_count(key) > 0; i++) {
        struct registry_note_room room;
        struct hash_pair pair;
        struct limits_record record;
        uint64_t draw = ((uint64_t)call->now_us + i) * UINT64_C(0x9e3779b97f4a7c15);
        registry_note_at(key, (uint32_t)((draw >> 32) * registry_note_count(key) >> 32), &pair,
                         &room);
        limits_unpack(pair.value, &record);
        if (!registry_note_is_own(pair.field) && limits_is_over(rule, &record, call->now_ms)) {
            char name[BOARD_MEMBER_MAX];
            memcpy(name, pair.field.at, pair.field.size);
            registry_note_remove(call->registry, key, (struct bytes){name, pair.field.size});
        }
    }
}

static void guarding_note(const struct writing *writing, struct bytes member,
                          const struct limited *limited) {
    struct registry_key *key = writing_shown_key(writing);
    uint32_t count = registry_note_count(key);
    if (limited->size > 0) {
        bool is_put = registry_note_put(writing->call->registry, key, member,
                                        (struct bytes){limited->record, limited->size});
        CHECK(is_put);
    }
    if (limited->size == 0 || registry_note_count(key) > count) {
        guarding_tidy(writing);
    }
}

/* ---- both ---- */

/* false: the error was replied. */
static bool guarding_judge(const struct writing *writing, const struct guarding_result *result,
                           struct guarded *guarded) {
    struct bytes member = result->member;
    uint64_t before = result->before, after = result->after;
    const struct layout *layout = board_layout(writing->board);
    bool has_limits = guarding_has_limits(writing);
    bool is_put = result->is_written &&
                  (!result->had_result ||
                   layout_ordinal(layout, before, 0) != layout_ordinal(layout, after, 0));
    *guarded = (struct guarded){.limited.broken = LIMITS};
    if (registry_options(writing_shown_key(writing))->has_hold && registry_note_is_own(member)) {
        return call_refuse(writing->call, "ERR a board with HOLD has no members whose names begin "
                                          "with a zero byte");
    }
    if (has_limits && !guarding_check_limits(writing, result, after, is_put, &guarded->limited)) {
        return false;
    }
    if (guarded->limited.broken != LIMITS) {
        guarded->held = (uint8_t)(HOLDING_LIMIT + guarded->limited.broken);
    } else if (result->is_written && holding_applies(writing)) {
        guarded->held = holding_judge(writing, result->had_result, before, after);
        /* It counts as a result, and gains nothing. */
        return guarded->held == 0 || !has_limits ||
               guarding_check_limits(writing, result, before, false, &guarded->limited);
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
    const struct hash *notes = registry_note_hash(writing_shown_key(writing));
    return (guarding_has_limits(writing)
                ? hash_growth_size_for(notes, guards->count,
                                       guards->names_size +
                                           (size_t)guards->count * LIMITS_RECORD_BYTES_MAX)
                : 0) +
           (guards->held_count > 0 ? holding_growth_size(writing, guards->held_count) : 0);
}

void guarding_put(struct writing *writing, const struct guarding_result *result,
                  const struct guarded *guarded) {
    if (guarding_has_limits(writing)) {
        guarding_note(writing, result->member, &guarded->limited);
    }
    if (guarded->held != 0) {
        struct holding_words words = {.size = 0};
        result->put_words(result->context, &words);
        holding_put(writing, result->member, guarded->held_before, guarded->held_key, guarded->held,
                    &words);
    }
}
