/* The header describes the structure and its invariants. */
#include "skiplist/index.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__ARM_NEON) && defined(__aarch64__)
#include <arm_neon.h>
#define HAS_NEON
#endif

#include "codec/memory.h"

enum {
    /* Ids are compacted when this many more are free than in use. */
    COMPACT_FREE_MIN = SKIPLIST_SEGMENT_NODES / 256 + 1,
    /* Free ids skipped in one step. */
    COMPACT_IDS = 32,
};

static size_t index_size_of(uint32_t capacity, uint32_t spans_size) {
    return sizeof(struct index_block) + spans_size + 12 * (size_t)capacity;
}

struct index_block *index_create(struct skiplist *list, uint32_t capacity, unsigned level) {
    bool is_lowest = level == 1;
    CHECK(capacity % INDEX_STRIDE == 0);
    CHECK(capacity <= INDEX_FANOUT);
    uint32_t spans_size = (is_lowest ? (capacity + 15) & ~UINT32_C(15) : 4 * capacity)
                          << list->is_dense;
    struct index_block *index = memory_allocate_zeroed(index_size_of(capacity, spans_size));
    if (index == NULL) {
        return NULL;
    }
    list->memory_size += memory_size(index);
    *index = (struct index_block){
        .capacity = (uint16_t)capacity,
        .spans_size = (uint16_t)spans_size,
        .is_lowest = is_lowest,
        .has_firsts = list->is_dense,
    };
    return index;
}

