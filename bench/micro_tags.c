/* Micro benchmark of tags: nanoseconds of ranks inside groups, of pages, tallies and updates, and bytes per member.
 *
 *     build/bench/micro_tags [members ...]         default: 1000 10000 100000 1000000 10000000
 *
 * Members have a country (250, the k-th a share of 1/k), a class (12) and a platform (4; half of all have the
 * first). Fifty members have a class of their own besides. On a second board they have a clan and a guild, of
 * LARGE values each. Every size runs in a process of its own; the best of ROUNDS rounds is printed. */
#include <inttypes.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/micro.h"
#include "codec/memory.h"
#include "skiplist/tag_histogram.h"

enum { COUNTRIES = 250, CLASSES = 12, PLATFORMS = 4, RARE = 50, ROUNDS = 3, OPERATIONS = 1 << 14 };
enum { LARGE = 65000, LARGE_TAGS = 2 };

static struct layout layout, large_layout;
static struct random drawn = {.state = 7};
static volatile uint64_t sink;
static double shares[COUNTRIES];

static uint64_t next_random(void) {
    return random_next(&drawn);
}

static void must(bool holds) {
    if (!holds) {
        fprintf(stderr, "micro_tags: no memory\n");
        exit(1);
    }
}

static void draw_shares(void) {
    double sum = 0;
    for (int i = 0; i < COUNTRIES; i++) {
        sum += 1.0 / (i + 1);
        shares[i] = sum;
    }
    for (int i = 0; i < COUNTRIES; i++) {
        shares[i] /= sum;
    }
}

static int draw_country(void) {
    double at = (double)(next_random() >> 11) / 9007199254740992.0;
    int country = 0;
    while (country < COUNTRIES - 1 && shares[country] < at) {
        country++;
    }
    return country;
}

static void add_tag(struct layout *to, const char *name, const char *bits) {
    char error[TAG_ERROR_MAX];
    must(tag_set_add(&to->tags, (struct bytes){name, strlen(name)},
                     (struct bytes){bits, strlen(bits)}, error));
}

static struct bytes name_of(char *text, uint64_t number) {
    micro_write_member(text, number);
    return (struct bytes){text, MICRO_MEMBER_SIZE};
}

static void put(struct board *board, uint64_t number, uint64_t key) {
    char text[MICRO_MEMBER_SIZE + 1];
    must(board_put(board, name_of(text, number), key) == BOARD_OK);
}

/* Values of a member. */
struct drawn_values {
    char country[8], class[8], platform[8];
};

static void draw_values(uint32_t number, uint32_t members, struct drawn_values *values) {
    int platform = (int)(next_random() % 6);
    snprintf(values->country, sizeof values->country, "c%d", draw_country());
    snprintf(values->class, sizeof values->class, "k%d", (int)(next_random() % CLASSES));
    snprintf(values->platform, sizeof values->platform, "p%d", platform < 3 ? 0 : platform - 2);
    if (number % (members / RARE > 0 ? members / RARE : 1) == 0) {
        snprintf(values->class, sizeof values->class, "rare");
    }
}

static void tag(struct board *board, uint32_t number, uint32_t members) {
    char text[MICRO_MEMBER_SIZE + 1];
    struct drawn_values values;
    struct board_member member;
    unsigned full;
    draw_values(number, members, &values);
    struct tag_values set = {.mask = 7,
                             .at = {{values.country, strlen(values.country)},
                                    {values.class, strlen(values.class)},
                                    {values.platform, strlen(values.platform)}}};
    board_look_up(board, name_of(text, number), NULL, &member);
    must(tags_set(board, &member, &set, &full) < TAGS_OUT_OF_MEMORY);
}

static void fill(struct board *board, uint32_t members, bool has_tags) {
    board_init(board, &layout, 42);
    for (uint32_t i = 0; i < members; i++) {
        put(board, i, next_random() >> 20);
        if (has_tags) {
            tag(board, i, members);
        }
    }
}

/* ---- what is timed ---- */

struct task {
    struct board *board;
    uint32_t members;
    unsigned mask; /* tags asked for */
};

static struct tag_filter *filter_of(const struct board *board, uint32_t rank, unsigned mask) {
    struct tag_choice choices[3];
    struct tag_values values;
    uint32_t count = 0;
    tags_at(board, rank, &values);
    for (unsigned i = 0; i < 3; i++) {
        if ((mask >> i & 1) != 0) {
            choices[count++] = (struct tag_choice){.tag = (uint8_t)i, .value = values.at[i]};
        }
    }
    struct tag_filter *filter = tag_filter_create(board, choices, count);
    must(filter != NULL);
    return filter;
}

