/* Invariant: with more than one leaf there is a map, and it holds (hash of the member, id of its
 * leaf) for every entry, those of dead leaves too, and nothing else. With one leaf there may be a
 * map: it comes with the second leaf and goes only when half a leaf is left, so that a board on the
 * edge does not build it again and again.
 *
 * Remains of a removed range are dead leaves (skiplist/detach.c). The map still leads to them until
 * they are freed, so whoever comes from the map asks whether a leaf is alive; without remains that
 * is one comparison. A dead member may be added again: then the map leads to both. */
#include "skiplist/board.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "codec/memory.h"
#include "skiplist/map.h"
#include "skiplist/prefetch.h"
#include "skiplist/run.h"
#include "skiplist/skiplist.h"

struct board {
    const struct layout *layout;
    uint64_t hash_seed;
    struct map *map; /* a member_index; NULL: none */
    struct skiplist list;
};

/* What a board of more than one leaf has besides: small boards need not pay for it. */
struct member_index {
    struct map map;       /* first: board->map points to it */
    struct board *next;   /* in the chain of boards with remains */
    struct board **link;  /* what points to this board there; NULL: it is in none */
    uint32_t added_count; /* members added since additions last freed remains */
};

enum {
    /* Ranges below this go leaf by leaf at once: they take less than a cut does. */
    DETACH_MIN = 4 * BLOCK_ENTRIES_MAX,
    /* So many additions pay for freeing as many remains. */
    ADDED_MAX = BLOCK_ENTRIES_MAX,
    /* What freeing a segment of the map costs, and a step of shrinking it, in members. */
    SEGMENT_WORK = MAP_SEGMENT_BUCKETS / 8 + 1,
    SHRINK_WORK = 32,
    /* A scan step that meets only empty buckets ends all the same. As in Redis. */
    SCAN_STEPS_PER_MEMBER = 10,
};

_Static_assert((int)BLOCK_ENTRIES_MAX <= (int)MAP_HASHES_MAX, "a block's hashes fit map_hashes");

static uint64_t board_hash(const struct board *board, struct bytes member) {
    return XXH3_64bits_withSeed(member.at, member.size, board->hash_seed);
}

/* The block's tag: bits that neither the map's home bucket nor its tag is made of. */
static uint8_t hash_tag(uint64_t hash) {
    return (uint8_t)hash;
}

/* Hash count members of a block from index on. */
static void hash_members(const struct board *board, const struct block *block, uint32_t index,
                         uint32_t count, uint64_t *hashes) {
    uint32_t offset = block_offset(block, index);
    for (uint32_t i = 0; i < count; i++) {
        hashes[i] = board_hash(board, block_member(block, index + i, offset));
        offset += block_heap_size(block_len(block, index + i));
    }
}

/* The map asks for the hashes of one id. */
static uint32_t board_hashes(const void *owner, uint32_t id, uint64_t *hashes) {
    const struct board *board = owner;
    const struct block *block = skiplist_leaf(&board->list, id);
    if (block == NULL)
        return 0;
    hash_members(board, block, 0, block->count, hashes);
    return block->count;
}

/* The skiplist tells that entries lie in another leaf now. */
static void board_moved(void *owner, const struct block *block, uint32_t index, uint32_t count,
                        uint32_t from, uint32_t to) {
    struct board *board = owner;
    uint64_t hashes[BLOCK_ENTRIES_MAX];
    hash_members(board, block, index, count, hashes);
    /* Every entry's bucket is another cache miss; all are under way before the first is needed. */
    for (uint32_t i = 0; i < count; i++)
        map_prefetch(board->map, hashes[i]);
    for (uint32_t i = 0; i < count; i++)
        map_replace(board->map, hashes[i], from, to);
}

static struct skiplist_owner board_owner(struct board *board) {
    return (struct skiplist_owner){.moved = board_moved, .owner = board};
}

struct board *board_create(const struct layout *layout, uint64_t hash_seed) {
    struct board *board = memory_allocate(sizeof *board);
    if (board == NULL)
        return NULL;
    board->layout = layout;
    board->hash_seed = hash_seed;
    board->map = NULL;
    skiplist_init(&board->list, layout->time.bits > 0 && layout->time.is_latest);
    return board;
}

static struct member_index *index_of(const struct board *board) {
    return (struct member_index *)(void *)board->map;
}

static void leave_chain(struct board *board) {
    struct member_index *index = index_of(board);
    if (index == NULL || index->link == NULL)
        return;
    *index->link = index->next;
    if (index->next != NULL)
        index_of(index->next)->link = index->link;
    index->link = NULL;
}

