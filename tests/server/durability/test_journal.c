/* The loop's side of the journal, alone: what it reports, and that its file holds exactly the
 * groups that were ended. The twin is a list of the effects of each tick. */
#include "tests/support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>

#include "codec/memory.h"
#include "server/durability/journal.h"
#include "server/system/log.h"
#include "tests/support/directory.h"
#include "tests/support/random.h"

enum { EFFECTS_MAX = 4096, ROUNDS = 300, LONG_NAME = 60000, LONG_EFFECTS = 90 };

static struct disk disk_here;
static atomic_bool is_full, fails_sync, fails_open;

static ssize_t write_here(int fd, const void *bytes, size_t size, off_t offset) {
    errno = ENOSPC;
    return is_full ? -1 : disk_system.write_at(fd, bytes, size, offset);
}

static int sync_here(int fd) {
    (void)fd;
    errno = EIO;
    return fails_sync ? -1 : 0;
}

static int open_here(int directory, const char *name, int flags, mode_t mode) {
    errno = ENOSPC;
    return fails_open && (flags & O_CREAT) != 0 && strstr(name, ".journal") != NULL
               ? -1
               : disk_system.open_at(directory, name, flags, mode);
}

struct fixture {
    char directory[DIRECTORY_PATH_MAX];
    uv_loop_t loop;
    struct store store;
    struct journal journal;
    uint64_t first_number;
    /* the twin: the key of each effect, and the group of each */
    uint64_t keys[EFFECTS_MAX];
    uint32_t count, ended_count;
};

static void ignore(void *context) {
    (void)context;
}

static void make_file(struct fixture *fixture, struct journal_file *file) {
    struct store_name name;
    struct store_state state = {.journal_count = 1};
    uint64_t first = fixture->journal.group + 1;
    fixture->first_number = store_take_number(&fixture->store);
    state.journals[0] =
        (struct store_journal){.number = fixture->first_number, .first_sequence = first};
    name = store_name(STORE_JOURNAL, fixture->first_number);
    assert_true(journal_file_create(file, fixture->store.directory, name.text, first));
    assert_int_equal(store_set(&fixture->store, &state), STORE_SET);
}

static int set_up(void **state) {
    char error[DISK_ERROR_MAX];
    struct journal_file file;
    struct fixture *fixture = calloc(1, sizeof *fixture);
    assert_non_null(fixture);
    log_set_level(LOG_WARNING);
    directory_make(fixture->directory);
    disk_here = disk_system;
    disk_here.write_at = write_here;
    disk_here.sync_contents = sync_here;
    disk_here.open_at = open_here;
    is_full = fails_sync = fails_open = false;
    disk = &disk_here;
    assert_int_equal(store_open(&fixture->store, fixture->directory, "kept", STORE_CREATE, error),
                     STORE_OK);
    assert_int_equal(uv_loop_init(&fixture->loop), 0);
    fixture->journal.store = &fixture->store;
    fixture->journal.changed = ignore;
    assert_true(journal_init(&fixture->journal, &fixture->loop));
    make_file(fixture, &file);
    journal_take_file(&fixture->journal, &file);
    *state = fixture;
    return 0;
}

