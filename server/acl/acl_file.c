/* Users from files and into them. See acl_file.h.
 *
 * A file is read into users of its own, which take the place of those that there are only if all of
 * it was right. */
#include "server/acl/acl_file.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "server/acl/acl_check.h"
#include "server/acl/acl_rules.h"
#include "server/system/log.h"

/* ---- users from lines ---- */

enum { LINE_WORDS_MAX = 100000 };

/* A line being read: "name rule rule". */
struct reading {
    struct acl_users *users;
    bool has_all_channels;
    struct bytes *words;
    uint32_t count;
    struct buffer joined;
    char *error; /* where the next text goes */
    size_t room;
};

__attribute__((format(printf, 2, 3))) static void acl_file_complain(struct reading *reading,
                                                                    const char *format, ...) {
    va_list args;
    va_start(args, format);
    int size = vsnprintf(reading->error, reading->room, format, args);
    va_end(args);
    size_t used = size > 0 && (size_t)size < reading->room ? (size_t)size
                  : reading->room > 0                      ? reading->room - 1
                                                           : 0;
    reading->error += used;
    reading->room -= used;
}

static bool acl_file_split(struct reading *reading, struct bytes line) {
    reading->count = 0;
    for (size_t at = 0; at < line.size;) {
        size_t size = 0;
        while (at + size < line.size && strchr(" \t\r", line.at[at + size]) == NULL) {
            size++;
        }
        if (size > 0 && reading->count == LINE_WORDS_MAX) {
            return false;
        }
        if (size > 0) {
            reading->words[reading->count++] = (struct bytes){.at = line.at + at, .size = size};
        }
        at += size + 1;
    }
    return true;
}

/* A draft of the user whom the words describe. NULL: *failed and the status say why. */
static struct acl_user *acl_file_make_user(struct reading *reading, const struct bytes *words,
                                           uint32_t count, enum acl_status *status,
                                           struct bytes *failed) {
    struct acl_user *user = acl_user_create(words[0], reading->has_all_channels);
    *status = ACL_OUT_OF_MEMORY;
    *failed = words[0];
    if (user == NULL || !acl_users_reserve(reading->users)) {
        acl_user_destroy(user);
        return NULL;
    }
    *status = acl_rules_apply_all(user, reading->users, words + 1, count - 1,
                                  reading->has_all_channels, &reading->joined, failed);
    if (*status != ACL_OK) {
        acl_user_destroy(user);
        return NULL;
    }
    return user;
}

/* A `user` line of the settings. */
static bool acl_file_read_setting(struct reading *reading, struct bytes line) {
    enum acl_status status;
    struct bytes failed;
    if (!acl_file_split(reading, line) || reading->count == 0 ||
        !acl_rules_is_name(reading->words[0])) {
        acl_file_complain(reading, "Spaces not allowed in ACL usernames");
        return false;
    }
    struct acl_user *user =
        acl_file_make_user(reading, reading->words, reading->count, &status, &failed);
    if (user == NULL) {
        acl_file_complain(reading, "Error loading ACL rule '%s' for the user named '%s': %s",
                          bytes_show(failed).text, bytes_show(reading->words[0]).text,
                          acl_rules_status_text(status));
        return false;
    }
    /* If its rules do not say "off" it was perhaps not meant to be. */
    bool is_said = user->is_on;
    for (uint32_t i = 1; i < reading->count; i++) {
        is_said |= bytes_is(reading->words[i], "off");
    }
    if (!is_said) {
        log_write(LOG_NOTICE, "user is disabled: there is no 'on' among its rules user=%s",
                  bytes_show(user->name).text);
    }
    (void)acl_users_replace(reading->users, user);
    return true;
}

