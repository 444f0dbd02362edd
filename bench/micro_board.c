/* Micro benchmark of one board: nanoseconds per operation, one at a time and in groups of 16
 * through the staged prefetch, and bytes per member.
 *
 *     build/bench/micro_board [members ...]        default: 1000 10000 100000 1000000 10000000
 *
 * Members are user:000000123456 (17 bytes). Every size runs in a process of its own, so that the
 * resident memory is its own too. The best of ROUNDS rounds is printed: what disturbs a round only
 * makes it slower. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/micro.h"
#include "codec/memory.h"
#include "skiplist/lookup.h"

enum {
    GROUP = 16,
    ROUNDS = 5,
    OPERATIONS = 1 << 18,
    WALK = 100,
};

struct operation {
    uint64_t key;
    uint32_t rank;
    char member[MICRO_MEMBER_SIZE + 1];
};

static struct layout layout;
static struct operation *operations;
static struct random drawn = {.state = 7};
static volatile uint64_t sink; /* what was read, so that reading is not optimised away */

static uint64_t next_random(void) {
    return random_next(&drawn);
}

static size_t resident_size(void) {
    FILE *file = fopen("/proc/self/statm", "r");
    unsigned long total = 0;
    unsigned long resident = 0;
    if (file == NULL || fscanf(file, "%lu %lu", &total, &resident) != 2) {
        resident = 0;
    }
    if (file != NULL) {
        fclose(file);
    }
    return resident * (size_t)sysconf(_SC_PAGESIZE);
}

static struct bytes member_of(const struct operation *operation) {
    return (struct bytes){.at = operation->member, .size = MICRO_MEMBER_SIZE};
}

static void must_put(struct board *board, struct bytes member, uint64_t key) {
    if (board_put(board, member, key) != BOARD_OK) {
        fprintf(stderr, "micro_board: no memory\n");
        exit(1);
    }
}

static void draw_operations(uint32_t members) {
    for (int i = 0; i < OPERATIONS; i++) {
        operations[i].key = next_random() >> 20;
        operations[i].rank = (uint32_t)(next_random() % members);
        micro_write_member(operations[i].member, (uint32_t)(next_random() % members));
    }
}

/* ---- operations ---- */

typedef void run_one(struct board *board, const struct operation *operation);

static void run_move(struct board *board, const struct operation *operation) {
    must_put(board, member_of(operation), operation->key);
}

static void run_rank(struct board *board, const struct operation *operation) {
    struct board_member member;
    board_look_up(board, member_of(operation), NULL, &member);
    if (member.is_there) {
        sink += board_rank_of(board, &member) + member.key;
    }
}

static void run_find(struct board *board, const struct operation *operation) {
    uint64_t key = 0;
    if (board_find(board, member_of(operation), &key)) {
        sink += key;
    }
}

static void run_at(struct board *board, const struct operation *operation) {
    struct board_stored entry = board_at(board, operation->rank);
    sink += entry.key + (uint64_t)entry.member.at[0];
}

static void run_walk(struct board *board, const struct operation *operation) {
    struct board_cursor cursor;
    struct board_stored entry;
    board_cursor_seek(board, operation->rank, &cursor);
    for (int i = 0; i < WALK && board_cursor_read(&cursor, &entry); i++) {
        sink += entry.key + (uint64_t)entry.member.at[entry.member.size - 1];
        board_cursor_next(&cursor);
    }
}

static void run_none(struct board *board, const struct operation *operation) {
    (void)board;
    sink += operation->key;
}

static double time_single(struct board *board, run_one *run, int count) {
    double begin = micro_now_ns();
    for (int i = 0; i < count; i++) {
        run(board, &operations[i]);
    }
    return (micro_now_ns() - begin) / count;
}