static int tear_down(void **state) {
    struct fixture *fixture = *state;
    journal_deinit(&fixture->journal);
    assert_int_equal(uv_run(&fixture->loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(uv_loop_close(&fixture->loop), 0);
    store_close(&fixture->store);
    disk = &disk_system;
    directory_remove(fixture->directory);
    free(fixture);
    return 0;
}

#define FIXTURE_TEST(name) TEST_GIVEN(name, set_up, tear_down, struct fixture *fixture)

/* ---- the twin ---- */

static bool put(struct fixture *fixture, size_t name_size) {
    static char name[LONG_NAME];
    memset(name, 'x', sizeof name);
    struct effect effect = {.kind = EFFECT_PUT,
                            .name = BYTES("board"),
                            .member = {.at = name, .size = name_size},
                            .member_key = fixture->count};
    assert_true(fixture->count < EFFECTS_MAX);
    if (journal_is_full(&fixture->journal)) {
        journal_make_room(&fixture->journal);
    }
    fixture->keys[fixture->count++] = effect.member_key;
    return journal_add_effect(&fixture->journal, &effect);
}

static void end_tick(struct fixture *fixture, enum setting_appendfsync policy) {
    (void)journal_end_tick(&fixture->journal, 1, policy);
    fixture->ended_count = fixture->count;
    const struct journal *journal = &fixture->journal;
    assert_true(journal->synced_group <= journal->written_group &&
                journal->written_group <= journal->ended_group &&
                journal->ended_group <= journal->group);
}

/* The effects of one file follow those before it. Returns how many there are then. */
static uint32_t read_file(struct fixture *fixture, uint32_t index, uint32_t count) {
    static struct effect_decoder decoder;
    struct journal_reader reader;
    struct journal_group group;
    struct store_name name;
    const struct store_state *state = &fixture->store.state;
    const struct store_journal *journal = &state->journals[index];
    name = store_name(STORE_JOURNAL, journal->number);
    int fd = disk_open(fixture->store.directory, name.text, O_RDONLY, 0);
    assert_int_equal(journal_file_reader_open(&reader, fd, name.text, journal->first_sequence,
                                              index + 1 == state->journal_count),
                     JOURNAL_GROUP);
    enum journal_status status;
    while ((status = journal_file_reader_next(&reader, &group)) == JOURNAL_GROUP) {
        effect_bytes_decode_begin(&decoder,
                                  (struct bytes){.at = group.payload, .size = group.size});
        while (effect_bytes_decode(&decoder) == EFFECT_RECORD_EFFECT) {
            assert_true(count < fixture->ended_count);
            assert_int_equal(decoder.effect.member_key, fixture->keys[count++]);
        }
    }
    assert_int_equal(status, JOURNAL_END);
    journal_file_reader_close(&reader);
    return count;
}

static void expect_on_disk(struct fixture *fixture, uint32_t expected) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < fixture->store.state.journal_count; i++) {
        count = read_file(fixture, i, count);
    }
    assert_int_equal(count, expected);
}

/* ---- tests ---- */

FIXTURE_TEST(every_tick_is_one_group_and_is_read_again) {
    struct random random = random_begin(__func__);
    for (int i = 0; i < ROUNDS; i++) {
        for (uint64_t effects = random_below(&random, 4); effects > 0; effects--) {
            assert_true(put(fixture, 1 + random_below(&random, 40)));
        }
        bool has_effects = fixture->count > fixture->ended_count;
        uint64_t group = fixture->journal.group;
        end_tick(fixture, (enum setting_appendfsync)random_below(&random, 3));
        assert_int_equal(fixture->journal.group, group + has_effects);
        if (random_below(&random, 4) == 0) {
            uv_run(&fixture->loop, UV_RUN_NOWAIT);
        }
        if (random_below(&random, 20) == 0) {
            journal_second(&fixture->journal);
        }
        if (random_below(&random, 40) == 0) {
            assert_true(journal_flush(&fixture->journal, true));
            assert_int_equal(fixture->journal.synced_group, fixture->journal.group);
            expect_on_disk(fixture, fixture->count);
        }
    }
    assert_int_equal(journal_take_outcome(&fixture->journal), JOURNAL_NOTHING);
}

FIXTURE_TEST(a_tick_with_long_effects_is_linked_groups) {
    for (int i = 0; i < LONG_EFFECTS; i++) {
        assert_true(put(fixture, LONG_NAME));
        assert_int_equal(fixture->journal.ended_group, 0);
        assert_int_equal(fixture->journal.written_group, 0);
    }
    end_tick(fixture, SETTING_APPENDFSYNC_ALWAYS);
    assert_true(fixture->journal.group > 1);
    assert_true(journal_flush(&fixture->journal, true));
    expect_on_disk(fixture, LONG_EFFECTS);
}

