/* Invariant: entries[0 .. count-1] have keys that never increase. */
#include "tests/support/twin_board.h"

#include <stdlib.h>

#include "tests/support/stored_text.h"

void twin_board_init(struct twin_board *twin, bool is_latest) {
    *twin = (struct twin_board){.is_latest = is_latest};
}

static struct bytes copy_bytes(struct bytes bytes) {
    char *at = malloc(bytes.size);
    CHECK(at != NULL);
    memcpy(at, bytes.at, bytes.size);
    return (struct bytes){.at = at, .size = bytes.size};
}

static void free_bytes(struct bytes bytes) {
    free((void *)(uintptr_t)bytes.at);
}

void twin_board_deinit(struct twin_board *twin) {
    for (uint32_t i = 0; i < twin->count; i++) {
        free_bytes(twin->entries[i].member);
    }
    free(twin->entries);
    twin_board_init(twin, twin->is_latest);
}

void twin_board_copy(const struct twin_board *twin, struct twin_board *to) {
    to->is_latest = twin->is_latest;
    to->count = to->capacity = twin->count;
    to->entries = calloc(twin->count + 1U, sizeof *to->entries);
    CHECK(to->entries != NULL);
    for (uint32_t i = 0; i < twin->count; i++) {
        to->entries[i].key = twin->entries[i].key;
        to->entries[i].member = copy_bytes(twin->entries[i].member);
    }
}

bool twin_board_rank(const struct twin_board *twin, struct bytes member, uint32_t *rank) {
    for (uint32_t i = 0; i < twin->count; i++) {
        if (bytes_equal(twin->entries[i].member, member)) {
            *rank = i;
            return true;
        }
    }
    return false;
}

void twin_board_put(struct twin_board *twin, struct bytes member, uint64_t key) {
    struct bytes copy = copy_bytes(member);
    (void)twin_board_remove(twin, member);
    if (twin->count == twin->capacity) {
        twin->capacity = twin->capacity * 2 + 16;
        twin->entries = realloc(twin->entries, twin->capacity * sizeof *twin->entries);
        CHECK(twin->entries != NULL);
    }
    uint32_t rank =
        twin->is_latest ? twin_board_count_above(twin, key) : twin_board_count_from(twin, key);
    memmove(twin->entries + rank + 1, twin->entries + rank,
            (twin->count - rank) * sizeof *twin->entries);
    twin->entries[rank] = (struct twin_entry){.key = key, .member = copy};
    twin->count++;
}

bool twin_board_remove(struct twin_board *twin, struct bytes member) {
    uint32_t rank;
    if (!twin_board_rank(twin, member, &rank)) {
        return false;
    }
    twin_board_remove_range(twin, rank, 1);
    return true;
}

void twin_board_remove_range(struct twin_board *twin, uint32_t rank, uint32_t count) {
    if (count == 0) {
        return;
    }
    for (uint32_t i = rank; i < rank + count; i++) {
        free_bytes(twin->entries[i].member);
    }
    memmove(twin->entries + rank, twin->entries + rank + count,
            (twin->count - rank - count) * sizeof *twin->entries);
    twin->count -= count;
}

uint32_t twin_board_count_above(const struct twin_board *twin, uint64_t key) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < twin->count; i++) {
        count += twin->entries[i].key > key;
    }
    return count;
}

uint32_t twin_board_count_from(const struct twin_board *twin, uint64_t key) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < twin->count; i++) {
        count += twin->entries[i].key >= key;
    }
    return count;
}

uint32_t twin_board_dense_rank(const struct twin_board *twin, uint32_t rank, unsigned score_shift) {
    uint32_t above = 0;
    for (uint32_t i = 1; i <= rank; i++) {
        above += twin->entries[i].key >> score_shift != twin->entries[i - 1].key >> score_shift;
    }
    return above;
}

bool twin_board_equals(const struct twin_board *twin, const struct board *board) {
    struct board_cursor cursor;
    struct board_stored entry;
    uint32_t rank = 0;
    if (twin->count != board_count(board)) {
        return false;
    }
    board_cursor_seek(board, 0, &cursor);
    for (; board_cursor_read(&cursor, &entry); board_cursor_next(&cursor), rank++) {
        if (rank >= twin->count || entry.key != twin->entries[rank].key ||
            !bytes_equal(stored_text(entry.member), twin->entries[rank].member)) {
            return false;
        }
    }
    return rank == twin->count;
}
