/* ZADD, ZINCRBY, and what removes members, with Redis's results. */
#include <math.h>
#include <stdio.h>

#include "server/migration/redis_apply_parts.h"
#include "skiplist/lookup.h"

/* ---- ZADD, ZINCRBY ---- */

struct zadd {
    bool is_new_only, is_existing_only, is_greater_only, is_less_only, is_increment;
    struct bytes name;
    struct registry_key *key; /* NULL: the board does not exist */
    const struct layout *layout;
};

/* What a pair does to its member. */
struct pair {
    struct bytes member_name;
    struct board_member member;
    bool is_change;
    uint64_t key; /* stamped */
};

static bool redis_apply_zset_read_options(const struct request *request, struct zadd *zadd,
                                          uint32_t *first) {
    uint32_t at = 2;
    for (; at < request->count; at++) {
        struct bytes word = request->args[at];
        if (bytes_is(word, "NX")) {
            zadd->is_new_only = true;
        } else if (bytes_is(word, "XX")) {
            zadd->is_existing_only = true;
        } else if (bytes_is(word, "GT")) {
            zadd->is_greater_only = true;
        } else if (bytes_is(word, "LT")) {
            zadd->is_less_only = true;
        } else if (bytes_is(word, "INCR")) {
            zadd->is_increment = true;
        } else if (!bytes_is(word, "CH")) {
            break;
        }
    }
    *first = at;
    return at < request->count && (request->count - at) % 2 == 0;
}

/* As zsetAdd of Redis: does the member get another score, and which? */
static bool redis_apply_zset_decide(const struct zadd *zadd, const struct board_member *member,
                                    double *score) {
    if (!member->is_there) {
        return !zadd->is_existing_only;
    }
    double before = rdb_value_score(zadd->layout, member->key);
    if (zadd->is_new_only) {
        return false;
    }
    if (zadd->is_increment) {
        *score += before;
    }
    if ((zadd->is_less_only && *score >= before) || (zadd->is_greater_only && *score <= before)) {
        return false;
    }
    return *score != before;
}

static bool redis_apply_zset_find_key(struct redis_apply *apply, const struct zadd *zadd,
                                      struct pair *pair, double score) {
    char why[RDB_VALUE_ERROR_MAX];
    uint64_t ordinal;
    if (rdb_value_find_ordinal(&zadd->layout->fields[0], score, &ordinal, why) != RDB_VALUE_OK) {
        return redis_apply_fail_member(apply, zadd->name, pair->member_name, why);
    }
    uint64_t key = pair->member.is_there ? pair->member.key : layout_zero_key(zadd->layout);
    key = layout_with_ordinal(zadd->layout, key, 0, ordinal);
    if (layout_stamp(zadd->layout, key, apply->now_us, &pair->key) != LAYOUT_OK) {
        layout_explain_time(zadd->layout, apply->now_us, why);
        return redis_apply_fail_member(apply, zadd->name, pair->member_name, why);
    }
    return true;
}

static bool redis_apply_zset_look_at(struct redis_apply *apply, const struct zadd *zadd,
                                     const struct request *request, uint32_t at,
                                     struct pair *pair) {
    double score;
    char why[RDB_VALUE_ERROR_MAX];
    if (!redis_order_parse_score(request->args[at], &score)) {
        return redis_apply_fail_form(apply, request);
    }
    *pair = (struct pair){.member_name = request->args[at + 1]};
    if (pair->member_name.size == 0 || pair->member_name.size > BOARD_MEMBER_MAX) {
        snprintf(why, sizeof why, "it is %zu bytes long: 1..%d are allowed", pair->member_name.size,
                 (int)BOARD_MEMBER_MAX);
        return redis_apply_fail_member(apply, zadd->name, pair->member_name, why);
    }
    if (zadd->key != NULL) {
        board_look_up(&zadd->key->board, pair->member_name, NULL, &pair->member);
    }
    pair->is_change = redis_apply_zset_decide(zadd, &pair->member, &score);
    return !pair->is_change || redis_apply_zset_find_key(apply, zadd, pair, score);
}

