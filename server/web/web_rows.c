/* See web_rows.h. */
#include "server/web/web_rows.h"

#include <stdio.h>

#include "codec/tag.h"

/* ---- parts ---- */

static void web_rows_put_text_or_null(struct json *json, const char *key, struct bytes text) {
    if (text.at == NULL) {
        json_null(json, key);
    } else {
        json_text(json, key, text);
    }
}

void web_put_time_of(struct json *json, const char *key, struct value_reader map,
                     const char *name) {
    int64_t time_ms = value_find_integer(map, name, INT64_MIN);
    if (time_ms == INT64_MIN) {
        json_null(json, key);
    } else {
        json_time_ms(json, key, time_ms);
    }
}

void web_put_integer_of(struct json *json, struct value_reader map, const char *name) {
    int64_t number = value_find_integer(map, name, INT64_MIN);
    if (number == INT64_MIN) {
        json_null(json, name);
    } else {
        json_integer(json, name, number);
    }
}

void web_put_text_of(struct json *json, struct value_reader map, const char *name) {
    web_rows_put_text_or_null(json, name, value_find_text(map, name));
}

void web_put_flag_of(struct json *json, struct value_reader map, const char *name) {
    json_boolean(json, name, value_find_integer(map, name, 0) != 0);
}

bool web_find_map(struct value_reader map, const char *name, struct value_reader *found) {
    if (!value_find(map, name, found)) {
        return false;
    }
    struct value_reader at = *found;
    return value_next(&at).kind == VALUE_MAP;
}

void web_put_state(struct json *json, struct value_reader board) {
    struct value_reader period;
    bool has_period = web_find_map(board, "period", &period);
    web_put_flag_of(json, board, "frozen");
    web_put_time_of(json, "opens_at", board, "opens");
    web_put_time_of(json, "closes_at", board, "closes");
    if (has_period) {
        web_put_time_of(json, "starts_at", period, "start");
        web_put_time_of(json, "rolls_at", period, "end");
    } else {
        json_null(json, "starts_at");
        json_null(json, "rolls_at");
    }
}

static void web_rows_put_period(struct json *json, struct value_reader board) {
    struct value_reader period;
    if (!web_find_map(board, "period", &period)) {
        json_null(json, "period");
        return;
    }
    json_open(json, "period", '{');
    web_put_text_of(json, period, "unit");
    web_put_integer_of(json, period, "every");
    web_put_text_of(json, period, "on");
    web_put_integer_of(json, period, "at");
    web_put_text_of(json, period, "tz");
    web_put_text_of(json, period, "from");
    web_put_integer_of(json, period, "archive");
    web_put_text_of(json, period, "archived");
    json_close(json, '}');
}

static void web_rows_put_archives(struct json *json, struct value_reader board) {
    struct value_reader at;
    json_open(json, "archives", '[');
    for (uint64_t left = value_find_list(board, "archives", &at); left > 0; left--) {
        json_open(json, NULL, '{');
        json_bytes(json, "name", value_next(&at).text);
        json_close(json, '}');
    }
    json_close(json, ']');
}

static void web_rows_put_window(struct json *json, struct value_reader board) {
    struct value_reader window;
    if (!web_find_map(board, "window", &window)) {
        json_null(json, "window");
        return;
    }
    json_open(json, "window", '{');
    web_put_integer_of(json, window, "periods");
    web_put_text_of(json, window, "of");
    json_close(json, '}');
}

static void web_rows_put_league(struct json *json, struct value_reader board) {
    struct value_reader league;
    if (!web_find_map(board, "league", &league)) {
        json_null(json, "league");
        return;
    }
    json_open(json, "league", '{');
    web_put_integer_of(json, league, "room");
    web_put_integer_of(json, league, "tiers");
    web_put_integer_of(json, league, "up");
    web_put_integer_of(json, league, "down");
    web_put_text_of(json, league, "idle");
    json_close(json, '}');
}

