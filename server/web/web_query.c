/* See web_query.h. */
#include "server/web/web_query.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include "codec/list.h"
#include "codec/tag.h"
#include "server/dispatch/call.h"
#include "server/dispatch/command.h"
#include "server/dispatch/explain.h"

enum { TEXTS_MAX = 8192, OUT_FIRST = 2048, REPLIES_FIRST = 16 * 1024, REPLIES_GROWTH = 8 };

/* ---- the pace: see web_query.h ---- */

enum { EXPECTED_NS = 20000 }; /* until the answer says how long it took */

static void web_query_refill(struct web *web) {
    enum { SECOND_MS = 1000, NS_PER_MS = 1000000, BURST_MS = 500 };
    static const int64_t shares[2] = {WEB_REQUEST_SHARE, WEB_VIEW_SHARE};
    int64_t now_ms = http_server_now(web->http);
    int64_t passed_ms = now_ms - web->budgets_at_ms;
    web->budgets_at_ms = now_ms;
    for (int i = 0; i < 2; i++) {
        int64_t most = (int64_t)BURST_MS * NS_PER_MS / shares[i];
        passed_ms = passed_ms < SECOND_MS ? passed_ms : SECOND_MS;
        web->budgets_ns[i] += passed_ms * NS_PER_MS / shares[i];
        web->budgets_ns[i] = web->budgets_ns[i] < most ? web->budgets_ns[i] : most;
    }
}

static void web_query_ask(struct web *web, struct web_query *query) {
    web->budgets_ns[query->is_view] -= EXPECTED_NS;
    query->state = WEB_QUERY_ASKED;
    query->was_asked = true;
    http_server_ask(web->http, &query->ask);
}

/* The engine wants to be asked again, later. */
static void web_query_put_again(struct web *web, struct web_query *query) {
    struct web_pending *pending = &web->pending[query->is_view];
    query->state = WEB_QUERY_WAITS;
    web->pending_count++;
    query->previous = pending->last;
    LIST_APPEND(pending->first, pending->last, query);
}

void web_query_take_back(struct web *web, struct web_query *query) {
    struct web_pending *pending = &web->pending[query->is_view];
    query->state = WEB_QUERY_NEW;
    if (pending->last == query) {
        pending->last = query->previous;
    }
    LIST_PART(pending->first, query);
    web->pending_count--;
}

/* Ask the engine, now or when the pace allows it. */
static void web_query_put(struct web *web, struct web_query *query) {
    struct web_pending *pending = &web->pending[query->is_view];
    web_query_refill(web);
    if (pending->first == NULL && web->budgets_ns[query->is_view] > 0) {
        web_query_ask(web, query);
        return;
    }
    /* What is begun is finished first: so under load some are, and not none. */
    if (query->round > 0 || pending->first == NULL) {
        query->state = WEB_QUERY_WAITS;
        web->pending_count++;
        LIST_JOIN(pending->first, query);
        pending->last = pending->last != NULL ? pending->last : query;
    } else {
        web_query_put_again(web, query);
    }
}

void web_query_step(struct web *web) {
    web_query_refill(web);
    for (int i = 0; i < 2; i++) {
        while (web->pending[i].first != NULL && web->budgets_ns[i] > 0) {
            struct web_query *query = web->pending[i].first;
            web_query_take_back(web, query);
            web_query_ask(web, query);
        }
    }
}

bool web_query_take_memory(struct web *web, size_t size) {
    if (web->memory_size + size > WEB_MEMORY_MAX) {
        return false;
    }
    web->memory_size += size;
    return true;
}

void web_query_give_memory(struct web *web, size_t size) {
    CHECK(web->memory_size >= size);
    web->memory_size -= size;
}

/* ---- beginning and end ---- */

static void web_query_give_room(struct web_query *query) {
    web_query_give_memory(query->web, query->room);
    query->room = 0;
    buffer_deinit(&query->replies);
}

/* The buffers of a query, which those that are used again keep, and what each may hold. */
enum { BUFFERS = 8 };
static void web_query_list_buffers(struct web_query *query, struct buffer *buffers[BUFFERS]) {
    struct web_write *write = &query->write;
    struct buffer *const all[BUFFERS] = {&query->replies,  &query->texts, &query->text,
                                         &query->kept,     &query->out,   &write->words,
                                         &write->commands, &write->firsts};
    memcpy(buffers, all, sizeof all);
}

