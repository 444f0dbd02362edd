/* Micro benchmark of starting up: boards filled in rank order, as from a snapshot, and effects
 * applied, as from a journal. Nothing is read from a disk or decoded.
 *
 *     build/bench/micro_load [members]        default: 5000000
 *
 * Members have 20 bytes. Every part runs in a process of its own. Times are those that the thread
 * ran, so that what else the machine does counts for little. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/micro.h"
#include "codec/memory.h"
#include "skiplist/keyspace/effect.h"

enum {
    MEMBER_SIZE = 20,
    PORTION = 1000,      /* entries appended, effects applied at once */
    SMALL_BOARD = 50,    /* members */
    STEP_WORK = 10000,   /* of indexing */
    BATCH = 4 * PORTION, /* made between measurements */
};

static struct board_options options;
static char (*members)[MEMBER_SIZE];
static struct random drawn = {.state = 7};

static const struct board_options *options_for(void *context, struct bytes key, uint32_t choice) {
    (void)context;
    (void)key;
    return choice == 0 ? &options : NULL;
}

static void *must(void *what) {
    if (what == NULL) {
        fprintf(stderr, "micro_load: no memory\n");
        exit(1);
    }
    return what;
}

static void must_do(bool is_done) {
    must(is_done ? &options : NULL);
}

/* The member with this number, in row i of the batch. No two are equal, and neighbours have nothing
 * in common. */
static struct bytes make_member(uint32_t i, uint64_t number) {
    char text[MEMBER_SIZE + 1];
    uint64_t mixed = number * UINT64_C(0x9e3779b97f4a7c15);
    snprintf(text, sizeof text, "user%016" PRIx64, mixed);
    memcpy(members[i], text, MEMBER_SIZE);
    return (struct bytes){members[i], MEMBER_SIZE};
}

static double now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

struct load {
    struct registry *registry;
    struct board board;
    double taken_ns;
    double longest_ns; /* step of indexing */
};

static void begin(struct load *load) {
    *load = (struct load){.registry = must(registry_create(1, options_for, NULL))};
    members = must(calloc(BATCH, sizeof *members));
}

static void append(struct load *load, const struct board_entry *entries, uint32_t count) {
    double begun_ns = now_ns();
    for (uint32_t i = 0; i < count; i += PORTION) {
        uint32_t portion = count - i < PORTION ? count - i : PORTION;
        must_do(board_append(&load->board, &entries[i], portion) == BOARD_OK);
    }
    load->taken_ns += now_ns() - begun_ns;
}

static void end_board(struct load *load, uint64_t number) {
    double begun_ns = now_ns();
    double step_ns = begun_ns;
    struct board_indexing progress = {0};
    bool is_done = false;
    while (!is_done) {
        must_do(board_append_end_step(&load->board, &progress, STEP_WORK, &is_done) == BOARD_OK);
        double stepped_ns = now_ns();
        load->longest_ns =
            stepped_ns - step_ns > load->longest_ns ? stepped_ns - step_ns : load->longest_ns;
        step_ns = stepped_ns;
    }
    char name[32];
    size_t size = (size_t)snprintf(name, sizeof name, "board:%" PRIu64, number);
    must_do(registry_put_loaded(load->registry, 0, (struct bytes){name, size}, &load->board, NULL,
                                NULL, REGISTRY_NO_EXPIRY) == REGISTRY_OK);
    load->taken_ns += now_ns() - begun_ns;
}

static void load_one_board(uint32_t count) {
    struct load load;
    struct board_entry *entries = must(calloc(BATCH, sizeof *entries));
    begin(&load);
    must_do(registry_create_board_like(load.registry, &options, &load.board));
    for (uint32_t next = 0; next < count;) {
        uint32_t batch = count - next < BATCH ? count - next : BATCH;
        for (uint32_t i = 0; i < batch; i++, next++) {
            entries[i] = (struct board_entry){count - next, make_member(i, next)};
        }
        append(&load, entries, batch);
    }
    end_board(&load, 0);
    printf("load one board       %8.2f million members/s, longest step of indexing %.2f ms\n",
           count / load.taken_ns * 1e3, load.longest_ns / 1e6);
}

