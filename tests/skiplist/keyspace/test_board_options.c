/* The table of board options: that each row stands alone, and that none is missing. */
#include "tests/support/test.h"

#include "skiplist/keyspace/board_options.h"

static void begin(struct board_options *options) {
    memset(options, 0, sizeof *options);
    layout_init_default(&options->layout);
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
TEST(each_byte_that_rules_and_states_are_compared_by_is_of_a_row) {
    uint8_t rows[offsetof(struct board_options, index)] = {0};
    uint8_t of_state[sizeof(struct board_state)] = {0};
    for (size_t i = 0; i < BOARD_OPTION_COUNT; i++) {
        uint8_t *bytes = board_options[i].is_of_state ? of_state : rows;
        for (size_t k = 0; board_options[i].code != 0 && k < board_options[i].size; k++) {
            uint8_t *byte = &bytes[board_options[i].at + k];
            *byte = (uint8_t)(board_options[i].bit != 0
                                  ? 1
                                  : *byte + 1); /* a byte of bits has several rows */
        }
    }
    for (size_t k = 0; k < sizeof rows; k++) {
        assert_int_equal(rows[k], k < offsetof(struct board_options, unused));
    }
    for (size_t k = 0; k < sizeof of_state; k++) {
        assert_int_equal(of_state[k], k < offsetof(struct board_state, unused));
    }
}

TEST(rooms_of_a_league_cannot_have_what_its_row_says) {
    for (size_t i = 0; i < BOARD_OPTION_COUNT; i++) {
        const struct board_option *option = &board_options[i];
        struct board_options options;
        begin(&options);
        assert_null(board_options_refuse_rooms(&options));
        if (!option->is_of_state) {
            board_options_set(option, &options, NULL, option->value > 0 ? option->value : 1);
            assert_ptr_equal(board_options_refuse_rooms(&options), option->not_in_rooms);
        }
    }
}

TEST(a_value_is_read_as_it_was_set_and_makes_other_options) {
    for (size_t i = 0; i < BOARD_OPTION_COUNT; i++) {
        const struct board_option *option = &board_options[i];
        int64_t value = option->maximum > 1 ? option->maximum
                        : option->value > 1 ? option->value
                                            : 1;
        struct board_options plain;
        struct board_options other;
        struct board_state zeroed = {.from_ms = 0};
        struct board_state happened = {.from_ms = 0};
        begin(&plain);
        begin(&other);
        assert_int_equal(board_options_get(option, &plain, NULL), 0);
        assert_true(board_options_may_be(option, value));
        board_options_set(option, &other, &happened, value);
        assert_int_equal(board_options_get(option, &other, &happened), value);
        assert_int_equal(board_options_equal(&plain, &other), option->is_of_state);
        assert_int_equal(memcmp(&happened, &zeroed, sizeof happened) != 0, option->is_of_state);
        board_options_set(option, &other, &happened, 0);
        assert_true(board_options_equal(&plain, &other));
        assert_memory_equal(&happened, &zeroed, sizeof happened);
    }
}

/* Times before 1970, zones west of Greenwich. */
TEST(values_below_zero_are_read_as_they_were_set) {
    static const enum board_option_id below[] = {BOARD_OPTION_FROM, BOARD_OPTION_TZ,
                                                 BOARD_OPTION_ENDED, BOARD_OPTION_COUNTS};
    for (size_t i = 0; i < COUNT_OF(below); i++) {
        struct board_options options;
        struct board_state happened;
        begin(&options);
        board_options_set(&board_options[below[i]], &options, &happened, -60);
        assert_int_equal(board_options_get(&board_options[below[i]], &options, &happened), -60);
    }
}

TEST(an_archive_keeps_what_its_rows_say) {
    struct board_options options;
    struct board_options archive;
    for (size_t i = 0; i < BOARD_OPTION_COUNT; i++) {
        const struct board_option *option = &board_options[i];
        bool is_of_archives = option->is_of_state || i == BOARD_OPTION_IS_ARCHIVE ||
                              option->at == offsetof(struct board_options, guards) ||
                              option->code == 0;
        begin(&options);
        board_options_set(option, &options, NULL, 1);
        board_options_end_period(&options, &archive);
        assert_true(is_of_archives ||
                    board_options_get(option, &archive, NULL) == (option->is_kept ? 1 : 0));
        assert_true(archive.is_archive);
        assert_int_equal(board_options_ended_ms(&options, 5), i == BOARD_OPTION_PERIOD ? 0 : 5);
    }
}
