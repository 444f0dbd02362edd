/* Subscriptions by themselves, against a table of who subscribes to what, with every allocation
 * failing in turn; and the order in which messages reach a client. */
#include "codec/glob.h"
#include "codec/memory.h"
#include "server/sessions/subscription.h"
#include "tests/support/harness.h"
#include "tests/support/random.h"

/* ---- against a table ---- */

enum { CLIENTS = 12, NAMES = 40 };

struct twin {
    struct subscriptions all;
    struct session *sessions[CLIENTS]; /* only their addresses count */
    struct subscription_list lists[CLIENTS];
    bool is_subscribed[CLIENTS][SUBSCRIPTION_KINDS][NAMES];
    struct random random;
};

static void name_of(enum subscription_kind kind, unsigned index, char *out) {
    static const char *const before[] = {"", "*", "chan?el:", "channel:", "*"};
    static const char *const after[] = {"*", "", "", "", NULL};
    if (kind != SUBSCRIPTION_PATTERN) {
        sprintf(out, "channel:%u", index);
    } else if (after[index % 5] == NULL) {
        strcpy(out, before[index % 5]);
    } else {
        sprintf(out, "%s%u%s", before[index % 5], index, after[index % 5]);
    }
}

struct receipts {
    struct twin *twin;
    unsigned plain[CLIENTS], by_pattern[CLIENTS];
};

static unsigned client_of(const struct twin *twin, const struct session *session) {
    for (unsigned i = 0; i < CLIENTS; i++) {
        if (twin->sessions[i] == session) {
            return i;
        }
    }
    fail_msg("no client's session");
    return 0;
}

static void receive(void *context, void *session, struct bytes pattern) {
    struct receipts *receipts = context;
    unsigned client = client_of(receipts->twin, session);
    (*(pattern.at != NULL ? &receipts->by_pattern[client] : &receipts->plain[client]))++;
}

/* The same pattern may have several indexes. */
static unsigned distinct_matches(const struct twin *twin, unsigned client, const char *channel) {
    unsigned count = 0;
    char names[NAMES][32];
    for (unsigned i = 0; i < NAMES; i++) {
        bool is_new = twin->is_subscribed[client][SUBSCRIPTION_PATTERN][i];
        name_of(SUBSCRIPTION_PATTERN, i, names[i]);
        for (unsigned before = 0; before < i && is_new; before++) {
            is_new = !twin->is_subscribed[client][SUBSCRIPTION_PATTERN][before] ||
                     strcmp(names[before], names[i]) != 0;
        }
        count += is_new && glob_matches(bytes_from_text(names[i]), bytes_from_text(channel));
    }
    return count;
}

static void check_message(struct twin *twin, enum subscription_kind kind, unsigned index) {
    struct receipts receipts = {.twin = twin};
    char channel[32];
    uint32_t subscriber_count = 0;
    name_of(kind, index, channel);
    subscription_each_receiver(&twin->all, kind, bytes_from_text(channel), receive, &receipts);
    for (unsigned i = 0; i < CLIENTS; i++) {
        assert_int_equal(receipts.plain[i], twin->is_subscribed[i][kind][index]);
        assert_int_equal(receipts.by_pattern[i],
                         kind == SUBSCRIPTION_SHARD ? 0 : distinct_matches(twin, i, channel));
        subscriber_count += twin->is_subscribed[i][kind][index];
    }
    assert_int_equal(subscription_subscriber_count(&twin->all, kind, bytes_from_text(channel)),
                     subscriber_count);
}

/* Patterns with equal texts are one. */
static void set(struct twin *twin, unsigned client, enum subscription_kind kind, unsigned index,
                bool is_subscribed) {
    char name[32];
    char other[32];
    name_of(kind, index, name);
    for (unsigned i = 0; i < NAMES; i++) {
        name_of(kind, i, other);
        if (strcmp(name, other) == 0) {
            twin->is_subscribed[client][kind][i] = is_subscribed;
        }
    }
}

static void clear_client(struct twin *twin, unsigned client, enum subscription_kind kind) {
    subscription_clear(&twin->all, &twin->lists[client], kind);
    memset(twin->is_subscribed[client][kind], 0, sizeof twin->is_subscribed[client][kind]);
}

static void change(struct twin *twin) {
    unsigned client = (unsigned)random_below(&twin->random, CLIENTS);
    enum subscription_kind kind =
        (enum subscription_kind)random_below(&twin->random, SUBSCRIPTION_KINDS);
    unsigned index = (unsigned)random_below(&twin->random, NAMES);
    char name[32];
    name_of(kind, index, name);
    switch (random_below(&twin->random, 24)) {
    case 0:
        clear_client(twin, client, kind);
        break;
    case 1:
        (void)subscription_free_step(&twin->all, 3);
        break;
    case 2:
    case 3:
    case 4:
    case 5:
    case 6:
    case 7:
        subscription_remove(&twin->all, &twin->lists[client], kind, bytes_from_text(name));
        set(twin, client, kind, index, false);
        break;
    default:
        assert_true(subscription_add(&twin->all, &twin->lists[client], twin->sessions[client], kind,
                                     bytes_from_text(name)));
        set(twin, client, kind, index, true);
    }
}

