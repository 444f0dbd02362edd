/* Tags of members against a naive twin: the values of each member in an array, groups found by looking at every
 * member in rank order. */
#include "skiplist/tag_filter.h"
#include "skiplist/tag_histogram.h"
#include "tests/support/board_pair.h"

enum { TAGS_MEMBERS = 4000, TAGS_VALUES = 64 };

/* What the twin knows: value numbers, 0: none. */
struct tags_twin {
    struct board_pair *pair;
    bool is_counted_slowly; /* what is missing is counted a little in each step */
    uint8_t values[TAGS_MEMBERS][TAGS_MAX];
    struct layout layouts[2];
};

static struct bytes value_of(unsigned number, char *text) {
    int size = snprintf(text, TAG_VALUE_MAX, number % 3 == 0 ? "%u" : "value-%u", number);
    return number == 0 ? (struct bytes){.size = 0} : (struct bytes){text, (size_t)size};
}

static void add_tag(struct layout *layout, const char *name, unsigned bits) {
    char error[TAG_ERROR_MAX], text[8];
    int size = snprintf(text, sizeof text, "%u", bits);
    assert_true(tag_set_add(&layout->tags, (struct bytes){name, strlen(name)},
                            (struct bytes){text, (size_t)size}, error));
}

static const struct tag_set *tags_now(const struct tags_twin *twin) {
    return &board_layout(twin->pair->board)->tags;
}

static void twin_begin(struct tags_twin *twin, struct board_pair *pair) {
    memset(twin, 0, sizeof *twin);
    twin->pair = pair;
    add_tag(&pair->layout, "country", 5);
    add_tag(&pair->layout, "class", 2);
    add_tag(&pair->layout, "clan", 6);
}

static uint32_t number_of(struct bytes member) {
    uint32_t number = 0;
    for (size_t i = 5; i < member.size; i++) {
        number = number * 10 + (uint32_t)(member.at[i] - '0');
    }
    return number;
}

static unsigned count_values(const struct tags_twin *twin, unsigned tag) {
    bool is_used[TAGS_VALUES + 1] = {false};
    unsigned count = 0;
    struct board_cursor cursor;
    struct board_stored entry;
    for (board_cursor_seek(twin->pair->board, 0, &cursor); board_cursor_read(&cursor, &entry);
         board_cursor_next(&cursor)) {
        unsigned value = twin->values[number_of(stored_text(entry.member))][tag];
        count += value != 0 && !is_used[value];
        is_used[value] = true;
    }
    return count;
}

static void twin_tag(struct tags_twin *twin, struct random *random, uint32_t number, bool by_rank) {
    char text[PAIR_MEMBER_MAX], value_text[TAGS_MAX][TAG_VALUE_MAX];
    struct board_member member;
    struct tag_values values = {.mask = 0};
    unsigned full = TAGS_MAX, numbers[TAGS_MAX];
    const struct tag_set *set = tags_now(twin);
    bool is_same = true;
    board_look_up(twin->pair->board, user_of(number, text), NULL, &member);
    if (!member.is_there) {
        return;
    }
    for (unsigned i = 0; i < set->count; i++) {
        unsigned max = 1U << set->tags[i].bits;
        numbers[i] = (unsigned)random_below(random, max < TAGS_VALUES ? max : TAGS_VALUES);
        if (random_below(random, 2) == 0) {
            values.mask |= 1U << i;
            values.at[i] = value_of(numbers[i], value_text[i]);
            is_same = is_same && numbers[i] == twin->values[number][i];
        }
    }
    bool fits = tags_fit(twin->pair->board, &values, &full);
    enum tags_status status =
        by_rank ? tags_set_at(twin->pair->board, board_rank_of(twin->pair->board, &member), &values,
                              &full)
                : tags_set(twin->pair->board, &member, &values, &full);
    assert_int_equal(status == TAGS_FULL, !fits);
    if (status == TAGS_FULL) {
        /* Values of what has been removed and is not freed yet count, too. */
        assert_true(board_has_remains(twin->pair->board) ||
                    count_values(twin, full) == (1U << set->tags[full].bits) - 1);
        return;
    }
    assert_int_equal(status, is_same ? TAGS_SAME : TAGS_OK);
    for (unsigned i = 0; i < set->count; i++) {
        if ((values.mask >> i & 1) != 0) {
            twin->values[number][i] = (uint8_t)numbers[i];
        }
    }
}

static void twin_remove(struct tags_twin *twin, uint32_t number) {
    char text[PAIR_MEMBER_MAX];
    pair_remove(twin->pair, user_of(number, text));
    memset(twin->values[number], 0, sizeof twin->values[number]);
}

static void twin_remove_range(struct tags_twin *twin, uint32_t rank, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        uint32_t number = number_of(stored_text(board_at(twin->pair->board, rank + i).member));
        memset(twin->values[number], 0, sizeof twin->values[number]);
    }
    pair_remove_range(twin->pair, rank, count);
}

/* Other tags: one goes, or comes, or has other bits. */
static void twin_alter(struct tags_twin *twin, struct random *random) {
    struct board *board = twin->pair->board;
    struct layout *layout = &twin->layouts[board_layout(board) == &twin->layouts[0]];
    char error[TAG_ERROR_MAX], bits[8];
    unsigned full, count = tags_now(twin)->count;
    *layout = *board_layout(board);
    unsigned at = (unsigned)random_below(random, TAGS_MAX);
    int size = snprintf(bits, sizeof bits, "%u", (unsigned)random_below(random, 6) + 1);
    struct bytes width = {bits, (size_t)size};
    bool is_removal = at < count && random_below(random, 2) == 0;
    if (is_removal) {
        tag_set_remove(&layout->tags, at);
    } else if (at < count) {
        if (!tag_set_resize(&layout->tags, at, width, error)) {
            return;
        }
    } else {
        static unsigned names;
        char name[16];
        int name_size = snprintf(name, sizeof name, "tag-%u", names++);
        if (!tag_set_add(&layout->tags, (struct bytes){name, (size_t)name_size}, width, error)) {
            return;
        }
    }
    if (tags_alter(board, layout, &full) != TAGS_OK) {
        assert_int_equal(full, at);
        assert_true(tags_count_values(board, at) >= 1U << layout->tags.tags[at].bits);
        return;
    }
    for (uint32_t i = 0; i < TAGS_MEMBERS && is_removal; i++) {
        memmove(twin->values[i] + at, twin->values[i] + at + 1, TAGS_MAX - at - 1);
        twin->values[i][TAGS_MAX - 1] = 0;
    }
}

