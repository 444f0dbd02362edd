/* See redis_receive.h. */
#include "server/migration/redis_receive.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { LINE_SIZE_MAX = 512 };

void redis_receive_init(struct redis_receive *receive, struct redis_spool *spool, const char *id,
                        uint64_t offset) {
    *receive = (struct redis_receive){
        .spool = spool, .has_copy = id[0] != '\0', .received_offset = offset};
    snprintf(receive->id, sizeof receive->id, "%s", id);
}

const char *redis_receive_print_wish(const struct redis_receive *receive, char *offset) {
    if (!receive->has_copy) {
        snprintf(offset, REDIS_RECEIVE_OFFSET_SIZE, "-1");
        return "?";
    }
    snprintf(offset, REDIS_RECEIVE_OFFSET_SIZE, "%" PRIu64, receive->received_offset + 1);
    return receive->id;
}

/* What is behind the word. false: it begins otherwise. */
static bool redis_receive_skip(struct bytes *line, const char *word) {
    size_t size = strlen(word);
    if (line->size < size || memcmp(line->at, word, size) != 0) {
        return false;
    }
    line->at += size;
    line->size -= size;
    return true;
}

static void redis_receive_set_id(struct redis_receive *receive, const char *id) {
    memcpy(receive->id, id, REPLICATION_ID_SIZE);
    receive->id[REPLICATION_ID_SIZE] = '\0';
}

bool redis_receive_take_answer(struct redis_receive *receive, struct bytes line) {
    if (receive->has_copy && redis_receive_skip(&line, "+CONTINUE")) {
        if (line.size == 1 + REPLICATION_ID_SIZE) {
            redis_receive_set_id(receive, line.at + 1);
        }
        receive->state = REDIS_RECEIVE_STREAM;
        receive->partial_syncs++;
        return true;
    }
    uint64_t offset;
    size_t skipped = REPLICATION_ID_SIZE + 1;
    if (!redis_receive_skip(&line, "+FULLRESYNC ") || line.size <= skipped ||
        !bytes_parse_u64((struct bytes){.at = line.at + skipped, .size = line.size - skipped},
                         &offset)) {
        return false;
    }
    redis_receive_set_id(receive, line.at);
    receive->begin_offset = receive->received_offset = offset;
    receive->copy_size = receive->copy_read_size = 0;
    receive->mark[0] = '\0';
    receive->has_copy = false;
    receive->state = REDIS_RECEIVE_HEAD;
    receive->full_syncs++;
    receive->is_restarted = true;
    redis_spool_begin(receive->spool);
    return true;
}

static void redis_receive_end_copy(struct redis_receive *receive) {
    receive->state = REDIS_RECEIVE_STREAM;
    receive->has_copy = true;
}

static bool redis_receive_take_head(struct redis_receive *receive, struct bytes bytes,
                                    size_t *used) {
    const char *end = bytes.size > 0 ? memchr(bytes.at, '\n', bytes.size) : NULL;
    if (end == NULL) {
        return bytes.size < LINE_SIZE_MAX;
    }
    struct bytes line = {.at = bytes.at, .size = (size_t)(end - bytes.at)};
    *used = line.size + 1;
    line.size -= line.size > 0 && end[-1] == '\r';
    if (line.size == 0) {
        return true; /* the source is still there */
    }
    if (redis_receive_skip(&line, "$EOF:") && line.size == REDIS_RECEIVE_MARK_SIZE) {
        memcpy(receive->mark, line.at, line.size);
        receive->state = REDIS_RECEIVE_COPY;
        return true;
    }
    if (!redis_receive_skip(&line, "$") || !bytes_parse_u64(line, &receive->copy_size)) {
        return false;
    }
    receive->state = REDIS_RECEIVE_COPY;
    if (receive->copy_size == 0) {
        redis_receive_end_copy(receive);
    }
    return true;
}

static bool redis_receive_put_copy(struct redis_receive *receive, struct bytes bytes) {
    receive->copy_read_size += bytes.size;
    return bytes.size == 0 || redis_spool_put(receive->spool, bytes);
}

/* Until the mark: the last bytes may be its beginning, and wait. */
static bool redis_receive_take_marked(struct redis_receive *receive, struct bytes bytes,
                                      size_t *used) {
    if (bytes.size < REDIS_RECEIVE_MARK_SIZE) {
        return true;
    }
    const char *found = memmem(bytes.at, bytes.size, receive->mark, REDIS_RECEIVE_MARK_SIZE);
    bytes.size =
        found != NULL ? (size_t)(found - bytes.at) : bytes.size - (REDIS_RECEIVE_MARK_SIZE - 1);
    if (!redis_receive_put_copy(receive, bytes)) {
        return false;
    }
    *used = bytes.size;
    if (found != NULL) {
        *used += REDIS_RECEIVE_MARK_SIZE;
        redis_receive_end_copy(receive);
    }
    return true;
}

static bool redis_receive_take_some(struct redis_receive *receive, struct bytes bytes, size_t *used,
                                    const char **error) {
    bool is_put = false;
    switch (receive->state) {
    case REDIS_RECEIVE_HEAD:
        *error = "what the source sends is no copy";
        return redis_receive_take_head(receive, bytes, used);
    case REDIS_RECEIVE_COPY:
        if (receive->mark[0] != '\0') {
            is_put = redis_receive_take_marked(receive, bytes, used);
            break;
        }
        uint64_t left = receive->copy_size - receive->copy_read_size;
        bytes.size = left < bytes.size ? (size_t)left : bytes.size;
        *used = bytes.size;
        is_put = redis_receive_put_copy(receive, bytes);
        if (is_put && bytes.size == left) {
            redis_receive_end_copy(receive);
        }
        break;
    case REDIS_RECEIVE_STREAM:
        is_put = redis_spool_put(receive->spool, bytes);
        receive->received_offset += is_put ? bytes.size : 0;
        *used = is_put ? bytes.size : *used;
        break;
    }
    *error = "no memory for what the source sends";
    return is_put;
}

bool redis_receive_take(struct redis_receive *receive, struct bytes bytes, size_t *used,
                        const char **error) {
    size_t some = 1;
    *used = 0;
    while (some > 0 && *used < bytes.size) {
        some = 0;
        if (!redis_receive_take_some(
                receive, (struct bytes){.at = bytes.at + *used, .size = bytes.size - *used}, &some,
                error)) {
            return false;
        }
        *used += some;
    }
    return true;
}