static void web_query_free(struct web_query *query) {
    struct buffer *buffers[BUFFERS];
    web_query_give_room(query);
    web_query_list_buffers(query, buffers);
    for (unsigned i = 0; i < BUFFERS; i++) {
        buffer_deinit(buffers[i]);
    }
    memory_free(query);
}

bool web_query_make_room(struct web_query *query, size_t size) {
    size_t room = size > REPLIES_FIRST ? size : 0;
    struct buffer replies;
    buffer_init(&replies, size);
    if (!web_query_take_memory(query->web, room)) {
        return false;
    }
    if (buffer_reserve(&replies, size) == NULL) {
        web_query_give_memory(query->web, room);
        return false;
    }
    web_query_give_room(query);
    query->replies = replies;
    query->room = room;
    return true;
}

struct web_query *web_query_create(struct web *web) {
    static const size_t sizes[BUFFERS] = {
        REPLIES_FIRST, TEXTS_MAX,          HTTP_CONNECTION_SIZE, WEB_REPLIES_MAX,
        WEB_JSON_MAX,  WEB_WORDS_SIZE_MAX, WEB_WORDS_SIZE_MAX,   WEB_WORDS_SIZE_MAX};
    struct web_query *query = web->spare_first;
    struct buffer *buffers[BUFFERS];
    struct buffer kept[BUFFERS];
    if (query != NULL) {
        web->spare_first = query->next;
        web->spare_count--;
        web_query_list_buffers(query, buffers);
        for (unsigned i = 0; i < BUFFERS; i++) {
            kept[i] = *buffers[i];
        }
    } else {
        query = memory_allocate(sizeof *query);
        if (query == NULL) {
            return NULL;
        }
        memset(kept, 0, sizeof kept);
        web_query_list_buffers(query, buffers);
    }
    memset(query, 0, offsetof(struct web_query, target));
    for (unsigned i = 0; i < BUFFERS; i++) {
        *buffers[i] = kept[i];
        buffers[i]->size_max = sizes[i];
    }
    query->target.segment_count = query->target.parameter_count = 0;
    query->web = web;
    query->status = 200;
    query->json = web_json(&query->out);
    query->commands = query->own_commands;
    query->words = query->own_words;
    if (buffer_reserve(&query->replies, REPLIES_FIRST) == NULL ||
        buffer_reserve(&query->texts, TEXTS_MAX) == NULL ||
        buffer_reserve(&query->out, OUT_FIRST) == NULL) {
        web_query_free(query);
        return NULL;
    }
    return query;
}

void web_query_destroy(struct web_query *query) {
    struct web *web = query->web;
    struct buffer *buffers[BUFFERS];
    if (query->is_counted) {
        atomic_fetch_sub(&web->write_count, 1);
    }
    memory_free(query->figures);
    web_query_give_memory(web, query->write.room);
    buffer_deinit(&query->write.body);
    bool is_as_new = query->replies.size_max == REPLIES_FIRST && !query->replies.is_broken;
    if (!is_as_new || web->spare_count >= web->spare_max) {
        web_query_free(query);
        return;
    }
    web_query_list_buffers(query, buffers);
    for (unsigned i = 0; i < BUFFERS; i++) {
        buffer_clear(buffers[i]);
        if (buffers[i]->capacity > REPLIES_FIRST) {
            buffer_deinit(buffers[i]);
        }
    }
    query->next = web->spare_first;
    web->spare_first = query;
    web->spare_count++;
}

void web_query_free_spare(struct web *web) {
    struct web_query *query;
    LIST_TAKE_EACH(web->spare_first, query) {
        web_query_free(query);
    }
}

void web_query_leave(struct web_query *query) {
    if (query->state == WEB_QUERY_WAITS) {
        web_query_take_back(query->web, query);
    } else if (query->state == WEB_QUERY_ASKED) {
        query->is_left = true;
        return;
    }
    web_query_destroy(query);
}

/* ---- replies ---- */