/* A line of the aclfile. */
static bool acl_file_read_file_line(struct reading *reading, const char *path, unsigned number,
                                    struct bytes line) {
    enum acl_status status;
    struct bytes failed;
    if (!acl_file_split(reading, line)) {
        acl_file_complain(reading, "%s:%u: too many words. ", path, number);
        return false;
    }
    if (reading->count == 0) {
        return true;
    }
    if (reading->count < 2 || !bytes_equal(reading->words[0], BYTES("user"))) {
        acl_file_complain(reading,
                          "%s:%u should start with user keyword followed by the username. ", path,
                          number);
        return false;
    }
    struct bytes name = reading->words[1];
    if (!acl_rules_is_name(name)) {
        acl_file_complain(reading, "%s:%u: username '%s' contains invalid characters. ", path,
                          number, bytes_show(name).text);
        return false;
    }
    if (acl_users_find(reading->users, name) != NULL) {
        acl_file_complain(reading, "WARNING: Duplicate user '%s' found on line %u. ",
                          bytes_show(name).text, number);
        return false;
    }
    struct acl_user *user =
        acl_file_make_user(reading, reading->words + 1, reading->count - 1, &status, &failed);
    if (user == NULL) {
        if (status == ACL_UNMATCHED_PARENTHESIS) {
            acl_file_complain(reading, "%s:%u: Unmatched parenthesis in selector definition.", path,
                              number);
        } else if (status == ACL_UNKNOWN_NAME) {
            acl_file_complain(reading, "%s:%u: Error in applying operation '%s': %s. ", path,
                              number, bytes_show(failed).text, acl_rules_status_text(status));
        } else {
            acl_file_complain(reading, "%s:%u: %s. ", path, number, acl_rules_status_text(status));
        }
        return false;
    }
    (void)acl_users_replace(reading->users, user);
    return true;
}

static bool acl_file_begin_reading(struct reading *reading, const struct server *server,
                                   struct acl_users *users, char *error, size_t room) {
    *reading = (struct reading){
        .users = users,
        .has_all_channels = server->settings.acl_pubsub_default == SETTING_ACL_ALLCHANNELS,
        .words = memory_allocate(LINE_WORDS_MAX * sizeof(struct bytes)),
        .error = error,
        .room = room,
    };
    buffer_init(&reading->joined, 0);
    if (reading->words == NULL) {
        acl_file_complain(reading, "out of memory");
    }
    return reading->words != NULL;
}

static void acl_file_end(struct reading *reading) {
    buffer_deinit(&reading->joined);
    memory_free(reading->words);
}

/* ---- the settings' lines ---- */

static bool acl_file_read_settings(struct server *server, char *error) {
    struct reading reading;
    if (server->settings.user_lines == NULL) {
        return true;
    }
    struct bytes text = bytes_from_text(server->settings.user_lines);
    bool is_fine =
        acl_file_begin_reading(&reading, server, &server->acl.users, error, SETTING_ERROR_MAX);
    for (struct bytes line; is_fine && bytes_take_line(&text, &line);) {
        is_fine = acl_file_read_setting(&reading, line);
        if (is_fine && server->acl.users.count > ACL_USERS_MAX) {
            acl_file_complain(&reading, "at most %d users", (int)ACL_USERS_MAX);
            is_fine = false;
        }
    }
    acl_file_end(&reading);
    return is_fine;
}

/* ---- the aclfile ---- */

/* All users of the file, the default user included. */
static bool acl_file_read(const struct server *server, const char *path, struct acl_users *users,
                          char *error) {
    struct reading reading;
    char why[SETTING_ERROR_MAX];
    char *text = NULL;
    size_t size = 0;
    bool is_fine = setting_file_read(path, &text, &size, why);
    if (!is_fine) {
        snprintf(error, ACL_FILE_ERROR_MAX, "Error loading ACLs: %s", why);
        memory_free(text);
        return false;
    }
    struct bytes rest = {.at = text, .size = size};
    is_fine = acl_file_begin_reading(&reading, server, users, error, ACL_FILE_ERROR_MAX - 100);
    struct bytes line;
    for (unsigned number = 1; reading.words != NULL && bytes_take_line(&rest, &line); number++) {
        is_fine &= acl_file_read_file_line(&reading, path, number, line);
        if (users->count > ACL_USERS_MAX) {
            acl_file_complain(&reading, "%s:%u: at most %d users. ", path, number,
                              (int)ACL_USERS_MAX);
            is_fine = false;
            break;
        }
    }
    if (is_fine && acl_users_find(users, BYTES("default")) == NULL) {
        struct acl_user *user = acl_users_create_default();
        is_fine = user != NULL && acl_users_reserve(users);
        if (is_fine) {
            (void)acl_users_replace(users, user);
        } else {
            acl_user_destroy(user);
        }
    }
    acl_file_end(&reading);
    memory_free(text);
    if (!is_fine) {
        snprintf(error + strlen(error), 100,
                 "WARNING: ACL errors detected, no change to the previously active ACL rules was "
                 "performed");
    }
    return is_fine;
}

