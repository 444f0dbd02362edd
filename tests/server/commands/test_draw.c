/* ZRANDMEMBER and HRANDFIELD, sentence by sentence. */
#include "tests/server/zset_fixture.h"

/* What is drawn from. */
struct drawn_from {
    const char *command, *with;
    const char *add;  /* the beginning of the command that adds */
    const char *pair; /* in RESP3 */
    const char *lower_case;
    bool is_name_first; /* behind it */
};

static const struct drawn_from board = {
    .command = "ZRANDMEMBER",
    .with = "WITHSCORES",
    .lower_case = "zrandmember money:k -2 withscores",
    .add = "ZADD money:k",
    .pair = "[a ,1.5]",
};
static const struct drawn_from hash = {
    .command = "HRANDFIELD",
    .with = "WITHVALUES",
    .lower_case = "hrandfield money:k -2 withvalues",
    .add = "HSET money:k",
    .pair = "[a 1.5]",
    .is_name_first = true,
};

static void add(struct harness *h, const struct drawn_from *from, const char *name,
                const char *value) {
    zset_run(h, "%s %s %s", from->add, from->is_name_first ? name : value,
             from->is_name_first ? value : name);
}

static void add_numbers(struct harness *h, const struct drawn_from *from, int count) {
    for (int i = 0; i < count; i++) {
        const char *number = formatted("%d", i);
        add(h, from, number, number);
    }
}

/* % in a line is the command, # the word that asks for values. */
static const char *written_out(const struct drawn_from *from, const char *line) {
    static char text[256];
    size_t size = 0;
    for (; *line != '\0'; line++) {
        const char *piece = *line == '%' ? from->command : *line == '#' ? from->with : NULL;
        size += (size_t)snprintf(text + size, sizeof text - size, piece != NULL ? "%s" : "%.1s",
                                 piece != NULL ? piece : line);
    }
    return text;
}

static const char *run(struct harness *h, const struct drawn_from *from, const char *line) {
    return zset_run(h, "%s", written_out(from, line));
}

#define EXPECT(line, expected) zset_expect(h, written_out(from, line), expected)

#define DRAW_TEST(name)                                                                            \
    static void name(struct harness *h, const struct drawn_from *from);                            \
    ZSET_TEST(name##_from_a_board) {                                                               \
        name(h, &board);                                                                           \
    }                                                                                              \
    ZSET_TEST(name##_from_a_hash) {                                                                \
        name(h, &hash);                                                                            \
    }                                                                                              \
    static void name(struct harness *h, const struct drawn_from *from)

/* How often each of 0 .. limit - 1 stands in a reply "[7 3 7]"; how many there are. */
static int tally(const char *answered, int *counts, int limit) {
    assert_int_equal(answered[0], '[');
    int total = 0;
    for (const char *at = answered + 1; *at != ']';) {
        char *end;
        long member = strtol(at, &end, 10);
        assert_ptr_not_equal(at, end);
        assert_in_range(member, 0, limit - 1);
        counts[member]++;
        total++;
        at = *end == ' ' ? end + 1 : end;
    }
    return total;
}

DRAW_TEST(without_a_count_one_comes) {
    EXPECT("% none", "nil");
    add(h, from, "a", "1");
    EXPECT("% money:k", "a");
    zset_use_resp3(h);
    EXPECT("% none", "_");
}

DRAW_TEST(a_positive_count_draws_different_ones) {
    add_numbers(h, from, 500);
    static const int counts[] = {0, 1, 2, 10, 30, 31, 32, 100, 250, 499, 500, 501, 100000};
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        int seen[500] = {0};
        int total = tally(zset_run(h, "%s money:k %d", from->command, counts[i]), seen, 500);
        assert_int_equal(total, counts[i] < 500 ? counts[i] : 500);
        for (int member = 0; member < 500; member++) {
            assert_in_range(seen[member], 0, 1);
        }
    }
    EXPECT("% none 5", "[]");
}