/* ---- comparing ---- */

static void compare_values(const struct tags_twin *twin, uint32_t rank) {
    char text[PAIR_MEMBER_MAX], value_text[TAG_VALUE_MAX];
    struct tag_values values;
    struct board_member member;
    const struct board *board = twin->pair->board;
    uint32_t number = number_of(stored_text(board_at(board, rank).member));
    for (int way = 0; way < 3; way++) {
        if (way == 0) {
            tags_at(board, rank, &values);
        } else if (way == 1) {
            struct lookup_found found;
            struct bytes name = user_of(number, text);
            lookup_read(board, &name, 1, &found);
            assert_int_equal(found.rank, rank);
            tags_below_many(board, &found.below, 1, &values);
        } else {
            board_look_up(board, user_of(number, text), NULL, &member);
            tags_of(board, &member, &values);
        }
        for (unsigned i = 0; i < tags_now(twin)->count; i++) {
            struct bytes wanted = value_of(twin->values[number][i], value_text);
            assert_int_equal(values.mask >> i & 1, wanted.size > 0);
            assert_true(wanted.size == 0 || bytes_equal(values.at[i], wanted));
        }
    }
}

enum { CHOICES = 60 }; /* of several tags more than are compared side by side */

struct group {
    struct tag_choice choices[CHOICES];
    unsigned numbers[CHOICES];
    char texts[CHOICES][TAG_VALUE_MAX];
    uint32_t count;
};

static void group_draw(struct group *group, const struct tag_set *set, struct random *random) {
    group->count = 0;
    if (set->count == 0) {
        return;
    }
    static const unsigned most[] = {4, 4, 12, CHOICES};
    uint32_t wanted = (uint32_t)random_below(random, most[random_below(random, 4)]);
    unsigned excluding =
        (unsigned)random_below(random, 1U << set->count); /* alone, of these tags */
    for (; group->count < wanted; group->count++) {
        struct tag_choice *choice = &group->choices[group->count];
        unsigned number = (unsigned)random_below(random, random_below(random, 2) == 0 ? 4 : 40);
        choice->tag = (uint8_t)random_below(random, set->count);
        choice->is_excluded = (excluding >> choice->tag & 1) != 0 || random_below(random, 8) == 0;
        choice->value = value_of(number, group->texts[group->count]);
        group->numbers[group->count] = number;
    }
}

static bool group_has(const struct group *group, const uint8_t *values) {
    for (unsigned tag = 0; tag < TAGS_MAX; tag++) {
        bool is_asked = false, is_in = false;
        for (uint32_t i = 0; i < group->count; i++) {
            if (group->choices[i].tag != tag) {
                continue;
            }
            bool is_same = values[tag] == group->numbers[i];
            if (group->choices[i].is_excluded && is_same) {
                return false;
            }
            is_asked = is_asked || !group->choices[i].is_excluded;
            is_in = is_in || (!group->choices[i].is_excluded && is_same);
        }
        if (is_asked && !is_in) {
            return false;
        }
    }
    return true;
}

/* The part of a group that has the values of one member of some tags. *part is used for one after another. */
static void compare_part(const struct tags_twin *twin, const struct group *group,
                         const struct tag_filter *whole, struct random *random,
                         struct tag_filter **part) {
    const struct board *board = twin->pair->board;
    uint32_t all = board_count(board), inside = 0;
    uint32_t rank = (uint32_t)random_below(random, all), seen = (uint32_t)random_below(random, all);
    const uint8_t *own = twin->values[number_of(stored_text(board_at(board, rank).member))];
    unsigned mask = (unsigned)random_below(random, 1U << tags_now(twin)->count);
    struct tag_values values;
    struct board_cursor cursor;
    struct board_stored entry;
    uint32_t at = 0, before = 0;
    if (!group_has(group, own)) {
        return;
    }
    tags_at(board, rank, &values);
    assert_true(tag_filter_narrow(board, whole, mask, &values, part));
    for (board_cursor_seek(board, 0, &cursor); board_cursor_read(&cursor, &entry);
         board_cursor_next(&cursor), at++) {
        const uint8_t *its = twin->values[number_of(stored_text(entry.member))];
        bool is_in = group_has(group, its);
        for (unsigned tag = 0; tag < tags_now(twin)->count; tag++) {
            is_in = is_in && ((mask >> tag & 1) == 0 || its[tag] == own[tag]);
        }
        before += is_in && at < seen;
        inside += is_in;
    }
    assert_int_equal(tag_group_count(board, *part, seen), before);
    assert_int_equal(tag_group_count(board, *part, all), inside);
}

/* A page of the group's members, read from `from` on in either direction, begins with the nth and has all that there are
 * up to its size. */
static void compare_page(const struct board *board, struct tag_filter *filter,
                         struct random *random, const uint32_t *ranks, uint32_t count, uint32_t nth,
                         uint32_t from, bool is_best_first) {
    enum { PAGE = 300 };
    uint32_t page[PAGE + 1] = {0}, left = is_best_first ? count - nth : nth + 1;
    uint32_t size = (uint32_t)random_below(random, random_below(random, 4) == 0 ? PAGE : 20);
    uint32_t found = tag_group_read(board, filter, from, is_best_first, page, size);
    assert_int_equal(found, size < left ? size : left);
    for (uint32_t i = 0; i < found; i++) {
        assert_int_equal(page[i], ranks[is_best_first ? nth + i : nth - i]);
    }
    assert_int_equal(page[size], 0);
}

