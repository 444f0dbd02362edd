/* How the scores of a board are spread, and its last periods beside each other. */
#include <stdio.h>

#include "codec/decimal.h"
#include "codec/wide.h"
#include "server/web/web_query.h"

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

/* Rounds: the quantiles, of which three are kept as bulks; then the bins between the ends. */
struct bins {
    wide lowest, highest; /* in units of the scale */
    wide upper; /* nine tenths of the members are below, whichever way the board is ordered */
    unsigned scale;
    int64_t count;
    wide edges[BINS_MAX]; /* where each begins */
    bool is_log;
};

static bool web_spread_parse_units(struct bytes text, unsigned scale, wide *units) {
    struct decimal value;
    if (decimal_parse(text, scale, &value) != DECIMAL_OK) {
        return false;
    }
    *units = value.is_negative ? -(wide)value.magnitude : (wide)value.magnitude;
    return true;
}

static size_t web_spread_print_units(wide units, unsigned scale, char *out) {
    struct decimal value = {.is_negative = units < 0,
                            .magnitude = (uint64_t)(units < 0 ? -units : units)};
    return decimal_print(out, value, scale);
}

/* ---- where bins begin ---- */

static void web_spread_add_edge(struct bins *bins, wide edge, int64_t count_max) {
    if (edge > bins->lowest && edge <= bins->highest) {
        if (bins->count < count_max) {
            bins->edges[bins->count] = edge;
        }
        bins->count++;
    }
}

/* At -5 -2 -1 0 1 2 5 10 20 50 ..., with a step of 1 in a decade at -1 0 1 10 100 ... false: these are too many. */
static bool web_spread_place_by_decades(struct bins *bins, unsigned steps, int64_t count_max) {
    enum { DECADES = 20 };
    static const unsigned digits[] = {1, 2, 5};
    wide powers[DECADES] = {1};
    for (unsigned i = 1; i < DECADES; i++) {
        powers[i] = powers[i - 1] * 10;
    }
    bins->is_log = true;
    bins->edges[0] = bins->lowest;
    bins->count = 1;
    for (unsigned i = DECADES * steps; i > 0; i--) {
        web_spread_add_edge(bins, -powers[(i - 1) / steps] * digits[(i - 1) % steps], count_max);
    }
    web_spread_add_edge(bins, 0, count_max);
    for (unsigned i = 0; i < DECADES * steps; i++) {
        web_spread_add_edge(bins, powers[i / steps] * digits[i % steps], count_max);
    }
    return bins->count <= count_max;
}

/* Nine tenths of the members in a tenth of the range: even bins would show one bar. */
static bool web_spread_is_skewed(const struct bins *bins) {
    return (bins->upper - bins->lowest) * 10 < bins->highest - bins->lowest;
}

/* false: the error was written. */
static bool web_spread_place(struct web_query *query, struct bins *bins) {
    struct bytes spacing = http_target_find(&query->target, "spacing");
    bool is_auto = bytes_equal(spacing, BYTES("auto"));
    bool is_log = bytes_equal(spacing, BYTES("log"));
    if (spacing.at != NULL && !is_auto && !is_log && !bytes_equal(spacing, BYTES("even"))) {
        web_error(query, 400, "spacing is even, log or auto");
        return false;
    }
    if (!(is_log || (is_auto && web_spread_is_skewed(bins))) ||
        !(web_spread_place_by_decades(bins, 3, query->count) ||
          web_spread_place_by_decades(bins, 1, query->count))) {
        wide width = bins->highest - bins->lowest + 1;
        bins->is_log = false;
        bins->count = width < query->count ? (int64_t)width : query->count;
        for (int64_t i = 0; i < bins->count; i++) {
            bins->edges[i] = bins->lowest + width * i / bins->count;
        }
    }
    return true;
}

/* ---- rounds ---- */

/* false: the board was empty. */
static bool web_spread_read_ends(const struct web_query *query, struct bins *bins) {
    struct value_reader at = web_kept(query);
    wide ends[3];
    if (query->kept.size == 0) {
        return false;
    }
    bins->scale = (unsigned)value_next(&at).number;
    for (unsigned i = 0; i < 3; i++) {
        if (!web_spread_parse_units(value_next(&at).text, bins->scale, &ends[i])) {
            return false;
        }
    }
    bool is_rising = ends[0] <= ends[2];
    bins->lowest = is_rising ? ends[0] : ends[2];
    bins->highest = is_rising ? ends[2] : ends[0];
    bins->upper = ends[1];
    return true;
}

