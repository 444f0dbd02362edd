/* The quorum's beginning: without memory, and with what a file of votes says. What it does then is tried
 * by tests/model, tests/quorum and tests/integration/replication_memory.c. */
#include "server/replication/quorum.h"
#include "server/replication/replication.h"

#include "server/system/disk.h"
#include "tests/support/loop_server.h"
#include "tests/support/test.h"

#define SETTINGS "appendonly yes\nsync-replicas 1\nreplication-nodes 3\n"

static struct loop_server looped;
static int woken;

static void wake(void *context) {
    (void)context;
    woken++;
}

static struct replicator *replicator;

FIXTURE(set_up) {
    loop_begin_kept(&looped, SETTINGS);
    replicator = replicator_create(looped.server, &looped.loop, wake, NULL);
    assert_non_null(replicator);
    return 0;
}

FIXTURE(tear_down) {
    replicator_stop(replicator);
    loop_turn(&looped);
    replicator_destroy(replicator);
    loop_end(&looped);
    return 0;
}

static void end_quorum(struct quorum *quorum) {
    quorum_stop(quorum);
    loop_turn(&looped);
    quorum_destroy(quorum);
}

#define IN_FIXTURE(name) TEST_WITH(name, set_up, tear_down)

IN_FIXTURE(without_memory_there_is_none_and_nothing_is_left) {
    char error[DISK_ERROR_MAX];
    struct quorum *quorum = NULL;
    uint64_t refused_count = 0;
    uint64_t live_before = memory_live_count();
    while (quorum == NULL) {
        error[0] = '\0';
        memory_fail_at(refused_count + 1);
        quorum = quorum_create(looped.server, &looped.loop, error);
        memory_fail_at(0);
        if (quorum == NULL) {
            assert_string_equal(error, "out of memory");
            assert_int_equal(memory_live_count(), live_before);
            refused_count++;
        }
    }
    assert_int_equal(refused_count, 2);
    end_quorum(quorum);
    assert_int_equal(memory_live_count(), live_before);
}

/* What it says before it may save is what is on disk, and a start saves. */
IN_FIXTURE(it_keeps_its_number_and_its_votes_over_a_start) {
    char error[DISK_ERROR_MAX];
    struct sync_registration first, second;
    struct sync *sync = &looped.server->replication.sync;
    struct quorum *quorum = quorum_create(looped.server, &looped.loop, error);
    assert_non_null(quorum);
    assert_true(quorum_begin(quorum, error));
    quorum_describe(quorum, &first);
    assert_int_not_equal(first.node, 0);
    assert_true(first.has_lost_durability); /* it has nothing */
    assert_int_equal(sync->state, SYNC_CLOSED);
    struct loop_wait wait = {0};
    while (term_compare(&sync->voted, &sync->term) != 0) {
        assert_true(loop_turn_and_wait(&looped, &wait)); /* a term that is voted for is on disk */
    }
    assert_true(woken > 0);
    struct term voted = sync->voted;
    end_quorum(quorum);
    sync->state = SYNC_OFF;
    quorum = quorum_create(looped.server, &looped.loop, error);
    assert_non_null(quorum);
    assert_true(quorum_begin(quorum, error));
    quorum_describe(quorum, &second);
    assert_int_equal(second.node, first.node);
    assert_int_equal(term_compare(&second.voted, &voted), 0);
    assert_true(term_compare(&sync->term, &voted) > 0); /* each start takes a greater one */
    end_quorum(quorum);
}

