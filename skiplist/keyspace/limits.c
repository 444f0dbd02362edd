/* See limits.h.
 *
 *     record   which, time (6 bytes) | RESULTS: begin, count | GAIN: begin, gained
 *     which    the lowest three bits: one each for EVERY, RESULTS and GAIN
 *     time     unix milliseconds: of EVERY the last result; without EVERY, the first of the begins that is there
 *     begin    0: there is none; else 1 and how long before the time it is, twice; twice and 1: how long behind it
 *
 * Begins and counts are written seven bits a byte, the lowest first; begins beside EVERY in four bytes or more. So a
 * record takes 6 bytes for EVERY, and 17 for all three with windows of a day: what is alike for all members, the highest
 * bits of times, is there once.
 */
#include "skiplist/keyspace/limits.h"

#include "codec/decimal.h"

enum { TIME_BYTES = 6, WHICH_BITS = 3, BEGIN_BYTES = 4 /* up to 37 hours */ };

const struct limit_row limit_rows[LIMITS] = {
    [LIMIT_MAX] = {"MAX", LIMIT_HAS_VALUE},
    [LIMIT_MIN] = {"MIN", LIMIT_HAS_VALUE},
    [LIMIT_STEP] = {"STEP", LIMIT_HAS_VALUE},
    [LIMIT_EVERY] = {"EVERY", LIMIT_HAS_TIME},
    [LIMIT_RESULTS] = {"RESULTS", LIMIT_HAS_COUNT | LIMIT_HAS_TIME},
    [LIMIT_GAIN] = {"GAIN", LIMIT_HAS_VALUE | LIMIT_HAS_TIME},
    [LIMIT_MINTIME] = {"MINTIME", LIMIT_HAS_TIME},
};

/* ---- rules ---- */

bool limits_equal(const struct limits_rule *a, const struct limits_rule *b) {
    return a->has == b->has && a->is_for_all == b->is_for_all &&
           memcmp(a->of, b->of, sizeof a->of) == 0 &&
           memcmp(a->time_ms, b->time_ms, sizeof a->time_ms) == 0 &&
           memcmp(a->scale, b->scale, sizeof a->scale) == 0;
}

/* A value in units of the field. */
static wide limits_value(const struct limits_rule *rule, enum limit limit,
                         const struct layout_field *lead) {
    wide value = rule->of[limit];
    for (unsigned scale = rule->scale[limit]; scale < lead->scale; scale++) {
        value *= 10;
    }
    return value;
}

const char *limits_refuse(const struct limits_rule *rule, const struct layout_field *lead) {
    if (rule->has == 0) {
        return NULL;
    }
    if (lead->is_double || layout_field_decays(lead)) {
        return "LIMITS needs a first field without DOUBLE and DECAY: limits are exact numbers";
    }
    for (unsigned limit = 0; limit < LIMITS; limit++) {
        if (rule->scale[limit] > lead->scale) {
            return "LIMITS has a value with more decimals than the board's first field keeps";
        }
    }
    return limits_has(rule, LIMIT_MAX) && limits_has(rule, LIMIT_MIN) &&
                   limits_value(rule, LIMIT_MAX, lead) < limits_value(rule, LIMIT_MIN, lead)
               ? "LIMITS has a MAX below its MIN: no result would do"
               : NULL;
}

bool limits_validate(const struct limits_rule *rule) {
    for (unsigned limit = 0; limit < LIMITS; limit++) {
        unsigned has = limits_has(rule, limit) ? limit_rows[limit].has : 0;
        int64_t of = rule->of[limit];
        bool is_right =
            (has & LIMIT_HAS_VALUE) != 0
                ? of > 0 || ((limit == LIMIT_MAX || limit == LIMIT_MIN) && of > INT64_MIN)
            : (has & LIMIT_HAS_COUNT) != 0 ? of >= 1 && of <= LIMIT_COUNT_MAX
                                           : of == 0;
        is_right &= (has & LIMIT_HAS_TIME) != 0
                        ? rule->time_ms[limit] >= 1000 && rule->time_ms[limit] % 1000 == 0 &&
                              rule->time_ms[limit] <= LIMIT_TIME_MS_MAX
                        : rule->time_ms[limit] == 0;
        is_right &= (has & LIMIT_HAS_VALUE) != 0 ? rule->scale[limit] <= DECIMAL_SCALE_MAX
                                                 : rule->scale[limit] == 0;
        if (!is_right) {
            return false;
        }
    }
    return rule->has >> LIMITS == 0 && (rule->has != 0 || !rule->is_for_all);
}

/* ---- records ---- */

