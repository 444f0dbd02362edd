/* Routes of boards: the list, one of them, a page of it, one member, looking for members, how scores are spread, and
 * the last periods. docs/web.md says what they look like. */
#include <stdio.h>

#include "codec/decimal.h"
#include "codec/glob.h"
#include "server/web/web_query.h"
#include "skiplist/keyspace/registry.h"

/* ---- a cursor: "0", or the part and the cursor within it ---- */

/* A cursor is "0", or a part and the cursor within it: "1.1234". false: the error was written. */
static bool web_boards_read_cursor(struct web_query *query) {
    struct bytes text = http_request_parameter(&query->target, "cursor");
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
    web_query_error(query, 400, "cursor is 0, or what the reply before has given");
    return false;
}

static void web_boards_put_cursor(struct web_query *query, bool is_over) {
    char text[64];
    snprintf(text, sizeof text, is_over ? "0" : "%u.%llu", query->scan.part,
             (unsigned long long)query->scan.cursor);
    web_reply_put_text(query, "cursor", bytes_from_text(text));
}

/* ---- a scan ---- */

/* The nth step of a scan: its cursor goes to query->scan.cursor, and *list is at what it has found. false: this step
 * was refused, as any of them can be; the error was written. */
static bool web_boards_take_step(struct web_query *query, unsigned nth, struct value_reader *list) {
    if (web_query_reply_is_error(query, nth)) {
        return false;
    }
    *list = web_query_reply(query, nth);
    (void)value_next(list);
    bool is_number = bytes_parse_u64(value_next(list).text, &query->scan.cursor);
    CHECK(is_number);
    return true;
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
    struct value_reader at = web_query_kept(query);
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
         !web_query_number(query, "count", 1, LIST_MAX, LIST_MAX / 2, &query->count) ||
         !web_query_number(query, "rooms", 0, 1, 1, &query->from))) {
        return false;
    }
    struct bytes match = http_request_parameter(&query->target, "match");
    if (match.size > GLOB_PATTERN_MAX) {
        web_query_error(query, 400, "match is too long: at most %d bytes", GLOB_PATTERN_MAX);
        return false;
    }
    query->scan.size_max = LIST_REPLY_MAX;
    web_query_command(query, "LB.LIST MATCH $pattern COUNT # CURSOR $cursor", (int64_t)LIST_STEP);
    return true;
}

/* By its name; a plain board that is called so has no period. */
static bool web_boards_is_room(struct bytes name, struct value_reader board) {
    struct bytes base;
    struct value_reader period;
    return registry_board_names_room(name) &&
           (registry_roll_archive_board(name, &base) ||
            (value_find(board, BYTES("period"), &period) && value_next(&period).kind == VALUE_MAP));
}