/* Check all before the first change; a member that is named twice is looked at again then. */
static bool redis_apply_zset_check_pairs(struct redis_apply *apply, const struct zadd *zadd,
                                         const struct request *request, uint32_t first) {
    struct pair pair = {.is_change = false};
    for (uint32_t at = first; at < request->count; at += 2) {
        if (!redis_apply_zset_look_at(apply, zadd, request, at, &pair)) {
            return false;
        }
    }
    return true;
}

static bool redis_apply_zset_apply_pairs(struct redis_apply *apply, struct zadd *zadd,
                                         const struct request *request, uint32_t first,
                                         bool *is_changed) {
    struct pair pair = {.is_change = false};
    for (uint32_t at = first; at < request->count; at += 2) {
        if (!redis_apply_zset_look_at(apply, zadd, request, at, &pair)) {
            return false;
        }
        if (pair.is_change) {
            if (!redis_apply_put(apply, zadd->key, &pair.member, pair.key)) {
                return false;
            }
            *is_changed = true;
        }
    }
    return true;
}

struct scores_of_zadd {
    const struct request *request;
    uint32_t first;
};

static enum decimal_status redis_apply_zset_judge(const void *scores, const struct layout *layout) {
    const struct scores_of_zadd *of = scores;
    for (uint32_t at = of->first; at < of->request->count; at += 2) {
        double score;
        if (!redis_order_parse_score(of->request->args[at], &score)) {
            return DECIMAL_NOT_A_NUMBER;
        }
        enum decimal_status status = rdb_value_judge_score(&layout->fields[0], score);
        if (status != DECIMAL_OK) {
            return status;
        }
    }
    return DECIMAL_OK;
}

/* A new board gets the first of its layouts that takes the scores, as here (writing.h). false: no memory. */
static bool redis_apply_zset_choose(struct redis_apply *apply, const struct zadd *zadd,
                                    const struct request *request, uint32_t first) {
    const struct scores_of_zadd scores = {.request = request, .first = first};
    const struct layout *layout = board_layout(&zadd->key->board);
    if (redis_apply_zset_judge(&scores, layout) == DECIMAL_OK) {
        return true;
    }
    const struct rules *rules =
        registry_rules_taking(apply->registry, zadd->name, redis_apply_zset_judge, &scores);
    return layout_keys_equal(&rules->layout, layout) ||
           registry_choose(apply->registry, zadd->key, rules);
}

static bool redis_apply_zset_add(struct redis_apply *apply, struct zadd *zadd,
                                 const struct request *request, uint32_t first) {
    bool is_new;
    bool is_changed = false;
    if (!redis_apply_check_key(apply, zadd->name) ||
        !redis_apply_find_board(apply, zadd->name, &zadd->key)) {
        return false;
    }
    if (zadd->key == NULL && zadd->is_existing_only) {
        return true;
    }
    is_new = zadd->key == NULL;
    if (is_new) {
        zadd->key = registry_find_or_create(apply->registry, redis_apply_database(apply),
                                            zadd->name, apply->now_us / 1000, &is_new);
    }
    if (zadd->key == NULL) {
        return redis_apply_fail_memory(apply);
    }
    if (is_new && !redis_apply_zset_choose(apply, zadd, request, first)) {
        registry_take_back(apply->registry, zadd->key);
        return redis_apply_fail_memory(apply);
    }
    zadd->layout = board_layout(&zadd->key->board);
    bool is_fine = (request->count - first == 2 ||
                    redis_apply_zset_check_pairs(apply, zadd, request, first)) &&
                   redis_apply_zset_apply_pairs(apply, zadd, request, first, &is_changed);
    if (is_changed) {
        redis_apply_settle(apply, zadd->key, zadd->is_increment ? "zincr" : "zadd");
    } else if (is_new) {
        registry_take_back(apply->registry, zadd->key);
    }
    if (is_fine) {
        (void)redis_names_remove(redis_apply_sets(apply), zadd->name);
    }
    return is_fine;
}