static size_t limits_put_count(uint8_t *out, uint64_t count) {
    size_t size = 0;
    for (; count > 0x7f; count >>= 7) {
        out[size++] = (uint8_t)(count | 0x80);
    }
    out[size++] = (uint8_t)count;
    return size;
}

/* A begin, in size_min bytes or more. */
static size_t limits_put_begin(uint8_t *out, int64_t begin_ms, int64_t time_ms, size_t size_min) {
    int64_t before_ms = time_ms - begin_ms;
    uint64_t twice = (uint64_t)(before_ms < 0 ? -before_ms : before_ms) * 2 + (before_ms < 0);
    size_t size = limits_put_count(out, begin_ms == 0 ? 0 : twice + 1);
    for (; size < size_min; size++) {
        out[size - 1] |= 0x80;
        out[size] = 0;
    }
    return size;
}

size_t limits_pack(const struct limits_rule *rule, const struct limits_record *record,
                   uint8_t out[LIMITS_RECORD_BYTES_MAX]) {
    const unsigned all = 1U << LIMIT_EVERY | 1U << LIMIT_RESULTS | 1U << LIMIT_GAIN;
    /* The one that is written as it is. */
    int64_t time_ms = limits_has(rule, LIMIT_EVERY) ? record->last_ms
                      : limits_has(rule, LIMIT_RESULTS) && record->results_ms != 0
                          ? record->results_ms
                      : limits_has(rule, LIMIT_GAIN) ? record->gain_ms
                                                     : 0;
    uint64_t head = (uint64_t)time_ms << WHICH_BITS | (rule->has & all) >> LIMIT_EVERY;
    /* A time moves on with each result: a record whose size did so too would be written elsewhere each time. */
    size_t size_min = limits_has(rule, LIMIT_EVERY) ? BEGIN_BYTES : 1;
    size_t size = 0;
    if ((rule->has & all) == 0) {
        return 0;
    }
    for (; size < TIME_BYTES; size++) {
        out[size] = (uint8_t)(head >> 8 * size);
    }
    if (limits_has(rule, LIMIT_RESULTS)) {
        size += limits_put_begin(out + size, record->results_ms, time_ms, size_min);
        size += limits_put_count(out + size, record->results);
    }
    if (limits_has(rule, LIMIT_GAIN)) {
        size += limits_put_begin(out + size, record->gain_ms, time_ms, size_min);
        size += limits_put_count(out + size, record->gained);
    }
    return size;
}

static bool limits_take_count(struct bytes *note, uint64_t *count) {
    *count = 0;
    for (unsigned shift = 0; shift < 64 && note->size > 0; shift += 7) {
        uint8_t byte = (uint8_t)note->at[0];
        *note = (struct bytes){note->at + 1, note->size - 1};
        if (shift == 63 && byte > 1) {
            return false;
        }
        *count |= (uint64_t)(byte & 0x7f) << shift;
        if (byte <= 0x7f) {
            return true;
        }
    }
    return false;
}

static bool limits_take_begin(struct bytes *note, int64_t time_ms, int64_t *begin_ms) {
    uint64_t twice;
    if (!limits_take_count(note, &twice) || twice > 2 * (uint64_t)LIMITS_TIME_MS_END) {
        return false;
    }
    int64_t before_ms = (int64_t)(twice - 1) / 2;
    *begin_ms = twice == 0 ? 0 : (twice & 1) != 0 ? time_ms - before_ms : time_ms + before_ms;
    return *begin_ms >= 0 && *begin_ms < LIMITS_TIME_MS_END;
}

bool limits_unpack(struct bytes note, struct limits_record *record) {
    uint64_t head = 0;
    uint64_t results = 0;
    struct limits_record read = {.last_ms = 0};
    *record = read;
    for (unsigned i = 0; i < TIME_BYTES && i < note.size; i++) {
        head |= (uint64_t)(uint8_t)note.at[i] << 8 * i;
    }
    struct limits_rule rule = {.has = (uint8_t)((head & 7) << LIMIT_EVERY)};
    int64_t time_ms = (int64_t)(head >> WHICH_BITS);
    bool is_read = note.size >= TIME_BYTES && rule.has != 0;
    struct bytes rest = {note.at + TIME_BYTES, is_read ? note.size - TIME_BYTES : 0};
    read.last_ms = limits_has(&rule, LIMIT_EVERY) ? time_ms : 0;
    is_read =
        is_read &&
        (!limits_has(&rule, LIMIT_RESULTS) ||
         (limits_take_begin(&rest, time_ms, &read.results_ms) &&
          limits_take_count(&rest, &results) && results <= LIMIT_COUNT_MAX)) &&
        (!limits_has(&rule, LIMIT_GAIN) || (limits_take_begin(&rest, time_ms, &read.gain_ms) &&
                                            limits_take_count(&rest, &read.gained))) &&
        rest.size == 0;
    if (is_read) {
        read.results = (uint32_t)results;
        *record = read;
    }
    return is_read;
}

