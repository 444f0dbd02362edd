/* Boards as JSON: each route's commands, and what is made of their replies. docs/web.md says what it
 * looks like. */
#include <stdio.h>

#include "codec/decimal.h"
#include "codec/glob.h"
#include "codec/wide.h"
#include "server/web/web_parts.h"

enum {
    COUNT_DEFAULT = 25,
    AROUND = 11,
    BINS_DEFAULT = 20,
    BINS_MAX = 100,
    SEARCH_MAX = 50,
    SEARCH_STEP = 200,       /* members looked at by one ZSCAN */
    SEARCH_REPLY_MAX = 2048, /* bytes: behind so many of its replies it is looked what was found */
    FOUND_MAX = 400,         /* more than two steps find */
    LIST_REPLY_MAX = 64 * 1024,
    SEARCH_SIZE_MAX = 500, /* bytes of what is searched for */
    LIST_MAX = 200,
    LIST_ROUNDS_MAX = 500,
    SEARCH_ROUNDS_MAX = 200,
    ARCHIVES_MAX = 16, /* LB.INFO names no more */
    ARCHIVE_ROWS_MAX = 50,
};

/* ---- parts ---- */

static void put_text_or_null(struct json *json, const char *key, struct bytes text) {
    if (text.at == NULL) {
        json_null(json, key);
    } else {
        json_text(json, key, text);
    }
}

static void put_time_of(struct json *json, const char *key, struct value_reader map,
                        const char *name) {
    int64_t time_ms = value_find_integer(map, name, INT64_MIN);
    if (time_ms == INT64_MIN) {
        json_null(json, key);
    } else {
        json_time_ms(json, key, time_ms);
    }
}

static void put_integer_of(struct json *json, struct value_reader map, const char *name) {
    int64_t number = value_find_integer(map, name, INT64_MIN);
    if (number == INT64_MIN) {
        json_null(json, name);
    } else {
        json_integer(json, name, number);
    }
}

static void put_text_of(struct json *json, struct value_reader map, const char *name) {
    put_text_or_null(json, name, value_find_text(map, name));
}

static void put_flag_of(struct json *json, struct value_reader map, const char *name) {
    json_boolean(json, name, value_find_integer(map, name, 0) != 0);
}

static bool find_map(struct value_reader map, const char *name, struct value_reader *found) {
    if (!value_find(map, name, found)) {
        return false;
    }
    struct value_reader at = *found;
    return value_next(&at).kind == VALUE_MAP;
}

/* Whether it can be written to now, and until when. */
static void put_state(struct json *json, struct value_reader board) {
    struct value_reader period;
    bool has_period = find_map(board, "period", &period);
    put_flag_of(json, board, "frozen");
    put_time_of(json, "opens_at", board, "opens");
    put_time_of(json, "closes_at", board, "closes");
    if (has_period) {
        put_time_of(json, "starts_at", period, "start");
        put_time_of(json, "rolls_at", period, "end");
    } else {
        json_null(json, "starts_at");
        json_null(json, "rolls_at");
    }
}

static void put_period(struct json *json, struct value_reader board) {
    struct value_reader period;
    if (!find_map(board, "period", &period)) {
        json_null(json, "period");
        return;
    }
    json_open(json, "period", '{');
    put_text_of(json, period, "unit");
    put_integer_of(json, period, "every");
    put_text_of(json, period, "on");
    put_integer_of(json, period, "at");
    put_text_of(json, period, "tz");
    put_text_of(json, period, "from");
    put_integer_of(json, period, "archive");
    put_text_of(json, period, "archived");
    json_close(json, '}');
}

static void put_archives(struct json *json, struct value_reader board) {
    struct value_reader at;
    json_open(json, "archives", '[');
    struct value list = {.kind = VALUE_NULL};
    if (value_find(board, "archives", &at)) {
        list = value_next(&at);
    }
    for (uint64_t i = 0; list.kind == VALUE_LIST && i < list.count; i++) {
        json_open(json, NULL, '{');
        json_bytes(json, "name", value_next(&at).text);
        json_close(json, '}');
    }
    json_close(json, ']');
}

