/* Invariant: a large board's map holds (hash of the member, id of its leaf) for every entry,
 * including those of detached leaves, and nothing else. A board becomes large when its only leaf is
 * full, and small again only when half as many are left, so that a board at the boundary does not
 * rebuild its map repeatedly.
 *
 * Remains of a removed range are detached leaves (skiplist/detach.c). The map contains them until
 * they are freed, so every result of a map look-up is checked for being detached; without remains
 * the check is one comparison. A removed member may be added again: the map then holds both
 * leaves. */
#include "skiplist/board.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "codec/memory.h"
#include "skiplist/index.h"
#include "skiplist/large_board.h"
#include "skiplist/lookup.h"
#include "skiplist/sheet.h"

enum {
    /* Smaller ranges are removed leaf by leaf at once, which takes less time than a cut. */
    DETACH_MIN = 4 * BLOCK_ENTRIES_MAX,
    /* After this many additions, as many remains are freed. */
    ADDED_MAX = BLOCK_ENTRIES_MAX,
    /* A large board of no more members becomes small again: half of those that make it large. */
    SMALL_AGAIN_MAX = BLOCK_ALONE_ENTRIES_MAX / 2,
    /* Cost of freeing a segment of the map, or of a step of settle, in members. */
    SEGMENT_WORK = MAP_SEGMENT_BUCKETS / 8 + 1,
    SETTLE_WORK = 32,
};

_Static_assert((int)BLOCK_ENTRIES_MAX <= (int)MAP_HASHES_MAX, "a block's hashes fit map_hashes");

uint64_t board_hash(const struct board *board, struct bytes member) {
    return XXH3_64bits_withSeed(member.at, member.size, board->hash_seed);
}

/* Hash count members of a block, starting at index. */
static void board_hash_members(const struct board *board, const struct block *block, uint32_t index,
                               uint32_t count, uint64_t *hashes) {
    uint32_t offset = block_offset(block, index);
    for (uint32_t i = 0; i < count; i++) {
        char room[NAME_TEXT_ROOM];
        struct name member = block_member(block, index + i, offset);
        hashes[i] = board_hash(board, name_text(member, room));
        offset += block_heap_size(member.code);
    }
}

/* Callback of the map: the hashes of one id, of all members of its leaf. */
static uint32_t board_hashes(const void *owner, uint32_t id, uint64_t *hashes) {
    const struct board *board = ((const struct large_board *)owner)->board;
    const struct block *block = board_leaf(board, id);
    if (block == NULL) {
        return 0;
    }
    board_hash_members(board, block, 0, block->count, hashes);
    return block->count;
}

/* Callback of the skiplist: entries have moved to another leaf. Only on a large board, because a
 * small one has a single leaf. */
static void board_moved(void *owner, const struct block *block, uint32_t index, uint32_t count,
                        uint32_t from, uint32_t to) {
    struct board *board = owner;
    struct map *map = &board->large->map;
    uint64_t hashes[BLOCK_ENTRIES_MAX];
    board_hash_members(board, block, index, count, hashes);
    /* Every entry's bucket is another cache miss; start all of them before the first is needed. */
    for (uint32_t i = 0; i < count; i++) {
        map_prefetch(map, hashes[i]);
    }
    for (uint32_t i = 0; i < count; i++) {
        map_replace(map, hashes[i], from, to);
    }
}

static struct skiplist_owner board_owner(struct board *board) {
    return (struct skiplist_owner){.moved = board_moved, .owner = board};
}

/* ---- creation, small and large ---- */

void board_init(struct board *board, const struct layout *layout, uint64_t hash_seed) {
    *board = (struct board){.layout = layout, .hash_seed = hash_seed & BOARD_SEED_MASK};
}

/* As new, but for what it is. */
static void board_empty(struct board *board) {
    bool is_dense = board->is_dense;
    board_init(board, board->layout, board->hash_seed);
    board->is_dense = is_dense;
}

static struct large_board *board_create_large(struct board *board) {
    struct large_board *large = memory_allocate_zeroed(sizeof *large);
    if (large != NULL) {
        map_init(&large->map, board_hashes, large);
        large->board = board;
    }
    return large;
}

uint32_t board_index_leaf(struct board *board, uint32_t *id) {
    struct map *map = &board->large->map;
    uint64_t hashes[BLOCK_ENTRIES_MAX];
    uint32_t count = board_hashes(board->large, *id, hashes);
    for (uint32_t i = 0; i < count; i++) {
        map_prefetch(map, hashes[i]);
    }
    for (uint32_t i = 0; i < count; i++) {
        map_put(map, hashes[i], *id);
    }
    *id = board_leaf(board, *id)->links.next;
    return count;
}

bool board_fill_map(struct board *board) {
    const struct skiplist *list = &board->large->list;
    if (!map_reserve(&board->large->map, list->count, list->node_end)) {
        return false;
    }
    for (uint32_t id = list->first; id != SKIPLIST_NONE;) {
        (void)board_index_leaf(board, &id);
    }
    return true;
}

