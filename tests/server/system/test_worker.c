/* A thread that runs one job at a time: its guarantees to the loop. */
#include "tests/support/test.h"

#include "server/system/worker.h"

struct fixture {
    uv_loop_t loop;
    uv_timer_t alive; /* a loop without active handles does not turn */
    struct worker worker;
    uv_thread_t loop_thread;
    /* Owned by the job, from worker_start to done. */
    uint32_t run_count;
    bool is_elsewhere; /* it ran on another thread */
    char work[4096];
    /* Owned by the loop. */
    uint32_t done_count;
    uint32_t wanted; /* jobs that done starts */
    /* Jobs wait for this if a test wants them to. */
    uv_sem_t may_go_on;
};

static void on_alive(uv_timer_t *timer) {
    (void)timer;
}

static void begin_with(struct fixture *fixture, worker_run *done) {
    memset(fixture, 0, sizeof *fixture);
    fixture->loop_thread = uv_thread_self();
    assert_int_equal(uv_loop_init(&fixture->loop), 0);
    assert_int_equal(uv_timer_init(&fixture->loop, &fixture->alive), 0);
    assert_int_equal(uv_timer_start(&fixture->alive, on_alive, 1000000, 0), 0);
    assert_int_equal(uv_sem_init(&fixture->may_go_on, 0), 0);
    assert_true(worker_init(&fixture->worker, &fixture->loop, WORKER_AS_THE_LOOP, done, fixture));
}

static void end(struct fixture *fixture) {
    worker_deinit(&fixture->worker);
    assert_false(fixture->worker.is_closed);
    uv_close((uv_handle_t *)&fixture->alive, NULL);
    assert_int_equal(uv_run(&fixture->loop, UV_RUN_DEFAULT), 0);
    assert_true(fixture->worker.is_closed);
    assert_int_equal(uv_loop_close(&fixture->loop), 0);
    uv_sem_destroy(&fixture->may_go_on);
}

static void run(void *context) {
    struct fixture *fixture = context;
    uv_thread_t self = uv_thread_self();
    fixture->is_elsewhere = !uv_thread_equal(&self, &fixture->loop_thread);
    fixture->run_count++;
    memset(fixture->work, (int)fixture->run_count, sizeof fixture->work);
}

static void run_when_told(void *context) {
    struct fixture *fixture = context;
    uv_sem_wait(&fixture->may_go_on);
    run(fixture);
}

/* Every job has ended before done, which is called on the loop's thread, once per job. */
static void on_done(void *context) {
    struct fixture *fixture = context;
    uv_thread_t self = uv_thread_self();
    assert_true(uv_thread_equal(&self, &fixture->loop_thread));
    assert_false(fixture->worker.is_busy);
    fixture->done_count++;
    assert_int_equal(fixture->run_count, fixture->done_count);
    for (size_t i = 0; i < sizeof fixture->work; i++) {
        assert_int_equal(fixture->work[i], (char)fixture->run_count);
    }
    if (fixture->done_count < fixture->wanted) {
        worker_start(&fixture->worker, run);
    }
}

static void turn_until_done(struct fixture *fixture, uint32_t count) {
    while (fixture->done_count < count) {
        uv_run(&fixture->loop, UV_RUN_NOWAIT);
    }
}

TEST(a_job_runs_in_another_thread_and_ends_on_the_loop) {
    struct fixture fixture;
    begin_with(&fixture, on_done);
    worker_start(&fixture.worker, run);
    assert_true(fixture.worker.is_busy);
    turn_until_done(&fixture, 1);
    assert_true(fixture.is_elsewhere);
    assert_false(fixture.worker.is_busy);
    end(&fixture);
    assert_int_equal(fixture.done_count, 1);
}

TEST(the_loop_turns_while_a_job_waits) {
    ENDED_BY(end) struct fixture fixture;
    begin_with(&fixture, on_done);
    worker_start(&fixture.worker, run_when_told);
    for (int i = 0; i < 100; i++) {
        uv_run(&fixture.loop, UV_RUN_NOWAIT);
    }
    assert_int_equal(fixture.done_count, 0);
    assert_true(fixture.worker.is_busy);
    uv_sem_post(&fixture.may_go_on);
    turn_until_done(&fixture, 1);
}

