/* Events of keys, as handlers report them (server/clients/notify.h). */
#ifndef SERVER_CALL_NOTIFY_H
#define SERVER_CALL_NOTIFY_H

#include "server/clients/notify.h"
#include "server/dispatch/call.h"
#include "server/dispatch/command.h"

/* Report an event on a key of the session's database, after the change. */
static inline void call_notify(const struct call *call, enum setting_event class, const char *event,
                               struct bytes name) {
    notify(call->server, class, event, call->session->database, name);
}
/* The event has the command's name. */
static inline void call_notify_command(const struct call *call, enum setting_event class,
                                       struct bytes name) {
    if (notify_is_on(call->server, class)) {
        call_notify(call, class, command_full_name(command_index(call->command)), name);
    }
}

#endif
