/* See settings_file.h. */
#include "server/dispatch/settings_file.h"

#include "server/acl/acl_rules.h"
#include "server/system/log.h"

enum {
    PAUSE_MS = 1000, /* before the second try */
    PAUSE_MAX_MS = 64 * PAUSE_MS,
    LOG_MS = 600000, /* between two lines that it is still owed */
};

bool settings_file_write(struct server *server, char *error) {
    bool is_written =
        acl_rules_to_settings(server, error) && setting_file_rewrite(&server->settings, error);
    if (is_written || server->settings.file_path == NULL ||
        setting_file_is_written(&server->settings, "replicaof")) {
        const struct server_rewrite *rewrite = &server->rewrite;
        if (rewrite->is_owed) {
            log_write(LOG_NOTICE,
                      "settings: the file says this server's role again tries=%u after_ms=%lld",
                      rewrite->try_count + 1,
                      (long long)(server->clock.monotonic_ms - rewrite->since_ms));
        }
        server->rewrite = (struct server_rewrite){.is_owed = false};
    } else {
        /* One more try has failed. */
        struct server_rewrite *rewrite = &server->rewrite;
        int64_t now_ms = server->clock.monotonic_ms;
        if (!rewrite->is_owed) {
            *rewrite = (struct server_rewrite){.is_owed = true, .since_ms = now_ms};
        }
        if (rewrite->try_count == 0 || now_ms - rewrite->logged_at_ms >= LOG_MS) {
            rewrite->logged_at_ms = now_ms;
            log_write(
                LOG_WARNING,
                "settings: the file still says another role, and is tried until it is written: a "
                "restart before that begins with the old role file=%s tries=%u error=\"%s\"",
                server->settings.file_path, rewrite->try_count + 1, error);
        }
        rewrite->pause_ms = rewrite->pause_ms == 0             ? PAUSE_MS
                            : rewrite->pause_ms < PAUSE_MAX_MS ? rewrite->pause_ms * 2
                                                               : PAUSE_MAX_MS;
        rewrite->again_at_ms = now_ms + rewrite->pause_ms;
        rewrite->try_count++;
    }
    return is_written;
}

void settings_file_second(struct server *server) {
    char error[SETTING_ERROR_MAX];
    if (server->rewrite.is_owed && server->clock.monotonic_ms >= server->rewrite.again_at_ms) {
        (void)!settings_file_write(server, error);
    }
}

void settings_file_end(struct server *server) {
    char error[SETTING_ERROR_MAX];
    if (server->rewrite.is_owed && !settings_file_write(server, error) && server->rewrite.is_owed) {
        log_write(LOG_WARNING,
                  "settings: the file says another role than this server has, and the next start "
                  "takes that file=%s error=\"%s\" advice=\"correct its line replicaof\"",
                  server->settings.file_path, error);
    }
}
