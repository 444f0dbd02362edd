/* Clients that wait for members of boards, beside redis-server and by themselves. Boards here never
 * hold equal scores. */
#include "tests/support/test.h"

#include <unistd.h>

#include "tests/support/random.h"
#include "tests/support/stage.h"

TEST(arguments_are_read_as_redis_reads_them) {
    STAGE(stage, 2, NULL);
    STAGE_STEPS(&stage, 0, "BZPOPMIN", "BZPOPMIN k", "BZPOPMIN k x", "BZPOPMIN k -1",
                "BZPOPMIN k -0.002", "BZPOPMIN k 1e400", "BZPOPMIN k nan", "BZPOPMIN k inf",
                "BZPOPMIN k -inf", "BZPOPMIN k 1e18", "BZPOPMIN k \"\"", "BZPOPMIN k \" 1\"",
                "BZPOPMIN k \"1 \"", "BZPOPMIN k 0x0.01p0", "BZPOPMIN k 1e-5", "BZPOPMAX k 0.002",
                "BZPOPMAX k 1e5000", "BZMPOP 0 0 k MIN", "BZMPOP x 1 k MIN", "BZMPOP 0 1 k",
                "BZMPOP 0.01 1 k MIN COUNT 0", "BZMPOP 0.01 1 k MIN COUNT 2 X",
                "BZMPOP 0.01 2 k MIN", "BZMPOP 0.01 1 k MID", "BZMPOP 0.01 a k MIN",
                "BZMPOP 0.01 1 k MIN", "BZMPOP -1 1 k MIN COUNT a",
                "BZMPOP -1 1 k MIN COUNT 1 COUNT 1", "BZMPOP -1 1 k MIN", "CLIENT UNBLOCK",
                "CLIENT UNBLOCK x", "CLIENT UNBLOCK 99", "CLIENT UNBLOCK 99 FOO",
                "CLIENT UNBLOCK x FOO", "CLIENT UNBLOCK 99 error");
}

TEST(who_finds_a_member_does_not_wait) {
    STAGE(stage, 2, NULL);
    for (int side = 0; side < 2; side++) {
        wire_check_prefix(&stage.wires[side][1], "HELLO 3", "{server ");
    }
    for (int client = 0; client < 2; client++) {
        STAGE_STEPS(&stage, client, "ZADD z 1 a 2 b 3 c 4 d 7 e", "BZPOPMIN k z 0",
                    "BZPOPMAX k z 0", "BZMPOP 0 2 k z MIN", "BZMPOP 0 2 z k MAX COUNT 9",
                    "EXISTS z", "MULTI;BZPOPMIN z 0;ZADD z 1 a;BZPOPMIN z 0;BZMPOP 0 1 z MIN;EXEC",
                    "CLIENT REPLY SKIP;BZPOPMIN z 0.01", "BZPOPMIN z 0.01", "BZMPOP 0.01 1 z MIN");
    }
}