static void compare_group(const struct tags_twin *twin, struct random *random) {
    static uint32_t ranks[TAGS_MEMBERS];
    struct group group;
    const struct board *board = twin->pair->board;
    uint32_t count = 0, rank, all = board_count(board), checks = 20;
    struct board_cursor cursor;
    struct board_stored entry;
    group_draw(&group, tags_now(twin), random);
    struct tag_filter *filter = tag_filter_create(board, group.choices, group.count);
    assert_non_null(filter);
    if (random_below(random, 2) == 0) { /* half of all have marks from the first rank on */
        tag_filter_expect(filter, UINT32_MAX);
    }
    uint32_t at = 0;
    for (board_cursor_seek(board, 0, &cursor); board_cursor_read(&cursor, &entry);
         board_cursor_next(&cursor), at++) {
        bool is_in = group_has(&group, twin->values[number_of(stored_text(entry.member))]);
        if (is_in) {
            ranks[count++] = at;
        }
        if (random_below(random, 64) == 0) {
            struct board_member member;
            board_look_up(board, stored_text(entry.member), NULL, &member);
            assert_int_equal(tag_group_has(board, filter, &member), is_in);
            assert_int_equal(tag_group_rank(board, filter, &member), count - is_in);
            assert_int_equal(tag_group_count(board, filter, at + 1), count);
        }
    }
    assert_int_equal(tag_group_count(board, filter, all), count);
    uint32_t counts[BOARD_AT_MAX], places[BOARD_AT_MAX];
    for (uint32_t i = 0; i < BOARD_AT_MAX; i++) {
        counts[i] = places[i] = (uint32_t)random_below(random, all + 1);
    }
    tag_group_count_many(board, filter, BOARD_AT_MAX, counts);
    for (uint32_t i = 0; i < BOARD_AT_MAX; i++) {
        assert_int_equal(counts[i], tag_group_count(board, filter, places[i]));
    }
    assert_false(tag_group_find(board, filter, count, &rank));
    for (uint32_t i = 0; i < checks && count > 0; i++) {
        uint32_t nth = (uint32_t)random_below(random, count);
        assert_true(tag_group_find(board, filter, nth, &rank));
        assert_int_equal(rank, ranks[nth]);
        uint32_t from = nth > 0 ? ranks[nth - 1] + 1 : 0;
        from += (uint32_t)random_below(random, ranks[nth] - from + 1);
        compare_page(board, filter, random, ranks, count, nth, from, true);
        uint32_t end = nth + 1 < count ? ranks[nth + 1] : all;
        from = ranks[nth] + (uint32_t)random_below(random, end - ranks[nth]);
        compare_page(board, filter, random, ranks, count, nth, from, false);
    }
    uint32_t behind = count > 0 ? ranks[count - 1] + 1 : 0;
    assert_int_equal(tag_group_read(board, filter, behind, true, &rank, 1), 0);
    if (count > 0 && ranks[0] > 0) {
        assert_int_equal(tag_group_read(board, filter, ranks[0] - 1, false, &rank, 1), 0);
    }
    struct tag_filter *part = NULL;
    for (int i = 0; i < 3 && all > 0; i++) {
        compare_part(twin, &group, filter, random, &part);
    }
    tag_filter_destroy(part);
    tag_filter_destroy(filter);
}

/* Members of a group in a range with the values that a row has. */
static uint32_t count_row(const struct tags_twin *twin, const struct group *group, uint32_t from,
                          uint32_t to, const struct tag_histogram *made, uint32_t row) {
    uint32_t found = 0;
    char text[TAG_VALUE_MAX];
    for (uint32_t rank = from; rank < to; rank++) {
        uint32_t number = number_of(stored_text(board_at(twin->pair->board, rank).member));
        bool is_same = group_has(group, twin->values[number]);
        for (uint32_t i = 0; i < made->by_count && is_same; i++) {
            struct bytes wanted = value_of(twin->values[number][made->by[i].tag], text);
            struct bytes value = tag_histogram_value(made, row, i);
            is_same = wanted.size == value.size && bytes_compare(wanted, value) == 0;
        }
        found += is_same;
    }
    return found;
}

static void assert_rows_ascend(const struct tag_histogram *made, uint32_t row) {
    int order = made->rows[row].count < made->rows[row - 1].count ? 1 : 0;
    assert_true(made->rows[row].count <= made->rows[row - 1].count);
    for (uint32_t i = 0; i < made->by_count && order == 0; i++) {
        order =
            bytes_compare(tag_histogram_value(made, row, i), tag_histogram_value(made, row - 1, i));
    }
    assert_true(order > 0);
}

static void compare_histogram(const struct tags_twin *twin, struct random *random) {
    struct group group;
    const struct board *board = twin->pair->board;
    uint32_t all = board_count(board), sum = 0, count = 0;
    unsigned by[TAGS_MAX];
    struct tag_histogram made;
    group_draw(&group, tags_now(twin), random);
    uint32_t from = (uint32_t)random_below(random, all + 1);
    uint32_t to = from + (uint32_t)random_below(random, all - from + 1);
    for (unsigned i = 0; i < tags_now(twin)->count; i++) {
        uint32_t at = (uint32_t)random_below(random, count + 1);
        if (random_below(random, 2) == 0) {
            memmove(&by[at + 1], &by[at], (count - at) * sizeof by[0]);
            by[at] = i;
            count++;
        }
    }
    struct tag_filter *filter = tag_filter_create(board, group.choices, group.count);
    assert_true(tag_histogram_make(board, filter, from, to, by, count, &made));
    for (uint32_t row = 0; row < made.count; row++) {
        assert_int_equal(made.rows[row].count, count_row(twin, &group, from, to, &made, row));
        if (row > 0) {
            assert_rows_ascend(&made, row);
        }
        sum += made.rows[row].count;
    }
    assert_int_equal(sum,
                     tag_group_count(board, filter, to) - tag_group_count(board, filter, from));
    tag_histogram_deinit(&made);
    tag_filter_destroy(filter);
}

static void twin_compare(const struct tags_twin *twin, struct random *random) {
    const struct board *board = twin->pair->board;
    pair_compare(twin->pair);
    for (int i = 0; i < 50 && board_count(board) > 0; i++) {
        compare_values(twin, (uint32_t)random_below(random, board_count(board)));
    }
    for (unsigned i = 0; i < tags_now(twin)->count; i++) {
        if (!board_has_remains(board)) {
            assert_int_equal(tags_count_values(board, i), count_values(twin, i));
        }
    }
    for (int i = 0; i < 4; i++) {
        compare_group(twin, random);
    }
}

static void twin_copy_board(struct tags_twin *twin) {
    struct board copy, before;
    assert_true(board_copy(twin->pair->board, &copy));
    board_move_to(twin->pair->board, &before);
    board_move_to(&copy, twin->pair->board);
    board_deinit(&before);
}

