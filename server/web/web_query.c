/* See web_query.h. */
#include "server/web/web_query.h"

#include <stdarg.h>
#include <stdio.h>

#include "codec/tag.h"
#include "server/acl/acl_check.h"
#include "server/acl/acl_rules.h"
#include "server/dispatch/command.h"
#include "server/dispatch/commit_wait.h"
#include "server/dispatch/execute.h"
#include "server/dispatch/login.h"
#include "server/durability/persistence.h"

enum { TEXTS_MAX = 8192, REPLIES_FIRST = 16 * 1024, REPLIES_GROWTH = 8 };

/* ---- beginning and end ---- */

static void web_query_give_room(struct web_query *query) {
    web_give_memory(query->web, query->room);
    query->room = 0;
    buffer_deinit(&query->replies);
}

bool web_query_make_room(struct web_query *query, size_t size) {
    size_t room = size > REPLIES_FIRST ? size : 0;
    struct buffer replies;
    buffer_init(&replies, size);
    if (!web_take_memory(query->web, room)) {
        return false;
    }
    if (buffer_reserve(&replies, size) == NULL) {
        web_give_memory(query->web, room);
        return false;
    }
    web_query_give_room(query);
    query->replies = replies;
    query->room = room;
    return true;
}

struct web_query *web_query_create(struct web *web) {
    struct web_query *query = memory_allocate_zeroed(sizeof *query);
    if (query == NULL) {
        return NULL;
    }
    query->web = web;
    query->status = 200;
    buffer_init(&query->texts, TEXTS_MAX);
    buffer_init(&query->kept, WEB_REPLIES_MAX);
    buffer_init(&query->out, WEB_JSON_MAX);
    query->json = web_json(&query->out);
    query->commands = query->own_commands;
    query->words = query->own_words;
    if (!web_query_make_room(query, REPLIES_FIRST) ||
        buffer_reserve(&query->texts, TEXTS_MAX) == NULL) {
        buffer_deinit(&query->replies);
        buffer_deinit(&query->texts);
        memory_free(query);
        return NULL;
    }
    return query;
}

void web_query_destroy(struct web_query *query) {
    if (query->is_counted) {
        atomic_fetch_sub(&query->web->write_count, 1);
    }
    buffer_deinit(&query->texts);
    web_query_give_room(query);
    buffer_deinit(&query->kept);
    buffer_deinit(&query->out);
    memory_free(query->figures);
    memory_free(query->text);
    web_write_deinit(query);
    memory_free(query);
}