/* Keep of these boards those that are listed. */
static void web_boards_keep(struct web_query *query, struct value_reader reader) {
    struct bytes match = http_request_parameter(&query->target, "match");
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

static void web_boards_put_listed(struct web_query *query, struct value_reader listed) {
    struct bytes name = value_find_text(listed, "name");
    struct bytes base;
    struct bytes archive_of = {.at = NULL};
    struct value_reader board;
    struct value_reader at;
    /* Of "daily@2026-11-21" the board daily, if that names it. */
    if (registry_roll_archive_board(name, &base) && web_boards_find_kept(query, base, &board)) {
        for (uint64_t left = value_find_list(board, "archives", &at); left > 0; left--) {
            archive_of = bytes_equal(value_next(&at).text, name) ? base : archive_of;
        }
    }
    web_reply_open(query, NULL, listed);
    web_reply_put_text(query, "name", name);
    web_reply_put_text(query, "archive_of", archive_of);
    web_reply_close(query);
}

static bool web_boards_print_list(struct web_query *query) {
    bool is_last = query->scan.part + 1 >= query->scan.pattern_count;
    bool is_refused = false;
    for (unsigned i = 0; i < query->reply_count && !is_refused; i++) {
        struct value_reader list;
        if (web_boards_take_step(query, i, &list)) {
            query->scan.has_listed = true;
            web_boards_keep(query, list);
            continue;
        }
        /* The user may not see keys of this pattern, but perhaps those of another. */
        is_refused = query->status == 401 || query->status == 403;
        if (!is_refused || (is_last && !query->scan.has_listed)) {
            return false;
        }
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
    struct value_reader at = web_query_kept(query);
    web_reply_begin(query, WEB_NO_REPLY);
    web_reply_open(query, "boards", WEB_NO_REPLY);
    while (at.at < at.end) {
        web_boards_put_listed(query, at);
        value_skip(&at);
    }
    web_reply_close(query);
    web_boards_put_cursor(query, is_over);
    return web_reply_end(query);
}

const struct web_route web_route_list = {
    .ask = web_boards_ask_list, .print = web_boards_print_list, .takes_errors = true};

/* ---- one board ---- */

/* LB.COUNT takes as long as there are values: of a tag with many, those of the first places alone are counted. */
static bool web_boards_has_many_values(struct value_reader tag) {
    return value_find_integer(tag, "values", 0) > COUNTED_MAX;
}

/* Rounds: the board, of whose tags the maps are kept, one behind the other; then the values of one tag after the
 * other. All is printed at once. */
static bool web_boards_ask_board(struct web_query *query) {
    if (query->round == 0) {
        web_query_command(query, "LB.INFO $board");
        web_query_count(query);
        return true;
    }
    struct value_reader tag = web_query_kept_behind(query, query->more);
    struct bytes name = value_find_text(tag, "name");
    web_query_command(query, "LB.COUNT $board");
    if (web_boards_has_many_values(tag)) {
        web_query_words(query, "0 #", (int64_t)COUNTED_MAX - 1);
    }
    web_query_words(query, "BY $", name);
    for (unsigned i = 0; i < query->where_count; i++) {
        const struct web_where *where = &query->wheres[i];
        if (!bytes_equal_ignoring_case(where->tag, name)) {
            web_query_words(query, "WHERE $ $", where->tag, where->value);
        }
    }
    return true;
}

static bool web_boards_print_tag(struct web_query *query) {
    struct value_reader tag = web_query_kept_behind(query, query->more);
    /* [[value, count] ...], most first; the value may be null. Nothing, if it was refused. */
    struct value_reader reader = web_query_reply(query, 0);
    struct value list = value_next(&reader);
    int64_t without = 0;
    unsigned left = TOP_MAX;
    web_reply_open(query, NULL, tag);
    web_reply_open(query, "top", WEB_NO_REPLY);
    for (uint64_t i = 0; list.kind == VALUE_LIST && i < list.count; i++) {
        (void)value_next(&reader);
        struct value value = value_next(&reader);
        int64_t count = value_next(&reader).number;
        if (value.kind == VALUE_NULL) {
            without = count;
        } else if (left > 0) {
            left--;
            web_reply_open(query, NULL, WEB_NO_REPLY);
            web_reply_put_text(query, "value", value.text);
            web_reply_put_integer(query, "count", count);
            web_reply_close(query);
        }
    }
    web_reply_close(query);
    web_reply_put_integer(query, "without", without);
    if (web_boards_has_many_values(tag)) {
        web_reply_put_integer(query, "places", COUNTED_MAX);
    } else {
        web_reply_put_text(query, "places", (struct bytes){.at = NULL});
    }
    web_reply_close(query);
    query->more++;
    tag = web_query_kept_behind(query, query->more);
    return tag.at < tag.end || web_reply_end(query);
}

static bool web_boards_print_board(struct web_query *query) {
    if (query->round > 0) {
        return web_boards_print_tag(query);
    }
    if (web_query_replies_have_error(query)) {
        return false;
    }
    struct value_reader board = web_query_reply(query, 0);
    struct value_reader at;
    for (uint64_t left = value_find_list(board, "tags", &at); left > 0; left--) {
        const char *begin = at.at;
        value_skip(&at);
        buffer_append(&query->kept, begin, (size_t)(at.at - begin));
    }
    web_reply_begin(query, board);
    web_reply_put_text(query, "name", query->board);
    web_reply_open(query, "tags", WEB_NO_REPLY);
    return query->kept.size > 0 || web_reply_end(query);
}

const struct web_route web_route_board = {
    .ask = web_boards_ask_board, .print = web_boards_print_board, .takes_errors = true};

/* ---- a page ---- */

static bool web_boards_ask_page(struct web_query *query) {
    if (!web_query_number(query, "from", 0, UINT32_MAX, 0, &query->from) ||
        !web_query_number(query, "count", 1, WEB_ROWS_MAX, ROWS_DEFAULT, &query->count)) {
        return false;
    }
    web_query_command(query, "LB.INFO $board $brief");
    web_query_command(query, "LB.RANGE $board # # $where $tags $data $since", query->from,
                      query->from + query->count - 1);
    web_query_count(query);
    return true;
}

static bool web_boards_print_page(struct web_query *query) {
    struct value_reader board = web_query_reply(query, 0);
    web_reply_begin(query, board);
    web_reply_put_integer(query, "from", query->from);
    /* Not in an answer that is kept: no reader is told of what is held. */
    int64_t held = value_find_integer(board, "held", -1);
    if (query->is_view && held >= 0) {
        web_reply_put_integer(query, "held", held);
    }
    web_reply_put_rows(query, "rows", web_reply_count_fields(query, board),
                       web_query_reply(query, 1));
    return web_reply_end(query);
}

const struct web_route web_route_page = {
    .ask = web_boards_ask_page, .print = web_boards_print_page, .is_kept = true};

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
    web_query_command(query, "LB.INFO $board $brief");
    web_query_command(query, "LB.GET $board 1 $member PCT");
    if (query->is_of_player) {
        web_query_words(query, "WITHHELD");
    }
    web_query_words(query, "$where $tags $data $since");
    web_query_command(query, "LB.AROUND $board MEMBER $member # $where $tags $data $since",
                      (int64_t)AROUND);
    web_query_count(query);
    return true;
}

static bool web_boards_print_member(struct web_query *query) {
    static const struct bytes nothing = {.at = NULL};
    struct value percent = {.kind = VALUE_NULL};
    struct value_reader board = web_query_reply(query, 0);
    struct value_reader record = web_query_reply(query, 1);
    struct value_reader held = record;
    if (query->is_of_player) {
        (void)value_next(&record);
        held = record;
        value_skip(&held);
    }
    (void)value_next(&record);
    struct value_reader first = record;
    struct value_reader at = held;
    bool is_held = query->is_of_player && value_next(&at).count > 0;
    bool is_ranked = value_next(&first).kind != VALUE_NULL;
    if (!is_ranked && !is_held) {
        web_query_error(query, 404, "this member is not %s",
                        query->where_count > 0 ? "in this group of the board" : "on the board");
        return false;
    }
    web_reply_begin(query, board);
    if (is_ranked) {
        (void)value_next(&first); /* the member */
        web_reply_put_integer(query, "rank", value_next(&first).number);
        web_reply_put_row(query, "row", web_reply_count_fields(query, board), &record, &percent);
        web_reply_put_text(query, "percentile", percent.text);
    } else {
        web_reply_put_text(query, "rank", nothing);
        web_reply_put_text(query, "row", nothing);
        web_reply_put_text(query, "percentile", nothing);
    }
    web_reply_put_rows(query, "around", web_reply_count_fields(query, board),
                       web_query_reply(query, 2));
    if (query->is_of_player) {
        web_reply_open(query, "held", WEB_NO_REPLY);
        web_reply_put_items(query, &held);
    }
    return web_reply_end(query);
}

const struct web_route web_route_member = {.ask = web_boards_ask_member,
                                           .print = web_boards_print_member,
                                           .is_of_member = true,
                                           .is_kept = true};

/* ---- searching by the names that are shown ---- */

/* The first field of the data that is no picture; NULL: there is none. */
static struct bytes web_boards_name_field(const struct web_query *query) {
    struct bytes picture = query->web->avatars.field;
    for (unsigned i = 0; i < query->data.count; i++) {
        if (picture.at == NULL || !bytes_equal(query->data.fields[i], picture)) {
            return query->data.fields[i];
        }
    }
    return (struct bytes){.at = NULL};
}

/* No index has the names: places are gone through from the best on, a round's worth at a time, and the engine
 * replies nil for those who are called otherwise (struct session_names). What is found is printed at once, so that a
 * board that gets another layout meanwhile does no harm. */
static bool web_boards_print_names(struct web_query *query) {
    if (web_query_replies_have_error(query)) {
        return false;
    }
    struct value_reader board = web_query_reply(query, 0);
    struct value_reader rows = web_query_reply(query, 1);
    struct value list = value_next(&rows);
    uint64_t field_count = web_reply_count_fields(query, board);
    if (query->round == 0) {
        web_reply_begin(query, board);
        web_reply_open(query, "rows", WEB_NO_REPLY);
    }
    uint64_t seen = query->names.field.at != NULL ? 0 : list.count;
    for (; seen < list.count && query->more < query->count; seen++) {
        struct value_reader row = rows;
        if (value_next(&row).kind == VALUE_NULL) {
            rows = row;
        } else {
            web_reply_put_row(query, NULL, field_count, &rows, NULL);
            query->more++;
        }
    }
    query->scan.cursor += seen;
    bool is_over = query->names.field.at == NULL || (seen == list.count && seen < NAMES_STEP);
    if (!is_over && query->more < query->count && query->round + 1 < NAMES_ROUNDS_MAX) {
        return true;
    }
    web_reply_close(query);
    web_boards_put_cursor(query, is_over);
    return web_reply_end(query);
}

/* ---- searching ---- */

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
    return web_query_word_copy(query, (struct bytes){.at = pattern, .size = size});
}

