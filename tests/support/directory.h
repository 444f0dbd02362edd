/* A directory for one test, and whole files in it. */
#ifndef TESTS_SUPPORT_DIRECTORY_H
#define TESTS_SUPPORT_DIRECTORY_H

#include <stdbool.h>
#include <stddef.h>

enum { DIRECTORY_PATH_MAX = 256 };

/* A new one under TMPDIR (/tmp); path: DIRECTORY_PATH_MAX. Aborts when there is none to be had. */
void directory_make(char *path);
/* With everything in it. */
void directory_remove(const char *path);
/* Of files and directories in it. */
unsigned directory_count(const char *path);

/* "path/name"; the text is valid until the fourth call from now. */
const char *directory_join(const char *path, const char *name);
bool file_exists(const char *path);
/* The whole file in memory that the caller frees; aborts when it cannot be read. */
char *file_read(const char *path, size_t *size);
/* Make or replace the file. */
void file_write(const char *path, const void *bytes, size_t size);

#endif
