/* Micro benchmark of the block skiplist alone, without an index of members: nanoseconds per
 * operation, and bytes per entry.
 *
 *     build/bench/micro_skiplist [entries ...]     default: 1000 10000 100000 1000000 10000000
 *
 * Entries have random keys and 17-byte members; or, in the second line of a size, all the same key:
 * a run of equals must be as fast as any other. The best of ROUNDS rounds is printed. */
#include <inttypes.h>

#include "bench/micro.h"
#include "codec/memory.h"
#include "skiplist/skiplist.h"

enum {
    ROUNDS = 5,
    OPERATIONS = 1 << 18,
};

static const char member[] = "user:000000123456";
static struct random drawn = {.state = 7};
static volatile uint64_t sink; /* what was read, so that reading is not optimised away */

static void moved(void *owner, const struct block *block, uint32_t index, uint32_t count,
                  uint32_t from, uint32_t to) {
    (void)owner, (void)block, (void)index, (void)count, (void)from, (void)to;
}

static const struct skiplist_owner nobody = {.moved = moved};

static void insert(struct skiplist *list, uint64_t key) {
    struct block_entry entry = {
        .key = key, .at = member, .tag = (uint8_t)key, .code = sizeof(member) - 1};
    struct skiplist_plan plan;
    if (!skiplist_reserve(list, skiplist_place_for(list, key), entry.code, &plan)) {
        fprintf(stderr, "micro_skiplist: no memory\n");
        exit(1);
    }
    skiplist_insert(list, &plan, &entry, nobody);
}

static uint32_t random_rank(const struct skiplist *list) {
    return (uint32_t)(random_next(&drawn) % list->count);
}

static void run_at(struct skiplist *list) {
    sink += skiplist_at(list, random_rank(list)).leaf;
}

static void run_at_and_rank(struct skiplist *list) {
    sink += skiplist_rank(list, skiplist_at(list, random_rank(list)));
}

static void run_above(struct skiplist *list) {
    uint64_t key = random_next(&drawn) >> 20;
    sink += skiplist_rank(list, skiplist_place_above(list, key, false));
}

static void run_remove_insert(struct skiplist *list) {
    struct skiplist_place place = skiplist_at(list, random_rank(list));
    uint64_t key = block_keys(skiplist_leaf(list, place.leaf))[place.index];
    skiplist_remove(list, place, 1, nobody);
    insert(list, key);
}

static double best_of(struct skiplist *list, void (*run)(struct skiplist *list)) {
    double best = 1e18;
    for (int round = 0; round < ROUNDS; round++) {
        double begin = micro_now_ns();
        for (int i = 0; i < OPERATIONS; i++) {
            run(list);
        }
        double taken = (micro_now_ns() - begin) / OPERATIONS;
        best = taken < best ? taken : best;
    }
    return best;
}

static void run(uint32_t entries, bool is_equal) {
    struct skiplist list;
    skiplist_init(&list, false);
    double begin = micro_now_ns();
    for (uint32_t i = 0; i < entries; i++) {
        insert(&list, is_equal ? 100 : random_next(&drawn) >> 20);
    }
    printf("%10" PRIu32 " entries, %s keys: insert %6.1f ns", entries,
           is_equal ? " equal" : "random", (micro_now_ns() - begin) / entries);
    printf(", at %6.1f ns", best_of(&list, run_at));
    printf(", at and rank %6.1f ns", best_of(&list, run_at_and_rank));
    printf(", rank of a key %6.1f ns", best_of(&list, run_above));
    printf(", remove and insert %6.1f ns", best_of(&list, run_remove_insert));
    printf(", %5.1f B an entry beside its member\n",
           (double)list.memory_size / entries - (double)(sizeof(member) - 1));
    skiplist_deinit(&list);
}

static void run_keys(uint32_t entries) {
    run(entries, false);
    run(entries, true);
}

int main(int argc, char **argv) {
    return micro_each_size(argc, argv, run_keys);
}