static void twin_step(struct tags_twin *twin, struct random *random, uint32_t members,
                      bool is_growing) {
    char text[PAIR_MEMBER_MAX];
    uint32_t number = (uint32_t)random_below(random, members);
    uint64_t dice = random_below(random, 1000);
    uint32_t all = board_count(twin->pair->board);
    if (dice < (is_growing ? 500U : 250U)) {
        pair_put(twin->pair, user_of(number, text), random_below(random, 500));
    } else if (dice < 800) {
        twin_tag(twin, random, number, dice % 2 == 0);
    } else if (dice < 990) {
        if (!is_growing || dice < 850) {
            twin_remove(twin, number);
        }
    } else if (dice < 993 && all > 0) {
        uint32_t rank = (uint32_t)random_below(random, all);
        uint32_t count = (uint32_t)random_below(random, all - rank) / (is_growing ? 8 : 1) + 1;
        twin_remove_range(twin, rank, count);
    } else if (dice < 996) {
        twin_alter(twin, random);
    } else if (dice < 998) {
        twin_copy_board(twin);
    } else {
        while (!twin->is_counted_slowly && !board_free_step(twin->pair->board, 100)) {
            continue;
        }
    }
    if (twin->is_counted_slowly) {
        (void)board_free_step(twin->pair->board, 1);
    }
}

static void twin_run(struct board_pair *pair, struct random *random, uint32_t members, int steps,
                     int compare_every) {
    static struct tags_twin twin;
    twin_begin(&twin, pair);
    twin.is_counted_slowly = random_below(random, 2) == 0;
    for (int i = 0; i < steps; i++) {
        twin_step(&twin, random, members, i / 2000 % 3 != 2);
        if (i % compare_every == 0) {
            twin_compare(&twin, random);
        }
        if (i % (10 * compare_every) == 0) {
            compare_histogram(&twin, random);
        }
    }
    twin_compare(&twin, random);
}

PAIR_TEST(a_few_members_have_the_values_they_were_given) {
    twin_run(pair, random, 40, 6000, 20);
}

PAIR_TEST(many_members_have_the_values_they_were_given) {
    twin_run(pair, random, TAGS_MEMBERS, 40000, 1000);
}

/* One tag in dense numbers, one that only rows have, and one that only sorted numbers have; or two of these. */
PAIR_TEST(large_and_small_tags_are_combined_in_any_way) {
    static const unsigned bits[][3] = {{16, 8, 8}, {13, 7, 4}, {14, 13, 5}, {12, 11, 9}};
    static struct tags_twin twin;
    unsigned set = (unsigned)random_below(random, 4);
    memset(&twin, 0, sizeof twin);
    twin.pair = pair;
    add_tag(&pair->layout, "country", bits[set][1]);
    add_tag(&pair->layout, "clan", bits[set][0]);
    add_tag(&pair->layout, "class", bits[set][2]);
    for (uint32_t i = 0; i < TAGS_MEMBERS; i++) {
        char text[PAIR_MEMBER_MAX];
        pair_put(pair, user_of(i, text), random_below(random, 500));
        twin_tag(&twin, random, i, false);
        twin_tag(&twin, random, i, true);
    }
    for (int i = 0; i < 40; i++) {
        twin_compare(&twin, random);
        twin_step(&twin, random, TAGS_MEMBERS, true);
    }
    compare_histogram(&twin, random);
}

/* What a rank inside a group reads. */
static uint64_t count_read(const struct board *board, const struct tag_choice *choices,
                           uint32_t count, uint32_t ranks) {
    struct tag_filter *filter = tag_filter_create(board, choices, count);
    assert_non_null(filter);
    (void)tag_group_count(board, filter, ranks);
    uint64_t read = filter->marks.read;
    tag_filter_destroy(filter);
    return read;
}

struct tested_tag {
    unsigned bits;
    uint32_t kinds; /* different values */
};

/* Any three tests, of which several may be of one tag, read at most ten times as much as one WHERE of the first tag.
 * Of a part of the short form: some of the threes. */
static void compare_reads(struct board_pair *pair, struct random *random,
                          const struct tested_tag *tags, unsigned tag_count) {
    enum { ALL = 60000, TESTS = 4 * 3 };
    struct tag_choice tests[TESTS];
    char text[PAIR_MEMBER_MAX], texts[TESTS][TAG_VALUE_MAX];
    unsigned full, test_count = 4 * tag_count;
    for (unsigned tag = 0; tag < tag_count; tag++) {
        snprintf(text, sizeof text, "tag-%u", tag);
        add_tag(&pair->layout, text, tags[tag].bits);
    }
    for (uint32_t i = 0; i < ALL; i++) {
        struct board_member member;
        struct tag_values values = {.mask = (1U << tag_count) - 1};
        for (unsigned tag = 0; tag < tag_count; tag++) {
            uint32_t number = 1 + (uint32_t)random_below(random, tags[tag].kinds);
            number = i < 2 ? 1 + i : number; /* somebody has those that are asked for */
            values.at[tag] = value_of(number, texts[tag]);
        }
        assert_int_equal(board_put(pair->board, user_of(i, text), random_below(random, ALL)),
                         BOARD_OK);
        board_look_up(pair->board, user_of(i, text), NULL, &member);
        assert_true(tags_set(pair->board, &member, &values, &full) < TAGS_OUT_OF_MEMORY);
    }
    for (unsigned i = 0; i < test_count; i++) {
        tests[i] = (struct tag_choice){.tag = (uint8_t)(i / 4),
                                       .is_excluded = i % 4 > 1,
                                       .value = value_of(1 + i % 2, texts[i])};
    }
    for (uint32_t ranks = ALL / 2; ranks <= ALL; ranks += ALL / 2) {
        uint64_t first = count_read(pair->board, &tests[0], 1, ranks);
        uint64_t second = count_read(pair->board, &tests[1], 1, ranks);
        uint64_t one = first > second ? first : second;
#ifndef SKIPLIST_TINY /* where lists are of so few values that none is kept */
        assert_true(ranks < ALL || one < ALL / 10);
#endif
        const uint32_t step = test_step(1, 1);
        for (unsigned i = (unsigned)random_below(random, step);
             i < test_count * test_count * test_count; i += step) {
            struct tag_choice three[] = {tests[i % test_count], tests[i / test_count % test_count],
                                         tests[i / test_count / test_count]};
            assert_true(count_read(pair->board, three, 3, ranks) <= 10 * one);
        }
    }
}

PAIR_TEST(no_three_tests_read_ten_times_as_much_as_one) {
    static const struct tested_tag tags[] = {{16, 60000}, {8, 250}, {4, 15}};
    compare_reads(pair, random, tags, 3);
}

