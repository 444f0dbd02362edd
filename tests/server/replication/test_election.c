/* Decisions of failover at their borders. Random comparisons with the model: tests/model/run. */
#include "server/replication/term.h"

#include "tests/support/test.h"

static struct term term_of(uint64_t counter, uint64_t node) {
    const struct term none = TERM_NONE;
    struct term term = none;
    char digits[TERM_COUNTER_SIZE + TERM_NODE_SIZE + 1];
    snprintf(digits, sizeof digits, "%012llx%016llx", (unsigned long long)counter,
             (unsigned long long)node);
    memcpy(term.text, digits, sizeof digits - 1);
    return term;
}

static struct term_position at(uint64_t counter, uint64_t group) {
    return (struct term_position){.term = term_of(counter, 1), .group = group};
}

TEST(a_position_is_compared_by_term_before_group) {
    struct term_position old_long = at(1, 9), new_short = at(2, 3), new_long = at(2, 4);
    assert_true(term_position_compare(&old_long, &new_short) < 0);
    assert_true(term_position_compare(&new_long, &new_short) > 0);
    assert_int_equal(term_position_compare(&new_long, &new_long), 0);
}

TEST(any_quorum_of_votes_meets_any_of_acknowledgements) {
    for (uint32_t nodes = 2; nodes <= TERM_NODES_MAX; nodes++) {
        for (uint32_t replicas = 0; replicas < nodes; replicas++) {
            uint32_t needed = term_votes_needed(nodes, replicas);
            assert_true(needed >= 1 && needed + (replicas + 1) > nodes);
        }
    }
}

TEST(a_vote_is_upwards_remembered_and_not_held) {
    struct term two = term_of(2, 0), three = term_of(3, 0);
    assert_true(term_may_vote(&three, &two, false, false, 5, 10, 10));
    assert_true(term_may_vote(&two, &two, false, false, 5, 10, 10));
    assert_false(term_may_vote(&two, &three, false, false, 5, 10, 10));
    assert_false(term_may_vote(&three, &two, false, false, 5, 9, 10));
    assert_false(term_may_vote(&three, &two, true, false, 5, 10, 10));
    assert_true(term_may_vote(&three, &two, true, false, 0, 10, 10));
    assert_true(term_may_vote(&three, &two, true, true, 5, 10, 10));
}

TEST(only_the_term_voted_for_is_acknowledged) {
    struct term two = term_of(2, 0), three = term_of(3, 0);
    assert_true(term_may_take(&three, &two));
    assert_false(term_may_take(&two, &three));
    assert_true(term_may_ack(&two, &two, false));
    assert_false(term_may_ack(&three, &two, false));
    assert_false(term_may_ack(&two, &two, true));
}

TEST(a_group_is_safe_on_disk_and_at_so_many_others) {
    const uint64_t acks[] = {7, 3, 9};
    assert_int_equal(term_safe_group(100, acks, 3, 1, 1), 9);
    assert_int_equal(term_safe_group(100, acks, 3, 2, 1), 7);
    assert_int_equal(term_safe_group(100, acks, 3, 3, 1), 3);
    assert_int_equal(term_safe_group(5, acks, 3, 1, 1), 5);
    assert_int_equal(term_safe_group(100, acks, 1, 2, 1), 0);
    assert_int_equal(term_safe_group(100, acks, 0, 1, 1), 0);
    assert_int_equal(term_safe_group(100, acks, 3, 0, 1), 100);
    const uint64_t same[] = {4, 4};
    assert_int_equal(term_safe_group(100, same, 2, 2, 1), 4);
    /* The start mark is group 8. */
    assert_int_equal(term_safe_group(100, acks, 3, 1, 8), 9);
    assert_int_equal(term_safe_group(100, acks, 3, 2, 8), 0);
    assert_int_equal(term_safe_group(7, acks, 3, 1, 8), 0);
    assert_int_equal(term_safe_group(7, acks, 3, 0, 8), 0);
}

TEST(it_opens_with_votes_enough_and_the_longest_history) {
    struct term_position own = at(2, 5), voted[] = {at(2, 5), at(1, 9)}, longer = at(2, 6);
    assert_false(term_may_open(&own, NULL, 0, 3, 1, false, 0, 0));
    assert_true(term_may_open(&own, voted, 1, 3, 1, false, 0, 0));
    assert_true(term_may_open(&own, voted, 2, 3, 1, false, 0, 0));
    assert_false(term_may_open(&own, &longer, 1, 3, 1, false, 0, 0));
    assert_false(term_may_open(&own, voted, 1, 3, 1, true, 0, 0));
    assert_false(term_may_open(&own, voted, 1, 3, 1, false, 0, 1));
    assert_true(term_may_open(&own, NULL, 0, 3, 2, false, 0, 0));
}

TEST(nodes_without_anything_begin_only_together) {
    assert_true(term_may_begin(0, true, 2, 3, 0, 0));
    assert_false(term_may_begin(0, true, 1, 3, 0, 0));
    assert_false(term_may_begin(1, true, 2, 3, 0, 0));
    assert_false(term_may_begin(0, true, 2, 3, 0, 1));
}

TEST(who_was_released_counts_where_all_have_voted) {
    assert_true(term_all_count(true, true, 0, 2, 3));
    assert_false(term_all_count(true, true, 1, 1, 3));
    assert_true(term_all_count(false, false, 1, 2, 3));
    assert_false(term_all_count(false, false, 0, 2, 3));
    assert_false(term_all_count(true, false, 2, 2, 3));
}

TEST(the_lease_ends_before_the_hold) {
    const int64_t sent[] = {1000, 0, 1200};
    assert_int_equal(term_lease_end(sent, 3, 1, 500), 1700);
    assert_int_equal(term_lease_end(sent, 3, 2, 500), 1500);
    assert_int_equal(term_lease_end(sent, 3, 3, 500), 0);
    assert_int_equal(term_lease_end(sent, 0, 1, 500), 0);
    assert_true(term_hold_end(1200, 500) > 1700);
    assert_true(term_hold_end(0, 1) > 1);
}

TEST(terms_follow_each_other) {
    const struct term none = TERM_NONE;
    struct term first, second, last = term_of(TERM_COUNTER_MAX, 1);
    assert_true(term_next(&none, 0xab, UINT64_MAX, &first));
    assert_string_equal(first.text, "00000000000100000000000000abffffffffffff");
    assert_true(term_next(&first, 1, 0, &second));
    assert_true(term_compare(&second, &first) > 0);
    assert_int_equal(term_counter(&second), 2);
    assert_memory_equal(first.text + TERM_COUNTER_SIZE, "00000000000000ab", TERM_NODE_SIZE);
    struct term kept = second;
    assert_false(term_next(&last, 1, 0, &second));
    assert_string_equal(kept.text, second.text);
}

TEST(a_term_is_forty_hex_digits) {
    struct term term;
    assert_true(term_parse(BYTES("00000000000100000000000000abffffffffffff"), &term));
    assert_false(term_parse(BYTES("00000000000100000000000000abfffffffffff"), &term));
    assert_false(term_parse(BYTES("00000000000100000000000000abfffffffffffff"), &term));
    assert_false(term_parse(BYTES("00000000000100000000000000ABffffffffffff"), &term));
    assert_false(term_parse(BYTES("00000000000100000000000000 bffffffffffff"), &term));
}