/* What LB.LIST and LB.INFO have in common. */
static void put_board(struct json *json, const struct web_query *query, struct bytes name,
                      struct value_reader board) {
    json_bytes(json, "name", name);
    json_integer(json, "db", query->database);
    put_integer_of(json, board, "count");
    put_text_of(json, board, "layout");
    put_integer_of(json, board, "cap");
    put_integer_of(json, board, "limit");
    put_text_of(json, board, "keep");
    put_flag_of(json, board, "created");
    put_state(json, board);
    put_period(json, board);
    put_archives(json, board);
}

/* The names of the layout's fields, and how many there are. */
static uint64_t count_fields(struct value_reader board) {
    struct value_reader at;
    return value_find(board, "fields", &at) ? value_next(&at).count : 0;
}

static void put_field_names(struct json *json, struct value_reader board) {
    struct value_reader at;
    json_open(json, "fields", '[');
    if (value_find(board, "fields", &at)) {
        uint64_t count = value_next(&at).count;
        for (uint64_t i = 0; i < count; i++) {
            put_text_or_null(json, NULL, value_find_text(at, "name"));
            value_skip(&at);
        }
    }
    json_close(json, ']');
}

static void put_fields(struct json *json, struct value_reader board) {
    struct value_reader at;
    json_open(json, "fields", '[');
    if (value_find(board, "fields", &at)) {
        uint64_t count = value_next(&at).count;
        for (uint64_t i = 0; i < count; i++) {
            json_open(json, NULL, '{');
            put_text_of(json, at, "name");
            put_integer_of(json, at, "bits");
            put_text_of(json, at, "order");
            put_flag_of(json, at, "signed");
            put_integer_of(json, at, "scale");
            put_text_of(json, at, "lowest");
            put_text_of(json, at, "highest");
            json_close(json, '}');
            value_skip(&at);
        }
    }
    json_close(json, ']');
}

static void put_data_names(struct json *json, const struct web_query *query) {
    json_open(json, "data_fields", '[');
    for (unsigned i = 0; i < query->data_field_count; i++) {
        json_text(json, NULL, query->data_fields[i]);
    }
    json_close(json, ']');
}

/* Fields of the member's hash: an array of values, or null where there is no hash. */
static void put_data(struct json *json, const struct web_query *query,
                     struct value_reader *reader) {
    struct value list = value_next(reader);
    json_open(json, "data", '{');
    for (unsigned i = 0; i < query->data_field_count; i++) {
        struct value value = {.kind = VALUE_NULL};
        if (list.kind == VALUE_LIST && i < list.count) {
            value = value_next(reader);
        }
        json_pair(json, query->data_fields[i],
                  value.kind == VALUE_TEXT ? value.text : (struct bytes){.at = NULL});
    }
    json_close(json, '}');
}

/* A number may come as one, or as its text. */
static void put_number_text(struct json *json, const char *key, struct value value) {
    char text[BYTES_INTEGER_TEXT_MAX];
    if (value.kind == VALUE_INTEGER) {
        size_t size = bytes_print_i64(text, value.number);
        json_text(json, key, (struct bytes){.at = text, .size = size});
    } else {
        json_text(json, key, value.text);
    }
}

/* A record, which is not null: [member, rank, time, fields ..., percentage, data]. percent: where its value
 * goes; NULL: it has none. */