TEST(whoever_waits_is_served_as_redis_serves) {
    STAGE(stage, 4, NULL);
    stage_wait(&stage, 1, "BZPOPMIN q q r 0");
    stage_wait(&stage, 2, "BZMPOP 0 2 r q MAX COUNT 2");
    stage_wait(&stage, 3, "BZPOPMAX r 0");
    STAGE_STEPS(&stage, 0, "ZADD other 1 a", "ZADD r 1 a 2 b 3 c 5 e", "ZCARD r");
    for (int i = 1; i < 4; i++) {
        (void)stage_woken(&stage, i);
    }
    /* In a transaction nobody is served before its end. */
    stage_wait(&stage, 1, "BZPOPMIN q 0");
    stage_step(&stage, 0, "MULTI;ZADD q 1 a;ZCARD q;DEL q;EXEC");
    assert_true(stage_still_waits(&stage, 1));
    stage_step(&stage, 0, "MULTI;ZADD q 1 a;ZADD q 2 b;ZREM q a;EXEC;ZCARD q");
    assert_string_equal(stage_woken(&stage, 1), "[q b 2]");
    /* The keys in the order in which they changed, not in which they were named. */
    stage_wait(&stage, 1, "BZPOPMIN q r 0");
    stage_step(&stage, 0, "MULTI;ZADD r 1 a;ZADD q 1 a;EXEC;ZCARD q;ZCARD r;DEL q");
    (void)stage_woken(&stage, 1);
    static const char *const making[] = {
        "ZADD x 1 a 2 b;RENAME x q;ZCARD q;DEL q",
        "ZADD x 1 a 2 b;COPY x q;ZCARD q;DEL q x",
        "ZADD x 1 a 2 b;ZUNIONSTORE q 1 x;ZCARD q;DEL q x",
        "ZADD x 1 a 2 b;ZRANGESTORE q x 0 -1;ZCARD q;DEL q x",
        "ZADD x 1 a 2 b;ZDIFFSTORE q 1 x;ZCARD q;DEL q x",
        "ZINCRBY q 5 a;ZCARD q",
    };
    for (size_t i = 0; i < sizeof making / sizeof making[0]; i++) {
        stage_wait(&stage, 1, "BZPOPMIN q 0");
        stage_step(&stage, 0, "DEL q;SELECT 1;ZADD q 1 other;DEL q;SELECT 0;EXISTS q");
        assert_true(stage_still_waits(&stage, 1));
        stage_step(&stage, 0, making[i]);
        (void)stage_woken(&stage, 1);
    }
    stage_wait(&stage, 1, "BZPOPMIN q 0");
    STAGE_STEPS(&stage, 0, "FLUSHALL", "EXPIRE q 1", "ZREM q a", "SELECT 1;ZADD q 1 a;SELECT 0");
    assert_true(stage_still_waits(&stage, 1));
    STAGE_STEPS(&stage, 0, "SELECT 1;COPY q q DB 0;SELECT 0;EXISTS q");
    (void)stage_woken(&stage, 1);
}

static int64_t id_of(struct stage *stage, int side, int client) {
    char name[32];
    snprintf(name, sizeof name, " name=client%d ", client);
    const char *list = wire_ask(&stage->witnesses[side], "CLIENT LIST");
    const char *at = strstr(list, name);
    assert_non_null(at);
    while (at > list && strncmp(at, "id=", 3) != 0) {
        at--;
    }
    return strtoll(at + 3, NULL, 10);
}

static void unblock(struct stage *stage, int client, const char *reason, const char *expected) {
    for (int side = 0; side < 2; side++) {
        wire_check(
            &stage->witnesses[side],
            formatted("CLIENT UNBLOCK %lld%s", (long long)id_of(stage, side, client), reason),
            expected);
    }
}

TEST(waiting_ends_otherwise_too) {
    STAGE(stage, 3, NULL);
    for (int side = 0; side < 2; side++) {
        wire_check_prefix(&stage.wires[side][2], "HELLO 3", "{server ");
    }
    for (int client = 1; client < 3; client++) {
        stage_wait(&stage, client, "BZPOPMIN q 0");
        unblock(&stage, client, "", ":1");
        (void)stage_woken(&stage, client);
        unblock(&stage, client, "", ":0");
        stage_wait(&stage, client, "BZMPOP 1000 1 q MIN");
        unblock(&stage, client, " timeout", ":1");
        (void)stage_woken(&stage, client);
        stage_wait(&stage, client, "BZMPOP 0 1 q MIN");
        unblock(&stage, client, " ERROR", ":1");
        assert_string_equal(stage_woken(&stage, client),
                            "-UNBLOCKED client unblocked via CLIENT UNBLOCK");
        stage_step(&stage, client, "BZPOPMAX q 0.3");
        /* Requests that follow run afterwards, in order. */
        stage_step(&stage, client, "BZPOPMAX q 0.1;ZADD p 1 a;ZCARD p;BZPOPMIN p 0;EXISTS p");
        /* CLIENT REPLY SKIP: it is served and hears nothing. */
        stage_wait(&stage, client, "CLIENT REPLY SKIP;BZPOPMIN q 0;PING end");
        stage_step(&stage, 0, "ZADD q 1 a;EXISTS q");
        assert_string_equal(stage_woken(&stage, client), "end");
    }
}

