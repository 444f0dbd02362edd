/* The routes that write, and those of what a player has: results, matches, what is held, bans, leagues, members, tags, tickets.
 * What they ask the engine follows from their body, which web_write.c has read, or from the path; what they answer from the
 * schemas (web_openapi.c) and from what a reply does not have: the path's names, and which ids had come before. */
#include "server/web/web_query.h"

/* ---- results ---- */

static bool web_results_ask_results(struct web_query *query) {
    unsigned count;
    query->words = web_write_words(query, &count);
    query->commands = (struct web_command *)(void *)query->write.commands.at;
    query->word_count = count;
    query->command_count = (unsigned)(query->write.commands.size / sizeof *query->commands);
    query->data = (struct web_data){.count = 0}; /* records are without */
    return true;
}

/* Of one result: had its id come before? */
static void web_results_put_is_repeated(struct web_query *query, unsigned command) {
    if (query->write.has_ids) {
        web_reply_put_integer(query, "repeated", query->commands[command].is_repeated);
    }
}

/* Of LB.ADD: how many have changed, or by WITHRANK [record, rank before] for each. */
static bool web_results_print_board(struct web_query *query) {
    int64_t changed = 0, held = 0, has_rank = 0;
    if (!web_query_number(query, "rank", 0, 1, 0, &has_rank)) {
        return false;
    }
    web_reply_begin(query, WEB_NO_REPLY);
    web_reply_put_integer(query, "results", query->write.result_count);
    if (has_rank != 0) {
        web_reply_open(query, "rows", WEB_NO_REPLY);
    }
    for (unsigned i = 0; i < query->reply_count; i++) {
        struct value_reader reader = web_query_reply(query, i);
        struct value value = value_next(&reader);
        changed += value.kind == VALUE_INTEGER ? value.number : 0;
        if (has_rank == 0 && value.kind == VALUE_LIST) {
            changed += value_next(&reader).number;
            held += value_next(&reader).number;
            continue;
        }
        for (uint64_t k = 0; value.kind == VALUE_LIST && k < value.count; k++) {
            web_reply_open(query, NULL, reader);
            web_results_put_is_repeated(query, i);
            web_reply_close(query);
            value_skip(&reader);
        }
    }
    if (has_rank == 0) {
        web_reply_put_integer(query, "changed", changed);
        if (held > 0) {
            web_reply_put_integer(query, "held", held);
        }
    }
    return web_reply_end(query);
}

/* Of LB.SUBMIT: [record, rank before, counts] for each board. */
static bool web_results_print_boards(struct web_query *query) {
    enum { FIRST_BOARD = 2 };
    web_reply_begin(query, WEB_NO_REPLY);
    web_reply_open(query, "results", WEB_NO_REPLY);
    for (unsigned i = 0; i < query->reply_count; i++) {
        struct value_reader reader = web_query_reply(query, i);
        unsigned begin = i > 0 ? query->commands[i - 1].end : 0;
        struct value list = value_next(&reader);
        web_reply_open(query, NULL, WEB_NO_REPLY);
        for (uint64_t k = 0; k < list.count; k++) {
            web_reply_open(query, NULL, reader);
            web_reply_put_text(query, "board", query->words[begin + FIRST_BOARD + k]);
            web_results_put_is_repeated(query, i);
            web_reply_close(query);
            value_skip(&reader);
        }
        web_reply_close(query);
    }
    return web_reply_end(query);
}

/* ---- matches ---- */

/* Of LB.MATCH: [player ...] of each match. */
static bool web_results_print_matches(struct web_query *query) {
    web_reply_begin(query, WEB_NO_REPLY);
    web_reply_open(query, "matches", WEB_NO_REPLY);
    for (unsigned i = 0; i < query->reply_count; i++) {
        struct value_reader reader = web_query_reply(query, i);
        web_reply_open(query, NULL, WEB_NO_REPLY);
        web_reply_put_items(query, &reader);
        web_reply_close(query);
    }
    return web_reply_end(query);
}

/* Of LB.PREDICT. */
static bool web_results_print_predictions(struct web_query *query) {
    web_reply_begin(query, WEB_NO_REPLY);
    web_reply_open(query, "predictions", WEB_NO_REPLY);
    for (unsigned i = 0; i < query->reply_count; i++) {
        web_reply_open(query, NULL, web_query_reply(query, i));
        web_reply_close(query);
    }
    return web_reply_end(query);
}