static void put_record(struct json *json, const struct web_query *query, const char *key,
                       uint64_t field_count, struct value_reader *reader, struct value *percent) {
    (void)value_next(reader);
    json_open(json, key, '{');
    struct bytes member = value_next(reader).text;
    json_integer(json, "rank", value_next(reader).number);
    json_bytes(json, "member", member);
    struct value time = value_next(reader);
    struct value_reader fields = *reader;
    if (field_count > 0) {
        put_number_text(json, "score", value_next(&fields));
    }
    json_open(json, "fields", '[');
    for (uint64_t i = 0; i < field_count; i++) {
        put_number_text(json, NULL, value_next(reader));
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
    if (query->data_pattern.at != NULL) {
        put_data(json, query, reader);
    }
    json_close(json, '}');
}

/* An array of records, of which some may be null. */
static void put_rows(struct json *json, const struct web_query *query, const char *key,
                     uint64_t field_count, struct value_reader reader) {
    struct value list = value_next(&reader);
    json_open(json, key, '[');
    for (uint64_t i = 0; list.kind == VALUE_LIST && i < list.count; i++) {
        struct value_reader at = reader;
        if (value_next(&at).kind == VALUE_NULL) {
            reader = at;
        } else {
            put_record(json, query, NULL, field_count, &reader, NULL);
        }
    }
    json_close(json, ']');
}

static void begin_reply(struct web_query *query) {
    json_open(&query->json, NULL, '{');
    json_bytes(&query->json, "board", query->board);
    json_integer(&query->json, "db", query->database);
}

static bool end_reply(struct web_query *query) {
    json_close(&query->json, '}');
    return false;
}

/* ---- a cursor: "0", or the part and the cursor within it ---- */

static bool read_cursor(struct web_query *query) {
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
            bytes_parse_u64(rest, &query->cursor)) {
            query->cursor_part = (unsigned)part;
            return true;
        }
    }
    web_error(query, 400, "bad_request", "cursor is 0, or what the reply before has given");
    return false;
}

static void put_cursor(struct web_query *query, bool is_over) {
    char text[64];
    snprintf(text, sizeof text, is_over ? "0" : "%u.%llu", query->cursor_part,
             (unsigned long long)query->cursor);
    json_text(&query->json, "cursor", bytes_from_text(text));
}

/* ---- the list ---- */

/* The boards that earlier rounds have found lie in query->kept, one map behind the other. */
static bool find_kept(const struct web_query *query, struct bytes name,
                      struct value_reader *found) {
    struct value_reader at = {.at = query->kept.at, .end = query->kept.at + query->kept.size};
    while (at.at < at.end) {
        if (bytes_equal(value_find_text(at, "name"), name)) {
            *found = at;
            return true;
        }
        value_skip(&at);
    }
    return false;
}

static bool ask_list(struct web_query *query) {
    if (query->round == 0 && (!read_cursor(query) || !web_number(query, "count", 1, LIST_MAX,
                                                                 LIST_MAX / 2, &query->count))) {
        return false;
    }
    struct bytes match = http_target_find(&query->target, "match");
    if (match.size > GLOB_PATTERN_MAX) {
        web_error(query, 400, "bad_request", "match is too long: at most %d bytes",
                  GLOB_PATTERN_MAX);
        return false;
    }
    query->scan_size_max = LIST_REPLY_MAX;
    web_command(query, "LB.LIST");
    web_word_text(query, "MATCH");
    query->pattern_word = query->word_count;
    web_word_text(query, "*"); /* the engine puts in one of the user's */
    web_word_text(query, "COUNT");
    web_word_integer(query, 50);
    web_word_text(query, "CURSOR");
    query->cursor_word = query->word_count;
    char text[BYTES_INTEGER_TEXT_MAX];
    size_t size = bytes_print_u64(text, query->cursor);
    web_word(query, web_word_copy(query, (struct bytes){.at = text, .size = size}));
    return true;
}

static void keep_boards(struct web_query *query, struct value_reader reader) {
    struct bytes match = http_target_find(&query->target, "match");
    struct value list = value_next(&reader);
    for (uint64_t i = 0; i < list.count; i++) {
        struct value_reader begin = reader;
        struct value_reader twin;
        struct bytes name = value_find_text(reader, "name");
        value_skip(&reader);
        if ((match.size == 0 || glob_matches(match, name)) && !find_kept(query, name, &twin)) {
            buffer_append(&query->kept, begin.at, (size_t)(reader.at - begin.at));
            query->more++;
        }
    }
}

