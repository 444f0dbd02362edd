/* Ranges and removals shared by several sorted-set commands. Ranges are in ranks: 0-based, best first, the
 * board's own order. Replies are in zset_reply.c. */
#include "server/commands/zset/zset.h"

#include "server/commands/keyspace.h"
#include "server/commands/lb/lb_rating.h"
#include "server/commands/window.h"
#include "server/commands/writing.h"
#include "skiplist/lookup.h"

static struct zset_span zset_empty_span(struct zset_span span) {
    return (struct zset_span){.rank = span.rank, .count = 0};
}

struct zset_span zset_part_of_indexes(struct zset_span span, bool is_best_first, int64_t start,
                                      int64_t stop) {
    int64_t count = span.count;
    start += start < 0 ? count : 0;
    stop += stop < 0 ? count : 0;
    start = start < 0 ? 0 : start;
    stop = stop >= count ? count - 1 : stop;
    if (start > stop) {
        return zset_empty_span(span);
    }
    return zset_part(span, is_best_first, (uint32_t)start, (uint32_t)(stop - start + 1));
}

struct zset_span zset_part_of_limit(struct zset_span span, bool is_best_first, int64_t offset,
                                    int64_t count) {
    if (offset < 0 || offset >= span.count) {
        return zset_empty_span(span);
    }
    int64_t left = span.count - offset;
    int64_t taken = count < 0 || count > left ? left : count;
    return zset_part(span, is_best_first, (uint32_t)offset, (uint32_t)taken);
}

bool zset_span_of_scores(const struct call *call, const struct board *board, struct bytes min,
                         struct bytes max, struct zset_span *span) {
    static const struct layout_field any = {.bits = 64}; /* for its texts alone */
    const struct layout_field *lead = board != NULL ? zset_lead(board) : &any;
    struct decimal_bound lower;
    struct decimal_bound upper;
    bool is_empty_below;
    bool is_empty_above;
    bool has_min = layout_field_parse_bound(lead, min, true, &lower, &is_empty_below) == DECIMAL_OK;
    if (!has_min ||
        layout_field_parse_bound(lead, max, false, &upper, &is_empty_above) != DECIMAL_OK) {
        return call_refuse_word(call, has_min ? max : min, "is not a score",
                                "ERR min or max is not a float");
    }
    *span = (struct zset_span){0};
    uint64_t lowest_key;
    uint64_t highest_key;
    if (board == NULL || is_empty_below || is_empty_above ||
        !layout_key_range(board_layout(board), lower, upper, call->now_us, &lowest_key,
                          &highest_key)) {
        return true;
    }
    span->rank = board_count_above(board, highest_key);
    span->count = board_count_from(board, lowest_key) - span->rank;
    return true;
}

bool zset_check_name(const struct call *call, struct bytes member) {
    return zset_is_member(member) ||
           call_refuse_format(call, "ERR member is %zu bytes long: 1..%d are allowed", member.size,
                              (int)BOARD_MEMBER_MAX);
}

bool zset_check_member(const struct call *call, struct bytes member) {
    return zset_check_name(call, member) && call_check_own(call, member);
}

bool zset_refuse_value(const struct call *call, const struct layout_field *field, struct bytes text,
                       enum decimal_status status) {
    char error[LAYOUT_ERROR_MAX];
    const char *taking = status == DECIMAL_NOT_A_NUMBER
                             ? NULL
                             : setting_board_find_taking(&call->server->settings, field, text);
    layout_explain_value(field, text, status, error);
    return taking == NULL ? call_refuse_format(call, "ERR %s", error)
                          : call_refuse_format(call, "ERR %s; LB.CREATE key LAYOUT %s takes it",
                                               error, taking);
}

bool zset_refuse_sum(const struct call *call, const struct layout_field *field, uint64_t ordinal,
                     struct decimal delta, int64_t time_us) {
    char error[LAYOUT_ERROR_MAX];
    layout_explain_sum(field, ordinal, delta, time_us, call->now_us, error);
    return call_refuse_format(call, "ERR %s", error);
}

void zset_remove_span(const struct call *call, struct registry_key *key, struct zset_span span,
                      const char *event) {
    if (span.count > 0) {
        registry_board_cut(call->registry, key, span.rank, span.count);
        zset_end_removal(call, key, event);
    }
}