static bool web_spread_ask_histogram(struct web_query *query) {
    struct bins bins = {.lowest = 0};
    if (!web_number(query, "buckets", 1, BINS_MAX, BINS_DEFAULT, &query->count)) {
        return false;
    }
    bool has_ends = web_spread_read_ends(query, &bins);
    if (!web_spread_place(query, &bins)) {
        return false;
    }
    web_command(query, "LB.INFO $board");
    web_command(query, "LB.QUANTILE $board");
    for (unsigned i = 0; i < QUANTILES; i++) {
        web_word(query, bytes_from_text(quantiles[i]));
    }
    web_words(query, "$where $data");
    if (query->round > 0 && has_ends) {
        web_command(query, "LB.HIST $board");
        for (int64_t i = bins.count > 1 ? 1 : 0; i < bins.count; i++) {
            char text[DECIMAL_TEXT_MAX];
            size_t size = web_spread_print_units(bins.edges[i], bins.scale, text);
            web_word(query, web_word_copy(query, (struct bytes){.at = text, .size = size}));
        }
        web_words(query, "$where");
    }
    web_ask_count(query);
    return true;
}

/* The lead field of a record, as text. */
static struct bytes web_spread_lead_of(struct value_reader record, char *text) {
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

/* Keep the scale, both ends, and the upper tenth's end between them. */
static void web_spread_keep_ends(struct web_query *query) {
    struct value_reader fields;
    char text[BYTES_INTEGER_TEXT_MAX];
    char line[32];
    struct value_reader reader = web_reply(query, 1);
    struct value list = value_next(&reader);
    if (value_find_list(web_reply(query, 0), "fields", &fields) == 0 || list.count < QUANTILES) {
        return;
    }
    bool is_ascending = bytes_equal(value_find_text(fields, "order"), BYTES("asc"));
    const char *upper = is_ascending ? "0.1" : "0.9";
    int size =
        snprintf(line, sizeof line, ":%lld\r\n", (long long)value_find_integer(fields, "scale", 0));
    for (unsigned i = 0; i < QUANTILES; i++) {
        struct bytes lead = web_spread_lead_of(reader, text);
        if (lead.at == NULL) {
            buffer_clear(&query->kept);
            return;
        }
        if (i == 0) {
            buffer_append(&query->kept, line, (size_t)size);
        }
        if (i == 0 || i == QUANTILES - 1 || strcmp(quantiles[i], upper) == 0) {
            web_keep_bulk(query, lead);
        }
        value_skip(&reader);
    }
}

static void web_spread_put_bins(struct web_query *query, const struct bins *bins) {
    struct value_reader reader = web_reply(query, 2);
    char text[DECIMAL_TEXT_MAX];
    struct value list = value_next(&reader);
    if (bins->count == 1) {
        value_skip(&reader); /* below the only edge: nobody */
    }
    for (int64_t i = 0; i < bins->count && list.kind == VALUE_LIST; i++) {
        wide end = i + 1 < bins->count ? bins->edges[i + 1] : bins->highest;
        json_open(&query->json, NULL, '{');
        size_t size = web_spread_print_units(bins->edges[i], bins->scale, text);
        json_text(&query->json, "from", (struct bytes){.at = text, .size = size});
        size = web_spread_print_units(end, bins->scale, text);
        json_text(&query->json, "to", (struct bytes){.at = text, .size = size});
        json_integer(&query->json, "count", value_next(&reader).number);
        json_close(&query->json, '}');
    }
}

static void web_spread_put_quantiles(struct web_query *query, uint64_t field_count,
                                     struct value_reader reader) {
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
        for (uint64_t k = 1; k < field_count; k++) {
            value_skip(&record);
        }
        web_put_data(json, query, &record);
        json_close(json, '}');
    }
    json_close(json, ']');
}