/* Append the entries of a leaf, which has no long members, as leaves of at most so many. false: no
 * memory. */
static bool board_divide_leaf(const struct block *leaf, uint32_t leaf_entries,
                              struct skiplist *list) {
    uint32_t offset = 0;
    for (uint32_t index = 0; index < leaf->count;) {
        struct block_entry entries[BLOCK_ENTRIES_MAX];
        uint32_t count = 0, heap = 0;
        for (; count < leaf_entries && index < leaf->count; count++, index++) {
            entries[count] = block_get(leaf, index, offset);
            uint32_t size = block_heap_size(entries[count].code);
            if (heap + size > BLOCK_HEAP_MAX) {
                break;
            }
            heap += size;
            offset += size;
        }
        if (!skiplist_append(list, entries, count)) {
            return false;
        }
    }
    return true;
}

bool board_enlarge(struct board *board, uint32_t leaf_entries, bool is_indexed) {
    struct block *leaf = board->leaf;
    struct large_board *large = board_create_large(board);
    if (large == NULL) {
        return false;
    }
    bool is_divided = leaf != NULL && block_is_over(leaf);
    skiplist_init_leaf(&large->list, board_is_latest(board), is_divided ? NULL : leaf);
    board->large = large;
    board->is_large = true;
    /* A list of one leaf needs no memory for it. */
    if ((!board->is_dense || dense_begin(&large->list, board->layout->time.bits)) &&
        (!is_divided || board_divide_leaf(leaf, leaf_entries, &large->list)) &&
        (!is_indexed || board_fill_map(board))) {
        if (is_divided) {
            memory_free(leaf);
        }
        return true;
    }
    map_deinit(&large->map);
    if (is_divided) {
        skiplist_deinit(&large->list);
    }
    memory_free(large);
    board->leaf = leaf;
    board->is_large = false;
    return false;
}

bool board_make_itself_large(struct board *board) {
    enum { LEAF_ENTRIES = BLOCK_ENTRIES_MAX * 5 / 6 }; /* the next ones come to any of them */
    return board_enlarge(board, LEAF_ENTRIES, true);
}

static void board_leave_chain(struct board *board) {
    struct large_board *large = board->large;
    if (!board->is_large || large->link == NULL) {
        return;
    }
    *large->link = large->next;
    if (large->next != NULL) {
        large->next->large->link = large->link;
    }
    large->link = NULL;
}

/* One leaf with all entries of a list; NULL: they do not fit, or no memory. */
static struct block *board_join_leaves(const struct board *board) {
    const struct skiplist *list = &board->large->list;
    uint32_t heap = 0;
    if (list->count > BLOCK_ALONE_ENTRIES_MAX) {
        return NULL;
    }
    for (uint32_t id = list->first; id != SKIPLIST_NONE; id = board_leaf(board, id)->links.next) {
        const struct block *block = board_leaf(board, id);
        heap += block->heap_used;
        if (block->long_count > 0 || heap > BLOCK_ALONE_HEAP_MAX) {
            return NULL;
        }
    }
    struct block *joined = block_create(list->count, heap);
    if (joined == NULL) {
        return NULL;
    }
    joined->links = (struct block_links){.next = SKIPLIST_NONE, .previous = SKIPLIST_NONE};
    for (uint32_t id = list->first; id != SKIPLIST_NONE; id = board_leaf(board, id)->links.next) {
        const struct block *block = board_leaf(board, id);
        block_copy(joined, joined->count, block, 0, block->count);
    }
    return joined;
}

bool board_make_small(struct board *board) {
    struct large_board *large = board->large;
    struct block *leaf = NULL;
    if (large->list.first != large->list.last) {
        leaf = board_join_leaves(board);
        if (leaf == NULL) {
            return false;
        }
        skiplist_deinit(&large->list);
    } else {
        leaf = skiplist_take_leaf(&large->list);
    }
    board_leave_chain(board);
    map_deinit(&large->map);
    board->leaf = leaf;
    board->is_large = false;
    memory_free(large);
    return true;
}

void board_deinit(struct board *board) {
    while (!board_deinit_step(board, UINT32_MAX)) {
        continue;
    }
}

bool board_deinit_step(struct board *board, uint32_t work_max) {
    struct skiplist own;
    board_leave_chain(board);
    for (uint32_t work = 0; board->is_large && !map_deinit_step(&board->large->map);) {
        work += SEGMENT_WORK;
        if (work >= work_max) {
            return false;
        }
    }
    if (!skiplist_deinit_step(board_list(board, &own), work_max)) {
        return false;
    }
    if (board->is_large) {
        if (board->large->list.tags != NULL && !tags_free_step(&board->large->list, work_max)) {
            return false;
        }
        memory_free(board->large);
    }
    board_empty(board);
    return true;
}

