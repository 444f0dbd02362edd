/* A growing output buffer of one client. It grows by doubling and never shrinks by itself. When an
 * append fails for lack of memory, or the buffer would exceed its limit, `is_broken` is set:
 * further appends do nothing, and the owner closes the client. So no reply is ever sent with a gap
 * in it, and reply functions need no error paths. */
#ifndef CODEC_BUFFER_H
#define CODEC_BUFFER_H

#include "codec/bytes.h"
#include "codec/memory.h"

struct buffer {
    char *at; /* the first byte not yet written out */
    size_t size;
    size_t capacity; /* counted from at */
    size_t dropped;  /* bytes of the allocation before at */
    size_t size_max; /* 0: no limit */
    bool is_broken;
};

void buffer_init(struct buffer *buffer, size_t size_max);
void buffer_deinit(struct buffer *buffer);
/* Empty the buffer and clear is_broken; memory is kept. */
void buffer_clear(struct buffer *buffer);
/* Drop the first size bytes without moving the rest, so that a long reply is sent in linear
 * time. */
void buffer_drop_front(struct buffer *buffer, size_t size);

/* Drop what was appended after the buffer had this size. */
void buffer_cut(struct buffer *buffer, size_t size);

/* Room for size (at least 1) more bytes at the end. Returns where to write them, or NULL (is_broken
 * is then set). Follow with buffer_commit of the bytes written. Inline when there is room
 * already. */
char *buffer_grow(struct buffer *buffer, size_t size); /* the slow path of buffer_reserve */
static inline char *buffer_reserve(struct buffer *buffer, size_t size) {
    if (__builtin_expect(!buffer->is_broken && buffer->capacity - buffer->size >= size, 1)) {
        return buffer->at + buffer->size;
    }
    return buffer_grow(buffer, size);
}
static inline void buffer_commit(struct buffer *buffer, size_t size) {
    buffer->size += size;
}

void buffer_append(struct buffer *buffer, const void *at, size_t size);
static inline void buffer_append_bytes(struct buffer *buffer, struct bytes text) {
    buffer_append(buffer, text.at, text.size);
}
static inline void buffer_append_text(struct buffer *buffer, const char *text) {
    buffer_append(buffer, text, strlen(text));
}
/* What is in it, borrowed until it changes. */
static inline struct bytes buffer_bytes(const struct buffer *buffer) {
    return (struct bytes){.at = buffer->at, .size = buffer->size};
}
/* As buffer_append, for those who know it only as their output (codec/json.h). */
void buffer_put(void *buffer, const char *at, size_t size);

#endif