void web_query_leave(struct web_query *query) {
    if (query->state == WEB_QUERY_WAITS) {
        web_take_back(query->web, query);
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
    {415, "unsupported_type", "The body is of another type"},
    {421, "misdirected", "The request is for another server"},
    {422, "unprocessable", "The request cannot be carried out"},
    {429, "too_many", "There are too many requests"},
    {501, "not_implemented", "This part of HTTP is not there"},
    {503, "busy", "This is not possible now"},
    {500, "busy", "The server has failed"}, /* last: any other */
};

void web_put_problem(struct json *json, unsigned status, struct bytes detail, struct bytes redis) {
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
}

static void web_query_fail(struct web_query *query, unsigned status, struct bytes detail,
                           struct bytes redis) {
    buffer_clear(&query->out);
    query->json = web_json(&query->out);
    query->status = status;
    web_put_problem(&query->json, status, detail, redis);
    if (query->route != NULL && query->route->writes) {
        web_write_put_failure(query);
    }
    json_close(&query->json, '}');
}

void web_error(struct web_query *query, unsigned status, const char *format, ...) {
    char text[HTTP_ERROR_MAX];
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    (void)size;
    web_query_fail(query, status, bytes_from_text(text), (struct bytes){.at = NULL});
}

struct value_reader web_reply(const struct web_query *query, unsigned nth) {
    CHECK(nth < query->reply_count);
    size_t begin = nth > 0 ? query->commands[nth - 1].reply_end : 0;
    return (struct value_reader){.at = query->replies.at + begin,
                                 .end = query->replies.at + query->commands[nth].reply_end};
}

static bool web_query_begins(struct bytes text, const char *word) {
    size_t size = strlen(word);
    return text.size >= size && memcmp(text.at, word, size) == 0;
}

/* What an error of a command is in HTTP. Behind the last row: ERR, and others. */
static const struct web_refusal {
    const char *begins;
    unsigned status;
    const char *text; /* in place of the command's; NULL: that */
} refusals[] = {
    {"NOPERM", 403, NULL},
    {"ERR no such key", 404, "there is no such board"},
    {"WRONGTYPE", 404, "this key is no board"},
    {"BANNED", 403, NULL},
    {"FROZEN", 409, NULL},
    {"CLOSED", 409, NULL},
    {"BUSYKEY", 409, NULL},
    {"BUSY", 503, NULL},
    {"LOADING", 503, NULL},
    {"OOM", 503, NULL},
    {"READONLY", 503, NULL},
    {"NOREPLICAS", 503, NULL},
    {"MASTERDOWN", 503, NULL},
    {"NOMASTERLINK", 503, NULL},
    {"MISCONF", 503, NULL},
    {"TRYAGAIN", 503, NULL},
};

static void web_query_refuse(struct web_query *query, struct bytes text) {
    struct bytes rest = text;
    struct bytes prefix = bytes_take_word(&rest);
    bool writes = query->route != NULL && query->route->writes;
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        const struct web_refusal *refusal = &refusals[i];
        if (web_query_begins(text, refusal->begins)) {
            bool is_missing = refusal->status == 404 && bytes_equal(prefix, BYTES("ERR"));
            bool is_conflict = writes && refusal->status == 404 && !is_missing;
            char more[HTTP_ERROR_MAX];
            if (writes && is_missing) {
                struct bytes which = bytes_behind(text, strlen(refusal->begins));
                snprintf(more, sizeof more,
                         "%s%.*s: LB.CREATE makes one, and create=1 in the query", refusal->text,
                         bytes_shown_size(which, HTTP_ERROR_MAX / 2), which.at);
            }
            web_query_fail(query, is_conflict ? 409 : refusal->status,
                           writes && is_missing    ? bytes_from_text(more)
                           : refusal->text != NULL ? bytes_from_text(refusal->text)
                                                   : text,
                           prefix);
            return;
        }
    }
    web_query_fail(query, writes ? 422 : 400, text, prefix);
}

bool web_reply_is_error(struct web_query *query, unsigned nth) {
    struct value_reader reader = web_reply(query, nth);
    struct value value = value_next(&reader);
    if (value.kind != VALUE_ERROR) {
        return false;
    }
    if (web_query_begins(value.text, "NOPERM") && query->identity.kind == WEB_ANYBODY &&
        query->user.is_public) {
        web_error(query, 401, "log in to do this");
    } else {
        web_query_refuse(query, value.text);
    }
    return true;
}

bool web_replies_have_error(struct web_query *query) {
    bool has_error = false;
    for (unsigned i = 0; i < query->reply_count && !has_error; i++) {
        has_error = web_reply_is_error(query, i);
    }
    return has_error;
}

/* ---- commands ---- */

void web_word(struct web_query *query, struct bytes word) {
    CHECK(query->word_count < WEB_WORDS_MAX && query->words == query->own_words);
    query->words[query->word_count++] = word;
    query->commands[query->command_count - 1].end = query->word_count;
}

struct bytes web_word_copy(struct web_query *query, struct bytes bytes) {
    char *at = buffer_reserve(&query->texts, bytes.size + 1);
    CHECK(at != NULL);
    if (bytes.size > 0) {
        memcpy(at, bytes.at, bytes.size);
    }
    buffer_commit(&query->texts, bytes.size);
    return (struct bytes){.at = at, .size = bytes.size};
}

static void web_query_add_number(struct web_query *query, int64_t number) {
    char text[BYTES_INTEGER_TEXT_MAX];
    size_t size = bytes_print_i64(text, number);
    web_word(query, web_word_copy(query, (struct bytes){.at = text, .size = size}));
}

static void web_query_add_cursor(struct web_query *query) {
    char text[BYTES_INTEGER_TEXT_MAX];
    size_t size = bytes_print_u64(text, query->scan.cursor);
    query->scan.cursor_word = query->word_count;
    web_word(query, web_word_copy(query, (struct bytes){.at = text, .size = size}));
}

/* DATA pattern FIELDS n field ..., if the query has any. */
static void web_query_add_data(struct web_query *query) {
    if (query->data.pattern.at == NULL) {
        return;
    }
    web_words(query, "DATA $ FIELDS #", query->data.pattern, (int64_t)query->data.count);
    for (unsigned i = 0; i < query->data.count; i++) {
        web_word(query, query->data.fields[i]);
    }
}