void board_move_to(struct board *board, struct board *to) {
    *to = *board;
    if (to->is_large) {
        to->large->board = to;
        if (to->large->link != NULL) {
            *to->large->link = to;
        }
    }
    board_empty(board);
}

static bool board_copy_large(const struct board *board, struct board *copy) {
    copy->large = board_create_large(copy);
    if (copy->large == NULL) {
        return false;
    }
    copy->is_large = true;
    skiplist_init(&copy->large->list, board_is_latest(board));
    if (board->large->list.tags != NULL) {
        skiplist_set_tags(&copy->large->list, tags_copy(board->large->list.tags));
        if (copy->large->list.tags == NULL) {
            return false;
        }
    }
    if (!skiplist_copy(&board->large->list, &copy->large->list)) {
        return false;
    }
    if (copy->large->list.tags != NULL && board_has_detached(board)) {
        sheet_recount(&copy->large->list);
    }
    /* The copy has no remains, so they must not be in its map either. */
    return board_has_detached(board) ? board_fill_map(copy)
                                     : map_copy(&board->large->map, &copy->large->map);
}

bool board_copy(const struct board *board, struct board *copy) {
    struct skiplist from, to;
    board_init(copy, board->layout, board->hash_seed);
    copy->is_dense = board->is_dense;
    if (board->is_large) {
        if (board_copy_large(board, copy)) {
            return true;
        }
        board_deinit(copy);
        return false;
    }
    skiplist_init(&to, board_is_latest(board));
    if (!skiplist_copy(board_list(board, &from), &to)) {
        return false;
    }
    board_keep_list(copy, &to);
    return true;
}

const struct layout *board_layout(const struct board *board) {
    return board->layout;
}

void board_set_layout(struct board *board, const struct layout *layout) {
    CHECK(layout->bits_total == board->layout->bits_total);
    CHECK(layout->time.bits == board->layout->time.bits);
    board->layout = layout;
}

uint32_t board_count(const struct board *board) {
    if (board->is_large) {
        return board->large->list.count;
    }
    return board->leaf != NULL ? board->leaf->count : 0;
}

size_t board_memory_size(const struct board *board) {
    struct skiplist own;
    size_t size = board_list(board, &own)->memory_size;
    if (board->is_large) {
        size += memory_size(board->large) + map_memory_size(&board->large->map);
        if (board->large->list.tags != NULL) {
            size += tags_memory_size(&board->large->list);
        }
    }
    return size;
}

/* ---- looking up ---- */

/* A member that was looked up. */
struct found {
    struct skiplist_place place;
    uint32_t offset; /* of its bytes in the leaf's heap */
    const struct block *block;
};

static bool board_find_in_leaf(const struct board *board, uint32_t id, struct bytes member,
                               uint64_t hash, struct found *found) {
    found->block = board_leaf(board, id);
    found->place.leaf = id;
    return found->block != NULL && block_find(found->block, board_hash_tag(hash), member,
                                              &found->place.index, &found->offset);
}

/* The part of board_locate for boards with remains. Separate, to keep look-ups fast where there are
 * none. */
__attribute__((noinline)) static bool board_locate_living(const struct board *board,
                                                          struct bytes member, uint64_t hash,
                                                          struct found *found) {
    struct map_find find;
    uint32_t id;
    map_find(&board->large->map, hash, &find);
    while (map_find_next(&find, &id)) {
        if (board_find_in_leaf(board, id, member, hash, found) && board_leaf_is_alive(board, id)) {
            return true;
        }
    }
    return false;
}

static bool board_locate(const struct board *board, struct bytes member, uint64_t hash,
                         struct found *found) {
    if (!board->is_large) {
        return board_find_in_leaf(board, 0, member, hash, found);
    }
    if (board_has_detached(board)) {
        return board_locate_living(board, member, hash, found);
    }
    struct map_find find;
    uint32_t id;
    map_find(&board->large->map, hash, &find);
    while (map_find_next(&find, &id)) {
        if (board_find_in_leaf(board, id, member, hash, found)) {
            return true;
        }
    }
    return false;
}

bool board_find(const struct board *board, struct bytes member, uint64_t *key) {
    struct found found;
    if (!board_locate(board, member, board_hash(board, member), &found)) {
        return false;
    }
    *key = block_keys(found.block)[found.place.index];
    return true;
}

static void board_note_found(struct board_member *member, const struct found *found) {
    member->is_there = true;
    member->key = block_keys(found->block)[found->place.index];
    member->leaf = found->place.leaf;
    member->index = found->place.index;
    member->offset = found->offset;
}

