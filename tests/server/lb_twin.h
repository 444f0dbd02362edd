/* A board as its words have it, to be compared with the server's: an array of members with decimals
 * and times, searched from end to end. It knows nothing of packed keys, but for one sum that makes
 * them from decimals. */
#ifndef TESTS_SERVER_LB_TWIN_H
#define TESTS_SERVER_LB_TWIN_H

#include "tests/server/zset_fixture.h"
#include "tests/support/random.h"
#include "tests/support/twin_server.h"

typedef twin_wide lb_wide;

/* More members than two blocks hold. */
enum { LB_MEMBERS = 100, LB_FIELDS = 4, LB_TEXT_MAX = 32768 };

struct lb_member {
    bool is_there;
    int64_t values[LB_FIELDS]; /* in units of the field's scale */
    int64_t unit;              /* of time since START; 0 without TIME */
    uint64_t arrival;
};

struct lb_twin {
    struct harness *harness;
    struct random random;
    const char *key;
    const struct layout *layout;
    struct lb_member members[LB_MEMBERS];
    uint64_t arrivals;
    char expected[LB_TEXT_MAX];
    size_t size;
};

/* Layouts of every kind, by the prefix of a key. */
static const char *const lb_prefixes[] = {"",       "laps:",   "money:", "fine:", "wide:", "bare:",
                                          "three:", "latest:", "daily:", "paid:", "mixed:"};
enum { LB_LAYOUTS = sizeof(lb_prefixes) / sizeof(lb_prefixes[0]) };

static inline bool lb_flip(struct lb_twin *twin, uint64_t one_in) {
    return random_below(&twin->random, one_in) == 0;
}

static inline int lb_pick_member(struct lb_twin *twin) {
    return (int)random_below(&twin->random, LB_MEMBERS);
}

static inline bool lb_is_resp3(const struct lb_twin *twin) {
    return twin->harness->server.session_first->protocol == 3;
}

/* ---- fields and times ---- */

static inline lb_wide lb_lowest(const struct layout_field *field) {
    return field->is_signed ? -((lb_wide)1 << (field->bits - 1)) : 0;
}

static inline lb_wide lb_highest(const struct layout_field *field) {
    return lb_lowest(field) + (((lb_wide)1 << field->bits) - 1);
}

/* Few values, so that there are ties. */
static inline int64_t lb_pick_value(struct lb_twin *twin, unsigned index) {
    const struct layout_field *field = &twin->layout->fields[index];
    int64_t low = field->is_signed ? -2 : 0;
    int64_t high = lb_highest(field) < 3 ? (int64_t)lb_highest(field) : 3;
    return low + (int64_t)random_below(&twin->random, (uint64_t)(high - low) + 1);
}

static inline int64_t lb_now_us(const struct lb_twin *twin) {
    return harness_now_us(twin->harness);
}

/* false: outside the layout's window. */
static inline bool lb_unit_of(const struct lb_twin *twin, int64_t time_us, int64_t *unit) {
    const struct layout_time *time = &twin->layout->time;
    *unit = 0;
    if (time->bits == 0) {
        return true;
    }
    if (time_us < time->start_us) {
        return false;
    }
    *unit = (time_us - time->start_us) / time->unit_us;
    return *unit < (int64_t)1 << time->bits;
}

/* ---- order ---- */

/* Negative: a's fields are better. */
static inline int lb_compare_fields(const struct lb_twin *twin, const struct lb_member *a,
                                    const struct lb_member *b) {
    for (unsigned i = 0; i < twin->layout->field_count; i++) {
        if (a->values[i] != b->values[i]) {
            bool is_less = a->values[i] < b->values[i];
            return is_less == twin->layout->fields[i].is_ascending ? -1 : 1;
        }
    }
    return 0;
}

static inline int lb_compare(const struct lb_twin *twin, const struct lb_member *a,
                             const struct lb_member *b) {
    int by_fields = lb_compare_fields(twin, a, b);
    if (by_fields != 0) {
        return by_fields;
    }
    bool is_earlier = a->unit != b->unit ? a->unit < b->unit : a->arrival < b->arrival;
    return is_earlier == twin->layout->time.is_latest ? 1 : -1;
}

/* How many members are better; competition: by their fields. */
static inline int lb_rank(const struct lb_twin *twin, int id, bool is_competition) {
    int better = 0;
    for (int other = 0; other < LB_MEMBERS; other++) {
        const struct lb_member *member = &twin->members[other];
        if (member->is_there && other != id) {
            better += (is_competition ? lb_compare_fields : lb_compare)(twin, member,
                                                                        &twin->members[id]) < 0;
        }
    }
    return better;
}

static inline int lb_count(const struct lb_twin *twin) {
    int count = 0;
    for (int id = 0; id < LB_MEMBERS; id++) {
        count += twin->members[id].is_there;
    }
    return count;
}

/* Best first; returns how many there are. */
static inline int lb_list(const struct lb_twin *twin, int *ids) {
    for (int id = 0; id < LB_MEMBERS; id++) {
        if (twin->members[id].is_there) {
            ids[lb_rank(twin, id, false)] = id;
        }
    }
    return lb_count(twin);
}