void zset_end_removal(const struct call *call, struct registry_key *key, const char *event) {
    call_notify(call, SETTING_EVENT_ZSET, event, registry_name(key));
    if (registry_board_is_over(key)) {
        call_notify(call, SETTING_EVENT_GENERIC, "del", registry_name(key));
        registry_remove(call->registry, key);
    }
}

/* ZSCORE ZMSCORE ZCARD ZCOUNT, ZRANK ZREVRANK: scores and places by member, and member counts. */

/* A member's score, or nil. board may be NULL. */
static void zset_score_reply_score_of(const struct call *call, const struct board *board,
                                      struct bytes member, const struct lookup *ahead) {
    struct board_member found;
    if (zset_look_up_ahead(board, member, ahead, &found)) {
        zset_reply_score(call, zset_lead(board), layout_ordinal(board_layout(board), found.key, 0));
    } else {
        reply_null(call->reply);
    }
}

static void zscore_run(struct call *call) {
    const struct board *board;
    if (!call_find_board(call, call_arg(call, 1), &board)) {
        return;
    }
    zset_score_reply_score_of(call, board, call_arg(call, 2), call->ahead);
}

const struct command command_zscore = {
    .name = "ZSCORE",
    .syntax = "key member",
    .reply = "n?",
    .summary = "A member's score, exactly as it was given",
    .flags = COMMAND_READ | COMMAND_FAST | COMMAND_OWN_MEMBER,
    .member_arg = 2,
    .run = zscore_run,
};

static void zmscore_run(struct call *call) {
    const struct board *board;
    if (!call_find_board(call, call_arg(call, 1), &board)) {
        return;
    }
    const struct bytes *names = &call->request->args[2];
    uint32_t count = call->request->count - 2;
    bool is_grouped = board != NULL && count >= LOOKUP_OWN_MIN;
    reply_array(call->reply, count);
    for (uint32_t i = 0; i < count && !reply_is_lost(call->reply);) {
        unsigned group_size = is_grouped ? lookup_group_size(count, i) : 1;
        struct lookup ahead[LOOKUP_GROUP];
        if (is_grouped) {
            lookup_members(board, &names[i], 1, group_size, ahead);
        }
        for (unsigned j = 0; j < group_size; j++) {
            zset_score_reply_score_of(call, board, names[i + j],
                                      is_grouped ? &ahead[j] : call->ahead);
        }
        i += group_size;
    }
}

const struct command command_zmscore = {
    .name = "ZMSCORE",
    .syntax = "key member...",
    .reply = "[n?]",
    .summary = "The scores of several members, in the order they are asked for",
    .complexity = "O(m) in the members asked for",
    .flags = COMMAND_READ | COMMAND_FAST | COMMAND_OWN_MEMBER,
    .member_arg = 2,
    .member_step = 1,
    .cost = COST(COMMAND_BY_ARGUMENTS, cost_count_members, 300, 0, "requested member",
                 "several commands of a thousand each"),
    .run = zmscore_run,
};

static void zcard_run(struct call *call) {
    const struct board *board;
    if (!call_find_board(call, call_arg(call, 1), &board)) {
        return;
    }
    reply_integer(call->reply, board != NULL ? board_count(board) : 0);
}

const struct command command_zcard = {
    .name = "ZCARD",
    .syntax = "key",
    .reply = "i",
    .summary = "How many members a board has",
    .flags = COMMAND_READ | COMMAND_FAST | COMMAND_OWN_MEMBER,
    .key_access = "RO",
    .run = zcard_run,
};

static void zcount_run(struct call *call) {
    const struct registry_key *key = call_find_key(call, call_arg(call, 1));
    struct zset_span span;
    if (zset_span_of_scores(call, call_board(key), call_arg(call, 2), call_arg(call, 3), &span) &&
        call_check_kind(call, key, REGISTRY_BOARD)) {
        reply_integer(call->reply, span.count);
    }
}

const struct command command_zcount = {
    .name = "ZCOUNT",
    .syntax = "key min:double max:double",
    .reply = "i",
    .summary = "How many members have a score between two limits",
    .complexity = "O(log n) in the members of the board",
    .flags = COMMAND_READ | COMMAND_FAST | COMMAND_OWN_MEMBER,
    .run = zcount_run,
};

