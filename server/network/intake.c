/* The batch being filled. See intake.h.
 *
 * Invariant: a piece of input belongs to one batch or is spare. */
#include "server/network/intake.h"

#include <unistd.h>

#include "codec/list.h"

enum {
    PIECE_SIZE = 64 * 1024,     /* a read gets the free space of one piece */
    PIECE_ROOM_MIN = 16 * 1024, /* with less free space a new piece is started */
    SPARE_PIECES_MAX = 16,
    SPARE_BATCHES_MAX = 8,
    FULL_PIECES = 512,     /* 32 MiB */
    FULL_REQUESTS = 65536, /* waiting requests above which only a little more is read from each */
    ENTRIES_MIN = 64,
    ENTRIES_KEPT_MAX = 65536,
    HANDSHAKES_MAX = 4, /* steps a turn: one takes as long as many requests */
};

/* A batch and all its arrays of fixed size. */
struct intake_batch {
    struct batch batch; /* first */
    struct transport_note notes[BATCH_NOTES_MAX];
    struct accepted accepted[BATCH_ACCEPTED_MAX];
};

struct input_piece {
    struct input_piece *next;
    size_t used;
    char at[PIECE_SIZE];
};

static void intake_free_batch(struct batch *batch) {
    resp_arena_deinit(&batch->arguments);
    memory_free(batch->entries);
    memory_free(batch);
}

static void intake_take_pieces_back(struct intake *intake, struct batch *batch) {
    struct input_piece *piece;
    LIST_EMPTY(batch->pieces, piece) {
        intake->piece_count--;
        if (intake->spare_piece_count < SPARE_PIECES_MAX) {
            piece->next = intake->spare_pieces;
            intake->spare_pieces = piece;
            intake->spare_piece_count++;
        } else {
            memory_free(piece);
        }
    }
}

void intake_recycle(struct intake *intake, struct batch *batch) {
    intake_take_pieces_back(intake, batch);
    intake->accepted_out -= batch->accepted_count;
    if (intake->spare_count >= SPARE_BATCHES_MAX) {
        intake_free_batch(batch);
        return;
    }
    if (batch->capacity > ENTRIES_KEPT_MAX) {
        memory_free(batch->entries);
        batch->entries = NULL;
        batch->capacity = 0;
    }
    resp_arena_reset(&batch->arguments);
    batch->next = intake->spare;
    intake->spare = batch;
    intake->spare_count++;
}

struct batch *intake_filling(struct intake *intake) {
    struct batch *batch = intake->filling;
    if (batch != NULL) {
        return batch;
    }
    batch = intake->spare;
    if (batch != NULL) {
        intake->spare = batch->next;
        intake->spare_count--;
    } else {
        struct intake_batch *whole = memory_allocate_zeroed(sizeof *whole);
        if (whole == NULL) {
            return NULL;
        }
        batch = &whole->batch;
        batch->notes = whole->notes;
        batch->accepted = whole->accepted;
    }
    batch->next = NULL;
    batch->count = 0;
    batch->position = 0;
    batch->note_count = 0;
    batch->accepted_count = 0;
    batch->is_drained = false;
    intake->filling = batch;
    return batch;
}

bool intake_may_accept(const struct intake *intake) {
    return intake->accepted_out < BATCHES_DONE_MAX * BATCH_ACCEPTED_MAX &&
           (intake->filling == NULL || intake->filling->accepted_count < BATCH_ACCEPTED_MAX);
}

struct accepted *intake_next_accepted(struct intake *intake) {
    struct batch *batch = intake_filling(intake);
    return batch != NULL ? &batch->accepted[batch->accepted_count] : NULL;
}

void intake_keep_accepted(struct intake *intake) {
    CHECK(intake->filling->accepted_count < BATCH_ACCEPTED_MAX);
    intake->filling->accepted_count++;
    intake->accepted_out++;
}

void intake_refuse_proxied(struct intake *intake, const struct accepted *accepted,
                           const char *reason) {
    close(accepted->fd);
    intake->proxy_refusals.count++;
    intake->proxy_refusals.reason = reason;
    intake->proxy_refusals.peer = accepted->is_proxied ? accepted->proxy : accepted->peer;
}

char *intake_input_room(struct intake *intake, size_t *size) {
    struct batch *batch = intake_filling(intake);
    if (batch == NULL) {
        return NULL;
    }
    struct input_piece *piece = batch->pieces;
    if (piece == NULL || PIECE_SIZE - piece->used < PIECE_ROOM_MIN) {
        piece = intake->spare_pieces;
        if (piece != NULL) {
            intake->spare_pieces = piece->next;
            intake->spare_piece_count--;
        } else {
            piece = memory_allocate(sizeof *piece);
            if (piece == NULL) {
                return NULL;
            }
        }
        piece->used = 0;
        piece->next = batch->pieces;
        batch->pieces = piece;
        intake->piece_count++;
    }
    *size = PIECE_SIZE - piece->used;
    return piece->at + piece->used;
}

void intake_input_keep(struct intake *intake, size_t size) {
    struct input_piece *piece = intake->filling->pieces;
    CHECK(size <= PIECE_SIZE - piece->used);
    piece->used += size;
}

struct queue_entry *intake_next_entry(struct intake *intake) {
    struct batch *batch = intake_filling(intake);
    if (batch == NULL) {
        return NULL;
    }
    if (batch->count == batch->capacity) {
        size_t capacity = batch->capacity > 0 ? batch->capacity * 2 : ENTRIES_MIN;
        struct queue_entry *entries =
            memory_resize(batch->entries, capacity * sizeof *batch->entries);
        if (entries == NULL) {
            return NULL;
        }
        batch->entries = entries;
        batch->capacity = capacity;
    }
    return &batch->entries[batch->count];
}

void intake_queue_entry(struct intake *intake) {
    CHECK(intake->filling->count < intake->filling->capacity);
    intake->filling->count++;
}

bool intake_is_full(const struct intake *intake) {
    return intake->in_flight > FULL_REQUESTS || intake->piece_count > FULL_PIECES;
}

void intake_begin_turn(struct intake *intake) {
    intake->handshakes_left = HANDSHAKES_MAX;
}

bool intake_may_shake(struct intake *intake) {
    return intake->handshakes_left-- > 0;
}

void intake_deinit(struct intake *intake) {
    struct batch *batch;
    struct input_piece *piece;
    if (intake->filling != NULL) {
        intake_take_pieces_back(intake, intake->filling);
        intake_free_batch(intake->filling);
    }
    LIST_EMPTY(intake->spare, batch) {
        intake_free_batch(batch);
    }
    LIST_EMPTY(intake->spare_pieces, piece) {
        memory_free(piece);
    }
}
