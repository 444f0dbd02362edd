/* One request: a command name and its arguments, as slices of the input. */
#ifndef PROTOCOL_REQUEST_H
#define PROTOCOL_REQUEST_H

#include "codec/bytes.h"

struct request {
    uint32_t count;           /* arguments including the command's name; at least 1 */
    const struct bytes *args; /* args[0] is the name */
    size_t size;              /* bytes on the wire */
};

#endif
