/* From a request to its handler, and the accounting around it.
 *
 *     number -> entry -> arity, authentication, memory, disk, loading -> run -> statistics,
 *     slow log, monitors
 *
 * How this room works: a command is an entry (command.h), and what its entry says drives all else.
 * From its syntax follow its arity and its keys (syntax.h), its options are read by its
 * table (options.h), its flags decide when it is refused, its cost whether it takes too long (cost.h).
 * The handler gets a struct call (call.h). One that has to wait is served later (waiting.h). */
#ifndef SERVER_EXECUTE_H
#define SERVER_EXECUTE_H

#include "server/dispatch/command.h"

struct reply;
struct server;

/* Complete the table of commands: command_init with the syntax and the options of each entry. Call
 * once, first. */
void execute_init(const struct command_row *table);

/* Run one request, for whose name command_find_request returned index: check arity, authentication,
 * memory and disk, run, count. Every client request comes through here. Writes exactly one reply,
 * unless the session's replies are off. Afterwards the session says whether to close the
 * connection. Its time is measured from server->command_begin_ticks. */
void execute_request(struct server *server, struct session *session, uint32_t index,
                     const struct request *request, struct reply *reply);
/* For EXEC: run a request queued by execute_request. Its reply and its time are counted as if
 * it were run alone; of the checks, only that of the user's rights is repeated. */
void execute_queued(struct server *server, struct session *session, uint32_t index,
                    const struct request *request, struct reply *reply);

#endif