/* What is left of a time that began then; 0: it is over, as is one that begins later than now: a clock was set back. */
static int64_t limits_left_ms(int64_t begin_ms, int64_t time_ms, int64_t now_ms) {
    int64_t left = begin_ms + time_ms - now_ms;
    return begin_ms == 0 || begin_ms > now_ms || left < 0 ? 0 : left;
}

bool limits_is_over(const struct limits_rule *rule, const struct limits_record *record,
                    int64_t now_ms) {
    return limits_left_ms(record->last_ms, rule->time_ms[LIMIT_EVERY], now_ms) == 0 &&
           limits_left_ms(record->results_ms, rule->time_ms[LIMIT_RESULTS], now_ms) == 0 &&
           limits_left_ms(record->gain_ms, rule->time_ms[LIMIT_GAIN], now_ms) == 0;
}

/* ---- results ---- */

static wide limits_value_of(const struct layout_field *lead, uint64_t ordinal) {
    return decimal_to_wide(layout_field_decimal(lead, ordinal));
}

uint64_t limits_gain(const struct limits_result *result) {
    if (result->is_as_before || (!result->had_result && result->lead->is_ascending)) {
        return 0;
    }
    wide after = limits_value_of(result->lead, result->after);
    wide before = result->had_result ? limits_value_of(result->lead, result->before) : 0;
    wide gain = result->lead->is_ascending ? before - after : after - before;
    return gain <= 0 ? 0 : gain > UINT64_MAX ? UINT64_MAX : (uint64_t)gain;
}

/* MAX, MIN and STEP; LIMITS: they take it. */
static enum limit limits_check_value(const struct limits_rule *rule,
                                     const struct limits_result *result) {
    const struct layout_field *lead = result->lead;
    wide after = limits_value_of(lead, result->after);
    return limits_has(rule, LIMIT_MAX) && after > limits_value(rule, LIMIT_MAX, lead)   ? LIMIT_MAX
           : limits_has(rule, LIMIT_MIN) && after < limits_value(rule, LIMIT_MIN, lead) ? LIMIT_MIN
           : limits_has(rule, LIMIT_STEP) && result->had_result &&
                   limits_gain(result) > limits_value(rule, LIMIT_STEP, lead)
               ? LIMIT_STEP
               : LIMITS;
}

enum limit limits_check(const struct limits_rule *rule, const struct limits_result *result,
                        int64_t now_ms, struct limits_record *record, int64_t *wait_ms) {
    struct limits_record next = *record;
    enum limit refusal = result->is_as_before ? LIMITS : limits_check_value(rule, result);
    *wait_ms = 0;
    if (refusal != LIMITS) {
        return refusal;
    }
    if (limits_has(rule, LIMIT_EVERY)) {
        *wait_ms = limits_left_ms(record->last_ms, rule->time_ms[LIMIT_EVERY], now_ms);
        if (*wait_ms > 0) {
            return LIMIT_EVERY;
        }
        next.last_ms = now_ms;
    }
    if (limits_has(rule, LIMIT_RESULTS)) {
        int64_t left = limits_left_ms(record->results_ms, rule->time_ms[LIMIT_RESULTS], now_ms);
        if (left > 0 && record->results >= rule->of[LIMIT_RESULTS]) {
            *wait_ms = left;
            return LIMIT_RESULTS;
        }
        next.results_ms = left > 0 ? record->results_ms : now_ms;
        next.results = left > 0 ? record->results + 1 : 1;
    }
    if (limits_has(rule, LIMIT_GAIN)) {
        int64_t left = limits_left_ms(record->gain_ms, rule->time_ms[LIMIT_GAIN], now_ms);
        uint64_t gain = limits_gain(result);
        wide most = limits_value(rule, LIMIT_GAIN, result->lead);
        wide gained = (wide)gain + (left > 0 ? record->gained : 0);
        if (gained > most) {
            *wait_ms = gain <= most ? left : 0;
            return LIMIT_GAIN;
        }
        next.gain_ms = left > 0 ? record->gain_ms : gain > 0 ? now_ms : 0;
        next.gained = gained > UINT64_MAX ? UINT64_MAX : (uint64_t)gained;
    }
    *record = next;
    return LIMITS;
}
