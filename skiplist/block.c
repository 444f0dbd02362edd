/* Invariants: count <= capacity; heap_used is the sum of the entries' heap sizes and at most
 * heap_size; only_code is 0 or every entry's; keys are in descending order.
 *
 * Every change moves the tails of the four arrays. They are a few hundred contiguous bytes, which a
 * memmove handles faster than a single cache miss; so nothing here is linked or indirect. */
#include "skiplist/block.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__ARM_NEON) && defined(__aarch64__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#include <arm_neon.h>
#define HAS_NEON
#endif

#include "codec/memory.h"

static uint16_t *block_marks_of(struct block *block) {
    return (uint16_t *)(void *)(block + 1);
}

static uint64_t *block_keys_of(struct block *block) {
    return (uint64_t *)(void *)(block_marks_of(block) + block_mark_room(block->capacity));
}

static char *block_heap_of(struct block *block) {
    return (char *)(block_keys_of(block) + block->capacity);
}

/* Sixteen marks are read at once. All of a window are always read, because an early exit would be a branch
 * mispredicted half the time. The steps are unrolled by hand, because compilers do not unroll loops at -O2. Only
 * a block that is alone has more than one window; behind the marks of its last one are its keys. */
enum {
    MARK_STEP = 16,
    MARK_STEPS = (BLOCK_ENTRIES_MAX + MARK_STEP - 1) / MARK_STEP,
    MARK_WINDOW = MARK_STEPS * MARK_STEP,
    BLOCK_SIZE_MIN = (int)sizeof(struct block) + MARK_STEPS * MARK_STEP * (int)sizeof(uint16_t),
};
_Static_assert(MARK_STEPS <= 3, "three steps are written out");

#if defined(__SSE2__)
typedef __m128i mark_bytes;
typedef __m128i mark_sums;

static mark_bytes block_load_marks(const uint16_t *marks, int step, int half) {
    return _mm_loadu_si128((const __m128i *)(const void *)marks + 2 * step + half);
}

static mark_bytes block_load_tags(const uint16_t *marks, int step) {
    const __m128i low = _mm_set1_epi16(UINT8_MAX);
    return _mm_packus_epi16(_mm_and_si128(block_load_marks(marks, step, 0), low),
                            _mm_and_si128(block_load_marks(marks, step, 1), low));
}

static mark_bytes block_load_codes(const uint16_t *marks, int step) {
    return _mm_packus_epi16(_mm_srli_epi16(block_load_marks(marks, step, 0), 8),
                            _mm_srli_epi16(block_load_marks(marks, step, 1), 8));
}

static mark_bytes block_each(uint32_t byte) {
    return _mm_set1_epi8((char)byte);
}

/* Partial sums of the stored sizes of one step, counting entries from count on as 0 (name_stored_size: below
 * 128 the code, else its lowest five bits and 1). */
static mark_sums block_sum_step(const uint16_t *marks, int step, mark_bytes count) {
    const __m128i lane = _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    __m128i number = _mm_add_epi8(lane, block_each(MARK_STEP * (uint32_t)step));
    __m128i codes = _mm_and_si128(block_load_codes(marks, step), _mm_cmplt_epi8(number, count));
    __m128i is_packed = _mm_cmpgt_epi8(_mm_setzero_si128(), codes);
    codes = _mm_andnot_si128(_mm_and_si128(is_packed, block_each(0xe0)), codes);
    return _mm_sad_epu8(_mm_sub_epi8(codes, is_packed), _mm_setzero_si128());
}

static mark_sums block_add_sums(mark_sums a, mark_sums b) {
    return _mm_add_epi64(a, b);
}

static uint32_t block_sum_all(mark_sums sums) {
    return (uint32_t)_mm_cvtsi128_si32(_mm_add_epi64(sums, _mm_srli_si128(sums, 8)));
}

/* A bit for each mark of one step with this tag. */
static uint64_t block_match_step(const uint16_t *marks, int step, mark_bytes tag) {
    return (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(block_load_tags(marks, step), tag));
}
#elif defined(HAS_NEON)
typedef uint8x16_t mark_bytes;
typedef uint16x8_t mark_sums;

