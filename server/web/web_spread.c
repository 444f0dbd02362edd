/* How the scores of a board are spread, and its last periods beside each other. */
#include <stdio.h>

#include "codec/decimal.h"
#include "codec/wide.h"
#include "server/web/web_rows.h"

enum {
    BINS_DEFAULT = 20,
    BINS_MAX = 100,
    ARCHIVES_MAX = 16, /* LB.INFO names no more */
    ARCHIVE_ROWS_DEFAULT = 10,
    ARCHIVE_ROWS_MAX = 50,
};

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
            web_keep_bulk(query, lead);
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
        web_put_number_text(json, "score", value_next(&record));
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
    web_begin_reply(query);
    web_put_integer_of(json, board, "count");
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
    return web_end_reply(query);
}

const struct web_route web_route_histogram = {
    .name = "histogram", .ask = ask_histogram, .print = print_histogram};

/* ---- the last periods ---- */

/* Rounds: the archives' names, kept as bulks; then each of them. */
static bool ask_archives(struct web_query *query) {
    struct value_reader at = {.at = query->kept.at, .end = query->kept.at + query->kept.size};
    if (!web_number(query, "count", 1, ARCHIVE_ROWS_MAX, ARCHIVE_ROWS_DEFAULT, &query->count)) {
        return false;
    }
    if (query->round == 0) {
        web_command(query, "LB.INFO");
        web_word(query, query->board);
        return true;
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
            web_keep_bulk(query, value_next(&at).text);
        }
        return true;
    }
    web_begin_reply(query);
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
        web_put_integer_of(json, board, "count");
        web_put_field_names(json, board);
        web_put_rows(json, query, "rows", web_count_fields(board), web_reply(query, i + 1));
        json_close(json, '}');
    }
    json_close(json, ']');
    web_put_data_names(json, query);
    return web_end_reply(query);
}

const struct web_route web_route_archives = {
    .name = "archives", .ask = ask_archives, .print = print_archives};
