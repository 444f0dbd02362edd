/* JSON of results, and the commands that it becomes. What real requests get is in tests/web/test_writes.py. */
#include "tests/support/test.h"

#include "server/commands/table.h"
#include "server/dispatch/execute.h"
#include "server/web/web_query.h"
#include "tests/support/web_target.h"

static struct web web;
static struct web_query *query;

static void begin_of(enum web_results_kind kind, const char *body) {
    static const char *const targets[] = {"/api/v1/boards/b/results", "/api/v1/results",
                                          "/api/v1/leagues/b/results"};
    execute_init(command_table);
    query = web_query_create(&web);
    assert_non_null(query);
    assert_true(web_target_parse(query, HTTP_POST, targets[kind]));
    buffer_init(&query->write.body, WEB_BODY_MAX);
    buffer_append(&query->write.body, body, strlen(body));
}

static void begin(const char *body) {
    begin_of(WEB_RESULTS_OF_BOARD, body);
}

/* The commands, each with its words and a line end. */
static void check(enum web_results_kind kind, const char *body, const char *id,
                  const char *expected) {
    char text[1024] = "";
    begin_of(kind, body);
    query->write.id = id != NULL ? bytes_from_text(id) : (struct bytes){.at = NULL};
    assert_true(web_write_read(query));
    assert_true(query->route->ask(query));
    unsigned word = 0;
    for (unsigned i = 0; i < query->command_count; i++) {
        for (; word < query->commands[i].end; word++) {
            size_t size = strlen(text);
            snprintf(text + size, sizeof text - size, "%.*s%s", (int)query->words[word].size,
                     query->words[word].at, word + 1 == query->commands[i].end ? "\n" : " ");
        }
    }
    assert_string_equal(text, expected);
    assert_int_equal(word, query->word_count);
    web_query_destroy(query);
    assert_int_equal(web.memory_size, 0);
}

static void check_board(const char *body, const char *expected) {
    check(WEB_RESULTS_OF_BOARD, body, NULL, expected);
}

static void check_refused(unsigned status, const char *body, const char *text) {
    begin(body);
    assert_false(web_write_read(query));
    buffer_append(&query->out, "", 1);
    assert_int_equal(query->status, status);
    if (strstr(query->out.at, text) == NULL) {
        fail_msg("'%s' is not in %s", text, query->out.at);
    }
    web_query_destroy(query);
    assert_int_equal(web.memory_size, 0);
}

TEST(numbers_and_names_are_words_as_they_stand) {
    check_board("{\"member\":\"ann\",\"value\":9007199254740993}",
                "LB.ADD b NOCREATE 9007199254740993 ann\n");
    check_board(" [ { \"values\" : [ -0.50 , \"7.25\" , null ] , \"member\" : \"ann\" } ] ",
                "LB.ADD b NOCREATE -0.50 7.25 * ann\n");
    check_board("{\"member\":\"\\u00e9\\ud83d\\ude00\\\"\\n\",\"value\":1}",
                "LB.ADD b NOCREATE 1 \xc3\xa9\xf0\x9f\x98\x80\"\n\n");
}

TEST(neighbours_with_the_same_options_are_one_command) {
    check_board("[{\"member\":\"a\",\"value\":1},{\"member\":\"b\",\"value\":2},"
                "{\"member\":\"c\",\"value\":3,\"operator\":\"incr\"},"
                "{\"member\":\"d\",\"value\":4,\"operator\":\"incr\"},"
                "{\"member\":\"e\",\"values\":[5,6],\"operator\":\"incr\"},"
                "{\"member\":\"f\",\"value\":7}]",
                "LB.ADD b NOCREATE 1 a 2 b\nLB.ADD b NOCREATE INCR 3 c 4 d\nLB.ADD b NOCREATE INCR "
                "5 6 e\nLB.ADD b NOCREATE 7 f\n");
    check_board("[{\"member\":\"a\",\"value\":1,\"tags\":{\"t\":\"x\"}},"
                "{\"member\":\"b\",\"value\":1,\"tags\":{\"t\":\"x\"}},"
                "{\"member\":\"c\",\"value\":1,\"tags\":{\"t\":null}}]",
                "LB.ADD b NOCREATE TAG t x 1 a 1 b\nLB.ADD b NOCREATE TAG t  1 c\n");
    check_board(
        "[{\"member\":\"a\",\"value\":1,\"id\":\"i\"},{\"member\":\"b\",\"value\":1,\"id\":\"i\"}]",
        "LB.ADD b NOCREATE ONCE i 1 a\nLB.ADD b NOCREATE ONCE i 1 b\n");
    check(WEB_RESULTS_OF_BOARD, "[{\"member\":\"a\",\"value\":1},{\"member\":\"b\",\"value\":1}]",
          "k", "LB.ADD b NOCREATE ONCE k 1 a 1 b\n");
}

