/* One member of a board, and looking for members. */
#include <stdio.h>

#include "server/web/web_rows.h"

enum {
    AROUND = 11, /* the member and ten others */
    SEARCH_MAX = 50,
    SEARCH_STEP = 200,       /* members that one ZSCAN looks at */
    SEARCH_REPLY_MAX = 2048, /* bytes: behind so many of its replies it is looked what was found */
    SEARCH_ROUNDS_MAX = 200,
    SEARCH_SIZE_MAX = 500, /* bytes of what is searched for */
    FOUND_MAX = 400,       /* more than a round finds */
};

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
    web_begin_reply(query);
    web_put_integer_of(json, board, "count");
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
        if (!web_read_cursor(query) ||
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
    if (!query->is_scan_over) {
        for (unsigned i = 0; i < query->reply_count; i++) {
            struct value_reader list;
            if (!web_take_step(query, i, &list)) {
                return false;
            }
            keep_members(query, list);
        }
        query->is_scan_over =
            query->cursor == 0 || query->more >= query->count || query->round >= SEARCH_ROUNDS_MAX;
        return true;
    }
    for (unsigned i = 0; i < query->reply_count; i++) {
        if (web_reply_is_error(query, i)) {
            return false;
        }
    }
    struct value_reader board = web_reply(query, 0);
    web_begin_reply(query);
    web_put_integer_of(json, board, "count");
    web_put_field_names(json, board);
    web_put_data_names(json, query);
    if (query->reply_count > 1) {
        web_put_rows(json, query, "rows", web_count_fields(board), web_reply(query, 1));
    } else {
        json_open(json, "rows", '[');
        json_close(json, ']');
    }
    web_put_cursor(query, query->cursor == 0);
    return web_end_reply(query);
}

const struct web_route web_route_search = {
    .name = "search", .ask = ask_search, .print = print_search};
