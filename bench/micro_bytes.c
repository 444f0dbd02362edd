/* Where the bytes of a board are: bytes a member by part, for several kinds of names, loaded in
 * order, in random order, and after two random updates a member.
 *
 *     build/bench/micro_bytes [members ...]        default: 5000000
 *
 * Every board is in a process of its own, with the server's allocator, so that the resident memory
 * is its own, too. The parts that are counted one by one must add up to what the board says it
 * holds. As many members again are in boards of ten, of which the bytes a board are printed. Prints tables
 * in Markdown. */
#include <inttypes.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/names.h"
#include "codec/memory.h"
#include "skiplist/index.h"
#include "skiplist/keyspace/registry.h"
#include "skiplist/large_board.h"

enum part {
    PART_NAMES,
    PART_KEYS,
    PART_MARKS,
    PART_HEADERS,
    PART_LEAF_ROOM,
    PART_LEAF_ROUNDING,
    PART_INDEX,
    PART_INDEX_ROOM,
    PART_NODES,
    PART_NODES_ROOM,
    PART_MAP,
    PART_MAP_ROOM,
    PART_BOARD,
    PART_PIECES,
    PART_FREE,
    PARTS,
};

static const char *const part_titles[PARTS] = {
    [PART_NAMES] = "names",
    [PART_KEYS] = "keys",
    [PART_MARKS] = "marks",
    [PART_HEADERS] = "headers of blocks",
    [PART_LEAF_ROOM] = "room in blocks",
    [PART_LEAF_ROUNDING] = "rounding of blocks",
    [PART_INDEX] = "index blocks",
    [PART_INDEX_ROOM] = "room in index blocks",
    [PART_NODES] = "nodes",
    [PART_NODES_ROOM] = "room for nodes",
    [PART_MAP] = "map",
    [PART_MAP_ROOM] = "room in the map",
    [PART_BOARD] = "the board itself",
    [PART_PIECES] = "headers of pieces",
    [PART_FREE] = "free in the pool, and the rest",
};

enum order { ORDER_ASCENDING, ORDER_RANDOM, ORDER_UPDATED, ORDERS };
static const char *const order_titles[ORDERS] = {"in order", "random", "updated"};

struct names {
    const char *title;
    const char *prefix;
    enum name_form form;
};
static const struct names kinds[] = {
    {.title = "20 bytes", .prefix = "", .form = NAME_BYTES},
    {.title = "UUID", .prefix = "", .form = NAME_UUID},
    {.title = "10 digits", .prefix = "", .form = NAME_ID},
    {.title = "user:", .prefix = "user:", .form = NAME_DIGITS},
    {.title = "e-mail", .prefix = "", .form = NAME_MAIL},
};
enum {
    KINDS = sizeof kinds / sizeof *kinds,
    KIND_UUID = 1,
    SETTLE_US = 1500000,
    UPDATES = 2,
    SMALL_MEMBERS = 10,
};

struct figures {
    double parts[PARTS]; /* bytes a member */
    double resident;
    double blocks_filled; /* members a leaf */
};

static struct layout layout;
static struct board_options usual_options; /* of the small boards */

static void stop(const char *what) {
    fprintf(stderr, "micro_bytes: %s\n", what);
    exit(1);
}

static size_t resident_size(void) {
    unsigned long total = 0;
    unsigned long resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%lu %lu", &total, &resident) != 2) {
        stop("no /proc/self/statm");
    }
    fclose(file);
    return resident * (size_t)sysconf(_SC_PAGESIZE);
}

/* ---- loading ---- */

static void put(struct board *board, const struct names *names, uint64_t number, uint64_t key) {
    char name[16 + MICRO_NAME_MAX];
    size_t prefix_size = strlen(names->prefix);
    memcpy(name, names->prefix, prefix_size);
    micro_write_name(names->form, 0, number, name + prefix_size);
    struct bytes member = {.at = name, .size = prefix_size + name_sizes[names->form]};
    if (board_put(board, member, key) != BOARD_OK) {
        stop("no memory");
    }
}