DRAW_TEST(a_negative_count_draws_with_repeats) {
    add_numbers(h, from, 10);
    int seen[10] = {0};
    assert_int_equal(tally(run(h, from, "% money:k -10000"), seen, 10), 10000);
    for (int member = 0; member < 10; member++) {
        /* 1000 expected, standard deviation 30. */
        assert_in_range(seen[member], 800, 1200);
    }
    EXPECT("% none -5", "[]");
}

DRAW_TEST(each_is_drawn_equally_often) {
    add_numbers(h, from, 100);
    /* 3 of 100: places are drawn and sorted; 40 of 100: all are walked; none: one place. */
    static const struct {
        const char *line;
        int rounds, drawn;
    } draws[] = {{"% money:k 3", 10000, 3}, {"% money:k 40", 750, 40}};
    for (size_t i = 0; i < sizeof(draws) / sizeof(draws[0]); i++) {
        int seen[100] = {0};
        for (int round = 0; round < draws[i].rounds; round++) {
            assert_int_equal(tally(run(h, from, draws[i].line), seen, 100), draws[i].drawn);
        }
        for (int member = 0; member < 100; member++) {
            /* 300 expected, standard deviation at most 17. */
            assert_in_range(seen[member], 200, 400);
        }
    }
    int seen[100] = {0};
    for (int round = 0; round < 30000; round++) {
        seen[strtol(run(h, from, "% money:k"), NULL, 10)]++;
    }
    for (int member = 0; member < 100; member++) {
        assert_in_range(seen[member], 200, 400);
    }
}

DRAW_TEST(values_are_flat_in_resp2_and_pairs_in_resp3) {
    add(h, from, "a", "1.5");
    EXPECT("% money:k 3 #", "[a 1.5]");
    EXPECT(from->lower_case, "[a 1.5 a 1.5]");
    EXPECT("% money:k 0 #", "[]");
    zset_use_resp3(h);
    EXPECT("% money:k 3 #", formatted("[%s]", from->pair));
    EXPECT("% money:k -2 #", formatted("[%s %s]", from->pair, from->pair));
    EXPECT("% money:k -2", "[a a]");
    EXPECT("% none 3 #", "[]");
}

DRAW_TEST(absurd_counts_are_refused_or_give_all) {
    static const char out[] = "-ERR value is out of range";
    static const char no_integer[] = "-ERR value is not an integer or out of range";
    static const char lowest[] = "-ERR value is out of range, value must between "
                                 "-9223372036854775807 and 9223372036854775807";
    add(h, from, "a", "1");
    EXPECT("% money:k 9223372036854775807", "[a]");
    EXPECT("% money:k 4611686018427387903", "[a]");
    EXPECT("% money:k 4294967297", "[a]");
    EXPECT("% money:k 4611686018427387903 #", "[a 1]");
    EXPECT("% money:k 4611686018427387904 #", out);
    EXPECT("% money:k 9223372036854775807 #", out);
    EXPECT("% none 9223372036854775807 #", out);
    EXPECT("% money:k -9223372036854775807 #", out);
    EXPECT("% money:k -9223372036854775807", out);
    EXPECT("% money:k -4611686018427387904", out);
    EXPECT("% money:k -9223372036854775808", lowest);
    EXPECT("% money:k -9223372036854775808 #", lowest);
    EXPECT("% money:k 9223372036854775808", no_integer);
    EXPECT("% none x", no_integer);
    EXPECT("% money:k x FOO", no_integer);
    EXPECT("% money:k 1 FOO", "-ERR syntax error");
    EXPECT("% money:k 1 # #", "-ERR syntax error");
}

DRAW_TEST(a_reply_that_nobody_can_read_ends_early) {
    h->server.settings.busy_command_limit_ms = 0; /* else it is refused */
    add(h, from, "a", "1");
    assert_true(harness_breaks(h, h->server.sessions.first,
                               written_out(from, "% money:k -4294967295"), 10000));
}

DRAW_TEST(without_memory_for_the_draw_an_error_comes) {
    add_numbers(h, from, 500);
    assert_string_equal(
        harness_run_failing(h, h->server.sessions.first, written_out(from, "% money:k 5"), 1),
        "-OOM out of memory\r\n");
}
