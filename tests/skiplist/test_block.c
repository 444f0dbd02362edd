/* One block against an array of entries. */
#include "tests/support/test.h"

#include "codec/memory.h"
#include "skiplist/block.h"
#include "tests/support/random.h"
#include "tests/support/stored_text.h"

/* A member's text is a letter so many times, or of a kind that is packed, with the letter's number;
 * the model owns the long ones. */
struct model_entry {
    uint64_t key;
    size_t size; /* 0: of the kind */
    unsigned kind;
    uint8_t tag;
    uint8_t code;
    char letter;
    char heap[NAME_TEXT_MAX + 1]; /* as stored in the block */
};

struct model {
    struct block *block;
    struct model_entry entries[BLOCK_ENTRIES_MAX];
    uint32_t count;
};

/* The member as it is sought. */
static struct name name_of(const struct model_entry *entry, char text[512],
                           struct packed_name *form) {
    struct bytes bytes = {.at = text, .size = entry->size};
    memset(text, entry->letter, entry->size);
    if (entry->size == 0) {
        bytes = packed_kind_text(entry->kind, (uint32_t)entry->letter, text);
    }
    name_pack(bytes, form);
    return name_from(bytes, form);
}

static void model_compare(const struct model *model) {
    char text[512];
    struct packed_name form;
    uint32_t offset = 0;
    ASSERT_VALID(block_validate, model->block);
    assert_int_equal(model->block->count, model->count);
    for (uint32_t i = 0; i < model->count; i++) {
        const struct model_entry *entry = &model->entries[i];
        struct name member = name_of(entry, text, &form);
        uint32_t index = UINT32_MAX;
        uint32_t found_offset = UINT32_MAX;
        assert_int_equal(block_offset(model->block, i), offset);
        assert_int_equal(block_keys(model->block)[i], entry->key);
        assert_true(name_equal(block_member(model->block, i, offset), member));
        assert_true(
            block_find(model->block, entry->tag, stored_text(member), &index, &found_offset));
        /* Members may repeat in this test: the first equal one is found. */
        assert_true(index <= i);
        assert_int_equal(found_offset, block_offset(model->block, index));
        assert_true(block_find_tag(model->block, entry->tag, &index));
        struct block_entry got = block_get(model->block, i, offset);
        assert_int_equal(got.tag, entry->tag);
        assert_int_equal(got.code, entry->code);
        assert_memory_equal(got.at, entry->heap, block_heap_size(got.code));
        offset += block_heap_size(got.code);
    }
    assert_int_equal(model->block->heap_used, offset);
}

static struct block_entry entry_of(const struct model_entry *entry) {
    return (struct block_entry){
        .key = entry->key, .at = entry->heap, .tag = entry->tag, .code = entry->code};
}

/* A key that may be placed before index. */
static uint64_t key_for(const struct model *model, struct random *random, uint32_t index,
                        uint32_t without) {
    uint32_t before = index > 0 ? index - 1 : UINT32_MAX;
    if (before == without) {
        before--;
    }
    uint32_t behind = index == without ? index + 1 : index;
    uint64_t highest = before < model->count ? model->entries[before].key : UINT64_MAX;
    uint64_t lowest = behind < model->count ? model->entries[behind].key : 0;
    uint64_t room = highest - lowest;
    return lowest + (room == UINT64_MAX ? random_next(random) : random_below(random, room + 1));
}

static void model_insert(struct model *model, struct random *random) {
    static const size_t sizes[] = {1, 5, 17, 17, 30, NAME_TEXT_MAX, NAME_TEXT_MAX + 1, 400};
    uint32_t index = (uint32_t)random_below(random, model->count + 1U);
    struct model_entry entry = {
        .key = key_for(model, random, index, UINT32_MAX - 5),
        .kind = (unsigned)random_below(random, PACKED_KINDS),
        .tag = (uint8_t)random_below(random, 4),
        .letter = (char)('a' + random_below(random, 26)),
    };
    if (random_below(random, 2) == 0) {
        entry.size = sizes[random_below(random, COUNT_OF(sizes))];
    }
    char text[512];
    struct packed_name form;
    struct name member = name_of(&entry, text, &form);
    assert_true(entry.size > 0 || name_is_packed(member.code));
    entry.code = member.code;
    if (block_is_full_for(model->block, entry.code)) {
        return;
    }
    if (entry.code == NAME_LONG) {
        assert_true(block_long_create(member, entry.heap));
    } else {
        memcpy(entry.heap, member.at, member.size);
    }
    if (!block_has_room(model->block, entry.code)) {
        struct block *grown = block_create_grown(model->block, entry.code);
        assert_non_null(grown);
        grown->links = model->block->links;
        block_copy(grown, 0, model->block, 0, model->block->count);
        memory_free(model->block);
        model->block = grown;
    }
    assert_true(block_has_room(model->block, entry.code));
    struct block_entry raw = entry_of(&entry);
    block_insert(model->block, index, &raw);
    memmove(model->entries + index + 1, model->entries + index,
            (model->count - index) * sizeof entry);
    model->entries[index] = entry;
    model->count++;
}