static void load(struct board *board, const struct names *names, enum order order,
                 uint32_t members) {
    struct random random = {.state = 7};
    for (uint32_t number = 0; number < members; number++) {
        put(board, names, number, order == ORDER_ASCENDING ? number : random_next(&random) >> 20);
    }
    for (uint64_t i = 0; order == ORDER_UPDATED && i < (uint64_t)UPDATES * members; i++) {
        uint64_t number = random_below(&random, members);
        put(board, names, number, random_next(&random) >> 20);
    }
    memory_settle();
    usleep(SETTLE_US);
}

/* ---- counting ---- */

/* What a leaf consists of; the only place here that knows the format of blocks. */
static void count_leaf(const struct block *block, double *parts) {
    uint32_t marks = block_mark_room(block->capacity);
    size_t fixed =
        sizeof *block + marks * sizeof *block_marks(block) + block->capacity * sizeof(uint64_t);
    parts[PART_HEADERS] += sizeof *block;
    parts[PART_MARKS] += block->count * sizeof *block_marks(block);
    parts[PART_KEYS] += block->count * sizeof(uint64_t);
    parts[PART_NAMES] +=
        (double)block->heap_used + (double)(index_leaf_memory_size(block) - memory_size(block));
    parts[PART_LEAF_ROOM] += (double)(marks - block->count) * sizeof *block_marks(block) +
                             (double)(block->capacity - block->count) * sizeof(uint64_t) +
                             (double)(block->heap_size - block->heap_used);
    parts[PART_LEAF_ROUNDING] += (double)(memory_size(block) - fixed - block->heap_size);
}

static void count_index(const struct index_block *index, double *parts) {
    size_t entry = sizeof(uint32_t) + sizeof(uint64_t) +
                   (index->is_lowest ? sizeof(uint8_t) : sizeof(uint32_t));
    double used = (double)(sizeof *index + index->count * entry);
    parts[PART_INDEX] += used;
    parts[PART_INDEX_ROOM] += (double)memory_size(index) - used;
}

/* Returns the number of leaves. */
static uint32_t count_list(const struct skiplist *list, double *parts) {
    uint32_t leaves = 0;
    for (uint32_t id = 0; id < list->node_end; id++) {
        const struct skiplist_node *node = skiplist_node(list, id);
        if (node->block == NULL) {
            continue;
        }
        parts[PART_NODES] += sizeof *node;
        if (node->level == 0) {
            count_leaf(node->block, parts);
            leaves++;
        } else {
            count_index(node->block, parts);
        }
    }
    parts[PART_NODES_ROOM] = (double)index_nodes_memory_size(list) - parts[PART_NODES];
    return leaves;
}

static struct figures count_parts(const struct board *board, size_t resident, uint64_t pieces) {
    struct figures figures = {.resident = (double)resident};
    double *parts = figures.parts;
    if (!board->is_large) {
        stop("the board is too small to be taken apart");
    }
    const struct large_board *large = board->large;
    uint32_t leaves = count_list(&large->list, parts);
    parts[PART_MAP] =
        (double)map_count(&large->map) * (1 + large->map.table.field_bits / 8.0); /* with the tag */
    parts[PART_MAP_ROOM] = (double)map_memory_size(&large->map) - parts[PART_MAP];
    parts[PART_BOARD] = (double)memory_size(large);
    double held = 0;
    for (enum part part = 0; part < PART_PIECES; part++) {
        held += parts[part];
    }
    if ((size_t)held != board_memory_size(board)) {
        fprintf(stderr, "micro_bytes: the parts are %.0f bytes, the board holds %zu\n", held,
                board_memory_size(board));
        exit(1);
    }
    parts[PART_PIECES] = (double)pieces * sizeof(uint64_t);
    parts[PART_FREE] = (double)resident - held - parts[PART_PIECES];
    uint32_t members = board_count(board);
    for (enum part part = 0; part < PARTS; part++) {
        parts[part] /= members;
    }
    figures.resident /= members;
    figures.blocks_filled = (double)members / leaves;
    return figures;
}

static struct figures measure(const struct names *names, enum order order, uint32_t members) {
    memory_init();
    struct board board;
    board_init(&board, &layout, 42);
    uint64_t pieces = memory_live_count();
    size_t resident = resident_size();
    load(&board, names, order, members);
    return count_parts(&board, resident_size() - resident, memory_live_count() - pieces);
}

