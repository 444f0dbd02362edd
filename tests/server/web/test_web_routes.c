/* Parameters of the page's addresses: the group that is read, and the words that commands get from it. */
#include "tests/support/test.h"

#include "server/commands/table.h"
#include "server/dispatch/execute.h"
#include "server/web/web_query.h"
#include "tests/support/web_target.h"

static struct web web;
static struct web_query *query;

static bool parse(const char *target) {
    execute_init(command_table);
    query = web_query_create(&web);
    assert_non_null(query);
    return web_target_parse(query, HTTP_GET, target);
}

static void check_where(unsigned nth, const char *tag, const char *value, size_t value_size) {
    const struct web_where *where = &query->wheres[nth];
    assert_true(bytes_equal(where->tag, bytes_from_text(tag)));
    assert_true(bytes_equal(where->value, (struct bytes){.at = value, .size = value_size}));
}

static void check_refused(const char *target, const char *text) {
    assert_false(parse(target));
    buffer_append(&query->out, "", 1);
    assert_int_equal(query->status, 400);
    assert_non_null(strstr(query->out.at, "\"code\":\"bad_request\""));
    assert_non_null(strstr(query->out.at, text));
    web_query_destroy(query);
}

/* The words of the round's only command, with a blank behind each. */
static void check_words(const char *expected) {
    char text[512];
    size_t size = 0;
    for (unsigned i = 0; i < query->word_count; i++) {
        size += (size_t)snprintf(text + size, sizeof text - size, "%.*s ",
                                 (int)query->words[i].size, query->words[i].at);
    }
    assert_string_equal(text, expected);
}

TEST(a_group_is_any_number_of_tags_and_values_of_any_bytes) {
    assert_true(parse("/api/v1/boards/race/page?where=country:DE&from=1&where=class:&wher=a&"
                      "where=a%3Ab:c&where=clan:%00%ff%26"));
    assert_int_equal(query->where_count, 4);
    check_where(0, "country", "DE", 2);
    check_where(1, "class", "", 0);
    check_where(2, "a", "b:c", 3); /* the first colon counts, whether it was encoded or not */
    check_where(3, "clan", "\0\xff&", 3);
    assert_false(query->has_tags);
    web_query_destroy(query);
    assert_true(parse("/api/v1/boards/race/page?tags=1"));
    assert_int_equal(query->where_count, 0);
    assert_true(query->has_tags);
    web_query_destroy(query);
}

TEST(a_malformed_group_is_refused_by_name) {
    char target[256];
    check_refused("/api/v1/boards/race?where", "where is TAG:VALUE");
    check_refused("/api/v1/boards/race?where=", "where is TAG:VALUE");
    check_refused("/api/v1/boards/race/page?where=a:b&where=c", "where is TAG:VALUE");
    check_refused("/api/v1/boards/race/page?tags=yes", "tags is");
    snprintf(target, sizeof target, "/api/v1/boards/race?where=clan:%0*d", TAG_VALUE_MAX + 1, 0);
    check_refused(target, "tag 'clan' has at most 64 bytes");
    snprintf(target, sizeof target, "/api/v1/boards/race?where=clan:%0*d", TAG_VALUE_MAX, 0);
    assert_true(parse(target));
    web_query_destroy(query);
}

TEST(a_group_has_at_most_so_many_values) {
    char target[1024] = "/api/v1/boards/race?a:b";
    for (unsigned i = 0; i < WEB_WHERES_MAX; i++) {
        strcat(target, "&where=a:b");
    }
    assert_true(parse(target));
    assert_int_equal(query->where_count, WEB_WHERES_MAX);
    web_query_destroy(query);
    strcat(target, "&where=a:b");
    check_refused(target, "where is given at most 32 times");
}

TEST(commands_get_the_group_and_ask_for_tags) {
    assert_true(parse("/api/v1/boards/race/page?where=country:DE&where=class:mage&tags=1"));
    web_query_command(query, "LB.RANGE $board 0 9 $where $tags $data");
    check_words("LB.RANGE race 0 9 WHERE country DE WHERE class mage TAGS ");
    web_query_destroy(query);
    assert_true(parse("/api/v1/boards/race/page"));
    web_query_command(query, "LB.RANGE $board 0 9 $where $tags $data");
    check_words("LB.RANGE race 0 9 ");
    web_query_destroy(query);
}

/* However many words a request makes, they fit into a round. */
TEST(a_command_may_be_one_word) {
    static const char words[] = "PING\0$board"; /* what stands behind its end is not read */
    assert_true(parse("/api/v1/boards/race"));
    web_query_command(query, words);
    check_words("PING ");
    web_query_words(query, "$", BYTES("hello"));
    check_words("PING hello ");
    web_query_destroy(query);
}

TEST(the_longest_rounds_fit) {
    static const struct {
        const char *path;
        unsigned round;
        const char *kept; /* by earlier rounds: */
        unsigned times;   /* so often */
    } rounds[] = {
        {"?", 0, "", 0},
        {"/page?", 0, "", 0},
        {"/members/ann?", 0, "", 0},
        {"/search?q=m&", 1, "$1\r\nm\r\n", 400},
        {"/search?q=m&by=name&", 1, "", 0},
        {"/histogram?buckets=100&", 1, ":0\r\n$1\r\n0\r\n$1\r\n5\r\n$3\r\n999\r\n", 1},
        {"/archives?", 1, "$1\r\na\r\n", 16},
    };
    for (size_t i = 0; i < COUNT_OF(rounds); i++) {
        char target[1024];
        snprintf(target, sizeof target, "/api/v1/boards/race%stags=1&hash=a*&data=a,b,c,d,e,f,g,h",
                 rounds[i].path);
        for (unsigned k = 0; k < WEB_WHERES_MAX; k++) {
            strcat(target, "&where=a:b");
        }
        assert_true(parse(target));
        for (unsigned k = 0; k < rounds[i].times; k++) {
            buffer_append(&query->kept, rounds[i].kept, strlen(rounds[i].kept));
        }
        query->round = rounds[i].round;
        query->scan.is_over = true;
        query->more = rounds[i].times == 400 ? 400 : 0;
        assert_true(query->route->ask(query));
        assert_true(query->word_count >= 3 * WEB_WHERES_MAX);
        assert_true(query->word_count <= WEB_WORDS_MAX);
        web_query_destroy(query);
    }
}