static uint8x16x2_t block_load_marks(const uint16_t *marks, int step) {
    return vld2q_u8((const uint8_t *)(marks + MARK_STEP * step));
}

static mark_bytes block_each(uint32_t byte) {
    return vdupq_n_u8((uint8_t)byte);
}

/* Partial sums of the stored sizes of one step, counting entries from count on as 0 (name_stored_size: below
 * 128 the code, else its lowest five bits and 1). */
static mark_sums block_sum_step(const uint16_t *marks, int step, mark_bytes count) {
    static const uint8_t lanes[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    uint8x16_t number = vaddq_u8(vld1q_u8(lanes), block_each(MARK_STEP * (uint32_t)step));
    uint8x16_t codes = vandq_u8(block_load_marks(marks, step).val[1], vcltq_u8(number, count));
    uint8x16_t is_packed = vcgtq_u8(codes, block_each(NAME_TEXT_MAX));
    codes = vbicq_u8(codes, vandq_u8(is_packed, block_each(0xe0)));
    return vpaddlq_u8(vsubq_u8(codes, is_packed));
}

static mark_sums block_add_sums(mark_sums a, mark_sums b) {
    return vaddq_u16(a, b);
}

static uint32_t block_sum_all(mark_sums sums) {
    return vaddlvq_u16(sums);
}

/* A bit for each mark of one step with this tag. One bit of each byte is kept, another one for each of eight
 * neighbours; then neighbours are added three times. */
static uint64_t block_match_step(const uint16_t *marks, int step, mark_bytes tag) {
    static const uint8_t bits[16] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    uint8x16_t sum = vandq_u8(vceqq_u8(block_load_marks(marks, step).val[0], tag), vld1q_u8(bits));
    sum = vpaddq_u8(sum, sum);
    sum = vpaddq_u8(sum, sum);
    sum = vpaddq_u8(sum, sum);
    return vgetq_lane_u16(vreinterpretq_u16_u8(sum), 0);
}
#endif

/* Sum of the stored sizes of the first count entries of a window; a long member counts as LONG_SUM. */
enum { LONG_SUM = (NAME_LONG & 31) + 1 };
static inline uint32_t block_sum_window(const uint16_t *marks, uint32_t count) {
#if defined(__SSE2__) || defined(HAS_NEON)
    mark_bytes counts = block_each(count);
    mark_sums sums = block_sum_step(marks, 0, counts);
    if (MARK_STEPS > 1) {
        sums = block_add_sums(sums, block_sum_step(marks, 1, counts));
    }
    if (MARK_STEPS > 2) {
        sums = block_add_sums(sums, block_sum_step(marks, 2, counts));
    }
    return block_sum_all(sums);
#else
    uint32_t sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        sum += name_stored_size((uint8_t)(marks[i] >> 8));
    }
    return sum;
#endif
}

/* Number of long members among count entries from index on. */
static uint32_t block_count_long(const struct block *block, uint32_t index, uint32_t count) {
    uint32_t long_count = 0;
    if (block->long_count > 0) {
        for (uint32_t i = index; i < index + count; i++) {
            long_count += block_code(block, i) == NAME_LONG;
        }
    }
    return long_count;
}

/* The code of all of count entries, at least one; 0: they differ. */
static uint8_t block_code_of_all(const struct block *block, uint32_t index, uint32_t count) {
    uint8_t code = block_code(block, index);
    for (uint32_t i = 1; i < count && block->only_code == 0; i++) {
        if (block_code(block, index + i) != code) {
            return 0;
        }
    }
    return code;
}

/* Entries of this code (0: of several) come to it. */
static void block_note_code(struct block *block, uint8_t code) {
    block->only_code = block->count == 0 || block->only_code == code ? code : 0;
}

