/* Hashes, against a naive twin: an array of fields in the order in which they were added. */
#include "tests/support/test.h"

#include "codec/memory.h"
#include "skiplist/keyspace/hash.h"
#include "tests/support/random.h"

enum { FIELDS = 2000, VALUE_MAX = 40000, SEED = 0x5eed };

/* ---- the twin ---- */

struct twin_field {
    uint32_t number;
    uint32_t value_size;
    uint8_t value; /* every byte of it */
};

struct twin {
    struct hash hash;
    struct twin_field fields[FIELDS];
    uint32_t count;
    uint32_t place[FIELDS]; /* by number: index + 1; 0: no such field */
    bool is_hashtable;
    struct random random;
};

static char values[256][VALUE_MAX];

static struct bytes field_text(uint32_t number, char text[16]) {
    /* One field is without bytes, and some share long beginnings. */
    int size = number == 0 ? 0 : snprintf(text, 16, number % 3 == 0 ? "%u" : "field-%06u", number);
    return (struct bytes){text, (size_t)size};
}

static struct bytes value_text(uint8_t value, uint32_t size) {
    memset(values[value], value, size);
    return (struct bytes){values[value], size};
}

static uint32_t below(struct twin *twin, uint64_t limit) {
    return (uint32_t)random_below(&twin->random, limit);
}

static void twin_put(struct twin *twin, uint32_t number, uint8_t value, uint32_t size) {
    if (twin->place[number] == 0) {
        twin->place[number] = ++twin->count;
    }
    twin->fields[twin->place[number] - 1] =
        (struct twin_field){.number = number, .value_size = size, .value = value};
}

/* A packed hash keeps the order; a large one moves its last field. */
static void twin_remove(struct twin *twin, uint32_t number) {
    uint32_t index = twin->place[number] - 1;
    twin->place[number] = 0;
    twin->count--;
    if (hash_is_large(&twin->hash)) {
        twin->fields[index] = twin->fields[twin->count];
    } else {
        memmove(&twin->fields[index], &twin->fields[index + 1],
                (twin->count - index) * sizeof twin->fields[0]);
    }
    for (uint32_t i = index; i < twin->count; i++) {
        twin->place[twin->fields[i].number] = i + 1;
    }
}

static void assert_pair(const struct twin_field *twin, const struct hash_pair *pair) {
    char text[16];
    assert_true(bytes_equal(pair->field, field_text(twin->number, text)));
    assert_true(bytes_equal(pair->value, value_text(twin->value, twin->value_size)));
}

static void assert_same(struct twin *twin, const struct hash *hash) {
    const char *reason = hash_check(hash);
    if (reason != NULL) {
        fail_msg("%s", reason);
    }
    struct hash_cursor cursor = hash_begin(hash);
    struct hash_pair pair;
    assert_int_equal(hash_count(hash), twin->count);
    for (uint32_t i = 0; i < twin->count; i++) {
        assert_true(hash_next(&cursor, &pair));
        assert_pair(&twin->fields[i], &pair);
    }
    assert_false(hash_next(&cursor, &pair));
    if (twin->count > 0) {
        uint32_t index = below(twin, twin->count);
        hash_at(hash, index, &pair);
        assert_pair(&twin->fields[index], &pair);
        assert_string_equal(hash_encoding(hash), twin->is_hashtable ? "hashtable" : "listpack");
    }
}

static void assert_finds(struct twin *twin, uint32_t number) {
    char text[16];
    struct bytes value;
    bool is_there = twin->place[number] != 0;
    assert_int_equal(hash_find(&twin->hash, field_text(number, text), &value), is_there);
    if (is_there) {
        const struct twin_field *field = &twin->fields[twin->place[number] - 1];
        assert_true(bytes_equal(value, value_text(field->value, field->value_size)));
    }
}

static uint32_t pick_size(struct twin *twin) {
    uint32_t kind = below(twin, 200);
    return kind == 0 ? below(twin, VALUE_MAX) : kind < 10 ? below(twin, 300) : below(twin, 20);
}