static void web_query_add_words(struct web_query *query, const char *words, va_list *arguments) {
    for (size_t size; (size = strcspn(words, " ")) > 0; words += size + (words[size] == ' ')) {
        struct bytes word = {.at = words, .size = size};
        if (bytes_equal(word, BYTES("#"))) {
            web_query_add_number(query, va_arg(*arguments, int64_t));
        } else if (bytes_equal(word, BYTES("$"))) {
            web_word(query, va_arg(*arguments, struct bytes));
        } else if (bytes_equal(word, BYTES("$board"))) {
            web_word(query, query->board);
        } else if (bytes_equal(word, BYTES("$member"))) {
            web_word(query, query->member);
        } else if (bytes_equal(word, BYTES("$data"))) {
            web_query_add_data(query);
        } else if (bytes_equal(word, BYTES("$where"))) {
            /* WHERE tag value ..., if a group is asked for. */
            for (unsigned i = 0; i < query->where_count; i++) {
                web_words(query, "WHERE $ $", query->wheres[i].tag, query->wheres[i].value);
            }
        } else if (bytes_equal(word, BYTES("$tags"))) {
            if (query->has_tags) {
                web_word(query, BYTES("TAGS"));
            }
        } else if (bytes_equal(word, BYTES("$since"))) {
            if (query->since.at != NULL) {
                web_words(query, "SINCE $", query->since);
            }
        } else if (bytes_equal(word, BYTES("$cursor"))) {
            web_query_add_cursor(query);
        } else if (bytes_equal(word, BYTES("$pattern"))) {
            query->scan.pattern_word = query->word_count;
            web_word(query, BYTES("*"));
        } else {
            web_word(query, word);
        }
    }
}

void web_words(struct web_query *query, const char *words, ...) {
    va_list arguments;
    va_start(arguments, words);
    web_query_add_words(query, words, &arguments);
    va_end(arguments);
}

uint32_t web_command_number(struct bytes full_name) {
    char lower[COMMAND_FULL_NAME_MAX];
    for (size_t i = 0; i < full_name.size; i++) {
        lower[i] = bytes_lower(full_name.at[i]);
    }
    uint32_t number = command_find_original((struct bytes){.at = lower, .size = full_name.size});
    CHECK(number != COMMAND_NONE);
    return number;
}

void web_command(struct web_query *query, const char *words, ...) {
    CHECK(query->command_count < WEB_COMMANDS_MAX);
    size_t size = strcspn(words, " ");
    uint32_t number = web_command_number((struct bytes){.at = words, .size = size});
    query->commands[query->command_count++] =
        (struct web_command){.number = number, .end = query->word_count};
    size_t first = strcspn(words, "| ");
    web_word(query, (struct bytes){.at = words, .size = first});
    if (first < size) {
        web_word(query, (struct bytes){.at = words + first + 1, .size = size - first - 1});
    }
    va_list arguments;
    va_start(arguments, words);
    web_query_add_words(query, words + size + 1, &arguments);
    va_end(arguments);
}

bool web_number(struct web_query *query, const char *name, int64_t lowest, int64_t highest,
                int64_t otherwise, int64_t *number) {
    struct bytes text = http_target_find(&query->target, name);
    *number = otherwise;
    if (text.at == NULL) {
        return true;
    }
    if (!bytes_parse_i64(text, number) || *number < lowest || *number > highest) {
        web_error(query, 400, "%s is a number from %lld to %lld", name, (long long)lowest,
                  (long long)highest);
        return false;
    }
    return true;
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
    if (!query->route->ask(query)) {
        web_query_finish(query);
        return;
    }
    web_put(query->web, query);
}

/* The replies did not fit: room for more, and the round once more, if it has written nothing. false: they are too
 * long. */
static bool web_query_try_with_more_room(struct web_query *query) {
    size_t size = query->replies.size_max * REPLIES_GROWTH;
    if (!query->replies.is_broken || query->has_changed ||
        query->replies.size_max >= WEB_REPLIES_MAX ||
        !web_query_make_room(query, size < WEB_REPLIES_MAX ? size : WEB_REPLIES_MAX)) {
        return false;
    }
    web_query_begin_round(query);
    return true;
}

/* web-data names hashes that this user may not read: the round once more without them. false: that is not why. */
static bool web_query_try_without_data(struct web_query *query) {
    if (!query->data.is_default) {
        return false;
    }
    for (unsigned i = 0; i < query->reply_count; i++) {
        struct value_reader reader = web_reply(query, i);
        struct value value = value_next(&reader);
        if (value.kind == VALUE_ERROR && web_query_begins(value.text, "NOPERM")) {
            query->data = (struct web_data){.count = 0};
            web_query_begin_round(query);
            return true;
        }
    }
    return false;
}

