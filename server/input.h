/* Input room: the memory that sockets are read into, and that the requests found there lie in.
 *
 * A read gets what is left of a piece, and only what was parsed of it is kept; so many small
 * requests share a piece, and handlers read them in place.
 *
 *     pieces, arguments    of one of two generations: the one that is filled, and the one before
 *     spare pieces         empty, kept for the next ticks
 *
 * Invariant: a generation is emptied only when the last of its requests has run, so what a waiting
 * request points to stays where it is. Requests run in the order in which they were queued: two
 * counts, of requests queued and of requests done, tell when that is. */
#ifndef SERVER_INPUT_H
#define SERVER_INPUT_H

#include "protocol/resp.h"

/* Input and arguments of requests that arrived together. */
struct input_generation {
    struct input_piece *pieces; /* newest first; reading goes on in the first */
    struct resp_arena arguments;
    uint64_t queued_end; /* its requests have run when so many are done */
};

struct input {
    struct input_generation generations[2];
    unsigned current; /* the generation that is filled */
    struct input_piece *spare_pieces;
    uint32_t spare_piece_count;
};

/* Zeroed. */
void input_init(struct input *input);
/* Nothing that lies in it is used any more. */
void input_deinit(struct input *input);

/* Where to read to: *size bytes, the same again until some are kept. NULL: no memory. */
MUST_CHECK char *input_room(struct input *input, size_t *size);
/* The first size bytes of that room hold requests, and are kept until those have run. */
void input_keep(struct input *input, size_t size);
/* Where the arguments of those requests go, to live as long. */
static inline struct resp_arena *input_arguments(struct input *input) {
    return &input->generations[input->current].arguments;
}

/* Once per tick: give back what requests that have run lay in. Of all queued_total requests that
 * ever were queued, the first done_total have run or were dropped. */
void input_give_back(struct input *input, uint64_t queued_total, uint64_t done_total);

#endif