TEST(every_option_of_a_result_is_one_of_the_command) {
    web.data.pattern = BYTES("u:*");
    check_board("{\"member\":\"a\",\"value\":1,\"operator\":\"best\",\"only\":\"new\",\"at\":5,"
                "\"tags\":{\"t\":\"x\"},\"id\":\"i\",\"data\":{\"name\":\"Ann\",\"age\":7}}",
                "LB.ADD b NOCREATE NX BEST AT 5 TAG t x ONCE i HSET u:* 2 name Ann age 7 1 a\n");
    web.data.pattern = (struct bytes){.at = NULL};
    check(WEB_RESULTS_OF_BOARDS, "{\"boards\":[\"x\",\"y\"],\"member\":\"a\",\"value\":1}", "k",
          "LB.SUBMIT 2 x y NOCREATE ONCE k 1 a\n");
    check(WEB_RESULTS_OF_LEAGUE,
          "[{\"member\":\"a\",\"value\":1},{\"member\":\"b\",\"value\":1,\"operator\":\"incr\"}]",
          NULL, "LB.LEAGUE ADD b 1 a\nLB.LEAGUE ADD b INCR 1 b\n");
}

TEST(a_wrong_field_is_named) {
    check_refused(422, "[{\"member\":\"a\",\"value\":1},{\"member\":\"a\"}]", "results[1].value");
    check_refused(422, "{\"member\":\"a\",\"value\":1,\"score\":1}",
                  "score: there is no such field");
    check_refused(422, "{\"member\":\"a\",\"member\":\"b\"}", "member: is there twice");
    check_refused(422, "{\"member\":\"a\",\"value\":1,\"tags\":{\"t\":\"\",\"t\":\"\"}}",
                  "tags.t: is there");
    check_refused(422, "{\"member\":\"a\",\"value\":\"NX\"}", "value: a number");
    check_refused(400, "{\"member\":\"a\",\"value\":1}}", "see byte 24");
    check_refused(400, "{\"member\":\"a\",\"value\":00}", "value: a number");
    check_refused(400, "{\"member\":42}", "\"member: a text is expected at byte 10\"");
    check_refused(400, "[{\"member\":\"a\",\"value\":1},{\"member\":null}]",
                  "results[1].member: a text is expected");
    check_refused(400, "{\"member\":\"a\",\"values\":1}", "values: an array is expected");
    check_refused(400, "{\"member\":\"a\",\"values\":[true]}", "values: a number");
    check_refused(400, "{\"member\":\"a\",\"operator\":1}", "operator: a text is expected");
    check_refused(400, "{\"member\":\"a\",\"at\":\"now\"}", "at: a number is expected");
    check_refused(400, "{\"member\":\"a\",\"id\":7}", "id: a text is expected");
    check_refused(400, "{\"member\":\"a\",\"tags\":[]}", "tags: an object is expected");
    check_refused(400, "{\"member\":\"a\",\"data\":{\"x\":[]}}", "data.x: a text, a number or");
    check_refused(400, "", "see byte 0");
}

TEST(there_are_so_many_results_at_most) {
    char *body = malloc(64 * (WEB_RESULTS_MAX + 2));
    for (unsigned more = 0; more < 2; more++) {
        size_t size = (size_t)sprintf(body, "[{\"member\":\"a\",\"value\":1}");
        for (unsigned i = 1; i < WEB_RESULTS_MAX + more; i++) {
            size +=
                (size_t)sprintf(body + size, ",{\"member\":\"a\",\"value\":1,\"id\":\"%u\"}", i);
        }
        strcpy(body + size, "]");
        begin(body);
        assert_int_equal(web_write_read(query), more == 0);
        assert_int_equal(query->status, more == 0 ? 200 : 413);
        web_query_destroy(query);
    }
    free(body);
    assert_int_equal(web.memory_size, 0);
}

TEST(the_document_has_every_operation_of_the_table) {
    BUFFER(out, 0);
    struct json json = web_json(&out);
    web_openapi_put(&json, web_operations, web_operation_count);
    buffer_append(&out, "", 1);
    assert_false(out.is_broken);
    for (unsigned i = 0; i < web_operation_count; i++) {
        char text[256];
        snprintf(text, sizeof text, "\"/%s\":{", web_operations[i].path);
        assert_non_null(strstr(out.at, text));
        snprintf(text, sizeof text, "\"summary\":\"%s\"", web_operations[i].summary);
        assert_non_null(strstr(out.at, text));
        assert_true(web_operations[i].is_stream || web_operations[i].answer != NULL);
    }
}