/* The same where the board of SINCE may not be read, or has not the tags of the group. */
static bool web_query_try_without_since(struct web_query *query) {
    if (query->since.at == NULL) {
        return false;
    }
    for (unsigned i = 0; i < query->reply_count; i++) {
        struct value_reader reader = web_reply(query, i);
        struct value value = value_next(&reader);
        if (value.kind == VALUE_ERROR && (web_query_begins(value.text, "NOPERM") ||
                                          web_query_begins(value.text, "ERR no tag"))) {
            query->since = (struct bytes){.at = NULL};
            web_query_begin_round(query);
            return true;
        }
    }
    return false;
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
        web_error(query, 401, "log in to %s this", query->route->writes ? "do" : "see");
        return true;
    case WEB_NOT_FROM_THERE:
        web_error(query, 403,
                  "not from %s: without a password (requirepass) only this machine is let in, and "
                  "nobody through a proxy, while protected-mode is on, but for boards that "
                  "web-public names",
                  query->address);
        return true;
    case WEB_WITHOUT_TLS:
        web_error(query, 403, WEB_TLS_NEEDED, query->address);
        return true;
    case WEB_LOADING:
        web_error(query, 503,
                  query->route->writes
                      ? "the server loads its boards, or has just taken over others: it is not "
                        "known whether this was done"
                      : "the server loads its boards, or has just taken over others");
        return true;
    case WEB_LATER:
        break;
    }
    if (web_query_is_other_data(query)) {
        web_error(query, 401, "log in to see other data than that of web-data");
        return true;
    }
    if (query->replies.is_broken) {
        web_error(query, 413, "the reply is too long: ask for fewer rows with count=N");
        return true;
    }
    return false;
}

static void web_query_on_answer(void *context, struct ask *ask) {
    struct web_query *query = (struct web_query *)ask;
    struct web *web = context;
    query->state = WEB_QUERY_NEW;
    web_note_answer(web, query);
    if (query->is_left) {
        web_query_destroy(query);
        return;
    }
    if (query->verdict == WEB_LATER) {
        web_put_again(web, query);
        return;
    }
    if (query->verdict == WEB_ALLOWED && web_query_try_with_more_room(query)) {
        return;
    }
    if (web_query_is_refused(query) || query->is_unchanged) {
        web_query_finish(query);
        return;
    }
    if (web_query_try_without_data(query) || web_query_try_without_since(query)) {
        return;
    }
    bool has_more = query->route->print(query);
    if (query->out.is_broken || query->kept.is_broken) {
        web_error(query, 413, "the reply is too long: ask for fewer rows with count=N");
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

static bool web_query_set_fields(struct web_query *query, struct bytes text) {
    const char *end = text.at + text.size;
    for (const char *at = text.at; at < end;) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        struct bytes field = {.at = at, .size = (size_t)((comma != NULL ? comma : end) - at)};
        if (query->data.count == WEB_FIELDS_MAX) {
            web_error(query, 400, "data has at most %d fields", WEB_FIELDS_MAX);
            return false;
        }
        query->data.fields[query->data.count++] = field;
        at += field.size + 1;
    }
    return true;
}

/* ?hash=PATTERN&data=FIELD,FIELD, or what web-data says. */
static bool web_query_read_data(struct web_query *query) {
    const struct web *web = query->web;
    struct bytes pattern = http_target_find(&query->target, "hash");
    struct bytes fields = http_target_find(&query->target, "data");
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
        web_error(query, 400,
                  "hash=PATTERN, in which * stands for the member, and data=FIELD,FIELD go "
                  "together");
        return false;
    }
    return web_query_set_fields(query, fields);
}

static bool web_query_add_where(struct web_query *query, struct bytes text) {
    const char *colon = text.size > 0 ? memchr(text.at, ':', text.size) : NULL;
    if (colon == NULL) {
        web_error(query, 400, "where is TAG:VALUE, as in where=country:DE");
        return false;
    }
    struct web_where where = {.tag = {.at = text.at, .size = (size_t)(colon - text.at)}};
    where.value = (struct bytes){.at = colon + 1, .size = text.size - where.tag.size - 1};
    if (where.value.size > TAG_VALUE_MAX) {
        web_error(query, 400, "where: a value of tag '%s' has at most %d bytes",
                  bytes_show(where.tag).text, TAG_VALUE_MAX);
        return false;
    }
    if (query->where_count == WEB_WHERES_MAX) {
        web_error(query, 400, "where is given at most %d times", WEB_WHERES_MAX);
        return false;
    }
    query->wheres[query->where_count++] = where;
    return true;
}

