/* What a client queues between MULTI and EXEC: requests with copies of their arguments, because the
 * input buffer is reused before EXEC runs them. */
#ifndef SERVER_TRANSACTION_H
#define SERVER_TRANSACTION_H

#include "protocol/resp.h"

struct transaction_request {
    struct transaction_request *next; /* the request queued after this one */
    struct request request;           /* its arguments are in args, followed by their bytes */
    uint32_t command;                 /* command number */
    struct bytes args[];
};

/* Zero-initialised: no transaction. */
struct transaction {
    struct transaction_request *first, *last;
    struct transaction_piece *pieces; /* memory blocks that hold the requests, newest first */
    uint32_t count;
    unsigned flags;     /* union of the queued commands' command_flags */
    size_t memory_size; /* total size of the pieces */
    uint64_t bound_ns;  /* at most what the queued commands may cost together */
    bool is_open;       /* after MULTI: requests are queued */
    bool is_refused;    /* a request was refused instead of queued: EXEC will abort */
    bool is_running;    /* EXEC is running: commands must not block or skip writes */
};

/* Queue a copy of a request. command_flags are the flags of its command. false: out of memory;
 * nothing was queued. */
MUST_CHECK bool transaction_queue(struct transaction *transaction, const struct request *request,
                                  uint32_t command, unsigned command_flags);
/* Discard the queue and end the transaction. */
void transaction_clear(struct transaction *transaction);

#endif
