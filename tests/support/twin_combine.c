/* The naive twin of ZUNION, ZINTER and ZDIFF, of their STORE forms, ZINTERCARD and ZRANGESTORE: for
 * every member of every board it asks every board, and results are put one by one in the order in
 * which they were reached. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/twin_parts.h"

enum {
    SCORE_SCALE = 3,  /* no layout of the tests keeps more decimals */
    WEIGHT_SCALE = 6, /* and no weight has more */
    VALUE_SCALE = SCORE_SCALE + WEIGHT_SCALE,
    SOURCES_MAX = 32,
};

/* ---- what is asked for ---- */

struct query {
    bool is_union, is_diff, is_stored, is_counted;
    const struct twin_key *sources[SOURCES_MAX]; /* NULL: no such key */
    uint32_t source_count;
    twin_wide weights[SOURCES_MAX];
    bool is_min, is_max, is_count;
    bool with_scores;
    int64_t limit;
};

static bool begins_with(struct bytes text, const char *word) {
    return text.size >= strlen(word) &&
           twin_is_word((struct bytes){.at = text.at, .size = strlen(word)}, word);
}

static bool read_keys(struct twin_server *twin, const struct bytes *args, uint32_t count,
                      uint32_t at, struct query *query) {
    int64_t asked;
    if (!twin_read_integer(args[at], &asked)) {
        twin_put_error(twin, TWIN_INTEGER_ERROR);
        return false;
    }
    if (asked < 1) {
        char name[32] = "";
        for (size_t i = 0; i < args[0].size; i++) {
            name[i] = (char)(args[0].at[i] | 0x20);
        }
        twin_put(twin, "-ERR at least 1 input key is needed for '%s' command\r\n", name);
        return false;
    }
    if (asked > (int64_t)count - at - 1) {
        twin_put_error(twin, TWIN_SYNTAX_ERROR);
        return false;
    }
    query->source_count = (uint32_t)asked;
    for (uint32_t i = 0; i < query->source_count; i++) {
        query->sources[i] = twin_find(twin, args[at + 1 + i]);
        query->weights[i] = 1;
        for (int digit = 0; digit < WEIGHT_SCALE; digit++) {
            query->weights[i] *= 10;
        }
    }
    return true;
}

static bool read_weights(struct twin_server *twin, const struct bytes *args, struct query *query) {
    for (uint32_t i = 0; i < query->source_count; i++) {
        switch (twin_read_number(args[i], WEIGHT_SCALE, &query->weights[i])) {
        case TWIN_NUMBER:
            break;
        case TWIN_NOT_A_NUMBER:
            twin_put_error(twin, "weight value is not a float");
            return false;
        case TWIN_TOO_PRECISE:
        case TWIN_TOO_LARGE:
            twin_put_error(twin, TWIN_ANY_ERROR);
            return false;
        }
    }
    return true;
}

static bool read_options(struct twin_server *twin, const struct bytes *args, uint32_t count,
                         uint32_t at, struct query *query) {
    bool has_values = !query->is_diff && !query->is_counted;
    while (at < count) {
        uint32_t left = count - at - 1;
        if (has_values && twin_is_word(args[at], "WEIGHTS") && left >= query->source_count) {
            if (!read_weights(twin, args + at + 1, query)) {
                return false;
            }
            at += 1 + query->source_count;
        } else if (has_values && twin_is_word(args[at], "AGGREGATE") && left >= 1 &&
                   (twin_is_word(args[at + 1], "SUM") || twin_is_word(args[at + 1], "MIN") ||
                    twin_is_word(args[at + 1], "MAX") || twin_is_word(args[at + 1], "COUNT"))) {
            query->is_min = twin_is_word(args[at + 1], "MIN");
            query->is_max = twin_is_word(args[at + 1], "MAX");
            query->is_count = twin_is_word(args[at + 1], "COUNT");
            at += 2;
        } else if (!query->is_stored && !query->is_counted &&
                   twin_is_word(args[at], "WITHSCORES")) {
            query->with_scores = true;
            at += 1;
        } else if (query->is_counted && twin_is_word(args[at], "LIMIT") && left >= 1) {
            if (!twin_read_integer(args[at + 1], &query->limit) || query->limit < 0) {
                twin_put_error(twin, "LIMIT can't be negative");
                return false;
            }
            at += 2;
        } else {
            twin_put_error(twin, TWIN_SYNTAX_ERROR);
            return false;
        }
    }
    return true;
}

/* ---- results ---- */

