/* What a client has between MULTI and EXEC: requests that wait, each with a copy of its arguments,
 * for the input that they came in is used again long before they run. */
#ifndef SERVER_TRANSACTION_H
#define SERVER_TRANSACTION_H

#include "protocol/request.h"

struct transaction_request {
    struct transaction_request *next; /* the one queued behind it */
    struct request request;           /* its arguments lie in args, their bytes behind those */
    uint32_t command;                 /* its number */
    struct bytes args[];
};

/* Zeroed: there is none. */
struct transaction {
    struct transaction_request *first, *last;
    struct transaction_piece *pieces; /* of memory, which they lie in; the newest first */
    uint32_t count;
    unsigned flags;     /* the command_flags of all that is queued */
    size_t memory_size; /* of the pieces */
    bool is_open;       /* MULTI was given: requests are queued */
    bool is_refused;    /* one of them was not: EXEC will refuse the others */
    bool is_running;    /* EXEC runs them: nothing may wait, and nothing is left out */
};

/* Queue a copy of a request; command_flags are its command's. false: no memory, and nothing is
 * queued. */
MUST_CHECK bool transaction_queue(struct transaction *transaction, const struct request *request,
                                  uint32_t command, unsigned command_flags);
/* Forget the queue: there is no transaction any more. */
void transaction_clear(struct transaction *transaction);

#endif
