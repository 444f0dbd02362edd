/* Routes of boards: the list, one of them, a page of it, one member, and looking for members; and what replies about
 * boards have in common. docs/web.md says what they look like. */
#include <stdio.h>

#include "codec/glob.h"
#include "codec/tag.h"
#include "server/web/web_query.h"
#include "skiplist/keyspace/archive_name.h"
#include "skiplist/keyspace/league.h"

/* ---- what replies have in common ---- */

uint64_t web_count_fields(struct value_reader board) {
    struct value_reader at;
    return value_find_list(board, "fields", &at);
}

void web_put_field_names(struct json *json, struct value_reader board) {
    struct value_reader at;
    json_open(json, "fields", '[');
    for (uint64_t left = value_find_list(board, "fields", &at); left > 0; left--) {
        json_text(json, NULL, value_find_text(at, "name"));
        value_skip(&at);
    }
    json_close(json, ']');
}

void web_put_data_names(struct json *json, const struct web_query *query) {
    json_open(json, "data_fields", '[');
    for (unsigned i = 0; i < query->data.count; i++) {
        json_text(json, NULL, query->data.fields[i]);
    }
    json_close(json, ']');
}

void web_put_data(struct json *json, const struct web_query *query, struct value_reader *reader) {
    if (query->data.pattern.at == NULL) {
        return;
    }
    struct value list = value_next(reader);
    json_open(json, "data", '{');
    for (unsigned i = 0; i < query->data.count; i++) {
        struct value value = {.kind = VALUE_NULL};
        if (list.kind == VALUE_LIST && i < list.count) {
            value = value_next(reader);
        }
        json_pair(json, query->data.fields[i],
                  value.kind == VALUE_TEXT ? value.text : (struct bytes){.at = NULL});
    }
    json_close(json, '}');
}

void web_put_number_text(struct json *json, const char *key, struct value value) {
    char text[BYTES_INTEGER_TEXT_MAX];
    if (value.kind == VALUE_INTEGER) {
        size_t size = bytes_print_i64(text, value.number);
        json_text(json, key, (struct bytes){.at = text, .size = size});
    } else {
        json_text(json, key, value.text);
    }
}

/* The tags of a record: a map. */
static void web_boards_put_tags(struct json *json, struct value_reader *reader) {
    char name[TAG_NAME_MAX + 1];
    struct value map = value_next(reader);
    json_open(json, "tags", '{');
    for (uint64_t i = 0; map.kind == VALUE_MAP && i < map.count; i++) {
        struct bytes tag = value_next(reader).text;
        snprintf(name, sizeof name, "%.*s", (int)tag.size, tag.at);
        json_bytes(json, name, value_next(reader).text);
    }
    json_close(json, '}');
}

/* A record, which is not null: [member, rank, time, fields ..., percentage, tags, data, since]. percent: where its
 * value goes; NULL: it has none. */
static void web_boards_put_record(struct json *json, const struct web_query *query, const char *key,
                                  uint64_t field_count, struct value_reader *reader,
                                  struct value *percent) {
    uint64_t behind_fields =
        3 + field_count + (percent != NULL) + query->has_tags + (query->data.pattern.at != NULL);
    bool has_since = value_next(reader).count > behind_fields;
    json_open(json, key, '{');
    struct bytes member = value_next(reader).text;
    json_integer(json, "rank", value_next(reader).number);
    json_bytes(json, "member", member);
    struct value time = value_next(reader);
    struct value_reader fields = *reader;
    if (field_count > 0) {
        web_put_number_text(json, "score", value_next(&fields));
    }
    json_open(json, "fields", '[');
    for (uint64_t i = 0; i < field_count; i++) {
        web_put_number_text(json, NULL, value_next(reader));
    }
    json_close(json, ']');
    if (time.kind == VALUE_INTEGER) {
        json_time_ms(json, "reached_at", time.number);
    } else {
        json_null(json, "reached_at");
    }
    if (percent != NULL) {
        *percent = value_next(reader);
    }
    if (query->has_tags) {
        web_boards_put_tags(json, reader);
    }
    web_put_data(json, query, reader);
    if (has_since) {
        struct value rank = value_next(reader);
        if (rank.kind == VALUE_INTEGER) {
            json_integer(json, "since", rank.number);
        } else {
            json_null(json, "since");
        }
    }
    json_close(json, '}');
}

/* ---- from replies to JSON, by their shapes ---- */

/* Go to what a path leads to in a value of this shape, which becomes that of what is there. false: nothing is, or
 * null. */