/* ---- text ---- */

__attribute__((format(printf, 2, 3))) static inline void lb_put(struct lb_twin *twin,
                                                                const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(twin->expected + twin->size, LB_TEXT_MAX - twin->size, format, arguments);
    va_end(arguments);
    assert_in_range(size, 0, LB_TEXT_MAX - 1 - twin->size);
    twin->size += (size_t)size;
}

/* A decimal of that scale, shortest. */
static inline void lb_print_decimal(lb_wide number, unsigned scale, char *out) {
    out[twin_print_decimal(out, number, (int)scale)] = '\0';
}

static inline void lb_print_wide(lb_wide number, char *out) {
    lb_print_decimal(number, 0, out);
}

static inline void lb_put_decimal(struct lb_twin *twin, lb_wide number, unsigned scale) {
    char text[80];
    lb_print_decimal(number, scale, text);
    lb_put(twin, " %s%s", lb_is_resp3(twin) ? "," : "", text);
}

/* The key as someone packs it by hand. */
static inline lb_wide lb_packed(const struct lb_twin *twin, const struct lb_member *member) {
    const struct layout *layout = twin->layout;
    lb_wide key = 0;
    for (unsigned i = 0; i < layout->field_count; i++) {
        const struct layout_field *field = &layout->fields[i];
        lb_wide value = member->values[i];
        lb_wide stored = field->is_ascending ? lb_highest(field) - value : value - lb_lowest(field);
        key = (key << field->bits) + stored;
    }
    if (layout->time.bits > 0) {
        lb_wide last = ((lb_wide)1 << layout->time.bits) - 1;
        lb_wide stored = layout->time.is_latest ? member->unit : last - member->unit;
        key = (key << layout->time.bits) + stored;
    }
    return layout->fields[0].is_signed ? key - ((lb_wide)1 << (layout->bits_total - 1)) : key;
}

struct lb_records {
    bool is_competition, with_percent, with_key;
};

static inline void lb_put_record(struct lb_twin *twin, int id, struct lb_records records) {
    const struct layout *layout = twin->layout;
    const struct lb_member *member = &twin->members[id];
    int rank = lb_rank(twin, id, records.is_competition);
    lb_put(twin, "[m%d :%d ", id, rank);
    if (layout->time.bits > 0) {
        int64_t time_us = layout->time.start_us + member->unit * layout->time.unit_us;
        lb_put(twin, ":%lld", (long long)(time_us / 1000));
    } else {
        lb_put(twin, lb_is_resp3(twin) ? "_" : "nil");
    }
    for (unsigned i = 0; i < layout->field_count; i++) {
        if (layout->fields[i].scale == 0) {
            lb_put(twin, " :%lld", (long long)member->values[i]);
        } else {
            lb_put_decimal(twin, member->values[i], layout->fields[i].scale);
        }
    }
    if (records.with_percent) {
        int count = lb_count(twin);
        lb_put_decimal(twin, (lb_wide)10000000000 * (count - rank) / count, 8);
    }
    if (records.with_key) {
        char text[48];
        lb_print_wide(lb_packed(twin, member), text);
        lb_put(twin, " %s", text);
    }
    lb_put(twin, "]");
}

/* The record of a member that may not be there. */
static inline void lb_put_found(struct lb_twin *twin, int id, struct lb_records records) {
    if (twin->members[id].is_there) {
        lb_put_record(twin, id, records);
    } else {
        lb_put(twin, lb_is_resp3(twin) ? "_" : "nil*");
    }
}

/* ---- asking the server ---- */

static inline void lb_begin_step(struct lb_twin *twin) {
    twin->size = 0;
    twin->expected[0] = '\0';
    twin->harness->server.session_first->protocol = lb_flip(twin, 2) ? 3 : 2;
}

static inline void lb_check(struct lb_twin *twin, const char *line) {
    const char *answered = zset_run(twin->harness, "%s", line);
    if (strcmp(answered, twin->expected) != 0) {
        print_error("%s\n  expected %s\n  answered %s\n", line, twin->expected, answered);
        fail();
    }
}

/* Compare the whole board: its members, their fields, times and order. An empty board must be
 * removed. */
static inline void lb_compare_whole(struct lb_twin *twin) {
    char line[LB_MEMBERS * 8 + 64];
    int size = snprintf(line, sizeof(line), "LB.GET %s %d", twin->key, LB_MEMBERS);
    for (int id = 0; id < LB_MEMBERS; id++) {
        size += snprintf(line + size, sizeof(line) - (size_t)size, " m%d", id);
    }
    lb_begin_step(twin);
    lb_put(twin, "[");
    for (int id = 0; id < LB_MEMBERS; id++) {
        lb_put(twin, id > 0 ? " " : "");
        lb_put_found(twin, id, (struct lb_records){false, true, true});
    }
    lb_put(twin, "]");
    lb_check(twin, strcat(line, " PCT WITHKEY"));
    free(zset_dump(twin->harness, twin->key));
    assert_true((zset_board(twin->harness, twin->key) != NULL) == (lb_count(twin) > 0));
}

#endif