static const struct web_problem {
    unsigned status;
    const char *code, *title;
} problems[] = {
    {400, "bad_request", "The request is malformed"},
    {401, "login_needed", "A user has to log in"},
    {403, "forbidden", "This is not allowed"},
    {404, "not_found", "There is no such thing"},
    {405, "method_not_allowed", "The path takes other methods"},
    {409, "conflict", "The key is in another state"},
    {413, "too_large", "This is too large"},
    {414, "too_large", "The address is too long"},
    {415, "unsupported_type", "The body is of another type"},
    {421, "misdirected", "The request is for another server"},
    {422, "unprocessable", "The request cannot be carried out"},
    {429, "too_many", "There are too many requests"},
    {431, "too_large", "The headers are too long"},
    {501, "not_implemented", "This part of HTTP is not there"},
    {503, "busy", "This is not possible now"},
    {500, "busy", "The server has failed"}, /* last: any other */
};

void web_query_put_problem(struct json *json, unsigned status, struct bytes detail,
                           struct bytes redis, int64_t written) {
    enum { TYPE_MAX = 64 };
    const struct web_problem *problem = problems;
    char type[TYPE_MAX];
    while (problem->status != status && problem->status != 500) {
        problem++;
    }
    snprintf(type, sizeof type, "urn:leaderboard:%s", problem->code);
    json_open(json, NULL, '{');
    json_text(json, "type", bytes_from_text(type));
    json_text(json, "title", bytes_from_text(problem->title));
    json_integer(json, "status", status);
    json_text(json, "detail", detail);
    json_text(json, "error", detail); /* its name before there were problem documents */
    json_text(json, "code", bytes_from_text(problem->code));
    if (redis.size > 0) {
        json_text(json, "redis", redis);
    }
    if (written >= 0) {
        json_integer(json, "written", written);
    }
    json_close(json, '}');
}

static void web_query_fail(struct web_query *query, unsigned status, struct bytes detail,
                           struct bytes redis) {
    const struct web_write *write = &query->write;
    bool writes = query->route != NULL && query->route->writes;
    int64_t written = -1;
    if (writes && write->result_count > 0 && query->verdict == WEB_ALLOWED) {
        /* What came before the command that was refused. */
        const unsigned *firsts = (const unsigned *)(const void *)write->firsts.at;
        written = query->reply_count > 0 ? firsts[query->reply_count - 1] : 0;
    }
    buffer_clear(&query->out);
    query->json = web_json(&query->out);
    query->status = status;
    web_query_put_problem(&query->json, status, detail, redis, written);
}

void web_query_error(struct web_query *query, unsigned status, const char *format, ...) {
    char text[HTTP_ERROR_MAX];
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    (void)size;
    web_query_fail(query, status, bytes_from_text(text), (struct bytes){.at = NULL});
}

/* What an error of a command is in HTTP: the table of errors says it, but of boards that are not there. */
static void web_query_refuse(struct web_query *query, enum reply_cause cause, struct bytes text) {
    struct bytes rest = text;
    struct bytes prefix = bytes_take_word(&rest);
    bool writes = query->route != NULL && query->route->writes;
    const struct explained_error *row = explain_error(prefix);
    unsigned status = row != NULL && row->http_status != 0 ? row->http_status : writes ? 422 : 400;
    char detail[HTTP_ERROR_MAX];
    if (cause == REPLY_NO_KEY) {
        struct bytes which = bytes_behind(text, writes ? sizeof CALL_NO_KEY - 1 : text.size);
        snprintf(detail, sizeof detail, "there is no such board%.*s%s%s",
                 bytes_shown_size(which, HTTP_ERROR_MAX / 2), which.at,
                 writes ? ": LB.CREATE makes one" : "",
                 writes && query->route->may_create ? ", and create=1 in the query" : "");
        status = 404;
        text = bytes_from_text(detail);
    } else if (bytes_equal(prefix, BYTES("WRONGTYPE"))) {
        status = writes ? 409 : status;
        text = BYTES("this key is no board");
    }
    web_query_fail(query, status, text, prefix);
}

static bool web_query_is_forbidden(const struct web_query *query, unsigned nth) {
    struct value_reader reader = web_query_reply(query, nth);
    struct value value = value_next(&reader);
    return value.kind == VALUE_ERROR && bytes_equal(bytes_take_word(&value.text), BYTES("NOPERM"));
}

bool web_query_reply_is_error(struct web_query *query, unsigned nth) {
    struct value_reader reader = web_query_reply(query, nth);
    struct value value = value_next(&reader);
    if (value.kind != VALUE_ERROR) {
        return false;
    }
    if (query->identity.kind == WEB_ANYBODY && query->user.is_public &&
        web_query_is_forbidden(query, nth)) {
        web_query_error(query, 401, "log in to do this");
    } else {
        web_query_refuse(query, query->commands[nth].cause, value.text);
    }
    return true;
}

