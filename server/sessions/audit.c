/* Lines of the audit log, limited in number. See audit.h. */
#include "server/sessions/audit.h"

#include <stdio.h>

#include "server/sessions/server.h"
#include "server/system/log.h"

static const struct {
    const char *name;
    uint32_t lines_max; /* within window_ms */
    int64_t window_ms;
} classes[AUDIT_CLASSES] = {
    [AUDIT_NONE] = {"none", 0, 0},
    [AUDIT_FLUSH] = {"flush", 20, 10000},
    [AUDIT_SHUTDOWN] = {"shutdown", 20, 10000},
    [AUDIT_CONFIG] = {"config", 20, 10000},
    [AUDIT_USERS] = {"users", 20, 10000},
    [AUDIT_PLAYERS] = {"players", 20, 10000},
    [AUDIT_ROLE] = {"role", 20, 10000},
    [AUDIT_SNAPSHOT] = {"snapshot", 20, 10000},
    [AUDIT_AUTH] = {"auth", 20, 10000},
    [AUDIT_MAXMEMORY] = {"maxmemory", 1, 60000},
};

static void audit_end_window(enum audit_class class, struct audit_window *window) {
    if (window->left_out > 0) {
        log_write(LOG_AUDIT, "lines left out class=%s count=%llu", classes[class].name,
                  (unsigned long long)window->left_out);
    }
    *window = (struct audit_window){.end_ms = 0};
}

static bool audit_is_over(const struct audit_window *window, int64_t now_ms) {
    return window->end_ms != 0 && now_ms >= window->end_ms;
}

struct audit_who audit_session(const struct session *session) {
    return (struct audit_who){
        .user = session_user_name(session), .address = session->address, .client = session->id};
}

void audit_write(struct server *server, struct audit_who who, const char *event,
                 const char *details) {
    if (server->settings.audit_log) {
        log_write(LOG_AUDIT, "%s user=\"%s\" addr=%s id=%llu %s", event, log_quote(who.user).text,
                  who.address, (unsigned long long)who.client, details);
    }
}

void audit_write_refused(struct server *server, enum audit_class class, struct audit_who who,
                         const char *event, const char *details) {
    struct audit_window *window = &server->audit.windows[class];
    int64_t now_ms = server->clock.monotonic_ms;
    if (!server->settings.audit_log) {
        return;
    }
    if (audit_is_over(window, now_ms)) {
        audit_end_window(class, window);
    }
    if (window->end_ms == 0) {
        window->end_ms = now_ms + classes[class].window_ms;
    }
    if (window->written == classes[class].lines_max) {
        window->left_out++;
        return;
    }
    window->written++;
    audit_write(server, who, event, details);
}

void audit_second(struct server *server) {
    for (enum audit_class class = AUDIT_NONE; class < AUDIT_CLASSES; class ++) {
        struct audit_window *window = &server->audit.windows[class];
        if (audit_is_over(window, server->clock.monotonic_ms)) {
            audit_end_window(class, window);
        }
    }
}
