/* Any bytes as what a Redis sends a replica, cut anywhere, and as what it answers when it is asked: an error or not, the
 * keys are valid, and what is refused as a copy has changed nothing. The first byte picks: an empty copy in front, so that
 * the rest is commands; and that the second half are answers. The second one is the size of pieces. */
#include "codec/bytes.h"
#include "server/migration/redis_ask.h"
#include "server/rdb/rdb_bytes.h"
#include "server/system/log.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/harness.h"

enum { SIZE_MAX_TRIED = 65536, HEAD_SIZE = 9, COPY_SIZE = HEAD_SIZE + 1 + 8 };

static void wake(void *context) {
    (void)context;
}

/* Without answers: a command has a key, and a key is not there. false: what was answered cannot be held. */
static bool answer(struct redis_ask *ask, struct bytes *answers, size_t piece) {
    struct redis_stream *stream = ask->stream;
    struct redis_apply *apply = &stream->apply;
    bool is_fine = true;
    redis_ask_send(ask, stream->offset);
    for (size_t size; ask->state > REDIS_ASK_READY && answers->size > 0 && is_fine;) {
        size = answers->size < piece ? answers->size : piece;
        buffer_append(&ask->input, answers->at, size);
        *answers = bytes_behind(*answers, size);
        is_fine = redis_ask_take(ask, UINT64_MAX);
    }
    redis_ask_close(ask);
    if (apply->question == REDIS_QUESTION_COMMAND) {
        redis_apply_learn(apply, &(struct redis_learned){.first = 1, .last = -1, .step = 2});
    } else if (apply->question == REDIS_QUESTION_KEYS) {
        redis_apply_learn_keys(apply);
    }
    for (struct redis_asked *at = apply->asked.first; at != NULL && answers->size == 0;
         at = at->next) {
        redis_apply_take_nothing(apply, at);
        at->state = REDIS_ASKED_ANSWERED;
    }
    stream->answered = redis_stream_end_asked(&apply->asked, UINT64_MAX);
    ask->state = REDIS_ASK_READY;
    return is_fine;
}

/* Returns whether a copy has taken the place of the keys. */
static bool feed(struct redis_ask *ask, struct harness *h, struct bytes bytes, struct bytes answers,
                 size_t piece) {
    struct redis_stream *stream = ask->stream;
    size_t at = 0;
    bool is_exchanged = false;
    while (stream->state != REDIS_STREAM_STOPPED &&
           (at < bytes.size || redis_stream_has_work(stream))) {
        size_t left = bytes.size - at;
        at += redis_stream_take(
            stream, (struct bytes){.at = bytes.at + at, .size = left < piece ? left : piece},
            UINT64_MAX, h->server.clock.now_us);
        CHECK(!stream->load.is_filling);
        if (stream->state == REDIS_STREAM_LOADED) {
            CHECK(redis_stream_exchange(stream));
            is_exchanged = true;
        }
        if (stream->state == REDIS_STREAM_FOLLOWS && !answer(ask, &answers, piece)) {
            redis_stream_fail(stream, stream->apply.error);
        }
    }
    return is_exchanged;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct redis_stream stream;
    static struct redis_ask ask;
    if (size < 3 || size > SIZE_MAX_TRIED) {
        return 0;
    }
    bool has_copy = data[0] % 4 != 0;
    size_t piece = data[1] == 0 ? SIZE_MAX_TRIED : data[1];
    size_t used = has_copy ? COPY_SIZE : 0;
    char *bytes = malloc(used + size - 2);
    CHECK(bytes != NULL);
    if (has_copy) {
        memcpy(bytes, "REDIS0011\xff", HEAD_SIZE + 1);
        bytes_put_u64(bytes + HEAD_SIZE + 1, rdb_bytes_crc(0, bytes, HEAD_SIZE + 1));
    }
    memcpy(bytes + used, data + 2, size - 2);
    struct harness *h = harness_create("layout money FIELD m 40 SIGNED SCALE 2 TIME 24 M\n"
                                       "board z* money CAP 9\nboard y* default LIMIT 5\n");
    struct session *s = harness_connect(h);
    log_set_level(LOG_NOTHING);
    harness_run(h, s, "HSET untouched f 1");
    registry_set_passive(h->server.registry, true);
    redis_stream_init(&stream, &h->server, 7);
    redis_stream_restart(&stream, 0);
    redis_ask_init(&ask, &stream, NULL, wake, NULL);
    ask.state = REDIS_ASK_READY;
    ask.has_expire_times = true;
    size_t answers_size = (data[0] & 64) != 0 ? (size - 2) / 2 : 0;
    size_t stream_size = used + size - 2 - answers_size;
    bool is_exchanged =
        feed(&ask, h, (struct bytes){.at = bytes, .size = stream_size},
             (struct bytes){.at = bytes + stream_size, .size = answers_size}, piece);
    redis_ask_close(&ask);
    const char *reason;
    if (!is_exchanged) {
        CHECK(strcmp(harness_run(h, s, "HGET untouched f"), "$1\r\n1\r\n") == 0);
    }
    redis_stream_deinit(&stream); /* lets go of options, too */
    CHECK(registry_validate(h->server.registry, &reason));
    harness_destroy(h);
    free(bytes);
    return 0;
}