/* Clients wait for random keys, and one changes them at random. */
TEST(random_waiting_is_as_in_redis) {
    enum { CLIENTS = 7, KEYS = 4 };
    struct random random = random_begin(__func__);
    int steps = is_short_run() ? 800 : 20000;
    uint64_t score = 1;
    uint64_t served = 0;
    STAGE(stage, CLIENTS, "io-threads 2\nappendonly yes\n");
    for (int i = 0; i < steps; i++) {
        char line[512];
        int client = 1 + (int)random_below(&random, CLIENTS - 1);
        unsigned a = (unsigned)random_below(&random, KEYS);
        unsigned b = (unsigned)random_below(&random, KEYS);
        if (!stage.is_waiting[client] && random_below(&random, 2) == 0) {
            unsigned pick = (unsigned)random_below(&random, 4);
            stage_step(&stage, 0, formatted("EXISTS k%u k%u", a, b));
            bool has_member = strcmp(stage_received(&stage, 0), ":0\n") != 0;
            switch (pick) {
            case 0:
                snprintf(line, sizeof line, "BZPOPMIN k%u k%u 0", a, b);
                break;
            case 1:
                snprintf(line, sizeof line, "BZPOPMAX k%u k%u 0", a, b);
                break;
            case 2:
                snprintf(line, sizeof line, "BZMPOP 0 2 k%u k%u MIN", a, b);
                break;
            default:
                snprintf(line, sizeof line, "BZMPOP 0 2 k%u k%u MAX COUNT 3", a, b);
            }
            if (has_member) {
                stage_step(&stage, client, line);
            } else {
                stage_wait(&stage, client, line);
            }
            continue;
        }
        unsigned c = (unsigned)random_below(&random, KEYS);
        unsigned long long s = (unsigned long long)(score += 10);
        switch (random_below(&random, 8)) {
        case 0:
            snprintf(line, sizeof line,
                     "MULTI;ZADD k%u %llu x;ZADD k%u %llu y;ZADD k%u %llu z;EXEC", a, s, b, s + 1,
                     c, s + 2);
            break;
        case 1:
            snprintf(line, sizeof line, "ZADD k%u %llu x %llu y;RENAME k%u k%u", a, s, s + 1, a, b);
            break;
        case 2:
            snprintf(line, sizeof line, "MULTI;ZADD k%u %llu x;DEL k%u;ZADD k%u %llu y;EXEC", a, s,
                     a, b, s + 1);
            break;
        case 3:
            snprintf(line, sizeof line,
                     "ZADD other %llu m %llu n;ZUNIONSTORE k%u 1 other;DEL other", s, s + 1, a);
            break;
        case 4:
            snprintf(line, sizeof line, "DEL k%u", a);
            break;
        default:
            snprintf(line, sizeof line, "ZADD k%u %llu x %llu y %llu z %llu v", a, s, s + 1, s + 2,
                     s + 3);
        }
        stage_step(&stage, 0, line);
        for (int j = 1; j < CLIENTS; j++) {
            if (stage.is_waiting[j] && !stage_still_waits(&stage, j)) {
                (void)stage_woken(&stage, j);
                served++;
            }
        }
    }
    for (int j = 1; j < CLIENTS; j++) {
        if (stage.is_waiting[j]) {
            unblock(&stage, j, "", ":1");
            (void)stage_woken(&stage, j);
        }
    }
    assert_true(served > (uint64_t)steps / 20);
}

/* ---- attacks ---- */

/* A client that is gone takes no member with it, whatever it had sent behind. */
TEST(whoever_disconnects_while_waiting_gets_nothing) {
    static const char *const configs[] = {NULL, "io-threads 2\n"};
    for (int i = 0; i < 2; i++) {
        SERVER(server, &(struct process_options){.config = configs[i]});
        WIRE(bob, process_connect_unix(&server));
        for (int round = 0; round < 3; round++) {
            struct wire ann = wire_open(process_connect_unix(&server));
            wire_send_text(&ann, round == 0 ? "BZPOPMIN q 0\r\n"
                                            : "BZPOPMIN q 0\r\nPING\r\nBZPOPMIN q 0\r\n");
            wire_wait_info(&bob, "blocked_clients", 1);
            if (round == 2) {
                wire_abort(&ann);
            }
            wire_close(&ann);
            wire_wait_info(&bob, "blocked_clients", 0);
            wire_check(&bob, "ZADD q 1 a", ":1");
            wire_check(&bob, "ZCARD q", ":1");
            wire_check(&bob, "DEL q", ":1");
        }
    }
}