FIXTURE_TEST(a_full_disk_is_tried_again) {
    is_full = true;
    assert_true(put(fixture, 10));
    end_tick(fixture, SETTING_APPENDFSYNC_EVERYSEC);
    assert_true(fixture->journal.is_stalled);
    assert_int_equal(fixture->journal.error, ENOSPC);
    assert_false(journal_flush(&fixture->journal, false));
    assert_int_equal(journal_take_outcome(&fixture->journal), JOURNAL_NOTHING);
    expect_on_disk(fixture, 0);
    is_full = false;
    journal_second(&fixture->journal);
    assert_true(journal_flush(&fixture->journal, true));
    assert_false(fixture->journal.is_stalled);
    expect_on_disk(fixture, 1);
}

FIXTURE_TEST(it_goes_on_in_a_new_file) {
    assert_true(put(fixture, 10));
    end_tick(fixture, SETTING_APPENDFSYNC_NO);
    journal_rotate(&fixture->journal);
    assert_true(put(fixture, 10));
    worker_wait(&fixture->journal.writer);
    assert_int_equal(journal_take_outcome(&fixture->journal), JOURNAL_ROTATED);
    assert_int_equal(journal_take_outcome(&fixture->journal), JOURNAL_NOTHING);
    end_tick(fixture, SETTING_APPENDFSYNC_NO);
    assert_true(journal_flush(&fixture->journal, true));
    assert_int_equal(fixture->store.state.journal_count, 2);
    assert_int_equal(read_file(fixture, 0, 0), 1);
    expect_on_disk(fixture, 2);
}

/* Puts until room is made, within a tick. */
static void put_more_than_there_is_room_for(struct fixture *fixture) {
    while (!journal_is_full(&fixture->journal)) {
        assert_true(put(fixture, LONG_NAME));
    }
    (void)put(fixture, LONG_NAME);
}

/* The end of the sync, which making room waits for, gives the writer the rotation. */
FIXTURE_TEST(room_is_made_while_a_new_file_waits_for_a_sync_of_everysec) {
    struct journal *journal = &fixture->journal;
    assert_true(put(fixture, 10));
    end_tick(fixture, SETTING_APPENDFSYNC_EVERYSEC);
    journal_second(journal);
    assert_true(journal->syncer.is_busy);
    journal_rotate(journal);
    end_tick(fixture, SETTING_APPENDFSYNC_ALWAYS);
    assert_false(journal->writer.is_busy);
    put_more_than_there_is_room_for(fixture);
    end_tick(fixture, SETTING_APPENDFSYNC_ALWAYS);
    assert_true(journal_flush(journal, true));
    assert_int_equal(journal_take_outcome(journal), JOURNAL_ROTATED);
    expect_on_disk(fixture, fixture->count);
}

FIXTURE_TEST(nothing_is_tried_again_on_a_disk_that_has_failed_meanwhile) {
    struct journal *journal = &fixture->journal;
    assert_true(put(fixture, 10));
    end_tick(fixture, SETTING_APPENDFSYNC_EVERYSEC);
    fails_sync = true;
    journal_second(journal);
    is_full = true;
    assert_true(put(fixture, 10));
    end_tick(fixture, SETTING_APPENDFSYNC_EVERYSEC); /* by the writer: the syncer is busy */
    worker_wait(&journal->writer);
    assert_true(journal->is_stalled);
    is_full = false;
    put_more_than_there_is_room_for(fixture);
    assert_int_equal(journal_take_outcome(journal), JOURNAL_IS_LOST);
    worker_wait(&journal->writer);
    expect_on_disk(fixture, 1);
}

FIXTURE_TEST(without_a_new_file_the_old_one_goes_on) {
    fails_open = true;
    journal_rotate(&fixture->journal);
    worker_wait(&fixture->journal.writer);
    assert_int_equal(journal_take_outcome(&fixture->journal), JOURNAL_NOT_ROTATED);
    assert_true(put(fixture, 10));
    end_tick(fixture, SETTING_APPENDFSYNC_ALWAYS);
    assert_true(journal_flush(&fixture->journal, true));
    assert_int_equal(fixture->store.state.journal_count, 1);
    expect_on_disk(fixture, 1);
}

