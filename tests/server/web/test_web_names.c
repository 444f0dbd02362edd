/* Searching by the names that are shown: whatever is written between, it finds those whom a plain look at all members
 * finds, in the same order. */
#include "tests/support/test.h"

#include <strings.h>

#include "server/commands/lb/lb_data.h"
#include "server/web/value.h"
#include "server/web/web_query.h"
#include "tests/support/harness.h"
#include "tests/support/random.h"
#include "tests/support/web_target.h"

enum { MEMBERS = 700, FOUND_MAX = 2 * MEMBERS };
static struct web web;

/* Members, one after another. */
struct members {
    char at[FOUND_MAX][16];
    unsigned count;
};

static void put(struct members *members, struct bytes member) {
    assert_true(members->count < FOUND_MAX && member.size < sizeof members->at[0]);
    memcpy(members->at[members->count], member.at, member.size);
    members->at[members->count++][member.size] = '\0';
}

/* ---- as the page does it ---- */

/* One request, all of its rounds. */
static void ask(struct harness *h, const char *target, struct members *found, char cursor[64]) {
    struct web_engine engine = {.server = &h->server};
    if (web.object_count == 0) {
        web_reply_read_schemas(&web, web_operations, web_operation_count);
    }
    struct web_query *query = web_query_create(&web);
    assert_non_null(query);
    query->identity = (struct web_identity){.kind = WEB_ANYBODY, .is_local = true};
    assert_true(web_target_parse(query, HTTP_GET, target));
    assert_true(web_query_make_room(query, WEB_REPLIES_MAX));
    bool has_more;
    do {
        query->command_count = query->word_count = query->reply_count = 0;
        query->scan.cursor_word = query->scan.pattern_word = 0;
        buffer_clear(&query->texts);
        buffer_clear(&query->replies);
        assert_true(query->route->ask(query));
        assert_true(web_engine_answer(&engine, &query->ask));
        assert_int_equal(query->verdict, WEB_ALLOWED);
        has_more = web_query_print(query);
        query->round++;
    } while (has_more);
    assert_int_equal(query->status, 200);
    buffer_append(&query->out, "", 1);
    const char *at = query->out.at;
    while ((at = strstr(at, "\"member\":\"")) != NULL) {
        at += strlen("\"member\":\"");
        put(found, (struct bytes){.at = at, .size = strcspn(at, "\"")});
    }
    const char *mark = strstr(query->out.at, "\"cursor\":\"");
    assert_non_null(mark);
    mark += strlen("\"cursor\":\"");
    snprintf(cursor, 64, "%.*s", (int)strcspn(mark, "\""), mark);
    web_query_destroy(query);
}

/* All that is found, count at a time. */
static void search(struct harness *h, const char *prefix, unsigned count, const char *where,
                   struct members *found) {
    char target[256];
    char cursor[64] = "0";
    found->count = 0;
    do {
        unsigned before = found->count;
        snprintf(target, sizeof target,
                 "/api/v1/boards/a/search?by=name&hash=user:*&data=name&q=%s&count=%u&cursor=%s%s",
                 prefix, count, cursor, where);
        ask(h, target, found, cursor);
        assert_true(found->count - before <= count);
        assert_true(strcmp(cursor, "0") == 0 || found->count - before == count);
    } while (strcmp(cursor, "0") != 0);
}

/* ---- plainly ---- */

static bool is_named(const char *name, const char *prefix) {
    bool is_word = true;
    for (; *name != '\0'; name++) {
        if (is_word && strncasecmp(name, prefix, strlen(prefix)) == 0) {
            return true;
        }
        is_word = *name == ' ';
    }
    return false;
}

static void look(struct harness *h, struct session *s, const char *prefix, const char *where,
                 struct members *found) {
    static char replies[1 << 20];
    struct members all = {.count = 0};
    char line[128];
    snprintf(line, sizeof line, "LB.RANGE a 0 -1%s", where);
    harness_run(h, s, line);
    assert_true(h->reply.size < sizeof replies);
    memcpy(replies, h->reply.at, h->reply.size);
    struct value_reader reader = {.at = replies, .end = replies + h->reply.size};
    struct value list = value_next(&reader);
    assert_int_equal(list.kind, VALUE_LIST);
    for (uint64_t i = 0; i < list.count; i++) {
        struct value_reader row = reader;
        (void)value_next(&row);
        put(&all, value_next(&row).text);
        value_skip(&reader);
    }
    found->count = 0;
    for (unsigned i = 0; i < all.count; i++) {
        const char *name = harness_run_format(h, s, "HGET user:%s name", all.at[i]);
        const char *end = strstr(name, "\r\n");
        if (name[0] == '$' && name[1] != '-' && is_named(end + 2, prefix)) {
            put(found, bytes_from_text(all.at[i]));
        }
    }
}