/* ?where=TAG:VALUE, as often as it is there, ?tags=1 and ?since=BOARD. */
static bool web_query_read_tags(struct web_query *query) {
    int64_t has_tags;
    if (!web_number(query, "tags", 0, 1, 0, &has_tags)) {
        return false;
    }
    query->has_tags = has_tags != 0;
    struct bytes since = http_target_find(&query->target, "since");
    query->since = since.size > 0 ? since : (struct bytes){.at = NULL};
    for (unsigned i = 0; i < query->target.parameter_count; i++) {
        const struct http_parameter *parameter = &query->target.parameters[i];
        if (bytes_equal(parameter->name, BYTES("where")) &&
            !web_query_add_where(query, parameter->value)) {
            return false;
        }
    }
    return true;
}

bool web_query_parse(struct web_query *query, enum http_method method, const char *target) {
    size_t size = strlen(target);
    int64_t database;
    query->text = memory_allocate(size + 1);
    if (query->text == NULL) {
        web_error(query, 503, "out of memory");
        return false;
    }
    memcpy(query->text, target, size + 1);
    const char *wrong = http_target_parse(query->text, &query->target);
    if (wrong != NULL) {
        web_error(query, 400, "%s", wrong);
        return false;
    }
    const struct web_operation *operation = web_find_operation(method, &query->target);
    query->route = operation != NULL ? operation->route : NULL;
    if (query->route == NULL) {
        web_error(query, 404, "there is no such path: docs/web.md lists them");
        return false;
    }
    if (!web_number(query, "db", 0, REGISTRY_DATABASES - 1, 0, &database) ||
        (!query->route->writes && (!web_query_read_data(query) || !web_query_read_tags(query)))) {
        return false;
    }
    query->database = (uint8_t)database;
    if (query->target.segment_count > FIRST + 1) {
        query->board = query->target.segments[FIRST + 1];
    }
    if (query->target.segment_count > FIRST + 3) {
        query->member = query->target.segments[FIRST + 3];
    }
    if (query->route->needs_figures) {
        query->figures = memory_allocate_zeroed(figures_size(command_count()));
        if (query->figures == NULL) {
            web_error(query, 503, "out of memory");
            return false;
        }
    }
    return true;
}

/* ---- the engine's side: users, and their commands ----
 *
 * A session lives as long as one question: it is in no list of the server's, so it cannot wait, subscribe or be killed,
 * and the commands that the page sends do none of that. */

static const char *const public_rules[] = {
    "on",         "resetchannels", "-@all",           "+lb.range", "+lb.get",
    "+lb.around", "+lb.hist",      "+lb.quantile",    "+lb.info",  "+lb.list",
    "+lb.count",  "+zscan",        "+lb.league|info",
};

static bool web_query_apply(struct acl_user *user, struct bytes rule, char *error) {
    enum acl_status status = acl_rules_apply(user, rule, false);
    if (status != ACL_OK) {
        snprintf(error, HTTP_ERROR_MAX, "web-public: %s: '%s'", acl_rules_status_text(status),
                 bytes_show(rule).text);
    }
    return status == ACL_OK;
}

static bool web_query_add_patterns(struct acl_user *user, const char *patterns, char *error) {
    char rule[ACL_TEXT_MAX + 8];
    while (*(patterns += strspn(patterns, " ")) != '\0') {
        size_t size = strcspn(patterns, " ");
        int printed = snprintf(rule, sizeof rule, "%%R~%.*s", (int)size, patterns);
        if (printed >= (int)sizeof rule) {
            snprintf(error, HTTP_ERROR_MAX, "web-public: a pattern is too long: at most %d bytes",
                     ACL_TEXT_MAX);
            return false;
        }
        bool is_all = size == 1 && patterns[0] == '*';
        if (is_all) {
            return web_query_apply(user, BYTES("%R~*"), error);
        }
        if (!web_query_apply(user, (struct bytes){.at = rule, .size = (size_t)printed}, error)) {
            return false;
        }
        patterns += size;
    }
    return true;
}