static bool web_boards_follow(struct shape *shape, struct bytes path, struct value_reader *at) {
    bool is_there = true;
    for (struct bytes word; path.size > 0 && path.at[0] != '.';
         path = bytes_behind(path, path.size > word.size ? word.size + 1 : word.size)) {
        const char *dot = memchr(path.at, '.', path.size);
        struct value_reader here = *at;
        struct shape_member member;
        word = (struct bytes){path.at, dot != NULL ? (size_t)(dot - path.at) : path.size};
        *shape = shape_resolve(*shape);
        bool is_list = is_there && value_next(&here).kind == VALUE_LIST;
        const char *text = shape->inner;
        while (shape_next(&text, &member) && !bytes_equal(member.name, word)) {
            if (is_list) {
                value_skip(&here);
            }
        }
        is_there = is_there && (is_list || value_find(*at, word, &here));
        *at = here;
        *shape = member.type;
    }
    return is_there && value_next(&(struct value_reader){at->at, at->end}).kind != VALUE_NULL;
}

static void web_boards_put_run(struct web_query *query, const char *text, struct shape source,
                               struct value_reader reply);

static void web_boards_put_scalar(struct json *json, const char *key, enum shape_kind kind,
                                  struct value value) {
    if (kind == SHAPE_BOOLEAN) {
        json_boolean(json, key, value.number != 0);
    } else if (kind == SHAPE_INTEGER) {
        json_integer(json, key, value.number);
    } else if (kind == SHAPE_TIME || kind == SHAPE_SECONDS) {
        json_time_ms(json, key, kind == SHAPE_TIME ? value.number : value.number * 1000);
    } else {
        web_put_number_text(json, key, value);
    }
}

/* A value of this shape, of which `shape` says what is shown. */
static void web_boards_put_value(struct web_query *query, const char *key, struct shape shape,
                                 struct shape source, struct value_reader at) {
    struct json *json = &query->json;
    struct value_reader here = at;
    source = shape_resolve(source);
    if (shape.kind == SHAPE_NAMED) { /* Row */
        uint64_t before_fields = 3;
        web_boards_put_record(json, query, key, value_next(&here).count - before_fields, &at, NULL);
    } else if (shape.kind == SHAPE_ARRAY) {
        json_open(json, key, '[');
        for (uint64_t left = value_next(&here).count; left > 0; left--) {
            web_boards_put_value(query, NULL, shape_read(shape.inner), shape_read(source.inner),
                                 here);
            value_skip(&here);
        }
        json_close(json, ']');
    } else if (shape.kind == SHAPE_MAP) {
        json_open(json, key, '{');
        web_boards_put_run(query, shape.inner, source, at);
        json_close(json, '}');
    } else {
        web_boards_put_scalar(json, key, shape.kind, value_next(&here));
    }
}

static void web_boards_put_run(struct web_query *query, const char *text, struct shape source,
                               struct value_reader reply) {
    struct json *json = &query->json;
    struct shape_member member;
    bool has_begun = false;
    while (shape_next(&text, &member) && (member.source.at != NULL || !has_begun)) {
        struct value_reader at = reply;
        char key[48];
        if (member.source.at == NULL) {
            continue;
        }
        has_begun = true;
        snprintf(key, sizeof key, "%.*s", (int)member.name.size, member.name.at);
        struct shape found = source;
        bool is_there = web_boards_follow(&found, member.source, &at);
        struct shape shape = member.type.kind == SHAPE_UNSAID ? shape_resolve(found) : member.type;
        if (is_there) {
            if (member.is_bytes) {
                json_bytes(json, key, value_next(&at).text);
            } else {
                web_boards_put_value(query, key, shape, found, at);
            }
        } else if (shape.kind == SHAPE_ARRAY) {
            json_open(json, key, '[');
            json_close(json, ']');
        } else {
            json_null(json, key);
        }
    }
}

void web_put_members(struct web_query *query, const char *schema, const char *within,
                     struct value_reader reply) {
    struct shape source;
    const char *text = web_schema(schema, within, &source);
    web_boards_put_run(query, text, source, reply);
}

/* ---- replies ---- */

void web_put_rows(struct json *json, const struct web_query *query, const char *key,
                  uint64_t field_count, struct value_reader reader) {
    struct value list = value_next(&reader);
    json_open(json, key, '[');
    for (uint64_t i = 0; list.kind == VALUE_LIST && i < list.count; i++) {
        struct value_reader at = reader;
        if (value_next(&at).kind == VALUE_NULL) {
            reader = at;
        } else {
            web_boards_put_record(json, query, NULL, field_count, &reader, NULL);
        }
    }
    json_close(json, ']');
}

void web_ask_count(struct web_query *query) {
    if (query->where_count > 0) {
        web_command(query, "LB.COUNT $board $where");
    }
}