bool web_query_replies_have_error(struct web_query *query) {
    bool has_error = false;
    for (unsigned i = 0; i < query->reply_count && !has_error; i++) {
        has_error = web_query_reply_is_error(query, i);
    }
    return has_error;
}

/* ---- commands ---- */

void web_query_word(struct web_query *query, struct bytes word) {
    CHECK(query->word_count < WEB_WORDS_MAX && query->words == query->own_words);
    query->words[query->word_count++] = word;
    query->commands[query->command_count - 1].end = query->word_count;
}

struct bytes web_query_word_copy(struct web_query *query, struct bytes bytes) {
    char *at = buffer_reserve(&query->texts, bytes.size + 1);
    CHECK(at != NULL);
    if (bytes.size > 0) {
        memcpy(at, bytes.at, bytes.size);
    }
    buffer_commit(&query->texts, bytes.size);
    return (struct bytes){.at = at, .size = bytes.size};
}

static void web_query_add_words(struct web_query *query, const char *words, va_list *arguments) {
    char text[BYTES_INTEGER_TEXT_MAX];
    struct bytes number = {.at = text};
    for (; *words != '\0'; words += *words == ' ') {
        struct bytes word = {.at = words};
        while (*words != ' ' && *words != '\0') {
            words++;
        }
        word.size = (size_t)(words - word.at);
        if (word.at[0] != '$' && word.at[0] != '#') {
            web_query_word(query, word);
        } else if (word.at[0] == '#') {
            number.size = bytes_print_i64(text, va_arg(*arguments, int64_t));
            web_query_word(query, web_query_word_copy(query, number));
        } else if (bytes_equal(word, BYTES("$"))) {
            web_query_word(query, va_arg(*arguments, struct bytes));
        } else if (bytes_equal(word, BYTES("$board"))) {
            web_query_word(query, query->board);
        } else if (bytes_equal(word, BYTES("$member"))) {
            web_query_word(query, query->member);
        } else if (bytes_equal(word, BYTES("$data"))) {
            /* DATA pattern FIELDS n field ..., if the query has any. */
            if (query->data.pattern.at != NULL) {
                web_query_words(query, "DATA $ FIELDS #", query->data.pattern,
                                (int64_t)query->data.count);
                for (unsigned i = 0; i < query->data.count; i++) {
                    web_query_word(query, query->data.fields[i]);
                }
            }
        } else if (bytes_equal(word, BYTES("$where"))) {
            /* WHERE tag value ..., if a group is asked for. */
            for (unsigned i = 0; i < query->where_count; i++) {
                web_query_words(query, "WHERE $ $", query->wheres[i].tag, query->wheres[i].value);
            }
        } else if (bytes_equal(word, BYTES("$tags"))) {
            if (query->has_tags) {
                web_query_word(query, BYTES("TAGS"));
            }
            if (query->has_rating) {
                web_query_word(query, BYTES("RATING"));
            }
        } else if (bytes_equal(word, BYTES("$since"))) {
            if (query->since.at != NULL) {
                web_query_words(query, "SINCE $", query->since);
            }
        } else if (bytes_equal(word, BYTES("$brief"))) {
            query->commands[query->command_count - 1].is_brief = true;
        } else if (bytes_equal(word, BYTES("$cursor"))) {
            number.size = bytes_print_u64(text, query->scan.cursor);
            query->scan.cursor_word = query->word_count;
            web_query_word(query, web_query_word_copy(query, number));
        } else if (bytes_equal(word, BYTES("$pattern"))) {
            query->scan.pattern_word = query->word_count;
            web_query_word(query, BYTES("*"));
        } else {
            CHECK(false);
        }
    }
}

void web_query_words(struct web_query *query, const char *words, ...) {
    va_list arguments;
    va_start(arguments, words);
    web_query_add_words(query, words, &arguments);
    va_end(arguments);
}

uint32_t web_query_first_number(struct web *web, const char *words) {
    struct web_number *known = &web->numbers[(uintptr_t)words % WEB_NUMBERS];
    if (known->words != words) {
        char lower[COMMAND_FULL_NAME_MAX];
        size_t size = strcspn(words, " ");
        for (size_t i = 0; i < size; i++) {
            lower[i] = bytes_lower(words[i]);
        }
        uint32_t number = command_find_original((struct bytes){.at = lower, .size = size});
        CHECK(number != COMMAND_NONE);
        *known = (struct web_number){.words = words, .number = number};
    }
    return known->number;
}

