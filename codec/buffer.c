/* Output of one client: a single allocation that doubles. capacity never exceeds size_max, so the
 * inline fast path of buffer_reserve need not check the limit. */
#include "codec/buffer.h"

/* Most replies are shorter, and idle clients should be cheap. */
enum { BUFFER_CAPACITY_MIN = 512 };

void buffer_init(struct buffer *buffer, size_t size_max) {
    *buffer = (struct buffer){.size_max = size_max};
}

/* Make the buffer start at its allocation's first byte again. */
static void buffer_rewind(struct buffer *buffer) {
    if (buffer->dropped > 0) {
        buffer->at -= buffer->dropped;
        buffer->capacity += buffer->dropped;
        buffer->dropped = 0;
    }
}

void buffer_deinit(struct buffer *buffer) {
    buffer_rewind(buffer);
    memory_free(buffer->at);
    *buffer = (struct buffer){.size_max = buffer->size_max};
}

void buffer_clear(struct buffer *buffer) {
    buffer_rewind(buffer);
    buffer->size = 0;
    buffer->is_broken = false;
}

void buffer_cut(struct buffer *buffer, size_t size) {
    CHECK(size <= buffer->size);
    buffer->size = size;
}

void buffer_drop_front(struct buffer *buffer, size_t size) {
    CHECK(size <= buffer->size);
    if (size == 0) {
        return;
    }
    buffer->at += size;
    buffer->size -= size;
    buffer->capacity -= size;
    buffer->dropped += size;
    if (buffer->size == 0) {
        buffer_rewind(buffer);
    }
}

char *buffer_grow(struct buffer *buffer, size_t size) {
    size_t limit = buffer->size_max > 0 ? buffer->size_max : SIZE_MAX / 2;
    if (buffer->is_broken) {
        return NULL;
    }
    /* Moving the remaining bytes over the dropped front pays off if the front is the longer part; otherwise the buffer
     * has to grow anyway, which includes moving them. */
    if (buffer->dropped > 0) {
        bool is_worth_it = buffer->dropped >= buffer->size;
        const char *from = buffer->at;
        buffer_rewind(buffer);
        memmove(buffer->at, from, buffer->size);
        if (is_worth_it && size <= buffer->capacity - buffer->size) {
            return buffer->at + buffer->size;
        }
    }
    if (size > limit || buffer->size > limit - size) {
        buffer->is_broken = true;
        return NULL;
    }
    size_t needed = buffer->size + size, capacity = buffer->capacity * 2;
    capacity = capacity < BUFFER_CAPACITY_MIN ? BUFFER_CAPACITY_MIN : capacity;
    capacity = capacity < needed ? needed : capacity;
    capacity = capacity < limit ? capacity : limit;
    if (capacity > buffer->capacity) {
        char *at = memory_resize(buffer->at, capacity);
        if (at == NULL) {
            buffer->is_broken = true;
            return NULL;
        }
        buffer->at = at;
        buffer->capacity = capacity;
    }
    return buffer->at + buffer->size;
}

void buffer_append(struct buffer *buffer, const void *at, size_t size) {
    if (size == 0) {
        return;
    }
    char *out = buffer_reserve(buffer, size);
    if (out != NULL) {
        memcpy(out, at, size);
        buffer_commit(buffer, size);
    }
}

void buffer_put(void *buffer, const char *at, size_t size) {
    buffer_append(buffer, at, size);
}
