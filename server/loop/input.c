/* The pieces of input space and their two generations. See input.h.
 *
 * Invariant: a piece is in exactly one list, that of a generation or the spare list. Reads only use
 * the first piece of the current generation. */
#include "server/loop/input.h"

enum {
    PIECE_SIZE = 64 * 1024,     /* a read gets the free space of one piece */
    PIECE_ROOM_MIN = 16 * 1024, /* with less free space a new piece is started */
    SPARE_PIECES_MAX = 16,      /* kept for the next ticks */
    FULL_PIECES = 512,          /* 32 MiB */
};

struct input_piece {
    struct input_piece *next;
    size_t used;
    char at[PIECE_SIZE];
};

static void empty_generation(struct input *input, struct input_generation *generation) {
    while (generation->pieces != NULL) {
        struct input_piece *piece = generation->pieces;
        generation->pieces = piece->next;
        input->piece_count--;
        if (input->spare_piece_count < SPARE_PIECES_MAX) {
            piece->next = input->spare_pieces;
            input->spare_pieces = piece;
            input->spare_piece_count++;
        } else {
            memory_free(piece);
        }
    }
    resp_arena_reset(&generation->arguments);
}

void input_init(struct input *input) {
    input->generations[0].arguments = (struct resp_arena){0};
    input->generations[1].arguments = (struct resp_arena){0};
}

void input_deinit(struct input *input) {
    for (unsigned i = 0; i < 2; i++) {
        empty_generation(input, &input->generations[i]);
        resp_arena_deinit(&input->generations[i].arguments);
    }
    while (input->spare_pieces != NULL) {
        struct input_piece *piece = input->spare_pieces;
        input->spare_pieces = piece->next;
        memory_free(piece);
    }
}

char *input_room(struct input *input, size_t *size) {
    struct input_generation *generation = &input->generations[input->current];
    struct input_piece *piece = generation->pieces;
    if (piece == NULL || PIECE_SIZE - piece->used < PIECE_ROOM_MIN) {
        if (input->spare_pieces != NULL) {
            piece = input->spare_pieces;
            input->spare_pieces = piece->next;
            input->spare_piece_count--;
        } else {
            piece = memory_allocate(sizeof *piece);
            if (piece == NULL) {
                return NULL;
            }
        }
        piece->used = 0;
        input->piece_count++;
        piece->next = generation->pieces;
        generation->pieces = piece;
    }
    *size = PIECE_SIZE - piece->used;
    return piece->at + piece->used;
}

bool input_is_full(const struct input *input) {
    return input->piece_count > FULL_PIECES;
}

void input_keep(struct input *input, size_t size) {
    struct input_piece *piece = input->generations[input->current].pieces;
    CHECK(size <= PIECE_SIZE - piece->used);
    piece->used += size;
}

void input_give_back(struct input *input, uint64_t queued_total, uint64_t done_total) {
    struct input_generation *filled = &input->generations[input->current];
    struct input_generation *other = &input->generations[1 - input->current];
    if (done_total == queued_total) {
        empty_generation(input, filled);
    } else if (done_total >= other->queued_end) {
        empty_generation(input, other);
        filled->queued_end = queued_total;
        input->current = 1 - input->current;
    }
}