struct index_block *index_copy(struct skiplist *list, const struct index_block *from) {
    size_t size = index_size_of(from->capacity, from->spans_size);
    struct index_block *index = memory_allocate(size);
    if (index != NULL) {
        list->memory_size += memory_size(index);
        memcpy(index, from, size);
    }
    return index;
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

/* ---- the memory of blocks ---- */

struct block *index_adopt_leaf(struct skiplist *list, struct block *block) {
    if (block != NULL) {
        list->memory_size += memory_size(block);
    }
    return block;
}

void index_destroy(struct skiplist *list, void *block) {
    list->memory_size -= memory_size(block);
    memory_free(block);
}

size_t index_leaf_memory_size(const struct block *block) {
    size_t size = memory_size(block);
    const char *at = block_heap(block);
    for (uint32_t i = 0; i < block->count && block->long_count > 0; i++) {
        uint8_t code = block_code(block, i);
        if (code == NAME_LONG) {
            size += block_long_memory_size(at);
        }
        at += block_heap_size(code);
    }
    return size;
}

void index_replace_leaf(struct skiplist *list, uint32_t id, struct block *block) {
    struct block *old = index_leaf(list, id);
    block->links = old->links;
    block_copy(block, 0, old, 0, old->count);
    skiplist_node(list, id)->block = block;
    index_destroy(list, old);
}

void index_replace(struct skiplist *list, uint32_t id, struct index_block *index) {
    struct index_block *old = index_at(list, id);
    index->links = old->links;
    index->sheet = old->sheet;
    index_move(index, old, 0);
    skiplist_node(list, id)->block = index;
    index_destroy(list, old);
}

void index_free_long(struct skiplist *list, const struct block *block, uint32_t index,
                     uint32_t count) {
    if (block->long_count == 0) {
        return;
    }
    const char *at = block_heap(block) + block_offset(block, index);
    for (uint32_t i = index; i < index + count; i++) {
        uint8_t code = block_code(block, i);
        if (code == NAME_LONG) {
            list->memory_size -= block_long_memory_size(at);
            block_long_destroy(at);
        }
        at += block_heap_size(code);
    }
}

/* ---- the table of nodes ---- */

/* Enlarge or shrink the only segment. false: no memory. */
static bool index_resize_first_segment(struct skiplist *list, uint64_t capacity) {
    bool is_inline = list->first_segment == &list->first_node;
    size_t size_before = is_inline ? 0 : memory_size(list->first_segment);
    struct skiplist_node *nodes =
        memory_resize(is_inline ? NULL : list->first_segment, capacity * sizeof *nodes);
    if (nodes == NULL) {
        return false;
    }
    if (is_inline) {
        nodes[0] = list->first_node;
    }
    list->memory_size += memory_size(nodes) - size_before;
    list->first_segment = nodes;
    list->node_capacity = (uint32_t)capacity;
    return true;
}

static bool index_add_segment(struct skiplist *list) {
    uint32_t segment_count = list->node_capacity >> SKIPLIST_SEGMENT_BITS;
    bool is_inline = list->segments == &list->first_segment;
    size_t size_before = is_inline ? 0 : memory_size(list->segments);
    if (segment_count >= size_before / sizeof(void *)) {
        /* Make room in the table for one more segment. */
        struct skiplist_node **segments =
            memory_resize(is_inline ? NULL : list->segments, segment_count * 2 * sizeof(void *));
        if (segments == NULL) {
            return false;
        }
        segments[0] = list->first_segment;
        list->memory_size += memory_size(segments) - size_before;
        list->segments = segments;
    }
    struct skiplist_node *nodes = memory_allocate(SKIPLIST_SEGMENT_NODES * sizeof *nodes);
    if (nodes == NULL) {
        return false;
    }
    list->memory_size += memory_size(nodes);
    list->segments[segment_count] = nodes;
    list->node_capacity += SKIPLIST_SEGMENT_NODES;
    return true;
}

bool index_nodes_reserve(struct skiplist *list, uint32_t count) {
    uint64_t needed = index_nodes_needed(list, count);
    if (needed > SKIPLIST_NONE - SKIPLIST_SEGMENT_NODES) {
        return false;
    }
    uint64_t capacity = needed + needed / 8 + 1;
    if (capacity > SKIPLIST_SEGMENT_NODES) {
        capacity = SKIPLIST_SEGMENT_NODES;
    }
    while (needed > list->node_capacity) {
        bool is_first = list->node_capacity < SKIPLIST_SEGMENT_NODES;
        if (!(is_first ? index_resize_first_segment(list, capacity) : index_add_segment(list))) {
            return false;
        }
    }
    return true;
}

size_t index_nodes_memory_size(const struct skiplist *list) {
    size_t size = list->segments == &list->first_segment ? 0 : memory_size(list->segments);
    for (uint32_t id = 0; id < list->node_capacity; id += SKIPLIST_SEGMENT_NODES) {
        if (skiplist_node(list, id) != &list->first_node) {
            size += memory_size(skiplist_node(list, id));
        }
    }
    return size;
}

void index_nodes_free_segment(struct skiplist *list) {
    CHECK(list->node_capacity > SKIPLIST_SEGMENT_NODES);
    list->node_capacity -= SKIPLIST_SEGMENT_NODES;
    struct skiplist_node *nodes = list->segments[list->node_capacity >> SKIPLIST_SEGMENT_BITS];
    list->memory_size -= memory_size(nodes);
    memory_free(nodes);
    if (list->node_capacity > SKIPLIST_SEGMENT_NODES) {
        return;
    }
    /* The one remaining segment needs no table. */
    list->memory_size -= memory_size(list->segments);
    memory_free(list->segments);
    list->segments = &list->first_segment;
}

void index_nodes_free(struct skiplist *list) {
    list->memory_size -= index_nodes_memory_size(list);
    for (uint32_t id = 0; id < list->node_capacity; id += SKIPLIST_SEGMENT_NODES) {
        if (skiplist_node(list, id) != &list->first_node) {
            memory_free(skiplist_node(list, id));
        }
    }
    if (list->segments != &list->first_segment) {
        memory_free(list->segments);
    }
}

/* Unlink a free id from the free list. */
static void index_unchain(struct skiplist *list, uint32_t id) {
    const struct skiplist_node *node = skiplist_node(list, id);
    if (node->previous_free == SKIPLIST_NONE) {
        list->free_first = node->parent;
    } else {
        skiplist_node(list, node->previous_free)->parent = node->parent;
    }
    if (node->parent != SKIPLIST_NONE) {
        skiplist_node(list, node->parent)->previous_free = node->previous_free;
    }
    list->free_count--;
}

uint32_t index_node_take(struct skiplist *list, void *block, unsigned level) {
    uint32_t id = list->free_first;
    if (id != SKIPLIST_NONE) {
        index_unchain(list, id);
    } else {
        CHECK(list->node_end < list->node_capacity);
        id = list->node_end++;
    }
    *skiplist_node(list, id) =
        (struct skiplist_node){.block = block, .parent = SKIPLIST_NONE, .level = (uint16_t)level};
    return id;
}

void index_node_give_back(struct skiplist *list, uint32_t id) {
    *skiplist_node(list, id) = (struct skiplist_node){
        .block = NULL, .parent = list->free_first, .previous_free = SKIPLIST_NONE};
    if (list->free_first != SKIPLIST_NONE) {
        skiplist_node(list, list->free_first)->previous_free = id;
    }
    list->free_first = id;
    list->free_count++;
}

/* ---- compacting ids ---- */

/* Give a block another id: the most recently freed one. */
static void index_change_id(struct skiplist *list, uint32_t from, struct skiplist_owner owner) {
    struct skiplist_node node = *skiplist_node(list, from);
    uint32_t to = index_node_take(list, node.block, node.level);
    struct block_links links = *(struct block_links *)node.block;
    *skiplist_node(list, to) = node;
    if (node.parent != SKIPLIST_NONE) {
        index_children(index_at(list, node.parent))[node.position] = to;
    }
    if (links.previous != SKIPLIST_NONE) {
        index_links(list, links.previous)->next = to;
    }
    if (links.next != SKIPLIST_NONE) {
        index_links(list, links.next)->previous = to;
    }
    list->root = list->root == from ? to : list->root;
    list->first = list->first == from ? to : list->first;
    list->last = list->last == from ? to : list->last;
    if (node.level > 0) {
        index_renumber(list, to, 0);
    } else {
        const struct block *block = node.block;
        owner.moved(owner.owner, block, 0, block->count, from, to);
    }
    index_node_give_back(list, from);
}

/* Lower node_end while the last ids are free, or by moving one block to a lower id. */
static void index_lower_end(struct skiplist *list, struct skiplist_owner owner) {
    if (list->free_count == list->node_end) {
        list->node_end = 0;
        list->free_count = 0;
        list->free_first = SKIPLIST_NONE;
        return;
    }
    if (skiplist_node(list, list->node_end - 1)->block != NULL) {
        index_change_id(list, list->node_end - 1, owner);
    }
    for (int i = 0; i < COMPACT_IDS && skiplist_node(list, list->node_end - 1)->block == NULL;
         i++) {
        index_unchain(list, --list->node_end);
    }
}

/* Are there several segments, at least two of them unused? */
static bool index_has_spare_segment(const struct skiplist *list) {
    return list->node_capacity > SKIPLIST_SEGMENT_NODES &&
           list->node_capacity >= list->node_end + 2 * SKIPLIST_SEGMENT_NODES;
}

/* Is the only segment mostly empty? */
static bool index_has_spare(const struct skiplist *list) {
    return list->node_capacity <= SKIPLIST_SEGMENT_NODES &&
           list->node_capacity / 4 > list->node_end + COMPACT_FREE_MIN;
}

static bool index_has_spare_ids(const struct skiplist *list) {
    return list->free_count > list->node_end / 2 + COMPACT_FREE_MIN;
}

bool index_nodes_compact_step(struct skiplist *list, struct skiplist_owner owner) {
    CHECK(list->detached == SKIPLIST_NONE);
    if (index_has_spare_ids(list)) {
        index_lower_end(list, owner);
    } else if (index_has_spare_segment(list)) {
        index_nodes_free_segment(list);
    } else if (index_has_spare(list) &&
               !index_resize_first_segment(list, 2 * (list->node_end + COMPACT_FREE_MIN))) {
        return false;
    }
    return index_has_spare_ids(list) || index_has_spare_segment(list) || index_has_spare(list);
}

/* ---- levels ---- */

void index_renumber(struct skiplist *list, uint32_t id, uint32_t position) {
    struct index_block *index = index_at(list, id);
    const uint32_t *children = index_children(index);
    for (uint32_t i = position; i < index->count; i++) {
        skiplist_node(list, children[i])->parent = id;
        skiplist_node(list, children[i])->position = (uint16_t)i;
    }
}

void index_unlink(struct skiplist *list, uint32_t first, uint32_t last) {
    uint32_t previous = index_links(list, first)->previous;
    uint32_t next = index_links(list, last)->next;
    if (previous != SKIPLIST_NONE) {
        index_links(list, previous)->next = next;
    }
    if (next != SKIPLIST_NONE) {
        index_links(list, next)->previous = previous;
    }
}