static void rank_run(struct call *call) {
    bool is_reverse = *(const bool *)call->command->variant;
    bool with_score = call->request->count == 4;
    if (call->request->count > 4) {
        call_refuse_arity(call);
        return;
    }
    if (with_score && !call_arg_is(call, 3, "WITHSCORE")) {
        call_syntax_error(call);
        return;
    }
    const struct board *board;
    if (!call_find_board(call, call_arg(call, 1), &board)) {
        return;
    }
    struct board_member member;
    if (!zset_look_up(call, board, call_arg(call, 2), &member)) {
        if (with_score) {
            reply_null_array(call->reply);
        } else {
            reply_null(call->reply);
        }
        return;
    }
    if (with_score) {
        reply_array(call->reply, 2);
    }
    reply_integer(call->reply, zset_place(board, is_reverse, board_rank_of(board, &member)));
    if (with_score) {
        zset_reply_score(call, zset_lead(board),
                         layout_ordinal(board_layout(board), member.key, 0));
    }
}

#define RANK_ENTRY(word, what, ...)                                                                \
    {                                                                                              \
        .name = word, .syntax = "key member [WITHSCORE]",                                          \
        .reply = "i?|WITHSCORE=[rank:i score:n]?", .summary = what,                                \
        .complexity = "O(log n) in the members of the board",                                      \
        .flags = COMMAND_READ | COMMAND_FAST | COMMAND_OWN_MEMBER, .member_arg = 2,                \
        .variant = &(const bool){__VA_ARGS__}, .run = rank_run                                     \
    }

const struct command command_zrank =
    RANK_ENTRY("ZRANK", "A member's place, counted from 0 at the lowest score", false);
const struct command command_zrevrank =
    RANK_ENTRY("ZREVRANK", "A member's place, counted from 0 at the highest score", true);

/* ZSCAN: all members of a board, in steps. A member that stays on the board during the whole scan
 * is returned at least once, whatever else changes. */

struct zscan {
    struct scanning scanning; /* first: see SCANNING_OPTIONS */
    const struct board *board;
    int64_t now_us;
};

static bool zset_scan_refuse_novalues(const struct call *call, uint32_t index, void *target) {
    (void)index;
    (void)target;
    return call_refuse(call, "ERR NOVALUES option can only be used in HSCAN");
}

static const struct binding zscan_bindings[] = {
    SCANNING_OPTIONS,
    {"NOVALUES", .read = zset_scan_refuse_novalues},
    {0},
};

/* Scores are bulk strings here, in RESP3, too. */
static void zset_scan_visit(void *context, const struct board_stored *entry) {
    struct zscan *scan = context;
    struct scanning *scanning = &scan->scanning;
    char room[NAME_TEXT_ROOM];
    struct bytes member = name_text(entry->member, room);
    if (!scanning_takes(scanning, member)) {
        return;
    }
    const struct layout_field *lead = zset_lead(scan->board);
    uint64_t ordinal = layout_ordinal(board_layout(scan->board), entry->key, 0);
    char text[DECIMAL_TEXT_MAX];
    size_t size =
        decimal_print(text, layout_field_decimal_at(lead, ordinal, scan->now_us), lead->scale);
    reply_bulk(&scanning->found, member);
    reply_bulk(&scanning->found, (struct bytes){.at = text, .size = size});
    scanning->found_count += 2;
}

/* As many members as Redis keeps in a listpack by default, if they are short. */
enum { SMALL_COUNT = 128, SMALL_SIZE = 16384 };

/* A small board comes at once, in ZRANGE's order, as in Redis. false: it is not small. */
static bool zset_scan_visit_small(struct zscan *scan) {
    struct board_stored entries[SMALL_COUNT];
    struct board_cursor cursor;
    uint32_t count = board_count(scan->board);
    size_t size = 0;
    if (count > SMALL_COUNT) {
        return false;
    }
    board_cursor_seek(scan->board, 0, &cursor);
    for (uint32_t i = 0; i < count; i++) {
        bool is_read = board_cursor_read(&cursor, &entries[i]);
        CHECK(is_read);
        size += name_size(entries[i].member);
        board_cursor_next(&cursor);
    }
    bool is_best_first = zset_lead(scan->board)->is_ascending;
    for (uint32_t i = 0; i < count && size <= SMALL_SIZE; i++) {
        zset_scan_visit(scan, &entries[is_best_first ? i : count - 1 - i]);
    }
    return size <= SMALL_SIZE;
}