bool redis_apply_zadd(struct redis_apply *apply, const struct request *request) {
    struct zadd zadd = {.name = request->args[1]};
    uint32_t first;
    if (!redis_apply_zset_read_options(request, &zadd, &first)) {
        return redis_apply_fail_form(apply, request);
    }
    return redis_apply_zset_add(apply, &zadd, request, first);
}

bool redis_apply_zincrby(struct redis_apply *apply, const struct request *request) {
    struct zadd zadd = {.name = request->args[1], .is_increment = true};
    if (request->count != 4) {
        return redis_apply_fail_form(apply, request);
    }
    return redis_apply_zset_add(apply, &zadd, request, 2);
}

/* ---- removing ---- */

static void redis_apply_zset_take(struct redis_apply *apply, struct registry_key *key,
                                  struct bytes name) {
    struct board_member member;
    if (name.size == 0 || name.size > BOARD_MEMBER_MAX) {
        return;
    }
    board_look_up(&key->board, name, NULL, &member);
    if (member.is_there) {
        registry_take_member(apply->registry, key, &member);
    }
}

bool redis_apply_zrem(struct redis_apply *apply, const struct request *request) {
    struct registry_key *key;
    if (!redis_apply_find_board(apply, request->args[1], &key)) {
        return false;
    }
    if (key != NULL) {
        for (uint32_t i = 2; i < request->count; i++) {
            redis_apply_zset_take(apply, key, request->args[i]);
        }
        redis_apply_end_removal(apply, key, "zrem");
    }
    return true;
}

/* They are on the board: look-ups for a group of them wait for memory together. */
static void redis_apply_zset_take_picks(struct redis_apply *apply, struct registry_key *key,
                                        const struct redis_pick *picks, uint32_t count) {
    struct lookup ahead[LOOKUP_GROUP];
    struct bytes names[LOOKUP_GROUP];
    char rooms[LOOKUP_GROUP][NAME_TEXT_ROOM];
    struct board_member member;
    for (uint32_t at = 0; at < count; at += LOOKUP_GROUP) {
        unsigned size = lookup_group_size(count, at);
        for (unsigned i = 0; i < size; i++) {
            names[i] = name_text(picks[at + i].member, rooms[i]);
        }
        lookup_members_to_take(&key->board, names, 1, size, ahead);
        for (unsigned i = 0; i < size; i++) {
            board_look_up(&key->board, names[i], &ahead[i], &member);
            registry_take_member(apply->registry, key, &member);
        }
    }
}

/* Remove places first .. last. */
static bool redis_apply_zset_remove_places(struct redis_apply *apply, struct registry_key *key,
                                           uint32_t first, uint32_t last, const char *event) {
    struct redis_selection selection;
    if (!redis_apply_select(apply, &key->board, first, last, true, &selection)) {
        return false;
    }
    if (selection.count > 0) {
        registry_remove_range(apply->registry, key, selection.rank, selection.count);
    }
    redis_apply_zset_take_picks(apply, key, selection.picks, selection.pick_count);
    redis_selection_deinit(&selection);
    redis_apply_end_removal(apply, key, event);
    return true;
}

static bool redis_apply_zset_pop(struct redis_apply *apply, const struct request *request,
                                 bool is_highest) {
    struct registry_key *key;
    int64_t count = 1;
    if (request->count > 3 ||
        (request->count == 3 && (!bytes_parse_i64(request->args[2], &count) || count < 0))) {
        return redis_apply_fail_form(apply, request);
    }
    if (!redis_apply_find_board(apply, request->args[1], &key)) {
        return false;
    }
    if (key == NULL || count == 0) {
        return true;
    }
    uint32_t all = board_count(&key->board);
    uint32_t taken = count < all ? (uint32_t)count : all;
    return is_highest ? redis_apply_zset_remove_places(apply, key, all - taken, all - 1, "zpopmax")
                      : redis_apply_zset_remove_places(apply, key, 0, taken - 1, "zpopmin");
}