/* Put some fields, also the same one twice. false: no memory. */
static bool put_some(struct twin *twin, uint32_t fields, uint32_t count_max) {
    enum { PUT_MAX = 300 };
    static struct bytes args[2 * PUT_MAX];
    static char texts[PUT_MAX][16];
    struct twin_field put[PUT_MAX];
    uint32_t count = 1 + below(twin, count_max);
    uint32_t count_before = twin->count;
    uint32_t added_count;
    size_t longest = 0;
    for (uint32_t i = 0; i < count; i++) {
        put[i] = (struct twin_field){
            .number = below(twin, fields), .value_size = pick_size(twin), .value = (uint8_t)i};
        args[(size_t)i * 2] = field_text(put[i].number, texts[i]);
        args[(size_t)i * 2 + 1] = value_text(put[i].value, put[i].value_size);
        longest = put[i].value_size > longest ? put[i].value_size : longest;
    }
    if (hash_put(&twin->hash, SEED, args, count, &added_count) != HASH_OK) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        twin_put(twin, put[i].number, put[i].value, put[i].value_size);
    }
    twin->is_hashtable |=
        longest > HASH_LISTPACK_TEXT_MAX || twin->count > HASH_LISTPACK_FIELDS_MAX;
    assert_int_equal(added_count, twin->count - count_before);
    return true;
}

static void remove_one(struct twin *twin, uint32_t fields) {
    char text[16];
    uint32_t number = below(twin, fields);
    bool is_there = twin->place[number] != 0;
    bool is_large = hash_is_large(&twin->hash);
    if (is_there) {
        twin_remove(twin, number);
    }
    assert_int_equal(hash_remove(&twin->hash, field_text(number, text)), is_there);
    assert_int_equal(hash_is_large(&twin->hash), is_large);
}

/* In steps that free about as much as they may. */
static void free_all(struct hash *hash) {
    enum { WORK = 10 };
    uint64_t live_before = memory_live_count();
    for (;;) {
        uint32_t work = WORK;
        bool is_done = hash_free_step(hash, &work);
        assert_true(work <= WORK);
        /* Beside the entries: segments, tables, spare pages, the hash itself. */
        assert_true(live_before - memory_live_count() <= WORK + 200);
        live_before = memory_live_count();
        if (is_done) {
            break;
        }
    }
    struct hash none = {.short_size = 0};
    assert_memory_equal(hash, &none, HASH_HEAD_SIZE);
}

/* Begin anew, as a key does that has lost its last field. */
static void start_over(struct twin *twin) {
    struct random random = twin->random;
    free_all(&twin->hash);
    memset(twin, 0, sizeof *twin);
    twin->random = random;
}

static void copy_and_compare(struct twin *twin) {
    struct hash copy = {.short_size = 0};
    size_t used_before = memory_used();
    bool is_copied = hash_copy(&twin->hash, &copy);
    memory_fail_at(0);
    if (is_copied) {
        assert_int_equal(memory_used() - used_before, hash_memory_size(&copy));
        assert_same(twin, &copy);
        free_all(&copy);
    } else {
        assert_int_equal(hash_count(&copy), 0);
    }
    assert_int_equal(memory_used(), used_before);
}

/* fields: different ones; fail_below: 0, or every allocation below this may be the one that
 * fails. */
static void run(const char *name, uint32_t fields, uint32_t count_max, int steps,
                uint32_t fail_below, int compare_every) {
    static struct twin twin;
    uint64_t live_before = memory_live_count();
    uint32_t failures = 0;
    uint32_t large = 0;
    uint32_t packed = 0;
    memset(&twin, 0, sizeof twin);
    twin.random = random_begin(name);
    for (int i = 0; i < steps; i++) {
        uint32_t operation = below(&twin, 20);
        if (fail_below > 0) {
            memory_fail_at(1 + below(&twin, fail_below));
        }
        if (operation < 10) {
            failures += !put_some(&twin, fields, below(&twin, 4) == 0 ? count_max : 1);
        } else if (operation < 17) {
            remove_one(&twin, fields);
        } else if (operation < 19) {
            assert_finds(&twin, below(&twin, fields));
        } else if (below(&twin, 10) == 0) {
            copy_and_compare(&twin);
        }
        memory_fail_at(0);
        large += hash_is_large(&twin.hash);
        packed += !hash_is_large(&twin.hash) && twin.count > 0;
        if (i % compare_every == 0) {
            assert_same(&twin, &twin.hash);
        }
        if (twin.count == 0 || below(&twin, 500) == 0) {
            start_over(&twin);
        }
    }
    assert_true(packed > 0 && (large > 0 || fields < 100));
    assert_int_equal(failures > 0, fail_below > 0);
    start_over(&twin);
    assert_int_equal(memory_live_count(), live_before);
}