static void drop_map(struct board *board) {
    leave_chain(board);
    map_deinit(board->map);
    memory_free(board->map);
    board->map = NULL;
}

void board_destroy(struct board *board) {
    if (board == NULL)
        return;
    while (!board_destroy_step(board, UINT32_MAX))
        continue;
}

bool board_destroy_step(struct board *board, uint32_t work_max) {
    leave_chain(board);
    for (uint32_t work = 0; board->map != NULL; work += SEGMENT_WORK) {
        if (work >= work_max)
            return false;
        if (map_deinit_step(board->map))
            drop_map(board);
    }
    if (!skiplist_deinit_step(&board->list, work_max))
        return false;
    memory_free(board);
    return true;
}

static struct map *create_map(const struct board *board) {
    struct member_index *index = memory_allocate(sizeof *index);
    if (index == NULL)
        return NULL;
    map_init(&index->map, board_hashes, board);
    index->next = NULL;
    index->link = NULL;
    index->added_count = 0;
    return &index->map;
}

/* Index all members of a board that has no entry in its map yet. false: no memory. */
static bool fill_map(struct board *board) {
    const struct skiplist *list = &board->list;
    uint64_t hashes[BLOCK_ENTRIES_MAX];
    if (!map_reserve(board->map, list->count, list->node_end))
        return false;
    const struct block *block;
    for (uint32_t id = list->first; id != SKIPLIST_NONE; id = block->links.next) {
        block = skiplist_leaf(list, id);
        hash_members(board, block, 0, block->count, hashes);
        for (uint32_t i = 0; i < block->count; i++)
            map_put(board->map, hashes[i], id);
    }
    return true;
}

struct board *board_copy(const struct board *board) {
    struct board *copy = board_create(board->layout, board->hash_seed);
    if (copy == NULL)
        return NULL;
    if (!skiplist_copy(&board->list, &copy->list))
        goto no_memory;
    if (board->map != NULL) {
        copy->map = create_map(copy);
        if (copy->map == NULL)
            goto no_memory;
        /* The copy has no remains, so its map must not have them either. */
        if (!(board_has_remains(board) ? fill_map(copy) : map_copy(board->map, copy->map)))
            goto no_memory;
    }
    return copy;

no_memory:
    board_destroy(copy);
    return NULL;
}

const struct layout *board_layout(const struct board *board) {
    return board->layout;
}

uint32_t board_count(const struct board *board) {
    return board->list.count;
}

size_t board_memory_size(const struct board *board) {
    size_t size = memory_size(board) + board->list.memory_size;
    if (board->map != NULL)
        size += memory_size(board->map) + map_memory_size(board->map);
    return size;
}

/* ---- looking up ---- */

/* A member that was looked up. */
struct found {
    struct skiplist_place place;
    uint32_t offset; /* of its bytes in the leaf */
    const struct block *block;
};

static bool find_in_leaf(const struct board *board, uint32_t id, struct bytes member, uint64_t hash,
                         struct found *found) {
    found->block = skiplist_leaf(&board->list, id);
    found->place.leaf = id;
    return found->block != NULL &&
           block_find(found->block, hash_tag(hash), member, &found->place.index, &found->offset);
}

static bool is_alive(const struct board *board, uint32_t id) {
    return !skiplist_has_dead(&board->list) || skiplist_is_alive(&board->list, id);
}

/* The same as board_locate where there are remains: on its own, or looking up would be slower where
 * there are none. */
__attribute__((noinline)) static bool locate_living(const struct board *board, struct bytes member,
                                                    uint64_t hash, struct found *found) {
    struct map_find find;
    uint32_t id;
    map_find(board->map, hash, &find);
    while (map_find_next(&find, &id))
        if (find_in_leaf(board, id, member, hash, found) && is_alive(board, id))
            return true;
    return false;
}

static bool board_locate(const struct board *board, struct bytes member, uint64_t hash,
                         struct found *found) {
    if (board->map == NULL)
        return find_in_leaf(board, board->list.root, member, hash, found);
    if (skiplist_has_dead(&board->list))
        return locate_living(board, member, hash, found);
    struct map_find find;
    uint32_t id;
    map_find(board->map, hash, &find);
    while (map_find_next(&find, &id))
        if (find_in_leaf(board, id, member, hash, found))
            return true;
    return false;
}

