/* PERIOD ... COPY: a server that is killed while an archive is copied, at every point of it, comes to a whole one. */
#include "tests/support/test.h"

#include <signal.h>

#include "tests/support/failing_disk.h"
#include "tests/support/restart_history.h"

enum { MEMBERS = 1000, STEP = 50 };

#define BEGIN_MS INT64_C(1795000000000) /* 2026-11-18T11:06:40Z */
#define END_MS   INT64_C(1795046400000) /* the end of that day */

struct plan {
    const char *settings;
    int steps;       /* of copying, before it is killed */
    bool is_saving;  /* a snapshot begins before */
    bool is_settled; /* what was changed is on disk */
};

static struct registry_key *find(const struct durable_server *durable, const char *name) {
    return registry_find(durable->server->registry, 0, bytes_from_text(name),
                         durable->server->clock.now_ms);
}

static void put(struct durable_server *durable, int from, int to) {
    bool is_new;
    struct board_options options = *workload_options('p');
    options.period = (struct period){.unit = PERIOD_DAY, .every = 1};
    options.archives_max = BOARD_ARCHIVES_ALL;
    options.copies = true;
    struct registry_key *key = registry_find_or_create_like(
        durable->server->registry, 0, BYTES("board"), &options, NULL, BEGIN_MS, &is_new);
    CHECK(key != NULL);
    for (int i = from; i < to; i++) {
        struct bytes name = bytes_from_text(formatted("member:%d", i));
        struct board_member member;
        board_look_up(&key->board, name, NULL, &member);
        CHECK(registry_board_put(durable->server->registry, key, &member, (uint64_t)(i % 7)) ==
              BOARD_OK);
    }
    durable_end_tick(durable);
}

static void step(struct durable_server *durable, int count) {
    for (int i = 0; i < count; i++) {
        (void)registry_roll_archive_step(durable->server->registry, durable->server->clock.now_ms,
                                         STEP);
        durable_end_tick(durable);
        durable_turn(durable);
    }
}

static void assert_same(const struct board *a, const struct board *b) {
    CHECK(board_count(a) == board_count(b));
    for (uint32_t rank = 0; rank < board_count(a); rank++) {
        struct board_stored of_a = board_at(a, rank);
        struct board_stored of_b = board_at(b, rank);
        CHECK(of_a.key == of_b.key && name_equal(of_a.member, of_b.member));
    }
}

static void copy_and_be_killed(const void *context) {
    const struct plan *plan = context;
    struct durable_server durable;
    quick_disk_begin();
    durable_start(&durable, history->directory, plan->settings);
    durable_set_time(&durable, BEGIN_MS);
    put(&durable, 0, MEMBERS);
    CHECK(durable_settle(&durable));
    if (plan->is_saving) {
        char error[PERSISTENCE_ERROR_MAX];
        CHECK(persistence_begin_snapshot(durable.persistence, error) == PERSISTENCE_OK);
    }
    durable_set_time(&durable, END_MS + 5);
    step(&durable, plan->steps);
    put(&durable, MEMBERS, MEMBERS + 10);
    if (plan->is_settled) {
        CHECK(durable_settle(&durable));
    }
    raise(SIGKILL);
}

/* The archive is there, or is made; once. It is the board, but for what has come behind it. */
static void look(const void *context) {
    const struct plan *plan = context;
    struct durable_server durable;
    quick_disk_begin();
    durable_start(&durable, history->directory, plan->settings);
    durable_set_time(&durable, END_MS + 10000);
    uint32_t count = board_count(&find(&durable, "board")->board);
    CHECK(!plan->is_settled || count == MEMBERS + 10);
    bool was_there = find(&durable, "board@2026-11-18") != NULL;
    step(&durable, 2 * MEMBERS / STEP);
    const struct registry_key *board = find(&durable, "board");
    const struct registry_key *archive = find(&durable, "board@2026-11-18");
    CHECK(archive != NULL && board != NULL);
    CHECK(registry_count(durable.server->registry, 0) == 2);
    CHECK(registry_options(board)->period_start_ms == END_MS);
    CHECK(board_count(&board->board) == count);
    if (was_there) {
        CHECK(board_count(&archive->board) >= MEMBERS);
    } else {
        assert_same(&board->board, &archive->board);
    }
    CHECK(durable_settle(&durable));
    raise(SIGKILL);
}

static void look_again(const void *context) {
    const struct plan *plan = context;
    ENDED_BY(durable_stop) struct durable_server durable;
    durable_start(&durable, history->directory, plan->settings);
    durable_set_time(&durable, END_MS + 20000);
    step(&durable, 1);
    CHECK(registry_count(durable.server->registry, 0) == 2);
    CHECK(board_count(&find(&durable, "board@2026-11-18")->board) >= MEMBERS);
}

TEST(killed_in_the_middle_of_a_copy_it_makes_it_again) {
    static const char *const settings[] = {
        "appendonly yes\nappendfsync always\n",
        "appendonly yes\nappendfsync everysec\nauto-aof-rewrite-percentage 1\n"
        "auto-aof-rewrite-min-size 1kb\n",
    };
    static const int steps[] = {0, 1, 7, 19, 20, 21, 22, 40};
    for (size_t i = 0; i < COUNT_OF(steps) * COUNT_OF(settings) * 2; i++) {
        const struct plan plan = {
            .settings = settings[i % 2],
            .steps = steps[i / 4],
            .is_saving = i / 2 % 2 != 0,
            .is_settled = i % 3 != 0,
        };
        test_row("%d steps, saving %d, settled %d", plan.steps, plan.is_saving, plan.is_settled);
        history_begin((struct random){.state = i});
        int status = history_run_process(copy_and_be_killed, &plan);
        if (!history_was_killed(status)) {
            history_show_printed();
            fail_msg("it ended with status %x", (unsigned)status);
        }
        status = history_run_process(look, &plan);
        if (!history_was_killed(status)) {
            history_show_printed();
            fail_msg("the next one ended with status %x", (unsigned)status);
        }
        history_assert_ended(history_run_process(look_again, &plan));
    }
}

TEST_MAIN(history_set_up, history_tear_down)
