/* The queue of a transaction: one piece of memory for each request. */
#include "server/transaction.h"

#include "codec/memory.h"

static size_t arguments_size(const struct request *request) {
    size_t size = request->count * sizeof request->args[0];
    for (uint32_t i = 0; i < request->count; i++) {
        size += request->args[i].size;
    }
    return size;
}

static void copy_arguments(struct transaction_request *queued, const struct request *request) {
    char *at = (char *)&queued->args[request->count];
    for (uint32_t i = 0; i < request->count; i++) {
        struct bytes arg = request->args[i];
        queued->args[i] = (struct bytes){.at = at, .size = arg.size};
        if (arg.size > 0) {
            memcpy(at, arg.at, arg.size);
        }
        at += arg.size;
    }
}

bool transaction_queue(struct transaction *transaction, const struct request *request,
                       uint32_t command, unsigned command_flags) {
    struct transaction_request *queued = memory_allocate(sizeof *queued + arguments_size(request));
    if (queued == NULL) {
        return false;
    }
    copy_arguments(queued, request);
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
    transaction->memory_size += memory_size(queued);
    return true;
}

void transaction_clear(struct transaction *transaction) {
    while (transaction->first != NULL) {
        struct transaction_request *queued = transaction->first;
        transaction->first = queued->next;
        memory_free(queued);
    }
    *transaction = (struct transaction){.is_open = false};
}