void web_query_command(struct web_query *query, const char *words, ...) {
    CHECK(query->command_count < WEB_COMMANDS_MAX);
    size_t size = strcspn(words, " ");
    query->commands[query->command_count++] = (struct web_command){
        .number = web_query_first_number(query->web, words), .end = query->word_count};
    size_t first = strcspn(words, "| ");
    web_query_word(query, (struct bytes){.at = words, .size = first});
    if (first < size) {
        web_query_word(query, (struct bytes){.at = words + first + 1, .size = size - first - 1});
    }
    va_list arguments;
    va_start(arguments, words);
    web_query_add_words(query, words + size + (words[size] == ' '), &arguments);
    va_end(arguments);
}

bool web_query_number(struct web_query *query, const char *name, int64_t lowest, int64_t highest,
                      int64_t otherwise, int64_t *number) {
    struct bytes text = http_request_parameter(&query->target, name);
    *number = otherwise;
    if (text.at == NULL) {
        return true;
    }
    if (!bytes_parse_i64(text, number) || *number < lowest || *number > highest) {
        web_query_error(query, 400, "%s is a number from %lld to %lld", name, (long long)lowest,
                        (long long)highest);
        return false;
    }
    return true;
}

void web_query_count(struct web_query *query) {
    if (query->where_count > 0) {
        web_query_command(query, "LB.COUNT $board $where");
    }
}

unsigned web_query_own_replies(const struct web_query *query) {
    return query->reply_count - (query->where_count > 0);
}

/* ---- what a route keeps from round to round ---- */

struct value_reader web_query_kept_behind(const struct web_query *query, unsigned count) {
    struct value_reader at = web_query_kept(query);
    for (unsigned i = 0; i < count; i++) {
        value_skip(&at);
    }
    return at;
}

void web_query_keep(struct web_query *query, struct bytes text) {
    char head[64];
    int size = snprintf(head, sizeof head, "$%zu\r\n", text.size);
    buffer_append(&query->kept, head, (size_t)size);
    buffer_append(&query->kept, text.at, text.size);
    buffer_append(&query->kept, "\r\n", 2);
}

/* ---- rounds ---- */

static void web_query_finish(struct web_query *query) {
    query->state = WEB_QUERY_DONE;
    query->done(query);
}

static void web_query_begin_round(struct web_query *query) {
    query->command_count = query->word_count = query->reply_count = 0;
    query->scan.cursor_word = query->scan.pattern_word = 0;
    buffer_clear(&query->texts);
    buffer_clear(&query->replies);
    if (query->route->command != NULL) {
        web_query_command(query, query->route->command);
    } else if (query->route->ask != NULL && !query->route->ask(query)) {
        web_query_finish(query);
        return;
    }
    web_query_put(query->web, query);
}

/* Of the hashes that web-public names, everybody sees the fields of web-data, and not what else is in them. */
static bool web_query_is_other_data(const struct web_query *query) {
    const struct web *web = query->web;
    if (!query->user.is_public || query->data.pattern.at == NULL) {
        return false;
    }
    for (unsigned i = 0; i < query->data.count; i++) {
        unsigned k = 0;
        while (k < web->data.count && !bytes_equal(query->data.fields[i], web->data.fields[k])) {
            k++;
        }
        if (k == web->data.count) {
            return true;
        }
    }
    return web->data.pattern.at == NULL || !bytes_equal(query->data.pattern, web->data.pattern);
}