/* Rounds: scan, until enough members are in query->kept as bulks; then their records. */
static bool web_boards_ask_search(struct web_query *query) {
    struct bytes prefix = http_request_parameter(&query->target, "q");
    struct bytes by = http_request_parameter(&query->target, "by");
    bool is_by_name = bytes_equal(by, BYTES("name"));
    if (query->round == 0) {
        if (!web_boards_read_cursor(query) ||
            !web_query_number(query, "count", 1, SEARCH_MAX, SEARCH_MAX / 2, &query->count)) {
            return false;
        }
        if (prefix.size == 0 || prefix.size > SEARCH_SIZE_MAX) {
            web_query_error(query, 400, "q is what members begin with: 1 to %d bytes",
                            SEARCH_SIZE_MAX);
            return false;
        }
        if (by.at != NULL && !is_by_name && !bytes_equal(by, BYTES("id"))) {
            web_query_error(query, 400, "by is id or name");
            return false;
        }
    }
    query->scan.cursor_word = 0;
    if (is_by_name) {
        uint64_t cursor = query->scan.cursor;
        int64_t from = cursor < UINT32_MAX ? (int64_t)cursor : UINT32_MAX; /* no board has more */
        query->names = (struct session_names){.field = web_boards_name_field(query),
                                              .prefix = prefix,
                                              .left = (uint32_t)query->count - query->more};
        web_query_command(query, "LB.INFO $board $brief");
        web_query_command(query, "LB.RANGE $board # # $where $tags $data", from,
                          from + NAMES_STEP - 1);
        web_query_count(query);
        return true;
    }
    if (query->scan.is_over) {
        struct value_reader at = web_query_kept(query);
        web_query_command(query, "LB.INFO $board $brief");
        if (query->more > 0) {
            web_query_command(query, "LB.GET $board #", (int64_t)query->more);
            for (unsigned i = 0; i < query->more; i++) {
                web_query_word(query, value_next(&at).text);
            }
            web_query_words(query, "$where $tags $data");
        }
        web_query_count(query);
        return true;
    }
    web_query_command(query, "ZSCAN $board $cursor MATCH $ COUNT #",
                      web_boards_prefix_pattern(query, prefix), (int64_t)SEARCH_STEP);
    query->scan.size_max = SEARCH_REPLY_MAX;
    if (query->round == 0 && query->scan.cursor == 0) {
        /* The member itself comes first, however large the board is. */
        web_query_keep(query, prefix);
        query->more = 1;
    }
    return true;
}