struct result {
    struct bytes name; /* the source's */
    twin_wide value;   /* at VALUE_SCALE */
    int64_t reached_us;
};

struct results {
    struct result *at;
    uint32_t count;
};

/* The time as a board keeps it: in whole units, or none at all. */
static int64_t time_of(const struct twin_server *twin, const struct twin_layout *layout,
                       const struct twin_member *member) {
    if (layout->time_bits == 0) {
        return twin->now_us;
    }
    return layout->start_us + member->unit * layout->unit_us;
}

static twin_wide value_of(const struct twin_layout *layout, const struct twin_member *member,
                          twin_wide weight) {
    twin_wide value = member->values[0] * weight;
    for (int scale = layout->fields[0].scale; scale < SCORE_SCALE; scale++) {
        value *= 10;
    }
    return value;
}

/* One board that has the member. */
static twin_wide count_of(twin_wide weight) {
    for (int scale = 0; scale < SCORE_SCALE; scale++) {
        weight *= 10;
    }
    return weight;
}

/* Join what every board has of this member. false: it does not belong to the result. */
static bool join(const struct twin_server *twin, const struct query *query, struct bytes name,
                 struct result *result) {
    bool is_found = false;
    bool has_weight = false;
    for (uint32_t i = 0; i < query->source_count; i++) {
        const struct twin_key *source = query->sources[i];
        int64_t rank = twin_find_member(source, name);
        if (rank < 0) {
            if (!query->is_union && !query->is_diff) {
                return false;
            }
            continue;
        }
        if (query->is_diff && i > 0) {
            return false;
        }
        const struct twin_member *member = &source->members[rank];
        struct result part = {
            .name = member->name,
            .value = query->is_count ? count_of(query->weights[i])
                                     : value_of(source->layout, member, query->weights[i]),
            .reached_us = time_of(twin, source->layout, member),
        };
        bool part_has_weight = query->weights[i] != 0;
        if (!is_found) {
            *result = part;
        } else if (query->is_min || query->is_max) {
            bool is_better =
                query->is_min ? part.value < result->value : part.value > result->value;
            bool is_earlier = part.value == result->value && part.reached_us < result->reached_us;
            *result = is_better || is_earlier ? part : *result;
        } else {
            result->value += part.value;
            if (part_has_weight == has_weight ? part.reached_us > result->reached_us
                                              : part_has_weight) {
                result->reached_us = part.reached_us;
            }
        }
        has_weight = has_weight || part_has_weight;
        is_found = true;
    }
    return is_found;
}

static bool is_among(const struct results *results, struct bytes name) {
    for (uint32_t i = 0; i < results->count; i++) {
        if (bytes_equal(results->at[i].name, name)) {
            return true;
        }
    }
    return false;
}

/* The nth member of a board to arrive, among equals. */
static const struct twin_member *arrival(const struct twin_key *key, uint32_t nth) {
    return &key->members[key->layout->is_latest ? key->count - 1 - nth : nth];
}

/* Every result once, in the order of the boards and of arrival on them. */
static void collect(const struct twin_server *twin, const struct query *query,
                    struct results *results) {
    uint64_t most = 1;
    for (uint32_t i = 0; i < query->source_count; i++) {
        most += query->sources[i] != NULL ? query->sources[i]->count : 0;
    }
    *results = (struct results){.at = twin_plain(malloc(most * sizeof(struct result)))};
    for (uint32_t i = 0; i < query->source_count; i++) {
        const struct twin_key *source = query->sources[i];
        for (uint32_t n = 0; source != NULL && n < source->count; n++) {
            struct bytes name = arrival(source, n)->name;
            if (!is_among(results, name) && join(twin, query, name, &results->at[results->count])) {
                results->count++;
            }
        }
    }
}

/* By time, and as they are within one. */
static void sort_by_time(struct results *results) {
    for (uint32_t i = 1; i < results->count; i++) {
        struct result moved = results->at[i];
        uint32_t at = i;
        for (; at > 0 && results->at[at - 1].reached_us > moved.reached_us; at--) {
            results->at[at] = results->at[at - 1];
        }
        results->at[at] = moved;
    }
}

/* ---- storing ---- */

static bool to_score(twin_wide value, int scale, twin_wide *score) {
    for (int digit = VALUE_SCALE; digit > scale; digit--) {
        if (value % 10 != 0) {
            return false;
        }
        value /= 10;
    }
    *score = value;
    return true;
}