void board_look_up(const struct board *board, struct bytes name, const struct lookup *ahead,
                   struct board_member *member) {
    struct found found;
    bool is_for_it = ahead != NULL && ahead->board == board &&
                     ahead->hash_seed == board->hash_seed && ahead->member.at == name.at &&
                     ahead->member.size == name.size;
    if (is_for_it) {
        *member = (struct board_member){
            .name = name, .hash = ahead->hash, .target = ahead->target, .place = ahead->place};
        found.block = board_leaf(board, ahead->leaf);
        found.place = (struct skiplist_place){.leaf = ahead->leaf, .index = ahead->index};
        /* Is it still where its staged look-up found it? */
        if (found.block != NULL && !board_has_detached(board) &&
            block_has(found.block, ahead->index, board_hash_tag(ahead->hash), ahead->member,
                      &found.offset)) {
            board_note_found(member, &found);
            return;
        }
    } else {
        *member = (struct board_member){.name = name,
                                        .hash = board_hash(board, name),
                                        .target = SKIPLIST_NONE,
                                        .place = SKIPLIST_NONE};
    }
    if (board_locate(board, name, member->hash, &found)) {
        board_note_found(member, &found);
    }
}

uint32_t board_rank_of(const struct board *board, const struct board_member *member) {
    if (!board->is_large) {
        return member->index;
    }
    return skiplist_rank(&board->large->list, board_place_of(member));
}

/* ---- changing ---- */

enum {
    /* Above the average size of the blocks that one insertion creates or grows. */
    PUT_BLOCK_BYTES = 1024,
};

size_t board_growth_size(const struct board *board, uint32_t count) {
    /* Each insertion makes at most one leaf; index blocks are fewer than leaves. */
    uint32_t block_count = count < BOARD_MEMBERS_MAX / 4 ? count * 2 + SKIPLIST_LEVELS_MAX : count;
    struct skiplist own;
    const struct skiplist *list = board_list(board, &own);
    size_t size = (size_t)count * PUT_BLOCK_BYTES + skiplist_growth_size(list, block_count);
    uint32_t id_end = list->node_end + block_count;
    if (board->is_large) {
        return size + map_growth_size(&board->large->map, count, id_end);
    }
    struct map empty;
    map_init(&empty, NULL, NULL);
    /* Its leaf is copied as it grows, or is divided. */
    size += board->leaf != NULL ? 2 * memory_size(board->leaf) : 0;
    return size + sizeof *board->large + map_growth_size(&empty, list->count + count, id_end);
}

/* Reserve all memory for an insertion that adds count entries to the map. */
static bool board_reserve(struct board *board, struct skiplist *list, struct skiplist_place place,
                          uint8_t code, uint32_t count, struct skiplist_plan *plan) {
    if (!skiplist_reserve(list, place, code, plan)) {
        return false;
    }
    if (!board->is_large || map_reserve(&board->large->map, count, skiplist_id_end(list, plan))) {
        return true;
    }
    skiplist_unreserve(list, plan);
    return false;
}

/* Remove entries of one leaf from the map. */
static void board_unmap(struct board *board, struct skiplist_place place, uint32_t count) {
    uint64_t hashes[BLOCK_ENTRIES_MAX];
    if (!board->is_large) {
        return;
    }
    struct map *map = &board->large->map;
    board_hash_members(board, board_leaf(board, place.leaf), place.index, count, hashes);
    for (uint32_t i = 0; i < count; i++) {
        map_prefetch(map, hashes[i]);
    }
    for (uint32_t i = 0; i < count; i++) {
        map_remove(map, hashes[i], place.leaf);
    }
}

/* Free remains of about work_max entries. Returns their number. */
static uint32_t board_free_detached(struct board *board, uint32_t work_max) {
    struct skiplist *list = &board->large->list;
    uint32_t work = 0;
    uint32_t id;
    while (work < work_max && (id = detach_next_leaf(list)) != SKIPLIST_NONE) {
        uint32_t count = skiplist_leaf(list, id)->count;
        board_unmap(board, (struct skiplist_place){.leaf = id}, count);
        detach_free_leaf(list);
        work += count;
    }
    return work;
}

/* Does the key belong between two keys of the leaf? Then no other leaf can take it. */
static bool board_belongs_inside(const struct block *block, uint64_t key) {
    const uint64_t *keys = block_keys(block);
    return keys[0] > key && key > keys[block->count - 1];
}

static struct skiplist_place board_place_inside(const struct skiplist *list, uint32_t id,
                                                uint64_t key) {
    const struct block *block = skiplist_leaf(list, id);
    return (struct skiplist_place){
        .leaf = id,
        .index = block_keys_above(block_keys(block), block->count, key, !list->is_latest),
    };
}

/* Does the key belong right there, between two keys of the leaf? */
static bool board_belongs_at(const struct block *block, uint32_t index, uint64_t key,
                             bool or_equal) {
    if (index == 0 || index >= block->count) {
        return false;
    }
    const uint64_t *keys = block_keys(block) + index;
    return or_equal ? keys[-1] >= key && keys[0] < key : keys[-1] > key && keys[0] <= key;
}