uint32_t block_offset_of_mixed(const struct block *block, uint32_t index) {
    uint32_t long_count = block_count_long(block, 0, index);
    const uint16_t *marks = block_marks(block);
    uint32_t sum = 0;
    for (; __builtin_expect(index > MARK_WINDOW, 0); index -= MARK_WINDOW) {
        sum += block_sum_window(marks, MARK_WINDOW);
        marks += MARK_WINDOW;
    }
    sum += block_sum_window(marks, index);
    return sum - long_count * (LONG_SUM - BLOCK_LONG_SIZE);
}

struct name block_long_member(const char *heap_bytes) {
    struct name member = {.code = NAME_LONG};
    memcpy(&member.at, heap_bytes, sizeof member.at);
    memcpy(&member.size, heap_bytes + sizeof member.at, sizeof member.size);
    return member;
}

/* Bitmap of the entries of a window with this tag: one in ten look-ups has a false candidate. */
static inline uint64_t block_match(const uint16_t *marks, uint32_t count, uint8_t tag) {
#if defined(__SSE2__) || defined(HAS_NEON)
    mark_bytes tags = block_each(tag);
    uint64_t matches = block_match_step(marks, 0, tags);
    if (MARK_STEPS > 1) {
        matches |= block_match_step(marks, 1, tags) << MARK_STEP;
    }
    if (MARK_STEPS > 2) {
        matches |= block_match_step(marks, 2, tags) << 2 * MARK_STEP;
    }
    /* What is behind the marks may look like a match. */
    return matches & (UINT64_MAX >> (63 - count) >> 1);
#else
    uint64_t matches = 0;
    for (uint32_t i = 0; i < count; i++) {
        matches |= (uint64_t)((uint8_t)marks[i] == tag) << i;
    }
    return matches;
#endif
}

/* In the window that begins with this entry. */
static inline bool block_find_in_window(const struct block *block, uint32_t first, uint32_t count,
                                        uint8_t tag, struct bytes member, uint32_t *index,
                                        uint32_t *offset) {
    uint64_t matches = block_match(block_marks(block) + first, count, tag);
    for (; matches != 0; matches &= matches - 1) {
        uint32_t i = first + (uint32_t)__builtin_ctzll(matches);
        uint32_t begin = block_offset(block, i);
        if (name_is(block_member(block, i, begin), member)) {
            *index = i;
            *offset = begin;
            return true;
        }
    }
    return false;
}

__attribute__((noinline)) static bool block_find_alone(const struct block *block, uint8_t tag,
                                                       struct bytes member, uint32_t *index,
                                                       uint32_t *offset) {
    for (uint32_t first = 0; first < block->count; first += MARK_WINDOW) {
        uint32_t left = block->count - first;
        if (block_find_in_window(block, first, left < MARK_WINDOW ? left : MARK_WINDOW, tag, member,
                                 index, offset)) {
            return true;
        }
    }
    return false;
}

bool block_find(const struct block *block, uint8_t tag, struct bytes member, uint32_t *index,
                uint32_t *offset) {
    if (__builtin_expect(block->count > MARK_WINDOW, 0)) {
        return block_find_alone(block, tag, member, index, offset);
    }
    return block_find_in_window(block, 0, block->count, tag, member, index, offset);
}

bool block_has(const struct block *block, uint32_t index, uint8_t tag, struct bytes member,
               uint32_t *offset) {
    if (index >= block->count || block_tag(block, index) != tag) {
        return false;
    }
    *offset = block_offset(block, index);
    return name_is(block_member(block, index, *offset), member);
}

bool block_find_tag(const struct block *block, uint8_t tag, uint32_t *index) {
    uint64_t matches = block->count <= MARK_WINDOW
                           ? block_match(block_marks(block), block->count, tag)
                           : 0; /* alone: it will be read as a whole */
    if (matches == 0) {
        return false;
    }
    *index = (uint32_t)__builtin_ctzll(matches);
    return true;
}

/* Bytes of header, marks and keys. */
static size_t block_fixed_size(uint32_t capacity) {
    return sizeof(struct block) + block_mark_room(capacity) * sizeof(uint16_t) +
           capacity * sizeof(uint64_t);
}

/* Of a block with so many: only one that is alone has more than others may. */
static uint32_t block_entries_max(uint32_t entries) {
    return entries > BLOCK_ENTRIES_MAX ? BLOCK_ALONE_ENTRIES_MAX : BLOCK_ENTRIES_MAX;
}

