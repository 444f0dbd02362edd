/* See redis_encode.h. */
#include "server/migration/redis_encode.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "protocol/resp.h"
#include "server/rdb/rdb_state.h"
#include "server/replication/wire.h"
#include "server/system/clock.h"
#include "skiplist/keyspace/key_kind.h"

enum {
    WORDS_MAX = 5,
    NUMBER_SIZE = 24,
    BLOB_MAX = 1 << 20,          /* about: then another one is begun */
    GATHERED_MAX = 64 * 1024,    /* of a transaction; more makes its beginning leave */
    EFFECTS_AT_ONCE = 64,        /* between two looks at the time */
    INPUT_KEPT_MAX = 512 * 1024, /* memory that stays */
};

void redis_encode_init(struct redis_encode *encode) {
    *encode = (struct redis_encode){.database = UINT32_MAX};
    buffer_init(&encode->input, 0);
    buffer_init(&encode->commands, 0);
    buffer_init(&encode->blob, 0);
}

void redis_encode_deinit(struct redis_encode *encode) {
    buffer_deinit(&encode->input);
    buffer_deinit(&encode->commands);
    buffer_deinit(&encode->blob);
}

/* ---- words ---- */

static void redis_encode_put_words(struct buffer *out, const struct bytes *words, uint32_t count) {
    request_append_head(out, count);
    for (uint32_t i = 0; i < count; i++) {
        request_append_argument(out, words[i]);
    }
}

static void redis_encode_put_command(struct redis_encode *encode, const struct bytes *words,
                                     uint32_t count) {
    redis_encode_put_words(&encode->commands, words, count);
    encode->command_count++;
}

static void redis_encode_put_number(struct bytes *word, char *text, int64_t number) {
    word->at = text;
    word->size = (size_t)snprintf(text, NUMBER_SIZE, "%" PRId64, number);
}

static void redis_encode_select_database(struct redis_encode *encode, uint32_t database) {
    char text[NUMBER_SIZE];
    struct bytes words[] = {BYTES("SELECT"), {.at = NULL}};
    if (encode->database != database) {
        redis_encode_put_number(&words[1], text, database);
        redis_encode_put_command(encode, words, 2);
        encode->database = database;
    }
}

/* ---- blobs ---- */

static void redis_encode_end_blob(struct redis_encode *encode) {
    struct bytes blob = {.at = encode->blob.at, .size = encode->blob.size};
    const struct bytes board[] = {BYTES("LB.APPLY"), encode->blob_key, blob};
    const struct bytes state[] = {BYTES("LB.APPLYSTATE"), blob};
    switch (encode->blob_kind) {
    case REDIS_ENCODE_NO_BLOB:
        return;
    case REDIS_ENCODE_BOARD_BLOB:
        redis_encode_put_command(encode, board, 3);
        break;
    case REDIS_ENCODE_STATE_BLOB:
        redis_encode_put_command(encode, state, 2);
        break;
    }
    encode->blob_kind = REDIS_ENCODE_NO_BLOB;
}

static void redis_encode_begin_blob(struct redis_encode *encode) {
    effect_bytes_begin_blob(&encode->encoder, &encode->blob, (int64_t)encode->head.time_us);
}

/* Blobs are of the database that is selected: in them it is 0. */
static void redis_encode_add_to_board(struct redis_encode *encode, const struct effect *effect) {
    bool goes_on = encode->blob_kind == REDIS_ENCODE_BOARD_BLOB && encode->blob.size < BLOB_MAX &&
                   encode->database == effect->database &&
                   bytes_equal(encode->blob_key, effect->name);
    if (!goes_on) {
        redis_encode_end_blob(encode);
        redis_encode_select_database(encode, effect->database);
        redis_encode_begin_blob(encode);
        encode->blob_kind = REDIS_ENCODE_BOARD_BLOB;
        encode->blob_key = effect->name;
    }
    struct effect moved = *effect;
    moved.database = 0;
    effect_bytes_encode(&encode->encoder, &moved);
}

/* RENAME and COPY within a database: the options may change with the name. */
static void redis_encode_move_board(struct redis_encode *encode, const struct effect *effect) {
    struct effect moved = *effect;
    redis_encode_select_database(encode, effect->database);
    redis_encode_begin_blob(encode);
    moved.database = 0;
    moved.to_database = 0;
    effect_bytes_encode(&encode->encoder, &moved);
    const struct bytes words[] = {BYTES("LB.APPLY"),
                                  effect->name,
                                  {.at = encode->blob.at, .size = encode->blob.size},
                                  effect->to_name,
                                  BYTES("")};
    redis_encode_put_command(encode, words, 5);
}

