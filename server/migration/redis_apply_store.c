/* ZUNIONSTORE, ZINTERSTORE, ZDIFFSTORE and ZRANGESTORE, with Redis's sums. */
#include <math.h>
#include <stdlib.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "server/migration/redis_apply_parts.h"

/* ---- scores that are combined ---- */

enum aggregate { AGGREGATE_SUM, AGGREGATE_MIN, AGGREGATE_MAX, AGGREGATE_COUNT };

/* As Redis: sums of infinities of both signs are 0, and so is a product that is no number. */
static double redis_apply_store_weigh(enum aggregate aggregate, double weight, double score) {
    double product = weight * (aggregate == AGGREGATE_COUNT ? 1 : score);
    return isnan(product) ? 0 : product;
}

static double redis_apply_store_join(enum aggregate aggregate, double a, double b) {
    switch (aggregate) {
    case AGGREGATE_SUM:
    case AGGREGATE_COUNT: {
        double sum = a + b;
        return isnan(sum) ? 0 : sum;
    }
    case AGGREGATE_MIN:
        return a < b ? a : b;
    case AGGREGATE_MAX:
        break;
    }
    return a > b ? a : b;
}

/* ---- results by member ---- */

/* Members are borrowed from boards, which do not change meanwhile. */
static void redis_apply_store_tally_begin(struct redis_apply *apply) {
    struct redis_tally *tally = &apply->tally;
    tally->count = 0;
    tally->seed = apply->sets[0].seed;
    if (tally->slots != NULL) {
        memset(tally->slots, 0, tally->slot_count * sizeof *tally->slots);
    }
}

/* Where the member is, or the free slot where it belongs. */
static uint64_t *redis_apply_store_slot_of(const struct redis_tally *tally, struct name member,
                                           uint64_t hash) {
    uint64_t tag = hash & ~(uint64_t)UINT32_MAX;
    uint64_t mask = tally->slot_count - 1;
    for (uint64_t at = hash & mask;; at = (at + 1) & mask) {
        uint64_t slot = tally->slots[at];
        if (slot == 0 || ((slot & ~(uint64_t)UINT32_MAX) == tag &&
                          name_equal(tally->entries[(uint32_t)slot - 1].member, member))) {
            return &tally->slots[at];
        }
    }
}

/* Room for count entries in all. */
static bool redis_apply_store_tally_reserve(struct redis_apply *apply, uint64_t count) {
    struct redis_tally *tally = &apply->tally;
    uint64_t slot_count = 64;
    while (slot_count < count * 2) {
        slot_count *= 2;
    }
    if (count >= UINT32_MAX) {
        return redis_apply_fail_memory(apply);
    }
    if (slot_count > tally->slot_count) {
        uint64_t *slots = memory_allocate_zeroed(slot_count * sizeof *slots);
        if (slots == NULL) {
            return redis_apply_fail_memory(apply);
        }
        memory_free(tally->slots);
        tally->slots = slots;
        tally->slot_count = slot_count;
    }
    if (count > tally->capacity) {
        struct redis_tally_entry *entries =
            memory_resize(tally->entries, count * sizeof *tally->entries);
        if (entries == NULL) {
            return redis_apply_fail_memory(apply);
        }
        tally->entries = entries;
        tally->capacity = (uint32_t)count;
    }
    return true;
}

static void redis_apply_store_tally_join(struct redis_tally *tally, struct name member,
                                         uint64_t hash, double score, enum aggregate aggregate) {
    uint64_t *slot = redis_apply_store_slot_of(tally, member, hash);
    if (*slot != 0) {
        double *sum = &tally->entries[(uint32_t)*slot - 1].score;
        *sum = redis_apply_store_join(aggregate, *sum, score);
        return;
    }
    tally->entries[tally->count++] = (struct redis_tally_entry){.member = member, .score = score};
    *slot = (hash & ~(uint64_t)UINT32_MAX) | tally->count;
}

enum { TALLY_GROUP = 16 };

