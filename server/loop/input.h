/* Input buffers: the memory that sockets are read into. Requests are parsed and run in place.
 *
 * A read gets the free space of a piece, and only the bytes of parsed requests are kept, so many
 * small requests share a piece.
 *
 *     pieces, arguments    in two generations: the current one and the previous one
 *     spare pieces         empty, kept for the next ticks
 *
 * Invariant: a generation is recycled only after all its requests have run, so what a waiting
 * request points to does not move. Requests run in queue order, so the counts of requests queued
 * and done are enough to tell. */
#ifndef SERVER_INPUT_H
#define SERVER_INPUT_H

#include "protocol/resp.h"

/* Input and arguments of requests that arrived together. */
struct input_generation {
    struct input_piece *pieces; /* newest first; reads use the first */
    struct resp_arena arguments;
    uint64_t queued_end; /* all its requests have run once this many are done */
};

struct input {
    struct input_generation generations[2];
    unsigned current; /* the generation being filled */
    struct input_piece *spare_pieces;
    uint32_t spare_piece_count;
    uint32_t piece_count; /* of both generations */
};

/* Do waiting requests hold so much memory that reading should stop? */
bool input_is_full(const struct input *input);

/* *input is zero-initialised. */
void input_init(struct input *input);
/* Nothing in it may still be in use. */
void input_deinit(struct input *input);

/* Where to read to: *size bytes. Returns the same space until some of it is kept. NULL: out of
 * memory. */
MUST_CHECK char *input_room(struct input *input, size_t *size);
/* The first size bytes of that space contain requests; keep them until those have run. */
void input_keep(struct input *input, size_t size);
/* The arena for the arguments of those requests, with the same lifetime. */
static inline struct resp_arena *input_arguments(struct input *input) {
    return &input->generations[input->current].arguments;
}

/* Once per tick: recycle the memory of finished requests. Of the queued_total requests queued so
 * far, the first done_total have run or were dropped. */
void input_give_back(struct input *input, uint64_t queued_total, uint64_t done_total);

#endif