static bool web_boards_print_search(struct web_query *query) {
    struct bytes prefix = http_request_parameter(&query->target, "q");
    if (bytes_equal(http_request_parameter(&query->target, "by"), BYTES("name"))) {
        return web_boards_print_names(query);
    }
    if (!query->scan.is_over) {
        for (unsigned i = 0; i < query->reply_count; i++) {
            struct value_reader list;
            if (!web_boards_take_step(query, i, &list)) {
                return false;
            }
            for (uint64_t left = value_next(&list).count; left > 1; left -= 2) {
                struct value_reader begin = list;
                struct bytes member = value_next(&list).text;
                size_t size = (size_t)(list.at - begin.at);
                value_skip(&list); /* the score */
                if (!bytes_equal(member, prefix) && query->more < FOUND_MAX) {
                    buffer_append(&query->kept, begin.at, size);
                    query->more++;
                }
            }
        }
        query->scan.is_over = query->scan.cursor == 0 || query->more >= query->count ||
                              query->round >= SEARCH_ROUNDS_MAX;
        return true;
    }
    if (web_query_replies_have_error(query)) {
        return false;
    }
    struct value_reader board = web_query_reply(query, 0);
    web_reply_begin(query, board);
    if (web_query_own_replies(query) > 1) {
        web_reply_put_rows(query, "rows", web_reply_count_fields(query, board),
                           web_query_reply(query, 1));
    } else {
        web_reply_put_texts(query, "rows", NULL, 0);
    }
    web_boards_put_cursor(query, query->scan.cursor == 0);
    return web_reply_end(query);
}

