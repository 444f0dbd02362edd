/* One member of a board, and looking for members. */
#include "server/web/web_rows.h"

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

static bool web_members_ask_member(struct web_query *query) {
    web_command(query, "LB.INFO $board");
    web_command(query, "LB.GET $board 1 $member PCT $where $tags $data $since");
    web_command(query, "LB.AROUND $board MEMBER $member # $where $tags $data $since",
                (int64_t)AROUND);
    web_ask_count(query);
    return true;
}

static bool web_members_print_member(struct web_query *query) {
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
    web_put_record(json, query, "row", web_count_fields(board), &record, &percent);
    web_put_number_text(json, "percentile", percent);
    web_put_rows(json, query, "around", web_count_fields(board), web_reply(query, 2));
    return web_end_reply(query);
}

const struct web_route web_route_member = {.ask = web_members_ask_member,
                                           .print = web_members_print_member};

/* ---- searching by the names that are shown ---- */

/* No index has the names: places are gone through from the best on, a round's worth at a time. What is found is
 * printed at once, so that a board that gets another layout meanwhile does no harm. */
static void web_members_ask_names(struct web_query *query) {
    web_command(query, "LB.INFO $board");
    int64_t from = (int64_t)query->scan.cursor;
    web_command(query, "LB.RANGE $board # # $where $tags $data", from, from + NAMES_STEP - 1);
    web_ask_count(query);
}

/* The name in a record: the first of its data that is no picture. */
static struct bytes web_members_name_in(const struct web_query *query, struct value_reader record,
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

static bool web_members_begins_with(struct bytes text, struct bytes prefix) {
    size_t i = 0;
    while (i < prefix.size && i < text.size &&
           bytes_lower(text.at[i]) == bytes_lower(prefix.at[i])) {
        i++;
    }
    return i == prefix.size;
}

/* Does the name, or a word of it, begin so? Letters of ASCII in either case. */
static bool web_members_is_called(struct bytes name, struct bytes prefix) {
    for (size_t i = 0; i < name.size; i++) {
        struct bytes rest = {.at = name.at + i, .size = name.size - i};
        if ((i == 0 || name.at[i - 1] == ' ') && web_members_begins_with(rest, prefix)) {
            return true;
        }
    }
    return false;
}

static void web_members_begin_names(struct web_query *query, struct value_reader board) {
    struct json *json = &query->json;
    web_begin_reply(query, &board);
    web_put_field_names(json, board);
    web_put_data_names(json, query);
    json_open(json, "rows", '[');
}

static bool web_members_print_names(struct web_query *query) {
    struct bytes prefix = http_target_find(&query->target, "q");
    if (web_replies_have_error(query)) {
        return false;
    }
    struct value_reader board = web_reply(query, 0);
    struct value_reader rows = web_reply(query, 1);
    struct value list = value_next(&rows);
    uint64_t field_count = web_count_fields(board);
    if (query->round == 0) {
        web_members_begin_names(query, board);
    }
    uint64_t seen = query->data.pattern.at != NULL ? 0 : list.count;
    for (; seen < list.count && query->more < query->count; seen++) {
        if (web_members_is_called(web_members_name_in(query, rows, field_count), prefix)) {
            web_put_record(&query->json, query, NULL, field_count, &rows, NULL);
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
    web_put_cursor(query, is_over);
    return web_end_reply(query);
}

/* ---- searching ---- */

/* Rounds: scan, until enough members are in query->kept as bulks; then their records. */
static void web_members_ask_records(struct web_query *query) {
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

static struct bytes web_members_prefix_pattern(struct web_query *query, struct bytes prefix) {
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

static bool web_members_ask_search(struct web_query *query) {
    struct bytes prefix = http_target_find(&query->target, "q");
    struct bytes by = http_target_find(&query->target, "by");
    bool is_by_name = bytes_equal(by, BYTES("name"));
    if (query->round == 0) {
        if (!web_read_cursor(query) ||
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
        web_members_ask_names(query);
        return true;
    }
    if (query->scan.is_over) {
        web_members_ask_records(query);
        return true;
    }
    web_command(query, "ZSCAN $board $cursor MATCH $ COUNT #",
                web_members_prefix_pattern(query, prefix), (int64_t)SEARCH_STEP);
    query->scan.size_max = SEARCH_REPLY_MAX;
    if (query->round == 0 && query->scan.cursor == 0) {
        /* The member itself comes first, however large the board is. */
        web_keep_bulk(query, prefix);
        query->more = 1;
    }
    return true;
}

static void web_members_keep(struct web_query *query, struct value_reader reader) {
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

static bool web_members_print_search(struct web_query *query) {
    struct json *json = &query->json;
    if (bytes_equal(http_target_find(&query->target, "by"), BYTES("name"))) {
        return web_members_print_names(query);
    }
    if (!query->scan.is_over) {
        for (unsigned i = 0; i < query->reply_count; i++) {
            struct value_reader list;
            if (!web_take_step(query, i, &list)) {
                return false;
            }
            web_members_keep(query, list);
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
    web_put_cursor(query, query->scan.cursor == 0);
    return web_end_reply(query);
}

const struct web_route web_route_search = {.ask = web_members_ask_search,
                                           .print = web_members_print_search};
