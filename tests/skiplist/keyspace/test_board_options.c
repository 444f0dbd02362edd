/* The table of board options: that each row stands alone, and that none is missing. */
#include "tests/support/test.h"

#include "skiplist/keyspace/board_options.h"

static void begin(struct rules *rules) {
    memset(rules, 0, sizeof *rules);
    layout_init_default(&rules->layout);
}

TEST(each_code_and_each_word_is_of_one_row) {
    for (size_t i = 0; i < BOARD_OPTION_COUNT; i++) {
        const struct board_option *option = &board_options[i];
        assert_int_equal(option->code == 0, option->is_other);
        assert_true(option->code == 0 || board_options_find(option->code) == i);
        for (size_t j = 0; j < i; j++) {
            assert_true(option->word == NULL || board_options[j].word == NULL ||
                        strcmp(option->word, board_options[j].word) != 0);
        }
    }
    assert_int_equal(board_options_find(UINT8_MAX), BOARD_OPTION_COUNT);
}

/* Else an option would be compared, but neither written to files nor printed. */
TEST(each_byte_that_rules_are_compared_by_is_of_a_row) {
    uint8_t rows[offsetof(struct rules, index)] = {0};
    for (size_t i = 0; i < BOARD_OPTION_COUNT; i++) {
        for (size_t k = 0; board_options[i].code != 0 && k < board_options[i].size; k++) {
            rows[board_options[i].at + k]++;
        }
    }
    for (size_t k = 0; k < sizeof rows; k++) {
        size_t in_window = k - offsetof(struct rules, window);
        bool is_unused = k == offsetof(struct rules, unused) ||
                         (in_window >= offsetof(struct rules_window, unused) &&
                          in_window < sizeof(struct rules_window));
        assert_int_equal(rows[k], !is_unused);
    }
}

TEST(a_value_is_read_as_it_was_set_and_makes_other_rules) {
    for (size_t i = 0; i < BOARD_OPTION_COUNT; i++) {
        const struct board_option *option = &board_options[i];
        int64_t value = option->maximum > 1 ? option->maximum
                        : option->value > 1 ? option->value
                                            : 1;
        struct rules plain;
        struct rules other;
        begin(&plain);
        begin(&other);
        assert_int_equal(board_option_get(option, &plain), 0);
        assert_true(board_option_may_be(option, value));
        board_option_set(option, &other, value);
        assert_int_equal(board_option_get(option, &other), value);
        assert_false(rules_equal(&plain, &other));
        board_option_set(option, &other, 0);
        assert_true(rules_equal(&plain, &other));
    }
}

/* Times before 1970, zones west of Greenwich. */
TEST(values_below_zero_are_read_as_they_were_set) {
    static const enum board_option_id below[] = {BOARD_OPTION_FROM, BOARD_OPTION_TZ,
                                                 BOARD_OPTION_ENDED, BOARD_OPTION_COUNTS};
    for (size_t i = 0; i < COUNT_OF(below); i++) {
        struct rules rules;
        begin(&rules);
        board_option_set(&board_options[below[i]], &rules, -60);
        assert_int_equal(board_option_get(&board_options[below[i]], &rules), -60);
    }
}

TEST(an_archive_keeps_what_its_rows_say) {
    struct rules rules;
    struct rules archive;
    for (size_t i = 0; i < BOARD_OPTION_COUNT; i++) {
        const struct board_option *option = &board_options[i];
        bool is_of_archives = option->needs == BOARD_NEEDS_END ||
                              option->at == offsetof(struct rules, guards) || option->code == 0;
        begin(&rules);
        board_option_set(option, &rules, 1);
        rules_end_period(&rules, 5, &archive);
        assert_true(is_of_archives ||
                    board_option_get(option, &archive) == (option->is_kept ? 1 : 0));
        assert_int_equal(archive.settlement, RULES_UNSETTLED);
        assert_int_equal(archive.ended_ms, i == BOARD_OPTION_PERIOD ? 0 : 5);
    }
}