/* ---- at random ---- */

static const char *const words[] = {"ann", "Anna", "ANNE", "bo", "zo\xc3\xab", "an", "b", "x-ann"};
static const char *const prefixes[] = {"a",  "an",      "ANN", "annA", "b",       "BO",
                                       "zo", "z%C3%AB", "q",   "x",    "ann%20b", "%20"};
static const char *const plain[] = {"a",  "an",        "ANN", "annA", "b",     "BO",
                                    "zo", "z\xc3\xab", "q",   "x",    "ann b", " "};

static void name_at_random(struct harness *h, struct session *s, struct random *random) {
    char name[256] = "";
    size_t size = 0;
    for (uint64_t left = random_below(random, 5); left > 0; left--) {
        size += (size_t)snprintf(name + size, sizeof name - size, "%s%s",
                                 random_below(random, 8) == 0 ? "  " : " ",
                                 words[random_below(random, COUNT_OF(words))]);
    }
    const char *begin = random_below(random, 3) > 0 && name[0] == ' ' ? name + 1 : name;
    harness_run_format(h, s, "HSET user:m%u name \"%s\"", (unsigned)random_below(random, MEMBERS),
                       begin);
}

static const char *const writes[] = {
    "ZADD a $1000 m$700",
    "LB.ADD a $1000 m$700",
    "LB.TAG a m$700 country c$3",
    "ZREM a m$700",
    "HDEL user:m$700 name",
    "DEL user:m$700",
    "HSET user:m$700 other ann",
    "RENAME user:m$700 user:m$700",
    "COPY user:m$700 user:m$700 REPLACE",
    "LB.MOVE m$700 m$700",
    "LB.FORGET m$700",
    "ZREMRANGEBYRANK a 0 5",
    "PEXPIRE user:m$700 $100",
};

SERVER_TEST(of_a_long_name_the_beginning_is_searched) {
    struct members found;
    char blanks[LB_DATA_NAME_MAX + 1] = "";
    memset(blanks, ' ', LB_DATA_NAME_MAX);
    harness_run(h, s, "ZADD a 1 m1 2 m2");
    harness_run_format(h, s, "HSET user:m1 name \"%sann\"", blanks + 3);
    harness_run_format(h, s, "HSET user:m2 name \"%sann\"", blanks + 2);
    search(h, "ann", 10, "", &found);
    assert_int_equal(found.count, 1);
    assert_string_equal(found.at[0], "m1");
}

SERVER_TEST(at_random_those_are_found_whom_a_plain_look_finds) {
    struct random random = random_begin("at_random_those_are_found");
    unsigned steps = getenv("LEADERBOARD_TEST_SHORT") != NULL ? 60 : 600;
    static struct members found, expected;
    unsigned sum = 0;
    harness_run(h, s, "LB.CREATE a FIELD score 33 TAG country 4");
    for (unsigned i = 0; i < steps; i++) {
        char line[128];
        for (uint64_t left = random_below(&random, 30); left > 0; left--) {
            name_at_random(h, s, &random);
            random_line(&random, writes[random_below(&random, i < 20 ? 3 : COUNT_OF(writes))], line,
                        sizeof line);
            harness_run(h, s, line);
        }
        h->wall_us += (int64_t)random_below(&random, 50000);
        size_t which = random_below(&random, COUNT_OF(prefixes));
        unsigned count = 1 + (unsigned)random_below(&random, 50);
        bool is_group = random_below(&random, 3) == 0;
        search(h, prefixes[which], count, is_group ? "&where=country:c1" : "", &found);
        look(h, s, plain[which], is_group ? " WHERE country c1" : "", &expected);
        assert_int_equal(found.count, expected.count);
        for (unsigned k = 0; k < found.count; k++) {
            assert_string_equal(found.at[k], expected.at[k]);
        }
        sum += found.count;
    }
    assert_true(sum > 0);
}