/* Fetch where each of a group is, so that their waits for memory overlap. */
static void redis_apply_store_tally_fetch(const struct redis_tally *tally, const uint64_t *hashes,
                                          unsigned count) {
    uint64_t mask = tally->slot_count - 1;
    for (unsigned i = 0; i < count; i++) {
        __builtin_prefetch(&tally->slots[hashes[i] & mask]);
    }
    for (unsigned i = 0; i < count; i++) {
        uint64_t slot = tally->slots[hashes[i] & mask];
        __builtin_prefetch(slot != 0 ? &tally->entries[(uint32_t)slot - 1] : tally->entries);
    }
    for (unsigned i = 0; i < count; i++) {
        uint64_t slot = tally->slots[hashes[i] & mask];
        if (slot != 0) {
            __builtin_prefetch(tally->entries[(uint32_t)slot - 1].member.at);
        }
    }
}

/* Memory for a large result is not kept. */
static void redis_apply_store_tally_end(struct redis_tally *tally) {
    enum { KEPT_MAX = 1 << 16 };
    if (tally->slot_count > KEPT_MAX) {
        memory_free(tally->slots);
        memory_free(tally->entries);
        *tally = (struct redis_tally){.count = 0};
    }
}

/* ---- the result ---- */

static bool redis_apply_store_begin(struct redis_apply *apply, struct bytes name) {
    apply->load.now_us = apply->now_us;
    return redis_apply_take_load(
        apply, rdb_load_begin_board(&apply->load, redis_apply_database(apply), name));
}

static bool redis_apply_store_put(struct redis_apply *apply, struct bytes member, double score) {
    return redis_apply_take_load(apply, rdb_load_put_score(&apply->load, member, score));
}

/* It takes the place of what has its name. */
static bool redis_apply_store_end(struct redis_apply *apply) {
    return redis_apply_take_load(apply, rdb_load_end_board(&apply->load));
}

/* ---- sources ---- */

struct source {
    const struct board *board; /* NULL: there is none */
    double weight;
};

struct combination {
    struct bytes to;
    uint32_t count;
    struct source *sources;
    enum aggregate aggregate;
};

static bool redis_apply_store_find_source(struct redis_apply *apply, const struct request *request,
                                          struct bytes name, const struct board **board) {
    struct registry_key *key;
    const struct redis_names *sets = redis_apply_sets(apply);
    if (!redis_apply_find_board(apply, name, &key)) {
        return false;
    }
    *board = key != NULL ? &key->board : NULL;
    if (key != NULL) {
        return true;
    }
    if (redis_names_hold(sets, name)) {
        return redis_apply_fail_key(apply, name,
                                    "the source's %s reads this set, and sets are not followed",
                                    bytes_show(request->args[0]).text);
    }
    if (sets->is_lost) {
        apply->wants_copy = true;
        return redis_apply_fail_key(apply, name, "the source's %s reads it, and it may be a set",
                                    bytes_show(request->args[0]).text);
    }
    return true;
}

static bool redis_apply_store_read_aggregate(struct bytes word, enum aggregate *aggregate) {
    if (bytes_is(word, "SUM")) {
        *aggregate = AGGREGATE_SUM;
    } else if (bytes_is(word, "MIN")) {
        *aggregate = AGGREGATE_MIN;
    } else if (bytes_is(word, "MAX")) {
        *aggregate = AGGREGATE_MAX;
    } else if (bytes_is(word, "COUNT")) {
        *aggregate = AGGREGATE_COUNT;
    } else {
        return false;
    }
    return true;
}

static bool redis_apply_store_read_options(const struct request *request,
                                           struct combination *combination) {
    uint32_t at = 3 + combination->count;
    while (at < request->count) {
        if (bytes_is(request->args[at], "WEIGHTS") && request->count - at > combination->count) {
            for (uint32_t i = 0; i < combination->count; i++) {
                if (!redis_order_parse_score(request->args[at + 1 + i],
                                             &combination->sources[i].weight)) {
                    return false;
                }
            }
            at += 1 + combination->count;
        } else if (bytes_is(request->args[at], "AGGREGATE") && request->count - at >= 2 &&
                   redis_apply_store_read_aggregate(request->args[at + 1],
                                                    &combination->aggregate)) {
            at += 2;
        } else {
            return false;
        }
    }
    return true;
}