TEST(whoever_is_killed_while_being_served_gets_nothing) {
    SERVER(server, NULL);
    WIRE(bob, process_connect_unix(&server));
    WIRE(ann, process_connect_unix(&server));
    WIRE(kim, process_connect_unix(&server));
    int64_t id = wire_ask_integer(&ann, "CLIENT ID");
    wire_send_text(&ann, "BZPOPMIN q 0\r\n");
    wire_wait_info(&bob, "blocked_clients", 1);
    wire_send_text(&kim, "BZPOPMIN q 0\r\n");
    wire_wait_info(&bob, "blocked_clients", 2);
    wire_send_text(&bob, formatted("MULTI\r\nCLIENT KILL ID %lld\r\nZADD q 1 a 2 b\r\nEXEC\r\n",
                                   (long long)id));
    wire_expect(&bob, "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n:1\r\n:2\r\n");
    assert_string_equal(wire_reply(&kim), "[q a 1]");
    assert_true(wire_is_closed(&ann, WIRE_LIMIT_MS));
    wire_check(&bob, "ZRANGE q 0 -1", "[b]");
}

/* What is sent behind a request that waits is held, up to the limit. */
TEST(what_follows_a_request_that_waits_is_bounded) {
    SERVER(server, &(struct process_options){.config = "client-query-buffer-limit 1mb\n"});
    WIRE(ann, process_connect_unix(&server));
    WIRE(bob, process_connect_unix(&server));
    TEXT(request);
    text_format(&request, "BZPOPMIN q 0\r\n");
    for (int i = 0; i < 200000; i++) {
        text_format(&request, "PING 0123456789\r\n");
    }
    (void)wire_push(&ann, request.at, request.size, 1000);
    assert_true(wire_is_closed(&ann, WIRE_LIMIT_MS));
    wire_wait_info(&bob, "blocked_clients", 0);
}

/* A server that is to end does not wait for those who wait. */
TEST(ten_thousand_clients_wait_give_up_and_are_served) {
    enum { CLIENTS = 2000, SHORT = 300 }; /* 10,000 descriptors here and there are not everywhere */
    int count = is_short_run() ? SHORT : CLIENTS;
    struct process server;
    assert_true(process_start(&server, NULL));
    WIRE(bob, process_connect_unix(&server));
    OWNED struct wire *clients = calloc((size_t)count, sizeof *clients);
    for (int i = 0; i < count; i++) {
        clients[i] = wire_open(process_connect_unix(&server));
        wire_send_text(&clients[i], "BZPOPMIN q 0.5\r\n");
    }
    for (int i = 0; i < count; i++) {
        assert_string_equal(wire_reply(&clients[i]), "nil");
        wire_send_text(&clients[i], "BZPOPMIN q 0\r\n");
        wire_wait_info(&bob, "blocked_clients", i + 1);
        if (i + 1 < count) {
            continue;
        }
        TEXT(request);
        text_format(&request, "ZADD q");
        for (int j = 0; j < count / 2; j++) {
            text_format(&request, " %d m%d", j, j);
        }
        text_format(&request, "\r\n");
        wire_send(&bob, request.at, request.size);
        wire_reply(&bob);
    }
    wire_check(&bob, "EXISTS q", ":0");
    for (int i = 0; i < count / 2; i++) {
        assert_string_equal(wire_reply(&clients[i]), formatted("[q m%d %d]", i, i));
    }
    assert_int_equal(wire_info(&bob, "blocked_clients"), count - count / 2);
    assert_int_equal(process_stop(&server), 0);
    for (int i = 0; i < count; i++) {
        wire_close(&clients[i]);
    }
}