bool redis_apply_zpopmin(struct redis_apply *apply, const struct request *request) {
    return redis_apply_zset_pop(apply, request, false);
}

bool redis_apply_zpopmax(struct redis_apply *apply, const struct request *request) {
    return redis_apply_zset_pop(apply, request, true);
}

static bool redis_apply_zset_remove_span(struct redis_apply *apply, const struct request *request,
                                         enum redis_span kind, const char *event) {
    struct registry_key *key;
    uint32_t first;
    uint32_t end;
    if (!redis_apply_find_board(apply, request->args[1], &key)) {
        return false;
    }
    if (request->count != 4 ||
        !redis_order_find_span(key != NULL ? &key->board : NULL, kind, request->args[2],
                               request->args[3], &first, &end)) {
        return redis_apply_fail_form(apply, request);
    }
    return first == end || redis_apply_zset_remove_places(apply, key, first, end - 1, event);
}

bool redis_apply_zremrangebyrank(struct redis_apply *apply, const struct request *request) {
    return redis_apply_zset_remove_span(apply, request, REDIS_SPAN_PLACES, "zremrangebyrank");
}

bool redis_apply_zremrangebyscore(struct redis_apply *apply, const struct request *request) {
    return redis_apply_zset_remove_span(apply, request, REDIS_SPAN_SCORES, "zremrangebyscore");
}

bool redis_apply_zremrangebylex(struct redis_apply *apply, const struct request *request) {
    return redis_apply_zset_remove_span(apply, request, REDIS_SPAN_NAMES, "zremrangebylex");
}

/* ---- ZMOVE, BZMOVE, ZMOVEMEMBER ---- */

/* A move: of the source's places first .. end - 1, or of members named. */
struct zmove {
    struct bytes from, to;
    bool is_new_only, is_existing_only;
    struct registry_key *source;
    struct registry_key *destination;
    bool is_changed;
};

/* false: error. */
static bool redis_apply_zset_move_begin(struct redis_apply *apply, const struct request *request,
                                        struct zmove *zmove) {
    *zmove = (struct zmove){.from = request->args[1], .to = request->args[2]};
    return redis_apply_find_board(apply, zmove->from, &zmove->source) &&
           redis_apply_find_board(apply, zmove->to, &zmove->destination);
}

/* Nothing is there to be moved. */
static bool redis_apply_zset_moves_nothing(const struct zmove *zmove) {
    return zmove->source == NULL || zmove->source == zmove->destination;
}

/* The destination, which is there or is made. false: error. */
static bool redis_apply_zset_move_to(struct redis_apply *apply, struct zmove *zmove) {
    bool is_new;
    if (!redis_apply_check_key(apply, zmove->to)) {
        return false;
    }
    zmove->destination = registry_find_or_create(apply->registry, redis_apply_database(apply),
                                                 zmove->to, apply->now_us / 1000, &is_new);
    /* A board that is made may have moved it. */
    zmove->source = redis_apply_find(apply, zmove->from);
    return zmove->destination != NULL || redis_apply_fail_memory(apply);
}

/* The member gets the score that it has at the source. false: error. */
static bool redis_apply_zset_move_put(struct redis_apply *apply, struct zmove *zmove,
                                      struct bytes name, uint64_t key) {
    const struct zadd zadd = {.name = zmove->to,
                              .key = zmove->destination,
                              .layout = board_layout(&zmove->destination->board)};
    struct pair pair = {.member_name = name};
    double score = rdb_value_score(board_layout(&zmove->source->board), key);
    board_look_up(&zmove->destination->board, name, NULL, &pair.member);
    if (pair.member.is_there && rdb_value_score(zadd.layout, pair.member.key) == score) {
        return true;
    }
    if (!redis_apply_zset_find_key(apply, &zadd, &pair, score) ||
        !redis_apply_put(apply, zmove->destination, &pair.member, pair.key)) {
        return false;
    }
    zmove->is_changed = true;
    return true;
}