static uint32_t redis_apply_store_size_of(const struct source *source) {
    return source->board != NULL ? board_count(source->board) : 0;
}

/* Redis combines from the smallest to the largest: sums of doubles depend on it. Stable, as its qsort is. */
static void redis_apply_store_order_sources(struct combination *combination) {
    for (uint32_t i = 1; i < combination->count; i++) {
        struct source source = combination->sources[i];
        uint32_t at = i;
        for (; at > 0 && redis_apply_store_size_of(&combination->sources[at - 1]) >
                             redis_apply_store_size_of(&source);
             at--) {
            combination->sources[at] = combination->sources[at - 1];
        }
        combination->sources[at] = source;
    }
}

/* Puts the result. false: error. */
typedef bool combine(struct redis_apply *apply, struct combination *combination);

static void redis_apply_store_unite_one(struct redis_tally *tally, const struct source *source,
                                        enum aggregate aggregate) {
    struct board_stored entries[TALLY_GROUP];
    uint64_t hashes[TALLY_GROUP];
    struct board_cursor cursor;
    unsigned count;
    board_seek(source->board, 0, &cursor);
    do {
        for (count = 0; count < TALLY_GROUP && board_cursor_read(&cursor, &entries[count]);
             count++) {
            struct bytes member = name_stored(entries[count].member);
            hashes[count] = XXH3_64bits_withSeed(member.at, member.size, tally->seed);
            board_cursor_next(&cursor);
        }
        redis_apply_store_tally_fetch(tally, hashes, count);
        for (unsigned i = 0; i < count; i++) {
            double score = rdb_value_score(board_layout(source->board), entries[i].key);
            redis_apply_store_tally_join(tally, entries[i].member, hashes[i],
                                         redis_apply_store_weigh(aggregate, source->weight, score),
                                         aggregate);
        }
    } while (count == TALLY_GROUP);
}

static bool redis_apply_store_unite(struct redis_apply *apply, struct combination *combination) {
    struct redis_tally *tally = &apply->tally;
    uint64_t count = 0;
    redis_apply_store_order_sources(combination);
    for (uint32_t i = 0; i < combination->count; i++) {
        count += redis_apply_store_size_of(&combination->sources[i]);
    }
    redis_apply_store_tally_begin(apply);
    bool is_fine = redis_apply_store_tally_reserve(apply, count);
    for (uint32_t i = 0; i < combination->count && is_fine; i++) {
        if (combination->sources[i].board != NULL) {
            redis_apply_store_unite_one(tally, &combination->sources[i], combination->aggregate);
        }
    }
    for (uint32_t i = 0; i < tally->count && is_fine; i++) {
        char room[NAME_TEXT_ROOM];
        is_fine = redis_apply_store_put(apply, name_text(tally->entries[i].member, room),
                                        tally->entries[i].score);
    }
    redis_apply_store_tally_end(tally);
    return is_fine;
}

/* Members of the first one that pass. */
static bool
redis_apply_store_each_of_first(struct redis_apply *apply, const struct combination *combination,
                                bool (*take)(const struct combination *combination,
                                             const struct board_entry *entry, double *score)) {
    const struct board *first = combination->sources[0].board;
    struct board_cursor cursor;
    struct board_stored entry;
    bool is_fine = true;
    double score;
    if (first == NULL) {
        return true;
    }
    board_seek(first, 0, &cursor);
    while (is_fine && board_cursor_read(&cursor, &entry)) {
        char room[NAME_TEXT_ROOM];
        struct board_entry taken = {.key = entry.key, .member = name_text(entry.member, room)};
        is_fine =
            !take(combination, &taken, &score) || redis_apply_store_put(apply, taken.member, score);
        board_cursor_next(&cursor);
    }
    return is_fine;
}