static bool web_results_print_rating(struct web_query *query) {
    struct value_reader reader = web_query_reply(query, 0);
    (void)value_next(&reader);
    struct value_reader first = reader;
    if (value_next(&first).kind != VALUE_LIST) {
        web_query_error(query, 404, "this player has no rating here");
        return false;
    }
    web_reply_begin(query, reader);
    return web_reply_end(query);
}

/* ---- what is held ---- */

static bool web_results_ask_held(struct web_query *query) {
    int64_t cursor;
    struct bytes text = http_request_parameter(&query->target, "cursor");
    if (!web_query_number(query, "count", 1, 100, 25, &query->count)) {
        return false;
    }
    if (text.size == 0) {
        cursor = 0;
    } else if (!bytes_parse_i64(text, &cursor) || cursor < 0) {
        web_query_error(query, 400, "cursor is one of an answer");
        return false;
    }
    query->data = (struct web_data){.count = 0};
    web_query_command(query, "LB.INFO $board $brief");
    web_query_command(query, "LB.HELD $board CURSOR # COUNT #", cursor, query->count);
    return true;
}

static bool web_results_ask_decision(struct web_query *query, const char *words) {
    struct bytes text = http_request_parameter(&query->target, "id");
    int64_t id;
    if (text.at != NULL && (!bytes_parse_i64(text, &id) || id < 1)) {
        web_query_error(query, 400, "id is that of a held result");
        return false;
    }
    web_query_command(query, words);
    if (text.at != NULL) { /* an empty one is refused: it must not be all that is held */
        web_query_word(query, text);
    }
    return true;
}

static bool web_results_ask_approve(struct web_query *query) {
    return web_results_ask_decision(query, "LB.APPROVE $board $member");
}

static bool web_results_ask_reject(struct web_query *query) {
    return web_results_ask_decision(query, "LB.REJECT $board $member");
}

/* ---- bans ---- */

/* ?shadow=1&seconds=N&match=GLOB */
static bool web_results_ask_ban(struct web_query *query) {
    struct bytes match = http_request_parameter(&query->target, "match");
    bool has_end = http_request_parameter(&query->target, "seconds").size > 0;
    int64_t is_shadow;
    int64_t seconds;
    if (!web_query_number(query, "shadow", 0, 1, 0, &is_shadow) ||
        !web_query_number(query, "seconds", 1, UINT32_MAX, 1, &seconds)) {
        return false;
    }
    web_query_command(query, "LB.BAN $member");
    if (is_shadow != 0) {
        web_query_words(query, "SHADOW");
    }
    if (has_end) {
        web_query_words(query, "EX #", seconds);
    }
    if (match.at != NULL) { /* an empty one is refused: it must not be a ban from all boards */
        web_query_words(query, "MATCH $", match);
    }
    return true;
}

/* ---- leagues ---- */

static bool web_results_print_league(struct web_query *query) {
    web_reply_begin(query, WEB_NO_REPLY);
    web_reply_open(query, "results", WEB_NO_REPLY);
    for (unsigned i = 0; i < query->reply_count; i++) {
        struct value_reader reader = web_query_reply(query, i);
        struct value_reader at = reader;
        if (value_next(&at).kind != VALUE_LIST) {
            web_reply_put_text(query, NULL, (struct bytes){.at = NULL});
            continue;
        }
        web_reply_open(query, NULL, reader);
        web_results_put_is_repeated(query, i);
        web_reply_close(query);
    }
    return web_reply_end(query);
}

static bool web_results_ask_place(struct web_query *query) {
    query->data = (struct web_data){.count = 0};
    query->has_tags = query->has_rating = false;
    web_query_command(query, "LB.LEAGUE|GET $board $member");
    return true;
}

static bool web_results_print_place(struct web_query *query) {
    struct value_reader first = web_query_reply(query, 0);
    if (value_next(&first).kind != VALUE_LIST) {
        web_query_error(query, 404, "this member is not in the league");
        return false;
    }
    return web_reply_print(query);
}

/* ---- tickets ---- */

static bool web_results_ask_ticket(struct web_query *query) {
    unsigned count;
    const struct bytes *words = web_write_words(query, &count);
    web_query_command(query, "LB.TICKET $board $member");
    for (unsigned i = 0; i < count; i++) {
        web_query_word(query, words[i]);
    }
    return true;
}

/* ---- tags ---- */

