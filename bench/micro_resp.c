/* Nanoseconds per request parsed and per reply written, for the shapes a leaderboard sees most.
 *
 *     build/bench/micro_resp [rounds]
 *
 * Requests come pipelined, 32 of a kind in one input, with members that differ; replies go to one
 * buffer that is cleared after each round. Each figure is the best of many short runs:
 * what the code costs when nothing disturbs it. */
#include <stdio.h>
#include <stdlib.h>

#include "bench/request.h"
#include "protocol/reply.h"
#include "protocol/resp.h"

enum { PIPELINE = 32, RUNS = 200 };

static const struct resp_limits limits = {.args_max = 1048576,
                                          .bulk_size_max = 64 * 1024 * 1024,
                                          .inline_size_max = 65536,
                                          .is_authenticated = true};

static void report(const char *what, double taken_ns, double operations) {
    printf("%-48s %8.1f ns\n", what, taken_ns / operations);
}

/* ---- requests ---- */

/* Parse everything in input once; returns the number of requests. */
static unsigned parse_all(const struct buffer *input, struct resp_arena *arena, uint64_t *sum) {
    struct resp_parser parser = {0};
    unsigned count = 0;
    for (size_t at = 0; at < input->size; count++) {
        struct request request;
        size_t used = 0;
        const char *error = NULL;
        enum resp_status status = resp_parse(&parser, input->at + at, input->size - at, &limits,
                                             arena, &request, &used, &error);
        CHECK(status == RESP_REQUEST);
        *sum += request.args[request.count - 1].size;
        at += used;
    }
    resp_arena_reset(arena);
    return count;
}

static void bench_requests(const char *words, unsigned rounds) {
    struct buffer input;
    struct resp_arena arena;
    buffer_init(&input, 0);
    arena = (struct resp_arena){0};
    for (unsigned i = 0; i < PIPELINE; i++) {
        request_append(&input, words, 123456, i * 7919);
    }
    double best = 1e18;
    uint64_t sum = 0;
    for (int run = 0; run < RUNS; run++) {
        double start = micro_now_ns();
        for (unsigned round = 0; round < rounds; round++) {
            CHECK(parse_all(&input, &arena, &sum) == PIPELINE);
        }
        double taken = micro_now_ns() - start;
        best = taken < best ? taken : best;
    }
    CHECK(sum > 0);
    char what[64];
    snprintf(what, sizeof what, "parse  %s", words);
    report(what, best, (double)rounds * PIPELINE);
    buffer_deinit(&input);
    resp_arena_deinit(&arena);
}

/* ---- replies ---- */

typedef void write_reply(struct reply *reply, unsigned number);

static void write_ok(struct reply *reply, unsigned number) {
    (void)number;
    reply_ok(reply);
}

static void write_zero_or_one(struct reply *reply, unsigned number) {
    reply_integer(reply, number & 1);
}

static void write_rank(struct reply *reply, unsigned number) {
    reply_integer(reply, (int64_t)number * 31337 % 1000000);
}

static void write_score(struct reply *reply, unsigned number) {
    reply_decimal(reply, (struct decimal){.magnitude = number * 31337U % 1000000U}, 0);
}

/* ZREVRANGE 0 99 */
static void write_members(struct reply *reply, unsigned number) {
    static const char member[] = "user:000000123456";
    reply_array(reply, 100);
    for (unsigned i = 0; i < 100; i++) {
        reply_bulk(reply, (struct bytes){.at = member, .size = 16 + ((number + i) & 1)});
    }
}

/* ZREVRANGE 0 99 WITHSCORES */
static void write_hundred(struct reply *reply, unsigned number) {
    static const char member[] = "user:000000123456";
    reply_array(reply, reply->version == 3 ? 100 : 200);
    char *begin = buffer_reserve(reply->out, 100 * REPLY_PUT_SCORED_ROOM + REPLY_PUT_OVERRUN);
    char *out = begin - REPLY_PUT_LINE_END_SIZE;
    for (unsigned i = 0; i < 100; i++) {
        const struct reply_put_digits *digits = &reply_put_digits_table[5];
        uint32_t score = digits->first + (number + i) * 31337U % digits->size;
        out = reply->version == 3 ? reply_put_next_pair(out) : out;
        out = reply_put_next_bulk_header(out, 16 + (i & 1));
        out = bytes_copy_short(out, member, 16 + (i & 1));
        out = reply_put_next_score_header(out, digits, reply->version == 3);
        reply_put_score_digits(out, score * digits->factor, digits->count > REPLY_PUT_SIX_DIGITS);
        out += digits->count;
    }
    buffer_commit(reply->out, (size_t)(reply_put_line_end(out) - begin));
}

static void bench_reply(const char *what, uint8_t version, write_reply *write, unsigned rounds) {
    struct buffer out;
    struct reply reply;
    buffer_init(&out, 0);
    reply_init(&reply, &out, version);
    double best = 1e18;
    for (int run = 0; run < RUNS; run++) {
        double start = micro_now_ns();
        for (unsigned round = 0; round < rounds; round++) {
            buffer_clear(&out);
            for (unsigned i = 0; i < PIPELINE; i++) {
                write(&reply, round + i);
            }
        }
        double taken = micro_now_ns() - start;
        best = taken < best ? taken : best;
    }
    CHECK(!out.is_broken);
    report(what, best, (double)rounds * PIPELINE);
    buffer_deinit(&out);
}

int main(int argc, char **argv) {
    unsigned rounds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 500;
    bench_requests("PING", rounds);
    bench_requests("ZSCORE board $member", rounds);
    bench_requests("ZREVRANK board $member", rounds);
    bench_requests("ZADD board $score $member", rounds);
    bench_requests("ZINCRBY board 3 $member", rounds);
    bench_requests("ZREVRANGE board 0 99 WITHSCORES", rounds);
    bench_requests("ZREVRANGEBYSCORE board +inf -inf LIMIT 0 10", rounds);
    bench_reply("reply  OK", 2, write_ok, rounds);
    bench_reply("reply  :0 or :1 (ZADD)", 2, write_zero_or_one, rounds);
    bench_reply("reply  rank (ZREVRANK)", 2, write_rank, rounds);
    bench_reply("reply  score, RESP2 (ZINCRBY, ZSCORE)", 2, write_score, rounds);
    bench_reply("reply  score, RESP3", 3, write_score, rounds);
    bench_reply("reply  100 members", 2, write_members, rounds / 50 + 1);
    bench_reply("reply  100 members with scores, RESP2", 2, write_hundred, rounds / 50 + 1);
    bench_reply("reply  100 members with scores, RESP3", 3, write_hundred, rounds / 50 + 1);
    return 0;
}