/* Where the key belongs: in the prefetched leaf, or searched from the root. */
static struct skiplist_place board_place_for(const struct skiplist *list,
                                             struct skiplist_place target, uint64_t key) {
    const struct block *block = skiplist_leaf(list, target.leaf);
    if (block != NULL && !skiplist_has_detached(list)) {
        if (board_belongs_at(block, target.index, key, !list->is_latest)) {
            return target;
        }
        if (board_belongs_inside(block, key)) {
            return board_place_inside(list, target.leaf, key);
        }
    }
    return skiplist_place_for(list, key);
}

static struct skiplist_place board_target_of(const struct board_member *member) {
    return (struct skiplist_place){.leaf = member->target, .index = member->place};
}

/* Insert an entry that is not on the board. false: no memory, nothing changed. */
static bool board_insert_entry(struct board *board, const struct block_entry *entry,
                               const struct board_member *added) {
    struct skiplist own;
    struct skiplist_plan plan;
    bool needs_leaf =
        !board->is_large && board->leaf != NULL && block_is_full_alone(board->leaf, entry->code);
    if (needs_leaf && !board_make_itself_large(board)) {
        return false;
    }
    struct skiplist *list = board_list(board, &own);
    struct skiplist_place place = board_place_for(list, board_target_of(added), entry->key);
    if (!board_reserve(board, list, place, entry->code, 1, &plan)) {
        if (needs_leaf) {
            (void)board_make_small(board);
        }
        return false;
    }
    uint32_t id = skiplist_insert(list, &plan, entry, board_owner(board));
    board_keep_list(board, list);
    if (board->is_large) {
        map_put(&board->large->map, added->hash, id);
    }
    return true;
}

static enum board_status board_add(struct board *board, const struct board_member *added,
                                   uint64_t key) {
    struct packed_name form;
    if (board_count(board) == BOARD_MEMBERS_MAX) {
        return BOARD_FULL;
    }
    char long_bytes[BLOCK_LONG_SIZE];
    name_pack(added->name, &form);
    struct name member = name_from(added->name, &form);
    struct block_entry entry = {
        .key = key,
        .at = member.at,
        .tag = board_hash_tag(added->hash),
        .code = member.code,
    };
    if (entry.code == NAME_LONG) {
        if (!block_long_create(member, long_bytes)) {
            return BOARD_OUT_OF_MEMORY;
        }
        entry.at = long_bytes;
    }
    if (!board_insert_entry(board, &entry, added)) {
        if (entry.code == NAME_LONG) {
            block_long_destroy(long_bytes);
        }
        return BOARD_OUT_OF_MEMORY;
    }
    /* If remains were freed only in the host's idle time, a board that is emptied and refilled continuously could
     * outgrow it. */
    if (board_has_detached(board) && ++board->large->added_count >= ADDED_MAX) {
        board->large->added_count = 0;
        (void)board_free_detached(board, ADDED_MAX);
    }
    return BOARD_OK;
}

/* Where the key belongs. After a small change of score it is usually the member's own leaf or the
 * next one, which saves the search from the root. */
static struct skiplist_place board_place_near(const struct skiplist *list,
                                              const struct board_member *member,
                                              const struct block *block, uint64_t key) {
    struct skiplist_place target = board_target_of(member);
    if (target.leaf != SKIPLIST_NONE && target.leaf != member->leaf) {
        return board_place_for(list, target, key);
    }
    if (board_belongs_inside(block, key)) {
        return board_place_inside(list, member->leaf, key);
    }
    bool is_better = key > block_keys(block)[0];
    target.leaf = is_better ? block->links.previous : block->links.next;
    target.index = SKIPLIST_NONE;
    return board_place_for(list, target, key);
}

/* Move an entry within its leaf, before the one at `to`. */
static void board_shift_more(struct skiplist *list, struct skiplist_place from, uint32_t to,
                             uint64_t key) {
    struct skiplist_place place = {.leaf = from.leaf, .index = to > from.index ? to - 1 : to};
    if (list->is_dense) {
        dense_note(list, from, 1, 0U - 1);
    }
    block_shift(index_leaf(list, from.leaf), from.index, to, key);
    if (list->tags != NULL) {
        sheet_shift(list, from.leaf, from.index, to);
    }
    if (list->is_dense) {
        dense_note(list, place, 1, 1);
    }
}