bool board_find(const struct board *board, struct bytes member, uint64_t *key) {
    struct found found;
    if (!board_locate(board, member, board_hash(board, member), &found))
        return false;
    *key = block_keys(found.block)[found.place.index];
    return true;
}

/* Is the member where prefetching has seen it? */
static bool find_ahead(const struct board *board, const struct board_prefetch *ahead,
                       struct found *found) {
    found->block = skiplist_leaf(&board->list, ahead->block);
    found->place = (struct skiplist_place){.leaf = ahead->block, .index = ahead->index};
    return found->block != NULL && !skiplist_has_dead(&board->list) &&
           block_has(found->block, ahead->index, hash_tag(ahead->hash), ahead->member,
                     &found->offset);
}

static void note_found(struct board_member *member, const struct found *found) {
    member->is_there = true;
    member->key = block_keys(found->block)[found->place.index];
    member->leaf = found->place.leaf;
    member->index = found->place.index;
    member->offset = found->offset;
}

static bool is_for(const struct board_prefetch *ahead, const struct board *board,
                   struct bytes name) {
    return ahead->board == board && ahead->member.at == name.at && ahead->member.size == name.size;
}

void board_look_up(const struct board *board, struct bytes name, const struct board_prefetch *ahead,
                   struct board_member *member) {
    struct found found;
    *member = (struct board_member){.name = name, .target = SKIPLIST_NONE};
    if (ahead != NULL && is_for(ahead, board, name)) {
        member->hash = ahead->hash;
        member->target = ahead->target;
        if (find_ahead(board, ahead, &found)) {
            note_found(member, &found);
            return;
        }
    } else {
        member->hash = board_hash(board, name);
    }
    if (board_locate(board, name, member->hash, &found))
        note_found(member, &found);
}

uint32_t board_rank_of(const struct board *board, const struct board_member *member) {
    return skiplist_rank(&board->list,
                         (struct skiplist_place){.leaf = member->leaf, .index = member->index});
}

bool board_rank(const struct board *board, struct bytes name, uint32_t *rank, uint64_t *key) {
    struct board_member member;
    board_look_up(board, name, NULL, &member);
    if (!member.is_there)
        return false;
    *rank = board_rank_of(board, &member);
    *key = member.key;
    return true;
}

/* ---- changing ---- */

enum {
    /* More than the blocks that one insertion makes or grows, on average. */
    PUT_BLOCK_BYTES = 1024,
};

size_t board_growth_size(const struct board *board, uint32_t count) {
    /* Each insertion makes at most one leaf; index blocks are fewer than leaves. */
    uint32_t block_count = count < BOARD_MEMBERS_MAX / 4 ? count * 2 + SKIPLIST_LEVELS_MAX : count;
    size_t size = (size_t)count * PUT_BLOCK_BYTES + skiplist_growth_size(&board->list, block_count);
    uint32_t id_end = board->list.node_end + block_count;
    if (board->map != NULL)
        return size + map_growth_size(board->map, count, id_end);
    struct map empty;
    map_init(&empty, NULL, NULL);
    return size + sizeof empty + map_growth_size(&empty, board_count(board) + count, id_end);
}

/* The second leaf is to come: index the members of the first. */
static bool begin_map(struct board *board, uint32_t id_end) {
    uint64_t hashes[BLOCK_ENTRIES_MAX];
    uint32_t id = board->list.root;
    struct map *map = create_map(board);
    if (map == NULL)
        return false;
    if (!map_reserve(map, board->list.count + 1, id_end)) {
        memory_free(map);
        return false;
    }
    uint32_t count = board_hashes(board, id, hashes);
    for (uint32_t i = 0; i < count; i++)
        map_put(map, hashes[i], id);
    board->map = map;
    return true;
}

static bool reserve_map(struct board *board, const struct skiplist_plan *plan, uint32_t count) {
    uint32_t id_end = skiplist_id_end(&board->list, plan);
    if (board->map != NULL)
        return map_reserve(board->map, count, id_end);
    return !skiplist_adds_leaf(plan) || begin_map(board, id_end);
}

/* Reserve everything for an insertion that adds count entries to the map. */
static bool board_reserve(struct board *board, struct skiplist_place place, uint8_t len,
                          uint32_t count, struct skiplist_plan *plan) {
    if (!skiplist_reserve(&board->list, place, len, plan))
        return false;
    if (reserve_map(board, plan, count))
        return true;
    skiplist_unreserve(&board->list, plan);
    return false;
}

