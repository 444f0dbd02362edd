/* The routes that write: results, removals, tags, leagues. See web_results.h. */
#include "server/web/web_results.h"
#include "server/web/web_rows.h"

/* ---- results ---- */

static bool web_write_ask_results(struct web_query *query) {
    unsigned count;
    query->words = web_results_words(query, &count);
    query->commands = (struct web_command *)(void *)query->write.commands.at;
    query->word_count = count;
    query->command_count = (unsigned)(query->write.commands.size / sizeof *query->commands);
    query->data = (struct web_data){.count = 0}; /* records are without */
    return true;
}

static void web_write_put_repeated(struct web_query *query) {
    if (query->write.has_ids) {
        json_integer(&query->json, "repeated", web_results_count_repeated(query));
    }
}

/* Of one result: had its id come before? */
static void web_write_put_is_repeated(struct web_query *query, unsigned command) {
    if (query->write.has_ids) {
        json_boolean(&query->json, "repeated", query->commands[command].is_repeated);
    }
}

/* Of LB.ADD: how many have changed, or by WITHRANK [record, rank before] for each. */
static bool web_write_print_board(struct web_query *query) {
    struct json *json = &query->json;
    int64_t changed = 0, has_rank = 0;
    if (web_replies_have_error(query) || !web_number(query, "rank", 0, 1, 0, &has_rank)) {
        return false;
    }
    web_begin_reply(query, NULL);
    json_integer(json, "results", query->write.result_count);
    web_write_put_repeated(query);
    if (has_rank != 0) {
        json_open(json, "rows", '[');
    }
    for (unsigned i = 0; i < query->reply_count; i++) {
        struct value_reader reader = web_reply(query, i);
        struct value value = value_next(&reader);
        changed += value.kind == VALUE_INTEGER ? value.number : 0;
        for (uint64_t k = 0; value.kind == VALUE_LIST && k < value.count; k++) {
            json_open(json, NULL, '{');
            web_put_members(query, "Written", "rows", reader);
            value_skip(&reader);
            web_write_put_is_repeated(query, i);
            json_close(json, '}');
        }
    }
    if (has_rank != 0) {
        json_close(json, ']');
    } else {
        json_integer(json, "changed", changed);
    }
    return web_end_reply(query);
}

/* Of LB.SUBMIT: [record, rank before, counts] for each board. */
static bool web_write_print_boards(struct web_query *query) {
    enum { FIRST_BOARD = 2 };
    struct json *json = &query->json;
    if (web_replies_have_error(query)) {
        return false;
    }
    json_open(json, NULL, '{');
    json_integer(json, "db", query->database);
    web_write_put_repeated(query);
    json_open(json, "results", '[');
    for (unsigned i = 0; i < query->reply_count; i++) {
        struct value_reader reader = web_reply(query, i);
        unsigned begin = i > 0 ? query->commands[i - 1].end : 0;
        struct value list = value_next(&reader);
        json_open(json, NULL, '[');
        for (uint64_t k = 0; k < list.count; k++) {
            json_open(json, NULL, '{');
            json_bytes(json, "board", query->words[begin + FIRST_BOARD + k]);
            web_put_members(query, "Submitted", "results", reader);
            value_skip(&reader);
            web_write_put_is_repeated(query, i);
            json_close(json, '}');
        }
        json_close(json, ']');
    }
    json_close(json, ']');
    return web_end_reply(query);
}

/* ---- leagues ---- */

static void web_write_begin_league(struct web_query *query) {
    json_open(&query->json, NULL, '{');
    json_bytes(&query->json, "league", query->board);
    json_integer(&query->json, "db", query->database);
}

static bool web_write_print_league(struct web_query *query) {
    struct json *json = &query->json;
    if (web_replies_have_error(query)) {
        return false;
    }
    web_write_begin_league(query);
    web_write_put_repeated(query);
    json_open(json, "results", '[');
    for (unsigned i = 0; i < query->reply_count; i++) {
        struct value_reader reader = web_reply(query, i);
        struct value_reader at = reader;
        if (value_next(&at).kind != VALUE_LIST) {
            json_null(json, NULL);
            continue;
        }
        json_open(json, NULL, '{');
        web_put_members(query, "LeagueResults", "results", reader);
        web_write_put_is_repeated(query, i);
        json_close(json, '}');
    }
    json_close(json, ']');
    return web_end_reply(query);
}

static bool web_write_ask_place(struct web_query *query) {
    query->data = (struct web_data){.count = 0};
    query->has_tags = false;
    web_command(query, "LB.LEAGUE|GET $board $member");
    return true;
}

static bool web_write_print_place(struct web_query *query) {
    if (web_replies_have_error(query)) {
        return false;
    }
    struct value_reader reader = web_reply(query, 0);
    web_write_begin_league(query);
    json_bytes(&query->json, "member", query->member);
    struct value_reader first = reader;
    if (value_next(&first).kind != VALUE_LIST) {
        web_error(query, 404, "this member is not in the league");
        return false;
    }
    web_put_members(query, "LeagueMember", NULL, reader);
    return web_end_reply(query);
}

