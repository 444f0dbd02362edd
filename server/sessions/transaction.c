/* The queue of a transaction. Requests are allocated consecutively in large pieces, so that a
 * million of them are freed as fast as a few. */
#include "server/sessions/transaction.h"

#include "codec/memory.h"

enum {
    PIECE_SIZE_MIN = 256,       /* a short transaction takes one piece of this size */
    PIECE_SIZE_MAX = 64 * 1024, /* pieces double up to this size; a longer request gets its own */
};

struct transaction_piece {
    struct transaction_piece *next;
    size_t used;
    size_t size; /* including this header */
    char at[];
};

static struct transaction_piece *transaction_add_piece(struct transaction *transaction,
                                                       size_t room) {
    size_t size = PIECE_SIZE_MIN;
    if (transaction->pieces != NULL) {
        size = transaction->pieces->size * 2;
        size = size < PIECE_SIZE_MAX ? size : PIECE_SIZE_MAX;
    }
    if (size < sizeof(struct transaction_piece) + room) {
        size = sizeof(struct transaction_piece) + room;
    }
    struct transaction_piece *piece = memory_allocate(size);
    if (piece == NULL) {
        return NULL;
    }
    *piece = (struct transaction_piece){
        .next = transaction->pieces,
        .used = sizeof *piece,
        .size = size,
    };
    transaction->pieces = piece;
    transaction->memory_size += size;
    return piece;
}

bool transaction_queue(struct transaction *transaction, const struct request *request,
                       uint32_t command, unsigned command_flags) {
    size_t size = sizeof(struct transaction_request) + request->count * sizeof request->args[0];
    for (uint32_t i = 0; i < request->count; i++) {
        size += request->args[i].size;
    }
    size = (size + 7) & ~(size_t)7; /* aligned for a request */
    struct transaction_piece *piece = transaction->pieces;
    if (piece == NULL || piece->size - piece->used < size) {
        piece = transaction_add_piece(transaction, size);
        if (piece == NULL) {
            return false;
        }
    }
    void *room = (char *)piece + piece->used;
    piece->used += size;
    struct transaction_request *queued = room;
    char *at = (char *)&queued->args[request->count];
    for (uint32_t i = 0; i < request->count; i++) {
        struct bytes arg = request->args[i];
        queued->args[i] = (struct bytes){.at = at, .size = arg.size};
        if (arg.size > 0) {
            memcpy(at, arg.at, arg.size);
        }
        at += arg.size;
    }
    queued->next = NULL;
    queued->command = command;
    queued->request = (struct request){
        .count = request->count,
        .args = queued->args,
        .size = request->size,
    };
    if (transaction->last != NULL) {
        transaction->last->next = queued;
    } else {
        transaction->first = queued;
    }
    transaction->last = queued;
    transaction->count++;
    transaction->flags |= command_flags;
    return true;
}

void transaction_clear(struct transaction *transaction) {
    while (transaction->pieces != NULL) {
        struct transaction_piece *piece = transaction->pieces;
        transaction->pieces = piece->next;
        memory_free(piece);
    }
    *transaction = (struct transaction){.is_open = false};
}