PAIR_TEST(tests_of_two_large_tags_read_no_more_than_those_of_one) {
    static const struct tested_tag tags[] = {{16, 1000}, {16, 1000}};
    compare_reads(pair, random, tags, 2);
}

PAIR_TEST(tests_of_two_large_tags_and_a_small_one_read_no_more_than_those_of_one) {
    static const struct tested_tag tags[] = {{14, 1000}, {13, 1000}, {5, 30}};
    compare_reads(pair, random, tags, 3);
}

/* However many ranks one filter is asked for. */
PAIR_TEST(a_filter_reads_a_board_about_twice_at_most) {
    enum { ALL = 20000 };
    char text[PAIR_MEMBER_MAX], value_text[TAG_VALUE_MAX];
    struct tag_choice choices[2];
    char texts[2][TAG_VALUE_MAX];
    unsigned full;
    add_tag(&pair->layout, "clan", 16);
    add_tag(&pair->layout, "guild", 16);
    for (uint32_t i = 0; i < ALL; i++) {
        struct board_member member;
        struct tag_values values = {.mask = 2, .at = {[1] = value_of(i % 50 + 1, value_text)}};
        assert_int_equal(board_put(pair->board, user_of(i, text), random_below(random, ALL)),
                         BOARD_OK);
        board_look_up(pair->board, user_of(i, text), NULL, &member);
        assert_int_equal(tags_set(pair->board, &member, &values, &full), TAGS_OK);
    }
    for (unsigned i = 0; i < 2; i++) {
        choices[i] = (struct tag_choice){
            .tag = 1, .is_excluded = i == 1, .value = value_of(i + 1, texts[i])};
    }
    struct tag_filter *filter = tag_filter_create(pair->board, choices, 2);
    assert_non_null(filter);
    uint32_t rank = 0, count = tag_group_count(pair->board, filter, ALL);
    uint64_t read = 0;
    for (uint32_t i = 0; i < 1000; i++) {
        assert_true(tag_group_find(pair->board, filter, i % count, &rank));
        assert_int_equal(tag_group_count(pair->board, filter, rank), i % count);
        read = filter->marks.read > read ? filter->marks.read : read;
    }
    assert_true(read <= 2 * ALL);
    assert_non_null(filter->marks.at);
    tag_filter_destroy(filter);
}

PAIR_TEST(after_other_tags_all_is_counted_anew_before_it_is_asked_for) {
    enum { ALL = 9000 };
    static struct layout more;
    char text[PAIR_MEMBER_MAX], value_text[TAG_VALUE_MAX];
    unsigned full;
    add_tag(&pair->layout, "clan", 6);
    for (uint32_t i = 0; i < ALL; i++) {
        struct tag_values values = {.mask = 1, .at = {value_of(i % 50 + 1, value_text)}};
        pair_put(pair, user_of(i, text), random_below(random, ALL));
        assert_int_equal(tags_set_at(pair->board, board_count(pair->board) - 1, &values, &full) <
                             TAGS_OUT_OF_MEMORY,
                         true);
    }
    more = pair->layout;
    add_tag(&more, "guild", 16);
    assert_int_equal(tags_alter(pair->board, &more, &full), TAGS_OK);
    while (!board_free_step(pair->board, 100)) {
        continue;
    }
    const struct skiplist *list = &pair->board->large->list;
    for (uint32_t id = 0; id < list->node_end; id++) {
        const struct skiplist_node *node = skiplist_node(list, id);
        if (node->block != NULL && node->level > 1) {
            const struct tag_counts *counts = index_at(list, id)->counts;
            assert_non_null(counts);
            assert_int_equal(counts->number, list->tags->plan.number);
        }
    }
}

static bool has_counts(const struct board *board, uint32_t number) {
    const struct skiplist *list = &board->large->list;
    const struct index_block *root = index_at(list, list->root);
    return root->counts != NULL && root->counts->number == number;
}

/* A root of so many children that are lowest index blocks. */
PAIR_TEST(what_is_counted_anew_is_counted_in_steps_while_members_change) {
    enum { ALL = INDEX_FANOUT * BLOCK_ENTRIES_MAX * (INDEX_FANOUT / 8 + 1) };
    static struct layout more;
    char text[PAIR_MEMBER_MAX], value_text[TAG_VALUE_MAX];
    struct board_member member;
    unsigned full;
    pair->layout.tags = (struct tag_set){.count = 0};
    add_tag(&pair->layout, "clan", 6);
    for (uint32_t i = 0; i < ALL; i++) {
        struct tag_values values = {.mask = 1, .at = {value_of(i % 50 + 1, value_text)}};
        assert_int_equal(board_put(pair->board, user_of(i, text), random_below(random, ALL)),
                         BOARD_OK);
        board_look_up(pair->board, user_of(i, text), NULL, &member);
        assert_in_range(tags_set(pair->board, &member, &values, &full), TAGS_OK, TAGS_SAME);
    }
    more = pair->layout;
    add_tag(&more, "guild", 16);
    assert_int_equal(tags_alter(pair->board, &more, &full), TAGS_OK);
    const struct skiplist *list = &pair->board->large->list;
    uint32_t number = list->tags->plan.number, begun = 0, child_count = 0;
    while (!has_counts(pair->board, number)) {
        const struct index_block *root = index_at(list, list->root);
        child_count = root->count;
        begun += root->counts != NULL && root->counts->number == (number | TAG_COUNTS_BEGUN);
        uint32_t i = (uint32_t)random_below(random, ALL);
        struct tag_values values = {
            .mask = 2, .at = {[1] = value_of((unsigned)random_below(random, 100), value_text)}};
        assert_int_equal(board_put(pair->board, user_of(i, text), random_below(random, ALL)),
                         BOARD_OK);
        board_look_up(pair->board, user_of(i, text), NULL, &member);
        assert_in_range(tags_set(pair->board, &member, &values, &full), TAGS_OK, TAGS_SAME);
        (void)board_free_step(pair->board, 1);
        ASSERT_VALID(board_validate, pair->board);
    }
    /* Few are counted at once where a value comes. */
    assert_true(child_count <= 8 || begun >= (child_count - 1) / TAG_FILL_CHILDREN);
    board_deinit(pair->board);
}