/* A number that another start made must not be made again: a damaged file ends the start. */
IN_FIXTURE(a_damaged_file_ends_the_start) {
    char error[DISK_ERROR_MAX] = "";
    char path[DIRECTORY_PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/kept/leaderboard.promise", looped.directory);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("leaderboard.promise 1\nnode 0\n", file);
    assert_int_equal(fclose(file), 0);
    struct quorum *quorum = quorum_create(looped.server, &looped.loop, error);
    assert_non_null(quorum);
    assert_false(quorum_begin(quorum, error));
    assert_non_null(strstr(error, "leaderboard.promise"));
    end_quorum(quorum);
}

static void write_group(void) {
    int ann = loop_connect(&looped);
    loop_ask(&looped, ann, "ZADD k 1 m\r\nDEL k\r\n", ":1\r\n:1\r\n");
    struct loop_wait wait = {0};
    while (persistence_written_group(looped.persistence) <
           persistence_last_group(looped.persistence)) {
        assert_true(loop_turn_and_wait(&looped, &wait));
    }
    loop_close(&looped, ann);
}

#define TERM      "0000000000015f1c0d2b9a8e7f3491c2d0e4a7b3"
#define NEXT_TERM "0000000000025f1c0d2b9a8e7f3491c2d0e4a7b3"

/* It follows a master that is open in TERM, and has voted for that. */
static struct quorum *begin_following(void) {
    char error[DISK_ERROR_MAX], reason[REPLICATION_ERROR_MAX];
    struct quorum *quorum = quorum_create(looped.server, &looped.loop, error);
    assert_non_null(quorum);
    looped.server->replication.role = REPLICATION_REPLICA;
    assert_true(quorum_begin(quorum, error));
    quorum_begin_link(quorum);
    struct loop_wait wait = {0};
    while (quorum_take_answer(quorum, BYTES("+OPEN " TERM), reason) == QUORUM_WAIT) {
        quorum_begin_tick(quorum);
        assert_true(loop_turn_and_wait(&looped, &wait));
    }
    return quorum;
}

/* The clock of the server goes on while the machine is suspended. */
IN_FIXTURE(who_has_answered_a_probe_votes_when_its_clock_says_that_the_lease_is_over) {
    enum { LEASE_MS = 1000 };
    char reason[REPLICATION_ERROR_MAX];
    write_group();
    struct quorum *quorum = begin_following();
    const struct wire_probe ping = {.last_group = 1, .number = 1, .lease_ms = LEASE_MS};
    uint64_t kept, probe = 0;
    looped.server->replication.group = persistence_last_group(looped.persistence);
    quorum_take_ping(quorum, &ping);
    struct loop_wait wait = {0};
    while (!quorum_acknowledge(quorum, &kept, &probe) || probe == 0) {
        quorum_begin_tick(quorum);
        assert_true(loop_turn_and_wait(&looped, &wait)); /* how long it waits is on disk first */
    }
    assert_int_equal(quorum_take_answer(quorum, BYTES("+PREPARE " NEXT_TERM), reason), QUORUM_WAIT);
    assert_string_equal(quorum->wanted.voted.text, TERM);
    looped.harness->wall_us += LEASE_MS * 2 * 1000;
    assert_int_equal(quorum_take_answer(quorum, BYTES("+PREPARE " NEXT_TERM), reason), QUORUM_WAIT);
    assert_string_equal(quorum->wanted.voted.text, NEXT_TERM);
    looped.server->replication.role = REPLICATION_MASTER;
    end_quorum(quorum);
}

/* What is in memory alone it forgets again when its process ends. */
IN_FIXTURE(who_has_lost_durability_is_filled_by_what_its_journal_has) {
    struct replication *replication = &looped.server->replication;
    write_group();
    struct quorum *quorum = begin_following();
    uint64_t kept, probe, group = persistence_last_group(looped.persistence) + 1;
    quorum_doubt(quorum);
    const struct wire_probe ping = {.last_group = group, .number = 1};
    quorum_take_ping(quorum, &ping);
    replication->group = group; /* applied, and not yet in the journal */
    assert_false(quorum_acknowledge(quorum, &kept, &probe));
    assert_true(replication->sync.has_lost_durability);
    replication->role = REPLICATION_MASTER;
    replication->sync.state = SYNC_OFF;
    write_group();
    replication->role = REPLICATION_REPLICA;
    replication->sync.state = SYNC_REPLICA;
    assert_true(quorum_acknowledge(quorum, &kept, &probe));
    assert_int_equal(kept, group);
    assert_false(replication->sync.has_lost_durability);
    replication->role = REPLICATION_MASTER;
    end_quorum(quorum);
}