static bool redis_apply_store_is_in_all(const struct combination *combination,
                                        const struct board_entry *entry, double *score) {
    const struct source *first = &combination->sources[0];
    *score = redis_apply_store_weigh(combination->aggregate, first->weight,
                                     rdb_value_score(board_layout(first->board), entry->key));
    for (uint32_t i = 1; i < combination->count; i++) {
        const struct source *source = &combination->sources[i];
        uint64_t key;
        if (source->board == NULL || !board_find(source->board, entry->member, &key)) {
            return false;
        }
        *score = redis_apply_store_join(
            combination->aggregate, *score,
            redis_apply_store_weigh(combination->aggregate, source->weight,
                                    rdb_value_score(board_layout(source->board), key)));
    }
    return true;
}

static bool redis_apply_store_intersect(struct redis_apply *apply,
                                        struct combination *combination) {
    redis_apply_store_order_sources(combination);
    return redis_apply_store_each_of_first(apply, combination, redis_apply_store_is_in_all);
}

static bool redis_apply_store_is_in_first_only(const struct combination *combination,
                                               const struct board_entry *entry, double *score) {
    uint64_t key;
    *score = rdb_value_score(board_layout(combination->sources[0].board), entry->key);
    for (uint32_t i = 1; i < combination->count; i++) {
        const struct board *board = combination->sources[i].board;
        if (board != NULL && board_find(board, entry->member, &key)) {
            return false;
        }
    }
    return true;
}

static bool redis_apply_store_subtract(struct redis_apply *apply, struct combination *combination) {
    return redis_apply_store_each_of_first(apply, combination, redis_apply_store_is_in_first_only);
}

static bool redis_apply_store_find_sources(struct redis_apply *apply, const struct request *request,
                                           struct combination *combination) {
    for (uint32_t i = 0; i < combination->count; i++) {
        combination->sources[i].weight = 1;
        if (!redis_apply_store_find_source(apply, request, request->args[3 + i],
                                           &combination->sources[i].board)) {
            return false;
        }
    }
    return redis_apply_store_read_options(request, combination) ||
           redis_apply_fail_form(apply, request);
}

static bool redis_apply_store_store(struct redis_apply *apply, const struct request *request,
                                    combine *how) {
    struct combination combination = {.to = request->args[1]};
    int64_t count;
    if (!bytes_parse_i64(request->args[2], &count) || count < 1 || count > request->count - 3) {
        return redis_apply_fail_form(apply, request);
    }
    combination.count = (uint32_t)count;
    combination.sources = memory_allocate_zeroed(combination.count * sizeof *combination.sources);
    if (combination.sources == NULL) {
        return redis_apply_fail_memory(apply);
    }
    bool is_fine = redis_apply_store_find_sources(apply, request, &combination) &&
                   redis_apply_store_begin(apply, combination.to) && how(apply, &combination) &&
                   redis_apply_store_end(apply);
    memory_free(combination.sources);
    return is_fine;
}

bool redis_apply_zunionstore(struct redis_apply *apply, const struct request *request) {
    return redis_apply_store_store(apply, request, redis_apply_store_unite);
}

bool redis_apply_zinterstore(struct redis_apply *apply, const struct request *request) {
    return redis_apply_store_store(apply, request, redis_apply_store_intersect);
}

bool redis_apply_zdiffstore(struct redis_apply *apply, const struct request *request) {
    return redis_apply_store_store(apply, request, redis_apply_store_subtract);
}

/* ---- ZRANGESTORE ---- */

struct range {
    enum redis_span kind;
    bool is_reverse, has_limit;
    int64_t offset, limit;
    struct bytes from, to; /* as they stand there */
};