bool web_engine_init(struct web_engine *engine, struct server *server, char *error) {
    const char *patterns = server->settings.web_public;
    *engine = (struct web_engine){.server = server,
                                  .info = web_command_number(BYTES("info")),
                                  .slowlog_get = web_command_number(BYTES("slowlog|get"))};
    if (patterns == NULL || patterns[strspn(patterns, " ")] == '\0') {
        return true;
    }
    struct acl_user *user = acl_user_create(BYTES("(web-public)"), false);
    bool is_fine = user != NULL;
    snprintf(error, HTTP_ERROR_MAX, "web-public: out of memory");
    for (size_t i = 0; is_fine && i < sizeof public_rules / sizeof public_rules[0]; i++) {
        is_fine = web_query_apply(user, bytes_from_text(public_rules[i]), error);
    }
    if (!is_fine || !web_query_add_patterns(user, patterns, error) || !acl_user_finish(user)) {
        if (user != NULL) {
            acl_user_destroy(user);
        }
        return false;
    }
    engine->public_user = user;
    return true;
}

void web_engine_deinit(struct web_engine *engine) {
    if (engine->public_user != NULL) {
        acl_user_destroy(engine->public_user);
    }
}

/* NULL: nobody; the verdict says why. */
static struct acl_user *web_query_find_user(const struct web_engine *engine,
                                            struct web_query *query) {
    struct server *server = engine->server;
    const struct web_identity *identity = &query->identity;
    if (identity->kind == WEB_SELF) {
        return server->acl.users.default_user;
    }
    if (identity->kind == WEB_USER && identity->is_exposed && server->settings.protected_mode) {
        query->verdict = WEB_WITHOUT_TLS;
        return NULL;
    }
    if (identity->kind == WEB_USER) {
        struct acl_users *users = &server->acl.users;
        struct acl_user *user = identity->is_token
                                    ? acl_tokens_find(&users->tokens, identity->digest)
                                    : acl_users_find(users, bytes_from_text(identity->user));
        bool is_right =
            identity->is_token || (user != NULL && acl_user_has_password(user, identity->digest));
        query->verdict = WEB_LOGIN_NEEDED;
        query->user.is_known = true;
        return is_right && user != NULL && user->is_on ? user : NULL;
    }
    if (!server_has_password(server) && (identity->is_local || !server->settings.protected_mode)) {
        query->user.is_known = true;
        return server->acl.users.default_user;
    }
    query->user.is_public = engine->public_user != NULL;
    query->verdict = server_has_password(server) ? WEB_LOGIN_NEEDED : WEB_NOT_FROM_THERE;
    return engine->public_user;
}

static bool web_query_may_run(const struct acl_user *user, uint32_t number,
                              const struct bytes *words, uint32_t count) {
    const struct request request = {.args = words, .count = count};
    uint32_t position;
    return acl_check(user, number, &request, &position) == ACL_ALLOWED;
}

static void web_query_describe_user(const struct web_engine *engine, const struct acl_user *user,
                                    struct web_query *query) {
    const struct bytes info[] = {BYTES("INFO")};
    const struct bytes slowlog[] = {BYTES("SLOWLOG"), BYTES("GET")};
    query->user.may_see_server =
        query->identity.kind == WEB_SELF ||
        (!query->user.is_public && web_query_may_run(user, engine->info, info, 1));
    query->user.may_see_slowlog =
        !query->user.is_public && web_query_may_run(user, engine->slowlog_get, slowlog, 2);
    snprintf(query->user.shown, sizeof query->user.shown, "%.*s", (int)user->name.size,
             user->name.at);
}

enum http_verdict web_engine_check_login(void *context, struct http_login *login) {
    struct web_engine *engine = context;
    struct acl_user *user;
    server_update_time(engine->server);
    if (engine->server->settings.protected_mode && !login->is_local && !login->is_secure) {
        return HTTP_LOGIN_REFUSED;
    }
    enum login_outcome outcome =
        login->is_token
            ? login_try_token(engine->server, login->address, bytes_from_text(login->password),
                              &user, &login->retry_ms)
            : login_try_address(engine->server, login->address, bytes_from_text(login->user),
                                bytes_from_text(login->password), &user, &login->retry_ms);
    if (outcome == LOGIN_RIGHT && user->name.size >= sizeof login->user) {
        return HTTP_LOGIN_NEEDED; /* as with a password: no name of HTTP is as long */
    }
    if (outcome == LOGIN_RIGHT) {
        memcpy(login->user, user->name.at, user->name.size);
        login->user[user->name.size] = '\0';
    }
    return outcome == LOGIN_RIGHT   ? HTTP_LOGIN_OK
           : outcome == LOGIN_WRONG ? HTTP_LOGIN_NEEDED
                                    : HTTP_LOGIN_TOO_SOON;
}