struct block *block_create(uint32_t entries, uint32_t heap_size) {
    CHECK(entries >= 1);
    CHECK(entries <= BLOCK_ALONE_ENTRIES_MAX);
    uint32_t most = block_entries_max(entries);
    uint32_t capacity = entries > BLOCK_CAPACITY_MIN ? entries : BLOCK_CAPACITY_MIN;
    size_t size = block_fixed_size(capacity) + heap_size;
    struct block *block = memory_allocate(size > BLOCK_SIZE_MIN ? size : BLOCK_SIZE_MIN);
    if (block == NULL) {
        return NULL;
    }
    /* Slack from the allocator's rounding is used for more entries of the same kind. */
    size_t usable = memory_size(block);
    while (capacity < most &&
           block_fixed_size(capacity + 1) + heap_size + heap_size / entries <= usable) {
        capacity++;
    }
    size_t heap_room = usable - block_fixed_size(capacity);
    *block = (struct block){
        .capacity = (uint8_t)capacity,
        .heap_size = (uint16_t)(heap_room < UINT16_MAX ? heap_room : UINT16_MAX),
    };
    return block;
}

bool block_long_create(struct name member, char *heap_bytes) {
    char *at = memory_allocate(member.size);
    if (at == NULL) {
        return false;
    }
    memcpy(at, member.at, member.size);
    memcpy(heap_bytes, &at, sizeof at);
    memcpy(heap_bytes + sizeof at, &member.size, sizeof member.size);
    return true;
}

static char *block_long_piece(const char *heap_bytes) {
    char *at;
    memcpy(&at, heap_bytes, sizeof at);
    return at;
}

void block_long_destroy(const char *heap_bytes) {
    memory_free(block_long_piece(heap_bytes));
}

void block_long_set(struct block *block, uint32_t offset, const char *heap_bytes) {
    memcpy(block_heap_of(block) + offset, heap_bytes, BLOCK_LONG_SIZE);
}

size_t block_long_memory_size(const char *heap_bytes) {
    return memory_size(block_long_piece(heap_bytes));
}

bool block_is_full_for(const struct block *block, uint8_t code) {
    return block->count >= BLOCK_ENTRIES_MAX ||
           block->heap_used + block_heap_size(code) > BLOCK_HEAP_MAX;
}

bool block_is_full_alone(const struct block *block, uint8_t code) {
    if (block->long_count > 0 || code == NAME_LONG) {
        return block_is_full_for(block, code);
    }
    return block->count == BLOCK_ALONE_ENTRIES_MAX ||
           block->heap_used + block_heap_size(code) > BLOCK_ALONE_HEAP_MAX;
}

bool block_may_merge(const struct block *a, const struct block *b) {
    /* A quarter stays free, so that the next few insertions do not split it again. */
    return a->count + b->count <= BLOCK_ENTRIES_MAX * 3 / 4 &&
           a->heap_used + b->heap_used <= BLOCK_HEAP_MAX * 3 / 4;
}

bool block_is_wasteful(const struct block *block) {
    uint32_t used = 10U * block->count + block->heap_used;
    uint32_t spare = 10U * block->capacity + block->heap_size - used;
    uint32_t each = used / (block->count + 1U) + 1;
    /* Well above what growing leaves free, so that a block does not alternate between growing and
     * shrinking; and a quarter, because allocators round up by as much. */
    return spare > BLOCK_SPARE_MAX * each && spare > used / 4;
}

struct block *block_create_grown(const struct block *block, uint8_t code) {
    uint32_t entries = block->count + 1U;
    uint32_t heap = block->heap_used + block_heap_size(code);
    /* A board of a few members must not pay for many. */
    uint32_t step =
        entries <= 2 * BLOCK_GROW_ENTRIES ? (BLOCK_GROW_ENTRIES + 1) / 2 : BLOCK_GROW_ENTRIES;
    if (entries > BLOCK_ENTRIES_MAX) {
        step += (entries - BLOCK_ENTRIES_MAX) / 16;
    }
    uint32_t wanted = entries - 1 + step;
    uint32_t most = block_entries_max(entries);
    wanted = wanted < most ? wanted : most;
    /* Future entries are assumed to have the average size, plus a byte for safety unless all are of one kind. A full
     * block has none. */
    uint32_t each = heap / entries + (block->only_code != code);
    return block_create(wanted, heap + (wanted > entries ? each * (wanted - entries) : 0));
}