static void zscan_run(struct call *call) {
    struct glob glob;
    struct zscan scan;
    uint64_t cursor;
    scan.now_us = call->now_us;
    scanning_begin(&scan.scanning, call, &glob);
    if (!call_parse_cursor(call, call_arg(call, 2), &cursor) ||
        !call_find_board(call, call_arg(call, 1), &scan.board) ||
        (scan.board != NULL && !syntax_read(call, &scan))) {
        return;
    }
    struct scan_limits limits = scanning_limits(&scan.scanning);
    if (scan.board == NULL || (cursor == 0 && zset_scan_visit_small(&scan))) {
        cursor = 0;
    } else {
        cursor = board_cursor_scan(scan.board, cursor, &limits, zset_scan_visit, &scan);
    }
    scanning_end(&scan.scanning, call, cursor);
}

const struct command command_zscan = {
    .name = "ZSCAN",
    .syntax = "key cursor:integer [MATCH pattern] [COUNT count:integer]",
    .hidden_syntax = "[NOVALUES]",
    .bindings = zscan_bindings,
    .reply = "[cursor:s members:[member:s score:s ...]]",
    .summary = "Walk over all members of a board in small steps, in no order; COUNT is a hint, and "
               "a board of up to 128 comes at once",
    .complexity = "O(COUNT) for a step, half a millisecond at the most; O(n) for the whole board",
    .flags = COMMAND_READ | COMMAND_OWN_MEMBER,
    .run = zscan_run,
};

/* ZREM, ZREMRANGEBYRANK and ZREMRANGEBYSCORE. A board is removed with its last member. */

__attribute__((always_inline)) static inline bool zset_remove_take(const struct call *call,
                                                                   struct registry_key *key,
                                                                   struct bytes name,
                                                                   const struct lookup *ahead) {
    struct board_member member;
    if (!zset_look_up_ahead(&key->board, name, ahead, &member)) {
        return false;
    }
    registry_board_take(call->registry, key, &member);
    return true;
}

/* Not inlined: the common case, a single member, needs no stack space for a group. */
__attribute__((noinline)) static uint32_t zset_remove_take_all(const struct call *call,
                                                               struct registry_key *key) {
    const struct bytes *names = &call->request->args[2];
    uint32_t count = call->request->count - 2;
    uint32_t taken_count = 0;
    if (count < LOOKUP_OWN_MIN) {
        for (uint32_t i = 0; i < count; i++) {
            taken_count += zset_remove_take(call, key, names[i], call->ahead);
        }
        return taken_count;
    }
    for (uint32_t i = 0; i < count; i += LOOKUP_GROUP) {
        struct lookup ahead[LOOKUP_GROUP];
        unsigned group = lookup_group_size(count, i);
        lookup_members_to_take(&key->board, &names[i], 1, group, ahead);
        for (unsigned j = 0; j < group; j++) {
            taken_count += zset_remove_take(call, key, names[i + j], &ahead[j]);
        }
    }
    return taken_count;
}

/* Members times boards that one command looks at. */
enum { WINDOW_REMOVALS_MAX = 25000 };

/* WINDOW: off the board and off its shares. */
static void zset_remove_from_window(const struct call *call, struct registry_key *key) {
    int64_t removed_count = 0;
    struct window_shares shares;
    if (!window_check_host(call)) {
        return;
    }
    window_find_shares(call->registry, key, call->now_ms, &shares);
    uint32_t members_max = WINDOW_REMOVALS_MAX / (1 + shares.count);
    if (call->request->count - 2 > members_max) {
        (void)call_refuse_format(call,
                                 "ERR too many members: at most %u at a time are removed from a "
                                 "board with a WINDOW and the boards of its %u periods",
                                 (unsigned)members_max, (unsigned)shares.count);
        return;
    }
    for (uint32_t i = 2; i < call->request->count; i++) {
        removed_count += window_take(call->registry, key, &shares, call_arg(call, i)) > 0;
    }
    window_end_take(call->server, &shares);
    if (shares.is_board_changed) {
        zset_end_removal(call, key, "zrem");
    }
    reply_integer(call->reply, removed_count);
}

/* RATING: players go with their records, also those who are not ranked. Nobody begins anew by a token of their own. */
static void zset_remove_rated(const struct call *call, struct registry_key *key) {
    int64_t removed_count = 0;
    if (call->session->player != NULL) {
        reply_error(call->reply, "NOPERM a player's token takes no record off a board with RATING");
        return;
    }
    for (uint32_t i = 2; i < call->request->count; i++) {
        struct bytes name = call_arg(call, i);
        bool is_ranked = zset_remove_take(call, key, name, NULL);
        removed_count += (int)lb_kept_remove(call->registry, key, name) | (int)is_ranked;
    }
    if (removed_count > 0) {
        registry_tell_members(call->registry, key);
        zset_end_removal(call, key, "zrem");
    }
    reply_integer(call->reply, removed_count);
}

