/* The engine's side of the page: which questions run when. */
#include "tests/support/test.h"

#include "server/web/web_query.h"
#include "tests/support/loop_server.h"

static struct web web;

static struct web_query *removal(void) {
    struct web_query *query = web_query_create(&web);
    assert_non_null(query);
    query->route = &web_route_remove;
    query->identity.kind = WEB_SELF;
    query->board = BYTES("a");
    query->member = BYTES("x");
    web_query_command(query, query->route->command);
    return query;
}

static void check_verdict(struct loop_server *f, enum web_verdict verdict) {
    struct web_engine engine = {.server = f->server};
    struct web_query *query = removal();
    assert_true(web_engine_answer(&engine, &query->ask));
    assert_int_equal(query->verdict, verdict);
    web_query_destroy(query);
}

LOOP_SERVER_TEST(a_write_waits_for_the_end_of_a_pause_and_never_runs_behind_the_end, NULL) {
    int ann = loop_connect(f);
    loop_ask(f, ann, "ZADD a 1 x 2 y\r\nCLIENT PAUSE 1000000 WRITE\r\n", ":2\r\n+OK\r\n");
    check_verdict(f, WEB_LATER);
    f->server->ending.is_over = true;
    loop_ask(f, ann, "CLIENT UNPAUSE\r\n", "+OK\r\n");
    check_verdict(f, WEB_LATER);
    loop_ask(f, ann, "ZCARD a\r\n", ":2\r\n");
    f->server->ending.is_over = false;
    check_verdict(f, WEB_ALLOWED);
    loop_ask(f, ann, "ZCARD a\r\n", ":1\r\n");
}