static bool redis_apply_store_read_range(const struct request *request, struct range *range) {
    *range = (struct range){.from = request->args[3], .to = request->args[4], .limit = -1};
    for (uint32_t at = 5; at < request->count; at++) {
        struct bytes word = request->args[at];
        if (bytes_is(word, "BYSCORE")) {
            range->kind = REDIS_SPAN_SCORES;
        } else if (bytes_is(word, "BYLEX")) {
            range->kind = REDIS_SPAN_NAMES;
        } else if (bytes_is(word, "REV")) {
            range->is_reverse = true;
        } else if (bytes_is(word, "LIMIT") && request->count - at > 2 &&
                   bytes_parse_i64(request->args[at + 1], &range->offset) &&
                   bytes_parse_i64(request->args[at + 2], &range->limit)) {
            range->has_limit = true;
            at += 2;
        } else {
            return false;
        }
    }
    return true;
}

/* Places first .. end - 1, as the walk goes: from the end down if reversed. */
static void redis_apply_store_limit_places(const struct range *range, uint32_t *first,
                                           uint32_t *end) {
    int64_t count = *end - *first;
    if (!range->has_limit) {
        return;
    }
    int64_t offset = range->offset;
    int64_t taken = offset < 0 || offset >= count ? 0 : count - offset;
    taken = range->limit >= 0 && range->limit < taken ? range->limit : taken;
    offset = taken == 0 ? 0 : offset;
    if (range->is_reverse) {
        *first = (uint32_t)(*end - offset - taken);
    } else {
        *first += (uint32_t)offset;
    }
    *end = *first + (uint32_t)taken;
}

/* Reversed, places are counted from the end, and the upper end of a range comes first. */
static bool redis_apply_store_find_places(const struct range *range, const struct board *board,
                                          uint32_t *first, uint32_t *end) {
    bool is_by_place = range->kind == REDIS_SPAN_PLACES;
    bool is_swapped = range->is_reverse && !is_by_place;
    if (!redis_order_find_span(board, range->kind, is_swapped ? range->to : range->from,
                               is_swapped ? range->from : range->to, first, end)) {
        return false;
    }
    if (is_by_place && range->is_reverse && *first < *end) {
        uint32_t count = board_count(board);
        uint32_t last = count - *first;
        *first = count - *end;
        *end = last;
    }
    if (!is_by_place) {
        redis_apply_store_limit_places(range, first, end);
    }
    return true;
}

static bool redis_apply_store_put_places(struct redis_apply *apply, const struct board *board,
                                         uint32_t first, uint32_t end) {
    struct redis_selection selection;
    struct board_cursor cursor;
    struct board_stored entry;
    if (first == end) {
        return true;
    }
    if (!redis_apply_select(apply, board, first, end - 1, false, &selection)) {
        return false;
    }
    const struct layout *layout = board_layout(board);
    bool is_fine = true;
    char room[NAME_TEXT_ROOM];
    board_seek(board, selection.rank, &cursor);
    for (uint32_t i = 0; i < selection.count && is_fine && board_cursor_read(&cursor, &entry);
         i++) {
        is_fine = redis_apply_store_put(apply, name_text(entry.member, room),
                                        rdb_value_score(layout, entry.key));
        board_cursor_next(&cursor);
    }
    for (uint32_t i = 0; i < selection.pick_count && is_fine; i++) {
        is_fine = redis_apply_store_put(apply, name_text(selection.picks[i].member, room),
                                        rdb_value_score(layout, selection.picks[i].key));
    }
    redis_selection_deinit(&selection);
    return is_fine;
}

bool redis_apply_zrangestore(struct redis_apply *apply, const struct request *request) {
    struct range range;
    const struct board *board;
    struct bytes to = request->args[1];
    if (!redis_apply_store_read_range(request, &range)) {
        return redis_apply_fail_form(apply, request);
    }
    if (!redis_apply_store_find_source(apply, request, request->args[2], &board) ||
        !redis_apply_store_begin(apply, to)) {
        return false;
    }
    uint32_t first;
    uint32_t end;
    if (!redis_apply_store_find_places(&range, board, &first, &end)) {
        return redis_apply_fail_form(apply, request);
    }
    return redis_apply_store_put_places(apply, board, first, end) && redis_apply_store_end(apply);
}