TEST(a_worker_alone_does_not_keep_the_loop_alive) {
    struct fixture fixture;
    begin_with(&fixture, on_done);
    uv_timer_stop(&fixture.alive);
    assert_int_equal(uv_run(&fixture.loop, UV_RUN_DEFAULT), 0);
    worker_start(&fixture.worker, run_when_told);
    assert_int_equal(uv_run(&fixture.loop, UV_RUN_DEFAULT), 0);
    uv_sem_post(&fixture.may_go_on);
    end(&fixture);
    assert_int_equal(fixture.done_count, 1);
}

TEST(jobs_run_one_after_the_other) {
    ENDED_BY(end) struct fixture fixture;
    begin_with(&fixture, on_done);
    fixture.wanted = 2000;
    worker_start(&fixture.worker, run);
    turn_until_done(&fixture, 2000);
    assert_int_equal(fixture.run_count, 2000);
}

TEST(waiting_ends_the_job_and_those_that_it_brings) {
    ENDED_BY(end) struct fixture fixture;
    begin_with(&fixture, on_done);
    worker_wait(&fixture.worker); /* no job: returns at once */
    assert_int_equal(fixture.done_count, 0);
    for (uint32_t i = 1; i <= 500; i++) {
        worker_start(&fixture.worker, run);
        worker_wait(&fixture.worker);
        assert_int_equal(fixture.done_count, i);
    }
    fixture.wanted = 700;
    worker_start(&fixture.worker, run);
    worker_wait(&fixture.worker);
    assert_int_equal(fixture.done_count, 700);
    assert_false(fixture.worker.is_busy);
    /* A pending wake-up of the thread does not end a job twice. */
    uv_run(&fixture.loop, UV_RUN_NOWAIT);
    assert_int_equal(fixture.done_count, 700);
}

TEST(a_late_wake_up_does_not_end_the_next_job) {
    ENDED_BY(end) struct fixture fixture;
    begin_with(&fixture, on_done);
    for (uint32_t i = 0; i < 200; i++) {
        /* The first job's wake-up is still pending when the second one waits. */
        worker_start(&fixture.worker, run);
        worker_wait(&fixture.worker);
        worker_start(&fixture.worker, run_when_told);
        uv_run(&fixture.loop, UV_RUN_NOWAIT);
        assert_int_equal(fixture.done_count, 2 * i + 1);
        assert_true(fixture.worker.is_busy);
        uv_sem_post(&fixture.may_go_on);
        turn_until_done(&fixture, 2 * i + 2);
    }
}

TEST(the_end_waits_for_the_job) {
    struct fixture fixture;
    for (int i = 0; i < 50; i++) {
        begin_with(&fixture, on_done);
        worker_start(&fixture.worker, run_when_told);
        uv_sem_post(&fixture.may_go_on);
        end(&fixture);
        assert_int_equal(fixture.run_count, 1);
        assert_int_equal(fixture.done_count, 1);
    }
}

TEST(a_worker_that_steps_behind_does_its_jobs_too) {
    ENDED_BY(end) struct fixture fixture;
    begin_with(&fixture, on_done);
    worker_deinit(&fixture.worker);
    uv_run(&fixture.loop, UV_RUN_NOWAIT);
    assert_true(worker_init(&fixture.worker, &fixture.loop, WORKER_BEHIND, on_done, &fixture));
    fixture.wanted = 100;
    worker_start(&fixture.worker, run);
    turn_until_done(&fixture, 100);
}

TEST(an_end_before_the_first_job_or_twice_is_fine) {
    struct fixture fixture;
    begin_with(&fixture, on_done);
    worker_deinit(&fixture.worker);
    end(&fixture);
    struct worker never = {.is_started = false};
    worker_deinit(&never);
    worker_wait(&never);
}

static struct fixture two[2];

static void start_the_other(void *context) {
    struct fixture *fixture = context;
    fixture->done_count++;
    if (fixture == &two[0]) {
        worker_start(&two[1].worker, run);
    }
}

TEST(workers_do_not_disturb_each_other) {
    begin_with(&two[0], start_the_other);
    begin_with(&two[1], start_the_other);
    for (uint32_t i = 1; i <= 300; i++) {
        worker_start(&two[0].worker, run);
        while (two[1].done_count < i) {
            uv_run(&two[0].loop, UV_RUN_NOWAIT);
            uv_run(&two[1].loop, UV_RUN_NOWAIT);
        }
        assert_int_equal(two[0].done_count, i);
    }
    end(&two[1]);
    end(&two[0]);
}