static void check_counts(const struct twin *twin) {
    uint32_t client_count = 0;
    for (unsigned i = 0; i < CLIENTS; i++) {
        bool is_used = false;
        for (unsigned kind = 0; kind < SUBSCRIPTION_KINDS; kind++) {
            is_used |= twin->lists[i].counts[kind] > 0;
        }
        assert_int_equal(is_used, subscription_list_is_used(&twin->lists[i]));
        client_count += is_used;
    }
    assert_int_equal(twin->all.client_count, client_count);
}

TEST(messages_reach_who_subscribes_and_nobody_else) {
    OWNED struct twin *twin = calloc(1, sizeof *twin);
    static char addresses[CLIENTS];
    assert_non_null(twin);
    twin->random = random_begin(__func__);
    twin->all.hash_seed = random_next(&twin->random);
    for (unsigned i = 0; i < CLIENTS; i++) {
        twin->sessions[i] = (struct session *)(void *)&addresses[i];
    }
    for (int i = 0; i < 6000; i++) {
        change(twin);
        unsigned index = (unsigned)random_below(&twin->random, NAMES);
        check_message(twin, i % 2 == 0 ? SUBSCRIPTION_CHANNEL : SUBSCRIPTION_SHARD, index);
        check_counts(twin);
        if (i % 16 == 0) {
            ASSERT_VALID(subscription_validate, &twin->all);
        }
    }
    for (unsigned i = 0; i < CLIENTS; i++) {
        for (unsigned kind = 0; kind < SUBSCRIPTION_KINDS; kind++) {
            clear_client(twin, i, (enum subscription_kind)kind);
        }
        assert_int_equal(twin->lists[i].memory_size, 0);
    }
    subscription_deinit(&twin->all);
}

TEST(many_subscriptions_of_one_client_are_freed_in_steps) {
    enum { MANY = 100000 };
    ENDED_BY(subscription_deinit) struct subscriptions all = {.hash_seed = 7};
    struct subscription_list list = {.memory_size = 0};
    struct session *session = (struct session *)(void *)&list;
    char name[32];
    for (unsigned i = 0; i < MANY; i++) {
        sprintf(name, "channel:%u", i);
        assert_true(
            subscription_add(&all, &list, session, SUBSCRIPTION_CHANNEL, bytes_from_text(name)));
    }
    assert_int_equal(list.counts[SUBSCRIPTION_CHANNEL], MANY);
    assert_in_range(list.memory_size, MANY * 100, MANY * 250);
    uint64_t live_count = memory_live_count();
    subscription_clear(&all, &list, SUBSCRIPTION_CHANNEL);
    assert_in_range(live_count - memory_live_count(), 1, 400);
    /* They are gone for everyone at once. */
    assert_int_equal(all.client_count, 0);
    assert_int_equal(list.memory_size, 0);
    assert_int_equal(subscription_topic_count(&all, SUBSCRIPTION_CHANNEL), 0);
    assert_int_equal(
        subscription_subscriber_count(&all, SUBSCRIPTION_CHANNEL, bytes_from_text(name)), 0);
    /* One who subscribes anew is not taken for the one before. */
    assert_true(
        subscription_add(&all, &list, session, SUBSCRIPTION_CHANNEL, bytes_from_text(name)));
    assert_int_equal(
        subscription_subscriber_count(&all, SUBSCRIPTION_CHANNEL, bytes_from_text(name)), 1);
    unsigned steps = 0;
    while (subscription_free_step(&all, 256)) {
        steps++;
    }
    assert_in_range(steps, MANY / 256 - 2, MANY / 256 + 2);
    ASSERT_VALID(subscription_validate, &all);
    subscription_clear(&all, &list, SUBSCRIPTION_CHANNEL);
}

/* ---- by bytes in and bytes out ---- */

SERVER_TEST(each_allocation_of_a_subscribe_fails_in_turn) {
    struct session *other = harness_connect(h);
    harness_run(h, other, "SUBSCRIBE c");
    for (uint32_t held = 0; held < 2; held++) {
        bool is_done = false;
        for (uint64_t nth = 1; !is_done; nth++) {
            assert_true(nth < 100);
            if (held == 1) {
                harness_run(h, s, "SUBSCRIBE a");
            }
            const char *reply = harness_run_failing(h, s, "SUBSCRIBE b c a b", nth);
            is_done = reply[0] == '*';
            if (!is_done) {
                assert_string_equal(reply, "-OOM out of memory\r\n");
            }
            assert_int_equal(s->subscriptions.counts[SUBSCRIPTION_CHANNEL], is_done ? 3 : held);
            assert_int_equal(
                subscription_topic_count(&h->server.subscriptions, SUBSCRIPTION_CHANNEL),
                is_done ? 3 : 1 + held);
            ASSERT_VALID(subscription_validate, &h->server.subscriptions);
            harness_run(h, s, "UNSUBSCRIBE");
        }
    }
    assert_int_equal(other->subscriptions.counts[SUBSCRIPTION_CHANNEL], 1);
}