TEST(a_hash_is_what_its_twin_is) {
    run("small", 12, 4, is_short_run() ? 20000 : 200000, 0, 1);
    run("middle", 400, 60, is_short_run() ? 10000 : 60000, 0, 20);
    run("large", FIELDS, 300, is_short_run() ? 5000 : 50000, 0, 50);
}

TEST(a_failed_allocation_changes_nothing) {
    run("small", 12, 4, is_short_run() ? 20000 : 100000, 4, 1);
    /* A hash that becomes large allocates all its entries. */
    run("middle", 400, 100, is_short_run() ? 10000 : 60000, 600, 5);
}

TEST(an_entry_that_is_too_long_changes_nothing) {
    struct hash hash = {.short_size = 0};
    struct bytes args[] = {BYTES("a"), BYTES("1"), BYTES("b"), BYTES("2")};
    uint32_t added_count;
    args[3].size = (size_t)HASH_TEXT_MAX + 1;
    assert_int_equal(hash_put(&hash, SEED, args, 2, &added_count), HASH_FULL);
    assert_int_equal(hash_count(&hash), 0);
}

TEST(three_short_fields_are_where_their_owner_puts_them) {
    enum { SIZE = HASH_HEAD_SIZE + 3 * 2 + 4 + 4 + 4 + 2 + 7 + 2 };
    union {
        struct hash hash;
        char room[SIZE];
    } own = {.hash = {.short_size = 0}};
    struct hash moved = {.short_size = 0};
    const struct bytes args[] = {BYTES("name"), BYTES("anna"),    BYTES("rank"),
                                 BYTES("12"),   BYTES("country"), BYTES("de")};
    uint32_t added_count;
    size_t wanted;
    uint64_t live_before = memory_live_count();
    assert_int_equal(hash_put_within(&own.hash, SIZE - 1, SEED, args, 3, &added_count, &wanted),
                     HASH_NO_ROOM);
    assert_int_equal(wanted, SIZE);
    assert_int_equal(hash_count(&own.hash), 0);
    assert_int_equal(hash_put_within(&own.hash, SIZE, SEED, args, 3, &added_count, &wanted),
                     HASH_OK);
    assert_int_equal(added_count, 3);
    assert_int_equal(hash_size(&own.hash), SIZE);
    assert_int_equal(hash_memory_size(&own.hash), 0);
    assert_int_equal(memory_live_count(), live_before);
    assert_null(hash_check(&own.hash));
    /* Without so much room it is a piece of memory, and short again where there is room. */
    assert_int_equal(hash_put(&moved, SEED, args, 3, &added_count), HASH_OK);
    assert_int_equal(memory_live_count(), live_before + 1);
    assert_int_equal(hash_size(&moved), HASH_SIZE_MIN);
    assert_int_equal(hash_moved_size(&moved), SIZE);
    memset(own.room, 0, sizeof own.room);
    hash_move(&moved, &own.hash, SIZE);
    assert_int_equal(memory_live_count(), live_before);
    assert_int_equal(hash_count(&moved), 0);
    assert_int_equal(hash_count(&own.hash), 3);
    assert_int_equal(hash_size(&own.hash), SIZE);
    assert_null(hash_check(&own.hash));
}

/* ---- scans ---- */

struct seen {
    uint32_t counts[FIELDS];
};

