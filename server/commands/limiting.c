/* See limiting.h. */
#include "server/commands/limiting.h"

#include "server/commands/holding.h"

#include <inttypes.h>

#include "codec/wide.h"
#include "server/commands/shadow.h"

enum { TIDIED = 2 /* records that are looked at for each new one */ };

static const struct board_options *limiting_options(const struct writing *writing) {
    return registry_options(writing_shown_key(writing));
}

bool limiting_refuse_wait(const struct writing *writing, enum limit limit, int64_t wait_ms) {
    const struct call *call = writing->call;
    char said[SETTING_LIMITS_TEXT_MAX];
    setting_options_print_limit(&limiting_options(writing)->limits, limit, said);
    stats_count_limit(&call->server->stats, registry_name(writing_shown_key(writing)), limit);
    reply_error_format(call->reply, "TOOSOON %s: wait %" PRId64 " s", said, (wait_ms + 999) / 1000);
    return false;
}

/* "LIMIT STEP 1000: 5000 is 4000 more", "TOOSOON EVERY 10 S: wait 4 s" */
static void limiting_refuse(const struct writing *writing, enum limit limit,
                            const struct limits_result *result, int64_t wait_ms) {
    const struct call *call = writing->call;
    const struct board_options *options = limiting_options(writing);
    char said[SETTING_LIMITS_TEXT_MAX];
    char value[DECIMAL_TEXT_MAX + 1];
    char gain[WIDE_TEXT_MAX + 1];
    unsigned scale = result->lead->scale;
    if (wait_ms > 0) {
        (void)limiting_refuse_wait(writing, limit, wait_ms);
        return;
    }
    setting_options_print_limit(&options->limits, limit, said);
    stats_count_limit(&call->server->stats, registry_name(writing_shown_key(writing)), limit);
    value[decimal_print(value, layout_field_decimal(result->lead, result->after), scale)] = '\0';
    gain[wide_print(gain, (wide)limits_gain(result), scale)] = '\0';
    if (limit == LIMIT_MAX || limit == LIMIT_MIN) {
        reply_error_format(call->reply, "LIMIT %s: %s is %s", said, value,
                           limit == LIMIT_MAX ? "above" : "below");
    } else {
        reply_error_format(call->reply, "LIMIT %s: %s is better by %s", said, value, gain);
    }
}

bool limiting_check(const struct writing *writing, struct bytes member, bool had_result,
                    uint64_t before, uint64_t after, bool is_put, bool is_written,
                    struct limited *limited) {
    const struct registry_key *key = writing_shown_key(writing);
    const struct limits_rule *rule = &limiting_options(writing)->limits;
    struct bytes shadowed;
    if (shadow_find_member(member, &shadowed)) {
        return call_refuse(writing->call, "ERR the name of a member of a board with LIMITS may not "
                                          "begin with a zero byte and S");
    }
    const struct layout *layout = board_layout(writing->board);
    struct limits_result result = {
        .lead = &layout->fields[0],
        .before = had_result ? layout_ordinal(layout, before, 0) : 0,
        .after = layout_ordinal(layout, after, 0),
        .had_result = had_result,
        .is_as_before = !is_put,
    };
    struct limits_record record = {.last_ms = 0};
    struct bytes note;
    int64_t wait_ms;
    if (registry_note_find(key, member, &note)) {
        limits_unpack(note, &record);
    }
    enum limit limit = limits_check(rule, &result, writing->call->now_ms, &record, &wait_ms);
    limited->size = 0;
    limited->broken = (uint8_t)limit;
    if (limit != LIMITS && is_written && holding_applies(writing) &&
        writing->options->hold.takes_limits) {
        return true;
    }
    if (limit != LIMITS) {
        limiting_refuse(writing, limit, &result, wait_ms);
        return false;
    }
    uint8_t packed[LIMITS_RECORD_BYTES_MAX];
    limited->size = (uint8_t)limits_pack(rule, &record, packed);
    memcpy(limited->record, packed, limited->size);
    return true;
}

bool limiting_refuse_again(const struct call *call, struct bytes member) {
    return call_refuse_format(call,
                              "ERR member '%s' is given twice: a board with LIMITS or HOLD takes "
                              "one result of a member at a time",
                              bytes_show(member).text);
}

size_t limiting_growth_size(const struct writing *writing, uint32_t count, size_t names_size) {
    const struct registry_key *key = writing_shown_key(writing);
    return hash_growth_size_for(registry_note_hash(key), count,
                                names_size + (size_t)count * LIMITS_RECORD_BYTES_MAX);
}

/* Take some records off whose times are over, so that there are no more than of those who play. */
static void limiting_tidy(const struct writing *writing) {
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

void limiting_put(const struct writing *writing, struct bytes member,
                  const struct limited *limited) {
    struct registry_key *key = writing_shown_key(writing);
    uint32_t count = registry_note_count(key);
    if (limited->size > 0) {
        bool is_put = registry_note_put(writing->call->registry, key, member,
                                        (struct bytes){limited->record, limited->size});
        CHECK(is_put);
    }
    if (limited->size == 0 || registry_note_count(key) > count) {
        limiting_tidy(writing);
    }
}
