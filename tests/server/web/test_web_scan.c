/* Scans of the page: what its routes make of the steps that the engine has run for them. */
#include "tests/support/test.h"

#include "protocol/reply.h"
#include "server/web/web_query.h"

static struct web web;
static struct web_query *query;
static struct reply reply;

static void begin(const struct web_route *route) {
    query = web_query_create(&web);
    assert_non_null(query);
    query->route = route;
    query->scan.pattern_count = 1;
    query->count = 10;
    reply_init(&reply, &query->replies, 3);
}

static void end_step(void) {
    query->commands[query->reply_count++].reply_end = query->replies.size;
}

static void put_step(const char *cursor) {
    reply_array(&reply, 2);
    reply_bulk_text(&reply, cursor);
    reply_array(&reply, 0);
    end_step();
}

static void put_error(const char *text) {
    reply_error(&reply, text);
    end_step();
}

static void check_refused(unsigned status, const char *code) {
    assert_false(web_query_print(query));
    buffer_append(&query->out, "", 1);
    assert_int_equal(query->status, status);
    assert_non_null(strstr(query->out.at, code));
    web_query_destroy(query);
}

TEST(an_error_of_any_step_of_a_scan_is_replied) {
    const struct web_route *const scans[] = {&web_route_search, &web_route_list};
    for (size_t i = 0; i < 2; i++) {
        for (int before = 0; before < 3; before++) {
            begin(scans[i]);
            for (int step = 0; step < before; step++) {
                put_step("7");
            }
            put_error("OOM out of memory");
            check_refused(503, "\"busy\"");
        }
    }
}

TEST(a_list_goes_on_behind_a_pattern_that_its_user_may_not_see) {
    begin(&web_route_list);
    query->scan.pattern_count = 2;
    put_step("7");
    put_error("NOPERM no");
    assert_true(web_query_print(query));
    assert_int_equal(query->scan.part, 1);
    assert_int_equal(query->status, 200);
    web_query_destroy(query);
    begin(&web_route_list);
    put_error("NOPERM no");
    check_refused(403, "\"forbidden\"");
}

TEST(a_search_ends_with_the_first_error_of_its_last_round) {
    begin(&web_route_search);
    query->scan.is_over = true;
    put_error("WRONGTYPE this key is a hash");
    put_error("WRONGTYPE this key is a hash");
    check_refused(404, "\"not_found\"");
}