static void model_remove(struct model *model, struct random *random) {
    uint32_t index = (uint32_t)random_below(random, model->count + 1U);
    uint32_t count = (uint32_t)random_below(random, model->count - index + 1U);
    count = count > 3 ? 3 : count;
    block_remove(model->block, index, count);
    for (uint32_t i = index; i < index + count; i++) {
        if (model->entries[i].code == NAME_LONG) {
            block_long_destroy(model->entries[i].heap);
        }
    }
    memmove(model->entries + index, model->entries + index + count,
            (model->count - index - count) * sizeof *model->entries);
    model->count -= count;
}

static void model_shift(struct model *model, struct random *random) {
    if (model->count == 0) {
        return;
    }
    uint32_t from = (uint32_t)random_below(random, model->count);
    uint32_t to = (uint32_t)random_below(random, model->count + 1U);
    uint64_t key = key_for(model, random, to, from);
    block_shift(model->block, from, to, key);
    struct model_entry moved = model->entries[from];
    moved.key = key;
    uint32_t last = from < to ? to - 1 : to;
    if (from < last) {
        memmove(model->entries + from, model->entries + from + 1, (last - from) * sizeof moved);
    } else {
        memmove(model->entries + last + 1, model->entries + last, (from - last) * sizeof moved);
    }
    model->entries[last] = moved;
}

/* Split the block and merge the halves again, at either end. */
static void model_split(struct model *model, struct random *random) {
    if (model->count < 2) {
        return;
    }
    struct block *block = model->block;
    uint32_t at = block_split_index(block);
    assert_true(at >= 1 && at < model->count);
    uint32_t behind = model->count - at;
    struct block *right = block_create(behind, block->heap_used - block_offset(block, at));
    assert_non_null(right);
    block_copy(right, 0, block, at, behind);
    block_remove(block, at, behind);
    ASSERT_VALID(block_validate, block);
    ASSERT_VALID(block_validate, right);
    /* The next entry has room in either half. */
    assert_false(block_is_full_for(block, NAME_TEXT_MAX));
    assert_false(block_is_full_for(right, NAME_TEXT_MAX));
    if (random_below(random, 2) == 0) {
        block_copy(block, block->count, right, 0, behind);
        memory_free(right);
        return;
    }
    struct block *whole = block_create(model->count, (uint32_t)block->heap_used + right->heap_used);
    assert_non_null(whole);
    block_copy(whole, 0, right, 0, behind);
    block_copy(whole, 0, block, 0, at);
    memory_free(block);
    memory_free(right);
    model->block = whole;
}

TEST(random_changes_agree_with_an_array) {
    struct random random = random_begin(__func__);
    OWNED struct model *model = calloc(1, sizeof *model);
    assert_non_null(model);
    model->block = block_create(1, 1);
    assert_non_null(model->block);
    for (int i = 0; i < 20000; i++) {
        uint64_t dice = random_below(&random, 10);
        if (dice < 5) {
            model_insert(model, &random);
        } else if (dice < 7) {
            model_remove(model, &random);
        } else if (dice < 9) {
            model_shift(model, &random);
        } else {
            model_split(model, &random);
        }
        model_compare(model);
    }
    block_remove(model->block, 0, model->count);
    for (uint32_t i = 0; i < model->count; i++) {
        if (model->entries[i].code == NAME_LONG) {
            block_long_destroy(model->entries[i].heap);
        }
    }
    memory_free(model->block);
}

