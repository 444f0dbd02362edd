/* Messages to and from bytes. See wire.h. */
#include "server/replication/wire.h"

#include "codec/bytes.h"

static void wire_put_head(char *at, enum wire_kind kind, size_t size) {
    bytes_put_u32(at, (uint32_t)size);
    at[4] = (char)kind;
    memset(at + 5, 0, WIRE_HEAD - 5);
}

void wire_put_group(char *at, const struct journal_group_head *head, const char *payload) {
    wire_put_head(at, WIRE_GROUP, JOURNAL_GROUP_HEAD + (size_t)head->size);
    memcpy(at + WIRE_HEAD + JOURNAL_GROUP_HEAD, payload, head->size);
    struct journal_group_head sealed = *head;
    sealed.unsynced = 0;
    journal_file_seal_group(at + WIRE_HEAD, &sealed, WIRE_SEED);
}

/* Room for the body; NULL: no memory. */
static char *wire_begin(struct buffer *out, enum wire_kind kind, size_t size) {
    char *at = buffer_reserve(out, WIRE_HEAD + size);
    if (at == NULL) {
        return NULL;
    }
    wire_put_head(at, kind, size);
    buffer_commit(out, WIRE_HEAD + size);
    return at + WIRE_HEAD;
}

static void wire_put_two(struct buffer *out, enum wire_kind kind, uint64_t first, uint64_t second) {
    char *at = wire_begin(out, kind, 2 * sizeof(uint64_t));
    if (at != NULL) {
        bytes_put_u64(at, first);
        bytes_put_u64(at + sizeof(uint64_t), second);
    }
}

void wire_put_ping(struct buffer *out, int64_t time_us, uint64_t group) {
    wire_put_two(out, WIRE_PING, (uint64_t)time_us, group);
}

void wire_put_end(struct buffer *out, uint64_t group, int64_t time_us) {
    wire_put_two(out, WIRE_END, group, (uint64_t)time_us);
}

void wire_put_probe(struct buffer *out, const struct wire_probe *probe) {
    char *at = wire_begin(out, WIRE_PROBE, WIRE_PROBE_SIZE);
    if (at != NULL) {
        bytes_put_u64(at, probe->last_group);
        bytes_put_u64(at + sizeof(uint64_t), probe->number);
        bytes_put_u64(at + 2 * sizeof(uint64_t), probe->lease_ms);
    }
}

static void wire_put_bytes(struct buffer *out, enum wire_kind kind, const char *bytes,
                           size_t size) {
    char *at = wire_begin(out, kind, size);
    if (at != NULL) {
        memcpy(at, bytes, size);
    }
}

void wire_put_piece(struct buffer *out, const char *at, size_t size) {
    wire_put_bytes(out, WIRE_PIECE, at, size);
}

void wire_put_given_up(struct buffer *out, const char *reason) {
    size_t size = strlen(reason);
    wire_put_bytes(out, WIRE_GIVEN_UP, reason, size < WIRE_TEXT_MAX ? size : WIRE_TEXT_MAX);
}

/* ---- reading ---- */

static bool wire_is_size_fine(enum wire_kind kind, size_t size) {
    switch (kind) {
    case WIRE_GROUP:
        return size > JOURNAL_GROUP_HEAD &&
               size - JOURNAL_GROUP_HEAD < (size_t)JOURNAL_GROUP_SIZE_MAX;
    case WIRE_PING:
        return size == WIRE_PING_SIZE;
    case WIRE_PIECE:
        return size > 0 && size <= WIRE_PIECE_MAX;
    case WIRE_END:
        return size == WIRE_END_SIZE;
    case WIRE_PROBE:
        return size == WIRE_PROBE_SIZE;
    case WIRE_GIVEN_UP:
        return size <= WIRE_TEXT_MAX;
    }
    return false;
}

static enum wire_status wire_refuse(const char **reason, const char *text) {
    *reason = text;
    return WIRE_BAD;
}

static void wire_read_head(const char *at, struct wire_message *message) {
    *message = (struct wire_message){
        .kind = (enum wire_kind)(unsigned char)at[4],
        .at = at + WIRE_HEAD,
        .size = bytes_get_u32(at),
    };
    message->whole_size = WIRE_HEAD + message->size;
}

void wire_read_again(const char *at, struct wire_message *message) {
    wire_read_head(at, message);
    if (message->kind == WIRE_GROUP) {
        journal_file_read_group_head(message->at, WIRE_SEED, &message->head);
    }
}

enum wire_status wire_read(const char *at, size_t size, struct wire_message *message,
                           const char **reason) {
    if (size < WIRE_HEAD) {
        *message = (struct wire_message){.whole_size = 0};
        return WIRE_PART;
    }
    wire_read_head(at, message);
    if (at[5] != 0 || at[6] != 0 || at[7] != 0 ||
        !wire_is_size_fine(message->kind, message->size)) {
        return wire_refuse(reason, "a message of an unknown kind, or of a wrong size");
    }
    if (size < message->whole_size) {
        return WIRE_PART;
    }
    if (message->kind == WIRE_GROUP &&
        !journal_file_open_group(message->at, message->size, WIRE_SEED, &message->head)) {
        return wire_refuse(reason, "a group whose checksum is wrong");
    }
    if (message->kind == WIRE_GROUP && message->head.time_us > WIRE_TIME_MAX) {
        return wire_refuse(reason, "a time that no clock shows");
    }
    if (message->kind == WIRE_PING) {
        message->time_us = (int64_t)bytes_get_u64(message->at);
        message->group = bytes_get_u64(message->at + sizeof(uint64_t));
    } else if (message->kind == WIRE_END) {
        message->group = bytes_get_u64(message->at);
        message->time_us = (int64_t)bytes_get_u64(message->at + sizeof(uint64_t));
    }
    if (message->kind == WIRE_PROBE) {
        message->probe.last_group = bytes_get_u64(message->at);
        message->probe.number = bytes_get_u64(message->at + sizeof(uint64_t));
        message->probe.lease_ms = bytes_get_u64(message->at + 2 * sizeof(uint64_t));
    }
    if (message->time_us < 0 || (uint64_t)message->time_us > WIRE_TIME_MAX) {
        return wire_refuse(reason, "a time that no clock shows");
    }
    return WIRE_MESSAGE;
}
