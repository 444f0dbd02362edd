/* Any bytes as packed values of tags: refused, or packed as the same bytes again. What was read is set on members
 * of a board, which says the same of each and of groups as arrays do. The first byte picks the tags. */
#include "skiplist/tags.h"
#include "tests/fuzz/fuzz.h"

enum {
    MEMBERS = 200, /* more than a leaf has */
    STEPS_MAX = 4000,
    BITS_ALL = 32,
};

static struct bytes twin[MEMBERS][TAGS_MAX]; /* borrowed from the input */
static bool is_there[MEMBERS];

static bool is_in(struct bytes text, struct bytes input) {
    return text.size == 0 || (text.at >= input.at && text.at + text.size <= input.at + input.size);
}

/* Of values that were taken from the front of text, which now begins at left. */
static void check_packed(struct bytes text, struct bytes left, unsigned tag_count,
                         const struct tag_values *values) {
    char packed[TAG_VALUES_PACKED_MAX];
    struct tag_values again;
    size_t size = tag_values_pack(values, packed);
    CHECK(size <= sizeof packed && size == text.size - left.size);
    CHECK(memcmp(packed, text.at, size) == 0);
    CHECK(values->mask >> tag_count == 0);
    CHECK(tag_values_unpack((struct bytes){text.at, size}, tag_count, &again));
    CHECK(again.mask == values->mask);
    CHECK(!tag_values_unpack((struct bytes){text.at, size - 1}, tag_count, &again));
    for (unsigned i = 0; i < TAGS_MAX; i++) {
        bool is_set = (values->mask >> i & 1) != 0;
        CHECK(!is_set || (values->at[i].size <= TAG_VALUE_MAX && is_in(values->at[i], text)));
    }
}

static void name_member(uint32_t number, char *room, struct bytes *name) {
    *name = (struct bytes){room, (size_t)snprintf(room, 16, "user:%u", (unsigned)number)};
}

static bool find_member(const struct board *board, uint32_t number, char *room,
                        struct board_member *member) {
    struct bytes name;
    name_member(number, room, &name);
    board_look_up(board, name, NULL, member);
    CHECK(member->is_there == is_there[number]);
    return member->is_there;
}

static void set_values(struct board *board, uint32_t number, const struct tag_values *values) {
    char room[16];
    struct bytes name;
    struct board_member member;
    unsigned full = TAGS_MAX;
    name_member(number, room, &name);
    if (!is_there[number]) {
        CHECK(board_put(board, name, number % 16) == BOARD_OK);
        is_there[number] = true;
    }
    CHECK(find_member(board, number, room, &member));
    bool fits = tags_fit(board, values, &full);
    enum tags_status status = tags_set(board, &member, values, &full);
    CHECK(status != TAGS_OUT_OF_MEMORY);
    CHECK(fits == (status != TAGS_FULL));
    for (unsigned i = 0; i < TAGS_MAX && status != TAGS_FULL; i++) {
        if ((values->mask >> i & 1) != 0) {
            twin[number][i] = values->at[i];
        }
    }
}

static void remove_member(struct board *board, uint32_t number) {
    char room[16];
    struct board_member member;
    if (find_member(board, number, room, &member)) {
        board_remove_member(board, &member);
        is_there[number] = false;
        memset(twin[number], 0, sizeof twin[number]);
    }
}

/* Members with this value of a tag. */
static void check_group(const struct board *board, unsigned tag, struct bytes value) {
    const struct tag_choice choice = {.tag = (uint8_t)tag, .value = value};
    struct tag_filter *filter = tag_filter_create(board, &choice, 1);
    uint32_t wanted = 0;
    CHECK(filter != NULL);
    for (uint32_t i = 0; i < MEMBERS; i++) {
        wanted += is_there[i] && bytes_equal(twin[i][tag], value);
    }
    CHECK(tag_group_count(board, filter, board_count(board)) == wanted);
    tag_filter_destroy(filter);
}

static void check_board(const struct board *board, unsigned tag_count) {
    const char *reason = "";
    char room[16];
    if (!board_validate(board, &reason)) {
        fprintf(stderr, "%s\n", reason);
        abort();
    }
    for (uint32_t i = 0; i < MEMBERS; i++) {
        struct board_member member;
        struct tag_values values;
        if (!find_member(board, i, room, &member)) {
            continue;
        }
        tags_of(board, &member, &values);
        for (unsigned t = 0; t < tag_count; t++) {
            bool has_value = (values.mask >> t & 1) != 0;
            CHECK(has_value == (twin[i][t].size > 0));
            CHECK(!has_value || bytes_equal(values.at[t], twin[i][t]));
            if (i % 32 == 0) {
                check_group(board, t, twin[i][t]);
            }
        }
    }
}

/* As many tags as fit, of so many bits. */
static unsigned choose_tags(struct layout *layout, uint8_t choice) {
    unsigned count = choice % TAGS_MAX + 1U;
    unsigned bits = choice / TAGS_MAX % (BITS_ALL / count) + 1U;
    layout_init_default(layout);
    for (unsigned i = 0; i < count; i++) {
        char name[8], text[8], error[TAG_ERROR_MAX];
        int name_size = snprintf(name, sizeof name, "tag%u", i);
        int size = snprintf(text, sizeof text, "%u", bits);
        CHECK(tag_set_add(&layout->tags, (struct bytes){name, (size_t)name_size},
                          (struct bytes){text, (size_t)size}, error));
    }
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct layout layout;
    struct board board;
    struct tag_values values;
    if (size < 2) {
        return 0;
    }
    unsigned tag_count = choose_tags(&layout, data[0]);
    struct bytes text = {.at = (const char *)data + 1, .size = size - 1};
    memset(twin, 0, sizeof twin);
    memset(is_there, 0, sizeof is_there);
    board_init(&board, &layout, 7);
    for (uint32_t step = 0; step < STEPS_MAX && text.size > 1; step++) {
        uint32_t number = (uint8_t)*text.at;
        struct bytes left = bytes_behind(text, 1);
        if (number >= MEMBERS) {
            remove_member(&board, (uint8_t)*left.at % MEMBERS);
            text = bytes_behind(left, 1);
            continue;
        }
        text = left;
        if (!tag_values_take(&left, tag_count, &values)) {
            CHECK(bytes_equal(left, text));
            continue;
        }
        check_packed(text, left, tag_count, &values);
        set_values(&board, number, &values);
        text = left;
    }
    check_board(&board, tag_count);
    board_deinit(&board);
    return 0;
}