/* Put all results on an empty key, each when it was reached. */
static void put_all(struct twin_server *twin, struct twin_key *key, struct results *results) {
    sort_by_time(results);
    for (uint32_t i = 0; i < results->count; i++) {
        const struct result *result = &results->at[i];
        struct twin_member member = {
            .name = result->name,
            .unit = twin_time_units(key->layout, result->reached_us),
        };
        (void)to_score(result->value, key->layout->fields[0].scale, &member.values[0]);
        twin_put_member(twin, key, member);
    }
}

static bool can_hold(const struct twin_layout *layout, const struct results *results) {
    for (uint32_t i = 0; i < results->count; i++) {
        twin_wide score;
        if (!to_score(results->at[i].value, layout->fields[0].scale, &score) ||
            !twin_is_in_field(&layout->fields[0], score) ||
            !twin_is_time_in_field(layout, results->at[i].reached_us)) {
            return false;
        }
    }
    return true;
}

static void store(struct twin_server *twin, struct bytes name, struct results *results) {
    if (!can_hold(twin_layout_for(twin, name), results)) {
        twin_put_error(twin, TWIN_ANY_ERROR);
        return;
    }
    struct twin_key *old = twin_find(twin, name);
    if (results->count > 0) {
        struct twin_key *key = twin_create_in(twin, twin->database, name);
        put_all(twin, key, results);
    }
    if (old != NULL) {
        twin_remove_key(twin, old);
    }
    twin_put_integer(twin, results->count);
}

/* ---- answering ---- */

/* As ZRANGE shows a board with the layout of the first key that exists. */
static void answer(struct twin_server *twin, const struct query *query, struct results *results) {
    bool is_flat = query->with_scores && twin->protocol == 2;
    struct twin_layout layout = {.field_count = 1};
    for (uint32_t i = query->source_count; i > 0; i--) {
        layout = query->sources[i - 1] != NULL ? *query->sources[i - 1]->layout : layout;
    }
    layout.fields[0].scale = VALUE_SCALE;
    struct twin_key shown = {.layout = &layout};
    put_all(twin, &shown, results);
    twin_put_array(twin, is_flat ? 2 * (uint64_t)shown.count : shown.count);
    for (uint32_t i = 0; i < shown.count; i++) {
        const struct twin_member *member =
            &shown.members[layout.fields[0].is_ascending ? i : shown.count - 1 - i];
        if (query->with_scores && !is_flat) {
            twin_put_array(twin, 2);
        }
        twin_put_bulk(twin, member->name);
        if (query->with_scores) {
            twin_put_score(twin, &shown, member->values[0]);
        }
    }
    twin_clear_members(&shown);
}

void twin_run_combine(struct twin_server *twin, const struct bytes *args, uint32_t count) {
    struct query query = {
        .is_union = begins_with(args[0], "ZUNION"),
        .is_diff = begins_with(args[0], "ZDIFF"),
        .is_stored = args[0].size > strlen("ZINTERCARD") || twin_is_word(args[0], "ZDIFFSTORE"),
        .is_counted = twin_is_word(args[0], "ZINTERCARD"),
    };
    uint32_t at = query.is_stored ? 2 : 1;
    if (!read_keys(twin, args, count, at, &query) ||
        !read_options(twin, args, count, at + 1 + query.source_count, &query)) {
        return;
    }
    struct results results;
    collect(twin, &query, &results);
    if (query.is_counted) {
        bool is_cut = query.limit > 0 && query.limit < results.count;
        twin_put_integer(twin, is_cut ? query.limit : results.count);
    } else if (query.is_stored) {
        store(twin, args[1], &results);
    } else {
        answer(twin, &query, &results);
    }
    free(results.at);
}

void twin_store_members(struct twin_server *twin, struct bytes name, const struct twin_key *from,
                        const uint32_t *ranks, uint32_t count) {
    struct results results = {.at = twin_plain(malloc((count + 1) * sizeof(struct result)))};
    twin_wide weight = 1;
    for (int digit = 0; digit < WEIGHT_SCALE; digit++) {
        weight *= 10;
    }
    /* In order of arrival; the ranks may come either way round. */
    for (uint32_t nth = 0; from != NULL && nth < from->count; nth++) {
        const struct twin_member *member = arrival(from, nth);
        for (uint32_t i = 0; i < count; i++) {
            if (&from->members[ranks[i]] == member) {
                results.at[results.count++] = (struct result){
                    .name = member->name,
                    .value = value_of(from->layout, member, weight),
                    .reached_us = time_of(twin, from->layout, member),
                };
            }
        }
    }
    store(twin, name, &results);
    free(results.at);
}