static void redis_apply_zset_move_end(struct redis_apply *apply, struct zmove *zmove,
                                      bool is_taken) {
    if (zmove->is_changed) {
        redis_apply_settle(apply, zmove->destination, "zadd");
        (void)redis_names_remove(redis_apply_sets(apply), zmove->to);
    } else if (board_count(&zmove->destination->board) == 0) {
        registry_take_back(apply->registry, zmove->destination);
    }
    if (is_taken) {
        redis_apply_end_removal(apply, zmove->source, "zrem");
    }
}

/* Those of whole ranks. false: error. */
static bool redis_apply_zset_move_ranks(struct redis_apply *apply, struct zmove *zmove,
                                        uint32_t rank, uint32_t count) {
    struct board_cursor cursor;
    struct board_stored entry;
    char room[NAME_TEXT_ROOM];
    board_seek(&zmove->source->board, rank, &cursor);
    for (uint32_t i = 0; i < count && board_cursor_read(&cursor, &entry); i++) {
        if (!redis_apply_zset_move_put(apply, zmove, name_text(entry.member, room), entry.key)) {
            return false;
        }
        board_cursor_next(&cursor);
    }
    return true;
}

static bool redis_apply_zset_move_selection(struct redis_apply *apply, struct zmove *zmove,
                                            const struct redis_selection *selection) {
    char room[NAME_TEXT_ROOM];
    bool is_fine = redis_apply_zset_move_ranks(apply, zmove, selection->rank, selection->count);
    for (uint32_t i = 0; i < selection->pick_count && is_fine; i++) {
        const struct redis_pick *pick = &selection->picks[i];
        is_fine = redis_apply_zset_move_put(apply, zmove, name_text(pick->member, room), pick->key);
    }
    if (is_fine && selection->count > 0) {
        registry_remove_range(apply->registry, zmove->source, selection->rank, selection->count);
    }
    if (is_fine) {
        redis_apply_zset_take_picks(apply, zmove->source, selection->picks, selection->pick_count);
    }
    return is_fine;
}

/* Places first .. end - 1. */
static bool redis_apply_zset_move_places(struct redis_apply *apply, struct zmove *zmove,
                                         uint32_t first, uint32_t end) {
    struct redis_selection selection;
    if (first == end) {
        return true;
    }
    if (!redis_apply_select(apply, &zmove->source->board, first, end - 1, true, &selection)) {
        return false;
    }
    bool is_fine = redis_apply_zset_move_to(apply, zmove);
    if (is_fine) {
        is_fine = redis_apply_zset_move_selection(apply, zmove, &selection);
        redis_apply_zset_move_end(apply, zmove, is_fine);
    }
    redis_selection_deinit(&selection);
    return is_fine;
}

/* at: of COUNT, behind which nothing is. false: it cannot be read. */
static bool redis_apply_zset_move_read_count(const struct request *request, uint32_t at,
                                             int64_t *count) {
    if (at == request->count) {
        return true;
    }
    return request->count - at == 2 && bytes_is(request->args[at], "COUNT") &&
           bytes_parse_i64(request->args[at + 1], count) && *count > 0;
}

static uint32_t redis_apply_zset_least(int64_t count, uint32_t all) {
    return count < all ? (uint32_t)count : all;
}

/* MIN or MAX, then skipped arguments, then COUNT. */
static bool redis_apply_zset_move_from_end(struct redis_apply *apply, const struct request *request,
                                           uint32_t skipped) {
    struct zmove zmove;
    int64_t count = 1;
    bool is_highest = bytes_is(request->args[3], "MAX");
    if ((!is_highest && !bytes_is(request->args[3], "MIN")) || request->count < 4 + skipped ||
        !redis_apply_zset_move_read_count(request, 4 + skipped, &count)) {
        return redis_apply_fail_form(apply, request);
    }
    if (!redis_apply_zset_move_begin(apply, request, &zmove)) {
        return false;
    }
    if (redis_apply_zset_moves_nothing(&zmove)) {
        return true;
    }
    uint32_t all = board_count(&zmove.source->board);
    uint32_t taken = redis_apply_zset_least(count, all);
    return redis_apply_zset_move_places(apply, &zmove, is_highest ? all - taken : 0,
                                        is_highest ? all : taken);
}

