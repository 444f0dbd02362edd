/* Settings from one file, as if it were the only argument of the server. */
#ifndef TESTS_SUPPORT_SETTINGS_FILE_H
#define TESTS_SUPPORT_SETTINGS_FILE_H

#include <limits.h>
#include <stdio.h>

#include "server/settings/settings.h"

static inline bool settings_load_file(struct settings *settings, const char *path, char *error) {
    char name[PATH_MAX];
    snprintf(name, sizeof name, "%s", path);
    return setting_file_apply_arguments(settings, 2, (char *[]){name, name, NULL}, NULL, error);
}

#endif