static void load_small_boards(uint32_t count) {
    struct load load;
    struct board_entry entries[SMALL_BOARD];
    begin(&load);
    for (uint32_t next = 0; next + SMALL_BOARD <= count; next += SMALL_BOARD) {
        for (uint32_t i = 0; i < SMALL_BOARD; i++) {
            entries[i] = (struct board_entry){SMALL_BOARD - i, make_member(i, next + i)};
        }
        double begun_ns = now_ns();
        must_do(registry_create_board_like(load.registry, &options, &load.board));
        load.taken_ns += now_ns() - begun_ns;
        append(&load, entries, SMALL_BOARD);
        end_board(&load, next);
    }
    printf("load boards of %d    %8.2f million members/s\n", SMALL_BOARD,
           count / load.taken_ns * 1e3);
}

/* ---- effects ---- */

static struct effect *effects;

static void apply(struct load *load, uint32_t count) {
    double begun_ns = now_ns();
    for (uint32_t i = 0; i < count; i += PORTION) {
        uint32_t portion = count - i < PORTION ? count - i : PORTION;
        uint32_t applied;
        must_do(effect_apply(load->registry, &effects[i], portion, &applied) == EFFECT_OK);
    }
    load->taken_ns += now_ns() - begun_ns;
}

enum { NAME_SIZE = 16 };
static char (*names)[NAME_SIZE];

static struct bytes make_name(uint32_t i, uint64_t number) {
    int size = snprintf(names[i], NAME_SIZE, "board:%" PRIu32, (uint32_t)number);
    return (struct bytes){names[i], (size_t)size};
}

static void create_boards(struct load *load, uint32_t board_count) {
    names = must(calloc(BATCH, sizeof *names));
    effects = must(calloc(BATCH, sizeof *effects));
    for (uint32_t next = 0; next < board_count;) {
        uint32_t batch = board_count - next < BATCH ? board_count - next : BATCH;
        for (uint32_t i = 0; i < batch; i++, next++) {
            effects[i] = (struct effect){
                .kind = EFFECT_CREATE, .name = make_name(i, next), .options = &options};
        }
        apply(load, batch);
    }
}

/* PUTs of new members, or of ones that are there, with random keys. Members are dealt to the
 * boards in turn. */
static void put_members(struct load *load, uint32_t count, uint32_t members_count,
                        uint32_t board_count, bool are_new) {
    load->taken_ns = 0;
    for (uint32_t next = 0; next < count;) {
        uint32_t batch = count - next < BATCH ? count - next : BATCH;
        for (uint32_t i = 0; i < batch; i++, next++) {
            uint64_t number = are_new ? next : random_below(&drawn, members_count);
            effects[i] = (struct effect){.kind = EFFECT_PUT,
                                         .name = make_name(i, number % board_count),
                                         .member = make_member(i, number),
                                         .member_key = random_next(&drawn) >> 20};
        }
        apply(load, batch);
    }
}

static void replay(uint32_t count, uint32_t board_count) {
    struct load load;
    uint32_t members_count = count / 5;
    begin(&load);
    create_boards(&load, board_count);
    put_members(&load, members_count, members_count, board_count, true);
    printf("replay, new members  %8.2f million PUTs/s\n", members_count / load.taken_ns * 1e3);
    put_members(&load, count, members_count, board_count, false);
    printf("replay, random moves %8.2f million PUTs/s on boards of %" PRIu32 "\n",
           count / load.taken_ns * 1e3, members_count / board_count);
}

static void replay_one_board(uint32_t count) {
    replay(count, 1);
}

static void replay_small_boards(uint32_t count) {
    replay(count, count / 5 / SMALL_BOARD + 1);
}

static void run_apart(void (*run)(uint32_t), uint32_t count) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        memory_init(); /* as the server does */
        run(count);
        fflush(stdout);
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (status != 0) {
        exit(1);
    }
}

static void run_parts(uint32_t count) {
    run_apart(load_one_board, count);
    run_apart(load_small_boards, count);
    run_apart(replay_one_board, count);
    run_apart(replay_small_boards, count);
}

int main(int argc, char **argv) {
    layout_init_default(&options.layout);
    if (argc == 1) {
        run_parts(5000000);
        return 0;
    }
    return micro_each_size(argc, argv, run_parts);
}
