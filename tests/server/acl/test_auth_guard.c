/* The guard against guessing: addresses, delays, the table against a naive twin. */
#include "tests/support/test.h"

#include "server/acl/auth_guard.h"
#include "server/settings/settings.h"
#include "tests/support/random.h"

static struct auth_guard guard;
static struct settings settings;
static const struct bytes name = BYTES_INIT("zoe");

FIXTURE(begin) {
    memset(&guard, 0, sizeof guard);
    guard.seed = 7;
    settings.auth_delay_ms = 100;
    settings.auth_delay_max_ms = 5000;
    settings.auth_delay_after = 5;
    return 0;
}

static bool is_same(const char *a, const char *b) {
    struct auth_guard_address x = auth_guard_address(a);
    struct auth_guard_address y = auth_guard_address(b);
    return x.high == y.high && x.low == y.low;
}

TEST(an_address_is_one_of_ipv4_or_a_network_of_ipv6) {
    assert_true(is_same("10.0.0.9:50412", "10.0.0.9:1"));
    assert_false(is_same("10.0.0.9:50412", "10.0.0.8:50412"));
    assert_true(is_same("[2001:db8:1:2::1]:1", "[2001:db8:1:2:ffff::9]:2"));
    assert_false(is_same("[2001:db8:1:2::1]:1", "[2001:db8:1:3::1]:1"));
    assert_true(is_same("[::ffff:10.0.0.9]:1", "10.0.0.9:2"));
    assert_false(is_same("[::1]:1", "127.0.0.1:1"));
}

TEST(whatever_is_no_address_is_a_unix_socket) {
    static const char *const texts[] = {"/run/a:0", "",    ":0", "?:0",    "[x]:1",
                                        "10.0.0:1", "]:1", "[",  "1.2.3.4"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        assert_true(is_same(texts[i], "/tmp/other:0"));
    }
    char text[128];
    memset(text, '1', sizeof text - 1);
    text[100] = ':';
    text[sizeof text - 1] = '\0';
    assert_true(is_same(text, "/tmp/other:0"));
}

TEST_WITH(the_delay_begins_after_some_failures_and_doubles_up_to_its_limit, begin, NULL) {
    static const int64_t expected[] = {0, 0, 0, 0, 100, 200, 400, 800, 1600, 3200, 5000, 5000};
    struct auth_guard_address address = auth_guard_address("10.0.0.9:1");
    for (uint32_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        assert_int_equal(auth_guard_fail(&guard, address, name, 1000), i + 1);
        assert_int_equal(auth_guard_delay_ms(&guard, &settings, address, name, 1000), expected[i]);
    }
    assert_int_equal(
        auth_guard_delay_ms(&guard, &settings, auth_guard_address("10.0.0.8:1"), name, 1000), 0);
    settings.auth_delay_ms = 0;
    assert_int_equal(auth_guard_delay_ms(&guard, &settings, address, name, 1000), 0);
}

static void fail_times(struct auth_guard_address address, int count, int64_t now_ms) {
    for (int i = 0; i < count; i++) {
        (void)auth_guard_fail(&guard, address, name, now_ms);
    }
}

TEST_WITH(a_right_password_or_time_without_failures_ends_it, begin, NULL) {
    struct auth_guard_address address = auth_guard_address("10.0.0.9:1");
    fail_times(address, 6, 1000);
    int64_t later = 1000 + AUTH_GUARD_FORGET_MS;
    assert_int_equal(auth_guard_delay_ms(&guard, &settings, address, name, later - 1), 200);
    assert_int_equal(auth_guard_delay_ms(&guard, &settings, address, name, later), 0);
    assert_int_equal(auth_guard_fail(&guard, address, name, later), 1);
    fail_times(address, 6, later);
    auth_guard_pass(&guard, address, name);
    assert_int_equal(auth_guard_delay_ms(&guard, &settings, address, name, later), 0);
    assert_int_equal(auth_guard_fail(&guard, address, name, later), 1);
}

