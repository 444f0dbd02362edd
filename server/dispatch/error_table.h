/* The words that errors begin with: what they mean, what to do, and what they are over HTTP. docs/write makes
 * docs/reference/errors.md of it. */
#ifndef SERVER_ERROR_TABLE_H
#define SERVER_ERROR_TABLE_H

#include "codec/bytes.h"

struct error_row {
    const char *prefix;   /* "READONLY"; NULL ends the table */
    unsigned http_status; /* 0: 400, and 422 for a write */
    const char *meaning;  /* why a command gets it; sentences */
    const char *advice;   /* what to do */
};
extern const struct error_row error_table[];
/* By the first word of an error. NULL: there is no such row. */
const struct error_row *error_table_find(struct bytes prefix);

#endif
