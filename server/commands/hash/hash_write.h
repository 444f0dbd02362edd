/* The common path for setting fields of hashes: finding or creating the key, and the errors. */
#ifndef SERVER_HASH_WRITE_H
#define SERVER_HASH_WRITE_H

#include "server/dispatch/call.h"
#include "server/dispatch/command.h"

/* Set fields of the hash at args[1]: pairs are field, value, field, value, ... *added_count: those
 * that did not exist. event: what subscribers are told. false: the error was replied; nothing has
 * changed. */
MUST_CHECK bool hash_write(const struct call *call, const struct bytes *pairs, uint32_t count,
                           const char *event, uint32_t *added_count);

/* "ERR wrong number of arguments ...", for what the syntax cannot say. */
bool hash_refuse_arity(const struct call *call);

#endif