/* Free the dead leaf that comes first. Returns how many entries it had. */
static uint32_t free_dead_leaf(struct board *board, uint32_t id) {
    uint64_t hashes[BLOCK_ENTRIES_MAX];
    uint32_t count = board_hashes(board, id, hashes);
    for (uint32_t i = 0; i < count; i++)
        map_prefetch(board->map, hashes[i]);
    for (uint32_t i = 0; i < count; i++)
        map_remove(board->map, hashes[i], id);
    skiplist_free_dead_leaf(&board->list);
    return count;
}

/* Free remains of about work_max entries. Returns how many it were. */
static uint32_t free_dead(struct board *board, uint32_t work_max) {
    uint32_t work = 0;
    uint32_t id;
    while (work < work_max && (id = skiplist_dead_leaf(&board->list)) != SKIPLIST_NONE)
        work += free_dead_leaf(board, id);
    return work;
}

/* A member has been added while there are remains. Were they freed in the host's spare time only,
 * a board that is emptied and filled again all the time could outgrow it. */
static void free_for_addition(struct board *board) {
    struct member_index *index = index_of(board);
    if (++index->added_count < ADDED_MAX)
        return;
    index->added_count = 0;
    (void)free_dead(board, ADDED_MAX);
}

/* Does the key belong between two of the leaf's? Then no other leaf can take it. */
static bool belongs_inside(const struct block *block, uint64_t key) {
    const uint64_t *keys = block_keys(block);
    return keys[0] > key && key > keys[block->count - 1];
}

static struct skiplist_place place_inside(const struct skiplist *list, uint32_t id, uint64_t key) {
    const struct block *block = skiplist_leaf(list, id);
    return (struct skiplist_place){
        .leaf = id,
        .index = block_keys_above(block_keys(block), block->count, key, !list->is_latest),
    };
}

/* Where the key belongs: in the leaf that was found ahead, or from the root down. */
static struct skiplist_place board_place_for(const struct board *board, uint32_t target,
                                             uint64_t key) {
    const struct skiplist *list = &board->list;
    const struct block *block = skiplist_leaf(list, target);
    if (block != NULL && belongs_inside(block, key) && !skiplist_has_dead(list))
        return place_inside(list, target, key);
    return skiplist_place_for(list, key);
}

static enum board_status board_add(struct board *board, const struct board_member *added,
                                   uint64_t key) {
    struct bytes member = added->name;
    uint64_t hash = added->hash;
    if (board->list.count == BOARD_MEMBERS_MAX)
        return BOARD_FULL;
    char long_bytes[BLOCK_LONG_SIZE];
    struct block_entry entry = {
        .key = key,
        .at = member.at,
        .tag = hash_tag(hash),
        .len = block_len_of(member.size),
    };
    if (entry.len == BLOCK_LEN_LONG) {
        if (!block_long_create(member, long_bytes))
            return BOARD_OUT_OF_MEMORY;
        entry.at = long_bytes;
    }
    struct skiplist_place place = board_place_for(board, added->target, key);
    struct skiplist_plan plan;
    if (!board_reserve(board, place, entry.len, 1, &plan)) {
        if (entry.len == BLOCK_LEN_LONG)
            block_long_destroy(long_bytes);
        return BOARD_OUT_OF_MEMORY;
    }
    uint32_t id = skiplist_insert(&board->list, &plan, &entry, board_owner(board));
    if (board->map != NULL)
        map_put(board->map, hash, id);
    if (skiplist_has_dead(&board->list))
        free_for_addition(board);
    return BOARD_OK;
}

/* Where the key belongs. After a small change of score it is mostly the leaf where the member is,
 * or the one beside it; then there is no need to come down from the root. */
static struct skiplist_place board_place_near(const struct board *board, const struct found *found,
                                              uint32_t target, uint64_t key) {
    const struct skiplist *list = &board->list;
    const struct block *block = found->block;
    if (belongs_inside(block, key))
        return place_inside(list, found->place.leaf, key);
    bool is_better = key > block_keys(block)[0];
    uint32_t beside = is_better ? block->links.previous : block->links.next;
    if (target == SKIPLIST_NONE && beside != SKIPLIST_NONE)
        target = beside;
    return board_place_for(board, target, key);
}