/* Of "daily@2026-11-21" the board daily, if that names it. */
static void put_archive_of(struct web_query *query, struct bytes name) {
    struct bytes base = name;
    struct value_reader board;
    struct value_reader at;
    while (base.size > 0 && base.at[base.size - 1] != '@') {
        base.size--;
    }
    base.size -= base.size > 0;
    if (base.size > 0 && find_kept(query, base, &board) && value_find(board, "archives", &at)) {
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

static bool print_list(struct web_query *query) {
    bool is_refused = web_reply_is_error(query, 0);
    if (is_refused && query->cursor_part + 1 >= query->pattern_count && query->more == 0 &&
        !query->has_listed) {
        return false;
    }
    buffer_clear(&query->out);
    query->status = 200;
    query->json = (struct json){.out = &query->out};
    query->has_listed |= !is_refused;
    for (unsigned i = 0; i < query->reply_count && !is_refused; i++) {
        struct value_reader reader = web_reply(query, i);
        (void)value_next(&reader);
        struct value cursor = value_next(&reader);
        bool is_number = bytes_parse_u64(cursor.text, &query->cursor);
        CHECK(is_number);
        keep_boards(query, reader);
    }
    if (is_refused || query->cursor == 0) {
        query->cursor = 0;
        query->cursor_part++;
    }
    bool is_over = query->cursor_part >= query->pattern_count;
    if (!is_over && query->more < query->count && query->round < LIST_ROUNDS_MAX) {
        return true;
    }
    struct value_reader at = {.at = query->kept.at, .end = query->kept.at + query->kept.size};
    json_open(&query->json, NULL, '{');
    json_open(&query->json, "boards", '[');
    while (at.at < at.end) {
        struct bytes name = value_find_text(at, "name");
        json_open(&query->json, NULL, '{');
        put_board(&query->json, query, name, at);
        put_archive_of(query, name);
        json_close(&query->json, '}');
        value_skip(&at);
    }
    json_close(&query->json, ']');
    put_cursor(query, is_over);
    return end_reply(query);
}

const struct web_route web_route_list = {.name = "boards", .ask = ask_list, .print = print_list};

/* ---- one board ---- */

static bool ask_board(struct web_query *query) {
    web_command(query, "LB.INFO");
    web_word(query, query->board);
    return true;
}

static bool print_board(struct web_query *query) {
    struct json *json = &query->json;
    struct value_reader time;
    if (web_reply_is_error(query, 0)) {
        return false;
    }
    struct value_reader board = web_reply(query, 0);
    json_open(json, NULL, '{');
    put_board(json, query, query->board, board);
    put_integer_of(json, board, "bits");
    put_integer_of(json, board, "memory");
    put_fields(json, board);
    if (find_map(board, "time", &time)) {
        json_open(json, "time", '{');
        put_text_of(json, time, "unit");
        put_integer_of(json, time, "bits");
        put_text_of(json, time, "order");
        json_close(json, '}');
    } else {
        json_null(json, "time");
    }
    put_data_names(json, query);
    return end_reply(query);
}

const struct web_route web_route_board = {.name = "board", .ask = ask_board, .print = print_board};

/* ---- a page ---- */

static bool ask_page(struct web_query *query) {
    if (!web_number(query, "from", 0, UINT32_MAX, 0, &query->from) ||
        !web_number(query, "count", 1, WEB_ROWS_MAX, COUNT_DEFAULT, &query->count)) {
        return false;
    }
    web_command(query, "LB.INFO");
    web_word(query, query->board);
    web_command(query, "LB.RANGE");
    web_word(query, query->board);
    web_word_integer(query, query->from);
    web_word_integer(query, query->from + query->count - 1);
    web_words_of_data(query);
    return true;
}

static bool print_page(struct web_query *query) {
    struct json *json = &query->json;
    if (web_reply_is_error(query, 0) || web_reply_is_error(query, 1)) {
        return false;
    }
    struct value_reader board = web_reply(query, 0);
    begin_reply(query);
    put_integer_of(json, board, "count");
    json_integer(json, "from", query->from);
    put_field_names(json, board);
    put_data_names(json, query);
    put_state(json, board);
    put_rows(json, query, "rows", count_fields(board), web_reply(query, 1));
    return end_reply(query);
}

const struct web_route web_route_page = {.name = "page", .ask = ask_page, .print = print_page};

/* ---- a member ---- */

static bool ask_member(struct web_query *query) {
    web_command(query, "LB.INFO");
    web_word(query, query->board);
    web_command(query, "LB.GET");
    web_word(query, query->board);
    web_word_text(query, "1");
    web_word(query, query->member);
    web_word_text(query, "PCT");
    web_words_of_data(query);
    web_command(query, "LB.AROUND");
    web_word(query, query->board);
    web_word_text(query, "MEMBER");
    web_word(query, query->member);
    web_word_integer(query, AROUND);
    web_words_of_data(query);
    return true;
}

static bool print_member(struct web_query *query) {
    struct json *json = &query->json;
    struct value percent = {.kind = VALUE_NULL};
    for (unsigned i = 0; i < query->reply_count; i++) {
        if (web_reply_is_error(query, i)) {
            return false;
        }
    }
    struct value_reader board = web_reply(query, 0);
    struct value_reader record = web_reply(query, 1);
    (void)value_next(&record);
    struct value_reader first = record;
    if (value_next(&first).kind == VALUE_NULL) {
        web_error(query, 404, "not_found", "this member is not on the board");
        return false;
    }
    begin_reply(query);
    put_integer_of(json, board, "count");
    json_bytes(json, "member", query->member);
    (void)value_next(&first); /* the member */
    json_integer(json, "rank", value_next(&first).number);
    put_field_names(json, board);
    put_data_names(json, query);
    put_record(json, query, "row", count_fields(board), &record, &percent);
    put_number_text(json, "percentile", percent);
    put_rows(json, query, "around", count_fields(board), web_reply(query, 2));
    return end_reply(query);
}

const struct web_route web_route_member = {
    .name = "member", .ask = ask_member, .print = print_member};

/* ---- searching ---- */

/* Rounds: scan, until enough members are in query->kept as bulks; then their records. */
static void ask_records(struct web_query *query) {
    struct value_reader at = {.at = query->kept.at, .end = query->kept.at + query->kept.size};
    web_command(query, "LB.INFO");
    web_word(query, query->board);
    if (query->more == 0) {
        return;
    }
    web_command(query, "LB.GET");
    web_word(query, query->board);
    web_word_integer(query, query->more);
    for (unsigned i = 0; i < query->more; i++) {
        web_word(query, value_next(&at).text);
    }
    web_words_of_data(query);
}

static struct bytes prefix_pattern(struct web_query *query, struct bytes prefix) {
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

static bool ask_search(struct web_query *query) {
    struct bytes prefix = http_target_find(&query->target, "q");
    if (query->round == 0) {
        if (!read_cursor(query) ||
            !web_number(query, "count", 1, SEARCH_MAX, SEARCH_MAX / 2, &query->count)) {
            return false;
        }
        if (prefix.size == 0 || prefix.size > SEARCH_SIZE_MAX) {
            web_error(query, 400, "bad_request", "q is what members begin with: 1 to %d bytes",
                      SEARCH_SIZE_MAX);
            return false;
        }
    }
    query->cursor_word = 0;
    if (query->is_scan_over) {
        ask_records(query);
        return true;
    }
    char text[BYTES_INTEGER_TEXT_MAX];
    size_t size = bytes_print_u64(text, query->cursor);
    web_command(query, "ZSCAN");
    web_word(query, query->board);
    query->cursor_word = query->word_count;
    web_word(query, web_word_copy(query, (struct bytes){.at = text, .size = size}));
    web_word_text(query, "MATCH");
    web_word(query, prefix_pattern(query, prefix));
    web_word_text(query, "COUNT");
    web_word_integer(query, SEARCH_STEP);
    query->scan_size_max = SEARCH_REPLY_MAX;
    if (query->round == 0 && query->cursor == 0) {
        /* The member itself comes first, however large the board is. */
        char head[64];
        int head_size = snprintf(head, sizeof head, "$%zu\r\n", prefix.size);
        buffer_append(&query->kept, head, (size_t)head_size);
        buffer_append(&query->kept, prefix.at, prefix.size);
        buffer_append(&query->kept, "\r\n", 2);
        query->more = 1;
    }
    return true;
}

static void keep_members(struct web_query *query, struct value_reader reader) {
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

static bool print_search(struct web_query *query) {
    struct json *json = &query->json;
    if (web_reply_is_error(query, 0)) {
        return false;
    }
    if (!query->is_scan_over) {
        for (unsigned i = 0; i < query->reply_count; i++) {
            struct value_reader reader = web_reply(query, i);
            (void)value_next(&reader);
            bool is_number = bytes_parse_u64(value_next(&reader).text, &query->cursor);
            CHECK(is_number);
            keep_members(query, reader);
        }
        query->is_scan_over =
            query->cursor == 0 || query->more >= query->count || query->round >= SEARCH_ROUNDS_MAX;
        return true;
    }
    struct value_reader board = web_reply(query, 0);
    begin_reply(query);
    put_integer_of(json, board, "count");
    put_field_names(json, board);
    put_data_names(json, query);
    if (query->reply_count > 1) {
        if (web_reply_is_error(query, 1)) {
            return false;
        }
        put_rows(json, query, "rows", count_fields(board), web_reply(query, 1));
    } else {
        json_open(json, "rows", '[');
        json_close(json, ']');
    }
    put_cursor(query, query->cursor == 0);
    return end_reply(query);
}

const struct web_route web_route_search = {
    .name = "search", .ask = ask_search, .print = print_search};

/* ---- a histogram ---- */

static const char *const quantiles[] = {"0",    "0.01", "0.05", "0.1",  "0.25", "0.5",
                                        "0.75", "0.9",  "0.95", "0.99", "1"};
enum { QUANTILES = sizeof quantiles / sizeof quantiles[0] };

/* Rounds: the quantiles, whose ends are kept as bulks; then the bins between them. */
struct bins {
    wide lowest, highest; /* in units of the scale */
    unsigned scale;
    int64_t count;
};

static bool parse_units(struct bytes text, unsigned scale, wide *units) {
    struct decimal value;
    if (decimal_parse(text, scale, &value) != DECIMAL_OK) {
        return false;
    }
    *units = value.is_negative ? -(wide)value.magnitude : (wide)value.magnitude;
    return true;
}

static size_t print_units(wide units, unsigned scale, char *out) {
    struct decimal value = {.is_negative = units < 0,
                            .magnitude = (uint64_t)(units < 0 ? -units : units)};
    return decimal_print(out, value, scale);
}

/* Where bin i begins. */
static wide edge(const struct bins *bins, int64_t i) {
    return bins->lowest + (bins->highest - bins->lowest + 1) * i / bins->count;
}

static bool read_bins(const struct web_query *query, struct bins *bins) {
    struct value_reader at = {.at = query->kept.at, .end = query->kept.at + query->kept.size};
    if (query->kept.size == 0) {
        return false;
    }
    bins->scale = (unsigned)value_next(&at).number;
    if (!parse_units(value_next(&at).text, bins->scale, &bins->lowest) ||
        !parse_units(value_next(&at).text, bins->scale, &bins->highest)) {
        return false;
    }
    if (bins->lowest > bins->highest) {
        wide lowest = bins->highest;
        bins->highest = bins->lowest;
        bins->lowest = lowest;
    }
    wide width = bins->highest - bins->lowest + 1;
    bins->count = width < query->count ? (int64_t)width : query->count;
    return true;
}

static bool ask_histogram(struct web_query *query) {
    struct bins bins;
    if (!web_number(query, "buckets", 1, BINS_MAX, BINS_DEFAULT, &query->count)) {
        return false;
    }
    web_command(query, "LB.INFO");
    web_word(query, query->board);
    web_command(query, "LB.QUANTILE");
    web_word(query, query->board);
    for (unsigned i = 0; i < QUANTILES; i++) {
        web_word_text(query, quantiles[i]);
    }
    if (query->round == 0 || !read_bins(query, &bins)) {
        return true;
    }
    web_command(query, "LB.HIST");
    web_word(query, query->board);
    for (int64_t i = bins.count > 1 ? 1 : 0; i < bins.count; i++) {
        char text[DECIMAL_TEXT_MAX];
        size_t size = print_units(edge(&bins, i), bins.scale, text);
        web_word(query, web_word_copy(query, (struct bytes){.at = text, .size = size}));
    }
    return true;
}

static void keep_bulk(struct web_query *query, struct bytes text) {
    char head[64];
    int size = snprintf(head, sizeof head, "$%zu\r\n", text.size);
    buffer_append(&query->kept, head, (size_t)size);
    buffer_append(&query->kept, text.at, text.size);
    buffer_append(&query->kept, "\r\n", 2);
}

/* The lead field of a record, as text. */
static struct bytes lead_of(struct value_reader record, char *text) {
    struct value list = value_next(&record);
    if (list.kind != VALUE_LIST) {
        return (struct bytes){.at = NULL};
    }
    for (int i = 0; i < 3; i++) {
        value_skip(&record);
    }
    struct value lead = value_next(&record);
    if (lead.kind == VALUE_INTEGER) {
        return (struct bytes){.at = text, .size = bytes_print_i64(text, lead.number)};
    }
    return lead.text;
}

/* Keep the scale and both ends. */
static void keep_ends(struct web_query *query) {
    struct value_reader fields;
    char text[BYTES_INTEGER_TEXT_MAX];
    char line[32];
    struct value_reader reader = web_reply(query, 1);
    struct value list = value_next(&reader);
    if (!value_find(web_reply(query, 0), "fields", &fields) || list.count < QUANTILES) {
        return;
    }
    (void)value_next(&fields);
    int size =
        snprintf(line, sizeof line, ":%lld\r\n", (long long)value_find_integer(fields, "scale", 0));
    for (unsigned i = 0; i < QUANTILES; i++) {
        struct bytes lead = lead_of(reader, text);
        if (lead.at == NULL) {
            return;
        }
        if (i == 0) {
            buffer_append(&query->kept, line, (size_t)size);
        }
        if (i == 0 || i == QUANTILES - 1) {
            keep_bulk(query, lead);
        }
        value_skip(&reader);
    }
}

static void put_bins(struct web_query *query, const struct bins *bins) {
    struct value_reader reader = web_reply(query, 2);
    char text[DECIMAL_TEXT_MAX];
    struct value list = value_next(&reader);
    if (bins->count == 1) {
        value_skip(&reader); /* below the only edge: nobody */
    }
    for (int64_t i = 0; i < bins->count && list.kind == VALUE_LIST; i++) {
        wide end = i + 1 < bins->count ? edge(bins, i + 1) : bins->highest;
        json_open(&query->json, NULL, '{');
        size_t size = print_units(edge(bins, i), bins->scale, text);
        json_text(&query->json, "from", (struct bytes){.at = text, .size = size});
        size = print_units(end, bins->scale, text);
        json_text(&query->json, "to", (struct bytes){.at = text, .size = size});
        json_integer(&query->json, "count", value_next(&reader).number);
        json_close(&query->json, '}');
    }
}

static void put_quantiles(struct web_query *query, struct value_reader reader) {
    struct json *json = &query->json;
    struct value list = value_next(&reader);
    json_open(json, "quantiles", '[');
    for (uint64_t i = 0; i < list.count && i < QUANTILES; i++) {
        struct value_reader record = reader;
        value_skip(&reader);
        if (value_next(&record).kind != VALUE_LIST) {
            continue;
        }
        json_open(json, NULL, '{');
        json_text(json, "q", bytes_from_text(quantiles[i]));
        json_bytes(json, "member", value_next(&record).text);
        json_integer(json, "rank", value_next(&record).number);
        value_skip(&record);
        put_number_text(json, "score", value_next(&record));
        json_close(json, '}');
    }
    json_close(json, ']');
}

static bool print_histogram(struct web_query *query) {
    struct json *json = &query->json;
    struct value_reader fields;
    struct bins bins;
    for (unsigned i = 0; i < query->reply_count; i++) {
        if (web_reply_is_error(query, i)) {
            return false;
        }
    }
    if (query->round == 0) {
        keep_ends(query);
        return true;
    }
    struct value_reader board = web_reply(query, 0);
    begin_reply(query);
    put_integer_of(json, board, "count");
    if (value_find(board, "fields", &fields)) {
        (void)value_next(&fields);
        json_text(json, "field", value_find_text(fields, "name"));
        json_text(json, "order", value_find_text(fields, "order"));
    }
    json_open(json, "bins", '[');
    if (query->reply_count > 2 && read_bins(query, &bins)) {
        put_bins(query, &bins);
    }
    json_close(json, ']');
    put_quantiles(query, web_reply(query, 1));
    return end_reply(query);
}

const struct web_route web_route_histogram = {
    .name = "histogram", .ask = ask_histogram, .print = print_histogram};

/* ---- the last periods ---- */

/* Rounds: the archives' names, kept as bulks; then each of them. */
static bool ask_archives(struct web_query *query) {
    struct value_reader at = {.at = query->kept.at, .end = query->kept.at + query->kept.size};
    if (!web_number(query, "count", 1, ARCHIVE_ROWS_MAX, 10, &query->count)) {
        return false;
    }
    if (query->round == 0) {
        return ask_board(query);
    }
    while (at.at < at.end) {
        struct bytes name = value_next(&at).text;
        web_command(query, "LB.INFO");
        web_word(query, name);
        web_command(query, "LB.RANGE");
        web_word(query, name);
        web_word_text(query, "0");
        web_word_integer(query, query->count - 1);
        web_words_of_data(query);
    }
    return true;
}

static bool print_archives(struct web_query *query) {
    struct json *json = &query->json;
    struct value_reader at;
    if (query->round == 0) {
        if (web_reply_is_error(query, 0)) {
            return false;
        }
        struct value list = {.kind = VALUE_NULL};
        if (value_find(web_reply(query, 0), "archives", &at)) {
            list = value_next(&at);
        }
        for (uint64_t i = 0; list.kind == VALUE_LIST && i < list.count && i < ARCHIVES_MAX; i++) {
            keep_bulk(query, value_next(&at).text);
        }
        return true;
    }
    begin_reply(query);
    json_open(json, "archives", '[');
    at = (struct value_reader){.at = query->kept.at, .end = query->kept.at + query->kept.size};
    for (unsigned i = 0; at.at < at.end; i += 2) {
        struct bytes name = value_next(&at).text;
        struct value_reader board = web_reply(query, i);
        struct value_reader first = board;
        if (value_next(&first).kind != VALUE_MAP) {
            continue; /* it is gone meanwhile, or not this user's */
        }
        json_open(json, NULL, '{');
        json_bytes(json, "name", name);
        put_integer_of(json, board, "count");
        put_field_names(json, board);
        put_rows(json, query, "rows", count_fields(board), web_reply(query, i + 1));
        json_close(json, '}');
    }
    json_close(json, ']');
    put_data_names(json, query);
    return end_reply(query);
}

const struct web_route web_route_archives = {
    .name = "archives", .ask = ask_archives, .print = print_archives};