static bool web_query_is_refused(struct web_query *query) {
    if (query->route->is_for_all && !query->identity.is_by_header) {
        return false;
    }
    switch (query->verdict) {
    case WEB_ALLOWED:
        break;
    case WEB_LOGIN_NEEDED:
        if (query->fault != NULL) {
            web_query_error(query, 401, WEB_TOKEN_REFUSED, query->fault);
        } else {
            web_query_error(query, 401, "log in to %s this", query->route->writes ? "do" : "see");
        }
        return true;
    case WEB_NOT_FROM_THERE:
        web_query_error(query, 403, HTTP_LOCAL_ALONE ", but for boards that web-public names",
                        query->address);
        return true;
    case WEB_WITHOUT_TLS:
        web_query_error(query, 403, WEB_TLS_NEEDED, query->address);
        return true;
    case WEB_LOADING:
        web_query_error(
            query, 503,
            query->route->writes
                ? "the server loads its boards, or has just taken over others: it is not "
                  "known whether this was done"
                : "the server loads its boards, or has just taken over others");
        return true;
    case WEB_LATER:
        break;
    }
    if (web_query_is_other_data(query)) {
        web_query_error(query, 401, "log in to see other data than that of web-data");
        return true;
    }
    if (query->replies.is_broken) {
        web_query_error(query, 413, "the reply is too long: ask for fewer rows with count=N");
        return true;
    }
    return false;
}

bool web_query_print(struct web_query *query) {
    query->web->entries.map.at = NULL; /* of other replies */
    return query->route->print(query);
}

static void web_query_on_answer(void *context, struct ask *ask) {
    struct web_query *query = (struct web_query *)ask;
    struct web *web = context;
    query->state = WEB_QUERY_NEW;
    web->budgets_ns[query->is_view] += EXPECTED_NS - (int64_t)query->elapsed_ns;
    web->answered_ns += query->elapsed_ns;
    if (query->is_left) {
        web_query_destroy(query);
        return;
    }
    if (query->verdict == WEB_LATER) {
        web_query_put_again(web, query);
        return;
    }
    /* The replies did not fit: room for more, and the round once more, if it has written nothing. */
    size_t size = query->replies.size_max * REPLIES_GROWTH;
    if (query->verdict == WEB_ALLOWED && query->replies.is_broken && !query->has_changed &&
        query->replies.size_max < WEB_REPLIES_MAX &&
        web_query_make_room(query, size < WEB_REPLIES_MAX ? size : WEB_REPLIES_MAX)) {
        web_query_begin_round(query);
        return;
    }
    if (web_query_is_refused(query) || query->is_unchanged) {
        web_query_finish(query);
        return;
    }
    /* web-data names hashes that this user may not read, or SINCE a board that he may not, or that has not the tags of
     * the group: the round once more without them. */
    bool is_forbidden = false, has_no_tag = false;
    for (unsigned i = 0; i < query->reply_count; i++) {
        is_forbidden |= web_query_is_forbidden(query, i);
        has_no_tag |= query->commands[i].cause == REPLY_NO_TAG;
    }
    if (query->data.is_default && is_forbidden) {
        query->data = (struct web_data){.count = 0};
        web_query_begin_round(query);
        return;
    }
    if (query->since.at != NULL && (is_forbidden || has_no_tag)) {
        query->since = (struct bytes){.at = NULL};
        web_query_begin_round(query);
        return;
    }
    bool is_error = !query->route->takes_errors && web_query_replies_have_error(query);
    bool has_more = !is_error && web_query_print(query);
    if (query->out.is_broken || query->kept.is_broken) {
        web_query_error(query, 413, "the reply is too long: ask for fewer rows with count=N");
    } else if (has_more) {
        query->round++;
        web_query_begin_round(query);
        return;
    }
    web_query_finish(query);
}

void web_query_run(struct web_query *query) {
    query->ask = (struct ask){.answer = web_engine_answer, .done = web_query_on_answer};
    query->round = query->more = 0;
    query->scan = (struct web_scan){.cursor = 0};
    query->status = 200;
    buffer_clear(&query->out);
    buffer_clear(&query->kept);
    query->json = web_json(&query->out);
    web_query_begin_round(query);
}

/* ---- from a target to a query ---- */

enum { FIRST = 2 /* of the path, behind api and v1 */ };