uint32_t block_split_index(const struct block *block) {
    CHECK(block->count >= 2);
    uint32_t half = block->count / 2U;
    uint32_t left_heap = block_offset(block, half);
    uint32_t right_heap = block->heap_used - left_heap;
    uint32_t larger_heap = left_heap > right_heap ? left_heap : right_heap;
    if (larger_heap + NAME_TEXT_MAX <= BLOCK_HEAP_MAX) {
        return half;
    }
    /* The next entry might not fit its half, so halve the bytes instead. */
    uint32_t before = 0;
    uint32_t index = 0;
    while (index < block->count - 1U) {
        uint32_t size = block_heap_size(block_code(block, index));
        if (index > 0 && before + size / 2 > block->heap_used / 2U) {
            break;
        }
        before += size;
        index++;
    }
    return index;
}

/* Open or close a gap of count entries and size heap bytes: what was at `from` moves to `to`. */
static void block_move_tails(struct block *block, uint32_t from, uint32_t to, uint32_t heap_from,
                             uint32_t heap_to) {
    uint32_t tail = block->count - from;
    memmove(block_marks_of(block) + to, block_marks_of(block) + from, tail * sizeof(uint16_t));
    memmove(block_keys_of(block) + to, block_keys_of(block) + from, tail * sizeof(uint64_t));
    memmove(block_heap_of(block) + heap_to, block_heap_of(block) + heap_from,
            block->heap_used - heap_from);
}

void block_insert(struct block *block, uint32_t index, const struct block_entry *entry) {
    uint32_t size = block_heap_size(entry->code);
    CHECK(block_has_room(block, entry->code));
    uint32_t offset = block_offset(block, index);
    block_move_tails(block, index, index + 1, offset, offset + size);
    block_marks_of(block)[index] = (uint16_t)(entry->tag | entry->code << 8);
    block_keys_of(block)[index] = entry->key;
    memcpy(block_heap_of(block) + offset, entry->at, size);
    block_note_code(block, entry->code);
    block->count++;
    block->heap_used = (uint16_t)(block->heap_used + size);
    block->long_count = (uint8_t)(block->long_count + (entry->code == NAME_LONG));
}

void block_remove(struct block *block, uint32_t index, uint32_t count) {
    CHECK(index + count <= block->count);
    uint32_t offset = block_offset(block, index);
    uint32_t size = count == 1 ? block_heap_size(block_code(block, index))
                               : block_offset(block, index + count) - offset;
    uint32_t long_count = block_count_long(block, index, count);
    block_move_tails(block, index + count, index, offset + size, offset);
    block->count = (uint8_t)(block->count - count);
    block->heap_used = (uint16_t)(block->heap_used - size);
    block->long_count = (uint8_t)(block->long_count - long_count);
}

void block_remove_one(struct block *block, uint32_t index, uint32_t offset) {
    CHECK(index < block->count);
    uint8_t code = block_code(block, index);
    uint32_t size = block_heap_size(code);
    block_move_tails(block, index + 1, index, offset + size, offset);
    block->count--;
    block->heap_used = (uint16_t)(block->heap_used - size);
    block->long_count = (uint8_t)(block->long_count - (code == NAME_LONG));
}

/* Move one array element from one index to another, shifting those in between. */
static void block_move_element(void *array, size_t size, uint32_t from, uint32_t to) {
    char *at = array;
    uint64_t moved;
    memcpy(&moved, at + from * size, size);
    if (from < to) {
        memmove(at + from * size, at + (from + 1) * size, (to - from) * size);
    } else {
        memmove(at + (to + 1) * size, at + to * size, (from - to) * size);
    }
    memcpy(at + to * size, &moved, size);
}