SERVER_TEST(above_maxmemory_clients_may_subscribe_as_in_redis_but_not_to_any_number) {
    enum { MANY_NAMES = 200 };
    char line[16 + MANY_NAMES * 4] = "SUBSCRIBE";
    for (int i = 0; i < MANY_NAMES; i++) {
        snprintf(line + strlen(line), sizeof line - strlen(line), " %d", i % 100);
    }
    harness_run(h, s, "CONFIG SET maxmemory 1");
    harness_expect_prefix(h, s, line, "-OOM command not allowed");
    harness_expect_prefix(h, s, "SUBSCRIBE __sentinel__:hello", "*3\r\n");
    harness_expect_prefix(h, s, "PSUBSCRIBE n*", "*3\r\n");
    harness_expect_prefix(h, s, "SSUBSCRIBE n", "*3\r\n");
    harness_expect_prefix(h, s, line, "-OOM command not allowed");
    assert_int_equal(s->subscriptions.counts[SUBSCRIPTION_CHANNEL], 1);
    harness_expect_prefix(h, s, "UNSUBSCRIBE", "*3\r\n");
    harness_expect_prefix(h, s, "PUNSUBSCRIBE", "*3\r\n");
    harness_expect_prefix(h, s, "SUNSUBSCRIBE", "*3\r\n");
}

SERVER_TEST(a_client_gets_a_message_once_for_the_channel_and_once_for_each_pattern) {
    struct session *other = harness_connect(h);
    harness_run(h, s, "SUBSCRIBE news");
    harness_run(h, s, "PSUBSCRIBE n* *s");
    harness_expect(h, other, "PUBLISH news x", ":3\r\n");
    assert_string_equal(harness_output(s),
                        "*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$1\r\nx\r\n"
                        "*4\r\n$8\r\npmessage\r\n$2\r\nn*\r\n$4\r\nnews\r\n$1\r\nx\r\n"
                        "*4\r\n$8\r\npmessage\r\n$2\r\n*s\r\n$4\r\nnews\r\n$1\r\nx\r\n");
    s->protocol = 3;
    harness_expect(h, other, "SPUBLISH news x", ":0\r\n");
    harness_expect(h, other, "PUBLISH nes \"\\r\\n\"", ":2\r\n");
    assert_string_equal(harness_output(s),
                        ">4\r\n$8\r\npmessage\r\n$2\r\nn*\r\n$3\r\nnes\r\n$2\r\n\r\n\r\n"
                        ">4\r\n$8\r\npmessage\r\n$2\r\n*s\r\n$3\r\nnes\r\n$2\r\n\r\n\r\n");
}

SERVER_TEST(subscribers_are_shown_and_counted) {
    struct session *other = harness_connect(h);
    harness_run(h, s, "SUBSCRIBE a b");
    harness_run(h, s, "PSUBSCRIBE c*");
    harness_run(h, s, "SSUBSCRIBE d e f");
    const char *list = harness_run(h, other, "CLIENT LIST TYPE pubsub");
    assert_non_null(strstr(list, " flags=P db=0 sub=2 psub=1 ssub=3 "));
    assert_null(strstr(list, " flags=N "));
    assert_null(strstr(harness_run(h, other, "CLIENT LIST TYPE normal"), " flags=P "));
    harness_expect_part(h, other, "INFO", "\r\npubsub_clients:1\r\n");
    harness_expect_part(h, other, "INFO",
                        "\r\npubsub_channels:2\r\npubsub_patterns:1\r\n"
                        "pubsubshard_channels:3\r\n");
    harness_expect(h, other, "CLIENT KILL TYPE pubsub", ":1\r\n");
    assert_true(s->is_killed);
    harness_expect(h, other, "PUBLISH a x", ":1\r\n");
    assert_int_equal(s->output.size, 0);
}

SERVER_TEST(names_and_patterns_have_a_limit) {
    static char name[SUBSCRIPTION_NAME_MAX + 1];
    memset(name, '*', sizeof name);
    struct bytes args[] = {
        BYTES("PSUBSCRIBE"), BYTES("ok"), {.at = name, .size = GLOB_PATTERN_MAX + 1}};
    assert_string_equal(harness_run_args(h, s, args, 3),
                        "-ERR pattern is too long: at most 1024 bytes\r\n");
    assert_int_equal(s->subscriptions.memory_size, 0);
    args[2].size--;
    assert_true(harness_run_args(h, s, args, 3)[0] == '*');
    harness_run(h, s, "PUNSUBSCRIBE");
    args[2].size = sizeof name;
    args[0] = BYTES("SUBSCRIBE");
    assert_string_equal(harness_run_args(h, s, args, 3),
                        "-ERR channel name is too long: at most 65536 bytes\r\n");
    args[0] = BYTES("PUBLISH");
    args[1] = args[2];
    assert_string_equal(harness_run_args(h, s, args, 3),
                        "-ERR channel name is too long: at most 65536 bytes\r\n");
}
