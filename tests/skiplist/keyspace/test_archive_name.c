/* Which names archives have. */
#include "skiplist/keyspace/registry.h"

#include "tests/support/test.h"

TEST(what_is_behind_the_at_sign_of_an_archive_is_a_period_and_perhaps_a_number) {
    static const struct {
        const char *name;
        size_t board_size; /* 0: it is none */
    } rows[] = {
        {"a@2026-11-16", 1},
        {"a@2026-11-16T05", 1},
        {"a@2026-11-16.2", 1},
        {"a@2026-11-16T05.4294967295", 1},
        {"a@-271821-04-20T05", 1},
        {"a@2026-11-16@2026-11-17", 12},
        {"{a@2}:1:1@2026-11-16", 9},
        {"{a@2026-11-16}:1:1", 0},
        {"{x}a@2026-11-16:1:1", 0},
        {"{x}a@2026-11-16:rooms", 0},
        {"{a@2}:1:1", 0},
        {"a@2", 0},
        {"a@", 0},
        {"a@2026-11-1", 0},
        {"a@2026-11-16T", 0},
        {"a@2026-11-16.", 0},
        {"a@2026-11-16 ", 0},
        {"@2026-11-16", 0},
        {"2026-11-16", 0},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct bytes board = {.size = 0};
        bool is_archive = registry_roll_archive_board(bytes_from_text(rows[i].name), &board);
        assert_int_equal(is_archive, rows[i].board_size > 0);
        assert_int_equal(board.size, rows[i].board_size);
    }
}
