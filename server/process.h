/* What a server does as a process: descriptors, background, the file with its number. */
#ifndef SERVER_PROCESS_H
#define SERVER_PROCESS_H

#include "server/setting.h"

/* Let the process have a descriptor for every client. Where the system does not allow so many,
 * settings->maxclients is lowered, and the log says to what. */
void process_raise_descriptor_limit(struct settings *settings);

/* Go on in a child without a terminal; the parent exits. false: errno says why. */
MUST_CHECK bool process_daemonize(void);

/* Write, and remove, the pidfile. It is removed only while it holds our number. */
void process_write_pidfile(const char *path);
void process_remove_pidfile(const char *path);

#endif