/* ?hash=PATTERN&data=FIELD,FIELD, or what web-data says. */
static bool web_query_read_data(struct web_query *query) {
    const struct web *web = query->web;
    struct bytes pattern = http_request_parameter(&query->target, "hash");
    struct bytes fields = http_request_parameter(&query->target, "data");
    query->data = web->data;
    query->data.is_default = web->data.pattern.at != NULL;
    if (fields.at == NULL && pattern.at == NULL) {
        return true;
    }
    query->data.is_default = false;
    query->data.count = 0;
    if (pattern.at != NULL) {
        query->data.pattern = pattern;
    }
    if (fields.at != NULL && fields.size == 0 && pattern.at == NULL) {
        query->data.pattern = (struct bytes){.at = NULL}; /* none wanted */
        return true;
    }
    if (fields.size == 0 || query->data.pattern.at == NULL) {
        web_query_error(query, 400,
                        "hash=PATTERN, in which * stands for the member, and data=FIELD,FIELD go "
                        "together");
        return false;
    }
    for (const char *at = fields.at, *end = at + fields.size; at < end;) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        struct bytes field = {.at = at, .size = (size_t)((comma != NULL ? comma : end) - at)};
        if (query->data.count == WEB_FIELDS_MAX) {
            web_query_error(query, 400, "data has at most %d fields", WEB_FIELDS_MAX);
            return false;
        }
        query->data.fields[query->data.count++] = field;
        at += field.size + 1;
    }
    return true;
}

/* ?where=TAG:VALUE, as often as it is there, ?tags=1, ?rating=1 and ?since=BOARD. */
static bool web_query_read_tags(struct web_query *query) {
    int64_t has_tags, has_rating;
    if (!web_query_number(query, "tags", 0, 1, 0, &has_tags) ||
        !web_query_number(query, "rating", 0, 1, 0, &has_rating)) {
        return false;
    }
    query->has_tags = has_tags != 0;
    query->has_rating = has_rating != 0;
    struct bytes since = http_request_parameter(&query->target, "since");
    query->since = since.size > 0 ? since : (struct bytes){.at = NULL};
    for (unsigned i = 0; i < query->target.parameter_count; i++) {
        struct bytes text = query->target.parameters[i].value;
        if (!bytes_equal(query->target.parameters[i].name, BYTES("where"))) {
            continue;
        }
        const char *colon = text.size > 0 ? memchr(text.at, ':', text.size) : NULL;
        if (colon == NULL) {
            web_query_error(query, 400, "where is TAG:VALUE, as in where=country:DE");
            return false;
        }
        struct web_where where = {.tag = {.at = text.at, .size = (size_t)(colon - text.at)}};
        where.value = (struct bytes){.at = colon + 1, .size = text.size - where.tag.size - 1};
        if (where.value.size > TAG_VALUE_MAX) {
            web_query_error(query, 400, "where: a value of tag '%s' has at most %d bytes",
                            bytes_show(where.tag).text, TAG_VALUE_MAX);
            return false;
        }
        if (query->where_count == WEB_WHERES_MAX) {
            web_query_error(query, 400, "where is given at most %d times", WEB_WHERES_MAX);
            return false;
        }
        query->wheres[query->where_count++] = where;
    }
    return true;
}

bool web_query_parse(struct web_query *query, const struct web_route *route, const char *target) {
    size_t size = strlen(target);
    int64_t database;
    query->route = route;
    buffer_clear(&query->text);
    buffer_append(&query->text, target, size + 1);
    if (query->text.is_broken) {
        web_query_error(query, 503, "out of memory");
        return false;
    }
    const char *wrong = http_request_parse_target(query->text.at, &query->target);
    if (wrong != NULL) {
        web_query_error(query, 400, "%s", wrong);
        return false;
    }
    if (route == NULL) {
        web_query_error(query, 404, "there is no such path: /api/v1/openapi.json lists all");
        return false;
    }
    if (!web_query_number(query, "db", 0, REGISTRY_DATABASES - 1, 0, &database) ||
        (!query->route->writes && (!web_query_read_data(query) || !web_query_read_tags(query)))) {
        return false;
    }
    query->database = (uint8_t)database;
    if (query->target.segment_count > FIRST + 1) {
        query->board = query->target.segments[FIRST + 1];
    }
    if (query->target.segment_count > FIRST + 3) {
        query->member = query->target.segments[FIRST + 3];
    } else if (route->has_no_board) {
        query->member = query->board;
    } else if (route->is_of_member) {
        const struct jwt_claims *claims = &query->identity.player.claims;
        query->is_of_player = true;
        query->member = (struct bytes){.at = claims->player, .size = claims->player_size};
        if (!query->identity.is_player) {
            web_query_error(query, 401, "only a player's token says who is asked for");
            return false;
        }
    }
    if (query->route->needs_figures) {
        query->figures = memory_allocate_zeroed(figures_size(command_count()));
        if (query->figures == NULL) {
            web_query_error(query, 503, "out of memory");
            return false;
        }
    }
    return true;
}
