#include "skiplist/keyspace/pages.h"

#include "codec/memory.h"

enum { PAGES_CAPACITY_MIN = 4 };

static bool pages_reserve_table(struct pages *pages, uint64_t count) {
    if (count <= pages->capacity) {
        return true;
    }
    uint64_t capacity = pages->capacity == 0 ? PAGES_CAPACITY_MIN : (uint64_t)pages->capacity * 2;
    if (capacity < count) {
        capacity = count;
    }
    if (capacity > UINT32_MAX) {
        return false;
    }
    void **at = memory_resize(pages->at, capacity * sizeof(*at));
    if (at == NULL) {
        return false;
    }
    pages->at = at;
    pages->capacity = (uint32_t)capacity;
    return true;
}

bool pages_reserve(struct pages *pages, uint64_t size) {
    uint64_t count = (size + PAGES_SIZE - 1) / PAGES_SIZE;
    if (!pages_reserve_table(pages, count)) {
        return false;
    }
    while (pages->count < count) {
        void *page = memory_allocate(PAGES_SIZE);
        if (page == NULL) {
            return false;
        }
        pages->at[pages->count++] = page;
    }
    return true;
}

void pages_trim(struct pages *pages, uint64_t size) {
    if (size == 0) {
        pages_deinit(pages);
        return;
    }
    uint64_t kept = (size + PAGES_SIZE - 1) / PAGES_SIZE + 1;
    for (int freed = 0; freed < 2 && pages->count > kept; freed++) {
        memory_free(pages->at[--pages->count]);
    }
}

void pages_deinit(struct pages *pages) {
    while (pages->count > 0) {
        memory_free(pages->at[--pages->count]);
    }
    memory_free(pages->at);
    *pages = (struct pages){0};
}