PAIR_TEST(a_tag_takes_as_many_values_as_its_bits_allow) {
    char text[PAIR_MEMBER_MAX], value_text[TAG_VALUE_MAX];
    unsigned full = TAGS_MAX;
    struct board_member member;
    pair->layout.tags = (struct tag_set){.count = 0};
    add_tag(&pair->layout, "clan", 6);
    for (uint32_t i = 0; i <= 64; i++) {
        pair_put(pair, user_of(i, text), i);
    }
    for (uint32_t i = 0; i <= 64; i++) {
        struct tag_values values = {.mask = 1, .at = {value_of(i + 1, value_text)}};
        board_look_up(pair->board, user_of(i, text), NULL, &member);
        assert_int_equal(tags_fit(pair->board, &values, &full), i < 63);
        assert_int_equal(tags_set(pair->board, &member, &values, &full),
                         i < 63 ? TAGS_OK : TAGS_FULL);
    }
    assert_int_equal(full, 0);
    /* A value that nobody has any more makes room. */
    struct tag_values none = {.mask = 1};
    board_look_up(pair->board, user_of(0, text), NULL, &member);
    assert_int_equal(tags_set(pair->board, &member, &none, &full), TAGS_OK);
    struct tag_values values = {.mask = 1, .at = {value_of(64, value_text)}};
    board_look_up(pair->board, user_of(64, text), NULL, &member);
    assert_int_equal(tags_set(pair->board, &member, &values, &full), TAGS_OK);
    assert_int_equal(tags_count_values(pair->board, 0), 63);
    ASSERT_VALID(board_validate, pair->board);
}

/* Members with these values, or (is_excluded) without them. */
static uint32_t count_with(const struct board *board, uint32_t first, uint32_t count,
                           bool is_excluded) {
    static struct tag_choice choices[TAGS_VALUES];
    static char texts[TAGS_VALUES][TAG_VALUE_MAX];
    for (uint32_t i = 0; i < count; i++) {
        choices[i] = (struct tag_choice){
            .tag = 1, .is_excluded = is_excluded, .value = value_of(first + 997 * i, texts[i])};
    }
    struct tag_filter *filter = tag_filter_create(board, choices, count);
    assert_non_null(filter);
    uint32_t found = tag_group_count(board, filter, board_count(board));
    tag_filter_destroy(filter);
    return found;
}

/* Only the table that is counted in grows: its rows, which are in its order, would lie close together in another one that does.
 * Whatever is not given, nothing is left behind. */
static void expect_histogram_of_few_requests(const struct board *board, unsigned by) {
    enum { GROWING = 8, OTHERS = 5 };
    struct tag_histogram made;
    uint64_t before = memory_requests(), live = memory_live_count();
    assert_true(tag_histogram_make(board, NULL, 0, board_count(board), &by, 1, &made));
    tag_histogram_deinit(&made);
    uint64_t requests = memory_requests() - before;
    assert_in_range(requests, OTHERS, GROWING + OTHERS);
    for (uint64_t nth = 1; nth <= requests; nth++) {
        memory_fail_at(nth);
        assert_false(tag_histogram_make(board, NULL, 0, board_count(board), &by, 1, &made));
        tag_histogram_deinit(&made);
        assert_int_equal(memory_live_count(), live);
    }
    memory_fail_at(0);
}

/* More than an index block has sorted numbers for, and in bits of a code that are not the lowest. */
PAIR_TEST(each_member_has_a_value_of_its_own) {
    enum { ALL = 140000 };
    char text[PAIR_MEMBER_MAX], value_text[TAG_VALUE_MAX];
    struct board_member member;
    unsigned full, clan = 1;
    struct tag_histogram made;
    pair->layout.tags = (struct tag_set){.count = 0};
    add_tag(&pair->layout, "claimed", 12);
    add_tag(&pair->layout, "clan", 20);
    for (uint32_t i = 1; i <= ALL; i++) {
        struct tag_values values = {.mask = 2, .at = {[1] = value_of(i, value_text)}};
        struct bytes user = user_of(i, text);
        assert_int_equal(board_put(pair->board, user, random_below(random, ALL)), BOARD_OK);
        board_look_up(pair->board, user, NULL, &member);
        assert_int_equal(tags_set(pair->board, &member, &values, &full), TAGS_OK);
    }
    ASSERT_VALID(board_validate, pair->board);
    assert_int_equal(count_with(pair->board, 5, 1, false), 1);
    assert_int_equal(count_with(pair->board, 5, 1, true), ALL - 1);
    assert_int_equal(count_with(pair->board, 5, TAGS_VALUES, false), TAGS_VALUES);
    assert_int_equal(count_with(pair->board, 5, TAGS_VALUES, true), ALL - TAGS_VALUES);
    assert_int_equal(count_with(pair->board, ALL + 1, 1, false), 0);
    assert_true(tag_histogram_make(pair->board, NULL, 0, ALL, &clan, 1, &made));
    assert_int_equal(made.count, ALL);
    for (uint32_t row = 1; row < ALL; row++) {
        assert_rows_ascend(&made, row);
    }
    tag_histogram_deinit(&made);
    expect_histogram_of_few_requests(pair->board, clan);
}

PAIR_TEST(a_tag_with_fewer_bits_gives_codes_that_fit) {
    static struct layout fewer;
    char text[PAIR_MEMBER_MAX], value_text[TAG_VALUE_MAX];
    unsigned full = TAGS_MAX;
    struct board_member member;
    pair->layout.tags = (struct tag_set){.count = 0};
    add_tag(&pair->layout, "clan", 6);
    for (uint32_t i = 0; i < 60; i++) {
        struct tag_values values = {.mask = 1, .at = {value_of(i + 1, value_text)}};
        pair_put(pair, user_of(i, text), i);
        board_look_up(pair->board, user_of(i, text), NULL, &member);
        assert_int_equal(tags_set(pair->board, &member, &values, &full), TAGS_OK);
    }
    for (uint32_t i = 3; i < 60; i++) { /* the last code is the first to be given again */
        pair_remove(pair, user_of(i, text));
    }
    fewer = pair->layout;
    fewer.tags.tags[0].bits = 3;
    assert_int_equal(tags_alter(pair->board, &fewer, &full), TAGS_OK);
    for (uint32_t i = 0; i < 5; i++) {
        struct tag_values values = {.mask = 1, .at = {value_of(100 + i, value_text)}}, read;
        pair_put(pair, user_of(100 + i, text), i);
        board_look_up(pair->board, user_of(100 + i, text), NULL, &member);
        assert_int_equal(tags_set(pair->board, &member, &values, &full),
                         i < 4 ? TAGS_OK : TAGS_FULL);
        tags_of(pair->board, &member, &read);
        assert_true(i == 4 || bytes_equal(read.at[0], values.at[0]));
    }
    ASSERT_VALID(board_validate, pair->board);
}