unsigned web_own_replies(const struct web_query *query) {
    return query->reply_count - (query->where_count > 0);
}

void web_begin_reply(struct web_query *query, const struct value_reader *info) {
    json_open(&query->json, NULL, '{');
    json_bytes(&query->json, "board", query->board);
    json_integer(&query->json, "db", query->database);
    if (info != NULL && query->where_count > 0) {
        struct value_reader count = web_reply(query, query->reply_count - 1);
        json_integer(&query->json, "count", value_next(&count).number);
    } else if (info != NULL) {
        json_integer(&query->json, "count", value_find_integer(*info, "count", 0));
    }
}

bool web_end_reply(struct web_query *query) {
    json_close(&query->json, '}');
    return false;
}

/* ---- a cursor: "0", or the part and the cursor within it ---- */

/* A cursor is "0", or a part and the cursor within it: "1.1234". false: the error was written. */
static bool web_boards_read_cursor(struct web_query *query) {
    struct bytes text = http_target_find(&query->target, "cursor");
    const char *dot = text.at != NULL ? memchr(text.at, '.', text.size) : NULL;
    uint64_t part = 0;
    if (text.at == NULL || bytes_equal(text, BYTES("0"))) {
        return true;
    }
    if (dot != NULL) {
        struct bytes first = {.at = text.at, .size = (size_t)(dot - text.at)};
        struct bytes rest = {.at = dot + 1, .size = text.size - first.size - 1};
        if (bytes_parse_u64(first, &part) && part < UINT16_MAX &&
            bytes_parse_u64(rest, &query->scan.cursor)) {
            query->scan.part = (unsigned)part;
            return true;
        }
    }
    web_error(query, 400, "cursor is 0, or what the reply before has given");
    return false;
}

static void web_boards_put_cursor(struct web_query *query, bool is_over) {
    char text[64];
    snprintf(text, sizeof text, is_over ? "0" : "%u.%llu", query->scan.part,
             (unsigned long long)query->scan.cursor);
    json_text(&query->json, "cursor", bytes_from_text(text));
}

/* ---- a scan ---- */

/* The nth step of a scan: its cursor goes to query->scan.cursor, and *list is at what it has found. false: this step
 * was refused, as any of them can be; the error was written. */
static bool web_boards_take_step(struct web_query *query, unsigned nth, struct value_reader *list) {
    if (web_reply_is_error(query, nth)) {
        return false;
    }
    *list = web_reply(query, nth);
    (void)value_next(list);
    bool is_number = bytes_parse_u64(value_next(list).text, &query->scan.cursor);
    CHECK(is_number);
    return true;
}

/* ---- what a route keeps from round to round ---- */

struct value_reader web_kept_behind(const struct web_query *query, unsigned count) {
    struct value_reader at = web_kept(query);
    for (unsigned i = 0; i < count; i++) {
        value_skip(&at);
    }
    return at;
}