static bool web_write_ask_league(struct web_query *query) {
    web_command(query, "LB.LEAGUE|INFO $board");
    return true;
}

static bool web_write_print_tiers(struct web_query *query) {
    if (web_replies_have_error(query)) {
        return false;
    }
    web_write_begin_league(query);
    web_put_members(query, "League", NULL, web_reply(query, 0));
    return web_end_reply(query);
}

/* ---- members ---- */

static bool web_write_ask_removal(struct web_query *query) {
    web_command(query, "ZREM $board $member");
    return true;
}

static bool web_write_ask_removal_of_league(struct web_query *query) {
    web_command(query, "LB.LEAGUE|REMOVE $board $member");
    return true;
}

static bool web_write_print_flag(struct web_query *query, const char *key) {
    if (web_replies_have_error(query)) {
        return false;
    }
    struct value_reader reader = web_reply(query, 0);
    web_begin_reply(query, NULL);
    json_bytes(&query->json, "member", query->member);
    json_boolean(&query->json, key, value_next(&reader).number != 0);
    return web_end_reply(query);
}

static bool web_write_print_removal(struct web_query *query) {
    return web_write_print_flag(query, "removed");
}

/* ---- tags ---- */

static bool web_write_names_tag(const struct web_query *query, struct bytes name) {
    unsigned count;
    const struct bytes *words = web_results_words(query, &count);
    for (unsigned i = 0; i < count; i += 2) {
        if (bytes_equal_ignoring_case(words[i], name)) {
            return true;
        }
    }
    return false;
}

/* LB.TAG with what was given; and with nothing for the board's other tags, which were kept. */
static bool web_write_ask_tags(struct web_query *query) {
    unsigned count;
    const struct bytes *words = web_results_words(query, &count);
    struct value_reader kept = web_kept(query);
    web_command(query, "LB.TAG $board $member");
    for (unsigned i = 0; i < count; i++) {
        web_word(query, words[i]);
    }
    for (unsigned i = 0; i < query->more; i++) {
        struct bytes name = value_next(&kept).text;
        if (!web_write_names_tag(query, name)) {
            web_words(query, "$ $", name, BYTES(""));
            count += 2;
        }
    }
    if (count == 0) {
        web_error(query, 422, "no tags are given");
    }
    return count > 0;
}

static bool web_write_ask_all_tags(struct web_query *query) {
    if (query->round > 0) {
        return web_write_ask_tags(query);
    }
    web_command(query, "LB.INFO $board");
    return true;
}

static bool web_write_print_tags(struct web_query *query) {
    return web_write_print_flag(query, "changed");
}

static bool web_write_print_all_tags(struct web_query *query) {
    struct value_reader at;
    if (query->round > 0) {
        return web_write_print_tags(query);
    }
    if (web_replies_have_error(query)) {
        return false;
    }
    for (uint64_t left = value_find_list(web_reply(query, 0), "tags", &at); left > 0; left--) {
        web_keep_bulk(query, value_find_text(at, "name"));
        query->more++;
        value_skip(&at);
    }
    return true;
}

/* ---- the routes ---- */

static bool web_write_read_board(struct web_query *query) {
    return web_results_read(query, WEB_RESULTS_OF_BOARD);
}

static bool web_write_read_boards(struct web_query *query) {
    return web_results_read(query, WEB_RESULTS_OF_BOARDS);
}

static bool web_write_read_league(struct web_query *query) {
    return web_results_read(query, WEB_RESULTS_OF_LEAGUE);
}

const struct web_route web_route_results = {.read = web_write_read_board,
                                            .ask = web_write_ask_results,
                                            .print = web_write_print_board,
                                            .writes = true};
const struct web_route web_route_submit = {.read = web_write_read_boards,
                                           .ask = web_write_ask_results,
                                           .print = web_write_print_boards,
                                           .writes = true};
const struct web_route web_route_league_results = {.read = web_write_read_league,
                                                   .ask = web_write_ask_results,
                                                   .print = web_write_print_league,
                                                   .writes = true};
const struct web_route web_route_league = {.ask = web_write_ask_league,
                                           .print = web_write_print_tiers};
const struct web_route web_route_league_member = {.ask = web_write_ask_place,
                                                  .print = web_write_print_place};
const struct web_route web_route_leave_league = {
    .ask = web_write_ask_removal_of_league, .print = web_write_print_removal, .writes = true};
const struct web_route web_route_remove = {
    .ask = web_write_ask_removal, .print = web_write_print_removal, .writes = true};
const struct web_route web_route_set_tags = {.read = web_results_read_tags,
                                             .ask = web_write_ask_tags,
                                             .print = web_write_print_tags,
                                             .writes = true};
const struct web_route web_route_replace_tags = {.read = web_results_read_tags,
                                                 .ask = web_write_ask_all_tags,
                                                 .print = web_write_print_all_tags,
                                                 .writes = true};
