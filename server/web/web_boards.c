/* The list of boards, one of them, and a page of it. */
#include "codec/glob.h"
#include "server/web/web_rows.h"
#include "skiplist/keyspace/archive_name.h"
#include "skiplist/keyspace/league.h"

enum {
    ROWS_DEFAULT = 25,
    LIST_MAX = 200,
    LIST_ROUNDS_MAX = 500,
    LIST_REPLY_MAX = 64 * 1024, /* bytes: behind so many of its replies a round ends */
    LIST_STEP = 50,             /* keys that LB.LIST visits */
    COUNTED_MAX = 1000,         /* values of a tag, or places, that are counted */
    TOP_MAX = 100,              /* values of a tag that are named */
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

/* from: whether rooms of leagues are listed, too. */
static bool web_boards_ask_list(struct web_query *query) {
    if (query->round == 0 &&
        (!web_read_cursor(query) ||
         !web_number(query, "count", 1, LIST_MAX, LIST_MAX / 2, &query->count) ||
         !web_number(query, "rooms", 0, 1, 1, &query->from))) {
        return false;
    }
    struct bytes match = http_target_find(&query->target, "match");
    if (match.size > GLOB_PATTERN_MAX) {
        web_error(query, 400, "match is too long: at most %d bytes", GLOB_PATTERN_MAX);
        return false;
    }
    query->scan.size_max = LIST_REPLY_MAX;
    web_command(query, "LB.LIST MATCH $pattern COUNT # CURSOR $cursor", (int64_t)LIST_STEP);
    return true;
}

/* A room of a league, or an archive of one, by its name; a plain board that is called so has no period. */
static bool web_boards_is_room(struct bytes name, struct value_reader board) {
    struct bytes room = name;
    struct bytes prefix;
    struct bytes inner;
    struct league_entry entry;
    struct value_reader period;
    bool is_archive = archive_find_board(name, &room);
    return league_parse_room(is_archive ? room : name, &prefix, &inner, &entry) &&
           (is_archive ||
            (value_find(board, BYTES("period"), &period) && value_next(&period).kind == VALUE_MAP));
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
            (query->from != 0 || !web_boards_is_room(name, begin)) &&
            !web_boards_find_kept(query, name, &twin)) {
            buffer_append(&query->kept, begin.at, (size_t)(reader.at - begin.at));
            query->more++;
        }
    }
}

/* Of "daily@2026-11-21" the board daily, if that names it. */
static void web_boards_put_archive_of(struct web_query *query, struct bytes name) {
    struct bytes base;
    struct value_reader board;
    struct value_reader at;
    if (archive_find_board(name, &base) && web_boards_find_kept(query, base, &board)) {
        for (uint64_t left = value_find_list(board, "archives", &at); left > 0; left--) {
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
        json_bytes(&query->json, "name", name);
        json_integer(&query->json, "db", query->database);
        web_put_members(query, "ListedBoard", NULL, at);
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

/* LB.COUNT takes as long as there are values: of a tag with many, those of the first places alone are counted. */
static bool web_boards_has_many_values(struct value_reader tag) {
    return value_find_integer(tag, "values", 0) > COUNTED_MAX;
}

static void web_boards_ask_values(struct web_query *query, struct value_reader tag) {
    struct bytes name = value_find_text(tag, "name");
    web_command(query, "LB.COUNT $board");
    if (web_boards_has_many_values(tag)) {
        web_words(query, "0 #", (int64_t)COUNTED_MAX - 1);
    }
    web_words(query, "BY $", name);
    for (unsigned i = 0; i < query->where_count; i++) {
        const struct web_where *where = &query->wheres[i];
        if (!bytes_equal_ignoring_case(where->tag, name)) {
            web_words(query, "WHERE $ $", where->tag, where->value);
        }
    }
}

/* Rounds: the board, of whose tags the maps are kept, one behind the other; then the values of one tag after the
 * other. All is printed at once. */
static bool web_boards_ask_board(struct web_query *query) {
    if (query->round == 0) {
        web_command(query, "LB.INFO $board");
        web_ask_count(query);
    } else {
        web_boards_ask_values(query, web_kept_behind(query, query->more));
    }
    return true;
}

/* [[value, count] ...], most first; the value may be null. Nothing, if it was refused. */
static void web_boards_put_values(struct json *json, struct value_reader reader) {
    struct value list = value_next(&reader);
    int64_t without = 0;
    unsigned left = TOP_MAX;
    json_open(json, "top", '[');
    for (uint64_t i = 0; list.kind == VALUE_LIST && i < list.count; i++) {
        (void)value_next(&reader);
        struct value value = value_next(&reader);
        int64_t count = value_next(&reader).number;
        if (value.kind == VALUE_NULL) {
            without = count;
        } else if (left > 0) {
            left--;
            json_open(json, NULL, '{');
            json_bytes(json, "value", value.text);
            json_integer(json, "count", count);
            json_close(json, '}');
        }
    }
    json_close(json, ']');
    json_integer(json, "without", without);
}

static bool web_boards_print_tag(struct web_query *query) {
    struct json *json = &query->json;
    struct value_reader tag = web_kept_behind(query, query->more);
    json_open(json, NULL, '{');
    web_put_members(query, "Board", "tags", tag);
    web_boards_put_values(json, web_reply(query, 0));
    if (web_boards_has_many_values(tag)) {
        json_integer(json, "places", COUNTED_MAX);
    } else {
        json_null(json, "places");
    }
    json_close(json, '}');
    query->more++;
    tag = web_kept_behind(query, query->more);
    if (tag.at < tag.end) {
        return true;
    }
    json_close(json, ']');
    return web_end_reply(query);
}

static void web_boards_keep_tags(struct web_query *query, struct value_reader board) {
    struct value_reader at;
    for (uint64_t left = value_find_list(board, "tags", &at); left > 0; left--) {
        const char *begin = at.at;
        value_skip(&at);
        buffer_append(&query->kept, begin, (size_t)(at.at - begin));
    }
}

static bool web_boards_print_board(struct web_query *query) {
    struct json *json = &query->json;
    if (query->round > 0) {
        return web_boards_print_tag(query);
    }
    if (web_replies_have_error(query)) {
        return false;
    }
    struct value_reader board = web_reply(query, 0);
    json_open(json, NULL, '{');
    json_bytes(json, "name", query->board);
    json_integer(json, "db", query->database);
    web_put_members(query, "Board", NULL, board);
    web_put_data_names(json, query);
    web_boards_keep_tags(query, board);
    json_open(json, "tags", '[');
    if (query->kept.size > 0) {
        return true;
    }
    json_close(json, ']');
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
    web_command(query, "LB.RANGE $board # # $where $tags $data $since", query->from,
                query->from + query->count - 1);
    web_ask_count(query);
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
    web_put_members(query, "Page", NULL, board);
    web_put_rows(json, query, "rows", web_count_fields(board), web_reply(query, 1));
    return web_end_reply(query);
}

const struct web_route web_route_page = {.ask = web_boards_ask_page,
                                         .print = web_boards_print_page};
