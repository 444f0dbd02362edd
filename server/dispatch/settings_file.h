/* The file of settings, written anew by CONFIG REWRITE, and by what ends a hand-over.
 *
 * A server whose role has changed and whose file could not be written (a full disk, one that is read-only) would be at
 * its next start what it was before: a master would follow its own replica. Sentinel, which orders CONFIG REWRITE behind
 * the change, does not look at its answer. So the file is then owed, and is tried again until it says the role:
 *
 *     settings_file_write --failed, and the file says another role--> owed --written, or it says this one--> not owed
 *
 * The pauses between two tries double, from a second to a minute; the log has the first failure, one line in ten
 * minutes, and the end. All block on the disk, as CONFIG REWRITE does. */
#ifndef SERVER_SETTINGS_FILE_H
#define SERVER_SETTINGS_FILE_H

#include "server/sessions/server.h"

/* false: the file is as it was; error (SETTING_ERROR_MAX) says why. */
MUST_CHECK bool settings_file_write(struct server *server, char *error);
/* Once a second: try again, if it is owed and due. */
void settings_file_second(struct server *server);
/* The server ends: the last try. */
void settings_file_end(struct server *server);

#endif