static double time_groups(struct board *board, run_one *run, int count, bool is_change) {
    struct lookup states[GROUP];
    double begin = micro_now_ns();
    for (int i = 0; i + GROUP <= count; i += GROUP) {
        const struct operation *group = &operations[i];
        struct bytes names[GROUP];
        uint64_t keys[GROUP];
        for (int j = 0; j < GROUP; j++) {
            names[j] = member_of(&group[j]);
            keys[j] = group[j].key;
        }
        if (is_change) {
            lookup_members_to_put(board, names, 1, GROUP, keys, states);
        } else {
            lookup_members(board, names, 1, GROUP, states);
        }
        for (int j = 0; j < GROUP; j++) {
            run(board, &group[j]);
        }
    }
    return (micro_now_ns() - begin) / count;
}

static void measure(struct board *board, const char *name, run_one *run, int count, bool has_groups,
                    bool is_change) {
    double single = 1e18;
    double groups = 1e18;
    for (int round = 0; round < ROUNDS; round++) {
        draw_operations(board_count(board));
        double taken = time_single(board, run, count);
        single = taken < single ? taken : single;
        if (!has_groups) {
            continue;
        }
        draw_operations(board_count(board));
        taken = time_groups(board, run, count, is_change);
        groups = taken < groups ? taken : groups;
    }
    if (has_groups) {
        printf("  %-16s %8.1f ns   in groups of %d %8.1f ns\n", name, single, GROUP, groups);
    } else {
        printf("  %-16s %8.1f ns\n", name, single);
    }
}

/* ---- loading ---- */

enum order { ORDER_ASCENDING, ORDER_DESCENDING, ORDER_RANDOM };
static const char *const order_names[] = {"ascending", "descending", "random"};

static void load(struct board *board, uint32_t members, enum order order) {
    board_init(board, &layout, next_random());
    size_t before = resident_size();
    double taken = 0;
    for (uint32_t next = 0; next < members;) {
        uint32_t count = members - next < OPERATIONS ? members - next : OPERATIONS;
        for (uint32_t i = 0; i < count; i++) {
            uint32_t number = next + i;
            micro_write_member(operations[i].member, number);
            operations[i].key = order == ORDER_RANDOM      ? next_random() >> 20
                                : order == ORDER_ASCENDING ? number
                                                           : members - number;
        }
        double begin = micro_now_ns();
        for (uint32_t i = 0; i < count; i++) {
            must_put(board, member_of(&operations[i]), operations[i].key);
        }
        taken += micro_now_ns() - begin;
        next += count;
    }
    size_t resident = resident_size() - before;
    double overhead = (double)board_memory_size(board) / members - MICRO_MEMBER_SIZE;
    double resident_overhead = (double)resident / members - MICRO_MEMBER_SIZE;
    printf("  put new %-10s %6.1f ns   %5.1f B a member over its own, %5.1f B resident\n",
           order_names[order], taken / members, overhead, resident_overhead);
}

static void run_orders(uint32_t members) {
    printf("%" PRIu32 " members\n", members);
    for (enum order order = ORDER_ASCENDING; order <= ORDER_RANDOM; order++) {
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
            struct board own;
            struct board *board = &own;
            load(board, members, order);
            if (order == ORDER_RANDOM) {
                measure(board, "(loop alone)", run_none, OPERATIONS, false, false);
                measure(board, "find", run_find, OPERATIONS, true, false);
                measure(board, "rank", run_rank, OPERATIONS, true, false);
                measure(board, "at", run_at, OPERATIONS, false, false);
                measure(board, "walk 100", run_walk, OPERATIONS / 16, false, false);
                measure(board, "move", run_move, OPERATIONS, true, true);
                double overhead = (double)board_memory_size(board) / members - MICRO_MEMBER_SIZE;
                printf("  after the moves              %5.1f B a member over its own\n", overhead);
            }
            exit(0);
        }
        int status = 0;
        waitpid(child, &status, 0);
        if (status != 0) {
            exit(1);
        }
    }
}

int main(int argc, char **argv) {
    layout_init_default(&layout);
    operations = calloc(OPERATIONS, sizeof *operations);
    if (operations == NULL) {
        return 1;
    }
    /* Touched now, so that they are not counted as the board's memory. */
    memset(operations, 1, OPERATIONS * sizeof *operations);
    int result = micro_each_size(argc, argv, run_orders);
    free(operations);
    return result;
}
