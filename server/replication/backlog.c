/* See feed.h. Invariant: the chunks' groups follow each other; a chunk is never empty; no chunk moves or
 * changes but at its end. */
#include "server/replication/feed.h"

#include "codec/bytes.h"
#include "codec/list.h"

enum {
#ifdef SERVER_TINY
    CHUNK_SIZE = 300,
#else
    CHUNK_SIZE = 256 * 1024, /* of several groups; a longer group has its own */
#endif
};

void backlog_init(struct backlog *backlog, uint64_t keep_size) {
    *backlog = (struct backlog){.keep_size = keep_size};
}

static void backlog_drop_first(struct backlog *backlog) {
    struct backlog_chunk *chunk = backlog->first;
    CHECK(chunk->cursor_count == 0);
    backlog->first = chunk->next;
    if (backlog->first == NULL) {
        backlog->last = NULL;
    }
    backlog->memory_size -= sizeof *chunk + chunk->capacity;
    memory_free(chunk);
}

void backlog_clear(struct backlog *backlog) {
    while (backlog->first != NULL) {
        backlog_drop_first(backlog);
    }
    backlog->next_group = 0;
}

bool backlog_add(struct backlog *backlog, const struct journal_group_head *head,
                 const char *payload) {
    struct backlog_chunk *chunk = backlog->last;
    size_t size = wire_group_size(head);
    if (backlog->next_group != 0 && head->sequence != backlog->next_group) {
        return false;
    }
    if (chunk == NULL || chunk->capacity - chunk->size < size) {
        size_t capacity = size > CHUNK_SIZE ? size : CHUNK_SIZE;
        chunk = memory_allocate(sizeof *chunk + capacity);
        if (chunk == NULL) {
            return false;
        }
        *chunk = (struct backlog_chunk){.first_group = head->sequence,
                                        .last_group = head->sequence,
                                        .begin = backlog->end,
                                        .capacity = capacity};
        LIST_APPEND(backlog->first, backlog->last, chunk);
        backlog->memory_size += sizeof *chunk + capacity;
    }
    wire_put_group(chunk->at + chunk->size, head, payload);
    chunk->size += size;
    chunk->last_group = head->sequence;
    backlog->end += size;
    backlog->next_group = head->sequence + 1;
    return true;
}

void backlog_trim(struct backlog *backlog) {
    while (backlog->first != backlog->last && backlog->first->cursor_count == 0 &&
           backlog->end - backlog->first->next->begin >= backlog->keep_size) {
        backlog_drop_first(backlog);
    }
}

static void backlog_enter(struct backlog_cursor *cursor, struct backlog_chunk *chunk,
                          size_t offset) {
    backlog_leave(cursor);
    cursor->chunk = chunk;
    cursor->offset = offset;
    if (chunk != NULL) {
        chunk->cursor_count++;
    }
}

void backlog_leave(struct backlog_cursor *cursor) {
    if (cursor->chunk != NULL) {
        cursor->chunk->cursor_count--;
        cursor->chunk = NULL;
    }
    cursor->offset = 0;
}

static size_t backlog_message_size(const char *at) {
    return WIRE_HEAD + (size_t)bytes_get_u32(at);
}

bool backlog_seek(struct backlog *backlog, struct backlog_cursor *cursor, uint64_t group) {
    struct backlog_chunk *chunk = backlog->first;
    if (chunk == NULL || group < chunk->first_group || group > backlog->last->last_group + 1) {
        return false;
    }
    if (group > backlog->last->last_group) { /* a copy asks for that in each tick */
        backlog_enter(cursor, backlog->last, backlog->last->size);
        return true;
    }
    while (chunk->last_group < group && chunk->next != NULL) {
        chunk = chunk->next;
    }
    size_t offset = 0;
    for (uint64_t at = chunk->first_group; at < group; at++) {
        offset += backlog_message_size(chunk->at + offset);
    }
    backlog_enter(cursor, chunk, offset);
    return true;
}

size_t backlog_read(struct backlog *backlog, struct backlog_cursor *cursor, size_t size_max,
                    const char **at, uint64_t *last_group) {
    struct backlog_chunk *chunk = cursor->chunk;
    if (cursor->offset == chunk->size && chunk->next != NULL) {
        chunk = chunk->next;
        backlog_enter(cursor, chunk, 0);
    }
    (void)backlog;
    size_t begin = cursor->offset;
    size_t end = chunk->size;
    if (end - begin > size_max) {
        end = begin + backlog_message_size(chunk->at + begin);
        for (size_t next = end; next < chunk->size; end = next) {
            next += backlog_message_size(chunk->at + next);
            if (next - begin > size_max) {
                break;
            }
        }
    }
    if (end == begin) {
        return 0;
    }
    *at = chunk->at + begin;
    cursor->offset = end;
    if (end == chunk->size) {
        *last_group = chunk->last_group;
    } else {
        struct wire_message message;
        const char *reason;
        CHECK(wire_read(chunk->at + end, chunk->size - end, &message, &reason) == WIRE_MESSAGE);
        *last_group = message.head.sequence - 1;
    }
    return end - begin;
}

uint64_t backlog_unread(const struct backlog *backlog, const struct backlog_cursor *cursor) {
    return cursor->chunk != NULL ? backlog->end - cursor->chunk->begin - cursor->offset : 0;
}

static bool backlog_fail(const char **reason, const char *text) {
    *reason = text;
    return false;
}

bool backlog_validate(const struct backlog *backlog, const char **reason) {
    uint64_t group = backlog_first_group(backlog);
    uint64_t begin = backlog->first != NULL ? backlog->first->begin : backlog->end;
    size_t memory_size = 0;
    for (const struct backlog_chunk *chunk = backlog->first; chunk != NULL; chunk = chunk->next) {
        if (chunk->first_group != group || chunk->begin != begin) {
            return backlog_fail(reason,
                                "backlog: a chunk does not begin where the one before it ends");
        }
        for (size_t at = 0; at < chunk->size;) {
            struct wire_message message;
            const char *why;
            if (wire_read(chunk->at + at, chunk->size - at, &message, &why) != WIRE_MESSAGE ||
                message.kind != WIRE_GROUP || message.head.sequence != group) {
                return backlog_fail(reason, "backlog: a group is not the one that should be there");
            }
            group++;
            at += message.whole_size;
        }
        if (chunk->size == 0 || chunk->last_group != group - 1) {
            return backlog_fail(reason, "backlog: a chunk's last group is another one");
        }
        begin += chunk->size;
        memory_size += sizeof *chunk + chunk->capacity;
    }
    if (begin != backlog->end || memory_size != backlog->memory_size) {
        return backlog_fail(reason, "backlog: its bytes are counted wrong");
    }
    return backlog->first == NULL || backlog->next_group == group ||
           backlog_fail(reason, "backlog: its next group is another one");
}