void block_shift(struct block *block, uint32_t from, uint32_t to, uint64_t key) {
    CHECK(from < block->count);
    CHECK(to <= block->count);
    uint32_t last = from < to ? to - 1 : to; /* its final index */
    if (last != from) {
        uint32_t size = block_heap_size(block_code(block, from));
        /* The member's bytes, to another offset; those in between are shifted. */
        char moved[NAME_LONG];
        char *at = block_heap_of(block) + block_offset(block, from);
        char *to_at = block_heap_of(block) + block_offset(block, to);
        memcpy(moved, at, size);
        if (at < to_at) {
            memmove(at, at + size, (size_t)(to_at - at) - size);
            memcpy(to_at - size, moved, size);
        } else {
            memmove(to_at + size, to_at, (size_t)(at - to_at));
            memcpy(to_at, moved, size);
        }
        block_move_element(block_keys_of(block), sizeof(uint64_t), from, last);
        block_move_element(block_marks_of(block), sizeof(uint16_t), from, last);
    }
    block_keys_of(block)[last] = key;
}

void block_copy(struct block *block, uint32_t index, const struct block *from, uint32_t from_index,
                uint32_t count) {
    uint32_t from_offset = block_offset(from, from_index);
    uint32_t size = block_offset(from, from_index + count) - from_offset;
    CHECK(block->count + count <= block->capacity);
    CHECK(block->heap_used + size <= block->heap_size);
    uint32_t offset = block_offset(block, index);
    block_move_tails(block, index, index + count, offset, offset + size);
    memcpy(block_marks_of(block) + index, block_marks(from) + from_index, count * sizeof(uint16_t));
    memcpy(block_keys_of(block) + index, block_keys(from) + from_index, count * sizeof(uint64_t));
    memcpy(block_heap_of(block) + offset, block_heap(from) + from_offset, size);
    if (count > 0) {
        block_note_code(block, block_code_of_all(from, from_index, count));
    }
    block->count = (uint8_t)(block->count + count);
    block->heap_used = (uint16_t)(block->heap_used + size);
    block->long_count = (uint8_t)(block->long_count + block_count_long(from, from_index, count));
}

static bool block_has_own_form(struct name member) {
    char room[NAME_TEXT_ROOM];
    struct packed_name form;
    struct bytes text = name_text(member, room);
    name_pack(text, &form);
    return name_equal(name_from(text, &form), member);
}

static const char *block_check(const struct block *block) {
    if (block->count > block->capacity) {
        return "block: more entries than it has room for";
    }
    if (block->count > BLOCK_ALONE_ENTRIES_MAX || (block_is_over(block) && block->long_count > 0)) {
        return "block: more entries than allowed";
    }
    if (block_fixed_size(block->capacity) + block->heap_size > memory_size(block)) {
        return "block: larger than its memory";
    }
    const uint64_t *keys = block_keys(block);
    uint32_t long_count = 0;
    uint32_t heap_used = 0;
    for (uint32_t i = 0; i < block->count; i++) {
        uint8_t code = block_code(block, i);
        if (block->only_code != 0 && code != block->only_code) {
            return "block: an entry has not the code of all";
        }
        if (heap_used != block_offset(block, i)) {
            return "block: an offset is not the sum of the sizes";
        }
        if (code == 0 || !block_has_own_form(block_member(block, i, heap_used))) {
            return "block: a member is not stored in its form";
        }
        heap_used += block_heap_size(code);
        long_count += code == NAME_LONG;
        if (i > 0 && keys[i - 1] < keys[i]) {
            return "block: keys increase";
        }
    }
    if (block->heap_used != heap_used) {
        return "block: heap bytes are not the sum of the members'";
    }
    if (block->heap_used > block->heap_size || block->heap_used > BLOCK_ALONE_HEAP_MAX) {
        return "block: more heap bytes than allowed";
    }
    return long_count == block->long_count ? NULL : "block: long members are not counted right";
}

bool block_validate(const struct block *block, const char **reason) {
    return check_passed(block_check(block), reason);
}
