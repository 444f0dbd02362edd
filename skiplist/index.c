/* The header describes the structure and its invariants. */
#include "skiplist/index.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__ARM_NEON) && defined(__aarch64__)
#include <arm_neon.h>
#define HAS_NEON
#endif

#include "codec/memory.h"

static size_t index_size_of(uint32_t capacity, uint32_t spans_size) {
    return sizeof(struct index_block) + spans_size + 12 * (size_t)capacity;
}

struct index_block *index_create(uint32_t capacity, bool is_lowest, bool has_firsts) {
    CHECK(capacity % INDEX_STRIDE == 0);
    CHECK(capacity <= INDEX_FANOUT);
    uint32_t spans_size = (is_lowest ? (capacity + 15) & ~UINT32_C(15) : 4 * capacity)
                          << has_firsts;
    struct index_block *index = memory_allocate_zeroed(index_size_of(capacity, spans_size));
    if (index == NULL) {
        return NULL;
    }
    *index = (struct index_block){
        .capacity = (uint16_t)capacity,
        .spans_size = (uint16_t)spans_size,
        .is_lowest = is_lowest,
        .has_firsts = has_firsts,
    };
    return index;
}

void index_copy(struct index_block *index, const struct index_block *from) {
    CHECK(index->capacity == from->capacity);
    CHECK(index->spans_size == from->spans_size);
    memcpy(index, from, index_size_of(from->capacity, from->spans_size));
}

#if defined(__SSE2__) || defined(HAS_NEON)
/* All INDEX_FANOUT spans are read and the unwanted ones masked off, because an early exit would be
 * unpredictable. Even the smallest index block is large enough for that. */
enum { SPAN_VECTORS = (INDEX_FANOUT + 15) / 16 };
_Static_assert(SPAN_VECTORS <= 4, "four steps are written out");
_Static_assert(SPAN_VECTORS * 16 <= 16 + 12 * INDEX_FANOUT_FIRST, "spans are read too far");
#endif

#if defined(__SSE2__)
static __m128i index_sum_vector(const uint8_t *spans, int vector, __m128i count) {
    const __m128i lane = _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    __m128i number = _mm_add_epi8(lane, _mm_set1_epi8((char)(16 * vector)));
    __m128i sixteen = _mm_loadu_si128((const __m128i *)(const void *)spans + vector);
    sixteen = _mm_and_si128(sixteen, _mm_cmplt_epi8(number, count));
    return _mm_sad_epu8(sixteen, _mm_setzero_si128());
}

static inline uint32_t index_narrow_row_sum(const uint8_t *spans, uint32_t count) {
    __m128i count16 = _mm_set1_epi8((char)count);
    __m128i sum = index_sum_vector(spans, 0, count16);
    if (SPAN_VECTORS > 1) {
        sum = _mm_add_epi64(sum, index_sum_vector(spans, 1, count16));
    }
    if (SPAN_VECTORS > 2) {
        sum = _mm_add_epi64(sum, index_sum_vector(spans, 2, count16));
    }
    if (SPAN_VECTORS > 3) {
        sum = _mm_add_epi64(sum, index_sum_vector(spans, 3, count16));
    }
    return (uint32_t)_mm_cvtsi128_si32(_mm_add_epi64(sum, _mm_srli_si128(sum, 8)));
}
#elif defined(HAS_NEON)
/* Add neighbours of one vector of spans to eight partial sums, counting those from count on as 0. */
static uint16x8_t index_add_vector(uint16x8_t sum, const uint8_t *spans, int vector,
                                   uint8x16_t count) {
    static const uint8_t lanes[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    uint8x16_t number = vaddq_u8(vld1q_u8(lanes), vdupq_n_u8((uint8_t)(16 * vector)));
    uint8x16_t sixteen = vandq_u8(vld1q_u8(spans + 16 * vector), vcltq_u8(number, count));
    return vpadalq_u8(sum, sixteen);
}

static inline uint32_t index_narrow_row_sum(const uint8_t *spans, uint32_t count) {
    uint8x16_t count16 = vdupq_n_u8((uint8_t)count);
    uint16x8_t sum = index_add_vector(vdupq_n_u16(0), spans, 0, count16);
    if (SPAN_VECTORS > 1) {
        sum = index_add_vector(sum, spans, 1, count16);
    }
    if (SPAN_VECTORS > 2) {
        sum = index_add_vector(sum, spans, 2, count16);
    }
    if (SPAN_VECTORS > 3) {
        sum = index_add_vector(sum, spans, 3, count16);
    }
    return vaddlvq_u16(sum);
}
#else
static inline uint32_t index_narrow_row_sum(const uint8_t *spans, uint32_t count) {
    uint32_t sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        sum += spans[i];
    }
    return sum;
}
#endif

uint32_t index_narrow_sum(struct index_block *index, uint32_t count) {
    return index_narrow_row_sum(index_narrow_spans(index), count);
}

/* The last vector is read whole, which may reach into the next row, and what is behind count is masked: how many are left
 * over is a guess that a branch would lose. */
static inline uint32_t index_wide_row_sum(const uint32_t *spans, uint32_t count) {
    uint32_t i = 0;
#if defined(__SSE2__)
    static const uint32_t masks[8] = {UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX};
    __m128i four = _mm_setzero_si128();
    for (; i + 4 <= count; i += 4) {
        four = _mm_add_epi32(four, _mm_loadu_si128((const __m128i *)(const void *)(spans + i)));
    }
    __m128i mask = _mm_loadu_si128((const __m128i *)(const void *)(masks + 4 - (count - i)));
    __m128i last = _mm_loadu_si128((const __m128i *)(const void *)(spans + i));
    four = _mm_add_epi32(four, _mm_and_si128(mask, last));
    four = _mm_add_epi32(four, _mm_srli_si128(four, 8));
    four = _mm_add_epi32(four, _mm_srli_si128(four, 4));
    return (uint32_t)_mm_cvtsi128_si32(four);
#else
    uint32_t sum = 0;
#if defined(HAS_NEON)
    uint32x4_t four = vdupq_n_u32(0);
    for (; i + 4 <= count; i += 4) {
        four = vaddq_u32(four, vld1q_u32(spans + i));
    }
    sum = vaddvq_u32(four);
#endif
    for (; i < count; i++) {
        sum += spans[i];
    }
    return sum;
#endif
}

