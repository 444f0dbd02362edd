/* The list of boards, one of them, and a page of it. */
#include "codec/glob.h"
#include "server/web/web_rows.h"

enum {
    ROWS_DEFAULT = 25,
    LIST_MAX = 200,
    LIST_ROUNDS_MAX = 500,
    LIST_REPLY_MAX = 64 * 1024, /* bytes: behind so many of its replies a round ends */
    LIST_STEP = 50,             /* keys that LB.LIST visits */
};

/* ---- the list ---- */

/* The boards that earlier rounds have found lie in query->kept, one map behind the other. */
static bool web_boards_find_kept(const struct web_query *query, struct bytes name,
                                 struct value_reader *found) {
    struct value_reader at = web_kept(query);
    while (at.at < at.end) {
        if (bytes_equal(value_find_text(at, "name"), name)) {
            *found = at;
            return true;
        }
        value_skip(&at);
    }
    return false;
}

static bool web_boards_ask_list(struct web_query *query) {
    if (query->round == 0 &&
        (!web_read_cursor(query) ||
         !web_number(query, "count", 1, LIST_MAX, LIST_MAX / 2, &query->count))) {
        return false;
    }
    struct bytes match = http_target_find(&query->target, "match");
    if (match.size > GLOB_PATTERN_MAX) {
        web_error(query, 400, "bad_request", "match is too long: at most %d bytes",
                  GLOB_PATTERN_MAX);
        return false;
    }
    query->scan.size_max = LIST_REPLY_MAX;
    web_command(query, "LB.LIST MATCH $pattern COUNT # CURSOR $cursor", (int64_t)LIST_STEP);
    return true;
}

static void web_boards_keep(struct web_query *query, struct value_reader reader) {
    struct bytes match = http_target_find(&query->target, "match");
    struct value list = value_next(&reader);
    for (uint64_t i = 0; i < list.count; i++) {
        struct value_reader begin = reader;
        struct value_reader twin;
        struct bytes name = value_find_text(reader, "name");
        value_skip(&reader);
        if ((match.size == 0 || glob_matches(match, name)) &&
            !web_boards_find_kept(query, name, &twin)) {
            buffer_append(&query->kept, begin.at, (size_t)(reader.at - begin.at));
            query->more++;
        }
    }
}

/* Of "daily@2026-11-21" the board daily, if that names it. */
static void web_boards_put_archive_of(struct web_query *query, struct bytes name) {
    struct bytes base = name;
    struct value_reader board;
    struct value_reader at;
    while (base.size > 0 && base.at[base.size - 1] != '@') {
        base.size--;
    }
    base.size -= base.size > 0;
    if (base.size > 0 && web_boards_find_kept(query, base, &board) &&
        value_find(board, "archives", &at)) {
        uint64_t count = value_next(&at).count;
        for (uint64_t i = 0; i < count; i++) {
            if (bytes_equal(value_next(&at).text, name)) {
                json_bytes(&query->json, "archive_of", base);
                return;
            }
        }
    }
    json_null(&query->json, "archive_of");
}

/* What the steps have found. false: one failed; the error was written. *is_refused: the user may not see keys of
 * this pattern, but perhaps those of another. */
static bool web_boards_take_steps(struct web_query *query, bool *is_refused) {
    bool is_last = query->scan.part + 1 >= query->scan.pattern_count;
    *is_refused = false;
    for (unsigned i = 0; i < query->reply_count; i++) {
        struct value_reader list;
        if (!web_take_step(query, i, &list)) {
            *is_refused = query->status == 401 || query->status == 403;
            return *is_refused && (query->scan.has_listed || !is_last);
        }
        query->scan.has_listed = true;
        web_boards_keep(query, list);
    }
    return true;
}

static bool web_boards_print_list(struct web_query *query) {
    bool is_refused;
    if (!web_boards_take_steps(query, &is_refused)) {
        return false;
    }
    buffer_clear(&query->out);
    query->status = 200;
    query->json = web_json(&query->out);
    if (is_refused || query->scan.cursor == 0) {
        query->scan.cursor = 0;
        query->scan.part++;
    }
    bool is_over = query->scan.part >= query->scan.pattern_count;
    if (!is_over && query->more < query->count && query->round < LIST_ROUNDS_MAX) {
        return true;
    }
    struct value_reader at = web_kept(query);
    json_open(&query->json, NULL, '{');
    json_open(&query->json, "boards", '[');
    while (at.at < at.end) {
        struct bytes name = value_find_text(at, "name");
        json_open(&query->json, NULL, '{');
        web_put_board(&query->json, query, name, at);
        web_boards_put_archive_of(query, name);
        json_close(&query->json, '}');
        value_skip(&at);
    }
    json_close(&query->json, ']');
    web_put_cursor(query, is_over);
    return web_end_reply(query);
}

const struct web_route web_route_list = {.ask = web_boards_ask_list,
                                         .print = web_boards_print_list};

/* ---- one board ---- */

static bool web_boards_ask_board(struct web_query *query) {
    web_command(query, "LB.INFO $board");
    return true;
}

static bool web_boards_print_board(struct web_query *query) {
    struct json *json = &query->json;
    struct value_reader time;
    if (web_reply_is_error(query, 0)) {
        return false;
    }
    struct value_reader board = web_reply(query, 0);
    json_open(json, NULL, '{');
    web_put_board(json, query, query->board, board);
    web_put_integer_of(json, board, "bits");
    web_put_integer_of(json, board, "memory");
    web_put_fields(json, board);
    if (web_find_map(board, "time", &time)) {
        json_open(json, "time", '{');
        web_put_text_of(json, time, "unit");
        web_put_integer_of(json, time, "bits");
        web_put_text_of(json, time, "order");
        json_close(json, '}');
    } else {
        json_null(json, "time");
    }
    web_put_data_names(json, query);
    return web_end_reply(query);
}

const struct web_route web_route_board = {.ask = web_boards_ask_board,
                                          .print = web_boards_print_board};

/* ---- a page ---- */

static bool web_boards_ask_page(struct web_query *query) {
    if (!web_number(query, "from", 0, UINT32_MAX, 0, &query->from) ||
        !web_number(query, "count", 1, WEB_ROWS_MAX, ROWS_DEFAULT, &query->count)) {
        return false;
    }
    web_command(query, "LB.INFO $board");
    web_command(query, "LB.RANGE $board # # $data", query->from, query->from + query->count - 1);
    return true;
}

static bool web_boards_print_page(struct web_query *query) {
    struct json *json = &query->json;
    if (web_replies_have_error(query)) {
        return false;
    }
    struct value_reader board = web_reply(query, 0);
    web_begin_reply(query, &board);
    json_integer(json, "from", query->from);
    web_put_field_names(json, board);
    web_put_data_names(json, query);
    web_put_state(json, board);
    web_put_rows(json, query, "rows", web_count_fields(board), web_reply(query, 1));
    return web_end_reply(query);
}

const struct web_route web_route_page = {.ask = web_boards_ask_page,
                                         .print = web_boards_print_page};