static bool web_spread_print_histogram(struct web_query *query) {
    struct json *json = &query->json;
    struct value_reader fields;
    struct bins bins;
    if (web_replies_have_error(query)) {
        return false;
    }
    if (query->round == 0) {
        web_spread_keep_ends(query);
        return true;
    }
    struct value_reader board = web_reply(query, 0);
    web_begin_reply(query, &board);
    if (value_find_list(board, "fields", &fields) > 0) {
        json_text(json, "field", value_find_text(fields, "name"));
        json_text(json, "order", value_find_text(fields, "order"));
    }
    bool has_bins = web_own_replies(query) > 2 && web_spread_read_ends(query, &bins) &&
                    web_spread_place(query, &bins);
    json_text(json, "spacing", has_bins && bins.is_log ? BYTES("log") : BYTES("even"));
    json_open(json, "bins", '[');
    if (has_bins) {
        web_spread_put_bins(query, &bins);
    }
    json_close(json, ']');
    web_put_data_names(json, query);
    web_spread_put_quantiles(query, web_count_fields(board), web_reply(query, 1));
    return web_end_reply(query);
}

const struct web_route web_route_histogram = {.ask = web_spread_ask_histogram,
                                              .print = web_spread_print_histogram};

/* ---- the last periods ---- */

/* Rounds: the archives' names, kept as bulks; then as many of them as fit into a round, which are printed at once. */
static int64_t web_spread_archives_a_round(const struct web_query *query) {
    unsigned filter_words = 3 * query->where_count;
    unsigned words = 2 + 5 + filter_words + 3 + query->data.count;
    unsigned commands = 2;
    if (query->where_count > 0) {
        words += 2 + filter_words;
        commands++;
    }
    unsigned by_words = WEB_WORDS_MAX / words;
    unsigned by_commands = WEB_COMMANDS_MAX / commands;
    return by_words < by_commands ? by_words : by_commands;
}

static void web_spread_ask_archive(struct web_query *query, struct bytes name) {
    web_command(query, "LB.INFO $", name);
    web_command(query, "LB.RANGE $ 0 # $where $tags $data", name, query->count - 1);
    if (query->where_count > 0) {
        web_command(query, "LB.COUNT $ $where", name);
    }
}

static bool web_spread_ask_archives(struct web_query *query) {
    if (!web_number(query, "count", 1, ARCHIVE_ROWS_MAX, ARCHIVE_ROWS_DEFAULT, &query->count)) {
        return false;
    }
    if (query->round == 0) {
        web_command(query, "LB.INFO $board");
        web_ask_count(query);
        return true;
    }
    struct value_reader at = web_kept_behind(query, query->more);
    for (int64_t i = web_spread_archives_a_round(query); i > 0 && at.at < at.end; i--) {
        web_spread_ask_archive(query, value_next(&at).text);
    }
    return true;
}

static void web_spread_keep_archives(struct web_query *query) {
    struct value_reader at;
    uint64_t count = value_find_list(web_reply(query, 0), "archives", &at);
    for (uint64_t i = 0; i < count && i < ARCHIVES_MAX; i++) {
        web_keep_bulk(query, value_next(&at).text);
    }
}

/* Those of an archive begin with the nth reply. One without such a tag has nobody in the group. */
static void web_spread_put_archive(struct web_query *query, struct bytes name, unsigned nth) {
    struct json *json = &query->json;
    struct value_reader board = web_reply(query, nth);
    struct value_reader first = board;
    if (value_next(&first).kind != VALUE_MAP) {
        return; /* it is gone meanwhile, or not this user's */
    }
    json_open(json, NULL, '{');
    json_bytes(json, "name", name);
    if (query->where_count > 0) {
        struct value_reader count = web_reply(query, nth + 2);
        json_integer(json, "count", value_next(&count).number);
    } else {
        json_integer(json, "count", value_find_integer(board, "count", 0));
    }
    web_put_field_names(json, board);
    web_put_rows(json, query, "rows", web_count_fields(board), web_reply(query, nth + 1));
    json_close(json, '}');
}

static bool web_spread_print_archives(struct web_query *query) {
    struct json *json = &query->json;
    if (query->round == 0) {
        if (web_replies_have_error(query)) {
            return false;
        }
        web_spread_keep_archives(query);
        web_begin_reply(query, NULL);
        json_open(json, "archives", '[');
        return true;
    }
    struct value_reader at = web_kept_behind(query, query->more);
    unsigned step = query->where_count > 0 ? 3 : 2;
    for (unsigned i = 0; i < query->reply_count; i += step) {
        web_spread_put_archive(query, value_next(&at).text, i);
        query->more++;
    }
    if (at.at < at.end) {
        return true;
    }
    json_close(json, ']');
    web_put_data_names(json, query);
    return web_end_reply(query);
}

const struct web_route web_route_archives = {.ask = web_spread_ask_archives,
                                             .print = web_spread_print_archives};