/* A pattern of keys that the user may read: the nth, over all selectors. Sets how many there are. */
static void web_query_choose_pattern(const struct acl_user *user, struct web_query *query) {
    unsigned count = 0;
    struct bytes chosen = BYTES("*");
    for (uint32_t i = 0; i < user->selector_count; i++) {
        const struct acl_selector *selector = user->selectors[i];
        if (selector->has_all_keys) {
            query->scan.pattern_count = 1;
            return;
        }
        for (uint32_t k = 0; k < selector->keys.list.count; k++) {
            const struct acl_text *pattern = &selector->keys.list.at[k];
            if ((pattern->value & ACL_READ) != 0 && count++ == query->scan.part) {
                chosen = pattern->text;
            }
        }
    }
    query->scan.pattern_count = count;
    if (chosen.size <= sizeof query->scan.pattern_text) {
        memcpy(query->scan.pattern_text, chosen.at, chosen.size);
        query->words[query->scan.pattern_word] =
            (struct bytes){.at = query->scan.pattern_text, .size = chosen.size};
    }
}

static void web_query_run_command(struct server *server, struct web_query *query, unsigned nth,
                                  struct session *session) {
    struct reply reply;
    unsigned begin = nth > 0 ? query->commands[nth - 1].end : 0;
    const struct request request = {
        .args = &query->words[begin],
        .count = query->commands[nth].end - begin,
    };
    reply_init(&reply, &query->replies, 3);
    session_shape_reply(session, &reply);
    server->ahead = NULL;
    server->command_begin_ticks = clock_ticks();
    session->value_count = query->commands[nth].value_count;
    execute_request(server, session, query->commands[nth].number, &request, &reply);
    CHECK(session->job == NULL);
    query->commands[query->reply_count++].reply_end = query->replies.size;
}

/* Take the cursor of the last reply for the next step. false: there is none, or it was the last step. */
static bool web_query_take_cursor(struct web_query *query) {
    if (query->replies.is_broken || query->reply_count == WEB_COMMANDS_MAX) {
        return false;
    }
    struct value_reader reader = web_reply(query, query->reply_count - 1);
    struct value list = value_next(&reader);
    struct value cursor = {.kind = VALUE_NULL};
    if (list.kind == VALUE_LIST && list.count > 0) {
        cursor = value_next(&reader);
    }
    if (cursor.kind != VALUE_TEXT || cursor.text.size > sizeof query->scan.cursor_text ||
        bytes_equal(cursor.text, BYTES("0"))) {
        return false;
    }
    memcpy(query->scan.cursor_text, cursor.text.at, cursor.text.size);
    query->words[query->scan.cursor_word] =
        (struct bytes){.at = query->scan.cursor_text, .size = cursor.text.size};
    return true;
}

static void web_query_run_commands(const struct web_engine *engine, struct web_query *query,
                                   struct session *session) {
    enum { SCAN_NS = 200000 };
    uint64_t begin_ticks = clock_ticks();
    query->reply_count = 0;
    bool is_over = false;
    for (unsigned i = 0; i < query->command_count && !is_over; i++) {
        size_t begin = query->replies.size;
        struct web_command *command = &query->commands[i];
        struct session_once once = {
            .route = {.at = (const char *)query->write.route, .size = sizeof query->write.route},
            .fingerprint = {.at = (const char *)command->fingerprint,
                            .size = sizeof command->fingerprint},
        };
        session->once = command->has_id ? &once : NULL;
        web_query_run_command(engine->server, query, i, session);
        session->once = NULL;
        command->is_repeated = once.is_repeated;
        query->retry_s = once.retry_s;
        is_over =
            query->route->writes && query->replies.size > begin && query->replies.at[begin] == '-';
    }
    while (query->scan.cursor_word > 0 && query->replies.size < query->scan.size_max &&
           clock_ticks_to_ns(clock_ticks() - begin_ticks) < SCAN_NS &&
           web_query_take_cursor(query)) {
        web_query_run_command(engine->server, query, 0, session);
    }
}