uint32_t index_wide_sum(struct index_block *index, uint32_t count) {
    return index_wide_row_sum(index_wide_spans(index), count);
}

uint32_t index_first_sum(struct index_block *index, uint32_t count) {
    return index->is_lowest ? index_narrow_row_sum(index_firsts(index), count)
                            : index_wide_row_sum(index_firsts(index), count);
}

uint32_t index_span_sum(struct index_block *index, uint32_t count) {
    return index->is_lowest ? index_narrow_sum(index, count) : index_wide_sum(index, count);
}

static uint32_t index_sum_of_eight(const uint8_t *spans) {
    /* Bytes are added in pairs into four 16-bit lanes, since the sum may exceed a byte; the
     * multiplication accumulates the lanes in the highest one. */
    uint64_t word;
    memcpy(&word, spans, sizeof word);
    uint64_t pairs = (word & 0x00ff00ff00ff00ffULL) + (word >> 8 & 0x00ff00ff00ff00ffULL);
    return (uint32_t)(pairs * 0x0001000100010001ULL >> 48);
}

uint32_t index_child_at(struct index_block *index, uint32_t *rank) {
    uint32_t position = 0;
    uint32_t left = *rank;
    if (index->is_lowest) {
        const uint8_t *spans = index_narrow_spans(index);
        /* Eight at a time while the position is behind all of them. */
        for (uint32_t eight; position + 8 <= index->count; position += 8, left -= eight) {
            eight = index_sum_of_eight(spans + position);
            if (left < eight) {
                break;
            }
        }
        while (left >= spans[position]) {
            left -= spans[position++];
        }
    } else {
        const uint32_t *spans = index_wide_spans(index);
        while (left >= spans[position]) {
            left -= spans[position++];
        }
    }
    *rank = left;
    return position;
}

/* Restore the fences and the keys beyond count. */
static void index_refresh(struct index_block *index) {
    uint64_t *keys = index_keys(index);
    for (uint32_t i = index->count; i % INDEX_STRIDE != 0; i++) {
        keys[i] = 0;
    }
    for (uint32_t i = 0; i < INDEX_FENCES; i++) {
        uint32_t position = INDEX_STRIDE * (i + 1);
        index->fences[i] = position < index->count ? keys[position] : 0;
    }
}

/* Copy count children, overwriting the destination. */
static void index_copy_children(struct index_block *to, uint32_t to_at, struct index_block *from,
                                uint32_t from_at, uint32_t count) {
    size_t width = to->is_lowest ? sizeof(uint8_t) : sizeof(uint32_t);
    uint8_t *to_spans = index_narrow_spans(to);
    memmove(to_spans + to_at * width, index_narrow_spans(from) + from_at * width, count * width);
    if (to->has_firsts && from->has_firsts) {
        memmove((uint8_t *)index_firsts(to) + to_at * width,
                (uint8_t *)index_firsts(from) + from_at * width, count * width);
    }
    memmove(index_children(to) + to_at, index_children(from) + from_at, count * sizeof(uint32_t));
    memmove(index_keys(to) + to_at, index_keys(from) + from_at, count * sizeof(uint64_t));
}

void index_insert(struct index_block *index, uint32_t position, uint64_t key, uint32_t span,
                  uint32_t child) {
    CHECK(index->count < index->capacity);
    index_copy_children(index, position + 1, index, position, index->count - position);
    index_keys(index)[position] = key;
    index_children(index)[position] = child;
    index_set_span(index, position, span);
    if (index->has_firsts) {
        index_set_firsts(index, position, 0);
    }
    index->count++;
    index_refresh(index);
}

void index_remove(struct index_block *index, uint32_t position, uint32_t count) {
    CHECK(position + count <= index->count);
    index_copy_children(index, position, index, position + count, index->count - position - count);
    index->count = (uint16_t)(index->count - count);
    index_refresh(index);
}

void index_move(struct index_block *to, struct index_block *from, uint32_t position) {
    uint32_t count = from->count - position;
    CHECK(to->count + count <= to->capacity);
    CHECK(to->is_lowest == from->is_lowest);
    index_copy_children(to, to->count, from, position, count);
    to->count = (uint16_t)(to->count + count);
    from->count = (uint16_t)position;
    index_refresh(to);
    index_refresh(from);
}

void index_set_key(struct index_block *index, uint32_t position, uint64_t key) {
    index_keys(index)[position] = key;
    index_refresh(index);
}

bool index_validate(struct index_block *index, const char **reason) {
    const uint64_t *keys = index_keys(index);
    if (index->count == 0 || index->count > index->capacity) {
        return check_passed("index: its count is wrong", reason);
    }
    for (uint32_t i = index->count; i % INDEX_STRIDE != 0; i++) {
        if (keys[i] != 0) {
            return check_passed("index: a key beyond the last one is not 0", reason);
        }
    }
    for (uint32_t i = 0; i < INDEX_FENCES; i++) {
        uint32_t position = INDEX_STRIDE * (i + 1);
        if (index->fences[i] != (position < index->count ? keys[position] : 0)) {
            return check_passed("index: a fence is not its key", reason);
        }
    }
    return true;
}