static enum board_status board_move(struct board *board, const struct found *found,
                                    const struct board_member *member, uint64_t key) {
    struct skiplist_place from = found->place;
    struct skiplist_place to = board_place_near(board, found, member->target, key);
    if (to.leaf == from.leaf) {
        skiplist_shift(&board->list, from, to.index, key);
        return BOARD_OK;
    }
    /* Insert the new entry first, straight from the old one, which no insertion into another leaf
     * disturbs: until then nothing has changed, and a want of memory costs nothing. */
    struct block_entry entry = block_get(found->block, from.index, found->offset);
    entry.key = key;
    struct skiplist_plan plan;
    if (!board_reserve(board, to, entry.len, 0, &plan))
        return BOARD_OUT_OF_MEMORY;
    uint32_t id = skiplist_insert(&board->list, &plan, &entry, board_owner(board));
    map_replace(board->map, member->hash, from.leaf, id);
    skiplist_remove(&board->list, from, 1, true, board_owner(board));
    return BOARD_OK;
}

enum board_status board_put_member(struct board *board, const struct board_member *member,
                                   uint64_t key) {
    if (!member->is_there)
        return board_add(board, member, key);
    struct found found = {
        .place = {.leaf = member->leaf, .index = member->index},
        .offset = member->offset,
        .block = skiplist_leaf(&board->list, member->leaf),
    };
    return board_move(board, &found, member, key);
}

enum board_status board_put(struct board *board, struct bytes name, uint64_t key) {
    CHECK(name.size >= 1);
    CHECK(name.size <= BOARD_MEMBER_MAX);
    struct board_member member;
    board_look_up(board, name, NULL, &member);
    return board_put_member(board, &member, key);
}

/* After removals. */
static void settle_map(struct board *board) {
    const struct skiplist *list = &board->list;
    if (board->map == NULL)
        return;
    bool is_needed = list->first != list->last || list->count > BLOCK_ENTRIES_MAX / 2;
    if (is_needed || skiplist_has_dead(list) || !map_is_small(board->map))
        map_step(board->map);
    else
        drop_map(board);
}

void board_remove_member(struct board *board, const struct board_member *member) {
    struct skiplist_place place = {.leaf = member->leaf, .index = member->index};
    if (board->map != NULL)
        map_remove(board->map, member->hash, place.leaf);
    skiplist_remove(&board->list, place, 1, false, board_owner(board));
    settle_map(board);
}

bool board_remove(struct board *board, struct bytes name) {
    struct board_member member;
    board_look_up(board, name, NULL, &member);
    if (member.is_there)
        board_remove_member(board, &member);
    return member.is_there;
}

/* Take entries of one leaf out of the map. */
static void unmap(struct board *board, struct skiplist_place place, uint32_t count) {
    uint64_t hashes[BLOCK_ENTRIES_MAX];
    if (board->map == NULL)
        return;
    const struct block *block = skiplist_leaf(&board->list, place.leaf);
    hash_members(board, block, place.index, count, hashes);
    for (uint32_t i = 0; i < count; i++)
        map_prefetch(board->map, hashes[i]);
    for (uint32_t i = 0; i < count; i++)
        map_remove(board->map, hashes[i], place.leaf);
}

/* Remove a range whole leaves at a time, to be freed later; what it has of the leaves at its ends
 * goes at once. There is a map. */
static void detach_range(struct board *board, uint32_t rank, uint32_t count) {
    struct skiplist *list = &board->list;
    struct skiplist_place begin = skiplist_at(list, rank);
    if (begin.index > 0) {
        uint32_t part = skiplist_leaf(list, begin.leaf)->count - begin.index;
        unmap(board, begin, part);
        skiplist_cut(list, begin, part);
        count -= part;
    }
    struct skiplist_place end = skiplist_at(list, rank + count - 1);
    if (end.index + 1U < skiplist_leaf(list, end.leaf)->count) {
        uint32_t part = end.index + 1;
        end.index = 0;
        unmap(board, end, part);
        skiplist_cut(list, end, part);
        count -= part;
    }
    skiplist_detach(list, rank, count);
    skiplist_join(list, rank, board_owner(board));
}

void board_remove_range(struct board *board, uint32_t rank, uint32_t count) {
    CHECK(rank <= board->list.count);
    CHECK(count <= board->list.count - rank);
    if (count >= DETACH_MIN) {
        detach_range(board, rank, count);
        settle_map(board);
        return;
    }
    while (count > 0) {
        struct skiplist_place place = skiplist_at(&board->list, rank);
        uint32_t here = skiplist_leaf(&board->list, place.leaf)->count - place.index;
        uint32_t run = here < count ? here : count;
        unmap(board, place, run);
        skiplist_remove(&board->list, place, run, false, board_owner(board));
        settle_map(board);
        count -= run;
    }
}