bool acl_file_begin(struct server *server, char *error) {
    const struct settings *settings = &server->settings;
    char path[PATH_MAX];
    char why[ACL_FILE_ERROR_MAX];
    if (settings->aclfile != NULL && settings->user_lines != NULL) {
        snprintf(error, SETTING_ERROR_MAX,
                 "there are `user` lines and an aclfile: define users in one of them, not in both");
        return false;
    }
    if (!acl_users_init(&server->acl.users, settings->requirepass)) {
        snprintf(error, SETTING_ERROR_MAX, "out of memory");
        return false;
    }
    if (settings->aclfile == NULL) {
        return acl_file_read_settings(server, error);
    }
    struct acl_users users = {.count = 0};
    /* As in Redis a relative path is one in dir. */
    char joined[PATH_MAX];
    bool is_absolute = settings->aclfile[0] == '/';
    int size = snprintf(joined, sizeof joined, "%s%s%s", is_absolute ? "" : settings->dir,
                        is_absolute ? "" : "/", settings->aclfile);
    errno = ENAMETOOLONG;
    if (size >= (int)sizeof joined || realpath(joined, path) == NULL) {
        snprintf(error, SETTING_ERROR_MAX, "Error loading ACLs, opening file '%.256s': %s",
                 settings->aclfile, strerror(errno));
        return false;
    }
    if (!acl_file_read(server, path, &users, why)) {
        snprintf(error, SETTING_ERROR_MAX, "%.500s", why);
        acl_users_deinit(&users);
        return false;
    }
    acl_users_exchange(&server->acl.users, &users);
    acl_users_deinit(&users);
    server->acl.path = memory_allocate(strlen(path) + 1);
    if (server->acl.path == NULL) {
        snprintf(error, SETTING_ERROR_MAX, "out of memory");
        return false;
    }
    memcpy(server->acl.path, path, strlen(path) + 1);
    return true;
}

void acl_file_close_clients(struct server *server, const struct acl_user *user,
                            const struct session *caller) {
    for (struct session *session = server->sessions.first; session != NULL;
         session = session->next) {
        if (session->user != user) {
            continue;
        }
        /* It runs nothing more; were that wrong, it would be nobody. */
        server_set_user(server, session, server->acl.users.default_user, false);
        if (session == caller) {
            session->is_close_after_reply = true;
        } else {
            server_kill_session(server, session);
        }
    }
}

bool acl_file_load(struct server *server, const struct session *caller, char *error) {
    struct acl_users fresh = {.count = 0};
    if (!acl_file_read(server, server->acl.path, &fresh, error)) {
        acl_users_deinit(&fresh);
        return false;
    }
    acl_users_exchange(&server->acl.users, &fresh);
    for (uint32_t i = 0; i < fresh.count; i++) {
        if (acl_users_find(&server->acl.users, fresh.at[i]->name) == NULL) {
            acl_file_close_clients(server, fresh.at[i], caller);
        }
    }
    acl_users_deinit(&fresh);
    acl_check_refresh(server, NULL);
    return true;
}

static void acl_file_print_line(const struct acl_user *user, struct buffer *out) {
    acl_rules_print_named(user, out);
    buffer_append_text(out, "\n");
}