TEST(keys_are_counted_as_an_endless_search_would) {
    struct random random = random_begin(__func__);
    static const uint64_t edges[] = {0, 1, 2, UINT64_MAX - 1, UINT64_MAX};
    for (int round = 0; round < 5000; round++) {
        uint64_t keys[70];
        uint32_t count = (uint32_t)random_below(&random, 70);
        uint64_t spread = 1 + random_below(&random, 60);
        bool is_high = random_below(&random, 2) == 0;
        for (uint32_t i = 0; i < count; i++) {
            uint64_t key = random_below(&random, spread);
            keys[i] = is_high ? UINT64_MAX - key : key;
            for (uint32_t j = i; j > 0 && keys[j - 1] < keys[j]; j--) {
                uint64_t swapped = keys[j];
                keys[j] = keys[j - 1];
                keys[j - 1] = swapped;
            }
        }
        for (int i = 0; i < 10; i++) {
            uint64_t key = i < 5 ? edges[i] : random_below(&random, spread);
            key = is_high && i >= 5 ? UINT64_MAX - key : key;
            uint32_t above = 0;
            uint32_t from = 0;
            for (uint32_t j = 0; j < count; j++) {
                above += keys[j] > key;
                from += keys[j] >= key;
            }
            assert_int_equal(block_keys_above(keys, count, key, false), above);
            assert_int_equal(block_keys_above(keys, count, key, true), from);
        }
    }
}

TEST(a_full_block_of_any_sizes_splits_with_room_in_both_halves) {
    struct random random = random_begin(__func__);
    char heap[NAME_TEXT_MAX];
    memset(heap, 'x', sizeof heap);
    for (int round = 0; round < 3000; round++) {
        struct block *block = block_create(BLOCK_ENTRIES_MAX, BLOCK_HEAP_MAX);
        assert_non_null(block);
        bool has_extremes = random_below(&random, 2) == 0;
        struct block_entry entry = {.key = 1, .at = heap};
        for (;;) {
            uint64_t code = 1 + random_below(&random, NAME_LONG - 1);
            if (has_extremes) {
                code = random_below(&random, 2) == 0 ? 1 : NAME_TEXT_MAX;
            }
            entry.code = (uint8_t)code;
            if (block_is_full_for(block, entry.code)) {
                break;
            }
            block_insert(block, (uint32_t)random_below(&random, block->count + 1U), &entry);
        }
        uint32_t at = block_split_index(block);
        uint32_t left_heap = block_offset(block, at);
        assert_true(at >= 1 && at < block->count);
        assert_true(left_heap + NAME_TEXT_MAX <= BLOCK_HEAP_MAX);
        assert_true(block->heap_used - left_heap + NAME_TEXT_MAX <= BLOCK_HEAP_MAX);
        memory_free(block);
    }
}

/* As when a leaf is trimmed that has lost nothing but spare bytes. */
TEST(a_block_with_as_many_entries_as_there_may_be_fits_its_next_one) {
    char heap[NAME_TEXT_MAX];
    memset(heap, 'X', sizeof heap); /* a name that is not packed */
    for (uint32_t size = 1; size * BLOCK_ENTRIES_MAX <= BLOCK_HEAP_MAX; size++) {
        struct block_entry entry = {.key = 1, .at = heap, .code = (uint8_t)size};
        struct block *block = block_create(BLOCK_ENTRIES_MAX, BLOCK_HEAP_MAX);
        assert_non_null(block);
        while (block->count < BLOCK_ENTRIES_MAX) {
            block_insert(block, block->count, &entry);
        }
        struct block *next = block_create_grown(block, 1);
        assert_non_null(next);
        assert_true(next->heap_size >= block->heap_used);
        block_copy(next, 0, block, 0, block->count);
        ASSERT_VALID(block_validate, next);
        memory_free(next);
        memory_free(block);
    }
}

TEST(a_block_uses_all_that_the_allocator_gives) {
    for (uint32_t entries = 1; entries <= BLOCK_ENTRIES_MAX; entries++) {
        struct block *block = block_create(entries, entries * 17);
        assert_non_null(block);
        ASSERT_VALID(block_validate, block);
        assert_true(block->capacity >= entries);
        assert_true(block->heap_size >= entries * 17);
        size_t used = sizeof *block + 2U * block_mark_room(block->capacity) + 8U * block->capacity +
                      block->heap_size;
        assert_int_equal(used, memory_size(block));
        memory_free(block);
    }
}

TEST(a_failed_creation_leaves_nothing_behind) {
    char heap[BLOCK_LONG_SIZE];
    memory_fail_at(1);
    assert_null(block_create(4, 40));
    memory_fail_at(1);
    assert_false(block_long_create(stored_name(BYTES("long, says the caller")), heap));
    memory_fail_at(0);
}