const struct web_route web_route_search = {
    .ask = web_boards_ask_search, .print = web_boards_print_search, .takes_errors = true};

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

static size_t web_boards_print_units(wide units, unsigned scale, char *out) {
    struct decimal value = {.is_negative = units < 0,
                            .magnitude = (uint64_t)(units < 0 ? -units : units)};
    return decimal_print(out, value, scale);
}

/* ---- where bins begin ---- */

static void web_boards_add_edge(struct bins *bins, wide edge, int64_t count_max) {
    if (edge > bins->lowest && edge <= bins->highest) {
        if (bins->count < count_max) {
            bins->edges[bins->count] = edge;
        }
        bins->count++;
    }
}

/* At -5 -2 -1 0 1 2 5 10 20 50 ..., with a step of 1 in a decade at -1 0 1 10 100 ... false: these are too many. */
static bool web_boards_place_by_decades(struct bins *bins, unsigned steps, int64_t count_max) {
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
        web_boards_add_edge(bins, -powers[(i - 1) / steps] * digits[(i - 1) % steps], count_max);
    }
    web_boards_add_edge(bins, 0, count_max);
    for (unsigned i = 0; i < DECADES * steps; i++) {
        web_boards_add_edge(bins, powers[i / steps] * digits[i % steps], count_max);
    }
    return bins->count <= count_max;
}