bool board_has_remains(const struct board *board) {
    return skiplist_has_dead(&board->list);
}

bool board_free_step(struct board *board, uint32_t work_max) {
    uint32_t work = free_dead(board, work_max);
    while (!skiplist_has_dead(&board->list)) {
        settle_map(board);
        if (board->map == NULL || !map_is_unfinished(board->map)) {
            leave_chain(board);
            return true;
        }
        if (work >= work_max)
            break;
        work += SHRINK_WORK;
    }
    return false;
}

void board_chain_put(struct board_chain *chain, struct board *board) {
    struct member_index *index = index_of(board);
    if (!board_has_remains(board) || index->link != NULL)
        return;
    index->next = chain->first;
    index->link = &chain->first;
    if (index->next != NULL)
        index_of(index->next)->link = &index->next;
    chain->first = board;
}

/* ---- ranges ---- */

/* Most limits asked for are open: they lie beyond every key. */
static bool is_above_all(const struct board *board, uint64_t key) {
    const struct block *first = skiplist_leaf(&board->list, board->list.first);
    return first == NULL || key > block_keys(first)[0];
}

static bool is_below_all(const struct board *board, uint64_t key) {
    const struct block *last = skiplist_leaf(&board->list, board->list.last);
    return last == NULL || key < block_keys(last)[last->count - 1];
}

uint32_t board_count_above(const struct board *board, uint64_t key) {
    if (is_above_all(board, key))
        return 0;
    if (is_below_all(board, key))
        return board->list.count;
    return skiplist_rank(&board->list, skiplist_place_above(&board->list, key, false));
}

uint32_t board_count_from(const struct board *board, uint64_t key) {
    if (is_above_all(board, key))
        return 0;
    if (is_below_all(board, key))
        return board->list.count;
    return skiplist_rank(&board->list, skiplist_place_above(&board->list, key, true));
}

static struct board_entry entry_at(const struct block *block, uint32_t index, uint32_t offset) {
    return (struct board_entry){
        .key = block_keys(block)[index],
        .member = block_member(block, index, offset),
    };
}

struct board_entry board_at(const struct board *board, uint32_t rank) {
    struct skiplist_place place = skiplist_at(&board->list, rank);
    const struct block *block = skiplist_leaf(&board->list, place.leaf);
    return entry_at(block, place.index, block_offset(block, place.index));
}

/* While a walk is in one block, fetch the next one. First its node, then, some entries later, the
 * first lines of the block; once reading has begun, the processor sees the pattern itself. */
static void fetch_nodes(const struct board_cursor *cursor) {
    const struct block *block = cursor->block;
    if (block == NULL)
        return;
    if (block->links.next != SKIPLIST_NONE)
        prefetch_line(skiplist_node(&cursor->board->list, block->links.next));
    if (block->links.previous != SKIPLIST_NONE)
        prefetch_line(skiplist_node(&cursor->board->list, block->links.previous));
}

static void fetch_ahead(const struct board_cursor *cursor, uint32_t id) {
    if (cursor->index % 8 == 4) {
        const struct block *ahead = skiplist_leaf(&cursor->board->list, id);
        if (ahead != NULL)
            prefetch_lines(ahead, sizeof *ahead + 10 * BLOCK_ENTRIES_MAX);
    }
}

void board_seek(const struct board *board, uint32_t rank, struct board_cursor *cursor) {
    *cursor = (struct board_cursor){.board = board};
    if (rank >= board->list.count)
        return;
    struct skiplist_place place = skiplist_at(&board->list, rank);
    const struct block *block = skiplist_leaf(&board->list, place.leaf);
    cursor->block = block;
    cursor->index = place.index;
    cursor->member_offset = place.index > 0 ? block_offset(block, place.index) : 0;
    fetch_nodes(cursor);
}

bool board_cursor_read(const struct board_cursor *cursor, struct board_entry *entry) {
    if (cursor->block == NULL)
        return false;
    *entry = entry_at(cursor->block, cursor->index, cursor->member_offset);
    return true;
}

void board_cursor_next(struct board_cursor *cursor) {
    const struct block *block = cursor->block;
    if (block == NULL)
        return;
    cursor->member_offset += block_heap_size(block_len(block, cursor->index));
    if (++cursor->index < block->count) {
        fetch_ahead(cursor, block->links.next);
        return;
    }
    cursor->block = skiplist_leaf(&cursor->board->list, block->links.next);
    cursor->index = 0;
    cursor->member_offset = 0;
    fetch_nodes(cursor);
}