static enum board_status board_move(struct board *board, const struct board_member *member,
                                    uint64_t key) {
    struct skiplist own;
    struct skiplist *list = board_list(board, &own);
    const struct block *block = board_leaf(board, member->leaf);
    struct skiplist_place from = board_place_of(member);
    struct skiplist_place to = board_place_near(list, member, block, key);
    if (to.leaf == from.leaf) {
        if (list->has_more) {
            board_shift_more(list, from, to.index, key);
        } else {
            block_shift(index_leaf(list, from.leaf), from.index, to.index, key);
        }
        return BOARD_OK;
    }
    /* Insert the new entry first, directly from the old one, which an insertion into another leaf
     * does not move. Until that succeeds nothing has changed, so running out of memory is
     * harmless. */
    struct block_entry entry = block_get(block, from.index, member->offset);
    entry.key = key;
    struct skiplist_plan plan;
    if (list->tags != NULL) {
        list->tags->code = sheet_code(list, from);
        list->tags->is_moving = true;
        tag_counts_prefetch(list, from.leaf, list->tags->code);
        tag_counts_prefetch(list, to.leaf, list->tags->code);
    }
    enum board_status status = BOARD_OUT_OF_MEMORY;
    if (board_reserve(board, list, to, entry.code, 0, &plan)) {
        uint32_t id = skiplist_insert(list, &plan, &entry, board_owner(board));
        map_replace(&board->large->map, member->hash, from.leaf, id);
        skiplist_remove_moved(list, from, member->offset, board_owner(board));
        status = BOARD_OK;
    }
    if (list->tags != NULL) {
        list->tags->code = 0;
        list->tags->is_moving = false;
    }
    return status;
}

enum board_status board_put_member(struct board *board, const struct board_member *member,
                                   uint64_t key) {
    return member->is_there ? board_move(board, member, key) : board_add(board, member, key);
}

enum board_status board_put(struct board *board, struct bytes name, uint64_t key) {
    CHECK(name.size >= 1);
    CHECK(name.size <= BOARD_MEMBER_MAX);
    struct board_member member;
    board_look_up(board, name, NULL, &member);
    return board_put_member(board, &member, key);
}

/* One step to bring memory in proportion to the members. Ids are compacted first: the map is moved
 * id by id, so its rehash then costs as much as there are members. true: another step will make
 * progress. */
static bool board_settle_step(struct board *board) {
    struct skiplist *list = &board->large->list;
    struct map *map = &board->large->map;
    if (list->count <= SMALL_AGAIN_MAX && !skiplist_has_detached(list) && map_is_small(map) &&
        list->tags == NULL && board_make_small(board)) {
        return false;
    }
    if (skiplist_may_compact(list) && index_nodes_compact_step(list, board_owner(board))) {
        return true;
    }
    return map_step(map, list->node_end);
}

/* Call after removals: runs board_settle_step if there is anything to do, which is rare. */
static inline bool board_settle(struct board *board) {
    if (!board->is_large) {
        return false;
    }
    const struct large_board *large = board->large;
    bool is_settled = large->list.count > SMALL_AGAIN_MAX && !map_is_unfinished(&large->map) &&
                      !skiplist_may_compact(&large->list);
    return !is_settled && board_settle_step(board);
}

/* Remove count entries of one leaf that have already been removed from the map. */
static void board_remove_from_leaf(struct board *board, struct skiplist_place place,
                                   uint32_t count) {
    struct skiplist own;
    struct skiplist *list = board_list(board, &own);
    skiplist_remove(list, place, count, board_owner(board));
    board_keep_list(board, list);
    board_settle(board);
}

void board_remove_member(struct board *board, const struct board_member *member) {
    if (board->is_large) {
        map_remove(&board->large->map, member->hash, member->leaf);
    }
    board_remove_from_leaf(board, board_place_of(member), 1);
}

/* Remove a range of a large board by detaching whole leaves, to be freed later; the entries in the
 * partial leaves at its ends are removed at once. */
static void board_detach_range(struct board *board, uint32_t rank, uint32_t count) {
    struct skiplist *list = &board->large->list;
    struct skiplist_place begin = skiplist_at(list, rank);
    if (begin.index > 0) {
        uint32_t part = skiplist_leaf(list, begin.leaf)->count - begin.index;
        board_unmap(board, begin, part);
        detach_cut(list, begin, part);
        count -= part;
    }
    struct skiplist_place end = skiplist_at(list, rank + count - 1);
    if (end.index + 1U < skiplist_leaf(list, end.leaf)->count) {
        uint32_t part = end.index + 1;
        end.index = 0;
        board_unmap(board, end, part);
        detach_cut(list, end, part);
        count -= part;
    }
    detach_leaves(list, rank, count);
    detach_join(list, rank, board_owner(board));
}

void board_remove_range(struct board *board, uint32_t rank, uint32_t count) {
    CHECK(rank <= board_count(board));
    CHECK(count <= board_count(board) - rank);
    if (count >= DETACH_MIN && board->is_large) {
        board_detach_range(board, rank, count);
        board_settle(board);
        return;
    }
    while (count > 0) {
        struct skiplist own;
        struct skiplist_place place = skiplist_at(board_list(board, &own), rank);
        uint32_t here = board_leaf(board, place.leaf)->count - place.index;
        uint32_t run = here < count ? here : count;
        board_unmap(board, place, run);
        board_remove_from_leaf(board, place, run);
        count -= run;
    }
}

bool board_has_remains(const struct board *board) {
    return board_has_detached(board) || (board->is_large && board->large->list.tags != NULL &&
                                         tags_have_work(board->large->list.tags));
}