/* false: the error was written. */
static bool web_boards_place(struct web_query *query, struct bins *bins) {
    struct bytes spacing = http_request_parameter(&query->target, "spacing");
    bool is_auto = bytes_equal(spacing, BYTES("auto"));
    bool is_log = bytes_equal(spacing, BYTES("log"));
    if (spacing.at != NULL && !is_auto && !is_log && !bytes_equal(spacing, BYTES("even"))) {
        web_query_error(query, 400, "spacing is even, log or auto");
        return false;
    }
    /* Nine tenths of the members in a tenth of the range: even bins would show one bar. */
    bool is_skewed = (bins->upper - bins->lowest) * 10 < bins->highest - bins->lowest;
    if (!(is_log || (is_auto && is_skewed)) ||
        !(web_boards_place_by_decades(bins, 3, query->count) ||
          web_boards_place_by_decades(bins, 1, query->count))) {
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
static bool web_boards_read_ends(const struct web_query *query, struct bins *bins) {
    struct value_reader at = web_query_kept(query);
    wide ends[3];
    if (query->kept.size == 0) {
        return false;
    }
    bins->scale = (unsigned)value_next(&at).number;
    for (unsigned i = 0; i < 3; i++) {
        struct decimal end;
        if (decimal_parse(value_next(&at).text, bins->scale, &end) != DECIMAL_OK) {
            return false;
        }
        ends[i] = end.is_negative ? -(wide)end.magnitude : (wide)end.magnitude;
    }
    bool is_rising = ends[0] <= ends[2];
    bins->lowest = is_rising ? ends[0] : ends[2];
    bins->highest = is_rising ? ends[2] : ends[0];
    bins->upper = ends[1];
    return true;
}

static bool web_boards_ask_histogram(struct web_query *query) {
    struct bins bins = {.lowest = 0};
    if (!web_query_number(query, "buckets", 1, BINS_MAX, BINS_DEFAULT, &query->count)) {
        return false;
    }
    bool has_ends = web_boards_read_ends(query, &bins);
    if (!web_boards_place(query, &bins)) {
        return false;
    }
    web_query_command(query, "LB.INFO $board");
    web_query_command(query, "LB.QUANTILE $board");
    for (unsigned i = 0; i < QUANTILES; i++) {
        web_query_word(query, bytes_from_text(quantiles[i]));
    }
    web_query_words(query, "$where $data");
    if (query->round > 0 && has_ends) {
        web_query_command(query, "LB.HIST $board");
        for (int64_t i = bins.count > 1 ? 1 : 0; i < bins.count; i++) {
            char text[DECIMAL_TEXT_MAX];
            size_t size = web_boards_print_units(bins.edges[i], bins.scale, text);
            web_query_word(query,
                           web_query_word_copy(query, (struct bytes){.at = text, .size = size}));
        }
        web_query_words(query, "$where");
    }
    web_query_count(query);
    return true;
}

/* The lead field of a record, as text. */
static struct bytes web_boards_lead_of(struct value_reader record, char *text) {
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
static void web_boards_keep_ends(struct web_query *query) {
    struct value_reader fields;
    char text[BYTES_INTEGER_TEXT_MAX];
    char line[32];
    struct value_reader reader = web_query_reply(query, 1);
    struct value list = value_next(&reader);
    if (value_find_list(web_query_reply(query, 0), "fields", &fields) == 0 ||
        list.count < QUANTILES) {
        return;
    }
    bool is_ascending = bytes_equal(value_find_text(fields, "order"), BYTES("asc"));
    const char *upper = is_ascending ? "0.1" : "0.9";
    int size =
        snprintf(line, sizeof line, ":%lld\r\n", (long long)value_find_integer(fields, "scale", 0));
    for (unsigned i = 0; i < QUANTILES; i++) {
        struct bytes lead = web_boards_lead_of(reader, text);
        if (lead.at == NULL) {
            buffer_clear(&query->kept);
            return;
        }
        if (i == 0) {
            buffer_append(&query->kept, line, (size_t)size);
        }
        if (i == 0 || i == QUANTILES - 1 || strcmp(quantiles[i], upper) == 0) {
            web_query_keep(query, lead);
        }
        value_skip(&reader);
    }
}

static void web_boards_put_quantiles(struct web_query *query, uint64_t field_count,
                                     struct value_reader reader) {
    struct value list = value_next(&reader);
    web_reply_open(query, "quantiles", WEB_NO_REPLY);
    for (uint64_t i = 0; i < list.count && i < QUANTILES; i++) {
        struct value_reader record = reader;
        value_skip(&reader);
        if (value_next(&record).kind != VALUE_LIST) {
            continue;
        }
        web_reply_open(query, NULL, WEB_NO_REPLY);
        web_reply_put_text(query, "q", bytes_from_text(quantiles[i]));
        web_reply_put_text(query, "member", value_next(&record).text);
        web_reply_put_integer(query, "rank", value_next(&record).number);
        value_skip(&record);
        web_reply_put_text(query, "score", value_next(&record).text);
        for (uint64_t k = 1; k < field_count; k++) {
            value_skip(&record);
        }
        web_reply_put_data(query, &record);
        web_reply_close(query);
    }
    web_reply_close(query);
}

static bool web_boards_print_histogram(struct web_query *query) {
    struct value_reader fields;
    struct bins bins;
    if (query->round == 0) {
        web_boards_keep_ends(query);
        return true;
    }
    struct value_reader board = web_query_reply(query, 0);
    bool has_fields = value_find_list(board, "fields", &fields) > 0;
    bool has_bins = web_query_own_replies(query) > 2 && web_boards_read_ends(query, &bins) &&
                    web_boards_place(query, &bins);
    CHECK(has_fields);
    web_reply_begin(query, board);
    web_reply_put_text(query, "field", value_find_text(fields, "name"));
    web_reply_put_text(query, "order", value_find_text(fields, "order"));
    web_reply_put_text(query, "spacing", has_bins && bins.is_log ? BYTES("log") : BYTES("even"));
    web_reply_open(query, "bins", WEB_NO_REPLY);
    if (has_bins) {
        struct value_reader reader = web_query_reply(query, 2);
        char text[DECIMAL_TEXT_MAX];
        struct value list = value_next(&reader);
        if (bins.count == 1) {
            value_skip(&reader); /* below the only edge: nobody */
        }
        for (int64_t i = 0; i < bins.count && list.kind == VALUE_LIST; i++) {
            wide end = i + 1 < bins.count ? bins.edges[i + 1] : bins.highest;
            web_reply_open(query, NULL, WEB_NO_REPLY);
            size_t size = web_boards_print_units(bins.edges[i], bins.scale, text);
            web_reply_put_text(query, "from", (struct bytes){.at = text, .size = size});
            size = web_boards_print_units(end, bins.scale, text);
            web_reply_put_text(query, "to", (struct bytes){.at = text, .size = size});
            web_reply_put_integer(query, "count", value_next(&reader).number);
            web_reply_close(query);
        }
    }
    web_reply_close(query);
    web_boards_put_quantiles(query, web_reply_count_fields(query, board),
                             web_query_reply(query, 1));
    return web_reply_end(query);
}

const struct web_route web_route_histogram = {
    .ask = web_boards_ask_histogram, .print = web_boards_print_histogram, .is_kept = true};

/* ---- the last periods ---- */

/* Rounds: the archives' names, kept as bulks; then as many of them as fit into a round, which are printed at once. */
static bool web_boards_ask_archives(struct web_query *query) {
    bool is_counted = query->where_count > 0;
    unsigned filter_words = 3 * query->where_count;
    unsigned words = 2 + 6 + filter_words + 4 + query->data.count;
    unsigned by_words = WEB_WORDS_MAX / (words + (is_counted ? 2 + filter_words : 0));
    unsigned by_commands = WEB_COMMANDS_MAX / (2U + is_counted);
    if (!web_query_number(query, "count", 1, ARCHIVE_ROWS_MAX, ARCHIVE_ROWS_DEFAULT,
                          &query->count)) {
        return false;
    }
    if (query->round == 0) {
        web_query_command(query, "LB.INFO $board");
        web_query_count(query);
        return true;
    }
    struct value_reader at = web_query_kept_behind(query, query->more);
    for (unsigned i = by_words < by_commands ? by_words : by_commands; i > 0 && at.at < at.end;
         i--) {
        struct bytes name = value_next(&at).text;
        web_query_command(query, "LB.INFO $ $brief", name);
        web_query_command(query, "LB.RANGE $ 0 # $where $tags $data", name, query->count - 1);
        if (is_counted) {
            web_query_command(query, "LB.COUNT $ $where", name);
        }
    }
    return true;
}

/* Those of an archive begin with the nth reply. One without such a tag has nobody in the group. */
static void web_boards_put_archive(struct web_query *query, struct bytes name, unsigned nth) {
    struct value_reader board = web_query_reply(query, nth);
    struct value_reader first = board;
    if (value_next(&first).kind != VALUE_MAP) {
        return; /* it is gone meanwhile, or not this user's */
    }
    int64_t count = value_find_integer(board, "count", 0);
    if (query->where_count > 0) {
        struct value_reader counted = web_query_reply(query, nth + 2);
        count = value_next(&counted).number;
    }
    web_reply_open(query, NULL, board);
    web_reply_put_text(query, "name", name);
    web_reply_put_integer(query, "count", count);
    web_reply_put_rows(query, "rows", web_reply_count_fields(query, board),
                       web_query_reply(query, nth + 1));
    web_reply_close(query);
}

static bool web_boards_print_archives(struct web_query *query) {
    if (query->round == 0) {
        if (web_query_replies_have_error(query)) {
            return false;
        }
        struct value_reader names;
        uint64_t left = value_find_list(web_query_reply(query, 0), "archives", &names);
        for (left = left < ARCHIVES_MAX ? left : ARCHIVES_MAX; left > 0; left--) {
            web_query_keep(query, value_next(&names).text);
        }
        web_reply_begin(query, WEB_NO_REPLY);
        web_reply_open(query, "archives", WEB_NO_REPLY);
        return true;
    }
    struct value_reader at = web_query_kept_behind(query, query->more);
    unsigned step = query->where_count > 0 ? 3 : 2;
    for (unsigned i = 0; i < query->reply_count; i += step) {
        web_boards_put_archive(query, value_next(&at).text, i);
        query->more++;
    }
    return at.at < at.end || web_reply_end(query);
}

const struct web_route web_route_archives = {
    .ask = web_boards_ask_archives, .print = web_boards_print_archives, .takes_errors = true};
