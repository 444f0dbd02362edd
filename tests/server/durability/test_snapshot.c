/* A snapshot written during changes holds the boards as they are at its end: random changes between
 * all of its steps, and a comparison of what is loaded with what was there. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "server/durability/file_format.h"
#include "server/durability/loading.h"
#include "server/durability/snapshot.h"
#include "server/system/log.h"
#include "tests/support/directory_test.h"
#include "tests/support/failing_disk.h"
#include "tests/support/keyspace.h"
#include "tests/support/registry_workload.h"

static int set_up(void **state) {
    (void)directory_set_up(state);
    log_set_level(LOG_WARNING);
    quick_disk_begin();
    return 0;
}

/* ---- a snapshot without a server ---- */

static void on_alive(uv_timer_t *timer) {
    (void)timer;
}

struct fixture {
    struct workload workload;
    struct effect_listener listener;
    uv_loop_t loop;
    uv_timer_t alive;
    struct store store;
    struct snapshot snapshot;
    uint64_t group;  /* as a journal would number them */
    uint64_t digest; /* of the boards at the end of the walk */
    bool is_over, is_done;
    uint64_t done_count, failed_count, received_count, changed_count;
};

static void on_effect(void *context, const struct effect *effect) {
    struct fixture *fixture = context;
    fixture->received_count++;
    if (effect->kind != EFFECT_FILL) {
        snapshot_add_effect(&fixture->snapshot, effect);
        return;
    }
    struct effect_fill fill;
    struct effect part;
    fill = (struct effect_fill){.whole = *effect};
    while (effect_fill_next(&fill, &part)) {
        snapshot_add_effect(&fixture->snapshot, &part);
    }
}

static void settle(struct fixture *fixture) {
    enum snapshot_outcome outcome = snapshot_take_outcome(&fixture->snapshot);
    if (outcome == SNAPSHOT_IS_WALKED) {
        fixture->digest = workload_digest(fixture->workload.registry);
        snapshot_finish(&fixture->snapshot, SNAPSHOT_NO_JOURNAL);
    } else if (outcome != SNAPSHOT_NOTHING) {
        fixture->is_over = true;
        fixture->is_done = outcome == SNAPSHOT_DONE;
    }
    if (outcome != SNAPSHOT_NOTHING) {
        effect_listener_remove(fixture->workload.registry, &fixture->listener);
    }
}

/* Within an effect only the flag is set. */
static void on_snapshot_changed(void *context) {
    struct fixture *fixture = context;
    fixture->changed_count++;
}

/* One step, and what the thread has done meanwhile. */
static void step(struct fixture *fixture, uint64_t group, int64_t now_us) {
    (void)!snapshot_step(&fixture->snapshot, 0, group, now_us);
    settle(fixture);
}

static void turn(struct fixture *fixture) {
    uv_run(&fixture->loop, UV_RUN_NOWAIT);
    settle(fixture);
}

static struct fixture *begin(const char *test_name, uint32_t members_max) {
    char error[DISK_ERROR_MAX];
    struct fixture *fixture = calloc(1, sizeof *fixture);
    assert_non_null(fixture);
    workload_begin(&fixture->workload, test_name, members_max);
    fixture->workload.has_ids = true;
    assert_int_equal(store_open(&fixture->store, directory, "kept", STORE_CREATE, error), STORE_OK);
    assert_int_equal(uv_loop_init(&fixture->loop), 0);
    assert_int_equal(uv_timer_init(&fixture->loop, &fixture->alive), 0);
    assert_int_equal(uv_timer_start(&fixture->alive, on_alive, 1000000000, 0), 0);
    fixture->snapshot.registry = fixture->workload.registry;
    fixture->snapshot.store = &fixture->store;
    fixture->snapshot.changed = on_snapshot_changed;
    fixture->snapshot.context = fixture;
    assert_true(snapshot_init(&fixture->snapshot, &fixture->loop));
    return fixture;
}