static uint32_t draw_rank(const struct task *task) {
    return (uint32_t)(next_random() % task->members);
}

static void run_move(const struct task *task) {
    put(task->board, next_random() % task->members, next_random() >> 20);
}

static void run_rank(const struct task *task) {
    uint32_t rank = draw_rank(task);
    struct tag_filter *filter = filter_of(task->board, rank, task->mask);
    sink += tag_group_count(task->board, filter, rank);
    tag_filter_destroy(filter);
}

static void run_page(const struct board *board, struct tag_filter *filter, uint32_t rank,
                     uint32_t count) {
    uint32_t ranks[BOARD_AT_MAX];
    struct board_stored entries[BOARD_AT_MAX];
    for (uint32_t found = 1; count > 0 && found > 0; count -= found) {
        found = tag_group_read(board, filter, rank, true, ranks,
                               count < BOARD_AT_MAX ? count : BOARD_AT_MAX);
        board_at_many(board, ranks, found, entries);
        for (uint32_t i = 0; i < found; i++) {
            sink += entries[i].key;
        }
        rank = found > 0 ? ranks[found - 1] + 1 : rank;
    }
}

static void run_top(const struct task *task) {
    struct tag_choice choice = {.tag = task->mask == 1 ? 1 : 2,
                                .value = task->mask == 1 ? (struct bytes){"rare", 4}
                                                         : (struct bytes){"p0", 2}};
    struct tag_filter *filter = tag_filter_create(task->board, &choice, 1);
    must(filter != NULL);
    run_page(task->board, filter, 0, 10);
    tag_filter_destroy(filter);
}

static void run_around(const struct task *task) {
    uint32_t rank = draw_rank(task), first;
    struct tag_filter *filter = filter_of(task->board, rank, 1);
    uint32_t inside = tag_group_count(task->board, filter, rank);
    must(tag_group_find(task->board, filter, inside > 5 ? inside - 5 : 0, &first));
    run_page(task->board, filter, first, 11);
    tag_filter_destroy(filter);
}

static void run_histogram(const struct task *task) {
    uint32_t to = task->mask == 0 || task->members < 1000 ? task->members : 1000;
    unsigned country = 0;
    struct tag_histogram made;
    must(tag_histogram_make(task->board, NULL, 0, to, &country, 1, &made));
    sink += made.count;
    tag_histogram_deinit(&made);
}

static double time_task(const struct task *task, void (*run)(const struct task *task), int count) {
    double best = 0;
    for (int round = 0; round < ROUNDS; round++) {
        double begin = micro_now_ns();
        for (int i = 0; i < count; i++) {
            run(task);
        }
        double each = (micro_now_ns() - begin) / count;
        best = round == 0 || each < best ? each : best;
    }
    return best;
}

/* ---- two tags with very many values ---- */

static void fill_large(struct board *board, uint32_t members) {
    board_init(board, &large_layout, 42);
    for (uint32_t i = 0; i < members; i++) {
        char text[MICRO_MEMBER_SIZE + 1], texts[LARGE_TAGS][16];
        struct tag_values set = {.mask = (1U << LARGE_TAGS) - 1};
        struct board_member member;
        unsigned full;
        for (unsigned t = 0; t < LARGE_TAGS; t++) {
            int size =
                snprintf(texts[t], sizeof texts[t], "v%u", (unsigned)(next_random() % LARGE));
            set.at[t] = (struct bytes){texts[t], (size_t)size};
        }
        put(board, i, next_random() >> 20);
        board_look_up(board, name_of(text, i), NULL, &member);
        must(tags_set(board, &member, &set, &full) < TAGS_OUT_OF_MEMORY);
    }
}