/* LB.TAG with what was given; and with nothing for the board's other tags, which were kept. */
static bool web_results_ask_tags(struct web_query *query) {
    unsigned count;
    const struct bytes *words = web_write_words(query, &count);
    struct value_reader kept = web_query_kept(query);
    web_query_command(query, "LB.TAG $board $member");
    for (unsigned i = 0; i < count; i++) {
        web_query_word(query, words[i]);
    }
    bool are_given = count > 0;
    for (unsigned left = query->more; left > 0; left--) {
        struct bytes name = value_next(&kept).text;
        unsigned i = 0;
        while (i < count && !bytes_equal_ignoring_case(words[i], name)) {
            i += 2;
        }
        if (i >= count) {
            web_query_words(query, "$ $", name, BYTES(""));
            are_given = true;
        }
    }
    if (!are_given) {
        web_query_error(query, 422, "no tags are given");
    }
    return are_given;
}

static bool web_results_ask_all_tags(struct web_query *query) {
    if (query->round > 0) {
        return web_results_ask_tags(query);
    }
    web_query_command(query, "LB.INFO $board");
    return true;
}

static bool web_results_print_all_tags(struct web_query *query) {
    struct value_reader at;
    if (query->round > 0) {
        return web_reply_print(query);
    }
    for (uint64_t left = value_find_list(web_query_reply(query, 0), "tags", &at); left > 0;
         left--) {
        web_query_keep(query, value_find_text(at, "name"));
        query->more++;
        value_skip(&at);
    }
    return true;
}

/* ---- the routes ---- */

const struct web_route web_route_results = {.read = web_write_read,
                                            .results = WEB_RESULTS_OF_BOARD,
                                            .ask = web_results_ask_results,
                                            .print = web_results_print_board,
                                            .writes = true,
                                            .may_create = true};
const struct web_route web_route_submit = {.read = web_write_read,
                                           .results = WEB_RESULTS_OF_BOARDS,
                                           .ask = web_results_ask_results,
                                           .print = web_results_print_boards,
                                           .writes = true,
                                           .may_create = true};
const struct web_route web_route_matches = {.read = web_write_read,
                                            .results = WEB_MATCHES,
                                            .ask = web_results_ask_results,
                                            .print = web_results_print_matches,
                                            .writes = true};
const struct web_route web_route_predictions = {.read = web_write_read,
                                                .results = WEB_PREDICTIONS,
                                                .ask = web_results_ask_results,
                                                .print = web_results_print_predictions,
                                                .writes = true};
const struct web_route web_route_rating = {.command = "LB.RATING $board $member",
                                           .print = web_results_print_rating};
const struct web_route web_route_held = {.ask = web_results_ask_held, .print = web_reply_print};
const struct web_route web_route_approve = {
    .ask = web_results_ask_approve, .print = web_reply_print, .writes = true};
const struct web_route web_route_reject = {
    .ask = web_results_ask_reject, .print = web_reply_print, .writes = true};
const struct web_route web_route_ban = {
    .ask = web_results_ask_ban, .print = web_reply_print, .has_no_board = true, .writes = true};
const struct web_route web_route_unban = {
    .command = "LB.UNBAN $member", .print = web_reply_print, .has_no_board = true, .writes = true};
const struct web_route web_route_league_results = {.read = web_write_read,
                                                   .results = WEB_RESULTS_OF_LEAGUE,
                                                   .ask = web_results_ask_results,
                                                   .print = web_results_print_league,
                                                   .writes = true};
const struct web_route web_route_league = {.command = "LB.LEAGUE|INFO $board",
                                           .print = web_reply_print};
const struct web_route web_route_league_member = {.ask = web_results_ask_place,
                                                  .print = web_results_print_place};
const struct web_route web_route_leave_league = {
    .command = "LB.LEAGUE|REMOVE $board $member", .print = web_reply_print, .writes = true};
const struct web_route web_route_ticket = {.read = web_write_read_ticket,
                                           .ask = web_results_ask_ticket,
                                           .print = web_reply_print,
                                           .writes = true};
const struct web_route web_route_remove = {
    .command = "ZREM $board $member", .print = web_reply_print, .writes = true};
const struct web_route web_route_set_tags = {.read = web_write_read_tags,
                                             .ask = web_results_ask_tags,
                                             .print = web_reply_print,
                                             .writes = true};
const struct web_route web_route_replace_tags = {.read = web_write_read_tags,
                                                 .ask = web_results_ask_all_tags,
                                                 .print = web_results_print_all_tags,
                                                 .writes = true};