PAIR_TEST(values_whose_codes_are_large_fit_into_fewer_bits) {
    enum { ALL = 3000, VALUES = 60, LEFT = 7 };
    static struct layout fewer;
    static struct tags_twin twin;
    char text[PAIR_MEMBER_MAX], value_text[TAG_VALUE_MAX];
    unsigned full = TAGS_MAX;
    twin_begin(&twin, pair);
    for (uint32_t i = 0; i < ALL; i++) {
        struct board_member member;
        struct tag_values values = {.mask = 4, .at = {[2] = value_of(i % VALUES + 1, value_text)}};
        pair_put(pair, user_of(i, text), i / 7);
        board_look_up(pair->board, user_of(i, text), NULL, &member);
        assert_int_equal(tags_set(pair->board, &member, &values, &full), TAGS_OK);
        twin.values[i][2] = (uint8_t)(i % VALUES + 1);
    }
    for (uint32_t i = 0; i < ALL; i++) {
        if (i % VALUES < VALUES - LEFT) {
            twin_remove(&twin, i);
        }
    }
    fewer = pair->layout;
    fewer.tags.tags[2].bits = 3;
    for (uint64_t nth = 1;; nth++) {
        memory_fail_at(nth);
        enum tags_status status = tags_alter(pair->board, &fewer, &full);
        memory_fail_at(0);
        twin_compare(&twin, random);
        if (status == TAGS_OK) {
            break;
        }
        assert_int_equal(status, TAGS_OUT_OF_MEMORY);
    }
    assert_int_equal(tags_count_values(pair->board, 2), LEFT);
}

PAIR_TEST(a_board_whose_last_tag_is_removed_is_as_without_tags) {
    static struct layout bare;
    char text[PAIR_MEMBER_MAX], value_text[TAG_VALUE_MAX];
    unsigned full = TAGS_MAX;
    struct board_member member;
    pair->layout.tags = (struct tag_set){.count = 0};
    add_tag(&pair->layout, "clan", 12);
    pair_fill(pair, random, 3000, 1000);
    size_t before = board_memory_size(pair->board);
    for (uint32_t i = 0; i < 3000; i++) {
        struct tag_values values = {.mask = 1, .at = {value_of(i % 900 + 1, value_text)}};
        board_look_up(pair->board, member_of(i, text), NULL, &member);
        assert_in_range(tags_set(pair->board, &member, &values, &full), TAGS_OK, TAGS_SAME);
    }
    assert_true(board_memory_size(pair->board) > before + 3000);
    bare = pair->layout;
    bare.tags = (struct tag_set){.count = 0};
    assert_int_equal(tags_alter(pair->board, &bare, &full), TAGS_OK);
    assert_true(board_has_remains(pair->board));
    for (uint32_t i = 0; i < 40; i++) { /* members come and go meanwhile */
        ASSERT_VALID(board_validate, pair->board);
        pair_put(pair, member_of(3000 + i, text), i);
        pair_remove(pair, member_of(i, text));
        (void)board_free_step(pair->board, 20);
    }
    while (!board_free_step(pair->board, 20)) {
        continue;
    }
    assert_false(board_has_remains(pair->board));
    assert_in_range(board_memory_size(pair->board), 0, before + before / 50);
    pair_compare(pair);
}

PAIR_TEST(a_million_values_one_after_another_leave_nothing_behind) {
    char text[PAIR_MEMBER_MAX], value_text[TAG_VALUE_MAX];
    struct board_member member;
    unsigned full;
    size_t before = 0;
    pair->layout.tags = (struct tag_set){.count = 0};
    add_tag(&pair->layout, "clan", 20);
    pair_put(pair, user_of(1, text), 1);
    board_look_up(pair->board, user_of(1, text), NULL, &member);
    for (unsigned i = 1; i < 1000000; i++) {
        struct tag_values values = {.mask = 1, .at = {value_of(i, value_text)}};
        assert_int_equal(tags_set(pair->board, &member, &values, &full), TAGS_OK);
        if (i == 1000) {
            before = board_memory_size(pair->board);
            board_look_up(pair->board, user_of(1, text), NULL, &member);
        }
    }
    assert_in_range(board_memory_size(pair->board), 0, before + 64);
}

/* As files are loaded: in rank order, some members at a time, and then their values. */
PAIR_TEST(a_board_that_is_filled_in_rank_order_has_them) {
    enum { FILLED = 6000, AT_ONCE = 200 };
    static uint8_t numbers[FILLED];
    char texts[AT_ONCE][PAIR_MEMBER_MAX], value_text[TAG_VALUE_MAX];
    struct board_entry entries[AT_ONCE];
    ENDED_BY(board_deinit) struct board board;
    unsigned full;
    pair->layout.tags = (struct tag_set){.count = 0};
    add_tag(&pair->layout, "clan", 6);
    board_init(&board, &pair->layout, 7);
    for (uint32_t filled = 0; filled < FILLED;) {
        uint32_t count = (uint32_t)random_below(random, AT_ONCE) + 1;
        count = count < FILLED - filled ? count : FILLED - filled;
        for (uint32_t i = 0; i < count; i++) {
            entries[i] = (struct board_entry){.member = user_of(filled + i, texts[i]),
                                              .key = FILLED - filled - i};
        }
        assert_int_equal(board_append(&board, entries, count), BOARD_OK);
        for (uint32_t i = filled; i < filled + count; i++) {
            numbers[i] = (uint8_t)(random_below(random, 3) == 0 ? 0 : random_below(random, 63));
            struct tag_values values = {.mask = 1, .at = {value_of(numbers[i], value_text)}};
            assert_int_equal(tags_set_at(&board, i, &values, &full),
                             numbers[i] == 0 ? TAGS_SAME : TAGS_OK);
        }
        filled += count;
    }
    assert_int_equal(board_append_end(&board), BOARD_OK);
    ASSERT_VALID(board_validate, &board);
    for (uint32_t i = 0; i < FILLED; i++) {
        struct tag_values values;
        tags_at(&board, i, &values);
        assert_int_equal(values.mask, numbers[i] != 0);
        assert_true(numbers[i] == 0 || bytes_equal(values.at[0], value_of(numbers[i], value_text)));
    }
}