void board_cursor_previous(struct board_cursor *cursor) {
    const struct block *block = cursor->block;
    if (block == NULL)
        return;
    if (cursor->index == 0) {
        block = skiplist_leaf(&cursor->board->list, block->links.previous);
        cursor->block = block;
        if (block == NULL)
            return;
        cursor->index = block->count;
        cursor->member_offset = block->heap_used;
        fetch_nodes(cursor);
    }
    cursor->index--;
    cursor->member_offset -= block_heap_size(block_len(block, cursor->index));
    fetch_ahead(cursor, block->links.previous);
}

/* The cursor has come to a block by a run, and has not looked into it yet; or to an entry, whose
 * offset nobody may ever ask for. */
#define CURSOR_AT_EDGE UINT32_MAX
#define OFFSET_UNKNOWN UINT32_MAX

static void settle_cursor(struct board_cursor *cursor, bool is_best_first) {
    const struct block *block = cursor->block;
    if (cursor->index == CURSOR_AT_EDGE) {
        cursor->index = is_best_first ? 0 : block->count - 1U;
        cursor->member_offset = is_best_first ? 0 : OFFSET_UNKNOWN;
    }
    if (cursor->member_offset == OFFSET_UNKNOWN)
        cursor->member_offset = block_offset(block, cursor->index);
}

/* Take the cursor to the block with this id, and fetch that without waiting for it. */
static void leave_block(struct board_cursor *cursor, uint32_t id) {
    const struct block *block = skiplist_leaf(&cursor->board->list, id);
    cursor->block = block;
    cursor->index = CURSOR_AT_EDGE;
    if (block != NULL)
        prefetch_lines(block, sizeof *block + 10 * BLOCK_ENTRIES_MAX);
}

bool board_cursor_run(struct board_cursor *cursor, bool is_best_first, uint32_t count_max,
                      struct board_run *run) {
    const struct block *block = cursor->block;
    if (block == NULL)
        return false;
    settle_cursor(cursor, is_best_first);
    uint32_t ahead = is_best_first ? block->links.next : block->links.previous;
    uint32_t here = is_best_first ? block->count - cursor->index : cursor->index + 1;
    uint32_t count = here < count_max ? here : count_max;
    if (count > BOARD_RUN_MAX)
        count = BOARD_RUN_MAX;
    /* Backwards a walk stands behind its next entry. */
    uint32_t index = is_best_first ? cursor->index : cursor->index + 1;
    uint32_t last_size = is_best_first ? 0 : block_heap_size(block_len(block, cursor->index));
    *run = (struct board_run){
        .marks = block_marks(block) + index,
        .keys = block_keys(block) + index,
        .members = block_heap(block) + cursor->member_offset + last_size,
        .count = count,
        .is_best_first = is_best_first,
    };
    if (count == here) {
        leave_block(cursor, ahead);
        return true;
    }
    cursor->index = is_best_first ? cursor->index + count : cursor->index - count;
    cursor->member_offset = OFFSET_UNKNOWN;
    if (ahead != SKIPLIST_NONE)
        prefetch_line(skiplist_node(&cursor->board->list, ahead));
    return true;
}

/* ---- scanning ---- */

struct scan {
    const struct board *board;
    uint64_t from; /* upper halves of hashes: from .. end - 1 */
    uint64_t end;
    uint32_t visited;
    board_visit *visit;
    void *context;
};

static void scan_leaf(void *context, uint32_t id) {
    struct scan *scan = context;
    const struct block *block = skiplist_leaf(&scan->board->list, id);
    uint64_t hashes[BLOCK_ENTRIES_MAX];
    if (block == NULL || !is_alive(scan->board, id))
        return;
    hash_members(scan->board, block, 0, block->count, hashes);
    uint32_t offset = 0;
    for (uint32_t i = 0; i < block->count; i++) {
        uint64_t prefix = hashes[i] >> 32;
        if (prefix >= scan->from && prefix < scan->end) {
            struct board_entry entry = entry_at(block, i, offset);
            scan->visit(scan->context, &entry);
            scan->visited++;
        }
        offset += block_heap_size(block_len(block, i));
    }
}