FIXTURE_TEST(a_sync_that_fails_loses_it_until_it_is_ended) {
    struct journal *journal = &fixture->journal;
    fails_sync = true;
    assert_true(put(fixture, 10));
    end_tick(fixture, SETTING_APPENDFSYNC_ALWAYS);
    assert_false(journal_flush(journal, true));
    for (int i = 0; i < 2; i++) {
        assert_int_equal(journal_take_outcome(journal), JOURNAL_IS_LOST);
    }
    assert_int_equal(journal->loss, JOURNAL_LOSS_OF_DISK);
    assert_int_equal(journal->error, EIO);
    assert_int_equal(journal->synced_group, 0);
    assert_false(put(fixture, 10));
    end_tick(fixture, SETTING_APPENDFSYNC_ALWAYS);
    journal_end(journal);
    assert_int_equal(journal->state, JOURNAL_OFF);
    assert_int_equal(journal_take_outcome(journal), JOURNAL_NOTHING);
    assert_int_equal(journal->group, 2); /* it counts on */
}

/* It may be on disk or not; a restart could not tell. */
FIXTURE_TEST(a_group_whose_sync_failed_is_taken_out_of_the_file) {
    assert_true(put(fixture, 10));
    end_tick(fixture, SETTING_APPENDFSYNC_ALWAYS);
    assert_true(journal_flush(&fixture->journal, true));
    fails_sync = true;
    assert_true(put(fixture, 10));
    end_tick(fixture, SETTING_APPENDFSYNC_ALWAYS);
    assert_false(journal_flush(&fixture->journal, true));
    expect_on_disk(fixture, 1);
}

/* A batch that ends linked is not synced: the groups before the link are not answered for. */
FIXTURE_TEST(so_are_those_before_it_that_waited_for_the_same_sync) {
    struct journal *journal = &fixture->journal;
    for (int i = 0; i < 2; i++) { /* the second one waits while the first one is written */
        assert_true(put(fixture, 10));
        journal_end_group(journal, 1, SETTING_APPENDFSYNC_ALWAYS);
    }
    while (journal->written_group < 1) { /* until a part of this command is handed over */
        assert_true(put(fixture, LONG_NAME));
    }
    worker_wait(&journal->writer);
    assert_true(journal->file.kept_size > journal->file.answered_size);
    fails_sync = true;
    end_tick(fixture, SETTING_APPENDFSYNC_ALWAYS);
    assert_false(journal_flush(journal, true));
    expect_on_disk(fixture, 1);
}

FIXTURE_TEST(effects_that_are_too_long_for_a_full_disk_lose_it) {
    is_full = true;
    bool is_taken = true;
    for (int i = 0; i < EFFECTS_MAX && is_taken; i++) {
        is_taken = put(fixture, LONG_NAME);
    }
    assert_false(is_taken);
    assert_int_equal(journal_take_outcome(&fixture->journal), JOURNAL_IS_LOST);
    assert_int_equal(fixture->journal.loss, JOURNAL_LOSS_OF_EFFECTS);
    end_tick(fixture, SETTING_APPENDFSYNC_NO);
    expect_on_disk(fixture, 0);
}

FIXTURE_TEST(what_is_buffered_goes_to_the_file_that_it_gets) {
    struct journal *journal = &fixture->journal;
    struct journal_file file;
    journal_end(journal);
    make_file(fixture, &file);
    journal_begin(journal);
    assert_true(put(fixture, 10));
    end_tick(fixture, SETTING_APPENDFSYNC_EVERYSEC);
    assert_int_equal(journal->written_group, 0);
    assert_false(journal_flush(journal, false));
    journal_take_file(journal, &file);
    assert_true(journal_flush(journal, true));
    assert_int_equal(journal->synced_group, 1);
    expect_on_disk(fixture, 1);
}