static void end(struct fixture *fixture) {
    snapshot_deinit(&fixture->snapshot);
    uv_close((uv_handle_t *)&fixture->alive, NULL);
    assert_int_equal(uv_run(&fixture->loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(uv_loop_close(&fixture->loop), 0);
    store_close(&fixture->store);
    workload_end(&fixture->workload);
    free(fixture);
}

#define IN_FIXTURE(name) TEST_WITH(name, set_up, directory_tear_down)

/* A test with a fixture whose boards get so many members at once. */
#define SNAPSHOT_TEST(name, members_max)                                                           \
    static void name##_of(struct fixture *fixture);                                                \
    IN_FIXTURE(name) {                                                                             \
        struct fixture *fixture = begin(__func__, (members_max));                                  \
        name##_of(fixture);                                                                        \
        end(fixture);                                                                              \
    }                                                                                              \
    static void name##_of(struct fixture *fixture)

static void on_changed(void *context) {
    (void)context;
}

/* Load the base into an empty registry, which the loading then owns. */
static struct loading *load(struct fixture *fixture, bool *is_loaded) {
    struct loading *loading = calloc(1, sizeof *loading);
    assert_non_null(loading);
    loading->registry = workload_create_registry(0xface);
    loading->store = &fixture->store;
    loading->changed = on_changed;
    assert_true(loading_init(loading, &fixture->loop));
    *is_loaded = loading_run(loading);
    return loading;
}

static void end_loading(struct fixture *fixture, struct loading *loading) {
    loading_deinit(loading);
    turn(fixture);
    registry_destroy(loading->registry);
    free(loading);
}

/* The base holds what was there. */
static void check_base(struct fixture *fixture) {
    bool is_loaded;
    struct loading *loading = load(fixture, &is_loaded);
    if (!is_loaded) {
        fail_msg("%s", loading->error);
    }
    assert_int_equal(loading->sequence, fixture->group);
    assert_int_equal(loading->time_us, fixture->workload.now_ms * 1000);
    ASSERT_VALID(registry_validate, loading->registry);
    assert_true(workload_digest(loading->registry) == fixture->digest);
    end_loading(fixture, loading);
}

static uint32_t below(struct fixture *fixture, uint64_t limit) {
    return (uint32_t)random_below(&fixture->workload.random, limit);
}

static void look_for_open(void *context, const struct registry_key *key) {
    struct workload *workload = context;
    struct bytes name = registry_name(key);
    if (name.size <= sizeof workload->favourite &&
        registry_walk_state(workload->registry, key) == REGISTRY_WALK_OPEN) {
        workload->favourite_database = key->database;
        workload->favourite_size = name.size;
        memcpy(workload->favourite, name.at, name.size);
    }
}

/* Let most changes hit the board being written. */
static void pick_favourite(struct fixture *fixture) {
    struct workload *workload = &fixture->workload;
    workload->favourite_size = 0;
    for (uint32_t i = 0; i < workload->database_count && below(fixture, 4) != 0; i++) {
        registry_walk_each(workload->registry, i, INT64_MIN, look_for_open, workload);
    }
}

struct weather {
    uint32_t steps_max;    /* of the snapshot, between two changes */
    uint32_t commands_max; /* between two steps */
    bool is_failing;       /* allocations, from time to time */
};

static void workload_some(struct fixture *fixture, const struct weather *weather) {
    for (uint32_t commands = below(fixture, weather->commands_max + 1); commands > 0; commands--) {
        pick_favourite(fixture);
        if (weather->is_failing && below(fixture, 3) == 0) {
            memory_fail_at(1 + below(fixture, 4));
        }
        workload_step(&fixture->workload);
    }
    memory_fail_at(0);
}

static void hear(struct fixture *fixture) {
    fixture->is_over = false;
    fixture->listener = (struct effect_listener){.receive = on_effect, .context = fixture};
    effect_listener_add(fixture->workload.registry, &fixture->listener);
}

static void begin_snapshot(struct fixture *fixture) {
    assert_true(snapshot_begin(&fixture->snapshot, fixture->workload.now_ms * 1000));
    hear(fixture);
}

/* One snapshot from its beginning to its end. */
static void write_snapshot(struct fixture *fixture, const struct weather *weather) {
    begin_snapshot(fixture);
    while (!fixture->is_over) {
        if (fixture->snapshot.state == SNAPSHOT_WALKS) {
            workload_some(fixture, weather);
            fixture->group += below(fixture, 2);
        }
        for (uint32_t steps = 1 + below(fixture, weather->steps_max);
             steps > 0 && fixture->snapshot.state == SNAPSHOT_WALKS; steps--) {
            step(fixture, fixture->group, fixture->workload.now_ms * 1000);
        }
        turn(fixture);
    }
    fixture->done_count += fixture->is_done;
    fixture->failed_count += !fixture->is_done;
    if (fixture->is_done) {
        check_base(fixture);
    }
    assert_int_equal(directory_count(directory_join(directory, "kept")),
                     2 + (fixture->done_count > 0));
}

static void run_snapshots(const char *test_name, const struct weather *weather,
                          uint32_t members_max, uint32_t rounds) {
    uint64_t live_before = memory_live_count();
    struct fixture *fixture = begin(test_name, members_max);
    for (uint32_t i = 0; i < rounds; i++) {
        fixture->workload.database_count = 1 + below(fixture, 2);
        workload_some(fixture, &(struct weather){.commands_max = 100});
        write_snapshot(fixture, weather);
    }
    printf("%llu snapshots, %llu given up, %llu effects beside them\n",
           (unsigned long long)fixture->done_count, (unsigned long long)fixture->failed_count,
           (unsigned long long)fixture->received_count);
    assert_true(fixture->done_count > 0);
    assert_true(weather->is_failing || fixture->failed_count == 0);
    end(fixture);
    assert_int_equal(memory_live_count(), live_before);
}

IN_FIXTURE(a_snapshot_in_a_storm_holds_the_boards_as_they_end) {
    run_snapshots(__func__, &(struct weather){.steps_max = 4, .commands_max = 3}, 12,
                  test_rounds(200, 40));
}

IN_FIXTURE(in_a_heavy_storm_too) {
    run_snapshots(__func__, &(struct weather){.steps_max = 12, .commands_max = 12}, 30,
                  test_rounds(100, 25));
}

IN_FIXTURE(of_large_boards_too) {
    run_snapshots(__func__, &(struct weather){.steps_max = 20, .commands_max = 2}, 1000,
                  test_rounds(40, 8));
}

IN_FIXTURE(without_memory_it_is_given_up_or_whole) {
    run_snapshots(__func__,
                  &(struct weather){.steps_max = 10, .commands_max = 6, .is_failing = true}, 12,
                  test_rounds(100, 25));
}

/* ---- streams ---- */

/* A snapshot that goes through a pipe into a file, which a reader fills as it likes. */
struct streamed {
    int pipe;
    FILE *file;
    char path[DIRECTORY_PATH_MAX + 16];
    bool is_at_end;
};

static void begin_stream(struct fixture *fixture, struct streamed *streamed) {
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
    (void)!fcntl(ends[0], F_SETPIPE_SZ, 4096);
    *streamed = (struct streamed){.pipe = ends[0]};
    snprintf(streamed->path, sizeof streamed->path, "%s/streamed", directory);
    streamed->file = fopen(streamed->path, "w");
    assert_non_null(streamed->file);
    assert_true(
        snapshot_begin_stream(&fixture->snapshot, ends[1], fixture->workload.now_ms * 1000));
    hear(fixture);
}

static void read_some(struct streamed *streamed, size_t size_max) {
    char bytes[8192];
    size_t room = size_max < sizeof bytes ? size_max : sizeof bytes;
    ssize_t size = room > 0 ? read(streamed->pipe, bytes, room) : -1;
    if (size > 0) {
        assert_int_equal(fwrite(bytes, 1, (size_t)size, streamed->file), size);
    }
    streamed->is_at_end |= size == 0;
}

static void end_stream(struct streamed *streamed) {
    while (!streamed->is_at_end) {
        read_some(streamed, SIZE_MAX);
    }
    fclose(streamed->file);
    close(streamed->pipe);
}

/* The file is a base, and holds what was there. */
static void check_streamed(struct fixture *fixture, const struct streamed *streamed) {
    struct store store_before = fixture->store;
    char error[DISK_ERROR_MAX];
    assert_int_equal(store_open_base(&fixture->store, streamed->path, error), STORE_OK);
    check_base(fixture);
    fixture->store = store_before;
}

static void stream_once(struct fixture *fixture, const struct weather *weather) {
    struct streamed streamed;
    begin_stream(fixture, &streamed);
    while (!fixture->is_over) {
        if (fixture->snapshot.state == SNAPSHOT_WALKS) {
            workload_some(fixture, weather);
            step(fixture, ++fixture->group, fixture->workload.now_ms * 1000);
        }
        read_some(&streamed, below(fixture, 9000));
        turn(fixture);
    }
    end_stream(&streamed);
    fixture->done_count += fixture->is_done;
    fixture->failed_count += !fixture->is_done;
    if (fixture->is_done) {
        check_streamed(fixture, &streamed);
    } else {
        assert_true(fixture->snapshot.is_overrun || weather->is_failing);
    }
    assert_int_equal(directory_count(directory_join(directory, "kept")), 2);
}

static void stream_some(const char *test_name, const struct weather *weather) {
    struct fixture *fixture = begin(test_name, 30);
    signal(SIGPIPE, SIG_IGN);
    for (uint32_t i = 0; i < test_rounds(150, 20) || fixture->done_count == 0; i++) {
        workload_some(fixture, &(struct weather){.commands_max = 100});
        stream_once(fixture, weather);
    }
    printf("%llu streamed, %llu given up\n", (unsigned long long)fixture->done_count,
           (unsigned long long)fixture->failed_count);
    end(fixture);
}

IN_FIXTURE(a_stream_in_a_storm_holds_the_boards_as_they_end) {
    stream_some(__func__, &(struct weather){.commands_max = 3});
}

IN_FIXTURE(a_stream_without_memory_is_given_up_or_whole) {
    stream_some(__func__, &(struct weather){.commands_max = 6, .is_failing = true});
}

/* Its reader takes nothing: nobody waits for it, and it ends. */
SNAPSHOT_TEST(a_stream_that_is_not_read_is_given_up, 1000) {
    struct streamed streamed;
    static char name[40000];
    bool is_new;
    signal(SIGPIPE, SIG_IGN);
    memset(name, 'x', sizeof name);
    begin_stream(fixture, &streamed);
    /* It is new, so its changes are not left to the walk, which does not go on. */
    struct registry_key *key = registry_find_or_create(fixture->workload.registry, 0, BYTES("pa"),
                                                       fixture->workload.now_ms, &is_new);
    while (!fixture->snapshot.is_overrun) {
        snprintf(name, sizeof name, "%llu", (unsigned long long)fixture->received_count);
        name[strlen(name)] = 'x';
        assert_true(key_put(fixture->workload.registry, key,
                            (struct bytes){.at = name, .size = sizeof name}, 7));
        assert_false(snapshot_is_full(&fixture->snapshot));
    }
    assert_true(fixture->snapshot.is_overrun);
    close(streamed.pipe);
    fclose(streamed.file);
    while (!fixture->is_over) {
        turn(fixture);
    }
    assert_false(fixture->is_done);
    write_snapshot(fixture, &(struct weather){.steps_max = 5});
    assert_true(fixture->is_done);
}

SNAPSHOT_TEST(a_stream_whose_reader_goes_is_given_up, 12) {
    signal(SIGPIPE, SIG_IGN);
    for (int i = 0; i < 20; i++) {
        struct streamed streamed;
        workload_some(fixture, &(struct weather){.commands_max = 100});
        begin_stream(fixture, &streamed);
        for (int steps = i % 5; steps > 0 && fixture->snapshot.state == SNAPSHOT_WALKS; steps--) {
            step(fixture, 0, 0);
            read_some(&streamed, 100);
        }
        close(streamed.pipe);
        fclose(streamed.file);
        snapshot_give_up(&fixture->snapshot);
        while (!fixture->is_over) {
            turn(fixture);
        }
    }
}

/* ---- allocations that fail ---- */

static void fill(struct fixture *fixture) {
    for (int i = 0; i < 200; i++) {
        workload_step(&fixture->workload);
    }
}

/* Otherwise the buffers are large enough from the start. */
#ifdef SERVER_TINY
static const bool are_buffers_tiny = true;
#else
static const bool are_buffers_tiny = false;
#endif

SNAPSHOT_TEST(each_allocation_of_a_snapshot_may_fail, 12) {
    fill(fixture);
    uint32_t given_up = 0;
    uint32_t not_begun = 0;
    uint64_t apart = test_step(1, are_buffers_tiny ? 3 : 1);
    for (uint64_t nth = 1;; nth += nth < 60 ? 1 : apart) {
        uint64_t live_before = memory_live_count();
        uint64_t requests_before = memory_requests();
        fixture->is_over = false;
        memory_fail_at(nth);
        bool has_begun = snapshot_begin(&fixture->snapshot, 0);
        while (has_begun && !fixture->is_over) {
            step(fixture, fixture->group, fixture->workload.now_ms * 1000);
            turn(fixture);
        }
        memory_fail_at(0);
        assert_int_equal(memory_live_count(), live_before);
        not_begun += !has_begun;
        given_up += has_begun && !fixture->is_done;
        if (has_begun && fixture->is_done) {
            check_base(fixture);
        }
        if (memory_requests() - requests_before < nth) {
            break;
        }
    }
    assert_true(not_begun > 0);
    assert_true(given_up > 0 || !are_buffers_tiny);
}

SNAPSHOT_TEST(each_allocation_of_loading_may_fail, 12) {
    fill(fixture);
    write_snapshot(fixture, &(struct weather){.steps_max = 5, .commands_max = 2});
    uint64_t step = test_step(1, 7);
    uint32_t refused = 0;
    bool is_reached = true;
    for (uint64_t nth = 1; is_reached; nth += nth < 60 ? 1 : step) {
        uint64_t live_before = memory_live_count();
        uint64_t requests_before = memory_requests();
        bool is_loaded;
        memory_fail_at(nth + 2); /* the registry itself takes two */
        struct loading *loading = load(fixture, &is_loaded);
        is_reached = memory_requests() - requests_before >= nth + 2;
        memory_fail_at(0);
        assert_true(is_loaded || loading->error[0] != '\0');
        assert_true(!is_loaded || workload_digest(loading->registry) == fixture->digest);
        refused += !is_loaded;
        end_loading(fixture, loading);
        assert_int_equal(memory_live_count(), live_before);
    }
    assert_true(refused > 0);
}

/* ---- ending early ---- */

SNAPSHOT_TEST(a_snapshot_that_is_given_up_leaves_nothing, 12) {
    for (int i = 0; i < 20; i++) {
        fill(fixture);
        fixture->is_over = false;
        assert_true(snapshot_begin(&fixture->snapshot, 0));
        for (int steps = i % 5; steps > 0 && fixture->snapshot.state == SNAPSHOT_WALKS; steps--) {
            step(fixture, 0, 0);
        }
        if (fixture->snapshot.state == SNAPSHOT_WALKS) {
            snapshot_deinit(&fixture->snapshot);
            assert_int_equal(fixture->snapshot.state, SNAPSHOT_IDLE);
            turn(fixture);
            assert_int_equal(directory_count(directory_join(directory, "kept")), 2);
            assert_true(snapshot_init(&fixture->snapshot, &fixture->loop));
        } else {
            while (!fixture->is_over) {
                turn(fixture);
            }
            break;
        }
    }
}

/* In a directory without a manifest, so that creating it is included. With tiny buffers most calls are writes alike, of
 * which make test has some. */
IN_FIXTURE(each_file_call_of_a_snapshot_may_fail) {
    uint32_t given_up = 0;
    bool is_reached = true;
    uint64_t apart = are_buffers_tiny ? test_step(1, 7) : 1;
    for (uint64_t nth = 1; is_reached; nth += nth < 60 ? 1 : apart) {
        struct fixture *fixture = begin(__func__, 12);
        char error[DISK_ERROR_MAX];
        store_close(&fixture->store);
        directory_remove(directory_join(directory, "kept"));
        assert_int_equal(store_open(&fixture->store, directory, "kept", STORE_CLAIM, error),
                         STORE_OK);
        fill(fixture);
        failing_disk_begin(FAILURE_EIO, nth);
        assert_true(snapshot_begin(&fixture->snapshot, 0));
        while (!fixture->is_over) {
            step(fixture, 0, 0);
            turn(fixture);
        }
        is_reached = failing_disk_end() >= nth;
        quick_disk_begin();
        given_up += !fixture->is_done;
        assert_true(is_reached || fixture->is_done);
        /* Files that could not be removed are removed at the next open. */
        store_close(&fixture->store);
        assert_int_equal(store_open(&fixture->store, directory, "kept", STORE_CLAIM, error),
                         STORE_OK);
        write_snapshot(fixture, &(struct weather){.steps_max = 5});
        assert_true(fixture->is_done);
        end(fixture);
        directory_remove(directory_join(directory, "kept"));
    }
    assert_true(given_up > 5);
}

/* ---- writes while boards are walked ---- */

static void put(struct fixture *fixture, struct registry_key *key, const char *name, size_t size) {
    assert_true(
        key_put(fixture->workload.registry, key, (struct bytes){.at = name, .size = size}, 7));
}

static void put_numbered(struct fixture *fixture, struct registry_key *key, uint32_t begin,
                         uint32_t end) {
    for (uint32_t i = begin; i < end; i++) {
        const char *name = formatted("member:%u", i);
        put(fixture, key, name, strlen(name));
    }
}

static struct registry_key *make_board(struct fixture *fixture, const char *name) {
    return key_create(fixture->workload.registry, 0, name, 0, fixture->workload.now_ms);
}

/* The clock of the workload is stopped meanwhile. */
static void step_and_turn(struct fixture *fixture) {
    step(fixture, fixture->group, fixture->workload.now_ms * 1000);
    turn(fixture);
}

static void finish(struct fixture *fixture) {
    while (!fixture->is_over) {
        step_and_turn(fixture);
    }
    assert_true(fixture->is_done);
    check_base(fixture);
}

SNAPSHOT_TEST(effects_beside_a_walk_take_bounded_memory, 12) {
    enum { NAME_SIZE = 60000, ROUNDS = 2500, MEMORY_MAX = 64 * 1024 * 1024 };
    OWNED char *name = malloc(NAME_SIZE);
    assert_non_null(name);
    memset(name, 'x', NAME_SIZE);
    put_numbered(fixture, make_board(fixture, "walked"), 0, 5000);
    begin_snapshot(fixture);
    step_and_turn(fixture);
    struct registry_key *key = make_board(fixture, "written"); /* new: each change has an effect */
    for (uint32_t i = 0; i < ROUNDS; i++) {
        memcpy(name, &i, sizeof i);
        put(fixture, key, name, NAME_SIZE);
        registry_board_cut(fixture->workload.registry, key, 0, i % 2);
        assert_true(fixture->snapshot.filling.capacity + fixture->snapshot.writing.capacity <=
                    MEMORY_MAX);
    }
    finish(fixture);
}

SNAPSHOT_TEST(a_board_that_is_cut_again_and_again_is_walked_to_its_end, 12) {
    /* Half of the board is walked between two cuts. */
    enum { MEMBERS = 12000, CUT = 5000 };
    struct registry_key *key = make_board(fixture, "walked");
    put_numbered(fixture, key, 0, MEMBERS);
    begin_snapshot(fixture);
    uint32_t cuts = 0;
    uint64_t walked = 0;
    while (cuts < 200 && fixture->snapshot.state == SNAPSHOT_WALKS) {
        step_and_turn(fixture);
        bool is_open = registry_walk_state(fixture->workload.registry, key) == REGISTRY_WALK_OPEN;
        if (is_open && fixture->snapshot.footer.member_count - walked >= MEMBERS / 2) {
            walked = fixture->snapshot.footer.member_count;
            registry_board_cut(fixture->workload.registry, key, MEMBERS - CUT, CUT);
            put_numbered(fixture, key, MEMBERS - CUT, MEMBERS);
            cuts++;
        }
    }
    assert_in_range(cuts, 1, 199);
    finish(fixture);
}