uint64_t board_scan(const struct board *board, uint64_t cursor, uint32_t count, board_visit *visit,
                    void *context) {
    const uint64_t over = UINT64_C(1) << 32;
    struct scan scan = {
        .board = board, .from = cursor, .end = over, .visit = visit, .context = context};
    if (cursor >= over)
        return 0;
    if (board->map == NULL) {
        scan_leaf(&scan, board->list.root);
        return 0;
    }
    uint64_t steps_left = (count + UINT64_C(1)) * SCAN_STEPS_PER_MEMBER;
    while (scan.from < over && steps_left-- > 0) {
        map_scan(board->map, (uint32_t)scan.from, &scan.end, scan_leaf, &scan);
        scan.from = scan.end;
        if (scan.visited >= count)
            break;
    }
    return scan.from < over ? scan.from : 0;
}

/* ---- prefetching ---- */

void board_prefetch_slots(const struct board *board, struct bytes member,
                          struct board_prefetch *state) {
    state->board = board;
    state->hash = board_hash(board, member);
    state->member = member;
    state->block = SKIPLIST_NONE;
    state->index = SKIPLIST_NONE;
    state->target = SKIPLIST_NONE;
    if (board->map != NULL)
        map_prefetch(board->map, state->hash);
}

void board_prefetch_descriptor(struct board_prefetch *state) {
    const struct board *board = state->board;
    struct map_find find;
    if (board->map == NULL) {
        state->block = board->list.root;
        return;
    }
    map_find(board->map, state->hash, &find);
    if (!map_find_next(&find, &state->block)) {
        state->block = SKIPLIST_NONE;
        return;
    }
    prefetch_line(skiplist_node(&board->list, state->block));
}

void board_prefetch_block(const struct board_prefetch *state) {
    if (state->block < state->board->list.node_end)
        skiplist_prefetch_leaf(&state->board->list, state->block);
}

void board_prefetch_entry(struct board_prefetch *state, bool is_change) {
    if (!skiplist_prefetch_entry(&state->board->list, state->block, hash_tag(state->hash),
                                 state->member.size, is_change, &state->index))
        state->index = SKIPLIST_NONE;
}

void board_prefetch_key(const struct board *board, uint64_t key) {
    skiplist_prefetch_place(&board->list, key);
}

void board_prefetch_way(const struct board *board, uint64_t key, struct board_way *way) {
    *way = (struct board_way){board, key, skiplist_prefetch_way(&board->list, key)};
}

void board_prefetch_way_index(const struct board_way *way) {
    skiplist_prefetch_way_index(&way->board->list, way->block);
}

void board_prefetch_way_leaf(struct board_way *way) {
    way->block = skiplist_prefetch_way_leaf(&way->board->list, way->block, way->key);
}

void board_prefetch_way_end(const struct board_way *way) {
    skiplist_prefetch_way_end(&way->board->list, way->block, way->key);
}

/* ---- checking ---- */

/* Tags, and that every member is found where it is (so there is no other one like it). */
static const char *check_leaf(const struct board *board, uint32_t id) {
    const struct block *block = skiplist_leaf(&board->list, id);
    uint64_t hashes[BLOCK_ENTRIES_MAX];
    hash_members(board, block, 0, block->count, hashes);
    uint32_t offset = 0;
    for (uint32_t i = 0; i < block->count; i++) {
        struct found found;
        if (block_tag(block, i) != hash_tag(hashes[i]))
            return "board: a tag is not the member's";
        if (!board_locate(board, block_member(block, i, offset), hashes[i], &found))
            return "board: a member is not found";
        if (found.place.leaf != id || found.place.index != i)
            return "board: a member is there twice";
        offset += block_heap_size(block_len(block, i));
    }
    return NULL;
}

static const char *board_check(const struct board *board) {
    const struct skiplist *list = &board->list;
    if (board->map == NULL && list->first != list->last)
        return "board: two leaves and no map";
    if (board->map == NULL && skiplist_has_dead(list))
        return "board: remains and no map";
    if (board->map != NULL && map_count(board->map) != list->count + skiplist_count_dead(list))
        return "board: the map does not hold every member and all that remains once";
    if (board->map != NULL && index_of(board)->link != NULL && *index_of(board)->link != board)
        return "board: it is not where it thinks in its chain";
    const char *wrong = NULL;
    for (uint32_t id = list->first; id != SKIPLIST_NONE && wrong == NULL;
         id = skiplist_leaf(list, id)->links.next)
        wrong = check_leaf(board, id);
    return wrong;
}

bool board_validate(const struct board *board, const char **reason) {
    if (!skiplist_validate(&board->list, reason))
        return false;
    const char *wrong = board_check(board);
    if (wrong != NULL)
        *reason = wrong;
    return wrong == NULL && (board->map == NULL || map_validate(board->map, reason));
}