/* mask: bits 0 and 1, the tags that are asked for; 2 and 3, which of them leave their value out. */
static void run_large(const struct task *task) {
    struct tag_choice choices[LARGE_TAGS];
    struct tag_values values;
    uint32_t count = 0, rank = draw_rank(task);
    tags_at(task->board, draw_rank(task), &values);
    for (unsigned t = 0; t < LARGE_TAGS; t++) {
        if ((task->mask >> t & 1) != 0) {
            choices[count++] =
                (struct tag_choice){.tag = (uint8_t)t,
                                    .is_excluded = (task->mask >> (LARGE_TAGS + t) & 1) != 0,
                                    .value = values.at[t]};
        }
    }
    struct tag_filter *filter = tag_filter_create(task->board, choices, count);
    must(filter != NULL);
    sink += tag_group_count(task->board, filter, rank);
    tag_filter_destroy(filter);
}

static void run_large_board(uint32_t members, size_t untagged_size) {
    static const struct large_row {
        const char *name;
        unsigned mask;
    } rows[] = {{"clan", 1},
                {"guild", 2},
                {"clan, guild", 3},
                {"not clan", 5},
                {"not guild", 10},
                {"clan, not guild", 11},
                {"not clan, guild", 7},
                {"not clan, not guild", 15}};
    struct board board;
    fill_large(&board, members);
    struct task task = {.board = &board, .members = members};
    printf("%9" PRIu32 " members, two tags of %d values\n", members, LARGE);
    double before = time_task(&task, run_move, OPERATIONS * 8);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        task.mask = rows[i].mask;
        printf("    rank in a group: %-19s %9.0f ns\n", rows[i].name,
               time_task(&task, run_large, OPERATIONS / 16));
    }
    double after = time_task(&task, run_move, OPERATIONS * 8);
    printf("    a random move                      %9.0f ns; before any was asked %.0f\n", after,
           before);
    printf("    bytes a member more                %9.1f\n",
           ((double)board_memory_size(&board) - (double)untagged_size) / members);
    board_deinit(&board);
}

static void run_in_child(uint32_t members) {
    static const char *const names[] = {
        "",         "country",          "class",          "country,class",
        "platform", "country,platform", "class,platform", "all three"};
    struct board board, untagged;
    fill(&untagged, members, false);
    size_t size = board_memory_size(&untagged);
    struct task plain = {.board = &untagged, .members = members};
    double move = time_task(&plain, run_move, OPERATIONS * 8);
    board_deinit(&untagged);
    fill(&board, members, true);
    double more = ((double)board_memory_size(&board) - (double)size) / members;
    struct task task = {.board = &board, .members = members};
    printf("%9" PRIu32 " members\n", members);
    double before = time_task(&task, run_move, OPERATIONS * 8);
    double sum = 0, worst = 0;
    for (task.mask = 1; task.mask < 8; task.mask++) {
        double each = time_task(&task, run_rank, OPERATIONS / 4);
        printf("    rank in a group: %-17s %9.0f ns\n", names[task.mask], each);
        sum += each;
        worst = each > worst ? each : worst;
    }
    printf("    mean, worst                        %9.0f %9.0f ns\n", sum / 7, worst);
    task.mask = 0;
    printf("    top ten of half the board          %9.0f ns\n",
           time_task(&task, run_top, OPERATIONS));
    task.mask = 1;
    printf("    top ten of fifty members           %9.0f ns\n",
           time_task(&task, run_top, OPERATIONS / 16));
    printf("    11 around, within the country      %9.0f ns\n",
           time_task(&task, run_around, OPERATIONS / 4));
    task.mask = 0;
    printf("    all by country                     %9.0f ns\n",
           time_task(&task, run_histogram, 16));
    task.mask = 1;
    printf("    the top 1000 by country            %9.0f ns\n",
           time_task(&task, run_histogram, OPERATIONS / 16));
    double after = time_task(&task, run_move, OPERATIONS * 8);
    printf("    a random move                      %9.0f ns, without tags %.0f: %.2f times; before "
           "any was asked %.2f\n",
           after, move, after / move, before / move);
    printf("    bytes a member more                %9.1f\n", more);
    board_deinit(&board);
    run_large_board(members, size);
}

static void run(uint32_t members) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        memory_init();
        run_in_child(members);
        fflush(stdout);
        _exit(0);
    }
    (void)waitpid(child, NULL, 0);
}

int main(int argc, char **argv) {
    layout_init_default(&layout);
    layout_init_default(&large_layout);
    draw_shares();
    add_tag(&layout, "country", "8");
    add_tag(&layout, "class", "4");
    add_tag(&layout, "platform", "3");
    add_tag(&large_layout, "clan", "16");
    add_tag(&large_layout, "guild", "16");
    return micro_each_size(argc, argv, run);
}