TEST_WITH(attempts_of_one_address_beyond_a_few_wait_in_turn, begin, NULL) {
    struct auth_guard_address address = auth_guard_address("10.0.0.9:1");
    struct auth_guard_address other = auth_guard_address("10.0.0.8:1");
    assert_int_equal(auth_guard_begin_wait(&guard, &settings, address, name, 1000), 0);
    fail_times(address, 5, 1000);
    fail_times(other, 5, 1000);
    for (int i = 0; i < 4 * AUTH_GUARD_ABREAST; i++) {
        assert_int_equal(auth_guard_begin_wait(&guard, &settings, address, name, 1000),
                         100 * (1 + i / AUTH_GUARD_ABREAST));
    }
    assert_int_equal(auth_guard_begin_wait(&guard, &settings, other, name, 1000), 100);
    for (int i = 0; i < 4 * AUTH_GUARD_ABREAST; i++) {
        auth_guard_end_wait(&guard, address);
    }
    assert_int_equal(auth_guard_begin_wait(&guard, &settings, address, name, 1000), 100);
}

/* ---- the twin: a list of all addresses ---- */

enum { TWIN_ADDRESSES = 40 };

static struct auth_guard_address twin_address(uint32_t index) {
    const char *text = formatted("10.1.%u.%u:1", index / 256, index % 256);
    return auth_guard_address(text);
}

/* Few enough addresses that none has to make room: then the table counts as a list does. */
TEST_WITH(random_failures_count_as_in_a_list, begin, NULL) {
    static struct {
        uint32_t failures;
        int64_t at_ms;
    } twin[TWIN_ADDRESSES];
    struct random random = random_begin(__func__);
    int64_t now_ms = 1;
    const char *reason = "";
    memset(twin, 0, sizeof twin);
    for (int step = 0; step < 100000; step++) {
        uint32_t index = (uint32_t)random_below(&random, TWIN_ADDRESSES);
        struct auth_guard_address address = twin_address(index);
        now_ms += (int64_t)random_below(&random, AUTH_GUARD_FORGET_MS / 20);
        bool is_old = now_ms - twin[index].at_ms >= AUTH_GUARD_FORGET_MS;
        if (random_below(&random, 4) == 0) {
            auth_guard_pass(&guard, address, name);
            twin[index].failures = 0;
        } else {
            twin[index].failures = is_old ? 1 : twin[index].failures + 1;
            twin[index].at_ms = now_ms;
            assert_int_equal(auth_guard_fail(&guard, address, name, now_ms), twin[index].failures);
        }
        if (step % 1000 == 0 && !auth_guard_validate(&guard, &reason)) {
            fail_msg("%s", reason);
        }
    }
}

TEST_WITH(a_full_table_forgets_those_that_failed_longest_ago, begin, NULL) {
    struct auth_guard_address last = {.high = 0};
    for (uint32_t i = 0; i < 5 * AUTH_GUARD_PLACES; i++) {
        last = auth_guard_address(formatted("10.%u.%u.%u:1", i >> 16 & 255, i >> 8 & 255, i & 255));
        assert_int_equal(auth_guard_fail(&guard, last, name, 1000 + i), 1);
    }
    ASSERT_VALID(auth_guard_validate, &guard);
    assert_int_equal(auth_guard_fail(&guard, last, name, 1000 + 5 * AUTH_GUARD_PLACES), 2);
    assert_int_equal(auth_guard_fail(&guard, auth_guard_address("10.0.0.0:1"), name, 99999999), 1);
    auth_guard_end_wait(&guard, auth_guard_address("10.0.0.1:1")); /* forgotten: nothing happens */
    ASSERT_VALID(auth_guard_validate, &guard);
}

TEST_WITH(an_attempt_that_cannot_wait_is_told_when_to_try_again, begin, NULL) {
    struct auth_guard_address address = auth_guard_address("10.0.0.7:50412");
    for (int i = 0; i < 6; i++) {
        assert_int_equal(auth_guard_retry_ms(&guard, &settings, address, name, 1000),
                         i < 5 ? 0 : 100);
        auth_guard_fail(&guard, address, name, 1000);
    }
    assert_int_equal(auth_guard_retry_ms(&guard, &settings, address, name, 1000), 200);
    assert_int_equal(auth_guard_retry_ms(&guard, &settings, address, name, 1150), 50);
    assert_int_equal(auth_guard_retry_ms(&guard, &settings, address, name, 1200), 0);
    auth_guard_fail(&guard, address, name, 1200);
    assert_int_equal(auth_guard_retry_ms(&guard, &settings, address, name, 1200), 400);
    auth_guard_pass(&guard, address, name);
    assert_int_equal(auth_guard_retry_ms(&guard, &settings, address, name, 1200), 0);
}