/* Each allocation of a step fails once: nothing changes then, and the step goes through in the end. */
PAIR_TEST(without_memory_nothing_changes) {
    static struct tags_twin twin;
    char text[PAIR_MEMBER_MAX], value_text[TAG_VALUE_MAX];
    twin_begin(&twin, pair);
    for (uint32_t i = 0; i < 600; i++) {
        uint32_t number = (uint32_t)random_below(random, 300);
        struct bytes name = user_of(number, text);
        uint64_t key = random_below(random, 100);
        for (uint64_t nth = 1;; nth++) {
            memory_fail_at(nth);
            enum board_status status = board_put(pair->board, name, key);
            memory_fail_at(0);
            if (status == BOARD_OK) {
                twin_board_put(&pair->twin, name, key);
                break;
            }
            if (i % 16 == 0) {
                pair_compare(pair);
            }
        }
        unsigned value = (unsigned)random_below(random, 20) + 1;
        for (uint64_t nth = 1;; nth++) {
            struct tag_values values = {.mask = 1, .at = {value_of(value, value_text)}};
            struct board_member member;
            unsigned full;
            board_look_up(pair->board, name, NULL, &member);
            memory_fail_at(nth);
            enum tags_status status = tags_set(pair->board, &member, &values, &full);
            memory_fail_at(0);
            if (status != TAGS_OUT_OF_MEMORY) {
                twin.values[number][0] = (uint8_t)value;
                break;
            }
            if (i % 16 == 0) {
                pair_compare(pair);
            }
        }
    }
    twin_compare(&twin, random);
}

PAIR_TEST(nothing_of_an_empty_board_would_be_read) {
    struct bytes name = {"ann", 3};
    struct tag_values values = {.mask = 1, .at = {{"7", 1}}};
    unsigned full;
    (void)random;
    add_tag(&pair->layout, "account", 20); /* too many values to count each */
    for (int i = 0; i < 2; i++) {
        struct board_member member;
        assert_int_equal(tag_filter_reads(pair->board, 1, 0), 0);
        assert_int_equal(tag_filter_reads(pair->board, 1, 1), 0);
        assert_int_equal(board_put(pair->board, name, 1), BOARD_OK);
        board_look_up(pair->board, name, NULL, &member);
        assert_int_equal(tags_set(pair->board, &member, &values, &full), TAGS_OK);
        assert_int_equal(tag_filter_reads(pair->board, 1, 1), 1);
        board_remove_range(pair->board, 0, 1);
    }
}

/* Values of one to 64 bytes that have up to 56 of them in common, or differ in the zero bytes that they end with. */
PAIR_TEST(values_are_in_order_however_much_they_have_in_common) {
    enum { ALL = 600, ENDS = 12 };
    static char texts[ALL][TAG_VALUE_MAX];
    char text[PAIR_MEMBER_MAX];
    unsigned by = 0, full;
    struct tag_histogram made;
    add_tag(&pair->layout, "clan", 12);
    for (uint32_t i = 0; i < ALL; i++) {
        struct tag_values values = {.mask = 1, .at = {{texts[i], 1}}};
        struct board_member member;
        if (i < ENDS) {
            values.at[0].size += i;
        } else {
            size_t size = (size_t)random_below(random, 4) * 20;
            char end[8];
            int end_size = snprintf(end, sizeof end, "%u", i);
            memset(texts[i], 'a' + (int)random_below(random, 2), size);
            memcpy(texts[i] + size, end, (size_t)end_size);
            values.at[0].size = size + (size_t)end_size;
        }
        assert_int_equal(board_put(pair->board, user_of(i, text), i), BOARD_OK);
        board_look_up(pair->board, user_of(i, text), NULL, &member);
        assert_int_equal(tags_set(pair->board, &member, &values, &full), TAGS_OK);
    }
    assert_true(tag_histogram_make(pair->board, NULL, 0, ALL, &by, 1, &made));
    assert_int_equal(made.count, ALL);
    for (uint32_t row = 1; row < ALL; row++) {
        assert_rows_ascend(&made, row);
    }
    tag_histogram_deinit(&made);
}

/* What is looked at to count these numbers, once each. */
static uint64_t count_steps(const uint32_t *numbers, uint32_t count, uint64_t seed) {
    uint64_t steps = 0;
    struct tag_histogram_table table = tag_histogram_begin(TAGS_BITS_MAX, count, 64, seed);
    for (uint32_t i = 0; i < count; i++) {
        assert_true(tag_histogram_add(&table, numbers[i], i + 1));
        uint32_t at = (uint32_t)(tag_histogram_at(&table, numbers[i]) - table.entries);
        steps += 1 + ((at - tag_histogram_home(&table, numbers[i])) & (table.capacity - 1));
    }
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(tag_histogram_at(&table, numbers[i])->count, i + 1);
    }
    memory_free(table.entries);
    return steps;
}

TEST(numbers_that_meet_in_one_table_do_not_meet_in_one_with_another_seed) {
    enum { CHOSEN = 2000, KINDS = 3, SEEDS = 20 };
    static uint32_t numbers[KINDS][CHOSEN];
    struct random random = random_begin(__func__);
    uint64_t seed = random_next(&random);
    struct tag_histogram_table table = tag_histogram_begin(TAGS_BITS_MAX, CHOSEN, 64, seed);
    assert_true(tag_histogram_grow(&table));
    for (uint32_t i = 0, number = 0; i < CHOSEN; number++) {
        if (tag_histogram_home(&table, number) == 0) {
            numbers[0][i++] = number;
        }
    }
    memory_free(table.entries);
    /* In the order of a hash without a seed, and one after another. */
    for (uint32_t i = 0; i < CHOSEN; i++) {
        numbers[1][i] = i * UINT32_C(244002641);
        numbers[2][i] = i;
    }
    /* They begin together, in a small part of what the table has become. */
    assert_true(count_steps(numbers[0], CHOSEN, seed) > 10 * CHOSEN);
    for (int i = 0; i < SEEDS; i++) {
        seed = random_next(&random);
        for (int kind = 0; kind < KINDS; kind++) {
            assert_in_range(count_steps(numbers[kind], CHOSEN, seed), CHOSEN, 3 * CHOSEN);
        }
    }
}
