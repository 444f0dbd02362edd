/* HRANDFIELD: fields drawn uniformly at random (server/commands/draw.h). */
#include "server/commands/draw.h"

static const char with_values[] = "WITHVALUES";

/* A header for count fields. With values, pairs are flat in RESP2 and arrays in RESP3. */
static void hash_random_reply_header(const struct call *call, uint64_t count,
                                     const struct draw *draw) {
    bool is_flat = draw->with_values && call->reply->version == 2;
    reply_array(call->reply, is_flat ? count * 2 : count);
}

static void hash_random_reply_pair(const struct call *call, const struct hash_pair *pair,
                                   const struct draw *draw) {
    if (draw->with_values && call->reply->version > 2) {
        reply_array(call->reply, 2);
    }
    reply_bulk(call->reply, pair->field);
    if (draw->with_values) {
        reply_bulk(call->reply, pair->value);
    }
}

static void hash_random_reply_repeats(const struct call *call, const struct hash *hash,
                                      const struct draw *draw) {
    struct hash_pair pair;
    hash_random_reply_header(call, (uint64_t)-draw->count, draw);
    for (int64_t left = -draw->count; left > 0 && !reply_is_lost(call->reply); left--) {
        hash_at(hash, draw_below(call, hash_count(hash)), &pair);
        hash_random_reply_pair(call, &pair, draw);
    }
}

static void hash_random_reply_walk(const struct call *call, const struct hash *hash, uint32_t count,
                                   const struct draw *draw) {
    struct hash_cursor cursor = hash_begin(hash);
    struct hash_pair pair;
    hash_random_reply_header(call, count, draw);
    for (uint32_t left = hash_count(hash); count > 0 && !reply_is_lost(call->reply); left--) {
        bool is_there = hash_next(&cursor, &pair);
        CHECK(is_there);
        if (draw_takes(call, left, count)) {
            hash_random_reply_pair(call, &pair, draw);
            count--;
        }
    }
}

static void hash_random_reply_draws(const struct call *call, const struct hash *hash,
                                    uint32_t count, const struct draw *draw) {
    uint32_t *indexes = draw_indexes(call, count, hash_count(hash));
    struct hash_pair pair;
    if (indexes == NULL) {
        return;
    }
    hash_random_reply_header(call, count, draw);
    for (uint32_t i = 0; i < count && !reply_is_lost(call->reply); i++) {
        hash_at(hash, indexes[i], &pair);
        hash_random_reply_pair(call, &pair, draw);
    }
    memory_free(indexes);
}

static void hash_random_one(const struct call *call, const struct hash *hash) {
    struct hash_pair pair;
    hash_at(hash, draw_below(call, hash_count(hash)), &pair);
    reply_bulk(call->reply, pair.field);
}

static void hash_random_many(const struct call *call, const struct hash *hash,
                             const struct draw *draw) {
    uint32_t field_count = hash_count(hash);
    if (draw->count < 0) {
        hash_random_reply_repeats(call, hash, draw);
    } else if (draw->count == 0) {
        reply_array(call->reply, 0);
    } else if (draw->count >= field_count) {
        hash_random_reply_walk(call, hash, field_count, draw);
    } else if (draw_is_walk(draw->count, field_count)) {
        hash_random_reply_walk(call, hash, (uint32_t)draw->count, draw);
    } else {
        hash_random_reply_draws(call, hash, (uint32_t)draw->count, draw);
    }
}

static void hrandfield_run(struct call *call) {
    struct draw draw = {.count = 1};
    const struct hash *hash;
    bool is_one = call->request->count == 2;
    if ((!is_one && !draw_read(call, with_values, &draw)) ||
        !call_find_hash(call, call_arg(call, 1), &hash)) {
        return;
    }
    if (is_one && hash != NULL) {
        hash_random_one(call, hash);
    } else if (is_one) {
        reply_null(call->reply);
    } else if (hash != NULL) {
        hash_random_many(call, hash, &draw);
    } else {
        reply_array(call->reply, 0);
    }
}

static uint64_t hash_random_count_draws(const struct cost_view *view) {
    return draw_work(view, with_values);
}

const struct command command_hrandfield = {
    .name = "HRANDFIELD",
    .syntax = "key options=[count:integer [WITHVALUES]]",
    .summary = "Fields drawn at random: different ones, or (a negative count) with repeats",
    .complexity = "O(m) in the fields drawn, O(n) in the fields of the hash when m is large",
    .flags = COMMAND_READ,
    .reads_hash = true,
    .cost = COST(COMMAND_BY_PRODUCT, hash_random_count_draws, 150, 0, "draw",
                 "fewer of them at a time"),
    .run = hrandfield_run,
};
