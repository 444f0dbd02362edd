/* Holds replies against the shapes that the commands' entries declare (server/dispatch/shape.h), and notes which
 * alternatives it has seen. The harness does this with every reply. */
#ifndef TESTS_SUPPORT_SHAPE_CHECK_H
#define TESTS_SUPPORT_SHAPE_CHECK_H

#include "protocol/resp.h"
#include "server/dispatch/shape.h"

/* Is it one value of this shape, and nothing else? */
bool shape_fits(struct bytes value, const char *shape, unsigned version,
                const struct request *request);
/* What a request of this command was answered: any number of values in this version of the protocol. An error is of
 * every shape. false: it has another one. */
bool shape_check(struct bytes reply, uint32_t number, unsigned version,
                 const struct request *request);
/* Has any reply of the command been of its nth alternative? And of one that begins there, in a shape with a name? */
bool shape_check_has_seen(uint32_t number, unsigned alternative);
bool shape_check_has_seen_part(const char *alternative);

#endif