/* ---- effects ---- */

static void redis_encode_put_expiry(struct redis_encode *encode, struct bytes name,
                                    int64_t expire_at_ms) {
    char text[NUMBER_SIZE];
    struct bytes words[] = {BYTES("PEXPIREAT"), name, {.at = NULL}};
    if (expire_at_ms == REGISTRY_NO_EXPIRY) {
        words[0] = BYTES("PERSIST");
        redis_encode_put_command(encode, words, 2);
    } else {
        redis_encode_put_number(&words[2], text, expire_at_ms);
        redis_encode_put_command(encode, words, 3);
    }
}

/* Of a hash, or to another database, where Redis has no RENAME. */
static void redis_encode_move_key(struct redis_encode *encode, const struct effect *effect) {
    char text[NUMBER_SIZE];
    bool is_rename = effect->kind == EFFECT_RENAME;
    bool is_copy = !is_rename || effect->to_database != effect->database;
    const struct bytes unlink[] = {BYTES("UNLINK"), effect->name};
    struct bytes words[] = {is_copy ? BYTES("COPY") : BYTES("RENAME"),
                            effect->name,
                            effect->to_name,
                            BYTES("DB"),
                            {.at = NULL}};
    redis_encode_put_number(&words[4], text, effect->to_database);
    redis_encode_select_database(encode, effect->database);
    redis_encode_put_command(encode, words, is_copy ? 5 : 3);
    if (is_copy && is_rename) {
        redis_encode_put_command(encode, unlink, 2);
    }
    redis_encode_select_database(encode, effect->to_database);
    redis_encode_put_expiry(encode, effect->to_name, effect->expire_at_ms);
}

/* A hash, or a key whatever it is. */
static void redis_encode_change_key(struct redis_encode *encode, const struct effect *effect) {
    const struct bytes flush[] = {BYTES("FLUSHDB")};
    const struct bytes unlink[] = {BYTES("UNLINK"), effect->name};
    const struct bytes put[] = {BYTES("HSET"), effect->name, effect->member, effect->value};
    const struct bytes take[] = {BYTES("HDEL"), effect->name, effect->member};
    redis_encode_end_blob(encode);
    if (effect->kind == EFFECT_CREATE) {
        return; /* it comes to be with its first field */
    }
    redis_encode_select_database(encode, effect->database);
    if (effect->kind == EFFECT_FLUSH) {
        redis_encode_put_command(encode, flush, 1);
    } else if (effect->kind == EFFECT_REMOVE) {
        redis_encode_put_command(encode, unlink, 2);
    } else if (effect->kind == EFFECT_EXPIRE) {
        redis_encode_put_expiry(encode, effect->name, effect->expire_at_ms);
    } else if (effect->kind == EFFECT_PUT) {
        redis_encode_put_command(encode, put, 4);
    } else {
        redis_encode_put_command(encode, take, 3);
    }
}

/* false: it cannot be said. A Redis is not sent what is staged, and a master that has one reports the whole instead;
 * but this may have been reported before it came. */
static bool redis_encode_effect(struct redis_encode *encode, const struct effect *effect) {
    bool is_of_board = effect->key_kind == NULL || effect->key_kind == &key_kind_board;
    if (effect->database >= REGISTRY_SYSTEM) {
        if (registry_is_of_hosts(effect->database)) {
            if (encode->blob_kind != REDIS_ENCODE_STATE_BLOB || encode->blob.size >= BLOB_MAX) {
                redis_encode_end_blob(encode);
                redis_encode_begin_blob(encode);
                encode->blob_kind = REDIS_ENCODE_STATE_BLOB;
            }
            effect_bytes_encode(&encode->encoder, effect);
        }
        return effect->database != REGISTRY_STAGING || effect->kind != EFFECT_RENAME;
    }
    switch (effect->kind) {
    case EFFECT_PUT:
    case EFFECT_TAKE:
    case EFFECT_CUT:
    case EFFECT_CREATE:
    case EFFECT_OPTIONS:
    case EFFECT_TAGS:
    case EFFECT_STATE:
    case EFFECT_NOTE:
        if (is_of_board) {
            redis_encode_add_to_board(encode, effect);
        } else {
            redis_encode_change_key(encode, effect);
        }
        return true;
    case EFFECT_RENAME:
    case EFFECT_COPY:
        redis_encode_end_blob(encode);
        if (effect->options != NULL && effect->database == effect->to_database) {
            redis_encode_move_board(encode, effect);
        } else {
            redis_encode_move_key(encode, effect);
            if (effect->options != NULL && effect->kind == EFFECT_RENAME &&
                effect->options->is_archive) {
                /* It is a copy there, which is no archive. */
                redis_encode_add_to_board(encode, &(struct effect){.kind = EFFECT_OPTIONS,
                                                                   .database = effect->to_database,
                                                                   .name = effect->to_name,
                                                                   .options = effect->options,
                                                                   .state = effect->state});
            }
        }
        return true;
    case EFFECT_REMOVE:
    case EFFECT_FLUSH:
    case EFFECT_EXPIRE:
        redis_encode_change_key(encode, effect);
        return true;
    case EFFECT_FILL:
        break; /* is encoded as its parts */
    }
    CHECK(false);
    return false;
}

