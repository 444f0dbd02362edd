/* What the browser loads: the files of server/web/page/, made part of the program by server/web/embed. */
#ifndef SERVER_WEB_FILES_H
#define SERVER_WEB_FILES_H

#include <stddef.h>

struct web_file {
    const char *name; /* "app.js"; NULL ends the table */
    const char *type;
    const char *tag; /* with its quotes */
    const unsigned char *at;
    size_t size;
};
extern const struct web_file web_files[];

#endif