static uint64_t zset_remove_count(const struct cost_view *view) {
    return cost_count_members(view) * (1 + cost_count_shares(view));
}

static void zrem_run(struct call *call) {
    struct registry_key *key;
    int64_t removed_count = 0;
    if (!call_find_kind(call, call_arg(call, 1), REGISTRY_BOARD, &key)) {
        return;
    }
    for (uint32_t i = 2; i < call->request->count; i++) {
        if (!call_check_own(call, call_arg(call, i))) {
            return;
        }
    }
    const struct board_options *options = key != NULL ? registry_options(key) : NULL;
    if (options != NULL && writing_refuses(call, options, BOARD_WRITE_AWAY)) {
        return;
    }
    if (options != NULL && options->window.count > 0) {
        zset_remove_from_window(call, key);
        return;
    }
    if (options != NULL && options->has_rating) {
        zset_remove_rated(call, key);
        return;
    }
    /* LIMITS say what one result may be over the one before. */
    if (options != NULL && options->has_limits && call->session->player != NULL) {
        reply_error(call->reply, "NOPERM a player's token takes no result off a board with LIMITS");
        return;
    }
    if (key != NULL) {
        removed_count = call->request->count == 3
                            ? zset_remove_take(call, key, call_arg(call, 2), call->ahead)
                            : zset_remove_take_all(call, key);
        if (removed_count > 0) {
            registry_tell_members(call->registry, key);
            zset_end_removal(call, key, "zrem");
        }
    }
    reply_integer(call->reply, removed_count);
}

const struct command command_zrem = {
    .name = "ZREM",
    .syntax = "key member...",
    .reply = "i",
    .summary = "Remove members from a board",
    .complexity = "O(m * log n) for m of the board's n members",
    .flags = COMMAND_WRITE | COMMAND_FAST | COMMAND_OWN_MEMBER,
    .key_access = "RW delete",
    .member_arg = 2,
    .member_step = 1,
    .cost = COST(COMMAND_BY_ARGUMENTS, zset_remove_count, 700, 0, "member named",
                 "several commands of a thousand each; "
                 "`ZREMRANGEBYRANK` removes whole ranges at once"),
    .run = zrem_run,
};

static void zset_remove_remove_span(const struct call *call, struct registry_key *key,
                                    struct zset_span span, const char *event) {
    if (key != NULL && writing_refuses(call, registry_options(key), BOARD_WRITE_WHOLE)) {
        return;
    }
    if (key != NULL) {
        zset_remove_span(call, key, span, event);
    }
    reply_integer(call->reply, span.count);
}

static void zremrangebyrank_run(struct call *call) {
    struct registry_key *key = call_find_key(call, call_arg(call, 1));
    const struct board *board = call_board(key);
    bool is_best_first = board != NULL && zset_is_best_first(board, false);
    struct zset_span span;
    if (zset_span_of_places(call, board, 0, is_best_first, 2, &span) &&
        call_check_kind(call, key, REGISTRY_BOARD)) {
        zset_remove_remove_span(call, key, span, "zremrangebyrank");
    }
}

static void zremrangebyscore_run(struct call *call) {
    struct registry_key *key = call_find_key(call, call_arg(call, 1));
    struct zset_span span;
    if (zset_span_of_scores(call, call_board(key), call_arg(call, 2), call_arg(call, 3), &span) &&
        call_check_kind(call, key, REGISTRY_BOARD)) {
        zset_remove_remove_span(call, key, span, "zremrangebyscore");
    }
}

#define SPAN_ENTRY(word, arguments, what, handler)                                                 \
    {                                                                                              \
        .name = (word), .syntax = (arguments), .reply = "i",                                       \
        .summary = "Remove the members " what,                                                     \
        .complexity = "O(log n); the members' memory is freed in steps afterwards",                \
        .flags = COMMAND_WRITE, .key_access = "RW delete", .run = (handler)                        \
    }

const struct command command_zremrangebyrank = SPAN_ENTRY(
    "ZREMRANGEBYRANK", "key start:integer stop:integer",
    "in a range of places from a board, counted from the lowest score", zremrangebyrank_run);
const struct command command_zremrangebyscore =
    SPAN_ENTRY("ZREMRANGEBYSCORE", "key min:double max:double",
               "with a score between two limits from a board", zremrangebyscore_run);
