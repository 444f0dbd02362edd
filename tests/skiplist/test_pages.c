/* An array that grows page by page. */
#include "tests/support/test.h"

#include "codec/memory.h"
#include "skiplist/map.h"

static uint64_t *number_at(const struct map_pages *pages, uint64_t index) {
    return map_pages_at(pages, index * sizeof(uint64_t));
}

TEST(elements_stay_where_they_are_while_it_grows_and_shrinks) {
    ENDED_BY(map_pages_deinit) struct map_pages pages = {0};
    enum { COUNT = 10000 };
    static uint64_t *places[COUNT];
    for (uint64_t i = 0; i < COUNT; i++) {
        assert_true(map_pages_reserve(&pages, (i + 1) * sizeof(uint64_t)));
        places[i] = number_at(&pages, i);
        *places[i] = i * i;
    }
    for (uint64_t count = COUNT; count > 0; count--) {
        map_pages_trim(&pages, count * sizeof(uint64_t));
        assert_ptr_equal(number_at(&pages, count - 1), places[count - 1]);
        assert_int_equal(*places[count - 1], (count - 1) * (count - 1));
        assert_true(pages.count <= count * sizeof(uint64_t) / MAP_PAGES_SIZE + 3);
    }
    map_pages_trim(&pages, 0);
}

TEST(one_page_to_and_fro_takes_no_memory) {
    ENDED_BY(map_pages_deinit) struct map_pages pages = {0};
    assert_true(map_pages_reserve(&pages, 3 * MAP_PAGES_SIZE));
    assert_true(map_pages_reserve(&pages, 3 * MAP_PAGES_SIZE + 1));
    uint64_t requests_before = memory_requests();
    for (int i = 0; i < 100; i++) {
        map_pages_trim(&pages, 3 * MAP_PAGES_SIZE);
        assert_true(map_pages_reserve(&pages, 3 * MAP_PAGES_SIZE + 1));
    }
    assert_int_equal(memory_requests(), requests_before);
}

TEST(trimming_frees_two_pages_at_a_time) {
    ENDED_BY(map_pages_deinit) struct map_pages pages = {0};
    assert_true(map_pages_reserve(&pages, 100 * MAP_PAGES_SIZE));
    map_pages_trim(&pages, 1);
    assert_int_equal(pages.count, 98);
    for (int i = 0; i < 100; i++) {
        map_pages_trim(&pages, 1);
    }
    assert_int_equal(pages.count, 2);
}

TEST(no_memory_leaves_what_is_there) {
    uint64_t live_before = memory_live_count();
    for (uint64_t nth = 1; nth <= 6; nth++) {
        ENDED_BY(map_pages_deinit) struct map_pages pages = {0};
        assert_true(map_pages_reserve(&pages, 2 * MAP_PAGES_SIZE));
        *number_at(&pages, 0) = 7;
        *number_at(&pages, 2 * MAP_PAGES_SIZE / sizeof(uint64_t) - 1) = 8;
        memory_fail_at(nth);
        assert_false(map_pages_reserve(&pages, 9 * MAP_PAGES_SIZE));
        memory_fail_at(0);
        assert_int_equal(*number_at(&pages, 0), 7);
        assert_true(map_pages_reserve(&pages, 9 * MAP_PAGES_SIZE));
        assert_int_equal(pages.count, 9);
        assert_int_equal(*number_at(&pages, 2 * MAP_PAGES_SIZE / sizeof(uint64_t) - 1), 8);
    }
    assert_int_equal(memory_live_count(), live_before);
}