static bool redis_apply_zset_move_scores(struct redis_apply *apply, const struct request *request) {
    struct zmove zmove;
    int64_t count = INT64_MAX;
    uint32_t first;
    uint32_t end;
    if (request->count < 6 || !redis_apply_zset_move_read_count(request, 6, &count)) {
        return redis_apply_fail_form(apply, request);
    }
    if (!redis_apply_zset_move_begin(apply, request, &zmove)) {
        return false;
    }
    const struct board *board = zmove.source != NULL ? &zmove.source->board : NULL;
    if (!redis_order_find_span(board, REDIS_SPAN_SCORES, request->args[4], request->args[5], &first,
                               &end)) {
        return redis_apply_fail_form(apply, request);
    }
    return redis_apply_zset_moves_nothing(&zmove) ||
           redis_apply_zset_move_places(apply, &zmove, first,
                                        first + redis_apply_zset_least(count, end - first));
}

bool redis_apply_zmove(struct redis_apply *apply, const struct request *request) {
    return bytes_is(request->args[3], "BYSCORE")
               ? redis_apply_zset_move_scores(apply, request)
               : redis_apply_zset_move_from_end(apply, request, 0);
}

/* As it is sent if the source does not write it as ZMOVE. */
bool redis_apply_bzmove(struct redis_apply *apply, const struct request *request) {
    return redis_apply_zset_move_from_end(apply, request, 1);
}

/* *is_moved: it was on the source, and the condition holds. false: error. */
static bool redis_apply_zset_move_named(struct redis_apply *apply, struct zmove *zmove,
                                        struct bytes name, bool *is_moved) {
    struct board_member member;
    uint64_t key;
    *is_moved = false;
    if (name.size == 0 || name.size > BOARD_MEMBER_MAX) {
        return true;
    }
    board_look_up(&zmove->source->board, name, NULL, &member);
    bool is_known = board_find(&zmove->destination->board, name, &key);
    if (!member.is_there || (is_known ? zmove->is_new_only : zmove->is_existing_only)) {
        return true;
    }
    if (!redis_apply_zset_move_put(apply, zmove, name, member.key)) {
        return false;
    }
    redis_apply_zset_take(apply, zmove->source, name);
    *is_moved = true;
    return true;
}

static bool redis_apply_zset_move_all_named(struct redis_apply *apply, struct zmove *zmove,
                                            const struct request *request, uint32_t first) {
    bool is_taken = false;
    bool is_fine = true;
    for (uint32_t i = first; i < request->count && is_fine; i++) {
        bool is_moved;
        is_fine = redis_apply_zset_move_named(apply, zmove, request->args[i], &is_moved);
        is_taken = is_taken || is_moved;
    }
    redis_apply_zset_move_end(apply, zmove, is_taken);
    return is_fine;
}

bool redis_apply_zmovemember(struct redis_apply *apply, const struct request *request) {
    struct zmove zmove;
    int64_t count;
    uint32_t at = 3;
    if (!redis_apply_zset_move_begin(apply, request, &zmove)) {
        return false;
    }
    zmove.is_new_only = bytes_is(request->args[at], "NX");
    zmove.is_existing_only = bytes_is(request->args[at], "XX");
    at += zmove.is_new_only || zmove.is_existing_only;
    if (request->count - at < 3 || !bytes_is(request->args[at], "MEMBERS") ||
        !bytes_parse_i64(request->args[at + 1], &count) || count != request->count - at - 2) {
        return redis_apply_fail_form(apply, request);
    }
    if (redis_apply_zset_moves_nothing(&zmove)) {
        return true;
    }
    return redis_apply_zset_move_to(apply, &zmove) &&
           redis_apply_zset_move_all_named(apply, &zmove, request, at + 2);
}