bool board_free_step(struct board *board, uint32_t work_max) {
    uint32_t work = board->is_large ? board_free_detached(board, work_max) : 0;
    if (work < work_max && board->is_large && board->large->list.tags != NULL) {
        work += tags_step(&board->large->list, work_max - work);
    }
    while (!board_has_remains(board)) {
        if (!board_settle(board)) {
            board_leave_chain(board);
            return true;
        }
        if (work >= work_max) {
            break;
        }
        work += SETTLE_WORK;
    }
    return false;
}

bool board_free_remains(struct board *board) {
    enum { REMAINS_WORK = 1024 };
    bool has_some = board_has_detached(board);
    if (has_some) {
        (void)board_free_detached(board, REMAINS_WORK);
    }
    return has_some;
}

void board_chain_put(struct board_chain *chain, struct board *board) {
    if (!board_has_remains(board) || board->large->link != NULL) {
        return;
    }
    struct large_board *large = board->large;
    large->next = chain->first;
    large->link = &chain->first;
    if (large->next != NULL) {
        large->next->large->link = &large->next;
    }
    chain->first = board;
}

bool board_chain_clear(struct board_chain *chain) {
    bool had_some = chain->first != NULL;
    while (chain->first != NULL) {
        board_leave_chain(chain->first);
    }
    return had_some;
}

void board_chain_moved(struct board_chain *chain) {
    if (chain->first != NULL) {
        chain->first->large->link = &chain->first;
    }
}

/* ---- moving blocks to other addresses ---- */

uint32_t board_relocate(struct board *board, uint32_t from, uint32_t count, board_mover *move,
                        void *context) {
    if (!board->is_large) {
        void *leaf = board->leaf != NULL ? move(context, board->leaf) : NULL;
        board->leaf = leaf != NULL ? leaf : board->leaf;
        return 0;
    }
    struct skiplist *list = &board->large->list;
    uint32_t id = from;
    for (; id < list->node_end && id - from < count; id++) {
        struct skiplist_node *node = skiplist_node(list, id);
        size_t size = node->block != NULL ? memory_size(node->block) : 0;
        void *block = node->block != NULL ? move(context, node->block) : NULL;
        if (block != NULL) {
            node->block = block;
            list->memory_size += memory_size(block) - size;
        }
        if (list->tags != NULL && node->block != NULL && node->level == 1) {
            struct index_block *index = node->block;
            size_t sheet_size = index->sheet != NULL ? memory_size(index->sheet) : 0;
            void *sheet = index->sheet != NULL ? move(context, index->sheet) : NULL;
            if (sheet != NULL) {
                index->sheet = sheet;
                list->tags->memory_size += memory_size(sheet) - sheet_size;
            }
        }
    }
    return id < list->node_end ? id : 0;
}

void board_relocated(struct board *board) {
    if (board->is_large) {
        board->large->board = board;
        if (board->large->link != NULL) {
            *board->large->link = board;
        }
    }
}

/* ---- ranks ---- */

bool board_set_dense(struct board *board, bool is_dense) {
    if (board->is_large && board->large->list.is_dense != is_dense) {
        if (!is_dense) {
            dense_end(&board->large->list);
        } else if (!dense_begin(&board->large->list, board->layout->time.bits)) {
            return false;
        }
    }
    board->is_dense = is_dense;
    return true;
}

static uint32_t board_dense_rank_at(const struct board *board, struct skiplist_place place) {
    struct skiplist own;
    CHECK(board->is_dense);
    const struct skiplist *list = board_list(board, &own);
    own.score_shift = (uint8_t)board->layout->time.bits; /* read only of a small board */
    return dense_rank(list, place);
}

uint32_t board_dense_rank(const struct board *board, uint32_t rank) {
    return board_dense_rank_at(board, board_place_at(board, rank));
}

uint32_t board_dense_rank_of(const struct board *board, const struct board_member *member) {
    return board_dense_rank_at(board, board_place_of(member));
}

uint32_t board_dense_count(const struct board *board) {
    uint32_t count = board_count(board);
    CHECK(board->is_dense);
    if (board->is_large) {
        return board->large->list.firsts;
    }
    return count > 0 ? board_dense_rank(board, count - 1) + 1 : 0;
}

static uint32_t board_count_limited(const struct board *board, uint64_t key, bool or_equal) {
    struct skiplist own;
    const struct skiplist *list = board_list(board, &own);
    if (board_is_above_all(list, key)) {
        return 0;
    }
    if (board_is_below_all(list, key)) {
        return list->count;
    }
    return skiplist_rank(list, skiplist_place_above(list, key, or_equal));
}