static bool web_query_must_be_held(const struct web_engine *engine, struct web_query *query) {
    struct server *server = engine->server;
    bool sees_boards = false;
    for (unsigned i = 0; i < query->command_count; i++) {
        sees_boards |= commit_wait_sees_boards(command_by_index(query->commands[i].number));
    }
    bool has_changed = query->has_changed && server->persistence != NULL;
    if (!has_changed && (!sees_boards || !commit_wait_holds_readers(server))) {
        return false;
    }
    query->held_for = persistence_last_group(server->persistence);
    return query->held_for > commit_wait_free_group(server);
}

/* What makes a client's write wait before it runs: a pause, or a journal that the disk holds up. Once the server is over
 * it waits for the end of the HTTP thread, which says so. */
static bool web_query_is_later(struct server *server, const struct web_query *query) {
    return query->route->writes &&
           (server->ending.is_over || server_pause(server) != SERVER_PAUSE_NONE ||
            (server->persistence != NULL && persistence_is_behind(server->persistence)));
}

static void web_query_execute(const struct web_engine *engine, struct web_query *query,
                              struct acl_user *user) {
    struct session session;
    session_init(&session, 0, engine->server->clock.monotonic_ms);
    session.protocol = 3;
    session.has_strings = true;
    session.database = query->database;
    session.is_no_touch = !query->route->writes;
    snprintf(session.address, sizeof session.address,
             strchr(query->address, ':') != NULL ? "[%s]:0" : "%s:0", query->address);
    server_set_user(engine->server, &session, user, true);
    if (query->scan.pattern_word > 0) {
        web_query_choose_pattern(user, query);
    }
    uint64_t effects_before = engine->server->durability.effect_count;
    web_query_run_commands(engine, query, &session);
    query->has_changed = engine->server->durability.effect_count != effects_before;
    session_deinit(&session);
    if (query->figures != NULL && query->user.may_see_server) {
        figures_take(engine->server, true, query->figures);
    }
}

bool web_engine_answer(void *context, struct ask *ask) {
    struct web_engine *engine = context;
    struct web_query *query = (struct web_query *)ask;
    uint64_t begin_ticks = clock_ticks();
    server_update_time(engine->server);
    query->verdict = WEB_ALLOWED;
    query->user = (struct web_user){
        .can_login = server_has_password(engine->server) || engine->server->acl.users.count > 1,
    };
    struct acl_user *user = web_query_find_user(engine, query);
    const struct replication *replication = &engine->server->replication;
    if (query->round == 0) {
        /* Both only grow: the sum is another one when either is. */
        query->change_count = engine->server->durability.change_count + replication->epoch;
        query->epoch = replication_answer_epoch(replication);
    }
    query->is_unchanged = false;
    if (user == NULL) {
        return true;
    }
    query->verdict = WEB_ALLOWED;
    if (!query->route->writes) {
        web_query_describe_user(engine, user, query);
    }
    if (query->has_seen && query->round == 0 && query->figures == NULL &&
        query->seen_change_count == query->change_count) {
        query->is_unchanged = true;
        return true;
    }
    bool is_outdated = query->epoch != replication_answer_epoch(replication);
    if (is_outdated || (engine->server->durability.is_loading && query->command_count > 0)) {
        query->verdict = WEB_LOADING;
        return true;
    }
    if (web_query_is_later(engine->server, query)) {
        enum { LATER_NS = 20000 }; /* asking again is at a pace, too */
        query->verdict = WEB_LATER;
        query->elapsed_ns = LATER_NS;
        return true;
    }
    web_query_execute(engine, query, user);
    query->elapsed_ns = clock_ticks_to_ns(clock_ticks() - begin_ticks);
    if (!web_query_must_be_held(engine, query)) {
        return true;
    }
    query->next = engine->held_first;
    engine->held_first = query;
    return false;
}

void web_engine_release_answers(struct web_engine *engine) {
    if (engine->held_first == NULL) {
        return;
    }
    uint64_t group = commit_wait_open_group(engine->server);
    uint64_t epoch = replication_answer_epoch(&engine->server->replication);
    struct web_query **at = &engine->held_first;
    while (*at != NULL) {
        struct web_query *query = *at;
        if (query->epoch == epoch && query->held_for > group) {
            at = &query->next;
            continue;
        }
        if (query->epoch != epoch) {
            buffer_clear(&query->replies);
            query->reply_count = 0;
            query->verdict = WEB_LOADING;
        }
        *at = query->next;
        asks_answer(engine->asks, &query->ask);
    }
}
