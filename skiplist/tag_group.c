/* Reading inside a group: see skiplist/tags.h.
 *
 * A rank inside a group is a sum, as a rank is: the matching codes in the sheet before the place, and on each
 * level above, what is counted below the blocks to the left. */
#include <endian.h>
#include <stddef.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "codec/memory.h"
#include "skiplist/tag_filter.h"

/* ---- in one sheet ---- */

typedef uint8_t codes8 __attribute__((vector_size(16)));
typedef uint16_t codes16 __attribute__((vector_size(16)));
typedef uint32_t codes32 __attribute__((vector_size(16)));

/* From byte n on, n at most 32: 32 bytes of which the last n are set. */
static const uint8_t tag_group_last[64] = {
    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,
    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,
    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

/* Codes among `count` that match a simple filter; 64 bytes at a time, as far as a sum of the smallest codes has room; then 16,
 * the last ones once more where they are fewer, of which some count. */
#define COUNT_SIMPLE(name, type, vector, lanes, rounds)                                            \
    static uint32_t name(const type *codes, uint32_t count, uint32_t mask, uint32_t equal) {       \
        vector masks = (vector){0} + (type)mask, equals = (vector){0} + (type)equal;               \
        uint32_t sum = 0, i = 0, left = count / (4 * (lanes));                                     \
        while (left > 0) {                                                                         \
            vector matches = {0}, more = {0}, at[4];                                               \
            uint32_t round = left < (rounds) ? left : (rounds);                                    \
            left -= round;                                                                         \
            for (; round > 0; round--, i += 4 * (lanes)) {                                         \
                memcpy(at, codes + i, sizeof at);                                                  \
                matches -= (vector)((at[0] & masks) == equals);                                    \
                more -= (vector)((at[1] & masks) == equals);                                       \
                matches -= (vector)((at[2] & masks) == equals);                                    \
                more -= (vector)((at[3] & masks) == equals);                                       \
            }                                                                                      \
            matches += more;                                                                       \
            for (uint32_t lane = 0; lane < (lanes); lane++) {                                      \
                sum += matches[lane];                                                              \
            }                                                                                      \
        }                                                                                          \
        if (i < count && count >= (lanes)) {                                                       \
            vector matches = {0}, at, last;                                                        \
            for (; i < count; i += (lanes)) {                                                      \
                uint32_t size = count - i < (lanes) ? count - i : (lanes);                         \
                memcpy(&at, codes + i + size - (lanes), sizeof at);                                \
                memcpy(&last, tag_group_last + sizeof last + size * sizeof(type), sizeof last);    \
                matches -= (vector)((at & masks) == equals) & last;                                \
            }                                                                                      \
            for (uint32_t lane = 0; lane < (lanes); lane++) {                                      \
                sum += matches[lane];                                                              \
            }                                                                                      \
        }                                                                                          \
        for (; i < count; i++) {                                                                   \
            sum += (codes[i] & mask) == equal;                                                     \
        }                                                                                          \
        return sum;                                                                                \
    }
COUNT_SIMPLE(tag_group_count8, uint8_t, codes8, 16, 63)
COUNT_SIMPLE(tag_group_count16, uint16_t, codes16, 8, 4096)
COUNT_SIMPLE(tag_group_count32, uint32_t, codes32, 4, 4096)

/* What is compared with codes of a filter's listed tests. A value with bits beyond the type's is in none of them; values of
 * one test differ, so a code is flipped once at most. All tests of a simple filter are one. */
#define LISTED(type, vector)                                                                       \
    vector equals[FILTER_CODES], masks[TAGS_MAX], flips[TAGS_MAX];                                 \
    uint32_t ends[TAGS_MAX], tests = 0, end = 0, code = 0;                                         \
    for (uint32_t own = 0; own < (filter->is_simple ? 1 : filter->count); own++) {                 \
        const struct filter_test *test = &filter->tests[own];                                      \
        uint32_t mask = filter->is_simple ? filter->mask : test->slot->mask;                       \
        bool is_flipped = filter->is_simple ? filter->is_inverse : test->is_excluding;             \
        uint32_t code_end = filter->is_simple ? 1 : code + test->count;                            \
        if (!test->is_listed) {                                                                    \
            continue;                                                                              \
        }                                                                                          \
        masks[tests] = (vector){0} + (type)mask;                                                   \
        flips[tests] = (vector){0} + (type)(is_flipped ? -1 : 0);                                  \
        for (; code < code_end; code++) {                                                          \
            uint32_t equal = filter->is_simple ? filter->equal : filter->codes[code];              \
            equals[end] = (vector){0} + (type)equal;                                               \
            end += equal == (type)equal;                                                           \
        }                                                                                          \
        ends[tests++] = end;                                                                       \
    }

/* How many of these codes match, 32 bytes at a time; the last ones once more where they are fewer, of which some count. */
#define COUNT_LISTED(name, type, vector, rounds)                                                   \
    static uint32_t name(const type *codes, uint32_t count, const struct tag_filter *filter) {     \
        uint32_t sum = 0, i = 0;                                                                   \
        enum { LANES = sizeof(vector) / sizeof(type) };                                            \
        for (; i < count && count < 2 * LANES; i++) {                                              \
            sum += tag_filter_matches(filter, codes[i]);                                           \
        }                                                                                          \
        if (i == count) {                                                                          \
            return sum;                                                                            \
        }                                                                                          \
        LISTED(type, vector)                                                                       \
        while (i < count) {                                                                        \
            vector matches = {0};                                                                  \
            for (uint32_t r = 0; r < (rounds) && i < count; r++, i += 2 * LANES) {                 \
                vector left, right, all_left, all_right;                                           \
                uint32_t more = count - i < 2 * LANES ? count - i : 2 * LANES;                     \
                const type *at = codes + i + more - 2 * LANES;                                     \
                const uint8_t *last = tag_group_last + more * sizeof(type);                        \
                memcpy(&left, at, sizeof left);                                                    \
                memcpy(&right, at + LANES, sizeof right);                                          \
                memcpy(&all_left, last, sizeof all_left);                                          \
                memcpy(&all_right, last + sizeof all_left, sizeof all_right);                      \
                for (uint32_t t = 0, v = 0; t < tests; t++) {                                      \
                    vector value_left = left & masks[t], value_right = right & masks[t];           \
                    vector is_left = flips[t], is_right = flips[t];                                \
                    for (; v < ends[t]; v++) {                                                     \
                        is_left ^= (vector)(value_left == equals[v]);                              \
                        is_right ^= (vector)(value_right == equals[v]);                            \
                    }                                                                              \
                    all_left &= is_left;                                                           \
                    all_right &= is_right;                                                         \
                }                                                                                  \
                matches -= all_left + all_right;                                                   \
            }                                                                                      \
            for (uint32_t lane = 0; lane < LANES; lane++) {                                        \
                sum += matches[lane];                                                              \
            }                                                                                      \
        }                                                                                          \
        return sum;                                                                                \
    }
COUNT_LISTED(tag_group_listed8, uint8_t, codes8, 127)
COUNT_LISTED(tag_group_listed16, uint16_t, codes16, 2048)
COUNT_LISTED(tag_group_listed32, uint32_t, codes32, 2048)

enum { PIECE = 64, PIECES = 4 * PIECE };

/* One bit for each of 16 codes that were compared: bit i, the ith. */
#if defined(__SSE2__)
static inline uint32_t tag_group_bits8(const codes8 matches[1]) {
    return (uint32_t)_mm_movemask_epi8((__m128i)matches[0]);
}

static inline uint32_t tag_group_bits16(const codes16 matches[2]) {
    return (uint32_t)_mm_movemask_epi8(_mm_packs_epi16((__m128i)matches[0], (__m128i)matches[1]));
}

static inline uint32_t tag_group_bits32(const codes32 matches[4]) {
    __m128i left = _mm_packs_epi32((__m128i)matches[0], (__m128i)matches[1]);
    __m128i right = _mm_packs_epi32((__m128i)matches[2], (__m128i)matches[3]);
    return (uint32_t)_mm_movemask_epi8(_mm_packs_epi16(left, right));
}
#else
/* Of each byte one bit is kept, and the product has eight of them side by side. */
static inline uint32_t tag_group_bits8(const codes8 matches[1]) {
    uint64_t bytes[2];
    uint32_t bits = 0;
    memcpy(bytes, matches, sizeof bytes);
    for (unsigned i = 0; i < 2; i++) {
        uint64_t lowest = le64toh(bytes[i]) & UINT64_C(0x0101010101010101);
        bits |= (uint32_t)(lowest * UINT64_C(0x0102040810204080) >> 56) << 8 * i;
    }
    return bits;
}

typedef uint8_t eight8 __attribute__((vector_size(8)));
static inline uint32_t tag_group_bits16(const codes16 matches[2]) {
    eight8 halves[2] = {__builtin_convertvector(matches[0], eight8),
                        __builtin_convertvector(matches[1], eight8)};
    codes8 all;
    memcpy(&all, halves, sizeof all);
    return tag_group_bits8(&all);
}

typedef uint8_t four8 __attribute__((vector_size(4)));
static inline uint32_t tag_group_bits32(const codes32 matches[4]) {
    four8 quarters[4];
    codes8 all;
    for (unsigned i = 0; i < 4; i++) {
        quarters[i] = __builtin_convertvector(matches[i], four8);
    }
    memcpy(&all, quarters, sizeof all);
    return tag_group_bits8(&all);
}
#endif

/* Which of PIECE codes match: of the first of up to `pieces` pieces in which some do, each `step` codes behind the one before.
 * *passed: how many pieces are in front of it. By a filter's listed tests, of which most often one value is left to compare
 * with. */
#define MATCH_LISTED(name, type, vector, bits_of)                                                  \
    static uint64_t name(const type *codes, ptrdiff_t step, uint32_t pieces, uint32_t *passed,     \
                         const struct tag_filter *filter) {                                        \
        LISTED(type, vector)                                                                       \
        enum { PARTS = sizeof(type), LANES = 16 / sizeof(type) };                                  \
        bool is_one = end == 1 && tests == 1;                                                      \
        vector at, all[PARTS];                                                                     \
        uint64_t matches = 0;                                                                      \
        uint32_t done = 0;                                                                         \
        for (; done < pieces; done++, codes += step) {                                             \
            matches = 0;                                                                           \
            if (is_one) {                                                                          \
                _Pragma("GCC unroll 4") for (uint32_t i = 0; i < PIECE; i += 16) {                 \
                    _Pragma("GCC unroll 4") for (uint32_t part = 0; part < PARTS; part++) {        \
                        memcpy(&at, codes + i + part * LANES, sizeof at);                          \
                        all[part] = (vector)((at & masks[0]) == equals[0]) ^ flips[0];             \
                    }                                                                              \
                    matches |= (uint64_t)bits_of(all) << i;                                        \
                }                                                                                  \
            } else {                                                                               \
                for (uint32_t i = 0; i < PIECE; i += 16) {                                         \
                    for (uint32_t part = 0; part < PARTS; part++) {                                \
                        memcpy(&at, codes + i + part * LANES, sizeof at);                          \
                        all[part] = ~(vector){0};                                                  \
                        for (uint32_t t = 0, v = 0; t < tests; t++) {                              \
                            vector value = at & masks[t], is_in = flips[t];                        \
                            for (; v < ends[t]; v++) {                                             \
                                is_in ^= (vector)(value == equals[v]);                             \
                            }                                                                      \
                            all[part] &= is_in;                                                    \
                        }                                                                          \
                    }                                                                              \
                    matches |= (uint64_t)bits_of(all) << i;                                        \
                }                                                                                  \
            }                                                                                      \
            if (matches != 0) {                                                                    \
                break;                                                                             \
            }                                                                                      \
        }                                                                                          \
        *passed = done;                                                                            \
        return matches;                                                                            \
    }
MATCH_LISTED(tag_group_match8, uint8_t, codes8, tag_group_bits8)
MATCH_LISTED(tag_group_match16, uint16_t, codes16, tag_group_bits16)
MATCH_LISTED(tag_group_match32, uint32_t, codes32, tag_group_bits32)

/* The same in a sheet, whose first piece begins at `from`. */
static uint64_t tag_group_match_pieces(const struct sheet *sheet, const struct tag_filter *filter,
                                       uint32_t from, ptrdiff_t step, uint32_t pieces,
                                       uint32_t *passed) {
    const void *codes = (const char *)sheet_codes(sheet) + (size_t)from * sheet->width;
    return sheet->width == 1   ? tag_group_match8(codes, step, pieces, passed, filter)
           : sheet->width == 2 ? tag_group_match16(codes, step, pieces, passed, filter)
                               : tag_group_match32(codes, step, pieces, passed, filter);
}

/* Which of up to PIECE entries match the listed tests. */
static uint64_t tag_group_match_listed(const struct sheet *sheet, const struct tag_filter *filter,
                                       uint32_t from, uint32_t count) {
    uint64_t matches = 0;
    if (sheet->count < PIECE) {
        for (uint32_t i = 0; i < count; i++) {
            matches |= (uint64_t)tag_filter_matches(filter, sheet_get(sheet, from + i)) << i;
        }
        return matches;
    }
    uint32_t last = sheet->count - (uint32_t)PIECE, at = from < last ? from : last, passed;
    matches = tag_group_match_pieces(sheet, filter, at, 0, 1, &passed);
    return matches >> (from - at) & UINT64_MAX >> (PIECE - count);
}

/* Which of up to PIECE codes have a value of a set. */
#define MATCH_SET(name, type)                                                                      \
    static uint64_t name(const type *codes, uint32_t count, const struct filter_test *test) {      \
        const uint64_t *set = test->set;                                                           \
        const uint32_t mask = test->slot->mask, shift = test->slot->shift, end = test->set_bits;   \
        uint64_t matches = 0;                                                                      \
        for (uint32_t i = 0; i < count; i++) {                                                     \
            uint32_t value = (codes[i] & mask) >> shift;                                           \
            value = value < end ? value : end;                                                     \
            matches |= (set[value / 64] >> value % 64 & 1) << i;                                   \
        }                                                                                          \
        return matches;                                                                            \
    }
MATCH_SET(tag_group_match_set8, uint8_t)
MATCH_SET(tag_group_match_set16, uint16_t)
MATCH_SET(tag_group_match_set32, uint32_t)

/* Which of these entries, up to PIECE, pass a test that is not listed. */
static uint64_t tag_group_match_many(const struct sheet *sheet, const struct filter_test *test,
                                     uint32_t from, uint32_t count, uint64_t matches) {
    bool is_set = test->set != NULL && test->slot->shift != SLOT_IS_SCATTERED;
    if (is_set && (uint32_t)__builtin_popcountll(matches) > count / 4) {
        const void *codes = (const char *)sheet_codes(sheet) + (size_t)from * sheet->width;
        uint64_t has = sheet->width == 1   ? tag_group_match_set8(codes, count, test)
                       : sheet->width == 2 ? tag_group_match_set16(codes, count, test)
                                           : tag_group_match_set32(codes, count, test);
        return matches & (test->is_excluding ? ~has : has);
    }
    for (uint64_t left = matches; left != 0; left &= left - 1) {
        uint32_t at = (uint32_t)__builtin_ctzll(left);
        uint32_t value = sheet_slot_extract(test->slot, sheet_get(sheet, from + at));
        matches ^= (uint64_t)!tag_filter_passes_value(test, value) << at;
    }
    return matches;
}

/* Which of up to PIECE entries match. */
static uint64_t tag_group_match(const struct sheet *sheet, const struct tag_filter *filter,
                                uint32_t from, uint32_t count) {
    uint64_t matches = count > 0 ? UINT64_MAX >> (PIECE - count) : 0;
    if (filter->is_nobody || sheet == NULL) {
        return tag_filter_matches(filter, 0) ? matches : 0;
    }
    if (filter->code_count > 0 && count > 0) {
        matches = tag_group_match_listed(sheet, filter, from, count);
    }
    for (uint32_t i = 0; i < filter->count && !filter->is_listed; i++) {
        if (!filter->tests[i].is_listed) {
            matches = tag_group_match_many(sheet, &filter->tests[i], from, count, matches);
        }
    }
    return matches;
}

/* Matching entries among `count` from `from` on. */
static uint32_t tag_group_count_in(const struct sheet *sheet, const struct tag_filter *filter,
                                   uint32_t from, uint32_t count) {
    if (filter->is_nobody) {
        return 0;
    }
    if (sheet == NULL) {
        return tag_filter_matches(filter, 0) ? count : 0;
    }
    const void *codes = (const char *)sheet_codes(sheet) + (size_t)from * sheet->width;
    if (filter->is_simple) {
        uint32_t mask = filter->mask, equal = filter->equal, sum = 0;
        if (sheet->width == 4 || equal >> 8 * sheet->width == 0) {
            sum = sheet->width == 1   ? tag_group_count8(codes, count, mask, equal)
                  : sheet->width == 2 ? tag_group_count16(codes, count, mask, equal)
                                      : tag_group_count32(codes, count, mask, equal);
        }
        return filter->is_inverse ? count - sum : sum;
    }
    if (filter->is_listed) {
        return sheet->width == 1   ? tag_group_listed8(codes, count, filter)
               : sheet->width == 2 ? tag_group_listed16(codes, count, filter)
                                   : tag_group_listed32(codes, count, filter);
    }
    uint32_t sum = 0;
    for (uint32_t i = 0; i < count; i += PIECE) {
        uint32_t size = count - i < PIECE ? count - i : PIECE;
        sum += (uint32_t)__builtin_popcountll(tag_group_match(sheet, filter, from + i, size));
    }
    return sum;
}

/* The nth matching entry of a sheet's `count`, of which so many match; is_last: from the last one on. */
static uint32_t tag_group_find_in(const struct sheet *sheet, const struct tag_filter *filter,
                                  uint32_t count, uint32_t nth, bool is_last) {
    uint32_t done = 0, here;
    if (sheet == NULL) {
        return is_last ? count - 1 - nth : nth;
    }
    for (; done + PIECES < count; done += PIECES, nth -= here) {
        here = tag_group_count_in(sheet, filter, is_last ? count - done - PIECES : done, PIECES);
        if (nth < here) {
            break;
        }
    }
    for (;; done += PIECE, nth -= here) {
        CHECK(done < count);
        uint32_t size = count - done < PIECE ? count - done : PIECE;
        uint32_t at = is_last ? count - done - size : done;
        uint64_t matches = tag_group_match(sheet, filter, at, size);
        here = (uint32_t)__builtin_popcountll(matches);
        if (nth < here) {
            for (nth = is_last ? here - 1 - nth : nth; nth > 0; nth--) {
                matches &= matches - 1;
            }
            return at + (uint32_t)__builtin_ctzll(matches);
        }
    }
}

/* The same of a sheet of which `inside` match: from where it is nearer. */
static uint32_t tag_group_find_near(const struct sheet *sheet, const struct tag_filter *filter,
                                    uint32_t count, uint32_t nth, uint32_t inside) {
    bool is_last = nth > inside / 2;
    return tag_group_find_in(sheet, filter, count, is_last ? inside - 1 - nth : nth, is_last);
}

/* ---- in the list ---- */

static uint32_t tag_group_count_first(const struct skiplist *list, uint32_t id, uint32_t count,
                                      struct tag_filter *filter, uint32_t *work_left);

/* Do the rows tell how many of a child match? Of a group that has none, only that it is nobody. */
static bool tag_group_rows_tell(const struct skiplist *list, const struct tag_filter *filter,
                                struct index_block *index, uint32_t child, uint32_t *sum) {
    const struct tag_counts_plan *plan = &list->tags->plan;
    if (filter->rows.combination != NULL) {
        *sum = tag_filter_sum_children(&filter->rows, plan, index, child, child + 1);
        return true;
    }
    *sum = 0;
    for (uint32_t i = 0; i < filter->count; i++) {
        const struct filter_reader *reader = &filter->singles[i];
        if (reader->combination != NULL &&
            tag_filter_sum_children(reader, plan, index, child, child + 1) == 0) {
            return true;
        }
    }
    return false;
}

/* Do numbers tell how many match below a child of an index block above level 1, whatever the codes? */
static bool tag_group_child_tells(const struct skiplist *list, uint32_t id, uint32_t child,
                                  struct tag_filter *filter, uint32_t *work_left, uint32_t *sum) {
    struct index_block *index = index_at(list, id);
    const struct tag_counts_plan *plan = &list->tags->plan;
    uint32_t child_id = index_children(index)[child], in_rest = 0;
    struct tag_counts *counts = tag_counts_of(list, id, work_left);
    bool is_known = counts != NULL && tag_counts_know_child(list, id, counts, child, work_left);
    if (is_known && tag_group_rows_tell(list, filter, index, child, sum)) {
        return true;
    }
    bool has_rest = filter->rest.combination != NULL;
    if (!filter->has_sums || index_at(list, child_id)->is_lowest || (has_rest && !is_known)) {
        return false;
    }
    const struct tag_counts *own = tag_counts_of(list, child_id, work_left);
    if (own != NULL && has_rest) {
        in_rest = tag_filter_sum_children(&filter->rest, plan, index, child, child + 1);
    }
    return own != NULL && tag_filter_sum(filter, plan, own, index_span(index, child), in_rest, sum,
                                         &filter->marks.read);
}

/* Matching entries below it. */
static uint32_t tag_group_count_child(const struct skiplist *list, uint32_t id, uint32_t child,
                                      struct tag_filter *filter, uint32_t *work_left) {
    uint32_t sum, child_id = index_children(index_at(list, id))[child];
    if (tag_group_child_tells(list, id, child, filter, work_left, &sum)) {
        return sum;
    }
    struct index_block *below = index_at(list, child_id);
    if (below->is_lowest) {
        uint32_t span = index_span(index_at(list, id), child);
        filter->marks.read += span;
        return tag_group_count_in(sheet_of(list, below), filter, 0, span);
    }
    return tag_group_count_first(list, child_id, below->count, filter, work_left);
}

/* Start the cache misses of children that are going to be read one after another: nodes, blocks, sheets. */
static void tag_group_fetch_children(const struct skiplist *list, uint32_t id, uint32_t from,
                                     uint32_t to, const struct tag_filter *filter) {
    const uint32_t *children = index_children(index_at(list, id));
    bool is_lowest = skiplist_node(list, id)->level == 2;
    for (uint32_t i = from; i < to; i++) {
        memory_prefetch(skiplist_node(list, children[i]));
    }
    for (uint32_t i = from; i < to; i++) {
        memory_prefetch(&index_at(list, children[i])->sheet);
    }
    for (uint32_t i = from; i < to && is_lowest; i++) {
        const struct sheet *sheet = index_at(list, children[i])->sheet;
        if (sheet != NULL) {
            memory_prefetch_lines(sheet, sizeof *sheet + 128);
        }
    }
    for (uint32_t i = from; i < to && !is_lowest; i++) {
        const struct tag_counts *counts = index_at(list, children[i])->counts;
        if (counts != NULL && filter->dense.range_count > 0) {
            memory_prefetch(counts);
            memory_prefetch(counts->dense + filter->dense.ranges[0].first);
        }
    }
}

enum { FETCHED_MAX = 512 }; /* bytes; processors see by themselves what is read on and on */

/* The same of one that is next, for all that is below it. */
static void tag_group_fetch_sheet(const struct skiplist *list, uint32_t id, uint32_t child) {
    const struct index_block *index = index_at(list, index_children(index_at(list, id))[child]);
    if (index->is_lowest && index->sheet != NULL) {
        size_t size = sizeof *index->sheet + (size_t)index->sheet->count * index->sheet->width;
        memory_prefetch_lines(index->sheet, size < FETCHED_MAX ? size : FETCHED_MAX);
    }
}

/* The same of children from .. to - 1, one by one. */
static uint32_t tag_group_count_each(const struct skiplist *list, uint32_t id, uint32_t from,
                                     uint32_t to, struct tag_filter *filter, uint32_t *work_left) {
    uint32_t sum = 0;
    if (from < to) {
        tag_group_fetch_children(list, id, from, to, filter);
    }
    for (uint32_t i = from; i < to; i++) {
        if (i + 1 < to) {
            tag_group_fetch_sheet(list, id, i + 1);
        }
        sum += tag_group_count_child(list, id, i, filter, work_left);
    }
    return sum;
}

/* Do its own numbers tell all that is below an index block? */
static bool tag_group_sum_own(const struct skiplist *list, uint32_t id, struct tag_filter *filter,
                              uint32_t *work_left, uint32_t *sum) {
    struct index_block *index = index_at(list, id);
    if (!filter->has_sums || filter->rest.combination != NULL) {
        return false;
    }
    const struct tag_counts *counts = tag_counts_of(list, id, work_left);
    return counts != NULL &&
           tag_filter_sum(filter, &list->tags->plan, counts, index_span_sum(index, index->count), 0,
                          sum, &filter->marks.read);
}

/* The same of its first `count` children. Without rows, of more than half of them: all but the others. */
static uint32_t tag_group_count_first(const struct skiplist *list, uint32_t id, uint32_t count,
                                      struct tag_filter *filter, uint32_t *work_left) {
    struct index_block *index = index_at(list, id);
    bool has_rows = filter->rows.combination != NULL;
    struct tag_counts *counts = has_rows && count > 0 ? tag_counts_of(list, id, work_left) : NULL;
    uint32_t sum, known = 0;
    if (!has_rows && count > index->count / 2U + 1 && count < index->count &&
        tag_group_sum_own(list, id, filter, work_left, &sum)) {
        return sum - tag_group_count_each(list, id, count, index->count, filter, work_left);
    }
    while (counts != NULL && known < count &&
           tag_counts_know_child(list, id, counts, known, work_left)) {
        known++;
    }
    sum =
        known > 0 ? tag_filter_sum_children(&filter->rows, &list->tags->plan, index, 0, known) : 0;
    return sum + tag_group_count_each(list, id, known, count, filter, work_left);
}

/* All of a list. */
static uint32_t tag_group_count_all(const struct skiplist *list, struct tag_filter *filter,
                                    uint32_t *work_left) {
    const struct skiplist_node *root = skiplist_node(list, list->root);
    if (root->level == 0) {
        return tag_group_count_in(sheet_of_leaf(list), filter, 0, list->count);
    }
    struct index_block *index = root->block;
    if (root->level == 1) {
        return tag_group_count_in(sheet_of(list, index), filter, 0, list->count);
    }
    uint32_t sum;
    if (filter->rows.combination == NULL &&
        tag_group_sum_own(list, list->root, filter, work_left, &sum)) {
        return sum;
    }
    return tag_group_count_first(list, list->root, index->count, filter, work_left);
}

/* The sheet above a leaf, the place of the leaf's first entry in it, and how many entries it is for. */
static const struct sheet *tag_group_sheet(const struct skiplist *list, uint32_t leaf,
                                           uint32_t *first, uint32_t *count) {
    const struct skiplist_node *node = skiplist_node(list, leaf);
    if (node->parent == SKIPLIST_NONE) {
        *first = 0;
        *count = index_leaf(list, leaf)->count;
        return sheet_of_leaf(list);
    }
    struct index_block *index = index_at(list, node->parent);
    *first = index_narrow_sum(index, node->position);
    *count = index_narrow_sum(index, index->count);
    return sheet_of(list, index);
}

/* Matching entries above a place, also one behind a leaf's last. */
static uint32_t tag_group_count_before(const struct skiplist *list, struct skiplist_place place,
                                       struct tag_filter *filter, uint32_t *work_left) {
    uint32_t first, count;
    const struct sheet *sheet = tag_group_sheet(list, place.leaf, &first, &count);
    uint32_t sum = tag_group_count_in(sheet, filter, 0, first + place.index);
    const struct skiplist_node *node = skiplist_node(list, place.leaf);
    if (node->parent == SKIPLIST_NONE) {
        return sum;
    }
    for (node = skiplist_node(list, node->parent); node->parent != SKIPLIST_NONE;
         node = skiplist_node(list, node->parent)) {
        sum += tag_group_count_first(list, node->parent, node->position, filter, work_left);
    }
    return sum;
}

/* ---- marks ---- */

enum {
    /* Marks of a board with so many entries take as long as one rank: made from rows, or from codes. */
    MARKS_ROWS = 64 << 10,
    MARKS_CODES = 16 << 10,
};

/* Do the rows tell how many match below each child of an index block? Only that, if all children are known. */
static bool tag_group_sum_each(const struct skiplist *list, uint32_t id,
                               const struct tag_filter *filter, uint32_t *work_left,
                               uint32_t *sums) {
    struct index_block *index = index_at(list, id);
    struct tag_counts *counts =
        filter->rows.combination != NULL ? tag_counts_of(list, id, work_left) : NULL;
    bool is_known = counts != NULL;
    for (uint32_t i = 0; i < index->count && is_known; i++) {
        is_known = tag_counts_know_child(list, id, counts, i, work_left);
    }
    if (is_known) {
        tag_filter_sum_each(&filter->rows, &list->tags->plan, index, sums);
    }
    return is_known;
}

/* Mark the lowest index blocks below a block. */
static void tag_group_mark(const struct skiplist *list, uint32_t id, struct tag_filter *filter,
                           uint32_t *rank, uint32_t *inside) {
    uint32_t work_left = TAG_COUNTS_READER_WORK, sums[INDEX_FANOUT];
    struct index_block *index = index_at(list, id);
    struct filter_marks *marks = &filter->marks;
    bool is_above = skiplist_node(list, id)->level > 2;
    bool has_sums = !is_above && tag_group_sum_each(list, id, filter, &work_left, sums);
    if (!has_sums) {
        tag_group_fetch_children(list, id, 0, index->count, filter);
    }
    for (uint32_t i = 0; i < index->count; i++) {
        uint32_t child = index_children(index)[i], span = index_span(index, i);
        if (is_above) {
            tag_group_mark(list, child, filter, rank, inside);
            continue;
        }
        if (!has_sums && i + 1U < index->count) {
            tag_group_fetch_sheet(list, id, i + 1);
        }
        marks->at[marks->count++] = (struct filter_mark){child, *rank, *inside};
        *rank += span;
        *inside += has_sums
                       ? sums[i]
                       : tag_group_count_in(sheet_of(list, index_at(list, child)), filter, 0, span);
    }
}

static uint32_t tag_group_count_lowest(const struct skiplist *list, uint32_t id) {
    struct index_block *index = index_at(list, id);
    uint32_t count = 0;
    if (skiplist_node(list, id)->level == 2) {
        return index->count;
    }
    for (uint32_t i = 0; i < index->count; i++) {
        count += tag_group_count_lowest(list, index_children(index)[i]);
    }
    return count;
}

/* Are there marks? They are made when it is time for it. Without memory for them the group is read as before. */
static bool tag_group_has_marks(const struct skiplist *list, struct tag_filter *filter) {
    struct filter_marks *marks = &filter->marks;
    uint32_t rank = 0, inside = 0;
    uint64_t each = filter->rows.combination != NULL ? MARKS_ROWS : MARKS_CODES;
    if (marks->at == NULL && list->count > 0 &&
        (marks->read > list->count || marks->expected * each > list->count) &&
        skiplist_node(list, list->root)->level > 1) {
        marks->read = 0;
        marks->expected = 0;
        marks->at = memory_allocate(tag_group_count_lowest(list, list->root) * sizeof *marks->at);
        if (marks->at != NULL) {
            tag_group_mark(list, list->root, filter, &rank, &inside);
        }
    }
    return marks->at != NULL;
}

/* The last mark whose rank (or place inside the group) is at most this one. */
static const struct filter_mark *tag_group_find_mark(const struct filter_marks *marks,
                                                     uint32_t place, bool is_inside) {
    uint32_t low = 0, count = marks->count;
    while (count > 1) {
        uint32_t half = count / 2;
        const struct filter_mark *mark = &marks->at[low + half];
        bool is_behind = (is_inside ? mark->inside : mark->rank) <= place;
        low = is_behind ? low + half : low;
        count = is_behind ? count - half : half;
    }
    return &marks->at[low];
}

static uint32_t tag_group_count_marked(const struct skiplist *list, const struct tag_filter *filter,
                                       const struct filter_mark *mark, uint32_t ranks) {
    const struct sheet *sheet = sheet_of(list, index_at(list, mark->id));
    bool is_last = mark == &filter->marks.at[filter->marks.count - 1];
    if (!is_last && ranks - mark->rank > mark[1].rank - ranks) { /* it is nearer to the end */
        return mark[1].inside -
               tag_group_count_in(sheet, filter, ranks - mark->rank, mark[1].rank - ranks);
    }
    return mark->inside + tag_group_count_in(sheet, filter, 0, ranks - mark->rank);
}

/* false: the group has no more. */
static bool tag_group_find_marked(const struct skiplist *list, const struct tag_filter *filter,
                                  uint32_t nth, uint32_t *rank) {
    const struct filter_mark *mark = tag_group_find_mark(&filter->marks, nth, true);
    struct index_block *index = index_at(list, mark->id);
    const struct sheet *sheet = sheet_of(list, index);
    uint32_t span = index_narrow_sum(index, index->count);
    bool is_last = mark == &filter->marks.at[filter->marks.count - 1];
    uint32_t inside =
        is_last ? tag_group_count_in(sheet, filter, 0, span) : mark[1].inside - mark->inside;
    if (nth - mark->inside >= inside) {
        return false;
    }
    *rank = mark->rank + tag_group_find_near(sheet, filter, span, nth - mark->inside, inside);
    return true;
}

/* ---- what is asked for ---- */

uint32_t tag_group_count(const struct board *board, struct tag_filter *filter, uint32_t ranks) {
    const struct tags *tags = board_tags(board);
    CHECK(ranks <= board_count(board));
    if (filter->is_nobody || ranks == 0) {
        return 0;
    }
    if (tags == NULL) {
        return ranks;
    }
    const struct skiplist *list = &board->large->list;
    uint32_t work_left = TAG_COUNTS_READER_WORK;
    if (tag_group_has_marks(list, filter)) {
        return tag_group_count_marked(list, filter,
                                      tag_group_find_mark(&filter->marks, ranks - 1, false), ranks);
    }
    if (ranks == list->count) {
        return tag_group_count_all(list, filter, &work_left);
    }
    struct skiplist_place last = skiplist_at(list, ranks - 1);
    last.index++;
    return tag_group_count_before(list, last, filter, &work_left);
}

void tag_group_count_many(const struct board *board, struct tag_filter *filter, uint32_t count,
                          uint32_t *counts) {
    const struct filter_mark *marks[BOARD_AT_MAX];
    CHECK(count <= BOARD_AT_MAX);
    if (filter->is_nobody || board_tags(board) == NULL ||
        !tag_group_has_marks(&board->large->list, filter)) {
        for (uint32_t i = 0; i < count; i++) {
            counts[i] = tag_group_count(board, filter, counts[i]);
        }
        return;
    }
    const struct skiplist *list = &board->large->list;
    for (uint32_t i = 0; i < count; i++) {
        CHECK(counts[i] <= list->count);
        marks[i] = NULL;
        if (counts[i] > 0) {
            marks[i] = tag_group_find_mark(&filter->marks, counts[i] - 1, false);
            memory_prefetch(&index_at(list, marks[i]->id)->sheet);
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct sheet *sheet = marks[i] != NULL ? index_at(list, marks[i]->id)->sheet : NULL;
        if (sheet != NULL) {
            sheet_prefetch(sheet, 0);
            sheet_prefetch_code(sheet, counts[i] - marks[i]->rank);
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        if (marks[i] != NULL) {
            counts[i] = tag_group_count_marked(list, filter, marks[i], counts[i]);
        }
    }
}

uint32_t tag_group_rank(const struct board *board, struct tag_filter *filter,
                        const struct board_member *member) {
    struct skiplist_place place = board_place_of(member);
    uint32_t work_left = TAG_COUNTS_READER_WORK;
    if (filter->is_nobody) {
        return 0;
    }
    if (board_tags(board) == NULL) {
        return board_rank_of(board, member);
    }
    if (tag_group_has_marks(&board->large->list, filter)) {
        return tag_group_count(board, filter, board_rank_of(board, member));
    }
    return tag_group_count_before(&board->large->list, place, filter, &work_left);
}

/* The place, among the `span` entries below a block (or in the only leaf), of the nth that matches: there are so
 * many. */
static uint32_t tag_group_descend(const struct skiplist *list, uint32_t id, uint32_t span,
                                  struct tag_filter *filter, uint32_t nth, uint32_t *work_left) {
    uint32_t first = 0, level = skiplist_node(list, id)->level, sums[INDEX_FANOUT], here = 0;
    for (; level > 1; level--) {
        struct index_block *index = index_at(list, id);
        uint32_t i = 0;
        bool has_sums = tag_group_sum_each(list, id, filter, work_left, sums);
        for (; span = index_span(index, i),
               nth >= (here = has_sums ? sums[i]
                                       : tag_group_count_child(list, id, i, filter, work_left));
             i++) {
            nth -= here;
            first += span;
        }
        id = index_children(index)[i];
    }
    const struct sheet *sheet =
        level == 0 ? sheet_of_leaf(list) : sheet_of(list, index_at(list, id));
    return first + (here > 0 ? tag_group_find_near(sheet, filter, span, nth, here)
                             : tag_group_find_in(sheet, filter, span, nth, false));
}

bool tag_group_find(const struct board *board, struct tag_filter *filter, uint32_t nth,
                    uint32_t *rank) {
    if (filter->is_nobody || nth >= board_count(board)) {
        return false;
    }
    *rank = nth;
    if (board_tags(board) == NULL) {
        return true;
    }
    const struct skiplist *list = &board->large->list;
    uint32_t work_left = TAG_COUNTS_READER_WORK;
    if (tag_group_has_marks(list, filter)) {
        return tag_group_find_marked(list, filter, nth, rank);
    }
    if (nth >= tag_group_count_all(list, filter, &work_left)) {
        return false;
    }
    *rank = tag_group_descend(list, list->root, list->count, filter, nth, &work_left);
    return true;
}

bool tag_group_has(const struct board *board, const struct tag_filter *filter,
                   const struct board_member *member) {
    const struct tags *tags = board_tags(board);
    if (tags == NULL || filter->is_nobody) {
        return !filter->is_nobody;
    }
    const struct skiplist *list = &board->large->list;
    struct skiplist_place place = board_place_of(member);
    return tag_filter_matches(filter, sheet_code(list, place));
}

/* What tag_group_read looks for, and has found. */
struct group_reading {
    const struct skiplist *list;
    struct tag_filter *filter;
    bool is_best_first;
    uint32_t count, count_max, *ranks;
    uint32_t work_left;
};

/* Of entries from .. to - 1 of a sheet whose first has this rank. */
static void tag_group_read_sheet(struct group_reading *reading, const struct sheet *sheet,
                                 uint32_t from, uint32_t to, uint32_t rank) {
    const struct tag_filter *filter = reading->filter;
    bool is_best_first = reading->is_best_first;
    bool is_skipping = sheet != NULL && filter->is_listed && filter->code_count > 0;
    while (from < to && reading->count < reading->count_max) {
        uint32_t size = to - from < PIECE ? to - from : PIECE, passed = 0;
        uint32_t at = is_best_first ? from : to - size;
        uint64_t matches =
            is_skipping && size == PIECE
                ? tag_group_match_pieces(sheet, filter, at, is_best_first ? PIECE : -PIECE,
                                         (to - from) / PIECE, &passed)
                : tag_group_match(sheet, filter, at, size);
        at += is_best_first ? passed * PIECE : 0U - passed * PIECE;
        uint32_t read = passed * PIECE + (matches != 0 || passed == 0 ? size : 0);
        while (matches != 0 && reading->count < reading->count_max) {
            uint32_t bit = (uint32_t)(is_best_first ? __builtin_ctzll(matches)
                                                    : 63 - __builtin_clzll(matches));
            reading->ranks[reading->count++] = rank + at + bit;
            matches &= ~(UINT64_C(1) << bit);
        }
        from += is_best_first ? read : 0;
        to -= is_best_first ? 0 : read;
    }
}

/* Of all below `count` children of an index block above level 1, beginning with the one at `position`. rank: of its
 * first entry, or (worst first) behind its last. */
static void tag_group_read_children(struct group_reading *reading, uint32_t id, uint32_t position,
                                    uint32_t count, uint32_t rank) {
    const struct skiplist *list = reading->list;
    struct index_block *index = index_at(list, id);
    for (; count > 0 && reading->count < reading->count_max; count--) {
        uint32_t span = index_span(index, position), child = index_children(index)[position], sum;
        struct index_block *below = index_at(list, child);
        uint32_t next = position + (reading->is_best_first ? 1U : UINT32_MAX);
        rank -= reading->is_best_first ? 0 : span;
        if (below->is_lowest && count > 1) {
            tag_group_fetch_sheet(list, id, next);
        }
        if (!tag_group_child_tells(list, id, position, reading->filter, &reading->work_left,
                                   &sum) ||
            sum > 0) {
            if (below->is_lowest) {
                tag_group_read_sheet(reading, sheet_of(list, below), 0, span, rank);
            } else {
                tag_group_read_children(reading, child,
                                        reading->is_best_first ? 0 : below->count - 1U,
                                        below->count, reading->is_best_first ? rank : rank + span);
            }
        }
        rank += reading->is_best_first ? span : 0;
        position = next;
    }
}

/* Of a list with tags. */
static void tag_group_read_list(struct group_reading *reading, uint32_t from) {
    const struct skiplist *list = reading->list;
    struct skiplist_place place = skiplist_at(list, from);
    uint32_t first, count;
    const struct sheet *sheet = tag_group_sheet(list, place.leaf, &first, &count);
    uint32_t at = first + place.index, rank = from - at;
    tag_group_read_sheet(reading, sheet, reading->is_best_first ? at : 0,
                         reading->is_best_first ? count : at + 1, rank);
    uint32_t behind = rank + count, id = skiplist_node(list, place.leaf)->parent;
    while (id != SKIPLIST_NONE && reading->count < reading->count_max) {
        const struct skiplist_node *node = skiplist_node(list, id);
        if (node->parent == SKIPLIST_NONE) {
            return;
        }
        struct index_block *above = index_at(list, node->parent);
        if (reading->is_best_first) {
            tag_group_read_children(reading, node->parent, node->position + 1U,
                                    above->count - node->position - 1U, behind);
        } else {
            tag_group_read_children(reading, node->parent, node->position - 1U, node->position,
                                    rank);
        }
        rank -= index_wide_sum(above, node->position);
        behind = rank + index_wide_sum(above, above->count);
        id = node->parent;
    }
}

uint32_t tag_group_read(const struct board *board, struct tag_filter *filter, uint32_t from,
                        bool is_best_first, uint32_t *ranks, uint32_t count_max) {
    uint32_t all = board_count(board);
    if (filter->is_nobody || all == 0 || (is_best_first && from >= all)) {
        return 0;
    }
    from = from < all ? from : all - 1;
    struct group_reading reading = {.filter = filter,
                                    .is_best_first = is_best_first,
                                    .count_max = count_max,
                                    .ranks = ranks,
                                    .work_left = TAG_COUNTS_READER_WORK};
    if (board_tags(board) == NULL) {
        uint32_t left = is_best_first ? all - from : from + 1;
        for (; reading.count < count_max && reading.count < left; reading.count++) {
            ranks[reading.count] = is_best_first ? from + reading.count : from - reading.count;
        }
    } else {
        reading.list = &board->large->list;
        tag_group_read_list(&reading, from);
    }
    return reading.count;
}