bool acl_file_save(const struct server *server, char *error) {
    struct buffer text;
    buffer_init(&text, 0);
    for (uint32_t i = 0; i < server->acl.users.count; i++) {
        buffer_append_text(&text, "user ");
        acl_file_print_line(server->acl.users.at[i], &text);
    }
    errno = ENOMEM;
    bool is_saved = !text.is_broken && setting_file_replace(server->acl.path, &text);
    if (!is_saved) {
        snprintf(error, ACL_FILE_ERROR_MAX, "%s", strerror(errno));
    }
    buffer_deinit(&text);
    return is_saved;
}

/* ---- CONFIG REWRITE ---- */

/* Does a line of the settings say what holds of its user? */
static bool acl_file_is_as_it_was(struct reading *reading, const struct server *server,
                                  struct bytes line) {
    enum acl_status status;
    struct bytes failed;
    struct acl_user *now = NULL;
    struct acl_user *then = NULL;
    if (acl_file_split(reading, line) && reading->count > 0) {
        now = acl_users_find(&server->acl.users, reading->words[0]);
        then = acl_file_make_user(reading, reading->words, reading->count, &status, &failed);
    }
    struct buffer texts[2];
    buffer_init(&texts[0], 0);
    buffer_init(&texts[1], 0);
    bool is_same = now != NULL && then != NULL;
    if (is_same) {
        acl_rules_print(now, &texts[0]);
        acl_rules_print(then, &texts[1]);
        is_same = bytes_equal(buffer_bytes(&texts[0]), buffer_bytes(&texts[1]));
    }
    buffer_deinit(&texts[0]);
    buffer_deinit(&texts[1]);
    acl_user_destroy(then);
    return is_same;
}

/* Append the user's line: the one that there was, if it still says what holds. */
static void acl_file_put_user(struct reading *reading, const struct server *server,
                              const struct acl_user *user, struct buffer *out) {
    struct bytes text =
        bytes_from_text(server->settings.user_lines != NULL ? server->settings.user_lines : "");
    for (struct bytes line; bytes_take_line(&text, &line);) {
        if (line.size >= user->name.size && memcmp(line.at, user->name.at, user->name.size) == 0 &&
            (line.size == user->name.size || line.at[user->name.size] == ' ')) {
            if (acl_file_is_as_it_was(reading, server, line)) {
                buffer_append_bytes(out, line);
                buffer_append_text(out, "\n");
            } else {
                acl_file_print_line(user, out);
            }
            return;
        }
    }
    /* Is it what requirepass alone makes of the default user? */
    const char *password = server->settings.requirepass;
    bool has_one = password != NULL && user->passwords.count == 1 &&
                   acl_user_takes_password(user, bytes_from_text(password));
    const struct acl_selector *root = user->selectors[0];
    if (user != server->acl.users.default_user || !user->is_on || user->selector_count != 1 ||
        user->sanitize != ACL_SANITIZE_UNSAID || root->rules.count > 0 || user->tokens.count > 0 ||
        !acl_user_may_everything(user) || !(password != NULL ? has_one : user->has_no_password)) {
        acl_file_print_line(user, out);
    }
}

bool acl_file_to_settings(struct server *server, char *error) {
    struct reading reading;
    struct buffer lines;
    buffer_init(&lines, 0);
    bool is_fine =
        acl_file_begin_reading(&reading, server, &server->acl.users, error, SETTING_ERROR_MAX);
    for (uint32_t i = 0; is_fine && server->acl.path == NULL && i < server->acl.users.count; i++) {
        acl_file_put_user(&reading, server, server->acl.users.at[i], &lines);
    }
    if (is_fine && (lines.is_broken ||
                    !setting_value_set_user_lines(&server->settings, buffer_bytes(&lines)))) {
        acl_file_complain(&reading, "out of memory");
        is_fine = false;
    }
    /* Does each fit a line of a file? */
    const struct setting *setting = settings_find(BYTES("user"));
    char text[SETTING_VALUE_MAX];
    size_t size = 1;
    for (uint32_t i = 0;
         is_fine && setting_value_print_line(&server->settings, setting, i, text, &size); i++) {
        if (size == 0) {
            acl_file_complain(&reading, "a user has too many rules for a line: use an aclfile");
            is_fine = false;
        }
    }
    acl_file_end(&reading);
    buffer_deinit(&lines);
    return is_fine;
}
