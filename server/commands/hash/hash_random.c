/* HRANDFIELD: fields drawn uniformly at random (server/commands/draw.h). */
#include "server/commands/draw.h"

static void hash_random_reply_pair(const struct call *call, const struct hash_pair *pair,
                                   bool with_value) {
    if (with_value && call->reply->version > 2) {
        reply_array(call->reply, 2);
    }
    reply_bulk(call->reply, pair->field);
    if (with_value) {
        reply_bulk(call->reply, pair->value);
    }
}

static void hash_random_put(const struct draw_source *source, const uint32_t *indexes,
                            uint32_t count, bool with_value) {
    struct hash_pair pair;
    for (uint32_t i = 0; i < count; i++) {
        hash_at(source->value, indexes[i], &pair);
        hash_random_reply_pair(source->call, &pair, with_value);
    }
}

static void hash_random_walk(const struct draw_source *source, uint32_t count, bool with_value) {
    struct hash_cursor cursor = hash_begin(source->value);
    struct hash_pair pair;
    for (uint32_t left = source->size; count > 0 && !reply_is_lost(source->call->reply); left--) {
        bool is_there = hash_next(&cursor, &pair);
        CHECK(is_there);
        if (draw_takes(source->call, left, count)) {
            hash_random_reply_pair(source->call, &pair, with_value);
            count--;
        }
    }
}

static void hrandfield_run(struct call *call) {
    struct draw draw;
    const struct hash *hash;
    if (draw_read(call, &draw) && call_find_hash(call, call_arg(call, 1), &hash)) {
        draw_reply(&(const struct draw_source){.call = call,
                                               .value = hash,
                                               .size = hash != NULL ? hash_count(hash) : 0,
                                               .put = hash_random_put,
                                               .walk = hash_random_walk},
                   &draw);
    }
}

const struct command command_hrandfield = {
    .name = "HRANDFIELD",
    .syntax = "key options=[count:integer [WITHVALUES]]",
    .bindings = DRAW_BINDINGS("WITHVALUES"),
    .reply = "s?|[s]|WITHVALUES=[[field:s value:s]...]",
    .summary = "Fields drawn at random: different ones, or (a negative count) with repeats",
    .complexity = "O(m) in the fields drawn, O(n) in the fields of the hash when m is large",
    .flags = COMMAND_READ,
    .reads_hash = true,
    .cost = COST(COMMAND_BY_PRODUCT, draw_work, 150, 0, "draw", "fewer of them at a time"),
    .run = hrandfield_run,
};