void board_count_many(const struct board *board, const uint64_t *keys, uint32_t count,
                      bool or_equal, uint32_t *counts) {
    struct skiplist_place places[BOARD_AT_MAX];
    CHECK(count <= BOARD_AT_MAX);
    if (!board->is_large || board_count(board) == 0) {
        for (uint32_t i = 0; i < count; i++) {
            counts[i] = board_count_limited(board, keys[i], or_equal);
        }
        return;
    }
    /* Many lie beyond every key. */
    const struct skiplist *list = &board->large->list;
    const struct block *last = skiplist_leaf(list, list->last);
    uint64_t best = block_keys(skiplist_leaf(list, list->first))[0];
    uint64_t worst = block_keys(last)[last->count - 1];
    uint64_t inner[BOARD_AT_MAX] = {0};
    uint32_t which[BOARD_AT_MAX], inner_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        counts[i] = keys[i] > best ? 0 : list->count;
        inner[inner_count] = keys[i];
        which[inner_count] = i;
        inner_count += keys[i] <= best && keys[i] >= worst;
    }
    skiplist_places_above(list, inner, inner_count, or_equal, places);
    for (uint32_t i = 0; i < inner_count; i++) {
        counts[which[i]] = skiplist_rank(list, places[i]);
    }
}

uint32_t board_count_above(const struct board *board, uint64_t key) {
    return board_count_limited(board, key, false);
}

uint32_t board_count_from(const struct board *board, uint64_t key) {
    return board_count_limited(board, key, true);
}

struct board_stored board_at(const struct board *board, uint32_t rank) {
    struct skiplist_place place = board_place_at(board, rank);
    const struct block *block = board_leaf(board, place.leaf);
    return board_entry_at(block, place.index, block_offset(block, place.index));
}

_Static_assert((int)BOARD_AT_MAX <= (int)SKIPLIST_AT_MAX, "places are found at once");

void board_at_many(const struct board *board, const uint32_t *ranks, uint32_t count,
                   struct board_stored *entries) {
    struct skiplist_place places[BOARD_AT_MAX];
    uint32_t offsets[BOARD_AT_MAX];
    CHECK(count <= BOARD_AT_MAX);
    if (!board->is_large) {
        for (uint32_t i = 0; i < count; i++) {
            entries[i] = board_at(board, ranks[i]);
        }
        return;
    }
    skiplist_at_many(&board->large->list, ranks, count, places);
    for (uint32_t i = 0; i < count; i++) {
        const struct block *block = board_leaf(board, places[i].leaf);
        uint32_t index = places[i].index;
        offsets[i] = block_offset(block, index);
        memory_prefetch(block_keys(block) + index);
        memory_prefetch_lines(block_heap(block) + offsets[i],
                              block_heap_size(block_code(block, index)));
    }
    for (uint32_t i = 0; i < count; i++) {
        entries[i] = board_entry_at(board_leaf(board, places[i].leaf), places[i].index, offsets[i]);
    }
}

/* ---- checking ---- */

/* Check the tags, and that look-up finds every member at its place (so none is duplicated). */
static const char *board_check_leaf(const struct board *board, uint32_t id) {
    const struct block *block = board_leaf(board, id);
    uint64_t hashes[BLOCK_ALONE_ENTRIES_MAX];
    board_hash_members(board, block, 0, block->count, hashes);
    uint32_t offset = 0;
    for (uint32_t i = 0; i < block->count; i++) {
        struct found found;
        if (block_tag(block, i) != board_hash_tag(hashes[i])) {
            return "board: a tag is not the member's";
        }
        char room[NAME_TEXT_ROOM];
        struct bytes member = name_text(block_member(block, i, offset), room);
        if (!board_locate(board, member, hashes[i], &found)) {
            return "board: a member is not found";
        }
        if (found.place.leaf != id || found.place.index != i) {
            return "board: a member is there twice";
        }
        offset += block_heap_size(block_code(block, i));
    }
    return NULL;
}

bool board_validate(const struct board *board, const char **reason) {
    struct skiplist own;
    const struct skiplist *list = board_list(board, &own);
    if (!skiplist_validate(list, reason)) {
        return false;
    }
    const struct large_board *large = board->large;
    const char *wrong = NULL;
    if (board->is_large &&
        (large->list.is_dense != board->is_dense ||
         (board->is_dense && large->list.score_shift != board->layout->time.bits))) {
        wrong = "board: its list does not count scores as it should";
    } else if (board->is_large && large->board != board) {
        wrong = "board: its large part belongs to another one";
    } else if (board->is_large &&
               map_count(&large->map) != large->list.count + detach_count(&large->list)) {
        wrong = "board: the map does not hold every member and all that remains once";
    } else if (board->is_large && large->link != NULL && *large->link != board) {
        wrong = "board: it is not where it thinks in its chain";
    }
    for (uint32_t id = list->first; id != SKIPLIST_NONE && wrong == NULL;
         id = board_leaf(board, id)->links.next) {
        wrong = board_check_leaf(board, id);
    }
    return check_passed(wrong, reason) && (!board->is_large || (map_validate(&large->map, reason) &&
                                                                sheet_validate(list, reason)));
}