void web_put_board(struct json *json, const struct web_query *query, struct bytes name,
                   struct value_reader board) {
    json_bytes(json, "name", name);
    json_integer(json, "db", query->database);
    web_put_integer_of(json, board, "count");
    web_put_text_of(json, board, "layout");
    web_put_integer_of(json, board, "cap");
    web_put_integer_of(json, board, "limit");
    web_put_text_of(json, board, "keep");
    web_put_flag_of(json, board, "created");
    web_put_integer_of(json, board, "stale");
    web_put_flag_of(json, board, "settle");
    if (value_find_integer(board, "settled", INT64_MIN) == INT64_MIN) {
        json_null(json, "settled");
    } else {
        web_put_flag_of(json, board, "settled");
    }
    web_put_state(json, board);
    web_rows_put_period(json, board);
    web_rows_put_archives(json, board);
    web_rows_put_window(json, board);
    web_rows_put_league(json, board);
}

uint64_t web_count_fields(struct value_reader board) {
    struct value_reader at;
    return value_find_list(board, "fields", &at);
}

void web_put_field_names(struct json *json, struct value_reader board) {
    struct value_reader at;
    json_open(json, "fields", '[');
    for (uint64_t left = value_find_list(board, "fields", &at); left > 0; left--) {
        web_rows_put_text_or_null(json, NULL, value_find_text(at, "name"));
        value_skip(&at);
    }
    json_close(json, ']');
}

void web_put_fields(struct json *json, struct value_reader board) {
    struct value_reader at;
    json_open(json, "fields", '[');
    for (uint64_t left = value_find_list(board, "fields", &at); left > 0; left--) {
        json_open(json, NULL, '{');
        web_put_text_of(json, at, "name");
        web_put_integer_of(json, at, "bits");
        web_put_text_of(json, at, "order");
        web_put_flag_of(json, at, "signed");
        web_put_integer_of(json, at, "scale");
        web_put_text_of(json, at, "lowest");
        web_put_text_of(json, at, "highest");
        json_close(json, '}');
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
static void web_rows_put_tags(struct json *json, struct value_reader *reader) {
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

static void web_rows_put_since(struct json *json, struct value_reader *reader) {
    struct value rank = value_next(reader);
    if (rank.kind == VALUE_INTEGER) {
        json_integer(json, "since", rank.number);
    } else {
        json_null(json, "since");
    }
}

/* A record, which is not null: [member, rank, time, fields ..., percentage, tags, data, since]. percent: where its
 * value goes; NULL: it has none. */
void web_put_record(struct json *json, const struct web_query *query, const char *key,
                    uint64_t field_count, struct value_reader *reader, struct value *percent) {
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
        web_rows_put_tags(json, reader);
    }
    web_put_data(json, query, reader);
    if (has_since) {
        web_rows_put_since(json, reader);
    }
    json_close(json, '}');
}

void web_put_rows(struct json *json, const struct web_query *query, const char *key,
                  uint64_t field_count, struct value_reader reader) {
    struct value list = value_next(&reader);
    json_open(json, key, '[');
    for (uint64_t i = 0; list.kind == VALUE_LIST && i < list.count; i++) {
        struct value_reader at = reader;
        if (value_next(&at).kind == VALUE_NULL) {
            reader = at;
        } else {
            web_put_record(json, query, NULL, field_count, &reader, NULL);
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
        web_put_integer_of(&query->json, *info, "count");
    }
}

bool web_end_reply(struct web_query *query) {
    json_close(&query->json, '}');
    return false;
}

/* ---- a cursor: "0", or the part and the cursor within it ---- */

bool web_read_cursor(struct web_query *query) {
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

void web_put_cursor(struct web_query *query, bool is_over) {
    char text[64];
    snprintf(text, sizeof text, is_over ? "0" : "%u.%llu", query->scan.part,
             (unsigned long long)query->scan.cursor);
    json_text(&query->json, "cursor", bytes_from_text(text));
}

/* ---- a scan ---- */

bool web_take_step(struct web_query *query, unsigned nth, struct value_reader *list) {
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
