/* leaderboard.promise: what is written is read, and nothing else is. */
#include "server/replication/quorum.h"

#include "tests/support/directory_test.h"
#include "tests/support/failing_disk.h"
static char error[DISK_ERROR_MAX];

static struct vote some_vote(void) {
    struct vote vote = {
        .node = 0x5f1c0d2b9a8e7f34,
        .voted = {"00000000000a5f1c0d2b9a8e7f3491c2d0e4a7b3"},
        .left = VOTE_LEFT_DURABLE,
        .group = 81250,
        .lease_ms = 1000,
    };
    quorum_vote_read_boot(vote.boot);
    return vote;
}

static void assert_same(const struct vote *a, const struct vote *b) {
    char a_text[VOTE_TEXT_MAX], b_text[VOTE_TEXT_MAX];
    a_text[quorum_vote_print(a, a_text)] = '\0';
    b_text[quorum_vote_print(b, b_text)] = '\0';
    assert_string_equal(a_text, b_text);
}

DIRECTORY_TEST(what_is_saved_is_loaded) {
    struct vote saved = some_vote(), loaded;
    assert_int_equal(quorum_vote_load(directory, &loaded, error), VOTE_MISSING);
    for (int left = 0; left < VOTE_LEFTS; left++) {
        saved.left = (enum vote_left)left;
        saved.group++;
        assert_true(quorum_vote_save(directory, &saved));
        assert_int_equal(quorum_vote_load(directory, &loaded, error), VOTE_OK);
        assert_same(&loaded, &saved);
    }
}

TEST(every_changed_byte_and_every_cut_is_found) {
    char text[VOTE_TEXT_MAX];
    struct vote vote = some_vote(), parsed;
    size_t size = quorum_vote_print(&vote, text);
    assert_true(quorum_vote_parse((struct bytes){.at = text, .size = size}, &parsed));
    for (size_t at = 0; at < size; at++) {
        assert_false(quorum_vote_parse((struct bytes){.at = text, .size = at}, &parsed));
        for (int bit = 0; bit < 8; bit++) {
            text[at] ^= (char)(1 << bit);
            assert_false(quorum_vote_parse((struct bytes){.at = text, .size = size}, &parsed));
            text[at] ^= (char)(1 << bit);
        }
    }
    text[size] = '\n';
    assert_false(quorum_vote_parse((struct bytes){.at = text, .size = size + 1}, &parsed));
}

DIRECTORY_TEST(a_damaged_file_is_named) {
    struct vote vote;
    file_write(directory_join(directory, "leaderboard.promise"), "leaderboard promise 1\n", 22);
    assert_int_equal(quorum_vote_load(directory, &vote, error), VOTE_DAMAGED);
    assert_non_null(strstr(error, "leaderboard.promise"));
}

TEST(a_boot_has_its_size_and_stays) {
    char first[VOTE_BOOT_SIZE + 1], second[VOTE_BOOT_SIZE + 1];
    quorum_vote_read_boot(first);
    quorum_vote_read_boot(second);
    assert_int_equal(strlen(first), VOTE_BOOT_SIZE);
    assert_string_equal(first, second);
}

/* Whichever call of the disk fails: the file is the old one or the new one, and whole. */
DIRECTORY_TEST(a_failing_disk_leaves_the_old_or_the_new_vote) {
    struct vote old = some_vote(), loaded;
    struct vote next = old;
    next.voted.text[11] = 'b';
    for (int failure = FAILURE_EIO; failure <= FAILURE_CRASH; failure++) {
        bool is_over = false;
        for (uint64_t nth = 1; !is_over; nth++) {
            assert_true(quorum_vote_save(directory, &old));
            failing_disk_begin((enum failure)failure, nth);
            bool is_saved = quorum_vote_save(directory, &next);
            is_over = failing_disk_end() < nth;
            assert_int_equal(quorum_vote_load(directory, &loaded, error), VOTE_OK);
            bool is_new = term_compare(&loaded.voted, &next.voted) == 0;
            assert_true(is_new || term_compare(&loaded.voted, &old.voted) == 0);
            assert_true(!is_saved || is_new);
            assert_true(!is_over || is_saved);
        }
    }
}