/* ---- the stream ---- */

static void redis_encode_put_plain(struct redis_encode *encode, const char *at, size_t size) {
    buffer_append(encode->out, at, size);
    encode->offset += size;
}

static void redis_encode_put_multi(struct redis_encode *encode) {
    static const char multi[] = "*1\r\n$5\r\nMULTI\r\n";
    if (!encode->has_multi) {
        redis_encode_put_plain(encode, multi, sizeof multi - 1);
        encode->has_multi = true;
    }
}

static void redis_encode_put_commands(struct redis_encode *encode) {
    struct buffer *commands = &encode->commands;
    redis_encode_put_plain(encode, commands->at, commands->size);
    buffer_clear(commands);
}

/* false: it is damaged, or cannot be said. */
static bool redis_encode_some(struct redis_encode *encode) {
    if (!encode->is_decoding) {
        struct wire_message message;
        wire_read_again(encode->input.at + encode->input_at, &message);
        encode->is_decoding = true;
        encode->head = message.head;
        effect_bytes_decode_begin(&encode->decoder, (struct bytes){.at = wire_payload(&message),
                                                                   .size = message.head.size});
    }
    for (uint32_t i = 0; i < EFFECTS_AT_ONCE; i++) {
        enum effect_record record = effect_bytes_decode(&encode->decoder);
        if (record == EFFECT_RECORD_END) {
            redis_encode_end_blob(encode);
            encode->is_decoding = false;
            encode->input_at += wire_group_size(&encode->head);
            if (!encode->head.is_linked) {
                /* Of groups that belong together. */
                static const char exec[] = "*1\r\n$4\r\nEXEC\r\n";
                if (encode->command_count > 1) {
                    redis_encode_put_multi(encode);
                }
                redis_encode_put_commands(encode);
                if (encode->has_multi) {
                    redis_encode_put_plain(encode, exec, sizeof exec - 1);
                }
                encode->has_multi = false;
                encode->command_count = 0;
                encode->group = encode->head.sequence;
            }
            return true;
        }
        if (record != EFFECT_RECORD_EFFECT ||
            !redis_encode_effect(encode, &encode->decoder.effect)) {
            return false;
        }
    }
    if (encode->commands.size > GATHERED_MAX) {
        redis_encode_put_multi(encode);
        redis_encode_put_commands(encode);
    }
    return true;
}

bool redis_encode_add(struct redis_encode *encode, const char *at, size_t size) {
    CHECK(redis_encode_is_idle(encode));
    if (encode->input.capacity > INPUT_KEPT_MAX) {
        buffer_deinit(&encode->input);
    }
    buffer_clear(&encode->input);
    encode->input_at = 0;
    buffer_append(&encode->input, at, size);
    return !encode->input.is_broken;
}

bool redis_encode_step(struct redis_encode *encode, struct buffer *out, size_t size_max,
                       uint64_t budget_ns) {
    uint64_t begin = clock_ticks();
    size_t size_end = out->size + size_max;
    encode->out = out;
    while (!redis_encode_is_idle(encode) && out->size < size_end) {
        if (!redis_encode_some(encode) || encode->commands.is_broken || encode->blob.is_broken) {
            return false;
        }
        if (redis_encode_is_between(encode) ||
            clock_ticks_to_ns(clock_ticks() - begin) >= budget_ns) {
            break;
        }
    }
    return !out->is_broken;
}

void redis_encode_put(struct redis_encode *encode, struct buffer *out, const char *const *words,
                      uint32_t count) {
    struct bytes texts[WORDS_MAX];
    size_t size = out->size;
    CHECK(count <= WORDS_MAX && redis_encode_is_between(encode));
    for (uint32_t i = 0; i < count; i++) {
        texts[i] = bytes_from_text(words[i]);
    }
    redis_encode_put_words(out, texts, count);
    encode->offset += out->size - size;
}
