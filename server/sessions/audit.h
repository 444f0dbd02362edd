/* The audit log: who did what an operator may have to account for, a line each.
 *
 *     ... audit command=flushall user="default" addr=10.0.0.9:50412 id=7 db=0 result=ok
 *     ... audit command=config|set user="default" ... result=ok settings="maxmemory requirepass"
 *     ... audit auth failed user="default" addr=10.0.0.9:50413 id=8 failures=6 delay_ms=200
 *     ... audit maxmemory reached user="default" addr=... id=7 command=zadd used=1048640 maxmemory=1048576
 *
 * A command's entry names its class; server/dispatch/execute.c writes the line when the command has
 * run. What was carried out is always written. Of what was refused (result=error, a wrong password,
 * maxmemory) only a limited number of lines of each class is written within a window of time; the
 * rest is counted, and the count is logged when the window ends:
 *
 *     ... audit lines left out class=auth count=3021
 *
 * Arguments are not written but for names of settings and users: others hold passwords, and members,
 * which may be people's names. */
#ifndef SERVER_AUDIT_H
#define SERVER_AUDIT_H

#include "server/sessions/server.h"

/* Who did it. */
struct audit_who {
    struct bytes user;
    const char *address;
    uint64_t client; /* 0: none, but HTTP */
};
struct audit_who audit_session(const struct session *session);

/* Write "event user=... addr=... id=... details", unless audit-log is no. */
void audit_write(struct server *server, struct audit_who who, const char *event,
                 const char *details);
/* The same of what was refused, unless the window is full. */
void audit_write_refused(struct server *server, enum audit_class class, struct audit_who who,
                         const char *event, const char *details);
/* Called once a second: end windows, and log what was left out. */
void audit_second(struct server *server);

#endif