void web_keep_bulk(struct web_query *query, struct bytes text) {
    char head[64];
    int size = snprintf(head, sizeof head, "$%zu\r\n", text.size);
    buffer_append(&query->kept, head, (size_t)size);
    buffer_append(&query->kept, text.at, text.size);
    buffer_append(&query->kept, "\r\n", 2);
}

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
        (!web_boards_read_cursor(query) ||
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
        if (!web_boards_take_step(query, i, &list)) {
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
    web_boards_put_cursor(query, is_over);
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
    struct value_reader at;
    for (uint64_t left = value_find_list(board, "tags", &at); left > 0; left--) {
        const char *begin = at.at;
        value_skip(&at);
        buffer_append(&query->kept, begin, (size_t)(at.at - begin));
    }
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

enum {
    AROUND = 11, /* the member and ten others */
    SEARCH_MAX = 50,
    SEARCH_STEP = 200,       /* members that one ZSCAN looks at */
    SEARCH_REPLY_MAX = 2048, /* bytes: behind so many of its replies it is looked what was found */
    SEARCH_ROUNDS_MAX = 200,
    SEARCH_SIZE_MAX = 500, /* bytes of what is searched for */
    FOUND_MAX = 400,       /* more than a round finds */
    NAMES_STEP = 200,      /* places that a round looks at for names */
    NAMES_ROUNDS_MAX = 100,
};

/* ---- a member ---- */

static bool web_boards_ask_member(struct web_query *query) {
    web_command(query, "LB.INFO $board");
    web_command(query, "LB.GET $board 1 $member PCT $where $tags $data $since");
    web_command(query, "LB.AROUND $board MEMBER $member # $where $tags $data $since",
                (int64_t)AROUND);
    web_ask_count(query);
    return true;
}

static bool web_boards_print_member(struct web_query *query) {
    struct json *json = &query->json;
    struct value percent = {.kind = VALUE_NULL};
    if (web_replies_have_error(query)) {
        return false;
    }
    struct value_reader board = web_reply(query, 0);
    struct value_reader record = web_reply(query, 1);
    (void)value_next(&record);
    struct value_reader first = record;
    if (value_next(&first).kind == VALUE_NULL) {
        web_error(query, 404, "this member is not %s",
                  query->where_count > 0 ? "in this group of the board" : "on the board");
        return false;
    }
    web_begin_reply(query, &board);
    json_bytes(json, "member", query->member);
    (void)value_next(&first); /* the member */
    json_integer(json, "rank", value_next(&first).number);
    web_put_field_names(json, board);
    web_put_data_names(json, query);
    web_boards_put_record(json, query, "row", web_count_fields(board), &record, &percent);
    web_put_number_text(json, "percentile", percent);
    web_put_rows(json, query, "around", web_count_fields(board), web_reply(query, 2));
    return web_end_reply(query);
}

const struct web_route web_route_member = {.ask = web_boards_ask_member,
                                           .print = web_boards_print_member};

/* ---- searching by the names that are shown ---- */

/* No index has the names: places are gone through from the best on, a round's worth at a time. What is found is
 * printed at once, so that a board that gets another layout meanwhile does no harm. */
static void web_boards_ask_names(struct web_query *query) {
    web_command(query, "LB.INFO $board");
    int64_t from = (int64_t)query->scan.cursor;
    web_command(query, "LB.RANGE $board # # $where $tags $data", from, from + NAMES_STEP - 1);
    web_ask_count(query);
}

/* The name in a record: the first of its data that is no picture. */
static struct bytes web_boards_name_in(const struct web_query *query, struct value_reader record,
                                       uint64_t field_count) {
    struct bytes picture = query->web->avatars.field;
    (void)value_next(&record);
    for (uint64_t i = 0; i < 3 + field_count + query->has_tags; i++) {
        value_skip(&record);
    }
    struct value list = value_next(&record);
    for (unsigned i = 0; i < query->data.count && i < list.count; i++) {
        struct value value = value_next(&record);
        if (picture.at == NULL || !bytes_equal(query->data.fields[i], picture)) {
            return value.kind == VALUE_TEXT ? value.text : (struct bytes){.at = NULL};
        }
    }
    return (struct bytes){.at = NULL};
}

static bool web_boards_begins_with(struct bytes text, struct bytes prefix) {
    size_t i = 0;
    while (i < prefix.size && i < text.size &&
           bytes_lower(text.at[i]) == bytes_lower(prefix.at[i])) {
        i++;
    }
    return i == prefix.size;
}

/* Does the name, or a word of it, begin so? Letters of ASCII in either case. */
static bool web_boards_is_called(struct bytes name, struct bytes prefix) {
    for (size_t i = 0; i < name.size; i++) {
        struct bytes rest = {.at = name.at + i, .size = name.size - i};
        if ((i == 0 || name.at[i - 1] == ' ') && web_boards_begins_with(rest, prefix)) {
            return true;
        }
    }
    return false;
}

static void web_boards_begin_names(struct web_query *query, struct value_reader board) {
    struct json *json = &query->json;
    web_begin_reply(query, &board);
    web_put_field_names(json, board);
    web_put_data_names(json, query);
    json_open(json, "rows", '[');
}

static bool web_boards_print_names(struct web_query *query) {
    struct bytes prefix = http_target_find(&query->target, "q");
    if (web_replies_have_error(query)) {
        return false;
    }
    struct value_reader board = web_reply(query, 0);
    struct value_reader rows = web_reply(query, 1);
    struct value list = value_next(&rows);
    uint64_t field_count = web_count_fields(board);
    if (query->round == 0) {
        web_boards_begin_names(query, board);
    }
    uint64_t seen = query->data.pattern.at != NULL ? 0 : list.count;
    for (; seen < list.count && query->more < query->count; seen++) {
        if (web_boards_is_called(web_boards_name_in(query, rows, field_count), prefix)) {
            web_boards_put_record(&query->json, query, NULL, field_count, &rows, NULL);
            query->more++;
        } else {
            value_skip(&rows);
        }
    }
    query->scan.cursor += seen;
    bool is_over = query->data.pattern.at == NULL || (seen == list.count && seen < NAMES_STEP);
    if (!is_over && query->more < query->count && query->round + 1 < NAMES_ROUNDS_MAX) {
        return true;
    }
    json_close(&query->json, ']');
    web_boards_put_cursor(query, is_over);
    return web_end_reply(query);
}

/* ---- searching ---- */

/* Rounds: scan, until enough members are in query->kept as bulks; then their records. */
static void web_boards_ask_records(struct web_query *query) {
    struct value_reader at = web_kept(query);
    web_command(query, "LB.INFO $board");
    if (query->more > 0) {
        web_command(query, "LB.GET $board #", (int64_t)query->more);
        for (unsigned i = 0; i < query->more; i++) {
            web_word(query, value_next(&at).text);
        }
        web_words(query, "$where $tags $data");
    }
    web_ask_count(query);
}

static struct bytes web_boards_prefix_pattern(struct web_query *query, struct bytes prefix) {
    char pattern[2 * SEARCH_SIZE_MAX + 1];
    size_t size = 0;
    for (size_t i = 0; i < prefix.size; i++) {
        if (prefix.at[i] != '\0' && strchr("*?[]\\^-", prefix.at[i]) != NULL) {
            pattern[size++] = '\\';
        }
        pattern[size++] = prefix.at[i];
    }
    pattern[size++] = '*';
    return web_word_copy(query, (struct bytes){.at = pattern, .size = size});
}

static bool web_boards_ask_search(struct web_query *query) {
    struct bytes prefix = http_target_find(&query->target, "q");
    struct bytes by = http_target_find(&query->target, "by");
    bool is_by_name = bytes_equal(by, BYTES("name"));
    if (query->round == 0) {
        if (!web_boards_read_cursor(query) ||
            !web_number(query, "count", 1, SEARCH_MAX, SEARCH_MAX / 2, &query->count)) {
            return false;
        }
        if (prefix.size == 0 || prefix.size > SEARCH_SIZE_MAX) {
            web_error(query, 400, "q is what members begin with: 1 to %d bytes", SEARCH_SIZE_MAX);
            return false;
        }
        if (by.at != NULL && !is_by_name && !bytes_equal(by, BYTES("id"))) {
            web_error(query, 400, "by is id or name");
            return false;
        }
    }
    query->scan.cursor_word = 0;
    if (is_by_name) {
        web_boards_ask_names(query);
        return true;
    }
    if (query->scan.is_over) {
        web_boards_ask_records(query);
        return true;
    }
    web_command(query, "ZSCAN $board $cursor MATCH $ COUNT #",
                web_boards_prefix_pattern(query, prefix), (int64_t)SEARCH_STEP);
    query->scan.size_max = SEARCH_REPLY_MAX;
    if (query->round == 0 && query->scan.cursor == 0) {
        /* The member itself comes first, however large the board is. */
        web_keep_bulk(query, prefix);
        query->more = 1;
    }
    return true;
}

static void web_boards_keep_members(struct web_query *query, struct value_reader reader) {
    struct bytes prefix = http_target_find(&query->target, "q");
    struct value list = value_next(&reader);
    for (uint64_t i = 0; i + 1 < list.count; i += 2) {
        struct value_reader begin = reader;
        struct value member = value_next(&reader);
        const char *end = reader.at;
        value_skip(&reader); /* the score */
        if (!bytes_equal(member.text, prefix) && query->more < FOUND_MAX) {
            buffer_append(&query->kept, begin.at, (size_t)(end - begin.at));
            query->more++;
        }
    }
}

static bool web_boards_print_search(struct web_query *query) {
    struct json *json = &query->json;
    if (bytes_equal(http_target_find(&query->target, "by"), BYTES("name"))) {
        return web_boards_print_names(query);
    }
    if (!query->scan.is_over) {
        for (unsigned i = 0; i < query->reply_count; i++) {
            struct value_reader list;
            if (!web_boards_take_step(query, i, &list)) {
                return false;
            }
            web_boards_keep_members(query, list);
        }
        query->scan.is_over = query->scan.cursor == 0 || query->more >= query->count ||
                              query->round >= SEARCH_ROUNDS_MAX;
        return true;
    }
    if (web_replies_have_error(query)) {
        return false;
    }
    struct value_reader board = web_reply(query, 0);
    web_begin_reply(query, &board);
    web_put_field_names(json, board);
    web_put_data_names(json, query);
    if (web_own_replies(query) > 1) {
        web_put_rows(json, query, "rows", web_count_fields(board), web_reply(query, 1));
    } else {
        json_open(json, "rows", '[');
        json_close(json, ']');
    }
    web_boards_put_cursor(query, query->scan.cursor == 0);
    return web_end_reply(query);
}

const struct web_route web_route_search = {.ask = web_boards_ask_search,
                                           .print = web_boards_print_search};