static void see(void *context, const struct hash_pair *pair) {
    struct seen *seen = context;
    char text[16] = {0};
    assert_true(pair->field.size < sizeof text);
    memcpy(text, pair->field.at, pair->field.size);
    uint32_t number =
        (uint32_t)strtoul(strncmp(text, "field-", 6) == 0 ? text + 6 : text, NULL, 10);
    assert_true(number < FIELDS);
    seen->counts[number]++;
}

TEST(a_scan_returns_every_field_that_is_there_all_the_time) {
    static struct twin twin;
    static struct seen seen;
    static bool was_there[FIELDS];
    memset(&twin, 0, sizeof twin);
    twin.random = random_begin(__func__);
    for (int i = 0; i < (is_short_run() ? 60 : 300); i++) {
        uint32_t fields = i % 3 == 0 ? 20 : FIELDS;
        start_over(&twin);
        for (int j = 0; j < i * 2; j++) {
            assert_true(put_some(&twin, fields, 20));
        }
        for (uint32_t j = 0; j < FIELDS; j++) {
            was_there[j] = twin.place[j] != 0;
        }
        memset(&seen, 0, sizeof seen);
        uint64_t cursor = 0;
        do {
            const struct scan_limits limits = {.count = 1 + below(&twin, 30), .work_max = 3000};
            cursor = hash_scan(&twin.hash, cursor, &limits, see, &seen);
            uint32_t changes = below(&twin, 30);
            for (uint32_t j = 0; j < changes; j++) {
                uint32_t number = below(&twin, fields);
                char text[16];
                if (twin.place[number] == 0) {
                    assert_true(put_some(&twin, fields, 3));
                } else if (hash_remove(&twin.hash, field_text(number, text))) {
                    twin_remove(&twin, number);
                    was_there[number] = false;
                }
            }
        } while (cursor != 0);
        for (uint32_t j = 0; j < FIELDS; j++) {
            assert_true(!was_there[j] || seen.counts[j] > 0);
        }
    }
    free_all(&twin.hash);
}

TEST(a_scan_of_a_hash_that_does_not_change_returns_each_field_once) {
    static struct twin twin;
    static struct seen seen;
    memset(&twin, 0, sizeof twin);
    memset(&seen, 0, sizeof seen);
    twin.random = random_begin(__func__);
    for (int i = 0; i < 100; i++) {
        assert_true(put_some(&twin, FIELDS, 100));
    }
    const struct scan_limits limits = {.count = 10, .work_max = 100000};
    uint64_t cursor = 0;
    do {
        cursor = hash_scan(&twin.hash, cursor, &limits, see, &seen);
    } while (cursor != 0);
    for (uint32_t j = 0; j < FIELDS; j++) {
        assert_int_equal(seen.counts[j], twin.place[j] != 0);
    }
    assert_int_equal(hash_scan(&twin.hash, UINT64_MAX, &limits, see, &seen), 0);
    free_all(&twin.hash);
}

/* However many fields one call puts, a growing table is prepared and filled a step a field: no call
 * takes a whole table's memory, and none moves a whole table. */
TEST(a_put_of_some_fields_does_not_pay_for_a_whole_rehash) {
#ifdef SKIPLIST_TINY
    enum { ALL = 12000 }; /* a table of so small segments is a long list of them */
#else
    enum { ALL = 120000 };
#endif
    enum { PUT = 20, GROWTH_MAX = 128 * 1024 };
    struct hash hash = {.short_size = 0};
    for (uint32_t i = 0; i < ALL; i += PUT) {
        char texts[PUT][16];
        struct bytes args[2 * PUT];
        uint32_t added_count;
        for (uint32_t j = 0; j < PUT; j++) {
            args[2 * j] = field_text(i + j, texts[j]);
            args[2 * j + 1] = BYTES("value");
        }
        size_t before = memory_used();
        assert_int_equal(hash_put(&hash, 7, args, PUT, &added_count), HASH_OK);
        assert_int_equal(added_count, PUT);
        assert_true(memory_used() < before + GROWTH_MAX);
    }
    assert_null(hash_check(&hash));
    free_all(&hash);
}