/* ---- small boards ---- */

static const struct board_options *options_for(void *context, struct bytes key, uint32_t choice) {
    (void)context;
    (void)key;
    return choice == 0 ? &usual_options : NULL;
}

/* Bytes a board, its key and the registry's tables included. */
static struct figures measure_small(uint32_t boards) {
    struct random random = {.state = 7};
    memory_init();
    layout_init_default(&usual_options.layout);
    struct registry *registry = registry_create(42, options_for, NULL);
    size_t resident = resident_size();
    size_t used = memory_used();
    for (uint32_t number = 0; number < boards; number++) {
        char name[32];
        int size = snprintf(name, sizeof name, "board:%" PRIu32, number);
        bool is_new;
        struct registry_key *key = registry_find_or_create(
            registry, 0, (struct bytes){.at = name, .size = (size_t)size}, 0, &is_new);
        for (uint64_t i = 0; key != NULL && i < SMALL_MEMBERS; i++) {
            put(&key->board, &kinds[KIND_UUID], number * SMALL_MEMBERS + i,
                random_next(&random) >> 20);
        }
    }
    memory_settle();
    usleep(SETTLE_US);
    struct figures figures = {
        .parts[PART_BOARD] = (double)(memory_used() - used) / boards,
        .resident = (double)(resident_size() - resident) / boards,
    };
    return figures;
}

/* In a process of its own. names: NULL: small boards. */
static struct figures measure_apart(const struct names *names, enum order order, uint32_t members) {
    int ends[2];
    struct figures figures = {0};
    if (pipe(ends) != 0) {
        stop("no pipe");
    }
    pid_t child = fork();
    if (child == 0) {
        figures =
            names != NULL ? measure(names, order, members) : measure_small(members / SMALL_MEMBERS);
        _exit(write(ends[1], &figures, sizeof figures) == sizeof figures ? 0 : 1);
    }
    close(ends[1]);
    if (child < 0 || read(ends[0], &figures, sizeof figures) != sizeof figures) {
        stop("a measurement failed");
    }
    close(ends[0]);
    waitpid(child, NULL, 0);
    return figures;
}

/* ---- the table ---- */

static void print_line(const char *title, const struct figures *figures, size_t offset) {
    printf("| %-30s |", title);
    for (int i = 0; i < KINDS * ORDERS; i++) {
        double value;
        memcpy(&value, (const char *)&figures[i] + offset, sizeof value);
        printf(" %6.2f |", value);
    }
    printf("\n");
}

static void run(uint32_t members) {
    struct figures figures[KINDS * ORDERS];
    for (int i = 0; i < KINDS * ORDERS; i++) {
        figures[i] = measure_apart(&kinds[i / ORDERS], (enum order)(i % ORDERS), members);
    }
    printf("\n| bytes a member, %14" PRIu32 " |", members);
    for (int i = 0; i < KINDS * ORDERS; i++) {
        printf(" %s, %s |", kinds[i / ORDERS].title, order_titles[i % ORDERS]);
    }
    printf("\n|---|");
    for (int i = 0; i < KINDS * ORDERS; i++) {
        printf("---:|");
    }
    printf("\n");
    for (enum part part = 0; part < PARTS; part++) {
        print_line(part_titles[part], figures,
                   offsetof(struct figures, parts) + part * sizeof(double));
    }
    print_line("resident", figures, offsetof(struct figures, resident));
    print_line("members a block", figures, offsetof(struct figures, blocks_filled));
    struct figures small = measure_apart(NULL, ORDER_RANDOM, members);
    printf("\n%" PRIu32 " boards of ten UUIDs: %.1f bytes a board, %.1f of them allocated\n",
           members / SMALL_MEMBERS, small.resident, small.parts[PART_BOARD]);
}

int main(int argc, char **argv) {
    static char program[] = "micro_bytes";
    static char usual[] = "5000000";
    char *defaults[] = {program, usual};
    layout_init_default(&layout);
    return argc > 1 ? micro_each_size(argc, argv, run) : micro_each_size(2, defaults, run);
}
